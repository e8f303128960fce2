//! Merges equal computations, and equal instructions of one computation.
//!
//! Merging computations first lets instructions that call equal reducers become equal too.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hash;
use std::hash::Hasher;

use crate::analysis::call_graph;
use crate::analysis::effects::Effects;
use crate::analysis::effects::is_nondeterministic;
use crate::base::Id;
use crate::base::IdMap;
use crate::base::Result;
use crate::hlo::CompId;
use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::Stage;
use crate::literal::Literal;
use crate::passes::edit::Edit;
use crate::passes::pass::Changed;
use crate::passes::pass::Pass;
use crate::passes::pass::PassCx;
use crate::passes::pass::Rewrites;
use crate::shape::Shape;

/// The pass.
pub struct Cse;

impl Pass for Cse {
    fn name(&self) -> &'static str {
        "cse"
    }
    fn stages(&self) -> (Stage, Stage) {
        (Stage::Imported, Stage::Imported)
    }
    fn rules(&self) -> Vec<&'static str> {
        vec!["equal-computations", "equal-instructions"]
    }
    fn run(&self, module: &mut Module, cx: &mut PassCx<'_>) -> Result<Changed> {
        let merged = merge_computations(module, &mut cx.rewrites);
        Ok(merged.or(merge_instructions(module, &mut cx.rewrites)))
    }
}

/// Points all callers of equal embedded computations at one of them.
fn merge_computations(module: &mut Module, rewrites: &mut Rewrites<'_>) -> Changed {
    let contexts = call_graph::contexts(module);
    let mut stands_for: IdMap<CompId, Option<CompId>> = IdMap::new();
    let mut buckets: BTreeMap<u64, Vec<CompId>> = BTreeMap::new();
    let mut changed = Changed::No;
    for comp in call_graph::post_order(module) {
        for i in 0..module.comps[comp].instrs.len() {
            let id = module.comps[comp].instrs[i];
            let calls = call_graph::called(&module.instrs[id].op);
            if calls.iter().any(|&c| stands_for[c].is_some()) {
                module.instrs[id].op.for_each_called_mut(&mut |c| {
                    *c = stands_for[*c].unwrap_or(*c);
                });
            }
        }
        if contexts[comp] != call_graph::Context::Embedded {
            continue;
        }
        let bucket = buckets.entry(computation_hash(module, comp)).or_default();
        match bucket.iter().find(|&&other| equal(module, comp, other)) {
            Some(&other) => {
                let root = module.comps[comp].root;
                if rewrites.take("equal-computations", module, root) {
                    stands_for[comp] = Some(other);
                    changed = Changed::Yes;
                }
            }
            None => bucket.push(comp),
        }
    }
    changed
}

fn computation_hash(module: &Module, comp: CompId) -> u64 {
    let mut hasher = DefaultHasher::new();
    let instrs = &module.comps[comp].instrs;
    instrs.len().hash(&mut hasher);
    for &id in instrs {
        let instr = &module.instrs[id];
        instr.op.opcode().hash(&mut hasher);
        instr.operands.len().hash(&mut hasher);
        hash_shape(&instr.shape, &mut hasher);
    }
    hasher.finish()
}

/// Whether the computations list equal instructions in equal order.
fn equal(module: &Module, a: CompId, b: CompId) -> bool {
    let (a, b) = (&module.comps[a], &module.comps[b]);
    if a.instrs.len() != b.instrs.len() || a.params.len() != b.params.len() {
        return false;
    }
    let mut matches: BTreeMap<InstrId, InstrId> = BTreeMap::new();
    for (&x, &y) in a.instrs.iter().zip(&b.instrs) {
        let (p, q) = (&module.instrs[x], &module.instrs[y]);
        let same = p.op == q.op
            && p.shape == q.shape
            && p.operands.len() == q.operands.len()
            && p.operands
                .iter()
                .zip(&q.operands)
                .all(|(o, r)| matches.get(o) == Some(r))
            && p.control_predecessors.is_empty()
            && q.control_predecessors.is_empty();
        if !same {
            return false;
        }
        matches.insert(x, y);
    }
    matches.get(&a.root) == Some(&b.root)
}

fn merge_instructions(module: &mut Module, rewrites: &mut Rewrites<'_>) -> Changed {
    let effects = Effects::of(module);
    let comps = call_graph::post_order(module);
    let mut edit = Edit::new(module);
    for comp in comps {
        let order = edit.module.comps[comp].instrs.clone();
        let mut buckets: BTreeMap<u64, Vec<InstrId>> = BTreeMap::new();
        for id in order {
            edit.refresh(id);
            let instr = edit.instr(id);
            if !may_merge(instr, &effects) {
                continue;
            }
            let bucket = buckets.entry(instr_hash(instr)).or_default();
            let other = bucket.iter().copied().find(|&other| {
                let other = edit.instr(other);
                other.operands == instr.operands
                    && other.shape == instr.shape
                    && other.op == instr.op
                    && other.control_predecessors == instr.control_predecessors
            });
            match other {
                Some(other) if rewrites.take("equal-instructions", edit.module, id) => {
                    edit.replace(id, other);
                }
                Some(_) => {}
                None => bucket.push(id),
            }
        }
    }
    edit.finish()
}

fn may_merge(instr: &Instr, effects: &Effects) -> bool {
    !matches!(
        instr.op,
        Op::Parameter { .. } | Op::OptimizationBarrier | Op::AfterAll
    ) && !effects.has(instr)
        && !is_nondeterministic(&instr.op)
}

fn instr_hash(instr: &Instr) -> u64 {
    let mut hasher = DefaultHasher::new();
    instr.op.opcode().hash(&mut hasher);
    for operand in &instr.operands {
        operand.index().hash(&mut hasher);
    }
    hash_shape(&instr.shape, &mut hasher);
    match &instr.op {
        Op::Constant(Literal::Array(array)) => {
            let bytes = array.bytes();
            bytes[..bytes.len().min(64)].hash(&mut hasher);
        }
        Op::GetTupleElement { index } => index.hash(&mut hasher),
        Op::Slice { dims } => dims.hash(&mut hasher),
        Op::Broadcast { dims } | Op::Transpose { dims } => dims.hash(&mut hasher),
        _ => {}
    }
    hasher.finish()
}

fn hash_shape(shape: &Shape, hasher: &mut DefaultHasher) {
    match shape {
        Shape::Array(array) => {
            array.ty.hash(hasher);
            array.dims.hash(hasher);
        }
        Shape::Tuple(elements) => {
            for element in elements {
                hash_shape(element, hasher);
            }
        }
        Shape::Token | Shape::Opaque => {}
    }
}
