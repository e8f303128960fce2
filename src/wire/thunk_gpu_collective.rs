//! Collectives of the GPU runtime on the wire.
//!
//! No number pairs them across devices there: those of one group meet in the order of the program.

use crate::base::Result;
use crate::collective::GroupMode;
use crate::executable::CollectiveThunk;
use crate::executable::CollectiveThunkKind;
use crate::executable::ShapedSlice;
use crate::executable::ThunkKind;
use crate::proto::xla as pb;
use crate::proto::xla::gpu;
use crate::proto::xla::gpu::thunk_proto::Impl;
use crate::wire::alloc::Slices;
use crate::wire::alloc::encode_shaped;
use crate::wire::number::bad;

/// Group modes with their numbers, those of `xla.CollectiveOpGroupMode`.
const MODES: [(i32, GroupMode); 4] = [
    (0, GroupMode::CrossReplica),
    (1, GroupMode::CrossPartition),
    (2, GroupMode::CrossReplicaAndPartition),
    (3, GroupMode::FlattenedId),
];

/// Reductions by their numbers, those of `xla.ReductionKindProto`.
const REDUCTIONS: [&str; 5] = ["", "sum", "prod", "min", "max"];

fn reduction_number(name: &str) -> Result<i32> {
    let found = REDUCTIONS.iter().skip(1).position(|known| *known == name);
    let found = found.and_then(|at| i32::try_from(at + 1).ok());
    found.ok_or_else(|| bad(format!("a GPU bundle cannot hold the reduction `{name}`")))
}

fn reduction_name(number: i32) -> Result<String> {
    let name = usize::try_from(number).ok().and_then(|i| REDUCTIONS.get(i));
    name.map(|name| (*name).to_owned())
        .ok_or_else(|| bad(format!("{number} is not the number of a reduction")))
}

/// The message of a collective.
pub(super) fn encode(thunk: &CollectiveThunk) -> Result<Impl> {
    let groups = thunk.replica_groups.iter().map(|ids| pb::ReplicaGroup {
        replica_ids: ids.clone(),
    });
    let mode = MODES.iter().find(|(_, mode)| *mode == thunk.mode);
    let types = thunk.sources.iter().map(|source| source.shape.ty.number());
    let collective_config = Some(gpu::CollectiveConfigProto {
        operand_element_type: types.collect(),
        replica_groups: groups.collect(),
        group_mode: mode.map_or(0, |(number, _)| *number),
        use_symmetric_buffer: false,
    });
    let buffer = |(source, destination): (&ShapedSlice, &ShapedSlice)| {
        let count = source.shape.element_count();
        gpu::CollectiveBufferProto {
            element_count: i64::try_from(count).unwrap_or(i64::MAX),
            source_buffer: Some(encode_shaped(source)),
            destination_buffer: Some(encode_shaped(destination)),
            source_memory_space: 0,
            destination_memory_space: 0,
        }
    };
    let buffers = thunk.sources.iter().zip(&thunk.destinations);
    let buffers: Vec<_> = buffers.map(buffer).collect();
    Ok(match &thunk.kind {
        CollectiveThunkKind::AllGather => Impl::AllGatherThunk(gpu::AllGatherThunkProto {
            collective_config,
            buffers,
            ..Default::default()
        }),
        CollectiveThunkKind::AllReduce { reduction } => {
            Impl::AllReduceThunk(gpu::AllReduceThunkProto {
                collective_config,
                buffers,
                reduction_kind: reduction_number(reduction)?,
                ..Default::default()
            })
        }
        CollectiveThunkKind::ReduceScatter { reduction } => {
            Impl::ReduceScatterThunk(gpu::ReduceScatterThunkProto {
                collective_config,
                buffers,
                reduction_kind: reduction_number(reduction)?,
            })
        }
        CollectiveThunkKind::AllToAll => Impl::AllToAllThunk(gpu::AllToAllThunkProto {
            collective_config,
            has_split_dimension: buffers.len() == 1,
            buffers,
            ..Default::default()
        }),
        CollectiveThunkKind::CollectivePermute { pairs } => {
            let pairs = pairs.iter();
            Impl::CollectivePermuteThunk(gpu::CollectivePermuteThunkProto {
                collective_config,
                buffers,
                source_target_pairs: pairs
                    .map(|&(source, target)| pb::SourceTarget { source, target })
                    .collect(),
                ..Default::default()
            })
        }
        CollectiveThunkKind::CollectiveBroadcast => {
            Impl::CollectiveBroadcastThunk(gpu::CollectiveBroadcastThunkProto {
                collective_config,
                buffers,
                ..Default::default()
            })
        }
    })
}

/// The collective of a message; none when it is something else.
pub(super) fn decode(message: &Impl, slices: &Slices<'_>) -> Result<Option<ThunkKind>> {
    let (kind, config, buffers) = match message {
        Impl::AllGatherThunk(p) => (
            CollectiveThunkKind::AllGather,
            &p.collective_config,
            &p.buffers,
        ),
        Impl::AllReduceThunk(p) => {
            let reduction = reduction_name(p.reduction_kind)?;
            let kind = CollectiveThunkKind::AllReduce { reduction };
            (kind, &p.collective_config, &p.buffers)
        }
        Impl::ReduceScatterThunk(p) => {
            let reduction = reduction_name(p.reduction_kind)?;
            let kind = CollectiveThunkKind::ReduceScatter { reduction };
            (kind, &p.collective_config, &p.buffers)
        }
        Impl::AllToAllThunk(p) => (
            CollectiveThunkKind::AllToAll,
            &p.collective_config,
            &p.buffers,
        ),
        Impl::CollectivePermuteThunk(p) => {
            let pairs = p.source_target_pairs.iter();
            let pairs = pairs.map(|pair| (pair.source, pair.target)).collect();
            let kind = CollectiveThunkKind::CollectivePermute { pairs };
            (kind, &p.collective_config, &p.buffers)
        }
        Impl::CollectiveBroadcastThunk(p) if !p.has_dynamic_root => (
            CollectiveThunkKind::CollectiveBroadcast,
            &p.collective_config,
            &p.buffers,
        ),
        _ => return Ok(None),
    };
    let config = config.clone().unwrap_or_default();
    let mode = MODES
        .iter()
        .find(|(number, _)| *number == config.group_mode);
    let (_, mode) = mode.ok_or_else(|| bad("a collective has an unknown group mode"))?;
    let groups = config.replica_groups.into_iter().map(|g| g.replica_ids);
    let side = |side: fn(&gpu::CollectiveBufferProto) -> Option<&pb::ShapedSliceProto>| {
        let slices = buffers.iter().map(|b| slices.shaped(side(b)));
        slices.collect::<Result<Vec<_>>>()
    };
    Ok(Some(ThunkKind::Collective(Box::new(CollectiveThunk {
        kind,
        op_id: 0,
        mode: *mode,
        replica_groups: groups.filter(|ids| !ids.is_empty()).collect(),
        sources: side(|b| b.source_buffer.as_ref())?,
        destinations: side(|b| b.destination_buffer.as_ref())?,
    }))))
}
