//! What a host thread carries along, and what it finds.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use crate::simulator::code::Function;
use crate::simulator::code::Module;
use crate::simulator::code::Work;
use crate::simulator::launch::Launch;
use crate::simulator::launch::Options;
use crate::simulator::launch::Report;
use crate::simulator::launch::ReportKind;
use crate::simulator::launch::Stats;
use crate::simulator::launch::Where;
use crate::simulator::memory::Snapshot;
use crate::simulator::warp::engine::Touched;
use crate::simulator::warp::shadow::GlobalShadow;

/// What ends a launch.
pub type Fault = Box<Report>;

/// A launch as every host thread sees it.
pub struct Grid<'a> {
    /// The code.
    pub module: &'a Module,
    /// The kernel.
    pub function: &'a Function,
    /// Shape and arguments.
    pub launch: &'a Launch,
    /// What to check.
    pub options: &'a Options,
    /// The allocations.
    pub snapshot: Snapshot,
    /// Host address of the parameters.
    pub params: u64,
    /// Multiprocessors of the device.
    pub cores: u32,
    /// Races in global memory.
    pub shadow: Option<GlobalShadow>,
    /// Set when a fault has happened anywhere.
    pub stop: AtomicBool,
    /// Counts what orders accesses.
    pub time: AtomicU64,
    /// A number of the launch.
    pub id: u64,
    /// Whether clocks have parts for engines.
    pub engines: bool,
    /// Most clusters that one host thread has begun and not ended.
    pub most_open: usize,
    /// Registers of every instruction, when products are watched.
    pub touched: &'a [Touched],
}

impl Grid<'_> {
    /// Clusters in each direction.
    pub fn clusters(&self) -> [u32; 3] {
        std::array::from_fn(|i| self.launch.grid[i] / self.launch.cluster[i].max(1))
    }
    /// The coordinates of a block by its number.
    pub fn block_at(&self, number: u64) -> [u32; 3] {
        let [x, y, _] = self.launch.grid.map(|n| u64::from(n).max(1));
        [
            (number % x) as u32,
            (number / x % y) as u32,
            (number / x / y) as u32,
        ]
    }
    /// The coordinates of a thread by its number within the block.
    pub fn thread_at(&self, number: u32) -> [u32; 3] {
        let [x, y, _] = self.launch.block.map(|n| n.max(1));
        [number % x, number / x % y, number / x / y]
    }
}

/// A remembered allocation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// Its first address.
    pub base: u64,
    /// The address after its last.
    pub end: u64,
    /// Its place in the snapshot.
    pub index: usize,
    /// Whether it may be written.
    pub writable: bool,
    /// Whether it is tracked which bytes were written.
    pub tracked: bool,
}

/// Allocations remembered, by instruction.
const KNOWN: usize = 16;

/// One host thread of a launch.
pub struct Worker<'a> {
    /// The launch.
    pub grid: &'a Grid<'a>,
    /// Executions of each instruction: by warps, and by lanes.
    pub counts: Vec<[u64; 2]>,
    /// Counts that are not by instruction.
    pub stats: Stats,
    /// Whether to count.
    pub counting: bool,
    /// Whether the processor has the vector instructions of wide forms.
    pub wide: bool,
    /// What was found, with the number of the block.
    pub reports: Vec<(u64, Report)>,
    /// How many more.
    pub suppressed: u64,
    /// What the blocks printed, with their numbers.
    pub printed: Vec<(u64, Vec<u8>)>,
    /// How many bytes of it.
    pub printed_bytes: usize,
    /// Findings of the present instruction that are none when it changes nothing.
    pub overwrites: Vec<Overwrite>,
    known: [Known; KNOWN],
}

/// Two warps wrote the same bytes of memory, and nothing orders them. It does no harm when
/// they wrote the same.
pub struct Overwrite {
    /// What to report.
    pub report: Report,
    /// The host address of the bytes.
    pub host: u64,
    /// What the first of the two wrote.
    pub old: Vec<u8>,
}

impl<'a> Worker<'a> {
    /// A worker that has found nothing.
    pub fn new(grid: &'a Grid<'a>) -> Self {
        let counting = grid.options.stats;
        Self {
            counts: vec![[0; 2]; if counting { grid.module.code.len() } else { 0 }],
            stats: Stats::default(),
            counting,
            wide: crate::simulator::warp::lanes::has_wide(),
            reports: Vec::new(),
            suppressed: 0,
            printed: Vec::new(),
            printed_bytes: 0,
            overwrites: Vec::new(),
            known: [Known::default(); KNOWN],
            grid,
        }
    }

    /// The allocation that holds all of those bytes.
    #[inline(always)]
    pub fn known(&mut self, pc: u32, address: u64, length: u64) -> Option<Known> {
        let place = &mut self.known[pc as usize % KNOWN];
        if address >= place.base && length <= place.end - address.min(place.end) && place.end != 0 {
            return Some(*place);
        }
        let index = self.grid.snapshot.position(address, length)?;
        let allocation = self.grid.snapshot.get(index)?;
        *place = Known {
            base: allocation.base(),
            end: allocation.end(),
            index,
            writable: allocation.kind().is_writable(),
            tracked: allocation.kind().is_tracked(),
        };
        Some(*place)
    }

    /// What lies at an address that is none of a window.
    pub fn whereabouts(&self, address: u64) -> Option<Where> {
        let near = self.grid.snapshot.near(address)?;
        let offset = address - near.base();
        // Too far away to be what was meant.
        if offset > near.length() + (1 << 30) {
            return None;
        }
        Some(Where {
            label: near.label().to_owned(),
            offset,
            length: near.length(),
        })
    }

    /// Notes a finding that does not end the launch. One of a kind for each line and block is
    /// kept, the rest is counted.
    pub fn note(&mut self, block: u64, report: Report) {
        let same = |(_, r): &&(u64, Report)| r.kind == report.kind && r.line == report.line;
        let alike = self.reports.iter().filter(same).count();
        if self.reports.len() >= self.grid.options.max_reports.max(1) || alike >= 4 {
            self.suppressed += 1;
        } else {
            self.reports.push((block, report));
        }
    }

    /// Whether another thread's fault has ended the launch.
    pub fn is_stopped(&self) -> bool {
        self.grid.stop.load(Ordering::Relaxed)
    }

    /// The counts by class.
    pub fn finish(&mut self) {
        for (inst, [warps, lanes]) in self.grid.module.code.iter().zip(&self.counts) {
            if *warps == 0 {
                continue;
            }
            let count = self.stats.classes.entry(inst.work.name()).or_default();
            count.warps += warps;
            count.lanes += lanes;
            self.stats.instructions.warps += warps;
            self.stats.instructions.lanes += lanes;
            let flops = u64::from(inst.flops);
            match inst.work {
                // The whole warp makes it, or nobody.
                Work::Tensor => self.stats.tensor_flops += flops * lanes / 32,
                Work::Double => self.stats.double_flops += flops * lanes,
                Work::Atomic => self.stats.atomics += lanes,
                Work::Barrier => self.stats.barriers += warps,
                _ => self.stats.flops += flops * lanes,
            }
        }
    }

    /// A report about a launch as a whole.
    pub fn launch_report(grid: &Grid<'_>, kind: ReportKind, message: String) -> Report {
        Report {
            message,
            kernel: grid.function.name.clone(),
            ..Report::new(kind)
        }
    }
}
