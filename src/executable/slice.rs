//! Parts of allocations, and how thunks use them.

use crate::executable::AllocId;
use crate::shape::ArrayShape;

/// A range of bytes of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slice {
    /// The allocation.
    pub alloc: AllocId,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub size: u64,
}

impl Slice {
    /// Whether the two share a byte.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.alloc == other.alloc
            && (self.size > 0 && other.size > 0)
            && self.offset < other.offset + other.size
            && other.offset < self.offset + self.size
    }
}

/// A slice and the array it holds. The shape has a layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapedSlice {
    /// Where.
    pub slice: Slice,
    /// What.
    pub shape: ArrayShape,
}

/// What a thunk does with a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Reads it.
    Read,
    /// Writes all of it without reading.
    Write,
    /// Reads and writes it.
    ReadWrite,
}

/// One use of a slice by a thunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferUse {
    /// Where.
    pub slice: Slice,
    /// How.
    pub access: Access,
}
