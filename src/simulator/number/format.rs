//! The binary float formats as data, exact decoding and encoding with one rounding.

use super::Round;
use super::soft::Exact;

/// One binary float format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bits of the exponent field.
    pub exponent: u32,
    /// Bits of the fraction field.
    pub fraction: u32,
    /// What is taken from the exponent field.
    pub bias: i32,
    /// Whether there is a sign bit.
    pub signed: bool,
    /// The code of the largest finite value, without its sign.
    pub largest: u64,
    /// The code of the infinity, where there is one.
    pub infinity: Option<u64>,
    /// The code of the NaN that instructions make, where there is one.
    pub nan: Option<u64>,
}

const fn ieee(exponent: u32, fraction: u32, nan: u64) -> Format {
    let infinity = ((1 << exponent) - 1) << fraction;
    Format {
        exponent,
        fraction,
        bias: (1 << (exponent - 1)) - 1,
        signed: true,
        largest: infinity - 1,
        infinity: Some(infinity),
        nan: Some(nan),
    }
}

const fn finite(exponent: u32, fraction: u32) -> Format {
    Format {
        exponent,
        fraction,
        bias: (1 << (exponent - 1)) - 1,
        signed: true,
        largest: (1 << (exponent + fraction)) - 1,
        infinity: None,
        nan: None,
    }
}

impl Format {
    /// 1 sign, 11 exponent, 52 fraction bits.
    pub const F64: Self = ieee(11, 52, 0xfff8_0000_0000_0000);
    /// 1 sign, 8 exponent, 23 fraction bits.
    pub const F32: Self = ieee(8, 23, 0x7fff_ffff);
    /// f32 with 10 fraction bits, in 19 bits: a tf32 register holds it shifted up by 13.
    pub const TF32: Self = ieee(8, 10, 0x3ffff);
    /// 1 sign, 8 exponent, 7 fraction bits.
    pub const BF16: Self = ieee(8, 7, 0x7fff);
    /// 1 sign, 5 exponent, 10 fraction bits.
    pub const F16: Self = ieee(5, 10, 0x7fff);
    /// 1 sign, 5 exponent, 2 fraction bits, with infinities.
    pub const E5M2: Self = ieee(5, 2, 0x7f);
    /// 1 sign, 4 exponent, 3 fraction bits, no infinity, one NaN a sign.
    pub const E4M3: Self = Format {
        largest: 0x7e,
        nan: Some(0x7f),
        ..finite(4, 3)
    };
    /// 1 sign, 3 exponent, 2 fraction bits, finite only.
    pub const E3M2: Self = finite(3, 2);
    /// 1 sign, 2 exponent, 3 fraction bits, finite only.
    pub const E2M3: Self = finite(2, 3);
    /// 1 sign, 2 exponent, 1 fraction bit, finite only.
    pub const E2M1: Self = finite(2, 1);

    /// The magnitude that stands for a value too large, by direction of rounding.
    #[inline]
    pub(super) fn overflow(self, negative: bool, round: Round, saturate: bool) -> u64 {
        let inward = match round {
            Round::Zero => true,
            Round::Down => !negative,
            Round::Up => negative,
            Round::NearestEven | Round::NearestAway => false,
        };
        match self.infinity {
            Some(infinity) if !saturate && !inward => infinity,
            _ => self.largest,
        }
    }

    /// The code without its sign.
    #[inline]
    pub fn magnitude(self, bits: u64) -> u64 {
        bits & ((1 << (self.exponent + self.fraction)) - 1)
    }

    /// Whether the sign bit is set.
    #[inline]
    pub fn is_negative(self, bits: u64) -> bool {
        self.signed && (bits >> (self.exponent + self.fraction)) & 1 == 1
    }

    /// Whether the code is a NaN.
    #[inline]
    pub fn is_nan(self, bits: u64) -> bool {
        self.nan.is_some() && self.magnitude(bits) > self.infinity.unwrap_or(self.largest)
    }

    /// Whether the code is an infinity.
    #[inline]
    pub fn is_infinite(self, bits: u64) -> bool {
        Some(self.magnitude(bits)) == self.infinity
    }

    /// The same value in another format, rounded once. A NaN gives the NaN of `to`, or its largest
    /// value where it has none; `saturate` keeps infinities and what is too large finite.
    pub fn convert(self, bits: u64, to: Self, round: Round, saturate: bool) -> u64 {
        let sign = u64::from(self.is_negative(bits) && to.signed) << (to.exponent + to.fraction);
        if self.is_nan(bits) {
            return to.nan.unwrap_or(to.largest);
        }
        if self.is_infinite(bits) {
            return sign
                | match to.infinity {
                    Some(infinity) if !saturate => infinity,
                    _ => to.largest,
                };
        }
        Exact::of(self, bits).encode(to, round, saturate)
    }

    /// f32 bits of a code of at most 16 bits, exactly; a NaN becomes canonical. No branches.
    #[inline(always)]
    pub(super) fn widen_f32(self, code: u32) -> u32 {
        let magnitude = self.magnitude(u64::from(code)) as u32;
        let normal = (magnitude << (23 - self.fraction)) + ((127 - self.bias as u32) << 23);
        // The place of the last bit is a power of two, the product with it exact.
        let place = (127 + 1 - self.bias - self.fraction as i32).max(0) as u32;
        let place = if place == 0 {
            // bf16 alone: 2^-133 is itself subnormal.
            0x0001_0000
        } else {
            place << 23
        };
        let subnormal = (magnitude as i32 as f32 * f32::from_bits(place)).to_bits();
        let finite = if magnitude >> self.fraction == 0 {
            subnormal
        } else {
            normal
        };
        let infinity = self.infinity.unwrap_or(self.largest) as u32;
        let value = if self.infinity.is_some() && magnitude == infinity {
            0x7f80_0000
        } else {
            finite
        };
        let sign = (code >> (self.exponent + self.fraction) & 1) << 31;
        let nan = self.nan.is_some() && magnitude > infinity;
        if nan { 0x7fff_ffff } else { value | sign }
    }

    /// The code of f32 bits to nearest even, for formats of at most 16 bits; what NaN and too large
    /// values give is as for [`Format::convert`]. No branches.
    #[inline(always)]
    pub(super) fn narrow_near(self, bits: u32, saturate: bool) -> u32 {
        let magnitude = bits & 0x7fff_ffff;
        let shift = 23 - self.fraction;
        let rebias = (127 - self.bias as u32) << 23;
        // Normal results: add half of the last place, less one when it is even.
        let half = (1 << (shift - 1)) - 1 + (magnitude >> shift & 1);
        let normal = magnitude.wrapping_sub(rebias).wrapping_add(half) >> shift;
        // Subnormal results: a sum whose last place is that of the format rounds the same way.
        let place = (127 + 1 - self.bias - self.fraction as i32 + 23) as u32;
        let magic = f32::from_bits(place << 23);
        let sum = (f32::from_bits(magnitude) + magic).to_bits();
        let subnormal = sum.wrapping_sub(magic.to_bits());
        let least = rebias + (1 << 23);
        let code = if magnitude < least { subnormal } else { normal };
        let large = match self.infinity {
            Some(infinity) if !saturate => infinity as u32,
            _ => self.largest as u32,
        };
        let code = if code > self.largest as u32 {
            large
        } else {
            code
        };
        let signed = code | (bits >> 31) << (self.exponent + self.fraction);
        let nan = self.nan.unwrap_or(self.largest) as u32;
        if magnitude > 0x7f80_0000 { nan } else { signed }
    }

    /// An integer in this format, rounded once.
    pub fn from_int(self, value: i128, round: Round) -> u64 {
        Exact::of_int(value).encode(self, round, false)
    }

    /// The value rounded to an integer, or `None` for NaN, infinities and what lies beyond
    /// every integer type.
    pub fn to_int(self, bits: u64, round: Round) -> Option<i128> {
        if self.is_nan(bits) || self.is_infinite(bits) {
            return None;
        }
        let exact = Exact::of(self, bits);
        if exact.exponent > 70 {
            return None;
        }
        let magnitude = exact.rounded(0, round) as i128;
        Some(if exact.negative {
            -magnitude
        } else {
            magnitude
        })
    }

    /// The value rounded to an integer, in the same format; the sign of a zero stays.
    pub fn integral(self, bits: u64, round: Round) -> u64 {
        if self.is_nan(bits) || self.is_infinite(bits) {
            return bits;
        }
        let exact = Exact::of(self, bits);
        if exact.exponent >= 0 {
            return bits;
        }
        Exact {
            mantissa: exact.rounded(0, round),
            exponent: 0,
            ..exact
        }
        .encode(self, round, false)
    }
}

/// f32 bits of an ue8m0 code: `2^(code - 127)`, NaN for 255.
#[inline]
pub fn ue8m0_to_f32(code: u8) -> u32 {
    match code {
        0xff => 0x7fff_ffff,
        0 => 0x0040_0000,
        _ => u32::from(code) << 23,
    }
}

/// The ue8m0 code of the magnitude of f32 bits, rounded `Zero` or `Up` (any other mode is taken as
/// `Up`). A zero, and what is below the smallest power, gives code 0. NaN gives 255, and so does
/// what is too large, except that with `saturate` that gives 254.
#[inline]
pub fn f32_to_ue8m0(bits: u32, round: Round, saturate: bool) -> u8 {
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return 0xff;
    }
    let large = if saturate { 0xfe } else { 0xff };
    if magnitude == 0x7f80_0000 {
        return large;
    }
    let (field, fraction) = (magnitude >> 23, magnitude & 0x007f_ffff);
    if round == Round::Zero {
        return field as u8;
    }
    // Between 2^-127 and 2^-126 the code is the next one; a zero field is at most 2^-127 up to
    // fraction 0x400000.
    let up = if field == 0 {
        fraction > 0x0040_0000
    } else {
        fraction != 0
    };
    match field + u32::from(up) {
        0xff => large,
        code => code as u8,
    }
}
