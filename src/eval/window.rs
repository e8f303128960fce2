//! Reduce-window and select-and-scatter.

use crate::base::Result;
use crate::eval::bits;
use crate::eval::conv::window_position;
use crate::eval::interpret::Evaluator;
use crate::eval::interpret::arrays;
use crate::eval::interpret::unsupported;
use crate::eval::reduce::Reducer;
use crate::eval::reduce::pack_numbers;
use crate::eval::reduce::result_shapes;
use crate::hlo::CompId;
use crate::hlo::Instr;
use crate::hlo::Window;
use crate::literal::Literal;
use crate::literal::number::Number;
use crate::shape::Dims;
use crate::shape::index;

/// The positions a window looks at, in order, from its place in the output.
fn positions(window: &Window, output: &[usize], dims: &[usize]) -> Vec<usize> {
    let sizes: Dims = window.iter().map(|w| w.size).collect();
    let strides = index::row_major_strides(dims);
    let mut found = Vec::new();
    index::for_each_index(&sizes, |element| {
        let at: Option<usize> = (0..dims.len())
            .map(|d| {
                window_position(window, d, output[d], element[d], dims[d]).map(|p| p * strides[d])
            })
            .sum();
        found.extend(at);
    });
    found
}

pub(super) fn reduce_window(
    evaluator: &mut Evaluator<'_>,
    instr: &Instr,
    window: &Window,
    body: CompId,
    operands: &[Literal],
) -> Result<Literal> {
    let arrays = arrays(instr, operands)?;
    let (inputs, inits) = arrays.split_at(arrays.len() / 2);
    let shapes = result_shapes(instr)?;
    let reducer = Reducer::new(evaluator, body);
    let count = shapes[0].element_count();
    let mut results: Vec<Vec<Number>> = vec![Vec::with_capacity(count); shapes.len()];
    for i in 0..count {
        let output = index::multi_index(&shapes[0].dims, i);
        let mut accumulators = reducer.start(inits);
        for at in positions(window, &output, &inputs[0].shape().dims) {
            let elements = reducer.elements(inputs, at);
            reducer.combine(evaluator, &mut accumulators, &elements)?;
        }
        for (result, value) in results.iter_mut().zip(accumulators) {
            result.push(value);
        }
    }
    Ok(pack_numbers(instr, &shapes, &results))
}

/// Each source element goes to the operand position that `select` keeps of its window, where
/// `scatter` combines it with what is there.
pub(super) fn select_and_scatter(
    evaluator: &mut Evaluator<'_>,
    instr: &Instr,
    window: &Window,
    select: CompId,
    scatter: CompId,
    operands: &[Literal],
) -> Result<Literal> {
    let arrays = arrays(instr, operands)?;
    let [operand, source, init] = arrays.as_slice() else {
        return Err(unsupported(instr, "this many operands"));
    };
    let shape = result_shapes(instr)?[0];
    let select_body = evaluator.scalar_body(select);
    let reducer = Reducer::new(evaluator, scatter);
    let mut values: Vec<Number> = vec![bits::get(init, 0); shape.element_count()];
    for s in 0..source.len() {
        let output = index::multi_index(&source.shape().dims, s);
        let mut best: Option<usize> = None;
        for at in positions(window, &output, &operand.shape().dims) {
            let Some(kept) = best else {
                best = Some(at);
                continue;
            };
            let args = [bits::get(operand, kept), bits::get(operand, at)];
            let keep = match &select_body {
                Some(body) => body.call(&args),
                None => {
                    let ty = operand.ty();
                    evaluator.call_scalars(select, &[(ty, args[0]), (ty, args[1])])?
                }
            };
            if keep[0] == Number::Int(0) {
                best = Some(at);
            }
        }
        if let Some(at) = best {
            let mut accumulator = vec![values[at]];
            reducer.combine(evaluator, &mut accumulator, &[bits::get(source, s)])?;
            values[at] = accumulator[0];
        }
    }
    Ok(Literal::Array(bits::build(shape, |i| values[i])))
}
