//! One stretch of memory.

use crate::simulator::memory::Written;
use crate::simulator::memory::raw::Zeroed;

/// What kind of memory it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A device's own memory.
    Device(u32),
    /// The host's memory, pinned or registered. Counts as written everywhere.
    Host,
    /// Memory that moves between host and devices. Counts as written everywhere.
    Managed,
    /// A module's `.global` variable on a device.
    Global(u32),
    /// A module's `.const` variable on a device: kernels may not write it.
    Constant(u32),
    /// The parameters of a launch: kernels may not write them.
    Param,
}

impl Kind {
    /// Whether a kernel may write to it.
    pub fn is_writable(self) -> bool {
        !matches!(self, Self::Constant(_) | Self::Param)
    }
    /// Whether it is known byte by byte what was written.
    pub fn is_tracked(self) -> bool {
        matches!(self, Self::Device(_))
    }
}

/// One stretch of memory.
pub struct Allocation {
    pub(crate) base: u64,
    pub(crate) length: u64,
    pub(crate) kind: Kind,
    pub(crate) label: String,
    pub(crate) written: Option<Written>,
    /// The memory itself, when the allocation owns it.
    pub(crate) backing: Option<Zeroed>,
    /// Number within its address space, never used twice.
    pub(crate) serial: u64,
}

impl Allocation {
    /// Its first address.
    pub fn base(&self) -> u64 {
        self.base
    }
    /// Its bytes.
    pub fn length(&self) -> u64 {
        self.length
    }
    /// The address after its last byte.
    pub fn end(&self) -> u64 {
        self.base + self.length
    }
    /// What kind of memory it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }
    /// What reports call it.
    pub fn label(&self) -> &str {
        &self.label
    }
    /// A number no other allocation of the space has or had.
    pub fn serial(&self) -> u64 {
        self.serial
    }
    /// Whether the allocation holds the memory itself, rather than standing for the caller's.
    pub fn is_owned(&self) -> bool {
        self.backing.is_some()
    }
    /// Whether `address..address + length` lies within it.
    #[inline]
    pub fn holds(&self, address: u64, length: u64) -> bool {
        address >= self.base && length <= self.length && address - self.base <= self.length - length
    }
    /// Marks bytes as written.
    #[inline]
    pub fn mark_written(&self, address: u64, length: u64) {
        if let Some(written) = &self.written {
            written.set(address.wrapping_sub(self.base), length, true);
        }
    }
    /// Whether all those bytes were written, as far as that is known.
    #[inline]
    pub fn is_written(&self, address: u64, length: u64) -> bool {
        self.written
            .as_ref()
            .is_none_or(|written| written.all(address.wrapping_sub(self.base), length))
    }
    /// The first of those bytes that nobody wrote, as far as that is known: where, and how many
    /// follow each other.
    pub fn gap(&self, address: u64, length: u64) -> Option<(u64, u64)> {
        let written = self.written.as_ref()?;
        let (start, bytes) = written.gap(address.wrapping_sub(self.base), length)?;
        Some((self.base + start, bytes))
    }
}
