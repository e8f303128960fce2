//! Loads and stores.
#![allow(
    clippy::needless_range_loop,
    reason = "a lane is a number in several tables"
)]

use crate::simulator::code::Access;
use crate::simulator::code::Order;
use crate::simulator::code::Reg;
use crate::simulator::code::Space;
use crate::simulator::memory::raw;
use crate::simulator::warp::exec::Exec;
use crate::simulator::warp::exec::Flow;
use crate::simulator::warp::lanes::Class;
use crate::simulator::warp::lanes::File;
use crate::simulator::warp::lanes::Slot;
use crate::simulator::warp::resolve::Reach;
use crate::simulator::warp::resolve::Usage;
use crate::simulator::warp::worker::Fault;

/// One element from memory, extended to 64 bits.
#[inline(always)]
pub fn fetch(address: u64, bytes: u32, signed: bool) -> u64 {
    match (bytes, signed) {
        (1, false) => u64::from(raw::get::<u8>(address)),
        (1, true) => raw::get::<u8>(address) as i8 as u64,
        (2, false) => u64::from(raw::get::<u16>(address)),
        (2, true) => raw::get::<u16>(address) as i16 as u64,
        (4, false) => u64::from(raw::get::<u32>(address)),
        (4, true) => raw::get::<u32>(address) as i32 as u64,
        _ => raw::get::<u64>(address),
    }
}

/// One element to memory.
#[inline(always)]
pub fn deposit(address: u64, bytes: u32, value: u64) {
    match bytes {
        1 => raw::put(address, value as u8),
        2 => raw::put(address, value as u16),
        4 => raw::put(address, value as u32),
        _ => raw::put(address, value),
    }
}

impl Exec<'_, '_> {
    /// `ld`
    pub fn load(&mut self, access: &Access) -> Result<Flow, Fault> {
        if access.address.space == Space::Param && self.load_parameter(access) {
            return Ok(Flow::Next);
        }
        let total = access.bytes * access.data.len() as u32;
        let usage = match access.order {
            Order::Weak => Usage::Read,
            _ => Usage::StrongRead,
        };
        let words = access.bytes == 4 && is_words(&access.data);
        if words
            && usage == Usage::Read
            && let Some(host) = self.reach_plain(&access.address, total, usage)
        {
            let file = &mut self.warp.file;
            match &access.data[..] {
                [reg] => *file.edit::<u32>(reg.slot) = raw::get::<[u32; 32]>(host),
                [_, _] => side_by_side::<2>(file, &access.data, host),
                _ => side_by_side::<4>(file, &access.data, host),
            }
            return Ok(Flow::Next);
        }
        let reach = self.reach(&access.address, total, total, usage)?;
        let words = words && reach.contiguous;
        match access.data.len() {
            2 if words => side_by_side::<2>(&mut self.warp.file, &access.data, reach.host[0]),
            4 if words => side_by_side::<4>(&mut self.warp.file, &access.data, reach.host[0]),
            _ => self.load_each(access, &reach),
        }
        if access.order != Order::Weak {
            self.acquire_at(&access.address);
        }
        Ok(Flow::Next)
    }

    /// One parameter of the launch, the same for all lanes; false when it is not that simple.
    fn load_parameter(&mut self, access: &Access) -> bool {
        let [reg] = &access.data[..] else {
            return false;
        };
        let grid = self.worker.grid;
        let end = access
            .address
            .offset
            .saturating_add(i64::from(access.bytes));
        let fits = access.address.offset >= 0 && end <= grid.launch.params.len() as i64;
        if access.address.base.is_some() || !fits || access.bytes > 8 || !reg.slot.is_some() {
            return false;
        }
        let at = grid.params + access.address.offset as u64;
        let value = fetch(at, access.bytes, access.signed);
        match reg.class {
            Class::W32 => {
                self.warp
                    .file
                    .write::<u32>(reg.slot, self.mask, &[value as u32; 32]);
            }
            Class::W64 => self
                .warp
                .file
                .write::<u64>(reg.slot, self.mask, &[value; 32]),
            _ => return false,
        }
        true
    }

    fn load_each(&mut self, access: &Access, reach: &Reach) {
        let alone = access.data.len() == 1;
        for (index, reg) in access.data.iter().enumerate() {
            if reg.slot.is_some() {
                let offset = index as u64 * u64::from(access.bytes);
                read_register(
                    &mut self.warp.file,
                    self.mask,
                    access,
                    reg,
                    reach,
                    offset,
                    alone,
                );
            }
        }
    }

    /// `st`
    pub fn store(&mut self, access: &Access) -> Result<Flow, Fault> {
        let total = access.bytes * access.data.len() as u32;
        if access.order != Order::Weak {
            self.release_at(&access.address);
        }
        let usage = match access.order {
            Order::Weak => Usage::Write,
            _ => Usage::StrongWrite,
        };
        let words = access.bytes == 4 && is_words(&access.data);
        if words
            && usage == Usage::Write
            && let Some(host) = self.reach_plain(&access.address, total, usage)
        {
            let file = &self.warp.file;
            match &access.data[..] {
                [reg] => raw::put(host, *file.read::<u32>(reg.slot)),
                [_, _] => interleave::<2>(file, &access.data, host),
                _ => interleave::<4>(file, &access.data, host),
            }
            return Ok(Flow::Next);
        }
        if access.data.iter().any(|reg| !reg.slot.is_some()) {
            return self.store_some(access, usage);
        }
        let reach = self.reach(&access.address, total, total, usage)?;
        let words = words && reach.contiguous;
        match access.data.len() {
            2 if words => interleave::<2>(&self.warp.file, &access.data, reach.host[0]),
            4 if words => interleave::<4>(&self.warp.file, &access.data, reach.host[0]),
            count => {
                for (index, reg) in access.data.iter().enumerate() {
                    let offset = index as u64 * u64::from(access.bytes);
                    write_register(
                        &self.warp.file,
                        self.mask,
                        access.bytes,
                        reg,
                        &reach,
                        offset,
                        count == 1,
                    );
                }
            }
        }
        self.settle_overwrites();
        Ok(Flow::Next)
    }

    /// A vector of which some elements are left out: what lies in their places stays.
    fn store_some(&mut self, access: &Access, usage: Usage) -> Result<Flow, Fault> {
        for (index, reg) in access.data.iter().enumerate() {
            if !reg.slot.is_some() {
                continue;
            }
            let mut address = access.address;
            let offset = index as i64 * i64::from(access.bytes);
            address.offset = address.offset.wrapping_add(offset);
            let reach = self.reach(&address, access.bytes, access.bytes, usage)?;
            let file = &self.warp.file;
            write_register(file, self.mask, access.bytes, reg, &reach, 0, true);
        }
        self.settle_overwrites();
        Ok(Flow::Next)
    }
}

/// Whether all registers of a vector of one, two or four are words, and wanted.
fn is_words(data: &[Reg]) -> bool {
    matches!(data.len(), 1 | 2 | 4)
        && data
            .iter()
            .all(|r| r.class == Class::W32 && r.slot.is_some())
}

/// Loads vectors of `N` words that lie side by side, for all lanes.
fn side_by_side<const N: usize>(file: &mut File, data: &[Reg], host: u64) {
    let all = raw::get::<[[u32; N]; 32]>(host);
    for (index, reg) in data.iter().enumerate().take(N) {
        let to = file.edit::<u32>(reg.slot);
        for lane in 0..32 {
            to[lane] = all[lane][index];
        }
    }
}

/// Stores them.
fn interleave<const N: usize>(file: &File, data: &[Reg], host: u64) {
    let mut all = [[0u32; N]; 32];
    for (index, reg) in data.iter().enumerate().take(N) {
        let from = file.read::<u32>(reg.slot);
        for lane in 0..32 {
            all[lane][index] = from[lane];
        }
    }
    raw::put(host, all);
}

/// Loads one register of the lanes.
fn read_register(
    file: &mut File,
    mask: u32,
    access: &Access,
    reg: &Reg,
    reach: &Reach,
    offset: u64,
    alone: bool,
) {
    let bytes = access.bytes;
    match (reg.class, bytes) {
        (Class::W32, 4) if alone && reach.contiguous => {
            *file.edit::<u32>(reg.slot) = raw::get::<[u32; 32]>(reach.host[0]);
        }
        (Class::W64, 8) if alone && reach.contiguous => {
            *file.edit::<u64>(reg.slot) = raw::get::<[u64; 32]>(reach.host[0]);
        }
        (Class::W32, 4) if mask == u32::MAX => {
            let to = file.edit::<u32>(reg.slot);
            for lane in 0..32 {
                to[lane] = raw::get::<u32>(reach.host[lane] + offset);
            }
        }
        (Class::W32, _) => {
            let to = file.edit::<u32>(reg.slot);
            let mut left = mask;
            while left != 0 {
                let lane = left.trailing_zeros() as usize;
                to[lane] = fetch(reach.host[lane] + offset, bytes, access.signed) as u32;
                left &= left - 1;
            }
        }
        (Class::W64, _) => {
            let to = file.edit::<u64>(reg.slot);
            let mut left = mask;
            while left != 0 {
                let lane = left.trailing_zeros() as usize;
                to[lane] = fetch(reach.host[lane] + offset, bytes, access.signed);
                left &= left - 1;
            }
        }
        (Class::W128, _) => {
            for half in 0..2u32 {
                let to = file.edit::<u64>(Slot(reg.slot.0 + half * 256));
                let mut left = mask;
                while left != 0 {
                    let lane = left.trailing_zeros() as usize;
                    let at = reach.host[lane] + offset + u64::from(half) * 8;
                    to[lane] = raw::get::<u64>(at);
                    left &= left - 1;
                }
            }
        }
        (Class::Pred, _) => {}
    }
}

/// Stores one register of the lanes, the lowest lane first.
fn write_register(
    file: &File,
    mask: u32,
    bytes: u32,
    reg: &Reg,
    reach: &Reach,
    offset: u64,
    alone: bool,
) {
    match (reg.class, bytes) {
        (Class::W32, 4) if alone && reach.contiguous => {
            raw::put(reach.host[0], *file.read::<u32>(reg.slot));
        }
        (Class::W64, 8) if alone && reach.contiguous => {
            raw::put(reach.host[0], *file.read::<u64>(reg.slot));
        }
        (Class::W32, _) => {
            let from = file.read::<u32>(reg.slot);
            let mut left = mask;
            while left != 0 {
                let lane = left.trailing_zeros() as usize;
                deposit(reach.host[lane] + offset, bytes, u64::from(from[lane]));
                left &= left - 1;
            }
        }
        (Class::W64, _) => {
            let from = file.read::<u64>(reg.slot);
            let mut left = mask;
            while left != 0 {
                let lane = left.trailing_zeros() as usize;
                deposit(reach.host[lane] + offset, bytes, from[lane]);
                left &= left - 1;
            }
        }
        (Class::W128, _) => {
            for half in 0..2u32 {
                let from = file.read::<u64>(Slot(reg.slot.0 + half * 256));
                let mut left = mask;
                while left != 0 {
                    let lane = left.trailing_zeros() as usize;
                    let at = reach.host[lane] + offset + u64::from(half) * 8;
                    raw::put(at, from[lane]);
                    left &= left - 1;
                }
            }
        }
        (Class::Pred, _) => {}
    }
}
