//! Drops instructions that nothing needs.

use crate::base::Result;
use crate::hlo::Module;
use crate::hlo::Stage;
use crate::hlo::rewrite;
use crate::passes::pass::Changed;
use crate::passes::pass::Pass;
use crate::passes::pass::PassCx;

/// The pass.
pub struct Dce;

impl Pass for Dce {
    fn name(&self) -> &'static str {
        "dce"
    }
    fn stages(&self) -> (Stage, Stage) {
        (Stage::Imported, Stage::Imported)
    }
    fn rules(&self) -> Vec<&'static str> {
        vec!["unused-instructions"]
    }
    fn run(&self, module: &mut Module, cx: &mut PassCx<'_>) -> Result<Changed> {
        let root = module.entry_comp().root;
        if !cx.rewrites.take("unused-instructions", module, root) {
            return Ok(Changed::No);
        }
        Ok(Changed::when(rewrite::drop_dead_everywhere(module)))
    }
}
