//! Custom calls, and those that stand for ops of StableHLO, CHLO and XLA.

use crate::base::Result;
use crate::front::stablehlo::chlo;
use crate::front::stablehlo::import::Converter;
use crate::front::stablehlo::import::want_arrays;
use crate::front::stablehlo::types;
use crate::hlo::Collective;
use crate::hlo::CollectiveKind;
use crate::hlo::CompId;
use crate::hlo::CustomCall;
use crate::hlo::CustomCallApiVersion;
use crate::hlo::CustomCallSchedule;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::PaddingType;
use crate::hlo::PrecisionConfig;
use crate::literal::Literal;
use crate::mlir::Attr;
use crate::mlir::AttrMap;
use crate::mlir::OpRef;
use crate::mlir::print;
use crate::shape::Layout;
use crate::shape::Shape;
use crate::shape::index;

/// A custom call without any attribute.
pub fn plain() -> CustomCall {
    CustomCall {
        target: String::new(),
        api_version: CustomCallApiVersion::Original,
        has_side_effect: false,
        operand_layout_constraints: None,
        output_to_operand_aliasing: Vec::new(),
        called: Vec::new(),
        literal: None,
        window: None,
        conv_dims: None,
        feature_group_count: 1,
        batch_group_count: 1,
        precision: PrecisionConfig::default(),
        schedule: CustomCallSchedule::None,
        padding_type: PaddingType::Invalid,
    }
}

impl<'m> Converter<'m> {
    /// `stablehlo.custom_call`
    pub(super) fn custom_call(&mut self, op: OpRef<'m>) -> Result<()> {
        let target = op.attr_str("call_target_name")?;
        if let Some(name) = target.strip_prefix("stablehlo.dynamic_") {
            return self.dynamic_call(op, name);
        }
        if let Some(name) = target
            .strip_prefix("mhlo.")
            .or(target.strip_prefix("chlo."))
            && self.chlo_call(op, name)?
        {
            return Ok(());
        }
        match target {
            "shape_assertion" => return self.shape_assertion(op),
            "ApproxTopK" => return self.approximate_top_k(op),
            "ragged_all_to_all" => return self.ragged_all_to_all(op),
            _ => {}
        }
        let kept = self.kept_operands(op)?;
        let operands = kept.iter().map(|&i| self.operand(op, i));
        let operands = operands.collect::<Result<Vec<InstrId>>>()?;
        let mut shapes = self.call_shapes(op)?;
        if let Some(layouts) = layouts_of(op, "result_layouts")? {
            if layouts.len() != shapes.len() {
                return Err(op.wrong("`result_layouts` has another number of layouts"));
            }
            for (shape, order) in shapes.iter_mut().zip(&layouts) {
                lay_out(op, shape, order)?;
            }
        }
        let shape = types::one_or_tuple(shapes);
        let (api_version, config) = api(op)?;
        let call = CustomCall {
            target: target.to_owned(),
            api_version,
            has_side_effect: op.bool_or("has_side_effect", false)?,
            operand_layout_constraints: self.constraints(op, &kept)?,
            output_to_operand_aliasing: self.call_aliases(op, &kept)?,
            called: self.called(op)?,
            literal: match op.opt_dense("mhlo.literal")? {
                Some(dense) => Some(self.whole_literal(op, dense)?),
                None => None,
            },
            ..plain()
        };
        let id = self
            .b()
            .shaped(Op::CustomCall(Box::new(call)), &operands, shape)?;
        if !config.is_empty() {
            self.extra(id).backend_config = config;
        }
        self.set_results(op, id)
    }

    /// Shapes of the results: as declared, or as operands say that are shapes.
    fn call_shapes(&mut self, op: OpRef<'m>) -> Result<Vec<Shape>> {
        let Some(indices) = op.opt_ints("indices_of_shape_operands")? else {
            return (0..op.results.len())
                .map(|i| self.needed_shape(op, i))
                .collect();
        };
        if indices.len() != op.results.len() {
            return Err(op.wrong("`indices_of_shape_operands` has another number of results"));
        }
        let mut shapes = Vec::with_capacity(indices.len());
        for (result, operand) in self
            .sizes(op, "indices_of_shape_operands", &indices)?
            .iter()
            .enumerate()
        {
            let sizes = self.operand(op, *operand)?;
            shapes.push(match self.declared_shape(op, result)? {
                Some(shape) => shape,
                None => {
                    let dims = self.known_dims(op, sizes, "shape")?;
                    Shape::array(self.element_type(op, result)?, dims)
                }
            });
        }
        Ok(shapes)
    }

    /// The operands that the function takes: those that are shapes of results are for the compiler.
    fn kept_operands(&self, op: OpRef<'m>) -> Result<Vec<usize>> {
        let shapes = op
            .opt_ints("indices_of_shape_operands")?
            .unwrap_or_default();
        let shapes = self.sizes(op, "indices_of_shape_operands", &shapes)?;
        let all = 0..op.operands.len();
        Ok(all.filter(|operand| !shapes.contains(operand)).collect())
    }

    fn constraints(&self, op: OpRef<'m>, kept: &[usize]) -> Result<Option<Vec<Shape>>> {
        let Some(layouts) = layouts_of(op, "operand_layouts")? else {
            return Ok(None);
        };
        if layouts.len() != op.operands.len() {
            return Err(op.wrong("`operand_layouts` has another number of layouts"));
        }
        let mut shapes = Vec::with_capacity(kept.len());
        for &i in kept {
            let mut shape = self.out.shape(self.operand(op, i)?).without_layout();
            lay_out(op, &mut shape, &layouts[i])?;
            shapes.push(shape);
        }
        Ok(Some(shapes))
    }

    fn call_aliases(
        &self,
        op: OpRef<'m>,
        kept: &[usize],
    ) -> Result<Vec<(Vec<i64>, i64, Vec<i64>)>> {
        let Some(attr) = op.attr("output_operand_aliases") else {
            return Ok(Vec::new());
        };
        let broken = || op.wrong("`output_operand_aliases` is another thing");
        let mut aliases = Vec::new();
        for alias in attr.as_array().ok_or_else(broken)? {
            let of = alias.as_struct("stablehlo", "output_operand_alias");
            let of = of.ok_or_else(broken)?;
            let operand = of.int("operand_index").ok_or_else(broken)?;
            let place = kept.iter().position(|&i| i as i64 == operand);
            let place = place.ok_or_else(|| {
                op.wrong(format!(
                    "a result is aliased to operand {operand}, which the function does not take"
                ))
            })?;
            aliases.push((
                of.ints("output_tuple_indices").ok_or_else(broken)?,
                place as i64,
                of.ints("operand_tuple_indices").ok_or_else(broken)?,
            ));
        }
        Ok(aliases)
    }

    pub(super) fn called(&mut self, op: OpRef<'m>) -> Result<Vec<CompId>> {
        let list = op.attr("called_computations").and_then(Attr::as_array);
        let mut comps = Vec::new();
        for attr in list.unwrap_or_default() {
            let Attr::Symbol(symbol) = attr else {
                return Err(op.wrong("`called_computations` holds what is no symbol"));
            };
            let name = symbol.leaf().as_str();
            if self.functions.open(name) {
                return Err(op.unsupported(format!("`{name}` has arguments of unknown sizes")));
            }
            comps.push(self.function(op, name, &[])?);
        }
        Ok(comps)
    }

    /// Dense elements with every element written out.
    fn whole_literal(&self, op: OpRef<'m>, dense: &crate::mlir::Dense) -> Result<Literal> {
        let (literal, dims) = types::dense_literal(dense)
            .map_err(|what| op.unsupported(format!("HLO has no {what}")))?;
        if literal.shape().rank() == dims.len() {
            return Ok(Literal::Array(literal));
        }
        let shape = crate::shape::ArrayShape::new(literal.ty(), dims);
        let count = shape.element_count();
        if count > 1 << 20 {
            return Err(op.unsupported("a literal of more than a million elements"));
        }
        let bytes = literal.bytes().repeat(count);
        Ok(Literal::Array(crate::literal::ArrayLiteral::new(
            shape, bytes,
        )))
    }

    /// A call that stands for an op of CHLO, which was one of MHLO once; whether it is one.
    fn chlo_call(&mut self, op: OpRef<'m>, name: &str) -> Result<bool> {
        let attributes = op.attr("mhlo.attributes").and_then(Attr::as_dict);
        let name = match name {
            "topk" => "top_k",
            name => name,
        };
        self.chlo_beside(op, name, attributes)
    }

    /// An op of CHLO, named without its dialect, whose attributes stand beside it; whether there is
    /// one.
    pub(super) fn chlo_beside(
        &mut self,
        op: OpRef<'m>,
        name: &str,
        attributes: Option<&'m AttrMap>,
    ) -> Result<bool> {
        if !matches!(name, "mulhi" | "ragged_dot" | "top_k") && !chlo::is_formula(name) {
            return Ok(false);
        }
        want_arrays(op)?;
        let get = |name: &str| attributes.and_then(|a| a.get(name));
        match name {
            "mulhi" => self.mul_high(op)?,
            "ragged_dot" => self.ragged_dot_beside(op, attributes)?,
            "top_k" => {
                let k = get("k").and_then(Attr::as_int);
                let k = k.and_then(|k| usize::try_from(k).ok());
                let k = k.ok_or_else(|| op.wrong("its attributes have no `k`"))?;
                let largest = get("largest") != Some(&Attr::Bool(false));
                self.top_k_of(op, k, largest)?;
            }
            _ => {
                let operands = self.operands(op)?;
                self.chlo_formula(op, name, &operands)?;
            }
        }
        Ok(true)
    }

    /// A claim about sizes, which are known: it holds and is gone, or its message is the error.
    fn shape_assertion(&mut self, op: OpRef<'m>) -> Result<()> {
        let operands = self.operands(op)?;
        let holds = match operands.first() {
            Some(&claim) => self.facts.value(&self.out, claim),
            None => None,
        };
        let holds = holds.and_then(|v| v.values.first().copied());
        let Some(holds) = holds else {
            return Err(op.unsupported("a claim about sizes that are not known"));
        };
        if holds != 0 {
            return Ok(());
        }
        let mut message = op
            .opt_str("error_message")?
            .unwrap_or("it does not hold")
            .to_owned();
        for (i, &operand) in operands.iter().skip(1).enumerate() {
            let value = self.facts.value(&self.out, operand);
            let value = value.and_then(|v| v.values.first().copied());
            if let Some(value) = value {
                message = message.replace(&format!("{{{i}}}"), &value.to_string());
            }
        }
        Err(op.wrong(format!(
            "the sizes break a condition of the program: {message}"
        )))
    }

    /// The first elements of each row in the order of a comparator; exact, as XLA computes it where
    /// there is no faster way.
    pub(super) fn approximate_top_k(&mut self, op: OpRef<'m>) -> Result<()> {
        want_arrays(op)?;
        let config = op.attr("mhlo.backend_config").or(op.attr("backend_config"));
        let config = config.and_then(Attr::as_dict);
        let get = |name: &str| config.and_then(|c: &AttrMap| c.get(name));
        let number = |name: &str| {
            let value = get(name).and_then(Attr::as_int);
            let value = value.and_then(|v| usize::try_from(v).ok());
            value.ok_or_else(|| op.wrong(format!("its configuration has no `{name}`")))
        };
        let dim = number("reduction_dim")?;
        let operands = self.operands(op)?;
        let count = op.results.len();
        if operands.len() < 2 * count || count == 0 {
            return Err(op.wrong(format!("{} operands for {count} results", operands.len())));
        }
        let &[body] = &self.called(op)?[..] else {
            return Err(op.wrong("not one called computation"));
        };
        let shapes = self.call_shapes(op)?;
        let array = shapes.first().and_then(Shape::as_array);
        let size = array.and_then(|array| array.dims.get(dim).copied());
        let size = size.ok_or_else(|| op.wrong(format!("its results have no dimension {dim}")))?;
        let hlo = Op::Sort {
            dim,
            body,
            is_stable: false,
        };
        let sorted = self.b().op(hlo, &operands[..count])?;
        let mut parts = Vec::with_capacity(count);
        for index in 0..count {
            let part = match count {
                1 => sorted,
                _ => self.b().op(Op::GetTupleElement { index }, &[sorted])?,
            };
            parts.push(self.b().slice_dim(part, dim, 0, size)?);
        }
        let all = self.b().op(Op::Tuple, &parts)?;
        self.set_elements(op, all)
    }

    fn ragged_all_to_all(&mut self, op: OpRef<'m>) -> Result<()> {
        want_arrays(op)?;
        let operands = self.operands(op)?;
        let config = op.attr("backend_config").and_then(Attr::as_dict);
        let get = |name: &str| config.and_then(|c: &AttrMap| c.get(name));
        let groups = match get("replica_groups") {
            Some(attr) => self.groups_of(op, attr)?,
            None => crate::hlo::ReplicaGroups::List(Vec::new()),
        };
        let hlo = Op::Collective {
            kind: CollectiveKind::RaggedAllToAll,
            collective: Box::new(Collective {
                replica_groups: groups,
                channel_id: get("channel_id")
                    .and_then(Attr::as_int)
                    .filter(|id| *id > 0),
                use_global_device_ids: false,
                constrain_layout: false,
            }),
        };
        self.emit_one(op, hlo, &operands)
    }
}

/// How a call is made, and its configuration: text, or a dictionary for typed calls. Old modules
/// have the dictionary in `mhlo.backend_config`.
fn api(op: OpRef<'_>) -> Result<(CustomCallApiVersion, Vec<u8>)> {
    if let Some(config @ Attr::Dict(_)) = op.attr("mhlo.backend_config") {
        let text = print::attr(config).into_bytes();
        return Ok((CustomCallApiVersion::TypedFfi, text));
    }
    let version = match op.opt_int("api_version")?.unwrap_or(1) {
        0 => CustomCallApiVersion::Unspecified,
        1 => CustomCallApiVersion::Original,
        2 => CustomCallApiVersion::StatusReturning,
        3 => CustomCallApiVersion::StatusReturningUnified,
        4 => CustomCallApiVersion::TypedFfi,
        other => return Err(op.wrong(format!("`api_version` is {other}"))),
    };
    let config = match op.attr("backend_config") {
        None => Vec::new(),
        Some(Attr::String(text)) if version == CustomCallApiVersion::TypedFfi => {
            if !text.is_empty() {
                return Err(op.wrong("`backend_config` of a typed call is no dictionary"));
            }
            Vec::new()
        }
        Some(Attr::String(text)) => text.to_vec(),
        Some(dict @ Attr::Dict(_)) if version == CustomCallApiVersion::TypedFfi => {
            print::attr(dict).into_bytes()
        }
        Some(other) => {
            return Err(op.wrong(format!("`backend_config` is {}", other.what())));
        }
    };
    Ok((version, config))
}

/// A list of orders of dimensions.
fn layouts_of(op: OpRef<'_>, name: &str) -> Result<Option<Vec<Vec<i64>>>> {
    op.attr_as(name, "a list of layouts", |attr| {
        attr.as_array()?.iter().map(Attr::ints).collect()
    })
}

/// Gives a shape this order of dimensions, from minor to major.
fn lay_out(op: OpRef<'_>, shape: &mut Shape, order: &[i64]) -> Result<()> {
    let Shape::Array(array) = shape else {
        return match order.is_empty() {
            true => Ok(()),
            false => Err(op.wrong("a layout for what is no array")),
        };
    };
    let dims: Option<Vec<usize>> = order.iter().map(|&d| usize::try_from(d).ok()).collect();
    let dims = dims.filter(|dims| dims.len() == array.rank() && index::is_permutation(dims));
    let dims =
        dims.ok_or_else(|| op.wrong(format!("the layout {order:?} does not fit {array}")))?;
    array.layout = Some(Layout::from_minor_to_major(dims));
    Ok(())
}
