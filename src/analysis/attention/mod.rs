//! Attention: a product whose rows a softmax turns into weights, and the product with those weights.
//!
//! One place, so that fusion, buffer assignment and the emitter agree on what is attention and how a
//! CPU computes it: a block of rows at a time, whose scores stay in cache (T. Dao et al.,
//! "FlashAttention", 2022, with whole rows of scores instead of blocks that are rescaled, so that the
//! numbers are those of the program).

mod mask;
mod pattern;
mod plan;
mod views;

pub use mask::Bound;
pub use mask::Mask;
pub use plan::Plan;
pub use plan::plan;
pub use plan::scratch;
pub use views::Digit;
pub use views::is_number;

use crate::analysis::contraction::Product;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::target::Target;

/// `weights(softmax(masked(query x keys))) x values`.
///
/// Both products have one batch coordinate and one row coordinate: row `m` of a batch of the scores is
/// row `m` of the same batch of the weights, and column `n` of the scores is summed coordinate `n` of
/// the second product.
#[derive(Clone, Debug, PartialEq)]
pub struct Attention {
    /// Rows of queries by columns of keys.
    pub scores: Product,
    /// Rows of weights by columns of values.
    pub values: Product,
    /// The digits, the most significant first, of a row's number within the left side of the first
    /// product: rows are numbered as scores stand, which may be transposed.
    pub rows: Vec<Digit>,
    /// What the maximum is taken of: scores, scaled and masked.
    pub masked: InstrId,
    /// The maximum of each row, a reduction.
    pub max: InstrId,
    /// What is summed: exponentials.
    pub exp: InstrId,
    /// The sum of each row, a reduction.
    pub sum: InstrId,
    /// The division of the exponentials by what becomes of their sum.
    pub quotient: InstrId,
    /// The left side of the second product.
    pub weights: InstrId,
    /// What lies between the products, the first one too.
    pub members: Vec<InstrId>,
    /// Which keys a comparison of indices leaves to each row.
    pub mask: Option<Mask>,
}

/// The attention that a dot ends, when a CPU computes it as one kernel.
pub fn ending_in(module: &Module, dot: InstrId, target: &Target) -> Option<Attention> {
    target.cpu()?;
    let found = pattern::find(module, dot, None)?;
    plan(&found, module, target).map(|_| found)
}

/// The attention that an instruction is: a fusion of it.
pub fn of(module: &Module, instr: InstrId, target: &Target) -> Option<Attention> {
    target.cpu()?;
    let Op::Fusion { body, .. } = module.instr(instr).op else {
        return None;
    };
    let dots = module.comp(body).instrs.iter().copied();
    let dots: Vec<InstrId> = dots
        .filter(|&id| matches!(module.instr(id).op, Op::Dot { .. }))
        .collect();
    if dots.len() < 2 {
        return None;
    }
    let found = |&dot: &InstrId| pattern::find(module, dot, Some(instr));
    let attention = dots.iter().rev().find_map(found)?;
    plan(&attention, module, target).map(|_| attention)
}
