//! HLO text, as XLA and JAX print it.
//!
//! The reader follows the grammar of XLA's own parser, with or without `%` and operand shapes.
//! Declared shapes are taken as they stand; whether they are right is the verifier's question.
//! Computations and instructions must be defined before they are used, but for
//! `control-predecessors`. Computations written inline, and those that `custom-call-start` and its
//! like stand for, become computations of their own.
//!
//! Any text gives a module or one diagnostic with its place, in memory bounded by the text.
//! Source for the grammar: openxla/xla, `xla/hlo/parser/hlo_parser.cc`.

mod attributes;
mod computation;
mod header;
mod metadata;
mod op;
mod sharding;
mod value;

use std::collections::BTreeMap;

use crate::base::Arena;
use crate::base::Cursor;
use crate::base::Diagnostic;
use crate::base::Id;
use crate::base::Result;
use crate::base::codes;
use crate::hlo::CompId;
use crate::hlo::Module;
use crate::hlo::ModuleConfig;
use crate::hlo::Sharding;
use crate::hlo::StackFrameIndex;
use crate::hlo::Stage;

/// How deep computations and instructions may stand inside each other.
const MAX_INLINE: usize = 64;

/// Parts that all shapes may have together that the text leaves out.
const MAX_INFERRED_PARTS: usize = 1 << 22;

/// Reads a module.
///
/// # Errors
/// `TEXT_SYNTAX`, `TEXT_NAME`, `UNKNOWN_WORD` and `INPUT_LIMIT`, each with its place.
pub fn parse(text: &str) -> Result<Module> {
    if u32::try_from(text.len()).is_err() {
        let message = format!("the text has {} bytes, more than 4 GiB", text.len());
        return Err(Diagnostic::error(codes::INPUT_LIMIT, message));
    }
    let mut reader = Reader {
        cursor: Cursor::new(text),
        module: empty_module(),
        entry: None,
        names: BTreeMap::new(),
        unnamed: Vec::new(),
        depth: 0,
        inferred_parts: MAX_INFERRED_PARTS,
    };
    reader.module()?;
    Ok(reader.module)
}

/// Reads the sharding that a text is, such as `{devices=[2]0,1}`.
///
/// # Errors
/// Those of [`parse`].
pub(in crate::front) fn parse_sharding(text: &str) -> Result<Sharding> {
    let mut reader = Reader {
        cursor: Cursor::new(text),
        module: empty_module(),
        entry: None,
        names: BTreeMap::new(),
        unnamed: Vec::new(),
        depth: 0,
        inferred_parts: MAX_INFERRED_PARTS,
    };
    let sharding = reader.sharding()?;
    if reader.cursor.at_end() {
        return Ok(sharding);
    }
    Err(reader.cursor.unexpected("the end of the sharding"))
}

fn empty_module() -> Module {
    Module {
        name: String::new(),
        stage: Stage::Imported,
        comps: Arena::new(),
        instrs: Arena::new(),
        entry: CompId::from_index(0),
        input_output_alias: BTreeMap::new(),
        buffer_donors: Vec::new(),
        frontend_attributes: BTreeMap::new(),
        is_scheduled: false,
        config: ModuleConfig::default(),
        stack_frames: StackFrameIndex::default(),
        other_attributes: Vec::new(),
    }
}

/// The state of one reading.
struct Reader<'a> {
    cursor: Cursor<'a>,
    module: Module,
    entry: Option<CompId>,
    /// Computations by name.
    names: BTreeMap<&'a str, CompId>,
    /// Computations without a name in the text, and what to call them.
    unnamed: Vec<(CompId, &'static str)>,
    /// Computations and instructions around the current place.
    depth: usize,
    /// Parts that shapes which the text leaves out may still have.
    inferred_parts: usize,
}

impl<'a> Reader<'a> {
    /// A name, with or without `%`, and its place.
    fn name(&mut self, what: &str) -> Result<(&'a str, usize)> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        if self.cursor.byte() == b'%' {
            self.cursor.set_pos(start + 1);
            if !matches!(self.cursor.byte(), b'_' | b'a'..=b'z' | b'A'..=b'Z') {
                self.cursor.set_pos(start);
                return Err(self.cursor.unexpected(what));
            }
        }
        let place = self.cursor.pos();
        match self.cursor.word() {
            Some(word) => Ok((word, place)),
            None => Err(self.cursor.unexpected(what)),
        }
    }
    /// Takes the word when it comes next.
    fn eat_word(&mut self, word: &str) -> bool {
        self.cursor.peek_word() == Some(word) && self.cursor.eat(word)
    }
    /// `true` or `false`.
    fn bool(&mut self) -> Result<bool> {
        match self.cursor.peek_word() {
            Some(word @ ("true" | "false")) => {
                self.cursor.eat(word);
                Ok(word == "true")
            }
            _ => Err(self.cursor.unexpected("`true` or `false`")),
        }
    }
    /// Enters one more level of inline text.
    fn enter(&mut self) -> Result<()> {
        if self.depth >= MAX_INLINE {
            let message = format!("instructions nested deeper than {MAX_INLINE} levels");
            let pos = self.cursor.pos();
            return Err(self.cursor.diagnostic(codes::INPUT_LIMIT, pos, message));
        }
        self.depth += 1;
        Ok(())
    }
    /// A word that stands for nothing known.
    fn unknown(&self, pos: usize, what: &str, word: &str) -> Box<Diagnostic> {
        self.cursor
            .diagnostic(codes::UNKNOWN_WORD, pos, format!("`{word}` is no {what}"))
    }
    /// A list of integers `{1,2}`.
    fn integers(&mut self) -> Result<Vec<i64>> {
        self.cursor.list("{", "}", Cursor::integer)
    }
}

#[cfg(test)]
mod corpus_tests;
#[cfg(test)]
mod tests;
