//! From an executable to a program that can be called, whatever its platform.
//!
//! Nothing is loaded before the executable has passed its check.

use std::sync::Arc;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::executable::Executable;
use crate::executable::Signature;
use crate::executable::TargetNeeds;
use crate::executable::check;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::runtime::cpu;
use crate::shape::Shape;

/// How a program is loaded.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Threads to work with, the caller's among them; by default all the process may use.
    pub threads: Option<usize>,
}

/// A loaded program.
pub struct Loaded {
    program: cpu::program::Program,
}

impl Loaded {
    /// Checks and loads an executable.
    ///
    /// # Errors
    /// The first finding of the check (`XA7002`); `XA8003` when the code cannot be loaded; `XA8006`
    /// when there is no device of the platform.
    pub fn new(executable: &Executable, options: &LoadOptions) -> Result<Self> {
        let mut findings = check::check(executable).into_iter();
        if let Some(first) = findings.next() {
            let mut first = Box::new(first);
            let rest = findings.len();
            if rest > 0 {
                first = first.note(format!("{rest} more findings; `verify` lists them"));
            }
            return Err(first);
        }
        match executable.needs {
            TargetNeeds::Cpu { .. } => Self::load_cpu(executable, options),
            TargetNeeds::Cuda { .. } => Err(Diagnostic::unsupported(
                codes::NO_DEVICE,
                "this build inspects and verifies CUDA bundles, it does not run them",
            )
            .help("run the bundle with XLA's CUDA client")),
        }
    }

    fn load_cpu(executable: &Executable, options: &LoadOptions) -> Result<Self> {
        let threads = options.threads.unwrap_or_else(cpu::host::threads);
        let pool = Arc::new(cpu::pool::Pool::new(threads)?);
        let functions = cpu::custom_call::NoCustomCalls;
        let program = cpu::program::Program::load(executable, &functions, pool)?;
        Ok(Self { program })
    }

    /// How it is called.
    pub fn signature(&self) -> &Signature {
        self.program.signature()
    }

    /// Threads that work on a run.
    pub fn threads(&self) -> usize {
        self.program.threads()
    }

    /// Runs once. Inputs are the parameters, or their array leaves in order; the results are the
    /// array leaves of the result in order.
    ///
    /// # Errors
    /// `XA8001` when the inputs do not fit, `XA8004` when the program fails.
    pub fn run(&self, inputs: &[Literal]) -> Result<Vec<ArrayLiteral>> {
        self.program.run(&leaves(inputs))
    }

    /// Gives the program memory and inputs, to be run many times.
    ///
    /// # Errors
    /// `XA8001` when the inputs do not fit.
    pub fn bind(&self, inputs: &[Literal]) -> Result<cpu::program::Bound<'_>> {
        self.program.bind(&leaves(inputs))
    }

    /// As [`Loaded::bind`], for the array leaves of all parameters.
    ///
    /// # Errors
    /// `XA8001` when the inputs do not fit.
    pub fn bind_arrays(&self, inputs: &[ArrayLiteral]) -> Result<cpu::program::Bound<'_>> {
        self.program.bind(inputs)
    }
}

/// The arrays in values, in order.
pub fn leaves(values: &[Literal]) -> Vec<ArrayLiteral> {
    fn collect(value: &Literal, out: &mut Vec<ArrayLiteral>) {
        match value {
            Literal::Array(array) => out.push(array.clone()),
            Literal::Tuple(elements) => elements.iter().for_each(|e| collect(e, out)),
            Literal::Token => {}
        }
    }
    let mut out = Vec::new();
    values.iter().for_each(|value| collect(value, &mut out));
    out
}

/// A value of this shape from its array leaves in order; none when there are too few.
pub fn unflatten(
    shape: &Shape,
    leaves: &mut impl Iterator<Item = ArrayLiteral>,
) -> Option<Literal> {
    match shape {
        Shape::Array(_) => leaves.next().map(Literal::Array),
        Shape::Tuple(elements) => {
            let elements = elements.iter().map(|element| unflatten(element, leaves));
            elements.collect::<Option<Vec<_>>>().map(Literal::Tuple)
        }
        Shape::Token | Shape::Opaque => Some(Literal::Token),
    }
}
