//! The CUDA driver and the GPUs of this machine, when there are any.
#![allow(
    unsafe_code,
    reason = "asks whether the driver's library can be opened"
)]

use cudarc::driver::result;
use cudarc::driver::sys;
use cudarc::driver::sys::CUdevice_attribute;

use crate::base::ByteSize;
use crate::target::HostGpu;
use crate::target::HostInfo;

/// Adds the driver and its devices to what is known of the host.
pub fn add(mut host: HostInfo) -> HostInfo {
    // SAFETY: opens the driver's library, whose initialisers are NVIDIA's.
    if !unsafe { sys::is_culib_present() } || result::init().is_err() {
        return host;
    }
    host.cuda_driver = driver_version();
    let count = result::device::get_count().unwrap_or(0);
    host.gpus = (0..count).filter_map(gpu).collect();
    host
}

fn driver_version() -> Option<i32> {
    let mut version = 0;
    // SAFETY: the driver writes one integer.
    let status = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    status.result().ok().map(|()| version)
}

fn gpu(ordinal: i32) -> Option<HostGpu> {
    let device = result::device::get(ordinal).ok()?;
    let attribute = |attribute| {
        // SAFETY: the device was given by the driver.
        let value = unsafe { result::device::get_attribute(device, attribute) };
        value.ok().and_then(|value| u32::try_from(value).ok())
    };
    // SAFETY: as above.
    let memory = unsafe { result::device::total_mem(device) }.ok()?;
    Some(HostGpu {
        name: result::device::get_name(device).ok()?,
        major: attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        minor: attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        memory: ByteSize(memory as u64),
    })
}
