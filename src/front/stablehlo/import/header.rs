//! What stands beside the ops: attributes of the module, of arguments and of ops.

use std::collections::BTreeSet;

use crate::base::Result;
use crate::front::hlo_text;
use crate::front::stablehlo::import::Converter;
use crate::front::stablehlo::import::function::argument_attributes;
use crate::front::stablehlo::import::function::structure;
use crate::hlo::AliasKind;
use crate::hlo::AliasTarget;
use crate::hlo::Extra;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::Sharding;
use crate::mlir::Attr;
use crate::mlir::AttrMap;
use crate::mlir::OpRef;
use crate::mlir::StructAttr;
use crate::mlir::print;
use crate::shape::Layout;
use crate::shape::Shape;
use crate::shape::ShapeIndex;
use crate::shape::index;
use crate::wire;

/// The sharding of what has none beside others that have one.
pub fn replicated() -> Sharding {
    Sharding::Array(Box::default())
}

impl<'m> Converter<'m> {
    /// The attributes of an instruction that do not change what it computes.
    pub(super) fn extra(&mut self, id: InstrId) -> &mut Extra {
        self.out.instrs[id].extra.get_or_insert_default()
    }

    /// Says of every instruction from `start` on that it came of this op, and of those that it is about
    /// what its attributes say.
    pub(super) fn attach(&mut self, op: OpRef<'m>, start: usize) -> Result<()> {
        let made = self.out.comps[self.comp].instrs[start..].to_vec();
        if made.is_empty() {
            return Ok(());
        }
        if let Some(metadata) = self.places.metadata(&op.get().loc) {
            for &id in &made {
                let extra = self.extra(id);
                if extra.metadata.is_none() {
                    extra.metadata = Some(metadata.clone());
                }
            }
        }
        if op.attrs.is_empty() {
            return Ok(());
        }
        if let Some(accuracy) = op.opt_struct("result_accuracy", "result_accuracy")? {
            let text = accuracy_text(op, accuracy)?;
            for &id in &made {
                self.extra(id).result_accuracy.clone_from(&text);
            }
        }
        let about = self.attributed(op, made);
        self.decorate(op, &about, &op.get().attrs)
    }

    /// Those of the instructions made of an op that its attributes are about: of an op of CHLO the
    /// results, alone or in a tuple, for the others are steps of a formula, of other shapes and hundreds
    /// of them.
    fn attributed(&self, op: OpRef<'m>, made: Vec<InstrId>) -> Vec<InstrId> {
        let target = op.opt_str("call_target_name").ok().flatten();
        let is_formula = |name: &str| name.starts_with("chlo.") || name.starts_with("mhlo.");
        if !op.kind().starts_with("chlo.") && !target.is_some_and(is_formula) {
            return made;
        }
        let results: BTreeSet<InstrId> =
            op.results.iter().filter_map(|&v| self.values[v]).collect();
        let is_about =
            |&id: &InstrId| results.contains(&id) || self.out.shape(id).as_array().is_none();
        made.into_iter().filter(is_about).collect()
    }

    /// Gives instructions the sharding and frontend attributes that stand in a map.
    pub(super) fn decorate(
        &mut self,
        op: OpRef<'m>,
        ids: &[InstrId],
        attrs: &'m AttrMap,
    ) -> Result<()> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        if let Some(dict) = attrs
            .get("mhlo.frontend_attributes")
            .and_then(Attr::as_dict)
        {
            for (name, value) in dict.iter() {
                if let Some(value) = value.as_str() {
                    pairs.push((name.to_string(), value.to_owned()));
                }
            }
        }
        for name in ["sdy.sharding", "sdy.sharding_rule"] {
            if let Some(attr) = attrs.get(name) {
                pairs.push((format!("xla.{name}"), print::attr(attr)));
            }
        }
        if !pairs.is_empty() {
            for &id in ids {
                self.extra(id)
                    .frontend_attributes
                    .extend(pairs.iter().cloned());
            }
        }
        if let Some(sharding) = self.sharding_of(op, attrs)? {
            for &id in ids {
                self.shard(id, &sharding);
            }
        }
        Ok(())
    }

    /// The sharding of the whole for a tuple and for an array, of its part for an element.
    fn shard(&mut self, id: InstrId, sharding: &Sharding) {
        let instr = &self.out.instrs[id];
        let fitting = match (sharding, &instr.op) {
            (Sharding::Tuple(parts), Op::GetTupleElement { index }) => parts.get(*index).cloned(),
            (Sharding::Tuple(parts), _) => match &instr.shape {
                Shape::Tuple(elements) if elements.len() == parts.len() => Some(sharding.clone()),
                Shape::Array(_) if parts.len() == 1 => parts.first().cloned(),
                _ => None,
            },
            (Sharding::Array(_), _) => match &instr.shape {
                Shape::Tuple(elements) if elements.is_empty() => {
                    Some(Sharding::Tuple(vec![sharding.clone()]))
                }
                Shape::Tuple(_) => None,
                _ => Some(sharding.clone()),
            },
        };
        if fitting.is_some() {
            self.extra(id).sharding = fitting;
        }
    }

    /// The sharding that `sdy.sharding` says, else `mhlo.sharding`.
    pub(super) fn sharding_of(
        &self,
        op: OpRef<'m>,
        attrs: &'m AttrMap,
    ) -> Result<Option<Sharding>> {
        if let Some(attr) = attrs.get("sdy.sharding") {
            return self.shardy_sharding(op, attr).map(Some);
        }
        match attrs.get("mhlo.sharding") {
            Some(attr) => self.parsed_sharding(op, attr).map(Some),
            None => Ok(None),
        }
    }

    /// A sharding as text, or as a serialized `xla.OpSharding`.
    fn parsed_sharding(&self, op: OpRef<'m>, attr: &Attr) -> Result<Sharding> {
        let Attr::String(bytes) = attr else {
            return Err(op.wrong(format!("a sharding that is {}", attr.what())));
        };
        if !bytes.starts_with(b"{") {
            return wire::hlo::decode_sharding(bytes);
        }
        let text = std::str::from_utf8(bytes);
        hlo_text::parse_sharding(text.map_err(|_| op.wrong("a sharding that is no text"))?)
    }

    /// Attributes of the arguments and results of the entry function.
    pub(super) fn entry_attributes(
        &mut self,
        op: OpRef<'m>,
        numbers: &[Option<usize>],
        results: usize,
    ) -> Result<()> {
        for (i, number) in numbers.iter().enumerate() {
            let (Some(attrs), Some(parameter)) = (argument_attributes(op, "arg_attrs", i), *number)
            else {
                continue;
            };
            if let Some(Attr::Bool(true) | Attr::Unit) = attrs.get("jax.buffer_donor") {
                self.out.buffer_donors.push((parameter, ShapeIndex::new()));
            }
            if let Some(output) = attrs.get("tf.aliasing_output").and_then(Attr::as_int) {
                let output = usize::try_from(output).ok().filter(|&o| o < results);
                let output = output.ok_or_else(|| {
                    op.wrong(format!(
                        "argument {i} is aliased to a result that is not there"
                    ))
                })?;
                let at: ShapeIndex = match results {
                    1 => ShapeIndex::new(),
                    _ => ShapeIndex::from_slice(&[output]),
                };
                let target = AliasTarget {
                    parameter,
                    index: ShapeIndex::new(),
                    kind: AliasKind::May,
                };
                self.alias(op, at, target)?;
            }
            let replicated = match attrs.get("mhlo.is_same_data_across_replicas") {
                Some(Attr::Bool(true)) => vec![true],
                _ => match attrs
                    .get("mhlo.parameter_replication")
                    .and_then(Attr::as_array)
                {
                    Some(list) => list.iter().map(|a| *a == Attr::Bool(true)).collect(),
                    None => Vec::new(),
                },
            };
            let id = self.out.comps[self.out.entry].params[parameter];
            if let Op::Parameter {
                leaf_replication, ..
            } = &mut self.out.instrs[id].op
            {
                *leaf_replication = replicated;
            }
        }
        self.module_aliases(op, numbers)?;
        self.entry_layouts(op, numbers, results)
    }

    fn alias(&mut self, op: OpRef<'m>, at: ShapeIndex, target: AliasTarget) -> Result<()> {
        let known = self.out.input_output_alias.get(&at);
        if let Some(before) = known.filter(|before| before.parameter != target.parameter) {
            return Err(op.wrong(format!(
                "result {:?} is aliased to the parameters {} and {}",
                &at[..],
                before.parameter,
                target.parameter
            )));
        }
        self.out.input_output_alias.insert(at, target);
        Ok(())
    }

    /// The aliasing that modules which XLA wrote have beside their functions.
    fn module_aliases(&mut self, op: OpRef<'m>, numbers: &[Option<usize>]) -> Result<()> {
        let root = &self.source.ops[self.source.root].attrs;
        let list = root.get("mhlo.input_output_alias").and_then(Attr::as_array);
        let broken = || op.wrong("`mhlo.input_output_alias` of the module is another thing");
        for entry in list.unwrap_or_default() {
            let index = |of: &AttrMap, name: &str| -> Result<ShapeIndex> {
                let list = of.get(name).and_then(Attr::ints).ok_or_else(broken)?;
                let list = self.sizes(op, name, &list)?;
                Ok(ShapeIndex::from_slice(&list))
            };
            let entry = entry.as_dict().ok_or_else(broken)?;
            let of = entry
                .get("alias")
                .and_then(Attr::as_dict)
                .ok_or_else(broken)?;
            let number = of.get("parameter_number").and_then(Attr::as_int);
            let number = number.and_then(|n| usize::try_from(n).ok());
            let number = number.and_then(|n| numbers.get(n)).ok_or_else(broken)?;
            let kind = match of.get("kind").and_then(Attr::as_str) {
                Some("may_alias") => AliasKind::May,
                Some("must_alias") => AliasKind::Must,
                _ => return Err(broken()),
            };
            let at = index(entry, "output_index")?;
            let index = index(of, "parameter_index")?;
            let Some(parameter) = *number else { continue };
            let target = AliasTarget {
                parameter,
                index,
                kind,
            };
            self.alias(op, at, target)?;
        }
        Ok(())
    }

    /// Layouts that JAX asks for, and those of modules that XLA wrote.
    fn entry_layouts(
        &mut self,
        op: OpRef<'m>,
        numbers: &[Option<usize>],
        results: usize,
    ) -> Result<()> {
        let root = &self.source.ops[self.source.root].attrs;
        let mut program = self.out.program_shape(self.out.entry);
        let mut changed = false;
        let mut parameters: Vec<Option<Vec<i64>>> = Vec::new();
        for i in 0..numbers.len() {
            parameters.push(layout_mode(op, "arg_attrs", i));
        }
        if let Some(list) = root.get("mhlo.xla_entry_computation_parameter_layouts") {
            for (slot, layout) in parameters
                .iter_mut()
                .zip(list.as_array().unwrap_or_default())
            {
                *slot = layout.ints().or(slot.take());
            }
        }
        for (order, number) in parameters.iter().zip(numbers) {
            if let (Some(order), Some(number)) = (order, number) {
                changed |= lay_out(op, &mut program.parameters[*number], order)?;
            }
        }
        let mut outputs: Vec<Option<Vec<i64>>> = Vec::new();
        for i in 0..results {
            outputs.push(layout_mode(op, "res_attrs", i));
        }
        if let Some(list) = root.get("mhlo.xla_entry_computation_result_layout") {
            for (slot, layout) in outputs.iter_mut().zip(list.as_array().unwrap_or_default()) {
                *slot = layout.ints().or(slot.take());
            }
        }
        for (i, order) in outputs.iter().enumerate() {
            let Some(order) = order else { continue };
            changed |= match &mut program.result {
                Shape::Tuple(elements) if results != 1 => match elements.get_mut(i) {
                    Some(element) => lay_out(op, element, order)?,
                    None => false,
                },
                result => lay_out(op, result, order)?,
            };
        }
        if changed {
            self.out.config.entry_layout = Some(program);
        }
        Ok(())
    }

    /// Attributes of the module.
    pub(super) fn header(&mut self) -> Result<()> {
        let source = self.source;
        let op = source.op(source.root);
        let attrs = &op.get().attrs;
        let count = |name: &str| attrs.get(name).and_then(Attr::as_int).filter(|n| *n > 1);
        self.out.config.num_partitions = count("mhlo.num_partitions").unwrap_or(0);
        self.out.config.replica_count = count("mhlo.num_replicas").unwrap_or(0);
        if let Some(dict) = attrs
            .get("mhlo.frontend_attributes")
            .and_then(Attr::as_dict)
        {
            for (name, value) in dict.iter() {
                if let Some(value) = value.as_str() {
                    let pairs = &mut self.out.frontend_attributes;
                    pairs.insert(name.to_string(), value.to_owned());
                }
            }
        }
        let meshes = source
            .block_ops(source.body())
            .filter(|op| op.kind() == "sdy.mesh");
        let meshes: Vec<String> = meshes
            .filter_map(|op| {
                let name = op.attr("sym_name")?.as_str()?;
                Some(format!("{name} = {}", print::attr(op.attr("mesh")?)))
            })
            .collect();
        if !meshes.is_empty() {
            let text = format!("{{{}}}", meshes.join(", "));
            let pairs = &mut self.out.frontend_attributes;
            pairs.insert("xla.sdy.meshes".to_owned(), text);
        }
        if let Some(attr) = attrs.get("mhlo.spmd_output_sharding") {
            self.out.config.spmd_output_sharding = Some(self.parsed_sharding(op, attr)?);
        }
        if let Some(list) = attrs.get("mhlo.spmd_parameters_shardings") {
            let list = list.as_array().unwrap_or_default();
            let all: Result<Vec<Sharding>> =
                list.iter().map(|a| self.parsed_sharding(op, a)).collect();
            self.out.config.spmd_parameters_shardings = all?;
        }
        if !self.out.comps.is_empty() {
            return Ok(());
        }
        Err(structure("a module without functions"))
    }
}

/// The order of dimensions that `mhlo.layout_mode` asks for.
fn layout_mode(op: OpRef<'_>, list: &str, i: usize) -> Option<Vec<i64>> {
    let mode = argument_attributes(op, list, i)?.get("mhlo.layout_mode")?;
    let inner = mode.as_str()?.strip_prefix('{')?;
    let order = inner.split(['}', ':']).next()?;
    order.split(',').map(|d| d.trim().parse().ok()).collect()
}

/// Gives an array this order of dimensions, from minor to major; whether that says something.
fn lay_out(op: OpRef<'_>, shape: &mut Shape, order: &[i64]) -> Result<bool> {
    let Shape::Array(array) = shape else {
        return Ok(false);
    };
    if order.is_empty() {
        return Ok(false);
    }
    let dims: Option<Vec<usize>> = order.iter().map(|&d| usize::try_from(d).ok()).collect();
    let dims = dims.filter(|dims| dims.len() == array.rank() && index::is_permutation(dims));
    let dims =
        dims.ok_or_else(|| op.wrong(format!("the layout {order:?} does not fit {array}")))?;
    array.layout = Some(Layout::from_minor_to_major(dims));
    Ok(true)
}

/// The accuracy of a function, as HLO text has it between braces.
fn accuracy_text(op: OpRef<'_>, of: &StructAttr) -> Result<Option<String>> {
    let mode = of
        .field("mode")
        .and_then(|a| a.as_enum("result_accuracy_mode"));
    match mode {
        None | Some("DEFAULT") => Ok(None),
        Some("TOLERANCE") => {
            let float = |name: &str| match of.field(name) {
                Some(Attr::Float { bits, .. }) => f64::from_bits(*bits),
                _ => 0.0,
            };
            let (atol, rtol) = (float("atol"), float("rtol"));
            let ulps = of.int("ulps").unwrap_or(0);
            Ok(Some(format!(
                "tolerance={{atol={atol},rtol={rtol},ulps={ulps}}}"
            )))
        }
        Some("HIGHEST") => Ok(Some("mode=highest".to_owned())),
        Some(other) => Err(op.wrong(format!("the accuracy `{other}`"))),
    }
}

#[cfg(test)]
mod tests {
    use crate::front::stablehlo::Options;
    use crate::front::stablehlo::to_hlo;
    use crate::hlo::print;
    use crate::mlir;

    #[test]
    fn steps_of_a_decomposition_are_not_sharded() {
        let module = mlir::text::read(
            "func.func @main(%a: tensor<8x8xf32>) -> tensor<8x8xf32> { \
             %0 = chlo.atanh %a {mhlo.frontend_attributes = {k = \"v\"}, \
             mhlo.sharding = \"{devices=[8,1]<=[8]}\"} : tensor<8x8xf32> -> tensor<8x8xf32> \
             return %0 : tensor<8x8xf32> }",
        );
        let hlo = to_hlo(&module.unwrap(), &Options::default()).unwrap();
        let main = &hlo.comps[hlo.entry];
        for &id in &main.instrs {
            let extra = hlo.instrs[id].extra.clone().unwrap_or_default();
            let sharding = extra.sharding.as_ref().map(print::sharding);
            if id == main.root {
                assert_eq!(sharding.as_deref(), Some("{devices=[8,1]<=[8]}"));
                assert_eq!(extra.frontend_attributes.len(), 1);
            } else {
                assert_eq!(sharding, None);
                assert!(extra.frontend_attributes.is_empty());
            }
        }
    }
}
