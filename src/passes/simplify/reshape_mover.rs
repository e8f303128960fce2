//! Moves reshapes of dots, convolutions and reductions below the elementwise ops that follow them.
//!
//! The ops then have the dimensions of the dot and can be computed where its results are at hand.
//! Reshapes move no bytes, so those that appear on the other operands cost nothing.

use crate::analysis::call_graph;
use crate::base::IdSet;
use crate::base::Result;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::Stage;
use crate::passes::edit;
use crate::passes::edit::Edit;
use crate::passes::pass::Changed;
use crate::passes::pass::Pass;
use crate::passes::pass::PassCx;
use crate::shape::Dims;
use crate::shape::Shape;

/// The pass.
pub struct ReshapeMover;

impl Pass for ReshapeMover {
    fn name(&self) -> &'static str {
        "reshape-mover"
    }
    fn stages(&self) -> (Stage, Stage) {
        (Stage::Legal, Stage::Legal)
    }
    fn rules(&self) -> Vec<&'static str> {
        vec!["reshape-after-elementwise"]
    }
    fn run(&self, module: &mut Module, cx: &mut PassCx<'_>) -> Result<Changed> {
        let comps = call_graph::control(module);
        let mut follows: IdSet<InstrId> = IdSet::new();
        let name = "reshape-after-elementwise";
        edit::sweep(module, &comps, &mut |edit, id| {
            if !cx.rewrites.is_on(name) {
                return Ok(None);
            }
            let new = rule(edit, id, &mut follows)?;
            Ok(new.filter(|_| cx.rewrites.take(name, edit.module, id)))
        })
    }
}

/// Whether a kernel is shaped by the op, so that what follows it should have its dimensions.
fn is_hero(op: &Op) -> bool {
    matches!(
        op,
        Op::Dot { .. } | Op::Convolution { .. } | Op::Reduce { .. }
    )
}

/// The hero, or elementwise op after one, that `id` is a reshape of.
fn source(edit: &Edit<'_>, id: InstrId, follows: &IdSet<InstrId>) -> Option<InstrId> {
    let instr = edit.instr(id);
    if !matches!(instr.op, Op::Reshape { .. }) {
        return None;
    }
    let source = instr.operands[0];
    (is_hero(&edit.instr(source).op) || follows.contains(source)).then_some(source)
}

fn rule(edit: &mut Edit<'_>, id: InstrId, follows: &mut IdSet<InstrId>) -> Result<Option<InstrId>> {
    let instr = edit.instr(id);
    if !instr.op.is_elementwise() {
        return Ok(None);
    }
    let (comp, op, operands) = (instr.parent, instr.op.clone(), instr.operands.clone());
    let Some(result) = edit.array(id).cloned() else {
        return Ok(None);
    };
    let found = operands
        .iter()
        .find_map(|&o| source(edit, o, follows))
        .and_then(|s| edit.array(s))
        .map(|a| a.dims.clone());
    let direct = operands.iter().any(|o| {
        follows.contains(*o) || matches!(edit.instr(*o).op, Op::Dot { .. } | Op::Convolution { .. })
    });
    let Some(dims) = found else {
        if direct {
            follows.insert(id);
        }
        return Ok(None);
    };
    let mut moved = Vec::new();
    for &operand in &operands {
        moved.push(reshaped(edit, comp, operand, &result.dims, &dims)?);
    }
    let shape = Shape::array(result.ty, dims.iter().copied());
    let value = edit.shaped(comp, op, &moved, shape)?;
    follows.insert(value);
    let shape = Shape::array(result.ty, result.dims.iter().copied());
    edit.shaped(comp, Op::Reshape { inferred_dim: None }, &[value], shape)
        .map(Some)
}

/// An operand of dimensions `from` with dimensions `to`; scalars stay.
fn reshaped(
    edit: &mut Edit<'_>,
    comp: crate::hlo::CompId,
    id: InstrId,
    from: &Dims,
    to: &Dims,
) -> Result<InstrId> {
    let Some(array) = edit.array(id).cloned() else {
        return Ok(id);
    };
    if array.dims != *from || from == to {
        return Ok(id);
    }
    let instr = edit.instr(id);
    if matches!(instr.op, Op::Reshape { .. })
        && edit.array(instr.operands[0]).is_some_and(|a| a.dims == *to)
    {
        return Ok(instr.operands[0]);
    }
    let shape = Shape::array(array.ty, to.iter().copied());
    edit.shaped(comp, Op::Reshape { inferred_dim: None }, &[id], shape)
}
