//! Gives ops a wider element type where the target has no kernel for the narrow one.
//!
//! Factorizations and triangular solves of narrow floats are those of f32, rounded at the end. On a
//! GPU, ops whose work items write single elements, in an order of their own, take elements that share
//! bytes as whole bytes: two work items that write into one byte would undo each other's work.

use crate::base::Result;
use crate::hlo::Builder;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::Rewriter;
use crate::hlo::Stage;
use crate::hlo::visit;
use crate::passes::pass::Changed;
use crate::passes::pass::Pass;
use crate::passes::pass::PassCx;
use crate::shape::PrimitiveType;
use crate::shape::Shape;
use crate::target::Platform;
use crate::target::Target;

/// The pass.
pub struct WidenElements;

impl Pass for WidenElements {
    fn name(&self) -> &'static str {
        "widen-elements"
    }
    fn stages(&self) -> (Stage, Stage) {
        (Stage::Imported, Stage::Imported)
    }
    fn run(&self, module: &mut Module, cx: &mut PassCx<'_>) -> Result<Changed> {
        let found: Vec<(InstrId, Widening)> = visit::reachable(module)
            .into_iter()
            .flat_map(|comp| module.comps[comp].instrs.iter().copied())
            .filter_map(|id| Some((id, widening(module, id, cx.target)?)))
            .collect();
        let mut rewriter = Rewriter::new(module);
        for (id, wider) in found {
            rewriter.replace_with(id, |b| widen(b, id, wider))?;
        }
        Ok(Changed::when(rewriter.finish()))
    }
}

/// The type elements of a type are given, when that is another.
type Widening = fn(PrimitiveType) -> Option<PrimitiveType>;

/// What the op needs on the target, when an element type of its operands is too narrow.
fn widening(module: &Module, id: InstrId, target: &Target) -> Option<Widening> {
    let instr = &module.instrs[id];
    let wider: Widening = match instr.op {
        Op::Cholesky { .. } | Op::TriangularSolve { .. } => single,
        Op::Sort { .. } | Op::TopK { .. } | Op::Scatter { .. } | Op::SelectAndScatter { .. }
            if target.platform() == Platform::Cuda =>
        {
            whole_byte
        }
        _ => return None,
    };
    let narrow = |&operand: &InstrId| {
        let array = module.shape(operand).as_array();
        array.is_some_and(|array| wider(array.ty).is_some())
    };
    instr.operands.iter().any(narrow).then_some(wider)
}

fn single(ty: PrimitiveType) -> Option<PrimitiveType> {
    (ty.is_float() && ty.bit_width() < 32).then_some(PrimitiveType::F32)
}

/// The type of one element a byte that has all values of a packed one.
fn whole_byte(ty: PrimitiveType) -> Option<PrimitiveType> {
    match ty {
        PrimitiveType::S1 | PrimitiveType::S2 | PrimitiveType::S4 => Some(PrimitiveType::S8),
        PrimitiveType::U1 | PrimitiveType::U2 | PrimitiveType::U4 => Some(PrimitiveType::U8),
        PrimitiveType::F4E2M1FN => Some(PrimitiveType::F8E4M3FN),
        _ => None,
    }
}

/// The op on wider elements, and its results narrow again.
fn widen(b: &mut Builder<'_>, id: InstrId, wider: Widening) -> Result<InstrId> {
    let instr = b.module.instrs[id].clone();
    let operands: Result<Vec<InstrId>> = instr
        .operands
        .iter()
        .map(|&operand| match wider(b.ty(operand)?) {
            Some(ty) => b.convert(operand, ty),
            None => Ok(operand),
        })
        .collect();
    let mut op = instr.op;
    match &mut op {
        Op::Sort { body, .. } | Op::Scatter { body, .. } => *body = around(b, *body, wider)?,
        Op::SelectAndScatter {
            select, scatter, ..
        } => {
            *select = around(b, *select, wider)?;
            *scatter = around(b, *scatter, wider)?;
        }
        _ => {}
    }
    let result = b.op(op, &operands?)?;
    like(b, result, &instr.shape)
}

/// A computation that takes and gives wider elements and calls this one.
fn around(b: &mut Builder<'_>, body: CompId, wider: Widening) -> Result<CompId> {
    let comp = &b.module.comps[body];
    let params: Vec<Shape> = comp.params.iter().map(|&p| b.shape(p).clone()).collect();
    let result = b.shape(comp.root).clone();
    let name = format!("{}.wide", comp.name);
    let wide = |shape: &Shape| match shape.as_array().and_then(|array| wider(array.ty)) {
        Some(ty) => Shape::scalar(ty),
        None => shape.clone(),
    };
    let wide_params: Vec<Shape> = params.iter().map(wide).collect();
    let wide_result = match result.as_tuple() {
        Some(parts) => Shape::Tuple(parts.iter().map(wide).collect()),
        None => wide(&result),
    };
    b.computation(name, &wide_params, |b, given| {
        let pairs = given.iter().zip(&params);
        let narrow: Result<Vec<InstrId>> = pairs.map(|(&x, shape)| like(b, x, shape)).collect();
        let call = Op::Call {
            body,
            is_composite: false,
        };
        let called = b.op(call, &narrow?)?;
        like(b, called, &wide_result)
    })
}

/// A value, or the parts of a tuple, converted to the element types of a shape.
fn like(b: &mut Builder<'_>, x: InstrId, shape: &Shape) -> Result<InstrId> {
    if let Some(array) = shape.as_array() {
        return b.convert(x, array.ty);
    }
    let parts = b.elements(x)?;
    let shapes = shape.as_tuple().unwrap_or_default();
    let pairs = parts.into_iter().zip(shapes);
    let parts: Result<Vec<InstrId>> = pairs.map(|(part, shape)| like(b, part, shape)).collect();
    b.tuple(&parts?)
}
