//! Dynamic-shape ops whose answer is static.

use crate::analysis::call_graph;
use crate::analysis::trip_count::scalar_integer;
use crate::base::Result;
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
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;

/// The pass.
pub struct StaticDimensions;

impl Pass for StaticDimensions {
    fn name(&self) -> &'static str {
        "static-dimensions"
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
    let (parent, operands) = (instr.parent, instr.operands.clone());
    match instr.op {
        Op::GetDimensionSize { dim } => {
            let Some(shape) = edit.array(operands[0]) else {
                return Ok(None);
            };
            let Ok(size) = i32::try_from(shape.dims[dim]) else {
                return Ok(None);
            };
            if shape.is_dynamic_dim(dim) {
                return Ok(None);
            }
            let value = ArrayLiteral::new(
                ArrayShape::scalar(PrimitiveType::S32),
                size.to_le_bytes().to_vec(),
            );
            let constant = Op::Constant(Literal::Array(value));
            Ok(Some(edit.op(parent, constant, &[])?))
        }
        Op::SetDimensionSize { dim } => {
            let bound = match (edit.array(id), edit.array(operands[0])) {
                (Some(result), Some(operand)) if !operand.is_dynamic() => result.dims[dim],
                _ => return Ok(None),
            };
            let size = match &edit.instr(operands[1]).op {
                Op::Constant(literal) => literal.as_array().and_then(scalar_integer),
                _ => None,
            };
            // The operand's shape is static, the result's may not be: users see the static one.
            if size.is_some_and(|s| usize::try_from(s) == Ok(bound)) {
                let shape = edit.instr(operands[0]).shape.clone();
                edit.module.instrs[id].shape = shape;
                return Ok(Some(operands[0]));
            }
            Ok(None)
        }
        _ => Ok(None),
    }
}
