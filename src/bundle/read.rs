//! Bytes to [`Bundle`].

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::Severity;
use crate::base::codes;
use crate::bundle::detect::Form;
use crate::bundle::detect::take_apart;
use crate::executable::Executable;
use crate::target::Platform;
use crate::wire::executable_cpu;
use crate::wire::executable_gpu;
use crate::wire::options;

/// A bundle, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Bundle {
    /// The layers it came in.
    pub form: Form,
    /// The program.
    pub executable: Executable,
    /// The serialized `xla.CompileOptionsProto`; empty when there was none.
    pub options: Vec<u8>,
    /// Whether this program wrote it, which it is known by its checksum for.
    pub is_own: bool,
    /// Size of the file in bytes.
    pub file_bytes: u64,
}

impl Bundle {
    /// The device the program is for.
    pub fn platform(&self) -> Platform {
        self.form.platform
    }
}

/// Reads a bundle of any form: with or without jaxlib's envelope, plain or cut into records, the
/// bare executable that upstream's CPU compile tool writes, or what JAX puts bundles into.
///
/// # Errors
/// `XA7001` when the bytes are no bundle, `XA7002` when one is damaged (bundles of this program have a
/// checksum that tells), `XA7003` when it holds what this reader does not know. There are no others,
/// so that whoever reads a bundle can tell it from a wrong program by the code.
pub fn read(bytes: &[u8]) -> Result<Bundle> {
    decode(bytes).map_err(rejected)
}

/// A finding about a part of a bundle, whatever its reader calls it, as one about the bundle.
pub fn rejected(mut finding: Box<Diagnostic>) -> Box<Diagnostic> {
    let is_ours = matches!(
        finding.code,
        codes::NOT_A_BUNDLE | codes::BUNDLE_CHECK | codes::BUNDLE_UNSUPPORTED
    );
    if !is_ours && finding.severity != Severity::Internal {
        finding.code = match finding.severity {
            Severity::Unsupported => codes::BUNDLE_UNSUPPORTED,
            _ => codes::BUNDLE_CHECK,
        };
    }
    finding
}

fn decode(bytes: &[u8]) -> Result<Bundle> {
    let parts = take_apart(bytes)?;
    let found = options::checksum(&parts.executable, &parts.outer.options);
    if let Some(noted) = parts.outer.checksum.filter(|&noted| noted != found) {
        let message = format!(
            "the bundle is damaged: the checksum of its program is {found:016x}, {noted:016x} is noted"
        );
        return Err(Diagnostic::error(codes::BUNDLE_CHECK, message));
    }
    let executable = match parts.form.platform {
        Platform::Cpu => executable_cpu::decode(&parts.executable, parts.outer.counts)?,
        Platform::Cuda => executable_gpu::decode(&parts.executable, &parts.outer)?,
    };
    Ok(Bundle {
        form: parts.form,
        executable,
        is_own: parts.outer.checksum.is_some(),
        options: parts.outer.options,
        file_bytes: bytes.len() as u64,
    })
}
