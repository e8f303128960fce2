//! How a product is cut for the matrix tiles of AMX: sums of 32 rows by 32 columns at a time, in four
//! tiles, which two tiles of rows and two of columns are multiplied for.

use super::Group;
use super::Product;
use super::Right;
use super::Strategy;
use super::Tiling;
use crate::hlo::Module;
use crate::shape::ElementKind;
use crate::shape::PrimitiveType;
use crate::target::Target;

/// Rows and columns of a tile of sums.
pub const TILE: usize = 16;

/// Tiles of sums side by side, in each direction.
const TILES: usize = 2;

/// Fewest products for which tiles are asked for and set up.
const FEWEST_PRODUCTS: u64 = 1 << 16;

/// Products of a task.
const TASK_PRODUCTS: u64 = 1 << 23;

/// Most bytes of a row that are multiplied before the sums are written: two tiles of rows and two of
/// columns over that length stay in the second-level cache beside all rows of a task.
const ROW_BYTES: usize = 2048;

/// Most bytes of rows of a task that are worked on at a time.
const ROWS_BYTES: usize = 1 << 20;

/// Most columns of a task whose sums of a part of the summed length wait in memory.
const TASK_COLUMNS: usize = 512;

/// Fewest columns of a task that has many rows: each task copies its rows.
const FEWEST_COLUMNS: usize = 128;

/// What tiles multiply at a time; `None` when there are none for the operands, or they do not pay.
fn group(product: &Product, module: &Module, target: &Target) -> Option<Group> {
    let dots = target.cpu()?.tile_dots();
    let both = |fits: &dyn Fn(PrimitiveType) -> bool| {
        [&product.lhs, &product.rhs].iter().all(|side| {
            let array = module.shape(side.operand).as_array();
            array.is_some_and(|array| fits(array.ty))
        })
    };
    let is_byte = |ty: PrimitiveType| {
        matches!(ty.kind(), ElementKind::Signed | ElementKind::Unsigned) && ty.bit_width() <= 8
    };
    let is_rounded = product.operand_type == Some(PrimitiveType::BF16);
    match product.accumulator {
        PrimitiveType::F32 if dots.bf16 => {
            (is_rounded || both(&|ty| ty == PrimitiveType::BF16)).then_some(Group::Pairs)
        }
        PrimitiveType::S32 if dots.bytes => both(&is_byte).then_some(Group::Quads),
        _ => None,
    }
}

/// The tiling by matrix tiles, where they are what is best.
pub(super) fn tiling(product: &Product, module: &Module, target: &Target) -> Option<Tiling> {
    let group = group(product, module, target)?;
    let products = product.batch as u64 * (product.m * product.n) as u64 * product.k as u64;
    if products < FEWEST_PRODUCTS {
        return None;
    }
    let up = |count: usize, step: usize| count.div_ceil(step) * step;
    let depth = TILE * group.size();
    let operand_width = 4 / group.size();
    let blocks = (product.k * operand_width).div_ceil(ROW_BYTES);
    let k_block = up(product.k.div_ceil(blocks), depth).min(product.k);
    let tile_rows = TILES * TILE;
    let tile_columns = TILE * TILES.min(product.n.div_ceil(TILE));
    let wanted = (products / TASK_PRODUCTS).clamp(1, u64::from(target.parallelism.max(1))) as usize;
    let most_columns = if blocks > 1 { TASK_COLUMNS } else { product.n };
    let most_rows = ROWS_BYTES / (k_block * operand_width);
    let mut m_block = up(product.m.min(most_rows), tile_rows);
    let mut n_block = up(product.n.min(most_columns), tile_columns);
    let tasks = |m_block: usize, n_block: usize| {
        product.batch * product.m.div_ceil(m_block) * product.n.div_ceil(n_block)
    };
    let is_one_row_block = product.m <= m_block;
    // Cutting columns leaves each panel to one task, but each task reads all rows. Cutting the only
    // block of rows means that panels are packed apart, and has to be worth it.
    let (fewest_columns, enough) = match is_one_row_block {
        true => (tile_columns, wanted / 4),
        false => (FEWEST_COLUMNS, wanted),
    };
    while tasks(m_block, n_block) < wanted && n_block > fewest_columns {
        n_block = up(n_block / 2, tile_columns);
    }
    while tasks(m_block, n_block) < enough && m_block > 2 * tile_rows {
        m_block = up(m_block / 2, tile_rows);
    }
    let is_one_block = product.m <= m_block && product.n <= n_block;
    Some(Tiling {
        strategy: Strategy::Tiled,
        right: if product.m <= m_block {
            Right::InBlocks
        } else {
            Right::Packed
        },
        group,
        tiles: true,
        lanes: TILE,
        tile_rows,
        tile_columns,
        k_block,
        m_block,
        n_block,
        batch_block: if is_one_block {
            product.batch.div_ceil(wanted.min(product.batch))
        } else {
            1
        },
        lines: None,
    })
}
