//! Rules S1 to S10: ids, lists, order, parameters, the call graph, the entry.

use crate::base::IdMap;
use crate::base::IdSet;
use crate::base::codes::MODULE_STRUCTURE;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::infer::agree;
use crate::hlo::infer::text;
use crate::hlo::verify::Report;
use crate::hlo::visit;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// S1: every id is in range.
pub(super) fn ids(report: &mut Report<'_>) {
    let module = report.module;
    if module.comps.get(module.entry).is_none() {
        report.module_error(MODULE_STRUCTURE, "the module has no entry computation");
    }
    for (comp, computation) in module.comps.iter() {
        let name = &computation.name;
        let there = |id: &InstrId| module.instrs.get(*id).is_some();
        if !computation.instrs.iter().all(there) || !computation.params.iter().all(there) {
            let message = format!("computation `{name}` lists an instruction that is not there");
            report.comp_error(MODULE_STRUCTURE, comp, message);
            continue;
        }
        if !there(&computation.root) {
            let message = format!("computation `{name}` has no root");
            report.comp_error(MODULE_STRUCTURE, comp, message);
        }
        for &id in &computation.instrs {
            let instr = &module.instrs[id];
            let mut all = instr.operands.iter().chain(&instr.control_predecessors);
            if !all.all(there) {
                let message = format!("`{}` needs an instruction that is not there", instr.name);
                report.instr_error(MODULE_STRUCTURE, id, message);
            }
            let mut missing = false;
            visit::each_called(&instr.op, |c| missing |= module.comps.get(c).is_none());
            if missing {
                let message = format!("`{}` calls a computation that is not there", instr.name);
                report.instr_error(MODULE_STRUCTURE, id, message);
            }
        }
    }
}

/// S2 to S6: what one computation must be.
pub(super) fn computations(report: &mut Report<'_>) {
    let module = report.module;
    let mut seen: IdSet<InstrId> = IdSet::new();
    // One more than the position in the list; zero for instructions of other computations.
    let mut position: IdMap<InstrId, usize> = IdMap::new();
    for (comp, computation) in module.comps.iter() {
        for (i, &id) in computation.instrs.iter().enumerate() {
            let instr = &module.instrs[id];
            if !seen.insert(id) || instr.parent != comp {
                let message = format!(
                    "`{}` stands in computation `{}` and elsewhere",
                    instr.name, computation.name
                );
                report.instr_error(MODULE_STRUCTURE, id, message);
            }
            position.set(id, i + 1);
        }
        if position[computation.root] == 0 || module.instrs[computation.root].parent != comp {
            let message = format!(
                "the root of computation `{}` is `{}`, which does not stand in it",
                computation.name, module.instrs[computation.root].name
            );
            report.comp_error(MODULE_STRUCTURE, comp, message);
        }
        for &id in &computation.instrs {
            let instr = &module.instrs[id];
            let edges = [
                ("operand", instr.operands.as_slice()),
                ("control predecessor", instr.control_predecessors.as_slice()),
            ];
            for (what, befores) in edges {
                for &before in befores {
                    edge(report, comp, id, what, before, &position);
                }
            }
        }
        parameters(report, comp);
        for &id in &computation.instrs {
            position.set(id, 0);
        }
    }
}

fn edge(
    report: &mut Report<'_>,
    comp: CompId,
    id: InstrId,
    what: &str,
    before: InstrId,
    position: &IdMap<InstrId, usize>,
) {
    let module = report.module;
    let (name, other) = (&module.instrs[id].name, &module.instrs[before].name);
    let (at, before_at) = (position[id], position[before]);
    if before_at == 0 || module.instrs[before].parent != comp {
        let message = format!("{what} `{other}` of `{name}` is not of the same computation");
        report.instr_error(MODULE_STRUCTURE, id, message);
    } else if before_at >= at {
        let message = format!("{what} `{other}` of `{name}` does not stand before it");
        report.instr_error(MODULE_STRUCTURE, id, message);
    }
}

/// S6.
fn parameters(report: &mut Report<'_>, comp: CompId) {
    let module = report.module;
    let computation = &module.comps[comp];
    let count = computation
        .instrs
        .iter()
        .filter(|&&id| matches!(module.instrs[id].op, Op::Parameter { .. }))
        .count();
    if count != computation.params.len() {
        let message = format!(
            "computation `{}` has {count} parameter instructions and lists {}",
            computation.name,
            computation.params.len()
        );
        report.comp_error(MODULE_STRUCTURE, comp, message);
        return;
    }
    for (i, &id) in computation.params.iter().enumerate() {
        let instr = &module.instrs[id];
        let numbered = matches!(instr.op, Op::Parameter { number, .. } if number == i);
        if !numbered || instr.parent != comp {
            let message = format!(
                "computation `{}` has no parameter {i}, or has it twice",
                computation.name
            );
            report.comp_error(MODULE_STRUCTURE, comp, message);
        }
    }
}

/// S7 to S10.
pub(super) fn calls(report: &mut Report<'_>) {
    let module = report.module;
    if let Some(comp) = cycle(module) {
        let message = format!("computation `{}` calls itself", module.comps[comp].name);
        report.comp_error(MODULE_STRUCTURE, comp, message);
        return;
    }
    let effects = effects_everywhere(module);
    for computation in module.comps.values() {
        for &id in &computation.instrs {
            let instr = &module.instrs[id];
            let mut guilty = None;
            let mut calls_entry = false;
            visit::each_called(&instr.op, |callee| {
                calls_entry |= callee == module.entry;
                if is_element_function(&instr.op) && effects.contains(callee) {
                    guilty = Some(callee);
                }
            });
            if calls_entry {
                let message = format!("`{}` calls the entry computation", instr.name);
                report.instr_error(MODULE_STRUCTURE, id, message);
            }
            if let Some(callee) = guilty {
                let message = format!(
                    "`{}` applies computation `{}`, which has side effects or is collective, to elements",
                    instr.name, module.comps[callee].name
                );
                report.instr_error(MODULE_STRUCTURE, id, message);
            }
        }
    }
    entry_layout(report);
}

/// A computation that reaches itself.
fn cycle(module: &Module) -> Option<CompId> {
    // 0 not seen, 1 on the path, 2 done.
    let mut state: IdMap<CompId, u8> = IdMap::new();
    for start in module.comps.ids() {
        let mut stack: Vec<(CompId, Vec<CompId>)> = Vec::new();
        if state[start] == 0 {
            state.set(start, 1);
            stack.push((start, callees(module, start)));
        }
        while let Some((comp, rest)) = stack.last_mut() {
            match rest.pop() {
                Some(next) if state[next] == 1 => return Some(next),
                Some(next) if state[next] == 0 => {
                    state.set(next, 1);
                    stack.push((next, callees(module, next)));
                }
                Some(_) => {}
                None => {
                    state.set(*comp, 2);
                    stack.pop();
                }
            }
        }
    }
    None
}

fn callees(module: &Module, comp: CompId) -> Vec<CompId> {
    let mut out = Vec::new();
    for &id in &module.comps[comp].instrs {
        visit::each_called(&module.instrs[id].op, |callee| out.push(callee));
    }
    out.sort_unstable();
    out.dedup();
    out
}

/// The computations that have side effects or meet other devices, reached from the entry or not.
fn effects_everywhere(module: &Module) -> IdSet<CompId> {
    let mut out = IdSet::new();
    for comp in visit::comps_from(module, module.comps.ids()) {
        let effect = module.comps[comp].instrs.iter().any(|&id| {
            let op = &module.instrs[id].op;
            let mut called = false;
            visit::each_called(op, |callee| called |= out.contains(callee));
            let meets = matches!(op, Op::Collective { .. });
            called || meets || visit::op_has_side_effect(op)
        });
        if effect {
            out.insert(comp);
        }
    }
    out
}

/// Whether the op applies what it calls to elements, in an order it does not promise.
fn is_element_function(op: &Op) -> bool {
    matches!(
        op,
        Op::Map { .. }
            | Op::Reduce { .. }
            | Op::ReduceWindow { .. }
            | Op::SelectAndScatter { .. }
            | Op::Scatter { .. }
            | Op::Sort { .. }
            | Op::Collective { .. }
    )
}

/// S10.
fn entry_layout(report: &mut Report<'_>) {
    let module = report.module;
    let Some(layout) = &module.config.entry_layout else {
        return;
    };
    let entry = &module.comps[module.entry];
    let (found, wanted) = (layout.parameters.len(), entry.params.len());
    if found != wanted {
        let message = format!("the entry layout has {found} parameters, the entry has {wanted}");
        report.module_error(MODULE_STRUCTURE, message);
        return;
    }
    for (i, shape) in layout.parameters.iter().enumerate() {
        let wanted = &module.instrs[entry.params[i]].shape;
        if !same_entry_shape(shape, wanted) {
            let (found, wanted) = (text(shape), text(wanted));
            let message = format!("the entry layout has parameter {i} as {found}, not {wanted}");
            report.module_error(MODULE_STRUCTURE, message);
        }
    }
    let wanted = &module.instrs[entry.root].shape;
    if !same_entry_shape(&layout.result, wanted) {
        let (found, wanted) = (text(&layout.result), text(wanted));
        let message = format!("the entry layout has the result as {found}, not {wanted}");
        report.module_error(MODULE_STRUCTURE, message);
    }
}

/// Equal shapes, or in parts the physical shape of the caller's, which the entry has once layouts are
/// dropped.
fn same_entry_shape(layout: &Shape, entry: &Shape) -> bool {
    if agree(layout, entry) {
        return true;
    }
    let (a, b) = (layout.leaves(), entry.leaves());
    let mut pairs = a.iter().zip(&b);
    a.len() == b.len() && pairs.all(|((i, a), (j, b))| i == j && (agree(a, b) || stands_for(a, b)))
}

/// Whether the entry has an array of the caller's in another form: a compiled program has a dynamic
/// one as its bytes, and a module without layouts has any as its physical dimensions.
fn stands_for(caller: &Shape, entry: &Shape) -> bool {
    let (Some(caller), Some(entry)) = (caller.as_array(), entry.as_array()) else {
        return false;
    };
    let is_bytes = entry.ty == PrimitiveType::U8 && entry.dims.as_slice() == [caller.byte_size()];
    if caller.is_dynamic() && is_bytes {
        return true;
    }
    let order = caller.layout_or_default().minor_to_major;
    let physical = order.iter().rev().map(|&d| caller.dims.get(d).copied());
    let physical: Option<Vec<usize>> = physical.collect();
    caller.ty == entry.ty && physical.as_deref() == Some(entry.dims.as_slice())
}
