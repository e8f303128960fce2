//! Gives reductions of mixed precision one type for each input.
//!
//! HLO lets a reducer say in which precision it takes an accumulator and an element, whatever float
//! types the arrays have. Arrays and initial values are converted, and where accumulator and element
//! differ the body becomes one in a type that holds both.

use std::collections::BTreeMap;

use crate::analysis::call_graph;
use crate::base::Result;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::Stage;
use crate::passes::edit::Edit;
use crate::passes::legalize::inline::body_of;
use crate::passes::pass::Changed;
use crate::passes::pass::Pass;
use crate::passes::pass::PassCx;
use crate::passes::simplify::algebraic::convert::holds_all;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// The pass.
pub struct UniformReductions;

impl Pass for UniformReductions {
    fn name(&self) -> &'static str {
        "uniform-reductions"
    }
    fn stages(&self) -> (Stage, Stage) {
        (Stage::Imported, Stage::Imported)
    }
    fn run(&self, module: &mut Module, _cx: &mut PassCx<'_>) -> Result<Changed> {
        let comps = call_graph::post_order(module);
        let mut edit = Edit::new(module);
        let mut bodies = BTreeMap::new();
        for comp in comps {
            for id in edit.module.comps[comp].instrs.clone() {
                if let Some(types) = mixed_types(edit.module, id) {
                    edit.refresh(id);
                    let new = uniform(&mut edit, &mut bodies, id, &types)?;
                    edit.replace(id, new);
                }
            }
        }
        Ok(edit.finish())
    }
}

/// The types of one input on its way.
#[derive(Clone, Copy)]
struct Types {
    /// What the body accumulates in.
    accumulator: PrimitiveType,
    /// What the body takes elements as.
    element: PrimitiveType,
    /// What the reduction will be done in.
    all: PrimitiveType,
}

/// The types of each input of a reduction, when they are not all the same.
fn mixed_types(module: &Module, id: InstrId) -> Option<Vec<Types>> {
    let instr = &module.instrs[id];
    let (Op::Reduce { body, .. } | Op::ReduceWindow { body, .. }) = instr.op else {
        return None;
    };
    let ty = |id: &InstrId| module.shape(*id).as_array().map(|array| array.ty);
    let params: Vec<PrimitiveType> = module.comps[body].params.iter().filter_map(ty).collect();
    let arrays: Vec<PrimitiveType> = instr.operands.iter().filter_map(ty).collect();
    let n = arrays.len() / 2;
    if params.len() != 2 * n
        || (0..2 * n).all(|i| params[i] == params[i % n] && arrays[i] == params[i % n])
    {
        return None;
    }
    let types = (0..n).map(|i| {
        let (accumulator, element) = (params[i], params[n + i]);
        let all = if holds_all(accumulator, element) {
            accumulator
        } else if [accumulator, element].contains(&PrimitiveType::F64) {
            PrimitiveType::F64
        } else {
            PrimitiveType::F32
        };
        Types {
            accumulator,
            element,
            all,
        }
    });
    Some(types.collect())
}

fn convert(edit: &mut Edit<'_>, comp: CompId, x: InstrId, ty: PrimitiveType) -> Result<InstrId> {
    match edit.array(x) {
        Some(array) if array.ty != ty => {
            let shape = Shape::Array(array.with_type(ty));
            edit.shaped(comp, Op::Convert, &[x], shape)
        }
        _ => Ok(x),
    }
}

/// The values of an array or tuple, and back.
fn parts(edit: &mut Edit<'_>, comp: CompId, value: InstrId) -> Result<Vec<InstrId>> {
    let count = match (&edit.instr(value).op, &edit.instr(value).shape) {
        (Op::Tuple, _) => return Ok(edit.instr(value).operands.to_vec()),
        (_, Shape::Tuple(elements)) => elements.len(),
        _ => return Ok(vec![value]),
    };
    let indices = 0..count;
    indices
        .map(|index| edit.op(comp, Op::GetTupleElement { index }, &[value]))
        .collect()
}

fn whole(edit: &mut Edit<'_>, comp: CompId, parts: &[InstrId], like: &Shape) -> Result<InstrId> {
    match parts {
        [one] if !like.is_tuple() => Ok(*one),
        _ => edit.op(comp, Op::Tuple, parts),
    }
}

/// What stands for a reduction of mixed precision.
fn uniform(
    edit: &mut Edit<'_>,
    bodies: &mut BTreeMap<CompId, CompId>,
    id: InstrId,
    types: &[Types],
) -> Result<InstrId> {
    let comp = edit.instr(id).parent;
    let mut op = edit.instr(id).op.clone();
    let (Op::Reduce { body, .. } | Op::ReduceWindow { body, .. }) = &mut op else {
        return Ok(id);
    };
    *body = match bodies.get(body) {
        Some(&known) => known,
        None => {
            let made = uniform_body(edit, *body, types)?;
            bodies.insert(*body, made);
            made
        }
    };
    let mut operands = edit.instr(id).operands.to_vec();
    for (i, types) in types.iter().enumerate() {
        let init = i + operands.len() / 2;
        operands[i] = convert(edit, comp, operands[i], types.element)?;
        operands[i] = convert(edit, comp, operands[i], types.all)?;
        operands[init] = convert(edit, comp, operands[init], types.accumulator)?;
        operands[init] = convert(edit, comp, operands[init], types.all)?;
    }
    let reduced = edit.op(comp, op, &operands)?;
    let shape = edit.instr(id).shape.clone();
    let mut results = parts(edit, comp, reduced)?;
    for ((result, types), (_, leaf)) in results.iter_mut().zip(types).zip(shape.leaves()) {
        *result = convert(edit, comp, *result, types.accumulator)?;
        if let Some(array) = leaf.as_array() {
            *result = convert(edit, comp, *result, array.ty)?;
        }
    }
    whole(edit, comp, &results, &shape)
}

/// The body in types that hold both accumulator and element.
fn uniform_body(edit: &mut Edit<'_>, body: CompId, types: &[Types]) -> Result<CompId> {
    if types.iter().all(|t| t.accumulator == t.element) {
        return Ok(body);
    }
    let name = format!("{}.uniform", edit.module.comps[body].name);
    let comp = edit.module.new_comp(name);
    let mut builder = edit.module.builder(comp);
    let params: Vec<InstrId> = (0..2 * types.len())
        .map(|i| {
            let shape = Shape::scalar(types[i % types.len()].all);
            builder.parameter(format!("p{i}"), shape)
        })
        .collect();
    let mut args = Vec::with_capacity(params.len());
    for (i, &param) in params.iter().enumerate() {
        let types_of = types[i % types.len()];
        let wanted = if i < types.len() {
            types_of.accumulator
        } else {
            types_of.element
        };
        args.push(convert(edit, comp, param, wanted)?);
    }
    let root = body_of(edit, comp, body, &args)?;
    // What the body widens again was narrow all along.
    for id in edit.module.comps[comp].instrs.clone() {
        let instr = edit.instr(id);
        let known = instr
            .operands
            .first()
            .and_then(|first| args.iter().position(|a| a == first));
        if instr.op == Op::Convert
            && let Some(i) = known
            && args[i] != params[i]
            && edit.array(id).map(|array| array.ty) == edit.array(params[i]).map(|array| array.ty)
        {
            edit.replace(id, params[i]);
        }
    }
    let root = edit.resolve(root);
    let shape = edit.instr(root).shape.clone();
    let mut results = parts(edit, comp, root)?;
    for (result, types) in results.iter_mut().zip(types) {
        *result = edit.resolve(*result);
        *result = convert(edit, comp, *result, types.all)?;
    }
    edit.module.comps[comp].root = whole(edit, comp, &results, &shape)?;
    Ok(comp)
}
