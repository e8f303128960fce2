//! Custom calls that mean an op of HLO, or nothing.

use crate::analysis::call_graph;
use crate::base::Result;
use crate::hlo::CustomCall;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::Stage;
use crate::passes::edit;
use crate::passes::edit::Edit;
use crate::passes::pass::Changed;
use crate::passes::pass::Pass;
use crate::passes::pass::PassCx;
use crate::shape::Shape;

/// Custom calls that give their operand back: annotations for partitioners and placers.
const ANNOTATIONS: &[&str] = &[
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "annotate_device_placement",
    "LayoutConstraint",
    "PinToDevice",
    "MoveToHost",
    "MoveToDevice",
    "xla.sdy.FuncResultSharding",
    "xla.sdy.GlobalToLocalShape",
    "xla.sdy.LocalToGlobalShape",
    "xla.sdy.ShardingConstraint",
    "xla.sdy.PropagationBarrier",
];

/// The pass.
pub struct CustomCalls;

impl Pass for CustomCalls {
    fn name(&self) -> &'static str {
        "custom-calls"
    }
    fn stages(&self) -> (Stage, Stage) {
        (Stage::Imported, Stage::Imported)
    }
    fn run(&self, module: &mut Module, _cx: &mut PassCx<'_>) -> Result<Changed> {
        let comps = call_graph::post_order(module);
        edit::sweep(module, &comps, &mut rule)
    }
}

fn rule(edit: &mut Edit<'_>, id: InstrId) -> Result<Option<InstrId>> {
    let instr = edit.instr(id);
    let Op::CustomCall(call) = &instr.op else {
        return Ok(None);
    };
    let operands = instr.operands.clone();
    if operands.len() == 1
        && ANNOTATIONS.contains(&call.target.as_str())
        && edit
            .instr(operands[0])
            .shape
            .same_ignoring_layout(&instr.shape)
    {
        return Ok(Some(operands[0]));
    }
    if let Some(k) = top_k(call, &operands, &instr.shape) {
        let (parent, largest) = (instr.parent, true);
        let topk = Op::TopK {
            k,
            largest,
            is_stable: true,
        };
        let shape = instr.shape.without_layout();
        return Ok(Some(edit.shaped(parent, topk, &[operands[0]], shape)?));
    }
    Ok(None)
}

/// The `k` of a `TopK` call: largest elements of the last dimension, with their positions.
fn top_k(call: &CustomCall, operands: &[InstrId], result: &Shape) -> Option<usize> {
    if call.target != "TopK" || operands.len() != 1 {
        return None;
    }
    let [values, _positions] = result.as_tuple()? else {
        return None;
    };
    values.as_array()?.dims.last().copied()
}
