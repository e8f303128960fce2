//! CPU programs: loading their objects and running their thunks.

pub mod call;
pub mod float_env;
pub mod mapping;
pub mod memory;
pub mod object_loader;
pub mod pool;
mod relocate;
mod symbols;
