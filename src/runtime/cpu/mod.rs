//! CPU programs: loading their objects and running their thunks.

mod array;
pub mod call;
mod convolution;
mod copy;
mod dot;
mod fft;
pub mod float_env;
pub mod fusion;
pub mod host;
pub mod mapping;
pub mod memory;
pub mod object_loader;
pub mod pool;
pub mod program;
mod relocate;
mod sort;
mod steps;
mod symbols;
