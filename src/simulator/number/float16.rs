//! f16 and bf16 on bits, with one rounding an operation.
//!
//! The format is a type parameter: `add::<F16>(a, b)`. Pairs go through [`x2`] and its kin.

use super::Round;
use super::float32;
use super::format::Format;

/// The NaN that every f16 and bf16 instruction makes.
pub const NAN: u16 = 0x7fff;

/// The NaN that a tensor copy fills in out of bounds on request, which [`fma_oob`] takes as zero.
pub const OOB_NAN: u16 = 0x7fff;

const SIGN: u16 = 0x8000;

/// A 16-bit float format.
pub trait Half: Copy {
    /// The format as data.
    const FORMAT: Format;
    /// The code of 1.
    const ONE: u16;
    /// The code of the infinity.
    const INFINITY: u16;
    /// Whether an f32 rounds the product of two values so that a second rounding does no harm.
    const F32_PRODUCT: bool;

    /// The value, exactly; a NaN becomes canonical.
    fn widen(bits: u16) -> f32;
    /// To nearest even; a NaN becomes canonical.
    fn narrow(value: f32) -> u16;
}

/// The format f16.
#[derive(Clone, Copy, Debug)]
pub struct F16;

/// The format bf16.
#[derive(Clone, Copy, Debug)]
pub struct BF16;

impl Half for F16 {
    const FORMAT: Format = Format::F16;
    const ONE: u16 = 0x3c00;
    const INFINITY: u16 = 0x7c00;
    const F32_PRODUCT: bool = true;

    #[inline(always)]
    fn widen(bits: u16) -> f32 {
        f32::from_bits(Format::F16.widen_f32(u32::from(bits)))
    }

    #[inline(always)]
    fn narrow(value: f32) -> u16 {
        Format::F16.narrow_near(value.to_bits(), false) as u16
    }
}

impl Half for BF16 {
    const FORMAT: Format = Format::BF16;
    const ONE: u16 = 0x3f80;
    const INFINITY: u16 = 0x7f80;
    const F32_PRODUCT: bool = false;

    #[inline(always)]
    fn widen(bits: u16) -> f32 {
        let nan = bits & 0x7fff > 0x7f80;
        let value = u32::from(bits) << 16;
        f32::from_bits(if nan { float32::NAN } else { value })
    }

    #[inline(always)]
    fn narrow(value: f32) -> u16 {
        let bits = value.to_bits();
        let odd = (bits >> 16) & 1;
        let rounded = bits.wrapping_add(0x7fff + odd) >> 16;
        let nan = bits & 0x7fff_ffff > 0x7f80_0000;
        (if nan { u32::from(NAN) } else { rounded }) as u16
    }
}

/// f32 bits of a value, exactly; a NaN becomes canonical.
#[inline]
pub fn to_f32<H: Half>(a: u16) -> u32 {
    H::widen(a).to_bits()
}

/// From f32 bits with one rounding; a NaN becomes canonical.
#[inline]
pub fn from_f32<H: Half>(a: u32, round: Round) -> u16 {
    match round {
        Round::NearestEven => H::narrow(f32::from_bits(a)),
        _ => Format::F32.convert(u64::from(a), H::FORMAT, round, false) as u16,
    }
}

/// From a double that was itself rounded to odd or is exact; one rounding to nearest even.
#[inline]
pub(super) fn narrow_odd<H: Half>(value: f64) -> u16 {
    let near = value as f32;
    let back = f64::from(near);
    let near = near.to_bits();
    // Towards zero, then the last bit is set for all that was cut off.
    let inward = near.wrapping_sub(u32::from(back.abs() > value.abs()));
    let odd = inward | u32::from(back != value);
    H::narrow(f32::from_bits(if value.is_nan() {
        float32::NAN
    } else {
        odd
    }))
}

/// Whether the bits are a NaN.
#[inline]
pub fn is_nan<H: Half>(a: u16) -> bool {
    a & !SIGN > H::INFINITY
}

/// A subnormal becomes a zero of the same sign.
#[inline]
pub fn ftz<H: Half>(a: u16) -> u16 {
    if a & H::INFINITY == 0 { a & SIGN } else { a }
}

/// Clamps to `[0, 1]`; NaN and `-0` become `+0`.
#[inline]
pub fn sat<H: Half>(a: u16) -> u16 {
    let clamped = a.min(H::ONE);
    if (a & SIGN != 0) | is_nan::<H>(a) {
        0
    } else {
        clamped
    }
}

/// What is negative becomes `+0`, a NaN canonical.
#[inline]
pub fn relu<H: Half>(a: u16) -> u16 {
    let clamped = if a & SIGN != 0 { 0 } else { a };
    if is_nan::<H>(a) { NAN } else { clamped }
}

/// Flips the sign bit.
#[inline]
pub fn neg(a: u16) -> u16 {
    a ^ SIGN
}

/// Clears the sign bit.
#[inline]
pub fn abs(a: u16) -> u16 {
    a & !SIGN
}

/// `a + b`, to nearest even.
#[inline]
pub fn add<H: Half>(a: u16, b: u16) -> u16 {
    H::narrow(H::widen(a) + H::widen(b))
}

/// `a - b`, to nearest even.
#[inline]
pub fn sub<H: Half>(a: u16, b: u16) -> u16 {
    H::narrow(H::widen(a) - H::widen(b))
}

/// `a * b`, to nearest even.
#[inline]
pub fn mul<H: Half>(a: u16, b: u16) -> u16 {
    if H::F32_PRODUCT {
        H::narrow(H::widen(a) * H::widen(b))
    } else {
        narrow_odd::<H>(f64::from(H::widen(a)) * f64::from(H::widen(b)))
    }
}

/// `a * b + c` with one rounding, to nearest even.
#[inline]
pub fn fma<H: Half>(a: u16, b: u16, c: u16) -> u16 {
    let product = f64::from(H::widen(a)) * f64::from(H::widen(b));
    narrow_odd::<H>(float32::odd_sum(product, f64::from(H::widen(c))))
}

/// [`fma`], then [`relu`].
#[inline]
pub fn fma_relu<H: Half>(a: u16, b: u16, c: u16) -> u16 {
    relu::<H>(fma::<H>(a, b, c))
}

/// [`fma`], optionally [`relu`]; `+0` when any operand is [`OOB_NAN`].
#[inline]
pub fn fma_oob<H: Half>(a: u16, b: u16, c: u16, clamp: bool) -> u16 {
    let result = fma::<H>(a, b, c);
    if a == OOB_NAN || b == OOB_NAN || c == OOB_NAN {
        0
    } else if clamp {
        relu::<H>(result)
    } else {
        result
    }
}

#[inline(always)]
fn order(a: u16) -> i16 {
    let a = a as i16;
    a ^ ((a >> 15) as u16 >> 1) as i16
}

#[inline(always)]
fn number_of<H: Half>(a: u16, b: u16, both: u16) -> u16 {
    let one = if is_nan::<H>(a) { b } else { a };
    let any = is_nan::<H>(a) | is_nan::<H>(b);
    let number = if any { one } else { both };
    if is_nan::<H>(number) { NAN } else { number }
}

/// The smaller; `-0` is below `+0`, a NaN loses against a number.
#[inline]
pub fn min<H: Half>(a: u16, b: u16) -> u16 {
    number_of::<H>(a, b, if order(a) < order(b) { a } else { b })
}

/// The larger; `-0` is below `+0`, a NaN loses against a number.
#[inline]
pub fn max<H: Half>(a: u16, b: u16) -> u16 {
    number_of::<H>(a, b, if order(a) > order(b) { a } else { b })
}

/// The smaller; a NaN wins and becomes canonical (`min.NaN`).
#[inline]
pub fn min_nan<H: Half>(a: u16, b: u16) -> u16 {
    let smaller = min::<H>(a, b);
    if is_nan::<H>(a) | is_nan::<H>(b) {
        NAN
    } else {
        smaller
    }
}

/// The larger; a NaN wins and becomes canonical (`max.NaN`).
#[inline]
pub fn max_nan<H: Half>(a: u16, b: u16) -> u16 {
    let larger = max::<H>(a, b);
    if is_nan::<H>(a) | is_nan::<H>(b) {
        NAN
    } else {
        larger
    }
}

/// Applies `f` to the magnitudes and gives a number the product of the signs (`.xorsign.abs`).
#[inline]
pub fn xorsign_abs<H: Half>(f: impl Fn(u16, u16) -> u16, a: u16, b: u16) -> u16 {
    let result = f(abs(a), abs(b));
    if is_nan::<H>(result) {
        result
    } else {
        result | ((a ^ b) & SIGN)
    }
}

/// The value of `b` with the sign of `a`.
#[inline]
pub fn copysign(a: u16, b: u16) -> u16 {
    (a & SIGN) | (b & !SIGN)
}

/// The halves of a pair, lower first.
#[inline]
pub fn halves(a: u32) -> (u16, u16) {
    (a as u16, (a >> 16) as u16)
}

/// A pair of its lower and its upper half.
#[inline]
pub fn pair(low: u16, high: u16) -> u32 {
    u32::from(low) | u32::from(high) << 16
}

/// A function of one on both halves.
#[inline]
pub fn x2_unary(f: impl Fn(u16) -> u16, a: u32) -> u32 {
    let (low, high) = halves(a);
    pair(f(low), f(high))
}

/// A function of two on both halves.
#[inline]
pub fn x2(f: impl Fn(u16, u16) -> u16, a: u32, b: u32) -> u32 {
    let (a, b) = (halves(a), halves(b));
    pair(f(a.0, b.0), f(a.1, b.1))
}

/// A function of three on both halves.
#[inline]
pub fn x2_ternary(f: impl Fn(u16, u16, u16) -> u16, a: u32, b: u32, c: u32) -> u32 {
    let (a, b, c) = (halves(a), halves(b), halves(c));
    pair(f(a.0, b.0, c.0), f(a.1, b.1, c.1))
}
