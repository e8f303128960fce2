//! The door: bytes of any format, and what is known of the program beside them, to a module.

use std::collections::BTreeMap;

use crate::base::Diagnostic;
use crate::base::Location;
use crate::base::Result;
use crate::base::codes;
use crate::front::detect;
use crate::front::detect::InputFormat;
use crate::front::detect::detect;
use crate::front::hlo_text;
use crate::front::jax_export;
pub use crate::front::jax_export::dims::Sizes;
use crate::front::stablehlo;
use crate::front::stablehlo::Argument;
use crate::hlo::Module;
use crate::mlir;
use crate::shape::Dims;
use crate::wire;

/// What is said of a program beside its bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InputOptions {
    /// Its format; told from the content when there is none.
    pub format: Option<InputFormat>,
    /// Sizes of the dimension variables of an export.
    pub dims: Sizes,
    /// Sizes of arguments by their numbers, where StableHLO leaves them open.
    pub shapes: BTreeMap<usize, Dims>,
    /// The platform to take of an export for several.
    pub platform: Option<String>,
    /// What JAX calls the platform of the target, when there is one.
    pub own_platform: Option<&'static [&'static str]>,
}

/// A program, read.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its module.
    pub module: Module,
    /// What a user should know of it.
    pub notes: Vec<String>,
}

/// Reads a module, in that format or in the one its content shows.
///
/// # Errors
/// As [`import`].
pub fn read(bytes: &[u8], format: Option<InputFormat>) -> Result<Module> {
    let options = InputOptions {
        format,
        ..InputOptions::default()
    };
    Ok(import(bytes, &options)?.module)
}

/// Reads a program.
///
/// # Errors
/// `INPUT_KIND` when no format fits, `UNKNOWN_WORD` for options that do not go with the format, else
/// what its reader gives.
pub fn import(bytes: &[u8], options: &InputOptions) -> Result<Program> {
    import_observed(bytes, options, &mut || {})
}

/// As [`import`]; tells when a program of StableHLO is read and its conversion to HLO begins.
///
/// # Errors
/// As [`import`].
pub fn import_observed(
    bytes: &[u8],
    options: &InputOptions,
    is_read: &mut dyn FnMut(),
) -> Result<Program> {
    let format = format_of(bytes, options)?;
    if format == InputFormat::JaxExport {
        return jax_export::import(bytes, options, is_read);
    }
    let refused = |what: &str, of: &str| {
        let message = format!("{what} is for {of}, the input is {}", format.description());
        Err(Diagnostic::error(codes::UNKNOWN_WORD, message))
    };
    if !options.dims.is_empty() {
        return refused("--dim", "files of jax.export");
    }
    if options.platform.is_some() {
        return refused("--platform", "files of jax.export");
    }
    let module = match read_mlir(bytes, format)? {
        Some(module) => {
            is_read();
            let count = options.shapes.keys().last().map_or(0, |last| last + 1);
            let arguments = (0..count.min(MOST_ARGUMENTS)).map(|i| match options.shapes.get(&i) {
                Some(dims) => Argument::Sized(dims.clone()),
                None => Argument::Declared,
            });
            let arguments = arguments.collect();
            convert(&module, arguments)?
        }
        None if !options.shapes.is_empty() => return refused("--shape", "StableHLO"),
        None if format == InputFormat::HloText => read_text(bytes, hlo_text::parse)?,
        None => wire::hlo::decode_any(bytes).map_err(|error| {
            // The bytes of other files pass for a message too.
            let other = detect::other(bytes).filter(|_| error.code == codes::PROTO_DECODE);
            other.unwrap_or(error)
        })?,
    };
    let notes = Vec::new();
    Ok(Program { module, notes })
}

/// The HLO module of a StableHLO module. Arrays are row-major, and say so as those of HLO text do.
pub(super) fn convert(module: &mlir::Module, arguments: Vec<Argument>) -> Result<Module> {
    let mut module = stablehlo::to_hlo(module, &stablehlo::Options { arguments })?;
    for instr in module.instrs.values_mut() {
        instr.shape = instr.shape.with_default_layout();
    }
    Ok(module)
}

/// More arguments than any function has.
const MOST_ARGUMENTS: usize = 1 << 20;

/// The format that the options name, or that the content shows.
fn format_of(bytes: &[u8], options: &InputOptions) -> Result<InputFormat> {
    match options.format {
        Some(format) => Ok(format),
        None => detect(bytes),
    }
}

/// The module as StableHLO, where that is what the input is.
///
/// # Errors
/// As [`import`].
pub fn import_mlir(bytes: &[u8], options: &InputOptions) -> Result<Option<mlir::Module>> {
    read_mlir(bytes, format_of(bytes, options)?)
}

fn read_mlir(bytes: &[u8], format: InputFormat) -> Result<Option<mlir::Module>> {
    match format {
        InputFormat::HloText | InputFormat::HloProto => Ok(None),
        InputFormat::StablehloText => read_text(bytes, mlir::text::read).map(Some),
        InputFormat::StablehloBytecode => mlir::bytecode::read(bytes).map(Some),
        InputFormat::JaxExport => {
            let export = jax_export::Export::read(bytes)?;
            mlir::bytecode::read(export.module).map(Some)
        }
    }
}

/// Reads a text, which may begin with a byte order mark.
fn read_text<T>(bytes: &[u8], read: impl Fn(&str) -> Result<T>) -> Result<T> {
    match std::str::from_utf8(bytes) {
        Ok(text) => read(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(error) => {
            let message = "a text with bytes that are not valid UTF-8";
            let offset = u64::try_from(error.valid_up_to()).unwrap_or(u64::MAX);
            Err(Diagnostic::error(codes::TEXT_SYNTAX, message).at(Location::Byte(offset)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_go_with_formats() {
        let text = b"HloModule m\nENTRY e {\n  ROOT x = f32[] parameter(0)\n}\n";
        let mut options = InputOptions::default();
        options.dims.insert("b".to_owned(), 3);
        let error = import(text, &options).unwrap_err();
        assert_eq!(
            error.message,
            "--dim is for files of jax.export, the input is HLO text"
        );
        options.dims.clear();
        options.shapes.insert(0, Dims::new());
        let error = import(text, &options).unwrap_err();
        assert_eq!(
            error.message,
            "--shape is for StableHLO, the input is HLO text"
        );
        options.shapes.clear();
        assert!(import(text, &options).is_ok());
        let error = read(b"HloModule m \xff", None).unwrap_err();
        assert_eq!(error.location, Some(Location::Byte(12)));
        assert!(read(b"\x0a\xff\xff", None).is_err());
    }
}
