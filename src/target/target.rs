//! What a machine is, as data.

use crate::base::ByteSize;

/// The kind of device code is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// The host's own processor.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
}

impl Platform {
    /// The name used in text, JSON and the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
        }
    }
}

/// An instruction set family of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuFamily {
    /// 64-bit x86.
    X86_64,
    /// 64-bit Arm.
    AArch64,
}

impl CpuFamily {
    /// The architecture component of a triple.
    pub fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::AArch64 => "aarch64",
        }
    }
}

/// A CPU: what code may use and how kernels are shaped for it.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuSpec {
    /// The name the user gave: `x86-64-v3`, `znver3`, `neoverse-v1`.
    pub name: String,
    /// Instruction set family.
    pub family: CpuFamily,
    /// Full target triple: `x86_64-unknown-linux-gnu`.
    pub triple: String,
    /// The CPU name LLVM knows.
    pub llvm_cpu: String,
    /// Every ISA feature code may use, sorted, LLVM's names, without a sign.
    pub features: Vec<String>,
    /// Features the user switched off; they go to LLVM with a minus.
    pub disabled_features: Vec<String>,
    /// Width of the widest vector register to use, in bytes: 16, 32 or 64.
    pub vector_bytes: u32,
    /// Number of architectural vector registers: 16 or 32.
    pub vector_registers: u32,
    /// L1 data cache of one core.
    pub l1_bytes: ByteSize,
    /// L2 cache of one core.
    pub l2_bytes: ByteSize,
}

/// An instruction that multiplies bytes and adds the products of four neighbours in 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteDots {
    /// Whether both bytes are signed; else the first is unsigned.
    pub signed: bool,
    /// Width of the widest vector it takes.
    pub vector_bytes: u32,
}

/// Which products of tiles (AMX) kernels may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TileDots {
    /// Of `bf16`, summed in `f32`.
    pub bf16: bool,
    /// Of bytes, summed in 32 bits.
    pub bytes: bool,
}

impl TileDots {
    /// Whether there are any.
    pub fn any(self) -> bool {
        self.bf16 || self.bytes
    }
}

impl CpuSpec {
    /// Whether code may use the feature of that LLVM name.
    pub fn has(&self, feature: &str) -> bool {
        self.features.iter().any(|f| f == feature)
    }

    /// The instruction for products of bytes, where there is one that wraps.
    pub fn byte_dots(&self) -> Option<ByteDots> {
        let has =
            |feature| self.has(feature) && !self.disabled_features.iter().any(|f| f == feature);
        let (signed, vector_bytes) = match self.family {
            CpuFamily::AArch64 if has("dotprod") => (true, 16),
            CpuFamily::X86_64 if has("avx512vnni") && has("avx512vl") => (false, 64),
            CpuFamily::X86_64 if has("avxvnniint8") => (true, 32),
            CpuFamily::X86_64 if has("avxvnni") => (false, 32),
            _ => return None,
        };
        Some(ByteDots {
            signed,
            vector_bytes,
        })
    }

    /// The products of tiles there are, under a system that kernels know how to ask for tiles.
    pub fn tile_dots(&self) -> TileDots {
        let has =
            |feature| self.has(feature) && !self.disabled_features.iter().any(|f| f == feature);
        // Their rows are as wide as these registers, and packed by them.
        let is_known = self.family == CpuFamily::X86_64
            && self.triple.contains("-linux")
            && ["amx-tile", "avx512bw", "avx512vl"].into_iter().all(has);
        TileDots {
            bf16: is_known && has("amx-bf16"),
            bytes: is_known && has("amx-int8"),
        }
    }

    /// Width of the widest vector registers there are, in bytes. It is more than
    /// [`CpuSpec::vector_bytes`] on machines that lose by it, except where arithmetic is all there
    /// is to do.
    pub fn register_bytes(&self) -> u32 {
        match self.family {
            CpuFamily::AArch64 => 16,
            CpuFamily::X86_64 if self.has("avx512f") => 64,
            CpuFamily::X86_64 if self.has("avx") => 32,
            CpuFamily::X86_64 => 16,
        }
    }
}

/// The feature suffix of a compute capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CapabilitySuffix {
    /// `sm_90`
    None,
    /// `sm_90a`: instructions of this exact capability.
    Accelerated,
    /// `sm_100f`: instructions of this family.
    Family,
}

/// An NVIDIA compute capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ComputeCapability {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// Suffix.
    pub suffix: CapabilitySuffix,
}

impl ComputeCapability {
    /// `sm_90a`
    pub fn sm_name(self) -> String {
        let suffix = match self.suffix {
            CapabilitySuffix::None => "",
            CapabilitySuffix::Accelerated => "a",
            CapabilitySuffix::Family => "f",
        };
        format!("sm_{}{}{suffix}", self.major, self.minor)
    }
    /// Whether the capability is at least `major.minor`.
    pub fn at_least(self, major: u32, minor: u32) -> bool {
        (self.major, self.minor) >= (major, minor)
    }
}

/// A GPU and the host that drives it.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuSpec {
    /// The name the user gave: `h100_sxm`, `nvidia_h100`.
    pub name: String,
    /// The `--target-platform-version` to be recorded, empty when a file described the GPU.
    pub platform_version: String,
    /// Compute capability.
    pub capability: ComputeCapability,
    /// The PTX ISA version to write, times ten: 80 for 8.0.
    pub ptx_version: u32,
    /// Streaming multiprocessors.
    pub cores: u32,
    /// f32 units of one multiprocessor.
    pub fpus_per_core: u32,
    /// Resident threads of one multiprocessor.
    pub threads_per_core: u32,
    /// Most threads of one block.
    pub threads_per_block: u32,
    /// Shared memory a block gets without asking.
    pub shared_per_block: ByteSize,
    /// Shared memory a block can ask for.
    pub shared_per_block_optin: ByteSize,
    /// L2 cache.
    pub l2_bytes: ByteSize,
    /// Device memory.
    pub memory_bytes: ByteSize,
    /// Bytes a second from device memory.
    pub bandwidth: f64,
    /// Clock in GHz.
    pub clock_ghz: f64,
    /// The serialized `stream_executor.GpuTargetConfigProto` the GPU came from.
    pub config_proto: Vec<u8>,
    /// The serialized `xla.cpu.TargetMachineOptionsProto` of the host that will run the bundle.
    pub host: HostMachine,
}

/// The machine that runs the host side of a GPU program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostMachine {
    /// Target triple.
    pub triple: String,
    /// LLVM CPU name.
    pub cpu: String,
    /// Comma-separated features, each with its sign.
    pub features: String,
}

/// A device's specification.
#[derive(Clone, Debug, PartialEq)]
pub enum DeviceSpec {
    /// A CPU.
    Cpu(CpuSpec),
    /// An NVIDIA GPU.
    Gpu(GpuSpec),
}

/// Everything the compiler knows of the machine it compiles for.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The device.
    pub device: DeviceSpec,
    /// Alignment in bytes of every allocation and of slices within the temp allocation.
    pub buffer_alignment: u64,
    /// Alignment in bytes that entry parameters are promised to have.
    pub parameter_alignment: u64,
    /// Workgroups that can usefully run at the same time (threads or multiprocessors).
    pub parallelism: u32,
}

impl Target {
    /// The platform.
    pub fn platform(&self) -> Platform {
        match self.device {
            DeviceSpec::Cpu(_) => Platform::Cpu,
            DeviceSpec::Gpu(_) => Platform::Cuda,
        }
    }
    /// The CPU, when it is one.
    pub fn cpu(&self) -> Option<&CpuSpec> {
        match &self.device {
            DeviceSpec::Cpu(cpu) => Some(cpu),
            DeviceSpec::Gpu(_) => None,
        }
    }
    /// The GPU, when it is one.
    pub fn gpu(&self) -> Option<&GpuSpec> {
        match &self.device {
            DeviceSpec::Gpu(gpu) => Some(gpu),
            DeviceSpec::Cpu(_) => None,
        }
    }
    /// The user's name of the device.
    pub fn name(&self) -> &str {
        match &self.device {
            DeviceSpec::Cpu(cpu) => &cpu.name,
            DeviceSpec::Gpu(gpu) => &gpu.name,
        }
    }
    /// Bytes of the widest vector access kernels should use: a CPU register, or 16 on a GPU.
    pub fn vector_bytes(&self) -> u32 {
        self.cpu().map_or(16, |cpu| cpu.vector_bytes)
    }
}
