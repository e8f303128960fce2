//! Target triples. A triple selects an instruction set family, never a host's features.

use target_lexicon::Architecture;
use target_lexicon::BinaryFormat;
use target_lexicon::Triple;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::target::CpuFamily;

/// The family of a triple.
///
/// # Errors
/// `XA6004` when it is no triple, or names an architecture or object format we make no code for.
pub fn family(triple: &str) -> Result<CpuFamily> {
    let parsed: Triple = triple.parse().map_err(|e| {
        Diagnostic::error(
            codes::UNKNOWN_TARGET,
            format!("`{triple}` is not a target triple: {e}"),
        )
        .help("write one like `x86_64-unknown-linux-gnu` or `aarch64-unknown-linux-gnu`")
    })?;
    let family = match parsed.architecture {
        Architecture::X86_64 => CpuFamily::X86_64,
        Architecture::Aarch64(_) => CpuFamily::AArch64,
        other => {
            return Err(Diagnostic::unsupported(
                codes::UNKNOWN_TARGET,
                format!("no code is made for {other} (of `{triple}`)"),
            )
            .help("the families are x86_64 and aarch64"));
        }
    };
    match parsed.binary_format {
        BinaryFormat::Elf | BinaryFormat::Unknown => Ok(family),
        other => Err(Diagnostic::unsupported(
            codes::UNKNOWN_TARGET,
            format!("no {other:?} objects are made (for `{triple}`)"),
        )
        .help("bundles hold ELF objects: name a Linux triple")),
    }
}

/// The triple used for a family when none is given.
pub fn default_triple(family: CpuFamily) -> &'static str {
    match family {
        CpuFamily::X86_64 => "x86_64-unknown-linux-gnu",
        CpuFamily::AArch64 => "aarch64-unknown-linux-gnu",
    }
}

/// The family of the architecture component of a triple, as loaders compare it; nothing when it is
/// another one.
pub fn family_of_arch(triple: &str) -> Option<CpuFamily> {
    match triple.split('-').next()? {
        "x86_64" | "amd64" => Some(CpuFamily::X86_64),
        "aarch64" | "arm64" => Some(CpuFamily::AArch64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triples_select_families() {
        for triple in [
            "x86_64-unknown-linux-gnu",
            "x86_64-linux-gnu",
            "x86_64-pc-linux-gnu",
        ] {
            assert_eq!(family(triple).unwrap(), CpuFamily::X86_64);
        }
        for triple in ["aarch64-linux-gnu", "aarch64-unknown-linux-gnu"] {
            assert_eq!(family(triple).unwrap(), CpuFamily::AArch64);
        }
        for triple in [
            "riscv64gc-unknown-linux-gnu",
            "x86_64-apple-darwin",
            "what",
            "",
        ] {
            assert!(family(triple).is_err(), "{triple}");
        }
    }
}
