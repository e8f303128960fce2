//! The table of allocations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::RwLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::simulator::memory::Allocation;
use crate::simulator::memory::Kind;
use crate::simulator::memory::Written;
use crate::simulator::memory::raw::Zeroed;

/// Every allocation of a simulated machine, by address.
#[derive(Default)]
pub struct AddressSpace {
    table: RwLock<BTreeMap<u64, Arc<Allocation>>>,
    serial: AtomicU64,
}

impl AddressSpace {
    /// A space with no allocation.
    pub fn new() -> Self {
        Self::default()
    }

    fn add(
        &self,
        base: u64,
        length: u64,
        kind: Kind,
        label: String,
        backing: Option<Zeroed>,
    ) -> Result<Arc<Allocation>> {
        let end = base.checked_add(length);
        let Some(end) = end.filter(|_| base != 0 && length != 0) else {
            return Err(Diagnostic::error(
                codes::DEVICE_FAULT,
                format!("cannot hold {length} bytes at {base:#x}"),
            ));
        };
        let written = if kind.is_tracked() {
            Written::new(length)
        } else {
            None
        };
        let allocation = Arc::new(Allocation {
            base,
            length,
            kind,
            label,
            written,
            backing,
            serial: self.serial.fetch_add(1, Ordering::Relaxed),
        });
        let mut table = self.table.write().unwrap_or_else(|e| e.into_inner());
        if let Some((_, below)) = table.range(..end).next_back()
            && below.end() > base
        {
            return Err(Diagnostic::error(
                codes::DEVICE_FAULT,
                format!("{length} bytes at {base:#x} overlap {}", below.label()),
            ));
        }
        table.insert(base, Arc::clone(&allocation));
        Ok(allocation)
    }

    /// Makes memory that the caller owns known. It must stay valid until it is removed and no
    /// launch is under way that began before.
    ///
    /// # Errors
    /// When it is empty or overlaps another allocation.
    pub fn insert(
        &self,
        base: u64,
        length: u64,
        kind: Kind,
        label: impl Into<String>,
    ) -> Result<Arc<Allocation>> {
        self.add(base, length, kind, label.into(), None)
    }

    /// Allocates `length` bytes, zero at first but not counted as written. `align` is a power of
    /// two.
    ///
    /// # Errors
    /// When the host has no memory for it.
    pub fn allocate(
        &self,
        length: u64,
        align: u64,
        kind: Kind,
        label: impl Into<String>,
    ) -> Result<Arc<Allocation>> {
        let length = length.max(1);
        let Some(backing) = Zeroed::new(length, align) else {
            return Err(Diagnostic::error(
                codes::DEVICE_FAULT,
                format!("no memory for {length} bytes"),
            ));
        };
        self.add(backing.address(), length, kind, label.into(), Some(backing))
    }

    /// Forgets the allocation that begins at `base`.
    pub fn remove(&self, base: u64) -> Option<Arc<Allocation>> {
        let mut table = self.table.write().unwrap_or_else(|e| e.into_inner());
        table.remove(&base)
    }

    /// The allocation that holds `address`.
    pub fn find(&self, address: u64) -> Option<Arc<Allocation>> {
        let table = self.table.read().unwrap_or_else(|e| e.into_inner());
        let (_, allocation) = table.range(..=address).next_back()?;
        allocation.holds(address, 1).then(|| Arc::clone(allocation))
    }

    /// Every allocation, by address.
    pub fn allocations(&self) -> Vec<Arc<Allocation>> {
        let table = self.table.read().unwrap_or_else(|e| e.into_inner());
        table.values().cloned().collect()
    }

    /// Marks bytes as written, as far as they lie within the allocation that holds the first.
    pub fn mark_written(&self, address: u64, length: u64) {
        if let Some(allocation) = self.find(address) {
            allocation.mark_written(address, length);
        }
    }

    /// Takes over which bytes were written from a copy's source to its destination. A source that
    /// is not known, such as plain host memory, counts as written.
    pub fn copy_written(&self, from: u64, to: u64, length: u64) {
        let Some(target) = self.find(to) else { return };
        let Some(bits) = &target.written else { return };
        let length = length.min(target.end() - to);
        match self.find(from) {
            Some(source) if source.written.is_some() => {
                if let Some(known) = &source.written {
                    let length = length.min(source.end() - from);
                    bits.copy(to - target.base, known, from - source.base, length);
                }
            }
            _ => bits.set(to - target.base, length, true),
        }
    }

    /// Whether all those bytes were written, as far as that is known.
    pub fn is_written(&self, address: u64, length: u64) -> bool {
        self.find(address)
            .is_none_or(|allocation| allocation.is_written(address, length))
    }

    /// The table as it is now.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            list: self.allocations(),
        }
    }
}

/// The allocations at one moment, kept alive.
#[derive(Clone, Default)]
pub struct Snapshot {
    list: Vec<Arc<Allocation>>,
}

impl Snapshot {
    /// The place in the list of the allocation that holds all of `address..address + length`.
    #[inline]
    pub fn position(&self, address: u64, length: u64) -> Option<usize> {
        let after = self.list.partition_point(|a| a.base <= address);
        let index = after.checked_sub(1)?;
        self.list[index].holds(address, length).then_some(index)
    }
    /// The allocation at a place of the list.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&Allocation> {
        self.list.get(index).map(|a| &**a)
    }
    /// The allocation at `address`, or the nearest one below it.
    pub fn near(&self, address: u64) -> Option<&Allocation> {
        let after = self.list.partition_point(|a| a.base <= address);
        self.list.get(after.checked_sub(1)?).map(|a| &**a)
    }
    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}
