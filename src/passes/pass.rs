//! What a pass is.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

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

/// Which optional rewrites passes make: all of them, by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PassOptions {
    /// Passes that are left out.
    pub disabled_passes: BTreeSet<String>,
    /// Rules that are not applied.
    pub disabled_rules: BTreeSet<String>,
    /// How many rewrites are made; the rest of the program stays as it is from there on.
    pub fuel: Option<u64>,
}

/// A rewrite that a pass made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrite {
    /// Counts all rewrites of a compilation, from one.
    pub number: u64,
    /// The pass.
    pub pass: &'static str,
    /// The rule.
    pub rule: &'static str,
    /// The instruction as it was.
    pub instruction: String,
}

/// The account of the optional rewrites of one compilation.
#[derive(Debug)]
pub struct Rewrites<'a> {
    options: &'a PassOptions,
    /// The pass at work.
    pub(crate) pass: &'static str,
    made: u64,
    by_rule: BTreeMap<&'static str, u64>,
    last: Option<Rewrite>,
}

impl<'a> Rewrites<'a> {
    /// Nothing is made yet.
    pub fn new(options: &'a PassOptions) -> Self {
        Self {
            options,
            pass: "",
            made: 0,
            by_rule: BTreeMap::new(),
            last: None,
        }
    }
    /// Whether the pass runs.
    pub fn runs(&self, pass: &str) -> bool {
        !self.options.disabled_passes.contains(pass)
    }
    /// Whether the rule may be applied.
    pub fn is_on(&self, rule: &str) -> bool {
        !self.is_spent() && !self.options.disabled_rules.contains(rule)
    }
    /// Whether no rewrite is left.
    pub fn is_spent(&self) -> bool {
        self.options.fuel.is_some_and(|fuel| self.made >= fuel)
    }
    /// Takes one rewrite of the instruction; false when the rule is off or none is left.
    pub fn take(&mut self, rule: &'static str, module: &Module, id: InstrId) -> bool {
        if !self.is_on(rule) {
            return false;
        }
        self.made += 1;
        *self.by_rule.entry(rule).or_default() += 1;
        if self.options.fuel == Some(self.made) {
            self.last = Some(Rewrite {
                number: self.made,
                pass: self.pass,
                rule,
                instruction: print::instr(module, id),
            });
        }
        true
    }
    /// What was made.
    pub fn report(self) -> RewriteReport {
        RewriteReport {
            made: self.made,
            by_rule: self.by_rule,
            last: self.last,
        }
    }
}

/// What optional rewrites a compilation made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RewriteReport {
    /// How many.
    pub made: u64,
    /// How many by each rule that made any.
    pub by_rule: BTreeMap<&'static str, u64>,
    /// The one that took the last of the fuel, when there was a limit and it was reached.
    pub last: Option<Rewrite>,
}

/// What a pass may know besides the module.
pub struct PassCx<'a> {
    /// The machine the module is compiled for.
    pub target: &'a Target,
    /// The account of optional rewrites.
    pub rewrites: Rewrites<'a>,
}

/// One rewrite of a whole module.
pub trait Pass {
    /// Kebab-case name, used in dumps, flags, goldens and timing.
    fn name(&self) -> &'static str;
    /// The stage the pass needs at least, and the stage the module has afterwards when that is
    /// later than the one it had.
    fn stages(&self) -> (Stage, Stage);
    /// Names of the rewrites that the program does without; a pass that has any can be left out.
    fn rules(&self) -> Vec<&'static str> {
        Vec::new()
    }
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
