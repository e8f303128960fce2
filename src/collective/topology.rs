//! How many copies of a program run together, and how they are numbered.

use std::fmt;

/// The most devices that one process runs a program on.
pub const MOST_DEVICES: usize = 4096;

/// Replicas and partitions. Device `replica * partitions + partition` runs that partition of that
/// replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Copies of the whole program, each on data of its own.
    pub replicas: u32,
    /// Parts of each copy.
    pub partitions: u32,
}

impl Topology {
    /// A program that runs alone.
    pub const ONE: Self = Self {
        replicas: 1,
        partitions: 1,
    };

    /// Of counts that may be absent (0) or wild.
    ///
    /// # Errors
    /// A sentence, when there are more devices than one process runs.
    pub fn new(replicas: i64, partitions: i64) -> Result<Self, String> {
        let count = |n: i64| u32::try_from(n.max(1)).unwrap_or(u32::MAX);
        let found = Self {
            replicas: count(replicas),
            partitions: count(partitions),
        };
        let devices = u64::from(found.replicas) * u64::from(found.partitions);
        if devices > MOST_DEVICES as u64 {
            return Err(format!(
                "{found} are {devices} devices, and a process runs at most {MOST_DEVICES}"
            ));
        }
        Ok(found)
    }

    /// How many devices there are.
    pub fn devices(self) -> usize {
        self.replicas as usize * self.partitions as usize
    }

    /// The number of a device.
    pub fn device(self, replica: u32, partition: u32) -> usize {
        replica as usize * self.partitions as usize + partition as usize
    }

    /// The replica that a device runs.
    pub fn replica_of(self, device: usize) -> u32 {
        (device / self.partitions as usize) as u32
    }

    /// The partition that a device runs.
    pub fn partition_of(self, device: usize) -> u32 {
        (device % self.partitions as usize) as u32
    }

    /// A device in words.
    pub fn name_of(self, device: usize) -> String {
        let (replica, partition) = (self.replica_of(device), self.partition_of(device));
        format!("device {device} (replica {replica}, partition {partition})")
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |n: u32| if n == 1 { "" } else { "s" };
        let (replicas, partitions) = (self.replicas, self.partitions);
        write!(
            f,
            "{replicas} replica{} of {partitions} partition{}",
            plural(replicas),
            plural(partitions)
        )
    }
}
