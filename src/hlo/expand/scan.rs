//! scan as a `while` that slices its inputs and writes slices of its outputs.

use std::ops::Range;

use crate::base::Result;
use crate::hlo::BinaryOp;
use crate::hlo::Builder;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::rewrite;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// `(inputs..., carries...)` to `(outputs..., carries...)`.
pub fn expand(b: &mut Builder<'_>, id: InstrId) -> Result<InstrId> {
    let instr = &b.module.instrs[id];
    let Op::Scan {
        dim,
        body,
        num_carries,
        is_reverse,
        ..
    } = instr.op
    else {
        return Ok(id);
    };
    let operands = instr.operands.clone();
    let shape = instr.shape.clone();
    let inputs = operands.len() - num_carries;
    let count = b.dims(operands[0])?[dim];
    let single = [shape.clone()];
    let results = shape.as_tuple().unwrap_or(&single).to_vec();
    let outputs: Vec<ArrayShape> = results[..results.len() - num_carries]
        .iter()
        .filter_map(|s| s.as_array().cloned())
        .collect();
    // The state: inputs, carries, outputs.
    let mut state = operands.to_vec();
    for output in &outputs {
        state.push(b.full(output.ty, &output.dims, 0.0)?);
    }
    // Nothing can be sliced off an input without elements, even where nothing runs.
    if count == 0 {
        let carries = inputs..operands.len();
        return results_of(b, &state, carries, shape.is_tuple());
    }
    let end = b.counted_loop("scan", count, &state, |b, index, state| {
        let at = if is_reverse {
            let last = b.constant_int(PrimitiveType::S32, count as i128 - 1);
            b.binary(BinaryOp::Subtract, last, index)?
        } else {
            index
        };
        let zero = b.constant_int(PrimitiveType::S32, 0);
        let mut args = Vec::new();
        for &input in &state[..inputs] {
            let starts = starts(b, input, dim, at, zero)?;
            let mut sizes = b.dims(input)?;
            sizes[dim] = 1;
            let slice = b.dynamic_slice(input, &starts, &sizes)?;
            let mut dims: Dims = sizes;
            dims.remove(dim);
            args.push(b.reshape(slice, &dims)?);
        }
        args.extend_from_slice(&state[inputs..operands.len()]);
        let comp = b.comp;
        let result = rewrite::clone_into(b.module, body, comp, &args);
        let parts = match b.shape(result) {
            Shape::Tuple(_) => b.elements(result)?,
            Shape::Array(_) | Shape::Token | Shape::Opaque => vec![result],
        };
        let mut next = state[..inputs].to_vec();
        next.extend_from_slice(&parts[outputs.len()..]);
        for (&part, &output) in parts.iter().zip(&state[operands.len()..]) {
            let starts = starts(b, output, dim, at, zero)?;
            let mut dims = b.dims(output)?;
            dims[dim] = 1;
            let slice = b.reshape(part, &dims)?;
            next.push(b.dynamic_update_slice(output, slice, &starts)?);
        }
        Ok(next)
    })?;
    results_of(b, &end, inputs..operands.len(), shape.is_tuple())
}

/// Outputs, which stand behind the carries in the state, and then the carries.
fn results_of(
    b: &mut Builder<'_>,
    state: &[InstrId],
    carries: Range<usize>,
    is_tuple: bool,
) -> Result<InstrId> {
    let mut parts = state[carries.end..].to_vec();
    parts.extend_from_slice(&state[carries]);
    if is_tuple {
        b.tuple(&parts)
    } else {
        Ok(parts[0])
    }
}

/// `at` along `dim`, zero elsewhere.
fn starts(
    b: &Builder<'_>,
    array: InstrId,
    dim: usize,
    at: InstrId,
    zero: InstrId,
) -> Result<Vec<InstrId>> {
    let rank = b.dims(array)?.len();
    Ok((0..rank)
        .map(|d| if d == dim { at } else { zero })
        .collect())
}
