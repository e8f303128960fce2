//! What a function that programs call may ask of us: the table of XLA's typed FFI.
//!
//! Errors, scratch memory, tasks and futures are given; what belongs to GPUs, to states between
//! stages or to XLA's own registries is an error that says so.

use std::ffi::CStr;
use std::ffi::CString;
use std::ffi::c_char;
use std::ffi::c_int;
use std::ffi::c_void;
use std::fmt;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;

use crate::capi::border::c_string;
use crate::capi::border::quiet;
use crate::capi::memory;

/// The version of the convention.
const VERSION: (c_int, c_int) = (0, 3);

/// Codes of errors that this library makes.
const RESOURCE_EXHAUSTED: c_int = 8;
const UNIMPLEMENTED: c_int = 12;

/// An error of a function that programs call.
pub struct FfiError {
    message: CString,
    code: c_int,
}

impl FfiError {
    fn new(code: c_int, message: &str) -> *mut Self {
        let message = c_string(message);
        Box::into_raw(Box::new(Self { message, code }))
    }
}

impl fmt::Display for FfiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = match self.code {
            1 => "cancelled",
            3 => "invalid argument",
            4 => "deadline exceeded",
            5 => "not found",
            6 => "already exists",
            7 => "permission denied",
            8 => "resource exhausted",
            9 => "failed precondition",
            10 => "aborted",
            11 => "out of range",
            12 => "unimplemented",
            13 => "internal",
            14 => "unavailable",
            15 => "data loss",
            16 => "unauthenticated",
            _ => "unknown",
        };
        write!(f, "{} ({code})", self.message.to_string_lossy())
    }
}

/// What belongs to one call: scratch memory that has not been given back.
#[derive(Default)]
pub(super) struct Context {
    scratch: Mutex<Vec<usize>>,
}

impl Drop for Context {
    fn drop(&mut self) {
        for block in lock(&self.scratch).drain(..) {
            let block = std::ptr::with_exposed_provenance_mut(block);
            // SAFETY: the block came from the library and is in no other hands.
            unsafe { memory::xla_aot_memory_free(block) };
        }
    }
}

/// The end of a function that goes on in the background.
#[derive(Default)]
struct Future {
    /// Whether it has ended, and with which error.
    end: Mutex<Option<Option<Box<FfiError>>>>,
    bell: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}

/// Waits for the end of a function: what it gave, and its future when it made one.
///
/// # Safety
/// Both came from a function that this library called with its table.
pub(super) unsafe fn finish(error: *mut FfiError, future: *mut c_void) -> Option<Box<FfiError>> {
    if !error.is_null() {
        // SAFETY: errors are boxes that the function gives up.
        return Some(unsafe { Box::from_raw(error) });
    }
    if future.is_null() {
        return None;
    }
    // SAFETY: `future_create` made two of it; this is ours.
    let future = unsafe { Arc::from_raw(future.cast::<Future>().cast_const()) };
    let mut end = lock(&future.end);
    loop {
        match end.take() {
            Some(error) => return error,
            None => end = future.bell.wait(end).unwrap_or_else(|p| p.into_inner()),
        }
    }
}

/// The head of every structure of arguments.
#[repr(C)]
struct Head {
    struct_size: usize,
    extension: *mut c_void,
}

#[repr(C)]
struct ErrorCreate {
    head: Head,
    message: *const c_char,
    code: c_int,
}

#[repr(C)]
struct ErrorMessage {
    head: Head,
    error: *const FfiError,
    message: *const c_char,
}

#[repr(C)]
struct ErrorDestroy {
    head: Head,
    error: *mut FfiError,
}

#[repr(C)]
struct Allocate {
    head: Head,
    context: *const Context,
    size: usize,
    alignment: usize,
    data: *mut c_void,
}

#[repr(C)]
struct Free {
    head: Head,
    context: *const Context,
    size: usize,
    data: *mut c_void,
}

#[repr(C)]
struct Schedule {
    head: Head,
    context: *const Context,
    task: Option<unsafe extern "C" fn(*mut c_void)>,
    data: *mut c_void,
}

#[repr(C)]
struct Threads {
    head: Head,
    context: *const Context,
    threads: *mut i64,
}

#[repr(C)]
struct FutureCreate {
    head: Head,
    future: *mut c_void,
}

#[repr(C)]
struct FutureSet {
    head: Head,
    future: *mut c_void,
    /// Only for the end with an error.
    error: *mut FfiError,
}

type Asked = unsafe extern "C" fn(*mut c_void) -> *mut FfiError;

/// The table.
#[repr(C)]
pub(super) struct Api {
    head: Head,
    version: Version,
    internal: *const c_void,
    error_create: unsafe extern "C" fn(*const ErrorCreate) -> *mut FfiError,
    error_message: unsafe extern "C" fn(*mut ErrorMessage),
    error_destroy: unsafe extern "C" fn(*const ErrorDestroy),
    handler_register: Asked,
    stream_get: Asked,
    type_register: Asked,
    context_get: Asked,
    state_set: Asked,
    state_get: Asked,
    allocate: unsafe extern "C" fn(*mut Allocate) -> *mut FfiError,
    free: unsafe extern "C" fn(*const Free) -> *mut FfiError,
    schedule: unsafe extern "C" fn(*const Schedule) -> *mut FfiError,
    threads: unsafe extern "C" fn(*const Threads) -> *mut FfiError,
    future_create: unsafe extern "C" fn(*mut FutureCreate) -> *mut FfiError,
    future_available: unsafe extern "C" fn(*const FutureSet) -> *mut FfiError,
    future_error: unsafe extern "C" fn(*const FutureSet) -> *mut FfiError,
    run_id: Asked,
    device_ordinal: Asked,
}

#[repr(C)]
struct Version {
    head: Head,
    major: c_int,
    minor: c_int,
}

// SAFETY: the table holds functions and null pointers, and nobody writes to it.
unsafe impl Sync for Api {}

const fn head(struct_size: usize) -> Head {
    Head {
        struct_size,
        extension: null_mut(),
    }
}

static TABLE: Api = Api {
    head: head(size_of::<Api>()),
    version: Version {
        head: head(size_of::<Version>()),
        major: VERSION.0,
        minor: VERSION.1,
    },
    internal: std::ptr::null(),
    error_create,
    error_message,
    error_destroy,
    handler_register,
    stream_get,
    type_register,
    context_get,
    state_set: state,
    state_get: state,
    allocate,
    free,
    schedule,
    threads,
    future_create,
    future_available,
    future_error,
    run_id,
    device_ordinal,
};

/// The table that every call is given.
pub(super) fn table() -> *const Api {
    &raw const TABLE
}

unsafe extern "C" fn error_create(args: *const ErrorCreate) -> *mut FfiError {
    // SAFETY: the convention's structure.
    let (message, code) = unsafe { ((*args).message, (*args).code) };
    let message = match message.is_null() {
        true => c"".into(),
        // SAFETY: text that ends with a zero byte, by the convention.
        false => unsafe { CStr::from_ptr(message) }.to_owned(),
    };
    Box::into_raw(Box::new(FfiError { message, code }))
}

unsafe extern "C" fn error_message(args: *mut ErrorMessage) {
    // SAFETY: the convention's structure, with an error that lives.
    unsafe { (*args).message = (*(*args).error).message.as_ptr() };
}

unsafe extern "C" fn error_destroy(args: *const ErrorDestroy) {
    // SAFETY: the convention's structure, with an error that is given up.
    unsafe { crate::capi::border::free((*args).error) };
}

unsafe extern "C" fn allocate(args: *mut Allocate) -> *mut FfiError {
    // SAFETY: the convention's structure, with the context of a call that runs.
    let args = unsafe { &mut *args };
    let block = memory::zeroed(args.size, args.alignment);
    if block.is_null() {
        let message = format!(
            "there is no memory of {} bytes aligned to {}",
            args.size, args.alignment
        );
        return FfiError::new(RESOURCE_EXHAUSTED, &message);
    }
    // SAFETY: as above.
    let context = unsafe { &*args.context };
    lock(&context.scratch).push(block.expose_provenance());
    args.data = block;
    null_mut()
}

unsafe extern "C" fn free(args: *const Free) -> *mut FfiError {
    // SAFETY: the convention's structure, with the context of a call that runs.
    let (context, data) = unsafe { (&*(*args).context, (*args).data) };
    let mut blocks = lock(&context.scratch);
    if let Some(at) = blocks.iter().position(|&block| block == data.addr()) {
        blocks.swap_remove(at);
        // SAFETY: the block came from `allocate` and is given up.
        unsafe { memory::xla_aot_memory_free(data) };
    }
    null_mut()
}

/// Runs the task at once: the caller is one of the threads that work on the run.
unsafe extern "C" fn schedule(args: *const Schedule) -> *mut FfiError {
    // SAFETY: the convention's structure.
    let (task, data) = unsafe { ((*args).task, (*args).data) };
    if let Some(task) = task {
        // SAFETY: the function says that the task takes that.
        unsafe { task(data) };
    }
    null_mut()
}

unsafe extern "C" fn threads(args: *const Threads) -> *mut FfiError {
    // SAFETY: the convention's structure, which takes a number.
    unsafe { (*args).threads.write(1) };
    null_mut()
}

unsafe extern "C" fn future_create(args: *mut FutureCreate) -> *mut FfiError {
    let future = Arc::new(Future::default());
    // One is for whoever waits, one for whoever ends it.
    let _ = Arc::into_raw(Arc::clone(&future));
    let future = Arc::into_raw(future).cast_mut().cast();
    // SAFETY: the convention's structure.
    unsafe { (*args).future = future };
    null_mut()
}

unsafe extern "C" fn future_available(args: *const FutureSet) -> *mut FfiError {
    // SAFETY: the convention's structure, with a future that is ended once.
    unsafe { end((*args).future, None) };
    null_mut()
}

unsafe extern "C" fn future_error(args: *const FutureSet) -> *mut FfiError {
    // SAFETY: the convention's structure, with a future that is ended once.
    let (future, error) = unsafe { ((*args).future, (*args).error) };
    let error = match error.is_null() {
        true => None,
        // SAFETY: the error is given up.
        false => Some(unsafe { Box::from_raw(error) }),
    };
    // SAFETY: as above.
    unsafe { end(future, error) };
    null_mut()
}

/// # Safety
/// A future of `future_create` that has not ended.
unsafe fn end(future: *mut c_void, error: Option<Box<FfiError>>) {
    // SAFETY: `future_create` made two of it; this is that of whoever ends it.
    let future = unsafe { Arc::from_raw(future.cast::<Future>().cast_const()) };
    *lock(&future.end) = Some(error);
    future.bell.notify_all();
}

macro_rules! not_given {
    ($($name:ident: $what:literal;)*) => {
        $(unsafe extern "C" fn $name(_: *mut c_void) -> *mut FfiError {
            let message = concat!($what, "; xla-aot's loader gives functions none");
            quiet(null_mut(), || FfiError::new(UNIMPLEMENTED, message))
        })*
    };
}

not_given! {
    handler_register: "a registry of handlers was asked for";
    stream_get: "a stream of a GPU was asked for";
    type_register: "a registry of types was asked for";
    context_get: "a context of the caller was asked for";
    state: "a state of another stage was asked for";
    run_id: "the id of the run was asked for";
    device_ordinal: "the number of the device was asked for";
}
