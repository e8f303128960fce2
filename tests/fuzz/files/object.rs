//! Changes of ELF objects: of their header, their tables and their sections.

use super::bytes;
use crate::fuzz::random::Random;

/// How an ELF object begins.
pub const MAGIC: &[u8] = b"\x7fELF";

/// Bytes of the header, of a row in the table of sections, and where things stand in them.
const HEADER: usize = 64;
const ROW: usize = 64;
const TABLE_PLACE: usize = 0x28;
const TABLE_ROWS: usize = 0x3c;

/// Changes an object in one way.
pub fn change(file: &mut Vec<u8>, random: &mut Random) {
    let number = |at: usize, width: usize| {
        let bytes = file.get(at..at + width)?;
        let mut whole = [0; 8];
        whole[..width].copy_from_slice(bytes);
        usize::try_from(u64::from_le_bytes(whole)).ok()
    };
    let table = number(TABLE_PLACE, 8).unwrap_or(0);
    let rows = number(TABLE_ROWS, 2).unwrap_or(0);
    let (start, size) = match random.below(5) {
        0 => (0, HEADER),
        1 | 2 => (table, rows * ROW),
        // Some section: code, relocations, symbols, names.
        3 => {
            let row = table.saturating_add(ROW * random.below(rows.max(1)));
            let place = number(row.saturating_add(0x18), 8).unwrap_or(0);
            (place, number(row.saturating_add(0x20), 8).unwrap_or(0))
        }
        _ => {
            let other = file.clone();
            return bytes::change(file, &other, random);
        }
    };
    let width = random.pick(&[1, 2, 4, 8]);
    let at = random.below(size.clamp(1, 1 << 20)) / width * width;
    let Some(place) = start
        .checked_add(at)
        .and_then(|at| file.get_mut(at..at + width))
    else {
        return;
    };
    let mut old = [0; 8];
    old[..width].copy_from_slice(place);
    let new = bytes::number(u64::from_le_bytes(old), random);
    place.copy_from_slice(&new.to_le_bytes()[..width]);
}
