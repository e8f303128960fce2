//! Compile options and the outer message of a bundle (`CompileOptionsProto`,
//! `ExecutableAndOptionsProto`).

use prost::Message;

use crate::base::Result;
use crate::base::checksum::crc64;
use crate::proto::stream_executor as se;
use crate::proto::xla as pb;
use crate::wire::number::bad;
use crate::wire::number::message;

/// How many copies of a program run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceCounts {
    /// Replicas.
    pub replicas: u32,
    /// Partitions.
    pub partitions: u32,
}

/// The client name that loaders want in a GPU bundle.
pub const GPU_CLIENT: &str = "PjRtStreamExecutorClient";

/// The outer message, decoded: the executable's bytes and what its options say.
#[derive(Clone, Debug, PartialEq)]
pub struct Outer {
    /// The serialized executable of the platform.
    pub executable: Vec<u8>,
    /// Name of the client that wrote it; empty in CPU bundles.
    pub client: String,
    /// Copies of the program.
    pub counts: DeviceCounts,
    /// The serialized `CompileOptionsProto`.
    pub options: Vec<u8>,
    /// The [`checksum`] of executable and options, when there is one: other writers give none.
    pub checksum: Option<u64>,
}

/// The serialized `CompileOptionsProto`: counts, a device assignment of the first devices, and the
/// GPU's description when there is one.
///
/// Loaders of CPU bundles abort without counts or assignment.
///
/// # Errors
/// `XA1004` when the description is not a `GpuTargetConfigProto`.
pub fn encode_options(counts: DeviceCounts, target_config: &[u8]) -> Result<Vec<u8>> {
    use pb::device_assignment_proto::ComputationDevice;
    let (replicas, partitions) = (counts.replicas.max(1), counts.partitions.max(1));
    // Device r * partitions + p runs replica r of partition p.
    let device = |p: u32| ComputationDevice {
        replica_device_ids: (0..replicas)
            .map(|r| i64::from(r) * i64::from(partitions) + i64::from(p))
            .collect(),
    };
    let assignment = pb::DeviceAssignmentProto {
        replica_count: i32::try_from(replicas).unwrap_or(i32::MAX),
        computation_count: i32::try_from(partitions).unwrap_or(i32::MAX),
        computation_devices: (0..partitions.min(1 << 16)).map(device).collect(),
    };
    let target_config = match target_config {
        [] => None,
        bytes => Some(message::<se::GpuTargetConfigProto>(
            bytes,
            "stream_executor.GpuTargetConfigProto",
        )?),
    };
    // A GPU client takes the first device by itself; upstream's tool writes no assignment.
    let device_assignment = target_config.is_none().then_some(assignment);
    let options = pb::CompileOptionsProto {
        executable_build_options: Some(pb::ExecutableBuildOptionsProto {
            device_ordinal: -1,
            num_replicas: i64::from(replicas),
            num_partitions: i64::from(partitions),
            device_assignment,
            ..Default::default()
        }),
        profile_version: -1,
        target_config,
        ..Default::default()
    };
    Ok(options.encode_to_vec())
}

/// The serialized outer message without the executable's bytes.
fn outer_proto(options: &[u8], client: &str) -> Result<pb::ExecutableAndOptionsProto> {
    Ok(pb::ExecutableAndOptionsProto {
        serialized_executable: Vec::new(),
        compile_options: Some(message(options, "xla.CompileOptionsProto")?),
        pjrt_client_name: client.to_owned(),
        xla_aot_checksum: None,
    })
}

/// The checksum of a bundle: that of the checksums of the executable and of the options.
pub fn checksum(executable: &[u8], options: &[u8]) -> u64 {
    let both = [executable, options].map(|part| crc64(part).to_le_bytes());
    crc64(both.as_flattened())
}

/// The serialized `ExecutableAndOptionsProto`, with a checksum of executable and options.
///
/// # Errors
/// `XA1004` when the options are not a `CompileOptionsProto`.
pub fn encode_outer(executable: &[u8], options: &[u8], client: &str) -> Result<Vec<u8>> {
    let mut outer = outer_proto(options, client)?;
    outer.serialized_executable = executable.to_vec();
    let options = outer.compile_options.as_ref();
    let options = options.map(pb::CompileOptionsProto::encode_to_vec);
    outer.xla_aot_checksum = Some(checksum(executable, &options.unwrap_or_default()));
    Ok(outer.encode_to_vec())
}

/// As [`encode_outer`] with the executable left out, for the form that is cut into records. Records
/// have checksums of their own.
///
/// # Errors
/// As [`encode_outer`].
pub fn encode_outer_rest(options: &[u8], client: &str) -> Result<Vec<u8>> {
    Ok(outer_proto(options, client)?.encode_to_vec())
}

/// The outer message of its serialized bytes.
///
/// # Errors
/// `XA1004` when the bytes are not one, or give a count that is negative or enormous.
pub fn decode_outer(bytes: &[u8]) -> Result<Outer> {
    let proto: pb::ExecutableAndOptionsProto = message(bytes, "xla.ExecutableAndOptionsProto")?;
    let options = proto.compile_options.unwrap_or_default();
    let build = options.executable_build_options.clone().unwrap_or_default();
    let assignment = build.device_assignment.clone().unwrap_or_default();
    let count = |value: i64, assigned: i32| {
        let value = if value > 0 {
            value
        } else {
            i64::from(assigned).max(1)
        };
        let value = u32::try_from(value).ok().filter(|&n| n <= 1 << 16);
        value.ok_or_else(|| bad("the options ask for too many replicas or partitions"))
    };
    let counts = DeviceCounts {
        replicas: count(build.num_replicas, assignment.replica_count)?,
        partitions: count(build.num_partitions, assignment.computation_count)?,
    };
    Ok(Outer {
        executable: proto.serialized_executable,
        client: proto.pjrt_client_name,
        counts,
        options: options.encode_to_vec(),
        checksum: proto.xla_aot_checksum,
    })
}

/// The serialized `GpuTargetConfigProto` in compile options; empty when there is none.
pub fn target_config_of(options: &[u8]) -> Vec<u8> {
    let options = pb::CompileOptionsProto::decode(options).unwrap_or_default();
    let config = options.target_config;
    config.map(|c| c.encode_to_vec()).unwrap_or_default()
}
/// A length in front of bytes, and what comes after it.
pub fn length(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut rest = bytes;
    let length = prost::encoding::decode_varint(&mut rest).ok()?;
    Some((length, rest))
}
