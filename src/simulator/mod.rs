//! A simulated GPU: PTX executed on the CPU, checked and counted.
//!
//! | part | is |
//! |---|---|
//! | [`ptx`] | PTX text to a syntax tree |
//! | [`number`] | scalar arithmetic on bits |
//! | [`tensor`] | matrix instructions and tensor copies as pure functions |
//! | [`memory`] | allocations, shared memory, and what is known of their bytes |
//! | [`code`] | the syntax tree to decoded instructions |
//! | [`warp`] | executing them: warps, blocks, clusters |
//! | [`launch`] | modules and launches: the door for everything above |
//! | [`driver`] | the CUDA driver's interface over simulated devices |

pub mod ptx;
pub mod number;
pub mod tensor;
pub mod memory;
pub mod code;
pub mod warp;
pub mod launch;
pub mod driver;
