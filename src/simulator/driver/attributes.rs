//! The numbers of a device: what its description says, and what every card of its kind has.

use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::device::Device;
use crate::simulator::driver::state::Driver;
use crate::simulator::driver::status::Status;
use crate::target::GpuSpec;

/// What the target's description holds beyond [`GpuSpec`].
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Facts {
    /// The name of the card.
    pub(super) name: String,
    /// Most threads of a block in each direction.
    pub(super) block: [u32; 3],
    /// Most blocks of a grid in each direction.
    pub(super) grid: [u32; 3],
    /// Shared memory of a multiprocessor.
    pub(super) shared_per_core: u32,
    /// Shared memory of a block that the system keeps.
    pub(super) reserved_shared: u32,
    /// Registers of a multiprocessor.
    pub(super) registers_per_core: u32,
    /// Registers of a block.
    pub(super) registers_per_block: u32,
    /// Most blocks of a multiprocessor.
    pub(super) blocks_per_core: u32,
    /// Memory clock in kHz.
    pub(super) memory_clock: u32,
    /// Whether memory corrects errors.
    pub(super) ecc: bool,
}

/// A value of a serialized message.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Float(f32),
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(head)
}

/// Calls `see` with each field of a serialized message, as far as it can be read.
fn fields(mut bytes: &[u8], mut see: impl FnMut(u64, Field<'_>)) {
    while let Some(tag) = varint(&mut bytes) {
        let field = match tag & 7 {
            0 => varint(&mut bytes).map(Field::Number),
            1 => take(&mut bytes, 8).map(Field::Bytes),
            2 => varint(&mut bytes)
                .and_then(|length| usize::try_from(length).ok())
                .and_then(|length| take(&mut bytes, length))
                .map(Field::Bytes),
            5 => take(&mut bytes, 4)
                .and_then(|four| four.try_into().ok())
                .map(|four| Field::Float(f32::from_le_bytes(four))),
            _ => None,
        };
        let Some(field) = field else { return };
        see(tag >> 3, field);
    }
}

impl Facts {
    /// The facts of a GPU: from its description, and for what that leaves open from its kind.
    pub(super) fn of(spec: &GpuSpec) -> Self {
        let (major, minor) = (spec.capability.major, spec.capability.minor);
        let optin = spec.shared_per_block_optin.0 as u32;
        let mut facts = Self {
            name: spec.name.clone(),
            block: [1024, 1024, 64],
            grid: [2_147_483_647, 65_535, 65_535],
            shared_per_core: if major >= 8 { optin + 1024 } else { optin },
            reserved_shared: if major >= 8 { 1024 } else { 0 },
            registers_per_core: 65_536,
            registers_per_block: 65_536,
            blocks_per_core: match (major, minor) {
                (7, 5) | (8, 6 | 7) => 16,
                (8, 9) | (12, _) => 24,
                _ => 32,
            },
            memory_clock: 2_000_000,
            ecc: true,
        };
        fields(&spec.config_proto, |number, field| match (number, field) {
            (1, Field::Bytes(info)) => fields(info, |number, field| facts.see(number, &field)),
            (7, Field::Bytes(name)) if !name.is_empty() => {
                facts.name = String::from_utf8_lossy(name).into_owned();
            }
            _ => {}
        });
        facts
    }
    fn see(&mut self, number: u64, field: &Field<'_>) {
        let place = match number {
            4 => &mut self.shared_per_core,
            8 => &mut self.grid[0],
            9 => &mut self.grid[1],
            10 => &mut self.grid[2],
            18 => &mut self.registers_per_core,
            19 => &mut self.registers_per_block,
            37 => &mut self.block[0],
            38 => &mut self.block[1],
            39 => &mut self.block[2],
            44 => &mut self.reserved_shared,
            45 => &mut self.blocks_per_core,
            43 => {
                if let Field::Float(ghz) = field {
                    self.memory_clock = (f64::from(*ghz) * 1e6).round() as u32;
                }
                return;
            }
            42 => {
                self.ecc = matches!(field, Field::Number(1));
                return;
            }
            _ => return,
        };
        if let Field::Number(value) = field
            && *value > 0
        {
            *place = u32::try_from(*value).unwrap_or(u32::MAX);
        }
    }
}

fn whole(value: u64) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

/// The value of a device attribute.
pub(super) fn value(driver: &Driver, device: &Device, attribute: u32) -> Answer<i32> {
    let spec = &driver.spec;
    let facts = &driver.facts;
    let at_least = |major: u32, minor: u32| i32::from(spec.capability.at_least(major, minor));
    let value = match attribute {
        1 => whole(u64::from(spec.threads_per_block)),
        2..=4 => whole(u64::from(facts.block[attribute as usize - 2])),
        5..=7 => whole(u64::from(facts.grid[attribute as usize - 5])),
        8 => whole(spec.shared_per_block.0),
        9 => 65_536,
        10 => 32,
        11 => i32::MAX,
        12 => whole(u64::from(facts.registers_per_block)),
        13 => (spec.clock_ghz * 1e6).round() as i32,
        14 => 512,
        15 => 1,
        16 => whole(u64::from(spec.cores)),
        17 | 18 => 0,
        19 => 1,
        20 => 0,
        21 => 131_072,
        22 => 131_072,
        23 => 65_536,
        24..=26 => 16_384,
        27 | 28 => 32_768,
        29 => 2_048,
        30 => 512,
        31 => 1,
        32 => i32::from(facts.ecc),
        33 => device.bus(),
        34 => 0,
        35 => 0,
        36 => whole(u64::from(facts.memory_clock)),
        37 => bus_width(spec, facts),
        38 => whole(spec.l2_bytes.0),
        39 => whole(u64::from(spec.threads_per_core)),
        40 => 3,
        41 => 1,
        42 => 32_768,
        43 => 2_048,
        44 => 1,
        45 | 46 => 32_768,
        47..=49 => 0,
        50 => 0,
        51 => 32,
        52 | 53 => 32_768,
        54 => 2_046,
        55 | 61 => 32_768,
        56 => 131_072,
        57 => 65_536,
        58..=60 => 16_384,
        62 | 64 => 2_048,
        63 | 65..=67 => 32_768,
        68 => 2_046,
        69 => 268_435_456,
        70 => 131_072,
        71 => 65_000,
        72 => 2_097_120,
        73 | 74 | 77 => 32_768,
        75 => whole(u64::from(spec.capability.major)),
        76 => whole(u64::from(spec.capability.minor)),
        78..=80 => 1,
        81 => whole(u64::from(facts.shared_per_core)),
        82 => whole(u64::from(facts.registers_per_core)),
        83 => 1,
        84 => 0,
        85 => device.ordinal as i32,
        86 => 0,
        87 => match (spec.capability.major, spec.capability.minor) {
            (6..=10, 0) | (10, 3) => 2,
            _ => 64,
        },
        88 => 0,
        89 | 90 => 1,
        91 => 1,
        92..=94 => 0,
        95 => 1,
        96 => 0,
        97 => whole(spec.shared_per_block_optin.0),
        98 => 0,
        99 => 1,
        100 | 101 => 0,
        102 => 1,
        // Memory of the simulator cannot leave the process.
        103..=105 => 0,
        106 => whole(u64::from(facts.blocks_per_core)),
        107 => 0,
        108 => whole(spec.l2_bytes.0 / 8 * 5),
        109 => 134_213_632,
        110 => 0,
        111 => whole(u64::from(facts.reserved_shared)),
        112 => 0,
        113 => 1,
        114 => 0,
        115 => 1,
        116 => 0,
        117 => 0,
        118 => 0,
        119 => 0,
        120 => at_least(9, 0),
        121 => 0,
        122 | 123 => 1,
        124 | 125 => 0,
        126 => {
            if spec.capability.major >= 9 {
                4
            } else {
                1
            }
        }
        127 => at_least(9, 0),
        128 => 0,
        129 => 1,
        130 => 0,
        131 => -1,
        132 | 133 => 0,
        134 => 0,
        135..=138 => 0,
        139 => 0x2300_10de,
        140 => 0x0000_10de,
        141..=143 => 0,
        // Numbers that later versions added.
        144..=160 => 0,
        _ => return Err(Status::INVALID_VALUE),
    };
    Ok(value)
}

/// The width of the memory bus in bits that gives the bandwidth at the memory's clock.
fn bus_width(spec: &GpuSpec, facts: &Facts) -> i32 {
    let bits = spec.bandwidth * 8.0 / (2.0 * f64::from(facts.memory_clock) * 1e3);
    // Buses come in whole channels.
    ((bits / 32.0).round() as i32 * 32).max(32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_come_from_the_description() {
        let target = crate::wire::target::gpu("h100_sxm", None).expect("ships");
        let spec = target.gpu().expect("a GPU");
        let facts = Facts::of(spec);
        assert_eq!(facts.name, "NVIDIA H100 80GB HBM3");
        assert_eq!(facts.shared_per_core, 233_472);
        assert_eq!(facts.block, [1024, 1024, 64]);
        assert_eq!(facts.memory_clock, 2_619_000);
        assert_eq!(bus_width(spec, &facts), 5120);
    }
}
