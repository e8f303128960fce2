//! The CUDA driver and the GPUs of this machine, when there are any.
#![allow(unsafe_code, reason = "calls the driver")]

use std::ffi::CStr;
use std::ffi::c_char;

use cudarc::driver::sys::CUdevice_attribute;

use crate::base::ByteSize;
use crate::runtime::cuda::api::Api;
use crate::target::HostGpu;
use crate::target::HostInfo;

/// Adds the machine's driver and its devices to what is known of the host.
pub fn add(host: HostInfo) -> HostInfo {
    match Api::driver() {
        Ok(api) => add_devices(host, api),
        Err(_) => host,
    }
}

/// Adds a driver and its devices to what is known of the host.
pub fn add_devices(host: HostInfo, api: &Api) -> HostInfo {
    let mut version = 0;
    // SAFETY: the driver writes one number.
    let status = unsafe { (api.driver_version)(&raw mut version) };
    HostInfo {
        cuda_driver: (status == 0).then_some(version),
        gpus: devices(api),
        is_simulated: api.is_simulated(),
        ..host
    }
}

/// How many devices the driver has.
pub fn count(api: &Api) -> usize {
    let mut count = 0;
    // SAFETY: the driver writes one number.
    let status = unsafe { (api.device_count)(&raw mut count) };
    match status {
        0 => usize::try_from(count).unwrap_or(0),
        _ => 0,
    }
}

/// The driver's devices, in its order.
pub(super) fn devices(api: &Api) -> Vec<HostGpu> {
    let mut count = 0;
    // SAFETY: the driver writes one number.
    if unsafe { (api.device_count)(&raw mut count) } != 0 {
        return Vec::new();
    }
    (0..count).map_while(|ordinal| gpu(api, ordinal)).collect()
}

fn gpu(api: &Api, ordinal: i32) -> Option<HostGpu> {
    let mut device = 0;
    // SAFETY: the driver writes one number.
    (unsafe { (api.device)(&raw mut device, ordinal) } == 0).then_some(())?;
    let attribute = |attribute| {
        let mut value = 0;
        // SAFETY: the driver writes one number, and gave the device.
        let status = unsafe { (api.device_attribute)(&raw mut value, attribute, device) };
        (status == 0).then(|| u32::try_from(value).ok()).flatten()
    };
    let mut memory = 0;
    // SAFETY: as above.
    (unsafe { (api.device_memory)(&raw mut memory, device) } == 0).then_some(())?;
    let mut name = [0; 256];
    // SAFETY: the driver writes at most as many characters as it is told, with a zero at the end.
    let status = unsafe { (api.device_name)(name.as_mut_ptr(), name.len() as i32, device) };
    (status == 0).then_some(())?;
    Some(HostGpu {
        name: text(&name),
        major: attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        minor: attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        memory: ByteSize(memory as u64),
    })
}

fn text(name: &[c_char]) -> String {
    let bytes: Vec<u8> = name.iter().map(|&c| c.cast_unsigned()).collect();
    CStr::from_bytes_until_nul(&bytes).map_or_else(
        |_| String::from_utf8_lossy(&bytes).into_owned(),
        |text| text.to_string_lossy().into_owned(),
    )
}
