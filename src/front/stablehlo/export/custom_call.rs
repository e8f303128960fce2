//! Custom calls.

use crate::base::Result;
use crate::front::stablehlo::export::Exporter;
use crate::front::stablehlo::export::attributes;
use crate::front::stablehlo::types;
use crate::hlo::CustomCall;
use crate::hlo::CustomCallApiVersion;
use crate::hlo::InstrId;
use crate::mlir::Attr;
use crate::mlir::Type;
use crate::mlir::ValueId;
use crate::mlir::text;
use crate::shape::Shape;

impl Exporter<'_> {
    pub(super) fn custom_call(&mut self, id: InstrId, call: &CustomCall) -> Result<Vec<ValueId>> {
        let module = self.module;
        let instr = &module.instrs[id];
        let operands = self.operands(id)?;
        let extras = call.window.is_some()
            || call.conv_dims.is_some()
            || call.feature_group_count > 1
            || call.batch_group_count > 1
            || !call.precision.operand_precision.is_empty();
        if extras {
            return Err(self.unsupported(id, "a call with a window or dimension numbers"));
        }
        let mut attrs = self.plain(instr);
        attrs.insert("call_target_name".into(), Attr::string(&call.target));
        if call.has_side_effect {
            attrs.insert("has_side_effect".into(), Attr::Bool(true));
        }
        let version = match call.api_version {
            CustomCallApiVersion::Unspecified => 0,
            CustomCallApiVersion::Original => 1,
            CustomCallApiVersion::StatusReturning => 2,
            CustomCallApiVersion::StatusReturningUnified => 3,
            CustomCallApiVersion::TypedFfi => 4,
        };
        if version != 1 {
            attrs.insert("api_version".into(), Attr::i32(version));
        }
        let config = instr.extra.as_ref().map(|e| &*e.backend_config);
        if let Some(config) = config.filter(|c| !c.is_empty()) {
            let attr = match call.api_version {
                CustomCallApiVersion::TypedFfi => {
                    let text = std::str::from_utf8(config).ok();
                    let dict = text.and_then(|text| text::read_attr(text).ok());
                    let dict = dict.filter(|attr| attr.as_dict().is_some());
                    dict.ok_or_else(|| self.unsupported(id, "its configuration"))?
                }
                _ => Attr::String(config.into()),
            };
            attrs.insert("backend_config".into(), attr);
        }
        if !call.called.is_empty() {
            let names = call.called.iter().map(|comp| {
                let name = self.names.get(comp).cloned().unwrap_or_default();
                Attr::symbol(&name)
            });
            let names = Attr::array(names.collect());
            attrs.insert("called_computations".into(), names);
        }
        if let Some(literal) = call.literal.clone().and_then(types::array_of) {
            let dense = types::literal_dense(&literal);
            attrs.insert("mhlo.literal".into(), Attr::Dense(dense));
        }
        if let Some(constraints) = &call.operand_layout_constraints {
            attrs.insert("operand_layouts".into(), layouts(constraints.iter()));
            let results = instr.shape.leaves();
            let results = layouts(results.iter().map(|(_, leaf)| *leaf));
            attrs.insert("result_layouts".into(), results);
        }
        if !call.output_to_operand_aliasing.is_empty() {
            let aliases = call.output_to_operand_aliasing.iter();
            let aliases = aliases.map(|(output, operand, index)| {
                let entries = vec![
                    ("output_tuple_indices", Attr::i64_array(output)),
                    ("operand_index", Attr::i64(*operand)),
                    ("operand_tuple_indices", Attr::i64_array(index)),
                ];
                let fields = entries.into_iter().filter(|(_, attr)| match attr {
                    Attr::DenseArray(array) => !array.is_empty(),
                    other => other.as_int() != Some(0),
                });
                let fields = attributes::fields(fields.collect());
                Attr::structure("stablehlo", "output_operand_alias", fields)
            });
            let aliases = Attr::array(aliases.collect());
            attrs.insert("output_operand_aliases".into(), aliases);
        }
        // A tuple of one is a tuple for the code that is called.
        let results = match &instr.shape {
            Shape::Tuple(elements) if elements.len() == 1 => vec![types::type_of(&instr.shape)],
            shape => self.types(shape),
        };
        let values = self.push_op("stablehlo.custom_call", operands, results, attrs)?;
        match (&instr.shape, &*values) {
            (Shape::Tuple(elements), &[tuple]) if elements.len() == 1 => {
                let ty = types::type_of(&elements[0]);
                let attrs = attributes::map([("index", Attr::i32(0))]);
                let name = "stablehlo.get_tuple_element";
                Ok(vec![self.push_one(name, vec![tuple], ty, attrs)?])
            }
            _ => Ok(values),
        }
    }
}

/// The orders of dimensions of arrays, from minor to major.
fn layouts<'a>(shapes: impl Iterator<Item = &'a Shape>) -> Attr {
    let one = |shape: &Shape| {
        let order: Vec<i64> = match shape.as_array() {
            Some(array) => {
                let layout = array.layout_or_default();
                layout
                    .minor_to_major
                    .iter()
                    .map(|&d| attributes::int(d))
                    .collect()
            }
            None => Vec::new(),
        };
        attributes::dense_ints(&order, &[order.len() as u64], Type::Index)
    };
    Attr::array(shapes.map(one).collect())
}
