//! Buffers aligned as kernels expect them: 64 bytes, large ones on 2 MiB pages where possible.
#![allow(unsafe_code, reason = "allocates, and makes slices of what it owns")]

use std::alloc::Layout;

use crate::base::Result;
use crate::runtime::cpu::mapping::Mapping;

/// Alignment every buffer has.
pub const ALIGNMENT: usize = 64;

/// Buffers of at least this size get a mapping of their own.
const LARGE: usize = 1 << 21;

/// Zeroed memory with a fixed address.
pub enum Buffer {
    /// Nothing; the address is aligned and not null.
    Empty,
    /// A block of the heap.
    Small(Block),
    /// Pages; offset of the first byte, number of bytes.
    Large(Mapping, usize, usize),
}

/// A block of the heap.
pub struct Block {
    start: *mut u8,
    size: usize,
}

// SAFETY: a block is owned memory like a `Box<[u8]>`.
unsafe impl Send for Block {}
// SAFETY: shared access only reads the address and the size.
unsafe impl Sync for Block {}

impl Block {
    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, ALIGNMENT).expect("a small size rounded up fits")
    }
    fn new(size: usize) -> Self {
        let layout = Self::layout(size);
        // SAFETY: the size is not zero.
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        if start.is_null() {
            std::alloc::handle_alloc_error(layout);
        }
        Self { start, size }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with the same layout.
        unsafe { std::alloc::dealloc(self.start, Self::layout(self.size)) };
    }
}

impl Buffer {
    /// Zeroed memory of that size.
    ///
    /// # Errors
    /// `XA8004` when the system has no memory to give.
    pub fn new(size: usize) -> Result<Self> {
        if size == 0 {
            return Ok(Self::Empty);
        }
        if size < LARGE {
            return Ok(Self::Small(Block::new(size)));
        }
        let mapping = Mapping::new(size.next_multiple_of(LARGE) + LARGE)?;
        mapping.advise_huge();
        let offset = mapping.address().next_multiple_of(LARGE) - mapping.address();
        Ok(Self::Large(mapping, offset, size))
    }

    /// A buffer that holds these bytes.
    ///
    /// # Errors
    /// As [`Buffer::new`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut buffer = Self::new(bytes.len())?;
        buffer.bytes_mut().copy_from_slice(bytes);
        Ok(buffer)
    }

    /// Number of bytes.
    pub fn size(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Small(block) => block.size,
            Self::Large(_, _, size) => *size,
        }
    }

    /// The address, for kernels. Whoever writes through it must be the only user of the buffer.
    pub fn address(&self) -> *mut u8 {
        match self {
            Self::Empty => std::ptr::without_provenance_mut(ALIGNMENT),
            Self::Small(block) => block.start,
            Self::Large(mapping, offset, _) => (mapping.address() + offset) as *mut u8,
        }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the address is valid for `size` initialised bytes for as long as `self` lives.
        unsafe { std::slice::from_raw_parts(self.address(), self.size()) }
    }

    /// The bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.address(), self.size()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_zeroed_and_writable() {
        for size in [0, 1, 63, 64, 65, 5000, LARGE - 1, LARGE, LARGE + 1] {
            let mut buffer = Buffer::new(size).unwrap();
            assert_eq!(buffer.address() as usize % ALIGNMENT, 0);
            assert_eq!(buffer.bytes().len(), size);
            assert!(buffer.bytes().iter().all(|&b| b == 0));
            buffer.bytes_mut().fill(7);
            assert!(buffer.bytes().iter().all(|&b| b == 7));
        }
    }
}
