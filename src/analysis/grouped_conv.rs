//! Convolutions with few input features per group, depthwise ones above all, as a CPU computes them
//! directly: a matrix product of each group would have one column, and patches of few elements.
//!
//! One place, so that buffer assignment and the emitter agree. Sums of neighbouring output positions
//! are held in registers while the window is walked, as in J. Zhang, F. Franchetti and T. M. Low,
//! "High performance zero-memory overhead direct convolutions" (2018).

use smallvec::SmallVec;

use crate::analysis::contraction::Access;
use crate::analysis::contraction::Axis;
use crate::analysis::contraction::Product;
use crate::hlo::ConvDims;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::Window;
use crate::hlo::WindowDim;
use crate::shape::Dims;
use crate::target::Target;

/// Which coordinate of the convolution a dimension of the value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coordinate {
    /// The batch.
    Batch,
    /// An output position in that spatial dimension.
    Spatial(usize),
    /// The output feature.
    Feature,
}

/// How the input features of a vector of output features lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Feature by feature: one output feature per input feature.
    Same,
    /// All lanes are of one group.
    One,
    /// Several whole groups in a vector, which take `features` neighbouring input features.
    Groups {
        /// Input features of a vector.
        features: usize,
    },
}

/// What neighbouring lanes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// Output features, innermost in input, kernel and value. A tile is of neighbouring positions in
    /// one dimension.
    Features {
        /// Where their input features are.
        spread: Spread,
        /// The spatial dimension whose positions a tile takes.
        along: usize,
        /// Positions of a tile.
        positions: usize,
    },
    /// Output positions, innermost in input and value. A task copies the input of one group, with its
    /// padding, to memory of its own. A tile is of neighbouring vectors in neighbouring rows.
    Positions {
        /// The spatial dimension of the lanes.
        along: usize,
        /// Vectors of a tile's row.
        vectors: usize,
        /// Rows of a tile.
        rows: usize,
        /// Positions in the first of the other spatial dimensions that are worked on at a time, a
        /// multiple of a tile's rows unless it is all of them.
        block: usize,
    },
}

/// A convolution in groups, and how it is cut into tiles.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupedConv {
    /// The window.
    pub window: Window,
    /// Dimension numbers.
    pub dims: ConvDims,
    /// Dimensions of the input.
    pub input: Dims,
    /// Dimensions of the kernel.
    pub kernel: Dims,
    /// Dimensions of the convolution's result.
    pub output: Dims,
    /// Input features of a group.
    pub inputs: usize,
    /// Output features of a group.
    pub outputs: usize,
    /// What the dimensions of the product's value are.
    pub value: SmallVec<[Coordinate; 6]>,
    /// Lanes of a vector of sums.
    pub lanes: usize,
    /// What they are.
    pub kind: Lanes,
}

impl GroupedConv {
    /// Positions of the output in a spatial dimension.
    pub fn positions(&self, d: usize) -> usize {
        self.output[self.dims.output_spatial[d]]
    }

    /// Size of the input in a spatial dimension.
    pub fn size(&self, d: usize) -> usize {
        self.input[self.dims.input_spatial[d]]
    }

    /// Output features.
    pub fn features(&self) -> usize {
        self.output[self.dims.output_feature]
    }

    /// Multiplications of an output element.
    pub fn terms(&self) -> usize {
        self.inputs * self.window.iter().map(|w| w.size).product::<usize>()
    }
}

/// Most input features of a group.
const MAX_INPUTS: usize = 64;

/// Fewest output features that make vectors.
const MIN_FEATURES: usize = 4;

/// Fewest output positions that make vectors.
const MIN_POSITIONS: usize = 4;

/// Largest stride of positions in vectors.
const MAX_STRIDE: i64 = 4;

/// Most bytes of a copy of the input of one group.
const PADDED_BYTES: usize = 128 * 1024;

/// Most products written out for a tile.
const MAX_WRITTEN_OUT: usize = 512;

/// Most different tiles of a row.
const MAX_TILES: usize = 24;

/// Input features of a group up to which the sum over them is written out, when all lanes are of one
/// group.
pub const WRITTEN_OUT_INPUTS: usize = 4;

/// The product of a convolution as one to be computed directly; `None` for dots, convolutions without
/// groups, and geometries that are left to matrix products.
pub fn of(product: &Product, module: &Module, target: &Target) -> Option<GroupedConv> {
    let hero = module.instr(product.hero);
    let Op::Convolution {
        window,
        dims,
        feature_group_count,
        batch_group_count: 1,
        ..
    } = &hero.op
    else {
        return None;
    };
    let shape = |id| module.shape(id).as_array();
    let (input, kernel) = (shape(hero.operands[0])?, shape(hero.operands[1])?);
    let output = shape(product.hero)?;
    let inputs = kernel.dims[dims.kernel_input_feature];
    let is_full = !input.dims.contains(&0) && !kernel.dims.contains(&0);
    if target.cpu().is_none() || *feature_group_count < 2 || inputs > MAX_INPUTS || !is_full {
        return None;
    }
    let position_axis = match product.lhs.access {
        Access::Patches { .. } => Axis::Row,
        Access::Plain { .. } => Axis::Column,
    };
    let coordinate = |&(axis, part): &(Axis, usize)| match part {
        _ if axis != position_axis => Coordinate::Feature,
        0 => Coordinate::Batch,
        part => Coordinate::Spatial(part - 1),
    };
    let conv = GroupedConv {
        window: window.clone(),
        dims: dims.clone(),
        input: input.dims.clone(),
        kernel: kernel.dims.clone(),
        output: output.dims.clone(),
        inputs,
        outputs: output.dims[dims.output_feature] / feature_group_count,
        value: product.output.iter().map(coordinate).collect(),
        lanes: 1,
        kind: Lanes::Features {
            spread: Spread::Same,
            along: 0,
            positions: 1,
        },
    };
    along_features(&conv, product, target).or_else(|| along_positions(&conv, product, target))
}

/// Lanes along the features, where they are innermost everywhere.
fn along_features(conv: &GroupedConv, product: &Product, target: &Target) -> Option<GroupedConv> {
    let dims = &conv.dims;
    let are_innermost = conv.value.last() == Some(&Coordinate::Feature)
        && dims.input_feature + 1 == conv.input.len()
        && dims.kernel_output_feature + 1 == conv.kernel.len();
    if !are_innermost || conv.features() < MIN_FEATURES {
        return None;
    }
    let width = product.accumulator.byte_width();
    let (lanes, spread) = lanes_and_spread(conv, width, target)?;
    let along = walked_dimension(conv)?;
    let written_out = match spread {
        Spread::Same | Spread::Groups { .. } => conv.inputs,
        Spread::One if conv.inputs <= WRITTEN_OUT_INPUTS => conv.inputs,
        Spread::One => 1,
    };
    let w = &conv.window[along];
    let most = most_positions(w, target)?.min(MAX_WRITTEN_OUT / (w.size * written_out));
    let positions = tile_positions(conv, along, most)?;
    let tiled = GroupedConv {
        lanes,
        kind: Lanes::Features {
            spread,
            along,
            positions,
        },
        ..conv.clone()
    };
    (tiles(&tiled, along, positions).len() <= MAX_TILES).then_some(tiled)
}

/// Lanes along the output positions, where those of one dimension are innermost.
fn along_positions(conv: &GroupedConv, product: &Product, target: &Target) -> Option<GroupedConv> {
    let Some(&Coordinate::Spatial(along)) = conv.value.last() else {
        return None;
    };
    let w = &conv.window[along];
    let length = conv.positions(along);
    let is_innermost = conv.dims.input_spatial[along] + 1 == conv.input.len();
    if !is_innermost || length < MIN_POSITIONS || w.stride > MAX_STRIDE {
        return None;
    }
    let width = product.accumulator.byte_width();
    let lanes = filled_lanes(length, width, target)?.min(length.next_power_of_two());
    let most = match target.cpu()?.vector_registers {
        32 => 12,
        _ => 8,
    };
    let others: SmallVec<[usize; 4]> = (0..conv.window.len()).filter(|&d| d != along).collect();
    let (in_row, row_vectors) = (
        length.div_ceil(lanes),
        if others.is_empty() { 8 } else { 4 },
    );
    let vectors = in_row.div_ceil(in_row.div_ceil(row_vectors));
    let lines = others.last().map_or(1, |&d| conv.positions(d));
    let tiles = lines.div_ceil(most / vectors);
    let rows = lines.div_ceil(tiles);
    if vectors * rows * w.size > MAX_WRITTEN_OUT {
        return None;
    }
    let tiled = |block: usize| GroupedConv {
        lanes,
        kind: Lanes::Positions {
            along,
            vectors,
            rows,
            block,
        },
        ..conv.clone()
    };
    let fits = |conv: &GroupedConv| {
        let padded = Padded::of(conv, along);
        padded.is_some_and(|padded| padded.elements() * width <= PADDED_BYTES)
    };
    let all = others.first().map_or(1, |&d| conv.positions(d));
    let step = if others.len() == 1 { rows } else { 1 };
    let mut block = all;
    while !fits(&tiled(block)) {
        if block <= step {
            return None;
        }
        block = block.div_ceil(2).next_multiple_of(step);
    }
    Some(tiled(block))
}

/// The input of one group with its padding, as far as a block of output positions needs it: for each
/// input feature the lines along the lanes, each cut into the positions of every remainder by the
/// stride.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Padded {
    /// Input features.
    pub inputs: usize,
    /// For each spatial dimension but that of the lanes: which it is, and its size.
    pub others: SmallVec<[(usize, usize); 4]>,
    /// Parts of a line.
    pub parts: usize,
    /// Elements of a part, a multiple of the lanes.
    pub part: usize,
}

impl Padded {
    /// That of a convolution with its lanes along positions.
    pub fn of(conv: &GroupedConv, lanes_along: usize) -> Option<Self> {
        let Lanes::Positions { block, .. } = conv.kind else {
            return None;
        };
        let span = |d: usize, positions: usize| {
            let w = &conv.window[d];
            (positions - 1) * w.stride as usize + (w.size - 1) * w.window_dilation as usize + 1
        };
        let mut others: SmallVec<[(usize, usize); 4]> = SmallVec::new();
        for d in (0..conv.window.len()).filter(|&d| d != lanes_along) {
            let positions = match others.is_empty() {
                true => block.min(conv.positions(d)),
                false => conv.positions(d),
            };
            others.push((d, span(d, positions)));
        }
        let w = &conv.window[lanes_along];
        let vectors = conv.positions(lanes_along).div_ceil(conv.lanes);
        let reach = (w.size - 1) * w.window_dilation as usize / w.stride as usize;
        Some(Self {
            inputs: conv.inputs,
            others,
            parts: w.stride as usize,
            part: (vectors * conv.lanes + reach).next_multiple_of(conv.lanes),
        })
    }

    /// Elements of a line.
    pub fn line(&self) -> usize {
        self.parts * self.part
    }

    /// Distance between neighbours in the other dimension of that number.
    pub fn stride(&self, number: usize) -> usize {
        let below = &self.others[number + 1..];
        below.iter().map(|&(_, size)| size).product::<usize>() * self.line()
    }

    /// Elements of one input feature.
    pub fn feature(&self) -> usize {
        self.others.iter().map(|&(_, size)| size).product::<usize>() * self.line()
    }

    /// All elements.
    pub fn elements(&self) -> usize {
        self.inputs * self.feature()
    }
}

/// The widest vector that so many neighbours fill, or the target's usual one.
fn filled_lanes(count: usize, width: usize, target: &Target) -> Option<usize> {
    let usual = (target.vector_bytes() as usize / width).max(1);
    let widest = target.cpu()?.register_bytes() as usize / width;
    let filled = |lanes: usize| count.next_multiple_of(lanes);
    let is_filled = 3 * filled(widest) <= 4 * filled(usual);
    Some(if is_filled { widest } else { usual })
}

/// The widest vector that features fill, and where its input features are.
fn lanes_and_spread(conv: &GroupedConv, width: usize, target: &Target) -> Option<(usize, Spread)> {
    let usual = (target.vector_bytes() as usize / width).max(1);
    let widest = target.cpu()?.register_bytes() as usize / width;
    let features = conv.features();
    if (conv.inputs, conv.outputs) == (1, 1) {
        let lanes = filled_lanes(features, width, target)?;
        let most = 1 << features.ilog2();
        return Some((lanes.min(most), Spread::Same));
    }
    let mut lanes = widest.max(usual);
    while lanes >= usual.min(MIN_FEATURES) && lanes > 1 {
        if features.is_multiple_of(lanes) {
            let groups = lanes / conv.outputs;
            let inputs = groups * conv.inputs;
            if conv.outputs.is_multiple_of(lanes) {
                return Some((lanes, Spread::One));
            }
            let is_whole = lanes.is_multiple_of(conv.outputs);
            if is_whole && inputs.is_power_of_two() && inputs <= 2 * lanes {
                return Some((lanes, Spread::Groups { features: inputs }));
            }
        }
        lanes /= 2;
    }
    None
}

/// The spatial dimension whose positions make tiles: the last, unless it has few.
fn walked_dimension(conv: &GroupedConv) -> Option<usize> {
    const ENOUGH: usize = 4;
    let last = conv.window.len().checked_sub(1)?;
    if conv.positions(last) >= ENOUGH {
        return Some(last);
    }
    (0..=last)
        .rev()
        .max_by_key(|&d| conv.positions(d).min(ENOUGH))
}

/// After how many positions the elements of the window that fall on holes of a dilated base are the
/// same again.
fn period(w: &WindowDim) -> usize {
    let (mut x, mut y) = (w.base_dilation, w.stride);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (w.base_dilation / x) as usize
}

/// As many positions as registers hold sums for beside the elements of the window.
fn most_positions(w: &WindowDim, target: &Target) -> Option<usize> {
    let registers = target.cpu()?.vector_registers as usize;
    let (fewest, most) = match registers {
        32 => (8, 12),
        _ => (5, 8),
    };
    let kept = w.size.min(7) + 3;
    Some(registers.saturating_sub(kept).clamp(fewest, most))
}

/// Positions of a tile, up to about so many: the output is cut evenly.
fn tile_positions(conv: &GroupedConv, along: usize, most: usize) -> Option<usize> {
    const ENOUGH: usize = 3;
    let total = conv.positions(along);
    if most < ENOUGH.min(total) {
        return None;
    }
    let even = total.div_ceil(total.div_ceil(most));
    let positions = even.next_multiple_of(period(&conv.window[along]));
    (positions <= 2 * most).then_some(positions)
}

/// A stretch of neighbouring tiles in which the same elements of the window are inside the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiles {
    /// First position.
    pub start: usize,
    /// Positions of a tile.
    pub positions: usize,
    /// How many tiles.
    pub count: usize,
    /// For each position of the first tile, the elements of the window (by their place in it, not
    /// reversed) that are inside the input, each with its input position. In the next tile these are
    /// `step` further.
    pub elements: Vec<Vec<(usize, i64)>>,
    /// Distance in the input between neighbouring tiles.
    pub step: i64,
}

/// The positions of a spatial dimension in tiles; the first and the last ones, where elements of the
/// window are outside, stand alone.
pub fn tiles(conv: &GroupedConv, along: usize, positions: usize) -> Vec<Tiles> {
    let w = &conv.window[along];
    let total = conv.positions(along);
    let size = conv.size(along) as i64;
    let changes = changes(w, size, total);
    let mut out: Vec<Tiles> = Vec::new();
    let mut start = 0;
    while start < total {
        let next = changes.iter().copied().find(|&at| at > start);
        let steady = next.unwrap_or(total).min(total) - start;
        let (length, count) = match steady / positions {
            0 => (positions.min(total - start), 1),
            count => (positions, count),
        };
        let inside = |position: usize| inside(w, size, position as i64);
        out.push(Tiles {
            start,
            positions: length,
            count,
            elements: (start..start + length).map(inside).collect(),
            step: positions as i64 * w.stride / w.base_dilation,
        });
        start += length * count;
        if out.len() > MAX_TILES {
            break;
        }
    }
    out
}

/// Elements of the window at a position that are inside the input, with their input positions.
fn inside(w: &WindowDim, size: i64, position: i64) -> Vec<(usize, i64)> {
    let mut out = Vec::new();
    for element in 0..w.size {
        let from = position * w.stride + element as i64 * w.window_dilation - w.padding_low;
        if from.rem_euclid(w.base_dilation) == 0 {
            let at = from / w.base_dilation;
            if (0..size).contains(&at) {
                out.push((element, at));
            }
        }
    }
    out
}

/// The positions at which an element of the window enters or leaves the input, in order.
fn changes(w: &WindowDim, size: i64, total: usize) -> Vec<usize> {
    let mut out = Vec::new();
    for element in 0..w.size as i64 {
        let offset = w.padding_low - element * w.window_dilation;
        // The first position from which the element is at `at` or further.
        let first = |at: i64| {
            let from = at + offset;
            from.div_euclid(w.stride) + i64::from(from.rem_euclid(w.stride) != 0)
        };
        let end = (size - 1) * w.base_dilation + 1;
        out.extend([first(0), first(end)]);
    }
    out.retain(|&at| at > 0 && at < total as i64);
    out.sort_unstable();
    out.dedup();
    out.into_iter().map(|at| at as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A depthwise convolution in one dimension.
    fn conv(size: usize, positions: usize, w: WindowDim) -> GroupedConv {
        let one = |d: usize| Dims::from_slice(&[d]);
        GroupedConv {
            dims: ConvDims {
                input_batch: 0,
                input_feature: 2,
                input_spatial: one(1),
                kernel_input_feature: 1,
                kernel_output_feature: 2,
                kernel_spatial: one(0),
                output_batch: 0,
                output_feature: 2,
                output_spatial: one(1),
            },
            input: Dims::from_slice(&[1, size, 8]),
            kernel: Dims::from_slice(&[w.size, 1, 8]),
            output: Dims::from_slice(&[1, positions, 8]),
            window: Window::from_iter([w]),
            inputs: 1,
            outputs: 1,
            value: SmallVec::new(),
            lanes: 8,
            kind: Lanes::Features {
                spread: Spread::Same,
                along: 0,
                positions: 4,
            },
        }
    }

    fn cuts(tiles: &[Tiles]) -> Vec<(usize, usize, usize)> {
        let cut = |t: &Tiles| (t.start, t.positions, t.count);
        tiles.iter().map(cut).collect()
    }

    #[test]
    fn edges_have_tiles_of_their_own() {
        let window = WindowDim {
            size: 3,
            padding_low: 1,
            padding_high: 1,
            ..WindowDim::default()
        };
        let tiles = tiles(&conv(30, 30, window), 0, 4);
        assert_eq!(cuts(&tiles), [(0, 4, 1), (4, 4, 6), (28, 2, 1)]);
        assert_eq!(tiles[0].elements[0], [(1, 0), (2, 1)]);
        assert_eq!(tiles[1].elements[3], [(0, 6), (1, 7), (2, 8)]);
        assert_eq!(tiles[2].elements[1], [(0, 28), (1, 29)]);
        assert_eq!(tiles[1].step, 4);
    }

    #[test]
    fn padding_beyond_the_input_takes_few_tiles() {
        let window = WindowDim {
            size: 2,
            padding_low: 1000,
            padding_high: 1000,
            ..WindowDim::default()
        };
        let tiles = tiles(&conv(10, 2009, window), 0, 4);
        assert!(tiles.len() < 8, "{}", tiles.len());
        let all: usize = tiles.iter().map(|t| t.positions * t.count).sum();
        assert_eq!(all, 2009);
        assert!(tiles[0].elements.iter().all(Vec::is_empty));
    }

    #[test]
    fn tiles_over_holes_repeat() {
        let window = WindowDim {
            size: 3,
            base_dilation: 2,
            ..WindowDim::default()
        };
        // Between elements lie holes: even positions see the elements 0 and 2 of the window.
        let tiles = tiles(&conv(20, 37, window), 0, 4);
        assert_eq!(cuts(&tiles), [(0, 4, 9), (36, 1, 1)]);
        assert_eq!(tiles[0].elements[2], [(0, 1), (2, 2)]);
        assert_eq!(tiles[0].elements[3], [(1, 2)]);
        assert_eq!(tiles[0].step, 2);
    }
}
