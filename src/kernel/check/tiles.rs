//! The rules of tiles: configured once and given back once, both outside of all control; shapes that
//! fit what is multiplied; memory that holds the elements.

use super::Checker;
use crate::kernel::INDEX;
use crate::kernel::TILE_ROW_BYTES;
use crate::kernel::TILE_ROWS;
use crate::kernel::TILES;
use crate::kernel::TileDot;
use crate::kernel::TileOp;
use crate::kernel::TilePlace;
use crate::kernel::TileShape;

/// What is known of the tiles at a statement.
#[derive(Default)]
pub(super) struct Tiles {
    /// Blocks that are open.
    pub(super) depth: usize,
    /// Their shapes, from where they are configured to where they are given back.
    shapes: Option<[TileShape; TILES]>,
    /// Whether they were configured before.
    used: bool,
}

impl Checker<'_> {
    pub(super) fn tile(&mut self, op: &TileOp) {
        match op {
            TileOp::Configure(shapes) => self.configure(shapes),
            TileOp::Zero(tile) => {
                self.shape(*tile);
            }
            TileOp::Load(tile, place) => self.tile_memory(*tile, place, false),
            TileOp::Store(tile, place) => self.tile_memory(*tile, place, true),
            TileOp::Dot {
                kind,
                sum,
                left,
                right,
            } => self.tile_dot(*kind, [*sum, *left, *right]),
            TileOp::Release => {
                self.at_top();
                if self.tiles.shapes.take().is_none() {
                    self.tile_report("are given back where there are none");
                }
            }
        }
    }

    /// Reports tiles that the kernel keeps.
    pub(super) fn tiles_are_released(&mut self) {
        if self.tiles.shapes.is_some() {
            self.tile_report("are not given back");
        }
    }

    fn tile_report(&mut self, message: &str) {
        self.report("tiles".to_owned(), format!("tiles {message}"));
    }

    fn at_top(&mut self) {
        if self.tiles.depth != 1 {
            self.tile_report("are configured and given back outside of loops and branches");
        }
    }

    fn configure(&mut self, shapes: &[TileShape; TILES]) {
        self.at_top();
        if self.tiles.used {
            self.tile_report("are configured twice");
        }
        let fits = |shape: &TileShape| {
            let (rows, bytes) = (usize::from(shape.rows), usize::from(shape.bytes));
            (rows, bytes) == (0, 0)
                || (1..=TILE_ROWS).contains(&rows)
                    && (4..=TILE_ROW_BYTES).contains(&bytes)
                    && bytes.is_multiple_of(4)
        };
        if !shapes.iter().all(fits) {
            self.tile_report("have shapes that no tile has");
        }
        self.tiles.shapes = Some(*shapes);
        self.tiles.used = true;
    }

    /// The shape of a tile in use.
    fn shape(&mut self, tile: u8) -> Option<TileShape> {
        let shapes = self.tiles.shapes;
        let shape = shapes.and_then(|shapes| shapes.get(usize::from(tile)).copied());
        let used = shape.filter(|shape| shape.rows > 0);
        if used.is_none() {
            self.tile_report(&format!("t{tile} is used without a shape"));
        }
        used
    }

    fn tile_memory(&mut self, tile: u8, place: &TilePlace, is_store: bool) {
        self.uses("tile", &[place.index]);
        self.want("tile", "index", place.index, INDEX);
        let shape = self.shape(tile);
        if !self.buffer("tile", place.buf) {
            return;
        }
        let buffer = &self.kernel.buffers[place.buf];
        let (elem, written) = (buffer.elem.bytes(), buffer.written);
        if is_store && !written {
            self.tile_report(&format!("{:?} is not said to be written", place.buf));
        }
        if let Some(shape) = shape
            && (!u64::from(shape.bytes).is_multiple_of(elem)
                || place.stride * elem < u64::from(shape.bytes))
        {
            self.tile_report(&format!(
                "t{tile} has rows that do not lie in {:?}",
                place.buf
            ));
        }
    }

    fn tile_dot(&mut self, kind: TileDot, tiles: [u8; 3]) {
        let [Some(sum), Some(left), Some(right)] = tiles.map(|tile| self.shape(tile)) else {
            return;
        };
        let fits =
            sum.rows == left.rows && sum.bytes == right.bytes && left.bytes == 4 * right.rows;
        let [a, b, c] = tiles;
        if !fits || a == b || a == c || b == c {
            let name = kind.name();
            self.tile_report(&format!("t{a}, t{b} and t{c} do not fit dot.{name}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::base::Id;
    use crate::executable::KernelId;
    use crate::executable::Launch;
    use crate::kernel::Buffer;
    use crate::kernel::KernelBuilder;
    use crate::kernel::Scalar;
    use crate::kernel::Space;
    use crate::kernel::TILES;
    use crate::kernel::TileDot;
    use crate::kernel::TileOp;
    use crate::kernel::TilePlace;
    use crate::kernel::TileShape;
    use crate::kernel::check::check;

    fn found(ops: impl FnOnce(TilePlace) -> Vec<TileOp>) -> Vec<String> {
        let mut b = KernelBuilder::new("k");
        let buf = b.buffer(Buffer {
            name: "sums".to_owned(),
            elem: Scalar::F32,
            count: 256,
            space: Space::Global,
            align: 64,
            written: true,
            noalias: true,
        });
        let place = TilePlace {
            buf,
            index: b.index(0),
            stride: 16,
        };
        for op in ops(place) {
            b.tile(op);
        }
        let kernel = b.finish(KernelId::from_index(0), Launch::SINGLE);
        check(&kernel).iter().map(|d| d.message.clone()).collect()
    }

    /// Two left tiles of 3 rows, a right one and sums.
    fn shapes() -> TileOp {
        let shape = |rows, bytes| TileShape { rows, bytes };
        let mut shapes = [shape(0, 0); TILES];
        shapes[..4].copy_from_slice(&[shape(3, 64), shape(3, 32), shape(16, 40), shape(3, 40)]);
        TileOp::Configure(shapes)
    }

    fn dot(left: u8) -> TileOp {
        TileOp::Dot {
            kind: TileDot::Bf16,
            sum: 3,
            left,
            right: 2,
        }
    }

    #[test]
    fn a_product_that_fits_passes() {
        let found = found(|place| {
            vec![
                shapes(),
                TileOp::Zero(3),
                TileOp::Load(0, place),
                dot(0),
                TileOp::Store(3, place),
                TileOp::Release,
            ]
        });
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn what_does_not_fit_is_found() {
        let holds = |found: Vec<String>, what: &str| {
            assert!(found.iter().any(|m| m.contains(what)), "{what}: {found:?}");
        };
        holds(
            found(|_| vec![shapes(), dot(1), TileOp::Release]),
            "do not fit dot.bf16ps",
        );
        holds(
            found(|_| vec![shapes(), TileOp::Zero(5), TileOp::Release]),
            "t5 is used without a shape",
        );
        holds(found(|_| vec![TileOp::Zero(0)]), "t0 is used without");
        holds(found(|_| vec![shapes()]), "not given back");
        holds(found(|_| vec![TileOp::Release]), "where there are none");
        let narrow = |place| TileOp::Load(0, TilePlace { stride: 8, ..place });
        holds(
            found(|place| vec![shapes(), narrow(place), TileOp::Release]),
            "rows that do not lie",
        );
    }
}
