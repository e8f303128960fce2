//! The management library's interface (`nvml*`): what a program finds when it opens this library as
//! `libnvidia-ml.so.1`. It tells of the same devices as the driver does; nothing can be managed.

#![allow(unsafe_code, reason = "entry points of a C interface have fixed names")]

use std::ffi::c_char;
use std::ffi::c_int;
use std::ffi::c_uint;
use std::sync::atomic::Ordering;

use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::abi::In;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::abi::trace;
use crate::simulator::driver::attributes;
use crate::simulator::driver::device::Device;
use crate::simulator::driver::device::VERSION;
use crate::simulator::driver::state;
use crate::simulator::driver::state::Driver;
use crate::simulator::driver::status::Status;

/// A code of this library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Code(pub(super) c_uint);

impl Code {
    const SUCCESS: Code = Code(0);
    const UNINITIALIZED: Code = Code(1);
    const INVALID_ARGUMENT: Code = Code(2);
    const NOT_SUPPORTED: Code = Code(3);
    const NOT_FOUND: Code = Code(6);
    const INSUFFICIENT_SIZE: Code = Code(7);
    const UNKNOWN: Code = Code(999);
}

const TEXTS: &[(c_uint, &str)] = &[
    (0, "Success\0"),
    (1, "Uninitialized\0"),
    (2, "Invalid Argument\0"),
    (3, "Not Supported\0"),
    (6, "Not Found\0"),
    (7, "Insufficient Size\0"),
    (999, "Unknown Error\0"),
];

impl From<Status> for Code {
    fn from(status: Status) -> Self {
        match status {
            Status::INVALID_VALUE => Code::INVALID_ARGUMENT,
            Status::INVALID_DEVICE => Code::NOT_FOUND,
            Status::NOT_INITIALIZED => Code::UNINITIALIZED,
            Status::NOT_SUPPORTED => Code::NOT_SUPPORTED,
            _ => Code::UNKNOWN,
        }
    }
}

type Answer = Result<(), Code>;

/// A device's handle: its ordinal, away from null.
const FIRST: Handle = 0x5200_0000_0010;
const STEP: Handle = 16;

fn driver() -> Result<&'static Driver, Code> {
    state::driver().map_err(|_| Code::UNINITIALIZED)
}

fn handle_of(device: &Device) -> Handle {
    FIRST + device.ordinal as usize * STEP
}

fn device(handle: Handle) -> Result<(&'static Driver, &'static Device), Code> {
    let driver = driver()?;
    let devices = driver.devices.iter();
    let found = { devices }.find(|device| handle_of(device) == handle);
    Ok((driver, found.ok_or(Code::INVALID_ARGUMENT)?))
}

/// A text as it names the device: `GPU-` and the UUID.
fn uuid_text(device: &Device) -> String {
    let mut text = "GPU-".to_owned();
    for (index, byte) in device.uuid.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

fn put_text(out: Out<c_char>, text: &str, length: c_uint) -> Answer {
    if text.len() >= length as usize {
        return Err(Code::INSUFFICIENT_SIZE);
    }
    Ok(out.put_text(text, length as usize)?)
}

/// `nvmlMemory_t`
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

/// `nvmlPciInfo_t`
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PciInfo {
    short_id: [u8; 16],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    device_id: c_uint,
    subsystem_id: c_uint,
    id: [u8; 32],
}

macro_rules! management {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $ty),*) -> Code {
                let answer = || -> Answer { $body };
                let code = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(answer)) {
                    Ok(Ok(())) => Code::SUCCESS,
                    Ok(Err(code)) => code,
                    Err(_) => Code::UNKNOWN,
                };
                trace(stringify!($name), text_of(code).trim_end_matches('\0'));
                code
            }
        )*
    };
}

fn text_of(code: Code) -> &'static str {
    let row = TEXTS.iter().find(|row| row.0 == code.0);
    row.map_or("Unknown Error\0", |row| row.1)
}

/// What a code means.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlErrorString(code: Code) -> *const c_char {
    text_of(code).as_ptr().cast()
}

/// The generation of the bus of a GPU of a capability.
fn pcie_generation(driver: &Driver) -> c_uint {
    match driver.spec.capability.major {
        0..=7 => 3,
        8 => 4,
        9 => 5,
        // Six with data centre cards, five with the others.
        10 | 11 => 6,
        _ => 5,
    }
}

management! {
    fn nvmlInit() {
        Ok(state::initialize()?)
    }
    fn nvmlInit_v2() {
        Ok(state::initialize()?)
    }
    fn nvmlInitWithFlags(_flags: c_uint) {
        Ok(state::initialize()?)
    }
    fn nvmlShutdown() {
        driver().map(|_| ())
    }
    fn nvmlSystemGetDriverVersion(out: Out<c_char>, length: c_uint) {
        driver()?;
        put_text(out, "580.65.06", length)
    }
    fn nvmlSystemGetNVMLVersion(out: Out<c_char>, length: c_uint) {
        put_text(out, "13.580.65.06", length)
    }
    fn nvmlSystemGetCudaDriverVersion(version: Out<c_int>) {
        Ok(version.put(VERSION)?)
    }
    fn nvmlSystemGetCudaDriverVersion_v2(version: Out<c_int>) {
        Ok(version.put(VERSION)?)
    }
    fn nvmlDeviceGetCount_v2(count: Out<c_uint>) {
        Ok(count.put(driver()?.devices.len() as c_uint)?)
    }
    fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, out: Out<Handle>) {
        let found = driver()?.devices.get(index as usize);
        Ok(out.put(handle_of(found.ok_or(Code::INVALID_ARGUMENT)?))?)
    }
    fn nvmlDeviceGetHandleByUUID(text: In<c_char>, out: Out<Handle>) {
        let text = text.text()?;
        let devices = driver()?.devices.iter();
        let found = { devices }.find(|device| uuid_text(device) == text);
        Ok(out.put(handle_of(found.ok_or(Code::NOT_FOUND)?))?)
    }
    fn nvmlDeviceGetHandleByPciBusId_v2(text: In<c_char>, out: Out<Handle>) {
        let text = text.text()?.to_ascii_lowercase();
        // Domains are written with four digits or with eight.
        let devices = driver()?.devices.iter();
        let found = { devices }.find(|device| {
            let id = device.pci().to_ascii_lowercase();
            text.trim_start_matches('0') == id.trim_start_matches('0')
        });
        Ok(out.put(handle_of(found.ok_or(Code::NOT_FOUND)?))?)
    }
    fn nvmlDeviceGetIndex(handle: Handle, index: Out<c_uint>) {
        Ok(index.put(device(handle)?.1.ordinal)?)
    }
    fn nvmlDeviceGetName(handle: Handle, out: Out<c_char>, length: c_uint) {
        put_text(out, &device(handle)?.0.facts.name, length)
    }
    fn nvmlDeviceGetUUID(handle: Handle, out: Out<c_char>, length: c_uint) {
        put_text(out, &uuid_text(device(handle)?.1), length)
    }
    fn nvmlDeviceGetMemoryInfo(handle: Handle, out: Out<Memory>) {
        let (_, device) = device(handle)?;
        let used = device.used.load(Ordering::Relaxed);
        Ok(out.put(Memory { total: device.memory, free: device.memory - used, used })?)
    }
    fn nvmlDeviceGetCudaComputeCapability(handle: Handle, major: Out<c_int>, minor: Out<c_int>) {
        let (driver, _) = device(handle)?;
        major.put(driver.spec.capability.major as c_int)?;
        Ok(minor.put(driver.spec.capability.minor as c_int)?)
    }
    fn nvmlDeviceGetPciInfo_v3(handle: Handle, out: Out<PciInfo>) {
        let (_, device) = device(handle)?;
        let text = device.pci();
        let mut info = PciInfo {
            short_id: [0; 16],
            domain: 0,
            bus: device.bus() as c_uint,
            device: 0,
            device_id: 0x2300_10de,
            subsystem_id: 0x0000_10de,
            id: [0; 32],
        };
        info.short_id[..text.len().min(15)].copy_from_slice(&text.as_bytes()[..text.len().min(15)]);
        let long = format!("0000{text}");
        info.id[..long.len().min(31)].copy_from_slice(&long.as_bytes()[..long.len().min(31)]);
        Ok(out.put(info)?)
    }
    fn nvmlDeviceGetMaxPcieLinkGeneration(handle: Handle, generation: Out<c_uint>) {
        Ok(generation.put(pcie_generation(device(handle)?.0))?)
    }
    fn nvmlDeviceGetCurrPcieLinkGeneration(handle: Handle, generation: Out<c_uint>) {
        Ok(generation.put(pcie_generation(device(handle)?.0))?)
    }
    fn nvmlDeviceGetGpuMaxPcieLinkGeneration(handle: Handle, generation: Out<c_uint>) {
        Ok(generation.put(pcie_generation(device(handle)?.0))?)
    }
    fn nvmlDeviceGetMaxPcieLinkWidth(handle: Handle, width: Out<c_uint>) {
        device(handle)?;
        Ok(width.put(16)?)
    }
    fn nvmlDeviceGetCurrPcieLinkWidth(handle: Handle, width: Out<c_uint>) {
        device(handle)?;
        Ok(width.put(16)?)
    }
    fn nvmlDeviceGetMaxClockInfo(handle: Handle, kind: c_uint, clock: Out<c_uint>) {
        let (driver, device) = device(handle)?;
        // Graphics, multiprocessors, memory.
        let attribute = match kind {
            0 | 1 => 13,
            2 => 36,
            _ => return Err(Code::NOT_SUPPORTED),
        };
        Ok(clock.put(attributes::value(driver, device, attribute)? as c_uint / 1000)?)
    }
    // Simulated devices reach each other through the host's memory, over no links.
    fn nvmlDeviceGetNvLinkState(handle: Handle, _link: c_uint, active: Out<c_uint>) {
        device(handle)?;
        Ok(active.put(0)?)
    }
    fn nvmlDeviceGetNvLinkCapability(
        handle: Handle, _link: c_uint, _capability: c_uint, value: Out<c_uint>,
    ) {
        device(handle)?;
        Ok(value.put(0)?)
    }
    fn nvmlDeviceGetNvLinkRemotePciInfo_v2(handle: Handle, _link: c_uint, _out: Out<PciInfo>) {
        device(handle)?;
        Err(Code::NOT_SUPPORTED)
    }
    fn nvmlDeviceGetP2PStatus(first: Handle, second: Handle, _index: c_uint, status: Out<c_uint>) {
        device(first)?;
        device(second)?;
        // In order.
        Ok(status.put(0)?)
    }
    fn nvmlDeviceGetGpuFabricInfo(handle: Handle, _info: Out<u8>) {
        device(handle)?;
        Err(Code::NOT_SUPPORTED)
    }
    fn nvmlDeviceGetGpuFabricInfoV(handle: Handle, _info: Out<u8>) {
        device(handle)?;
        Err(Code::NOT_SUPPORTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::driver::tests::turn;

    #[test]
    fn devices_are_the_drivers() {
        let _turn = turn();
        let (mut count, mut handle, mut again) = (0, 0, 0);
        let mut memory = Memory::default();
        let mut text = [0_u8; 96];
        let out = Out::from_address(text.as_mut_ptr() as usize);
        // SAFETY: the pointers are to variables here.
        unsafe {
            assert_eq!(nvmlInit_v2(), Code::SUCCESS);
            assert_eq!(nvmlDeviceGetCount_v2(Out::to(&mut count)), Code::SUCCESS);
            let refused = nvmlDeviceGetHandleByIndex_v2(count, Out::to(&mut handle));
            assert_eq!(refused, Code::INVALID_ARGUMENT);
            let found = nvmlDeviceGetHandleByIndex_v2(1, Out::to(&mut handle));
            assert_eq!(found, Code::SUCCESS);
            let place = In::new(c"00000000:20:00.0".as_ptr());
            let found = nvmlDeviceGetHandleByPciBusId_v2(place, Out::to(&mut again));
            assert_eq!((found, again), (Code::SUCCESS, handle));
            assert_eq!(nvmlDeviceGetUUID(handle, out, 8), Code::INSUFFICIENT_SIZE);
            assert_eq!(nvmlDeviceGetUUID(handle, out, 96), Code::SUCCESS);
            let found = nvmlDeviceGetHandleByUUID(out.input(), Out::to(&mut again));
            assert_eq!((found, again), (Code::SUCCESS, handle));
            let found = nvmlDeviceGetMemoryInfo(handle, Out::to(&mut memory));
            assert_eq!(found, Code::SUCCESS);
            assert_eq!(
                nvmlDeviceGetIndex(7, Out::to(&mut count)),
                Code::INVALID_ARGUMENT
            );
        }
        assert_eq!(count, 2);
        assert_eq!(memory.total, 84_942_979_072);
        assert_eq!(memory.free + memory.used, memory.total);
        assert_eq!(&text[..4], b"GPU-");
    }
}
