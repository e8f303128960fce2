//! Makes the module independent of layouts.
//!
//! Within the module a layout only matters to `bitcast`, to custom calls that constrain their
//! operands, and at the door. So: a bitcast becomes the reshape and transposes of logical arrays
//! that it means; a custom call keeps its layouts between bitcasts that lead to and from row-major
//! arrays; parameters and results of the entry that the caller lays out otherwise become row-major
//! arrays of their physical dimensions; all other layouts are dropped.
//! `config.entry_layout` keeps the caller's view.

use crate::analysis::call_graph;
use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::Stage;
use crate::passes::edit::Edit;
use crate::passes::layout::relaid;
use crate::passes::pass::Changed;
use crate::passes::pass::Pass;
use crate::passes::pass::PassCx;
use crate::passes::pass::unsupported;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::Layout;
use crate::shape::Shape;
use crate::shape::index::inverse_permutation;

/// The pass.
pub struct NormalizeLayouts;

impl Pass for NormalizeLayouts {
    fn name(&self) -> &'static str {
        "normalize-layouts"
    }
    fn stages(&self) -> (Stage, Stage) {
        (Stage::Imported, Stage::Imported)
    }
    fn run(&self, module: &mut Module, cx: &mut PassCx<'_>) -> Result<Changed> {
        let program = module.entry_layout();
        for shape in program.parameters.iter().chain([&program.result]) {
            check_plain(shape)?;
        }
        let comps = call_graph::post_order(module);
        let mut edit = Edit::new(module);
        for &comp in &comps {
            let order = edit.module.comps[comp].instrs.clone();
            for id in order {
                match edit.instr(id).op {
                    Op::Bitcast => bitcast(&mut edit, id, cx)?,
                    Op::CustomCall(_) => custom_call(&mut edit, id)?,
                    _ => {}
                }
            }
        }
        edit.finish();
        drop_layouts(module, &comps);
        let mut edit = Edit::new(module);
        for (number, shape) in program.parameters.iter().enumerate() {
            parameter(&mut edit, number, shape)?;
        }
        result(&mut edit, &program.result)?;
        edit.finish();
        module.config.entry_layout = Some(program);
        Ok(Changed::Yes)
    }
}

/// Tiled and padded arrays at the door have no row-major equal.
fn check_plain(shape: &Shape) -> Result<()> {
    for (_, leaf) in shape.leaves() {
        let layout = leaf.as_array().and_then(|a| a.layout.as_ref());
        if layout.is_some_and(|l| !l.tiles.is_empty() || l.tail_padding_alignment > 1) {
            return Err(Diagnostic::unsupported(
                codes::COMPILE_UNSUPPORTED,
                "a parameter or result has a tiled layout",
            ));
        }
    }
    Ok(())
}

/// Logical dimension numbers, the slowest-varying first.
fn major_to_minor(layout: &Layout) -> Dims {
    layout.minor_to_major.iter().rev().copied().collect()
}

fn physical_dims(array: &ArrayShape, order: &[usize]) -> Dims {
    order.iter().map(|&d| array.dims[d]).collect()
}

fn is_identity(order: &[usize]) -> bool {
    order.iter().enumerate().all(|(i, &d)| i == d)
}

/// The array as it lies in memory when it has that layout: row-major, dimensions permuted.
fn to_physical(edit: &mut Edit<'_>, comp: CompId, id: InstrId, layout: &Layout) -> Result<InstrId> {
    let order = major_to_minor(layout);
    if is_identity(&order) {
        return Ok(id);
    }
    edit.op(comp, Op::Transpose { dims: order }, &[id])
}

/// The inverse of [`to_physical`].
fn to_logical(edit: &mut Edit<'_>, comp: CompId, id: InstrId, layout: &Layout) -> Result<InstrId> {
    let order = major_to_minor(layout);
    if is_identity(&order) {
        return Ok(id);
    }
    let dims = inverse_permutation(&order);
    edit.op(comp, Op::Transpose { dims }, &[id])
}

fn bitcast(edit: &mut Edit<'_>, id: InstrId, cx: &PassCx<'_>) -> Result<()> {
    let instr = edit.instr(id);
    let (comp, operand) = (instr.parent, instr.operands[0]);
    let (Some(from), Some(to)) = (edit.array(operand).cloned(), edit.array(id).cloned()) else {
        return Err(unsupported(
            edit.module,
            id,
            cx.target,
            "it is not an array",
        ));
    };
    let from_layout = from.layout_or_default();
    let to_layout = to.layout_or_default();
    // What stands for the operand by now has no layout; the one it came with was read above.
    let operand = edit.resolve(operand);
    let mut value = to_physical(edit, comp, operand, &from_layout)?;
    if from.ty != to.ty {
        if from.ty.bit_width() != to.ty.bit_width() {
            return Err(unsupported(
                edit.module,
                id,
                cx.target,
                "it changes the width of elements",
            ));
        }
        let shape = edit.array(value).map(|a| a.with_type(to.ty));
        let Some(mut shape) = shape else {
            return Err(unsupported(
                edit.module,
                id,
                cx.target,
                "it is not an array",
            ));
        };
        shape.layout = None;
        value = edit.shaped(comp, Op::BitcastConvert, &[value], Shape::Array(shape))?;
    }
    let dims = physical_dims(&to, &major_to_minor(&to_layout));
    if edit.array(value).is_some_and(|a| a.dims != dims) {
        let shape = Shape::Array(ArrayShape::new(to.ty, dims));
        value = edit.shaped(comp, Op::Reshape { inferred_dim: None }, &[value], shape)?;
    }
    let value = to_logical(edit, comp, value, &to_layout)?;
    edit.replace(id, value);
    Ok(())
}

/// Puts bitcasts between a custom call with layouts and the row-major world.
fn custom_call(edit: &mut Edit<'_>, id: InstrId) -> Result<()> {
    let instr = edit.instr(id);
    let (comp, operands) = (instr.parent, instr.operands.clone());
    let Op::CustomCall(call) = &instr.op else {
        return Ok(());
    };
    let Some(constraints) = call.operand_layout_constraints.clone() else {
        return Ok(());
    };
    let shape = instr.shape.clone();
    if !constraints.iter().any(moves) && !moves(&shape) {
        return Ok(());
    }
    let mut copy = instr.clone();
    for (operand, wanted) in copy.operands.iter_mut().zip(&constraints) {
        if moves(wanted)
            && let Some(array) = wanted.as_array()
        {
            let from = edit.resolve(*operand);
            let physical = to_physical(edit, comp, from, &array.layout_or_default())?;
            *operand = edit.shaped(comp, Op::Bitcast, &[physical], wanted.clone())?;
        }
    }
    debug_assert_eq!(copy.operands.len(), operands.len(), "operands stay as many");
    let call = edit.push(copy);
    let value = from_custom_call(edit, comp, call, &shape)?;
    edit.replace(id, value);
    Ok(())
}

/// The value of `id` (or of the part of it) with row-major arrays only.
fn from_custom_call(
    edit: &mut Edit<'_>,
    comp: CompId,
    id: InstrId,
    shape: &Shape,
) -> Result<InstrId> {
    if !moves(shape) {
        return Ok(id);
    }
    match shape {
        Shape::Array(array) => {
            let layout = array.layout_or_default();
            let dims = physical_dims(array, &major_to_minor(&layout));
            let mut physical = ArrayShape::new(array.ty, dims);
            physical.layout = Some(Layout::row_major(physical.rank()));
            let value = edit.shaped(comp, Op::Bitcast, &[id], Shape::Array(physical))?;
            to_logical(edit, comp, value, &layout)
        }
        Shape::Tuple(elements) => {
            let mut parts = Vec::new();
            for (index, element) in elements.iter().enumerate() {
                let op = Op::GetTupleElement { index };
                let part = edit.shaped(comp, op, &[id], element.clone())?;
                parts.push(from_custom_call(edit, comp, part, element)?);
            }
            edit.op(comp, Op::Tuple, &parts)
        }
        Shape::Token | Shape::Opaque => Ok(id),
    }
}

/// Drops every layout but those of custom calls and of what stands next to them.
fn drop_layouts(module: &mut Module, comps: &[CompId]) {
    for &comp in comps {
        let mut kept: Vec<InstrId> = Vec::new();
        for i in 0..module.comps[comp].instrs.len() {
            let id = module.comps[comp].instrs[i];
            let instr = &module.instrs[id];
            let keep = match &instr.op {
                // After the rewrite above, bitcasts only stand before and after custom calls.
                Op::CustomCall(_) | Op::Bitcast => true,
                Op::GetTupleElement { .. } => kept.contains(&instr.operands[0]),
                _ => false,
            };
            if keep {
                if instr.shape.is_tuple() {
                    kept.push(id);
                }
                continue;
            }
            let instr = &mut module.instrs[id];
            instr.shape.for_each_array_mut(&mut |a| a.layout = None);
            if let Op::Constant(literal) = &instr.op {
                instr.op = Op::Constant(relaid(literal, &instr.shape));
            }
        }
    }
}

/// Whether an array of that layout is not its own physical form.
fn moves(shape: &Shape) -> bool {
    shape.leaves().iter().any(|(_, s)| {
        s.as_array()
            .is_some_and(|a| !a.layout_or_default().is_row_major())
    })
}

fn physical_shape(shape: &Shape) -> Shape {
    let mut physical = shape.clone();
    physical.for_each_array_mut(&mut |array| {
        let order = major_to_minor(&array.layout_or_default());
        array.dims = physical_dims(array, &order);
        if array.is_dynamic() {
            array.dynamic = order.iter().map(|&d| array.is_dynamic_dim(d)).collect();
        }
        array.layout = None;
    });
    physical
}

fn parameter(edit: &mut Edit<'_>, number: usize, shape: &Shape) -> Result<()> {
    if !moves(shape) {
        return Ok(());
    }
    let entry = edit.module.entry;
    let old = edit.module.comps[entry].params[number];
    let mut new = edit.instr(old).clone();
    new.shape = physical_shape(shape);
    let new = edit.push(new);
    edit.module.comps[entry].params[number] = new;
    let value = leaves(edit, entry, new, shape, &to_logical)?;
    edit.replace(old, value);
    Ok(())
}

fn result(edit: &mut Edit<'_>, shape: &Shape) -> Result<()> {
    if !moves(shape) {
        return Ok(());
    }
    let entry = edit.module.entry;
    let root = edit.resolve(edit.module.comps[entry].root);
    let value = leaves(edit, entry, root, shape, &to_physical)?;
    edit.module.comps[entry].root = value;
    edit.touch(entry);
    Ok(())
}

/// Applies `change` to every array of a possibly nested value.
fn leaves(
    edit: &mut Edit<'_>,
    comp: CompId,
    id: InstrId,
    shape: &Shape,
    change: &dyn Fn(&mut Edit<'_>, CompId, InstrId, &Layout) -> Result<InstrId>,
) -> Result<InstrId> {
    match shape {
        Shape::Array(array) => change(edit, comp, id, &array.layout_or_default()),
        Shape::Tuple(elements) => {
            let mut parts = Vec::new();
            for (index, element) in elements.iter().enumerate() {
                let part = edit.op(comp, Op::GetTupleElement { index }, &[id])?;
                parts.push(leaves(edit, comp, part, element, change)?);
            }
            edit.op(comp, Op::Tuple, &parts)
        }
        Shape::Token | Shape::Opaque => Ok(id),
    }
}
