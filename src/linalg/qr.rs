//! QR factors as LAPACK packs them: R in the upper triangle, the vectors of the reflections below.

use crate::linalg::householder::apply_left;
use crate::linalg::householder::apply_right;
use crate::linalg::householder::reflect;
use crate::linalg::householder::vector;
use crate::linalg::matrix::Matrix;
use crate::linalg::scalar::EPSILON;
use crate::linalg::scalar::Scalar;
use crate::linalg::scalar::norm;

/// Makes the column's reflection and applies its adjoint to the columns after it.
fn step<T: Scalar>(a: &mut Matrix<T>, i: usize) -> T {
    let (first, rest) = match a.col_mut(i)[i..].split_first_mut() {
        Some((first, rest)) => (first, rest),
        None => return T::zero(),
    };
    let (beta, tau) = reflect(*first, rest);
    *first = beta;
    let v = vector(rest);
    let cols = i + 1..a.cols();
    apply_left(&v, tau.conj(), a, i, cols);
    tau
}

/// `A = Q R`; gives the taus.
pub fn geqrf<T: Scalar>(a: &mut Matrix<T>) -> Vec<T> {
    (0..a.rows().min(a.cols())).map(|i| step(a, i)).collect()
}

/// `A P = Q R` with the largest remaining column first. Columns whose entry in `pivots` is not zero
/// go to the front and stay there; afterwards `pivots` says where each column came from, from 1.
pub fn geqp3<T: Scalar>(a: &mut Matrix<T>, pivots: &mut [i32]) -> Vec<T> {
    let (rows, cols) = (a.rows(), a.cols());
    let mut fixed = 0;
    for j in 0..cols {
        if pivots[j] != 0 {
            if j != fixed {
                a.swap_cols(j, fixed, rows);
                pivots[j] = pivots[fixed];
            }
            pivots[fixed] = (j + 1) as i32;
            fixed += 1;
        } else {
            pivots[j] = (j + 1) as i32;
        }
    }
    let count = rows.min(cols);
    let fixed = fixed.min(count);
    let mut taus: Vec<T> = (0..fixed).map(|i| step(a, i)).collect();
    // Lengths of what remains of each column, and what they were when last computed anew.
    let mut lengths: Vec<f64> = (0..cols).map(|j| norm(&a.col(j)[fixed..])).collect();
    let mut anew = lengths.clone();
    for i in fixed..count {
        let mut pivot = i;
        for j in i + 1..cols {
            if lengths[j] > lengths[pivot] {
                pivot = j;
            }
        }
        if pivot != i {
            a.swap_cols(pivot, i, rows);
            pivots.swap(pivot, i);
            lengths[pivot] = lengths[i];
            anew[pivot] = anew[i];
        }
        taus.push(step(a, i));
        for j in i + 1..cols {
            if lengths[j] == 0.0 {
                continue;
            }
            let gone = a[(i, j)].abs() / lengths[j];
            let left = (1.0 - gone * gone).max(0.0);
            let ratio = lengths[j] / anew[j];
            if left * ratio * ratio <= EPSILON.sqrt() {
                lengths[j] = norm(&a.col(j)[i + 1..]);
                anew[j] = lengths[j];
            } else {
                lengths[j] *= left.sqrt();
            }
        }
    }
    taus
}

/// The first columns of Q, as many as `a` has, from the packed reflections.
pub fn orgqr<T: Scalar>(a: &mut Matrix<T>, taus: &[T]) {
    let (rows, cols) = (a.rows(), a.cols());
    for col in taus.len()..cols {
        a.col_mut(col).fill(T::zero());
        a[(col, col)] = T::one();
    }
    for (i, &tau) in taus.iter().enumerate().rev() {
        let v = vector(&a.col(i)[i + 1..]);
        apply_left(&v, tau, a, i, i + 1..cols);
        let col = a.col_mut(i);
        col[..i].fill(T::zero());
        for (x, &v) in col[i..rows].iter_mut().zip(&v) {
            *x = -(tau * v);
        }
        col[i] = T::one() - tau;
    }
}

/// The product of Q, or of its adjoint, with `c`; Q is on the left or on the right.
pub fn ormqr<T: Scalar>(a: &Matrix<T>, taus: &[T], c: &mut Matrix<T>, left: bool, adjoint: bool) {
    let apply = |i: usize, c: &mut Matrix<T>| {
        let v = vector(&a.col(i)[i + 1..]);
        let tau = if adjoint { taus[i].conj() } else { taus[i] };
        let (rows, cols) = (c.rows(), c.cols());
        if left {
            apply_left(&v, tau, c, i, 0..cols);
        } else {
            apply_right(&v, tau, c, 0..rows, i);
        }
    };
    if left == adjoint {
        (0..taus.len()).for_each(|i| apply(i, c));
    } else {
        (0..taus.len()).rev().for_each(|i| apply(i, c));
    }
}
