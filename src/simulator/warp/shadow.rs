//! Which warp used which bytes of global memory last.
//!
//! A record stands for 4 bytes and holds a block, a warp of it, a moment, and which of the bytes.
//! Moments are counted by one clock of the launch, which is also what the warps' own clocks count.
//! Within a cluster a record is no race when this warp's clock has seen its moment. Another
//! cluster's is none when that block has released since, and this one has acquired since.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use crate::simulator::memory::Clock;
use crate::simulator::memory::raw::Zeroed;

/// The last writers and readers of global memory, for one launch.
pub struct GlobalShadow {
    /// By place in the snapshot, once they are used.
    tables: Vec<OnceLock<Vec<Chunk>>>,
    /// When each block has released last.
    released: Vec<AtomicU64>,
}

/// Who looks.
pub struct Now<'a> {
    /// The block's number.
    pub block: u64,
    /// The warp within the block.
    pub warp: u32,
    /// The moment of the warp's last release, or of its block's if that is later.
    pub time: u32,
    /// When the block has acquired last.
    pub acquired: u32,
    /// What the warp has seen of its cluster.
    pub clock: &'a Clock,
    /// The numbers of the cluster's blocks, by rank.
    pub mates: &'a [u64],
    /// Warps of a block.
    pub warps: usize,
}

/// The earlier side of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clash {
    /// Its block and warp; `None` when it is one of several that read.
    pub who: Option<(u64, u32)>,
    /// Whether it wrote.
    pub write: bool,
    /// Where in the allocation the words begin that both used.
    pub offset: u64,
    /// How many bytes of them follow each other.
    pub length: u64,
}

/// For each grain of a piece of an allocation the last write, then a read; once it is used.
type Chunk = OnceLock<Option<Zeroed>>;

/// Bytes of one record.
const GRAIN: u64 = 4;
/// Grains of a chunk: allocations may be far larger than what a launch uses of them.
const CHUNK: u64 = 1 << 16;
/// The last moment that a record can hold; from then on everything counts as ordered.
pub const LAST: u32 = (1 << 30) - 1;
/// Most warps of a block and most blocks that a record can tell apart.
const MOST_WARPS: u64 = 32;
const MOST_BLOCKS: u64 = 1 << 22;

/// All bytes of a record.
const WHOLE: u64 = 15;
/// Others have read the whole word as well, and nothing orders them.
const OTHERS: u64 = 1 << 4;

/// A record: the block and one in bits 40 and up, the warp in bits 35 to 39, the moment in bits 5
/// to 34, whether others read too, the bytes.
fn pack(now: &Now<'_>, bytes: u64) -> u64 {
    let warp = u64::from(now.warp) % MOST_WARPS;
    (now.block + 1) << 40 | warp << 35 | u64::from(now.time.min(LAST)) << 5 | bytes
}

impl Now<'_> {
    /// Whether a record is another warp's, and nothing orders it before now.
    fn is_loose(&self, record: u64, released: &[AtomicU64]) -> bool {
        let other = (record >> 40).wrapping_sub(1);
        let warp = (record >> 35) % MOST_WARPS;
        let time = (record >> 5) as u32 & LAST;
        if record == 0 || time == LAST || (other == self.block && warp == u64::from(self.warp)) {
            return false;
        }
        if let Some(rank) = self.mates.iter().position(|block| *block == other) {
            return self.clock.seen((rank * self.warps) as u16 + warp as u16) < time;
        }
        // After its last release by then, so another release must have followed.
        let released = released.get(other as usize);
        let released = released.map_or(0, |r| r.load(Ordering::Relaxed));
        released <= u64::from(time) || self.acquired <= time
    }
}

impl GlobalShadow {
    /// Nobody used anything of so many allocations.
    pub fn new(allocations: usize, blocks: u64) -> Option<Self> {
        if blocks >= MOST_BLOCKS {
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
    /// Notes an access to an allocation of `size` bytes; gives the other side of a race.
    pub fn note(
        &self,
        index: usize,
        size: u64,
        offset: u64,
        length: u64,
        write: bool,
        now: &Now<'_>,
    ) -> Option<Clash> {
        let table = self.tables.get(index)?;
        let chunks = size.div_ceil(GRAIN).div_ceil(CHUNK);
        let table = table.get_or_init(|| (0..chunks).map(|_| Chunk::new()).collect());
        let mut found: Option<Clash> = None;
        let end = offset + length;
        for word in offset / GRAIN..end.div_ceil(GRAIN) {
            let low = offset.saturating_sub(word * GRAIN).min(GRAIN);
            let high = (end - word * GRAIN).min(GRAIN);
            let mask = ((1u64 << high) - 1) & !((1u64 << low) - 1);
            let mine = pack(now, mask);
            let races = |record| record & mask != 0 && now.is_loose(record, &self.released);
            let mut hit = |record: u64, write| {
                let other = (record >> 40).wrapping_sub(1);
                let warp = ((record >> 35) % MOST_WARPS) as u32;
                let own = other == now.block && warp == now.warp;
                let who = (!own).then_some((other, warp));
                match &mut found {
                    None => {
                        found = Some(Clash {
                            who,
                            write,
                            offset: word * GRAIN + low,
                            length: high - low,
                        });
                    }
                    Some(first) => {
                        let follows = first.offset + first.length == word * GRAIN + low;
                        if follows && (first.who, first.write) == (who, write) {
                            first.length += high - low;
                        }
                    }
                }
            };
            let chunk = table.get((word / CHUNK) as usize)?;
            let chunk = chunk.get_or_init(|| Zeroed::new(CHUNK * 16, 16)).as_ref()?;
            let place = word % CHUNK * 2;
            let (writes, reads) = (chunk.word(place), chunk.word(place + 1));
            let last = writes.load(Ordering::Relaxed);
            let race = last != 0 && races(last);
            if race {
                hit(last, true);
            }
            let read = reads.load(Ordering::Relaxed);
            if write {
                // Its own record says that others read too: if nothing happened since, they still
                // wait for nobody.
                let both = read & OTHERS != 0 && read >> 5 == mine >> 5;
                if !race && read != 0 && (both || races(read)) {
                    hit(read, false);
                }
                let same = last >> 5 == mine >> 5;
                writes.store(if same { last | mine } else { mine }, Ordering::Relaxed);
            } else if read >> 5 == mine >> 5 {
                if read | mine != read {
                    reads.store(read | mine, Ordering::Relaxed);
                }
            } else if !now.is_loose(read, &self.released) {
                reads.store(mine, Ordering::Relaxed);
            } else if read & WHOLE == WHOLE && mask == WHOLE && read & OTHERS == 0 {
                // The first of several readers stays.
                reads.store(read | OTHERS, Ordering::Relaxed);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Warp `warp` of block `block` at a moment, having seen warp 0 of block 0 up to `seen`.
    fn look(block: u64, warp: u32, time: u32, seen: u32, check: impl FnOnce(&Now<'_>)) {
        let mut clock = Clock::new(4, false);
        clock.see(0, seen);
        check(&Now {
            block,
            warp,
            time,
            acquired: 0,
            clock: &clock,
            mates: &[block],
            warps: 4,
        });
    }

    #[test]
    fn several_readers_and_then_a_writer() {
        let run = |writer: (u64, u32), seen, time| {
            let shadow = GlobalShadow::new(1, 2).expect("room");
            let note = |(block, warp), time, seen, write| {
                let mut found = None;
                look(block, warp, time, seen, |now| {
                    found = shadow.note(0, 1 << 20, 600_000, 4, write, now);
                });
                found
            };
            assert_eq!(note((0, 0), 5, 0, false), None);
            assert_eq!(note((0, 1), 6, 0, false), None);
            note(writer, time, seen, true)
        };
        let clash = |who| {
            Some(Clash {
                who,
                write: false,
                offset: 600_000,
                length: 4,
            })
        };
        // The second reader, and a third warp: the first reader's record stays.
        assert_eq!(run((0, 1), 0, 6), clash(Some((0, 0))));
        assert_eq!(run((0, 2), 0, 6), clash(Some((0, 0))));
        // The first reader knows of others while it has met nobody.
        assert_eq!(run((0, 0), 0, 5), clash(None));
        assert_eq!(run((0, 0), 0, 7), None);
        assert_eq!(run((0, 1), 5, 6), None);
        // Another block.
        assert_eq!(run((1, 0), 0, 6), clash(Some((0, 0))));
    }
}
