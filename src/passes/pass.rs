//! What a pass is.

use crate::base::Diagnostic;
use crate::base::Location;
use crate::base::Result;
use crate::base::codes;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Stage;
use crate::hlo::print;
use crate::target::Target;

/// Whether a pass changed the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The module is as it was.
    No,
    /// Something is different.
    Yes,
}

impl Changed {
    /// `Yes` when either is.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        if self == Self::Yes { self } else { other }
    }
    /// `Yes` when `changed` is true.
    pub fn when(changed: bool) -> Self {
        if changed { Self::Yes } else { Self::No }
    }
}

/// How many replacements passes may still make; for finding a miscompile by halving.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fuel(Option<u64>);

impl Fuel {
    /// As many as there are.
    pub fn unlimited() -> Self {
        Self(None)
    }
    /// At most `n`.
    pub fn limited(n: u64) -> Self {
        Self(Some(n))
    }
    /// Takes one replacement; false when none is left.
    pub fn take(&mut self) -> bool {
        match &mut self.0 {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }
}

/// What a pass may know besides the module.
pub struct PassCx<'a> {
    /// The machine the module is compiled for.
    pub target: &'a Target,
    /// Replacements left for optional rewrites.
    pub fuel: Fuel,
}

/// One rewrite of a whole module.
pub trait Pass {
    /// Kebab-case name, used in dumps, flags, goldens and timing.
    fn name(&self) -> &'static str;
    /// The stage the pass needs at least, and the stage the module has afterwards when that is
    /// later than the one it had.
    fn stages(&self) -> (Stage, Stage);
    /// Rewrites the module.
    fn run(&self, module: &mut Module, cx: &mut PassCx<'_>) -> Result<Changed>;
}

/// A diagnostic for an instruction that cannot be compiled for the target.
pub fn unsupported(module: &Module, id: InstrId, target: &Target, why: &str) -> Box<Diagnostic> {
    let instr = module.instr(id);
    let ty = instr
        .shape
        .leaves()
        .iter()
        .find_map(|(_, s)| s.as_array())
        .map(|a| format!(" of {}", a.ty))
        .unwrap_or_default();
    let opcode = instr.op.opcode();
    let message = format!(
        "`{opcode}`{ty} cannot be compiled for `{}`: {why}",
        target.name()
    );
    Diagnostic::unsupported(codes::COMPILE_UNSUPPORTED, message).at(Location::Instruction {
        computation: module.comp(instr.parent).name.clone(),
        text: print::instr(module, id),
    })
}
