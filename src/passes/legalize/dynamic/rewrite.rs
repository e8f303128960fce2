//! Rewrites computations: values, calls, loops and branches.

use crate::base::Diagnostic;
use crate::base::IdMap;
use crate::base::Result;
use crate::base::codes;
use crate::hlo::Builder;
use crate::hlo::CompId;
use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::dynamic::Sizes;
use crate::hlo::dynamic::flow::Flow;
use crate::hlo::dynamic::flow::is_dynamic;
use crate::hlo::dynamic::flow::static_shape;
use crate::passes::legalize::dynamic::boxed;
use crate::passes::legalize::dynamic::door;
use crate::passes::legalize::dynamic::dynamic_dims;
use crate::passes::legalize::dynamic::work::Array;
use crate::passes::legalize::dynamic::work::Clamps;
use crate::passes::legalize::dynamic::work::Work;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// Rewrites every computation.
///
/// # Errors
/// When an op cannot be built, which the flow has ruled out.
pub(super) fn rewrite(module: &mut Module, comps: &[CompId], flow: Flow) -> Result<()> {
    let program = module.entry_layout();
    let mut rewriter = Rewriter {
        module,
        flow,
        values: IdMap::new(),
    };
    for &comp in comps {
        rewriter.computation(comp)?;
    }
    module.config.entry_layout = Some(program);
    Ok(())
}

struct Rewriter<'m> {
    module: &'m mut Module,
    flow: Flow,
    /// What stands for each instruction.
    values: IdMap<InstrId, Option<InstrId>>,
}

impl Rewriter<'_> {
    fn computation(&mut self, comp: CompId) -> Result<()> {
        let old = std::mem::take(&mut self.module.comps[comp].instrs);
        let is_entry = comp == self.module.entry;
        let door = is_entry.then(|| door::shapes(self.module));
        let mut clamps = Clamps::new();
        for id in old {
            let new = match &self.module.instr(id).op {
                Op::Parameter { number, .. } => {
                    let number = *number;
                    self.parameter(comp, id, number, door.as_ref().map(|d| &d.2[number]))?
                }
                _ => self.instr(comp, id, &mut clamps)?,
            };
            self.values.set(id, Some(new));
        }
        let root = self.module.comps[comp].root;
        let from = self.flow.shape(root).clone();
        let value = self.value(root);
        let mut b = self.module.builder(comp);
        let value = match &door {
            Some((_, result, _, caller)) => door::leave(&mut b, value, &from, result, caller)?,
            None => adapt(&mut b, value, &from, self.flow.result(comp))?,
        };
        b.set_root(value);
        self.control_edges(comp);
        Ok(())
    }

    /// Control edges lead from what stands for their old ends.
    fn control_edges(&mut self, comp: CompId) {
        for i in 0..self.module.comps[comp].instrs.len() {
            let id = self.module.comps[comp].instrs[i];
            let edges = std::mem::take(&mut self.module.instrs[id].control_predecessors);
            let mut new = edges.clone();
            new.clear();
            for edge in edges {
                let edge = self.values[edge].unwrap_or(edge);
                if edge != id && !new.contains(&edge) {
                    new.push(edge);
                }
            }
            self.module.instrs[id].control_predecessors = new;
        }
    }

    fn value(&self, id: InstrId) -> InstrId {
        self.values[id].unwrap_or(id)
    }

    /// Puts an instruction that there is into its computation again.
    fn keep(&mut self, comp: CompId, id: InstrId) -> InstrId {
        let operands = self.module.instrs[id].operands.clone();
        let instr = &mut self.module.instrs[id];
        instr.operands = operands
            .iter()
            .map(|&o| self.values[o].unwrap_or(o))
            .collect();
        instr.shape = static_shape(&instr.shape);
        if let Op::Constant(literal) = &mut instr.op {
            *literal = door::whole(literal);
        }
        self.module.comps[comp].instrs.push(id);
        id
    }

    /// Puts a new instruction into its computation.
    fn push(&mut self, instr: Instr) -> InstrId {
        let parent = instr.parent;
        let id = self.module.instrs.push(instr);
        self.module.comps[parent].instrs.push(id);
        id
    }

    /// A parameter has what stands for its value; one of the entry has bytes. `caller` is its shape
    /// with the caller's layout.
    fn parameter(
        &mut self,
        comp: CompId,
        id: InstrId,
        number: usize,
        caller: Option<&Shape>,
    ) -> Result<InstrId> {
        let shape = self.flow.shape(id).clone();
        if !is_dynamic(&shape) {
            return Ok(self.keep(comp, id));
        }
        let mut new = self.module.instr(id).clone();
        new.op = Op::Parameter {
            number,
            leaf_replication: Vec::new(),
        };
        new.shape = match caller {
            Some(_) => door::bytes_shape(&shape),
            None => boxed(&shape),
        };
        let new = self.push(new);
        self.module.comps[comp].params[number] = new;
        match caller {
            Some(caller) => door::enter(&mut self.module.builder(comp), new, &shape, caller),
            None => Ok(new),
        }
    }

    fn instr(&mut self, comp: CompId, id: InstrId, clamps: &mut Clamps) -> Result<InstrId> {
        let instr = self.module.instr(id);
        let (op, operands) = (instr.op.clone(), instr.operands.clone());
        let shape = self.flow.shape(id).clone();
        let values: Vec<InstrId> = operands.iter().map(|&o| self.value(o)).collect();
        match op {
            Op::Call { body, .. } | Op::Fusion { body, .. } => {
                let params = self.flow.params(body).to_vec();
                let arguments = self.arguments(comp, &operands, &params)?;
                if !is_dynamic(&shape) && !params.iter().any(is_dynamic) {
                    return Ok(self.keep(comp, id));
                }
                let call = Op::Call {
                    body,
                    is_composite: false,
                };
                Ok(self.structure(id, call, arguments, &shape))
            }
            Op::AsyncStart { body, .. } => {
                let params = self.flow.params(body).to_vec();
                let arguments = self.arguments(comp, &operands, &params)?;
                Ok(self.structure(id, op, arguments, &shape))
            }
            Op::While { .. } => {
                let state = self.arguments(comp, &operands, std::slice::from_ref(&shape))?;
                Ok(self.structure(id, op, state, &shape))
            }
            Op::Conditional { ref branches } => {
                let params = branches.iter().map(|&b| self.flow.params(b)[0].clone());
                let params: Vec<Shape> = params.collect();
                let arguments = self.arguments(comp, &operands[1..], &params)?;
                let arguments = [values[0]].into_iter().chain(arguments).collect();
                Ok(self.structure(id, op, arguments, &shape))
            }
            Op::CopyStart { .. } if is_dynamic(&shape) => {
                let mut b = self.module.builder(comp).like(id);
                let context = b.constant_int(PrimitiveType::U32, 0);
                b.tuple(&[values[0], values[0], context])
            }
            Op::CopyDone if is_dynamic(&shape) => self.module.builder(comp).gte(values[0], 0),
            Op::GetTupleElement { index } if is_dynamic(&shape) => {
                self.module.builder(comp).like(id).gte(values[0], index)
            }
            Op::Tuple
            | Op::GetTupleElement { .. }
            | Op::OptimizationBarrier
            | Op::AddDependency
            | Op::Domain(_)
            | Op::AsyncUpdate
            | Op::AsyncDone
                if operands.iter().any(|&o| is_dynamic(self.flow.shape(o))) =>
            {
                Ok(self.structure(id, op, values, &shape))
            }
            _ => match self.formulas(id)? {
                Some(sizes) => self.array_op(comp, id, &operands, &sizes, clamps),
                None => Ok(self.keep(comp, id)),
            },
        }
    }

    /// The formulas of an op on arrays, when it is one for [`Work`].
    fn formulas(&self, id: InstrId) -> Result<Option<Vec<Sizes>>> {
        self.flow.formulas(self.module, id).map_err(|why| {
            let message = format!(
                "`{}` {why} all of a sudden",
                self.module.instr(id).op.opcode()
            );
            Diagnostic::internal(codes::INTERNAL, message)
        })
    }

    /// Operands in the shapes that are asked of them.
    fn arguments(
        &mut self,
        comp: CompId,
        operands: &[InstrId],
        wanted: &[Shape],
    ) -> Result<Vec<InstrId>> {
        let pairs = operands.iter().zip(wanted);
        let given: Vec<(InstrId, Shape, &Shape)> = pairs
            .map(|(&o, wanted)| (self.value(o), self.flow.shape(o).clone(), wanted))
            .collect();
        let mut b = self.module.builder(comp);
        let adapted = given
            .into_iter()
            .map(|(value, from, to)| adapt(&mut b, value, &from, to));
        adapted.collect()
    }

    /// The instruction over these operands.
    fn structure(&mut self, id: InstrId, op: Op, operands: Vec<InstrId>, shape: &Shape) -> InstrId {
        let mut new = self.module.instr(id).clone();
        new.op = op;
        new.operands = operands.into();
        new.shape = boxed(shape);
        if let Some(extra) = &mut new.extra {
            extra.sharding = None;
        }
        self.push(new)
    }

    fn array_op(
        &mut self,
        comp: CompId,
        id: InstrId,
        operands: &[InstrId],
        sizes: &[Sizes],
        clamps: &mut Clamps,
    ) -> Result<InstrId> {
        let given = operands
            .iter()
            .map(|&o| (self.value(o), self.flow.shape(o).clone()));
        let given: Vec<(InstrId, Shape)> = given.collect();
        let shape = self.flow.shape(id).clone();
        let mut b = self.module.builder(comp).like(id);
        let mut arrays = Vec::new();
        for (value, shape) in &given {
            if let Shape::Array(array) = shape {
                arrays.push(opened(&mut b, *value, array)?);
            }
        }
        let mut work = Work::new(b, id, arrays, sizes, clamps);
        let results = work.run()?;
        let mut b = work.b;
        let parts = results.iter().map(|array| closed(&mut b, array));
        let parts: Vec<InstrId> = parts.collect::<Result<_>>()?;
        match shape {
            Shape::Tuple(_) => b.tuple(&parts),
            Shape::Array(_) | Shape::Token | Shape::Opaque => Ok(parts[0]),
        }
    }
}

/// The parts of what stands for an array.
pub(super) fn opened(b: &mut Builder<'_>, value: InstrId, shape: &ArrayShape) -> Result<Array> {
    let mut array = Array {
        data: value,
        sizes: vec![None; shape.rank()],
        shape: shape.clone(),
    };
    if shape.is_dynamic() {
        array.data = b.gte(value, 0)?;
        for (i, d) in dynamic_dims(shape).enumerate() {
            array.sizes[d] = Some(b.gte(value, 1 + i)?);
        }
    }
    Ok(array)
}

/// What stands for an array.
pub(super) fn closed(b: &mut Builder<'_>, array: &Array) -> Result<InstrId> {
    if !array.shape.is_dynamic() {
        return Ok(array.data);
    }
    let mut parts = vec![array.data];
    for d in dynamic_dims(&array.shape) {
        let size = array.sizes[d];
        parts.push(match size {
            Some(size) => size,
            None => b.constant_int(PrimitiveType::S32, array.shape.dims[d] as i128),
        });
    }
    b.tuple(&parts)
}

/// What stands for a value of one shape, for another that is as dynamic or more.
fn adapt(b: &mut Builder<'_>, value: InstrId, from: &Shape, to: &Shape) -> Result<InstrId> {
    if boxed(from) == boxed(to) || !is_dynamic(to) {
        return Ok(value);
    }
    match (from, to) {
        (Shape::Array(from), Shape::Array(to)) => {
            let mut array = opened(b, value, from)?;
            array.shape.dynamic = to.dynamic.clone();
            closed(b, &array)
        }
        (Shape::Tuple(from), Shape::Tuple(to)) => {
            let mut parts = Vec::new();
            for (i, (from, to)) in from.iter().zip(to).enumerate() {
                let part = b.gte(value, i)?;
                parts.push(adapt(b, part, from, to)?);
            }
            b.tuple(&parts)
        }
        _ => Ok(value),
    }
}
