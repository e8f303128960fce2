//! Cholesky factors and triangular systems, in f64 (complex f64 for complex types).

use crate::base::Result;
use crate::eval::bits;
use crate::eval::complex;
use crate::eval::interpret::unsupported;
use crate::hlo::Instr;
use crate::hlo::Op;
use crate::hlo::TriangularTranspose;
use crate::literal::ArrayLiteral;
use crate::literal::number::Number;

type C = (f64, f64);

fn sub(a: C, b: C) -> C {
    (a.0 - b.0, a.1 - b.1)
}

fn conj(a: C) -> C {
    (a.0, -a.1)
}

fn rebuild(like: &ArrayLiteral, values: &[C]) -> ArrayLiteral {
    let is_complex = like.ty().is_complex();
    bits::build(like.shape(), |i| {
        let (re, im) = values[i];
        if is_complex {
            Number::Complex(re, im)
        } else {
            Number::Float(re)
        }
    })
}

pub(super) fn run(instr: &Instr, inputs: &[&ArrayLiteral]) -> Result<ArrayLiteral> {
    match &instr.op {
        Op::Cholesky { lower } => Ok(cholesky(inputs[0], *lower)),
        Op::TriangularSolve {
            left_side,
            lower,
            unit_diagonal,
            transpose,
        } => {
            let system = System {
                left_side: *left_side,
                lower: *lower,
                unit_diagonal: *unit_diagonal,
                transpose: *transpose,
            };
            Ok(system.solve(inputs[0], inputs[1]))
        }
        _ => Err(unsupported(instr, "this op")),
    }
}

/// The factor of `a = l l^H` (`u^H u`); the other triangle is zero. Reads one triangle. A matrix
/// that is not positive definite gives NaN throughout.
fn cholesky(a: &ArrayLiteral, lower: bool) -> ArrayLiteral {
    let n = a.shape().dims.last().copied().unwrap_or(0);
    let mut values = bits::pairs(a);
    for matrix in values.chunks_exact_mut((n * n).max(1)) {
        let source = matrix.to_vec();
        let read = |i: usize, j: usize| {
            if lower {
                source[i * n + j]
            } else {
                conj(source[j * n + i])
            }
        };
        let mut l = vec![(0.0, 0.0); n * n];
        let mut failed = false;
        for j in 0..n {
            let mut diagonal = read(j, j).0;
            for k in 0..j {
                let (re, im) = l[j * n + k];
                diagonal -= re * re + im * im;
            }
            failed |= diagonal <= 0.0 || diagonal.is_nan();
            let root = diagonal.sqrt();
            l[j * n + j] = (root, 0.0);
            for i in j + 1..n {
                let mut x = read(i, j);
                for k in 0..j {
                    x = sub(x, complex::multiply(l[i * n + k], conj(l[j * n + k])));
                }
                l[i * n + j] = (x.0 / root, x.1 / root);
            }
        }
        for i in 0..n {
            for j in 0..n {
                let value = if lower {
                    l[i * n + j]
                } else {
                    conj(l[j * n + i])
                };
                matrix[i * n + j] = if failed { (f64::NAN, f64::NAN) } else { value };
            }
        }
    }
    rebuild(a, &values)
}

struct System {
    left_side: bool,
    lower: bool,
    unit_diagonal: bool,
    transpose: TriangularTranspose,
}

impl System {
    /// Solves `op(a) x = b`, or `x op(a) = b`.
    fn solve(&self, a: &ArrayLiteral, b: &ArrayLiteral) -> ArrayLiteral {
        let n = a.shape().dims.last().copied().unwrap_or(0);
        let columns = b.shape().dims.last().copied().unwrap_or(0);
        let rows = b.shape().dims.iter().rev().nth(1).copied().unwrap_or(0);
        let (coefficients, mut values) = (bits::pairs(a), bits::pairs(b));
        if n == 0 || values.is_empty() {
            return b.clone();
        }
        for (which, x) in values.chunks_exact_mut(rows * columns).enumerate() {
            let a = &coefficients[which * n * n..(which + 1) * n * n];
            // x op(a) = b is op(a)^T x^T = b^T.
            let flip = (self.transpose == TriangularTranspose::NoTranspose) != self.left_side;
            let at = |i: usize, j: usize| {
                let value = if flip { a[j * n + i] } else { a[i * n + j] };
                if self.transpose == TriangularTranspose::Adjoint {
                    conj(value)
                } else {
                    value
                }
            };
            let forward = self.lower != flip;
            let vectors = if self.left_side { columns } else { rows };
            let place = |i: usize, v: usize| {
                if self.left_side {
                    i * columns + v
                } else {
                    v * columns + i
                }
            };
            for v in 0..vectors {
                for step in 0..n {
                    let i = if forward { step } else { n - 1 - step };
                    let mut value = x[place(i, v)];
                    let known = if forward { 0..i } else { i + 1..n };
                    for j in known {
                        value = sub(value, complex::multiply(at(i, j), x[place(j, v)]));
                    }
                    x[place(i, v)] = if self.unit_diagonal {
                        value
                    } else {
                        complex::divide(value, at(i, i))
                    };
                }
            }
        }
        rebuild(b, &values)
    }
}
