//! Re-reads what LLVM wrote and refuses what a loader would refuse or run wrongly.
//!
//! Objects: only position-independent relocations, no writable data, every kernel a global
//! function, and no call but to the few functions that every loader gives. PTX: every kernel an
//! entry point, and no call to a function that is not there.

use object::Object;
use object::ObjectSection;
use object::ObjectSymbol;
use object::RelocationFlags;
use object::SectionKind;
use object::elf;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::llvm::session::Isa;

/// The functions that kernels may call; a subset of what XLA's own loader resolves.
pub const ALLOWED_SYMBOLS: &[&str] = &["fma", "fmaf", "memcpy", "memmove", "memset"];

/// Relocations of x86-64 that need neither a fixed address nor a table.
const X86_RELOCATIONS: &[u32] = &[
    elf::R_X86_64_PC32,
    elf::R_X86_64_PLT32,
    elf::R_X86_64_PC64,
    elf::R_X86_64_GOTPCREL,
    elf::R_X86_64_GOTPCRELX,
    elf::R_X86_64_REX_GOTPCRELX,
];

/// Relocations of AArch64 of the same kind.
const AARCH64_RELOCATIONS: &[u32] = &[
    elf::R_AARCH64_PREL32,
    elf::R_AARCH64_PREL64,
    elf::R_AARCH64_ADR_PREL_PG_HI21,
    elf::R_AARCH64_ADR_PREL_LO21,
    elf::R_AARCH64_ADD_ABS_LO12_NC,
    elf::R_AARCH64_LDST8_ABS_LO12_NC,
    elf::R_AARCH64_LDST16_ABS_LO12_NC,
    elf::R_AARCH64_LDST32_ABS_LO12_NC,
    elf::R_AARCH64_LDST64_ABS_LO12_NC,
    elf::R_AARCH64_LDST128_ABS_LO12_NC,
    elf::R_AARCH64_CALL26,
    elf::R_AARCH64_JUMP26,
];

fn refuse(message: String) -> Box<Diagnostic> {
    Diagnostic::internal(codes::OBJECT_CHECK, message)
}

/// Checks an object that should define the kernels.
pub(super) fn check_object(bytes: &[u8], kernels: &[&str], isa: Isa) -> Result<()> {
    let file = object::File::parse(bytes)
        .map_err(|e| refuse(format!("LLVM wrote an object that cannot be read: {e}")))?;
    let mut defined = Vec::new();
    for symbol in file.symbols() {
        let name = symbol.name().unwrap_or("");
        if symbol.is_undefined() && !name.is_empty() && !ALLOWED_SYMBOLS.contains(&name) {
            return Err(refuse(format!(
                "the code calls `{name}`, which no loader provides"
            )));
        }
        if symbol.is_definition() && symbol.is_global() {
            defined.push(name);
        }
    }
    for kernel in kernels {
        if !defined.contains(kernel) {
            return Err(refuse(format!(
                "the object does not define kernel `{kernel}`"
            )));
        }
    }
    let allowed = if isa == Isa::AArch64 {
        AARCH64_RELOCATIONS
    } else {
        X86_RELOCATIONS
    };
    for section in file.sections() {
        check_section(&section, allowed)?;
    }
    Ok(())
}

fn check_section(section: &object::Section<'_, '_>, allowed: &[u32]) -> Result<()> {
    let name = section.name().unwrap_or("");
    let writable = matches!(
        section.kind(),
        SectionKind::Data
            | SectionKind::UninitializedData
            | SectionKind::Tls
            | SectionKind::UninitializedTls
            | SectionKind::Common
    );
    if writable && section.size() > 0 {
        return Err(refuse(format!("the object has writable data in `{name}`")));
    }
    for (offset, relocation) in section.relocations() {
        let RelocationFlags::Elf { r_type } = relocation.flags() else {
            return Err(refuse(format!("`{name}` has a relocation that is not ELF")));
        };
        if !allowed.contains(&r_type) {
            return Err(refuse(format!(
                "`{name}` has a relocation of type {r_type} at {offset:#x}, which needs a fixed \
                 address"
            )));
        }
    }
    Ok(())
}

/// Checks PTX that should define the kernels.
pub(super) fn check_ptx(text: &str, kernels: &[&str]) -> Result<()> {
    for kernel in kernels {
        let entry = format!(".visible .entry {kernel}(");
        if !text.contains(&entry) {
            return Err(refuse(format!("the PTX does not define kernel `{kernel}`")));
        }
    }
    match text.lines().find(|line| line.contains(".extern .func")) {
        Some(line) => Err(refuse(format!(
            "the PTX calls a function that is not there: {}",
            line.trim()
        ))),
        None => Ok(()),
    }
}
