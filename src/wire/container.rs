//! What JAX puts bundles into: entries of its persistent compilation cache, and payloads of
//! `jax.experimental.serialize_executable`.
//!
//! An entry is compressed, with zlib or zstd; inside are the seconds that compiling took, as a
//! 32-bit number, high byte first, and the bundle. A payload is a pickle in which the bundle is the
//! second part of the persistent id `('exec', bytes)`; nothing of it is executed here. Sources:
//! `jax/_src/compilation_cache.py`, `jax/experimental/serialize_executable.py`, and for opcodes
//! Python's `pickletools`.

use std::io::Read;
use std::io::Write;

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::CompressionLevel;
use ruzstd::encoding::compress_to_vec;

use crate::base::Result;
use crate::wire::number::bad;

/// What a bundle was taken out of, and can be put back into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Container {
    /// An entry of the compilation cache.
    CacheEntry {
        /// How it is compressed.
        compression: Codec,
        /// How long compiling took, as it stands in the entry.
        seconds: [u8; 4],
    },
    /// A payload of `serialize_executable`.
    Payload {
        /// The pickle up to the bundle, without frames.
        before: Vec<u8>,
        /// The pickle after it.
        after: Vec<u8>,
    },
}

/// How an entry of the cache is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Where Python has no module for the other.
    Zlib,
    /// Elsewhere.
    Zstd,
}

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Largest bundle: what a proto can be.
const MAX_BYTES: u64 = 1 << 31;
/// What any file may grow to.
const FREE_BYTES: u64 = 1 << 28;
/// How much larger a file may grow beyond that.
const MAX_RATIO: u64 = 2000;

/// The parts of a pickle that protocols 4 and 5 write; see `pickletools`.
mod opcode {
    pub(super) const PROTO: u8 = 0x80;
    pub(super) const FRAME: u8 = 0x95;
    pub(super) const MEMOIZE: u8 = 0x94;
    pub(super) const STOP: u8 = b'.';
    pub(super) const SHORT_BINUNICODE: u8 = 0x8c;
    pub(super) const SHORT_BINBYTES: u8 = b'C';
    pub(super) const BINBYTES: u8 = b'B';
    pub(super) const BINBYTES8: u8 = 0x8e;
}

impl Container {
    /// What it is, in words.
    pub fn name(&self) -> &'static str {
        match self {
            Self::CacheEntry {
                compression: Codec::Zlib,
                ..
            } => "JAX compilation cache entry (zlib)",
            Self::CacheEntry {
                compression: Codec::Zstd,
                ..
            } => "JAX compilation cache entry (zstd)",
            Self::Payload { .. } => "serialize_executable payload",
        }
    }

    /// A file of this kind that holds a bundle.
    ///
    /// # Errors
    /// `XA1004` when the bundle is larger than a payload holds.
    pub fn around(&self, bundle: &[u8]) -> Result<Vec<u8>> {
        match self {
            Self::CacheEntry {
                compression,
                seconds,
            } => {
                let whole = [seconds.as_slice(), bundle].concat();
                match compression {
                    Codec::Zstd => Ok(compress_to_vec(whole.as_slice(), CompressionLevel::Fastest)),
                    Codec::Zlib => {
                        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
                        let written = encoder.write_all(&whole).and_then(|()| encoder.finish());
                        written.map_err(|e| bad(format!("the entry cannot be compressed: {e}")))
                    }
                }
            }
            Self::Payload { before, after } => {
                let length = u32::try_from(bundle.len());
                let length = length.map_err(|_| bad("the bundle is too large for a pickle"))?;
                let length = [&[opcode::BINBYTES], length.to_le_bytes().as_slice()].concat();
                // All that follows the version is one frame.
                let (version, before) = before.split_at(before.len().min(2));
                let parts = [before, &length, bundle, after];
                let size = parts.iter().map(|part| part.len() as u64).sum::<u64>();
                let frame = [&[opcode::FRAME], size.to_le_bytes().as_slice()].concat();
                Ok([&[version, &frame], parts.as_slice()].concat().concat())
            }
        }
    }
}

/// Takes a bundle out of what JAX put it into; nothing when the bytes do not begin as that does.
///
/// # Errors
/// `XA1004` when they do, and are damaged.
pub fn open(bytes: &[u8]) -> Option<Result<(Container, Vec<u8>)>> {
    let compression = codec(bytes);
    match (compression, bytes) {
        (Some(codec), _) => Some(open_entry(codec, bytes)),
        // An envelope could begin with these two bytes, but not with a frame after them.
        (None, [opcode::PROTO, 4 | 5, opcode::FRAME, ..]) => open_payload(bytes).transpose(),
        _ => None,
    }
}

/// The compression that the first bytes tell.
fn codec(bytes: &[u8]) -> Option<Codec> {
    if bytes.starts_with(&ZSTD_MAGIC) {
        return Some(Codec::Zstd);
    }
    match bytes {
        // The method, with the usual window, and the level that writers name.
        [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..] => Some(Codec::Zlib),
        _ => None,
    }
}

fn open_entry(codec: Codec, bytes: &[u8]) -> Result<(Container, Vec<u8>)> {
    let most = (bytes.len() as u64)
        .saturating_mul(MAX_RATIO)
        .clamp(FREE_BYTES, MAX_BYTES);
    let mut whole = Vec::new();
    let read = match codec {
        Codec::Zlib => ZlibDecoder::new(bytes)
            .take(most + 1)
            .read_to_end(&mut whole)
            .map_err(|e| e.to_string()),
        Codec::Zstd => StreamingDecoder::new(bytes)
            .map_err(|e| e.to_string())
            .and_then(|decoder| {
                let mut decoder = decoder.take(most + 1);
                decoder.read_to_end(&mut whole).map_err(|e| e.to_string())
            }),
    };
    read.map_err(|e| bad(format!("the compressed entry is damaged: {e}")))?;
    if whole.len() as u64 > most {
        return Err(bad(
            "the compressed entry grows beyond what a bundle can be",
        ));
    }
    let Some(&seconds) = whole.first_chunk::<4>() else {
        return Err(bad("the compressed entry is too short to hold a bundle"));
    };
    whole.drain(..seconds.len());
    let container = Container::CacheEntry {
        compression: codec,
        seconds,
    };
    Ok((container, whole))
}

fn open_payload(bytes: &[u8]) -> Result<Option<(Container, Vec<u8>)>> {
    let mut reader = Pickle { rest: bytes };
    let mut before = Vec::new();
    let mut after = Vec::new();
    let mut bundle = None;
    // Whether the last thing read was the word that marks an executable.
    let mut is_marked = false;
    loop {
        let (code, argument, whole) = reader.next()?;
        let kept = match bundle {
            None => &mut before,
            Some(_) => &mut after,
        };
        match code {
            // Frames say how far ahead a reader may read; a pickle does without them.
            opcode::FRAME => continue,
            opcode::BINBYTES | opcode::BINBYTES8 | opcode::SHORT_BINBYTES if is_marked => {
                if bundle.is_some() {
                    return Err(bad("the payload holds several executables"));
                }
                bundle = Some(argument.to_vec());
                is_marked = false;
                continue;
            }
            opcode::MEMOIZE => {}
            opcode::SHORT_BINUNICODE => is_marked = argument == b"exec",
            _ => is_marked = false,
        }
        kept.extend(whole);
        if code == opcode::STOP {
            break;
        }
    }
    if !reader.rest.is_empty() {
        return Err(bad("bytes follow the end of the payload's pickle"));
    }
    // A pickle of something else.
    let Some(bundle) = bundle else {
        return Ok(None);
    };
    Ok(Some((Container::Payload { before, after }, bundle)))
}

/// Walks over a pickle without executing anything.
struct Pickle<'a> {
    rest: &'a [u8],
}

impl<'a> Pickle<'a> {
    /// An opcode, its argument without a length before it, and both as they stand.
    fn next(&mut self) -> Result<(u8, &'a [u8], &'a [u8])> {
        let start = self.rest;
        let cut = || bad("the payload's pickle ends early");
        let code = *self.take(1).ok_or_else(cut)?.first().ok_or_else(cut)?;
        let argument = match code {
            b'K' | b'h' | b'q' | opcode::PROTO | 0x82 => self.take(1),
            b'M' | 0x83 => self.take(2),
            b'J' | b'j' | b'r' | 0x84 => self.take(4),
            b'G' | opcode::FRAME => self.take(8),
            opcode::SHORT_BINBYTES | opcode::SHORT_BINUNICODE | b'U' | 0x8a => self.counted(1),
            opcode::BINBYTES | b'T' | b'X' | 0x8b => self.counted(4),
            opcode::BINBYTES8 | 0x8d | 0x96 => self.counted(8),
            b'('
            | b')'
            | b'0'
            | b'1'
            | b'2'
            | b'N'
            | b'Q'
            | b'R'
            | b']'
            | b'a'
            | b'b'
            | b'd'
            | b'e'
            | b'l'
            | b'o'
            | b's'
            | b't'
            | b'u'
            | b'}'
            | opcode::STOP
            | 0x81
            | 0x85..=0x89
            | 0x8f..=opcode::MEMOIZE
            | 0x97
            | 0x98 => Some(&[][..]),
            _ => {
                let message = format!("the payload's pickle has the unknown opcode {code:#04x}");
                return Err(bad(message));
            }
        };
        let argument = argument.ok_or_else(cut)?;
        let whole = &start[..start.len() - self.rest.len()];
        Ok((code, argument, whole))
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    /// As many bytes as the number says that comes first, in so many bytes, low byte first.
    fn counted(&mut self, width: usize) -> Option<&'a [u8]> {
        let mut number = [0; 8];
        number[..width].copy_from_slice(self.take(width)?);
        self.take(usize::try_from(u64::from_le_bytes(number)).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `pickle.dumps` by a pickler whose persistent id of an object is `('exec', b'bundle')`, of a
    /// list of that object and 7, protocol 4.
    const PICKLE: &[u8] =
        b"\x80\x04\x95\x1a\x00\x00\x00\x00\x00\x00\x00]\x94(\x8c\x04exec\x94C\x06\
        bundle\x94\x86\x94QK\x07e.";

    #[test]
    fn a_payload_is_taken_apart_and_put_together() {
        let (container, bundle) = open(PICKLE).unwrap().unwrap();
        assert_eq!(bundle, b"bundle");
        let again = container.around(b"another").unwrap();
        // With a length of four bytes.
        let wanted = b"\x80\x04\x95\x1e\x00\x00\x00\x00\x00\x00\x00]\x94(\x8c\x04exec\x94\
            B\x07\x00\x00\x00another\x94\x86\x94QK\x07e.";
        assert_eq!(again, wanted);
        let (container_again, inside) = open(&again).unwrap().unwrap();
        assert_eq!(
            (container_again, inside.as_slice()),
            (container, b"another".as_slice())
        );
        for end in 3..PICKLE.len() {
            assert!(open(&PICKLE[..end]).unwrap().is_err(), "{end}");
        }
    }

    #[test]
    fn entries_of_both_compressions_come_back() {
        let bundle: Vec<u8> = (0..5000u32).map(|i| (i * i / 7) as u8).collect();
        for compression in [Codec::Zlib, Codec::Zstd] {
            let container = Container::CacheEntry {
                compression,
                seconds: [0, 0, 1, 2],
            };
            let entry = container.around(&bundle).unwrap();
            let (found, inside) = open(&entry).unwrap().unwrap();
            assert_eq!((found, &inside), (container, &bundle));
            assert!(open(&entry[..entry.len() / 2]).unwrap().is_err());
        }
        // What Python's zlib makes of four bytes of time and a word.
        let entry = b"\x78\x9c\x63\x60\x60\x60\x2c\x2a\x4d\x05\x00\x02\xb0\x01\x4e";
        let (container, inside) = open(entry).unwrap().unwrap();
        let wanted = Container::CacheEntry {
            compression: Codec::Zlib,
            seconds: [0, 0, 0, 1],
        };
        assert_eq!((container, inside.as_slice()), (wanted, &b"rue"[..]));
        assert!(open(b"\x0a\x05hello").is_none() && open(b"").is_none());
    }

    /// What grows out of all proportion is refused before it has grown: memory is bounded.
    #[test]
    fn small_entries_do_not_grow_large() {
        let block = |kind: u32, size: u32| (size << 3 | kind << 1).to_le_bytes()[..3].to_vec();
        let frame = |window: u8| [ZSTD_MAGIC.as_slice(), &[0, window]].concat();
        let refused = |entry: Vec<u8>| {
            let message = open(&entry).unwrap().unwrap_err().message;
            assert!(message.contains("entry is damaged"), "{message}");
        };
        // Runs of 128 KiB in a window of 32 GiB: a reader keeps as much as the window.
        let run = [block(1, 1 << 17), vec![0]].concat();
        refused([frame(25 << 3), run.repeat(20_000)].concat());
        // One block of copies of 131074 bytes, two bytes each; a block holds no more than 128 KiB.
        let count: u16 = 8000;
        let literals = [0x09, b'x'];
        let tables = [(count >> 8) as u8 + 128, count as u8, 0x54, 0, 0, 52];
        let copies = [vec![0xff; 2 * usize::from(count)], vec![1]].concat();
        let body = [literals.as_slice(), &tables, &copies].concat();
        let first = [block(0, 8), b"abcdefgh".to_vec()].concat();
        let second = [block(2, body.len() as u32), body].concat();
        refused([frame(10 << 3), first, second].concat());
    }

    /// A constant may be all zeros, which shrink to next to nothing.
    #[test]
    fn zeros_come_back() {
        let zeros = vec![0; 32 << 20];
        for compression in [Codec::Zlib, Codec::Zstd] {
            let container = Container::CacheEntry {
                compression,
                seconds: [0; 4],
            };
            let entry = container.around(&zeros).unwrap();
            assert!(entry.len() < zeros.len() / 1000);
            assert!(open(&entry).unwrap().unwrap().1 == zeros);
        }
    }
}
