//! Which devices take part in a collective together.

use std::collections::BTreeSet;

use crate::collective::Topology;

/// What the numbers in the groups of a collective are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupMode {
    /// Replicas; each partition has a group of its own.
    CrossReplica,
    /// Partitions; each replica has a group of its own.
    CrossPartition,
    /// Replicas, with all their partitions, the partitions of a replica side by side.
    CrossReplicaAndPartition,
    /// Devices: `replica * partitions + partition`.
    FlattenedId,
}

impl GroupMode {
    /// The mode of a collective, by whether it has a channel and what it says of the ids in its
    /// groups, if it can say so at all. No channel and global ids go together in no mode.
    pub fn of(has_channel: bool, global_ids: Option<bool>) -> Option<Self> {
        match (has_channel, global_ids) {
            (false, None | Some(false)) => Some(Self::CrossReplica),
            (false, Some(true)) => None,
            (true, None) => Some(Self::CrossPartition),
            (true, Some(false)) => Some(Self::CrossReplicaAndPartition),
            (true, Some(true)) => Some(Self::FlattenedId),
        }
    }

    /// Whether collectives of this mode have a channel.
    pub fn has_channel(self) -> bool {
        self != Self::CrossReplica
    }

    /// What collectives of this mode say of the ids in their groups.
    pub fn global_ids(self) -> Option<bool> {
        match self {
            Self::CrossReplica | Self::CrossPartition => None,
            Self::CrossReplicaAndPartition => Some(false),
            Self::FlattenedId => Some(true),
        }
    }

    /// As listings have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::CrossReplica => "cross-replica",
            Self::CrossPartition => "cross-partition",
            Self::CrossReplicaAndPartition => "cross-replica-and-partition",
            Self::FlattenedId => "flattened-id",
        }
    }

    /// What an id in a group is, and how many there are.
    fn ids(self, topology: Topology) -> (&'static str, usize) {
        match self {
            Self::CrossReplica | Self::CrossReplicaAndPartition => {
                ("replica", topology.replicas as usize)
            }
            Self::CrossPartition => ("partition", topology.partitions as usize),
            Self::FlattenedId => ("device", topology.devices()),
        }
    }

    /// The id of a device.
    pub fn id_of(self, topology: Topology, device: usize) -> i64 {
        match self {
            Self::CrossReplica | Self::CrossReplicaAndPartition => {
                i64::from(topology.replica_of(device))
            }
            Self::CrossPartition => i64::from(topology.partition_of(device)),
            Self::FlattenedId => device as i64,
        }
    }

    /// Whether groups fit the devices: every id exists and stands in one group only, and there is a
    /// group where the mode wants one. With `all`, every id must stand in one.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn check(self, topology: Topology, groups: &[Vec<i64>], all: bool) -> Result<(), String> {
        if groups.is_empty() && self == Self::FlattenedId {
            return Err("groups of devices must be written out, and there are none".to_owned());
        }
        let (what, count) = self.ids(topology);
        let mut seen = BTreeSet::new();
        for &id in groups.iter().flatten() {
            if !usize::try_from(id).is_ok_and(|id| id < count) {
                return Err(format!(
                    "its groups name {what} {id}, and there are {count} ({topology}, {})",
                    self.name()
                ));
            }
            if !seen.insert(id) {
                return Err(format!("its groups name {what} {id} twice"));
            }
        }
        let missing = (0..count).find(|&id| !seen.contains(&(id as i64)));
        match missing {
            Some(id) if all && !groups.is_empty() => {
                Err(format!("{what} {id} is in none of its groups"))
            }
            _ => Ok(()),
        }
    }

    /// The devices that talk with this one, in the order of their ranks; none when the groups leave
    /// it out. No groups at all are one group of everyone.
    pub fn group(
        self,
        topology: Topology,
        groups: &[Vec<i64>],
        device: usize,
    ) -> Option<Vec<usize>> {
        let own = self.id_of(topology, device);
        let everyone: Vec<i64>;
        let ids = match groups {
            [] => {
                everyone = (0..self.ids(topology).1 as i64).collect();
                &everyone
            }
            groups => groups.iter().find(|group| group.contains(&own))?,
        };
        let ids = ids.iter().filter_map(|&id| u32::try_from(id).ok());
        Some(match self {
            Self::CrossReplica => {
                let partition = topology.partition_of(device);
                ids.map(|r| topology.device(r, partition)).collect()
            }
            Self::CrossPartition => {
                let replica = topology.replica_of(device);
                ids.map(|p| topology.device(replica, p)).collect()
            }
            Self::CrossReplicaAndPartition => ids
                .flat_map(|r| (0..topology.partitions).map(move |p| topology.device(r, p)))
                .collect(),
            Self::FlattenedId => ids.map(|id| id as usize).collect(),
        })
    }

    /// How many devices are in each group; none when the groups differ in size.
    pub fn group_size(self, topology: Topology, groups: &[Vec<i64>]) -> Option<usize> {
        let each = match self {
            Self::CrossReplicaAndPartition => topology.partitions as usize,
            Self::CrossReplica | Self::CrossPartition | Self::FlattenedId => 1,
        };
        let Some(first) = groups.first() else {
            return Some(self.ids(topology).1 * each);
        };
        let even = groups.iter().all(|group| group.len() == first.len());
        even.then_some(first.len() * each)
    }
}

/// Groups written as an iota over `reshape` that is transposed and cut into groups of `dims[1]`; none
/// when the numbers do not fit together.
pub fn expand_iota(dims: &[i64], reshape: &[i64], transpose: &[i64]) -> Option<Vec<Vec<i64>>> {
    let size = |n: &i64| usize::try_from(*n).ok().filter(|&n| n > 0);
    let sizes: Vec<usize> = reshape.iter().map(size).collect::<Option<_>>()?;
    let order: Vec<usize> = match transpose {
        [] => (0..sizes.len()).collect(),
        order => order
            .iter()
            .map(|&d| usize::try_from(d).ok())
            .collect::<Option<_>>()?,
    };
    let distinct: BTreeSet<usize> = order.iter().copied().collect();
    if order.len() != sizes.len() || distinct != (0..sizes.len()).collect() {
        return None;
    }
    let product = |sizes: &[usize]| {
        let product = sizes.iter().try_fold(1usize, |n, &s| n.checked_mul(s));
        product.filter(|&n| n <= 1 << 20)
    };
    let count = product(&sizes)?;
    let wanted: Vec<usize> = dims.iter().map(size).collect::<Option<_>>()?;
    if product(&wanted)? != count {
        return None;
    }
    // Strides of the iota along the transposed dimensions.
    let stride = |d: usize| sizes[d + 1..].iter().product::<usize>();
    let flat = (0..count).map(|mut place| {
        let digits = order.iter().rev().map(|&d| {
            let digit = place % sizes[d];
            place /= sizes[d];
            digit * stride(d)
        });
        digits.sum::<usize>() as i64
    });
    let flat: Vec<i64> = flat.collect();
    let group = wanted.get(1).copied().unwrap_or(count);
    Some(flat.chunks(group).map(<[i64]>::to_vec).collect())
}

/// An axis of a mesh of devices, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeshAxis {
    /// Which.
    pub axis: usize,
    /// For a part: what the axis is divided into before it, and the size of the part.
    pub part: Option<(i64, i64)>,
}

/// Groups of the devices that differ along these axes only, ranked by them, the last the fastest.
/// The mesh has sizes and devices, none of which means 0, 1, 2, ...; none when the numbers do not fit
/// together.
pub fn expand_mesh(sizes: &[i64], devices: &[i64], axes: &[MeshAxis]) -> Option<Vec<Vec<i64>>> {
    // Each axis is cut where a part begins and ends.
    let mut cuts: Vec<BTreeSet<usize>> = Vec::new();
    for &size in sizes {
        let size = usize::try_from(size).ok().filter(|&n| n > 0)?;
        cuts.push([1, size].into());
    }
    let mut spans = Vec::new();
    for axis in axes {
        let whole = usize::try_from(*sizes.get(axis.axis)?).ok()?;
        let (begin, end) = match axis.part {
            None => (1, whole),
            Some((before, size)) => {
                let before = usize::try_from(before).ok()?;
                (before, before.checked_mul(usize::try_from(size).ok()?)?)
            }
        };
        if end == 0 || !whole.is_multiple_of(end) {
            return None;
        }
        cuts[axis.axis].extend([begin, end]);
        spans.push((axis.axis, begin, end));
    }
    // The pieces, the slowest first: axis, where it begins, size.
    let mut pieces = Vec::new();
    for (axis, cuts) in cuts.iter().enumerate() {
        let ends = cuts.iter().skip(1);
        for (&begin, &end) in cuts.iter().zip(ends) {
            if begin == 0 || !end.is_multiple_of(begin) {
                return None;
            }
            pieces.push((axis, begin, end / begin));
        }
    }
    let size_of = |&place: &usize| {
        let (_, _, size): (usize, usize, usize) = pieces[place];
        size
    };
    let product = |places: &[usize]| {
        let mut sizes = places.iter().map(size_of);
        let product = sizes.try_fold(1usize, usize::checked_mul);
        product.filter(|&n| n <= 1 << 20)
    };
    let mut inner = Vec::new();
    for (axis, begin, end) in spans {
        let is_in = |&(of, at, _): &(usize, usize, usize)| of == axis && (begin..end).contains(&at);
        inner.extend((0..pieces.len()).filter(|&place| is_in(&pieces[place])));
    }
    let outer: Vec<usize> = (0..pieces.len())
        .filter(|place| !inner.contains(place))
        .collect();
    let distinct: BTreeSet<usize> = inner.iter().copied().collect();
    let all: Vec<usize> = (0..pieces.len()).collect();
    let count = product(&all)?;
    if distinct.len() != inner.len() || !(devices.is_empty() || devices.len() == count) {
        return None;
    }
    let mut groups = vec![vec![0; product(&inner)?]; product(&outer)?];
    for place in 0..count {
        let mut rest = place;
        let mut digits = vec![0; pieces.len()];
        for (digit, (_, _, size)) in digits.iter_mut().zip(&pieces).rev() {
            *digit = rest % size;
            rest /= size;
        }
        let number = |places: &[usize]| {
            let places = places.iter();
            places.fold(0, |n, place| n * size_of(place) + digits[*place])
        };
        groups[number(&outer)][number(&inner)] =
            devices.get(place).copied().unwrap_or(place as i64);
    }
    Some(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE_BY_TWO: Topology = Topology {
        replicas: 3,
        partitions: 2,
    };

    /// The groups of all devices, each once.
    fn all(mode: GroupMode, groups: &[Vec<i64>]) -> Vec<Vec<usize>> {
        let of = |device| mode.group(THREE_BY_TWO, groups, device).unwrap();
        let found: BTreeSet<Vec<usize>> = (0..6).map(of).collect();
        found.into_iter().collect()
    }

    #[test]
    fn each_mode_has_its_groups() {
        let groups = [vec![0], vec![2, 1]];
        let wanted = vec![vec![0], vec![1], vec![4, 2], vec![5, 3]];
        assert_eq!(all(GroupMode::CrossReplica, &groups), wanted);
        let wanted = vec![vec![0, 1], vec![4, 5, 2, 3]];
        assert_eq!(all(GroupMode::CrossReplicaAndPartition, &groups), wanted);
        let wanted = vec![vec![1, 0], vec![3, 2], vec![5, 4]];
        assert_eq!(all(GroupMode::CrossPartition, &[vec![1, 0]]), wanted);
        let groups = [vec![0], vec![1, 2], vec![3, 5, 4]];
        let wanted = vec![vec![0], vec![1, 2], vec![3, 5, 4]];
        assert_eq!(all(GroupMode::FlattenedId, &groups), wanted);
    }

    #[test]
    fn no_groups_are_everyone() {
        let wanted = vec![vec![0, 2, 4], vec![1, 3, 5]];
        assert_eq!(all(GroupMode::CrossReplica, &[]), wanted);
        let wanted = vec![vec![0, 1], vec![2, 3], vec![4, 5]];
        assert_eq!(all(GroupMode::CrossPartition, &[]), wanted);
        let wanted = vec![vec![0, 1, 2, 3, 4, 5]];
        assert_eq!(all(GroupMode::CrossReplicaAndPartition, &[]), wanted);
        let left_out = GroupMode::FlattenedId.group(THREE_BY_TWO, &[vec![0, 1]], 4);
        assert_eq!(left_out, None);
    }

    #[test]
    fn groups_that_do_not_fit_are_told() {
        let check = |mode: GroupMode, groups: &[Vec<i64>]| mode.check(THREE_BY_TWO, groups, true);
        let replicas = GroupMode::CrossReplica;
        assert_eq!(check(replicas, &[vec![0, 1, 2]]), Ok(()));
        assert!(
            check(replicas, &[vec![0, 1, 3]])
                .unwrap_err()
                .contains("replica 3")
        );
        assert!(
            check(replicas, &[vec![0, 1], vec![1]])
                .unwrap_err()
                .contains("twice")
        );
        assert!(
            check(replicas, &[vec![0, 1]])
                .unwrap_err()
                .contains("replica 2 is in none")
        );
        assert!(replicas.check(THREE_BY_TWO, &[vec![0, 1]], false).is_ok());
        assert!(check(replicas, &[vec![-1]]).is_err());
        assert!(check(GroupMode::FlattenedId, &[]).is_err());
        assert!(check(GroupMode::CrossPartition, &[vec![0], vec![1]]).is_ok());
    }

    #[test]
    fn sizes_of_groups() {
        let size = |mode: GroupMode, groups: &[Vec<i64>]| mode.group_size(THREE_BY_TWO, groups);
        assert_eq!(size(GroupMode::CrossReplica, &[]), Some(3));
        assert_eq!(size(GroupMode::CrossReplicaAndPartition, &[]), Some(6));
        assert_eq!(
            size(GroupMode::CrossReplicaAndPartition, &[vec![0], vec![1]]),
            Some(2)
        );
        assert_eq!(size(GroupMode::FlattenedId, &[vec![0], vec![1, 2]]), None);
    }

    #[test]
    fn iotas_are_spread() {
        let groups = expand_iota(&[2, 4], &[4, 2], &[1, 0]).unwrap();
        assert_eq!(groups, [vec![0, 2, 4, 6], vec![1, 3, 5, 7]]);
        let groups = expand_iota(&[4, 2], &[2, 2, 2], &[1, 0, 2]).unwrap();
        assert_eq!(groups, [vec![0, 1], vec![4, 5], vec![2, 3], vec![6, 7]]);
        assert_eq!(expand_iota(&[1, 3], &[3], &[]).unwrap(), [vec![0, 1, 2]]);
        assert_eq!(expand_iota(&[2, 4], &[4, 2], &[1, 1]), None);
        assert_eq!(expand_iota(&[2, 3], &[4, 2], &[]), None);
        assert_eq!(
            expand_iota(&[1 << 40, 1 << 40], &[1 << 40, 1 << 40], &[]),
            None
        );
        assert_eq!(expand_iota(&[0, 4], &[0], &[]), None);
    }

    #[test]
    fn groups_along_axes_of_a_mesh() {
        let whole = |axis| MeshAxis { axis, part: None };
        let groups = expand_mesh(&[2, 4], &[], &[whole(1)]).unwrap();
        assert_eq!(groups, [vec![0, 1, 2, 3], vec![4, 5, 6, 7]]);
        let groups = expand_mesh(&[2, 4], &[], &[whole(0)]).unwrap();
        assert_eq!(groups, [vec![0, 4], vec![1, 5], vec![2, 6], vec![3, 7]]);
        let groups = expand_mesh(&[2, 2], &[3, 2, 1, 0], &[whole(1), whole(0)]).unwrap();
        assert_eq!(groups, [vec![3, 1, 2, 0]]);
        // An axis of 8 as 2 x 2 x 2, along the middle.
        let part = |axis, part| MeshAxis {
            axis,
            part: Some(part),
        };
        let groups = expand_mesh(&[8], &[], &[part(0, (2, 2))]).unwrap();
        assert_eq!(groups, [vec![0, 2], vec![1, 3], vec![4, 6], vec![5, 7]]);
        assert_eq!(
            expand_mesh(&[1, 2], &[], &[whole(0), whole(1)]).unwrap(),
            [vec![0, 1]]
        );
        assert_eq!(expand_mesh(&[2], &[], &[]).unwrap(), [vec![0], vec![1]]);
        assert_eq!(expand_mesh(&[6], &[], &[part(0, (2, 2))]), None);
        assert_eq!(expand_mesh(&[4], &[], &[part(0, (2, 4))]), None);
        assert_eq!(expand_mesh(&[4], &[], &[whole(0), part(0, (2, 2))]), None);
        assert_eq!(expand_mesh(&[4], &[0, 1], &[whole(0)]), None);
        assert_eq!(expand_mesh(&[4], &[], &[whole(1)]), None);
        assert_eq!(expand_mesh(&[1 << 40, 1 << 40], &[], &[whole(0)]), None);
    }
}
