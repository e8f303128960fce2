//! Memory: taking it, giving it back, filling and copying.

#![allow(unsafe_code, reason = "entry points of a C interface have fixed names")]

use std::ffi::c_int;
use std::ffi::c_uchar;
use std::ffi::c_uint;

use crate::simulator::driver::abi::Address;
use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::copy::cuMemcpy;
use crate::simulator::driver::copy::cuMemcpyAsync;
use crate::simulator::driver::fill::cuMemsetD8_v2;
use crate::simulator::driver::fill::cuMemsetD8Async;
use crate::simulator::driver::memory::cuMemAlloc_v2;
use crate::simulator::driver::memory::cuMemAllocHost_v2;
use crate::simulator::driver::memory::cuMemAllocManaged;
use crate::simulator::driver::memory::cuMemFree_v2;
use crate::simulator::driver::memory::cuMemFreeHost;
use crate::simulator::driver::memory::cuMemGetInfo_v2;
use crate::simulator::driver::memory::cuMemHostAlloc;
use crate::simulator::driver::memory::cuMemHostGetDevicePointer_v2;
use crate::simulator::driver::memory::cuMemHostGetFlags;
use crate::simulator::driver::memory::cuMemHostRegister_v2;
use crate::simulator::driver::memory::cuMemHostUnregister;
use crate::simulator::driver::pointer;
use crate::simulator::driver::pool::cuMemAllocAsync;
use crate::simulator::driver::pool::cuMemFreeAsync;
use crate::simulator::driver::runtime_api::errors::INVALID_DIRECTION;
use crate::simulator::driver::runtime_api::forward;
use crate::simulator::driver::runtime_api::runtime;

/// `cudaPointerAttributes`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PointerAttributes {
    /// 0 nothing known, 1 host, 2 device, 3 managed.
    pub(super) kind: c_uint,
    pub(super) device: c_int,
    pub(super) on_device: Address,
    pub(super) on_host: Address,
}

/// Where both ends of a copy lie is known from their addresses; the kind only has to be one.
fn direction(kind: c_uint) -> Answer {
    if kind > 4 {
        return Err(INVALID_DIRECTION);
    }
    Ok(())
}

runtime! {
    bound fn cudaFree(address: Address) {
        if address == 0 {
            return Ok(());
        }
        // SAFETY: no pointers that are followed.
        unsafe { cuMemFree_v2(address) }.answer()
    }
    bound fn cudaFreeHost(pointer: Address) {
        if pointer == 0 {
            return Ok(());
        }
        // SAFETY: no pointers that are followed.
        unsafe { cuMemFreeHost(pointer) }.answer()
    }
    bound fn cudaMalloc(address: Out<Address>, bytes: usize) {
        if bytes == 0 {
            return address.put(0);
        }
        // SAFETY: the caller vouches for the same pointer.
        unsafe { cuMemAlloc_v2(address, bytes) }.answer()
    }
    bound fn cudaMemcpy(target: Address, source: Address, bytes: usize, kind: c_uint) {
        direction(kind)?;
        // SAFETY: the caller vouches for the same addresses.
        unsafe { cuMemcpy(target, source, bytes) }.answer()
    }
    bound fn cudaMemcpyAsync(
        target: Address, source: Address, bytes: usize, kind: c_uint, stream: Handle,
    ) {
        direction(kind)?;
        // SAFETY: the caller vouches for the same addresses.
        unsafe { cuMemcpyAsync(target, source, bytes, stream) }.answer()
    }
    bound fn cudaMemset(address: Address, value: c_int, count: usize) {
        // SAFETY: the caller vouches for the same address.
        unsafe { cuMemsetD8_v2(address, value as c_uchar, count) }.answer()
    }
    bound fn cudaMemsetAsync(address: Address, value: c_int, count: usize, stream: Handle) {
        // SAFETY: the caller vouches for the same address.
        unsafe { cuMemsetD8Async(address, value as c_uchar, count, stream) }.answer()
    }
    bound fn cudaPointerGetAttributes(out: Out<PointerAttributes>, address: Address) {
        out.check()?;
        out.put(match pointer::owner(address)? {
            None => PointerAttributes { device: -2, on_host: address, ..Default::default() },
            Some((kind, device)) => PointerAttributes {
                kind,
                device: device as c_int,
                on_device: address,
                on_host: if kind == 2 { 0 } else { address },
            },
        })
    }
}

forward! {
    cudaMallocHost = cuMemAllocHost_v2(pointer: Out<Address>, bytes: usize);
    cudaHostAlloc = cuMemHostAlloc(pointer: Out<Address>, bytes: usize, flags: c_uint);
    cudaHostRegister = cuMemHostRegister_v2(pointer: Address, bytes: usize, flags: c_uint);
    cudaHostUnregister = cuMemHostUnregister(pointer: Address);
    cudaHostGetDevicePointer = cuMemHostGetDevicePointer_v2(address: Out<Address>, pointer: Address, flags: c_uint);
    cudaHostGetFlags = cuMemHostGetFlags(flags: Out<c_uint>, pointer: Address);
    cudaMallocManaged = cuMemAllocManaged(address: Out<Address>, bytes: usize, flags: c_uint);
    cudaMallocAsync = cuMemAllocAsync(address: Out<Address>, bytes: usize, stream: Handle);
    cudaFreeAsync = cuMemFreeAsync(address: Address, stream: Handle);
    cudaMemGetInfo = cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>);
}
