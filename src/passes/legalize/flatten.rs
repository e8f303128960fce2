//! Gives every loop and branch computation one caller.
//!
//! Rewrites that look at a body together with the loop around it rely on it.

use crate::base::Result;
use crate::hlo::Module;
use crate::hlo::Stage;
use crate::hlo::rewrite;
use crate::passes::finish::flatten::flatten;
use crate::passes::pass::Changed;
use crate::passes::pass::Pass;
use crate::passes::pass::PassCx;

/// The pass.
pub struct FlattenCallGraph;

impl Pass for FlattenCallGraph {
    fn name(&self) -> &'static str {
        "flatten-call-graph"
    }
    fn stages(&self) -> (Stage, Stage) {
        (Stage::Imported, Stage::Imported)
    }
    fn run(&self, module: &mut Module, _cx: &mut PassCx<'_>) -> Result<Changed> {
        // A computation that nothing reaches any more must not count as a caller.
        rewrite::compact(module);
        flatten(module)?;
        Ok(Changed::Yes)
    }
}
