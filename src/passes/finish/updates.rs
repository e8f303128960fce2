//! Updates in place inside of fusions, made possible where something else reads the array.
//!
//! XLA takes a fusion for an update in place when what makes a result is an update of a parameter,
//! whatever else reads that (`xla/hlo/analysis/alias_info.cc`), and its runtime wants one memory for
//! both. Where the rest of the fusion needs the old array, the update gets a parameter of its own,
//! which is then the copy, and the rest reads the original.

use crate::analysis::alias;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::passes::finish::copies;

/// Gives such updates a parameter of their own; whether there were any.
pub fn part_updates(module: &mut Module) -> bool {
    let comps = module.comps.ids();
    let all = comps.flat_map(|comp| module.comps[comp].instrs.clone());
    let fusions: Vec<(InstrId, CompId)> = all
        .filter_map(|id| match module.instrs[id].op {
            Op::Fusion { body, .. } => Some((id, body)),
            _ => None,
        })
        .collect();
    let mut changed = false;
    for &(fusion, body) in &fusions {
        if fusions.iter().filter(|(_, other)| *other == body).count() > 1 {
            continue;
        }
        for leaf in 0..roots(module, body).len() {
            changed |= part(module, fusion, body, leaf);
        }
    }
    changed
}

fn roots(module: &Module, body: CompId) -> Vec<InstrId> {
    let root = module.comps[body].root;
    match &module.instrs[root].op {
        Op::Tuple => module.instrs[root].operands.to_vec(),
        _ => vec![root],
    }
}

/// Parts the update that makes a result leaf from what else reads its array.
fn part(module: &mut Module, fusion: InstrId, body: CompId, leaf: usize) -> bool {
    let roots = roots(module, body);
    let update = roots[leaf];
    if !alias::is_in_place(&module.instrs[update].op) || roots[..leaf].contains(&update) {
        return false;
    }
    let old = module.instrs[update].operands[0];
    let through = matches!(module.instrs[old].op, Op::Bitcast);
    let param = match through {
        true => module.instrs[old].operands[0],
        false => old,
    };
    let Op::Parameter { number, .. } = module.instrs[param].op else {
        return false;
    };
    let shares = alias::shares(module, fusion);
    if shares
        .iter()
        .any(|s| s.operand == number && s.result_leaf == leaf)
    {
        return false;
    }
    let operand = module.instrs[fusion].operands[number];
    let own = Op::Parameter {
        number: module.comps[body].params.len(),
        leaf_replication: Vec::new(),
    };
    let mut made = vec![twin(module, param, own, &[])];
    module.comps[body].params.push(made[0]);
    module.instrs[fusion].operands.push(operand);
    if through {
        made.push(twin(module, old, Op::Bitcast, &[made[0]]));
    }
    module.instrs[update].operands[0] = made[made.len() - 1];
    module.comps[body].instrs.splice(0..0, made);
    true
}

/// An instruction of the shape and in the place of another.
fn twin(module: &mut Module, like: InstrId, op: Op, operands: &[InstrId]) -> InstrId {
    let shape = module.instrs[like].shape.clone();
    copies::push(module, like, op, operands, shape)
}
