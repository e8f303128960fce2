//! `cvt` of one value between any two scalar types.

use super::Round;
use super::float16;
use super::float16::Half;
use super::float32;
use super::format;
use super::format::Format;

/// A scalar type that `cvt` reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names of PTX types say it all")]
pub enum Scalar {
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    BF16,
    /// Stands in an f32 register, the lower 13 bits zero.
    TF32,
    F32,
    F64,
    E4M3,
    E5M2,
    E2M3,
    E3M2,
    E2M1,
    /// A power of two as its biased exponent.
    UE8M0,
}

impl Scalar {
    /// The type of a modifier (`u8`, `bf16`, `e4m3`, ...).
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "u8" => Self::U8,
            "u16" => Self::U16,
            "u32" => Self::U32,
            "u64" => Self::U64,
            "s8" => Self::S8,
            "s16" => Self::S16,
            "s32" => Self::S32,
            "s64" => Self::S64,
            "f16" => Self::F16,
            "bf16" => Self::BF16,
            "tf32" => Self::TF32,
            "f32" => Self::F32,
            "f64" => Self::F64,
            "e4m3" => Self::E4M3,
            "e5m2" => Self::E5M2,
            "e2m3" => Self::E2M3,
            "e3m2" => Self::E3M2,
            "e2m1" => Self::E2M1,
            "ue8m0" => Self::UE8M0,
            _ => return None,
        })
    }

    /// Bits of a value as it stands in a register, without padding.
    pub const fn bits(self) -> u32 {
        match self {
            Self::E2M1 => 4,
            Self::E2M3 | Self::E3M2 => 6,
            Self::U8 | Self::S8 | Self::E4M3 | Self::E5M2 | Self::UE8M0 => 8,
            Self::U16 | Self::S16 | Self::F16 | Self::BF16 => 16,
            Self::U32 | Self::S32 | Self::TF32 | Self::F32 => 32,
            Self::U64 | Self::S64 | Self::F64 => 64,
        }
    }

    /// Whether it is an integer type.
    pub const fn is_int(self) -> bool {
        self.is_signed() || matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::U64)
    }

    /// Whether it is a signed integer type.
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::S8 | Self::S16 | Self::S32 | Self::S64)
    }

    /// The format of a float type; ue8m0 and integers have none.
    pub const fn format(self) -> Option<Format> {
        Some(match self {
            Self::F16 => Format::F16,
            Self::BF16 => Format::BF16,
            Self::TF32 => Format::TF32,
            Self::F32 => Format::F32,
            Self::F64 => Format::F64,
            Self::E4M3 => Format::E4M3,
            Self::E5M2 => Format::E5M2,
            Self::E2M3 => Format::E2M3,
            Self::E3M2 => Format::E3M2,
            Self::E2M1 => Format::E2M1,
            _ => return None,
        })
    }
}

/// One `cvt` with all its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Conversion {
    /// The type of the result.
    pub to: Scalar,
    /// The type of the operand.
    pub from: Scalar,
    /// The direction of rounding, where one is written.
    pub round: Option<Round>,
    /// Whether it is one of the roundings to an integer (`.rni`, `.rzi`, `.rmi`, `.rpi`).
    pub integral: bool,
    /// Flush subnormal f32 operands and results.
    pub ftz: bool,
    /// Clamp to the range of an integer type, or a float to `[0, 1]`.
    pub sat: bool,
    /// What is too large, and infinities, become the largest finite value.
    pub satfinite: bool,
    /// What is negative becomes `+0`.
    pub relu: bool,
}

/// A register of 32 or 64 bits.
pub trait Word: Copy {
    /// Zero-extended.
    fn wide(self) -> u64;
    /// The low bits.
    fn low(bits: u64) -> Self;
}

impl Word for u32 {
    #[inline(always)]
    fn wide(self) -> u64 {
        u64::from(self)
    }
    #[inline(always)]
    fn low(bits: u64) -> Self {
        bits as u32
    }
}

impl Word for u64 {
    #[inline(always)]
    fn wide(self) -> u64 {
        self
    }
    #[inline(always)]
    fn low(bits: u64) -> Self {
        bits
    }
}

#[inline(always)]
fn each<S: Word, D: Word, const N: usize>(source: &[S; N], f: impl Fn(u64) -> u64) -> [D; N] {
    // A loop, since an array built by a function is often not vectorized.
    let mut out = [D::low(0); N];
    for (to, &from) in out.iter_mut().zip(source) {
        *to = D::low(f(from.wide()));
    }
    out
}

/// The low `bits` bits, extended to 64 by sign or zero.
#[inline(always)]
fn extend(value: u64, bits: u32, signed: bool) -> u64 {
    let shift = 64 - bits;
    if signed {
        (((value << shift) as i64) >> shift) as u64
    } else {
        value << shift >> shift
    }
}

/// A NaN that an f64 gives an f32 or takes from any format: quiet, its sign and payload kept.
#[inline(always)]
fn requiet(from: Format, to: Format, bits: u64) -> u64 {
    let fraction = (bits & ((1 << from.fraction) - 1)) << (52 - from.fraction);
    let fraction = fraction >> (52 - to.fraction) | 1 << (to.fraction - 1);
    let sign = u64::from(from.is_negative(bits)) << (to.exponent + to.fraction);
    sign | ((1 << to.exponent) - 1) << to.fraction | fraction
}

impl Conversion {
    /// A conversion without modifiers.
    pub const fn new(to: Scalar, from: Scalar) -> Self {
        Self {
            to,
            from,
            round: None,
            integral: false,
            ftz: false,
            sat: false,
            satfinite: false,
            relu: false,
        }
    }

    /// Whether PTX has this combination of scalar types and modifiers.
    pub fn check(&self) -> bool {
        use Scalar::*;
        let base = |t: Scalar| t.is_int() || matches!(t, F16 | BF16 | F32 | F64);
        let narrow = matches!(self.to, F16 | BF16 | TF32) && self.from == F32;
        if !base(self.from) || !(base(self.to) || self.to == TF32 && self.from == F32) {
            return false;
        }
        if self.ftz && self.to != F32 && self.from != F32 {
            return false;
        }
        if (self.satfinite || self.relu) && !narrow || self.satfinite && self.sat {
            return false;
        }
        match (self.from.is_int(), self.to.is_int()) {
            (true, true) => self.round.is_none(),
            (false, true) => self.integral && self.directed(),
            (true, false) => !self.integral && self.directed(),
            (false, false) => {
                let widens = matches!(
                    (self.to, self.from),
                    (F64, F32 | F16 | BF16) | (F32, F16 | BF16)
                );
                if self.to == self.from {
                    self.round.is_none() || self.integral && self.directed()
                } else if self.integral {
                    false
                } else if widens {
                    self.round.is_none()
                } else if self.to == TF32 {
                    matches!(
                        self.round,
                        Some(Round::NearestAway | Round::NearestEven | Round::Zero)
                    )
                } else {
                    self.directed()
                }
            }
        }
    }

    /// Whether it has one of the four roundings of IEEE 754 of 1985.
    fn directed(&self) -> bool {
        !matches!(self.round, None | Some(Round::NearestAway))
    }

    /// Converts the low bits of `value`. An integer result is extended to 64 bits by its type's
    /// sign, any other by zeros.
    #[inline]
    pub fn apply(&self, value: u64) -> u64 {
        match (self.from.is_int(), self.to.is_int()) {
            (true, true) => self.int_to_int(value),
            (true, false) => self.int_to_float(value),
            (false, true) => self.float_to_int(value),
            (false, false) => self.float_to_float(value),
        }
    }

    fn int_of(&self, value: u64) -> i128 {
        let wide = extend(value, self.from.bits(), self.from.is_signed());
        if self.from.is_signed() {
            i128::from(wide as i64)
        } else {
            i128::from(wide)
        }
    }

    /// The lowest and the highest value of the integer type of the result.
    fn range(&self) -> (i128, i128) {
        let bits = self.to.bits();
        if self.to.is_signed() {
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        } else {
            (0, (1 << bits) - 1)
        }
    }

    fn int_to_int(&self, value: u64) -> u64 {
        let mut int = self.int_of(value);
        if self.sat {
            let (least, most) = self.range();
            int = int.clamp(least, most);
        }
        extend(int as u64, self.to.bits(), self.to.is_signed())
    }

    fn int_to_float(&self, value: u64) -> u64 {
        let int = self.int_of(value);
        let round = self.round.unwrap_or(Round::NearestEven);
        match self.to.format() {
            Some(format) => self.finish(format, format.from_int(int, round)),
            None => {
                let f32 = Format::F32.from_int(int, Round::Up) as u32;
                u64::from(format::f32_to_ue8m0(f32, Round::Up, self.satfinite))
            }
        }
    }

    fn float_to_int(&self, value: u64) -> u64 {
        let (format, bits) = self.operand(value);
        let round = self.round.unwrap_or(Round::Zero);
        let (least, most) = self.range();
        let int = match format.to_int(bits, round) {
            Some(int) => int.clamp(least, most),
            None if !format.is_nan(bits) => {
                if format.is_negative(bits) {
                    least
                } else {
                    most
                }
            }
            None if self.from != Scalar::F64 && self.to.bits() < 64 => 0,
            None => 1 << (self.to.bits() - 1),
        };
        extend(int as u64, self.to.bits(), self.to.is_signed())
    }

    /// The operand's code in its format, subnormals flushed where asked.
    fn operand(&self, value: u64) -> (Format, u64) {
        let value = extend(value, self.from.bits(), false);
        match self.from.format() {
            Some(_) if self.from == Scalar::TF32 => (Format::F32, value),
            Some(format) if self.from == Scalar::F32 && self.ftz => {
                (format, u64::from(float32::ftz(value as u32)))
            }
            Some(format) => (format, value),
            None => (Format::F32, u64::from(format::ue8m0_to_f32(value as u8))),
        }
    }

    fn float_to_float(&self, value: u64) -> u64 {
        let (from, bits) = self.operand(value);
        let round = self.round.unwrap_or(Round::NearestEven);
        let Some(to) = self.to.format() else {
            let f32 = from.convert(bits, Format::F32, Round::Up, false) as u32;
            return u64::from(format::f32_to_ue8m0(f32, round, self.satfinite));
        };
        let doubles = from == Format::F64 || to == Format::F64;
        if doubles && to.fraction >= 23 && from.is_nan(bits) && !self.sat {
            return requiet(from, to, bits);
        }
        let bits = if self.integral {
            from.integral(bits, round)
        } else {
            bits
        };
        self.finish(to, from.convert(bits, to, round, self.satfinite))
    }

    /// `.relu`, `.sat` and `.ftz` on a result, and its place in the register.
    fn finish(&self, to: Format, mut bits: u64) -> u64 {
        let nan = to.is_nan(bits);
        if to.is_negative(bits) && (self.relu && !nan || self.sat) || self.sat && nan {
            bits = 0;
        }
        if self.sat && to.infinity.is_some() {
            let one = (to.bias as u64) << to.fraction;
            bits = bits.min(one);
        }
        match self.to {
            Scalar::TF32 => bits << 13,
            Scalar::F32 if self.ftz => u64::from(float32::ftz(bits as u32)),
            _ => bits,
        }
    }

    /// Converts every lane. The usual conversions are loops that vectorize.
    #[inline]
    pub fn lanes<S: Word, D: Word, const N: usize>(&self, source: &[S; N]) -> [D; N] {
        use Scalar::*;
        let (to, from) = (self.to, self.from);
        let odd_form = self.integral && to != from && !from.is_int() && !to.is_int();
        if self.sat || self.satfinite || self.relu || odd_form {
            return each(source, |value| self.apply(value));
        }
        if from.is_int() && to.is_int() {
            let (read, write) = (from.bits(), to.bits());
            return match (from.is_signed(), to.is_signed()) {
                (false, false) => each(source, |v| extend(extend(v, read, false), write, false)),
                (false, true) => each(source, |v| extend(extend(v, read, false), write, true)),
                (true, false) => each(source, |v| extend(extend(v, read, true), write, false)),
                (true, true) => each(source, |v| extend(extend(v, read, true), write, true)),
            };
        }
        let near = matches!(self.round, None | Some(Round::NearestEven));
        let cut = self.round == Some(Round::Zero);
        let f32_of = |v: u64| f32::from_bits(v as u32);
        let put32 = |f: f32| u64::from(f.to_bits());
        let put_nan = |f: f32| {
            u64::from(if f.is_nan() {
                float32::NAN
            } else {
                f.to_bits()
            })
        };
        match (to, from) {
            (F32, F16) => each(source, |v| put32(float16::F16::widen(v as u16))),
            (F32, BF16) if !self.ftz => each(source, |v| put32(float16::BF16::widen(v as u16))),
            (F16, F32) if near => each(source, |v| u64::from(float16::F16::narrow(f32_of(v)))),
            (BF16, F32) if near && !self.ftz => {
                each(source, |v| u64::from(float16::BF16::narrow(f32_of(v))))
            }
            (F32, S32) if near => each(source, |v| put32(v as i32 as f32)),
            (F32, U32) if near => each(source, |v| put32(v as u32 as f32)),
            (F32, S64) if near => each(source, |v| put32(v as i64 as f32)),
            (F32, U64) if near => each(source, |v| put32(v as f32)),
            (F32, S16) => each(source, |v| put32(f32::from(v as i16))),
            (F32, U16) => each(source, |v| put32(f32::from(v as u16))),
            (F32, S8) => each(source, |v| put32(f32::from(v as i8))),
            (F32, U8) => each(source, |v| put32(f32::from(v as u8))),
            (F64, S32) => each(source, |v| f64::from(v as i32).to_bits()),
            (F64, U32) => each(source, |v| f64::from(v as u32).to_bits()),
            (F64, S64) if near => each(source, |v| (v as i64 as f64).to_bits()),
            (F64, U64) if near => each(source, |v| (v as f64).to_bits()),
            (S32, F32) if cut => each(source, |v| f32_of(v) as i32 as i64 as u64),
            (U32, F32) if cut => each(source, |v| u64::from(f32_of(v) as u32)),
            (F64, F32) if !self.ftz => each(source, |v| {
                let wide = f64::from(f32_of(v));
                if wide.is_nan() {
                    requiet(Format::F32, Format::F64, v)
                } else {
                    wide.to_bits()
                }
            }),
            (F32, F64) if near && !self.ftz => each(source, |v| {
                let narrow = f64::from_bits(v) as f32;
                if narrow.is_nan() {
                    requiet(Format::F64, Format::F32, v)
                } else {
                    put32(narrow)
                }
            }),
            (F32, F32) if self.integral && !self.ftz => match self.round {
                Some(Round::NearestEven) => each(source, |v| put_nan(f32_of(v).round_ties_even())),
                Some(Round::Zero) => each(source, |v| put_nan(f32_of(v).trunc())),
                Some(Round::Down) => each(source, |v| put_nan(f32_of(v).floor())),
                Some(Round::Up) => each(source, |v| put_nan(f32_of(v).ceil())),
                _ => each(source, |v| self.apply(v)),
            },
            _ => each(source, |v| self.apply(v)),
        }
    }
}
