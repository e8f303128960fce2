//! Scheduled HLO with buffers to thunks and kernels.

pub mod request;

pub use request::Emitted;
pub use request::EmittedKernel;
pub use request::KernelRequest;
pub use request::Step;
