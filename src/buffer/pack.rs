//! Places blocks of memory that are needed for a while into one range of addresses.
//!
//! Best fit in order of decreasing size, with the whole of all lives known: a block goes into the
//! smallest gap that is free for all its life and holds it, else to the end.

use crate::analysis::Segment;

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
    let mut placed = Placed::new(blocks);
    let mut total = 0;
    let mut busy: Vec<(u64, u64)> = Vec::new();
    for i in order {
        let size = blocks[i].size.max(1).div_ceil(alignment) * alignment;
        placed.during(blocks[i].life, &mut busy);
        let offset = best_gap(&mut busy, size);
        offsets[i] = offset;
        total = total.max(offset + size);
        placed.add(blocks[i].life, offset, offset + size);
    }
    (offsets, total)
}

/// The start of the tightest gap between the busy ranges that holds `size` bytes.
fn best_gap(busy: &mut [(u64, u64)], size: u64) -> u64 {
    busy.sort_unstable();
    let mut best: Option<(u64, u64)> = None;
    let mut end = 0;
    for &(from, to) in busy.iter() {
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

/// Ranges of addresses by the time they are taken, in a tree over the points of time.
struct Placed {
    leaves: usize,
    /// Ranges that are taken for all of a node's time.
    whole: Vec<Vec<(u64, u64)>>,
    /// Ranges that are taken for some of a node's time.
    part: Vec<Vec<(u64, u64)>>,
}

impl Placed {
    fn new(blocks: &[Block]) -> Self {
        let last = blocks.iter().map(|b| b.life.end as usize).max();
        let leaves = (last.unwrap_or(0) + 1).next_power_of_two();
        Self {
            leaves,
            whole: vec![Vec::new(); 2 * leaves],
            part: vec![Vec::new(); 2 * leaves],
        }
    }

    fn add(&mut self, life: Segment, from: u64, to: u64) {
        let mut covering = Vec::new();
        self.nodes(life, &mut covering);
        for &node in &covering {
            self.whole[node].push((from, to));
        }
        let mut above: Vec<usize> = Vec::new();
        for node in covering {
            let mut node = node / 2;
            while node > 0 {
                above.push(node);
                node /= 2;
            }
        }
        above.sort_unstable();
        above.dedup();
        for node in above {
            self.part[node].push((from, to));
        }
    }

    /// The ranges taken at some point of `life`; a range may be listed more than once.
    fn during(&self, life: Segment, out: &mut Vec<(u64, u64)>) {
        out.clear();
        let mut covering = Vec::new();
        self.nodes(life, &mut covering);
        let mut above: Vec<usize> = Vec::new();
        for node in covering {
            out.extend_from_slice(&self.whole[node]);
            out.extend_from_slice(&self.part[node]);
            let mut node = node / 2;
            while node > 0 {
                above.push(node);
                node /= 2;
            }
        }
        above.sort_unstable();
        above.dedup();
        for node in above {
            out.extend_from_slice(&self.whole[node]);
        }
    }

    /// The fewest nodes that together make up `life`.
    fn nodes(&self, life: Segment, out: &mut Vec<usize>) {
        let mut low = life.start as usize + self.leaves;
        let mut high = life.end as usize + self.leaves + 1;
        while low < high {
            if low % 2 == 1 {
                out.push(low);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                out.push(high);
            }
            low /= 2;
            high /= 2;
        }
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
            let blocks: Vec<Block> = (0..200)
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
