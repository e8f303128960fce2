//! Cholesky factors and triangular solves: plain loops over each matrix of a batch.
//!
//! Both read every input element before they write the result element in its place, so they may
//! run in place over the factored matrix or the right-hand side.

use smallvec::SmallVec;

use crate::base::Result;
use crate::emit::cost;
use crate::emit::elemental::Elemental;
use crate::emit::elemental::unsupported;
use crate::emit::elementwise;
use crate::emit::index::Index;
use crate::emit::index::volume;
use crate::emit::request::Emitted;
use crate::emit::request::KernelRequest;
use crate::emit::setup::Body;
use crate::emit::setup::Setup;
use crate::emit::share;
use crate::emit::value;
use crate::emit::value::Access;
use crate::emit::value::Value;
use crate::executable::Launch;
use crate::hlo::BinaryOp as HloBinary;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::TriangularTranspose;
use crate::kernel::BinaryOp;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Ty;
use crate::kernel::UnaryOp;
use crate::kernel::Unroll;
use crate::shape::PrimitiveType;
use crate::target::Platform;

/// Emits the factorization or solve of a request.
///
/// # Errors
/// `EMIT_UNSUPPORTED` for narrow floats, or when a producer has an op without an elemental form.
pub fn emit(request: &KernelRequest<'_>) -> Result<Emitted> {
    let Setup { mut b, body } = Setup::new(request);
    let instr = request.module.instr(body.roots[0]);
    let el = &body.el;
    let output = &body.outputs[0];
    let ty = output.shape.ty;
    if !matches!(
        ty,
        PrimitiveType::F32 | PrimitiveType::F64 | PrimitiveType::C64 | PrimitiveType::C128
    ) {
        return Err(unsupported(instr, request.module, request.target));
    }
    let dims = output.shape.dims.clone();
    let rank = dims.len();
    if volume(&dims) == 0 {
        return Ok(Emitted::default());
    }
    let (rows, columns) = (dims[rank - 2] as i64, dims[rank - 1] as i64);
    let matrix = Matrix {
        body: &body,
        ty,
        columns,
        batch_dims: &dims[..rank - 2],
    };
    let batch = volume(&dims[..rank - 2]);
    let launch = match instr.op {
        Op::Cholesky { lower } => {
            let work = (rows * rows * rows / 3) as u64 * batch as u64;
            let tasks = cost::tasks(request.target, work) as i64;
            share::for_items(
                &mut b,
                &el.splits,
                request.target,
                batch,
                tasks,
                &mut |b, number| {
                    el.scope(|| matrix.factor(b, instr.operands[0], number, rows, lower));
                },
            )
        }
        Op::TriangularSolve {
            left_side,
            lower,
            unit_diagonal,
            transpose,
        } => {
            let solve = Solve {
                a: instr.operands[0],
                b: instr.operands[1],
                lower,
                unit: unit_diagonal,
                transpose,
            };
            let size = if left_side { rows } else { columns };
            let work = (volume(&dims) * size) as u64;
            let tasks = cost::tasks(request.target, work) as i64;
            if left_side {
                matrix.solve_left(&mut b, &solve, rows, batch, tasks)
            } else {
                matrix.solve_right(&mut b, &solve, rows, batch, tasks)
            }
        }
        _ => return Err(unsupported(instr, request.module, request.target)),
    };
    body.finish(b, launch)
}

/// The result's matrices.
struct Matrix<'a, 'm> {
    body: &'a Body<'m>,
    ty: PrimitiveType,
    columns: i64,
    batch_dims: &'a [usize],
}

/// A triangular system.
struct Solve {
    a: InstrId,
    b: InstrId,
    lower: bool,
    unit: bool,
    transpose: TriangularTranspose,
}

impl Solve {
    /// Whether the matrix as it is used is lower triangular.
    fn is_lower(&self) -> bool {
        self.lower == (self.transpose == TriangularTranspose::NoTranspose)
    }
}

fn conjugate(b: &mut KernelBuilder, v: Value) -> Value {
    match v {
        Value::Pair(re, im) => Value::Pair(re, b.unary(UnaryOp::Neg, im)),
        one @ Value::One(_) => one,
    }
}

impl Matrix<'_, '_> {
    fn el(&self) -> &Elemental<'_> {
        &self.body.el
    }
    fn binary(&self, b: &mut KernelBuilder, op: HloBinary, x: Value, y: Value) -> Value {
        elementwise::binary(b, op, self.ty, x, y).unwrap_or_else(|| {
            let el = self.el();
            el.unsupported(el.module.instr(self.body.roots[0]));
            x
        })
    }
    /// `acc - x * y`
    fn subtract_product(&self, b: &mut KernelBuilder, acc: Value, x: Value, y: Value) -> Value {
        if let (Value::One(x), Value::One(y), Value::One(acc)) = (x, y, acc) {
            let minus = b.unary(UnaryOp::Neg, x);
            return Value::One(b.fma(minus, y, acc));
        }
        let product = self.binary(b, HloBinary::Multiply, x, y);
        self.binary(b, HloBinary::Subtract, acc, product)
    }
    fn position(&self, b: &mut KernelBuilder, start: ExprId, i: ExprId, j: ExprId) -> ExprId {
        let line = b.mul_const(i, self.columns);
        let line = b.add(start, line);
        b.add(line, j)
    }
    fn load(&self, b: &mut KernelBuilder, position: ExprId, lanes: u16) -> Value {
        let buf = self.body.outputs[0].buf;
        value::load(b, buf, self.ty, position, Access::run(lanes, false))
    }
    fn store(&self, b: &mut KernelBuilder, position: ExprId, lanes: u16, value: Value) {
        let buf = self.body.outputs[0].buf;
        value::store(b, buf, self.ty, position, lanes, value);
    }
    /// Elements of an operand's matrix.
    fn operand(
        &self,
        b: &mut KernelBuilder,
        id: InstrId,
        number: ExprId,
        (i, j): (ExprId, ExprId),
        lanes: u16,
    ) -> Value {
        let mut at: SmallVec<[ExprId; 6]> = self.el().splits.unravel(b, self.batch_dims, number);
        at.push(i);
        at.push(j);
        let last = at.len() - 1;
        let size = self.el().dims(id)[last] as i64;
        self.el().value(b, id, &Index::run(at, lanes, last, size))
    }

    /// One matrix: column by column of the lower factor, which the upper one conjugates.
    fn factor(&self, b: &mut KernelBuilder, a: InstrId, number: ExprId, n: i64, lower: bool) {
        let el = self.el();
        let start = b.mul_const(number, n * n);
        let place = |b: &mut KernelBuilder, i: ExprId, j: ExprId| {
            if lower {
                self.position(b, start, i, j)
            } else {
                self.position(b, start, j, i)
            }
        };
        let factor = |b: &mut KernelBuilder, i: ExprId, k: ExprId| {
            let at = place(b, i, k);
            let value = self.load(b, at, 1);
            if lower { value } else { conjugate(b, value) }
        };
        let entry = |b: &mut KernelBuilder, i: ExprId, j: ExprId| {
            let (row, column) = if lower { (i, j) } else { (j, i) };
            let value = self.operand(b, a, number, (row, column), 1);
            if lower { value } else { conjugate(b, value) }
        };
        let (zero, one, end) = (b.index(0), b.index(1), b.index(n));
        let fine = b.bool(1, true);
        let state = b.for_carried((zero, end, one), &[fine], Unroll::Never, |b, j, fine| {
            el.scope(|| {
                let rest = |b: &mut KernelBuilder, i: ExprId| {
                    let first = entry(b, i, j);
                    let sum = b.for_carried(
                        (zero, j, one),
                        &first.registers(),
                        Unroll::Auto,
                        |b, k, sum| {
                            let x = factor(b, i, k);
                            let y = factor(b, j, k);
                            let y = conjugate(b, y);
                            let sum = Value::from_registers(sum);
                            self.subtract_product(b, sum, x, y).registers().to_vec()
                        },
                    );
                    Value::from_registers(&sum)
                };
                let pivot = rest(b, j).pair().0;
                let none = b.float(b.ty(pivot), 0.0);
                let good = b.cmp(CmpOp::FGt, pivot, none);
                let fine = b.binary(BinaryOp::And, fine[0], good);
                let root = b.unary(UnaryOp::Sqrt, pivot);
                let diagonal = if self.ty.is_complex() {
                    Value::Pair(root, none)
                } else {
                    Value::One(root)
                };
                let at = place(b, j, j);
                self.store(b, at, 1, diagonal);
                let below = b.add_const(j, 1);
                b.for_loop((below, end, one), |b, i| {
                    el.scope(|| {
                        let sum = rest(b, i);
                        let scaled = sum.map(|x| b.binary(BinaryOp::FDiv, x, root));
                        let out = if lower { scaled } else { conjugate(b, scaled) };
                        let at = place(b, i, j);
                        self.store(b, at, 1, out);
                    });
                });
                vec![fine]
            })
        });
        self.finish_factor(b, start, n, lower, state[0]);
    }

    /// Clears the other triangle, or everything to NaN when the matrix has no factor.
    fn finish_factor(
        &self,
        b: &mut KernelBuilder,
        start: ExprId,
        n: i64,
        lower: bool,
        fine: ExprId,
    ) {
        let part = Ty::scalar(value::register(self.ty));
        let nan = b.float(part, f64::NAN);
        let none = b.float(part, 0.0);
        let pair = |x: ExprId| {
            if self.ty.is_complex() {
                Value::Pair(x, x)
            } else {
                Value::One(x)
            }
        };
        let (first, one, end) = (b.index(0), b.index(1), b.index(n));
        b.for_range(n, 1, |b, i| {
            let (before, after) = (i, b.add_const(i, 1));
            let (own, other) = match lower {
                true => ((first, after, one), (after, end, one)),
                false => ((before, end, one), (first, before, one)),
            };
            b.for_loop(own, |b, j| {
                let at = self.position(b, start, i, j);
                let value = self.load(b, at, 1);
                let value = value.select(b, fine, pair(nan));
                self.store(b, at, 1, value);
            });
            b.for_loop(other, |b, j| {
                let at = self.position(b, start, i, j);
                let value = pair(none).select(b, fine, pair(nan));
                self.store(b, at, 1, value);
            });
        });
    }

    /// Element (i, k) of the triangular matrix as it is used.
    fn triangle(
        &self,
        b: &mut KernelBuilder,
        solve: &Solve,
        number: ExprId,
        i: ExprId,
        k: ExprId,
    ) -> Value {
        let at = match solve.transpose {
            TriangularTranspose::NoTranspose => (i, k),
            TriangularTranspose::Transpose | TriangularTranspose::Adjoint => (k, i),
        };
        let value = self.operand(b, solve.a, number, at, 1);
        match solve.transpose {
            TriangularTranspose::Adjoint => conjugate(b, value),
            TriangularTranspose::NoTranspose | TriangularTranspose::Transpose => value,
        }
    }

    /// Row i of the solution from the rows it depends on; lanes lie across columns.
    fn solve_left(
        &self,
        b: &mut KernelBuilder,
        solve: &Solve,
        n: i64,
        batch: i64,
        tasks: i64,
    ) -> Launch {
        let el = self.el();
        let lanes = match el.target.platform() {
            Platform::Cpu => {
                let mut lanes = i64::from(cost::lanes(el.target, value::register_bytes(self.ty)));
                while lanes > self.columns {
                    lanes /= 2;
                }
                lanes
            }
            Platform::Cuda => 1,
        };
        let whole = self.columns / lanes;
        let chunks = cost::pieces(self.columns, lanes);
        share::for_items(
            b,
            &el.splits,
            el.target,
            batch * chunks,
            tasks,
            &mut |b, item| {
                el.scope(|| {
                    let (number, chunk) = el.splits.split(b, item, chunks);
                    let at = b.mul_const(chunk, lanes);
                    if whole == chunks {
                        self.solve_columns(b, solve, n, number, at, lanes as u16);
                        return;
                    }
                    let bound = b.index(whole);
                    let full = b.cmp(CmpOp::SLt, chunk, bound);
                    b.if_else(
                        full,
                        |b| {
                            self.solve_columns(b, solve, n, number, at, lanes as u16);
                            Vec::new()
                        },
                        |b| {
                            let bounds = (at, b.index(self.columns), b.index(1));
                            b.for_loop(bounds, |b, at| {
                                self.solve_columns(b, solve, n, number, at, 1);
                            });
                            Vec::new()
                        },
                    );
                });
            },
        )
    }

    fn solve_columns(
        &self,
        b: &mut KernelBuilder,
        solve: &Solve,
        n: i64,
        number: ExprId,
        at: ExprId,
        lanes: u16,
    ) {
        let el = self.el();
        let start = b.mul_const(number, n * self.columns);
        let (zero, one, end) = (b.index(0), b.index(1), b.index(n));
        b.for_loop((zero, end, one), |b, step| {
            el.scope(|| {
                let i = in_order(b, solve.is_lower(), n, step);
                let first = self
                    .operand(b, solve.b, number, (i, at), lanes)
                    .splat(b, lanes);
                let sum = b.for_carried(
                    (zero, step, one),
                    &first.registers(),
                    Unroll::Auto,
                    |b, k, sum| {
                        el.scope(|| {
                            let k = in_order(b, solve.is_lower(), n, k);
                            let t = self.triangle(b, solve, number, i, k);
                            let position = self.position(b, start, k, at);
                            let x = self.load(b, position, lanes);
                            let sum = Value::from_registers(sum);
                            self.subtract_product(b, sum, t, x)
                                .splat(b, lanes)
                                .registers()
                                .to_vec()
                        })
                    },
                );
                let mut out = Value::from_registers(&sum);
                if !solve.unit {
                    let diagonal = self.triangle(b, solve, number, i, i);
                    let diagonal = diagonal.splat(b, lanes);
                    out = self.binary(b, HloBinary::Divide, out, diagonal);
                }
                let position = self.position(b, start, i, at);
                self.store(b, position, lanes, out);
            });
        });
    }

    /// Each row of the solution by itself.
    fn solve_right(
        &self,
        b: &mut KernelBuilder,
        solve: &Solve,
        rows: i64,
        batch: i64,
        tasks: i64,
    ) -> Launch {
        let el = self.el();
        let n = self.columns;
        share::for_items(
            b,
            &el.splits,
            el.target,
            batch * rows,
            tasks,
            &mut |b, item| {
                el.scope(|| {
                    let (number, row) = el.splits.split(b, item, rows);
                    let start = b.mul_const(number, rows * n);
                    let (zero, one, end) = (b.index(0), b.index(1), b.index(n));
                    b.for_loop((zero, end, one), |b, step| {
                        el.scope(|| {
                            let j = in_order(b, !solve.is_lower(), n, step);
                            let first = self.operand(b, solve.b, number, (row, j), 1);
                            let sum = b.for_carried(
                                (zero, step, one),
                                &first.registers(),
                                Unroll::Auto,
                                |b, k, sum| {
                                    el.scope(|| {
                                        let k = in_order(b, !solve.is_lower(), n, k);
                                        let t = self.triangle(b, solve, number, k, j);
                                        let position = self.position(b, start, row, k);
                                        let x = self.load(b, position, 1);
                                        let sum = Value::from_registers(sum);
                                        self.subtract_product(b, sum, x, t).registers().to_vec()
                                    })
                                },
                            );
                            let mut out = Value::from_registers(&sum);
                            if !solve.unit {
                                let diagonal = self.triangle(b, solve, number, j, j);
                                out = self.binary(b, HloBinary::Divide, out, diagonal);
                            }
                            let position = self.position(b, start, row, j);
                            self.store(b, position, 1, out);
                        });
                    });
                });
            },
        )
    }
}

/// The row of a step: counted up, or down from the last one.
fn in_order(b: &mut KernelBuilder, up: bool, n: i64, step: ExprId) -> ExprId {
    if up {
        return step;
    }
    let last = b.index(n - 1);
    b.sub(last, step)
}
