//! Devices: which there are, which is the thread's, and what they can do.

#![allow(unsafe_code, reason = "entry points of a C interface have fixed names")]

use std::ffi::c_char;
use std::ffi::c_int;
use std::ffi::c_uint;

use crate::simulator::driver::abi::In;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::attributes;
use crate::simulator::driver::context::cuCtxEnablePeerAccess;
use crate::simulator::driver::context::cuCtxGetLimit;
use crate::simulator::driver::context::cuCtxGetStreamPriorityRange;
use crate::simulator::driver::context::cuCtxSetLimit;
use crate::simulator::driver::context::cuCtxSynchronize;
use crate::simulator::driver::context::cuDevicePrimaryCtxRelease_v2;
use crate::simulator::driver::context::cuDevicePrimaryCtxReset_v2;
use crate::simulator::driver::device::cuDeviceCanAccessPeer;
use crate::simulator::driver::device::cuDeviceGetByPCIBusId;
use crate::simulator::driver::device::cuDeviceGetPCIBusId;
use crate::simulator::driver::device::cuDriverGetVersion;
use crate::simulator::driver::proc_address;
use crate::simulator::driver::runtime_api::HELD;
use crate::simulator::driver::runtime_api::VERSION;
use crate::simulator::driver::runtime_api::choose;
use crate::simulator::driver::runtime_api::device;
use crate::simulator::driver::runtime_api::forward;
use crate::simulator::driver::runtime_api::held;
use crate::simulator::driver::runtime_api::runtime;
use crate::simulator::driver::state;
use crate::simulator::driver::state::lock;
use crate::simulator::driver::status::Status;

runtime! {
    plain fn cudaRuntimeGetVersion(version: Out<c_int>) {
        version.put(VERSION)
    }
    plain fn cudaDriverGetVersion(version: Out<c_int>) {
        // SAFETY: the caller vouches for the same pointer.
        unsafe { cuDriverGetVersion(version) }.answer()
    }
    ready fn cudaGetDeviceCount(count: Out<c_int>) {
        count.put(state::driver()?.devices.len() as c_int)
    }
    plain fn cudaSetDevice(ordinal: c_int) {
        choose(ordinal)
    }
    plain fn cudaInitDevice(ordinal: c_int, _flags: c_uint, _wanted: c_uint) {
        choose(ordinal)
    }
    ready fn cudaGetDevice(ordinal: Out<c_int>) {
        ordinal.put(device())
    }
    ready fn cudaDeviceGetAttribute(value: Out<c_int>, attribute: c_uint, ordinal: c_int) {
        let driver = state::driver()?;
        value.check()?;
        value.put(attributes::value(driver, driver.device(ordinal)?, attribute)?)
    }
    ready fn cudaDeviceReset() {
        let ordinal = device();
        // SAFETY: no pointers.
        unsafe { cuDevicePrimaryCtxReset_v2(ordinal) }.answer()?;
        if lock(&HELD).remove(&ordinal).is_some() {
            // SAFETY: no pointers.
            unsafe { cuDevicePrimaryCtxRelease_v2(ordinal) }.answer()?;
        }
        Ok(())
    }
    bound fn cudaDeviceEnablePeerAccess(peer: c_int, flags: c_uint) {
        let other = held(peer)?;
        // SAFETY: no pointers.
        unsafe { cuCtxEnablePeerAccess(other, flags) }.answer()
    }
    ready fn cudaGetDriverEntryPoint(
        name: In<c_char>, pointer: Out<usize>, flags: u64, status: Out<c_uint>,
    ) {
        proc_address::search(name, pointer, VERSION, flags, status.cast())
    }
    ready fn cudaGetDriverEntryPointByVersion(
        name: In<c_char>, pointer: Out<usize>, version: c_uint, flags: u64, status: Out<c_uint>,
    ) {
        let version = c_int::try_from(version).map_err(|_| Status::INVALID_VALUE)?;
        proc_address::search(name, pointer, version, flags, status.cast())
    }
}

forward! {
    cudaDeviceSynchronize = cuCtxSynchronize();
    cudaDeviceGetStreamPriorityRange = cuCtxGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>);
    cudaDeviceSetLimit = cuCtxSetLimit(limit: c_uint, value: usize);
    cudaDeviceGetLimit = cuCtxGetLimit(value: Out<usize>, limit: c_uint);
    cudaDeviceCanAccessPeer = cuDeviceCanAccessPeer(can: Out<c_int>, device: c_int, peer: c_int);
    cudaDeviceGetPCIBusId = cuDeviceGetPCIBusId(text: Out<c_char>, length: c_int, device: c_int);
    cudaDeviceGetByPCIBusId = cuDeviceGetByPCIBusId(device: Out<c_int>, text: In<c_char>);
}
