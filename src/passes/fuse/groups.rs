//! Groups of instructions that become kernels.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use smallvec::SmallVec;

use crate::analysis::users::Users;
use crate::base::Arena;
use crate::base::IdMap;
use crate::base::IdSet;
use crate::define_id;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::passes::fuse::decide::Role;

define_id! {
    /// A group of instructions that becomes one kernel.
    pub struct GroupId, "group";
}

/// A place within a kernel at which an element is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// Equal for places with equal indices.
    pub id: u64,
    /// How often it is passed in a run of the kernel.
    pub evals: f64,
}

/// The place of the results.
pub const ROOT_PLACE: u64 = 1;

/// The places of one instruction in one group.
pub type Places = SmallVec<[Place; 2]>;

/// Instructions that become one kernel.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The instructions whose values leave the group.
    pub roots: Vec<InstrId>,
    /// Every instruction of the group and the places at which it is computed.
    pub members: BTreeMap<InstrId, Places>,
    /// What the members read from outside.
    pub inputs: BTreeSet<InstrId>,
    /// The reduction, dot or convolution that shapes the kernel.
    pub hero: Option<InstrId>,
    /// Elements emitted, counted at each place; sources cost nothing and are not counted.
    pub nodes: usize,
    /// Work an element that is done again.
    pub recompute: u32,
    /// The place in the computation's list of its last member.
    pub last: usize,
    /// The group this one was merged into.
    pub merged_into: Option<GroupId>,
}

/// The groups of one computation.
pub struct Groups {
    /// The computation.
    pub comp: CompId,
    /// Users of every value of it.
    pub users: Users,
    /// What control edges lead to from each instruction.
    pub after: IdMap<InstrId, SmallVec<[InstrId; 1]>>,
    /// What part each instruction can play.
    pub roles: IdMap<InstrId, Role>,
    /// The place of each instruction in the computation's list, operands before users.
    pub position: IdMap<InstrId, usize>,
    /// Every group, merged ones too.
    pub groups: Arena<GroupId, Group>,
    /// The groups each instruction is a member of.
    pub of: IdMap<InstrId, SmallVec<[GroupId; 1]>>,
}

impl Groups {
    /// The live groups that read `id` or have it as an inner value: those of its users.
    pub fn consumers(&self, id: InstrId) -> Vec<GroupId> {
        let mut out: Vec<GroupId> = Vec::new();
        for &user in self.users.get(id) {
            for &group in &self.of[user] {
                if !out.contains(&group) {
                    out.push(group);
                }
            }
        }
        out
    }
    /// What comes after `id`: its users, and where its control edges lead.
    pub fn followers(&self, id: InstrId) -> impl Iterator<Item = InstrId> {
        self.users.get(id).iter().chain(&self.after[id]).copied()
    }
    /// Whether any edge that leaves `from` (the given instructions), by way of other groups and
    /// instructions, leads into `into`. `None` when the search looked at too much.
    pub fn reaches(&self, from: &[InstrId], into: GroupId, limit: usize) -> Option<bool> {
        let mut seen: IdSet<InstrId> = IdSet::new();
        let mut seen_groups: IdSet<GroupId> = IdSet::new();
        let mut stack: Vec<InstrId> = from.to_vec();
        let mut looked = 0;
        // What stands behind the last member leads nowhere, but by way of its group: a group gives
        // all its values after it has read all that it reads, whatever their places in the list.
        let last = self.groups[into].last;
        while let Some(id) = stack.pop() {
            if !seen.insert(id) {
                continue;
            }
            looked += 1;
            if looked > limit {
                return None;
            }
            let groups = &self.of[id];
            if groups.is_empty() {
                if self.position[id] < last {
                    stack.extend(self.followers(id));
                }
                continue;
            }
            for &group in groups {
                if group == into {
                    return Some(true);
                }
                if seen_groups.insert(group) {
                    let roots = self.groups[group].roots.iter();
                    for &root in roots.filter(|&&root| self.position[root] < last) {
                        stack.extend(self.followers(root));
                    }
                }
            }
        }
        Some(false)
    }
    /// Makes a group of one instruction.
    pub fn found(&mut self, module: &Module, id: InstrId, evals: f64) -> GroupId {
        let mut group = Group {
            roots: vec![id],
            nodes: 1,
            last: self.position[id],
            ..Group::default()
        };
        let place = Place {
            id: ROOT_PLACE,
            evals,
        };
        group.members.insert(id, Places::from_elem(place, 1));
        group.inputs.extend(&module.instr(id).operands);
        if matches!(self.roles[id], Role::Reduce | Role::Contract) {
            group.hero = Some(id);
        }
        let group = self.groups.push(group);
        self.of[id].push(group);
        group
    }
    /// Puts an instruction into a group.
    pub fn join(&mut self, module: &Module, id: InstrId, group: GroupId, places: Places) {
        let g = &mut self.groups[group];
        if self.roles[id] != Role::Source {
            g.nodes += places.len();
        }
        g.last = g.last.max(self.position[id]);
        g.members.insert(id, places);
        g.inputs.remove(&id);
        for &operand in &module.instr(id).operands {
            if !g.members.contains_key(&operand) {
                g.inputs.insert(operand);
            }
        }
        if matches!(self.roles[id], Role::Reduce | Role::Contract) {
            g.hero = Some(id);
        }
        self.of[id].push(group);
    }
}
