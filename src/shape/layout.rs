//! How an array lies in memory.

use smallvec::SmallVec;

use crate::shape::Dims;

/// One level of tiling; `None` is a combined dimension (printed `*`).
pub type Tile = SmallVec<[Option<i64>; 2]>;

/// The physical order of an array's dimensions and what goes with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Logical dimension numbers, the fastest-varying one first.
    pub minor_to_major: Dims,
    /// Tiles, outermost first; empty for a plain array.
    pub tiles: Vec<Tile>,
    /// The tail padding alignment in elements; 0 and 1 mean none.
    pub tail_padding_alignment: i64,
    /// Bits an element takes when packed; 0 means its natural width.
    pub element_size_in_bits: i64,
    /// The memory the array lives in; 0 is the device's default.
    pub memory_space: i64,
    /// Bytes of metadata that go before a dynamically shaped buffer.
    pub dynamic_shape_metadata_prefix_bytes: i64,
}

impl Layout {
    /// The row-major layout of an array of that rank: `{n-1, ..., 1, 0}`.
    pub fn row_major(rank: usize) -> Self {
        Self {
            minor_to_major: (0..rank).rev().collect(),
            ..Self::default()
        }
    }
    /// A layout with this order and nothing else.
    pub fn from_minor_to_major(order: impl IntoIterator<Item = usize>) -> Self {
        Self {
            minor_to_major: order.into_iter().collect(),
            ..Self::default()
        }
    }
    /// Whether the last logical dimension varies fastest, and so on down.
    pub fn is_row_major(&self) -> bool {
        let rank = self.minor_to_major.len();
        self.minor_to_major
            .iter()
            .enumerate()
            .all(|(i, &dim)| dim + 1 + i == rank)
    }
}
