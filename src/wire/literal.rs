//! Literals on the wire (`LiteralProto`).
//!
//! The proto holds elements in the order of its shape's layout, types below a byte one a byte with
//! zeros above their bits.

use crate::base::Result;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::literal::device_form::from_device;
use crate::literal::device_form::to_device;
use crate::proto::xla as pb;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;
use crate::shape::Shape;
use crate::wire::number::bad;
use crate::wire::number::unsupported;
use crate::wire::shape::decode_array;
use crate::wire::shape::decode_shape;
use crate::wire::shape::encode_array;
use crate::wire::shape::encode_shape;

/// The literal a proto describes.
///
/// # Errors
/// `XA1004` when the shape breaks a rule or the number of elements is not the shape's.
pub fn decode_literal(proto: &pb::LiteralProto) -> Result<Literal> {
    let shape = proto.shape.as_ref();
    let shape = shape.ok_or_else(|| bad("a literal has no shape"))?;
    match decode_shape(shape)? {
        Shape::Token => Ok(Literal::Token),
        Shape::Opaque => Err(unsupported("opaque literals are not supported")),
        Shape::Tuple(elements) => {
            if elements.len() != proto.tuple_literals.len() {
                return Err(bad(format!(
                    "a literal of a tuple of {} elements has {}",
                    elements.len(),
                    proto.tuple_literals.len()
                )));
            }
            let elements = proto.tuple_literals.iter();
            Ok(Literal::Tuple(
                elements.map(decode_literal).collect::<Result<_>>()?,
            ))
        }
        Shape::Array(_) => Ok(Literal::Array(decode_array_literal(
            proto,
            decode_array(shape)?,
        )?)),
    }
}

fn decode_array_literal(proto: &pb::LiteralProto, shape: ArrayShape) -> Result<ArrayLiteral> {
    if shape.is_dynamic() {
        return Err(unsupported(
            "literals with dynamic dimensions are not supported",
        ));
    }
    let bytes = physical_bytes(proto, shape.ty);
    // Packed types have a byte an element here, but packed bytes of the right size are read too.
    if !shape.ty.is_packed() || bytes.len() != shape.element_count() {
        return from_device(&bytes, &shape);
    }
    let ordered = from_device(&bytes, &shape.with_type(PrimitiveType::U8))?;
    let bits = shape.ty.bit_width();
    let mask = (1u8 << bits) - 1;
    let extend = |byte: &u8| match shape.ty.is_signed() && byte & (1 << (bits - 1)) != 0 {
        true => byte | !mask,
        false => byte & mask,
    };
    let elements = ordered.bytes().iter().map(extend).collect();
    Ok(ArrayLiteral::new(shape, elements))
}

fn le<const N: usize, T: Copy>(values: &[T], to: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|&v| to(v)).collect()
}

/// The elements of a literal proto as little-endian bytes, in the order they have there.
fn physical_bytes(proto: &pb::LiteralProto, ty: PrimitiveType) -> Vec<u8> {
    use PrimitiveType as P;
    match ty {
        P::Pred => proto.preds.iter().map(|&b| u8::from(b)).collect(),
        P::S32 => le(&proto.s32s, i32::to_le_bytes),
        P::S64 => le(&proto.s64s, i64::to_le_bytes),
        P::U32 => le(&proto.u32s, u32::to_le_bytes),
        P::U64 => le(&proto.u64s, u64::to_le_bytes),
        P::F32 => le(&proto.f32s, f32::to_le_bytes),
        P::C64 => le(&proto.c64s, f32::to_le_bytes),
        P::F64 => le(&proto.f64s, f64::to_le_bytes),
        P::C128 => le(&proto.c128s, f64::to_le_bytes),
        P::S1 => proto.s1s.clone(),
        P::S2 => proto.s2s.clone(),
        P::S4 => proto.s4s.clone(),
        P::S8 => proto.s8s.clone(),
        P::S16 => proto.s16s.clone(),
        P::U1 => proto.u1s.clone(),
        P::U2 => proto.u2s.clone(),
        P::U4 => proto.u4s.clone(),
        P::U8 => proto.u8s.clone(),
        P::U16 => proto.u16s.clone(),
        P::F16 => proto.f16s.clone(),
        P::BF16 => proto.bf16s.clone(),
        P::F4E2M1FN => proto.f4e2m1fns.clone(),
        P::F6E2M3FN => proto.f6e2m3fns.clone(),
        P::F6E3M2FN => proto.f6e3m2fns.clone(),
        P::F8E3M4 => proto.f8e3m4s.clone(),
        P::F8E4M3 => proto.f8e4m3s.clone(),
        P::F8E4M3FN => proto.f8e4m3fns.clone(),
        P::F8E4M3B11FNUZ => proto.f8e4m3b11fnuzs.clone(),
        P::F8E4M3FNUZ => proto.f8e4m3fnuzs.clone(),
        P::F8E5M2 => proto.f8e5m2s.clone(),
        P::F8E5M2FNUZ => proto.f8e5m2fnuzs.clone(),
        P::F8E8M0FNU => proto.f8e8m0fnus.clone(),
    }
}

/// The proto of a literal, each array in row-major order.
pub fn encode_literal(literal: &Literal) -> pb::LiteralProto {
    match literal {
        Literal::Array(array) => encode_array_literal(array, array.shape()),
        Literal::Tuple(elements) => pb::LiteralProto {
            shape: Some(encode_shape(&literal.shape())),
            tuple_literals: elements.iter().map(encode_literal).collect(),
            ..Default::default()
        },
        Literal::Token => pb::LiteralProto {
            shape: Some(encode_shape(&Shape::Token)),
            ..Default::default()
        },
    }
}

fn from_le<const N: usize, T>(bytes: &[u8], from: impl Fn([u8; N]) -> T) -> Vec<T> {
    let chunks = bytes.as_chunks::<N>().0;
    chunks.iter().map(|&chunk| from(chunk)).collect()
}

/// The proto of an array, its elements in the order of the layout of `shape`.
fn encode_array_literal(array: &ArrayLiteral, shape: &ArrayShape) -> pb::LiteralProto {
    use PrimitiveType as P;
    let bytes = match shape.ty.is_packed() {
        false => to_device(array, shape),
        true => {
            let mask = (1u8 << shape.ty.bit_width()) - 1;
            let masked = array.bytes().iter().map(|byte| byte & mask).collect();
            let bytes = shape.with_type(PrimitiveType::U8);
            to_device(&ArrayLiteral::new(bytes.clone(), masked), &bytes)
        }
    };
    let mut shape = shape.clone();
    shape.layout = Some(shape.layout_or_default());
    let mut proto = pb::LiteralProto {
        shape: Some(encode_array(&shape)),
        ..Default::default()
    };
    match array.ty() {
        P::Pred => proto.preds = bytes.iter().map(|&b| b != 0).collect(),
        P::S32 => proto.s32s = from_le(&bytes, i32::from_le_bytes),
        P::S64 => proto.s64s = from_le(&bytes, i64::from_le_bytes),
        P::U32 => proto.u32s = from_le(&bytes, u32::from_le_bytes),
        P::U64 => proto.u64s = from_le(&bytes, u64::from_le_bytes),
        P::F32 => proto.f32s = from_le(&bytes, f32::from_le_bytes),
        P::C64 => proto.c64s = from_le(&bytes, f32::from_le_bytes),
        P::F64 => proto.f64s = from_le(&bytes, f64::from_le_bytes),
        P::C128 => proto.c128s = from_le(&bytes, f64::from_le_bytes),
        P::S1 => proto.s1s = bytes,
        P::S2 => proto.s2s = bytes,
        P::S4 => proto.s4s = bytes,
        P::S8 => proto.s8s = bytes,
        P::S16 => proto.s16s = bytes,
        P::U1 => proto.u1s = bytes,
        P::U2 => proto.u2s = bytes,
        P::U4 => proto.u4s = bytes,
        P::U8 => proto.u8s = bytes,
        P::U16 => proto.u16s = bytes,
        P::F16 => proto.f16s = bytes,
        P::BF16 => proto.bf16s = bytes,
        P::F4E2M1FN => proto.f4e2m1fns = bytes,
        P::F6E2M3FN => proto.f6e2m3fns = bytes,
        P::F6E3M2FN => proto.f6e3m2fns = bytes,
        P::F8E3M4 => proto.f8e3m4s = bytes,
        P::F8E4M3 => proto.f8e4m3s = bytes,
        P::F8E4M3FN => proto.f8e4m3fns = bytes,
        P::F8E4M3B11FNUZ => proto.f8e4m3b11fnuzs = bytes,
        P::F8E4M3FNUZ => proto.f8e4m3fnuzs = bytes,
        P::F8E5M2 => proto.f8e5m2s = bytes,
        P::F8E5M2FNUZ => proto.f8e5m2fnuzs = bytes,
        P::F8E8M0FNU => proto.f8e8m0fnus = bytes,
    }
    proto
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Layout;

    fn sample(ty: PrimitiveType, layout: Layout) -> ArrayLiteral {
        let mut shape = ArrayShape::new(ty, [3, 5]);
        shape.layout = Some(layout);
        let bits = ty.bit_width().min(8);
        let count = 15 * ty.byte_width();
        let mask = if bits == 8 { 255 } else { (1u8 << bits) - 1 };
        let mut data: Vec<u8> = (0..count).map(|i| (i * 7 + 1) as u8 & mask).collect();
        if ty == PrimitiveType::Pred {
            data.iter_mut().for_each(|b| *b &= 1);
        }
        if ty.is_signed() && bits < 8 {
            let sign = 1u8 << (bits - 1);
            data.iter_mut()
                .filter(|b| **b & sign != 0)
                .for_each(|b| *b |= !mask);
        }
        ArrayLiteral::new(shape, data)
    }

    #[test]
    fn round_trips_every_element_type_in_both_layouts() {
        for &ty in PrimitiveType::ALL {
            for order in [[1, 0], [0, 1]] {
                let array = sample(ty, Layout::from_minor_to_major(order));
                let literal = Literal::Array(array.clone());
                let back = decode_literal(&encode_literal(&literal)).unwrap();
                assert_eq!(back, literal, "{ty} {order:?}");
            }
        }
    }

    #[test]
    fn column_major_bytes_are_transposed() {
        let mut shape = ArrayShape::new(PrimitiveType::S8, [2, 3]);
        shape.layout = Some(Layout::from_minor_to_major([0, 1]));
        let array = ArrayLiteral::new(shape, vec![1, 2, 3, 4, 5, 6]);
        let proto = encode_literal(&Literal::Array(array));
        assert_eq!(proto.s8s, [1, 4, 2, 5, 3, 6]);
    }

    #[test]
    fn refuses_wrong_sizes() {
        let array = sample(PrimitiveType::F32, Layout::row_major(2));
        let mut proto = encode_literal(&Literal::Array(array));
        proto.f32s.pop();
        assert!(decode_literal(&proto).is_err());
        proto.shape = None;
        assert!(decode_literal(&proto).is_err());
        let tuple = encode_literal(&Literal::Tuple(vec![Literal::Token]));
        let broken = pb::LiteralProto {
            tuple_literals: Vec::new(),
            ..tuple
        };
        assert!(decode_literal(&broken).is_err());
    }
}
