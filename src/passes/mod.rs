//! Rewrites of modules, and their order.

pub mod edit;
pub mod finish;
pub mod fuse;
pub mod layout;
pub mod legalize;
pub mod order;
pub mod pass;
pub mod pipeline;
pub mod registry;
pub mod simplify;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::hlo::Module;
use crate::target::Target;

pub use pass::Changed;
pub use pass::Pass;
pub use pass::PassCx;
pub use pass::PassOptions;
pub use pass::Rewrite;
pub use pass::RewriteReport;
pub use pipeline::PassObserver;
pub use pipeline::Unobserved;

/// Runs the whole order of passes for the target.
///
/// # Errors
/// `COMPILE_UNSUPPORTED` when the module holds something this compiler cannot compile,
/// `UNKNOWN_WORD` when the options name what cannot be left out.
pub fn run(
    module: Module,
    target: &Target,
    options: &PassOptions,
    observer: &mut dyn PassObserver,
) -> Result<(Module, RewriteReport)> {
    registry::check_options(options)?;
    pipeline::run(&order::compile_order(), module, target, options, observer)
}

/// Runs one pass by name, whatever the stage of the module.
///
/// # Errors
/// `UNKNOWN_WORD` when there is no such pass.
pub fn run_single(
    name: &str,
    mut module: Module,
    target: &Target,
    options: &PassOptions,
) -> Result<(Module, RewriteReport)> {
    let Some(pass) = registry::by_name(name) else {
        return Err(Diagnostic::error(
            codes::UNKNOWN_WORD,
            format!("no pass is called `{name}`"),
        ));
    };
    let (needs, _) = pass.stages();
    module.stage = module.stage.max(needs);
    pipeline::run(&[pass], module, target, options, &mut Unobserved)
}
