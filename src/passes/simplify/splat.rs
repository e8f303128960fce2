//! Constants whose elements are all one value, seen through broadcasts and reshapes.

use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::shape::ArrayShape;
use crate::shape::ElementKind;
use crate::shape::PrimitiveType;

/// The one value of every element of `id`, as a rank-0 literal.
pub fn splat(module: &Module, id: InstrId) -> Option<ArrayLiteral> {
    let mut instr = module.instr(id);
    while matches!(
        instr.op,
        Op::Broadcast { .. } | Op::Reshape { .. } | Op::Transpose { .. } | Op::Bitcast
    ) {
        if matches!(instr.op, Op::Bitcast) && element_type(instr) != operand_type(module, instr) {
            return None;
        }
        instr = module.instr(instr.operands[0]);
    }
    let Op::Constant(Literal::Array(array)) = &instr.op else {
        return None;
    };
    splat_of(array)
}

fn element_type(instr: &Instr) -> Option<PrimitiveType> {
    instr.shape.as_array().map(|a| a.ty)
}

fn operand_type(module: &Module, instr: &Instr) -> Option<PrimitiveType> {
    element_type(module.instr(instr.operands[0]))
}

/// The one value of every element of the array, as a rank-0 literal.
pub fn splat_of(array: &ArrayLiteral) -> Option<ArrayLiteral> {
    if array.is_empty() {
        return None;
    }
    let first = array.element(0);
    let bytes = array.bytes();
    let width = first.len();
    // Equal to itself shifted by one element: all elements are equal.
    if bytes[width..] != bytes[..bytes.len() - width] {
        return None;
    }
    Some(ArrayLiteral::new(
        ArrayShape::scalar(array.ty()),
        first.to_vec(),
    ))
}

/// A small whole number as an element of that type, when the type is common enough to be listed.
pub fn number(ty: PrimitiveType, value: i8) -> Option<ArrayLiteral> {
    let f = f64::from(value);
    let bytes = match ty.kind() {
        ElementKind::Pred => vec![u8::from(value != 0)],
        ElementKind::Signed | ElementKind::Unsigned => {
            let bits = ty.bit_width();
            let low = if bits < 8 && ty.is_unsigned() {
                value.to_le_bytes()[0] & ((1u8 << bits) - 1)
            } else {
                value.to_le_bytes()[0]
            };
            let fill = if value < 0 { 0xff } else { 0 };
            let mut bytes = vec![fill; ty.byte_width()];
            bytes[0] = low;
            bytes
        }
        ElementKind::Float => float_bytes(ty, f)?,
        ElementKind::Complex => {
            let mut bytes = float_bytes(ty.real_part(), f)?;
            bytes.extend(float_bytes(ty.real_part(), 0.0)?);
            bytes
        }
    };
    Some(ArrayLiteral::new(ArrayShape::scalar(ty), bytes))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "only small whole numbers come here, and they are exact in f32"
)]
fn float_bytes(ty: PrimitiveType, value: f64) -> Option<Vec<u8>> {
    match ty {
        PrimitiveType::F64 => Some(value.to_le_bytes().to_vec()),
        PrimitiveType::F32 => Some((value as f32).to_le_bytes().to_vec()),
        PrimitiveType::F16 => Some(half::f16::from_f64(value).to_le_bytes().to_vec()),
        PrimitiveType::BF16 => Some(half::bf16::from_f64(value).to_le_bytes().to_vec()),
        _ => None,
    }
}

/// Whether every element is that number, bit for bit (so `0` is not `-0`).
pub fn is_number(module: &Module, id: InstrId, value: i8) -> bool {
    match splat(module, id) {
        Some(scalar) => number(scalar.ty(), value).is_some_and(|n| n.bytes() == scalar.bytes()),
        None => false,
    }
}

/// Whether every element is the float `-0`.
pub fn is_negative_zero(module: &Module, id: InstrId) -> bool {
    splat(module, id).is_some_and(|scalar| {
        scalar.ty().is_float()
            && float_bytes(scalar.ty(), -0.0).is_some_and(|b| b == scalar.bytes())
    })
}

/// Whether every element is an integer (or pred) with all bits set.
pub fn is_all_ones(module: &Module, id: InstrId) -> bool {
    splat(module, id).is_some_and(|scalar| match scalar.ty().kind() {
        ElementKind::Pred => scalar.bytes() == [1],
        ElementKind::Signed | ElementKind::Unsigned => {
            number(scalar.ty(), -1).is_some_and(|n| n.bytes() == scalar.bytes())
        }
        ElementKind::Float | ElementKind::Complex => false,
    })
}

/// The value of a splat of one of the wide float types.
pub fn float_value(module: &Module, id: InstrId) -> Option<f64> {
    let scalar = splat(module, id)?;
    let bytes = scalar.bytes();
    match scalar.ty() {
        PrimitiveType::F64 => Some(f64::from_le_bytes(bytes.try_into().ok()?)),
        PrimitiveType::F32 => Some(f64::from(f32::from_le_bytes(bytes.try_into().ok()?))),
        PrimitiveType::F16 => Some(half::f16::from_le_bytes(bytes.try_into().ok()?).to_f64()),
        PrimitiveType::BF16 => Some(half::bf16::from_le_bytes(bytes.try_into().ok()?).to_f64()),
        _ => None,
    }
}
