//! Data movement ops as maps of indices.
//!
//! Each function gives the elements of an op at an index from elements of its operands, keeping a
//! run of lanes together where the op does; `None` asks for the lanes one by one.

use smallvec::SmallVec;

use crate::emit::bits;
use crate::emit::elemental::Elemental;
use crate::emit::elemental::array;
use crate::emit::index::Index;
use crate::emit::index::volume;
use crate::emit::value;
use crate::emit::value::Value;
use crate::hlo::GatherDims;
use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::PadDim;
use crate::hlo::SliceDim;
use crate::kernel::BinaryOp;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::shape::Dims;
use crate::shape::index::inverse_permutation;

impl Elemental<'_> {
    /// The elements of a data movement op.
    pub fn moved(&self, b: &mut KernelBuilder, instr: &Instr, index: &Index) -> Option<Value> {
        let shape = array(&instr.shape);
        let dims = &shape.dims;
        let source = instr.operands[0];
        match &instr.op {
            Op::Broadcast { dims: to } => {
                let inner = self.broadcast_index(dims, source, to, index)?;
                Some(self.value(b, source, &inner))
            }
            Op::Transpose { dims: from } => {
                let inner = self.transpose_index(dims, from, index)?;
                Some(self.value(b, source, &inner))
            }
            Op::Reverse { dims: reversed } => self.reverse(b, dims, source, reversed, index),
            Op::Slice { dims: slices } => {
                let inner = self.slice_index(b, dims, source, slices, index)?;
                Some(self.value(b, source, &inner))
            }
            Op::DynamicSlice { .. } => {
                let starts = self.clamped_starts(b, &instr.operands[1..], &self.dims(source), dims);
                let inner = self.shifted(b, dims, &self.dims(source), &starts, index)?;
                Some(self.value(b, source, &inner))
            }
            Op::DynamicUpdateSlice => self.update_slice(b, dims, instr, index),
            Op::Pad { dims: pads } => self.pad(b, dims, instr, pads, index),
            Op::Concatenate { dim } => self.concatenate(b, dims, instr, *dim, index),
            Op::Gather {
                dims: numbers,
                slice_sizes,
                ..
            } => self.gather(b, dims, instr, numbers, slice_sizes, index),
            Op::Reshape { .. } | Op::Bitcast => {
                let to = self.dims(source);
                let inner = self.splits.reshape(b, dims, &to, index)?;
                let value = self.value(b, source, &inner);
                bits::reinterpret(b, self.ty(source), shape.ty, value)
            }
            _ => None,
        }
    }

    /// The same run seen through a map of dimensions: dimension d of the result is dimension
    /// `source[d]` of the operand. Sets the lanes of `inner`; false when they do not stay together.
    fn carry_lanes(
        &self,
        dims: &[usize],
        inner_dims: &[usize],
        source: &[Option<usize>],
        index: &Index,
        inner: &mut Index,
    ) -> bool {
        if index.lanes == 1 {
            return true;
        }
        let index = index.clone().narrowed(dims);
        let group: Vec<Option<usize>> = (index.first..=index.last)
            .filter(|&d| dims[d] != 1)
            .map(|d| source[d])
            .collect();
        if group.iter().all(Option::is_none) {
            return true;
        }
        let Some(group) = group.into_iter().collect::<Option<Vec<usize>>>() else {
            return false;
        };
        let in_order = group
            .windows(2)
            .all(|w| w[0] < w[1] && inner_dims[w[0] + 1..w[1]].iter().all(|&n| n == 1));
        if !in_order {
            return false;
        }
        inner.lanes = index.lanes;
        inner.first = group[0];
        inner.last = group[group.len() - 1];
        inner.block = index.block;
        true
    }

    fn broadcast_index(
        &self,
        dims: &[usize],
        source: InstrId,
        to: &[usize],
        index: &Index,
    ) -> Option<Index> {
        let inner_dims = self.dims(source);
        let mut inner = Index::scalar(to.iter().map(|&d| index.at[d]));
        let map: Vec<Option<usize>> = (0..dims.len())
            .map(|d| to.iter().position(|&t| t == d))
            .collect();
        if !self.carry_lanes(dims, &inner_dims, &map, index, &mut inner) {
            return None;
        }
        let ordered = to.windows(2).all(|w| w[0] < w[1]);
        if ordered && volume(&inner_dims) == volume(dims) {
            inner.linear = index.linear;
        }
        Some(inner)
    }

    fn transpose_index(&self, dims: &[usize], from: &[usize], index: &Index) -> Option<Index> {
        let back = inverse_permutation(from);
        let inner_dims: Dims = back.iter().map(|&d| dims[d]).collect();
        let mut inner = Index::scalar(back.iter().map(|&d| index.at[d]));
        let map: Vec<Option<usize>> = from.iter().map(|&d| Some(d)).collect();
        self.carry_lanes(dims, &inner_dims, &map, index, &mut inner)
            .then_some(inner)
    }

    fn reverse(
        &self,
        b: &mut KernelBuilder,
        dims: &[usize],
        source: InstrId,
        reversed: &[usize],
        index: &Index,
    ) -> Option<Value> {
        let mut index = index.clone().narrowed(dims);
        index.linear = None;
        let lanes = i64::from(index.lanes);
        let along = index.lanes > 1 && reversed.contains(&index.first);
        if index.lanes > 1
            && index.first != index.last
            && (index.first..=index.last).any(|d| reversed.contains(&d))
        {
            return None;
        }
        for &d in reversed {
            let last = if along && d == index.first {
                dims[d] as i64 - lanes
            } else {
                dims[d] as i64 - 1
            };
            let last = b.index(last);
            index.at[d] = b.sub(last, index.at[d]);
        }
        if along && dims[index.first] as i64 % index.block != 0 {
            index.block = dims[index.first] as i64;
        }
        let value = self.value(b, source, &index);
        if !along {
            return Some(value);
        }
        let picks: Vec<u16> = (0..index.lanes).rev().collect();
        Some(value.map(|x| {
            if b.ty(x).lanes == 1 {
                x
            } else {
                b.shuffle(x, x, &picks)
            }
        }))
    }

    /// The index moved by `start` (one number a dimension) into an array of dimensions `full`, all
    /// lanes of which are inside. The group keeps together when only its first dimension is cut.
    fn shifted(
        &self,
        b: &mut KernelBuilder,
        dims: &[usize],
        full: &[usize],
        start: &[ExprId],
        index: &Index,
    ) -> Option<Index> {
        let mut inner = index.clone().narrowed(dims);
        if inner.lanes > 1 && (inner.first + 1..=inner.last).any(|d| dims[d] != full[d]) {
            return None;
        }
        inner.linear = if dims == full { index.linear } else { None };
        for d in 0..dims.len() {
            let moved = b.add(index.at[d], start[d]);
            if moved == index.at[d] {
                continue;
            }
            inner.at[d] = moved;
            inner.linear = None;
            if inner.lanes > 1 && d == inner.first {
                let rest = volume(&dims[d + 1..=inner.last]);
                let step = b.as_const_index(start[d]).map(|s| s * rest);
                if step.is_none_or(|s| s % inner.block != 0) {
                    inner.block = volume(&full[inner.first..=inner.last]);
                }
            }
        }
        if inner.lanes > 1 && dims[inner.first] != full[inner.first] {
            let size = volume(&full[inner.first..=inner.last]);
            if size % inner.block != 0 {
                inner.block = size;
            }
        }
        Some(inner)
    }

    fn slice_index(
        &self,
        b: &mut KernelBuilder,
        dims: &[usize],
        source: InstrId,
        slices: &[SliceDim],
        index: &Index,
    ) -> Option<Index> {
        let full = self.dims(source);
        let mut strided = index.clone();
        for (d, slice) in slices.iter().enumerate() {
            if slice.stride == 1 || dims[d] == 1 {
                continue;
            }
            if index.varies(d) {
                return None;
            }
            strided.at[d] = b.mul_const(index.at[d], slice.stride as i64);
            strided.linear = None;
        }
        let starts: Vec<ExprId> = slices.iter().map(|s| b.index(s.start as i64)).collect();
        self.shifted(b, dims, &full, &starts, &strided)
    }

    /// Start indices, clamped so that a window of `sizes` fits into `full`.
    pub fn clamped_starts(
        &self,
        b: &mut KernelBuilder,
        starts: &[InstrId],
        full: &[usize],
        sizes: &[usize],
    ) -> Vec<ExprId> {
        let mut out = Vec::new();
        // The old form gives all starts in one vector.
        let packed = starts.len() == 1 && self.dims(starts[0]).len() == 1;
        for d in 0..full.len() {
            let room = (full[d] - sizes[d]) as i64;
            if room == 0 {
                out.push(b.index(0));
                continue;
            }
            let (id, start) = if packed {
                let at = b.index(d as i64);
                (starts[0], self.value(b, starts[0], &Index::scalar([at])))
            } else {
                (starts[d], self.scalar(b, starts[d]))
            };
            let start = value::to_index(b, self.ty(id), start.one());
            out.push(clamp_start(b, self.ty(id).is_signed(), start, room));
        }
        out
    }

    fn update_slice(
        &self,
        b: &mut KernelBuilder,
        dims: &[usize],
        instr: &Instr,
        index: &Index,
    ) -> Option<Value> {
        let (target, update) = (instr.operands[0], instr.operands[1]);
        let sizes = self.dims(update);
        let starts = self.clamped_starts(b, &instr.operands[2..], dims, &sizes);
        let index = index.clone().narrowed(dims);
        if (index.first + 1..=index.last).any(|d| index.varies(d) && sizes[d] != dims[d]) {
            return None;
        }
        // Relative to the update; the first group dimension is looked at as a run.
        let mut inner = index.clone();
        inner.linear = None;
        let mut inside = b.bool(1, true);
        let mut outside = b.bool(1, false);
        for d in 0..dims.len() {
            if sizes[d] == dims[d] {
                continue;
            }
            let relative = b.sub(index.at[d], starts[d]);
            inner.at[d] = relative;
            let (last, size) = if index.varies(d) {
                self.run_end(b, dims, &index, relative, d)
            } else {
                (relative, b.index(0))
            };
            let (zero, end) = (b.index(0), b.index(sizes[d] as i64));
            let from = b.cmp(CmpOp::SGe, relative, zero);
            let to = b.cmp(CmpOp::SLt, last, end);
            let fits = b.binary(BinaryOp::And, from, to);
            inside = and(b, inside, fits);
            let before = b.cmp(CmpOp::SLt, last, size);
            let after = b.cmp(CmpOp::SGe, relative, end);
            let away = b.binary(BinaryOp::Or, before, after);
            outside = or(b, outside, away);
        }
        if inner.lanes > 1 {
            inner.block = volume(&sizes[inner.first..=inner.last]);
        }
        let id = instr.operands[0];
        Some(self.three_way(
            b,
            index.lanes,
            (inside, outside),
            |el, b| el.value(b, update, &inner),
            |el, b| el.value(b, target, &index),
            |el, b| {
                let lanes: Vec<Value> = (0..index.lanes)
                    .map(|lane| {
                        let one = el.splits.lane(b, dims, &index, lane);
                        el.update_slice(b, dims, instr, &one)
                            .unwrap_or_else(|| value::zero(b, el.ty(id)))
                    })
                    .collect();
                Value::gather(b, &lanes)
            },
        ))
    }

    /// The value of dimension `first` in the last lane of a run, given its value in lane 0, and the
    /// value zero.
    fn run_end(
        &self,
        b: &mut KernelBuilder,
        dims: &[usize],
        index: &Index,
        first: ExprId,
        d: usize,
    ) -> (ExprId, ExprId) {
        let rest = volume(&dims[d + 1..=index.last]);
        let lanes = i64::from(index.lanes);
        let zero = b.index(0);
        if rest == 1 {
            return (b.add_const(first, lanes - 1), zero);
        }
        let low = self
            .splits
            .position(b, &dims[d + 1..=index.last], &index.at[d + 1..=index.last]);
        let end = b.add_const(low, lanes - 1);
        let carry = b.div_const(end, rest);
        (b.add(first, carry), zero)
    }

    /// `yes` when the whole run is inside, `no` when all of it is outside, else `mixed`. With one
    /// lane the first two cover everything.
    fn three_way(
        &self,
        b: &mut KernelBuilder,
        lanes: u16,
        (inside, outside): (ExprId, ExprId),
        yes: impl FnOnce(&Self, &mut KernelBuilder) -> Value,
        no: impl FnOnce(&Self, &mut KernelBuilder) -> Value,
        mixed: impl FnOnce(&Self, &mut KernelBuilder) -> Value,
    ) -> Value {
        if b.as_const(inside) == Some(1) {
            return yes(self, b);
        }
        let registers = b.if_else(
            inside,
            |b| {
                self.scope(|| yes(self, b))
                    .splat(b, lanes)
                    .registers()
                    .to_vec()
            },
            |b| {
                self.scope(|| {
                    if lanes == 1 {
                        return no(self, b).registers().to_vec();
                    }
                    b.if_else(
                        outside,
                        |b| {
                            self.scope(|| no(self, b))
                                .splat(b, lanes)
                                .registers()
                                .to_vec()
                        },
                        |b| {
                            self.scope(|| mixed(self, b))
                                .splat(b, lanes)
                                .registers()
                                .to_vec()
                        },
                    )
                })
            },
        );
        Value::from_registers(&registers)
    }

    fn pad(
        &self,
        b: &mut KernelBuilder,
        dims: &[usize],
        instr: &Instr,
        pads: &[PadDim],
        index: &Index,
    ) -> Option<Value> {
        let (source, filler) = (instr.operands[0], instr.operands[1]);
        let inner_dims = self.dims(source);
        if volume(&inner_dims) == 0 {
            return Some(self.scalar(b, filler));
        }
        let index = index.clone().narrowed(dims);
        let plain = |d: usize| pads[d] == PadDim::default();
        if index.lanes > 1
            && (pads[index.first].interior != 0
                || (index.first + 1..=index.last).any(|d| !plain(d)))
        {
            return None;
        }
        let mut inner = index.clone();
        inner.linear = None;
        let (mut inside, mut outside) = (b.bool(1, true), b.bool(1, false));
        for d in (0..dims.len()).filter(|&d| !plain(d)) {
            let step = pads[d].interior + 1;
            let relative = b.add_const(index.at[d], -pads[d].low);
            let last = if index.varies(d) {
                self.run_end(b, dims, &index, relative, d).0
            } else {
                relative
            };
            let (zero, end) = (b.index(0), b.index((inner_dims[d] as i64 - 1) * step + 1));
            if pads[d].low > 0 {
                let from = b.cmp(CmpOp::SGe, relative, zero);
                inside = and(b, inside, from);
                let before = b.cmp(CmpOp::SLt, last, zero);
                outside = or(b, outside, before);
            }
            if pads[d].high > 0 {
                let to = b.cmp(CmpOp::SLt, last, end);
                inside = and(b, inside, to);
                let after = b.cmp(CmpOp::SGe, relative, end);
                outside = or(b, outside, after);
            }
            inner.at[d] = relative;
            if step > 1 {
                let step = b.index(step);
                let rest = b.binary(BinaryOp::SRem, relative, step);
                let on_grid = b.cmp(CmpOp::IEq, rest, zero);
                inside = and(b, inside, on_grid);
                inner.at[d] = b.binary(BinaryOp::SDiv, relative, step);
            }
        }
        if inner.lanes > 1 && !plain(inner.first) {
            inner.block = volume(&inner_dims[inner.first..=inner.last]);
        }
        Some(self.three_way(
            b,
            index.lanes,
            (inside, outside),
            |el, b| el.value(b, source, &inner),
            |el, b| el.scalar(b, filler),
            |el, b| {
                let lanes: Vec<Value> = (0..index.lanes)
                    .map(|lane| {
                        let one = el.splits.lane(b, dims, &index, lane);
                        el.pad(b, dims, instr, pads, &one)
                            .unwrap_or_else(|| value::zero(b, el.ty(source)))
                    })
                    .collect();
                Value::gather(b, &lanes)
            },
        ))
    }

    fn concatenate(
        &self,
        b: &mut KernelBuilder,
        dims: &[usize],
        instr: &Instr,
        dim: usize,
        index: &Index,
    ) -> Option<Value> {
        let index = index.clone().narrowed(dims);
        if index.varies(dim) && index.first != dim {
            return None;
        }
        let mut pieces = Vec::new();
        let mut start = 0i64;
        for &piece in &instr.operands {
            let size = self.dims(piece)[dim] as i64;
            if size > 0 {
                pieces.push((piece, start, start + size));
            }
            start += size;
        }
        Some(self.concatenate_from(b, dims, dim, &index, &pieces))
    }

    /// The element of the first piece that reaches beyond the index.
    fn concatenate_from(
        &self,
        b: &mut KernelBuilder,
        dims: &[usize],
        dim: usize,
        index: &Index,
        pieces: &[(InstrId, i64, i64)],
    ) -> Value {
        let (piece, start, end) = pieces[0];
        let piece_value = |el: &Self, b: &mut KernelBuilder| {
            let mut inner = index.clone();
            inner.linear = None;
            inner.at[dim] = b.add_const(index.at[dim], -start);
            if index.varies(dim) {
                let rest = volume(&dims[dim + 1..=index.last]);
                if start * rest % index.block != 0 || (end - start) * rest % index.block != 0 {
                    inner.block = (end - start) * rest;
                }
            }
            el.value(b, piece, &inner)
        };
        if pieces.len() == 1 {
            return piece_value(self, b);
        }
        let bound = b.index(end);
        let after = b.cmp(CmpOp::SGe, index.at[dim], bound);
        let last = if index.varies(dim) {
            self.run_end(b, dims, index, index.at[dim], dim).0
        } else {
            index.at[dim]
        };
        let inside = b.cmp(CmpOp::SLt, last, bound);
        self.three_way(
            b,
            index.lanes,
            (inside, after),
            piece_value,
            |el, b| el.concatenate_from(b, dims, dim, index, &pieces[1..]),
            |el, b| {
                let lanes: Vec<Value> = (0..index.lanes)
                    .map(|lane| {
                        let one = el.splits.lane(b, dims, index, lane);
                        el.concatenate_from(b, dims, dim, &one, pieces)
                    })
                    .collect();
                Value::gather(b, &lanes)
            },
        )
    }

    fn gather(
        &self,
        b: &mut KernelBuilder,
        dims: &[usize],
        instr: &Instr,
        numbers: &GatherDims,
        slice_sizes: &[usize],
        index: &Index,
    ) -> Option<Value> {
        let (source, indices) = (instr.operands[0], instr.operands[1]);
        let full = self.dims(source);
        let index = index.clone().narrowed(dims);
        let batch: SmallVec<[usize; 6]> = (0..dims.len())
            .filter(|d| !numbers.offset_dims.contains(d))
            .collect();
        if batch.iter().any(|&d| index.varies(d)) {
            return None;
        }
        let kept: SmallVec<[usize; 6]> = (0..full.len())
            .filter(|d| {
                !numbers.collapsed_slice_dims.contains(d)
                    && !numbers.operand_batching_dims.contains(d)
            })
            .collect();
        let zero = b.index(0);
        let mut at: SmallVec<[ExprId; 6]> = SmallVec::from_elem(zero, full.len());
        let starts = self.gather_starts(b, indices, numbers, &index, &batch);
        for (k, start) in starts.into_iter().enumerate() {
            let d = numbers.start_index_map[k];
            let room = (full[d] - slice_sizes[d]) as i64;
            at[d] = clamp_start(b, self.ty(indices).is_signed(), start, room);
        }
        for (i, &d) in numbers.operand_batching_dims.iter().enumerate() {
            let wanted = numbers.start_indices_batching_dims[i];
            let position = wanted - usize::from(wanted > numbers.index_vector_dim);
            at[d] = index.at[batch[position]];
        }
        let mut map: Vec<Option<usize>> = vec![None; dims.len()];
        for (i, &d) in numbers.offset_dims.iter().enumerate() {
            map[d] = Some(kept[i]);
            at[kept[i]] = b.add(at[kept[i]], index.at[d]);
        }
        let mut inner = Index::scalar(at);
        if index.lanes > 1 {
            if !self.carry_lanes(dims, &full, &map, &index, &mut inner) {
                return None;
            }
            let cut = (inner.first + 1..=inner.last).any(|d| slice_sizes[d] != full[d]);
            if cut {
                return None;
            }
            if slice_sizes[inner.first] != full[inner.first] {
                inner.block = volume(&full[inner.first..=inner.last]);
            }
        }
        Some(self.value(b, source, &inner))
    }

    /// The index vector of a gather, not clamped.
    fn gather_starts(
        &self,
        b: &mut KernelBuilder,
        indices: InstrId,
        numbers: &GatherDims,
        index: &Index,
        batch: &[usize],
    ) -> Vec<ExprId> {
        let rank = self.dims(indices).len();
        let vector_dim = numbers.index_vector_dim;
        let mut out = Vec::new();
        for k in 0..numbers.start_index_map.len() {
            let mut at: SmallVec<[ExprId; 6]> = batch.iter().map(|&d| index.at[d]).collect();
            if vector_dim < rank {
                at.insert(vector_dim, b.index(k as i64));
            }
            let start = self.value(b, indices, &Index::scalar(at)).one();
            out.push(value::to_index(b, self.ty(indices), start));
        }
        out
    }
}

/// A start index limited to `0..=room`.
fn clamp_start(b: &mut KernelBuilder, signed: bool, start: ExprId, room: i64) -> ExprId {
    let (zero, room) = (b.index(0), b.index(room));
    if !signed {
        return b.binary(BinaryOp::UMin, start, room);
    }
    let low = b.binary(BinaryOp::SMax, start, zero);
    b.binary(BinaryOp::SMin, low, room)
}

fn and(b: &mut KernelBuilder, x: ExprId, y: ExprId) -> ExprId {
    match (b.as_const(x), b.as_const(y)) {
        (Some(1), _) => y,
        (_, Some(1)) => x,
        _ => b.binary(BinaryOp::And, x, y),
    }
}

fn or(b: &mut KernelBuilder, x: ExprId, y: ExprId) -> ExprId {
    match (b.as_const(x), b.as_const(y)) {
        (Some(0), _) => y,
        (_, Some(0)) => x,
        _ => b.binary(BinaryOp::Or, x, y),
    }
}
