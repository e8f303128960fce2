//! The shared memory of one block, and what is known of its bytes.
//!
//! Races are found with vector clocks: each warp counts its own releases, and knows of every other
//! warp up to which count it has seen. Two accesses are ordered when the later one's warp has seen
//! the count at which the earlier one was made.

use crate::simulator::memory::raw::Zeroed;

/// What one warp has seen of every warp of its cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clock(pub Vec<u32>);

impl Clock {
    /// A clock of `warps` warps that have all seen nothing.
    pub fn new(warps: usize) -> Self {
        Self(vec![0; warps])
    }
    /// Takes over what `other` has seen.
    pub fn join(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = (*mine).max(*theirs);
        }
    }
    /// Counts one release of warp `warp`.
    pub fn tick(&mut self, warp: usize) {
        if let Some(count) = self.0.get_mut(warp) {
            *count += 1;
        }
    }
    fn seen(&self, warp: u16) -> u32 {
        self.0.get(usize::from(warp)).copied().unwrap_or(0)
    }
}

const NOBODY: u16 = u16::MAX;

/// One access to a word: by which warp, when, where in the text, and to which of its bytes.
#[derive(Clone, Copy)]
struct Access {
    clock: u32,
    line: u32,
    warp: u16,
    bytes: u8,
}

const NONE: Access = Access {
    clock: 0,
    line: 0,
    warp: NOBODY,
    bytes: 0,
};

impl Access {
    fn races(&self, bytes: u8, warp: u16, clock: &Clock) -> bool {
        self.warp != NOBODY
            && self.warp != warp
            && self.bytes & bytes != 0
            && clock.seen(self.warp) < self.clock
    }
}

#[derive(Clone, Copy)]
struct Cell {
    write: Access,
    reads: [Access; 2],
}

/// The earlier side of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Its warp within the cluster.
    pub warp: u32,
    /// Its PTX line.
    pub line: u32,
    /// Whether it wrote.
    pub write: bool,
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

    /// Notes an access of warp `warp`, whose clock is `clock`, to bytes that lie within; gives the
    /// earlier access that nothing orders before it, if there is one. Atomics neither conflict
    /// with each other nor are noted.
    pub fn note(
        &mut self,
        offset: u32,
        length: u32,
        write: bool,
        warp: u16,
        clock: &Clock,
        line: u32,
    ) -> Option<Conflict> {
        let mut found = None;
        let now = clock.seen(warp);
        let (from, to) = (offset, offset.saturating_add(length));
        for index in from / 4..to.div_ceil(4) {
            let low = from.saturating_sub(index * 4).min(4);
            let high = (to - index * 4).min(4);
            let bytes = ((1u8 << high) - 1) & !((1u8 << low) - 1);
            let Some(cell) = self.cells.get_mut(index as usize) else {
                continue;
            };
            let conflict = |access: &Access, write| Conflict {
                warp: u32::from(access.warp),
                line: access.line,
                write,
            };
            if found.is_none() && cell.write.races(bytes, warp, clock) {
                found = Some(conflict(&cell.write, true));
            }
            let access = Access {
                clock: now,
                line,
                warp,
                bytes,
            };
            if write {
                for read in &cell.reads {
                    if found.is_none() && read.races(bytes, warp, clock) {
                        found = Some(conflict(read, false));
                    }
                }
                merge(&mut cell.write, access);
            } else if cell.reads[0].warp == warp || cell.reads[0].warp == NOBODY {
                merge(&mut cell.reads[0], access);
            } else if cell.reads[1].warp == warp || cell.reads[1].warp == NOBODY {
                merge(&mut cell.reads[1], access);
            } else {
                // The older of the two makes room.
                let older = usize::from(clock.seen(cell.reads[0].warp) < cell.reads[0].clock);
                cell.reads[older] = access;
            }
        }
        found
    }
    /// Forgets who used those bytes: an engine of its own wrote them, ordered by its own means.
    pub fn forget(&mut self, offset: u32, length: u32) {
        let (from, to) = (offset, offset.saturating_add(length));
        for index in from / 4..to.div_ceil(4) {
            if let Some(cell) = self.cells.get_mut(index as usize) {
                cell.write = NONE;
                cell.reads = [NONE; 2];
            }
        }
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
    let same = cell.warp == access.warp && cell.clock == access.clock;
    let bytes = if same { cell.bytes } else { 0 };
    *cell = access;
    cell.bytes |= bytes;
}
