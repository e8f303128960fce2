//! Singular values: to bidiagonal form by reflections, then implicit QR steps.

use crate::linalg::householder::apply_left;
use crate::linalg::householder::apply_right;
use crate::linalg::householder::reflect;
use crate::linalg::householder::vector;
use crate::linalg::matrix::Matrix;
use crate::linalg::qr::geqrf;
use crate::linalg::qr::ormqr;
use crate::linalg::rotation::rotation;
use crate::linalg::rotation::triangle_svd;
use crate::linalg::rotation::triangle_values;
use crate::linalg::scalar::Precision;
use crate::linalg::scalar::Scalar;

/// Which singular vectors are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// None.
    None,
    /// As many as there are singular values.
    Thin,
    /// Whole bases.
    Full,
}

/// Which of LAPACK's two ways is followed, where they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `gesdd`: divide and conquer, as it is for small matrices.
    Divide,
    /// `gesvd`: QR steps.
    Steps,
}

impl Method {
    /// How many times as long as wide a matrix must be to be brought to triangular form first.
    fn tall(self, is_complex: bool) -> f64 {
        match self {
            Self::Divide if is_complex => 17.0 / 9.0,
            Self::Divide => 11.0 / 6.0,
            Self::Steps => 1.6,
        }
    }
}

/// `A = U S V^H`.
pub struct Svd<T> {
    /// Singular values, the largest first.
    pub values: Vec<f64>,
    /// U, with the columns that were asked for.
    pub u: Matrix<T>,
    /// `V^H`, with the rows that were asked for.
    pub vh: Matrix<T>,
    /// 0, or how many elements beside the diagonal did not vanish; -4 when `gesdd` is given a matrix
    /// that is not finite.
    pub info: i32,
}

/// Reflections, each with the place of its first element.
struct Reflections<T> {
    /// Vector and tau.
    all: Vec<(Vec<T>, T)>,
    /// Place of the first reflection's first element; each next one begins one later.
    offset: usize,
}

impl<T: Scalar> Reflections<T> {
    /// The first columns of the product of all.
    fn product(&self, rows: usize, cols: usize) -> Matrix<T> {
        let mut out = Matrix::identity(rows, cols);
        for (i, (v, tau)) in self.all.iter().enumerate().rev() {
            let begin = i + self.offset;
            apply_left(v, *tau, &mut out, begin, begin.min(cols)..cols);
        }
        out
    }
}

/// `A = Q B P^H`, B real with nothing but its diagonal and, in a tall matrix, what is above that, in
/// a wide one what is below it.
struct Bidiagonal<T> {
    diagonal: Vec<f64>,
    beside: Vec<f64>,
    q: Reflections<T>,
    p: Reflections<T>,
}

fn gebrd<T: Scalar>(a: &mut Matrix<T>) -> Bidiagonal<T> {
    let (rows, cols) = (a.rows(), a.cols());
    let is_tall = rows >= cols;
    let count = rows.min(cols);
    let mut out = Bidiagonal {
        diagonal: Vec::with_capacity(count),
        beside: Vec::with_capacity(count),
        q: Reflections {
            all: Vec::new(),
            offset: usize::from(!is_tall),
        },
        p: Reflections {
            all: Vec::new(),
            offset: usize::from(is_tall),
        },
    };
    for i in 0..count {
        if is_tall {
            out.diagonal.push(reflect_column(a, i, i, &mut out.q));
            if i + 1 < cols {
                out.beside.push(reflect_row(a, i, i + 1, &mut out.p));
            }
        } else {
            out.diagonal.push(reflect_row(a, i, i, &mut out.p));
            if i + 1 < rows {
                out.beside.push(reflect_column(a, i + 1, i, &mut out.q));
            }
        }
    }
    out
}

/// Makes column `col` vanish below `row`.
fn reflect_column<T: Scalar>(
    a: &mut Matrix<T>,
    row: usize,
    col: usize,
    out: &mut Reflections<T>,
) -> f64 {
    let (first, rest) = a.col_mut(col)[row..].split_at_mut(1);
    let (beta, tau) = reflect(first[0], rest);
    let v = vector(rest);
    let cols = col + 1..a.cols();
    apply_left(&v, tau.conj(), a, row, cols);
    out.all.push((v, tau));
    beta.re()
}

/// Makes row `row` vanish behind `col`.
fn reflect_row<T: Scalar>(
    a: &mut Matrix<T>,
    row: usize,
    col: usize,
    out: &mut Reflections<T>,
) -> f64 {
    let mut x: Vec<T> = (col..a.cols()).map(|j| a[(row, j)].conj()).collect();
    let (first, rest) = x.split_at_mut(1);
    let (beta, tau) = reflect(first[0], rest);
    let v = vector(rest);
    let rows = row + 1..a.rows();
    apply_right(&v, tau, a, rows, col);
    out.all.push((v, tau));
    beta.re()
}

/// The decomposition.
pub fn gesvd<T: Scalar>(
    a: &mut Matrix<T>,
    vectors: Vectors,
    method: Method,
    precision: Precision,
) -> Svd<T> {
    let (rows, cols) = (a.rows(), a.cols());
    let count = rows.min(cols);
    let (u_cols, v_cols) = match vectors {
        Vectors::None => (0, 0),
        Vectors::Thin => (count, count),
        Vectors::Full => (rows, cols),
    };
    if !a.is_finite() {
        return Svd {
            values: vec![f64::NAN; count],
            u: filled(rows, u_cols),
            vh: filled(v_cols, cols),
            info: match method {
                Method::Divide => -4,
                // Steps would never end; two rows need none.
                Method::Steps if count > 2 => count as i32 - 1,
                Method::Steps => 0,
            },
        };
    }
    let factor = a.bring_into_range();
    let limit = (count as f64 * method.tall(T::IS_COMPLEX)) as usize;
    let is_wide = rows < cols;
    let mut svd = if count > 0 && rows.max(cols) >= limit.max(count + 1) {
        // A = Q R, and U is Q times that of R; a wide matrix is handled as its adjoint.
        let mut long = if is_wide {
            a.adjoint()
        } else {
            std::mem::replace(a, Matrix::zeros(0, 0))
        };
        let taus = geqrf(&mut long);
        let mut triangle = long.resized(count, count);
        for j in 0..count {
            triangle.col_mut(j)[j + 1..].fill(T::zero());
        }
        let inner = if vectors == Vectors::None {
            vectors
        } else {
            Vectors::Full
        };
        if is_wide {
            triangle = triangle.adjoint();
        }
        let mut svd = square(&mut triangle, inner, (count, count), method, precision);
        let expand = |small: &Matrix<T>, wanted: usize| {
            let mut out = small.resized(long.rows(), wanted);
            for i in count..wanted {
                out[(i, i)] = T::one();
            }
            ormqr(&long, &taus, &mut out, true, false);
            out
        };
        if is_wide {
            if v_cols > 0 {
                svd.vh = expand(&svd.vh.adjoint(), v_cols).adjoint();
            }
        } else if u_cols > 0 {
            svd.u = expand(&svd.u, u_cols);
        }
        svd
    } else {
        square(a, vectors, (u_cols, v_cols), method, precision)
    };
    svd.values.iter_mut().for_each(|x| *x /= factor);
    svd
}

fn filled<T: Scalar>(rows: usize, cols: usize) -> Matrix<T> {
    Matrix::new(rows, cols, vec![T::real(f64::NAN); rows * cols])
}

/// The decomposition without a triangular form before it.
fn square<T: Scalar>(
    a: &mut Matrix<T>,
    vectors: Vectors,
    (u_cols, v_cols): (usize, usize),
    method: Method,
    precision: Precision,
) -> Svd<T> {
    let (rows, cols) = (a.rows(), a.cols());
    let b = gebrd(a);
    let mut work = Work {
        d: b.diagonal,
        e: b.beside,
        u: b.q.product(rows, u_cols),
        v: b.p.product(cols, v_cols),
        has_vectors: vectors != Vectors::None,
        // A single value is no case for dividing; there the left vector takes the sign.
        sign_goes_left: method == Method::Divide && rows.min(cols) == 1,
        precision,
    };
    let info = work.run(rows >= cols);
    Svd {
        values: work.d,
        u: work.u,
        vh: work.v.adjoint(),
        info,
    }
}

/// A bidiagonal matrix that is worked on, and what gathers the rotations.
struct Work<T> {
    d: Vec<f64>,
    e: Vec<f64>,
    u: Matrix<T>,
    v: Matrix<T>,
    has_vectors: bool,
    sign_goes_left: bool,
    precision: Precision,
}

/// From which end a block is worked off.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chase {
    Down,
    Up,
}

impl<T: Scalar> Work<T> {
    fn turn_u(&mut self, i: usize, turn: (f64, f64)) {
        if self.has_vectors {
            let rows = self.u.rows();
            self.u.rotate_cols((i, i + 1), turn, 0..rows);
        }
    }

    fn turn_v(&mut self, i: usize, turn: (f64, f64)) {
        if self.has_vectors {
            let rows = self.v.rows();
            self.v.rotate_cols((i, i + 1), turn, 0..rows);
        }
    }

    /// Makes the matrix diagonal, its elements positive and in descending order. Gives 0, or how
    /// many elements beside the diagonal did not vanish.
    fn run(&mut self, is_upper: bool) -> i32 {
        let n = self.d.len();
        if !is_upper {
            for i in 0..n.saturating_sub(1) {
                let (c, s, r) = rotation(self.d[i], self.e[i]);
                self.d[i] = r;
                self.e[i] = s * self.d[i + 1];
                self.d[i + 1] *= c;
                self.turn_u(i, (c, s));
            }
        }
        let info = self.diagonalize();
        if info != 0 {
            return info;
        }
        for i in 0..n {
            if self.d[i] < 0.0 {
                self.d[i] = -self.d[i];
                if self.has_vectors {
                    let vectors = if self.sign_goes_left {
                        &mut self.u
                    } else {
                        &mut self.v
                    };
                    vectors.col_mut(i).iter_mut().for_each(|x| *x = -*x);
                }
            }
        }
        // The smallest goes to the end.
        for last in (1..n).rev() {
            let mut smallest = 0;
            for j in 1..=last {
                if self.d[j] <= self.d[smallest] {
                    smallest = j;
                }
            }
            if smallest != last {
                self.d.swap(smallest, last);
                if self.has_vectors {
                    self.u.swap_cols(smallest, last, self.u.rows());
                    self.v.swap_cols(smallest, last, self.v.rows());
                }
            }
        }
        0
    }

    /// The size under which elements beside the diagonal count as zero, and the relative one.
    fn tolerances(&self) -> (f64, f64) {
        let n = self.d.len() as f64;
        let epsilon = self.precision.epsilon();
        let relative = epsilon.powf(-0.125).clamp(10.0, 100.0) * epsilon;
        let mut mu = self.d[0].abs();
        let mut smallest = mu;
        for (d, e) in self.d[1..].iter().zip(&self.e) {
            if smallest == 0.0 {
                break;
            }
            mu = d.abs() * (mu / (mu + e.abs()));
            smallest = smallest.min(mu);
        }
        let absolute = relative * (smallest / n.sqrt());
        (
            absolute.max(6.0 * n * n * self.precision.smallest),
            relative,
        )
    }

    fn diagonalize(&mut self) -> i32 {
        let n = self.d.len();
        if n < 2 {
            return 0;
        }
        let (threshold, relative) = self.tolerances();
        let mut work_left = 6 * n * n;
        let mut end = n;
        // The block of the last step, and the direction chosen for it.
        let mut old = (n, 0);
        let mut chase = Chase::Down;
        while end > 1 {
            let m = end - 1;
            let mut largest = self.d[m].abs();
            let mut split = None;
            for i in (0..m).rev() {
                if self.e[i].abs() <= threshold {
                    self.e[i] = 0.0;
                    split = Some(i);
                    break;
                }
                largest = largest.max(self.d[i].abs()).max(self.e[i].abs());
            }
            let l = match split {
                Some(i) if i + 1 == m => {
                    end -= 1;
                    continue;
                }
                Some(i) => i + 1,
                None => 0,
            };
            if l + 1 == m {
                let svd = triangle_svd(self.d[l], self.e[l], self.d[m]);
                (self.d[l], self.e[l], self.d[m]) = (svd.larger, 0.0, svd.smaller);
                self.turn_v(l, svd.right);
                self.turn_u(l, svd.left);
                end -= 2;
                continue;
            }
            if l > old.1 || m < old.0 {
                chase = if self.d[l].abs() >= self.d[m].abs() {
                    Chase::Down
                } else {
                    Chase::Up
                };
            }
            let Some(smallest) = self.smallest_within(l, m, chase, relative) else {
                continue;
            };
            old = (l, m);
            if work_left < m - l {
                return self.e.iter().filter(|&&e| e != 0.0).count() as i32;
            }
            work_left -= m - l;
            let shift = self.shift(
                l,
                m,
                chase,
                n as f64 * relative * (smallest / largest),
                relative,
            );
            match (chase, shift == 0.0) {
                (Chase::Down, true) => self.down_without_shift(l, m),
                (Chase::Up, true) => self.up_without_shift(l, m),
                (Chase::Down, false) => self.down(l, m, shift),
                (Chase::Up, false) => self.up(l, m, shift),
            }
            let last = if chase == Chase::Down { m - 1 } else { l };
            if self.e[last].abs() <= threshold {
                self.e[last] = 0.0;
            }
        }
        0
    }

    /// A lower bound of the block's singular values; none when an element beside the diagonal
    /// vanished on the way.
    fn smallest_within(&mut self, l: usize, m: usize, chase: Chase, relative: f64) -> Option<f64> {
        let (end, end_d) = match chase {
            Chase::Down => (m - 1, m),
            Chase::Up => (l, l),
        };
        if self.e[end].abs() <= relative * self.d[end_d].abs() {
            self.e[end] = 0.0;
            return None;
        }
        let mut mu = match chase {
            Chase::Down => self.d[l].abs(),
            Chase::Up => self.d[m].abs(),
        };
        let mut smallest = mu;
        for step in 0..m - l {
            let (i, next) = match chase {
                Chase::Down => (l + step, l + step + 1),
                Chase::Up => (m - 1 - step, m - 1 - step),
            };
            if self.e[i].abs() <= relative * mu {
                self.e[i] = 0.0;
                return None;
            }
            mu = self.d[next].abs() * (mu / (mu + self.e[i].abs()));
            smallest = smallest.min(mu);
        }
        Some(smallest)
    }

    /// The shift; zero where a shift would spoil small singular values.
    fn shift(&self, l: usize, m: usize, chase: Chase, spread: f64, relative: f64) -> f64 {
        let epsilon = self.precision.epsilon();
        if spread <= epsilon.max(0.01 * relative) {
            return 0.0;
        }
        let (first, (smaller, _)) = match chase {
            Chase::Down => (
                self.d[l].abs(),
                triangle_values(self.d[m - 1], self.e[m - 1], self.d[m]),
            ),
            Chase::Up => (
                self.d[m].abs(),
                triangle_values(self.d[l], self.e[l], self.d[l + 1]),
            ),
        };
        let ratio = smaller / first;
        if first > 0.0 && ratio * ratio < epsilon {
            return 0.0;
        }
        smaller
    }

    fn down_without_shift(&mut self, l: usize, m: usize) {
        let (mut c, mut old_c, mut old_s) = (1.0, 1.0, 0.0);
        for i in l..m {
            let (cosine, s, r) = rotation(self.d[i] * c, self.e[i]);
            c = cosine;
            if i > l {
                self.e[i - 1] = old_s * r;
            }
            let d;
            (old_c, old_s, d) = rotation(old_c * r, self.d[i + 1] * s);
            self.d[i] = d;
            self.turn_v(i, (c, s));
            self.turn_u(i, (old_c, old_s));
        }
        let h = self.d[m] * c;
        self.d[m] = h * old_c;
        self.e[m - 1] = h * old_s;
    }

    fn up_without_shift(&mut self, l: usize, m: usize) {
        let (mut c, mut old_c, mut old_s) = (1.0, 1.0, 0.0);
        for i in (l + 1..=m).rev() {
            let (cosine, s, r) = rotation(self.d[i] * c, self.e[i - 1]);
            c = cosine;
            if i < m {
                self.e[i] = old_s * r;
            }
            let d;
            (old_c, old_s, d) = rotation(old_c * r, self.d[i - 1] * s);
            self.d[i] = d;
            self.turn_v(i - 1, (old_c, -old_s));
            self.turn_u(i - 1, (c, -s));
        }
        let h = self.d[l] * c;
        self.d[l] = h * old_c;
        self.e[l] = h * old_s;
    }

    fn down(&mut self, l: usize, m: usize, shift: f64) {
        let d = self.d[l];
        let mut f = (d.abs() - shift) * (1f64.copysign(d) + shift / d);
        let mut g = self.e[l];
        for i in l..m {
            let (c, s, r) = rotation(f, g);
            if i > l {
                self.e[i - 1] = r;
            }
            f = c * self.d[i] + s * self.e[i];
            self.e[i] = c * self.e[i] - s * self.d[i];
            g = s * self.d[i + 1];
            self.d[i + 1] *= c;
            self.turn_v(i, (c, s));
            let (c, s, r) = rotation(f, g);
            self.d[i] = r;
            f = c * self.e[i] + s * self.d[i + 1];
            self.d[i + 1] = c * self.d[i + 1] - s * self.e[i];
            if i + 1 < m {
                g = s * self.e[i + 1];
                self.e[i + 1] *= c;
            }
            self.turn_u(i, (c, s));
        }
        self.e[m - 1] = f;
    }

    fn up(&mut self, l: usize, m: usize, shift: f64) {
        let d = self.d[m];
        let mut f = (d.abs() - shift) * (1f64.copysign(d) + shift / d);
        let mut g = self.e[m - 1];
        for i in (l + 1..=m).rev() {
            let (c, s, r) = rotation(f, g);
            if i < m {
                self.e[i] = r;
            }
            f = c * self.d[i] + s * self.e[i - 1];
            self.e[i - 1] = c * self.e[i - 1] - s * self.d[i];
            g = s * self.d[i - 1];
            self.d[i - 1] *= c;
            self.turn_u(i - 1, (c, -s));
            let (c, s, r) = rotation(f, g);
            self.d[i] = r;
            f = c * self.e[i - 1] + s * self.d[i - 1];
            self.d[i - 1] = c * self.d[i - 1] - s * self.e[i - 1];
            if i > l + 1 {
                g = s * self.e[i - 2];
                self.e[i - 2] *= c;
            }
            self.turn_v(i - 1, (c, -s));
        }
        self.e[l] = f;
    }
}
