//! Shapes in HLO text: `f32[2,<=3]{1,0:T(8,128)S(1)}`, `(pred[], (token[]))`.
//!
//! Printing gives the layout exactly when there is one, except that of a plain scalar, which has no
//! text. Reading gives an array without a layout text the row-major one, as XLA's parser does, so
//! printing what was read adds `{1,0}`. Sparse layouts, split configurations, buffers and unbounded
//! dimensions have no form here and are refused.

use std::fmt;

use crate::base::Cursor;
use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::base::text::MAX_NESTING;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::Layout;
use crate::shape::PrimitiveType;
use crate::shape::Shape;
use crate::shape::Tile;

/// Writes items with commas between them.
fn commas<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    items: impl IntoIterator<Item = T>,
) -> fmt::Result {
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            f.write_str(",")?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        commas(f, &self.minor_to_major)?;
        if !self.is_plain() {
            f.write_str(":")?;
        }
        if !self.tiles.is_empty() {
            f.write_str("T")?;
        }
        for tile in &self.tiles {
            f.write_str("(")?;
            commas(
                f,
                tile.iter().map(|d| d.map_or("*".into(), |d| d.to_string())),
            )?;
            f.write_str(")")?;
        }
        let parts = [
            ("L", self.tail_padding_alignment, 1),
            ("E", self.element_size_in_bits, 0),
            ("S", self.memory_space, 0),
            ("M", self.dynamic_shape_metadata_prefix_bytes, 0),
        ];
        for (letter, value, default) in parts {
            if value != 0 && value != default {
                write!(f, "{letter}({value})")?;
            }
        }
        f.write_str("}")
    }
}

impl Layout {
    /// Whether there is only an order of dimensions: no tiles, memory space or other extras.
    pub fn is_plain(&self) -> bool {
        self.tiles.is_empty()
            && matches!(self.tail_padding_alignment, 0 | 1)
            && self.element_size_in_bits == 0
            && self.memory_space == 0
            && self.dynamic_shape_metadata_prefix_bytes == 0
    }
}

impl fmt::Display for ArrayShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.ty)?;
        for (d, size) in self.dims.iter().enumerate() {
            let comma = if d > 0 { "," } else { "" };
            let bound = if self.is_dynamic_dim(d) { "<=" } else { "" };
            write!(f, "{comma}{bound}{size}")?;
        }
        f.write_str("]")?;
        match &self.layout {
            Some(layout) if self.rank() > 0 || !layout.is_plain() => layout.fmt(f),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Array(array) => array.fmt(f),
            Self::Token => f.write_str("token[]"),
            Self::Opaque => f.write_str("opaque[]"),
            Self::Tuple(elements) => {
                f.write_str("(")?;
                for (i, element) in elements.iter().enumerate() {
                    f.write_str(if i > 0 { ", " } else { "" })?;
                    if i > 0 && i % 5 == 0 {
                        write!(f, "/*index={i}*/")?;
                    }
                    element.fmt(f)?;
                }
                f.write_str(")")
            }
        }
    }
}

/// Whether a shape comes next: a word before `[`, or a tuple.
pub fn starts_shape(cursor: &mut Cursor<'_>) -> bool {
    if cursor.peek() == b'(' {
        return true;
    }
    let start = cursor.pos();
    let word = cursor.word();
    let bracket = cursor.byte() == b'[';
    cursor.set_pos(start);
    bracket && word.is_some()
}

/// Whether HLO text reads the word as an element type, and never as a name.
pub fn is_type_name(word: &str) -> bool {
    matches!(word, "token" | "opaque") || PrimitiveType::from_name(word).is_some()
}

/// Reads a shape.
///
/// # Errors
/// `TEXT_SYNTAX`, `UNKNOWN_WORD`, and `INPUT_LIMIT` for deep tuples.
pub fn parse(cursor: &mut Cursor<'_>) -> Result<Shape> {
    nested(cursor, 0)
}

fn nested(cursor: &mut Cursor<'_>, depth: usize) -> Result<Shape> {
    if cursor.peek() != b'(' {
        return leaf(cursor);
    }
    if depth >= MAX_NESTING {
        return Err(cursor.too_deep());
    }
    let elements = cursor.list("(", ")", |c| nested(c, depth + 1))?;
    Ok(Shape::Tuple(elements))
}

fn leaf(cursor: &mut Cursor<'_>) -> Result<Shape> {
    cursor.skip_space();
    let start = cursor.pos();
    let Some(word) = cursor.word() else {
        return Err(cursor.unexpected("a shape"));
    };
    let ty = match word {
        "token" | "opaque" => None,
        "b" if cursor.peek() == b'(' => {
            return Err(unsupported(cursor, start, "a buffer shape"));
        }
        _ => Some(PrimitiveType::from_name(word).ok_or_else(|| {
            let message = format!("`{word}` is no element type");
            cursor.diagnostic(codes::UNKNOWN_WORD, start, message)
        })?),
    };
    let sizes = cursor.list("[", "]", dimension)?;
    let Some(ty) = ty else {
        if sizes.is_empty() {
            return Ok(if word == "token" {
                Shape::Token
            } else {
                Shape::Opaque
            });
        }
        return Err(cursor.error_at(start, format!("`{word}` has dimensions")));
    };
    let mut array = ArrayShape::new(ty, sizes.iter().map(|(_, size)| *size));
    if sizes.iter().any(|(dynamic, _)| *dynamic) {
        array.dynamic = sizes.iter().map(|(dynamic, _)| *dynamic).collect();
    }
    if array.checked_element_count().is_none() {
        return Err(cursor.error_at(start, format!("`{array}` is larger than memory can be")));
    }
    array.layout = Some(match layout(cursor)? {
        Some((at, layout)) => checked_layout(cursor, at, layout, array.rank())?,
        None => Layout::row_major(array.rank()),
    });
    Ok(Shape::Array(array))
}

fn unsupported(cursor: &Cursor<'_>, start: usize, what: &str) -> Box<Diagnostic> {
    Diagnostic::unsupported(codes::UNKNOWN_WORD, format!("{what} in HLO text"))
        .at(cursor.location(start, cursor.pos()))
}

/// `3`, or `<=3` for a dynamic one.
fn dimension(cursor: &mut Cursor<'_>) -> Result<(bool, usize)> {
    if cursor.peek() == b'?' {
        return Err(unsupported(cursor, cursor.pos(), "an unbounded dimension"));
    }
    let dynamic = cursor.eat("<=");
    Ok((dynamic, cursor.size()?))
}

/// The layout that follows without a space, when one does, and where. A brace that opens a
/// computation or a literal is none.
fn layout(cursor: &mut Cursor<'_>) -> Result<Option<(usize, Layout)>> {
    let start = cursor.pos();
    if cursor.byte() != b'{' {
        return Ok(None);
    }
    cursor.expect("{")?;
    let next = cursor.peek();
    if !(next.is_ascii_digit() || matches!(next, b':' | b'}')) {
        cursor.set_pos(start);
        return Ok(None);
    }
    let mut layout = Layout::default();
    if cursor.peek().is_ascii_digit() {
        loop {
            layout.minor_to_major.push(cursor.size()?);
            if !cursor.eat(",") {
                break;
            }
        }
    }
    if cursor.eat(":") {
        while cursor.peek() != b'}' {
            layout_part(cursor, &mut layout)?;
        }
    }
    cursor.expect("}")?;
    Ok(Some((start, layout)))
}

fn layout_part(cursor: &mut Cursor<'_>, layout: &mut Layout) -> Result<()> {
    let start = cursor.pos();
    let letters = cursor.take_while(|b| b.is_ascii_alphabetic());
    let target = match letters {
        "T" => {
            while cursor.peek() == b'(' {
                let tile = cursor.list("(", ")", |c| {
                    Ok(if c.eat("*") { None } else { Some(c.integer()?) })
                })?;
                layout.tiles.push(Tile::from_vec(tile));
            }
            return Ok(());
        }
        "L" => &mut layout.tail_padding_alignment,
        "E" => &mut layout.element_size_in_bits,
        "S" => &mut layout.memory_space,
        "M" => &mut layout.dynamic_shape_metadata_prefix_bytes,
        "D" | "SC" | "P" => return Err(unsupported(cursor, start, "a sparse or split layout")),
        _ if matches!(cursor.byte(), b'#' | b'*') => {
            return Err(unsupported(
                cursor,
                start,
                "an index or pointer type in a layout",
            ));
        }
        _ => return Err(cursor.unexpected("a part of a layout")),
    };
    cursor.expect("(")?;
    let value = cursor.integer()?;
    *target = value;
    cursor.expect(")")
}

fn checked_layout(cursor: &Cursor<'_>, at: usize, layout: Layout, rank: usize) -> Result<Layout> {
    let order: &Dims = &layout.minor_to_major;
    if order.len() != rank || !crate::shape::index::is_permutation(order) {
        let message = format!("layout `{layout}` does not order {rank} dimensions");
        return Err(cursor.error_at(at, message));
    }
    Ok(layout)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Shape> {
        let mut cursor = Cursor::new(text);
        let shape = parse(&mut cursor)?;
        assert!(cursor.at_end(), "all of {text} is read");
        Ok(shape)
    }

    #[test]
    fn shapes_print_as_they_were_read() {
        for text in [
            "f32[]",
            "f32[2,3]{1,0}",
            "pred[0,<=4]{0,1}",
            "()",
            "(f32[], (token[], opaque[]), s4[7]{0:E(4)})",
            "bf16[8,128]{1,0:T(8,128)(2,1)L(2)E(16)S(1)M(4)}",
            "f32[8,128]{1,0:T(*,4)}",
            "f32[]{:S(5)}",
            "f32[2]{0:L(-1)}",
            "(u1[], u1[], u1[], u1[], u1[], /*index=5*/f8e8m0fnu[])",
        ] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
        assert_eq!(read("f32[2,3]").unwrap().to_string(), "f32[2,3]{1,0}");
        assert_eq!(
            Shape::array(PrimitiveType::F32, [2, 3]).to_string(),
            "f32[2,3]"
        );
    }

    #[test]
    fn a_computation_body_is_no_layout() {
        let mut cursor = Cursor::new("f32[123] { x");
        parse(&mut cursor).unwrap();
        assert!(cursor.eat("{"));
    }

    #[test]
    fn wrong_shapes_are_refused() {
        for text in [
            "f33[2]",
            "f32",
            "f32[",
            "f32[2",
            "f32[-1]",
            "f32[2]{1}",
            "f32[2,2]{0,0}",
            "(f32[]",
            "f32[?]",
            "b(f32[])",
            "token[2]",
            "f32[2]{0:Q(1)}",
            "f32[2]{0:D(D)}",
            "f32[2]{0:S(}",
            "f32[99999999999999999999]",
            "f32[4294967296,4294967296]",
            "f32[0,4294967296,4294967296]",
            "f32[0,9223372036854775807]",
            "",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        let deep = "(".repeat(MAX_NESTING + 1);
        assert_eq!(read(&deep).unwrap_err().code, codes::INPUT_LIMIT);
        assert!(read("f32[0,4294967296]").is_ok());
    }
}
