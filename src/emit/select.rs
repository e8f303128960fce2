//! Which emitter makes the kernels of a fusion or lone op.

use crate::base::Result;
use crate::emit::loop_;
use crate::emit::request::Emitted;
use crate::emit::request::KernelRequest;

/// Turns one fusion or lone op into kernels.
///
/// # Errors
/// `EMIT_UNSUPPORTED` when there is no emitter for the op, its element type and the target.
pub fn emit_kernel(request: &KernelRequest<'_>) -> Result<Emitted> {
    loop_::emit(request)
}
