//! Attributes of typed calls: MLIR's text of a dictionary, and the messages of GPU bundles.
//!
//! Numbers, truth values, strings and dictionaries of them; arrays are not among them.

use crate::base::Result;
use crate::proto::xla::ffi::AttributeProto;
use crate::proto::xla::ffi::AttributesMapProto;
use crate::proto::xla::ffi::ScalarProto;
use crate::proto::xla::ffi::attribute_proto::Value;
use crate::proto::xla::ffi::scalar_proto::Value as Scalar;
use crate::wire::number::unsupported;

/// Deepest nesting of dictionaries.
const MAX_DEPTH: usize = 32;

/// Reads the text of a dictionary; no text is an empty one.
pub(super) fn parse(text: &str) -> Option<AttributesMapProto> {
    if text.trim().is_empty() {
        return Some(AttributesMapProto::default());
    }
    let mut parser = Parser { rest: text };
    let map = parser.dictionary(0)?;
    parser.rest.trim().is_empty().then_some(map)
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn takes(&mut self, mark: char) -> bool {
        let rest = self.rest.trim_start().strip_prefix(mark);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// What comes before the next mark of these.
    fn until(&mut self, marks: &[char]) -> &'a str {
        let end = self.rest.find(marks).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word.trim()
    }

    fn dictionary(&mut self, depth: usize) -> Option<AttributesMapProto> {
        if depth > MAX_DEPTH || !self.takes('{') {
            return None;
        }
        let mut map = AttributesMapProto::default();
        if self.takes('}') {
            return Some(map);
        }
        loop {
            let name = if self.rest.trim_start().starts_with('"') {
                String::from_utf8(self.string()?).ok()?
            } else {
                self.until(&['=', ',', '}']).to_owned()
            };
            if name.is_empty() || !self.takes('=') {
                return None;
            }
            let value = Some(self.value(depth)?);
            map.attrs.insert(name, AttributeProto { value });
            if self.takes('}') {
                return Some(map);
            }
            if !self.takes(',') {
                return None;
            }
        }
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        match self.rest.trim_start().chars().next()? {
            '{' => self.dictionary(depth + 1).map(Value::Dict),
            '"' => self.string().map(Value::Str),
            _ => {
                let value = Some(scalar(self.until(&[',', '}']))?);
                Some(Value::Scalar(ScalarProto { value }))
            }
        }
    }

    fn string(&mut self) -> Option<Vec<u8>> {
        let mut bytes = self.rest.trim_start().strip_prefix('"')?.bytes();
        let mut out = Vec::new();
        loop {
            match bytes.next()? {
                b'"' => break,
                b'\\' => {
                    let first = bytes.next()?;
                    out.push(match first {
                        b'n' => b'\n',
                        b't' => b'\t',
                        b'"' | b'\\' => first,
                        _ => {
                            let digits = [first, bytes.next()?];
                            u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
                        }
                    });
                }
                byte => out.push(byte),
            }
        }
        let begin = self.rest.len() - bytes.len();
        self.rest = self.rest.get(begin..)?;
        Some(out)
    }
}

fn scalar(text: &str) -> Option<Scalar> {
    match text {
        "true" => return Some(Scalar::B(true)),
        "false" => return Some(Scalar::B(false)),
        _ => {}
    }
    let (number, ty) = text.split_once(':').unwrap_or((text, "i64"));
    let (number, ty) = (number.trim(), ty.trim());
    let bits = number.strip_prefix("0x");
    Some(match (ty.strip_prefix('s').unwrap_or(ty), bits) {
        ("i8", _) => Scalar::I8(number.parse::<i8>().ok()?.into()),
        ("i16", _) => Scalar::I16(number.parse::<i16>().ok()?.into()),
        ("i32", _) => Scalar::I32(number.parse().ok()?),
        ("i64", _) => Scalar::I64(number.parse().ok()?),
        ("ui8", _) => Scalar::U8(number.parse::<u8>().ok()?.into()),
        ("ui16", _) => Scalar::U16(number.parse::<u16>().ok()?.into()),
        ("ui32", _) => Scalar::U32(number.parse().ok()?),
        ("ui64", _) => Scalar::U64(number.parse().ok()?),
        ("f32", Some(bits)) => Scalar::F32(f32::from_bits(u32::from_str_radix(bits, 16).ok()?)),
        ("f64", Some(bits)) => Scalar::F64(f64::from_bits(u64::from_str_radix(bits, 16).ok()?)),
        ("f32", None) => Scalar::F32(number.parse().ok()?),
        ("f64", None) => Scalar::F64(number.parse().ok()?),
        _ => return None,
    })
}

/// The text of a dictionary.
///
/// # Errors
/// For arrays, values without a kind and dictionaries that nest too deep.
pub(super) fn print(map: &AttributesMapProto) -> Result<String> {
    let mut out = String::new();
    print_map(map, 0, &mut out)?;
    Ok(out)
}

fn print_map(map: &AttributesMapProto, depth: usize, out: &mut String) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(unsupported("attributes of a call nest too deep"));
    }
    out.push('{');
    for (i, (name, attribute)) in map.attrs.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$');
        if !name.is_empty() && name.chars().all(is_plain) {
            out.push_str(name);
        } else {
            quote(name.as_bytes(), out);
        }
        out.push_str(" = ");
        let kind = match &attribute.value {
            Some(Value::Dict(map)) => {
                print_map(map, depth + 1, out)?;
                continue;
            }
            Some(Value::Str(text)) => {
                quote(text, out);
                continue;
            }
            Some(Value::Scalar(scalar)) => scalar.value.as_ref(),
            Some(Value::Array(_)) | None => None,
        };
        let what = || unsupported(format!("an attribute `{name}` of a kind it does not know"));
        *out += &match kind.ok_or_else(what)? {
            Scalar::B(b) => b.to_string(),
            Scalar::I8(n) => format!("{n} : i8"),
            Scalar::I16(n) => format!("{n} : i16"),
            Scalar::I32(n) => format!("{n} : i32"),
            Scalar::I64(n) => format!("{n} : i64"),
            Scalar::U8(n) => format!("{n} : ui8"),
            Scalar::U16(n) => format!("{n} : ui16"),
            Scalar::U32(n) => format!("{n} : ui32"),
            Scalar::U64(n) => format!("{n} : ui64"),
            Scalar::F32(x) if !x.is_finite() => format!("0x{:08X} : f32", x.to_bits()),
            Scalar::F64(x) if !x.is_finite() => format!("0x{:016X} : f64", x.to_bits()),
            Scalar::F32(x) => format!("{} : f32", with_point(format!("{x:e}"))),
            Scalar::F64(x) => format!("{} : f64", with_point(format!("{x:e}"))),
        };
    }
    out.push('}');
    Ok(())
}

/// MLIR wants a point in every float.
fn with_point(number: String) -> String {
    match number.split_once('e') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0e{exponent}"),
        _ => number,
    }
}

fn quote(text: &[u8], out: &mut String) {
    out.push('"');
    for &byte in text {
        match byte {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(byte));
            }
            b' '..=b'~' => out.push(char::from(byte)),
            _ => *out += &format!("\\{byte:02X}"),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionaries_survive_both_ways() {
        for text in [
            "{}",
            "{left = true, mode = 65 : ui8, n = -3 : i64}",
            "{a = {b = {c = -1 : i8}, d = {}}, e = 4000000000 : ui32}",
            "{name = \"a, b = } \\\"\\0A\", \"odd name\" = 1.5e0 : f32, x = -2.0e-7 : f64}",
            "{inf = 0x7F800000 : f32, nan = 0x7FF8000000000000 : f64}",
        ] {
            let map = parse(text).expect(text);
            assert_eq!(print(&map).expect(text), text);
        }
        let map = parse("{n = 7}").expect("an i64");
        assert_eq!(print(&map).expect("text"), "{n = 7 : i64}");
        assert_eq!(parse("  "), Some(AttributesMapProto::default()));
        for wrong in [
            "{",
            "{a}",
            "{a = }",
            "{a = 1 b = 2}",
            "{a = 300 : ui8}",
            "{a = array<i64: 1>}",
            "{a = \"}",
            "{} x",
            "{a = 1 : f8}",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        assert_eq!(parse(&"{a = ".repeat(100)), None);
    }
}
