//! Triangular factors and triangular systems.

use crate::linalg::matrix::Matrix;
use crate::linalg::matrix::add_columns;
use crate::linalg::matrix::add_scaled;
use crate::linalg::matrix::dot;
use crate::linalg::matrix::scale;
use crate::linalg::scalar::Scalar;

/// Columns that are factored before the rest of the matrix hears of them.
const PANEL: usize = 32;

/// `P A = L U`, L with ones on its diagonal. `pivots` says, from 1, which row each row was exchanged
/// with. Gives 0, or the number of the first pivot that is zero.
pub fn getrf<T: Scalar>(a: &mut Matrix<T>, pivots: &mut [i32]) -> i32 {
    let (rows, cols) = (a.rows(), a.cols());
    let count = rows.min(cols);
    let mut info = 0;
    let mut begin = 0;
    while begin < count {
        let end = (begin + PANEL).min(count);
        for j in begin..end {
            let pivot = largest_place(&a.col(j)[j..]) + j;
            pivots[j] = (pivot + 1) as i32;
            if a[(pivot, j)] == T::zero() {
                if info == 0 {
                    info = (j + 1) as i32;
                }
                continue;
            }
            a.swap_rows(pivot, j, 0..cols);
            let inverse = T::one().over(a[(j, j)]);
            scale(&mut a.col_mut(j)[j + 1..], inverse);
            for k in j + 1..end {
                let (left, right) = a.pair_mut(j, k);
                let factor = -right[j];
                add_scaled(&mut right[j + 1..], factor, &left[j + 1..]);
            }
        }
        let (left, right) = a.split_at_col(end);
        let panel = &left[begin * rows..];
        for col in right.chunks_exact_mut(rows.max(1)) {
            let (upper, lower) = col.split_at_mut(end);
            let factors = &mut upper[begin..];
            for j in 0..factors.len() {
                let below = &panel[j * rows + begin + j + 1..j * rows + end];
                let (known, open) = factors.split_at_mut(j + 1);
                add_scaled(open, -known[j], below);
            }
            let factors: Vec<T> = factors.iter().map(|&x| -x).collect();
            if end < rows {
                add_columns(lower, &panel[end..], rows, &factors);
            }
        }
        begin = end;
    }
    info
}

/// The place of the largest element, the first of equal ones.
fn largest_place<T: Scalar>(x: &[T]) -> usize {
    let mut place = 0;
    for i in 1..x.len() {
        if x[i].size() > x[place].size() {
            place = i;
        }
    }
    place
}

/// `A = L L^H` in the lower triangle, or `A = U^H U` in the upper one; the other triangle stays.
/// Gives 0, or the order of the first leading block that is not positive definite.
pub fn potrf<T: Scalar>(a: &mut Matrix<T>, lower: bool) -> i32 {
    if !lower {
        let mut flipped = a.adjoint();
        let info = potrf(&mut flipped, true);
        for j in 0..a.cols() {
            for i in 0..=j {
                a[(i, j)] = flipped[(j, i)].conj();
            }
        }
        return info;
    }
    let n = a.rows();
    let mut begin = 0;
    while begin < n {
        let end = (begin + PANEL).min(n);
        for j in begin..end {
            let pivot = a[(j, j)].re();
            // NaN is not positive either.
            if pivot.partial_cmp(&0.0) != Some(std::cmp::Ordering::Greater) {
                a[(j, j)] = T::real(pivot);
                return (j + 1) as i32;
            }
            let root = pivot.sqrt();
            a[(j, j)] = T::real(root);
            scale(&mut a.col_mut(j)[j + 1..], T::real(1.0 / root));
            for k in j + 1..end {
                let (left, right) = a.pair_mut(j, k);
                add_scaled(&mut right[k..], -left[k].conj(), &left[k..]);
                right[k] = T::real(right[k].re());
            }
        }
        let (left, right) = a.split_at_col(end);
        let panel = &left[begin * n..];
        for (k, col) in right.chunks_exact_mut(n).enumerate() {
            let k = end + k;
            let factors = (0..end - begin).map(|j| -panel[j * n + k].conj());
            let factors: Vec<T> = factors.collect();
            add_columns(&mut col[k..], &panel[k..], n, &factors);
            col[k] = T::real(col[k].re());
        }
        begin = end;
    }
    0
}

/// A triangle of a matrix, and how it is read.
#[derive(Clone, Copy, Debug)]
pub struct Triangle {
    /// Whether it is the lower one.
    pub lower: bool,
    /// Whether it is transposed, and then whether it is conjugated.
    pub transposed: Option<bool>,
    /// Whether ones stand for its diagonal.
    pub unit: bool,
}

/// Solves `op(A) X = B`, or `X op(A) = B`, in place of `b`.
pub fn trsm<T: Scalar>(a: &Matrix<T>, b: &mut Matrix<T>, triangle: Triangle, left: bool) {
    if left {
        for j in 0..b.cols() {
            solve_column(a, b.col_mut(j), triangle);
        }
        return;
    }
    let n = a.rows();
    let forward = triangle.lower == triangle.transposed.is_some();
    for step in 0..n {
        let j = if forward { step } else { n - 1 - step };
        let known = if forward { 0..j } else { j + 1..n };
        for k in known {
            let factor = match triangle.transposed {
                None => a[(k, j)],
                Some(conjugated) => conjugate(a[(j, k)], conjugated),
            };
            let (x, y) = b.pair_mut(j.min(k), j.max(k));
            let (target, source) = if j < k { (x, y) } else { (y, x) };
            add_scaled(target, -factor, source);
        }
        if !triangle.unit {
            let pivot = conjugate(a[(j, j)], triangle.transposed == Some(true));
            for x in b.col_mut(j) {
                *x = x.over(pivot);
            }
        }
    }
}

fn conjugate<T: Scalar>(x: T, conjugated: bool) -> T {
    if conjugated { x.conj() } else { x }
}

fn solve_column<T: Scalar>(a: &Matrix<T>, x: &mut [T], triangle: Triangle) {
    let n = x.len();
    let conjugated = triangle.transposed == Some(true);
    let forward = triangle.lower != triangle.transposed.is_some();
    for step in 0..n {
        let i = if forward { step } else { n - 1 - step };
        let col = a.col(i);
        if triangle.transposed.is_some() {
            let known = if forward { 0..i } else { i + 1..n };
            let sum = if conjugated {
                dot(&col[known.clone()], &x[known])
            } else {
                let pairs = col[known.clone()].iter().zip(&x[known]);
                pairs.fold(T::zero(), |sum, (&a, &x)| sum + a * x)
            };
            x[i] -= sum;
        }
        if !triangle.unit {
            x[i] = x[i].over(conjugate(col[i], conjugated));
        }
        if triangle.transposed.is_none() {
            let value = -x[i];
            let open = if forward { i + 1..n } else { 0..i };
            add_scaled(&mut x[open.clone()], value, &col[open]);
        }
    }
}
