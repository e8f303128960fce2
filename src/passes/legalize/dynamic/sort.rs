//! Sorts of dynamic arrays: what is not real comes last.

use crate::base::Result;
use crate::hlo::CompId;
use crate::hlo::ComparisonDirection;
use crate::hlo::ComparisonType;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::passes::legalize::dynamic::masked::real;
use crate::passes::legalize::dynamic::work::Work;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

impl Work<'_> {
    /// Sorted with one operand more, which says what is real.
    pub(super) fn sort(&mut self, dim: usize, body: CompId, is_stable: bool) -> Result<InstrId> {
        let all: Vec<(usize, usize)> = (0..self.operands.len()).map(|i| (i, dim)).collect();
        let Some(size) = self.agreed(&all)? else {
            return self.on_data();
        };
        let data: Vec<InstrId> = self.operands.iter().map(|o| o.data).collect();
        let sorted = self.sorted(data, dim, size, body, is_stable)?;
        match sorted.as_slice() {
            [only] => Ok(*only),
            _ => self.b.tuple(&sorted),
        }
    }

    fn sorted(
        &mut self,
        mut data: Vec<InstrId>,
        dim: usize,
        size: InstrId,
        body: CompId,
        is_stable: bool,
    ) -> Result<Vec<InstrId>> {
        let count = data.len();
        let dims = self.b.dims(data[0])?;
        data.extend(real(&mut self.b, &dims, &[(dim, size)])?);
        let body = self.real_first(body)?;
        let op = Op::Sort {
            dim,
            body,
            is_stable,
        };
        let sorted = self.b.op(op, &data)?;
        let mut parts = self.b.elements(sorted)?;
        parts.truncate(count);
        Ok(parts)
    }

    /// A stable sort of the values with their positions, and the first `k` of both.
    pub(super) fn top_k(&mut self, k: usize, largest: bool) -> Result<InstrId> {
        let array = self.operands[0].clone();
        let dim = array.shape.rank().saturating_sub(1);
        let Some(size) = array.sizes.get(dim).copied().flatten() else {
            return self.on_data();
        };
        let ty = array.shape.ty;
        let direction = match largest {
            true => ComparisonDirection::Gt,
            false => ComparisonDirection::Lt,
        };
        let order = match ty.is_float() {
            true => ComparisonType::TotalOrder,
            false => ComparisonType::default_of(Some(&Shape::scalar(ty))),
        };
        let (value, place) = (Shape::scalar(ty), Shape::scalar(PrimitiveType::S32));
        let params = [value.clone(), value, place.clone(), place];
        let name = format!("before.{}", self.b.module.comps.len());
        let body = self.b.computation(name, &params, |b, p| {
            let compare = Op::Compare {
                direction,
                ty: order,
            };
            b.op(compare, &p[..2])
        })?;
        let places = self.b.iota(PrimitiveType::S32, &array.shape.dims, dim)?;
        let sorted = self.sorted(vec![array.data, places], dim, size, body, true)?;
        let mut first = Vec::new();
        for part in sorted {
            first.push(self.b.slice_dim(part, dim, 0, k)?);
        }
        self.b.tuple(&first)
    }
}
