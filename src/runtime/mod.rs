//! Devices: loading executables, running their thunks, probing the host.

#[cfg(feature = "cpu")]
pub mod cpu;
pub mod loaded;

pub use loaded::LoadOptions;
pub use loaded::Loaded;
