//! Transcendental functions as kernel expressions.

pub mod complex;

use crate::hlo::BinaryOp;
use crate::hlo::UnaryOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;

/// A function of an f32 or f64.
pub fn unary(_b: &mut KernelBuilder, _op: UnaryOp, _x: ExprId) -> Option<ExprId> {
    None
}

/// A function of two f32 or f64.
pub fn binary(_b: &mut KernelBuilder, _op: BinaryOp, _x: ExprId, _y: ExprId) -> Option<ExprId> {
    None
}
