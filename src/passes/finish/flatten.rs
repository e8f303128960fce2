//! Gives every computation of control flow a single caller, by cloning.
//!
//! Computations that are called by value only (fusion bodies, reducers, comparators) stay shared.

use crate::base::IdMap;
use crate::base::IdSet;
use crate::hlo::CompId;
use crate::hlo::Computation;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;

/// Clones computations until each `while`, `conditional` and `call` has its own; whether any was
/// cloned.
pub fn flatten(module: &mut Module) -> bool {
    let mut taken = IdSet::new();
    taken.insert(module.entry);
    let before = module.comps.len();
    visit(module, module.entry, &mut taken);
    let changed = module.comps.len() != before;
    if changed {
        put_callees_first(module);
    }
    changed
}

fn visit(module: &mut Module, comp: CompId, taken: &mut IdSet<CompId>) {
    for i in 0..module.comps[comp].instrs.len() {
        let id = module.comps[comp].instrs[i];
        if !is_control_flow(&module.instrs[id].op) {
            continue;
        }
        let mut op = module.instrs[id].op.clone();
        op.for_each_called_mut(&mut |called| {
            if !taken.insert(*called) {
                *called = clone(module, *called);
                taken.insert(*called);
            }
        });
        let called = op.called();
        module.instrs[id].op = op;
        for comp in called {
            visit(module, comp, taken);
        }
    }
}

fn is_control_flow(op: &Op) -> bool {
    matches!(
        op,
        Op::While { .. } | Op::Conditional { .. } | Op::Call { .. }
    )
}

/// A computation with the same instructions; what it calls is shared with the original.
fn clone(module: &mut Module, comp: CompId) -> CompId {
    let original = module.comps[comp].clone();
    let new = module.comps.push(Computation {
        instrs: Vec::new(),
        ..original.clone()
    });
    let mut map: IdMap<InstrId, Option<InstrId>> = IdMap::new();
    let mut instrs = Vec::with_capacity(original.instrs.len());
    for &id in &original.instrs {
        let mut copy = module.instrs[id].clone();
        copy.parent = new;
        for operand in &mut copy.operands {
            *operand = map[*operand].unwrap_or(*operand);
        }
        let copied = module.instrs.push(copy);
        map.set(id, Some(copied));
        instrs.push(copied);
    }
    // A control edge may point against the listed order.
    for &id in &instrs {
        let mut edges = module.instrs[id].control_predecessors.clone();
        for edge in &mut edges {
            *edge = map[*edge].unwrap_or(*edge);
        }
        module.instrs[id].control_predecessors = edges;
    }
    let target = &mut module.comps[new];
    target.instrs = instrs;
    for param in &mut target.params {
        *param = map[*param].unwrap_or(*param);
    }
    target.root = map[target.root].unwrap_or(target.root);
    new
}

/// Renumbers computations so that callees come before callers again.
fn put_callees_first(module: &mut Module) {
    let mut order = Vec::new();
    let mut seen = IdSet::new();
    for comp in module.comps.ids() {
        post_order(module, comp, &mut seen, &mut order);
    }
    let mut new: IdMap<CompId, Option<CompId>> = IdMap::new();
    for (i, &comp) in order.iter().enumerate() {
        new.set(comp, Some(crate::base::Id::from_index(i)));
    }
    let renumber = |comp: &mut CompId| *comp = new[*comp].unwrap_or(*comp);
    for instr in module.instrs.values_mut() {
        renumber(&mut instr.parent);
        instr.op.for_each_called_mut(&mut |called| renumber(called));
    }
    renumber(&mut module.entry);
    module.comps = order.iter().map(|&c| module.comps[c].clone()).collect();
}

fn post_order(module: &Module, comp: CompId, seen: &mut IdSet<CompId>, out: &mut Vec<CompId>) {
    if !seen.insert(comp) {
        return;
    }
    for &id in &module.comps[comp].instrs {
        for called in module.instrs[id].op.called() {
            post_order(module, called, seen, out);
        }
    }
    out.push(comp);
}
