//! The runtime's codes, their names and texts.

#![allow(unsafe_code, reason = "entry points of a C interface have fixed names")]

use std::collections::BTreeMap;
use std::ffi::CString;
use std::ffi::c_char;
use std::sync::OnceLock;

use crate::simulator::driver::runtime_api::last;
use crate::simulator::driver::status::Status;

/// `cudaErrorInvalidConfiguration`: a grid or a block that the device cannot have.
pub(super) const INVALID_CONFIGURATION: Status = Status(9);
/// `cudaErrorInvalidSymbol`: no variable of that address was registered.
pub(super) const INVALID_SYMBOL: Status = Status(13);
/// `cudaErrorInvalidMemcpyDirection`
pub(super) const INVALID_DIRECTION: Status = Status(21);
/// `cudaErrorMissingConfiguration`: a launch without a grid.
pub(super) const MISSING_CONFIGURATION: Status = Status(52);
/// `cudaErrorInvalidDeviceFunction`: no function of that address was registered.
pub(super) const INVALID_FUNCTION: Status = Status(98);

/// Codes that the driver has not, with their texts.
const OWN: &[(u32, &str, &str)] = &[
    (
        9,
        "cudaErrorInvalidConfiguration",
        "invalid configuration argument",
    ),
    (12, "cudaErrorInvalidPitchValue", "invalid pitch argument"),
    (13, "cudaErrorInvalidSymbol", "invalid device symbol"),
    (
        21,
        "cudaErrorInvalidMemcpyDirection",
        "invalid copy direction for memcpy",
    ),
    (
        35,
        "cudaErrorInsufficientDriver",
        "CUDA driver version is insufficient for CUDA runtime version",
    ),
    (
        52,
        "cudaErrorMissingConfiguration",
        "missing a launch configuration",
    ),
    (
        98,
        "cudaErrorInvalidDeviceFunction",
        "invalid device function",
    ),
];

/// The runtime's names of the driver's codes, where they are other than the driver's words written
/// in one.
const RENAMED: &[(u32, &str)] = &[
    (0, "cudaSuccess"),
    (2, "cudaErrorMemoryAllocation"),
    (3, "cudaErrorInitializationError"),
    (4, "cudaErrorCudartUnloading"),
    (46, "cudaErrorDevicesUnavailable"),
    (200, "cudaErrorInvalidKernelImage"),
    (201, "cudaErrorDeviceUninitialized"),
    (205, "cudaErrorMapBufferObjectFailed"),
    (206, "cudaErrorUnmapBufferObjectFailed"),
    (209, "cudaErrorNoKernelImageForDevice"),
    (214, "cudaErrorECCUncorrectable"),
    (216, "cudaErrorDeviceAlreadyInUse"),
    (225, "cudaErrorUnsupportedDevSideSync"),
    (400, "cudaErrorInvalidResourceHandle"),
    (500, "cudaErrorSymbolNotFound"),
    (708, "cudaErrorSetOnActiveProcess"),
    (719, "cudaErrorLaunchFailure"),
];

/// `CUDA_ERROR_NO_DEVICE` as `cudaErrorNoDevice`.
fn in_one(name: &str) -> String {
    let mut text = "cudaError".to_owned();
    for word in name.trim_start_matches("CUDA_ERROR_").split('_') {
        let (first, rest) = word.split_at(word.len().min(1));
        text.push_str(first);
        text.push_str(&rest.to_ascii_lowercase());
    }
    text
}

/// Name and text of a code, with their ends.
fn texts(status: Status) -> &'static (CString, CString) {
    static TEXTS: OnceLock<BTreeMap<u32, (CString, CString)>> = OnceLock::new();
    static NOTHING: OnceLock<(CString, CString)> = OnceLock::new();
    let pair = |name: &str, text: &str| {
        (
            CString::new(name).unwrap_or_default(),
            CString::new(text).unwrap_or_default(),
        )
    };
    let all = TEXTS.get_or_init(|| {
        let mut all = BTreeMap::new();
        for (number, name, text) in Status::all() {
            let renamed = RENAMED.iter().find(|row| row.0 == number);
            let name = renamed.map_or_else(|| in_one(name), |row| row.1.to_owned());
            all.insert(number, pair(&name, text));
        }
        for (number, name, text) in OWN {
            all.insert(*number, pair(name, text));
        }
        all
    });
    all.get(&status.0).unwrap_or_else(|| {
        NOTHING.get_or_init(|| pair("unrecognized error code", "unrecognized error code"))
    })
}

/// The name of a code.
#[unsafe(no_mangle)]
pub extern "C" fn cudaGetErrorName(error: Status) -> *const c_char {
    texts(error).0.as_ptr()
}

/// What a code means.
#[unsafe(no_mangle)]
pub extern "C" fn cudaGetErrorString(error: Status) -> *const c_char {
    texts(error).1.as_ptr()
}

/// The last error of this thread, which is forgotten.
#[unsafe(no_mangle)]
pub extern "C" fn cudaGetLastError() -> Status {
    last(true)
}

/// The last error of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn cudaPeekAtLastError() -> Status {
    last(false)
}
