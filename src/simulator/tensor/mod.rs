//! Matrix instructions and tensor copies, as pure functions of registers and bytes.
//!
//! Nothing here knows of warps, memory or time.  Each instruction is decoded once from its
//! modifiers, says how many registers it takes, and is then executed on the 32 lanes of a warp.
//! Memory is never touched: an instruction names the rows it wants and is handed their bytes.
//!
//! The doors, in short (words are 32-bit registers; a 64-bit register is two words, low first):
//!
//! ```text
//! type Lanes = [u32; 32];                              // one register of a warp
//!
//! // mma, mma.sp, mma.sp::ordered_metadata, .block_scale       (modifiers after the opcode)
//! Mma::parse(&[S]) -> Result<Mma>
//!   .words() -> Words { a, b, c, d }                   // counts of words
//!   .is_sparse() .is_block_scaled() .flops()
//!   .execute(d: &mut [Lanes], a, b, c: &[Lanes], &Extra)
//! Extra { metadata: Option<&Lanes>, selector: u32, scale_a, scale_b: Option<Scale> }  // Default
//! Scale { data: &Lanes, byte: u32, thread: u32 }
//!
//! // ldmatrix, stmatrix: lane i's address is that of row i, for i < rows(); rows have 16 bytes
//! MatrixMove::parse(opcode, &[S]) -> Result<MatrixMove>
//!   .is_load() .rows() .words()
//!   .load(rows: &[[u8; 16]], d: &mut [Lanes])  .store(a: &[Lanes], rows: &mut [[u8; 16]])
//! movmatrix(&Lanes) -> Lanes
//!
//! // wmma.load, wmma.store, wmma.mma
//! Wmma::parse(&[S]) -> Result<Wmma>                    // enum Load(WmmaMove) Store(WmmaMove) Mma(WmmaMma)
//! WmmaMove .words() .default_stride()        // stride in elements
//!   .lines() .line_bytes() .line_offset(line, stride)  // what it reads or writes, from its address
//!   .load(lines: &[u8], d: &mut [Lanes])  .store(a: &[Lanes], lines: &mut [u8])   // lines side by side
//! WmmaMma .words() .flops() .execute(d, a, b, c)
//!
//! // wgmma.mma_async: executed by each of the four warps of a group for itself
//! Wgmma::parse(&[S]) -> Result<Wgmma>
//!   .words() -> Words                                  // a: when it comes in registers
//!   .has_transpose()  .is_sparse() .has_negate() .flops()
//!   .execute(d: &mut [Lanes], WgmmaA, b: u64, shared: &[u8], &WgmmaArgs) -> Result<(), OutOfShared>
//!   .touched(WgmmaA, b, &WgmmaArgs, &mut FnMut(address: u32, bytes: u32))
//! WgmmaA::Registers(&[Lanes]) | WgmmaA::Shared(descriptor)
//! WgmmaArgs { warp: 0..4, scale_d: bool, negate_a, negate_b, transpose_a, transpose_b: bool,
//!             metadata: Option<&Lanes>, selector: u32 }                                // Default
//!
//! // cp.async.bulk.tensor, cp.reduce.async.bulk.tensor, tensormap.replace
//! TensorMap::tiled(Tiled) | ::im2col(Im2col) -> Result<TensorMap>   // MapElement/Swizzle::from_driver
//!   .to_bytes() -> [u8; 128]   TensorMap::from_bytes(&[u8; 128]) -> Result<TensorMap>
//!   .rank() .element() .box_bytes(mode)           // bytes of a load's mbarrier transaction
//!   .load(mode, tile: u32, coords: &[i32], offsets: &[u16], &mut FnMut(Piece)) -> Result<()>
//!   .store(mode, tile: u32, coords: &[i32], &mut FnMut(Piece)) -> Result<()>  // no Fill pieces
//!   .replace(field: &str, ord: u32, value: u64) -> Result<()>
//! CopyMode::Tile | Gather4 | Scatter4 | Im2col | Im2colNoOffs        // CopyMode::parse(word)
//! Piece { shared: u32 /* address, swizzled; tile is the tile's */, bytes: u32, source: Source }
//! Source::Global(address) | Source::Fill([u8; 8] /* pattern, from its start */)
//!
//! // tcgen05: one tensor memory a block; a warp waits while allocate gives None
//! TensorMemory::default() .allocate(columns) -> Result<Option<u32>> .deallocate(address, columns)
//! Tcgen05Move::parse(&[S])  .is_load() .words() .has_split()
//!   .load(&TensorMemory, address, split, warp, d)  .store(&mut TensorMemory, address, split, warp, a)
//! Tcgen05Mma::parse(&[S])   .is_pair() .is_block_scaled() .has_scale_d() .flops(instruction)
//!   .execute(&mut [Tcgen05Side { memory: &mut TensorMemory, shared }], &Tcgen05Args)
//! Tcgen05Copy::parse(&[S])  .execute(&mut TensorMemory, address, descriptor, shared)
//! ```
//!
//! `execute` is inlined into its caller, so that a caller compiled for wider vectors and fused
//! multiply-adds gets them; without the latter, products of doubles are several times slower.
//!
//! Numbers: products are exact, sums are made in `f32` in the order of `k` and rounded to nearest
//! even at each step, which is at least the precision the instruction set promises; `f64` sums are
//! fused, integer sums wrap unless `.satfinite` is given.  Hardware adds groups of products at once
//! and drops low bits, so the last bits of a sum may differ from a device's.

mod words;
mod element;
mod mma;
mod sparse;
mod fragment;
mod volta;
mod matrix;
mod wmma;
mod descriptor;
mod wgmma;
mod map;
mod copy;
mod tcgen;
#[cfg(test)]
mod copy_tests;
#[cfg(test)]
mod mma_tests;
#[cfg(test)]
mod wmma_tests;
#[cfg(test)]
mod wgmma_tests;

pub use copy::{CopyMode, Piece, Source};
pub use descriptor::{MatrixDescriptor, OutOfShared, Swizzle};
pub use element::Element;
pub use map::{Im2col, MapElement, TensorMap, Tiled};
pub use matrix::{MatrixMove, ROW_BYTES, movmatrix};
pub use mma::{Extra, Mma, Scale};
pub use tcgen::{
    Tcgen05A, Tcgen05Args, Tcgen05Copy, Tcgen05Mma, Tcgen05Move, Tcgen05Side, TensorMemory,
};
pub use wgmma::{Wgmma, WgmmaA, WgmmaArgs};
pub use wmma::{Wmma, WmmaMma, WmmaMove};
pub use words::{Shape, Words};

/// One 32-bit register of the 32 lanes of a warp.
pub type Lanes = [u32; 32];
