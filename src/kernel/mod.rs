//! The kernel IR: structured loops over scalars and small vectors, buffers addressed by element.
//! Knows no word of HLO and none of LLVM.

pub mod build;
pub mod check;
pub mod expr;
#[expect(
    clippy::module_inception,
    reason = "the room and its central type share the field's word"
)]
pub mod kernel;
pub mod print;
pub mod stmt;
pub mod tiles;
pub mod ty;

pub use build::INDEX;
pub use build::KernelBuilder;
pub use expr::*;
pub use kernel::*;
pub use stmt::*;
pub use tiles::*;
pub use ty::*;
