//! From the addresses of an instruction to host addresses, with every check on the way.
#![allow(
    clippy::needless_range_loop,
    reason = "a lane is a number in several tables"
)]

use crate::simulator::code::Address;
use crate::simulator::code::Space;
use crate::simulator::launch::Other;
use crate::simulator::launch::Report;
use crate::simulator::launch::ReportKind;
use crate::simulator::launch::Where;
use crate::simulator::memory::By;
use crate::simulator::memory::Conflict;
use crate::simulator::memory::raw;
use crate::simulator::memory::window;
use crate::simulator::memory::window::Place;
use crate::simulator::warp::exec::Exec;
use crate::simulator::warp::shadow::Now;
use crate::simulator::warp::worker::Fault;
use crate::simulator::warp::worker::Overwrite;

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It reads and writes in one step, or is ordered by other means.
    Atomic,
    /// It reads, ordered by other means.
    StrongRead,
    /// It writes, ordered by other means.
    StrongWrite,
    /// Nothing yet: a copy will use it later.
    Later,
}

impl Usage {
    /// Whether it reads.
    pub fn reads(self) -> bool {
        matches!(self, Self::Read | Self::StrongRead | Self::Atomic)
    }
    /// Whether it writes.
    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::StrongWrite | Self::Atomic)
    }
    /// Whether nothing orders it but barriers.
    pub fn is_plain(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }
    fn what(self) -> &'static str {
        if self.writes() { "write" } else { "read" }
    }
}

/// Host addresses of the lanes that execute.
#[derive(Clone, Copy)]
pub struct Reach {
    /// By lane; 0 where the lane does not execute.
    pub host: [u64; 32],
    /// All lanes execute and lie side by side in order.
    pub contiguous: bool,
}

impl Exec<'_, '_> {
    /// The addresses as the text means them, before anything is looked up.
    #[inline(always)]
    fn addresses(&self, address: &Address) -> [u64; 32] {
        let mut offset = address.offset as u64;
        if address.frame {
            offset = offset.wrapping_add(u64::from(self.cur.local));
        }
        let mut out = [offset; 32];
        if address.base.is_some() {
            if address.wide {
                let base = self.warp.file.read::<u64>(address.base);
                for lane in 0..32 {
                    out[lane] = base[lane].wrapping_add(offset);
                }
            } else {
                let base = self.warp.file.read::<u32>(address.base);
                for lane in 0..32 {
                    out[lane] = u64::from(base[lane]).wrapping_add(offset);
                }
            }
        }
        out
    }

    /// The address of one lane in its space.
    pub fn address_of_lane(&self, address: &Address, lane: usize) -> u64 {
        self.addresses(address)[lane]
    }

    /// Looks up an access of `bytes` bytes a lane at multiples of `align`.
    ///
    /// # Errors
    /// When a lane's bytes are not there or may not be used so.
    pub fn reach(
        &mut self,
        address: &Address,
        bytes: u32,
        align: u32,
        usage: Usage,
    ) -> Result<Reach, Fault> {
        let addresses = self.addresses(address);
        match address.space {
            Space::Shared => self.reach_shared(&addresses, bytes, align, usage),
            Space::Local => self.reach_each(&addresses, bytes, align, usage, window::LOCAL),
            Space::Param => self.reach_param(&addresses, bytes),
            Space::Global | Space::Constant | Space::Generic => {
                self.reach_global(&addresses, bytes, align, usage)
            }
        }
    }

    /// The first host address of an access whose lanes all execute and lie side by side in one
    /// allocation, when there is nothing to note, count or report about it.
    pub fn reach_plain(&mut self, address: &Address, bytes: u32, usage: Usage) -> Option<u64> {
        let global = matches!(
            address.space,
            Space::Global | Space::Generic | Space::Constant
        );
        let simple = global && address.wide && address.base.is_some() && !address.frame;
        let grid = self.worker.grid;
        if !simple || self.mask != u32::MAX || self.worker.counting || grid.shadow.is_some() {
            return None;
        }
        let base = self.warp.file.read::<u64>(address.base);
        let mut difference = 0;
        for (lane, at) in base.iter().enumerate() {
            difference |= at ^ base[0].wrapping_add(lane as u64 * u64::from(bytes));
        }
        let first = base[0].wrapping_add(address.offset as u64);
        if difference != 0 || first & u64::from(bytes - 1) != 0 {
            return None;
        }
        let span = u64::from(bytes) * 32;
        let known = self.worker.known(self.cur.pc, first, span)?;
        if usage.writes() && !known.writable {
            return None;
        }
        if known.tracked {
            let allocation = grid.snapshot.get(known.index)?;
            if usage.writes() {
                allocation.mark_written(first, span);
            } else if grid.options.uninitialized && !allocation.is_written(first, span) {
                return None;
            }
        }
        Some(first)
    }

    fn reach_param(&mut self, addresses: &[u64; 32], bytes: u32) -> Result<Reach, Fault> {
        let size = self.worker.grid.launch.params.len() as u64;
        if addresses[0].saturating_add(u64::from(bytes)) > size {
            let message = format!("{bytes} bytes at byte {} of the parameters", addresses[0]);
            let mut report = self.report(ReportKind::OutOfBounds, self.first_lane(), message);
            report.allocation = Some(Where {
                label: "the parameters".to_owned(),
                offset: addresses[0],
                length: size,
            });
            return Err(Box::new(report));
        }
        Ok(Reach {
            host: addresses.map(|a| a.wrapping_add(self.worker.grid.params)),
            contiguous: false,
        })
    }

    /// Whether all lanes execute and their addresses go up by `bytes`.
    #[inline(always)]
    fn is_contiguous(&self, addresses: &[u64; 32], bytes: u32) -> bool {
        let mut difference = 0;
        for lane in 0..32 {
            let wanted = addresses[0].wrapping_add(lane as u64 * u64::from(bytes));
            difference |= addresses[lane] ^ wanted;
        }
        difference == 0 && self.mask == u32::MAX
    }

    /// The lowest and the highest address of the lanes that execute, and all their bits together.
    fn range(&self, addresses: &[u64; 32]) -> (u64, u64, u64) {
        let (mut low, mut high, mut bits) = (u64::MAX, 0, 0);
        let mut left = self.mask;
        while left != 0 {
            let address = addresses[left.trailing_zeros() as usize];
            low = low.min(address);
            high = high.max(address);
            bits |= address;
            left &= left - 1;
        }
        (low, high, bits)
    }

    fn reach_global(
        &mut self,
        addresses: &[u64; 32],
        bytes: u32,
        align: u32,
        usage: Usage,
    ) -> Result<Reach, Fault> {
        let contiguous = self.is_contiguous(addresses, bytes);
        let (low, high, bits) = if contiguous {
            (
                addresses[0],
                addresses[0].wrapping_add(31 * u64::from(bytes)),
                addresses[0] | u64::from(bytes),
            )
        } else {
            self.range(addresses)
        };
        let span = high.wrapping_sub(low).saturating_add(u64::from(bytes));
        let misaligned = bits & u64::from(align - 1) != 0;
        if misaligned {
            return self.reach_each(addresses, bytes, align, usage, 0);
        }
        let Some(known) = self.worker.known(self.cur.pc, low, span) else {
            return self.reach_each(addresses, bytes, align, usage, 0);
        };
        if usage.writes() && !known.writable {
            let message = format!("{bytes} bytes");
            let lane = self.first_lane();
            return Err(self.refused(ReportKind::ReadOnly, lane, message, addresses[lane]));
        }
        if known.tracked && usage != Usage::Later {
            self.track(known.index, addresses, low, span, bytes, usage, contiguous);
        }
        if self.worker.grid.shadow.is_some() && usage.is_plain() {
            let write = usage == Usage::Write;
            self.race_global(known.index, addresses, bytes, write, contiguous);
        }
        // Constants and parameters have a cache of their own.
        if self.worker.counting && known.writable {
            self.count_sectors(addresses, bytes, usage);
        }
        let mut host = *addresses;
        if self.mask != u32::MAX {
            for (lane, address) in host.iter_mut().enumerate() {
                if self.mask >> lane & 1 == 0 {
                    *address = 0;
                }
            }
        }
        Ok(Reach { host, contiguous })
    }

    /// Marks what is written, and looks whether what is read was written.
    fn track(
        &mut self,
        index: usize,
        addresses: &[u64; 32],
        low: u64,
        span: u64,
        bytes: u32,
        usage: Usage,
        contiguous: bool,
    ) {
        let grid = self.worker.grid;
        let Some(allocation) = grid.snapshot.get(index) else {
            return;
        };
        if !usage.reads() && contiguous {
            allocation.mark_written(low, span);
            return;
        }
        let reads = usage.reads() && grid.options.uninitialized;
        if reads && !(span < 1 << 16 && allocation.is_written(low, span)) {
            let missing = self
                .lanes()
                .find(|lane| !allocation.is_written(addresses[*lane], u64::from(bytes)));
            if let Some(lane) = missing {
                let message = format!("{bytes} bytes of global memory");
                let mut report = self.report(ReportKind::Uninitialized, lane, message);
                report.address = Some(addresses[lane]);
                report.allocation = self.whereabouts(addresses[lane]);
                self.note(report);
            }
        }
        if usage.writes() {
            for lane in self.lanes() {
                allocation.mark_written(addresses[lane], u64::from(bytes));
            }
        }
    }

    /// The lanes that execute.
    pub fn lanes(&self) -> impl Iterator<Item = usize> + use<> {
        let mut left = self.mask;
        std::iter::from_fn(move || {
            let lane = left.trailing_zeros();
            left &= left.wrapping_sub(1);
            (lane < 32).then_some(lane as usize)
        })
    }

    /// A fault about an address.
    pub fn refused(&self, kind: ReportKind, lane: usize, message: String, address: u64) -> Fault {
        let mut report = self.report(kind, lane, message);
        report.address = Some(address);
        report.allocation = self.whereabouts(address);
        Box::new(report)
    }

    /// What lies at a generic address. One that leads to no block of the cluster counts from the
    /// start of this block's shared memory.
    pub fn whereabouts(&self, address: u64) -> Option<Where> {
        let own = &self.cluster.blocks[self.block];
        let (label, offset, length) = match window::place(address) {
            Place::Global => return self.worker.whereabouts(address),
            Place::Local(offset) => ("local memory".to_owned(), offset, own.local_bytes),
            Place::Shared(at) => match self.shared_place(u64::from(at), 0) {
                Some((rank, offset)) if rank != self.block => {
                    let other = &self.cluster.blocks[rank];
                    let [x, y, z] = other.ctaid;
                    let label = format!("shared memory of block ({x}, {y}, {z})");
                    (label, offset, other.shared.size())
                }
                Some((_, offset)) => ("shared memory".to_owned(), offset, own.shared.size()),
                None => ("shared memory".to_owned(), at, own.shared.size()),
            },
        };
        Some(Where {
            label,
            offset: u64::from(offset),
            length: u64::from(length),
        })
    }

    /// Lane by lane: addresses in different allocations or windows, and everything wrong.
    fn reach_each(
        &mut self,
        addresses: &[u64; 32],
        bytes: u32,
        align: u32,
        usage: Usage,
        window: u64,
    ) -> Result<Reach, Fault> {
        let mut host = [0; 32];
        let mut shared = [0u64; 32];
        let mut shared_lanes = 0u32;
        // An atomic step of the host has its alignment too.
        let checks_alignment = self.worker.grid.options.bounds || usage == Usage::Atomic;
        for lane in self.lanes() {
            let address = if window == 0 {
                addresses[lane]
            } else {
                // Addresses of a window have 32 bits.
                window + (addresses[lane] & (window::LENGTH - 1))
            };
            if checks_alignment && address & u64::from(align - 1) != 0 {
                let message =
                    format!("{bytes} bytes at {address:#x}, wanted a multiple of {align}");
                return Err(self.refused(ReportKind::Misaligned, lane, message, address));
            }
            host[lane] = match window::place(address) {
                Place::Shared(offset) => {
                    shared[lane] = u64::from(offset);
                    shared_lanes |= 1 << lane;
                    0
                }
                Place::Local(offset) => self.local_host(offset, bytes, lane)?,
                Place::Global => self.global_lane(address, bytes, usage, lane)?,
            };
        }
        if shared_lanes != 0 {
            let all = self.mask;
            self.mask = shared_lanes;
            let reached = self.reach_shared(&shared, bytes, align, usage);
            self.mask = all;
            let reached = reached?;
            for lane in 0..32 {
                host[lane] |= reached.host[lane];
            }
        }
        if self.worker.counting && window == 0 {
            self.count_sectors(addresses, bytes, usage);
        }
        Ok(Reach {
            host,
            contiguous: false,
        })
    }

    fn global_lane(
        &mut self,
        address: u64,
        bytes: u32,
        usage: Usage,
        lane: usize,
    ) -> Result<u64, Fault> {
        let Some(known) = self.worker.known(self.cur.pc, address, u64::from(bytes)) else {
            let what = usage.what();
            let message = format!("{what} of {bytes} bytes at {address:#x}");
            return Err(self.refused(ReportKind::OutOfBounds, lane, message, address));
        };
        if usage.writes() && !known.writable {
            let message = format!("{bytes} bytes");
            return Err(self.refused(ReportKind::ReadOnly, lane, message, address));
        }
        let all = self.mask;
        self.mask = 1 << lane;
        let addresses = [address; 32];
        if known.tracked && usage != Usage::Later {
            self.track(
                known.index,
                &addresses,
                address,
                u64::from(bytes),
                bytes,
                usage,
                false,
            );
        }
        if self.worker.grid.shadow.is_some() && usage.is_plain() {
            let write = usage == Usage::Write;
            self.race_global(known.index, &addresses, bytes, write, false);
        }
        self.mask = all;
        Ok(address)
    }

    fn local_host(&self, offset: u32, bytes: u32, lane: usize) -> Result<u64, Fault> {
        let block = &self.cluster.blocks[self.block];
        if u64::from(offset) + u64::from(bytes) > u64::from(block.local_bytes) {
            let message = format!(
                "{bytes} bytes at byte {offset} of a thread's {} bytes of local memory",
                block.local_bytes
            );
            let address = window::LOCAL + u64::from(offset);
            return Err(self.refused(ReportKind::OutOfBounds, lane, message, address));
        }
        let thread = u64::from(self.warp.id) * 32 + lane as u64;
        Ok(block.local.address() + thread * u64::from(block.local_bytes) + u64::from(offset))
    }

    /// Shared memory: of this block, or of another one of the cluster.
    fn reach_shared(
        &mut self,
        addresses: &[u64; 32],
        bytes: u32,
        align: u32,
        usage: Usage,
    ) -> Result<Reach, Fault> {
        let contiguous = self.is_contiguous(addresses, bytes);
        let (low, high, bits) = if contiguous {
            let span = 31 * u64::from(bytes);
            (
                addresses[0],
                addresses[0].wrapping_add(span),
                addresses[0] | u64::from(bytes),
            )
        } else {
            self.range(addresses)
        };
        let own = &self.cluster.blocks[self.block].shared;
        let fits = high.saturating_add(u64::from(bytes)) <= u64::from(own.size());
        if !fits || bits & u64::from(align - 1) != 0 {
            return self.reach_shared_each(addresses, bytes, align, usage);
        }
        let base = own.base();
        if usage != Usage::Later && (own.tracks_written() || own.tracks_races()) {
            let span = (high - low) as u32 + bytes;
            if contiguous {
                self.note_shared(self.block, low as u32, span, usage, 0);
            } else {
                let same = low == high;
                for lane in self.lanes() {
                    self.note_shared(self.block, addresses[lane] as u32, bytes, usage, lane);
                    if same && !usage.writes() {
                        break;
                    }
                }
            }
        }
        if self.worker.counting {
            self.count_banks(addresses, bytes);
        }
        let mut host = [0; 32];
        for lane in 0..32 {
            let on = self.mask >> lane & 1 != 0;
            host[lane] = if on {
                base.wrapping_add(addresses[lane])
            } else {
                0
            };
        }
        Ok(Reach { host, contiguous })
    }

    fn reach_shared_each(
        &mut self,
        addresses: &[u64; 32],
        bytes: u32,
        align: u32,
        usage: Usage,
    ) -> Result<Reach, Fault> {
        let mut host = [0; 32];
        let checks_alignment = self.worker.grid.options.bounds || usage == Usage::Atomic;
        for lane in self.lanes() {
            let address = addresses[lane];
            let shown = window::SHARED + (address & 0xffff_ffff);
            if checks_alignment && address & u64::from(align - 1) != 0 {
                let message =
                    format!("{bytes} bytes at {address:#x}, wanted a multiple of {align}");
                return Err(self.refused(ReportKind::Misaligned, lane, message, shown));
            }
            let Some((rank, offset)) = self.shared_place(address, bytes) else {
                let what = usage.what();
                let message = format!("{what} of {bytes} bytes at {address:#x} of shared memory");
                return Err(self.refused(ReportKind::OutOfBounds, lane, message, shown));
            };
            if usage != Usage::Later {
                self.note_shared(rank, offset, bytes, usage, lane);
            }
            host[lane] = self.cluster.blocks[rank].shared.base() + u64::from(offset);
        }
        Ok(Reach {
            host,
            contiguous: false,
        })
    }

    /// The block and offset of a shared address, when that many bytes are there.
    pub fn shared_place(&self, address: u64, bytes: u32) -> Option<(usize, u32)> {
        let address = u32::try_from(address).ok()?;
        let (rank, offset) = match address >> window::RANK_SHIFT {
            0 => (self.block, address),
            // Nobody shares with a block that is alone.
            _ if self.cluster.blocks.len() == 1 => return None,
            rank => (
                (rank - 1) as usize,
                address & ((1 << window::RANK_SHIFT) - 1),
            ),
        };
        let shared = &self.cluster.blocks.get(rank)?.shared;
        shared.holds(offset, bytes).then_some((rank, offset))
    }

    /// Marks shared bytes as used, and reports what is wrong with that.
    pub fn note_shared(&mut self, rank: usize, offset: u32, bytes: u32, usage: Usage, lane: usize) {
        let me = self.warp_number() as u16;
        let line = self.inst().line;
        let count = self.moment();
        let shared = &mut self.cluster.blocks[rank].shared;
        let missing = usage.reads() && !shared.is_written(offset, bytes);
        if usage.writes() {
            shared.mark_written(offset, bytes);
        }
        let mut conflict = None;
        let write = usage == Usage::Write;
        if shared.tracks_races() && usage.is_plain() {
            let by = By {
                party: me,
                count,
                clock: &self.warp.clock,
                line,
                proxy: false,
            };
            conflict = shared.note(offset, bytes, write, &by);
        }
        // What is still on its way is not written yet, and that says more.
        let engine = conflict.and_then(|c| self.warp.clock.who(c.party).1);
        if missing && engine.is_none() {
            let per_lane = (bytes / 32).max(1);
            let shared = &self.cluster.blocks[rank].shared;
            let first = (0..bytes)
                .find(|i| !shared.is_written(offset + i, 1))
                .unwrap_or(0);
            let lane = if bytes > 16 {
                (first / per_lane) as usize
            } else {
                lane
            };
            let message = format!("byte {} of shared memory", offset + first);
            let mut report = self.report(ReportKind::Uninitialized, lane, message);
            let address = window::shared(rank, offset + first, self.block);
            report.address = Some(address);
            report.allocation = self.whereabouts(address);
            self.note(report);
        }
        let Some(conflict) = conflict else { return };
        let did = if write { "write to" } else { "read of" };
        let report = self.conflict(&conflict, rank, offset, bytes, did, lane);
        if write && conflict.write && engine.is_none() {
            let host = self.cluster.blocks[rank].shared.base() + u64::from(conflict.offset);
            self.overwrites(report, host, conflict.length as usize);
        } else {
            self.note(report);
        }
    }

    /// The report of a race in shared memory.
    pub fn conflict(
        &self,
        conflict: &Conflict,
        rank: usize,
        offset: u32,
        bytes: u32,
        did: &str,
        lane: usize,
    ) -> Report {
        let (warp, engine) = self.warp.clock.who(conflict.party);
        let mut message = format!("{did} shared memory at byte {offset}, {bytes} bytes");
        let kind = if conflict.proxy {
            message.push_str(", and no fence.proxy.async comes after the write");
            ReportKind::MissingFence
        } else {
            if let Some(engine) = engine {
                message.push_str(&format!(", used by {}", engine.name()));
            }
            ReportKind::SharedRace
        };
        let mut report = self.report(kind, lane, message);
        let address = window::shared(rank, conflict.offset, self.block);
        report.address = Some(address);
        report.allocation = self.whereabouts(address);
        let per_block = self.cluster.warps_per_block.max(1);
        let block = self.cluster.blocks.get(warp / per_block);
        report.other = Some(Other {
            block: block.map_or([0; 3], |b| b.ctaid),
            warp: Some((warp % per_block) as u32),
            line: Some(conflict.line),
            write: conflict.write,
        });
        report
    }

    /// Keeps a finding that is none when the instruction at hand leaves the bytes as they are.
    fn overwrites(&mut self, report: Report, host: u64, bytes: usize) {
        let mut old = vec![0; bytes];
        raw::read(host, &mut old);
        self.worker.overwrites.push(Overwrite { report, host, old });
    }

    /// Reports what the instruction that has just stored something changed under another warp.
    pub fn settle_overwrites(&mut self) {
        if self.worker.overwrites.is_empty() {
            return;
        }
        for overwrite in std::mem::take(&mut self.worker.overwrites) {
            let mut new = vec![0; overwrite.old.len()];
            raw::read(overwrite.host, &mut new);
            if new != overwrite.old {
                self.note(overwrite.report);
            }
        }
    }

    fn race_global(
        &mut self,
        index: usize,
        addresses: &[u64; 32],
        bytes: u32,
        write: bool,
        contiguous: bool,
    ) {
        let grid = self.worker.grid;
        let (Some(shadow), Some(allocation)) = (&grid.shadow, grid.snapshot.get(index)) else {
            return;
        };
        if !allocation.kind().is_writable() {
            return;
        }
        let block = &self.cluster.blocks[self.block];
        let now = Now {
            block: block.number,
            warp: self.warp.id,
            time: self.moment(),
            acquired: block.acquired,
            clock: &self.warp.clock,
            mates: &self.cluster.mates,
            warps: self.cluster.warps_per_block,
        };
        let size = allocation.length();
        let length = u64::from(bytes);
        let mut found = None;
        if contiguous {
            let offset = addresses[0] - allocation.base();
            let clash = shadow.note(index, size, offset, length * 32, write, &now);
            found = clash.map(|c| ((c.offset.saturating_sub(offset) / length) as usize, c));
        } else {
            for lane in self.lanes() {
                let offset = addresses[lane] - allocation.base();
                let clash = shadow.note(index, size, offset, length, write, &now);
                found = found.or(clash.map(|c| (lane, c)));
            }
        }
        let Some((lane, clash)) = found else { return };
        let did = if write { "write" } else { "read" };
        let mut message = format!("{did} of {bytes} bytes of global memory");
        if clash.who.is_none() {
            message.push_str(", which another warp has read as well");
        }
        let mut report = self.report(ReportKind::GlobalRace, lane, message);
        let address = addresses[lane.min(31)];
        report.address = Some(address);
        report.allocation = self.whereabouts(address);
        report.other = clash.who.map(|(number, warp)| Other {
            block: grid.block_at(number),
            warp: Some(warp),
            line: None,
            write: clash.write,
        });
        let own = clash.who.is_some_and(|(number, _)| number == now.block);
        if own && write && clash.write {
            let host = allocation.base() + clash.offset;
            self.overwrites(report, host, clash.length as usize);
        } else {
            self.note(report);
        }
    }

    fn count_sectors(&mut self, addresses: &[u64; 32], bytes: u32, usage: Usage) {
        let mut sectors = Vec::with_capacity(32);
        let mut asked = 0;
        for lane in self.lanes() {
            if window::place(addresses[lane]) != Place::Global {
                continue;
            }
            asked += u64::from(bytes);
            let first = addresses[lane] >> 5;
            let last = (addresses[lane] + u64::from(bytes) - 1) >> 5;
            for sector in first..=last {
                if sectors.last() != Some(&sector) {
                    sectors.push(sector);
                }
            }
        }
        sectors.sort_unstable();
        sectors.dedup();
        let count = sectors.len() as u64;
        if usage.reads() {
            self.worker.stats.sectors_read += count;
            self.worker.stats.bytes_read += asked;
        }
        if usage.writes() {
            self.worker.stats.sectors_written += count;
            self.worker.stats.bytes_written += asked;
        }
    }

    /// Passes over shared memory: 32 banks of four bytes; wide accesses go in halves or quarters.
    fn count_banks(&mut self, addresses: &[u64; 32], bytes: u32) {
        let lanes_at_once = match bytes {
            0..=4 => 32,
            5..=8 => 16,
            _ => 8,
        };
        for start in (0..32).step_by(lanes_at_once) {
            let mut words: Vec<u64> = Vec::with_capacity(32);
            for lane in start..start + lanes_at_once {
                if self.mask >> lane & 1 != 0 {
                    let first = addresses[lane] >> 2;
                    let last = (addresses[lane] + u64::from(bytes) - 1) >> 2;
                    words.extend(first..=last);
                }
            }
            if words.is_empty() {
                continue;
            }
            words.sort_unstable();
            words.dedup();
            let mut banks = [0u64; 32];
            for word in words {
                banks[(word % 32) as usize] += 1;
            }
            let passes = banks.iter().copied().max().unwrap_or(1);
            self.worker.stats.shared_accesses += 1;
            self.worker.stats.bank_conflicts += passes.saturating_sub(1);
        }
    }
}
