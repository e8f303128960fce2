//! Identities of slices, pads, concatenations and dynamic slices.

use smallvec::SmallVec;

use crate::analysis::trip_count::scalar_integer;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::PadDim;
use crate::hlo::SliceDim;
use crate::passes::simplify::algebraic::Answer;
use crate::passes::simplify::algebraic::Site;
use crate::passes::simplify::splat;
use crate::shape::Dims;

type SliceDims = SmallVec<[SliceDim; 4]>;

fn extent(dim: &SliceDim) -> usize {
    (dim.limit.saturating_sub(dim.start)).div_ceil(dim.stride.max(1))
}

fn whole(size: usize) -> SliceDim {
    SliceDim {
        start: 0,
        limit: size,
        stride: 1,
    }
}

pub(super) fn slice(site: &mut Site<'_, '_>, dims: &SliceDims) -> Answer {
    let arg = site.arg(0);
    if let Some(same) = site.if_same(arg) {
        return Ok(Some(same));
    }
    let Some(result) = site.result() else {
        return Ok(None);
    };
    let inner = site.def(0);
    let sources = inner.operands.clone();
    match &inner.op {
        Op::Slice { dims: first } => {
            let composed: SliceDims = dims
                .iter()
                .zip(first)
                .map(|(outer, inner)| {
                    let start = inner.start + outer.start * inner.stride;
                    let stride = inner.stride * outer.stride;
                    SliceDim {
                        start,
                        limit: start + (extent(outer) - 1) * stride + 1,
                        stride,
                    }
                })
                .collect();
            site.make(Op::Slice { dims: composed }, &sources).map(Some)
        }
        Op::Broadcast { dims: placed } => {
            let placed = placed.clone();
            let cut: SliceDims = placed.iter().map(|&d| dims[d]).collect();
            let source = if cut.is_empty() {
                sources[0]
            } else {
                site.make(Op::Slice { dims: cut }, &sources)?
            };
            let op = Op::Broadcast { dims: placed };
            site.make_array(op, &[source], result.ty, &result.dims)
                .map(Some)
        }
        Op::Concatenate { dim } => {
            let dim = *dim;
            slice_of_concatenate(site, dims, dim, &sources)
        }
        Op::Pad { dims: padding } => {
            let padding = padding.clone();
            slice_of_pad(site, dims, &padding, sources[0])
        }
        _ => Ok(None),
    }
}

/// A slice that lies within one part of a concatenation is a slice of that part.
fn slice_of_concatenate(
    site: &mut Site<'_, '_>,
    dims: &SliceDims,
    dim: usize,
    parts: &[InstrId],
) -> Answer {
    let mut offset = 0;
    for &part in parts {
        let Some(size) = site.array(part).map(|a| a.dims[dim]) else {
            return Ok(None);
        };
        let cut = dims[dim];
        if cut.start >= offset && cut.limit <= offset + size {
            let mut moved = dims.clone();
            moved[dim].start -= offset;
            moved[dim].limit -= offset;
            return site.make(Op::Slice { dims: moved }, &[part]).map(Some);
        }
        offset += size;
    }
    Ok(None)
}

/// A slice that lies within what was padded is a slice of that.
fn slice_of_pad(
    site: &mut Site<'_, '_>,
    dims: &SliceDims,
    padding: &[PadDim],
    source: InstrId,
) -> Answer {
    let Some(from) = site.array(source).map(|a| a.dims.clone()) else {
        return Ok(None);
    };
    let mut moved = dims.clone();
    for (d, cut) in moved.iter_mut().enumerate() {
        let shift = |at: usize| {
            let at = i64::try_from(at).ok()?.checked_sub(padding[d].low)?;
            usize::try_from(at).ok().filter(|&at| at <= from[d])
        };
        match (shift(cut.start), shift(cut.limit)) {
            (Some(start), Some(limit)) if padding[d].interior == 0 => {
                cut.start = start;
                cut.limit = limit;
            }
            _ => return Ok(None),
        }
    }
    site.make(Op::Slice { dims: moved }, &[source]).map(Some)
}

/// The constant start indices of a dynamic slice or update, held within bounds.
fn constant_starts(
    site: &Site<'_, '_>,
    first: usize,
    from: &[usize],
    sizes: &[usize],
) -> Option<Dims> {
    let indices = &site.instr().operands[first..];
    if indices.len() != from.len() {
        return None;
    }
    let mut starts = Dims::new();
    for (d, &index) in indices.iter().enumerate() {
        let last = from[d] - sizes[d];
        if last == 0 {
            starts.push(0);
            continue;
        }
        let value = scalar_integer(&splat::splat(site.module(), index)?)?;
        starts.push(usize::try_from(value.max(0)).map_or(last, |v| v.min(last)));
    }
    Some(starts)
}

pub(super) fn dynamic_slice(site: &mut Site<'_, '_>, sizes: &Dims) -> Answer {
    let arg = site.arg(0);
    if let Some(same) = site.if_same(arg) {
        return Ok(Some(same));
    }
    let Some(from) = site.array(arg).map(|a| a.dims.clone()) else {
        return Ok(None);
    };
    let Some(starts) = constant_starts(site, 1, &from, sizes) else {
        return Ok(None);
    };
    let dims = starts
        .iter()
        .zip(sizes)
        .map(|(&start, &size)| SliceDim {
            start,
            limit: start + size,
            stride: 1,
        })
        .collect();
    site.make(Op::Slice { dims }, &[arg]).map(Some)
}

pub(super) fn dynamic_update_slice(site: &mut Site<'_, '_>) -> Answer {
    let (arg, update) = (site.arg(0), site.arg(1));
    if let Some(same) = site.if_same(update) {
        return Ok(Some(same));
    }
    let nothing = site.array(update).is_some_and(|a| a.element_count() == 0);
    Ok(nothing.then_some(arg))
}

pub(super) fn pad(site: &mut Site<'_, '_>, dims: &SmallVec<[PadDim; 4]>) -> Answer {
    let (arg, value) = (site.arg(0), site.arg(1));
    let (Some(result), Some(from)) = (site.result(), site.array(arg).cloned()) else {
        return Ok(None);
    };
    let plain = |d: usize| dims[d].interior == 0 || from.dims[d] <= 1;
    if (0..dims.len()).all(|d| plain(d) && dims[d].low == 0 && dims[d].high == 0) {
        return Ok(site.if_same(arg));
    }
    if from.element_count() == 0 {
        return fill_with(site, value);
    }
    let module = site.module();
    let same_value = match (splat::splat(module, arg), splat::splat(module, value)) {
        (Some(a), Some(b)) => a.bytes() == b.bytes(),
        _ => false,
    };
    if same_value {
        return fill_with(site, value);
    }
    if (0..dims.len()).all(|d| plain(d) && dims[d].low <= 0 && dims[d].high <= 0) {
        let cut = dims
            .iter()
            .enumerate()
            .map(|(d, p)| {
                let start = usize::try_from(-p.low).unwrap_or(0);
                SliceDim {
                    start,
                    limit: start + result.dims[d],
                    stride: 1,
                }
            })
            .collect();
        return site.make(Op::Slice { dims: cut }, &[arg]).map(Some);
    }
    Ok(None)
}

fn fill_with(site: &mut Site<'_, '_>, value: InstrId) -> Answer {
    let Some(result) = site.result() else {
        return Ok(None);
    };
    let op = Op::Broadcast { dims: Dims::new() };
    site.make_array(op, &[value], result.ty, &result.dims)
        .map(Some)
}

pub(super) fn concatenate(site: &mut Site<'_, '_>, dim: usize) -> Answer {
    let operands = site.instr().operands.clone();
    if let [only] = operands.as_slice() {
        return Ok(site.if_same(*only));
    }
    let mut parts: Vec<InstrId> = Vec::new();
    for &operand in &operands {
        let instr = site.edit.instr(operand);
        let Some(array) = instr.shape.as_array() else {
            return Ok(None);
        };
        match &instr.op {
            _ if array.dims[dim] == 0 => {}
            Op::Concatenate { dim: inner } if *inner == dim => parts.extend(&instr.operands),
            _ => parts.push(operand),
        }
    }
    let merged = merge_slices(site, &parts, dim)?;
    if let [only] = merged.as_slice() {
        return Ok(site.if_same(*only));
    }
    if merged.as_slice() == operands.as_slice() {
        return Ok(None);
    }
    site.make(Op::Concatenate { dim }, &merged).map(Some)
}

/// Neighbouring slices of one array that meet become one slice.
fn merge_slices(
    site: &mut Site<'_, '_>,
    parts: &[InstrId],
    dim: usize,
) -> crate::base::Result<Vec<InstrId>> {
    let mut merged: Vec<InstrId> = Vec::new();
    for &part in parts {
        let joined = merged
            .last()
            .and_then(|&last| joined_slice(site, last, part, dim));
        match joined {
            Some((source, dims)) => {
                let size = site.array(source).map_or(0, |a| a.dims[dim]);
                let complete = dims[dim] == whole(size)
                    && dims.iter().enumerate().all(|(d, cut)| {
                        site.array(source).is_some_and(|a| *cut == whole(a.dims[d]))
                    });
                merged.pop();
                merged.push(if complete {
                    source
                } else {
                    site.make(Op::Slice { dims }, &[source])?
                });
            }
            None => merged.push(part),
        }
    }
    Ok(merged)
}

fn joined_slice(
    site: &Site<'_, '_>,
    a: InstrId,
    b: InstrId,
    dim: usize,
) -> Option<(InstrId, SliceDims)> {
    let (first, second) = (site.edit.instr(a), site.edit.instr(b));
    let (Op::Slice { dims: p }, Op::Slice { dims: q }) = (&first.op, &second.op) else {
        return None;
    };
    let meets = first.operands[0] == second.operands[0]
        && p.iter().zip(q).enumerate().all(|(d, (x, y))| {
            if d == dim {
                x.stride == 1 && y.stride == 1 && x.limit == y.start
            } else {
                x == y
            }
        });
    if !meets {
        return None;
    }
    let mut dims = p.clone();
    dims[dim].limit = q[dim].limit;
    Some((first.operands[0], dims))
}
