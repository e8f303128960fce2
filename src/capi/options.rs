//! Options of loading as C sees them.

use std::ffi::c_char;
use std::ptr::null_mut;

use crate::capi::border::free;
use crate::capi::border::given_mut;
use crate::capi::border::guarded;
use crate::capi::border::misuse;
use crate::capi::border::quiet;
use crate::capi::border::text;
use crate::capi::error::Error;
use crate::capi::frame::Handler;
use crate::capi::handler;
use crate::driver::run;
use crate::driver::run::LoadOptions;

/// `xla_aot_options`
#[derive(Default)]
pub struct Options {
    pub(super) load: LoadOptions,
}

/// Options that say nothing.
#[unsafe(no_mangle)]
pub extern "C" fn xla_aot_options_new() -> *mut Options {
    quiet(null_mut(), || Box::into_raw(Box::default()))
}

/// Gives up options.
///
/// # Safety
/// `options` are options of this library, or null; they are used no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_options_free(options: *mut Options) {
    // SAFETY: the caller's promise; options are boxes.
    unsafe { free(options) };
}

/// Where it runs.
///
/// # Safety
/// `options` are options of this library, `device` is text that ends with a zero byte; either may be
/// null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_options_set_device(
    options: *mut Options,
    device: *const c_char,
) -> *mut Error {
    guarded(|| {
        // SAFETY: the caller's promise.
        let options = unsafe { given_mut("options", options)? };
        // SAFETY: the caller's promise.
        let device = unsafe { text("device", device)? };
        let device = device.parse().map_err(|why: String| misuse(why))?;
        run::check_device(&device)?;
        options.load.device = device;
        Ok(())
    })
}

/// Threads that work on a run.
///
/// # Safety
/// `options` are options of this library, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_options_set_threads(
    options: *mut Options,
    threads: usize,
) -> *mut Error {
    guarded(|| {
        // SAFETY: the caller's promise.
        let options = unsafe { given_mut("options", options)? };
        options.load.threads = (threads > 0).then_some(threads);
        Ok(())
    })
}

/// Provides a function for programs.
///
/// # Safety
/// `options` are options of this library, `name` is text that ends with a zero byte; either may be
/// null. The function follows the convention of XLA's typed FFI and may be called by any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_options_add_call(
    options: *mut Options,
    name: *const c_char,
    handler: Option<Handler>,
) -> *mut Error {
    guarded(|| {
        // SAFETY: the caller's promise.
        let options = unsafe { given_mut("options", options)? };
        // SAFETY: the caller's promise.
        let name = unsafe { text("name", name)? };
        let handler = handler.ok_or_else(|| misuse("`handler` is null"))?;
        let calls = &mut options.load.custom_calls;
        // SAFETY: whoever registers a function promises that it follows the convention.
        calls.register(name, move |call| unsafe { handler::call(handler, call) });
        Ok(())
    })
}
