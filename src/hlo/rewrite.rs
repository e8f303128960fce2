//! Replacing instructions, dropping dead ones, copying bodies, compacting modules.
//!
//! A pass asks a [`Rewriter`] to put one instruction in the place of another, as often as it likes,
//! and [`Rewriter::finish`] then redirects users, roots and control edges, drops what is dead, and
//! brings each changed computation's list into topological order again. All of it takes time linear
//! in the size of the changed computations.

use smallvec::SmallVec;

use crate::base::Diagnostic;
use crate::base::IdMap;
use crate::base::IdSet;
use crate::base::Result;
use crate::base::codes;
use crate::hlo::Builder;
use crate::hlo::CompId;
use crate::hlo::Computation;
use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::infer::agree;
use crate::hlo::infer::text;
use crate::hlo::visit;

/// Collects replacements; nothing changes for users until [`Rewriter::finish`].
#[derive(Debug)]
pub struct Rewriter<'m> {
    /// The module. Adding instructions is fine; existing ones are changed by replacing them.
    pub module: &'m mut Module,
    replaced: IdMap<InstrId, Option<InstrId>>,
    touched: IdSet<CompId>,
    changed: bool,
}

impl<'m> Rewriter<'m> {
    /// A rewriter without replacements.
    pub fn new(module: &'m mut Module) -> Self {
        Self {
            module,
            replaced: IdMap::new(),
            touched: IdSet::new(),
            changed: false,
        }
    }
    /// Appends to a computation, which `finish` will then put in order.
    pub fn builder(&mut self, comp: CompId) -> Builder<'_> {
        self.touched.insert(comp);
        self.module.builder(comp)
    }
    /// Appends to the computation of `id`; new instructions get its metadata.
    pub fn builder_at(&mut self, id: InstrId) -> Builder<'_> {
        let comp = self.module.instrs[id].parent;
        self.builder(comp).like(id)
    }
    /// What stands for `id` after the replacements so far.
    pub fn resolve(&self, id: InstrId) -> InstrId {
        let mut at = id;
        while let Some(next) = self.replaced[at] {
            at = next;
        }
        at
    }
    /// Puts `new` in the place of `old`, for every user.
    ///
    /// `new` takes over the control predecessors of `old`. Its operands are redirected like those of
    /// any instruction, so it must not lead to `old` itself.
    ///
    /// # Errors
    /// `XA9001` when shapes or computations differ, or when `new` stands for `old` already.
    pub fn replace(&mut self, old: InstrId, new: InstrId) -> Result<()> {
        let (a, b) = (&self.module.instrs[old], &self.module.instrs[new]);
        if !agree(&a.shape, &b.shape) || a.parent != b.parent {
            let message = format!(
                "pass replaces `{}` of shape {} by `{}` of shape {}",
                a.name,
                text(&a.shape),
                b.name,
                text(&b.shape)
            );
            return Err(Diagnostic::internal(codes::INTERNAL, message));
        }
        let new = self.resolve(new);
        if new == old || self.replaced[old].is_some() {
            let message = format!("pass replaces `{}` twice, or by itself", a.name);
            return Err(Diagnostic::internal(codes::INTERNAL, message));
        }
        self.touched.insert(a.parent);
        let control = a.control_predecessors.clone();
        for before in control {
            let list = &mut self.module.instrs[new].control_predecessors;
            if before != new && !list.contains(&before) {
                list.push(before);
            }
        }
        self.replaced.set(old, Some(new));
        self.changed = true;
        Ok(())
    }
    /// Puts what `build` appends in the place of `old`.
    ///
    /// # Errors
    /// Those of `build` and of [`Rewriter::replace`].
    pub fn replace_with(
        &mut self,
        old: InstrId,
        build: impl FnOnce(&mut Builder<'_>) -> Result<InstrId>,
    ) -> Result<InstrId> {
        let new = build(&mut self.builder_at(old))?;
        self.replace(old, new)?;
        Ok(new)
    }
    /// Lets every replaced instruction point at the last of its chain of replacements.
    fn shorten_chains(&mut self) {
        let all: Vec<InstrId> = self.module.instrs.ids().collect();
        for id in all {
            let last = self.resolve(id);
            let mut at = id;
            while let Some(next) = self.replaced[at] {
                self.replaced.set(at, Some(last));
                at = next;
            }
        }
    }
    /// Redirects users, roots and control edges, drops the dead, restores the order. True when an
    /// instruction was replaced.
    pub fn finish(mut self) -> bool {
        self.shorten_chains();
        let effects = visit::side_effects(self.module);
        for comp in self.touched.iter() {
            let list = self.module.comps[comp].instrs.clone();
            for &id in &list {
                let mut instr = std::mem::take(&mut self.module.instrs[id].operands);
                for operand in &mut instr {
                    *operand = self.resolve(*operand);
                }
                self.module.instrs[id].operands = instr;
                let control = std::mem::take(&mut self.module.instrs[id].control_predecessors);
                let mut redirected: SmallVec<[InstrId; 0]> = SmallVec::new();
                for before in control {
                    let before = self.resolve(before);
                    if before != id && !redirected.contains(&before) {
                        redirected.push(before);
                    }
                }
                self.module.instrs[id].control_predecessors = redirected;
            }
            let root = self.resolve(self.module.comps[comp].root);
            self.module.comps[comp].root = root;
            drop_dead(self.module, comp, &effects, &self.replaced);
        }
        self.changed
    }
}

/// Drops the instructions of a computation that nothing needs, and restores the order of the rest.
/// Parameters and side effects stay, but for those of what has been replaced. True when something was
/// dropped.
fn drop_dead(
    module: &mut Module,
    comp: CompId,
    effects: &IdSet<CompId>,
    replaced: &IdMap<InstrId, Option<InstrId>>,
) -> bool {
    let computation = &module.comps[comp];
    let before = computation.instrs.len();
    let mut live: IdSet<InstrId> = IdSet::new();
    let mut work = vec![computation.root];
    for &id in &computation.instrs {
        let op = &module.instrs[id].op;
        let mut effect = visit::op_has_side_effect(op);
        visit::each_called(op, |callee| effect |= effects.contains(callee));
        if matches!(op, Op::Parameter { .. }) || (effect && replaced[id].is_none()) {
            work.push(id);
        }
    }
    while let Some(id) = work.pop() {
        if live.insert(id) {
            let instr = &module.instrs[id];
            work.extend(instr.operands.iter().chain(&instr.control_predecessors));
        }
    }
    module.comps[comp].instrs.retain(|&id| live.contains(id));
    let ordered = visit::post_order(module, comp);
    let dropped = before != ordered.len();
    module.comps[comp].instrs = ordered;
    dropped
}

/// Drops dead instructions in every computation that the entry reaches.
pub fn drop_dead_everywhere(module: &mut Module) -> bool {
    let effects = visit::side_effects(module);
    let mut changed = false;
    for comp in visit::reachable(module) {
        changed |= drop_dead(module, comp, &effects, &IdMap::new());
    }
    changed
}

/// Copies the instructions of `from` into `to` with `args` for its parameters; gives what its root
/// became. The list of `to` is not put in order.
pub fn clone_into(module: &mut Module, from: CompId, to: CompId, args: &[InstrId]) -> InstrId {
    let mut map: IdMap<InstrId, Option<InstrId>> = IdMap::new();
    for (&param, &arg) in module.comps[from].params.iter().zip(args) {
        map.set(param, Some(arg));
    }
    for id in visit::post_order(module, from) {
        if map[id].is_some() {
            continue;
        }
        let mut copy = module.instrs[id].clone();
        redirect(&mut copy, &map);
        copy.name = format!("{}.{}", stem(&copy.name), module.instrs.len());
        let new = module.builder(to).push_instr(copy);
        map.set(id, Some(new));
    }
    let root = module.comps[from].root;
    map[root].expect("the root is one of the computation's instructions")
}

fn redirect(instr: &mut Instr, map: &IdMap<InstrId, Option<InstrId>>) {
    for operand in &mut instr.operands {
        *operand = map[*operand].unwrap_or(*operand);
    }
    for before in &mut instr.control_predecessors {
        *before = map[*before].unwrap_or(*before);
    }
}

/// A name without the number at its end.
fn stem(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((stem, number)) if number.bytes().all(|b| b.is_ascii_digit()) => stem,
        _ => name,
    }
}

/// Rebuilds the module with only the computations that the entry reaches, callees before callers,
/// and only the instructions that stand in them, in order. All ids change.
pub fn compact(module: &mut Module) {
    let order = visit::reachable(module);
    let mut comp_map: IdMap<CompId, Option<CompId>> = IdMap::new();
    let mut instr_map: IdMap<InstrId, Option<InstrId>> = IdMap::new();
    let old_instrs = std::mem::take(&mut module.instrs);
    let old_comps = std::mem::take(&mut module.comps);
    for comp in order {
        let old = &old_comps[comp];
        let new = module.comps.push(Computation {
            name: old.name.clone(),
            instrs: Vec::with_capacity(old.instrs.len()),
            params: Vec::new(),
            root: old.root,
            execution_thread: old.execution_thread.clone(),
        });
        comp_map.set(comp, Some(new));
        for &id in &old.instrs {
            let mut instr = old_instrs[id].clone();
            redirect(&mut instr, &instr_map);
            instr.parent = new;
            instr
                .op
                .for_each_called_mut(&mut |callee| *callee = comp_map[*callee].unwrap_or(*callee));
            let kept = module.instrs.push(instr);
            module.comps[new].instrs.push(kept);
            instr_map.set(id, Some(kept));
        }
        let moved = |id: InstrId| instr_map[id].unwrap_or(id);
        module.comps[new].params = old.params.iter().map(|&p| moved(p)).collect();
        module.comps[new].root = moved(old.root);
    }
    module.entry = comp_map[module.entry].unwrap_or(module.entry);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Id;
    use crate::hlo::UnaryOp;
    use crate::hlo::verify;
    use crate::shape::PrimitiveType;
    use crate::shape::Shape;

    /// `e(p) = negate(exponential(p))`, with the ids of the three.
    fn chain() -> (Module, [InstrId; 3]) {
        let mut m = Module::new("m");
        let comp = m.new_comp("e");
        let mut b = m.builder(comp);
        let p = b.parameter("p", Shape::array(PrimitiveType::F32, [4]));
        let x = b.unary(UnaryOp::Exp, p).expect("f32 has exp");
        let y = b.unary(UnaryOp::Negate, x).expect("f32 has negate");
        b.set_root(y);
        (m, [p, x, y])
    }

    fn opcodes(m: &Module) -> Vec<&'static str> {
        let list = &m.entry_comp().instrs;
        list.iter().map(|&id| m.instrs[id].op.opcode()).collect()
    }

    #[test]
    fn replacing_redirects_users_and_restores_order() {
        let (mut m, [p, x, _]) = chain();
        let mut rewriter = Rewriter::new(&mut m);
        rewriter
            .replace_with(x, |b| {
                let t = b.unary(UnaryOp::Tanh, p)?;
                b.add(t, t)
            })
            .expect("shapes agree");
        assert!(rewriter.finish());
        assert_eq!(opcodes(&m), ["parameter", "tanh", "add", "negate"]);
        assert!(verify::check(&m).is_ok());
    }

    #[test]
    fn replacements_chain_and_roots_follow() {
        let (mut m, [p, x, y]) = chain();
        let mut rewriter = Rewriter::new(&mut m);
        rewriter.replace(y, x).expect("shapes agree");
        rewriter.replace(x, p).expect("shapes agree");
        assert!(rewriter.replace(x, p).is_err(), "a second time is refused");
        rewriter.finish();
        assert_eq!(opcodes(&m), ["parameter"]);
        assert_eq!(m.entry_comp().root, p);
    }

    #[test]
    fn control_edges_follow_replacements() {
        let (mut m, [p, x, y]) = chain();
        m.instrs[y].control_predecessors.push(x);
        m.instrs[y].operands[0] = p;
        let mut rewriter = Rewriter::new(&mut m);
        let new = rewriter
            .replace_with(x, |b| b.unary(UnaryOp::Sin, p))
            .expect("shapes agree");
        rewriter.finish();
        assert_eq!(m.instrs[y].control_predecessors.as_slice(), [new]);
        assert_eq!(opcodes(&m), ["parameter", "sine", "negate"]);
    }

    #[test]
    fn long_chains_take_linear_time() {
        let mut m = Module::new("m");
        let comp = m.new_comp("e");
        let mut b = m.builder(comp);
        let p = b.parameter("p", Shape::scalar(PrimitiveType::F32));
        let mut x = p;
        for _ in 0..100_000 {
            x = b.unary(UnaryOp::Negate, x).expect("f32 has negate");
        }
        b.set_root(x);
        let list = m.comps[comp].instrs.clone();
        let mut rewriter = Rewriter::new(&mut m);
        for pair in list[1..50_000].windows(2).rev() {
            rewriter.replace(pair[1], pair[0]).expect("shapes agree");
        }
        rewriter.finish();
        assert_eq!(m.comps[comp].instrs.len(), 50_003);
        let list = m.comps[comp].instrs.clone();
        let mut rewriter = Rewriter::new(&mut m);
        for &id in &list[1..] {
            let operand = rewriter.module.instrs[id].operands[0];
            rewriter
                .replace_with(id, |b| b.unary(UnaryOp::Abs, operand))
                .expect("shapes agree");
        }
        rewriter.finish();
        assert_eq!(m.comps[comp].instrs.len(), 50_003);
        assert_eq!(m.comps[comp].instrs[0].index(), 0);
        assert!(verify::check(&m).is_ok());
    }
}
