//! What rides along with an instruction: sharding, metadata and the like.

use std::collections::BTreeMap;

use super::commas;
use super::push;
use crate::base::Cursor;
use crate::base::text::is_name_byte;
use crate::base::text::quote;
use crate::hlo::ArraySharding;
use crate::hlo::Extra;
use crate::hlo::OpMetadata;
use crate::hlo::Sharding;
use crate::hlo::ShardingKind;

/// The attributes that stand before the control predecessors.
pub(super) fn before_control(extra: &Extra, out: &mut String) {
    if let Some(accuracy) = &extra.result_accuracy {
        push(out, format_args!(", result_accuracy={{{accuracy}}}"));
    }
    if let Some(sharding) = &extra.sharding {
        out.push_str(", sharding=");
        self::sharding(sharding, out);
    }
    if !extra.frontend_attributes.is_empty() {
        out.push_str(", frontend_attributes=");
        pairs(&extra.frontend_attributes, out);
    }
}

/// The attributes that stand after the control predecessors.
pub(super) fn after_control(extra: &Extra, out: &mut String) {
    if let Some(statistics) = &extra.statistics {
        push(out, format_args!(", statistics={{{statistics}}}"));
    }
    if let Some(origin) = &extra.origin {
        push(out, format_args!(", origin={{{origin}}}"));
    }
    if let Some(metadata) = &extra.metadata {
        out.push_str(", metadata=");
        self::metadata(metadata, out);
    }
    if !extra.backend_config.is_empty() {
        out.push_str(", backend_config=");
        dict_or_string(&extra.backend_config, out);
    }
}

/// Text in braces as it stands, anything else quoted.
fn dict_or_string(bytes: &[u8], out: &mut String) {
    let dict = std::str::from_utf8(bytes).ok().filter(|text| {
        // A line break or a zero byte is safe in quotes only.
        let plain = text.bytes().all(|b| b >= b' ');
        let mut cursor = Cursor::new(text);
        plain && cursor.byte() == b'{' && cursor.braced().is_ok_and(|all| all.len() == text.len())
    });
    match dict {
        Some(text) => out.push_str(text),
        None => out.push_str(&quote(bytes)),
    }
}

/// `{key="value",other={...}}`
pub(super) fn pairs(pairs: &BTreeMap<String, String>, out: &mut String) {
    out.push('{');
    for (i, (key, value)) in pairs.iter().enumerate() {
        out.push_str(if i > 0 { "," } else { "" });
        let first = key
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
        if first && key.bytes().all(is_name_byte) {
            out.push_str(key);
        } else {
            out.push_str(&quote(key.as_bytes()));
        }
        out.push('=');
        dict_or_string(value.as_bytes(), out);
    }
    out.push('}');
}

fn metadata(metadata: &OpMetadata, out: &mut String) {
    out.push('{');
    let start = out.len();
    let mut field = |name: &str, value: String| {
        let space = if out.len() > start { " " } else { "" };
        push(out, format_args!("{space}{name}={value}"));
    };
    for (name, text) in [
        ("op_type", &metadata.op_type),
        ("op_name", &metadata.op_name),
        ("source_file", &metadata.source_file),
    ] {
        if !text.is_empty() {
            field(name, quote(text.as_bytes()));
        }
    }
    for (name, number) in [
        ("source_line", metadata.source_line),
        ("source_end_line", metadata.source_end_line),
        ("source_column", metadata.source_column),
        ("source_end_column", metadata.source_end_column),
        ("stack_frame_id", metadata.stack_frame_id),
    ] {
        if number != 0 {
            field(name, number.to_string());
        }
    }
    if !metadata.profile_type.is_empty() {
        field(
            "profile_type",
            format!("{{{}}}", commas(&metadata.profile_type)),
        );
    }
    for (name, text) in [
        ("deduplicated_name", &metadata.deduplicated_name),
        ("scheduling_name", &metadata.scheduling_name),
    ] {
        if !text.is_empty() {
            field(name, quote(text.as_bytes()));
        }
    }
    if metadata.preserve_layout {
        field("preserve_layout", "true".to_owned());
    }
    if !metadata.metadata_payload.is_empty() {
        field("metadata_payload", metadata.metadata_payload.clone());
    }
    out.push('}');
}

/// `{replicated}`, `{{maximal device=0}, {devices=[2,1]<=[2]}}`
pub(super) fn sharding(sharding: &Sharding, out: &mut String) {
    match sharding {
        Sharding::Array(array) => array_sharding(array, out),
        Sharding::Tuple(elements) => {
            out.push('{');
            for (i, element) in elements.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                self::sharding(element, out);
            }
            out.push('}');
        }
    }
}

fn kind(kind: ShardingKind) -> &'static str {
    match kind {
        ShardingKind::Replicated => "replicated",
        ShardingKind::Maximal => "maximal",
        ShardingKind::Other => "devices",
        ShardingKind::Manual => "manual",
        ShardingKind::Unknown => "unknown",
        ShardingKind::Unreduced => "unreduced",
    }
}

fn array_sharding(sharding: &ArraySharding, out: &mut String) {
    if let Some(text) = &sharding.text {
        out.push_str(text);
        return;
    }
    out.push('{');
    out.push_str(kind(sharding.kind));
    match sharding.kind {
        ShardingKind::Maximal => {
            let device = sharding
                .tile_assignment_devices
                .first()
                .copied()
                .unwrap_or(0);
            push(out, format_args!(" device={device}"));
        }
        ShardingKind::Other => tile_assignment(sharding, out),
        _ => {}
    }
    if sharding.replicate_on_last_tile_dim {
        out.push_str(" last_tile_dim_replicate");
    }
    if !sharding.last_tile_dims.is_empty() {
        let kinds: Vec<&str> = sharding.last_tile_dims.iter().map(|k| kind(*k)).collect();
        push(
            out,
            format_args!(" last_tile_dims={{{}}}", kinds.join(", ")),
        );
    }
    if sharding.is_shard_group {
        let word = if sharding.shard_group_type == 0 {
            "shard_as"
        } else {
            "shard_like"
        };
        push(out, format_args!(" {word} {}", sharding.shard_group_id));
    }
    match &sharding.metadata[..] {
        [] => {}
        [one] => {
            out.push_str(" metadata=");
            metadata(one, out);
        }
        several => {
            out.push_str(" metadata={");
            for (i, one) in several.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                metadata(one, out);
            }
            out.push('}');
        }
    }
    out.push('}');
}

fn tile_assignment(sharding: &ArraySharding, out: &mut String) {
    push(
        out,
        format_args!("=[{}]", commas(&sharding.tile_assignment_dimensions)),
    );
    if sharding.iota_reshape_dims.is_empty() {
        out.push_str(&commas(&sharding.tile_assignment_devices));
    } else {
        let iota = iota(&sharding.iota_reshape_dims, &sharding.iota_transpose_perm);
        push(out, format_args!("<={iota}"));
    }
}

/// `[4,2]T(1,0)`, without the permutation of a single dimension.
pub(super) fn iota(reshape: &[i64], transpose: &[i64]) -> String {
    let reshape_text = commas(reshape);
    if reshape.len() == 1 {
        format!("[{reshape_text}]")
    } else {
        format!("[{reshape_text}]T({})", commas(transpose))
    }
}
