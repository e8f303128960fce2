//! Which block used which bytes of global memory last.
//!
//! A record stands for 4 bytes and holds a block, a moment, and which of the bytes. Another block's
//! record is no race when that block has released since, and this one has acquired since: the
//! moments of both are counted by one clock of the launch.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use crate::simulator::memory::raw::Zeroed;

/// The last writers and readers of global memory, for one launch.
pub struct GlobalShadow {
    /// By place in the snapshot: for each grain the last write, then the last read.
    tables: Vec<OnceLock<Option<Zeroed>>>,
    /// When each block has released last.
    released: Vec<AtomicU64>,
}

/// The block that looks, and when it has released and acquired last.
pub struct Now {
    block: u64,
    time: u64,
    acquired: u64,
}

/// Bytes of one record.
const GRAIN: u64 = 4;
/// The last moment that a record can hold; from then on everything counts as ordered.
const LAST: u64 = (1 << 30) - 1;

/// A record: the block and one in bits 34 and up, the moment in bits 4 to 33, the bytes below.
fn pack(block: u64, time: u64, bytes: u64) -> u64 {
    (block + 1) << 34 | time.min(LAST) << 4 | bytes
}

impl GlobalShadow {
    /// Nobody used anything of so many allocations.
    pub fn new(allocations: usize, blocks: u64) -> Option<Self> {
        if blocks > 1 << 22 {
            return None;
        }
        Some(Self {
            tables: (0..allocations).map(|_| OnceLock::new()).collect(),
            released: (0..blocks).map(|_| AtomicU64::new(0)).collect(),
        })
    }
    /// Says that a block has released at a moment.
    pub fn release(&self, block: u64, time: u32) {
        if let Some(cell) = self.released.get(block as usize) {
            cell.store(u64::from(time), Ordering::Relaxed);
        }
    }
    /// The block that looks. `released` is the moment of its last release.
    pub fn now(&self, block: u64, released: u32, acquired: u32) -> Now {
        Now {
            block,
            time: u64::from(released),
            acquired: u64::from(acquired),
        }
    }
    /// Notes an access to an allocation of `size` bytes; gives the block on the other side of a race, whether that
    /// one wrote, and where it is.
    pub fn note(
        &self,
        index: usize,
        size: u64,
        offset: u64,
        length: u64,
        write: bool,
        now: &Now,
    ) -> Option<(u64, bool, u64)> {
        let table = self.tables.get(index)?;
        let table = table.get_or_init(|| Zeroed::new(size.div_ceil(GRAIN).checked_mul(16)?, 16));
        let table = table.as_ref()?;
        let mut found = None;
        let end = offset + length;
        for word in offset / GRAIN..end.div_ceil(GRAIN) {
            let low = offset.saturating_sub(word * GRAIN).min(GRAIN);
            let high = (end - word * GRAIN).min(GRAIN);
            let mask = ((1u64 << high) - 1) & !((1u64 << low) - 1);
            let mine = pack(now.block, now.time, mask);
            let races = |record: u64| -> Option<u64> {
                let other = (record >> 34).wrapping_sub(1);
                if record == 0 || other == now.block || record & mask == 0 {
                    return None;
                }
                let time = record >> 4 & LAST;
                // After its last release by then, so another release must have followed.
                let released = self.released.get(other as usize);
                let released = released.map_or(0, |r| r.load(Ordering::Relaxed));
                let ordered = time == LAST || (released > time && now.acquired > time);
                (!ordered).then_some(other)
            };
            let writes = table.word(word * 2);
            let reads = table.word(word * 2 + 1);
            let last = writes.load(Ordering::Relaxed);
            if found.is_none() {
                found = races(last).map(|other| (other, true, word * GRAIN + low));
            }
            let place = if write { writes } else { reads };
            if write && found.is_none() {
                let read = reads.load(Ordering::Relaxed);
                found = races(read).map(|other| (other, false, word * GRAIN + low));
            }
            let old = place.load(Ordering::Relaxed);
            let same = old >> 4 == mine >> 4;
            place.store(if same { old | mine } else { mine }, Ordering::Relaxed);
        }
        found
    }
}
