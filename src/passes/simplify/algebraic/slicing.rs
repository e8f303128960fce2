//! Identities of slices, pads, concatenations and dynamic slices.

use smallvec::SmallVec;

use crate::analysis::trip_count::scalar_integer;
use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::PadDim;
use crate::hlo::SliceDim;
use crate::passes::simplify::algebraic::Answer;
use crate::passes::simplify::algebraic::Rule;
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

/// Rules of slices.
pub(super) const SLICE: &[Rule] = &[
    Rule("slice-all", slice_all),
    Rule("slice-of-slice", slice_of_slice),
    Rule("slice-of-broadcast", slice_of_broadcast),
    Rule("slice-of-concatenate", slice_of_concatenate),
    Rule("slice-of-pad", slice_of_pad),
];

/// Rules of dynamic slices.
pub(super) const DYNAMIC_SLICE: &[Rule] = &[
    Rule("dynamic-slice-all", slice_all),
    Rule("dynamic-slice-known", dynamic_slice_known),
];

/// Rules of dynamic updates.
pub(super) const DYNAMIC_UPDATE_SLICE: &[Rule] = &[
    Rule("update-all", update_all),
    Rule("update-nothing", update_nothing),
];

/// Rules of pads.
pub(super) const PAD: &[Rule] = &[
    Rule("pad-nothing", pad_nothing),
    Rule("pad-of-nothing", pad_of_nothing),
    Rule("pad-with-the-same", pad_with_the_same),
    Rule("pad-as-slice", pad_as_slice),
];

/// Rules of concatenations.
pub(super) const CONCATENATE: &[Rule] = &[
    Rule("concatenate-one", concatenate_one),
    Rule("concatenate-parts", concatenate_parts),
];

fn slice_all(site: &mut Site<'_, '_>) -> Answer {
    Ok(site.if_same(site.arg(0)))
}

/// What a slice takes, and the instruction it takes it from.
fn sliced<'a>(site: &'a Site<'_, '_>) -> Option<(&'a SliceDims, &'a Instr)> {
    match &site.instr().op {
        Op::Slice { dims } => Some((dims, site.def(0))),
        _ => None,
    }
}

fn slice_of_slice(site: &mut Site<'_, '_>) -> Answer {
    let Some((dims, inner)) = sliced(site) else {
        return Ok(None);
    };
    let Op::Slice { dims: first } = &inner.op else {
        return Ok(None);
    };
    if dims.iter().any(|outer| extent(outer) == 0) {
        return Ok(None);
    }
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
    let source = inner.operands[0];
    site.make(Op::Slice { dims: composed }, &[source]).map(Some)
}

fn slice_of_broadcast(site: &mut Site<'_, '_>) -> Answer {
    let (Some((dims, inner)), Some(result)) = (sliced(site), site.result()) else {
        return Ok(None);
    };
    let Op::Broadcast { dims: placed } = &inner.op else {
        return Ok(None);
    };
    let (placed, mut source) = (placed.clone(), inner.operands[0]);
    let cut: SliceDims = placed.iter().map(|&d| dims[d]).collect();
    if !cut.is_empty() {
        source = site.make(Op::Slice { dims: cut }, &[source])?;
    }
    let op = Op::Broadcast { dims: placed };
    site.make_array(op, &[source], result.ty, &result.dims)
        .map(Some)
}

/// A slice that lies within one part of a concatenation is a slice of that part.
fn slice_of_concatenate(site: &mut Site<'_, '_>) -> Answer {
    let Some((dims, inner)) = sliced(site) else {
        return Ok(None);
    };
    let Op::Concatenate { dim } = inner.op else {
        return Ok(None);
    };
    let (dims, parts) = (dims.clone(), inner.operands.clone());
    let mut offset = 0;
    for part in parts {
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
fn slice_of_pad(site: &mut Site<'_, '_>) -> Answer {
    let Some((dims, inner)) = sliced(site) else {
        return Ok(None);
    };
    let Op::Pad { dims: padding } = &inner.op else {
        return Ok(None);
    };
    let (dims, padding, source) = (dims.clone(), padding.clone(), inner.operands[0]);
    let Some(from) = site.array(source).map(|a| a.dims.clone()) else {
        return Ok(None);
    };
    let mut moved = dims;
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

fn dynamic_slice_known(site: &mut Site<'_, '_>) -> Answer {
    let Op::DynamicSlice { sizes } = &site.instr().op else {
        return Ok(None);
    };
    let (sizes, arg) = (sizes.clone(), site.arg(0));
    let Some(from) = site.array(arg).map(|a| a.dims.clone()) else {
        return Ok(None);
    };
    let Some(starts) = constant_starts(site, 1, &from, &sizes) else {
        return Ok(None);
    };
    let dims = starts
        .iter()
        .zip(&sizes)
        .map(|(&start, &size)| SliceDim {
            start,
            limit: start + size,
            stride: 1,
        })
        .collect();
    site.make(Op::Slice { dims }, &[arg]).map(Some)
}

fn update_all(site: &mut Site<'_, '_>) -> Answer {
    Ok(site.if_same(site.arg(1)))
}

fn update_nothing(site: &mut Site<'_, '_>) -> Answer {
    let (arg, update) = (site.arg(0), site.arg(1));
    let nothing = site.array(update).is_some_and(|a| a.element_count() == 0);
    Ok(nothing.then_some(arg))
}

/// The padding of each dimension, and whether nothing goes between elements.
fn padding(site: &Site<'_, '_>) -> Option<Vec<(PadDim, bool)>> {
    let Op::Pad { dims } = &site.instr().op else {
        return None;
    };
    let from = site.array(site.arg(0))?;
    let pairs = dims.iter().zip(&from.dims);
    Some(
        pairs
            .map(|(p, &size)| (*p, p.interior == 0 || size <= 1))
            .collect(),
    )
}

fn pad_nothing(site: &mut Site<'_, '_>) -> Answer {
    let Some(padding) = padding(site) else {
        return Ok(None);
    };
    let nothing = padding
        .iter()
        .all(|(p, plain)| *plain && p.low == 0 && p.high == 0);
    Ok(site.if_same(site.arg(0)).filter(|_| nothing))
}

fn pad_of_nothing(site: &mut Site<'_, '_>) -> Answer {
    let (arg, value) = (site.arg(0), site.arg(1));
    if site.array(arg).is_some_and(|a| a.element_count() == 0) {
        fill_with(site, value)
    } else {
        Ok(None)
    }
}

fn pad_with_the_same(site: &mut Site<'_, '_>) -> Answer {
    let (module, value) = (site.module(), site.arg(1));
    match (
        splat::splat(module, site.arg(0)),
        splat::splat(module, value),
    ) {
        (Some(a), Some(b)) if a.bytes() == b.bytes() => fill_with(site, value),
        _ => Ok(None),
    }
}

fn pad_as_slice(site: &mut Site<'_, '_>) -> Answer {
    let (Some(padding), Some(result)) = (padding(site), site.result()) else {
        return Ok(None);
    };
    if !padding
        .iter()
        .all(|(p, plain)| *plain && p.low <= 0 && p.high <= 0)
    {
        return Ok(None);
    }
    let cut = padding
        .iter()
        .zip(&result.dims)
        .map(|((p, _), &size)| {
            let start = usize::try_from(-p.low).unwrap_or(0);
            SliceDim {
                start,
                limit: start + size,
                stride: 1,
            }
        })
        .collect();
    let arg = site.arg(0);
    site.make(Op::Slice { dims: cut }, &[arg]).map(Some)
}

fn fill_with(site: &mut Site<'_, '_>, value: InstrId) -> Answer {
    let Some(result) = site.result() else {
        return Ok(None);
    };
    let op = Op::Broadcast { dims: Dims::new() };
    site.make_array(op, &[value], result.ty, &result.dims)
        .map(Some)
}

fn concatenate_one(site: &mut Site<'_, '_>) -> Answer {
    let only = site.instr().operands.len() == 1;
    Ok(only.then(|| site.arg(0)).and_then(|x| site.if_same(x)))
}

/// Drops empty parts, takes the parts of parts, and joins slices that meet.
fn concatenate_parts(site: &mut Site<'_, '_>) -> Answer {
    let Op::Concatenate { dim } = site.instr().op else {
        return Ok(None);
    };
    let operands = site.instr().operands.clone();
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
