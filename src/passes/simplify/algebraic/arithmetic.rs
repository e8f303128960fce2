//! Identities of elementwise arithmetic.

use crate::hlo::BinaryOp;
use crate::hlo::ComparisonDirection;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::UnaryOp;
use crate::literal::ArrayLiteral;
use crate::passes::simplify::algebraic::Answer;
use crate::passes::simplify::algebraic::Rule;
use crate::passes::simplify::algebraic::Site;
use crate::passes::simplify::splat;
use crate::shape::ArrayShape;
use crate::shape::ElementKind;
use crate::shape::PrimitiveType;

/// Rules of ops of one operand.
pub(super) const UNARY: &[Rule] = &[
    Rule("double-negation", double_negation),
    Rule("rounded-twice", rounded_twice),
    Rule("abs-of-unsigned", abs_of_unsigned),
    Rule("real-of-real", real_of_real),
    Rule("part-of-complex", part_of_complex),
    Rule("not-of-compare", not_of_compare),
];

/// Rules of ops of two operands.
pub(super) const BINARY: &[Rule] = &[
    Rule("constant-to-the-right", constant_to_the_right),
    Rule("add-zero", add_zero),
    Rule("subtract-zero", subtract_zero),
    Rule("subtract-itself", subtract_itself),
    Rule("multiply-by-one", multiply_by_one),
    Rule("multiply-by-zero", multiply_by_zero),
    Rule("divide-by-one", divide_by_one),
    Rule("divide-by-power-of-two", divide_by_power_of_two),
    Rule("and-or-itself", and_or_itself),
    Rule("and-or-neutral", and_or_neutral),
    Rule("and-or-absorbing", and_or_absorbing),
    Rule("xor-zero", xor_zero),
    Rule("xor-itself", xor_itself),
    Rule("min-max-itself", min_max_itself),
    Rule("shift-by-zero", shift_by_zero),
    Rule("complex-of-parts", complex_of_parts),
    Rule("power-zero", power_zero),
    Rule("power-one", power_one),
    Rule("power-two", power_two),
    Rule("power-three", power_three),
    Rule("power-minus-one", power_minus_one),
];

/// Rules of comparisons.
pub(super) const COMPARE: &[Rule] = &[
    Rule("compare-itself", compare_itself),
    Rule("compare-pred", compare_pred),
    Rule("compare-unsigned", compare_unsigned),
];

/// The operand of the operand, when both ops are the same.
fn inner_of_same(site: &Site<'_, '_>, ops: &[UnaryOp]) -> Option<InstrId> {
    let Op::Unary(op) = site.instr().op else {
        return None;
    };
    let inner = site.def(0);
    (ops.contains(&op) && inner.op == Op::Unary(op)).then(|| inner.operands[0])
}

fn is_unary(site: &Site<'_, '_>, op: UnaryOp) -> bool {
    site.instr().op == Op::Unary(op)
}

fn double_negation(site: &mut Site<'_, '_>) -> Answer {
    Ok(inner_of_same(site, &[UnaryOp::Not, UnaryOp::Negate]))
}

fn rounded_twice(site: &mut Site<'_, '_>) -> Answer {
    let ops = [
        UnaryOp::Abs,
        UnaryOp::Floor,
        UnaryOp::Ceil,
        UnaryOp::RoundNearestEven,
    ];
    Ok(inner_of_same(site, &ops).and_then(|_| site.if_same(site.arg(0))))
}

fn abs_of_unsigned(site: &mut Site<'_, '_>) -> Answer {
    let holds = is_unary(site, UnaryOp::Abs) && site.ty().is_some_and(PrimitiveType::is_unsigned);
    Ok(holds.then(|| site.arg(0)))
}

fn real_of_real(site: &mut Site<'_, '_>) -> Answer {
    let complex = site.array(site.arg(0)).is_some_and(|a| a.ty.is_complex());
    let holds = is_unary(site, UnaryOp::Real) && !complex;
    Ok(holds.then(|| site.arg(0)).and_then(|x| site.if_same(x)))
}

fn part_of_complex(site: &mut Site<'_, '_>) -> Answer {
    let inner = site.def(0);
    if inner.op != Op::Binary(BinaryOp::Complex) {
        return Ok(None);
    }
    Ok(match site.instr().op {
        Op::Unary(UnaryOp::Real) => Some(inner.operands[0]),
        Op::Unary(UnaryOp::Imag) => Some(inner.operands[1]),
        _ => None,
    })
}

/// `not(a < b)` is `a >= b` where there is no NaN.
fn not_of_compare(site: &mut Site<'_, '_>) -> Answer {
    if !is_unary(site, UnaryOp::Not) {
        return Ok(None);
    }
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

/// The operands, when the op is this one.
fn operands(site: &Site<'_, '_>, op: BinaryOp) -> Option<(InstrId, InstrId)> {
    (site.instr().op == Op::Binary(op)).then(|| (site.arg(0), site.arg(1)))
}

/// The kind of the elements; the op is one of two arrays.
fn kind(site: &Site<'_, '_>) -> Option<ElementKind> {
    site.ty().map(PrimitiveType::kind)
}

/// Whether the elements are integers.
fn is_whole(site: &Site<'_, '_>) -> bool {
    matches!(
        kind(site),
        Some(ElementKind::Signed | ElementKind::Unsigned)
    )
}

/// Whether the elements are bits.
fn is_bits(site: &Site<'_, '_>) -> bool {
    is_whole(site) || kind(site) == Some(ElementKind::Pred)
}

fn is_real(site: &Site<'_, '_>) -> bool {
    site.ty().is_some_and(|ty| !ty.is_complex())
}

/// The left operand of the op when the right one is that number.
fn left_of(site: &Site<'_, '_>, op: BinaryOp, number: i8) -> Option<InstrId> {
    let (a, b) = operands(site, op)?;
    site.is_number(b, number).then_some(a)
}

/// Constants of commutative ops go to the right.
fn constant_to_the_right(site: &mut Site<'_, '_>) -> Answer {
    let Op::Binary(op) = site.instr().op else {
        return Ok(None);
    };
    if !is_commutative(op) {
        return Ok(None);
    }
    let (a, b) = (site.arg(0), site.arg(1));
    let module = site.module();
    if splat::splat(module, a).is_none() || splat::splat(module, b).is_some() {
        return Ok(None);
    }
    site.make(Op::Binary(op), &[b, a]).map(Some)
}

/// Zero is neutral among integers, and minus zero among floats.
fn add_zero(site: &mut Site<'_, '_>) -> Answer {
    let Some((a, b)) = operands(site, BinaryOp::Add) else {
        return Ok(None);
    };
    let neutral =
        (is_whole(site) && site.is_number(b, 0)) || splat::is_negative_zero(site.module(), b);
    Ok(neutral.then_some(a))
}

fn subtract_zero(site: &mut Site<'_, '_>) -> Answer {
    let listed = is_whole(site) || kind(site) == Some(ElementKind::Float);
    Ok(left_of(site, BinaryOp::Subtract, 0).filter(|_| listed))
}

fn subtract_itself(site: &mut Site<'_, '_>) -> Answer {
    match operands(site, BinaryOp::Subtract) {
        Some((a, b)) if a == b && is_whole(site) => site.filled_like(0),
        _ => Ok(None),
    }
}

fn multiply_by_one(site: &mut Site<'_, '_>) -> Answer {
    Ok(left_of(site, BinaryOp::Multiply, 1).filter(|_| is_real(site)))
}

fn multiply_by_zero(site: &mut Site<'_, '_>) -> Answer {
    let zero = left_of(site, BinaryOp::Multiply, 0).filter(|_| is_whole(site));
    Ok(zero.map(|_| site.arg(1)))
}

fn divide_by_one(site: &mut Site<'_, '_>) -> Answer {
    Ok(left_of(site, BinaryOp::Divide, 1).filter(|_| is_real(site)))
}

fn is_and_or(site: &Site<'_, '_>) -> bool {
    let listed = [Op::Binary(BinaryOp::And), Op::Binary(BinaryOp::Or)];
    listed.contains(&site.instr().op) && is_bits(site)
}

fn and_or_itself(site: &mut Site<'_, '_>) -> Answer {
    let same = is_and_or(site) && site.arg(0) == site.arg(1);
    Ok(same.then(|| site.arg(0)))
}

fn and_or_neutral(site: &mut Site<'_, '_>) -> Answer {
    let b = site.arg(site.instr().operands.len() - 1);
    let neutral = match site.instr().op {
        Op::Binary(BinaryOp::And) => splat::is_all_ones(site.module(), b),
        Op::Binary(BinaryOp::Or) => site.is_number(b, 0),
        _ => false,
    };
    Ok((neutral && is_bits(site)).then(|| site.arg(0)))
}

fn and_or_absorbing(site: &mut Site<'_, '_>) -> Answer {
    let b = site.arg(site.instr().operands.len() - 1);
    let absorbing = match site.instr().op {
        Op::Binary(BinaryOp::And) => site.is_number(b, 0),
        Op::Binary(BinaryOp::Or) => splat::is_all_ones(site.module(), b),
        _ => false,
    };
    Ok((absorbing && is_bits(site)).then_some(b))
}

fn xor_zero(site: &mut Site<'_, '_>) -> Answer {
    Ok(left_of(site, BinaryOp::Xor, 0).filter(|_| is_bits(site)))
}

fn xor_itself(site: &mut Site<'_, '_>) -> Answer {
    match operands(site, BinaryOp::Xor) {
        Some((a, b)) if a == b && is_bits(site) => site.filled_like(0),
        _ => Ok(None),
    }
}

fn min_max_itself(site: &mut Site<'_, '_>) -> Answer {
    let found = operands(site, BinaryOp::Maximum).or_else(|| operands(site, BinaryOp::Minimum));
    Ok(found.filter(|(a, b)| a == b).map(|(a, _)| a))
}

fn shift_by_zero(site: &mut Site<'_, '_>) -> Answer {
    let shifts = [
        BinaryOp::ShiftLeft,
        BinaryOp::ShiftRightArithmetic,
        BinaryOp::ShiftRightLogical,
    ];
    Ok(shifts.iter().find_map(|&op| left_of(site, op, 0)))
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
fn complex_of_parts(site: &mut Site<'_, '_>) -> Answer {
    let Some((a, b)) = operands(site, BinaryOp::Complex) else {
        return Ok(None);
    };
    let (re, im) = (site.edit.instr(a), site.edit.instr(b));
    let parts = re.op == Op::Unary(UnaryOp::Real)
        && im.op == Op::Unary(UnaryOp::Imag)
        && re.operands == im.operands;
    let whole = parts.then(|| re.operands[0]);
    Ok(whole.filter(|&x| site.same_shape(x, site.id)))
}

/// A power of two has an exact reciprocal, so the quotient is a product.
fn divide_by_power_of_two(site: &mut Site<'_, '_>) -> Answer {
    let Some((a, b)) = operands(site, BinaryOp::Divide) else {
        return Ok(None);
    };
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

/// The base, when the exponent is that number and the elements are real.
fn base_of(site: &Site<'_, '_>, exponent: i8) -> Option<InstrId> {
    left_of(site, BinaryOp::Power, exponent).filter(|_| is_real(site))
}

fn power_zero(site: &mut Site<'_, '_>) -> Answer {
    match left_of(site, BinaryOp::Power, 0) {
        Some(_) => site.filled_like(1),
        None => Ok(None),
    }
}

fn power_one(site: &mut Site<'_, '_>) -> Answer {
    Ok(base_of(site, 1))
}

fn power_two(site: &mut Site<'_, '_>) -> Answer {
    match base_of(site, 2) {
        Some(a) => site.make(Op::Binary(BinaryOp::Multiply), &[a, a]).map(Some),
        None => Ok(None),
    }
}

/// Two roundings of a narrow type would be seen.
fn power_three(site: &mut Site<'_, '_>) -> Answer {
    let wide = site
        .ty()
        .is_some_and(|t| !t.is_float() || t.bit_width() >= 32);
    let Some(a) = base_of(site, 3).filter(|_| wide) else {
        return Ok(None);
    };
    let multiply = Op::Binary(BinaryOp::Multiply);
    let square = site.make(multiply.clone(), &[a, a])?;
    site.make(multiply, &[square, a]).map(Some)
}

fn power_minus_one(site: &mut Site<'_, '_>) -> Answer {
    let is_float = kind(site) == Some(ElementKind::Float);
    let Some(a) = base_of(site, -1).filter(|_| is_float) else {
        return Ok(None);
    };
    let Some(one) = site.filled_like(1)? else {
        return Ok(None);
    };
    site.make(Op::Binary(BinaryOp::Divide), &[one, a]).map(Some)
}

/// Direction, operands and element type of a comparison.
fn compared(site: &Site<'_, '_>) -> Option<(ComparisonDirection, InstrId, InstrId, PrimitiveType)> {
    let Op::Compare { direction, .. } = site.instr().op else {
        return None;
    };
    let (a, b) = (site.arg(0), site.arg(1));
    Some((direction, a, b, site.array(a)?.ty))
}

fn compare_itself(site: &mut Site<'_, '_>) -> Answer {
    let Some((direction, a, b, ty)) = compared(site) else {
        return Ok(None);
    };
    if a != b || ty.is_float() || ty.is_complex() {
        return Ok(None);
    }
    let holds = matches!(
        direction,
        ComparisonDirection::Eq | ComparisonDirection::Ge | ComparisonDirection::Le
    );
    site.filled_like(i8::from(holds))
}

/// Whether a pred is true, or is not false, is that pred.
fn compare_pred(site: &mut Site<'_, '_>) -> Answer {
    let Some((direction, a, b, PrimitiveType::Pred)) = compared(site) else {
        return Ok(None);
    };
    let keeps = match direction {
        ComparisonDirection::Eq => site.is_number(b, 1),
        ComparisonDirection::Ne => site.is_number(b, 0),
        ComparisonDirection::Ge
        | ComparisonDirection::Gt
        | ComparisonDirection::Le
        | ComparisonDirection::Lt => false,
    };
    Ok(keeps.then_some(a))
}

/// Nothing unsigned is below zero.
fn compare_unsigned(site: &mut Site<'_, '_>) -> Answer {
    match compared(site) {
        Some((direction, _, b, ty)) if ty.is_unsigned() && site.is_number(b, 0) => {
            match direction {
                ComparisonDirection::Ge => site.filled_like(1),
                ComparisonDirection::Lt => site.filled_like(0),
                ComparisonDirection::Eq
                | ComparisonDirection::Ne
                | ComparisonDirection::Gt
                | ComparisonDirection::Le => Ok(None),
            }
        }
        _ => Ok(None),
    }
}
