//! Schur forms: `A = Z T Z^H`, T triangular, or with blocks of two rows on its diagonal that stand
//! for pairs of complex eigenvalues of a real matrix.

use crate::linalg::hessenberg::balance;
use crate::linalg::hessenberg::gehrd;
use crate::linalg::hessenberg::orghr;
use crate::linalg::householder::reflect;
use crate::linalg::matrix::Matrix;
use crate::linalg::matrix::add_columns;
use crate::linalg::matrix::scale;
use crate::linalg::rotation::standardize;
use crate::linalg::scalar::Complex;
use crate::linalg::scalar::Precision;
use crate::linalg::scalar::Scalar;

/// A matrix in Hessenberg form on its way to Schur form.
pub struct Hessenberg<'a, T> {
    /// The matrix.
    pub h: &'a mut Matrix<T>,
    /// What gathers the transformations.
    pub z: Option<&'a mut Matrix<T>>,
    /// Whether the whole of T is wanted, not just its eigenvalues.
    pub whole: bool,
    /// First row of the block that is worked on.
    pub low: usize,
    /// Its last row.
    pub high: usize,
    /// That of the caller's type.
    pub precision: Precision,
}

/// Numbers that Schur forms are computed of.
pub trait SchurScalar: Scalar {
    /// Brings the block to Schur form. Gives 0, or how many rows are not done.
    fn iterate(hessenberg: &mut Hessenberg<'_, Self>, values: &mut [Complex]) -> i32;
    /// The product of a matrix and a complex vector.
    fn combine(matrix: &Matrix<Self>, x: &[Complex]) -> Vec<Complex>;
}

/// Steps without an eigenvalue found before an unusual shift is tried.
const UNUSUAL: usize = 10;

/// The Schur form, and Z when wanted; `a` becomes T. Gives 0, or how many rows are not done.
pub fn gees<T: SchurScalar>(
    a: &mut Matrix<T>,
    wants_vectors: bool,
    values: &mut [Complex],
    precision: Precision,
) -> (Option<Matrix<T>>, i32) {
    let n = a.rows();
    if !a.is_finite() {
        values.fill(Complex::new(f64::NAN, f64::NAN));
        a.data_mut().fill(T::real(f64::NAN));
        let z = Matrix::new(n, n, vec![T::real(f64::NAN); n * n]);
        // Steps would never end; rows that need none are done.
        let done = if T::IS_COMPLEX { 1 } else { 2 };
        let info = if n > done { n as i32 } else { 0 };
        return (wants_vectors.then_some(z), info);
    }
    let factor = a.bring_into_range();
    let balance = balance(a, false);
    let taus = gehrd(a, balance.low, balance.high);
    let mut z = wants_vectors.then(|| orghr(a, &taus, balance.low, balance.high));
    let block = (balance.low, balance.high);
    let info = finish(a, z.as_mut(), true, block, values, precision);
    if let Some(z) = &mut z {
        balance.undo(z, true);
    }
    if factor != 1.0 {
        a.data_mut()
            .iter_mut()
            .for_each(|x| *x = x.times(1.0 / factor));
        values.iter_mut().for_each(|x| *x = x.times(1.0 / factor));
    }
    (z, info)
}

/// From Hessenberg to Schur form; the reflections below the diagonal are cleared.
pub(super) fn finish<T: SchurScalar>(
    a: &mut Matrix<T>,
    z: Option<&mut Matrix<T>>,
    whole: bool,
    (low, high): (usize, usize),
    values: &mut [Complex],
    precision: Precision,
) -> i32 {
    let n = a.rows();
    for j in 0..n {
        let begin = (j + 2).min(n);
        a.col_mut(j)[begin..].fill(T::zero());
    }
    for i in (0..low).chain(high + 1..n) {
        values[i] = a[(i, i)].complex();
    }
    if n == 0 {
        return 0;
    }
    if low == high {
        values[low] = a[(low, low)].complex();
        return 0;
    }
    let mut hessenberg = Hessenberg {
        h: a,
        z,
        whole,
        low,
        high,
        precision,
    };
    T::iterate(&mut hessenberg, values)
}

impl<T: Scalar> Hessenberg<'_, T> {
    /// The first row of the block that ends with `last`: what is beside the diagonal before it is
    /// as good as zero.
    fn split(&self, first: usize, last: usize) -> usize {
        let h = &self.h;
        let Precision { ulp, smallest } = self.precision;
        let tiny = smallest * ((self.high - self.low + 1) as f64 / ulp);
        let mut k = last;
        while k > first {
            let beside = h[(k, k - 1)].size();
            if beside <= tiny {
                break;
            }
            let mut sum = h[(k - 1, k - 1)].size() + h[(k, k)].size();
            if sum == 0.0 {
                if k >= self.low + 2 {
                    sum += h[(k - 1, k - 2)].re().abs();
                }
                if k < self.high {
                    sum += h[(k + 1, k)].re().abs();
                }
            }
            if h[(k, k - 1)].re().abs() <= ulp * sum {
                // Ahues and Tisseur's criterion.
                let across = h[(k - 1, k)].size();
                let (ab, ba) = (beside.max(across), beside.min(across));
                let d = h[(k, k)].size();
                let gap = (h[(k - 1, k - 1)] - h[(k, k)]).size();
                let (aa, bb) = (d.max(gap), d.min(gap));
                let s = aa + ab;
                if ba * (ab / s) <= tiny.max(ulp * (bb * (aa / s))) {
                    break;
                }
            }
            k -= 1;
        }
        k
    }

    /// Rows and columns that transformations of the block reach.
    fn reach(&self, first: usize, last: usize) -> (usize, usize) {
        if self.whole {
            (0, self.h.rows() - 1)
        } else {
            (first, last)
        }
    }
}

impl SchurScalar for f64 {
    fn combine(matrix: &Matrix<f64>, x: &[Complex]) -> Vec<Complex> {
        let n = matrix.rows();
        let part = |part: &dyn Fn(&Complex) -> f64| {
            let mut out = vec![0.0; n];
            let factors: Vec<f64> = x.iter().map(part).collect();
            add_columns(&mut out, matrix.data(), n, &factors);
            out
        };
        let (re, im) = (part(&|x| x.re), part(&|x| x.im));
        let pairs = re.into_iter().zip(im);
        pairs.map(|(re, im)| Complex::new(re, im)).collect()
    }

    fn iterate(this: &mut Hessenberg<'_, f64>, values: &mut [Complex]) -> i32 {
        let limit = 30 * (this.high - this.low + 1).max(10);
        let mut above = this.high + 1;
        while above > this.low {
            let i = above - 1;
            let mut l = this.low;
            let mut steps = 0;
            loop {
                l = this.split(l, i);
                if l > this.low {
                    this.h[(l, l - 1)] = 0.0;
                }
                if l + 1 >= i {
                    break;
                }
                if steps == limit + 1 {
                    return (i + 1) as i32;
                }
                steps += 1;
                double_step(this, l, i, steps);
            }
            if l == i {
                values[i] = Complex::new(this.h[(i, i)], 0.0);
            } else {
                finish_pair(this, i, values);
            }
            above = l;
        }
        0
    }
}

/// The shifts of a double step, as two complex numbers.
fn shifts(h: &Matrix<f64>, l: usize, i: usize, steps: usize) -> [(f64, f64); 2] {
    let (mut h11, mut h21, mut h12, mut h22);
    if steps.is_multiple_of(UNUSUAL) {
        let (s, d) = if steps.is_multiple_of(2 * UNUSUAL) {
            (h[(i, i - 1)].abs() + h[(i - 1, i - 2)].abs(), h[(i, i)])
        } else {
            (h[(l + 1, l)].abs() + h[(l + 2, l + 1)].abs(), h[(l, l)])
        };
        h11 = 0.75 * s + d;
        (h12, h21, h22) = (-0.4375 * s, s, h11);
    } else {
        (h11, h21) = (h[(i - 1, i - 1)], h[(i, i - 1)]);
        (h12, h22) = (h[(i - 1, i)], h[(i, i)]);
    }
    let s = h11.abs() + h12.abs() + h21.abs() + h22.abs();
    if s == 0.0 {
        return [(0.0, 0.0); 2];
    }
    for x in [&mut h11, &mut h12, &mut h21, &mut h22] {
        *x /= s;
    }
    let mean = (h11 + h22) / 2.0;
    let determinant = (h11 - mean) * (h22 - mean) - h12 * h21;
    let root = determinant.abs().sqrt();
    if determinant >= 0.0 {
        return [(mean * s, root * s), (mean * s, -(root * s))];
    }
    // Twice the real one that is nearer to the last element.
    let (x, y) = (mean + root, mean - root);
    let nearer = if (x - h22).abs() <= (y - h22).abs() {
        x
    } else {
        y
    };
    [(nearer * s, 0.0); 2]
}

/// One double step of the block from `l` to `i`.
fn double_step(this: &mut Hessenberg<'_, f64>, l: usize, i: usize, steps: usize) {
    let (first, last) = this.reach(l, i);
    let ulp = this.precision.ulp;
    let h = &mut *this.h;
    let [(r1, i1), (r2, i2)] = shifts(h, l, i, steps);
    let mut v = [0.0; 3];
    let mut m = i - 2;
    loop {
        let s = (h[(m, m)] - r2).abs() + i2.abs() + h[(m + 1, m)].abs();
        let beside = h[(m + 1, m)] / s;
        v[0] = beside * h[(m, m + 1)] + (h[(m, m)] - r1) * ((h[(m, m)] - r2) / s) - i1 * (i2 / s);
        v[1] = beside * (h[(m, m)] + h[(m + 1, m + 1)] - r1 - r2);
        v[2] = beside * h[(m + 2, m + 1)];
        let s: f64 = v.iter().map(|x| x.abs()).sum();
        v.iter_mut().for_each(|x| *x /= s);
        if m == l {
            break;
        }
        let around = h[(m - 1, m - 1)].abs() + h[(m, m)].abs() + h[(m + 1, m + 1)].abs();
        if h[(m, m - 1)].abs() * (v[1].abs() + v[2].abs()) <= ulp * v[0].abs() * around {
            break;
        }
        m -= 1;
    }
    for k in m..i {
        let count = 3.min(i - k + 1);
        if k > m {
            v[..count].copy_from_slice(&h.col(k - 1)[k..k + count]);
        }
        let (head, rest) = v[..count].split_at_mut(1);
        let (beta, tau) = reflect(head[0], rest);
        if k > m {
            h[(k, k - 1)] = beta;
            h.col_mut(k - 1)[k + 1..k + count].fill(0.0);
        } else if m > l {
            h[(k, k - 1)] *= 1.0 - tau;
        }
        v[0] = 1.0;
        let v = &v[..count];
        for j in k..=last {
            reflect_short(&mut h.col_mut(j)[k..k + count], v, tau);
        }
        let end = (k + 3).min(i);
        reflect_cols(h, k, v, tau, first..end + 1);
        if let Some(z) = this.z.as_deref_mut() {
            let rows = z.rows();
            reflect_cols(z, k, v, tau, 0..rows);
        }
    }
}

fn reflect_short(x: &mut [f64], v: &[f64], tau: f64) {
    let sum: f64 = x.iter().zip(v).map(|(x, v)| x * v).sum();
    for (x, v) in x.iter_mut().zip(v) {
        *x -= sum * (tau * v);
    }
}

fn reflect_cols(
    a: &mut Matrix<f64>,
    col: usize,
    v: &[f64],
    tau: f64,
    rows: std::ops::Range<usize>,
) {
    let stride = a.rows();
    let columns = &mut a.data_mut()[col * stride..(col + v.len()) * stride];
    match (v, columns) {
        ([_, v2], columns) => {
            let (x, y) = columns.split_at_mut(stride);
            for (x, y) in x[rows.clone()].iter_mut().zip(&mut y[rows]) {
                let sum = tau * (*x + v2 * *y);
                *x -= sum;
                *y -= sum * v2;
            }
        }
        ([_, v2, v3], columns) => {
            let (x, rest) = columns.split_at_mut(stride);
            let (y, z) = rest.split_at_mut(stride);
            let pairs = x[rows.clone()].iter_mut().zip(&mut y[rows.clone()]);
            for ((x, y), z) in pairs.zip(&mut z[rows]) {
                let sum = tau * (*x + v2 * *y + v3 * *z);
                *x -= sum;
                *y -= sum * v2;
                *z -= sum * v3;
            }
        }
        _ => {}
    }
}

/// Two rows that stand alone are brought to standard form.
fn finish_pair(this: &mut Hessenberg<'_, f64>, i: usize, values: &mut [Complex]) {
    let h = &mut *this.h;
    let block = [h[(i - 1, i - 1)], h[(i - 1, i)], h[(i, i - 1)], h[(i, i)]];
    let standard = standardize(block, this.precision.ulp);
    let [a, b, c, d] = standard.matrix;
    (h[(i - 1, i - 1)], h[(i - 1, i)], h[(i, i - 1)], h[(i, i)]) = (a, b, c, d);
    let n = h.rows();
    if this.whole {
        h.rotate_rows((i - 1, i), standard.rotation, i + 1..n);
        h.rotate_cols((i - 1, i), standard.rotation, 0..i - 1);
    }
    if let Some(z) = this.z.as_deref_mut() {
        let rows = z.rows();
        z.rotate_cols((i - 1, i), standard.rotation, 0..rows);
    }
    for (k, (re, im)) in standard.values.into_iter().enumerate() {
        values[i - 1 + k] = Complex::new(re, im);
    }
}

impl SchurScalar for Complex {
    fn combine(matrix: &Matrix<Complex>, x: &[Complex]) -> Vec<Complex> {
        let mut out = vec![Complex::default(); matrix.rows()];
        add_columns(&mut out, matrix.data(), matrix.rows(), x);
        out
    }

    fn iterate(this: &mut Hessenberg<'_, Complex>, values: &mut [Complex]) -> i32 {
        make_real(this);
        let limit = 30 * (this.high - this.low + 1).max(10);
        let mut above = this.high + 1;
        while above > this.low {
            let i = above - 1;
            let mut l = this.low;
            let mut steps = 0;
            loop {
                l = this.split(l, i);
                if l > this.low {
                    this.h[(l, l - 1)] = Complex::default();
                }
                if l >= i {
                    break;
                }
                if steps == limit + 1 {
                    return (i + 1) as i32;
                }
                steps += 1;
                single_step(this, l, i, steps);
            }
            values[i] = this.h[(i, i)];
            above = l;
        }
        0
    }
}

/// Multiplies row `k` behind `from_col` by a unit, and column `k` from `first` to `last_row` by its
/// conjugate, and that of z.
fn turn(
    this: &mut Hessenberg<'_, Complex>,
    k: usize,
    unit: Complex,
    row: std::ops::Range<usize>,
    col: std::ops::Range<usize>,
) {
    for j in row {
        this.h[(k, j)] = this.h[(k, j)] * unit;
    }
    scale(&mut this.h.col_mut(k)[col], unit.conj());
    if let Some(z) = this.z.as_deref_mut() {
        scale(z.col_mut(k), unit.conj());
    }
}

/// Makes the elements beside the diagonal real.
fn make_real(this: &mut Hessenberg<'_, Complex>) {
    let (first, last) = this.reach(this.low, this.high);
    for i in this.low + 1..=this.high {
        let x = this.h[(i, i - 1)];
        if x.im != 0.0 {
            let unit = x.times(1.0 / x.size());
            let unit = unit.conj().times(1.0 / unit.abs());
            this.h[(i, i - 1)] = Complex::real(x.abs());
            turn(this, i, unit, i..last + 1, first..last.min(i + 1) + 1);
        }
    }
}

/// The shift: the eigenvalue of the last two rows that is nearer to the last element.
fn shift(h: &Matrix<Complex>, l: usize, i: usize, steps: usize) -> Complex {
    if steps.is_multiple_of(2 * UNUSUAL) {
        return Complex::real(0.75 * h[(i, i - 1)].re.abs()) + h[(i, i)];
    }
    if steps.is_multiple_of(UNUSUAL) {
        return Complex::real(0.75 * h[(l + 1, l)].re.abs()) + h[(l, l)];
    }
    let t = h[(i, i)];
    let u = h[(i - 1, i)].sqrt() * h[(i, i - 1)].sqrt();
    if u.size() == 0.0 {
        return t;
    }
    let x = (h[(i - 1, i - 1)] - t).times(0.5);
    let s = u.size().max(x.size());
    let (xs, us) = (x.times(1.0 / s), u.times(1.0 / s));
    let mut y = (xs * xs + us * us).sqrt().times(s);
    if x.size() > 0.0 {
        let unit = x.times(1.0 / x.size());
        if unit.re * y.re + unit.im * y.im < 0.0 {
            y = -y;
        }
    }
    t - u * u.over(x + y)
}

/// One step of the block from `l` to `i`.
fn single_step(this: &mut Hessenberg<'_, Complex>, l: usize, i: usize, steps: usize) {
    let (first, last) = this.reach(l, i);
    let t = shift(this.h, l, i, steps);
    let start = |h: &Matrix<Complex>, m: usize| {
        let difference = h[(m, m)] - t;
        let beside = h[(m + 1, m)].re;
        let s = difference.size() + beside.abs();
        (difference.times(1.0 / s), beside / s)
    };
    let mut m = i - 1;
    let (mut v0, mut v1) = start(this.h, m);
    while m > l {
        let before = this.h[(m, m - 1)].re;
        let around = this.h[(m, m)].size() + this.h[(m + 1, m + 1)].size();
        if before.abs() * v1.abs() <= this.precision.ulp * (v0.size() * around) {
            break;
        }
        m -= 1;
        (v0, v1) = start(this.h, m);
    }
    let mut v = [v0, Complex::real(v1)];
    for k in m..i {
        if k > m {
            v = [this.h[(k, k - 1)], this.h[(k + 1, k - 1)]];
        }
        let (head, rest) = v.split_at_mut(1);
        let (beta, tau) = reflect(head[0], rest);
        if k > m {
            this.h[(k, k - 1)] = beta;
            this.h[(k + 1, k - 1)] = Complex::default();
        }
        let v2 = v[1];
        let t2 = (tau * v2).re;
        for j in k..=last {
            let col = &mut this.h.col_mut(j)[k..k + 2];
            let sum = tau.conj() * col[0] + col[1].times(t2);
            col[0] -= sum;
            col[1] -= sum * v2;
        }
        let columns = |a: &mut Matrix<Complex>, rows: std::ops::Range<usize>| {
            let (x, y) = a.pair_mut(k, k + 1);
            for (x, y) in x[rows.clone()].iter_mut().zip(&mut y[rows]) {
                let sum = tau * *x + y.times(t2);
                *x -= sum;
                *y -= sum * v2.conj();
            }
        };
        columns(this.h, first..(k + 2).min(i) + 1);
        if let Some(z) = this.z.as_deref_mut() {
            let rows = z.rows();
            columns(z, 0..rows);
        }
        if k == m && m > l {
            // The step began within the block; what is beside the diagonal becomes real again.
            let unit = Complex::one() - tau;
            let unit = unit.times(1.0 / unit.abs());
            this.h[(m + 1, m)] = this.h[(m + 1, m)] * unit.conj();
            if m + 2 <= i {
                this.h[(m + 2, m + 1)] = this.h[(m + 2, m + 1)] * unit;
            }
            for j in (m..=i).filter(|&j| j != m + 1) {
                turn(this, j, unit, j + 1..last + 1, first..j);
            }
        }
    }
    let x = this.h[(i, i - 1)];
    if x.im != 0.0 {
        let size = x.abs();
        this.h[(i, i - 1)] = Complex::real(size);
        let unit = x.times(1.0 / size).conj();
        turn(this, i, unit, i + 1..last + 1, first..i);
    }
}
