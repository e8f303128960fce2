//! Element types of matrices, and widening packed elements to numbers.

/// The type of a matrix's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// IEEE half.
    F16,
    /// The upper half of a single.
    Bf16,
    /// A single of which the low 13 bits are not looked at.
    Tf32,
    /// IEEE single.
    F32,
    /// IEEE double.
    F64,
    /// Signed byte.
    S8,
    /// Unsigned byte.
    U8,
    /// Signed half byte.
    S4,
    /// Unsigned half byte.
    U4,
    /// Bit.
    B1,
    /// 32-bit integer.
    S32,
    /// Four bits of exponent, three of mantissa, no infinity.
    E4m3,
    /// Five bits of exponent, two of mantissa.
    E5m2,
    /// Three bits of exponent, two of mantissa, finite.
    E3m2,
    /// Two bits of exponent, three of mantissa, finite.
    E2m3,
    /// Two bits of exponent, one of mantissa, finite.
    E2m1,
}

impl Element {
    /// The type of this name in an instruction.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "f16" => Self::F16,
            "bf16" => Self::Bf16,
            "tf32" => Self::Tf32,
            "f32" => Self::F32,
            "f64" => Self::F64,
            "s8" => Self::S8,
            "u8" => Self::U8,
            "s4" => Self::S4,
            "u4" => Self::U4,
            "b1" => Self::B1,
            "s32" => Self::S32,
            "e4m3" => Self::E4m3,
            "e5m2" => Self::E5m2,
            "e3m2" => Self::E3m2,
            "e2m3" => Self::E2m3,
            "e2m1" => Self::E2m1,
            _ => return None,
        })
    }
    /// Bits that an element takes in a register; the small floats take a byte.
    pub fn bits(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 16,
            Self::Tf32 | Self::F32 | Self::S32 => 32,
            Self::F64 => 64,
            Self::S8 | Self::U8 => 8,
            Self::E4m3 | Self::E5m2 | Self::E3m2 | Self::E2m3 | Self::E2m1 => 8,
            Self::S4 | Self::U4 => 4,
            Self::B1 => 1,
        }
    }
    /// Whether it is one of the floats of eight bits and less.
    pub fn is_small_float(self) -> bool {
        matches!(
            self,
            Self::E4m3 | Self::E5m2 | Self::E3m2 | Self::E2m3 | Self::E2m1
        )
    }
}

/// How elements lie in a 32-bit word, and what number each is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Packing {
    /// Two halves.
    F16,
    /// Two bfloats.
    Bf16,
    /// One single without its low 13 bits.
    Tf32,
    /// Four bytes, each an index into a table.
    Byte(&'static [f32; 256]),
    /// Eight half bytes, each an index into the table's first entries.
    Nibble(&'static [f32; 16]),
}

impl Packing {
    /// The packing of `element` where every small float takes a byte, as in `kind::f8f6f4`.
    pub(super) fn in_bytes(element: Element) -> Option<Self> {
        Some(match element {
            Element::F16 => Self::F16,
            Element::Bf16 => Self::Bf16,
            Element::Tf32 => Self::Tf32,
            Element::E4m3 => Self::Byte(&E4M3),
            Element::E5m2 => Self::Byte(&E5M2),
            Element::E3m2 => Self::Byte(&E3M2),
            Element::E2m3 => Self::Byte(&E2M3),
            Element::E2m1 => Self::Byte(&E2M1_IN_BYTE),
            _ => return None,
        })
    }
    /// Eight `e2m1` a word, as in `kind::mxf4`.
    pub(super) const FP4: Self = Self::Nibble(&E2M1);
    /// Elements a word.
    #[inline]
    pub(super) fn per_word(self) -> usize {
        match self {
            Self::Tf32 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::Byte(_) => 4,
            Self::Nibble(_) => 8,
        }
    }
}

/// Numbers in the four words of a quad, in order from the low bits of the first.
pub(super) mod quad {
    use super::half;

    /// Halves.
    #[inline(always)]
    pub(in super::super) fn f16(words: &[u32; 4]) -> [f32; 8] {
        std::array::from_fn(|i| half(words[i / 2] >> (16 * (i & 1)) & 0xffff))
    }
    /// Bfloats.
    #[inline(always)]
    pub(in super::super) fn bf16(words: &[u32; 4]) -> [f32; 8] {
        std::array::from_fn(|i| match i & 1 {
            0 => f32::from_bits(words[i / 2] << 16),
            _ => f32::from_bits(words[i / 2] & 0xffff_0000),
        })
    }
    /// Singles without their low 13 bits.
    #[inline(always)]
    pub(in super::super) fn tf32(words: &[u32; 4]) -> [f32; 4] {
        words.map(|w| f32::from_bits(w & 0xffff_e000))
    }
    /// Bytes, each an index into a table.
    #[inline(always)]
    pub(in super::super) fn bytes(words: &[u32; 4], table: &[f32; 256]) -> [f32; 16] {
        std::array::from_fn(|i| table[(words[i / 4] >> (8 * (i & 3))) as usize & 255])
    }
    /// Half bytes, each an index into a table.
    #[inline(always)]
    pub(in super::super) fn nibbles(words: &[u32; 4], table: &[f32; 16]) -> [f32; 32] {
        std::array::from_fn(|i| table[(words[i / 8] >> (4 * (i & 7))) as usize & 15])
    }
    /// Integers of eight bits.
    #[inline(always)]
    pub(in super::super) fn integers8(words: &[u32; 4], signed: bool) -> [i32; 16] {
        // Flipping the top bit and taking it off again extends the sign.
        let top = if signed { 128 } else { 0 };
        std::array::from_fn(|i| (((words[i / 4] >> (8 * (i & 3))) & 255) as i32 ^ top) - top)
    }
    /// Integers of four bits.
    #[inline(always)]
    pub(in super::super) fn integers4(words: &[u32; 4], signed: bool) -> [i32; 32] {
        let top = if signed { 8 } else { 0 };
        std::array::from_fn(|i| (((words[i / 8] >> (4 * (i & 7))) & 15) as i32 ^ top) - top)
    }
}

/// The number of a half's 16 bits.
#[inline(always)]
pub(super) fn half(bits: u32) -> f32 {
    let magnitude = (bits & 0x7fff) << 13;
    // 2^112 takes the half's exponent to the single's, and makes denormals normal.
    let scaled = (f32::from_bits(magnitude) * f32::from_bits(0x7780_0000)).to_bits();
    let special = magnitude | 0x7f80_0000;
    let chosen = if magnitude >= 0x0f80_0000 {
        special
    } else {
        scaled
    };
    f32::from_bits(chosen | ((bits & 0x8000) << 16))
}

/// The half nearest to `value`, ties to even; the canonical NaN for NaN.
#[inline(always)]
pub(super) fn to_half(value: f32) -> u32 {
    let bits = value.to_bits();
    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return 0x7fff;
    }
    let rounded = if magnitude >= 0x477f_f000 {
        0x7c00
    } else if magnitude < 0x3880_0000 {
        // One half has the unit of the smallest half in its last place.
        (f32::from_bits(magnitude) + 0.5).to_bits() - 0x3f00_0000
    } else {
        (magnitude - 0x3800_0000 + 0xfff + ((magnitude >> 13) & 1)) >> 13
    };
    sign | rounded
}

/// Two halves in a word, the first in the low bits.
#[inline(always)]
pub(super) fn halves(low: f32, high: f32) -> u32 {
    to_half(low) | (to_half(high) << 16)
}

/// 2 to the `power`, for powers of normal singles.
const fn power_of_two(power: i32) -> f32 {
    f32::from_bits(((power + 127) as u32) << 23)
}

/// The number of a small float's bits, without regard to infinities and NaN.
const fn small(bits: u32, exponent_bits: u32, mantissa_bits: u32) -> f32 {
    let bias = (1 << (exponent_bits - 1)) - 1;
    let mantissa = (bits & ((1 << mantissa_bits) - 1)) as f32;
    let exponent = ((bits >> mantissa_bits) & ((1 << exponent_bits) - 1)) as i32;
    let unit = power_of_two(-(mantissa_bits as i32));
    let magnitude = if exponent == 0 {
        mantissa * unit * power_of_two(1 - bias)
    } else {
        (1.0 + mantissa * unit) * power_of_two(exponent - bias)
    };
    if (bits >> (exponent_bits + mantissa_bits)) & 1 == 1 {
        -magnitude
    } else {
        magnitude
    }
}

const fn table<const N: usize>(exponent_bits: u32, mantissa_bits: u32, shift: u32) -> [f32; N] {
    let mut out = [0.0; N];
    let mut i = 0;
    while i < N {
        out[i] = small(i as u32 >> shift, exponent_bits, mantissa_bits);
        i += 1;
    }
    out
}

const fn e4m3() -> [f32; 256] {
    let mut out = table::<256>(4, 3, 0);
    out[0x7f] = f32::NAN;
    out[0xff] = f32::NAN;
    out
}

const fn e5m2() -> [f32; 256] {
    let mut out = table::<256>(5, 2, 0);
    let mut sign = 0;
    while sign < 256 {
        out[sign + 0x7c] = if sign == 0 {
            f32::INFINITY
        } else {
            f32::NEG_INFINITY
        };
        out[sign + 0x7d] = f32::NAN;
        out[sign + 0x7e] = f32::NAN;
        out[sign + 0x7f] = f32::NAN;
        sign += 128;
    }
    out
}

pub(super) static E4M3: [f32; 256] = e4m3();
pub(super) static E5M2: [f32; 256] = e5m2();
static E3M2: [f32; 256] = table(3, 2, 0);
static E2M3: [f32; 256] = table(2, 3, 0);
/// In a byte, an `e2m1` has two unused bits on either side.
static E2M1_IN_BYTE: [f32; 256] = table(2, 1, 2);
static E2M1: [f32; 16] = table(2, 1, 0);

/// The value of a scale factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScaleType {
    /// A power of two.
    Ue8m0,
    /// An unsigned `e4m3`.
    Ue4m3,
}

impl ScaleType {
    pub(super) fn parse(word: &str) -> Option<Self> {
        match word {
            "ue8m0" => Some(Self::Ue8m0),
            "ue4m3" => Some(Self::Ue4m3),
            _ => None,
        }
    }
    /// The factor of a byte.
    pub(super) fn value(self, byte: u8) -> f64 {
        match (self, byte) {
            (Self::Ue8m0, 255) => f64::NAN,
            (Self::Ue8m0, _) => f64::from_bits((u64::from(byte) + 1023 - 127) << 52),
            (Self::Ue4m3, _) => f64::from(E4M3[usize::from(byte & 0x7f)]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_there_and_back() {
        for bits in 0..=0xffffu32 {
            let value = half(bits);
            let again = to_half(value);
            if value.is_nan() {
                assert_eq!(again, 0x7fff);
            } else {
                assert_eq!(again, bits);
            }
        }
        assert_eq!(half(0x3c00), 1.0);
        assert_eq!(half(0x7bff), 65504.0);
        assert_eq!(half(0x0001), 2f32.powi(-24));
        assert_eq!(to_half(65519.0), 0x7bff);
        assert_eq!(to_half(65520.0), 0x7c00);
        assert_eq!(to_half(1.0 + 2f32.powi(-11)), 0x3c00);
        assert_eq!(to_half(1.0 + 3.0 * 2f32.powi(-11)), 0x3c02);
        assert_eq!(to_half(2f32.powi(-25)), 0);
        assert_eq!(to_half(1.5 * 2f32.powi(-25)), 1);
    }

    #[test]
    fn small_floats_have_their_documented_limits() {
        assert_eq!(E4M3[0x7e], 448.0);
        assert_eq!(E4M3[0x01], 2f32.powi(-9));
        assert!(E4M3[0xff].is_nan());
        assert_eq!(E5M2[0x7b], 57344.0);
        assert_eq!(E5M2[0xfc], f32::NEG_INFINITY);
        assert_eq!(E3M2[0x1f], 28.0);
        assert_eq!(E2M3[0x1f], 7.5);
        assert_eq!(
            E2M1,
            [
                0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0,
                -6.0
            ]
        );
        assert_eq!(E2M1_IN_BYTE[0b0001_1100], 6.0);
        assert_eq!(ScaleType::Ue8m0.value(127), 1.0);
        assert_eq!(ScaleType::Ue8m0.value(0), 2f64.powi(-127));
        assert_eq!(ScaleType::Ue4m3.value(0x38), 1.0);
    }
}
