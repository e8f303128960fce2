//! Thunks that run on windows of buffers (`xla.gpu.DynamicSliceFusionThunkProto`): reading.
//!
//! The windows become allocations behind those of the program, so that the thunks inside name them
//! as they name any other memory.

use crate::base::ByteSize;
use crate::base::Id;
use crate::base::Result;
use crate::executable::Access;
use crate::executable::AllocId;
use crate::executable::AllocKind;
use crate::executable::Allocation;
use crate::executable::IndexExpr;
use crate::executable::IndexOp;
use crate::executable::Place;
use crate::executable::Slice;
use crate::executable::Window;
use crate::executable::WindowIndex;
use crate::proto::xla as pb;
use crate::proto::xla::gpu;
use crate::proto::xla::gpu::dynamic_slice_fusion_thunk_proto as dsf;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;
use crate::wire::alloc::Slices;
use crate::wire::number::bad;
use crate::wire::number::index;
use crate::wire::shape::decode_packed;

/// The windows of a thunk, the first of which stands at allocation `first`, and the allocations
/// that stand for them.
pub(super) fn windows(
    proto: &gpu::DynamicSliceFusionThunkProto,
    slices: &Slices<'_>,
    first: usize,
) -> Result<Vec<(Window, Allocation)>> {
    let count = proto.parameters.len() + proto.results.len();
    if proto.slice_allocations.len() != count {
        return Err(bad(format!(
            "{} slices stand for {count} buffers",
            proto.slice_allocations.len()
        )));
    }
    let reader = Reader { proto, slices };
    let parameters = proto.parameters.iter().map(|p| -> Result<_> {
        let shapes = (p.parameter_shape.as_ref(), p.slice_shape.as_ref());
        Ok((
            reader.buffer(&proto.parameter_buffers, p.parameter_number)?,
            Access::Read,
            reader.place(p.slice_config.as_ref(), &p.slice_offsets, shapes)?,
        ))
    });
    let results = proto.results.iter().map(|r| -> Result<_> {
        let shapes = (r.result_shape.as_ref(), r.update_shape.as_ref());
        let place = reader.place(r.update_config.as_ref(), &r.update_offsets, shapes)?;
        // What lies around the window is kept.
        let is_whole = r.update_config.is_none() && r.update_offsets.is_empty();
        let access = if is_whole {
            Access::Write
        } else {
            Access::ReadWrite
        };
        let buffer = reader.buffer(&proto.result_buffers, r.result_number)?;
        Ok((buffer, access, place))
    });
    let all = parameters.chain(results).zip(&proto.slice_allocations);
    all.enumerate()
        .map(|(i, (window, allocation))| {
            let (buffer, access, place): (Slice, Access, Place) = window?;
            let size = index(allocation.size, "the size of a window")? as u64;
            Ok((
                Window {
                    alloc: AllocId::from_index(first + i),
                    buffer,
                    access,
                    place,
                },
                Allocation {
                    size: ByteSize(size),
                    kind: AllocKind::Window,
                    live_out: false,
                    color: allocation.color,
                },
            ))
        })
        .collect()
}

struct Reader<'a> {
    proto: &'a gpu::DynamicSliceFusionThunkProto,
    slices: &'a Slices<'a>,
}

type Shapes<'a> = (Option<&'a pb::ShapeProto>, Option<&'a pb::ShapeProto>);

impl Reader<'_> {
    fn buffer(
        &self,
        buffers: &[pb::buffer_assignment::BufferAllocationSliceProto],
        number: i64,
    ) -> Result<Slice> {
        let found = buffers.get(index(number, "the number of a buffer")?);
        self.slices.slice(found)
    }

    /// The place of a window: counted by a loop where the producer could work that out.
    fn place(
        &self,
        config: Option<&gpu::DynamicSliceConfig>,
        offsets: &[dsf::OffsetProto],
        (whole, part): Shapes<'_>,
    ) -> Result<Place> {
        if let Some(config) = config {
            let depth = config.loop_index;
            return Ok(Place::Step {
                depth: depth
                    .map(|d| index(d, "the number of a loop"))
                    .transpose()?,
                offset: config.byte_offset,
                stride: config.byte_stride,
            });
        }
        if offsets.is_empty() {
            return Ok(Place::Step {
                depth: None,
                offset: 0,
                stride: 0,
            });
        }
        let shape = |proto: Option<&pb::ShapeProto>| -> Result<ArrayShape> {
            decode_packed(proto.ok_or_else(|| bad("a window without a shape"))?)
        };
        let (whole, part) = (shape(whole)?, shape(part)?);
        if whole.rank() != part.rank() || whole.ty.is_sub_byte() {
            return Err(bad("a window whose shape does not fit its buffer's"));
        }
        let indices = offsets.iter().map(|offset| {
            let dim = index(offset.dimension_number, "a dimension")?;
            let (Some(&all), Some(&some)) = (whole.dims.get(dim), part.dims.get(dim)) else {
                return Err(bad(format!(
                    "a window along dimension {dim}, which it lacks"
                )));
            };
            let expr = offset.offset.as_ref();
            let expr = expr.ok_or_else(|| bad("an index is missing"))?;
            let last = all.checked_sub(some);
            let last = last.ok_or_else(|| bad("a window larger than its buffer"))?;
            Ok(WindowIndex {
                stride: byte_stride(&whole, dim)?,
                last: i64::try_from(last).unwrap_or(i64::MAX),
                index: self.expr(expr)?,
            })
        });
        indices.collect::<Result<_>>().map(Place::Indices)
    }

    fn expr(&self, proto: &dsf::OffsetExprProto) -> Result<IndexExpr> {
        let comparisons = [
            IndexOp::Eq,
            IndexOp::Ne,
            IndexOp::Ge,
            IndexOp::Gt,
            IndexOp::Le,
            IndexOp::Lt,
        ];
        let op = match proto.kind {
            1 => return Ok(IndexExpr::Constant(proto.value)),
            2 => {
                let buffers = &self.proto.parameter_buffers;
                let slice = self.buffer(buffers, proto.value)?;
                let number = buffers.get(proto.value as usize).map(|b| b.element_type);
                let ty = number.and_then(PrimitiveType::from_number);
                let ty = ty.ok_or_else(|| bad("an index of an unknown type"))?;
                return Ok(IndexExpr::Load(slice, ty));
            }
            3 => IndexOp::Add,
            4 => IndexOp::Subtract,
            5 => IndexOp::Multiply,
            6 => {
                let direction = usize::try_from(proto.compare_direction - 1).ok();
                let op = direction.and_then(|d| comparisons.get(d));
                *op.ok_or_else(|| bad("an unknown comparison in an index"))?
            }
            7 => IndexOp::Select,
            kind => return Err(bad(format!("an index of the unknown kind {kind}"))),
        };
        let operands = proto.operands.iter().map(|operand| self.expr(operand));
        Ok(IndexExpr::Apply(op, operands.collect::<Result<_>>()?))
    }
}

/// Bytes from one index to the next along a dimension.
fn byte_stride(shape: &ArrayShape, dim: usize) -> Result<u64> {
    let mut stride = shape.ty.byte_width() as u64;
    for &minor in &shape.layout_or_default().minor_to_major {
        if minor == dim {
            return Ok(stride);
        }
        let extent = shape.dims.get(minor).copied().unwrap_or(1) as u64;
        let next = stride.checked_mul(extent);
        stride = next.ok_or_else(|| bad("a window in an enormous array"))?;
    }
    Err(bad("a window's layout lacks a dimension"))
}
