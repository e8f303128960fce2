//! Devices: loading executables, running their thunks, probing the host.

#[cfg(feature = "cpu")]
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "cpu")]
pub mod loaded;

#[cfg(feature = "cpu")]
pub use loaded::LoadOptions;
#[cfg(feature = "cpu")]
pub use loaded::Loaded;
