//! The bits of values: `bitcast-convert` between types of equal and of different widths.

use crate::emit::convert;
use crate::emit::elemental::Elemental;
use crate::emit::elemental::array;
use crate::emit::index::Index;
use crate::emit::value::Value;
use crate::emit::value::register;
use crate::hlo::Instr;
use crate::kernel::BinaryOp;
use crate::kernel::CastOp;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Scalar;
use crate::shape::PrimitiveType;

/// The bits of an element in an integer register of at least its width, zeros above.
fn bits(b: &mut KernelBuilder, ty: PrimitiveType, v: ExprId) -> ExprId {
    if ty == PrimitiveType::Pred {
        return b.cast(CastOp::ZExt, v, Scalar::I8);
    }
    let int = b.ty(v).with_scalar(register(ty).as_int());
    let word = b.bitcast(v, int);
    if ty.bit_width() >= 8 {
        return word;
    }
    let mask = b.int(int, (1 << ty.bit_width()) - 1);
    b.binary(BinaryOp::And, word, mask)
}

/// The element of those bits; what lies above its width is dropped.
fn from_bits(b: &mut KernelBuilder, ty: PrimitiveType, word: ExprId) -> ExprId {
    if ty == PrimitiveType::Pred {
        let zero = b.int(b.ty(word), 0);
        return b.cmp(CmpOp::INe, word, zero);
    }
    let scalar = register(ty);
    let word = resize(b, word, scalar.as_int());
    let value = b.bitcast(word, b.ty(word).with_scalar(scalar));
    if ty.is_integer() {
        convert::wrap(b, ty, value)
    } else if ty.bit_width() < 8 {
        let mask = b.int(b.ty(value), (1 << ty.bit_width()) - 1);
        b.binary(BinaryOp::And, value, mask)
    } else {
        value
    }
}

fn resize(b: &mut KernelBuilder, word: ExprId, to: Scalar) -> ExprId {
    if b.ty(word).scalar.bits() > to.bits() {
        b.cast(CastOp::Trunc, word, to)
    } else {
        b.cast(CastOp::ZExt, word, to)
    }
}

/// The same bits as another type of the same width.
pub fn reinterpret(
    b: &mut KernelBuilder,
    from: PrimitiveType,
    to: PrimitiveType,
    v: Value,
) -> Option<Value> {
    if from == to {
        return Some(v);
    }
    if from.is_complex() || to.is_complex() || from.bit_width() != to.bit_width() {
        return None;
    }
    let word = bits(b, from, v.one());
    Some(Value::One(from_bits(b, to, word)))
}

impl Elemental<'_> {
    /// A `bitcast-convert` that adds or removes a minor dimension.
    pub fn bitcast_convert(
        &self,
        b: &mut KernelBuilder,
        instr: &Instr,
        index: &Index,
    ) -> Option<Value> {
        let source = instr.operands[0];
        let (from, shape) = (self.ty(source), array(&instr.shape));
        let to = shape.ty;
        if from.is_complex() || to.is_complex() {
            return None;
        }
        let rank = shape.dims.len();
        if from.bit_width() > to.bit_width() {
            if index.lanes > 1 {
                return None;
            }
            let wide = Index::scalar(index.at[..rank - 1].iter().copied());
            let whole = self.value(b, source, &wide).one();
            let word = bits(b, from, whole);
            let amount = b.mul_const(index.at[rank - 1], to.bit_width() as i64);
            let amount = resize(b, amount, b.ty(word).scalar);
            let part = b.binary(BinaryOp::LShr, word, amount);
            return Some(Value::One(from_bits(b, to, part)));
        }
        let parts = to.bit_width() / from.bit_width();
        let mut sum: Option<ExprId> = None;
        for part in 0..parts {
            let mut narrow = index.clone();
            narrow.at.push(b.index(part as i64));
            narrow.linear = None;
            let element = self.value(b, source, &narrow).one();
            let word = bits(b, from, element);
            let word = resize(b, word, register(to).as_int());
            let amount = b.int(b.ty(word), (part * from.bit_width()) as i64);
            let word = b.binary(BinaryOp::Shl, word, amount);
            sum = Some(match sum {
                None => word,
                Some(sum) => b.binary(BinaryOp::Or, sum, word),
            });
        }
        sum.map(|word| Value::One(from_bits(b, to, word)))
    }
}
