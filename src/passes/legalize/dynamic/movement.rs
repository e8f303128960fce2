//! Ops that move the elements of dynamic arrays.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::hlo::BinaryOp;
use crate::hlo::Builder;
use crate::hlo::CompId;
use crate::hlo::GatherDims;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::PadDim;
use crate::hlo::ScatterDims;
use crate::hlo::SliceDim;
use crate::hlo::dynamic::groups;
use crate::passes::legalize::dynamic::masked::real;
use crate::passes::legalize::dynamic::work::Array;
use crate::passes::legalize::dynamic::work::Work;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::shape::index::row_major_strides;

/// Whether the real elements come first in row-major order, without gaps.
pub(super) fn is_prefix(dims: &[usize], sizes: &[Option<InstrId>]) -> bool {
    match sizes.iter().position(Option::is_some) {
        Some(first) => {
            dims[..first].iter().all(|&n| n == 1) && sizes[first + 1..].iter().all(Option::is_none)
        }
        None => true,
    }
}

/// Whether a reshape leaves the real elements where they are: within each group of dimensions that
/// hold the same elements, they come first before and after. Where the program says the sizes, a
/// group holds as many as before only if no other is dynamic.
pub(super) fn keeps_order(
    op: &Op,
    operand: &Array,
    result: &ArrayShape,
    sizes: &[Option<InstrId>],
) -> bool {
    let dims = &operand.shape.dims;
    let mut dynamic = 0;
    let in_order = groups(dims, &result.dims).into_iter().all(|group| {
        let open = sizes[group.to.clone()].iter().any(Option::is_some);
        let before = &operand.sizes[group.from.clone()];
        dynamic += usize::from(open);
        open == before.iter().any(Option::is_some)
            && is_prefix(&dims[group.from], before)
            && is_prefix(&result.dims[group.to.clone()], &sizes[group.to])
    });
    in_order && (dynamic < 2 || !matches!(op, Op::DynamicReshape))
}

/// The real elements of an array in row-major order as those of an array of other dimensions:
/// the element at each position is found by counting.
pub(super) fn rearranged(
    b: &mut Builder<'_>,
    data: InstrId,
    (from, from_sizes): (&[usize], &[Option<InstrId>]),
    (to, to_sizes): (&[usize], &[Option<InstrId>]),
) -> Result<InstrId> {
    let count: usize = from.iter().product();
    if count == 0 {
        return b.reshape(data, to);
    }
    let ty = match i32::try_from(count) {
        Ok(_) => PrimitiveType::S32,
        Err(_) => PrimitiveType::S64,
    };
    let extent =
        |b: &mut Builder<'_>, dims: &[usize], sizes: &[Option<InstrId>], d: usize| match sizes[d] {
            Some(size) => b.convert(size, ty),
            None => Ok(b.constant_int(ty, dims[d] as i128)),
        };
    // Which of the real elements stands at each position of the result.
    let mut rest = b.full(ty, to, 0.0)?;
    let mut stride = b.constant_int(ty, 1);
    for d in (0..to.len()).rev() {
        let at = b.iota(ty, to, d)?;
        let step = b.broadcast_scalar(stride, to)?;
        let distance = b.multiply(at, step)?;
        rest = b.add(rest, distance)?;
        let size = extent(b, to, to_sizes, d)?;
        stride = b.multiply(stride, size)?;
    }
    // Where that one is in the operand.
    let strides = row_major_strides(from);
    let mut place = b.full(ty, to, 0.0)?;
    for d in (0..from.len()).rev() {
        let mut at = rest;
        if d > 0 {
            let size = extent(b, from, from_sizes, d)?;
            let size = b.broadcast_scalar(size, to)?;
            at = b.binary(BinaryOp::Remainder, rest, size)?;
            rest = b.divide(rest, size)?;
        }
        let stride = b.constant_int(ty, strides[d] as i128);
        let stride = b.broadcast_scalar(stride, to)?;
        let distance = b.multiply(at, stride)?;
        place = b.add(place, distance)?;
    }
    let total: usize = to.iter().product();
    let place = b.reshape(place, &[total, 1])?;
    let flat = b.reshape(data, &[count])?;
    let one: Dims = [0].into_iter().collect();
    let gather = Op::Gather {
        dims: GatherDims {
            collapsed_slice_dims: one.clone(),
            start_index_map: one,
            index_vector_dim: 1,
            ..GatherDims::default()
        },
        slice_sizes: [1].into_iter().collect(),
        indices_are_sorted: false,
    };
    let gathered = b.op(gather, &[flat, place])?;
    b.reshape(gathered, to)
}

impl Work<'_> {
    /// What follows the real elements is padding already when the op comes.
    pub(super) fn pad(&mut self, dims: &[PadDim]) -> Result<InstrId> {
        let all: Vec<usize> = (0..dims.len()).collect();
        let value = self.operands[1].data;
        let data = self.filled(0, &all, value)?;
        Ok(self.on(self.op.clone(), vec![data, value]))
    }

    /// What is reversed up to the bounds has its real elements at the end.
    pub(super) fn reverse(&mut self, dims: &[usize]) -> Result<InstrId> {
        let bounds = self.operands[0].shape.dims.clone();
        let open = self.open_sizes(0, dims);
        let reversed = self.on_data()?;
        if open.is_empty() {
            return Ok(reversed);
        }
        let mut pads = vec![PadDim::default(); bounds.len()];
        let zero = self.number(0);
        let mut starts = vec![zero; bounds.len()];
        for (d, size) in open {
            pads[d].high = bounds[d] as i64;
            let bound = self.number(bounds[d] as i64);
            starts[d] = self.b.subtract(bound, size)?;
        }
        let nothing = self.b.constant_int(self.operands[0].shape.ty, 0);
        let room = self.b.pad(reversed, nothing, &pads)?;
        self.b.dynamic_slice(room, &starts, &bounds)
    }

    /// Each operand is written where the real elements of those before it end.
    pub(super) fn concatenate(&mut self, dim: usize) -> Result<InstrId> {
        let Some(first) = self.operands.iter().position(|o| o.sizes[dim].is_some()) else {
            return self.on_data();
        };
        let total = self.results[0].dims[dim];
        let head: Vec<InstrId> = self.operands[..=first].iter().map(|o| o.data).collect();
        let known: usize = self.operands[..first]
            .iter()
            .map(|o| o.shape.dims[dim])
            .sum();
        let mut value = self.b.concatenate(&head, dim)?;
        let mut pads = vec![PadDim::default(); self.results[0].rank()];
        let taken = known + self.operands[first].shape.dims[dim];
        pads[dim].high = (total - taken) as i64;
        let nothing = self.b.constant_int(self.results[0].ty, 0);
        if pads[dim].high > 0 {
            value = self.b.pad(value, nothing, &pads)?;
        }
        let known = self.number(known as i64);
        let size = self.size_of(first, dim);
        let mut offset = self.b.add(known, size)?;
        let zero = self.number(0);
        for i in first + 1..self.operands.len() {
            let mut starts = vec![zero; self.results[0].rank()];
            starts[dim] = offset;
            let data = self.operands[i].data;
            value = self.b.dynamic_update_slice(value, data, &starts)?;
            let size = self.size_of(i, dim);
            offset = self.b.add(offset, size)?;
        }
        Ok(value)
    }

    /// A dynamic update writes its real elements, as near to its start as they fit.
    pub(super) fn update(&mut self) -> Result<InstrId> {
        let dims: Vec<usize> = (0..self.operands[1].shape.rank()).collect();
        let open = self.open_sizes(1, &dims);
        if open.is_empty() {
            return self.on_data();
        }
        let (bounds, window) = (
            self.operands[0].shape.dims.clone(),
            self.operands[1].shape.dims.clone(),
        );
        let ty = self.operands[2].shape.ty;
        let one_vector = self.operands.len() == 3 && self.operands[2].shape.rank() == 1;
        let mut pads = vec![PadDim::default(); bounds.len()];
        let mut starts = Vec::new();
        for d in 0..bounds.len() {
            let given = match one_vector {
                true => {
                    let element = self.b.slice_dim(self.operands[2].data, 0, d, d + 1)?;
                    self.b.reshape(element, &[])?
                }
                false => self.operands[2 + d].data,
            };
            // Starts are as wide as sizes at least before they are compared.
            let wide = if ty.bit_width() < 32 {
                PrimitiveType::S32
            } else {
                ty
            };
            let given = self.b.convert(given, wide)?;
            let size = self.size_of(1, d);
            let bound = self.number(bounds[d] as i64);
            let last = self.b.subtract(bound, size)?;
            let last = self.b.convert(last, wide)?;
            let zero = self.b.constant_int(wide, 0);
            starts.push(self.b.clamp(zero, given, last)?);
            pads[d].high = window[d] as i64;
        }
        let nothing = self.b.constant_int(self.operands[0].shape.ty, 0);
        let room = self.b.pad(self.operands[0].data, nothing, &pads)?;
        let old = self.b.dynamic_slice(room, &starts, &window)?;
        let Some(is_real) = real(&mut self.b, &window, &open)? else {
            return self.on_data();
        };
        let new = self.b.select(is_real, self.operands[1].data, old)?;
        let written = self.b.dynamic_update_slice(room, new, &starts)?;
        let slices = bounds.iter().map(|&limit| SliceDim {
            start: 0,
            limit,
            stride: 1,
        });
        let slices: Vec<SliceDim> = slices.collect();
        self.b.slice(written, &slices)
    }

    /// Indices beyond the real ones point outside, where updates are left out.
    pub(super) fn scatter(
        &mut self,
        dims: &ScatterDims,
        body: CompId,
        unique_indices: bool,
    ) -> Result<InstrId> {
        let count = (self.operands.len() - 1) / 2;
        let scattered = (0..self.operands[count + 1].shape.rank())
            .filter(|d| !dims.update_window_dims.contains(d));
        let scattered: Vec<usize> = scattered.collect();
        let rank = self.operands[count].shape.rank();
        let batch = (0..rank).filter(|&d| d != dims.index_vector_dim);
        let mut open = Vec::new();
        for (b, u) in batch.zip(scattered) {
            let mut meet = vec![(count, b)];
            meet.extend((count + 1..self.operands.len()).map(|i| (i, u)));
            open.extend(self.agreed(&meet)?.map(|size| (b, size)));
        }
        if open.is_empty() {
            return self.on_data();
        }
        if self.operands[count].shape.dims.get(dims.index_vector_dim) == Some(&0) {
            return self.scatter_of_real(body, &open);
        }
        let ty = self.operands[count].shape.ty;
        let (signed, outside) = match (ty.is_signed(), ty.bit_width()) {
            (true, _) => (ty, -1),
            (false, width) if width < 32 => (PrimitiveType::S32, -1),
            (false, 32) => (PrimitiveType::S64, -1),
            (false, _) => (ty, i128::from(u64::MAX)),
        };
        let mut operands: Vec<InstrId> = self.operands.iter().map(|o| o.data).collect();
        let indices = self.b.convert(operands[count], signed)?;
        let outside = self.b.constant_int(signed, outside);
        operands[count] = self.fill(indices, &open, outside)?;
        let op = Op::Scatter {
            dims: dims.clone(),
            body,
            indices_are_sorted: false,
            unique_indices,
        };
        Ok(self.on(op, operands))
    }

    /// Without indices that could point outside, what changes nothing stands for updates that are not
    /// real: beyond these sizes in dimensions of the indices.
    fn scatter_of_real(&mut self, body: CompId, open: &[(usize, InstrId)]) -> Result<InstrId> {
        let Op::Scatter { dims, .. } = self.op.clone() else {
            return self.on_data();
        };
        let count = (self.operands.len() - 1) / 2;
        let ty = self.operands[0].shape.ty;
        let Some(nothing) = self.neutral(body, ty).filter(|_| count == 1) else {
            let message = "`scatter` of a dynamic number of updates without indices combines by something else than one op";
            return Err(Diagnostic::unsupported(codes::COMPILE_UNSUPPORTED, message));
        };
        let updates = self.operands[2].clone();
        let scattered = (0..updates.shape.rank()).filter(|d| !dims.update_window_dims.contains(d));
        let scattered: Vec<usize> = scattered.collect();
        let batch = |d: usize| d - usize::from(d > dims.index_vector_dim);
        let sizes = open.iter().map(|&(d, size)| (scattered[batch(d)], size));
        let sizes: Vec<(usize, InstrId)> = sizes.collect();
        let mut operands: Vec<InstrId> = self.operands.iter().map(|o| o.data).collect();
        operands[2] = self.fill(updates.data, &sizes, nothing)?;
        Ok(self.on(self.op.clone(), operands))
    }
}
