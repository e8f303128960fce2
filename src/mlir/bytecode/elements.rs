//! Dense elements: from the bytes that MLIR keeps to those of [`crate::literal`].
//!
//! MLIR writes elements of a byte and more as they are, and so the bytes are taken as they are;
//! booleans are packed eight to a byte, and integers of fewer bits are not extended by their sign.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::mlir::attrs::Attr;
use crate::mlir::attrs::Dense;
use crate::mlir::bytecode::cursor::Cursor;
use crate::mlir::bytecode::table::Decoder;
use crate::mlir::types::Type;
use crate::shape::ArrayShape;

/// The longest list that is made of one scale.
const LONGEST: usize = 1 << 12;

/// Dense elements of a type that was read before them.
pub(super) fn dense(decoder: &mut Decoder<'_, '_>, ty: Type) -> Result<Attr> {
    let at = decoder.cursor;
    let blob = decoder.blob()?;
    if decoder.waits() {
        return Ok(Attr::Unit);
    }
    elements(&at, ty, blob).map(Attr::Dense)
}

/// Dense elements whose bytes are a resource.
pub(super) fn resource(decoder: &mut Decoder<'_, '_>, ty: Type, blob: &[u8]) -> Result<Attr> {
    elements(&decoder.cursor, ty, blob).map(Attr::Dense)
}

/// The number of elements of a tensor or vector of known sizes, which a program can hold.
pub(super) fn count(at: &Cursor<'_>, ty: &Type) -> Result<u64> {
    let (Type::Tensor(tensor) | Type::Vector(tensor)) = ty else {
        return Err(at.error("dense elements are no tensor"));
    };
    let width = tensor.element.element_bytes().unwrap_or(1) as u64;
    let fits = |count: &u64| {
        let bytes = count.checked_mul(width);
        bytes.is_some_and(|bytes| bytes <= ArrayShape::MAX_BYTES as u64)
    };
    let count = tensor.element_count().filter(fits);
    count.ok_or_else(|| at.error("dense elements have a size that is not known or too large"))
}

/// The shape of an array of scales, and the scales as the bits of `f64`.
pub(super) fn scales(at: &Cursor<'_>, dense: &Dense) -> Result<(Vec<u64>, Vec<u64>)> {
    let shape = match &dense.ty {
        Type::Tensor(tensor) => tensor.dims.iter().flatten().copied().collect(),
        _ => Vec::new(),
    };
    let bytes = dense.bytes().map_or(&[][..], |bytes| bytes);
    let numbers: Vec<u64> = match *dense.ty.element() {
        Type::F64 => {
            let chunks = bytes.as_chunks::<8>().0.iter();
            chunks.map(|chunk| u64::from_le_bytes(*chunk)).collect()
        }
        Type::F32 => {
            let chunks = bytes.as_chunks::<4>().0.iter();
            let wide = |chunk: &[u8; 4]| f64::from(f32::from_le_bytes(*chunk)).to_bits();
            chunks.map(wide).collect()
        }
        _ => return Err(at.error("the scales of a quantized type are neither f32 nor f64")),
    };
    let count = usize::try_from(dense.element_count()).unwrap_or(usize::MAX);
    match dense.splat {
        true if count > LONGEST => Err(at.error(format!("{count} equal scales"))),
        true => Ok((shape, numbers.repeat(count))),
        false => Ok((shape, numbers)),
    }
}

fn elements(at: &Cursor<'_>, ty: Type, blob: &[u8]) -> Result<Dense> {
    let count = count(at, &ty)?;
    let Some(width) = ty.element().element_bytes().filter(|width| *width > 0) else {
        return Err(at.error("dense elements are no numbers"));
    };
    if count == 0 && (blob.is_empty() || blob.len() == width) {
        // MLIR keeps an element of an empty tensor whose text has one.
        return Ok(Dense::new(ty, Vec::new()));
    }
    if *ty.element() == Type::I1 {
        return booleans(at, ty, count, blob);
    }
    let size = blob.len() as u64;
    if size != width as u64 && count.checked_mul(width as u64) != Some(size) {
        return Err(wrong_size(at, count, width, blob.len()));
    }
    Ok(Dense::from_raw(ty, blob))
}

fn wrong_size(at: &Cursor<'_>, count: u64, width: usize, size: usize) -> Box<Diagnostic> {
    at.error(format!(
        "a tensor of {count} elements of {width} bytes has {size} bytes"
    ))
}

/// Booleans come as one byte for all, packed into bits, or, from old writers, a byte each.
fn booleans(at: &Cursor<'_>, ty: Type, count: u64, blob: &[u8]) -> Result<Dense> {
    let size = blob.len() as u64;
    let bytes: Vec<u8> = match blob {
        [0xFF] => vec![1],
        _ if size == count.div_ceil(8) && size != count => {
            let bit = |i: u64| blob[(i / 8) as usize] >> (i % 8) & 1;
            (0..count).map(bit).collect()
        }
        [one] => vec![u8::from(*one != 0)],
        _ if size == count => blob.iter().map(|byte| u8::from(*byte != 0)).collect(),
        _ => return Err(wrong_size(at, count, 1, blob.len())),
    };
    Ok(Dense::new(ty, bytes))
}
