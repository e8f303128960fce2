//! Custom calls of LAPACK. A call sees memory: operands as the call has them laid out, results in
//! the layouts of its shape.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::eval::interpret::arrays;
use crate::eval::interpret::unsupported;
use crate::hlo::CustomCall;
use crate::hlo::Instr;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::verify;
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
    let refused = |message| Diagnostic::unsupported(codes::EVAL_UNSUPPORTED, message);
    let given: Vec<&ArrayShape> = inputs.iter().map(|input| input.shape()).collect();
    let (shapes, results) = (laid_out(call, &given), results_of(instr)?);
    let prepared = prepared(instr, call, &shapes, &results);
    let prepared = prepared.ok_or_else(|| {
        refused(format!(
            "the evaluator has no custom call `{}`",
            call.target
        ))
    })?;
    let prepared = prepared.map_err(refused)?;
    let pairs = inputs.iter().zip(&shapes);
    let copies = pairs.map(|(input, shape)| device_form::to_device(input, shape));
    let copies: Vec<Vec<u8>> = copies.collect();
    let mut memory: Vec<Vec<u8>> = results
        .iter()
        .map(|r| vec![0; device_form::device_size(r)])
        .collect();
    let operands: Vec<&[u8]> = copies.iter().map(Vec::as_slice).collect();
    let outputs = memory.iter_mut().map(Vec::as_mut_slice).collect();
    for item in &mut prepared.items(&operands, outputs).map_err(refused)? {
        prepared.run(item);
    }
    let leaves = memory.iter().zip(&results);
    let leaves = leaves.map(|(bytes, shape)| device_form::from_device(bytes, shape));
    let leaves: Vec<ArrayLiteral> = leaves.collect::<Result<_>>()?;
    Ok(value(&instr.shape, &mut leaves.into_iter()))
}

/// Looks at the calls of LAPACK in a module, whose operands, results and attributes must be what these
/// take.
///
/// # Errors
/// `OP_CONSTRAINT` for the first that does not fit.
pub fn check_calls(module: &Module) -> Result<()> {
    for (id, instr) in module.instrs.iter() {
        let Op::CustomCall(call) = &instr.op else {
            continue;
        };
        let operands = instr.operands.iter().map(|&o| module.shape(o).as_array());
        let (Some(operands), Ok(results)) =
            (operands.collect::<Option<Vec<_>>>(), results_of(instr))
        else {
            continue;
        };
        let operands = laid_out(call, &operands);
        if let Some(Err(what)) = prepared(instr, call, &operands, &results) {
            let error = Diagnostic::error(codes::OP_CONSTRAINT, what);
            return Err(error.or_at(|| verify::location(module, id)));
        }
    }
    Ok(())
}

/// The shapes of operands as the call has them in memory.
fn laid_out(call: &CustomCall, operands: &[&ArrayShape]) -> Vec<ArrayShape> {
    let constraints = call.operand_layout_constraints.as_ref();
    let constraint = |i: usize| constraints.and_then(|all| all.get(i)?.as_array());
    let shapes = operands.iter().enumerate();
    shapes
        .map(|(i, &shape)| constraint(i).unwrap_or(shape).clone())
        .collect()
}

/// The shapes of the arrays that a call gives.
fn results_of(instr: &Instr) -> Result<Vec<ArrayShape>> {
    let results = instr.shape.leaves().into_iter().map(|(_, leaf)| {
        let array = leaf.as_array().cloned();
        array.ok_or_else(|| unsupported(instr, "a result that is no array"))
    });
    results.collect()
}

/// The call of LAPACK that an instruction is, or what does not fit; none for other calls.
fn prepared(
    instr: &Instr,
    call: &CustomCall,
    operands: &[ArrayShape],
    results: &[ArrayShape],
) -> Option<std::result::Result<linalg::Call, String>> {
    let config = instr.extra.as_ref().map(|e| e.backend_config.as_slice());
    let config = String::from_utf8_lossy(config.unwrap_or_default());
    linalg::Call::new(
        &call.target,
        &config,
        &operands.iter().collect::<Vec<_>>(),
        &results.iter().collect::<Vec<_>>(),
    )
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
