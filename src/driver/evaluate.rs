//! Running a program on the reference evaluator.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::bundle::Bundle;
use crate::collective::Topology;
use crate::driver::arrays;
use crate::driver::arrays::ArrayFile;
use crate::driver::arrays::Partition;
use crate::driver::arrays::array_leaves;
use crate::driver::bundles;
use crate::driver::closeness;
use crate::driver::closeness::Making;
use crate::driver::devices;
use crate::driver::input::InputOptions;
use crate::eval;
use crate::front;
use crate::front::Program;
use crate::hlo;
use crate::hlo::Module;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::literal::device_form;
use crate::literal::dynamic::fits;
use crate::literal::dynamic::real_shape;
use crate::shape::ArrayShape;
use crate::shape::ProgramShape;

/// A program the evaluator can run.
pub struct Evaluation {
    module: Module,
    /// What the caller sees of parameters and results.
    caller: ProgramShape,
    notes: Vec<String>,
    /// Whether the module is a compiled one. Then its parameters and results have the caller's
    /// bytes, yet may have other dimensions: the compiler turns layouts into orders of dimensions.
    /// In a program that is yet to be compiled they have the caller's dimensions and values.
    is_compiled: bool,
    /// The devices it runs on.
    topology: Topology,
}

impl Evaluation {
    /// Reads a program as the options say, or takes the module out of a bundle.
    ///
    /// # Errors
    /// What the reader gives.
    pub fn open(program: &[u8], options: &InputOptions) -> Result<Self> {
        if options.format.is_none() && bundles::are(program) {
            return Self::of_bundle(&bundles::read(program)?);
        }
        let Program { module, notes } = front::import(program, options)?;
        hlo::verify::check(&module)?;
        let mut caller = module.entry_layout();
        if caller.parameter_names.len() != caller.parameters.len() {
            caller.parameter_names = module.program_shape(module.entry).parameter_names;
        }
        Ok(Self {
            caller,
            topology: module_topology(&module)?,
            module,
            notes,
            is_compiled: false,
        })
    }

    /// The program that a bundle carries.
    ///
    /// # Errors
    /// `XA7002` and `XA7003` when the module cannot be read or breaks a rule, `XA7002` when it is not
    /// the one that the bundle's signature describes.
    pub fn of_bundle(bundle: &Bundle) -> Result<Self> {
        Ok(Self {
            caller: bundle.executable.signature.program.clone(),
            module: bundles::module(bundle)?,
            notes: Vec::new(),
            is_compiled: true,
            topology: bundle.executable.topology()?,
        })
    }

    /// The devices it runs on: those the program was written for, unless somebody chose others.
    pub fn topology(&self) -> Topology {
        self.topology
    }

    /// Chooses how many devices run it; a bundle's number is fixed.
    ///
    /// # Errors
    /// `XA8001` when a bundle is for other numbers, or there would be too many devices.
    pub fn choose(&mut self, replicas: Option<u32>, partitions: Option<u32>) -> Result<()> {
        let chosen = devices::chosen(self.topology, replicas, partitions)?;
        if self.is_compiled {
            devices::check(self.topology, chosen)?;
        }
        self.topology = chosen;
        Ok(())
    }

    /// A module that passes have made of this one's. From some pass on its parameters and results
    /// have the dimensions that they have in memory.
    #[cfg(all(feature = "compiler", feature = "loader"))]
    pub(super) fn of_rewritten(&self, module: &Module, is_physical: bool) -> Self {
        Self {
            module: module.clone(),
            caller: self.caller.clone(),
            notes: Vec::new(),
            is_compiled: is_physical,
            topology: self.topology,
        }
    }

    /// What the caller sees of parameters and results.
    #[cfg(all(feature = "compiler", feature = "loader"))]
    pub(super) fn caller(&self) -> &ProgramShape {
        &self.caller
    }

    /// How each array leaf of the result is made.
    pub fn makings(&self) -> Vec<Making> {
        closeness::makings(&self.module)
    }

    /// What a user should know of the program.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Reads the array leaves of all parameters.
    ///
    /// # Errors
    /// `XA8001` and `XA8002`.
    pub fn read_inputs(
        &self,
        files: &[ArrayFile],
        partition: Partition,
    ) -> Result<Vec<ArrayLiteral>> {
        let leaves = arrays::inputs(&self.caller);
        arrays::read(files, "in", &leaves, partition)
    }

    /// As [`Evaluation::run_each`], with the same inputs for all devices.
    ///
    /// # Errors
    /// As [`Evaluation::run_each`].
    pub fn run_alike(&self, leaves: Vec<ArrayLiteral>) -> Result<Vec<Vec<ArrayLiteral>>> {
        self.run_each(vec![leaves; self.topology.devices()])
    }

    /// Evaluates on the array leaves of all parameters, for each device; both they and the results are
    /// as the caller sees them.
    ///
    /// # Errors
    /// `XA2001` when a collective does not fit the devices, `XA8004` when one waits for ever, `XA8007`
    /// for what the evaluator lacks.
    pub fn run_each(&self, leaves: Vec<Vec<ArrayLiteral>>) -> Result<Vec<Vec<ArrayLiteral>>> {
        let inside = self.module.program_shape(self.module.entry);
        let arguments = leaves.into_iter().map(|leaves| {
            let leaves = self.reinterpret(
                leaves,
                &array_leaves(&self.caller.parameters),
                &array_leaves(&inside.parameters),
            )?;
            Ok(arrays::arguments(&inside.parameters, leaves))
        });
        let arguments: Vec<Vec<Literal>> = arguments.collect::<Result<_>>()?;
        let results = eval::evaluate_on(&self.module, self.topology, &arguments)?;
        let results = results.into_iter().map(|result| {
            let mut out = Vec::new();
            flatten(result, &mut out);
            let (from, to) = ([&inside.result], [&self.caller.result]);
            self.reinterpret(out, &array_leaves(from), &array_leaves(to))
        });
        results.collect()
    }

    /// The values under `to` that are `values` under `from`.
    fn reinterpret(
        &self,
        values: Vec<ArrayLiteral>,
        from: &[&ArrayShape],
        to: &[&ArrayShape],
    ) -> Result<Vec<ArrayLiteral>> {
        let misfit = |what: &str| {
            let message = format!("the module does not fit the program's signature: {what}");
            let code = match self.is_compiled {
                true => codes::BUNDLE_CHECK,
                false => codes::MODULE_STRUCTURE,
            };
            Diagnostic::error(code, message)
        };
        if values.len() != from.len() || from.len() != to.len() {
            return Err(misfit("the numbers of arrays differ"));
        }
        let pairs = values.into_iter().zip(from).zip(to);
        pairs
            .map(|((value, from), to)| {
                let given = value.shape();
                if given.ty != from.ty || !fits(&given.dims, from) {
                    return Err(misfit("an array has another shape"));
                }
                // A compiled program takes and gives dynamic arrays as bytes.
                if self.is_compiled && (from.ty == to.ty || from.is_dynamic() || to.is_dynamic()) {
                    return device_form::from_device(&device_form::to_device(&value, from), to);
                }
                if from.ty != to.ty || from.dims != to.dims {
                    return Err(misfit("an array has other dimensions"));
                }
                let shape = real_shape(to, &given.dims);
                Ok(ArrayLiteral::new(shape, value.bytes().to_vec()))
            })
            .collect()
    }

    /// Reads expected results for this program.
    ///
    /// # Errors
    /// `XA8001` and `XA8002`.
    pub fn read_expected(&self, file: &ArrayFile) -> Result<Vec<ArrayLiteral>> {
        let wanted = arrays::outputs(&self.caller);
        let files = std::slice::from_ref(file);
        arrays::read(files, "out", &wanted, Partition::ONLY)
    }
}

/// The devices a module was written for.
fn module_topology(module: &Module) -> Result<Topology> {
    let config = &module.config;
    let found = Topology::new(config.replica_count, config.num_partitions);
    found.map_err(|why| Diagnostic::unsupported(codes::INPUT_LIMIT, why))
}

fn flatten(value: Literal, out: &mut Vec<ArrayLiteral>) {
    match value {
        Literal::Array(array) => out.push(array),
        Literal::Tuple(elements) => elements.into_iter().for_each(|e| flatten(e, out)),
        Literal::Token => {}
    }
}
