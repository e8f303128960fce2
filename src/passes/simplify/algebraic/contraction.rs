//! Identities of dots.

use crate::hlo::Op;
use crate::passes::simplify::algebraic::Answer;
use crate::passes::simplify::algebraic::Rule;
use crate::passes::simplify::algebraic::Site;

/// Rules of dots.
pub(super) const DOT: &[Rule] = &[Rule("dot-over-nothing", dot_over_nothing)];

/// A dot over nothing is zero.
fn dot_over_nothing(site: &mut Site<'_, '_>) -> Answer {
    let Op::Dot { dims, .. } = &site.instr().op else {
        return Ok(None);
    };
    let nothing = site
        .array(site.arg(0))
        .is_some_and(|a| dims.lhs_contracting.iter().any(|&d| a.dims[d] == 0));
    if nothing {
        site.filled_like(0)
    } else {
        Ok(None)
    }
}
