//! A dense matrix, its columns one after the other.

use std::ops::Index;
use std::ops::IndexMut;
use std::ops::Range;

use crate::linalg::scalar::Scalar;

/// A matrix of `rows * cols` elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix<T> {
    rows: usize,
    cols: usize,
    data: Vec<T>,
}

impl<T> Index<(usize, usize)> for Matrix<T> {
    type Output = T;
    fn index(&self, (row, col): (usize, usize)) -> &T {
        &self.data[col * self.rows + row]
    }
}

impl<T> IndexMut<(usize, usize)> for Matrix<T> {
    fn index_mut(&mut self, (row, col): (usize, usize)) -> &mut T {
        &mut self.data[col * self.rows + row]
    }
}

impl<T: Scalar> Matrix<T> {
    /// A matrix over these elements.
    ///
    /// # Panics
    /// When there are not `rows * cols` of them.
    pub fn new(rows: usize, cols: usize, data: Vec<T>) -> Self {
        assert_eq!(data.len(), rows * cols, "elements fit the matrix");
        Self { rows, cols, data }
    }
    /// A matrix of zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self::new(rows, cols, vec![T::zero(); rows * cols])
    }
    /// Ones on the diagonal, zeros elsewhere.
    pub fn identity(rows: usize, cols: usize) -> Self {
        let mut matrix = Self::zeros(rows, cols);
        for i in 0..rows.min(cols) {
            matrix[(i, i)] = T::one();
        }
        matrix
    }
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }
    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }
    /// The elements, column after column.
    pub fn data(&self) -> &[T] {
        &self.data
    }
    /// The elements, to be changed.
    pub fn data_mut(&mut self) -> &mut [T] {
        &mut self.data
    }
    /// A column.
    pub fn col(&self, col: usize) -> &[T] {
        &self.data[col * self.rows..(col + 1) * self.rows]
    }
    /// A column, to be changed.
    pub fn col_mut(&mut self, col: usize) -> &mut [T] {
        &mut self.data[col * self.rows..(col + 1) * self.rows]
    }
    /// The elements of the columns before one, and those from it on.
    pub(super) fn split_at_col(&mut self, col: usize) -> (&mut [T], &mut [T]) {
        self.data.split_at_mut(col * self.rows)
    }
    /// Two columns, the first before the second.
    pub(super) fn pair_mut(&mut self, first: usize, second: usize) -> (&mut [T], &mut [T]) {
        let rows = self.rows;
        let (left, right) = self.data.split_at_mut(second * rows);
        (
            &mut left[first * rows..(first + 1) * rows],
            &mut right[..rows],
        )
    }
    /// Exchanges two rows within some columns.
    pub(super) fn swap_rows(&mut self, a: usize, b: usize, cols: Range<usize>) {
        if a != b {
            for col in cols {
                self.data.swap(col * self.rows + a, col * self.rows + b);
            }
        }
    }
    /// Exchanges the first `rows` elements of two columns.
    pub(super) fn swap_cols(&mut self, a: usize, b: usize, rows: usize) {
        if a != b {
            let (x, y) = self.pair_mut(a.min(b), a.max(b));
            x[..rows].swap_with_slice(&mut y[..rows]);
        }
    }
    /// Turns the plane of two columns, within some rows: x becomes c x + s y, y becomes c y - s x.
    pub(super) fn rotate_cols(
        &mut self,
        (x, y): (usize, usize),
        (c, s): (f64, f64),
        rows: Range<usize>,
    ) {
        let (x, y) = self.pair_mut(x, y);
        for (x, y) in x[rows.clone()].iter_mut().zip(&mut y[rows]) {
            (*x, *y) = (x.times(c) + y.times(s), y.times(c) - x.times(s));
        }
    }
    /// As [`Matrix::rotate_cols`], with two rows.
    pub(super) fn rotate_rows(
        &mut self,
        (x, y): (usize, usize),
        (c, s): (f64, f64),
        cols: Range<usize>,
    ) {
        for col in cols {
            let (a, b) = (self[(x, col)], self[(y, col)]);
            self[(x, col)] = a.times(c) + b.times(s);
            self[(y, col)] = b.times(c) - a.times(s);
        }
    }
    /// The transposed and conjugated matrix.
    pub fn adjoint(&self) -> Self {
        let mut out = Self::zeros(self.cols, self.rows);
        for col in 0..self.cols {
            for row in 0..self.rows {
                out[(col, row)] = self[(row, col)].conj();
            }
        }
        out
    }
    /// The first rows and columns, made larger by zeros where there are not so many.
    pub(super) fn resized(&self, rows: usize, cols: usize) -> Self {
        let mut out = Self::zeros(rows, cols);
        let rows = rows.min(self.rows);
        for col in 0..cols.min(self.cols) {
            out.col_mut(col)[..rows].copy_from_slice(&self.col(col)[..rows]);
        }
        out
    }
    /// The product of two matrices.
    pub fn multiply(&self, other: &Self) -> Self {
        let mut out = Self::zeros(self.rows, other.cols);
        for col in 0..other.cols {
            add_columns(out.col_mut(col), &self.data, self.rows, other.col(col));
        }
        out
    }
    /// Multiplies the elements, where they are very large or small, so that their squares and
    /// products are safe. Gives the factor.
    pub(super) fn bring_into_range(&mut self) -> f64 {
        let largest = self.data.iter().map(|x| x.abs()).fold(0.0, f64::max);
        if largest == 0.0 || !largest.is_finite() || (1e-140..1e140).contains(&largest) {
            return 1.0;
        }
        let factor = 1.0 / largest.max(f64::MIN_POSITIVE);
        self.data.iter_mut().for_each(|x| *x = x.times(factor));
        factor
    }
    /// Whether every element is.
    pub(super) fn is_finite(&self) -> bool {
        self.data.iter().all(|x| x.is_finite())
    }
}

/// `out += sum of factors[k] * x_k`, `x_k` being the first elements of each `stride` in `x`. Four
/// columns are added at a time, so that `out` goes through the registers less often.
pub(super) fn add_columns<T: Scalar>(out: &mut [T], x: &[T], stride: usize, factors: &[T]) {
    let n = out.len();
    let column = |k: usize| &x[k * stride..k * stride + n];
    let mut k = 0;
    while k + 4 <= factors.len() {
        let [a, b, c, d] = [k, k + 1, k + 2, k + 3].map(column);
        let f = &factors[k..k + 4];
        for i in 0..n {
            out[i] += a[i] * f[0] + b[i] * f[1] + c[i] * f[2] + d[i] * f[3];
        }
        k += 4;
    }
    for (k, &factor) in factors.iter().enumerate().skip(k) {
        add_scaled(out, factor, column(k));
    }
}

/// `out += factor * x`.
pub(super) fn add_scaled<T: Scalar>(out: &mut [T], factor: T, x: &[T]) {
    if factor != T::zero() {
        for (out, &x) in out.iter_mut().zip(x) {
            *out += factor * x;
        }
    }
}

/// The sum of `conj(x) * y`.
pub(super) fn dot<T: Scalar>(x: &[T], y: &[T]) -> T {
    // Four sums, so that additions need not wait for each other.
    let mut sums = [T::zero(); 4];
    let (xs, ys) = (x.chunks_exact(4), y.chunks_exact(4));
    let (x_rest, y_rest) = (xs.remainder(), ys.remainder());
    for (x, y) in xs.zip(ys) {
        for i in 0..4 {
            sums[i] += x[i].conj() * y[i];
        }
    }
    let mut sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (&x, &y) in x_rest.iter().zip(y_rest) {
        sum += x.conj() * y;
    }
    sum
}

/// Multiplies a vector by a number.
pub(super) fn scale<T: Scalar>(x: &mut [T], factor: T) {
    for x in x {
        *x = *x * factor;
    }
}
