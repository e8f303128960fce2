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
pub use pass::Fuel;
pub use pass::Pass;
pub use pass::PassCx;
pub use pipeline::PassObserver;
pub use pipeline::Unobserved;

/// Runs the whole order of passes for the target.
///
/// # Errors
/// `COMPILE_UNSUPPORTED` when the module holds something this compiler cannot compile.
pub fn run(module: Module, target: &Target, observer: &mut dyn PassObserver) -> Result<Module> {
    pipeline::run(&order::compile_order(target), module, target, observer)
}

/// Runs one pass by name, whatever the stage of the module.
///
/// # Errors
/// `UNKNOWN_WORD` when there is no such pass.
pub fn run_single(name: &str, mut module: Module, target: &Target) -> Result<Module> {
    let Some(pass) = registry::by_name(name) else {
        return Err(Diagnostic::error(
            codes::UNKNOWN_WORD,
            format!("no pass is called `{name}`"),
        ));
    };
    let (needs, _) = pass.stages();
    module.stage = module.stage.max(needs);
    pipeline::run(&[pass], module, target, &mut Unobserved)
}
