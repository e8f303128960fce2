//! CHLO: the client's ops, most of which are formulas over StableHLO.
//!
//! XLA has opcodes for `erf`, `tan`, `top_k`, `mulhi`, `ragged_dot` and `scan`; the others are
//! decomposed here as StableHLO decomposes them, so that users get the accuracy they get from XLA.

mod formula;
mod inverse;
mod special;
mod tables;

use crate::base::Result;
use crate::front::stablehlo::chlo::formula::Formula;
use crate::front::stablehlo::chlo::formula::Term;
use crate::hlo::Builder;
use crate::hlo::InstrId;
use crate::hlo::UnaryOp;
use crate::literal::number;
use crate::shape::PrimitiveType;

/// The finite extremes of a float type.
#[derive(Clone, Copy, Debug)]
struct FloatLimits {
    largest: f64,
    smallest_normal: f64,
    smallest: f64,
}

/// The limits of a type; those of its parts for a complex type.
fn float_limits(ty: PrimitiveType) -> FloatLimits {
    match ty.real_part() {
        PrimitiveType::F64 => FloatLimits {
            largest: f64::MAX,
            smallest_normal: f64::MIN_POSITIVE,
            smallest: f64::from_bits(1),
        },
        PrimitiveType::F32 => FloatLimits {
            largest: f32::MAX.into(),
            smallest_normal: f32::MIN_POSITIVE.into(),
            smallest: f32::from_bits(1).into(),
        },
        PrimitiveType::BF16 => FloatLimits {
            largest: f32::from_bits(0x7f7f_0000).into(),
            smallest_normal: f32::MIN_POSITIVE.into(),
            smallest: f32::from_bits(1 << 16).into(),
        },
        PrimitiveType::F16 => FloatLimits {
            largest: 65504.0,
            smallest_normal: 2f64.powi(-14),
            smallest: 2f64.powi(-24),
        },
        narrow => limits_of_all(narrow),
    }
}

/// The limits of a type with few numbers, found among all of them.
///
/// Other types have none; the ops of a formula refuse them.
fn limits_of_all(ty: PrimitiveType) -> FloatLimits {
    if !ty.is_float() {
        return FloatLimits {
            largest: 0.0,
            smallest_normal: 0.0,
            smallest: 0.0,
        };
    }
    let all = (0..1u64 << ty.bit_width().min(8)).map(|bits| number::float_to_f64(ty, bits));
    let positive: Vec<f64> = all.filter(|x| x.is_finite() && *x > 0.0).collect();
    let smallest = positive.iter().copied().fold(f64::INFINITY, f64::min);
    FloatLimits {
        largest: positive.iter().copied().fold(0.0, f64::max),
        smallest_normal: smallest,
        smallest,
    }
}

/// What a decomposition works in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Precision {
    /// The type of the operands.
    Same,
    /// f32, or the type of the operands when that is wider.
    AtLeastF32,
}

type Unary = for<'f> fn(Term<'f>) -> Term<'f>;
type Binary = for<'f> fn(Term<'f>, Term<'f>) -> Term<'f>;

fn conj(x: Term<'_>) -> Term<'_> {
    if x.ty().is_complex() {
        x.real().complex(-x.imag())
    } else {
        x
    }
}

fn is_pos_inf(x: Term<'_>) -> Term<'_> {
    x.eq(x.like(f64::INFINITY))
}

fn is_neg_inf(x: Term<'_>) -> Term<'_> {
    x.eq(x.like(f64::NEG_INFINITY))
}

fn is_inf(x: Term<'_>) -> Term<'_> {
    is_pos_inf(x.abs())
}

fn tan(x: Term<'_>) -> Term<'_> {
    x.unary(UnaryOp::Tan)
}

fn erf(x: Term<'_>) -> Term<'_> {
    x.unary(UnaryOp::Erf)
}

/// The formula of a CHLO op of one operand; the name is without `chlo.`.
fn unary_formula(name: &str) -> Option<(Unary, Precision)> {
    let same: Unary = match name {
        "acos" => inverse::acos,
        "acosh" => inverse::acosh,
        "asin" => inverse::asin,
        "asinh" => inverse::asinh,
        "atan" => inverse::atan,
        "atanh" => inverse::atanh,
        "_asin_acos_kernel" => inverse::arc_kernel,
        "conj" => conj,
        "erf" => erf,
        "is_inf" => is_inf,
        "is_neg_inf" => is_neg_inf,
        "is_pos_inf" => is_pos_inf,
        "square" => inverse::square,
        "tan" => tan,
        _ => {
            let wide: Unary = match name {
                "bessel_i1e" => special::bessel_i1e,
                "cosh" => special::cosh,
                "digamma" => special::digamma,
                "erf_inv" => special::erf_inv,
                "erfc" => special::erfc,
                "lgamma" => special::lgamma,
                "sinh" => special::sinh,
                _ => return None,
            };
            return Some((wide, Precision::AtLeastF32));
        }
    };
    Some((same, Precision::Same))
}

/// The formula of a CHLO op of two operands; the name is without `chlo.`.
fn binary_formula(name: &str) -> Option<(Binary, Precision)> {
    match name {
        "next_after" => Some((next_after, Precision::Same)),
        "polygamma" => Some((special::polygamma, Precision::AtLeastF32)),
        "zeta" => Some((special::zeta, Precision::AtLeastF32)),
        _ => None,
    }
}

fn next_after<'f>(x: Term<'f>, y: Term<'f>) -> Term<'f> {
    let bits = match x.ty().bit_width() {
        16 => PrimitiveType::S16,
        32 => PrimitiveType::S32,
        64 => PrimitiveType::S64,
        _ => PrimitiveType::S8,
    };
    special::next_after(x, y, bits)
}

/// Whether the formulas know the op; the name is without `chlo.`.
pub fn is_formula(name: &str) -> bool {
    unary_formula(name).is_some() || binary_formula(name).is_some()
}

/// Builds a CHLO op that is a formula over arrays of one size; nothing for other ops.
///
/// # Errors
/// When an op of the formula is not defined for the element type.
pub fn build(b: &mut Builder<'_>, name: &str, operands: &[InstrId]) -> Result<Option<InstrId>> {
    let formula = Formula::default();
    let (result, first) = match *operands {
        [x] => {
            let Some((apply, precision)) = unary_formula(name) else {
                return Ok(None);
            };
            let given = formula.given(b, x)?;
            let value = apply(widened(given, precision));
            (narrowed(value, given, precision), x)
        }
        [x, y] => {
            let Some((apply, precision)) = binary_formula(name) else {
                return Ok(None);
            };
            let (given, other) = (formula.given(b, x)?, formula.given(b, y)?);
            let value = apply(widened(given, precision), widened(other, precision));
            (narrowed(value, given, precision), x)
        }
        _ => return Ok(None),
    };
    let dims = b.dims(first)?;
    formula.build(b, &dims, result).map(Some)
}

/// Builds a CHLO op from ops of StableHLO alone, where XLA has an op of its own: for programs that
/// others read. Nothing for ops without a formula.
///
/// # Errors
/// Those of [`build`].
pub fn build_plain(
    b: &mut Builder<'_>,
    name: &str,
    operands: &[InstrId],
) -> Result<Option<InstrId>> {
    let formula = Formula::default();
    let result = match (name, operands) {
        ("erf", &[x]) => {
            let given = formula.given(b, x)?;
            let value = special::erf(widened(given, Precision::AtLeastF32));
            narrowed(value, given, Precision::AtLeastF32)
        }
        ("mulhi", &[x, y]) => {
            let (x, y) = (formula.given(b, x)?, formula.given(b, y)?);
            special::mul_high(x, y)
        }
        _ => return build(b, name, operands),
    };
    let dims = b.dims(operands[0])?;
    formula.build(b, &dims, result).map(Some)
}

/// Floats narrower than f32 as f32, where the formula asks for it.
fn widened(x: Term<'_>, precision: Precision) -> Term<'_> {
    let narrow = x.ty().is_float() && x.ty().bit_width() < 32;
    if narrow && precision == Precision::AtLeastF32 {
        x.convert(PrimitiveType::F32)
    } else {
        x
    }
}

fn narrowed<'f>(value: Term<'f>, given: Term<'f>, precision: Precision) -> Term<'f> {
    match precision {
        Precision::Same => value,
        Precision::AtLeastF32 => value.convert(given.ty()),
    }
}
