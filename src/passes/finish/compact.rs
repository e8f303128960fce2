//! Makes the module compact: computations no one calls and instructions no one lists are dropped,
//! computations are stored callees first, and names are made unique.

use crate::base::Result;
use crate::hlo::Module;
use crate::hlo::Stage;
use crate::hlo::rewrite;
use crate::passes::finish::canonical_names::canonicalize_names;
use crate::passes::pass::Changed;
use crate::passes::pass::Pass;
use crate::passes::pass::PassCx;

/// The pass.
pub struct Compact;

impl Pass for Compact {
    fn name(&self) -> &'static str {
        "compact"
    }
    fn stages(&self) -> (Stage, Stage) {
        (Stage::Imported, Stage::Imported)
    }
    fn run(&self, module: &mut Module, _cx: &mut PassCx<'_>) -> Result<Changed> {
        rewrite::compact(module);
        canonicalize_names(module);
        Ok(Changed::Yes)
    }
}
