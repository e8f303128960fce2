//! Loops that never run, loop state that never changes, and loop state nobody reads.
//!
//! Each body and condition must have one caller (see `flatten-call-graph`).

use crate::analysis::call_graph;
use crate::analysis::effects::Effects;
use crate::analysis::trip_count;
use crate::analysis::users::Users;
use crate::base::IdSet;
use crate::base::Result;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::Stage;
use crate::passes::edit::Edit;
use crate::passes::pass::Changed;
use crate::passes::pass::Pass;
use crate::passes::pass::PassCx;
use crate::passes::simplify::splat;
use crate::shape::Dims;
use crate::shape::Shape;

/// The pass.
pub struct Loops;

impl Pass for Loops {
    fn name(&self) -> &'static str {
        "loops"
    }
    fn stages(&self) -> (Stage, Stage) {
        (Stage::Imported, Stage::Imported)
    }
    fn rules(&self) -> Vec<&'static str> {
        vec!["loop-never-runs", "loop-invariants", "loop-unread"]
    }
    fn run(&self, module: &mut Module, cx: &mut PassCx<'_>) -> Result<Changed> {
        let mut changed = Changed::No;
        // Outer loops first: what they no longer carry, inner ones need not give.
        for comp in call_graph::control(module).into_iter().rev() {
            let loops: Vec<InstrId> = module.comps[comp]
                .instrs
                .iter()
                .copied()
                .filter(|&id| matches!(module.instrs[id].op, Op::While { .. }))
                .collect();
            for id in loops {
                let rewrites = &mut cx.rewrites;
                if trip_count::trip_count(module, id) == Some(0)
                    && rewrites.take("loop-never-runs", module, id)
                {
                    let init = module.instrs[id].operands[0];
                    let mut edit = Edit::new(module);
                    edit.replace(id, init);
                    changed = changed.or(edit.finish());
                    continue;
                }
                if rewrites.take("loop-invariants", module, id) {
                    changed = changed.or(forward_invariants(module, id)?);
                }
                if rewrites.take("loop-unread", module, id) {
                    changed = changed.or(drop_unread(module, id)?);
                }
            }
        }
        Ok(changed)
    }
}

/// The parts of a loop whose state is a tuple.
struct Parts {
    condition: CompId,
    body: CompId,
    init: Vec<InstrId>,
    next: Vec<InstrId>,
}

fn parts(module: &Module, id: InstrId) -> Option<Parts> {
    let instr = module.instr(id);
    let Op::While { condition, body } = instr.op else {
        return None;
    };
    let init = module.instr(instr.operands[0]);
    let root = module.root(body);
    if init.op != Op::Tuple || root.op != Op::Tuple {
        return None;
    }
    Some(Parts {
        condition,
        body,
        init: init.operands.to_vec(),
        next: root.operands.to_vec(),
    })
}

/// The state element that `id` reads in `comp`.
fn element(module: &Module, comp: CompId, id: InstrId) -> Option<usize> {
    match module.instr(id).op {
        Op::GetTupleElement { index }
            if module.instr(id).operands[0] == module.comps[comp].params[0] =>
        {
            Some(index)
        }
        _ => None,
    }
}

/// State that the body hands on untouched has its first value after the loop; when that is a
/// constant of one value, the body and the condition read the constant.
fn forward_invariants(module: &mut Module, id: InstrId) -> Result<Changed> {
    let Some(parts) = parts(module, id) else {
        return Ok(Changed::No);
    };
    let invariant: Vec<bool> = parts
        .next
        .iter()
        .enumerate()
        .map(|(i, &next)| element(module, parts.body, next) == Some(i))
        .collect();
    if !invariant.contains(&true) {
        return Ok(Changed::No);
    }
    let parent = module.instr(id).parent;
    let mut edit = Edit::new(module);
    let mut any = false;
    for user in edit.module.comps[parent].instrs.clone() {
        if let Op::GetTupleElement { index } = edit.instr(user).op
            && edit.instr(user).operands[0] == id
            && invariant[index]
        {
            edit.replace(user, parts.init[index]);
            any = true;
        }
    }
    for comp in [parts.body, parts.condition] {
        for user in edit.module.comps[comp].instrs.clone() {
            let Some(index) = element(edit.module, comp, user) else {
                continue;
            };
            // Read by the hand-over alone it needs no constant.
            if !invariant[index] {
                continue;
            }
            let Some(value) = splat::splat(edit.module, parts.init[index]) else {
                continue;
            };
            let read = edit.module.comps[comp].instrs.iter().any(|&u| {
                u != edit.module.comps[comp].root && edit.instr(u).operands.contains(&user)
            });
            let read = read || comp == parts.condition;
            let Some(shape) = edit.array(user).cloned() else {
                continue;
            };
            if !read {
                continue;
            }
            let op = Op::Constant(crate::literal::Literal::Array(value));
            let mut constant = edit.op(comp, op, &[])?;
            if shape.rank() > 0 {
                let mut shape = shape.clone();
                shape.layout = None;
                let fill = Op::Broadcast { dims: Dims::new() };
                constant = edit.shaped(comp, fill, &[constant], Shape::Array(shape))?;
            }
            redirect_reads(&mut edit, comp, user, constant);
            any = true;
        }
    }
    edit.finish();
    Ok(Changed::when(any))
}

/// Points every reader of `old` but the root at `new`.
fn redirect_reads(edit: &mut Edit<'_>, comp: CompId, old: InstrId, new: InstrId) {
    let root = edit.module.comps[comp].root;
    for user in edit.module.comps[comp].instrs.clone() {
        let hands_on = user == root && edit.instr(root).op == Op::Tuple;
        if !hands_on {
            for operand in &mut edit.module.instrs[user].operands {
                if *operand == old {
                    *operand = new;
                }
            }
        }
    }
    edit.touch(comp);
}

/// Drops state elements that neither the program after the loop, nor the condition, nor another
/// element that stays, reads.
fn drop_unread(module: &mut Module, id: InstrId) -> Result<Changed> {
    let Some(parts) = parts(module, id) else {
        return Ok(Changed::No);
    };
    let parent = module.instr(id).parent;
    let users = Users::of(module, &[parent, parts.body, parts.condition]);
    let (body_param, cond_param) = (
        module.comps[parts.body].params[0],
        module.comps[parts.condition].params[0],
    );
    let is_read = |u: &InstrId| matches!(module.instr(*u).op, Op::GetTupleElement { .. });
    let only_elements = [id, body_param, cond_param]
        .iter()
        .all(|&v| users.get(v).iter().all(is_read));
    // A root that is also used within, or a parameter that is a root, is left alone.
    if !only_elements
        || module.comps[parent].root == id
        || users.count(module.comps[parts.body].root) > 0
    {
        return Ok(Changed::No);
    }
    let live = live_elements(module, &parts, id, &users);
    if !live.contains(&false) {
        return Ok(Changed::No);
    }
    keep(module, id, &parts, &live)?;
    Ok(Changed::Yes)
}

fn live_elements(module: &Module, parts: &Parts, id: InstrId, users: &Users) -> Vec<bool> {
    let mut live = vec![false; parts.next.len()];
    let mut work: Vec<usize> = Vec::new();
    let read = |v: InstrId| -> Vec<usize> {
        users
            .get(v)
            .iter()
            .filter_map(|&u| match module.instr(u).op {
                Op::GetTupleElement { index } => Some(index),
                _ => None,
            })
            .collect()
    };
    work.extend(read(id));
    work.extend(read(module.comps[parts.condition].params[0]));
    // What effects in the body need is live, and so is what a live element is made of.
    let effects = Effects::of(module);
    let mut seen: IdSet<InstrId> = IdSet::new();
    let mut stack: Vec<InstrId> = module.comps[parts.body]
        .instrs
        .iter()
        .copied()
        .filter(|&i| effects.has(module.instr(i)))
        .collect();
    loop {
        while let Some(i) = stack.pop() {
            if !seen.insert(i) {
                continue;
            }
            if let Some(index) = element(module, parts.body, i) {
                work.push(index);
            }
            stack.extend(&module.instr(i).operands);
        }
        let Some(index) = work.pop() else {
            return live;
        };
        if !std::mem::replace(&mut live[index], true) {
            stack.push(parts.next[index]);
        }
    }
}

/// Leaves the loop the live elements only.
fn keep(module: &mut Module, id: InstrId, parts: &Parts, live: &[bool]) -> Result<()> {
    let kept: Vec<usize> = (0..live.len()).filter(|&i| live[i]).collect();
    let mut place = vec![None; live.len()];
    for (new, &old) in kept.iter().enumerate() {
        place[old] = Some(new);
    }
    let parent = module.instr(id).parent;
    let param = |comp: CompId| module.comps[comp].params[0];
    let states = [
        (parent, id),
        (parts.body, param(parts.body)),
        (parts.condition, param(parts.condition)),
    ];
    let mut edit = Edit::new(module);
    let pick = |list: &[InstrId]| -> Vec<InstrId> { kept.iter().map(|&i| list[i]).collect() };
    let init = edit.op(parent, Op::Tuple, &pick(&parts.init))?;
    let shape = edit.instr(init).shape.clone();
    for (comp, state) in states {
        edit.module.instrs[state].shape = shape.clone();
        for i in 0..edit.module.comps[comp].instrs.len() {
            let user = edit.module.comps[comp].instrs[i];
            let instr = &mut edit.module.instrs[user];
            if let Op::GetTupleElement { index } = &mut instr.op
                && instr.operands[0] == state
                && let Some(place) = place[*index]
            {
                *index = place;
            }
        }
        edit.touch(comp);
    }
    edit.module.instrs[id].operands = smallvec::smallvec![init];
    let root = edit.op(parts.body, Op::Tuple, &pick(&parts.next))?;
    edit.module.comps[parts.body].root = root;
    edit.finish();
    Ok(())
}
