//! Images of code: PTX as text, or fat binaries with PTX inside.

#![allow(unsafe_code, reason = "an image comes as a pointer without a length")]

use crate::simulator::driver::abi::In;
use crate::simulator::driver::status::Status;
use crate::target::CapabilitySuffix;
use crate::target::ComputeCapability;

/// First word of a fat binary.
const FATBIN: u32 = 0xba55_ed50;
/// First word of the structure that points to one.
const WRAPPER: u32 = 0x4662_43b1;
/// First word of a compiled image.
const ELF: u32 = 0x464c_457f;
/// First word of a Zstandard frame.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// An entry's flag: its bytes are compressed.
const COMPRESSED: u64 = 0xa000;
/// An entry's kind: PTX.
const PTX: u16 = 1;
/// The newest version of PTX that the driver's compiler knows.
const NEWEST: (u32, u32) = (9, 0);
/// Most bytes that an image may have.
const LARGEST: u64 = 1 << 30;

/// Why an image cannot be used, with what a log should say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: Status,
    pub(super) message: String,
}

impl Refusal {
    /// A refusal.
    pub(super) fn new(status: Status, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }
}

/// PTX that was found, and what it was made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) text: String,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(two.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(four.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let eight = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(eight.try_into().ok()?))
}

/// The PTX of an image at a pointer, which tells its own length.
pub(super) fn from_pointer(image: In<u8>, capability: ComputeCapability) -> Result<Found, Refusal> {
    if image.is_null() {
        return Err(Refusal::new(Status::INVALID_VALUE, "no image"));
    }
    // A text of fewer than four bytes has its end among them, so they are read one by one.
    let mut head = [0_u8; 4];
    for (index, byte) in head.iter_mut().enumerate() {
        *byte = image.byte_add(index).get().unwrap_or(0);
        if *byte == 0 {
            break;
        }
    }
    match u32::from_le_bytes(head) {
        ELF => Err(compiled(capability)),
        FATBIN => {
            let size = image.byte_add(8).cast::<u64>().get().unwrap_or(0);
            let header = image.byte_add(6).cast::<u16>().get().unwrap_or(0);
            let whole = size.saturating_add(u64::from(header));
            if whole > LARGEST {
                return Err(Refusal::new(
                    Status::INVALID_IMAGE,
                    "a fat binary of over 1 GiB",
                ));
            }
            from_bytes(image.bytes(whole as usize), capability)
        }
        WRAPPER => {
            let inner = image.byte_add(8).cast::<usize>().get().unwrap_or(0);
            let inner = In::<u8>::new(inner as *const u8);
            if inner.is_null() || inner.cast::<u32>().get() == Ok(WRAPPER) {
                return Err(Refusal::new(
                    Status::INVALID_IMAGE,
                    "a wrapper around nothing",
                ));
            }
            from_pointer(inner, capability)
        }
        _ => {
            let text = image.cast().text_bytes().unwrap_or(b"");
            ptx(text, capability)
        }
    }
}

/// The PTX of an image whose bytes are all known.
pub(super) fn from_bytes(bytes: &[u8], capability: ComputeCapability) -> Result<Found, Refusal> {
    match u32_at(bytes, 0) {
        Some(ELF) => Err(compiled(capability)),
        Some(FATBIN) => fat(bytes, capability),
        _ => {
            let end = bytes.iter().position(|&byte| byte == 0);
            ptx(&bytes[..end.unwrap_or(bytes.len())], capability)
        }
    }
}

fn compiled(capability: ComputeCapability) -> Refusal {
    Refusal::new(
        Status::NO_BINARY_FOR_GPU,
        format!(
            "the image is machine code and nothing else; a simulated {} runs PTX, so load the PTX \
             or a fat binary that has it",
            capability.sm_name()
        ),
    )
}

fn ptx(bytes: &[u8], capability: ComputeCapability) -> Result<Found, Refusal> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(Refusal::new(
            Status::INVALID_IMAGE,
            "the image is neither PTX nor a fat binary",
        ));
    };
    let Some(target) = target_of(text) else {
        return Err(Refusal::new(
            Status::INVALID_PTX,
            "the image has no .target directive, so it is not PTX",
        ));
    };
    if let Some(version) = version_of(text).filter(|&version| version > NEWEST) {
        return Err(Refusal::new(
            Status::UNSUPPORTED_PTX_VERSION,
            format!(
                "the PTX is of version {}.{}, the driver knows {}.{} and older ones",
                version.0, version.1, NEWEST.0, NEWEST.1
            ),
        ));
    }
    if !runs_on(target, capability) {
        return Err(Refusal::new(
            Status::NO_BINARY_FOR_GPU,
            format!(
                "the PTX is for {}, which a {} does not run",
                target.sm_name(),
                capability.sm_name()
            ),
        ));
    }
    Ok(Found {
        text: text.to_owned(),
    })
}

/// Whether PTX for a target can be compiled for a capability.
pub(super) fn runs_on(target: ComputeCapability, device: ComputeCapability) -> bool {
    let (wanted, had) = ((target.major, target.minor), (device.major, device.minor));
    match target.suffix {
        CapabilitySuffix::None => wanted <= had,
        CapabilitySuffix::Accelerated => wanted == had,
        CapabilitySuffix::Family => target.major == device.major && target.minor <= device.minor,
    }
}

/// The version of the language that a PTX text names.
fn version_of(text: &str) -> Option<(u32, u32)> {
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.trim_start().strip_prefix(".version"))?;
    let (major, minor) = line.trim().split_once('.')?;
    let digits = minor.find(|c: char| !c.is_ascii_digit());
    let minor = &minor[..digits.unwrap_or(minor.len())];
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The target that a PTX text names.
pub(super) fn target_of(text: &str) -> Option<ComputeCapability> {
    let line = text
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(".target"))?;
    let name = line.trim_start().strip_prefix("sm_")?;
    let digits: String = name.chars().take_while(char::is_ascii_digit).collect();
    let number: u32 = digits.parse().ok()?;
    let suffix = match name[digits.len()..].chars().next() {
        Some('a') => CapabilitySuffix::Accelerated,
        Some('f') => CapabilitySuffix::Family,
        _ => CapabilitySuffix::None,
    };
    Some(ComputeCapability {
        major: number / 10,
        minor: number % 10,
        suffix,
    })
}

/// Goes through the entries of a fat binary for the best PTX.
fn fat(bytes: &[u8], capability: ComputeCapability) -> Result<Found, Refusal> {
    let damaged = || Refusal::new(Status::INVALID_IMAGE, "the fat binary ends early");
    let mut at = usize::from(u16_at(bytes, 6).ok_or_else(damaged)?);
    let size = u64_at(bytes, 8).ok_or_else(damaged)?;
    let end = (at as u64).saturating_add(size).min(bytes.len() as u64) as usize;
    let mut best: Option<(u32, Found)> = None;
    let mut refusal: Option<Refusal> = None;
    let mut machine_code = false;
    while at + 0x40 <= end {
        let kind = u16_at(bytes, at).ok_or_else(damaged)?;
        let header = u32_at(bytes, at + 4).ok_or_else(damaged)? as usize;
        let padded = u64_at(bytes, at + 8).ok_or_else(damaged)?;
        let padded = usize::try_from(padded).map_err(|_| damaged())?;
        let start = at.checked_add(header).ok_or_else(damaged)?;
        let next = start.checked_add(padded).ok_or_else(damaged)?;
        if header < 0x40 || next > bytes.len() || next <= at {
            return Err(damaged());
        }
        if kind == PTX {
            let arch = u32_at(bytes, at + 0x1c).ok_or_else(damaged)?;
            let found =
                entry(bytes, at, &bytes[start..next]).and_then(|text| ptx(&text, capability));
            match found {
                Ok(found) if best.as_ref().is_none_or(|(other, _)| *other < arch) => {
                    best = Some((arch, found));
                }
                Ok(_) => {}
                Err(why) => refusal = Some(why),
            }
        } else {
            machine_code = true;
        }
        at = next;
    }
    match (best, refusal) {
        (Some((_, found)), _) => Ok(found),
        (None, Some(refusal)) => Err(refusal),
        (None, None) if machine_code => Err(compiled(capability)),
        (None, None) => Err(Refusal::new(
            Status::INVALID_IMAGE,
            "the fat binary is empty",
        )),
    }
}

/// The text of a PTX entry.
fn entry(bytes: &[u8], at: usize, payload: &[u8]) -> Result<Vec<u8>, Refusal> {
    let damaged = || Refusal::new(Status::INVALID_IMAGE, "a damaged entry of the fat binary");
    let flags = u64_at(bytes, at + 0x28).ok_or_else(damaged)?;
    let text = if flags & COMPRESSED == 0 {
        payload.to_vec()
    } else {
        let packed = u32_at(bytes, at + 0x10).ok_or_else(damaged)? as usize;
        let size = u64_at(bytes, at + 0x38).ok_or_else(damaged)?;
        if size > LARGEST {
            return Err(damaged());
        }
        let packed = payload.get(..packed).unwrap_or(payload);
        if packed.starts_with(&ZSTD) {
            zstd(packed, size as usize).ok_or_else(damaged)?
        } else {
            lz4(packed, size as usize).ok_or_else(damaged)?
        }
    };
    let end = text.iter().position(|&byte| byte == 0);
    Ok(text[..end.unwrap_or(text.len())].to_vec())
}

fn zstd(packed: &[u8], size: usize) -> Option<Vec<u8>> {
    use std::io::Read;
    let decoder = ruzstd::decoding::StreamingDecoder::new(packed).ok()?;
    let mut text = Vec::new();
    decoder.take(size as u64).read_to_end(&mut text).ok()?;
    Some(text)
}

/// Unpacks an LZ4 block: runs of literals and copies from what is unpacked already.
fn lz4(mut packed: &[u8], size: usize) -> Option<Vec<u8>> {
    fn take<'a>(packed: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
        let (head, rest) = packed.split_at_checked(count)?;
        *packed = rest;
        Some(head)
    }
    fn length(packed: &mut &[u8], start: u8) -> Option<usize> {
        let mut length = usize::from(start);
        if start == 15 {
            loop {
                let byte = take(packed, 1)?[0];
                length += usize::from(byte);
                if byte != 255 {
                    break;
                }
            }
        }
        Some(length)
    }
    let mut out = Vec::with_capacity(size);
    while !packed.is_empty() && out.len() < size {
        let token = take(&mut packed, 1)?[0];
        let literals = length(&mut packed, token >> 4)?;
        out.extend_from_slice(take(&mut packed, literals)?);
        if packed.is_empty() || out.len() >= size {
            break;
        }
        let offset = usize::from(u16_at(packed, 0)?);
        take(&mut packed, 2)?;
        let copied = length(&mut packed, token & 15)? + 4;
        let from = out.len().checked_sub(offset).filter(|_| offset > 0)?;
        if out.len() + copied > size {
            return None;
        }
        for index in from..from + copied {
            out.push(out[index]);
        }
    }
    (out.len() == size).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

    fn h100() -> ComputeCapability {
        ComputeCapability {
            major: 9,
            minor: 0,
            suffix: CapabilitySuffix::Accelerated,
        }
    }

    fn fatbin(entries: &[(u16, u32, u64, u64, &[u8])]) -> Vec<u8> {
        let mut body = Vec::new();
        for (kind, arch, flags, size, payload) in entries {
            let padded = payload.len().next_multiple_of(8);
            let mut header = vec![0_u8; 0x40];
            header[0..2].copy_from_slice(&kind.to_le_bytes());
            header[4..8].copy_from_slice(&0x40_u32.to_le_bytes());
            header[8..16].copy_from_slice(&(padded as u64).to_le_bytes());
            header[16..20].copy_from_slice(&(payload.len() as u32).to_le_bytes());
            header[0x1c..0x20].copy_from_slice(&arch.to_le_bytes());
            header[0x28..0x30].copy_from_slice(&flags.to_le_bytes());
            header[0x38..0x40].copy_from_slice(&size.to_le_bytes());
            body.extend(header);
            body.extend_from_slice(payload);
            body.resize(body.len().next_multiple_of(8), 0);
        }
        let mut image = FATBIN.to_le_bytes().to_vec();
        image.extend(1_u16.to_le_bytes());
        image.extend(16_u16.to_le_bytes());
        image.extend((body.len() as u64).to_le_bytes());
        image.extend(body);
        image
    }

    #[test]
    fn lz4_blocks_unpack() {
        // Four literals, then twelve bytes copied from four back, then a last literal.
        let packed = [0x48, b'a', b'b', b'c', b'd', 4, 0, 0x10, b'!'];
        assert_eq!(lz4(&packed, 17).as_deref(), Some(&b"abcdabcdabcdabcd!"[..]));
        assert_eq!(lz4(&packed[..6], 17), None);
        assert_eq!(lz4(&[0x08, 1, 0], 12), None);
    }

    #[test]
    fn fat_binaries_give_the_best_ptx() {
        let newer = TEXT.replace("sm_80", "sm_90");
        let foreign = TEXT.replace("sm_80", "sm_100");
        let image = fatbin(&[
            (2, 90, 0, 0, b"\x7fELF"),
            (1, 80, 0, 0, TEXT.as_bytes()),
            (1, 90, 0, 0, newer.as_bytes()),
            (1, 100, 0, 0, foreign.as_bytes()),
        ]);
        assert_eq!(from_bytes(&image, h100()).expect("has PTX").text, newer);
        let pointer = In::new(image.as_ptr());
        assert_eq!(from_pointer(pointer, h100()).expect("has PTX").text, newer);
    }

    #[test]
    fn machine_code_alone_is_refused() {
        let image = fatbin(&[(2, 90, 0, 0, b"\x7fELF")]);
        let refusal = from_bytes(&image, h100()).expect_err("no PTX");
        assert_eq!(refusal.status, Status::NO_BINARY_FOR_GPU);
        let refusal = from_bytes(b"\x7fELF\x02\x01", h100()).expect_err("no PTX");
        assert_eq!(refusal.status, Status::NO_BINARY_FOR_GPU);
        assert!(refusal.message.contains("sm_90a"));
    }

    #[test]
    fn compressed_entries_unpack() {
        // All literals: a length of 15 and more, then the bytes.
        let mut packed = vec![0xf0, (TEXT.len() - 15) as u8];
        packed.extend_from_slice(TEXT.as_bytes());
        let image = fatbin(&[(1, 80, 0x2000, TEXT.len() as u64, &packed)]);
        assert_eq!(from_bytes(&image, h100()).expect("has PTX").text, TEXT);
        // A Zstandard frame: one segment, its size in a byte, one raw block that is the last.
        let mut packed = ZSTD.to_vec();
        packed.push(0x20);
        packed.push(TEXT.len() as u8);
        let block = (TEXT.len() as u32) << 3 | 1;
        packed.extend_from_slice(&block.to_le_bytes()[..3]);
        packed.extend_from_slice(TEXT.as_bytes());
        let image = fatbin(&[(1, 80, 0x8000, TEXT.len() as u64, &packed)]);
        assert_eq!(from_bytes(&image, h100()).expect("has PTX").text, TEXT);
    }

    #[test]
    fn any_bytes_are_refused_and_nothing_panics() {
        let image = fatbin(&[(1, 80, 0x2000, 1 << 40, b"xx"), (1, 80, 0, 0, b"")]);
        for end in 0..image.len() {
            assert!(from_bytes(&image[..end], h100()).is_err());
        }
    }

    #[test]
    fn newer_ptx_is_told() {
        let newer = TEXT.replace("8.0", "9.1");
        let refusal = from_bytes(newer.as_bytes(), h100()).expect_err("too new");
        assert_eq!(refusal.status, Status::UNSUPPORTED_PTX_VERSION);
        assert!(refusal.message.contains("9.1"), "{}", refusal.message);
        let newest = TEXT.replace("8.0", "9.0 // made by hand");
        assert!(from_bytes(newest.as_bytes(), h100()).is_ok());
    }

    #[test]
    fn targets_fit_devices() {
        let of =
            |name: &str| target_of(&format!(".version 8.0\n.target {name}, debug")).expect("named");
        assert!(runs_on(of("sm_80"), h100()));
        assert!(runs_on(of("sm_90a"), h100()));
        assert!(!runs_on(of("sm_100f"), h100()));
        assert!(!runs_on(of("sm_80a"), h100()));
    }
}
