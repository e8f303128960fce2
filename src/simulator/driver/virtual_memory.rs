//! Virtual memory: addresses and the memory behind them, apart.
//!
//! Physical memory is a file in memory without a name; mapping it maps the file, so that one piece
//! seen at two addresses is one.

#![allow(
    unsafe_code,
    reason = "pages are mapped over addresses that were reserved for it"
)]

use std::collections::BTreeMap;
use std::ffi::c_uint;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::fd::FromRawFd;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use crate::simulator::driver::abi::Address;
use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::abi::In;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::abi::api;
use crate::simulator::driver::context;
use crate::simulator::driver::heap::Mapping;
use crate::simulator::driver::heap::Use;
use crate::simulator::driver::state::Driver;
use crate::simulator::driver::state::driver;
use crate::simulator::driver::state::lock;
use crate::simulator::driver::status::Status;
use crate::simulator::driver::types::AccessDesc;
use crate::simulator::driver::types::AllocationProp;
use crate::simulator::driver::types::Location;

/// What sizes and addresses are multiples of.
const GRANULARITY: u64 = 2 << 20;

/// Memory without an address.
pub(super) struct Physical {
    pub(super) handle: Handle,
    pub(super) bytes: u64,
    prop: AllocationProp,
    device: u32,
    file: File,
    /// How often the program or a mapping holds it.
    holders: AtomicUsize,
}

impl Physical {
    fn hold(&self) {
        self.holders.fetch_add(1, Ordering::AcqRel);
    }
    fn release(&self, driver: &Driver) {
        if self.holders.fetch_sub(1, Ordering::AcqRel) == 1
            && driver.physical.remove(self.handle).is_some()
            && let Ok(device) = driver.device(self.device as i32)
        {
            device.give(self.bytes);
        }
    }
}

/// A piece of physical memory at an address.
struct Mapped {
    physical: Arc<Physical>,
    bytes: u64,
    offset: u64,
    access: BTreeMap<Location, u32>,
}

#[derive(Default)]
struct Table {
    reserved: BTreeMap<Address, Mapping>,
    mapped: BTreeMap<Address, Mapped>,
}

static TABLE: Mutex<Table> = Mutex::new(Table {
    reserved: BTreeMap::new(),
    mapped: BTreeMap::new(),
});

impl Table {
    /// Whether a range lies in one reservation.
    fn is_reserved(&self, address: Address, bytes: u64) -> bool {
        let found = self.reserved.range(..=address).next_back();
        found.is_some_and(|(base, mapping)| {
            address
                .checked_add(bytes)
                .is_some_and(|end| end <= base + mapping.bytes())
        })
    }
    fn is_free(&self, address: Address, bytes: u64) -> bool {
        let below = self.mapped.range(..address + bytes).next_back();
        below.is_none_or(|(base, mapped)| base + mapped.bytes <= address)
    }
    /// The addresses of the pieces that make up exactly a range.
    fn pieces(&self, address: Address, bytes: u64) -> Answer<Vec<Address>> {
        let end = address.checked_add(bytes).ok_or(Status::INVALID_VALUE)?;
        let mut next = address;
        let mut pieces = Vec::new();
        while next < end {
            let mapped = self.mapped.get(&next).ok_or(Status::INVALID_VALUE)?;
            pieces.push(next);
            next += mapped.bytes;
        }
        if next != end || pieces.is_empty() {
            return Err(Status::INVALID_VALUE);
        }
        Ok(pieces)
    }
}

/// Lays the file over reserved addresses.
fn show(address: Address, mapped: &Mapped) -> Answer {
    let (bytes, offset) = (mapped.bytes as usize, mapped.offset as libc::off_t);
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_NORESERVE;
    let file = mapped.physical.file.as_raw_fd();
    // SAFETY: the range lies in a reservation of ours, and nothing else is mapped there.
    let base = unsafe { libc::mmap(address as *mut _, bytes, protection, flags, file, offset) };
    if base == libc::MAP_FAILED {
        return Err(Status::OUT_OF_MEMORY);
    }
    Ok(())
}

/// Makes addresses memory without access again.
fn hide(address: Address, bytes: u64) {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    let none = libc::PROT_NONE;
    // SAFETY: the range lies in a reservation of ours, and the program has given it up.
    unsafe { libc::mmap(address as *mut _, bytes as usize, none, flags, -1, 0) };
}

fn memory_file(bytes: u64) -> Answer<File> {
    // SAFETY: the name is a text with its end; the call makes a new file and touches nothing.
    let fd = unsafe { libc::memfd_create(c"simulated-gpu".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(Status::OPERATING_SYSTEM);
    }
    // SAFETY: the descriptor is new and nobody else has it.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    file.set_len(bytes).map_err(|_| Status::OUT_OF_MEMORY)?;
    Ok(file)
}

fn check_prop(prop: &AllocationProp) -> Answer<u32> {
    if prop.kind != 1 {
        return Err(Status::INVALID_VALUE);
    }
    // Memory cannot leave the process, but programs ask for it without looking first.
    if prop.handle_types & !0xf != 0 {
        return Err(Status::INVALID_VALUE);
    }
    match prop.location.kind {
        Location::DEVICE => Ok(driver()?.device(prop.location.id)?.ordinal),
        2..=4 => Err(Status::NOT_SUPPORTED),
        _ => Err(Status::INVALID_VALUE),
    }
}

fn is_whole(value: u64) -> bool {
    value.is_multiple_of(GRANULARITY)
}

api! {
    fn cuMemGetAllocationGranularity(
        granularity: Out<usize>, prop: In<AllocationProp>, option: c_uint,
    ) {
        driver()?;
        granularity.check()?;
        check_prop(&prop.get()?)?;
        if option > 1 {
            return Err(Status::INVALID_VALUE);
        }
        granularity.put(GRANULARITY as usize)
    }
    fn cuMemAddressReserve(
        address: Out<Address>, bytes: usize, alignment: usize, hint: Address, flags: u64,
    ) {
        driver()?;
        address.check()?;
        let bytes = bytes as u64;
        let aligned = alignment == 0 || alignment.is_power_of_two();
        if bytes == 0 || !is_whole(bytes) || !aligned || flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let alignment = (alignment as u64).max(GRANULARITY);
        let mapping = Mapping::reserve(bytes, alignment, hint).ok_or(Status::OUT_OF_MEMORY)?;
        let base = mapping.base();
        lock(&TABLE).reserved.insert(base, mapping);
        address.put(base)
    }
    fn cuMemAddressFree(address: Address, bytes: usize) {
        driver()?;
        let mut table = lock(&TABLE);
        let whole = table.reserved.get(&address);
        if whole.is_none_or(|mapping| mapping.bytes() != bytes as u64) {
            return Err(Status::INVALID_VALUE);
        }
        if !table.is_free(address, bytes as u64) {
            return Err(Status::INVALID_VALUE);
        }
        table.reserved.remove(&address);
        Ok(())
    }
    fn cuMemCreate(out: Out<u64>, bytes: usize, prop: In<AllocationProp>, flags: u64) {
        let driver = driver()?;
        out.check()?;
        let prop = prop.get()?;
        let bytes = bytes as u64;
        if bytes == 0 || !is_whole(bytes) || flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let device = check_prop(&prop)?;
        driver.device(device as i32)?.take(bytes)?;
        let file = memory_file(bytes);
        if file.is_err() {
            driver.device(device as i32)?.give(bytes);
        }
        let file = file?;
        let physical = driver.physical.insert(|handle| Physical {
            handle,
            bytes,
            prop,
            device,
            file,
            holders: AtomicUsize::new(1),
        });
        out.put(physical.handle as u64)
    }
    fn cuMemRelease(handle: u64) {
        let driver = driver()?;
        let physical = driver.physical.find(handle as usize);
        physical.ok_or(Status::INVALID_VALUE)?.release(driver);
        Ok(())
    }
    fn cuMemMap(address: Address, bytes: usize, offset: usize, handle: u64, flags: u64) {
        let driver = driver()?;
        let (bytes, offset) = (bytes as u64, offset as u64);
        let physical = driver.physical.find(handle as usize).ok_or(Status::INVALID_VALUE)?;
        let fits = offset.checked_add(bytes).is_some_and(|end| end <= physical.bytes);
        if flags != 0 || bytes == 0 || !fits || !is_whole(bytes) || !is_whole(offset) {
            return Err(Status::INVALID_VALUE);
        }
        let mut table = lock(&TABLE);
        if !is_whole(address) || !table.is_reserved(address, bytes) || !table.is_free(address, bytes) {
            return Err(Status::INVALID_VALUE);
        }
        physical.hold();
        let access = BTreeMap::new();
        table.mapped.insert(address, Mapped { physical, bytes, offset, access });
        Ok(())
    }
    fn cuMemUnmap(address: Address, bytes: usize) {
        let driver = driver()?;
        context::refuse_callback()?;
        let bytes = bytes as u64;
        let mut table = lock(&TABLE);
        for piece in table.pieces(address, bytes)? {
            let Some(mapped) = table.mapped.remove(&piece) else {
                continue;
            };
            if let Some(block) = driver.heap.at(piece) {
                for context in driver.contexts.all() {
                    // Its own callers hear of what went wrong.
                    let _ = context.wait(driver);
                }
                driver.heap.free(driver, &block)?;
            }
            hide(piece, mapped.bytes);
            mapped.physical.release(driver);
        }
        Ok(())
    }
    fn cuMemSetAccess(address: Address, bytes: usize, desc: In<AccessDesc>, count: usize) {
        let driver = driver()?;
        let descs = desc.array(count)?;
        if descs.is_empty() {
            return Err(Status::INVALID_VALUE);
        }
        for desc in &descs {
            if !matches!(desc.flags, 0 | 1 | 3) {
                return Err(Status::INVALID_VALUE);
            }
            if desc.location.kind == Location::DEVICE {
                driver.device(desc.location.id)?;
            }
        }
        let mut table = lock(&TABLE);
        for piece in table.pieces(address, bytes as u64)? {
            let Some(mapped) = table.mapped.get_mut(&piece) else {
                continue;
            };
            mapped.access.extend(descs.iter().map(|desc| (desc.location, desc.flags)));
            let visible = mapped.access.values().any(|&flags| flags != 0);
            let block = driver.heap.at(piece);
            if visible && block.is_none() {
                show(piece, mapped)?;
                let owner = context::primary_of(driver, mapped.physical.device);
                let owner = owner.map_or_else(context::current, Ok)?;
                let purpose = Use::Mapped(mapped.physical.handle);
                driver.heap.adopt(driver, &owner, piece, mapped.bytes, purpose, 0)?;
                if mapped.physical.holders.load(Ordering::Acquire) > 2 {
                    // Seen from elsewhere too: what was written there is not known here.
                    driver.space.mark_written(piece, mapped.bytes);
                }
            } else if let (false, Some(block)) = (visible, block) {
                driver.heap.free(driver, &block)?;
                hide(piece, mapped.bytes);
            }
        }
        Ok(())
    }
    fn cuMemGetAccess(flags: Out<u64>, location: In<Location>, address: Address) {
        driver()?;
        flags.check()?;
        let location = location.get()?;
        let table = lock(&TABLE);
        let found = table.mapped.range(..=address).next_back();
        let found = found.filter(|(base, mapped)| address < *base + mapped.bytes);
        let (_, mapped) = found.ok_or(Status::INVALID_VALUE)?;
        flags.put(u64::from(mapped.access.get(&location).copied().unwrap_or(0)))
    }
    fn cuMemGetAllocationPropertiesFromHandle(prop: Out<AllocationProp>, handle: u64) {
        let physical = driver()?.physical.find(handle as usize);
        prop.put(physical.ok_or(Status::INVALID_VALUE)?.prop)
    }
    fn cuMemRetainAllocationHandle(handle: Out<u64>, address: Address) {
        driver()?;
        handle.check()?;
        let table = lock(&TABLE);
        let found = table.mapped.range(..=address).next_back();
        let found = found.filter(|(base, mapped)| address < *base + mapped.bytes);
        let (_, mapped) = found.ok_or(Status::INVALID_VALUE)?;
        mapped.physical.hold();
        handle.put(mapped.physical.handle as u64)
    }
    fn cuMemExportToShareableHandle(_out: Out<usize>, handle: u64, _kind: c_uint, _flags: u64) {
        driver()?.physical.find(handle as usize).ok_or(Status::INVALID_VALUE)?;
        Err(Status::NOT_SUPPORTED)
    }
    fn cuMemImportFromShareableHandle(_out: Out<u64>, _shared: usize, _kind: c_uint) {
        driver()?;
        Err(Status::NOT_SUPPORTED)
    }
    fn cuMemGetHandleForAddressRange(
        _out: Out<usize>, _address: Address, _bytes: usize, _kind: c_uint, _flags: u64,
    ) {
        driver()?;
        Err(Status::NOT_SUPPORTED)
    }
}
