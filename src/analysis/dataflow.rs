//! Which value stands at which leaf of which instruction.
//!
//! Structure moves no data: `tuple`, `get-tuple-element`, `bitcast`, calls and the parameters of
//! called computations pass values on. A loop's state is one value per leaf, seen by the condition,
//! the body and the loop's users, unless the body returns the leaf as it got it; then it is the value
//! the loop started with. A conditional's result leaf is a value of its own unless all branches give
//! the same one. Fusion bodies and reducers are not looked into.
//!
//! Needs every computation of control flow to have one caller.

use crate::base::Arena;
use crate::base::Diagnostic;
use crate::base::Id;
use crate::base::IdMap;
use crate::base::IdSet;
use crate::base::Result;
use crate::base::codes;
use crate::define_id;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::shape::ArrayShape;
use crate::shape::Shape;
use crate::shape::ShapeIndex;

define_id! {
    /// A value: what one leaf of one instruction holds.
    pub struct ValueId, "v";
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// A leaf of an entry parameter.
    Parameter,
    /// A literal.
    Constant,
    /// A leaf of a loop's state, defined by the `while`.
    State,
    /// A leaf of a conditional's result that the branches do not agree on.
    Merge,
    /// Anything an instruction computes.
    Computed,
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// The instruction that defines it.
    pub instr: InstrId,
    /// The position among the leaves of that instruction's shape.
    pub leaf: usize,
    /// The same position as an index.
    pub index: ShapeIndex,
    /// Its shape; absent for tokens and opaque values, which have no memory.
    pub shape: Option<ArrayShape>,
    /// Where it comes from.
    pub kind: ValueKind,
}

impl Value {
    /// Bytes it takes.
    pub fn bytes(&self) -> u64 {
        self.shape.as_ref().map_or(0, |s| s.byte_size() as u64)
    }
}

/// How a computation comes to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// Nobody calls it: it is the entry.
    Entry,
    /// Condition of a `while`.
    Condition,
    /// Body of a `while`.
    Body,
    /// That branch of a `conditional`.
    Branch(usize),
    /// Body of a `call`.
    Call,
}

/// The values of a module.
#[derive(Clone, Debug)]
pub struct Dataflow {
    values: Arena<ValueId, Value>,
    at: IdMap<InstrId, Vec<ValueId>>,
    callers: IdMap<CompId, Option<(InstrId, CallKind)>>,
    comps: Vec<CompId>,
}

impl Dataflow {
    /// Follows the values through the entry computation and all control flow.
    ///
    /// # Errors
    /// `XA9001` when a computation of control flow has two callers.
    pub fn new(module: &Module) -> Result<Self> {
        let mut builder = FlowBuilder {
            module,
            flow: Self {
                values: Arena::new(),
                at: IdMap::new(),
                callers: IdMap::new(),
                comps: Vec::new(),
            },
            forward: Vec::new(),
            seen: IdSet::new(),
        };
        builder.computation(module.entry)?;
        Ok(builder.finish())
    }
    /// Every value, in the order of definition.
    pub fn values(&self) -> &Arena<ValueId, Value> {
        &self.values
    }
    /// The values at the leaves of an instruction, in leaf order. Empty for instructions of fusion
    /// bodies and other computations outside control flow.
    pub fn at(&self, instr: InstrId) -> &[ValueId] {
        &self.at[instr]
    }
    /// Who calls a computation of control flow, and how; none for the entry.
    pub fn caller(&self, comp: CompId) -> Option<(InstrId, CallKind)> {
        self.callers[comp]
    }
    /// The computations of control flow, the entry first, callers before callees.
    pub fn comps(&self) -> &[CompId] {
        &self.comps
    }
    /// Whether state leaf `leaf` of a `while` is a value of its own rather than what it started with.
    pub fn is_state(&self, instr: InstrId, leaf: usize) -> bool {
        let value = &self.values[self.at[instr][leaf]];
        value.kind == ValueKind::State && value.instr == instr && value.leaf == leaf
    }
    /// Whether result leaf `leaf` of a `conditional` is a value of its own.
    pub fn is_merge(&self, instr: InstrId, leaf: usize) -> bool {
        let value = &self.values[self.at[instr][leaf]];
        value.kind == ValueKind::Merge && value.instr == instr && value.leaf == leaf
    }
}

/// Whether an instruction only passes its operands' values on, and takes no time.
pub fn is_structural(op: &Op) -> bool {
    matches!(
        op,
        Op::Tuple
            | Op::GetTupleElement { .. }
            | Op::Bitcast
            | Op::OptimizationBarrier
            | Op::AddDependency
            | Op::Domain(_)
            | Op::Parameter { .. }
            | Op::Constant(_)
            | Op::AfterAll
    )
}

/// The number of leaves of a shape.
pub fn leaf_count(shape: &Shape) -> usize {
    match shape {
        Shape::Tuple(elements) => elements.iter().map(leaf_count).sum(),
        Shape::Array(_) | Shape::Token | Shape::Opaque => 1,
    }
}

/// The range of leaves that element `element` of a tuple shape takes.
pub fn element_leaves(shape: &Shape, element: usize) -> std::ops::Range<usize> {
    let elements = shape.as_tuple().unwrap_or_default();
    let start = elements.iter().take(element).map(leaf_count).sum();
    start..start + elements.get(element).map_or(0, leaf_count)
}

struct FlowBuilder<'a> {
    module: &'a Module,
    flow: Dataflow,
    /// Where a value was found to be another one; itself otherwise.
    forward: Vec<ValueId>,
    seen: IdSet<CompId>,
}

impl FlowBuilder<'_> {
    fn resolve(&self, value: ValueId) -> ValueId {
        let mut value = value;
        loop {
            let next = self.forward[value.index()];
            if next == value {
                return value;
            }
            value = next;
        }
    }

    /// New values for all leaves of `instr`.
    fn fresh(&mut self, instr: InstrId, kind: ValueKind) -> Vec<ValueId> {
        let shape = &self.module.instrs[instr].shape;
        let mut out = Vec::new();
        for (leaf, (index, part)) in shape.leaves().into_iter().enumerate() {
            let id = self.flow.values.push(Value {
                instr,
                leaf,
                index,
                shape: part.as_array().cloned(),
                kind,
            });
            self.forward.push(id);
            out.push(id);
        }
        out
    }

    fn enter(&mut self, comp: CompId, caller: InstrId, kind: CallKind) -> Result<()> {
        if self.flow.callers[comp].is_some() || comp == self.module.entry {
            return Err(Diagnostic::internal(
                codes::INTERNAL,
                format!(
                    "computation `{}` has two callers, wanted one",
                    self.module.comps[comp].name
                ),
            ));
        }
        self.flow.callers.set(comp, Some((caller, kind)));
        Ok(())
    }

    fn set_params(&mut self, comp: CompId, values: &[Vec<ValueId>]) {
        let params = &self.module.comps[comp].params;
        for (&param, values) in params.iter().zip(values) {
            self.flow.at.set(param, values.clone());
        }
    }

    fn computation(&mut self, comp: CompId) -> Result<()> {
        self.flow.comps.push(comp);
        if !self.seen.insert(comp) {
            return Err(Diagnostic::internal(
                codes::INTERNAL,
                "a computation was reached twice",
            ));
        }
        let module = self.module;
        for &id in &module.comps[comp].instrs {
            self.instruction(comp, id)?;
        }
        Ok(())
    }

    fn instruction(&mut self, comp: CompId, id: InstrId) -> Result<()> {
        let instr = &self.module.instrs[id];
        let operand = |flow: &Dataflow, i: usize| flow.at[instr.operands[i]].clone();
        let values = match &instr.op {
            Op::Parameter { .. } if comp == self.module.entry => {
                self.fresh(id, ValueKind::Parameter)
            }
            // Set by whoever calls the computation.
            Op::Parameter { .. } => return Ok(()),
            Op::Constant(_) => self.fresh(id, ValueKind::Constant),
            Op::Tuple => {
                let parts = instr.operands.iter();
                parts
                    .flat_map(|&o| self.flow.at[o].iter().copied())
                    .collect()
            }
            Op::GetTupleElement { index } => {
                let range = element_leaves(&self.module.operand(id, 0).shape, *index);
                self.flow.at[instr.operands[0]][range].to_vec()
            }
            Op::Bitcast | Op::AddDependency | Op::Domain(_) => operand(&self.flow, 0),
            Op::OptimizationBarrier => {
                let parts = instr.operands.iter();
                parts
                    .flat_map(|&o| self.flow.at[o].iter().copied())
                    .collect()
            }
            Op::While { condition, body } => self.while_loop(id, *condition, *body)?,
            Op::Conditional { branches } => self.conditional(id, branches)?,
            Op::Call { body, .. } => {
                self.enter(*body, id, CallKind::Call)?;
                let operands = instr.operands.iter();
                let params: Vec<_> = operands.map(|&o| self.flow.at[o].clone()).collect();
                self.set_params(*body, &params);
                self.computation(*body)?;
                self.flow.at[self.module.comps[*body].root].clone()
            }
            _ => self.fresh(id, ValueKind::Computed),
        };
        self.flow.at.set(id, values);
        Ok(())
    }

    fn while_loop(&mut self, id: InstrId, condition: CompId, body: CompId) -> Result<Vec<ValueId>> {
        let init = self.flow.at[self.module.instrs[id].operands[0]].clone();
        let state = self.fresh(id, ValueKind::State);
        self.enter(condition, id, CallKind::Condition)?;
        self.enter(body, id, CallKind::Body)?;
        self.set_params(condition, std::slice::from_ref(&state));
        self.set_params(body, std::slice::from_ref(&state));
        self.computation(condition)?;
        self.computation(body)?;
        let root = self.flow.at[self.module.comps[body].root].clone();
        for ((&state, &init), &root) in state.iter().zip(&init).zip(&root) {
            if self.resolve(root) == state {
                self.forward[state.index()] = self.resolve(init);
            }
        }
        Ok(state)
    }

    fn conditional(&mut self, id: InstrId, branches: &[CompId]) -> Result<Vec<ValueId>> {
        let mut roots = Vec::new();
        for (i, &branch) in branches.iter().enumerate() {
            self.enter(branch, id, CallKind::Branch(i))?;
            let operand = self.module.instrs[id].operands.get(i + 1).copied();
            let values = operand.map(|o| self.flow.at[o].clone()).unwrap_or_default();
            self.set_params(branch, std::slice::from_ref(&values));
            self.computation(branch)?;
            roots.push(self.flow.at[self.module.comps[branch].root].clone());
        }
        let merged = self.fresh(id, ValueKind::Merge);
        for (leaf, &value) in merged.iter().enumerate() {
            let mut given = roots.iter().filter_map(|r| r.get(leaf));
            let first = given.next().map(|&v| self.resolve(v));
            // What several branches have in common is defined outside them.
            if let Some(first) = first
                && branches.len() > 1
                && given.all(|&v| self.resolve(v) == first)
            {
                self.forward[value.index()] = first;
            }
        }
        Ok(merged)
    }

    fn finish(mut self) -> Dataflow {
        let resolved: Vec<ValueId> = self
            .flow
            .values
            .ids()
            .map(|value| self.resolve(value))
            .collect();
        for &comp in &self.flow.comps {
            for &instr in &self.module.comps[comp].instrs {
                for value in &mut self.flow.at[instr] {
                    *value = resolved[value.index()];
                }
            }
        }
        self.flow
    }
}
