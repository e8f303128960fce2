//! Identities of elementwise arithmetic.

use crate::hlo::BinaryOp;
use crate::hlo::ComparisonDirection;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::UnaryOp;
use crate::literal::ArrayLiteral;
use crate::passes::simplify::algebraic::Answer;
use crate::passes::simplify::algebraic::Site;
use crate::passes::simplify::splat;
use crate::shape::ArrayShape;
use crate::shape::ElementKind;
use crate::shape::PrimitiveType;

pub(super) fn unary(site: &mut Site<'_, '_>, op: UnaryOp) -> Answer {
    let inner = site.def(0);
    let same = matches!(inner.op, Op::Unary(i) if i == op);
    let args = inner.operands.clone();
    match op {
        UnaryOp::Not | UnaryOp::Negate if same => Ok(Some(args[0])),
        UnaryOp::Abs | UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::RoundNearestEven if same => {
            Ok(site.if_same(site.arg(0)))
        }
        UnaryOp::Abs if site.ty().is_some_and(PrimitiveType::is_unsigned) => Ok(Some(site.arg(0))),
        UnaryOp::Real if !site.array(site.arg(0)).is_some_and(|a| a.ty.is_complex()) => {
            Ok(site.if_same(site.arg(0)))
        }
        UnaryOp::Real | UnaryOp::Imag if matches!(inner.op, Op::Binary(BinaryOp::Complex)) => {
            Ok(Some(args[usize::from(op == UnaryOp::Imag)]))
        }
        UnaryOp::Not => negated_compare(site),
        _ => Ok(None),
    }
}

/// `not(a < b)` is `a >= b` where there is no NaN.
fn negated_compare(site: &mut Site<'_, '_>) -> Answer {
    let inner = site.def(0);
    let Op::Compare { direction, ty } = inner.op else {
        return Ok(None);
    };
    let operands = inner.operands.clone();
    let total = site.array(operands[0]).is_some_and(|a| {
        matches!(
            a.ty.kind(),
            ElementKind::Signed | ElementKind::Unsigned | ElementKind::Pred
        )
    });
    let direction = match direction {
        ComparisonDirection::Eq => ComparisonDirection::Ne,
        ComparisonDirection::Ne => ComparisonDirection::Eq,
        ComparisonDirection::Ge if total => ComparisonDirection::Lt,
        ComparisonDirection::Gt if total => ComparisonDirection::Le,
        ComparisonDirection::Le if total => ComparisonDirection::Gt,
        ComparisonDirection::Lt if total => ComparisonDirection::Ge,
        ComparisonDirection::Ge
        | ComparisonDirection::Gt
        | ComparisonDirection::Le
        | ComparisonDirection::Lt => return Ok(None),
    };
    site.make(Op::Compare { direction, ty }, &operands)
        .map(Some)
}

pub(super) fn binary(site: &mut Site<'_, '_>, op: BinaryOp) -> Answer {
    let Some(ty) = site.ty() else {
        return Ok(None);
    };
    let (a, b) = (site.arg(0), site.arg(1));
    // Constants of commutative ops go to the right.
    if is_commutative(op)
        && splat::splat(site.module(), a).is_some()
        && splat::splat(site.module(), b).is_none()
    {
        return site.make(Op::Binary(op), &[b, a]).map(Some);
    }
    let whole = matches!(ty.kind(), ElementKind::Signed | ElementKind::Unsigned);
    let bits = whole || ty == PrimitiveType::Pred;
    let module = site.module();
    match op {
        BinaryOp::Add if whole && site.is_number(b, 0) => Ok(Some(a)),
        BinaryOp::Add if splat::is_negative_zero(module, b) => Ok(Some(a)),
        BinaryOp::Subtract if (whole || ty.is_float()) && site.is_number(b, 0) => Ok(Some(a)),
        BinaryOp::Subtract if whole && a == b => site.filled_like(0),
        BinaryOp::Multiply if !ty.is_complex() && site.is_number(b, 1) => Ok(Some(a)),
        BinaryOp::Multiply if whole && site.is_number(b, 0) => Ok(Some(b)),
        BinaryOp::Divide if !ty.is_complex() && site.is_number(b, 1) => Ok(Some(a)),
        BinaryOp::Divide if ty.is_float() => divide_by_power_of_two(site, a, b),
        BinaryOp::And if bits && (a == b || splat::is_all_ones(module, b)) => Ok(Some(a)),
        BinaryOp::And if bits && site.is_number(b, 0) => Ok(Some(b)),
        BinaryOp::Or if bits && (a == b || site.is_number(b, 0)) => Ok(Some(a)),
        BinaryOp::Or if bits && splat::is_all_ones(module, b) => Ok(Some(b)),
        BinaryOp::Xor if bits && site.is_number(b, 0) => Ok(Some(a)),
        BinaryOp::Xor if bits && a == b => site.filled_like(0),
        BinaryOp::Maximum | BinaryOp::Minimum if a == b => Ok(Some(a)),
        BinaryOp::ShiftLeft | BinaryOp::ShiftRightArithmetic | BinaryOp::ShiftRightLogical
            if site.is_number(b, 0) =>
        {
            Ok(Some(a))
        }
        BinaryOp::Complex => Ok(whole_complex(site, a, b)),
        BinaryOp::Power => power(site, a, b),
        _ => Ok(None),
    }
}

/// Whether the operands may be swapped.
fn is_commutative(op: BinaryOp) -> bool {
    matches!(
        op,
        BinaryOp::Add
            | BinaryOp::Multiply
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Maximum
            | BinaryOp::Minimum
    )
}

/// `complex(real(x), imag(x))` is `x`.
fn whole_complex(site: &Site<'_, '_>, a: InstrId, b: InstrId) -> Option<InstrId> {
    let (re, im) = (site.edit.instr(a), site.edit.instr(b));
    let parts = re.op == Op::Unary(UnaryOp::Real)
        && im.op == Op::Unary(UnaryOp::Imag)
        && re.operands == im.operands;
    parts
        .then(|| re.operands[0])
        .filter(|&x| site.same_shape(x, site.id))
}

/// A power of two has an exact reciprocal, so the quotient is a product.
fn divide_by_power_of_two(site: &mut Site<'_, '_>, a: InstrId, b: InstrId) -> Answer {
    let (Some(value), Some(shape)) = (splat::float_value(site.module(), b), site.result()) else {
        return Ok(None);
    };
    // Exponents that are normal, and whose negatives are, in f16 too.
    let fits = value.abs() >= 2f64.powi(-14)
        && value.abs() <= 2f64.powi(14)
        && value.to_bits().trailing_zeros() >= 52;
    if !fits {
        return Ok(None);
    }
    let Some(reciprocal) = float_literal(shape.ty, 1.0 / value) else {
        return Ok(None);
    };
    let reciprocal = site.filled(reciprocal, &shape.dims)?;
    site.make(Op::Binary(BinaryOp::Multiply), &[a, reciprocal])
        .map(Some)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "powers of two of small exponent are exact in every type here"
)]
fn float_literal(ty: PrimitiveType, value: f64) -> Option<ArrayLiteral> {
    let bytes = match ty {
        PrimitiveType::F64 => value.to_le_bytes().to_vec(),
        PrimitiveType::F32 => (value as f32).to_le_bytes().to_vec(),
        PrimitiveType::F16 => half::f16::from_f64(value).to_le_bytes().to_vec(),
        PrimitiveType::BF16 => half::bf16::from_f64(value).to_le_bytes().to_vec(),
        _ => return None,
    };
    Some(ArrayLiteral::new(ArrayShape::scalar(ty), bytes))
}

/// Powers with small whole exponents, as upstream expands them.
fn power(site: &mut Site<'_, '_>, a: InstrId, b: InstrId) -> Answer {
    let multiply = Op::Binary(BinaryOp::Multiply);
    if site.is_number(b, 1) {
        return Ok(Some(a));
    }
    if site.is_number(b, 0) {
        return site.filled_like(1);
    }
    if site.ty().is_some_and(|t| t.is_complex()) {
        return Ok(None);
    }
    if site.is_number(b, 2) {
        return site.make(multiply, &[a, a]).map(Some);
    }
    // Two roundings of a narrow type would be seen.
    let wide = site
        .ty()
        .is_some_and(|t| !t.is_float() || t.bit_width() >= 32);
    if wide && site.is_number(b, 3) {
        let square = site.make(multiply.clone(), &[a, a])?;
        return site.make(multiply, &[square, a]).map(Some);
    }
    if site.is_number(b, -1) && site.ty().is_some_and(PrimitiveType::is_float) {
        let Some(one) = site.filled_like(1)? else {
            return Ok(None);
        };
        return site.make(Op::Binary(BinaryOp::Divide), &[one, a]).map(Some);
    }
    Ok(None)
}

pub(super) fn compare(site: &mut Site<'_, '_>, direction: ComparisonDirection) -> Answer {
    let (a, b) = (site.arg(0), site.arg(1));
    let Some(ty) = site.array(a).map(|s| s.ty) else {
        return Ok(None);
    };
    let whole = !ty.is_float() && !ty.is_complex();
    if whole && a == b {
        let holds = matches!(
            direction,
            ComparisonDirection::Eq | ComparisonDirection::Ge | ComparisonDirection::Le
        );
        return site.filled_like(i8::from(holds));
    }
    if ty == PrimitiveType::Pred {
        let keeps = match direction {
            ComparisonDirection::Eq => site.is_number(b, 1),
            ComparisonDirection::Ne => site.is_number(b, 0),
            ComparisonDirection::Ge
            | ComparisonDirection::Gt
            | ComparisonDirection::Le
            | ComparisonDirection::Lt => false,
        };
        return Ok(keeps.then_some(a));
    }
    if ty.is_unsigned() && site.is_number(b, 0) {
        return match direction {
            ComparisonDirection::Ge => site.filled_like(1),
            ComparisonDirection::Lt => site.filled_like(0),
            ComparisonDirection::Eq
            | ComparisonDirection::Ne
            | ComparisonDirection::Gt
            | ComparisonDirection::Le => Ok(None),
        };
    }
    Ok(None)
}
