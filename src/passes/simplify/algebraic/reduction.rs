//! Identities of reductions, sorts and scatters.

use std::ops::Range;

use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::passes::simplify::algebraic::Answer;
use crate::passes::simplify::algebraic::Rule;
use crate::passes::simplify::algebraic::Site;
use crate::shape::Dims;
use crate::shape::Shape;

/// Rules of reductions.
pub(super) const REDUCE: &[Rule] = &[
    Rule("reduce-nothing", reduce_nothing),
    Rule("reduce-empty", reduce_empty),
    Rule("reduce-of-reshape", reduce_of_reshape),
    Rule("reduce-of-transpose", reduce_of_transpose),
];

/// Rules of sorts.
pub(super) const SORT: &[Rule] = &[Rule("sort-one", sort_one)];

/// Rules of scatters.
pub(super) const SCATTER: &[Rule] = &[Rule("scatter-nothing", scatter_nothing)];

/// As upstream has it, the start value does not count where there is nothing to combine.
fn reduce_nothing(site: &mut Site<'_, '_>) -> Answer {
    if combines_nothing(site) {
        reshaped(site).map(Some)
    } else {
        Ok(None)
    }
}

/// Dimensions and body of a reduction of one array that combines something, and its start value.
fn reduction(site: &Site<'_, '_>) -> Option<(Dims, CompId, InstrId)> {
    let Op::Reduce { dims, body } = &site.instr().op else {
        return None;
    };
    if site.instr().operands.len() != 2 || combines_nothing(site) {
        return None;
    }
    let from = site.array(site.arg(0))?;
    let result = site.array(site.id)?;
    let plain = from.element_count() > 0 && result.element_count() > 0;
    plain.then(|| (dims.clone(), *body, site.arg(1)))
}

/// The result of a reduction of no element at all is the start value.
fn reduce_empty(site: &mut Site<'_, '_>) -> Answer {
    if site.instr().operands.len() != 2 {
        return Ok(None);
    }
    let (Some(result), Some(from)) = (site.result(), site.array(site.arg(0))) else {
        return Ok(None);
    };
    if from.element_count() > 0 || result.element_count() == 0 {
        return Ok(None);
    }
    let (op, init) = (Op::Broadcast { dims: Dims::new() }, site.arg(1));
    site.make_array(op, &[init], result.ty, &result.dims)
        .map(Some)
}

/// A reduction of a transpose that keeps the order of what remains reduces what was transposed.
fn reduce_of_transpose(site: &mut Site<'_, '_>) -> Answer {
    let Some((dims, body, init)) = reduction(site) else {
        return Ok(None);
    };
    let inner = site.def(0);
    let Op::Transpose { dims: order } = &inner.op else {
        return Ok(None);
    };
    let source = inner.operands[0];
    let kept = (0..order.len()).filter(|d| !dims.contains(d));
    if !kept.map(|d| order[d]).is_sorted() {
        return Ok(None);
    }
    let mut dims: Dims = dims.iter().map(|&d| order[d]).collect();
    dims.sort_unstable();
    site.make(Op::Reduce { dims, body }, &[source, init])
        .map(Some)
}

/// A reduction of reshaped dimensions reduces the dimensions before the reshape, where each run of
/// dimensions that the reshape takes together is reduced as a whole or not at all.
fn reduce_of_reshape(site: &mut Site<'_, '_>) -> Answer {
    let Some((dims, body, init)) = reduction(site) else {
        return Ok(None);
    };
    let inner = site.def(0);
    if !matches!(inner.op, Op::Reshape { .. }) {
        return Ok(None);
    }
    let source = inner.operands[0];
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
fn sort_one(site: &mut Site<'_, '_>) -> Answer {
    let Op::Sort { dim, .. } = site.instr().op else {
        return Ok(None);
    };
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
fn scatter_nothing(site: &mut Site<'_, '_>) -> Answer {
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
