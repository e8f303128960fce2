//! Identities of reshapes, broadcasts, transposes, reversals, and of constants and iotas.

use smallvec::smallvec;

use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::passes::simplify::algebraic::Answer;
use crate::passes::simplify::algebraic::Site;
use crate::passes::simplify::splat;
use crate::shape::Dims;
use crate::shape::index::inverse_permutation;

/// Constants of one value are broadcasts of a scalar.
pub(super) fn constant(site: &mut Site<'_, '_>) -> Answer {
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

pub(super) fn iota(site: &mut Site<'_, '_>) -> Answer {
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

pub(super) fn reshape(site: &mut Site<'_, '_>) -> Answer {
    let arg = site.arg(0);
    if let Some(same) = site.if_same(arg) {
        return Ok(Some(same));
    }
    let (Some(result), Some(from)) = (site.result(), site.array(arg).cloned()) else {
        return Ok(None);
    };
    match &site.def(0).op {
        Op::Reshape { .. } => {
            let source = site.def(0).operands[0];
            site.reshape(source, &result.dims).map(Some)
        }
        Op::Constant(literal) => match literal.as_array() {
            Some(array) => {
                let array = array.reshaped(result);
                site.constant(array).map(Some)
            }
            None => Ok(None),
        },
        Op::Broadcast { dims } => {
            let (dims, source) = (dims.clone(), site.def(0).operands[0]);
            let rank = site.array(source).map_or(0, |a| a.rank());
            if rank == 0 {
                return site
                    .make_array(Op::Broadcast { dims }, &[source], result.ty, &result.dims)
                    .map(Some);
            }
            let Some(map) = degenerate_map(&from.dims, &result.dims) else {
                return Ok(None);
            };
            broadcast_mapped(site, source, &dims, &map)
        }
        Op::Iota { dim } => {
            let map = degenerate_map(&from.dims, &result.dims);
            match map.and_then(|m| m[*dim]) {
                Some(dim) => site
                    .make_array(Op::Iota { dim }, &[], result.ty, &result.dims)
                    .map(Some),
                None => Ok(None),
            }
        }
        _ => Ok(None),
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

pub(super) fn broadcast(site: &mut Site<'_, '_>, dims: &Dims) -> Answer {
    let arg = site.arg(0);
    let (Some(result), Some(from)) = (site.result(), site.array(arg).cloned()) else {
        return Ok(None);
    };
    let sorted = dims.windows(2).all(|w| w[0] < w[1]);
    if sorted && from.element_count() == result.element_count() {
        return site.reshape(arg, &result.dims).map(Some);
    }
    if !sorted {
        let mut order: Dims = (0..dims.len()).collect();
        order.sort_by_key(|&i| dims[i]);
        let sorted: Dims = order.iter().map(|&i| dims[i]).collect();
        let turned = site.make(Op::Transpose { dims: order }, &[arg])?;
        let op = Op::Broadcast { dims: sorted };
        return site
            .make_array(op, &[turned], result.ty, &result.dims)
            .map(Some);
    }
    if from.dims.contains(&1) {
        let map: Vec<Option<usize>> = (0..result.dims.len())
            .map(|d| {
                dims.iter()
                    .position(|&x| x == d)
                    .filter(|&i| from.dims[i] != 1)
            })
            .enumerate()
            .map(|(d, at)| at.map(|_| d))
            .collect();
        return broadcast_mapped(site, arg, dims, &map);
    }
    if let Op::Broadcast { dims: inner } = &site.def(0).op {
        let composed: Dims = inner.iter().map(|&d| dims[d]).collect();
        let source = site.def(0).operands[0];
        let op = Op::Broadcast { dims: composed };
        return site
            .make_array(op, &[source], result.ty, &result.dims)
            .map(Some);
    }
    if let Op::Iota { dim } = site.def(0).op {
        let op = Op::Iota { dim: dims[dim] };
        return site.make_array(op, &[], result.ty, &result.dims).map(Some);
    }
    Ok(None)
}

pub(super) fn transpose(site: &mut Site<'_, '_>, dims: &Dims) -> Answer {
    let arg = site.arg(0);
    if dims.iter().enumerate().all(|(i, &d)| i == d) {
        return Ok(site.if_same(arg));
    }
    let (Some(result), Some(from)) = (site.result(), site.array(arg).cloned()) else {
        return Ok(None);
    };
    // Only dimensions of one move: the order of elements stays.
    let moving: Vec<usize> = dims
        .iter()
        .copied()
        .filter(|&d| from.dims[d] != 1)
        .collect();
    if moving.windows(2).all(|w| w[0] < w[1]) {
        return site.reshape(arg, &result.dims).map(Some);
    }
    let inner = site.def(0);
    match &inner.op {
        Op::Transpose { dims: first } => {
            let composed: Dims = dims.iter().map(|&d| first[d]).collect();
            let source = inner.operands[0];
            return site
                .make(Op::Transpose { dims: composed }, &[source])
                .map(Some);
        }
        Op::Broadcast { dims: first } => {
            let inverse = inverse_permutation(dims);
            let composed: Dims = first.iter().map(|&d| inverse[d]).collect();
            let source = inner.operands[0];
            let mut order: Dims = (0..composed.len()).collect();
            order.sort_by_key(|&i| composed[i]);
            let sorted: Dims = order.iter().map(|&i| composed[i]).collect();
            let turned = site.make(Op::Transpose { dims: order }, &[source])?;
            let op = Op::Broadcast { dims: sorted };
            return site
                .make_array(op, &[turned], result.ty, &result.dims)
                .map(Some);
        }
        Op::Iota { dim } => {
            let dim = inverse_permutation(dims)[*dim];
            return site
                .make_array(Op::Iota { dim }, &[], result.ty, &result.dims)
                .map(Some);
        }
        _ => {}
    }
    if moving.len() < dims.len() {
        // Without its dimensions of one the transpose says only what moves.
        let mut ranks: Dims = smallvec![0; from.dims.len()];
        let mut kept = 0;
        for (d, &size) in from.dims.iter().enumerate() {
            ranks[d] = kept;
            kept += usize::from(size != 1);
        }
        let narrow = site.reshape(arg, &without_ones(&from.dims))?;
        let order: Dims = moving.iter().map(|&d| ranks[d]).collect();
        let turned = site.make(Op::Transpose { dims: order }, &[narrow])?;
        return site.reshape(turned, &result.dims).map(Some);
    }
    Ok(None)
}

pub(super) fn reverse(site: &mut Site<'_, '_>, dims: &Dims) -> Answer {
    let arg = site.arg(0);
    let Some(from) = site.array(arg).cloned() else {
        return Ok(None);
    };
    let mut real: Dims = dims
        .iter()
        .copied()
        .filter(|&d| from.dims[d] != 1)
        .collect();
    if real.is_empty() || splat::splat(site.module(), arg).is_some() {
        return Ok(Some(arg));
    }
    let inner = site.def(0);
    let source = match &inner.op {
        Op::Reverse { dims: first } => {
            let both: Dims = first.clone();
            real = (0..from.rank())
                .filter(|d| both.contains(d) != real.contains(d))
                .collect();
            inner.operands[0]
        }
        _ if real.len() < dims.len() => arg,
        _ => return Ok(None),
    };
    if real.is_empty() {
        return Ok(Some(source));
    }
    site.make(Op::Reverse { dims: real }, &[source]).map(Some)
}
