//! What kind of input the bytes are, told from their content.

use crate::base::Cursor;
use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::front::jax_export;
use crate::wire;
use crate::wire::foreign;

/// A kind of program text or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputFormat {
    /// HLO as text.
    HloText,
    /// A serialized `HloModuleProto`, or a message that holds one (`HloProto`, `HloSnapshot`,
    /// `HloUnoptimizedSnapshot` in both its forms, `HloModuleProtoWithConfig`).
    HloProto,
    /// StableHLO, MHLO or CHLO as MLIR text.
    StablehloText,
    /// StableHLO (VHLO) as MLIR bytecode.
    StablehloBytecode,
    /// What `jax.export` serializes: a flatbuffer around bytecode.
    JaxExport,
}

impl InputFormat {
    /// Every format.
    pub const ALL: &'static [Self] = &[
        Self::HloText,
        Self::HloProto,
        Self::StablehloText,
        Self::StablehloBytecode,
        Self::JaxExport,
    ];
    /// The name that options take.
    pub fn name(self) -> &'static str {
        match self {
            Self::HloText => "hlo-text",
            Self::HloProto => "hlo-proto",
            Self::StablehloText => "stablehlo-text",
            Self::StablehloBytecode => "stablehlo-bytecode",
            Self::JaxExport => "jax-export",
        }
    }
    /// The format of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|format| format.name() == name)
    }
    /// What to call it in a message.
    pub fn description(self) -> &'static str {
        match self {
            Self::HloText => "HLO text",
            Self::HloProto => "an HLO proto",
            Self::StablehloText => "StableHLO text",
            Self::StablehloBytecode => "StableHLO bytecode",
            Self::JaxExport => "a jax.export artifact",
        }
    }
}

/// How MLIR bytecode begins.
const BYTECODE_MAGIC: &[u8] = b"ML\xefR";

/// Bytes in which the bytecode of a `jax.export` artifact must begin, if it is one.
const EXPORT_HEAD: usize = 1 << 20;

/// Bytes at the beginning of a text that must be free of control characters.
const CONTROL_HEAD: usize = 4096;

/// The format that the content shows.
///
/// # Errors
/// `INPUT_KIND` when it shows none.
pub fn detect(bytes: &[u8]) -> Result<InputFormat> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Diagnostic::error(codes::INPUT_KIND, "the input is empty"));
    }
    if bytes.starts_with(BYTECODE_MAGIC) {
        return Ok(InputFormat::StablehloBytecode);
    }
    // What has no control character at all is a text, though its bytes may pass for a message.
    if !bytes.iter().any(is_control) && !is_text_proto(bytes) {
        if let Some(error) = other(bytes) {
            return Err(error);
        }
        if let Some(format) = text_format(bytes) {
            return Ok(format);
        }
    }
    let end = wire::snapshot::large_header_end(bytes, bytes.len() as u64);
    let end = end.and_then(|end| usize::try_from(end).ok());
    let is_large = end.is_some_and(|end| {
        let mut rest = &bytes[..end];
        varint(&mut rest).is_some() && is_message(rest)
    });
    if jax_export::is_export(bytes) {
        return Ok(InputFormat::JaxExport);
    }
    if is_large || is_message(bytes) {
        return Ok(InputFormat::HloProto);
    }
    if is_text_proto(bytes) {
        let message = "a message in text form as a program";
        let help = "give it in its binary form; XLA dumps that with --xla_dump_hlo_as_proto";
        return Err(Diagnostic::unsupported(codes::INPUT_KIND, message).help(help));
    }
    if let Some(format) = text_format(bytes) {
        return Ok(format);
    }
    let head = &bytes[..bytes.len().min(EXPORT_HEAD)];
    if head
        .windows(BYTECODE_MAGIC.len())
        .any(|w| w == BYTECODE_MAGIC)
    {
        return Ok(InputFormat::JaxExport);
    }
    // What a module's proto begins with, its name or the module inside: the rest is damaged.
    if bytes[0] == 0x0a {
        return Ok(InputFormat::HloProto);
    }
    if let Some(error) = other(bytes) {
        return Err(error);
    }
    let message = "the input is no program: neither HLO nor StableHLO, nor a file of jax.export";
    let kinds: Vec<&str> = InputFormat::ALL.iter().map(|f| f.name()).collect();
    let help = format!("name the format if it is one of {}", kinds.join(", "));
    Err(Diagnostic::error(codes::INPUT_KIND, message).help(help))
}

/// What is wrong with the bytes when they are a file of another kind.
pub(super) fn other(bytes: &[u8]) -> Option<Box<Diagnostic>> {
    let what = foreign::look(bytes)?;
    let message = format!("this is {what}, not a program");
    let help = "a program is HLO, StableHLO, a snapshot of XLA or a file of jax.export";
    Some(Diagnostic::error(codes::INPUT_KIND, message).help(help))
}

/// What to call the program that the bytes are, when they are one.
pub fn program(bytes: &[u8]) -> Option<&'static str> {
    match detect(bytes).ok()? {
        InputFormat::HloProto => {
            wire::hlo::decode_any(bytes).ok()?;
            Some(match is_snapshot(bytes) {
                true => "a snapshot of XLA",
                false => InputFormat::HloProto.description(),
            })
        }
        format => Some(format.description()),
    }
}

/// Whether the bytes hold arguments beside a program.
pub fn is_snapshot(bytes: &[u8]) -> bool {
    let values = wire::snapshot::read(&mut std::io::Cursor::new(bytes));
    let has_any = |values: &wire::snapshot::Values| {
        let mut lists = values.arguments.iter();
        lists.any(|list| !list.is_empty())
    };
    matches!(values, Ok(Some(values)) if has_any(&values))
}

/// Whether the bytes are fields of a protobuf message, end to end. No text is.
fn is_message(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while !rest.is_empty() {
        let Some(tag) = varint(&mut rest) else {
            return false;
        };
        let skipped = match tag & 7 {
            0 => varint(&mut rest).map(|_| 0),
            1 => Some(8),
            2 => varint(&mut rest),
            5 => Some(4),
            _ => None,
        };
        let skipped = skipped.and_then(|n| usize::try_from(n).ok());
        match skipped.and_then(|n| rest.get(n..)) {
            Some(after) if tag >> 3 != 0 => rest = after,
            _ => return false,
        }
    }
    true
}

/// Takes a number of seven bits a byte.
fn varint(rest: &mut &[u8]) -> Option<u64> {
    let length = 1 + rest.iter().take(10).position(|b| b & 0x80 == 0)?;
    let (bytes, after) = rest.split_at(length);
    *rest = after;
    Some(
        bytes
            .iter()
            .rev()
            .fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f)),
    )
}

/// Whether the bytes begin as the text form of a module or of a message that holds one does.
fn is_text_proto(bytes: &[u8]) -> bool {
    let starts = [("hlo_module", b'{'), ("hlo", b'{'), ("name", b':')];
    starts.iter().any(|(word, next)| {
        let after = bytes.trim_ascii_start().strip_prefix(word.as_bytes());
        after.is_some_and(|after| after.trim_ascii_start().first() == Some(next))
    })
}

fn is_control(byte: &u8) -> bool {
    *byte < b' ' && !byte.is_ascii_whitespace()
}

/// The format of a text, when the bytes are one that begins as a program does.
fn text_format(bytes: &[u8]) -> Option<InputFormat> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // A broken byte further on does not hide what the text begins with.
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?,
    };
    // Text has no control characters; a damaged proto has them near its beginning.
    if bytes.iter().take(CONTROL_HEAD).any(is_control) {
        return None;
    }
    let mut cursor = Cursor::new(text.strip_prefix('\u{feff}').unwrap_or(text));
    if matches!(cursor.peek(), b'#' | b'"') {
        return Some(InputFormat::StablehloText);
    }
    let percent = cursor.eat("%");
    match cursor.word()? {
        "HloModule" | "ENTRY" => Some(InputFormat::HloText),
        "module" | "builtin.module" if matches!(cursor.peek(), b'@' | b'a' | b'{') => {
            Some(InputFormat::StablehloText)
        }
        "func.func" => Some(InputFormat::StablehloText),
        _ if percent || matches!(cursor.peek(), b'{' | b'(') => Some(InputFormat::HloText),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_from_content() {
        for (bytes, format) in [
            (&b"HloModule m\n"[..], InputFormat::HloText),
            (b"\xef\xbb\xbf// comment\nHloModule", InputFormat::HloText),
            (b"/* x */ ENTRY e {", InputFormat::HloText),
            (b"%add (x: f32[]) -> f32[] {", InputFormat::HloText),
            (b"region.1 {", InputFormat::HloText),
            (b"HloModule m \xff", InputFormat::HloText),
            (b"module @jit_f attributes {", InputFormat::StablehloText),
            (b"#loc = loc(unknown)\nmodule", InputFormat::StablehloText),
            // Its bytes would pass for a message too.
            (b"module @ji", InputFormat::StablehloText),
            (
                b"ML\xefR\x07StableHLO_v1.0.0",
                InputFormat::StablehloBytecode,
            ),
            (b"\x10\0\0\0abcdML\xefR\x07", InputFormat::JaxExport),
        ] {
            assert_eq!(
                detect(bytes).unwrap(),
                format,
                "{}",
                String::from_utf8_lossy(bytes)
            );
        }
        for bytes in [
            &b""[..],
            b"\n",
            b"hello",
            b"\x00\x01",
            b"{}",
            b"hlo_module {\n  name: \"m\"\n}",
            b"name: \"m\"",
        ] {
            assert_eq!(detect(bytes).unwrap_err().code, codes::INPUT_KIND);
        }
    }

    #[test]
    fn protos_are_told_apart_from_text_whatever_their_names() {
        for length in 0..=70u8 {
            let mut bytes = vec![0x0a, length];
            bytes.extend(std::iter::repeat_n(b'x', usize::from(length)));
            bytes.extend([0x12, 1, b'y']);
            assert_eq!(
                detect(&bytes).unwrap(),
                InputFormat::HloProto,
                "length {length}"
            );
            bytes.pop();
            assert_eq!(
                detect(&bytes).unwrap(),
                InputFormat::HloProto,
                "cut, length {length}"
            );
        }
        assert_eq!(detect(b"\nHloModule m\n").unwrap(), InputFormat::HloText);
    }
}
