//! Places blocks of memory that are needed for a while into one range of addresses.
//!
//! Best fit in order of decreasing size, with the whole of all lives known: a block goes into the
//! smallest gap that is free for all its life and holds it, else to the end. Of very many blocks only
//! the largest are placed that way; the rest go behind them, first come first served.

use std::collections::BTreeSet;

use crate::analysis::Segment;

/// How many blocks are placed with their whole lives looked at, which takes quadratic time.
const LOOKED_AT: usize = 6000;

/// A block to be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// When it is needed.
    pub life: Segment,
    /// Bytes.
    pub size: u64,
}

/// Offsets of the blocks, each a multiple of `alignment`, and the size of the whole.
pub fn pack(blocks: &[Block], alignment: u64) -> (Vec<u64>, u64) {
    let mut order: Vec<usize> = (0..blocks.len()).collect();
    let length = |b: &Block| b.life.end - b.life.start;
    order.sort_by_key(|&i| {
        let block = &blocks[i];
        (
            std::cmp::Reverse(block.size),
            std::cmp::Reverse(length(block)),
            block.life.start,
            i,
        )
    });
    let mut offsets = vec![0; blocks.len()];
    // Blocks placed so far, by address: first byte, end, life.
    let mut placed: Vec<(u64, u64, Segment)> = Vec::new();
    let mut total = 0;
    let rest = order.split_off(LOOKED_AT.min(order.len()));
    for i in order {
        let size = rounded(&blocks[i], alignment);
        let life = blocks[i].life;
        let offset = best_gap(&placed, life, size);
        offsets[i] = offset;
        total = total.max(offset + size);
        let at = placed.partition_point(|&(from, ..)| from < offset);
        placed.insert(at, (offset, offset + size, life));
    }
    let total = in_order_of_time(blocks, rest, alignment, total, &mut offsets);
    (offsets, total)
}

fn rounded(block: &Block, alignment: u64) -> u64 {
    block.size.max(1).div_ceil(alignment) * alignment
}

/// Places blocks from address `base` on, each when its life starts; gives the end of them all.
fn in_order_of_time(
    blocks: &[Block],
    mut list: Vec<usize>,
    alignment: u64,
    base: u64,
    offsets: &mut [u64],
) -> u64 {
    list.sort_by_key(|&i| (blocks[i].life.start, i));
    let mut end = base;
    let mut free = Ranges::default();
    // The blocks in use by the end of their lives.
    let mut busy: BTreeSet<(u32, usize)> = BTreeSet::new();
    for i in list {
        let now = blocks[i].life.start;
        while let Some(&(over, done)) = busy.first()
            && over < now
        {
            busy.pop_first();
            free.add(
                offsets[done],
                offsets[done] + rounded(&blocks[done], alignment),
            );
        }
        let size = rounded(&blocks[i], alignment);
        let offset = free.take(size).unwrap_or(end);
        offsets[i] = offset;
        end = end.max(offset + size);
        busy.insert((blocks[i].life.end, i));
    }
    end
}

/// The start of the tightest gap of `size` bytes between the blocks that are needed in `life`.
fn best_gap(placed: &[(u64, u64, Segment)], life: Segment, size: u64) -> u64 {
    let mut best: Option<(u64, u64)> = None;
    let mut end = 0;
    for &(from, to, _) in placed.iter().filter(|(.., other)| life.overlaps(*other)) {
        if from > end {
            let gap = from - end;
            if gap >= size && best.is_none_or(|(smallest, _)| gap < smallest) {
                best = Some((gap, end));
            }
        }
        end = end.max(to);
    }
    best.map_or(end, |(_, offset)| offset)
}

/// A set of addresses as ascending ranges that do not touch.
#[derive(Clone, Default)]
struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    fn add(&mut self, from: u64, to: u64) {
        let first = self.0.partition_point(|&(_, end)| end < from);
        let last = self.0.partition_point(|&(start, _)| start <= to);
        if first == last {
            self.0.insert(first, (from, to));
            return;
        }
        let joined = (from.min(self.0[first].0), to.max(self.0[last - 1].1));
        self.0.splice(first..last, [joined]);
    }

    /// Takes `size` bytes out of the tightest range that holds them.
    fn take(&mut self, size: u64) -> Option<u64> {
        let fitting = self.0.iter().enumerate().filter(|(_, r)| r.1 - r.0 >= size);
        let (at, _) = fitting.min_by_key(|(_, r)| r.1 - r.0)?;
        let (from, to) = self.0[at];
        if to - from == size {
            self.0.remove(at);
        } else {
            self.0[at].0 = from + size;
        }
        Some(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(start: u32, end: u32, size: u64) -> Block {
        Block {
            life: Segment { start, end },
            size,
        }
    }

    #[test]
    fn blocks_that_meet_lie_apart() {
        let blocks = [block(0, 2, 100), block(2, 4, 64), block(3, 5, 100)];
        let (offsets, total) = pack(&blocks, 64);
        assert_eq!((offsets, total), (vec![0, 128, 0], 192));
    }

    #[test]
    fn the_tightest_gap_is_taken() {
        // At time 5 the blocks of 256 and 128 bytes are free again.
        let blocks = [
            block(0, 9, 512),
            block(0, 4, 256),
            block(0, 9, 192),
            block(0, 4, 128),
            block(0, 9, 100),
            block(5, 9, 90),
        ];
        let (offsets, total) = pack(&blocks, 64);
        assert_eq!(offsets[..5], [0, 512, 768, 960, 1088]);
        assert_eq!((offsets[5], total), (960, 1216));
    }

    #[test]
    fn random_blocks_never_overlap_and_pack_no_worse_than_twice_the_peak() {
        let mut state = 12345u64;
        let mut random = |bound: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        for round in 0..20 {
            let count = if round == 0 { LOOKED_AT + 500 } else { 200 };
            let blocks: Vec<Block> = (0..count)
                .map(|_| {
                    let start = random(300) as u32;
                    block(start, start + random(40) as u32, random(5000))
                })
                .collect();
            let (offsets, total) = pack(&blocks, 64);
            let size = |b: &Block| b.size.max(1).div_ceil(64) * 64;
            for i in 0..blocks.len() {
                for j in 0..i {
                    let in_time = blocks[i].life.overlaps(blocks[j].life);
                    let (a, b) = (offsets[i], offsets[j]);
                    let in_space = a < b + size(&blocks[j]) && b < a + size(&blocks[i]);
                    assert!(!(in_time && in_space), "round {round}: {i} and {j}");
                }
            }
            let at = |t: u32| {
                let here = |b: &&Block| b.life.start <= t && t <= b.life.end;
                blocks.iter().filter(here).map(size).sum::<u64>()
            };
            let peak = (0..340).map(at).max().unwrap_or(0);
            assert!(
                total < 2 * peak,
                "round {round}: {total} for a peak of {peak}"
            );
        }
    }
}
