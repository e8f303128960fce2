//! What the readers and printers know of dialects: attributes that may be left out.

use crate::mlir::attrs::Attr;
use crate::mlir::attrs::AttrMap;

/// The value that an optional attribute of an op has when it is absent; nothing when being absent
/// means something of its own.
pub fn default_of(op: &str, attr: &str) -> Option<Attr> {
    let op = op.strip_prefix("stablehlo.")?;
    Some(match (op, attr) {
        ("sort", "dimension") => Attr::i64(-1),
        ("sort", "is_stable")
        | ("gather" | "dynamic_gather" | "scatter", "indices_are_sorted")
        | ("scatter", "unique_indices")
        | ("custom_call", "has_side_effect")
        | ("cholesky", "lower")
        | ("send" | "recv", "is_host_transfer") => Attr::Bool(false),
        ("custom_call", "api_version") => Attr::i32(1),
        ("custom_call", "backend_config")
        | ("infeed", "infeed_config")
        | ("outfeed", "outfeed_config") => Attr::string(""),
        ("custom_call", "called_computations" | "output_operand_aliases") => {
            Attr::array(Vec::new())
        }
        ("composite", "version") => Attr::i32(0),
        ("composite", "composite_attributes") => Attr::dict(AttrMap::new()),
        (_, "result_accuracy") => Attr::structure(
            "stablehlo",
            "result_accuracy",
            vec![(
                "mode".into(),
                Attr::stablehlo_enum("result_accuracy_mode", "DEFAULT"),
            )],
        ),
        _ => return None,
    })
}

/// Leaves out the attributes of an op that have their default value.
pub fn drop_defaults(op: &str, attrs: &mut AttrMap) {
    attrs.retain(|name, attr| default_of(op, name).as_ref() != Some(attr));
}
