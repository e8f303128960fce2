//! Contractions, reductions and windows over dynamic arrays.

use crate::base::Result;
use crate::hlo::BinaryOp;
use crate::hlo::CompId;
use crate::hlo::ComparisonDirection;
use crate::hlo::ConvDims;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::ScatterDims;
use crate::hlo::WindowDim;
use crate::hlo::dynamic::window_size;
use crate::passes::legalize::batch_norm;
use crate::passes::legalize::batch_norm::Real;
use crate::passes::legalize::dynamic::masked::real;
use crate::passes::legalize::dynamic::work::Work;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

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

    /// Where no window sees what is not real, what belongs to no real window adds nothing. Otherwise
    /// places are found first and scattered to afterwards.
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
        let seen = |&(d, _): &(usize, InstrId)| {
            window[d] != WindowDim::default() && window[d].padding_high > 0
        };
        let Some(nothing) = self.neutral(scatter, ty).filter(|_| !open.iter().any(seen)) else {
            let chosen = self.chosen(window, select, &open, &source_sizes)?;
            return self.scatter_to(chosen, scatter);
        };
        let source = self.fill(self.operands[1].data, &source_sizes, nothing)?;
        let (operand, init) = (self.operands[0].data, self.operands[2].data);
        Ok(self.on(self.op.clone(), vec![operand, source, init]))
    }

    /// The position in row-major order that each window chooses among what is real, or -1: `s64` of
    /// the source's dimensions.
    fn chosen(
        &mut self,
        window: &[WindowDim],
        select: CompId,
        open: &[(usize, InstrId)],
        source_sizes: &[(usize, InstrId)],
    ) -> Result<InstrId> {
        let shape = self.operands[0].shape.clone();
        let at = self
            .b
            .iota(PrimitiveType::S64, &[shape.element_count()], 0)?;
        let at = self.b.reshape(at, &shape.dims)?;
        let nowhere = self.b.constant_int(PrimitiveType::S64, -1);
        let at = self.fill(at, open, nowhere)?;
        let any = self.b.constant_int(shape.ty, 0);
        let better = self.better(select, shape.ty)?;
        let op = Op::ReduceWindow {
            window: window.into(),
            body: better,
        };
        let found = self.b.op(op, &[self.operands[0].data, at, any, nowhere])?;
        let place = self.b.gte(found, 1)?;
        self.fill(place, source_sizes, nowhere)
    }

    /// A reducer of elements and their positions: which of two `select` keeps, positions below zero
    /// losing.
    fn better(&mut self, select: CompId, ty: PrimitiveType) -> Result<CompId> {
        let (element, position) = (Shape::scalar(ty), Shape::scalar(PrimitiveType::S64));
        let params = [element.clone(), position.clone(), element, position];
        let name = format!("better.{}", self.b.module.comps.len());
        self.b.computation(name, &params, |b, p| {
            let zero = b.constant_int(PrimitiveType::S64, 0);
            let kept = b.call(select, &[p[0], p[2]])?;
            let alone = b.compare(ComparisonDirection::Lt, p[3], zero)?;
            let kept = b.binary(BinaryOp::Or, kept, alone)?;
            let is_real = b.compare(ComparisonDirection::Ge, p[1], zero)?;
            let kept = b.binary(BinaryOp::And, kept, is_real)?;
            let parts = [b.select(kept, p[0], p[2])?, b.select(kept, p[1], p[3])?];
            b.tuple(&parts)
        })
    }

    /// The elements of the source scattered over initial values, to positions in row-major order.
    fn scatter_to(&mut self, positions: InstrId, body: CompId) -> Result<InstrId> {
        let shape = self.operands[0].shape.clone();
        let count = self.operands[1].shape.element_count();
        let start = self
            .b
            .broadcast_scalar(self.operands[2].data, &[shape.element_count()])?;
        let positions = self.b.reshape(positions, &[count])?;
        let source = self.b.reshape(self.operands[1].data, &[count])?;
        let op = Op::Scatter {
            dims: ScatterDims {
                inserted_window_dims: Dims::from_slice(&[0]),
                scatter_dims_to_operand_dims: Dims::from_slice(&[0]),
                index_vector_dim: 1,
                ..ScatterDims::default()
            },
            body,
            indices_are_sorted: false,
            unique_indices: false,
        };
        let scattered = self.b.op(op, &[start, positions, source])?;
        self.b.reshape(scattered, &shape.dims)
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
