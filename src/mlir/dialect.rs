//! What the readers and printers know of dialects: names that changed, and attributes that may be
//! left out or were spelled otherwise.

use crate::mlir::attrs::Attr;
use crate::mlir::attrs::AttrMap;
use crate::mlir::attrs::Dense;
use crate::mlir::types::Type;

/// The value that an optional attribute of an op has when it is absent; nothing when being absent
/// means something of its own.
pub fn default_of(op: &str, attr: &str) -> Option<Attr> {
    if op.starts_with("arith.") {
        return match attr {
            "overflowFlags" => Some(Attr::Opaque("#arith.overflow<none>".into())),
            "fastmath" => Some(Attr::Opaque("#arith.fastmath<none>".into())),
            _ => None,
        };
    }
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

macro_rules! names {
    ($ops:ident, $names:ident, $dialect:literal, $($op:literal)*) => {
        const $ops: &[&str] = &[$($op),*];
        const $names: &[&str] = &[$(concat!($dialect, $op)),*];
    };
}

// Ops of StableHLO, which `mhlo` spells the same.
names! {
    STABLEHLO_OPS, STABLEHLO_NAMES, "stablehlo.",
    "abs" "add" "after_all" "all_gather" "all_reduce" "all_to_all" "and" "atan2"
    "batch_norm_grad" "batch_norm_inference" "batch_norm_training" "bitcast_convert"
    "broadcast" "broadcast_in_dim" "case" "cbrt" "ceil" "cholesky" "clamp"
    "collective_broadcast" "collective_permute" "compare" "complex" "composite"
    "concatenate" "constant" "convert" "convolution" "cosine" "count_leading_zeros"
    "create_token" "cross-replica-sum" "custom_call" "divide" "dot" "dot_general"
    "dynamic_broadcast_in_dim" "dynamic_conv" "dynamic_gather" "dynamic_iota" "dynamic_pad"
    "dynamic_reshape" "dynamic_slice" "dynamic_update_slice" "einsum" "exponential"
    "exponential_minus_one" "fft" "floor" "gather" "get_dimension_size" "get_tuple_element"
    "if" "imag" "infeed" "iota" "is_finite" "log" "log_plus_one" "logistic" "map"
    "maximum" "minimum" "multiply" "negate" "not" "optimization_barrier" "or" "outfeed"
    "pad" "partition_id" "popcnt" "power" "real" "real_dynamic_slice" "recv" "reduce"
    "reduce_precision" "reduce_scatter" "reduce_window" "remainder" "replica_id" "reshape"
    "return" "reverse" "rng" "rng_bit_generator" "round_nearest_afz" "round_nearest_even"
    "rsqrt" "scatter" "select" "select_and_scatter" "send" "set_dimension_size"
    "shift_left" "shift_right_arithmetic" "shift_right_logical" "sign" "sine" "slice"
    "sort" "sqrt" "subtract" "tan" "tanh" "torch_index_select" "transpose"
    "triangular_solve" "tuple" "unary_einsum" "uniform_dequantize" "uniform_quantize"
    "while" "xor"
}

// Ops of `mhlo` that CHLO has under the same name and with the same meaning.
names! {
    CHLO_OPS, CHLO_NAMES, "chlo.",
    "acos" "acosh" "asin" "asinh" "atanh" "cosh" "erf" "sinh"
}

/// The name that an op has now, when it changed.
pub fn current_name(name: &str) -> Option<&'static str> {
    let op = name.strip_prefix("mhlo.")?;
    if let Ok(at) = CHLO_OPS.binary_search(&op) {
        return Some(CHLO_NAMES[at]);
    }
    let at = STABLEHLO_OPS.binary_search(&op).ok()?;
    Some(STABLEHLO_NAMES[at])
}

/// Attributes that are lists of integers now and were dense tensors once.
const LISTS: &[&str] = &[
    "base_dilations",
    "broadcast_dimensions",
    "broadcast_sizes",
    "dimensions",
    "edge_padding_high",
    "edge_padding_low",
    "fft_length",
    "interior_padding",
    "known_expanding_dimensions",
    "known_nonexpanding_dimensions",
    "lhs_dilation",
    "limit_indices",
    "permutation",
    "rhs_dilation",
    "slice_sizes",
    "start_indices",
    "strides",
    "window_dilations",
    "window_dimensions",
    "window_strides",
];

/// Gives the attributes of an op the one form that readers promise.
pub fn canonicalize(op: &str, attrs: &mut AttrMap) {
    if op.starts_with("stablehlo.") || op.starts_with("chlo.") {
        attrs.update(|name, attr| match attr {
            // A longer list is none of dimensions, and may be a splat that stands for any number.
            Attr::Dense(dense) if dense.element_count() > RANK as u64 => None,
            Attr::Dense(dense) if LISTS.binary_search(&name).is_ok() => {
                dense.ints().map(|ints| Attr::i64_array(&ints))
            }
            Attr::Dense(dense) if name == "window_reversal" => {
                let bools: Vec<bool> = dense.ints()?.into_iter().map(|b| b != 0).collect();
                Some(Attr::bool_array(&bools))
            }
            _ => None,
        });
    }
    drop_defaults(op, attrs);
}

/// The op that holds the functions of a program.
pub const MODULE: &str = "builtin.module";

/// Whether the name of an op, or of a dialect, can stand in quotes as it is.
pub fn is_op_name(name: &str) -> bool {
    let stands = |byte: u8| (b' '..=b'~').contains(&byte) && !matches!(byte, b'"' | b'\\');
    name.bytes().all(stands)
}

/// Whether an op ends a block and gives the results of its region.
pub fn is_return(op: &str) -> bool {
    matches!(
        op,
        "func.return" | "stablehlo.return" | "mhlo.return" | "shape.assuming_yield" | "sdy.return"
    )
}

/// Whether an op is the last of its block.
pub fn ends_block(op: &str) -> bool {
    is_return(op) || matches!(op, "cf.br" | "cf.cond_br")
}

/// Whether values from around an op may not be used inside it.
pub fn is_isolated(op: &str) -> bool {
    matches!(op, MODULE | "func.func")
}

/// Whether an op takes two operands of one type in either order, and gives one result of it.
pub fn is_commutative(op: &str) -> bool {
    let op = op.strip_prefix("stablehlo.");
    op.is_some_and(|op| {
        matches!(
            op,
            "add" | "and" | "maximum" | "minimum" | "multiply" | "or" | "xor"
        )
    })
}

/// Leaves out the attributes of an op that have their default value, so that a program has one form
/// whether its writer spelled defaults out or not.
///
/// Those are the ones of [`default_of`], and lists whose default depends on their length. A missing
/// `channel_handle` of a collective op and one of number zero mean the same, as they do in VHLO.
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
            ("sdy.all_reduce" | "sdy.reduce_scatter", "reduction_op") => attr.as_int() == Some(0),
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
            handle.is_some_and(|handle| {
                handle.int("handle") == Some(0) && matches!(handle.int("type"), Some(0 | 1))
            })
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
