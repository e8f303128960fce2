//! Sizes as instructions.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::hlo::BinaryOp;
use crate::hlo::ComparisonDirection;
use crate::hlo::InstrId;
use crate::hlo::dynamic::Size;
use crate::passes::legalize::dynamic::work::Work;
use crate::shape::PrimitiveType;

const S32: PrimitiveType = PrimitiveType::S32;

impl Work<'_> {
    /// A number as a size.
    pub(super) fn number(&mut self, number: i64) -> InstrId {
        self.b.constant_int(S32, i128::from(number))
    }
    /// The size of an operand's dimension.
    pub(super) fn size_of(&mut self, operand: usize, dim: usize) -> InstrId {
        let array = &self.operands[operand];
        let bound = array.shape.dims[dim] as i64;
        match array.sizes[dim] {
            Some(size) => size,
            None => self.number(bound),
        }
    }
    /// What a formula comes to.
    pub(super) fn size(&mut self, size: &Size) -> Result<InstrId> {
        match size {
            Size::Fixed(number) => match i32::try_from(*number) {
                Ok(number) => Ok(self.number(i64::from(number))),
                Err(_) => Err(too_far(*number)),
            },
            Size::Of { operand, dim } => Ok(self.size_of(*operand, *dim)),
            Size::Value { operand, bound } => self.clamped(self.operands[*operand].data, *bound),
            Size::Sum(parts) => self.folded(parts, |work, a, b| work.b.add(a, b)),
            Size::Product(parts) => self.folded(parts, |work, a, b| work.b.multiply(a, b)),
            Size::Quotient(size, by) => {
                let size = self.size(size)?;
                let by = self.size(&Size::Fixed(*by))?;
                self.b.divide(size, by)
            }
            Size::AtLeast(size, least) => {
                let size = self.size(size)?;
                let least = self.size(&Size::Fixed(*least))?;
                self.b.binary(BinaryOp::Maximum, size, least)
            }
            Size::Least(parts) => self.folded(parts, Self::least),
            Size::Joined(parts) => self.folded(parts, Self::joined),
        }
    }
    fn folded(
        &mut self,
        parts: &[Size],
        mut fold: impl FnMut(&mut Self, InstrId, InstrId) -> Result<InstrId>,
    ) -> Result<InstrId> {
        let mut all = None;
        for part in parts {
            let size = self.size(part)?;
            all = Some(match all {
                Some(all) => fold(self, all, size)?,
                None => size,
            });
        }
        all.ok_or_else(|| Diagnostic::internal(codes::INTERNAL, "a size of nothing"))
    }
    /// The smaller of two sizes.
    pub(super) fn least(&mut self, a: InstrId, b: InstrId) -> Result<InstrId> {
        if a == b {
            return Ok(a);
        }
        self.b.binary(BinaryOp::Minimum, a, b)
    }
    fn joined(&mut self, a: InstrId, b: InstrId) -> Result<InstrId> {
        if a == b {
            return Ok(a);
        }
        let less = self.b.binary(BinaryOp::Minimum, a, b)?;
        let more = self.b.binary(BinaryOp::Maximum, a, b)?;
        let one = self.number(1);
        let is_one = self.b.compare(ComparisonDirection::Eq, less, one)?;
        self.b.select(is_one, more, less)
    }
    /// A size moved into its bounds, once for each size.
    fn clamped(&mut self, size: InstrId, bound: i64) -> Result<InstrId> {
        if let Some(&known) = self.clamps.get(&(size, bound)) {
            return Ok(known);
        }
        let zero = self.number(0);
        let most = self.size(&Size::Fixed(bound))?;
        let clamped = self.b.clamp(zero, size, most)?;
        self.clamps.insert((size, bound), clamped);
        Ok(clamped)
    }
    /// The smallest of the sizes of these dimensions, when one is dynamic.
    pub(super) fn agreed(&mut self, dims: &[(usize, usize)]) -> Result<Option<InstrId>> {
        let mut all = None;
        for &(operand, dim) in dims {
            if let Some(size) = self.operands[operand].sizes[dim] {
                all = Some(match all {
                    Some(all) => self.least(all, size)?,
                    None => size,
                });
            }
        }
        Ok(all)
    }
}

fn too_far(number: i64) -> Box<Diagnostic> {
    let message = format!("the size of a dynamic array depends on {number}, and sizes are s32");
    Diagnostic::unsupported(codes::COMPILE_UNSUPPORTED, message)
}
