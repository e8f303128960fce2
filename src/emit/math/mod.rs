//! Transcendental functions as kernel expressions, for `f32` and `f64`, of any number of lanes.
//!
//! One source for every target: no library is called, so the functions fuse with what surrounds
//! them and give the same bits on x86-64 and AArch64, which round every step alike. Narrower floats
//! are widened by the caller. Errors measured against f64 or higher precision stand in the tests.

pub mod complex;
mod complex_inverse;
mod erf;
mod exp;
mod hyper;
mod inverse;
mod power;
mod scope;
#[cfg(test)]
mod tests;
mod trig;

use crate::emit::math::scope::Scope;
use crate::hlo::BinaryOp;
use crate::hlo::UnaryOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;

/// A function of an `f32` or `f64`; absent when `op` is not a function of this file.
pub fn unary(b: &mut KernelBuilder, op: UnaryOp, x: ExprId) -> Option<ExprId> {
    let mut scope = Scope::of(b, x)?;
    Some(match op {
        UnaryOp::Acos => scope.acos(x),
        UnaryOp::Acosh => scope.acosh(x),
        UnaryOp::Asin => scope.asin(x),
        UnaryOp::Asinh => scope.asinh(x),
        UnaryOp::Atanh => scope.atanh(x),
        UnaryOp::Cbrt => scope.cbrt(x),
        UnaryOp::Cos => scope.cos(x),
        UnaryOp::Cosh => scope.cosh(x),
        UnaryOp::Erf => scope.erf(x),
        UnaryOp::Exp => scope.exp(x),
        UnaryOp::Expm1 => scope.expm1(x),
        UnaryOp::Log => scope.log(x),
        UnaryOp::Log1p => scope.log1p(x),
        UnaryOp::Logistic => scope.logistic(x),
        UnaryOp::Rsqrt => scope.rsqrt(x),
        UnaryOp::Sin => scope.sin(x),
        UnaryOp::Sinh => scope.sinh(x),
        UnaryOp::Sqrt => scope.sqrt(x),
        UnaryOp::Tan => scope.tan(x),
        UnaryOp::Tanh => scope.tanh(x),
        UnaryOp::Abs
        | UnaryOp::Ceil
        | UnaryOp::CountLeadingZeros
        | UnaryOp::Floor
        | UnaryOp::Imag
        | UnaryOp::IsFinite
        | UnaryOp::Negate
        | UnaryOp::Not
        | UnaryOp::PopulationCount
        | UnaryOp::Real
        | UnaryOp::RoundNearestAfz
        | UnaryOp::RoundNearestEven
        | UnaryOp::Sign => return None,
    })
}

/// Arc tangent, which HLO has only as `atan2` of one.
pub fn atan(b: &mut KernelBuilder, x: ExprId) -> Option<ExprId> {
    Some(Scope::of(b, x)?.atan(x))
}

/// A function of two `f32` or `f64`; absent when `op` is not a function of this file.
pub fn binary(b: &mut KernelBuilder, op: BinaryOp, x: ExprId, y: ExprId) -> Option<ExprId> {
    let mut scope = Scope::of(b, x)?;
    Some(match op {
        BinaryOp::Atan2 => scope.atan2(x, y),
        BinaryOp::Power => scope.pow(x, y),
        BinaryOp::Remainder => scope.remainder(x, y),
        BinaryOp::Add
        | BinaryOp::And
        | BinaryOp::Complex
        | BinaryOp::Divide
        | BinaryOp::Maximum
        | BinaryOp::Minimum
        | BinaryOp::MulHi
        | BinaryOp::Multiply
        | BinaryOp::Or
        | BinaryOp::ShiftLeft
        | BinaryOp::ShiftRightArithmetic
        | BinaryOp::ShiftRightLogical
        | BinaryOp::Subtract
        | BinaryOp::Xor => return None,
    })
}
