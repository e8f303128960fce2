//! Copies between layouts.
//!
//! Neighbouring dimensions that stay neighbours are merged first, so that most copies become a
//! block copy or the transposition of a matrix of blocks. Large copies are spread over the pool.
#![allow(
    unsafe_code,
    reason = "reads and writes through the addresses of a bound program"
)]

use crate::base::Result;
use crate::runtime::cpu::array::physical_strides;
use crate::runtime::cpu::pool::Pool;
use crate::shape::ArrayShape;
use crate::shape::Dims;

/// Copies of at least this many bytes use the pool.
const PARALLEL_BYTES: usize = 1 << 20;

/// Rows and columns of a block of a transposition.
const TILE: usize = 32;

/// One merged dimension: its size, and the distance of neighbours in source and destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Axis {
    size: usize,
    source: usize,
    destination: usize,
}

/// How to copy an array of one shape between two layouts.
#[derive(Debug)]
pub enum CopyPlan {
    /// The bytes are the same.
    Bytes(usize),
    /// Elements move: bytes of an element, and the axes by falling destination distance.
    Strided(usize, Vec<AxisPlan>),
    /// Packed elements move: bits of an element, shapes.
    Packed(usize, Box<[ArrayShape; 2]>),
}

/// An axis of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisPlan(Axis);

impl CopyPlan {
    /// The plan for two shapes of equal type and dimensions.
    pub fn new(source: &ArrayShape, destination: &ArrayShape) -> Self {
        let order = |shape: &ArrayShape| -> Dims {
            let order = shape.layout_or_default().minor_to_major.into_iter();
            order.filter(|&d| shape.dims[d] != 1).collect()
        };
        if order(source) == order(destination) || source.element_count() == 0 {
            return Self::Bytes(source.byte_size());
        }
        let bits = source.ty.bit_width_in_memory();
        if bits < 8 {
            return Self::Packed(bits, Box::new([source.clone(), destination.clone()]));
        }
        let (from, to) = (physical_strides(source), physical_strides(destination));
        let mut axes: Vec<Axis> = Vec::new();
        for &dim in order(destination).iter().rev() {
            let axis = Axis {
                size: source.dims[dim],
                source: from[dim],
                destination: to[dim],
            };
            match axes.last_mut() {
                // The outer axis steps over exactly one run of the inner one on both sides.
                Some(outer) if outer.source == axis.source * axis.size => {
                    outer.size *= axis.size;
                    outer.source = axis.source;
                    outer.destination = axis.destination;
                }
                _ => axes.push(axis),
            }
        }
        let width = source.ty.byte_width();
        let mut run = width;
        // An innermost axis that is dense on both sides becomes a part of the element.
        if let Some(last) = axes.last().copied()
            && last.source == 1
        {
            run *= last.size;
            axes.pop();
        }
        let unit = run / width;
        for axis in &mut axes {
            axis.source /= unit;
            axis.destination /= unit;
        }
        Self::Strided(run, axes.into_iter().map(AxisPlan).collect())
    }

    /// Copies.
    ///
    /// # Safety
    /// Source and destination are valid for the bytes of the shapes the plan was made for, and do
    /// not overlap unless they are the same and the plan copies bytes.
    pub unsafe fn run(&self, source: *const u8, destination: *mut u8, pool: &Pool) -> Result<()> {
        match self {
            Self::Bytes(size) => {
                // SAFETY: the caller's promise.
                unsafe { copy_bytes(source, destination, *size, pool) }
            }
            Self::Strided(width, axes) => {
                // SAFETY: the caller's promise; every position the axes give is one of an element.
                unsafe { copy_strided(source, destination, *width, axes, pool) }
            }
            Self::Packed(bits, shapes) => {
                let [from, to] = &**shapes;
                // SAFETY: the caller's promise.
                let (source, destination) = unsafe {
                    (
                        std::slice::from_raw_parts(source, from.byte_size()),
                        std::slice::from_raw_parts_mut(destination, to.byte_size()),
                    )
                };
                copy_packed(source, destination, *bits, from, to);
                Ok(())
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Ends {
    source: *const u8,
    destination: *mut u8,
}

// SAFETY: tasks of one copy write to different parts of the destination.
unsafe impl Sync for Ends {}

/// # Safety
/// Both ends are valid for `size` bytes; they are equal or do not overlap.
unsafe fn copy_bytes(
    source: *const u8,
    destination: *mut u8,
    size: usize,
    pool: &Pool,
) -> Result<()> {
    if std::ptr::eq(source, destination) {
        return Ok(());
    }
    let ends = Ends {
        source,
        destination,
    };
    let block = size.max(1).div_ceil(pool.threads()).next_multiple_of(4096);
    let block = if size < PARALLEL_BYTES {
        size.max(1)
    } else {
        block
    };
    pool.run(size.div_ceil(block) as u64, &|task| {
        let ends = &ends;
        let start = task as usize * block;
        // SAFETY: the caller's promise; the range is within `size`.
        unsafe {
            let (from, to) = (ends.source.add(start), ends.destination.add(start));
            std::ptr::copy_nonoverlapping(from, to, block.min(size - start));
        }
    })
}

/// # Safety
/// As for [`CopyPlan::run`].
unsafe fn copy_strided(
    source: *const u8,
    destination: *mut u8,
    width: usize,
    axes: &[AxisPlan],
    pool: &Pool,
) -> Result<()> {
    let ends = Ends {
        source,
        destination,
    };
    let Some((AxisPlan(first), rest)) = axes.split_first() else {
        return Ok(());
    };
    let total: usize = width * axes.iter().map(|a| a.0.size).product::<usize>();
    let pieces = if total < PARALLEL_BYTES {
        1
    } else {
        pool.threads() * 4
    };
    let piece = first
        .size
        .div_ceil(pieces)
        .next_multiple_of(if rest.len() < 2 { TILE } else { 1 });
    pool.run(first.size.div_ceil(piece) as u64, &|task| {
        let ends = &ends;
        let start = task as usize * piece;
        let mut axes: Vec<Axis> = vec![Axis {
            size: piece.min(first.size - start),
            ..*first
        }];
        axes.extend(rest.iter().map(|a| a.0));
        // SAFETY: the part of the first axis that belongs to this task.
        unsafe {
            let from = ends.source.add(start * first.source * width);
            let to = ends.destination.add(start * first.destination * width);
            match width {
                1 => walk::<[u8; 1]>(from, to, &axes, width),
                2 => walk::<[u8; 2]>(from, to, &axes, width),
                4 => walk::<[u8; 4]>(from, to, &axes, width),
                8 => walk::<[u8; 8]>(from, to, &axes, width),
                16 => walk::<[u8; 16]>(from, to, &axes, width),
                _ => walk::<()>(from, to, &axes, width),
            }
        }
    })
}

/// Copies the elements of all axes; `T` is the element, or `()` for runs of any width.
///
/// # Safety
/// Each position is one of a `width`-byte element on both sides, and `T` has that width or none.
unsafe fn walk<T: Copy>(source: *const u8, destination: *mut u8, axes: &[Axis], width: usize) {
    match axes {
        [] => {}
        [one] => {
            for i in 0..one.size {
                // SAFETY: the caller's promise.
                unsafe {
                    element::<T>(
                        source,
                        destination,
                        i * one.source,
                        i * one.destination,
                        width,
                    )
                };
            }
        }
        [rows, columns] => {
            for row in (0..rows.size).step_by(TILE) {
                for column in (0..columns.size).step_by(TILE) {
                    for r in row..(row + TILE).min(rows.size) {
                        for c in column..(column + TILE).min(columns.size) {
                            let from = r * rows.source + c * columns.source;
                            let to = r * rows.destination + c * columns.destination;
                            // SAFETY: the caller's promise.
                            unsafe { element::<T>(source, destination, from, to, width) };
                        }
                    }
                }
            }
        }
        [outer, inner @ ..] => {
            for i in 0..outer.size {
                // SAFETY: the caller's promise.
                unsafe {
                    let from = source.add(i * outer.source * width);
                    let to = destination.add(i * outer.destination * width);
                    walk::<T>(from, to, inner, width);
                }
            }
        }
    }
}

/// # Safety
/// As for [`walk`].
#[inline]
unsafe fn element<T: Copy>(
    source: *const u8,
    destination: *mut u8,
    from: usize,
    to: usize,
    width: usize,
) {
    // SAFETY: the caller's promise; no alignment is assumed.
    unsafe {
        if size_of::<T>() == 0 {
            let (from, to) = (source.add(from * width), destination.add(to * width));
            std::ptr::copy_nonoverlapping(from, to, width);
        } else {
            let value = source.cast::<T>().add(from).read_unaligned();
            destination.cast::<T>().add(to).write_unaligned(value);
        }
    }
}

fn copy_packed(
    source: &[u8],
    destination: &mut [u8],
    bits: usize,
    from: &ArrayShape,
    to: &ArrayShape,
) {
    let per_byte = 8 / bits;
    let mask = ((1u16 << bits) - 1) as u8;
    let order: Vec<usize> = (0..from.rank()).collect();
    let mut positions = Vec::with_capacity(from.element_count());
    crate::runtime::cpu::array::for_each_position(from, &order, |at| positions.push(at));
    destination.fill(0);
    let mut next = positions.into_iter();
    crate::runtime::cpu::array::for_each_position(to, &order, |at| {
        let Some(position) = next.next() else {
            return;
        };
        let element = source[position / per_byte] >> (position % per_byte * bits) & mask;
        destination[at / per_byte] |= element << (at % per_byte * bits);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::literal::ArrayLiteral;
    use crate::literal::device_form;
    use crate::shape::Layout;
    use crate::shape::PrimitiveType;

    fn shape(ty: PrimitiveType, dims: &[usize], order: &[usize]) -> ArrayShape {
        let mut shape = ArrayShape::new(ty, dims.iter().copied());
        shape.layout = Some(Layout::from_minor_to_major(order.iter().copied()));
        shape
    }

    /// Copies between every pair of layouts and compares with the device form of the same value.
    fn check(ty: PrimitiveType, dims: &[usize], orders: &[&[usize]], pool: &Pool) {
        let count: usize = dims.iter().product();
        let mut logical = ArrayLiteral::zeros(ArrayShape::new(ty, dims.iter().copied()));
        let mask = if ty.bit_width() < 8 {
            (1 << ty.bit_width()) - 1
        } else {
            0xff
        };
        let bytes = logical.bytes_mut().iter_mut().enumerate();
        bytes.for_each(|(i, b)| *b = (i * 37 + i / 256) as u8 & mask);
        assert_eq!(logical.len(), count);
        for from in orders {
            for to in orders {
                let (from, to) = (shape(ty, dims, from), shape(ty, dims, to));
                let source = device_form::to_device(&logical, &from);
                let mut destination = vec![0xaa; source.len()];
                let plan = CopyPlan::new(&from, &to);
                // SAFETY: both buffers have the size of the shape.
                unsafe { plan.run(source.as_ptr(), destination.as_mut_ptr(), pool) }.unwrap();
                assert!(
                    destination == device_form::to_device(&logical, &to),
                    "{plan:?}"
                );
            }
        }
    }

    #[test]
    fn every_layout_to_every_layout() {
        let pool = Pool::new(2).unwrap();
        let cubes: &[&[usize]] = &[
            &[2, 1, 0],
            &[0, 1, 2],
            &[1, 0, 2],
            &[0, 2, 1],
            &[1, 2, 0],
            &[2, 0, 1],
        ];
        for ty in [
            PrimitiveType::U8,
            PrimitiveType::F32,
            PrimitiveType::C128,
            PrimitiveType::U4,
        ] {
            check(ty, &[3, 5, 7], cubes, &pool);
            check(ty, &[3, 1, 6], cubes, &pool);
            check(ty, &[0, 1, 6], cubes, &pool);
        }
        check(PrimitiveType::F32, &[270, 1030], &[&[1, 0], &[0, 1]], &pool);
        check(PrimitiveType::F64, &[64, 25, 90], cubes, &pool);
        check(PrimitiveType::F32, &[], &[&[]], &pool);
    }

    #[test]
    fn axes_are_merged() {
        let from = shape(PrimitiveType::F32, &[2, 3, 4, 5], &[3, 2, 1, 0]);
        let to = shape(PrimitiveType::F32, &[2, 3, 4, 5], &[3, 2, 0, 1]);
        let CopyPlan::Strided(width, axes) = CopyPlan::new(&from, &to) else {
            panic!("not strided");
        };
        assert_eq!(width, 80);
        let axis = |size, source, destination| {
            AxisPlan(Axis {
                size,
                source,
                destination,
            })
        };
        assert_eq!(axes, [axis(3, 1, 2), axis(2, 3, 1)]);
    }
}
