//! One element (or run) of a dot, of any element type and geometry: the plain sum over the
//! contracted dimensions. Narrow floats accumulate in f32, integers in the result's type.
//!
//! The blocked matrix kernels stand in `dot/`; this is what prologues, small and unusual products
//! come down to.

use smallvec::SmallVec;

use crate::emit::convert;
use crate::emit::elemental::Elemental;
use crate::emit::elemental::array;
use crate::emit::elementwise;
use crate::emit::index::Index;
use crate::emit::share;
use crate::emit::value;
use crate::emit::value::Value;
use crate::hlo::BinaryOp;
use crate::hlo::DotDims;
use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::shape::Dims;
use crate::shape::PrimitiveType;

/// Where each dimension of an operand gets its index from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    /// A dimension of the result.
    Result(usize),
    /// A contracted pair.
    Contracted(usize),
}

/// Sources of the dimensions of both operands.
fn sources(dims: &DotDims, lhs_rank: usize, rhs_rank: usize) -> (Vec<From>, Vec<From>) {
    let mut next = dims.lhs_batch.len();
    let mut side = |rank: usize, batch: &[usize], contracted: &[usize]| {
        (0..rank)
            .map(|d| {
                if let Some(i) = batch.iter().position(|&x| x == d) {
                    From::Result(i)
                } else if let Some(i) = contracted.iter().position(|&x| x == d) {
                    From::Contracted(i)
                } else {
                    next += 1;
                    From::Result(next - 1)
                }
            })
            .collect()
    };
    let lhs = side(lhs_rank, &dims.lhs_batch, &dims.lhs_contracting);
    let rhs = side(rhs_rank, &dims.rhs_batch, &dims.rhs_contracting);
    (lhs, rhs)
}

/// The type products are summed in.
pub fn accumulator_type(result: PrimitiveType) -> PrimitiveType {
    convert::compute_type(result)
}

/// `acc + x * y` in the accumulator's type.
pub fn multiply_add(
    b: &mut KernelBuilder,
    ty: PrimitiveType,
    acc: Value,
    x: Value,
    y: Value,
) -> Option<Value> {
    if ty.is_float() {
        return Some(Value::One(b.fma(x.one(), y.one(), acc.one())));
    }
    if ty.is_complex() {
        let ((a, bi), (c, d), (re, im)) = (x.pair(), y.pair(), acc.pair());
        let re = b.fma(a, c, re);
        let minus = b.unary(crate::kernel::UnaryOp::Neg, bi);
        let re = b.fma(minus, d, re);
        let im = b.fma(a, d, im);
        return Some(Value::Pair(re, b.fma(bi, c, im)));
    }
    let product = elementwise::binary(b, BinaryOp::Multiply, ty, x, y)?;
    elementwise::binary(b, BinaryOp::Add, ty, acc, product)
}

impl Elemental<'_> {
    /// One element (or run) of a dot.
    pub fn dot_element(
        &self,
        b: &mut KernelBuilder,
        instr: &Instr,
        dims: &DotDims,
        index: &Index,
    ) -> Option<Value> {
        let (lhs, rhs) = (instr.operands[0], instr.operands[1]);
        let (lhs_dims, rhs_dims) = (self.dims(lhs), self.dims(rhs));
        let shape = array(&instr.shape);
        let index = index.clone().narrowed(&shape.dims);
        if index.lanes > 1 && index.first != index.last {
            return None;
        }
        let (lhs_from, rhs_from) = sources(dims, lhs_dims.len(), rhs_dims.len());
        let ty = accumulator_type(shape.ty);
        let sizes: Vec<i64> = dims
            .lhs_contracting
            .iter()
            .map(|&d| lhs_dims[d] as i64)
            .collect();
        let zero = b.index(0);
        let start = value::zero(b, ty).splat(b, index.lanes);
        if sizes.contains(&0) {
            return Some(convert::convert(b, ty, shape.ty, start));
        }
        let inner: Dims = sizes.iter().map(|&s| s as usize).collect();
        let registers = share::nest_carried(
            b,
            &self.splits,
            &sizes,
            zero,
            start.registers().to_vec(),
            &mut |b, number, registers| {
                self.scope(|| {
                    let at = self.splits.unravel(b, &inner, number);
                    let x = self.dot_operand(b, lhs, &lhs_from, &index, &at, ty);
                    let y = self.dot_operand(b, rhs, &rhs_from, &index, &at, ty);
                    let acc = Value::from_registers(&registers);
                    match multiply_add(b, ty, acc, x, y) {
                        Some(sum) => sum.splat(b, index.lanes).registers().to_vec(),
                        None => {
                            self.unsupported(instr);
                            registers
                        }
                    }
                })
            },
        );
        let sum = Value::from_registers(&registers);
        Some(convert::convert(b, ty, shape.ty, sum))
    }

    fn dot_operand(
        &self,
        b: &mut KernelBuilder,
        operand: InstrId,
        from: &[From],
        index: &Index,
        contracted: &[ExprId],
        ty: PrimitiveType,
    ) -> Value {
        let at: SmallVec<[ExprId; 6]> = from
            .iter()
            .map(|from| match *from {
                From::Result(d) => index.at[d],
                From::Contracted(i) => contracted[i],
            })
            .collect();
        let along = from
            .iter()
            .position(|&f| index.lanes > 1 && f == From::Result(index.first));
        let inner = match along {
            Some(d) => Index::run(at, index.lanes, d, index.block),
            None => Index::scalar(at),
        };
        let value = self.value(b, operand, &inner);
        convert::convert(b, self.ty(operand), ty, value)
    }
}
