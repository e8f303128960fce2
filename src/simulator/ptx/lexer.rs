//! Bytes to tokens, one at a time.
//!
//! A token is a kind and a range of the text. Nothing is copied and nothing is allocated but
//! diagnostics.

use crate::base::Code;
use crate::base::Cursor;
use crate::base::Diagnostic;
use crate::base::Location;
use crate::base::Result;
use crate::base::codes;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `abc`, `%r1`, `$L1`, `_`
    Name,
    /// `.abc`, `.L2::128B`: a dot and the words after it.
    Dot,
    /// Anything that starts with a digit.
    Number,
    /// `"..."`, quotes included.
    Text,
    /// One byte of punctuation.
    Mark(u8),
    /// The end of the text.
    End,
}

/// A kind and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Line of its first byte, from one.
    pub(super) line: u32,
}

/// The text and the next position in it. Copies are cheap: a copy is a place to come back to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    pos: usize,
    line: u32,
}

/// May stand inside a name.
const WORD: u8 = 1;
/// May begin a name.
const FIRST: u8 = 2;
/// White space.
const SPACE: u8 = 4;
/// A decimal digit.
const DIGIT: u8 = 8;
/// A mark that stands alone.
const MARK: u8 = 16;

/// What each byte may be.
static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let byte = i as u8;
        table[i] = match byte {
            b'0'..=b'9' => WORD | DIGIT,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => WORD | FIRST,
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => SPACE,
            b'{' | b'}' | b'[' | b']' | b'(' | b')' | b',' | b';' | b':' | b'+' | b'-' | b'*'
            | b'/' | b'%' | b'&' | b'|' | b'^' | b'~' | b'!' | b'<' | b'>' | b'=' | b'?' | b'@' => {
                MARK
            }
            _ => 0,
        };
        i += 1;
    }
    table
}

fn is(byte: u8, class: u8) -> bool {
    CLASS[usize::from(byte)] & class != 0
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            pos: 0,
            line: 1,
        }
    }
    pub(super) fn text(&self) -> &'a str {
        self.text
    }
    /// Goes back to inside the line of `token`: only to read part of it again.
    pub(super) fn rewind(&mut self, token: Token, pos: usize) {
        self.pos = pos;
        self.line = token.line;
    }
    /// The byte right after the last token; 0 at the end.
    pub(super) fn byte(&self) -> u8 {
        self.at(self.pos)
    }
    fn at(&self, pos: usize) -> u8 {
        self.text.as_bytes().get(pos).copied().unwrap_or(0)
    }
    /// Moves past the rest of the line.
    pub(super) fn skip_line(&mut self) {
        let rest = &self.text.as_bytes()[self.pos..];
        self.pos += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
    }
    /// Moves past bytes of a class.
    fn run(&self, mut pos: usize, class: u8) -> usize {
        let bytes = self.text.as_bytes();
        while pos < bytes.len() && is(bytes[pos], class) {
            pos += 1;
        }
        pos
    }
    fn skip_space(&mut self) -> Result<()> {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.pos) {
            if is(byte, SPACE) {
                self.line += u32::from(byte == b'\n');
                self.pos += 1;
            } else if byte == b'/' && self.at(self.pos + 1) == b'/' {
                self.skip_line();
            } else if byte == b'/' && self.at(self.pos + 1) == b'*' {
                self.skip_comment()?;
            } else if byte == b'#' && self.opens_line() {
                self.skip_hash()?;
            } else {
                break;
            }
        }
        Ok(())
    }
    fn skip_comment(&mut self) -> Result<()> {
        let body = &self.text[self.pos + 2..];
        let Some(length) = body.find("*/") else {
            let message = "a comment that is not closed";
            return Err(self.error(codes::PTX_SYNTAX, self.pos, self.pos + 2, message));
        };
        let lines = body.as_bytes()[..length].iter();
        self.line += lines.filter(|b| **b == b'\n').count() as u32;
        self.pos += length + 4;
        Ok(())
    }
    /// Whether nothing but space stands before this on its line.
    fn opens_line(&self) -> bool {
        let before = self.text.as_bytes()[..self.pos].iter().rev();
        let last = before.copied().find(|b| *b == b'\n' || !is(*b, SPACE));
        matches!(last, None | Some(b'\n'))
    }
    /// Lines of a preprocessor that has run already tell where the text came from. Others would
    /// change what the text means.
    fn skip_hash(&mut self) -> Result<()> {
        let start = self.pos;
        let rest = self.text[start + 1..].trim_start_matches([' ', '\t']);
        let word: &str = rest
            .split(|c: char| !c.is_ascii_alphanumeric())
            .next()
            .unwrap_or("");
        let marks = word == "line" || word == "file" || word.bytes().all(|b| b.is_ascii_digit());
        if word.is_empty() || !marks {
            let message = "a line of the C preprocessor; the text must be preprocessed already";
            return Err(self.error(codes::PTX_SYNTAX, start, start + 1, message));
        }
        self.skip_line();
        Ok(())
    }
    /// The next token.
    pub(super) fn next(&mut self) -> Result<Token> {
        self.skip_space()?;
        let start = self.pos;
        let line = self.line;
        let first = self.at(start);
        let (kind, end) = if is(first, FIRST) {
            (Kind::Name, self.run(start + 1, WORD))
        } else if first == b'.' && is(self.at(start + 1), WORD) {
            (Kind::Dot, self.dotted(start + 1))
        } else if first == b'%' && is(self.at(start + 1), WORD) {
            (Kind::Name, self.run(start + 1, WORD))
        } else if is(first, DIGIT) {
            (Kind::Number, self.number(start))
        } else if is(first, MARK) {
            (Kind::Mark(first), start + 1)
        } else if first == b'"' {
            (Kind::Text, self.string(start)?)
        } else if start >= self.text.len() {
            (Kind::End, start)
        } else {
            let found = self.text[start..].chars().next().unwrap_or('\0');
            let message = format!("found {found:?}, which is no part of PTX");
            return Err(self.error(codes::PTX_SYNTAX, start, start + found.len_utf8(), message));
        };
        self.pos = end;
        Ok(Token {
            kind,
            start,
            end,
            line,
        })
    }
    /// The end of `word` or `word::word`.
    fn dotted(&self, pos: usize) -> usize {
        let mut end = self.run(pos, WORD);
        while self.at(end) == b':' && self.at(end + 1) == b':' && is(self.at(end + 2), WORD) {
            end = self.run(end + 2, WORD);
        }
        end
    }
    /// The end of a number: digits and letters, one dot, and a sign after the `e` of a decimal one.
    pub(super) fn number(&self, start: usize) -> usize {
        let mut end = self.run(start, WORD);
        let plain = self.text.as_bytes()[start..end]
            .iter()
            .all(|b| is(*b, DIGIT));
        if plain && self.at(end) == b'.' {
            end = self.run(end + 1, WORD);
        }
        let decimal = |b: &u8| is(*b, DIGIT) || matches!(b, b'.' | b'e' | b'E');
        let exponent = matches!(self.at(end - 1), b'e' | b'E');
        let sign = matches!(self.at(end), b'+' | b'-') && is(self.at(end + 1), DIGIT);
        if exponent && sign && self.text.as_bytes()[start..end].iter().all(decimal) {
            end = self.run(end + 1, WORD);
        }
        end
    }
    fn string(&self, start: usize) -> Result<usize> {
        let mut end = start + 1;
        loop {
            match self.at(end) {
                b'"' => return Ok(end + 1),
                b'\\' if matches!(self.at(end + 1), b'\\' | b'"') => end += 2,
                b'\n' => break,
                _ if end >= self.text.len() => break,
                _ => end += 1,
            }
        }
        let message = "a string that is not closed";
        Err(self.error(codes::PTX_SYNTAX, start, start + 1, message))
    }
    /// The bytes of a token.
    pub(super) fn slice(&self, token: Token) -> &'a str {
        &self.text[token.start..token.end]
    }
    /// An error at a range of the text.
    #[cold]
    pub(super) fn error(
        &self,
        code: Code,
        start: usize,
        end: usize,
        message: impl Into<String>,
    ) -> Box<Diagnostic> {
        Diagnostic::error(code, message).at(Cursor::new(self.text).location(start, end))
    }
}

/// The place of a slice of the text; the first line when it is no such slice.
pub(super) fn location_of_part(text: &str, part: &str) -> Location {
    let offset = (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    let fits = offset <= text.len() && text.is_char_boundary(offset);
    let start = if fits { offset } else { 0 };
    Cursor::new(text).location(start, start.saturating_add(part.len()))
}

/// The place of a line, counted from one; the end of the text when there are not so many.
pub(super) fn location_of_line(text: &str, line: u32) -> Location {
    let mut start = 0;
    for _ in 1..line {
        start = match text[start..].find('\n') {
            Some(length) => start + length + 1,
            None => text.len(),
        };
    }
    let whole = text[start..].lines().next().unwrap_or("");
    let from = start + (whole.len() - whole.trim_start().len());
    Cursor::new(text).location(from, from + whole.trim().len())
}
