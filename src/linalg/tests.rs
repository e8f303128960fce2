//! Calls compared with what jaxlib gives, and factors multiplied out.
//!
//! `reference.txt` has calls of jaxlib 0.10.2: `call` with target and attributes, then a line for
//! each operand (`in`) and result (`out`, or `any` where LAPACK or rounding leaves it open), elements
//! as they lie in memory.

use crate::linalg::Call;
use crate::linalg::Matrix;
use crate::linalg::eigen::geev;
use crate::linalg::hessenberg::gehrd;
use crate::linalg::lu::getrf;
use crate::linalg::lu::potrf;
use crate::linalg::qr::geqp3;
use crate::linalg::qr::geqrf;
use crate::linalg::qr::ormqr;
use crate::linalg::scalar::Complex;
use crate::linalg::scalar::Precision;
use crate::linalg::scalar::Scalar;
use crate::linalg::schur::SchurScalar;
use crate::linalg::schur::gees;
use crate::linalg::svd::Method;
use crate::linalg::svd::Vectors;
use crate::linalg::svd::gesvd;
use crate::linalg::symmetric::syevd;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;

/// An array of the reference.
struct Array {
    shape: ArrayShape,
    numbers: Vec<f64>,
}

impl Array {
    fn read(line: &str) -> Self {
        let mut words = line.split(' ');
        let shape = words.next().expect("a shape");
        let (ty, dims) = shape
            .trim_end_matches(']')
            .split_once('[')
            .expect("dimensions");
        let dims = dims.split(',').filter(|d| !d.is_empty());
        let dims = dims.map(|d| d.parse::<usize>().expect("a size"));
        let ty = PrimitiveType::from_name(ty).expect("a type");
        let numbers = words.flat_map(|word| word.split(','));
        Self {
            shape: ArrayShape::new(ty, dims),
            numbers: numbers.map(|n| n.parse().expect("a number")).collect(),
        }
    }

    fn is_wide(&self) -> bool {
        matches!(self.shape.ty, PrimitiveType::F64 | PrimitiveType::C128)
    }

    fn bytes(&self) -> Vec<u8> {
        let numbers = self.numbers.iter();
        match self.shape.ty {
            PrimitiveType::S32 => numbers.flat_map(|&n| (n as i32).to_le_bytes()).collect(),
            _ if self.is_wide() => numbers.flat_map(|n| n.to_le_bytes()).collect(),
            _ => numbers.flat_map(|&n| (n as f32).to_le_bytes()).collect(),
        }
    }

    fn numbers_of(&self, bytes: &[u8]) -> Vec<f64> {
        let four = |b: &[u8]| [b[0], b[1], b[2], b[3]];
        let words = bytes.chunks_exact(4);
        match self.shape.ty {
            PrimitiveType::S32 => words
                .map(|b| f64::from(i32::from_le_bytes(four(b))))
                .collect(),
            _ if self.is_wide() => {
                let words = bytes.chunks_exact(8);
                let eight = |b: &[u8]| <[u8; 8]>::try_from(b).expect("eight bytes");
                words.map(|b| f64::from_le_bytes(eight(b))).collect()
            }
            _ => words
                .map(|b| f64::from(f32::from_le_bytes(four(b))))
                .collect(),
        }
    }

    /// Bytes of the whole array.
    fn size(&self) -> usize {
        self.shape.element_count() * self.shape.ty.byte_width()
    }
}

fn compare(call: &str, place: usize, wanted: &Array, bytes: &[u8]) {
    let got = wanted.numbers_of(bytes);
    assert_eq!(got.len(), wanted.numbers.len(), "{call}: result {place}");
    let largest = wanted.numbers.iter().fold(0f64, |a, b| a.max(b.abs()));
    let tolerance = match wanted.shape.ty {
        PrimitiveType::S32 => 0.0,
        _ if wanted.is_wide() => 1e-14 * largest.max(1.0),
        _ => 4e-6 * largest.max(1.0),
    };
    for (got, wanted) in got.iter().zip(&wanted.numbers) {
        let fits = (got - wanted).abs() <= tolerance || got.is_nan() && wanted.is_nan();
        assert!(fits, "{call}: result {place}: {got} instead of {wanted}");
    }
}

#[test]
fn results_are_those_of_jaxlib() {
    let mut lines = include_str!("reference.txt").lines().peekable();
    let mut calls = 0;
    while let Some(line) = lines.next() {
        let line = line.strip_prefix("call ").expect("a call");
        let (target, config) = line.split_once(' ').expect("attributes");
        let mut operands = Vec::new();
        let mut results = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("call")) {
            let (kind, array) = line.split_once(' ').expect("an array");
            let array = Array::read(array);
            if kind == "in" {
                operands.push(array);
            } else {
                results.push((kind == "out", array));
            }
        }
        let bytes: Vec<Vec<u8>> = operands.iter().map(Array::bytes).collect();
        let mut memory: Vec<Vec<u8>> = results.iter().map(|(_, r)| vec![7; r.size()]).collect();
        let operand_shapes: Vec<&ArrayShape> = operands.iter().map(|o| &o.shape).collect();
        let result_shapes: Vec<&ArrayShape> = results.iter().map(|(_, r)| &r.shape).collect();
        let call = Call::new(target, config, &operand_shapes, &result_shapes);
        let call = call.expect(target).expect(target);
        let given: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
        let items = call.items(&given, memory.iter_mut().map(Vec::as_mut_slice).collect());
        items
            .expect("memory fits")
            .iter_mut()
            .for_each(|item| call.run(item));
        for (i, ((is_certain, wanted), bytes)) in results.iter().zip(&memory).enumerate() {
            if *is_certain {
                compare(line, i, wanted, bytes);
            }
        }
        calls += 1;
    }
    assert_eq!(calls, 72);
}

/// Numbers between -1 and 1 that are the same every time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    fn matrix<T: Scalar>(&mut self, rows: usize, cols: usize) -> Matrix<T> {
        let data = (0..rows * cols).map(|_| T::from_parts(self.next(), self.next()));
        Matrix::new(rows, cols, data.collect())
    }
}

fn assert_near<T: Scalar>(got: &Matrix<T>, wanted: &Matrix<T>, what: &str) {
    assert_eq!(
        (got.rows(), got.cols()),
        (wanted.rows(), wanted.cols()),
        "{what}"
    );
    let size = got.rows().max(got.cols()).max(1) as f64;
    for (got, wanted) in got.data().iter().zip(wanted.data()) {
        let distance = (*got - *wanted).abs();
        assert!(
            distance <= 2e-14 * size,
            "{what}: {got:?} instead of {wanted:?}"
        );
    }
}

fn assert_unitary<T: Scalar>(q: &Matrix<T>, what: &str) {
    let product = q.adjoint().multiply(q);
    assert_near(&product, &Matrix::identity(q.cols(), q.cols()), what);
}

fn diagonal<T: Scalar>(values: &[f64], rows: usize, cols: usize) -> Matrix<T> {
    let mut out = Matrix::zeros(rows, cols);
    for (i, &value) in values.iter().enumerate() {
        out[(i, i)] = T::real(value);
    }
    out
}

const SIZES: [(usize, usize); 8] = [
    (0, 0),
    (1, 1),
    (0, 3),
    (3, 0),
    (7, 7),
    (40, 9),
    (9, 40),
    (70, 70),
];

fn rectangles<T: Scalar>() {
    let mut numbers = Numbers(1);
    for (rows, cols) in SIZES {
        let a = numbers.matrix::<T>(rows, cols);
        let count = rows.min(cols);
        let what = format!("{rows} x {cols}");
        // P A = L U.
        let (mut lu, mut pivots) = (a.clone(), vec![0; count]);
        assert_eq!(getrf(&mut lu, &mut pivots), 0, "{what}");
        let (mut lower, mut upper) = (Matrix::identity(rows, count), Matrix::zeros(count, cols));
        for j in 0..cols {
            for i in 0..rows {
                if i > j && j < count {
                    lower[(i, j)] = lu[(i, j)];
                    assert!(
                        lu[(i, j)].abs() <= 2f64.sqrt() + 1e-12,
                        "{what}: the pivot was larger"
                    );
                } else if i <= j {
                    upper[(i, j)] = lu[(i, j)];
                }
            }
        }
        let mut permuted = a.clone();
        for (i, &pivot) in pivots.iter().enumerate() {
            permuted.swap_rows(i, pivot as usize - 1, 0..cols);
        }
        assert_near(&lower.multiply(&upper), &permuted, &what);
        // A = Q R, and A P = Q R with a descending diagonal.
        for pivoted in [false, true] {
            let (mut qr, mut order) = (a.clone(), vec![0; cols]);
            let taus = if pivoted {
                geqp3(&mut qr, &mut order)
            } else {
                order = (1..=cols as i32).collect();
                geqrf(&mut qr)
            };
            let mut product = Matrix::zeros(rows, cols);
            for j in 0..cols {
                for i in 0..rows.min(j + 1) {
                    product[(i, j)] = qr[(i, j)];
                }
            }
            for i in 1..if pivoted { count } else { 0 } {
                assert!(
                    qr[(i, i)].abs() <= qr[(i - 1, i - 1)].abs() * (1.0 + 1e-12),
                    "{what}"
                );
            }
            ormqr(&qr, &taus, &mut product, true, false);
            let wanted: Vec<T> = order
                .iter()
                .flat_map(|&j| a.col(j as usize - 1).to_vec())
                .collect();
            assert_near(&product, &Matrix::new(rows, cols, wanted), &what);
        }
        for method in [Method::Divide, Method::Steps] {
            for vectors in [Vectors::None, Vectors::Thin, Vectors::Full] {
                let svd = gesvd(&mut a.clone(), vectors, method, Precision::DOUBLE);
                assert_eq!(svd.info, 0, "{what}");
                assert!(
                    svd.values.is_sorted_by(|a, b| a >= b) && svd.values.iter().all(|&x| x >= 0.0)
                );
                if vectors == Vectors::None {
                    continue;
                }
                assert_unitary(&svd.u, &what);
                assert_unitary(&svd.vh.adjoint(), &what);
                let middle = diagonal(&svd.values, svd.u.cols(), svd.vh.rows());
                assert_near(&svd.u.multiply(&middle).multiply(&svd.vh), &a, &what);
            }
        }
    }
}

fn squares<T: SchurScalar>() {
    let mut numbers = Numbers(2);
    for n in [0, 1, 2, 3, 8, 33, 90] {
        let a = numbers.matrix::<T>(n, n);
        let what = format!("{n} x {n}");
        let adjoint = a.adjoint();
        let sum = a.data().iter().zip(adjoint.data()).map(|(&a, &b)| a + b);
        let hermitian = Matrix::new(n, n, sum.collect());
        for lower in [true, false] {
            // H V = V D, from one triangle.
            let (mut vectors, mut values) = (hermitian.clone(), vec![0.0; n]);
            for j in 0..n {
                for i in 0..n {
                    if (i > j) != lower && i != j {
                        vectors[(i, j)] = T::real(1e9);
                    }
                }
            }
            let mut other = vectors.clone();
            assert_eq!(
                syevd(&mut vectors, lower, true, &mut values, Precision::DOUBLE),
                0,
                "{what}"
            );
            assert!(values.is_sorted(), "{what}");
            assert_unitary(&vectors, &what);
            let right = vectors.multiply(&diagonal(&values, n, n));
            assert_near(&hermitian.multiply(&vectors), &right, &what);
            let mut alone = vec![0.0; n];
            assert_eq!(
                syevd(&mut other, lower, false, &mut alone, Precision::DOUBLE),
                0,
                "{what}"
            );
            assert_near(
                &diagonal::<f64>(&alone, n, n),
                &diagonal(&values, n, n),
                &what,
            );
            // A A^H + 1 = L L^H; the other triangle stays.
            let mut positive = a.multiply(&a.adjoint());
            for i in 0..n {
                positive[(i, i)] += T::one();
            }
            let mut factor = positive.clone();
            assert_eq!(potrf(&mut factor, lower), 0, "{what}");
            for j in 0..n {
                for i in 0..n {
                    if (i > j) != lower && i != j {
                        assert_eq!(factor[(i, j)], positive[(i, j)], "{what}");
                        factor[(i, j)] = T::zero();
                    }
                }
            }
            let product = if lower {
                factor.multiply(&factor.adjoint())
            } else {
                factor.adjoint().multiply(&factor)
            };
            assert_near(&product, &positive, &what);
        }
        // A = Z T Z^H.
        let (mut t, mut values) = (a.clone(), vec![Complex::default(); n]);
        let (z, info) = gees(&mut t, true, &mut values, Precision::DOUBLE);
        let z = z.expect("vectors");
        assert_eq!(info, 0, "{what}");
        assert_unitary(&z, &what);
        assert_near(&z.multiply(&t).multiply(&z.adjoint()), &a, &what);
        for j in 0..n {
            let begin = j + if T::IS_COMPLEX { 1 } else { 2 };
            assert!((begin..n).all(|i| t[(i, j)] == T::zero()), "{what}");
        }
        // A V = V D, U^H A = D U^H.
        let eigen = geev(&mut a.clone(), true, true, Precision::DOUBLE);
        assert_eq!(eigen.info, 0, "{what}");
        let wide = Matrix::new(n, n, a.data().iter().map(|x| x.complex()).collect());
        let (left, right) = (eigen.left.expect("left"), eigen.right.expect("right"));
        let mut middle = Matrix::zeros(n, n);
        for (i, &value) in eigen.values.iter().enumerate() {
            middle[(i, i)] = value;
        }
        assert_near(&wide.multiply(&right), &right.multiply(&middle), &what);
        let adjoint = left.adjoint();
        assert_near(&adjoint.multiply(&wide), &middle.multiply(&adjoint), &what);
        if n > 0 {
            let mut h = a.clone();
            assert_eq!(gehrd(&mut h, 0, n - 1).len(), n - 1, "{what}");
        }
    }
}

#[test]
fn factors_of_real_rectangles_multiply_to_the_matrix() {
    rectangles::<f64>();
}

#[test]
fn factors_of_complex_rectangles_multiply_to_the_matrix() {
    rectangles::<Complex>();
}

#[test]
fn decompositions_of_real_squares_hold() {
    squares::<f64>();
}

#[test]
fn decompositions_of_complex_squares_hold() {
    squares::<Complex>();
}

#[test]
fn defective_matrices_have_finite_vectors() {
    for n in [2, 30] {
        let mut jordan = Matrix::<f64>::zeros(n, n);
        for i in 1..n {
            jordan[(i - 1, i)] = 1.0;
        }
        let eigen = geev(&mut jordan, true, true, Precision::DOUBLE);
        assert_eq!(eigen.info, 0);
        for vectors in [eigen.left, eigen.right] {
            assert!(vectors.expect("vectors").is_finite());
        }
    }
}

#[test]
fn calls_that_do_not_fit_are_refused() {
    let square = ArrayShape::new(PrimitiveType::F32, [2, 2]);
    let info = ArrayShape::new(PrimitiveType::S32, []);
    let refused =
        |target: &str, config: &str, operands: &[&ArrayShape], results: &[&ArrayShape]| {
            let call = Call::new(target, config, operands, results);
            call.expect("a known target").expect_err("a refusal")
        };
    let ok = Call::new(
        "lapack_spotrf_ffi",
        "{uplo = 76 : ui8}",
        &[&square],
        &[&square, &info],
    );
    assert!(ok.expect("known").is_ok());
    let text = refused("lapack_spotrf_ffi", "{}", &[&square], &[&square, &info]);
    assert_eq!(text, "`lapack_spotrf_ffi`: the attribute `uplo` is missing");
    let text = refused(
        "lapack_spotrf_ffi",
        "{uplo = 76 : ui8}",
        &[&square],
        &[&square],
    );
    assert!(text.contains("1 results, wanted 2"), "{text}");
    let text = refused(
        "lapack_dpotrf_ffi",
        "{uplo = 76 : ui8}",
        &[&square],
        &[&square, &info],
    );
    assert!(text.contains("operand 0 is `f32[2,2]`"), "{text}");
    let wide = ArrayShape::new(PrimitiveType::F32, [2, 3]);
    let text = refused(
        "lapack_spotrf_ffi",
        "{uplo = 76 : ui8}",
        &[&wide],
        &[&wide, &info],
    );
    assert!(text.contains("is not square"), "{text}");
    assert!(refused("lapack_spotrf_ffi", "{uplo = 76 : ui8}", &[], &[]).contains("no operand"));
    for unknown in [
        "lapack_sorgxx_ffi",
        "lapack_corgqr_ffi",
        "lapack_spotrf",
        "cusolver_potrf_ffi",
    ] {
        assert!(Call::new(unknown, "", &[], &[]).is_none(), "{unknown}");
    }
}
