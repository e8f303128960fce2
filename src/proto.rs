//! The wire structs that the build script makes from `proto/`. No hand-written code.

#![allow(missing_docs, clippy::all, reason = "generated code")]

/// `package xla`
pub mod xla {
    include!(concat!(env!("OUT_DIR"), "/xla.rs"));
}
