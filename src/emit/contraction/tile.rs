//! The register tile: rows of broadcasts against vectors of columns, summed in registers.

use crate::analysis::contraction::Tiling;
use crate::kernel::BufId;
use crate::kernel::CastOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Scalar;
use crate::kernel::Ty;
use crate::kernel::Unroll;

/// A matrix of rows in memory: element `(row, k)` is at `start + row * row_stride + k * k_stride`.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) buf: BufId,
    pub(super) start: ExprId,
    pub(super) row_stride: i64,
    pub(super) k_stride: i64,
}

/// A panel of columns: vector `v` of `k` is at `start + k * stride + v * lanes`. With pairs, `k` is
/// even and the vector has twice the lanes.
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

/// Steps of the summed coordinate written out in one iteration.
const STEPS: i64 = 4;

/// Adds the products over a block of the summed length `k`, which is `length` long, to the sums, which
/// stand row by row, vector by vector.
pub(super) fn multiply(
    b: &mut KernelBuilder,
    (tiling, k): (&Tiling, usize),
    rows: Rows,
    panel: Panel,
    (row_count, length): (usize, ExprId),
    sums: Vec<ExprId>,
) -> Vec<ExprId> {
    let starts: Vec<ExprId> = (0..row_count)
        .map(|row| b.add_const(rows.start, row as i64 * rows.row_stride))
        .collect();
    let step = |b: &mut KernelBuilder, at: ExprId, sums: &mut Vec<ExprId>| {
        if tiling.pairs {
            step_pair(b, tiling, (rows, &starts), panel, at, sums);
        } else {
            step_one(b, tiling, (rows, &starts), panel, at, sums);
        }
    };
    let length = if tiling.pairs {
        let up = b.add_const(length, 1);
        b.div_const(up, 2)
    } else {
        length
    };
    let zero = b.index(0);
    let one = b.index(1);
    let many = b.index(STEPS);
    let whole = b.div_const(length, STEPS);
    let whole = b.mul_const(whole, STEPS);
    let mut sums = b.for_carried(
        (zero, whole, many),
        &sums,
        Unroll::Never,
        |b, k, carried| {
            let mut sums = carried.to_vec();
            for u in 0..STEPS {
                let k = b.add_const(k, u);
                step(b, k, &mut sums);
            }
            sums
        },
    );
    // Blocks of the summed length are as long as each other, but for the last.
    let steps = STEPS as usize * if tiling.pairs { 2 } else { 1 };
    let is_exact = [k, tiling.k_block]
        .iter()
        .all(|length| length.is_multiple_of(steps));
    if !is_exact {
        sums = b.for_carried(
            (whole, length, one),
            &sums,
            Unroll::Never,
            |b, k, carried| {
                let mut sums = carried.to_vec();
                step(b, k, &mut sums);
                sums
            },
        );
    }
    sums
}

/// Adds the products at one `k`.
fn step_one(
    b: &mut KernelBuilder,
    tiling: &Tiling,
    (rows, starts): (Rows, &[ExprId]),
    panel: Panel,
    k: ExprId,
    sums: &mut [ExprId],
) {
    let vectors = tiling.tile_columns / tiling.lanes;
    let at = b.mul_const(k, panel.stride);
    let at = b.add(panel.start, at);
    let columns: Vec<ExprId> = (0..vectors)
        .map(|v| {
            let at = b.add_const(at, (v * tiling.lanes) as i64);
            b.load(panel.buf, at, tiling.lanes as u16)
        })
        .collect();
    let offset = b.mul_const(k, rows.k_stride);
    for (row, &start) in starts.iter().enumerate() {
        let at = b.add(start, offset);
        let x = b.load(rows.buf, at, 1);
        let x = b.splat(x, tiling.lanes as u16);
        for (v, &column) in columns.iter().enumerate() {
            let sum = &mut sums[row * vectors + v];
            *sum = multiply_add(b, x, column, *sum);
        }
    }
}

/// Adds the products at two neighbouring `k`, the pair of that number. Both sides hold 16-bit
/// integers, in the panel the two of a column side by side.
fn step_pair(
    b: &mut KernelBuilder,
    tiling: &Tiling,
    (rows, starts): (Rows, &[ExprId]),
    panel: Panel,
    pair: ExprId,
    sums: &mut [ExprId],
) {
    let lanes = tiling.lanes as u16;
    let vectors = tiling.tile_columns / tiling.lanes;
    let k = b.mul_const(pair, 2);
    let at = b.mul_const(k, panel.stride);
    let at = b.add(panel.start, at);
    let columns: Vec<ExprId> = (0..vectors)
        .map(|v| {
            let at = b.add_const(at, (v * 2 * tiling.lanes) as i64);
            b.load(panel.buf, at, 2 * lanes)
        })
        .collect();
    for (row, &start) in starts.iter().enumerate() {
        let at = b.add(start, k);
        let x = b.load(rows.buf, at, 2);
        let x = b.bitcast(x, Ty::scalar(Scalar::I32));
        let x = b.splat(x, lanes);
        let x = b.bitcast(x, Ty::vector(Scalar::I16, 2 * lanes));
        for (v, &column) in columns.iter().enumerate() {
            let sum = &mut sums[row * vectors + v];
            let products = sum_of_pairs(b, x, column);
            *sum = b.add(products, *sum);
        }
    }
}

/// The products of 16-bit integers, the two of each pair of lanes added, in 32 bits. LLVM knows the
/// shape and has an instruction for it.
fn sum_of_pairs(b: &mut KernelBuilder, x: ExprId, y: ExprId) -> ExprId {
    let lanes = b.ty(x).lanes;
    let x = b.cast(CastOp::SExt, x, Scalar::I32);
    let y = b.cast(CastOp::SExt, y, Scalar::I32);
    let products = b.mul(x, y);
    let even: Vec<u16> = (0..lanes).step_by(2).collect();
    let odd: Vec<u16> = (1..lanes).step_by(2).collect();
    let even = b.shuffle(products, products, &even);
    let odd = b.shuffle(products, products, &odd);
    b.add(even, odd)
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
