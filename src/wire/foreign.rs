//! Files that are neither programs nor bundles, told by how they begin.
//!
//! Sources: each format's own description of its first bytes; for those that are protobuf messages,
//! which begin with no word, the fields of `onnx/onnx.proto`, `tensorflow/core/protobuf/
//! saved_model.proto` and `tensorflow/core/framework/graph.proto`.

use crate::wire::snapshot::fields;

/// First bytes, and what they are of.
const BEGINNINGS: &[(&[u8], &str)] = &[
    (b"\x1f\x8b", "a gzip file"),
    (b"BZh", "a bzip2 file"),
    (b"\xfd7zXZ\0", "an xz file"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file"),
    (b"\x7fELF", "an ELF file"),
    (b"\x93NUMPY", "an array of NumPy"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"GGUF", "a GGUF file"),
    (b"BC\xc0\xde", "LLVM bitcode"),
    (b"; ModuleID", "LLVM IR"),
    (b"BufferAssignment:", "XLA's listing of buffers"),
    (b"Total bytes used:", "XLA's listing of buffers"),
    (b"Total bytes:", "XLA's report of memory"),
    (b"HloLiveRange", "XLA's listing of live ranges"),
];

/// What the file looks like, with an article; nothing when its beginning does not tell.
pub fn look(bytes: &[u8]) -> Option<&'static str> {
    let text = bytes.trim_ascii_start();
    let known = BEGINNINGS.iter().find(|(start, _)| match start {
        [first, ..] if first.is_ascii_graphic() => text.starts_with(start),
        _ => bytes.starts_with(start),
    });
    if let Some((_, name)) = known {
        return Some(name);
    }
    if bytes.starts_with(b"PK\x03\x04") {
        return Some(match first_member(bytes) {
            Some(name) if name.ends_with(b".npy") => "an archive of NumPy arrays",
            _ => "a zip archive",
        });
    }
    if bytes.get(4..8) == Some(b"TFL3") {
        return Some("a TensorFlow Lite model");
    }
    // A length, and then a header in JSON of that length.
    if let Some((length, [b'{', ..])) = bytes.split_first_chunk::<8>()
        && u64::from_le_bytes(*length) < bytes.len() as u64
    {
        return Some("a safetensors file");
    }
    if let [0x80, 2..=5, .., b'.'] = bytes {
        return Some("a pickle of Python");
    }
    let first = text.iter().skip(1).find(|byte| !byte.is_ascii_whitespace());
    if text.starts_with(b"{") && first == Some(&b'"') {
        return Some("JSON");
    }
    message(bytes)
}

/// The name of the first member of a zip archive.
fn first_member(bytes: &[u8]) -> Option<&[u8]> {
    let length = bytes.get(26..28)?;
    let length = u16::from_le_bytes([length[0], length[1]]);
    bytes.get(30..30 + usize::from(length))
}

/// What a message is by its fields.
fn message(bytes: &[u8]) -> Option<&'static str> {
    let fields = fields(bytes)?;
    let has = |number| fields.iter().any(|(n, _)| *n == number);
    let all = |numbers: &[u64]| fields.iter().all(|(n, _)| numbers.contains(n));
    // A version, and then the graph and the sets of operators.
    const ONNX: &[u64] = &[1, 2, 3, 4, 5, 6, 7, 8, 14, 20, 25, 26];
    if bytes.first() == Some(&0x08) && has(7) && all(ONNX) {
        return Some("an ONNX model");
    }
    // Version 1, and then a graph with what belongs to it for each use.
    if bytes.starts_with(&[0x08, 0x01]) && has(2) && all(&[1, 2]) {
        return Some("a SavedModel of TensorFlow");
    }
    let nodes = fields.iter().filter(|(number, _)| *number == 1);
    if has(1) && all(&[1, 2, 3, 4, 5]) && nodes.clone().all(|(_, node)| is_node(node)) {
        return Some("a GraphDef of TensorFlow");
    }
    None
}

/// Whether the bytes are a node of a GraphDef: a name, and an operator, which begins with a capital.
fn is_node(bytes: &[u8]) -> bool {
    let Some(fields) = fields(bytes) else {
        return false;
    };
    match fields.as_slice() {
        [(1, _), (2, op), ..] => {
            let is_word = op.iter().all(|byte| byte.is_ascii_alphanumeric());
            is_word && op.first().is_some_and(u8::is_ascii_uppercase)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_others_are_known_by_their_beginning() {
        // What `onnx.helper.make_model`, `tf.saved_model.save` and `tf.Graph.as_graph_def` begin
        // with: `ir_version`, `producer_name` and `graph`; `saved_model_schema_version` and
        // `meta_graphs`; nodes of a name and an operator.
        let onnx = b"\x08\x08\x12\x01p\x3a\x04\x0a\x02\x0a\x00\x42\x02\x10\x11";
        let saved = b"\x08\x01\x12\x04\x0a\x02\x22\x00";
        let graph = b"\x0a\x10\x0a\x01x\x12\x0bPlaceholder\x22\x02\x08\x1b";
        let mut safetensors = 8u64.to_le_bytes().to_vec();
        safetensors.extend(b"{\"a\":{}}....");
        let mut zip = b"PK\x03\x04".to_vec();
        zip.resize(26, 0);
        zip.extend([5, 0, 0, 0]);
        let npz = [&zip[..], b"a.npy"].concat();
        zip.extend(b"a.txt");
        for (bytes, name) in [
            (&onnx[..], "an ONNX model"),
            (saved, "a SavedModel of TensorFlow"),
            (graph, "a GraphDef of TensorFlow"),
            (b"\x1f\x8b\x08\0", "a gzip file"),
            (
                b"\x80\x04\x95\x02\0\0\0\0\0\0\0}\x94.",
                "a pickle of Python",
            ),
            (b"\x1c\0\0\0TFL3", "a TensorFlow Lite model"),
            (&safetensors, "a safetensors file"),
            (&npz, "an archive of NumPy arrays"),
            (&zip, "a zip archive"),
            (b"\n\nTotal bytes used: 1", "XLA's listing of buffers"),
            (b"BufferAssignment:\n", "XLA's listing of buffers"),
            (b"{ \"a\": 1 }", "JSON"),
        ] {
            assert_eq!(look(bytes), Some(name));
        }
        for bytes in [
            &b""[..],
            b"\x0a",
            b"hello",
            b"HloModule m\n",
            b"{}",
            b"\x0a\x01m\x12\x01e\x1a\x02\x0a\x00",
            &onnx[..4],
        ] {
            assert_eq!(look(bytes), None, "{bytes:?}");
        }
    }
}
