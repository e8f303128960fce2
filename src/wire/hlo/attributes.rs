//! Attribute messages of instructions, each decoder beside its encoder.

use smallvec::SmallVec;

use crate::base::Result;
use crate::hlo::ArraySharding;
use crate::hlo::ConvDims;
use crate::hlo::CustomCallApiVersion;
use crate::hlo::CustomCallSchedule;
use crate::hlo::DotAlgorithm;
use crate::hlo::DotDims;
use crate::hlo::FftType;
use crate::hlo::GatherDims;
use crate::hlo::OpMetadata;
use crate::hlo::PadDim;
use crate::hlo::PaddingType;
use crate::hlo::Precision;
use crate::hlo::PrecisionConfig;
use crate::hlo::RngAlgorithm;
use crate::hlo::RngDistribution;
use crate::hlo::ScatterDims;
use crate::hlo::Sharding;
use crate::hlo::ShardingKind;
use crate::hlo::TriangularTranspose;
use crate::hlo::Window;
use crate::hlo::WindowDim;
use crate::proto::xla as pb;
use crate::wire::number::bad;
use crate::wire::number::index;
use crate::wire::number::indices;
use crate::wire::number::number;
use crate::wire::number::numbers;
use crate::wire::number::unsupported;

/// A two-way table between an enum and the numbers of its upstream counterpart.
pub(super) struct EnumTable<T: 'static> {
    what: &'static str,
    rows: &'static [(i32, T)],
}

impl<T: Copy + PartialEq> EnumTable<T> {
    pub(super) fn decode(&self, number: i32) -> Result<T> {
        let row = self.rows.iter().find(|(n, _)| *n == number);
        row.map(|(_, value)| *value)
            .ok_or_else(|| bad(format!("{number} is not the number of {}", self.what)))
    }
    pub(super) fn encode(&self, value: T) -> i32 {
        let row = self.rows.iter().find(|(_, v)| *v == value);
        row.map_or(0, |(number, _)| *number)
    }
}

pub(super) const FFT: EnumTable<FftType> = EnumTable {
    what: "a kind of Fourier transform",
    rows: &[
        (0, FftType::Fft),
        (1, FftType::Ifft),
        (2, FftType::Rfft),
        (3, FftType::Irfft),
    ],
};

pub(super) const TRANSPOSE: EnumTable<TriangularTranspose> = EnumTable {
    what: "a form of a triangular matrix",
    rows: &[
        (1, TriangularTranspose::NoTranspose),
        (2, TriangularTranspose::Transpose),
        (3, TriangularTranspose::Adjoint),
    ],
};

pub(super) const DISTRIBUTION: EnumTable<RngDistribution> = EnumTable {
    what: "a random distribution",
    rows: &[(1, RngDistribution::Uniform), (2, RngDistribution::Normal)],
};

pub(super) const RNG: EnumTable<RngAlgorithm> = EnumTable {
    what: "a random bit generator",
    rows: &[
        (0, RngAlgorithm::Default),
        (1, RngAlgorithm::ThreeFry),
        (2, RngAlgorithm::Philox),
    ],
};

pub(super) const PADDING: EnumTable<PaddingType> = EnumTable {
    what: "a padding type",
    rows: &[
        (0, PaddingType::Invalid),
        (1, PaddingType::Valid),
        (2, PaddingType::Same),
    ],
};

pub(super) const SCHEDULE: EnumTable<CustomCallSchedule> = EnumTable {
    what: "a custom-call schedule",
    rows: &[
        (0, CustomCallSchedule::None),
        (1, CustomCallSchedule::Latest),
        (2, CustomCallSchedule::Earliest),
    ],
};

pub(super) const API_VERSION: EnumTable<CustomCallApiVersion> = EnumTable {
    what: "a custom-call API version",
    rows: &[
        (0, CustomCallApiVersion::Unspecified),
        (1, CustomCallApiVersion::Original),
        (2, CustomCallApiVersion::StatusReturning),
        (3, CustomCallApiVersion::StatusReturningUnified),
        (4, CustomCallApiVersion::TypedFfi),
    ],
};

const PRECISION: EnumTable<Precision> = EnumTable {
    what: "an operand precision",
    rows: &[
        (0, Precision::Default),
        (1, Precision::High),
        (2, Precision::Highest),
        (3, Precision::PackedNibble),
    ],
};

const ALGORITHM: EnumTable<DotAlgorithm> = EnumTable {
    what: "a dot algorithm",
    rows: &[
        (0, DotAlgorithm::Unset),
        (1, DotAlgorithm::AnyF8AnyF8F32),
        (2, DotAlgorithm::AnyF8AnyF8F32FastAccum),
        (3, DotAlgorithm::F16F16F16),
        (4, DotAlgorithm::F16F16F32),
        (5, DotAlgorithm::Bf16Bf16Bf16),
        (6, DotAlgorithm::Bf16Bf16F32),
        (7, DotAlgorithm::Bf16Bf16F32X3),
        (8, DotAlgorithm::Bf16Bf16F32X6),
        (9, DotAlgorithm::Tf32Tf32F32),
        (10, DotAlgorithm::Tf32Tf32F32X3),
        (11, DotAlgorithm::F32F32F32),
        (12, DotAlgorithm::F64F64F64),
        (13, DotAlgorithm::Bf16Bf16F32X9),
        (14, DotAlgorithm::AnyF8AnyF8Any),
        (15, DotAlgorithm::AnyF8AnyF8AnyFastAccum),
    ],
};

const SHARDING_KIND: EnumTable<ShardingKind> = EnumTable {
    what: "a kind of sharding",
    rows: &[
        (0, ShardingKind::Replicated),
        (1, ShardingKind::Maximal),
        (3, ShardingKind::Other),
        (4, ShardingKind::Manual),
        (5, ShardingKind::Unknown),
        (6, ShardingKind::Unreduced),
    ],
};

pub(super) fn decode_window(proto: &pb::Window) -> Result<Window> {
    let dim = |d: &pb::WindowDimension| {
        Ok(WindowDim {
            size: index(d.size, "a window size")?,
            stride: d.stride,
            padding_low: d.padding_low,
            padding_high: d.padding_high,
            window_dilation: d.window_dilation,
            base_dilation: d.base_dilation,
            reversal: d.window_reversal,
        })
    };
    proto.dimensions.iter().map(dim).collect()
}

pub(super) fn encode_window(window: &Window) -> pb::Window {
    let dim = |d: &WindowDim| pb::WindowDimension {
        size: number(d.size),
        stride: d.stride,
        padding_low: d.padding_low,
        padding_high: d.padding_high,
        window_dilation: d.window_dilation,
        base_dilation: d.base_dilation,
        window_reversal: d.reversal,
    };
    pb::Window {
        dimensions: window.iter().map(dim).collect(),
    }
}

pub(super) fn decode_conv_dims(proto: &pb::ConvolutionDimensionNumbers) -> Result<ConvDims> {
    let what = "a dimension number of a convolution";
    Ok(ConvDims {
        input_batch: index(proto.input_batch_dimension, what)?,
        input_feature: index(proto.input_feature_dimension, what)?,
        input_spatial: indices(&proto.input_spatial_dimensions, what)?,
        kernel_input_feature: index(proto.kernel_input_feature_dimension, what)?,
        kernel_output_feature: index(proto.kernel_output_feature_dimension, what)?,
        kernel_spatial: indices(&proto.kernel_spatial_dimensions, what)?,
        output_batch: index(proto.output_batch_dimension, what)?,
        output_feature: index(proto.output_feature_dimension, what)?,
        output_spatial: indices(&proto.output_spatial_dimensions, what)?,
    })
}

pub(super) fn encode_conv_dims(dims: &ConvDims) -> pb::ConvolutionDimensionNumbers {
    pb::ConvolutionDimensionNumbers {
        input_batch_dimension: number(dims.input_batch),
        input_feature_dimension: number(dims.input_feature),
        input_spatial_dimensions: numbers(&dims.input_spatial),
        kernel_input_feature_dimension: number(dims.kernel_input_feature),
        kernel_output_feature_dimension: number(dims.kernel_output_feature),
        kernel_spatial_dimensions: numbers(&dims.kernel_spatial),
        output_batch_dimension: number(dims.output_batch),
        output_feature_dimension: number(dims.output_feature),
        output_spatial_dimensions: numbers(&dims.output_spatial),
    }
}

pub(super) fn decode_dot_dims(proto: &pb::DotDimensionNumbers) -> Result<DotDims> {
    let what = "a dimension number of a dot";
    Ok(DotDims {
        lhs_contracting: indices(&proto.lhs_contracting_dimensions, what)?,
        rhs_contracting: indices(&proto.rhs_contracting_dimensions, what)?,
        lhs_batch: indices(&proto.lhs_batch_dimensions, what)?,
        rhs_batch: indices(&proto.rhs_batch_dimensions, what)?,
    })
}

pub(super) fn encode_dot_dims(dims: &DotDims) -> pb::DotDimensionNumbers {
    pb::DotDimensionNumbers {
        lhs_contracting_dimensions: numbers(&dims.lhs_contracting),
        rhs_contracting_dimensions: numbers(&dims.rhs_contracting),
        lhs_batch_dimensions: numbers(&dims.lhs_batch),
        rhs_batch_dimensions: numbers(&dims.rhs_batch),
    }
}

pub(super) fn decode_gather_dims(proto: &pb::GatherDimensionNumbers) -> Result<GatherDims> {
    let what = "a dimension number of a gather";
    Ok(GatherDims {
        offset_dims: indices(&proto.offset_dims, what)?,
        collapsed_slice_dims: indices(&proto.collapsed_slice_dims, what)?,
        start_index_map: indices(&proto.start_index_map, what)?,
        operand_batching_dims: indices(&proto.operand_batching_dims, what)?,
        start_indices_batching_dims: indices(&proto.start_indices_batching_dims, what)?,
        index_vector_dim: index(proto.index_vector_dim, what)?,
    })
}

pub(super) fn encode_gather_dims(dims: &GatherDims) -> pb::GatherDimensionNumbers {
    pb::GatherDimensionNumbers {
        offset_dims: numbers(&dims.offset_dims),
        collapsed_slice_dims: numbers(&dims.collapsed_slice_dims),
        start_index_map: numbers(&dims.start_index_map),
        operand_batching_dims: numbers(&dims.operand_batching_dims),
        start_indices_batching_dims: numbers(&dims.start_indices_batching_dims),
        index_vector_dim: number(dims.index_vector_dim),
    }
}

pub(super) fn decode_scatter_dims(proto: &pb::ScatterDimensionNumbers) -> Result<ScatterDims> {
    let what = "a dimension number of a scatter";
    Ok(ScatterDims {
        update_window_dims: indices(&proto.update_window_dims, what)?,
        inserted_window_dims: indices(&proto.inserted_window_dims, what)?,
        scatter_dims_to_operand_dims: indices(&proto.scatter_dims_to_operand_dims, what)?,
        input_batching_dims: indices(&proto.input_batching_dims, what)?,
        scatter_indices_batching_dims: indices(&proto.scatter_indices_batching_dims, what)?,
        index_vector_dim: index(proto.index_vector_dim, what)?,
    })
}

pub(super) fn encode_scatter_dims(dims: &ScatterDims) -> pb::ScatterDimensionNumbers {
    pb::ScatterDimensionNumbers {
        update_window_dims: numbers(&dims.update_window_dims),
        inserted_window_dims: numbers(&dims.inserted_window_dims),
        scatter_dims_to_operand_dims: numbers(&dims.scatter_dims_to_operand_dims),
        input_batching_dims: numbers(&dims.input_batching_dims),
        scatter_indices_batching_dims: numbers(&dims.scatter_indices_batching_dims),
        index_vector_dim: number(dims.index_vector_dim),
    }
}

pub(super) fn decode_padding(proto: &pb::PaddingConfig) -> SmallVec<[PadDim; 4]> {
    let dims = proto.dimensions.iter();
    dims.map(|d| PadDim {
        low: d.edge_padding_low,
        high: d.edge_padding_high,
        interior: d.interior_padding,
    })
    .collect()
}

pub(super) fn encode_padding(dims: &[PadDim]) -> pb::PaddingConfig {
    let dim = |d: &PadDim| pb::padding_config::PaddingConfigDimension {
        edge_padding_low: d.low,
        edge_padding_high: d.high,
        interior_padding: d.interior,
    };
    pb::PaddingConfig {
        dimensions: dims.iter().map(dim).collect(),
    }
}

/// Operand precisions that are all the default read as none.
pub(super) fn decode_precision(proto: Option<&pb::PrecisionConfig>) -> Result<PrecisionConfig> {
    let Some(proto) = proto else {
        return Ok(PrecisionConfig::default());
    };
    let operands = proto.operand_precision.iter();
    let mut operand_precision: SmallVec<[Precision; 2]> = operands
        .map(|&p| PRECISION.decode(p))
        .collect::<Result<_>>()?;
    if operand_precision.iter().all(|&p| p == Precision::Default) {
        operand_precision.clear();
    }
    Ok(PrecisionConfig {
        operand_precision,
        algorithm: ALGORITHM.decode(proto.algorithm)?,
    })
}

/// Readers want one precision an operand, defaults written out.
pub(super) fn encode_precision(
    precision: &PrecisionConfig,
    operands: usize,
) -> pb::PrecisionConfig {
    let given = precision.operand_precision.iter();
    let mut operand_precision: Vec<i32> = given.map(|&p| PRECISION.encode(p)).collect();
    if operand_precision.is_empty() {
        operand_precision.resize(operands, 0);
    }
    pb::PrecisionConfig {
        operand_precision,
        algorithm: ALGORITHM.encode(precision.algorithm),
    }
}

pub(super) fn decode_metadata(proto: &pb::OpMetadata) -> OpMetadata {
    OpMetadata {
        op_type: proto.op_type.clone(),
        op_name: proto.op_name.clone(),
        source_file: proto.source_file.clone(),
        source_line: proto.source_line,
        source_end_line: proto.source_end_line,
        source_column: proto.source_column,
        source_end_column: proto.source_end_column,
        stack_frame_id: proto.stack_frame_id,
        size_of_generated_code_in_bytes: proto.size_of_generated_code_in_bytes,
        size_of_memory_working_set_in_bytes: proto.size_of_memory_working_set_in_bytes,
        deduplicated_name: proto.deduplicated_name.clone(),
        scheduling_name: proto.scheduling_name.clone(),
        preserve_layout: false,
        profile_type: proto.profile_type.clone(),
        metadata_payload: String::new(),
    }
}

pub(super) fn encode_metadata(metadata: &OpMetadata) -> pb::OpMetadata {
    pb::OpMetadata {
        op_type: metadata.op_type.clone(),
        op_name: metadata.op_name.clone(),
        source_file: metadata.source_file.clone(),
        source_line: metadata.source_line,
        source_end_line: metadata.source_end_line,
        source_column: metadata.source_column,
        source_end_column: metadata.source_end_column,
        stack_frame_id: metadata.stack_frame_id,
        size_of_generated_code_in_bytes: metadata.size_of_generated_code_in_bytes,
        size_of_memory_working_set_in_bytes: metadata.size_of_memory_working_set_in_bytes,
        deduplicated_name: metadata.deduplicated_name.clone(),
        scheduling_name: metadata.scheduling_name.clone(),
        profile_type: metadata.profile_type.clone(),
        ..Default::default()
    }
}

/// The number of tuple shardings.
const SHARDING_TUPLE: i32 = 2;

pub(super) fn decode_sharding(proto: &pb::OpSharding) -> Result<Sharding> {
    if proto.r#type == SHARDING_TUPLE {
        let elements = proto.tuple_shardings.iter().map(decode_sharding);
        return Ok(Sharding::Tuple(elements.collect::<Result<_>>()?));
    }
    if proto.named_sharding.is_some() {
        return Ok(Sharding::Array(Box::new(ArraySharding {
            text: Some(super::mesh::sharding_text(proto)?),
            ..ArraySharding::default()
        })));
    }
    if proto.tile_shape.is_some() {
        return Err(unsupported("shardings with a tile shape are not supported"));
    }
    let mut dimensions = proto.tile_assignment_dimensions.clone();
    // One device is written with and without the dimension it makes.
    if dimensions.is_empty() && proto.tile_assignment_devices.len() == 1 {
        dimensions.push(1);
    }
    let permutation = proto.iota_transpose_perm.iter();
    let last_tile_dims = proto.last_tile_dims.iter();
    Ok(Sharding::Array(Box::new(ArraySharding {
        kind: SHARDING_KIND.decode(proto.r#type)?,
        tile_assignment_dimensions: dimensions,
        tile_assignment_devices: proto.tile_assignment_devices.clone(),
        iota_reshape_dims: proto.iota_reshape_dims.clone(),
        iota_transpose_perm: permutation.map(|&p| i64::from(p)).collect(),
        replicate_on_last_tile_dim: proto.replicate_on_last_tile_dim,
        last_tile_dims: last_tile_dims
            .map(|&kind| SHARDING_KIND.decode(kind))
            .collect::<Result<_>>()?,
        metadata: proto.metadata.iter().map(decode_metadata).collect(),
        is_shard_group: proto.is_shard_group,
        shard_group_id: proto.shard_group_id,
        shard_group_type: proto.shard_group_type,
        text: None,
    })))
}

/// Shardings kept as text are written as replicated: one device runs what this program compiles.
pub(super) fn encode_sharding(sharding: &Sharding) -> pb::OpSharding {
    let array = match sharding {
        Sharding::Tuple(elements) => {
            return pb::OpSharding {
                r#type: SHARDING_TUPLE,
                tuple_shardings: elements.iter().map(encode_sharding).collect(),
                ..Default::default()
            };
        }
        Sharding::Array(array) => array,
    };
    let permutation = array.iota_transpose_perm.iter();
    let kinds = array.last_tile_dims.iter();
    pb::OpSharding {
        r#type: SHARDING_KIND.encode(array.kind),
        tile_assignment_dimensions: array.tile_assignment_dimensions.clone(),
        tile_assignment_devices: array.tile_assignment_devices.clone(),
        iota_reshape_dims: array.iota_reshape_dims.clone(),
        iota_transpose_perm: permutation
            .map(|&p| i32::try_from(p).unwrap_or(i32::MAX))
            .collect(),
        replicate_on_last_tile_dim: array.replicate_on_last_tile_dim,
        last_tile_dims: kinds.map(|&kind| SHARDING_KIND.encode(kind)).collect(),
        metadata: array.metadata.iter().map(encode_metadata).collect(),
        is_shard_group: array.is_shard_group,
        shard_group_id: array.shard_group_id,
        shard_group_type: array.shard_group_type,
        ..Default::default()
    }
}
