//! Attributes of the `sdy` dialect, Shardy's, in binary form.
//!
//! Source: Shardy's bytecode.td, for codes and fields.

use std::fmt::Write;

use crate::base::Result;
use crate::mlir::attrs::Attr;
use crate::mlir::attrs::DenseArray;
use crate::mlir::bytecode::stablehlo::Fields;
use crate::mlir::bytecode::table::Decoder;
use crate::mlir::text::formats::REDUCTIONS;

/// An attribute.
pub(super) fn attr(decoder: &mut Decoder<'_, '_>) -> Result<Attr> {
    let code = decoder.cursor.varint("the code of an attribute")?;
    let fields = Fields::default();
    Ok(match code {
        0 => fields.list("axes", decoder)?.of("sdy", "manual_axes"),
        1 => {
            let fields = fields.with("name", string(decoder)?);
            let size = decoder.cursor.signed("the size of an axis")?;
            fields.int("size", size).of("sdy", "mesh_axis")
        }
        2 => {
            let fields = fields.list("axes", decoder)?;
            let devices = decoder.cursor.signed_list("devices of a mesh")?;
            fields.ints("device_ids", &devices).of("sdy", "mesh")
        }
        3 => {
            let fields = fields.int("pre_size", decoder.cursor.signed("a size")?);
            let fields = fields.int("size", decoder.cursor.signed("a size")?);
            fields.of("sdy", "sub_axis_info")
        }
        4 => {
            let fields = fields.with("name", string(decoder)?);
            let part = decoder.optional_attr()?;
            fields.maybe("sub_axis_info", part).of("sdy", "axis_ref")
        }
        5 => dimension(decoder)?,
        6 | 15 | 17 => tensor(decoder, code)?,
        7 | 16 => {
            let fields = fields.list("shardings", decoder)?;
            fields.of("sdy", "sharding_per_value")
        }
        8 => {
            let factors = decoder.cursor.signed_list("factors of a dimension")?;
            let factors = Attr::DenseArray(DenseArray::i64(&factors));
            fields
                .with("factor_indices", factors)
                .of("sdy", "dim_mapping")
        }
        9 => fields
            .list("dim_mappings", decoder)?
            .of("sdy", "tensor_mapping"),
        10 => rule(decoder)?,
        11 => fields.list("axes", decoder)?.of("sdy", "axis_ref_list"),
        12 => {
            // A list of lists is an array of arrays; the inner ones have no use for a name.
            let at = decoder.cursor;
            let lists = decoder.attrs()?;
            let axes = |list: &Attr| {
                let list = list.as_struct("sdy", "axis_ref_list")?;
                let axes = list.field("axes").cloned();
                Some(axes.unwrap_or_else(|| Attr::array(Vec::new())))
            };
            let lists: Option<Vec<Attr>> = lists.iter().map(axes).collect();
            match lists {
                Some(lists) => fields
                    .with("lists", Attr::array(lists))
                    .of("sdy", "list_of_axis_ref_lists"),
                None if decoder.waits() => Attr::Unit,
                None => return Err(at.error("a list of lists of axes has something else in it")),
            }
        }
        13 => {
            let fields = fields.list("axes", decoder)?;
            let fields = fields.int("src_dim", decoder.cursor.signed("a dimension")?);
            let fields = fields.int("tgt_dim", decoder.cursor.signed("a dimension")?);
            fields.of("sdy", "all_to_all_param")
        }
        14 => fields
            .list("value", decoder)?
            .of("sdy", "all_to_all_param_list"),
        _ => return Err(decoder.unknown_code("an attribute", code)),
    })
}

fn string(decoder: &mut Decoder<'_, '_>) -> Result<Attr> {
    Ok(Attr::String(decoder.string()?.into()))
}

/// How a dimension is sharded.
fn dimension(decoder: &mut Decoder<'_, '_>) -> Result<Attr> {
    let mut fields = Fields::default().list("axes", decoder)?;
    if decoder.cursor.byte("whether a dimension is closed")? == 0 {
        fields = fields.with("is_open", Attr::Unit);
    }
    let (priority, there) = decoder.cursor.flagged("the priority of a dimension")?;
    if there {
        let priority = i64::try_from(priority).unwrap_or(i64::MAX);
        // Zero is a priority, and not the same as none.
        fields = fields.always("priority", Attr::i64(priority));
    }
    Ok(fields.of("sdy", "dimension_sharding"))
}

/// How a tensor is sharded.
fn tensor(decoder: &mut Decoder<'_, '_>, code: u64) -> Result<Attr> {
    let mesh = decoder.attr()?;
    let fields = Fields::default().with("mesh", mesh);
    let fields = fields.list("dim_shardings", decoder)?;
    let mut fields = fields.list("replicated_axes", decoder)?;
    if code != 6 {
        fields = fields.list("unreduced_axes", decoder)?;
    }
    if code == 17 {
        let at = decoder.cursor;
        let number = decoder.cursor.signed("a reduction")?;
        let index = usize::try_from(number).ok();
        let case = index.and_then(|index| REDUCTIONS.get(index));
        let case = case.ok_or_else(|| at.error(format!("reduction {number} of a sharding")))?;
        if *case != REDUCTIONS[0] {
            fields = fields.with(
                "reduction_op",
                Attr::enumeration("sdy", "reduction_op", case),
            );
        }
    }
    Ok(fields.of("sdy", "sharding"))
}

/// How an op lets shardings pass between its operands and results, as text.
fn rule(decoder: &mut Decoder<'_, '_>) -> Result<Attr> {
    let sizes = decoder.cursor.signed_list("factor sizes")?;
    let at = decoder.cursor;
    let (operands, results) = (decoder.attrs()?, decoder.attrs()?);
    let mut text = String::from("#sdy.op_sharding_rule<(");
    for (list, open) in [(&operands, ""), (&results, ")->(")] {
        let tensors: Option<Vec<String>> = list.iter().map(tensor_factors).collect();
        if tensors.is_none() && !decoder.waits() {
            return Err(at.error("a rule does not map tensors to factors"));
        }
        text = text + open + &tensors.unwrap_or_default().join(", ");
    }
    text.push(')');
    let sizes = (0..)
        .zip(&sizes)
        .map(|(i, size)| format!("{}={size}", factor(i)));
    let sizes: Vec<String> = sizes.collect();
    if !sizes.is_empty() {
        let _ = write!(text, " {{{}}}", sizes.join(", "));
    }
    for kind in [
        "reduction",
        "need_replication",
        "permutation",
        "blocked_propagation",
    ] {
        let factors = decoder.cursor.signed_list("factors of a rule")?;
        let factors: Vec<String> = factors.into_iter().map(factor).collect();
        if !factors.is_empty() {
            let _ = write!(text, " {kind}={{{}}}", factors.join(", "));
        }
    }
    if decoder.cursor.byte("whether a rule is the user's")? != 0 {
        text.push_str(", custom");
    }
    text.push('>');
    Ok(Attr::Opaque(text.into()))
}

/// The factors of each dimension of a tensor.
fn tensor_factors(mapping: &Attr) -> Option<String> {
    let mapping = mapping.as_struct("sdy", "tensor_mapping")?;
    let dims = mapping
        .field("dim_mappings")
        .map_or(Some(&[][..]), Attr::as_array)?;
    let one = |dim: &Attr| {
        let factors = dim
            .as_struct("sdy", "dim_mapping")?
            .ints("factor_indices")?;
        Some(factors.into_iter().map(factor).collect::<String>())
    };
    let dims: Option<Vec<String>> = dims.iter().map(one).collect();
    Some(format!("[{}]", dims?.join(", ")))
}

/// The letter of a factor: `i` to `z`, and then `z_1`.
fn factor(index: i64) -> String {
    match u8::try_from(index) {
        Ok(index @ 0..=17) => char::from(b'i' + index).to_string(),
        _ => format!("z_{}", index.saturating_sub(17)),
    }
}
