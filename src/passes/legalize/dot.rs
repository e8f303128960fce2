//! Brings every dot to one form: each operand has one dimension of rows or columns, one of sums, and
//! those of the batch, in any order in which a product can read it.
//!
//! Transposes and reshapes in front of an operand become its order of dimensions. Dimensions of one
//! are dropped and neighbours collapsed by reshapes, which move nothing. An operand is transposed
//! only when its rows or its sums are not neighbours in memory, or when the batch varies fastest.
//! A transpose of the result that wants columns before rows swaps the operands. A dot that contracts
//! nothing is an outer product and becomes a multiply.

use smallvec::SmallVec;

use crate::analysis::call_graph;
use crate::analysis::users::Users;
use crate::base::Result;
use crate::hlo::BinaryOp;
use crate::hlo::CompId;
use crate::hlo::DotDims;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::Stage;
use crate::passes::edit;
use crate::passes::edit::Edit;
use crate::passes::legalize::dot_side::Side;
use crate::passes::legalize::dot_side::pair_up;
use crate::passes::legalize::dot_side::reshape;
use crate::passes::pass::Changed;
use crate::passes::pass::Pass;
use crate::passes::pass::PassCx;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// The pass.
pub struct CanonicalDot;

impl Pass for CanonicalDot {
    fn name(&self) -> &'static str {
        "canonical-dot"
    }
    fn stages(&self) -> (Stage, Stage) {
        (Stage::Legal, Stage::Legal)
    }
    fn rules(&self) -> Vec<&'static str> {
        vec!["dot-turned", "dot-in-one-form"]
    }
    fn run(&self, module: &mut Module, cx: &mut PassCx<'_>) -> Result<Changed> {
        let comps = call_graph::control(module);
        let users = Users::of(module, &comps);
        let rewrites = &mut cx.rewrites;
        let turned = edit::sweep(module, &comps, &mut |edit, id| {
            if !rewrites.is_on("dot-turned") {
                return Ok(None);
            }
            let new = turn(edit, id, &users)?;
            Ok(new.filter(|_| rewrites.take("dot-turned", edit.module, id)))
        })?;
        let brought = edit::sweep(module, &comps, &mut |edit, id| {
            if !rewrites.is_on("dot-in-one-form") {
                return Ok(None);
            }
            let new = rule(edit, id)?;
            Ok(new.filter(|_| rewrites.take("dot-in-one-form", edit.module, id)))
        })?;
        Ok(match (turned, brought) {
            (Changed::No, Changed::No) => Changed::No,
            _ => Changed::Yes,
        })
    }
}

/// A transpose of a dot that alone uses it: the dot gives its batch in the order that is wanted, and
/// its columns after its rows.
fn turn(edit: &mut Edit<'_>, id: InstrId, users: &Users) -> Result<Option<InstrId>> {
    let instr = edit.instr(id);
    let Op::Transpose { dims: order } = &instr.op else {
        return Ok(None);
    };
    let (comp, dot) = (instr.parent, instr.operands[0]);
    let Op::Dot {
        dims,
        precision,
        sparsity,
    } = &edit.instr(dot).op
    else {
        return Ok(None);
    };
    let operands = edit.instr(dot).operands.clone();
    let (Some(result), Some(lhs)) = (edit.array(dot), edit.array(operands[0])) else {
        return Ok(None);
    };
    if !sparsity.is_empty() || users.count(dot) != 1 {
        return Ok(None);
    }
    let batch_count = dims.lhs_batch.len();
    let rows = lhs.rank() - batch_count - dims.lhs_contracting.len();
    let rank = result.rank();
    let batch: Dims = order.iter().copied().filter(|&d| d < batch_count).collect();
    let swaps = order
        .last()
        .is_some_and(|&d| (batch_count..batch_count + rows).contains(&d))
        && batch_count + rows < rank;
    let (row_dims, column_dims) = (batch_count..batch_count + rows, batch_count + rows..rank);
    let (first, second) = if swaps {
        (column_dims, row_dims)
    } else {
        (row_dims, column_dims)
    };
    // The dimensions of the old dot's result in the order of the new one's.
    let new: Dims = batch.iter().copied().chain(first).chain(second).collect();
    if new.iter().enumerate().all(|(i, &d)| i == d) {
        return Ok(None);
    }
    let pick = |list: &Dims| -> Dims { batch.iter().map(|&d| list[d]).collect() };
    let mut new_dims = DotDims {
        lhs_batch: pick(&dims.lhs_batch),
        rhs_batch: pick(&dims.rhs_batch),
        ..dims.clone()
    };
    let (mut precision, mut operands) = (precision.clone(), operands);
    if swaps {
        std::mem::swap(&mut new_dims.lhs_batch, &mut new_dims.rhs_batch);
        std::mem::swap(&mut new_dims.lhs_contracting, &mut new_dims.rhs_contracting);
        precision.operand_precision.reverse();
        operands.swap(0, 1);
    }
    let shape = Shape::array(result.ty, new.iter().map(|&d| result.dims[d]));
    let rest: Dims = order
        .iter()
        .filter_map(|d| new.iter().position(|n| n == d))
        .collect();
    let op = Op::Dot {
        dims: new_dims,
        precision,
        sparsity: Vec::new(),
    };
    let value = edit.shaped(comp, op, &operands, shape)?;
    if rest.iter().enumerate().all(|(i, &d)| i == d) {
        return Ok(Some(value));
    }
    edit.op(comp, Op::Transpose { dims: rest }, &[value])
        .map(Some)
}

/// An operand and what it is made of by transposes and reshapes, nearest first.
fn views(edit: &Edit<'_>, side: Side) -> Vec<Side> {
    let mut views = vec![side];
    while let Some(next) = views.last().and_then(|side| side.peeled(edit)) {
        views.push(next);
    }
    views
}

/// Transposes on the way to the product when it reads these views.
fn transposes(views: &[Side], side: &Side) -> usize {
    let all = views.last().map_or(0, |last| last.folded);
    all - side.folded + usize::from(!side.reads_well())
}

/// The views of both operands to read: those that take the fewest transposes, nearest first. The
/// pairs of contracting dimensions are ordered as they lie in one of the operands, the larger one
/// when that is as good.
fn choose(lhs: &[Side], rhs: &[Side]) -> Option<(Side, Side)> {
    let mut best: Option<(usize, Side, Side)> = None;
    for left in lhs {
        for right in rhs {
            let (mut l, mut r) = (left.clone(), right.clone());
            if !pair_up(&mut l, &mut r) {
                continue;
            }
            let larger = usize::from(r.elements() > l.elements());
            for by in [larger, 1 - larger] {
                order_contracting(&mut l, &mut r, by);
                let cost = transposes(lhs, &l) + transposes(rhs, &r);
                if best.as_ref().is_none_or(|(least, ..)| cost < *least) {
                    best = Some((cost, l.clone(), r.clone()));
                }
            }
        }
    }
    best.map(|(_, l, r)| (l, r))
}

fn rule(edit: &mut Edit<'_>, id: InstrId) -> Result<Option<InstrId>> {
    let instr = edit.instr(id);
    let Op::Dot {
        dims,
        precision,
        sparsity,
    } = &instr.op
    else {
        return Ok(None);
    };
    if !sparsity.is_empty() {
        return Ok(None);
    }
    let (dims, precision) = (dims.clone(), precision.clone());
    let (comp, operands) = (instr.parent, instr.operands.clone());
    let Some(result) = edit.array(id).cloned() else {
        return Ok(None);
    };
    let sides = (
        Side::new(edit, operands[0], &dims.lhs_batch, &dims.lhs_contracting),
        Side::new(edit, operands[1], &dims.rhs_batch, &dims.rhs_contracting),
    );
    let (Some(lhs), Some(rhs)) = sides else {
        return Ok(None);
    };
    let Some((lhs, rhs)) = choose(&views(edit, lhs), &views(edit, rhs)) else {
        return Ok(None);
    };
    if lhs.contracting.is_empty() && result.ty != PrimitiveType::Pred {
        let value = outer_product(edit, comp, &lhs, &rhs, &result)?;
        return Ok(Some(reshape(edit, comp, value, &result.dims)?));
    }
    let moves = !lhs.reads_well() || !rhs.reads_well() || lhs.folded + rhs.folded > 0;
    let mut sides = Vec::new();
    for side in [lhs, rhs] {
        sides.push(if side.reads_well() {
            side
        } else {
            side.gather(edit, comp)?
        });
    }
    let (lhs, rhs) = (&sides[0], &sides[1]);
    let (left, right) = (lhs.placed(), rhs.placed());
    let new = DotDims {
        lhs_contracting: Dims::from_elem(left.contracting, 1),
        rhs_contracting: Dims::from_elem(right.contracting, 1),
        lhs_batch: left.batch,
        rhs_batch: right.batch,
    };
    let has = |id: InstrId, dims: &Dims| edit.array(id).is_some_and(|a| a.dims == *dims);
    if !moves && new == dims && has(operands[0], &left.dims) && has(operands[1], &right.dims) {
        return Ok(None);
    }
    let mut shape = lhs.sizes(&lhs.batch);
    shape.extend([lhs.size(&lhs.free), rhs.size(&rhs.free)]);
    let shape = Shape::array(result.ty, shape);
    let operands = [
        reshape(edit, comp, lhs.id, &left.dims)?,
        reshape(edit, comp, rhs.id, &right.dims)?,
    ];
    let op = Op::Dot {
        dims: new,
        precision,
        sparsity: Vec::new(),
    };
    let value = edit.shaped(comp, op, &operands, shape)?;
    Ok(Some(reshape(edit, comp, value, &result.dims)?))
}

/// Orders the pairs of contracting dimensions as they lie in memory in the left (0) or right (1)
/// operand.
fn order_contracting(lhs: &mut Side, rhs: &mut Side, by: usize) {
    let mut pairs: SmallVec<[[usize; 2]; 4]> = lhs
        .contracting
        .iter()
        .zip(&rhs.contracting)
        .map(|(&l, &r)| [l, r])
        .collect();
    pairs.sort_by_key(|pair| pair[by]);
    lhs.contracting = pairs.iter().map(|p| p[0]).collect();
    rhs.contracting = pairs.iter().map(|p| p[1]).collect();
}

/// A dot without contracting dimensions: `[b, m]` times `[b, n]`, element by element of `[b, m, n]`,
/// where `b` may be several dimensions.
fn outer_product(
    edit: &mut Edit<'_>,
    comp: CompId,
    lhs: &Side,
    rhs: &Side,
    result: &ArrayShape,
) -> Result<InstrId> {
    let mut dims = lhs.sizes(&lhs.batch);
    let batched = dims.len();
    dims.push(lhs.size(&lhs.free));
    dims.push(rhs.size(&rhs.free));
    // Multiply in the widest type at hand.
    let ty = [lhs, rhs]
        .iter()
        .filter_map(|s| edit.array(s.id).map(|a| a.ty))
        .chain([result.ty])
        .max_by_key(|t| (t.is_complex(), t.is_float(), t.bit_width()))
        .unwrap_or(result.ty);
    let mut parts = Vec::new();
    for (side, own) in [(lhs, batched), (rhs, batched + 1)] {
        let order = side.batch.iter().chain(&side.free).copied().collect();
        let value = side.in_order(edit, comp, order)?.id;
        let mut flat: Dims = dims[..batched].into();
        flat.push(side.size(&side.free));
        let mut value = reshape(edit, comp, value, &flat)?;
        if edit.array(value).is_some_and(|a| a.ty != ty) {
            let shape = Shape::array(ty, flat.iter().copied());
            value = edit.shaped(comp, Op::Convert, &[value], shape)?;
        }
        let mut placed: Dims = (0..batched).collect();
        placed.push(own);
        let shape = Shape::array(ty, dims.iter().copied());
        parts.push(edit.shaped(comp, Op::Broadcast { dims: placed }, &[value], shape)?);
    }
    let mut value = edit.op(comp, Op::Binary(BinaryOp::Multiply), &parts)?;
    if ty != result.ty {
        let shape = Shape::array(result.ty, dims.iter().copied());
        value = edit.shaped(comp, Op::Convert, &[value], shape)?;
    }
    Ok(value)
}
