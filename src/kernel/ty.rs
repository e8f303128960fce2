//! Scalar and small vector types of kernel values.

use std::fmt;

/// The type of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names say the width and kind")]
pub enum Scalar {
    I1,
    I8,
    I16,
    I32,
    I64,
    F16,
    BF16,
    F32,
    F64,
}

impl Scalar {
    /// Width in bits of one lane in a register.
    pub fn bits(self) -> u32 {
        match self {
            Self::I1 => 1,
            Self::I8 => 8,
            Self::I16 | Self::F16 | Self::BF16 => 16,
            Self::I32 | Self::F32 => 32,
            Self::I64 | Self::F64 => 64,
        }
    }
    /// Bytes of one element in memory; `I1` is never stored.
    pub fn bytes(self) -> u64 {
        u64::from(self.bits().div_ceil(8))
    }
    /// Whether it is a floating-point type.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::BF16 | Self::F32 | Self::F64)
    }
    /// The integer type of the same width.
    #[must_use]
    pub fn as_int(self) -> Self {
        match self {
            Self::F16 | Self::BF16 => Self::I16,
            Self::F32 => Self::I32,
            Self::F64 => Self::I64,
            int => int,
        }
    }
    /// The name in kernel text.
    pub fn name(self) -> &'static str {
        match self {
            Self::I1 => "i1",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }
}

/// The type of a value: a scalar (one lane) or a vector.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ty {
    /// Type of each lane.
    pub scalar: Scalar,
    /// Number of lanes, at least one.
    pub lanes: u16,
}

impl Ty {
    /// One lane.
    pub const fn scalar(scalar: Scalar) -> Self {
        Self { scalar, lanes: 1 }
    }
    /// Several lanes.
    pub const fn vector(scalar: Scalar, lanes: u16) -> Self {
        Self { scalar, lanes }
    }
    /// The same lanes of another type.
    #[must_use]
    pub const fn with_scalar(self, scalar: Scalar) -> Self {
        Self {
            scalar,
            lanes: self.lanes,
        }
    }
    /// Whether it has several lanes.
    pub const fn is_vector(self) -> bool {
        self.lanes > 1
    }
    /// Bits of all lanes.
    pub fn bits(self) -> u32 {
        self.scalar.bits() * u32::from(self.lanes)
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lanes == 1 {
            f.write_str(self.scalar.name())
        } else {
            write!(f, "{}x{}", self.lanes, self.scalar.name())
        }
    }
}

impl fmt::Debug for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
