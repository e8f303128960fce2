//! The reference evaluator: what every HLO program means, readable and never fast.
//!
//! One value at a time, in the widest arithmetic that is exact for the type, rounded to the type
//! after each elementwise op. Sums and products over many elements (dot, convolution, monoid
//! reductions) accumulate in f64 and round once. Transcendental functions come from a portable
//! library, so results do not depend on the host.
//!
//! It does not check modules; run the verifier first.

mod bits;
mod complex;
mod conv;
mod dot;
mod elementwise;
mod fft;
mod gather;
mod interpret;
mod linalg;
mod movement;
mod norm;
mod reduce;
mod rng;
mod scalar_body;
mod sort;
mod window;

pub use interpret::evaluate;
