//! Drops instructions that only order, mark or schedule: copy-start and copy-done, domain,
//! add-dependency; and, as a pass of its own at the end of simplification, optimization barriers.

use crate::analysis::call_graph;
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

/// The pass that drops everything but barriers.
pub struct Structural;

impl Pass for Structural {
    fn name(&self) -> &'static str {
        "structural"
    }
    fn stages(&self) -> (Stage, Stage) {
        (Stage::Imported, Stage::Imported)
    }
    fn run(&self, module: &mut Module, _cx: &mut PassCx<'_>) -> Result<Changed> {
        let comps = call_graph::post_order(module);
        edit::sweep(module, &comps, &mut |edit, id| Ok(rule(edit, id)))
    }
}

fn rule(edit: &Edit<'_>, id: InstrId) -> Option<InstrId> {
    let instr = edit.instr(id);
    match &instr.op {
        Op::Domain(_) | Op::AddDependency => Some(instr.operands[0]),
        Op::CopyDone => {
            let start = edit.instr(instr.operands[0]);
            matches!(start.op, Op::CopyStart { .. }).then(|| start.operands[0])
        }
        _ => None,
    }
}

/// The pass that drops barriers.
pub struct DropBarriers;

impl Pass for DropBarriers {
    fn name(&self) -> &'static str {
        "drop-barriers"
    }
    fn stages(&self) -> (Stage, Stage) {
        (Stage::Legal, Stage::Legal)
    }
    fn run(&self, module: &mut Module, _cx: &mut PassCx<'_>) -> Result<Changed> {
        let comps = call_graph::post_order(module);
        edit::sweep(module, &comps, &mut |edit, id| {
            let instr = edit.instr(id);
            Ok(matches!(instr.op, Op::OptimizationBarrier).then(|| instr.operands[0]))
        })
    }
}
