//! Computes at compile time what has constant operands.
//!
//! The evaluator does the work. A constant is only made when it is small, or not larger than what it
//! is made of: iotas and filled arrays are not written out. An elementwise op on filled arrays
//! becomes a filled array.

use crate::analysis::call_graph;
use crate::base::Result;
use crate::eval;
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
use crate::shape::Shape;

/// Elements up to which iotas and filled arrays are written out when that folds their user.
const SMALL: usize = 64;
/// Elements of the largest constant that is computed.
const LARGE: usize = 1 << 16;

/// The pass.
pub struct FoldConstants;

impl Pass for FoldConstants {
    fn name(&self) -> &'static str {
        "fold-constants"
    }
    fn stages(&self) -> (Stage, Stage) {
        (Stage::Imported, Stage::Imported)
    }
    fn rules(&self) -> Vec<&'static str> {
        RULES.iter().map(|(name, _)| *name).collect()
    }
    fn run(&self, module: &mut Module, cx: &mut PassCx<'_>) -> Result<Changed> {
        let comps = call_graph::post_order(module);
        edit::sweep(module, &comps, &mut |edit, id| {
            for (name, rule) in RULES {
                if cx.rewrites.is_on(name)
                    && let Some(new) = rule(edit, id)?
                    && cx.rewrites.take(name, edit.module, id)
                {
                    return Ok(Some(new));
                }
            }
            Ok(None)
        })
    }
}

/// A rule by name: what may stand for the instruction.
type Rule = fn(&mut Edit<'_>, InstrId) -> Result<Option<InstrId>>;

const RULES: &[(&str, Rule)] = &[
    ("fold-filled", fold_filled),
    ("fold-constants", fold_constants),
];

/// The instruction and its shape, when its operands could give a constant.
fn foldable<'a>(edit: &'a Edit<'_>, id: InstrId) -> Option<(&'a Instr, ArrayShape)> {
    let instr = edit.instr(id);
    let shape = edit.array(id).filter(|a| !a.is_dynamic())?;
    let may = !instr.operands.is_empty() && is_foldable(&instr.op);
    may.then(|| (instr, shape.clone()))
}

fn fold_filled(edit: &mut Edit<'_>, id: InstrId) -> Result<Option<InstrId>> {
    let Some((instr, shape)) = foldable(edit, id) else {
        return Ok(None);
    };
    if !instr.op.is_elementwise() || shape.element_count() <= 1 {
        return Ok(None);
    }
    let values: Option<Vec<ArrayLiteral>> = instr
        .operands
        .iter()
        .map(|&o| splat::splat(edit.module, o))
        .collect();
    let Some(values) = values else {
        return Ok(None);
    };
    let scalar = Instr {
        shape: Shape::scalar(shape.ty),
        ..instr.clone()
    };
    filled(edit, &scalar, values, &shape)
}

fn fold_constants(edit: &mut Edit<'_>, id: InstrId) -> Result<Option<InstrId>> {
    let Some((instr, shape)) = foldable(edit, id) else {
        return Ok(None);
    };
    let count = shape.element_count();
    if count > LARGE {
        return Ok(None);
    }
    let mut total = 0;
    let mut values = Vec::new();
    for &operand in &instr.operands {
        let Some(value) = written_out(edit.module, operand, count <= SMALL) else {
            return Ok(None);
        };
        total += value.len();
        values.push(value);
    }
    if count > SMALL && count > total {
        return Ok(None);
    }
    let (parent, instr) = (instr.parent, instr.clone());
    match computed(&instr, values) {
        Some(value) => {
            let shape = Shape::Array(shape.clone()).without_layout();
            let op = Op::Constant(value);
            edit.shaped(parent, op, &[], shape).map(Some)
        }
        None => Ok(None),
    }
}

fn filled(
    edit: &mut Edit<'_>,
    scalar: &Instr,
    values: Vec<ArrayLiteral>,
    shape: &ArrayShape,
) -> Result<Option<InstrId>> {
    let Some(value) = computed(scalar, values) else {
        return Ok(None);
    };
    let parent = scalar.parent;
    let constant = edit.op(parent, Op::Constant(value), &[])?;
    let shape = Shape::array(shape.ty, shape.dims.iter().copied());
    let op = Op::Broadcast { dims: Dims::new() };
    edit.shaped(parent, op, &[constant], shape).map(Some)
}

/// The value of the op on these operands, when the evaluator can tell.
fn computed(instr: &Instr, values: Vec<ArrayLiteral>) -> Option<Literal> {
    let mut module = Module::new("fold");
    let comp = module.new_comp("entry");
    let mut builder = module.builder(comp);
    let operands: Vec<InstrId> = values
        .into_iter()
        .map(|v| builder.constant(Literal::Array(v)))
        .collect();
    let root = builder.push_instr(Instr {
        operands: operands.into(),
        shape: instr.shape.without_layout(),
        control_predecessors: smallvec::SmallVec::new(),
        extra: None,
        ..instr.clone()
    });
    builder.set_root(root);
    eval::evaluate(&module, &[]).ok()
}

/// The value of `id` when it is a constant, or, where `all`, an iota or filled array.
fn written_out(module: &Module, id: InstrId, all: bool) -> Option<ArrayLiteral> {
    let instr = module.instr(id);
    let all = all && instr.shape.as_array()?.element_count() <= LARGE;
    match &instr.op {
        Op::Constant(literal) => literal.as_array().cloned(),
        Op::Iota { .. } if all => computed(instr, Vec::new())?.as_array().cloned(),
        Op::Broadcast { .. } if all => {
            let source = written_out(module, instr.operands[0], false)?;
            computed(instr, vec![source])?.as_array().cloned()
        }
        _ => None,
    }
}

fn is_foldable(op: &Op) -> bool {
    op.is_elementwise()
        || matches!(
            op,
            Op::BitcastConvert
                | Op::Transpose { .. }
                | Op::Reverse { .. }
                | Op::Slice { .. }
                | Op::DynamicSlice { .. }
                | Op::DynamicUpdateSlice
                | Op::Pad { .. }
                | Op::Concatenate { .. }
                | Op::Gather { .. }
        )
}
