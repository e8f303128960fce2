//! The tile of sums by the matrix tiles of AMX: up to two tiles of 16 rows by up to two of 16 columns.

use crate::analysis::contraction::Product;
use crate::analysis::contraction::TILE;
use crate::analysis::contraction::Tiling;
use crate::emit::contraction::tile;
use crate::emit::contraction::tile::Panel;
use crate::emit::contraction::tile::Rows;
use crate::emit::contraction::tile::Summed;
use crate::hlo::Module;
use crate::kernel::BufId;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::TILE_ROW_BYTES;
use crate::kernel::TILES;
use crate::kernel::TileDot;
use crate::kernel::TileOp;
use crate::kernel::TilePlace;
use crate::kernel::TileShape;
use crate::shape::PrimitiveType;

/// The tile of sums at a place of the block of tiles; those of rows and of columns follow.
fn sum_tile(row: usize, column: usize) -> u8 {
    (2 * row + column) as u8
}

fn row_tile(row: usize) -> u8 {
    (4 + row) as u8
}

fn column_tile(column: usize) -> u8 {
    (6 + column) as u8
}

/// Whether a product's only tiles of rows have no more rows than it has.
fn is_exact(product: &Product, tiling: &Tiling) -> bool {
    product.m <= tiling.tile_rows || product.m.is_multiple_of(TILE)
}

/// Whether rows that are neighbours along the summed length can be read where they are.
pub(super) fn rows_lie_well(product: &Product, tiling: &Tiling) -> bool {
    tiling.tiles && is_exact(product, tiling) && product.k.is_multiple_of(tiling.depth())
}

/// Gives the tiles the shapes they have throughout a product.
pub(super) fn configure(b: &mut KernelBuilder, product: &Product, tiling: &Tiling) {
    let rows = |row: usize| match product.m {
        m if m <= tiling.tile_rows => m.saturating_sub(row * TILE).min(TILE),
        _ => TILE,
    };
    let bytes = TILE_ROW_BYTES as u8;
    let shape = |rows: usize| TileShape {
        rows: rows as u8,
        bytes: if rows > 0 { bytes } else { 0 },
    };
    let mut shapes = [shape(0); TILES];
    for row in 0..2 {
        for column in 0..2 {
            shapes[usize::from(sum_tile(row, column))] = shape(rows(row));
        }
        shapes[usize::from(row_tile(row))] = shape(rows(row));
        shapes[usize::from(column_tile(row))] = shape(TILE);
    }
    b.tile(TileOp::Configure(shapes));
}

/// What the tiles multiply.
pub(super) fn dot_kind(module: &Module, product: &Product) -> TileDot {
    let signed = |operand| {
        let array = module.shape(operand).as_array();
        array.is_some_and(|array| array.ty.is_signed())
    };
    match product.accumulator {
        PrimitiveType::F32 => TileDot::Bf16,
        _ => TileDot::Bytes {
            left_signed: signed(product.lhs.operand),
            right_signed: signed(product.rhs.operand),
        },
    }
}

/// Adds the products over a block of the summed length to the sums at a place, or writes them there.
pub(super) fn multiply(
    b: &mut KernelBuilder,
    (kind, shape): (TileDot, &Summed<'_>),
    (rows, panel): (Rows<'_>, Panel),
    row_count: usize,
    (sums, adds): (TilePlace, bool),
) {
    let tiling = shape.tiling;
    let (height, width) = (row_count.div_ceil(TILE), tiling.tile_columns / TILE);
    let each: Vec<(usize, usize)> = (0..height)
        .flat_map(|row| (0..width).map(move |column| (row, column)))
        .collect();
    let places: Vec<TilePlace> = each
        .iter()
        .map(|&(row, column)| TilePlace {
            index: b.add_const(
                sums.index,
                (row * TILE * sums.stride as usize + column * TILE) as i64,
            ),
            ..sums
        })
        .collect();
    for (&(row, column), &place) in each.iter().zip(&places) {
        let tile = sum_tile(row, column);
        b.tile(if adds {
            TileOp::Load(tile, place)
        } else {
            TileOp::Zero(tile)
        });
    }
    let length = padded(b, shape);
    let (zero, step) = (b.index(0), b.index(tiling.depth() as i64));
    b.for_loop((zero, length, step), |b, k| {
        for column in 0..width {
            b_tile(b, tiling, panel, k, column);
        }
        for row in 0..height {
            a_tile(b, rows, k, row);
            for column in 0..width {
                b.tile(TileOp::Dot {
                    kind,
                    sum: sum_tile(row, column),
                    left: row_tile(row),
                    right: column_tile(column),
                });
            }
        }
    });
    for ((row, column), place) in each.into_iter().zip(places) {
        b.tile(TileOp::Store(sum_tile(row, column), place));
    }
}

/// Reads a tile of rows.
fn a_tile(b: &mut KernelBuilder, rows: Rows<'_>, k: ExprId, row: usize) {
    let start = b.add_const(rows.start, (row * TILE) as i64 * rows.row_stride);
    let place = TilePlace {
        buf: rows.buf,
        index: b.add(start, k),
        stride: rows.row_stride as u64,
    };
    b.tile(TileOp::Load(row_tile(row), place));
}

/// Reads a tile of columns.
fn b_tile(b: &mut KernelBuilder, tiling: &Tiling, panel: Panel, k: ExprId, column: usize) {
    let group = tiling.group.size();
    let at = b.mul_const(k, panel.stride);
    let at = b.add(panel.start, at);
    let place = TilePlace {
        buf: panel.buf,
        index: b.add_const(at, (column * TILE * group) as i64),
        stride: panel.stride as u64 * group as u64,
    };
    b.tile(TileOp::Load(column_tile(column), place));
}

/// The length of a block in whole tiles.
fn padded(b: &mut KernelBuilder, shape: &Summed<'_>) -> ExprId {
    let depth = shape.tiling.depth();
    if shape.comes_in(depth) {
        return shape.length;
    }
    let tiles = b.add_const(shape.length, depth as i64 - 1);
    let tiles = b.div_const(tiles, depth as i64);
    b.mul_const(tiles, depth as i64)
}

/// Makes what follows the groups of a panel zero, up to a whole tile.
pub(super) fn fill_panel(b: &mut KernelBuilder, shape: &Summed<'_>, buf: BufId, start: ExprId) {
    let tiling = shape.tiling;
    if !tiling.tiles || shape.comes_in(tiling.depth()) {
        return;
    }
    let group = tiling.group.size() as i64;
    let groups = b.add_const(shape.length, group - 1);
    let groups = b.div_const(groups, group);
    let first = b.mul_const(groups, group);
    let range = (first, padded(b, shape), b.index(group));
    let columns = tiling.tile_columns as i64;
    let lanes = tiling.lanes * tiling.group.size();
    let nothing = tile::zeros(b, b.buffer_info(buf).elem, lanes);
    b.for_loop(range, |b, at| {
        let to = b.mul_const(at, columns);
        let to = b.add(start, to);
        for v in (0..tiling.tile_columns * tiling.group.size()).step_by(lanes) {
            let to = b.add_const(to, v as i64);
            b.store(buf, to, nothing);
        }
    });
}

/// Makes the rows after the last one zero, up to a whole tile.
pub(super) fn fill_rows(
    b: &mut KernelBuilder,
    (product, tiling): (&Product, &Tiling),
    buf: BufId,
    count: ExprId,
) {
    if !tiling.tiles || is_exact(product, tiling) {
        return;
    }
    let stride = tiling.row_stride() as i64;
    let rows = b.add_const(count, TILE as i64 - 1);
    let rows = b.div_const(rows, TILE as i64);
    let rows = b.mul_const(rows, TILE as i64);
    let range = (b.mul_const(count, stride), b.mul_const(rows, stride));
    let lanes = tiling.lanes * tiling.group.size();
    let nothing = tile::zeros(b, b.buffer_info(buf).elem, lanes);
    let step = b.index(lanes as i64);
    b.for_loop((range.0, range.1, step), |b, at| b.store(buf, at, nothing));
}
