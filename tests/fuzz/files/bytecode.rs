//! Changes of MLIR bytecode that keep its outer form: of sections, strings, attributes and the
//! program, with lengths that fit again.
//!
//! Source of the format: MLIR's BytecodeFormat document.

use std::ops::Range;

use super::bytes;
use super::bytes::LARGEST;
use super::bytes::times;
use crate::fuzz::random::Random;

const MAGIC: &[u8] = b"ML\xefR";
const STRINGS: u8 = 0;
const ENTRIES: u8 = 2;
const ENTRY_OFFSETS: u8 = 3;
const IR: u8 = 4;

/// The bit of a section's number that says that its content is aligned, and what fills the gap.
const ALIGNED: u8 = 0x80;
const PADDING: u8 = 0xcb;

/// A section shorter than this is hardly one of a region.
const LEAST_REGION: usize = 8;

#[derive(Clone, Debug)]
struct Section {
    number: u8,
    alignment: Option<u64>,
    content: Vec<u8>,
}

#[derive(Clone, Debug)]
struct File {
    /// The mark, the version and the name of who wrote it.
    head: Vec<u8>,
    sections: Vec<Section>,
}

/// Takes a number; the low zero bits of its first byte count the bytes that follow.
fn varint(rest: &mut &[u8]) -> Option<u64> {
    let (&first, after) = rest.split_first()?;
    if first == 0 {
        let (value, after) = after.split_first_chunk::<8>()?;
        *rest = after;
        return Some(u64::from_le_bytes(*value));
    }
    let more = first.trailing_zeros() as usize;
    let (value, after) = after.split_at_checked(more)?;
    let mut all = [0; 8];
    all[0] = first;
    all[1..=more].copy_from_slice(value);
    *rest = after;
    Some(u64::from_le_bytes(all) >> (more + 1))
}

fn put_varint(value: u64, out: &mut Vec<u8>) {
    let bits = 64 - value.leading_zeros() as usize;
    let more = bits.saturating_sub(1) / 7;
    if more >= 8 {
        out.push(0);
        out.extend(value.to_le_bytes());
    } else {
        let coded = (value << 1 | 1) << more;
        out.extend(&coded.to_le_bytes()[..=more]);
    }
}

fn read(file: &[u8]) -> Option<File> {
    let mut rest = file.strip_prefix(MAGIC)?;
    varint(&mut rest)?;
    let end = rest.iter().position(|b| *b == 0)?;
    rest = &rest[end + 1..];
    let head = file[..file.len() - rest.len()].to_vec();
    let mut sections = Vec::new();
    while let Some((&number, after)) = rest.split_first() {
        rest = after;
        let length = usize::try_from(varint(&mut rest)?).ok()?;
        let mut alignment = None;
        if number & ALIGNED != 0 {
            alignment = Some(varint(&mut rest)?);
            let gap = rest.iter().take_while(|b| **b == PADDING).count();
            rest = &rest[gap..];
        }
        let (content, after) = rest.split_at_checked(length)?;
        rest = after;
        sections.push(Section {
            number: number & !ALIGNED,
            alignment,
            content: content.to_vec(),
        });
    }
    Some(File { head, sections })
}

fn write(file: &File) -> Vec<u8> {
    let mut out = file.head.clone();
    for section in &file.sections {
        let mark = if section.alignment.is_some() {
            ALIGNED
        } else {
            0
        };
        out.push(section.number | mark);
        put_varint(section.content.len() as u64, &mut out);
        if let Some(alignment) = section.alignment {
            put_varint(alignment, &mut out);
            let step = usize::try_from(alignment).unwrap_or(1).clamp(1, 4096);
            while !out.len().is_multiple_of(step) {
                out.push(PADDING);
            }
        }
        out.extend(&section.content);
    }
    out
}

/// Changes bytecode in one way; `other` is another file of bytecode.
pub fn change(file: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    match (read(file), read(other)) {
        (Some(mut own), Some(other)) if !random.one_in(10) => {
            change_file(&mut own, &other, random);
            *file = write(&own);
        }
        _ => bytes::change(file, other, random),
    }
}

fn change_file(file: &mut File, other: &File, random: &mut Random) {
    let count = file.sections.len();
    if count == 0 {
        return;
    }
    let at = random.below(count);
    match random.below(24) {
        0 => {
            let end = file.head.len();
            file.head[random.below(end)] = random.next() as u8;
        }
        1 => drop(file.sections.remove(at)),
        2 => file.sections.swap(at, random.below(count)),
        3 => {
            let section = file.sections[at].clone();
            file.sections.insert(random.below(count), section);
        }
        4 => {
            let number = file.sections[at].number;
            if let Some(section) = other.sections.iter().find(|s| s.number == number) {
                file.sections[at] = section.clone();
            }
        }
        5 => {
            let section = &mut file.sections[at];
            match random.below(3) {
                0 => section.number = random.below(12) as u8,
                1 => section.alignment = Some(bytes::number(8, random)),
                _ => section.alignment = None,
            }
        }
        6..=8 => change_strings(file, other, random),
        9..=12 => change_entries(file, other, random),
        13..=19 => {
            if let Some(section) = file.sections.iter_mut().find(|s| s.number == IR) {
                let place = random.below(section.content.len().max(1));
                change_program(&mut section.content, place, random);
            }
        }
        _ => change_somewhere(&mut file.sections[at].content, random),
    }
}

/// Changes a number or some bytes somewhere.
fn change_somewhere(content: &mut Vec<u8>, random: &mut Random) {
    let place = random.below(content.len().max(1));
    change_number(content, place, random);
}

/// Changes the number that begins at that place, removes it, or has others follow; or else changes
/// bytes behind it.
fn change_number(content: &mut Vec<u8>, at: usize, random: &mut Random) {
    let mut rest = content.get(at..).unwrap_or_default();
    if let Some(old) = varint(&mut rest)
        && !random.one_in(4)
    {
        let length = content.len() - at - rest.len();
        match random.below(8) {
            0 => return drop(content.drain(at..at + length)),
            1 => {
                let end = (at + 1 + random.below(24)).min(content.len());
                let piece = content[at..end].to_vec();
                let times = times(random).min(LARGEST / piece.len());
                content.splice(at..at, piece.repeat(times));
                return;
            }
            _ => {}
        }
        let mut new = Vec::new();
        let value = bytes::number(old, random);
        // A number of the same size leaves the rest where it is.
        let value = if random.one_in(2) {
            value & 0x7f
        } else {
            value
        };
        put_varint(value, &mut new);
        content.splice(at..at + length, new);
    } else {
        let mut tail = content.split_off(at);
        bytes::change(&mut tail, content, random);
        content.extend(tail);
    }
}

/// Changes, removes or adds strings: names of dialects, ops, attributes and symbols.
fn change_strings(file: &mut File, other: &File, random: &mut Random) {
    let strings = |file: &File| {
        let section = file.sections.iter().find(|s| s.number == STRINGS)?;
        read_strings(&section.content)
    };
    let Some((mut own, other)) = strings(file).zip(strings(other)) else {
        return;
    };
    if own.is_empty() {
        return;
    }
    let at = random.below(own.len());
    match random.below(6) {
        0 => drop(own.remove(at)),
        1 => {
            let times = times(random).min(LARGEST / own[at].len().max(1));
            own[at] = own[at].repeat(times);
        }
        2 | 3 if !other.is_empty() => own[at].clone_from(&other[random.below(other.len())]),
        4 => own[at] = own[random.below(own.len())].clone(),
        _ => {
            let seed = own[random.below(own.len())].clone();
            bytes::change(&mut own[at], &seed, random);
        }
    }
    let mut content = Vec::new();
    put_varint(own.len() as u64, &mut content);
    for text in own.iter().rev() {
        put_varint(text.len() as u64 + 1, &mut content);
    }
    for text in &own {
        content.extend(text);
        content.push(0);
    }
    if let Some(section) = file.sections.iter_mut().find(|s| s.number == STRINGS) {
        section.content = content;
    }
}

/// The strings of the section, without their ends. Their lengths stand first, the last one's first.
fn read_strings(content: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut rest = content;
    let count = usize::try_from(varint(&mut rest)?).ok()?;
    let mut lengths = Vec::new();
    for _ in 0..count {
        lengths.push(usize::try_from(varint(&mut rest)?).ok()?);
    }
    let mut strings = Vec::new();
    for length in lengths.into_iter().rev() {
        let (text, after) = rest.split_at_checked(length)?;
        rest = after;
        strings.push(text.split_last()?.1.to_vec());
    }
    Some(strings)
}

/// Attributes and types of one dialect: the number of the dialect, and each with whether it is text.
type Group = (u64, Vec<(u64, Vec<u8>)>);

/// Changes an attribute or a type, or puts one in the place of another.
fn change_entries(file: &mut File, other: &File, random: &mut Random) {
    let Some((attrs, mut groups)) = read_entries(file) else {
        return;
    };
    let from = match random.below(3) {
        0 => read_entries(other).map(|(_, groups)| groups),
        _ => None,
    };
    let from = from.unwrap_or_else(|| groups.clone());
    let any = |groups: &[Group], random: &mut Random| {
        let all: Vec<&(u64, Vec<u8>)> = groups.iter().flat_map(|(_, group)| group).collect();
        all.get(random.below(all.len().max(1)))
            .map(|e| (*e).clone())
    };
    let filled: Vec<usize> = (0..groups.len())
        .filter(|i| !groups[*i].1.is_empty())
        .collect();
    if filled.is_empty() {
        return;
    }
    let group = random.pick(&filled);
    let (dialect, entries) = &mut groups[group];
    let at = random.below(entries.len());
    let mut attrs = attrs;
    match random.below(10) {
        0 => *dialect = bytes::number(*dialect, random),
        1 => {
            entries.remove(at);
            attrs = attrs.saturating_sub(1);
        }
        2 => {
            if let Some(entry) = any(&from, random) {
                entries.insert(at, entry);
                attrs += random.below(2) as u64;
            }
        }
        3 | 4 => {
            if let Some(entry) = any(&from, random) {
                entries[at] = entry;
            }
        }
        5 => attrs = bytes::number(attrs, random),
        _ => change_somewhere(&mut entries[at].1, random),
    }
    write_entries(file, attrs, &groups);
}

/// How many attributes there are, and attributes and types by dialect.
fn read_entries(file: &File) -> Option<(u64, Vec<Group>)> {
    let content = |number| file.sections.iter().find(|s| s.number == number);
    let mut rest = &content(ENTRY_OFFSETS)?.content[..];
    let mut bytes = &content(ENTRIES)?.content[..];
    let attrs = varint(&mut rest)?;
    varint(&mut rest)?;
    let mut groups = Vec::new();
    while !rest.is_empty() {
        let dialect = varint(&mut rest)?;
        let mut entries = Vec::new();
        for _ in 0..varint(&mut rest)? {
            let size = varint(&mut rest)?;
            let (entry, after) = bytes.split_at_checked(usize::try_from(size >> 1).ok()?)?;
            bytes = after;
            entries.push((size & 1, entry.to_vec()));
        }
        groups.push((dialect, entries));
    }
    Some((attrs, groups))
}

fn write_entries(file: &mut File, attrs: u64, groups: &[Group]) {
    let count: usize = groups.iter().map(|(_, entries)| entries.len()).sum();
    let (mut offsets, mut content) = (Vec::new(), Vec::new());
    put_varint(attrs, &mut offsets);
    put_varint((count as u64).saturating_sub(attrs), &mut offsets);
    for (dialect, entries) in groups {
        put_varint(*dialect, &mut offsets);
        put_varint(entries.len() as u64, &mut offsets);
        for (flag, entry) in entries {
            put_varint((entry.len() as u64) << 1 | flag, &mut offsets);
            content.extend(entry);
        }
    }
    for section in &mut file.sections {
        match section.number {
            ENTRIES => section.content.clone_from(&content),
            ENTRY_OFFSETS => section.content.clone_from(&offsets),
            _ => {}
        }
    }
}

/// Changes the program at that place. Sections around it, one in the other, are as long as what is in
/// them again.
fn change_program(content: &mut Vec<u8>, place: usize, random: &mut Random) {
    let around = (0..place).find_map(|at| {
        let region = region(content, at)?;
        region.contains(&place).then_some((at, region))
    });
    let Some((at, region)) = around else {
        return change_number(content, place, random);
    };
    let mut inside = content[region.clone()].to_vec();
    change_program(&mut inside, place - region.start, random);
    let mut section = Vec::new();
    put_varint(inside.len() as u64, &mut section);
    section.extend(inside);
    content.splice(at + 1..region.end, section);
}

/// The content of the section of a region that begins there, if it looks like one.
fn region(content: &[u8], at: usize) -> Option<Range<usize>> {
    let mut rest = content[at..].strip_prefix(&[IR])?;
    let length = usize::try_from(varint(&mut rest)?).ok()?;
    let start = content.len() - rest.len();
    (length >= LEAST_REGION && length <= rest.len()).then(|| start..start + length)
}
