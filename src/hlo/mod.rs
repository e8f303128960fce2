//! The HLO IR: modules, operations, shape inference, verifier, printer.

pub mod build;
pub mod custom_calls;
pub mod dynamic;
pub mod expand;
pub mod infer;
pub mod instr;
pub mod module;
pub mod op;
pub mod print;
pub mod rewrite;
pub mod verify;
pub mod visit;

pub use build::Builder;
pub use instr::*;
pub use module::*;
pub use op::*;
pub use rewrite::Rewriter;
pub use visit::unique_ids;
