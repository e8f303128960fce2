//! Operands in shared memory, as descriptors name them.

use crate::base::Result;
use crate::simulator::tensor::descriptor::{MatrixDescriptor, OutOfShared, chunk};
use crate::simulator::tensor::tcgen::memory::fault;

pub(super) fn descriptor(bits: u64) -> Result<MatrixDescriptor> {
    MatrixDescriptor::tcgen05(bits)
        .ok_or_else(|| fault(format!("descriptor {bits:#x} has no known swizzle")))
}

pub(super) fn read(shared: &[u8], address: u32) -> Result<[u32; 4]> {
    chunk(shared, address).map_err(|OutOfShared { address }| {
        fault(format!(
            "a descriptor leads to {address:#x}, out of shared memory"
        ))
    })
}
