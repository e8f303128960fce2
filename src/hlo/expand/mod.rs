//! Ops as the simpler ops that compute the same, for those who lack them.

mod ragged_dot;
mod scaled_dot;
mod scan;
mod stochastic_convert;
mod topk;

use crate::base::Result;
use crate::hlo::Builder;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Rewriter;
use crate::hlo::verify::location;
use crate::hlo::visit;

pub use ragged_dot::expand as ragged_dot;
pub use scaled_dot::expand as scaled_dot;
pub use scan::expand as scan;
pub use stochastic_convert::expand as stochastic_convert;
pub use topk::expand as topk;

/// Appends what does the same as the instruction, and gives its value.
pub type Expansion = fn(&mut Builder<'_>, InstrId) -> Result<InstrId>;

/// Expands every instruction for which `of` gives an expansion, in every computation that the entry
/// reaches, until none is left. True when something was expanded.
///
/// # Errors
/// Those of the expansions, with the instruction.
pub fn everywhere(
    module: &mut Module,
    of: &dyn Fn(&Module, InstrId) -> Option<Expansion>,
) -> Result<bool> {
    let mut changed = false;
    loop {
        let found: Vec<(InstrId, Expansion)> = visit::reachable(module)
            .into_iter()
            .flat_map(|comp| module.comps[comp].instrs.iter().copied())
            .filter_map(|id| of(module, id).map(|expand| (id, expand)))
            .collect();
        if found.is_empty() {
            return Ok(changed);
        }
        let mut rewriter = Rewriter::new(module);
        for (id, expand) in found {
            let made = rewriter.replace_with(id, |b| expand(b, id));
            made.map_err(|e| e.or_at(|| location(rewriter.module, id)))?;
        }
        changed |= rewriter.finish();
    }
}
