//! The compiled program.

use crate::base::Arena;
use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::collective::Topology;
use crate::define_id;
use crate::executable::AllocId;
use crate::executable::Allocation;
use crate::executable::KernelEntry;
use crate::executable::KernelId;
use crate::executable::KernelImage;
use crate::executable::LogicalBuffer;
use crate::executable::Slice;
use crate::executable::ThunkSequence;
use crate::shape::ProgramShape;
use crate::shape::ShapeIndex;

define_id! {
    /// A constant of an executable.
    pub struct ConstantId, "const";
}

/// Data that ships with the program, as it lies in memory.
#[derive(Clone, PartialEq, Eq)]
pub struct Constant {
    /// Name of the HLO instruction whose literal it is.
    pub name: String,
    /// Complete id of that instruction in the bundle's HLO.
    pub instruction: u64,
    /// The bytes in device form (sub-byte elements packed).
    pub bytes: std::sync::Arc<Vec<u8>>,
}

/// The global variable of a GPU image that holds the constant of that name. Loaders look the
/// literal up by this name, so the HLO in a GPU bundle calls the constant by what follows the prefix.
pub fn constant_symbol(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut symbol = "buffer_for_".to_owned();
    symbol.extend(name.chars().map(plain));
    symbol
}

impl std::fmt::Debug for Constant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Constant({}, {} bytes)", self.name, self.bytes.len())
    }
}

/// What the machine that runs the program must have.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetNeeds {
    /// A CPU.
    Cpu {
        /// Target triple.
        triple: String,
        /// LLVM CPU name the code was tuned for.
        cpu: String,
        /// Features, each with its sign, in order.
        features: Vec<String>,
        /// LLVM data layout string.
        data_layout: String,
    },
    /// An NVIDIA GPU.
    Cuda {
        /// Capability major number.
        major: i32,
        /// Capability minor number.
        minor: i32,
        /// 0 unspecified, 1 none, 2 accelerated, 3 family.
        feature_extension: i32,
        /// Triple of the host.
        host_triple: String,
        /// CPU of the host.
        host_cpu: String,
        /// Features of the host.
        host_features: String,
        /// Serialized `xla.ExecutableAbiVersionProto`.
        abi_version: Vec<u8>,
        /// Serialized `stream_executor.GpuTargetConfigProto`, for the compile options.
        target_config: Vec<u8>,
        /// `--target-platform-version`, when one was given.
        platform_version: String,
    },
}

/// A result leaf that shares memory with a parameter leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoAlias {
    /// Leaf of the result.
    pub output: ShapeIndex,
    /// Parameter number.
    pub parameter: usize,
    /// Leaf of the parameter.
    pub index: ShapeIndex,
    /// Whether the caller must donate.
    pub must: bool,
}

/// Where a part of the result is found after a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSlice {
    /// Part of the result; tuples have entries of their own when the runtime wants tables.
    pub index: ShapeIndex,
    /// Where.
    pub slice: Slice,
}

/// The program as its caller sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    /// Parameters and result; arrays have layouts.
    pub program: ProgramShape,
    /// Sharing between results and parameters.
    pub aliases: Vec<IoAlias>,
    /// Where each array leaf of the result is, in order.
    pub outputs: Vec<OutputSlice>,
}

/// A compiled program.
#[derive(Clone, Debug, PartialEq)]
pub struct Executable {
    /// Name of the module.
    pub name: String,
    /// What it needs of the machine.
    pub needs: TargetNeeds,
    /// How it is called.
    pub signature: Signature,
    /// Memory plan.
    pub allocs: Arena<AllocId, Allocation>,
    /// Shipped data.
    pub constants: Arena<ConstantId, Constant>,
    /// The program.
    pub thunks: ThunkSequence,
    /// Kernels by id.
    pub kernels: Arena<KernelId, KernelEntry>,
    /// Code.
    pub images: Vec<KernelImage>,
    /// Values and where they live, for readers of the plan.
    pub logical: Vec<LogicalBuffer>,
    /// Serialized `xla.HloModuleProtoWithConfig` of the module the buffers were assigned for.
    pub hlo: Vec<u8>,
    /// Replicas the program runs as.
    pub replicas: u32,
    /// Partitions the program runs as.
    pub partitions: u32,
}

impl Executable {
    /// The devices that run it.
    ///
    /// # Errors
    /// `XA8003` when one process cannot have as many.
    pub fn topology(&self) -> Result<Topology> {
        let found = Topology::new(i64::from(self.replicas), i64::from(self.partitions));
        found.map_err(|why| Diagnostic::unsupported(codes::LOAD, why))
    }
}
