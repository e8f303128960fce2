//! The rules of images that a CUDA driver loads. It takes an address and no length, so an image must
//! say where it ends, and end there.
//!
//! Sources: the System V ABI for ELF-64; fat binaries as `cuobjdump` and open-source loaders read
//! them.

use crate::executable::Code;

/// How an ELF object begins, and what says that it is one of 64 bits in little-endian order.
const ELF: &[u8] = b"\x7fELF";
const WIDE_AND_LITTLE: [u8; 2] = [2, 1];
/// Bytes of the header, and of the rows of its two tables: of sections and of segments.
const ELF_HEADER: usize = 64;
const SECTION: Table = Table {
    place: 0x28,
    row_size: 0x3a,
    rows: 0x3c,
    row: 64,
    content: (0x18, 0x20),
};
const SEGMENT: Table = Table {
    place: 0x20,
    row_size: 0x36,
    rows: 0x38,
    row: 56,
    content: (0x08, 0x20),
};
/// The type of a section without bytes in the file, and where the type stands.
const NO_BITS: u64 = 8;
const SECTION_TYPE: usize = 4;

/// How a fat binary begins, and a structure that holds the address of one.
const FAT: &[u8] = &[0x50, 0xed, 0x55, 0xba];
const WRAPPER: &[u8] = &[0xb1, 0x43, 0x62, 0x46];
/// Least bytes of the header of a fat binary, and of one of its entries.
const FAT_HEADER: u64 = 16;
const FAT_ENTRY: u64 = 64;

/// Where the header says where a table is, and where its rows say where their content is.
struct Table {
    place: usize,
    row_size: usize,
    rows: usize,
    row: u64,
    content: (usize, usize),
}

/// Says what is wrong with an image, if anything.
pub(super) fn fault(code: &Code) -> Option<String> {
    let bytes = code.bytes();
    if bytes.starts_with(ELF) {
        return elf(bytes).is_none().then(|| {
            format!(
                "an ELF object of {} bytes that names bytes beyond",
                bytes.len()
            )
        });
    }
    if bytes.starts_with(FAT) {
        return fat(bytes).is_none().then(|| {
            format!(
                "a fat binary of {} bytes that names bytes beyond",
                bytes.len()
            )
        });
    }
    if bytes.starts_with(WRAPPER) {
        return Some("an address of a fat binary instead of one".to_owned());
    }
    None
}

/// The number of up to eight bytes there.
fn number(bytes: &[u8], at: u64, width: usize) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let found = bytes.get(at..at.checked_add(width)?)?;
    let mut whole = [0; 8];
    whole[..width].copy_from_slice(found);
    Some(u64::from_le_bytes(whole))
}

/// Whether a range is in the bytes.
fn is_inside(bytes: &[u8], start: u64, size: u64) -> Option<()> {
    let end = start.checked_add(size)?;
    (end <= bytes.len() as u64).then_some(())
}

/// Whether the tables and all that they name are in the bytes.
fn elf(bytes: &[u8]) -> Option<()> {
    if bytes.len() < ELF_HEADER || bytes[4..6] != WIDE_AND_LITTLE {
        return None;
    }
    for table in [SECTION, SEGMENT] {
        let start = number(bytes, table.place as u64, 8)?;
        let size = number(bytes, table.row_size as u64, 2)?;
        let rows = number(bytes, table.rows as u64, 2)?;
        if rows == 0 {
            continue;
        }
        if size < table.row {
            return None;
        }
        is_inside(bytes, start, rows * size)?;
        for row in 0..rows {
            let at = start + row * size;
            let is_section = table.row == SECTION.row;
            let kind = number(bytes, at + SECTION_TYPE as u64, 4)?;
            if is_section && kind == NO_BITS {
                continue;
            }
            let place = number(bytes, at + table.content.0 as u64, 8)?;
            let size = number(bytes, at + table.content.1 as u64, 8)?;
            is_inside(bytes, place, size)?;
        }
    }
    Some(())
}

/// Whether the entries, which follow each other behind the header, are in the bytes.
fn fat(bytes: &[u8]) -> Option<()> {
    let header = number(bytes, 6, 2).filter(|&size| size >= FAT_HEADER)?;
    let size = number(bytes, 8, 8)?;
    is_inside(bytes, header, size)?;
    let end = header + size;
    let mut at = header;
    while at < end {
        let entry = number(bytes, at + 4, 4).filter(|&size| size >= FAT_ENTRY)?;
        let content = number(bytes, at + 8, 8)?;
        let next = at.checked_add(entry)?.checked_add(content)?;
        if next > end {
            return None;
        }
        at = next;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(bytes: &mut [u8], at: usize, value: u64, width: usize) {
        bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
    }

    /// An object with one section of 16 bytes, one without bytes, and one segment.
    fn object() -> Vec<u8> {
        let mut bytes = vec![0; 64 + 16 + 2 * 64 + 56];
        bytes[..4].copy_from_slice(ELF);
        bytes[4..6].copy_from_slice(&WIDE_AND_LITTLE);
        for (at, value, width) in [
            (SECTION.place, 80, 8),
            (SECTION.row_size, 64, 2),
            (SECTION.rows, 2, 2),
            (SEGMENT.place, 208, 8),
            (SEGMENT.row_size, 56, 2),
            (SEGMENT.rows, 1, 2),
            (80 + SECTION.content.0, 64, 8),
            (80 + SECTION.content.1, 16, 8),
            (144 + SECTION_TYPE, NO_BITS, 4),
            (144 + SECTION.content.1, 1 << 40, 8),
            (208 + SEGMENT.content.0, 64, 8),
            (208 + SEGMENT.content.1, 16, 8),
        ] {
            put(&mut bytes, at, value, width);
        }
        bytes
    }

    #[test]
    fn objects_name_their_own_bytes() {
        let whole = object();
        assert_eq!(fault(&Code::Cubin(whole.clone())), None);
        for length in 4..whole.len() {
            assert!(
                fault(&Code::Cubin(whole[..length].to_vec())).is_some(),
                "{length}"
            );
        }
        for (at, value, width) in [
            (SECTION.place, u64::MAX, 8),
            (SECTION.rows, 3000, 2),
            (SECTION.row_size, 63, 2),
            (SEGMENT.place, 209, 8),
            (80 + SECTION.content.0, 250, 8),
            (80 + SECTION.content.1, u64::MAX - 63, 8),
            (208 + SEGMENT.content.1, 1 << 32, 8),
            (4, 1, 1),
        ] {
            let mut damaged = whole.clone();
            put(&mut damaged, at, value, width);
            let found = fault(&Code::Cubin(damaged)).unwrap_or_default();
            assert!(found.contains("names bytes beyond"), "{at}: {found}");
        }
    }

    #[test]
    fn fat_binaries_end_where_they_say() {
        let mut whole = vec![0; 16 + 64 + 8];
        whole[..4].copy_from_slice(FAT);
        for (at, value, width) in [(6, 16, 2), (8, 72, 8), (20, 64, 4), (24, 8, 8)] {
            put(&mut whole, at, value, width);
        }
        assert_eq!(fault(&Code::Cubin(whole.clone())), None);
        for length in 4..whole.len() {
            assert!(
                fault(&Code::Cubin(whole[..length].to_vec())).is_some(),
                "{length}"
            );
        }
        for (at, value, width) in [
            (6, 0, 2),
            (8, 73, 8),
            (20, 63, 4),
            (24, 9, 8),
            (24, u64::MAX, 8),
        ] {
            let mut damaged = whole.clone();
            put(&mut damaged, at, value, width);
            assert!(fault(&Code::Cubin(damaged)).is_some(), "{at}: {value}");
        }
    }

    #[test]
    fn no_image_is_an_address() {
        let wrapper = [WRAPPER, &[1, 0, 0, 0], &[0; 16]].concat();
        let found = fault(&Code::Cubin(wrapper)).unwrap_or_default();
        assert!(found.contains("an address"), "{found}");
        assert_eq!(fault(&Code::Ptx(".version 8.6".to_owned())), None);
        assert_eq!(fault(&Code::Cubin(Vec::new())), None);
    }
}
