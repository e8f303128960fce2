//! From sums to results: the epilogue of a product.

use crate::analysis::contraction::Access;
use crate::analysis::contraction::Axis;
use crate::analysis::contraction::Product;
use crate::emit::convert;
use crate::emit::request::KernelRequest;
use crate::emit::setup;
use crate::emit::setup::Body;
use crate::emit::value;
use crate::emit::value::Value;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::shape::Dims;

/// Whether every result element needs the product's element at its own row-major position only.
pub(super) fn is_elementwise_after(request: &KernelRequest<'_>, hero: InstrId) -> bool {
    let module = request.module;
    let count = |id: InstrId| {
        module
            .shape(id)
            .as_array()
            .map(crate::shape::ArrayShape::element_count)
    };
    setup::roots_of(request).into_iter().all(|root| {
        count(root) == count(hero)
            && value::per_byte(request.results[0].shape.ty) == 1
            && same_position(request, root, hero)
    })
}

/// Whether `id` is the hero, does not need it, or is computed from it position by position.
fn same_position(request: &KernelRequest<'_>, id: InstrId, hero: InstrId) -> bool {
    if id == hero || !needs(request, id, hero) {
        return true;
    }
    let instr = request.module.instr(id);
    let moves_nothing = match &instr.op {
        Op::Unary(_)
        | Op::Binary(_)
        | Op::Compare { .. }
        | Op::Select
        | Op::Clamp
        | Op::Convert
        | Op::Copy
        | Op::ReducePrecision { .. } => true,
        Op::Bitcast | Op::Reshape { .. } => {
            let width = |id: InstrId| {
                request
                    .module
                    .shape(id)
                    .as_array()
                    .map(|shape| shape.ty.bit_width())
            };
            width(id) == width(instr.operands[0])
        }
        _ => false,
    };
    moves_nothing
        && instr
            .operands
            .iter()
            .all(|&o| same_position(request, o, hero))
}

/// Whether the hero is among what `id` is computed from.
fn needs(request: &KernelRequest<'_>, id: InstrId, hero: InstrId) -> bool {
    let mut stack = vec![id];
    let mut seen = std::collections::BTreeSet::new();
    while let Some(id) = stack.pop() {
        if id == hero {
            return true;
        }
        if seen.insert(id) && request.module.instr(id).parent == request.module.instr(hero).parent {
            let instr = request.module.instr(id);
            if !matches!(instr.op, Op::Parameter { .. }) {
                stack.extend(instr.operands.iter().copied());
            }
        }
    }
    false
}

/// Writes sums of a product to the results.
pub(super) struct Store<'a, 'm> {
    body: &'a Body<'m>,
    product: &'a Product,
    /// Dimensions of the product's value.
    dims: Dims,
    /// Elements along the columns that lie together in the result, at multiples of this number.
    run: usize,
}

impl<'a, 'm> Store<'a, 'm> {
    pub(super) fn new(body: &'a Body<'m>, product: &'a Product) -> Self {
        let dims = body.el.dims(product.value);
        // The last dimensions of the result, as long as they are the last parts of a column's
        // number in the same order.
        let mut parts: Vec<(Axis, usize)> = product.output.iter().copied().collect();
        parts.retain(|(axis, _)| *axis == Axis::Column);
        parts.sort_unstable_by_key(|(_, part)| *part);
        let last = product.output.iter().zip(&dims).rev();
        let run = last
            .zip(parts.iter().rev())
            .take_while(|((own, _), part)| own == part)
            .map(|((_, &size), _)| size)
            .product();
        Self {
            body,
            product,
            dims,
            run,
        }
    }

    /// Runs the closure, which builds a block of the kernel.
    pub(super) fn scope<R>(&self, build: impl FnOnce() -> R) -> R {
        self.body.el.scope(build)
    }

    /// Whether the results are the sums, as they are or converted.
    pub(super) fn is_plain(&self) -> bool {
        self.body.roots == [self.product.value]
    }

    /// Row-major position in the value of an element of the product.
    fn position(
        &self,
        b: &mut KernelBuilder,
        batch: ExprId,
        row: ExprId,
        column: ExprId,
    ) -> ExprId {
        let splits = &self.body.el.splits;
        let has_batch = self
            .product
            .output
            .iter()
            .any(|(axis, _)| *axis == Axis::Batch);
        let features = match self.product.lhs.access {
            Access::Patches { .. } => Axis::Column,
            Access::Plain { .. } => Axis::Row,
        };
        let zero = b.index(0);
        let mut at: Vec<ExprId> = vec![zero; self.dims.len()];
        for axis in [Axis::Batch, Axis::Row, Axis::Column] {
            let mut dims: Vec<(usize, usize)> = (0..self.dims.len())
                .filter(|&d| self.product.output[d].0 == axis)
                .map(|d| (self.product.output[d].1, d))
                .collect();
            dims.sort_unstable();
            let number = match axis {
                Axis::Batch => batch,
                Axis::Row => row,
                Axis::Column => column,
            };
            // Without a batch dimension, the batch is the upper part of the features.
            let is_features = axis == features && !has_batch && self.product.batch > 1;
            let size = if axis == Axis::Row {
                self.product.m
            } else {
                self.product.n
            };
            let number = if is_features {
                splits.join(b, batch, number, size as i64)
            } else {
                number
            };
            let sizes: Dims = dims.iter().map(|&(_, d)| self.dims[d]).collect();
            for (&(_, d), part) in dims.iter().zip(splits.unravel(b, &sizes, number)) {
                at[d] = part;
            }
        }
        splits.position(b, &self.dims, &at)
    }

    /// Writes the sums of neighbouring columns; the first column is a multiple of the number of
    /// lanes, or there is one lane.
    pub(super) fn sums(
        &self,
        b: &mut KernelBuilder,
        (batch, row, column): (ExprId, ExprId, ExprId),
        sums: ExprId,
    ) {
        let lanes = b.ty(sums).lanes;
        let together =
            lanes == 1 || self.run.is_multiple_of(usize::from(lanes)) || self.run == self.product.n;
        if !together {
            for lane in 0..lanes {
                let sum = b.extract(sums, lane);
                let column = b.add_const(column, i64::from(lane));
                self.sums(b, (batch, row, column), sum);
            }
            return;
        }
        let position = self.position(b, batch, row, column);
        let block = if self.run.is_multiple_of(usize::from(lanes)) {
            i64::from(lanes)
        } else {
            self.run as i64
        };
        self.at(b, position, sums, block);
    }

    /// Writes the sums of neighbouring elements of the value from a row-major position on; they cross
    /// no multiple of `block`.
    pub(super) fn at(&self, b: &mut KernelBuilder, position: ExprId, sums: ExprId, block: i64) {
        let lanes = b.ty(sums).lanes;
        let el = &self.body.el;
        el.scope(|| {
            let ty = el.ty(self.product.value);
            let value = convert::convert(b, self.product.accumulator, ty, Value::One(sums));
            el.bind(self.product.value, smallvec::smallvec![value]);
            let values: Vec<Value> = self
                .body
                .result_values()
                .iter()
                .map(|&(root, part)| {
                    let index = el.splits.run_at(b, &el.dims(root), position, lanes, block);
                    el.values(b, root, &index)[part]
                })
                .collect();
            for (output, value) in self.body.outputs.iter().zip(values) {
                value::store(b, output.buf, output.shape.ty, position, lanes, value);
            }
        });
    }

    /// Writes the first `count` lanes only.
    pub(super) fn first_sums(
        &self,
        b: &mut KernelBuilder,
        (batch, row, column): (ExprId, ExprId, ExprId),
        sums: ExprId,
        count: usize,
    ) {
        let lanes = usize::from(b.ty(sums).lanes);
        if count >= lanes {
            self.sums(b, (batch, row, column), sums);
            return;
        }
        let mut done = 0;
        let mut step = lanes / 2;
        while step >= 1 {
            if count - done >= step {
                let part = if step == 1 {
                    b.extract(sums, done as u16)
                } else {
                    let picked: Vec<u16> = (done..done + step).map(|l| l as u16).collect();
                    b.shuffle(sums, sums, &picked)
                };
                let column = b.add_const(column, done as i64);
                self.sums(b, (batch, row, column), part);
                done += step;
            }
            step /= 2;
        }
    }
}
