//! Memory that the library lends to its callers.

use std::ffi::c_void;
use std::ptr::null_mut;

/// Alignment of every buffer, in bytes.
pub(super) const ALIGNMENT: usize = 64;

/// Zeroed memory, or null. Some even for no bytes.
pub(super) fn zeroed(bytes: usize, alignment: usize) -> *mut c_void {
    let alignment = alignment.max(size_of::<usize>());
    if !alignment.is_power_of_two() {
        return null_mut();
    }
    let mut memory = null_mut();
    // SAFETY: the alignment is a power of two and no smaller than a pointer.
    let status = unsafe { libc::posix_memalign(&raw mut memory, alignment, bytes.max(1)) };
    if status != 0 {
        return null_mut();
    }
    // SAFETY: there are that many bytes.
    unsafe { std::ptr::write_bytes(memory.cast::<u8>(), 0, bytes) };
    memory
}

/// Zeroed and aligned memory.
#[unsafe(no_mangle)]
pub extern "C" fn xla_aot_memory_new(bytes: usize) -> *mut c_void {
    zeroed(bytes, ALIGNMENT)
}

/// Gives up memory.
///
/// # Safety
/// `memory` came from this library, or is null; it is used no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_memory_free(memory: *mut c_void) {
    // SAFETY: the caller's promise; `zeroed` asked the C library for it.
    unsafe { libc::free(memory) };
}
