//! Ops and attributes of Shardy, as XLA keeps them on the way to its own propagation of shardings:
//! shardings are attributes of HLO and frontend attributes, ops are custom calls.
//!
//! Shardy sees arrays whole. An op that only says where the parts of an array are gives back its
//! operand, so it is a call of `Sharding`; that is also what the collectives of Shardy are, which
//! change the sharding of an array and not its elements. A manual computation, whose body sees the
//! part of one device, is a call between two custom calls that lead from whole arrays to parts and
//! back. Upstream: `xla/service/spmd/shardy/sdy_round_trip`.

use crate::base::Result;
use crate::front::stablehlo::import::Converter;
use crate::front::stablehlo::import::custom_call;
use crate::front::stablehlo::import::function::argument_attributes;
use crate::front::stablehlo::import::shardings;
use crate::front::stablehlo::import::shardings::Meshes;
use crate::front::stablehlo::types;
use crate::hlo::CustomCall;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::Sharding;
use crate::mlir;
use crate::mlir::Attr;
use crate::mlir::OpRef;
use crate::mlir::StructAttr;
use crate::mlir::print;
use crate::shape::Shape;

/// The frontend attribute that holds the sharding of Shardy as text.
const SHARDING: &str = "xla.sdy.sharding";

/// The meshes of a module.
pub fn meshes(source: &mlir::Module) -> Meshes<'_> {
    let meshes = source
        .block_ops(source.body())
        .filter(|op| op.kind() == "sdy.mesh");
    let named = meshes.filter_map(|op| {
        let name = op.attr("sym_name")?.as_str()?;
        Some((name, op.attr("mesh")?.as_struct("sdy", "mesh")?))
    });
    named.collect()
}

/// The sharding of one value as that of all values of an op that has one.
fn per_value(sharding: &Attr) -> Attr {
    let list = Attr::array(vec![sharding.clone()]);
    Attr::structure(
        "sdy",
        "sharding_per_value",
        vec![("shardings".into(), list)],
    )
}

impl<'m> Converter<'m> {
    /// The sharding that an attribute of Shardy says: of one value, or of all values of an op.
    pub(super) fn shardy_sharding(&self, op: OpRef<'m>, attr: &'m Attr) -> Result<Sharding> {
        if let Some(one) = attr.as_struct("sdy", "sharding") {
            return self.one_sharding(op, one);
        }
        let all = attr.as_struct("sdy", "sharding_per_value");
        let all = all.ok_or_else(|| op.unsupported("a sharding of an unknown form"))?;
        let list = all.field("shardings").and_then(Attr::as_array);
        let mut parts = Vec::new();
        for part in list.unwrap_or_default() {
            let part = part.as_struct("sdy", "sharding");
            let part = part.ok_or_else(|| op.unsupported("a sharding of an unknown form"))?;
            parts.push(self.one_sharding(op, part)?);
        }
        match <[Sharding; 1]>::try_from(parts) {
            Ok([one]) => Ok(one),
            Err(parts) => Ok(Sharding::Tuple(parts)),
        }
    }

    fn one_sharding(&self, op: OpRef<'m>, of: &'m StructAttr) -> Result<Sharding> {
        let sharding = shardings::convert(of, &self.meshes);
        let sharding = sharding.map_err(|what| op.wrong(format!("its sharding: {what}")))?;
        Ok(Sharding::Array(Box::new(sharding)))
    }

    /// Results of a function that have a sharding of Shardy, each as a custom call that says it.
    pub(super) fn with_result_shardings(
        &mut self,
        op: OpRef<'m>,
        results: &[InstrId],
    ) -> Result<Vec<InstrId>> {
        let mut out = Vec::with_capacity(results.len());
        for (i, &x) in results.iter().enumerate() {
            let attrs = argument_attributes(op, "res_attrs", i);
            let Some(sharding) = attrs.and_then(|attrs| attrs.get("sdy.sharding")) else {
                out.push(x);
                continue;
            };
            let shape = self.out.shape(x).without_layout();
            let id = self.marker("xla.sdy.FuncResultSharding", true, &[x], shape)?;
            self.say(id, SHARDING, print::attr(&per_value(sharding)));
            let metadata = self.out.instrs[x].extra.as_ref();
            let metadata = metadata.and_then(|extra| extra.metadata.clone());
            self.extra(id).metadata = metadata;
            out.push(id);
        }
        Ok(out)
    }

    /// A custom call that says something of its operands.
    fn marker(
        &mut self,
        target: &str,
        has_side_effect: bool,
        operands: &[InstrId],
        shape: Shape,
    ) -> Result<InstrId> {
        let call = CustomCall {
            target: target.to_owned(),
            has_side_effect,
            ..custom_call::plain()
        };
        self.b()
            .shaped(Op::CustomCall(Box::new(call)), operands, shape)
    }

    /// A frontend attribute.
    fn say(&mut self, id: InstrId, name: &str, value: String) {
        let pairs = &mut self.extra(id).frontend_attributes;
        pairs.insert(name.to_owned(), value);
    }

    /// An op of Shardy, named without its dialect.
    pub(super) fn sdy(&mut self, op: OpRef<'m>, name: &str) -> Result<()> {
        match name {
            "sharding_constraint" | "reshard" => self.resharded(op, "sharding"),
            "all_gather"
            | "all_reduce"
            | "all_slice"
            | "all_to_all"
            | "collective_permute"
            | "reduce_scatter"
            | "replicated_to_unreduced"
            | "sharded_to_unreduced" => self.resharded(op, "out_sharding"),
            "constant" => self.constant(op),
            "manual_computation" => self.manual(op),
            "named_computation" => {
                let operands = self.operands(op)?;
                self.inlined(op, &operands)
            }
            "propagation_barrier" => {
                let [x] = self.exactly(op)?;
                let shape = self.out.shape(x).without_layout();
                let id = self.marker("xla.sdy.PropagationBarrier", true, &[x], shape)?;
                let direction = op.attr_int("allowed_direction")?;
                self.say(
                    id,
                    "xla.sdy.allowed_direction",
                    format!("{direction} : i32"),
                );
                self.set_one(op, id)
            }
            "sharding_group" => {
                let [x] = self.exactly(op)?;
                let none = Shape::Tuple(Vec::new());
                let id = self.marker("xla.sdy.ShardingGroup", true, &[x], none)?;
                let group = op.attr_int("group_id")?;
                self.say(id, "xla.sdy.sharding_group_id", format!("{group} : i64"));
                Ok(())
            }
            _ => Err(op.unsupported("HLO has no such op")),
        }
    }

    /// The operand with the sharding that this attribute says.
    fn resharded(&mut self, op: OpRef<'m>, name: &str) -> Result<()> {
        let [x] = self.exactly(op)?;
        let shape = self.out.shape(x).without_layout();
        let id = self.marker("Sharding", false, &[x], shape)?;
        let attr = op.need(name)?;
        let sharding = self.shardy_sharding(op, attr)?;
        self.extra(id).sharding = Some(sharding);
        self.say(id, SHARDING, print::attr(&per_value(attr)));
        self.set_one(op, id)
    }

    /// A computation over the parts that devices have.
    fn manual(&mut self, op: OpRef<'m>) -> Result<()> {
        let operands = self.operands(op)?;
        let body = self.region_of(op, 0)?;
        let count = self.out.comps.len();
        self.out.comps[body].name = format!("xla.sdy.manual_computation_body.{count}");
        let axes = print::attr(op.need("manual_axes")?);
        let mut parts = Vec::with_capacity(operands.len());
        if !operands.is_empty() {
            let params = self.out.comps[body].params.clone();
            let shapes = params.iter().map(|&p| self.out.shape(p).without_layout());
            let shape = types::one_or_tuple(shapes.collect());
            let id = self.marker("xla.sdy.GlobalToLocalShape", true, &operands, shape)?;
            let shardings = print::attr(op.need("in_shardings")?);
            self.say(id, "xla.sdy.in_shardings", shardings);
            self.say(id, "xla.sdy.manual_axes", axes.clone());
            parts = self.elements_of(id, operands.len())?;
        }
        let start = self.out.comps[self.comp].instrs.len();
        let is_composite = false;
        let call = self.b().op(Op::Call { body, is_composite }, &parts)?;
        let results = self.elements_of(call, op.results.len())?;
        for at in start..self.out.comps[self.comp].instrs.len() {
            let id = self.out.comps[self.comp].instrs[at];
            self.say(id, "inlineable", "false".to_owned());
        }
        if results.is_empty() {
            return Ok(());
        }
        let shapes = (0..results.len()).map(|index| self.needed_shape(op, index));
        let shape = types::one_or_tuple(shapes.collect::<Result<_>>()?);
        let id = self.marker("xla.sdy.LocalToGlobalShape", true, &results, shape)?;
        self.say(id, "xla.sdy.manual_axes", axes);
        let shardings = print::attr(op.need("out_shardings")?);
        self.say(id, "xla.sdy.out_shardings", shardings);
        for (index, id) in self.elements_of(id, results.len())?.into_iter().enumerate() {
            self.set(op, index, id)?;
        }
        Ok(())
    }

    /// The values that an instruction gives: itself when there is one, else the elements of a tuple.
    fn elements_of(&mut self, id: InstrId, count: usize) -> Result<Vec<InstrId>> {
        if count == 1 {
            return Ok(vec![id]);
        }
        let elements = (0..count).map(|index| self.b().op(Op::GetTupleElement { index }, &[id]));
        elements.collect()
    }
}
