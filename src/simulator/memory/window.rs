//! Where generic addresses of shared and local memory lie.
//!
//! A `.shared` address is an offset within the block's shared memory; in bits 24 and up stands one
//! more than the rank of another block of the cluster, or zero for the block itself. Its generic
//! form is the same number within the shared window. A `.local` address is an offset within the
//! thread's own memory, and its generic form the same number within the local window.

/// Start of the shared window.
pub const SHARED: u64 = 0x0100_0000_0000_0000;
/// Start of the local window.
pub const LOCAL: u64 = 0x0200_0000_0000_0000;
/// Bytes of each window.
pub const LENGTH: u64 = 0x1_0000_0000;
/// Bits of the offset within one block's shared memory.
pub const RANK_SHIFT: u32 = 24;

/// What a generic address points into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Global, constant, param or host memory: a host address.
    Global,
    /// Shared memory, with the address within the space.
    Shared(u32),
    /// Local memory, with the address within the space.
    Local(u32),
}

/// What a generic address points into.
#[inline]
pub fn place(address: u64) -> Place {
    match address & !(LENGTH - 1) {
        SHARED => Place::Shared(address as u32),
        LOCAL => Place::Local(address as u32),
        _ => Place::Global,
    }
}

/// The generic address of a byte of shared memory, as block `own` of the cluster has it.
pub fn shared(rank: usize, offset: u32, own: usize) -> u64 {
    let field = if rank == own { 0 } else { rank as u64 + 1 };
    SHARED | field << RANK_SHIFT | u64::from(offset)
}
