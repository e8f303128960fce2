//! Pools: allocation in the order of a stream.

#![allow(unsafe_code, reason = "entry points of a C interface have fixed names")]

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::ffi::c_uint;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use crate::simulator::driver::abi::Address;
use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::abi::In;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::abi::api;
use crate::simulator::driver::abi::per_thread;
use crate::simulator::driver::capture;
use crate::simulator::driver::heap::Use;
use crate::simulator::driver::state::driver;
use crate::simulator::driver::state::lock;
use crate::simulator::driver::status::Status;
use crate::simulator::driver::stream;
use crate::simulator::driver::types::AccessDesc;
use crate::simulator::driver::types::Location;
use crate::simulator::driver::types::PoolProps;
use crate::simulator::driver::work::Work;

#[derive(Clone, Copy, Debug, Default)]
struct Level {
    used: u64,
    most_used: u64,
}

/// A pool.
pub(super) struct Pool {
    pub(super) handle: Handle,
    pub(super) device: u32,
    max_size: u64,
    level: Mutex<Level>,
    /// Attributes that the program set.
    attributes: Mutex<BTreeMap<u32, u64>>,
    access: Mutex<BTreeMap<Location, u32>>,
    /// Whether the program still has it.
    alive: AtomicBool,
}

impl Pool {
    /// A pool on a device; `max_size` 0 is as much as the device has.
    pub(super) fn new(handle: Handle, device: u32, max_size: u64) -> Self {
        Self {
            handle,
            device,
            max_size,
            level: Mutex::default(),
            attributes: Mutex::default(),
            access: Mutex::default(),
            alive: AtomicBool::new(true),
        }
    }
    fn take(&self, bytes: u64) -> Answer {
        let mut level = lock(&self.level);
        let after = level.used.checked_add(bytes).ok_or(Status::OUT_OF_MEMORY)?;
        if self.max_size != 0 && after > self.max_size {
            return Err(Status::OUT_OF_MEMORY);
        }
        level.used = after;
        level.most_used = level.most_used.max(level.used);
        Ok(())
    }
    /// Takes memory back.
    pub(super) fn give(&self, bytes: u64) {
        let mut level = lock(&self.level);
        level.used = level.used.saturating_sub(bytes);
    }
    fn attribute(&self, attribute: u32) -> Answer<u64> {
        let level = *lock(&self.level);
        match attribute {
            1..=3 => Ok(lock(&self.attributes).get(&attribute).copied().unwrap_or(1)),
            4 => Ok(lock(&self.attributes).get(&attribute).copied().unwrap_or(0)),
            5 | 7 => Ok(level.used),
            6 | 8 => Ok(level.most_used),
            _ => Err(Status::INVALID_VALUE),
        }
    }
    fn set_attribute(&self, attribute: u32, value: u64) -> Answer {
        match attribute {
            1..=4 => {
                lock(&self.attributes).insert(attribute, value);
                Ok(())
            }
            // The highest levels can be set back.
            6 | 8 if value == 0 => {
                let mut level = lock(&self.level);
                level.most_used = level.used;
                Ok(())
            }
            _ => Err(Status::INVALID_VALUE),
        }
    }
}

/// The pool of a handle. What a pool that was destroyed has given away stays the program's.
fn resolve(handle: Handle) -> Answer<Arc<Pool>> {
    let pool = driver()?.pools.find(handle).ok_or(Status::INVALID_VALUE)?;
    if !pool.alive.load(Ordering::Acquire) {
        return Err(Status::INVALID_VALUE);
    }
    Ok(pool)
}

fn allocate(out: Out<Address>, bytes: usize, pool: Option<Handle>, stream: Handle) -> Answer {
    let stream = stream::resolve(stream)?;
    out.check()?;
    if bytes == 0 {
        return Err(Status::INVALID_VALUE);
    }
    let driver = driver()?;
    let context = &stream.context;
    if capture::is_capturing(&stream) {
        let memory = driver.heap.plan(context.device, bytes as u64)?;
        let base = memory.base;
        capture::add(driver, &stream, Work::Alloc(memory))?;
        return out.put(base);
    }
    let handle = match pool {
        Some(pool) => pool,
        None => {
            let device = driver.device(context.device as i32)?;
            device.pool.load(Ordering::Relaxed)
        }
    };
    let pool = resolve(handle)?;
    pool.take(bytes as u64)?;
    let block = driver
        .heap
        .allocate(driver, context, bytes as u64, Use::Pool(handle), 0)
        .inspect_err(|_| pool.give(bytes as u64))?;
    out.put(block.base)
}

fn number(attribute: u32, value: Out<u64>) -> Answer<u64> {
    // Flags are 32 bits wide, sizes 64.
    if attribute <= 3 {
        value.cast::<c_int>().get().map(|flag| flag as u64)
    } else {
        value.get()
    }
}

fn put_number(attribute: u32, value: Out<u64>, number: u64) -> Answer {
    if attribute <= 3 {
        value.cast::<c_int>().put(number as c_int)
    } else {
        value.put(number)
    }
}

fn location_device(location: Location) -> Answer<u32> {
    if location.kind != Location::DEVICE {
        return Err(Status::NOT_SUPPORTED);
    }
    Ok(driver()?.device(location.id)?.ordinal)
}

api! {
    fn cuMemAllocAsync(address: Out<Address>, bytes: usize, stream: Handle) {
        allocate(address, bytes, None, stream)
    }
    fn cuMemAllocFromPoolAsync(address: Out<Address>, bytes: usize, pool: Handle, stream: Handle) {
        allocate(address, bytes, Some(pool), stream)
    }
    fn cuMemFreeAsync(address: Address, stream: Handle) {
        let stream = stream::resolve(stream)?;
        if address == 0 {
            return Ok(());
        }
        let driver = driver()?;
        if !capture::is_capturing(&stream) {
            let block = driver.heap.at(address).ok_or(Status::INVALID_VALUE)?;
            if !matches!(block.purpose, Use::Pool(_) | Use::Device | Use::Managed | Use::Graph) {
                return Err(Status::INVALID_VALUE);
            }
        }
        stream::issue(&stream, Work::Free(address))
    }
    fn cuDeviceGetDefaultMemPool(pool: Out<Handle>, device: c_int) {
        pool.put(driver()?.device(device)?.default_pool())
    }
    fn cuDeviceGetMemPool(pool: Out<Handle>, device: c_int) {
        pool.put(driver()?.device(device)?.pool.load(Ordering::Relaxed))
    }
    fn cuDeviceSetMemPool(device: c_int, pool: Handle) {
        let driver = driver()?;
        let device = driver.device(device)?;
        let found = resolve(pool)?;
        if found.device != device.ordinal {
            return Err(Status::INVALID_VALUE);
        }
        device.pool.store(pool, Ordering::Relaxed);
        Ok(())
    }
    fn cuMemPoolCreate(pool: Out<Handle>, props: In<PoolProps>) {
        let driver = driver()?;
        pool.check()?;
        let props = props.get()?;
        if props.kind != 1 {
            return Err(Status::INVALID_VALUE);
        }
        if props.handle_types != 0 {
            return Err(Status::NOT_SUPPORTED);
        }
        let device = location_device(props.location)?;
        let made = driver.pools.insert(|handle| Pool::new(handle, device, props.max_size as u64));
        pool.put(made.handle)
    }
    fn cuMemPoolDestroy(pool: Handle) {
        let driver = driver()?;
        let found = resolve(pool)?;
        let device = driver.device(found.device as i32)?;
        if device.default_pool() == pool {
            return Err(Status::INVALID_VALUE);
        }
        if device.pool.load(Ordering::Relaxed) == pool {
            device.pool.store(device.default_pool(), Ordering::Relaxed);
        }
        found.alive.store(false, Ordering::Release);
        Ok(())
    }
    fn cuMemPoolTrimTo(pool: Handle, _keep: usize) {
        resolve(pool).map(|_| ())
    }
    fn cuMemPoolGetAttribute(pool: Handle, attribute: c_uint, value: Out<u64>) {
        let pool = resolve(pool)?;
        put_number(attribute, value, pool.attribute(attribute)?)
    }
    fn cuMemPoolSetAttribute(pool: Handle, attribute: c_uint, value: Out<u64>) {
        let pool = resolve(pool)?;
        pool.set_attribute(attribute, number(attribute, value)?)
    }
    fn cuMemPoolSetAccess(pool: Handle, map: In<AccessDesc>, count: usize) {
        let pool = resolve(pool)?;
        for desc in map.array(count)? {
            let device = location_device(desc.location)?;
            if !matches!(desc.flags, 0 | 1 | 3) || (device == pool.device && desc.flags != 3) {
                return Err(Status::INVALID_VALUE);
            }
            lock(&pool.access).insert(desc.location, desc.flags);
        }
        Ok(())
    }
    fn cuMemPoolGetAccess(flags: Out<c_uint>, pool: Handle, location: In<Location>) {
        let pool = resolve(pool)?;
        let location = location.get()?;
        let device = location_device(location)?;
        let set = lock(&pool.access).get(&location).copied();
        flags.put(set.unwrap_or(if device == pool.device { 3 } else { 0 }))
    }
    fn cuMemPoolExportToShareableHandle(_out: Out<usize>, _pool: Handle, _kind: c_uint, _flags: u64) {
        driver()?;
        Err(Status::NOT_SUPPORTED)
    }
    fn cuMemPoolImportFromShareableHandle(_out: Out<Handle>, _shared: usize, _kind: c_uint, _flags: u64) {
        driver()?;
        Err(Status::NOT_SUPPORTED)
    }
    fn cuMemPoolExportPointer(_out: Out<usize>, _address: Address) {
        driver()?;
        Err(Status::NOT_SUPPORTED)
    }
    fn cuMemPoolImportPointer(_out: Out<Address>, _pool: Handle, _shared: In<usize>) {
        driver()?;
        Err(Status::NOT_SUPPORTED)
    }
    fn cuMemGetDefaultMemPool(pool: Out<Handle>, location: In<Location>, _kind: c_uint) {
        let device = location_device(location.get()?)?;
        pool.put(driver()?.device(device as i32)?.default_pool())
    }
    fn cuMemGetMemPool(pool: Out<Handle>, location: In<Location>, _kind: c_uint) {
        let device = location_device(location.get()?)?;
        pool.put(driver()?.device(device as i32)?.pool.load(Ordering::Relaxed))
    }
    fn cuDeviceGetGraphMemAttribute(device: c_int, attribute: c_uint, value: Out<u64>) {
        driver()?.device(device)?;
        if attribute > 3 {
            return Err(Status::INVALID_VALUE);
        }
        value.put(0)
    }
    fn cuDeviceSetGraphMemAttribute(device: c_int, attribute: c_uint, value: In<u64>) {
        driver()?.device(device)?;
        if !matches!(attribute, 1 | 3) || value.get()? != 0 {
            return Err(Status::INVALID_VALUE);
        }
        Ok(())
    }
    fn cuDeviceGraphMemTrim(device: c_int) {
        driver()?.device(device).map(|_| ())
    }
}

per_thread! {
    cuMemAllocAsync_ptsz = cuMemAllocAsync(address: Out<Address>, bytes: usize; stream);
    cuMemAllocFromPoolAsync_ptsz = cuMemAllocFromPoolAsync(
        address: Out<Address>, bytes: usize, pool: Handle; stream);
    cuMemFreeAsync_ptsz = cuMemFreeAsync(address: Address; stream);
}
