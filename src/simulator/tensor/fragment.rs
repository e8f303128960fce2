//! Fragments: which lane and register holds which element of a matrix.
//!
//! In every shape but the oldest, lane `4 g + t` holds elements of row `g` (of A, C and D) or of
//! column `g` (of B).  The four words of a quad, side by side, are consecutive elements along k.

use crate::simulator::tensor::Lanes;
use crate::simulator::tensor::element::{halves, quad};
use crate::simulator::tensor::mma::BitOp;

/// Spreads the registers of A: even ones are rows 0 to 7, odd ones rows 8 to 15, of 16 rows.
#[inline(always)]
pub(super) fn place_a<T: Copy, const N: usize, const K: usize>(
    regs: &[Lanes],
    rows: usize,
    out: &mut [[T; K]; 16],
    widen: impl Fn(&[u32; 4]) -> [T; N],
) {
    let halves = if rows == 16 { 2 } else { 1 };
    for (block, regs) in regs.chunks_exact(halves).enumerate().take(K / N) {
        for (reg, out) in regs.iter().zip(out.as_chunks_mut::<8>().0) {
            for (quad, row) in reg.as_chunks::<4>().0.iter().zip(out) {
                row[block * N..][..N].copy_from_slice(&widen(quad));
            }
        }
    }
}

/// Spreads the registers of B, each eight columns of consecutive rows.
#[inline(always)]
pub(super) fn place_b<T: Copy, const N: usize>(
    regs: &[Lanes],
    out: &mut [[T; 8]],
    widen: impl Fn(&[u32; 4]) -> [T; N],
) {
    for (reg, out) in regs.iter().zip(out.as_chunks_mut::<N>().0) {
        let quads = reg.as_chunks::<4>().0;
        let columns: [[T; N]; 8] = std::array::from_fn(|n| widen(&quads[n]));
        for (i, row) in out.iter_mut().enumerate() {
            *row = std::array::from_fn(|n| columns[n][i]);
        }
    }
}

/// C as singles.
#[inline(always)]
pub(super) fn read_accumulator(regs: &[Lanes], rows: usize, is_half: bool) -> [[f32; 8]; 16] {
    let mut out = [[0f32; 8]; 16];
    let blocks = out.as_chunks_mut::<8>().0.iter_mut().take(rows / 8);
    if is_half {
        for (reg, block) in regs.iter().zip(blocks) {
            for (quad, row) in reg.as_chunks::<4>().0.iter().zip(block) {
                *row = quad::f16(quad);
            }
        }
        return out;
    }
    for ([even, odd], block) in regs.as_chunks::<2>().0.iter().zip(blocks) {
        for (g, row) in block.iter_mut().enumerate() {
            for t in 0..4 {
                row[2 * t] = f32::from_bits(even[4 * g + t]);
                row[2 * t + 1] = f32::from_bits(odd[4 * g + t]);
            }
        }
    }
    out
}

/// The bits of a result; what a device gives for one that is no number.
#[inline(always)]
pub(super) fn single_bits(value: f32) -> u32 {
    if value.is_nan() {
        0x7fff_ffff
    } else {
        value.to_bits()
    }
}

/// C plus a sum, wrapping or clamped.
#[inline(always)]
pub(super) fn add_integer(c: u32, sum: i32, saturate: bool) -> u32 {
    let c = c as i32;
    (if saturate {
        c.saturating_add(sum)
    } else {
        c.wrapping_add(sum)
    }) as u32
}

/// Writes D from singles.
#[inline(always)]
pub(super) fn write_accumulator(
    regs: &mut [Lanes],
    sum: &[[f32; 8]; 16],
    rows: usize,
    is_half: bool,
) {
    let blocks = sum.as_chunks::<8>().0.iter().take(rows / 8);
    if is_half {
        for (reg, block) in regs.iter_mut().zip(blocks) {
            for (quad, row) in reg.as_chunks_mut::<4>().0.iter_mut().zip(block) {
                *quad = std::array::from_fn(|t| halves(row[2 * t], row[2 * t + 1]));
            }
        }
        return;
    }
    for ([even, odd], block) in regs.as_chunks_mut::<2>().0.iter_mut().zip(blocks) {
        for (g, row) in block.iter().enumerate() {
            for t in 0..4 {
                even[4 * g + t] = single_bits(row[2 * t]);
                odd[4 * g + t] = single_bits(row[2 * t + 1]);
            }
        }
    }
}

/// Adds `a * b` to the first `rows` rows, one row of `b` after the other.
#[inline(always)]
pub(super) fn float_product<const K: usize>(
    sum: &mut [[f32; 8]; 16],
    a: &[[f32; K]; 16],
    b: &[[f32; 8]; K],
) {
    for (sum, a) in sum.iter_mut().zip(a) {
        let mut row = *sum;
        for (a, b) in a.iter().zip(b) {
            for n in 0..8 {
                row[n] += a * b[n];
            }
        }
        *sum = row;
    }
}

/// The integer product, which no sum of the instruction set's depths overflows.
#[inline(always)]
pub(super) fn integer_product<const K: usize>(
    a: &[[i32; K]; 16],
    b: &[[i32; 8]; K],
) -> [[i32; 8]; 16] {
    std::array::from_fn(|m| {
        let mut row = [0i32; 8];
        for (a, b) in a[m].iter().zip(b) {
            for n in 0..8 {
                row[n] = row[n].wrapping_add(a.wrapping_mul(b[n]));
            }
        }
        row
    })
}

/// D = C + sums, wrapping or clamped.
#[inline(always)]
pub(super) fn add_integers(
    d: &mut [Lanes],
    c: &[Lanes],
    sum: &[[i32; 8]; 16],
    rows: usize,
    saturate: bool,
) {
    for (r, (d, c)) in d.iter_mut().zip(c).enumerate().take(rows / 4) {
        let sum = &sum.as_chunks::<8>().0[r >> 1 & 1];
        for (lane, (d, c)) in d.iter_mut().zip(c).enumerate() {
            let sum = sum[lane >> 2][2 * (lane & 3) + (r & 1)];
            *d = add_integer(*c, sum, saturate);
        }
    }
}

/// The double in registers `2 r` and `2 r + 1`.
#[inline]
pub(super) fn double(regs: &[Lanes], r: usize, lane: usize) -> f64 {
    match (regs.get(2 * r), regs.get(2 * r + 1)) {
        (Some(low), Some(high)) => {
            f64::from_bits(u64::from(low[lane]) | (u64::from(high[lane]) << 32))
        }
        _ => 0.0,
    }
}

/// Writes a double to registers `2 r` and `2 r + 1`.
#[inline]
pub(super) fn set_double(regs: &mut [Lanes], r: usize, lane: usize, value: f64) {
    if let [low, high] = &mut regs[2 * r..2 * r + 2] {
        low[lane] = value.to_bits() as u32;
        high[lane] = (value.to_bits() >> 32) as u32;
    }
}

/// The product of doubles, each step a fused multiply-add.
#[inline(always)]
pub(super) fn double_product<const K: usize>(
    d: &mut [Lanes],
    a: &[Lanes],
    b: &[Lanes],
    c: &[Lanes],
    rows: usize,
) {
    let wide_b: [[f64; 8]; K] =
        std::array::from_fn(|k| std::array::from_fn(|n| double(b, k >> 2, 4 * n + (k & 3))));
    for m in 0..rows {
        let place = |n: usize| (2 * (m >> 3) + (n & 1), 4 * (m & 7) + (n >> 1));
        let mut row: [f64; 8] = std::array::from_fn(|n| {
            let (r, lane) = place(n);
            double(c, r, lane)
        });
        for (k, b) in wide_b.iter().enumerate() {
            let r = if rows == 16 {
                (k >> 2) * 2 + (m >> 3)
            } else {
                k >> 2
            };
            let a = double(a, r, 4 * (m & 7) + (k & 3));
            for n in 0..8 {
                row[n] = a.mul_add(b[n], row[n]);
            }
        }
        for (n, value) in row.iter().enumerate() {
            let (r, lane) = place(n);
            set_double(d, r, lane, *value);
        }
    }
}

/// The product of bits: counts of those that differ or that both have.
pub(super) fn bit_product(
    d: &mut [Lanes],
    a: &[Lanes],
    b: &[Lanes],
    c: &[Lanes],
    rows: usize,
    op: BitOp,
) {
    let mut sum = [[0i32; 8]; 16];
    for (row, sum) in sum.iter_mut().enumerate().take(rows) {
        for (column, sum) in sum.iter_mut().enumerate() {
            for (block, b) in b.iter().enumerate() {
                let r = if rows == 16 {
                    2 * block + (row >> 3)
                } else {
                    block
                };
                for t in 0..4 {
                    let (x, y) = (a[r][4 * (row & 7) + t], b[4 * column + t]);
                    *sum += op.count(x, y);
                }
            }
        }
    }
    add_integers(d, c, &sum, rows, false);
}
