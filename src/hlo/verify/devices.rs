//! Whether a module's collectives fit the devices that run it.

use crate::base::Diagnostic;
use crate::base::Location;
use crate::base::Result;
use crate::base::codes;
use crate::collective::GroupMode;
use crate::collective::Topology;
use crate::collective::expand_iota;
use crate::hlo::Collective;
use crate::hlo::CollectiveKind;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::ReplicaGroups;
use crate::hlo::print;
use crate::shape::Shape;

/// The groups of a collective, written out.
///
/// # Errors
/// A sentence, when they are an iota that does not fit its dimensions.
pub fn listed_groups(groups: &ReplicaGroups) -> Result<Vec<Vec<i64>>, String> {
    match groups {
        // One empty group means the same as no groups.
        ReplicaGroups::List(groups) if groups.iter().all(Vec::is_empty) => Ok(Vec::new()),
        ReplicaGroups::List(groups) => Ok(groups.clone()),
        ReplicaGroups::Iota {
            dims,
            reshape,
            transpose,
        } => expand_iota(dims, reshape, transpose)
            .ok_or_else(|| "its groups are an iota that does not fit its dimensions".to_owned()),
    }
}

/// What the numbers in the groups or pairs of a collective are.
///
/// # Errors
/// A sentence, when it has global ids and no channel.
pub fn group_mode(kind: &CollectiveKind, of: &Collective) -> Result<GroupMode, String> {
    let global_ids = match kind {
        CollectiveKind::AllGather { .. }
        | CollectiveKind::AllGatherStart { .. }
        | CollectiveKind::AllReduce { .. }
        | CollectiveKind::AllReduceStart { .. }
        | CollectiveKind::ReduceScatter { .. } => Some(of.use_global_device_ids),
        CollectiveKind::AllToAll { .. }
        | CollectiveKind::RaggedAllToAll
        | CollectiveKind::CollectiveBroadcast
        | CollectiveKind::CollectivePermute { .. }
        | CollectiveKind::CollectivePermuteStart { .. } => of.use_global_device_ids.then_some(true),
    };
    GroupMode::of(of.channel_id.is_some(), global_ids)
        .ok_or_else(|| "it has global device ids and no channel".to_owned())
}

/// Whether every collective of the module fits these devices: its groups and pairs name devices
/// that are there, and its shapes have the sizes that the groups give.
///
/// # Errors
/// `XA2001` with the instruction.
pub fn check_devices(module: &Module, topology: Topology) -> Result<()> {
    for &id in module.comps.values().flat_map(|comp| &comp.instrs) {
        let instr = module.instr(id);
        let Op::Collective { kind, collective } = &instr.op else {
            continue;
        };
        if let Err(why) = fits(module, id, kind, collective, topology) {
            let message = format!("`{}`: {why}", instr.op.opcode());
            let location = Location::Instruction {
                computation: module.comps[instr.parent].name.clone(),
                text: print::instr(module, id),
            };
            return Err(Diagnostic::error(codes::OP_CONSTRAINT, message).at(location));
        }
    }
    Ok(())
}

fn fits(
    module: &Module,
    id: InstrId,
    kind: &CollectiveKind,
    collective: &Collective,
    topology: Topology,
) -> Result<(), String> {
    let mode = group_mode(kind, collective)?;
    if let CollectiveKind::CollectivePermute { pairs, .. }
    | CollectiveKind::CollectivePermuteStart { pairs, .. } = kind
    {
        let sides = [
            pairs.iter().map(|pair| pair.0).collect::<Vec<_>>(),
            pairs.iter().map(|pair| pair.1).collect(),
        ];
        let mut sides = sides.into_iter().filter(|side| !side.is_empty());
        return sides.try_for_each(|side| mode.check(topology, &[side], false));
    }
    let groups = listed_groups(&collective.replica_groups)?;
    let all = !matches!(kind, CollectiveKind::CollectiveBroadcast);
    mode.check(topology, &groups, all)?;
    let size = mode.group_size(topology, &groups);
    let instr = &module.instrs[id];
    let first = instr.operands.first().map(|&operand| module.shape(operand));
    let along = |shape: Option<&Shape>, dim: usize| {
        let leaves = shape.map(Shape::leaves).unwrap_or_default();
        let array = leaves.into_iter().find_map(|(_, leaf)| leaf.as_array());
        array.and_then(|array| array.dims.get(dim).copied())
    };
    let even = |size: Option<usize>| size.ok_or("its groups differ in size");
    match kind {
        CollectiveKind::AllGather { dim } => {
            let (from, to) = (along(first, *dim), along(Some(&instr.shape), *dim));
            grows(from, to, even(size)?)
        }
        CollectiveKind::AllGatherStart { dim } => {
            let (from, to) = (along(first, *dim), along(instr.shape.at(&[1]), *dim));
            grows(from, to, even(size)?)
        }
        CollectiveKind::ReduceScatter { dim, .. } => {
            let (from, to) = (along(first, *dim), along(Some(&instr.shape), *dim));
            grows(to, from, even(size)?)
        }
        CollectiveKind::AllToAll { dim: Some(dim) } => {
            let size = even(size)?;
            let along = along(first, *dim).unwrap_or(0);
            if along.is_multiple_of(size) {
                return Ok(());
            }
            Err(format!(
                "dimension {dim} of {along} elements is not cut among {size} devices"
            ))
        }
        CollectiveKind::AllToAll { dim: None } => {
            let (size, given) = (even(size)?, instr.operands.len());
            if given == size {
                return Ok(());
            }
            Err(format!("{given} operands for groups of {size} devices"))
        }
        CollectiveKind::RaggedAllToAll => {
            let size = even(size)?;
            let offsets = instr.operands.get(2).map(|&operand| module.shape(operand));
            let given = along(offsets, 0).unwrap_or(0);
            if given.is_multiple_of(size) {
                return Ok(());
            }
            Err(format!("{given} offsets for groups of {size} devices"))
        }
        CollectiveKind::AllReduce { .. }
        | CollectiveKind::AllReduceStart { .. }
        | CollectiveKind::CollectiveBroadcast
        | CollectiveKind::CollectivePermute { .. }
        | CollectiveKind::CollectivePermuteStart { .. } => Ok(()),
    }
}

/// Whether one size is the other times the devices of a group.
fn grows(small: Option<usize>, large: Option<usize>, size: usize) -> Result<(), String> {
    let wanted = small.and_then(|small| small.checked_mul(size));
    if wanted == large {
        return Ok(());
    }
    let show = |n: Option<usize>| n.map_or("?".to_owned(), |n| n.to_string());
    Err(format!(
        "{} and {} elements do not fit groups of {size} devices",
        show(small),
        show(large)
    ))
}
