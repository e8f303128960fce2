//! The HLO IR: modules, operations, shape inference, verifier, printer.

pub mod instr;
pub mod module;
pub mod op;

pub use instr::*;
pub use module::*;
pub use op::*;
