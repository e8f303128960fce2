//! The functions of a CUDA driver: those of the machine's driver, looked up one by one, so that a
//! driver too old to have one is told by name.
#![allow(
    unsafe_code,
    reason = "turns symbols of the driver's library into functions"
)]

use std::ffi::CStr;
use std::ffi::c_char;
use std::ffi::c_int;
use std::ffi::c_uchar;
use std::ffi::c_uint;
use std::ffi::c_void;
use std::sync::OnceLock;

use cudarc::driver::sys;

use crate::base::Code;
use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
#[cfg(feature = "simulator")]
use crate::simulator;

/// What every function of the driver returns; zero is success. The numbers of newer drivers need
/// not be among those that `sys` knows.
pub(super) type Status = u32;

macro_rules! functions {
    (
        $($name:ident = $symbol:ident($($argument:ty),*);)*
        @newer:
        $($newer:ident = $newer_symbol:ident($($newer_argument:ty),*);)*
    ) => {
        /// The driver's functions.
        pub struct Api {
            #[cfg(feature = "simulator")]
            is_simulated: bool,
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) -> Status,)*
            $(pub(super) $newer: Option<unsafe extern "C" fn($($newer_argument),*) -> Status>,)*
        }

        impl Api {
            /// Looks every function up; the error is the name of the first that is missing.
            fn of_driver() -> std::result::Result<Self, &'static str> {
                // SAFETY: the caller has seen that the library can be opened.
                let library = unsafe { sys::culib() };
                Ok(Self {
                    #[cfg(feature = "simulator")]
                    is_simulated: false,
                    $($name: {
                        let symbol = concat!(stringify!($symbol), "\0").as_bytes();
                        // SAFETY: the driver's header declares the function so.
                        let function = unsafe { library.get(symbol) };
                        *function.map_err(|_| stringify!($symbol))?
                    },)*
                    $($newer: {
                        let symbol = concat!(stringify!($newer_symbol), "\0").as_bytes();
                        // SAFETY: the driver's header declares the function so.
                        unsafe { library.get(symbol) }.ok().map(|function| *function)
                    },)*
                })
            }

            /// The functions of the simulated driver.
            #[cfg(feature = "simulator")]
            fn of_simulator() -> std::result::Result<Self, &'static str> {
                Ok(Self {
                    is_simulated: true,
                    $($name: {
                        let address = simulator::driver::entry_point(stringify!($symbol));
                        let address = address.ok_or(stringify!($symbol))?;
                        // SAFETY: the address is that of a function which takes what the driver's
                        // header says, handles and addresses as numbers of the same width.
                        unsafe {
                            std::mem::transmute::<
                                usize,
                                unsafe extern "C" fn($($argument),*) -> Status,
                            >(address)
                        }
                    },)*
                    $($newer: {
                        let address = simulator::driver::entry_point(stringify!($newer_symbol));
                        address.map(|address| {
                            // SAFETY: as above.
                            unsafe {
                                std::mem::transmute::<
                                    usize,
                                    unsafe extern "C" fn($($newer_argument),*) -> Status,
                                >(address)
                            }
                        })
                    },)*
                })
            }
        }
    };
}

functions! {
    init = cuInit(c_uint);
    driver_version = cuDriverGetVersion(*mut c_int);
    error_name = cuGetErrorName(Status, *mut *const c_char);
    error_string = cuGetErrorString(Status, *mut *const c_char);
    device_count = cuDeviceGetCount(*mut c_int);
    device = cuDeviceGet(*mut c_int, c_int);
    device_name = cuDeviceGetName(*mut c_char, c_int, c_int);
    device_memory = cuDeviceTotalMem_v2(*mut usize, c_int);
    device_attribute = cuDeviceGetAttribute(*mut c_int, sys::CUdevice_attribute, c_int);
    context_retain = cuDevicePrimaryCtxRetain(*mut sys::CUcontext, c_int);
    context_release = cuDevicePrimaryCtxRelease_v2(c_int);
    context_set = cuCtxSetCurrent(sys::CUcontext);
    module_load = cuModuleLoadDataEx(
        *mut sys::CUmodule,
        *const c_void,
        c_uint,
        *mut sys::CUjit_option,
        *mut *mut c_void
    );
    module_unload = cuModuleUnload(sys::CUmodule);
    module_function = cuModuleGetFunction(*mut sys::CUfunction, sys::CUmodule, *const c_char);
    function_set = cuFuncSetAttribute(sys::CUfunction, sys::CUfunction_attribute, c_int);
    allocate = cuMemAlloc_v2(*mut u64, usize);
    free = cuMemFree_v2(u64);
    copy_in = cuMemcpyHtoDAsync_v2(u64, *const c_void, usize, sys::CUstream);
    copy_out = cuMemcpyDtoHAsync_v2(*mut c_void, u64, usize, sys::CUstream);
    copy = cuMemcpyDtoDAsync_v2(u64, u64, usize, sys::CUstream);
    set_words = cuMemsetD32Async(u64, c_uint, usize, sys::CUstream);
    set_bytes = cuMemsetD8Async(u64, c_uchar, usize, sys::CUstream);
    stream_create = cuStreamCreate(*mut sys::CUstream, c_uint);
    stream_destroy = cuStreamDestroy_v2(sys::CUstream);
    stream_wait = cuStreamSynchronize(sys::CUstream);
    launch = cuLaunchKernelEx(
        *const sys::CUlaunchConfig,
        sys::CUfunction,
        *mut *mut c_void,
        *mut *mut c_void
    );
    @newer:
    encode_map = cuTensorMapEncodeTiled(
        *mut sys::CUtensorMap,
        c_uint,
        c_uint,
        *mut c_void,
        *const u64,
        *const u64,
        *const u32,
        *const u32,
        c_uint,
        c_uint,
        c_uint,
        c_uint
    );
}

impl Api {
    /// The driver of this machine, started.
    ///
    /// # Errors
    /// `XA8006` when there is none, when it lacks a function, or when it does not start.
    pub fn driver() -> Result<&'static Self> {
        static DRIVER: OnceLock<Result<Api>> = OnceLock::new();
        let opened = DRIVER.get_or_init(|| {
            // SAFETY: opens the driver's library, whose initialisers are NVIDIA's.
            if !unsafe { sys::is_culib_present() } {
                let message = "this host has no CUDA driver";
                return Err(Diagnostic::error(codes::NO_DEVICE, message).help(
                    "install NVIDIA's driver, or put its `libcuda.so.1` on the library path",
                ));
            }
            let api = Self::of_driver().map_err(|symbol| {
                let message =
                    format!("the CUDA driver lacks `{symbol}`, which came with CUDA 11.8");
                Diagnostic::error(codes::NO_DEVICE, message).help("install a newer driver")
            })?;
            api.start()?;
            Ok(api)
        });
        opened.as_ref().map_err(Clone::clone)
    }

    /// The simulated driver, started, with the devices the request asks for.
    ///
    /// # Errors
    /// `XA8006` when it does not start: there is no target of that name, or the environment asks for
    /// what there is not; and when the process has simulated devices of another kind already.
    #[cfg(feature = "simulator")]
    pub fn simulator(request: &simulator::driver::Request) -> Result<&'static Self> {
        static DRIVER: OnceLock<Result<Api>> = OnceLock::new();
        simulator::driver::ask(request)
            .map_err(|message| Diagnostic::error(codes::NO_DEVICE, message))?;
        let opened = DRIVER.get_or_init(|| {
            let api = Self::of_simulator().map_err(|symbol| {
                let message = format!("the simulated driver lacks `{symbol}`");
                Diagnostic::internal(codes::INTERNAL, message)
            })?;
            api.start()?;
            Ok(api)
        });
        opened.as_ref().map_err(Clone::clone)
    }

    /// Whether the devices are simulated.
    pub fn is_simulated(&self) -> bool {
        #[cfg(feature = "simulator")]
        let is_simulated = self.is_simulated;
        #[cfg(not(feature = "simulator"))]
        let is_simulated = false;
        is_simulated
    }

    fn start(&self) -> Result<()> {
        // SAFETY: takes no pointers.
        let status = unsafe { (self.init)(0) };
        let driver = match self.is_simulated() {
            true => "simulated",
            false => "CUDA",
        };
        self.check(status, codes::NO_DEVICE, || {
            format!("starting the {driver} driver")
        })
    }

    /// Nothing when a call succeeded, else what it was for and what the driver says.
    pub(super) fn check(
        &self,
        status: Status,
        code: Code,
        what: impl FnOnce() -> String,
    ) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        let message = format!("{}: {}", what(), self.describe(status));
        let error = Diagnostic::error(code, message);
        #[cfg(feature = "simulator")]
        if self.is_simulated {
            let said = simulator::driver::take_messages();
            let lines = said.iter().flat_map(|message| message.lines());
            return Err(lines.fold(error, |error, line| error.note(line.trim_end())));
        }
        Err(error)
    }

    /// The driver's name and description of a status.
    fn describe(&self, status: Status) -> String {
        let text = |function: unsafe extern "C" fn(Status, *mut *const c_char) -> Status| {
            let mut text = std::ptr::null();
            // SAFETY: the driver writes the address of a text of its own, or leaves null.
            let found = unsafe { function(status, &raw mut text) } == 0 && !text.is_null();
            found.then(|| {
                // SAFETY: the text ends with a zero and lives as long as the driver.
                let text = unsafe { CStr::from_ptr(text) };
                text.to_string_lossy().into_owned()
            })
        };
        match (text(self.error_name), text(self.error_string)) {
            (Some(name), Some(string)) => format!("{name} ({string})"),
            (Some(name), None) => name,
            _ => format!("the driver's error {status}"),
        }
    }
}
