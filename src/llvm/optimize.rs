//! From kernels to checked code: builds one LLVM module, verifies it, runs the passes, writes it.
//!
//! The kernels come with explicit vectors and exact loops, so a short list of passes gives the
//! speed of `-O2` in a fraction of its time (measured; the numbers stand in the project's notes).

use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::FileType;
use inkwell::targets::TargetMachine;
use inkwell::targets::TargetTriple;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::llvm::abi_cpu;
use crate::llvm::abi_gpu;
use crate::llvm::pool;
use crate::llvm::same::Group;
use crate::llvm::session;
use crate::llvm::session::Isa;
use crate::llvm::session::Machine;
use crate::target::Target;

/// The passes, for every target.
const PASSES: &str =
    "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,loop-mssa(licm))";

/// What a worker thread keeps.
pub(super) struct Session {
    machine: Machine,
    target_machine: TargetMachine,
    triple: String,
}

/// What became of one module.
pub(super) struct Written {
    /// An ELF object, or PTX text.
    pub(super) code: Vec<u8>,
    /// LLVM IR after the passes, when wanted.
    pub(super) llvm_ir: Option<String>,
    /// Assembly, when wanted; on a GPU the code is the text already.
    pub(super) assembly: Option<String>,
}

impl Session {
    /// A target machine for this thread.
    pub(super) fn new(target: &Target) -> Result<Self> {
        Ok(Self {
            machine: Machine::new(target),
            target_machine: session::target_machine(target)?,
            triple: session::llvm_names(target).0,
        })
    }

    /// Compiles kernels into one module of that name.
    pub(super) fn compile(
        &self,
        name: &str,
        groups: &[Group],
        want_ir: bool,
        want_assembly: bool,
    ) -> Result<Written> {
        pool::take_errors();
        let context = pool::context();
        let module = context.create_module(name);
        module.set_triple(&TargetTriple::create(&self.triple));
        module.set_data_layout(&self.target_machine.get_target_data().get_data_layout());
        for group in groups {
            let kernel = &group.kernel;
            match self.machine.isa {
                Isa::Ptx => abi_gpu::lower(&context, &module, kernel, &self.machine)?,
                Isa::X86 | Isa::AArch64 => {
                    let names = group.others.iter().map(|(_, name)| name.as_str());
                    abi_cpu::lower(&context, &module, kernel, &self.machine, names)?;
                }
            }
        }
        verify(&module)?;
        module
            .run_passes(PASSES, &self.target_machine, PassBuilderOptions::create())
            .map_err(|e| Diagnostic::internal(codes::LLVM, e.to_string()))?;
        let llvm_ir = want_ir.then(|| module.print_to_string().to_string());
        let gpu = self.machine.isa == Isa::Ptx;
        let assembly = if want_assembly && !gpu {
            let copy = module.clone();
            let text = self.write(&copy, FileType::Assembly)?;
            Some(String::from_utf8_lossy(&text).into_owned())
        } else {
            None
        };
        let file_type = if gpu {
            FileType::Assembly
        } else {
            FileType::Object
        };
        let code = self.write(&module, file_type)?;
        Ok(Written {
            code,
            llvm_ir,
            assembly,
        })
    }

    fn write(&self, module: &Module<'_>, file_type: FileType) -> Result<Vec<u8>> {
        let written = self
            .target_machine
            .write_to_memory_buffer(module, file_type)
            .map_err(|e| Diagnostic::internal(codes::LLVM, e.to_string()))?;
        let errors = pool::take_errors();
        if let Some(first) = errors.first() {
            let mut diagnostic = Diagnostic::internal(codes::LLVM, first.clone());
            for error in &errors[1..] {
                diagnostic = diagnostic.note(error.clone());
            }
            return Err(diagnostic);
        }
        let mut bytes = written.as_slice().to_vec();
        if file_type == FileType::Assembly {
            while bytes.last() == Some(&0) {
                bytes.pop();
            }
        }
        Ok(bytes)
    }
}

fn verify(module: &Module<'_>) -> Result<()> {
    module.verify().map_err(|text| {
        Diagnostic::internal(
            codes::LLVM,
            format!(
                "LLVM's verifier refuses the module: {}",
                text.to_string().trim()
            ),
        )
    })
}
