//! Discrete Fourier transforms from the definition's recursion: Cooley-Tukey by the smallest prime
//! factor, in complex f64.

use crate::eval::bits;
use crate::eval::complex;
use crate::hlo::FftType;
use crate::literal::ArrayLiteral;
use crate::literal::number::Number;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::index;

type C = (f64, f64);

/// `exp(sign * 2 pi i * k / n)`.
fn root(k: usize, n: usize, sign: f64) -> C {
    let angle = sign * std::f64::consts::TAU * (k % n) as f64 / n as f64;
    (libm::cos(angle), libm::sin(angle))
}

fn transform(x: &[C], sign: f64) -> Vec<C> {
    let n = x.len();
    let Some(factor) = (2..=n).find(|&f| n.is_multiple_of(f)) else {
        return x.to_vec();
    };
    let size = n / factor;
    let parts: Vec<Vec<C>> = (0..factor)
        .map(|r| {
            transform(
                &x.iter()
                    .skip(r)
                    .step_by(factor)
                    .copied()
                    .collect::<Vec<_>>(),
                sign,
            )
        })
        .collect();
    (0..n)
        .map(|k| {
            parts.iter().enumerate().fold((0.0, 0.0), |sum, (r, part)| {
                let (re, im) = complex::multiply(part[k % size], root(r * k, n, sign));
                (sum.0 + re, sum.1 + im)
            })
        })
        .collect()
}

/// Transforms along one dimension of an array of these dimensions.
fn along(values: &mut [C], dims: &[usize], dim: usize, sign: f64) {
    let (size, stride) = (dims[dim], index::row_major_strides(dims)[dim]);
    for start in (0..values.len()).filter(|i| i / stride % size == 0) {
        let row: Vec<C> = (0..size).map(|i| values[start + i * stride]).collect();
        for (i, value) in transform(&row, sign).into_iter().enumerate() {
            values[start + i * stride] = value;
        }
    }
}

pub(super) fn fft(
    shape: &ArrayShape,
    x: &ArrayLiteral,
    kind: FftType,
    lengths: &[usize],
) -> ArrayLiteral {
    let rank = shape.rank();
    let axes: Vec<usize> = (rank - lengths.len()..rank).collect();
    let last = rank - 1;
    let mut full: Dims = x.shape().dims.clone();
    for (&axis, &length) in axes.iter().zip(lengths) {
        full[axis] = length;
    }
    let sign = match kind {
        FftType::Fft | FftType::Rfft => -1.0,
        FftType::Ifft | FftType::Irfft => 1.0,
    };
    let mut values = bits::pairs(x);
    let mut dims = x.shape().dims.clone();
    if kind == FftType::Irfft {
        // The other axes first; then the last from its half spectrum.
        for &axis in axes.iter().filter(|&&axis| axis != last) {
            along(&mut values, &dims, axis, sign);
        }
        values = mirror(&values, &dims, full[last]);
        dims[last] = full[last];
        along(&mut values, &dims, last, sign);
    } else {
        for &axis in &axes {
            along(&mut values, &dims, axis, sign);
        }
    }
    let scale = match kind {
        FftType::Fft | FftType::Rfft => 1.0,
        FftType::Ifft | FftType::Irfft => lengths.iter().product::<usize>() as f64,
    };
    bits::build(shape, |i| {
        let at = index::multi_index(&shape.dims, i);
        let (re, im) = values[index::linear_index(&dims, &at)];
        if shape.ty.is_complex() {
            Number::Complex(re / scale, im / scale)
        } else {
            Number::Float(re / scale)
        }
    })
}

/// The full spectrum along the last dimension of a real signal of that length, from its first half.
fn mirror(half: &[C], dims: &[usize], length: usize) -> Vec<C> {
    let stored = dims[dims.len() - 1];
    half.chunks_exact(stored.max(1))
        .flat_map(|row| {
            (0..length).map(move |k| {
                let (re, im) = if k < length / 2 + 1 {
                    row[k]
                } else {
                    row[length - k]
                };
                // The imaginary parts of the first and the middle coefficient have no effect.
                let real = k == 0 || 2 * k == length;
                let im = if real { 0.0 } else { im };
                if k < length / 2 + 1 {
                    (re, im)
                } else {
                    (re, -im)
                }
            })
        })
        .collect()
}
