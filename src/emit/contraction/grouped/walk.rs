//! What the directions of lanes share: work and tasks, the walk over a window, elements of operands,
//! places in the value.

use smallvec::SmallVec;

use crate::analysis::contraction::Product;
use crate::analysis::grouped_conv::Coordinate;
use crate::analysis::grouped_conv::GroupedConv;
use crate::emit::convert;
use crate::emit::cost;
use crate::emit::elemental::Elemental;
use crate::emit::index::Index;
use crate::emit::value;
use crate::emit::value::Access;
use crate::emit::value::Value;
use crate::hlo::InstrId;
use crate::hlo::WindowDim;
use crate::kernel::BinaryOp;
use crate::kernel::BufId;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Unroll;
use crate::shape::Dims;
use crate::shape::PrimitiveType;

/// Elements of an operand near each other.
pub(super) struct Operand<'a, 'm> {
    el: &'a Elemental<'m>,
    id: InstrId,
    dims: Dims,
    /// The type elements are given in.
    to: PrimitiveType,
    /// Where it lies, when it is read from memory in elements of whole bytes.
    memory: Option<BufId>,
}

/// An element of an operand, from which others are reached by constant distances.
pub(super) struct Near {
    index: SmallVec<[ExprId; 6]>,
    position: ExprId,
}

impl<'a, 'm> Operand<'a, 'm> {
    pub(super) fn new(el: &'a Elemental<'m>, product: &Product, id: InstrId) -> Self {
        let source = el.source(id);
        let memory = source.filter(|source| value::per_byte(source.shape.ty) == 1);
        Self {
            el,
            id,
            dims: el.dims(id),
            to: product.accumulator,
            memory: memory.map(|source| source.buf),
        }
    }

    /// What lies near that index.
    pub(super) fn near(&self, b: &mut KernelBuilder, index: SmallVec<[ExprId; 6]>) -> Near {
        let position = self.el.splits.position(b, &self.dims, &index);
        Near { index, position }
    }

    /// Elements along the innermost dimension, from the place so far along each dimension; they cross
    /// no multiple of `block` of it.
    pub(super) fn read(
        &self,
        b: &mut KernelBuilder,
        near: &Near,
        distances: &[(usize, i64)],
        (lanes, block): (usize, i64),
    ) -> ExprId {
        let ty = self.el.ty(self.id);
        let value = match self.memory {
            Some(buf) => {
                let below = |d: usize| self.dims[d + 1..].iter().product::<usize>() as i64;
                let distance = distances.iter().map(|&(d, by)| by * below(d)).sum();
                let at = b.add_const(near.position, distance);
                value::load(b, buf, ty, at, Access::run(lanes as u16, false))
            }
            None => {
                let mut at = near.index.clone();
                for &(d, by) in distances {
                    at[d] = b.add_const(at[d], by);
                }
                let last = self.dims.len() - 1;
                let index = Index::run(at, lanes as u16, last, block);
                self.el.value(b, self.id, &index)
            }
        };
        let value: Value = convert::convert(b, ty, self.to, value);
        b.splat(value.one(), lanes as u16)
    }
}

/// The tasks that a convolution is shared out to at most.
pub(super) fn tasks(el: &Elemental<'_>, conv: &GroupedConv, product: &Product) -> i64 {
    let bytes = |id: InstrId, dims: &Dims| {
        dims.iter().map(|&d| d as u64).product::<u64>() * el.ty(id).byte_width() as u64
    };
    let outputs = conv.output.iter().map(|&d| d as u64).product::<u64>();
    let moved = bytes(product.hero, &conv.output)
        + bytes(el.module.instr(product.hero).operands[0], &conv.input);
    cost::tasks(el.target, moved + outputs * conv.terms() as u64 / 2) as i64
}

/// The row-major position in the value of an element of the convolution.
pub(super) fn position(
    b: &mut KernelBuilder,
    el: &Elemental<'_>,
    (conv, product): (&GroupedConv, &Product),
    batch: ExprId,
    spatial: &[ExprId],
    feature: ExprId,
) -> ExprId {
    let at: SmallVec<[ExprId; 6]> = conv
        .value
        .iter()
        .map(|coordinate| match *coordinate {
            Coordinate::Batch => batch,
            Coordinate::Spatial(d) => spatial[d],
            Coordinate::Feature => feature,
        })
        .collect();
    el.splits.position(b, &el.dims(product.value), &at)
}

/// Walks the elements of one dimension of a window that are inside the input at an output position,
/// with values carried from one to the next. The body gets the input position and the place in the
/// kernel.
pub(super) fn over_elements(
    b: &mut KernelBuilder,
    el: &Elemental<'_>,
    (w, size): (&WindowDim, usize),
    position: ExprId,
    carried: Vec<ExprId>,
    body: &mut dyn FnMut(&mut KernelBuilder, (ExprId, ExprId), Vec<ExprId>) -> Vec<ExprId>,
) -> Vec<ExprId> {
    let zero = b.index(0);
    let start = b.mul_const(position, w.stride);
    let start = b.add_const(start, -w.padding_low);
    if let Some(0) = b.as_const_index(start)
        && w.size == 1
    {
        return body(b, (zero, zero), carried);
    }
    let (first, end) = inside(b, w, size, start);
    let one = b.index(1);
    b.for_carried(
        (first, end, one),
        &carried,
        Unroll::Never,
        |b, element, sums| {
            el.scope(|| {
                let offset = b.mul_const(element, w.window_dilation);
                let from = b.add(start, offset);
                let kernel = if w.reversal {
                    let last = b.index(w.size as i64 - 1);
                    b.sub(last, element)
                } else {
                    element
                };
                if w.base_dilation == 1 {
                    return body(b, (from, kernel), sums.to_vec());
                }
                let at = b.div_const(from, w.base_dilation);
                let rest = b.rem_const(from, w.base_dilation);
                let is_element = b.cmp(CmpOp::IEq, rest, zero);
                b.if_else(
                    is_element,
                    |b| el.scope(|| body(b, (at, kernel), sums.to_vec())),
                    |_| sums.to_vec(),
                )
            })
        },
    )
}

/// The first element of a window that begins there to be inside the input, and the one after the last.
fn inside(b: &mut KernelBuilder, w: &WindowDim, size: usize, start: ExprId) -> (ExprId, ExprId) {
    let zero = b.index(0);
    let before = b.sub(zero, start);
    let before = b.binary(BinaryOp::SMax, before, zero);
    let before = b.add_const(before, w.window_dilation - 1);
    let first = b.div_const(before, w.window_dilation);
    let last = b.index((size as i64 - 1) * w.base_dilation + w.window_dilation);
    let left = b.sub(last, start);
    let left = b.binary(BinaryOp::SMax, left, zero);
    let count = b.div_const(left, w.window_dilation);
    let all = b.index(w.size as i64);
    (first, b.binary(BinaryOp::SMin, count, all))
}
