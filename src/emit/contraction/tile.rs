//! The register tile: rows of broadcasts against vectors of columns, summed in registers.

use crate::analysis::contraction::Tiling;
use crate::kernel::BufId;
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

/// A packed panel of columns: vector `v` of `k` is at `start + k * columns + v * lanes`.
#[derive(Clone, Copy)]
pub(super) struct Panel {
    pub(super) buf: BufId,
    pub(super) start: ExprId,
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

/// Adds the products over `k` of `0..length` to the sums, which stand row by row, vector by vector.
pub(super) fn multiply(
    b: &mut KernelBuilder,
    tiling: &Tiling,
    rows: Rows,
    panel: Panel,
    (row_count, length): (usize, ExprId),
    sums: Vec<ExprId>,
) -> Vec<ExprId> {
    let vectors = tiling.tile_columns / tiling.lanes;
    let starts: Vec<ExprId> = (0..row_count)
        .map(|row| b.add_const(rows.start, row as i64 * rows.row_stride))
        .collect();
    let step = |b: &mut KernelBuilder, k: ExprId, sums: &mut Vec<ExprId>| {
        let at = b.mul_const(k, tiling.tile_columns as i64);
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
    let is_exact = b
        .as_const_index(length)
        .is_some_and(|length| length % STEPS == 0);
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
