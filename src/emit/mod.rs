//! Scheduled HLO with buffers to thunks and kernels.

pub mod reduce;
pub mod reduce_cpu;
pub mod reduce_gpu;
pub mod reduce_window;
pub mod request;

pub mod collectives;
pub mod program;
pub mod thunks;

pub mod bits;
pub mod concat;
pub mod contraction;
pub mod convert;
pub mod cost;
pub mod cuts;
pub mod elemental;
pub mod elementwise;
pub mod generic_conv;
pub mod generic_dot;
pub mod index;
pub mod inline;
pub mod integer;
pub mod loop_;
pub mod math;
pub mod movement;
pub mod nested;
pub mod rng_state;
pub mod scatter;
pub mod select;
pub mod select_and_scatter;
pub mod setup;
pub mod share;
pub mod small_float;
pub mod sort;
pub mod topk;
pub mod transpose;
pub mod transpose_gpu;
pub mod triangular;
pub mod update_slice;
pub mod value;

pub use program::Program;
pub use program::program;
pub use request::Emitted;
pub use request::EmittedKernel;
pub use request::KernelRequest;
pub use request::Step;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod workitems;
