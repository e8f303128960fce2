//! Elements of arrays as numbers, and arrays as strings of bits.

use crate::literal::ArrayLiteral;
use crate::literal::number;
use crate::literal::number::Number;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;

/// The element at a row-major position.
pub(super) fn get(array: &ArrayLiteral, linear: usize) -> Number {
    number::decode(array.ty(), array.element(linear))
}

/// All elements, in row-major order.
pub(super) fn numbers(array: &ArrayLiteral) -> Vec<Number> {
    (0..array.len()).map(|i| get(array, i)).collect()
}

/// All elements as f64 (the real part of complex ones), in row-major order.
pub(super) fn floats(array: &ArrayLiteral) -> Vec<f64> {
    let as_float = |x| match x {
        Number::Int(x) => x as f64,
        Number::Float(x) | Number::Complex(x, _) => x,
    };
    (0..array.len()).map(|i| as_float(get(array, i))).collect()
}

/// All elements as pairs of real and imaginary part, in row-major order.
pub(super) fn pairs(array: &ArrayLiteral) -> Vec<(f64, f64)> {
    let as_pair = |x| match x {
        Number::Complex(re, im) => (re, im),
        Number::Float(re) => (re, 0.0),
        Number::Int(x) => (x as f64, 0.0),
    };
    (0..array.len()).map(|i| as_pair(get(array, i))).collect()
}

/// An array whose element at each row-major position is given by a function.
pub(super) fn build(shape: &ArrayShape, mut element: impl FnMut(usize) -> Number) -> ArrayLiteral {
    let width = shape.ty.byte_width();
    let mut data = vec![0; shape.element_count() * width];
    for (i, out) in data.chunks_exact_mut(width).enumerate() {
        number::encode(shape.ty, element(i), out);
    }
    ArrayLiteral::new(shape.clone(), data)
}

/// A rank-0 array.
pub(super) fn scalar(ty: PrimitiveType, x: Number) -> ArrayLiteral {
    build(&ArrayShape::scalar(ty), |_| x)
}

/// A number as the type holds it: rounded, wrapped.
pub(super) fn round_to(ty: PrimitiveType, x: Number) -> Number {
    match (ty, x) {
        (PrimitiveType::F64, Number::Float(_)) | (PrimitiveType::C128, Number::Complex(..)) => x,
        (PrimitiveType::F32, Number::Float(v)) => Number::Float(f64::from(v as f32)),
        (_, Number::Int(v)) if ty.is_integer() => Number::Int(number::wrap(ty, v)),
        _ => {
            let mut bytes = [0; 16];
            let out = &mut bytes[..ty.byte_width()];
            number::encode(ty, x, out);
            number::decode(ty, out)
        }
    }
}

/// An array whose element at each position has the bytes of another array's element.
pub(super) fn gather_bytes(
    shape: &ArrayShape,
    source: &ArrayLiteral,
    mut from: impl FnMut(usize) -> usize,
) -> ArrayLiteral {
    let width = shape.ty.byte_width();
    let bytes = source.bytes();
    let mut data = vec![0; shape.element_count() * width];
    for (i, out) in data.chunks_exact_mut(width).enumerate() {
        let at = from(i) * width;
        out.copy_from_slice(&bytes[at..at + width]);
    }
    ArrayLiteral::new(shape.clone(), data)
}

/// The same bits as elements of another type; a change of width splits or joins elements of the
/// minor-most dimension, low bits first.
pub(super) fn bitcast_convert(shape: &ArrayShape, input: &ArrayLiteral) -> ArrayLiteral {
    let (from, to) = (input.ty().bit_width(), shape.ty.bit_width());
    let load = |i: usize| {
        let mut buffer = [0; 16];
        let element = input.element(i);
        buffer[..element.len()].copy_from_slice(element);
        let mask = if from == 128 {
            u128::MAX
        } else {
            (1 << from) - 1
        };
        u128::from_le_bytes(buffer) & mask
    };
    let width = shape.ty.byte_width();
    let mut data = vec![0; shape.element_count() * width];
    for (i, out) in data.chunks_exact_mut(width).enumerate() {
        let bits = if from >= to {
            let parts = from / to;
            load(i / parts) >> (i % parts * to)
        } else {
            let parts = to / from;
            (0..parts).fold(0, |bits, part| {
                bits | load(i * parts + part) << (part * from)
            })
        };
        let bits = if to == 128 {
            bits
        } else {
            bits & ((1 << to) - 1)
        };
        let bits = if shape.ty.is_signed() {
            let shift = 128 - to;
            ((bits << shift) as i128 >> shift) as u128
        } else {
            bits
        };
        out.copy_from_slice(&bits.to_le_bytes()[..width]);
    }
    ArrayLiteral::new(shape.clone(), data)
}
