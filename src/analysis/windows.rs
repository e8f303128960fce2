//! How a CPU walks the windows of a convolution without a copy of each patch.
//!
//! Patches of neighbouring positions are mostly the same elements. So a task takes output positions
//! line by line, copies the lines of the input that their windows see once, padding and all, and
//! reads the rows of the product out of that: a patch is a few runs of neighbours, and the patch of
//! the next position lies a fixed distance behind it. Where no window leaves the input, the lines are
//! read where they lie. E. Georganas et al., "Anatomy of High-Performance Deep Learning Convolutions
//! on SIMD Architectures" (2018), block convolutions by lines of the output in this way.

use crate::analysis::contraction::Access;
use crate::analysis::contraction::Product;
use crate::hlo::Module;
use crate::hlo::WindowDim;

/// Most bytes of the lines that a task copies, where its block can be made that small: they stay in
/// the second-level cache.
const LINES_BYTES: usize = 256 * 1024;

/// Most bytes of the lines that a task copies at all.
const MOST_BYTES: usize = 1024 * 1024;

/// Sums that a tile has to carry to keep two multipliers busy for the four cycles that each addition
/// takes.
const SUMS_IN_FLIGHT: usize = 8;

/// A block of output positions: lines of the last spatial dimension, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// Positions of a line that a block takes: all of them when it takes more lines than one, else a
    /// multiple of the tile's rows, of which the last block of a line may have fewer.
    pub width: usize,
    /// Lines of a block, neighbours along the spatial dimension before the last.
    pub count: usize,
    /// Summed coordinates that are neighbours in memory.
    pub run: usize,
    /// Whether they are read out of the operand.
    pub in_place: bool,
}

impl Lines {
    /// Blocks of all rows of a product.
    pub fn blocks(&self, product: &Product) -> usize {
        let line = match &product.lhs.access {
            Access::Patches { output, .. } => output.last().map_or(1, |&line| line),
            Access::Plain { .. } => product.m,
        };
        product.m / (line * self.count) * line.div_ceil(self.width)
    }
}

/// What register tiles ask for.
#[derive(Clone, Copy, Debug)]
pub struct Tiles {
    /// Least and most rows of a tile.
    pub rows: (usize, usize),
    /// Vectors of columns.
    pub vectors: usize,
    /// Longest summed length worked on at a time.
    pub k_most: usize,
    /// What a summed length that is not the whole has to be a multiple of.
    pub k_step: usize,
    /// Neighbours of the summed coordinate that are multiplied at a time.
    pub group: usize,
    /// Bytes of an element as it is multiplied.
    pub width: usize,
}

/// How the windows of a product's left side are walked.
#[derive(Clone, Copy, Debug)]
pub struct Walk<'a> {
    window: &'a [WindowDim],
    /// Sizes of the output's spatial dimensions.
    output: &'a [usize],
    /// Features of a group.
    features: usize,
    run: usize,
    in_place: bool,
    width: usize,
    /// Rows of a tile.
    pub tile_rows: usize,
    /// Summed length worked on at a time: one or several runs, or an equal part of one.
    pub k_block: usize,
}

/// How to walk the windows of a product; `None` when it has none, or when copies of the patches are
/// what serves it better.
pub fn walk<'a>(product: &'a Product, module: &Module, tiles: Tiles) -> Option<Walk<'a>> {
    let Access::Patches {
        window,
        dims,
        output,
    } = &product.lhs.access
    else {
        return None;
    };
    let input = module.shape(product.lhs.operand).as_array()?;
    let (w, outer) = window.split_last()?;
    let rank = input.rank();
    let lies_well = dims.input_feature + 1 == rank && window.iter().all(|w| w.base_dilation == 1);
    if !lies_well {
        return None;
    }
    let along = *dims.input_spatial.last()?;
    let features = input.dims[dims.input_feature] / product.batch;
    let stays = (window.iter().zip(output).zip(&dims.input_spatial))
        .all(|((w, &output), &d)| !w.may_leave(output, input.dims[d]));
    let is_plain = product.lhs.in_memory
        && input.ty == product.accumulator
        && product.operand_type.is_none()
        && tiles.group == 1;
    let in_place = stays && is_plain;
    // Window elements next to each other are neighbours in copied lines, and in the operand when
    // that holds one group and its last spatial dimension is the one before the features.
    let are_neighbours = !in_place || along + 2 == rank && product.batch == 1;
    let is_dense = w.window_dilation == 1 && !w.reversal && are_neighbours;
    let run = if is_dense {
        w.size * features
    } else {
        features
    };
    let walk = Walk {
        window,
        output,
        features,
        run,
        in_place,
        width: tiles.width,
        tile_rows: rows_of_tiles(*output.last()?, tiles)?,
        k_block: summed_length(product.k, run, tiles)?,
    };
    let whole = match outer.split_last() {
        Some((h, _)) => h.seen(output[outer.len() - 1]),
        None => 1,
    };
    let copied = walk.slabs() * whole * w.seen(output[outer.len()]) * features;
    let patches = output.iter().rev().take(2).product::<usize>() * product.k;
    let is_smaller = copied <= patches && walk.bytes(1, walk.tile_rows) <= MOST_BYTES;
    (in_place || is_smaller).then_some(walk)
}

/// The rows of a tile for lines of that length: those that waste the least, and of those the most.
/// None when all waste more than a third.
fn rows_of_tiles(line: usize, tiles: Tiles) -> Option<usize> {
    let Tiles { rows, vectors, .. } = tiles;
    let tile = |rows: usize| match rows {
        0 => 0,
        _ => (rows * vectors).max(SUMS_IN_FLIGHT),
    };
    let time = |rows: usize| line / rows * tile(rows) + tile(line % rows);
    let fewest = rows.0.min(line).max(1);
    let best = (fewest..=rows.1.min(line)).rev().min_by_key(|&r| time(r))?;
    (3 * time(best) <= 4 * line * vectors).then_some(best)
}

/// The summed length to work on at a time; `None` when runs cannot be cut that way.
fn summed_length(k: usize, run: usize, tiles: Tiles) -> Option<usize> {
    if !run.is_multiple_of(tiles.group) {
        return None;
    }
    let length = if run <= tiles.k_most {
        let blocks = k.div_ceil(tiles.k_most / run * run);
        (k / run).div_ceil(blocks) * run
    } else {
        let fewest = run.div_ceil(tiles.k_most);
        let pieces = (fewest..=2 * fewest).find(|pieces| run.is_multiple_of(*pieces))?;
        run / pieces
    };
    let is_whole = length >= k;
    (is_whole || length.is_multiple_of(tiles.k_step)).then_some(length)
}

impl Walk<'_> {
    /// Elements of the window in the dimensions before the last two: each has its own copy of lines.
    fn slabs(&self) -> usize {
        let outer = self.window.len().saturating_sub(2);
        self.window[..outer].iter().map(|w| w.size).product()
    }
    /// Bytes of the lines that a block sees.
    fn bytes(&self, count: usize, width: usize) -> usize {
        let (w, outer) = match self.window.split_last() {
            Some((w, outer)) => (w.seen(width), outer),
            None => return 0,
        };
        let lines = outer.last().map_or(1, |h| h.seen(count));
        self.slabs() * lines * w * self.features * self.width
    }
    /// The block that comes next to that many rows of the product.
    pub fn lines(&self, rows: usize) -> Lines {
        let (line, high) = match *self.output {
            [.., high, line] => (line, high),
            [line] => (line, 1),
            [] => (1, 1),
        };
        let fits =
            |count: usize, width: usize| self.in_place || self.bytes(count, width) <= LINES_BYTES;
        let block = |count: usize, width: usize| Lines {
            width,
            count,
            run: self.run,
            in_place: self.in_place,
        };
        let most = (rows / line).clamp(1, high);
        let whole = |count: &usize| high.is_multiple_of(*count) && fits(*count, line);
        let is_long = 2 * line > 3 * rows;
        match (1..=most).rev().find(whole) {
            Some(count) if !is_long => block(count, line),
            _ => {
                let mut pieces = line.div_ceil(rows);
                let width = |pieces: usize| line.div_ceil(pieces).next_multiple_of(self.tile_rows);
                while !fits(1, width(pieces)) && width(pieces) > self.tile_rows {
                    pieces *= 2;
                }
                block(1, width(pieces).min(line))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiles(vectors: usize) -> Tiles {
        Tiles {
            rows: (8, 12),
            vectors,
            k_most: 192,
            k_step: 32,
            group: 1,
            width: 4,
        }
    }

    /// What is left of a line costs nothing where it is 4 rows or more; lines of one or two positions
    /// leave multipliers idle.
    #[test]
    fn tiles_waste_little_of_a_line() {
        let rows = |line: usize| rows_of_tiles(line, tiles(2));
        assert_eq!(rows(56), Some(12));
        assert_eq!(rows(14), Some(10));
        assert_eq!(rows(13), Some(9));
        assert_eq!(rows(7), Some(7));
        assert_eq!(rows(2), None);
    }

    /// Whole runs while they fit, equal parts of one otherwise, and no part that is no multiple of
    /// what is read at once.
    #[test]
    fn the_summed_length_is_cut_along_runs() {
        let length = |k: usize, run: usize| summed_length(k, run, tiles(2));
        assert_eq!(length(147, 21), Some(147));
        assert_eq!(length(576, 192), Some(192));
        assert_eq!(length(576, 64), Some(192));
        assert_eq!(length(4608, 1536), Some(192));
        assert_eq!(length(603, 201), None);
        assert_eq!(length(450, 150), None);
    }
}
