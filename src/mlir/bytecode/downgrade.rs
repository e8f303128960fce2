//! Attributes of StableHLO's ops as an op of VHLO has them: the reverse of [`super::upgrade`].
//!
//! VHLO has every attribute, so defaults are filled in; what an older revision of an op lacks must
//! have its default. Source: StableHLO's StablehloLegalizeToVhlo.cpp and VhloToVersion.cpp.

use crate::mlir::attrs::Attr;
use crate::mlir::attrs::AttrMap;
use crate::mlir::attrs::Dense;
use crate::mlir::attrs::StructAttr;
use crate::mlir::bytecode::stablehlo;
use crate::mlir::bytecode::upgrade;
use crate::mlir::bytecode::upgrade::Spelling;
use crate::mlir::bytecode::upgrade::Wrong;
use crate::mlir::bytecode::vhlo_ops;
use crate::mlir::bytecode::vhlo_ops::VhloOp;
use crate::mlir::structure::integer_fields;
use crate::mlir::structure::is_single;
use crate::mlir::types::Type;

/// The attributes of an op for its revision in VHLO; `op` is its name in StableHLO.
pub(super) fn downgrade(op: &str, row: &VhloOp, attrs: &AttrMap) -> Result<AttrMap, Wrong> {
    let mut found = AttrMap::new();
    for (name, attr) in attrs.iter() {
        if explode(op, name, attr, &mut found)? {
            continue;
        }
        if is_part(op, name) {
            return Err(format!(
                "attribute `{name}` is, in VHLO, a part of another one"
            ));
        }
        let spelled = respell(attr, upgrade::spelling(op, name)).map_err(|what| {
            format!(
                "attribute `{name}` is {} where {what} should be",
                attr.what()
            )
        })?;
        found.insert(name.clone(), spelled);
    }
    for name in row.attrs.split_ascii_whitespace() {
        if found.get(name).is_none() {
            let default = default_of(op, name, attrs);
            let default = default.ok_or_else(|| format!("attribute `{name}` is missing"))?;
            found.insert(name.into(), default);
        }
    }
    // What later revisions of the op have and this one lacks.
    let newest = vhlo_ops::find_for(row.name, vhlo_ops::NEWEST);
    for name in newest.map_or("", |op| op.attrs).split_ascii_whitespace() {
        if row
            .attrs
            .split_ascii_whitespace()
            .any(|known| known == name)
        {
            continue;
        }
        if let Some(attr) = found.remove(name)
            && default_of(op, name, attrs).as_ref() != Some(&attr)
        {
            let (major, minor) = newest.map_or(vhlo_ops::NEWEST, |op| op.first);
            return Err(format!(
                "attribute `{name}` needs StableHLO {major}.{minor}"
            ));
        }
    }
    Ok(found)
}

/// Whether VHLO has an attribute of that name where StableHLO has a structured one.
fn is_part(op: &str, name: &str) -> bool {
    let of_structure = || {
        let fields = upgrade::exploded(op).and_then(|(_, kind)| integer_fields(kind));
        fields.is_some_and(|fields| fields.contains(&name))
    };
    let of_channel = || {
        let typed = upgrade::channel(op);
        typed.is_some() && name == "channel_id" || typed == Some(true) && name == "channel_type"
    };
    let of_algorithm = || op == "stablehlo.dot_general" && upgrade::is_part_of_algorithm(name);
    of_structure() || of_channel() || of_algorithm()
}

/// Puts the parts of a structured attribute among the others; says whether it is one.
fn explode(op: &str, name: &str, attr: &Attr, found: &mut AttrMap) -> Result<bool, Wrong> {
    let wrong = || format!("attribute `{name}` is {}", attr.what());
    if let Some((structure, kind)) = upgrade::exploded(op)
        && structure == name
    {
        let fields = attr.as_struct("stablehlo", kind).ok_or_else(wrong)?;
        for field in integer_fields(kind).unwrap_or_default() {
            let part = match is_single(field) {
                true => Attr::i64(fields.int(field).ok_or_else(wrong)?),
                false => tensor(&fields.ints(field).ok_or_else(wrong)?),
            };
            found.insert((*field).into(), part);
        }
        return Ok(true);
    }
    match (name, upgrade::channel(op)) {
        ("channel_handle", Some(typed)) => {
            let fields = attr.as_struct("stablehlo", "channel_handle");
            let fields = fields.ok_or_else(wrong)?;
            let int = |field| fields.int(field).map(Attr::i64).ok_or_else(wrong);
            found.insert("channel_id".into(), int("handle")?);
            match (typed, fields.int("type")) {
                (true, _) => found.insert("channel_type".into(), int("type")?),
                // Between devices there is one type, or none; VHLO has no place for it.
                (false, Some(0 | 1)) => None,
                (false, _) => return Err(wrong()),
            };
            Ok(true)
        }
        ("algorithm", _) if op == "stablehlo.dot_general" => {
            let fields = attr.as_struct("stablehlo", "dot_algorithm");
            algorithm(fields.ok_or_else(wrong)?, found).ok_or_else(wrong)?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

fn algorithm(fields: &StructAttr, found: &mut AttrMap) -> Option<()> {
    for name in upgrade::ALGORITHM_TYPES {
        found.insert(name.into(), fields.field(name)?.clone());
    }
    for name in upgrade::ALGORITHM_COUNTS {
        found.insert(name.into(), Attr::i64(fields.int(name)?));
    }
    let flag = fields.field(upgrade::ALGORITHM_FLAG) == Some(&Attr::Bool(true));
    found.insert(upgrade::ALGORITHM_FLAG.into(), Attr::Bool(flag));
    Some(())
}

/// The attribute in VHLO's form; or what it should be.
fn respell(attr: &Attr, spelling: Spelling) -> Result<Attr, &'static str> {
    let name = |attr: &Attr| match attr {
        Attr::Symbol(symbol) if symbol.nested.is_empty() => Some(Attr::string(&symbol.root)),
        _ => None,
    };
    Ok(match spelling {
        // VHLO has strings only, and would make one of it.
        Spelling::Same if matches!(attr, Attr::Symbol(_)) => return Err("something else"),
        Spelling::Same => attr.clone(),
        Spelling::Ints => tensor(
            &attr
                .ints_of(&Type::I64)
                .ok_or("a list of 64-bit integers")?,
        ),
        Spelling::Bools => bools(&attr.ints_of(&Type::I1).ok_or("a list of booleans")?),
        Spelling::Symbol => name(attr).ok_or("the name of a function")?,
        Spelling::Symbols => {
            let symbols = attr.as_array();
            let names = symbols.and_then(|symbols| symbols.iter().map(name).collect());
            Attr::array(names.ok_or("names of functions")?)
        }
        Spelling::Unit => match attr {
            Attr::Unit => Attr::Bool(true),
            Attr::Bool(_) => attr.clone(),
            _ => return Err("a unit"),
        },
    })
}

/// Integers as a dense tensor of one dimension.
fn tensor(values: &[i64]) -> Attr {
    let ty = Type::static_tensor(&[values.len() as u64], Type::I64);
    let bytes = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    Attr::Dense(Dense::new(ty, bytes))
}

/// Pairs of zeros as a dense tensor.
fn zero_pairs(count: usize) -> Attr {
    let ty = Type::static_tensor(&[count as u64, 2], Type::I64);
    Attr::Dense(Dense::new(ty, vec![0; count * 16]))
}

fn bools(values: &[i64]) -> Attr {
    let ty = Type::static_tensor(&[values.len() as u64], Type::I1);
    let bytes = values.iter().map(|value| u8::from(*value != 0)).collect();
    Attr::Dense(Dense::new(ty, bytes))
}

/// What VHLO has where StableHLO has nothing; `attrs` are the op's in StableHLO.
fn default_of(op: &str, name: &str, attrs: &AttrMap) -> Option<Attr> {
    let empty = || Attr::array(Vec::new());
    Some(match (op, name) {
        ("func.func", "sym_visibility")
        | ("stablehlo.infeed", "infeed_config")
        | ("stablehlo.outfeed", "outfeed_config") => Attr::string(""),
        ("func.func", "arg_attrs" | "res_attrs")
        | ("stablehlo.infeed", "layout")
        | (
            "stablehlo.custom_call",
            "called_computations"
            | "operand_layouts"
            | "result_layouts"
            | "output_operand_aliases"
            | "result_tilings",
        ) => empty(),
        ("stablehlo.custom_call", "backend_config") => match attrs.get("api_version") {
            Some(version) if version.as_int() == Some(4) => Attr::dict(AttrMap::new()),
            _ => Attr::string(""),
        },
        ("stablehlo.custom_call", "api_version") => Attr::i32(1),
        ("stablehlo.composite", "composite_attributes") => Attr::dict(AttrMap::new()),
        ("stablehlo.composite", "version") => Attr::i32(0),
        ("stablehlo.compare", "compare_type") => Attr::stablehlo_enum("comparison_type", "NOTYPE"),
        ("stablehlo.sort", "dimension") => Attr::i64(-1),
        ("stablehlo.send" | "stablehlo.recv", "channel_id" | "channel_type") => return None,
        (_, "channel_id") => Attr::i64(0),
        (
            _,
            "use_global_device_ids"
            | "has_dynamic_root"
            | "indices_are_sorted"
            | "unique_indices"
            | "is_stable"
            | "is_host_transfer"
            | "has_side_effect",
        )
        | ("stablehlo.cholesky", "lower") => Attr::Bool(false),
        (
            _,
            "known_expanding_dimensions"
            | "known_nonexpanding_dimensions"
            | "source_target_pairs"
            | "operand_batching_dims"
            | "start_indices_batching_dims"
            | "input_batching_dims"
            | "scatter_indices_batching_dims",
        ) if op != "stablehlo.collective_permute" => tensor(&[]),
        (_, "result_accuracy") => stablehlo::accuracy(0, 0, 0, "DEFAULT"),
        ("stablehlo.dot_general", part) if upgrade::is_part_of_algorithm(part) => {
            Attr::Type(Type::None)
        }
        (_, "precision_config") => {
            let default = Attr::stablehlo_enum("precision", "DEFAULT");
            Attr::array(vec![default.clone(), default])
        }
        _ => return window_default(op, name, attrs),
    })
}

/// Defaults that are as long as a window has dimensions.
fn window_default(op: &str, name: &str, attrs: &AttrMap) -> Option<Attr> {
    let rank = match op {
        "stablehlo.convolution" | "stablehlo.dynamic_conv" => {
            let dims = attrs
                .get("dimension_numbers")?
                .as_struct("stablehlo", "conv")?;
            dims.ints("input_spatial_dimensions")?.len()
        }
        "stablehlo.reduce_window" | "stablehlo.select_and_scatter" => {
            attrs.get("window_dimensions")?.ints()?.len()
        }
        _ => return None,
    };
    Some(match name {
        "window_strides" | "lhs_dilation" | "rhs_dilation" | "base_dilations"
        | "window_dilations" => tensor(&vec![1; rank]),
        "padding" => zero_pairs(rank),
        "window_reversal" => bools(&vec![0; rank]),
        _ => return None,
    })
}
