//! Eigenvalues and eigenvectors of general matrices.

use std::ops::Range;

use crate::linalg::hessenberg::balance;
use crate::linalg::hessenberg::gehrd;
use crate::linalg::hessenberg::orghr;
use crate::linalg::matrix::Matrix;
use crate::linalg::matrix::scale;
use crate::linalg::rotation::rotation;
use crate::linalg::scalar::Complex;
use crate::linalg::scalar::Precision;
use crate::linalg::scalar::SAFE_MIN;
use crate::linalg::scalar::Scalar;
use crate::linalg::scalar::ULP;
use crate::linalg::scalar::norm;
use crate::linalg::schur;
use crate::linalg::schur::SchurScalar;

/// Eigenvalues and what was asked for of the vectors, each of length one with a real largest
/// element.
pub struct Eigen {
    /// Eigenvalues, complex pairs together with the positive imaginary part first.
    pub values: Vec<Complex>,
    /// Left eigenvectors.
    pub left: Option<Matrix<Complex>>,
    /// Right eigenvectors.
    pub right: Option<Matrix<Complex>>,
    /// 0, how many eigenvalues were not found, or -4 when the matrix is not finite.
    pub info: i32,
}

/// The decomposition; `a` is used up.
pub fn geev<T: SchurScalar>(
    a: &mut Matrix<T>,
    wants_left: bool,
    wants_right: bool,
    precision: Precision,
) -> Eigen {
    let n = a.rows();
    let mut eigen = Eigen {
        values: vec![Complex::new(f64::NAN, f64::NAN); n],
        left: None,
        right: None,
        info: -4,
    };
    if !a.is_finite() {
        return eigen;
    }
    let factor = a.bring_into_range();
    let balance = balance(a, true);
    let block = (balance.low, balance.high);
    let taus = gehrd(a, balance.low, balance.high);
    let wants_vectors = wants_left || wants_right;
    let mut z = wants_vectors.then(|| orghr(a, &taus, balance.low, balance.high));
    eigen.info = schur::finish(
        a,
        z.as_mut(),
        wants_vectors,
        block,
        &mut eigen.values,
        precision,
    );
    if eigen.info == 0
        && let Some(z) = &z
    {
        let vectors = |right: bool| {
            let mut vectors = triangular_vectors(a, z, &eigen.values, right);
            balance.undo(&mut vectors, right);
            for (j, value) in eigen.values.iter().enumerate() {
                let is_real = !T::IS_COMPLEX && value.im == 0.0;
                // The second of a pair is the conjugate of the first.
                if !T::IS_COMPLEX && value.im < 0.0 {
                    let (first, second) = vectors.pair_mut(j - 1, j);
                    for (x, y) in first.iter().zip(second) {
                        *y = x.conj();
                    }
                } else {
                    normalize::<T>(vectors.col_mut(j), is_real);
                }
            }
            vectors
        };
        eigen.left = wants_left.then(|| vectors(false));
        eigen.right = wants_right.then(|| vectors(true));
    }
    eigen
        .values
        .iter_mut()
        .for_each(|x| *x = x.times(1.0 / factor));
    eigen
}

/// Makes a vector one long and, if it is complex, its largest element real.
fn normalize<T: Scalar>(vector: &mut [Complex], is_real: bool) {
    let length = norm(vector);
    scale(vector, Complex::real(1.0 / length));
    if is_real {
        return;
    }
    let size = |x: Complex| x.re * x.re + x.im * x.im;
    let mut largest = 0;
    for k in 1..vector.len() {
        if size(vector[k]) > size(vector[largest]) {
            largest = k;
        }
    }
    let Some(&x) = vector.get(largest) else {
        return;
    };
    if T::IS_COMPLEX {
        scale(vector, x.conj().times(1.0 / x.abs()));
    } else {
        // The sign of the real part stays.
        let (c, s, _) = rotation(x.re, x.im);
        scale(vector, Complex::new(c, -s));
    }
    vector[largest].im = 0.0;
}

/// A triangular matrix, perhaps with blocks of two rows, whose eigenvectors are looked for.
struct Triangular<'a, T> {
    t: &'a Matrix<T>,
    /// Whether right eigenvectors are looked for, else left ones.
    right: bool,
    /// The eigenvalue, or its conjugate for left eigenvectors.
    value: Complex,
    /// What a difference of eigenvalues counts as at least.
    smallest: f64,
}

/// Eigenvectors of `Z T Z^H`.
fn triangular_vectors<T: SchurScalar>(
    t: &Matrix<T>,
    z: &Matrix<T>,
    values: &[Complex],
    right: bool,
) -> Matrix<Complex> {
    let n = t.rows();
    let mut out = Matrix::zeros(n, n);
    let mut k = 0;
    while k < n {
        let size = block_size(t, k);
        let value = if right { values[k] } else { values[k].conj() };
        let triangular = Triangular {
            t,
            right,
            value,
            smallest: (ULP * values[k].size()).max(SAFE_MIN * (n as f64 / ULP)),
        };
        let x = triangular.solve(k, size);
        let vector = T::combine(z, &x);
        out.col_mut(k).copy_from_slice(&vector);
        k += size;
    }
    out
}

/// Rows of the block that begins at `k`.
fn block_size<T: Scalar>(t: &Matrix<T>, k: usize) -> usize {
    if k + 1 < t.rows() && t[(k + 1, k)] != T::zero() {
        2
    } else {
        1
    }
}

impl<T: Scalar> Triangular<'_, T> {
    /// An element of the matrix, or of its adjoint for left eigenvectors.
    fn at(&self, i: usize, j: usize) -> Complex {
        if self.right {
            self.t[(i, j)].complex()
        } else {
            self.t[(j, i)].conj().complex()
        }
    }

    /// The eigenvector of the block at `k`.
    fn solve(&self, k: usize, size: usize) -> Vec<Complex> {
        let n = self.t.rows();
        let mut x = vec![Complex::default(); n];
        if size == 1 {
            x[k] = Complex::one();
        } else {
            let (upper, lower) = (self.t[(k, k + 1)].re(), self.t[(k + 1, k)].re());
            let imaginary = self.value.im.abs();
            let is_upper = upper.abs() >= lower.abs();
            (x[k], x[k + 1]) = match (self.right, is_upper) {
                (true, true) => (Complex::one(), Complex::new(0.0, imaginary / upper)),
                (true, false) => (Complex::real(-imaginary / lower), Complex::new(0.0, 1.0)),
                (false, true) => (Complex::real(imaginary / upper), Complex::new(0.0, 1.0)),
                (false, false) => (Complex::one(), Complex::new(0.0, -imaginary / lower)),
            };
        }
        for j in k..k + size {
            self.eliminate(j, if self.right { 0..k } else { k + size..n }, &mut x);
        }
        if self.right {
            let mut above = k;
            while above > 0 {
                let size = if above > 1 {
                    block_size(self.t, above - 2)
                } else {
                    1
                };
                self.block(above - size, size, 0..above - size, &mut x);
                above -= size;
            }
        } else {
            let mut j = k + size;
            while j < n {
                let size = block_size(self.t, j);
                self.block(j, size, j + size..n, &mut x);
                j += size;
            }
        }
        x
    }

    /// Takes what is known of `x[j]` to the other side.
    fn eliminate(&self, j: usize, rows: Range<usize>, x: &mut [Complex]) {
        let known = x[j];
        if known != Complex::default() {
            for i in rows {
                x[i] -= self.at(i, j) * known;
            }
        }
    }

    /// Solves the rows of one block, and takes the result to the other side in `rows`.
    fn block(&self, j: usize, size: usize, rows: Range<usize>, x: &mut [Complex]) {
        let right_side = x[j..j + size].iter().map(|x| x.size()).fold(1.0, f64::max);
        let scaled = |x: Complex| x.times(1.0 / right_side);
        let solved = if size == 1 {
            let pivot = self.pivot(self.at(j, j) - self.value);
            [scaled(x[j]).over(pivot), Complex::default()]
        } else {
            self.pair(j, [scaled(x[j]), scaled(x[j + 1])])
        };
        let largest = solved.iter().map(|x| x.size()).fold(0.0, f64::max);
        // Growth goes to the rest of the vector before numbers become too large.
        let factor = if largest > 1e100 / right_side {
            for x in x.iter_mut() {
                *x = scaled(*x).times(1.0 / largest);
            }
            1.0 / largest
        } else {
            right_side
        };
        for (k, &solved) in solved[..size].iter().enumerate() {
            x[j + k] = solved.times(factor);
        }
        for k in j..j + size {
            self.eliminate(k, rows.clone(), x);
        }
    }

    fn pivot(&self, difference: Complex) -> Complex {
        if difference.size() < self.smallest {
            Complex::real(self.smallest)
        } else {
            difference
        }
    }

    /// Solves two rows by elimination; the largest element is the first pivot.
    fn pair(&self, j: usize, b: [Complex; 2]) -> [Complex; 2] {
        let a = [
            [self.at(j, j) - self.value, self.at(j, j + 1)],
            [self.at(j + 1, j), self.at(j + 1, j + 1) - self.value],
        ];
        let places = [(0, 0), (0, 1), (1, 0), (1, 1)];
        let (mut row, mut col) = (0, 0);
        for (r, c) in places {
            if a[r][c].size() > a[row][col].size() {
                (row, col) = (r, c);
            }
        }
        let (other_row, other_col) = (1 - row, 1 - col);
        let pivot = self.pivot(a[row][col]);
        let factor = a[other_row][col].over(pivot);
        let second = self.pivot(a[other_row][other_col] - factor * a[row][other_col]);
        let mut x = [Complex::default(); 2];
        x[other_col] = (b[other_row] - factor * b[row]).over(second);
        x[col] = (b[row] - a[row][other_col] * x[other_col]).over(pivot);
        x
    }
}
