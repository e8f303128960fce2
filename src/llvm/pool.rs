//! Worker threads that survive LLVM's fatal errors.
//!
//! LLVM ends the process on errors it calls fatal, unless a handler is installed; the handler must
//! not return. Ours reports the text to the thread that waits and parks its own thread for good, so
//! LLVM runs on worker threads only, and one fatal error ends the compilation. Results are gathered
//! in order, so the number of threads never shows in the output.
#![allow(unsafe_code, reason = "LLVM takes its handlers as C functions")]

use std::cell::RefCell;
use std::ffi::CStr;
use std::sync::Arc;
use std::sync::Once;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::sync::mpsc;

use inkwell::context::AsContextRef;
use inkwell::context::Context;
use llvm_sys::LLVMDiagnosticSeverity;
use llvm_sys::core::LLVMContextSetDiagnosticHandler;
use llvm_sys::core::LLVMContextSetDiscardValueNames;
use llvm_sys::core::LLVMDisposeMessage;
use llvm_sys::core::LLVMGetDiagInfoDescription;
use llvm_sys::core::LLVMGetDiagInfoSeverity;
use llvm_sys::error_handling::LLVMInstallFatalErrorHandler;
use llvm_sys::prelude::LLVMDiagnosticInfoRef;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;

/// Stack of a worker. LLVM recurses deeply on long chains of instructions.
const STACK_BYTES: usize = 64 << 20;

thread_local! {
    /// Errors that LLVM has reported on this thread since they were last taken.
    static ERRORS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    /// Tells the waiting thread of a fatal error.
    static FATAL: RefCell<Option<Box<dyn Fn(String)>>> = const { RefCell::new(None) };
}

extern "C" fn on_diagnostic(info: LLVMDiagnosticInfoRef, _: *mut libc::c_void) {
    // SAFETY: LLVM hands in a live diagnostic; the description is ours to free.
    unsafe {
        let severity = LLVMGetDiagInfoSeverity(info);
        if matches!(severity, LLVMDiagnosticSeverity::LLVMDSError) {
            let text = LLVMGetDiagInfoDescription(info);
            let owned = CStr::from_ptr(text).to_string_lossy().into_owned();
            LLVMDisposeMessage(text);
            ERRORS.with_borrow_mut(|errors| errors.push(owned));
        }
    }
}

extern "C" fn on_fatal(reason: *const libc::c_char) {
    // SAFETY: LLVM hands in a string that ends in NUL.
    let text = unsafe { CStr::from_ptr(reason) }
        .to_string_lossy()
        .into_owned();
    let known = FATAL.with_borrow(|report| {
        report.as_ref().is_some_and(|report| {
            report(text);
            true
        })
    });
    if known {
        loop {
            std::thread::park();
        }
    }
}

/// A context whose errors are kept for [`take_errors`] instead of ending the process.
pub(super) fn context() -> Context {
    let context = Context::create();
    // SAFETY: the context is alive, and the handler uses no data of ours but a thread-local.
    unsafe {
        LLVMContextSetDiagnosticHandler(
            (&context).as_ctx_ref(),
            Some(on_diagnostic),
            std::ptr::null_mut(),
        );
        LLVMContextSetDiscardValueNames((&context).as_ctx_ref(), 1);
    }
    context
}

/// What LLVM has reported on this thread.
pub(super) fn take_errors() -> Vec<String> {
    ERRORS.with_borrow_mut(std::mem::take)
}

enum Event<T> {
    Done(usize, Result<T>),
    Fatal(String),
}

/// Does pieces of work `0..count` on `jobs` threads; the results are in order. `start` makes what
/// each thread needs.
///
/// # Errors
/// The error of the first piece that fails, or the fatal error that LLVM ended a thread with.
pub(super) fn run<T, S>(
    count: usize,
    jobs: usize,
    start: impl Fn() -> Result<S> + Send + Sync + 'static,
    work: impl Fn(&S, usize) -> Result<T> + Send + Sync + 'static,
) -> Result<Vec<T>>
where
    T: Send + 'static,
    S: 'static,
{
    static INSTALL: Once = Once::new();
    // SAFETY: the handler is a plain function that lives as long as the process.
    INSTALL.call_once(|| unsafe { LLVMInstallFatalErrorHandler(Some(on_fatal)) });
    let next = Arc::new(AtomicUsize::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let (start, work) = (Arc::new(start), Arc::new(work));
    let (sender, receiver) = mpsc::channel();
    for number in 0..jobs.clamp(1, count.max(1)) {
        let (next, stop, sender) = (next.clone(), stop.clone(), sender.clone());
        let (start, work) = (start.clone(), work.clone());
        let spawned = std::thread::Builder::new()
            .name(format!("llvm-{number}"))
            .stack_size(STACK_BYTES)
            .spawn(move || worker(count, &next, &stop, &sender, &*start, &*work));
        spawned.map_err(|e| {
            Diagnostic::error(codes::LLVM, format!("cannot start a compile thread: {e}"))
        })?;
    }
    drop(sender);
    gather(count, &receiver, &stop)
}

fn worker<T: Send + 'static, S>(
    count: usize,
    next: &AtomicUsize,
    stop: &AtomicBool,
    sender: &mpsc::Sender<Event<T>>,
    start: &dyn Fn() -> Result<S>,
    work: &dyn Fn(&S, usize) -> Result<T>,
) {
    let fatal = sender.clone();
    FATAL.set(Some(Box::new(move |text| {
        // The waiting thread may have gone with an error of its own.
        let _ = fatal.send(Event::Fatal(text));
    })));
    let state = start();
    while !stop.load(Ordering::Relaxed) {
        let piece = next.fetch_add(1, Ordering::Relaxed);
        if piece >= count {
            break;
        }
        let result = match &state {
            Ok(state) => work(state, piece),
            Err(error) => Err(error.clone()),
        };
        let failed = result.is_err();
        if sender.send(Event::Done(piece, result)).is_err() || failed {
            break;
        }
    }
    FATAL.set(None);
}

fn gather<T>(
    count: usize,
    receiver: &mpsc::Receiver<Event<T>>,
    stop: &AtomicBool,
) -> Result<Vec<T>> {
    let mut results: Vec<Option<T>> = (0..count).map(|_| None).collect();
    let mut first_error: Option<(usize, Box<Diagnostic>)> = None;
    for event in receiver {
        match event {
            Event::Done(piece, Ok(result)) => results[piece] = Some(result),
            Event::Done(piece, Err(error)) => {
                stop.store(true, Ordering::Relaxed);
                if first_error.as_ref().is_none_or(|(at, _)| piece < *at) {
                    first_error = Some((piece, error));
                }
            }
            Event::Fatal(text) => {
                stop.store(true, Ordering::Relaxed);
                return Err(Diagnostic::internal(
                    codes::LLVM,
                    format!("LLVM gave up: {text}"),
                ));
            }
        }
    }
    if let Some((_, error)) = first_error {
        return Err(error);
    }
    results
        .into_iter()
        .collect::<Option<Vec<T>>>()
        .ok_or_else(|| Diagnostic::internal(codes::LLVM, "a compile thread ended without a result"))
}
