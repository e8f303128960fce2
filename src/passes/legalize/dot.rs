//! Brings every dot to one form: `[b, m, k]` or `[b, k, m]` by `[b, k, n]` or `[b, n, k]`, without
//! `b` when there is no batch.
//!
//! Dimensions of one are dropped and neighbours collapsed by reshapes, which move nothing. An
//! operand is transposed only when its batch, free and contracting dimensions are interleaved; the
//! transpose then keeps the fastest-varying dimension where that is possible. A dot that contracts
//! nothing is an outer product and becomes a multiply.

use smallvec::SmallVec;

use crate::analysis::call_graph;
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
    fn run(&self, module: &mut Module, _cx: &mut PassCx<'_>) -> Result<Changed> {
        let comps = call_graph::control(module);
        edit::sweep(module, &comps, &mut rule)
    }
}

/// One operand: its dimensions without ones, and which of them are batch, free, contracting.
#[derive(Debug)]
struct Side {
    id: InstrId,
    dims: Dims,
    batch: Dims,
    free: Dims,
    contracting: Dims,
}

impl Side {
    fn new(edit: &Edit<'_>, id: InstrId, batch: &[usize], contracting: &[usize]) -> Option<Self> {
        let array = edit.array(id)?;
        // Where each dimension goes when those of one are dropped.
        let mut place = Vec::with_capacity(array.rank());
        let mut dims = Dims::new();
        for &size in &array.dims {
            place.push((size != 1).then_some(dims.len()));
            if size != 1 {
                dims.push(size);
            }
        }
        let keep = |list: &[usize]| -> Dims { list.iter().filter_map(|&d| place[d]).collect() };
        let (batch, contracting) = (keep(batch), keep(contracting));
        let free = (0..dims.len())
            .filter(|d| !batch.contains(d) && !contracting.contains(d))
            .collect();
        Some(Self {
            id,
            dims,
            batch,
            free,
            contracting,
        })
    }
    fn size(&self, list: &[usize]) -> usize {
        list.iter().map(|&d| self.dims[d]).product()
    }
    fn elements(&self) -> usize {
        self.dims.iter().product()
    }
    fn order(&self, contracting_last: bool) -> Dims {
        let (first, last) = if contracting_last {
            (&self.free, &self.contracting)
        } else {
            (&self.contracting, &self.free)
        };
        self.batch
            .iter()
            .chain(first)
            .chain(last)
            .copied()
            .collect()
    }
    /// Whether contracting last is the order to take, and whether that needs no transpose.
    fn choose(&self) -> (bool, bool) {
        for contracting_last in [true, false] {
            if is_identity(&self.order(contracting_last)) {
                return (contracting_last, true);
            }
        }
        // Keep the fastest-varying dimension the fastest.
        (self.free.last() != Some(&(self.dims.len() - 1)), false)
    }
}

fn is_identity(order: &[usize]) -> bool {
    order.iter().enumerate().all(|(i, &d)| i == d)
}

fn reshape(edit: &mut Edit<'_>, comp: CompId, id: InstrId, dims: &[usize]) -> Result<InstrId> {
    match edit.array(id).map(|a| (a.ty, a.dims.as_slice() == dims)) {
        Some((ty, false)) => {
            let shape = Shape::array(ty, dims.iter().copied());
            edit.shaped(comp, Op::Reshape { inferred_dim: None }, &[id], shape)
        }
        _ => Ok(id),
    }
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
    if !sparsity.is_empty() || is_canonical(edit, id, dims) {
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
    let (Some(mut lhs), Some(mut rhs)) = sides else {
        return Ok(None);
    };
    order_contracting(&mut lhs, &mut rhs);
    let value = if lhs.contracting.is_empty() && result.ty != PrimitiveType::Pred {
        outer_product(edit, comp, &lhs, &rhs, &result)?
    } else {
        let (lhs_id, lhs_last) = place(edit, comp, &lhs)?;
        let (rhs_id, rhs_last) = place(edit, comp, &rhs)?;
        let batched = usize::from(!lhs.batch.is_empty());
        let batch: Dims = (0..batched).collect();
        let op = Op::Dot {
            dims: DotDims {
                lhs_contracting: Dims::from_elem(batched + usize::from(lhs_last), 1),
                rhs_contracting: Dims::from_elem(batched + usize::from(rhs_last), 1),
                lhs_batch: batch.clone(),
                rhs_batch: batch,
            },
            precision,
            sparsity: Vec::new(),
        };
        let mut shape: SmallVec<[usize; 3]> = SmallVec::new();
        if batched == 1 {
            shape.push(lhs.size(&lhs.batch));
        }
        shape.push(lhs.size(&lhs.free));
        shape.push(rhs.size(&rhs.free));
        let shape = Shape::array(result.ty, shape);
        edit.shaped(comp, op, &[lhs_id, rhs_id], shape)?
    };
    Ok(Some(reshape(edit, comp, value, &result.dims)?))
}

fn is_canonical(edit: &Edit<'_>, id: InstrId, dims: &DotDims) -> bool {
    let batched = dims.lhs_batch.len();
    let leads = |list: &[usize]| is_identity(list) && list.len() <= 1;
    let instr = edit.instr(id);
    let rank = batched + 2;
    let ranks = instr
        .operands
        .iter()
        .all(|&o| edit.array(o).is_some_and(|a| a.rank() == rank));
    let real_batch = dims.lhs_batch.iter().all(|&d| {
        edit.array(instr.operands[0])
            .is_some_and(|a| a.dims[d] != 1)
    });
    let contracts = edit
        .array(instr.operands[0])
        .is_some_and(|a| dims.lhs_contracting.iter().all(|&d| a.dims[d] != 1));
    ranks
        && real_batch
        && contracts
        && leads(&dims.lhs_batch)
        && leads(&dims.rhs_batch)
        && dims.lhs_contracting.len() == 1
}

/// Orders the pairs of contracting dimensions so that the larger operand, at least, lists them as
/// they lie in memory.
fn order_contracting(lhs: &mut Side, rhs: &mut Side) {
    let mut pairs: Vec<(usize, usize)> = lhs
        .contracting
        .iter()
        .copied()
        .zip(rhs.contracting.iter().copied())
        .collect();
    if rhs.elements() > lhs.elements() {
        pairs.sort_by_key(|p| p.1);
    } else {
        pairs.sort_by_key(|p| p.0);
    }
    lhs.contracting = pairs.iter().map(|p| p.0).collect();
    rhs.contracting = pairs.iter().map(|p| p.1).collect();
}

/// The operand as `[b, free, contracting]` (and true) or `[b, contracting, free]`.
fn place(edit: &mut Edit<'_>, comp: CompId, side: &Side) -> Result<(InstrId, bool)> {
    let (contracting_last, in_place) = side.choose();
    let mut value = reshape(edit, comp, side.id, &side.dims)?;
    if !in_place {
        let dims = side.order(contracting_last);
        value = edit.op(comp, Op::Transpose { dims }, &[value])?;
    }
    let mut shape: SmallVec<[usize; 3]> = SmallVec::new();
    if !side.batch.is_empty() {
        shape.push(side.size(&side.batch));
    }
    let (free, contracting) = (side.size(&side.free), side.size(&side.contracting));
    shape.extend(if contracting_last {
        [free, contracting]
    } else {
        [contracting, free]
    });
    let value = reshape(edit, comp, value, &shape)?;
    Ok((value, contracting_last))
}

/// A dot without contracting dimensions: `[b, m]` times `[b, n]`, element by element of `[b, m, n]`.
fn outer_product(
    edit: &mut Edit<'_>,
    comp: CompId,
    lhs: &Side,
    rhs: &Side,
    result: &ArrayShape,
) -> Result<InstrId> {
    let batched = usize::from(!lhs.batch.is_empty());
    let mut dims: Dims = Dims::new();
    if batched == 1 {
        dims.push(lhs.size(&lhs.batch));
    }
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
        let (value, _) = place(edit, comp, side)?;
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
