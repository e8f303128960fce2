//! A CUDA device: its context, its memory, its stream, and the images loaded on it.
#![allow(unsafe_code, reason = "calls the driver")]

use std::ffi::CString;
use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::sys;
use serde_json::Value;

use crate::base::ByteSize;
use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::runtime::cuda::api::Api;
use crate::runtime::cuda::host;
use crate::runtime::loaded::no_such_device;
#[cfg(feature = "simulator")]
use crate::simulator;
use crate::target::HostGpu;

/// Bytes of the messages that the driver's compiler may write.
const LOG_BYTES: usize = 16 << 10;

/// A device with its primary context. All calls bind the context to the calling thread first, so a
/// device may be used from any thread.
pub struct Device {
    pub(super) api: &'static Api,
    ordinal: i32,
    context: sys::CUcontext,
    info: HostGpu,
}

// SAFETY: a context may be used from any thread that has made it current.
unsafe impl Send for Device {}
// SAFETY: the driver's calls may be made from several threads at once.
unsafe impl Sync for Device {}

impl Device {
    /// Opens a device by its number in the driver's order.
    ///
    /// # Errors
    /// `XA8006` when there is no such device, or when its context cannot be made.
    pub fn open(api: &'static Api, ordinal: u32) -> Result<Arc<Self>> {
        let devices = host::devices(api);
        let info = usize::try_from(ordinal).ok().and_then(|i| devices.get(i));
        let Some(info) = info else {
            return Err(no_such_device(ordinal, devices.len()));
        };
        let ordinal = ordinal.cast_signed();
        let mut device = 0;
        // SAFETY: the driver writes one number.
        let status = unsafe { (api.device)(&raw mut device, ordinal) };
        api.check(status, codes::NO_DEVICE, || {
            format!("opening CUDA device {ordinal}")
        })?;
        let mut context = std::ptr::null_mut();
        // SAFETY: the driver writes one handle.
        let status = unsafe { (api.context_retain)(&raw mut context, device) };
        api.check(status, codes::NO_DEVICE, || {
            format!("making a context on CUDA device {ordinal}")
        })?;
        Ok(Arc::new(Self {
            api,
            ordinal: device,
            context,
            info: info.clone(),
        }))
    }

    /// What the driver says of the device.
    pub fn info(&self) -> &HostGpu {
        &self.info
    }

    /// Whether the device is simulated.
    pub(super) fn is_simulated(&self) -> bool {
        self.api.is_simulated()
    }

    /// Makes the device's context the calling thread's.
    pub(super) fn enter(&self) -> Result<()> {
        // SAFETY: the context is retained as long as the device lives.
        let status = unsafe { (self.api.context_set)(self.context) };
        self.check(status, || "entering the device's context".to_owned())
    }

    /// `XA8004` for a call that failed.
    pub(super) fn check(&self, status: u32, what: impl FnOnce() -> String) -> Result<()> {
        self.api.check(status, codes::RUN, what)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: retained once in `open`; modules, memory and streams hold the device alive.
        unsafe { (self.api.context_release)(self.ordinal) };
    }
}

/// Findings that a diagnostic shows in full.
#[cfg(feature = "simulator")]
const SHOWN_FINDINGS: usize = 8;

#[cfg(feature = "simulator")]
fn faults(reports: &[Value]) -> Box<Diagnostic> {
    // Of launches with many findings some are only counted.
    let counts = reports.iter().map(|report| &report["suppressed"]);
    let count: u64 = counts.map(|count| count.as_u64().unwrap_or(1)).sum();
    let findings = if count == 1 { "finding" } else { "findings" };
    let message = format!("the program broke rules of the device, {count} {findings}");
    let texts = reports.iter().filter_map(|report| report["shown"].as_str());
    let shown: Vec<&str> = texts.take(SHOWN_FINDINGS).collect();
    let error = shown.iter().fold(
        Diagnostic::error(codes::DEVICE_FAULT, message),
        |error, text| error.note(*text),
    );
    match count - shown.len() as u64 {
        0 => error,
        more => error.note(format!("{more} more")),
    }
}

/// Code on a device.
pub(super) struct Module {
    device: Arc<Device>,
    handle: sys::CUmodule,
    name: String,
}

// SAFETY: a handle of the driver, usable from any thread.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

/// A kernel of a loaded image. It is valid as long as its module.
#[derive(Clone, Copy)]
pub(super) struct Function(pub(super) sys::CUfunction);

// SAFETY: a handle of the driver, usable from any thread.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Module {
    /// Loads an image on the current device.
    ///
    /// # Errors
    /// `XA8003` when the driver cannot load it, with what its compiler has to say.
    pub(super) fn load(device: &Arc<Device>, name: &str, image: &[u8]) -> Result<Self> {
        // The driver finds the end of a text by its zero.
        let mut bytes = image.to_vec();
        bytes.push(0);
        let mut log = vec![0_u8; LOG_BYTES];
        let mut options = [
            sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        // Sizes are passed in place of addresses.
        let mut values = [
            log.as_mut_ptr().cast::<c_void>(),
            std::ptr::without_provenance_mut(LOG_BYTES),
        ];
        let mut handle = std::ptr::null_mut();
        // SAFETY: image and log outlive the call; options and values are as many as it is told.
        let status = unsafe {
            (device.api.module_load)(
                &raw mut handle,
                bytes.as_ptr().cast(),
                2,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        let loaded = device.api.check(status, codes::LOAD, || {
            let gpu = &device.info;
            format!(
                "loading the image `{name}` on {} ({}.{})",
                gpu.name, gpu.major, gpu.minor
            )
        });
        loaded.map_err(|error| {
            // A simulated driver has said it already.
            if !error.notes.is_empty() {
                return error;
            }
            let end = log.iter().position(|&b| b == 0).unwrap_or(log.len());
            let text = String::from_utf8_lossy(&log[..end]);
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            lines.fold(error, |error, line| error.note(line.trim_end()))
        })?;
        Ok(Self {
            device: Arc::clone(device),
            handle,
            name: name.to_owned(),
        })
    }

    /// A kernel by its symbol.
    ///
    /// # Errors
    /// `XA8003` when the image has none of that name.
    pub(super) fn function(&self, symbol: &str) -> Result<Function> {
        let text = c_text(symbol)?;
        let mut function = std::ptr::null_mut();
        // SAFETY: the module is loaded, and the text ends with a zero.
        let status = unsafe {
            (self.device.api.module_function)(&raw mut function, self.handle, text.as_ptr())
        };
        self.device.api.check(status, codes::LOAD, || {
            format!(
                "looking for the kernel `{symbol}` in the image `{}`",
                self.name
            )
        })?;
        Ok(Function(function))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if self.device.enter().is_ok() {
            // SAFETY: loaded in `load`, and nothing runs that holds no reference to it.
            unsafe { (self.device.api.module_unload)(self.handle) };
        }
    }
}

fn c_text(symbol: &str) -> Result<CString> {
    CString::new(symbol).map_err(|_| {
        let message = format!("the symbol `{}` holds a zero byte", symbol.escape_default());
        Diagnostic::error(codes::LOAD, message)
    })
}

/// Memory for kernels that read beyond their buffers comes in units of so many bytes.
pub(super) const UNIT: usize = 256;

/// A block of device memory.
pub(super) struct Memory {
    device: Arc<Device>,
    address: u64,
    size: usize,
}

impl Memory {
    /// Memory of that many bytes, not zeroed. Nothing has an address too, as long as it lives.
    ///
    /// # Errors
    /// `XA8004` when the device has not so much to give.
    pub(super) fn new(device: &Arc<Device>, size: usize) -> Result<Self> {
        let mut address = 0;
        // SAFETY: the driver writes one address.
        let status = unsafe { (device.api.allocate)(&raw mut address, size.max(1)) };
        device.check(status, || {
            let size = ByteSize(size as u64);
            format!("allocating {size} on {}", device.info.name)
        })?;
        Ok(Self {
            device: Arc::clone(device),
            address,
            size,
        })
    }

    pub(super) fn address(&self) -> u64 {
        self.address
    }

    /// As [`Memory::new`], with zeros up to the end of the last unit when kernels read beyond.
    pub(super) fn with_room(
        device: &Arc<Device>,
        size: usize,
        overreads: bool,
        stream: &Stream,
    ) -> Result<Self> {
        let whole = size.checked_next_multiple_of(UNIT);
        let Some(whole) = whole.filter(|&whole| overreads && whole > size) else {
            return Self::new(device, size);
        };
        let mut memory = Self::new(device, whole)?;
        stream.zero(memory.address + size as u64, whole - size)?;
        memory.size = size;
        Ok(memory)
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.device.enter().is_ok() {
            // SAFETY: allocated in `new`; the owner of the memory waits for its stream first.
            unsafe { (self.device.api.free)(self.address) };
        }
    }
}

/// Work on a device, in order.
pub(super) struct Stream {
    device: Arc<Device>,
    pub(super) handle: sys::CUstream,
}

// SAFETY: a handle of the driver, usable from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    pub(super) fn new(device: &Arc<Device>) -> Result<Self> {
        let mut handle = std::ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the driver writes one handle.
        let status = unsafe { (device.api.stream_create)(&raw mut handle, flags) };
        device.check(status, || "making a stream".to_owned())?;
        Ok(Self {
            device: Arc::clone(device),
            handle,
        })
    }

    /// Waits until all work is done.
    ///
    /// # Errors
    /// `XA8004` with the fault of the kernel that failed.
    pub(super) fn wait(&self) -> Result<()> {
        // SAFETY: the stream is alive.
        let status = unsafe { (self.device.api.stream_wait)(self.handle) };
        self.device
            .check(status, || "running the program".to_owned())
    }

    /// What came of a run on the stream, and what its launches counted: on a simulated device a run
    /// is good only when its checks found nothing.
    ///
    /// # Errors
    /// `XA8105` with what the checks found, or the error of the run itself.
    pub(super) fn settle(&self, run: Result<()>) -> Result<Vec<Value>> {
        #[cfg(feature = "simulator")]
        if self.device.api.is_simulated() {
            let records = simulator::driver::take_records(self.handle as usize);
            return match records.reports.is_empty() {
                true => run.map(|()| records.stats),
                false => Err(faults(&records.reports)),
            };
        }
        run.map(|()| Vec::new())
    }

    /// Fills bytes with zeros.
    pub(super) fn zero(&self, address: u64, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the bytes lie in memory that its caller owns.
        let status = unsafe { (self.device.api.set_bytes)(address, 0, bytes, self.handle) };
        self.device
            .check(status, || format!("zeroing {bytes} bytes"))
    }

    /// Copies bytes to the device. They may be reused when the call returns.
    pub(super) fn copy_in(&self, to: u64, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the driver copies pageable memory before it returns.
        let status = unsafe {
            (self.device.api.copy_in)(to, bytes.as_ptr().cast(), bytes.len(), self.handle)
        };
        self.device.check(status, || {
            format!("copying {} bytes to the device", bytes.len())
        })
    }

    /// Waits for the stream's work and copies bytes from the device.
    pub(super) fn copy_out(&self, bytes: &mut [u8], from: u64) -> Result<()> {
        if bytes.is_empty() {
            return self.wait();
        }
        // SAFETY: the bytes live until the wait below has ended.
        let status = unsafe {
            (self.device.api.copy_out)(bytes.as_mut_ptr().cast(), from, bytes.len(), self.handle)
        };
        let copied = self.device.check(status, || {
            format!("copying {} bytes from the device", bytes.len())
        });
        self.wait().and(copied)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.device.enter().is_ok() {
            // SAFETY: made in `new`.
            unsafe {
                (self.device.api.stream_wait)(self.handle);
                (self.device.api.stream_destroy)(self.handle);
            }
        }
    }
}

#[cfg(all(test, feature = "simulator"))]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn findings_are_counted_whole_and_shown_in_part() {
        let one = |n: usize| json!({"shown": format!("finding {n}")});
        let mut reports: Vec<Value> = (0..9).map(one).collect();
        let error = faults(&reports);
        assert!(error.message.ends_with(", 9 findings"), "{error}");
        assert_eq!(error.notes.len(), SHOWN_FINDINGS + 1);
        assert_eq!(error.notes[SHOWN_FINDINGS], "1 more");
        reports.push(json!({"suppressed": 30}));
        assert!(faults(&reports).message.ends_with(", 39 findings"));
        assert_eq!(faults(&reports[..1]).notes, ["finding 0"]);
    }
}
