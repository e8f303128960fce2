//! From an opcode and its attributes to an [`Op`].

use crate::base::Diagnostic;
use crate::base::Result;
use crate::front::hlo_text::Reader;
use crate::front::hlo_text::attributes::Attributes;
use crate::hlo::BinaryOp;
use crate::hlo::Collective;
use crate::hlo::CollectiveKind;
use crate::hlo::ComparisonDirection;
use crate::hlo::ComparisonType;
use crate::hlo::CustomCall;
use crate::hlo::CustomCallApiVersion;
use crate::hlo::CustomCallSchedule;
use crate::hlo::DotAlgorithm;
use crate::hlo::DotDims;
use crate::hlo::Extra;
use crate::hlo::FftType;
use crate::hlo::FusionKind;
use crate::hlo::GatherDims;
use crate::hlo::Op;
use crate::hlo::PaddingType;
use crate::hlo::PrecisionConfig;
use crate::hlo::ReplicaGroups;
use crate::hlo::RngAlgorithm;
use crate::hlo::RngDistribution;
use crate::hlo::ScatterDims;
use crate::hlo::TriangularTranspose;
use crate::hlo::UnaryOp;
use crate::shape::Shape;

/// What is known of an instruction besides its attributes.
struct Context<'c> {
    operands: &'c [&'c Shape],
    shape: Option<&'c Shape>,
    extra: Option<&'c Extra>,
}

impl Reader<'_> {
    /// The op of an instruction; takes from `list` what belongs to it.
    pub(super) fn operation(
        &mut self,
        list: &mut Attributes<'_>,
        operands: &[&Shape],
        shape: Option<&Shape>,
        extra: Option<&Extra>,
    ) -> Result<Op> {
        let opcode = list.opcode();
        if let Some(op) = self.named(opcode, list, operands)? {
            return Ok(op);
        }
        let context = Context {
            operands,
            shape,
            extra,
        };
        if let Some(wrapped) = opcode.strip_suffix("-start") {
            return self.wrapped_start(wrapped, list, &context);
        }
        let wrapped = opcode
            .strip_suffix("-done")
            .or_else(|| opcode.strip_suffix("-update"));
        if wrapped.is_none_or(|w| !is_opcode(w)) {
            return Err(self.unknown(list.place(), "opcode", opcode));
        }
        list.take_text("async_execution_thread");
        Ok(if opcode.ends_with("-done") {
            Op::AsyncDone
        } else {
            Op::AsyncUpdate
        })
    }

    /// `custom-call-start` and its like: the attributes belong to the op that is wrapped.
    fn wrapped_start(
        &mut self,
        wrapped: &str,
        list: &mut Attributes<'_>,
        context: &Context<'_>,
    ) -> Result<Op> {
        let Some(Shape::Tuple(parts)) = context.shape else {
            return Err(self.start_shape(list));
        };
        let Some(result) = parts.get(1) else {
            return Err(self.start_shape(list));
        };
        let Some(op) = self.named(wrapped, list, context.operands)? else {
            return Err(self.unknown(list.place(), "opcode", list.opcode()));
        };
        let body = self.wrapped(op, context.operands, result, context.extra)?;
        let start = self.async_start(body, list)?;
        if let Op::AsyncStart {
            thread: Some(thread),
            ..
        } = &start
        {
            self.module.comps[body].execution_thread.clone_from(thread);
        }
        Ok(start)
    }

    fn start_shape(&self, list: &Attributes<'_>) -> Box<Diagnostic> {
        let message = format!(
            "`{}` with a shape unlike `((operands), result, state)`",
            list.opcode()
        );
        self.cursor.error_at(list.place(), message)
    }

    fn async_start(&mut self, body: crate::hlo::CompId, list: &mut Attributes<'_>) -> Result<Op> {
        Ok(Op::AsyncStart {
            body,
            thread: self
                .text(list, "async_execution_thread")?
                .filter(|t| t != "main"),
            output_to_operand_aliasing: list.aliasing(),
        })
    }

    /// A quoted attribute that has to be UTF-8.
    fn text(&self, list: &mut Attributes<'_>, name: &str) -> Result<Option<String>> {
        let Some(bytes) = list.take_text(name) else {
            return Ok(None);
        };
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => {
                let message = format!("`{name}` is not valid UTF-8");
                Err(self.cursor.error_at(list.place(), message))
            }
        }
    }

    /// The op of an opcode that stands in the list of opcodes.
    fn named(
        &mut self,
        opcode: &str,
        list: &mut Attributes<'_>,
        operands: &[&Shape],
    ) -> Result<Option<Op>> {
        if let Some(unary) = UnaryOp::from_name(opcode) {
            return Ok(Some(Op::Unary(unary)));
        }
        if let Some(binary) = BinaryOp::from_name(opcode) {
            return Ok(Some(Op::Binary(binary)));
        }
        if let Some(op) = plain(opcode) {
            return Ok(Some(op));
        }
        for family in [
            Self::data_movement,
            Self::contraction,
            Self::reduction,
            Self::collective,
        ] {
            if let Some(op) = family(self, opcode, list)? {
                return Ok(Some(op));
            }
        }
        if let Some(op) = self.structure(opcode, list, operands)? {
            return Ok(Some(op));
        }
        self.host(opcode, list, operands)
    }

    fn data_movement(&mut self, opcode: &str, list: &mut Attributes<'_>) -> Result<Option<Op>> {
        let cursor = &self.cursor;
        Ok(Some(match opcode {
            "iota" => Op::Iota {
                dim: list.need_size(cursor, "iota_dimension")?,
            },
            "reshape" => Op::Reshape {
                inferred_dim: list.take_size(cursor, "inferred_dimension")?,
            },
            "broadcast" => Op::Broadcast {
                dims: list.dims_or_none(cursor, "dimensions")?,
            },
            "transpose" => Op::Transpose {
                dims: list.need_dims(cursor, "dimensions")?,
            },
            "reverse" => Op::Reverse {
                dims: list.need_dims(cursor, "dimensions")?,
            },
            "slice" => Op::Slice {
                dims: list
                    .take_slices("slice")
                    .ok_or_else(|| list.missing(cursor, "slice"))?,
            },
            "dynamic-slice" => Op::DynamicSlice {
                sizes: list.need_dims(cursor, "dynamic_slice_sizes")?,
            },
            "pad" => Op::Pad {
                dims: list
                    .take_pads("padding")
                    .ok_or_else(|| list.missing(cursor, "padding"))?,
            },
            "concatenate" => Op::Concatenate {
                dim: list.need_dim(cursor, "dimensions")?,
            },
            "gather" => Op::Gather {
                dims: GatherDims {
                    offset_dims: list.need_dims(cursor, "offset_dims")?,
                    collapsed_slice_dims: list.need_dims(cursor, "collapsed_slice_dims")?,
                    start_index_map: list.need_dims(cursor, "start_index_map")?,
                    operand_batching_dims: list.dims_or_none(cursor, "operand_batching_dims")?,
                    start_indices_batching_dims: list
                        .dims_or_none(cursor, "start_indices_batching_dims")?,
                    index_vector_dim: list.need_size(cursor, "index_vector_dim")?,
                },
                slice_sizes: list.need_dims(cursor, "slice_sizes")?,
                indices_are_sorted: list.flag("indices_are_sorted"),
            },
            "scatter" => Op::Scatter {
                dims: ScatterDims {
                    update_window_dims: list.need_dims(cursor, "update_window_dims")?,
                    inserted_window_dims: list.need_dims(cursor, "inserted_window_dims")?,
                    scatter_dims_to_operand_dims: list
                        .need_dims(cursor, "scatter_dims_to_operand_dims")?,
                    input_batching_dims: list.dims_or_none(cursor, "input_batching_dims")?,
                    scatter_indices_batching_dims: list
                        .dims_or_none(cursor, "scatter_indices_batching_dims")?,
                    index_vector_dim: list.need_size(cursor, "index_vector_dim")?,
                },
                body: list.need_comp(cursor, "to_apply")?,
                indices_are_sorted: list.flag("indices_are_sorted"),
                unique_indices: list.flag("unique_indices"),
            },
            "get-dimension-size" => Op::GetDimensionSize {
                dim: list.need_dim(cursor, "dimensions")?,
            },
            "set-dimension-size" => Op::SetDimensionSize {
                dim: list.need_dim(cursor, "dimensions")?,
            },
            _ => return Ok(None),
        }))
    }

    fn dot_dims(&mut self, list: &mut Attributes<'_>) -> Result<DotDims> {
        let cursor = &self.cursor;
        Ok(DotDims {
            lhs_contracting: list.dims_or_none(cursor, "lhs_contracting_dims")?,
            rhs_contracting: list.dims_or_none(cursor, "rhs_contracting_dims")?,
            lhs_batch: list.dims_or_none(cursor, "lhs_batch_dims")?,
            rhs_batch: list.dims_or_none(cursor, "rhs_batch_dims")?,
        })
    }

    fn precision(&mut self, list: &mut Attributes<'_>) -> Result<PrecisionConfig> {
        let algorithm = list.take_word(&self.cursor, "algorithm", DotAlgorithm::from_name)?;
        Ok(PrecisionConfig {
            operand_precision: list
                .take_precisions("operand_precision")
                .unwrap_or_default(),
            algorithm: algorithm.unwrap_or(DotAlgorithm::Unset),
        })
    }

    fn contraction(&mut self, opcode: &str, list: &mut Attributes<'_>) -> Result<Option<Op>> {
        Ok(Some(match opcode {
            "dot" => Op::Dot {
                dims: self.dot_dims(list)?,
                precision: self.precision(list)?,
                sparsity: list.take_raw("sparsity").into_iter().collect(),
            },
            "ragged-dot" => Op::RaggedDot {
                dims: self.dot_dims(list)?,
                lhs_ragged: list.dims_or_none(&self.cursor, "lhs_ragged_dims")?,
                rhs_group: list.dims_or_none(&self.cursor, "rhs_group_dims")?,
                precision: self.precision(list)?,
            },
            "scaled-dot" => Op::ScaledDot {
                dims: self.dot_dims(list)?,
                precision: self.precision(list)?,
            },
            "convolution" => {
                let known = |word: &str| matches!(word, "unset" | "fprop").then_some(());
                list.take_word(&self.cursor, "conv_kind", known)?;
                let one = |n: Option<usize>| n.unwrap_or(1);
                Op::Convolution {
                    window: list.take_window("window").unwrap_or_default(),
                    dims: *list
                        .take_conv_dims("dim_labels")
                        .ok_or_else(|| list.missing(&self.cursor, "dim_labels"))?,
                    feature_group_count: one(list.take_size(&self.cursor, "feature_group_count")?),
                    batch_group_count: one(list.take_size(&self.cursor, "batch_group_count")?),
                    precision: self.precision(list)?,
                }
            }
            "fft" => Op::Fft {
                kind: list.need_word(&self.cursor, "fft_type", FftType::from_name)?,
                lengths: list.need_dims(&self.cursor, "fft_length")?,
            },
            "cholesky" => Op::Cholesky {
                lower: list.flag("lower"),
            },
            "triangular-solve" => Op::TriangularSolve {
                left_side: list.flag("left_side"),
                lower: list.flag("lower"),
                unit_diagonal: list.flag("unit_diagonal"),
                transpose: list
                    .take_word(&self.cursor, "transpose_a", TriangularTranspose::from_name)?
                    .unwrap_or(TriangularTranspose::NoTranspose),
            },
            _ => return Ok(None),
        }))
    }

    fn reduction(&mut self, opcode: &str, list: &mut Attributes<'_>) -> Result<Option<Op>> {
        let cursor = &self.cursor;
        Ok(Some(match opcode {
            "map" => Op::Map {
                dims: list.dims_or_none(cursor, "dimensions")?,
                body: list.need_comp(cursor, "to_apply")?,
            },
            "reduce" => Op::Reduce {
                dims: list.need_dims(cursor, "dimensions")?,
                body: list.need_comp(cursor, "to_apply")?,
            },
            "reduce-window" => Op::ReduceWindow {
                window: list.take_window("window").unwrap_or_default(),
                body: list.need_comp(cursor, "to_apply")?,
            },
            "select-and-scatter" => Op::SelectAndScatter {
                window: list.take_window("window").unwrap_or_default(),
                select: list.need_comp(cursor, "select")?,
                scatter: list.need_comp(cursor, "scatter")?,
            },
            "scan" => Op::Scan {
                dim: list.need_dim(cursor, "dimensions")?,
                body: list.need_comp(cursor, "to_apply")?,
                num_carries: list.need_size(cursor, "num_carries")?,
                is_reverse: list.flag("is_reverse"),
                is_associative: list.take_bool("is_associative"),
            },
            "sort" => Op::Sort {
                dim: list.need_dim(cursor, "dimensions")?,
                body: list.need_comp(cursor, "to_apply")?,
                is_stable: list.flag("is_stable"),
            },
            "topk" => Op::TopK {
                k: list.need_size(cursor, "k")?,
                largest: list.take_bool("largest").unwrap_or(true),
                is_stable: list.flag("is_stable"),
            },
            "batch-norm-training" | "batch-norm-inference" | "batch-norm-grad" => {
                let epsilon = list.take_float("epsilon");
                // Minus zero is zero: protos do not tell them apart.
                let epsilon = epsilon.ok_or_else(|| list.missing(cursor, "epsilon"))? as f32 + 0.0;
                let feature_index = list.need_size(cursor, "feature_index")?;
                match opcode {
                    "batch-norm-training" => Op::BatchNormTraining {
                        epsilon,
                        feature_index,
                    },
                    "batch-norm-inference" => Op::BatchNormInference {
                        epsilon,
                        feature_index,
                    },
                    _ => Op::BatchNormGrad {
                        epsilon,
                        feature_index,
                    },
                }
            }
            "reduce-precision" => Op::ReducePrecision {
                exponent_bits: self.bits(list, "exponent_bits")?,
                mantissa_bits: self.bits(list, "mantissa_bits")?,
            },
            "rng" => Op::Rng {
                distribution: list.need_word(cursor, "distribution", RngDistribution::from_name)?,
            },
            "rng-bit-generator" => Op::RngBitGenerator {
                algorithm: list.need_word(cursor, "algorithm", RngAlgorithm::from_name)?,
            },
            "rng-get-and-update-state" => Op::RngGetAndUpdateState {
                delta: list
                    .take_int("delta")
                    .ok_or_else(|| list.missing(cursor, "delta"))?,
            },
            _ => return Ok(None),
        }))
    }

    fn bits(&self, list: &mut Attributes<'_>, name: &str) -> Result<u32> {
        let bits = list.need_size(&self.cursor, name)?;
        u32::try_from(bits).map_err(|_| {
            let message = format!("`{name}` of {bits}");
            self.cursor.error_at(list.place(), message)
        })
    }

    fn structure(
        &mut self,
        opcode: &str,
        list: &mut Attributes<'_>,
        operands: &[&Shape],
    ) -> Result<Option<Op>> {
        let cursor = &self.cursor;
        Ok(Some(match opcode {
            "compare" => Op::Compare {
                direction: list.need_word(cursor, "direction", ComparisonDirection::from_name)?,
                ty: list
                    .take_word(cursor, "type", ComparisonType::from_name)?
                    .unwrap_or(ComparisonType::default_of(operands.first().copied())),
            },
            "get-tuple-element" => Op::GetTupleElement {
                index: list.need_size(cursor, "index")?,
            },
            "domain" => match list.take_domain("domain") {
                Some(domain) => Op::Domain(domain),
                None => return Err(list.missing(cursor, "domain")),
            },
            "copy-start" => Op::CopyStart {
                cross_program_prefetch_index: list.take_int("cross_program_prefetch_index"),
            },
            "call" => Op::Call {
                body: list.need_comp(cursor, "to_apply")?,
                is_composite: list.flag("is_composite"),
            },
            "while" => Op::While {
                condition: list.need_comp(cursor, "condition")?,
                body: list.need_comp(cursor, "body")?,
            },
            "conditional" => match list.take_comps("branch_computations") {
                Some(branches) => Op::Conditional { branches },
                None => Op::Conditional {
                    branches: vec![
                        list.need_comp(cursor, "true_computation")?,
                        list.need_comp(cursor, "false_computation")?,
                    ],
                },
            },
            "fusion" => Op::Fusion {
                kind: list.need_word(cursor, "kind", FusionKind::from_name)?,
                body: list.need_comp(cursor, "calls")?,
                output_to_operand_aliasing: list.aliasing(),
            },
            "async-start" => {
                let body = list.need_comp(cursor, "calls")?;
                self.async_start(body, list)?
            }
            "async-update" | "async-done" => {
                // Both repeat what the start has said, for old readers.
                list.take_comp("calls");
                list.take_text("async_execution_thread");
                if opcode == "async-done" {
                    Op::AsyncDone
                } else {
                    Op::AsyncUpdate
                }
            }
            "custom-call" => Op::CustomCall(Box::new(self.custom_call(list)?)),
            _ => return Ok(None),
        }))
    }

    fn custom_call(&mut self, list: &mut Attributes<'_>) -> Result<CustomCall> {
        let Some(target) = self.text(list, "custom_call_target")? else {
            return Err(list.missing(&self.cursor, "custom_call_target"));
        };
        let mut called = list.take_comps("called_computations").unwrap_or_default();
        called.extend(list.take_comp("to_apply"));
        let cursor = &self.cursor;
        let api = list.take_word(cursor, "api_version", CustomCallApiVersion::from_name)?;
        let schedule = list.take_word(cursor, "schedule", CustomCallSchedule::from_name)?;
        let padding = list.take_word(cursor, "padding_type", PaddingType::from_name)?;
        Ok(CustomCall {
            target,
            api_version: api.unwrap_or(CustomCallApiVersion::Original),
            has_side_effect: list.flag("custom_call_has_side_effect"),
            operand_layout_constraints: list.take_shapes("operand_layout_constraints"),
            output_to_operand_aliasing: list.aliasing(),
            called,
            literal: list.take_literal("literal"),
            window: list.take_window("window"),
            conv_dims: list.take_conv_dims("dim_labels").map(|dims| *dims),
            feature_group_count: list.take_int("feature_group_count").unwrap_or(1),
            batch_group_count: list.take_int("batch_group_count").unwrap_or(1),
            precision: self.precision(list)?,
            schedule: schedule.unwrap_or(CustomCallSchedule::None),
            padding_type: padding.unwrap_or(PaddingType::Invalid),
        })
    }

    fn collective(&mut self, opcode: &str, list: &mut Attributes<'_>) -> Result<Option<Op>> {
        let cursor = &self.cursor;
        let kind = match opcode {
            "all-gather" => CollectiveKind::AllGather {
                dim: list.need_dim(cursor, "dimensions")?,
            },
            "all-gather-start" => CollectiveKind::AllGatherStart {
                dim: list.need_dim(cursor, "dimensions")?,
            },
            "all-reduce" => CollectiveKind::AllReduce {
                body: list.need_comp(cursor, "to_apply")?,
            },
            "all-reduce-start" => CollectiveKind::AllReduceStart {
                body: list.need_comp(cursor, "to_apply")?,
            },
            "reduce-scatter" => CollectiveKind::ReduceScatter {
                dim: list.need_dim(cursor, "dimensions")?,
                body: list.need_comp(cursor, "to_apply")?,
            },
            "all-to-all" => CollectiveKind::AllToAll {
                dim: list.take_dim(cursor, "dimensions")?,
            },
            "ragged-all-to-all" => {
                list.take_dim(cursor, "dimensions")?;
                CollectiveKind::RaggedAllToAll
            }
            "collective-broadcast" => CollectiveKind::CollectiveBroadcast,
            "collective-permute" => CollectiveKind::CollectivePermute {
                pairs: self.pairs(list)?,
                slice_sizes: list.lists_or_none(cursor, "slice_sizes")?,
            },
            "collective-permute-start" => CollectiveKind::CollectivePermuteStart {
                pairs: self.pairs(list)?,
                slice_sizes: list.lists_or_none(cursor, "slice_sizes")?,
            },
            _ => return Ok(None),
        };
        // Text of one month in 2025 names the mode, which the two attributes below settle anyway.
        list.take_word(&self.cursor, "mode", |_| Some(()))?;
        let groups = list.take_groups("replica_groups");
        let collective = Collective {
            replica_groups: groups.unwrap_or(ReplicaGroups::List(Vec::new())),
            channel_id: list.take_int("channel_id"),
            use_global_device_ids: list.flag("use_global_device_ids"),
            constrain_layout: list.flag("constrain_layout"),
        };
        Ok(Some(Op::Collective {
            kind,
            collective: Box::new(collective),
        }))
    }

    fn pairs(&self, list: &mut Attributes<'_>) -> Result<Vec<(i64, i64)>> {
        let lists = list.lists_or_none(&self.cursor, "source_target_pairs")?;
        let pair = |list: &Vec<i64>| match list[..] {
            [source, target] => Some((source, target)),
            _ => None,
        };
        let pairs: Option<Vec<(i64, i64)>> = lists.iter().map(pair).collect();
        pairs.ok_or_else(|| {
            let message = "`source_target_pairs` with a list that is no pair";
            self.cursor.error_at(list.place(), message)
        })
    }

    fn host(
        &mut self,
        opcode: &str,
        list: &mut Attributes<'_>,
        operands: &[&Shape],
    ) -> Result<Option<Op>> {
        Ok(Some(match opcode {
            "infeed" => Op::Infeed {
                config: list.take_text("infeed_config").unwrap_or_default(),
            },
            "outfeed" => Op::Outfeed {
                config: list.take_text("outfeed_config").unwrap_or_default(),
                shape: list
                    .take_shape("outfeed_shape")
                    .or_else(|| operands.first().copied().cloned())
                    .ok_or_else(|| list.missing(&self.cursor, "outfeed_shape"))?,
            },
            "send" | "send-done" | "recv" | "recv-done" => {
                let channel_id = list.take_int("channel_id");
                let is_host_transfer = list.flag("is_host_transfer");
                match opcode {
                    "send" => Op::Send {
                        channel_id,
                        is_host_transfer,
                    },
                    "send-done" => Op::SendDone {
                        channel_id,
                        is_host_transfer,
                    },
                    "recv" => Op::Recv {
                        channel_id,
                        is_host_transfer,
                    },
                    _ => Op::RecvDone {
                        channel_id,
                        is_host_transfer,
                    },
                }
            }
            _ => return Ok(None),
        }))
    }
}

/// Opcodes without attributes of their own.
fn plain(opcode: &str) -> Option<Op> {
    Some(match opcode {
        "partition-id" => Op::PartitionId,
        "replica-id" => Op::ReplicaId,
        "select" => Op::Select,
        "clamp" => Op::Clamp,
        "convert" => Op::Convert,
        "bitcast-convert" => Op::BitcastConvert,
        "stochastic-convert" => Op::StochasticConvert,
        "copy" => Op::Copy,
        "bitcast" => Op::Bitcast,
        "dynamic-update-slice" => Op::DynamicUpdateSlice,
        "dynamic-reshape" => Op::DynamicReshape,
        "tuple" => Op::Tuple,
        "opt-barrier" => Op::OptimizationBarrier,
        "add-dependency" => Op::AddDependency,
        "after-all" => Op::AfterAll,
        "copy-done" => Op::CopyDone,
        "all-gather-done" => Op::AllGatherDone,
        "all-reduce-done" => Op::AllReduceDone,
        "collective-permute-done" => Op::CollectivePermuteDone,
        _ => return None,
    })
}

/// Opcodes with attributes that asynchronous instructions are known to wrap.
const WRAPPED: &[&str] = &[
    "all-to-all",
    "broadcast",
    "call",
    "cholesky",
    "collective-broadcast",
    "compare",
    "concatenate",
    "conditional",
    "convolution",
    "custom-call",
    "dot",
    "dynamic-slice",
    "fft",
    "fusion",
    "gather",
    "iota",
    "map",
    "pad",
    "ragged-all-to-all",
    "ragged-dot",
    "reduce",
    "reduce-precision",
    "reduce-scatter",
    "reduce-window",
    "reshape",
    "reverse",
    "rng",
    "rng-bit-generator",
    "scaled-dot",
    "scan",
    "scatter",
    "select-and-scatter",
    "slice",
    "sort",
    "topk",
    "transpose",
    "triangular-solve",
    "while",
];

fn is_opcode(word: &str) -> bool {
    UnaryOp::from_name(word).is_some()
        || BinaryOp::from_name(word).is_some()
        || plain(word).is_some()
        || WRAPPED.contains(&word)
}
