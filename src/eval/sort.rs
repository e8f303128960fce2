//! Sort by any comparator, and the k largest or smallest.

use std::cmp::Ordering;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::eval::bits;
use crate::eval::interpret::Evaluator;
use crate::eval::interpret::unsupported;
use crate::hlo::CompId;
use crate::hlo::Instr;
use crate::hlo::Op;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::literal::number::Number;
use crate::shape::ArrayShape;
use crate::shape::index;

/// Sorts all operands along `dim` by the comparator; equal elements keep their order.
pub(super) fn sort(
    evaluator: &mut Evaluator<'_>,
    dim: usize,
    body: CompId,
    operands: &[Literal],
) -> Result<Literal> {
    let arrays: Option<Vec<&ArrayLiteral>> = operands.iter().map(Literal::as_array).collect();
    let arrays = arrays
        .ok_or_else(|| Diagnostic::unsupported(codes::EVAL_UNSUPPORTED, "a sort of tuples"))?;
    let dims = &arrays[0].shape().dims;
    let (size, stride) = (dims[dim], index::row_major_strides(dims)[dim]);
    let scalar = evaluator.scalar_body(body);
    let mut order: Vec<usize> = (0..arrays[0].len()).collect();
    for start in (0..arrays[0].len()).filter(|i| i / stride % size == 0) {
        let row: Vec<usize> = (0..size).map(|i| start + i * stride).collect();
        let keys: Vec<Vec<Number>> = row
            .iter()
            .map(|&i| arrays.iter().map(|a| bits::get(a, i)).collect())
            .collect();
        let mut before = |a: usize, b: usize| -> Result<bool> {
            let args: Vec<Number> = keys[a]
                .iter()
                .zip(&keys[b])
                .flat_map(|(&x, &y)| [x, y])
                .collect();
            let holds = match &scalar {
                Some(body) => body.call(&args),
                None => {
                    let types = arrays.iter().flat_map(|a| [a.ty(), a.ty()]);
                    let args: Vec<_> = types.zip(args).collect();
                    evaluator.call_scalars(body, &args)?
                }
            };
            Ok(holds[0] != Number::Int(0))
        };
        let sorted = merge_sort((0..size).collect(), &mut before)?;
        for (to, from) in sorted.into_iter().enumerate() {
            order[row[to]] = row[from];
        }
    }
    let results = arrays
        .iter()
        .map(|a| Literal::Array(bits::gather_bytes(a.shape(), a, |i| order[i])));
    let mut results: Vec<Literal> = results.collect();
    Ok(if results.len() == 1 {
        results.remove(0)
    } else {
        Literal::Tuple(results)
    })
}

/// A stable merge sort that bears comparators which are no order.
fn merge_sort(
    items: Vec<usize>,
    before: &mut impl FnMut(usize, usize) -> Result<bool>,
) -> Result<Vec<usize>> {
    if items.len() < 2 {
        return Ok(items);
    }
    let (left, right) = items.split_at(items.len() / 2);
    let left = merge_sort(left.to_vec(), before)?;
    let right = merge_sort(right.to_vec(), before)?;
    let mut merged = Vec::with_capacity(items.len());
    let (mut i, mut j) = (0, 0);
    while i < left.len() && j < right.len() {
        if before(right[j], left[i])? {
            merged.push(right[j]);
            j += 1;
        } else {
            merged.push(left[i]);
            i += 1;
        }
    }
    merged.extend_from_slice(&left[i..]);
    merged.extend_from_slice(&right[j..]);
    Ok(merged)
}

/// The k largest (smallest) elements of each row and their positions, best first; among equals the
/// earlier position. Floats are compared in total order.
pub(super) fn top_k(instr: &Instr, largest: bool, operands: &[Literal]) -> Result<Literal> {
    let input = operands[0]
        .as_array()
        .ok_or_else(|| unsupported(instr, "this operand"))?;
    let shapes = instr.shape.as_tuple().unwrap_or_default();
    let [values, positions] = shapes else {
        return Err(unsupported(instr, "this result shape"));
    };
    let (Some(values), Some(positions)) = (values.as_array(), positions.as_array()) else {
        return Err(unsupported(instr, "this result shape"));
    };
    let k = match &instr.op {
        Op::TopK { k, .. } => *k,
        _ => values.dims.last().copied().unwrap_or(0),
    };
    let size = input.shape().dims.last().copied().unwrap_or(1);
    let rows = input.len().checked_div(size).unwrap_or(0);
    let fits = |a: &ArrayShape| a.element_count() == rows * k;
    if k > size || values.ty != input.ty() || !fits(values) || !fits(positions) {
        return Err(unsupported(instr, "this result shape"));
    }
    let mut chosen = Vec::with_capacity(rows * k);
    for row in 0..rows {
        let mut order: Vec<usize> = (row * size..(row + 1) * size).collect();
        order.sort_by(|&a, &b| {
            let ordering = compare(bits::get(input, a), bits::get(input, b));
            if largest {
                ordering.reverse()
            } else {
                ordering
            }
        });
        chosen.extend_from_slice(&order[..k]);
    }
    let position = |i: usize| Number::Int((chosen[i] % size) as i128);

    Ok(Literal::Tuple(vec![
        Literal::Array(bits::gather_bytes(values, input, |i| chosen[i])),
        Literal::Array(bits::build(positions, position)),
    ]))
}

fn compare(a: Number, b: Number) -> Ordering {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => a.cmp(&b),
        (Number::Float(a), Number::Float(b)) => a.total_cmp(&b),
        _ => Ordering::Equal,
    }
}
