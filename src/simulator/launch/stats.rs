//! What a launch counts, and what a device would need for it at the least.

use std::collections::BTreeMap;

use crate::simulator::launch::Occupancy;
use crate::target::GpuSpec;

/// How often, by warps and by lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Executions by a warp, or a part of one.
    pub warps: u64,
    /// Lanes of them.
    pub lanes: u64,
}

/// The counts of one launch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Instructions by class: `integer`, `float`, `double`, `half`, `convert`, `move`, `special`,
    /// `control`, `global`, `shared`, `local`, `constant`, `atomic`, `shuffle`, `barrier`,
    /// `tensor`, `async`.
    pub classes: BTreeMap<&'static str, Count>,
    /// All instructions.
    pub instructions: Count,
    /// 32-byte sectors of global memory read.
    pub sectors_read: u64,
    /// 32-byte sectors of global memory written.
    pub sectors_written: u64,
    /// Bytes of global memory that lanes asked to read.
    pub bytes_read: u64,
    /// Bytes of global memory that lanes asked to write.
    pub bytes_written: u64,
    /// Shared-memory accesses of warps.
    pub shared_accesses: u64,
    /// Extra passes over shared memory because of bank conflicts.
    pub bank_conflicts: u64,
    /// Floating-point operations of tensor instructions.
    pub tensor_flops: u64,
    /// Floating-point operations of f32 and f16 instructions, a fused one counted twice.
    pub flops: u64,
    /// Floating-point operations of f64 instructions.
    pub double_flops: u64,
    /// Atomic operations, by lanes.
    pub atomics: u64,
    /// Branches that split a warp.
    pub divergent_branches: u64,
    /// Barriers that warps came to.
    pub barriers: u64,
    /// Blocks run.
    pub blocks: u64,
    /// Threads run.
    pub threads: u64,
    /// How many blocks fit a multiprocessor, and why.
    pub occupancy: Occupancy,
    /// The least time on the device.
    pub roofline: Roofline,
}

/// The least time a launch needs on a device, by resource, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Roofline {
    /// Global traffic over the memory's bandwidth.
    pub memory: f64,
    /// f32 and integer lanes over the multiprocessors' units.
    pub arithmetic: f64,
    /// f64 operations over their units.
    pub double: f64,
    /// Tensor operations over the tensor cores' dense f16 rate.
    pub tensor: f64,
    /// Warp instructions over the issue slots.
    pub issue: f64,
    /// Shared-memory passes over its ports.
    pub shared: f64,
}

impl Roofline {
    /// The longest of all, and its resource.
    pub fn bound(&self) -> (&'static str, f64) {
        let all = [
            ("memory", self.memory),
            ("arithmetic", self.arithmetic),
            ("double", self.double),
            ("tensor", self.tensor),
            ("issue", self.issue),
            ("shared", self.shared),
        ];
        let mut most = ("memory", self.memory);
        for (name, seconds) in all {
            if seconds > most.1 {
                most = (name, seconds);
            }
        }
        most
    }
}

/// Classes whose lanes go through the f32 and integer units.
const ARITHMETIC: [&str; 5] = ["integer", "float", "half", "convert", "move"];

impl Stats {
    /// Adds another part of the same launch.
    pub fn add(&mut self, other: &Stats) {
        for (class, count) in &other.classes {
            let mine = self.classes.entry(class).or_default();
            mine.warps += count.warps;
            mine.lanes += count.lanes;
        }
        self.instructions.warps += other.instructions.warps;
        self.instructions.lanes += other.instructions.lanes;
        self.sectors_read += other.sectors_read;
        self.sectors_written += other.sectors_written;
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
        self.shared_accesses += other.shared_accesses;
        self.bank_conflicts += other.bank_conflicts;
        self.tensor_flops += other.tensor_flops;
        self.flops += other.flops;
        self.double_flops += other.double_flops;
        self.atomics += other.atomics;
        self.divergent_branches += other.divergent_branches;
        self.barriers += other.barriers;
        self.blocks += other.blocks;
        self.threads += other.threads;
    }

    /// Estimates the least time on `spec`.
    pub fn estimate(&mut self, spec: &GpuSpec) {
        let clock = spec.clock_ghz * 1e9;
        let cores = f64::from(spec.cores.max(1));
        let units = f64::from(spec.fpus_per_core.max(1));
        let per = |amount: f64, rate: f64| if rate > 0.0 { amount / rate } else { 0.0 };
        let sectors = (self.sectors_read + self.sectors_written) as f64;
        let lanes: u64 = ARITHMETIC
            .iter()
            .filter_map(|class| self.classes.get(class))
            .map(|count| count.warps * 32)
            .sum();
        // Multiplications and additions a cycle of one multiprocessor's tensor cores, f16, dense.
        let tensor_rate = match spec.capability.major {
            0..=6 => 2.0 * units,
            7 => 1024.0,
            8 if spec.capability.minor == 0 => 2048.0,
            8 => 1024.0,
            9 => 4096.0,
            10 | 11 => 8192.0,
            _ => 1024.0,
        };
        // Data-centre parts have one f64 unit for two f32 units, the others one for 64.
        let fast_double = matches!((spec.capability.major, spec.capability.minor), (6..=10, 0));
        let double_units = if fast_double {
            units / 2.0
        } else {
            units / 64.0
        };
        self.roofline = Roofline {
            memory: per(sectors * 32.0, spec.bandwidth),
            arithmetic: per(lanes as f64, cores * units * clock),
            double: per(self.double_flops as f64, 2.0 * cores * double_units * clock),
            tensor: per(self.tensor_flops as f64, cores * tensor_rate * clock),
            issue: per(self.instructions.warps as f64, cores * 4.0 * clock),
            shared: per(
                (self.shared_accesses + self.bank_conflicts) as f64,
                cores * clock,
            ),
        };
    }
}
