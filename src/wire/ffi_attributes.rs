//! Attributes of typed calls: MLIR's text of a dictionary, and the messages of GPU bundles.
//!
//! Numbers, truth values, strings, arrays and dictionaries of them; the messages have no arrays.

use std::collections::BTreeMap;

use crate::base::Result;
use crate::proto::xla::ffi::AttributeProto;
use crate::proto::xla::ffi::AttributesMapProto;
use crate::proto::xla::ffi::ScalarProto;
use crate::proto::xla::ffi::attribute_proto::Value;
use crate::proto::xla::ffi::scalar_proto::Value as Scalar;
use crate::shape::PrimitiveType;
use crate::wire::number::unsupported;

/// Deepest nesting of dictionaries.
const MAX_DEPTH: usize = 32;

/// Most bytes of an array: one element may stand for any number of them.
const MAX_BYTES: usize = 1 << 24;

/// Attributes by name.
pub type Attributes = BTreeMap<String, Attribute>;

/// The value of an attribute. Bytes are little-endian; a truth value is one, 0 or 1.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// A number or truth value.
    Scalar(PrimitiveType, Vec<u8>),
    /// Text, or any bytes.
    Text(Vec<u8>),
    /// Numbers or truth values, one after the other; how they were arranged is not kept.
    Array(PrimitiveType, Vec<u8>),
    /// Attributes.
    Dictionary(Attributes),
}

/// Reads the text of a dictionary; no text is an empty one, none what this program does not read.
pub fn read(text: &str) -> Option<Attributes> {
    if text.trim().is_empty() {
        return Some(Attributes::new());
    }
    let mut parser = Parser { rest: text };
    let map = parser.dictionary(0)?;
    parser.rest.trim().is_empty().then_some(map)
}

/// Reads the text of a dictionary without arrays, for the messages.
pub(super) fn parse(text: &str) -> Option<AttributesMapProto> {
    to_proto(&read(text)?)
}

fn to_proto(attributes: &Attributes) -> Option<AttributesMapProto> {
    let mut map = AttributesMapProto::default();
    for (name, attribute) in attributes {
        let value = Some(match attribute {
            Attribute::Scalar(ty, bytes) => {
                let value = Some(scalar_to_proto(*ty, bytes)?);
                Value::Scalar(ScalarProto { value })
            }
            Attribute::Text(text) => Value::Str(text.clone()),
            Attribute::Array(..) => return None,
            Attribute::Dictionary(attributes) => Value::Dict(to_proto(attributes)?),
        });
        map.attrs.insert(name.clone(), AttributeProto { value });
    }
    Some(map)
}

fn scalar_to_proto(ty: PrimitiveType, bytes: &[u8]) -> Option<Scalar> {
    let mut wide = [0; 8];
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    let bits = u64::from_le_bytes(wide);
    Some(match ty {
        PrimitiveType::Pred => Scalar::B(bits != 0),
        PrimitiveType::S8 => Scalar::I8((bits as i8).into()),
        PrimitiveType::S16 => Scalar::I16((bits as i16).into()),
        PrimitiveType::S32 => Scalar::I32(bits as i32),
        PrimitiveType::S64 => Scalar::I64(bits.cast_signed()),
        PrimitiveType::U8 => Scalar::U8(bits as u32),
        PrimitiveType::U16 => Scalar::U16(bits as u32),
        PrimitiveType::U32 => Scalar::U32(bits as u32),
        PrimitiveType::U64 => Scalar::U64(bits),
        PrimitiveType::F32 => Scalar::F32(f32::from_bits(bits as u32)),
        PrimitiveType::F64 => Scalar::F64(f64::from_bits(bits)),
        _ => return None,
    })
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

    fn takes_word(&mut self, word: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(word);
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

    fn dictionary(&mut self, depth: usize) -> Option<Attributes> {
        if depth > MAX_DEPTH || !self.takes('{') {
            return None;
        }
        let mut map = Attributes::new();
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
            let value = self.value(depth)?;
            map.insert(name, value);
            if self.takes('}') {
                return Some(map);
            }
            if !self.takes(',') {
                return None;
            }
        }
    }

    fn value(&mut self, depth: usize) -> Option<Attribute> {
        if self.takes_word("array<") {
            return self.array();
        }
        if self.takes_word("dense<") {
            return self.dense();
        }
        match self.rest.trim_start().chars().next()? {
            '{' => self.dictionary(depth + 1).map(Attribute::Dictionary),
            '"' => self.string().map(Attribute::Text),
            _ => {
                let text = self.until(&[',', '}']);
                let own = if matches!(text, "true" | "false") {
                    "i1"
                } else {
                    "i64"
                };
                let (text, ty) = text.split_once(':').unwrap_or((text, own));
                let (ty, bytes) = element(text.trim(), ty.trim())?;
                Some(Attribute::Scalar(ty, bytes))
            }
        }
    }

    /// What follows in `array<i32: 1, 2>`.
    fn array(&mut self) -> Option<Attribute> {
        let body = self.until(&['>']);
        if !self.takes('>') {
            return None;
        }
        let (name, elements) = body.split_once(':').unwrap_or((body, ""));
        let name = name.trim();
        let mut out = Vec::new();
        for text in elements.split(',').filter(|e| !e.trim().is_empty()) {
            out.extend(element(text.trim(), name)?.1);
        }
        Some(Attribute::Array(type_of(name)?, out))
    }

    /// What follows in `dense<[1, 2]> : tensor<2xi32>`. One element stands for all, and a string has
    /// the bytes of all.
    fn dense(&mut self) -> Option<Attribute> {
        let bits = match self.rest.trim_start().starts_with('"') {
            true => Some(self.string()?),
            false => None,
        };
        let elements = self.until(&['>']);
        if !self.takes('>') || !self.takes(':') || !self.takes_word("tensor<") {
            return None;
        }
        let shape = self.until(&['>']);
        if !self.takes('>') {
            return None;
        }
        let mut dims: Vec<&str> = shape.split('x').collect();
        let name = dims.pop()?;
        let ty = type_of(name)?;
        let count = dims.iter().try_fold(1usize, |count, dim| {
            count.checked_mul(dim.trim().parse().ok()?)
        })?;
        let size = count.checked_mul(ty.byte_width())?;
        if size > MAX_BYTES {
            return None;
        }
        if let Some(text) = bits {
            let text = std::str::from_utf8(&text).ok()?.strip_prefix("0x")?;
            let digits = text.as_bytes().chunks(2).map(|pair| {
                let pair = std::str::from_utf8(pair).ok()?;
                u8::from_str_radix(pair, 16).ok()
            });
            let bytes = digits.collect::<Option<Vec<u8>>>()?;
            let fits = bytes.len() == size && ty != PrimitiveType::Pred;
            return fits.then_some(Attribute::Array(ty, bytes));
        }
        let mut out = Vec::new();
        let brackets = ['[', ']', ',', ' ', '\n'];
        for text in elements.split(brackets).filter(|e| !e.is_empty()) {
            out.extend(element(text, name)?.1);
        }
        if !elements.contains('[') && out.len() == ty.byte_width() {
            out = out.repeat(count);
        }
        (out.len() == size).then_some(Attribute::Array(ty, out))
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

fn type_of(name: &str) -> Option<PrimitiveType> {
    Some(match name.strip_prefix('s').unwrap_or(name) {
        "i1" => PrimitiveType::Pred,
        "i8" => PrimitiveType::S8,
        "i16" => PrimitiveType::S16,
        "i32" => PrimitiveType::S32,
        "i64" => PrimitiveType::S64,
        "ui8" => PrimitiveType::U8,
        "ui16" => PrimitiveType::U16,
        "ui32" => PrimitiveType::U32,
        "ui64" => PrimitiveType::U64,
        "f32" => PrimitiveType::F32,
        "f64" => PrimitiveType::F64,
        _ => return None,
    })
}

/// A number or truth value of a type: its bytes.
fn element(text: &str, ty: &str) -> Option<(PrimitiveType, Vec<u8>)> {
    let ty = type_of(ty)?;
    let bits = text.strip_prefix("0x");
    let bytes = match (ty, bits) {
        (PrimitiveType::Pred, _) => match text {
            "true" => vec![1],
            "false" => vec![0],
            _ => return None,
        },
        (PrimitiveType::S8, _) => text.parse::<i8>().ok()?.to_le_bytes().to_vec(),
        (PrimitiveType::S16, _) => text.parse::<i16>().ok()?.to_le_bytes().to_vec(),
        (PrimitiveType::S32, _) => text.parse::<i32>().ok()?.to_le_bytes().to_vec(),
        (PrimitiveType::S64, _) => text.parse::<i64>().ok()?.to_le_bytes().to_vec(),
        (PrimitiveType::U8, _) => text.parse::<u8>().ok()?.to_le_bytes().to_vec(),
        (PrimitiveType::U16, _) => text.parse::<u16>().ok()?.to_le_bytes().to_vec(),
        (PrimitiveType::U32, _) => text.parse::<u32>().ok()?.to_le_bytes().to_vec(),
        (PrimitiveType::U64, _) => text.parse::<u64>().ok()?.to_le_bytes().to_vec(),
        (PrimitiveType::F32, Some(bits)) => {
            u32::from_str_radix(bits, 16).ok()?.to_le_bytes().to_vec()
        }
        (PrimitiveType::F64, Some(bits)) => {
            u64::from_str_radix(bits, 16).ok()?.to_le_bytes().to_vec()
        }
        (PrimitiveType::F32, None) => text.parse::<f32>().ok()?.to_le_bytes().to_vec(),
        (PrimitiveType::F64, None) => text.parse::<f64>().ok()?.to_le_bytes().to_vec(),
        _ => return None,
    };
    Some((ty, bytes))
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

    #[test]
    fn arrays_are_read_in_both_forms() {
        let array = |text: &str| match read(&format!("{{a = {text}}}"))?.remove("a")? {
            Attribute::Array(ty, bytes) => Some((ty, bytes)),
            _ => None,
        };
        let s32 = |values: &[i32]| {
            let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            Some((PrimitiveType::S32, bytes))
        };
        assert_eq!(array("array<i32: 1, -2>"), s32(&[1, -2]));
        assert_eq!(array("array<i32>"), s32(&[]));
        assert_eq!(array("dense<[1, -2]> : tensor<2xi32>"), s32(&[1, -2]));
        assert_eq!(
            array("dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>"),
            s32(&[1, 2, 3, 4])
        );
        assert_eq!(array("dense<7> : tensor<3xi32>"), s32(&[7, 7, 7]));
        assert_eq!(array("dense<7> : tensor<i32>"), s32(&[7]));
        assert_eq!(array("dense<> : tensor<0xi32>"), s32(&[]));
        assert_eq!(
            array("dense<\"0x01000000FEFFFFFF\"> : tensor<2xi32>"),
            s32(&[1, -2])
        );
        let pred = Some((PrimitiveType::Pred, vec![1, 0]));
        assert_eq!(array("dense<[true, false]> : tensor<2xi1>"), pred);
        let f64s = [1.5f64, f64::INFINITY].iter().flat_map(|v| v.to_le_bytes());
        let f64s = Some((PrimitiveType::F64, f64s.collect()));
        assert_eq!(
            array("dense<[1.500000e+00, 0x7FF0000000000000]> : tensor<2xf64>"),
            f64s
        );
        for wrong in [
            "dense<[1, 2]> : tensor<3xi32>",
            "dense<[1]> : tensor<2xi32>",
            "dense<1> : tensor<99999999999999999999xi32>",
            "dense<1> : tensor<4611686018427387904xi32>",
            "dense<1> : tensor<?xi32>",
            "dense<1>",
            "dense<[1, 2> : tensor<2xi8",
            "array<i32: 1.5>",
            "array<i32: 1",
        ] {
            assert_eq!(array(wrong), None, "{wrong}");
        }
        assert_eq!(parse("{a = array<i64: 1>}"), None);
    }
}
