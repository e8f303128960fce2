//! Which computation calls which, and what kind of call it is.

use smallvec::SmallVec;
use smallvec::smallvec;

use crate::base::IdMap;
use crate::base::IdSet;
use crate::hlo::CompId;
use crate::hlo::Module;
use crate::hlo::Op;

/// How a computation is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Context {
    /// Nothing reaches it.
    #[default]
    Dead,
    /// It is a sequence of steps of its own: entry, loop body, branch, called computation.
    Control,
    /// It is the body of one operation: a reducer, a comparator, a fusion.
    Embedded,
}

/// Every computation the entry reaches, callees before callers.
pub fn post_order(module: &Module) -> Vec<CompId> {
    let mut order = Vec::new();
    let mut seen = IdSet::new();
    let mut stack = vec![(module.entry, false)];
    while let Some((comp, done)) = stack.pop() {
        if done {
            order.push(comp);
            continue;
        }
        if !seen.insert(comp) {
            continue;
        }
        stack.push((comp, true));
        for &id in module.comps[comp].instrs.iter().rev() {
            for callee in called(&module.instrs[id].op).into_iter().rev() {
                if !seen.contains(callee) {
                    stack.push((callee, false));
                }
            }
        }
    }
    order
}

/// The computations an op calls, in the order HLO text lists them.
pub fn called(op: &Op) -> SmallVec<[CompId; 2]> {
    match op {
        Op::Parameter { .. }
        | Op::Constant(_)
        | Op::Unary(_)
        | Op::Binary(_)
        | Op::Tuple
        | Op::GetTupleElement { .. } => SmallVec::new(),
        Op::Conditional { branches } => branches.iter().copied().collect(),
        Op::Reduce { body, .. } | Op::Call { body, .. } | Op::Fusion { body, .. } => {
            smallvec![*body]
        }
        Op::While { condition, body } => smallvec![*condition, *body],
        Op::CustomCall(call) => call.called.iter().copied().collect(),
        Op::Map { .. }
        | Op::ReduceWindow { .. }
        | Op::Scatter { .. }
        | Op::Sort { .. }
        | Op::Scan { .. }
        | Op::AsyncStart { .. }
        | Op::SelectAndScatter { .. }
        | Op::Collective { .. } => op.called(),
        _ => SmallVec::new(),
    }
}

/// How each computation is run. One that is called in both ways counts as control.
pub fn contexts(module: &Module) -> IdMap<CompId, Context> {
    let mut contexts: IdMap<CompId, Context> = IdMap::new();
    contexts[module.entry] = Context::Control;
    for comp in post_order(module).into_iter().rev() {
        let caller = contexts[comp];
        for &id in &module.comps[comp].instrs {
            let op = &module.instrs[id].op;
            let steps = caller == Context::Control
                && matches!(
                    op,
                    Op::While { .. }
                        | Op::Conditional { .. }
                        | Op::Call { .. }
                        | Op::AsyncStart { .. }
                );
            for callee in called(op) {
                if steps {
                    contexts[callee] = Context::Control;
                } else if contexts[callee] == Context::Dead {
                    contexts[callee] = Context::Embedded;
                }
            }
        }
    }
    contexts
}

/// The computations that are sequences of steps, callees before callers.
pub fn control(module: &Module) -> Vec<CompId> {
    let contexts = contexts(module);
    post_order(module)
        .into_iter()
        .filter(|&c| contexts[c] == Context::Control)
        .collect()
}
