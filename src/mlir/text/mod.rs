//! MLIR text: the pretty and the generic form of StableHLO programs.
//!
//! Read are the generic form of every op, and the pretty forms of StableHLO (also spelled `mhlo`),
//! CHLO, Shardy, `func`, `builtin`, and of the ops of `arith`, `shape` and `tensor` that stand in
//! such programs. Types, attributes and locations of the builtin dialect are read in full.
//!
//! Values must be defined before they are used, and a use has the type of the definition; blocks
//! may be named before they are defined. Aliases may be used before their definition.
//!
//! Any text gives a module or one diagnostic with its place, in memory bounded by the text: splats
//! are not expanded, nesting is bounded, and so is what aliases stand for together.
//! Sources for the grammar: MLIR's language reference; openxla/stablehlo, `stablehlo/dialect`;
//! openxla/shardy, `shardy/dialect/sdy/ir`.

mod attrs;
mod custom;
mod dense;
mod dialects;
pub(super) mod formats;
mod location;
mod op;
mod region;
pub(super) mod scan;
mod sdy;
mod special;
mod types;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::base::text::MAX_NESTING;
use crate::mlir::attrs::Attr;
use crate::mlir::location::Loc;
use crate::mlir::location::SourceLoc;
use crate::mlir::module::BlockId;
use crate::mlir::module::Module;
use crate::mlir::module::ValueId;
use crate::mlir::text::scan::Scanner;
use crate::mlir::types::Name;
use crate::mlir::types::Type;

/// Parts that all attributes, types and locations may have together when aliases are expanded,
/// beyond those that the text spells out.
const MAX_SHARED_PARTS: u64 = 1 << 26;
/// How many bytes of text count as one part more.
const PART_BYTES: u64 = 16;

/// Reads a module.
///
/// # Errors
/// `TEXT_SYNTAX`, `TEXT_NAME`, `UNKNOWN_WORD` and `INPUT_LIMIT`, each with its place.
pub fn read(text: &str) -> Result<Module> {
    let mut reader = Reader::new(text)?;
    reader.find_aliases()?;
    reader.top_level()?;
    Ok(reader.module)
}

/// Reads one attribute that stands alone.
///
/// # Errors
/// As [`read`].
pub fn read_attr(text: &str) -> Result<Attr> {
    let mut reader = Reader::new(text)?;
    let attr = reader.attr()?;
    reader.end()?;
    Ok(attr)
}

/// Reads one type that stands alone.
///
/// # Errors
/// As [`read`].
pub fn read_type(text: &str) -> Result<Type> {
    let mut reader = Reader::new(text)?;
    let ty = reader.ty()?;
    reader.end()?;
    Ok(ty)
}

/// The state of one reading.
struct Reader<'a> {
    scan: Scanner<'a>,
    module: Module,
    names: Cache<'a, Name>,
    types: Cache<'a, Type>,
    /// Aliases of attributes and locations, by `#` and name, and of types, by `!` and name.
    aliases: BTreeMap<(u8, &'a str), Alias>,
    /// Blobs of the resource section, in hexadecimal.
    resources: BTreeMap<String, &'a str>,
    scope: Scope<'a>,
    /// Labels of the blocks of each region around the current place.
    labels: Vec<BTreeMap<&'a str, Label>>,
    /// Symbols of each module around the current place.
    symbols: Vec<BTreeSet<Arc<[u8]>>>,
    /// Levels of types, attributes and locations around the current place.
    depth: usize,
    /// The deepest level since it was set last.
    deepest: usize,
    /// Parts read so far, with aliases expanded.
    parts: u64,
    /// Where the line count stands, and the line there.
    line: (usize, u32),
    unknown: Loc,
}

/// What an alias stands for.
enum Alias {
    /// Not read yet; where its definition starts.
    At(usize),
    /// Being read.
    Open,
    /// Read.
    Known {
        /// What it is.
        value: Attr,
        /// How many levels it has.
        depth: usize,
        /// How many parts it has.
        parts: u64,
    },
}

/// A block that was named.
struct Label {
    block: BlockId,
    defined: bool,
    place: usize,
}

/// The values that a name stands for: results of one op have ids in a row.
#[derive(Clone, Copy)]
struct Definition {
    first: ValueId,
    count: usize,
}

/// Names of values that may be used at the current place.
#[derive(Default)]
struct Scope<'a> {
    /// By number, for most names that are numbers.
    numbered: Vec<Option<Definition>>,
    /// By name, for all others.
    named: BTreeMap<&'a str, Definition>,
    /// Names in the order of their definitions.
    order: Vec<&'a str>,
}

/// What was read not long ago, by its text. A text may push another one out.
struct Cache<'a, T> {
    slots: Vec<Option<(&'a str, T)>>,
}

impl<'a, T: Clone> Cache<'a, T> {
    const SLOTS: usize = 512;

    fn new() -> Self {
        let slots = std::iter::repeat_with(|| None);
        Self {
            slots: slots.take(Self::SLOTS).collect(),
        }
    }
    fn slot(text: &str) -> usize {
        let mix = |h: u32, b: &u8| (h ^ u32::from(*b)).wrapping_mul(0x0100_0193);
        let hash = text.as_bytes().iter().fold(0x811c_9dc5, mix);
        (hash ^ hash >> 15) as usize % Self::SLOTS
    }
    fn find(&self, text: &str) -> Option<T> {
        let known = self.slots[Self::slot(text)].as_ref()?;
        (known.0 == text).then(|| known.1.clone())
    }
    fn remember(&mut self, text: &'a str, value: &T) {
        self.slots[Self::slot(text)] = Some((text, value.clone()));
    }
}

impl<'a> Cache<'a, Name> {
    /// The name, shared with the last use of it.
    fn get(&mut self, text: &'a str) -> Name {
        if let Some(name) = self.find(text) {
            return name;
        }
        let name = Name::from(text);
        self.remember(text, &name);
        name
    }
}

impl<'a> Scope<'a> {
    fn number(name: &str) -> Option<usize> {
        let plain = name.len() <= 7 && (name.len() == 1 || !name.starts_with('0'));
        let digit = name.as_bytes().first().is_some_and(u8::is_ascii_digit);
        (plain && digit).then(|| name.parse().ok())?
    }
    fn find(&self, name: &str) -> Option<Definition> {
        let numbered = Self::number(name).and_then(|n| self.numbered.get(n).copied().flatten());
        numbered.or_else(|| self.named.get(name).copied())
    }
    /// Adds a name; false when it stands for something already.
    fn define(&mut self, name: &'a str, definition: Definition) -> bool {
        if self.find(name).is_some() {
            return false;
        }
        // A number far beyond the others is a name like any other, so that the list stays short.
        let short = self.numbered.len() * 2 + 256;
        match Self::number(name).filter(|n| *n < short) {
            Some(number) => {
                if self.numbered.len() <= number {
                    self.numbered.resize(number + 1, None);
                }
                self.numbered[number] = Some(definition);
            }
            None => {
                self.named.insert(name, definition);
            }
        }
        self.order.push(name);
        true
    }
    /// Forgets all names but the first `count` that were defined.
    fn forget_after(&mut self, count: usize) {
        for name in self.order.drain(count.min(self.order.len())..) {
            let slot = Self::number(name).and_then(|n| self.numbered.get_mut(n));
            if slot.and_then(Option::take).is_none() {
                self.named.remove(name);
            }
        }
    }
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Result<Self> {
        if u32::try_from(text.len()).is_err() {
            let message = format!("the text has {} bytes, more than 4 GiB", text.len());
            return Err(Diagnostic::error(codes::INPUT_LIMIT, message));
        }
        let mut module = Module::without_ops();
        let region = module.new_region();
        module.new_block(region);
        Ok(Self {
            scan: Scanner::new(text),
            module,
            names: Cache::new(),
            types: Cache::new(),
            aliases: BTreeMap::new(),
            resources: BTreeMap::new(),
            scope: Scope::default(),
            labels: Vec::new(),
            symbols: vec![BTreeSet::new()],
            depth: 0,
            deepest: 0,
            parts: 0,
            line: (0, 1),
            unknown: SourceLoc::unknown(),
        })
    }
    /// Nothing may follow.
    fn end(&mut self) -> Result<()> {
        match self.scan.at_end() {
            true => Ok(()),
            false => Err(self.scan.unexpected("the end of the text")),
        }
    }
    /// Items between brackets, with commas between them, possibly none.
    fn items<T>(
        &mut self,
        [open, close]: [&str; 2],
        mut item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.scan.expect(open)?;
        let mut items = Vec::new();
        while !self.scan.eat(close) {
            if !items.is_empty() {
                self.scan.expect(",")?;
            }
            items.push(item(self)?);
        }
        Ok(items)
    }
    /// One level deeper.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.deeper(1)?;
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }
    /// Notes that something has so many levels more.
    fn deeper(&mut self, levels: usize) -> Result<()> {
        if self.depth + levels > MAX_NESTING {
            let message = format!("nesting deeper than {MAX_NESTING} levels");
            let pos = self.scan.pos();
            return Err(self.scan.diagnostic(codes::INPUT_LIMIT, pos, message));
        }
        self.deepest = self.deepest.max(self.depth + levels);
        Ok(())
    }
    /// Notes one more part.
    fn count(&mut self) -> Result<()> {
        self.count_parts(1)
    }
    fn count_parts(&mut self, parts: u64) -> Result<()> {
        self.parts = self.parts.saturating_add(parts);
        if self.parts > MAX_SHARED_PARTS + self.scan.text().len() as u64 {
            let message = "aliases that stand for more than can be held";
            let pos = self.scan.pos();
            return Err(self.scan.diagnostic(codes::INPUT_LIMIT, pos, message));
        }
        Ok(())
    }
    /// The line of a position that is not before the one asked for last.
    fn line_of(&mut self, pos: usize) -> u32 {
        let (from, line) = self.line;
        if pos > from {
            let between = &self.scan.text().as_bytes()[from..pos];
            let lines = between.iter().filter(|b| **b == b'\n').count() as u32;
            self.line = (pos, line + lines);
        }
        self.line.1
    }
    /// Finds the definitions of aliases, which stand at the beginning of a line, and reads the
    /// section of resources.
    fn find_aliases(&mut self) -> Result<()> {
        let text = self.scan.text();
        let mut start = 0;
        while start < text.len() {
            let end = text[start..].find('\n').map_or(text.len(), |i| start + i);
            let line = text[start..end].trim_ascii_start();
            let at = end - line.len();
            if line.starts_with(['#', '!']) {
                self.find_alias(at)?;
            } else if line.starts_with("{-#") {
                self.scan.set_pos(at);
                self.resource_section()?;
                self.scan.skip_space();
                start = self.scan.pos();
                continue;
            }
            start = end + 1;
        }
        self.scan.set_pos(0);
        Ok(())
    }
    /// Remembers where the alias is defined whose name starts here, when it is one.
    fn find_alias(&mut self, at: usize) -> Result<()> {
        let sign = self.scan.text().as_bytes()[at];
        self.scan.set_pos(at + 1);
        let Ok(name) = self.scan.suffix() else {
            return Ok(());
        };
        if name.contains('.') || !self.scan.eat("=") {
            return Ok(());
        }
        let place = self.scan.pos();
        let before = self.aliases.insert((sign, name), Alias::At(place));
        if before.is_some() {
            let message = format!("alias `{name}` is defined twice");
            return Err(self.scan.diagnostic(codes::TEXT_NAME, at, message));
        }
        Ok(())
    }
    /// What the alias stands for whose name stands behind `#` or `!`.
    fn alias(&mut self, sign: u8, name: &'a str, pos: usize) -> Result<Attr> {
        let key = (sign, name);
        let at = match self.aliases.get(&key) {
            Some(Alias::Known {
                value,
                depth,
                parts,
            }) => {
                let (value, depth, parts) = (value.clone(), *depth, *parts);
                self.deeper(depth)?;
                self.count_parts(parts)?;
                return Ok(value);
            }
            Some(Alias::At(at)) => *at,
            Some(Alias::Open) => return Err(self.bad_alias(name, pos, "stands for itself")),
            None => return Err(self.bad_alias(name, pos, "is not defined")),
        };
        self.aliases.insert(key, Alias::Open);
        let (value, depth, parts) = self.aside(at, |r| r.attr())?;
        let known = Alias::Known {
            value: value.clone(),
            depth,
            parts,
        };
        self.aliases.insert(key, known);
        Ok(value)
    }
    /// What the alias `!name` stands for.
    fn type_alias(&mut self, name: &'a str, pos: usize) -> Result<Type> {
        match self.alias(b'!', name, pos)? {
            Attr::Type(ty) => Ok(ty),
            other => {
                let what = format!("stands for {} where a type should be", other.what());
                Err(self.bad_alias(name, pos, &what))
            }
        }
    }
    fn bad_alias(&self, name: &str, pos: usize, what: &str) -> Box<Diagnostic> {
        let message = format!("alias `{name}` {what}");
        self.scan.diagnostic(codes::TEXT_NAME, pos, message)
    }
    /// Reads something at another place, and finds how many levels and parts it has. Text is a part
    /// too, so that what aliases stand for may be written out.
    fn aside<T>(
        &mut self,
        at: usize,
        read: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, usize, u64)> {
        let (back, outside, parts) = (self.scan.pos(), self.deepest, self.parts);
        self.scan.set_pos(at);
        self.deepest = self.depth;
        let value = self.nested(read)?;
        let depth = self.deepest - self.depth;
        self.deepest = self.deepest.max(outside);
        let length = self.scan.pos().saturating_sub(at) as u64;
        self.scan.set_pos(back);
        Ok((value, depth, self.parts - parts + length / PART_BYTES))
    }
}

#[cfg(test)]
mod tests;
