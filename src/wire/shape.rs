//! Shapes and layouts on the wire (`ShapeProto`, `LayoutProto`, `ProgramShapeProto`).
//!
//! Decoding refuses negative and unbounded dimensions, layouts that are no permutation, and arrays
//! whose bytes could not be addressed, so that size arithmetic elsewhere cannot overflow.

use smallvec::SmallVec;

use crate::base::Result;
use crate::proto::xla as pb;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::Layout;
use crate::shape::PrimitiveType;
use crate::shape::ProgramShape;
use crate::shape::Shape;
use crate::shape::index::is_permutation;
use crate::wire::number::bad;
use crate::wire::number::index;
use crate::wire::number::indices;
use crate::wire::number::numbers;
use crate::wire::number::unsupported;

/// `xla.PrimitiveType` numbers of shapes that are not arrays.
const TUPLE: i32 = 13;
const OPAQUE: i32 = 14;
const TOKEN: i32 = 17;
const BUFFER: i32 = 34;

/// The shape a proto describes.
///
/// # Errors
/// `XA1004` when the proto breaks a rule of shapes.
pub fn decode_shape(proto: &pb::ShapeProto) -> Result<Shape> {
    let mut budget = ArrayShape::MAX_BYTES;
    decode_within(proto, &mut budget)
}

fn decode_within(proto: &pb::ShapeProto, budget: &mut usize) -> Result<Shape> {
    let element_type = proto.element_type;
    if element_type != TUPLE && !proto.tuple_shapes.is_empty() {
        return Err(bad(format!(
            "a shape of element type {element_type} has tuple elements"
        )));
    }
    match element_type {
        TUPLE => {
            let elements = proto.tuple_shapes.iter();
            let elements: Result<Vec<_>> = elements.map(|s| decode_within(s, budget)).collect();
            Ok(Shape::Tuple(elements?))
        }
        TOKEN => Ok(Shape::Token),
        OPAQUE => Ok(Shape::Opaque),
        BUFFER => Err(unsupported("buffer types (`b(...)`) are not supported")),
        _ => {
            let array = decode_array(proto)?;
            // A tuple of scalars still costs its table, so that the sum of sizes stays small too.
            *budget = budget
                .checked_sub(array.byte_size())
                .ok_or_else(|| bad("the arrays of a shape take more than 2^60 bytes"))?;
            Ok(Shape::Array(array))
        }
    }
}

/// The array shape a proto describes.
///
/// # Errors
/// `XA1004` when it is not an array, or breaks a rule of shapes.
pub fn decode_array(proto: &pb::ShapeProto) -> Result<ArrayShape> {
    let ty = decode_type(proto.element_type)?;
    let dims: Dims = proto
        .dimensions
        .iter()
        .map(|&dim| match dim {
            i64::MIN => Err(unsupported("dimensions without a bound are not supported")),
            dim => index(dim, "a dimension"),
        })
        .collect::<Result<_>>()?;
    let mut dynamic: SmallVec<[bool; 6]> = SmallVec::new();
    if proto.is_dynamic_dimension.iter().any(|&d| d) {
        if proto.is_dynamic_dimension.len() != dims.len() {
            return Err(bad(format!(
                "a shape of rank {} says of {} dimensions whether they are dynamic",
                dims.len(),
                proto.is_dynamic_dimension.len()
            )));
        }
        dynamic = proto.is_dynamic_dimension.iter().copied().collect();
    }
    let layout = match &proto.layout {
        None => None,
        Some(layout) => Some(decode_layout(layout, dims.len())?),
    };
    let array = ArrayShape {
        ty,
        dims,
        dynamic,
        layout,
    };
    match array.checked_element_count() {
        Some(_) => Ok(array),
        None => Err(bad(format!(
            "an array of {} with dimensions {:?} is larger than memory can be",
            array.ty, array.dims
        ))),
    }
}

/// The element type of that number.
///
/// # Errors
/// `XA1004` when there is none.
pub fn decode_type(number: i32) -> Result<PrimitiveType> {
    PrimitiveType::from_number(number)
        .ok_or_else(|| bad(format!("{number} is not the number of an element type")))
}

fn decode_layout(proto: &pb::LayoutProto, rank: usize) -> Result<Layout> {
    let minor_to_major: Dims = indices(&proto.minor_to_major, "a layout's dimension number")?;
    if minor_to_major.len() != rank || !is_permutation(&minor_to_major) {
        return Err(bad(format!(
            "the layout {:?} does not order the dimensions of a shape of rank {rank}",
            proto.minor_to_major
        )));
    }
    let sparse = proto.dim_level_types.iter().any(|&level| level != 0);
    if sparse || !proto.split_configs.is_empty() || proto.physical_shape.is_some() {
        return Err(unsupported("sparse and split layouts are not supported"));
    }
    let tile = |tile: &pb::TileProto| {
        let dims = tile.dimensions.iter();
        dims.map(|&dim| (dim != i64::MIN).then_some(dim)).collect()
    };
    let tail = proto.tail_padding_alignment_in_elements;
    Ok(Layout {
        minor_to_major,
        tiles: proto.tiles.iter().map(tile).collect(),
        tail_padding_alignment: if tail == 1 { 0 } else { tail },
        element_size_in_bits: proto.element_size_in_bits,
        memory_space: proto.memory_space,
        dynamic_shape_metadata_prefix_bytes: proto.dynamic_shape_metadata_prefix_bytes,
    })
}

/// The proto of a shape.
pub fn encode_shape(shape: &Shape) -> pb::ShapeProto {
    let of = |element_type| pb::ShapeProto {
        element_type,
        ..Default::default()
    };
    match shape {
        Shape::Array(array) => encode_array(array),
        Shape::Tuple(elements) => pb::ShapeProto {
            tuple_shapes: elements.iter().map(encode_shape).collect(),
            ..of(TUPLE)
        },
        Shape::Token => of(TOKEN),
        Shape::Opaque => of(OPAQUE),
    }
}

/// The proto of an array shape.
pub fn encode_array(array: &ArrayShape) -> pb::ShapeProto {
    pb::ShapeProto {
        element_type: array.ty.number(),
        dimensions: numbers(&array.dims),
        tuple_shapes: Vec::new(),
        layout: array.layout.as_ref().map(encode_layout),
        is_dynamic_dimension: (0..array.rank()).map(|d| array.is_dynamic_dim(d)).collect(),
    }
}

/// The proto of a layout.
pub fn encode_layout(layout: &Layout) -> pb::LayoutProto {
    let tile = |tile: &crate::shape::Tile| pb::TileProto {
        dimensions: tile.iter().map(|dim| dim.unwrap_or(i64::MIN)).collect(),
    };
    pb::LayoutProto {
        minor_to_major: numbers(&layout.minor_to_major),
        tiles: layout.tiles.iter().map(tile).collect(),
        element_size_in_bits: layout.element_size_in_bits,
        memory_space: layout.memory_space,
        tail_padding_alignment_in_elements: match layout.tail_padding_alignment {
            0 => 1,
            tail => tail,
        },
        dynamic_shape_metadata_prefix_bytes: layout.dynamic_shape_metadata_prefix_bytes,
        ..Default::default()
    }
}

/// Says of every packed array of a shape how many bits an element takes, as bundles do: loaders take
/// a byte for each element where nothing is said.
pub(super) fn mark_packed(proto: &mut pb::ShapeProto) {
    if let Some(layout) = &mut proto.layout
        && let Some(ty) = PrimitiveType::from_number(proto.element_type)
        && ty.is_packed()
    {
        layout.element_size_in_bits = numbers(&[ty.bit_width()])[0];
    }
    proto.tuple_shapes.iter_mut().for_each(mark_packed);
}

/// As [`mark_packed`], for parameters and result.
pub(super) fn mark_program(proto: &mut pb::ProgramShapeProto) {
    proto.parameters.iter_mut().for_each(mark_packed);
    proto.result.iter_mut().for_each(mark_packed);
}

/// The inverse of [`mark_packed`]: inside, packed types are known by themselves.
pub(super) fn unmark_packed(array: &mut ArrayShape) {
    if array.ty.is_packed()
        && let Some(layout) = &mut array.layout
        && layout.element_size_in_bits == numbers(&[array.ty.bit_width()])[0]
    {
        layout.element_size_in_bits = 0;
    }
}

/// Parameters and result as bundles are read: packed arrays are not marked as such.
pub fn unmarked(program: &ProgramShape) -> ProgramShape {
    let mut program = program.clone();
    for shape in program.parameters.iter_mut().chain([&mut program.result]) {
        shape.for_each_array_mut(&mut unmark_packed);
    }
    program
}

/// The proto of an array as bundles have it.
pub(super) fn encode_packed(array: &ArrayShape) -> pb::ShapeProto {
    let mut proto = encode_array(array);
    mark_packed(&mut proto);
    proto
}

/// The array of a proto of a bundle; the inverse of [`encode_packed`].
pub(super) fn decode_packed(proto: &pb::ShapeProto) -> Result<ArrayShape> {
    let mut array = decode_array(proto)?;
    unmark_packed(&mut array);
    Ok(array)
}

/// The program shape a proto describes.
///
/// # Errors
/// `XA1004` when the result is missing or a shape breaks a rule.
pub fn decode_program_shape(proto: &pb::ProgramShapeProto) -> Result<ProgramShape> {
    let result = proto.result.as_ref();
    let result = result.ok_or_else(|| bad("a program shape has no result"))?;
    Ok(ProgramShape {
        parameters: proto
            .parameters
            .iter()
            .map(decode_shape)
            .collect::<Result<_>>()?,
        parameter_names: proto.parameter_names.clone(),
        result: decode_shape(result)?,
    })
}

/// The proto of a program shape. Readers want as many names as parameters, or abort.
pub fn encode_program_shape(program: &ProgramShape) -> pb::ProgramShapeProto {
    let count = program.parameters.len();
    let name = |i: usize| match program.parameter_names.get(i) {
        Some(name) => name.clone(),
        None => format!("p{i}"),
    };
    pb::ProgramShapeProto {
        parameters: program.parameters.iter().map(encode_shape).collect(),
        result: Some(encode_shape(&program.result)),
        parameter_names: (0..count).map(name).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_every_element_type_and_structure() {
        let mut arrays: Vec<Shape> = PrimitiveType::ALL
            .iter()
            .map(|&ty| Shape::array(ty, [2, 0, 3]).with_default_layout())
            .collect();
        arrays.push(Shape::scalar(PrimitiveType::F32));
        arrays.push(Shape::Token);
        arrays.push(Shape::Opaque);
        arrays.push(Shape::Tuple(vec![]));
        let mut column = ArrayShape::new(PrimitiveType::S4, [4, 5]);
        column.layout = Some(Layout {
            element_size_in_bits: 4,
            ..Layout::from_minor_to_major([0, 1])
        });
        column.dynamic = SmallVec::from_slice(&[true, false]);
        arrays.push(Shape::Array(column));
        let all = Shape::Tuple(arrays);
        assert_eq!(decode_shape(&encode_shape(&all)).unwrap(), all);
    }

    #[test]
    fn packed_arrays_are_marked_in_bundles() {
        let mut array = ArrayShape::new(PrimitiveType::S4, [5]);
        array.layout = Some(array.layout_or_default());
        let proto = encode_packed(&array);
        assert_eq!(proto.layout.as_ref().unwrap().element_size_in_bits, 4);
        assert_eq!(decode_packed(&proto).unwrap(), array);
        let bytes = array.with_type(PrimitiveType::S8);
        assert_eq!(encode_packed(&bytes), encode_array(&bytes));
    }

    #[test]
    fn refuses_what_no_shape_is() {
        let array = |dimensions: Vec<i64>| pb::ShapeProto {
            element_type: 11,
            dimensions,
            ..Default::default()
        };
        let layout = |minor_to_major: Vec<i64>| pb::ShapeProto {
            layout: Some(pb::LayoutProto {
                minor_to_major,
                ..Default::default()
            }),
            ..array(vec![2, 3])
        };
        let tuple = pb::ShapeProto {
            element_type: TUPLE,
            tuple_shapes: vec![array(vec![1 << 57]), array(vec![1 << 57])],
            ..Default::default()
        };
        let wrong = [
            array(vec![-1]),
            array(vec![i64::MIN]),
            array(vec![i64::MAX, 2]),
            array(vec![i64::MAX, 2, 0]),
            layout(vec![0]),
            layout(vec![0, 0]),
            layout(vec![0, 2]),
            layout(vec![0, -1]),
            pb::ShapeProto {
                element_type: 99,
                ..Default::default()
            },
        ];
        for proto in wrong {
            assert!(decode_shape(&proto).is_err(), "{proto:?}");
        }
        assert!(decode_shape(&tuple).is_ok());
        let twice = pb::ShapeProto {
            element_type: TUPLE,
            tuple_shapes: vec![tuple.clone(), tuple],
            ..Default::default()
        };
        assert!(decode_shape(&twice).is_err());
    }
}
