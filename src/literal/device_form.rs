//! Values as devices hold them: dimensions in the physical order of the layout, sub-byte elements
//! packed, the first element in the low bits.
//!
//! A dynamic array is, as in XLA, its real elements without gaps at the start of room for all up to
//! the bounds, and after that room its sizes, an s32 for each dimension in logical order. The literal
//! side is the static array of the real elements.
//!
//! The literal side is row-major with one element a byte or more; see [`crate::literal::literal`].

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::literal::ArrayLiteral;
use crate::literal::dynamic::fits;
use crate::literal::dynamic::real_shape;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::shape::index::advance;

/// Bytes of a device buffer of this shape.
pub fn device_size(shape: &ArrayShape) -> usize {
    shape.byte_size()
}

/// The device bytes of a value under the layout of `shape`.
pub fn to_device(literal: &ArrayLiteral, shape: &ArrayShape) -> Vec<u8> {
    let mut out = vec![0; device_size(shape)];
    write_device(literal, shape, &mut out);
    out
}

/// Writes the device bytes of a value into a buffer of the shape's size.
///
/// # Panics
/// When the buffer or the value does not have the shape's size.
pub fn write_device(literal: &ArrayLiteral, shape: &ArrayShape, out: &mut [u8]) {
    assert_eq!(out.len(), device_size(shape), "the buffer fits the shape");
    if shape.is_dynamic() {
        let sizes = &literal.shape().dims;
        let real = to_device(literal, &real_shape(shape, sizes));
        write_real_part(&real, sizes, shape, out);
        return;
    }
    let bytes = literal.bytes();
    if is_row_major(shape) {
        pack(shape.ty, bytes, out);
        return;
    }
    let mut ordered = Vec::with_capacity(bytes.len());
    let width = shape.ty.byte_width();
    for_each_physical(shape, |linear| {
        ordered.extend_from_slice(&bytes[linear * width..(linear + 1) * width]);
    });
    pack(shape.ty, &ordered, out);
}

/// The value of device bytes under the layout of `shape`.
///
/// # Errors
/// `XA8001` when the number of bytes is not the shape's, or sizes are beyond the bounds.
pub fn from_device(bytes: &[u8], shape: &ArrayShape) -> Result<ArrayLiteral> {
    if bytes.len() != device_size(shape) {
        return Err(Diagnostic::error(
            codes::INPUT_MISMATCH,
            format!(
                "{} bytes, wanted {} for {}{:?}",
                bytes.len(),
                device_size(shape),
                shape.ty,
                shape.dims.as_slice()
            ),
        ));
    }
    if shape.is_dynamic() {
        let (data, sizes) = real_part(bytes, shape)?;
        return from_device(data, &real_shape(shape, &sizes));
    }
    let physical = unpack(shape.ty, bytes, shape.element_count());
    if is_row_major(shape) {
        return Ok(ArrayLiteral::new(shape.clone(), physical));
    }
    let width = shape.ty.byte_width();
    let mut logical = vec![0; physical.len()];
    let mut source = physical.chunks_exact(width);
    for_each_physical(shape, |linear| {
        let element = source.next().expect("one element for each index");
        logical[linear * width..(linear + 1) * width].copy_from_slice(element);
    });
    Ok(ArrayLiteral::new(shape.clone(), logical))
}

/// The bytes of the real elements among those of an array, and the real sizes. Of a static array that is
/// all of it.
///
/// # Errors
/// `XA8001` when sizes are beyond the bounds.
pub fn real_part<'a>(bytes: &'a [u8], shape: &ArrayShape) -> Result<(&'a [u8], Dims)> {
    if !shape.is_dynamic() {
        return Ok((bytes, shape.dims.clone()));
    }
    let (data, metadata) = bytes.split_at(shape.data_size());
    let sizes = metadata.chunks_exact(4).map(|size| {
        let size = size.try_into().map(i32::from_le_bytes);
        size.ok().and_then(|size| usize::try_from(size).ok())
    });
    let sizes: Option<Dims> = sizes.collect();
    let Some(sizes) = sizes.filter(|sizes| fits(sizes, shape)) else {
        let message = "a dynamic array has sizes beyond its bounds";
        return Err(Diagnostic::error(codes::INPUT_MISMATCH, message));
    };
    let real = real_shape(shape, &sizes);
    Ok((&data[..device_size(&real)], sizes))
}

/// Writes the bytes of the real elements, and the real sizes, into a buffer of the shape's size.
///
/// # Panics
/// When the buffer does not have that size, or the bytes are more than it holds.
pub fn write_real_part(bytes: &[u8], sizes: &[usize], shape: &ArrayShape, out: &mut [u8]) {
    assert_eq!(out.len(), device_size(shape), "the buffer fits the shape");
    let (data, metadata) = out.split_at_mut(shape.data_size());
    let (data, rest) = data.split_at_mut(bytes.len());
    data.copy_from_slice(bytes);
    rest.fill(0);
    for (to, &size) in metadata.chunks_exact_mut(4).zip(sizes) {
        to.copy_from_slice(&(size as i32).to_le_bytes());
    }
}

fn is_row_major(shape: &ArrayShape) -> bool {
    shape.layout.as_ref().is_none_or(|l| l.is_row_major())
}

/// Visits the row-major position of each element in physical order.
fn for_each_physical(shape: &ArrayShape, mut visit: impl FnMut(usize)) {
    if shape.element_count() == 0 {
        return;
    }
    let strides = crate::shape::index::row_major_strides(&shape.dims);
    let order = shape.layout_or_default().minor_to_major;
    let major_first: Dims = order.iter().rev().copied().collect();
    let dims: Dims = major_first.iter().map(|&d| shape.dims[d]).collect();
    let strides: Dims = major_first.iter().map(|&d| strides[d]).collect();
    let mut index: Dims = smallvec::smallvec![0; dims.len()];
    loop {
        visit(index.iter().zip(&strides).map(|(i, s)| i * s).sum());
        if !advance(&dims, &mut index) {
            return;
        }
    }
}

/// One element a byte to packed bytes; a copy for types that fill their bytes.
fn pack(ty: PrimitiveType, elements: &[u8], out: &mut [u8]) {
    let bits = ty.bit_width_in_memory();
    if bits >= 8 {
        out.copy_from_slice(elements);
        return;
    }
    let mask = (1u8 << bits) - 1;
    for (byte, group) in out.iter_mut().zip(elements.chunks(8 / bits)) {
        *byte = 0;
        for (i, element) in group.iter().enumerate() {
            *byte |= (element & mask) << (i * bits);
        }
    }
}

/// Packed bytes to one element a byte, sign-extended for signed types.
fn unpack(ty: PrimitiveType, bytes: &[u8], count: usize) -> Vec<u8> {
    let bits = ty.bit_width_in_memory();
    if bits >= 8 {
        return bytes.to_vec();
    }
    let unused = 8 - bits;
    let per_byte = 8 / bits;
    let element = |i: usize| {
        let raw = bytes[i / per_byte] >> (i % per_byte * bits) << unused;
        if ty.is_signed() {
            (raw.cast_signed() >> unused).cast_unsigned()
        } else {
            raw >> unused
        }
    };
    (0..count).map(element).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Layout;

    #[test]
    fn packs_low_bits_first_and_extends_signs() {
        let shape = ArrayShape::new(PrimitiveType::S4, [3]);
        let literal = ArrayLiteral::new(shape.clone(), vec![1, 0xff, 0xf8]);
        let bytes = to_device(&literal, &shape);
        assert_eq!(bytes, [0xf1, 0x08]);
        assert_eq!(from_device(&bytes, &shape).unwrap(), literal);
        let shape = ArrayShape::new(PrimitiveType::U2, [5]);
        let literal = ArrayLiteral::new(shape.clone(), vec![3, 0, 1, 2, 3]);
        let bytes = to_device(&literal, &shape);
        assert_eq!(bytes, [0b1001_0011, 0b11]);
        assert_eq!(from_device(&bytes, &shape).unwrap(), literal);
    }

    #[test]
    fn layout_orders_the_bytes() {
        let mut shape = ArrayShape::new(PrimitiveType::U16, [2, 3]);
        shape.layout = Some(Layout::from_minor_to_major([0, 1]));
        let values: Vec<u8> = (0..6u16).flat_map(u16::to_le_bytes).collect();
        let literal = ArrayLiteral::new(shape.clone(), values);
        let bytes = to_device(&literal, &shape);
        assert_eq!(bytes, [0, 0, 3, 0, 1, 0, 4, 0, 2, 0, 5, 0]);
        assert_eq!(from_device(&bytes, &shape).unwrap(), literal);
        assert!(from_device(&bytes[1..], &shape).is_err());
    }

    #[test]
    fn dynamic_arrays_are_real_elements_and_sizes() {
        let mut shape = ArrayShape::new(PrimitiveType::U8, [2, 3]);
        shape.dynamic = [false, true].into_iter().collect();
        let literal =
            ArrayLiteral::new(ArrayShape::new(PrimitiveType::U8, [2, 2]), vec![1, 2, 3, 4]);
        let bytes = to_device(&literal, &shape);
        assert_eq!(bytes, [1, 2, 3, 4, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(from_device(&bytes, &shape).unwrap(), literal);
        for (at, wrong) in [(6, 1), (10, 4), (13, 0x80)] {
            let mut bytes = bytes.clone();
            bytes[at] = wrong;
            assert!(from_device(&bytes, &shape).is_err(), "size at {at}");
        }
        shape.layout = Some(Layout::from_minor_to_major([0, 1]));
        let bytes = to_device(&literal, &shape);
        assert_eq!(bytes[..6], [1, 3, 2, 4, 0, 0]);
        assert_eq!(
            from_device(&bytes, &shape).unwrap().bytes(),
            literal.bytes()
        );
    }

    #[test]
    fn empty_and_scalar_arrays() {
        let mut empty = ArrayShape::new(PrimitiveType::F32, [0, 3]);
        empty.layout = Some(Layout::from_minor_to_major([0, 1]));
        let literal = ArrayLiteral::zeros(empty.clone());
        assert!(to_device(&literal, &empty).is_empty());
        let scalar = ArrayShape::scalar(PrimitiveType::S1);
        let literal = ArrayLiteral::new(scalar.clone(), vec![0xff]);
        assert_eq!(to_device(&literal, &scalar), [1]);
        assert_eq!(from_device(&[1], &scalar).unwrap(), literal);
    }
}
