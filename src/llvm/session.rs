//! What code generation may rely on: the machine's facts, LLVM's target machine, and the
//! floating-point rules.
//!
//! Floating-point rules, in one place: no fast-math flag is ever set; a product and a sum are
//! contracted only where the kernel says `Fma`; denormals are kept or not as a CPU's control register
//! says when the kernel runs, which nothing is folded by; NaN payloads are not specified. The host is never looked at.

use std::sync::Once;

use inkwell::OptimizationLevel;
use inkwell::targets::CodeModel;
use inkwell::targets::InitializationConfig;
use inkwell::targets::RelocMode;
use inkwell::targets::Target as LlvmTarget;
use inkwell::targets::TargetMachine;
use inkwell::targets::TargetMachineOptions;
use inkwell::targets::TargetTriple;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::target::ByteDots;
use crate::target::CpuFamily;
use crate::target::DeviceSpec;
use crate::target::Target;
use crate::target::TileDots;

/// The instruction set that kernels are lowered for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Isa {
    /// 64-bit x86.
    X86,
    /// 64-bit Arm.
    AArch64,
    /// PTX.
    Ptx,
}

/// What the lowering asks about the machine.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    /// Instruction set.
    pub(super) isa: Isa,
    /// Whether fused multiply-add is an instruction.
    pub(super) fma: bool,
    /// Whether f16 and f32 convert by instruction.
    pub(super) half_convert: bool,
    /// Whether f32 to bf16 is an instruction.
    pub(super) bfloat_convert: bool,
    /// Whether floats are rounded to whole numbers by instruction.
    pub(super) round: bool,
    /// Whether gathers are instructions worth having.
    pub(super) gather: bool,
    /// Whether byte- and word-wide masked stores are instructions.
    pub(super) narrow_masks: bool,
    /// Whether 32- and 64-bit masked stores are instructions.
    pub(super) masks: bool,
    /// Which sums of products of bytes are instructions.
    pub(super) byte_dots: Option<ByteDots>,
    /// Bytes of the widest vector of 16-bit integers that an instruction multiplies and adds in
    /// pairs.
    pub(super) word_dots: u32,
    /// Whether there are tiles, which products of them are instructions, and the system is one whose way
    /// of asking for them is known.
    pub(super) tiles: TileDots,
    /// Compute capability of a GPU, major and minor.
    pub(super) capability: (u32, u32),
}

impl Machine {
    /// The facts of a target.
    pub(super) fn new(target: &Target) -> Self {
        match &target.device {
            DeviceSpec::Cpu(cpu) => {
                let has = |feature: &str| {
                    cpu.has(feature) && !cpu.disabled_features.iter().any(|f| f == feature)
                };
                let arm = cpu.family == CpuFamily::AArch64;
                Self {
                    isa: if arm { Isa::AArch64 } else { Isa::X86 },
                    fma: arm || has("fma"),
                    half_convert: arm || has("f16c") || has("avx512f"),
                    bfloat_convert: if arm {
                        has("bf16")
                    } else {
                        has("avx512bf16") && has("avx512vl")
                    },
                    round: arm || has("sse4.1"),
                    gather: has("avx512f") && has("avx512vl"),
                    narrow_masks: has("avx512bw") && has("avx512vl"),
                    masks: has("avx"),
                    byte_dots: cpu.byte_dots(),
                    word_dots: match cpu.family {
                        CpuFamily::AArch64 => 0,
                        CpuFamily::X86_64 if has("avx512bw") => 64,
                        CpuFamily::X86_64 if has("avx2") => 32,
                        CpuFamily::X86_64 => 16,
                    },
                    tiles: cpu.tile_dots(),
                    capability: (0, 0),
                }
            }
            DeviceSpec::Gpu(gpu) => Self {
                isa: Isa::Ptx,
                fma: true,
                half_convert: true,
                bfloat_convert: gpu.capability.at_least(8, 0),
                round: true,
                gather: false,
                narrow_masks: false,
                masks: false,
                byte_dots: None,
                word_dots: 0,
                tiles: TileDots::default(),
                capability: (gpu.capability.major, gpu.capability.minor),
            },
        }
    }
}

/// Makes the backends known to LLVM, once a process.
pub(super) fn initialize() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let config = InitializationConfig {
            asm_parser: true,
            asm_printer: true,
            base: true,
            disassembler: false,
            info: true,
            machine_code: true,
        };
        LlvmTarget::initialize_x86(&config);
        LlvmTarget::initialize_aarch64(&config);
        LlvmTarget::initialize_nvptx(&config);
    });
}

/// The triple, CPU and feature string that LLVM is given.
pub(super) fn llvm_names(target: &Target) -> (String, String, String) {
    match &target.device {
        DeviceSpec::Cpu(cpu) => {
            let mut features: Vec<String> = cpu
                .features
                .iter()
                .filter(|f| !cpu.disabled_features.contains(f))
                .map(|f| format!("+{f}"))
                .collect();
            features.extend(cpu.disabled_features.iter().map(|f| format!("-{f}")));
            (cpu.triple.clone(), cpu.llvm_cpu.clone(), features.join(","))
        }
        DeviceSpec::Gpu(gpu) => (
            "nvptx64-nvidia-cuda".to_owned(),
            gpu.capability.sm_name(),
            format!("+ptx{}", gpu.ptx_version),
        ),
    }
}

/// LLVM's target machine. Not to be shared between threads.
pub(super) fn target_machine(target: &Target) -> Result<TargetMachine> {
    initialize();
    let (triple, cpu, features) = llvm_names(target);
    let triple = TargetTriple::create(&triple);
    let llvm_target = LlvmTarget::from_triple(&triple)
        .map_err(|e| Diagnostic::error(codes::UNKNOWN_TARGET, e.to_string()))?;
    let gpu = target.gpu().is_some();
    let options = TargetMachineOptions::new()
        .set_cpu(&cpu)
        .set_features(&features)
        .set_level(if gpu {
            OptimizationLevel::Aggressive
        } else {
            OptimizationLevel::Default
        })
        .set_reloc_mode(RelocMode::PIC)
        .set_code_model(if gpu {
            CodeModel::Default
        } else {
            CodeModel::Small
        });
    llvm_target
        .create_target_machine_from_options(&triple, options)
        .ok_or_else(|| {
            Diagnostic::error(
                codes::UNKNOWN_TARGET,
                format!("LLVM has no target machine for `{}`", target.name()),
            )
        })
}
