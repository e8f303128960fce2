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
    /// The first bytes of `from..from + length` that were not written: where, and how many follow
    /// each other.
    pub fn gap(&self, from: u64, length: u64) -> Option<(u64, u64)> {
        let to = from.saturating_add(length).min(self.length);
        let start = self.next(from, to, false)?;
        let end = self.next(start, to, true).unwrap_or(to);
        Some((start, end - start))
    }
    /// The first byte of `from..to` that was written, or was not.
    fn next(&self, from: u64, to: u64, written: bool) -> Option<u64> {
        let mut at = from;
        while at < to {
            let word = self.word(at / 64).load(Ordering::Relaxed);
            let wanted = if written { word } else { !word };
            let rest = wanted >> (at % 64);
            if rest != 0 {
                let found = at + u64::from(rest.trailing_zeros());
                return (found < to).then_some(found);
            }
            at = (at / 64 + 1) * 64;
        }
        None
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_found_across_words() {
        let written = Written::new(300).expect("memory");
        assert_eq!(written.gap(10, 100), Some((10, 100)));
        written.set(0, 130, true);
        written.set(200, 100, true);
        assert_eq!(written.gap(0, 300), Some((130, 70)));
        assert_eq!(written.gap(0, 140), Some((130, 10)));
        assert_eq!(written.gap(0, 130), None);
        assert_eq!(written.gap(200, 1000), None);
        written.set(64, 64, false);
        assert_eq!(written.gap(3, 190), Some((64, 64)));
    }
}
