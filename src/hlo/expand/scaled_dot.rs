//! scaled-dot: each operand times its scale, stretched over the scale's blocks, in f32; then a dot.

use crate::base::Result;
use crate::hlo::Builder;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::shape::Dims;
use crate::shape::PrimitiveType;

/// `(lhs, rhs, lhs scale, rhs scale)` to the dot of the scaled operands.
pub fn expand(b: &mut Builder<'_>, id: InstrId) -> Result<InstrId> {
    let instr = &b.module.instrs[id];
    let Op::ScaledDot { dims, precision } = instr.op.clone() else {
        return Ok(id);
    };
    let operands = instr.operands.clone();
    let ty = b.ty(id)?;
    let lhs = scaled(b, operands[0], operands[2])?;
    let rhs = scaled(b, operands[1], operands[3])?;
    b.dot(lhs, rhs, dims, precision, ty)
}

/// `x * scale` as f32. A scalar scale stands for no scale.
fn scaled(b: &mut Builder<'_>, x: InstrId, scale: InstrId) -> Result<InstrId> {
    let wide = b.convert(x, PrimitiveType::F32)?;
    let (sizes, blocks) = (b.dims(x)?, b.dims(scale)?);
    if blocks.len() != sizes.len() {
        return Ok(wide);
    }
    let scale = b.convert(scale, PrimitiveType::F32)?;
    if blocks == sizes {
        return b.multiply(wide, scale);
    }
    // Dimension d of the scale becomes (blocks, block size), which merge into the operand's.
    let mut split = Dims::new();
    let mut mapping = Vec::new();
    for (&size, &count) in sizes.iter().zip(&blocks) {
        mapping.push(split.len());
        split.push(count);
        split.push(size.checked_div(count).unwrap_or(1));
    }
    let stretched = b.broadcast(scale, &mapping, &split)?;
    let stretched = b.reshape(stretched, &sizes)?;
    b.multiply(wide, stretched)
}
