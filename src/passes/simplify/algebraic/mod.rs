//! Local identities, one file per family of ops.
//!
//! Each rule looks at one instruction and its operands and may name a value that stands for it.
//! Every identity holds bit for bit under IEEE arithmetic (which bits a NaN carries aside).

mod arithmetic;
mod contraction;
pub mod convert;
mod movement;
mod reduction;
mod slicing;
mod structure;

use crate::analysis::call_graph;
use crate::base::Result;
use crate::hlo::CompId;
use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::Stage;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::passes::edit;
use crate::passes::edit::Edit;
use crate::passes::pass::Changed;
use crate::passes::pass::Pass;
use crate::passes::pass::PassCx;
use crate::passes::simplify::splat;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// The pass.
pub struct Algebraic;

impl Pass for Algebraic {
    fn name(&self) -> &'static str {
        "algebraic"
    }
    fn stages(&self) -> (Stage, Stage) {
        (Stage::Imported, Stage::Imported)
    }
    fn run(&self, module: &mut Module, cx: &mut PassCx<'_>) -> Result<Changed> {
        let comps = call_graph::post_order(module);
        edit::sweep(module, &comps, &mut |edit, id| {
            let mut site = Site { edit, id };
            let new = rule(&mut site)?;
            Ok(new.filter(|_| cx.fuel.take()))
        })
    }
}

/// One instruction under a rule.
struct Site<'e, 'm> {
    edit: &'e mut Edit<'m>,
    id: InstrId,
}

/// What a rule answers.
type Answer = Result<Option<InstrId>>;

impl Site<'_, '_> {
    fn module(&self) -> &Module {
        self.edit.module
    }
    fn instr(&self) -> &Instr {
        self.edit.instr(self.id)
    }
    fn comp(&self) -> CompId {
        self.instr().parent
    }
    fn arg(&self, i: usize) -> InstrId {
        self.instr().operands[i]
    }
    /// The instruction that gives operand `i`.
    fn def(&self, i: usize) -> &Instr {
        self.edit.instr(self.arg(i))
    }
    fn array(&self, id: InstrId) -> Option<&ArrayShape> {
        self.edit.array(id)
    }
    /// Element type and dimensions of the result, when it is an array.
    fn result(&self) -> Option<ArrayShape> {
        let array = self.array(self.id)?;
        Some(ArrayShape::new(array.ty, array.dims.iter().copied()))
    }
    fn ty(&self) -> Option<PrimitiveType> {
        self.array(self.id).map(|a| a.ty)
    }
    fn same_shape(&self, a: InstrId, b: InstrId) -> bool {
        self.edit
            .instr(a)
            .shape
            .same_ignoring_layout(&self.edit.instr(b).shape)
    }
    /// The operand, when it has the result's shape.
    fn if_same(&self, id: InstrId) -> Option<InstrId> {
        self.same_shape(id, self.id).then_some(id)
    }
    fn is_number(&self, id: InstrId, value: i8) -> bool {
        splat::is_number(self.module(), id, value)
    }
    fn make(&mut self, op: Op, operands: &[InstrId]) -> Result<InstrId> {
        let comp = self.comp();
        self.edit.op(comp, op, operands)
    }
    /// Makes an instruction whose result is an array of these dimensions.
    fn make_array(
        &mut self,
        op: Op,
        operands: &[InstrId],
        ty: PrimitiveType,
        dims: &[usize],
    ) -> Result<InstrId> {
        let comp = self.comp();
        let shape = Shape::Array(ArrayShape::new(ty, dims.iter().copied()));
        self.edit.shaped(comp, op, operands, shape)
    }
    fn constant(&mut self, value: ArrayLiteral) -> Result<InstrId> {
        self.make(Op::Constant(Literal::Array(value)), &[])
    }
    /// An array of these dimensions, all of one value.
    fn filled(&mut self, value: ArrayLiteral, dims: &[usize]) -> Result<InstrId> {
        let ty = value.ty();
        let scalar = self.constant(value)?;
        if dims.is_empty() {
            return Ok(scalar);
        }
        self.make_array(Op::Broadcast { dims: Dims::new() }, &[scalar], ty, dims)
    }
    /// An array of the result's dimensions, all of one small number.
    fn filled_like(&mut self, value: i8) -> Answer {
        let Some(shape) = self.result() else {
            return Ok(None);
        };
        match splat::number(shape.ty, value) {
            Some(value) => self.filled(value, &shape.dims).map(Some),
            None => Ok(None),
        }
    }
    fn reshape(&mut self, id: InstrId, dims: &[usize]) -> Result<InstrId> {
        match self.array(id).map(|a| (a.ty, a.dims.as_slice() == dims)) {
            Some((ty, false)) => {
                self.make_array(Op::Reshape { inferred_dim: None }, &[id], ty, dims)
            }
            _ => Ok(id),
        }
    }
}

fn rule(site: &mut Site<'_, '_>) -> Answer {
    if let Some(new) = empty(site)? {
        return Ok(Some(new));
    }
    match &site.instr().op {
        Op::Unary(op) => {
            let op = *op;
            arithmetic::unary(site, op)
        }
        Op::Binary(op) => {
            let op = *op;
            arithmetic::binary(site, op)
        }
        Op::Compare { direction, .. } => {
            let direction = *direction;
            arithmetic::compare(site, direction)
        }
        Op::Select => structure::select(site),
        Op::Convert => convert::convert(site),
        Op::BitcastConvert => convert::bitcast_convert(site),
        Op::ReducePrecision {
            exponent_bits,
            mantissa_bits,
        } => {
            let bits = (*exponent_bits, *mantissa_bits);
            Ok(convert::reduce_precision(site, bits))
        }
        Op::Copy => Ok(site.if_same(site.arg(0))),
        Op::Constant(_) => movement::constant(site),
        Op::Iota { .. } => movement::iota(site),
        Op::Reshape { .. } => movement::reshape(site),
        Op::Broadcast { dims } => {
            let dims = dims.clone();
            movement::broadcast(site, &dims)
        }
        Op::Transpose { dims } => {
            let dims = dims.clone();
            movement::transpose(site, &dims)
        }
        Op::Reverse { dims } => {
            let dims = dims.clone();
            movement::reverse(site, &dims)
        }
        Op::Slice { dims } => {
            let dims = dims.clone();
            slicing::slice(site, &dims)
        }
        Op::DynamicSlice { sizes } => {
            let sizes = sizes.clone();
            slicing::dynamic_slice(site, &sizes)
        }
        Op::DynamicUpdateSlice => slicing::dynamic_update_slice(site),
        Op::Pad { dims } => {
            let dims = dims.clone();
            slicing::pad(site, &dims)
        }
        Op::Concatenate { dim } => {
            let dim = *dim;
            slicing::concatenate(site, dim)
        }
        Op::Reduce { dims, body } => {
            let (dims, body) = (dims.clone(), *body);
            reduction::reduce(site, &dims, body)
        }
        Op::Sort { dim, .. } => {
            let dim = *dim;
            reduction::sort(site, dim)
        }
        Op::Scatter { .. } => reduction::scatter(site),
        Op::Dot { dims, .. } => {
            let dims = dims.clone();
            contraction::dot(site, &dims)
        }
        Op::GetTupleElement { index } => {
            let index = *index;
            Ok(structure::get_tuple_element(site, index))
        }
        Op::Tuple => Ok(structure::tuple(site)),
        Op::Conditional { .. } => structure::conditional(site),
        _ => Ok(None),
    }
}

/// A pure op whose result has no element is a constant without elements.
fn empty(site: &mut Site<'_, '_>) -> Answer {
    let Some(shape) = site.result().filter(|s| s.element_count() == 0) else {
        return Ok(None);
    };
    match &site.instr().op {
        Op::Constant(_)
        | Op::Parameter { .. }
        | Op::GetTupleElement { .. }
        | Op::CustomCall(_)
        | Op::Conditional { .. }
        | Op::While { .. }
        | Op::Fusion { .. }
        | Op::Bitcast
        | Op::OptimizationBarrier => Ok(None),
        _ => site.constant(ArrayLiteral::zeros(shape)).map(Some),
    }
}
