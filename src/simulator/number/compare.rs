//! The comparisons of `set` and `setp`.

use super::float16::Half;

/// A comparison; the unordered ones (`u` at the end) also hold when an operand is NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// Equal.
    Eq,
    /// Not equal; false when unordered.
    Ne,
    /// Less (`lt`, `lo`).
    Lt,
    /// Less or equal (`le`, `ls`).
    Le,
    /// Greater (`gt`, `hi`).
    Gt,
    /// Greater or equal (`ge`, `hs`).
    Ge,
    /// Equal or unordered.
    Equ,
    /// Not equal or unordered.
    Neu,
    /// Less or unordered.
    Ltu,
    /// Less, equal or unordered.
    Leu,
    /// Greater or unordered.
    Gtu,
    /// Greater, equal or unordered.
    Geu,
    /// Neither operand is NaN.
    Num,
    /// An operand is NaN.
    Nan,
}

impl Compare {
    /// The comparison of a modifier.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "eq" => Self::Eq,
            "ne" => Self::Ne,
            "lt" | "lo" => Self::Lt,
            "le" | "ls" => Self::Le,
            "gt" | "hi" => Self::Gt,
            "ge" | "hs" => Self::Ge,
            "equ" => Self::Equ,
            "neu" => Self::Neu,
            "ltu" => Self::Ltu,
            "leu" => Self::Leu,
            "gtu" => Self::Gtu,
            "geu" => Self::Geu,
            "num" => Self::Num,
            "nan" => Self::Nan,
            _ => return None,
        })
    }

    /// Whether it holds between two values of a type whose order may be partial; unsigned and
    /// signed integers go in as Rust integers of their sign.
    #[inline(always)]
    pub fn holds<T: PartialOrd>(self, a: T, b: T) -> bool {
        // NaN is neither less, nor greater, nor equal.
        let ordered = a <= b || a > b;
        let unordered = !ordered;
        match self {
            Self::Eq => a == b,
            Self::Ne => a != b && ordered,
            Self::Lt => a < b,
            Self::Le => a <= b,
            Self::Gt => a > b,
            Self::Ge => a >= b,
            Self::Equ => a == b || unordered,
            Self::Neu => a != b,
            Self::Ltu => a < b || unordered,
            Self::Leu => a <= b || unordered,
            Self::Gtu => a > b || unordered,
            Self::Geu => a >= b || unordered,
            Self::Num => ordered,
            Self::Nan => unordered,
        }
    }

    /// Whether it holds between two integers.
    #[inline(always)]
    pub fn int<T: Ord>(self, a: T, b: T) -> bool {
        self.holds(a, b)
    }

    /// Whether it holds between two f32; for `.ftz` flush both first.
    #[inline(always)]
    pub fn f32(self, a: u32, b: u32) -> bool {
        self.holds(f32::from_bits(a), f32::from_bits(b))
    }

    /// Whether it holds between two f64.
    #[inline(always)]
    pub fn f64(self, a: u64, b: u64) -> bool {
        self.holds(f64::from_bits(a), f64::from_bits(b))
    }

    /// Whether it holds between two f16 or bf16; for `.ftz` flush both first.
    #[inline(always)]
    pub fn half<H: Half>(self, a: u16, b: u16) -> bool {
        self.holds(H::widen(a), H::widen(b))
    }
}
