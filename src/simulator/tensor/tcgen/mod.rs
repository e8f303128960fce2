//! The fifth generation's tensor memory, and the instructions that move and multiply in it.
//!
//! Covered: allocation, `tcgen05.ld` and `tcgen05.st` of every shape, `tcgen05.cp` of one block, and
//! dense `tcgen05.mma` of one block and of a pair, of one block with block scaling too. Sparse
//! products, `.ws`, `.ashift`, `tcgen05.shift`, copies of a pair and block scaling of a pair are
//! refused by name: the instruction set tells of them in pictures that leave more than one meaning.

mod memory;
mod moves;
mod descriptor;
mod numbers;
mod copy;
mod mma;
#[cfg(test)]
mod tests;

pub use copy::Tcgen05Copy;
pub use memory::TensorMemory;
pub use mma::{Tcgen05A, Tcgen05Args, Tcgen05Mma, Tcgen05Side};
pub use moves::Tcgen05Move;
