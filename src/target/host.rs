//! What the machine we run on has, as data. `runtime` probes it; this room only says what there is.

use crate::base::ByteSize;
use crate::target::CpuFamily;

/// A GPU of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostGpu {
    /// Its name, as the driver gives it.
    pub name: String,
    /// Compute capability, major number.
    pub major: u32,
    /// Compute capability, minor number.
    pub minor: u32,
    /// Device memory.
    pub memory: ByteSize,
}

/// The machine we run on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostInfo {
    /// Instruction set family, when it is one we know.
    pub family: Option<CpuFamily>,
    /// LLVM's name of the processor, or the portable baseline's when it is not known.
    pub cpu: String,
    /// Features that processor and system support: LLVM's names, sorted, without a sign.
    pub features: Vec<String>,
    /// Threads this process may use at the same time.
    pub threads: usize,
    /// Version of the CUDA driver as it reports it (12040 is 12.4), when there is one.
    pub cuda_driver: Option<i32>,
    /// GPUs, in the driver's order.
    pub gpus: Vec<HostGpu>,
    /// Whether the GPUs are simulated. Such a one runs PTX, and no machine code.
    pub is_simulated: bool,
}

impl HostInfo {
    /// Whether the host has the ISA feature of that LLVM name.
    pub fn has(&self, feature: &str) -> bool {
        self.features.iter().any(|f| f == feature)
    }
}
