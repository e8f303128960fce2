//! f64 on bits: IEEE 754 with every rounding, subnormals always kept.
//!
//! A NaN operand passes through, quiet, the first one first; an invalid operation makes [`NAN`].

use super::Round;
use super::float32::Test;
use super::format::Format;
use super::soft::Exact;

/// The NaN of an invalid operation.
pub const NAN: u64 = 0xfff8_0000_0000_0000;

const SIGN: u64 = 0x8000_0000_0000_0000;
const INFINITY: u64 = 0x7ff0_0000_0000_0000;
const QUIET: u64 = 0x0008_0000_0000_0000;
const ONE: u64 = 0x3ff0_0000_0000_0000;

/// Whether the bits are a NaN.
#[inline]
pub fn is_nan(a: u64) -> bool {
    a & !SIGN > INFINITY
}

#[inline(always)]
fn value(bits: u64) -> f64 {
    f64::from_bits(bits)
}

#[inline(always)]
fn invalid(result: f64) -> u64 {
    if result.is_nan() {
        NAN
    } else {
        result.to_bits()
    }
}

#[inline(always)]
fn pass1(a: u64, result: f64) -> u64 {
    if is_nan(a) {
        a | QUIET
    } else {
        invalid(result)
    }
}

#[inline(always)]
fn pass2(a: u64, b: u64, result: f64) -> u64 {
    let rest = if is_nan(b) {
        b | QUIET
    } else {
        invalid(result)
    };
    if is_nan(a) { a | QUIET } else { rest }
}

#[inline(always)]
fn pass3(a: u64, b: u64, c: u64, result: f64) -> u64 {
    let rest = if is_nan(c) {
        c | QUIET
    } else {
        invalid(result)
    };
    let rest = if is_nan(b) { b | QUIET } else { rest };
    if is_nan(a) { a | QUIET } else { rest }
}

/// A subnormal becomes a zero of the same sign.
#[inline]
pub fn ftz(a: u64) -> u64 {
    if a & INFINITY == 0 { a & SIGN } else { a }
}

/// Clamps to `[0, 1]`; NaN and `-0` become `+0`.
#[inline]
pub fn sat(a: u64) -> u64 {
    let clamped = if value(a) > 0.0 { value(a) } else { 0.0 };
    let clamped = if clamped < 1.0 { clamped } else { 1.0 };
    clamped.to_bits()
}

/// Flips the sign bit.
#[inline]
pub fn neg(a: u64) -> u64 {
    a ^ SIGN
}

/// Clears the sign bit.
#[inline]
pub fn abs(a: u64) -> u64 {
    a & !SIGN
}

/// `a + b`, to nearest even.
#[inline]
pub fn add(a: u64, b: u64) -> u64 {
    pass2(a, b, value(a) + value(b))
}

/// `a - b`, to nearest even.
#[inline]
pub fn sub(a: u64, b: u64) -> u64 {
    pass2(a, b, value(a) - value(b))
}

/// `a * b`, to nearest even.
#[inline]
pub fn mul(a: u64, b: u64) -> u64 {
    pass2(a, b, value(a) * value(b))
}

/// `a * b + c` with one rounding, to nearest even.
#[inline]
pub fn fma(a: u64, b: u64, c: u64) -> u64 {
    pass3(a, b, c, value(a).mul_add(value(b), value(c)))
}

/// `a / b`, to nearest even.
#[inline]
pub fn div(a: u64, b: u64) -> u64 {
    pass2(a, b, value(a) / value(b))
}

/// The square root, to nearest even.
#[inline]
pub fn sqrt(a: u64) -> u64 {
    pass1(a, value(a).sqrt())
}

/// `1 / a`, to nearest even.
#[inline]
pub fn rcp(a: u64) -> u64 {
    pass1(a, 1.0 / value(a))
}

#[inline]
fn finite(a: u64) -> bool {
    a & INFINITY != INFINITY
}

#[inline]
fn exact(a: u64) -> Exact {
    Exact::of(Format::F64, a)
}

/// `a + b`.
#[inline]
pub fn add_round(a: u64, b: u64, round: Round) -> u64 {
    if round == Round::NearestEven || !finite(a) || !finite(b) {
        return add(a, b);
    }
    let sum = exact(a).plus(exact(b), round);
    sum.encode(Format::F64, round, false)
}

/// `a - b`.
#[inline]
pub fn sub_round(a: u64, b: u64, round: Round) -> u64 {
    if round == Round::NearestEven || !finite(a) || !finite(b) {
        return sub(a, b);
    }
    add_round(a, neg(b), round)
}

/// `a * b`.
#[inline]
pub fn mul_round(a: u64, b: u64, round: Round) -> u64 {
    if round == Round::NearestEven || !finite(a) || !finite(b) {
        return mul(a, b);
    }
    exact(a).times(exact(b)).encode(Format::F64, round, false)
}

/// `a * b + c` with one rounding.
#[inline]
pub fn fma_round(a: u64, b: u64, c: u64, round: Round) -> u64 {
    if round == Round::NearestEven || !finite(a) || !finite(b) || !finite(c) {
        return fma(a, b, c);
    }
    let sum = exact(a).times(exact(b)).plus(exact(c), round);
    sum.encode(Format::F64, round, false)
}

/// `a / b`.
#[inline]
pub fn div_round(a: u64, b: u64, round: Round) -> u64 {
    let zero = a & !SIGN == 0 || b & !SIGN == 0;
    if round == Round::NearestEven || zero || !finite(a) || !finite(b) {
        return div(a, b);
    }
    exact(a).over(exact(b)).encode(Format::F64, round, false)
}

/// The square root.
#[inline]
pub fn sqrt_round(a: u64, round: Round) -> u64 {
    if round == Round::NearestEven || !finite(a) || a == 0 || a & SIGN != 0 {
        return sqrt(a);
    }
    exact(a).root().encode(Format::F64, round, false)
}

/// `1 / a`.
#[inline]
pub fn rcp_round(a: u64, round: Round) -> u64 {
    div_round(ONE, a, round)
}

#[inline(always)]
fn order(a: u64) -> i64 {
    let a = a as i64;
    a ^ ((a >> 63) as u64 >> 1) as i64
}

#[inline(always)]
fn number_of(a: u64, b: u64, both: u64) -> u64 {
    let one = if is_nan(a) { b } else { a };
    let number = if is_nan(a) | is_nan(b) { one } else { both };
    let quiet = if is_nan(a) { a | QUIET } else { number };
    if is_nan(number) { quiet } else { number }
}

/// The smaller; `-0` is below `+0`, a NaN loses against a number.
#[inline]
pub fn min(a: u64, b: u64) -> u64 {
    let smaller = if order(a) < order(b) { a } else { b };
    number_of(a, b, smaller)
}

/// The larger; `-0` is below `+0`, a NaN loses against a number.
#[inline]
pub fn max(a: u64, b: u64) -> u64 {
    let larger = if order(a) > order(b) { a } else { b };
    number_of(a, b, larger)
}

/// The value of `b` with the sign of `a`.
#[inline]
pub fn copysign(a: u64, b: u64) -> u64 {
    (a & SIGN) | (b & !SIGN)
}

/// `testp`.
#[inline]
pub fn testp(test: Test, a: u64) -> bool {
    let magnitude = a & !SIGN;
    let least = 1 << 52;
    match test {
        Test::Finite => magnitude < INFINITY,
        Test::Infinite => magnitude == INFINITY,
        Test::Number => magnitude <= INFINITY,
        Test::NotANumber => magnitude > INFINITY,
        Test::Normal => magnitude == 0 || (least..INFINITY).contains(&magnitude),
        Test::Subnormal => magnitude != 0 && magnitude < least,
    }
}
