//! Dynamic arrays become static ones of their bounds, beside their sizes.
//!
//! First every value gets its shape: which dimensions are dynamic follows from the ops, through
//! loops, branches and calls ([`Flow`]). Then a value of a dynamic array is a tuple of the array at
//! its bounds and an s32 for each dynamic dimension ([`rewrite`]), ops work on the arrays and on the
//! sizes ([`work`]), and whatever would see elements beyond the real sizes is kept from it
//! ([`masked`]). At the door a dynamic array is the bytes that XLA has for it ([`door`]). Afterwards
//! no shape of the module is dynamic.

mod contraction;
mod door;
mod masked;
mod movement;
mod rewrite;
mod size;
mod sort;
mod work;

use crate::analysis::call_graph;
use crate::base::Result;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Stage;
use crate::hlo::dynamic::flow::Flow;
use crate::hlo::dynamic::flow::is_about_sizes;
use crate::hlo::dynamic::flow::is_dynamic;
use crate::hlo::dynamic::flow::static_shape;
use crate::passes::edit::Edit;
use crate::passes::pass::Changed;
use crate::passes::pass::Pass;
use crate::passes::pass::PassCx;
use crate::passes::pass::unsupported;
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
        let target = cx.target;
        let refuse = |id: InstrId, why: &str| {
            let why = format!("it {why}");
            Err(unsupported(module, id, target, &why))
        };
        let flow = Flow::of(module, &comps, &door::shapes(module).0, &refuse)?;
        rewrite::rewrite(module, &comps, flow)?;
        let mut edit = Edit::new(module);
        comps.iter().for_each(|&comp| edit.touch(comp));
        edit.finish();
        Ok(Changed::Yes)
    }
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
