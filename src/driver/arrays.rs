//! Array files in and out: which array of which file is which input, and results under their names.
//! A snapshot of XLA serves as one: it holds the arguments of a program, and maybe its result.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::io::Cursor;
use std::io::Read;
use std::io::Seek;

use crate::base::Diagnostic;
use crate::base::Location;
use crate::base::Result;
use crate::base::codes;
use crate::driver::closeness::Closeness;
use crate::driver::closeness::Making;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::literal::compare;
use crate::literal::compare::Tolerance;
use crate::literal::npy;
use crate::literal::npy::NpyArray;
use crate::literal::npy::NpzArrays;
use crate::shape::ArrayShape;
use crate::shape::ProgramShape;
use crate::shape::Shape;
use crate::wire::snapshot;
use crate::wire::snapshot::Values;

/// An `.npz` or `.npy` file, or a snapshot.
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

/// Where the program ends in a snapshot of the large form, by the first bytes of a file of that
/// length: what follows are arguments, which may be more than memory holds.
#[cfg(feature = "reference")]
pub fn snapshot_program_end(start: &[u8], length: u64) -> Option<u64> {
    snapshot::large_header_end(start, length)
}

/// What an archive is read from.
trait Source: Read + Seek {}

impl<T: Read + Seek> Source for T {}

impl ArrayFile {
    /// Whether it is a snapshot that holds arguments.
    ///
    /// # Errors
    /// `XA8002` when it cannot be read, `XA1004` when it is a damaged one.
    #[cfg(feature = "reference")]
    pub fn is_snapshot(&self) -> Result<bool> {
        let values = match self.arrays()? {
            Arrays::Snapshot(values) => values,
            Arrays::Named(_) | Arrays::Single(_) => return Ok(false),
        };
        Ok(values.arguments.iter().any(|list| !list.is_empty()))
    }

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
        if let Some(values) = snapshot::read(&mut source)? {
            return Ok(Arrays::Snapshot(values));
        }
        source.rewind().map_err(|e| unreadable(&e))?;
        let mut bytes = Vec::new();
        source.read_to_end(&mut bytes).map_err(|e| unreadable(&e))?;
        Ok(Arrays::Single(NpyArray::read(bytes)?))
    }
}

/// What a file holds.
enum Arrays {
    Named(NpzArrays),
    Single(NpyArray),
    Snapshot(Values),
}

/// An array that was found for an input or result.
#[derive(Clone)]
enum Found {
    File(NpyArray),
    Value(ArrayLiteral),
}

impl Found {
    /// The array as a value of this shape.
    fn into_literal(self, name: &str, shape: &ArrayShape) -> Result<ArrayLiteral> {
        let value = match self {
            Self::File(array) => return array.into_literal(name, shape),
            Self::Value(value) => value,
        };
        if value.ty() != shape.ty || value.shape().dims != shape.dims {
            let (found, wanted) = (describe(value.shape()), describe(shape));
            let message = format!("`{name}` is {found}, wanted {wanted}");
            return Err(Diagnostic::error(codes::INPUT_MISMATCH, message));
        }
        Ok(value.reshaped(shape.clone()))
    }
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

/// One of the partitions that run a program together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its number.
    pub number: usize,
    /// How many there are.
    pub count: usize,
}

impl Partition {
    /// The only one.
    pub const ONLY: Self = Self {
        number: 0,
        count: 1,
    };
}

/// An array that a program takes or gives: a leaf of a parameter or of its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted<'a> {
    /// What the program calls it, `args[0]['w']` or, within a tuple, `state.1`; empty when it has no
    /// name.
    pub name: String,
    /// Its shape.
    pub shape: &'a ArrayShape,
}

/// The array leaves of a program's parameters, in order.
pub fn inputs(program: &ProgramShape) -> Vec<Wanted<'_>> {
    let parameters = program.parameters.iter().enumerate();
    let leaves = parameters.flat_map(|(number, shape)| {
        let name = program.parameter_names.get(number);
        leaves(name.map_or("", String::as_str), shape)
    });
    leaves.collect()
}

/// The array leaves of a program's result, in order. They have no names.
pub fn outputs(program: &ProgramShape) -> Vec<Wanted<'_>> {
    leaves("", &program.result)
}

fn leaves<'a>(name: &str, shape: &'a Shape) -> Vec<Wanted<'a>> {
    let leaves = shape.leaves().into_iter();
    let leaves = leaves.filter_map(|(index, leaf)| {
        let place = index.iter().filter(|_| !name.is_empty());
        Some(Wanted {
            name: place.fold(name.to_owned(), |name, place| format!("{name}.{place}")),
            shape: leaf.as_array()?,
        })
    });
    leaves.collect()
}

/// Reads one value for each leaf: from archives by name, from single arrays in the order the files
/// are given, from snapshots the arguments of the partition or, for the prefix `out`, the result.
///
/// Names in archives are `in0`, `in1`, ... for the prefix `in`, those of the program, or, when all
/// are of this form, `arr_0`, `arr_1`, ..., as NumPy calls arrays without names.
///
/// # Errors
/// `XA8002` for unreadable files, `XA1004` for damaged snapshots; `XA8001` when arrays are missing,
/// left over, given twice or do not fit.
pub fn read(
    files: &[ArrayFile],
    prefix: &str,
    wanted: &[Wanted<'_>],
    partition: Partition,
) -> Result<Vec<ArrayLiteral>> {
    let mut slots: Vec<Option<Found>> = vec![None; wanted.len()];
    let named = by_name(wanted);
    for file in files {
        let at = |mut e: Box<Diagnostic>| {
            // A member is told with the archive it is in.
            e.location = Some(Location::Path(match e.location.take() {
                Some(Location::Path(member)) => format!("{}/{member}", file.name),
                _ => file.name.clone(),
            }));
            e
        };
        let left_over = |name: &str| at(left_over(name, prefix, wanted));
        let mut give = |place: usize, name: &str, value: Found| match slots.get_mut(place) {
            None => Err(left_over(name)),
            Some(Some(_)) => Err(at(given_twice(name, &format!("{prefix}{place}")))),
            Some(slot) => {
                *slot = Some(value);
                Ok(())
            }
        };
        match file.arrays().map_err(at)? {
            Arrays::Named(arrays) => {
                let is_listed = arrays.keys().all(|name| number(name, UNNAMED).is_some());
                for (name, array) in arrays {
                    let place = number(&name, prefix)
                        .or_else(|| named.get(name.as_str()).copied())
                        .or_else(|| number(&name, UNNAMED).filter(|_| is_listed));
                    let place = place.ok_or_else(|| left_over(&name))?;
                    give(place, &name, Found::File(array))?;
                }
            }
            Arrays::Snapshot(values) => {
                let values = of_snapshot(values, prefix, partition).map_err(at)?;
                for (i, value) in values.into_iter().enumerate() {
                    give(i, &format!("{prefix}{i}"), Found::Value(value))?;
                }
            }
            Arrays::Single(array) => {
                let slot = slots.iter_mut().find(|slot| slot.is_none());
                let slot = slot.ok_or_else(|| left_over("the array"))?;
                *slot = Some(Found::File(array));
            }
        }
    }
    let pairs = slots.into_iter().zip(wanted).enumerate();
    pairs
        .map(|(i, (array, Wanted { name, shape }))| {
            let number = format!("{prefix}{i}");
            let called = |error: Box<Diagnostic>| match name.is_empty() {
                true => error,
                false => error.note(format!("`{number}` is {name}")),
            };
            let array = array.ok_or_else(|| {
                let message = format!("`{number}`, {}, is missing", describe(shape));
                let error = called(Diagnostic::error(codes::INPUT_MISMATCH, message));
                match files.is_empty() {
                    true => error.help(how_to_give(prefix, wanted)),
                    false => error,
                }
            })?;
            array.into_literal(&number, shape).map_err(called)
        })
        .collect()
}

/// What NumPy's `savez` calls arrays without names, before their numbers.
const UNNAMED: &str = "arr_";

/// The number in a name of that form.
fn number(name: &str, prefix: &str) -> Option<usize> {
    let digits = name.strip_prefix(prefix)?;
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

/// The places of the leaves whose names no other leaf has.
fn by_name<'a>(wanted: &'a [Wanted<'_>]) -> BTreeMap<&'a str, usize> {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, leaf) in wanted.iter().enumerate() {
        places.entry(&leaf.name).or_default().push(place);
    }
    let only = |(name, places): (&'a str, Vec<usize>)| match *places {
        [place] if !name.is_empty() => Some((name, place)),
        _ => None,
    };
    places.into_iter().filter_map(only).collect()
}

/// The values of a snapshot that the prefix means.
fn of_snapshot(
    mut values: Values,
    prefix: &str,
    partition: Partition,
) -> Result<Vec<ArrayLiteral>> {
    if prefix == "in" {
        let place = match values.arguments.len() {
            0 => return Ok(Vec::new()),
            1 => 0,
            count if count == partition.count => partition.number,
            count => {
                let message = format!(
                    "the snapshot holds arguments of {count} partitions, the program runs as {}",
                    partition.count
                );
                let help = "say how many partitions run the program";
                return Err(Diagnostic::error(codes::INPUT_MISMATCH, message).help(help));
            }
        };
        return Ok(values.arguments.swap_remove(place));
    }
    values.result.ok_or_else(|| {
        let message = "the snapshot holds arguments, and no result";
        Diagnostic::error(codes::INPUT_MISMATCH, message)
    })
}

/// What to do where a program has no arrays at all.
fn how_to_give(prefix: &str, wanted: &[Wanted<'_>]) -> String {
    let names = match wanted.len() {
        1 => format!("`{prefix}0`"),
        n => format!("`{prefix}0` to `{prefix}{}`", n - 1),
    };
    let or = match wanted.iter().find(|leaf| !leaf.name.is_empty()) {
        Some(leaf) => format!(" (or their names, such as `{}`)", leaf.name),
        None => String::new(),
    };
    format!(
        "name a file with --input: an `.npz` with {names}{or}, `.npy` files in order, or a snapshot \
         of XLA"
    )
}

fn left_over(name: &str, prefix: &str, wanted: &[Wanted<'_>]) -> Box<Diagnostic> {
    const MOST: usize = 8;
    let places = match wanted.len() {
        0 => "no array is wanted".to_owned(),
        1 => format!("only `{prefix}0` is wanted"),
        n => format!("`{prefix}0` to `{prefix}{}` are wanted", n - 1),
    };
    let message = format!("`{name}` has no place, {places}");
    let error = Diagnostic::error(codes::INPUT_MISMATCH, message);
    let leaves = wanted.iter().enumerate();
    let leaves = leaves.filter(|(_, leaf)| !leaf.name.is_empty());
    let names = leaves.map(|(i, leaf)| format!("`{prefix}{i}` is {}", leaf.name));
    let mut names: Vec<String> = names.collect();
    if names.is_empty() {
        return error;
    }
    if names.len() > MOST {
        let more = names.len() - MOST;
        names.truncate(MOST);
        names.push(format!("{more} more"));
    }
    error.note(names.join(", "))
}

fn given_twice(name: &str, place: &str) -> Box<Diagnostic> {
    let message = match name == place {
        true => format!("`{name}` was given before"),
        false => format!("`{name}` is `{place}`, which was given before"),
    };
    Diagnostic::error(codes::INPUT_MISMATCH, message).help("give each array once")
}

/// `f32[2,<=3]`
pub fn describe(shape: &ArrayShape) -> String {
    let plain = ArrayShape {
        layout: None,
        ..shape.clone()
    };
    plain.to_string()
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

/// Compares the results of each device with those expected of it. Where nothing is known of how they
/// are made, `makings` is empty.
///
/// # Errors
/// `XA8005` when shapes differ.
pub fn judge_each(
    results: &[Vec<ArrayLiteral>],
    expected: &[Vec<ArrayLiteral>],
    closeness: &Closeness,
    makings: &[Making],
) -> Result<Vec<Verdict>> {
    let mut verdicts = Vec::new();
    for (device, (got, wanted)) in results.iter().zip(expected).enumerate() {
        for mut verdict in judge(got, wanted, closeness, makings)? {
            if results.len() > 1 {
                verdict.name = format!("device {device}: {}", verdict.name);
            }
            verdicts.push(verdict);
        }
    }
    Ok(verdicts)
}

/// Compares results with expected ones.
///
/// # Errors
/// `XA8005` when shapes differ.
pub fn judge(
    results: &[ArrayLiteral],
    expected: &[ArrayLiteral],
    closeness: &Closeness,
    makings: &[Making],
) -> Result<Vec<Verdict>> {
    let pairs = results.iter().zip(expected).enumerate();
    pairs
        .map(|(i, (got, wanted))| {
            let making = makings.get(i).copied();
            let making = making.unwrap_or_else(|| Making::of_type(wanted.ty()));
            let tolerance = closeness.tolerance(wanted, making);
            let found = compare::compare(got, wanted, &tolerance)?;
            Ok(Verdict {
                name: format!("out{i}"),
                passed: found.passed,
                text: format!("{}{}", found.describe(), within(&tolerance)),
            })
        })
        .collect()
}

/// How close is close enough, in words.
fn within(tolerance: &Tolerance) -> String {
    let Tolerance {
        rtol, atol, ulp, ..
    } = tolerance;
    let ulp = match ulp {
        0 => String::new(),
        ulp => format!(", or {ulp} ulp"),
    };
    match (*rtol, *atol) {
        (0.0, 0.0) if ulp.is_empty() => "; wanted equal ones".to_owned(),
        _ => format!("; wanted within {rtol:.2e} relative, {atol:.2e} absolute{ulp}"),
    }
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
        let leaf = |name: &str| Wanted {
            name: name.to_owned(),
            shape: &shape,
        };
        let wanted = [leaf("args[0]['w']"), leaf("args[1]"), leaf("")];
        let single = array(3).write();
        let files = [file("a.npz", archive.clone()), file("b.npy", single)];
        let read_back = read(&files, "in", &wanted, Partition::ONLY).unwrap();
        assert_eq!(read_back, [value(2), value(3), value(1)]);
        let missing = read(&files[..1], "in", &wanted, Partition::ONLY).unwrap_err();
        assert_eq!(missing.message, "`in1`, u8[2], is missing");
        assert_eq!(missing.notes, ["`in1` is args[1]"]);
        let extra = read(&files[..1], "in", &wanted[..2], Partition::ONLY).unwrap_err();
        assert_eq!(
            extra.message,
            "`in2` has no place, `in0` to `in1` are wanted"
        );
        assert_eq!(extra.notes, ["`in0` is args[0]['w'], `in1` is args[1]"]);
        let [first, _] = files;
        let twice = read(
            &[first, file("b.npz", archive)],
            "in",
            &wanted,
            Partition::ONLY,
        )
        .unwrap_err();
        assert_eq!(twice.message, "`in0` was given before");
    }

    #[test]
    fn archives_may_have_the_names_of_the_program_or_those_of_numpy() {
        let shape = ArrayShape::new(PrimitiveType::U8, [1]);
        let value = |byte| ArrayLiteral::new(shape.clone(), vec![byte]);
        let leaf = |name: &str| Wanted {
            name: name.to_owned(),
            shape: &shape,
        };
        let wanted = [leaf("args[0]['w']"), leaf("same"), leaf("same")];
        let read_named = |names: [&str; 3]| {
            let arrays = [1, 2, 3].map(|byte| NpyArray::from_literal(&value(byte)));
            let archive = npy::write_npz(names.into_iter().zip(&arrays)).unwrap();
            read(&[file("a.npz", archive)], "in", &wanted, Partition::ONLY)
        };
        let read_back = read_named(["in2", "args[0]['w']", "in1"]).unwrap();
        assert_eq!(read_back, [value(2), value(3), value(1)]);
        let read_back = read_named(["arr_1", "arr_2", "arr_0"]).unwrap();
        assert_eq!(read_back, [value(3), value(1), value(2)]);
        for (names, message) in [
            (["in0", "in1", "arr_2"], "`arr_2` has no place"),
            (["in0", "in1", "same"], "`same` has no place"),
            (["in1", "in2", "in+0"], "`in+0` has no place"),
            (["in0", "in1", "args[0]['w']"], "`in0` was given before"),
        ] {
            let error = read_named(names).unwrap_err();
            assert!(error.message.starts_with(message), "{}", error.message);
        }
    }

    #[test]
    fn leaves_of_tuples_are_named_by_their_place() {
        let leaf = Shape::Array(ArrayShape::new(PrimitiveType::U8, [1]));
        let pair = Shape::Tuple(vec![
            leaf.clone(),
            Shape::Tuple(vec![leaf.clone(), Shape::Token]),
        ]);
        let program = ProgramShape {
            parameters: vec![leaf, pair.clone()],
            parameter_names: vec!["x".to_owned(), "state".to_owned()],
            result: pair,
        };
        let names = |leaves: Vec<Wanted<'_>>| -> Vec<String> {
            leaves.into_iter().map(|leaf| leaf.name).collect()
        };
        assert_eq!(names(inputs(&program)), ["x", "state.0", "state.1.0"]);
        assert_eq!(names(outputs(&program)), ["", ""]);
    }

    #[test]
    fn a_damaged_member_is_told_with_its_archive() {
        let odd = NpyArray {
            kind: npy::NpyKind::Float,
            width: 3,
            dims: vec![1],
            data: vec![0; 3],
        };
        let archive = file("a.npz", npy::write_npz([("in0", &odd)]).unwrap());
        let shape = ArrayShape::new(PrimitiveType::F32, [1]);
        let wanted = Wanted {
            name: String::new(),
            shape: &shape,
        };
        let error = read(&[archive], "in", &[wanted], Partition::ONLY).unwrap_err();
        assert_eq!(
            error.location,
            Some(Location::Path("a.npz/in0.npy".to_owned()))
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
