//! Floats of at most eight bits: storage bits to f32 and back, rounding to nearest even.
//!
//! The integer methods are those of any software float: shift the fields into place, add a power of
//! two to let the hardware round subnormals, select the special codes at the end.

use crate::kernel::BinaryOp;
use crate::kernel::CastOp;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Scalar;
use crate::shape::PrimitiveType;

/// Which codes are special.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Specials {
    /// All-ones exponent: infinities and NaN.
    Ieee,
    /// Only the all-ones code is NaN; no infinities.
    OneNan,
    /// Only the negative zero is NaN; no infinities.
    NegativeZeroNan,
    /// None; too large saturates.
    None,
}

#[derive(Clone, Copy, Debug)]
struct Format {
    /// Width in bits.
    width: u32,
    mantissa: u32,
    bias: i64,
    specials: Specials,
}

fn format(ty: PrimitiveType) -> Format {
    let (width, mantissa, bias, specials) = match ty {
        PrimitiveType::F4E2M1FN => (4, 1, 1, Specials::None),
        PrimitiveType::F6E2M3FN => (6, 3, 1, Specials::None),
        PrimitiveType::F6E3M2FN => (6, 2, 3, Specials::None),
        PrimitiveType::F8E3M4 => (8, 4, 3, Specials::Ieee),
        PrimitiveType::F8E4M3 => (8, 3, 7, Specials::Ieee),
        PrimitiveType::F8E4M3FN => (8, 3, 7, Specials::OneNan),
        PrimitiveType::F8E4M3B11FNUZ => (8, 3, 11, Specials::NegativeZeroNan),
        PrimitiveType::F8E4M3FNUZ => (8, 3, 8, Specials::NegativeZeroNan),
        PrimitiveType::F8E5M2FNUZ => (8, 2, 16, Specials::NegativeZeroNan),
        _ => (8, 2, 15, Specials::Ieee),
    };
    Format {
        width,
        mantissa,
        bias,
        specials,
    }
}

/// Whether the bits of the negative zero are the type's NaN.
pub fn is_negative_zero_nan(ty: PrimitiveType) -> bool {
    ty.is_small_float() && format(ty).specials == Specials::NegativeZeroNan
}

impl Format {
    fn exponent(self) -> u32 {
        self.width - 1 - self.mantissa
    }
    /// The largest code of a finite number, without the sign.
    fn max_finite(self) -> i64 {
        let all = (1i64 << (self.width - 1)) - 1;
        match self.specials {
            Specials::Ieee => (((1 << self.exponent()) - 1) << self.mantissa) - 1,
            Specials::OneNan => all - 1,
            Specials::NegativeZeroNan | Specials::None => all,
        }
    }
    /// The code a NaN becomes, with the sign bit where it has a say.
    fn nan(self) -> i64 {
        let exponent = ((1i64 << self.exponent()) - 1) << self.mantissa;
        match self.specials {
            Specials::Ieee => exponent | 1 << (self.mantissa - 1),
            Specials::OneNan => (1 << (self.width - 1)) - 1,
            Specials::NegativeZeroNan => 1 << (self.width - 1),
            // ml_dtypes turns a NaN into the negative zero.
            Specials::None => 1 << (self.width - 1),
        }
    }
    /// The code of what is too large, without the sign.
    fn overflow(self) -> i64 {
        match self.specials {
            Specials::Ieee => ((1 << self.exponent()) - 1) << self.mantissa,
            Specials::OneNan | Specials::NegativeZeroNan => self.nan(),
            Specials::None => self.max_finite(),
        }
    }
}

/// The f32 of each code in an `i8` register.
pub fn decode(b: &mut KernelBuilder, ty: PrimitiveType, x: ExprId) -> ExprId {
    let int = b.ty(x).with_scalar(Scalar::I32);
    let float = int.with_scalar(Scalar::F32);
    let code = b.cast(CastOp::ZExt, x, Scalar::I32);
    if ty == PrimitiveType::F8E8M0FNU {
        return decode_scale(b, code);
    }
    let f = format(ty);
    let all = (1i64 << (f.width - 1)) - 1;
    let mask = b.int(int, all);
    let abs = b.binary(BinaryOp::And, code, mask);
    let up = b.int(int, i64::from(23 - f.mantissa));
    let shifted = b.binary(BinaryOp::Shl, abs, up);
    let normal = b.add_const(shifted, (127 - f.bias) << 23);
    // A subnormal is its mantissa times the unit; small integers convert exactly.
    let count = b.cast(CastOp::SIntToFp, abs, Scalar::F32);
    let unit = b.float(
        float,
        f64::powi(2.0, (1 - f.bias) as i32 - f.mantissa as i32),
    );
    let subnormal = b.mul(count, unit);
    let subnormal = b.bitcast(subnormal, int);
    let smallest = b.int(int, 1 << f.mantissa);
    let is_subnormal = b.cmp(CmpOp::SLt, abs, smallest);
    let mut out = b.select(is_subnormal, subnormal, normal);
    let quiet = b.int(int, 0x7fc0_0000);
    match f.specials {
        Specials::Ieee => {
            let infinity = b.int(int, 0x7f80_0000);
            let code = b.int(int, f.max_finite() + 1);
            let is_infinite = b.cmp(CmpOp::IEq, abs, code);
            let is_nan = b.cmp(CmpOp::SGt, abs, code);
            out = b.select(is_infinite, infinity, out);
            out = b.select(is_nan, quiet, out);
        }
        Specials::OneNan => {
            let is_nan = b.cmp(CmpOp::IEq, abs, mask);
            out = b.select(is_nan, quiet, out);
        }
        Specials::NegativeZeroNan => {
            let nan = b.int(int, f.nan());
            let is_nan = b.cmp(CmpOp::IEq, code, nan);
            out = b.select(is_nan, quiet, out);
        }
        Specials::None => {}
    }
    let sign_bit = b.int(int, 1 << (f.width - 1));
    let sign = b.binary(BinaryOp::And, code, sign_bit);
    let up = b.int(int, i64::from(32 - f.width));
    let sign = b.binary(BinaryOp::Shl, sign, up);
    let out = b.binary(BinaryOp::Or, out, sign);
    b.bitcast(out, float)
}

/// 2^(code - 127); 255 is NaN.
fn decode_scale(b: &mut KernelBuilder, code: ExprId) -> ExprId {
    let int = b.ty(code);
    let shift = b.int(int, 23);
    let shifted = b.binary(BinaryOp::Shl, code, shift);
    let zero = b.int(int, 0);
    let smallest = b.int(int, 0x0040_0000);
    let is_zero = b.cmp(CmpOp::IEq, code, zero);
    let out = b.select(is_zero, smallest, shifted);
    let nan_code = b.int(int, 255);
    let quiet = b.int(int, 0x7fc0_0000);
    let is_nan = b.cmp(CmpOp::IEq, code, nan_code);
    let out = b.select(is_nan, quiet, out);
    b.bitcast(out, int.with_scalar(Scalar::F32))
}

/// The code nearest to each f32, in an `i8` register.
pub fn encode(b: &mut KernelBuilder, ty: PrimitiveType, x: ExprId) -> ExprId {
    let float = b.ty(x);
    let int = float.with_scalar(Scalar::I32);
    let bits = b.bitcast(x, int);
    let mask = b.int(int, 0x7fff_ffff);
    let abs = b.binary(BinaryOp::And, bits, mask);
    if ty == PrimitiveType::F8E8M0FNU {
        return encode_scale(b, bits, abs);
    }
    let f = format(ty);
    let drop = 23 - f.mantissa;
    let shift = b.int(int, i64::from(drop));
    let one = b.int(int, 1);
    let odd = b.binary(BinaryOp::LShr, abs, shift);
    let odd = b.binary(BinaryOp::And, odd, one);
    let bias = b.add_const(odd, (1i64 << (drop - 1)) - 1);
    let rounded = b.add(abs, bias);
    let rounded = b.binary(BinaryOp::LShr, rounded, shift);
    let normal = b.add_const(rounded, -((127 - f.bias) << f.mantissa));
    // Adding a power of two whose last place is the smallest subnormal rounds to that place.
    let power = (1 - f.bias) as i32 - f.mantissa as i32 + 23;
    let magic = b.float(float, f64::powi(2.0, power));
    let abs_float = b.bitcast(abs, float);
    let sum = b.add(abs_float, magic);
    let sum = b.bitcast(sum, int);
    let magic_bits = b.bitcast(magic, int);
    let subnormal = b.sub(sum, magic_bits);
    let smallest = b.int(int, (128 - f.bias) << 23);
    let is_small = b.cmp(CmpOp::SLt, abs, smallest);
    let code = b.select(is_small, subnormal, normal);
    let max = b.int(int, f.max_finite());
    let too_large = b.cmp(CmpOp::SGt, code, max);
    let overflow = b.int(int, f.overflow());
    let code = b.select(too_large, overflow, code);
    let infinity = b.int(int, 0x7f80_0000);
    let is_nan = b.cmp(CmpOp::SGt, abs, infinity);
    let nan = b.int(int, f.nan());
    let code = b.select(is_nan, nan, code);
    let code = with_sign(b, f, bits, code, is_nan);
    b.cast(CastOp::Trunc, code, Scalar::I8)
}

/// Sets the sign bit of the codes of negative numbers.
fn with_sign(
    b: &mut KernelBuilder,
    f: Format,
    bits: ExprId,
    code: ExprId,
    is_nan: ExprId,
) -> ExprId {
    let int = b.ty(code);
    let down = b.int(int, i64::from(32 - f.width));
    let sign = b.binary(BinaryOp::LShr, bits, down);
    let sign_bit = b.int(int, 1 << (f.width - 1));
    let sign = b.binary(BinaryOp::And, sign, sign_bit);
    let signed = b.binary(BinaryOp::Or, code, sign);
    match f.specials {
        // Zero has one code, and the NaN is negative already.
        Specials::NegativeZeroNan => {
            let zero = b.int(int, 0);
            let is_zero = b.cmp(CmpOp::IEq, code, zero);
            b.select(is_zero, code, signed)
        }
        Specials::None => b.select(is_nan, code, signed),
        Specials::Ieee | Specials::OneNan => signed,
    }
}

/// The nearest power of two, of two the larger one, as ml_dtypes has it; NaN for what has none.
fn encode_scale(b: &mut KernelBuilder, bits: ExprId, abs: ExprId) -> ExprId {
    let int = b.ty(bits);
    // Half a step is half of the mantissa; the smallest scale is a subnormal number, with a bit less.
    let (half, quarter) = (b.int(int, 0x0040_0000), b.int(int, 0x0020_0000));
    let smallest_normal = b.int(int, 0x0080_0000);
    let is_subnormal = b.cmp(CmpOp::SLt, abs, smallest_normal);
    let bias = b.select(is_subnormal, quarter, half);
    let rounded = b.add(abs, bias);
    let shift = b.int(int, 23);
    let code = b.binary(BinaryOp::LShr, rounded, shift);
    let nan = b.int(int, 255);
    let code = b.binary(BinaryOp::SMin, code, nan);
    let zero = b.int(int, 0);
    let is_not_positive = b.cmp(CmpOp::SLe, bits, zero);
    let code = b.select(is_not_positive, nan, code);
    b.cast(CastOp::Trunc, code, Scalar::I8)
}
