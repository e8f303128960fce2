//! The text form of protocol buffers, as far as descriptions of machines need it.
//!
//! A text is parsed to a tree of named fields; a [`Schema`] then turns the tree into the bytes of
//! its message. A reflective library would need embedded descriptors and a second set of message
//! types for the same; the few messages read here are a table each.

use prost::encoding::WireType;
use prost::encoding::encode_key;
use prost::encoding::encode_varint;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::base::suggest::closest;
use crate::base::text::Cursor;
use crate::base::text::MAX_NESTING;

/// A message in text form: its fields in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TextMessage {
    pub(super) fields: Vec<TextField>,
}

/// One field, or one element of a repeated one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TextField {
    name: String,
    /// Byte position in the text, for diagnostics.
    pos: usize,
    value: TextValue,
}

#[derive(Clone, Debug, PartialEq)]
enum TextValue {
    /// A number, or a word such as `true` or the name of an enum value.
    Word(String),
    String(Vec<u8>),
    Message(TextMessage),
}

/// The kind of a field.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Int32,
    Int64,
    Bool,
    Float,
    String,
    /// Names and numbers of the values.
    Enum(&'static [(&'static str, i32)]),
    Message(&'static Schema),
    /// A repeated message; map entries are such messages with `key` and `value`.
    Repeated(&'static Schema),
    /// Accepted and dropped.
    Ignored,
}

/// A message's fields: name, number, kind.
pub(super) struct Schema {
    pub(super) name: &'static str,
    pub(super) fields: &'static [(&'static str, u32, Kind)],
}

/// Parses a text into its fields.
///
/// # Errors
/// `XA1002` with line and column when the text does not follow the grammar; `XA1005` when it nests
/// too deep.
pub(super) fn parse(text: &str) -> Result<TextMessage> {
    let mut cursor = Cursor::new(text);
    let message = parse_fields(&mut cursor, 0)?;
    match peek(&mut cursor) {
        0 if cursor.at_end() => Ok(message),
        _ => Err(cursor.unexpected("a field name")),
    }
}

/// The next byte that means something; comments run from `#` to the end of the line.
fn peek(cursor: &mut Cursor<'_>) -> u8 {
    while cursor.peek() == b'#' {
        let rest = cursor.rest();
        let end = rest.find('\n').unwrap_or(rest.len());
        cursor.set_pos(cursor.pos() + end);
    }
    cursor.byte()
}

fn parse_fields(cursor: &mut Cursor<'_>, depth: usize) -> Result<TextMessage> {
    if depth > MAX_NESTING / 2 {
        return Err(cursor.too_deep());
    }
    let mut message = TextMessage::default();
    loop {
        peek(cursor);
        let pos = cursor.pos();
        let name = cursor.take_while(|b| b.is_ascii_alphanumeric() || b == b'_');
        if name.is_empty() {
            return Ok(message);
        }
        let name = name.to_owned();
        let colon = peek(cursor) == b':' && cursor.eat(":");
        if peek(cursor) == b'[' {
            cursor.expect("[")?;
            while peek(cursor) != b']' {
                let value = parse_value(cursor, depth)?;
                let name = name.clone();
                message.fields.push(TextField { name, pos, value });
                if peek(cursor) != b']' {
                    cursor.expect(",")?;
                }
            }
            cursor.expect("]")?;
        } else {
            if !colon && !matches!(cursor.byte(), b'{' | b'<') {
                return Err(cursor.unexpected("`:` or `{`"));
            }
            let value = parse_value(cursor, depth)?;
            message.fields.push(TextField { name, pos, value });
        }
        if matches!(peek(cursor), b',' | b';') {
            cursor.set_pos(cursor.pos() + 1);
        }
    }
}

fn parse_value(cursor: &mut Cursor<'_>, depth: usize) -> Result<TextValue> {
    let close = match peek(cursor) {
        b'{' => "}",
        b'<' => ">",
        b'"' | b'\'' => {
            let mut string = cursor.string()?;
            while matches!(peek(cursor), b'"' | b'\'') {
                string.extend(cursor.string()?);
            }
            return Ok(TextValue::String(string));
        }
        _ => {
            let word = cursor.take_while(|b| {
                b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'+')
            });
            return match word.is_empty() {
                true => Err(cursor.unexpected("a value")),
                false => Ok(TextValue::Word(word.to_owned())),
            };
        }
    };
    cursor.set_pos(cursor.pos() + 1);
    let message = parse_fields(cursor, depth + 1)?;
    peek(cursor);
    cursor.expect(close)?;
    Ok(TextValue::Message(message))
}

/// The serialized message that `text` describes.
///
/// # Errors
/// As [`parse`]; `XA1006` for a field the message does not have, `XA1002` for a value of the wrong
/// kind or a field given twice.
pub(super) fn encode(text: &str, schema: &'static Schema) -> Result<Vec<u8>> {
    encode_message(&parse(text)?, schema, &Cursor::new(text))
}

fn encode_message(
    message: &TextMessage,
    schema: &'static Schema,
    text: &Cursor<'_>,
) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for field in &message.fields {
        let row = schema.fields.iter().find(|(name, ..)| *name == field.name);
        let Some(&(name, number, kind)) = row else {
            return Err(unknown_field(field, schema, text));
        };
        if !seen.insert(name) && !matches!(kind, Kind::Repeated(_)) {
            return Err(text.error_at(field.pos, format!("`{name}` is given twice")));
        }
        encode_field(field, number, kind, text, &mut out)?;
    }
    Ok(out)
}

fn unknown_field(field: &TextField, schema: &Schema, text: &Cursor<'_>) -> Box<Diagnostic> {
    let message = format!("`{}` has no field `{}`", schema.name, field.name);
    let error = text.diagnostic(codes::UNKNOWN_WORD, field.pos, message);
    let names = schema.fields.iter().map(|(name, ..)| *name);
    match closest(&field.name, names) {
        Some(name) => error.help(format!("did you mean `{name}`?")),
        None => error,
    }
}

fn encode_field(
    field: &TextField,
    number: u32,
    kind: Kind,
    text: &Cursor<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let wrong = |wanted: &str| {
        let message = format!("the value of `{}` is not {wanted}", field.name);
        text.error_at(field.pos, message)
    };
    let bytes = |bytes: &[u8], out: &mut Vec<u8>| {
        encode_key(number, WireType::LengthDelimited, out);
        encode_varint(bytes.len() as u64, out);
        out.extend_from_slice(bytes);
    };
    let varint = |value: i64, out: &mut Vec<u8>| {
        encode_key(number, WireType::Varint, out);
        encode_varint(value.cast_unsigned(), out);
    };
    match (kind, &field.value) {
        (Kind::Ignored, _) => {}
        (Kind::Message(schema) | Kind::Repeated(schema), TextValue::Message(message)) => {
            bytes(&encode_message(message, schema, text)?, out);
        }
        (Kind::Message(_) | Kind::Repeated(_), _) => return Err(wrong("a message in braces")),
        (Kind::String, TextValue::String(string)) => {
            std::str::from_utf8(string).map_err(|_| wrong("valid UTF-8"))?;
            bytes(string, out);
        }
        (Kind::String, _) => return Err(wrong("a quoted string")),
        (Kind::Int64, TextValue::Word(word)) => {
            varint(integer(word).ok_or_else(|| wrong("a 64-bit integer"))?, out);
        }
        (Kind::Int32, TextValue::Word(word)) => {
            let value = integer(word).filter(|v| i32::try_from(*v).is_ok());
            varint(value.ok_or_else(|| wrong("a 32-bit integer"))?, out);
        }
        (Kind::Bool, TextValue::Word(word)) => match word.as_str() {
            "true" | "True" | "t" | "1" => varint(1, out),
            "false" | "False" | "f" | "0" => varint(0, out),
            _ => return Err(wrong("`true` or `false`")),
        },
        (Kind::Float, TextValue::Word(word)) => {
            let number_text = word.trim_end_matches(['f', 'F']);
            let value = number_text.parse::<f32>().or_else(|_| word.parse());
            let value = value.map_err(|_| wrong("a number"))?;
            encode_key(number, WireType::ThirtyTwoBit, out);
            out.extend_from_slice(&value.to_le_bytes());
        }
        (Kind::Enum(values), TextValue::Word(word)) => {
            let named = values.iter().find(|(name, _)| name == word);
            let value = match named {
                Some((_, value)) => Some(i64::from(*value)),
                None => integer(word).filter(|v| i32::try_from(*v).is_ok()),
            };
            let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
            let wanted = format!("one of {}", names.join(", "));
            varint(value.ok_or_else(|| wrong(&wanted))?, out);
        }
        (Kind::Int32 | Kind::Int64, _) => return Err(wrong("an integer")),
        (Kind::Bool, _) => return Err(wrong("`true` or `false`")),
        (Kind::Float, _) => return Err(wrong("a number")),
        (Kind::Enum(_), _) => return Err(wrong("the name of a value")),
    }
    Ok(())
}

/// A decimal, `0x` hexadecimal or `0` octal integer with an optional minus.
fn integer(word: &str) -> Option<i64> {
    let (negative, digits) = match word.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, word),
    };
    let unsigned = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(hex) => i128::from(u64::from_str_radix(hex, 16).ok()?),
        None if digits.len() > 1 && digits.starts_with('0') => {
            i128::from(u64::from_str_radix(digits, 8).ok()?)
        }
        None if digits.starts_with(|c: char| c.is_ascii_digit()) => {
            i128::from(digits.parse::<u64>().ok()?)
        }
        None => return None,
    };
    i64::try_from(if negative { -unsigned } else { unsigned }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    static INNER: Schema = Schema {
        name: "Inner",
        fields: &[("key", 1, Kind::Int32), ("rate", 2, Kind::Float)],
    };
    static OUTER: Schema = Schema {
        name: "Outer",
        fields: &[
            ("size", 1, Kind::Int64),
            ("name", 2, Kind::String),
            ("inner", 3, Kind::Message(&INNER)),
            ("list", 4, Kind::Repeated(&INNER)),
            ("on", 5, Kind::Bool),
            ("mode", 6, Kind::Enum(&[("FAST", 2)])),
            ("skip", 7, Kind::Ignored),
        ],
    };

    #[test]
    fn encodes_every_kind() {
        let text = r#"
            # a comment
            size: -1, name: 'a' "b";  # another
            inner { key: 0x10 rate: 1.5f }
            list: [{ key: 1 }, < key: 017 >]
            list { }
            on: true mode: FAST skip { what: [1, 2] ever { } }
        "#;
        let bytes = encode(text, &OUTER).unwrap();
        let mut wanted = vec![0x08];
        wanted.extend([0xff; 9]);
        wanted.push(1);
        wanted.extend(b"\x12\x02ab");
        wanted.extend(b"\x1a\x07\x08\x10\x15\x00\x00\xc0\x3f");
        wanted.extend(b"\x22\x02\x08\x01\x22\x02\x08\x0f\x22\x00\x28\x01\x30\x02");
        assert_eq!(bytes, wanted);
    }

    #[test]
    fn tells_what_is_wrong_and_where() {
        for (text, wanted) in [
            ("sise: 1", "did you mean `size`?"),
            ("size: 1 size: 2", "`size` is given twice"),
            ("size: 1.5", "not a 64-bit integer"),
            ("inner { key: 3000000000 }", "not a 32-bit integer"),
            ("name: x", "not a quoted string"),
            ("mode: SLOW", "one of FAST"),
            ("inner { key: 1", "`}`"),
            ("size 1", "`:` or `{`"),
            ("\n  on: 1 }", "line 2, column 9"),
        ] {
            let error = encode(text, &OUTER).unwrap_err().to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        }
        let deep = "inner{".repeat(100_000);
        assert!(parse(&deep).is_err());
    }
}
