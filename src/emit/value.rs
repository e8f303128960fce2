//! What an element of each element type is in a register, and how it is read and written.
//!
//! Predicates are `i1`; integers of up to eight bits are `i8` holding the sign- or zero-extended
//! value; floats of up to 16 bits keep their storage bits in an integer register (so that moving
//! them is exact) and are widened where they are computed with; complex values are two registers.
//! Sub-byte arrays are packed, low bits first.

use smallvec::SmallVec;

use crate::emit::convert;
use crate::kernel::BinaryOp;
use crate::kernel::BufId;
use crate::kernel::CastOp;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::ExprKind;
use crate::kernel::INDEX;
use crate::kernel::KernelBuilder;
use crate::kernel::Scalar;
use crate::kernel::Ty;
use crate::shape::ElementKind;
use crate::shape::PrimitiveType;

/// One element, or one in each lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Any type but complex.
    One(ExprId),
    /// Real and imaginary part.
    Pair(ExprId, ExprId),
}

impl Value {
    /// The register of a value that is not complex; the real part of one that is.
    pub fn one(self) -> ExprId {
        match self {
            Self::One(x) | Self::Pair(x, _) => x,
        }
    }
    /// Real and imaginary part; the same register twice for a value that is not complex.
    pub fn pair(self) -> (ExprId, ExprId) {
        match self {
            Self::One(x) => (x, x),
            Self::Pair(re, im) => (re, im),
        }
    }
    /// Its registers.
    pub fn registers(self) -> SmallVec<[ExprId; 2]> {
        match self {
            Self::One(x) => SmallVec::from_slice(&[x]),
            Self::Pair(re, im) => SmallVec::from_slice(&[re, im]),
        }
    }
    /// A value from as many registers as the type has; the inverse of [`Value::registers`].
    pub fn from_registers(registers: &[ExprId]) -> Self {
        match registers {
            [re, im] => Self::Pair(*re, *im),
            _ => Self::One(registers[0]),
        }
    }
    /// Applies a function to each register.
    #[must_use]
    pub fn map(self, mut f: impl FnMut(ExprId) -> ExprId) -> Self {
        match self {
            Self::One(x) => Self::One(f(x)),
            Self::Pair(re, im) => Self::Pair(f(re), f(im)),
        }
    }
    /// Applies a function to each register and its partner.
    #[must_use]
    pub fn zip(self, other: Self, mut f: impl FnMut(ExprId, ExprId) -> ExprId) -> Self {
        match (self, other) {
            (Self::Pair(a, b), Self::Pair(c, d)) => Self::Pair(f(a, c), f(b, d)),
            (a, b) => Self::One(f(a.one(), b.one())),
        }
    }
    /// The value in that many lanes.
    #[must_use]
    pub fn splat(self, b: &mut KernelBuilder, lanes: u16) -> Self {
        self.map(|x| b.splat(x, lanes))
    }
    /// One lane; a value with one lane is itself.
    #[must_use]
    pub fn lane(self, b: &mut KernelBuilder, lane: u16) -> Self {
        self.map(|x| b.extract(x, lane))
    }
    /// A vector of these values.
    pub fn gather(b: &mut KernelBuilder, lanes: &[Self]) -> Self {
        let first: Vec<ExprId> = lanes.iter().map(|v| v.pair().0).collect();
        let re = b.vector(&first);
        match lanes[0] {
            Self::One(_) => Self::One(re),
            Self::Pair(..) => {
                let second: Vec<ExprId> = lanes.iter().map(|v| v.pair().1).collect();
                Self::Pair(re, b.vector(&second))
            }
        }
    }
    /// Lane by lane, `self` where the condition holds, else `other`.
    #[must_use]
    pub fn select(self, b: &mut KernelBuilder, cond: ExprId, other: Self) -> Self {
        self.zip(other, |x, y| b.select(cond, x, y))
    }
}

/// The register type of an element; of one part of a complex element.
pub fn register(ty: PrimitiveType) -> Scalar {
    match (ty.kind(), ty.bit_width()) {
        (ElementKind::Pred, _) => Scalar::I1,
        (ElementKind::Complex, 64) => Scalar::F32,
        (ElementKind::Complex, _) => Scalar::F64,
        (ElementKind::Float, 32) => Scalar::F32,
        (ElementKind::Float, 64) => Scalar::F64,
        (_, 0..=8) => Scalar::I8,
        (_, 16) => Scalar::I16,
        (_, 32) => Scalar::I32,
        _ => Scalar::I64,
    }
}

/// The element type of a kernel buffer that holds an array of that type.
pub fn storage(ty: PrimitiveType) -> Scalar {
    match register(ty) {
        Scalar::I1 => Scalar::I8,
        other => other,
    }
}

/// How many buffer elements an array of `count` elements takes.
pub fn storage_count(ty: PrimitiveType, count: u64) -> u64 {
    if ty.is_complex() {
        count * 2
    } else {
        count.div_ceil(per_byte(ty))
    }
}

/// Elements that share a byte; one for every type of at least six bits.
pub fn per_byte(ty: PrimitiveType) -> u64 {
    8u64.checked_div(ty.bit_width_in_memory() as u64)
        .filter(|&n| n > 1)
        .unwrap_or(1)
}

/// Bytes of one element in a register, at least one.
pub fn register_bytes(ty: PrimitiveType) -> u64 {
    register(ty).bytes()
}

/// A constant of that type with the bits of one literal element, in one lane.
pub fn constant(b: &mut KernelBuilder, ty: PrimitiveType, bytes: &[u8]) -> Value {
    let word = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0u64, |acc, &byte| acc << 8 | u64::from(byte))
    };
    let reg = Ty::scalar(register(ty));
    if ty.is_complex() {
        let (re, im) = bytes.split_at(bytes.len() / 2);
        return Value::Pair(b.const_bits(reg, word(re)), b.const_bits(reg, word(im)));
    }
    let bits = word(bytes);
    let bits = if ty == PrimitiveType::Pred {
        u64::from(bits != 0)
    } else {
        bits
    };
    Value::One(b.const_bits(reg, bits))
}

/// Zero (false) of that type, in one lane.
pub fn zero(b: &mut KernelBuilder, ty: PrimitiveType) -> Value {
    let bytes = vec![0; ty.byte_width()];
    constant(b, ty, &bytes)
}

/// Where the lanes of an access lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Number of lanes.
    pub lanes: u16,
    /// Distance between the elements of neighbouring lanes.
    pub stride: i64,
    /// Whether the first position is a multiple of the number of lanes.
    pub aligned: bool,
}

impl Access {
    /// A single element.
    pub const ONE: Self = Self {
        lanes: 1,
        stride: 1,
        aligned: true,
    };
    /// Neighbouring elements.
    pub fn run(lanes: u16, aligned: bool) -> Self {
        Self {
            lanes,
            stride: 1,
            aligned,
        }
    }
}

/// Reads the elements from `position` (in elements of the array) on.
pub fn load(
    b: &mut KernelBuilder,
    buf: BufId,
    ty: PrimitiveType,
    position: ExprId,
    access: Access,
) -> Value {
    let per = per_byte(ty) as u16;
    let contiguous = access.stride == 1 || access.lanes == 1;
    let whole_bytes = access.aligned && access.lanes.is_multiple_of(per);
    if access.lanes > 1 && (!contiguous || (per > 1 && !whole_bytes)) {
        let lanes: Vec<Value> = (0..i64::from(access.lanes))
            .map(|l| {
                let at = b.add_const(position, l * access.stride);
                load(b, buf, ty, at, Access::ONE)
            })
            .collect();
        return Value::gather(b, &lanes);
    }
    if ty.is_complex() {
        return load_complex(b, buf, position, access.lanes);
    }
    if per > 1 {
        let bits = if access.lanes == 1 {
            load_sub_byte(b, buf, ty, position)
        } else {
            load_sub_bytes(b, buf, ty, position, access.lanes)
        };
        return Value::One(convert::wrap(b, ty, bits));
    }
    let raw = b.load(buf, position, access.lanes);
    if ty == PrimitiveType::Pred {
        let zero = b.int(b.ty(raw), 0);
        return Value::One(b.cmp(CmpOp::INe, raw, zero));
    }
    Value::One(raw)
}

fn load_complex(b: &mut KernelBuilder, buf: BufId, position: ExprId, lanes: u16) -> Value {
    let at = b.mul_const(position, 2);
    if lanes == 1 {
        let re = b.load(buf, at, 1);
        let next = b.add_const(at, 1);
        return Value::Pair(re, b.load(buf, next, 1));
    }
    let both = b.load(buf, at, lanes * 2);
    let even: Vec<u16> = (0..lanes).map(|l| 2 * l).collect();
    let odd: Vec<u16> = (0..lanes).map(|l| 2 * l + 1).collect();
    let re = b.shuffle(both, both, &even);
    Value::Pair(re, b.shuffle(both, both, &odd))
}

/// One element of a packed array, upper bits not cleared.
fn load_sub_byte(b: &mut KernelBuilder, buf: BufId, ty: PrimitiveType, position: ExprId) -> ExprId {
    let per = per_byte(ty) as i64;
    let byte = b.div_const(position, per);
    let slot = b.rem_const(position, per);
    let shift = b.mul_const(slot, ty.bit_width() as i64);
    let shift = b.cast(CastOp::Trunc, shift, Scalar::I8);
    let word = b.load(buf, byte, 1);
    b.binary(BinaryOp::LShr, word, shift)
}

/// Neighbouring elements of a packed array from a whole byte on, upper bits not cleared.
fn load_sub_bytes(
    b: &mut KernelBuilder,
    buf: BufId,
    ty: PrimitiveType,
    position: ExprId,
    lanes: u16,
) -> ExprId {
    let per = per_byte(ty) as u16;
    let byte = b.div_const(position, i64::from(per));
    let bytes = b.load(buf, byte, lanes / per);
    let spread = if lanes == per {
        b.splat(bytes, lanes)
    } else {
        let picks: Vec<u16> = (0..lanes).map(|l| l / per).collect();
        b.shuffle(bytes, bytes, &picks)
    };
    let width = ty.bit_width() as u64;
    let amounts: SmallVec<[u64; 8]> = (0..u64::from(lanes))
        .map(|l| l % u64::from(per) * width)
        .collect();
    let kind = ExprKind::ConstVector(amounts);
    let amounts = b.expr(kind, Ty::vector(Scalar::I8, lanes));
    b.binary(BinaryOp::LShr, spread, amounts)
}

/// Writes `lanes` neighbouring elements. Of a packed array, whole bytes from a whole byte on.
pub fn store(
    b: &mut KernelBuilder,
    buf: BufId,
    ty: PrimitiveType,
    position: ExprId,
    lanes: u16,
    value: Value,
) {
    let value = value.splat(b, lanes);
    match value {
        Value::Pair(re, im) if lanes == 1 => {
            let at = b.mul_const(position, 2);
            b.store(buf, at, re);
            let next = b.add_const(at, 1);
            b.store(buf, next, im);
        }
        Value::Pair(re, im) => {
            let at = b.mul_const(position, 2);
            let picks: Vec<u16> = (0..lanes).flat_map(|l| [l, lanes + l]).collect();
            let both = b.shuffle(re, im, &picks);
            b.store(buf, at, both);
        }
        Value::One(x) if per_byte(ty) > 1 => {
            let per = per_byte(ty) as u16;
            let bytes = pack(b, ty, x);
            let byte = b.div_const(position, i64::from(per));
            b.store(buf, byte, bytes);
        }
        Value::One(x) => {
            let raw = if ty == PrimitiveType::Pred {
                b.cast(CastOp::ZExt, x, Scalar::I8)
            } else {
                x
            };
            b.store(buf, position, raw);
        }
    }
}

/// Packs the lanes of a sub-byte type into bytes.
fn pack(b: &mut KernelBuilder, ty: PrimitiveType, value: ExprId) -> ExprId {
    let per = per_byte(ty) as u16;
    let lanes = b.ty(value).lanes;
    let width = ty.bit_width() as i64;
    let mask = b.int(b.ty(value), (1 << width) - 1);
    let value = b.binary(BinaryOp::And, value, mask);
    let mut bytes = None;
    for slot in 0..per {
        let part = if lanes == per {
            b.extract(value, slot)
        } else {
            let picks: Vec<u16> = (0..lanes / per).map(|byte| byte * per + slot).collect();
            b.shuffle(value, value, &picks)
        };
        let amount = b.int(b.ty(part), i64::from(slot) * width);
        let part = b.binary(BinaryOp::Shl, part, amount);
        bytes = Some(match bytes {
            None => part,
            Some(sum) => b.binary(BinaryOp::Or, sum, part),
        });
    }
    bytes.expect("a byte has at least two sub-byte elements")
}

/// Writes a few elements of a packed array, from a whole byte on; the rest of the last byte is zero.
pub fn store_packed(
    b: &mut KernelBuilder,
    buf: BufId,
    ty: PrimitiveType,
    position: ExprId,
    values: &[Value],
) {
    let per = per_byte(ty) as usize;
    let zero = zero(b, ty).one();
    let first = b.div_const(position, per as i64);
    for (i, values) in values.chunks(per).enumerate() {
        let mut lanes: Vec<ExprId> = values.iter().map(|v| v.one()).collect();
        lanes.resize(per, zero);
        let vector = b.vector(&lanes);
        let byte = pack(b, ty, vector);
        let at = b.add_const(first, i as i64);
        b.store(buf, at, byte);
    }
}

/// Writes one element of a packed array into its byte, whose other elements stay.
pub fn store_single(
    b: &mut KernelBuilder,
    buf: BufId,
    ty: PrimitiveType,
    position: ExprId,
    value: Value,
) {
    let per = per_byte(ty) as i64;
    if per == 1 {
        store(b, buf, ty, position, 1, value);
        return;
    }
    let width = ty.bit_width() as i64;
    let byte = b.div_const(position, per);
    let slot = b.rem_const(position, per);
    let shift = b.mul_const(slot, width);
    let shift = b.cast(CastOp::Trunc, shift, Scalar::I8);
    let old = b.load(buf, byte, 1);
    let mask = b.int(b.ty(old), (1 << width) - 1);
    let element = b.binary(BinaryOp::And, value.one(), mask);
    let element = b.binary(BinaryOp::Shl, element, shift);
    let hole = b.binary(BinaryOp::Shl, mask, shift);
    let hole = b.unary(crate::kernel::UnaryOp::Not, hole);
    let others = b.binary(BinaryOp::And, old, hole);
    let whole = b.binary(BinaryOp::Or, others, element);
    b.store(buf, byte, whole);
}

/// An integer register (of that element type) as an index: sign- or zero-extended to `i64`.
pub fn to_index(b: &mut KernelBuilder, ty: PrimitiveType, value: ExprId) -> ExprId {
    let op = if ty.is_signed() {
        CastOp::SExt
    } else {
        CastOp::ZExt
    };
    b.cast(op, value, INDEX.scalar)
}
