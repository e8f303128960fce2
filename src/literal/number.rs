//! One element as a number: bits to value and value to bits, for every element type.
//!
//! Conversions round to nearest even, once, from the exact value. What a type cannot hold follows
//! XLA: IEEE-like types overflow to infinity, the `fn` and `fnuz` eight-bit types to NaN, the four-
//! and six-bit types to their largest value; floats become integers by truncation, saturating, with
//! NaN as zero; integers wrap. Bytes are little-endian, one element in its own bytes (see
//! [`crate::literal::ArrayLiteral`]).

use crate::shape::ElementKind;
use crate::shape::PrimitiveType;

/// The value of one element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// `pred` (0 or 1) or any integer.
    Int(i128),
    /// Any float; every float type is exact in f64.
    Float(f64),
    /// A complex number.
    Complex(f64, f64),
}

/// What a float type has beyond its finite numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Specials {
    /// Infinities and NaNs in the last exponent.
    Ieee,
    /// No infinity; all ones is NaN.
    LastIsNan,
    /// No infinity, no negative zero; its bits are the NaN.
    NegativeZeroIsNan,
    /// Finite numbers only.
    None,
}

/// How a float type lays out its bits: sign, exponent, mantissa.
#[derive(Clone, Copy)]
struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: i32,
    specials: Specials,
}

impl Format {
    /// The format of a float type; `f8e8m0fnu` has none of this kind.
    fn of(ty: PrimitiveType) -> Option<Self> {
        use PrimitiveType as T;
        let (exponent_bits, mantissa_bits, bias, specials) = match ty {
            T::F4E2M1FN => (2, 1, 1, Specials::None),
            T::F6E2M3FN => (2, 3, 1, Specials::None),
            T::F6E3M2FN => (3, 2, 3, Specials::None),
            T::F8E3M4 => (3, 4, 3, Specials::Ieee),
            T::F8E4M3 => (4, 3, 7, Specials::Ieee),
            T::F8E4M3FN => (4, 3, 7, Specials::LastIsNan),
            T::F8E4M3B11FNUZ => (4, 3, 11, Specials::NegativeZeroIsNan),
            T::F8E4M3FNUZ => (4, 3, 8, Specials::NegativeZeroIsNan),
            T::F8E5M2 => (5, 2, 15, Specials::Ieee),
            T::F8E5M2FNUZ => (5, 2, 16, Specials::NegativeZeroIsNan),
            T::BF16 => (8, 7, 127, Specials::Ieee),
            T::F16 => (5, 10, 15, Specials::Ieee),
            T::F32 => (8, 23, 127, Specials::Ieee),
            T::F64 => (11, 52, 1023, Specials::Ieee),
            _ => return None,
        };
        Some(Self {
            exponent_bits,
            mantissa_bits,
            bias,
            specials,
        })
    }
    fn sign_bit(self) -> u64 {
        1 << (self.exponent_bits + self.mantissa_bits)
    }
    /// Bits of the largest finite number.
    fn max_finite(self) -> u64 {
        let all_ones = self.sign_bit() - 1;
        match self.specials {
            Specials::Ieee => all_ones - (1 << self.mantissa_bits),
            Specials::LastIsNan => all_ones - 1,
            Specials::NegativeZeroIsNan | Specials::None => all_ones,
        }
    }
    fn infinity(self) -> u64 {
        ((1 << self.exponent_bits) - 1) << self.mantissa_bits
    }
    /// Bits of a NaN of that sign; the finite types, which have none, give the negative zero, as
    /// upstream's kernels do.
    fn nan(self, sign: u64) -> u64 {
        match self.specials {
            Specials::Ieee => sign | self.infinity() | 1 << (self.mantissa_bits - 1),
            Specials::LastIsNan => sign | (self.sign_bit() - 1),
            Specials::NegativeZeroIsNan | Specials::None => self.sign_bit(),
        }
    }
    /// Bits of a number too large for the type.
    fn overflow(self, sign: u64) -> u64 {
        match self.specials {
            Specials::Ieee => sign | self.infinity(),
            Specials::LastIsNan | Specials::NegativeZeroIsNan => self.nan(sign),
            Specials::None => sign | self.max_finite(),
        }
    }
    /// Bits of `magnitude * 2^exponent`, rounded to nearest even.
    fn round(self, negative: bool, magnitude: u128, exponent: i32) -> u64 {
        let sign = if negative { self.sign_bit() } else { 0 };
        let zero = if self.specials == Specials::NegativeZeroIsNan {
            0
        } else {
            sign
        };
        if magnitude == 0 {
            return zero;
        }
        let min_exponent = 1 - self.bias;
        let leading = exponent + 127 - magnitude.leading_zeros() as i32;
        let binade = leading.max(min_exponent);
        if binade - min_exponent >= 1 << self.exponent_bits {
            return self.overflow(sign);
        }
        let mantissa = round_shift(magnitude, binade - self.mantissa_bits as i32 - exponent);
        let bits = (((binade - min_exponent) as u64) << self.mantissa_bits) + mantissa as u64;
        if bits > self.max_finite() {
            self.overflow(sign)
        } else if bits == 0 {
            zero
        } else {
            sign | bits
        }
    }
    fn decode(self, bits: u64) -> f64 {
        let negative = bits & self.sign_bit() != 0;
        let magnitude = bits & (self.sign_bit() - 1);
        let value = match self.specials {
            // A NaN keeps its payload, infinity has none.
            Specials::Ieee if magnitude >= self.infinity() => {
                let payload = (magnitude - self.infinity()) << (52 - self.mantissa_bits);
                f64::from_bits(f64::INFINITY.to_bits() | payload)
            }
            Specials::LastIsNan if magnitude > self.max_finite() => f64::NAN,
            Specials::NegativeZeroIsNan if bits == self.sign_bit() => f64::NAN,
            _ => {
                let mantissa = magnitude & ((1 << self.mantissa_bits) - 1);
                let field = (magnitude >> self.mantissa_bits) as i32;
                let hidden = u64::from(field != 0) << self.mantissa_bits;
                let exponent = field.max(1) - self.bias - self.mantissa_bits as i32;
                (mantissa | hidden) as f64 * power_of_two(exponent)
            }
        };
        if negative { -value } else { value }
    }
}

/// `value / 2^shift` rounded to nearest even (a multiplication when `shift` is negative).
fn round_shift(value: u128, shift: i32) -> u128 {
    if shift <= 0 {
        return value << shift.unsigned_abs();
    }
    if shift >= 128 {
        // Less than half of one, since the top bit of a magnitude stays clear.
        return 0;
    }
    let quotient = value >> shift;
    let rest = value & ((1 << shift) - 1);
    let half = 1u128 << (shift - 1);
    quotient + u128::from(rest > half || (rest == half && quotient & 1 == 1))
}

/// `2^exponent` for -1074 to 1023.
fn power_of_two(exponent: i32) -> f64 {
    if exponent < -1022 {
        f64::from_bits(1 << (exponent + 1074))
    } else {
        f64::from_bits(((exponent + 1023) as u64) << 52)
    }
}

/// Mantissa and exponent of a finite number: `|x| == m * 2^e`.
fn decompose(x: f64) -> (u64, i32) {
    let bits = x.to_bits() & (u64::MAX >> 1);
    let field = (bits >> 52) as i32;
    let fraction = bits & ((1 << 52) - 1);
    if field == 0 {
        (fraction, -1074)
    } else {
        (fraction | 1 << 52, field - 1075)
    }
}

/// The bits of `x` in a float type, rounded to nearest even.
///
/// # Panics
/// When `ty` is not a float type.
pub fn float_from_f64(ty: PrimitiveType, x: f64) -> u64 {
    match ty {
        PrimitiveType::F64 => return x.to_bits(),
        PrimitiveType::F32 => return u64::from((x as f32).to_bits()),
        PrimitiveType::F8E8M0FNU => return scale_from_f64(x),
        _ => {}
    }
    let format = Format::of(ty).expect("the type is a float");
    let sign = if x.is_sign_negative() {
        format.sign_bit()
    } else {
        0
    };
    if x.is_nan() {
        return format.nan(sign);
    }
    if x.is_infinite() {
        return format.overflow(sign);
    }
    let (magnitude, exponent) = decompose(x);
    format.round(sign != 0, u128::from(magnitude), exponent)
}

/// The bits of an integer in a float type, rounded to nearest even, once.
///
/// # Panics
/// When `ty` is not a float type.
pub fn float_from_int(ty: PrimitiveType, x: i128) -> u64 {
    match Format::of(ty) {
        Some(format) => format.round(x < 0, x.unsigned_abs(), 0),
        None => float_from_f64(ty, x as f64),
    }
}

/// The value of these bits of a float type. A NaN keeps its sign and, left-aligned, its payload.
///
/// # Panics
/// When `ty` is not a float type.
pub fn float_to_f64(ty: PrimitiveType, bits: u64) -> f64 {
    match ty {
        PrimitiveType::F64 => f64::from_bits(bits),
        // The processor would make a signaling NaN quiet.
        PrimitiveType::F32 if !f32::from_bits(bits as u32).is_nan() => {
            f64::from(f32::from_bits(bits as u32))
        }
        PrimitiveType::F8E8M0FNU if bits & 0xff == 0xff => f64::NAN,
        PrimitiveType::F8E8M0FNU => power_of_two((bits & 0xff) as i32 - 127),
        _ => Format::of(ty).expect("the type is a float").decode(bits),
    }
}

/// The nearest power of two as a scale, halfway points upwards; zero, negative numbers and those too
/// large are NaN.
fn scale_from_f64(x: f64) -> u64 {
    if x.is_nan() || x.is_infinite() || x < 0.0 || x == 0.0 {
        return 0xff;
    }
    let (magnitude, exponent) = decompose(x);
    let leading = 63 - magnitude.leading_zeros() as i32;
    let floor = leading + exponent;
    let up = u128::from(magnitude) * 2 >= 3u128 << leading;
    let field = floor + 127 + i32::from(up);
    if field > 254 {
        0xff
    } else if field < 0 {
        // Below the smallest scale, half of it and less.
        0
    } else {
        field as u64
    }
}

/// Whether the type is the one whose float bits are two numbers.
fn parts(ty: PrimitiveType) -> (PrimitiveType, usize) {
    let part = ty.real_part();
    (part, part.byte_width())
}

fn load(bytes: &[u8]) -> u64 {
    let mut buffer = [0; 8];
    buffer[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(buffer)
}

/// An integer cut to the type's width, two's complement.
pub fn wrap(ty: PrimitiveType, x: i128) -> i128 {
    let shift = 128 - ty.bit_width() as u32;
    if ty.is_signed() {
        (x << shift) >> shift
    } else {
        ((x as u128) << shift >> shift) as i128
    }
}

/// Smallest and largest value of an integer type.
pub fn int_range(ty: PrimitiveType) -> (i128, i128) {
    let bits = ty.bit_width() as u32;
    if ty.is_signed() {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        (0, (1 << bits) - 1)
    }
}

/// Smallest and largest value of a float type: infinities where it has them, else finite.
///
/// # Panics
/// When `ty` is not a float type.
pub fn float_range(ty: PrimitiveType) -> (f64, f64) {
    match Format::of(ty) {
        None => (power_of_two(-127), power_of_two(127)),
        Some(format) if format.specials == Specials::Ieee => (f64::NEG_INFINITY, f64::INFINITY),
        Some(format) => {
            let max = format.decode(format.max_finite());
            (-max, max)
        }
    }
}

/// A float as an integer of the type: truncated, saturating, NaN as zero.
pub fn int_from_f64(ty: PrimitiveType, x: f64) -> i128 {
    let (low, high) = int_range(ty);
    (x as i128).clamp(low, high)
}

/// The value of one element's bytes.
///
/// # Panics
/// When `bytes` is not one element of `ty`.
pub fn decode(ty: PrimitiveType, bytes: &[u8]) -> Number {
    assert_eq!(bytes.len(), ty.byte_width(), "the bytes are one element");
    match ty.kind() {
        ElementKind::Pred => Number::Int(i128::from(bytes[0] != 0)),
        ElementKind::Signed | ElementKind::Unsigned => {
            Number::Int(wrap(ty, i128::from(load(bytes))))
        }
        ElementKind::Float => Number::Float(float_to_f64(ty, load(bytes))),
        ElementKind::Complex => {
            let (part, width) = parts(ty);
            let re = float_to_f64(part, load(&bytes[..width]));
            let im = float_to_f64(part, load(&bytes[width..]));
            Number::Complex(re, im)
        }
    }
}

/// Writes a number as one element, converting as `convert` does.
///
/// A complex number loses its imaginary part in a type that is not complex, `pred` too: that is
/// whether what is left is not zero.
///
/// # Panics
/// When `out` is not one element of `ty`.
pub fn encode(ty: PrimitiveType, number: Number, out: &mut [u8]) {
    assert_eq!(out.len(), ty.byte_width(), "the bytes are one element");
    match ty.kind() {
        ElementKind::Pred => {
            out[0] = u8::from(match number {
                Number::Int(x) => x != 0,
                Number::Float(x) | Number::Complex(x, _) => x != 0.0,
            });
        }
        ElementKind::Signed | ElementKind::Unsigned => {
            let value = match number {
                Number::Int(x) => wrap(ty, x),
                Number::Float(x) | Number::Complex(x, _) => int_from_f64(ty, x),
            };
            out.copy_from_slice(&value.to_le_bytes()[..out.len()]);
        }
        ElementKind::Float => {
            let bits = match number {
                Number::Int(x) => float_from_int(ty, x),
                Number::Float(x) | Number::Complex(x, _) => float_from_f64(ty, x),
            };
            out.copy_from_slice(&bits.to_le_bytes()[..out.len()]);
        }
        ElementKind::Complex => {
            let (part, width) = parts(ty);
            let (re, im) = match number {
                Number::Int(x) => (Number::Int(x), 0.0),
                Number::Float(x) => (Number::Float(x), 0.0),
                Number::Complex(re, im) => (Number::Float(re), im),
            };
            encode(part, re, &mut out[..width]);
            encode(part, Number::Float(im), &mut out[width..]);
        }
    }
}

/// One element's bytes converted to another type, as `convert` does.
pub fn convert(from: PrimitiveType, bytes: &[u8], to: PrimitiveType, out: &mut [u8]) {
    if from == to {
        out.copy_from_slice(bytes);
    } else {
        encode(to, decode(from, bytes), out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Inputs at, beside and between the values of small float types.
    fn probes(ty: PrimitiveType) -> Vec<f64> {
        let count = 1u64 << ty.bit_width();
        let step = if count > 256 { 61 } else { 1 };
        let values = (0..count).step_by(step).map(|bits| float_to_f64(ty, bits));
        let mut out = vec![
            0.0,
            -0.0,
            1e300,
            -1e300,
            1e-300,
            -1e-300,
            f64::INFINITY,
            f64::NAN,
        ];
        for x in values.filter(|x| x.is_finite()) {
            out.extend([x, x * 1.0625, x * 1.125, x * 1.25, x * 1.5, x * 0.999]);
        }
        out
    }

    #[test]
    fn every_value_of_a_small_float_survives() {
        for &ty in PrimitiveType::ALL {
            if !ty.is_float() || ty.bit_width() > 16 {
                continue;
            }
            for bits in 0..1u64 << ty.bit_width() {
                let x = float_to_f64(ty, bits);
                let back = float_from_f64(ty, x);
                if x.is_nan() {
                    assert!(float_to_f64(ty, back).is_nan(), "{ty} {bits:#x}");
                } else {
                    assert_eq!(back, bits, "{ty} {bits:#x} {x}");
                }
            }
        }
    }

    #[test]
    fn rounding_picks_a_nearest_value() {
        for &ty in PrimitiveType::ALL {
            if !ty.is_float() || ty.bit_width() > 8 || ty == PrimitiveType::F8E8M0FNU {
                continue;
            }
            let values: Vec<f64> = (0..1u64 << ty.bit_width())
                .map(|bits| float_to_f64(ty, bits))
                .filter(|x| x.is_finite())
                .collect();
            let largest = values.iter().copied().fold(0.0, f64::max);
            for x in probes(ty).into_iter().filter(|x| x.abs() <= largest) {
                let got = float_to_f64(ty, float_from_f64(ty, x));
                let best = values
                    .iter()
                    .map(|v| (v - x).abs())
                    .fold(f64::INFINITY, f64::min);
                assert_eq!((got - x).abs(), best, "{ty} {x} became {got}");
            }
        }
    }

    #[test]
    fn overflow_and_nan_follow_ml_dtypes() {
        use PrimitiveType as T;
        let bits = |ty, x| float_from_f64(ty, x);
        assert_eq!(bits(T::F8E4M3FN, 464.0), 0x7e);
        assert_eq!(bits(T::F8E4M3FN, 480.0), 0x7f);
        assert_eq!(bits(T::F8E4M3FN, -f64::INFINITY), 0xff);
        assert_eq!(bits(T::F8E4M3, 464.0), 0x78);
        assert_eq!(bits(T::F8E5M2, 61440.0), 0x7c);
        assert_eq!(bits(T::F8E5M2FNUZ, 61440.0), 0x80);
        assert_eq!(bits(T::F8E4M3FNUZ, -0.0), 0);
        assert_eq!(bits(T::F4E2M1FN, -1e300), 0xf);
        assert_eq!(bits(T::F4E2M1FN, f64::NAN), 8);
        assert_eq!(bits(T::F4E2M1FN, -f64::NAN), 8);
        assert_eq!(bits(T::F6E3M2FN, 28.0), 0x1f);
        assert_eq!(bits(T::F8E8M0FNU, 0.0), 0xff);
        assert_eq!(bits(T::F8E8M0FNU, 3.0), 0x81);
        assert_eq!(bits(T::F8E8M0FNU, 1.5 * 2f64.powi(127)), 0xff);
        assert_eq!(bits(T::F8E8M0FNU, 2f64.powi(-129)), 0);
        assert_eq!(bits(T::F16, 65520.0), 0x7c00);
        assert_eq!(bits(T::F16, 65519.9), 0x7bff);
        assert_eq!(bits(T::BF16, 1e-45), 0);
    }

    #[test]
    fn integers_become_floats_with_one_rounding() {
        let x = (1i128 << 60) + (1 << 36) + 1;
        let bits = float_from_int(PrimitiveType::F32, x) as u32;
        assert_eq!(f32::from_bits(bits), x as f32);
        for x in [i128::from(u64::MAX), -7, 0, 16_777_217, 1 << 63] {
            let bits = float_from_int(PrimitiveType::F64, x);
            assert_eq!(f64::from_bits(bits), x as f64);
        }
    }

    #[test]
    fn convert_wraps_saturates_and_truncates() {
        let one = |from, bytes: &[u8], to| {
            let mut out = [0u8; 16];
            let width = PrimitiveType::byte_width(to);
            convert(from, bytes, to, &mut out[..width]);
            i64::from_le_bytes(out[..8].try_into().expect("eight bytes"))
        };
        use PrimitiveType as T;
        assert_eq!(one(T::F32, &1e20f32.to_le_bytes(), T::S8), 127);
        assert_eq!(one(T::F32, &(-2.9f32).to_le_bytes(), T::S64), -2);
        assert_eq!(one(T::F32, &f32::NAN.to_le_bytes(), T::U32), 0);
        assert_eq!(one(T::S32, &(-1i32).to_le_bytes(), T::U64), -1);
        assert_eq!(one(T::S32, &25i32.to_le_bytes(), T::S4), 0xf9);
        assert_eq!(one(T::U4, &[9], T::S32), 9);
        assert_eq!(one(T::S4, &[0xf9], T::S64), -7);
        assert_eq!(one(T::F64, &0.5f64.to_le_bytes(), T::Pred), 1);
        let i = [0f32.to_le_bytes(), 1f32.to_le_bytes()].concat();
        assert_eq!(one(T::C64, &i, T::Pred), 0);
    }
}
