//! Convolution and collective thunks of the CPU runtime on the wire.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::collective::GroupMode;
use crate::executable::CollectiveThunk;
use crate::executable::CollectiveThunkKind;
use crate::executable::ConvolutionThunk;
use crate::executable::ShapedSlice;
use crate::executable::ThunkKind;
use crate::executable::ThunkSequence;
use crate::proto::xla as pb;
use crate::proto::xla::cpu;
use crate::proto::xla::cpu::collective_thunk_proto::Impl;
use crate::wire::alloc::Slices;
use crate::wire::alloc::encode_shape_first;
use crate::wire::fusion::window_dims;
use crate::wire::number::bad;

/// The number of that kind of resource.
const COLLECTIVE_COMMUNICATOR: i32 = 2;

pub(super) fn encode_convolution(t: &ConvolutionThunk) -> cpu::ConvolutionThunkProto {
    let window = t.window.iter().map(|d| pb::WindowDimension {
        size: d.size,
        stride: d.stride,
        padding_low: d.padding_low,
        padding_high: d.padding_high,
        window_dilation: d.window_dilation,
        base_dilation: d.base_dilation,
        window_reversal: d.reversal,
    });
    cpu::ConvolutionThunkProto {
        dimension_numbers: Some(pb::ConvolutionDimensionNumbers {
            input_batch_dimension: t.input_batch,
            input_feature_dimension: t.input_feature,
            input_spatial_dimensions: t.input_spatial.clone(),
            kernel_input_feature_dimension: t.kernel_input_feature,
            kernel_output_feature_dimension: t.kernel_output_feature,
            kernel_spatial_dimensions: t.kernel_spatial.clone(),
            output_batch_dimension: t.output_batch,
            output_feature_dimension: t.output_feature,
            output_spatial_dimensions: t.output_spatial.clone(),
        }),
        window: Some(pb::Window {
            dimensions: window.collect(),
        }),
        feature_group_count: t.feature_group_count,
        input_buffer_shape: Some(encode_shape_first(&t.input)),
        kernel_buffer_shape: Some(encode_shape_first(&t.kernel)),
        output_buffer_shape: Some(encode_shape_first(&t.output)),
        options: Some(cpu::convolution_thunk_proto::Options {
            multi_threaded: t.multi_threaded,
        }),
    }
}

pub(super) fn decode_convolution(
    p: &cpu::ConvolutionThunkProto,
    slices: &Slices<'_>,
) -> Result<ThunkKind> {
    let dims = p.dimension_numbers.clone();
    let dims = dims.ok_or_else(|| bad("a convolution has no dimension numbers"))?;
    Ok(ThunkKind::Convolution(Box::new(ConvolutionThunk {
        input_batch: dims.input_batch_dimension,
        input_feature: dims.input_feature_dimension,
        input_spatial: dims.input_spatial_dimensions,
        kernel_input_feature: dims.kernel_input_feature_dimension,
        kernel_output_feature: dims.kernel_output_feature_dimension,
        kernel_spatial: dims.kernel_spatial_dimensions,
        output_batch: dims.output_batch_dimension,
        output_feature: dims.output_feature_dimension,
        output_spatial: dims.output_spatial_dimensions,
        window: window_dims(p.window.as_ref()),
        feature_group_count: p.feature_group_count,
        multi_threaded: p.options.is_some_and(|o| o.multi_threaded),
        input: slices.shape_first(p.input_buffer_shape.as_ref())?,
        kernel: slices.shape_first(p.kernel_buffer_shape.as_ref())?,
        output: slices.shape_first(p.output_buffer_shape.as_ref())?,
    })))
}

pub(super) fn encode_collective(t: &CollectiveThunk) -> Result<cpu::CollectiveThunkProto> {
    use cpu::collective_permute_thunk_proto::SourceTargetPairProto;
    let message = match &t.kind {
        CollectiveThunkKind::AllGather => Impl::AllGatherThunk(cpu::AllGatherThunkProto {}),
        CollectiveThunkKind::AllReduce { reduction } => {
            Impl::AllReduceThunk(cpu::AllReduceThunkProto {
                reduction_kind: reduction.clone(),
                single_replica: false,
            })
        }
        CollectiveThunkKind::AllToAll => Impl::AllToAllThunk(cpu::AllToAllThunkProto {}),
        CollectiveThunkKind::ReduceScatter { reduction } => {
            Impl::ReduceScatterThunk(cpu::ReduceScatterThunkProto {
                reduction_kind: reduction.clone(),
            })
        }
        CollectiveThunkKind::CollectivePermute { pairs } => {
            let pairs = pairs.iter();
            Impl::CollectivePermuteThunk(cpu::CollectivePermuteThunkProto {
                source_target_pairs: pairs
                    .map(|&(source, target)| SourceTargetPairProto { source, target })
                    .collect(),
            })
        }
        CollectiveThunkKind::CollectiveBroadcast => {
            return Err(Diagnostic::unsupported(
                codes::BUNDLE_UNSUPPORTED,
                "a CPU bundle cannot hold a collective broadcast",
            ));
        }
    };
    let groups = t.replica_groups.iter().map(|ids| pb::ReplicaGroup {
        replica_ids: ids.clone(),
    });
    let slices = |list: &[ShapedSlice]| list.iter().map(encode_shape_first).collect();
    Ok(cpu::CollectiveThunkProto {
        op_params: Some(cpu::OpParamsProto {
            op_id: t.op_id,
            has_channel_id: t.mode.has_channel(),
            use_global_device_ids: t.mode.global_ids().map(|value| cpu::BoolOptional {
                value,
                contains_value: true,
            }),
            replica_group: groups.collect(),
        }),
        op_buffers: Some(cpu::OpBuffersProto {
            source_shapes_buffer_slices: slices(&t.sources),
            destination_shapes_buffer_slices: slices(&t.destinations),
        }),
        op_resources: Some(cpu::OpResourcesProto {
            communicator_resource: Some(cpu::ResourceOptional {
                value: Some(communicator()),
                contains_value: true,
            }),
        }),
        r#impl: Some(message),
    })
}

/// What collectives of a sequence share, so that XLA's runtime keeps their order on every device.
fn communicator() -> cpu::ResourceProto {
    cpu::ResourceProto {
        kind: COLLECTIVE_COMMUNICATOR,
    }
}

/// The thunks of a sequence that use the communicator.
pub(super) fn communicator_users(
    sequence: &ThunkSequence,
) -> Vec<cpu::thunk_sequence_proto::ResourceUsersProto> {
    let thunks = sequence.0.iter().zip(0i64..);
    let users = thunks.filter(|(thunk, _)| matches!(thunk.kind, ThunkKind::Collective(_)));
    let users: Vec<i64> = users.map(|(_, index)| index).collect();
    if users.is_empty() {
        return Vec::new();
    }
    vec![cpu::thunk_sequence_proto::ResourceUsersProto {
        thunk_indices: users,
        resource: Some(communicator()),
    }]
}

pub(super) fn decode_collective(
    p: &cpu::CollectiveThunkProto,
    slices: &Slices<'_>,
) -> Result<ThunkKind> {
    let kind = match p.r#impl.as_ref() {
        None => return Err(bad("a collective thunk has no known message")),
        Some(Impl::AllGatherThunk(_)) => CollectiveThunkKind::AllGather,
        Some(Impl::AllToAllThunk(_)) => CollectiveThunkKind::AllToAll,
        Some(Impl::AllReduceThunk(p)) => CollectiveThunkKind::AllReduce {
            reduction: p.reduction_kind.clone(),
        },
        Some(Impl::ReduceScatterThunk(p)) => CollectiveThunkKind::ReduceScatter {
            reduction: p.reduction_kind.clone(),
        },
        Some(Impl::CollectivePermuteThunk(p)) => {
            let pairs = p.source_target_pairs.iter();
            CollectiveThunkKind::CollectivePermute {
                pairs: pairs.map(|pair| (pair.source, pair.target)).collect(),
            }
        }
    };
    let params = p.op_params.clone().unwrap_or_default();
    let buffers = p.op_buffers.clone().unwrap_or_default();
    let list = |protos: &[cpu::ShapeBufferAllocationSliceProto]| -> Result<Vec<_>> {
        let slices = protos.iter().map(|p| slices.shape_first(Some(p)));
        slices.collect()
    };
    let global = params.use_global_device_ids.filter(|b| b.contains_value);
    let mode = GroupMode::of(params.has_channel_id, global.map(|b| b.value));
    let mode = mode.ok_or_else(|| bad("a collective has global device ids and no channel"))?;
    let groups = params.replica_group.into_iter();
    Ok(ThunkKind::Collective(Box::new(CollectiveThunk {
        kind,
        op_id: params.op_id,
        mode,
        replica_groups: groups
            .map(|g| g.replica_ids)
            .filter(|ids| !ids.is_empty())
            .collect(),
        sources: list(&buffers.source_shapes_buffer_slices)?,
        destinations: list(&buffers.destination_shapes_buffer_slices)?,
    })))
}
