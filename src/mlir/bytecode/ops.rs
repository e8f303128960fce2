//! Properties of ops that have no promise of stability: which attributes they are, in what order.
//!
//! Properties are written in the order of their names, an optional one with a flag. Ops whose
//! dialect got another attribute since stand here once for each set. Source: the dialects' own
//! declarations (StablehloOps.td, ChloOps.td, FuncOps.td, ArithOps.td, SdyOps.td).

use crate::base::Result;
use crate::mlir::attrs::Attr;
use crate::mlir::attrs::AttrMap;
use crate::mlir::attrs::DenseArray;
use crate::mlir::bytecode::container::SEGMENT_SIZES;
use crate::mlir::bytecode::cursor::Cursor;
use crate::mlir::types::Type;

/// Op, and its attributes; `?` marks one that may be absent.
const OPS: &[(&str, &str)] = &[
    ("arith.addf", "fastmath? roundingmode?"),
    ("arith.addi", "overflowFlags?"),
    ("arith.cmpf", "fastmath? predicate"),
    ("arith.cmpi", "predicate"),
    ("arith.constant", "value"),
    ("arith.convertf", "fastmath? roundingmode?"),
    ("arith.divf", "fastmath? roundingmode?"),
    ("arith.divsi", "isExact?"),
    ("arith.divui", "isExact?"),
    ("arith.extf", "fastmath?"),
    ("arith.extui", "nonNeg?"),
    ("arith.flush_denormals", "fastmath?"),
    ("arith.index_castui", "nonNeg?"),
    ("arith.maximumf", "fastmath?"),
    ("arith.maxnumf", "fastmath?"),
    ("arith.minimumf", "fastmath?"),
    ("arith.minnumf", "fastmath?"),
    ("arith.mulf", "fastmath? roundingmode?"),
    ("arith.muli", "overflowFlags?"),
    ("arith.negf", "fastmath?"),
    ("arith.remf", "fastmath?"),
    ("arith.scaling_extf", "fastmath?"),
    ("arith.scaling_truncf", "fastmath? roundingmode?"),
    ("arith.shli", "overflowFlags?"),
    ("arith.shrsi", "isExact?"),
    ("arith.shrui", "isExact?"),
    ("arith.subf", "fastmath? roundingmode?"),
    ("arith.subi", "overflowFlags?"),
    ("arith.truncf", "fastmath? roundingmode?"),
    ("arith.trunci", "overflowFlags?"),
    ("arith.uitofp", "nonNeg?"),
    ("builtin.module", "sym_name? sym_visibility?"),
    ("chlo.broadcast_add", "broadcast_dimensions?"),
    ("chlo.broadcast_and", "broadcast_dimensions?"),
    ("chlo.broadcast_atan2", "broadcast_dimensions?"),
    (
        "chlo.broadcast_compare",
        "broadcast_dimensions? compare_type? comparison_direction",
    ),
    ("chlo.broadcast_complex", "broadcast_dimensions?"),
    ("chlo.broadcast_divide", "broadcast_dimensions?"),
    ("chlo.broadcast_maximum", "broadcast_dimensions?"),
    ("chlo.broadcast_minimum", "broadcast_dimensions?"),
    ("chlo.broadcast_multiply", "broadcast_dimensions?"),
    ("chlo.broadcast_next_after", "broadcast_dimensions?"),
    ("chlo.broadcast_or", "broadcast_dimensions?"),
    ("chlo.broadcast_polygamma", "broadcast_dimensions?"),
    ("chlo.broadcast_power", "broadcast_dimensions?"),
    ("chlo.broadcast_remainder", "broadcast_dimensions?"),
    ("chlo.broadcast_shift_left", "broadcast_dimensions?"),
    (
        "chlo.broadcast_shift_right_arithmetic",
        "broadcast_dimensions?",
    ),
    (
        "chlo.broadcast_shift_right_logical",
        "broadcast_dimensions?",
    ),
    ("chlo.broadcast_subtract", "broadcast_dimensions?"),
    ("chlo.broadcast_xor", "broadcast_dimensions?"),
    ("chlo.broadcast_zeta", "broadcast_dimensions?"),
    ("chlo.constant", "value"),
    ("chlo.constant_like", "value"),
    (
        "chlo.ragged_dot",
        "precision_config? ragged_dot_dimension_numbers",
    ),
    (
        "chlo.scan",
        "dimension is_associative? is_reverse? scan_dim_size?",
    ),
    ("chlo.top_k", "k"),
    ("chlo.top_k", "is_stable? k"),
    ("func.call", "arg_attrs? callee no_inline? res_attrs?"),
    ("func.call_indirect", "arg_attrs? res_attrs?"),
    ("func.constant", "value"),
    (
        "func.func",
        "arg_attrs? function_type no_inline? res_attrs? sym_name sym_visibility?",
    ),
    ("sdy.all_gather", "gathering_axes out_sharding"),
    ("sdy.all_reduce", "out_sharding reduction_axes"),
    (
        "sdy.all_reduce",
        "out_sharding reduction_axes reduction_op?",
    ),
    ("sdy.all_slice", "out_sharding slicing_axes"),
    ("sdy.all_to_all", "out_sharding params"),
    ("sdy.collective_permute", "out_sharding"),
    ("sdy.constant", "value"),
    ("sdy.data_flow_edge", "sharding?"),
    (
        "sdy.manual_computation",
        "in_shardings manual_axes out_shardings",
    ),
    ("sdy.mesh", "mesh sym_name"),
    ("sdy.named_computation", "in_shardings? name out_shardings?"),
    ("sdy.propagation_barrier", "allowed_direction"),
    ("sdy.reduce_scatter", "out_sharding reduce_scatter_axes"),
    (
        "sdy.reduce_scatter",
        "out_sharding reduce_scatter_axes reduction_op?",
    ),
    ("sdy.replicated_to_unreduced", "axes out_sharding"),
    ("sdy.reshard", "sharding"),
    ("sdy.sharded_to_unreduced", "axes out_sharding"),
    ("sdy.sharding_constraint", "sharding"),
    ("sdy.sharding_group", "group_id"),
    ("shape.broadcast", "error?"),
    ("shape.const_shape", "shape"),
    ("shape.const_size", "value"),
    ("shape.const_witness", "passing"),
    ("shape.cstr_require", "msg"),
    (
        "stablehlo.all_gather",
        "all_gather_dim channel_handle? replica_groups use_global_device_ids?",
    ),
    (
        "stablehlo.all_reduce",
        "channel_handle? replica_groups use_global_device_ids?",
    ),
    (
        "stablehlo.all_to_all",
        "channel_handle? concat_dimension replica_groups split_count split_dimension",
    ),
    ("stablehlo.batch_norm_grad", "epsilon feature_index"),
    ("stablehlo.batch_norm_inference", "epsilon feature_index"),
    ("stablehlo.batch_norm_training", "epsilon feature_index"),
    ("stablehlo.broadcast", "broadcast_sizes"),
    ("stablehlo.broadcast_in_dim", "broadcast_dimensions"),
    ("stablehlo.cbrt", "result_accuracy?"),
    ("stablehlo.cholesky", "lower?"),
    (
        "stablehlo.collective_broadcast",
        "channel_handle? replica_groups",
    ),
    (
        "stablehlo.collective_broadcast",
        "channel_handle? has_dynamic_root? replica_groups",
    ),
    (
        "stablehlo.collective_permute",
        "channel_handle? source_target_pairs",
    ),
    (
        "stablehlo.collective_reduce",
        "channel_handle? has_dynamic_root? replica_groups use_global_device_ids?",
    ),
    ("stablehlo.compare", "compare_type? comparison_direction"),
    (
        "stablehlo.composite",
        "composite_attributes? decomposition name version?",
    ),
    ("stablehlo.concatenate", "dimension"),
    ("stablehlo.constant", "value"),
    (
        "stablehlo.convolution",
        "batch_group_count dimension_numbers feature_group_count lhs_dilation? padding? precision_config? rhs_dilation? window_reversal? window_strides?",
    ),
    ("stablehlo.cosine", "result_accuracy?"),
    ("stablehlo.cross-replica-sum", "replica_groups"),
    (
        "stablehlo.custom_call",
        "api_version? backend_config? call_target_name called_computations? has_side_effect? operand_layouts? output_operand_aliases? result_layouts?",
    ),
    (
        "stablehlo.custom_call",
        "api_version? backend_config? call_target_name called_computations? has_side_effect? operand_layouts? output_operand_aliases? result_layouts? result_tilings?",
    ),
    ("stablehlo.dot", "precision_config?"),
    (
        "stablehlo.dot_general",
        "algorithm? dot_dimension_numbers precision_config?",
    ),
    (
        "stablehlo.dynamic_broadcast_in_dim",
        "broadcast_dimensions known_expanding_dimensions? known_nonexpanding_dimensions?",
    ),
    (
        "stablehlo.dynamic_conv",
        "batch_group_count dimension_numbers feature_group_count lhs_dilation? precision_config? rhs_dilation? window_reversal? window_strides?",
    ),
    (
        "stablehlo.dynamic_gather",
        "dimension_numbers indices_are_sorted?",
    ),
    ("stablehlo.dynamic_iota", "iota_dimension"),
    ("stablehlo.dynamic_slice", "slice_sizes"),
    ("stablehlo.einsum", "einsum_config"),
    ("stablehlo.exponential", "result_accuracy?"),
    ("stablehlo.exponential_minus_one", "result_accuracy?"),
    ("stablehlo.fft", "fft_length fft_type"),
    (
        "stablehlo.gather",
        "dimension_numbers indices_are_sorted? slice_sizes",
    ),
    ("stablehlo.get_dimension_size", "dimension"),
    ("stablehlo.get_tuple_element", "index"),
    ("stablehlo.infeed", "infeed_config? layout?"),
    ("stablehlo.iota", "iota_dimension"),
    ("stablehlo.log", "result_accuracy?"),
    ("stablehlo.log_plus_one", "result_accuracy?"),
    ("stablehlo.logistic", "result_accuracy?"),
    ("stablehlo.map", "dimensions"),
    ("stablehlo.outfeed", "outfeed_config?"),
    (
        "stablehlo.pad",
        "edge_padding_high edge_padding_low interior_padding",
    ),
    (
        "stablehlo.recv",
        "channel_handle is_host_transfer? source_target_pairs?",
    ),
    ("stablehlo.reduce", "dimensions"),
    ("stablehlo.reduce_precision", "exponent_bits mantissa_bits"),
    (
        "stablehlo.reduce_scatter",
        "channel_handle? replica_groups scatter_dimension use_global_device_ids?",
    ),
    (
        "stablehlo.reduce_window",
        "base_dilations? padding? window_dilations? window_dimensions window_strides?",
    ),
    ("stablehlo.reverse", "dimensions"),
    ("stablehlo.rng", "rng_distribution"),
    ("stablehlo.rng_bit_generator", "rng_algorithm"),
    ("stablehlo.rsqrt", "result_accuracy?"),
    (
        "stablehlo.scatter",
        "indices_are_sorted? scatter_dimension_numbers unique_indices?",
    ),
    (
        "stablehlo.select_and_scatter",
        "padding? window_dimensions? window_strides?",
    ),
    (
        "stablehlo.send",
        "channel_handle is_host_transfer? source_target_pairs?",
    ),
    ("stablehlo.set_dimension_size", "dimension"),
    ("stablehlo.sine", "result_accuracy?"),
    ("stablehlo.slice", "limit_indices start_indices strides"),
    ("stablehlo.sort", "dimension? is_stable?"),
    ("stablehlo.sqrt", "result_accuracy?"),
    ("stablehlo.tan", "result_accuracy?"),
    ("stablehlo.tanh", "result_accuracy?"),
    ("stablehlo.torch_index_select", "batch_dims dim"),
    ("stablehlo.transpose", "permutation"),
    (
        "stablehlo.triangular_solve",
        "left_side lower transpose_a unit_diagonal",
    ),
    ("stablehlo.unary_einsum", "einsum_config"),
];

/// The properties of an op.
pub(super) struct Properties {
    /// Each attribute and its index, when it is there.
    pub attrs: Vec<(&'static str, Option<u64>)>,
    /// The sizes of groups of operands and results.
    pub segments: Vec<(&'static str, Attr)>,
}

/// The properties of an op; nothing when the op is not known. `version` is the bytecode's.
///
/// # Errors
/// When the bytes do not fit any set of attributes that the op is known to have.
pub(super) fn properties(op: &str, version: u64, cursor: Cursor<'_>) -> Result<Option<Properties>> {
    let mut first_error = None;
    for (_, attrs) in OPS.iter().filter(|(name, _)| *name == op) {
        match read_set(op, attrs, version, cursor) {
            Ok(set) => return Ok(Some(set)),
            Err(error) => _ = first_error.get_or_insert(error),
        }
    }
    match first_error {
        Some(error) => Err(error),
        None => Ok(None),
    }
}

fn read_set(
    op: &str,
    names: &'static str,
    version: u64,
    mut cursor: Cursor<'_>,
) -> Result<Properties> {
    let groups = SEGMENTED.iter().find(|(name, _)| *name == op);
    let groups = groups.map_or(&[][..], |(_, groups)| groups);
    let mut attrs = Vec::new();
    if version < SEGMENT_SIZES {
        for group in groups {
            attrs.push((*group, Some(cursor.varint("the sizes of groups")?)));
        }
    }
    for attr in names.split_ascii_whitespace() {
        attrs.push(match attr.strip_suffix('?') {
            Some(name) => {
                let (index, there) = cursor.flagged("a property")?;
                (name, there.then_some(index))
            }
            None => (attr, Some(cursor.varint("a property")?)),
        });
    }
    let mut segments = Vec::new();
    if version >= SEGMENT_SIZES {
        for group in groups {
            segments.push((*group, segment_sizes(&mut cursor)?));
        }
    }
    cursor.finish("the properties")?;
    Ok(Properties { attrs, segments })
}

/// The attributes of an op that are properties, `?` at the optional ones: the first of the sets that
/// has all of `attrs` that any of them has. Nothing when the op is not known, or has groups.
pub(super) fn set_for(op: &str, attrs: &AttrMap) -> Option<&'static str> {
    let has = |set: &str, name: &str| {
        let mut names = set.split_ascii_whitespace();
        names.any(|known| known.strip_suffix('?').unwrap_or(known) == name)
    };
    let grouped = SEGMENTED.iter().any(|(name, _)| *name == op);
    let sets = || {
        OPS.iter()
            .filter(|(name, _)| *name == op)
            .map(|(_, set)| *set)
    };
    let known = |name: &str| sets().any(|set| has(set, name));
    let fits = |set: &&str| {
        let mut names = attrs.iter().map(|(name, _)| name);
        names.all(|name| !known(name) || has(set, name))
    };
    sets().find(fits).filter(|_| !grouped)
}

/// The numbers of operands, and of results, of each group of an op that has several.
const SEGMENTED: &[(&str, &[&str])] =
    &[("chlo.scan", &["operandSegmentSizes", "resultSegmentSizes"])];
/// How many groups such an op has.
const GROUPS: usize = 2;

/// Sizes of groups, as properties have them: all of them, or those that are not zero.
fn segment_sizes(cursor: &mut Cursor<'_>) -> Result<Attr> {
    let at = *cursor;
    let (count, sparse) = cursor.flagged("the number of groups")?;
    let mut sizes = [0_i32; GROUPS];
    let wrong = || at.error("the sizes of groups of operands or results are out of range");
    if sparse && count > 0 {
        let bits = cursor.varint("the width of an index")?;
        for _ in 0..count {
            let pair = cursor.varint("an index and a size")?;
            let index = (bits <= 8).then(|| pair & ((1 << bits) - 1));
            let slot = index.and_then(|index| sizes.get_mut(index as usize));
            *slot.ok_or_else(wrong)? = i32::try_from(pair >> bits).map_err(|_| wrong())?;
        }
    } else {
        let count = usize::try_from(count).map_err(|_| wrong())?;
        for slot in sizes.get_mut(..count).ok_or_else(wrong)? {
            let size = cursor.varint("the size of a group")?;
            *slot = i32::try_from(size).map_err(|_| wrong())?;
        }
    }
    Ok(Attr::DenseArray(DenseArray {
        element: Type::I32,
        data: sizes.iter().flat_map(|size| size.to_le_bytes()).collect(),
    }))
}
