//! The one list of passes.

use crate::passes::finish::compact::Compact;
use crate::passes::finish::copies::InsertCopies;
use crate::passes::fuse::Fuse;
use crate::passes::layout::assign::AssignLayouts;
use crate::passes::layout::normalize::NormalizeLayouts;
use crate::passes::legalize::check::CheckLegal;
use crate::passes::legalize::collectives::Collectives;
use crate::passes::legalize::conv::PointwiseConvolution;
use crate::passes::legalize::custom_calls::CustomCalls;
use crate::passes::legalize::dot::CanonicalDot;
use crate::passes::legalize::dynamic::StaticDimensions;
use crate::passes::legalize::flatten::FlattenCallGraph;
use crate::passes::legalize::inline::Inline;
use crate::passes::legalize::structural::DropBarriers;
use crate::passes::legalize::structural::Structural;
use crate::passes::pass::Pass;
use crate::passes::simplify::algebraic::Algebraic;
use crate::passes::simplify::cse::Cse;
use crate::passes::simplify::dce::Dce;
use crate::passes::simplify::fold_constants::FoldConstants;
use crate::passes::simplify::loops::Loops;
use crate::passes::simplify::reshape_mover::ReshapeMover;

/// Every pass there is, in alphabetical order of names.
pub fn all() -> Vec<Box<dyn Pass>> {
    vec![
        Box::new(Algebraic),
        Box::new(AssignLayouts),
        Box::new(CanonicalDot),
        Box::new(CheckLegal),
        Box::new(Collectives),
        Box::new(Compact),
        Box::new(Cse),
        Box::new(CustomCalls),
        Box::new(Dce),
        Box::new(DropBarriers),
        Box::new(FlattenCallGraph),
        Box::new(FoldConstants),
        Box::new(Fuse),
        Box::new(Inline),
        Box::new(InsertCopies),
        Box::new(Loops),
        Box::new(NormalizeLayouts),
        Box::new(PointwiseConvolution),
        Box::new(ReshapeMover),
        Box::new(StaticDimensions),
        Box::new(Structural),
    ]
}

/// The pass of that name.
pub fn by_name(name: &str) -> Option<Box<dyn Pass>> {
    all().into_iter().find(|pass| pass.name() == name)
}
