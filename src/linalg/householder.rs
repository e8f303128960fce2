//! Reflections: `H = I - tau v v^H` with `v` starting with one.

use std::ops::Range;

use crate::linalg::matrix::Matrix;
use crate::linalg::matrix::add_columns;
use crate::linalg::matrix::add_scaled;
use crate::linalg::matrix::dot;
use crate::linalg::matrix::scale;
use crate::linalg::scalar::EPSILON;
use crate::linalg::scalar::SAFE_MIN;
use crate::linalg::scalar::Scalar;
use crate::linalg::scalar::norm;

/// The reflection whose adjoint takes the vector of `first` and `rest` to a real multiple of the
/// first unit vector. Gives that multiple and tau; `rest` becomes the rest of `v`.
pub(super) fn reflect<T: Scalar>(first: T, rest: &mut [T]) -> (T, T) {
    let mut size = norm(rest);
    if size == 0.0 && first.im() == 0.0 {
        return (first, T::zero());
    }
    let length = |first: T, size: f64| {
        let length = first.re().hypot(first.im()).hypot(size);
        -length.copysign(first.re())
    };
    let mut first = first;
    let mut beta = length(first, size);
    // Numbers near the smallest are made larger first.
    let small = SAFE_MIN / EPSILON;
    let mut rounds = 0;
    while beta.abs() < small && rounds < 20 {
        rounds += 1;
        scale(rest, T::real(1.0 / small));
        first = first.times(1.0 / small);
        size = norm(rest);
        beta = length(first, size);
    }
    let tau = (T::real(beta) - first).times(1.0 / beta);
    let tau = if first.im() == 0.0 {
        T::real((beta - first.re()) / beta)
    } else {
        tau
    };
    let factor = T::one().over(first - T::real(beta));
    scale(rest, factor);
    for _ in 0..rounds {
        beta *= small;
    }
    (T::real(beta), tau)
}

/// The vector of a reflection: one, and what [`reflect`] left.
pub(super) fn vector<T: Scalar>(rest: &[T]) -> Vec<T> {
    let mut v = Vec::with_capacity(rest.len() + 1);
    v.push(T::one());
    v.extend_from_slice(rest);
    v
}

/// `A = (I - tau v v^H) A` for the rows from `row` on, within some columns.
pub(super) fn apply_left<T: Scalar>(
    v: &[T],
    tau: T,
    a: &mut Matrix<T>,
    row: usize,
    cols: Range<usize>,
) {
    if tau == T::zero() {
        return;
    }
    for col in cols {
        let x = &mut a.col_mut(col)[row..row + v.len()];
        let factor = -(tau * dot(v, x));
        add_scaled(x, factor, v);
    }
}

/// `A = A (I - tau v v^H)` for the columns from `col` on, within some rows.
pub(super) fn apply_right<T: Scalar>(
    v: &[T],
    tau: T,
    a: &mut Matrix<T>,
    rows: Range<usize>,
    col: usize,
) {
    if tau == T::zero() || rows.is_empty() {
        return;
    }
    let mut product = vec![T::zero(); rows.len()];
    let stride = a.rows();
    let begin = col * stride + rows.start;
    add_columns(&mut product, &a.data()[begin..], stride, v);
    for (k, v) in v.iter().enumerate() {
        let x = &mut a.col_mut(col + k)[rows.clone()];
        add_scaled(x, -(tau * v.conj()), &product);
    }
}
