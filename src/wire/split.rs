//! Messages cut into records: a Riegeli file whose first record, a `SplitProtoManifest`, says what
//! each other record is.
//!
//! A record is either a part of the message to merge or the content of one string or bytes field.
//! Merging is concatenation of serialized bytes, so a file reads as the bytes of its message.

use std::io::Cursor;

use prost::Message;
use prost::encoding::WireType;
use prost::encoding::encode_key;
use prost::encoding::encode_varint;
use riegeli::CompressionType;
use riegeli::ReaderOptions;
use riegeli::RecordReader;
use riegeli::RecordWriter;
use riegeli::WriterOptions;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::proto::xla as pb;
use crate::wire::number::bad;
use crate::wire::number::message;

/// The block header and the header of the signature chunk that every record file begins with.
const SIGNATURE: [u8; 64] = [
    0x83, 0xaf, 0x70, 0xd1, 0x0d, 0x88, 0x4a, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0,
    0, 0x91, 0xba, 0xc2, 0x3c, 0x92, 0x87, 0xe1, 0xa9, 0, 0, 0, 0, 0, 0, 0, 0, 0xe1, 0x9f, 0x13,
    0xc0, 0xe9, 0xb1, 0xc3, 0x72, 0x73, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
];

/// A file may hold at most this many bytes for each of its own, so that a small file cannot fill
/// the memory.
const MAX_EXPANSION: usize = 256;

/// What upstream calls a string or bytes field in a manifest.
const TYPE_STRING: i32 = 1;

/// One record to write.
pub enum Part<'a> {
    /// Serialized bytes of the message, to merge.
    Merge(&'a [u8]),
    /// The content of the string or bytes field of that number.
    Field(u32, &'a [u8]),
}

/// Whether the bytes begin as a record file does.
pub fn is_records(bytes: &[u8]) -> bool {
    bytes.starts_with(&SIGNATURE)
}

fn failed(error: impl std::fmt::Display) -> Box<Diagnostic> {
    bad(format!("the record file is damaged: {error}"))
}

/// The record file of a message cut into these parts.
///
/// # Errors
/// Internal, when the record writer fails.
pub fn write(type_name: &str, parts: &[Part<'_>]) -> Result<Vec<u8>> {
    use pb::record::FieldOverrideRecord;
    use pb::record::ProtoMergeRecord;
    use pb::record::RecordType;
    use pb::record::field_override_record::FieldPathPart;
    let record = |part: &Part<'_>| pb::Record {
        record_type: Some(match part {
            Part::Merge(_) => RecordType::ProtoMergeRecord(ProtoMergeRecord {}),
            Part::Field(number, _) => RecordType::FieldOverrideRecord(FieldOverrideRecord {
                field_path: vec![FieldPathPart {
                    field_number: number.cast_signed(),
                    index: None,
                }],
                field_type: TYPE_STRING,
            }),
        }),
    };
    let manifest = pb::SplitProtoManifest {
        result_proto_type: type_name.to_owned(),
        records: parts.iter().map(record).collect(),
    };
    let internal = |error: riegeli::RiegeliError| {
        Diagnostic::internal(codes::INTERNAL, format!("writing records: {error}"))
    };
    let mut out = Vec::new();
    let options = WriterOptions::new().compression(CompressionType::Snappy);
    let mut writer = RecordWriter::new(&mut out, options).map_err(internal)?;
    writer
        .write_record(&manifest.encode_to_vec())
        .map_err(internal)?;
    for part in parts {
        let (Part::Merge(bytes) | Part::Field(_, bytes)) = part;
        writer.write_record(bytes).map_err(internal)?;
    }
    writer.close().map_err(internal)?;
    Ok(out)
}

/// A record file, read: the name of the message and its serialized bytes.
pub struct Joined {
    /// Full name of the message.
    pub type_name: String,
    /// Its serialized bytes.
    pub bytes: Vec<u8>,
}

/// Reads a record file back to the bytes of its message.
///
/// # Errors
/// `XA1004` when the file is damaged or its manifest does not fit its records; `XA7003` for a
/// manifest that overrides anything but a field of the message itself.
pub fn read(file: &[u8]) -> Result<Joined> {
    let limit = file.len().saturating_mul(MAX_EXPANSION);
    let mut reader = RecordReader::new(Cursor::new(file), ReaderOptions::new()).map_err(failed)?;
    let mut total = 0usize;
    let mut next = || -> Result<Option<Vec<u8>>> {
        let record = reader.read_record().map_err(failed)?;
        total = total.saturating_add(record.as_ref().map_or(0, Vec::len));
        match total <= limit {
            true => Ok(record),
            false => Err(failed(format!("it expands to more than {limit} bytes"))),
        }
    };
    let manifest = next()?.ok_or_else(|| failed("it has no manifest"))?;
    let manifest: pb::SplitProtoManifest = message(&manifest, "xla.SplitProtoManifest")?;
    let mut bytes = Vec::new();
    let count = manifest.records.len();
    for (i, record) in manifest.records.iter().enumerate() {
        let content = next()?;
        let content = content.ok_or_else(|| failed(format!("record {i} of {count} is missing")))?;
        append(record, &content, &mut bytes)?;
    }
    if next()?.is_some() {
        return Err(failed(format!("it goes on after its {count} records")));
    }
    Ok(Joined {
        type_name: manifest.result_proto_type,
        bytes,
    })
}

/// Adds a record's part to the bytes of the message. Kinds of records that are newer than this
/// reader are passed over, as upstream does.
fn append(record: &pb::Record, content: &[u8], bytes: &mut Vec<u8>) -> Result<()> {
    use pb::record::RecordType;
    match &record.record_type {
        None => {}
        Some(RecordType::ProtoMergeRecord(_)) => bytes.extend_from_slice(content),
        Some(RecordType::FieldOverrideRecord(field)) => {
            let number = match field.field_path.as_slice() {
                [part] if part.index.is_none() => u32::try_from(part.field_number).ok(),
                [] => return Err(bad("a record overrides a field without a path")),
                _ => None,
            };
            let number = number.filter(|n| (1..1 << 29).contains(n));
            let Some(number) = number.filter(|_| field.field_type == TYPE_STRING) else {
                return Err(Diagnostic::unsupported(
                    codes::BUNDLE_UNSUPPORTED,
                    "a record that overrides a nested or repeated field, or no string",
                ));
            };
            encode_key(number, WireType::LengthDelimited, bytes);
            encode_varint(content.len() as u64, bytes);
            bytes.extend_from_slice(content);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_what_it_split() {
        let large = vec![7u8; 200_000];
        let parts = [
            Part::Field(1, large.as_slice()),
            Part::Merge(b"\x1a\x02hi"),
            Part::Merge(b""),
        ];
        let file = write("xla.Thing", &parts).unwrap();
        assert!(is_records(&file));
        assert!(file.len() < 20_000, "compressed: {}", file.len());
        let joined = read(&file).unwrap();
        assert_eq!(joined.type_name, "xla.Thing");
        assert!(joined.bytes.starts_with(b"\x0a\xc0\x9a\x0c\x07"));
        assert!(joined.bytes.ends_with(b"\x1a\x02hi"));
        assert_eq!(write("xla.Thing", &parts).unwrap(), file);
    }

    #[test]
    fn damaged_files_are_told() {
        let file = write(
            "xla.Thing",
            &[Part::Merge(b"\x1a\x02hi"), Part::Field(4, b"x")],
        )
        .unwrap();
        for cut in 0..file.len() {
            assert!(read(&file[..cut]).is_err(), "{cut}");
        }
        for more in [1, 40, 64, 500] {
            let longer = [&file[..], &vec![0; more]].concat();
            assert!(read(&longer).is_err(), "{more}");
            let again = [&file[..], &file[64..]].concat();
            assert!(read(&again).is_err());
        }
        for bit in 0..file.len() * 8 {
            let mut damaged = file.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            if let Ok(joined) = read(&damaged) {
                assert_eq!(joined.type_name, "xla.Thing", "bit {bit}");
            }
        }
        assert!(!is_records(b"\x0a\x02hi"));
    }
}
