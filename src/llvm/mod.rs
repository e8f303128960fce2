//! Kernels to machine code: ELF objects for CPUs, PTX (or cubins) for NVIDIA GPUs.
//!
//! The only room that knows LLVM; no LLVM type leaves it. The host is never looked at: what code
//! may use stands in the target. The same kernels and target give the same bytes, whatever the
//! number of threads: modules are cut by the kernels alone and results are gathered in order.

mod abi_cpu;
mod abi_gpu;
mod dot;
mod expr;
mod float;
mod index;
mod ir;
mod lower;
mod memory;
pub mod object;
mod optimize;
mod pool;
pub mod ptxas;
mod same;
mod session;
mod tiles;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::executable::Code;
use crate::executable::KernelId;
use crate::executable::KernelImage;
use crate::kernel::Kernel;
use crate::llvm::optimize::Session;
use crate::llvm::optimize::Written;
use crate::llvm::ptxas::Ptxas;
use crate::llvm::ptxas::Usage;
use crate::llvm::same::Group;
use crate::llvm::session::Machine;
use crate::target::Target;

/// Most kernels of one CPU module.
const KERNELS_PER_MODULE: usize = 12;
/// Values after which a CPU module is full.
const VALUES_PER_MODULE: usize = 6000;

/// What is done with the PTX assembler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Assemble {
    /// PTX is shipped and nothing is assembled.
    #[default]
    No,
    /// PTX is shipped after it has been assembled for a check.
    Check(Ptxas),
    /// The assembled cubins are shipped.
    Ship(Ptxas),
}

/// How kernels are compiled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Threads; zero counts as one.
    pub jobs: usize,
    /// Whether LLVM IR is wanted as text.
    pub llvm_ir: bool,
    /// Whether assembly (PTX for a GPU) is wanted as text.
    pub assembly: bool,
    /// The PTX assembler.
    pub assemble: Assemble,
}

/// The kind of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    /// LLVM IR after the passes.
    LlvmIr,
    /// Assembly of a CPU.
    Assembly,
    /// PTX.
    Ptx,
}

/// A text that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageText {
    /// Position of the image it belongs to.
    pub image: usize,
    /// What it is.
    pub kind: TextKind,
    /// The text.
    pub text: String,
}

/// The code of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compiled {
    /// Images in the order of the kernels; on a CPU kernels that are equal but for the name share
    /// code.
    pub images: Vec<KernelImage>,
    /// Texts that were asked for, by image.
    pub texts: Vec<ImageText>,
    /// What the PTX assembler said, by kernel, when it ran.
    pub usage: Vec<Usage>,
}

/// Compiles kernels, whose names differ from each other.
///
/// # Errors
/// `KERNEL_CHECK` for a kernel that breaks a rule, `LLVM` for what LLVM refuses, `OBJECT_CHECK` for
/// code that no loader would take, `PTXAS` for what the assembler refuses.
pub fn compile(kernels: &[Kernel], target: &Target, options: &Options) -> Result<Compiled> {
    if kernels.is_empty() {
        return Ok(Compiled::default());
    }
    for kernel in kernels {
        if let Some(found) = crate::kernel::check::check(kernel).into_iter().next() {
            return Err(Box::new(found));
        }
    }
    let groups = same::group(kernels, target);
    let modules = split(&groups, target);
    let count = modules.len();
    let (owned_target, wants) = (target.clone(), options.clone());
    let thread_target = target.clone();
    let pieces = pool::run(
        count,
        options.jobs,
        move || Session::new(&thread_target),
        move |session, piece| {
            let groups = &groups[modules[piece].clone()];
            compile_module(session, piece, groups, &owned_target, &wants)
        },
    )?;
    let mut compiled = Compiled::default();
    for (index, piece) in pieces.into_iter().enumerate() {
        compiled.images.push(piece.image);
        compiled
            .texts
            .extend(piece.texts.into_iter().map(|(kind, text)| ImageText {
                image: index,
                kind,
                text,
            }));
        compiled.usage.extend(piece.usage);
    }
    Ok(compiled)
}

/// LLVM's data layout string of a target.
///
/// # Errors
/// `UNKNOWN_TARGET` when LLVM has no such target.
pub fn data_layout(target: &Target) -> Result<String> {
    let machine = session::target_machine(target)?;
    let layout = machine.get_target_data().get_data_layout();
    Ok(layout.as_str().to_string_lossy().into_owned())
}

/// A PTX image without code that holds a global variable of each size under each name.
///
/// # Errors
/// `KERNEL_CHECK` for a name that PTX does not allow; `UNSUPPORTED` on a CPU.
pub fn constants_image(constants: &[(String, u64)], target: &Target) -> Result<KernelImage> {
    let Some(gpu) = target.gpu() else {
        return Err(Diagnostic::internal(
            codes::LLVM,
            "a constants image was asked for on a CPU",
        ));
    };
    let (major, minor) = (gpu.ptx_version / 10, gpu.ptx_version % 10);
    let mut text = format!(
        ".version {major}.{minor}\n.target {}\n.address_size 64\n\n",
        gpu.capability.sm_name()
    );
    for (name, size) in constants {
        if !abi_gpu::is_ptx_name(name) {
            return Err(Diagnostic::internal(
                codes::KERNEL_CHECK,
                format!("constant name `{name}` is not a PTX identifier"),
            ));
        }
        let size = (*size).max(1);
        text.push_str(&format!(
            ".visible .global .align 256 .b8 {name}[{size}];\n"
        ));
    }
    Ok(KernelImage {
        name: "constants".to_owned(),
        kernels: Vec::new(),
        code: Code::Ptx(text),
    })
}

/// Ranges of groups that share a module: one each on a GPU, where every kernel travels alone.
fn split(kernels: &[Group], target: &Target) -> Vec<Range<usize>> {
    if target.gpu().is_some() {
        return (0..kernels.len()).map(|i| i..i + 1).collect();
    }
    let mut modules = Vec::new();
    let (mut first, mut values) = (0, 0);
    for (i, kernel) in kernels.iter().enumerate() {
        let size = kernel.kernel.exprs.len();
        let full = i - first >= KERNELS_PER_MODULE || values + size > VALUES_PER_MODULE;
        if i > first && full {
            modules.push(first..i);
            (first, values) = (i, 0);
        }
        values += size;
    }
    modules.push(first..kernels.len());
    modules
}

/// One module's share of the result.
struct Piece {
    image: KernelImage,
    texts: Vec<(TextKind, String)>,
    usage: Vec<Usage>,
}

fn compile_module(
    session: &Session,
    number: usize,
    groups: &[Group],
    target: &Target,
    options: &Options,
) -> Result<Piece> {
    let name = match target.gpu() {
        Some(_) => groups[0].kernel.name.clone(),
        None => format!("kernels_{number}"),
    };
    let written = session.compile(&name, groups, options.llvm_ir, options.assembly)?;
    let ids: Vec<KernelId> = groups.iter().flat_map(Group::ids).collect();
    let names: Vec<&str> = groups.iter().flat_map(Group::names).collect();
    let mut texts = Vec::new();
    texts.extend(written.llvm_ir.clone().map(|t| (TextKind::LlvmIr, t)));
    texts.extend(written.assembly.clone().map(|t| (TextKind::Assembly, t)));
    let (code, usage) = match target.gpu() {
        None => {
            object::check_object(&written.code, &names, Machine::new(target).isa)?;
            (Code::Elf(written.code), Vec::new())
        }
        Some(gpu) => {
            let sm_name = gpu.capability.sm_name();
            finish_ptx(written, &names, &sm_name, options, &mut texts)?
        }
    };
    let image = KernelImage {
        name,
        kernels: ids,
        code,
    };
    Ok(Piece {
        image,
        texts,
        usage,
    })
}

fn finish_ptx(
    written: Written,
    names: &[&str],
    sm_name: &str,
    options: &Options,
    texts: &mut Vec<(TextKind, String)>,
) -> Result<(Code, Vec<Usage>)> {
    let ptx = String::from_utf8(written.code)
        .map_err(|_| Diagnostic::internal(codes::OBJECT_CHECK, "the PTX is not UTF-8"))?;
    object::check_ptx(&ptx, names)?;
    if options.assembly {
        texts.push((TextKind::Ptx, ptx.clone()));
    }
    match &options.assemble {
        Assemble::No => Ok((Code::Ptx(ptx), Vec::new())),
        Assemble::Check(ptxas) => {
            let usage = ptxas.assemble(&ptx, sm_name)?.usage;
            Ok((Code::Ptx(ptx), usage))
        }
        Assemble::Ship(ptxas) => {
            let assembled = ptxas.assemble(&ptx, sm_name)?;
            Ok((Code::Cubin(assembled.cubin), assembled.usage))
        }
    }
}
