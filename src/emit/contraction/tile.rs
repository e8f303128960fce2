//! The register tile: rows of broadcasts against vectors of columns, summed in registers.

use smallvec::SmallVec;

use crate::analysis::contraction::Group;
use crate::analysis::contraction::Tiling;
use crate::emit::index::Splits;
use crate::kernel::BinaryOp;
use crate::kernel::BufId;
use crate::kernel::DotKind;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Scalar;
use crate::kernel::Ty;
use crate::kernel::Unroll;
use crate::shape::Dims;

/// A matrix of rows in memory: element `(row, k)` is at `start + row * row_stride + k * k_stride`, or,
/// with runs, each run of `k` at `start + row * row_stride` and its own offset.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) buf: BufId,
    pub(super) start: ExprId,
    pub(super) row_stride: i64,
    pub(super) k_stride: i64,
    pub(super) runs: Option<FirstRun<'a>>,
}

/// The run that a block of the summed coordinate begins with.
#[derive(Clone, Copy)]
pub(super) struct FirstRun<'a> {
    pub(super) runs: &'a Runs,
    pub(super) splits: &'a Splits,
    pub(super) number: ExprId,
}

/// Where parts of a row lie whose elements are neighbours, by their number.
pub(super) struct Runs {
    /// Elements of each.
    pub(super) length: i64,
    /// Where the first one is.
    first: i64,
    /// Sizes of the dimensions of their number, most significant first, and how far each step along
    /// them leads.
    sizes: Dims,
    steps: SmallVec<[i64; 3]>,
}

impl Runs {
    pub(super) fn new(length: i64) -> Self {
        Self {
            length,
            first: 0,
            sizes: Dims::new(),
            steps: SmallVec::new(),
        }
    }

    /// One more dimension, within the ones before it.
    pub(super) fn add(&mut self, size: usize, step: i64, reversed: bool) {
        self.sizes.push(size);
        self.steps.push(if reversed { -step } else { step });
        if reversed {
            self.first += (size as i64 - 1) * step;
        }
    }

    /// Where a run is, by its number.
    pub(super) fn offset(&self, b: &mut KernelBuilder, splits: &Splits, number: ExprId) -> ExprId {
        let mut offset = b.index(self.first);
        for (at, &step) in splits
            .unravel(b, &self.sizes, number)
            .iter()
            .zip(&self.steps)
        {
            let part = b.mul_const(*at, step);
            offset = b.add(offset, part);
        }
        offset
    }
}

/// A panel of columns: vector `v` of `k` is at `start + k * stride + v * lanes`. With groups, `k` is a
/// multiple of their size and the vector has as many times the lanes.
#[derive(Clone, Copy)]
pub(super) struct Panel {
    pub(super) buf: BufId,
    pub(super) start: ExprId,
    pub(super) stride: i64,
}

/// `a * b + c`, fused for floats.
pub(super) fn multiply_add(b: &mut KernelBuilder, x: ExprId, y: ExprId, sum: ExprId) -> ExprId {
    if b.ty(sum).scalar.is_float() {
        b.fma(x, y, sum)
    } else {
        let product = b.mul(x, y);
        b.add(product, sum)
    }
}

/// A vector of zeros.
pub(super) fn zeros(b: &mut KernelBuilder, scalar: Scalar, lanes: usize) -> ExprId {
    b.const_bits(Ty::vector(scalar, lanes as u16), 0)
}

/// What makes a signed byte unsigned, added or as a bit.
const OFFSET: u64 = 128;

/// The signed bytes of a vector made unsigned.
pub(super) fn offset(b: &mut KernelBuilder, bytes: ExprId) -> ExprId {
    let offset = b.const_bits(b.ty(bytes), OFFSET);
    b.binary(BinaryOp::Xor, bytes, offset)
}

/// Steps of the summed coordinate written out in one iteration.
const STEPS: i64 = 2;

/// Adds the products over a block of the summed length to the sums, which stand row by row, vector by
/// vector.
pub(super) fn multiply(
    b: &mut KernelBuilder,
    shape: &Summed<'_>,
    rows: Rows<'_>,
    panel: Panel,
    row_count: usize,
    sums: Vec<ExprId>,
) -> Vec<ExprId> {
    if let Some(first) = rows.runs {
        return run_by_run(b, shape, (rows, first), panel, row_count, &sums);
    }
    let starts: Vec<ExprId> = (0..row_count)
        .map(|row| b.add_const(rows.start, row as i64 * rows.row_stride))
        .collect();
    sum_over(b, shape, &sums, |b, k, sums| {
        let columns = columns(b, shape.tiling, panel, k);
        let offset = b.mul_const(k, rows.k_stride);
        for (row, &start) in starts.iter().enumerate() {
            let at = b.add(start, offset);
            let x = b.load(rows.buf, at, shape.tiling.group.size() as u16);
            let x = repeat(b, shape.tiling, x);
            for (v, &column) in columns.iter().enumerate() {
                let sum = &mut sums[row * columns.len() + v];
                *sum = add_products(b, shape.tiling.group, x, column, *sum);
            }
        }
    })
}

/// As [`multiply`], over a block of whole runs.
fn run_by_run(
    b: &mut KernelBuilder,
    shape: &Summed<'_>,
    (rows, first): (Rows<'_>, FirstRun<'_>),
    panel: Panel,
    row_count: usize,
    sums: &[ExprId],
) -> Vec<ExprId> {
    let length = first.runs.length;
    let count = b.div_const(shape.length, length);
    let range = (b.index(0), count, b.index(1));
    b.for_carried(range, sums, Unroll::Never, |b, at, sums| {
        let number = b.add(first.number, at);
        let offset = first.runs.offset(b, first.splits, number);
        let rows = Rows {
            start: b.add(rows.start, offset),
            runs: None,
            ..rows
        };
        let offset = b.mul_const(at, length * panel.stride);
        let panel = Panel {
            start: b.add(panel.start, offset),
            ..panel
        };
        let shape = Summed {
            tiling: shape.tiling,
            lengths: [length as usize; 2],
            length: b.index(length),
        };
        multiply(b, &shape, rows, panel, row_count, sums.to_vec())
    })
}

/// What [`Group::OffsetQuads`] adds to each sum of a column, vector by vector: 128 times the column.
pub(super) fn offsets(b: &mut KernelBuilder, shape: &Summed<'_>, panel: Panel) -> Vec<ExprId> {
    let tiling = shape.tiling;
    let offset = b.const_bits(Ty::vector(Scalar::I8, 4), OFFSET);
    let offset = repeat(b, tiling, offset);
    let zero = zeros(b, Scalar::I32, tiling.lanes);
    let sums = vec![zero; tiling.tile_columns / tiling.lanes];
    sum_over(b, shape, &sums, |b, k, sums| {
        let columns = columns(b, tiling, panel, k);
        for (sum, column) in sums.iter_mut().zip(columns) {
            *sum = add_products(b, tiling.group, offset, column, *sum);
        }
    })
}

/// A block of the summed coordinate.
pub(super) struct Summed<'a> {
    pub(super) tiling: &'a Tiling,
    /// The lengths that blocks have, or, of several lengths, what the shorter ones are the rest of.
    pub(super) lengths: [usize; 2],
    /// The length of this one.
    pub(super) length: ExprId,
}

impl Summed<'_> {
    /// Whether the length of every block is a multiple of that.
    pub(super) fn comes_in(&self, parts: usize) -> bool {
        self.lengths
            .iter()
            .all(|length| length.is_multiple_of(parts))
    }
}

/// Carries sums through the groups of a block; each step is given its first coordinate.
fn sum_over(
    b: &mut KernelBuilder,
    shape: &Summed<'_>,
    sums: &[ExprId],
    mut step: impl FnMut(&mut KernelBuilder, ExprId, &mut Vec<ExprId>),
) -> Vec<ExprId> {
    let size = shape.tiling.group.size() as i64;
    let iteration = STEPS * size;
    let whole = b.div_const(shape.length, iteration);
    let whole = b.mul_const(whole, iteration);
    let bounds = (b.index(0), whole, b.index(iteration));
    let sums = b.for_carried(bounds, sums, Unroll::Never, |b, k, carried| {
        let mut sums = carried.to_vec();
        for at in 0..STEPS {
            let k = b.add_const(k, at * size);
            step(b, k, &mut sums);
        }
        sums
    });
    if shape
        .lengths
        .iter()
        .all(|&length| length as i64 % iteration == 0)
    {
        return sums;
    }
    let bounds = (whole, shape.length, b.index(size));
    b.for_carried(bounds, &sums, Unroll::Never, |b, k, carried| {
        let mut sums = carried.to_vec();
        step(b, k, &mut sums);
        sums
    })
}

/// The vectors of a panel for the group that begins with `k`.
fn columns(b: &mut KernelBuilder, tiling: &Tiling, panel: Panel, k: ExprId) -> Vec<ExprId> {
    let lanes = tiling.lanes * tiling.group.size();
    let at = b.mul_const(k, panel.stride);
    let at = b.add(panel.start, at);
    (0..tiling.tile_columns / tiling.lanes)
        .map(|v| {
            let at = b.add_const(at, (v * lanes) as i64);
            b.load(panel.buf, at, lanes as u16)
        })
        .collect()
}

/// A group of a row beside each column of a vector.
fn repeat(b: &mut KernelBuilder, tiling: &Tiling, group: ExprId) -> ExprId {
    let lanes = tiling.lanes as u16;
    let ty = b.ty(group);
    if ty.lanes == 1 {
        return b.splat(group, lanes);
    }
    let word = b.bitcast(group, Ty::scalar(Scalar::I32));
    let words = b.splat(word, lanes);
    b.bitcast(words, Ty::vector(ty.scalar, lanes * ty.lanes))
}

/// Adds the products of a group, lane by lane, to the sums.
fn add_products(
    b: &mut KernelBuilder,
    group: Group,
    x: ExprId,
    column: ExprId,
    sum: ExprId,
) -> ExprId {
    match group {
        Group::Single => multiply_add(b, x, column, sum),
        Group::Pairs => b.dot(DotKind::Words, x, column, sum),
        Group::Quads => b.dot(DotKind::Bytes, x, column, sum),
        Group::OffsetQuads => b.dot(DotKind::MixedBytes, x, column, sum),
    }
}

/// Two vectors lane by lane: the first lane of one, the first of the other, and so on.
pub(super) fn interleave(b: &mut KernelBuilder, x: ExprId, y: ExprId) -> ExprId {
    let lanes = b.ty(x).lanes;
    let picked: Vec<u16> = (0..lanes).flat_map(|l| [l, lanes + l]).collect();
    b.shuffle(x, y, &picked)
}

/// Rows become columns in a square block of vectors. Lanes are a power of two.
pub(super) fn transpose(b: &mut KernelBuilder, mut rows: Vec<ExprId>) -> Vec<ExprId> {
    let n = rows.len();
    let mut distance = 1;
    while distance < n {
        let mut next = rows.clone();
        for i in (0..n).filter(|i| i & distance == 0) {
            let (low, high) = (rows[i], rows[i + distance]);
            // Lane l of the first row keeps its place where the bit of l is clear and takes from the
            // second row otherwise; the second row the other way round.
            let first: Vec<u16> = (0..n)
                .map(|l| if l & distance == 0 { l } else { n + l - distance } as u16)
                .collect();
            let second: Vec<u16> = (0..n)
                .map(|l| if l & distance == 0 { l + distance } else { n + l } as u16)
                .collect();
            next[i] = b.shuffle(low, high, &first);
            next[i + distance] = b.shuffle(low, high, &second);
        }
        rows = next;
        distance *= 2;
    }
    rows
}
