//! Which layers a file has.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::target::Platform;
use crate::wire::container;
use crate::wire::container::Container;
use crate::wire::envelope;
use crate::wire::envelope::Metadata;
use crate::wire::executable_cpu;
use crate::wire::foreign;
use crate::wire::options;
use crate::wire::options::DeviceCounts;
use crate::wire::options::Outer;
use crate::wire::split;

/// The layers of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// The device the program is for.
    pub platform: Platform,
    /// What of JAX it was taken out of.
    pub container: Option<Container>,
    /// Whether jaxlib's envelope is around it, and of which version.
    pub envelope: Option<i32>,
    /// Whether there is an outer message with compile options.
    pub has_options: bool,
    /// Whether the outer message is cut into records.
    pub outer_split: bool,
    /// Whether the executable is cut into records.
    pub inner_split: bool,
}

/// A file taken apart: its form, the outer message and the bytes of the executable.
pub(super) struct Parts {
    pub(super) form: Form,
    pub(super) outer: Outer,
    /// What the envelope says, when there is one.
    pub(super) envelope: Option<Metadata>,
    /// The serialized executable of the platform, not cut into records.
    pub(super) executable: Vec<u8>,
}

/// Names of the messages, as manifests have them.
pub(super) const OUTER: &str = "xla.ExecutableAndOptionsProto";
pub(super) const GPU_EXECUTABLE: &str = "xla.gpu.GpuExecutableProto";

impl Form {
    /// An executable of the platform without layers around it.
    fn bare(platform: Platform) -> Self {
        Self {
            platform,
            container: None,
            envelope: None,
            has_options: false,
            outer_split: false,
            inner_split: false,
        }
    }
}

fn not_a_bundle(message: impl Into<String>) -> Box<Diagnostic> {
    Diagnostic::error(codes::NOT_A_BUNDLE, message)
}

/// Whether the bytes look like a bundle, judged by their beginning and outermost layer only.
pub fn is_bundle(bytes: &[u8]) -> bool {
    take_apart(bytes).is_ok()
}

/// Whether the bytes begin as a bundle does, whole or damaged. No other input begins so: its first
/// fields hold each other four deep, and a module in a snapshot three.
pub fn begins_as_bundle(bytes: &[u8]) -> bool {
    match container::open(bytes) {
        Some(Ok((_, bundle))) => begins_alone(&bundle),
        Some(Err(_)) => false,
        None => begins_alone(bytes),
    }
}

/// As above, for a bundle that is in nothing.
fn begins_alone(bytes: &[u8]) -> bool {
    const FIRST_FIELD: u8 = 0x0a;
    const DEPTH: usize = 4;
    let is_nested = |bytes: &[u8]| {
        let (mut rest, mut room) = (bytes, u64::MAX);
        (0..DEPTH).all(|_| {
            let Some(after) = rest.strip_prefix(&[FIRST_FIELD]) else {
                return false;
            };
            let Some((length, after)) = options::length(after) else {
                return false;
            };
            let fits = length > 0 && length < room;
            (rest, room) = (after, length);
            fits
        })
    };
    split::is_records(bytes)
        || is_nested(bytes)
        || envelope::unwrap(bytes)
            .is_some_and(|e| split::is_records(e.payload) || is_nested(e.payload))
}

/// Takes the layers off.
pub(super) fn take_apart(bytes: &[u8]) -> Result<Parts> {
    if bytes.is_empty() {
        return Err(not_a_bundle("the file is empty"));
    }
    let Some(opened) = container::open(bytes) else {
        return layers(bytes);
    };
    let opened = opened.and_then(|(container, bundle)| {
        let mut parts = layers(&bundle)?;
        parts.form.container = Some(container);
        Ok(parts)
    });
    // Files of that kind hold other things too.
    opened.map_err(|error| match foreign::look(bytes) {
        Some(what) => not_a_bundle(format!("this is {what}, not a bundle")).note(error.message),
        None => error,
    })
}

/// Takes off the layers that bundles themselves have.
fn layers(bytes: &[u8]) -> Result<Parts> {
    if let Some(envelope) = envelope::unwrap(bytes)
        && let Ok(mut parts) = payload(envelope.payload)
    {
        parts.form.envelope = Some(envelope.metadata.ifrt_version);
        parts.envelope = Some(envelope.metadata);
        return Ok(parts);
    }
    payload(bytes).map_err(|error| match foreign::look(bytes) {
        Some(what) if error.code == codes::NOT_A_BUNDLE => {
            not_a_bundle(format!("this is {what}, not a bundle"))
        }
        _ => error,
    })
}

fn payload(bytes: &[u8]) -> Result<Parts> {
    if !split::is_records(bytes) {
        return plain(bytes);
    }
    let joined = split::read(bytes)?;
    match joined.type_name.as_str() {
        OUTER => {
            let mut parts = with_options(&joined.bytes)?;
            parts.form.outer_split = true;
            Ok(parts)
        }
        GPU_EXECUTABLE => Ok(Parts {
            form: Form {
                inner_split: true,
                ..Form::bare(Platform::Cuda)
            },
            outer: no_options(),
            envelope: None,
            executable: joined.bytes,
        }),
        other => Err(not_a_bundle(format!(
            "the record file holds a `{other}`, wanted `{OUTER}`"
        ))),
    }
}

/// What stands for the outer message where there is none.
fn no_options() -> Outer {
    Outer {
        executable: Vec::new(),
        client: String::new(),
        counts: DeviceCounts {
            replicas: 1,
            partitions: 1,
        },
        options: Vec::new(),
        checksum: None,
    }
}

fn plain(bytes: &[u8]) -> Result<Parts> {
    if executable_cpu::is_result(bytes) {
        return Ok(Parts {
            form: Form::bare(Platform::Cpu),
            outer: no_options(),
            envelope: None,
            executable: bytes.to_vec(),
        });
    }
    with_options(bytes)
}

fn with_options(bytes: &[u8]) -> Result<Parts> {
    let mut outer = options::decode_outer(bytes)
        .map_err(|e| not_a_bundle("the file is not a bundle").note(e.message))?;
    let executable = std::mem::take(&mut outer.executable);
    if executable.is_empty() {
        return Err(not_a_bundle("the file holds no executable"));
    }
    let form = |platform, inner_split| Form {
        has_options: true,
        inner_split,
        ..Form::bare(platform)
    };
    if split::is_records(&executable) {
        let joined = split::read(&executable)?;
        if joined.type_name != GPU_EXECUTABLE {
            return Err(not_a_bundle(format!(
                "the executable's records hold a `{}`, wanted `{GPU_EXECUTABLE}`",
                joined.type_name
            )));
        }
        return Ok(Parts {
            form: form(Platform::Cuda, true),
            outer,
            envelope: None,
            executable: joined.bytes,
        });
    }
    let platform = if executable_cpu::is_result(&executable) {
        Platform::Cpu
    } else if outer.client == options::GPU_CLIENT {
        Platform::Cuda
    } else {
        return Err(not_a_bundle(
            "the file's executable is for neither a CPU nor a GPU",
        ));
    };
    Ok(Parts {
        form: form(platform, false),
        outer,
        envelope: None,
        executable,
    })
}
