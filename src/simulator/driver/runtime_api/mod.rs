//! The CUDA runtime's interface (`cuda*`) over the driver's: what a program finds when it opens this
//! library as `libcudart.so.12`.
//!
//! - Every thread has a current device and a last error. The first call that needs a context makes
//!   the device's primary context current, unless the thread has a context already.
//! - The runtime's codes are the driver's numbers, with a few of its own beside; see `errors.rs`.
//! - Kernels that a program carries are registered when it is loaded, see `registry.rs`; they are
//!   looked at when one is first used, so machine code that cannot run here costs nothing until then.

#![allow(unsafe_code, reason = "entry points call entry points of the driver")]

mod device;
mod errors;
mod graph;
mod launch;
mod memory;
mod registry;
mod stream;

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Mutex;

use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::abi::enter;
use crate::simulator::driver::context;
use crate::simulator::driver::state;
use crate::simulator::driver::state::lock;
use crate::simulator::driver::status::Status;

/// The version of the runtime: 12.9.
const VERSION: c_int = 12_090;

thread_local! {
    static DEVICE: Cell<c_int> = const { Cell::new(0) };
    static LAST: Cell<Status> = const { Cell::new(Status::SUCCESS) };
}

/// The primary contexts that the runtime holds, by device.
static HELD: Mutex<BTreeMap<c_int, Handle>> = Mutex::new(BTreeMap::new());

/// Makes the driver ready.
fn ready() -> Answer {
    state::initialize()
}

/// A device's primary context, which the runtime keeps.
fn held(device: c_int) -> Answer<Handle> {
    let driver = state::driver()?;
    driver.device(device)?;
    let mut held = lock(&HELD);
    if let Some(&handle) = held.get(&device) {
        return Ok(handle);
    }
    let handle = context::retain(driver, device)?;
    held.insert(device, handle);
    Ok(handle)
}

/// Makes a device's primary context current.
fn choose(device: c_int) -> Answer {
    ready()?;
    let handle = held(device)?;
    // SAFETY: no pointers.
    unsafe { context::cuCtxSetCurrent(handle) }.answer()?;
    DEVICE.set(device);
    Ok(())
}

/// The thread's device: its context's, or the one that was chosen.
fn device() -> c_int {
    context::current_any().map_or_else(|_| DEVICE.get(), |context| context.device as c_int)
}

/// What a call that needs a context starts with.
fn bind() -> Answer {
    ready()?;
    match context::current_any() {
        Err(Status::INVALID_CONTEXT) => choose(DEVICE.get()),
        Err(status) => Err(status),
        Ok(context) => {
            // The driver answers for its health.
            DEVICE.set(context.device as c_int);
            Ok(())
        }
    }
}

/// The last error of this thread; forgotten afterwards if `reset`.
fn last(reset: bool) -> Status {
    let status = LAST.get();
    if reset {
        LAST.set(Status::SUCCESS);
    }
    status
}

/// Runs an entry point's body and keeps its error.
fn call(name: &str, body: impl FnOnce() -> Answer) -> Status {
    let status = enter(name, body);
    if status != Status::SUCCESS {
        LAST.set(status);
    }
    status
}

/// Declares entry points of the runtime; `bound` ones have a context when their bodies begin.
macro_rules! runtime {
    ($($(#[$meta:meta])* $kind:ident fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            $(#[$meta])*
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $ty),*) -> $crate::simulator::driver::status::Status {
                $crate::simulator::driver::runtime_api::call(
                    stringify!($name),
                    || -> $crate::simulator::driver::abi::Answer {
                        $crate::simulator::driver::runtime_api::runtime!(@start $kind);
                        $body
                    },
                )
            }
        )*
    };
    (@start bound) => { $crate::simulator::driver::runtime_api::bind()? };
    (@start ready) => { $crate::simulator::driver::runtime_api::ready()? };
    (@start plain) => {};
}

/// Declares entry points that hand their arguments to a function of the driver.
macro_rules! forward {
    ($($name:ident = $target:ident($($arg:ident: $ty:ty),* $(,)?);)*) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $ty),*) -> $crate::simulator::driver::status::Status {
                $crate::simulator::driver::runtime_api::call(
                    stringify!($name),
                    || -> $crate::simulator::driver::abi::Answer {
                        $crate::simulator::driver::runtime_api::bind()?;
                        // SAFETY: the caller vouches for the same pointers.
                        unsafe { $target($($arg),*) }.answer()
                    },
                )
            }
        )*
    };
}

use forward;
use runtime;
