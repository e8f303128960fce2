//! Gathers producers into the groups of their consumers, last instruction first.
//!
//! When an instruction's turn comes, all its users have their groups. It joins the one group that
//! uses it, or is computed anew in each of several when that moves fewer bytes, or founds a group
//! of its own. Because it only ever joins when every use is inside the groups it joins, no cycle
//! between kernels can arise; where its value is needed outside too (an extra result), the groups
//! are searched for one.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::analysis::attention;
use crate::analysis::cost;
use crate::analysis::users::Users;
use crate::base::Arena;
use crate::base::Id;
use crate::base::IdMap;
use crate::base::IdSet;
use crate::hlo::CompId;
use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::passes::fuse::decide;
use crate::passes::fuse::decide::Decision;
use crate::passes::fuse::decide::Role;
use crate::passes::fuse::groups::GroupId;
use crate::passes::fuse::groups::Groups;
use crate::passes::fuse::groups::Place;
use crate::passes::fuse::groups::Places;
use crate::passes::fuse::groups::ROOT_PLACE;
use crate::passes::pass::Rewrites;
use crate::target::Target;

/// Instructions a search for a cycle looks at before it gives up.
pub const SEARCH_LIMIT: usize = 4000;

/// Groups the instructions of `comp`.
pub fn group(
    module: &Module,
    comp: CompId,
    target: &Target,
    rewrites: &mut Rewrites<'_>,
) -> Groups {
    let order = &module.comps[comp].instrs;
    let mut before: IdSet<InstrId> = IdSet::new();
    for &id in order {
        for &edge in &module.instr(id).control_predecessors {
            before.insert(edge);
        }
    }
    let mut roles: IdMap<InstrId, Role> = IdMap::new();
    let mut position: IdMap<InstrId, usize> = IdMap::new();
    let mut after: IdMap<InstrId, SmallVec<[InstrId; 1]>> = IdMap::new();
    for (at, &id) in order.iter().enumerate() {
        position.set(id, at);
        for &before in &module.instr(id).control_predecessors {
            after[before].push(id);
        }
        if !before.contains(id) {
            roles.set(id, decide::role(module, module.instr(id)));
        }
    }
    let attention = find_attention(module, order, target, rewrites);
    // Their places are fixed, and their kernels are shaped by the dots that end them.
    for &id in attention.keys() {
        roles.set(id, Role::Element);
    }
    let mut vertical = Vertical {
        module,
        fed: IdSet::new(),
        attention,
        groups: Groups {
            comp,
            users: Users::of(module, &[comp]),
            after,
            roles,
            position,
            groups: Arena::new(),
            of: IdMap::new(),
        },
    };
    vertical.find_fed(order);
    for &id in order.iter().rev() {
        vertical.place(id, rewrites);
    }
    vertical.groups
}

/// What lies between the products of attention, with the dot that ends it.
fn find_attention(
    module: &Module,
    order: &[InstrId],
    target: &Target,
    rewrites: &mut Rewrites<'_>,
) -> BTreeMap<InstrId, InstrId> {
    let mut out = BTreeMap::new();
    for &id in order {
        let instr = module.instr(id);
        if !matches!(instr.op, Op::Dot { .. }) || !instr.control_predecessors.is_empty() {
            continue;
        }
        if let Some(found) = attention::ending_in(module, id, target)
            && !out.contains_key(&id)
            && !found.members.iter().any(|member| out.contains_key(member))
            && rewrites.take("fuse-attention", module, id)
        {
            out.extend(found.members.into_iter().map(|member| (member, id)));
        }
    }
    out
}

struct Vertical<'m> {
    module: &'m Module,
    /// What is part of attention, with the dot that ends it.
    attention: BTreeMap<InstrId, InstrId>,
    /// What is computed element by element from a reduction's or dot's result, and alone reads it.
    fed: IdSet<InstrId>,
    groups: Groups,
}

impl Vertical<'_> {
    fn instr(&self, id: InstrId) -> &Instr {
        self.module.instr(id)
    }
    fn elements(&self, id: InstrId) -> f64 {
        decide::elements(self.module, id) as f64
    }

    fn find_fed(&mut self, order: &[InstrId]) {
        for &id in order {
            if !matches!(self.groups.roles[id], Role::Element | Role::View) {
                continue;
            }
            let instr = self.instr(id);
            let fed = instr.operands.iter().any(|&o| {
                let hero = matches!(self.groups.roles[o], Role::Reduce | Role::Contract);
                (hero || self.fed.contains(o))
                    && self.groups.users.count(o) == 1
                    && (decide::keeps_index(self.module, instr, o) || self.turns(id, o))
            });
            if fed {
                self.fed.insert(id);
            }
        }
    }

    /// Whether `id` is a transpose that a dot or convolution, which it alone uses, can write its
    /// results in the order of.
    fn turns(&self, id: InstrId, hero: InstrId) -> bool {
        let instr = self.instr(id);
        self.groups.roles[hero] == Role::Contract
            && matches!(instr.op, Op::Transpose { .. })
            && self.groups.users.count(hero) == 1
            && decide::may_feed(self.module, hero, instr, 0).is_allowed()
    }

    /// Whether the value is needed by something that is in no group.
    fn is_needed_outside(&self, id: InstrId) -> bool {
        self.module.comps[self.groups.comp].root == id
            || self
                .groups
                .users
                .get(id)
                .iter()
                .any(|&u| self.groups.of[u].is_empty())
    }

    fn place(&mut self, id: InstrId, rewrites: &mut Rewrites<'_>) {
        if let Some(&last) = self.attention.get(&id) {
            for group in self.groups.of[last].clone() {
                let place = Place {
                    id: mix(ROOT_PLACE, last, 0),
                    evals: self.elements(id),
                };
                let places = Places::from_elem(place, 1);
                self.groups.join(self.module, id, group, places);
            }
            return;
        }
        let outside = self.is_needed_outside(id);
        let consumers = self.groups.consumers(id);
        match self.groups.roles[id] {
            Role::Alone => {}
            Role::View => self.place_view(id, &consumers, outside),
            Role::Source => self.place_source(id, &consumers, outside),
            Role::Element if matches!(self.instr(id).op, Op::Broadcast { .. }) => {
                self.place_source(id, &consumers, outside);
            }
            Role::Element => self.place_element(id, &consumers, outside, rewrites),
            Role::Update => self.found(id),
            Role::Reduce | Role::Contract => {
                let joined = match consumers.as_slice() {
                    [group]
                        if !outside
                            && self.may_shape(id, *group)
                            && (!self.ends_attention(id) || self.may_follow_attention(*group))
                            && rewrites.take("fuse-into-hero", self.module, id) =>
                    {
                        self.accept(id, *group).ok().map(|places| (*group, places))
                    }
                    _ => None,
                };
                match joined {
                    Some((group, places)) => self.groups.join(self.module, id, group, places),
                    None => self.found(id),
                }
            }
        }
    }

    fn found(&mut self, id: InstrId) {
        let evals = self.elements(id);
        self.groups.found(self.module, id, evals);
    }

    /// A view of something that cannot be fused is better a view outside of the kernel.
    fn place_view(&mut self, id: InstrId, consumers: &[GroupId], outside: bool) {
        let source = self.groups.roles[self.instr(id).operands[0]];
        if outside || !matches!(source, Role::Element | Role::View | Role::Source) {
            return;
        }
        let accepted: Vec<_> = consumers
            .iter()
            .filter_map(|&g| Some((g, self.accept(id, g).ok()?)))
            .collect();
        if accepted.len() == consumers.len() {
            for (group, places) in accepted {
                self.groups.join(self.module, id, group, places);
            }
        }
    }

    fn place_source(&mut self, id: InstrId, consumers: &[GroupId], outside: bool) {
        let mut outside = outside;
        for &group in consumers {
            match self.accept(id, group) {
                Ok(places) => self.groups.join(self.module, id, group, places),
                Err(_) => outside = true,
            }
        }
        // In groups and outside of them: founding last keeps the copies above.
        if outside && !matches!(self.instr(id).op, Op::Constant(_)) {
            self.found(id);
        }
    }

    fn place_element(
        &mut self,
        id: InstrId,
        consumers: &[GroupId],
        outside: bool,
        rewrites: &mut Rewrites<'_>,
    ) {
        let accepted: Vec<(GroupId, Places)> = consumers
            .iter()
            .filter_map(|&g| Some((g, self.accept(id, g).ok()?)))
            .collect();
        let all = !outside && accepted.len() == consumers.len() && !accepted.is_empty();
        if all
            && (accepted.len() == 1 || self.is_better_made_anew(id, &accepted))
            && rewrites.take("fuse-into-user", self.module, id)
        {
            for (group, places) in accepted {
                self.note_recompute(id, group, &places);
                self.groups.join(self.module, id, group, places);
            }
            return;
        }
        // What follows a dot is better made by its kernel. Highest first: groups founded late stand
        // early in the program.
        let extra = accepted
            .into_iter()
            .rev()
            .filter(|_| !self.fed.contains(id))
            .find(|(group, places)| self.may_be_extra_root(id, *group, places));
        match extra {
            Some((group, places)) if rewrites.take("fuse-beside", self.module, id) => {
                self.groups.join(self.module, id, group, places);
                self.groups.groups[group].roots.push(id);
            }
            _ => self.found(id),
        }
    }

    fn note_recompute(&mut self, id: InstrId, group: GroupId, places: &Places) {
        if self.reuse(id, places) > 1.5 && !decide::is_scalar(self.module, id) {
            let cost = cost::element_cost(self.module, self.instr(id));
            self.groups.groups[group].recompute += cost;
        }
    }

    /// How often an element is computed.
    fn reuse(&self, id: InstrId, places: &Places) -> f64 {
        let evals: f64 = places.iter().map(|p| p.evals).sum();
        evals / self.elements(id).max(1.0)
    }

    /// The places at which `id` would be computed in `group`, or why it may not be.
    fn accept(&self, id: InstrId, group: GroupId) -> Result<Places, &'static str> {
        let g = &self.groups.groups[group];
        let mut places = Places::new();
        for &user in self.groups.users.get(id) {
            let Some(at_user) = g.members.get(&user) else {
                continue;
            };
            let instr = self.instr(user);
            for (at, _) in instr.operands.iter().enumerate().filter(|(_, o)| **o == id) {
                if let Decision::Forbid(why) = decide::may_feed(self.module, id, instr, at) {
                    return Err(why);
                }
                for place in at_user {
                    let place = self.operand_place(user, instr, at, *place);
                    if !places.iter().any(|p| p.id == place.id) {
                        places.push(place);
                    }
                }
            }
        }
        let new_inputs = self
            .instr(id)
            .operands
            .iter()
            .filter(|o| !g.inputs.contains(o) && self.groups.roles[**o] != Role::Source)
            .count();
        let new_nodes = match self.groups.roles[id] {
            Role::Source => 0,
            _ => places.len(),
        };
        if places.len() > decide::MAX_PLACES || g.nodes + new_nodes > decide::MAX_NODES {
            return Err("the kernel would be too large");
        }
        if g.inputs.len() + new_inputs > decide::MAX_INPUTS + 1 {
            return Err("the kernel would read too many values");
        }
        self.accept_cost(id, group, &places)?;
        Ok(places)
    }

    fn accept_cost(
        &self,
        id: InstrId,
        group: GroupId,
        places: &Places,
    ) -> Result<(), &'static str> {
        let cost = cost::element_cost(self.module, self.instr(id));
        let reuse = self.reuse(id, places);
        let again: f64 = places.iter().map(|p| p.evals).sum::<f64>() - self.elements(id);
        if cost >= cost::EXPENSIVE && again > 64.0 {
            return Err("it is dear and would be computed more than once");
        }
        if self.fed.contains(id) && reuse > 1.01 && cost > 0 {
            return Err("it belongs to the kernel that makes its operand");
        }
        let scalar = decide::is_scalar(self.module, id);
        let recompute = self.groups.groups[group].recompute + cost;
        if reuse > 1.5 && !scalar && recompute > decide::MAX_RECOMPUTE {
            return Err("too much would be computed more than once");
        }
        Ok(())
    }

    /// The place of operand `at` when its user is computed at `place`.
    fn operand_place(&self, user: InstrId, instr: &Instr, at: usize, place: Place) -> Place {
        let operand = instr.operands[at];
        if decide::keeps_index(self.module, instr, operand) {
            return place;
        }
        let of_operand = self.elements(operand);
        let share = place.evals / self.elements(user).max(1.0);
        let (slot, evals) = match &instr.op {
            // All inputs of a variadic reduction are read at one index.
            Op::Reduce { .. } if at < instr.operands.len() / 2 => (0, of_operand * share),
            Op::Dot { .. } | Op::Convolution { .. } | Op::Concatenate { .. } | Op::Pad { .. } => {
                (at, of_operand * share)
            }
            Op::DynamicUpdateSlice if at == 1 => (at, of_operand),
            _ => (at, place.evals),
        };
        Place {
            id: mix(place.id, user, slot),
            evals,
        }
    }

    /// Whether a reduction or dot may shape the group that computes on with its result.
    fn may_shape(&self, id: InstrId, group: GroupId) -> bool {
        let g = &self.groups.groups[group];
        let [root] = g.roots.as_slice() else {
            return false;
        };
        // What is computed on with: the value itself, or the transpose that alone uses it.
        let value = match self.groups.users.get(id) {
            [user] if self.turns(*user, id) => *user,
            _ => id,
        };
        let places = if value == id {
            self.accept(id, group).ok()
        } else {
            g.members.get(&value).cloned()
        };
        let dims = |id: InstrId| self.module.shape(id).as_array().map(|a| a.dims.clone());
        g.hero.is_none()
            && self.groups.roles[*root] != Role::Update
            && dims(value).is_some()
            && dims(value) == dims(*root)
            && places.is_some_and(|places| places.len() == 1 && places[0].id == ROOT_PLACE)
    }

    fn ends_attention(&self, id: InstrId) -> bool {
        self.attention.values().any(|&last| last == id)
    }

    /// Whether what a group computes can be computed where results of attention are written: there is
    /// no other way to emit it than with its kernel.
    fn may_follow_attention(&self, group: GroupId) -> bool {
        let g = &self.groups.groups[group];
        let changes_type = |&id: &InstrId| matches!(self.instr(id).op, Op::BitcastConvert);
        !g.roots.iter().any(|&root| self.is_packed(root)) && !g.members.keys().any(changes_type)
    }

    /// Whether computing `id` in each group moves fewer bytes than storing it once.
    fn is_better_made_anew(&self, id: InstrId, accepted: &[(GroupId, Places)]) -> bool {
        let instr = self.instr(id);
        if cost::is_expensive(self.module, instr) && self.elements(id) > 16.0 {
            return false;
        }
        if self.fed.contains(id) {
            return false;
        }
        if self.elements(id) <= decide::SMALL as f64 {
            return true;
        }
        let width =
            |o: InstrId| self.module.shape(o).byte_size() as f64 / self.elements(o).max(1.0);
        let read = |evals: f64, o: InstrId| {
            if self.groups.roles[o] == Role::Source {
                return 0.0;
            }
            let made = self.instr(o);
            if matches!(made.op, Op::Broadcast { .. }) {
                return self.module.shape(made.operands[0]).byte_size() as f64;
            }
            (self.module.shape(o).byte_size() as f64).min(evals * width(o))
        };
        let own: f64 = instr
            .operands
            .iter()
            .map(|&o| read(self.elements(id), o))
            .sum();
        let bytes = instr.shape.byte_size() as f64;
        let stored = own + bytes * (1.0 + accepted.len() as f64);
        let mut anew = 0.0;
        for (group, places) in accepted {
            let g = &self.groups.groups[*group];
            let evals: f64 = places.iter().map(|p| p.evals).sum();
            for &operand in &instr.operands {
                if !g.inputs.contains(&operand) && !g.members.contains_key(&operand) {
                    anew += read(evals, operand);
                }
            }
        }
        anew <= stored
    }

    fn is_packed(&self, id: InstrId) -> bool {
        let array = self.module.shape(id).as_array();
        array.is_some_and(|array| array.ty.is_sub_byte())
    }

    /// Whether the group, which uses `id`, may also give its value to the others that need it.
    fn may_be_extra_root(&self, id: InstrId, group: GroupId, places: &Places) -> bool {
        let g = &self.groups.groups[group];
        let [place] = places.as_slice() else {
            return false;
        };
        let dims = |id: InstrId| self.module.shape(id).as_array().map(|a| a.dims.clone());
        let root = g.roots[0];
        let fits = match g.hero {
            None => {
                self.groups.roles[root] == Role::Element
                    && place.id == ROOT_PLACE
                    && dims(id) == dims(root)
            }
            // Packed results are written by a loop over one size.
            Some(hero) if self.groups.roles[hero] == Role::Reduce => {
                place.id == mix(ROOT_PLACE, hero, 0)
                    && dims(id) == dims(self.instr(hero).operands[0])
                    && g.roots.iter().chain([&id]).all(|&r| !self.is_packed(r))
            }
            Some(_) => false,
        };
        if !fits || self.elements(id) <= 1.0 {
            return false;
        }
        let others: Vec<InstrId> = self
            .groups
            .users
            .get(id)
            .iter()
            .copied()
            .filter(|u| {
                self.groups.of[*u].iter().any(|o| *o != group) || self.groups.of[*u].is_empty()
            })
            .collect();
        // A user that is in this group and in another is looked at through the other.
        let mut from = self.groups.after[id].to_vec();
        for user in others {
            let groups = &self.groups.of[user];
            if groups.contains(&group) {
                for other in groups.iter().filter(|o| **o != group) {
                    for &root in &self.groups.groups[*other].roots {
                        from.extend(self.groups.followers(root));
                    }
                }
            } else {
                from.push(user);
            }
        }
        self.groups.reaches(&from, group, SEARCH_LIMIT) == Some(false)
    }
}

/// The place of an operand, from that of its user.
fn mix(place: u64, user: InstrId, slot: usize) -> u64 {
    let key = (user.index() as u64) << 8 | slot as u64 & 0xff;
    (place ^ key.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .rotate_left(23)
        .wrapping_mul(0xbf58_476d_1ce4_e5b9)
        | 2
}
