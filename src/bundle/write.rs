//! [`Executable`] to bytes, checked by reading them back.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::bundle::detect::GPU_EXECUTABLE;
use crate::bundle::detect::OUTER;
use crate::bundle::read::read;
use crate::executable::Executable;
use crate::executable::LogicalBuffer;
use crate::executable::Signature;
use crate::executable::TargetNeeds;
use crate::wire::envelope;
use crate::wire::executable_cpu;
use crate::wire::executable_gpu;
use crate::wire::options;
use crate::wire::options::DeviceCounts;
use crate::wire::shape::unmarked;
use crate::wire::split;
use crate::wire::split::Part;

/// How a bundle is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Whether to put jaxlib's envelope around it, as its Python API wants.
    pub envelope: bool,
}

/// The bytes of a bundle.
///
/// # Errors
/// `XA7003` when the executable holds what bundles of its platform cannot; internal, when what was
/// written does not read back equal.
pub fn write(executable: &Executable, how: WriteOptions) -> Result<Vec<u8>> {
    let bytes = layers(executable, how)?;
    check(executable, how, &bytes)?;
    Ok(bytes)
}

fn layers(executable: &Executable, how: WriteOptions) -> Result<Vec<u8>> {
    let counts = DeviceCounts {
        replicas: executable.replicas,
        partitions: executable.partitions,
    };
    let payload = match &executable.needs {
        TargetNeeds::Cpu { .. } => {
            let options = options::encode_options(counts, &[])?;
            options::encode_outer(&executable_cpu::encode(executable)?, &options, "")?
        }
        TargetNeeds::Cuda { target_config, .. } => {
            let options = options::encode_options(counts, target_config)?;
            let fields = executable_gpu::encode(executable)?;
            let inner = split::write(
                GPU_EXECUTABLE,
                &[
                    Part::Field(3, &[]),
                    Part::Field(4, &fields.binary),
                    Part::Merge(&fields.rest),
                ],
            )?;
            let rest = options::encode_outer_rest(&options, options::GPU_CLIENT)?;
            split::write(OUTER, &[Part::Field(1, &inner), Part::Merge(&rest)])?
        }
    };
    Ok(match how.envelope {
        true => envelope::wrap(&executable.name, &executable.signature, &payload),
        false => payload,
    })
}

/// What was written must read back, to the same program and again to the same bytes.
fn check(executable: &Executable, how: WriteOptions, bytes: &[u8]) -> Result<()> {
    let internal = |what: &str| {
        Diagnostic::internal(
            codes::INTERNAL,
            format!("the bundle that was written does not read back: {what}"),
        )
    };
    let back = read(bytes).map_err(|e| internal("it is refused").note(e.to_string()))?;
    let back = back.executable;
    let parts = [
        ("the needs", same_needs(&back.needs, &executable.needs)),
        (
            "the signature",
            same_signature(&back.signature, &executable.signature),
        ),
        ("the allocations", back.allocs == executable.allocs),
        (
            "the buffer plan",
            same_plan(&back.logical, &executable.logical),
        ),
        (
            "the constants",
            back.constants.len() == executable.constants.len(),
        ),
        ("the name", back.name == executable.name),
        (
            "the thunks",
            back.thunks.0.len() == executable.thunks.0.len(),
        ),
    ];
    if let Some((what, _)) = parts.iter().find(|(_, equal)| !equal) {
        return Err(internal(&format!("{what} differ")));
    }
    match layers(&back, how)? == bytes {
        true => Ok(()),
        false => Err(internal("written again, it gives other bytes")),
    }
}

/// Equal but for marks of packed arrays.
fn same_signature(back: &Signature, given: &Signature) -> bool {
    let mut given = given.clone();
    given.program = unmarked(&given.program);
    *back == given
}

/// Equal but for the platform version, which bundles do not hold.
fn same_needs(back: &TargetNeeds, given: &TargetNeeds) -> bool {
    let mut given = given.clone();
    if let TargetNeeds::Cuda {
        platform_version, ..
    } = &mut given
    {
        platform_version.clear();
    }
    *back == given
}

/// Equal but for names: constants of a GPU program are called by their symbols.
fn same_plan(back: &[LogicalBuffer], given: &[LogicalBuffer]) -> bool {
    let place = |b: &LogicalBuffer| (b.instruction, b.index.clone(), b.slice);
    back.iter().map(place).eq(given.iter().map(place))
}
