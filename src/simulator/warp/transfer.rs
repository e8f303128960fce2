//! Copies that go on by themselves.
//!
//! A copy is checked when it is issued and made when somebody waits for it: what uses its shared
//! side before that is a race.

use crate::simulator::code::Access;
use crate::simulator::code::Address;
use crate::simulator::code::AtomicOp;
use crate::simulator::code::AtomicType;
use crate::simulator::code::Bulk;
use crate::simulator::code::BulkTensor;
use crate::simulator::code::Completion;
use crate::simulator::code::CopyAsync;
use crate::simulator::code::MapReplace;
use crate::simulator::code::Space;
use crate::simulator::launch::Report;
use crate::simulator::launch::ReportKind;
use crate::simulator::memory::Engine;
use crate::simulator::memory::raw;
use crate::simulator::memory::window;
use crate::simulator::tensor::MapElement;
use crate::simulator::tensor::Source;
use crate::simulator::tensor::TensorMap;
use crate::simulator::warp::access::deposit;
use crate::simulator::warp::atomic::update;
use crate::simulator::warp::engine::clock_of;
use crate::simulator::warp::exec::Exec;
use crate::simulator::warp::exec::Flow;
use crate::simulator::warp::lanes::Slot;
use crate::simulator::warp::mbarrier::complete_bytes;
use crate::simulator::warp::resolve::Usage;
use crate::simulator::warp::state::Cluster;
use crate::simulator::warp::worker::Fault;
use crate::simulator::warp::worker::Worker;

/// A `cp.async` of one lane.
#[derive(Clone, Debug)]
pub struct LaneCopy {
    lane: u8,
    group: u32,
    rank: u32,
    offset: u32,
    from: u64,
    bytes: u32,
    source_bytes: u32,
    ticket: u32,
}

/// One piece of a bulk copy.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// Into shared memory.
    In {
        rank: u32,
        offset: u32,
        bytes: u32,
        source: Source,
    },
    /// From one shared memory to another.
    Across {
        rank: u32,
        offset: u32,
        bytes: u32,
        from_rank: u32,
        from: u32,
    },
    /// Out of shared memory.
    Out {
        rank: u32,
        offset: u32,
        bytes: u32,
        to: u64,
    },
}

/// A bulk copy.
#[derive(Clone, Debug)]
pub struct Transfer {
    block: usize,
    warp: u32,
    lane: usize,
    line: u32,
    group: u32,
    engine: Engine,
    ticket: u32,
    moves: Vec<Move>,
    reduce: Option<(AtomicOp, AtomicType)>,
    /// Barrier objects and the bytes they wait for.
    signals: Vec<(u64, u64)>,
}

impl Transfer {
    fn report(
        &self,
        worker: &Worker<'_>,
        cluster: &Cluster,
        kind: ReportKind,
        what: String,
    ) -> Report {
        let mut report = Worker::launch_report(worker.grid, kind, what);
        report.line = self.line;
        report.text = worker.grid.module.line(self.line).to_owned();
        let block = &cluster.blocks[self.block];
        report.block = block.ctaid;
        let tid = self.warp * 32 + self.lane as u32;
        report.thread = worker.grid.thread_at(tid);
        report
    }

    /// Makes the copy.
    fn make(&self, worker: &mut Worker<'_>, cluster: &mut Cluster) -> Result<(), Fault> {
        let checks = worker.grid.options.uninitialized;
        for piece in &self.moves {
            match *piece {
                Move::In {
                    rank,
                    offset,
                    bytes,
                    source,
                } => {
                    let to = cluster.blocks[rank as usize].shared.base() + u64::from(offset);
                    match source {
                        Source::Global(from) => {
                            self.check_global(worker, cluster, from, bytes, false)?;
                            if checks && !self.is_written(worker, from, bytes) {
                                let what = format!("copy of {bytes} bytes of global memory");
                                let kind = ReportKind::Uninitialized;
                                let mut report = self.report(worker, cluster, kind, what);
                                report.address = Some(from);
                                report.allocation = worker.whereabouts(from);
                                worker.note(cluster.blocks[self.block].number, report);
                            }
                            self.combine(to, from, bytes);
                            worker.stats.sectors_read += u64::from(bytes.div_ceil(32));
                            worker.stats.bytes_read += u64::from(bytes);
                        }
                        Source::Fill(pattern) => {
                            for i in 0..bytes {
                                raw::put(to + u64::from(i), pattern[(i % 8) as usize]);
                            }
                        }
                    }
                    cluster.blocks[rank as usize]
                        .shared
                        .mark_written(offset, bytes);
                }
                Move::Across {
                    rank,
                    offset,
                    bytes,
                    from_rank,
                    from,
                } => {
                    let to = cluster.blocks[rank as usize].shared.base() + u64::from(offset);
                    let from = cluster.blocks[from_rank as usize].shared.base() + u64::from(from);
                    self.combine(to, from, bytes);
                    cluster.blocks[rank as usize]
                        .shared
                        .mark_written(offset, bytes);
                }
                Move::Out {
                    rank,
                    offset,
                    bytes,
                    to,
                } => {
                    self.check_global(worker, cluster, to, bytes, true)?;
                    let shared = &cluster.blocks[rank as usize].shared;
                    self.combine(to, shared.base() + u64::from(offset), bytes);
                    let snapshot = &worker.grid.snapshot;
                    let index = snapshot.position(to, u64::from(bytes));
                    if let Some(allocation) = index.and_then(|i| snapshot.get(i)) {
                        allocation.mark_written(to, u64::from(bytes));
                    }
                    worker.stats.sectors_written += u64::from(bytes.div_ceil(32));
                    worker.stats.bytes_written += u64::from(bytes);
                }
            }
        }
        for (host, bytes) in &self.signals {
            if !complete_bytes(*host, *bytes) {
                let what = "a copy completes on what is no barrier".to_owned();
                let report = self.report(worker, cluster, ReportKind::MbarrierPhase, what);
                worker.note(cluster.blocks[self.block].number, report);
            } else if worker.grid.options.races
                && let Some(place) = place_of_host(cluster, *host)
            {
                let warp = cluster.warp_number(self.block, self.warp);
                let done = clock_of(cluster, warp, self.engine, self.ticket);
                cluster.releases.entry(place).or_default().join(&done);
            }
        }
        Ok(())
    }

    fn is_written(&self, worker: &Worker<'_>, from: u64, bytes: u32) -> bool {
        let snapshot = &worker.grid.snapshot;
        let index = snapshot.position(from, u64::from(bytes));
        let allocation = index.and_then(|i| snapshot.get(i));
        allocation.is_none_or(|a| a.is_written(from, u64::from(bytes)))
    }

    /// Copies, or combines with what is there.
    fn combine(&self, to: u64, from: u64, bytes: u32) {
        match self.reduce {
            None => raw::copy(from, to, u64::from(bytes)),
            Some((op, ty)) => {
                let size = ty.bytes().min(8);
                for at in (0..bytes / size).map(|i| u64::from(i * size)) {
                    let value = crate::simulator::warp::access::fetch(from + at, size, false);
                    update(to + at, op, ty, false, value, 0);
                }
            }
        }
    }

    fn check_global(
        &self,
        worker: &Worker<'_>,
        cluster: &Cluster,
        address: u64,
        bytes: u32,
        write: bool,
    ) -> Result<(), Fault> {
        let snapshot = &worker.grid.snapshot;
        let index = snapshot.position(address, u64::from(bytes));
        let allocation = index.and_then(|i| snapshot.get(i));
        let kind = match allocation {
            None => ReportKind::OutOfBounds,
            Some(a) if write && !a.kind().is_writable() => ReportKind::ReadOnly,
            Some(_) => return Ok(()),
        };
        let what = if write { "copy to" } else { "copy from" };
        let what = format!("{what} {bytes} bytes at {address:#x}");
        let mut report = self.report(worker, cluster, kind, what);
        report.address = Some(address);
        report.allocation = worker.whereabouts(address);
        Err(Box::new(report))
    }
}

/// The block and offset of a host address within shared memory.
fn place_of_host(cluster: &Cluster, host: u64) -> Option<(u32, u32)> {
    let blocks = cluster.blocks.iter().enumerate();
    let mut places = blocks.filter_map(|(rank, block)| {
        let offset = host.checked_sub(block.shared.base())?;
        (offset < u64::from(block.shared.size())).then_some((rank as u32, offset as u32))
    });
    places.next()
}

/// Makes every copy that a barrier object waits for.
///
/// # Errors
/// When one leaves global memory.
pub fn complete(worker: &mut Worker<'_>, cluster: &mut Cluster) -> Result<(), Fault> {
    make_where(worker, cluster, |t| !t.signals.is_empty())
}

/// Makes every copy that is left.
///
/// # Errors
/// When one leaves global memory.
pub fn finish(worker: &mut Worker<'_>, cluster: &mut Cluster) -> Result<(), Fault> {
    make_where(worker, cluster, |_| true)
}

fn make_where(
    worker: &mut Worker<'_>,
    cluster: &mut Cluster,
    wanted: impl Fn(&Transfer) -> bool,
) -> Result<(), Fault> {
    if cluster.transfers.is_empty() {
        return Ok(());
    }
    let all = std::mem::take(&mut cluster.transfers);
    let (now, later) = all.into_iter().partition(wanted);
    let now: Vec<Transfer> = now;
    cluster.transfers = later;
    cluster.progress += now.len() as u64;
    for transfer in now {
        transfer.make(worker, cluster)?;
    }
    Ok(())
}

impl Exec<'_, '_> {
    /// `cp.async`
    pub fn copy_async(&mut self, copy: &CopyAsync) -> Result<Flow, Fault> {
        let to = self.reach(&copy.to, copy.bytes, copy.bytes, Usage::Later)?;
        let mut sizes = [copy.bytes; 32];
        if copy.source_bytes.is_some() {
            sizes = *self.warp.file.read::<u32>(copy.source_bytes);
        }
        if copy.ignore.is_some() {
            let p = self.warp.file.predicate(copy.ignore);
            let p = if copy.negated { !p } else { p };
            for (lane, size) in sizes.iter_mut().enumerate() {
                *size = if p >> lane & 1 != 0 { 0 } else { copy.bytes };
            }
        }
        let all = self.mask;
        let mut from = [0; 32];
        let full = self.lanes().filter(|l| sizes[*l] >= copy.bytes);
        let full = full.fold(0u32, |mask, lane| mask | 1 << lane);
        if full != 0 {
            self.mask = full;
            let reached = self.reach(&copy.from, copy.bytes, copy.bytes, Usage::Read);
            self.mask = all;
            from = reached?.host;
        }
        for lane in self.lanes().filter(|l| full >> l & 1 == 0 && sizes[*l] > 0) {
            self.mask = 1 << lane;
            let reached = self.reach(&copy.from, sizes[lane], 1, Usage::Read);
            self.mask = all;
            from[lane] = reached?.host[lane];
        }
        let ticket = self.warp.engines.ticket(Engine::Copy);
        for lane in self.lanes() {
            let Some((rank, offset)) = place_of_host(self.cluster, to.host[lane]) else {
                let message = "the target is not shared memory".to_owned();
                return Err(Box::new(self.report(
                    ReportKind::IllegalInstruction,
                    lane,
                    message,
                )));
            };
            let place = (rank as usize, offset);
            self.note_engine((Engine::Copy, ticket), place, copy.bytes, true, lane);
            self.warp.copies.push(LaneCopy {
                lane: lane as u8,
                group: self.warp.copy_group[lane],
                rank,
                offset,
                from: from[lane],
                bytes: copy.bytes,
                source_bytes: sizes[lane].min(copy.bytes),
                ticket,
            });
        }
        Ok(Flow::Next)
    }

    /// `cp.async.commit_group`
    pub fn copy_commit(&mut self) {
        for lane in self.lanes() {
            self.warp.copy_group[lane] += 1;
        }
    }

    /// `cp.async.wait_group`
    pub fn copy_wait(&mut self, count: u32) -> Result<Flow, Fault> {
        let groups = self.warp.copy_group;
        self.make_copies(|copy| copy.group.saturating_add(count) < groups[usize::from(copy.lane)]);
        Ok(Flow::Next)
    }

    /// Makes all copies of the lanes that execute, committed or not.
    pub fn copies_of_lanes(&mut self) -> Result<(), Fault> {
        self.make_copies(|_| true);
        Ok(())
    }

    fn make_copies(&mut self, wanted: impl Fn(&LaneCopy) -> bool) {
        let mask = self.mask;
        let all = std::mem::take(&mut self.warp.copies);
        for copy in all {
            if mask >> copy.lane & 1 == 0 || !wanted(&copy) {
                self.warp.copies.push(copy);
                continue;
            }
            let shared = &mut self.cluster.blocks[copy.rank as usize].shared;
            let to = shared.base() + u64::from(copy.offset);
            if copy.source_bytes > 0 {
                raw::copy(copy.from, to, u64::from(copy.source_bytes));
            }
            for i in copy.source_bytes..copy.bytes {
                raw::put(to + u64::from(i), 0u8);
            }
            shared.mark_written(copy.offset, copy.bytes);
        }
        let first = self.warp.copies.iter().map(|copy| copy.ticket).min();
        let done = first.map_or(self.warp.engines.last(Engine::Copy), |first| first - 1);
        self.see_engine(Engine::Copy, done);
    }

    /// A copy that nothing of is known yet.
    fn empty_transfer(&self, lane: usize) -> Transfer {
        Transfer {
            block: self.block,
            warp: self.warp.id,
            lane,
            line: self.inst().line,
            group: self.warp.bulk_group[lane],
            engine: Engine::Load,
            ticket: 0,
            moves: Vec::new(),
            reduce: None,
            signals: Vec::new(),
        }
    }

    /// Takes a copy up: from now on it uses its shared side.
    fn begin(&mut self, mut transfer: Transfer) {
        if transfer.signals.is_empty() {
            transfer.engine = Engine::Group;
        }
        transfer.ticket = self.warp.engines.ticket(transfer.engine);
        let work = (transfer.engine, transfer.ticket);
        let lane = transfer.lane;
        for piece in &transfer.moves {
            let (to, from, bytes) = match *piece {
                Move::In {
                    rank,
                    offset,
                    bytes,
                    ..
                } => (Some((rank, offset)), None, bytes),
                Move::Across {
                    rank,
                    offset,
                    bytes,
                    from_rank,
                    from,
                } => (Some((rank, offset)), Some((from_rank, from)), bytes),
                Move::Out {
                    rank,
                    offset,
                    bytes,
                    ..
                } => (None, Some((rank, offset)), bytes),
            };
            for (place, write) in [(from, false), (to, true)] {
                if let Some((rank, offset)) = place {
                    self.note_engine(work, (rank as usize, offset), bytes, write, lane);
                }
            }
        }
        self.cluster.transfers.push(transfer);
    }

    fn illegal(&self, lane: usize, message: String) -> Fault {
        Box::new(self.report(ReportKind::IllegalInstruction, lane, message))
    }

    /// The block and offset of the shared side of a bulk copy.
    fn bulk_shared(
        &mut self,
        address: &Address,
        bytes: u32,
        lane: usize,
    ) -> Result<(usize, u32), Fault> {
        let mut at = self.address_of_lane(address, lane);
        if let window::Place::Shared(offset) = window::place(at) {
            at = u64::from(offset);
        }
        match self.shared_place(at, bytes) {
            Some(place) => Ok(place),
            None => {
                let message = format!("{bytes} bytes at {at:#x} of shared memory");
                let address = window::SHARED + (at & 0xffff_ffff);
                Err(self.refused(ReportKind::OutOfBounds, lane, message, address))
            }
        }
    }

    /// The blocks that get a multicast copy: those of the mask, or the one of the address.
    pub fn receivers(&self, multicast: Slot, own: usize, lane: usize) -> Vec<usize> {
        if !multicast.is_some() {
            return vec![own];
        }
        let mask = self.warp.file.read::<u32>(multicast)[lane] & 0xffff;
        let count = self.cluster.blocks.len();
        (0..count.min(16))
            .filter(|rank| mask >> rank & 1 != 0)
            .collect()
    }

    /// Where the receivers are told, each on its own barrier object.
    pub fn signals(
        &mut self,
        completion: &Completion,
        multicast: Slot,
        receivers: &[usize],
        pair: bool,
        bytes: u64,
        lane: usize,
    ) -> Result<Vec<(u64, u64)>, Fault> {
        let Completion::Mbarrier(address) = completion else {
            return Ok(Vec::new());
        };
        if !multicast.is_some() {
            return Ok(vec![(self.mbarrier_of(address, lane)?, bytes)]);
        }
        let (own, offset) = self.bulk_shared(address, 8, lane)?;
        let blocks = &self.cluster.blocks;
        let told = receivers
            .iter()
            .map(|rank| if pair { rank & !1 | own & 1 } else { *rank });
        let told = told.filter_map(|rank| blocks.get(rank));
        Ok(told
            .map(|block| (block.shared.base() + u64::from(offset), bytes))
            .collect())
    }

    /// `cp.async.bulk`
    pub fn bulk(&mut self, bulk: &Bulk) -> Result<Flow, Fault> {
        for lane in self.lanes() {
            let bytes = self.warp.file.read::<u32>(bulk.bytes)[lane];
            let to = self.address_of_lane(&bulk.to, lane);
            let from = self.address_of_lane(&bulk.from, lane);
            if !bytes.is_multiple_of(16) || (to | from) & 15 != 0 {
                let message =
                    format!("{bytes} bytes from {from:#x} to {to:#x}, wanted multiples of 16");
                return Err(self.refused(ReportKind::Misaligned, lane, message, from));
            }
            let mut transfer = self.empty_transfer(lane);
            transfer.reduce = bulk.reduce;
            match (bulk.to.space, bulk.from.space) {
                (Space::Shared, Space::Shared) => {
                    let (from_rank, from) = self.bulk_shared(&bulk.from, bytes, lane)?;
                    let (rank, offset) = self.bulk_shared(&bulk.to, bytes, lane)?;
                    transfer.moves.push(Move::Across {
                        rank: rank as u32,
                        offset,
                        bytes,
                        from_rank: from_rank as u32,
                        from,
                    });
                    transfer.signals = self.signals(
                        &bulk.completion,
                        Slot::NONE,
                        &[],
                        false,
                        u64::from(bytes),
                        lane,
                    )?;
                }
                (Space::Shared, _) => {
                    let (own, offset) = self.bulk_shared(&bulk.to, bytes, lane)?;
                    let receivers = self.receivers(bulk.multicast, own, lane);
                    for rank in &receivers {
                        transfer.moves.push(Move::In {
                            rank: *rank as u32,
                            offset,
                            bytes,
                            source: Source::Global(from),
                        });
                    }
                    let all = u64::from(bytes);
                    transfer.signals = self.signals(
                        &bulk.completion,
                        bulk.multicast,
                        &receivers,
                        false,
                        all,
                        lane,
                    )?;
                }
                _ => {
                    let (rank, offset) = self.bulk_shared(&bulk.from, bytes, lane)?;
                    let out = |at: u32, bytes: u32| Move::Out {
                        rank: rank as u32,
                        offset: offset + at,
                        bytes,
                        to: to + u64::from(at),
                    };
                    if bulk.mask.is_some() {
                        let mask = self.warp.file.read::<u32>(bulk.mask)[lane];
                        let wanted = (0..bytes).filter(|at| mask >> (at % 16) & 1 != 0);
                        transfer.moves.extend(wanted.map(|at| out(at, 1)));
                    } else {
                        transfer.moves.push(out(0, bytes));
                    }
                }
            }
            self.begin(transfer);
        }
        Ok(Flow::Next)
    }

    /// The tensor map at an address of one lane.
    fn map_of(&mut self, address: &Address, lane: usize) -> Result<TensorMap, Fault> {
        let all = self.mask;
        self.mask = 1 << lane;
        let plain = Address { ..*address };
        let reached = self.reach(&plain, 128, 64, Usage::Read);
        self.mask = all;
        let mut bytes = [0; 128];
        raw::read(reached?.host[lane], &mut bytes);
        TensorMap::from_bytes(&bytes).map_err(|error| self.illegal(lane, error.message.clone()))
    }

    /// `cp.async.bulk.tensor`
    pub fn bulk_tensor(&mut self, copy: &BulkTensor) -> Result<Flow, Fault> {
        for lane in self.lanes() {
            let map = self.map_of(&copy.map, lane)?;
            let word = |slot: &Slot| self.warp.file.read::<u32>(*slot)[lane];
            let coordinates: Vec<i32> = copy.coordinates.iter().map(|s| word(s) as i32).collect();
            let offsets: Vec<u16> = copy.offsets.iter().map(|s| word(s) as u16).collect();
            let (own, tile) = self.bulk_shared(&copy.shared, 1, lane)?;
            let mut pieces = Vec::new();
            let mut emit = |piece| pieces.push(piece);
            let walked = if copy.is_load {
                map.load(copy.mode, tile, &coordinates, &offsets, &mut emit)
            } else {
                map.store(copy.mode, tile, &coordinates, &mut emit)
            };
            if let Err(error) = walked {
                return Err(self.illegal(lane, error.message.clone()));
            }
            let mut transfer = self.empty_transfer(lane);
            let receivers = self.receivers(copy.multicast, own, lane);
            for piece in &pieces {
                if !self.cluster.blocks[own]
                    .shared
                    .holds(piece.shared, piece.bytes)
                {
                    let message = format!(
                        "{} bytes at {:#x} of shared memory",
                        piece.bytes, piece.shared
                    );
                    let address = window::SHARED + u64::from(piece.shared);
                    return Err(self.refused(ReportKind::OutOfBounds, lane, message, address));
                }
                if copy.is_load {
                    transfer.moves.extend(receivers.iter().map(|rank| Move::In {
                        rank: *rank as u32,
                        offset: piece.shared,
                        bytes: piece.bytes,
                        source: piece.source,
                    }));
                } else if let Source::Global(to) = piece.source {
                    transfer.moves.push(Move::Out {
                        rank: own as u32,
                        offset: piece.shared,
                        bytes: piece.bytes,
                        to,
                    });
                }
            }
            if copy.is_load {
                let bytes = map.box_bytes(copy.mode);
                let (to, bar) = (copy.multicast, &copy.completion);
                transfer.signals = self.signals(bar, to, &receivers, copy.pair, bytes, lane)?;
            }
            if let Some(op) = copy.reduce {
                let Some(ty) = reduce_type(map.element()) else {
                    let message = format!("no reduction of {:?}", map.element());
                    return Err(self.illegal(lane, message));
                };
                transfer.reduce = Some((op, ty));
            }
            self.begin(transfer);
        }
        Ok(Flow::Next)
    }

    /// `cp.async.bulk.commit_group`
    pub fn bulk_commit(&mut self) {
        for lane in self.lanes() {
            self.warp.bulk_group[lane] += 1;
        }
    }

    /// `cp.async.bulk.wait_group`
    pub fn bulk_wait(&mut self, count: u32) -> Result<Flow, Fault> {
        let (block, warp, mask) = (self.block, self.warp.id, self.mask);
        let groups = self.warp.bulk_group;
        make_where(self.worker, self.cluster, |t| {
            t.block == block
                && t.warp == warp
                && mask >> t.lane & 1 != 0
                && t.signals.is_empty()
                && t.group.saturating_add(count) < groups[t.lane]
        })?;
        let left = self.cluster.transfers.iter();
        let left = left.filter(|t| t.block == block && t.warp == warp && t.engine == Engine::Group);
        let first = left.map(|t| t.ticket).min();
        let done = first.map_or(self.warp.engines.last(Engine::Group), |first| first - 1);
        self.see_engine(Engine::Group, done);
        Ok(Flow::Next)
    }

    /// `st.async` and `red.async`: made at once, and told to the barrier.
    pub fn store_async(
        &mut self,
        access: &Access,
        bar: &Address,
        reduce: Option<(AtomicOp, AtomicType)>,
    ) -> Result<Flow, Fault> {
        let total = access.bytes * access.data.len() as u32;
        let reach = self.reach(&access.address, total, total, Usage::Atomic)?;
        self.release_at(bar);
        self.cluster.progress += 1;
        for lane in self.lanes() {
            for (index, reg) in access.data.iter().enumerate() {
                let address = reach.host[lane] + index as u64 * u64::from(access.bytes);
                let value = self.register(reg.slot, reg.class, lane);
                match reduce {
                    Some((op, ty)) => {
                        update(address, op, ty, false, value, 0);
                    }
                    None => deposit(address, access.bytes, value),
                }
            }
            let host = self.mbarrier_of(bar, lane)?;
            if !complete_bytes(host, u64::from(total)) {
                let message = "a store completes on what is no barrier".to_owned();
                self.note(self.report(ReportKind::MbarrierPhase, lane, message));
            }
        }
        Ok(Flow::Next)
    }

    /// `st.bulk`
    pub fn store_bulk(&mut self, address: &Address, bytes: Slot) -> Result<Flow, Fault> {
        for lane in self.lanes() {
            let bytes = self.warp.file.read::<u64>(bytes)[lane];
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            let (rank, offset) = self.bulk_shared(address, bytes, lane)?;
            self.note_shared(rank, offset, bytes, Usage::Write, lane);
            let base = self.cluster.blocks[rank].shared.base() + u64::from(offset);
            for i in 0..u64::from(bytes) {
                raw::put(base + i, 0u8);
            }
        }
        self.settle_overwrites();
        Ok(Flow::Next)
    }

    /// `tensormap.replace`
    pub fn map_replace(&mut self, m: &MapReplace) -> Result<Flow, Fault> {
        for lane in self.lanes() {
            let mut map = self.map_of(&m.address, lane)?;
            let value = self.register(m.value.slot, m.value.class, lane);
            if let Err(error) = map.replace(&m.field, m.ordinal, value) {
                return Err(self.illegal(lane, error.message.clone()));
            }
            let all = self.mask;
            self.mask = 1 << lane;
            let reached = self.reach(&m.address, 128, 64, Usage::Write);
            self.mask = all;
            raw::write(reached?.host[lane], &map.to_bytes());
        }
        Ok(Flow::Next)
    }

    /// `tensormap.cp_fenceproxy`
    pub fn map_copy(&mut self, to: &Address, from: &Address) -> Result<Flow, Fault> {
        let lane = self.first_lane();
        let all = self.mask;
        self.mask = 1 << lane;
        let source = self.reach(from, 128, 64, Usage::Read);
        let target = self.reach(to, 128, 64, Usage::Write);
        self.mask = all;
        raw::copy(source?.host[lane], target?.host[lane], 128);
        Ok(Flow::Next)
    }
}

/// The type that a reduction into a tensor works on.
fn reduce_type(element: MapElement) -> Option<AtomicType> {
    Some(match element {
        MapElement::U32 => AtomicType::U32,
        MapElement::S32 => AtomicType::S32,
        MapElement::U64 => AtomicType::U64,
        MapElement::S64 => AtomicType::S64,
        MapElement::F16 => AtomicType::F16,
        MapElement::Bf16 => AtomicType::Bf16,
        MapElement::F32 => AtomicType::F32,
        MapElement::F64 => AtomicType::F64,
        _ => return None,
    })
}
