//! Fusion: which instructions of a computation become one kernel.
//!
//! Instructions are gathered into groups, consumers first (`vertical`), groups that read the same
//! values are merged (`multi_output`), and each group becomes a fusion (`build`). What may go where
//! and why is in `decide`.

pub mod build;
pub mod decide;
pub mod groups;
pub mod multi_output;
pub mod vertical;

use crate::analysis::call_graph;
use crate::base::Result;
use crate::hlo::Module;
use crate::hlo::Stage;
use crate::passes::pass::Changed;
use crate::passes::pass::Pass;
use crate::passes::pass::PassCx;

/// The pass.
pub struct Fuse;

impl Pass for Fuse {
    fn name(&self) -> &'static str {
        "fuse"
    }
    fn stages(&self) -> (Stage, Stage) {
        (Stage::LaidOut, Stage::Fused)
    }
    fn rules(&self) -> Vec<&'static str> {
        vec![
            "fuse-attention",
            "fuse-into-user",
            "fuse-into-hero",
            "fuse-beside",
            "fuse-siblings",
        ]
    }
    fn run(&self, module: &mut Module, cx: &mut PassCx<'_>) -> Result<Changed> {
        let mut changed = Changed::No;
        for comp in call_graph::control(module) {
            let mut groups = vertical::group(module, comp, cx.target, &mut cx.rewrites);
            multi_output::merge_siblings(module, &mut groups, &mut cx.rewrites);
            changed = changed.or(build::build(module, comp, &groups)?);
        }
        Ok(changed)
    }
}
