//! Elements of a product's operands by batch, free and summed coordinate.

use smallvec::SmallVec;

use crate::analysis::contraction::Access;
use crate::analysis::contraction::Product;
use crate::analysis::contraction::Side;
use crate::emit::convert;
use crate::emit::elemental::Elemental;
use crate::emit::index::Index;
use crate::emit::index::Splits;
use crate::emit::value;
use crate::emit::value::Value;
use crate::hlo::ConvDims;
use crate::hlo::Window;
use crate::hlo::WindowDim;
use crate::kernel::BinaryOp;
use crate::kernel::BufId;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Scalar;
use crate::shape::Dims;
use crate::shape::PrimitiveType;

/// Which coordinate neighbouring lanes differ in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Along {
    /// Rows of the left side, columns of the right.
    Free,
    /// The summed coordinate.
    Summed,
}

/// Where an element is.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) batch: ExprId,
    pub(super) free: ExprId,
    pub(super) summed: ExprId,
}

/// Reads one side of a product.
pub(super) struct Reader<'a, 'm> {
    el: &'a Elemental<'m>,
    product: &'a Product,
    side: &'a Side,
    dims: Dims,
    /// Size of the free coordinate within one batch.
    free: usize,
    /// The type elements are given in.
    to: PrimitiveType,
}

/// An operand that lies in memory in accumulator form: element `(batch, free, summed)` is at
/// `start of batch + free * free_stride + summed * summed_stride`.
#[derive(Clone)]
pub(super) struct Direct {
    pub(super) buf: BufId,
    /// Sizes and strides of the batch dimensions, most significant first.
    batch: SmallVec<[(usize, i64); 3]>,
    pub(super) free_stride: i64,
    pub(super) summed_stride: i64,
}

impl Direct {
    /// Where the elements of a batch start.
    pub(super) fn start(&self, b: &mut KernelBuilder, splits: &Splits, batch: ExprId) -> ExprId {
        let sizes: Dims = self.batch.iter().map(|&(size, _)| size).collect();
        let mut start = b.index(0);
        for (at, &(_, stride)) in splits.unravel(b, &sizes, batch).iter().zip(&self.batch) {
            let offset = b.mul_const(*at, stride);
            start = b.add(start, offset);
        }
        start
    }
}

/// Whether the numbers go up one by one.
fn is_run(list: &[usize]) -> bool {
    list.windows(2).all(|w| w[1] == w[0] + 1)
}

impl<'a, 'm> Reader<'a, 'm> {
    pub(super) fn lhs(el: &'a Elemental<'m>, product: &'a Product) -> Self {
        let side = &product.lhs;
        Self {
            el,
            product,
            side,
            dims: el.dims(side.operand),
            free: product.m,
            to: product.accumulator,
        }
    }

    pub(super) fn rhs(el: &'a Elemental<'m>, product: &'a Product) -> Self {
        let side = &product.rhs;
        Self {
            el,
            product,
            side,
            dims: el.dims(side.operand),
            free: product.n,
            to: product.accumulator,
        }
    }

    /// The same side with its elements in another type.
    pub(super) fn in_type(self, to: PrimitiveType) -> Self {
        Self { to, ..self }
    }

    /// The coordinate whose neighbours are neighbours in memory.
    pub(super) fn innermost(&self) -> Along {
        let rank = self.dims.len();
        match &self.side.access {
            Access::Plain { free, .. } if free.last().is_some_and(|&d| d + 1 == rank) => {
                Along::Free
            }
            Access::Plain { .. } => Along::Summed,
            Access::Patches { dims, .. } if dims.input_feature + 1 == rank => Along::Summed,
            Access::Patches { .. } => Along::Free,
        }
    }

    /// Whether a run of that many lanes can be read at once at any multiple of its length.
    pub(super) fn vectorizes(&self, along: Along, lanes: usize) -> bool {
        match &self.side.access {
            Access::Plain { free, summed, .. } => {
                is_run(if along == Along::Free { free } else { summed })
            }
            Access::Patches { dims, .. } => {
                along == Along::Summed && self.group_features(dims).is_multiple_of(lanes)
            }
        }
    }

    /// The operand as it lies in memory, when it has the bits of the type elements are given in.
    pub(super) fn direct(&self) -> Option<Direct> {
        let Access::Plain {
            batch,
            free,
            summed,
        } = &self.side.access
        else {
            return None;
        };
        let source = self.el.source(self.side.operand)?;
        let is_grouped = batch.is_empty() && self.product.batch > 1;
        let is_byte = |ty: PrimitiveType| value::register(ty) == Scalar::I8 && ty.bit_width() == 8;
        let ty = source.shape.ty;
        let matches = (ty == self.to || is_byte(ty) && is_byte(self.to))
            && self.product.operand_type.is_none()
            && [free, summed].iter().all(|list| is_run(list))
            && !is_grouped;
        let below = |d: usize| self.dims[d + 1..].iter().product::<usize>() as i64;
        let stride = |list: &[usize]| list.last().map_or(0, |&d| below(d));
        matches.then(|| Direct {
            buf: source.buf,
            batch: batch.iter().map(|&d| (self.dims[d], below(d))).collect(),
            free_stride: stride(free),
            summed_stride: stride(summed),
        })
    }

    /// Features of one group of a convolution's input.
    fn group_features(&self, dims: &ConvDims) -> usize {
        self.dims[dims.input_feature] / self.product.batch
    }

    /// Elements of the operand at an index, in the reader's type.
    pub(super) fn at(&self, b: &mut KernelBuilder, index: &Index) -> ExprId {
        let value = self.el.value(b, self.side.operand, index);
        let value = self.convert(b, value).one();
        b.splat(value, index.lanes)
    }

    /// A run of elements in the reader's type, from a place on. With more than one lane the
    /// coordinate along which they lie is a multiple of the number of lanes, and all are inside.
    pub(super) fn read(
        &self,
        b: &mut KernelBuilder,
        place: Place,
        along: Along,
        lanes: u16,
    ) -> ExprId {
        if lanes > 1 && !self.vectorizes(along, usize::from(lanes)) {
            let each: Vec<ExprId> = (0..i64::from(lanes))
                .map(|lane| {
                    let mut place = place;
                    match along {
                        Along::Free => place.free = b.add_const(place.free, lane),
                        Along::Summed => place.summed = b.add_const(place.summed, lane),
                    }
                    self.read(b, place, along, 1)
                })
                .collect();
            return b.vector(&each);
        }
        let value = match &self.side.access {
            Access::Plain {
                batch,
                free,
                summed,
            } => self.plain(b, (batch, free, summed), place, along, lanes),
            Access::Patches {
                window,
                dims,
                output,
            } => self.patch(b, (window, dims, output), place, lanes),
        };
        let value = self.convert(b, value).one();
        b.splat(value, lanes)
    }

    fn convert(&self, b: &mut KernelBuilder, value: Value) -> Value {
        let ty = self.el.ty(self.side.operand);
        let (ty, value) = match self.product.operand_type {
            Some(narrow) => (narrow, convert::convert(b, ty, narrow, value)),
            None => (ty, value),
        };
        convert::convert(b, ty, self.to, value)
    }

    fn plain(
        &self,
        b: &mut KernelBuilder,
        (batch, free, summed): (&Dims, &Dims, &Dims),
        place: Place,
        along: Along,
        lanes: u16,
    ) -> Value {
        let splits = &self.el.splits;
        let zero = b.index(0);
        let mut index = Index::scalar(std::iter::repeat_n(zero, self.dims.len()));
        // Groups of a convolution have no dimension of their own: they are the upper part of a free
        // one.
        let free_number = if batch.is_empty() && self.product.batch > 1 {
            splits.join(b, place.batch, place.free, self.free as i64)
        } else {
            place.free
        };
        for (list, number) in [
            (batch, place.batch),
            (free, free_number),
            (summed, place.summed),
        ] {
            let sizes: Dims = list.iter().map(|&d| self.dims[d]).collect();
            for (&d, at) in list.iter().zip(splits.unravel(b, &sizes, number)) {
                index.at[d] = at;
            }
        }
        if lanes > 1 {
            let list = if along == Along::Free { free } else { summed };
            let size: usize = list.iter().map(|&d| self.dims[d]).product();
            if let (Some(&first), Some(&last)) = (list.first(), list.last()) {
                (index.first, index.last) = (first, last);
                index.lanes = lanes;
                let is_aligned =
                    size.is_multiple_of(usize::from(lanes)) || free_number == place.free;
                index.block = if is_aligned {
                    i64::from(lanes)
                } else {
                    size as i64
                };
                index = index.narrowed(&self.dims);
            }
        }
        self.el.value(b, self.side.operand, &index)
    }

    fn patch(
        &self,
        b: &mut KernelBuilder,
        (window, dims, output): (&Window, &ConvDims, &Dims),
        place: Place,
        lanes: u16,
    ) -> Value {
        let features = self.group_features(dims);
        let splits = &self.el.splits;
        let mut positions = Dims::from_slice(&[self.dims[dims.input_batch]]);
        positions.extend_from_slice(output);
        let position = splits.unravel(b, &positions, place.free);
        let mut elements: Dims = window.iter().map(|w| w.size).collect();
        elements.push(features);
        let element = splits.unravel(b, &elements, place.summed);
        let zero = b.index(0);
        let mut index = Index::scalar(std::iter::repeat_n(zero, self.dims.len()));
        index.at[dims.input_batch] = position[0];
        let mut inside = None;
        for (d, w) in window.iter().enumerate() {
            let size = self.dims[dims.input_spatial[d]];
            let from = window_start(b, w, position[d + 1], element[d]);
            let leaves = w.may_leave(output[d], size);
            let (at, valid) = within(b, w.base_dilation, from, size, leaves);
            index.at[dims.input_spatial[d]] = at;
            inside = both(b, inside, valid);
        }
        let feature = element[window.len()];
        index.at[dims.input_feature] = splits.join(b, place.batch, feature, features as i64);
        if lanes > 1 {
            (index.first, index.last) = (dims.input_feature, dims.input_feature);
            index.lanes = lanes;
            index.block = i64::from(lanes);
        }
        let value = self.el.value(b, self.side.operand, &index);
        match inside {
            Some(inside) => {
                let padding = value::zero(b, self.el.ty(self.side.operand)).splat(b, lanes);
                value.splat(b, lanes).select(b, inside, padding)
            }
            None => value,
        }
    }
}

/// Whether both hold; `None` is what always holds.
pub(super) fn both(b: &mut KernelBuilder, x: Option<ExprId>, y: Option<ExprId>) -> Option<ExprId> {
    match (x, y) {
        (Some(x), Some(y)) => Some(b.binary(BinaryOp::And, x, y)),
        (x, y) => x.or(y),
    }
}

/// The dilated position a window element looks at.
fn window_start(b: &mut KernelBuilder, w: &WindowDim, output: ExprId, element: ExprId) -> ExprId {
    let start = b.mul_const(output, w.stride);
    let offset = window_offset(b, w, element);
    let sum = b.add(start, offset);
    b.add_const(sum, -w.padding_low)
}

/// Dilated positions from the first one of a window to the one that an element looks at.
pub(super) fn window_offset(b: &mut KernelBuilder, w: &WindowDim, element: ExprId) -> ExprId {
    let element = if w.reversal {
        let last = b.index(w.size as i64 - 1);
        b.sub(last, element)
    } else {
        element
    };
    b.mul_const(element, w.window_dilation)
}

/// The input position, brought inside, and whether it was inside; `None` when it always is.
fn within(
    b: &mut KernelBuilder,
    dilation: i64,
    from: ExprId,
    size: usize,
    may_leave: bool,
) -> (ExprId, Option<ExprId>) {
    if !may_leave {
        return (from, None);
    }
    let zero = b.index(0);
    let mut at = from;
    // One unsigned comparison tests both ends.
    let bound = b.index((size as i64 - 1) * dilation + 1);
    let mut valid = b.cmp(CmpOp::ULt, from, bound);
    if dilation > 1 {
        let step = b.index(dilation);
        let rest = b.binary(BinaryOp::SRem, from, step);
        let even = b.cmp(CmpOp::IEq, rest, zero);
        valid = b.binary(BinaryOp::And, valid, even);
        at = b.binary(BinaryOp::SDiv, from, step);
    }
    let at = b.select(valid, at, zero);
    (at, Some(valid))
}
