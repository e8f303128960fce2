//! Eigenvalues of symmetric and Hermitian matrices: to tridiagonal form by reflections, then
//! implicit QL and QR steps.

use crate::linalg::householder::apply_left;
use crate::linalg::householder::reflect;
use crate::linalg::householder::vector;
use crate::linalg::matrix::Matrix;
use crate::linalg::matrix::add_scaled;
use crate::linalg::matrix::dot;
use crate::linalg::rotation::rotation;
use crate::linalg::rotation::symmetric_pair;
use crate::linalg::scalar::Precision;
use crate::linalg::scalar::Scalar;

/// A Hermitian matrix as `Q T Q^H`, T real and tridiagonal.
pub struct Tridiagonal<T> {
    /// The diagonal of T.
    pub diagonal: Vec<f64>,
    /// What is beside it.
    pub beside: Vec<f64>,
    /// The taus of the reflections, whose vectors are in the matrix.
    pub taus: Vec<T>,
}

/// Reduces the matrix that one triangle of `a` gives; the vectors of the reflections and T take the
/// place of that triangle, as LAPACK packs them.
pub fn sytrd<T: Scalar>(a: &mut Matrix<T>, lower: bool) -> Tridiagonal<T> {
    let n = a.rows();
    let mut out = Tridiagonal {
        diagonal: vec![0.0; n],
        beside: vec![0.0; n.saturating_sub(1)],
        taus: vec![T::zero(); n.saturating_sub(1)],
    };
    for step in 0..n.saturating_sub(1) {
        // The lower triangle is worked off from its first column, the upper one from its last.
        let i = if lower { step } else { n - 2 - step };
        let (beta, tau, v) = if lower {
            let (first, rest) = split_first(&mut a.col_mut(i)[i + 1..]);
            let (beta, tau) = reflect(*first, rest);
            *first = beta;
            (beta, tau, vector(rest))
        } else {
            let (last, rest) = split_last(&mut a.col_mut(i + 1)[..=i]);
            let (beta, tau) = reflect(*last, rest);
            *last = beta;
            let mut v = rest.to_vec();
            v.push(T::one());
            (beta, tau, v)
        };
        let begin = if lower { i + 1 } else { 0 };
        if tau == T::zero() {
            // Nothing to do but to have a real diagonal.
            let d = if lower { i + 1 } else { i };
            a[(d, d)] = T::real(a[(d, d)].re());
        } else {
            update(a, begin, lower, &v, tau);
        }
        out.beside[i] = beta.re();
        out.taus[i] = tau;
    }
    for i in 0..n {
        out.diagonal[i] = a[(i, i)].re();
        a[(i, i)] = T::real(out.diagonal[i]);
    }
    out
}

fn split_first<T>(x: &mut [T]) -> (&mut T, &mut [T]) {
    let (first, rest) = x.split_at_mut(1);
    (&mut first[0], rest)
}

fn split_last<T>(x: &mut [T]) -> (&mut T, &mut [T]) {
    let (rest, last) = x.split_at_mut(x.len() - 1);
    (&mut last[0], rest)
}

/// `A = H^H A H` for the block of `v.len()` rows and columns that begins at `begin`.
fn update<T: Scalar>(a: &mut Matrix<T>, begin: usize, lower: bool, v: &[T], tau: T) {
    let size = v.len();
    let range = |j: usize| {
        if lower {
            begin + j + 1..begin + size
        } else {
            begin..begin + j
        }
    };
    let mut w = vec![T::zero(); size];
    for j in 0..size {
        let rows = range(j);
        let within = rows.start - begin..rows.end - begin;
        let col = &a.col(begin + j)[rows];
        add_scaled(&mut w[within.clone()], v[j], col);
        let mirrored = dot(col, &v[within]);
        w[j] += mirrored + v[j].times(a[(begin + j, begin + j)].re());
    }
    for w in &mut w {
        *w = tau * *w;
    }
    let factor = -(tau * dot(&w, v)).times(0.5);
    add_scaled(&mut w, factor, v);
    for j in 0..size {
        let (from_w, from_v) = (-w[j].conj(), -v[j].conj());
        let rows = range(j);
        let within = rows.start - begin..rows.end - begin;
        let diagonal = v[j] * from_w + w[j] * from_v;
        let col = a.col_mut(begin + j);
        col[begin + j] = T::real(col[begin + j].re() + diagonal.re());
        for (k, x) in within.zip(&mut col[rows]) {
            *x += v[k] * from_w + w[k] * from_v;
        }
    }
}

/// The matrix Q of [`sytrd`].
fn orgtr<T: Scalar>(a: &Matrix<T>, taus: &[T], lower: bool) -> Matrix<T> {
    let n = a.rows();
    let mut q = Matrix::identity(n, n);
    if lower {
        for (i, &tau) in taus.iter().enumerate().rev() {
            let v = vector(&a.col(i)[i + 2..]);
            apply_left(&v, tau, &mut q, i + 1, i + 1..n);
        }
    } else {
        for (i, &tau) in taus.iter().enumerate() {
            let mut v = a.col(i + 1)[..i].to_vec();
            v.push(T::one());
            apply_left(&v, tau, &mut q, 0, 0..i + 1);
        }
    }
    q
}

/// Eigenvalues in ascending order, and, when wanted, eigenvectors in place of the matrix that one
/// triangle of `a` gives. Gives 0, or how many elements beside the diagonal did not vanish.
pub fn syevd<T: Scalar>(
    a: &mut Matrix<T>,
    lower: bool,
    vectors: bool,
    values: &mut [f64],
    precision: Precision,
) -> i32 {
    let n = a.rows();
    // The other triangle may hold anything.
    for j in 0..n {
        let other = if lower { 0..j } else { j + 1..n };
        a.col_mut(j)[other].fill(T::zero());
    }
    let factor = a.bring_into_range();
    let Tridiagonal {
        mut diagonal,
        mut beside,
        taus,
    } = sytrd(a, lower);
    let mut q = vectors.then(|| orgtr(a, &taus, lower));
    let info = steqr(&mut diagonal, &mut beside, q.as_mut(), precision);
    for (value, &d) in values.iter_mut().zip(&diagonal) {
        *value = d / factor;
    }
    if let (Some(q), true) = (q, n > 0) {
        *a = q;
    }
    info
}

/// Eigenvalues of a tridiagonal matrix in ascending order; `z` becomes `z` times the eigenvectors.
/// Gives 0, or how many elements beside the diagonal did not vanish.
fn steqr<T: Scalar>(
    d: &mut [f64],
    e: &mut [f64],
    mut z: Option<&mut Matrix<T>>,
    precision: Precision,
) -> i32 {
    let n = d.len();
    if !d.iter().chain(e.iter()).all(|x| x.is_finite()) {
        // Steps would never end; two rows need none.
        d.fill(f64::NAN);
        return if n > 2 { n as i32 - 1 } else { 0 };
    }
    let mut left = 30 * n;
    let mut begin = 0;
    while begin < n {
        let mut end = begin;
        while end + 1 < n {
            let size = e[end].abs();
            if size <= d[end].abs().sqrt() * d[end + 1].abs().sqrt() * precision.epsilon() {
                e[end] = 0.0;
                break;
            }
            end += 1;
        }
        let mut block = Block {
            d,
            e,
            z: z.as_deref_mut(),
            left: &mut left,
            precision,
        };
        if block.d[end].abs() < block.d[begin].abs() {
            block.work_up(begin, end);
        } else {
            block.work_down(begin, end);
        }
        if left == 0 {
            let open = e.iter().filter(|&&x| x != 0.0).count();
            if open > 0 {
                return open as i32;
            }
        }
        // What has been split off within the block is looked at again.
        if e[begin..end].iter().all(|&x| x == 0.0) {
            begin = end + 1;
        }
    }
    for i in 0..n {
        let mut smallest = i;
        for j in i + 1..n {
            if d[j] < d[smallest] {
                smallest = j;
            }
        }
        if smallest != i {
            d.swap(i, smallest);
            if let Some(z) = z.as_deref_mut() {
                z.swap_cols(i, smallest, z.rows());
            }
        }
    }
    0
}

/// A block of a tridiagonal matrix that is worked on.
struct Block<'a, T> {
    d: &'a mut [f64],
    e: &'a mut [f64],
    z: Option<&'a mut Matrix<T>>,
    /// Steps that may still be made.
    left: &'a mut usize,
    precision: Precision,
}

impl<T: Scalar> Block<'_, T> {
    fn rotate(&mut self, i: usize, turn: (f64, f64)) {
        if let Some(z) = &mut self.z {
            let rows = z.rows();
            z.rotate_cols((i, i + 1), turn, 0..rows);
        }
    }

    fn is_small(&self, i: usize) -> bool {
        let size = self.e[i] * self.e[i];
        let epsilon = self.precision.epsilon();
        let smallest = self.precision.smallest;
        size <= epsilon * epsilon * self.d[i].abs() * self.d[i + 1].abs() + smallest
    }

    /// The shift from the two elements at one end, and the element at the other end.
    fn shift(&self, at: usize, next: usize, between: usize, far: usize) -> f64 {
        let p = self.d[at];
        let g = (self.d[next] - p) / (2.0 * self.e[between]);
        let r = g.hypot(1.0);
        self.d[far] - p + self.e[between] / (g + r.copysign(g))
    }

    /// QL steps: eigenvalues are found from the beginning.
    fn work_down(&mut self, begin: usize, end: usize) {
        let mut l = begin;
        while l <= end {
            let m = (l..end).find(|&m| self.is_small(m)).unwrap_or(end);
            if m < end {
                self.e[m] = 0.0;
            }
            if m == l {
                l += 1;
                continue;
            }
            if m == l + 1 {
                let (first, second, (c, s)) = symmetric_pair(self.d[l], self.e[l], self.d[l + 1]);
                self.rotate(l, (c, s));
                (self.d[l], self.d[l + 1], self.e[l]) = (first, second, 0.0);
                l += 2;
                continue;
            }
            if *self.left == 0 {
                return;
            }
            *self.left -= 1;
            let mut g = self.shift(l, l + 1, l, m);
            let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
            for i in (l..m).rev() {
                let (f, b) = (s * self.e[i], c * self.e[i]);
                let (cosine, sine, r) = rotation(g, f);
                (c, s) = (cosine, sine);
                if i + 1 != m {
                    self.e[i + 1] = r;
                }
                g = self.d[i + 1] - p;
                let r = (self.d[i] - g) * s + 2.0 * c * b;
                p = s * r;
                self.d[i + 1] = g + p;
                g = c * r - b;
                self.rotate(i, (c, -s));
            }
            self.d[l] -= p;
            self.e[l] = g;
        }
    }

    /// QR steps: eigenvalues are found from the end.
    fn work_up(&mut self, begin: usize, end: usize) {
        let mut above = end + 1;
        while above > begin {
            let l = above - 1;
            let m = (begin + 1..=l).rev().find(|&m| self.is_small(m - 1));
            let m = m.unwrap_or(begin);
            if m > begin {
                self.e[m - 1] = 0.0;
            }
            if m == l {
                above -= 1;
                continue;
            }
            if m + 1 == l {
                let (first, second, turn) = symmetric_pair(self.d[m], self.e[m], self.d[l]);
                self.rotate(m, turn);
                (self.d[m], self.d[l], self.e[m]) = (first, second, 0.0);
                above -= 2;
                continue;
            }
            if *self.left == 0 {
                return;
            }
            *self.left -= 1;
            let mut g = self.shift(l, l - 1, l - 1, m);
            let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
            for i in m..l {
                let (f, b) = (s * self.e[i], c * self.e[i]);
                let (cosine, sine, r) = rotation(g, f);
                (c, s) = (cosine, sine);
                if i != m {
                    self.e[i - 1] = r;
                }
                g = self.d[i] - p;
                let r = (self.d[i + 1] - g) * s + 2.0 * c * b;
                p = s * r;
                self.d[i] = g + p;
                g = c * r - b;
                self.rotate(i, (c, s));
            }
            self.d[l] -= p;
            self.e[l - 1] = g;
        }
    }
}
