//! Snapshots: messages that hold a program and the values it ran on.
//!
//! `HloSnapshot` has arguments and a result; `HloUnoptimizedSnapshot` has the arguments of each
//! partition. The latter has a large form too, for what is more than a message can be: a varint
//! with the length of a message that has sizes instead of arguments, that message, and then the
//! arguments one after the other. An argument is there the length of its shape in eight bytes, the
//! shape, and the elements of each array in the order of its layout, `pred` eight to a byte.
//! Upstream: `xla/runtime/large_hlo_snapshot_serialization`, `xla/literal.h`.

use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;

use prost::Message;

use crate::base::Result;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::literal::device_form::device_size;
use crate::literal::device_form::from_device;
use crate::proto::xla as pb;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;
use crate::shape::Shape;
use crate::wire::literal::decode_literal;
use crate::wire::number::bad;
use crate::wire::number::message;
use crate::wire::number::unsupported;
use crate::wire::shape::decode_shape;

/// The values of a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    /// The array leaves of the arguments of each partition; one list is for all partitions.
    pub arguments: Vec<Vec<ArrayLiteral>>,
    /// The array leaves of the result, when there is one.
    pub result: Option<Vec<ArrayLiteral>>,
}

/// A message that holds a module.
#[cfg_attr(
    not(feature = "reference"),
    expect(dead_code, reason = "a loader takes the values and leaves the program")
)]
pub(super) enum Holder {
    Module(Box<pb::HloModuleProto>),
    WithConfig(Box<pb::HloModuleProtoWithConfig>),
    Snapshot(Box<pb::HloSnapshot>),
    Unoptimized(Box<pb::HloUnoptimizedSnapshot>),
}

/// Least length of a message that holds a module. A length of ten and less is no length but the
/// tag of a message's first field.
const LEAST_HEADER: u64 = 11;

/// Where the program of the large form ends, when the first bytes of a file of that length are those
/// of one.
pub fn large_header_end(start: &[u8], length: u64) -> Option<u64> {
    let mut rest = start;
    let header = prost::encoding::decode_varint(&mut rest).ok()?;
    let end = header.checked_add((start.len() - rest.len()) as u64)?;
    let begins_with_module = rest.first() == Some(&0x0a);
    (header >= LEAST_HEADER && end <= length && begins_with_module).then_some(end)
}

/// The first message of the large form, and where it ends.
fn large_header(bytes: &[u8]) -> Option<(pb::HloUnoptimizedSnapshot, usize)> {
    let end = large_header_end(bytes, bytes.len() as u64)?;
    let end = usize::try_from(end).ok()?;
    let header = bytes.get(..end)?;
    let header = pb::HloUnoptimizedSnapshot::decode_length_delimited(header).ok()?;
    has_module(header.hlo_module.as_ref()).then_some((header, end))
}

fn has_module(module: Option<&pb::HloModuleProto>) -> bool {
    module.is_some_and(|module| !module.computations.is_empty())
}

/// The message that the bytes are, whichever of those that hold a module.
///
/// # Errors
/// `XA1004` when they are none.
pub(super) fn open(bytes: &[u8]) -> Result<Holder> {
    let plain = message::<pb::HloModuleProto>(bytes, "xla.HloModuleProto");
    let plain = match plain {
        Ok(proto) if !proto.computations.is_empty() => return Ok(Holder::Module(Box::new(proto))),
        Ok(_) => bad("the module has no computations"),
        Err(error) => error,
    };
    if let Ok(proto) = pb::HloUnoptimizedSnapshot::decode(bytes)
        && has_module(proto.hlo_module.as_ref())
        && holds_inputs(bytes)
    {
        return Ok(Holder::Unoptimized(Box::new(proto)));
    }
    if let Ok(proto) = pb::HloModuleProtoWithConfig::decode(bytes)
        && has_module(proto.hlo_module.as_ref())
    {
        return Ok(Holder::WithConfig(Box::new(proto)));
    }
    if let Ok(proto) = pb::HloSnapshot::decode(bytes)
        && has_module(proto.hlo.as_ref().and_then(|hlo| hlo.hlo_module.as_ref()))
    {
        return Ok(Holder::Snapshot(Box::new(proto)));
    }
    if let Some((header, end)) = large_header(bytes) {
        let sizes = checked_sizes(&header)?;
        let wanted: u128 = sizes.iter().map(|&size| u128::from(size)).sum();
        let found = (bytes.len() - end) as u128;
        // A program by itself is read without its arguments.
        if found != 0 && found != wanted {
            return Err(bad(format!(
                "the snapshot has {found} bytes of arguments, its header describes {wanted}"
            )));
        }
        return Ok(Holder::Unoptimized(Box::new(header)));
    }
    Err(bad("the bytes hold no HLO module").note(plain.message))
}

/// Whether what stands beside a module is the inputs of partitions, and not a configuration: inputs
/// have no fields but the first two, a configuration always has counts of devices.
fn holds_inputs(bytes: &[u8]) -> bool {
    let Some(outer) = fields(bytes) else {
        return false;
    };
    let mut beside = outer.iter().filter(|(number, _)| *number == 2).peekable();
    beside.peek().is_some()
        && beside.all(|(_, inside)| {
            let inside = fields(inside);
            inside.is_some_and(|all| all.iter().all(|(number, _)| matches!(number, 1 | 2)))
        })
}

/// The fields of a message: numbers, and the bytes of those that have a length.
pub(super) fn fields(mut rest: &[u8]) -> Option<Vec<(u64, &[u8])>> {
    let mut out = Vec::new();
    while !rest.is_empty() {
        let tag = prost::encoding::decode_varint(&mut rest).ok()?;
        let length = match tag & 7 {
            0 => {
                prost::encoding::decode_varint(&mut rest).ok()?;
                0
            }
            1 => 8,
            2 => prost::encoding::decode_varint(&mut rest).ok()?,
            5 => 4,
            _ => return None,
        };
        let (content, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        out.push((tag >> 3, content));
        rest = after;
    }
    Some(out)
}

/// The values of a snapshot; nothing when the source holds none.
///
/// # Errors
/// `XA1004` when it is a damaged one.
pub fn read(source: &mut (impl Read + Seek)) -> Result<Option<Values>> {
    let failed = |e: std::io::Error| bad(format!("cannot read: {e}"));
    let length = source.seek(SeekFrom::End(0)).map_err(failed)?;
    source.rewind().map_err(failed)?;
    let mut start = Vec::new();
    source.take(11).read_to_end(&mut start).map_err(failed)?;
    source.rewind().map_err(failed)?;
    let mut bytes = Vec::new();
    if let Some(end) = large_header_end(&start, length) {
        source.take(end).read_to_end(&mut bytes).map_err(failed)?;
        if let Some((header, _)) = large_header(&bytes) {
            return read_large(source, &header, length - end).map(Some);
        }
    }
    source.read_to_end(&mut bytes).map_err(failed)?;
    let (partitions, result) = match open(&bytes) {
        Ok(Holder::Snapshot(proto)) => (vec![proto.arguments], proto.result),
        Ok(Holder::Unoptimized(proto)) => {
            check_version(proto.version)?;
            let partitions = proto.partitions.into_iter();
            (partitions.map(|p| p.arguments).collect(), None)
        }
        Ok(Holder::Module(_) | Holder::WithConfig(_)) | Err(_) => return Ok(None),
    };
    let arguments = partitions.iter().map(|arguments| {
        let literals = arguments.iter().map(decode_literal);
        Ok(leaves(literals.collect::<Result<Vec<_>>>()?))
    });
    let result = match &result {
        Some(proto) => Some(leaves([decode_literal(proto)?])),
        None => None,
    };
    Ok(Some(Values {
        arguments: arguments.collect::<Result<_>>()?,
        result,
    }))
}

fn check_version(version: i32) -> Result<()> {
    match version {
        0 => Ok(()),
        other => Err(unsupported(format!(
            "a snapshot of version {other}, wanted version 0"
        ))),
    }
}

/// The sizes of the arguments that a header of the large form describes.
fn checked_sizes(header: &pb::HloUnoptimizedSnapshot) -> Result<Vec<u64>> {
    check_version(header.version)?;
    let descriptors = header.partitions.iter();
    let descriptors = descriptors.flat_map(|partition| &partition.arguments_descriptors);
    let sizes = descriptors.map(|descriptor| match descriptor.version {
        0 => Ok(descriptor.argument_size_bytes),
        other => Err(unsupported(format!(
            "an argument of version {other} in a snapshot, wanted version 0"
        ))),
    });
    sizes.collect()
}

fn read_large(
    source: &mut impl Read,
    header: &pb::HloUnoptimizedSnapshot,
    mut left: u64,
) -> Result<Values> {
    checked_sizes(header)?;
    let mut partitions = Vec::with_capacity(header.partitions.len());
    let mut number = 0;
    for partition in &header.partitions {
        let mut arguments = Vec::new();
        for descriptor in &partition.arguments_descriptors {
            let size = descriptor.argument_size_bytes;
            let short = || {
                bad(format!(
                    "argument {number} of the snapshot has {size} bytes by the header, the file \
                     has {left}"
                ))
            };
            left = left.checked_sub(size).ok_or_else(short)?;
            let mut bytes = Vec::new();
            source
                .take(size)
                .read_to_end(&mut bytes)
                .map_err(|e| bad(format!("cannot read argument {number}: {e}")))?;
            let literal = raw_literal(&bytes);
            let note = || format!("argument {number} of the snapshot");
            arguments.push(literal.map_err(|e| e.note(note()))?);
            number += 1;
        }
        partitions.push(leaves(arguments));
    }
    if left != 0 {
        return Err(bad(format!(
            "{left} bytes after the last argument of the snapshot"
        )));
    }
    Ok(Values {
        arguments: partitions,
        result: None,
    })
}

/// The literal of an argument of the large form.
fn raw_literal(bytes: &[u8]) -> Result<Literal> {
    let short = || bad("the argument ends within its shape");
    let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(short)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| short())?;
    let (shape, mut rest) = rest.split_at_checked(length).ok_or_else(short)?;
    let shape = decode_shape(&message(shape, "xla.ShapeProto")?)?;
    let literal = raw_value(&shape, &mut rest)?;
    match rest.len() {
        0 => Ok(literal),
        more => Err(bad(format!(
            "{more} bytes after the last element of the argument"
        ))),
    }
}

fn raw_value(shape: &Shape, rest: &mut &[u8]) -> Result<Literal> {
    match shape {
        Shape::Array(array) => Ok(Literal::Array(raw_array(array, rest)?)),
        Shape::Tuple(elements) => {
            let elements = elements.iter().map(|element| raw_value(element, rest));
            Ok(Literal::Tuple(elements.collect::<Result<_>>()?))
        }
        Shape::Token | Shape::Opaque => Err(bad("an argument that is no array")),
    }
}

fn raw_array(shape: &ArrayShape, rest: &mut &[u8]) -> Result<ArrayLiteral> {
    if shape.is_dynamic() {
        return Err(unsupported(
            "arguments with dynamic dimensions are not supported",
        ));
    }
    let is_pred = shape.ty == PrimitiveType::Pred;
    let size = match is_pred {
        true => shape.element_count().div_ceil(8),
        false => device_size(shape),
    };
    let (bytes, after) = rest.split_at_checked(size).ok_or_else(|| {
        let (found, ty) = (rest.len(), shape.ty);
        let dims = shape.dims.as_slice();
        bad(format!(
            "{found} bytes of elements, wanted {size} for {ty}{dims:?}"
        ))
    })?;
    *rest = after;
    if !is_pred {
        return from_device(bytes, shape);
    }
    let bits = (0..shape.element_count()).map(|i| bytes[i / 8] >> (i % 8) & 1);
    from_device(&bits.collect::<Vec<u8>>(), shape)
}

/// The array leaves, in order.
fn leaves(values: impl IntoIterator<Item = Literal>) -> Vec<ArrayLiteral> {
    fn collect(value: Literal, out: &mut Vec<ArrayLiteral>) {
        match value {
            Literal::Array(array) => out.push(array),
            Literal::Tuple(elements) => elements.into_iter().for_each(|e| collect(e, out)),
            Literal::Token => {}
        }
    }
    let mut out = Vec::new();
    values
        .into_iter()
        .for_each(|value| collect(value, &mut out));
    out
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    const PLAIN: &[u8] = include_bytes!("../../tests/snapshots/plain.pb");
    const LARGE: &[u8] = include_bytes!("../../tests/snapshots/large.pb");
    const OPTIMIZED: &[u8] = include_bytes!("../../tests/snapshots/optimized.pb");

    fn values(bytes: &[u8]) -> Result<Option<Values>> {
        read(&mut Cursor::new(bytes))
    }

    /// The files are what jaxlib dumped for one call; README of the folder says which.
    #[test]
    fn every_form_gives_the_arguments_of_the_call() {
        let plain = values(PLAIN).unwrap().unwrap();
        let [arguments] = &*plain.arguments else {
            panic!("arguments of {} partitions", plain.arguments.len());
        };
        let arrays: Vec<&[u8]> = arguments.iter().map(ArrayLiteral::bytes).collect();
        let floats =
            |values: &[f32]| -> Vec<u8> { values.iter().flat_map(|v| v.to_le_bytes()).collect() };
        let x: Vec<f32> = (0u8..10).map(f32::from).collect();
        assert_eq!(arrays.len(), 5);
        assert_eq!(arrays[0], floats(&x));
        assert_eq!(arrays[1], [1, 0, 1, 1, 0, 0, 1, 1, 0, 1]);
        assert_eq!(arrays[2], [0xf8, 7, 3]);
        assert_eq!(arrays[3], floats(&[1.0, 2.0, 3.0, -1.0]));
        assert_eq!(arrays[4], floats(&[0.5]));
        assert_eq!(values(LARGE).unwrap().unwrap(), plain);
        let optimized = values(OPTIMIZED).unwrap().unwrap();
        assert_eq!(optimized.arguments, plain.arguments);
        let result = optimized.result.unwrap();
        let signs = arrays[1].iter().map(|&p| if p == 0 { -0.5 } else { 0.5 });
        let wanted: Vec<f32> = signs.zip(x).map(|(s, x)| s * x).collect();
        assert_eq!(result[0].bytes(), floats(&wanted));
        assert_eq!(result.len(), 4);
    }

    #[cfg(feature = "reference")]
    #[test]
    fn every_form_gives_the_program() {
        use crate::wire::hlo::decode_any;
        let module = decode_any(PLAIN).unwrap();
        assert_eq!(decode_any(LARGE).unwrap(), module);
        assert_eq!(decode_any(OPTIMIZED).unwrap().name, module.name);
        let end = large_header_end(LARGE, LARGE.len() as u64).unwrap() as usize;
        assert_eq!(decode_any(&LARGE[..end]).unwrap(), module);
        assert!(decode_any(&LARGE[..LARGE.len() - 1]).is_err());
        assert_eq!(large_header_end(PLAIN, PLAIN.len() as u64), None);
    }

    #[test]
    fn sizes_must_be_those_of_the_header() {
        let told = |bytes: &[u8]| values(bytes).unwrap_err().to_string();
        let cut = told(&LARGE[..LARGE.len() - 1]);
        assert!(
            cut.contains("argument 4 of the snapshot has 19 bytes"),
            "{cut}"
        );
        let longer = told(&[LARGE, b"x"].concat());
        assert!(
            longer.contains("1 bytes after the last argument"),
            "{longer}"
        );
    }

    #[test]
    fn each_partition_has_its_arguments() {
        let one = values(PLAIN).unwrap().unwrap().arguments;
        let mut plain = pb::HloUnoptimizedSnapshot::decode(PLAIN).unwrap();
        let mut second = plain.partitions[0].clone();
        second.arguments.remove(1);
        plain.partitions.push(second);
        let two = values(&plain.encode_to_vec()).unwrap().unwrap().arguments;
        let mut rest = one[0].clone();
        rest.remove(1);
        assert_eq!(two, [one[0].clone(), rest.clone()]);

        let (mut large, end) = large_header(LARGE).unwrap();
        let sizes = large.partitions[0].arguments_descriptors.clone();
        let size = |at: usize| sizes[at].argument_size_bytes as usize;
        large.partitions.push(large.partitions[0].clone());
        large.partitions[1].arguments_descriptors.remove(1);
        let mut bytes = large.encode_length_delimited_to_vec();
        bytes.extend(&LARGE[end..]);
        bytes.extend(&LARGE[end..end + size(0)]);
        bytes.extend(&LARGE[end + size(0) + size(1)..]);
        let two = values(&bytes).unwrap().unwrap().arguments;
        assert_eq!(two, [one[0].clone(), rest]);
        #[cfg(feature = "reference")]
        {
            let module = crate::wire::hlo::decode_any(&bytes).unwrap();
            assert_eq!(module.config.num_partitions, 2);
        }
    }

    #[test]
    fn versions_that_are_not_read_are_named() {
        let header = pb::HloUnoptimizedSnapshot::decode(PLAIN).unwrap();
        let with = |change: &dyn Fn(&mut pb::HloUnoptimizedSnapshot)| {
            let mut header = header.clone();
            change(&mut header);
            values(&header.encode_to_vec()).unwrap_err().to_string()
        };
        let version = with(&|h| h.version = 3);
        assert!(version.contains("a snapshot of version 3"), "{version}");
        let mut large = header;
        let descriptor = pb::hlo_inputs::ArgumentDescriptor {
            version: 1,
            argument_size_bytes: 4,
        };
        large.partitions[0].arguments.clear();
        large.partitions[0].arguments_descriptors.push(descriptor);
        let error = values(&large.encode_length_delimited_to_vec()).unwrap_err();
        assert!(
            error.message.contains("an argument of version 1"),
            "{error}"
        );
    }

    #[test]
    fn damaged_bytes_never_panic() {
        let mut state = 7u64;
        for bytes in [PLAIN, LARGE, OPTIMIZED] {
            for cut in 0..bytes.len() {
                let _ = values(&bytes[..cut]);
            }
            for round in 0..3000 {
                let mut damaged = bytes.to_vec();
                for _ in 0..=round % 4 {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    // The values stand at the end.
                    let from = if round % 2 == 0 {
                        0
                    } else {
                        damaged.len() - 400
                    };
                    let at = from + (state >> 33) as usize % (damaged.len() - from);
                    damaged[at] = (state >> 20) as u8;
                }
                let _ = values(&damaged);
            }
        }
    }
}
