//! Literals in HLO text: `42`, `{{1, 2}, {3, 4}}`, `({(1, -2)}, nan(0x7))`.
//!
//! The text form is exact: floats print as the shortest decimal that reads back to the same bits
//! (those of eight bits and fewer with all their digits), NaNs with sign and payload, negative zero as `-0.0` (XLA's parser drops the sign of `-0`).
//! Memory is bounded by the text that is read, whatever size the shape claims. An elided constant
//! (`{...}`) is refused, since its values are lost.

use crate::base::Cursor;
use crate::base::Result;
use crate::base::codes;
use crate::base::text::MAX_NESTING;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::literal::number::float_from_f64;
use crate::literal::number::float_to_f64;
use crate::literal::number::int_range;
use crate::shape::ArrayShape;
use crate::shape::ElementKind;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// Outer elements of an empty array that are written out; with more, `{...}` stands for all.
const MAX_EMPTY_ROWS: usize = 64;

/// Width of the mantissa of the types whose NaNs carry a payload.
fn payload_bits(ty: PrimitiveType) -> Option<u32> {
    Some(match ty {
        PrimitiveType::F8E5M2 => 2,
        PrimitiveType::F8E4M3 => 3,
        PrimitiveType::F8E3M4 => 4,
        PrimitiveType::BF16 => 7,
        PrimitiveType::F16 => 10,
        PrimitiveType::F32 => 23,
        PrimitiveType::F64 => 52,
        _ => return None,
    })
}

fn load(bytes: &[u8]) -> u64 {
    let mut buffer = [0; 8];
    buffer[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(buffer)
}

// Printing

/// The text of a literal, without its shape.
pub fn print(literal: &Literal) -> String {
    let mut out = String::new();
    write(literal, &mut out);
    out
}

/// Appends the text of a literal, without its shape.
pub fn write(literal: &Literal, out: &mut String) {
    match literal {
        Literal::Array(array) => write_array(array, out),
        Literal::Token => out.push_str("{}"),
        Literal::Tuple(elements) => {
            out.push('(');
            for (i, element) in elements.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                write(element, out);
            }
            out.push(')');
        }
    }
}

fn write_array(array: &ArrayLiteral, out: &mut String) {
    let dims = &array.shape().dims;
    let rows: usize = dims.iter().take_while(|d| **d != 0).product();
    if array.is_empty() && rows > MAX_EMPTY_ROWS {
        out.push_str("{...}");
        return;
    }
    // Sizes of the blocks that end a level of braces, innermost first.
    let mut blocks: Vec<usize> = Vec::new();
    for &dim in dims.iter().rev() {
        blocks.push(dim * blocks.last().copied().unwrap_or(1));
    }
    if array.is_empty() {
        write_empty(dims, out);
        return;
    }
    let scalar = dims.is_empty();
    for linear in 0..array.len() {
        let opened = blocks.iter().filter(|block| linear % **block == 0).count();
        if linear > 0 {
            out.extend(std::iter::repeat_n('}', opened));
            out.push_str(", ");
        }
        out.extend(std::iter::repeat_n('{', opened));
        write_element(array.ty(), array.element(linear), scalar, out);
    }
    out.extend(std::iter::repeat_n('}', blocks.len()));
}

/// Braces around nothing, as many as the dimensions before the first zero say.
fn write_empty(dims: &[usize], out: &mut String) {
    let mut text = "{}".to_owned();
    let zero = dims.iter().position(|d| *d == 0).unwrap_or(0);
    for &dim in dims[..zero].iter().rev() {
        text = format!("{{{}}}", vec![text.as_str(); dim].join(", "));
    }
    out.push_str(&text);
}

fn write_element(ty: PrimitiveType, bytes: &[u8], scalar: bool, out: &mut String) {
    match ty.kind() {
        ElementKind::Pred if scalar => out.push_str(if bytes[0] != 0 { "true" } else { "false" }),
        ElementKind::Pred => out.push(if bytes[0] != 0 { '1' } else { '0' }),
        ElementKind::Unsigned => out.push_str(&load(bytes).to_string()),
        ElementKind::Signed => {
            let shift = 64 - 8 * bytes.len();
            let value = (load(bytes) << shift).cast_signed() >> shift;
            out.push_str(&value.to_string());
        }
        ElementKind::Float => write_float(ty, load(bytes), out),
        ElementKind::Complex => {
            let part = ty.real_part();
            let (re, im) = bytes.split_at(part.byte_width());
            out.push('(');
            write_float(part, load(re), out);
            out.push_str(", ");
            write_float(part, load(im), out);
            out.push(')');
        }
    }
}

fn write_float(ty: PrimitiveType, bits: u64, out: &mut String) {
    let value = float_to_f64(ty, bits);
    if value.is_nan() {
        let negative = bits >> (ty.bit_width() - 1) & 1 != 0 && ty != PrimitiveType::F8E8M0FNU;
        out.push_str(if negative { "-nan" } else { "nan" });
        if let Some(width) = payload_bits(ty) {
            let payload = bits & ((1 << width) - 1);
            if payload != 1 << (width - 1) {
                out.push_str(&format!("(0x{payload:x})"));
            }
        }
        return;
    }
    let mut text = match ty {
        PrimitiveType::F32 => format!("{:?}", value as f32),
        PrimitiveType::F16 | PrimitiveType::BF16 => shortest(ty, bits, value),
        _ => format!("{value:?}"),
    };
    if text.ends_with(".0") && text != "-0.0" {
        text.truncate(text.len() - 2);
    }
    out.push_str(&text);
}

/// The shortest decimal that rounds to these bits, or all digits of a small whole number.
fn shortest(ty: PrimitiveType, bits: u64, value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e6 {
        return format!("{value:?}");
    }
    for digits in 0..17 {
        let rounded: f64 = format!("{value:.digits$e}").parse().unwrap_or(value);
        if float_from_f64(ty, rounded) == bits {
            return format!("{rounded:?}");
        }
    }
    format!("{value:?}")
}

// Reading

/// Reads the text of a literal of that shape. The literal's arrays keep the shape's layouts.
///
/// # Errors
/// `TEXT_SYNTAX` when the text does not spell a value of the shape, `INPUT_LIMIT` for deep tuples.
pub fn parse(cursor: &mut Cursor<'_>, shape: &Shape) -> Result<Literal> {
    match shape {
        Shape::Array(array) => Ok(Literal::Array(parse_array(cursor, array)?)),
        Shape::Tuple(elements) => {
            cursor.expect("(")?;
            let mut out = Vec::new();
            for (i, element) in elements.iter().enumerate() {
                if i > 0 {
                    cursor.expect(",")?;
                }
                out.push(parse(cursor, element)?);
            }
            cursor.expect(")")?;
            Ok(Literal::Tuple(out))
        }
        Shape::Token => {
            cursor.expect("{")?;
            cursor.expect("}")?;
            Ok(Literal::Token)
        }
        Shape::Opaque => Err(cursor.error_at(cursor.pos(), "a constant of an opaque value")),
    }
}

/// Reads a literal that brings its own shapes: `f32[2] {1, 2}`, `(s32[] 1, pred[] true)`.
///
/// # Errors
/// As [`parse`], and what reading the shapes gives.
pub fn parse_with_shape(cursor: &mut Cursor<'_>) -> Result<Literal> {
    nested_with_shape(cursor, 0)
}

fn nested_with_shape(cursor: &mut Cursor<'_>, depth: usize) -> Result<Literal> {
    if cursor.peek() == b'(' {
        if depth >= MAX_NESTING {
            return Err(cursor.too_deep());
        }
        let elements = cursor.list("(", ")", |c| nested_with_shape(c, depth + 1))?;
        return Ok(Literal::Tuple(elements));
    }
    let shape = crate::shape::text::parse(cursor)?;
    parse(cursor, &shape)
}

fn parse_array(cursor: &mut Cursor<'_>, shape: &ArrayShape) -> Result<ArrayLiteral> {
    let start = cursor.pos();
    let Some(count) = shape.checked_element_count() else {
        return Err(cursor.error_at(start, format!("`{shape}` is larger than memory can be")));
    };
    let width = shape.ty.byte_width();
    // An element takes at least one byte of text.
    let mut data = Vec::with_capacity(count.min(cursor.rest().len()) * width);
    if shape.rank() == 0 {
        parse_element(cursor, shape.ty, &mut data)?;
    } else {
        parse_braces(cursor, shape, &mut data)?;
    }
    if data.len() != count * width {
        let found = data.len() / width;
        return Err(cursor.error_at(start, format!("{found} elements for `{shape}`")));
    }
    Ok(ArrayLiteral::new(shape.clone(), data))
}

/// Reads nested braces; counts what each level holds, so that the form is the shape's.
fn parse_braces(cursor: &mut Cursor<'_>, shape: &ArrayShape, data: &mut Vec<u8>) -> Result<()> {
    let dims = &shape.dims;
    let rank = dims.len();
    let mut seen = vec![0usize; rank];
    let mut level = 0;
    cursor.expect("{")?;
    if cursor.eat("...") {
        return elided(cursor, shape);
    }
    loop {
        // Inside `level + 1` braces, before an item or the closing brace.
        if cursor.peek() == b'}' {
            if seen[level] != dims[level] {
                let wanted = dims[level];
                let found = seen[level];
                let message = format!("{found} of {wanted} elements in a part of `{shape}`");
                return Err(cursor.error_at(cursor.pos(), message));
            }
            cursor.expect("}")?;
            if level == 0 {
                return Ok(());
            }
            level -= 1;
        } else {
            if seen[level] == dims[level] {
                let wanted = dims[level];
                let message = format!("more than the {wanted} elements that `{shape}` has here");
                return Err(cursor.error_at(cursor.pos(), message));
            }
            seen[level] += 1;
            if level + 1 < rank {
                cursor.expect("{")?;
                level += 1;
                seen[level] = 0;
                continue;
            }
            parse_element(cursor, shape.ty, data)?;
        }
        if cursor.peek() != b'}' {
            cursor.expect(",")?;
        }
    }
}

/// After `{...`: fine for an array that has no elements to lose.
fn elided(cursor: &mut Cursor<'_>, shape: &ArrayShape) -> Result<()> {
    if shape.element_count() == 0 {
        return cursor.expect("}");
    }
    let message = format!("the values of a constant `{shape}` are left out");
    Err(cursor
        .error_at(cursor.pos() - 3, message)
        .help("print the module with print_large_constants=True, or give it as a proto"))
}

fn parse_element(cursor: &mut Cursor<'_>, ty: PrimitiveType, data: &mut Vec<u8>) -> Result<()> {
    cursor.skip_space();
    match ty.kind() {
        ElementKind::Pred => data.push(u8::from(parse_pred(cursor)?)),
        ElementKind::Signed | ElementKind::Unsigned => {
            let value = parse_int(cursor, ty)?;
            data.extend_from_slice(&value.to_le_bytes()[..ty.byte_width()]);
        }
        ElementKind::Float => parse_float(cursor, ty, data)?,
        ElementKind::Complex => {
            cursor.expect("(")?;
            cursor.skip_space();
            parse_float(cursor, ty.real_part(), data)?;
            cursor.expect(",")?;
            cursor.skip_space();
            parse_float(cursor, ty.real_part(), data)?;
            cursor.expect(")")?;
        }
    }
    Ok(())
}

fn parse_pred(cursor: &mut Cursor<'_>) -> Result<bool> {
    match cursor.peek_word() {
        Some(word @ ("true" | "false")) => {
            cursor.eat(word);
            Ok(word == "true")
        }
        _ => Ok(cursor.integer()? != 0),
    }
}

fn parse_int(cursor: &mut Cursor<'_>, ty: PrimitiveType) -> Result<i128> {
    let start = cursor.pos();
    let negative = cursor.byte() == b'-';
    let bytes = cursor.rest_bytes();
    let mut end = usize::from(negative);
    let mut value = 0i128;
    while end < bytes.len() && bytes[end].is_ascii_digit() && end < 24 {
        value = value * 10 + i128::from(bytes[end] - b'0');
        end += 1;
    }
    if end == usize::from(negative) {
        return Err(cursor.unexpected("an integer"));
    }
    cursor.set_pos(start + end);
    let value = if negative { -value } else { value };
    let (low, high) = int_range(ty);
    if value < low || value > high {
        let message = format!("`{value}` is outside `{ty}`, {low} to {high}");
        return Err(cursor.error_at(start, message));
    }
    Ok(value)
}

fn parse_float(cursor: &mut Cursor<'_>, ty: PrimitiveType, data: &mut Vec<u8>) -> Result<()> {
    let start = cursor.pos();
    let bytes = cursor.rest_bytes();
    let negative = bytes.first() == Some(&b'-');
    if let Some(b'n' | b'i') = bytes.get(usize::from(negative)) {
        let bits = parse_special(cursor, ty, negative)?;
        data.extend_from_slice(&bits.to_le_bytes()[..ty.byte_width()]);
        return Ok(());
    }
    let number = |b: u8| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E');
    let text = cursor.take_while(number);
    let Ok(value) = text.parse::<f64>() else {
        cursor.set_pos(start);
        return Err(cursor.unexpected(&format!("a number of `{ty}`")));
    };
    let bits = float_from_f64(ty, value);
    if !float_to_f64(ty, bits).is_finite() {
        return Err(cursor.error_at(start, format!("`{text}` is outside `{ty}`")));
    }
    data.extend_from_slice(&bits.to_le_bytes()[..ty.byte_width()]);
    Ok(())
}

/// `inf`, `nan` or `nan(0x12)`, with or without a `-`.
fn parse_special(cursor: &mut Cursor<'_>, ty: PrimitiveType, negative: bool) -> Result<u64> {
    let start = cursor.pos();
    cursor.set_pos(start + usize::from(negative));
    let word = cursor.word().unwrap_or_default();
    let value = match word {
        "inf" => f64::INFINITY,
        "nan" => f64::NAN,
        _ => {
            cursor.set_pos(start);
            return Err(cursor.unexpected(&format!("a number of `{ty}`")));
        }
    };
    let bits = float_from_f64(ty, if negative { -value } else { value });
    let back = float_to_f64(ty, bits);
    if back.is_nan() != value.is_nan() || back.is_infinite() != value.is_infinite() {
        return Err(cursor.error_at(start, format!("`{word}` is no value of `{ty}`")));
    }
    if word == "nan" && cursor.byte() == b'(' {
        let payload = parse_payload(cursor)?;
        let width = payload_bits(ty).unwrap_or(0);
        if payload == 0 || payload >> width != 0 {
            let message = format!("`{payload:#x}` is no payload of a NaN of `{ty}`");
            return Err(cursor.diagnostic(codes::TEXT_SYNTAX, start, message));
        }
        let mask = (1u64 << width) - 1;
        return Ok(bits & !mask | payload);
    }
    Ok(bits)
}

fn parse_payload(cursor: &mut Cursor<'_>) -> Result<u64> {
    cursor.expect("(")?;
    cursor.expect("0x")?;
    let digits = cursor.take_while(|b| b.is_ascii_hexdigit());
    let Ok(payload) = u64::from_str_radix(digits, 16) else {
        return Err(cursor.unexpected("a payload of at most 64 bits"));
    };
    cursor.expect(")")?;
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(shape: &str, text: &str) -> Result<Literal> {
        let shape = crate::shape::text::parse(&mut Cursor::new(shape))?;
        let mut cursor = Cursor::new(text);
        let literal = parse(&mut cursor, &shape)?;
        assert!(cursor.at_end(), "all of {text} is read");
        Ok(literal)
    }
    fn bytes(shape: &str, text: &str) -> Vec<u8> {
        read(shape, text)
            .unwrap()
            .as_array()
            .unwrap()
            .bytes()
            .to_vec()
    }

    #[test]
    fn texts_print_as_they_were_read() {
        for (shape, text) in [
            ("pred[]", "true"),
            ("pred[2,2]", "{{1, 0}, {0, 1}}"),
            ("s1[2]", "{0, -1}"),
            ("u2[2]", "{0, 3}"),
            ("s4[2]", "{-8, 7}"),
            ("u64[1]", "{18446744073709551615}"),
            ("s64[1]", "{-9223372036854775808}"),
            ("f32[5]", "{0.1, -0.0, inf, -inf, 1e-45}"),
            ("f64[2]", "{1.7976931348623157e308, 5e-324}"),
            ("f16[2]", "{0.1, 65504}"),
            ("bf16[2]", "{0.1, 3.39e38}"),
            ("f8e4m3fn[3]", "{448, nan, -nan}"),
            ("f8e4m3b11fnuz[2]", "{30, -nan}"),
            ("f8e8m0fnu[3]", "{1, 5.877471754111438e-39, nan}"),
            ("f4e2m1fn[3]", "{6, -0.5, -0.0}"),
            ("f6e2m3fn[2]", "{7.5, 0.125}"),
            ("f32[3]", "{nan, -nan, -nan(0x1)}"),
            ("f8e5m2[2]", "{nan(0x3), nan}"),
            ("c64[2]", "{(1, -2), (nan, inf)}"),
            ("c128[]", "(0.1, -0.0)"),
            ("f32[0]", "{}"),
            ("f32[2,0,4]", "{{}, {}}"),
            ("f32[1000,0]", "{...}"),
            ("f32[1000000000000,0]", "{...}"),
            ("(f32[], (s32[2]), ())", "(1, ({2, 3}), ())"),
            ("s32[2,1,2]", "{{{1, 2}}, {{3, 4}}}"),
        ] {
            assert_eq!(print(&read(shape, text).unwrap()), text, "{shape}");
        }
    }

    #[test]
    fn numbers_have_the_bits_of_ieee() {
        assert_eq!(
            bytes("f32[2]", "{0.1, 16777217}"),
            [0xcd, 0xcc, 0xcc, 0x3d, 0, 0, 0x80, 0x4b]
        );
        assert_eq!(bytes("f32[1]", "{nan}"), 0x7fc0_0000u32.to_le_bytes());
        assert_eq!(bytes("f32[1]", "{-nan(0x5)}"), 0xff80_0005u32.to_le_bytes());
        assert_eq!(bytes("f16[1]", "{1}"), [0, 0x3c]);
        assert_eq!(bytes("f8e4m3fnuz[1]", "{nan}"), [0x80]);
        assert_eq!(bytes("s4[2]", "{-8, 7}"), [0xf8, 7]);
        assert_eq!(bytes("pred[3]", "{true, 2, false}"), [1, 1, 0]);
    }

    #[test]
    fn every_bit_pattern_of_the_small_floats_comes_back() {
        for &ty in PrimitiveType::ALL {
            if !ty.is_float() || ty.bit_width() > 16 {
                continue;
            }
            let count = 1usize << ty.bit_width();
            let width = ty.byte_width();
            let all = (0..count)
                .flat_map(|i| i.to_le_bytes()[..width].to_vec())
                .collect();
            let mut shape = ArrayShape::new(ty, [count]);
            shape.layout = Some(crate::shape::Layout::row_major(1));
            let literal = Literal::Array(ArrayLiteral::new(shape.clone(), all));
            let text = print(&literal);
            let back = parse(&mut Cursor::new(&text), &Shape::Array(shape)).unwrap();
            assert_eq!(back, literal, "{ty}");
        }
    }

    #[test]
    fn wrong_texts_are_refused() {
        for (shape, text) in [
            ("f32[2]", "{1}"),
            ("f32[2]", "{1, 2, 3}"),
            ("f32[2]", "{1 2}"),
            ("f32[2]", "1"),
            ("f32[]", "{1}"),
            ("f32[2,2]", "{1, 2, 3, 4}"),
            ("f32[2,2]", "{{1, 2}}"),
            ("f32[2]", "{1, 1e40}"),
            ("f16[1]", "{65520}"),
            ("u4[1]", "{16}"),
            ("u8[1]", "{-1}"),
            ("s8[1]", "{1.5}"),
            ("s8[1]", "{}"),
            ("f32[1]", "{nan(0x800000)}"),
            ("f32[1]", "{nan(0x0)}"),
            ("f8e4m3fn[1]", "{nan(0x1)}"),
            ("f8e4m3fn[1]", "{inf}"),
            ("f4e2m1fn[1]", "{nan}"),
            ("c64[1]", "{1}"),
            ("f32[1]", "{infinity}"),
            ("f32[2]", "{...}"),
            ("f32[1000000000000]", "{...}"),
            ("f32[1000000000000]", "{1}"),
            ("(f32[])", "(1, 2)"),
            ("(f32[], f32[])", "(1)"),
            ("f32[1]", "{"),
            ("f32[1]", "{1"),
            ("s32[1]", "{123456789012345678901234567890}"),
            ("opaque[]", "{}"),
            ("f32[0]", "{1}"),
        ] {
            assert!(read(shape, text).is_err(), "{shape} {text}");
        }
        let deep = "(".repeat(MAX_NESTING + 1);
        let error = parse_with_shape(&mut Cursor::new(&deep)).unwrap_err();
        assert_eq!(error.code, codes::INPUT_LIMIT);
    }

    #[test]
    fn literals_may_bring_their_shapes() {
        let mut cursor = Cursor::new("(s32[2] {1, 2}, (pred[] true))");
        let literal = parse_with_shape(&mut cursor).unwrap();
        assert_eq!(print(&literal), "({1, 2}, (true))");
    }
}
