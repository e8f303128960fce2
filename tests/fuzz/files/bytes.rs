//! Changes of bytes that know nothing of what they mean.

use crate::fuzz::random::Random;

/// Bytes that often end something, or count much.
const SPECIAL: &[u8] = &[0, 1, 2, 3, 7, 8, 0x7f, 0x80, 0xfe, 0xff];

/// Numbers at which readers go wrong.
pub const NUMBERS: &[u64] = &[
    0,
    1,
    2,
    3,
    7,
    63,
    64,
    65,
    127,
    128,
    255,
    256,
    4095,
    65_535,
    65_536,
    1 << 20,
    1 << 24,
    i32::MAX as u64,
    1 << 31,
    u32::MAX as u64,
    1 << 32,
    1 << 40,
    1 << 53,
    1 << 61,
    1 << 62,
    i64::MAX as u64,
    1 << 63,
    // Small negative numbers.
    u64::MAX,
    u64::MAX - 1,
    u64::MAX - 7,
    -(1_i64 << 31) as u64,
];

/// A number that is like `old`, or one at which readers go wrong.
pub fn number(old: u64, random: &mut Random) -> u64 {
    match random.below(10) {
        0 => old.wrapping_add(1),
        1 => old.wrapping_sub(1),
        2 => old ^ (1 << random.below(64)),
        3 => old.wrapping_mul(2),
        4 => old.wrapping_neg(),
        5 => random.next() >> random.below(64),
        6 => random.below(16) as u64,
        _ => random.pick(NUMBERS),
    }
}

/// A range of at most `most` bytes; none when there is no byte.
fn range(length: usize, most: usize, random: &mut Random) -> Option<std::ops::Range<usize>> {
    if length == 0 {
        return None;
    }
    let start = random.below(length);
    let size = 1 + random.below(most.min(length - start));
    Some(start..start + size)
}

/// How many times something is repeated: seldom very often.
pub fn times(random: &mut Random) -> usize {
    match random.below(12) {
        0 => 1000 + random.below(20_000),
        1 | 2 => 10 + random.below(100),
        _ => 1 + random.below(3),
    }
}

/// Bytes that grow no further than this.
pub const LARGEST: usize = 1 << 20;

/// Changes some of the bytes; `other` are those of another file.
pub fn change(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let length = bytes.len();
    let Some(part) = range(length, 16, random) else {
        bytes.push(random.pick(SPECIAL));
        return;
    };
    match random.below(12) {
        0 | 1 => bytes[part.start] ^= 1 << random.below(8),
        2 => bytes[part.start] = random.pick(SPECIAL),
        3 => bytes[part.start] = random.below(256) as u8,
        4 => drop(bytes.drain(part)),
        5 => {
            let piece = bytes[part].to_vec();
            let count = times(random).min(LARGEST / piece.len());
            let at = random.below(length + 1);
            bytes.splice(at..at, piece.repeat(count));
        }
        6 => {
            let piece = bytes[part].to_vec();
            let at = random.below(length - piece.len() + 1);
            bytes[at..at + piece.len()].copy_from_slice(&piece);
        }
        7 => {
            if let Some(from) = range(other.len(), 200, random) {
                bytes.splice(part, other[from].iter().copied());
            }
        }
        8 => {
            if let Some(from) = range(other.len(), other.len(), random) {
                bytes.truncate(part.start);
                bytes.extend_from_slice(&other[from]);
            }
        }
        9 => bytes.truncate(part.start),
        10 => {
            // A little-endian number of four or eight bytes.
            let width = random.pick(&[4, 8]);
            let at = part.start / 4 * 4;
            if let Some(place) = bytes.get_mut(at..at + width) {
                let mut old = [0; 8];
                old[..width].copy_from_slice(place);
                let new = number(u64::from_le_bytes(old), random).to_le_bytes();
                place.copy_from_slice(&new[..width]);
            }
        }
        _ => {
            let value = random.pick(SPECIAL);
            bytes[part].fill(value);
        }
    }
}
