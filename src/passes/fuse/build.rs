//! Turns groups into fusion instructions.

use std::collections::BTreeMap;

use crate::base::Result;
use crate::hlo::CompId;
use crate::hlo::Computation;
use crate::hlo::FusionKind;
use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::passes::edit::Edit;
use crate::passes::fuse::decide::Role;
use crate::passes::fuse::groups::Group;
use crate::passes::fuse::groups::Groups;
use crate::passes::pass::Changed;
use crate::shape::Shape;

/// Replaces every group of more than one instruction by a fusion, and reshapes that stand alone by
/// bitcasts.
pub fn build(module: &mut Module, comp: CompId, groups: &Groups) -> Result<Changed> {
    let order = module.comps[comp].instrs.clone();
    let mut edit = Edit::new(module);
    for group in groups.groups.values() {
        if group.merged_into.is_none() && group.members.len() > 1 {
            fuse(&mut edit, comp, groups, group);
        }
    }
    for id in order {
        if matches!(edit.instr(id).op, Op::Reshape { .. }) {
            edit.module.instrs[id].op = Op::Bitcast;
            edit.touch(comp);
        }
    }
    Ok(edit.finish())
}

fn kind(groups: &Groups, group: &Group) -> FusionKind {
    match group.hero.map(|hero| groups.roles[hero]) {
        Some(Role::Reduce) => FusionKind::Input,
        Some(Role::Contract) => FusionKind::Output,
        _ => FusionKind::Loop,
    }
}

fn fuse(edit: &mut Edit<'_>, comp: CompId, groups: &Groups, group: &Group) {
    let mut members: Vec<InstrId> = group.members.keys().copied().collect();
    members.sort_by_key(|&id| groups.position[id]);
    let main = group.hero.unwrap_or(group.roots[0]);
    let first = edit.instr(group.roots[0]);
    let name = first.name.clone();
    // The root is set when it is made.
    let body = edit.module.comps.push(Computation {
        name: format!("fused_{name}"),
        instrs: Vec::new(),
        params: Vec::new(),
        root: main,
        execution_thread: String::new(),
    });
    let mut copies: BTreeMap<InstrId, InstrId> = BTreeMap::new();
    let mut inputs: Vec<InstrId> = Vec::new();
    for &id in &members {
        for &operand in &edit.instr(id).operands.clone() {
            if !copies.contains_key(&operand) && !group.members.contains_key(&operand) {
                let parameter = parameter(edit, body, operand, inputs.len());
                edit.module.comps[body].params.push(parameter);
                copies.insert(operand, parameter);
                inputs.push(operand);
            }
        }
    }
    for &id in &members {
        let mut copy = edit.instr(id).clone();
        copy.parent = body;
        for operand in &mut copy.operands {
            *operand = copies.get(operand).copied().unwrap_or(*operand);
        }
        copies.insert(id, edit.push(copy));
    }
    let roots: Vec<InstrId> = group
        .roots
        .iter()
        .map(|r| copies.get(r).copied().unwrap_or(*r))
        .collect();
    let root = match roots.as_slice() {
        [only] => *only,
        _ => {
            let shapes = roots.iter().map(|&r| edit.instr(r).shape.clone()).collect();
            edit.push(plain(
                body,
                "tuple",
                Op::Tuple,
                &roots,
                Shape::Tuple(shapes),
            ))
        }
    };
    edit.module.comps[body].root = root;
    let op = Op::Fusion {
        kind: kind(groups, group),
        body,
        output_to_operand_aliasing: Vec::new(),
    };
    let shape = edit.instr(root).shape.clone();
    let mut fusion = plain(comp, &format!("{name}_fusion"), op, &inputs, shape);
    fusion.extra = edit.instr(main).extra.clone();
    let fusion = edit.push(fusion);
    if let [only] = group.roots.as_slice() {
        edit.replace(*only, fusion);
        return;
    }
    for (index, &root) in group.roots.iter().enumerate() {
        let shape = edit.instr(root).shape.clone();
        let op = Op::GetTupleElement { index };
        let part = edit.push(plain(comp, "get-tuple-element", op, &[fusion], shape));
        edit.replace(root, part);
    }
}

fn parameter(edit: &mut Edit<'_>, body: CompId, of: InstrId, number: usize) -> InstrId {
    let shape = edit.instr(of).shape.clone();
    let op = Op::Parameter {
        number,
        leaf_replication: Vec::new(),
    };
    edit.push(plain(body, &format!("param_{number}"), op, &[], shape))
}

fn plain(parent: CompId, name: &str, op: Op, operands: &[InstrId], shape: Shape) -> Instr {
    Instr {
        name: name.to_owned(),
        op,
        operands: operands.iter().copied().collect(),
        shape,
        control_predecessors: smallvec::SmallVec::new(),
        parent,
        extra: None,
    }
}
