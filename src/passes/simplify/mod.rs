//! Makes a module smaller and plainer without changing a bit of its results.
//!
//! Floating point is IEEE: NaN, infinities and signed zeros stay what they are, and nothing is
//! reassociated.

pub mod algebraic;
pub mod cse;
pub mod dce;
pub mod fold_constants;
pub mod loops;
pub mod reshape_mover;
pub mod splat;
