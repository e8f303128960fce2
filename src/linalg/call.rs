//! The calls into LAPACK that JAX emits on CPUs, by name: `lapack_sgetrf_ffi` and its kin.
//!
//! Matrices are the last two dimensions, their columns one after the other; dimensions before them
//! are batches. What the bytes of an operand or a result are does not depend on a layout: a call is
//! given memory as it lies there.

use crate::linalg::attributes::Attributes;
use crate::linalg::eigen;
use crate::linalg::hessenberg;
use crate::linalg::lu;
use crate::linalg::lu::Triangle;
use crate::linalg::matrix::Matrix;
use crate::linalg::memory::Element;
use crate::linalg::memory::Reader;
use crate::linalg::memory::Writer;
use crate::linalg::qr;
use crate::linalg::scalar::Complex;
use crate::linalg::scalar::Precision;
use crate::linalg::schur;
use crate::linalg::schur::SchurScalar;
use crate::linalg::svd;
use crate::linalg::svd::Method;
use crate::linalg::svd::Vectors;
use crate::linalg::symmetric;
use crate::linalg::tridiagonal;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;

/// What is computed, with the attributes that say how.
#[derive(Clone, Copy, Debug)]
enum Routine {
    Trsm { triangle: Triangle, left: bool },
    Getrf,
    Geqrf,
    Geqp3,
    Orgqr,
    Ormqr { left: bool, adjoint: bool },
    Potrf { lower: bool },
    Gesvd { vectors: Vectors, method: Method },
    Syevd { lower: bool, vectors: bool },
    Geev { left: bool, right: bool },
    Gees { vectors: bool },
    Gehrd { low: usize, high: usize },
    Sytrd { lower: bool },
    Gtsv,
    Perturbed,
}

/// A call, ready to be run any number of times.
#[derive(Debug)]
pub struct Call {
    routine: Routine,
    ty: PrimitiveType,
    /// Matrices in the batch.
    batch: usize,
    /// Rows and columns of the last operand that is a matrix, and what else the routine counts.
    rows: usize,
    cols: usize,
    inner: usize,
    /// Bytes of each operand, and of each result, for one matrix of the batch.
    operands: Vec<usize>,
    results: Vec<usize>,
}

/// The memory of one matrix of a batch.
pub struct Item<'a> {
    operands: Vec<&'a [u8]>,
    results: Vec<&'a mut [u8]>,
}

/// Routines that have one name for all types.
const PLAIN: &[&str] = &[
    "trsm", "getrf", "geqrf", "geqp3", "potrf", "gesdd", "gesvd", "geev", "gees", "gehrd", "gtsv",
];

/// Routines whose names differ: of real types, and of complex ones.
const PAIRED: &[(&str, &str)] = &[
    ("orgqr", "ungqr"),
    ("ormqr", "unmqr"),
    ("syevd", "heevd"),
    ("sytrd", "hetrd"),
];

/// The routine that solves singular tridiagonal systems, for all types.
const PERTURBED: &str = "tridiagonal_solve_perturbed_ffi";

/// The routine of a target under its real name, and the element type unless any will do.
fn target_parts(target: &str) -> Option<(&'static str, Option<PrimitiveType>)> {
    if target == PERTURBED {
        return Some(("perturbed", None));
    }
    let rest = target.strip_prefix("lapack_")?.strip_suffix("_ffi")?;
    let ty = match rest.chars().next()? {
        's' => PrimitiveType::F32,
        'd' => PrimitiveType::F64,
        'c' => PrimitiveType::C64,
        'z' => PrimitiveType::C128,
        _ => return None,
    };
    let name = &rest[1..];
    let plain = PLAIN.iter().copied().find(|&plain| plain == name);
    let paired = || {
        let own = |pair: &&(&str, &str)| name == if ty.is_complex() { pair.1 } else { pair.0 };
        PAIRED.iter().find(own).map(|pair| pair.0)
    };
    Some((plain.or_else(paired)?, Some(ty)))
}

/// Whether a target is one of these calls.
pub fn is_known(target: &str) -> bool {
    target_parts(target).is_some()
}

impl Routine {
    fn new(name: &str, attributes: &Attributes) -> Result<Self, String> {
        let lower = || Ok::<_, String>(attributes.letter("uplo", "LU")? == 'L');
        let flag = |name: &str| attributes.letter(name, "NV").map(|c| c == 'V');
        let svd = |method: Method| {
            let vectors = match attributes.letter("mode", "ANS")? {
                'A' => Vectors::Full,
                'S' => Vectors::Thin,
                _ => Vectors::None,
            };
            Ok::<_, String>(Self::Gesvd { vectors, method })
        };
        Ok(match name {
            "trsm" => Self::Trsm {
                triangle: Triangle {
                    lower: lower()?,
                    transposed: match attributes.letter("trans_x", "NTC")? {
                        'N' => None,
                        letter => Some(letter == 'C'),
                    },
                    unit: attributes.letter("diag", "NU")? == 'U',
                },
                left: attributes.letter("side", "LR")? == 'L',
            },
            "getrf" => Self::Getrf,
            "geqrf" => Self::Geqrf,
            "geqp3" => Self::Geqp3,
            "orgqr" => Self::Orgqr,
            "ormqr" => Self::Ormqr {
                left: attributes.number("left")? != 0,
                adjoint: attributes.number("transpose")? != 0,
            },
            "potrf" => Self::Potrf { lower: lower()? },
            "gesdd" => svd(Method::Divide)?,
            "gesvd" => svd(Method::Steps)?,
            "syevd" => Self::Syevd {
                lower: lower()?,
                vectors: flag("mode")?,
            },
            "geev" => Self::Geev {
                left: flag("compute_left")?,
                right: flag("compute_right")?,
            },
            "gees" => {
                attributes.letter("sort", "N")?;
                Self::Gees {
                    vectors: flag("mode")?,
                }
            }
            "gehrd" => {
                let bound = |name: &str| {
                    let number = attributes.number(name)?;
                    usize::try_from(number).map_err(|_| format!("`{name}` is {number}"))
                };
                Self::Gehrd {
                    low: bound("low")?,
                    high: bound("high")?,
                }
            }
            "sytrd" => Self::Sytrd { lower: lower()? },
            "gtsv" => Self::Gtsv,
            "perturbed" => Self::Perturbed,
            other => return Err(format!("`{other}` is no routine")),
        })
    }

    /// Which operand gives the sizes.
    fn main_operand(self) -> usize {
        match self {
            Self::Trsm { .. } => 1,
            Self::Ormqr { .. } => 2,
            Self::Gtsv | Self::Perturbed => 3,
            _ => 0,
        }
    }

    fn is_square(self) -> bool {
        matches!(
            self,
            Self::Potrf { .. }
                | Self::Syevd { .. }
                | Self::Geev { .. }
                | Self::Gees { .. }
                | Self::Gehrd { .. }
                | Self::Sytrd { .. }
        )
    }
}

/// An array of a call: its element and how many of them one matrix of the batch has.
type Part = (PrimitiveType, usize);

impl Call {
    /// Prepares a call of a target; none when the target is not one of these calls.
    ///
    /// # Errors
    /// What does not fit: attributes, element types or sizes.
    pub fn new(
        target: &str,
        config: &str,
        operands: &[&ArrayShape],
        results: &[&ArrayShape],
    ) -> Option<Result<Self, String>> {
        let (name, ty) = target_parts(target)?;
        let call = Self::prepare(name, ty, config, operands, results);
        Some(call.map_err(|what| format!("`{target}`: {what}")))
    }

    fn prepare(
        name: &str,
        ty: Option<PrimitiveType>,
        config: &str,
        operands: &[&ArrayShape],
        results: &[&ArrayShape],
    ) -> Result<Self, String> {
        let first = operands.first().ok_or("there is no operand")?;
        let ty = ty.unwrap_or(first.ty);
        let routine = Routine::new(name, &Attributes::parse(config)?)?;
        let main = operands.get(routine.main_operand());
        let main = main.ok_or_else(|| format!("there are {} operands", operands.len()))?;
        let Some((batch, &[rows, cols])) = main.dims.split_last_chunk() else {
            return Err(format!("`{main}` is not a matrix"));
        };
        let mut call = Self {
            routine,
            ty,
            batch: batch.iter().product(),
            rows,
            cols,
            inner: 0,
            operands: Vec::new(),
            results: Vec::new(),
        };
        if routine.is_square() && rows != cols {
            return Err(format!("`{main}` is not square"));
        }
        call.count_inner(operands)?;
        let (wanted_operands, wanted_results) = call.parts(results);
        call.operands = call.fit("operand", operands, &wanted_operands)?;
        call.results = call.fit("result", results, &wanted_results)?;
        Ok(call)
    }

    /// Reflections of a packed Q, and the rows that are reduced to Hessenberg form.
    fn count_inner(&mut self, operands: &[&ArrayShape]) -> Result<(), String> {
        match self.routine {
            Routine::Orgqr | Routine::Ormqr { .. } => {
                let taus = operands.get(1).and_then(|taus| taus.dims.last());
                self.inner = *taus.ok_or("there are no taus")?;
                let most = match self.routine {
                    Routine::Ormqr { left: true, .. } => self.rows,
                    Routine::Orgqr if self.rows < self.cols => {
                        return Err("Q has more columns than rows".to_owned());
                    }
                    _ => self.cols,
                };
                if self.inner > most {
                    return Err(format!("{} reflections, at most {most} fit", self.inner));
                }
            }
            Routine::Gehrd { low, high } => {
                let n = self.rows;
                let fits = n == 0 || (1 <= low && low <= high && high <= n);
                if !fits {
                    return Err(format!("rows {low} to {high} of {n}"));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// What operands and results there must be. Results that only hold vectors when they are wanted
    /// are taken as they are when not.
    fn parts(&self, results: &[&ArrayShape]) -> (Vec<Part>, Vec<Part>) {
        let (rows, cols) = (self.rows, self.cols);
        // Where a dimension is zero, the square of another may be more than there is memory.
        let area = usize::saturating_mul;
        let (count, matrix) = (rows.min(cols), (self.ty, area(rows, cols)));
        let square = (self.ty, area(cols, cols));
        let less = cols.saturating_sub(1);
        let real = self.ty.real_part();
        let complex = self.ty.complex_of().unwrap_or(self.ty);
        let int = |n: usize| (PrimitiveType::S32, n);
        let vector = |n: usize| (self.ty, n);
        let as_given = |i: usize| {
            let batch = self.batch.max(1);
            (
                self.ty,
                results
                    .get(i)
                    .map_or(0, |shape| shape.element_count() / batch),
            )
        };
        match self.routine {
            Routine::Trsm { left, .. } => {
                let n = if left { rows } else { cols };
                (vec![vector(area(n, n)), matrix], vec![matrix])
            }
            Routine::Getrf => (vec![matrix], vec![matrix, int(count), int(1)]),
            Routine::Geqrf => (vec![matrix], vec![matrix, vector(count)]),
            Routine::Geqp3 => (
                vec![matrix, int(cols)],
                vec![matrix, int(cols), vector(count)],
            ),
            Routine::Orgqr => (vec![matrix, vector(self.inner)], vec![matrix]),
            Routine::Ormqr { left, .. } => {
                let n = if left { rows } else { cols };
                (
                    vec![vector(area(n, self.inner)), vector(self.inner), matrix],
                    vec![matrix],
                )
            }
            Routine::Potrf { .. } => (vec![matrix], vec![matrix, int(1)]),
            Routine::Gesvd { vectors, .. } => {
                let (u, vh) = match vectors {
                    Vectors::None => (as_given(2), as_given(3)),
                    Vectors::Thin => (vector(area(rows, count)), vector(area(count, cols))),
                    Vectors::Full => (vector(area(rows, rows)), square),
                };
                (vec![matrix], vec![matrix, (real, count), u, vh, int(1)])
            }
            Routine::Syevd { .. } => (vec![matrix], vec![matrix, (real, cols), int(1)]),
            Routine::Geev { .. } => {
                let vectors = (complex, area(cols, cols));
                let mut out = vec![vector(cols), vectors, vectors, int(1)];
                if !self.ty.is_complex() {
                    out.insert(0, vector(cols));
                }
                (vec![matrix], out)
            }
            Routine::Gees { .. } => {
                let mut out = vec![matrix, matrix, vector(cols), int(1), int(1)];
                if !self.ty.is_complex() {
                    out.insert(2, vector(cols));
                }
                (vec![matrix], out)
            }
            Routine::Gehrd { .. } => (vec![matrix], vec![matrix, vector(less), int(1)]),
            Routine::Sytrd { .. } => (
                vec![matrix],
                vec![matrix, (real, cols), (real, less), vector(less), int(1)],
            ),
            Routine::Gtsv => {
                let all = vec![vector(rows), vector(rows), vector(rows), matrix];
                let mut out = all.clone();
                out.push(int(1));
                (all, out)
            }
            Routine::Perturbed => (
                vec![vector(rows), vector(rows), vector(rows), matrix],
                vec![matrix],
            ),
        }
    }

    /// Bytes of each array for one matrix, when arrays are what is wanted.
    fn fit(
        &self,
        what: &str,
        given: &[&ArrayShape],
        wanted: &[Part],
    ) -> Result<Vec<usize>, String> {
        if given.len() != wanted.len() {
            let (given, wanted) = (given.len(), wanted.len());
            return Err(format!("{given} {what}s, wanted {wanted}"));
        }
        let pairs = given.iter().zip(wanted).enumerate();
        let sizes = pairs.map(|(i, (shape, &(ty, count)))| {
            let all = count.checked_mul(self.batch);
            if shape.ty != ty || Some(shape.element_count()) != all {
                let batch = self.batch;
                return Err(format!(
                    "{what} {i} is `{shape}`, wanted {batch} times {count} elements of {ty}"
                ));
            }
            Ok(count * ty.byte_width())
        });
        sizes.collect()
    }

    /// The memory of each matrix of the batch.
    ///
    /// # Errors
    /// When an array does not have the bytes of its shape.
    pub fn items<'a>(
        &self,
        operands: &[&'a [u8]],
        results: Vec<&'a mut [u8]>,
    ) -> Result<Vec<Item<'a>>, String> {
        let fits = |sizes: &[usize], given: &[usize]| {
            sizes.len() == given.len()
                && sizes
                    .iter()
                    .zip(given)
                    .all(|(&size, &bytes)| size * self.batch == bytes)
        };
        let operand_sizes: Vec<usize> = operands.iter().map(|o| o.len()).collect();
        let result_sizes: Vec<usize> = results.iter().map(|r| r.len()).collect();
        if !fits(&self.operands, &operand_sizes) || !fits(&self.results, &result_sizes) {
            return Err("an array has more or fewer bytes than its shape says".to_owned());
        }
        let mut rest = results;
        let items = (0..self.batch).map(|i| {
            let operands = operands.iter().zip(&self.operands);
            let results = rest.iter_mut().zip(&self.results).map(|(rest, &size)| {
                let (item, after) = std::mem::take(rest).split_at_mut(size);
                *rest = after;
                item
            });
            Item {
                operands: operands
                    .map(|(o, &size)| &o[i * size..(i + 1) * size])
                    .collect(),
                results: results.collect(),
            }
        });
        Ok(items.collect())
    }

    /// Runs the routine on one matrix.
    pub fn run(&self, item: &mut Item<'_>) {
        let mut reader = Reader::new(&item.operands);
        let mut writer = Writer::new(&mut item.results);
        match self.ty {
            PrimitiveType::F32 => self.run_as::<f64, f32>(&mut reader, &mut writer),
            PrimitiveType::F64 => self.run_as::<f64, f64>(&mut reader, &mut writer),
            PrimitiveType::C64 => self.run_as::<Complex, f32>(&mut reader, &mut writer),
            _ => self.run_as::<Complex, f64>(&mut reader, &mut writer),
        }
    }

    fn run_as<T: SchurScalar, E: Element>(&self, from: &mut Reader<'_>, to: &mut Writer<'_, '_>) {
        let (rows, cols) = (self.rows, self.cols);
        let mut read =
            |rows: usize, cols: usize| Matrix::new(rows, cols, from.numbers::<T, E>(rows * cols));
        let precision = Precision {
            ulp: E::ULP,
            smallest: E::SMALLEST,
        };
        match self.routine {
            Routine::Trsm { triangle, left } => {
                let n = if left { rows } else { cols };
                let (a, mut b) = (read(n, n), read(rows, cols));
                lu::trsm(&a, &mut b, triangle, left);
                to.numbers::<T, E>(b.data());
            }
            Routine::Getrf => {
                let mut a = read(rows, cols);
                let mut pivots = vec![0; rows.min(cols)];
                let info = lu::getrf(&mut a, &mut pivots);
                to.numbers::<T, E>(a.data());
                to.ints(&pivots);
                to.ints(&[info]);
            }
            Routine::Geqrf => {
                let mut a = read(rows, cols);
                let taus = qr::geqrf(&mut a);
                to.numbers::<T, E>(a.data());
                to.numbers::<T, E>(&taus);
            }
            Routine::Geqp3 => {
                let mut a = read(rows, cols);
                let mut pivots = from.ints();
                let taus = qr::geqp3(&mut a, &mut pivots);
                to.numbers::<T, E>(a.data());
                to.ints(&pivots);
                to.numbers::<T, E>(&taus);
            }
            Routine::Orgqr => {
                let (mut a, taus) = (read(rows, cols), read(self.inner, 1));
                qr::orgqr(&mut a, taus.data());
                to.numbers::<T, E>(a.data());
            }
            Routine::Ormqr { left, adjoint } => {
                let n = if left { rows } else { cols };
                let (a, taus) = (read(n, self.inner), read(self.inner, 1));
                let mut c = read(rows, cols);
                qr::ormqr(&a, taus.data(), &mut c, left, adjoint);
                to.numbers::<T, E>(c.data());
            }
            Routine::Potrf { lower } => {
                let mut a = read(rows, cols);
                let info = lu::potrf(&mut a, lower);
                to.numbers::<T, E>(a.data());
                to.ints(&[info]);
            }
            Routine::Gesvd { vectors, method } => {
                let mut a = read(rows, cols);
                let original = a.clone();
                let svd = svd::gesvd(&mut a, vectors, method, precision);
                to.numbers::<T, E>(original.data());
                to.numbers::<f64, E>(&svd.values);
                for vectors in [&svd.u, &svd.vh] {
                    to.numbers::<T, E>(vectors.data());
                }
                to.ints(&[svd.info]);
            }
            Routine::Syevd { lower, vectors } => {
                let mut a = read(rows, cols);
                let mut values = vec![0.0; cols];
                let info = symmetric::syevd(&mut a, lower, vectors, &mut values, precision);
                to.numbers::<T, E>(a.data());
                to.numbers::<f64, E>(&values);
                to.ints(&[info]);
            }
            Routine::Geev { left, right } => {
                let mut a = read(rows, cols);
                let eigen = eigen::geev(&mut a, left, right, precision);
                write_values::<T, E>(&eigen.values, to);
                for vectors in [&eigen.left, &eigen.right] {
                    to.numbers::<Complex, E>(vectors.as_ref().map_or(&[], |v| v.data()));
                }
                to.ints(&[eigen.info]);
            }
            Routine::Gees { vectors } => {
                let mut a = read(rows, cols);
                let mut values = vec![Complex::default(); cols];
                let (z, info) = schur::gees(&mut a, vectors, &mut values, precision);
                to.numbers::<T, E>(a.data());
                to.numbers::<T, E>(z.as_ref().map_or(&[], |z| z.data()));
                write_values::<T, E>(&values, to);
                to.ints(&[0]);
                to.ints(&[info]);
            }
            Routine::Gehrd { low, high } => {
                let mut a = read(rows, cols);
                let (low, high) = (low.saturating_sub(1), high.saturating_sub(1));
                let taus = hessenberg::gehrd(&mut a, low, high);
                to.numbers::<T, E>(a.data());
                to.numbers::<T, E>(&taus);
                to.ints(&[0]);
            }
            Routine::Sytrd { lower } => {
                let mut a = read(rows, cols);
                let out = symmetric::sytrd(&mut a, lower);
                to.numbers::<T, E>(a.data());
                to.numbers::<f64, E>(&out.diagonal);
                to.numbers::<f64, E>(&out.beside);
                to.numbers::<T, E>(&out.taus);
                to.ints(&[0]);
            }
            Routine::Gtsv => {
                let [mut lower, mut diagonal, mut upper] = [(); 3].map(|()| read(rows, 1));
                let mut b = read(rows, cols);
                let info = tridiagonal::gtsv(
                    lower.data_mut(),
                    diagonal.data_mut(),
                    upper.data_mut(),
                    &mut b,
                );
                for out in [&lower, &diagonal, &upper, &b] {
                    to.numbers::<T, E>(out.data());
                }
                to.ints(&[info]);
            }
            Routine::Perturbed => {
                let [lower, diagonal, upper] = [(); 3].map(|()| read(rows, 1));
                let mut b = read(rows, cols);
                tridiagonal::solve_perturbed(
                    lower.data(),
                    diagonal.data(),
                    upper.data(),
                    &mut b,
                    precision,
                );
                to.numbers::<T, E>(b.data());
            }
        }
    }
}

/// Eigenvalues of complex matrices as one array, of real ones as real and imaginary parts.
fn write_values<T: SchurScalar, E: Element>(values: &[Complex], to: &mut Writer<'_, '_>) {
    if T::IS_COMPLEX {
        to.numbers::<Complex, E>(values);
        return;
    }
    for part in [|x: &Complex| x.re, |x: &Complex| x.im] {
        let part: Vec<f64> = values.iter().map(part).collect();
        to.numbers::<f64, E>(&part);
    }
}
