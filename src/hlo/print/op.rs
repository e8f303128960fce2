//! The attributes of each op, in a fixed order.

use std::fmt::Display;

use super::attributes::iota;
use super::attributes::sharding;
use super::bools;
use super::commas;
use super::names::Names;
use super::push;
use crate::base::text::quote;
use crate::hlo::Collective;
use crate::hlo::CollectiveKind;
use crate::hlo::CompId;
use crate::hlo::ComparisonType;
use crate::hlo::ConvDims;
use crate::hlo::CustomCall;
use crate::hlo::CustomCallApiVersion;
use crate::hlo::CustomCallSchedule;
use crate::hlo::DotAlgorithm;
use crate::hlo::DotDims;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::PaddingType;
use crate::hlo::Precision;
use crate::hlo::PrecisionConfig;
use crate::hlo::ReplicaGroups;
use crate::hlo::WindowDim;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// Appends what a leaf has instead of operands; false for an op with operands.
pub(super) fn leaf(op: &Op, out: &mut String) -> bool {
    match op {
        Op::Parameter { number, .. } => push(out, format_args!("{number}")),
        Op::Constant(literal) => crate::literal::text::write(literal, out),
        _ => return false,
    }
    true
}

/// Appends attributes by name.
struct List<'o, 'm> {
    out: &'o mut String,
    names: &'o Names<'m>,
}

impl List<'_, '_> {
    fn put(&mut self, name: &str, value: impl Display) {
        push(self.out, format_args!(", {name}={value}"));
    }
    fn flag(&mut self, name: &str, value: bool) {
        if value {
            self.put(name, "true");
        }
    }
    fn number(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }
    fn dims<T: Display>(&mut self, name: &str, dims: impl IntoIterator<Item = T>) {
        self.put(name, format_args!("{{{}}}", commas(dims)));
    }
    fn dims_if_any<T: Display>(&mut self, name: &str, dims: &[T]) {
        if !dims.is_empty() {
            self.dims(name, dims);
        }
    }
    fn comp(&mut self, name: &str, comp: CompId) {
        push(
            self.out,
            format_args!(", {name}=%{}", self.names.comp(comp)),
        );
    }
    fn comps(&mut self, name: &str, comps: &[CompId]) {
        let list: Vec<String> = comps
            .iter()
            .map(|c| format!("%{}", self.names.comp(*c)))
            .collect();
        self.put(name, format_args!("{{{}}}", list.join(", ")));
    }
    fn window(&mut self, window: &[WindowDim]) {
        if !window.is_empty() {
            self.put("window", format_args!("{{{}}}", window_text(window)));
        }
    }
    fn dot_dims(&mut self, dims: &DotDims) {
        self.dims_if_any("lhs_batch_dims", &dims.lhs_batch);
        self.dims_if_any("lhs_contracting_dims", &dims.lhs_contracting);
        self.dims_if_any("rhs_batch_dims", &dims.rhs_batch);
        self.dims_if_any("rhs_contracting_dims", &dims.rhs_contracting);
    }
    fn precision(&mut self, precision: &PrecisionConfig) {
        if precision
            .operand_precision
            .iter()
            .any(|p| *p != Precision::Default)
        {
            self.dims(
                "operand_precision",
                precision.operand_precision.iter().map(|p| p.name()),
            );
        }
        if precision.algorithm != DotAlgorithm::Unset {
            self.put("algorithm", precision.algorithm.name());
        }
    }
    fn aliasing(&mut self, aliasing: &[(Vec<i64>, i64, Vec<i64>)]) {
        if aliasing.is_empty() {
            return;
        }
        let list: Vec<String> = aliasing
            .iter()
            .map(|(result, operand, index)| {
                format!("{{{}}}: ({operand}, {{{}}})", commas(result), commas(index))
            })
            .collect();
        self.put(
            "output_to_operand_aliasing",
            format_args!("{{{}}}", list.join(", ")),
        );
    }
    fn quoted_if_any(&mut self, name: &str, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.put(name, quote(bytes));
        }
    }
    /// A count of groups, of which one is the same as none said.
    fn groups<T: Display + From<u8> + PartialEq>(&mut self, name: &str, count: T) {
        self.number(name, Some(count).filter(|n| *n != T::from(1)));
    }
}

/// Appends the attributes that belong to the op of `id`.
pub(super) fn attributes(module: &Module, names: &Names<'_>, id: InstrId, out: &mut String) {
    let instr = &module.instrs[id];
    let operand = instr.operands.first().map(|o| &module.instrs[*o].shape);
    let mut list = List { out, names };
    match &instr.op {
        Op::Parameter {
            leaf_replication, ..
        } if !leaf_replication.is_empty() => {
            list.put("parameter_replication", bools(leaf_replication));
        }
        Op::Compare { direction, ty } => {
            list.put("direction", direction.name());
            if *ty != ComparisonType::default_of(operand) {
                list.put("type", ty.name());
            }
        }
        Op::Conditional { branches } => {
            let array = operand.and_then(Shape::as_array);
            match branches[..] {
                [yes, no] if array.is_some_and(|a| a.ty == PrimitiveType::Pred) => {
                    list.comp("true_computation", yes);
                    list.comp("false_computation", no);
                }
                _ => list.comps("branch_computations", branches),
            }
        }
        op => {
            let _ = data_movement(op, &mut list)
                || reduction(op, &mut list)
                || contraction(op, &mut list)
                || structure(op, &mut list)
                || host(op, &mut list);
        }
    }
}

fn data_movement(op: &Op, list: &mut List<'_, '_>) -> bool {
    match op {
        Op::Iota { dim } => list.put("iota_dimension", dim),
        Op::Reshape { inferred_dim } => list.number("inferred_dimension", *inferred_dim),
        Op::Broadcast { dims } | Op::Transpose { dims } | Op::Reverse { dims } => {
            list.dims("dimensions", dims);
        }
        Op::Slice { dims } => {
            let ranges: Vec<String> = dims
                .iter()
                .map(|d| match d.stride {
                    1 => format!("[{}:{}]", d.start, d.limit),
                    stride => format!("[{}:{}:{stride}]", d.start, d.limit),
                })
                .collect();
            list.put("slice", format_args!("{{{}}}", ranges.join(", ")));
        }
        Op::DynamicSlice { sizes } => list.dims("dynamic_slice_sizes", sizes),
        Op::Pad { dims } => {
            let interior = dims.iter().any(|d| d.interior != 0);
            let texts: Vec<String> = dims
                .iter()
                .map(|d| match interior {
                    true => format!("{}_{}_{}", d.low, d.high, d.interior),
                    false => format!("{}_{}", d.low, d.high),
                })
                .collect();
            list.put("padding", texts.join("x"));
        }
        Op::Concatenate { dim } | Op::GetDimensionSize { dim } | Op::SetDimensionSize { dim } => {
            list.dims("dimensions", [dim]);
        }
        Op::Gather {
            dims,
            slice_sizes,
            indices_are_sorted,
        } => {
            list.dims("offset_dims", &dims.offset_dims);
            list.dims("collapsed_slice_dims", &dims.collapsed_slice_dims);
            list.dims("start_index_map", &dims.start_index_map);
            list.dims_if_any("operand_batching_dims", &dims.operand_batching_dims);
            list.dims_if_any(
                "start_indices_batching_dims",
                &dims.start_indices_batching_dims,
            );
            list.put("index_vector_dim", dims.index_vector_dim);
            list.dims("slice_sizes", slice_sizes);
            list.flag("indices_are_sorted", *indices_are_sorted);
        }
        Op::Scatter {
            dims,
            body,
            indices_are_sorted,
            unique_indices,
        } => {
            list.dims("update_window_dims", &dims.update_window_dims);
            list.dims("inserted_window_dims", &dims.inserted_window_dims);
            list.dims(
                "scatter_dims_to_operand_dims",
                &dims.scatter_dims_to_operand_dims,
            );
            list.dims_if_any("input_batching_dims", &dims.input_batching_dims);
            let batching = &dims.scatter_indices_batching_dims;
            list.dims_if_any("scatter_indices_batching_dims", batching);
            list.put("index_vector_dim", dims.index_vector_dim);
            list.flag("indices_are_sorted", *indices_are_sorted);
            list.flag("unique_indices", *unique_indices);
            list.comp("to_apply", *body);
        }
        _ => return false,
    }
    true
}

fn contraction(op: &Op, list: &mut List<'_, '_>) -> bool {
    match op {
        Op::Dot {
            dims,
            precision,
            sparsity,
        } => {
            list.dot_dims(dims);
            list.precision(precision);
            list.number("sparsity", sparsity.first());
        }
        Op::RaggedDot {
            dims,
            lhs_ragged,
            rhs_group,
            precision,
        } => {
            list.dot_dims(dims);
            list.dims_if_any("lhs_ragged_dims", lhs_ragged);
            list.dims_if_any("rhs_group_dims", rhs_group);
            list.precision(precision);
        }
        Op::ScaledDot { dims, precision } => {
            list.dot_dims(dims);
            list.precision(precision);
        }
        Op::Convolution {
            window,
            dims,
            feature_group_count,
            batch_group_count,
            precision,
        } => {
            list.window(window);
            list.put("dim_labels", dim_labels(dims));
            list.groups("feature_group_count", *feature_group_count);
            list.groups("batch_group_count", *batch_group_count);
            list.precision(precision);
        }
        Op::Fft { kind, lengths } => {
            list.put("fft_type", kind.name());
            list.dims("fft_length", lengths);
        }
        Op::Cholesky { lower } => list.flag("lower", *lower),
        Op::TriangularSolve {
            left_side,
            lower,
            unit_diagonal,
            transpose,
        } => {
            list.flag("left_side", *left_side);
            list.flag("lower", *lower);
            list.flag("unit_diagonal", *unit_diagonal);
            list.put("transpose_a", transpose.name());
        }
        _ => return false,
    }
    true
}

fn reduction(op: &Op, list: &mut List<'_, '_>) -> bool {
    match op {
        Op::Map { dims, body } | Op::Reduce { dims, body } => {
            list.dims("dimensions", dims);
            list.comp("to_apply", *body);
        }
        Op::ReduceWindow { window, body } => {
            list.window(window);
            list.comp("to_apply", *body);
        }
        Op::SelectAndScatter {
            window,
            select,
            scatter,
        } => {
            list.window(window);
            list.comp("select", *select);
            list.comp("scatter", *scatter);
        }
        Op::Scan {
            dim,
            body,
            num_carries,
            is_reverse,
            is_associative,
        } => {
            list.dims("dimensions", [dim]);
            list.put("num_carries", num_carries);
            list.flag("is_reverse", *is_reverse);
            list.number("is_associative", *is_associative);
            list.comp("to_apply", *body);
        }
        Op::Sort {
            dim,
            body,
            is_stable,
        } => {
            list.dims("dimensions", [dim]);
            list.flag("is_stable", *is_stable);
            list.comp("to_apply", *body);
        }
        Op::TopK {
            k,
            largest,
            is_stable,
        } => {
            list.put("k", k);
            list.put("largest", largest);
            list.flag("is_stable", *is_stable);
        }
        Op::BatchNormTraining {
            epsilon,
            feature_index,
        }
        | Op::BatchNormInference {
            epsilon,
            feature_index,
        }
        | Op::BatchNormGrad {
            epsilon,
            feature_index,
        } => {
            list.put("epsilon", format_args!("{epsilon:?}"));
            list.put("feature_index", feature_index);
        }
        Op::ReducePrecision {
            exponent_bits,
            mantissa_bits,
        } => {
            list.put("exponent_bits", exponent_bits);
            list.put("mantissa_bits", mantissa_bits);
        }
        Op::Rng { distribution } => list.put("distribution", distribution.name()),
        Op::RngBitGenerator { algorithm } => list.put("algorithm", algorithm.name()),
        Op::RngGetAndUpdateState { delta } => list.put("delta", delta),
        _ => return false,
    }
    true
}

fn structure(op: &Op, list: &mut List<'_, '_>) -> bool {
    match op {
        Op::GetTupleElement { index } => list.put("index", index),
        Op::Domain(domain) => {
            let mut text = format!("kind={}", quote(domain.kind.as_bytes()));
            for (name, part) in [("entry", &domain.entry), ("exit", &domain.exit)] {
                if let Some(part) = part {
                    push(&mut text, format_args!(", {name}="));
                    sharding(part, &mut text);
                }
            }
            list.put("domain", format_args!("{{{text}}}"));
        }
        Op::CopyStart {
            cross_program_prefetch_index,
        } => list.number(
            "cross_program_prefetch_index",
            *cross_program_prefetch_index,
        ),
        Op::Call { body, is_composite } => {
            list.comp("to_apply", *body);
            list.flag("is_composite", *is_composite);
        }
        Op::While { condition, body } => {
            list.comp("condition", *condition);
            list.comp("body", *body);
        }
        Op::Fusion {
            kind,
            body,
            output_to_operand_aliasing,
        } => {
            list.put("kind", kind.name());
            list.aliasing(output_to_operand_aliasing);
            list.comp("calls", *body);
        }
        Op::AsyncStart {
            body,
            thread,
            output_to_operand_aliasing,
        } => {
            if let Some(thread) = thread {
                list.put("async_execution_thread", quote(thread.as_bytes()));
            }
            list.aliasing(output_to_operand_aliasing);
            list.comp("calls", *body);
        }
        Op::CustomCall(call) => custom_call(call, list),
        _ => return false,
    }
    true
}

fn custom_call(call: &CustomCall, list: &mut List<'_, '_>) {
    list.window(call.window.as_deref().unwrap_or_default());
    list.number("dim_labels", call.conv_dims.as_ref().map(dim_labels));
    list.groups("feature_group_count", call.feature_group_count);
    list.groups("batch_group_count", call.batch_group_count);
    if call.padding_type != PaddingType::Invalid {
        list.put("padding_type", call.padding_type.name());
    }
    list.precision(&call.precision);
    list.put("custom_call_target", quote(call.target.as_bytes()));
    if let Some(shapes) = &call.operand_layout_constraints {
        let shapes: Vec<String> = shapes.iter().map(ToString::to_string).collect();
        let shapes = shapes.join(", ");
        list.put("operand_layout_constraints", format_args!("{{{shapes}}}"));
    }
    list.flag("custom_call_has_side_effect", call.has_side_effect);
    if let Some(literal) = &call.literal {
        let text = literal_with_shape(literal);
        list.put("literal", text);
    }
    list.aliasing(&call.output_to_operand_aliasing);
    if !call.called.is_empty() {
        list.comps("called_computations", &call.called);
    }
    if call.schedule != CustomCallSchedule::None {
        list.put("schedule", call.schedule.name());
    }
    if call.api_version != CustomCallApiVersion::Original {
        list.put("api_version", call.api_version.name());
    }
}

/// `f32[2]{0} {1, 2}`; a tuple's elements bring their own shapes.
fn literal_with_shape(literal: &crate::literal::Literal) -> String {
    match literal.as_tuple() {
        Some(elements) => {
            let elements: Vec<String> = elements.iter().map(literal_with_shape).collect();
            format!("({})", elements.join(", "))
        }
        None => format!(
            "{} {}",
            literal.shape(),
            crate::literal::text::print(literal)
        ),
    }
}

fn host(op: &Op, list: &mut List<'_, '_>) -> bool {
    match op {
        Op::Collective { kind, collective } => self::collective(kind, collective, list),
        Op::Infeed { config } => list.quoted_if_any("infeed_config", config),
        Op::Outfeed { config, shape } => {
            list.put("outfeed_shape", shape);
            list.quoted_if_any("outfeed_config", config);
        }
        Op::Send {
            channel_id,
            is_host_transfer,
        }
        | Op::SendDone {
            channel_id,
            is_host_transfer,
        }
        | Op::Recv {
            channel_id,
            is_host_transfer,
        }
        | Op::RecvDone {
            channel_id,
            is_host_transfer,
        } => {
            list.number("channel_id", *channel_id);
            list.flag("is_host_transfer", *is_host_transfer);
        }
        _ => return false,
    }
    true
}

fn collective(kind: &CollectiveKind, collective: &Collective, list: &mut List<'_, '_>) {
    list.number("channel_id", collective.channel_id);
    match kind {
        CollectiveKind::CollectivePermute { pairs, slice_sizes }
        | CollectiveKind::CollectivePermuteStart { pairs, slice_sizes } => {
            list.dims(
                "source_target_pairs",
                pairs.iter().map(|(s, t)| format!("{{{s},{t}}}")),
            );
            if !slice_sizes.is_empty() {
                let sizes = slice_sizes.iter().map(|s| format!("{{{}}}", commas(s)));
                list.dims("slice_sizes", sizes);
            }
            return;
        }
        _ => {}
    }
    match &collective.replica_groups {
        ReplicaGroups::List(groups) => {
            let groups = groups.iter().map(|g| format!("{{{}}}", commas(g)));
            list.dims("replica_groups", groups);
        }
        ReplicaGroups::Iota {
            dims,
            reshape,
            transpose,
        } => {
            let groups = format!("[{}]<={}", commas(dims), iota(reshape, transpose));
            list.put("replica_groups", groups);
        }
    }
    list.flag("constrain_layout", collective.constrain_layout);
    list.flag("use_global_device_ids", collective.use_global_device_ids);
    match kind {
        CollectiveKind::AllGather { dim } | CollectiveKind::AllGatherStart { dim } => {
            list.dims("dimensions", [dim]);
        }
        CollectiveKind::ReduceScatter { dim, body } => {
            list.dims("dimensions", [dim]);
            list.comp("to_apply", *body);
        }
        CollectiveKind::AllReduce { body } | CollectiveKind::AllReduceStart { body } => {
            list.comp("to_apply", *body);
        }
        CollectiveKind::AllToAll { dim: Some(dim) } => list.dims("dimensions", [dim]),
        _ => {}
    }
}

fn window_text(window: &[WindowDim]) -> String {
    let join = |f: &dyn Fn(&WindowDim) -> String| {
        let texts: Vec<String> = window.iter().map(f).collect();
        texts.join("x")
    };
    let mut text = format!("size={}", join(&|d| d.size.to_string()));
    if window.iter().any(|d| d.stride != 1) {
        text += &format!(" stride={}", join(&|d| d.stride.to_string()));
    }
    if window
        .iter()
        .any(|d| d.padding_low != 0 || d.padding_high != 0)
    {
        text += &format!(
            " pad={}",
            join(&|d| format!("{}_{}", d.padding_low, d.padding_high))
        );
    }
    if window.iter().any(|d| d.base_dilation != 1) {
        text += &format!(" lhs_dilate={}", join(&|d| d.base_dilation.to_string()));
    }
    if window.iter().any(|d| d.window_dilation != 1) {
        text += &format!(" rhs_dilate={}", join(&|d| d.window_dilation.to_string()));
    }
    if window.iter().any(|d| d.reversal) {
        text += &format!(
            " rhs_reversal={}",
            join(&|d| u8::from(d.reversal).to_string())
        );
    }
    text
}

fn dim_labels(dims: &ConvDims) -> String {
    let lhs = labels(
        ('b', dims.input_batch),
        ('f', dims.input_feature),
        &dims.input_spatial,
    );
    let kernel = ('i', dims.kernel_input_feature);
    let rhs = labels(
        kernel,
        ('o', dims.kernel_output_feature),
        &dims.kernel_spatial,
    );
    let out = labels(
        ('b', dims.output_batch),
        ('f', dims.output_feature),
        &dims.output_spatial,
    );
    format!("{lhs}_{rhs}->{out}")
}

/// The letters and digits at their positions; `?` where nothing stands.
fn labels(first: (char, usize), second: (char, usize), spatial: &[usize]) -> String {
    let digits = spatial.iter().enumerate().map(|(i, p)| {
        let digit = u32::try_from(i).ok().and_then(|i| char::from_digit(i, 10));
        (digit.unwrap_or('?'), *p)
    });
    let all: Vec<(char, usize)> = [first, second].into_iter().chain(digits).collect();
    // Positions in a module that was never checked may lie anywhere.
    let rank = all
        .iter()
        .map(|(_, p)| p.saturating_add(1))
        .max()
        .unwrap_or(0)
        .min(64);
    let mut text = vec!['?'; rank];
    for (label, position) in all {
        if let Some(place) = text.get_mut(position) {
            *place = label;
        }
    }
    text.into_iter().collect()
}
