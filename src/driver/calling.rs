//! A loaded program called on memory of the caller's: arrays as they lie there, no files, no names.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::bundle;
use crate::driver::bundles;
use crate::driver::run::Session;
use crate::executable::Signature;
use crate::executable::TargetNeeds;
use crate::literal::dynamic::bounds;
use crate::literal::dynamic::fits;
use crate::literal::dynamic::real_shape;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::Shape;
use crate::shape::ShapeIndex;
use crate::wire::envelope;

pub use crate::bundle::Bundle;
pub use crate::runtime::calling::Argument;

/// An array that a program takes or gives: a leaf of a parameter or of the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    /// The parameter's name, or `result`, and the place in it: `state.0`.
    pub name: String,
    /// Number of the parameter; 0 for results.
    pub parameter: usize,
    /// Place in the parameter or result.
    pub index: ShapeIndex,
    /// Type, sizes and, always, a layout.
    pub shape: ArrayShape,
    /// Whether its memory is to be used again for a result.
    pub donated: bool,
}

/// What a program takes and gives, on each device.
#[derive(Clone, Debug, PartialEq)]
pub struct Interface {
    /// The array leaves of all parameters.
    pub arguments: Vec<Leaf>,
    /// The array leaves of the result.
    pub results: Vec<Leaf>,
}

/// Reads a bundle.
///
/// # Errors
/// `XA7001` to `XA7003`.
pub fn read(bytes: &[u8]) -> Result<Bundle> {
    bundles::read(bytes)
}

/// Everything about a bundle that was read from these bytes, as JSON.
///
/// # Errors
/// `XA7001` to `XA7003`.
pub fn describe(bundle: &Bundle, bytes: &[u8]) -> Result<String> {
    let stock = bundle::stock(bundle, bytes)?;
    Ok(bundle::describe::json(bundle, &stock).to_string())
}

/// The triple or the compute capability that a bundle is for.
pub fn target(bundle: &Bundle) -> String {
    match &bundle.executable.needs {
        TargetNeeds::Cpu { triple, .. } => triple.clone(),
        TargetNeeds::Cuda {
            major,
            minor,
            feature_extension,
            ..
        } => {
            let suffix = bundle::describe::suffix(*feature_extension);
            format!("sm_{major}{minor}{suffix}")
        }
    }
}

/// The functions that a program calls by name, and whether each comes with the loader.
pub fn imports(bundle: &Bundle) -> Vec<(String, bool)> {
    let imports = bundle::describe::imports(&bundle.executable.thunks);
    let imports = imports.into_iter();
    imports
        .map(|(name, ours)| (name.to_owned(), ours))
        .collect()
}

/// What goes before the bytes of a bundle so that jaxlib's Python interface takes them: nothing when
/// it is there.
///
/// # Errors
/// `XA7003` for an executable without the message that holds compile options, and for a bundle inside
/// of one of JAX's own files.
pub fn jax_prefix(bundle: &Bundle) -> Result<Vec<u8>> {
    if let Some(container) = &bundle.form.container {
        let message = format!("the bundle is inside of a {}", container.name());
        return Err(Diagnostic::unsupported(codes::BUNDLE_UNSUPPORTED, message)
            .help("JAX reads such files itself"));
    }
    if bundle.form.envelope.is_some() {
        return Ok(Vec::new());
    }
    if !bundle.form.has_options {
        let message = "the bundle is a bare executable, wanted one with compile options";
        return Err(Diagnostic::unsupported(codes::BUNDLE_UNSUPPORTED, message)
            .help("`xla-aot compile` writes such ones"));
    }
    let executable = &bundle.executable;
    Ok(envelope::wrap(&executable.name, &executable.signature, &[]))
}

impl Interface {
    /// That of a bundle.
    pub fn of(bundle: &Bundle) -> Self {
        Self::of_signature(&bundle.executable.signature)
    }

    fn of_signature(signature: &Signature) -> Self {
        let program = &signature.program;
        let parameters = program.parameters.iter().enumerate();
        let arguments = parameters.flat_map(|(number, shape)| {
            let name = program.parameter_names.get(number);
            let name = name.map_or("", String::as_str);
            leaves(name, number, shape, |index| {
                let mut aliases = signature.aliases.iter();
                aliases.any(|a| a.parameter == number && a.index == *index)
            })
        });
        Self {
            arguments: arguments.collect(),
            results: leaves("result", 0, &program.result, |_| false),
        }
    }
}

fn leaves(
    name: &str,
    parameter: usize,
    shape: &Shape,
    is_donated: impl Fn(&ShapeIndex) -> bool,
) -> Vec<Leaf> {
    let leaves = shape.leaves().into_iter();
    let leaves = leaves.filter_map(|(index, leaf)| {
        let mut shape = leaf.as_array()?.clone();
        shape.layout = Some(shape.layout_or_default());
        let place = index.iter().map(|i| format!(".{i}"));
        Some(Leaf {
            name: name.to_owned() + &place.collect::<String>(),
            parameter,
            donated: is_donated(&index),
            index,
            shape,
        })
    });
    leaves.collect()
}

impl Leaf {
    /// The shape of an array of these sizes.
    ///
    /// # Errors
    /// `XA8001` when they are not within the bounds.
    pub fn sized(&self, sizes: &[usize]) -> Result<ArrayShape> {
        if !fits(sizes, &self.shape) {
            let message = format!(
                "`{}` has the sizes {sizes:?}, wanted {}",
                self.name,
                bounds(&self.shape)
            );
            return Err(Diagnostic::error(codes::INPUT_MISMATCH, message));
        }
        Ok(real_shape(&self.shape, sizes))
    }

    /// The shape of an array with all sizes at their bounds.
    pub fn whole(&self) -> ArrayShape {
        real_shape(&self.shape, &self.shape.dims)
    }

    fn check(&self, argument: Argument<'_>) -> Result<()> {
        let shape = match argument.sizes {
            Some(sizes) => self.sized(sizes)?,
            None => self.whole(),
        };
        let (got, wanted) = (argument.bytes.len(), shape.byte_size());
        if got == wanted {
            return Ok(());
        }
        let message = format!("`{}` has {got} bytes, wanted {wanted}", self.name);
        let help = format!(
            "it is {}{:?}, without gaps",
            shape.ty,
            shape.dims.as_slice()
        );
        Err(Diagnostic::error(codes::INPUT_MISMATCH, message).help(help))
    }
}

impl Session {
    /// Runs once on the arguments of each device, and writes the results of each where they belong:
    /// memory of at least the size that they have at their bounds. Gives the sizes of each result.
    ///
    /// # Errors
    /// `XA8001` when they do not fit, `XA8004` when the program fails.
    pub fn call(
        &self,
        interface: &Interface,
        arguments: &[Argument<'_>],
        results: &mut [&mut [u8]],
    ) -> Result<Vec<Dims>> {
        let devices = self.topology().devices();
        let check = |what: &str, got: usize, each: usize| {
            let wanted = each * devices;
            let message = format!("{got} {what}, wanted {wanted}");
            (got == wanted)
                .then_some(())
                .ok_or_else(|| Diagnostic::error(codes::INPUT_MISMATCH, message))
        };
        check("arguments", arguments.len(), interface.arguments.len())?;
        check("results", results.len(), interface.results.len())?;
        for (leaf, result) in interface.results.iter().cycle().zip(results.iter()) {
            let (got, wanted) = (result.len(), leaf.whole().byte_size());
            if got < wanted {
                let message = format!("`{}` has room for {got} bytes, wanted {wanted}", leaf.name);
                return Err(Diagnostic::error(codes::INPUT_MISMATCH, message));
            }
        }
        for (leaf, argument) in interface.arguments.iter().cycle().zip(arguments) {
            leaf.check(*argument)?;
        }
        self.callable.call(arguments, results)
    }
}
