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

/// Makes a pass.
pub type Make = fn() -> Box<dyn Pass>;

/// Every pass there is, by name, in alphabetical order.
pub const PASSES: &[(&str, Make)] = &[
    ("algebraic", || Box::new(Algebraic)),
    ("assign-layouts", || Box::new(AssignLayouts)),
    ("canonical-dot", || Box::new(CanonicalDot)),
    ("check-legal", || Box::new(CheckLegal)),
    ("collectives", || Box::new(Collectives)),
    ("compact", || Box::new(Compact)),
    ("cse", || Box::new(Cse)),
    ("custom-calls", || Box::new(CustomCalls)),
    ("dce", || Box::new(Dce)),
    ("drop-barriers", || Box::new(DropBarriers)),
    ("expand-ops", || Box::new(ExpandOps)),
    ("flatten-call-graph", || Box::new(FlattenCallGraph)),
    ("fold-constants", || Box::new(FoldConstants)),
    ("fuse", || Box::new(Fuse)),
    ("inline", || Box::new(Inline)),
    ("insert-copies", || Box::new(InsertCopies)),
    ("loops", || Box::new(Loops)),
    ("normalize-layouts", || Box::new(NormalizeLayouts)),
    ("pointwise-convolution", || Box::new(PointwiseConvolution)),
    ("reshape-mover", || Box::new(ReshapeMover)),
    ("static-dimensions", || Box::new(StaticDimensions)),
    ("structural", || Box::new(Structural)),
    ("uniform-reductions", || Box::new(UniformReductions)),
    ("widen-elements", || Box::new(WidenElements)),
];

/// The pass of that name.
pub fn by_name(name: &str) -> Option<Box<dyn Pass>> {
    PASSES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, make)| make())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ByteSize;
    use crate::passes::order::compile_order;
    use crate::passes::pipeline::stages_chain;
    use crate::target::CpuFamily;
    use crate::target::CpuSpec;
    use crate::target::DeviceSpec;
    use crate::target::Target;

    #[test]
    fn names_are_those_of_the_passes_and_in_order() {
        for (name, make) in PASSES {
            assert_eq!(make().name(), *name);
        }
        assert!(PASSES.is_sorted_by_key(|(name, _)| *name));
    }

    #[test]
    fn every_ordered_pass_is_registered_and_finds_its_stage() {
        let order = compile_order(&cpu());
        assert!(order.iter().all(|pass| by_name(pass.name()).is_some()));
        assert!(stages_chain(&order));
    }

    fn cpu() -> Target {
        Target {
            device: DeviceSpec::Cpu(CpuSpec {
                name: "x86-64".to_owned(),
                family: CpuFamily::X86_64,
                triple: "x86_64-unknown-linux-gnu".to_owned(),
                llvm_cpu: "x86-64".to_owned(),
                features: Vec::new(),
                disabled_features: Vec::new(),
                vector_bytes: 16,
                vector_registers: 16,
                l1_bytes: ByteSize(32 << 10),
                l2_bytes: ByteSize(1 << 20),
            }),
            buffer_alignment: 64,
            parameter_alignment: 16,
            parallelism: 1,
        }
    }
}
