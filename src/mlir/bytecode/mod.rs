//! MLIR bytecode: modules as StableHLO's portable artifacts have them, and as MLIR writes them.
//!
//! A portable artifact is bytecode whose ops are VHLO's, the versioned copy of StableHLO; every
//! version since 0.9.0 is read, and its ops become those of the current StableHLO dialect. Any bytes
//! give a module or a diagnostic that names the byte; counts are checked against the bytes that are
//! left, and nothing recurses.

mod builtin;
mod container;
mod cursor;
mod downgrade;
mod elements;
mod emit;
mod encode;
mod ops;
mod own;
mod read;
mod scope;
mod sdy;
mod stablehlo;
mod table;
mod upgrade;
mod vhlo;
mod vhlo_ops;
mod write;

pub use container::MAGIC;
pub use read::read;
pub use write::DEFAULT_VERSION;
pub use write::MIXED;
pub use write::Version;
pub use write::write;

#[cfg(test)]
mod tests;
