//! How a CPU computes attention: register tiles of both products, and how many rows at a time.

use crate::analysis::attention::Attention;
use crate::analysis::contraction;
use crate::analysis::contraction::Access;
use crate::analysis::contraction::Group;
use crate::analysis::contraction::Product;
use crate::analysis::contraction::Right;
use crate::analysis::contraction::Strategy;
use crate::analysis::contraction::Tiling;
use crate::hlo::Module;
use crate::target::Target;

/// Bytes of a block of scores, queries and results: with the keys and values that stream by they stay in
/// the second-level cache.
const BLOCK: usize = 256 * 1024;
/// Most bytes of one tile of rows, than which there is no smaller block: they are on a thread's stack.
const MOST_BLOCK: usize = 512 * 1024;
/// Most rows of a block.
const MOST_ROWS: usize = 144;
/// Fewest rows, in tiles, of a block whose keys are cut off by a mask.
const MASKED_TILES: usize = 4;
/// Fewest rows for which keys are worth packing.
const FEWEST_ROWS: usize = 9;
/// Most bytes between values of neighbouring keys that are read where they lie.
const IN_PLACE_STRIDE: usize = 512;
/// Most summed elements of a score: a panel of keys stays in the first-level cache.
const MOST_DEPTH: usize = 512;

/// Tile sizes of attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Of the first product.
    pub scores: Tiling,
    /// Of the second product.
    pub values: Tiling,
    /// Rows whose blocks are cut together: all of a batch, or those that a mask counts from zero.
    pub run: usize,
    /// Rows of a block, a multiple of the tile's.
    pub rows: usize,
    /// Elements from one row of scores to the next.
    pub stride: usize,
    /// Blocks that one task computes.
    pub blocks: usize,
}

/// How a CPU computes it; `None` when it does not as one kernel.
pub fn plan(attention: &Attention, module: &Module, target: &Target) -> Option<Plan> {
    let cpu = target.cpu()?;
    let (scores, values) = (&attention.scores, &attention.values);
    let run = attention.mask.as_ref().map_or(scores.m, |mask| mask.run);
    // A mask that counts few rows is not worth blocks of so few.
    let run = if run < FEWEST_ROWS { scores.m } else { run };
    let width = scores.accumulator.byte_width();
    if run < FEWEST_ROWS || scores.n < FEWEST_ROWS || scores.k > MOST_DEPTH {
        return None;
    }
    let (usual, widest) = (
        target.vector_bytes() as usize,
        cpu.register_bytes() as usize,
    );
    let filled = |bytes: usize| {
        let lanes = (bytes / width).max(1);
        scores.n.next_multiple_of(lanes) * values.n.next_multiple_of(lanes)
    };
    let bytes = if 3 * filled(widest) <= 4 * filled(usual) {
        widest
    } else {
        usual
    };
    let lanes = (bytes / width).max(1);
    let (fewest, most, vectors) = match (cpu.vector_registers, bytes) {
        (32, 64) => (8, 12, 2),
        (32, _) => (6, 8, 3),
        _ => (5, 6, 2),
    };
    let tile_rows = (fewest..=most)
        .rev()
        .find(|&rows| run.is_multiple_of(rows))
        .unwrap_or(most);
    let columns =
        |product: &Product, vectors: usize| lanes * vectors.min(product.n.div_ceil(lanes)).max(1);
    let (score_columns, mut value_columns) = (columns(scores, vectors), columns(values, vectors));
    let lies = values.n.is_multiple_of(lanes) && values_lie_well(values, module);
    if lies && !values.n.is_multiple_of(value_columns) {
        value_columns = lanes;
    }
    // Rows of one power of two of bytes would share few lines of the cache.
    let stride = scores.n.next_multiple_of(score_columns) + lanes;
    let row = stride + values.n.next_multiple_of(value_columns) + scores.k;
    let rows = block_rows(attention, run, tile_rows, row * width)?;
    let tiling = |product: &Product, tile_columns: usize, right: Right| Tiling {
        strategy: Strategy::Tiled,
        right,
        group: Group::Single,
        lanes,
        tile_rows,
        tile_columns,
        k_block: product.k,
        m_block: rows,
        n_block: product.n.next_multiple_of(tile_columns),
        batch_block: 1,
        lines: None,
        tiles: false,
    };
    let right = if lies { Right::InPlace } else { Right::Packed };
    let count = scores.batch * (scores.m / run) * run.div_ceil(rows);
    let work = scores.batch as u64 * (scores.m * scores.n) as u64 * (scores.k + values.n) as u64;
    let tasks = (work / (1 << 20)).clamp(1, count as u64) as usize;
    Some(Plan {
        scores: tiling(scores, score_columns, Right::Packed),
        values: tiling(values, value_columns, right),
        run,
        rows,
        stride,
        blocks: count.div_ceil(tasks),
    })
}

/// Rows of a block: as many as the cache holds the scores of, and fewer where a mask lets keys be left
/// out, of which small blocks leave out more.
fn block_rows(
    attention: &Attention,
    run: usize,
    tile_rows: usize,
    row_bytes: usize,
) -> Option<usize> {
    if tile_rows * row_bytes > MOST_BLOCK {
        return None;
    }
    let mut most = (BLOCK / row_bytes).min(MOST_ROWS).max(tile_rows);
    if attention.mask.is_some() {
        most = most.min((run / 8).max(MASKED_TILES * tile_rows));
    }
    let most = most / tile_rows * tile_rows;
    let blocks = run.div_ceil(most);
    Some(run.div_ceil(blocks).next_multiple_of(tile_rows))
}

/// Whether values can be read where they lie: columns innermost, and keys near each other.
fn values_lie_well(values: &Product, module: &Module) -> bool {
    let Access::Plain {
        batch,
        free,
        summed,
    } = &values.rhs.access
    else {
        return false;
    };
    let Some(array) = module.shape(values.rhs.operand).as_array() else {
        return false;
    };
    let is_grouped = batch.is_empty() && values.batch > 1;
    values.rhs.in_memory
        && !is_grouped
        && array.ty == values.accumulator
        && free.as_slice() == [array.rank() - 1]
        && summed.len() == 1
        && array.dims[summed[0] + 1..].iter().product::<usize>() * array.ty.byte_width()
            <= IN_PLACE_STRIDE
}

/// Bytes that the kernels work in: packed keys and, after them, packed values.
pub fn scratch(attention: &Attention, module: &Module, target: &Target) -> u64 {
    plan(attention, module, target).map_or(0, |plan| {
        contraction::packed_bytes(&attention.scores, &plan.scores)
            + contraction::packed_bytes(&attention.values, &plan.values)
    })
}
