//! Attributes, locations and types of the `builtin` and `quant` dialects in binary form.
//!
//! Source: MLIR's BuiltinDialectBytecode.td and QuantDialectBytecode.td, for codes and fields.

use std::sync::Arc;

use crate::base::Result;
use crate::mlir::attrs::Attr;
use crate::mlir::attrs::AttrMap;
use crate::mlir::attrs::Dense;
use crate::mlir::attrs::DenseArray;
use crate::mlir::attrs::SymbolRef;
use crate::mlir::bytecode::cursor::Cursor;
use crate::mlir::bytecode::elements;
use crate::mlir::bytecode::table::Decoder;
use crate::mlir::location::SourceLoc;
use crate::mlir::types::FloatKind;
use crate::mlir::types::FunctionType;
use crate::mlir::types::QuantizedScheme;
use crate::mlir::types::QuantizedType;
use crate::mlir::types::Signedness;
use crate::mlir::types::TensorType;
use crate::mlir::types::Type;

/// An attribute or a location.
pub(super) fn attr(decoder: &mut Decoder<'_, '_>) -> Result<Attr> {
    let code = decoder.cursor.varint("the code of an attribute")?;
    Ok(match code {
        0 => Attr::array(decoder.attrs()?),
        1 => dict(decoder)?,
        2 => Attr::String(decoder.string()?.into()),
        3 => {
            let text = decoder.string()?.into();
            Attr::TypedString(text, decoder.ty()?)
        }
        4 => Attr::Symbol(SymbolRef {
            root: decoder.name()?,
            nested: Vec::new(),
        }),
        5 => symbol(decoder)?,
        6 => Attr::Type(decoder.ty()?),
        7 => Attr::Unit,
        8 => {
            let ty = decoder.ty()?;
            integer(decoder, ty)?
        }
        9 => {
            let ty = decoder.ty()?;
            float(decoder, ty)?
        }
        10..=15 | 22 => return location(decoder, code),
        16 => resource(decoder)?,
        17 => dense_array(decoder)?,
        18 => {
            let ty = decoder.ty()?;
            elements::dense(decoder, ty)?
        }
        19 => strings(decoder)?,
        _ => return Err(decoder.unknown_code("an attribute", code)),
    })
}

/// A dictionary, whose keys are strings.
pub(super) fn dict(decoder: &mut Decoder<'_, '_>) -> Result<Attr> {
    let at = decoder.cursor;
    let count = decoder.cursor.count("entries of a dictionary")?;
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        entries.push((decoder.name()?, decoder.attr()?));
    }
    let map: AttrMap = entries.into_iter().collect();
    if map.len() != count && !decoder.waits() {
        return Err(at.error("a dictionary has one name twice"));
    }
    Ok(Attr::dict(map))
}

fn symbol(decoder: &mut Decoder<'_, '_>) -> Result<Attr> {
    let root = decoder.name()?;
    let at = decoder.cursor;
    let mut nested = Vec::new();
    for part in decoder.attrs()? {
        match part {
            Attr::Symbol(part) if part.nested.is_empty() => nested.push(part.root),
            _ if decoder.waits() => {}
            other => return Err(at.error(format!("{} in a symbol", other.what()))),
        }
    }
    Ok(Attr::Symbol(SymbolRef { root, nested }))
}

/// An integer of a type that was read before it.
pub(super) fn integer(decoder: &mut Decoder<'_, '_>, ty: Type) -> Result<Attr> {
    if decoder.waits() {
        return Ok(Attr::Unit);
    }
    let at = decoder.cursor;
    let (width, sign) = match ty {
        Type::Integer { width, sign } => (width, sign),
        Type::Index => (64, Signedness::Signless),
        _ => return Err(at.error("an integer has a type that is none of an integer")),
    };
    let bits = decoder.bits(width)?;
    if ty == Type::I1 {
        return Ok(Attr::Bool(bits == 1));
    }
    let unused = 128 - width.min(128);
    let value = match sign {
        Signedness::Unsigned => i128::try_from(bits)
            .map_err(|_| decoder.unsupported(format!("an unsigned integer of {width} bits")))?,
        _ if width == 0 => 0,
        Signedness::Signless | Signedness::Signed => (bits << unused) as i128 >> unused,
    };
    Ok(Attr::Integer { value, ty })
}

/// A float of a type that was read before it.
pub(super) fn float(decoder: &mut Decoder<'_, '_>, ty: Type) -> Result<Attr> {
    if decoder.waits() {
        return Ok(Attr::Unit);
    }
    let Type::Float(kind) = ty else {
        let at = decoder.cursor;
        return Err(at.error("a float has a type that is none of a float"));
    };
    if kind.bit_width() > 64 {
        return Err(decoder.unsupported(format!("a float of type `{}`", kind.name())));
    }
    let bits = decoder.bits(kind.bit_width() as u32)? as u64;
    Ok(Attr::Float { bits, ty })
}

fn location(decoder: &mut Decoder<'_, '_>, code: u64) -> Result<Attr> {
    let loc = match code {
        10 => SourceLoc::CallSite {
            callee: decoder.loc()?,
            caller: decoder.loc()?,
        },
        11 => {
            let file = decoder.name()?;
            let line = number(&mut decoder.cursor)?;
            let column = number(&mut decoder.cursor)?;
            SourceLoc::File {
                file,
                line,
                column,
                end_line: line,
                end_column: column,
            }
        }
        22 => {
            let file = decoder.name()?;
            let at = decoder.cursor;
            let count = decoder.cursor.count("numbers of a location")?;
            let mut range = [0; 4];
            let Some(numbers) = range.get_mut(..count) else {
                return Err(at.error(format!("a location has {count} numbers")));
            };
            for number_of_range in numbers {
                *number_of_range = number(&mut decoder.cursor)?;
            }
            let [line, column, third, fourth] = range;
            let (end_line, end_column) = match count {
                4 => (third, fourth),
                3 => (line, third),
                _ => (line, column),
            };
            SourceLoc::File {
                file,
                line,
                column,
                end_line,
                end_column,
            }
        }
        12 | 13 => {
            let count = decoder.cursor.count("parts of a location")?;
            let parts = (0..count).map(|_| decoder.loc()).collect::<Result<_>>()?;
            let metadata = match code {
                13 => Some(decoder.attr()?),
                _ => None,
            };
            SourceLoc::Fused { parts, metadata }
        }
        14 => SourceLoc::Name {
            name: decoder.name()?,
            child: decoder.loc()?,
        },
        _ => return Ok(Attr::Location(decoder.unknown())),
    };
    Ok(Attr::Location(Arc::new(loc)))
}

fn number(cursor: &mut Cursor<'_>) -> Result<u32> {
    let at = *cursor;
    let number = cursor.varint("a line or column")?;
    u32::try_from(number).map_err(|_| at.error(format!("the line or column {number}")))
}

fn resource(decoder: &mut Decoder<'_, '_>) -> Result<Attr> {
    let ty = decoder.ty()?;
    if decoder.waits() {
        return Ok(Attr::Unit);
    }
    let (key, blob) = decoder.resource()?;
    match blob {
        Some(blob) => elements::resource(decoder, ty, blob),
        None => {
            let key = key.into();
            Ok(Attr::MissingResource { key, ty })
        }
    }
}

fn dense_array(decoder: &mut Decoder<'_, '_>) -> Result<Attr> {
    let element = decoder.ty()?;
    let at = decoder.cursor;
    let count = decoder.cursor.varint("the length of an array")?;
    let data = decoder.blob()?;
    if decoder.waits() {
        return Ok(Attr::Unit);
    }
    let width = element.element_bytes();
    let Some(width) = width.filter(|_| DenseArray::can_hold(&element)) else {
        return Err(decoder.unsupported("an array of such elements"));
    };
    if count.checked_mul(width as u64) != Some(data.len() as u64) {
        let bytes = data.len();
        return Err(at.error(format!(
            "an array of {count} elements of {width} bytes has {bytes} bytes"
        )));
    }
    if element == Type::I1 && data.iter().any(|byte| *byte > 1) {
        return Err(at.error("a boolean in an array is neither 0 nor 1"));
    }
    let data = data.into();
    Ok(Attr::DenseArray(DenseArray { element, data }))
}

fn strings(decoder: &mut Decoder<'_, '_>) -> Result<Attr> {
    let ty = decoder.ty()?;
    let at = decoder.cursor;
    let splat = decoder.cursor.varint("whether all strings are one")? != 0;
    if decoder.waits() {
        return Ok(Attr::Unit);
    }
    let count = elements::count(&at, &ty)?;
    let stored = match splat {
        true => 1,
        false => decoder.cursor.fits(count, "strings")?,
    };
    let mut strings: Vec<Arc<[u8]>> = Vec::with_capacity(stored);
    for _ in 0..stored {
        strings.push(decoder.string()?.into());
    }
    Ok(Attr::Dense(Dense::strings(ty, strings)))
}

/// Float types that got codes later, from 21 on; files from before have them as text.
const NARROW_FLOATS: [FloatKind; 12] = [
    FloatKind::TF32,
    FloatKind::F8E5M2,
    FloatKind::F8E4M3,
    FloatKind::F8E4M3FN,
    FloatKind::F8E5M2FNUZ,
    FloatKind::F8E4M3FNUZ,
    FloatKind::F8E4M3B11FNUZ,
    FloatKind::F8E3M4,
    FloatKind::F4E2M1FN,
    FloatKind::F6E2M3FN,
    FloatKind::F6E3M2FN,
    FloatKind::F8E8M0FNU,
];

/// A type.
pub(super) fn ty(decoder: &mut Decoder<'_, '_>) -> Result<Type> {
    let code = decoder.cursor.varint("the code of a type")?;
    Ok(match code {
        0 => {
            let word = decoder.cursor.varint("the width of an integer type")?;
            let sign = match word & 3 {
                0 => Signedness::Signless,
                1 => Signedness::Signed,
                2 => Signedness::Unsigned,
                other => return Err(decoder.cursor.error(format!("signedness {other}"))),
            };
            match u32::try_from(word >> 2) {
                Ok(width) if width < 1 << 24 => Type::Integer { width, sign },
                _ => return Err(decoder.cursor.error("an integer type is too wide")),
            }
        }
        1 => Type::Index,
        2 => Type::Function(Arc::new(FunctionType {
            inputs: decoder.types()?,
            results: decoder.types()?,
        })),
        3 => Type::Float(FloatKind::BF16),
        4 => Type::Float(FloatKind::F16),
        5 => Type::F32,
        6 => Type::F64,
        7 => Type::Float(FloatKind::F80),
        8 => Type::Float(FloatKind::F128),
        9 => Type::Complex(Arc::new(decoder.ty()?)),
        10 | 11 => memref(decoder, code == 11)?,
        12 => Type::None,
        13 => Type::Tensor(Arc::new(tensor(decoder, None)?)),
        14 => {
            let encoding = decoder.attr()?;
            Type::Tensor(Arc::new(tensor(decoder, Some(encoding))?))
        }
        15 => Type::Tuple(decoder.types()?.into()),
        18 => Type::UnrankedTensor(Arc::new(decoder.ty()?)),
        19 => Type::Vector(Arc::new(tensor(decoder, None)?)),
        21..=32 => Type::Float(NARROW_FLOATS[(code - 21) as usize]),
        _ => return Err(decoder.unknown_code("a type", code)),
    })
}

/// The shape and element type of a tensor or vector.
pub(super) fn tensor(decoder: &mut Decoder<'_, '_>, encoding: Option<Attr>) -> Result<TensorType> {
    let dims = dims(&mut decoder.cursor)?;
    let element = decoder.ty()?;
    Ok(TensorType {
        dims,
        element,
        encoding,
    })
}

/// Sizes, of which the smallest number is one that is not known.
pub(super) fn dims(cursor: &mut Cursor<'_>) -> Result<Vec<Option<u64>>> {
    let at = *cursor;
    let dims = cursor.signed_list("the sizes of a tensor")?;
    let one = |dim: i64| match u64::try_from(dim) {
        Ok(dim) => Ok(Some(dim)),
        Err(_) if dim == Attr::DYNAMIC => Ok(None),
        Err(_) => Err(at.error(format!("a tensor has the size {dim}"))),
    };
    dims.into_iter().map(one).collect()
}

fn memref(decoder: &mut Decoder<'_, '_>, has_space: bool) -> Result<Type> {
    let space = match has_space {
        true => Some(decoder.attr()?),
        false => None,
    };
    let mut ty = tensor(decoder, None)?;
    let layout = decoder.attr()?;
    // The layout is an affine map, which has no meaning for the types of StableHLO's buffers.
    let identity = matches!(&layout, Attr::Opaque(text) if text.starts_with("affine_map"));
    ty.encoding = match (identity, space) {
        (true, space) => space,
        (false, _) if decoder.waits() => None,
        (false, _) => return Err(decoder.unsupported("a memref with a layout")),
    };
    Ok(Type::MemRef(Arc::new(ty)))
}

/// What quantized types have in common, with nothing of their own yet: flags, the stored type and
/// the expressed one. Nothing when those are not decoded yet.
fn quantized(decoder: &mut Decoder<'_, '_>) -> Result<Option<QuantizedType>> {
    let flags = decoder.cursor.varint("the flags of a quantized type")?;
    let at = decoder.cursor;
    let (storage, expressed) = (decoder.ty()?, decoder.ty()?);
    match (storage, expressed) {
        _ if decoder.waits() => Ok(None),
        (Type::Integer { width, .. }, Type::Float(expressed)) => Ok(Some(QuantizedType {
            storage_width: width,
            storage_signed: flags & 1 == 1,
            storage_min: 0,
            storage_max: 0,
            expressed,
            scheme: QuantizedScheme::PerTensor,
            scales: Vec::new(),
            zero_points: Vec::new(),
        })),
        _ => Err(at.error("a quantized type does not store integers for floats")),
    }
}

/// The smallest and the largest integer that is stored.
fn storage_bounds(decoder: &mut Decoder<'_, '_>, ty: &mut QuantizedType) -> Result<()> {
    ty.storage_min = decoder.cursor.signed("the smallest stored integer")?;
    ty.storage_max = decoder.cursor.signed("the largest stored integer")?;
    Ok(())
}

/// The type, when it is whole and sound.
fn checked(decoder: &Decoder<'_, '_>, ty: QuantizedType) -> Result<Type> {
    ty.check().map_err(|what| decoder.cursor.error(what))?;
    Ok(Type::Quantized(Arc::new(ty)))
}

/// A quantized type with one scale.
pub(super) fn per_tensor(decoder: &mut Decoder<'_, '_>) -> Result<Type> {
    let Some(mut ty) = quantized(decoder)? else {
        return Ok(Type::None);
    };
    ty.scales.push(decoder.f64()?);
    ty.zero_points.push(decoder.cursor.signed("a zero point")?);
    storage_bounds(decoder, &mut ty)?;
    checked(decoder, ty)
}

/// A quantized type with a scale for each slice.
pub(super) fn per_axis(decoder: &mut Decoder<'_, '_>) -> Result<Type> {
    let Some(mut ty) = quantized(decoder)? else {
        return Ok(Type::None);
    };
    let axis = decoder.cursor.varint("the dimension of a quantized type")?;
    ty.scheme = QuantizedScheme::PerAxis(axis);
    storage_bounds(decoder, &mut ty)?;
    let count = decoder.cursor.count("scales")?;
    ty.scales = (0..count).map(|_| decoder.f64()).collect::<Result<_>>()?;
    ty.zero_points = decoder.cursor.signed_list("zero points")?;
    checked(decoder, ty)
}

/// A quantized type with a scale for each block.
fn sub_channel(decoder: &mut Decoder<'_, '_>) -> Result<Type> {
    let Some(mut ty) = quantized(decoder)? else {
        return Ok(Type::None);
    };
    storage_bounds(decoder, &mut ty)?;
    let dims = decoder
        .cursor
        .signed_list("dimensions of a quantized type")?;
    let at = decoder.cursor;
    let sizes = decoder.cursor.signed_list("sizes of blocks")?;
    let (scales, zero_points) = (decoder.attr()?, decoder.attr()?);
    if decoder.waits() {
        return Ok(Type::None);
    }
    let (Attr::Dense(scales), Attr::Dense(points)) = (scales, zero_points) else {
        return Err(at.error("scales and zero points are no dense elements"));
    };
    let (shape, scales) = elements::scales(&at, &scales)?;
    ty.scales = scales;
    ty.zero_points = points
        .ints()
        .ok_or_else(|| at.error("zero points are no integers"))?;
    let unsigned = |value: i64| {
        u64::try_from(value).map_err(|_| at.error("a block has a negative dimension or size"))
    };
    if dims.len() != sizes.len() {
        return Err(at.error("not one size of blocks for each dimension"));
    }
    let blocks = dims.into_iter().zip(sizes);
    let blocks = blocks.map(|(dim, size)| Ok((unsigned(dim)?, unsigned(size)?)));
    let blocks = blocks.collect::<Result<_>>()?;
    ty.scheme = QuantizedScheme::SubChannel { blocks, shape };
    checked(decoder, ty)
}

/// A type of the `quant` dialect.
pub(super) fn quant_type(decoder: &mut Decoder<'_, '_>) -> Result<Type> {
    let code = decoder.cursor.varint("the code of a type")?;
    match code {
        4 => per_tensor(decoder),
        5 => per_axis(decoder),
        6 => sub_channel(decoder),
        _ => Err(decoder.unknown_code("a type", code)),
    }
}
