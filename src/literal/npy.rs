//! Array files: `.npy` (versions 1 to 3) and `.npz`, read member by member and written in memory.
//!
//! A [`NpyArray`] is what a file holds: bytes in C order, little-endian, under one of NumPy's plain
//! dtypes. Element types NumPy lacks are stored as bits: bf16 as `u2`; f8, f6 and f4 kinds as `u1`,
//! one element a byte; s4, s2, s1 as `i1` and u4, u2, u1 as `u1` holding the value; pred as `b1`.
//! Raw `V1` and `V2` (what `ml_dtypes` writes) are read too. Format: NumPy's NEP 1.
//! Reading needs memory for the arrays and one member.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::io::Read;
use std::io::Seek;
use std::io::Write;

use crate::base::Diagnostic;
use crate::base::Location;
use crate::base::Result;
use crate::base::codes;
use crate::literal::ArrayLiteral;
use crate::literal::dynamic::bounds;
use crate::literal::dynamic::fits;
use crate::literal::dynamic::real_shape;
use crate::shape::ArrayShape;
use crate::shape::ElementKind;
use crate::shape::PrimitiveType;

/// The kind letter of a NumPy dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NpyKind {
    /// `b`
    Bool,
    /// `i`
    Signed,
    /// `u`
    Unsigned,
    /// `f`
    Float,
    /// `c`
    Complex,
    /// `V`
    Raw,
}

impl NpyKind {
    const LETTERS: [(char, Self); 6] = [
        ('b', Self::Bool),
        ('i', Self::Signed),
        ('u', Self::Unsigned),
        ('f', Self::Float),
        ('c', Self::Complex),
        ('V', Self::Raw),
    ];
    fn letter(self) -> char {
        match self {
            Self::Bool => 'b',
            Self::Signed => 'i',
            Self::Unsigned => 'u',
            Self::Float => 'f',
            Self::Complex => 'c',
            Self::Raw => 'V',
        }
    }
}

/// One array as a file holds it: C order, little-endian.
#[derive(Clone, PartialEq, Eq)]
pub struct NpyArray {
    /// Kind of element.
    pub kind: NpyKind,
    /// Bytes of one element.
    pub width: usize,
    /// Dimensions.
    pub dims: Vec<usize>,
    /// The elements.
    pub data: Vec<u8>,
}

impl std::fmt::Debug for NpyArray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NpyArray({}{:?})", self.dtype(), self.dims)
    }
}

/// Arrays of an `.npz` by name.
pub type NpzArrays = BTreeMap<String, NpyArray>;

const MAGIC: &[u8] = b"\x93NUMPY";

fn bad(message: impl Into<String>) -> Box<Diagnostic> {
    Diagnostic::error(codes::ARRAY_FILE, message)
}

impl NpyArray {
    /// The dtype as NumPy prints it: `<f4`, `|b1`.
    pub fn dtype(&self) -> String {
        let order = if self.width == 1 || self.kind == NpyKind::Raw {
            '|'
        } else {
            '<'
        };
        format!("{order}{}{}", self.kind.letter(), self.width)
    }

    /// Reads a `.npy` file.
    ///
    /// # Errors
    /// `XA8002` when the bytes are not one, or hold objects or records.
    pub fn read(mut bytes: Vec<u8>) -> Result<Self> {
        let (header, data) = split_header(&bytes)?;
        let (header, data_length) = (Header::parse(header)?, data.len());
        let mut count = Some(1usize);
        for &dim in &header.dims {
            count = count.and_then(|c| c.checked_mul(dim));
        }
        if header.dims.contains(&0) {
            count = Some(0);
        }
        let size = count.and_then(|c| c.checked_mul(header.width));
        if size != Some(data_length) {
            return Err(bad(format!(
                "the file holds {data_length} bytes of elements, its header describes `{}` of {:?}",
                header.descr, header.dims
            )));
        }
        bytes.drain(..bytes.len() - data_length);
        let mut array = Self {
            kind: header.kind,
            width: header.width,
            dims: header.dims,
            data: bytes,
        };
        if header.big_endian {
            array.swap_bytes();
        }
        if header.fortran_order {
            array.data = from_fortran(&array.dims, array.width, &array.data);
        }
        Ok(array)
    }

    fn swap_bytes(&mut self) {
        let part = if self.kind == NpyKind::Complex {
            self.width / 2
        } else {
            self.width
        };
        self.data.chunks_exact_mut(part).for_each(<[u8]>::reverse);
    }

    /// The array as a `.npy` file, as NumPy writes it: version 1, or 2 when the header is too long.
    pub fn write(&self) -> Vec<u8> {
        let dims = match self.dims.as_slice() {
            [one] => format!("({one},)"),
            dims => {
                let dims: Vec<String> = dims.iter().map(ToString::to_string).collect();
                format!("({})", dims.join(", "))
            }
        };
        let mut header = format!(
            "{{'descr': '{}', 'fortran_order': False, 'shape': {dims}, }}",
            self.dtype()
        );
        // With spaces and a newline, so that the elements begin at a multiple of 64.
        let padded = |before: usize| (before + header.len() + 1).next_multiple_of(64) - before;
        let length = padded(MAGIC.len() + 4);
        let (length, prefix) = match u16::try_from(length) {
            Ok(short) => (length, [&[1, 0], short.to_le_bytes().as_slice()].concat()),
            Err(_) => {
                let length = padded(MAGIC.len() + 6);
                let bytes = (length as u32).to_le_bytes();
                (length, [&[2, 0], bytes.as_slice()].concat())
            }
        };
        let spaces = length - header.len() - 1;
        header.extend(std::iter::repeat_n(' ', spaces));
        header.push('\n');
        let mut out =
            Vec::with_capacity(MAGIC.len() + prefix.len() + header.len() + self.data.len());
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&prefix);
        out.extend_from_slice(header.as_bytes());
        out.extend_from_slice(&self.data);
        out
    }

    /// The array as a value of this shape; `name` says whose it is in diagnostics.
    ///
    /// # Errors
    /// `XA8001` when the dtype or the dimensions are not the shape's; a dynamic dimension may be
    /// smaller than its bound.
    pub fn into_literal(mut self, name: &str, shape: &ArrayShape) -> Result<ArrayLiteral> {
        let dims_fit = fits(&self.dims, shape);
        let width_fits = self.width == shape.ty.byte_width();
        let kind_fits = match (self.kind, storage(shape.ty)) {
            (kind, (stored, _)) if kind == stored => true,
            // Raw bytes are how `ml_dtypes` writes its types.
            (NpyKind::Raw, _) => is_foreign_to_numpy(shape.ty),
            (NpyKind::Unsigned, _) => shape.ty == PrimitiveType::Pred,
            (NpyKind::Bool, _) => self.width == 1 && shape.ty == PrimitiveType::U8,
            _ => false,
        };
        if !(dims_fit && width_fits && kind_fits) {
            let (kind, width) = storage(shape.ty);
            return Err(Diagnostic::error(
                codes::INPUT_MISMATCH,
                format!(
                    "`{name}` is `{}` of {:?}, wanted {} of {}",
                    self.dtype(),
                    self.dims,
                    shape.ty,
                    bounds(shape)
                ),
            )
            .note(format!(
                "{} is stored as `{}{width}`",
                shape.ty,
                kind.letter()
            )));
        }
        if self.kind != NpyKind::Raw && is_part_of_byte(shape.ty) {
            let is_wide = |&byte: &u8| narrow(shape.ty, byte) != byte;
            if let Some(at) = self.data.iter().position(is_wide) {
                return Err(self.too_wide(name, shape, at));
            }
        }
        canonicalize(shape.ty, &mut self.data);
        let shape = real_shape(shape, &self.dims);
        Ok(ArrayLiteral::new(shape, self.data))
    }

    /// An element that the type does not have.
    fn too_wide(&self, name: &str, shape: &ArrayShape, at: usize) -> Box<Diagnostic> {
        let byte = self.data[at];
        let mut index = vec![0; self.dims.len()];
        let mut rest = at;
        for (place, &dim) in index.iter_mut().zip(&self.dims).rev() {
            (*place, rest) = (rest % dim.max(1), rest / dim.max(1));
        }
        let value = match self.kind {
            NpyKind::Signed => i32::from(byte.cast_signed()),
            _ => i32::from(byte),
        };
        let message = format!(
            "`{name}` has {value} at {index:?}, which {} does not hold",
            shape.ty
        );
        Diagnostic::error(codes::INPUT_MISMATCH, message)
    }

    /// The value as a file stores it.
    pub fn from_literal(literal: &ArrayLiteral) -> Self {
        let (kind, width) = storage(literal.ty());
        Self {
            kind,
            width,
            dims: literal.shape().dims.to_vec(),
            data: literal.bytes().to_vec(),
        }
    }
}

/// The dtype that stores elements of this type.
fn storage(ty: PrimitiveType) -> (NpyKind, usize) {
    let width = ty.byte_width();
    let kind = match ty.kind() {
        ElementKind::Pred => NpyKind::Bool,
        ElementKind::Signed => NpyKind::Signed,
        ElementKind::Unsigned => NpyKind::Unsigned,
        ElementKind::Float if ty.is_small_float() || ty == PrimitiveType::BF16 => NpyKind::Unsigned,
        ElementKind::Float => NpyKind::Float,
        ElementKind::Complex => NpyKind::Complex,
    };
    (kind, width)
}

fn is_foreign_to_numpy(ty: PrimitiveType) -> bool {
    ty.is_small_float() || ty.is_sub_byte() || ty == PrimitiveType::BF16
}

/// Brings elements that use a part of their byte into the form literals keep.
fn canonicalize(ty: PrimitiveType, data: &mut [u8]) {
    if ty == PrimitiveType::Pred {
        data.iter_mut()
            .for_each(|byte| *byte = u8::from(*byte != 0));
    } else if is_part_of_byte(ty) {
        data.iter_mut().for_each(|byte| *byte = narrow(ty, *byte));
    }
}

fn is_part_of_byte(ty: PrimitiveType) -> bool {
    ty != PrimitiveType::Pred && ty.is_sub_byte()
}

/// The byte with the bits that elements of the type do not use as literals keep them.
fn narrow(ty: PrimitiveType, byte: u8) -> u8 {
    let unused = 8 - ty.bit_width();
    match ty.is_signed() {
        true => ((byte << unused).cast_signed() >> unused).cast_unsigned(),
        false => (byte << unused) >> unused,
    }
}

/// Takes magic, version and length off; returns the header text and the elements.
fn split_header(bytes: &[u8]) -> Result<(&str, &[u8])> {
    let truncated = || bad("the file ends within its header");
    let Some(rest) = bytes.strip_prefix(MAGIC) else {
        return Err(bad(
            "the bytes do not start with the magic of a `.npy` file",
        ));
    };
    let (version, rest) = rest.split_at_checked(2).ok_or_else(truncated)?;
    let (length, rest) = match version[0] {
        1 => {
            let (length, rest) = rest.split_first_chunk::<2>().ok_or_else(truncated)?;
            (usize::from(u16::from_le_bytes(*length)), rest)
        }
        2 | 3 => {
            let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(truncated)?;
            (u32::from_le_bytes(*length) as usize, rest)
        }
        other => return Err(bad(format!("`.npy` version {other}, wanted 1, 2 or 3"))),
    };
    let (header, data) = rest.split_at_checked(length).ok_or_else(truncated)?;
    let header = std::str::from_utf8(header).map_err(|_| bad("the header is not text"))?;
    Ok((header, data))
}

/// What a header says.
struct Header {
    descr: String,
    kind: NpyKind,
    width: usize,
    big_endian: bool,
    fortran_order: bool,
    dims: Vec<usize>,
}

impl Header {
    /// Reads the dictionary: three keys in any order, values a string, a bool and a tuple.
    fn parse(text: &str) -> Result<Self> {
        let unreadable = || bad(format!("cannot read the header `{}`", text.trim_end()));
        let body = text
            .trim()
            .strip_prefix('{')
            .and_then(|t| t.strip_suffix('}'));
        let mut rest = body.ok_or_else(unreadable)?.trim();
        let (mut descr, mut fortran_order, mut dims) = (None, None, None);
        while !rest.is_empty() {
            let (key, after) = quoted(rest).ok_or_else(unreadable)?;
            let after = after
                .trim_start()
                .strip_prefix(':')
                .ok_or_else(unreadable)?;
            let after = after.trim_start();
            let after = match key {
                "descr" => {
                    let Some((value, after)) = quoted(after) else {
                        return Err(bad("the file holds records, wanted plain elements"));
                    };
                    descr = Some(value.to_owned());
                    after
                }
                "fortran_order" => {
                    let value = after.starts_with("True");
                    fortran_order = Some(value);
                    let word = if value { "True" } else { "False" };
                    after.strip_prefix(word).ok_or_else(unreadable)?
                }
                "shape" => {
                    let after = after.strip_prefix('(').ok_or_else(unreadable)?;
                    let (inside, after) = after.split_once(')').ok_or_else(unreadable)?;
                    dims = Some(parse_dims(inside).ok_or_else(unreadable)?);
                    after
                }
                _ => return Err(unreadable()),
            };
            rest = after.trim_start();
            rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        }
        let descr = descr.ok_or_else(unreadable)?;
        let (big_endian, kind, width) = parse_descr(&descr)?;
        Ok(Self {
            descr,
            kind,
            width,
            big_endian,
            fortran_order: fortran_order.ok_or_else(unreadable)?,
            dims: dims.ok_or_else(unreadable)?,
        })
    }
}

fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text[1..].split_once(quote)
}

fn parse_dims(text: &str) -> Option<Vec<usize>> {
    let parts = text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    parts
        .map(|part| part.trim_end_matches('L').parse().ok())
        .collect()
}

fn parse_descr(descr: &str) -> Result<(bool, NpyKind, usize)> {
    let unknown = || bad(format!("elements of dtype `{descr}` cannot be read"));
    let mut chars = descr.chars();
    let mut first = chars.next().ok_or_else(unknown)?;
    let big_endian = first == '>';
    if matches!(first, '<' | '>' | '|' | '=') {
        first = chars.next().ok_or_else(unknown)?;
    }
    let width: usize = chars.as_str().parse().map_err(|_| unknown())?;
    let letters = NpyKind::LETTERS.iter();
    let kind = letters.clone().find(|(letter, _)| *letter == first);
    let kind = kind.map(|(_, kind)| *kind).ok_or_else(unknown)?;
    let widths: &[usize] = match kind {
        NpyKind::Bool => &[1],
        NpyKind::Signed | NpyKind::Unsigned => &[1, 2, 4, 8],
        NpyKind::Float => &[2, 4, 8],
        NpyKind::Complex => &[8, 16],
        NpyKind::Raw => &[1, 2],
    };
    if !widths.contains(&width) {
        return Err(unknown());
    }
    Ok((big_endian, kind, width))
}

/// Column-major elements to row-major order.
fn from_fortran(dims: &[usize], width: usize, data: &[u8]) -> Vec<u8> {
    if data.is_empty() {
        return Vec::new();
    }
    let mut strides = vec![width; dims.len()];
    for d in 1..dims.len() {
        strides[d] = strides[d - 1] * dims[d - 1];
    }
    let mut out = Vec::with_capacity(data.len());
    crate::shape::index::for_each_index(dims, |index| {
        let at: usize = index.iter().zip(&strides).map(|(i, s)| i * s).sum();
        out.extend_from_slice(&data[at..at + width]);
    });
    out
}

/// Reads every `.npy` member of an `.npz` file, stored or deflated.
///
/// # Errors
/// `XA8002` when the archive or a member cannot be read.
pub fn read_npz(archive: impl Read + Seek) -> Result<NpzArrays> {
    let mut archive = zip::ZipArchive::new(archive)
        .map_err(|e| bad(format!("cannot read the `.npz` archive: {e}")))?;
    let mut arrays = NpzArrays::new();
    for i in 0..archive.len() {
        let mut member = archive
            .by_index(i)
            .map_err(|e| bad(format!("cannot read member {i} of the archive: {e}")))?;
        let file_name = member.name().to_owned();
        let Some(name) = file_name.strip_suffix(".npy") else {
            return Err(bad(format!("member `{file_name}` is not a `.npy` file")));
        };
        let failed =
            |e: &dyn std::fmt::Display| bad(format!("cannot read member `{file_name}`: {e}"));
        // What the archive says of the size is only a hint of what to reserve.
        let mut content = Vec::new();
        let size = usize::try_from(member.size()).map_err(|e| failed(&e))?;
        content.try_reserve_exact(size).map_err(|e| failed(&e))?;
        member.read_to_end(&mut content).map_err(|e| failed(&e))?;
        let array =
            NpyArray::read(content).map_err(|e| e.or_at(|| Location::Path(file_name.clone())))?;
        arrays.insert(name.to_owned(), array);
    }
    Ok(arrays)
}

/// The arrays as an `.npz` file, uncompressed, in the given order; equal arrays give equal bytes.
///
/// # Errors
/// `XA8002` when the archive would be too large.
pub fn write_npz<'a>(arrays: impl IntoIterator<Item = (&'a str, &'a NpyArray)>) -> Result<Vec<u8>> {
    let failed = |e: &dyn std::fmt::Display| bad(format!("cannot write the `.npz` archive: {e}"));
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, array) in arrays {
        let content = array.write();
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored)
            .last_modified_time(zip::DateTime::default())
            .large_file(content.len() >= u32::MAX as usize);
        writer
            .start_file(format!("{name}.npy"), options)
            .map_err(|e| failed(&e))?;
        writer.write_all(&content).map_err(|e| failed(&e))?;
    }
    Ok(writer.finish().map_err(|e| failed(&e))?.into_inner())
}

/// Whether the bytes start as a `.npy` file does.
pub fn is_npy(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Whether the bytes start as a zip archive does.
pub fn is_npz(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn fortran_order_becomes_row_major() {
        let bytes = npy(
            "{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3), }",
            &[1, 4, 2, 5, 3, 6],
        );
        assert_eq!(NpyArray::read(bytes).unwrap().data, [1, 2, 3, 4, 5, 6]);
        let bytes = npy(
            "{'descr': '|i1', 'fortran_order': True, 'shape': (9223372036854775807, 4, 0), }",
            &[],
        );
        assert!(NpyArray::read(bytes).unwrap().data.is_empty());
    }

    #[test]
    fn big_endian_is_swapped_part_by_part() {
        let bytes = npy(
            "{'shape': (1,), 'fortran_order': False, 'descr': '>c8'}",
            &[0x3f, 0x80, 0, 0, 0x40, 0, 0, 0],
        );
        let array = NpyArray::read(bytes).unwrap();
        assert_eq!(array.data, [0, 0, 0x80, 0x3f, 0, 0, 0, 0x40]);
    }

    #[test]
    fn what_is_written_is_read_back_and_aligned() {
        // The last one has a header of more than 64 KiB.
        let many = vec![1; 30_000];
        for dims in [vec![], vec![3], vec![2, 0, 4], vec![1, 2], many] {
            let count: usize = dims.iter().product();
            let array = NpyArray {
                kind: NpyKind::Float,
                width: 4,
                dims,
                data: vec![7; count * 4],
            };
            let bytes = array.write();
            assert_eq!((bytes.len() - array.data.len()) % 64, 0);
            assert_eq!(NpyArray::read(bytes).unwrap(), array);
            let npz = write_npz([("in0", &array)]).unwrap();
            assert!(is_npz(&npz));
            assert_eq!(read_npz(Cursor::new(npz)).unwrap()["in0"], array);
        }
    }

    #[test]
    fn narrow_types_follow_the_stored_form() {
        let raw = |kind, width, data: &[u8]| NpyArray {
            kind,
            width,
            dims: vec![2],
            data: data.to_vec(),
        };
        let literal =
            |array: &NpyArray, ty| array.clone().into_literal("in0", &ArrayShape::new(ty, [2]));
        let bf16 = raw(NpyKind::Raw, 2, &[0x80, 0x3f, 0, 0x40]);
        assert_eq!(
            literal(&bf16, PrimitiveType::BF16).unwrap().bytes(),
            bf16.data
        );
        let wide = raw(NpyKind::Signed, 1, &[0xff, 0x08]);
        let told = literal(&wide, PrimitiveType::S4).unwrap_err().message;
        assert!(
            told.ends_with("has 8 at [1], which s4 does not hold"),
            "{told}"
        );
        let wide = raw(NpyKind::Unsigned, 1, &[15, 16]);
        let told = literal(&wide, PrimitiveType::U4).unwrap_err().message;
        assert!(
            told.ends_with("has 16 at [1], which u4 does not hold"),
            "{told}"
        );
        let s4 = raw(NpyKind::Signed, 1, &[0xff, 0xf8]);
        let s4 = literal(&s4, PrimitiveType::S4).unwrap();
        assert_eq!(s4.bytes(), [0xff, 0xf8]);
        assert_eq!(NpyArray::from_literal(&s4).dtype(), "|i1");
        let pred = raw(NpyKind::Bool, 1, &[2, 0]);
        assert_eq!(literal(&pred, PrimitiveType::Pred).unwrap().bytes(), [1, 0]);
        let wrong = literal(&bf16, PrimitiveType::S16).unwrap_err();
        assert_eq!(wrong.code, codes::INPUT_MISMATCH);
        assert!(wrong.message.contains("`|V2` of [2], wanted s16"));
    }

    #[test]
    fn damaged_files_are_refused() {
        let good = npy(
            "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }",
            &[0; 4],
        );
        for end in 0..good.len() {
            assert!(NpyArray::read(good[..end].to_vec()).is_err());
        }
        for header in [
            "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
            "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
            "{'descr': '<f4', 'shape': (1,), }",
            "{é",
        ] {
            assert!(NpyArray::read(npy(header, &[0; 4])).is_err(), "{header}");
        }
        assert!(read_npz(Cursor::new(b"PK\x03\x04")).is_err());
    }
}
