//! Inside types to and from wire structs and bytes; encoders and decoders side by side.
//!
//! The only room that calls `prost`. Decoders take any bytes and give a value or a diagnostic;
//! encoders are deterministic. Reads no file and decides no policy.

mod alloc;
pub mod container;
pub mod envelope;
pub mod executable_cpu;
pub mod executable_gpu;
pub mod ffi_attributes;
pub mod foreign;
mod fusion;
mod hlo_view;
pub mod literal;
pub mod number;
pub mod options;
pub mod shape;
pub mod snapshot;
pub mod split;
pub mod stock;
pub mod target;
mod target_schema;
mod text_proto;
mod thunk_cpu;
mod thunk_cpu_library;
mod thunk_gpu;
mod thunk_gpu_collective;
mod thunk_gpu_gemm;
mod thunk_gpu_launch;
mod thunk_gpu_read;
mod thunk_gpu_windows;

#[cfg(feature = "reference")]
pub mod hlo;

#[cfg(test)]
pub(crate) mod samples;
