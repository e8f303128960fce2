//! The free generators: uniform and normal numbers from Philox blocks, whose counter is the device's
//! generator state. Only the distribution is specified.

use crate::base::Id;
use crate::base::Result;
use crate::hlo::BinaryOp;
use crate::hlo::Builder;
use crate::hlo::ComparisonDirection;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::RngDistribution;
use crate::hlo::UnaryOp;
use crate::passes::legalize::rng_bit_generator::philox_bits;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;

/// The first key of the generators' blocks; any number will do.
const KEY: i128 = 0x243f_6a88_85a3_08d3;

/// `rng(a, b)`: uniform in `[a, b)`, or normal with mean `a` and deviation `b`.
pub(super) fn expand(b: &mut Builder<'_>, id: InstrId) -> Result<InstrId> {
    let instr = &b.module.instrs[id];
    let distribution = match instr.op {
        Op::Rng { distribution } => distribution,
        _ => RngDistribution::Uniform,
    };
    let operands = instr.operands.clone();
    let shape = b.array(id)?;
    let parameter = |b: &mut Builder<'_>, i: usize, ty| {
        let scalar = b.convert(operands[i], ty)?;
        b.broadcast_scalar(scalar, &shape.dims)
    };
    if shape.ty.is_integer() || shape.ty == PrimitiveType::Pred {
        let (low, high) = (
            parameter(b, 0, PrimitiveType::S64)?,
            parameter(b, 1, PrimitiveType::S64)?,
        );
        return whole_numbers(b, &shape, low, high);
    }
    let part = shape.ty.real_part();
    let wide = if part == PrimitiveType::F64 {
        part
    } else {
        PrimitiveType::F32
    };
    if shape.ty.is_complex() {
        // Two independent parts, each with half of the variance.
        let (mean, deviation) = (parameter(b, 0, shape.ty)?, parameter(b, 1, shape.ty)?);
        let half = b.full(part, &shape.dims, std::f64::consts::FRAC_1_SQRT_2)?;
        let u = normal(b, &shape, wide)?;
        let v = normal(b, &shape, wide)?;
        let (u, v) = (b.multiply(u, half)?, b.multiply(v, half)?);
        let noise = b.binary(BinaryOp::Complex, u, v)?;
        let noise = b.multiply(noise, deviation)?;
        return b.add(noise, mean);
    }
    let (first, second) = (parameter(b, 0, wide)?, parameter(b, 1, wide)?);
    match distribution {
        RngDistribution::Uniform => {
            let unit = unit(b, &shape, wide)?;
            let width = b.subtract(second, first)?;
            let scaled = b.multiply(unit, width)?;
            let sum = b.add(scaled, first)?;
            // Rounding must not reach the open end.
            let sum = b.convert(sum, shape.ty)?;
            let (low, high) = (parameter(b, 0, shape.ty)?, parameter(b, 1, shape.ty)?);
            let inside = b.compare(ComparisonDirection::Lt, sum, high)?;
            b.select(inside, sum, low)
        }
        RngDistribution::Normal => {
            let noise = normal(b, &shape, wide)?;
            let scaled = b.multiply(noise, second)?;
            let sum = b.add(scaled, first)?;
            b.convert(sum, shape.ty)
        }
    }
}

/// Random words of `ty` (u32 or u64), over the dimensions of `shape`.
///
/// Each use of the state may be given one of its own, and all start alike, so each has another key.
fn words(b: &mut Builder<'_>, shape: &ArrayShape, ty: PrimitiveType) -> Result<InstrId> {
    let shape = ArrayShape::new(ty, shape.dims.iter().copied());
    let per_block = if ty == PrimitiveType::U64 { 2 } else { 4 };
    let delta = shape.element_count().div_ceil(per_block).max(1) as i64;
    let counter = b.op(Op::RngGetAndUpdateState { delta }, &[])?;
    let key = KEY + counter.index() as i128;
    let key = b.constant_ints(PrimitiveType::U64, &[key]);
    let state = b.concatenate(&[key, counter], 0)?;
    Ok(philox_bits(b, state, &shape)?.0)
}

/// Uniform in `[0, 1)`: the leading bits of a word over their range.
fn unit(b: &mut Builder<'_>, shape: &ArrayShape, ty: PrimitiveType) -> Result<InstrId> {
    let (word, drop, bits) = if ty == PrimitiveType::F64 {
        (PrimitiveType::U64, 11.0, 53)
    } else {
        (PrimitiveType::U32, 8.0, 24)
    };
    let words = words(b, shape, word)?;
    let leading = b.binary_scalar(BinaryOp::ShiftRightLogical, words, drop)?;
    let whole = b.convert(leading, ty)?;
    b.binary_scalar(BinaryOp::Multiply, whole, 0.5f64.powi(bits))
}

/// Standard normal, after G. E. P. Box and M. E. Muller (1958).
fn normal(b: &mut Builder<'_>, shape: &ArrayShape, ty: PrimitiveType) -> Result<InstrId> {
    let (u, v) = (unit(b, shape, ty)?, unit(b, shape, ty)?);
    let one = b.full(ty, &shape.dims, 1.0)?;
    let above_zero = b.subtract(one, u)?;
    let log = b.unary(UnaryOp::Log, above_zero)?;
    let square = b.binary_scalar(BinaryOp::Multiply, log, -2.0)?;
    let radius = b.unary(UnaryOp::Sqrt, square)?;
    let angle = b.binary_scalar(BinaryOp::Multiply, v, std::f64::consts::TAU)?;
    let cosine = b.unary(UnaryOp::Cos, angle)?;
    b.multiply(radius, cosine)
}

/// Integers in `[low, high)`, both s64 arrays.
fn whole_numbers(
    b: &mut Builder<'_>,
    shape: &ArrayShape,
    low: InstrId,
    high: InstrId,
) -> Result<InstrId> {
    let words = words(b, shape, PrimitiveType::U64)?;
    let range = b.subtract(high, low)?;
    let range = b.convert(range, PrimitiveType::U64)?;
    let rest = b.binary(BinaryOp::Remainder, words, range)?;
    let rest = b.convert(rest, PrimitiveType::S64)?;
    let value = b.add(low, rest)?;
    b.convert(value, shape.ty)
}
