//! The order of passes.

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
use crate::passes::legalize::dynamic::DynamicDimensions;
use crate::passes::legalize::expand::ExpandOps;
use crate::passes::legalize::flatten::FlattenCallGraph;
use crate::passes::legalize::inline::Inline;
use crate::passes::legalize::structural::DropBarriers;
use crate::passes::legalize::structural::Structural;
use crate::passes::legalize::uniform_reductions::UniformReductions;
use crate::passes::legalize::widen::WidenElements;
use crate::passes::pass::Pass;
use crate::passes::simplify::algebraic::Algebraic;
use crate::passes::simplify::cse::Cse;
use crate::passes::simplify::dce::Dce;
use crate::passes::simplify::fold_constants::FoldConstants;
use crate::passes::simplify::loops::Loops;
use crate::passes::simplify::reshape_mover::ReshapeMover;

/// The passes that take a module as it was read to one that is ready to be scheduled.
pub fn compile_order() -> Vec<Box<dyn Pass>> {
    vec![
        // What nothing needs should cost nothing below, and equal reducers should be one.
        Box::new(Dce),
        Box::new(Cse),
        // Layouts mean something to a few ops only; without them all rewrites are plain.
        Box::new(NormalizeLayouts),
        // Everything below takes it that sizes are known. Calls are inlined after this.
        Box::new(DynamicDimensions),
        // Everything below takes it that a reduction keeps the type of its array.
        Box::new(UniformReductions),
        // Wraps computations in calls, which are inlined next.
        Box::new(WidenElements),
        // Maps reducers of its own over arrays, which are inlined next too.
        Box::new(Collectives),
        // One computation a step sequence, each with one caller, so that rewrites see far.
        Box::new(Inline),
        Box::new(FlattenCallGraph),
        // Ops that later rooms do not know.
        Box::new(CustomCalls),
        Box::new(Structural),
        Box::new(ExpandOps),
        Box::new(CheckLegal),
        // Simplify; loops give constants to their bodies, and barriers have held until here.
        Box::new(Algebraic),
        Box::new(FoldConstants),
        Box::new(Cse),
        Box::new(Loops),
        Box::new(DropBarriers),
        Box::new(Dce),
        Box::new(Algebraic),
        Box::new(FoldConstants),
        // Contractions in one form, and what follows them in their dimensions.
        Box::new(PointwiseConvolution),
        Box::new(CanonicalDot),
        Box::new(Algebraic),
        Box::new(ReshapeMover),
        Box::new(Algebraic),
        // Reductions have moved above reshapes; what follows them can now do so too.
        Box::new(ReshapeMover),
        Box::new(Algebraic),
        Box::new(Cse),
        // From here on every array lies in memory row-major.
        Box::new(AssignLayouts),
        Box::new(Fuse),
        Box::new(Compact),
        // Last, since any rewrite after it could undo what the copies keep apart.
        Box::new(InsertCopies),
    ]
}
