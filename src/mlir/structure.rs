//! Structured attributes of StableHLO that are made of integers and lists of integers only.

const DOT: &[&str] = &[
    "lhs_batching_dimensions",
    "rhs_batching_dimensions",
    "lhs_contracting_dimensions",
    "rhs_contracting_dimensions",
];
const GATHER: &[&str] = &[
    "offset_dims",
    "collapsed_slice_dims",
    "operand_batching_dims",
    "start_indices_batching_dims",
    "start_index_map",
    "index_vector_dim",
];
const SCATTER: &[&str] = &[
    "update_window_dims",
    "inserted_window_dims",
    "input_batching_dims",
    "scatter_indices_batching_dims",
    "scatter_dims_to_operand_dims",
    "index_vector_dim",
];
const CONV: &[&str] = &[
    "input_batch_dimension",
    "input_feature_dimension",
    "input_spatial_dimensions",
    "kernel_input_feature_dimension",
    "kernel_output_feature_dimension",
    "kernel_spatial_dimensions",
    "output_batch_dimension",
    "output_feature_dimension",
    "output_spatial_dimensions",
];
const ALIAS: &[&str] = &[
    "output_tuple_indices",
    "operand_index",
    "operand_tuple_indices",
];

/// The fields of such a structure, in the order in which StableHLO has them; nothing when `kind` is
/// none.
pub(super) fn integer_fields(kind: &str) -> Option<&'static [&'static str]> {
    Some(match kind {
        "channel_handle" => &["handle", "type"],
        "conv" => CONV,
        "dot" => DOT,
        "gather" => GATHER,
        "output_operand_alias" => ALIAS,
        "scatter" => SCATTER,
        "sub_axis_info" => &["pre_size", "size"],
        _ => return None,
    })
}

/// Whether a field of such a structure is one integer and not a list.
pub(super) fn is_single(field: &str) -> bool {
    matches!(
        field,
        "handle" | "type" | "pre_size" | "size" | "index_vector_dim" | "operand_index"
    ) || field.ends_with("_dimension")
}
