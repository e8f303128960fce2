//! Gives every computation of control flow a single caller, by cloning.
//!
//! Computations that are called by value only (fusion bodies, reducers, comparators) stay shared.

use std::collections::BTreeMap;

use crate::base::Diagnostic;
use crate::base::IdMap;
use crate::base::IdSet;
use crate::base::Result;
use crate::base::codes;
use crate::hlo::CompId;
use crate::hlo::Computation;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;

/// Instructions a module may grow to by cloning.
const MAX_INSTRUCTIONS: usize = 1_000_000;
/// Levels of loops, branches and calls within each other.
const MAX_NESTING: usize = 128;

/// Clones computations until each `while`, `conditional` and `call` has its own; whether any was
/// cloned.
///
/// # Errors
/// `INPUT_LIMIT` when control flow nests too deep, or too many instructions would be made.
pub fn flatten(module: &mut Module) -> Result<bool> {
    let mut taken = IdSet::new();
    taken.insert(module.entry);
    let before = module.comps.len();
    visit(module, module.entry, &mut taken, 0)?;
    let changed = module.comps.len() != before;
    if changed {
        put_callees_first(module);
    }
    Ok(changed)
}

fn visit(module: &mut Module, comp: CompId, taken: &mut IdSet<CompId>, depth: usize) -> Result<()> {
    if depth > MAX_NESTING {
        let message = format!("loops and branches nest deeper than {MAX_NESTING} levels");
        return Err(Diagnostic::error(codes::INPUT_LIMIT, message));
    }
    for i in 0..module.comps[comp].instrs.len() {
        let id = module.comps[comp].instrs[i];
        if !is_control_flow(&module.instrs[id].op) {
            continue;
        }
        let before = module.instrs.len();
        let mut op = module.instrs[id].op.clone();
        op.for_each_called_mut(&mut |called| {
            if !taken.insert(*called) {
                *called = clone(module, *called);
                taken.insert(*called);
            }
        });
        let called = op.called();
        module.instrs[id].op = op;
        if module.instrs.len() > MAX_INSTRUCTIONS.max(before) {
            let message = format!(
                "giving each loop and branch its own computations makes more than \
                 {MAX_INSTRUCTIONS} instructions"
            );
            return Err(Diagnostic::error(codes::INPUT_LIMIT, message));
        }
        for comp in called {
            visit(module, comp, taken, depth + 1)?;
        }
    }
    Ok(())
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
    // Not a dense map: there may be many clones of small parts of a large module.
    let mut map: BTreeMap<InstrId, InstrId> = BTreeMap::new();
    let renamed =
        |map: &BTreeMap<InstrId, InstrId>, id: InstrId| map.get(&id).copied().unwrap_or(id);
    let mut instrs = Vec::with_capacity(original.instrs.len());
    for &id in &original.instrs {
        let mut copy = module.instrs[id].clone();
        copy.parent = new;
        for operand in &mut copy.operands {
            *operand = renamed(&map, *operand);
        }
        let copied = module.instrs.push(copy);
        map.insert(id, copied);
        instrs.push(copied);
    }
    // A control edge may point against the listed order.
    for &id in &instrs {
        let mut edges = module.instrs[id].control_predecessors.clone();
        for edge in &mut edges {
            *edge = renamed(&map, *edge);
        }
        module.instrs[id].control_predecessors = edges;
    }
    let target = &mut module.comps[new];
    target.instrs = instrs;
    for param in &mut target.params {
        *param = renamed(&map, *param);
    }
    target.root = renamed(&map, target.root);
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

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::front::hlo_text::parse;

    /// Computations that each branch to the one before, `calls` times.
    fn branches(levels: usize, calls: usize) -> Module {
        let mut text = "HloModule m\nc0 { ROOT x = f32[] parameter(0) }\n".to_owned();
        for level in 1..=levels {
            let callee = format!("c{}", level - 1);
            write!(text, "c{level} {{\n x0 = f32[] parameter(0)\n").unwrap();
            text.push_str(" p = pred[] compare(x0, x0), direction=EQ\n");
            for i in 1..=calls {
                let root = if i == calls { "ROOT " } else { "" };
                writeln!(
                    text,
                    " {root}x{i} = f32[] conditional(p, x{0}, x{0}), true_computation={callee}, false_computation=c0",
                    i - 1
                )
                .unwrap();
            }
            text.push_str("}\n");
        }
        write!(
            text,
            "ENTRY e {{\n x = f32[] parameter(0)\n ROOT r = f32[] call(x), to_apply=c{levels}\n}}\n"
        )
        .unwrap();
        parse(&text).expect("the text is a module")
    }

    #[test]
    fn each_branch_gets_its_own_computation() {
        let mut module = branches(3, 2);
        assert_eq!(flatten(&mut module).ok(), Some(true));
        // The entry, 1 + 2 + 4 callers, and `c0` for each of their conditionals, twice at the end.
        assert_eq!(module.comps.len(), 1 + (1 + 2 + 4) + (2 + 4 + 16));
    }

    #[test]
    fn what_would_grow_or_nest_too_much_is_refused() {
        for (levels, calls) in [(40, 2), (1000, 1)] {
            let error = flatten(&mut branches(levels, calls)).unwrap_err();
            assert_eq!(error.code, codes::INPUT_LIMIT, "{levels} {calls}");
        }
    }
}
