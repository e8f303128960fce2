//! Collectives that the runtime's communicator runs.

use crate::collective::GroupMode;
use crate::collective::Topology;
use crate::executable::CollectiveThunk;
use crate::executable::CollectiveThunkKind;
use crate::executable::ShapedSlice;
use crate::executable::ThunkKind;
use crate::hlo::BinaryOp;
use crate::hlo::Collective;
use crate::hlo::CollectiveKind;
use crate::hlo::CompId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::verify;
use crate::target::Platform;

/// The thunk of a collective; none when there is no such thunk. `number` is its place among the
/// program's collectives, which pairs it across devices when it has no channel.
pub fn thunk(
    module: &Module,
    kind: &CollectiveKind,
    collective: &Collective,
    (number, platform): (i64, Platform),
    (sources, destinations): (Vec<ShapedSlice>, Vec<ShapedSlice>),
) -> Option<ThunkKind> {
    let mode = verify::group_mode(kind, collective).ok()?;
    let mut replica_groups = verify::listed_groups(&collective.replica_groups).ok()?;
    let kind = match kind {
        CollectiveKind::AllGather { dim: 0 } => CollectiveThunkKind::AllGather,
        CollectiveKind::AllReduce { body } => CollectiveThunkKind::AllReduce {
            reduction: reduction(module, *body)?.to_owned(),
        },
        CollectiveKind::ReduceScatter { dim: 0, body } => CollectiveThunkKind::ReduceScatter {
            reduction: reduction(module, *body)?.to_owned(),
        },
        CollectiveKind::AllToAll { dim: None } => CollectiveThunkKind::AllToAll,
        // The CPU runtime has no message for it; its permutes send to several targets.
        CollectiveKind::CollectiveBroadcast if platform == Platform::Cpu => {
            let config = &module.config;
            let topology = Topology::new(config.replica_count, config.num_partitions).ok()?;
            let pairs = broadcast_pairs(mode, topology, &replica_groups);
            replica_groups.clear();
            CollectiveThunkKind::CollectivePermute { pairs }
        }
        CollectiveKind::CollectiveBroadcast => CollectiveThunkKind::CollectiveBroadcast,
        CollectiveKind::CollectivePermute { pairs, .. } => CollectiveThunkKind::CollectivePermute {
            pairs: pairs.clone(),
        },
        CollectiveKind::AllGather { .. }
        | CollectiveKind::ReduceScatter { .. }
        | CollectiveKind::AllToAll { .. }
        | CollectiveKind::AllGatherStart { .. }
        | CollectiveKind::AllReduceStart { .. }
        | CollectiveKind::RaggedAllToAll
        | CollectiveKind::CollectivePermuteStart { .. } => return None,
    };
    Some(ThunkKind::Collective(Box::new(CollectiveThunk {
        kind,
        op_id: match platform {
            Platform::Cpu => collective.channel_id.unwrap_or(number),
            // Nothing in a GPU bundle pairs them but their order.
            Platform::Cuda => 0,
        },
        mode,
        replica_groups,
        sources,
        destinations,
    })))
}

/// From the first of each group to all of it.
fn broadcast_pairs(mode: GroupMode, topology: Topology, groups: &[Vec<i64>]) -> Vec<(i64, i64)> {
    let everyone: Vec<i64>;
    let groups = match groups {
        [] => {
            let ids = (0..topology.devices()).map(|device| mode.id_of(topology, device));
            let ids: std::collections::BTreeSet<i64> = ids.collect();
            everyone = ids.into_iter().collect();
            std::slice::from_ref(&everyone)
        }
        groups => groups,
    };
    let pairs = groups.iter().flat_map(|group| {
        let first = group.first().copied();
        let pairs = group.iter().map(move |&target| Some((first?, target)));
        pairs.flatten()
    });
    pairs.collect()
}

/// The word for what a reduction's body does, when it is a plain function of its two arguments that
/// the runtime knows.
pub fn reduction(module: &Module, body: CompId) -> Option<&'static str> {
    let comp = module.comp(body);
    let root = module.root(body);
    let [a, b] = root.operands[..] else {
        return None;
    };
    let is_argument = |id| comp.params.contains(&id);
    let ty = root.shape.as_array()?.ty;
    if a == b || !is_argument(a) || !is_argument(b) {
        return None;
    }
    use crate::shape::ElementKind as Kind;
    match (&root.op, ty.kind()) {
        (Op::Binary(BinaryOp::And), Kind::Pred) => Some("min"),
        (Op::Binary(BinaryOp::Or), Kind::Pred) => Some("max"),
        (Op::Binary(BinaryOp::Add | BinaryOp::Multiply), Kind::Pred) => None,
        (Op::Binary(BinaryOp::Add), _) => Some("sum"),
        (Op::Binary(BinaryOp::Multiply), _) => Some("prod"),
        (Op::Binary(BinaryOp::Minimum | BinaryOp::Maximum), Kind::Complex) => None,
        (Op::Binary(BinaryOp::Minimum), _) => Some("min"),
        (Op::Binary(BinaryOp::Maximum), _) => Some("max"),
        _ => None,
    }
}
