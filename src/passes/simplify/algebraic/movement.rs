//! Identities of reshapes, broadcasts, transposes, reversals, and of constants and iotas.

use smallvec::smallvec;

use crate::base::Result;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::passes::simplify::algebraic::Answer;
use crate::passes::simplify::algebraic::Rule;
use crate::passes::simplify::algebraic::Site;
use crate::passes::simplify::splat;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::index::inverse_permutation;

/// Rules of constants.
pub(super) const CONSTANT: &[Rule] = &[Rule("constant-of-one-value", constant_of_one_value)];

/// Rules of iotas.
pub(super) const IOTA: &[Rule] = &[Rule("iota-of-one", iota_of_one)];

/// Rules of reshapes.
pub(super) const RESHAPE: &[Rule] = &[
    Rule("reshape-to-itself", to_itself),
    Rule("reshape-of-reshape", reshape_of_reshape),
    Rule("reshape-of-constant", reshape_of_constant),
    Rule("reshape-of-broadcast", reshape_of_broadcast),
    Rule("reshape-of-iota", reshape_of_iota),
];

/// Rules of broadcasts.
pub(super) const BROADCAST: &[Rule] = &[
    Rule("broadcast-as-reshape", broadcast_as_reshape),
    Rule("broadcast-in-order", broadcast_in_order),
    Rule("broadcast-without-ones", broadcast_without_ones),
    Rule("broadcast-of-broadcast", broadcast_of_broadcast),
    Rule("broadcast-of-iota", broadcast_of_iota),
];

/// Rules of transposes.
pub(super) const TRANSPOSE: &[Rule] = &[
    Rule("transpose-to-itself", transpose_to_itself),
    Rule("transpose-as-reshape", transpose_as_reshape),
    Rule("transpose-of-transpose", transpose_of_transpose),
    Rule("transpose-of-broadcast", transpose_of_broadcast),
    Rule("transpose-of-iota", transpose_of_iota),
    Rule("transpose-without-ones", transpose_without_ones),
];

/// Rules of reversals.
pub(super) const REVERSE: &[Rule] = &[
    Rule("reverse-nothing", reverse_nothing),
    Rule("reverse-of-reverse", reverse_of_reverse),
    Rule("reverse-without-ones", reverse_without_ones),
];

/// Rules of copies.
pub(super) const COPY: &[Rule] = &[Rule("copy-of-anything", to_itself)];

fn to_itself(site: &mut Site<'_, '_>) -> Answer {
    Ok(site.if_same(site.arg(0)))
}

/// Constants of one value are broadcasts of a scalar.
fn constant_of_one_value(site: &mut Site<'_, '_>) -> Answer {
    let Op::Constant(literal) = &site.instr().op else {
        return Ok(None);
    };
    let Some(array) = literal.as_array().filter(|a| a.shape().rank() > 0) else {
        return Ok(None);
    };
    match splat::splat_of(array) {
        Some(value) => {
            let dims = array.shape().dims.clone();
            site.filled(value, &dims).map(Some)
        }
        None => Ok(None),
    }
}

fn iota_of_one(site: &mut Site<'_, '_>) -> Answer {
    let Op::Iota { dim } = site.instr().op else {
        return Ok(None);
    };
    match site.result() {
        Some(shape) if shape.dims[dim] == 1 => site.filled_like(0),
        _ => Ok(None),
    }
}

/// For each dimension of `from` that is not one, the dimension of `to` it becomes when a reshape
/// only adds and drops dimensions of one.
pub(super) fn degenerate_map(from: &[usize], to: &[usize]) -> Option<Vec<Option<usize>>> {
    let mut next = 0;
    let mut map = Vec::with_capacity(from.len());
    for &size in from {
        if size == 1 {
            map.push(None);
            continue;
        }
        while next < to.len() && to[next] == 1 {
            next += 1;
        }
        if to.get(next) != Some(&size) {
            return None;
        }
        map.push(Some(next));
        next += 1;
    }
    to[next..].iter().all(|&s| s == 1).then_some(map)
}

fn without_ones(dims: &[usize]) -> Dims {
    dims.iter().copied().filter(|&d| d != 1).collect()
}

fn reshape_of_reshape(site: &mut Site<'_, '_>) -> Answer {
    let inner = site.def(0);
    let (Op::Reshape { .. }, Some(result)) = (&inner.op, site.result()) else {
        return Ok(None);
    };
    let source = inner.operands[0];
    site.reshape(source, &result.dims).map(Some)
}

fn reshape_of_constant(site: &mut Site<'_, '_>) -> Answer {
    let (Op::Constant(literal), Some(result)) = (&site.def(0).op, site.result()) else {
        return Ok(None);
    };
    match literal.as_array() {
        Some(array) => {
            let array = array.reshaped(result);
            site.constant(array).map(Some)
        }
        None => Ok(None),
    }
}

fn reshape_of_broadcast(site: &mut Site<'_, '_>) -> Answer {
    let inner = site.def(0);
    let (Op::Broadcast { dims }, Some(result)) = (&inner.op, site.result()) else {
        return Ok(None);
    };
    let (dims, source) = (dims.clone(), inner.operands[0]);
    if site.array(source).map_or(0, |a| a.rank()) == 0 {
        return site
            .make_array(Op::Broadcast { dims }, &[source], result.ty, &result.dims)
            .map(Some);
    }
    let map = site
        .array(site.arg(0))
        .and_then(|from| degenerate_map(&from.dims, &result.dims));
    match map {
        Some(map) => broadcast_mapped(site, source, &dims, &map),
        None => Ok(None),
    }
}

fn reshape_of_iota(site: &mut Site<'_, '_>) -> Answer {
    let (Op::Iota { dim }, Some(result)) = (&site.def(0).op, site.result()) else {
        return Ok(None);
    };
    let map = site
        .array(site.arg(0))
        .and_then(|from| degenerate_map(&from.dims, &result.dims));
    match map.and_then(|map| map[*dim]) {
        Some(dim) => site
            .make_array(Op::Iota { dim }, &[], result.ty, &result.dims)
            .map(Some),
        None => Ok(None),
    }
}

/// Broadcasts `source` to the site's shape, its dimension `i` going where `map[dims[i]]` says;
/// dimensions of one that go nowhere are dropped.
fn broadcast_mapped(
    site: &mut Site<'_, '_>,
    source: InstrId,
    dims: &[usize],
    map: &[Option<usize>],
) -> Answer {
    let (Some(result), Some(from)) = (site.result(), site.array(source).cloned()) else {
        return Ok(None);
    };
    let mapped: Dims = dims.iter().filter_map(|&d| map[d]).collect();
    let narrow = site.reshape(source, &without_ones(&from.dims))?;
    if site.array(narrow).map(|a| a.rank()) != Some(mapped.len()) {
        return Ok(None);
    }
    site.make_array(
        Op::Broadcast { dims: mapped },
        &[narrow],
        result.ty,
        &result.dims,
    )
    .map(Some)
}

/// Dimensions of a broadcast, and the arrays it gives and takes.
fn broadcasts(site: &Site<'_, '_>) -> Option<(Dims, ArrayShape, ArrayShape)> {
    let Op::Broadcast { dims } = &site.instr().op else {
        return None;
    };
    let from = site.array(site.arg(0))?.clone();
    Some((dims.clone(), site.result()?, from))
}

fn broadcast_as_reshape(site: &mut Site<'_, '_>) -> Answer {
    match broadcasts(site) {
        Some((dims, result, from))
            if dims.is_sorted() && from.element_count() == result.element_count() =>
        {
            let arg = site.arg(0);
            site.reshape(arg, &result.dims).map(Some)
        }
        _ => Ok(None),
    }
}

/// A broadcast in another order is a transpose and one in order.
fn broadcast_in_order(site: &mut Site<'_, '_>) -> Answer {
    let Some((dims, result, _)) = broadcasts(site).filter(|(dims, ..)| !dims.is_sorted()) else {
        return Ok(None);
    };
    let arg = site.arg(0);
    broadcast_sorted(site, arg, &dims, &result).map(Some)
}

/// Broadcasts `source` by way of a transpose, so that its dimensions are in order.
fn broadcast_sorted(
    site: &mut Site<'_, '_>,
    source: InstrId,
    dims: &[usize],
    result: &ArrayShape,
) -> Result<InstrId> {
    let mut order: Dims = (0..dims.len()).collect();
    order.sort_by_key(|&i| dims[i]);
    let sorted: Dims = order.iter().map(|&i| dims[i]).collect();
    let turned = site.make(Op::Transpose { dims: order }, &[source])?;
    let op = Op::Broadcast { dims: sorted };
    site.make_array(op, &[turned], result.ty, &result.dims)
}

/// Dimensions of one are dropped first: they say nothing.
fn broadcast_without_ones(site: &mut Site<'_, '_>) -> Answer {
    let Some((dims, result, from)) = broadcasts(site) else {
        return Ok(None);
    };
    if !dims.is_sorted() || !from.dims.contains(&1) {
        return Ok(None);
    }
    let is_placed = |d: usize| {
        let at = dims.iter().position(|&x| x == d);
        at.is_some_and(|i| from.dims[i] != 1)
    };
    let map: Vec<Option<usize>> = (0..result.dims.len())
        .map(|d| is_placed(d).then_some(d))
        .collect();
    let arg = site.arg(0);
    broadcast_mapped(site, arg, &dims, &map)
}

fn broadcast_of_broadcast(site: &mut Site<'_, '_>) -> Answer {
    let Some((dims, result, _)) = broadcasts(site) else {
        return Ok(None);
    };
    let inner = site.def(0);
    let Op::Broadcast { dims: first } = &inner.op else {
        return Ok(None);
    };
    let composed: Dims = first.iter().map(|&d| dims[d]).collect();
    let (op, source) = (Op::Broadcast { dims: composed }, inner.operands[0]);
    site.make_array(op, &[source], result.ty, &result.dims)
        .map(Some)
}

fn broadcast_of_iota(site: &mut Site<'_, '_>) -> Answer {
    let (Some((dims, result, _)), Op::Iota { dim }) = (broadcasts(site), &site.def(0).op) else {
        return Ok(None);
    };
    let op = Op::Iota { dim: dims[*dim] };
    site.make_array(op, &[], result.ty, &result.dims).map(Some)
}

/// Dimensions of a transpose, and the arrays it gives and takes, unless it moves nothing.
fn transposes(site: &Site<'_, '_>) -> Option<(Dims, ArrayShape, ArrayShape)> {
    let Op::Transpose { dims } = &site.instr().op else {
        return None;
    };
    let from = site.array(site.arg(0))?.clone();
    (!dims.is_sorted()).then_some((dims.clone(), site.result()?, from))
}

fn transpose_to_itself(site: &mut Site<'_, '_>) -> Answer {
    match &site.instr().op {
        Op::Transpose { dims } if dims.is_sorted() => Ok(site.if_same(site.arg(0))),
        _ => Ok(None),
    }
}

/// The dimensions that move, in the order of the result: those that are not of one.
fn moving(dims: &[usize], from: &ArrayShape) -> Dims {
    let dims = dims.iter().copied();
    dims.filter(|&d| from.dims[d] != 1).collect()
}

/// Only dimensions of one move: the order of elements stays.
fn transpose_as_reshape(site: &mut Site<'_, '_>) -> Answer {
    match transposes(site) {
        Some((dims, result, from)) if moving(&dims, &from).is_sorted() => {
            let arg = site.arg(0);
            site.reshape(arg, &result.dims).map(Some)
        }
        _ => Ok(None),
    }
}

fn transpose_of_transpose(site: &mut Site<'_, '_>) -> Answer {
    let Some((dims, ..)) = transposes(site) else {
        return Ok(None);
    };
    let inner = site.def(0);
    let Op::Transpose { dims: first } = &inner.op else {
        return Ok(None);
    };
    let composed: Dims = dims.iter().map(|&d| first[d]).collect();
    let source = inner.operands[0];
    site.make(Op::Transpose { dims: composed }, &[source])
        .map(Some)
}

fn transpose_of_broadcast(site: &mut Site<'_, '_>) -> Answer {
    let Some((dims, result, _)) = transposes(site) else {
        return Ok(None);
    };
    let inner = site.def(0);
    let Op::Broadcast { dims: first } = &inner.op else {
        return Ok(None);
    };
    let inverse = inverse_permutation(&dims);
    let composed: Dims = first.iter().map(|&d| inverse[d]).collect();
    let source = inner.operands[0];
    broadcast_sorted(site, source, &composed, &result).map(Some)
}

fn transpose_of_iota(site: &mut Site<'_, '_>) -> Answer {
    let (Some((dims, result, _)), Op::Iota { dim }) = (transposes(site), &site.def(0).op) else {
        return Ok(None);
    };
    let dim = inverse_permutation(&dims)[*dim];
    site.make_array(Op::Iota { dim }, &[], result.ty, &result.dims)
        .map(Some)
}

/// Without its dimensions of one the transpose says only what moves.
fn transpose_without_ones(site: &mut Site<'_, '_>) -> Answer {
    let Some((dims, result, from)) = transposes(site) else {
        return Ok(None);
    };
    let moving = moving(&dims, &from);
    if moving.len() == dims.len() || moving.is_sorted() {
        return Ok(None);
    }
    let mut ranks: Dims = smallvec![0; from.dims.len()];
    let mut kept = 0;
    for (d, &size) in from.dims.iter().enumerate() {
        ranks[d] = kept;
        kept += usize::from(size != 1);
    }
    let arg = site.arg(0);
    let narrow = site.reshape(arg, &without_ones(&from.dims))?;
    let order: Dims = moving.iter().map(|&d| ranks[d]).collect();
    let turned = site.make(Op::Transpose { dims: order }, &[narrow])?;
    site.reshape(turned, &result.dims).map(Some)
}

/// The dimensions of a reversal that have something to reverse, and what is reversed.
fn reverses(site: &Site<'_, '_>) -> Option<(Dims, usize, ArrayShape)> {
    let Op::Reverse { dims } = &site.instr().op else {
        return None;
    };
    let from = site.array(site.arg(0))?.clone();
    Some((moving(dims, &from), dims.len(), from))
}

fn reverse_nothing(site: &mut Site<'_, '_>) -> Answer {
    let arg = site.arg(0);
    let nothing = reverses(site).is_some_and(|(real, ..)| real.is_empty())
        || splat::splat(site.module(), arg).is_some();
    Ok(nothing.then_some(arg))
}

/// What both reverse stays.
fn reverse_of_reverse(site: &mut Site<'_, '_>) -> Answer {
    let Some((real, _, from)) = reverses(site) else {
        return Ok(None);
    };
    let inner = site.def(0);
    let Op::Reverse { dims: first } = &inner.op else {
        return Ok(None);
    };
    let left: Dims = (0..from.rank())
        .filter(|d| first.contains(d) != real.contains(d))
        .collect();
    let source = inner.operands[0];
    if left.is_empty() {
        return Ok(Some(source));
    }
    site.make(Op::Reverse { dims: left }, &[source]).map(Some)
}

fn reverse_without_ones(site: &mut Site<'_, '_>) -> Answer {
    match reverses(site) {
        Some((real, all, _)) if !real.is_empty() && real.len() < all => {
            let arg = site.arg(0);
            site.make(Op::Reverse { dims: real }, &[arg]).map(Some)
        }
        _ => Ok(None),
    }
}
