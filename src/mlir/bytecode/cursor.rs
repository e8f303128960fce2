//! A place in bytecode: bytes, integers of variable width, sections.
//!
//! Every count is checked against the bytes that are left before anything is allocated for it.
//! Source: MLIR's BytecodeFormat document, "Primitives" and "Sections".

use crate::base::Diagnostic;
use crate::base::Location;
use crate::base::Result;
use crate::base::codes;

/// What fills the bytes before something aligned.
pub(super) const PADDING: u8 = 0xCB;

/// A part of the file that is being read, with the place of its first byte in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    base: usize,
}

impl<'a> Cursor<'a> {
    /// Reads `bytes`, whose first one is byte `base` of the file.
    pub(super) fn new(bytes: &'a [u8], base: usize) -> Self {
        Self { bytes, at: 0, base }
    }
    /// The place in the file of the next byte.
    pub(super) fn offset(&self) -> usize {
        self.base + self.at
    }
    /// The number of bytes that are left.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }
    /// Whether everything has been read.
    pub(super) fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }
    /// A diagnostic about this place.
    pub(super) fn error(&self, message: impl Into<String>) -> Box<Diagnostic> {
        error_at(self.offset(), message)
    }
    /// The next byte.
    pub(super) fn byte(&mut self, what: &str) -> Result<u8> {
        match self.bytes.get(self.at) {
            Some(&byte) => {
                self.at += 1;
                Ok(byte)
            }
            None => Err(self.error(format!("the bytecode ends where {what} should be"))),
        }
    }
    /// The next `count` bytes.
    pub(super) fn take(&mut self, count: u64, what: &str) -> Result<&'a [u8]> {
        let taken = usize::try_from(count)
            .ok()
            .and_then(|count| self.bytes[self.at..].get(..count));
        match taken {
            Some(taken) => {
                self.at += taken.len();
                Ok(taken)
            }
            None => Err(self.error(format!(
                "{what} should have {count} bytes, and {} are left",
                self.left()
            ))),
        }
    }
    /// The next `count` bytes, to be read on their own.
    pub(super) fn part(&mut self, count: u64, what: &str) -> Result<Cursor<'a>> {
        let base = self.offset();
        Ok(Cursor::new(self.take(count, what)?, base))
    }
    /// An unsigned integer: the number of low zero bits of the first byte says how many bytes follow.
    pub(super) fn varint(&mut self, what: &str) -> Result<u64> {
        let first = self.byte(what)?;
        if first & 1 == 1 {
            return Ok(u64::from(first >> 1));
        }
        let more = first.trailing_zeros() as usize;
        let Some(tail) = self.bytes[self.at..].get(..more) else {
            return Err(self.error(format!("the bytecode ends within {what}")));
        };
        let mut word = [0; 8];
        word[..more].copy_from_slice(tail);
        self.at += more;
        let tail = u64::from_le_bytes(word);
        if more == 8 {
            return Ok(tail);
        }
        Ok(tail << (7 - more) | u64::from(first) >> (more + 1))
    }
    /// A signed integer, whose lowest bit is the sign.
    pub(super) fn signed(&mut self, what: &str) -> Result<i64> {
        let word = self.varint(what)?;
        Ok((word >> 1) as i64 ^ -((word & 1) as i64))
    }
    /// An integer with a flag below it.
    pub(super) fn flagged(&mut self, what: &str) -> Result<(u64, bool)> {
        let word = self.varint(what)?;
        Ok((word >> 1, word & 1 == 1))
    }
    /// How many of something follow, each of which takes a byte or more.
    pub(super) fn count(&mut self, what: &str) -> Result<usize> {
        let count = self.varint(what)?;
        self.fits(count, what)
    }
    /// `count`, when so many bytes are left.
    pub(super) fn fits(&self, count: u64, what: &str) -> Result<usize> {
        match usize::try_from(count) {
            Ok(count) if count <= self.left() => Ok(count),
            _ => Err(self.error(format!(
                "{what}: {count} are announced, and {} bytes are left",
                self.left()
            ))),
        }
    }
    /// A list of signed integers behind its length.
    pub(super) fn signed_list(&mut self, what: &str) -> Result<Vec<i64>> {
        let count = self.count(what)?;
        (0..count).map(|_| self.signed(what)).collect()
    }
    /// A string that a zero byte ends.
    pub(super) fn zero_ended(&mut self, what: &str) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        match rest.iter().position(|&byte| byte == 0) {
            Some(length) => {
                self.at += length + 1;
                Ok(&rest[..length])
            }
            None => Err(self.error(format!("no zero byte ends {what}"))),
        }
    }
    /// Passes over the padding before something aligned.
    pub(super) fn align(&mut self, alignment: u64) -> Result<()> {
        if !alignment.is_power_of_two() {
            return Err(self.error(format!("the alignment {alignment} is no power of two")));
        }
        while self.offset() as u64 & (alignment - 1) != 0 {
            let byte = self.byte("padding")?;
            if byte != PADDING {
                return Err(self.error(format!("padding has the byte {byte:#04x}, not 0xcb")));
            }
        }
        Ok(())
    }
    /// A section: its number and its content.
    pub(super) fn section(&mut self) -> Result<(u8, Cursor<'a>)> {
        let head = self.byte("the number of a section")?;
        let length = self.varint("the length of a section")?;
        if head & 0x80 != 0 {
            let alignment = self.varint("the alignment of a section")?;
            self.align(alignment)?;
        }
        let content = self.part(length, "a section")?;
        Ok((head & 0x7F, content))
    }
    /// Says what is wrong when something is left.
    pub(super) fn finish(&self, what: &str) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        Err(self.error(format!("{} bytes are left behind {what}", self.left())))
    }
}

/// A diagnostic about a byte of the file.
pub(super) fn error_at(offset: usize, message: impl Into<String>) -> Box<Diagnostic> {
    Diagnostic::error(codes::PROTO_DECODE, message).at(Location::Byte(offset as u64))
}
