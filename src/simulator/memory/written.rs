//! Which bytes somebody wrote: one bit a byte.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use crate::simulator::memory::raw;

/// One bit for each byte of a stretch of memory. Costs nothing where it was never touched.
pub struct Written {
    words: raw::Zeroed,
    length: u64,
}

impl Written {
    /// Nothing written of `length` bytes; `None` when the host has no memory for it.
    pub fn new(length: u64) -> Option<Self> {
        let words = raw::Zeroed::new(length.div_ceil(64).max(1).checked_mul(8)?, 8)?;
        Some(Self { words, length })
    }
    #[inline]
    fn word(&self, index: u64) -> &AtomicU64 {
        self.words.word(index)
    }
    /// The mask of the bits `from..to` within word `index`.
    #[inline]
    fn mask(index: u64, from: u64, to: u64) -> u64 {
        let low = from.saturating_sub(index * 64).min(64);
        let high = (to - index * 64).min(64);
        let ones = |n: u64| if n >= 64 { u64::MAX } else { (1u64 << n) - 1 };
        ones(high) & !ones(low)
    }
    /// Marks `from..from + length` as written, or as not.
    #[inline]
    pub fn set(&self, from: u64, length: u64, written: bool) {
        let to = from.saturating_add(length).min(self.length);
        if from >= to {
            return;
        }
        for index in from / 64..=(to - 1) / 64 {
            let mask = Self::mask(index, from, to);
            let word = self.word(index);
            let now = word.load(Ordering::Relaxed);
            if written && now & mask != mask {
                word.fetch_or(mask, Ordering::Relaxed);
            } else if !written && now & mask != 0 {
                word.fetch_and(!mask, Ordering::Relaxed);
            }
        }
    }
    /// Whether all of `from..from + length` was written.
    #[inline]
    pub fn all(&self, from: u64, length: u64) -> bool {
        let to = from.saturating_add(length).min(self.length);
        if from >= to {
            return true;
        }
        (from / 64..=(to - 1) / 64).all(|index| {
            let mask = Self::mask(index, from, to);
            self.word(index).load(Ordering::Relaxed) & mask == mask
        })
    }
    /// Copies the bits of `length` bytes at `from` in `source` to `to`.
    pub fn copy(&self, to: u64, source: &Written, from: u64, length: u64) {
        let mut done = 0;
        while done < length {
            // Whole words where both sides allow it, else byte by byte.
            let step = if (to + done).is_multiple_of(64)
                && (from + done).is_multiple_of(64)
                && length - done >= 64
            {
                let bits = source.word((from + done) / 64).load(Ordering::Relaxed);
                self.word((to + done) / 64).store(bits, Ordering::Relaxed);
                64
            } else {
                self.set(to + done, 1, source.all(from + done, 1));
                1
            };
            done += step;
        }
    }
}
