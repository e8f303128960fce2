//! Complex functions on pairs.

use crate::hlo::BinaryOp;
use crate::hlo::UnaryOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;

/// The absolute value.
pub fn abs(b: &mut KernelBuilder, re: ExprId, im: ExprId) -> ExprId {
    let square = b.mul(re, re);
    let sum = b.fma(im, im, square);
    b.unary(crate::kernel::UnaryOp::Sqrt, sum)
}

/// A function of one complex number.
pub fn unary(
    _b: &mut KernelBuilder,
    _op: UnaryOp,
    _x: (ExprId, ExprId),
) -> Option<(ExprId, ExprId)> {
    None
}

/// A function of two complex numbers.
pub fn binary(
    _b: &mut KernelBuilder,
    _op: BinaryOp,
    _x: (ExprId, ExprId),
    _y: (ExprId, ExprId),
) -> Option<(ExprId, ExprId)> {
    None
}
