//! Products on a GPU: tiles of both sides in shared memory.

use crate::analysis::contraction::Product;
use crate::base::Result;
use crate::emit::request::Emitted;
use crate::emit::request::KernelRequest;

pub(super) fn emit(_request: &KernelRequest<'_>, _product: &Product) -> Result<Option<Emitted>> {
    Ok(None)
}
