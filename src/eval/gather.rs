//! Gather and scatter, with batching dimensions (StableHLO "gather" and "scatter").

use smallvec::smallvec;

use crate::base::Result;
use crate::eval::bits;
use crate::eval::interpret::Evaluator;
use crate::eval::interpret::arrays;
use crate::eval::movement::clamp_start;
use crate::hlo::CompId;
use crate::hlo::GatherDims;
use crate::hlo::Instr;
use crate::hlo::ScatterDims;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::literal::number;
use crate::literal::number::Number;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::index;

/// The start index at a batch position: one number for each mapped dimension.
fn index_vector(indices: &ArrayLiteral, vector_dim: usize, batch: &[usize]) -> Vec<Number> {
    let dims = &indices.shape().dims;
    if vector_dim == dims.len() {
        return vec![bits::get(indices, index::linear_index(dims, batch))];
    }
    let mut at: Dims = batch.into();
    at.insert(vector_dim, 0);
    (0..dims[vector_dim])
        .map(|i| {
            at[vector_dim] = i;
            bits::get(indices, index::linear_index(dims, &at))
        })
        .collect()
}

/// The batch coordinate of `indices` dimension `dim`, given its place among all but the vector.
fn batch_coordinate(batch: &[usize], dim: usize, vector_dim: usize) -> usize {
    batch[if dim > vector_dim { dim - 1 } else { dim }]
}

pub(super) fn gather(
    shape: &ArrayShape,
    operand: &ArrayLiteral,
    indices: &ArrayLiteral,
    dims: &GatherDims,
    slice_sizes: &[usize],
) -> ArrayLiteral {
    let operand_dims = &operand.shape().dims;
    bits::gather_bytes(shape, operand, |i| {
        let at = index::multi_index(&shape.dims, i);
        let batch: Dims = (0..at.len())
            .filter(|d| !dims.offset_dims.contains(d))
            .map(|d| at[d])
            .collect();
        let start = index_vector(indices, dims.index_vector_dim, &batch);
        let mut from: Dims = smallvec![0; operand_dims.len()];
        for (&d, &s) in dims.start_index_map.iter().zip(&start) {
            from[d] = clamp_start(s, operand_dims[d], slice_sizes[d]);
        }
        for (&d, &b) in dims
            .operand_batching_dims
            .iter()
            .zip(&dims.start_indices_batching_dims)
        {
            from[d] = batch_coordinate(&batch, b, dims.index_vector_dim);
        }
        let kept = (0..operand_dims.len()).filter(|d| {
            !dims.collapsed_slice_dims.contains(d) && !dims.operand_batching_dims.contains(d)
        });
        for (d, &o) in kept.zip(&dims.offset_dims) {
            from[d] += at[o];
        }
        index::linear_index(operand_dims, &from)
    })
}

pub(super) fn scatter(
    evaluator: &mut Evaluator<'_>,
    instr: &Instr,
    dims: &ScatterDims,
    body: CompId,
    operands: &[Literal],
) -> Result<Literal> {
    let count = (operands.len() - 1) / 2;
    let arrays = arrays(instr, operands)?;
    let (inputs, indices, updates) = (&arrays[..count], arrays[count], &arrays[count + 1..]);
    let mut results: Vec<ArrayLiteral> = inputs.iter().map(|&a| a.clone()).collect();
    let input_dims = inputs[0].shape().dims.clone();
    let update_dims = updates[0].shape().dims.clone();
    let scalar_body = evaluator.scalar_body(body);
    for u in 0..updates[0].len() {
        let at = index::multi_index(&update_dims, u);
        let Some(to) = target(dims, indices, (&at, &update_dims), &input_dims) else {
            continue;
        };
        let to = index::linear_index(&input_dims, &to);
        let old = results.iter().map(|r| bits::get(r, to));
        let args: Vec<Number> = old.chain(updates.iter().map(|a| bits::get(a, u))).collect();
        let new = match &scalar_body {
            Some(body) => body.call(&args),
            None => {
                let types = results
                    .iter()
                    .chain(updates.iter().copied())
                    .map(ArrayLiteral::ty);
                let args: Vec<_> = types.zip(args).collect();
                evaluator.call_scalars(body, &args)?
            }
        };
        for (result, value) in results.iter_mut().zip(new) {
            let (ty, width) = (result.ty(), result.ty().byte_width());
            number::encode(
                ty,
                value,
                &mut result.bytes_mut()[to * width..(to + 1) * width],
            );
        }
    }
    let mut results: Vec<Literal> = results.into_iter().map(Literal::Array).collect();
    Ok(if instr.shape.is_tuple() {
        Literal::Tuple(results)
    } else {
        results.remove(0)
    })
}

/// The operand position an update element goes to; `None` when any of its window leaves the operand:
/// as in XLA, such a window is dropped whole.
fn target(
    dims: &ScatterDims,
    indices: &ArrayLiteral,
    (at, update_dims): (&[usize], &[usize]),
    input_dims: &[usize],
) -> Option<Dims> {
    let scatter_at: Dims = (0..at.len())
        .filter(|d| !dims.update_window_dims.contains(d))
        .map(|d| at[d])
        .collect();
    let start = index_vector(indices, dims.index_vector_dim, &scatter_at);
    let mut to: Vec<i128> = vec![0; input_dims.len()];
    for (&d, &s) in dims.scatter_dims_to_operand_dims.iter().zip(&start) {
        if let Number::Int(s) = s {
            to[d] = s;
        }
    }
    for (&d, &b) in dims
        .input_batching_dims
        .iter()
        .zip(&dims.scatter_indices_batching_dims)
    {
        to[d] = batch_coordinate(&scatter_at, b, dims.index_vector_dim) as i128;
    }
    let kept = (0..input_dims.len()).filter(|d| {
        !dims.inserted_window_dims.contains(d) && !dims.input_batching_dims.contains(d)
    });
    let first = to.clone();
    let mut last = to.clone();
    for (d, &w) in kept.zip(&dims.update_window_dims) {
        to[d] += at[w] as i128;
        last[d] += update_dims[w] as i128 - 1;
    }
    let inside = (0..input_dims.len()).all(|d| first[d] >= 0 && last[d] < input_dims[d] as i128);
    inside.then(|| to.into_iter().map(|i| i as usize).collect())
}
