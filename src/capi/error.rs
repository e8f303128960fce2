//! Errors as C sees them.

use std::ffi::CString;
use std::ffi::c_char;

use crate::base::Blame;
use crate::base::Diagnostic;
use crate::base::codes;
use crate::capi::border::c_string;
use crate::capi::border::free;

/// Why a function failed.
pub(super) enum Failure {
    /// A finding.
    Diagnostic(Box<Diagnostic>),
    /// A file that cannot be read.
    File(String),
}

impl From<Box<Diagnostic>> for Failure {
    fn from(diagnostic: Box<Diagnostic>) -> Self {
        Self::Diagnostic(diagnostic)
    }
}

/// `xla_aot_error`
pub struct Error {
    kind: i32,
    code: i32,
    message: CString,
    help: CString,
    text: CString,
}

const INPUT: i32 = 1;
const USAGE: i32 = 2;
const BUNDLE: i32 = 3;
const INTERNAL: i32 = 70;

impl Error {
    /// A handle that the caller frees.
    pub(super) fn of(failure: Failure) -> *mut Self {
        Box::into_raw(Box::new(match failure {
            Failure::Diagnostic(diagnostic) => Self::of_diagnostic(&diagnostic),
            Failure::File(message) => Self {
                kind: INPUT,
                code: 0,
                message: c_string(&message),
                help: CString::default(),
                text: c_string(&format!("error: {message}")),
            },
        }))
    }

    fn of_diagnostic(diagnostic: &Diagnostic) -> Self {
        let kind = match diagnostic.blame() {
            _ if diagnostic.code == codes::LIBRARY_CALL => USAGE,
            Blame::Input | Blame::Results => INPUT,
            Blame::Bundle => BUNDLE,
            Blame::Program => INTERNAL,
        };
        Self {
            kind,
            code: diagnostic.code.0.into(),
            message: c_string(&diagnostic.message),
            help: c_string(diagnostic.help.as_deref().unwrap_or_default()),
            text: c_string(&diagnostic.to_string()),
        }
    }
}

/// Who has to act.
///
/// # Safety
/// `error` is an error of this library, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_error_kind(error: *const Error) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { error.as_ref() }.map_or(0, |error| error.kind)
}

/// The number of the diagnostic.
///
/// # Safety
/// As [`xla_aot_error_kind`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_error_code(error: *const Error) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { error.as_ref() }.map_or(0, |error| error.code)
}

/// What was found and what was wanted.
///
/// # Safety
/// As [`xla_aot_error_kind`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_error_message(error: *const Error) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { error.as_ref() }.map_or(c"".as_ptr(), |error| error.message.as_ptr())
}

/// What to do.
///
/// # Safety
/// As [`xla_aot_error_kind`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_error_help(error: *const Error) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { error.as_ref() }.map_or(c"".as_ptr(), |error| error.help.as_ptr())
}

/// All of it.
///
/// # Safety
/// As [`xla_aot_error_kind`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_error_text(error: *const Error) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { error.as_ref() }.map_or(c"".as_ptr(), |error| error.text.as_ptr())
}

/// Gives up an error.
///
/// # Safety
/// As [`xla_aot_error_kind`]; it is used no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xla_aot_error_free(error: *mut Error) {
    // SAFETY: the caller's promise; errors are boxes.
    unsafe { free(error) };
}
