//! The tables of attributes and types, decoded when they are asked for.
//!
//! Entries refer to each other by index. What an entry needs is decoded before it, with a stack of
//! our own: nothing here recurses. How deep entries nest and how large one is when it is written
//! out are bounded, so that what comes after may walk them.

use crate::base::Diagnostic;
use crate::base::Location;
use crate::base::Result;
use crate::base::codes;
use crate::base::text::MAX_NESTING;
use crate::mlir::attrs::Attr;
use crate::mlir::bytecode::builtin;
use crate::mlir::bytecode::container::Container;
use crate::mlir::bytecode::container::Entry;
use crate::mlir::bytecode::cursor::Cursor;
use crate::mlir::bytecode::sdy;
use crate::mlir::bytecode::stablehlo;
use crate::mlir::bytecode::vhlo;
use crate::mlir::location::Loc;
use crate::mlir::location::SourceLoc;
use crate::mlir::print;
use crate::mlir::text;
use crate::mlir::types::Name;
use crate::mlir::types::Type;

/// How deep attributes, types and locations may nest, which is as deep as text may nest them.
const DEPTH: u32 = MAX_NESTING as u32;
/// How many parts an attribute, type or location may have when it is written out, beyond those that
/// the file spells out.
const WEIGHT: u64 = 1 << 24;

/// How many bytes of a string or of elements count as one part more.
const PART_BYTES: u64 = 16;

/// How often the bytes of a file may be copied for attributes that share strings or resources.
const COPIES: u64 = 8;

/// An entry of one of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Attr(usize),
    Type(usize),
}

/// What is known of an entry.
#[derive(Clone, Debug)]
enum Slot<T> {
    /// Nothing.
    New,
    /// It waits for what it refers to.
    Open,
    /// Its value.
    Done { value: T, depth: u32, weight: u64 },
}

impl<T: Clone> Slot<T> {
    fn is_done(&self) -> bool {
        matches!(self, Self::Done { .. })
    }
    /// The value, which was asked for at `at`.
    fn value(&self, at: &Cursor<'_>) -> Result<T> {
        match self {
            Self::Done { value, .. } => Ok(value.clone()),
            Self::New | Self::Open => Err(at.error("an attribute or type was not decoded")),
        }
    }
    /// How many parts the value has when it is written out.
    fn weight(&self) -> u64 {
        match self {
            Self::Done { weight, .. } => *weight,
            Self::New | Self::Open => 0,
        }
    }
}

/// The attributes and types of a file.
pub(super) struct Table<'a> {
    /// The file.
    pub container: &'a Container<'a>,
    attrs: Vec<Slot<Attr>>,
    types: Vec<Slot<Type>>,
    names: Vec<Option<Name>>,
    unknown: Loc,
    /// Bytes that entries have copied of strings and resources, which may be used often.
    copied: u64,
}

impl<'a> Table<'a> {
    /// The tables of a file, with nothing decoded.
    pub(super) fn new(container: &'a Container<'a>) -> Self {
        Self {
            container,
            attrs: vec![Slot::New; container.attrs.len()],
            types: vec![Slot::New; container.types.len()],
            names: vec![None; container.attrs.len()],
            unknown: SourceLoc::unknown(),
            copied: 0,
        }
    }
    /// The location that says nothing.
    pub(super) fn unknown(&self) -> Loc {
        Loc::clone(&self.unknown)
    }
    /// The attribute of the index that the cursor is at.
    pub(super) fn attr(&mut self, cursor: &mut Cursor<'_>, what: &str) -> Result<Attr> {
        let at = *cursor;
        let index = cursor.varint(what)?;
        self.attr_at(&at, index)
    }
    /// The attribute of an index that was read at `at`.
    pub(super) fn attr_at(&mut self, at: &Cursor<'_>, index: u64) -> Result<Attr> {
        let index = known(at, index, self.attrs.len(), "attribute")?;
        self.resolve(Key::Attr(index))?;
        self.attrs[index].value(at)
    }
    /// How many parts a decoded attribute has when it is written out.
    pub(super) fn weight(&self, index: u64) -> u64 {
        let slot = usize::try_from(index).ok().and_then(|i| self.attrs.get(i));
        slot.map_or(0, Slot::weight)
    }
    /// The type of the index that the cursor is at, and how many parts it has when it is written
    /// out.
    pub(super) fn ty(&mut self, cursor: &mut Cursor<'_>, what: &str) -> Result<(Type, u64)> {
        let at = *cursor;
        let index = cursor.varint(what)?;
        self.type_at(&at, index)
    }
    /// The type of an index that was read at `at`, and how many parts it has.
    pub(super) fn type_at(&mut self, at: &Cursor<'_>, index: u64) -> Result<(Type, u64)> {
        let index = known(at, index, self.types.len(), "type")?;
        self.resolve(Key::Type(index))?;
        let slot = &self.types[index];
        Ok((slot.value(at)?, slot.weight()))
    }
    /// The location of the index that the cursor is at.
    pub(super) fn loc(&mut self, cursor: &mut Cursor<'_>) -> Result<Loc> {
        let at = *cursor;
        match self.attr(cursor, "a location")? {
            Attr::Location(loc) => Ok(loc),
            other => Err(at.error(format!("{} where a location should be", other.what()))),
        }
    }

    /// Decodes an entry, and all that it refers to, unless that was done.
    fn resolve(&mut self, key: Key) -> Result<()> {
        if self.is_done(key) {
            return Ok(());
        }
        let mut stack = vec![key];
        while let Some(&key) = stack.last() {
            if self.is_done(key) {
                stack.pop();
                continue;
            }
            let missing = self.decode(key)?;
            if missing.is_empty() {
                stack.pop();
                continue;
            }
            for &other in &missing {
                if other == key || self.is_open(other) {
                    let at = self.container.entry(self.entry(other));
                    return Err(at.error("an attribute or type is part of itself"));
                }
            }
            match key {
                Key::Attr(index) => self.attrs[index] = Slot::Open,
                Key::Type(index) => self.types[index] = Slot::Open,
            }
            stack.extend(missing);
        }
        Ok(())
    }
    fn is_done(&self, key: Key) -> bool {
        match key {
            Key::Attr(index) => self.attrs[index].is_done(),
            Key::Type(index) => self.types[index].is_done(),
        }
    }
    fn is_open(&self, key: Key) -> bool {
        match key {
            Key::Attr(index) => matches!(self.attrs[index], Slot::Open),
            Key::Type(index) => matches!(self.types[index], Slot::Open),
        }
    }
    fn entry(&self, key: Key) -> Entry {
        match key {
            Key::Attr(index) => self.container.attrs[index],
            Key::Type(index) => self.container.types[index],
        }
    }
    /// Decodes an entry, or says which others come first.
    fn decode(&mut self, key: Key) -> Result<Vec<Key>> {
        let entry = self.entry(key);
        let container = self.container;
        let dialect = container.dialects[entry.dialect as usize];
        let mut decoder = Decoder {
            cursor: container.entry(entry),
            start: container.entry(entry),
            dialect,
            missing: Vec::new(),
            depth: 0,
            weight: 1,
            copied: self.copied,
            names: std::mem::take(&mut self.names),
            table: self,
        };
        let decoded = match key {
            Key::Attr(_) => decoder.entry_attr(entry.binary).map(Decoded::Attr),
            Key::Type(_) => decoder.entry_type(entry.binary).map(Decoded::Type),
        };
        let Decoder {
            missing,
            depth,
            weight,
            copied,
            names,
            start,
            ..
        } = decoder;
        self.names = names;
        if !missing.is_empty() {
            return Ok(missing);
        }
        let (depth, decoded) = (depth + 1, decoded?);
        self.copied = copied;
        if matches!(&decoded, Decoded::Attr(Attr::Struct(_))) {
            // It is printed once more.
            self.copied = self.copied.saturating_add(weight);
        }
        if self.copied > COPIES * container.size() as u64 {
            return Err(limit(
                &start,
                "strings and resources are used too often".to_owned(),
            ));
        }
        if depth > DEPTH || weight > WEIGHT + container.size() as u64 {
            return Err(limit(
                &start,
                format!(
                    "an attribute, type or location nests {depth} deep and has {weight} parts, and \
                     {DEPTH} and {WEIGHT} are read"
                ),
            ));
        }
        match (key, decoded) {
            (Key::Attr(index), Decoded::Attr(value)) => {
                check_fields(&start, &value)?;
                self.attrs[index] = Slot::Done {
                    value,
                    depth,
                    weight,
                };
            }
            (Key::Type(index), Decoded::Type(value)) => {
                self.types[index] = Slot::Done {
                    value,
                    depth,
                    weight,
                };
            }
            (Key::Attr(_), Decoded::Type(_)) | (Key::Type(_), Decoded::Attr(_)) => {
                return Err(start.error("an attribute and a type were mixed up"));
            }
        }
        Ok(Vec::new())
    }
}

/// Refuses an attribute of a dialect whose fields hold what they cannot: it has no text.
fn check_fields(at: &Cursor<'_>, attr: &Attr) -> Result<()> {
    if !matches!(attr, Attr::Struct(_)) {
        return Ok(());
    }
    let text = print::attr(attr);
    match text::read_attr(&text) {
        Ok(again) if print::attr(&again) == text => Ok(()),
        Ok(_) => Err(at.error(format!("an attribute that says too much: `{text}`"))),
        Err(error) => {
            let message = format!("an attribute with something else in a field: `{text}`");
            Err(at.error(message).note(error.message.clone()))
        }
    }
}

enum Decoded {
    Attr(Attr),
    Type(Type),
}

fn limit(at: &Cursor<'_>, message: String) -> Box<Diagnostic> {
    Diagnostic::error(codes::INPUT_LIMIT, message).at(Location::Byte(at.offset() as u64))
}

fn known(at: &Cursor<'_>, index: u64, count: usize, what: &str) -> Result<usize> {
    match usize::try_from(index) {
        Ok(index) if index < count => Ok(index),
        _ => Err(at.error(format!("{what} {index} of {count} is named"))),
    }
}

/// One entry while it is decoded.
///
/// Parts that are not decoded yet are put down in `missing`, and stand-ins are given for them; a
/// decoder stops, or goes on to find more of them, and its result is not used.
pub(super) struct Decoder<'t, 'a> {
    /// Where it is in the entry.
    pub cursor: Cursor<'a>,
    start: Cursor<'a>,
    dialect: &'a str,
    missing: Vec<Key>,
    depth: u32,
    weight: u64,
    copied: u64,
    names: Vec<Option<Name>>,
    table: &'t Table<'a>,
}

impl<'a> Decoder<'_, 'a> {
    /// Whether something is missing, so that what was read is not to be judged.
    pub(super) fn waits(&self) -> bool {
        !self.missing.is_empty()
    }
    /// The attribute of the next index.
    pub(super) fn attr(&mut self) -> Result<Attr> {
        let at = self.cursor;
        let index = self.cursor.varint("an attribute")?;
        self.attr_at(&at, index)
    }
    fn attr_at(&mut self, at: &Cursor<'a>, index: u64) -> Result<Attr> {
        let table = self.table;
        let index = known(at, index, table.attrs.len(), "attribute")?;
        Ok(self.part(&table.attrs[index], Key::Attr(index), Attr::Unit))
    }
    /// What an entry is that this one has in it; `stand_in` when that is not decoded yet.
    fn part<T: Clone>(&mut self, slot: &Slot<T>, key: Key, stand_in: T) -> T {
        let Slot::Done {
            value,
            depth,
            weight,
        } = slot
        else {
            self.missing.push(key);
            return stand_in;
        };
        self.depth = self.depth.max(*depth);
        self.weight = self.weight.saturating_add(*weight);
        value.clone()
    }
    /// The attribute of the next index, or nothing.
    pub(super) fn optional_attr(&mut self) -> Result<Option<Attr>> {
        let at = self.cursor;
        let (index, present) = self.cursor.flagged("an attribute")?;
        if !present {
            return Ok(None);
        }
        self.attr_at(&at, index).map(Some)
    }
    /// Attributes behind their number.
    pub(super) fn attrs(&mut self) -> Result<Vec<Attr>> {
        let count = self.cursor.count("attributes")?;
        (0..count).map(|_| self.attr()).collect()
    }
    /// The type of the next index.
    pub(super) fn ty(&mut self) -> Result<Type> {
        let at = self.cursor;
        let index = self.cursor.varint("a type")?;
        let table = self.table;
        let index = known(&at, index, table.types.len(), "type")?;
        Ok(self.part(&table.types[index], Key::Type(index), Type::None))
    }
    /// Types behind their number.
    pub(super) fn types(&mut self) -> Result<Vec<Type>> {
        let count = self.cursor.count("types")?;
        (0..count).map(|_| self.ty()).collect()
    }
    /// The string attribute of the next index, as a name. Bytes that are not UTF-8 are replaced.
    pub(super) fn name(&mut self) -> Result<Name> {
        let at = self.cursor;
        let index = self.cursor.varint("a name")?;
        let attr = self.attr_at(&at, index)?;
        // The index was found in the table.
        let slot = &mut self.names[index as usize];
        match (slot, attr) {
            (Some(name), _) => Ok(name.clone()),
            (slot, Attr::String(text)) => {
                self.copied += text.len() as u64;
                let name = Name::from(&*String::from_utf8_lossy(&text));
                Ok(slot.insert(name).clone())
            }
            (_, other) if self.missing.is_empty() => {
                Err(at.error(format!("{} where a string should be", other.what())))
            }
            _ => Ok(Name::from("")),
        }
    }
    /// The location of the next index.
    pub(super) fn loc(&mut self) -> Result<Loc> {
        let at = self.cursor;
        match self.attr()? {
            Attr::Location(loc) => Ok(loc),
            _ if self.waits() => Ok(self.table.unknown()),
            other => Err(at.error(format!("{} where a location should be", other.what()))),
        }
    }
    /// The location that says nothing.
    pub(super) fn unknown(&self) -> Loc {
        self.table.unknown()
    }
    /// A string of the string table.
    pub(super) fn string(&mut self) -> Result<&'a [u8]> {
        let container = self.table.container;
        let text = container.string(&mut self.cursor, "a string")?;
        self.copied += text.len() as u64;
        self.weigh(text.len());
        Ok(text)
    }
    /// Bytes behind their number.
    pub(super) fn blob(&mut self) -> Result<&'a [u8]> {
        let size = self.cursor.varint("the size of a blob")?;
        let blob = self.cursor.take(size, "a blob")?;
        self.weigh(blob.len());
        Ok(blob)
    }
    /// Counts bytes as parts.
    fn weigh(&mut self, bytes: usize) {
        self.weight = self.weight.saturating_add(bytes as u64 / PART_BYTES);
    }
    /// A resource's key and bytes.
    pub(super) fn resource(&mut self) -> Result<(&'a str, Option<&'a [u8]>)> {
        let at = self.cursor;
        let index = self.cursor.varint("a resource")?;
        let resources = &self.table.container.resources;
        let index = known(&at, index, resources.len(), "resource")?;
        let resource = resources[index];
        let size = resource.blob.map_or(0, <[u8]>::len);
        self.copied += size as u64;
        self.weigh(size);
        Ok((resource.key, resource.blob))
    }
    /// An integer of `width` bits, zero above them.
    pub(super) fn bits(&mut self, width: u32) -> Result<u128> {
        let bits = match width {
            0..=8 => self.cursor.byte("an integer")?.into(),
            9..=64 => u128::from(self.cursor.signed("an integer")? as u64),
            65..=128 => {
                let at = self.cursor;
                let words = self.cursor.count("words of an integer")?;
                let mut value = 0;
                for word in 0..words {
                    let bits = self.cursor.signed("a word of an integer")? as u64;
                    match word {
                        0 | 1 => value |= u128::from(bits) << (64 * word),
                        _ => return Err(at.error(format!("{words} words for {width} bits"))),
                    }
                }
                value
            }
            _ => return Err(self.unsupported(format!("an integer of {width} bits"))),
        };
        Ok(match width {
            0..128 => bits & ((1 << width) - 1),
            _ => bits,
        })
    }
    /// The bits of an `f64`.
    pub(super) fn f64(&mut self) -> Result<u64> {
        Ok(self.bits(64)? as u64)
    }
    /// The input is right, as far as we know, and is not read.
    pub(super) fn unsupported(&self, what: impl Into<String>) -> Box<Diagnostic> {
        let message = format!("{} (of the dialect `{}`)", what.into(), self.dialect);
        Diagnostic::unsupported(codes::UNKNOWN_WORD, message)
            .at(Location::Byte(self.start.offset() as u64))
            .note(format!(
                "the bytecode was written by `{}`",
                self.table.container.producer
            ))
    }
    /// The code that begins an entry is not one that we know.
    pub(super) fn unknown_code(&self, what: &str, code: u64) -> Box<Diagnostic> {
        self.unsupported(format!("{what} with the code {code}"))
    }

    fn entry_attr(&mut self, binary: bool) -> Result<Attr> {
        if !binary {
            return self.text_attr();
        }
        let attr = match self.dialect {
            "builtin" => builtin::attr(self),
            "stablehlo" => stablehlo::attr(self),
            "chlo" => stablehlo::chlo_attr(self),
            "vhlo" => vhlo::attr(self),
            "sdy" => sdy::attr(self),
            _ => Err(self.unsupported("an attribute in binary form")),
        }?;
        if !self.waits() {
            self.cursor.finish("an attribute")?;
        }
        Ok(attr)
    }
    fn entry_type(&mut self, binary: bool) -> Result<Type> {
        if !binary {
            return self.text_type();
        }
        let ty = match self.dialect {
            "builtin" => builtin::ty(self),
            "stablehlo" => stablehlo::ty(self),
            "vhlo" => vhlo::ty(self),
            "quant" => builtin::quant_type(self),
            _ => Err(self.unsupported("a type in binary form")),
        }?;
        if !self.waits() {
            self.cursor.finish("a type")?;
        }
        Ok(ty)
    }
    fn entry_text(&mut self) -> Result<&'a str> {
        let at = self.cursor;
        let text = self.cursor.zero_ended("the text of an attribute or type")?;
        self.cursor.finish("the text of an attribute or type")?;
        self.weight = self.weight.saturating_add(text.len() as u64);
        std::str::from_utf8(text).map_err(|_| at.error("an attribute or type is not UTF-8"))
    }
    fn text_attr(&mut self) -> Result<Attr> {
        let text = self.entry_text()?;
        text::read_attr(text).map_err(|error| self.within(text, error))
    }
    fn text_type(&mut self) -> Result<Type> {
        let text = self.entry_text()?;
        text::read_type(text).map_err(|error| self.within(text, error))
    }
    /// An error in the text of an entry, which is at a byte of the file.
    fn within(&self, text: &str, mut error: Box<Diagnostic>) -> Box<Diagnostic> {
        error.location = Some(Location::Byte(self.start.offset() as u64));
        let shown: String = text.chars().take(80).collect();
        error.note(format!(
            "it is in the attribute or type `{shown}`, which is text"
        ))
    }
}
