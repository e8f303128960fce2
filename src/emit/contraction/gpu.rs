//! Products on a GPU: tiles of both sides in shared memory, a tile of the result in registers.
//!
//! 16-bit floats go to the tensor cores (`mma.sync` m16n8k16, fragments as the PTX ISA lays them out
//! over a warp); other types are multiplied by every workitem for a square of the result.

use crate::analysis::contraction::Product;
use crate::base::Result;
use crate::emit::contraction::side::Along;
use crate::emit::contraction::side::Place;
use crate::emit::contraction::side::Reader;
use crate::emit::contraction::store::Store;
use crate::emit::contraction::tile;
use crate::emit::cost::pieces;
use crate::emit::request::Emitted;
use crate::emit::request::KernelRequest;
use crate::emit::setup::Body;
use crate::emit::setup::Setup;
use crate::emit::value;
use crate::executable::Launch;
use crate::kernel::Axis;
use crate::kernel::BinaryOp;
use crate::kernel::BufId;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::MmaKind;
use crate::kernel::Scalar;
use crate::kernel::Space;
use crate::kernel::Ty;
use crate::kernel::Unroll;
use crate::shape::PrimitiveType;

/// Rows and columns of a workgroup's tile.
const TILE: i64 = 64;
/// Elements added to each row in shared memory, so that rows start in different banks.
const PAD: i64 = 8;
/// Rows (columns) of the square that one workitem computes without tensor cores.
const SQUARE: i64 = 4;
/// Fewest rows and columns worth a tile; smaller products are left to plain loops.
const FEWEST: usize = 4;

/// How the tile of a workgroup is multiplied.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Means {
    /// Four warps, each 32 rows by 32 columns on the tensor cores.
    Tensor(MmaKind),
    /// 256 workitems, each a square.
    Scalar,
}

impl Means {
    fn of(request: &KernelRequest<'_>, product: &Product) -> Self {
        let ty = |id| request.module.shape(id).as_array().map(|shape| shape.ty);
        let operand = |id| product.operand_type.or_else(|| ty(id));
        let (lhs, rhs) = (operand(product.lhs.operand), operand(product.rhs.operand));
        // They sum in f32.
        let has_tensor_cores = product.accumulator == PrimitiveType::F32
            && request
                .target
                .gpu()
                .is_some_and(|gpu| gpu.capability.at_least(8, 0));
        match (lhs, rhs) {
            (Some(PrimitiveType::F16), Some(PrimitiveType::F16)) if has_tensor_cores => {
                Self::Tensor(MmaKind::F16)
            }
            (Some(PrimitiveType::BF16), Some(PrimitiveType::BF16)) if has_tensor_cores => {
                Self::Tensor(MmaKind::BF16)
            }
            _ => Self::Scalar,
        }
    }

    fn workitems(self) -> i64 {
        match self {
            Self::Tensor(_) => 128,
            Self::Scalar => (TILE / SQUARE) * (TILE / SQUARE),
        }
    }

    /// Summed length of a step.
    fn depth(self) -> i64 {
        match self {
            Self::Tensor(_) => 32,
            Self::Scalar => 16,
        }
    }

    /// The element type in shared memory.
    fn element(self, product: &Product) -> (PrimitiveType, Scalar) {
        match self {
            Self::Tensor(MmaKind::F16) => (PrimitiveType::F16, Scalar::F16),
            Self::Tensor(_) => (PrimitiveType::BF16, Scalar::BF16),
            Self::Scalar => (product.accumulator, value::register(product.accumulator)),
        }
    }
}

pub(super) fn emit(request: &KernelRequest<'_>, product: &Product) -> Result<Option<Emitted>> {
    if product.m < FEWEST || product.n < FEWEST {
        return Ok(None);
    }
    let means = Means::of(request, product);
    let Setup { mut b, body } = Setup::new(request);
    let (ty, scalar) = means.element(product);
    let (rows, columns) = (
        pieces(product.m as i64, TILE),
        pieces(product.n as i64, TILE),
    );
    let size = match means {
        Means::Tensor(_) => TILE * (means.depth() + PAD),
        Means::Scalar => means.depth() * (TILE + SQUARE),
    } as u64;
    let shared = [
        b.scratch("left", scalar, size, Space::Shared),
        b.scratch("right", scalar, size, Space::Shared),
    ];
    {
        let b = &mut b;
        let group = b.workgroup_id(Axis::X);
        let item = b.workitem_id(Axis::X);
        let (number, column_tile) = body.el.splits.split(b, group, columns);
        let (batch, row_tile) = body.el.splits.split(b, number, rows);
        let tile = Tile {
            body: &body,
            product,
            means,
            left: Reader::lhs(&body.el, product).in_type(ty),
            right: Reader::rhs(&body.el, product).in_type(ty),
            store: Store::new(&body, product),
            shared,
            batch,
            row: b.mul_const(row_tile, TILE),
            column: b.mul_const(column_tile, TILE),
            item,
        };
        tile.run(b);
    }
    let launch = Launch {
        workgroups: [(product.batch as i64 * rows * columns) as u64, 1, 1],
        workitems: [means.workitems() as u32, 1, 1],
        ..Launch::SINGLE
    };
    body.finish(b, launch).map(Some)
}

/// What one workgroup computes.
struct Tile<'a, 'm> {
    body: &'a Body<'m>,
    product: &'a Product,
    means: Means,
    left: Reader<'a, 'm>,
    right: Reader<'a, 'm>,
    store: Store<'a, 'm>,
    /// The two sides in shared memory: row by row for the tensor cores, else `k` by `k`.
    shared: [BufId; 2],
    batch: ExprId,
    row: ExprId,
    column: ExprId,
    item: ExprId,
}

impl Tile<'_, '_> {
    fn run(&self, b: &mut KernelBuilder) {
        let depth = self.means.depth();
        let sums = match self.means {
            Means::Tensor(_) => vec![b.const_bits(Ty::vector(Scalar::F32, 4), 0); 8],
            Means::Scalar => {
                let scalar = value::register(self.product.accumulator);
                vec![tile::zeros(b, scalar, SQUARE as usize); SQUARE as usize]
            }
        };
        let bounds = (b.index(0), b.index(self.product.k as i64), b.index(depth));
        let sums = b.for_carried(bounds, &sums, Unroll::Never, |b, k, sums| {
            self.body.el.scope(|| {
                let rows = (self.row, self.product.m);
                self.fetch(b, &self.left, self.shared[0], rows, k);
                let columns = (self.column, self.product.n);
                self.fetch(b, &self.right, self.shared[1], columns, k);
            });
            b.barrier();
            let sums = match self.means {
                Means::Tensor(kind) => self.tensor_step(b, kind, sums),
                Means::Scalar => self.scalar_step(b, sums),
            };
            b.barrier();
            sums
        });
        match self.means {
            Means::Tensor(_) => self.write_fragments(b, &sums),
            Means::Scalar => self.write_square(b, &sums),
        }
    }

    /// Where an element of a side stands in shared memory.
    fn shared_place(&self, b: &mut KernelBuilder, free: ExprId, k: ExprId) -> ExprId {
        let (major, minor, stride) = match self.means {
            Means::Tensor(_) => (free, k, self.means.depth() + PAD),
            Means::Scalar => (k, free, TILE + SQUARE),
        };
        let at = b.mul_const(major, stride);
        b.add(at, minor)
    }

    /// Copies `TILE` rows (columns) of `depth` elements of a side from `k` on into shared memory;
    /// what is outside the product is zero.
    fn fetch(
        &self,
        b: &mut KernelBuilder,
        reader: &Reader<'_, '_>,
        to: BufId,
        (start, count): (ExprId, usize),
        k: ExprId,
    ) {
        let depth = self.means.depth();
        let along = reader.innermost();
        let run = self.run_length(reader, along, count);
        let steps = pieces(TILE * depth, self.means.workitems() * run);
        for step in 0..steps {
            let number = b.add_const(self.item, step * self.means.workitems());
            let number = b.mul_const(number, run);
            // Neighbouring workitems read neighbouring memory.
            let inner = if along == Along::Summed { depth } else { TILE };
            let (high, low) = (b.div_const(number, inner), b.rem_const(number, inner));
            let (free, summed) = if along == Along::Summed {
                (high, low)
            } else {
                (low, high)
            };
            let place = Place {
                batch: self.batch,
                free: b.add(start, free),
                summed: b.add(k, summed),
            };
            let vector = self.guarded(b, reader, place, (count, along, run as u16));
            self.put(b, to, (free, summed), along, vector);
        }
    }

    /// How many elements are read at once: 16 bytes where rows stay aligned, else one.
    fn run_length(&self, reader: &Reader<'_, '_>, along: Along, count: usize) -> i64 {
        let (ty, _) = self.means.element(self.product);
        let wide = (16 / ty.byte_width()).max(1);
        let total = if along == Along::Summed {
            self.product.k
        } else {
            count
        };
        let fits = total.is_multiple_of(wide) && reader.vectorizes(along, wide);
        if fits { wide as i64 } else { 1 }
    }

    /// Reads a run, or zeros when it is outside the product.
    fn guarded(
        &self,
        b: &mut KernelBuilder,
        reader: &Reader<'_, '_>,
        place: Place,
        (count, along, lanes): (usize, Along, u16),
    ) -> ExprId {
        let mut inside = None;
        for (coordinate, size, tile) in [
            (place.free, count, TILE),
            (place.summed, self.product.k, self.means.depth()),
        ] {
            if size as i64 % tile != 0 {
                let bound = b.index(size as i64);
                let below = b.cmp(CmpOp::SLt, coordinate, bound);
                inside = Some(match inside {
                    None => below,
                    Some(other) => b.binary(BinaryOp::And, other, below),
                });
            }
        }
        let Some(inside) = inside else {
            return reader.read(b, place, along, lanes);
        };
        let (ty, _) = self.means.element(self.product);
        let register = Ty::vector(value::register(ty), lanes);
        b.if_else(
            inside,
            |b| {
                self.body
                    .el
                    .scope(|| vec![reader.read(b, place, along, lanes)])
            },
            |b| vec![b.const_bits(register, 0)],
        )[0]
    }

    /// Writes a run to shared memory.
    fn put(
        &self,
        b: &mut KernelBuilder,
        to: BufId,
        (free, summed): (ExprId, ExprId),
        along: Along,
        vector: ExprId,
    ) {
        let lanes = b.ty(vector).lanes;
        let elem = b.buffer_info(to).elem;
        let vector = b.bitcast(vector, Ty::vector(elem, lanes));
        let minor = match self.means {
            Means::Tensor(_) => Along::Summed,
            Means::Scalar => Along::Free,
        };
        if along == minor || lanes == 1 {
            let at = self.shared_place(b, free, summed);
            b.store(to, at, vector);
            return;
        }
        for lane in 0..lanes {
            let (mut free, mut summed) = (free, summed);
            match along {
                Along::Free => free = b.add_const(free, i64::from(lane)),
                Along::Summed => summed = b.add_const(summed, i64::from(lane)),
            }
            let at = self.shared_place(b, free, summed);
            let element = b.extract(vector, lane);
            b.store(to, at, element);
        }
    }

    /// First row and column of this warp within the tile, and the lane's group and place in it.
    fn warp(&self, b: &mut KernelBuilder) -> (ExprId, ExprId, ExprId, ExprId) {
        let warp = b.div_const(self.item, 32);
        let lane = b.rem_const(self.item, 32);
        let (row, column) = (b.div_const(warp, 2), b.rem_const(warp, 2));
        let (row, column) = (b.mul_const(row, 32), b.mul_const(column, 32));
        (row, column, b.div_const(lane, 4), b.rem_const(lane, 4))
    }

    fn tensor_step(&self, b: &mut KernelBuilder, kind: MmaKind, sums: &[ExprId]) -> Vec<ExprId> {
        let (row, column, group, place) = self.warp(b);
        let pair = b.mul_const(place, 2);
        let mut sums = sums.to_vec();
        for k in (0..self.means.depth()).step_by(16) {
            // Two neighbours along k, and the two that are eight further.
            let near = b.add_const(pair, k);
            let far = b.add_const(pair, k + 8);
            let load = |b: &mut KernelBuilder, side: usize, free: ExprId, k: ExprId| {
                let at = self.shared_place(b, free, k);
                b.load(self.shared[side], at, 2)
            };
            let left: Vec<ExprId> = (0..2)
                .map(|m| {
                    let top = b.add_const(row, m * 16);
                    let top = b.add(top, group);
                    let bottom = b.add_const(top, 8);
                    let parts = [(top, near), (bottom, near), (top, far), (bottom, far)];
                    let parts: Vec<ExprId> =
                        parts.iter().map(|&(free, k)| load(b, 0, free, k)).collect();
                    let upper = b.shuffle(parts[0], parts[1], &[0, 1, 2, 3]);
                    let lower = b.shuffle(parts[2], parts[3], &[0, 1, 2, 3]);
                    b.shuffle(upper, lower, &[0, 1, 2, 3, 4, 5, 6, 7])
                })
                .collect();
            for n in 0..4 {
                let free = b.add_const(column, n * 8);
                let free = b.add(free, group);
                let (first, second) = (load(b, 1, free, near), load(b, 1, free, far));
                let right = b.shuffle(first, second, &[0, 1, 2, 3]);
                for (m, &left) in left.iter().enumerate() {
                    let sum = &mut sums[m * 4 + n as usize];
                    *sum = b.mma(kind, left, right, *sum);
                }
            }
        }
        sums
    }

    fn write_fragments(&self, b: &mut KernelBuilder, sums: &[ExprId]) {
        let (row, column, group, place) = self.warp(b);
        let (row, column) = (b.add(self.row, row), b.add(self.column, column));
        let pair = b.mul_const(place, 2);
        for (i, &sum) in sums.iter().enumerate() {
            let (m, n) = (i as i64 / 4, i as i64 % 4);
            let column = b.add_const(column, n * 8);
            let column = b.add(column, pair);
            for half in 0..2 {
                let row = b.add_const(row, m * 16 + half * 8);
                let row = b.add(row, group);
                let lanes = [half as u16 * 2, half as u16 * 2 + 1];
                let two = b.shuffle(sum, sum, &lanes);
                self.write(b, row, column, two);
            }
        }
    }

    /// Row and column of this workitem's square within the tile.
    fn square(&self, b: &mut KernelBuilder) -> (ExprId, ExprId) {
        let across = TILE / SQUARE;
        let (row, column) = (
            b.div_const(self.item, across),
            b.rem_const(self.item, across),
        );
        (b.mul_const(row, SQUARE), b.mul_const(column, SQUARE))
    }

    fn scalar_step(&self, b: &mut KernelBuilder, sums: &[ExprId]) -> Vec<ExprId> {
        let (row, column) = self.square(b);
        let mut sums = sums.to_vec();
        for k in 0..self.means.depth() {
            let k = b.index(k);
            let at = self.shared_place(b, row, k);
            let rows = b.load(self.shared[0], at, SQUARE as u16);
            let at = self.shared_place(b, column, k);
            let columns = b.load(self.shared[1], at, SQUARE as u16);
            for (r, sum) in sums.iter_mut().enumerate() {
                let x = b.extract(rows, r as u16);
                let x = b.splat(x, SQUARE as u16);
                *sum = tile::multiply_add(b, x, columns, *sum);
            }
        }
        sums
    }

    fn write_square(&self, b: &mut KernelBuilder, sums: &[ExprId]) {
        let (row, column) = self.square(b);
        let (row, column) = (b.add(self.row, row), b.add(self.column, column));
        for (r, &sum) in sums.iter().enumerate() {
            let row = b.add_const(row, r as i64);
            self.write(b, row, column, sum);
        }
    }

    /// Writes neighbouring columns of a row, those that are inside the product.
    fn write(&self, b: &mut KernelBuilder, row: ExprId, column: ExprId, sums: ExprId) {
        let lanes = i64::from(b.ty(sums).lanes);
        if self.product.n as i64 % lanes != 0 {
            for lane in 0..lanes {
                let sum = b.extract(sums, lane as u16);
                let column = b.add_const(column, lane);
                self.write(b, row, column, sum);
            }
            return;
        }
        let mut inside = b.bool(1, true);
        for (coordinate, size) in [(row, self.product.m), (column, self.product.n)] {
            if size as i64 % TILE != 0 {
                let bound = b.index(size as i64);
                let below = b.cmp(CmpOp::SLt, coordinate, bound);
                inside = b.binary(BinaryOp::And, inside, below);
            }
        }
        if b.as_const(inside) == Some(1) {
            self.store.sums(b, (self.batch, row, column), sums);
        } else {
            b.if_then(inside, |b| {
                self.store.sums(b, (self.batch, row, column), sums)
            });
        }
    }
}
