//! Devices: how many, what they are called, what they can do.

#![allow(unsafe_code, reason = "entry points of a C interface have fixed names")]

use std::ffi::c_char;
use std::ffi::c_int;
use std::ffi::c_uint;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::abi::In;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::abi::alias;
use crate::simulator::driver::abi::api;
use crate::simulator::driver::attributes;
use crate::simulator::driver::state::driver;
use crate::simulator::driver::state::initialize;
use crate::simulator::driver::status::Status;
use crate::simulator::driver::types::DeviceProperties;
use crate::simulator::driver::types::Uuid;

/// The version of the interface, as the driver reports it: 13.0.
pub(super) const VERSION: i32 = 13_000;

/// The primary context of a device.
#[derive(Debug, Default)]
pub(super) struct Primary {
    /// How often it is retained.
    pub(super) count: usize,
    /// Its handle, once it was retained for the first time.
    pub(super) context: Handle,
    /// The flags for it.
    pub(super) flags: u32,
}

/// A device.
pub(super) struct Device {
    pub(super) ordinal: u32,
    /// Bytes of its memory.
    pub(super) memory: u64,
    /// Bytes of it in use.
    pub(super) used: AtomicU64,
    pub(super) uuid: [u8; 16],
    pub(super) primary: Mutex<Primary>,
    default_pool: AtomicUsize,
    pub(super) pool: AtomicUsize,
}

impl Device {
    /// A device that nobody uses yet.
    pub(super) fn new(ordinal: u32, memory: u64, target: &str) -> Self {
        Self {
            ordinal,
            memory,
            used: AtomicU64::new(0),
            uuid: uuid(target, ordinal),
            primary: Mutex::default(),
            default_pool: AtomicUsize::new(0),
            pool: AtomicUsize::new(0),
        }
    }
    /// The number of its PCI bus.
    pub(super) fn bus(&self) -> i32 {
        // One switch for eight cards, as servers have them.
        0x10 + 0x10 * self.ordinal as i32
    }
    /// Its place on the PCI bus.
    pub(super) fn pci(&self) -> String {
        let (domain, bus) = (self.bus() >> 8, self.bus() & 0xff);
        format!("{domain:04X}:{bus:02X}:00.0")
    }
    /// Sets the pool that it begins with.
    pub(super) fn set_default_pool(&self, pool: Handle) {
        self.default_pool.store(pool, Ordering::Relaxed);
        self.pool.store(pool, Ordering::Relaxed);
    }
    /// The pool that it began with.
    pub(super) fn default_pool(&self) -> Handle {
        self.default_pool.load(Ordering::Relaxed)
    }
    /// Takes memory.
    pub(super) fn take(&self, bytes: u64) -> Answer {
        let update = |used: u64| {
            used.checked_add(bytes)
                .filter(|&after| after <= self.memory)
        };
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, update)
            .map(|_| ())
            .map_err(|_| Status::OUT_OF_MEMORY)
    }
    /// Gives memory back.
    pub(super) fn give(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A made-up identity that is the same in every process: FNV-1a over the target and the ordinal,
/// marked as a random UUID.
fn uuid(target: &str, ordinal: u32) -> [u8; 16] {
    let mut bytes = [0_u8; 16];
    for (index, half) in bytes.chunks_exact_mut(8).enumerate() {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ index as u64;
        for byte in target.bytes().chain(ordinal.to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        half.copy_from_slice(&hash.to_le_bytes());
    }
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}

/// Two devices of a question about both.
fn pair(first: c_int, second: c_int) -> Answer<bool> {
    let driver = driver()?;
    let first = driver.device(first)?;
    let second = driver.device(second)?;
    Ok(first.ordinal != second.ordinal)
}

api! {
    fn cuInit(flags: c_uint) {
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        initialize()
    }
    fn cuDriverGetVersion(version: Out<c_int>) {
        version.put(VERSION)
    }
    fn cuDeviceGet(device: Out<c_int>, ordinal: c_int) {
        let found = driver()?.device(ordinal);
        device.check()?;
        device.put(found?.ordinal as c_int)
    }
    fn cuDeviceGetCount(count: Out<c_int>) {
        let devices = driver()?.devices.len();
        count.put(devices as c_int)
    }
    fn cuDeviceGetName(name: Out<c_char>, length: c_int, device: c_int) {
        let driver = driver()?;
        driver.device(device)?;
        let length = usize::try_from(length).map_err(|_| Status::INVALID_VALUE)?;
        name.put_text(&driver.facts.name, length)
    }
    fn cuDeviceGetUuid_v2(uuid: Out<Uuid>, device: c_int) {
        let driver = driver()?;
        let device = driver.device(device)?;
        uuid.put(Uuid { bytes: device.uuid.map(|byte| byte as c_char) })
    }
    fn cuDeviceGetLuid(_luid: Out<c_char>, _mask: Out<c_uint>, device: c_int) {
        driver()?.device(device)?;
        // Only one operating system has these.
        Err(Status::NOT_SUPPORTED)
    }
    fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: c_int) {
        let driver = driver()?;
        bytes.put(driver.device(device)?.memory as usize)
    }
    fn cuDeviceGetAttribute(value: Out<c_int>, attribute: c_uint, device: c_int) {
        let driver = driver()?;
        value.check()?;
        let device = driver.device(device)?;
        value.put(attributes::value(driver, device, attribute)?)
    }
    fn cuDeviceComputeCapability(major: Out<c_int>, minor: Out<c_int>, device: c_int) {
        let driver = driver()?;
        driver.device(device)?;
        major.check()?;
        minor.put(driver.spec.capability.minor as c_int)?;
        major.put(driver.spec.capability.major as c_int)
    }
    fn cuDeviceGetProperties(properties: Out<DeviceProperties>, device: c_int) {
        let driver = driver()?;
        let device = driver.device(device)?;
        let value = |attribute| attributes::value(driver, device, attribute);
        properties.put(DeviceProperties {
            threads: value(1)?,
            block: [value(2)?, value(3)?, value(4)?],
            grid: [value(5)?, value(6)?, value(7)?],
            shared: value(8)?,
            constant: value(9)?,
            warp: value(10)?,
            pitch: value(11)?,
            registers: value(12)?,
            clock: value(13)?,
            texture_alignment: value(14)?,
        })
    }
    fn cuDeviceGetPCIBusId(text: Out<c_char>, length: c_int, device: c_int) {
        let driver = driver()?;
        let device = driver.device(device)?;
        let length = usize::try_from(length).map_err(|_| Status::INVALID_VALUE)?;
        text.put_text(&device.pci(), length)
    }
    fn cuDeviceGetByPCIBusId(device: Out<c_int>, text: In<c_char>) {
        let driver = driver()?;
        device.check()?;
        let text = text.text()?.to_ascii_uppercase();
        let wanted = text.split('.').next().unwrap_or_default();
        // Domain and function may be left out.
        let found = driver.devices.iter().find(|device| {
            let whole = device.pci();
            let short = whole.split('.').next().unwrap_or_default();
            short == wanted || short.ends_with(&format!(":{wanted}"))
        });
        device.put(found.ok_or(Status::INVALID_DEVICE)?.ordinal as c_int)
    }
    fn cuDeviceCanAccessPeer(can: Out<c_int>, device: c_int, peer: c_int) {
        let different = pair(device, peer)?;
        can.put(c_int::from(different))
    }
    fn cuDeviceGetP2PAttribute(value: Out<c_int>, attribute: c_uint, source: c_int, target: c_int) {
        let different = pair(source, target)?;
        value.check()?;
        if !different {
            return Err(Status::INVALID_DEVICE);
        }
        match attribute {
            // Rank, access, atomics, access to arrays.
            1 => value.put(0),
            2 | 3 => value.put(1),
            4 => value.put(0),
            5 => value.put(0),
            _ => Err(Status::INVALID_VALUE),
        }
    }
    fn cuDeviceGetExecAffinitySupport(value: Out<c_int>, kind: c_uint, device: c_int) {
        driver()?.device(device)?;
        if kind != 0 {
            return Err(Status::INVALID_VALUE);
        }
        value.put(0)
    }
    fn cuDeviceGetTexture1DLinearMaxWidth(
        width: Out<usize>, _format: c_uint, _channels: c_uint, device: c_int,
    ) {
        driver()?.device(device)?;
        width.put(268_435_456)
    }
    fn cuDeviceGetHostAtomicCapabilities(
        capabilities: Out<c_uint>, operations: In<c_uint>, count: c_uint, device: c_int,
    ) {
        driver()?.device(device)?;
        let operations = operations.array(count as usize)?;
        for index in 0..operations.len() {
            capabilities.put_at(index, 0);
        }
        Ok(())
    }
    fn cuDeviceGetP2PAtomicCapabilities(
        capabilities: Out<c_uint>, operations: In<c_uint>, count: c_uint, source: c_int, target: c_int,
    ) {
        if !pair(source, target)? {
            return Err(Status::INVALID_DEVICE);
        }
        let operations = operations.array(count as usize)?;
        for index in 0..operations.len() {
            // Signed, unsigned, and the widths of 32 and 64 bits.
            capabilities.put_at(index, 0b1_1011);
        }
        Ok(())
    }
}

alias! {
    cuDeviceGetUuid = cuDeviceGetUuid_v2(uuid: Out<Uuid>, device: c_int);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_stable_and_differ() {
        assert_eq!(uuid("h100_sxm", 0), uuid("h100_sxm", 0));
        assert_ne!(uuid("h100_sxm", 0), uuid("h100_sxm", 1));
        assert_ne!(uuid("h100_sxm", 0), uuid("b200", 0));
    }

    #[test]
    fn memory_runs_out() {
        let device = Device::new(0, 100, "h100_sxm");
        assert_eq!(device.take(60), Ok(()));
        assert_eq!(device.take(60), Err(Status::OUT_OF_MEMORY));
        device.give(60);
        assert_eq!(device.take(100), Ok(()));
    }
}
