//! Matrix products that other producers leave to cuBLAS (`xla.gpu.GemmThunkProto`,
//! `xla.gpu.CublasLtMatmulThunkProto`): reading.

use crate::base::Result;
use crate::executable::GemmThunk;
use crate::executable::MatrixLayout;
use crate::executable::Slice;
use crate::proto::xla as pb;
use crate::proto::xla::gemm_config_proto::MatrixLayout as LayoutProto;
use crate::proto::xla::gpu;
use crate::shape::PrimitiveType;
use crate::wire::alloc::Slices;
use crate::wire::number::bad;
use crate::wire::number::index;

/// A product of classic cuBLAS; what is added lies where the result goes.
pub(super) fn gemm(proto: &gpu::GemmThunkProto, slices: &Slices<'_>) -> Result<GemmThunk> {
    let config = proto.gemm_config.as_ref();
    let config = config.ok_or_else(|| bad("a matrix product without a description"))?;
    let out = slices.slice(proto.output_buffer.as_ref())?;
    let workspace = proto.workspace.as_ref();
    Ok(GemmThunk {
        name: "gemm",
        a: (
            slices.slice(proto.lhs_buffer.as_ref())?,
            layout(&config.lhs_layout)?,
        ),
        b: (
            slices.slice(proto.rhs_buffer.as_ref())?,
            layout(&config.rhs_layout)?,
        ),
        c: match config.beta == 0.0 {
            true => None,
            false => Some((out, layout(&config.c_layout)?)),
        },
        d: (out, layout(&config.output_layout)?),
        bias: None,
        aux: None,
        workspace: workspace.map(|w| slices.slice(Some(w))).transpose()?,
        alpha: [config.alpha_real, config.alpha_imag],
        beta: config.beta,
        compute_type: config.compute_type,
        epilogue: 0,
        algorithm: 0,
    })
}

/// A product of cuBLASLt; none for products of groups and for scaled operands.
pub(super) fn matmul(
    proto: &gpu::CublasLtMatmulThunkProto,
    slices: &Slices<'_>,
) -> Result<Option<GemmThunk>> {
    let scales = [
        &proto.a_scale,
        &proto.b_scale,
        &proto.c_scale,
        &proto.d_scale,
    ];
    let is_scaled = scales.iter().any(|scale| scale.is_some()) || proto.d_amax.is_some();
    let Some(config) = proto.gemm_config.as_ref().filter(|_| !is_scaled) else {
        return Ok(None);
    };
    let slice = |shaped: &Option<pb::ShapedSliceProto>| {
        slices.slice(shaped.as_ref().and_then(|s| s.slice.as_ref()))
    };
    let maybe = |shaped: &Option<pb::ShapedSliceProto>| -> Result<Option<Slice>> {
        shaped.as_ref().map(|_| slice(shaped)).transpose()
    };
    Ok(Some(GemmThunk {
        name: "cublas-lt-matmul",
        a: (slice(&proto.a)?, layout(&config.lhs_layout)?),
        b: (slice(&proto.b)?, layout(&config.rhs_layout)?),
        c: match config.beta == 0.0 {
            true => None,
            false => Some((slice(&proto.c)?, layout(&config.c_layout)?)),
        },
        d: (slice(&proto.d)?, layout(&config.output_layout)?),
        bias: maybe(&proto.bias)?,
        aux: maybe(&proto.aux)?,
        workspace: maybe(&proto.workspace)?,
        alpha: [config.alpha_real, config.alpha_imag],
        beta: config.beta,
        compute_type: config.compute_type,
        epilogue: proto.epilogue,
        algorithm: index(proto.algorithm_idx, "the number of an algorithm")?,
    }))
}

fn layout(proto: &Option<LayoutProto>) -> Result<MatrixLayout> {
    let proto = proto.as_ref();
    let proto = proto.ok_or_else(|| bad("a matrix without a layout"))?;
    let ty = PrimitiveType::from_number(proto.dtype);
    Ok(MatrixLayout {
        is_column_major: match proto.order {
            1 => false,
            2 => true,
            order => return Err(bad(format!("a matrix of the unknown order {order}"))),
        },
        rows: index(proto.num_rows, "rows of a matrix")? as u64,
        columns: index(proto.num_cols, "columns of a matrix")? as u64,
        leading: proto.leading_dim_stride,
        batch: proto.batch_size,
        batch_stride: proto.batch_stride,
        transpose: proto.transpose,
        ty: ty.ok_or_else(|| bad("a matrix of an unknown type"))?,
    })
}
