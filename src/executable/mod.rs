//! The compiled program as plain data, read by compiler and loader alike.

pub mod alloc;
pub mod check;
#[expect(
    clippy::module_inception,
    reason = "the room and its central type share the field's word"
)]
pub mod executable;
pub mod fusion;
pub mod gemm;
pub mod image;
pub mod passing;
pub mod print;
pub mod slice;
pub mod thunk;
pub mod window;

pub use alloc::*;
pub use executable::*;
pub use fusion::*;
pub use gemm::*;
pub use image::*;
pub use passing::*;
pub use slice::*;
pub use thunk::*;
pub use window::*;
