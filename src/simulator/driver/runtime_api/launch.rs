//! Kernels of the program itself: what they need, and launching them.

#![allow(
    unsafe_code,
    non_snake_case,
    reason = "entry points of a C interface have fixed names"
)]

use std::cell::RefCell;
use std::ffi::c_int;
use std::ffi::c_uint;

use crate::simulator::driver::abi::Address;
use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::abi::In;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::launch::cuLaunchCooperativeKernel;
use crate::simulator::driver::launch::cuLaunchKernel;
use crate::simulator::driver::launch::cuLaunchKernelEx;
use crate::simulator::driver::library::cuKernelGetFunction;
use crate::simulator::driver::module::cuFuncGetAttribute;
use crate::simulator::driver::module::cuFuncSetAttribute;
use crate::simulator::driver::occupancy::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags;
use crate::simulator::driver::runtime_api::errors::INVALID_CONFIGURATION;
use crate::simulator::driver::runtime_api::errors::MISSING_CONFIGURATION;
use crate::simulator::driver::runtime_api::registry;
use crate::simulator::driver::runtime_api::runtime;
use crate::simulator::driver::status::Status;
use crate::simulator::driver::types::LaunchConfig;

/// `dim3`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Dim3 {
    pub(super) x: c_uint,
    pub(super) y: c_uint,
    pub(super) z: c_uint,
}

/// `cudaFuncAttributes`
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct FunctionAttributes {
    pub(super) shared: usize,
    pub(super) constant: usize,
    pub(super) local: usize,
    pub(super) threads: c_int,
    pub(super) registers: c_int,
    pub(super) ptx_version: c_int,
    pub(super) binary_version: c_int,
    pub(super) cache_mode: c_int,
    pub(super) dynamic: c_int,
    pub(super) carveout: c_int,
    pub(super) cluster_must_be_set: c_int,
    pub(super) cluster: [c_int; 3],
    pub(super) policy: c_int,
    pub(super) non_portable: c_int,
    pub(super) reserved: [c_int; 16],
}

/// What stands between the chevrons of a launch.
#[derive(Clone, Copy)]
struct Chevrons {
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: Handle,
}

thread_local! {
    static CHEVRONS: RefCell<Vec<Chevrons>> = const { RefCell::new(Vec::new()) };
}

/// The function of a registered kernel in the current context.
fn function(host: usize) -> Answer<Handle> {
    let kernel = registry::kernel(host)?;
    let mut function = 0;
    // SAFETY: the pointer is to a variable here.
    unsafe { cuKernelGetFunction(Out::to(&mut function), kernel) }.answer()?;
    Ok(function)
}

/// A launch that cannot be is the fault of its grid and block.
fn configuration(status: Status) -> Status {
    match status {
        Status::INVALID_VALUE => INVALID_CONFIGURATION,
        other => other,
    }
}

fn shared_bytes(bytes: usize) -> Answer<c_uint> {
    c_uint::try_from(bytes).map_err(|_| INVALID_CONFIGURATION)
}

runtime! {
    bound fn cudaLaunchKernel(
        host: usize, grid: Dim3, block: Dim3, params: usize, shared: usize, stream: Handle,
    ) {
        let (kernel, shared) = (registry::kernel(host)?, shared_bytes(shared)?);
        // SAFETY: the caller vouches for the parameters.
        unsafe {
            cuLaunchKernel(
                kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream, params, 0,
            )
        }
        .answer()
        .map_err(configuration)
    }
    bound fn cudaLaunchCooperativeKernel(
        host: usize, grid: Dim3, block: Dim3, params: usize, shared: usize, stream: Handle,
    ) {
        let (kernel, shared) = (registry::kernel(host)?, shared_bytes(shared)?);
        // SAFETY: the caller vouches for the parameters.
        unsafe {
            cuLaunchCooperativeKernel(
                kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream, params,
            )
        }
        .answer()
        .map_err(configuration)
    }
    // The structure lies as the driver's does; its shared bytes are wider, into the driver's padding.
    bound fn cudaLaunchKernelExC(config: In<LaunchConfig>, host: usize, params: usize) {
        let kernel = registry::kernel(host)?;
        shared_bytes(config.byte_add(24).cast::<usize>().get()?)?;
        // SAFETY: the caller vouches for the structure and the parameters.
        unsafe { cuLaunchKernelEx(config, kernel, params, 0) }
            .answer()
            .map_err(configuration)
    }
    bound fn cudaGetFuncBySymbol(out: Out<Handle>, host: usize) {
        out.check()?;
        out.put(function(host)?)
    }
    bound fn cudaGetKernel(out: Out<Handle>, host: usize) {
        out.check()?;
        out.put(registry::kernel(host)?)
    }
    bound fn cudaGetSymbolAddress(address: Out<Address>, host: usize) {
        address.check()?;
        address.put(registry::variable(host)?.0)
    }
    bound fn cudaGetSymbolSize(bytes: Out<usize>, host: usize) {
        bytes.check()?;
        bytes.put(registry::variable(host)?.1)
    }
    bound fn cudaFuncGetAttributes(out: Out<FunctionAttributes>, host: usize) {
        out.check()?;
        let function = function(host)?;
        let value = |attribute: c_uint| {
            let mut value = 0;
            // SAFETY: the pointer is to a variable here.
            unsafe { cuFuncGetAttribute(Out::to(&mut value), attribute, function) }.answer()?;
            Ok::<c_int, Status>(value)
        };
        out.put(FunctionAttributes {
            threads: value(0)?,
            shared: value(1)? as usize,
            constant: value(2)? as usize,
            local: value(3)? as usize,
            registers: value(4)?,
            ptx_version: value(5)?,
            binary_version: value(6)?,
            cache_mode: value(7)?,
            dynamic: value(8)?,
            carveout: value(9)?,
            cluster_must_be_set: value(10)?,
            cluster: [value(11)?, value(12)?, value(13)?],
            non_portable: value(14)?,
            policy: value(15)?,
            reserved: [0; 16],
        })
    }
    bound fn cudaFuncSetAttribute(host: usize, attribute: c_uint, value: c_int) {
        let function = function(host)?;
        // SAFETY: no pointers.
        unsafe { cuFuncSetAttribute(function, attribute, value) }.answer()
    }
    bound fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        count: Out<c_int>, host: usize, threads: c_int, dynamic: usize,
    ) {
        let function = function(host)?;
        // SAFETY: the caller vouches for the same pointer.
        unsafe {
            cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count, function, threads, dynamic, 0)
        }
        .answer()
    }
    bound fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        count: Out<c_int>, host: usize, threads: c_int, dynamic: usize, flags: c_uint,
    ) {
        let function = function(host)?;
        // SAFETY: the caller vouches for the same pointer.
        unsafe {
            cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
                count, function, threads, dynamic, flags,
            )
        }
        .answer()
    }
    plain fn __cudaPushCallConfiguration(grid: Dim3, block: Dim3, shared: usize, stream: Handle) {
        let chevrons = Chevrons { grid, block, shared, stream };
        CHEVRONS.with_borrow_mut(|stack| stack.push(chevrons));
        Ok(())
    }
    plain fn __cudaPopCallConfiguration(
        grid: Out<Dim3>, block: Out<Dim3>, shared: Out<usize>, stream: Out<Handle>,
    ) {
        let chevrons = CHEVRONS.with_borrow_mut(Vec::pop).ok_or(MISSING_CONFIGURATION)?;
        grid.put_if(chevrons.grid);
        block.put_if(chevrons.block);
        shared.put_if(chevrons.shared);
        stream.put_if(chevrons.stream);
        Ok(())
    }
}
