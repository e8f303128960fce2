//! Dynamic arrays become static ones of their bounds, beside their sizes.
//!
//! First every value gets its shape: which dimensions are dynamic follows from the ops, through
//! loops, branches and calls ([`flow`]). Then a value of a dynamic array is a tuple of the array at
//! its bounds and an s32 for each dynamic dimension ([`rewrite`]), ops work on the arrays and on the
//! sizes ([`work`]), and whatever would see elements beyond the real sizes is kept from it
//! ([`masked`]). At the door a dynamic array is the bytes that XLA has for it ([`door`]). Afterwards
//! no shape of the module is dynamic.

mod contraction;
mod door;
mod flow;
mod masked;
mod movement;
mod rewrite;
mod size;
mod sort;
mod work;

use crate::analysis::call_graph;
use crate::base::Result;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::Stage;
use crate::hlo::custom_calls;
use crate::passes::edit::Edit;
use crate::passes::pass::Changed;
use crate::passes::pass::Pass;
use crate::passes::pass::PassCx;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// The pass.
pub struct DynamicDimensions;

impl Pass for DynamicDimensions {
    fn name(&self) -> &'static str {
        "dynamic-dimensions"
    }
    fn stages(&self) -> (Stage, Stage) {
        (Stage::Imported, Stage::Imported)
    }
    fn run(&self, module: &mut Module, cx: &mut PassCx<'_>) -> Result<Changed> {
        let comps = call_graph::post_order(module);
        let concerns = comps.iter().any(|&comp| {
            let mut instrs = module.comps[comp].instrs.iter();
            instrs.any(|&id| is_about_sizes(&module.instr(id).op) || is_dynamic(module.shape(id)))
        });
        if !concerns {
            return Ok(Changed::No);
        }
        let flow = flow::Flow::of(module, &comps, cx.target)?;
        rewrite::rewrite(module, &comps, flow)?;
        let mut edit = Edit::new(module);
        comps.iter().for_each(|&comp| edit.touch(comp));
        edit.finish();
        Ok(Changed::Yes)
    }
}

/// Whether the op itself is about sizes.
fn is_about_sizes(op: &Op) -> bool {
    match op {
        Op::GetDimensionSize { .. } | Op::SetDimensionSize { .. } | Op::DynamicReshape => true,
        Op::CustomCall(call) => [custom_calls::PAD_TO_STATIC, custom_calls::SLICE_TO_DYNAMIC]
            .contains(&call.target.as_str()),
        _ => false,
    }
}

/// Whether any array in the shape is dynamic.
fn is_dynamic(shape: &Shape) -> bool {
    match shape {
        Shape::Array(array) => array.is_dynamic(),
        Shape::Tuple(parts) => parts.iter().any(is_dynamic),
        Shape::Token | Shape::Opaque => false,
    }
}

/// The shape with every array at its bounds.
fn static_shape(shape: &Shape) -> Shape {
    let mut plain = shape.clone();
    plain.for_each_array_mut(&mut |array| array.dynamic.clear());
    plain
}

/// The dynamic dimensions of an array, in order.
fn dynamic_dims(array: &ArrayShape) -> impl Iterator<Item = usize> + '_ {
    (0..array.rank()).filter(|&d| array.is_dynamic_dim(d))
}

/// The shape that stands for a value: a dynamic array is a tuple of the array and its sizes.
fn boxed(shape: &Shape) -> Shape {
    match shape {
        Shape::Array(array) if array.is_dynamic() => {
            let sizes = dynamic_dims(array).map(|_| Shape::scalar(PrimitiveType::S32));
            let data = static_shape(shape).without_layout();
            Shape::Tuple([data].into_iter().chain(sizes).collect())
        }
        Shape::Tuple(parts) => Shape::Tuple(parts.iter().map(boxed).collect()),
        Shape::Array(_) | Shape::Token | Shape::Opaque => shape.clone(),
    }
}
