//! Crossing the border: pointers to references, panics to errors, text to C.

use std::ffi::CStr;
use std::ffi::CString;
use std::ffi::c_char;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::ptr::null_mut;

use crate::base::Diagnostic;
use crate::base::codes;
use crate::capi::error::Error;
use crate::capi::error::Failure;

/// Does the work of a function that can fail. A panic ends here.
pub(super) fn guarded(work: impl FnOnce() -> Result<(), Failure>) -> *mut Error {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => null_mut(),
        Ok(Err(failure)) => Error::of(failure),
        Err(panic) => Error::of(panicked(panic.as_ref()).into()),
    }
}

/// Does the work of a function that cannot fail; after a panic it gives the value for that.
pub(super) fn quiet<T>(otherwise: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(otherwise)
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> Box<Diagnostic> {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let message = format!(
        "the library panicked: {}",
        text.unwrap_or("it says nothing")
    );
    Diagnostic::internal(codes::INTERNAL, message)
}

/// For a call that the header forbids.
pub(super) fn misuse(message: impl Into<String>) -> Failure {
    Diagnostic::error(codes::LIBRARY_CALL, message)
        .help("xla_aot.h says how the function is called")
        .into()
}

/// Text for C; what follows a zero byte is cut off.
pub(super) fn c_string(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

/// # Safety
/// The pointer is null or points to a value that lives, and is not written, as long as the reference.
pub(super) unsafe fn given<'a, T>(what: &str, pointer: *const T) -> Result<&'a T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or_else(|| misuse(format!("`{what}` is null")))
}

/// # Safety
/// As [`given`], and nothing else uses the value.
pub(super) unsafe fn given_mut<'a, T>(what: &str, pointer: *mut T) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_mut() }.ok_or_else(|| misuse(format!("`{what}` is null")))
}

/// # Safety
/// The pointer is null or points to that many values, as in [`given`].
pub(super) unsafe fn list<'a, T>(
    what: &str,
    pointer: *const T,
    count: usize,
) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(misuse(format!("`{what}` is null, wanted {count} entries")));
    }
    let bytes = count.checked_mul(size_of::<T>());
    if bytes.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
        return Err(misuse(format!(
            "`{what}` has {count} entries, more than memory can hold"
        )));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// # Safety
/// The pointer is null or points to text that ends with a zero byte, as in [`given`].
pub(super) unsafe fn text<'a>(what: &str, pointer: *const c_char) -> Result<&'a str, Failure> {
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(given(what, pointer)?) };
    text.to_str()
        .map_err(|_| misuse(format!("`{what}` is not UTF-8")))
}

/// Checks the size of a structure that the caller made against the first that was ever declared.
pub(super) fn check_size(what: &str, got: usize, least: usize) -> Result<(), Failure> {
    match got >= least {
        true => Ok(()),
        false => Err(misuse(format!(
            "`struct_size` of `{what}` is {got}, wanted {least}"
        ))),
    }
}

/// Gives up a handle.
///
/// # Safety
/// The pointer is null or came from `Box::into_raw`, and is given up once.
pub(super) unsafe fn free<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: the caller's promise.
        quiet((), || drop(unsafe { Box::from_raw(pointer) }));
    }
}
