//! Constants, elementwise ops and conversions of type.

use crate::base::Result;
use crate::front::stablehlo::chlo;
use crate::front::stablehlo::import::Converter;
use crate::front::stablehlo::import::want_arrays;
use crate::front::stablehlo::types;
use crate::hlo::BinaryOp;
use crate::hlo::ComparisonDirection;
use crate::hlo::ComparisonType;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::UnaryOp;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::mlir::Attr;
use crate::mlir::Dense;
use crate::mlir::OpRef;
use crate::mlir::Type;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// The HLO op of a StableHLO op of one operand, whose name is mostly HLO's with underscores.
fn unary_op(name: &str) -> Option<UnaryOp> {
    Some(match name {
        "round_nearest_afz" => UnaryOp::RoundNearestAfz,
        "round_nearest_even" => UnaryOp::RoundNearestEven,
        "count_leading_zeros" => UnaryOp::CountLeadingZeros,
        "exponential_minus_one" => UnaryOp::Expm1,
        "is_finite" => UnaryOp::IsFinite,
        "log_plus_one" => UnaryOp::Log1p,
        _ => UnaryOp::from_name(name)?,
    })
}

/// The HLO op of a StableHLO op of two operands.
fn binary_op(name: &str) -> Option<BinaryOp> {
    Some(match name {
        "shift_left" => BinaryOp::ShiftLeft,
        "shift_right_arithmetic" => BinaryOp::ShiftRightArithmetic,
        "shift_right_logical" => BinaryOp::ShiftRightLogical,
        "stochastic_convert" => return None,
        _ => BinaryOp::from_name(name)?,
    })
}

impl<'m> Converter<'m> {
    /// Converts the op when it is one of this file's.
    pub(super) fn elementwise(&mut self, op: OpRef<'m>, name: &str) -> Result<bool> {
        if let Some(unary) = unary_op(name) {
            let [x] = self.exactly(op)?;
            self.emit_one(op, Op::Unary(unary), &[x])?;
            return Ok(true);
        }
        if let Some(binary) = binary_op(name) {
            let [x, y] = self.exactly(op)?;
            self.emit_one(op, Op::Binary(binary), &[x, y])?;
            return Ok(true);
        }
        match name {
            "constant" => self.constant(op)?,
            "compare" => self.compare(op)?,
            "select" => {
                let operands: [InstrId; 3] = self.exactly(op)?;
                self.emit_one(op, Op::Select, &operands)?;
            }
            "clamp" => {
                let operands: [InstrId; 3] = self.exactly(op)?;
                self.emit_one(op, Op::Clamp, &operands)?;
            }
            "convert" | "bitcast_convert" | "stochastic_convert" => self.conversion(op, name)?,
            "reduce_precision" => {
                let hlo = Op::ReducePrecision {
                    exponent_bits: self.small(op, "exponent_bits")?,
                    mantissa_bits: self.small(op, "mantissa_bits")?,
                };
                let [x] = self.exactly(op)?;
                self.emit_one(op, hlo, &[x])?;
            }
            "copy" => {
                let [x] = self.exactly(op)?;
                self.emit_one(op, Op::Copy, &[x])?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn small(&self, op: OpRef<'m>, name: &str) -> Result<u32> {
        let value = op.attr_int(name)?;
        u32::try_from(value).map_err(|_| op.wrong(format!("`{name}` is {value}")))
    }

    fn compare(&mut self, op: OpRef<'m>) -> Result<()> {
        let [x, y] = self.exactly(op)?;
        let word = op.attr_enum("comparison_direction", "comparison_direction")?;
        let direction = ComparisonDirection::from_name(word)
            .ok_or_else(|| op.wrong(format!("`{word}` is no direction of a comparison")))?;
        let ty = self.comparison_type(op, x)?;
        self.emit_one(op, Op::Compare { direction, ty }, &[x, y])
    }

    /// How arrays are compared: as their elements are, or floats in total order.
    fn comparison_type(&self, op: OpRef<'m>, x: InstrId) -> Result<ComparisonType> {
        let natural = ComparisonType::default_of(Some(self.out.shape(x)));
        let word = op.opt_enum("compare_type", "comparison_type")?;
        let Some(word) = word.filter(|word| *word != "NOTYPE") else {
            return Ok(natural);
        };
        let total = ComparisonType::TotalOrder;
        match ComparisonType::from_name(word) {
            Some(ty) if ty == natural => Ok(ty),
            Some(ty) if ty == total && natural == ComparisonType::Float => Ok(ty),
            _ => {
                let natural = natural.name();
                Err(op.wrong(format!("compares as {word}, its operands as {natural}")))
            }
        }
    }

    fn conversion(&mut self, op: OpRef<'m>, name: &str) -> Result<()> {
        let operands = self.operands(op)?;
        let x = self.operand(op, 0)?;
        let ty = self.element_type(op, 0)?;
        let id = match (name, self.declared_shape(op, 0)?) {
            ("convert", Some(shape)) => self.b().shaped(Op::Convert, &[x], shape)?,
            ("convert", None) => {
                let array = ArrayShape {
                    layout: None,
                    ..self.b().array(x)?.with_type(ty)
                };
                self.b().shaped(Op::Convert, &[x], Shape::Array(array))?
            }
            ("bitcast_convert", Some(shape)) => self.b().shaped(Op::BitcastConvert, &[x], shape)?,
            ("bitcast_convert", None) => self.b().bitcast_convert(x, ty)?,
            (_, Some(shape)) => self.b().shaped(Op::StochasticConvert, &operands, shape)?,
            (_, None) => return self.needed_shape(op, 0).map(drop),
        };
        self.set_one(op, id)
    }

    /// `stablehlo.constant` and its like.
    pub(super) fn constant(&mut self, op: OpRef<'m>) -> Result<()> {
        let id = self.constant_of(op)?;
        self.set_one(op, id)
    }

    /// Appends the constant that an op gives to the current computation.
    pub(super) fn constant_of(&mut self, op: OpRef<'m>) -> Result<InstrId> {
        match op.need("value")? {
            Attr::Dense(dense) => self.dense(op, dense),
            Attr::MissingResource { key, .. } => {
                let help = "print the module with its resources, or use its bytecode";
                let message = format!("the bytes of the resource `{key}` are not in the input");
                Err(op.wrong(message).help(help))
            }
            attr => self.scalar_constant(op, attr),
        }
    }

    /// An integer, float or truth value as a constant of the type of the result.
    fn scalar_constant(&mut self, op: OpRef<'m>, attr: &Attr) -> Result<InstrId> {
        let shape = match op.result_type(0)? {
            Type::Tensor(_) => self.needed_shape(op, 0)?,
            ty => Shape::scalar(
                types::element_type(ty)
                    .map_err(|what| op.unsupported(format!("HLO has no {what}")))?,
            ),
        };
        let array = shape.as_array().cloned();
        let Some(array) = array else {
            return Err(op.wrong("a constant that is no array"));
        };
        let scalar = self.attribute_number(op, attr, array.ty)?;
        let id = self.b().constant(scalar);
        self.b().broadcast_scalar(id, &array.dims)
    }

    /// Dense elements: a splat is a scalar that is broadcast, as XLA writes it.
    pub(super) fn dense(&mut self, op: OpRef<'m>, dense: &Dense) -> Result<InstrId> {
        let (literal, dims) = types::dense_literal(dense)
            .map_err(|what| op.unsupported(format!("HLO has no {what}")))?;
        let whole = literal.shape().rank() == dims.len();
        let id = self.b().constant(Literal::Array(literal));
        if whole {
            return Ok(id);
        }
        self.b().broadcast_scalar(id, &dims)
    }

    /// A number of an attribute as a scalar.
    fn attribute_number(&self, op: OpRef<'m>, attr: &Attr, ty: PrimitiveType) -> Result<Literal> {
        let width = ty.byte_width();
        let bytes: Vec<u8> = match attr {
            Attr::Bool(value) => vec![u8::from(*value)],
            Attr::Integer { value, .. } if !ty.is_float() && !ty.is_complex() => {
                value.to_le_bytes()[..width].to_vec()
            }
            Attr::Float { bits, .. } if ty.is_float() => bits.to_le_bytes()[..width].to_vec(),
            other => return Err(op.wrong(format!("a constant of {} for {ty}", other.what()))),
        };
        if bytes.len() != width {
            return Err(op.wrong(format!("a truth value for {ty}")));
        }
        Ok(Literal::Array(ArrayLiteral::new(
            ArrayShape::scalar(ty),
            bytes,
        )))
    }

    /// An op of CHLO.
    pub(super) fn chlo(&mut self, op: OpRef<'m>, name: &str) -> Result<()> {
        want_arrays(op)?;
        if let Some(plain) = name.strip_prefix("broadcast_") {
            return self.chlo_broadcast(op, plain);
        }
        if chlo::is_formula(name) {
            let operands = self.operands(op)?;
            return self.chlo_formula(op, name, &operands);
        }
        match name {
            "constant" => self.constant(op),
            "constant_like" => {
                let [x] = self.exactly(op)?;
                let ty = self.element_type(op, 0)?;
                let scalar = match op.need("value")? {
                    Attr::Dense(dense) => self.dense(op, dense)?,
                    attr => {
                        let number = self.attribute_number(op, attr, ty)?;
                        self.b().constant(number)
                    }
                };
                let dims = self.b().dims(x)?;
                let id = self.b().broadcast_scalar(scalar, &dims)?;
                let id = self.sized_like(id, x)?;
                self.set_one(op, id)
            }
            "mulhi" => self.mul_high(op),
            "top_k" => self.top_k(op),
            "ragged_dot" => self.ragged_dot(op),
            "scan" => self.scan(op),
            "dynamic_reshape" => self.dynamic_op(op, name).map(drop),
            _ => Err(op.unsupported("HLO has no such op")),
        }
    }

    /// The array with the sizes of another one where that one is dynamic and it is not.
    fn sized_like(&mut self, mut id: InstrId, like: InstrId) -> Result<InstrId> {
        let (array, other) = (self.b().array(id)?, self.b().array(like)?);
        for dim in (0..other.rank()).filter(|&d| other.is_dynamic_dim(d)) {
            if !array.is_dynamic_dim(dim) {
                let size = self.b().op(Op::GetDimensionSize { dim }, &[like])?;
                id = self.b().op(Op::SetDimensionSize { dim }, &[id, size])?;
            }
        }
        Ok(id)
    }

    /// `chlo.mulhi`
    pub(super) fn mul_high(&mut self, op: OpRef<'m>) -> Result<()> {
        let operands: [InstrId; 2] = self.exactly(op)?;
        self.emit_one(op, Op::Binary(BinaryOp::MulHi), &operands)
    }

    /// A CHLO op that is a formula.
    pub(super) fn chlo_formula(
        &mut self,
        op: OpRef<'m>,
        name: &str,
        operands: &[InstrId],
    ) -> Result<()> {
        match chlo::build(&mut self.b(), name, operands)? {
            Some(id) => self.set_one(op, id),
            None => Err(op.wrong(format!("{} operands", operands.len()))),
        }
    }

    /// An op of CHLO whose operands are brought to one size first, as NumPy does.
    fn chlo_broadcast(&mut self, op: OpRef<'m>, name: &str) -> Result<()> {
        let operands = self.operands(op)?;
        let mut dims: Vec<usize> = Vec::new();
        for &operand in &operands {
            let sizes = self.b().dims(operand)?;
            if sizes.len() > dims.len() {
                dims.splice(0..0, vec![1; sizes.len() - dims.len()]);
            }
            let offset = dims.len() - sizes.len();
            for (d, &size) in sizes.iter().enumerate() {
                let known = &mut dims[offset + d];
                match (*known, size) {
                    (1, size) => *known = size,
                    (a, b) if a == b || b == 1 => {}
                    (a, b) => {
                        return Err(op.wrong(format!("sizes {a} and {b} of one dimension")));
                    }
                }
            }
        }
        if let Some(mapping) = op.opt_ints("broadcast_dimensions")? {
            let ranks: Result<Vec<usize>> = operands
                .iter()
                .map(|&o| Ok(self.b().dims(o)?.len()))
                .collect();
            let least = ranks?.into_iter().min().unwrap_or(0);
            let aligned = (dims.len() - least..dims.len()).map(|d| d as i64);
            if !mapping.iter().copied().eq(aligned) {
                return Err(op.unsupported("broadcast dimensions that are not the last ones"));
            }
        }
        let mut wide = Vec::with_capacity(operands.len());
        for &operand in &operands {
            let sizes = self.b().dims(operand)?;
            let offset = dims.len() - sizes.len();
            let mapping: Vec<usize> = (offset..dims.len()).collect();
            wide.push(self.broadcast_in_dim(operand, &mapping, &dims)?);
        }
        // Where one of them is dynamic all of them are.
        for like in wide.clone() {
            for id in &mut wide {
                *id = self.sized_like(*id, like)?;
            }
        }
        if chlo::is_formula(name) {
            return self.chlo_formula(op, name, &wide);
        }
        if let Some(binary) = binary_op(name) {
            return self.emit_one(op, Op::Binary(binary), &wide);
        }
        match (name, &*wide) {
            ("select", &[_, _, _]) => self.emit_one(op, Op::Select, &wide),
            ("compare", &[x, y]) => {
                let word = op.attr_enum("comparison_direction", "comparison_direction")?;
                let direction = ComparisonDirection::from_name(word)
                    .ok_or_else(|| op.wrong(format!("`{word}` is no direction")))?;
                let ty = self.comparison_type(op, x)?;
                self.emit_one(op, Op::Compare { direction, ty }, &[x, y])
            }
            _ => Err(op.unsupported("HLO has no such op")),
        }
    }
}
