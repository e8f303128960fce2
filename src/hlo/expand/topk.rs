//! topk as a stable sort with positions, cut to the first `k`. Floats are in total order, as in XLA.

use crate::base::Result;
use crate::hlo::Builder;
use crate::hlo::ComparisonDirection;
use crate::hlo::ComparisonType;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// The values and their s32 positions along the last dimension.
pub fn expand(b: &mut Builder<'_>, id: InstrId) -> Result<InstrId> {
    let instr = &b.module.instrs[id];
    let Op::TopK { k, largest, .. } = instr.op else {
        return Ok(id);
    };
    let x = instr.operands[0];
    let array = b.array(x)?;
    let dim = array.rank() - 1;
    let direction = if largest {
        ComparisonDirection::Gt
    } else {
        ComparisonDirection::Lt
    };
    let ty = if array.ty.is_float() {
        ComparisonType::TotalOrder
    } else {
        ComparisonType::default_of(Some(b.shape(x)))
    };
    let place = PrimitiveType::S32;
    let scalars = [array.ty, array.ty, place, place].map(Shape::scalar);
    let name = format!("topk_order.{}", b.module.comps.len());
    let body = b.computation(name, &scalars, |b, p| {
        b.op(Op::Compare { direction, ty }, &[p[0], p[1]])
    })?;
    let places = b.iota(place, &array.dims, dim)?;
    let sort = Op::Sort {
        dim,
        body,
        is_stable: true,
    };
    let sorted = b.op(sort, &[x, places])?;
    let (values, places) = (b.gte(sorted, 0)?, b.gte(sorted, 1)?);
    let values = b.slice_dim(values, dim, 0, k)?;
    let places = b.slice_dim(places, dim, 0, k)?;
    b.tuple(&[values, places])
}
