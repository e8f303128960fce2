//! Convolutions with few input features per group, computed directly; [`grouped_conv`] says which,
//! and how they are cut into tiles.

mod along_features;
mod along_positions;
mod walk;

use crate::analysis::contraction::Product;
use crate::analysis::grouped_conv::GroupedConv;
use crate::analysis::grouped_conv::Lanes;
use crate::base::Result;
use crate::emit::request::Emitted;
use crate::emit::request::KernelRequest;

#[cfg(doc)]
use crate::analysis::grouped_conv;

pub(super) fn emit(
    request: &KernelRequest<'_>,
    product: &Product,
    conv: &GroupedConv,
) -> Result<Emitted> {
    match conv.kind {
        Lanes::Features {
            spread,
            along,
            positions,
        } => along_features::emit(request, product, conv, (spread, along, positions)),
        Lanes::Positions {
            along,
            vectors,
            rows,
            block,
        } => {
            let sizes = along_positions::Sizes {
                along,
                vectors,
                rows,
                block,
            };
            along_positions::emit(request, product, conv, sizes)
        }
    }
}
