//! What each relocation type writes. Numbers and formulas are those of the System V psABI for
//! x86-64 and of ELF for the Arm 64-bit Architecture.

use object::Architecture;
use object::elf;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;

/// A kind of processor that objects can be loaded for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// x86-64
    X86_64,
    /// 64-bit Arm
    AArch64,
}

impl Machine {
    /// The machine this program runs on.
    pub fn host() -> Option<Self> {
        match std::env::consts::ARCH {
            "x86_64" => Some(Self::X86_64),
            "aarch64" => Some(Self::AArch64),
            _ => None,
        }
    }

    /// Its name in the `object` crate.
    pub fn architecture(self) -> Architecture {
        match self {
            Self::X86_64 => Architecture::X86_64,
            Self::AArch64 => Architecture::Aarch64,
        }
    }

    /// Whether the relocation may go through a stub when its symbol is far.
    pub fn is_call(self, kind: u32) -> bool {
        match self {
            Self::X86_64 => kind == elf::R_X86_64_PLT32 || kind == elf::R_X86_64_PC32,
            Self::AArch64 => kind == elf::R_AARCH64_CALL26 || kind == elf::R_AARCH64_JUMP26,
        }
    }

    /// Whether the relocation refers to the symbol's slot in the offset table.
    pub fn uses_table(self, kind: u32) -> bool {
        match self {
            Self::X86_64 => matches!(
                kind,
                elf::R_X86_64_GOTPCREL
                    | elf::R_X86_64_GOTPCRELX
                    | elf::R_X86_64_REX_GOTPCRELX
                    | elf::R_X86_64_GOT64
                    | elf::R_X86_64_GOTPCREL64
            ),
            Self::AArch64 => matches!(
                kind,
                elf::R_AARCH64_ADR_GOT_PAGE | elf::R_AARCH64_LD64_GOT_LO12_NC
            ),
        }
    }

    /// Code that jumps to the address.
    pub fn stub(self, address: u64) -> [u8; 16] {
        let mut stub = [0; 16];
        match self {
            // jmp *2(%rip); two bytes of padding; the address
            Self::X86_64 => stub[..8].copy_from_slice(&[0xff, 0x25, 2, 0, 0, 0, 0xcc, 0xcc]),
            // ldr x16, #8; br x16; the address
            Self::AArch64 => {
                stub[..4].copy_from_slice(&0x5800_0050u32.to_le_bytes());
                stub[4..8].copy_from_slice(&0xd61f_0200u32.to_le_bytes());
            }
        }
        stub[8..].copy_from_slice(&address.to_le_bytes());
        stub
    }
}

/// The place to be changed: its bytes to the end of the section, and its address.
pub struct Site<'a> {
    /// From the place on.
    pub bytes: &'a mut [u8],
    /// Address of the first byte.
    pub address: u64,
}

/// The letters of the formulas.
pub struct Values {
    /// S, the symbol's address (or its stub's).
    pub symbol: u64,
    /// A.
    pub addend: i64,
    /// Address of the symbol's slot in the offset table.
    pub slot: u64,
    /// Address of the offset table.
    pub table: u64,
}

fn refused(message: impl Into<String>) -> Box<Diagnostic> {
    Diagnostic::error(codes::LOAD, message)
}

/// Applies one relocation.
///
/// # Errors
/// `XA8003` when the type is unknown, the value out of reach or the place cut off.
pub fn apply(machine: Machine, kind: u32, site: Site<'_>, values: &Values) -> Result<()> {
    match machine {
        Machine::X86_64 => apply_x86_64(kind, site, values),
        Machine::AArch64 => apply_aarch64(kind, site, values),
    }
}

impl Site<'_> {
    fn write<const N: usize>(self, value: [u8; N]) -> Result<()> {
        let place = self.bytes.get_mut(..N);
        let place = place.ok_or_else(|| refused("a relocation is cut off by its section's end"))?;
        place.copy_from_slice(&value);
        Ok(())
    }
    fn write_u64(self, value: u64) -> Result<()> {
        self.write(value.to_le_bytes())
    }
    fn write_i32(self, value: u64) -> Result<()> {
        let value = i32::try_from(value.cast_signed());
        let value =
            value.map_err(|_| refused("the target of a 32-bit relocation is out of reach"))?;
        self.write(value.to_le_bytes())
    }
    /// Changes the instruction at the place.
    fn patch(self, change: impl FnOnce(u32) -> u32) -> Result<()> {
        let word = self.bytes.first_chunk::<4>();
        let word = word.ok_or_else(|| refused("a relocation is cut off by its section's end"))?;
        let word = change(u32::from_le_bytes(*word));
        self.write(word.to_le_bytes())
    }
}

fn apply_x86_64(kind: u32, site: Site<'_>, values: &Values) -> Result<()> {
    let p = site.address;
    let sum = |base: u64| base.wrapping_add_signed(values.addend);
    let (s, slot, table) = (sum(values.symbol), sum(values.slot), values.table);
    match kind {
        elf::R_X86_64_NONE => Ok(()),
        elf::R_X86_64_64 => site.write_u64(s),
        elf::R_X86_64_PC64 => site.write_u64(s.wrapping_sub(p)),
        elf::R_X86_64_PC32 | elf::R_X86_64_PLT32 => site.write_i32(s.wrapping_sub(p)),
        elf::R_X86_64_GOTPCREL | elf::R_X86_64_GOTPCRELX | elf::R_X86_64_REX_GOTPCRELX => {
            site.write_i32(slot.wrapping_sub(p))
        }
        elf::R_X86_64_GOTPCREL64 => site.write_u64(slot.wrapping_sub(p)),
        elf::R_X86_64_GOT64 => site.write_u64(slot.wrapping_sub(table)),
        elf::R_X86_64_GOTOFF64 | elf::R_X86_64_PLTOFF64 => site.write_u64(s.wrapping_sub(table)),
        elf::R_X86_64_GOTPC32 => site.write_i32(sum(table).wrapping_sub(p)),
        elf::R_X86_64_GOTPC64 => site.write_u64(sum(table).wrapping_sub(p)),
        elf::R_X86_64_32S => site.write_i32(s),
        elf::R_X86_64_32 => {
            let value = u32::try_from(s);
            let value =
                value.map_err(|_| refused("the target of a 32-bit relocation is out of reach"))?;
            site.write(value.to_le_bytes())
        }
        other => Err(refused(format!(
            "relocation type {other} is not known for x86-64"
        ))),
    }
}

/// Puts `value` into `width` bits at `shift` of an instruction.
fn field(word: u32, value: u64, shift: u32, width: u32) -> u32 {
    let mask = ((1u64 << width) - 1) as u32;
    (word & !(mask << shift)) | (((value & u64::from(mask)) as u32) << shift)
}

/// A distance in units of four bytes that fits in `width` bits.
fn branch(distance: u64, width: u32) -> Result<u64> {
    let signed = distance.cast_signed();
    let limit = 1i64 << (width + 1);
    if signed % 4 != 0 || !(-limit..limit).contains(&signed) {
        return Err(refused("a branch target is out of reach"));
    }
    Ok((signed >> 2).cast_unsigned())
}

/// The immediate of ADR and ADRP: two low bits at 29, nineteen high bits at 5.
fn adr(word: u32, value: u64) -> u32 {
    field(field(word, value, 29, 2), value >> 2, 5, 19)
}

fn page_distance(target: u64, place: u64) -> Result<u64> {
    let pages = ((target >> 12).wrapping_sub(place >> 12)).cast_signed();
    if !(-(1i64 << 20)..1 << 20).contains(&pages) {
        return Err(refused("a page address is out of reach"));
    }
    Ok(pages.cast_unsigned())
}

fn low12(target: u64, scale: u32) -> Result<u64> {
    let offset = target & 0xfff;
    if !offset.is_multiple_of(1 << scale) {
        return Err(refused(
            "the target of a scaled load or store is not aligned",
        ));
    }
    Ok(offset >> scale)
}

fn apply_aarch64(kind: u32, site: Site<'_>, values: &Values) -> Result<()> {
    let p = site.address;
    let s = values.symbol.wrapping_add_signed(values.addend);
    let slot = values.slot.wrapping_add_signed(values.addend);
    let distance = s.wrapping_sub(p);
    match kind {
        elf::R_AARCH64_NONE | 256 => Ok(()),
        elf::R_AARCH64_ABS64 => site.write_u64(s),
        elf::R_AARCH64_PREL64 => site.write_u64(distance),
        elf::R_AARCH64_PREL32 => site.write_i32(distance),
        elf::R_AARCH64_ABS32 => site.write_i32(s),
        elf::R_AARCH64_MOVW_UABS_G0 | elf::R_AARCH64_MOVW_UABS_G0_NC => {
            site.patch(|w| field(w, s, 5, 16))
        }
        elf::R_AARCH64_MOVW_UABS_G1 | elf::R_AARCH64_MOVW_UABS_G1_NC => {
            site.patch(|w| field(w, s >> 16, 5, 16))
        }
        elf::R_AARCH64_MOVW_UABS_G2 | elf::R_AARCH64_MOVW_UABS_G2_NC => {
            site.patch(|w| field(w, s >> 32, 5, 16))
        }
        elf::R_AARCH64_MOVW_UABS_G3 => site.patch(|w| field(w, s >> 48, 5, 16)),
        elf::R_AARCH64_ADR_PREL_LO21 => {
            if !(-(1i64 << 20)..1 << 20).contains(&distance.cast_signed()) {
                return Err(refused("an address is out of reach"));
            }
            site.patch(|w| adr(w, distance))
        }
        elf::R_AARCH64_ADR_PREL_PG_HI21 | elf::R_AARCH64_ADR_PREL_PG_HI21_NC => {
            let pages = page_distance(s, p)?;
            site.patch(|w| adr(w, pages))
        }
        elf::R_AARCH64_ADR_GOT_PAGE => {
            let pages = page_distance(slot, p)?;
            site.patch(|w| adr(w, pages))
        }
        elf::R_AARCH64_LD64_GOT_LO12_NC => {
            let offset = low12(slot, 3)?;
            site.patch(|w| field(w, offset, 10, 12))
        }
        elf::R_AARCH64_ADD_ABS_LO12_NC
        | elf::R_AARCH64_LDST8_ABS_LO12_NC
        | elf::R_AARCH64_LDST16_ABS_LO12_NC
        | elf::R_AARCH64_LDST32_ABS_LO12_NC
        | elf::R_AARCH64_LDST64_ABS_LO12_NC
        | elf::R_AARCH64_LDST128_ABS_LO12_NC => {
            let offset = low12(s, scale(kind))?;
            site.patch(|w| field(w, offset, 10, 12))
        }
        elf::R_AARCH64_CALL26 | elf::R_AARCH64_JUMP26 => {
            let units = branch(distance, 26)?;
            site.patch(|w| field(w, units, 0, 26))
        }
        elf::R_AARCH64_CONDBR19 | elf::R_AARCH64_LD_PREL_LO19 => {
            let units = branch(distance, 19)?;
            site.patch(|w| field(w, units, 5, 19))
        }
        elf::R_AARCH64_TSTBR14 => {
            let units = branch(distance, 14)?;
            site.patch(|w| field(w, units, 5, 14))
        }
        other => Err(refused(format!(
            "relocation type {other} is not known for AArch64"
        ))),
    }
}

/// Log2 of the unit that a 12-bit offset counts in.
fn scale(kind: u32) -> u32 {
    match kind {
        elf::R_AARCH64_LDST16_ABS_LO12_NC => 1,
        elf::R_AARCH64_LDST32_ABS_LO12_NC => 2,
        elf::R_AARCH64_LDST64_ABS_LO12_NC => 3,
        elf::R_AARCH64_LDST128_ABS_LO12_NC => 4,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies one relocation to an instruction at 0x40_0000.
    fn patched(machine: Machine, kind: u32, word: u32, symbol: u64, addend: i64) -> Result<u32> {
        let mut bytes = word.to_le_bytes();
        let site = Site {
            bytes: &mut bytes,
            address: 0x40_0000,
        };
        let values = Values {
            symbol,
            addend,
            slot: 0x50_1238,
            table: 0x50_0000,
        };
        apply(machine, kind, site, &values)?;
        Ok(u32::from_le_bytes(bytes))
    }

    #[test]
    fn aarch64_instructions() {
        let a64 =
            |kind, word, symbol, addend| patched(Machine::AArch64, kind, word, symbol, addend);
        // bl: forward by 0x1000 is 0x400 words; backward by 4.
        assert_eq!(
            a64(elf::R_AARCH64_CALL26, 0x9400_0000, 0x40_1000, 0).unwrap(),
            0x9400_0400
        );
        assert_eq!(
            a64(elf::R_AARCH64_CALL26, 0x9400_0000, 0x40_0000, -4).unwrap(),
            0x97ff_ffff
        );
        // adrp x0, one page up: immlo is 1.
        let adrp = a64(elf::R_AARCH64_ADR_PREL_PG_HI21, 0x9000_0000, 0x40_1ff8, 0);
        assert_eq!(adrp.unwrap(), 0xb000_0000);
        // ldr q0, [x0, #0xff0]: the offset counts in 16 bytes.
        let ldr = a64(
            elf::R_AARCH64_LDST128_ABS_LO12_NC,
            0x3dc0_0000,
            0x40_1ff0,
            0,
        );
        assert_eq!(ldr.unwrap(), 0x3dc0_0000 | 0xff << 10);
        assert!(
            a64(
                elf::R_AARCH64_LDST128_ABS_LO12_NC,
                0x3dc0_0000,
                0x40_1ff8,
                0
            )
            .is_err()
        );
        assert!(a64(elf::R_AARCH64_CALL26, 0x9400_0000, 0x40_0000 + (1 << 27), 0).is_err());
        let got = a64(elf::R_AARCH64_LD64_GOT_LO12_NC, 0xf940_0000, 0, 0);
        assert_eq!(got.unwrap(), 0xf940_0000 | (0x238 >> 3) << 10);
    }

    #[test]
    fn x86_64_distances() {
        let x86 = |kind, symbol, addend| patched(Machine::X86_64, kind, 0, symbol, addend);
        assert_eq!(x86(elf::R_X86_64_PLT32, 0x40_0010, -4).unwrap(), 0xc);
        assert_eq!(x86(elf::R_X86_64_PC32, 0x3f_fffc, 0).unwrap(), 0xffff_fffc);
        assert_eq!(x86(elf::R_X86_64_GOTPCREL, 0, -4).unwrap(), 0x10_1234);
        assert!(x86(elf::R_X86_64_PC32, 0x7000_0000_0000, 0).is_err());
        assert!(
            x86(elf::R_X86_64_64, 0, 0).is_err(),
            "eight bytes do not fit in four"
        );
        assert!(x86(elf::R_X86_64_TPOFF32, 0, 0).is_err());
    }
}
