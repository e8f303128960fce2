//! The compiled program as plain data, read by compiler and loader alike.

pub mod alloc;
pub mod check;
#[expect(
    clippy::module_inception,
    reason = "the room and its central type share the field's word"
)]
pub mod executable;
pub mod image;
pub mod print;
pub mod slice;
pub mod thunk;

pub use alloc::*;
pub use executable::*;
pub use image::*;
pub use slice::*;
pub use thunk::*;
