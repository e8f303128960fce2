//! Devices: loading executables, running their thunks, probing the host.

#[cfg(feature = "cpu")]
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod loaded;

pub use loaded::LoadOptions;
pub use loaded::Loaded;
