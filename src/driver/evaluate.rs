//! Running a program on the reference evaluator.

use crate::base::Result;
use crate::bundle;
use crate::driver::arrays;
use crate::driver::arrays::ArrayFile;
use crate::eval;
use crate::hlo;
use crate::hlo::Module;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::wire;

/// A program the evaluator can run.
pub struct Evaluation {
    module: Module,
}

impl Evaluation {
    /// Reads a program, in the format of that name or the one its content shows, or takes the module
    /// out of a bundle.
    ///
    /// # Errors
    /// What the reader gives.
    pub fn open(program: &[u8], format: Option<&str>) -> Result<Self> {
        let module = if format.is_none() && bundle::is_bundle(program) {
            let bundle = bundle::read(program)?;
            wire::hlo::decode_module_with_config(&bundle.executable.hlo)?
        } else {
            read_program(program, format)?
        };
        hlo::verify::check(&module)?;
        Ok(Self { module })
    }

    /// A program that is at hand.
    pub fn of(module: Module) -> Self {
        Self { module }
    }

    /// Evaluates on these files' arrays; gives the array leaves of the result.
    ///
    /// # Errors
    /// `XA8001` and `XA8002` for inputs, `XA8007` for what the evaluator lacks.
    pub fn run(&self, inputs: &[ArrayFile]) -> Result<Vec<ArrayLiteral>> {
        let program = self.module.entry_layout();
        let shapes = arrays::array_leaves(&program.parameters);
        let leaves = arrays::read(inputs, "in", &shapes)?;
        self.run_leaves(leaves)
    }

    /// Evaluates on the array leaves of all parameters.
    ///
    /// # Errors
    /// `XA8007` for what the evaluator lacks.
    pub fn run_leaves(&self, leaves: Vec<ArrayLiteral>) -> Result<Vec<ArrayLiteral>> {
        let program = self.module.program_shape(self.module.entry);
        let arguments = arrays::arguments(&program.parameters, leaves);
        let result = eval::evaluate(&self.module, &arguments)?;
        let mut out = Vec::new();
        flatten(result, &mut out);
        Ok(out)
    }

    /// Reads expected results for this program.
    ///
    /// # Errors
    /// `XA8001` and `XA8002`.
    pub fn read_expected(&self, file: &ArrayFile) -> Result<Vec<ArrayLiteral>> {
        let program = self.module.entry_layout();
        let shapes = arrays::array_leaves([&program.result]);
        arrays::read(std::slice::from_ref(file), "out", &shapes)
    }
}

#[cfg(feature = "compiler")]
fn read_program(program: &[u8], format: Option<&str>) -> Result<Module> {
    crate::front::read(program, super::compile::input_format(format)?)
}

/// Without the front room there is one format.
#[cfg(not(feature = "compiler"))]
fn read_program(program: &[u8], _format: Option<&str>) -> Result<Module> {
    wire::hlo::decode_any(program)
}

fn flatten(value: Literal, out: &mut Vec<ArrayLiteral>) {
    match value {
        Literal::Array(array) => out.push(array),
        Literal::Tuple(elements) => elements.into_iter().for_each(|e| flatten(e, out)),
        Literal::Token => {}
    }
}
