//! What a machine is, as data. No probing of the host, no word of LLVM's API.

pub mod builtin;
pub mod host;
pub mod isa;
pub mod ptx;
#[expect(
    clippy::module_inception,
    reason = "the room and its central type share the field's word"
)]
pub mod target;
pub mod triple;

pub use host::HostGpu;
pub use host::HostInfo;
pub use isa::Isa;
pub use target::ByteDots;
pub use target::CapabilitySuffix;
pub use target::ComputeCapability;
pub use target::CpuFamily;
pub use target::CpuSpec;
pub use target::DeviceSpec;
pub use target::GpuSpec;
pub use target::HostMachine;
pub use target::Platform;
pub use target::Target;
pub use target::TileDots;
