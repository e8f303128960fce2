//! The envelope that jaxlib puts around a bundle (`xla.ifrt.SerializedXlaExecutableMetadata`).
//!
//! A varint with the length of the metadata, the metadata, then the bundle to the end of the bytes.

use prost::Message;

use crate::base::Result;
use crate::executable::Signature;
use crate::proto::xla::ifrt;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;
use crate::wire::number::bad;
use crate::wire::number::numbers;
use crate::wire::shape::encode_layout;

/// The version of jaxlib 0.10.2; loaders of 0.9.1 and newer accept any.
const IFRT_VERSION: i32 = 3;

/// A bundle cut into its envelope's metadata and the rest.
pub struct Envelope<'a> {
    /// What the envelope says.
    pub metadata: Metadata,
    /// The bundle.
    pub payload: &'a [u8],
}

/// What an envelope says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// `ifrt_version_number`.
    pub ifrt_version: i32,
    /// Name of the computation.
    pub name: String,
    /// Results that it describes.
    pub outputs: usize,
    /// Where it wants results to be, when that is no memory of a CPU: jaxlib ends its process then.
    pub strange_memory: Option<String>,
    /// Version of what it says of the executable; jaxlib knows 0.
    pub executable_version: i32,
}

/// Kinds of memory that a CPU of jaxlib has; no word is the first.
const MEMORIES: [&str; 4] = ["", "device", "pinned_host", "unpinned_host"];

/// The bundle with an envelope, as `client.deserialize_executable` of jaxlib 0.9.1 and newer wants.
pub fn wrap(name: &str, signature: &Signature, payload: &[u8]) -> Vec<u8> {
    use ifrt::serialized_xla_executable_metadata::ParameterSpec;
    let leaves = signature.program.result.leaves().into_iter();
    let outputs = leaves.filter_map(|(_, leaf)| leaf.as_array().map(output_spec));
    let donated = |number: usize| {
        let mut aliases = signature.aliases.iter();
        aliases.any(|alias| alias.parameter == number)
    };
    let parameters = (0..signature.program.parameters.len()).map(|number| ParameterSpec {
        donated_input: donated(number),
        ..Default::default()
    });
    let metadata = ifrt::SerializedXlaExecutableMetadata {
        ifrt_version_number: IFRT_VERSION,
        runtime_name: "pjrt_ifrt".to_owned(),
        output_specs: outputs.collect(),
        parameter_specs: parameters.collect(),
        computation_name: name.to_owned(),
        portable: false,
        executable_version: Some(ifrt::SerializedXlaExecutableVersion::default()),
        outputs_bundle_slice_sizes: Vec::new(),
    };
    let mut bytes = metadata.encode_length_delimited_to_vec();
    bytes.extend_from_slice(payload);
    bytes
}

fn output_spec(array: &ArrayShape) -> ifrt::serialized_xla_executable_metadata::OutputSpec {
    let dims = || ifrt::ShapeProto {
        dims: numbers(&array.dims),
        version_number: 0,
    };
    let layout = array.layout.as_ref().filter(|l| !l.is_row_major());
    ifrt::serialized_xla_executable_metadata::OutputSpec {
        shard_shape: Some(dims()),
        dtype: Some(ifrt::DTypeProto {
            kind: dtype(array.ty),
            version_number: 0,
        }),
        layout: layout.map(|layout| ifrt::LayoutProto {
            serialized_layout: Some(ifrt::Serialized {
                type_name: "xla::ifrt::PjRtLayout".to_owned(),
                data: ifrt::PjRtLayoutProto {
                    xla_layout: Some(encode_layout(layout)),
                    version_number: 0,
                }
                .encode_to_vec(),
            }),
        }),
        memory_kind: "device".to_owned(),
        op_sharding: None,
        shape: Some(dims()),
    }
}

/// The number of an element type in `xla.ifrt.DTypeProto`, which differs for some.
fn dtype(ty: PrimitiveType) -> i32 {
    match ty {
        PrimitiveType::S1 => 32,
        PrimitiveType::U1 => 33,
        PrimitiveType::F4E2M1FN => 30,
        PrimitiveType::F8E8M0FNU => 31,
        PrimitiveType::F6E2M3FN => 34,
        other => other.number(),
    }
}

/// Takes the envelope off. Nothing when the bytes do not begin with one.
pub fn unwrap(bytes: &[u8]) -> Option<Envelope<'_>> {
    let mut rest = bytes;
    let length = prost::encoding::decode_varint(&mut rest).ok()?;
    let length = usize::try_from(length).ok().filter(|&n| n > 0)?;
    let (metadata, payload) = rest.split_at_checked(length)?;
    let metadata = ifrt::SerializedXlaExecutableMetadata::decode(metadata).ok()?;
    // A bundle without envelope starts with a length-delimited field 1: its tag 0x0a would be a
    // length of ten here. Ten bytes of its content do not name a runtime.
    if metadata.runtime_name.is_empty() && metadata.executable_version.is_none() {
        return None;
    }
    let mut memories = metadata.output_specs.iter().map(|spec| &spec.memory_kind);
    let strange_memory = memories.find(|kind| !MEMORIES.contains(&kind.as_str()));
    let version = metadata.executable_version.unwrap_or_default();
    Some(Envelope {
        metadata: Metadata {
            ifrt_version: metadata.ifrt_version_number,
            outputs: metadata.output_specs.len(),
            strange_memory: strange_memory.cloned(),
            executable_version: version.version_number,
            name: metadata.computation_name,
        },
        payload,
    })
}

/// As [`unwrap`], for bytes that must have an envelope.
///
/// # Errors
/// `XA1004` when they have none.
pub fn expect(bytes: &[u8]) -> Result<Envelope<'_>> {
    unwrap(bytes).ok_or_else(|| bad("the bytes do not begin with an IFRT envelope"))
}
