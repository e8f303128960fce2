//! What the readers and printers know of dialects: attributes that may be left out.

use crate::mlir::attrs::Attr;
use crate::mlir::attrs::AttrMap;
use crate::mlir::attrs::Dense;
use crate::mlir::types::Type;

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

/// Leaves out the attributes of an op that have their default value, so that a program has one form
/// whether its writer spelled defaults out or not.
///
/// Those are the ones of [`default_of`], and lists whose default depends on their length. A missing
/// `channel_handle` of a collective op and one of zeros mean the same, as they do in VHLO.
pub fn drop_defaults(op: &str, attrs: &mut AttrMap) {
    if attrs.is_empty() {
        return;
    }
    attrs.retain(|name, attr| {
        !is_neutral(op, name, attr) && default_of(op, name).as_ref() != Some(attr)
    });
    let layouts = ["operand_layouts", "result_layouts"];
    let empty = |name| attrs.get(name).is_none_or(is_empty);
    if op == "stablehlo.custom_call" && layouts.into_iter().all(empty) {
        attrs.retain(|name, _| !layouts.contains(&&**name));
    }
}

/// Whether an attribute says what its absence says, whatever its length is.
fn is_neutral(op: &str, name: &str, attr: &Attr) -> bool {
    let Some(op) = op.strip_prefix("stablehlo.") else {
        return match (op, name) {
            ("func.func", "sym_visibility") => *attr == Attr::string(""),
            ("func.func" | "func.call", "arg_attrs" | "res_attrs") => attr
                .as_array()
                .is_some_and(|dicts| dicts.iter().all(is_empty)),
            ("chlo.top_k", "is_stable") => *attr == Attr::Bool(true),
            ("chlo.scan", "is_reverse") => *attr == Attr::Bool(false),
            _ => false,
        };
    };
    let ints = |value: i64| are_all(attr, value);
    let window = matches!(
        op,
        "convolution" | "dynamic_conv" | "reduce_window" | "select_and_scatter"
    );
    match (op, name) {
        (_, "window_strides" | "lhs_dilation" | "rhs_dilation") if window => ints(1),
        ("reduce_window", "base_dilations" | "window_dilations") => ints(1),
        (_, "padding") if window => ints(0),
        ("convolution" | "dynamic_conv", "window_reversal") => ints(0),
        ("convolution" | "dynamic_conv" | "dot" | "dot_general", "precision_config") => {
            let default = |item: &Attr| item.as_enum("precision") == Some("DEFAULT");
            attr.as_array()
                .is_some_and(|items| items.iter().all(default))
        }
        // Old artifacts have the default as an `i64`.
        ("composite", "version") => attr.as_int() == Some(0),
        ("compare", "compare_type") => attr.as_enum("comparison_type") == Some("NOTYPE"),
        (
            "all_gather"
            | "all_reduce"
            | "all_to_all"
            | "collective_broadcast"
            | "collective_permute"
            | "collective_reduce"
            | "reduce_scatter",
            "channel_handle",
        ) => {
            let handle = attr.as_struct("stablehlo", "channel_handle");
            handle.is_some_and(|handle| handle.fields.is_empty())
        }
        ("custom_call", "backend_config" | "result_tilings")
        | ("infeed", "layout")
        | ("send" | "recv", "source_target_pairs")
        | (
            "dynamic_broadcast_in_dim",
            "known_expanding_dimensions" | "known_nonexpanding_dimensions",
        ) => is_empty(attr),
        _ => false,
    }
}

/// Whether all integers of a list are `value`. Nothing is expanded for that.
fn are_all(attr: &Attr, value: i64) -> bool {
    let ints = match attr {
        Attr::Dense(dense) if !dense.splat => return is_empty(attr),
        Attr::Dense(dense) => {
            let ty = Type::static_tensor(&[1], dense.ty.element().clone());
            let data = dense.data.clone();
            let splat = true;
            Dense { ty, splat, data }.ints()
        }
        Attr::DenseArray(array) if array.len() <= RANK => array.ints(),
        _ => None,
    };
    ints.is_some_and(|ints| ints.iter().all(|int| *int == value))
}

/// More numbers than this are no list of dimensions.
const RANK: usize = 64;

/// Whether a list or dictionary has nothing in it.
fn is_empty(attr: &Attr) -> bool {
    match attr {
        Attr::Array(items) => items.is_empty(),
        Attr::Dict(entries) => entries.is_empty(),
        Attr::DenseArray(array) => array.is_empty(),
        Attr::Dense(dense) => dense.element_count() == 0,
        _ => false,
    }
}
