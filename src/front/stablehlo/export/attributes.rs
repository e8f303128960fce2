//! Attributes of ops, functions and the module.

use crate::front::stablehlo::export::Exporter;
use crate::hlo::CompId;
use crate::hlo::ConvDims;
use crate::hlo::DotAlgorithm;
use crate::hlo::Extra;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::PrecisionConfig;
use crate::hlo::Sharding;
use crate::hlo::Window;
use crate::hlo::print;
use crate::mlir::Attr;
use crate::mlir::AttrMap;
use crate::mlir::Dense;
use crate::mlir::DenseData;
use crate::mlir::FloatKind;
use crate::mlir::Name;
use crate::mlir::Type;

/// Attributes of these names.
pub fn map<const N: usize>(entries: [(&str, Attr); N]) -> AttrMap {
    entries
        .into_iter()
        .map(|(name, attr)| (name.into(), attr))
        .collect()
}

/// An index as HLO has it, as MLIR has it.
pub fn int(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A list of dimensions.
pub fn dims(values: &[usize]) -> Attr {
    let values: Vec<i64> = values.iter().map(|&d| int(d)).collect();
    Attr::i64_array(&values)
}

/// A table of two columns: dense elements of the type `tensor<Nx2xi64>`.
pub fn pairs(values: &[(i64, i64)]) -> Attr {
    let flat: Vec<i64> = values.iter().flat_map(|p| [p.0, p.1]).collect();
    table(&flat, values.len() as u64, 2)
}

/// A table of numbers.
pub fn table(flat: &[i64], rows: u64, columns: u64) -> Attr {
    dense_ints(flat, &[rows, columns], Type::I64)
}

/// Dense elements of 64 bits.
pub fn dense_ints(flat: &[i64], sizes: &[u64], element: Type) -> Attr {
    let splat = !flat.is_empty() && flat.iter().all(|v| *v == flat[0]);
    let shown = if splat { &flat[..1] } else { flat };
    let data: Vec<u8> = shown.iter().flat_map(|v| v.to_le_bytes()).collect();
    Attr::Dense(Dense {
        ty: Type::static_tensor(sizes, element),
        splat,
        data: DenseData::Bytes(data.into()),
    })
}

/// Fields of a structure; those that have their default value are left out.
pub fn fields(entries: Vec<(&str, Attr)>) -> Vec<(Name, Attr)> {
    entries
        .into_iter()
        .filter(|(_, attr)| !attr.is_default_field())
        .map(|(name, attr)| (name.into(), attr))
        .collect()
}

/// Precisions of the operands, when there are any, and the algorithm, when one is asked for.
pub fn precision(config: &PrecisionConfig, dialect: &str, attrs: &mut AttrMap) {
    if !config.operand_precision.is_empty() {
        let words = config.operand_precision.iter().map(|p| {
            let word = p.name().to_uppercase();
            Attr::enumeration(dialect, "precision", &word)
        });
        attrs.insert("precision_config".into(), Attr::array(words.collect()));
    }
    if let Some(algorithm) = algorithm(config.algorithm) {
        attrs.insert("algorithm".into(), algorithm);
    }
}

fn algorithm(algorithm: DotAlgorithm) -> Option<Attr> {
    use DotAlgorithm as A;
    use FloatKind as F;
    let (operand, sum, steps, imprecise) = match algorithm {
        A::Unset => return None,
        A::AnyF8AnyF8F32 => (F::F8E5M2, F::F32, 1, false),
        A::AnyF8AnyF8F32FastAccum => (F::F8E5M2, F::F32, 1, true),
        A::AnyF8AnyF8Any => (F::F8E5M2, F::BF16, 1, false),
        A::AnyF8AnyF8AnyFastAccum => (F::F8E5M2, F::BF16, 1, true),
        A::F16F16F16 => (F::F16, F::F16, 1, false),
        A::F16F16F32 => (F::F16, F::F32, 1, false),
        A::Bf16Bf16Bf16 => (F::BF16, F::BF16, 1, false),
        A::Bf16Bf16F32 => (F::BF16, F::F32, 1, false),
        A::Bf16Bf16F32X3 => (F::BF16, F::F32, 3, false),
        A::Bf16Bf16F32X6 => (F::BF16, F::F32, 6, false),
        A::Bf16Bf16F32X9 => (F::BF16, F::F32, 9, false),
        A::Tf32Tf32F32 => (F::TF32, F::F32, 1, false),
        A::Tf32Tf32F32X3 => (F::TF32, F::F32, 3, false),
        A::F32F32F32 => (F::F32, F::F32, 1, false),
        A::F64F64F64 => (F::F64, F::F64, 1, false),
    };
    let ty = |kind: F| Attr::Type(Type::Float(kind));
    Some(Attr::structure(
        "stablehlo",
        "dot_algorithm",
        fields(vec![
            ("lhs_precision_type", ty(operand)),
            ("rhs_precision_type", ty(operand)),
            ("accumulation_type", ty(sum)),
            ("lhs_component_count", Attr::i64(1)),
            ("rhs_component_count", Attr::i64(1)),
            ("num_primitive_operations", Attr::i64(steps)),
            ("allow_imprecise_accumulation", Attr::Bool(imprecise)),
        ]),
    ))
}

/// The dimension numbers of a convolution.
pub fn conv(of: &ConvDims) -> Attr {
    let index = |d: usize| Attr::i64(int(d));
    let entries = vec![
        ("input_batch_dimension", index(of.input_batch)),
        ("input_feature_dimension", index(of.input_feature)),
        ("input_spatial_dimensions", dims(&of.input_spatial)),
        (
            "kernel_input_feature_dimension",
            index(of.kernel_input_feature),
        ),
        (
            "kernel_output_feature_dimension",
            index(of.kernel_output_feature),
        ),
        ("kernel_spatial_dimensions", dims(&of.kernel_spatial)),
        ("output_batch_dimension", index(of.output_batch)),
        ("output_feature_dimension", index(of.output_feature)),
        ("output_spatial_dimensions", dims(&of.output_spatial)),
    ];
    let zero = |attr: &Attr| attr.as_int() == Some(0);
    let entries = entries.into_iter().filter(|e| !zero(&e.1)).collect();
    Attr::structure("stablehlo", "conv", fields(entries))
}

/// The lists of a window under the names of reductions or of convolutions.
pub fn window(of: &Window, conv: bool, attrs: &mut AttrMap) {
    let list = |one: fn(&crate::hlo::WindowDim) -> i64| {
        let values: Vec<i64> = of.iter().map(one).collect();
        Attr::i64_array(&values)
    };
    let padding: Vec<(i64, i64)> = of.iter().map(|d| (d.padding_low, d.padding_high)).collect();
    attrs.insert("window_strides".into(), list(|d| d.stride));
    attrs.insert("padding".into(), pairs(&padding));
    let (base, inner) = match conv {
        true => ("lhs_dilation", "rhs_dilation"),
        false => ("base_dilations", "window_dilations"),
    };
    attrs.insert(base.into(), list(|d| d.base_dilation));
    attrs.insert(inner.into(), list(|d| d.window_dilation));
    if conv {
        let reversal: Vec<bool> = of.iter().map(|d| d.reversal).collect();
        attrs.insert("window_reversal".into(), Attr::bool_array(&reversal));
    } else {
        attrs.insert("window_dimensions".into(), list(|d| int(d.size)));
    }
}

/// A channel handle.
pub fn channel(id: i64, kind: i64) -> Attr {
    let entries = vec![("handle", Attr::i64(id)), ("type", Attr::i64(kind))];
    Attr::structure("stablehlo", "channel_handle", fields(entries))
}

fn dictionary<'a>(pairs: impl Iterator<Item = (&'a String, &'a String)>) -> Attr {
    let map = pairs.map(|(name, value)| (name.as_str().into(), Attr::string(value)));
    Attr::dict(map.collect())
}

/// Sharding and frontend attributes of an instruction.
pub fn discardable(extra: &Extra, attrs: &mut AttrMap) {
    let plain = |name: &str| !name.starts_with("composite.");
    let pairs = extra.frontend_attributes.iter();
    let mut pairs = pairs.filter(|(name, _)| plain(name)).peekable();
    if pairs.peek().is_some() {
        attrs.insert("mhlo.frontend_attributes".into(), dictionary(pairs));
    }
    if let Some(sharding) = &extra.sharding {
        attrs.insert("mhlo.sharding".into(), sharding_attr(sharding));
    }
}

fn sharding_attr(sharding: &Sharding) -> Attr {
    Attr::string(&print::sharding(sharding))
}

impl Exporter<'_> {
    /// Attributes of the module.
    pub(super) fn header(&mut self) {
        let module = self.module;
        let root = self.out.root;
        let attrs = &mut self.out.ops[root].attrs;
        if !module.name.is_empty() {
            attrs.insert("sym_name".into(), Attr::string(&module.name));
        }
        let count = |n: i64| Attr::i32(i32::try_from(n.max(1)).unwrap_or(i32::MAX));
        let config = &module.config;
        attrs.insert("mhlo.num_partitions".into(), count(config.num_partitions));
        attrs.insert("mhlo.num_replicas".into(), count(config.replica_count));
        if !module.frontend_attributes.is_empty() {
            let pairs = dictionary(module.frontend_attributes.iter());
            attrs.insert("mhlo.frontend_attributes".into(), pairs);
        }
        if let Some(sharding) = &config.spmd_output_sharding {
            attrs.insert("mhlo.spmd_output_sharding".into(), sharding_attr(sharding));
        }
        if !config.spmd_parameters_shardings.is_empty() {
            let all = config.spmd_parameters_shardings.iter();
            let all = Attr::array(all.map(sharding_attr).collect());
            attrs.insert("mhlo.spmd_parameters_shardings".into(), all);
        }
    }

    /// Attributes of the arguments and results of a function.
    pub(super) fn function_attributes(&self, comp: CompId, attrs: &mut AttrMap) {
        let params = &self.module.comps[comp].params;
        let mut lists: Vec<AttrMap> = Vec::new();
        for (number, &param) in params.iter().enumerate() {
            let leaves = self.module.shape(param).leaves();
            let single = leaves.len() == 1;
            for (place, (index, _)) in leaves.into_iter().enumerate() {
                let mut map = AttrMap::new();
                let instr = &self.module.instrs[param];
                if single && let Some(extra) = &instr.extra {
                    discardable(extra, &mut map);
                }
                if comp == self.module.entry {
                    self.donation(number, &index, &mut map);
                    self.layout_mode(number, &index, &mut map);
                    if let Op::Parameter {
                        leaf_replication, ..
                    } = &instr.op
                        && let Some(&replicated) = leaf_replication.get(place)
                    {
                        let attr = Attr::array(vec![Attr::Bool(replicated)]);
                        map.insert("mhlo.parameter_replication".into(), attr);
                    }
                }
                lists.push(map);
            }
        }
        if lists.iter().any(|map| !map.is_empty()) {
            let lists = lists.into_iter().map(Attr::dict).collect();
            attrs.insert("arg_attrs".into(), Attr::array(lists));
        }
        self.result_attributes(comp, attrs);
    }

    /// The layout that the caller gives a parameter, when it is not the usual one.
    fn layout_mode(&self, number: usize, index: &[usize], map: &mut AttrMap) {
        let layout = self.module.config.entry_layout.as_ref();
        let shape = layout.and_then(|l| l.parameters.get(number)?.at(index));
        if let Some(text) = shape.and_then(unusual_layout) {
            map.insert("mhlo.layout_mode".into(), Attr::string(&text));
        }
    }

    /// Shardings of the results, and the layouts that the caller gives them.
    fn result_attributes(&self, comp: CompId, attrs: &mut AttrMap) {
        let root = self.module.root(comp);
        let layout = self.module.config.entry_layout.as_ref();
        let layout = layout.filter(|_| comp == self.module.entry);
        let sharding = root
            .extra
            .as_ref()
            .and_then(|extra| extra.sharding.as_ref());
        let maps = root.shape.leaves().into_iter().enumerate();
        let maps = maps.map(|(place, (index, _))| {
            let mut map = AttrMap::new();
            let sharding = match sharding {
                Some(Sharding::Tuple(parts)) => parts.get(place),
                sharding => sharding,
            };
            if let Some(sharding) = sharding {
                map.insert("mhlo.sharding".into(), sharding_attr(sharding));
            }
            let text = layout.and_then(|l| l.result.at(&index).and_then(unusual_layout));
            if let Some(text) = text {
                map.insert("mhlo.layout_mode".into(), Attr::string(&text));
            }
            map
        });
        let maps: Vec<AttrMap> = maps.collect();
        if maps.iter().any(|map| !map.is_empty()) {
            let maps = maps.into_iter().map(Attr::dict).collect();
            attrs.insert("res_attrs".into(), Attr::array(maps));
        }
    }

    /// Whether a part of a parameter is donated, and to which result.
    fn donation(&self, number: usize, index: &[usize], map: &mut AttrMap) {
        let root: InstrId = self.module.comps[self.module.entry].root;
        let leaves = self.module.shape(root).leaves();
        for (output, target) in &self.module.input_output_alias {
            let same = target.parameter == number && target.index.as_slice() == index;
            let place = leaves.iter().position(|(leaf, _)| leaf == output);
            if let (true, Some(place)) = (same, place) {
                let place = i32::try_from(place).unwrap_or(i32::MAX);
                map.insert("tf.aliasing_output".into(), Attr::i32(place));
            }
        }
        let donors = &self.module.buffer_donors;
        if donors
            .iter()
            .any(|(n, i)| *n == number && i.as_slice() == index)
        {
            map.insert("jax.buffer_donor".into(), Attr::Bool(true));
        }
    }
}

/// The order of dimensions from minor to major, when it is not row-major.
fn unusual_layout(shape: &crate::shape::Shape) -> Option<String> {
    let layout = shape.as_array()?.layout.as_ref()?;
    (!layout.is_row_major()).then(|| {
        let order = layout.minor_to_major.iter().map(ToString::to_string);
        format!("{{{}}}", order.collect::<Vec<_>>().join(","))
    })
}
