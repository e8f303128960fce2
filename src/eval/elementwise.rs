//! Elementwise ops as functions of numbers.
//!
//! Floats are computed in f64, or for types below f32 in f32, and rounded to the type.
//! Corner cases are those of XLA: see section 6 of the map.

use std::cmp::Ordering;

use crate::eval::bits;
use crate::eval::complex;
use crate::hlo::BinaryOp;
use crate::hlo::ComparisonDirection;
use crate::hlo::ComparisonType;
use crate::hlo::UnaryOp;
use crate::literal::ArrayLiteral;
use crate::literal::number;
use crate::literal::number::Number;
use crate::shape::ArrayShape;
use crate::shape::ElementKind;
use crate::shape::PrimitiveType;

/// A float result on its way to the type: types narrower than f32 are rounded to f32 first.
fn through_f32(ty: PrimitiveType, x: Number) -> Number {
    match x {
        Number::Float(v) if ty.is_float() && ty.bit_width() < 32 => {
            Number::Float(f64::from(v as f32))
        }
        other => other,
    }
}

pub(super) fn unary(op: UnaryOp, shape: &ArrayShape, x: &ArrayLiteral) -> ArrayLiteral {
    bits::build(shape, |i| {
        through_f32(shape.ty, unary_number(op, x.ty(), bits::get(x, i)))
    })
}

pub(super) fn binary(
    op: BinaryOp,
    shape: &ArrayShape,
    a: &ArrayLiteral,
    b: &ArrayLiteral,
) -> ArrayLiteral {
    bits::build(shape, |i| {
        through_f32(
            shape.ty,
            binary_number(op, a.ty(), bits::get(a, i), bits::get(b, i)),
        )
    })
}

/// A function of one number of the type, not yet rounded.
pub(super) fn unary_number(op: UnaryOp, ty: PrimitiveType, x: Number) -> Number {
    match x {
        Number::Int(x) => Number::Int(unary_int(op, ty, x)),
        Number::Float(x) => unary_float(op, x),
        Number::Complex(re, im) => complex::unary(op, re, im),
    }
}

fn unary_int(op: UnaryOp, ty: PrimitiveType, x: i128) -> i128 {
    let width = ty.bit_width() as u32;
    let unsigned = x as u128 & ((1 << width) - 1);
    match op {
        UnaryOp::Abs => x.abs(),
        UnaryOp::Negate => -x,
        UnaryOp::Not if ty == PrimitiveType::Pred => 1 - x,
        UnaryOp::Not => !x,
        UnaryOp::Sign => x.signum(),
        UnaryOp::PopulationCount => i128::from(unsigned.count_ones()),
        UnaryOp::CountLeadingZeros => i128::from(unsigned.leading_zeros() - (128 - width)),
        // Rounding and parts of an integer are the integer.
        _ => x,
    }
}

fn unary_float(op: UnaryOp, x: f64) -> Number {
    let value = match op {
        UnaryOp::Abs => x.abs(),
        UnaryOp::Acos => libm::acos(x),
        // libm has values for numbers far below its domain.
        UnaryOp::Acosh if x < 1.0 => f64::NAN,
        UnaryOp::Acosh => libm::acosh(x),
        UnaryOp::Asin => libm::asin(x),
        UnaryOp::Asinh => libm::asinh(x),
        UnaryOp::Atanh => libm::atanh(x),
        UnaryOp::Cbrt => libm::cbrt(x),
        UnaryOp::Ceil => x.ceil(),
        UnaryOp::Cos => libm::cos(x),
        UnaryOp::Cosh => libm::cosh(x),
        UnaryOp::Erf => libm::erf(x),
        UnaryOp::Exp => libm::exp(x),
        UnaryOp::Expm1 => libm::expm1(x),
        UnaryOp::Floor => x.floor(),
        UnaryOp::Log => libm::log(x),
        UnaryOp::Log1p => libm::log1p(x),
        UnaryOp::Logistic => 1.0 / (1.0 + libm::exp(-x)),
        UnaryOp::Negate => -x,
        UnaryOp::RoundNearestAfz => x.round(),
        UnaryOp::RoundNearestEven => x.round_ties_even(),
        UnaryOp::Rsqrt => 1.0 / x.sqrt(),
        UnaryOp::Sign if x.is_nan() || x == 0.0 => x,
        UnaryOp::Sign => x.signum(),
        UnaryOp::Sin => libm::sin(x),
        UnaryOp::Sinh => libm::sinh(x),
        UnaryOp::Sqrt => x.sqrt(),
        UnaryOp::Tan => libm::tan(x),
        UnaryOp::Tanh => libm::tanh(x),
        UnaryOp::Real => x,
        UnaryOp::Imag => 0.0,
        UnaryOp::IsFinite => return Number::Int(i128::from(x.is_finite())),
        UnaryOp::CountLeadingZeros | UnaryOp::Not | UnaryOp::PopulationCount => f64::NAN,
    };
    Number::Float(value)
}

/// A function of two numbers of the type, not yet rounded.
pub(super) fn binary_number(op: BinaryOp, ty: PrimitiveType, a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => Number::Int(binary_int(op, ty, a, b)),
        (Number::Float(a), Number::Float(b)) => match op {
            BinaryOp::Complex => Number::Complex(a, b),
            _ => Number::Float(binary_float(op, a, b)),
        },
        (Number::Complex(a, b), Number::Complex(c, d)) => complex::binary(op, (a, b), (c, d)),
        _ => Number::Float(f64::NAN),
    }
}

fn binary_int(op: BinaryOp, ty: PrimitiveType, a: i128, b: i128) -> i128 {
    let width = ty.bit_width() as u32;
    let mask = (1i128 << width) - 1;
    // A shift amount is taken as unsigned; from the width on, nothing of the value is left.
    let amount = (b & mask).min(i128::from(width)) as u32;
    match op {
        BinaryOp::Add if ty == PrimitiveType::Pred => a | b,
        BinaryOp::Multiply if ty == PrimitiveType::Pred => a & b,
        BinaryOp::Add => a + b,
        BinaryOp::Subtract => a - b,
        BinaryOp::Multiply => a.wrapping_mul(b),
        BinaryOp::Divide if b == 0 => mask,
        BinaryOp::Divide => a / b,
        BinaryOp::Remainder if b == 0 => a,
        BinaryOp::Remainder => a % b,
        BinaryOp::Maximum => a.max(b),
        BinaryOp::Minimum => a.min(b),
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::ShiftLeft => (a << amount) & mask,
        BinaryOp::ShiftRightLogical => (a & mask) >> amount,
        BinaryOp::ShiftRightArithmetic => {
            let signed = (a << (128 - width)) >> (128 - width);
            signed >> amount
        }
        BinaryOp::MulHi => a.wrapping_mul(b) >> width,
        BinaryOp::Power => power_int(ty, a, b),
        BinaryOp::Atan2 | BinaryOp::Complex => 0,
    }
}

/// Integer powers wrap; a negative exponent gives the whole part of the true value, and zero for
/// zero.
fn power_int(ty: PrimitiveType, base: i128, exponent: i128) -> i128 {
    if exponent < 0 {
        return match base {
            1 => 1,
            -1 if exponent % 2 == 0 => 1,
            -1 => -1,
            _ => 0,
        };
    }
    let (mut result, mut square, mut rest) = (1, base, exponent);
    while rest > 0 {
        if rest & 1 == 1 {
            result = number::wrap(ty, i128::wrapping_mul(result, square));
        }
        square = number::wrap(ty, square.wrapping_mul(square));
        rest >>= 1;
    }
    result
}

fn binary_float(op: BinaryOp, a: f64, b: f64) -> f64 {
    match op {
        BinaryOp::Add => a + b,
        BinaryOp::Subtract => a - b,
        BinaryOp::Multiply => a * b,
        BinaryOp::Divide => a / b,
        BinaryOp::Remainder => a % b,
        BinaryOp::Maximum => maximum(a, b),
        BinaryOp::Minimum => -maximum(-a, -b),
        BinaryOp::Power => libm::pow(a, b),
        BinaryOp::Atan2 => libm::atan2(a, b),
        BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Xor
        | BinaryOp::ShiftLeft
        | BinaryOp::ShiftRightLogical
        | BinaryOp::ShiftRightArithmetic
        | BinaryOp::MulHi
        | BinaryOp::Complex => f64::NAN,
    }
}

/// NaN if either is; +0 above -0.
fn maximum(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else if a.total_cmp(&b) == Ordering::Less {
        b
    } else {
        a
    }
}

pub(super) fn compare(
    direction: ComparisonDirection,
    ty: ComparisonType,
    shape: &ArrayShape,
    a: &ArrayLiteral,
    b: &ArrayLiteral,
) -> ArrayLiteral {
    bits::build(shape, |i| {
        let holds = compare_numbers(direction, ty, bits::get(a, i), bits::get(b, i));
        Number::Int(i128::from(holds))
    })
}

pub(super) fn compare_numbers(
    direction: ComparisonDirection,
    ty: ComparisonType,
    a: Number,
    b: Number,
) -> bool {
    let ordering = match (a, b) {
        (Number::Int(a), Number::Int(b)) => Some(a.cmp(&b)),
        (Number::Float(a), Number::Float(b)) if ty == ComparisonType::TotalOrder => {
            Some(a.total_cmp(&b))
        }
        (Number::Float(a), Number::Float(b)) => a.partial_cmp(&b),
        (Number::Complex(a, b), Number::Complex(c, d)) => complex::order((a, b), (c, d)),
        _ => None,
    };
    match direction {
        ComparisonDirection::Eq => ordering == Some(Ordering::Equal),
        ComparisonDirection::Ne => ordering != Some(Ordering::Equal),
        ComparisonDirection::Lt => ordering == Some(Ordering::Less),
        ComparisonDirection::Gt => ordering == Some(Ordering::Greater),
        ComparisonDirection::Le => ordering.is_some_and(Ordering::is_le),
        ComparisonDirection::Ge => ordering.is_some_and(Ordering::is_ge),
    }
}

/// Picks by a predicate of the operands' shape or of rank 0.
pub(super) fn select(shape: &ArrayShape, inputs: &[&ArrayLiteral]) -> ArrayLiteral {
    let [cond, a, b] = inputs else {
        return ArrayLiteral::zeros(shape.clone());
    };
    let width = shape.ty.byte_width();
    let mut data = Vec::with_capacity(a.bytes().len());
    for i in 0..shape.element_count() {
        let holds = cond.bytes()[if cond.len() == 1 { 0 } else { i }] != 0;
        data.extend_from_slice(if holds { a.element(i) } else { b.element(i) });
    }
    debug_assert_eq!(data.len(), shape.element_count() * width);
    ArrayLiteral::new(shape.clone(), data)
}

/// `min(max(x, low), high)`; bounds may be of rank 0.
pub(super) fn clamp(shape: &ArrayShape, inputs: &[&ArrayLiteral]) -> ArrayLiteral {
    let [low, x, high] = inputs else {
        return ArrayLiteral::zeros(shape.clone());
    };
    let bound = |array: &ArrayLiteral, i| bits::get(array, if array.len() == 1 { 0 } else { i });
    bits::build(shape, |i| {
        clamp_number(shape.ty, bound(low, i), bits::get(x, i), bound(high, i))
    })
}

pub(super) fn clamp_number(ty: PrimitiveType, low: Number, x: Number, high: Number) -> Number {
    let raised = binary_number(BinaryOp::Maximum, ty, x, low);
    binary_number(BinaryOp::Minimum, ty, raised, high)
}

pub(super) fn convert(shape: &ArrayShape, x: &ArrayLiteral) -> ArrayLiteral {
    let width = shape.ty.byte_width();
    let mut data = vec![0; x.len() * width];
    for (i, out) in data.chunks_exact_mut(width).enumerate() {
        number::convert(x.ty(), x.element(i), shape.ty, out);
    }
    ArrayLiteral::new(shape.clone(), data)
}

pub(super) fn reduce_precision(
    shape: &ArrayShape,
    x: &ArrayLiteral,
    exponent_bits: u32,
    mantissa_bits: u32,
) -> ArrayLiteral {
    bits::build(shape, |i| match bits::get(x, i) {
        Number::Float(v) => Number::Float(reduce_precision_number(
            shape.ty,
            v,
            exponent_bits,
            mantissa_bits,
        )),
        other => other,
    })
}

/// Rounds to `mantissa_bits` (nearest even) and `exponent_bits` (overflow to infinity, below the
/// smallest normal number to zero), in the number format of the type; other small floats than f8e5m2
/// are f32 here.
pub(super) fn reduce_precision_number(
    ty: PrimitiveType,
    x: f64,
    exponent_bits: u32,
    mantissa_bits: u32,
) -> f64 {
    let (type_exponent, type_mantissa) = match ty {
        PrimitiveType::F64 => (11, 52),
        PrimitiveType::F32 => (8, 23),
        PrimitiveType::F16 => (5, 10),
        PrimitiveType::BF16 => (8, 7),
        PrimitiveType::F8E5M2 => (5, 2),
        _ => return reduce_precision_number(PrimitiveType::F32, x, exponent_bits, mantissa_bits),
    };
    if x.is_nan() {
        return x;
    }
    let mut bits = number::float_from_f64(ty, x);
    let sign = bits & 1 << (type_exponent + type_mantissa);
    bits &= !sign;
    if mantissa_bits < type_mantissa {
        let drop = type_mantissa - mantissa_bits;
        let lowest_kept = bits >> drop & 1;
        bits = (bits + (1 << (drop - 1)) - 1 + lowest_kept) & !((1 << drop) - 1);
    }
    if exponent_bits < type_exponent {
        let bias = (1i64 << (type_exponent - 1)) - 1;
        let reduced_bias = (1i64 << (exponent_bits - 1)) - 1;
        let exponent = (bits >> type_mantissa) as i64;
        if exponent > bias + reduced_bias {
            bits = ((1 << type_exponent) - 1) << type_mantissa;
        } else if exponent <= bias - reduced_bias {
            bits = 0;
        }
    }
    number::float_to_f64(ty, bits | sign)
}

/// Rounds up with the probability of the dropped fraction: `random` is a number below 2^bits of its
/// type.
pub(super) fn stochastic_convert(
    shape: &ArrayShape,
    x: &ArrayLiteral,
    random: &ArrayLiteral,
) -> ArrayLiteral {
    let scale = 2f64.powi(random.ty().bit_width() as i32);
    bits::build(shape, |i| {
        let (Number::Float(value), Number::Int(r)) = (bits::get(x, i), bits::get(random, i)) else {
            return Number::Int(0);
        };
        if shape.ty.kind() != ElementKind::Signed && shape.ty.kind() != ElementKind::Unsigned {
            return Number::Float(value);
        }
        let magnitude = value.abs();
        let whole = magnitude.trunc();
        // Random numbers of 64 bits are not all values of f64; the dropped fraction is one of i128.
        let up = r < ((magnitude - whole) * scale) as i128;
        Number::Float((whole + f64::from(u8::from(up))).copysign(value))
    })
}
