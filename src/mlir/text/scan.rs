//! The words of MLIR text, taken one at a time from a position.
//!
//! Every method passes over white space and `//` comments first. Nothing recurses.

use crate::base::Code;
use crate::base::Cursor;
use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;

/// A text and a byte position in it.
#[derive(Clone, Debug)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    pos: usize,
}

/// Whether the byte may stand inside a keyword.
fn is_keyword_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.')
}

impl<'a> Scanner<'a> {
    /// At the beginning of `text`.
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, pos: 0 }
    }
    /// The whole text.
    pub(super) fn text(&self) -> &'a str {
        self.text
    }
    /// The byte position.
    pub(super) fn pos(&self) -> usize {
        self.pos
    }
    /// Goes to a position that this scanner had.
    pub(super) fn set_pos(&mut self, pos: usize) {
        self.pos = pos;
    }
    /// The byte `ahead` of the position; 0 beyond the end.
    pub(super) fn byte(&self, ahead: usize) -> u8 {
        let bytes = self.text.as_bytes();
        bytes.get(self.pos + ahead).copied().unwrap_or(0)
    }
    /// Moves past white space and comments.
    pub(super) fn skip_space(&mut self) {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.pos) {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.pos += 1,
                Some(b'/') if bytes.get(self.pos + 1) == Some(&b'/') => {
                    let rest = &bytes[self.pos..];
                    self.pos += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }
    /// The next byte that means something; 0 at the end.
    pub(super) fn peek(&mut self) -> u8 {
        self.skip_space();
        self.byte(0)
    }
    /// Whether nothing is left.
    pub(super) fn at_end(&mut self) -> bool {
        self.skip_space();
        self.pos >= self.text.len()
    }
    /// Whether punctuation comes next.
    pub(super) fn sees(&mut self, token: &str) -> bool {
        self.skip_space();
        self.text.as_bytes()[self.pos..].starts_with(token.as_bytes())
    }
    /// Takes punctuation when it comes next.
    pub(super) fn eat(&mut self, token: &str) -> bool {
        let found = self.sees(token);
        if found {
            self.pos += token.len();
        }
        found
    }
    /// Takes punctuation or fails.
    pub(super) fn expect(&mut self, token: &str) -> Result<()> {
        if self.eat(token) {
            Ok(())
        } else {
            Err(self.unexpected(&format!("`{token}`")))
        }
    }
    /// Takes the longest run of bytes that `accept`s; ASCII only, and without passing over space.
    pub(super) fn run(&mut self, accept: impl Fn(u8) -> bool) -> &'a str {
        let start = self.pos;
        let bytes = &self.text.as_bytes()[start..];
        let run = bytes.iter().take_while(|b| b.is_ascii() && accept(**b));
        self.pos += run.count();
        &self.text[start..self.pos]
    }
    /// The keyword that comes next: a letter or `_`, then letters, digits, `_`, `$`, `.`.
    pub(super) fn keyword(&mut self) -> Option<&'a str> {
        self.skip_space();
        let first = self.byte(0);
        if !(first.is_ascii_alphabetic() || first == b'_') {
            return None;
        }
        Some(self.run(is_keyword_byte))
    }
    /// As [`Self::keyword`], but stays where it is.
    pub(super) fn peek_keyword(&mut self) -> Option<&'a str> {
        self.skip_space();
        let start = self.pos;
        let word = self.keyword();
        self.pos = start;
        word
    }
    /// Takes this keyword when it comes next.
    pub(super) fn eat_keyword(&mut self, word: &str) -> bool {
        self.skip_space();
        let start = self.pos;
        if self.keyword() == Some(word) {
            return true;
        }
        self.pos = start;
        false
    }
    /// Takes this keyword or fails.
    pub(super) fn expect_keyword(&mut self, word: &str) -> Result<()> {
        if self.eat_keyword(word) {
            Ok(())
        } else {
            Err(self.unexpected(&format!("`{word}`")))
        }
    }
    /// The name after a sign such as `%` or `#`, which was taken: digits, or letters, digits and
    /// `$._-`. A `-` before `>` is no part of it.
    pub(super) fn suffix(&mut self) -> Result<&'a str> {
        let start = self.pos;
        let bytes = self.text.as_bytes();
        if self.byte(0).is_ascii_digit() {
            return Ok(self.run(|b| b.is_ascii_digit()));
        }
        while let Some(&byte) = bytes.get(self.pos) {
            let inside = is_keyword_byte(byte) || byte == b'-';
            if !inside || (byte == b'-' && bytes.get(self.pos + 1) == Some(&b'>')) {
                break;
            }
            self.pos += 1;
        }
        if self.pos == start {
            return Err(self.unexpected("a name"));
        }
        Ok(&self.text[start..self.pos])
    }
    /// The name of a value, without `%` and `#n`, and its place.
    pub(super) fn value_name(&mut self) -> Result<(&'a str, usize)> {
        if self.peek() != b'%' {
            return Err(self.unexpected("a value"));
        }
        let place = self.pos;
        self.pos += 1;
        Ok((self.suffix()?, place))
    }
    /// Decimal digits as a number.
    pub(super) fn number(&mut self) -> Result<u64> {
        self.skip_space();
        let start = self.pos;
        let digits = self.run(|b| b.is_ascii_digit());
        if digits.is_empty() {
            return Err(self.unexpected("a number"));
        }
        let wide = || self.error_at(start, format!("`{digits}` does not fit 64 bits"));
        digits.parse().map_err(|_| wide())
    }
    /// An integer with an optional `-`, decimal or hexadecimal.
    pub(super) fn integer(&mut self) -> Result<i64> {
        self.skip_space();
        let start = self.pos;
        let negative = self.eat("-");
        let hex = self.byte(0) == b'0' && self.byte(1) == b'x';
        let value = if hex {
            self.pos += 2;
            let digits = self.run(|b| b.is_ascii_hexdigit());
            i128::from_str_radix(digits, 16).ok()
        } else {
            let digits = self.run(|b| b.is_ascii_digit());
            if digits.is_empty() {
                self.pos = start;
                return Err(self.unexpected("an integer"));
            }
            digits.parse().ok()
        };
        let value = value.map(|v: i128| if negative { -v } else { v });
        let value = value.and_then(|v| i64::try_from(v).ok());
        value.ok_or_else(|| self.error_at(start, "an integer that does not fit 64 bits"))
    }
    /// A number that fits 32 bits.
    pub(super) fn small(&mut self) -> Result<u32> {
        self.skip_space();
        let start = self.pos;
        let value = self.number()?;
        u32::try_from(value)
            .map_err(|_| self.error_at(start, format!("`{value}` does not fit 32 bits")))
    }
    /// Moves past a quoted string; gives what is between the quotes, escapes and all.
    pub(super) fn raw_string(&mut self) -> Result<&'a str> {
        if self.peek() != b'"' {
            return Err(self.unexpected("a string"));
        }
        let start = self.pos;
        let bytes = self.text.as_bytes();
        let mut end = start + 1;
        // Long strings are without escapes, and what looks for one byte is fast.
        let plain = self.text[end..]
            .find('"')
            .map_or("", |i| &self.text[end..end + i]);
        if !plain.as_bytes().contains(&b'\\') && !plain.as_bytes().contains(&b'\n') {
            end += plain.len();
        }
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(b'\n') | None => {
                    return Err(self.error_at(start, "a string that is not closed"));
                }
                Some(_) => end += 1,
            }
        }
        self.pos = end + 1;
        Ok(&self.text[start + 1..end])
    }
    /// A quoted string, unescaped: `\"`, `\\`, `\n`, `\t` and two hexadecimal digits.
    pub(super) fn string(&mut self) -> Result<Vec<u8>> {
        self.skip_space();
        let start = self.pos;
        let raw = self.raw_string()?;
        unescape(raw.as_bytes())
            .ok_or_else(|| self.error_at(start, "a string with a broken escape"))
    }
    /// A quoted string that is valid UTF-8.
    pub(super) fn utf8_string(&mut self) -> Result<String> {
        self.skip_space();
        let start = self.pos;
        String::from_utf8(self.string()?)
            .map_err(|_| self.error_at(start, "a string that is not valid UTF-8"))
    }
    /// The name of a symbol after `@`: bare or quoted.
    pub(super) fn symbol(&mut self) -> Result<String> {
        self.expect("@")?;
        if self.byte(0) == b'"' {
            return self.utf8_string();
        }
        self.suffix().map(str::to_owned)
    }
    /// From an opening bracket to the one that closes it, both included. Strings may hold anything,
    /// and `->` closes nothing.
    pub(super) fn bracketed(&mut self) -> Result<&'a str> {
        self.skip_space();
        let start = self.pos;
        let bytes = self.text.as_bytes();
        let mut open = Vec::new();
        while let Some(&byte) = bytes.get(self.pos) {
            match byte {
                b'"' => {
                    self.raw_string()?;
                    continue;
                }
                b'<' | b'(' | b'[' | b'{' => open.push(byte),
                b'>' if bytes[self.pos - 1] == b'-' => {}
                b'>' | b')' | b']' | b'}' => {
                    let fits = match open.pop() {
                        Some(b'<') => byte == b'>',
                        Some(b'(') => byte == b')',
                        Some(b'[') => byte == b']',
                        Some(_) => byte == b'}',
                        None => false,
                    };
                    if !fits {
                        return Err(self.error_at(self.pos, "a bracket that closes nothing"));
                    }
                }
                _ => {}
            }
            self.pos += 1;
            if open.is_empty() {
                break;
            }
        }
        if !open.is_empty() {
            return Err(self.error_at(start, "a bracket that is not closed"));
        }
        Ok(&self.text[start..self.pos])
    }

    /// The text does not follow the grammar here.
    pub(super) fn unexpected(&mut self, wanted: &str) -> Box<Diagnostic> {
        self.skip_space();
        let rest = &self.text[self.floor(self.pos)..];
        let word: String = rest
            .chars()
            .take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '.'))
            .take(40)
            .collect();
        let found = match rest.chars().next() {
            None => "the end of the text".to_owned(),
            Some(first) if word.is_empty() => format!("`{first}`"),
            Some(_) => format!("`{word}`"),
        };
        self.error_at(
            self.pos,
            format!("found {found} where {wanted} should stand"),
        )
    }
    /// A breach of the grammar at a position.
    pub(super) fn error_at(&self, pos: usize, message: impl Into<String>) -> Box<Diagnostic> {
        self.diagnostic(codes::TEXT_SYNTAX, pos, message)
    }
    /// An error with another code at a position.
    pub(super) fn diagnostic(
        &self,
        code: Code,
        pos: usize,
        message: impl Into<String>,
    ) -> Box<Diagnostic> {
        Cursor::new(self.text).diagnostic(code, self.floor(pos), message)
    }
    /// The start of the character that holds the byte.
    fn floor(&self, pos: usize) -> usize {
        let mut pos = pos.min(self.text.len());
        while !self.text.is_char_boundary(pos) {
            pos -= 1;
        }
        pos
    }
}

/// The bytes that an escaped text stands for; nothing when an escape is broken.
fn unescape(raw: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        out.push(match rest.next()? {
            b'n' => b'\n',
            b't' => b'\t',
            byte @ (b'"' | b'\\') => byte,
            high => hex(high)? << 4 | hex(rest.next()?)?,
        });
    }
    Some(out)
}

/// The value of each hexadecimal digit; 255 for what is none.
const DIGITS: [u8; 256] = {
    let mut table = [255; 256];
    let mut digit = 0;
    while digit < 16 {
        table[b"0123456789abcdef"[digit] as usize] = digit as u8;
        table[b"0123456789ABCDEF"[digit] as usize] = digit as u8;
        digit += 1;
    }
    table
};

/// The value of a hexadecimal digit.
fn hex(digit: u8) -> Option<u8> {
    let value = DIGITS[usize::from(digit)];
    (value < 16).then_some(value)
}

/// The bytes that pairs of hexadecimal digits spell; nothing when they do not.
pub(super) fn hex_bytes(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let mut bad = 0;
    let byte = |pair: &[u8; 2]| {
        let [high, low] = pair.map(|digit| DIGITS[usize::from(digit)]);
        bad |= high | low;
        high << 4 | low
    };
    let bytes: Vec<u8> = pairs.iter().map(byte).collect();
    (rest.is_empty() && bad < 16).then_some(bytes)
}

/// Writes bytes between double quotes: the inverse of [`Scanner::string`].
pub(in crate::mlir) fn quote(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.push('"');
    for &byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'"' | 0..0x20 | 0x7f.. => {
                out.push('\\');
                out.push(char::from(DIGITS[usize::from(byte >> 4)]));
                out.push(char::from(DIGITS[usize::from(byte & 15)]));
            }
            _ => out.push(char::from(byte)),
        }
    }
    out.push('"');
}
