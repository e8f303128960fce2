//! Reading bundles; what is none is called by its name.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::bundle;
use crate::bundle::Bundle;
#[cfg(feature = "reference")]
use crate::hlo;
#[cfg(feature = "reference")]
use crate::hlo::Module;
#[cfg(feature = "reference")]
use crate::wire;

/// Reads a bundle, as [`bundle::read()`] does.
///
/// # Errors
/// `XA7001` to `XA7003`. A program that is yet to be compiled is told from other bytes.
pub fn read(bytes: &[u8]) -> Result<Bundle> {
    bundle::read(bytes).map_err(|error| match program(bytes) {
        Some(what) if error.code == codes::NOT_A_BUNDLE => {
            let message = format!("this is {what}, not a bundle");
            let help = "compile it first: `xla-aot compile`";
            Diagnostic::error(codes::NOT_A_BUNDLE, message).help(help)
        }
        _ => error,
    })
}

/// Whether the bytes are a bundle, whole or damaged.
#[cfg(feature = "reference")]
pub fn are(bytes: &[u8]) -> bool {
    bundle::begins_as_bundle(bytes) || bundle::is_bundle(bytes)
}

/// What to say of a bundle where a program is to be compiled.
#[cfg(feature = "compiler")]
pub fn compiled_already() -> Box<Diagnostic> {
    let message = "this is a bundle, which is compiled already";
    let help = "`xla-aot run` runs it; compile the program that it was made of for other targets";
    Diagnostic::error(codes::INPUT_KIND, message).help(help)
}

/// The module that a bundle carries, as the compiler left it.
///
/// # Errors
/// `XA7002` and `XA7003` when the module cannot be read or breaks a rule.
#[cfg(feature = "reference")]
pub fn module(bundle: &Bundle) -> Result<Module> {
    let module = wire::hlo::decode_module_with_config(&bundle.executable.hlo);
    let module = module.map_err(bundle::rejected)?;
    hlo::verify::check(&module).map_err(bundle::rejected)?;
    Ok(module)
}

/// What kind of program the bytes are, when they are one.
#[cfg(feature = "reference")]
fn program(bytes: &[u8]) -> Option<&'static str> {
    crate::front::detect::program(bytes)
}

#[cfg(not(feature = "reference"))]
fn program(_: &[u8]) -> Option<&'static str> {
    None
}
