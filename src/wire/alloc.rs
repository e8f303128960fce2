//! Allocations, slices and the buffer plan on the wire (`BufferAllocationProto`,
//! `BufferAllocationSliceProto`, `ShapedSliceProto`, `BufferAssignmentProto`).
//!
//! A decoded slice names an existing allocation and lies inside it.

use std::ops::Range;
use std::sync::Arc;

use crate::base::Arena;
use crate::base::ByteSize;
use crate::base::Id;
use crate::base::Result;
use crate::executable::AllocId;
use crate::executable::AllocKind;
use crate::executable::Allocation;
use crate::executable::Constant;
use crate::executable::ConstantId;
use crate::executable::LogicalBuffer;
use crate::executable::ShapedSlice;
use crate::executable::Slice;
use crate::proto::xla as pb;
use crate::proto::xla::buffer_assignment::BufferAllocationSliceProto;
use crate::proto::xla::cpu::ShapeBufferAllocationSliceProto;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;
use crate::wire::hlo_view::HloView;
use crate::wire::number::bad;
use crate::wire::number::index;
use crate::wire::number::indices;
use crate::wire::number::number;
use crate::wire::number::numbers;
use crate::wire::shape::decode_packed;
use crate::wire::shape::encode_packed;

/// A byte count for the wire.
fn bytes(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn unsigned(value: i64, what: &str) -> Result<u64> {
    u64::try_from(value).map_err(|_| bad(format!("{what} is {value}, wanted at least 0")))
}

/// The proto of a slice.
pub(super) fn encode_slice(slice: &Slice) -> BufferAllocationSliceProto {
    BufferAllocationSliceProto {
        offset: bytes(slice.offset),
        size: bytes(slice.size),
        buffer_allocation_index: number(slice.alloc.index()),
        element_type: 0,
    }
}

/// The proto of a shaped slice, slice first.
pub(super) fn encode_shaped(shaped: &ShapedSlice) -> pb::ShapedSliceProto {
    pb::ShapedSliceProto {
        slice: Some(encode_slice(&shaped.slice)),
        shape: Some(encode_packed(&shaped.shape)),
    }
}

/// The proto of a shaped slice, shape first, as most CPU thunks have it.
pub(super) fn encode_shape_first(shaped: &ShapedSlice) -> ShapeBufferAllocationSliceProto {
    ShapeBufferAllocationSliceProto {
        shape: Some(encode_packed(&shaped.shape)),
        slice: Some(encode_slice(&shaped.slice)),
    }
}

/// Decodes slices against a table of allocations.
pub(super) struct Slices<'a> {
    allocs: &'a Arena<AllocId, Allocation>,
    /// The allocations that slices may name; they are counted from the first of these.
    named: Range<usize>,
}

impl<'a> Slices<'a> {
    /// Slices of all these allocations.
    pub(super) fn new(allocs: &'a Arena<AllocId, Allocation>) -> Self {
        let named = 0..allocs.len();
        Self { allocs, named }
    }

    /// Slices of some of these allocations, counted from the first of these.
    pub(super) fn of(allocs: &'a Arena<AllocId, Allocation>, named: Range<usize>) -> Self {
        Self { allocs, named }
    }

    /// The slice a proto describes.
    pub(super) fn slice(&self, proto: Option<&BufferAllocationSliceProto>) -> Result<Slice> {
        let proto = proto.ok_or_else(|| bad("a slice is missing"))?;
        let alloc = index(proto.buffer_allocation_index, "an allocation index")?;
        let count = self.named.len();
        if alloc >= count {
            return Err(bad(format!(
                "a slice names allocation {alloc}, there are {count}"
            )));
        }
        let slice = Slice {
            alloc: AllocId::from_index(self.named.start + alloc),
            offset: unsigned(proto.offset, "a slice's offset")?,
            size: unsigned(proto.size, "a slice's size")?,
        };
        let end = slice.offset.checked_add(slice.size);
        let size = self.allocs[slice.alloc].size.0;
        if end.is_none_or(|end| end > size) {
            return Err(bad(format!(
                "a slice of {} bytes at offset {} leaves allocation {alloc} of {size} bytes",
                slice.size, slice.offset
            )));
        }
        Ok(slice)
    }

    fn with_shape(
        &self,
        slice: Option<&BufferAllocationSliceProto>,
        shape: Option<&pb::ShapeProto>,
    ) -> Result<ShapedSlice> {
        let shape = shape.ok_or_else(|| bad("a slice has no shape"))?;
        // Upstream also hands out tables of tuples, as bytes nobody looks into.
        if PrimitiveType::from_number(shape.element_type).is_none() {
            return self.as_bytes(slice);
        }
        let shape = decode_packed(shape)?;
        let mut slice = self.slice(slice)?;
        // The slice of an array that was dynamic once takes in its sizes, an s32 behind the data for
        // each dimension, where the thunk has a static shape and works on the data alone.
        let data = shape.byte_size() as u64;
        if !shape.is_dynamic() && slice.size == data + 4 * shape.rank() as u64 {
            slice.size = data;
        }
        Ok(ShapedSlice { slice, shape })
    }

    /// The shaped slice a proto describes.
    pub(super) fn shaped(&self, proto: Option<&pb::ShapedSliceProto>) -> Result<ShapedSlice> {
        let proto = proto.ok_or_else(|| bad("a slice is missing"))?;
        self.with_shape(proto.slice.as_ref(), proto.shape.as_ref())
    }

    /// The shaped slice a shape-first proto describes.
    pub(super) fn shape_first(
        &self,
        proto: Option<&ShapeBufferAllocationSliceProto>,
    ) -> Result<ShapedSlice> {
        let proto = proto.ok_or_else(|| bad("a slice is missing"))?;
        self.with_shape(proto.slice.as_ref(), proto.shape.as_ref())
    }

    /// A slice without a shape, as an array of bytes.
    pub(super) fn as_bytes(
        &self,
        proto: Option<&BufferAllocationSliceProto>,
    ) -> Result<ShapedSlice> {
        let slice = self.slice(proto)?;
        let size = index(bytes(slice.size), "a slice's size")?;
        let mut shape = ArrayShape::new(PrimitiveType::U8, [size]);
        shape.layout = Some(shape.layout_or_default());
        Ok(ShapedSlice { slice, shape })
    }
}

/// The protos of all allocations, with the logical buffers each holds.
pub(super) fn encode_allocations(
    allocs: &Arena<AllocId, Allocation>,
    logical: &[LogicalBuffer],
) -> Vec<pb::BufferAllocationProto> {
    let mut protos: Vec<_> = allocs.iter().map(encode_allocation).collect();
    for (id, buffer) in logical.iter().enumerate() {
        if let Some(proto) = protos.get_mut(buffer.slice.alloc.index()) {
            proto.assigned.push(pb::buffer_allocation_proto::Assigned {
                logical_buffer_id: number(id),
                offset: bytes(buffer.slice.offset),
                size: bytes(buffer.slice.size),
                element_type: 0,
            });
        }
    }
    protos
}

fn encode_allocation((id, allocation): (AllocId, &Allocation)) -> pb::BufferAllocationProto {
    let mut proto = pb::BufferAllocationProto {
        index: number(id.index()),
        size: bytes(allocation.size.0),
        maybe_live_out: allocation.live_out,
        color: allocation.color,
        ..Default::default()
    };
    match &allocation.kind {
        AllocKind::Parameter {
            number: n,
            index,
            aliased_output,
        } => {
            proto.is_entry_computation_parameter = true;
            proto.parameter_number = number(*n);
            proto.parameter_shape_index = numbers(index);
            proto.is_parameter_aliased_with_output = *aliased_output;
        }
        AllocKind::Constant(_) => proto.is_constant = true,
        AllocKind::Tuple => proto.is_tuple = true,
        AllocKind::ThreadLocal => proto.is_thread_local = true,
        AllocKind::Owned | AllocKind::Window => {}
    }
    proto
}

/// The buffer plan of an executable.
pub(super) fn encode_assignment(
    allocs: &Arena<AllocId, Allocation>,
    logical: &[LogicalBuffer],
) -> pb::BufferAssignmentProto {
    use pb::logical_buffer_proto::Location;
    let buffer = |(id, buffer): (usize, &LogicalBuffer)| pb::LogicalBufferProto {
        id: number(id),
        size: bytes(buffer.slice.size),
        defined_at: Some(Location {
            instruction_name: String::new(),
            shape_index: numbers(&buffer.index),
            instruction_id: buffer.instruction.cast_signed(),
        }),
        color: allocs.get(buffer.slice.alloc).map_or(0, |a| a.color),
    };
    pb::BufferAssignmentProto {
        logical_buffers: logical.iter().enumerate().map(buffer).collect(),
        buffer_allocations: encode_allocations(allocs, logical),
        peak_buffers: Vec::new(),
    }
}

/// Allocations, constants and logical buffers as they were decoded.
pub(super) struct Plan {
    pub(super) allocs: Arena<AllocId, Allocation>,
    pub(super) constants: Arena<ConstantId, Constant>,
    pub(super) logical: Vec<LogicalBuffer>,
}

/// Decodes a list of allocations. Constants are given ids in order and filled in by the caller.
pub(super) fn decode_allocations(
    protos: &[pb::BufferAllocationProto],
) -> Result<(Arena<AllocId, Allocation>, usize)> {
    let mut allocs = Arena::new();
    let mut constants = 0;
    for (i, proto) in protos.iter().enumerate() {
        if index(proto.index, "an allocation index")? != i {
            return Err(bad(format!(
                "allocation {} stands where {i} was due",
                proto.index
            )));
        }
        let kind = if proto.is_constant {
            constants += 1;
            AllocKind::Constant(ConstantId::from_index(constants - 1))
        } else if proto.is_entry_computation_parameter {
            AllocKind::Parameter {
                number: index(proto.parameter_number, "a parameter number")?,
                index: indices(&proto.parameter_shape_index, "a parameter index")?,
                aliased_output: proto.is_parameter_aliased_with_output,
            }
        } else if proto.is_tuple && proto.maybe_live_out {
            // The flag is also set on memory that holds a table among other values.
            AllocKind::Tuple
        } else if proto.is_thread_local {
            AllocKind::ThreadLocal
        } else {
            AllocKind::Owned
        };
        allocs.push(Allocation {
            size: ByteSize(unsigned(proto.size, "an allocation's size")?),
            kind,
            live_out: proto.maybe_live_out,
            color: proto.color,
        });
    }
    Ok((allocs, constants))
}

/// Decodes the plan of a CPU program; the bytes of constants come from its HLO.
pub(super) fn decode_assignment(
    proto: &pb::BufferAssignmentProto,
    hlo: &HloView<'_>,
) -> Result<Plan> {
    let (allocs, _) = decode_allocations(&proto.buffer_allocations)?;
    let logical = decode_logical(proto, &allocs, hlo)?;
    let mut constants = Arena::new();
    for (id, allocation) in allocs.iter() {
        if !matches!(allocation.kind, AllocKind::Constant(_)) {
            continue;
        }
        let mut held = logical.iter().filter(|buffer| buffer.slice.alloc == id);
        let (Some(buffer), None) = (held.next(), held.next()) else {
            return Err(bad(format!(
                "the constant allocation {} does not hold exactly one value",
                id.index()
            )));
        };
        constants.push(Constant {
            name: buffer.name.clone(),
            instruction: buffer.instruction,
            bytes: Arc::new(hlo.constant_bytes(buffer.instruction)?),
        });
    }
    Ok(Plan {
        allocs,
        constants,
        logical,
    })
}

/// The logical buffers in the order of the proto, each with its place. Values without a place and
/// places of unknown values are refused.
pub(super) fn decode_logical(
    proto: &pb::BufferAssignmentProto,
    allocs: &Arena<AllocId, Allocation>,
    hlo: &HloView<'_>,
) -> Result<Vec<LogicalBuffer>> {
    let mut places = std::collections::BTreeMap::new();
    for (i, allocation) in proto.buffer_allocations.iter().enumerate() {
        for assigned in &allocation.assigned {
            let slice = BufferAllocationSliceProto {
                offset: assigned.offset,
                size: assigned.size,
                buffer_allocation_index: number(i),
                element_type: 0,
            };
            let slice = Slices::new(allocs).slice(Some(&slice))?;
            if places.insert(assigned.logical_buffer_id, slice).is_some() {
                return Err(bad(format!(
                    "logical buffer {} is assigned twice",
                    assigned.logical_buffer_id
                )));
            }
        }
    }
    let mut logical = Vec::with_capacity(proto.logical_buffers.len());
    for buffer in &proto.logical_buffers {
        let slice = places.remove(&buffer.id).ok_or_else(|| {
            bad(format!(
                "logical buffer {} has no place, or stands twice",
                buffer.id
            ))
        })?;
        let place = buffer.defined_at.as_ref();
        let place = place.ok_or_else(|| bad("a logical buffer has no definition"))?;
        let instruction = place.instruction_id.cast_unsigned();
        logical.push(LogicalBuffer {
            instruction,
            name: hlo.name(instruction)?.to_owned(),
            index: indices(&place.shape_index, "a shape index")?,
            slice,
        });
    }
    match places.keys().next() {
        None => Ok(logical),
        Some(id) => Err(bad(format!(
            "the assigned logical buffer {id} is not listed"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_of_arrays_that_were_dynamic_lose_their_sizes() {
        let mut allocs = Arena::default();
        allocs.push(Allocation {
            size: ByteSize(64),
            kind: AllocKind::Owned,
            live_out: false,
            color: 0,
        });
        let read = |size: u64, dims: [usize; 2]| {
            let mut shape = ArrayShape::new(PrimitiveType::Pred, dims);
            shape.layout = Some(shape.layout_or_default());
            let slice = Slice {
                alloc: AllocId::from_index(0),
                offset: 8,
                size,
            };
            let proto = encode_shaped(&ShapedSlice { slice, shape });
            Slices::new(&allocs).shaped(Some(&proto)).unwrap().slice
        };
        assert_eq!(read(16, [2, 4]).size, 8);
        assert_eq!(read(8, [2, 4]).size, 8);
        // Any other size is left to the check of the executable.
        assert_eq!(read(12, [2, 4]).size, 12);
    }
}
