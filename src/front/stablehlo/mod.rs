//! StableHLO modules to HLO modules and back.
//!
//! [`to_hlo`] gives the module that XLA's own conversion gives, as far as structure goes: functions
//! become computations, regions computations with what they capture as parameters, results of
//! `main` a tuple when there are several. CHLO is decomposed ([`chlo`]).
//!
//! Sizes that a type leaves open are found while converting, since the operands of an op have been
//! converted before it: their HLO shapes are whole, and shapes that are computed are evaluated. A
//! function whose types are open is converted once for each set of shapes and sizes it is called
//! with. What stays open is an error.

pub mod chlo;
mod export;
mod import;
mod types;

use crate::base::Result;
use crate::hlo;
use crate::hlo::Op;
use crate::hlo::expand;
use crate::hlo::expand::Expansion;
use crate::literal::ArrayLiteral;
use crate::mlir;
use crate::shape::Dims;

/// What the caller knows of an argument of the entry function.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Argument {
    /// Only its type.
    #[default]
    Declared,
    /// Its sizes, which must fit the type.
    Sized(Dims),
    /// Its value; it is no parameter of the HLO module then.
    Constant(ArrayLiteral),
}

/// What the conversion is told beside the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// The arguments of the entry function, in order; those that are left out are as declared.
    pub arguments: Vec<Argument>,
}

/// Converts a module of StableHLO, CHLO and what stands beside them.
///
/// # Errors
/// `OP_CONSTRAINT` and `SHAPE_MISMATCH` for ops that break a rule, `MODULE_STRUCTURE` for functions
/// that are missing or call themselves, `INPUT_LIMIT` for nesting that is too deep, and
/// `COMPILE_UNSUPPORTED` for what HLO has no form of, with op, place and source line.
pub fn to_hlo(module: &mlir::Module, options: &Options) -> Result<hlo::Module> {
    import::convert(module, options)
}

/// Converts a module of HLO to StableHLO, with ops of CHLO where StableHLO has none, and with simpler
/// ops where neither has one.
///
/// # Errors
/// Those of the verifier, and `COMPILE_UNSUPPORTED` for what has no form in either dialect, with the
/// instruction.
pub fn from_hlo(module: &hlo::Module) -> Result<mlir::Module> {
    export::convert(&prepared(module, no_op_of_it)?, false)
}

/// Converts a module of HLO to StableHLO alone: what is an op of CHLO elsewhere is a composite here,
/// with a function beside it that computes it, as `jax.export` writes such ops. A scan, which would
/// need a composite with a region, is a loop.
///
/// # Errors
/// Those of [`from_hlo`].
pub fn from_hlo_portable(module: &hlo::Module) -> Result<mlir::Module> {
    let module = prepared(module, |op| match op {
        Op::Scan { .. } => Some(expand::scan),
        op => no_op_of_it(op),
    })?;
    export::convert(&module, true)
}

/// The expansion of an op that neither StableHLO nor CHLO has.
fn no_op_of_it(op: &Op) -> Option<Expansion> {
    match op {
        Op::ScaledDot { .. } => Some(expand::scaled_dot),
        Op::StochasticConvert => Some(expand::stochastic_convert),
        Op::TopK { largest: false, .. } => Some(expand::topk),
        _ => None,
    }
}

/// The module without the ops that have an expansion, and with types that say what is dynamic: HLO
/// may leave that out, StableHLO may not.
fn prepared(
    module: &hlo::Module,
    expansion: impl Fn(&Op) -> Option<Expansion>,
) -> Result<hlo::Module> {
    hlo::verify::check(module)?;
    let mut module = module.clone();
    expand::everywhere(&mut module, &|module, id| expansion(&module.instrs[id].op))?;
    hlo::dynamic::flow::settle(&mut module)?;
    Ok(module)
}
