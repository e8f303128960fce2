//! Identities of reductions, sorts and scatters.

use std::ops::Range;

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
    if let Some(new) = reduce_of_reshape(site, dims, body)? {
        return Ok(Some(new));
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

/// A reduction of reshaped dimensions reduces the dimensions before the reshape, where each run of
/// dimensions that the reshape takes together is reduced as a whole or not at all.
fn reduce_of_reshape(site: &mut Site<'_, '_>, dims: &Dims, body: CompId) -> Answer {
    let inner = site.def(0);
    if !matches!(inner.op, Op::Reshape { .. }) {
        return Ok(None);
    }
    let (source, init) = (inner.operands[0], site.arg(1));
    let (Some(result), Some(from), Some(to)) = (
        site.result(),
        site.array(source).map(|a| a.dims.clone()),
        site.array(site.arg(0)).map(|a| a.dims.clone()),
    ) else {
        return Ok(None);
    };
    let Some(runs) = common_runs(&from, &to) else {
        return Ok(None);
    };
    let mut reduced = Dims::new();
    for (of_from, of_to) in runs {
        let real = |d: &usize| to[*d] != 1;
        let (all, any) = (
            of_to.clone().filter(real).all(|d| dims.contains(&d)),
            of_to.clone().filter(real).any(|d| dims.contains(&d)),
        );
        if any && !all {
            return Ok(None);
        }
        if any {
            reduced.extend(of_from);
        }
    }
    let op = Op::Reduce {
        dims: reduced,
        body,
    };
    let value = site.make(op, &[source, init])?;
    site.reshape(value, &result.dims).map(Some)
}

/// The shortest runs of dimensions of two shapes of equal element count that hold equally many
/// elements.
fn common_runs(from: &[usize], to: &[usize]) -> Option<Vec<(Range<usize>, Range<usize>)>> {
    let mut runs = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < from.len() || j < to.len() {
        let (first_i, first_j) = (i, j);
        let (mut a, mut b) = (1, 1);
        if i < from.len() {
            a = from[i];
            i += 1;
        }
        if j < to.len() {
            b = to[j];
            j += 1;
        }
        while a != b {
            if a < b {
                a *= from.get(i)?;
                i += 1;
            } else {
                b *= to.get(j)?;
                j += 1;
            }
        }
        runs.push((first_i..i, first_j..j));
    }
    Some(runs)
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
