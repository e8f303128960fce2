//! f32 on bits: IEEE 754 with every rounding, subnormals kept, one canonical NaN.
//!
//! `.ftz` and `.sat` are steps of their own, [`ftz`] on inputs and result and [`sat`] last, so
//! that the plain operations stay single machine instructions.

use super::Round;
use super::format::Format;
use super::soft::Exact;

/// The NaN that every f32 instruction makes.
pub const NAN: u32 = 0x7fff_ffff;

const SIGN: u32 = 0x8000_0000;
const INFINITY: u32 = 0x7f80_0000;

/// What `testp` asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Neither infinite nor NaN.
    Finite,
    /// An infinity.
    Infinite,
    /// Not NaN.
    Number,
    /// NaN.
    NotANumber,
    /// Neither NaN, infinite nor subnormal; zeros are normal.
    Normal,
    /// Subnormal; zeros are not.
    Subnormal,
}

impl Test {
    /// The test of a modifier (`finite`, `notanumber`, ...).
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "finite" => Self::Finite,
            "infinite" => Self::Infinite,
            "number" => Self::Number,
            "notanumber" => Self::NotANumber,
            "normal" => Self::Normal,
            "subnormal" => Self::Subnormal,
            _ => return None,
        })
    }
}

#[inline(always)]
fn canonical(value: f32) -> u32 {
    if value.is_nan() { NAN } else { value.to_bits() }
}

#[inline(always)]
fn wide(bits: u32) -> f64 {
    f64::from(f32::from_bits(bits))
}

/// Whether the bits are a NaN.
#[inline]
pub fn is_nan(a: u32) -> bool {
    a & !SIGN > INFINITY
}

/// A subnormal becomes a zero of the same sign.
#[inline]
pub fn ftz(a: u32) -> u32 {
    if a & INFINITY == 0 { a & SIGN } else { a }
}

/// Clamps to `[0, 1]`; NaN and `-0` become `+0`.
#[inline]
pub fn sat(a: u32) -> u32 {
    let value = f32::from_bits(a);
    let value = if value > 0.0 { value } else { 0.0 };
    let value = if value < 1.0 { value } else { 1.0 };
    value.to_bits()
}

/// Flips the sign bit.
#[inline]
pub fn neg(a: u32) -> u32 {
    a ^ SIGN
}

/// Clears the sign bit.
#[inline]
pub fn abs(a: u32) -> u32 {
    a & !SIGN
}

/// `a + b`, to nearest even.
#[inline]
pub fn add(a: u32, b: u32) -> u32 {
    canonical(f32::from_bits(a) + f32::from_bits(b))
}

/// `a - b`, to nearest even.
#[inline]
pub fn sub(a: u32, b: u32) -> u32 {
    canonical(f32::from_bits(a) - f32::from_bits(b))
}

/// `a * b`, to nearest even.
#[inline]
pub fn mul(a: u32, b: u32) -> u32 {
    canonical(f32::from_bits(a) * f32::from_bits(b))
}

/// `a * b + c` with one rounding, to nearest even.
#[inline]
pub fn fma(a: u32, b: u32, c: u32) -> u32 {
    canonical(f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c)))
}

/// `a / b`, to nearest even.
#[inline]
pub fn div(a: u32, b: u32) -> u32 {
    canonical(f32::from_bits(a) / f32::from_bits(b))
}

/// The square root, to nearest even.
#[inline]
pub fn sqrt(a: u32) -> u32 {
    canonical(f32::from_bits(a).sqrt())
}

/// `1 / a`, to nearest even.
#[inline]
pub fn rcp(a: u32) -> u32 {
    canonical(1.0 / f32::from_bits(a))
}

/// The sum of two doubles rounded to odd: exact results stay, all others end in an odd bit, so
/// that a second rounding to f32 is as good as one.
#[inline]
pub(super) fn odd_sum(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let part = sum - a;
    let error = (a - (sum - part)) + (b - part);
    to_odd(sum, error)
}

/// `value` moved to its odd neighbour on the side of `error`.
#[inline]
fn to_odd(value: f64, error: f64) -> f64 {
    let bits = value.to_bits();
    let inexact = error.abs() > 0.0;
    let outward = (error > 0.0) == (value > 0.0);
    let moved = if outward {
        bits.wrapping_add(1)
    } else {
        bits.wrapping_sub(1)
    };
    f64::from_bits(if inexact & (bits & 1 == 0) {
        moved
    } else {
        bits
    })
}

/// A double to f32 with one rounding.
#[inline]
pub(super) fn narrow(value: f64, round: Round) -> u32 {
    let near = value as f32;
    let back = f64::from(near);
    canonical(match round {
        Round::NearestEven => near,
        Round::Zero => {
            if back.abs() > value.abs() {
                f32::from_bits(near.to_bits().wrapping_sub(1))
            } else {
                near
            }
        }
        Round::Down => {
            if back > value {
                near.next_down()
            } else {
                near
            }
        }
        Round::Up => {
            if back < value {
                near.next_up()
            } else {
                near
            }
        }
        Round::NearestAway => {
            return Format::F64.convert(value.to_bits(), Format::F32, round, false) as u32;
        }
    })
}

/// `a + b` of doubles that hold f32 values or their products, rounded once to f32.
#[inline]
fn sum_round(a: f64, b: f64, round: Round) -> u32 {
    let sum = odd_sum(a, b);
    let rounded = narrow(sum, round);
    // Rounding down, an exact zero is negative unless both terms are positive zeros.
    let positive = a.is_sign_positive() & b.is_sign_positive();
    if (round == Round::Down) & (sum == 0.0) & !positive {
        SIGN
    } else {
        rounded
    }
}

/// `a + b`.
#[inline]
pub fn add_round(a: u32, b: u32, round: Round) -> u32 {
    match round {
        Round::NearestEven => add(a, b),
        _ => sum_round(wide(a), wide(b), round),
    }
}

/// `a - b`.
#[inline]
pub fn sub_round(a: u32, b: u32, round: Round) -> u32 {
    match round {
        Round::NearestEven => sub(a, b),
        _ => sum_round(wide(a), -wide(b), round),
    }
}

/// `a * b`.
#[inline]
pub fn mul_round(a: u32, b: u32, round: Round) -> u32 {
    match round {
        Round::NearestEven => mul(a, b),
        _ => narrow(wide(a) * wide(b), round),
    }
}

/// `a * b + c` with one rounding.
#[inline]
pub fn fma_round(a: u32, b: u32, c: u32, round: Round) -> u32 {
    match round {
        Round::NearestEven => fma(a, b, c),
        _ => sum_round(wide(a) * wide(b), wide(c), round),
    }
}

/// `a / b`.
#[inline]
pub fn div_round(a: u32, b: u32, round: Round) -> u32 {
    if round == Round::NearestEven || special(a) || special(b) {
        return div(a, b);
    }
    let quotient = Exact::of(Format::F32, u64::from(a)).over(Exact::of(Format::F32, u64::from(b)));
    quotient.encode(Format::F32, round, false) as u32
}

/// The square root.
#[inline]
pub fn sqrt_round(a: u32, round: Round) -> u32 {
    if round == Round::NearestEven || special(a) || a & SIGN != 0 {
        return sqrt(a);
    }
    let root = Exact::of(Format::F32, u64::from(a)).root();
    root.encode(Format::F32, round, false) as u32
}

/// `1 / a`.
#[inline]
pub fn rcp_round(a: u32, round: Round) -> u32 {
    div_round(0x3f80_0000, a, round)
}

/// Zero, infinite or NaN: the quotient or root is exact or not a number.
#[inline]
fn special(a: u32) -> bool {
    a & !SIGN == 0 || a & INFINITY == INFINITY
}

/// Orders the bits of numbers as the numbers, with `-0` below `+0`.
#[inline(always)]
fn order(a: u32) -> i32 {
    let a = a as i32;
    a ^ ((a >> 31) as u32 >> 1) as i32
}

/// The smaller; `-0` is below `+0`, a NaN loses against a number.
#[inline]
pub fn min(a: u32, b: u32) -> u32 {
    let smaller = if order(a) < order(b) { a } else { b };
    number_of(a, b, smaller)
}

/// The larger; `-0` is below `+0`, a NaN loses against a number.
#[inline]
pub fn max(a: u32, b: u32) -> u32 {
    let larger = if order(a) > order(b) { a } else { b };
    number_of(a, b, larger)
}

#[inline(always)]
fn number_of(a: u32, b: u32, both: u32) -> u32 {
    let one = if is_nan(a) { b } else { a };
    let number = if is_nan(a) | is_nan(b) { one } else { both };
    if is_nan(number) { NAN } else { number }
}

/// The smaller; a NaN wins and becomes canonical (`min.NaN`).
#[inline]
pub fn min_nan(a: u32, b: u32) -> u32 {
    let both = min(a, b);
    if is_nan(a) | is_nan(b) { NAN } else { both }
}

/// The larger; a NaN wins and becomes canonical (`max.NaN`).
#[inline]
pub fn max_nan(a: u32, b: u32) -> u32 {
    let both = max(a, b);
    if is_nan(a) | is_nan(b) { NAN } else { both }
}

/// Applies `f` to the magnitudes and gives a number the product of the signs (`.xorsign.abs`).
#[inline]
pub fn xorsign_abs(f: impl Fn(u32, u32) -> u32, a: u32, b: u32) -> u32 {
    let result = f(abs(a), abs(b));
    if is_nan(result) {
        result
    } else {
        result | ((a ^ b) & SIGN)
    }
}

/// The value of `b` with the sign of `a`.
#[inline]
pub fn copysign(a: u32, b: u32) -> u32 {
    (a & SIGN) | (b & !SIGN)
}

/// `testp`.
#[inline]
pub fn testp(test: Test, a: u32) -> bool {
    let magnitude = a & !SIGN;
    match test {
        Test::Finite => magnitude < INFINITY,
        Test::Infinite => magnitude == INFINITY,
        Test::Number => magnitude <= INFINITY,
        Test::NotANumber => magnitude > INFINITY,
        Test::Normal => magnitude == 0 || (0x0080_0000..INFINITY).contains(&magnitude),
        Test::Subnormal => magnitude != 0 && magnitude < 0x0080_0000,
    }
}
