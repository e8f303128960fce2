//! `mma.m8n8k4` of halves: four products at once, each by two quads of the warp.
//!
//! Quad `q` and quad `q + 4` make product `q`; the second holds the upper four rows or columns.

use crate::simulator::tensor::Lanes;
use crate::simulator::tensor::element::{half, halves};
use crate::simulator::tensor::fragment::single_bits;

/// The half at position `i` of a lane's registers.
fn half_at(regs: &[Lanes], lane: usize, i: usize) -> f32 {
    regs.get(i / 2)
        .map_or(0.0, |reg| half(reg[lane] >> (16 * (i & 1)) & 0xffff))
}

/// The row and column of the `i`-th element of a lane's C or D.
fn accumulator_place(lane: usize, i: usize, is_half: bool) -> (usize, usize) {
    let upper = (lane >> 4) * 4;
    if is_half {
        ((lane & 3) + upper, i)
    } else {
        ((lane & 1) + (i & 2) + upper, (i & 4) + (lane & 2) + (i & 1))
    }
}

/// D = A * B + C for each of the four products.
pub(super) fn execute(
    d: &mut [Lanes],
    a: &[Lanes],
    b: &[Lanes],
    c: &[Lanes],
    (row_a, row_b): (bool, bool),
    half_c: bool,
    half_d: bool,
) {
    for product in 0..4 {
        let lanes = (0..4).flat_map(|t| [4 * product + t, 16 + 4 * product + t]);
        let (mut wide_a, mut wide_b) = ([[0f32; 4]; 8], [[0f32; 8]; 4]);
        let mut sum = [[0f32; 8]; 8];
        for lane in lanes.clone() {
            let (own, upper) = (lane & 3, (lane >> 4) * 4);
            for i in 0..4 {
                let (row, k) = if row_a {
                    (own + upper, i)
                } else {
                    (i + upper, own)
                };
                wide_a[row][k] = half_at(a, lane, i);
                let (k, column) = if row_b {
                    (own, i + upper)
                } else {
                    (i, own + upper)
                };
                wide_b[k][column] = half_at(b, lane, i);
            }
            for i in 0..8 {
                let (row, column) = accumulator_place(lane, i, half_c);
                sum[row][column] = if half_c {
                    half_at(c, lane, i)
                } else {
                    c.get(i).map_or(0.0, |reg| f32::from_bits(reg[lane]))
                };
            }
        }
        for (sum, a) in sum.iter_mut().zip(&wide_a) {
            for (a, b) in a.iter().zip(&wide_b) {
                for (sum, b) in sum.iter_mut().zip(b) {
                    *sum += a * b;
                }
            }
        }
        for lane in lanes {
            let at = |i: usize| {
                let (row, column) = accumulator_place(lane, i, half_d);
                sum[row][column]
            };
            for (i, d) in d.iter_mut().enumerate() {
                d[lane] = match half_d {
                    true => halves(at((2 * i) & 7), at((2 * i + 1) & 7)),
                    false => single_bits(at(i & 7)),
                };
            }
        }
    }
}
