//! stochastic-convert: rounds away from zero with the probability of the dropped fraction.

use crate::base::Result;
use crate::hlo::BinaryOp;
use crate::hlo::Builder;
use crate::hlo::ComparisonDirection;
use crate::hlo::InstrId;
use crate::hlo::UnaryOp;
use crate::shape::PrimitiveType;

/// `(x, random bits of x's width)` to integers; other result types convert as usual.
pub fn expand(b: &mut Builder<'_>, id: InstrId) -> Result<InstrId> {
    let operands = b.module.instrs[id].operands.clone();
    let to = b.ty(id)?;
    if !to.is_integer() {
        return b.convert(operands[0], to);
    }
    let wide = if b.ty(operands[0])? == PrimitiveType::F64 {
        PrimitiveType::F64
    } else {
        PrimitiveType::F32
    };
    let (x, random) = (b.convert(operands[0], wide)?, operands[1]);
    let magnitude = b.unary(UnaryOp::Abs, x)?;
    let whole = b.unary(UnaryOp::Floor, magnitude)?;
    let fraction = b.subtract(magnitude, whole)?;
    let random_ty = b.ty(random)?;
    let scale = 2f64.powi(random_ty.bit_width() as i32);
    let threshold = b.binary_scalar(BinaryOp::Multiply, fraction, scale)?;
    let threshold = b.convert(threshold, random_ty)?;
    let up = b.compare(ComparisonDirection::Lt, random, threshold)?;
    let up = b.convert(up, wide)?;
    let rounded = b.add(whole, up)?;
    let negative = b.unary(UnaryOp::Negate, rounded)?;
    let zero = b.full_like(x, 0.0)?;
    let below = b.compare(ComparisonDirection::Lt, x, zero)?;
    let signed = b.select(below, negative, rounded)?;
    b.convert(signed, to)
}
