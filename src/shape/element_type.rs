//! The element types of HLO: names, widths, kinds. The only place that lists them.

use std::fmt;

/// What the bits of an element mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementKind {
    /// True or false.
    Pred,
    /// Two's complement integer.
    Signed,
    /// Unsigned integer.
    Unsigned,
    /// IEEE-like floating point of any width.
    Float,
    /// A pair of floats, real part first.
    Complex,
}

macro_rules! element_types {
    ($($(#[doc = $doc:literal])+ $variant:ident, $name:literal, $number:literal, $bits:literal, $kind:ident;)*) => {
        /// An array element type. The discriminant is the number the wire uses for it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum PrimitiveType { $($(#[doc = $doc])+ $variant = $number,)* }

        impl PrimitiveType {
            /// Every element type.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
            /// The name in HLO text.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
            /// The width of one element in bits, without padding.
            pub fn bit_width(self) -> usize {
                match self { $(Self::$variant => $bits,)* }
            }
            /// What the bits mean.
            pub fn kind(self) -> ElementKind {
                match self { $(Self::$variant => ElementKind::$kind,)* }
            }
            /// The number of the type in `xla.PrimitiveType` (xla_data.proto).
            pub fn number(self) -> i32 {
                self as i32
            }
        }
    };
}

element_types! {
    /// Boolean, one byte in memory.
    Pred, "pred", 1, 8, Pred;
    /// Signed, 1 bit.
    S1, "s1", 30, 1, Signed;
    /// Signed, 2 bits.
    S2, "s2", 26, 2, Signed;
    /// Signed, 4 bits.
    S4, "s4", 21, 4, Signed;
    /// Signed, 8 bits.
    S8, "s8", 2, 8, Signed;
    /// Signed, 16 bits.
    S16, "s16", 3, 16, Signed;
    /// Signed, 32 bits.
    S32, "s32", 4, 32, Signed;
    /// Signed, 64 bits.
    S64, "s64", 5, 64, Signed;
    /// Unsigned, 1 bit.
    U1, "u1", 31, 1, Unsigned;
    /// Unsigned, 2 bits.
    U2, "u2", 27, 2, Unsigned;
    /// Unsigned, 4 bits.
    U4, "u4", 22, 4, Unsigned;
    /// Unsigned, 8 bits.
    U8, "u8", 6, 8, Unsigned;
    /// Unsigned, 16 bits.
    U16, "u16", 7, 16, Unsigned;
    /// Unsigned, 32 bits.
    U32, "u32", 8, 32, Unsigned;
    /// Unsigned, 64 bits.
    U64, "u64", 9, 64, Unsigned;
    /// Float, 2 exponent and 1 mantissa bit, no infinities or NaN.
    F4E2M1FN, "f4e2m1fn", 32, 4, Float;
    /// Float, 2 exponent and 3 mantissa bits, no infinities or NaN.
    F6E2M3FN, "f6e2m3fn", 36, 6, Float;
    /// Float, 3 exponent and 2 mantissa bits, no infinities or NaN.
    F6E3M2FN, "f6e3m2fn", 35, 6, Float;
    /// Float, 3 exponent and 4 mantissa bits, IEEE-like.
    F8E3M4, "f8e3m4", 29, 8, Float;
    /// Float, 4 exponent and 3 mantissa bits, IEEE-like.
    F8E4M3, "f8e4m3", 28, 8, Float;
    /// Float, 4 exponent and 3 mantissa bits, one NaN, no infinities.
    F8E4M3FN, "f8e4m3fn", 20, 8, Float;
    /// Float, 4 exponent (bias 11) and 3 mantissa bits, one NaN (the negative zero), no infinities.
    F8E4M3B11FNUZ, "f8e4m3b11fnuz", 23, 8, Float;
    /// Float, 4 exponent (bias 8) and 3 mantissa bits, one NaN (the negative zero), no infinities.
    F8E4M3FNUZ, "f8e4m3fnuz", 25, 8, Float;
    /// Float, 5 exponent and 2 mantissa bits, IEEE-like.
    F8E5M2, "f8e5m2", 19, 8, Float;
    /// Float, 5 exponent (bias 16) and 2 mantissa bits, one NaN (the negative zero), no infinities.
    F8E5M2FNUZ, "f8e5m2fnuz", 24, 8, Float;
    /// Scale factor: 8 exponent bits, a power of two, one NaN, no sign, no zero.
    F8E8M0FNU, "f8e8m0fnu", 33, 8, Float;
    /// bfloat16: the upper half of an f32.
    BF16, "bf16", 16, 16, Float;
    /// IEEE binary16.
    F16, "f16", 10, 16, Float;
    /// IEEE binary32.
    F32, "f32", 11, 32, Float;
    /// IEEE binary64.
    F64, "f64", 12, 64, Float;
    /// Two f32: real, imaginary.
    C64, "c64", 15, 64, Complex;
    /// Two f64: real, imaginary.
    C128, "c128", 18, 128, Complex;
}

impl PrimitiveType {
    /// The type of that name in HLO text.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|ty| ty.name() == name)
    }
    /// The type of that number on the wire.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.iter().copied().find(|ty| ty.number() == number)
    }
    /// Bytes of one element when it is stored alone: sub-byte types take one byte.
    pub fn byte_width(self) -> usize {
        self.bit_width().div_ceil(8)
    }
    /// Whether an element has fewer than eight bits.
    pub fn is_sub_byte(self) -> bool {
        self.bit_width() < 8
    }
    /// Signed or unsigned integer (not `pred`).
    pub fn is_integer(self) -> bool {
        matches!(self.kind(), ElementKind::Signed | ElementKind::Unsigned)
    }
    /// Signed integer.
    pub fn is_signed(self) -> bool {
        self.kind() == ElementKind::Signed
    }
    /// Unsigned integer.
    pub fn is_unsigned(self) -> bool {
        self.kind() == ElementKind::Unsigned
    }
    /// Floating point, not complex.
    pub fn is_float(self) -> bool {
        self.kind() == ElementKind::Float
    }
    /// A pair of floats.
    pub fn is_complex(self) -> bool {
        self.kind() == ElementKind::Complex
    }
    /// Floats of at most eight bits.
    pub fn is_small_float(self) -> bool {
        self.is_float() && self.bit_width() <= 8
    }
    /// The type of the real and imaginary parts of a complex type; any other type is itself.
    pub fn real_part(self) -> Self {
        match self {
            Self::C64 => Self::F32,
            Self::C128 => Self::F64,
            other => other,
        }
    }
    /// The complex type whose parts are of this type.
    pub fn complex_of(self) -> Option<Self> {
        match self {
            Self::F32 => Some(Self::C64),
            Self::F64 => Some(Self::C128),
            _ => None,
        }
    }
}

impl fmt::Display for PrimitiveType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
