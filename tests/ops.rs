//! The elementwise ops, by name, and what they promise: the one list of them for all tests.

use xla_aot::shape::ElementKind;
use xla_aot::shape::PrimitiveType;

/// An op of one or two operands.
#[derive(Clone, Copy)]
pub struct Op {
    /// Name in HLO text.
    pub name: &'static str,
    /// Kinds of elements whose results are exact, a letter each: `p`red, `s`igned, `u`nsigned,
    /// `f`loat, `c`omplex.
    pub exact: &'static str,
    /// Kinds whose results are near the true value.
    pub near: &'static str,
}

const fn op(name: &'static str, exact: &'static str, near: &'static str) -> Op {
    Op { name, exact, near }
}

/// Of one operand.
pub const UNARY: &[Op] = &[
    op("abs", "sf", "c"),
    op("negate", "sufc", ""),
    op("sign", "suf", "c"),
    op("floor", "f", ""),
    op("ceil", "f", ""),
    op("round-nearest-afz", "f", ""),
    op("round-nearest-even", "f", ""),
    op("real", "fc", ""),
    op("imag", "fc", ""),
    op("exponential", "", "fc"),
    op("exponential-minus-one", "", "fc"),
    op("log", "", "fc"),
    op("log-plus-one", "", "fc"),
    op("logistic", "", "fc"),
    op("tanh", "", "fc"),
    op("sqrt", "f", "c"),
    op("rsqrt", "", "fc"),
    op("cbrt", "", "fc"),
    op("sine", "", "fc"),
    op("cosine", "", "fc"),
    op("tan", "", "fc"),
    op("acos", "", "fc"),
    op("asin", "", "fc"),
    op("acosh", "", "fc"),
    op("asinh", "", "fc"),
    op("atanh", "", "fc"),
    op("cosh", "", "fc"),
    op("sinh", "", "fc"),
    op("erf", "", "f"),
    op("not", "psu", ""),
    op("popcnt", "su", ""),
    op("count-leading-zeros", "su", ""),
    op("is-finite", "f", ""),
];

/// Of two operands.
pub const BINARY: &[Op] = &[
    op("add", "psufc", ""),
    op("subtract", "sufc", ""),
    op("multiply", "psuf", "c"),
    op("divide", "suf", "c"),
    op("remainder", "suf", ""),
    op("maximum", "psuf", ""),
    op("minimum", "psuf", ""),
    op("and", "psu", ""),
    op("or", "psu", ""),
    op("xor", "psu", ""),
    op("shift-left", "su", ""),
    op("shift-right-logical", "su", ""),
    op("shift-right-arithmetic", "su", ""),
    op("power", "su", "fc"),
    op("atan2", "", "f"),
];

/// What `compare` asks.
pub const DIRECTIONS: &[&str] = &["EQ", "NE", "LT", "LE", "GT", "GE"];

/// Whether a list of kinds has that of the type.
pub fn takes(kinds: &str, ty: PrimitiveType) -> bool {
    kinds.contains(match ty.kind() {
        ElementKind::Pred => 'p',
        ElementKind::Signed => 's',
        ElementKind::Unsigned => 'u',
        ElementKind::Float => 'f',
        ElementKind::Complex => 'c',
    })
}

/// The element type of the result of an op of one operand.
pub fn result(name: &str, ty: PrimitiveType) -> PrimitiveType {
    match name {
        "is-finite" => PrimitiveType::Pred,
        "abs" | "real" | "imag" if ty.is_complex() => ty.real_part(),
        _ => ty,
    }
}
