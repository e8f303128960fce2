//! Elements beyond the real sizes, kept from what would see them.

use crate::base::Result;
use crate::hlo::BinaryOp;
use crate::hlo::Builder;
use crate::hlo::CompId;
use crate::hlo::ComparisonDirection;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::SliceDim;
use crate::hlo::UnaryOp;
use crate::literal::Number;
use crate::passes::legalize::dynamic::work::Work;
use crate::shape::ElementKind;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// Where elements are real: those before the size in each of the dimensions.
pub(super) fn real(
    b: &mut Builder<'_>,
    dims: &[usize],
    sizes: &[(usize, InstrId)],
) -> Result<Option<InstrId>> {
    let mut all = None;
    for &(d, size) in sizes {
        let at = b.iota(PrimitiveType::S32, dims, d)?;
        let size = b.broadcast_scalar(size, dims)?;
        let inside = b.compare(ComparisonDirection::Lt, at, size)?;
        all = Some(match all {
            Some(all) => b.binary(BinaryOp::And, all, inside)?,
            None => inside,
        });
    }
    Ok(all)
}

/// The number that changes nothing as an operand of the op, when the type has it.
pub(super) fn identity(op: BinaryOp, ty: PrimitiveType) -> Option<Number> {
    let kind = ty.kind();
    let is_float = matches!(kind, ElementKind::Float);
    if ty == PrimitiveType::F8E8M0FNU {
        return None;
    }
    let number = match (op, kind) {
        (BinaryOp::Add, ElementKind::Float) => Number::Float(-0.0),
        (BinaryOp::Add, ElementKind::Complex) => Number::Complex(-0.0, -0.0),
        (BinaryOp::Add | BinaryOp::Or | BinaryOp::Xor, _) if !is_float => Number::Int(0),
        (BinaryOp::Multiply, ElementKind::Float) => Number::Float(1.0),
        (BinaryOp::Multiply, ElementKind::Complex) => return None,
        (BinaryOp::Multiply, _) => Number::Int(1),
        (BinaryOp::And, ElementKind::Pred) => Number::Int(1),
        (BinaryOp::And, ElementKind::Signed | ElementKind::Unsigned) => Number::Int(-1),
        _ => return None,
    };
    Some(number)
}

/// The op of a reducer that is one op of its two parameters.
fn monoid(b: &Builder<'_>, body: CompId) -> Option<(BinaryOp, PrimitiveType)> {
    let comp = &b.module.comps[body];
    let root = &b.module.instrs[comp.root];
    let Op::Binary(op) = root.op else {
        return None;
    };
    let [x, y] = comp.params.as_slice() else {
        return None;
    };
    let both = root.operands.as_slice() == [*x, *y] || root.operands.as_slice() == [*y, *x];
    let ty = root.shape.as_array()?.ty;
    let same = |&&p: &&InstrId| {
        b.module.instrs[p]
            .shape
            .as_array()
            .is_some_and(|a| a.ty == ty)
    };
    (both && [x, y].iter().all(same)).then_some((op, ty))
}

impl Work<'_> {
    /// The scalar that changes nothing in a reduction of `ty` by `body`, when there is one.
    pub(super) fn neutral(&mut self, body: CompId, ty: PrimitiveType) -> Option<InstrId> {
        let (op, of) = monoid(&self.b, body)?;
        if of != ty {
            return None;
        }
        match op {
            BinaryOp::Maximum if !ty.is_complex() => Some(self.b.lowest(ty)),
            BinaryOp::Minimum if !ty.is_complex() => Some(self.b.highest(ty)),
            op => identity(op, ty).map(|number| self.b.constant_number(ty, number)),
        }
    }

    /// `data`, which has the dimensions `dims`, with `fill` where it is not real.
    pub(super) fn fill(
        &mut self,
        data: InstrId,
        sizes: &[(usize, InstrId)],
        fill: InstrId,
    ) -> Result<InstrId> {
        let dims = self.b.dims(data)?;
        let Some(real) = real(&mut self.b, &dims, sizes)? else {
            return Ok(data);
        };
        let fill = self.b.broadcast_scalar(fill, &dims)?;
        self.b.select(real, data, fill)
    }

    /// The sizes of these dimensions of an operand that are dynamic.
    pub(super) fn open_sizes(&self, operand: usize, dims: &[usize]) -> Vec<(usize, InstrId)> {
        let sizes = &self.operands[operand].sizes;
        let open = dims.iter().filter_map(|&d| Some((d, sizes[d]?)));
        open.collect()
    }

    /// An operand with `fill` where it is not real in these dimensions.
    pub(super) fn filled(
        &mut self,
        operand: usize,
        dims: &[usize],
        fill: InstrId,
    ) -> Result<InstrId> {
        let sizes = self.open_sizes(operand, dims);
        self.fill(self.operands[operand].data, &sizes, fill)
    }

    /// The first element along `dim` at all positions, where the size is one and `joined` is more.
    pub(super) fn repeated(
        &mut self,
        data: InstrId,
        dim: usize,
        size: InstrId,
        joined: InstrId,
    ) -> Result<InstrId> {
        if size == joined {
            return Ok(data);
        }
        let dims = self.b.dims(data)?;
        let one = self.number(1);
        let is_one = self.b.compare(ComparisonDirection::Eq, size, one)?;
        let is_more = self.b.compare(ComparisonDirection::Gt, joined, one)?;
        let repeats = self.b.binary(BinaryOp::And, is_one, is_more)?;
        let repeats = self.b.broadcast_scalar(repeats, &dims)?;
        let slices = dims.iter().enumerate().map(|(d, &size)| SliceDim {
            start: 0,
            limit: if d == dim { 1 } else { size },
            stride: 1,
        });
        let slices: Vec<SliceDim> = slices.collect();
        let first = self.b.slice(data, &slices)?;
        let mut rest = dims.clone();
        rest.remove(dim);
        let first = self.b.reshape(first, &rest)?;
        let kept: Vec<usize> = (0..dims.len()).filter(|&d| d != dim).collect();
        let everywhere = self.b.broadcast(first, &kept, &dims)?;
        self.b.select(repeats, everywhere, data)
    }

    /// A reducer of values that are real or not: a pred more among accumulators and elements.
    pub(super) fn guarded(&mut self, body: CompId) -> Result<CompId> {
        let params = &self.b.module.comps[body].params;
        let params = params.iter().map(|&p| self.b.module.shape(p).clone());
        let mut params: Vec<Shape> = params.collect();
        let n = params.len() / 2;
        let pred = Shape::scalar(PrimitiveType::Pred);
        params.insert(n, pred.clone());
        params.push(pred);
        let name = format!("real_only.{}", self.b.module.comps.len());
        self.b.computation(name, &params, |b, p| {
            let (left, right) = (p[n], p[2 * n + 1]);
            let (before, after) = (&p[..n], &p[n + 1..2 * n + 1]);
            let called = b.call(body, &[before, after].concat())?;
            let results = match n {
                1 => vec![called],
                _ => b.elements(called)?,
            };
            let mut parts = Vec::new();
            for (i, &result) in results.iter().enumerate() {
                let ty = b.ty(result)?;
                let (alone, other) = (b.convert(before[i], ty)?, b.convert(after[i], ty)?);
                let taken = b.select(right, result, alone)?;
                parts.push(b.select(left, taken, other)?);
            }
            parts.push(b.binary(BinaryOp::Or, left, right)?);
            b.tuple(&parts)
        })
    }

    /// A comparator of values that are real or not, which come after all others.
    pub(super) fn real_first(&mut self, body: CompId) -> Result<CompId> {
        let params = &self.b.module.comps[body].params;
        let params = params.iter().map(|&p| self.b.module.shape(p).clone());
        let mut params: Vec<Shape> = params.collect();
        let n = params.len();
        let pred = Shape::scalar(PrimitiveType::Pred);
        params.extend([pred.clone(), pred]);
        let name = format!("real_first.{}", self.b.module.comps.len());
        self.b.computation(name, &params, |b, p| {
            let before = b.call(body, &p[..n])?;
            let beyond = b.unary(UnaryOp::Not, p[n + 1])?;
            let before = b.binary(BinaryOp::Or, beyond, before)?;
            b.binary(BinaryOp::And, p[n], before)
        })
    }
}
