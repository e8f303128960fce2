//! Makes a module of ops that every later room knows: one file per expansion.

pub mod check;
pub mod collectives;
pub mod conv;
pub mod custom_calls;
pub mod dot;
pub mod dynamic;
pub mod flatten;
pub mod inline;
pub mod structural;
