//! Custom calls that mean an op of HLO, or nothing.

use crate::analysis::call_graph;
use crate::base::Result;
use crate::hlo::CustomCall;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::Stage;
use crate::hlo::custom_calls;
use crate::passes::edit;
use crate::passes::edit::Edit;
use crate::passes::pass::Changed;
use crate::passes::pass::Pass;
use crate::passes::pass::PassCx;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// The pass.
pub struct CustomCalls;

impl Pass for CustomCalls {
    fn name(&self) -> &'static str {
        "custom-calls"
    }
    fn stages(&self) -> (Stage, Stage) {
        (Stage::Imported, Stage::Imported)
    }
    fn run(&self, module: &mut Module, _cx: &mut PassCx<'_>) -> Result<Changed> {
        let comps = call_graph::post_order(module);
        edit::sweep(module, &comps, &mut rule)
    }
}

fn rule(edit: &mut Edit<'_>, id: InstrId) -> Result<Option<InstrId>> {
    let instr = edit.instr(id);
    let Op::CustomCall(call) = &instr.op else {
        return Ok(None);
    };
    let operands = instr.operands.clone();
    if custom_calls::is_annotation(&call.target) {
        let (parent, shape) = (instr.parent, instr.shape.clone());
        let same = |id: InstrId, shape: &Shape| edit.instr(id).shape.same_ignoring_layout(shape);
        let pairs = || operands.iter().zip(shape.as_tuple().unwrap_or_default());
        match (&*operands, shape.as_tuple()) {
            (&[x], _) if same(x, &shape) => return Ok(Some(x)),
            (_, Some([])) => return Ok(Some(edit.shaped(parent, Op::Tuple, &[], shape)?)),
            (all, Some(elements))
                if all.len() == elements.len() && pairs().all(|(&x, shape)| same(x, shape)) =>
            {
                return Ok(Some(edit.shaped(parent, Op::Tuple, &operands, shape)?));
            }
            _ => {}
        }
    }
    if let Some(k) = top_k(edit, call, &operands, &instr.shape) {
        let (parent, largest) = (instr.parent, true);
        let topk = Op::TopK {
            k,
            largest,
            is_stable: true,
        };
        let shape = instr.shape.without_layout();
        return Ok(Some(edit.shaped(parent, topk, &[operands[0]], shape)?));
    }
    Ok(None)
}

/// The `k` of a `TopK` call: largest elements of the last dimension, with their positions.
fn top_k(
    edit: &Edit<'_>,
    call: &CustomCall,
    operands: &[InstrId],
    result: &Shape,
) -> Option<usize> {
    let (Some(&[operand]), Some([values, positions])) = (operands.as_array(), result.as_tuple())
    else {
        return None;
    };
    let k = *values.as_array()?.dims.last()?;
    let mut chosen = edit.array(operand)?.clone();
    chosen.layout = None;
    let last = chosen.dims.last_mut()?;
    let fits = k <= *last;
    *last = k;
    let places = Shape::Array(chosen.with_type(PrimitiveType::S32));
    let takes = call.target == "TopK"
        && fits
        && !chosen.ty.is_complex()
        && values.same_ignoring_layout(&Shape::Array(chosen))
        && positions.same_ignoring_layout(&places);
    takes.then_some(k)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::hlo_text::parse;

    #[test]
    fn calls_of_top_k_must_have_its_shapes() {
        for (result, is_top_k) in [
            ("(f32[2], s32[2])", true),
            ("(f32[4], s32[4])", true),
            ("(f32[5], s32[5])", false),
            ("(f32[2], s64[2])", false),
            ("(s32[2], s32[2])", false),
        ] {
            let text = format!(
                "HloModule m\nENTRY e {{\n  p = f32[4] parameter(0)\n  ROOT r = {result} custom-call(p), custom_call_target=\"TopK\"\n}}\n"
            );
            let mut module = parse(&text).expect("the text is a module");
            let entry = module.entry;
            edit::sweep(&mut module, &[entry], &mut rule).expect("the pass runs");
            let op = &module.root(entry).op;
            assert_eq!(matches!(op, Op::TopK { .. }), is_top_k, "{result}");
        }
    }
}
