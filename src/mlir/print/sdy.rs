//! Attributes of Shardy as MLIR text.

use std::fmt::Write;

use crate::mlir::attrs::Attr;
use crate::mlir::attrs::StructAttr;
use crate::mlir::print::attr::write_attr;
use crate::mlir::print::attr::write_sub_axis;
use crate::mlir::text::scan::quote;

/// Writes an attribute of Shardy with its name.
pub(super) fn write(s: &StructAttr, out: &mut String) {
    let mut body = String::new();
    write_body(s, &mut body);
    let _ = match body.starts_with('<') {
        true => write!(out, "#sdy.{}{body}", s.kind),
        false => write!(out, "#sdy<{}{body}>", s.kind),
    };
}

/// What stands after the kind.
pub(super) fn write_body(s: &StructAttr, out: &mut String) {
    match &*s.kind {
        "mesh" => {
            out.push_str("<[");
            list(s, "axes", out);
            out.push(']');
            if let Some(ids) = s.field("device_ids").and_then(Attr::ints) {
                let _ = write!(out, ", device_ids={ids:?}");
            }
            out.push('>');
        }
        "mesh_axis" => {
            name(s, out);
            let _ = write!(out, "={}", s.int("size").unwrap_or(0));
        }
        "axis_ref" => {
            name(s, out);
            if let Some(Attr::Struct(sub)) = s.field("sub_axis_info") {
                out.push(':');
                write_body(sub, out);
            }
        }
        "sub_axis_info" => write_sub_axis(s, out),
        "all_to_all_param" => {
            out.push('{');
            list(s, "axes", out);
            let (from, to) = (s.int("src_dim"), s.int("tgt_dim"));
            let _ = write!(out, "}}: {}->{}", from.unwrap_or(0), to.unwrap_or(0));
        }
        "all_to_all_param_list" => {
            out.push('[');
            list(s, "value", out);
            out.push(']');
        }
        "dimension_sharding" => {
            out.push('{');
            list(s, "axes", out);
            if s.field("is_open").is_some() {
                out.push_str(if s.field("axes").is_some() {
                    ", ?"
                } else {
                    "?"
                });
            }
            out.push('}');
            if let Some(priority) = s.field("priority").and_then(Attr::as_int) {
                let _ = write!(out, "p{priority}");
            }
        }
        "sharding" => write_sharding(s, out),
        "sharding_per_value" => {
            out.push_str("<[");
            list(s, "shardings", out);
            out.push_str("]>");
        }
        "manual_axes" | "axis_ref_list" => {
            out.push('{');
            list(s, "axes", out);
            out.push('}');
        }
        "list_of_axis_ref_lists" => {
            out.push('[');
            let lists = s.field("lists").and_then(Attr::as_array);
            for (i, axes) in lists.unwrap_or_default().iter().enumerate() {
                out.push_str(if i > 0 { ", {" } else { "{" });
                items(axes.as_array().unwrap_or_default(), out);
                out.push('}');
            }
            out.push(']');
        }
        _ => {}
    }
}

fn write_sharding(s: &StructAttr, out: &mut String) {
    out.push('<');
    match s.field("mesh") {
        Some(Attr::Struct(mesh)) => {
            out.push_str("mesh");
            write_body(mesh, out);
        }
        Some(mesh) => write_attr(mesh, out),
        None => {}
    }
    out.push_str(", [");
    list(s, "dim_shardings", out);
    out.push(']');
    if s.field("replicated_axes").is_some() {
        out.push_str(", replicated={");
        list(s, "replicated_axes", out);
        out.push('}');
    }
    if s.field("unreduced_axes").is_some() {
        let how = s
            .field("reduction_op")
            .and_then(|r| r.as_enum("reduction_op"));
        let _ = write!(out, ", unreduced={}{{", how.unwrap_or_default());
        list(s, "unreduced_axes", out);
        out.push('}');
    }
    out.push('>');
}

fn name(s: &StructAttr, out: &mut String) {
    match s.field("name") {
        Some(Attr::String(bytes)) => quote(bytes, out),
        _ => out.push_str("\"\""),
    }
}

fn list(s: &StructAttr, field: &str, out: &mut String) {
    let all = s.field(field).and_then(Attr::as_array);
    items(all.unwrap_or_default(), out);
}

fn items(all: &[Attr], out: &mut String) {
    for (i, item) in all.iter().enumerate() {
        out.push_str(if i > 0 { ", " } else { "" });
        match item {
            Attr::Struct(s) => write_body(s, out),
            other => write_attr(other, out),
        }
    }
}
