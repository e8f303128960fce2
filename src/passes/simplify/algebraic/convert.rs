//! Identities of type changes.

use crate::hlo::Op;
use crate::passes::simplify::algebraic::Answer;
use crate::passes::simplify::algebraic::Rule;
use crate::passes::simplify::algebraic::Site;
use crate::shape::ElementKind;
use crate::shape::PrimitiveType;

/// Rules of conversions of values.
pub(super) const CONVERT: &[Rule] = &[
    Rule("convert-to-itself", to_itself),
    Rule("convert-twice", convert_twice),
];

/// Rules of conversions of bits.
pub(super) const BITCAST_CONVERT: &[Rule] = &[
    Rule("bitcast-to-itself", to_itself),
    Rule("bitcast-twice", bitcast_twice),
];

/// Rules of narrowings of precision.
pub(super) const REDUCE_PRECISION: &[Rule] = &[Rule("own-precision", own_precision)];

fn to_itself(site: &mut Site<'_, '_>) -> Answer {
    Ok(site.if_same(site.arg(0)))
}

fn convert_twice(site: &mut Site<'_, '_>) -> Answer {
    let arg = site.arg(0);
    let inner = site.def(0);
    if inner.op != Op::Convert {
        return Ok(None);
    }
    let source = inner.operands[0];
    let types = (site.array(source), site.array(arg), site.ty());
    let (Some(from), Some(middle), Some(to)) = types else {
        return Ok(None);
    };
    if !holds_all(middle.ty, from.ty) || !is_direct(from.ty, middle.ty, to) {
        return Ok(None);
    }
    if from.ty == to {
        return Ok(Some(source));
    }
    let (dims, _) = (from.dims.clone(), middle);
    site.make_array(Op::Convert, &[source], to, &dims).map(Some)
}

/// Whether converting by way of `middle` and at once give the same: integers wrap where floats
/// saturate, and reach the narrow floats by way of f32.
fn is_direct(from: PrimitiveType, middle: PrimitiveType, to: PrimitiveType) -> bool {
    if from.is_float() || !middle.is_float() {
        return true;
    }
    holds_all(to, from)
        || to.is_complex()
        || matches!(
            to,
            PrimitiveType::Pred | PrimitiveType::F32 | PrimitiveType::F64
        )
}

/// Whether every value of `inner` is a value of `outer`, so that converting loses nothing.
pub fn holds_all(outer: PrimitiveType, inner: PrimitiveType) -> bool {
    if outer == inner {
        return true;
    }
    let (wide, narrow) = (outer.bit_width(), inner.bit_width());
    match (inner.kind(), outer.kind()) {
        (ElementKind::Pred, ElementKind::Pred) => true,
        // A scale has no zero.
        (ElementKind::Pred, _) => wide >= 8 && outer != PrimitiveType::F8E8M0FNU,
        (ElementKind::Signed, ElementKind::Signed)
        | (ElementKind::Unsigned, ElementKind::Unsigned) => wide >= narrow,
        (ElementKind::Unsigned, ElementKind::Signed) => wide > narrow,
        (ElementKind::Signed | ElementKind::Unsigned, ElementKind::Float) => {
            mantissa(outer).is_some_and(|m| narrow <= m)
        }
        (ElementKind::Float, ElementKind::Float) => {
            // bf16 and f16 hold different values; every listed type is within f32 and f64.
            matches!(outer, PrimitiveType::F32 | PrimitiveType::F64) && wide > narrow
        }
        (
            ElementKind::Signed | ElementKind::Unsigned | ElementKind::Float | ElementKind::Complex,
            _,
        ) => false,
    }
}

/// Bits of integers that a float type holds exactly.
fn mantissa(ty: PrimitiveType) -> Option<usize> {
    match ty {
        PrimitiveType::F64 => Some(53),
        PrimitiveType::F32 => Some(24),
        PrimitiveType::F16 => Some(11),
        PrimitiveType::BF16 => Some(8),
        _ => None,
    }
}

fn bitcast_twice(site: &mut Site<'_, '_>) -> Answer {
    let inner = site.def(0);
    let source = inner.operands.first().copied();
    match (&inner.op, source, site.result()) {
        (Op::BitcastConvert, Some(source), Some(result)) => {
            if let Some(same) = site.if_same(source) {
                return Ok(Some(same));
            }
            let direct = site.array(source).is_some_and(|a| {
                a.dims == result.dims && a.ty.bit_width() == result.ty.bit_width()
            });
            if !direct {
                return Ok(None);
            }
            site.make_array(Op::BitcastConvert, &[source], result.ty, &result.dims)
                .map(Some)
        }
        _ => Ok(None),
    }
}

/// Reducing a type to its own precision does nothing.
fn own_precision(site: &mut Site<'_, '_>) -> Answer {
    let Op::ReducePrecision {
        exponent_bits,
        mantissa_bits,
    } = site.instr().op
    else {
        return Ok(None);
    };
    let own = match site.ty() {
        Some(PrimitiveType::F64) => (11, 52),
        Some(PrimitiveType::F32) => (8, 23),
        Some(PrimitiveType::F16) => (5, 10),
        Some(PrimitiveType::BF16) => (8, 7),
        _ => return Ok(None),
    };
    Ok(((exponent_bits, mantissa_bits) == own).then(|| site.arg(0)))
}
