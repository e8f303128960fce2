//! Opcodes and the attribute fields each of them reads, to [`Op`].

use smallvec::SmallVec;

use crate::base::Result;
use crate::hlo::BinaryOp;
use crate::hlo::Collective;
use crate::hlo::CollectiveKind;
use crate::hlo::CompId;
use crate::hlo::ComparisonDirection;
use crate::hlo::ComparisonType;
use crate::hlo::CustomCall;
use crate::hlo::Domain;
use crate::hlo::FusionKind;
use crate::hlo::Op;
use crate::hlo::ReplicaGroups;
use crate::hlo::SliceDim;
use crate::hlo::UnaryOp;
use crate::hlo::Window;
use crate::proto::xla as pb;
use crate::shape::Dims;
use crate::shape::Shape;
use crate::wire::hlo::attributes as attr;
use crate::wire::hlo::mesh::groups;
use crate::wire::literal::decode_literal;
use crate::wire::number::bad;
use crate::wire::number::index;
use crate::wire::number::indices;
use crate::wire::number::unsupported;
use crate::wire::shape::decode_shape;

/// An instruction's message with what was resolved already.
pub(super) struct Source<'a> {
    pub(super) proto: &'a pb::HloInstructionProto,
    pub(super) shape: &'a Shape,
    pub(super) called: SmallVec<[CompId; 2]>,
    pub(super) first_operand: Option<&'a Shape>,
}

impl Source<'_> {
    fn body(&self, i: usize) -> Result<CompId> {
        let body = self.called.get(i).copied();
        body.ok_or_else(|| {
            bad(format!(
                "{} computations called, wanted more",
                self.called.len()
            ))
        })
    }
    fn dims(&self) -> Result<Dims> {
        indices(&self.proto.dimensions, "a dimension number")
    }
    fn dim(&self) -> Result<usize> {
        match self.proto.dimensions.as_slice() {
            &[dim] => index(dim, "a dimension number"),
            other => Err(bad(format!("dimensions are {other:?}, wanted one"))),
        }
    }
    fn window(&self) -> Result<Window> {
        let window = self.proto.window.as_ref();
        attr::decode_window(window.ok_or_else(|| bad("no window"))?)
    }
    fn channel(&self) -> Option<i64> {
        (self.proto.channel_id > 0).then_some(self.proto.channel_id)
    }
}

fn required<'a, T>(message: &'a Option<T>, what: &str) -> Result<&'a T> {
    message.as_ref().ok_or_else(|| bad(format!("no {what}")))
}

/// The op of an instruction.
pub(super) fn decode_op(s: &Source<'_>) -> Result<Op> {
    let opcode = s.proto.opcode.as_str();
    if let Some(op) = UnaryOp::from_name(opcode) {
        return Ok(Op::Unary(op));
    }
    if let Some(op) = BinaryOp::from_name(opcode) {
        return Ok(Op::Binary(op));
    }
    let families = [
        simple,
        data,
        contraction,
        window_or_reduce,
        own_kernel,
        structure,
        host,
        collective,
    ];
    for family in families {
        if let Some(op) = family(opcode, s)? {
            return Ok(op);
        }
    }
    Err(crate::base::Diagnostic::unsupported(
        crate::base::codes::UNKNOWN_WORD,
        format!("the opcode `{opcode}` is not known"),
    ))
}

fn simple(opcode: &str, s: &Source<'_>) -> Result<Option<Op>> {
    let p = s.proto;
    Ok(Some(match opcode {
        "parameter" => {
            let replication = p.parameter_replication.as_ref();
            Op::Parameter {
                number: index(p.parameter_number, "a parameter number")?,
                leaf_replication: replication
                    .map(|r| r.replicated_at_leaf_buffers.clone())
                    .unwrap_or_default(),
            }
        }
        "constant" => {
            let literal = decode_literal(required(&p.literal, "literal")?)?;
            if !literal.shape().same_ignoring_layout(s.shape) {
                return Err(bad("the literal's shape is not the constant's"));
            }
            Op::Constant(literal)
        }
        "iota" => Op::Iota { dim: s.dim()? },
        "partition-id" => Op::PartitionId,
        "replica-id" => Op::ReplicaId,
        "compare" => compare(s)?,
        "select" => Op::Select,
        "clamp" => Op::Clamp,
        "convert" => Op::Convert,
        "bitcast-convert" => Op::BitcastConvert,
        "reduce-precision" => Op::ReducePrecision {
            exponent_bits: bits(p.exponent_bits)?,
            mantissa_bits: bits(p.mantissa_bits)?,
        },
        "stochastic-convert" => Op::StochasticConvert,
        "copy" => Op::Copy,
        "map" => Op::Map {
            dims: s.dims()?,
            body: s.body(0)?,
        },
        _ => return Ok(None),
    }))
}

fn bits(number: i32) -> Result<u32> {
    u32::try_from(number).map_err(|_| bad(format!("{number} bits")))
}

fn compare(s: &Source<'_>) -> Result<Op> {
    let direction = &s.proto.comparison_direction;
    let direction = ComparisonDirection::from_name(direction)
        .ok_or_else(|| bad(format!("the comparison direction is `{direction}`")))?;
    let ty = match s.proto.comparison_type.as_str() {
        "" => ComparisonType::default_of(s.first_operand),
        name => ComparisonType::from_name(name)
            .ok_or_else(|| bad(format!("the comparison type is `{name}`")))?,
    };
    Ok(Op::Compare { direction, ty })
}

fn data(opcode: &str, s: &Source<'_>) -> Result<Option<Op>> {
    let p = s.proto;
    Ok(Some(match opcode {
        "bitcast" => Op::Bitcast,
        "reshape" => Op::Reshape {
            inferred_dim: match p.dimensions.first() {
                Some(&dim) if dim >= 0 => Some(index(dim, "a dimension number")?),
                _ => None,
            },
        },
        "broadcast" => Op::Broadcast { dims: s.dims()? },
        "transpose" => Op::Transpose { dims: s.dims()? },
        "reverse" => Op::Reverse { dims: s.dims()? },
        "slice" => {
            let dim = |d: &pb::hlo_instruction_proto::SliceDimensions| {
                Ok(SliceDim {
                    start: index(d.start, "a slice start")?,
                    limit: index(d.limit, "a slice limit")?,
                    stride: index(d.stride, "a slice stride")?,
                })
            };
            Op::Slice {
                dims: p.slice_dimensions.iter().map(dim).collect::<Result<_>>()?,
            }
        }
        "dynamic-slice" => Op::DynamicSlice {
            sizes: indices(&p.dynamic_slice_sizes, "a slice size")?,
        },
        "dynamic-update-slice" => Op::DynamicUpdateSlice,
        "pad" => Op::Pad {
            dims: attr::decode_padding(required(&p.padding_config, "padding")?),
        },
        "concatenate" => Op::Concatenate { dim: s.dim()? },
        "gather" => Op::Gather {
            dims: attr::decode_gather_dims(required(
                &p.gather_dimension_numbers,
                "gather dimension numbers",
            )?)?,
            slice_sizes: indices(&p.gather_slice_sizes, "a slice size")?,
            indices_are_sorted: p.indices_are_sorted,
        },
        "scatter" => Op::Scatter {
            dims: attr::decode_scatter_dims(required(
                &p.scatter_dimension_numbers,
                "scatter dimension numbers",
            )?)?,
            body: s.body(0)?,
            indices_are_sorted: p.indices_are_sorted,
            unique_indices: p.unique_indices,
        },
        "get-dimension-size" => Op::GetDimensionSize { dim: s.dim()? },
        "set-dimension-size" => Op::SetDimensionSize { dim: s.dim()? },
        "dynamic-reshape" => Op::DynamicReshape,
        _ => return Ok(None),
    }))
}

/// A count whose absence means one.
fn count(value: i64, what: &str) -> Result<usize> {
    index(value.max(1), what)
}

fn contraction(opcode: &str, s: &Source<'_>) -> Result<Option<Op>> {
    let p = s.proto;
    let precision = || attr::decode_precision(p.precision_config.as_ref());
    let dot = || {
        let dims = required(&p.dot_dimension_numbers, "dot dimension numbers")?;
        attr::decode_dot_dims(dims)
    };
    Ok(Some(match opcode {
        "dot" => Op::Dot {
            dims: dot()?,
            precision: precision()?,
            sparsity: Vec::new(),
        },
        "scaled-dot" => Op::ScaledDot {
            dims: dot()?,
            precision: precision()?,
        },
        "ragged-dot" => {
            let ragged = required(
                &p.ragged_dot_dimension_numbers,
                "ragged dot dimension numbers",
            )?;
            let dims = required(&ragged.dot_dimension_numbers, "dot dimension numbers")?;
            let what = "a dimension number of a ragged dot";
            Op::RaggedDot {
                dims: attr::decode_dot_dims(dims)?,
                lhs_ragged: indices(&ragged.lhs_ragged_dimensions, what)?,
                rhs_group: indices(&ragged.rhs_group_dimensions, what)?,
                precision: precision()?,
            }
        }
        "convolution" => Op::Convolution {
            window: s.window()?,
            dims: attr::decode_conv_dims(required(
                &p.convolution_dimension_numbers,
                "convolution dimension numbers",
            )?)?,
            feature_group_count: count(p.feature_group_count, "a feature group count")?,
            batch_group_count: count(p.batch_group_count, "a batch group count")?,
            precision: precision()?,
        },
        _ => return Ok(None),
    }))
}

fn window_or_reduce(opcode: &str, s: &Source<'_>) -> Result<Option<Op>> {
    let p = s.proto;
    let epsilon = p.epsilon;
    let feature_index = || index(p.feature_index, "a feature index");
    Ok(Some(match opcode {
        "reduce" => Op::Reduce {
            dims: s.dims()?,
            body: s.body(0)?,
        },
        "reduce-window" => Op::ReduceWindow {
            window: s.window()?,
            body: s.body(0)?,
        },
        "select-and-scatter" => Op::SelectAndScatter {
            window: s.window()?,
            select: s.body(0)?,
            scatter: s.body(1)?,
        },
        "scan" => Op::Scan {
            dim: s.dim()?,
            body: s.body(0)?,
            num_carries: index(p.num_carries, "a number of carries")?,
            is_reverse: p.is_reverse,
            is_associative: match p.is_associative {
                1 => Some(true),
                2 => Some(false),
                _ => None,
            },
        },
        "batch-norm-training" => Op::BatchNormTraining {
            epsilon,
            feature_index: feature_index()?,
        },
        "batch-norm-inference" => Op::BatchNormInference {
            epsilon,
            feature_index: feature_index()?,
        },
        "batch-norm-grad" => Op::BatchNormGrad {
            epsilon,
            feature_index: feature_index()?,
        },
        _ => return Ok(None),
    }))
}

fn own_kernel(opcode: &str, s: &Source<'_>) -> Result<Option<Op>> {
    let p = s.proto;
    Ok(Some(match opcode {
        "sort" => Op::Sort {
            dim: s.dim()?,
            body: s.body(0)?,
            is_stable: p.is_stable,
        },
        "topk" => Op::TopK {
            k: index(p.k, "k")?,
            largest: p.largest,
            is_stable: p.is_stable,
        },
        "fft" => Op::Fft {
            kind: attr::FFT.decode(p.fft_type)?,
            lengths: indices(&p.fft_length, "a length")?,
        },
        "cholesky" => Op::Cholesky {
            lower: p.cholesky_options.as_ref().is_some_and(|o| o.lower),
        },
        "triangular-solve" => {
            let options = required(&p.triangular_solve_options, "options")?;
            Op::TriangularSolve {
                left_side: options.left_side,
                lower: options.lower,
                unit_diagonal: options.unit_diagonal,
                transpose: attr::TRANSPOSE.decode(options.transpose_a)?,
            }
        }
        "rng" => Op::Rng {
            distribution: attr::DISTRIBUTION.decode(p.distribution)?,
        },
        "rng-bit-generator" => Op::RngBitGenerator {
            algorithm: attr::RNG.decode(p.rng_algorithm)?,
        },
        "rng-get-and-update-state" => Op::RngGetAndUpdateState { delta: p.delta },
        _ => return Ok(None),
    }))
}

fn structure(opcode: &str, s: &Source<'_>) -> Result<Option<Op>> {
    use pb::hlo_instruction_proto::OptionalCrossProgramPrefetchIndex as Prefetch;
    let p = s.proto;
    Ok(Some(match opcode {
        "tuple" => Op::Tuple,
        "get-tuple-element" => Op::GetTupleElement {
            index: index(p.tuple_index, "a tuple index")?,
        },
        "opt-barrier" => Op::OptimizationBarrier,
        "add-dependency" => Op::AddDependency,
        "after-all" => Op::AfterAll,
        "domain" => {
            let (entry, exit) = (&p.domain_entry_sharding, &p.domain_exit_sharding);
            Op::Domain(Box::new(Domain {
                kind: "sharding".to_owned(),
                entry: entry.as_ref().map(attr::decode_sharding).transpose()?,
                exit: exit.as_ref().map(attr::decode_sharding).transpose()?,
            }))
        }
        "copy-start" => Op::CopyStart {
            cross_program_prefetch_index: p
                .optional_cross_program_prefetch_index
                .as_ref()
                .map(|Prefetch::CrossProgramPrefetchIndex(i)| i64::from(*i)),
        },
        "copy-done" => Op::CopyDone,
        "call" => Op::Call {
            body: s.body(0)?,
            is_composite: p.is_composite,
        },
        "while" => Op::While {
            body: s.body(0)?,
            condition: s.body(1)?,
        },
        "conditional" => Op::Conditional {
            branches: s.called.to_vec(),
        },
        "fusion" => Op::Fusion {
            kind: FusionKind::from_name(&p.fusion_kind)
                .ok_or_else(|| bad(format!("the fusion kind is `{}`", p.fusion_kind)))?,
            body: s.body(0)?,
            output_to_operand_aliasing: aliasing(p),
        },
        "async-start" => Op::AsyncStart {
            body: s.body(0)?,
            thread: match p.async_execution_thread.as_str() {
                "" | "main" => None,
                thread => Some(thread.to_owned()),
            },
            output_to_operand_aliasing: aliasing(p),
        },
        "async-update" => Op::AsyncUpdate,
        "async-done" => Op::AsyncDone,
        "custom-call" => custom_call(s)?,
        _ => return Ok(None),
    }))
}

fn aliasing(p: &pb::HloInstructionProto) -> Vec<(Vec<i64>, i64, Vec<i64>)> {
    let aliases = p.output_operand_aliasing.iter();
    aliases
        .map(|a| {
            (
                a.output_shape_index.clone(),
                a.operand_index,
                a.operand_shape_index.clone(),
            )
        })
        .collect()
}

fn custom_call(s: &Source<'_>) -> Result<Op> {
    let p = s.proto;
    let constraints = p.operand_shapes_with_layout.iter().map(decode_shape);
    let window = p.window.as_ref();
    let conv_dims = p.convolution_dimension_numbers.as_ref();
    Ok(Op::CustomCall(Box::new(CustomCall {
        target: p.custom_call_target.clone(),
        api_version: attr::API_VERSION.decode(p.custom_call_api_version)?,
        has_side_effect: p.custom_call_has_side_effect,
        operand_layout_constraints: match p.constrain_layout {
            true => Some(constraints.collect::<Result<_>>()?),
            false => None,
        },
        output_to_operand_aliasing: aliasing(p),
        called: s.called.to_vec(),
        literal: p.literal.as_ref().map(decode_literal).transpose()?,
        window: window.map(attr::decode_window).transpose()?,
        conv_dims: conv_dims.map(attr::decode_conv_dims).transpose()?,
        feature_group_count: p.feature_group_count.max(1),
        batch_group_count: p.batch_group_count.max(1),
        precision: attr::decode_precision(p.precision_config.as_ref())?,
        schedule: attr::SCHEDULE.decode(p.custom_call_schedule)?,
        padding_type: attr::PADDING.decode(p.padding_type)?,
    })))
}

fn host(opcode: &str, s: &Source<'_>) -> Result<Option<Op>> {
    let p = s.proto;
    let (channel_id, is_host_transfer) = (s.channel(), p.is_host_transfer);
    Ok(Some(match opcode {
        "infeed" => Op::Infeed {
            config: p.infeed_config.clone(),
        },
        "outfeed" => Op::Outfeed {
            config: p.outfeed_config.clone(),
            shape: decode_shape(required(&p.outfeed_shape, "outfeed shape")?)?,
        },
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
        "recv-done" => Op::RecvDone {
            channel_id,
            is_host_transfer,
        },
        "all-gather-done" => Op::AllGatherDone,
        "all-reduce-done" => Op::AllReduceDone,
        "collective-permute-done" => Op::CollectivePermuteDone,
        _ => return Ok(None),
    }))
}

fn collective(opcode: &str, s: &Source<'_>) -> Result<Option<Op>> {
    let p = s.proto;
    let pairs = || {
        p.source_target_pairs
            .iter()
            .map(|pair| (pair.source, pair.target))
    };
    if opcode.starts_with("collective-permute") && !p.dynamic_slice_sizes.is_empty() {
        return Err(unsupported(format!(
            "`{opcode}` with slice sizes is not supported"
        )));
    }
    let kind = match opcode {
        "all-gather" => CollectiveKind::AllGather { dim: s.dim()? },
        "all-gather-start" => CollectiveKind::AllGatherStart { dim: s.dim()? },
        "all-reduce" => CollectiveKind::AllReduce { body: s.body(0)? },
        "all-reduce-start" => CollectiveKind::AllReduceStart { body: s.body(0)? },
        "reduce-scatter" => CollectiveKind::ReduceScatter {
            dim: s.dim()?,
            body: s.body(0)?,
        },
        "all-to-all" => CollectiveKind::AllToAll {
            dim: match p.dimensions.first() {
                Some(&dim) => Some(index(dim, "a dimension number")?),
                None => None,
            },
        },
        "ragged-all-to-all" => CollectiveKind::RaggedAllToAll,
        "collective-broadcast" => CollectiveKind::CollectiveBroadcast,
        "collective-permute" => CollectiveKind::CollectivePermute {
            pairs: pairs().collect(),
            slice_sizes: Vec::new(),
        },
        "collective-permute-start" => CollectiveKind::CollectivePermuteStart {
            pairs: pairs().collect(),
            slice_sizes: Vec::new(),
        },
        _ => return Ok(None),
    };
    Ok(Some(Op::Collective {
        kind,
        collective: Box::new(Collective {
            replica_groups: replica_groups(p)?,
            channel_id: s.channel(),
            use_global_device_ids: p.use_global_device_ids,
            constrain_layout: p.constrain_layout,
        }),
    }))
}

fn replica_groups(p: &pb::HloInstructionProto) -> Result<ReplicaGroups> {
    use pb::hlo_instruction_proto::ReplicaGroupList as Groups;
    let listed = |groups: &[pb::ReplicaGroup]| {
        ReplicaGroups::List(groups.iter().map(|g| g.replica_ids.clone()).collect())
    };
    match &p.replica_group_list {
        None => Ok(listed(&p.replica_groups)),
        Some(Groups::CollectiveDeviceList(list)) => Ok(listed(&list.replica_groups)),
        Some(Groups::IotaCollectiveDeviceList(iota)) => {
            let transpose = iota.iota_transpose_perm.iter();
            Ok(ReplicaGroups::Iota {
                dims: vec![iota.num_replica_groups, iota.num_devices_per_group],
                reshape: iota.iota_reshape_dims.clone(),
                transpose: transpose.map(|&p| i64::from(p)).collect(),
            })
        }
        Some(Groups::MeshAxesReplicaGroupList(mesh)) => Ok(ReplicaGroups::List(groups(mesh)?)),
    }
}
