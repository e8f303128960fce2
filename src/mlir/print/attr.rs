//! Attributes as MLIR text.

use std::fmt::Write;

use crate::mlir::attrs::Attr;
use crate::mlir::attrs::AttrMap;
use crate::mlir::attrs::Dense;
use crate::mlir::attrs::DenseArray;
use crate::mlir::attrs::DenseData;
use crate::mlir::attrs::StructAttr;
use crate::mlir::attrs::SymbolRef;
use crate::mlir::location::SourceLoc;
use crate::mlir::print::number::write_decimal;
use crate::mlir::print::number::write_float;
use crate::mlir::print::ty::write_type;
use crate::mlir::text::scan::quote;
use crate::mlir::types::FloatKind;
use crate::mlir::types::Type;

/// Dense elements beyond this number are printed as hexadecimal bytes, where the type allows it.
const MAX_LISTED: usize = 64;

/// Writes an attribute.
pub fn write_attr(attr: &Attr, out: &mut String) {
    match attr {
        Attr::Unit => out.push_str("unit"),
        Attr::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Attr::Integer { value, ty } => {
            let _ = write!(out, "{value} : ");
            write_type(ty, out);
        }
        Attr::Float { bits, ty } => {
            if let Type::Float(kind) = ty {
                write_float(*bits, *kind, out);
            }
            out.push_str(" : ");
            write_type(ty, out);
        }
        Attr::String(bytes) => quote(bytes, out),
        Attr::TypedString(bytes, ty) => {
            quote(bytes, out);
            out.push_str(" : ");
            write_type(ty, out);
        }
        Attr::Symbol(symbol) => write_symbol(symbol, out),
        Attr::Array(items) => {
            out.push('[');
            write_attrs(items, out);
            out.push(']');
        }
        Attr::Dict(map) => write_dict(map, out),
        Attr::Type(ty) => write_type(ty, out),
        Attr::Dense(dense) => write_dense(dense, out),
        Attr::DenseArray(array) => write_array(array, out),
        Attr::MissingResource { key, ty } => {
            out.push_str("dense_resource<");
            write_name(key, out);
            out.push_str("> : ");
            write_type(ty, out);
        }
        Attr::Enum(e) => {
            let _ = match e.kind == "result_accuracy_mode" || e.dialect == "sdy" {
                true => write!(out, "#{}.{}<{}>", e.dialect, e.kind, e.case),
                false => write!(out, "#{}<{} {}>", e.dialect, e.kind, e.case),
            };
        }
        Attr::Struct(s) if s.dialect == "sdy" => super::sdy::write(s, out),
        Attr::Struct(s) => write_struct(s, out),
        Attr::Location(loc) => {
            out.push_str("loc(");
            write_location(loc, out);
            out.push(')');
        }
        Attr::Opaque(text) => out.push_str(text),
    }
}

/// Items of an array, where numbers of type `i64` and `f64` need no type.
fn write_attrs(items: &[Attr], out: &mut String) {
    for (i, item) in items.iter().enumerate() {
        out.push_str(if i > 0 { ", " } else { "" });
        match item {
            Attr::Integer { value, ty } if *ty == Type::I64 => {
                let _ = write!(out, "{value}");
            }
            Attr::Float { bits, ty } if *ty == Type::F64 => {
                let start = out.len();
                write_float(*bits, FloatKind::F64, out);
                // Bits without a type would be an integer.
                if out[start..].starts_with("0x") {
                    out.push_str(" : f64");
                }
            }
            _ => write_attr(item, out),
        }
    }
}

/// Whether a name may stand without quotes.
pub(super) fn is_bare(name: &str) -> bool {
    let first = name.as_bytes().first();
    let starts = first.is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_');
    let inside = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'.');
    starts && name.bytes().all(inside)
}

/// A name, in quotes when it must be.
pub(super) fn write_name(name: &str, out: &mut String) {
    match is_bare(name) {
        true => out.push_str(name),
        false => quote(name.as_bytes(), out),
    }
}

pub(super) fn write_symbol(symbol: &SymbolRef, out: &mut String) {
    out.push('@');
    write_name(&symbol.root, out);
    for name in &symbol.nested {
        out.push_str("::@");
        write_name(name, out);
    }
}

/// `{a = 1, b}`.
pub(super) fn write_dict(map: &AttrMap, out: &mut String) {
    out.push('{');
    for (i, (name, attr)) in map.iter().enumerate() {
        out.push_str(if i > 0 { ", " } else { "" });
        write_name(name, out);
        if *attr != Attr::Unit {
            out.push_str(" = ");
            write_attr(attr, out);
        }
    }
    out.push('}');
}

/// `#stablehlo.dot<...>`.
fn write_struct(s: &StructAttr, out: &mut String) {
    if s.kind == "sub_axis_info" {
        let _ = write!(out, "#{}<{}", s.dialect, s.kind);
        write_sub_axis(s, out);
        return out.push('>');
    }
    let _ = write!(out, "#{}.{}<", s.dialect, s.kind);
    if s.kind == "conv" {
        write_conv(s, out);
    } else if s.kind == "bounds" {
        write_sizes(&s.ints("bounds").unwrap_or_default(), out);
    } else {
        write_fields(s, out);
    }
    out.push('>');
}

/// Fields that a struct must spell though they have their default value, by kind.
fn spelled(kind: &str) -> &'static [(&'static str, Spelled)] {
    match kind {
        "channel_handle" => &[("handle", Spelled::Zero), ("type", Spelled::Zero)],
        "output_operand_alias" => &[
            ("output_tuple_indices", Spelled::Empty),
            ("operand_index", Spelled::Zero),
            ("operand_tuple_indices", Spelled::Empty),
        ],
        "dot_algorithm" => &[
            ("lhs_precision_type", Spelled::Nothing),
            ("rhs_precision_type", Spelled::Nothing),
            ("accumulation_type", Spelled::Nothing),
            ("lhs_component_count", Spelled::Zero),
            ("rhs_component_count", Spelled::Zero),
            ("num_primitive_operations", Spelled::Zero),
            ("allow_imprecise_accumulation", Spelled::False),
        ],
        "mesh" => &[("axes", Spelled::Empty), ("device_ids", Spelled::Nothing)],
        "mesh_axis" => &[("name", Spelled::Nothing), ("size", Spelled::Zero)],
        "replica_group_mesh_axes" => &[("mesh", Spelled::Nothing), ("axes", Spelled::Empty)],
        _ => &[],
    }
}

/// What is printed for a field that is absent.
#[derive(Clone, Copy)]
enum Spelled {
    Nothing,
    Zero,
    Empty,
    False,
}

fn write_fields(s: &StructAttr, out: &mut String) {
    let all = spelled(&s.kind);
    if all.is_empty() {
        for (i, (name, attr)) in s.fields.iter().enumerate() {
            out.push_str(if i > 0 { ", " } else { "" });
            let _ = write!(out, "{name} = ");
            write_field(name, attr, out);
        }
        return;
    }
    let mut first = true;
    for (name, absent) in all {
        let text = match (s.field(name), absent) {
            (Some(_), _) => None,
            (None, Spelled::Nothing) => continue,
            (None, Spelled::Zero) => Some("0"),
            (None, Spelled::Empty) => Some("[]"),
            (None, Spelled::False) => Some("false"),
        };
        out.push_str(if first { "" } else { ", " });
        first = false;
        let _ = write!(out, "{name} = ");
        match (text, s.field(name)) {
            (Some(text), _) => out.push_str(text),
            (None, Some(attr)) => write_field(name, attr, out),
            (None, None) => {}
        }
    }
}

/// A field's value, without the type that the field has anyway.
fn write_field(name: &str, attr: &Attr, out: &mut String) {
    match attr {
        Attr::DenseArray(_) => {
            out.push('[');
            write_sizes(&attr.ints().unwrap_or_default(), out);
            out.push(']');
        }
        Attr::Integer { value, .. } => {
            let _ = write!(out, "{value}");
        }
        Attr::Float { bits, .. } => write_decimal(f64::from_bits(*bits), out),
        Attr::Struct(sub) if sub.kind == "sub_axis_info" => {
            write_sub_axis(sub, out);
        }
        // The axes of a mesh are printed without their kind.
        Attr::Array(items) if name == "axes" && items.iter().all(is_mesh_axis) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { ", <" } else { "<" });
                if let Attr::Struct(axis) = item {
                    write_fields(axis, out);
                }
                out.push('>');
            }
            out.push(']');
        }
        other => write_attr(other, out),
    }
}

/// `(1)2`.
pub(super) fn write_sub_axis(s: &StructAttr, out: &mut String) {
    let (pre, size) = (s.int("pre_size"), s.int("size"));
    let _ = write!(out, "({}){}", pre.unwrap_or(0), size.unwrap_or(0));
}

fn is_mesh_axis(attr: &Attr) -> bool {
    matches!(attr, Attr::Struct(s) if s.kind == "mesh_axis")
}

/// Sizes with commas between, `?` for those that are not known.
fn write_sizes(sizes: &[i64], out: &mut String) {
    for (i, &size) in sizes.iter().enumerate() {
        out.push_str(if i > 0 { ", " } else { "" });
        let _ = match size {
            Attr::DYNAMIC => write!(out, "?"),
            _ => write!(out, "{size}"),
        };
    }
}

/// `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`, or all fields when they are no permutation.
fn write_conv(s: &StructAttr, out: &mut String) {
    let sides = [
        ("input", ["batch", "feature"], ["b", "f"], ""),
        (
            "kernel",
            ["input_feature", "output_feature"],
            ["i", "o"],
            "x",
        ),
        ("output", ["batch", "feature"], ["b", "f"], "->"),
    ];
    let mut text = String::new();
    for (side, names, letters, before) in sides {
        let spatial = s
            .ints(&format!("{side}_spatial_dimensions"))
            .unwrap_or_default();
        let mut dims = vec![String::new(); spatial.len() + 2];
        let named = names.iter().zip(letters);
        let named = named.map(|(n, l)| (s.int(&format!("{side}_{n}_dimension")), l.to_owned()));
        let numbered = spatial
            .iter()
            .enumerate()
            .map(|(i, d)| (Some(*d), i.to_string()));
        for (at, word) in named.chain(numbered) {
            let at = at.and_then(|at| usize::try_from(at).ok());
            if let Some(slot) = at.and_then(|at| dims.get_mut(at)) {
                *slot = word;
            }
        }
        if dims.iter().any(String::is_empty) {
            out.push_str("raw ");
            return write_fields(s, out);
        }
        let _ = write!(text, "{before}[{}]", dims.join(", "));
    }
    out.push_str(&text);
}

/// `array<i64: 1, 2>`.
fn write_array(array: &DenseArray, out: &mut String) {
    out.push_str("array<");
    write_type(&array.element, out);
    let width = array.element.element_bytes().unwrap_or(1).max(1);
    for (i, bytes) in array.data.chunks(width).enumerate() {
        out.push_str(if i > 0 { ", " } else { ": " });
        write_number(&array.element, bytes, out);
    }
    out.push('>');
}

/// One number of a type, from its bytes.
fn write_number(ty: &Type, bytes: &[u8], out: &mut String) {
    match ty {
        Type::Float(kind) => write_float(word(bytes), *kind, out),
        Type::Complex(part) => {
            let (re, im) = bytes.split_at(bytes.len() / 2);
            out.push('(');
            write_number(part, re, out);
            out.push_str(", ");
            write_number(part, im, out);
            out.push(')');
        }
        _ if *ty == Type::I1 => out.push_str(if bytes[0] != 0 { "true" } else { "false" }),
        _ => {
            let unsigned = matches!(
                ty,
                Type::Integer {
                    sign: crate::mlir::Signedness::Unsigned,
                    ..
                }
            );
            let negative = !unsigned && bytes.last().is_some_and(|b| *b >= 0x80);
            let mut all = [if negative { 0xff } else { 0 }; 16];
            let length = bytes.len().min(16);
            all[..length].copy_from_slice(&bytes[..length]);
            let _ = write!(out, "{}", i128::from_le_bytes(all));
        }
    }
}

fn word(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    let length = bytes.len().min(8);
    all[..length].copy_from_slice(&bytes[..length]);
    u64::from_le_bytes(all)
}

/// `dense<...> : tensor<...>`.
fn write_dense(dense: &Dense, out: &mut String) {
    out.push_str("dense<");
    let element = dense.ty.element();
    let dims: Vec<u64> = match &dense.ty {
        Type::Tensor(tensor) | Type::Vector(tensor) => {
            tensor.dims.iter().flatten().copied().collect()
        }
        _ => Vec::new(),
    };
    match &dense.data {
        DenseData::Strings(strings) if dense.splat => quote(&strings[0], out),
        DenseData::Strings(strings) if strings.is_empty() => {}
        DenseData::Strings(strings) => {
            write_nested(&dims, ["[", "]"], strings.len(), out, |i, out| {
                quote(&strings[i], out)
            });
        }
        // Integers of no bits take no bytes.
        DenseData::Bytes(bytes) if bytes.is_empty() && !dims.contains(&0) => out.push('0'),
        DenseData::Bytes(bytes) if bytes.is_empty() => {}
        DenseData::Bytes(bytes) if is_wide(element) => write_hex(bytes, out),
        DenseData::Bytes(bytes) if dense.splat => write_number(element, bytes, out),
        DenseData::Bytes(bytes) => {
            let width = element.element_bytes().unwrap_or(1).max(1);
            let count = bytes.len() / width;
            if count > MAX_LISTED && is_raw(element) {
                write_hex(bytes, out);
            } else {
                write_nested(&dims, ["[", "]"], count, out, |i, out| {
                    write_number(element, &bytes[i * width..(i + 1) * width], out);
                });
            }
        }
    }
    out.push_str("> : ");
    write_type(&dense.ty, out);
}

/// Whether an element is a number of more bits than numbers in text have here.
fn is_wide(element: &Type) -> bool {
    match element {
        Type::Integer { width, .. } => *width > 128,
        Type::Float(kind) => kind.bit_width() > 64,
        Type::Complex(part) => is_wide(part),
        _ => false,
    }
}

/// Whether the bytes of such elements are what MLIR keeps.
fn is_raw(element: &Type) -> bool {
    match element {
        Type::Integer { width, .. } => matches!(width, 8 | 16 | 32 | 64),
        Type::Float(kind) => kind.bit_width() >= 8,
        Type::Index => true,
        Type::Complex(part) => is_raw(part),
        _ => false,
    }
}

fn write_hex(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.reserve(bytes.len() * 2 + 4);
    out.push_str("\"0x");
    for &byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    out.push('"');
}

/// `count` items in nested lists of that shape.
pub(super) fn write_nested(
    dims: &[u64],
    brackets: [&str; 2],
    count: usize,
    out: &mut String,
    item: impl Fn(usize, &mut String),
) {
    // How many items the list of each level holds, the outermost first.
    let mut sizes = vec![1u64; dims.len()];
    let mut size = 1u64;
    for (at, dim) in dims.iter().enumerate().rev() {
        size = size.saturating_mul(*dim);
        sizes[at] = size.max(1);
    }
    for i in 0..count {
        out.push_str(if i > 0 { ", " } else { "" });
        let starts = sizes
            .iter()
            .filter(|s| (i as u64).is_multiple_of(**s))
            .count();
        let ends = sizes
            .iter()
            .filter(|s| (i as u64 + 1).is_multiple_of(**s))
            .count();
        out.extend(std::iter::repeat_n(brackets[0], starts));
        item(i, out);
        out.extend(std::iter::repeat_n(brackets[1], ends));
    }
}

/// What stands between the parentheses of `loc`.
pub(super) fn write_location(loc: &SourceLoc, out: &mut String) {
    match loc {
        SourceLoc::Unknown => out.push_str("unknown"),
        SourceLoc::File {
            file,
            line,
            column,
            end_line,
            end_column,
        } => {
            quote(file.as_bytes(), out);
            let _ = write!(out, ":{line}:{column}");
            if line != end_line {
                let _ = write!(out, " to {end_line}:{end_column}");
            } else if column != end_column {
                let _ = write!(out, " to :{end_column}");
            }
        }
        SourceLoc::Name { name, child } => {
            quote(name.as_bytes(), out);
            if **child != SourceLoc::Unknown {
                out.push('(');
                write_location(child, out);
                out.push(')');
            }
        }
        SourceLoc::CallSite { callee, caller } => {
            out.push_str("callsite(");
            write_location(callee, out);
            out.push_str(" at ");
            write_location(caller, out);
            out.push(')');
        }
        SourceLoc::Fused { parts, metadata } => {
            out.push_str("fused");
            if let Some(metadata) = metadata {
                out.push('<');
                write_attr(metadata, out);
                out.push('>');
            }
            out.push('[');
            for (i, part) in parts.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                write_location(part, out);
            }
            out.push(']');
        }
    }
}
