//! Tiles: a processor's registers for small matrices (AMX of x86-64), and what is done with them.
//!
//! There are eight. Each has up to 16 rows of up to 64 bytes, which [`TileOp::Configure`] says. The
//! names and shapes are those of Intel's "Architecture Instruction Set Extensions", AMX.

use crate::kernel::BufId;
use crate::kernel::ExprId;
use crate::kernel::Scalar;

/// How many tiles there are.
pub const TILES: usize = 8;

/// Most rows of a tile.
pub const TILE_ROWS: usize = 16;

/// Most bytes of a row of a tile.
pub const TILE_ROW_BYTES: usize = 64;

/// The size of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileShape {
    /// Rows, from 1 to [`TILE_ROWS`]; 0 in a tile that is not used.
    pub rows: u8,
    /// Bytes of a row, a multiple of four up to [`TILE_ROW_BYTES`]; 0 in a tile that is not used.
    pub bytes: u8,
}

/// What [`TileOp::Dot`] multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TileDot {
    /// Pairs of `bf16`, summed in `f32`: subnormals of operands and sums count as zero, the products of
    /// the first numbers of all pairs and those of the second are summed apart, then added.
    Bf16,
    /// Four bytes, summed in 32 bits, wrapping.
    Bytes {
        /// Whether those of the left tile are signed.
        left_signed: bool,
        /// Whether those of the right tile are signed.
        right_signed: bool,
    },
}

impl TileDot {
    /// The type of sums in memory.
    pub fn sum(self) -> Scalar {
        match self {
            Self::Bf16 => Scalar::F32,
            Self::Bytes { .. } => Scalar::I32,
        }
    }

    /// The name in kernel text, which is that of the instruction.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16ps",
            Self::Bytes {
                left_signed,
                right_signed,
            } => match (left_signed, right_signed) {
                (true, true) => "bssd",
                (true, false) => "bsud",
                (false, true) => "busd",
                (false, false) => "buud",
            },
        }
    }
}

/// A matrix in memory: row `r` of a tile is at `index + r * stride`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TilePlace {
    /// Which buffer.
    pub buf: BufId,
    /// First element, `i64` scalar.
    pub index: ExprId,
    /// Elements from one row to the next.
    pub stride: u64,
}

/// A statement about tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TileOp {
    /// Asks the system for the use of tiles, gives each its shape, and makes all zero. Where the system
    /// refuses, the kernel ends here and says that it failed.
    Configure([TileShape; TILES]),
    /// Makes a tile zero.
    Zero(u8),
    /// Reads a tile from memory.
    Load(u8, TilePlace),
    /// Adds a matrix product to the sums. Row k of the right tile holds, for each column, the group of
    /// neighbours that group k of a row of the left tile is multiplied with.
    Dot {
        /// What is multiplied.
        kind: TileDot,
        /// The tile of sums.
        sum: u8,
        /// The left tile.
        left: u8,
        /// The right tile.
        right: u8,
    },
    /// Writes a tile to memory.
    Store(u8, TilePlace),
    /// Gives the tiles back; what they hold is lost.
    Release,
}
