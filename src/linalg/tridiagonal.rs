//! Tridiagonal systems.

use crate::linalg::matrix::Matrix;
use crate::linalg::scalar::Precision;
use crate::linalg::scalar::Scalar;

/// Solves a tridiagonal system by elimination with exchanges of neighbouring rows. `lower[0]` and
/// the last of `upper` mean nothing. Afterwards `diagonal` and `upper` hold U, and `lower` from 1 on
/// its second superdiagonal. Gives 0, or the number of the first pivot that is zero.
pub fn gtsv<T: Scalar>(
    lower: &mut [T],
    diagonal: &mut [T],
    upper: &mut [T],
    b: &mut Matrix<T>,
) -> i32 {
    let n = diagonal.len();
    for i in 0..n.saturating_sub(1) {
        let below = lower[i + 1];
        if diagonal[i].size() >= below.size() {
            if diagonal[i] == T::zero() {
                return (i + 1) as i32;
            }
            let factor = below.over(diagonal[i]);
            diagonal[i + 1] -= factor * upper[i];
            for j in 0..b.cols() {
                let known = b[(i, j)];
                b[(i + 1, j)] -= factor * known;
            }
            lower[i + 1] = T::zero();
        } else {
            let factor = diagonal[i].over(below);
            diagonal[i] = below;
            let next = diagonal[i + 1];
            diagonal[i + 1] = upper[i] - factor * next;
            if i + 2 < n {
                lower[i + 1] = upper[i + 1];
                upper[i + 1] = -(factor * upper[i + 1]);
            }
            upper[i] = next;
            for j in 0..b.cols() {
                let (x, y) = (b[(i, j)], b[(i + 1, j)]);
                b[(i, j)] = y;
                b[(i + 1, j)] = x - factor * y;
            }
        }
    }
    if n > 0 && diagonal[n - 1] == T::zero() {
        return n as i32;
    }
    for j in 0..b.cols() {
        let x = b.col_mut(j);
        for i in (0..n).rev() {
            let mut value = x[i];
            if i + 1 < n {
                value -= upper[i] * x[i + 1];
            }
            if i + 2 < n {
                value -= lower[i + 1] * x[i + 2];
            }
            x[i] = value.over(diagonal[i]);
        }
    }
    0
}

/// Solves a tridiagonal system that may be singular: pivots that are too small for the right side
/// are made larger, by what rounding may have done to them. `lower[0]` and the last of `upper` mean
/// nothing.
pub fn solve_perturbed<T: Scalar>(
    lower: &[T],
    diagonal: &[T],
    upper: &[T],
    b: &mut Matrix<T>,
    precision: Precision,
) {
    let n = diagonal.len();
    if n == 0 {
        return;
    }
    // The diagonal of U and what is one and two places above it.
    let mut u = vec![[T::zero(); 3]; n];
    u[0] = [
        diagonal[0],
        if n > 1 { upper[0] } else { T::zero() },
        T::zero(),
    ];
    let mut largest = u[0][0].abs().max(u[0][1].abs());
    let mut size = u[0][0].abs() + u[0][1].abs();
    for k in 0..n - 1 {
        let (below, next) = (lower[k + 1], diagonal[k + 1]);
        let beyond = if k + 2 < n { upper[k + 1] } else { T::zero() };
        let next_size = below.abs() + next.abs() + beyond.abs();
        u[k + 1] = [next, beyond, T::zero()];
        if below == T::zero() {
            size = next_size;
        } else {
            let here = if u[k][0] == T::zero() {
                0.0
            } else {
                u[k][0].abs() / size
            };
            if below.abs() / next_size <= here {
                size = next_size;
                let factor = below.over(u[k][0]);
                let above = u[k][1];
                u[k + 1][0] -= factor * above;
                for j in 0..b.cols() {
                    let known = b[(k, j)];
                    b[(k + 1, j)] -= factor * known;
                }
            } else {
                let factor = u[k][0].over(below);
                let above = u[k][1];
                u[k] = [below, next, beyond];
                u[k + 1] = [above - factor * next, -(factor * beyond), T::zero()];
                for j in 0..b.cols() {
                    let (x, y) = (b[(k, j)], b[(k + 1, j)]);
                    b[(k, j)] = y;
                    b[(k + 1, j)] = x - factor * y;
                }
                size = u[k + 1][0].abs() + u[k + 1][1].abs();
            }
        }
        if k + 2 < n {
            largest = u[k].iter().map(|x| x.abs()).fold(largest, f64::max);
        }
    }
    largest = largest.max(u[n - 1][0].abs());
    for k in (0..n).rev() {
        let row = |j: usize, b: &Matrix<T>| {
            let mut value = b[(k, j)];
            if k + 1 < n {
                value -= u[k][1] * b[(k + 1, j)];
            }
            if k + 2 < n {
                value -= u[k][2] * b[(k + 2, j)];
            }
            value
        };
        let mut right: Vec<T> = (0..b.cols()).map(|j| row(j, b)).collect();
        let pivot = perturbed(
            u[k][0],
            &mut right,
            precision.ulp * largest,
            precision.smallest,
        );
        for (j, &x) in right.iter().enumerate() {
            b[(k, j)] = x.over(pivot);
        }
    }
}

/// A pivot that the right side can be divided by.
fn perturbed<T: Scalar>(pivot: T, right: &mut [T], by: f64, smallest: f64) -> T {
    let mut pivot = pivot;
    let mut by = by.max(smallest).copysign(pivot.re());
    let largest = right.iter().map(|x| x.abs()).fold(0.0, f64::max);
    loop {
        let size = pivot.abs();
        let is_safe = size >= 1.0 || size.is_nan();
        if is_safe || (size >= smallest && largest <= size / smallest) {
            return pivot;
        }
        if size < smallest && size != 0.0 && largest * smallest <= size {
            right.iter_mut().for_each(|x| *x = x.times(1.0 / smallest));
            return pivot.times(1.0 / smallest);
        }
        pivot += T::real(by);
        by *= 2.0;
    }
}
