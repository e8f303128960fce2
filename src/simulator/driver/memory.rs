//! Allocating: device, pitched, host, registered and managed memory.

#![allow(unsafe_code, reason = "entry points of a C interface have fixed names")]

use std::ffi::c_int;
use std::ffi::c_uint;
use std::sync::atomic::Ordering;

use crate::simulator::driver::abi::Address;
use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::abi::alias;
use crate::simulator::driver::abi::api;
use crate::simulator::driver::abi::per_thread;
use crate::simulator::driver::capture;
use crate::simulator::driver::context;
use crate::simulator::driver::heap;
use crate::simulator::driver::heap::Use;
use crate::simulator::driver::state::driver;
use crate::simulator::driver::status::Status;
use crate::simulator::driver::stream;
use crate::simulator::driver::types::Location;

/// What the rows of pitched memory are aligned to.
const PITCH: usize = 512;

fn allocate(out: Out<Address>, bytes: usize, purpose: Use, flags: u32) -> Answer {
    let context = context::current()?;
    out.check()?;
    if bytes == 0 {
        return Err(Status::INVALID_VALUE);
    }
    capture::refuse_unsafe()?;
    let driver = driver()?;
    let block = driver
        .heap
        .allocate(driver, &context, bytes as u64, purpose, flags)?;
    out.put(block.base)
}

/// Frees the block at an address, once the device is done with it.
fn free(address: Address, fits: impl Fn(Use) -> bool) -> Answer {
    let context = context::current()?;
    if address == 0 {
        return Ok(());
    }
    let driver = driver()?;
    let block = driver.heap.at(address).ok_or(Status::INVALID_VALUE)?;
    if !fits(block.purpose) {
        return Err(Status::INVALID_VALUE);
    }
    capture::refuse_unsafe()?;
    context.wait(driver)?;
    if let Some(owner) = driver.contexts.find(block.context)
        && owner.handle != context.handle
    {
        // What its kernels left is for its own callers to see.
        let _ = owner.wait(driver);
    }
    driver.heap.free(driver, &block)
}

fn check_location(location: Location) -> Answer {
    match location.kind {
        Location::DEVICE => driver()?.device(location.id).map(|_| ()),
        2..=4 => Ok(()),
        _ => Err(Status::INVALID_VALUE),
    }
}

fn advise(address: Address, count: usize, advice: u32, location: Location) -> Answer {
    managed(address, count)?;
    match advice {
        1 | 2 | 4 => Ok(()),
        3 | 5 | 6 => check_location(location),
        _ => Err(Status::INVALID_VALUE),
    }
}

fn prefetch(address: Address, count: usize, location: Location, stream: Handle) -> Answer {
    let stream = stream::resolve(stream)?;
    check_location(location)?;
    managed(address, count)?;
    if capture::is_capturing(&stream) {
        capture::invalidate(&stream);
        return Err(Status::STREAM_CAPTURE_UNSUPPORTED);
    }
    Ok(())
}

/// A device number of the older calls: -1 is the host.
fn device_or_host(device: c_int) -> Location {
    if device == -1 {
        Location {
            kind: Location::HOST,
            id: 0,
        }
    } else {
        Location {
            kind: Location::DEVICE,
            id: device,
        }
    }
}

/// The value of an attribute of a managed range that nobody advised about.
fn range_attribute(data: Out<c_int>, bytes: usize, attribute: u32) -> Answer {
    data.check()?;
    match attribute {
        // Read mostly: no.
        1 if bytes == 4 => data.put(0),
        // Preferred and last location: none.
        2 | 4 if bytes == 4 => data.put(-2),
        // Accessed by: nobody.
        3 if bytes >= 4 && bytes.is_multiple_of(4) => {
            for index in 0..bytes / 4 {
                data.put_at(index, -2);
            }
            Ok(())
        }
        5 | 7 if bytes == 4 => data.put(0),
        6 | 8 if bytes == 4 => data.put(0),
        _ => Err(Status::INVALID_VALUE),
    }
}

/// Whether a range lies in managed memory.
fn managed(address: Address, count: usize) -> Answer {
    context::current()?;
    let block = driver()?.heap.find(address).ok_or(Status::INVALID_VALUE)?;
    let end = address.checked_add(count as u64);
    let is_within = count > 0 && end.is_some_and(|end| end <= block.end());
    if block.purpose != Use::Managed || !is_within {
        return Err(Status::INVALID_VALUE);
    }
    Ok(())
}

api! {
    fn cuMemAlloc_v2(address: Out<Address>, bytes: usize) {
        allocate(address, bytes, Use::Device, 0)
    }
    fn cuMemAllocPitch_v2(
        address: Out<Address>, pitch: Out<usize>, width: usize, height: usize, element: c_uint,
    ) {
        context::current()?;
        pitch.check()?;
        if width == 0 || height == 0 || !matches!(element, 4 | 8 | 16) {
            return Err(Status::INVALID_VALUE);
        }
        let row = width.checked_next_multiple_of(PITCH).ok_or(Status::INVALID_VALUE)?;
        let bytes = row.checked_mul(height).ok_or(Status::OUT_OF_MEMORY)?;
        allocate(address, bytes, Use::Device, 0)?;
        pitch.put(row)
    }
    fn cuMemFree_v2(address: Address) {
        free(address, |purpose| {
            matches!(purpose, Use::Device | Use::Managed | Use::Pool(_) | Use::Graph)
        })
    }
    fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) {
        let context = context::current()?;
        let device = driver()?.device(context.device as i32)?;
        let used = device.used.load(Ordering::Relaxed);
        free.put_if((device.memory - used.min(device.memory)) as usize);
        total.put_if(device.memory as usize);
        Ok(())
    }
    fn cuMemAllocHost_v2(pointer: Out<Address>, bytes: usize) {
        allocate(pointer, bytes, Use::Host, 2)
    }
    fn cuMemHostAlloc(pointer: Out<Address>, bytes: usize, flags: c_uint) {
        context::current()?;
        if flags & !7 != 0 {
            return Err(Status::INVALID_VALUE);
        }
        // With one address for all, memory is always mapped.
        allocate(pointer, bytes, Use::Host, flags | 2)
    }
    fn cuMemFreeHost(pointer: Address) {
        if pointer == 0 {
            context::current()?;
            return Err(Status::INVALID_VALUE);
        }
        free(pointer, |purpose| purpose == Use::Host)
    }
    fn cuMemHostRegister_v2(pointer: Address, bytes: usize, flags: c_uint) {
        let context = context::current()?;
        if pointer == 0 || bytes == 0 || flags & !0xf != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let driver = driver()?;
        let touched = driver.heap.within(pointer, bytes as u64);
        if touched.iter().any(|block| block.is_host()) {
            return Err(Status::HOST_MEMORY_ALREADY_REGISTERED);
        }
        if !touched.is_empty() || !heap::is_mapped(pointer, bytes as u64) {
            return Err(Status::INVALID_VALUE);
        }
        driver
            .heap
            .adopt(driver, &context, pointer, bytes as u64, Use::Registered, flags | 2)
            .map(|_| ())
    }
    fn cuMemHostUnregister(pointer: Address) {
        let context = context::current()?;
        let driver = driver()?;
        let block = driver.heap.at(pointer);
        let block = block.filter(|block| block.purpose == Use::Registered);
        let block = block.ok_or(Status::HOST_MEMORY_NOT_REGISTERED)?;
        context.wait(driver)?;
        driver.heap.free(driver, &block)
    }
    fn cuMemHostGetDevicePointer_v2(address: Out<Address>, pointer: Address, flags: c_uint) {
        context::current()?;
        address.check()?;
        let block = driver()?.heap.find(pointer).filter(|block| block.is_host());
        if flags != 0 || block.is_none() {
            return Err(Status::INVALID_VALUE);
        }
        address.put(pointer)
    }
    fn cuMemHostGetFlags(flags: Out<c_uint>, pointer: Address) {
        context::current()?;
        let block = driver()?.heap.find(pointer).filter(|block| block.is_host());
        flags.put(block.ok_or(Status::INVALID_VALUE)?.flags)
    }
    fn cuMemAllocManaged(address: Out<Address>, bytes: usize, flags: c_uint) {
        context::current()?;
        if !matches!(flags, 1 | 2) {
            return Err(Status::INVALID_VALUE);
        }
        allocate(address, bytes, Use::Managed, flags)
    }
    fn cuMemAdvise(address: Address, count: usize, advice: c_uint, device: c_int) {
        advise(address, count, advice, device_or_host(device))
    }
    fn cuMemAdvise_v2(address: Address, count: usize, advice: c_uint, location: Location) {
        advise(address, count, advice, location)
    }
    fn cuMemPrefetchAsync(address: Address, count: usize, device: c_int, stream: Handle) {
        prefetch(address, count, device_or_host(device), stream)
    }
    fn cuMemPrefetchAsync_v2(
        address: Address, count: usize, location: Location, flags: c_uint, stream: Handle,
    ) {
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        prefetch(address, count, location, stream)
    }
    fn cuMemRangeGetAttribute(
        data: Out<c_int>, bytes: usize, attribute: c_uint, address: Address, count: usize,
    ) {
        managed(address, count)?;
        range_attribute(data, bytes, attribute)
    }
    fn cuMemRangeGetAttributes(
        data: Out<usize>, sizes: Out<usize>, attributes: Out<c_uint>, number: usize,
        address: Address, count: usize,
    ) {
        managed(address, count)?;
        let places = data.input().cast::<Out<c_int>>().array(number)?;
        let sizes = sizes.input().array(number)?;
        let attributes = attributes.input().array(number)?;
        for ((place, size), attribute) in places.into_iter().zip(sizes).zip(attributes) {
            range_attribute(place, size, attribute)?;
        }
        Ok(())
    }
    fn cuStreamAttachMemAsync(stream: Handle, address: Address, length: usize, flags: c_uint) {
        stream::resolve(stream)?;
        let block = driver()?.heap.find(address).ok_or(Status::INVALID_VALUE)?;
        let whole = length == 0 || length as u64 == block.bytes;
        if block.purpose != Use::Managed || !whole || !matches!(flags, 1 | 2 | 4) {
            return Err(Status::INVALID_VALUE);
        }
        Ok(())
    }
}

alias! {
    cuMemHostRegister = cuMemHostRegister_v2(pointer: Address, bytes: usize, flags: c_uint);
    cuMemAllocHost = cuMemAllocHost_v2(pointer: Out<Address>, bytes: usize);
}

per_thread! {
    cuMemPrefetchAsync_ptsz = cuMemPrefetchAsync(address: Address, count: usize, device: c_int; stream);
    cuMemPrefetchAsync_v2_ptsz = cuMemPrefetchAsync_v2(
        address: Address, count: usize, location: Location, flags: c_uint; stream);
    cuStreamAttachMemAsync_ptsz = cuStreamAttachMemAsync(
        ; stream; address: Address; length: usize; flags: c_uint);
}
