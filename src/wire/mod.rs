//! Inside types to and from wire structs and bytes; encoders and decoders side by side.
//!
//! The only room that calls `prost`. Decoders take any bytes and give a value or a diagnostic;
//! encoders are deterministic. Reads no file and decides no policy.

pub mod literal;
pub mod number;
pub mod shape;
pub mod target;
mod target_schema;
mod text_proto;

#[cfg(feature = "reference")]
pub mod hlo;
