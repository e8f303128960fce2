//! [`Executable`] to bytes, checked by reading them back.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::bundle::detect::GPU_EXECUTABLE;
use crate::bundle::detect::OUTER;
use crate::bundle::read::Bundle;
use crate::bundle::read::read;
use crate::bundle::stock::Release;
use crate::bundle::stock::check_release;
use crate::executable::Executable;
use crate::executable::LogicalBuffer;
use crate::executable::Signature;
use crate::executable::TargetNeeds;
use crate::shape::ProgramShape;
use crate::shape::Shape;
use crate::wire::envelope;
use crate::wire::executable_cpu;
use crate::wire::executable_cpu::KernelBuffers;
use crate::wire::executable_gpu;
use crate::wire::options;
use crate::wire::options::DeviceCounts;
use crate::wire::shape::unmarked;
use crate::wire::split;
use crate::wire::split::Part;

/// How a bundle is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Whether to put jaxlib's envelope around it, as its Python API wants from 0.9.1 on.
    pub envelope: bool,
    /// The jaxlib that shall load a CPU bundle, which has the form of that release.
    pub jaxlib: Release,
}

impl WriteOptions {
    fn has_envelope(self) -> bool {
        self.envelope && self.jaxlib >= Release::FIRST_ENVELOPED
    }

    fn buffers(self) -> KernelBuffers {
        match self.jaxlib >= Release::FIRST_ENVELOPED {
            true => KernelBuffers::Shaped,
            false => KernelBuffers::Bare,
        }
    }
}

/// The bytes of a bundle.
///
/// # Errors
/// `XA7003` when the executable holds what bundles of its platform, or for that release, cannot; internal, when what was
/// written does not read back equal.
pub fn write(executable: &Executable, how: WriteOptions) -> Result<Vec<u8>> {
    let bytes = layers(executable, how)?;
    let bundle = check(executable, how, &bytes)?;
    if how.jaxlib < Release::NEWEST {
        check_release(how.jaxlib, &bundle, &bytes)?;
    }
    Ok(bytes)
}

/// The bytes of a file like `template` with a bundle of the executable in the place of the one that it
/// holds: as what JAX put that one into, and with the layers it has.
///
/// # Errors
/// As [`write()`]; as for reading, when the template holds no bundle; `XA7002` when the program there
/// has other parameters or results.
pub fn write_into(executable: &Executable, template: &[u8], how: WriteOptions) -> Result<Vec<u8>> {
    let note = "that is about the file whose bundle was to be replaced";
    let there = read(template).map_err(|e| e.note(note))?;
    let [own, other] = [executable, &there.executable].map(|e| &e.signature.program);
    let shapes = |program: &ProgramShape| {
        let shapes = program.parameters.iter().chain([&program.result]);
        shapes.map(Shape::without_layout).collect::<Vec<_>>()
    };
    if shapes(own) != shapes(other) {
        let text = |program: &ProgramShape| {
            let parameters = program.parameters.iter();
            let parameters = parameters.map(|p| p.without_layout().to_string());
            let parameters = parameters.collect::<Vec<_>>().join(", ");
            format!("({parameters}) -> {}", program.result.without_layout())
        };
        let message = format!(
            "the program is {}, the one to put it in the place of is {}",
            text(own),
            text(other)
        );
        return Err(Diagnostic::error(codes::BUNDLE_CHECK, message));
    }
    let envelope = there.form.envelope.is_some();
    // Only old releases put bundles without an envelope into something.
    let jaxlib = match there.form.container.is_some() && !envelope {
        true => how.jaxlib.min(Release::LAST_PLAIN),
        false => how.jaxlib,
    };
    let bundle = write(executable, WriteOptions { envelope, jaxlib })?;
    match &there.form.container {
        Some(container) => container.around(&bundle),
        None => Ok(bundle),
    }
}

fn layers(executable: &Executable, how: WriteOptions) -> Result<Vec<u8>> {
    let counts = DeviceCounts {
        replicas: executable.replicas,
        partitions: executable.partitions,
    };
    let payload = match &executable.needs {
        TargetNeeds::Cpu { .. } => {
            let options = options::encode_options(counts, &[])?;
            options::encode_outer(
                &executable_cpu::encode(executable, how.buffers())?,
                &options,
                "",
            )?
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
    Ok(match how.has_envelope() {
        true => envelope::wrap(&executable.name, &executable.signature, &payload),
        false => payload,
    })
}

/// What was written must read back, to the same program and again to the same bytes.
fn check(executable: &Executable, how: WriteOptions, bytes: &[u8]) -> Result<Bundle> {
    let internal = |what: &str| {
        Diagnostic::internal(
            codes::INTERNAL,
            format!("the bundle that was written does not read back: {what}"),
        )
    };
    let bundle = read(bytes).map_err(|e| internal("it is refused").note(e.to_string()))?;
    let back = &bundle.executable;
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
    match layers(back, how)? == bytes {
        true => Ok(bundle),
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
