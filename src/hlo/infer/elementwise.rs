//! Shapes of elementwise ops and conversions.

use crate::base::Result;
use crate::hlo::BinaryOp;
use crate::hlo::CompId;
use crate::hlo::ComparisonType;
use crate::hlo::UnaryOp;
use crate::hlo::infer::Infer;
use crate::hlo::infer::bare;
use crate::hlo::infer::text;
use crate::shape::ArrayShape;
use crate::shape::ElementKind;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

impl Infer<'_> {
    /// Arrays of equal sizes; a dimension of the result is dynamic where one of theirs is.
    fn merged(&self, arrays: &[&ArrayShape]) -> Result<ArrayShape> {
        let mut out = bare(arrays[0]);
        for (i, array) in arrays.iter().enumerate().skip(1) {
            self.same_sizes(0, arrays[0], i, array)?;
            if array.is_dynamic() {
                out.dynamic = (0..out.rank())
                    .map(|d| out.is_dynamic_dim(d) || array.is_dynamic_dim(d))
                    .collect();
            }
        }
        Ok(out)
    }
    fn kind(&self, ty: PrimitiveType, allowed: &[ElementKind]) -> Result<()> {
        self.ensure(allowed.contains(&ty.kind()), || {
            format!("is not defined for element type {ty}")
        })
    }

    /// C1 of each unary op: the element types it is defined for. `real` and `imag` of a real
    /// operand are HLO's: the operand, and zero.
    pub(super) fn unary(&self, op: UnaryOp) -> Result<Shape> {
        use ElementKind::Complex;
        use ElementKind::Float;
        use ElementKind::Pred;
        use ElementKind::Signed;
        use ElementKind::Unsigned;
        self.arity(1)?;
        let array = self.array(0)?;
        let allowed: &[ElementKind] = match op {
            UnaryOp::Abs | UnaryOp::Sign => &[Signed, Unsigned, Float, Complex],
            UnaryOp::Negate => &[Signed, Unsigned, Float, Complex],
            UnaryOp::Not => &[Pred, Signed, Unsigned],
            UnaryOp::CountLeadingZeros | UnaryOp::PopulationCount => &[Signed, Unsigned],
            UnaryOp::Ceil
            | UnaryOp::Floor
            | UnaryOp::RoundNearestAfz
            | UnaryOp::RoundNearestEven
            | UnaryOp::Erf
            | UnaryOp::IsFinite => &[Float],
            UnaryOp::Real | UnaryOp::Imag => &[Float, Complex],
            UnaryOp::Acos
            | UnaryOp::Acosh
            | UnaryOp::Asin
            | UnaryOp::Asinh
            | UnaryOp::Atanh
            | UnaryOp::Cbrt
            | UnaryOp::Cos
            | UnaryOp::Cosh
            | UnaryOp::Exp
            | UnaryOp::Expm1
            | UnaryOp::Log
            | UnaryOp::Log1p
            | UnaryOp::Logistic
            | UnaryOp::Rsqrt
            | UnaryOp::Sin
            | UnaryOp::Sinh
            | UnaryOp::Sqrt
            | UnaryOp::Tan
            | UnaryOp::Tanh => &[Float, Complex],
        };
        self.kind(array.ty, allowed)?;
        let ty = match op {
            UnaryOp::Abs | UnaryOp::Real | UnaryOp::Imag => array.ty.real_part(),
            UnaryOp::IsFinite => PrimitiveType::Pred,
            _ => array.ty,
        };
        Ok(Shape::Array(bare(array).with_type(ty)))
    }

    /// C1 of each binary op, and equal shapes (HLO has no implicit broadcasting here).
    pub(super) fn binary(&self, op: BinaryOp) -> Result<Shape> {
        use ElementKind::Complex;
        use ElementKind::Float;
        use ElementKind::Pred;
        use ElementKind::Signed;
        use ElementKind::Unsigned;
        self.arity(2)?;
        let (lhs, rhs) = (self.array(0)?, self.array(1)?);
        self.same_type(0, lhs.ty, 1, rhs.ty)?;
        let allowed: &[ElementKind] = match op {
            BinaryOp::Add | BinaryOp::Multiply | BinaryOp::Maximum | BinaryOp::Minimum => {
                &[Pred, Signed, Unsigned, Float, Complex]
            }
            BinaryOp::Subtract | BinaryOp::Divide | BinaryOp::Power => {
                &[Signed, Unsigned, Float, Complex]
            }
            BinaryOp::Remainder => &[Signed, Unsigned, Float],
            BinaryOp::Atan2 => &[Float, Complex],
            BinaryOp::Complex => &[Float],
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => &[Pred, Signed, Unsigned],
            BinaryOp::MulHi
            | BinaryOp::ShiftLeft
            | BinaryOp::ShiftRightArithmetic
            | BinaryOp::ShiftRightLogical => &[Signed, Unsigned],
        };
        self.kind(lhs.ty, allowed)?;
        let mut out = self.merged(&[lhs, rhs])?;
        if op == BinaryOp::Complex {
            out.ty = match lhs.ty.complex_of() {
                Some(ty) => ty,
                None => return Err(self.fail(format!("no complex type has parts of {}", lhs.ty))),
            };
        }
        Ok(Shape::Array(out))
    }

    /// compare C1, C2, and the comparison type that fits the element type.
    pub(super) fn compare(&self, ty: ComparisonType) -> Result<Shape> {
        self.arity(2)?;
        let (lhs, rhs) = (self.array(0)?, self.array(1)?);
        self.same_type(0, lhs.ty, 1, rhs.ty)?;
        let fits = match ty {
            ComparisonType::Float => lhs.ty.is_float() || lhs.ty.is_complex(),
            // Upstream also gives integers a total order, which is their own.
            ComparisonType::TotalOrder => !lhs.ty.is_complex(),
            ComparisonType::Signed => lhs.ty.is_signed(),
            ComparisonType::Unsigned => lhs.ty.is_unsigned() || lhs.ty == PrimitiveType::Pred,
        };
        self.ensure(fits, || {
            let (found, ty) = (ty.name(), lhs.ty);
            format!("comparison type {found} does not fit element type {ty}")
        })?;
        let out = self.merged(&[lhs, rhs])?;
        Ok(Shape::Array(out.with_type(PrimitiveType::Pred)))
    }

    /// select C1, C2. A scalar predicate selects whole arrays, and whole tuples in old programs.
    pub(super) fn select(&self) -> Result<Shape> {
        self.arity(3)?;
        let pred = self.array(0)?;
        self.ensure(pred.ty == PrimitiveType::Pred, || {
            format!("predicate has element type {} instead of pred", pred.ty)
        })?;
        let (on_true, on_false) = (self.array(1)?, self.array(2)?);
        self.same_type(1, on_true.ty, 2, on_false.ty)?;
        self.same_sizes(1, on_true, 2, on_false)?;
        if pred.rank() != 0 {
            self.same_sizes(1, on_true, 0, pred)?;
        }
        Ok(Shape::Array(self.merged(&[on_true, on_false])?))
    }

    /// clamp C1 to C3: bounds of the operand's type, each a scalar or of its sizes.
    pub(super) fn clamp(&self) -> Result<Shape> {
        self.arity(3)?;
        let operand = self.array(1)?;
        for i in [0, 2] {
            let bound = self.array(i)?;
            self.same_type(1, operand.ty, i, bound.ty)?;
            if bound.rank() != 0 {
                self.same_sizes(1, operand, i, bound)?;
            }
        }
        Ok(Shape::Array(bare(operand)))
    }

    /// convert C1: the declared element type over the operand's sizes. Complex to real drops the
    /// imaginary part.
    pub(super) fn convert(&self) -> Result<Shape> {
        self.arity(1)?;
        let array = self.array(0)?;
        let ty = self.declared_array()?.ty;
        Ok(Shape::Array(bare(array).with_type(ty)))
    }

    /// bitcast_convert C1, C2: equal sizes for equal widths; otherwise the wider side lacks one minor
    /// dimension of the ratio of widths.
    pub(super) fn bitcast_convert(&self) -> Result<Shape> {
        self.arity(1)?;
        let array = self.array(0)?;
        let ty = self.declared_array()?.ty;
        let (from, to) = (array.ty.bit_width(), ty.bit_width());
        self.ensure(
            array.ty.is_complex() == ty.is_complex() || from == to,
            || format!("cannot reinterpret {} as {ty}", array.ty),
        )?;
        let mut out = bare(array).with_type(ty);
        if from > to {
            self.ensure(from.is_multiple_of(to), || {
                format!("{from} bits are not a multiple of {to} bits")
            })?;
            out.dims.push(from / to);
            if array.is_dynamic() {
                out.dynamic.push(false);
            }
        } else if from < to {
            let ratio = to / from;
            let minor = out.dims.pop();
            self.ensure(to.is_multiple_of(from) && minor == Some(ratio), || {
                let minor = minor.map_or("no dimension".to_owned(), |m| format!("size {m}"));
                format!("the minor dimension has {minor} instead of size {ratio}, as {ty} needs")
            })?;
            out.dynamic.truncate(out.dims.len());
        }
        Ok(Shape::Array(out))
    }

    /// reduce_precision C1 to C3.
    pub(super) fn reduce_precision(&self, exponent_bits: u32, mantissa_bits: u32) -> Result<Shape> {
        self.arity(1)?;
        let array = self.array(0)?;
        self.kind(array.ty, &[ElementKind::Float])?;
        self.ensure(exponent_bits >= 1, || "keeps no exponent bits".to_owned())?;
        self.ensure(exponent_bits <= 64 && mantissa_bits <= 64, || {
            format!("keeps {exponent_bits} exponent and {mantissa_bits} mantissa bits")
        })?;
        Ok(Shape::Array(bare(array)))
    }

    /// Randomly rounded conversion (HLO only): a float operand, random bits of its width and sizes.
    pub(super) fn stochastic_convert(&self) -> Result<Shape> {
        self.arity(2)?;
        let (operand, random) = (self.array(0)?, self.array(1)?);
        self.kind(operand.ty, &[ElementKind::Float])?;
        self.kind(random.ty, &[ElementKind::Unsigned])?;
        self.same_sizes(0, operand, 1, random)?;
        let (bits, wanted) = (random.ty.bit_width(), operand.ty.bit_width());
        self.ensure(bits == wanted, || {
            format!("random bits are {bits} wide instead of {wanted}")
        })?;
        let ty = self.declared_array()?.ty;
        Ok(Shape::Array(bare(operand).with_type(ty)))
    }

    /// map C1 to C4: a scalar body over arrays of equal sizes, all dimensions in order.
    pub(super) fn map(&self, dims: &[usize], body: CompId) -> Result<Shape> {
        self.at_least(1)?;
        let arrays = self.arrays(0, self.operands.len())?;
        let out = self.merged(&arrays)?;
        self.ensure(dims.iter().copied().eq(0..out.rank()), || {
            format!(
                "maps over dimensions {} instead of all of rank {} in order",
                super::list(dims),
                out.rank()
            )
        })?;
        let types: Vec<Shape> = arrays.iter().map(|a| Shape::scalar(a.ty)).collect();
        let result = self.takes("body", body, &types.iter().collect::<Vec<_>>())?;
        match result.as_array() {
            Some(scalar) if scalar.rank() == 0 => Ok(Shape::Array(out.with_type(scalar.ty))),
            _ => Err(self.fail(format!("body gives {} instead of a scalar", text(result)))),
        }
    }
}
