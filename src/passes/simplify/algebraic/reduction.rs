//! Identities of reductions, sorts and scatters.

use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::passes::simplify::algebraic::Answer;
use crate::passes::simplify::algebraic::Site;
use crate::shape::Dims;
use crate::shape::Shape;

pub(super) fn reduce(site: &mut Site<'_, '_>, dims: &Dims, body: CompId) -> Answer {
    if combines_nothing(site) {
        return reshaped(site).map(Some);
    }
    if site.instr().operands.len() != 2 {
        return Ok(None);
    }
    let (arg, init) = (site.arg(0), site.arg(1));
    let (Some(result), Some(from)) = (site.result(), site.array(arg).cloned()) else {
        return Ok(None);
    };
    if from.element_count() == 0 {
        let op = Op::Broadcast { dims: Dims::new() };
        return site
            .make_array(op, &[init], result.ty, &result.dims)
            .map(Some);
    }
    let inner = site.def(0);
    if let Op::Transpose { dims: order } = &inner.op {
        let source = inner.operands[0];
        let kept: Vec<usize> = (0..order.len())
            .filter(|d| !dims.contains(d))
            .map(|d| order[d])
            .collect();
        if kept.windows(2).all(|w| w[0] < w[1]) {
            let mut dims: Dims = dims.iter().map(|&d| order[d]).collect();
            dims.sort_unstable();
            return site
                .make(Op::Reduce { dims, body }, &[source, init])
                .map(Some);
        }
    }
    Ok(None)
}

/// Whether every result element is made of one input element.
fn combines_nothing(site: &Site<'_, '_>) -> bool {
    let instr = site.instr();
    let n = instr.operands.len() / 2;
    let same = |operand: &InstrId, result: &Shape| match (site.array(*operand), result.as_array()) {
        (Some(a), Some(b)) => a.ty == b.ty && a.element_count() == b.element_count(),
        _ => false,
    };
    match &instr.shape {
        Shape::Tuple(parts) => {
            parts.len() == n && instr.operands.iter().zip(parts).all(|(o, p)| same(o, p))
        }
        shape => n == 1 && same(&instr.operands[0], shape),
    }
}

/// The inputs in the shapes of the results. As upstream has it, the start value does not count
/// where there is nothing to combine.
fn reshaped(site: &mut Site<'_, '_>) -> crate::base::Result<InstrId> {
    let shape = site.instr().shape.clone();
    let parts: Vec<Shape> = match &shape {
        Shape::Tuple(parts) => parts.clone(),
        other => vec![other.clone()],
    };
    let mut values = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        let dims = part.as_array().map(|a| a.dims.clone()).unwrap_or_default();
        values.push(site.reshape(site.arg(i), &dims)?);
    }
    as_results(site, &values)
}

/// Sorting along a dimension of at most one element does nothing.
pub(super) fn sort(site: &mut Site<'_, '_>, dim: usize) -> Answer {
    let operands = site.instr().operands.clone();
    let short = site
        .array(operands[0])
        .is_some_and(|a| a.dims[dim] <= 1 || a.element_count() == 0);
    if short {
        as_results(site, &operands).map(Some)
    } else {
        Ok(None)
    }
}

/// Scattering nothing does nothing.
pub(super) fn scatter(site: &mut Site<'_, '_>) -> Answer {
    let operands = site.instr().operands.clone();
    let n = operands.len() / 2;
    let nothing = operands[n + 1..]
        .iter()
        .all(|&u| site.array(u).is_some_and(|a| a.element_count() == 0));
    if nothing {
        as_results(site, &operands[..n]).map(Some)
    } else {
        Ok(None)
    }
}

fn as_results(site: &mut Site<'_, '_>, values: &[InstrId]) -> crate::base::Result<InstrId> {
    if site.instr().shape.is_tuple() {
        site.make(Op::Tuple, values)
    } else {
        Ok(values[0])
    }
}
