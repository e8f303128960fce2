//! Dynamic arrays at the door: bytes, as XLA lays them out.
//!
//! The real elements stand without gaps at the start of room for all up to the bounds; after that
//! room come the sizes, an s32 for each dimension in the caller's order.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::hlo::BinaryOp;
use crate::hlo::Builder;
use crate::hlo::ComparisonDirection;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::PadDim;
use crate::hlo::SliceDim;
use crate::hlo::UnaryOp;
use crate::hlo::dynamic::flow::is_dynamic;
use crate::literal::Literal;
use crate::passes::legalize::dynamic::boxed;
use crate::passes::legalize::dynamic::dynamic_dims;
use crate::passes::legalize::dynamic::movement::is_prefix;
use crate::passes::legalize::dynamic::movement::rearranged;
use crate::passes::legalize::dynamic::rewrite::closed;
use crate::passes::legalize::dynamic::rewrite::opened;
use crate::passes::legalize::dynamic::work::Array;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// The caller's shapes in the order of dimensions that the entry has them: parameters, result; and
/// both as the caller has them.
pub(super) fn shapes(module: &Module) -> (Vec<Shape>, Shape, Vec<Shape>, Shape) {
    let program = module.entry_layout();
    let entry = &module.comps[module.entry];
    let inside = entry.params.iter().map(|&p| module.shape(p));
    let pairs = program.parameters.iter().zip(inside);
    let params = pairs.map(|(caller, inside)| ordered(caller, inside));
    let result = ordered(&program.result, module.shape(entry.root));
    (
        params.collect(),
        result,
        program.parameters.clone(),
        program.result,
    )
}

/// The order of the caller's dimensions in the array inside; the same where the shapes are.
fn order(caller: &ArrayShape, inside: &ArrayShape) -> Dims {
    let order: Dims = caller
        .layout_or_default()
        .minor_to_major
        .iter()
        .rev()
        .copied()
        .collect();
    let physical = order.iter().map(|&d| caller.dims[d]);
    match caller.dims != inside.dims || physical.clone().eq(inside.dims.iter().copied()) {
        true => order,
        false => (0..caller.rank()).collect(),
    }
}

/// The shape inside, dynamic where the caller's is.
fn ordered(caller: &Shape, inside: &Shape) -> Shape {
    match (caller, inside) {
        (Shape::Array(caller), Shape::Array(array)) => {
            let mut array = array.clone();
            let order = order(caller, &array);
            array.dynamic = order.iter().map(|&d| caller.is_dynamic_dim(d)).collect();
            if !array.is_dynamic() {
                array.dynamic.clear();
            }
            Shape::Array(array)
        }
        (Shape::Tuple(callers), Shape::Tuple(parts)) => Shape::Tuple(
            callers
                .iter()
                .zip(parts)
                .map(|(c, p)| ordered(c, p))
                .collect(),
        ),
        _ => inside.clone(),
    }
}

/// The shape with bytes for each dynamic array.
pub(super) fn bytes_shape(shape: &Shape) -> Shape {
    match shape {
        Shape::Array(array) if array.is_dynamic() => {
            Shape::array(PrimitiveType::U8, [array.byte_size()])
        }
        Shape::Tuple(parts) => Shape::Tuple(parts.iter().map(bytes_shape).collect()),
        Shape::Array(_) | Shape::Token | Shape::Opaque => shape.clone(),
    }
}

/// The constant at its bounds.
pub(super) fn whole(literal: &Literal) -> Literal {
    match literal {
        Literal::Array(array) if array.shape().is_dynamic() => Literal::Array(array.whole()),
        Literal::Tuple(parts) => Literal::Tuple(parts.iter().map(whole).collect()),
        Literal::Array(_) | Literal::Token => literal.clone(),
    }
}

/// What stands for a parameter's value of that shape, of the parameter with its bytes.
pub(super) fn enter(
    b: &mut Builder<'_>,
    value: InstrId,
    shape: &Shape,
    caller: &Shape,
) -> Result<InstrId> {
    if !is_dynamic(shape) {
        return Ok(value);
    }
    match (shape, caller) {
        (Shape::Array(shape), Shape::Array(caller)) => {
            let array = unpacked(b, value, shape, &order(caller, shape))?;
            closed(b, &array)
        }
        (Shape::Tuple(shapes), Shape::Tuple(callers)) => {
            let mut parts = Vec::new();
            for (i, (shape, caller)) in shapes.iter().zip(callers).enumerate() {
                let part = b.gte(value, i)?;
                parts.push(enter(b, part, shape, caller)?);
            }
            b.tuple(&parts)
        }
        _ => Ok(value),
    }
}

/// The program's result, of what stands for a value of the shape `from`.
pub(super) fn leave(
    b: &mut Builder<'_>,
    value: InstrId,
    from: &Shape,
    to: &Shape,
    caller: &Shape,
) -> Result<InstrId> {
    if boxed(from) == *from && bytes_shape(to) == *to {
        return Ok(value);
    }
    match (from, to, caller) {
        (Shape::Array(from), Shape::Array(to), Shape::Array(caller)) => {
            let mut array = opened(b, value, from)?;
            let static_dims = (0..to.rank()).filter(|&d| !to.is_dynamic_dim(d));
            static_dims.for_each(|d| array.sizes[d] = None);
            match to.is_dynamic() {
                true => packed(b, &array, &order(caller, to)),
                false => Ok(array.data),
            }
        }
        (Shape::Tuple(from), Shape::Tuple(to), Shape::Tuple(callers)) => {
            let mut parts = Vec::new();
            for (i, (from, to)) in from.iter().zip(to).enumerate() {
                let part = b.gte(value, i)?;
                parts.push(leave(b, part, from, to, &callers[i])?);
            }
            b.tuple(&parts)
        }
        _ => Ok(value),
    }
}

fn part(b: &mut Builder<'_>, bytes: InstrId, start: usize, size: usize) -> Result<InstrId> {
    let slice = SliceDim {
        start,
        limit: start + size,
        stride: 1,
    };
    b.slice(bytes, &[slice])
}

fn unpacked(
    b: &mut Builder<'_>,
    bytes: InstrId,
    shape: &ArrayShape,
    order: &[usize],
) -> Result<Array> {
    let room = shape.data_size();
    let mut sizes = vec![None; shape.rank()];
    for d in dynamic_dims(shape) {
        let size = part(b, bytes, room + 4 * order[d], 4)?;
        let size = b.bitcast_convert(size, PrimitiveType::S32)?;
        let zero = b.constant_int(PrimitiveType::S32, 0);
        let bound = b.constant_int(PrimitiveType::S32, shape.dims[d] as i128);
        sizes[d] = Some(b.clamp(zero, size, bound)?);
    }
    let data = part(b, bytes, 0, room)?;
    let flat = from_bytes(b, data, shape.ty, shape.element_count())?;
    let count = shape.element_count();
    let data = match is_prefix(&shape.dims, &sizes) {
        true => b.reshape(flat, &shape.dims)?,
        false => rearranged(b, flat, (&[count], &[None]), (&shape.dims, &sizes))?,
    };
    Ok(Array {
        data,
        sizes,
        shape: shape.clone(),
    })
}

fn packed(b: &mut Builder<'_>, array: &Array, order: &[usize]) -> Result<InstrId> {
    let shape = &array.shape;
    let count = shape.element_count();
    let flat = match is_prefix(&shape.dims, &array.sizes) {
        true => b.reshape(array.data, &[count])?,
        false => rearranged(
            b,
            array.data,
            (&shape.dims, &array.sizes),
            (&[count], &[None]),
        )?,
    };
    let mut parts = vec![to_bytes(b, flat, shape.ty, count)?];
    for caller in 0..shape.rank() {
        let d = order.iter().position(|&o| o == caller).unwrap_or(caller);
        let size = match array.sizes[d] {
            Some(size) => size,
            None => b.constant_int(PrimitiveType::S32, shape.dims[d] as i128),
        };
        parts.push(b.bitcast_convert(size, PrimitiveType::U8)?);
    }
    b.concatenate(&parts, 0)
}

fn has_no_bytes(ty: PrimitiveType) -> Box<Diagnostic> {
    let message = format!("a parameter or result is a dynamic array of {ty}, which has no bytes");
    Diagnostic::unsupported(codes::COMPILE_UNSUPPORTED, message)
}

/// `count` elements of bytes.
fn from_bytes(
    b: &mut Builder<'_>,
    bytes: InstrId,
    ty: PrimitiveType,
    count: usize,
) -> Result<InstrId> {
    if ty == PrimitiveType::U8 {
        return Ok(bytes);
    }
    if ty == PrimitiveType::Pred {
        let zero = b.full_like(bytes, 0.0)?;
        return b.compare(ComparisonDirection::Ne, bytes, zero);
    }
    if ty.is_complex() {
        let flat = from_bytes(b, bytes, ty.real_part(), 2 * count)?;
        let pairs = b.reshape(flat, &[count, 2])?;
        let mut halves = Vec::new();
        for i in 0..2 {
            let half = b.slice_dim(pairs, 1, i, i + 1)?;
            halves.push(b.reshape(half, &[count])?);
        }
        return b.binary(BinaryOp::Complex, halves[0], halves[1]);
    }
    match ty.bit_width() {
        6 => Err(has_no_bytes(ty)),
        8 => b.bitcast_convert(bytes, ty),
        width if width < 8 => {
            let groups = b.bitcast_convert(bytes, ty)?;
            let all = b.dims(groups)?.iter().product();
            let flat = b.reshape(groups, &[all])?;
            b.slice_dim(flat, 0, 0, count)
        }
        width => {
            let grouped = b.reshape(bytes, &[count, width / 8])?;
            b.bitcast_convert(grouped, ty)
        }
    }
}

/// The bytes of `count` elements.
fn to_bytes(
    b: &mut Builder<'_>,
    flat: InstrId,
    ty: PrimitiveType,
    count: usize,
) -> Result<InstrId> {
    if ty == PrimitiveType::U8 {
        return Ok(flat);
    }
    if ty == PrimitiveType::Pred {
        return b.convert(flat, PrimitiveType::U8);
    }
    if ty.is_complex() {
        let mut halves = Vec::new();
        for op in [UnaryOp::Real, UnaryOp::Imag] {
            let half = b.unary(op, flat)?;
            halves.push(b.reshape(half, &[count, 1])?);
        }
        let pairs = b.concatenate(&halves, 1)?;
        let flat = b.reshape(pairs, &[2 * count])?;
        return to_bytes(b, flat, ty.real_part(), 2 * count);
    }
    match ty.bit_width() {
        6 => Err(has_no_bytes(ty)),
        8 => b.bitcast_convert(flat, PrimitiveType::U8),
        width if width < 8 => {
            let in_byte = 8 / width;
            let bytes = count.div_ceil(in_byte);
            let zero = b.constant_int(ty, 0);
            let high = (bytes * in_byte - count) as i64;
            let pad = PadDim {
                high,
                ..PadDim::default()
            };
            let whole = match high {
                0 => flat,
                _ => b.pad(flat, zero, &[pad])?,
            };
            let groups = b.reshape(whole, &[bytes, in_byte])?;
            b.bitcast_convert(groups, PrimitiveType::U8)
        }
        width => {
            let bytes = b.bitcast_convert(flat, PrimitiveType::U8)?;
            b.reshape(bytes, &[count * width / 8])
        }
    }
}
