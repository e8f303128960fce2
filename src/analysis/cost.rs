//! What an op costs: work an element, bytes moved.
//!
//! The numbers only rank alternatives. One unit is about one vector add on an element.

use crate::hlo::BinaryOp;
use crate::hlo::Instr;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::UnaryOp;
use crate::shape::ElementKind;
use crate::shape::PrimitiveType;

/// From this cost an element on, computing twice is worse than a trip to memory.
pub const EXPENSIVE: u32 = 12;

/// The cost of one result element of an elementwise or data-movement op, operands not counted.
pub fn element_cost(module: &Module, instr: &Instr) -> u32 {
    let ty = instr.shape.as_array().map(|a| a.ty);
    let scale = ty.map_or(1, type_scale);
    match &instr.op {
        Op::Parameter { .. }
        | Op::Constant(_)
        | Op::Broadcast { .. }
        | Op::Bitcast
        | Op::Reshape { .. }
        | Op::Copy => 0,
        Op::Iota { .. } | Op::Slice { .. } | Op::Reverse { .. } | Op::Transpose { .. } => 1,
        Op::Unary(op) => unary_cost(*op) * scale,
        Op::Binary(op) => binary_cost(*op, ty) * scale,
        Op::Clamp => 2 * scale,
        Op::Convert | Op::ReducePrecision { .. } => {
            let from = instr
                .operands
                .first()
                .and_then(|&o| module.shape(o).as_array())
                .map_or(1, |a| type_scale(a.ty));
            scale.max(from)
        }
        Op::StochasticConvert => 8,
        Op::DynamicSlice { .. } | Op::Pad { .. } | Op::Concatenate { .. } => 2,
        Op::Gather { .. } => 4,
        _ => scale,
    }
}

/// Whether an element of the op is too dear to be computed more than once.
pub fn is_expensive(module: &Module, instr: &Instr) -> bool {
    element_cost(module, instr) >= EXPENSIVE
}

/// Types that are computed in pieces or by way of f32 cost more.
fn type_scale(ty: PrimitiveType) -> u32 {
    match ty.kind() {
        ElementKind::Complex => 4,
        ElementKind::Float if ty.bit_width() <= 8 => 8,
        ElementKind::Float if ty.bit_width() == 16 => 2,
        ElementKind::Pred | ElementKind::Signed | ElementKind::Unsigned | ElementKind::Float => 1,
    }
}

fn unary_cost(op: UnaryOp) -> u32 {
    match op {
        UnaryOp::Abs
        | UnaryOp::Ceil
        | UnaryOp::Floor
        | UnaryOp::Imag
        | UnaryOp::IsFinite
        | UnaryOp::Negate
        | UnaryOp::Not
        | UnaryOp::Real
        | UnaryOp::RoundNearestEven => 1,
        UnaryOp::CountLeadingZeros
        | UnaryOp::PopulationCount
        | UnaryOp::RoundNearestAfz
        | UnaryOp::Sign => 3,
        UnaryOp::Sqrt => 8,
        UnaryOp::Rsqrt => 12,
        UnaryOp::Acos
        | UnaryOp::Acosh
        | UnaryOp::Asin
        | UnaryOp::Asinh
        | UnaryOp::Atanh
        | UnaryOp::Cbrt
        | UnaryOp::Cos
        | UnaryOp::Cosh
        | UnaryOp::Erf
        | UnaryOp::Exp
        | UnaryOp::Expm1
        | UnaryOp::Log
        | UnaryOp::Log1p
        | UnaryOp::Logistic
        | UnaryOp::Sin
        | UnaryOp::Sinh
        | UnaryOp::Tan
        | UnaryOp::Tanh => 20,
    }
}

fn binary_cost(op: BinaryOp, ty: Option<PrimitiveType>) -> u32 {
    let integer = ty.is_some_and(PrimitiveType::is_integer);
    match op {
        BinaryOp::Add
        | BinaryOp::And
        | BinaryOp::Complex
        | BinaryOp::Maximum
        | BinaryOp::Minimum
        | BinaryOp::Multiply
        | BinaryOp::Or
        | BinaryOp::ShiftLeft
        | BinaryOp::ShiftRightArithmetic
        | BinaryOp::ShiftRightLogical
        | BinaryOp::Subtract
        | BinaryOp::Xor => 1,
        BinaryOp::MulHi => 4,
        BinaryOp::Divide if !integer => 6,
        BinaryOp::Divide => 16,
        BinaryOp::Remainder => 24,
        BinaryOp::Atan2 | BinaryOp::Power => 40,
    }
}
