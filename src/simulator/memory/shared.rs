//! The shared memory of one block, and what is known of its bytes.
//!
//! Races are found with the clocks of [`Clock`].

use crate::simulator::memory::Clock;
use crate::simulator::memory::raw::Zeroed;

const NOBODY: u16 = u16::MAX;

/// One access to a word: by which party, when, where in the text, and to which of its bytes.
#[derive(Clone, Copy)]
struct Access {
    clock: u32,
    line: u32,
    party: u16,
    bytes: u8,
}

const NONE: Access = Access {
    clock: 0,
    line: 0,
    party: NOBODY,
    bytes: 0,
};

impl Access {
    fn races(&self, bytes: u8, by: &By<'_>) -> bool {
        self.party != NOBODY
            && self.party != by.party
            && self.bytes & bytes != 0
            && by.clock.seen(self.party) < self.clock
    }
}

#[derive(Clone, Copy)]
struct Cell {
    write: Access,
    reads: [Access; 2],
}

/// Who accesses.
pub struct By<'a> {
    /// The party: a warp, or an engine of one.
    pub party: u16,
    /// Its count.
    pub count: u32,
    /// What the warp has seen.
    pub clock: &'a Clock,
    /// The PTX line.
    pub line: u32,
    /// Whether it reads through the async proxy.
    pub proxy: bool,
}

/// The earlier side of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Its party.
    pub party: u16,
    /// Its PTX line.
    pub line: u32,
    /// Whether it wrote.
    pub write: bool,
    /// It is ordered, but the async proxy does not see it.
    pub proxy: bool,
    /// Where the words begin that both used.
    pub offset: u32,
    /// How many bytes of them follow each other.
    pub length: u32,
}

/// The shared memory of one block.
pub struct Shared {
    bytes: Zeroed,
    size: u32,
    written: Vec<u64>,
    cells: Vec<Cell>,
}

impl Shared {
    /// `size` bytes that nobody wrote; `None` when the host has no memory for them.
    pub fn new(size: u32, track_written: bool, track_races: bool) -> Option<Self> {
        let bytes = Zeroed::new(u64::from(size.max(16)), 1024)?;
        let words = if track_written { size.div_ceil(64) } else { 0 };
        let cells = if track_races { size.div_ceil(4) } else { 0 };
        let cell = Cell {
            write: NONE,
            reads: [NONE; 2],
        };
        Some(Self {
            bytes,
            size,
            written: vec![0; words as usize],
            cells: vec![cell; cells as usize],
        })
    }
    /// Its bytes' number.
    pub fn size(&self) -> u32 {
        self.size
    }
    /// The host address of its first byte.
    #[inline(always)]
    pub fn base(&self) -> u64 {
        self.bytes.address()
    }
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes.bytes()[..self.size as usize]
    }
    /// Its bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let size = self.size as usize;
        &mut self.bytes.bytes_mut()[..size]
    }
    /// Whether `offset..offset + length` lies within it.
    #[inline(always)]
    pub fn holds(&self, offset: u32, length: u32) -> bool {
        u64::from(offset) + u64::from(length) <= u64::from(self.size)
    }
    /// Whether it is known which bytes were written.
    #[inline(always)]
    pub fn tracks_written(&self) -> bool {
        !self.written.is_empty()
    }
    /// Whether races are looked for.
    #[inline(always)]
    pub fn tracks_races(&self) -> bool {
        !self.cells.is_empty()
    }
    /// Marks bytes, which lie within, as written.
    #[inline]
    pub fn mark_written(&mut self, offset: u32, length: u32) {
        if self.written.is_empty() || length == 0 {
            return;
        }
        let (from, to) = (offset, offset + length);
        for index in from / 64..=(to - 1) / 64 {
            if let Some(word) = self.written.get_mut(index as usize) {
                *word |= mask(index, from, to);
            }
        }
    }
    /// Whether all those bytes were written, as far as that is known.
    #[inline]
    pub fn is_written(&self, offset: u32, length: u32) -> bool {
        if self.written.is_empty() || length == 0 {
            return true;
        }
        let (from, to) = (offset, offset.saturating_add(length));
        (from / 64..=(to - 1) / 64).all(|index| {
            let want = mask(index, from, to);
            self.written
                .get(index as usize)
                .is_none_or(|word| word & want == want)
        })
    }

    /// Notes an access to bytes that lie within; gives the earlier access that nothing orders
    /// before it, if there is one. Atomics neither conflict with each other nor are noted.
    pub fn note(&mut self, offset: u32, length: u32, write: bool, by: &By<'_>) -> Option<Conflict> {
        let mut found: Option<Conflict> = None;
        let (from, to) = (offset, offset.saturating_add(length));
        for index in from / 4..to.div_ceil(4) {
            let low = from.saturating_sub(index * 4).min(4);
            let high = (to - index * 4).min(4);
            let bytes = ((1u8 << high) - 1) & !((1u8 << low) - 1);
            let Some(cell) = self.cells.get_mut(index as usize) else {
                continue;
            };
            let mut hit = |access: &Access, write, proxy| match &mut found {
                None => {
                    found = Some(Conflict {
                        party: access.party,
                        line: access.line,
                        write,
                        proxy,
                        offset: index * 4 + low,
                        length: high - low,
                    });
                }
                Some(first) => {
                    let follows = first.offset + first.length == index * 4 + low;
                    if follows && (first.party, first.write) == (access.party, write) {
                        first.length += high - low;
                    }
                }
            };
            let last = cell.write;
            if last.races(bytes, by) {
                hit(&last, true, false);
            } else if by.proxy
                && !write
                && last.party != NOBODY
                && last.bytes & bytes != 0
                && !by.clock.proxy_sees(last.party, last.clock)
            {
                hit(&last, true, true);
            } else if write && let Some(read) = cell.reads.iter().find(|r| r.races(bytes, by)) {
                hit(read, false, false);
            }
            let access = Access {
                clock: by.count,
                line: by.line,
                party: by.party,
                bytes,
            };
            let is_mine = |a: &Access| a.party == by.party || a.party == NOBODY;
            if write {
                merge(&mut cell.write, access);
            } else if let Some(mine) = cell.reads.iter_mut().find(|a| is_mine(a)) {
                merge(mine, access);
            } else {
                // The older of the two makes room.
                let first = &cell.reads[0];
                let older = usize::from(by.clock.seen(first.party) < first.clock);
                cell.reads[older] = access;
            }
        }
        found
    }
}

/// The bits of `from..to` within the word `index`.
#[inline]
fn mask(index: u32, from: u32, to: u32) -> u64 {
    let low = from.saturating_sub(index * 64).min(64);
    let high = (to - index * 64).min(64);
    let ones = |n: u32| if n >= 64 { u64::MAX } else { (1u64 << n) - 1 };
    ones(high) & !ones(low)
}

fn merge(cell: &mut Access, access: Access) {
    let same = cell.party == access.party && cell.clock == access.clock;
    let bytes = if same { cell.bytes } else { 0 };
    *cell = access;
    cell.bytes |= bytes;
}
