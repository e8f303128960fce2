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
    fn rules(&self) -> Vec<&'static str> {
        let tables = TABLES.iter().flat_map(|table| table.iter());
        tables.map(|rule| rule.0).collect()
    }
    fn run(&self, module: &mut Module, cx: &mut PassCx<'_>) -> Result<Changed> {
        let comps = call_graph::post_order(module);
        edit::sweep(module, &comps, &mut |edit, id| {
            let mut site = Site { edit, id };
            if cx.rewrites.is_spent() {
                return Ok(None);
            }
            for Rule(name, apply) in ANY.iter().chain(rules_of(&site.instr().op)) {
                if !cx.rewrites.is_on(name) {
                    continue;
                }
                if let Some(new) = apply(&mut site)?
                    && cx.rewrites.take(name, site.module(), id)
                {
                    return Ok(Some(new));
                }
            }
            Ok(None)
        })
    }
}

/// A rule: its name, and what it answers for an instruction of the op it is listed under.
struct Rule(&'static str, fn(&mut Site<'_, '_>) -> Answer);

/// Every table of rules.
const TABLES: &[&[Rule]] = &[
    ANY,
    arithmetic::UNARY,
    arithmetic::BINARY,
    arithmetic::COMPARE,
    structure::SELECT,
    convert::CONVERT,
    convert::BITCAST_CONVERT,
    convert::REDUCE_PRECISION,
    movement::COPY,
    movement::CONSTANT,
    movement::IOTA,
    movement::RESHAPE,
    movement::BROADCAST,
    movement::TRANSPOSE,
    movement::REVERSE,
    slicing::SLICE,
    slicing::DYNAMIC_SLICE,
    slicing::DYNAMIC_UPDATE_SLICE,
    slicing::PAD,
    slicing::CONCATENATE,
    reduction::REDUCE,
    reduction::SORT,
    reduction::SCATTER,
    contraction::DOT,
    structure::GET_TUPLE_ELEMENT,
    structure::TUPLE,
    structure::CONDITIONAL,
];

/// Rules of every op.
const ANY: &[Rule] = &[Rule("no-elements", no_elements)];

/// The rules for an op, in the order in which they are tried.
fn rules_of(op: &Op) -> &'static [Rule] {
    match op {
        Op::Unary(_) => arithmetic::UNARY,
        Op::Binary(_) => arithmetic::BINARY,
        Op::Compare { .. } => arithmetic::COMPARE,
        Op::Select => structure::SELECT,
        Op::Convert => convert::CONVERT,
        Op::BitcastConvert => convert::BITCAST_CONVERT,
        Op::ReducePrecision { .. } => convert::REDUCE_PRECISION,
        Op::Copy => movement::COPY,
        Op::Constant(_) => movement::CONSTANT,
        Op::Iota { .. } => movement::IOTA,
        Op::Reshape { .. } => movement::RESHAPE,
        Op::Broadcast { .. } => movement::BROADCAST,
        Op::Transpose { .. } => movement::TRANSPOSE,
        Op::Reverse { .. } => movement::REVERSE,
        Op::Slice { .. } => slicing::SLICE,
        Op::DynamicSlice { .. } => slicing::DYNAMIC_SLICE,
        Op::DynamicUpdateSlice => slicing::DYNAMIC_UPDATE_SLICE,
        Op::Pad { .. } => slicing::PAD,
        Op::Concatenate { .. } => slicing::CONCATENATE,
        Op::Reduce { .. } => reduction::REDUCE,
        Op::Sort { .. } => reduction::SORT,
        Op::Scatter { .. } => reduction::SCATTER,
        Op::Dot { .. } => contraction::DOT,
        Op::GetTupleElement { .. } => structure::GET_TUPLE_ELEMENT,
        Op::Tuple => structure::TUPLE,
        Op::Conditional { .. } => structure::CONDITIONAL,
        _ => &[],
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

/// A pure op whose result has no element is a constant without elements.
fn no_elements(site: &mut Site<'_, '_>) -> Answer {
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
