//! Runs passes in order and lets an observer look on.
//!
//! After every pass that changed the module, debug builds verify it; release builds do when the
//! observer asks.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::hlo::Module;
use crate::hlo::Stage;
use crate::hlo::verify;
use crate::passes::pass::Changed;
use crate::passes::pass::Pass;
use crate::passes::pass::PassCx;
use crate::passes::pass::PassOptions;
use crate::passes::pass::RewriteReport;
use crate::passes::pass::Rewrites;
use crate::target::Target;

/// Looks on while passes run: for dumps, timing and progress.
pub trait PassObserver {
    /// A pass is about to run.
    fn before(&mut self, _name: &'static str, _module: &Module) {}
    /// A pass has run.
    fn after(&mut self, _name: &'static str, _module: &Module, _changed: Changed) {}
    /// Whether the module is verified after each pass that changed it, also in release builds.
    fn verify_each(&self) -> bool {
        false
    }
}

/// An observer that does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl PassObserver for Unobserved {}

/// Runs the passes one after the other.
pub fn run(
    passes: &[Box<dyn Pass>],
    mut module: Module,
    target: &Target,
    options: &PassOptions,
    observer: &mut dyn PassObserver,
) -> Result<(Module, RewriteReport)> {
    let mut cx = PassCx {
        target,
        rewrites: Rewrites::new(options),
    };
    for pass in passes {
        let (needs, leaves) = pass.stages();
        if module.stage < needs {
            return Err(Diagnostic::internal(
                codes::STAGE,
                format!(
                    "pass `{}` needs stage {needs:?} and the module is at {:?}",
                    pass.name(),
                    module.stage
                ),
            ));
        }
        if !cx.rewrites.runs(pass.name()) {
            module.stage = module.stage.max(leaves);
            continue;
        }
        cx.rewrites.pass = pass.name();
        observer.before(pass.name(), &module);
        let changed = pass
            .run(&mut module, &mut cx)
            .map_err(|e| named(e, pass.as_ref()))?;
        module.stage = module.stage.max(leaves);
        if changed == Changed::Yes && (cfg!(debug_assertions) || observer.verify_each()) {
            verify::check(&module).map_err(|e| named(e, pass.as_ref()))?;
        }
        observer.after(pass.name(), &module, changed);
    }
    Ok((module, cx.rewrites.report()))
}

fn named(diagnostic: Box<Diagnostic>, pass: &dyn Pass) -> Box<Diagnostic> {
    diagnostic.note(format!("in pass `{}`", pass.name()))
}

/// Whether each pass finds the stage it needs when they run in this order from `Imported`.
pub fn stages_chain(passes: &[Box<dyn Pass>]) -> bool {
    let mut stage = Stage::Imported;
    passes.iter().all(|pass| {
        let (needs, leaves) = pass.stages();
        let fits = stage >= needs;
        stage = stage.max(leaves);
        fits
    })
}
