//! Devices: loading executables, running their thunks, probing the host.

#[cfg(feature = "loader")]
pub mod binding;
#[cfg(feature = "loader")]
pub mod calling;
#[cfg(feature = "loader")]
pub mod collective;
#[cfg(feature = "cpu")]
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "loader")]
pub mod custom_call;
#[cfg(feature = "loader")]
pub mod loaded;
#[cfg(feature = "loader")]
pub mod sequence;

#[cfg(feature = "loader")]
pub use loaded::Bound;
#[cfg(feature = "loader")]
pub use loaded::DeviceChoice;
#[cfg(feature = "loader")]
pub use loaded::LoadOptions;
#[cfg(feature = "loader")]
pub use loaded::Loaded;
