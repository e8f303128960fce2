//! Dots and convolutions as matrix products.
//!
//! The door chooses how; [`crate::analysis::contraction`] says what the product is and how it is cut
//! into tiles. What surrounds the product in a fusion is computed where operands are read
//! (prologue) and where sums are written (epilogue).

mod amx;
mod attention;
mod dot_products;
mod few_rows;
mod gpu;
mod grouped;
mod pack;
mod packed;
mod side;
mod store;
mod tile;
mod windows;

use crate::analysis;
use crate::analysis::contraction;
use crate::analysis::contraction::Strategy;
use crate::analysis::grouped_conv;
use crate::base::Result;
use crate::emit::request::Emitted;
use crate::emit::request::KernelRequest;
use crate::target::Platform;

/// The kernels of a request whose hero is a dot or convolution; `None` when its types or shape are
/// not for tiles, and a plain loop computes it.
///
/// # Errors
/// `EMIT_UNSUPPORTED` when an op around the product cannot be emitted.
pub fn emit(request: &KernelRequest<'_>) -> Result<Option<Emitted>> {
    if let Some(found) = analysis::attention::of(request.module, request.instr, request.target)
        && store::is_elementwise_after(request, found.values.value)
        && let Some(plan) = analysis::attention::plan(&found, request.module, request.target)
    {
        return attention::emit(request, &found, &plan).map(Some);
    }
    let Some(product) = contraction::product(request.module, request.instr) else {
        return Ok(None);
    };
    if !store::is_elementwise_after(request, product.value) {
        return Ok(None);
    }
    if request.target.platform() == Platform::Cuda {
        return gpu::emit(request, &product);
    }
    if let Some(conv) = grouped_conv::of(&product, request.module, request.target) {
        return grouped::emit(request, &product, &conv).map(Some);
    }
    let (product, tiling) = contraction::on_cpu(product, request.module, request.target);
    match tiling.strategy {
        Strategy::Tiled => packed::emit(request, &product, &tiling),
        Strategy::Streamed => few_rows::emit_streamed(request, &product, &tiling),
        Strategy::DotProducts => dot_products::emit(request, &product, &tiling),
    }
    .map(Some)
}
