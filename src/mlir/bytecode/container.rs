//! The outer form of bytecode: header, sections, tables of strings, dialects and op names, and where
//! each attribute, type, resource and set of properties lies.
//!
//! Nothing here knows a dialect. Source: MLIR's BytecodeFormat document; versions 0 to 6.

use std::ops::Range;

use crate::base::Diagnostic;
use crate::base::Location;
use crate::base::Result;
use crate::base::codes;
use crate::mlir::bytecode::cursor::Cursor;
use crate::mlir::bytecode::cursor::error_at;
use crate::mlir::dialect;

/// What bytecode begins with.
pub const MAGIC: [u8; 4] = *b"ML\xEFR";
/// The newest version of the format that is read.
pub(super) const NEWEST: u64 = 6;

/// Dialects carry versions.
pub(super) const DIALECT_VERSIONS: u64 = 1;
/// Isolated regions are sections.
pub(super) const REGION_SECTIONS: u64 = 2;
/// Orders of uses are written.
pub(super) const USE_ORDERS: u64 = 3;
/// Unknown locations of block arguments are left out.
pub(super) const ELIDED_LOCATIONS: u64 = 4;
/// Ops have properties beside attributes.
pub(super) const PROPERTIES: u64 = 5;
/// Segment sizes are written as properties.
pub(super) const SEGMENT_SIZES: u64 = 6;

/// The longest name of a dialect, op or resource that is read.
const LONGEST_NAME: usize = 256;

/// Numbers of the sections.
pub(super) mod section {
    pub(crate) const STRINGS: u8 = 0;
    pub(crate) const DIALECTS: u8 = 1;
    pub(crate) const ENTRIES: u8 = 2;
    pub(crate) const ENTRY_OFFSETS: u8 = 3;
    pub(crate) const IR: u8 = 4;
    pub(crate) const RESOURCES: u8 = 5;
    pub(crate) const RESOURCE_OFFSETS: u8 = 6;
    pub(crate) const DIALECT_VERSIONS: u8 = 7;
    pub(crate) const PROPERTIES: u8 = 8;
    pub(crate) const NAMES: [&str; 9] = [
        "string",
        "dialect",
        "attribute and type",
        "attribute and type offset",
        "IR",
        "resource",
        "resource offset",
        "dialect version",
        "property",
    ];
}

/// The name of an op, as the table of names has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpName<'a> {
    /// The index of its dialect.
    pub dialect: usize,
    /// The name behind the dialect's; empty when the dialect's name is all.
    pub name: &'a str,
    /// Whether the writer knew the op. Unknown ones keep their properties as one attribute.
    pub registered: bool,
}

/// Where an attribute or a type lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The index of its dialect.
    pub dialect: u32,
    /// Whether it has the dialect's own binary form; otherwise it is text.
    pub binary: bool,
    /// The first byte, in the file.
    start: usize,
    /// The byte behind the last, in the file.
    end: usize,
}

/// A blob or value that ops refer to by name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resource<'a> {
    /// Its key.
    pub key: &'a str,
    /// Its bytes, when it is a blob that is there.
    pub blob: Option<&'a [u8]>,
}

/// Bytecode taken apart.
pub(super) struct Container<'a> {
    file: &'a [u8],
    /// The version of the format.
    pub version: u64,
    /// Who wrote it; StableHLO's artifacts have their version here.
    pub producer: String,
    /// Every string, which need not be text.
    pub strings: Vec<&'a [u8]>,
    /// The names of the dialects.
    pub dialects: Vec<&'a str>,
    /// The names of the ops.
    pub ops: Vec<OpName<'a>>,
    /// Where the attributes are.
    pub attrs: Vec<Entry>,
    /// Where the types are.
    pub types: Vec<Entry>,
    /// The resources of dialects, in the order of their handles.
    pub resources: Vec<Resource<'a>>,
    properties: Vec<Range<usize>>,
    /// The program.
    pub ir: Cursor<'a>,
}

impl<'a> Container<'a> {
    /// Takes a file apart.
    ///
    /// # Errors
    /// `PROTO_DECODE` with the byte where the format is broken; `UNKNOWN_WORD` for a version of the
    /// format that is newer than [`NEWEST`].
    pub(super) fn new(file: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(file, 0);
        if cursor.take(4, "the mark of MLIR bytecode")? != MAGIC {
            return Err(error_at(
                0,
                "this is not MLIR bytecode: it begins otherwise",
            ));
        }
        let version = cursor.varint("the version of the bytecode")?;
        if version > NEWEST {
            return Err(Diagnostic::unsupported(
                codes::UNKNOWN_WORD,
                format!("the bytecode has version {version}, and versions up to {NEWEST} are read"),
            )
            .at(Location::Byte(4)));
        }
        let producer = cursor.zero_ended("the name of the producer")?;
        let producer = String::from_utf8_lossy(producer).into_owned();
        let sections = sections(&mut cursor)?;
        let end = cursor.offset();
        let need = |number: u8| {
            sections[usize::from(number)].ok_or_else(|| {
                let name = section::NAMES[usize::from(number)];
                error_at(end, format!("there is no {name} section"))
            })
        };
        let strings = strings(need(section::STRINGS)?)?;
        let (dialects, ops) = dialects(need(section::DIALECTS)?, version, &strings)?;
        let mut entries = need(section::ENTRIES)?;
        let (attrs, types) =
            entry_table(need(section::ENTRY_OFFSETS)?, &mut entries, dialects.len())?;
        let pair = (
            sections[usize::from(section::RESOURCES)],
            sections[usize::from(section::RESOURCE_OFFSETS)],
        );
        let resources = match pair {
            (Some(data), Some(offsets)) => resources(data, offsets, &strings, dialects.len())?,
            (None, None) => Vec::new(),
            (Some(one), None) | (None, Some(one)) => {
                return Err(one.error("resources and their offsets come together"));
            }
        };
        let properties = match sections[usize::from(section::PROPERTIES)] {
            Some(cursor) => property_table(cursor)?,
            None if version >= PROPERTIES => {
                return Err(error_at(end, "there is no property section"));
            }
            None => Vec::new(),
        };
        Ok(Self {
            file,
            version,
            producer,
            strings,
            dialects,
            ops,
            attrs,
            types,
            resources,
            properties,
            ir: need(section::IR)?,
        })
    }
    /// The bytes of an attribute or type.
    pub(super) fn entry(&self, entry: Entry) -> Cursor<'a> {
        Cursor::new(&self.file[entry.start..entry.end], entry.start)
    }
    /// The bytes of a set of properties.
    pub(super) fn properties(&self, index: u64) -> Option<Cursor<'a>> {
        let range = self.properties.get(usize::try_from(index).ok()?)?;
        Some(Cursor::new(&self.file[range.clone()], range.start))
    }
    /// The string that the cursor has the index of.
    pub(super) fn string(&self, cursor: &mut Cursor<'_>, what: &str) -> Result<&'a [u8]> {
        string(cursor, &self.strings, what)
    }
    /// The size of the file: a bound on how many things it can hold.
    pub(super) fn size(&self) -> usize {
        self.file.len()
    }
}

fn sections<'a>(cursor: &mut Cursor<'a>) -> Result<[Option<Cursor<'a>>; 9]> {
    let mut sections = [None; 9];
    while !cursor.is_empty() {
        let at = cursor.offset();
        let (number, content) = cursor.section()?;
        let Some(slot) = sections.get_mut(usize::from(number)) else {
            return Err(error_at(at, format!("there is no section {number}")));
        };
        if slot.is_some() {
            let name = section::NAMES[usize::from(number)];
            return Err(error_at(at, format!("a second {name} section")));
        }
        *slot = Some(content);
    }
    Ok(sections)
}

fn strings<'a>(mut cursor: Cursor<'a>) -> Result<Vec<&'a [u8]>> {
    let count = cursor.count("strings")?;
    let mut sizes = Vec::with_capacity(count);
    let mut total = 0_u64;
    for _ in 0..count {
        let size = cursor.varint("the size of a string")?;
        total = total.saturating_add(size);
        if size == 0 || total > cursor.left() as u64 {
            return Err(cursor.error(format!("a string of {size} bytes does not fit")));
        }
        sizes.push(size);
    }
    sizes.reverse();
    let mut strings = Vec::with_capacity(count);
    for size in sizes {
        let text = cursor.take(size, "a string")?;
        strings.push(&text[..text.len() - 1]);
    }
    cursor.finish("the strings")?;
    Ok(strings)
}

fn string<'a>(cursor: &mut Cursor<'_>, strings: &[&'a [u8]], what: &str) -> Result<&'a [u8]> {
    let at = *cursor;
    let index = cursor.varint(what)?;
    indexed_string(&at, strings, index, what)
}

fn indexed_string<'a>(
    at: &Cursor<'_>,
    strings: &[&'a [u8]],
    index: u64,
    what: &str,
) -> Result<&'a [u8]> {
    let found = usize::try_from(index).ok().and_then(|i| strings.get(i));
    found.copied().ok_or_else(|| {
        at.error(format!(
            "{what} is string {index}, and there are {}",
            strings.len()
        ))
    })
}

fn name<'a>(at: &Cursor<'_>, strings: &[&'a [u8]], index: u64, what: &str) -> Result<&'a str> {
    let bytes = indexed_string(at, strings, index, what)?;
    if bytes.len() > LONGEST_NAME {
        let length = bytes.len();
        return Err(at.error(format!("{what} has {length} bytes")));
    }
    std::str::from_utf8(bytes).map_err(|_| at.error(format!("{what} is not UTF-8")))
}

/// The name of an op or a dialect.
fn op_name<'a>(at: &Cursor<'_>, strings: &[&'a [u8]], index: u64, what: &str) -> Result<&'a str> {
    let name = name(at, strings, index, what)?;
    match dialect::is_op_name(name) {
        true => Ok(name),
        false => Err(at.error(format!("{what} is {name:?}"))),
    }
}

type Dialects<'a> = (Vec<&'a str>, Vec<OpName<'a>>);

fn dialects<'a>(
    mut cursor: Cursor<'a>,
    version: u64,
    strings: &[&'a [u8]],
) -> Result<Dialects<'a>> {
    let count = cursor.count("dialects")?;
    let mut dialects = Vec::with_capacity(count);
    for _ in 0..count {
        let at = cursor;
        if version < DIALECT_VERSIONS {
            let index = cursor.varint("the name of a dialect")?;
            dialects.push(op_name(&at, strings, index, "the name of a dialect")?);
            continue;
        }
        let (index, versioned) = cursor.flagged("the name of a dialect")?;
        dialects.push(op_name(&at, strings, index, "the name of a dialect")?);
        if versioned {
            let at = cursor.offset();
            let (number, _) = cursor.section()?;
            if number != section::DIALECT_VERSIONS {
                return Err(error_at(at, "a dialect's version should be here"));
            }
        }
    }
    let mut ops = Vec::new();
    if version >= ELIDED_LOCATIONS {
        ops.reserve(cursor.count("op names")?);
    }
    while !cursor.is_empty() {
        let dialect = dialect_index(&mut cursor, count)?;
        for _ in 0..cursor.count("op names")? {
            let at = cursor;
            let (index, registered) = if version < PROPERTIES {
                (cursor.varint("the name of an op")?, true)
            } else {
                cursor.flagged("the name of an op")?
            };
            ops.push(OpName {
                dialect,
                name: op_name(&at, strings, index, "the name of an op")?,
                registered,
            });
        }
    }
    Ok((dialects, ops))
}

fn dialect_index(cursor: &mut Cursor<'_>, count: usize) -> Result<usize> {
    let at = *cursor;
    let index = cursor.varint("a dialect")?;
    match usize::try_from(index) {
        Ok(index) if index < count => Ok(index),
        _ => Err(at.error(format!("dialect {index} of {count} is named"))),
    }
}

/// The entries of attributes, and those of types.
type EntryTable = (Vec<Entry>, Vec<Entry>);

fn entry_table(
    mut cursor: Cursor<'_>,
    data: &mut Cursor<'_>,
    dialects: usize,
) -> Result<EntryTable> {
    let attrs = cursor.count("attributes")?;
    let types = cursor.count("types")?;
    cursor.fits(attrs as u64 + types as u64, "attributes and types")?;
    let attrs = entries(&mut cursor, data, attrs, dialects)?;
    let types = entries(&mut cursor, data, types, dialects)?;
    cursor.finish("the offsets of attributes and types")?;
    Ok((attrs, types))
}

fn entries(
    cursor: &mut Cursor<'_>,
    data: &mut Cursor<'_>,
    count: usize,
    dialects: usize,
) -> Result<Vec<Entry>> {
    let mut entries = Vec::with_capacity(count);
    while entries.len() < count {
        let dialect = dialect_index(cursor, dialects)?;
        let at = *cursor;
        let group = cursor.count("attributes or types of a dialect")?;
        if group > count - entries.len() {
            return Err(at.error("a dialect has more attributes or types than there are"));
        }
        for _ in 0..group {
            let (size, binary) = cursor.flagged("the size of an attribute or type")?;
            let start = data.offset();
            data.take(size, "an attribute or type")?;
            entries.push(Entry {
                dialect: dialect as u32,
                binary,
                start,
                end: data.offset(),
            });
        }
    }
    Ok(entries)
}

fn resources<'a>(
    mut data: Cursor<'a>,
    mut cursor: Cursor<'a>,
    strings: &[&'a [u8]],
    dialects: usize,
) -> Result<Vec<Resource<'a>>> {
    let external = cursor.count("groups of external resources")?;
    for _ in 0..external {
        string(&mut cursor, strings, "the key of a group of resources")?;
        resource_group(&mut data, &mut cursor, strings)?;
    }
    let mut resources = Vec::new();
    while !cursor.is_empty() {
        dialect_index(&mut cursor, dialects)?;
        resources.extend(resource_group(&mut data, &mut cursor, strings)?);
    }
    Ok(resources)
}

fn resource_group<'a>(
    data: &mut Cursor<'a>,
    cursor: &mut Cursor<'a>,
    strings: &[&'a [u8]],
) -> Result<Vec<Resource<'a>>> {
    let count = cursor.count("resources")?;
    let mut group = Vec::with_capacity(count.min(cursor.left()));
    for _ in 0..count {
        let at = *cursor;
        let index = cursor.varint("the key of a resource")?;
        let key = name(&at, strings, index, "the key of a resource")?;
        let size = cursor.varint("the size of a resource")?;
        let kind = cursor.byte("the kind of a resource")?;
        let mut content = data.part(size, "a resource")?;
        let blob = if kind == 0 && !content.is_empty() {
            let alignment = content.varint("the alignment of a resource")?;
            let size = content.varint("the size of a resource")?;
            content.align(alignment)?;
            let blob = content.take(size, "a resource")?;
            content.finish("a resource")?;
            Some(blob)
        } else {
            None
        };
        group.push(Resource { key, blob });
    }
    Ok(group)
}

fn property_table(mut cursor: Cursor<'_>) -> Result<Vec<Range<usize>>> {
    if cursor.is_empty() {
        return Ok(Vec::new());
    }
    let count = cursor.count("properties")?;
    let mut table = Vec::with_capacity(count);
    for _ in 0..count {
        let size = cursor.varint("the size of properties")?;
        let start = cursor.offset();
        cursor.take(size, "properties")?;
        table.push(start..cursor.offset());
    }
    cursor.finish("the properties")?;
    Ok(table)
}
