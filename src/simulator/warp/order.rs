//! What orders accesses: releases and acquires through memory, fences.

use std::sync::atomic::Ordering;

use crate::simulator::code::Address;
use crate::simulator::code::Space;
use crate::simulator::memory::Clock;
use crate::simulator::memory::window;
use crate::simulator::warp::exec::Exec;
use crate::simulator::warp::shadow;
use crate::simulator::warp::worker::Grid;

/// A moment that nobody had before: of the launch when blocks and warps share one clock, else the
/// warp's own.
fn moment(grid: &Grid<'_>, own: u32) -> u32 {
    if grid.shadow.is_none() {
        return own.saturating_add(1);
    }
    let now = grid.time.fetch_add(1, Ordering::Relaxed) + 1;
    now.min(u64::from(shadow::LAST)) as u32
}

/// What warp `me` does from now on is later than all that others have seen of it.
pub fn tick(grid: &Grid<'_>, clock: &mut Clock, me: usize) {
    if grid.options.races {
        let party = me as u16;
        clock.see(party, moment(grid, clock.seen(party)));
    }
}

impl Exec<'_, '_> {
    /// The warp's number within the cluster.
    pub fn warp_number(&self) -> usize {
        self.cluster.warp_number(self.block, self.warp.id)
    }

    /// The moment at which the warp uses memory now.
    pub fn moment(&self) -> u32 {
        let own = self.warp.clock.seen(self.warp_number() as u16);
        own.max(self.cluster.blocks[self.block].released)
    }

    /// Makes the warp's clock cover all that it has done, so that others may take it over.
    pub fn settle_clock(&mut self) {
        let me = self.warp_number() as u16;
        let released = self.cluster.blocks[self.block].released;
        self.warp.clock.see(me, released);
    }

    /// What the warp does from now on is later than all that others have seen of it.
    pub fn tick(&mut self) {
        let me = self.warp_number();
        tick(self.worker.grid, &mut self.warp.clock, me);
    }

    /// The keys of the memory places that lanes order accesses by, each once.
    fn order_keys(&self, address: &Address) -> Vec<(u32, u32)> {
        let mut keys: Vec<_> = self
            .lanes()
            .map(|lane| self.order_key(address, lane))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    fn order_key(&self, address: &Address, lane: usize) -> (u32, u32) {
        let at = self.address_of_lane(address, lane);
        let shared = match (address.space, window::place(at)) {
            (Space::Shared, _) => Some(at),
            (_, window::Place::Shared(offset)) => Some(u64::from(offset)),
            _ => None,
        };
        match shared.and_then(|at| self.shared_place(at, 1)) {
            Some((rank, offset)) => (rank as u32, offset),
            // Far too many places to tell all of them apart.
            None => (u32::MAX, at as u32 % GLOBAL_PLACES),
        }
    }

    /// What the warp did so far is seen by who reads the place after.
    pub fn release_at(&mut self, address: &Address) {
        let grid = self.worker.grid;
        if !grid.options.races {
            return;
        }
        self.settle_clock();
        for key in self.order_keys(address) {
            let clock = self.cluster.releases.entry(key).or_default();
            clock.join(&self.warp.clock);
        }
        self.tick();
        if let Some(shadow) = &grid.shadow {
            let now = self.warp.clock.seen(self.warp_number() as u16);
            let block = &mut self.cluster.blocks[self.block];
            block.released = now;
            shadow.release(block.number, now);
        }
    }

    /// The warp sees what others did before they released through the place.
    pub fn acquire_at(&mut self, address: &Address) {
        let grid = self.worker.grid;
        if !grid.options.races {
            return;
        }
        for key in self.order_keys(address) {
            if let Some(clock) = self.cluster.releases.get(&key) {
                self.warp.clock.join(clock);
            }
        }
        self.tick();
        let now = self.warp.clock.seen(self.warp_number() as u16);
        self.cluster.blocks[self.block].acquired = now;
    }

    /// A fence: atomics and strong accesses order by themselves here, so there is nothing to do
    /// but for what went before. One of the async proxy lets engines see what was written.
    pub fn fence(&mut self, proxy: bool) {
        if proxy {
            self.settle_clock();
            self.warp.clock.pass_proxy();
        }
        self.tick();
    }
}

/// Places of global memory that order accesses and are told apart.
const GLOBAL_PLACES: u32 = 4096;
