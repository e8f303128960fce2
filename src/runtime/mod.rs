//! Devices: loading executables, running their thunks, probing the host.

#[cfg(feature = "cpu")]
pub mod cpu;
