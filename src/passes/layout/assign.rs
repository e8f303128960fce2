//! Gives every array the row-major layout.
//!
//! What a custom call was promised stays: its result keeps its layouts, and so do the bitcasts that
//! lead to and from it.

use crate::analysis::call_graph;
use crate::base::Result;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::Stage;
use crate::passes::layout::relaid;
use crate::passes::pass::Changed;
use crate::passes::pass::Pass;
use crate::passes::pass::PassCx;
use crate::shape::Layout;

/// The pass.
pub struct AssignLayouts;

impl Pass for AssignLayouts {
    fn name(&self) -> &'static str {
        "assign-layouts"
    }
    fn stages(&self) -> (Stage, Stage) {
        (Stage::Legal, Stage::LaidOut)
    }
    fn run(&self, module: &mut Module, _cx: &mut PassCx<'_>) -> Result<Changed> {
        for comp in call_graph::post_order(module) {
            for i in 0..module.comps[comp].instrs.len() {
                let id = module.comps[comp].instrs[i];
                let instr = &mut module.instrs[id];
                instr.shape.for_each_array_mut(&mut |array| {
                    if array.layout.is_none() {
                        array.layout = Some(Layout::row_major(array.dims.len()));
                    }
                });
                if let Op::Constant(literal) = &instr.op {
                    instr.op = Op::Constant(relaid(literal, &instr.shape));
                }
            }
        }
        Ok(Changed::Yes)
    }
}
