//! The functions that a device approximates: `ex2 lg2 sin cos tanh rcp rsqrt sqrt div`.
//!
//! Each is computed in f64 and rounded once, so every result is within [`ERROR`] units in the last
//! place of the true value. That lies inside every bound the PTX ISA gives:
//!
//! | instruction | bound of PTX |
//! |---|---|
//! | `ex2.approx.f32` | relative 2^-22 |
//! | `lg2.approx.f32` | absolute 2^-22 for inputs in (0.5, 2), relative 2^-22 elsewhere |
//! | `sin.approx.f32`, `cos.approx.f32` | absolute 2^-20.5 in [-2 pi, 2 pi], 2^-14.7 in [-100 pi, 100 pi] |
//! | `tanh.approx.f32` | relative 2^-11 |
//! | `rcp.approx.f32` | 1 unit in the last place |
//! | `rsqrt.approx.f32` | relative 2^-22.9 |
//! | `sqrt.approx.f32` | relative 2^-23 |
//! | `div.approx.f32`, `div.full.f32` | 2 units in the last place |
//! | `ex2.approx.f16`, `ex2.approx.ftz.bf16` | relative 2^-9.9, 2^-7 |
//! | `tanh.approx.f16`, `tanh.approx.bf16` | absolute 2^-10.987, relative 2^-8 |
//!
//! A device differs from these in the last bits, and far more for the sine of large angles.
//! For `.ftz` flush the operand and the result. Only additions, products, quotients and roots of
//! f64 are used, so results are the same on every host.

use super::float16;
use super::float16::Half;
use super::float32;
use super::float64;

/// The most that an f32 result here differs from the true value, in units in the last place.
pub const ERROR: f64 = 0.501;

const LN_2: f64 = std::f64::consts::LN_2;

#[inline(always)]
fn done(value: f64) -> u32 {
    let near = value as f32;
    if near.is_nan() {
        float32::NAN
    } else {
        near.to_bits()
    }
}

#[inline(always)]
fn read(bits: u32) -> f64 {
    f64::from(f32::from_bits(bits))
}

/// `2^x`; NaN stays.
#[inline]
fn exp2(x: f64) -> f64 {
    // Beyond these an f32 is zero or infinite anyway.
    let clamped = if x > 1000.0 { 1000.0 } else { x };
    let clamped = if clamped < -1000.0 { -1000.0 } else { clamped };
    // Adding 1.5 * 2^52 rounds to an integer, which then stands in the low bits.
    let shifted = clamped + 6_755_399_441_055_744.0;
    let whole = shifted - 6_755_399_441_055_744.0;
    let t = (clamped - whole) * LN_2;
    // The Taylor series of e^t for |t| <= 0.35, to 2^-36.
    let mut sum = 1.0 / 362_880.0;
    for term in [
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ] {
        sum = sum * t + term;
    }
    let scale = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    sum * scale
}

/// `log2 x` of a positive normal number.
#[inline]
fn log2(x: f64) -> f64 {
    let bits = x.to_bits();
    // The mantissa goes to [sqrt(1/2), sqrt(2)), where the logarithm is near zero.
    let half_root = 0x3fe6_a09e_667f_3bcd_u64;
    let offset = bits.wrapping_sub(half_root);
    let exponent = (offset as i64 >> 52) as i32;
    let mantissa = f64::from_bits(bits.wrapping_sub((i64::from(exponent) << 52) as u64));
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let z = s * s;
    // log2 m = 2/ln 2 * (s + s^3/3 + s^5/5 + ...), |s| < 0.1716.
    let mut sum = 1.0 / 15.0;
    for divisor in [13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        sum = sum * z + 1.0 / divisor;
    }
    f64::from(exponent) + s * sum * (2.0 / LN_2)
}

/// `ex2.approx.f32`.
#[inline]
pub fn ex2_f32(a: u32) -> u32 {
    done(exp2(read(a)))
}

/// `lg2.approx.f32`.
#[inline]
pub fn lg2_f32(a: u32) -> u32 {
    let value = done(log2(read(a)));
    // An infinity stays; NaN and what is negative have no logarithm.
    let value = if a == 0x7f80_0000 { a } else { value };
    let value = if a > 0x7f80_0000 { float32::NAN } else { value };
    if a & 0x7fff_ffff == 0 {
        0xff80_0000
    } else {
        value
    }
}

/// `rcp.approx.f32`.
#[inline]
pub fn rcp_f32(a: u32) -> u32 {
    float32::rcp(a)
}

/// `sqrt.approx.f32`.
#[inline]
pub fn sqrt_f32(a: u32) -> u32 {
    float32::sqrt(a)
}

/// `rsqrt.approx.f32`; an infinity for a zero, of its sign.
#[inline]
pub fn rsqrt_f32(a: u32) -> u32 {
    done(1.0 / read(a).sqrt())
}

/// `div.full.f32`.
#[inline]
pub fn div_full_f32(a: u32, b: u32) -> u32 {
    float32::div(a, b)
}

/// `div.approx.f32`: a divisor above 2^126 has the reciprocal zero.
#[inline]
pub fn div_approx_f32(a: u32, b: u32) -> u32 {
    let magnitude = b & 0x7fff_ffff;
    if magnitude > 0x7e80_0000 && magnitude < 0x7f80_0000 {
        float32::mul(a, b & 0x8000_0000)
    } else {
        float32::div(a, b)
    }
}

/// `tanh.approx.f32`.
#[inline]
pub fn tanh_f32(a: u32) -> u32 {
    done(tanh(read(a)))
}

#[inline]
fn tanh(x: f64) -> f64 {
    // Near zero the odd series, elsewhere (1 - t) / (1 + t) with t = e^(-2|x|).
    let z = x * x;
    let mut series = -929_569.0 / 638_512_875.0;
    for term in [
        21_844.0 / 6_081_075.0,
        -1_382.0 / 155_925.0,
        62.0 / 2_835.0,
        -17.0 / 315.0,
        2.0 / 15.0,
        -1.0 / 3.0,
        1.0,
    ] {
        series = series * z + term;
    }
    let t = exp2(x.abs() * (-2.0 / LN_2));
    let far = ((1.0 - t) / (1.0 + t)).copysign(x);
    let near = x * series;
    if x.abs() < 0.125 { near } else { far }
}

/// The first 320 binary places of `2 / pi`, 64 a word.
const TWO_OVER_PI: [u64; 5] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
];

/// The quarter turn an angle is in, modulo 4, and the rest in radians within `pi / 4`.
#[inline]
fn reduce(x: f64) -> (u32, f64) {
    if x.abs() < 65_536.0 {
        let turns = x * std::f64::consts::FRAC_2_PI + 6_755_399_441_055_744.0;
        let whole = turns - 6_755_399_441_055_744.0;
        // pi/2 in three parts of 33 bits, so that the products with `whole` are exact.
        let rest = x - whole * f64::from_bits(0x3ff9_21fb_5440_0000);
        let rest = rest - whole * f64::from_bits(0x3dd0_b461_1a60_0000);
        let rest = rest - whole * f64::from_bits(0x3ba3_198a_2e03_7073);
        return (turns.to_bits() as u32 & 3, rest);
    }
    reduce_large(x)
}

/// The same for any finite f32 from 65536 on, with as many places of `2 / pi` as it takes.
#[cold]
fn reduce_large(x: f64) -> (u32, f64) {
    let bits = x.abs().to_bits();
    // x = mantissa * 2^exponent with 24 bits of mantissa, exponent below 105.
    let mantissa = ((bits & 0x000f_ffff_ffff_ffff) | 0x0010_0000_0000_0000) >> 29;
    let exponent = (bits >> 52) as i32 - 1023 - 23;
    // Places of 2/pi above bit 2 of the product are whole turns of four quarters: drop them.
    let first = (exponent - 2).max(0) as usize;
    let drop = exponent - first as i32;
    let word = |at: usize| TWO_OVER_PI.get(at).copied().unwrap_or(0);
    let (index, shift) = (first / 64, first % 64);
    let window = |at: usize| {
        if shift == 0 {
            word(at)
        } else {
            word(at) << shift | word(at + 1) >> (64 - shift)
        }
    };
    let low = u128::from(window(index + 1)) * u128::from(mantissa);
    let high = u128::from(window(index)) * u128::from(mantissa) + (low >> 64);
    let low = u128::from(low as u64);
    // `high * 2^64 + low` counts in units of 2^(drop - 128): its whole quarters begin at bit
    // 64 - drop of `high`, what is left goes to the top of a fraction of 128 bits.
    let quarter = (high >> (64 - drop)) as u32;
    let tail = if drop >= 0 { low << drop } else { low >> -drop };
    let fraction = (high << (64 + drop)) | tail;
    // A fraction of more than a half belongs to the next quarter.
    let up = fraction >> 127 == 1;
    let signed = fraction as i128;
    let rest = signed as f64 * std::f64::consts::FRAC_PI_2 * f64::from_bits((1023 - 128) << 52);
    let quarter = quarter.wrapping_add(u32::from(up)) & 3;
    if x < 0.0 {
        (quarter.wrapping_neg() & 3, -rest)
    } else {
        (quarter, rest)
    }
}

/// The sine of an angle within `pi / 4`.
#[inline]
fn sine(x: f64) -> f64 {
    let z = x * x;
    let mut sum = -1.0 / 1_307_674_368_000.0;
    for term in [
        1.0 / 6_227_020_800.0,
        -1.0 / 39_916_800.0,
        1.0 / 362_880.0,
        -1.0 / 5_040.0,
        1.0 / 120.0,
        -1.0 / 6.0,
        1.0,
    ] {
        sum = sum * z + term;
    }
    x * sum
}

/// The cosine of an angle within `pi / 4`.
#[inline]
fn cosine(x: f64) -> f64 {
    let z = x * x;
    let mut sum = 1.0 / 20_922_789_888_000.0;
    for term in [
        -1.0 / 87_178_291_200.0,
        1.0 / 479_001_600.0,
        -1.0 / 3_628_800.0,
        1.0 / 40_320.0,
        -1.0 / 720.0,
        1.0 / 24.0,
        -0.5,
        1.0,
    ] {
        sum = sum * z + term;
    }
    sum
}

#[inline]
fn turned(a: u32, quarters: u32) -> u32 {
    if a & 0x7f80_0000 == 0x7f80_0000 {
        return float32::NAN;
    }
    let (quarter, rest) = reduce(read(a));
    let quarter = quarter.wrapping_add(quarters);
    let value = if quarter & 1 == 0 {
        sine(rest)
    } else {
        cosine(rest)
    };
    done(if quarter & 2 == 0 { value } else { -value })
}

/// `sin.approx.f32`.
#[inline]
pub fn sin_f32(a: u32) -> u32 {
    if a & 0x7fff_ffff == 0 {
        a
    } else {
        turned(a, 0)
    }
}

/// `cos.approx.f32`.
#[inline]
pub fn cos_f32(a: u32) -> u32 {
    turned(a, 1)
}

/// The upper word of an f64 rounded to nearest even, the lower word zero; subnormals flushed.
#[inline]
fn upper(value: f64) -> u64 {
    if value.is_nan() {
        return 0x7fff_ffff_0000_0000;
    }
    let bits = value.to_bits();
    let odd = (bits >> 32) & 1;
    let rounded = if bits << 1 >> 53 == 0x7ff {
        bits
    } else {
        bits.wrapping_add(0x7fff_ffff + odd)
    };
    float64::ftz(rounded) & 0xffff_ffff_0000_0000
}

/// `rcp.approx.ftz.f64`: only the upper words of operand and result count.
#[inline]
pub fn rcp_ftz_f64(a: u64) -> u64 {
    if float64::is_nan(a) {
        return upper(f64::NAN);
    }
    let a = float64::ftz(a & 0xffff_ffff_0000_0000);
    upper(1.0 / f64::from_bits(a))
}

/// `rsqrt.approx.ftz.f64`: only the upper words of operand and result count.
#[inline]
pub fn rsqrt_ftz_f64(a: u64) -> u64 {
    if float64::is_nan(a) {
        return upper(f64::NAN);
    }
    let a = float64::ftz(a & 0xffff_ffff_0000_0000);
    upper(1.0 / f64::from_bits(a).sqrt())
}

/// `rsqrt.approx.f64`.
#[inline]
pub fn rsqrt_f64(a: u64) -> u64 {
    let result = 1.0 / f64::from_bits(a).sqrt();
    match (float64::is_nan(a), result.is_nan()) {
        (true, _) => float64::sqrt(a),
        (false, true) => float64::NAN,
        (false, false) => result.to_bits(),
    }
}

/// `ex2.approx.f16`; for `ex2.approx.ftz.bf16` flush the operand and the result.
#[inline]
pub fn ex2_half<H: Half>(a: u16) -> u16 {
    float16::narrow_odd::<H>(exp2(f64::from(H::widen(a))))
}

/// `tanh.approx.f16`, `tanh.approx.bf16`.
#[inline]
pub fn tanh_half<H: Half>(a: u16) -> u16 {
    float16::narrow_odd::<H>(tanh(f64::from(H::widen(a))))
}
