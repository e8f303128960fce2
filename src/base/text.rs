//! A position in a text, for parsers written by hand, and quoted strings.
//!
//! Every failure is a diagnostic with line, column and the line itself. Nothing here recurses, and
//! nothing allocates more than the text is long. Columns count characters.

use crate::base::Diagnostic;
use crate::base::Location;
use crate::base::Result;
use crate::base::codes;

/// How deep braces, tuples and the like may nest in any text.
pub const MAX_NESTING: usize = 200;

/// A text and a byte position in it, always on a character boundary.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    text: &'a str,
    pos: usize,
}

/// Whether the byte may stand inside a name: `[a-zA-Z0-9_.-]`.
pub fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

impl<'a> Cursor<'a> {
    /// At the beginning of `text`.
    pub fn new(text: &'a str) -> Self {
        Self { text, pos: 0 }
    }
    /// The whole text.
    pub fn text(&self) -> &'a str {
        self.text
    }
    /// The byte position.
    pub fn pos(&self) -> usize {
        self.pos
    }
    /// Goes to a position that this cursor had, or that lies on a character boundary.
    pub fn set_pos(&mut self, pos: usize) {
        debug_assert!(self.text.is_char_boundary(pos), "a character starts here");
        self.pos = pos;
    }
    /// What is left of the text.
    pub fn rest(&self) -> &'a str {
        &self.text[self.pos..]
    }
    /// What is left of the text, as bytes.
    pub fn rest_bytes(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.pos..]
    }
    /// The next byte without skipping anything; 0 at the end.
    pub fn byte(&self) -> u8 {
        self.text.as_bytes().get(self.pos).copied().unwrap_or(0)
    }
    /// Moves past white space and comments (`/*...*/`, `//...`). An open comment stays.
    pub fn skip_space(&mut self) {
        let bytes = self.text.as_bytes();
        loop {
            while matches!(bytes.get(self.pos), Some(b' ' | b'\t' | b'\n' | b'\r')) {
                self.pos += 1;
            }
            let rest = &self.text[self.pos..];
            if let Some(comment) = rest.strip_prefix("/*") {
                let Some(length) = comment.find("*/") else {
                    return;
                };
                self.pos += length + 4;
            } else if rest.starts_with("//") {
                self.pos += rest.find('\n').unwrap_or(rest.len());
            } else {
                return;
            }
        }
    }
    /// The next byte that means something; 0 at the end.
    pub fn peek(&mut self) -> u8 {
        self.skip_space();
        self.byte()
    }
    /// Whether nothing but space is left.
    pub fn at_end(&mut self) -> bool {
        self.skip_space();
        self.pos == self.text.len()
    }
    /// Takes `token` when it comes next, after space.
    pub fn eat(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(token);
        if found {
            self.pos += token.len();
        }
        found
    }
    /// Takes `token` or fails.
    pub fn expect(&mut self, token: &str) -> Result<()> {
        if self.eat(token) {
            Ok(())
        } else {
            Err(self.unexpected(&format!("`{token}`")))
        }
    }
    /// The name that comes next, after space: a letter or `_`, then letters, digits, `_`, `.`, `-`.
    pub fn word(&mut self) -> Option<&'a str> {
        self.skip_space();
        let bytes = self.rest_bytes();
        if !bytes
            .first()
            .is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_')
        {
            return None;
        }
        let mut end = 1;
        while end < bytes.len() && is_name_byte(bytes[end]) {
            if bytes[end] == b'-' && bytes.get(end + 1) == Some(&b'>') {
                break;
            }
            end += 1;
        }
        let word = &self.text[self.pos..self.pos + end];
        self.pos += end;
        Some(word)
    }
    /// As [`Self::word`], but stays where it is.
    pub fn peek_word(&mut self) -> Option<&'a str> {
        let start = self.pos;
        let word = self.word();
        self.pos = start;
        word
    }
    /// Takes the longest run of bytes that `accept`s; ASCII only.
    pub fn take_while(&mut self, accept: impl Fn(u8) -> bool) -> &'a str {
        let bytes = self.rest_bytes();
        let length = bytes
            .iter()
            .take_while(|b| b.is_ascii() && accept(**b))
            .count();
        let taken = &self.text[self.pos..self.pos + length];
        self.pos += length;
        taken
    }
    /// A decimal integer with an optional `-`.
    pub fn integer(&mut self) -> Result<i64> {
        self.skip_space();
        let start = self.pos;
        let negative = self.byte() == b'-';
        self.pos += usize::from(negative);
        let digits = self.take_while(|b| b.is_ascii_digit());
        if digits.is_empty() {
            self.pos = start;
            return Err(self.unexpected("an integer"));
        }
        let text = &self.text[start..self.pos];
        text.parse()
            .map_err(|_| self.error_at(start, format!("`{text}` does not fit 64 bits")))
    }
    /// A decimal integer that is not negative and fits `usize`.
    pub fn size(&mut self) -> Result<usize> {
        self.skip_space();
        let start = self.pos;
        let value = self.integer()?;
        usize::try_from(value).map_err(|_| self.error_at(start, format!("`{value}` is negative")))
    }
    /// A decimal number, `inf`, or `nan`, with an optional `-`.
    pub fn float(&mut self) -> Result<f64> {
        self.skip_space();
        let start = self.pos;
        let text =
            self.take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'+'));
        text.parse().map_err(|_| {
            self.pos = start;
            self.unexpected("a number")
        })
    }
    /// A double- or single-quoted string, unescaped.
    pub fn string(&mut self) -> Result<Vec<u8>> {
        let quote = self.peek();
        if quote != b'"' && quote != b'\'' {
            return Err(self.unexpected("a quoted string"));
        }
        let start = self.pos;
        let raw = self.skip_string()?;
        unescape(raw).ok_or_else(|| self.error_at(start, "a string with a broken escape"))
    }
    /// A quoted string that is valid UTF-8.
    pub fn utf8_string(&mut self) -> Result<String> {
        self.skip_space();
        let start = self.pos;
        String::from_utf8(self.string()?)
            .map_err(|_| self.error_at(start, "a string that is not valid UTF-8"))
    }
    /// Moves past the quoted string that starts here; gives what is between the quotes.
    fn skip_string(&mut self) -> Result<&'a str> {
        let start = self.pos;
        let bytes = self.text.as_bytes();
        let quote = self.byte();
        let mut end = start + 1;
        while end < bytes.len() && bytes[end] != quote {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        if end >= bytes.len() {
            return Err(self.error_at(start, "a string that is not closed"));
        }
        self.pos = end + 1;
        Ok(&self.text[start + 1..end])
    }
    /// The text from an opening brace to the one that closes it, both included. Double-quoted
    /// strings inside may hold braces of any kind.
    pub fn braced(&mut self) -> Result<&'a str> {
        self.skip_space();
        let start = self.pos;
        if self.byte() != b'{' {
            return Err(self.unexpected("`{`"));
        }
        self.raw_value(|_| false)
            .map_err(|_| self.error_at(start, "a brace that is not closed"))
    }
    /// The text up to a byte outside of brackets that `ends` it, or to the bracket that closes the
    /// first one when it starts with one. Double-quoted strings may hold anything.
    pub fn raw_value(&mut self, ends: impl Fn(u8) -> bool) -> Result<&'a str> {
        self.skip_space();
        let start = self.pos;
        let bytes = self.text.as_bytes();
        let braced = self.byte() == b'{';
        let mut depth = 0usize;
        while let Some(&byte) = bytes.get(self.pos) {
            match byte {
                b'{' => depth += 1,
                b'(' | b'[' if !braced => depth += 1,
                b'}' if depth > 0 => depth -= 1,
                b')' | b']' if !braced && depth > 0 => depth -= 1,
                b'"' => {
                    self.skip_string()?;
                    continue;
                }
                _ if depth == 0 && ends(byte) => break,
                _ => {}
            }
            // A byte of a longer character is never one of those above.
            self.pos += 1;
            if braced && depth == 0 {
                break;
            }
        }
        if depth > 0 {
            self.pos = start;
            return Err(self.error_at(start, "a bracket that is not closed"));
        }
        Ok(&self.text[start..self.pos])
    }
    /// A list `open item, item, ... close`, possibly empty.
    pub fn list<T>(
        &mut self,
        open: &str,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.expect(open)?;
        let mut items = Vec::new();
        if self.eat(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.eat(close) {
                return Ok(items);
            }
            if !self.eat(",") {
                return Err(self.unexpected(&format!("`,` or `{close}`")));
            }
        }
    }

    /// The text does not follow the grammar here.
    pub fn unexpected(&mut self, wanted: &str) -> Box<Diagnostic> {
        self.skip_space();
        let rest = self.rest();
        let found = if rest.is_empty() {
            "the end of the text".to_owned()
        } else if rest.starts_with("/*") {
            "a comment that is not closed".to_owned()
        } else {
            let word: String = rest
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .take(40)
                .collect();
            let first = || rest.chars().take(1).collect();
            format!("`{}`", if word.is_empty() { first() } else { word })
        };
        self.error_at(
            self.pos,
            format!("found {found} where {wanted} should stand"),
        )
    }
    /// The nesting limit is passed here.
    pub fn too_deep(&self) -> Box<Diagnostic> {
        let message = format!("nesting deeper than {MAX_NESTING} levels");
        Diagnostic::error(codes::INPUT_LIMIT, message).at(self.location(self.pos, self.pos + 1))
    }
    /// A breach of the grammar at a position.
    pub fn error_at(&self, pos: usize, message: impl Into<String>) -> Box<Diagnostic> {
        self.diagnostic(codes::TEXT_SYNTAX, pos, message)
    }
    /// An error with another code at a position; the name or number there is underlined.
    pub fn diagnostic(
        &self,
        code: codes::Code,
        pos: usize,
        message: impl Into<String>,
    ) -> Box<Diagnostic> {
        let bytes = &self.text.as_bytes()[pos.min(self.text.len())..];
        let length = bytes.iter().take_while(|b| is_name_byte(**b)).count();
        Diagnostic::error(code, message).at(self.location(pos, pos + length))
    }
    /// The place of these bytes in the text.
    pub fn location(&self, start: usize, end: usize) -> Location {
        let start = start.min(self.text.len());
        let before = &self.text[..start];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let line_end = self.text[start..]
            .find('\n')
            .map_or(self.text.len(), |i| start + i);
        let width = self
            .text
            .get(start..end.min(line_end))
            .map_or(1, |s| s.chars().count());
        Location::Text {
            line: before.bytes().filter(|b| *b == b'\n').count() + 1,
            column: self.text[line_start..start].chars().count() + 1,
            excerpt: self.text[line_start..line_end]
                .trim_end_matches('\r')
                .to_owned(),
            width: width.max(1),
        }
    }
}

/// The bytes that a C-escaped text stands for; nothing when an escape is broken.
fn unescape(raw: &str) -> Option<Vec<u8>> {
    let bytes = raw.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        if bytes[i] != b'\\' {
            out.push(bytes[i]);
            i += 1;
            continue;
        }
        let escape = *bytes.get(i + 1)?;
        i += 2;
        let simple = match escape {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'v' => 11,
            b'\\' | b'"' | b'\'' | b'?' => escape,
            b'0'..=b'7' => {
                let (value, used) = radix(&bytes[i - 1..], 8, 3)?;
                i += used - 1;
                out.push(u8::try_from(value).ok()?);
                continue;
            }
            b'x' | b'X' => {
                let (value, used) = radix(&bytes[i..], 16, 2)?;
                i += used;
                out.push(u8::try_from(value).ok()?);
                continue;
            }
            b'u' | b'U' => {
                let digits = if escape == b'u' { 4 } else { 8 };
                let (value, used) = radix(&bytes[i..], 16, digits)?;
                i += used;
                let c = char::from_u32(value).filter(|_| used == digits)?;
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            _ => return None,
        };
        out.push(simple);
    }
    Some(out)
}

/// The number that up to `most` digits spell, and how many there are.
fn radix(bytes: &[u8], radix: u32, most: usize) -> Option<(u32, usize)> {
    let digits = bytes
        .iter()
        .take(most)
        .map_while(|b| char::from(*b).to_digit(radix));
    let (value, used) = digits.fold((0u32, 0), |(v, n), d| (v.wrapping_mul(radix) + d, n + 1));
    (used > 0).then_some((value, used))
}

/// The bytes between double quotes, with C escapes: the inverse of [`Cursor::string`].
pub fn quote(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for &byte in bytes {
        match byte {
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b'"' => out.push_str("\\\""),
            b'\'' => out.push_str("\\'"),
            b'\\' => out.push_str("\\\\"),
            0x20..0x7f => out.push(char::from(byte)),
            _ => {
                out.push('\\');
                for shift in [6, 3, 0] {
                    out.push(char::from(b'0' + (byte >> shift & 7)));
                }
            }
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_come_back_as_they_were() {
        let bytes: Vec<u8> = (0..=255).collect();
        let quoted = quote(&bytes);
        assert!(quoted.is_ascii());
        assert_eq!(Cursor::new(&quoted).string().unwrap(), bytes);
        assert_eq!(
            Cursor::new(r"'a\x41\101\u00e9'").string().unwrap(),
            "aAAé".as_bytes()
        );
        assert!(Cursor::new("\"open").string().is_err());
        assert!(Cursor::new("\"open\\").string().is_err());
        assert!(Cursor::new(r#""\q""#).string().is_err());
        assert!(Cursor::new(r#""\777""#).string().is_err());
    }

    #[test]
    fn places_count_characters() {
        let text = "first\n  é b\n";
        let cursor = Cursor::new(text);
        let at = text.find('b').unwrap();
        let Location::Text {
            line,
            column,
            excerpt,
            width,
        } = cursor.location(at, at + 1)
        else {
            unreachable!()
        };
        assert_eq!((line, column, excerpt.as_str(), width), (2, 5, "  é b", 1));
    }

    #[test]
    fn words_stop_at_arrows_and_space_skips_comments() {
        let mut cursor = Cursor::new(" /* x */ // y\n a-b.c->d");
        assert_eq!(cursor.word(), Some("a-b.c"));
        assert!(cursor.eat("->"));
        assert_eq!(cursor.word(), Some("d"));
        assert!(cursor.at_end());
        let mut open = Cursor::new("/* x");
        assert!(!open.at_end());
    }

    #[test]
    fn raw_text_heeds_strings_and_brackets() {
        let mut cursor = Cursor::new(r#"{a ("}") [1} rest"#);
        assert_eq!(cursor.braced().unwrap(), r#"{a ("}") [1}"#);
        assert!(Cursor::new("{(}{").braced().is_ok());
        assert!(Cursor::new("{").braced().is_err());
        assert!(Cursor::new("{\"}").braced().is_err());
        assert!(Cursor::new("x}").braced().is_err());
        let mut cursor = Cursor::new("mesh['é'=2,x]{a, b}, c");
        assert_eq!(
            cursor.raw_value(|b| b == b',').unwrap(),
            "mesh['é'=2,x]{a, b}"
        );
        let deep = "{".repeat(1_000_000);
        assert!(Cursor::new(&deep).braced().is_err());
    }
}
