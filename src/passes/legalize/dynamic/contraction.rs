//! Contractions, reductions and windows over dynamic arrays.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::hlo::CompId;
use crate::hlo::ComparisonDirection;
use crate::hlo::ConvDims;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::WindowDim;
use crate::hlo::dynamic::window_size;
use crate::passes::legalize::batch_norm;
use crate::passes::legalize::batch_norm::Real;
use crate::passes::legalize::dynamic::masked::real;
use crate::passes::legalize::dynamic::work::Work;
use crate::shape::PrimitiveType;

impl Work<'_> {
    /// Both operands are zero where either is not real in these pairs of dimensions.
    pub(super) fn contract(&mut self, pairs: Vec<(usize, usize)>) -> Result<InstrId> {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for (l, r) in pairs {
            if let Some(size) = self.agreed(&[(0, l), (1, r)])? {
                left.push((l, size));
                right.push((r, size));
            }
        }
        let mut operands: Vec<InstrId> = self.operands.iter().map(|o| o.data).collect();
        for (i, sizes) in [left, right].iter().enumerate() {
            let zero = self.b.constant_int(self.operands[i].shape.ty, 0);
            operands[i] = self.fill(operands[i], sizes, zero)?;
        }
        Ok(self.on(self.op.clone(), operands))
    }

    /// The input is zero beyond what is real of its window and features.
    pub(super) fn convolution(&mut self, dims: &ConvDims, plain: bool) -> Result<InstrId> {
        let mut operands: Vec<InstrId> = self.operands.iter().map(|o| o.data).collect();
        let mut input = self.open_sizes(0, &dims.input_spatial);
        if plain {
            let (i, k) = (dims.input_feature, dims.kernel_input_feature);
            if let Some(size) = self.agreed(&[(0, i), (1, k)])? {
                input.push((i, size));
                let zero = self.b.constant_int(self.operands[1].shape.ty, 0);
                operands[1] = self.fill(operands[1], &[(k, size)], zero)?;
            }
        }
        let zero = self.b.constant_int(self.operands[0].shape.ty, 0);
        operands[0] = self.fill(operands[0], &input, zero)?;
        Ok(self.on(self.op.clone(), operands))
    }

    /// The sizes of dimensions in which all inputs of a reduction are real.
    fn reduced_sizes(&mut self, dims: &[usize]) -> Result<Vec<(usize, InstrId)>> {
        let inputs = self.operands.len() / 2;
        let mut open = Vec::new();
        for &d in dims {
            let meet: Vec<(usize, usize)> = (0..inputs).map(|i| (i, d)).collect();
            open.extend(self.agreed(&meet)?.map(|size| (d, size)));
        }
        Ok(open)
    }

    pub(super) fn reduce(&mut self, dims: &[usize], body: CompId) -> Result<InstrId> {
        let open = self.reduced_sizes(dims)?;
        let bounds = &self.operands[0].shape.dims;
        if dims.iter().all(|&d| bounds[d] == 1) {
            return self.uncombined(&open);
        }
        let with = |body| Op::Reduce {
            dims: dims.into(),
            body,
        };
        self.real_only(&open, body, &with)
    }

    /// A reduction that combines nothing gives the element, or the initial value where there is none.
    fn uncombined(&mut self, open: &[(usize, InstrId)]) -> Result<InstrId> {
        let mut operands: Vec<InstrId> = self.operands.iter().map(|o| o.data).collect();
        let n = operands.len() / 2;
        for i in 0..n {
            let ty = self.operands[i].shape.ty;
            let init = self.b.convert(operands[n + i], ty)?;
            operands[i] = self.fill(operands[i], open, init)?;
        }
        Ok(self.on(self.op.clone(), operands))
    }

    pub(super) fn reduce_window(&mut self, window: &[WindowDim], body: CompId) -> Result<InstrId> {
        let seen = (0..window.len()).filter(|&d| window[d] != WindowDim::default());
        let seen: Vec<usize> = seen.collect();
        let open = self.reduced_sizes(&seen)?;
        let with = |body| Op::ReduceWindow {
            window: window.into(),
            body,
        };
        self.real_only(&open, body, &with)
    }

    /// A reduction of what is real. What changes nothing stands for the rest, and where there is no
    /// such value, accumulators and elements say whether they are real.
    fn real_only(
        &mut self,
        open: &[(usize, InstrId)],
        body: CompId,
        with: &dyn Fn(CompId) -> Op,
    ) -> Result<InstrId> {
        if open.is_empty() {
            return self.on_data();
        }
        let n = self.operands.len() / 2;
        let mut operands: Vec<InstrId> = self.operands.iter().map(|o| o.data).collect();
        if n == 1
            && let Some(neutral) = self.neutral(body, self.operands[0].shape.ty)
        {
            operands[0] = self.fill(operands[0], open, neutral)?;
            return Ok(self.on(with(body), operands));
        }
        let dims = self.operands[0].shape.dims.clone();
        let Some(is_real) = real(&mut self.b, &dims, open)? else {
            return self.on_data();
        };
        let yes = self.b.constant_int(PrimitiveType::Pred, 1);
        operands.insert(n, is_real);
        operands.push(yes);
        let body = self.guarded(body)?;
        let reduced = self.b.op(with(body), &operands)?;
        let mut parts = self.b.elements(reduced)?;
        parts.truncate(n);
        match parts.as_slice() {
            [only] => Ok(*only),
            _ => self.b.tuple(&parts),
        }
    }

    /// What is not real loses every comparison, and what belongs to no real window adds nothing.
    pub(super) fn select_and_scatter(
        &mut self,
        window: &[WindowDim],
        select: CompId,
        scatter: CompId,
    ) -> Result<InstrId> {
        let ty = self.operands[0].shape.ty;
        let all: Vec<usize> = (0..window.len()).collect();
        let open = self.open_sizes(0, &all);
        let mut source_sizes = Vec::new();
        for &(d, _) in &open {
            let formula = window_size(&self.operands[0].shape, d, &window[d]);
            source_sizes.push((d, self.size(&formula)?));
        }
        let reaches = |&(d, _): &(usize, InstrId)| {
            window[d] != WindowDim::default() && window[d].padding_high > 0
        };
        let seen: Vec<(usize, InstrId)> = open.iter().copied().filter(reaches).collect();
        let mut operand = self.operands[0].data;
        if !seen.is_empty() {
            let root = &self.b.module.instrs[self.b.module.comps[select].root];
            let loser = match root.op {
                Op::Compare { direction, .. } if !ty.is_complex() => Some(direction),
                _ => None,
            };
            let loser = match loser {
                Some(ComparisonDirection::Ge | ComparisonDirection::Gt) => self.b.lowest(ty),
                Some(ComparisonDirection::Le | ComparisonDirection::Lt) => self.b.highest(ty),
                _ => {
                    let message = "`select-and-scatter` over a dynamic dimension with padding selects by something else than an order";
                    return Err(Diagnostic::unsupported(codes::COMPILE_UNSUPPORTED, message));
                }
            };
            operand = self.fill(operand, &seen, loser)?;
        }
        let init = self.operands[2].data;
        let Some(nothing) = self.neutral(scatter, ty) else {
            let message = "`select-and-scatter` over a dynamic dimension scatters by something else than one op";
            return Err(Diagnostic::unsupported(codes::COMPILE_UNSUPPORTED, message));
        };
        let source = self.fill(self.operands[1].data, &source_sizes, nothing)?;
        Ok(self.on(self.op.clone(), vec![operand, source, init]))
    }

    /// Batch normalization counts what is real.
    pub(super) fn batch_norm(&mut self) -> Result<InstrId> {
        let (Op::BatchNormTraining { feature_index, .. } | Op::BatchNormGrad { feature_index, .. }) =
            self.op
        else {
            return self.on_data();
        };
        let shape = self.operands[0].shape.clone();
        let rank = shape.rank();
        let mut open = Vec::new();
        let mut count = self.b.constant_int(PrimitiveType::S64, 1);
        for d in (0..rank).filter(|&d| d != feature_index) {
            let mut meet = vec![(0, d)];
            if self.operands.len() == 5 {
                meet.push((4, d));
            }
            let size = self.agreed(&meet)?;
            open.extend(size.map(|size| (d, size)));
            let size = match size {
                Some(size) => self.b.convert(size, PrimitiveType::S64)?,
                None => self
                    .b
                    .constant_int(PrimitiveType::S64, shape.dims[d] as i128),
            };
            count = self.b.multiply(count, size)?;
        }
        let Some(is_real) = real(&mut self.b, &shape.dims, &open)? else {
            return self.on_data();
        };
        let real = Real { is_real, count };
        let data: Vec<InstrId> = self.operands.iter().map(|o| o.data).collect();
        batch_norm::of_real(&mut self.b, &self.op, &data, real)
    }
}
