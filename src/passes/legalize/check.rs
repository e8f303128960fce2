//! The end of legalization: what is left must be known to every later room.

use crate::analysis::call_graph;
use crate::base::Result;
use crate::hlo::CollectiveKind;
use crate::hlo::Instr;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::Stage;
use crate::passes::pass::Changed;
use crate::passes::pass::Pass;
use crate::passes::pass::PassCx;
use crate::passes::pass::unsupported;

/// The pass. It changes nothing; it refuses.
pub struct CheckLegal;

impl Pass for CheckLegal {
    fn name(&self) -> &'static str {
        "check-legal"
    }
    fn stages(&self) -> (Stage, Stage) {
        (Stage::Imported, Stage::Legal)
    }
    fn run(&self, module: &mut Module, cx: &mut PassCx<'_>) -> Result<Changed> {
        for comp in call_graph::post_order(module) {
            for &id in &module.comps[comp].instrs {
                if let Some(why) = objection(module.instr(id)) {
                    return Err(unsupported(module, id, cx.target, why));
                }
            }
        }
        Ok(Changed::No)
    }
}

/// Why the instruction cannot be compiled, when it cannot.
fn objection(instr: &Instr) -> Option<&'static str> {
    let dynamic = instr
        .shape
        .leaves()
        .iter()
        .any(|(_, s)| s.as_array().is_some_and(|a| a.is_dynamic()));
    if dynamic {
        return Some("its shape is only known at run time");
    }
    match &instr.op {
        Op::Infeed { .. } | Op::Outfeed { .. } => Some("there is no host queue to talk to"),
        Op::Send { .. } | Op::SendDone { .. } | Op::Recv { .. } | Op::RecvDone { .. } => {
            Some("there is no channel to talk over")
        }
        Op::Collective {
            kind:
                CollectiveKind::AllGatherStart { .. }
                | CollectiveKind::AllReduceStart { .. }
                | CollectiveKind::CollectivePermuteStart { .. }
                | CollectiveKind::RaggedAllToAll,
            ..
        }
        | Op::AllGatherDone
        | Op::AllReduceDone
        | Op::CollectivePermuteDone => Some("it could not be made a plain collective"),
        Op::GetDimensionSize { .. } | Op::SetDimensionSize { .. } | Op::DynamicReshape => {
            Some("its shape is only known at run time")
        }
        Op::Call { .. } | Op::Map { .. } => Some("it could not be inlined"),
        Op::AsyncStart { .. } | Op::AsyncUpdate | Op::AsyncDone => {
            Some("it could not be made synchronous")
        }
        Op::CustomCall(call) if cuts_shards(&call.target) => {
            Some("XLA's partitioner, which cuts arrays into shards, has not seen the program")
        }
        Op::CopyStart { .. } | Op::CopyDone => Some("it could not be made synchronous"),
        Op::Dot { sparsity, .. } if !sparsity.is_empty() => {
            Some("it has an operand that leaves out elements")
        }
        _ => None,
    }
}

/// Whether a custom call leads from whole arrays to shards or back. Those that change no shape are
/// gone by now.
fn cuts_shards(target: &str) -> bool {
    matches!(
        target,
        "SPMDFullToShardShape"
            | "SPMDShardToFullShape"
            | "xla.sdy.GlobalToLocalShape"
            | "xla.sdy.LocalToGlobalShape"
    )
}
