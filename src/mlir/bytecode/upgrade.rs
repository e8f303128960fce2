//! Attributes of VHLO's ops as StableHLO has them.
//!
//! VHLO spells lists as dense tensors, symbols as strings and structured attributes as their parts,
//! and writes every default; older revisions of an op lack what had no meaning yet. Source:
//! StableHLO's VhloLegalizeToStablehlo.cpp and VhloToVersionPatterns.td, for what becomes what.

use crate::mlir::attrs::Attr;
use crate::mlir::attrs::AttrMap;
use crate::mlir::attrs::Dense;
use crate::mlir::bytecode::stablehlo::Fields;
use crate::mlir::dialect;
use crate::mlir::structure::integer_fields;
use crate::mlir::structure::is_single;
use crate::mlir::types::Name;
use crate::mlir::types::Type;

/// What is wrong with an attribute, to be said with the op and the place.
pub(super) type Wrong = String;

/// The longest list of sizes or dimensions that is read.
const LONGEST: u64 = 64;

/// How VHLO spells an attribute of StableHLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    /// As StableHLO does.
    Same,
    /// A list of integers as a dense tensor.
    Ints,
    /// A list of booleans as a dense tensor.
    Bools,
    /// A symbol as a string.
    Symbol,
    /// Symbols as strings.
    Symbols,
    /// A unit attribute as a boolean.
    Unit,
}

/// How VHLO spells an attribute of an op, both by their names in StableHLO.
pub(super) fn spelling(op: &str, attr: &str) -> Spelling {
    let op = op.strip_prefix("stablehlo.").unwrap_or(op);
    match (op, attr) {
        ("fft", "fft_length")
        | ("broadcast", "broadcast_sizes")
        | ("dynamic_slice" | "gather", "slice_sizes")
        | ("reverse" | "map" | "reduce", "dimensions")
        | ("transpose", "permutation")
        | ("pad", "edge_padding_low" | "edge_padding_high" | "interior_padding")
        | ("slice", "start_indices" | "limit_indices" | "strides")
        | ("broadcast_in_dim" | "dynamic_broadcast_in_dim", "broadcast_dimensions")
        | (
            "dynamic_broadcast_in_dim",
            "known_expanding_dimensions" | "known_nonexpanding_dimensions",
        )
        | ("select_and_scatter" | "reduce_window", "window_dimensions" | "window_strides")
        | ("reduce_window", "base_dilations" | "window_dilations")
        | ("convolution" | "dynamic_conv", "lhs_dilation" | "rhs_dilation" | "window_strides") => {
            Spelling::Ints
        }
        ("convolution" | "dynamic_conv", "window_reversal") => Spelling::Bools,
        ("func.call", "callee") | ("composite", "decomposition") => Spelling::Symbol,
        ("custom_call", "called_computations") => Spelling::Symbols,
        (
            "all_gather" | "all_reduce" | "reduce_scatter" | "collective_reduce",
            "use_global_device_ids",
        )
        | ("collective_broadcast" | "collective_reduce", "has_dynamic_root") => Spelling::Unit,
        _ => Spelling::Same,
    }
}

/// The structured attribute that VHLO spells as its parts: its name, its kind, and the names of the
/// parts, which are those of the structure's fields.
pub(super) fn exploded(op: &str) -> Option<(&'static str, &'static str)> {
    Some(match op {
        "stablehlo.convolution" | "stablehlo.dynamic_conv" => ("dimension_numbers", "conv"),
        "stablehlo.gather" | "stablehlo.dynamic_gather" => ("dimension_numbers", "gather"),
        "stablehlo.scatter" => ("scatter_dimension_numbers", "scatter"),
        "stablehlo.dot_general" => ("dot_dimension_numbers", "dot"),
        _ => return None,
    })
}

/// Whether an op has a channel, and whether VHLO writes the channel's type with it.
pub(super) fn channel(op: &str) -> Option<bool> {
    match op {
        "stablehlo.send" | "stablehlo.recv" => Some(true),
        "stablehlo.all_gather"
        | "stablehlo.all_reduce"
        | "stablehlo.all_to_all"
        | "stablehlo.collective_permute"
        | "stablehlo.collective_broadcast"
        | "stablehlo.collective_reduce"
        | "stablehlo.reduce_scatter" => Some(false),
        _ => None,
    }
}

/// The parts of a dot's algorithm that are types, then those that are integers.
pub(super) const ALGORITHM_TYPES: [&str; 3] = [
    "lhs_precision_type",
    "rhs_precision_type",
    "accumulation_type",
];
/// See [`ALGORITHM_TYPES`].
pub(super) const ALGORITHM_COUNTS: [&str; 3] = [
    "lhs_component_count",
    "rhs_component_count",
    "num_primitive_operations",
];
/// The part of a dot's algorithm that is a boolean.
pub(super) const ALGORITHM_FLAG: &str = "allow_imprecise_accumulation";

/// Whether VHLO has that attribute where StableHLO has a dot's algorithm.
pub(super) fn is_part_of_algorithm(name: &str) -> bool {
    ALGORITHM_FLAG == name || ALGORITHM_TYPES.contains(&name) || ALGORITHM_COUNTS.contains(&name)
}

/// Gives the attributes of an op of VHLO their names and forms in StableHLO; `op` is the name that
/// StableHLO has for it.
pub(super) fn upgrade(op: &str, attrs: AttrMap) -> Result<AttrMap, Wrong> {
    let mut attrs = attrs;
    if let Some((name, kind)) = exploded(op) {
        let structure = implode(kind, &mut attrs)?;
        attrs.insert(name.into(), structure);
    }
    if let Some(typed) = channel(op) {
        let handle = take_int(&mut attrs, "channel_id")?;
        let kind = match typed {
            true => take_int(&mut attrs, "channel_type")?,
            false => 0,
        };
        let fields = Fields::default().int("handle", handle).int("type", kind);
        attrs.insert("channel_handle".into(), fields.structure("channel_handle"));
    }
    match op {
        "stablehlo.dot_general" => {
            if let Some(algorithm) = algorithm(&mut attrs)? {
                attrs.insert("algorithm".into(), algorithm);
            }
        }
        // The padding of a dynamic convolution became an operand, which older revisions had too.
        "stablehlo.dynamic_conv" => _ = attrs.remove("padding"),
        _ => {}
    }
    let respelled: Result<Vec<(Name, Option<Attr>)>, Wrong> = attrs
        .iter()
        .filter(|(name, _)| spelling(op, name) != Spelling::Same)
        .map(|(name, attr)| {
            let attr = respell(attr, spelling(op, name)).map_err(|what| {
                format!(
                    "attribute `{name}` is {} where {what} should be",
                    attr.what()
                )
            })?;
            Ok((name.clone(), attr))
        })
        .collect();
    for (name, attr) in respelled? {
        match attr {
            Some(attr) => _ = attrs.insert(name, attr),
            None => _ = attrs.remove(&name),
        }
    }
    dialect::canonicalize(op, &mut attrs);
    Ok(attrs)
}

/// The attribute in StableHLO's form, nothing when that is to be absent; or what it should be.
fn respell(attr: &Attr, spelling: Spelling) -> Result<Option<Attr>, &'static str> {
    Ok(Some(match spelling {
        Spelling::Same => attr.clone(),
        Spelling::Ints => Attr::i64_array(&list(attr).ok_or("a list of 64-bit integers")?),
        Spelling::Bools => {
            let bools = list_of(attr, &Type::I1).ok_or("a list of booleans")?;
            Attr::bool_array(&bools.iter().map(|bit| *bit != 0).collect::<Vec<bool>>())
        }
        Spelling::Symbol => symbol(attr).ok_or("the name of a function")?,
        Spelling::Symbols => {
            let names = attr.as_array();
            let symbols = names.and_then(|names| names.iter().map(symbol).collect());
            Attr::array(symbols.ok_or("names of functions")?)
        }
        Spelling::Unit => match attr {
            Attr::Bool(true) => Attr::Unit,
            Attr::Bool(false) => return Ok(None),
            _ => return Err("a boolean"),
        },
    }))
}

fn symbol(attr: &Attr) -> Option<Attr> {
    match attr {
        Attr::String(_) => attr.as_str().map(Attr::symbol),
        _ => None,
    }
}

fn list(attr: &Attr) -> Option<Vec<i64>> {
    list_of(attr, &Type::I64)
}

fn list_of(attr: &Attr, element: &Type) -> Option<Vec<i64>> {
    match attr {
        Attr::Dense(dense) if is_list(dense, element) => dense.ints(),
        _ => None,
    }
}

fn is_list(dense: &Dense, element: &Type) -> bool {
    let rank = dense.ty.as_tensor().map(|tensor| tensor.dims.len());
    rank == Some(1) && dense.ty.element() == element && dense.element_count() <= LONGEST
}

fn implode(kind: &str, attrs: &mut AttrMap) -> Result<Attr, Wrong> {
    let mut structure = Fields::default();
    for &field in integer_fields(kind).unwrap_or_default() {
        structure = if is_single(field) {
            structure.int(field, take_int(attrs, field)?)
        } else {
            structure.ints(field, &take_ints(attrs, field)?)
        };
    }
    Ok(structure.structure(kind))
}

fn take_int(attrs: &mut AttrMap, name: &str) -> Result<i64, Wrong> {
    match attrs.remove(name) {
        Some(attr) => attr.as_int().ok_or_else(|| {
            format!(
                "attribute `{name}` is {} where an integer should be",
                attr.what()
            )
        }),
        // Older revisions of the op do not have it.
        None => Ok(0),
    }
}

fn take_ints(attrs: &mut AttrMap, name: &str) -> Result<Vec<i64>, Wrong> {
    match attrs.remove(name) {
        Some(attr) => list(&attr).ok_or_else(|| {
            format!(
                "attribute `{name}` is {} where a list should be",
                attr.what()
            )
        }),
        None => Ok(Vec::new()),
    }
}

/// The algorithm of a dot; nothing when all its parts are the type `none`.
fn algorithm(attrs: &mut AttrMap) -> Result<Option<Attr>, Wrong> {
    let mut fields = Fields::default();
    let (mut parts, mut absent) = (0, 0);
    let names = ALGORITHM_TYPES.iter().chain(&ALGORITHM_COUNTS);
    for &name in names.chain([&ALGORITHM_FLAG]) {
        let attr = match attrs.remove(name) {
            None | Some(Attr::Type(Type::None)) => {
                absent += 1;
                continue;
            }
            Some(attr) => attr,
        };
        parts += 1;
        let fits = match attr {
            Attr::Type(_) => ALGORITHM_TYPES.contains(&name),
            Attr::Integer { .. } => ALGORITHM_COUNTS.contains(&name),
            Attr::Bool(_) => name == ALGORITHM_FLAG,
            _ => false,
        };
        if !fits {
            return Err(format!("attribute `{name}` is {}", attr.what()));
        }
        fields = fields.with(name, attr);
    }
    match (parts, absent) {
        (0, _) => Ok(None),
        (_, 0) => Ok(Some(fields.structure("dot_algorithm"))),
        _ => Err("parts of the algorithm are missing".to_owned()),
    }
}
