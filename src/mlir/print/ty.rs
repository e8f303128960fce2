//! Types as MLIR text.

use std::fmt::Write;

use crate::mlir::print::attr::write_attr;
use crate::mlir::print::attr::write_nested;
use crate::mlir::print::number::write_decimal;
use crate::mlir::types::QuantizedScheme;
use crate::mlir::types::QuantizedType;
use crate::mlir::types::Signedness;
use crate::mlir::types::TensorType;
use crate::mlir::types::Type;

/// Writes a type.
pub fn write_type(ty: &Type, out: &mut String) {
    match ty {
        Type::Integer { width, sign } => {
            let prefix = match sign {
                Signedness::Signless => "i",
                Signedness::Signed => "si",
                Signedness::Unsigned => "ui",
            };
            let _ = write!(out, "{prefix}{width}");
        }
        Type::Float(kind) => out.push_str(kind.name()),
        Type::Index => out.push_str("index"),
        Type::None => out.push_str("none"),
        Type::Complex(part) => {
            out.push_str("complex<");
            write_type(part, out);
            out.push('>');
        }
        Type::Tuple(parts) => {
            out.push_str("tuple<");
            write_types(parts, out);
            out.push('>');
        }
        Type::Function(function) => {
            out.push('(');
            write_types(&function.inputs, out);
            out.push_str(") -> ");
            match &function.results[..] {
                [one] if !matches!(one, Type::Function(_)) => write_type(one, out),
                results => {
                    out.push('(');
                    write_types(results, out);
                    out.push(')');
                }
            }
        }
        Type::Tensor(tensor) => shaped("tensor", tensor, out),
        Type::Vector(tensor) => shaped("vector", tensor, out),
        Type::MemRef(tensor) => shaped("memref", tensor, out),
        Type::UnrankedTensor(element) => {
            out.push_str("tensor<*x");
            write_type(element, out);
            out.push('>');
        }
        Type::Token => out.push_str("!stablehlo.token"),
        Type::Future(parts) => {
            out.push_str("!stablehlo.future<");
            write_types(parts, out);
            out.push('>');
        }
        Type::Quantized(quantized) => write_quantized(quantized, out),
        Type::Shape => out.push_str("!shape.shape"),
        Type::Size => out.push_str("!shape.size"),
        Type::Witness => out.push_str("!shape.witness"),
        Type::Opaque(text) => {
            out.push('!');
            out.push_str(text);
        }
    }
}

/// Types with commas between.
fn write_types(types: &[Type], out: &mut String) {
    for (i, ty) in types.iter().enumerate() {
        out.push_str(if i > 0 { ", " } else { "" });
        write_type(ty, out);
    }
}

fn shaped(word: &str, tensor: &TensorType, out: &mut String) {
    out.push_str(word);
    out.push('<');
    for dim in &tensor.dims {
        match dim {
            Some(size) => {
                let _ = write!(out, "{size}x");
            }
            None => out.push_str("?x"),
        }
    }
    write_type(&tensor.element, out);
    if let Some(encoding) = &tensor.encoding {
        out.push_str(", ");
        write_attr(encoding, out);
    }
    out.push('>');
}

fn write_quantized(ty: &QuantizedType, out: &mut String) {
    let sign = if ty.storage_signed { "i" } else { "u" };
    let _ = write!(out, "!quant.uniform<{sign}{}", ty.storage_width);
    let range = QuantizedType::storage_range(ty.storage_width, ty.storage_signed);
    if range != Some((ty.storage_min, ty.storage_max)) {
        let _ = write!(out, "<{}:{}>", ty.storage_min, ty.storage_max);
    }
    let _ = write!(out, ":{}", ty.expressed.name());
    let pair = |i: usize, out: &mut String| {
        let scale = f64::from_bits(ty.scales.get(i).copied().unwrap_or_default());
        write_decimal(scale, out);
        let zero = ty.zero_points.get(i).copied().unwrap_or_default();
        if zero != 0 {
            let _ = write!(out, ":{zero}");
        }
    };
    match &ty.scheme {
        QuantizedScheme::PerTensor => {
            out.push_str(", ");
            pair(0, out);
        }
        QuantizedScheme::PerAxis(axis) => {
            let _ = write!(out, ":{axis}, {{");
            for i in 0..ty.scales.len() {
                out.push_str(if i > 0 { "," } else { "" });
                pair(i, out);
            }
            out.push('}');
        }
        QuantizedScheme::SubChannel { blocks, shape } => {
            out.push_str(":{");
            for (i, (axis, size)) in blocks.iter().enumerate() {
                let comma = if i > 0 { ", " } else { "" };
                let _ = write!(out, "{comma}{axis}:{size}");
            }
            out.push_str("}, ");
            write_nested(shape, ["{", "}"], ty.scales.len(), out, pair);
        }
    }
    out.push('>');
}
