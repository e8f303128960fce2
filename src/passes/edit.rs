//! Edits computations: new instructions, replacements, and one tidy-up at the end.
//!
//! A pass makes instructions and says which value replaces which; [`Edit::finish`] redirects
//! users, roots and control edges, drops what nothing needs, and puts operands before users.
//! All of it is linear in the size of the computations touched.

use std::collections::BTreeSet;

use crate::analysis::effects::Effects;
use crate::base::Id;
use crate::base::IdMap;
use crate::base::IdSet;
use crate::base::Result;
use crate::hlo::CompId;
use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::passes::pass::Changed;
use crate::shape::ArrayShape;
use crate::shape::Shape;

/// A module under change.
pub struct Edit<'m> {
    /// The module. Passes read it freely and change it only through the edit.
    pub module: &'m mut Module,
    replaced: IdMap<InstrId, Option<InstrId>>,
    touched: IdSet<CompId>,
}

impl<'m> Edit<'m> {
    /// Starts to change `module`.
    pub fn new(module: &'m mut Module) -> Self {
        Self {
            module,
            replaced: IdMap::new(),
            touched: IdSet::new(),
        }
    }
    /// The instruction.
    pub fn instr(&self, id: InstrId) -> &Instr {
        &self.module.instrs[id]
    }
    /// The array shape of `id`, when it is an array.
    pub fn array(&self, id: InstrId) -> Option<&ArrayShape> {
        self.module.instrs[id].shape.as_array()
    }
    /// Makes an instruction in `comp`; the shape is inferred.
    pub fn op(&mut self, comp: CompId, op: Op, operands: &[InstrId]) -> Result<InstrId> {
        self.touched.insert(comp);
        self.module.builder(comp).op(op, operands)
    }
    /// Makes an instruction in `comp` of a shape that operands do not give.
    pub fn shaped(
        &mut self,
        comp: CompId,
        op: Op,
        operands: &[InstrId],
        shape: Shape,
    ) -> Result<InstrId> {
        self.touched.insert(comp);
        self.module.builder(comp).shaped(op, operands, shape)
    }
    /// Stores a finished instruction at the end of the computation that it names as its parent.
    pub fn push(&mut self, instr: Instr) -> InstrId {
        let parent = instr.parent;
        self.touched.insert(parent);
        let id = self.module.instrs.push(instr);
        self.module.comps[parent].instrs.push(id);
        id
    }
    /// From now on `new` stands for `old`; the shapes are equal but for layouts.
    pub fn replace(&mut self, old: InstrId, new: InstrId) {
        let new = self.resolve(new);
        if old == new {
            return;
        }
        debug_assert!(
            self.instr(old)
                .shape
                .same_ignoring_layout(&self.instr(new).shape),
            "a replacement has the shape of what it replaces"
        );
        if self.instr(new).extra.is_none() && !matches!(self.instr(new).op, Op::Parameter { .. }) {
            let extra = self.instr(old).extra.clone();
            self.module.instrs[new].extra = extra.map(|mut e| {
                e.sharding = None;
                e.backend_config = Vec::new();
                e
            });
        }
        self.replaced[old] = Some(new);
        self.touched.insert(self.instr(old).parent);
    }
    /// What stands for `id` now.
    pub fn resolve(&self, mut id: InstrId) -> InstrId {
        while let Some(new) = self.replaced[id] {
            id = new;
        }
        id
    }
    /// Whether something else stands for `id`.
    pub fn is_replaced(&self, id: InstrId) -> bool {
        self.replaced[id].is_some()
    }
    /// Points the operands of `id` at what stands for them now.
    pub fn refresh(&mut self, id: InstrId) {
        for i in 0..self.module.instrs[id].operands.len() {
            let operand = self.module.instrs[id].operands[i];
            if self.replaced[operand].is_some() {
                let new = self.resolve(operand);
                self.module.instrs[id].operands[i] = new;
            }
        }
    }
    /// The instructions of `comp` with operands before users, also when it is under change.
    pub fn ordered(&self, comp: CompId) -> Vec<InstrId> {
        let mut order = Vec::new();
        let mut seen = BTreeSet::new();
        let mut walk: Vec<(InstrId, bool)> = Vec::new();
        for &start in &self.module.comps[comp].instrs {
            walk.push((start, false));
            while let Some((id, done)) = walk.pop() {
                if done {
                    order.push(id);
                    continue;
                }
                if self.is_replaced(id) || !seen.insert(id) {
                    continue;
                }
                walk.push((id, true));
                for &operand in self.instr(id).operands.iter().rev() {
                    walk.push((self.resolve(operand), false));
                }
            }
        }
        order
    }
    /// Says that the computation has to be put in order again.
    pub fn touch(&mut self, comp: CompId) {
        self.touched.insert(comp);
    }
    /// Redirects, drops the dead, orders.
    pub fn finish(mut self) -> Changed {
        let comps: Vec<CompId> = self.touched.iter().collect();
        if comps.is_empty() {
            return Changed::No;
        }
        for &comp in &comps {
            let root = self.module.comps[comp].root;
            self.module.comps[comp].root = self.resolve(root);
            for i in 0..self.module.comps[comp].instrs.len() {
                let id = self.module.comps[comp].instrs[i];
                self.refresh(id);
                self.refresh_control(id);
            }
        }
        let effects = Effects::of(self.module);
        for &comp in &comps {
            put_in_order(self.module, comp, &effects, &self.replaced);
        }
        Changed::Yes
    }
    /// A control edge from a replaced instruction now comes from its replacement.
    fn refresh_control(&mut self, id: InstrId) {
        let edges = std::mem::take(&mut self.module.instrs[id].control_predecessors);
        if edges.is_empty() {
            return;
        }
        let parent = self.instr(id).parent;
        let mut kept = edges.clone();
        kept.clear();
        for edge in edges {
            let new = self.resolve(edge);
            if new != id && !kept.contains(&new) && self.instr(new).parent == parent {
                kept.push(new);
            }
        }
        self.module.instrs[id].control_predecessors = kept;
    }
}

/// Lists the live instructions of `comp`, operands before users, otherwise in the order they had.
///
/// Live are parameters, the root, instructions with effects, and what these need.
fn put_in_order(
    module: &mut Module,
    comp: CompId,
    effects: &Effects,
    replaced: &IdMap<InstrId, Option<InstrId>>,
) {
    let computation = &module.comps[comp];
    let root = computation.root;
    let mut live = IdSet::new();
    let mut stack: Vec<InstrId> = computation
        .instrs
        .iter()
        .copied()
        .filter(|&id| {
            replaced[id].is_none()
                && (id == root
                    || matches!(module.instrs[id].op, Op::Parameter { .. })
                    || effects.has(&module.instrs[id]))
        })
        .collect();
    while let Some(id) = stack.pop() {
        if live.insert(id) {
            stack.extend(&module.instrs[id].operands);
        }
    }
    let mut order = Vec::with_capacity(computation.instrs.len());
    let (mut entered, mut placed) = (IdSet::new(), IdSet::new());
    let mut walk: Vec<(InstrId, bool)> = Vec::new();
    for &start in &computation.instrs {
        if !live.contains(start) || placed.contains(start) {
            continue;
        }
        walk.push((start, false));
        while let Some((id, done)) = walk.pop() {
            if done {
                if placed.insert(id) {
                    order.push(id);
                }
                continue;
            }
            // Of a cycle, which only a faulty pass makes, the verifier tells.
            if !entered.insert(id) {
                continue;
            }
            walk.push((id, true));
            let instr = &module.instrs[id];
            let needs = instr.operands.iter().chain(&instr.control_predecessors);
            for &need in needs.rev() {
                if live.contains(need) && !placed.contains(need) {
                    walk.push((need, false));
                }
            }
        }
    }
    for &id in &order {
        module.instrs[id]
            .control_predecessors
            .retain(|edge| live.contains(*edge));
    }
    module.comps[comp].instrs = order;
}

/// A local rule: what may stand for the instruction, when there is something better.
pub type Rule<'r> = dyn FnMut(&mut Edit<'_>, InstrId) -> Result<Option<InstrId>> + 'r;

/// Applies a rule to every instruction of the computations, operands before users, and at once to
/// what the rule itself makes.
pub fn sweep(module: &mut Module, comps: &[CompId], rule: &mut Rule<'_>) -> Result<Changed> {
    let mut edit = Edit::new(module);
    let limit = edit.module.instrs.len() * 16 + 4096;
    for &comp in comps {
        let order = edit.module.comps[comp].instrs.clone();
        for id in order {
            visit(&mut edit, id, rule, limit, 0)?;
        }
    }
    Ok(edit.finish())
}

fn visit(
    edit: &mut Edit<'_>,
    id: InstrId,
    rule: &mut Rule<'_>,
    limit: usize,
    depth: usize,
) -> Result<()> {
    if edit.is_replaced(id) {
        return Ok(());
    }
    edit.refresh(id);
    let before = edit.module.instrs.len();
    if depth > 32 || before > limit {
        return Ok(());
    }
    let Some(new) = rule(edit, id)? else {
        return Ok(());
    };
    edit.replace(id, new);
    for index in before..edit.module.instrs.len() {
        visit(edit, InstrId::from_index(index), rule, limit, depth + 1)?;
    }
    Ok(())
}
