//! `cvt` of two or four values at once, the first operand in the highest place of the result.
//!
//! A format narrower than its place (fp6 in 8 bits) is padded with zeros above. NaN becomes the
//! NaN of the result's format, or its largest value where it has none.

use super::Round;
use super::convert::Scalar;
use super::float16;
use super::format;
use super::format::Format;
use super::soft::Exact;

/// The modifiers of a packed conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// The direction of rounding; stochastic conversions ignore it.
    pub round: Round,
    /// What is negative becomes `+0`.
    pub relu: bool,
    /// What is too large, and infinities, become the largest finite value.
    pub satfinite: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            round: Round::NearestEven,
            relu: false,
            satfinite: false,
        }
    }
}

/// How far apart the values of a packed register are.
#[inline]
pub const fn place(of: Scalar) -> u32 {
    match of {
        Scalar::E2M1 => 4,
        Scalar::F16 | Scalar::BF16 => 16,
        Scalar::F32 | Scalar::TF32 => 32,
        _ => 8,
    }
}

/// One f32 to the code of `to`.
#[inline]
pub fn narrow(to: Scalar, value: u32, options: &Options) -> u32 {
    // A negative operand of `.relu` is a zero; a NaN stays.
    let negative = (value >> 31 == 1) & (value & 0x7fff_ffff <= 0x7f80_0000);
    let value = if options.relu & negative { 0 } else { value };
    match to.format() {
        Some(format) if options.round == Round::NearestEven && format.fraction < 11 => {
            format.narrow_near(value, options.satfinite)
        }
        Some(format) => {
            let value = u64::from(value);
            Format::F32.convert(value, format, options.round, options.satfinite) as u32
        }
        None => u32::from(format::f32_to_ue8m0(
            value,
            options.round,
            options.satfinite,
        )),
    }
}

/// The f32 bits of a code of `from`, exactly; `from` is any float type but f64.
#[inline]
pub fn widen(from: Scalar, code: u32) -> u32 {
    match from.format() {
        Some(_) if matches!(from, Scalar::F32 | Scalar::TF32) => code,
        Some(format) => format.widen_f32(code),
        None => format::ue8m0_to_f32(code as u8),
    }
}

/// Two f32 to a pair, `a` in the upper place: `cvt.rn.f16x2.f32 d, a, b` and its kin.
#[inline]
pub fn pack2(to: Scalar, a: u32, b: u32, options: &Options) -> u32 {
    narrow(to, a, options) << place(to) | narrow(to, b, options)
}

/// A pair of f16 or bf16 to a pair of a smaller format: `cvt.rn.satfinite.e4m3x2.f16x2` and its
/// kin.
#[inline]
pub fn narrow2(to: Scalar, from: Scalar, pair: u32, options: &Options) -> u32 {
    let (low, high) = float16::halves(pair);
    pack2(
        to,
        widen(from, u32::from(high)),
        widen(from, u32::from(low)),
        options,
    )
}

/// A pair of a small format to a pair of f16 or bf16: `cvt.rn.f16x2.e4m3x2` and its kin. Every
/// value of a small format fits f16, every power of ue8m0 fits bf16.
#[inline]
pub fn widen2(to: Scalar, from: Scalar, pair: u32, relu: bool) -> u32 {
    let options = Options {
        relu,
        ..Options::default()
    };
    let apart = place(from);
    let low = pair & ((1 << apart) - 1);
    let high = (pair >> apart) & ((1 << apart) - 1);
    pack2(to, widen(from, high), widen(from, low), &options)
}

/// One f32 rounded away from zero when its dropped fraction, cut to `count` bits, plus the random
/// bits carries.
fn stochastic(to: Format, value: u32, random: u32, count: u32, options: &Options) -> u32 {
    let bits = u64::from(value);
    let (nan, negative) = (Format::F32.is_nan(bits), Format::F32.is_negative(bits));
    if nan || Format::F32.is_infinite(bits) || Format::F32.magnitude(bits) == 0 {
        return if options.relu && negative && !nan {
            0
        } else {
            Format::F32.convert(bits, to, Round::Zero, options.satfinite) as u32
        };
    }
    if options.relu && negative {
        return 0;
    }
    let exact = Exact::of(Format::F32, bits);
    let top = 127 - exact.mantissa.leading_zeros() as i32 + exact.exponent;
    let unit = top.max(1 - to.bias) - to.fraction as i32;
    let kept = exact.rounded(unit, Round::Zero);
    let fraction = exact.rounded(unit - count as i32, Round::Zero) - (kept << count);
    let up = fraction + u128::from(random & ((1 << count) - 1)) >= 1 << count;
    Exact {
        mantissa: kept + u128::from(up),
        exponent: unit,
        ..exact
    }
    .encode(to, Round::NearestEven, options.satfinite) as u32
}

/// Two f32 to f16x2 or bf16x2 by stochastic rounding, `a` in the upper half. The upper half of
/// `random` is for `a`, the lower for `b`: as many low bits of each as the format drops, 13 for
/// f16, 16 for bf16.
#[inline]
pub fn stochastic2(to: Scalar, a: u32, b: u32, random: u32, options: &Options) -> u32 {
    let (format, count) = match to {
        Scalar::BF16 => (Format::BF16, 16),
        _ => (Format::F16, 13),
    };
    let high = stochastic(format, a, random >> 16, count, options);
    high << 16 | stochastic(format, b, random & 0xffff, count, options)
}

/// Four f32 to four fp8, fp6 or fp4 by stochastic rounding, the first in the highest place. Each
/// takes one byte of `random`, the first the highest.
#[inline]
pub fn stochastic4(to: Scalar, values: [u32; 4], random: u32, options: &Options) -> u32 {
    let format = to.format().unwrap_or(Format::E4M3);
    let apart = place(to);
    let bytes = random.to_be_bytes();
    values.iter().zip(bytes).fold(0, |packed, (&value, byte)| {
        packed << apart | stochastic(format, value, u32::from(byte), 8, options)
    })
}
