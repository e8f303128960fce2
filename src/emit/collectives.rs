//! Collectives that the runtime's communicator runs.

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
use crate::hlo::ReplicaGroups;
use crate::shape::PrimitiveType;

/// The thunk of a collective; none when there is no such thunk.
pub fn thunk(
    module: &Module,
    kind: &CollectiveKind,
    collective: &Collective,
    sources: Vec<ShapedSlice>,
    destinations: Vec<ShapedSlice>,
) -> Option<ThunkKind> {
    let kind = match kind {
        CollectiveKind::AllGather { .. } => CollectiveThunkKind::AllGather,
        CollectiveKind::AllReduce { body } => CollectiveThunkKind::AllReduce {
            reduction: reduction(module, *body)?.to_owned(),
        },
        CollectiveKind::ReduceScatter { body, .. } => CollectiveThunkKind::ReduceScatter {
            reduction: reduction(module, *body)?.to_owned(),
        },
        CollectiveKind::AllToAll { .. } => CollectiveThunkKind::AllToAll,
        CollectiveKind::CollectiveBroadcast => CollectiveThunkKind::CollectiveBroadcast,
        CollectiveKind::CollectivePermute { pairs, .. } => CollectiveThunkKind::CollectivePermute {
            pairs: pairs.clone(),
        },
        CollectiveKind::AllGatherStart { .. }
        | CollectiveKind::AllReduceStart { .. }
        | CollectiveKind::RaggedAllToAll
        | CollectiveKind::CollectivePermuteStart { .. } => return None,
    };
    let replica_groups = match &collective.replica_groups {
        ReplicaGroups::List(groups) => groups.clone(),
        ReplicaGroups::Iota {
            dims,
            reshape,
            transpose,
        } => iota_groups(dims, reshape, transpose)?,
        ReplicaGroups::Text(_) => return None,
    };
    Some(ThunkKind::Collective(Box::new(CollectiveThunk {
        kind,
        op_id: collective.channel_id.unwrap_or(0),
        has_channel_id: collective.channel_id.is_some(),
        use_global_device_ids: Some(collective.use_global_device_ids),
        replica_groups,
        sources,
        destinations,
    })))
}

/// The word for what a reduction's body does.
fn reduction(module: &Module, body: CompId) -> Option<&'static str> {
    let root = module.root(body);
    let is_pred = root.shape.as_array()?.ty == PrimitiveType::Pred;
    match root.op {
        Op::Binary(BinaryOp::Add) => Some("sum"),
        Op::Binary(BinaryOp::Multiply) => Some("prod"),
        Op::Binary(BinaryOp::Minimum) => Some("min"),
        Op::Binary(BinaryOp::Maximum) => Some("max"),
        Op::Binary(BinaryOp::And) if is_pred => Some("min"),
        Op::Binary(BinaryOp::Or) if is_pred => Some("max"),
        _ => None,
    }
}

/// Groups written as an iota that is reshaped, transposed and cut.
fn iota_groups(dims: &[i64], reshape: &[i64], transpose: &[i64]) -> Option<Vec<Vec<i64>>> {
    let sizes: Vec<usize> = reshape
        .iter()
        .map(|&d| usize::try_from(d).ok())
        .collect::<Option<_>>()?;
    let order: Vec<usize> = transpose
        .iter()
        .map(|&d| usize::try_from(d).ok())
        .collect::<Option<_>>()?;
    let order = if order.is_empty() {
        (0..sizes.len()).collect()
    } else {
        order
    };
    if !crate::shape::index::is_permutation(&order) || order.len() != sizes.len() {
        return None;
    }
    let permuted: Vec<usize> = order.iter().map(|&d| sizes[d]).collect();
    let mut flat = Vec::new();
    crate::shape::index::for_each_index(&permuted, |index| {
        let mut original = vec![0; sizes.len()];
        for (i, &d) in order.iter().enumerate() {
            original[d] = index[i];
        }
        let linear = original
            .iter()
            .zip(&sizes)
            .fold(0, |sum, (&i, &n)| sum * n + i);
        flat.push(linear as i64);
    });
    let size = dims.get(1).and_then(|&s| usize::try_from(s).ok())?;
    if size == 0 {
        return None;
    }
    Some(flat.chunks(size).map(<[i64]>::to_vec).collect())
}
