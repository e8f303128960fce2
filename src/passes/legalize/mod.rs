//! Makes a module of ops that every later room knows: one file per expansion.

mod batch_norm;
pub mod check;
pub mod collectives;
pub mod conv;
pub mod custom_calls;
pub mod dot;
mod dot_side;
pub mod dynamic;
pub mod expand;
mod fft;
pub mod flatten;
pub mod inline;
mod rng;
mod rng_bit_generator;
mod spread_collectives;
pub mod structural;
pub mod uniform_reductions;
pub mod widen;
