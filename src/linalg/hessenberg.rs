//! Balancing, and reduction to Hessenberg form.

use crate::linalg::householder::apply_left;
use crate::linalg::householder::apply_right;
use crate::linalg::householder::reflect;
use crate::linalg::householder::vector;
use crate::linalg::matrix::Matrix;
use crate::linalg::scalar::SAFE_MIN;
use crate::linalg::scalar::Scalar;
use crate::linalg::scalar::ULP;
use crate::linalg::scalar::norm;

/// How a matrix was balanced. Rows and columns outside of `low..=high` are triangular already.
pub(super) struct Balance {
    /// First row of the block that is not.
    pub(super) low: usize,
    /// Its last row.
    pub(super) high: usize,
    /// Factors within the block; outside of it the number of the row that was exchanged.
    scale: Vec<f64>,
}

/// Exchanges rows and columns so that eigenvalues which stand alone come first and last, and, when
/// wanted, scales the rest so that rows and columns are about as long as each other.
pub(super) fn balance<T: Scalar>(a: &mut Matrix<T>, scales: bool) -> Balance {
    let n = a.rows();
    let mut scale = vec![1.0; n];
    let (mut low, mut high) = (0, n.saturating_sub(1));
    if n == 0 {
        return Balance { low, high, scale };
    }
    let is_alone = |a: &Matrix<T>, i: usize, within: std::ops::RangeInclusive<usize>, row: bool| {
        let mut others = within.filter(|&j| j != i);
        others.all(|j| (if row { a[(i, j)] } else { a[(j, i)] }) == T::zero())
    };
    let exchange = |a: &mut Matrix<T>, i: usize, with: usize, low: usize, high: usize| {
        a.swap_cols(i, with, high + 1);
        a.swap_rows(i, with, low..n);
    };
    let mut found = true;
    while found {
        found = false;
        let mut i = high + 1;
        while i > 0 {
            i -= 1;
            if !is_alone(a, i, 0..=high, true) {
                continue;
            }
            scale[high] = i as f64;
            exchange(a, i, high, low, high);
            found = true;
            if high == 0 {
                return Balance {
                    low: 0,
                    high: 0,
                    scale,
                };
            }
            high -= 1;
        }
    }
    found = true;
    while found {
        found = false;
        let mut j = low;
        while j <= high {
            if is_alone(a, j, low..=high, false) {
                scale[low] = j as f64;
                exchange(a, j, low, low, high);
                found = true;
                low += 1;
            }
            j += 1;
        }
    }
    if scales {
        rescale(a, low, high, &mut scale);
    }
    Balance { low, high, scale }
}

fn rescale<T: Scalar>(a: &mut Matrix<T>, low: usize, high: usize, scale: &mut [f64]) {
    let n = a.rows();
    let smallest = SAFE_MIN / ULP;
    let (small, large) = (smallest * 2.0, 1.0 / (smallest * 2.0));
    let mut goes_on = true;
    while goes_on {
        goes_on = false;
        for i in low..=high {
            let row: Vec<T> = (low..n).map(|j| a[(i, j)]).collect();
            let mut c = norm(&a.col(i)[low..=high]);
            let mut r = norm(&row[..=high - low]);
            let largest = |x: &[T]| x.iter().map(|x| x.abs()).fold(0.0, f64::max);
            let mut c_max = largest(&a.col(i)[..=high]);
            let mut r_max = largest(&row);
            if c == 0.0 || r == 0.0 || !(c + c_max + r + r_max).is_finite() {
                continue;
            }
            let mut factor = 1.0;
            let sum = c + r;
            while c < r / 2.0
                && f64::max(factor, c).max(c_max) < large
                && r.min(r / 2.0).min(r_max) > small
            {
                factor *= 2.0;
                c *= 2.0;
                c_max *= 2.0;
                r /= 2.0;
                r_max /= 2.0;
            }
            while c / 2.0 >= r
                && r.max(r_max) < large
                && f64::min(factor, c).min(c / 2.0).min(c_max) > small
            {
                factor /= 2.0;
                c /= 2.0;
                c_max /= 2.0;
                r *= 2.0;
                r_max *= 2.0;
            }
            if c + r >= 0.95 * sum
                || factor < 1.0 && scale[i] < 1.0 && factor * scale[i] <= smallest
                || factor > 1.0 && scale[i] > 1.0 && scale[i] >= 1.0 / smallest / factor
            {
                continue;
            }
            scale[i] *= factor;
            goes_on = true;
            for j in low..n {
                a[(i, j)] = a[(i, j)].times(1.0 / factor);
            }
            for x in &mut a.col_mut(i)[..=high] {
                *x = x.times(factor);
            }
        }
    }
}

impl Balance {
    /// Turns vectors of the balanced matrix into those of the matrix as it was: right ones, or left
    /// ones.
    pub(super) fn undo<T: Scalar>(&self, vectors: &mut Matrix<T>, right: bool) {
        let (n, cols) = (vectors.rows(), vectors.cols());
        if n == 0 {
            return;
        }
        if self.low != self.high {
            for i in self.low..=self.high {
                let factor = if right {
                    self.scale[i]
                } else {
                    1.0 / self.scale[i]
                };
                for j in 0..cols {
                    vectors[(i, j)] = vectors[(i, j)].times(factor);
                }
            }
        }
        for i in (0..self.low).rev().chain(self.high + 1..n) {
            vectors.swap_rows(i, self.scale[i] as usize, 0..cols);
        }
    }
}

/// `A = Q H Q^H` with H zero below what is beside its diagonal, where the vectors of the reflections
/// are kept; only rows and columns `low..=high` are touched. Gives the taus.
pub fn gehrd<T: Scalar>(a: &mut Matrix<T>, low: usize, high: usize) -> Vec<T> {
    let n = a.rows();
    let mut taus = vec![T::zero(); n.saturating_sub(1)];
    for (i, out) in taus.iter_mut().enumerate().take(high).skip(low) {
        let (first, rest) = a.col_mut(i)[i + 1..=high].split_at_mut(1);
        let (beta, tau) = reflect(first[0], rest);
        first[0] = beta;
        let v = vector(rest);
        apply_right(&v, tau, a, 0..high + 1, i + 1);
        apply_left(&v, tau.conj(), a, i + 1, i + 1..n);
        *out = tau;
    }
    taus
}

/// The matrix Q of [`gehrd`].
pub(super) fn orghr<T: Scalar>(a: &Matrix<T>, taus: &[T], low: usize, high: usize) -> Matrix<T> {
    let n = a.rows();
    let mut q = Matrix::identity(n, n);
    for i in (low..high).rev() {
        let v = vector(&a.col(i)[i + 2..=high]);
        apply_left(&v, taus[i], &mut q, i + 1, i + 1..high + 1);
    }
    q
}
