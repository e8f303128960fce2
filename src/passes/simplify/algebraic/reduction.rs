//! Identities of reductions, sorts and scatters.

use crate::hlo::BinaryOp;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::passes::simplify::algebraic::Answer;
use crate::passes::simplify::algebraic::Site;
use crate::passes::simplify::algebraic::arithmetic;
use crate::shape::Dims;

/// The commutative op of a body that is just that op on its two parameters.
fn monoid(site: &Site<'_, '_>, body: CompId) -> Option<BinaryOp> {
    let computation = site.module().comp(body);
    let root = site.edit.instr(computation.root);
    match root.op {
        Op::Binary(op)
            if arithmetic::is_commutative(op)
                && computation.params.len() == 2
                && root.operands.iter().all(|o| computation.params.contains(o))
                && root.operands[0] != root.operands[1] =>
        {
            Some(op)
        }
        _ => None,
    }
}

pub(super) fn reduce(site: &mut Site<'_, '_>, dims: &Dims, body: CompId) -> Answer {
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
    if from.element_count() == result.element_count()
        && from.ty == result.ty
        && let Some(op) = monoid(site, body)
    {
        let value = site.reshape(arg, &result.dims)?;
        let fill = Op::Broadcast { dims: Dims::new() };
        let start = site.make_array(fill, &[init], result.ty, &result.dims)?;
        return site.make(Op::Binary(op), &[value, start]).map(Some);
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
