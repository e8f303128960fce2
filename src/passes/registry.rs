//! The one list of passes.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::base::suggest::closest;
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
use crate::passes::pass::PassOptions;
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
    ("dynamic-dimensions", || Box::new(DynamicDimensions)),
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

/// Whether every name in the options is one of a pass or rule that can be left out.
///
/// # Errors
/// `UNKNOWN_WORD` for the first that is not.
pub fn check_options(options: &PassOptions) -> Result<()> {
    let optional = || PASSES.iter().filter(|(_, make)| !make().rules().is_empty());
    for name in &options.disabled_passes {
        let message = match by_name(name) {
            Some(pass) if !pass.rules().is_empty() => continue,
            Some(_) => format!("pass `{name}` cannot be left out: what follows needs it"),
            None => format!("no pass is called `{name}`"),
        };
        let known: Vec<&str> = optional().map(|(name, _)| *name).collect();
        return Err(unknown(
            &message,
            name,
            "passes that can be left out",
            &known,
        ));
    }
    let rules: Vec<&str> = optional().flat_map(|(_, make)| make().rules()).collect();
    for name in &options.disabled_rules {
        if !rules.contains(&name.as_str()) {
            let message = format!("no rule is called `{name}`");
            return Err(unknown(&message, name, "rules", &rules));
        }
    }
    Ok(())
}

fn unknown(message: &str, name: &str, what: &str, known: &[&str]) -> Box<Diagnostic> {
    let error = Diagnostic::error(codes::UNKNOWN_WORD, message)
        .note(format!("{what}: {}", known.join(", ")));
    match closest(name, known.iter().copied()) {
        Some(close) => error.help(format!("did you mean `{close}`?")),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::order::compile_order;
    use crate::passes::pipeline::stages_chain;

    #[test]
    fn names_are_those_of_the_passes_and_in_order() {
        for (name, make) in PASSES {
            assert_eq!(make().name(), *name);
        }
        assert!(PASSES.is_sorted_by_key(|(name, _)| *name));
    }

    #[test]
    fn every_ordered_pass_is_registered_and_finds_its_stage() {
        let order = compile_order();
        assert!(order.iter().all(|pass| by_name(pass.name()).is_some()));
        assert!(stages_chain(&order));
    }

    #[test]
    fn rules_have_names_of_their_own_and_only_what_is_optional_can_be_left_out() {
        let rules = PASSES.iter().flat_map(|(_, make)| make().rules());
        let mut rules: Vec<&str> = rules.collect();
        let all = rules.len();
        rules.sort_unstable();
        rules.dedup();
        assert_eq!(rules.len(), all);
        let without = |pass: &str, rule: &str| PassOptions {
            disabled_passes: [pass.to_owned()].into(),
            disabled_rules: [rule.to_owned()].into(),
            fuel: None,
        };
        assert!(check_options(&without("cse", "add-zero")).is_ok());
        for (pass, rule) in [("inline", "add-zero"), ("c", "add-zero"), ("cse", "add")] {
            let refused = check_options(&without(pass, rule)).unwrap_err();
            assert_eq!(refused.code, codes::UNKNOWN_WORD);
        }
    }
}
