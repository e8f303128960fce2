//! Quantized types: integers that stand for real numbers.
//!
//! An array of such a type is an array of the stored integers. Ops follow StableHLO's lowering to
//! integer math: sums and dots work on the integers and bring scales and zero points in afterwards,
//! ops that only move elements stay what they are, and other elementwise ops compute in f32 between
//! a dequantization and a quantization.

use crate::base::Result;
use crate::front::stablehlo::import::Converter;
use crate::hlo::BinaryOp;
use crate::hlo::DotDims;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::PadDim;
use crate::hlo::UnaryOp;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::literal::Number;
use crate::literal::number;
use crate::mlir::FloatKind;
use crate::mlir::OpRef;
use crate::mlir::QuantizedScheme;
use crate::mlir::QuantizedType;
use crate::mlir::Type;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// The quantized element type of a type, when it has one.
fn quantized(ty: &Type) -> Option<&QuantizedType> {
    match ty.element() {
        Type::Quantized(of) => Some(of),
        _ => None,
    }
}

/// Whether an op has an operand or result of a quantized type.
pub fn is_quantized(op: OpRef<'_>) -> bool {
    let values = op.operands.iter().chain(&op.results);
    values
        .copied()
        .any(|v| quantized(op.module.ty(v)).is_some())
}

/// The only scale and zero point, when there is one for all.
fn per_tensor(of: &QuantizedType) -> Option<(f64, i64)> {
    match (&of.scheme, &*of.scales, &*of.zero_points) {
        (QuantizedScheme::PerTensor, &[scale], &[zero]) => Some((f64::from_bits(scale), zero)),
        _ => None,
    }
}

/// Whether an op does the same to any integers: it moves or chooses them.
fn keeps_integers(name: &str) -> bool {
    matches!(
        name,
        "bitcast_convert"
            | "broadcast_in_dim"
            | "composite"
            | "concatenate"
            | "constant"
            | "dynamic_reshape"
            | "dynamic_slice"
            | "dynamic_update_slice"
            | "gather"
            | "maximum"
            | "minimum"
            | "pad"
            | "reduce_window"
            | "reshape"
            | "reverse"
            | "select"
            | "slice"
            | "transpose"
            | "get_dimension_size"
            | "dynamic_broadcast_in_dim"
            | "dynamic_gather"
            | "dynamic_pad"
            | "real_dynamic_slice"
            | "sort"
            | "reduce"
            | "scatter"
            | "if"
            | "case"
            | "while"
            | "optimization_barrier"
            | "tuple"
            | "get_tuple_element"
            | "custom_call"
    )
}

impl<'m> Converter<'m> {
    /// An op with a quantized operand or result.
    pub(super) fn quantized_op(&mut self, op: OpRef<'m>, name: &str) -> Result<()> {
        match name {
            "uniform_quantize" => self.uniform_quantize(op),
            "uniform_dequantize" => {
                let [x] = self.exactly(op)?;
                let of = self.quantized_type(op, op.operand_type(0)?)?;
                let id = self.dequantized(op, x, of)?;
                self.set_one(op, id)
            }
            "add" if self.quantized_add(op)? => Ok(()),
            "dot" | "dot_general" | "convolution" if self.quantized_dot(op, name)? => Ok(()),
            _ if keeps_integers(name) && self.same_scales(op, name) => {
                self.plain_stablehlo(op, name)
            }
            _ => self.through_floats(op, name),
        }
    }

    /// Whether maxima and minima compare integers of one scale.
    fn same_scales(&self, op: OpRef<'m>, name: &str) -> bool {
        if !matches!(
            name,
            "maximum" | "minimum" | "concatenate" | "select" | "pad"
        ) {
            return true;
        }
        let values = op.operands.iter().chain(&op.results);
        let mut types = values.filter_map(|&v| quantized(self.source.ty(v)));
        match types.next() {
            Some(first) => types.all(|ty| ty == first),
            None => true,
        }
    }

    fn quantized_type(&self, op: OpRef<'m>, ty: &'m Type) -> Result<&'m QuantizedType> {
        let of = quantized(ty).ok_or_else(|| op.wrong("a type that is not quantized"))?;
        if of.expressed == FloatKind::F32 {
            return Ok(of);
        }
        let name = of.expressed.name();
        Err(op.unsupported(format!("quantized numbers that stand for {name}")))
    }

    fn storage(&self, op: OpRef<'m>, of: &QuantizedType) -> Result<PrimitiveType> {
        let element = Type::Quantized(of.clone().into());
        crate::front::stablehlo::types::element_type(&element).map_err(|what| op.unsupported(what))
    }

    /// A number for each scale, spread over an array of these sizes.
    fn spread(
        &mut self,
        op: OpRef<'m>,
        of: &QuantizedType,
        ty: PrimitiveType,
        numbers: &[Number],
        dims: &[usize],
    ) -> Result<InstrId> {
        let width = ty.byte_width();
        let mut bytes = vec![0; width * numbers.len()];
        for (out, &value) in bytes.chunks_exact_mut(width).zip(numbers) {
            number::encode(ty, value, out);
        }
        let broken = || op.wrong("scales that do not fit the array");
        let (sizes, blocks): (Vec<usize>, Vec<usize>) = match &of.scheme {
            QuantizedScheme::PerTensor => (Vec::new(), Vec::new()),
            QuantizedScheme::PerAxis(dim) => {
                let dim = usize::try_from(*dim).map_err(|_| broken())?;
                let line = self.vector(ty, numbers.len(), bytes);
                if dims.get(dim) != Some(&numbers.len()) {
                    return Err(broken());
                }
                return self.b().broadcast(line, &[dim], dims);
            }
            QuantizedScheme::SubChannel { shape, .. } => {
                let sizes: Option<Vec<usize>> =
                    shape.iter().map(|&d| usize::try_from(d).ok()).collect();
                let sizes = sizes.filter(|s| s.len() == dims.len()).ok_or_else(broken)?;
                let whole = |d: usize| sizes[d] != 0 && dims[d].is_multiple_of(sizes[d]);
                if !(0..dims.len()).all(whole) {
                    return Err(broken());
                }
                let blocks = (0..dims.len()).map(|d| dims[d] / sizes[d]).collect();
                (sizes, blocks)
            }
        };
        let count: usize = sizes.iter().product();
        if count != numbers.len() {
            return Err(broken());
        }
        let literal = ArrayLiteral::new(ArrayShape::new(ty, sizes.iter().copied()), bytes);
        let few = self.b().constant(Literal::Array(literal));
        if sizes.is_empty() {
            return self.b().broadcast_scalar(few, dims);
        }
        let pairs = sizes.iter().zip(&blocks).flat_map(|(&s, &b)| [s, b]);
        let apart: Vec<usize> = pairs.collect();
        let mapping: Vec<usize> = (0..sizes.len()).map(|d| 2 * d).collect();
        let wide = self.b().broadcast(few, &mapping, &apart)?;
        self.b().reshape(wide, dims)
    }

    fn vector(&mut self, ty: PrimitiveType, count: usize, bytes: Vec<u8>) -> InstrId {
        let literal = ArrayLiteral::new(ArrayShape::new(ty, [count]), bytes);
        self.b().constant(Literal::Array(literal))
    }

    fn scales(&mut self, op: OpRef<'m>, of: &QuantizedType, dims: &[usize]) -> Result<InstrId> {
        let numbers = of.scales.iter().map(|&s| Number::Float(f64::from_bits(s)));
        let numbers: Vec<Number> = numbers.collect();
        self.spread(op, of, PrimitiveType::F32, &numbers, dims)
    }

    fn zeros(
        &mut self,
        op: OpRef<'m>,
        of: &QuantizedType,
        ty: PrimitiveType,
        dims: &[usize],
    ) -> Result<InstrId> {
        let number = |&z: &i64| match ty.is_float() {
            true => Number::Float(z as f64),
            false => Number::Int(z.into()),
        };
        let numbers: Vec<Number> = of.zero_points.iter().map(number).collect();
        self.spread(op, of, ty, &numbers, dims)
    }

    /// Brought to the range of the stored integers, rounded, and stored.
    fn stored(&mut self, x: InstrId, of: &QuantizedType, ty: PrimitiveType) -> Result<InstrId> {
        let low = self
            .b()
            .constant_scalar(PrimitiveType::F32, of.storage_min as f64);
        let high = self
            .b()
            .constant_scalar(PrimitiveType::F32, of.storage_max as f64);
        let inside = self.b().clamp(low, x, high)?;
        let whole = self.b().unary(UnaryOp::RoundNearestEven, inside)?;
        self.b().convert(whole, ty)
    }

    fn quantized_from(&mut self, op: OpRef<'m>, x: InstrId, of: &QuantizedType) -> Result<InstrId> {
        let array = self.b().array(x)?;
        if array.ty != PrimitiveType::F32 {
            return Err(op.unsupported(format!("the quantization of {}", array.ty)));
        }
        let ty = self.storage(op, of)?;
        let scales = self.scales(op, of, &array.dims)?;
        let zeros = self.zeros(op, of, PrimitiveType::F32, &array.dims)?;
        let scaled = self.b().divide(x, scales)?;
        let moved = self.b().add(scaled, zeros)?;
        self.stored(moved, of, ty)
    }

    fn dequantized(&mut self, op: OpRef<'m>, x: InstrId, of: &QuantizedType) -> Result<InstrId> {
        let dims = self.b().dims(x)?;
        let wide = self.b().convert(x, PrimitiveType::S32)?;
        let zeros = self.zeros(op, of, PrimitiveType::S32, &dims)?;
        let moved = self.b().subtract(wide, zeros)?;
        let float = self.b().convert(moved, PrimitiveType::F32)?;
        let scales = self.scales(op, of, &dims)?;
        self.b().multiply(float, scales)
    }

    fn uniform_quantize(&mut self, op: OpRef<'m>) -> Result<()> {
        let [x] = self.exactly(op)?;
        let to = self.quantized_type(op, op.result_type(0)?)?;
        let id = match quantized(op.operand_type(0)?) {
            None => self.quantized_from(op, x, to)?,
            Some(_) => {
                let from = self.quantized_type(op, op.operand_type(0)?)?;
                let ty = self.storage(op, to)?;
                self.requantized(op, x, from, to, ty)?
            }
        };
        self.set_one(op, id)
    }

    /// Integers of one scale as integers of another, in the type `ty`.
    fn requantized(
        &mut self,
        op: OpRef<'m>,
        x: InstrId,
        from: &QuantizedType,
        to: &QuantizedType,
        ty: PrimitiveType,
    ) -> Result<InstrId> {
        if from == to {
            return self.b().convert(x, ty);
        }
        let axis = |of: &QuantizedType| match of.scheme {
            QuantizedScheme::PerAxis(axis) => Ok(Some(axis)),
            QuantizedScheme::PerTensor => Ok(None),
            QuantizedScheme::SubChannel { .. } => Err(op.unsupported("a change of blocks")),
        };
        let shared = match (axis(from)?, axis(to)?) {
            (Some(a), Some(b)) if a != b => {
                return Err(op.unsupported("a change of the quantized axis"));
            }
            (Some(_), _) => from,
            (None, _) => to,
        };
        let count = from.scales.len().max(to.scales.len());
        let at = |of: &QuantizedType, i: usize| {
            let i = if of.scales.len() == 1 { 0 } else { i };
            let scale = of.scales.get(i).map(|&s| f64::from_bits(s));
            Some((scale?, *of.zero_points.get(i)? as f64))
        };
        let mut scales = Vec::with_capacity(count);
        let mut zeros = Vec::with_capacity(count);
        for i in 0..count {
            let (Some((a, za)), Some((b, zb))) = (at(from, i), at(to, i)) else {
                return Err(op.wrong("scales of different numbers"));
            };
            scales.push(Number::Float(a / b));
            zeros.push(Number::Float(zb - za * (a / b)));
        }
        let dims = self.b().dims(x)?;
        let mut value = self.b().convert(x, PrimitiveType::F32)?;
        let scale = self.spread(op, shared, PrimitiveType::F32, &scales, &dims)?;
        value = self.b().multiply(value, scale)?;
        if zeros.iter().any(|z| *z != Number::Float(0.0)) {
            let zero = self.spread(op, shared, PrimitiveType::F32, &zeros, &dims)?;
            value = self.b().add(value, zero)?;
        }
        if ty.bit_width() < 32 {
            return self.stored(value, to, ty);
        }
        let whole = self.b().unary(UnaryOp::RoundNearestEven, value)?;
        self.b().convert(whole, ty)
    }

    /// A sum of integers brought to the scale of the result; whether it can be done so.
    fn quantized_add(&mut self, op: OpRef<'m>) -> Result<bool> {
        let types = (
            quantized(op.operand_type(0)?),
            quantized(op.operand_type(1)?),
            quantized(op.result_type(0)?),
        );
        let (Some(lhs), Some(rhs), Some(out)) = types else {
            return Ok(false);
        };
        let [x, y] = self.exactly(op)?;
        let dims = self.b().dims(x)?;
        let ty = self.storage(op, out)?;
        let s32 = PrimitiveType::S32;
        let Some((_, zero)) = per_tensor(out) else {
            if lhs != rhs || lhs != out || ty != s32 {
                return Ok(false);
            }
            let sum = self.b().add(x, y)?;
            let zeros = self.zeros(op, out, s32, &dims)?;
            let id = self.b().subtract(sum, zeros)?;
            self.set_one(op, id)?;
            return Ok(true);
        };
        if per_tensor(lhs).is_none() || per_tensor(rhs).is_none() {
            return Ok(false);
        }
        let x = self.requantized(op, x, lhs, out, s32)?;
        let y = self.requantized(op, y, rhs, out, s32)?;
        let sum = self.b().add(x, y)?;
        let zero = self.b().full(s32, &dims, zero as f64)?;
        let mut id = self.b().subtract(sum, zero)?;
        if ty != s32 {
            let low = self.b().constant_int(s32, out.storage_min.into());
            let high = self.b().constant_int(s32, out.storage_max.into());
            id = self.b().clamp(low, id, high)?;
            id = self.b().convert(id, ty)?;
        }
        self.set_one(op, id)?;
        Ok(true)
    }

    /// A dot or convolution of integers, or of floats by dequantized weights; whether it can be done
    /// so.
    fn quantized_dot(&mut self, op: OpRef<'m>, name: &str) -> Result<bool> {
        let lhs = quantized(op.operand_type(0)?);
        let rhs = quantized(op.operand_type(1)?);
        let out = quantized(op.result_type(0)?);
        match (lhs, rhs, out) {
            (None, Some(_), None) => {
                let of = self.quantized_type(op, op.operand_type(1)?)?;
                let weights = self.operand(op, 1)?;
                let kept = self.b().op(Op::OptimizationBarrier, &[weights])?;
                let float = self.dequantized(op, kept, of)?;
                self.with_values(&[(op.operands[1], float)], |c| c.plain_stablehlo(op, name))?;
                Ok(true)
            }
            (Some(lhs), Some(rhs), Some(out)) => {
                let Some((lhs_scale, lhs_zero)) = per_tensor(lhs) else {
                    return Ok(false);
                };
                let (rhs_scale, rhs_zero) = match (per_tensor(rhs), per_tensor(out)) {
                    (Some((scale, zero)), Some((out_scale, _))) => (scale / out_scale, zero),
                    (None, None) => match (rhs.scales.first(), out.scales.first()) {
                        (Some(&r), Some(&o)) => (f64::from_bits(r) / f64::from_bits(o), 0),
                        _ => return Ok(false),
                    },
                    _ => return Ok(false),
                };
                let of = Integers {
                    lhs_zero,
                    rhs_zero,
                    out_zero: per_tensor(out).map_or(0, |(_, zero)| zero),
                    scale: lhs_scale * rhs_scale,
                };
                if name == "convolution" && !self.conv_is_plain(op, rhs, out, &of)? {
                    return Ok(false);
                }
                self.integer_dot(op, name, out, &of)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Whether the lowering covers a convolution: no zero point in the kernel, scales of result and
    /// kernel in one proportion, no dilation of the input, features last or right after the batch.
    fn conv_is_plain(
        &self,
        op: OpRef<'m>,
        rhs: &QuantizedType,
        out: &QuantizedType,
        of: &Integers,
    ) -> Result<bool> {
        let dims = self.conv_dims(op)?;
        let rank = dims.input_spatial.len() + 2;
        let last = (1..rank - 1).collect::<Dims>();
        let second = (2..rank).collect::<Dims>();
        let features_last = dims.input_feature == rank - 1
            && dims.input_spatial == last
            && dims.kernel_spatial.iter().copied().eq(0..rank - 2)
            && dims.kernel_input_feature == rank - 2
            && dims.kernel_output_feature == rank - 1
            && dims.output_feature == rank - 1
            && dims.output_spatial == last;
        let features_second = dims.input_feature == 1
            && dims.input_spatial == second
            && dims.kernel_spatial == second
            && dims.kernel_input_feature == 1
            && dims.kernel_output_feature == 0
            && dims.output_feature == 1
            && dims.output_spatial == second;
        let placed = (features_last || features_second)
            && dims.input_batch == 0
            && dims.output_batch == 0
            && (4..=5).contains(&rank);
        let dilated = op.opt_ints("lhs_dilation")?.unwrap_or_default();
        let axis = match rhs.scheme {
            QuantizedScheme::PerTensor => of.rhs_zero == 0,
            QuantizedScheme::PerAxis(axis) => {
                axis == rank as u64 - 1
                    && rhs
                        .zero_points
                        .iter()
                        .chain(&out.zero_points)
                        .all(|&z| z == 0)
                    && proportional(&rhs.scales, &out.scales)
            }
            QuantizedScheme::SubChannel { .. } => false,
        };
        Ok(placed && axis && dilated.iter().all(|&d| d == 1))
    }

    /// The product of integers, scaled, and what zero points add to it.
    fn integer_dot(
        &mut self,
        op: OpRef<'m>,
        name: &str,
        out: &QuantizedType,
        of: &Integers,
    ) -> Result<()> {
        let [mut lhs, rhs] = self.exactly(op)?;
        let s32 = PrimitiveType::S32;
        let (hlo, parts) = match name {
            "convolution" => {
                let padding = op.opt_ints("padding")?.unwrap_or_default();
                let dims = self.conv_dims(op)?;
                if padding.iter().any(|&p| p != 0) {
                    if padding.len() != 2 * dims.input_spatial.len() {
                        return Err(op.wrong("`padding` has another number of dimensions"));
                    }
                    let ty = self.b().ty(lhs)?;
                    let zero = self.b().constant_int(ty, of.lhs_zero.into());
                    let rank = self.b().dims(lhs)?.len();
                    let mut pads = vec![PadDim::default(); rank];
                    for (i, &d) in dims.input_spatial.iter().enumerate() {
                        let out = || op.wrong("spatial dimensions out of range");
                        let pad = pads.get_mut(d).ok_or_else(out)?;
                        pad.low = padding[2 * i];
                        pad.high = padding[2 * i + 1];
                    }
                    lhs = self.b().pad(lhs, zero, &pads)?;
                }
                let hlo = self.conv_op(op, rhs, Some(vec![0; padding.len()]))?;
                let mut summed = dims.kernel_spatial.to_vec();
                summed.push(dims.kernel_input_feature);
                let parts = Parts {
                    lhs_summed: Vec::new(),
                    lhs_batch: Vec::new(),
                    rhs_summed: summed,
                    rhs_batch: Vec::new(),
                    rhs_start: dims.input_feature,
                };
                (hlo, parts)
            }
            _ => {
                let dims = match name {
                    "dot" => DotDims {
                        lhs_contracting: Dims::from_slice(&[1]),
                        rhs_contracting: Dims::from_slice(&[0]),
                        ..DotDims::default()
                    },
                    _ => self.dot_dims(op)?,
                };
                let rank = self.b().dims(lhs)?.len();
                let parts = Parts {
                    rhs_start: rank.saturating_sub(dims.lhs_contracting.len()),
                    lhs_summed: dims.lhs_contracting.to_vec(),
                    lhs_batch: dims.lhs_batch.to_vec(),
                    rhs_summed: dims.rhs_contracting.to_vec(),
                    rhs_batch: dims.rhs_batch.to_vec(),
                };
                let precision = self.precision(op)?;
                let sparsity = Vec::new();
                let hlo = Op::Dot {
                    dims,
                    precision,
                    sparsity,
                };
                (hlo, parts)
            }
        };
        let shape = self.inferred(&hlo, &[lhs, rhs], &Shape::scalar(s32))?;
        let product = self.b().shaped(hlo, &[lhs, rhs], shape)?;
        let dims = self.b().dims(product)?;
        let offset = self.zero_offset(lhs, rhs, of, &parts, &dims)?;
        let mut value = product;
        let mut offset = offset;
        if (of.scale - 1.0).abs() > 0.001 {
            value = self.scaled(value, of.scale)?;
            offset = match offset {
                Some(offset) => Some(self.scaled(offset, of.scale)?),
                None => None,
            };
        }
        let mut zero = self.b().full(s32, &dims, of.out_zero as f64)?;
        if let Some(offset) = offset {
            zero = self.b().subtract(zero, offset)?;
        }
        let sum = self.b().add(value, zero)?;
        let ty = self.storage(op, out)?;
        let id = self.b().convert(sum, ty)?;
        self.set_one(op, id)
    }

    /// Integers times a scale, cut to integers.
    fn scaled(&mut self, x: InstrId, scale: f64) -> Result<InstrId> {
        let float = self.b().convert(x, PrimitiveType::F32)?;
        let scaled = self.b().binary_scalar(BinaryOp::Multiply, float, scale)?;
        self.b().convert(scaled, PrimitiveType::S32)
    }

    /// What the zero points of the operands add to the product of the integers.
    fn zero_offset(
        &mut self,
        lhs: InstrId,
        rhs: InstrId,
        of: &Integers,
        parts: &Parts,
        dims: &[usize],
    ) -> Result<Option<InstrId>> {
        let mut sum: Option<InstrId> = None;
        if of.rhs_zero != 0 {
            let (batch, start) = (&parts.lhs_batch, parts.lhs_batch.len());
            let part = self.zero_part(lhs, of.rhs_zero, &parts.lhs_summed, batch, start, dims)?;
            sum = Some(part);
        }
        if of.lhs_zero != 0 {
            let (batch, start) = (&parts.rhs_batch, parts.rhs_start);
            let part = self.zero_part(rhs, of.lhs_zero, &parts.rhs_summed, batch, start, dims)?;
            sum = Some(match sum {
                Some(sum) => self.b().add(sum, part)?,
                None => part,
            });
        }
        if let (Some(all), true) = (sum, of.lhs_zero != 0 && of.rhs_zero != 0) {
            let sizes = self.b().dims(rhs)?;
            let count: i128 = parts.rhs_summed.iter().map(|&d| sizes[d] as i128).product();
            let number = i128::from(of.lhs_zero) * i128::from(of.rhs_zero);
            let number = number::wrap(PrimitiveType::S32, number.wrapping_mul(count));
            let scalar = self.b().constant_int(PrimitiveType::S32, number);
            let wide = self.b().broadcast_scalar(scalar, dims)?;
            sum = Some(self.b().subtract(all, wide)?);
        }
        Ok(sum)
    }

    /// The sums of one operand times the zero point of the other, spread over the result.
    fn zero_part(
        &mut self,
        x: InstrId,
        zero: i64,
        summed: &[usize],
        batch: &[usize],
        start: usize,
        dims: &[usize],
    ) -> Result<InstrId> {
        let s32 = PrimitiveType::S32;
        let rank = self.b().dims(x)?.len();
        let wide = self.b().convert(x, s32)?;
        let sums = self.b().sum(wide, summed)?;
        let times = self
            .b()
            .binary_scalar(BinaryOp::Multiply, sums, zero as f64)?;
        let (mut batch_at, mut free_at) = (0, start);
        let mut mapping = Vec::new();
        for d in (0..rank).filter(|d| !summed.contains(d)) {
            let next = if batch.contains(&d) {
                &mut batch_at
            } else {
                &mut free_at
            };
            mapping.push(*next);
            *next += 1;
        }
        self.broadcast_in_dim(times, &mapping, dims)
    }

    /// Operands as floats, the op on floats, its result as integers.
    fn through_floats(&mut self, op: OpRef<'m>, name: &str) -> Result<()> {
        if !op.regions.is_empty() || op.results.len() != 1 {
            return Err(op.unsupported("an op of quantized numbers"));
        }
        let mut floats = Vec::new();
        for (i, &value) in op.operands.iter().enumerate() {
            if quantized(op.operand_type(i)?).is_some() {
                let of = self.quantized_type(op, op.operand_type(i)?)?;
                let x = self.value(op, value)?;
                floats.push((value, self.dequantized(op, x, of)?));
            }
        }
        let was = std::mem::replace(&mut self.expressed, true);
        let done = self.with_values(&floats, |c| c.plain_stablehlo(op, name));
        self.expressed = was;
        done?;
        if quantized(op.result_type(0)?).is_some() {
            let of = self.quantized_type(op, op.result_type(0)?)?;
            let result = self.value(op, op.results[0])?;
            let id = self.quantized_from(op, result, of)?;
            self.set_one(op, id)?;
        }
        Ok(())
    }
}

/// What a dot of integers needs beside them.
struct Integers {
    lhs_zero: i64,
    rhs_zero: i64,
    out_zero: i64,
    /// The scales of the operands over that of the result.
    scale: f64,
}

/// Which dimensions of the operands are summed, and where the others stand in the result.
struct Parts {
    lhs_summed: Vec<usize>,
    lhs_batch: Vec<usize>,
    rhs_summed: Vec<usize>,
    rhs_batch: Vec<usize>,
    rhs_start: usize,
}

/// Whether the scales are in one proportion, within a thousandth.
fn proportional(a: &[u64], b: &[u64]) -> bool {
    let pairs = a.iter().zip(b);
    let mut ratios = pairs.map(|(&a, &b)| f64::from_bits(b) / f64::from_bits(a));
    let first = ratios.next().unwrap_or(1.0);
    a.len() == b.len() && ratios.all(|r| ((r - first) / first).abs() <= 0.001)
}
