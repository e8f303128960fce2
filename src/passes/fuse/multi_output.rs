//! Merges groups that read the same large value and do not depend on each other.
//!
//! Loops merge with loops of equal dimensions, reductions with reductions of equal input and
//! dimensions; the common value is then read once.

use crate::base::Id;
use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::passes::fuse::decide;
use crate::passes::fuse::decide::Decision;
use crate::passes::fuse::decide::Role;
use crate::passes::fuse::groups::GroupId;
use crate::passes::fuse::groups::Groups;
use crate::passes::fuse::vertical::SEARCH_LIMIT;
use crate::passes::pass::Rewrites;

/// Readers of one value that are compared with each other.
const MAX_READERS: usize = 8;

/// Merges what may be merged.
pub fn merge_siblings(module: &Module, groups: &mut Groups, rewrites: &mut Rewrites<'_>) {
    for i in 0..module.comps[groups.comp].instrs.len() {
        let id = module.comps[groups.comp].instrs[i];
        if decide::elements(module, id) <= decide::SMALL {
            continue;
        }
        let readers = readers(groups, id);
        for a in 0..readers.len() {
            for b in a + 1..readers.len() {
                let (a, b) = (live(groups, readers[a]), live(groups, readers[b]));
                if a != b
                    && may_merge(module, groups, a, b).is_allowed()
                    && rewrites.take("fuse-siblings", module, id)
                {
                    merge(groups, a, b);
                }
            }
        }
    }
}

/// The groups that read `id` as an input.
fn readers(groups: &Groups, id: InstrId) -> Vec<GroupId> {
    let mut readers: Vec<GroupId> = groups
        .consumers(id)
        .into_iter()
        .map(|g| live(groups, g))
        .filter(|&g| groups.groups[g].inputs.contains(&id))
        .collect();
    readers.sort_unstable();
    readers.dedup();
    readers.truncate(MAX_READERS);
    readers
}

fn live(groups: &Groups, mut id: GroupId) -> GroupId {
    while let Some(into) = groups.groups[id].merged_into {
        id = into;
    }
    id
}

fn may_merge(module: &Module, groups: &Groups, a: GroupId, b: GroupId) -> Decision {
    let (x, y) = (&groups.groups[a], &groups.groups[b]);
    if x.nodes + y.nodes > decide::MAX_NODES {
        return Decision::Forbid("the kernel would be too large");
    }
    if x.inputs.union(&y.inputs).count() > decide::MAX_INPUTS {
        return Decision::Forbid("the kernel would read too many values");
    }
    if x.roots.len() + y.roots.len() > decide::MAX_INPUTS / 4 {
        return Decision::Forbid("the kernel would write too many values");
    }
    let alike = match (x.hero, y.hero) {
        (None, None) => {
            let first = module.instr(x.roots[0]);
            let plain = |r: &InstrId| {
                let instr = module.instr(*r);
                groups.roles[*r] == Role::Element && (!moves(instr) || turns_alike(first, instr))
            };
            x.roots.iter().chain(&y.roots).all(plain)
                && module.shape(x.roots[0]).as_array().map(|s| &s.dims)
                    == module.shape(y.roots[0]).as_array().map(|s| &s.dims)
        }
        (Some(p), Some(q)) => reduce_alike(module, module.instr(p), module.instr(q)),
        _ => false,
    };
    if !alike {
        return Decision::Forbid("the kernels have different loops");
    }
    for (from, to) in [(a, b), (b, a)] {
        let mut starts = Vec::new();
        for &root in &groups.groups[from].roots {
            starts.extend(groups.followers(root));
        }
        if groups.reaches(&starts, to, SEARCH_LIMIT) != Some(false) {
            return Decision::Forbid("one kernel needs the other's result");
        }
    }
    Decision::Allow
}

/// Ops whose kernels are shaped by how they move elements.
fn moves(instr: &Instr) -> bool {
    matches!(
        instr.op,
        Op::Transpose { .. } | Op::Concatenate { .. } | Op::Pad { .. } | Op::Gather { .. }
    )
}

/// Transposes by one permutation.
fn turns_alike(a: &Instr, b: &Instr) -> bool {
    matches!(a.op, Op::Transpose { .. }) && a.op == b.op
}

fn reduce_alike(module: &Module, p: &Instr, q: &Instr) -> bool {
    let (Op::Reduce { dims: a, .. }, Op::Reduce { dims: b, .. }) = (&p.op, &q.op) else {
        return false;
    };
    let input = |i: &Instr| {
        module
            .shape(i.operands[0])
            .as_array()
            .map(|s| s.dims.clone())
    };
    a == b && p.operands.len() == 2 && q.operands.len() == 2 && input(p) == input(q)
}

/// Merges `b` into `a`.
fn merge(groups: &mut Groups, a: GroupId, b: GroupId) {
    debug_assert!(a.index() != b.index(), "a group is not merged into itself");
    let other = std::mem::take(&mut groups.groups[b]);
    for &id in other.members.keys() {
        let of = &mut groups.of[id];
        of.retain(|g| *g != b);
        if !of.contains(&a) {
            of.push(a);
        }
    }
    let group = &mut groups.groups[a];
    for (id, places) in other.members {
        let mine = group.members.entry(id).or_default();
        for place in places {
            if !mine.iter().any(|p| p.id == place.id) {
                mine.push(place);
            }
        }
    }
    for root in other.roots {
        if !group.roots.contains(&root) {
            group.roots.push(root);
        }
    }
    group.inputs.extend(other.inputs);
    let members = &group.members;
    group.inputs.retain(|id| !members.contains_key(id));
    group.nodes = group.members.values().map(|p| p.len()).sum();
    group.hero = group.hero.or(other.hero);
    group.last = group.last.max(other.last);
    groups.groups[b].merged_into = Some(a);
}
