//! Identities of dots.

use crate::hlo::DotDims;
use crate::passes::simplify::algebraic::Answer;
use crate::passes::simplify::algebraic::Site;

/// A dot over nothing is zero.
pub(super) fn dot(site: &mut Site<'_, '_>, dims: &DotDims) -> Answer {
    let nothing = site
        .array(site.arg(0))
        .is_some_and(|a| dims.lhs_contracting.iter().any(|&d| a.dims[d] == 0));
    if nothing {
        site.filled_like(0)
    } else {
        Ok(None)
    }
}
