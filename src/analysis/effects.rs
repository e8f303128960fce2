//! Which instructions do something besides giving a value, and which may not be merged.

use crate::base::IdSet;
use crate::hlo::CompId;
use crate::hlo::Instr;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::visit;

/// The computations of a module that have effects.
#[derive(Clone, Debug)]
pub struct Effects {
    comps: IdSet<CompId>,
}

impl Effects {
    /// Looks at every computation the entry reaches.
    pub fn of(module: &Module) -> Self {
        Self {
            comps: visit::side_effects(module),
        }
    }
    /// Whether the instruction must stay even when nothing uses its value.
    pub fn has(&self, instr: &Instr) -> bool {
        let mut has = visit::op_has_side_effect(&instr.op);
        visit::each_called(&instr.op, |c| has |= self.comps.contains(c));
        has
    }
}

/// Whether two runs of the op on equal operands may give different values.
pub fn is_nondeterministic(op: &Op) -> bool {
    matches!(op, Op::Rng { .. } | Op::RngGetAndUpdateState { .. })
}
