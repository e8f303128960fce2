//! The CUDA driver's interface over simulated devices: the `cu*` functions as a C library has them.
//!
//! A program that opens this library in the place of the driver finds devices as the target's
//! description says, runs its PTX on them, and reads what the checks found on stderr. The settings
//! come from the environment; see `settings.rs`.
//!
//! The same library answers as the CUDA runtime and as the management library, for programs that
//! open it as `libcudart.so.12` and `libnvidia-ml.so.1`: links to one file are one library.
//!
//! What holds everywhere:
//! - Handles are numbers that are looked up, never pointers that are followed, so a stale one is an
//!   error.
//! - A call that needs a context fails, in this order: not initialised, no context, a destroyed one,
//!   one that a kernel spoilt; then the arguments are looked at.
//! - A fault of a kernel stays in its context, and every later call there gives it back.
//! - Streams keep their order; when their work runs is theirs to choose, see `stream.rs`.
//! - A conditional's handle in a graph is the address of its value, 32 bits wide.

mod abi;
mod attributes;
mod capture;
mod context;
mod copy;
mod device;
mod event;
mod fill;
mod graph;
mod graph_exec;
mod graph_nodes;
mod graph_query;
mod heap;
mod image;
mod jit;
mod launch;
mod library;
mod link;
mod memory;
mod module;
mod nvml;
mod occupancy;
mod pointer;
mod pool;
mod proc_address;
mod report;
mod runtime_api;
mod settings;
mod state;
mod status;
mod stream;
mod stream_api;
mod tensor_map;
mod transfer;
mod types;
mod unsupported;
mod virtual_memory;
mod work;

#[cfg(test)]
mod tests;

pub use report::Records;
pub use settings::Request;
pub use status::Status;

/// Says what this program asks of the simulator, before it calls `cuInit`. From then on the program
/// tells itself what launches find and why calls fail: see [`take_records`] and [`take_messages`].
///
/// # Errors
/// A sentence, when an earlier request was for other devices: a process has those of the first.
pub fn ask(request: &Request) -> Result<(), String> {
    state::ask(request)
}

/// What launches on a stream found and counted since the last call.
pub fn take_records(stream: usize) -> Records {
    let driver = state::driver();
    driver.map_or_else(|_| Records::default(), |driver| driver.journal.take(stream))
}

/// What the simulator has to say about calls of this thread that failed since the last time.
pub fn take_messages() -> Vec<String> {
    state::take_messages()
}

/// Bytes of a device's memory that are allocated now.
pub fn used_memory(device: u32) -> u64 {
    let driver = state::driver();
    let used = driver.map(|driver| {
        let device = driver.devices.get(device as usize);
        device.map_or(0, |device| {
            device.used.load(std::sync::atomic::Ordering::Relaxed)
        })
    });
    used.unwrap_or(0)
}

/// The address of an entry point, a function of the C interface that its name says.
pub fn entry_point(name: &str) -> Option<usize> {
    proc_address::table().get(name).copied()
}

/// The names of every entry point, sorted.
pub fn entry_points() -> Vec<&'static str> {
    proc_address::table().keys().copied().collect()
}
