//! Conversions between element types, value by value.
//!
//! Float to integer truncates, saturates and gives zero for NaN; integers wrap; everything rounds
//! to nearest even, once.

use crate::emit::small_float;
use crate::emit::value::Value;
use crate::emit::value::register;
use crate::kernel::BinaryOp;
use crate::kernel::CastOp;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Scalar;
use crate::kernel::Ty;
use crate::kernel::UnaryOp;
use crate::shape::ElementKind;
use crate::shape::PrimitiveType;

/// Whether elements of the type are computed with in a wider type.
pub fn is_narrow_float(ty: PrimitiveType) -> bool {
    ty.is_float() && ty.bit_width() <= 16
}

/// The type floats of `ty` are computed in: f32 for the narrow ones.
pub fn compute_type(ty: PrimitiveType) -> PrimitiveType {
    if is_narrow_float(ty) {
        PrimitiveType::F32
    } else {
        ty
    }
}

/// A float register, widened to the type it is computed in.
pub fn widen(b: &mut KernelBuilder, ty: PrimitiveType, x: ExprId) -> ExprId {
    match ty {
        PrimitiveType::F16 => {
            let half = b.bitcast(x, b.ty(x).with_scalar(Scalar::F16));
            b.cast(CastOp::FpExt, half, Scalar::F32)
        }
        PrimitiveType::BF16 => {
            let wide = b.cast(CastOp::ZExt, x, Scalar::I32);
            let shift = b.int(b.ty(wide), 16);
            let bits = b.binary(BinaryOp::Shl, wide, shift);
            b.bitcast(bits, b.ty(bits).with_scalar(Scalar::F32))
        }
        ty if ty.is_small_float() => small_float::decode(b, ty, x),
        _ => x,
    }
}

/// An f32 (or, for the wide types, the value itself) rounded to a float type.
pub fn narrow(b: &mut KernelBuilder, ty: PrimitiveType, x: ExprId) -> ExprId {
    match ty {
        PrimitiveType::F16 => {
            let half = b.cast(CastOp::FpTrunc, x, Scalar::F16);
            b.bitcast(half, b.ty(half).with_scalar(Scalar::I16))
        }
        PrimitiveType::BF16 => narrow_bf16(b, x),
        ty if ty.is_small_float() => small_float::encode(b, ty, x),
        _ => x,
    }
}

fn narrow_bf16(b: &mut KernelBuilder, x: ExprId) -> ExprId {
    let ty = b.ty(x).with_scalar(Scalar::I32);
    let bits = b.bitcast(x, ty);
    let (sixteen, one) = (b.int(ty, 16), b.int(ty, 1));
    let odd = b.binary(BinaryOp::LShr, bits, sixteen);
    let odd = b.binary(BinaryOp::And, odd, one);
    let bias = b.add_const(odd, 0x7fff);
    let rounded = b.add(bits, bias);
    let nan = b.cmp(CmpOp::FUno, x, x);
    let quiet = b.int(ty, 0x0040_0000);
    let quiet = b.binary(BinaryOp::Or, bits, quiet);
    let rounded = b.select(nan, quiet, rounded);
    let upper = b.binary(BinaryOp::LShr, rounded, sixteen);
    b.cast(CastOp::Trunc, upper, Scalar::I16)
}

/// An f64 rounded to f32 so that rounding again to a much narrower type gives the right result:
/// toward zero, with the last bit set when inexact.
pub fn round_to_odd(b: &mut KernelBuilder, x: ExprId) -> ExprId {
    let near = b.cast(CastOp::FpTrunc, x, Scalar::F32);
    let back = b.cast(CastOp::FpExt, near, Scalar::F64);
    let ty = b.ty(near).with_scalar(Scalar::I32);
    let bits = b.bitcast(near, ty);
    let abs_back = b.unary(UnaryOp::Abs, back);
    let abs_x = b.unary(UnaryOp::Abs, x);
    let above = b.cmp(CmpOp::FGt, abs_back, abs_x);
    let below = b.cmp(CmpOp::FLt, abs_back, abs_x);
    let lower = b.add_const(bits, -1);
    let one = b.int(ty, 1);
    let down = b.select(above, lower, bits);
    let odd = b.binary(BinaryOp::Or, down, one);
    let inexact = b.binary(BinaryOp::Or, above, below);
    let bits = b.select(inexact, odd, bits);
    b.bitcast(bits, ty.with_scalar(Scalar::F32))
}

/// Cuts an `i8` register to the width of a sub-byte integer type, keeping it sign- or
/// zero-extended; other types are left alone.
pub fn wrap(b: &mut KernelBuilder, ty: PrimitiveType, x: ExprId) -> ExprId {
    let width = ty.bit_width() as i64;
    if width >= 8 || ty.kind() == ElementKind::Pred {
        return x;
    }
    if ty.is_signed() {
        let shift = b.int(b.ty(x), 8 - width);
        let up = b.binary(BinaryOp::Shl, x, shift);
        return b.binary(BinaryOp::AShr, up, shift);
    }
    let mask = b.int(b.ty(x), (1 << width) - 1);
    b.binary(BinaryOp::And, x, mask)
}

/// Converts a value of type `from` to type `to`, as the `convert` op does.
pub fn convert(b: &mut KernelBuilder, from: PrimitiveType, to: PrimitiveType, v: Value) -> Value {
    if from == to {
        return v;
    }
    if to.is_complex() {
        let part = to.real_part();
        return match v {
            Value::Pair(re, im) => Value::Pair(
                real(b, from.real_part(), part, re),
                real(b, from.real_part(), part, im),
            ),
            Value::One(x) => {
                let re = real(b, from, part, x);
                let im = b.float(b.ty(re), 0.0);
                Value::Pair(re, im)
            }
        };
    }
    Value::One(real(b, from.real_part(), to, v.one()))
}

/// Converts between types that are not complex.
fn real(b: &mut KernelBuilder, from: PrimitiveType, to: PrimitiveType, x: ExprId) -> ExprId {
    if from == to {
        return x;
    }
    match (from.is_float(), to.is_float()) {
        (true, true) => float_to_float(b, from, to, x),
        (true, false) => {
            let wide = widen(b, from, x);
            float_to_int(b, to, wide)
        }
        (false, true) if is_narrow_float(to) && from.bit_width() >= 32 => {
            let exact = fit_f64(b, from, x);
            let wide = int_to_float(b, from, PrimitiveType::F64, exact);
            let odd = round_to_odd(b, wide);
            narrow(b, to, odd)
        }
        (false, true) => {
            let wide = int_to_float(b, from, compute_type(to), x);
            narrow(b, to, wide)
        }
        (false, false) => int_to_int(b, from, to, x),
    }
}

fn float_to_float(
    b: &mut KernelBuilder,
    from: PrimitiveType,
    to: PrimitiveType,
    x: ExprId,
) -> ExprId {
    let wide = widen(b, from, x);
    if to == PrimitiveType::F64 {
        return b.cast(CastOp::FpExt, wide, Scalar::F64);
    }
    if from != PrimitiveType::F64 {
        return narrow(b, to, wide);
    }
    if to == PrimitiveType::F32 {
        return b.cast(CastOp::FpTrunc, wide, Scalar::F32);
    }
    let odd = round_to_odd(b, wide);
    narrow(b, to, odd)
}

/// An integer that f64 holds and that rounds to the same narrow float: of a large one the low bits
/// become one that says whether there were any.
fn fit_f64(b: &mut KernelBuilder, from: PrimitiveType, x: ExprId) -> ExprId {
    let ty = b.ty(x);
    if ty.scalar != Scalar::I64 {
        return x;
    }
    let (mask, mark, zero) = (b.int(ty, 0xfff), b.int(ty, 0x800), b.int(ty, 0));
    let low = b.binary(BinaryOp::And, x, mask);
    let upper = b.sub(x, low);
    let marked = b.binary(BinaryOp::Or, upper, mark);
    let inexact = b.cmp(CmpOp::INe, low, zero);
    let short = b.select(inexact, marked, upper);
    // The upper bits of what f64 holds anyway are clear, or the sign's.
    let (op, signs) = if from.is_signed() {
        (BinaryOp::AShr, 1)
    } else {
        (BinaryOp::LShr, 0)
    };
    let fifty_two = b.int(ty, 52);
    let top = b.binary(op, x, fifty_two);
    let top = b.add_const(top, signs);
    let limit = b.int(ty, 1 + signs);
    let is_small = b.cmp(CmpOp::ULt, top, limit);
    b.select(is_small, x, short)
}

fn int_to_float(
    b: &mut KernelBuilder,
    from: PrimitiveType,
    to: PrimitiveType,
    x: ExprId,
) -> ExprId {
    let scalar = register(to);
    // Narrow integers go by way of i32: every machine converts that, and exactly.
    let (x, op) = match (from.is_signed(), b.ty(x).scalar) {
        (true, Scalar::I8 | Scalar::I16) => {
            (b.cast(CastOp::SExt, x, Scalar::I32), CastOp::SIntToFp)
        }
        (true, _) => (x, CastOp::SIntToFp),
        (false, Scalar::I1 | Scalar::I8 | Scalar::I16) => {
            (b.cast(CastOp::ZExt, x, Scalar::I32), CastOp::SIntToFp)
        }
        (false, _) => (x, CastOp::UIntToFp),
    };
    b.cast(op, x, scalar)
}

fn float_to_int(b: &mut KernelBuilder, to: PrimitiveType, x: ExprId) -> ExprId {
    if to.kind() == ElementKind::Pred {
        let zero = b.float(b.ty(x), 0.0);
        return b.cmp(CmpOp::FNe, x, zero);
    }
    let scalar = register(to);
    let width = to.bit_width() as u32;
    if width >= 32 {
        let op = if to.is_signed() {
            CastOp::FpToSIntSat
        } else {
            CastOp::FpToUIntSat
        };
        return b.cast(op, x, scalar);
    }
    let wide = b.cast(CastOp::FpToSIntSat, x, Scalar::I32);
    let ty = b.ty(wide);
    let (low, high) = if to.is_signed() {
        (-(1i64 << (width - 1)), (1i64 << (width - 1)) - 1)
    } else {
        (0, (1i64 << width) - 1)
    };
    let (low, high) = (b.int(ty, low), b.int(ty, high));
    let wide = b.binary(BinaryOp::SMax, wide, low);
    let wide = b.binary(BinaryOp::SMin, wide, high);
    b.cast(CastOp::Trunc, wide, scalar)
}

fn int_to_int(b: &mut KernelBuilder, from: PrimitiveType, to: PrimitiveType, x: ExprId) -> ExprId {
    if to.kind() == ElementKind::Pred {
        let zero = b.int(b.ty(x), 0);
        return b.cmp(CmpOp::INe, x, zero);
    }
    let (have, want) = (b.ty(x).scalar, register(to));
    let resized = if want.bits() < have.bits() {
        b.cast(CastOp::Trunc, x, want)
    } else if from.is_signed() {
        b.cast(CastOp::SExt, x, want)
    } else {
        b.cast(CastOp::ZExt, x, want)
    };
    if to.bit_width() < 8 && to.bit_width() < from.bit_width().max(2)
        || (to.bit_width() < 8 && from.is_signed() != to.is_signed())
    {
        return wrap(b, to, resized);
    }
    resized
}

/// Rounds a value of that type, in an f32 or f64 register, to a float with these widths of exponent
/// and mantissa, as `reduce-precision` does.
pub fn reduce_precision(
    b: &mut KernelBuilder,
    ty: PrimitiveType,
    x: ExprId,
    (exponent_bits, mantissa_bits): (u32, u32),
) -> ExprId {
    let float = b.ty(x);
    let (int, mantissa, exponent) = match float.scalar {
        Scalar::F64 => (float.with_scalar(Scalar::I64), 52u32, 11u32),
        _ => (float.with_scalar(Scalar::I32), 23, 8),
    };
    let sign_bit = 1i64 << (mantissa + exponent);
    let bits = b.bitcast(x, int);
    let mut out = bits;
    if mantissa_bits < mantissa {
        let drop = mantissa - mantissa_bits;
        let shift = b.int(int, i64::from(drop));
        let one = b.int(int, 1);
        let odd = b.binary(BinaryOp::LShr, out, shift);
        let odd = b.binary(BinaryOp::And, odd, one);
        let bias = b.add_const(odd, (1i64 << (drop - 1)) - 1);
        let sum = b.add(out, bias);
        let mask = b.int(int, !((1i64 << drop) - 1));
        out = b.binary(BinaryOp::And, sum, mask);
    }
    // Types with the exponents of f16 have subnormal numbers that are normal ones here.
    let own_exponent = match ty {
        PrimitiveType::F16 | PrimitiveType::F8E5M2 => 5,
        _ => exponent,
    };
    if own_exponent < exponent && mantissa_bits < 10 {
        let small = round_subnormal(b, x, mantissa_bits);
        let small = b.bitcast(small, int);
        let size = b.unary(UnaryOp::Abs, x);
        let normal = b.float(float, 2f64.powi(-14));
        let is_small = b.cmp(CmpOp::FLt, size, normal);
        out = b.select(is_small, small, out);
    }
    if exponent_bits < own_exponent {
        out = clip_exponent(b, out, int, (mantissa, exponent), exponent_bits, sign_bit);
    }
    let rounded = b.bitcast(out, float);
    let nan = b.cmp(CmpOp::FUno, x, x);
    b.select(nan, x, rounded)
}

/// Rounds a subnormal number of f16 to the multiples of 2^-14 that so many bits of mantissa hold.
fn round_subnormal(b: &mut KernelBuilder, x: ExprId, mantissa_bits: u32) -> ExprId {
    let float = b.ty(x);
    // Where this is added, no finer digits are left.
    let coarse = b.float(
        float,
        1.5 * 2f64.powi(23 - 14 - mantissa_bits.cast_signed()),
    );
    let size = b.unary(UnaryOp::Abs, x);
    let sum = b.binary(BinaryOp::Add, size, coarse);
    let size = b.binary(BinaryOp::Sub, sum, coarse);
    b.binary(BinaryOp::CopySign, size, x)
}

/// Too large becomes infinity, too small a signed zero.
fn clip_exponent(
    b: &mut KernelBuilder,
    bits: ExprId,
    int: Ty,
    (mantissa, exponent): (u32, u32),
    exponent_bits: u32,
    sign_bit: i64,
) -> ExprId {
    let own_bias = (1i64 << (exponent - 1)) - 1;
    let bias = (1i64 << (exponent_bits - 1)) - 1;
    let abs_mask = b.int(int, sign_bit.wrapping_sub(1));
    let abs = b.binary(BinaryOp::And, bits, abs_mask);
    let sign_mask = b.int(int, sign_bit);
    let sign = b.binary(BinaryOp::And, bits, sign_mask);
    let infinity = b.int(int, ((1i64 << exponent) - 1) << mantissa);
    let too_large = b.int(int, (own_bias + bias + 1) << mantissa);
    let smallest = b.int(int, (own_bias - bias + 1) << mantissa);
    let is_large = b.cmp(CmpOp::SGe, abs, too_large);
    let is_small = b.cmp(CmpOp::SLt, abs, smallest);
    let large = b.binary(BinaryOp::Or, sign, infinity);
    let out = b.select(is_large, large, bits);
    b.select(is_small, sign, out)
}
