//! Whether one instruction depends on another, within one computation.

use crate::analysis::users::Users;
use crate::base::IdSet;
use crate::hlo::InstrId;
use crate::hlo::Module;

/// Whether `to` depends on `from`, by operands or control edges.
///
/// Walks up from `to`; `None` when more than `limit` instructions would have to be looked at.
pub fn depends_on(module: &Module, to: InstrId, from: InstrId, limit: usize) -> Option<bool> {
    let mut seen = IdSet::new();
    let mut stack = vec![to];
    let mut looked = 0;
    while let Some(id) = stack.pop() {
        if id == from {
            return Some(true);
        }
        if !seen.insert(id) {
            continue;
        }
        looked += 1;
        if looked > limit {
            return None;
        }
        let instr = &module.instrs[id];
        stack.extend(instr.operands.iter().chain(&instr.control_predecessors));
    }
    Some(false)
}

/// Everything that depends on any of `from`, by operands, `from` included.
pub fn dependents(users: &Users, from: &[InstrId]) -> IdSet<InstrId> {
    let mut seen = IdSet::new();
    let mut stack = from.to_vec();
    while let Some(id) = stack.pop() {
        if seen.insert(id) {
            stack.extend(users.get(id));
        }
    }
    seen
}
