//! [`Op`] to the attribute fields of an instruction's message.

use crate::hlo::Collective;
use crate::hlo::CollectiveKind;
use crate::hlo::CompId;
use crate::hlo::CustomCall;
use crate::hlo::Instr;
use crate::hlo::Op;
use crate::hlo::ReplicaGroups;
use crate::proto::xla as pb;
use crate::wire::hlo::attributes as attr;
use crate::wire::literal::encode_literal;
use crate::wire::number::number;
use crate::wire::number::numbers;
use crate::wire::shape::encode_shape;

fn called(ids: &[CompId]) -> Vec<i64> {
    let ids = ids.iter();
    ids.map(|&id| number(crate::base::Id::index(id))).collect()
}

/// Fills in what the opcode says beyond name, shape and operands.
pub(super) fn encode_op(instr: &Instr, p: &mut pb::HloInstructionProto) {
    p.called_computation_ids = called(&instr.op.called());
    leaf_or_elementwise(instr, p);
    data(&instr.op, p);
    contraction(instr, p);
    reduction(&instr.op, p);
    own_kernel(&instr.op, p);
    structure(&instr.op, p);
    host(&instr.op, p);
}

fn leaf_or_elementwise(instr: &Instr, p: &mut pb::HloInstructionProto) {
    match &instr.op {
        Op::Parameter {
            number: n,
            leaf_replication,
        } => {
            p.parameter_number = number(*n);
            if !leaf_replication.is_empty() {
                p.parameter_replication = Some(pb::ParameterReplication {
                    replicated_at_leaf_buffers: leaf_replication.clone(),
                });
            }
        }
        Op::Constant(literal) => {
            let mut proto = encode_literal(literal);
            // Upstream compares the literal's shape with the instruction's, layouts included.
            if let (crate::literal::Literal::Array(array), Some(shape)) =
                (literal, instr.shape.as_array())
                && array.shape().layout_or_default() != shape.layout_or_default()
            {
                let row_major = array.reshaped(shape.clone());
                proto = encode_literal(&crate::literal::Literal::Array(row_major));
            }
            p.literal = Some(proto);
        }
        Op::Iota { dim } => p.dimensions = numbers(&[*dim]),
        Op::Compare { direction, ty } => {
            p.comparison_direction = direction.name().to_owned();
            p.comparison_type = ty.name().to_owned();
        }
        Op::ReducePrecision {
            exponent_bits,
            mantissa_bits,
        } => {
            p.exponent_bits = i32::try_from(*exponent_bits).unwrap_or(i32::MAX);
            p.mantissa_bits = i32::try_from(*mantissa_bits).unwrap_or(i32::MAX);
        }
        Op::Map { dims, .. } => p.dimensions = numbers(dims),
        _ => {}
    }
}

fn data(op: &Op, p: &mut pb::HloInstructionProto) {
    match op {
        Op::Reshape {
            inferred_dim: Some(dim),
        } => p.dimensions = numbers(&[*dim]),
        Op::Broadcast { dims } | Op::Transpose { dims } | Op::Reverse { dims } => {
            p.dimensions = numbers(dims);
        }
        Op::Slice { dims } => {
            let dim = |d: &crate::hlo::SliceDim| pb::hlo_instruction_proto::SliceDimensions {
                start: number(d.start),
                limit: number(d.limit),
                stride: number(d.stride),
            };
            p.slice_dimensions = dims.iter().map(dim).collect();
        }
        Op::DynamicSlice { sizes } => p.dynamic_slice_sizes = numbers(sizes),
        Op::Pad { dims } => p.padding_config = Some(attr::encode_padding(dims)),
        Op::Concatenate { dim } | Op::GetDimensionSize { dim } | Op::SetDimensionSize { dim } => {
            p.dimensions = numbers(&[*dim]);
        }
        Op::Gather {
            dims,
            slice_sizes,
            indices_are_sorted,
        } => {
            p.gather_dimension_numbers = Some(attr::encode_gather_dims(dims));
            p.gather_slice_sizes = numbers(slice_sizes);
            p.indices_are_sorted = *indices_are_sorted;
        }
        Op::Scatter {
            dims,
            indices_are_sorted,
            unique_indices,
            ..
        } => {
            p.scatter_dimension_numbers = Some(attr::encode_scatter_dims(dims));
            p.indices_are_sorted = *indices_are_sorted;
            p.unique_indices = *unique_indices;
        }
        _ => {}
    }
}

fn contraction(instr: &Instr, p: &mut pb::HloInstructionProto) {
    match &instr.op {
        Op::Dot {
            dims, precision, ..
        }
        | Op::ScaledDot { dims, precision } => {
            p.dot_dimension_numbers = Some(attr::encode_dot_dims(dims));
            p.precision_config = Some(attr::encode_precision(precision, instr.operands.len()));
        }
        Op::RaggedDot {
            dims,
            lhs_ragged,
            rhs_group,
            precision,
        } => {
            p.ragged_dot_dimension_numbers = Some(pb::RaggedDotDimensionNumbers {
                dot_dimension_numbers: Some(attr::encode_dot_dims(dims)),
                lhs_ragged_dimensions: numbers(lhs_ragged),
                rhs_group_dimensions: numbers(rhs_group),
            });
            p.precision_config = Some(attr::encode_precision(precision, 2));
        }
        Op::Convolution {
            window,
            dims,
            feature_group_count,
            batch_group_count,
            precision,
        } => {
            p.window = Some(attr::encode_window(window));
            p.convolution_dimension_numbers = Some(attr::encode_conv_dims(dims));
            p.feature_group_count = number(*feature_group_count);
            p.batch_group_count = number(*batch_group_count);
            p.precision_config = Some(attr::encode_precision(precision, 2));
        }
        _ => {}
    }
}

fn reduction(op: &Op, p: &mut pb::HloInstructionProto) {
    match op {
        Op::Reduce { dims, .. } => p.dimensions = numbers(dims),
        Op::ReduceWindow { window, .. } | Op::SelectAndScatter { window, .. } => {
            p.window = Some(attr::encode_window(window));
        }
        Op::Scan {
            dim,
            num_carries,
            is_reverse,
            is_associative,
            ..
        } => {
            p.dimensions = numbers(&[*dim]);
            p.num_carries = number(*num_carries);
            p.is_reverse = *is_reverse;
            p.is_associative = match is_associative {
                None => 0,
                Some(true) => 1,
                Some(false) => 2,
            };
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
            p.epsilon = *epsilon;
            p.feature_index = number(*feature_index);
        }
        _ => {}
    }
}

fn own_kernel(op: &Op, p: &mut pb::HloInstructionProto) {
    match op {
        Op::Sort { dim, is_stable, .. } => {
            p.dimensions = numbers(&[*dim]);
            p.is_stable = *is_stable;
        }
        Op::TopK {
            k,
            largest,
            is_stable,
        } => {
            p.k = number(*k);
            p.largest = *largest;
            p.is_stable = *is_stable;
        }
        Op::Fft { kind, lengths } => {
            p.fft_type = attr::FFT.encode(*kind);
            p.fft_length = numbers(lengths);
        }
        Op::Cholesky { lower } => p.cholesky_options = Some(pb::CholeskyOptions { lower: *lower }),
        Op::TriangularSolve {
            left_side,
            lower,
            unit_diagonal,
            transpose,
        } => {
            p.triangular_solve_options = Some(pb::TriangularSolveOptions {
                left_side: *left_side,
                lower: *lower,
                unit_diagonal: *unit_diagonal,
                transpose_a: attr::TRANSPOSE.encode(*transpose),
            });
        }
        Op::Rng { distribution } => p.distribution = attr::DISTRIBUTION.encode(*distribution),
        Op::RngBitGenerator { algorithm } => p.rng_algorithm = attr::RNG.encode(*algorithm),
        Op::RngGetAndUpdateState { delta } => p.delta = *delta,
        _ => {}
    }
}

fn structure(op: &Op, p: &mut pb::HloInstructionProto) {
    use pb::hlo_instruction_proto::OptionalCrossProgramPrefetchIndex as Prefetch;
    match op {
        Op::GetTupleElement { index } => p.tuple_index = number(*index),
        Op::Domain(domain) => {
            p.domain_entry_sharding = domain.entry.as_ref().map(attr::encode_sharding);
            p.domain_exit_sharding = domain.exit.as_ref().map(attr::encode_sharding);
        }
        Op::CopyStart {
            cross_program_prefetch_index: Some(index),
        } => {
            let index = i32::try_from(*index).unwrap_or(i32::MAX);
            p.optional_cross_program_prefetch_index =
                Some(Prefetch::CrossProgramPrefetchIndex(index));
        }
        Op::Call { is_composite, .. } => p.is_composite = *is_composite,
        Op::While { condition, body } => p.called_computation_ids = called(&[*body, *condition]),
        Op::Fusion {
            kind,
            output_to_operand_aliasing,
            ..
        } => {
            p.fusion_kind = kind.name().to_owned();
            aliasing(output_to_operand_aliasing, p);
        }
        Op::AsyncStart {
            thread,
            output_to_operand_aliasing,
            ..
        } => {
            aliasing(output_to_operand_aliasing, p);
            p.async_execution_thread = thread.clone().unwrap_or_else(|| "main".to_owned());
        }
        Op::CustomCall(call) => custom_call(call, p),
        Op::Collective { kind, collective } => self::collective(kind, collective, p),
        _ => {}
    }
}

fn aliasing(aliases: &[(Vec<i64>, i64, Vec<i64>)], p: &mut pb::HloInstructionProto) {
    let alias = |(output, operand, index): &(Vec<i64>, i64, Vec<i64>)| pb::OutputOperandAliasing {
        output_shape_index: output.clone(),
        operand_index: *operand,
        operand_shape_index: index.clone(),
    };
    p.output_operand_aliasing = aliases.iter().map(alias).collect();
}

fn custom_call(call: &CustomCall, p: &mut pb::HloInstructionProto) {
    p.custom_call_target = call.target.clone();
    p.custom_call_api_version = attr::API_VERSION.encode(call.api_version);
    p.custom_call_has_side_effect = call.has_side_effect;
    if let Some(shapes) = &call.operand_layout_constraints {
        p.constrain_layout = true;
        p.operand_shapes_with_layout = shapes.iter().map(encode_shape).collect();
    }
    aliasing(&call.output_to_operand_aliasing, p);
    p.literal = call.literal.as_ref().map(encode_literal);
    p.window = call.window.as_ref().map(attr::encode_window);
    p.convolution_dimension_numbers = call.conv_dims.as_ref().map(attr::encode_conv_dims);
    p.feature_group_count = call.feature_group_count.max(1);
    p.batch_group_count = call.batch_group_count.max(1);
    p.precision_config = Some(attr::encode_precision(&call.precision, 0));
    p.custom_call_schedule = attr::SCHEDULE.encode(call.schedule);
    p.padding_type = attr::PADDING.encode(call.padding_type);
}

fn collective(kind: &CollectiveKind, collective: &Collective, p: &mut pb::HloInstructionProto) {
    match kind {
        CollectiveKind::AllGather { dim }
        | CollectiveKind::AllGatherStart { dim }
        | CollectiveKind::ReduceScatter { dim, .. }
        | CollectiveKind::AllToAll { dim: Some(dim) } => p.dimensions = numbers(&[*dim]),
        CollectiveKind::CollectivePermute { pairs, .. }
        | CollectiveKind::CollectivePermuteStart { pairs, .. } => {
            let pairs = pairs.iter();
            p.source_target_pairs = pairs
                .map(|&(source, target)| pb::SourceTarget { source, target })
                .collect();
        }
        CollectiveKind::AllReduce { .. }
        | CollectiveKind::AllReduceStart { .. }
        | CollectiveKind::AllToAll { dim: None }
        | CollectiveKind::RaggedAllToAll
        | CollectiveKind::CollectiveBroadcast => {}
    }
    p.channel_id = collective.channel_id.unwrap_or(0);
    p.use_global_device_ids = collective.use_global_device_ids;
    p.constrain_layout = collective.constrain_layout;
    p.replica_group_list = replica_groups(&collective.replica_groups);
}

fn replica_groups(groups: &ReplicaGroups) -> Option<pb::hlo_instruction_proto::ReplicaGroupList> {
    use pb::hlo_instruction_proto::ReplicaGroupList as Groups;
    match groups {
        ReplicaGroups::List(groups) => {
            let groups = groups.iter();
            Some(Groups::CollectiveDeviceList(
                pb::CollectiveDeviceListProto {
                    replica_groups: groups
                        .map(|ids| pb::ReplicaGroup {
                            replica_ids: ids.clone(),
                        })
                        .collect(),
                },
            ))
        }
        ReplicaGroups::Iota {
            dims,
            reshape,
            transpose,
        } => Some(Groups::IotaCollectiveDeviceList(
            pb::IotaReplicaGroupListProto {
                num_replica_groups: dims.first().copied().unwrap_or(1),
                num_devices_per_group: dims.get(1).copied().unwrap_or(1),
                iota_reshape_dims: reshape.clone(),
                iota_transpose_perm: transpose
                    .iter()
                    .map(|&p| i32::try_from(p).unwrap_or(i32::MAX))
                    .collect(),
            },
        )),
    }
}

fn host(op: &Op, p: &mut pb::HloInstructionProto) {
    match op {
        Op::Infeed { config } => p.infeed_config = config.clone(),
        Op::Outfeed { config, shape } => {
            p.outfeed_config = config.clone();
            p.outfeed_shape = Some(encode_shape(shape));
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
            p.channel_id = channel_id.unwrap_or(0);
            p.is_host_transfer = *is_host_transfer;
        }
        _ => {}
    }
}
