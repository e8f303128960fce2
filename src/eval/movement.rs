//! Ops that move elements without looking at them.

use smallvec::SmallVec;
use smallvec::smallvec;

use crate::eval::bits;
use crate::hlo::PadDim;
use crate::hlo::SliceDim;
use crate::literal::ArrayLiteral;
use crate::literal::number::Number;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::index;

pub(super) fn iota(shape: &ArrayShape, dim: usize) -> ArrayLiteral {
    let stride = index::row_major_strides(&shape.dims)[dim];
    let size = shape.dims[dim];
    bits::build(shape, |i| Number::Int((i / stride % size) as i128))
}

pub(super) fn broadcast(shape: &ArrayShape, x: &ArrayLiteral, dims: &[usize]) -> ArrayLiteral {
    let source_strides = index::row_major_strides(&x.shape().dims);
    // A source dimension of size one is stretched.
    let strides: Dims = source_strides
        .iter()
        .zip(&x.shape().dims)
        .map(|(&stride, &size)| if size == 1 { 0 } else { stride })
        .collect();
    let mut per_dim: Dims = smallvec![0; shape.rank()];
    for (i, &d) in dims.iter().enumerate() {
        per_dim[d] = strides[i];
    }
    strided(shape, x, &per_dim, 0)
}

pub(super) fn transpose(shape: &ArrayShape, x: &ArrayLiteral, dims: &[usize]) -> ArrayLiteral {
    let source = index::row_major_strides(&x.shape().dims);
    let per_dim: Dims = dims.iter().map(|&d| source[d]).collect();
    strided(shape, x, &per_dim, 0)
}

/// Result element `i` is the source element at `offset + sum of i[d] * strides[d]`.
fn strided(shape: &ArrayShape, x: &ArrayLiteral, strides: &[usize], offset: usize) -> ArrayLiteral {
    let mut at: Dims = smallvec![0; shape.rank()];
    bits::gather_bytes(shape, x, |_| {
        let from = offset + at.iter().zip(strides).map(|(&i, &s)| i * s).sum::<usize>();
        index::advance(&shape.dims, &mut at);
        from
    })
}

pub(super) fn reverse(shape: &ArrayShape, x: &ArrayLiteral, dims: &[usize]) -> ArrayLiteral {
    bits::gather_bytes(shape, x, |i| {
        let mut at = index::multi_index(&shape.dims, i);
        for &d in dims {
            at[d] = shape.dims[d] - 1 - at[d];
        }
        index::linear_index(&shape.dims, &at)
    })
}

pub(super) fn slice(shape: &ArrayShape, x: &ArrayLiteral, dims: &[SliceDim]) -> ArrayLiteral {
    let source = index::row_major_strides(&x.shape().dims);
    let offset = dims.iter().zip(&source).map(|(d, &s)| d.start * s).sum();
    let per_dim: Dims = dims
        .iter()
        .zip(&source)
        .map(|(d, &s)| d.stride * s)
        .collect();
    strided(shape, x, &per_dim, offset)
}

/// Start indices moved so that the slice lies within the array.
pub(super) fn clamped_starts(starts: &[&ArrayLiteral], dims: &[usize], sizes: &[usize]) -> Dims {
    // An older form has all starts in one vector.
    let one_vector = starts.len() == 1 && starts[0].shape().rank() == 1;
    (0..dims.len())
        .map(|d| {
            let start = if one_vector {
                bits::get(starts[0], d)
            } else {
                bits::get(starts[d], 0)
            };
            clamp_start(start, dims[d], sizes[d])
        })
        .collect()
}

pub(super) fn clamp_start(start: Number, dim: usize, size: usize) -> usize {
    match start {
        Number::Int(start) => start.clamp(0, (dim - size.min(dim)) as i128) as usize,
        Number::Float(_) | Number::Complex(..) => 0,
    }
}

pub(super) fn dynamic_slice(
    shape: &ArrayShape,
    x: &ArrayLiteral,
    starts: &[usize],
) -> ArrayLiteral {
    let source = index::row_major_strides(&x.shape().dims);
    let offset = starts.iter().zip(&source).map(|(&i, &s)| i * s).sum();
    strided(shape, x, &source, offset)
}

/// The part of `x` at position `at` of `dim`, that dimension dropped.
pub(super) fn take(x: &ArrayLiteral, dim: usize, at: usize) -> ArrayLiteral {
    let mut dims = x.shape().dims.clone();
    dims.remove(dim);
    let shape = ArrayShape::new(x.ty(), dims);
    bits::gather_bytes(&shape, x, |i| {
        let mut from = index::multi_index(&shape.dims, i);
        from.insert(dim, at);
        index::linear_index(&x.shape().dims, &from)
    })
}

pub(super) fn dynamic_update_slice(
    x: &ArrayLiteral,
    update: &ArrayLiteral,
    starts: &[usize],
) -> ArrayLiteral {
    let mut result = x.clone();
    let width = x.ty().byte_width();
    let strides = index::row_major_strides(&x.shape().dims);
    let bytes = result.bytes_mut();
    let mut i = 0;
    index::for_each_index(&update.shape().dims, |at| {
        let to: usize = (0..at.len())
            .map(|d| (at[d] + starts[d]) * strides[d])
            .sum();
        bytes[to * width..(to + 1) * width].copy_from_slice(update.element(i));
        i += 1;
    });
    result
}

pub(super) fn pad(
    shape: &ArrayShape,
    x: &ArrayLiteral,
    value: &ArrayLiteral,
    dims: &[PadDim],
) -> ArrayLiteral {
    let width = shape.ty.byte_width();
    let mut data = value.element(0).repeat(shape.element_count());
    let strides = index::row_major_strides(&shape.dims);
    let mut i = 0;
    index::for_each_index(&x.shape().dims, |at| {
        let to: SmallVec<[i64; 6]> = (0..at.len())
            .map(|d| dims[d].low + at[d] as i64 * (dims[d].interior + 1))
            .collect();
        let inside = (0..at.len()).all(|d| to[d] >= 0 && to[d] < shape.dims[d] as i64);
        if inside {
            let to: usize = (0..at.len()).map(|d| to[d] as usize * strides[d]).sum();
            data[to * width..(to + 1) * width].copy_from_slice(x.element(i));
        }
        i += 1;
    });
    ArrayLiteral::new(shape.clone(), data)
}

pub(super) fn concatenate(
    shape: &ArrayShape,
    inputs: &[&ArrayLiteral],
    dim: usize,
) -> ArrayLiteral {
    let width = shape.ty.byte_width();
    let outer: usize = shape.dims[..dim].iter().product();
    let inner: usize = shape.dims[dim + 1..].iter().product();
    let mut data = Vec::with_capacity(shape.element_count() * width);
    for row in 0..outer {
        for input in inputs {
            let run = input.shape().dims[dim] * inner * width;
            data.extend_from_slice(&input.bytes()[row * run..(row + 1) * run]);
        }
    }
    ArrayLiteral::new(shape.clone(), data)
}

/// The same physical bytes under another shape and layout; `from` has the layout of `x`.
pub(super) fn bitcast(shape: &ArrayShape, from: &ArrayShape, x: &ArrayLiteral) -> ArrayLiteral {
    let physical = |shape: &ArrayShape| {
        let order = shape.layout_or_default().minor_to_major;
        let dims: Dims = order.iter().rev().map(|&d| shape.dims[d]).collect();
        (order.iter().rev().copied().collect::<Dims>(), dims)
    };
    let (from_order, from_dims) = physical(from);
    let packed = transpose(&ArrayShape::new(x.ty(), from_dims), x, &from_order);
    let (to_order, to_dims) = physical(shape);
    let physical_result = ArrayShape::new(shape.ty, to_dims);
    let converted = if shape.ty == x.ty() {
        packed.reshaped(physical_result)
    } else {
        bits::bitcast_convert(&physical_result, &packed)
    };
    transpose(shape, &converted, &index::inverse_permutation(&to_order))
}
