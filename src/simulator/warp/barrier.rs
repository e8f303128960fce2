//! Barriers of blocks and clusters, and the order in which warps have their turn.

use crate::simulator::code::Barrier;
use crate::simulator::code::BarrierKind;
use crate::simulator::code::Op;
use crate::simulator::launch::ReportKind;
use crate::simulator::warp::exec::Exec;
use crate::simulator::warp::exec::Flow;
use crate::simulator::warp::order;
use crate::simulator::warp::state::BARRIERS;
use crate::simulator::warp::state::BlockBarrier;
use crate::simulator::warp::state::Cluster;
use crate::simulator::warp::state::Fragment;
use crate::simulator::warp::state::Wait;
use crate::simulator::warp::transfer;
use crate::simulator::warp::worker::Fault;
use crate::simulator::warp::worker::Worker;

impl Exec<'_, '_> {
    /// Reports that a part of a warp came alone to what all of it executes together.
    pub fn note_divergent(&mut self, what: &str) {
        if self.mask != self.warp.live {
            let missing = self.warp.live & !self.mask;
            let message = format!("{what} without lanes {missing:#x} of the warp");
            self.note(self.report(ReportKind::DivergentBarrier, self.first_lane(), message));
        }
    }

    /// `barrier.cta`
    pub fn barrier(&mut self, b: &Barrier) -> Result<Flow, Fault> {
        if b.aligned {
            if let Some(flow) = self.gather_warp() {
                return Ok(flow);
            }
            self.note_divergent("barrier");
        }
        self.part();
        let lane = self.first_lane();
        let id = self.warp.file.read::<u32>(b.id)[lane];
        let count = if b.count.is_some() {
            self.warp.file.read::<u32>(b.count)[lane]
        } else {
            0
        };
        let threads = self.cluster.warps_per_block as u32 * 32;
        if id as usize >= BARRIERS || count % 32 != 0 || count > threads {
            let message = format!("barrier {id} for {count} threads of {threads}");
            return Err(Box::new(self.report(
                ReportKind::IllegalInstruction,
                lane,
                message,
            )));
        }
        let warps = self.cluster.warps_per_block;
        let live = self.warp.live;
        self.settle_clock();
        let predicate = if b.p.is_some() {
            let p = self.warp.file.predicate(b.p);
            (if b.negated { !p } else { p }) & self.mask
        } else {
            0
        };
        let barrier = &mut self.cluster.blocks[self.block].barriers[id as usize];
        if !barrier.used {
            *barrier = BlockBarrier {
                arrived: vec![0; warps],
                expected: count,
                used: true,
                all: true,
                ..BlockBarrier::default()
            };
        }
        let differs = barrier.expected != count;
        let expected = barrier.expected;
        let before = barrier.arrived[self.warp.id as usize];
        barrier.arrived[self.warp.id as usize] |= self.mask;
        barrier.clock.join(&self.warp.clock);
        barrier.count += predicate.count_ones();
        barrier.all &= predicate == self.mask;
        barrier.any |= predicate != 0;
        self.cluster.progress += 1;
        self.tick();
        if differs {
            let message = format!("barrier {id} is waited at for {count} and {expected} threads");
            self.note(self.report(ReportKind::DivergentBarrier, lane, message));
        } else if before & self.mask & live != 0 {
            let message = format!("a warp comes to barrier {id} twice before it is complete");
            self.note(self.report(ReportKind::DivergentBarrier, lane, message));
        }
        if b.kind == BarrierKind::Arrive {
            // Others have their turn first, so that a barrier that is complete begins anew before
            // the warp comes again.
            return Ok(Flow::Yield);
        }
        self.cur.wait = Wait::Barrier(id);
        Ok(Flow::Choose)
    }

    /// `barrier.cluster.arrive`
    pub fn cluster_arrive(&mut self) -> Result<Flow, Fault> {
        let me = self.warp_number();
        self.settle_clock();
        let barrier = &mut self.cluster.barrier;
        barrier.arrived[me] |= self.mask;
        barrier.clock.join(&self.warp.clock);
        self.tick();
        Ok(Flow::Next)
    }

    /// `barrier.cluster.wait`
    pub fn cluster_wait(&mut self) -> Result<Flow, Fault> {
        self.part();
        self.cur.wait = Wait::Cluster;
        Ok(Flow::Choose)
    }
}

/// Whether everybody came to a barrier of a block.
fn is_complete(barrier: &BlockBarrier, live: &[u32]) -> bool {
    if barrier.expected == 0 {
        return barrier
            .arrived
            .iter()
            .zip(live)
            .all(|(came, live)| live & !came == 0);
    }
    let mut threads = 0;
    for (came, live) in barrier.arrived.iter().zip(live) {
        // A whole warp counts in full, though some of its lanes may not exist or have ended.
        threads += match came {
            0 => 0,
            came if live & !came == 0 => 32,
            came => came.count_ones(),
        };
    }
    threads >= barrier.expected
}

/// Lets the warps of a block go whose barrier is complete.
fn settle_block(worker: &Worker<'_>, cluster: &mut Cluster, rank: usize) {
    let block = &mut cluster.blocks[rank];
    if !block.barriers.iter().any(|b| b.used) {
        return;
    }
    let live: Vec<u32> = block
        .warps
        .iter()
        .map(|w| w.as_ref().map_or(0, |w| w.live))
        .collect();
    for id in 0..BARRIERS {
        if !block.barriers[id].used || !is_complete(&block.barriers[id], &live) {
            continue;
        }
        let barrier = std::mem::take(&mut block.barriers[id]);
        for warp in block.warps.iter_mut().flatten() {
            let waits = |f: &Fragment| f.wait == Wait::Barrier(id as u32);
            if !warp.fragments.iter().any(waits) {
                continue;
            }
            warp.clock.join(&barrier.clock);
            for fragment in &mut warp.fragments {
                if fragment.wait != Wait::Barrier(id as u32) {
                    continue;
                }
                let inst = &worker.grid.module.code[fragment.pc as usize];
                if let Op::Barrier(b) = &inst.op {
                    let bits = |on: bool| if on { u32::MAX } else { 0 };
                    match b.kind {
                        BarrierKind::Popc => {
                            warp.file
                                .write::<u32>(b.d, fragment.mask, &[barrier.count; 32]);
                        }
                        BarrierKind::And => {
                            warp.file
                                .set_predicate(b.d, fragment.mask, bits(barrier.all));
                        }
                        BarrierKind::Or => {
                            warp.file
                                .set_predicate(b.d, fragment.mask, bits(barrier.any));
                        }
                        BarrierKind::Sync | BarrierKind::Arrive => {}
                    }
                }
                fragment.wait = Wait::Ready;
                fragment.go = false;
                fragment.pc += 1;
            }
        }
    }
}

/// Lets warps go whose cluster barrier is complete.
fn settle_cluster(worker: &Worker<'_>, cluster: &mut Cluster) {
    let per_block = cluster.warps_per_block;
    let barrier = &mut cluster.barrier;
    if barrier.arrived.iter().any(|came| *came != 0) {
        let mut complete = true;
        for (rank, block) in cluster.blocks.iter().enumerate() {
            for warp in block.warps.iter().flatten() {
                let came = barrier.arrived[rank * per_block + warp.id as usize];
                complete &= warp.live & !came == 0;
            }
        }
        if complete {
            for (passed, came) in barrier.passed.iter_mut().zip(&mut barrier.arrived) {
                *passed |= std::mem::take(came);
            }
            barrier.seen = std::mem::take(&mut barrier.clock);
        }
    }
    for (rank, block) in cluster.blocks.iter_mut().enumerate() {
        for warp in block.warps.iter_mut().flatten() {
            let me = rank * per_block + warp.id as usize;
            let passed = &mut barrier.passed[me];
            for fragment in &mut warp.fragments {
                if fragment.wait == Wait::Cluster && fragment.mask & !*passed == 0 {
                    *passed &= !fragment.mask;
                    fragment.wait = Wait::Ready;
                    fragment.pc += 1;
                    warp.clock.join(&barrier.seen);
                    order::tick(worker.grid, &mut warp.clock, me);
                }
            }
        }
    }
}

/// Rounds in which every warp only asks whether a barrier object's phase is over, and none gets on,
/// before that counts as a deadlock.
const IDLE_ROUNDS: u32 = 1000;

/// Runs a warp of a cluster; says how many instructions, and whether it only waits.
fn turn(
    worker: &mut Worker<'_>,
    cluster: &mut Cluster,
    block: usize,
    index: usize,
) -> Result<(u64, bool), Fault> {
    let Some(mut warp) = cluster.blocks[block].warps[index].take() else {
        return Ok((0, false));
    };
    let idle = Fragment {
        pc: 0,
        mask: 0,
        wait: Wait::Ready,
        depth: 0,
        penalty: 0,
        go: false,
        frame: None,
        local: 0,
    };
    let mut exec = Exec {
        worker,
        cluster,
        warp: &mut warp,
        block,
        cur: idle,
        mask: 0,
    };
    let result = exec.run();
    if warp.is_done() {
        warp.fragments.clear();
    }
    let waits = warp.yielded && !warp.is_done();
    cluster.blocks[block].warps[index] = Some(warp);
    Ok((result?, waits))
}

/// Runs a cluster for about `slice` instructions of warps; says whether it has ended.
///
/// # Errors
/// With what ends the launch.
pub fn run_cluster(
    worker: &mut Worker<'_>,
    cluster: &mut Cluster,
    slice: u64,
) -> Result<bool, Fault> {
    let mut spent = 0;
    let mut idle = 0;
    loop {
        let before = cluster.progress;
        let mut moved = false;
        let mut worked = false;
        for block in 0..cluster.blocks.len() {
            for index in 0..cluster.blocks[block].warps.len() {
                let wants = cluster.blocks[block].warps[index].as_ref();
                if !wants.is_some_and(|w| w.fragments.iter().any(|f| may_run(f.wait))) {
                    continue;
                }
                let (ran, waits) = turn(worker, cluster, block, index)?;
                spent += ran;
                moved |= ran > 0;
                worked |= ran > 0 && !waits;
            }
            settle_block(worker, cluster, block);
        }
        settle_cluster(worker, cluster);
        if cluster.is_done() {
            transfer::finish(worker, cluster)?;
            return Ok(true);
        }
        if worker.is_stopped() {
            return Ok(true);
        }
        let ready = |w: &crate::simulator::warp::state::Warp| w.has_ready();
        let anybody = cluster
            .blocks
            .iter()
            .any(|b| b.warps.iter().flatten().any(ready));
        if !moved && !anybody && !force(cluster) {
            return Err(stuck(worker, cluster));
        }
        let worked = worked || cluster.progress != before;
        idle = if worked { 0 } else { idle + 1 };
        if idle > IDLE_ROUNDS {
            return Err(stuck(worker, cluster));
        }
        if spent >= slice {
            return Ok(false);
        }
    }
}

fn may_run(wait: Wait) -> bool {
    matches!(wait, Wait::Ready | Wait::Members | Wait::Aligned)
}

/// When nobody can go on: lets the lowest fragment that waits for lanes of its own warp go without
/// them. The instruction will report it.
fn force(cluster: &mut Cluster) -> bool {
    for block in &mut cluster.blocks {
        for warp in block.warps.iter_mut().flatten() {
            let waiting = warp.fragments.iter_mut();
            let waiting = waiting.filter(|f| matches!(f.wait, Wait::Members | Wait::Aligned));
            if let Some(fragment) = waiting.min_by_key(|f| f.pc) {
                fragment.wait = Wait::Ready;
                fragment.go = true;
                return true;
            }
        }
    }
    false
}

/// The report that nobody can go on.
fn stuck(worker: &Worker<'_>, cluster: &Cluster) -> Fault {
    let grid = worker.grid;
    let mut message = String::from("every warp waits");
    let mut report = Worker::launch_report(grid, ReportKind::Deadlock, String::new());
    let mut first = true;
    let mut listed = 0;
    for block in &cluster.blocks {
        for warp in block.warps.iter().flatten() {
            for fragment in &warp.fragments {
                let line = grid.module.code[fragment.pc as usize].line;
                let lane = fragment.mask.trailing_zeros().min(31) as usize;
                if first {
                    report.line = line;
                    report.text = grid.module.line(line).to_owned();
                    report.block = block.ctaid;
                    report.thread = [0, 1, 2].map(|axis| warp.tid[axis][lane]);
                    first = false;
                }
                if listed < 8 {
                    let what = match fragment.wait {
                        Wait::Barrier(id) => format!("at barrier {id}"),
                        Wait::Cluster => "at the cluster's barrier".to_owned(),
                        Wait::Ready => "for a barrier object".to_owned(),
                        _ => "for other lanes".to_owned(),
                    };
                    message.push_str(&format!(
                        "; warp {} of block {:?} {what}, line {line}",
                        warp.id, block.ctaid
                    ));
                    listed += 1;
                }
            }
        }
    }
    report.message = message;
    Box::new(report)
}
