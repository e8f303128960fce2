//! Walks over instructions and over the call graph.
//!
//! All walks are loops with their own stack, so depth is bounded by memory alone, and each edge is
//! looked at once. They want a module whose ids are in range; [`crate::hlo::verify`] checks that.

use crate::base::IdMap;
use crate::base::IdSet;
use crate::hlo::CollectiveKind;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;

/// The instructions of a computation, operands and control predecessors before users.
///
/// An instruction moves only when something it needs stands after it in the list.
pub fn post_order(module: &Module, comp: CompId) -> Vec<InstrId> {
    let mut out = Vec::with_capacity(module.comps[comp].instrs.len());
    let mut seen = IdSet::new();
    let starts = module.comps[comp].instrs.iter().copied();
    walk(module, starts, &mut seen, &mut out);
    out
}

fn walk(
    module: &Module,
    starts: impl IntoIterator<Item = InstrId>,
    seen: &mut IdSet<InstrId>,
    out: &mut Vec<InstrId>,
) {
    // Each entry is an instruction and how many of its predecessors have been entered.
    let mut stack: Vec<(InstrId, usize)> = Vec::new();
    for start in starts {
        if seen.insert(start) {
            stack.push((start, 0));
        }
        while let Some((id, next)) = stack.last_mut() {
            let instr = &module.instrs[*id];
            let before = instr
                .operands
                .get(*next)
                .or_else(|| instr.control_predecessors.get(*next - instr.operands.len()));
            match before {
                Some(&before) => {
                    *next += 1;
                    if seen.insert(before) {
                        stack.push((before, 0));
                    }
                }
                None => {
                    out.push(*id);
                    stack.pop();
                }
            }
        }
    }
}

/// The computations that `roots` reach by calls, callees before callers, the roots included.
pub fn comps_from(module: &Module, roots: impl IntoIterator<Item = CompId>) -> Vec<CompId> {
    let mut out = Vec::new();
    let mut seen = IdSet::new();
    let mut stack: Vec<(CompId, Vec<CompId>)> = Vec::new();
    for root in roots {
        if seen.insert(root) {
            stack.push((root, called_by(module, root)));
        }
        while let Some((comp, callees)) = stack.last_mut() {
            match callees.pop() {
                Some(callee) => {
                    if seen.insert(callee) {
                        let next = called_by(module, callee);
                        stack.push((callee, next));
                    }
                }
                None => {
                    out.push(*comp);
                    stack.pop();
                }
            }
        }
    }
    out
}

/// The computations that the entry computation reaches, callees before callers, the entry last.
pub fn reachable(module: &Module) -> Vec<CompId> {
    comps_from(module, [module.entry])
}

/// The computations that a computation's instructions call, each once, last call first.
fn called_by(module: &Module, comp: CompId) -> Vec<CompId> {
    let mut out = Vec::new();
    let mut seen = IdSet::new();
    for &id in &module.comps[comp].instrs {
        each_called(&module.instrs[id].op, |callee| {
            if seen.insert(callee) {
                out.push(callee);
            }
        });
    }
    out.reverse();
    out
}

/// The instructions that call each computation, among the computations that the entry reaches.
pub fn callers(module: &Module) -> IdMap<CompId, Vec<InstrId>> {
    let mut out: IdMap<CompId, Vec<InstrId>> = IdMap::new();
    for comp in reachable(module) {
        for &id in &module.comps[comp].instrs {
            each_called(&module.instrs[id].op, |callee| out[callee].push(id));
        }
    }
    out
}

/// Visits the computations an op calls, without copying its attributes.
pub fn each_called(op: &Op, mut visit: impl FnMut(CompId)) {
    match op {
        Op::Map { body, .. }
        | Op::Reduce { body, .. }
        | Op::ReduceWindow { body, .. }
        | Op::Scatter { body, .. }
        | Op::Sort { body, .. }
        | Op::Scan { body, .. }
        | Op::Call { body, .. }
        | Op::Fusion { body, .. }
        | Op::AsyncStart { body, .. } => visit(*body),
        Op::SelectAndScatter {
            select, scatter, ..
        } => {
            visit(*select);
            visit(*scatter);
        }
        Op::While { condition, body } => {
            visit(*condition);
            visit(*body);
        }
        Op::Conditional { branches } => branches.iter().copied().for_each(visit),
        Op::CustomCall(call) => call.called.iter().copied().for_each(visit),
        Op::Collective {
            kind:
                CollectiveKind::AllReduce { body }
                | CollectiveKind::AllReduceStart { body }
                | CollectiveKind::ReduceScatter { body, .. },
            ..
        } => visit(*body),
        _ => {}
    }
}

/// Whether running the op does more than give its value, leaving aside what it calls.
pub fn op_has_side_effect(op: &Op) -> bool {
    match op {
        Op::Infeed { .. }
        | Op::Outfeed { .. }
        | Op::Send { .. }
        | Op::SendDone { .. }
        | Op::Recv { .. }
        | Op::RecvDone { .. }
        | Op::Rng { .. }
        | Op::RngGetAndUpdateState { .. } => true,
        Op::CustomCall(call) => call.has_side_effect,
        _ => false,
    }
}

/// For each computation that the entry reaches, whether something it runs has a side effect.
pub fn side_effects(module: &Module) -> IdSet<CompId> {
    let mut out = IdSet::new();
    for comp in reachable(module) {
        let effect = module.comps[comp].instrs.iter().any(|&id| {
            let op = &module.instrs[id].op;
            let mut called = false;
            each_called(op, |callee| called |= out.contains(callee));
            called || op_has_side_effect(op)
        });
        if effect {
            out.insert(comp);
        }
    }
    out
}

/// A number for every instruction that stands in a computation: the computation's index in the
/// upper half, the position in its list in the lower.
pub fn unique_ids(module: &Module) -> IdMap<InstrId, u64> {
    let mut out = IdMap::new();
    for (index, comp) in module.comps.values().enumerate() {
        for (position, &id) in comp.instrs.iter().enumerate() {
            out.set(id, (index as u64) << 32 | position as u64);
        }
    }
    out
}
