//! Batch normalisation as reductions and elementwise ops (StableHLO sections batch_norm_training,
//! batch_norm_inference, batch_norm_grad).
//!
//! The variance is the mean square of the centred values, which does not cancel as a difference of
//! moments would. Types narrower than f32 are computed in f32.

use crate::base::Result;
use crate::hlo::BinaryOp;
use crate::hlo::Builder;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::UnaryOp;
use crate::shape::Dims;
use crate::shape::PrimitiveType;

/// The operands in the type of the computation, and the sizes they share.
struct Norm {
    ty: PrimitiveType,
    wide: PrimitiveType,
    epsilon: f64,
    feature: usize,
    dims: Dims,
    reduced: Vec<usize>,
    operands: Vec<InstrId>,
    real: Option<Real>,
}

/// Which elements count.
#[derive(Clone, Copy)]
pub(super) struct Real {
    /// A pred for each element.
    pub(super) is_real: InstrId,
    /// How many there are of each feature.
    pub(super) count: InstrId,
}

impl Norm {
    fn new(b: &mut Builder<'_>, id: InstrId) -> Result<Self> {
        let instr = &b.module.instrs[id];
        let (op, operands) = (instr.op.clone(), instr.operands.clone());
        Self::of(b, &op, &operands)
    }
    fn of(b: &mut Builder<'_>, op: &Op, operands: &[InstrId]) -> Result<Self> {
        let (epsilon, feature) = match *op {
            Op::BatchNormTraining {
                epsilon,
                feature_index,
            }
            | Op::BatchNormInference {
                epsilon,
                feature_index,
            }
            | Op::BatchNormGrad {
                epsilon,
                feature_index,
            } => (f64::from(epsilon), feature_index),
            _ => (0.0, 0),
        };
        let array = b.array(operands[0])?;
        let wide = if array.ty == PrimitiveType::F64 {
            PrimitiveType::F64
        } else {
            PrimitiveType::F32
        };
        let operands = operands.iter().map(|&x| b.convert(x, wide));
        Ok(Self {
            ty: array.ty,
            wide,
            epsilon,
            feature,
            reduced: (0..array.rank()).filter(|&d| d != feature).collect(),
            dims: array.dims,
            operands: operands.collect::<Result<_>>()?,
            real: None,
        })
    }
    /// A value a feature, at every element.
    fn spread(&self, b: &mut Builder<'_>, row: InstrId) -> Result<InstrId> {
        b.broadcast(row, &[self.feature], &self.dims)
    }
    /// The mean over everything but the features.
    fn mean(&self, b: &mut Builder<'_>, x: InstrId) -> Result<InstrId> {
        let sum = self.sum(b, x)?;
        self.over_count(b, sum)
    }
    /// The sum over everything but the features.
    fn sum(&self, b: &mut Builder<'_>, x: InstrId) -> Result<InstrId> {
        let Some(real) = self.real else {
            return b.sum(x, &self.reduced);
        };
        let nothing = b.full_like(x, 0.0)?;
        let x = b.select(real.is_real, x, nothing)?;
        b.sum(x, &self.reduced)
    }
    /// A value a feature, over the number of its elements.
    fn over_count(&self, b: &mut Builder<'_>, row: InstrId) -> Result<InstrId> {
        let Some(real) = self.real else {
            let count = self.reduced.iter().map(|&d| self.dims[d] as f64).product();
            return b.binary_scalar(BinaryOp::Divide, row, count);
        };
        let count = b.convert(real.count, self.wide)?;
        let count = b.broadcast_scalar(count, &[self.dims[self.feature]])?;
        b.divide(row, count)
    }
    fn centered(&self, b: &mut Builder<'_>, x: InstrId, mean: InstrId) -> Result<InstrId> {
        let mean = self.spread(b, mean)?;
        b.subtract(x, mean)
    }
    /// One over the deviation.
    fn inverse_deviation(&self, b: &mut Builder<'_>, variance: InstrId) -> Result<InstrId> {
        let sum = b.binary_scalar(BinaryOp::Add, variance, self.epsilon)?;
        b.unary(UnaryOp::Rsqrt, sum)
    }
    /// `(x - mean) / deviation * scale + offset`, given the centred values.
    fn normalized(
        &self,
        b: &mut Builder<'_>,
        centered: InstrId,
        variance: InstrId,
        [scale, offset]: [InstrId; 2],
    ) -> Result<InstrId> {
        let inverse = self.inverse_deviation(b, variance)?;
        let inverse = self.spread(b, inverse)?;
        let normal = b.multiply(centered, inverse)?;
        let scale = self.spread(b, scale)?;
        let scaled = b.multiply(normal, scale)?;
        let offset = self.spread(b, offset)?;
        let sum = b.add(scaled, offset)?;
        b.convert(sum, self.ty)
    }
    fn tuple(&self, b: &mut Builder<'_>, parts: [InstrId; 3]) -> Result<InstrId> {
        let parts = parts.iter().map(|&x| b.convert(x, self.ty));
        let parts: Vec<InstrId> = parts.collect::<Result<_>>()?;
        b.tuple(&parts)
    }
}

/// `(x, scale, offset)` to `(result, mean, variance)`.
pub(super) fn training(b: &mut Builder<'_>, id: InstrId) -> Result<InstrId> {
    let norm = Norm::new(b, id)?;
    trained(b, &norm)
}

/// Training or gradient over the elements that count.
pub(super) fn of_real(
    b: &mut Builder<'_>,
    op: &Op,
    operands: &[InstrId],
    real: Real,
) -> Result<InstrId> {
    let norm = Norm {
        real: Some(real),
        ..Norm::of(b, op, operands)?
    };
    match op {
        Op::BatchNormGrad { .. } => gradient(b, &norm),
        _ => trained(b, &norm),
    }
}

fn trained(b: &mut Builder<'_>, norm: &Norm) -> Result<InstrId> {
    let [x, scale, offset] = [norm.operands[0], norm.operands[1], norm.operands[2]];
    let mean = norm.mean(b, x)?;
    let centered = norm.centered(b, x, mean)?;
    let square = b.multiply(centered, centered)?;
    let variance = norm.mean(b, square)?;
    let result = norm.normalized(b, centered, variance, [scale, offset])?;
    norm.tuple(b, [result, mean, variance])
}

/// `(x, scale, offset, mean, variance)` to the result.
pub(super) fn inference(b: &mut Builder<'_>, id: InstrId) -> Result<InstrId> {
    let norm = Norm::new(b, id)?;
    let of = &norm.operands;
    let centered = norm.centered(b, of[0], of[3])?;
    norm.normalized(b, centered, of[4], [of[1], of[2]])
}

/// `(x, scale, mean, variance, grad)` to `(grad of x, grad of scale, grad of offset)`.
pub(super) fn grad(b: &mut Builder<'_>, id: InstrId) -> Result<InstrId> {
    let norm = Norm::new(b, id)?;
    gradient(b, &norm)
}

fn gradient(b: &mut Builder<'_>, norm: &Norm) -> Result<InstrId> {
    let of = norm.operands.clone();
    let (scale, out_grad) = (of[1], of[4]);
    let centered = norm.centered(b, of[0], of[2])?;
    let inverse = norm.inverse_deviation(b, of[3])?;
    let grad_offset = norm.sum(b, out_grad)?;
    let product = b.multiply(out_grad, centered)?;
    let moment = norm.sum(b, product)?;
    let grad_scale = b.multiply(moment, inverse)?;
    // grad of x = scale * inverse * (grad - mean(grad) - centered * inverse^2 * mean(grad * centered))
    let mean_grad = norm.over_count(b, grad_offset)?;
    let inverse_squared = b.multiply(inverse, inverse)?;
    let slope = b.multiply(inverse_squared, moment)?;
    let slope = norm.over_count(b, slope)?;
    let slope = norm.spread(b, slope)?;
    let bend = b.multiply(centered, slope)?;
    let mean_grad = norm.spread(b, mean_grad)?;
    let straight = b.subtract(out_grad, mean_grad)?;
    let inner = b.subtract(straight, bend)?;
    let factor = b.multiply(scale, inverse)?;
    let factor = norm.spread(b, factor)?;
    let grad_x = b.multiply(factor, inner)?;
    debug_assert!(
        b.ty(grad_x)? == norm.wide,
        "the computation stays in one type"
    );
    norm.tuple(b, [grad_x, grad_scale, grad_offset])
}
