//! Right values from the PTX ISA's tables and from exact arithmetic.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod arithmetic;
mod bits;
mod convert;
mod exact;
mod half;
mod int;
mod packed;
mod special;

/// A small generator with a fixed seed.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Bits with long runs of zeros and ones, which find carries and ties.
    pub(super) fn runs(&mut self) -> u64 {
        let mut bits = 0;
        for _ in 0..self.below(5) + 1 {
            let length = self.below(64) as u32;
            let run = (u64::MAX >> length) << self.below(64);
            bits ^= run;
        }
        bits
    }
}
