//! Ahead-of-time compilation of HLO programs for CPUs and GPUs, and the loader that runs them.
//!
#![doc = include_str!("ARCHITECTURE.md")]

pub mod base;
pub mod shape;
pub mod linalg;
pub mod literal;
pub mod target;
#[cfg(feature = "reference")]
pub mod hlo;
#[cfg(feature = "reference")]
pub mod eval;
#[cfg(feature = "compiler")]
pub mod analysis;
#[cfg(feature = "compiler")]
pub mod passes;
#[cfg(feature = "compiler")]
pub mod schedule;
pub mod executable;
#[cfg(feature = "compiler")]
pub mod buffer;
#[cfg(feature = "compiler")]
pub mod kernel;
#[cfg(feature = "compiler")]
pub mod emit;
#[cfg(feature = "compiler")]
pub mod llvm;
pub mod proto;
pub mod wire;
#[cfg(feature = "reference")]
pub mod front;
pub mod bundle;
#[cfg(feature = "simulator")]
pub mod simulator;
pub mod runtime;
pub mod driver;
pub mod cli;
