//! Custom calls of LAPACK. A call sees memory: operands as the call has them laid out, results in
//! the layouts of its shape.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::eval::interpret::arrays;
use crate::eval::interpret::unsupported;
use crate::hlo::CustomCall;
use crate::hlo::Instr;
use crate::linalg;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::literal::device_form;
use crate::shape::ArrayShape;
use crate::shape::Shape;

/// The value of a call of LAPACK.
///
/// # Errors
/// `EVAL_UNSUPPORTED` for other calls, and for operands, results or attributes that do not fit.
pub(super) fn run(instr: &Instr, call: &CustomCall, operands: &[Literal]) -> Result<Literal> {
    let inputs = arrays(instr, operands)?;
    let shapes = inputs.iter().enumerate().map(|(i, input)| {
        let constraints = call.operand_layout_constraints.as_ref();
        let constraint = constraints.and_then(|all| all.get(i)?.as_array());
        constraint.unwrap_or(input.shape()).clone()
    });
    let shapes: Vec<ArrayShape> = shapes.collect();
    let results = instr.shape.leaves().into_iter().map(|(_, leaf)| {
        let array = leaf.as_array().cloned();
        array.ok_or_else(|| unsupported(instr, "a result that is no array"))
    });
    let results: Vec<ArrayShape> = results.collect::<Result<_>>()?;
    let config = instr.extra.as_ref().map(|e| e.backend_config.as_slice());
    let config = String::from_utf8_lossy(config.unwrap_or_default());
    let refused = |message| Diagnostic::unsupported(codes::EVAL_UNSUPPORTED, message);
    let prepared = linalg::Call::new(
        &call.target,
        &config,
        &shapes.iter().collect::<Vec<_>>(),
        &results.iter().collect::<Vec<_>>(),
    );
    let prepared = prepared.ok_or_else(|| {
        refused(format!(
            "the evaluator has no custom call `{}`",
            call.target
        ))
    })?;
    let prepared = prepared.map_err(refused)?;
    let pairs = inputs.iter().zip(&shapes);
    let laid_out = pairs.map(|(input, shape)| device_form::to_device(input, shape));
    let laid_out: Vec<Vec<u8>> = laid_out.collect();
    let mut memory: Vec<Vec<u8>> = results
        .iter()
        .map(|r| vec![0; device_form::device_size(r)])
        .collect();
    let operands: Vec<&[u8]> = laid_out.iter().map(Vec::as_slice).collect();
    let outputs = memory.iter_mut().map(Vec::as_mut_slice).collect();
    for item in &mut prepared.items(&operands, outputs).map_err(refused)? {
        prepared.run(item);
    }
    let leaves = memory.iter().zip(&results);
    let leaves = leaves.map(|(bytes, shape)| device_form::from_device(bytes, shape));
    let leaves: Vec<ArrayLiteral> = leaves.collect::<Result<_>>()?;
    Ok(value(&instr.shape, &mut leaves.into_iter()))
}

/// A value of this shape from its leaves in order.
fn value(shape: &Shape, leaves: &mut impl Iterator<Item = ArrayLiteral>) -> Literal {
    match shape {
        Shape::Tuple(elements) => Literal::Tuple(
            elements
                .iter()
                .map(|element| value(element, leaves))
                .collect(),
        ),
        _ => leaves.next().map_or(Literal::Token, Literal::Array),
    }
}
