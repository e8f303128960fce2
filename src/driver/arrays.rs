//! Array files in and out: which array of which file is which input, and results under their names.

use std::fs::File;
use std::io::BufReader;
use std::io::Cursor;
use std::io::Read;
use std::io::Seek;

use crate::base::Diagnostic;
use crate::base::Location;
use crate::base::Result;
use crate::base::codes;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::literal::compare;
use crate::literal::compare::Tolerance;
use crate::literal::npy;
use crate::literal::npy::NpyArray;
use crate::literal::npy::NpzArrays;
use crate::shape::ArrayShape;
use crate::shape::Shape;

/// An `.npz` or `.npy` file.
#[derive(Debug)]
pub struct ArrayFile {
    /// What to call it in messages.
    pub name: String,
    /// Where its bytes are.
    pub content: Content,
}

/// Where the bytes of a file are.
#[derive(Debug)]
pub enum Content {
    /// On disk, at any position: archives are read member by member.
    File(File),
    /// In memory.
    Bytes(Vec<u8>),
}

/// What an archive is read from.
trait Source: Read + Seek {}

impl<T: Read + Seek> Source for T {}

impl ArrayFile {
    /// The content from its start, and whether it is an archive.
    fn open(&self) -> Result<(Box<dyn Source + '_>, bool)> {
        let mut source: Box<dyn Source> = match &self.content {
            Content::File(file) => Box::new(BufReader::new(file)),
            Content::Bytes(bytes) => Box::new(Cursor::new(bytes)),
        };
        let mut start = Vec::new();
        let sniffed = source
            .rewind()
            .and_then(|()| source.by_ref().take(4).read_to_end(&mut start))
            .and_then(|_| source.rewind());
        sniffed.map_err(|e| unreadable(&e))?;
        Ok((source, npy::is_npz(&start)))
    }

    fn arrays(&self) -> Result<Arrays> {
        let (mut source, is_archive) = self.open()?;
        if is_archive {
            return Ok(Arrays::Named(npy::read_npz(source)?));
        }
        let mut bytes = Vec::new();
        source.read_to_end(&mut bytes).map_err(|e| unreadable(&e))?;
        Ok(Arrays::Single(NpyArray::read(bytes)?))
    }
}

/// What a file holds.
enum Arrays {
    Named(NpzArrays),
    Single(NpyArray),
}

fn unreadable(error: &std::io::Error) -> Box<Diagnostic> {
    Diagnostic::error(codes::ARRAY_FILE, format!("cannot read: {error}"))
}

/// The form results are written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArrayFormat {
    /// All arrays, named.
    #[default]
    Npz,
    /// One array.
    Npy,
}

/// The array leaves of shapes, in order.
pub fn array_leaves<'a>(shapes: impl IntoIterator<Item = &'a Shape>) -> Vec<&'a ArrayShape> {
    let leaves = shapes.into_iter().flat_map(|shape| shape.leaves());
    leaves.filter_map(|(_, leaf)| leaf.as_array()).collect()
}

/// Reads one value for each shape: from archives by name (`in0`, `in1`, ... for the prefix `in`),
/// from single arrays in the order the files are given.
///
/// # Errors
/// `XA8002` for unreadable files; `XA8001` when arrays are missing, left over or do not fit.
pub fn read(
    files: &[ArrayFile],
    prefix: &str,
    shapes: &[&ArrayShape],
) -> Result<Vec<ArrayLiteral>> {
    let mut slots: Vec<Option<NpyArray>> = vec![None; shapes.len()];
    for file in files {
        let at = |e: Box<Diagnostic>| e.or_at(|| Location::Path(file.name.clone()));
        match file.arrays().map_err(at)? {
            Arrays::Named(arrays) => {
                for (name, array) in arrays {
                    let number = name
                        .strip_prefix(prefix)
                        .and_then(|n| n.parse::<usize>().ok());
                    let slot = number.and_then(|n| slots.get_mut(n));
                    let slot = slot.ok_or_else(|| at(left_over(&name, prefix, shapes.len())))?;
                    *slot = Some(array);
                }
            }
            Arrays::Single(array) => {
                let slot = slots.iter_mut().find(|slot| slot.is_none());
                let slot = slot.ok_or_else(|| at(left_over("the array", prefix, shapes.len())))?;
                *slot = Some(array);
            }
        }
    }
    let pairs = slots.into_iter().zip(shapes).enumerate();
    pairs
        .map(|(i, (array, shape))| {
            let name = format!("{prefix}{i}");
            let array = array.ok_or_else(|| {
                let message = format!("`{name}`, {}, is missing", describe(shape));
                Diagnostic::error(codes::INPUT_MISMATCH, message)
            })?;
            array.into_literal(&name, shape)
        })
        .collect()
}

fn left_over(name: &str, prefix: &str, count: usize) -> Box<Diagnostic> {
    let wanted = match count {
        0 => "no array is wanted".to_owned(),
        1 => format!("only `{prefix}0` is wanted"),
        n => format!("`{prefix}0` to `{prefix}{}` are wanted", n - 1),
    };
    let message = format!("`{name}` has no place, {wanted}");
    Diagnostic::error(codes::INPUT_MISMATCH, message)
}

/// `f32[2,3]`
pub fn describe(shape: &ArrayShape) -> String {
    let dims: Vec<String> = shape.dims.iter().map(ToString::to_string).collect();
    format!("{}[{}]", shape.ty, dims.join(","))
}

/// Results as a file: named `out0`, `out1`, ... in an archive, or the only one by itself.
///
/// # Errors
/// `XA8002` when the form cannot hold them.
pub fn write(values: &[ArrayLiteral], format: ArrayFormat) -> Result<Vec<u8>> {
    match (format, values) {
        (ArrayFormat::Npy, [only]) => Ok(NpyArray::from_literal(only).write()),
        (ArrayFormat::Npy, _) => Err(Diagnostic::error(
            codes::ARRAY_FILE,
            format!(
                "a `.npy` file holds one array, the program gives {}",
                values.len()
            ),
        )
        .help("write an `.npz` file")),
        (ArrayFormat::Npz, _) => {
            let arrays = values.iter().enumerate();
            let arrays: Vec<(String, NpyArray)> = arrays
                .map(|(i, value)| (format!("out{i}"), NpyArray::from_literal(value)))
                .collect();
            npy::write_npz(arrays.iter().map(|(name, array)| (name.as_str(), array)))
        }
    }
}

/// How many elements of a value are shown.
const SHOWN: usize = 8;

/// The first elements of a value, in row-major order.
pub fn first_elements(value: &ArrayLiteral) -> Vec<String> {
    let elements = 0..value.len().min(SHOWN);
    elements
        .map(|i| compare::element_text(value.ty(), value.element(i)))
        .collect()
}

/// The shape of a value and its first elements.
pub fn preview(value: &ArrayLiteral) -> String {
    let elements = first_elements(value).join(", ");
    let more = if value.len() > SHOWN { ", ..." } else { "" };
    format!("{} {{{elements}{more}}}", describe(value.shape()))
}

/// What a comparison with expected results found.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Name of the result: `out0`.
    pub name: String,
    /// Whether it is close enough.
    pub passed: bool,
    /// The finding in words.
    pub text: String,
}

/// Compares results with expected ones.
///
/// # Errors
/// `XA8005` when shapes differ.
pub fn judge(
    results: &[ArrayLiteral],
    expected: &[ArrayLiteral],
    tolerance: &Tolerance,
) -> Result<Vec<Verdict>> {
    let pairs = results.iter().zip(expected).enumerate();
    pairs
        .map(|(i, (got, wanted))| {
            let found = compare::compare(got, wanted, tolerance)?;
            Ok(Verdict {
                name: format!("out{i}"),
                passed: found.passed,
                text: found.describe(),
            })
        })
        .collect()
}

/// A parameter list from the array leaves of all parameters.
pub fn arguments(parameters: &[Shape], leaves: Vec<ArrayLiteral>) -> Vec<Literal> {
    fn build(shape: &Shape, leaves: &mut impl Iterator<Item = ArrayLiteral>) -> Literal {
        match shape {
            Shape::Array(array) => match leaves.next() {
                Some(leaf) => Literal::Array(leaf),
                None => Literal::Array(ArrayLiteral::zeros(array.clone())),
            },
            Shape::Tuple(elements) => {
                Literal::Tuple(elements.iter().map(|e| build(e, leaves)).collect())
            }
            Shape::Token | Shape::Opaque => Literal::Token,
        }
    }
    let mut leaves = leaves.into_iter();
    let parameters = parameters.iter();
    parameters.map(|shape| build(shape, &mut leaves)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::PrimitiveType;

    fn file(name: &str, bytes: Vec<u8>) -> ArrayFile {
        ArrayFile {
            name: name.to_owned(),
            content: Content::Bytes(bytes),
        }
    }

    #[test]
    fn archives_go_by_name_and_single_arrays_by_order() {
        let shape = ArrayShape::new(PrimitiveType::U8, [2]);
        let value = |byte| ArrayLiteral::new(shape.clone(), vec![byte; 2]);
        let array = |byte| NpyArray::from_literal(&value(byte));
        let (one, two) = (array(1), array(2));
        let archive = npy::write_npz([("in2", &one), ("in0", &two)]).unwrap();
        let shapes = [&shape, &shape, &shape];
        let single = array(3).write();
        let files = [file("a.npz", archive.clone()), file("b.npy", single)];
        let read_back = read(&files, "in", &shapes).unwrap();
        assert_eq!(read_back, [value(2), value(3), value(1)]);
        let missing = read(&files[..1], "in", &shapes).unwrap_err();
        assert_eq!(missing.message, "`in1`, u8[2], is missing");
        let extra = read(&files[..1], "in", &shapes[..2]).unwrap_err();
        assert_eq!(
            extra.message,
            "`in2` has no place, `in0` to `in1` are wanted"
        );
    }

    #[test]
    fn results_are_named() {
        let value = ArrayLiteral::zeros(ArrayShape::new(PrimitiveType::BF16, [3]));
        let archive = write(&[value.clone(), value.clone()], ArrayFormat::Npz).unwrap();
        let arrays = npy::read_npz(Cursor::new(archive)).unwrap();
        assert_eq!(arrays.keys().collect::<Vec<_>>(), ["out0", "out1"]);
        assert!(write(&[value.clone(), value.clone()], ArrayFormat::Npy).is_err());
        assert!(npy::is_npy(&write(&[value], ArrayFormat::Npy).unwrap()));
    }
}
