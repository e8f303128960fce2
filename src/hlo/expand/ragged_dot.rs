//! ragged-dot as dots over masked operands: each group sees its own rows of the ragged dimension and
//! zeros elsewhere.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::hlo::BinaryOp;
use crate::hlo::Builder;
use crate::hlo::ComparisonDirection;
use crate::hlo::DotDims;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::PadDim;
use crate::hlo::PrecisionConfig;
use crate::hlo::WindowDim;
use crate::shape::Dims;
use crate::shape::PrimitiveType;

const S32: PrimitiveType = PrimitiveType::S32;

/// `(lhs, rhs, group sizes)` to the dot of each group.
pub fn expand(b: &mut Builder<'_>, id: InstrId) -> Result<InstrId> {
    let instr = &b.module.instrs[id];
    let Op::RaggedDot {
        dims,
        lhs_ragged,
        rhs_group,
        precision,
    } = instr.op.clone()
    else {
        return Ok(id);
    };
    let [lhs, rhs, sizes] = [instr.operands[0], instr.operands[1], instr.operands[2]];
    let ty = b.ty(id)?;
    let ragged = lhs_ragged.first().copied().unwrap_or(0);
    if dims.lhs_batch.contains(&ragged) {
        return b.dot(lhs, rhs, dims, precision, ty);
    }
    if b.dims(sizes)?.len() != 1 {
        return Err(Diagnostic::unsupported(
            codes::COMPILE_UNSUPPORTED,
            "`ragged-dot` with group sizes of more than one dimension is not supported",
        ));
    }
    let masked = masked(b, lhs, sizes, ragged)?;
    let shifted = |list: &Dims| list.iter().map(|d| d + 1).collect::<Dims>();
    if dims.lhs_contracting.contains(&ragged) {
        let dims = DotDims {
            lhs_contracting: shifted(&dims.lhs_contracting),
            lhs_batch: shifted(&dims.lhs_batch),
            ..dims
        };
        return group_major(b, masked, rhs, dims, precision, ty);
    }
    // Sum over groups: the group dimension is one more contracted dimension.
    let mut all = DotDims {
        lhs_contracting: shifted(&dims.lhs_contracting),
        lhs_batch: shifted(&dims.lhs_batch),
        ..dims
    };
    all.lhs_contracting.push(0);
    all.rhs_contracting.extend_from_slice(&rhs_group);
    b.dot(masked, rhs, all, precision, ty)
}

/// The dot has its batch dimensions before the group dimension; the result wants them after.
fn group_major(
    b: &mut Builder<'_>,
    lhs: InstrId,
    rhs: InstrId,
    dims: DotDims,
    precision: PrecisionConfig,
    ty: PrimitiveType,
) -> Result<InstrId> {
    let batch = dims.lhs_batch.len();
    let dot = b.dot(lhs, rhs, dims, precision, ty)?;
    let rank = b.dims(dot)?.len();
    let mut order = vec![batch];
    order.extend((0..rank).filter(|&d| d != batch));
    b.transpose(dot, &order)
}

/// `[groups, lhs...]`: lhs where the position in the ragged dimension belongs to the group, else zero.
fn masked(b: &mut Builder<'_>, lhs: InstrId, sizes: InstrId, ragged: usize) -> Result<InstrId> {
    let array = b.array(lhs)?;
    let groups = b.dims(sizes)?[0];
    let sizes = b.convert(sizes, S32)?;
    let ends = running_sum(b, sizes, groups)?;
    let starts = b.subtract(ends, sizes)?;
    let mut dims: Dims = array.dims.clone();
    dims.insert(0, groups);
    let row = b.iota(S32, &dims, ragged + 1)?;
    let start = b.broadcast(starts, &[0], &dims)?;
    let end = b.broadcast(ends, &[0], &dims)?;
    let after = b.compare(ComparisonDirection::Ge, row, start)?;
    let before = b.compare(ComparisonDirection::Lt, row, end)?;
    let inside = b.binary(BinaryOp::And, after, before)?;
    let mapping: Vec<usize> = (1..dims.len()).collect();
    let spread = b.broadcast(lhs, &mapping, &dims)?;
    let zero = b.full_like(spread, 0.0)?;
    b.select(inside, spread, zero)
}

/// Each element plus all before it.
fn running_sum(b: &mut Builder<'_>, x: InstrId, count: usize) -> Result<InstrId> {
    if count <= 1 {
        return Ok(x);
    }
    let zero = b.constant_int(S32, 0);
    let low = count as i64 - 1;
    let padded = b.pad(
        x,
        zero,
        &[PadDim {
            low,
            high: 0,
            interior: 0,
        }],
    )?;
    let window = WindowDim {
        size: count,
        ..WindowDim::default()
    };
    b.reduce_window(padded, zero, [window].into_iter().collect(), BinaryOp::Add)
}
