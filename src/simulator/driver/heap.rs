//! The memory that programs asked for: what lies where, whose it is, and what holds it.

#![allow(
    unsafe_code,
    reason = "large blocks are mapped from the operating system"
)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::Weak;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use crate::simulator::driver::abi::Address;
use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::context::Context;
use crate::simulator::driver::state::Driver;
use crate::simulator::driver::state::lock;
use crate::simulator::driver::status::Status;
use crate::simulator::memory::Kind;
use crate::simulator::memory::raw::Zeroed;

/// Blocks from here on are mapped, so that pages nobody touches cost nothing.
const LARGE: u64 = 1 << 20;

/// Bytes of a page of the operating system.
const PAGE: u64 = 4096;

/// What allocations are aligned to.
const ALIGNMENT: u64 = 512;

/// Pages of the operating system.
pub(super) struct Mapping {
    base: Address,
    bytes: usize,
}

impl Mapping {
    /// Pages that can be read and written, zero at first.
    pub(super) fn new(bytes: u64) -> Option<Self> {
        Self::make(bytes, libc::PROT_READ | libc::PROT_WRITE, 0)
    }
    /// Addresses without memory, at a multiple of `alignment`, near `hint` if that is free.
    pub(super) fn reserve(bytes: u64, alignment: u64, hint: Address) -> Option<Self> {
        let hinted = Self::make(bytes, libc::PROT_NONE, hint)?;
        if hinted.base.is_multiple_of(alignment.max(PAGE)) {
            return Some(hinted);
        }
        drop(hinted);
        let wide = Self::make(bytes.checked_add(alignment)?, libc::PROT_NONE, 0)?;
        let base = wide.base.next_multiple_of(alignment);
        let (before, end) = (base - wide.base, wide.base + wide.bytes as u64);
        let after = end - (base + bytes);
        let whole = std::mem::ManuallyDrop::new(wide);
        unmap(whole.base, before as usize);
        unmap(base + bytes, after as usize);
        Some(Self {
            base,
            bytes: bytes as usize,
        })
    }
    fn make(bytes: u64, protection: i32, hint: Address) -> Option<Self> {
        let bytes = usize::try_from(bytes)
            .ok()?
            .max(1)
            .checked_next_multiple_of(PAGE as usize)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: new pages at an address of the system's choice; nothing that exists is touched.
        let base = unsafe { libc::mmap(hint as *mut _, bytes, protection, flags, -1, 0) };
        (base != libc::MAP_FAILED).then_some(Self {
            base: base as Address,
            bytes,
        })
    }
    /// The first address.
    pub(super) fn base(&self) -> Address {
        self.base
    }
    /// The bytes asked for, in whole pages.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes as u64
    }
}

fn unmap(base: Address, bytes: usize) {
    if bytes > 0 {
        // SAFETY: the pages are part of a mapping of ours that nobody uses any more.
        unsafe { libc::munmap(base as *mut _, bytes) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        unmap(self.base, self.bytes);
    }
}

/// Whether the process has memory at every page of a range.
pub(super) fn is_mapped(base: Address, bytes: u64) -> bool {
    let Some(end) = base.checked_add(bytes) else {
        return false;
    };
    let first = base / PAGE * PAGE;
    let length = (end - first) as usize;
    // SAFETY: looks at the pages' table only; with this flag nothing is written.
    unsafe { libc::msync(first as *mut _, length, libc::MS_ASYNC) == 0 }
}

/// What holds a block's bytes.
pub(super) enum Backing {
    /// Pages of its own.
    Large { _pages: Mapping },
    /// A piece of the process's heap.
    Small { _bytes: Zeroed },
    /// Memory of a graph's node.
    Graph(Arc<GraphMemory>),
    /// Somebody else's: registered, or mapped.
    Foreign,
}

fn backing(bytes: u64) -> Answer<(Address, Backing)> {
    if bytes >= LARGE {
        let mapping = Mapping::new(bytes).ok_or(Status::OUT_OF_MEMORY)?;
        return Ok((mapping.base(), Backing::Large { _pages: mapping }));
    }
    let memory = Zeroed::new(bytes, ALIGNMENT).ok_or(Status::OUT_OF_MEMORY)?;
    Ok((memory.address(), Backing::Small { _bytes: memory }))
}

/// How a block came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// `cuMemAlloc`
    Device,
    /// `cuMemAllocAsync` and its like, from the pool.
    Pool(Handle),
    /// `cuMemAllocHost`, `cuMemHostAlloc`
    Host,
    /// `cuMemHostRegister`
    Registered,
    /// `cuMemAllocManaged`
    Managed,
    /// `cuMemMap`, of the physical memory
    Mapped(Handle),
    /// A graph's node.
    Graph,
}

/// Memory that a graph's node allocates, at an address that stays.
pub(super) struct GraphMemory {
    pub(super) base: Address,
    pub(super) bytes: u64,
    pub(super) device: u32,
    live: AtomicBool,
    _backing: Backing,
}

impl GraphMemory {
    /// Whether it is allocated now.
    pub(super) fn is_live(&self) -> bool {
        self.live.load(Ordering::Acquire)
    }
}

/// A block of memory.
pub(super) struct Block {
    pub(super) base: Address,
    pub(super) bytes: u64,
    pub(super) id: u64,
    pub(super) purpose: Use,
    pub(super) flags: u32,
    pub(super) device: u32,
    /// The context that allocated it.
    pub(super) context: Handle,
    backing: Backing,
}

impl Block {
    /// The address after it.
    pub(super) fn end(&self) -> Address {
        self.base + self.bytes
    }
    /// Whether it lies on the host.
    pub(super) fn is_host(&self) -> bool {
        matches!(self.purpose, Use::Host | Use::Registered)
    }
    /// Whether its bytes count against the device's memory.
    fn is_counted(&self) -> bool {
        matches!(self.purpose, Use::Device | Use::Pool(_) | Use::Graph)
    }
}

#[derive(Default)]
struct Flight {
    launches: usize,
    /// Memory freed while a kernel ran, which may still look at it.
    waiting: Vec<Arc<Block>>,
}

/// All blocks.
#[derive(Default)]
pub(super) struct Heap {
    blocks: Mutex<BTreeMap<Address, Arc<Block>>>,
    /// Memory that graphs will allocate.
    planned: Mutex<BTreeMap<Address, Weak<GraphMemory>>>,
    flight: Mutex<Flight>,
}

/// A kernel that runs: what is freed meanwhile is kept.
pub(super) struct InFlight<'a>(&'a Heap);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let done = {
            let mut flight = lock(&self.0.flight);
            flight.launches -= 1;
            if flight.launches == 0 {
                std::mem::take(&mut flight.waiting)
            } else {
                Vec::new()
            }
        };
        drop(done);
    }
}

impl Heap {
    /// Says that a kernel begins.
    pub(super) fn enter(&self) -> InFlight<'_> {
        lock(&self.flight).launches += 1;
        InFlight(self)
    }
    /// Allocates.
    pub(super) fn allocate(
        &self,
        driver: &Driver,
        context: &Context,
        bytes: u64,
        purpose: Use,
        flags: u32,
    ) -> Answer<Arc<Block>> {
        let counted = matches!(purpose, Use::Device | Use::Pool(_));
        if counted {
            driver.device(context.device as i32)?.take(bytes)?;
        }
        let block = backing(bytes).and_then(|(base, backing)| {
            self.add(driver, context, base, bytes, purpose, flags, backing)
        });
        if block.is_err() && counted {
            driver.device(context.device as i32)?.give(bytes);
        }
        block
    }
    /// Takes in memory of somebody else.
    pub(super) fn adopt(
        &self,
        driver: &Driver,
        context: &Context,
        base: Address,
        bytes: u64,
        purpose: Use,
        flags: u32,
    ) -> Answer<Arc<Block>> {
        self.add(
            driver,
            context,
            base,
            bytes,
            purpose,
            flags,
            Backing::Foreign,
        )
    }
    /// An address for a node that will allocate.
    pub(super) fn plan(&self, device: u32, bytes: u64) -> Answer<Arc<GraphMemory>> {
        let (base, backing) = backing(bytes)?;
        let memory = Arc::new(GraphMemory {
            base,
            bytes,
            device,
            live: AtomicBool::new(false),
            _backing: backing,
        });
        let mut planned = lock(&self.planned);
        planned.retain(|_, memory| memory.strong_count() > 0);
        planned.insert(base, Arc::downgrade(&memory));
        Ok(memory)
    }
    /// Whether a range lies in memory that a graph will allocate.
    pub(super) fn is_planned(&self, address: Address, bytes: u64) -> bool {
        let planned = lock(&self.planned);
        let found = planned.range(..=address).next_back();
        let memory = found.and_then(|(_, memory)| memory.upgrade());
        memory.is_some_and(|memory| {
            let end = address.checked_add(bytes);
            end.is_some_and(|end| end <= memory.base + memory.bytes)
        })
    }
    /// Makes a graph's memory known while it is allocated.
    pub(super) fn raise(
        &self,
        driver: &Driver,
        context: &Context,
        memory: &Arc<GraphMemory>,
    ) -> Answer {
        if memory.live.swap(true, Ordering::AcqRel) {
            return Err(Status::INVALID_VALUE);
        }
        let device = driver.device(memory.device as i32)?;
        let taken = device.take(memory.bytes);
        let added = taken.and_then(|()| {
            let backing = Backing::Graph(Arc::clone(memory));
            let (base, bytes) = (memory.base, memory.bytes);
            self.add(driver, context, base, bytes, Use::Graph, 0, backing)
                .inspect_err(|_| device.give(bytes))
        });
        if added.is_err() {
            memory.live.store(false, Ordering::Release);
        }
        added.map(|_| ())
    }
    fn add(
        &self,
        driver: &Driver,
        context: &Context,
        base: Address,
        bytes: u64,
        purpose: Use,
        flags: u32,
        backing: Backing,
    ) -> Answer<Arc<Block>> {
        let id = driver.new_id();
        let (kind, what) = match purpose {
            Use::Host => (Kind::Host, "pinned memory"),
            Use::Registered => (Kind::Host, "registered memory"),
            Use::Managed => (Kind::Managed, "managed memory"),
            Use::Device => (Kind::Device(context.device), "device memory"),
            Use::Pool(_) => (Kind::Device(context.device), "pool memory"),
            Use::Mapped(_) => (Kind::Device(context.device), "mapped memory"),
            Use::Graph => (Kind::Device(context.device), "graph memory"),
        };
        let label = format!("{what} #{id}");
        let added = driver.space.insert(base, bytes, kind, label);
        added.map_err(|_| Status::INVALID_VALUE)?;
        let block = Arc::new(Block {
            base,
            bytes,
            id,
            purpose,
            flags,
            device: context.device,
            context: context.handle,
            backing,
        });
        lock(&self.blocks).insert(base, Arc::clone(&block));
        Ok(block)
    }
    /// The block that holds an address.
    pub(super) fn find(&self, address: Address) -> Option<Arc<Block>> {
        let blocks = lock(&self.blocks);
        let (_, block) = blocks.range(..=address).next_back()?;
        (address < block.end()).then(|| Arc::clone(block))
    }
    /// The block that begins at an address.
    pub(super) fn at(&self, base: Address) -> Option<Arc<Block>> {
        lock(&self.blocks).get(&base).cloned()
    }
    /// The blocks that touch a range.
    pub(super) fn within(&self, base: Address, bytes: u64) -> Vec<Arc<Block>> {
        let end = base.saturating_add(bytes);
        let blocks = lock(&self.blocks);
        let before = blocks.range(..base).next_back();
        let before = before.filter(|(_, block)| block.end() > base);
        let before = before.map(|(_, block)| Arc::clone(block));
        let inside = blocks.range(base..end).map(|(_, block)| Arc::clone(block));
        before.into_iter().chain(inside).collect()
    }
    /// Forgets a block. One that somebody else has freed meanwhile is an error, even where another
    /// begins at the same address by now.
    pub(super) fn free(&self, driver: &Driver, block: &Arc<Block>) -> Answer {
        let removed = {
            let mut blocks = lock(&self.blocks);
            match blocks.get(&block.base) {
                Some(found) if found.id == block.id => blocks.remove(&block.base),
                _ => None,
            }
        };
        let removed = removed.ok_or(Status::INVALID_VALUE)?;
        driver.space.remove(removed.base);
        if let Use::Pool(pool) = removed.purpose
            && let Some(pool) = driver.pools.find(pool)
        {
            pool.give(removed.bytes);
        }
        if removed.is_counted()
            && let Ok(device) = driver.device(removed.device as i32)
        {
            device.give(removed.bytes);
        }
        if let Backing::Graph(memory) = &removed.backing {
            memory.live.store(false, Ordering::Release);
        }
        let mut flight = lock(&self.flight);
        if flight.launches > 0 {
            flight.waiting.push(removed);
        }
        Ok(())
    }
    /// Frees what a context allocated, but not what belongs to pools and mappings.
    pub(super) fn free_context(&self, driver: &Driver, context: Handle) {
        let mut blocks: Vec<_> = lock(&self.blocks).values().cloned().collect();
        blocks.retain(|block| {
            block.context == context && !matches!(block.purpose, Use::Pool(_) | Use::Mapped(_))
        });
        for block in &blocks {
            // It may be gone already.
            let _ = self.free(driver, block);
        }
    }
    /// Whether every byte of a range lies in memory that the driver knows.
    pub(super) fn covers(&self, driver: &Driver, address: Address, bytes: u64) -> bool {
        let Some(end) = address.checked_add(bytes) else {
            return false;
        };
        let mut next = address;
        while next < end {
            match driver.space.find(next) {
                Some(allocation) => next = allocation.end(),
                None => return false,
            }
        }
        true
    }
}
