//! Running a grid.
#![allow(
    clippy::needless_range_loop,
    reason = "a lane is a number in several tables"
)]

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use crate::simulator::launch::Entry;
use crate::simulator::launch::Launch;
use crate::simulator::launch::LoadedModule;
use crate::simulator::launch::Options;
use crate::simulator::launch::Outcome;
use crate::simulator::launch::Report;
use crate::simulator::launch::ReportKind;
use crate::simulator::launch::Stats;
use crate::simulator::memory::Clock;
use crate::simulator::memory::Kind;
use crate::simulator::memory::Shared;
use crate::simulator::memory::raw;
use crate::simulator::memory::raw::Zeroed;
use crate::simulator::warp::barrier::run_cluster;
use crate::simulator::warp::engine::Engines;
use crate::simulator::warp::engine::has_engine;
use crate::simulator::warp::lanes::File;
use crate::simulator::warp::order;
use crate::simulator::warp::shadow::GlobalShadow;
use crate::simulator::warp::state::BARRIERS;
use crate::simulator::warp::state::Block;
use crate::simulator::warp::state::BlockBarrier;
use crate::simulator::warp::state::Cluster;
use crate::simulator::warp::state::ClusterBarrier;
use crate::simulator::warp::state::Fragment;
use crate::simulator::warp::state::Wait;
use crate::simulator::warp::state::Warp;
use crate::simulator::warp::worker::Fault;
use crate::simulator::warp::worker::Grid;
use crate::simulator::warp::worker::Worker;

/// Instructions of a cluster before another one may begin beside it.
const SLICE: u64 = 4_000_000;

/// Numbers launches.
static LAUNCHES: AtomicU64 = AtomicU64::new(1);

/// What is wrong with the shape of a launch, if anything is.
fn refuse(module: &LoadedModule, entry: &Entry, launch: &Launch) -> Option<String> {
    let spec = &module.spec;
    let product = |v: [u32; 3]| v.iter().map(|n| u64::from(*n)).product::<u64>();
    let threads = product(launch.block);
    let [gx, gy, gz] = launch.grid;
    if threads == 0 || product(launch.grid) == 0 || product(launch.cluster) == 0 {
        return Some("the grid, the block or the cluster is empty".to_owned());
    }
    if gx > i32::MAX as u32 || gy > 65_535 || gz > 65_535 {
        return Some(format!("a grid of {gx} x {gy} x {gz} blocks"));
    }
    let [bx, by, bz] = launch.block;
    if bx > 1024 || by > 1024 || bz > 64 || threads > u64::from(spec.threads_per_block) {
        return Some(format!("a block of {bx} x {by} x {bz} threads"));
    }
    if let Some(required) = entry.required_block
        && required != launch.block
    {
        return Some(format!(
            "asked for a block of {bx} x {by} x {bz} threads, the kernel requires {} x {} x {}",
            required[0], required[1], required[2]
        ));
    }
    if threads > u64::from(entry.max_threads) {
        return Some(format!(
            "a block of {threads} threads, the kernel allows {}",
            entry.max_threads
        ));
    }
    let whole = (0..3).all(|i| launch.grid[i].is_multiple_of(launch.cluster[i]));
    if !whole || product(launch.cluster) > 16 {
        return Some(format!(
            "clusters of {:?} blocks in a grid of {:?}",
            launch.cluster, launch.grid
        ));
    }
    if let Some(required) = entry.cluster
        && required != launch.cluster
    {
        return Some(format!(
            "clusters of {:?} blocks, the kernel requires {required:?}",
            launch.cluster
        ));
    }
    let function = &module.code.functions[entry.number];
    let shared = u64::from(function.dynamic_shared_at.max(function.static_shared))
        + u64::from(launch.dynamic_shared);
    let most = spec.shared_per_block_optin.0.max(spec.shared_per_block.0);
    if shared > most {
        return Some(format!(
            "{shared} bytes of shared memory, a block can have {most}"
        ));
    }
    if (launch.params.len() as u64) < u64::from(entry.param_bytes) {
        return Some(format!(
            "{} bytes of parameters, the kernel takes {}",
            launch.params.len(),
            entry.param_bytes
        ));
    }
    None
}

fn failed(entry: &Entry, kind: ReportKind, message: String) -> Outcome {
    Outcome {
        fault: Some(Report {
            message,
            kernel: entry.name.clone(),
            ..Report::new(kind)
        }),
        ..Outcome::default()
    }
}

/// Takes the parameters' allocation out of the space at the end.
struct Params<'a> {
    module: &'a LoadedModule,
    base: u64,
}

impl Drop for Params<'_> {
    fn drop(&mut self) {
        self.module.space.remove(self.base);
    }
}

/// Most clusters that one host thread has begun and not ended: as many as the device runs at once.
/// Blocks of a cooperative launch wait for each other, so they must all have begun.
fn most_open(module: &LoadedModule, entry: &Entry, launch: &Launch) -> usize {
    if launch.cooperative {
        return usize::MAX;
    }
    let threads: u32 = launch.block.iter().product();
    let occupancy = module.occupancy(entry, threads, launch.dynamic_shared);
    let blocks = occupancy.blocks.max(1) as usize * module.spec.cores.max(1) as usize;
    blocks.div_ceil(launch.cluster.iter().product::<u32>().max(1) as usize)
}

/// Runs a grid of `entry`, a kernel of `module`, to its end.
pub fn launch(module: &LoadedModule, entry: &Entry, launch: &Launch, options: &Options) -> Outcome {
    let known = module.code.functions.get(entry.number);
    let Some(function) = known.filter(|f| f.is_entry && f.name == entry.name) else {
        let message = "the kernel is not of this module".to_owned();
        return failed(entry, ReportKind::BadLaunch, message);
    };
    if let Some(message) = refuse(module, entry, launch) {
        return failed(entry, ReportKind::BadLaunch, message);
    }
    let size = launch.params.len().max(8) as u64;
    let label = format!("parameters of {}", entry.name);
    let params = match module.space.allocate(size, 64, Kind::Param, label) {
        Ok(params) => params,
        Err(error) => return failed(entry, ReportKind::BadLaunch, error.message.clone()),
    };
    raw::write(params.base(), &launch.params);
    let _gone = Params {
        module,
        base: params.base(),
    };
    let snapshot = module.space.snapshot();
    let clusters: [u32; 3] = std::array::from_fn(|i| launch.grid[i] / launch.cluster[i]);
    let blocks: u64 = launch.grid.iter().map(|n| u64::from(*n)).product();
    let count: u64 = clusters.iter().map(|n| u64::from(*n)).product();
    let threads: u32 = launch.block.iter().product();
    let shadow = if options.races && (blocks > 1 || threads > 32) {
        GlobalShadow::new(snapshot.len(), blocks)
    } else {
        None
    };
    let engines = options.races && module.code.code.iter().any(|inst| has_engine(&inst.op));
    let grid = Grid {
        module: &module.code,
        function,
        launch,
        options,
        snapshot,
        params: params.base(),
        cores: module.spec.cores,
        shadow,
        stop: AtomicBool::new(false),
        time: AtomicU64::new(1),
        id: LAUNCHES.fetch_add(1, Ordering::Relaxed),
        engines,
        most_open: most_open(module, entry, launch),
        touched: if engines { module.touched() } else { &[] },
    };
    let next = AtomicU64::new(0);
    let host = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = match options.threads {
        0 => host,
        threads => threads,
    };
    let threads = threads
        .min(usize::try_from(count).unwrap_or(usize::MAX))
        .clamp(1, 256);
    let mut parts = Vec::new();
    if threads == 1 {
        parts.push(work(&grid, &next, count));
    } else {
        std::thread::scope(|scope| {
            let running: Vec<_> = (0..threads)
                .map(|_| scope.spawn(|| work(&grid, &next, count)))
                .collect();
            for thread in running {
                parts.push(thread.join().unwrap_or_else(|_| {
                    let message = "a host thread of the simulator broke".to_owned();
                    let report =
                        Worker::launch_report(&grid, ReportKind::IllegalInstruction, message);
                    Part {
                        fault: Some((0, report)),
                        ..Part::default()
                    }
                }));
            }
        });
    }
    gather(module, entry, launch, options, parts)
}

/// What one host thread brings back.
#[derive(Default)]
struct Part {
    fault: Option<(u64, Report)>,
    reports: Vec<(u64, Report)>,
    suppressed: u64,
    stats: Stats,
    printed: Vec<(u64, Vec<u8>)>,
}

/// Puts the parts together in the order of blocks.
fn gather(
    module: &LoadedModule,
    entry: &Entry,
    launch: &Launch,
    options: &Options,
    parts: Vec<Part>,
) -> Outcome {
    let mut outcome = Outcome::default();
    let mut stats = Stats::default();
    let (mut reports, mut printed, mut faults) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        faults.extend(part.fault);
        reports.extend(part.reports);
        printed.extend(part.printed);
        outcome.suppressed += part.suppressed;
        stats.add(&part.stats);
    }
    reports.sort_by_key(|(block, _)| *block);
    printed.sort_by_key(|(block, _)| *block);
    faults.sort_by_key(|(block, _)| *block);
    outcome.suppressed += reports.len().saturating_sub(options.max_reports) as u64;
    reports.truncate(options.max_reports);
    outcome.reports = reports.into_iter().map(|(_, report)| report).collect();
    outcome.printed = printed.into_iter().flat_map(|(_, text)| text).collect();
    outcome.fault = faults.into_iter().next().map(|(_, report)| report);
    if options.stats {
        let threads: u64 = launch.block.iter().map(|n| u64::from(*n)).product();
        stats.blocks = launch.grid.iter().map(|n| u64::from(*n)).product();
        stats.threads = threads * stats.blocks;
        stats.occupancy = module.occupancy(entry, threads as u32, launch.dynamic_shared);
        stats.estimate(&module.spec);
        outcome.stats = Some(stats);
    }
    outcome
}

/// One host thread: takes the next cluster until there is none. A cluster that does not end in its
/// slice may wait for one that has not begun, so the next one gets its turn beside it.
fn work(grid: &Grid<'_>, next: &AtomicU64, count: u64) -> Part {
    let mut worker = Worker::new(grid);
    let mut open: VecDeque<Cluster> = VecDeque::new();
    let mut fault: Option<(u64, Report)> = None;
    let mut spare: Vec<Warp> = Vec::new();
    loop {
        if worker.is_stopped() {
            break;
        }
        let wants_more = open.is_empty() || open.len() < grid.most_open;
        let number = if wants_more {
            next.fetch_add(1, Ordering::Relaxed)
        } else {
            count
        };
        let mut cluster = if number < count {
            match begin(grid, number, &mut spare) {
                Some(cluster) => cluster,
                None => {
                    let message = "the host has no memory for another block".to_owned();
                    let report = Worker::launch_report(grid, ReportKind::BadLaunch, message);
                    fault = Some((number, report));
                    grid.stop.store(true, Ordering::Relaxed);
                    break;
                }
            }
        } else {
            match open.pop_front() {
                Some(cluster) => cluster,
                None => break,
            }
        };
        let slice = if grid.launch.cooperative {
            SLICE / 40
        } else {
            SLICE
        };
        match run_cluster(&mut worker, &mut cluster, slice) {
            Ok(true) => retire(cluster, &mut spare),
            Ok(false) => open.push_back(cluster),
            Err(found) => {
                let found: Fault = found;
                fault = Some((cluster.number, *found));
                grid.stop.store(true, Ordering::Relaxed);
                break;
            }
        }
    }
    worker.finish();
    Part {
        fault,
        reports: std::mem::take(&mut worker.reports),
        suppressed: worker.suppressed,
        stats: std::mem::take(&mut worker.stats),
        printed: std::mem::take(&mut worker.printed),
    }
}

/// Keeps the register files of an ended cluster for the next one.
fn retire(cluster: Cluster, spare: &mut Vec<Warp>) {
    for block in cluster.blocks {
        spare.extend(block.warps.into_iter().flatten());
    }
    spare.truncate(64);
}

/// A fresh cluster.
fn begin(grid: &Grid<'_>, number: u64, spare: &mut Vec<Warp>) -> Option<Cluster> {
    let clusters = grid.clusters().map(u64::from);
    let id = [
        (number % clusters[0]) as u32,
        (number / clusters[0] % clusters[1]) as u32,
        (number / clusters[0] / clusters[1]) as u32,
    ];
    let [cx, cy, cz] = grid.launch.cluster;
    let threads: u32 = grid.launch.block.iter().product();
    let warps = threads.div_ceil(32);
    let total = (cx * cy * cz * warps) as usize;
    let mut blocks = Vec::new();
    for rank in 0..cx * cy * cz {
        let within = [rank % cx, rank / cx % cy, rank / cx / cy];
        let ctaid = std::array::from_fn(|i| id[i] * grid.launch.cluster[i] + within[i]);
        blocks.push(block(grid, ctaid, rank, warps, total, spare)?);
    }
    Some(Cluster {
        number,
        id,
        mates: blocks.iter().map(|block| block.number).collect(),
        blocks,
        barrier: ClusterBarrier {
            arrived: vec![0; total],
            passed: vec![0; total],
            ..ClusterBarrier::default()
        },
        transfers: Vec::new(),
        releases: std::collections::BTreeMap::new(),
        warps_per_block: warps as usize,
        progress: 0,
    })
}

fn block(
    grid: &Grid<'_>,
    ctaid: [u32; 3],
    rank: u32,
    warps: u32,
    total: usize,
    spare: &mut Vec<Warp>,
) -> Option<Block> {
    let function = grid.function;
    let [gx, gy, _] = grid.launch.grid.map(u64::from);
    let [x, y, z] = ctaid.map(u64::from);
    let own = if grid.launch.dynamic_shared > 0 {
        function.dynamic_shared_at
    } else {
        function.static_shared
    };
    let shared = own + grid.launch.dynamic_shared;
    let options = grid.options;
    let races = options.races && (total > 1 || grid.engines);
    let local_bytes = function.local.next_multiple_of(16);
    let local = u64::from(local_bytes) * u64::from(warps) * 32;
    let mut list = Vec::with_capacity(warps as usize);
    for id in 0..warps {
        let me = rank as usize * warps as usize + id as usize;
        list.push(Some(warp(grid, id, me, total, spare)?));
    }
    Some(Block {
        ctaid,
        number: x + gx * (y + gy * z),
        rank,
        shared: Shared::new(shared, options.uninitialized, races)?,
        local: Zeroed::new(local.max(16), 16)?,
        local_bytes,
        warps: list,
        barriers: vec![BlockBarrier::default(); BARRIERS],
        tensor: None,
        released: 0,
        acquired: 0,
    })
}

fn warp(grid: &Grid<'_>, id: u32, me: usize, total: usize, spare: &mut Vec<Warp>) -> Option<Warp> {
    let threads: u32 = grid.launch.block.iter().product();
    let first = id * 32;
    let lanes = (threads - first).min(32);
    let live = if lanes == 32 {
        u32::MAX
    } else {
        (1 << lanes) - 1
    };
    let mut tid = [[0; 32]; 3];
    let [bx, by, _] = grid.launch.block;
    let [mut x, mut y, mut z] = grid.thread_at(first);
    for lane in 0..lanes as usize {
        (tid[0][lane], tid[1][lane], tid[2][lane]) = (x, y, z);
        x += 1;
        if x == bx {
            (x, y) = (0, y + 1);
        }
        if y == by {
            (y, z) = (0, z + 1);
        }
    }
    let file = match spare.pop() {
        Some(warp) => warp.file,
        None => File::new(grid.function.register_bytes, &grid.module.constants)?,
    };
    // Each warp has seen itself begin.
    let mut clock = Clock::default();
    if grid.options.races {
        clock = Clock::new(total, grid.engines);
        order::tick(grid, &mut clock, me);
    }
    Some(Warp {
        file,
        fragments: vec![Fragment {
            pc: grid.function.start,
            mask: live,
            wait: Wait::Ready,
            depth: 0,
            penalty: 0,
            go: false,
            frame: None,
            local: 0,
        }],
        live,
        id,
        tid,
        stack: [grid.function.local; 32],
        executed: 0,
        clock,
        copies: Vec::new(),
        copy_group: [0; 32],
        bulk_group: [0; 32],
        engines: Engines::default(),
        yielded: false,
    })
}
