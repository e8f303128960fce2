//! One op on dynamic arrays: the op on their bounds, and the sizes of what it gives.

use std::collections::BTreeMap;

use crate::base::Result;
use crate::hlo::Builder;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::custom_calls;
use crate::hlo::dynamic::Sizes;
use crate::hlo::dynamic::flow;
use crate::hlo::dynamic::flow::static_shape;
use crate::passes::legalize::dynamic::movement::is_prefix;
use crate::passes::legalize::dynamic::movement::keeps_order;
use crate::passes::legalize::dynamic::movement::rearranged;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// A dynamic array, taken apart.
#[derive(Clone, Debug)]
pub(super) struct Array {
    /// All elements up to the bounds.
    pub(super) data: InstrId,
    /// The sizes of dynamic dimensions, s32 scalars.
    pub(super) sizes: Vec<Option<InstrId>>,
    /// Its shape, dynamic.
    pub(super) shape: ArrayShape,
}

/// Sizes that were moved into their bounds, by what they were and the bound.
pub(super) type Clamps = BTreeMap<(InstrId, i64), InstrId>;

/// One op at work.
pub(super) struct Work<'m> {
    pub(super) b: Builder<'m>,
    /// The instruction as it was.
    id: InstrId,
    pub(super) op: Op,
    pub(super) operands: Vec<Array>,
    pub(super) formulas: &'m [Sizes],
    pub(super) clamps: &'m mut Clamps,
    /// The arrays of the result.
    pub(super) results: Vec<ArrayShape>,
}

impl<'m> Work<'m> {
    pub(super) fn new(
        b: Builder<'m>,
        id: InstrId,
        operands: Vec<Array>,
        formulas: &'m [Sizes],
        clamps: &'m mut Clamps,
    ) -> Self {
        let instr = &b.module.instrs[id];
        let mut shape = static_shape(&instr.shape).without_layout();
        flow::give(&mut shape, formulas);
        let leaves = shape.leaves();
        let results = leaves.iter().filter_map(|(_, leaf)| leaf.as_array());
        Self {
            op: instr.op.clone(),
            results: results.cloned().collect(),
            b,
            id,
            operands,
            formulas,
            clamps,
        }
    }

    /// The arrays of the result.
    pub(super) fn run(&mut self) -> Result<Vec<Array>> {
        let op = self.op.clone();
        match &op {
            Op::GetDimensionSize { dim } => {
                let size = self.size_of(0, *dim);
                return Ok(vec![self.scalar(size)]);
            }
            Op::CustomCall(call) if call.target == custom_calls::PAD_TO_STATIC => {
                return self.pad_to_static();
            }
            _ => {}
        }
        let value = self.value(&op)?;
        let parts = match self.b.shape(value) {
            Shape::Tuple(_) => self.b.elements(value)?,
            Shape::Array(_) | Shape::Token | Shape::Opaque => vec![value],
        };
        let mut arrays = Vec::new();
        for (i, data) in parts.into_iter().enumerate() {
            let Some(shape) = self.results.get(i).cloned() else {
                continue;
            };
            let mut sizes = Vec::new();
            for formula in &self.formulas[i] {
                sizes.push(match formula.is_fixed() {
                    true => None,
                    false => Some(self.size(formula)?),
                });
            }
            arrays.push(Array { data, sizes, shape });
        }
        Ok(arrays)
    }

    /// All elements of the results, up to the bounds.
    fn value(&mut self, op: &Op) -> Result<InstrId> {
        match op {
            Op::SetDimensionSize { .. } => Ok(self.operands[0].data),
            Op::CustomCall(call) if call.target == custom_calls::SLICE_TO_DYNAMIC => {
                Ok(self.operands[0].data)
            }
            Op::Reshape { .. } | Op::DynamicReshape => self.reshape(),
            Op::Binary(_)
            | Op::Compare { .. }
            | Op::Select
            | Op::Clamp
            | Op::StochasticConvert
            | Op::Map { .. } => self.elementwise(),
            Op::Pad { dims } => self.pad(dims),
            Op::Reverse { dims } => self.reverse(dims),
            Op::Concatenate { dim } => self.concatenate(*dim),
            Op::DynamicUpdateSlice => self.update(),
            Op::Scatter {
                dims,
                body,
                unique_indices,
                ..
            } => self.scatter(dims, *body, *unique_indices),
            Op::Dot { dims, .. } | Op::RaggedDot { dims, .. } => {
                let pairs = dims.lhs_contracting.iter().zip(&dims.rhs_contracting);
                let pairs = pairs.map(|(&l, &r)| (l, r)).collect();
                self.contract(pairs)
            }
            Op::Convolution {
                dims,
                feature_group_count,
                batch_group_count,
                ..
            } => {
                let plain = *feature_group_count == 1 && *batch_group_count == 1;
                self.convolution(dims, plain)
            }
            Op::Reduce { dims, body } => self.reduce(dims, *body),
            Op::ReduceWindow { window, body } => self.reduce_window(window, *body),
            Op::SelectAndScatter {
                window,
                select,
                scatter,
            } => self.select_and_scatter(window, *select, *scatter),
            Op::BatchNormTraining { .. } | Op::BatchNormGrad { .. } => self.batch_norm(),
            Op::Sort {
                dim,
                body,
                is_stable,
            } => self.sort(*dim, *body, *is_stable),
            Op::TopK { k, largest, .. } => self.top_k(*k, *largest),
            Op::CustomCall(call) if call.target == "TopK" => {
                let k = self.results[0].dims.last().copied().unwrap_or(0);
                self.top_k(k, true)
            }
            _ => self.on_data(),
        }
    }

    /// The op as it is, on the data of its operands.
    pub(super) fn on_data(&mut self) -> Result<InstrId> {
        let data = self.operands.iter().map(|o| o.data).collect();
        Ok(self.on(self.op.clone(), data))
    }

    /// An op that gives what this one does, up to the bounds.
    pub(super) fn on(&mut self, op: Op, operands: Vec<InstrId>) -> InstrId {
        let mut instr = self.b.module.instrs[self.id].clone();
        instr.op = op;
        instr.operands = operands.into();
        instr.shape = static_shape(&instr.shape);
        self.b.push_instr(instr)
    }

    fn scalar(&mut self, data: InstrId) -> Array {
        Array {
            data,
            sizes: Vec::new(),
            shape: ArrayShape::scalar(PrimitiveType::S32),
        }
    }

    /// The real elements with zeros beyond, and every size.
    fn pad_to_static(&mut self) -> Result<Vec<Array>> {
        let dims: Vec<usize> = (0..self.operands[0].shape.rank()).collect();
        let zero = self.b.constant_int(self.operands[0].shape.ty, 0);
        let mut first = self.operands[0].clone();
        first.data = self.filled(0, &dims, zero)?;
        let mut results = vec![first];
        for d in dims {
            let size = self.size_of(0, d);
            results.push(self.scalar(size));
        }
        Ok(results)
    }

    /// The real elements in row-major order. Where they come first before and after there is nothing
    /// to move.
    fn reshape(&mut self) -> Result<InstrId> {
        let result = self.results[0].clone();
        let mut sizes = Vec::new();
        for formula in &self.formulas[0] {
            sizes.push(match formula.is_fixed() {
                true => None,
                false => Some(self.size(formula)?),
            });
        }
        let operand = self.operands[0].clone();
        let whole =
            is_prefix(&operand.shape.dims, &operand.sizes) && is_prefix(&result.dims, &sizes);
        let stays = whole || keeps_order(&self.op, &operand, &result, &sizes);
        if stays || result.element_count() == 0 {
            return self.b.reshape(operand.data, &result.dims);
        }
        rearranged(
            &mut self.b,
            operand.data,
            (&operand.shape.dims, &operand.sizes),
            (&result.dims, &sizes),
        )
    }

    /// An operand whose size is one where others have more is repeated.
    fn elementwise(&mut self) -> Result<InstrId> {
        let result = self.results[0].clone();
        let mut operands: Vec<InstrId> = self.operands.iter().map(|o| o.data).collect();
        for d in 0..result.rank() {
            let whole = |o: &&Array| o.shape.rank() == result.rank();
            let sizes = self
                .operands
                .iter()
                .filter(whole)
                .filter_map(|o| o.sizes[d]);
            let mut sizes: Vec<InstrId> = sizes.collect();
            sizes.sort_unstable();
            sizes.dedup();
            if sizes.len() < 2 || result.dims[d] < 2 {
                continue;
            }
            let joined = self.size(&self.formulas[0][d])?;
            for (i, data) in operands.iter_mut().enumerate() {
                let operand = &self.operands[i];
                if let Some(&Some(size)) = operand.sizes.get(d) {
                    *data = self.repeated(*data, d, size, joined)?;
                }
            }
        }
        Ok(self.on(self.op.clone(), operands))
    }
}
