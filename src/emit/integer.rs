//! Elementwise ops on integers of every width.

use crate::emit::convert;
use crate::hlo::BinaryOp as HloBinary;
use crate::hlo::UnaryOp as HloUnary;
use crate::kernel::BinaryOp;
use crate::kernel::CastOp;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Scalar;
use crate::kernel::UnaryOp;
use crate::kernel::Unroll;
use crate::shape::PrimitiveType;

/// A unary op on an integer of type `ty`.
pub fn unary(b: &mut KernelBuilder, op: HloUnary, ty: PrimitiveType, x: ExprId) -> Option<ExprId> {
    let reg = b.ty(x);
    let zero = b.int(reg, 0);
    let result = match op {
        HloUnary::Negate => b.sub(zero, x),
        HloUnary::Not => b.unary(UnaryOp::Not, x),
        HloUnary::Abs if !ty.is_signed() => x,
        HloUnary::Abs => {
            let negated = b.sub(zero, x);
            b.binary(BinaryOp::SMax, x, negated)
        }
        HloUnary::Sign if !ty.is_signed() => {
            let one = b.int(reg, 1);
            b.binary(BinaryOp::UMin, x, one)
        }
        HloUnary::Sign => {
            let (one, minus) = (b.int(reg, 1), b.int(reg, -1));
            let low = b.binary(BinaryOp::SMax, x, minus);
            b.binary(BinaryOp::SMin, low, one)
        }
        HloUnary::PopulationCount => {
            let bits = zero_extended(b, ty, x);
            b.unary(UnaryOp::Popcnt, bits)
        }
        HloUnary::CountLeadingZeros => {
            let bits = zero_extended(b, ty, x);
            let count = b.unary(UnaryOp::Clz, bits);
            let spare = i64::from(reg.scalar.bits()) - ty.bit_width() as i64;
            b.add_const(count, -spare)
        }
        _ => return None,
    };
    Some(convert::wrap(b, ty, result))
}

/// The value's bits with zeros above them.
fn zero_extended(b: &mut KernelBuilder, ty: PrimitiveType, x: ExprId) -> ExprId {
    let spare = i64::from(b.ty(x).scalar.bits()) - ty.bit_width() as i64;
    if spare == 0 {
        return x;
    }
    let mask = b.int(b.ty(x), (1 << ty.bit_width()) - 1);
    b.binary(BinaryOp::And, x, mask)
}

/// A binary op on integers of type `ty`.
pub fn binary(
    b: &mut KernelBuilder,
    op: HloBinary,
    ty: PrimitiveType,
    x: ExprId,
    y: ExprId,
) -> Option<ExprId> {
    let lanes = b.ty(x).lanes.max(b.ty(y).lanes);
    let (x, y) = match op {
        HloBinary::Divide
        | HloBinary::Remainder
        | HloBinary::Power
        | HloBinary::ShiftLeft
        | HloBinary::ShiftRightArithmetic
        | HloBinary::ShiftRightLogical => (b.splat(x, lanes), b.splat(y, lanes)),
        _ => (x, y),
    };
    let signed = ty.is_signed();
    let result = match op {
        HloBinary::Add => b.add(x, y),
        HloBinary::Subtract => b.sub(x, y),
        HloBinary::Multiply => b.mul(x, y),
        HloBinary::And => b.binary(BinaryOp::And, x, y),
        HloBinary::Or => b.binary(BinaryOp::Or, x, y),
        HloBinary::Xor => b.binary(BinaryOp::Xor, x, y),
        HloBinary::Maximum if signed => b.binary(BinaryOp::SMax, x, y),
        HloBinary::Maximum => b.binary(BinaryOp::UMax, x, y),
        HloBinary::Minimum if signed => b.binary(BinaryOp::SMin, x, y),
        HloBinary::Minimum => b.binary(BinaryOp::UMin, x, y),
        HloBinary::MulHi => mul_high(b, ty, x, y),
        HloBinary::Divide => divide(b, ty, x, y),
        HloBinary::Remainder => remainder(b, ty, x, y),
        HloBinary::Power => power(b, ty, x, y),
        HloBinary::ShiftLeft => shift(b, BinaryOp::Shl, ty, x, y),
        HloBinary::ShiftRightArithmetic => {
            let value = sign_extended(b, ty, x);
            shift(b, BinaryOp::AShr, ty, value, y)
        }
        HloBinary::ShiftRightLogical => {
            let value = zero_extended(b, ty, x);
            shift(b, BinaryOp::LShr, ty, value, y)
        }
        HloBinary::Atan2 | HloBinary::Complex => return None,
    };
    Some(convert::wrap(b, ty, result))
}

/// The value's bits with copies of the uppermost above them.
fn sign_extended(b: &mut KernelBuilder, ty: PrimitiveType, x: ExprId) -> ExprId {
    let spare = i64::from(b.ty(x).scalar.bits()) - ty.bit_width() as i64;
    if spare == 0 {
        return x;
    }
    let amount = b.int(b.ty(x), spare);
    let up = b.binary(BinaryOp::Shl, x, amount);
    b.binary(BinaryOp::AShr, up, amount)
}

fn shift(
    b: &mut KernelBuilder,
    op: BinaryOp,
    ty: PrimitiveType,
    x: ExprId,
    amount: ExprId,
) -> ExprId {
    let reg = b.ty(x);
    let width = ty.bit_width() as i64;
    let last = b.int(reg, width - 1);
    // A negative amount is a large one.
    let in_range = b.cmp(CmpOp::ULe, amount, last);
    let safe = b.binary(BinaryOp::UMin, amount, last);
    let shifted = b.binary(op, x, safe);
    if op == BinaryOp::AShr {
        return shifted;
    }
    let zero = b.int(reg, 0);
    b.select(in_range, shifted, zero)
}

fn mul_high(b: &mut KernelBuilder, ty: PrimitiveType, x: ExprId, y: ExprId) -> ExprId {
    let width = ty.bit_width() as i64;
    let (mul, down) = if ty.is_signed() {
        (BinaryOp::SMulHi, BinaryOp::AShr)
    } else {
        (BinaryOp::UMulHi, BinaryOp::LShr)
    };
    if width >= 8 {
        return b.binary(mul, x, y);
    }
    let product = b.mul(x, y);
    let amount = b.int(b.ty(product), width);
    b.binary(down, product, amount)
}

/// The divisor with what would trap replaced by one, and whether it was zero.
fn safe_divisor(
    b: &mut KernelBuilder,
    ty: PrimitiveType,
    x: ExprId,
    y: ExprId,
) -> (ExprId, ExprId) {
    let reg = b.ty(x);
    let (zero, one) = (b.int(reg, 0), b.int(reg, 1));
    if let Some(bits) = b.as_const(y) {
        let minus_one = (u64::MAX) >> (64 - reg.scalar.bits());
        if bits != 0 && !(ty.is_signed() && bits == minus_one) {
            return (y, b.bool(reg.lanes, false));
        }
    }
    let is_zero = b.cmp(CmpOp::IEq, y, zero);
    let mut unsafe_ = is_zero;
    if ty.is_signed() {
        let minus = b.int(reg, -1);
        let smallest = b.int(reg, 1i64 << (reg.scalar.bits() - 1));
        let is_minus = b.cmp(CmpOp::IEq, y, minus);
        let is_smallest = b.cmp(CmpOp::IEq, x, smallest);
        let overflows = b.binary(BinaryOp::And, is_minus, is_smallest);
        unsafe_ = b.binary(BinaryOp::Or, unsafe_, overflows);
    }
    (b.select(unsafe_, one, y), is_zero)
}

fn divide(b: &mut KernelBuilder, ty: PrimitiveType, x: ExprId, y: ExprId) -> ExprId {
    let (safe, is_zero) = safe_divisor(b, ty, x, y);
    let quotient = quotient(b, ty, x, safe);
    let all_ones = b.int(b.ty(x), -1);
    b.select(is_zero, all_ones, quotient)
}

/// A quotient whose divisor is safe. Vectors of at most 32 bits divide in floating point, which is
/// exact: the quotient of two such integers is never closer below a whole number than the spacing
/// of the wider mantissa.
fn quotient(b: &mut KernelBuilder, ty: PrimitiveType, x: ExprId, y: ExprId) -> ExprId {
    let reg = b.ty(x);
    let signed = ty.is_signed();
    let plain = if signed {
        BinaryOp::SDiv
    } else {
        BinaryOp::UDiv
    };
    if reg.lanes == 1 || reg.scalar == Scalar::I64 || b.as_const(y).is_some() {
        return b.binary(plain, x, y);
    }
    let (extend, to_float, to_int) = if signed {
        (CastOp::SExt, CastOp::SIntToFp, CastOp::FpToSIntSat)
    } else {
        (CastOp::ZExt, CastOp::UIntToFp, CastOp::FpToUIntSat)
    };
    let float = if reg.scalar == Scalar::I32 {
        Scalar::F64
    } else {
        Scalar::F32
    };
    let (wide_x, wide_y) = (
        b.cast(extend, x, Scalar::I32),
        b.cast(extend, y, Scalar::I32),
    );
    let (fx, fy) = (
        b.cast(to_float, wide_x, float),
        b.cast(to_float, wide_y, float),
    );
    let ratio = b.binary(BinaryOp::FDiv, fx, fy);
    let whole = b.cast(to_int, ratio, Scalar::I32);
    b.cast(CastOp::Trunc, whole, reg.scalar)
}

fn remainder(b: &mut KernelBuilder, ty: PrimitiveType, x: ExprId, y: ExprId) -> ExprId {
    let (safe, is_zero) = safe_divisor(b, ty, x, y);
    let rest = if b.ty(x).lanes == 1 || b.as_const(safe).is_some() {
        let op = if ty.is_signed() {
            BinaryOp::SRem
        } else {
            BinaryOp::URem
        };
        b.binary(op, x, safe)
    } else {
        let quotient = quotient(b, ty, x, safe);
        let whole = b.mul(quotient, safe);
        b.sub(x, whole)
    };
    b.select(is_zero, x, rest)
}

/// Repeated squaring over the bits of the exponent. A negative exponent gives zero but for the
/// bases 1 and -1.
fn power(b: &mut KernelBuilder, ty: PrimitiveType, x: ExprId, y: ExprId) -> ExprId {
    let reg = b.ty(x);
    let (zero, one) = (b.int(reg, 0), b.int(reg, 1));
    let (start, step) = (b.index(0), b.index(1));
    let end = b.index(ty.bit_width() as i64);
    let results = b.for_carried(
        (start, end, step),
        &[one, x, y],
        Unroll::Never,
        |b, _, carried| {
            let bit = b.binary(BinaryOp::And, carried[2], one);
            let set = b.cmp(CmpOp::INe, bit, zero);
            let product = b.mul(carried[0], carried[1]);
            let product = b.select(set, product, carried[0]);
            let square = b.mul(carried[1], carried[1]);
            let rest = b.binary(BinaryOp::LShr, carried[2], one);
            vec![product, square, rest]
        },
    );
    if !ty.is_signed() {
        return results[0];
    }
    let minus = b.int(reg, -1);
    let is_one = b.cmp(CmpOp::IEq, x, one);
    let is_minus = b.cmp(CmpOp::IEq, x, minus);
    let bit = b.binary(BinaryOp::And, y, one);
    let is_odd = b.cmp(CmpOp::INe, bit, zero);
    let sign = b.select(is_odd, minus, one);
    let other = b.select(is_one, one, zero);
    let inverse = b.select(is_minus, sign, other);
    let negative = b.cmp(CmpOp::SLt, y, zero);
    b.select(negative, inverse, results[0])
}
