//! NVIDIA devices through the CUDA driver: presence, memory, loading and running programs.

mod api;
pub mod device;
pub mod host;
mod library;
pub mod program;
mod steps;

pub use api::Api;
pub use device::Device;
