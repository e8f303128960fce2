//! Elementwise ops on values: arithmetic of one element (or of one in each lane) by element type.
//!
//! Narrow floats are computed in f32 and rounded after every op. Integer division by zero gives all
//! ones, the smallest integer divided by minus one gives itself, shifts by the width or more give
//! zero or the sign. `None` means that the op is not defined for the type.

use crate::emit::convert;
use crate::emit::integer;
use crate::emit::math;
use crate::emit::small_float;
use crate::emit::value::Value;
use crate::emit::value::register;
use crate::hlo::BinaryOp as HloBinary;
use crate::hlo::ComparisonDirection;
use crate::hlo::ComparisonType;
use crate::hlo::UnaryOp as HloUnary;
use crate::kernel::BinaryOp;
use crate::kernel::CastOp;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Scalar;
use crate::kernel::UnaryOp;
use crate::shape::ElementKind;
use crate::shape::PrimitiveType;

/// A unary op on a value of type `ty`.
pub fn unary(b: &mut KernelBuilder, op: HloUnary, ty: PrimitiveType, v: Value) -> Option<Value> {
    match ty.kind() {
        ElementKind::Complex => unary_complex(b, op, v),
        ElementKind::Float => unary_float(b, op, ty, v.one()).map(Value::One),
        ElementKind::Pred => (op == HloUnary::Not).then(|| {
            let one = b.bool(b.ty(v.one()).lanes, true);
            Value::One(b.binary(BinaryOp::Xor, v.one(), one))
        }),
        ElementKind::Signed | ElementKind::Unsigned => {
            integer::unary(b, op, ty, v.one()).map(Value::One)
        }
    }
}

fn unary_complex(b: &mut KernelBuilder, op: HloUnary, v: Value) -> Option<Value> {
    let (re, im) = v.pair();
    Some(match op {
        HloUnary::Real => Value::One(re),
        HloUnary::Imag => Value::One(im),
        HloUnary::Negate => v.map(|x| b.unary(UnaryOp::Neg, x)),
        HloUnary::Abs => Value::One(math::complex::abs(b, re, im)),
        _ => {
            let (re, im) = math::complex::unary(b, op, (re, im))?;
            Value::Pair(re, im)
        }
    })
}

fn unary_float(
    b: &mut KernelBuilder,
    op: HloUnary,
    ty: PrimitiveType,
    x: ExprId,
) -> Option<ExprId> {
    let wide = convert::widen(b, ty, x);
    let result = match op {
        HloUnary::IsFinite => return Some(is_finite(b, wide)),
        HloUnary::Real => return Some(x),
        HloUnary::Imag => b.float(b.ty(wide), 0.0),
        HloUnary::Negate => b.unary(UnaryOp::Neg, wide),
        HloUnary::Abs => b.unary(UnaryOp::Abs, wide),
        HloUnary::Ceil => b.unary(UnaryOp::Ceil, wide),
        HloUnary::Floor => b.unary(UnaryOp::Floor, wide),
        HloUnary::RoundNearestEven => b.unary(UnaryOp::RoundEven, wide),
        HloUnary::RoundNearestAfz => round_away(b, wide),
        HloUnary::Sqrt => b.unary(UnaryOp::Sqrt, wide),
        HloUnary::Sign => sign(b, wide),
        HloUnary::Not | HloUnary::PopulationCount | HloUnary::CountLeadingZeros => return None,
        _ => math::unary(b, op, wide)?,
    };
    Some(convert::narrow(b, ty, result))
}

fn is_finite(b: &mut KernelBuilder, x: ExprId) -> ExprId {
    let abs = b.unary(UnaryOp::Abs, x);
    let infinity = b.float(b.ty(x), f64::INFINITY);
    b.cmp(CmpOp::FLt, abs, infinity)
}

/// The whole part, one further from zero when the rest is at least a half.
fn round_away(b: &mut KernelBuilder, x: ExprId) -> ExprId {
    let ty = b.ty(x);
    let whole = b.unary(UnaryOp::Trunc, x);
    let rest = b.sub(x, whole);
    let rest = b.unary(UnaryOp::Abs, rest);
    let (half, one, zero) = (b.float(ty, 0.5), b.float(ty, 1.0), b.float(ty, 0.0));
    let far = b.cmp(CmpOp::FGe, rest, half);
    let step = b.select(far, one, zero);
    let step = b.binary(BinaryOp::CopySign, step, x);
    let sum = b.add(whole, step);
    b.binary(BinaryOp::CopySign, sum, x)
}

fn sign(b: &mut KernelBuilder, x: ExprId) -> ExprId {
    let ty = b.ty(x);
    let (zero, one, minus) = (b.float(ty, 0.0), b.float(ty, 1.0), b.float(ty, -1.0));
    let above = b.cmp(CmpOp::FGt, x, zero);
    let below = b.cmp(CmpOp::FLt, x, zero);
    let negative = b.select(below, minus, x);
    b.select(above, one, negative)
}

/// A binary op on values of type `ty`.
pub fn binary(
    b: &mut KernelBuilder,
    op: HloBinary,
    ty: PrimitiveType,
    x: Value,
    y: Value,
) -> Option<Value> {
    if op == HloBinary::Complex {
        return Some(Value::Pair(x.one(), y.one()));
    }
    match ty.kind() {
        ElementKind::Complex => binary_complex(b, op, x, y),
        ElementKind::Float => binary_float(b, op, ty, x.one(), y.one()).map(Value::One),
        ElementKind::Pred => binary_pred(b, op, x.one(), y.one()).map(Value::One),
        ElementKind::Signed | ElementKind::Unsigned => {
            integer::binary(b, op, ty, x.one(), y.one()).map(Value::One)
        }
    }
}

fn binary_complex(b: &mut KernelBuilder, op: HloBinary, x: Value, y: Value) -> Option<Value> {
    let ((a, bi), (c, d)) = (x.pair(), y.pair());
    Some(match op {
        HloBinary::Add => x.zip(y, |p, q| b.add(p, q)),
        HloBinary::Subtract => x.zip(y, |p, q| b.sub(p, q)),
        HloBinary::Maximum | HloBinary::Minimum => {
            let direction = match op {
                HloBinary::Maximum => ComparisonDirection::Ge,
                _ => ComparisonDirection::Le,
            };
            let order = ComparisonType::Float;
            let first = compare(b, direction, order, PrimitiveType::C128, x, y)?;
            x.zip(y, |p, q| b.select(first, p, q))
        }
        HloBinary::Multiply => {
            let (ac, bd) = (b.mul(a, c), b.mul(bi, d));
            let (ad, bc) = (b.mul(a, d), b.mul(bi, c));
            let re = b.sub(ac, bd);
            Value::Pair(re, b.add(ad, bc))
        }
        _ => {
            // The functions take the lanes of the first operand for those of all.
            let lanes = b.ty(a).lanes.max(b.ty(c).lanes);
            let [x, y] = [(a, bi), (c, d)].map(|(re, im)| (b.splat(re, lanes), b.splat(im, lanes)));
            let (re, im) = math::complex::binary(b, op, x, y)?;
            Value::Pair(re, im)
        }
    })
}

fn binary_float(
    b: &mut KernelBuilder,
    op: HloBinary,
    ty: PrimitiveType,
    x: ExprId,
    y: ExprId,
) -> Option<ExprId> {
    let lanes = b.ty(x).lanes.max(b.ty(y).lanes);
    let (x, y) = (convert::widen(b, ty, x), convert::widen(b, ty, y));
    let simple = match op {
        HloBinary::Add => Some(BinaryOp::Add),
        HloBinary::Subtract => Some(BinaryOp::Sub),
        HloBinary::Multiply => Some(BinaryOp::Mul),
        HloBinary::Divide => Some(BinaryOp::FDiv),
        HloBinary::Maximum => Some(BinaryOp::FMax),
        HloBinary::Minimum => Some(BinaryOp::FMin),
        _ => None,
    };
    let result = match simple {
        Some(op) => b.binary(op, x, y),
        None => {
            let (x, y) = (b.splat(x, lanes), b.splat(y, lanes));
            math::binary(b, op, x, y)?
        }
    };
    Some(convert::narrow(b, ty, result))
}

fn binary_pred(b: &mut KernelBuilder, op: HloBinary, x: ExprId, y: ExprId) -> Option<ExprId> {
    let op = match op {
        HloBinary::And | HloBinary::Multiply | HloBinary::Minimum => BinaryOp::And,
        HloBinary::Or | HloBinary::Add | HloBinary::Maximum => BinaryOp::Or,
        HloBinary::Xor | HloBinary::Subtract => BinaryOp::Xor,
        _ => return None,
    };
    Some(b.binary(op, x, y))
}

/// A comparison of values of type `ty`; the result is a truth value.
pub fn compare(
    b: &mut KernelBuilder,
    direction: ComparisonDirection,
    order: ComparisonType,
    ty: PrimitiveType,
    x: Value,
    y: Value,
) -> Option<ExprId> {
    use ComparisonDirection as Dir;
    if ty.is_complex() {
        let ((a, bi), (c, d)) = (x.pair(), y.pair());
        if direction == Dir::Ne {
            let (re, im) = (b.cmp(CmpOp::FNe, a, c), b.cmp(CmpOp::FNe, bi, d));
            return Some(b.binary(BinaryOp::Or, re, im));
        }
        // By real parts, equal ones by imaginary parts.
        let equal = b.cmp(CmpOp::FEq, a, c);
        let im = b.cmp(float_relation(direction), bi, d);
        let both = b.binary(BinaryOp::And, equal, im);
        let strict = match direction {
            Dir::Eq | Dir::Ne => return Some(both),
            Dir::Ge | Dir::Gt => CmpOp::FGt,
            Dir::Le | Dir::Lt => CmpOp::FLt,
        };
        let re = b.cmp(strict, a, c);
        return Some(b.binary(BinaryOp::Or, re, both));
    }
    let (x, y) = (x.one(), y.one());
    if ty.is_float() && order == ComparisonType::TotalOrder {
        let (x, y) = (order_key(b, ty, x), order_key(b, ty, y));
        return Some(b.cmp(signed_relation(direction), x, y));
    }
    if ty.is_float() {
        let (x, y) = (convert::widen(b, ty, x), convert::widen(b, ty, y));
        return Some(b.cmp(float_relation(direction), x, y));
    }
    if ty.kind() == ElementKind::Pred {
        let (x, y) = (
            b.cast(CastOp::ZExt, x, Scalar::I8),
            b.cast(CastOp::ZExt, y, Scalar::I8),
        );
        return Some(b.cmp(unsigned_relation(direction), x, y));
    }
    let op = if ty.is_signed() {
        signed_relation(direction)
    } else {
        unsigned_relation(direction)
    };
    Some(b.cmp(op, x, y))
}

fn float_relation(direction: ComparisonDirection) -> CmpOp {
    match direction {
        ComparisonDirection::Eq => CmpOp::FEq,
        ComparisonDirection::Ne => CmpOp::FNe,
        ComparisonDirection::Ge => CmpOp::FGe,
        ComparisonDirection::Gt => CmpOp::FGt,
        ComparisonDirection::Le => CmpOp::FLe,
        ComparisonDirection::Lt => CmpOp::FLt,
    }
}

fn signed_relation(direction: ComparisonDirection) -> CmpOp {
    match direction {
        ComparisonDirection::Eq => CmpOp::IEq,
        ComparisonDirection::Ne => CmpOp::INe,
        ComparisonDirection::Ge => CmpOp::SGe,
        ComparisonDirection::Gt => CmpOp::SGt,
        ComparisonDirection::Le => CmpOp::SLe,
        ComparisonDirection::Lt => CmpOp::SLt,
    }
}

fn unsigned_relation(direction: ComparisonDirection) -> CmpOp {
    match direction {
        ComparisonDirection::Eq => CmpOp::IEq,
        ComparisonDirection::Ne => CmpOp::INe,
        ComparisonDirection::Ge => CmpOp::UGe,
        ComparisonDirection::Gt => CmpOp::UGt,
        ComparisonDirection::Le => CmpOp::ULe,
        ComparisonDirection::Lt => CmpOp::ULt,
    }
}

/// A signed integer that orders floats as the total order does: the bits, with all but the sign
/// flipped for negative numbers.
fn order_key(b: &mut KernelBuilder, ty: PrimitiveType, x: ExprId) -> ExprId {
    let scalar = register(ty).as_int();
    let bits = b.bitcast(x, b.ty(x).with_scalar(scalar));
    let int = b.ty(bits);
    let width = i64::from(scalar.bits());
    if ty == PrimitiveType::F8E8M0FNU {
        // Scales have no sign.
        let top = b.int(int, i64::from(i8::MIN));
        return b.binary(BinaryOp::Xor, bits, top);
    }
    let spare = b.int(int, width - ty.bit_width() as i64);
    let bits = b.binary(BinaryOp::Shl, bits, spare);
    let (top, one) = (b.int(int, width - 1), b.int(int, 1));
    let negative = b.binary(BinaryOp::AShr, bits, top);
    let flip = b.binary(BinaryOp::LShr, negative, one);
    let key = b.binary(BinaryOp::Xor, bits, flip);
    if !small_float::is_negative_zero_nan(ty) {
        return key;
    }
    // The NaN comes before all numbers, and the negative ones move up by one to make room.
    let key = b.sub(key, negative);
    let nan = b.int(int, i64::from(i8::MIN));
    let is_nan = b.cmp(CmpOp::IEq, bits, nan);
    b.select(is_nan, nan, key)
}

/// The larger or smaller of two values; a NaN wins.
pub fn clamp(
    b: &mut KernelBuilder,
    ty: PrimitiveType,
    low: Value,
    x: Value,
    high: Value,
) -> Option<Value> {
    let raised = binary(b, HloBinary::Maximum, ty, x, low)?;
    binary(b, HloBinary::Minimum, ty, raised, high)
}
