//! The C library: what `xla_aot.h` declares.
//!
//! Every function checks its pointers, catches panics and hands errors out as handles; nothing is
//! kept in the process. `frame` and `host_api` are the calling convention of XLA's typed FFI, whose
//! facts are in `xla_aot_ffi.h`.
#![allow(
    unsafe_code,
    reason = "takes and gives pointers across the border to C"
)]

mod border;
mod bundle;
mod error;
mod frame;
mod handler;
mod host_api;
mod memory;
mod options;
mod program;

use std::ffi::CStr;
use std::ffi::c_char;

/// Number of the interface, as in the header.
const ABI: u32 = 1;

/// The number of the interface.
#[unsafe(no_mangle)]
pub extern "C" fn xla_aot_abi() -> u32 {
    ABI
}

/// The version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn xla_aot_version() -> *const c_char {
    let text = concat!(env!("CARGO_PKG_VERSION"), "\0");
    CStr::from_bytes_with_nul(text.as_bytes()).map_or(c"".as_ptr(), CStr::as_ptr)
}

/// The devices that the library was built for, separated by commas.
#[unsafe(no_mangle)]
pub extern "C" fn xla_aot_devices() -> *const c_char {
    let (cpu, cuda) = (cfg!(feature = "cpu"), cfg!(feature = "cuda"));
    let text = match (cpu, cuda, cfg!(feature = "simulator")) {
        (true, true, true) => c"cpu,cuda,simulator",
        (true, true, false) => c"cpu,cuda",
        (true, false, _) => c"cpu",
        (false, _, true) => c"cuda,simulator",
        (false, _, false) => c"cuda",
    };
    text.as_ptr()
}

#[cfg(test)]
mod tests;
