//! Which runtimes can run a bundle besides this loader: stock jaxlib on CPUs, the stock CUDA plugin
//! of JAX on GPUs.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::bundle::Bundle;
use crate::bundle::detect::Parts;
use crate::bundle::detect::take_apart;
use crate::executable::AllocId;
use crate::executable::AllocKind;
use crate::executable::Executable;
use crate::executable::ThunkKind;
use crate::linalg;
use crate::shape::PrimitiveType;
use crate::shape::Shape;
use crate::target::Platform;
use crate::wire::stock;
use crate::wire::stock::Facts;

/// A release of jaxlib.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release(pub u32, pub u32, pub u32);

impl Release {
    /// The oldest whose bundles have the form that is written here.
    pub const OLDEST: Self = Self(0, 7, 2);
    /// The last that does not name the machine.
    const LAST_UNNAMED: Self = Self(0, 8, 0);
    /// The last without an envelope, and with kernels that name buffers without shapes.
    pub const LAST_PLAIN: Self = Self(0, 9, 0);
    /// The first with both.
    pub const FIRST_ENVELOPED: Self = Self(0, 9, 1);
    /// The last in which what is left to a library is one instruction, and the first in which it is a
    /// fusion.
    const LIBRARY_INSTRUCTIONS: [Self; 2] = [Self(0, 10, 0), Self(0, 10, 1)];
    /// The first that draws random seeds.
    const FIRST_SEEDS: Self = Self(0, 10, 2);
    /// The newest that bundles were tried with.
    pub const NEWEST: Self = Self(0, 12, 0);
}

/// Opcodes that older releases do not know, and the first that was found to know each.
const NEWER_OPCODES: &[(&str, Release)] = &[
    ("asin", Release(0, 8, 0)),
    ("asinh", Release(0, 8, 1)),
    ("atanh", Release(0, 8, 0)),
    ("cosh", Release(0, 8, 0)),
    ("sinh", Release(0, 8, 0)),
    ("scan", Release(0, 9, 0)),
    ("mulhi", Release(0, 10, 2)),
];

impl Default for Release {
    fn default() -> Self {
        Self::NEWEST
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

impl FromStr for Release {
    type Err = String;

    /// `0.9.1`, as new as the oldest; newer ones than the newest are taken as that, and what follows
    /// three numbers, as in `0.12.0.1`, makes no difference.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let parts = text.split('.').map(|part| part.parse().ok());
        let release = match parts.collect::<Vec<Option<u32>>>().as_slice() {
            &[Some(a), Some(b)] => Self(a, b, 0),
            &[Some(a), Some(b), Some(c)] | &[Some(a), Some(b), Some(c), Some(_)] => Self(a, b, c),
            _ => return Err(format!("`{text}` is no release such as {}", Self::NEWEST)),
        };
        if release < Self::OLDEST {
            let oldest = Self::OLDEST;
            return Err(format!("bundles are written for jaxlib {oldest} and newer"));
        }
        Ok(release.min(Self::NEWEST))
    }
}

/// Which stock runtimes run a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stock {
    /// The name of the runtime.
    pub runtime: &'static str,
    /// The oldest and newest release that do; none when there are obstacles.
    pub releases: Option<(String, String)>,
    /// What is to be kept in mind with these.
    pub conditions: Vec<String>,
    /// Why none does, or what it would do: sentences without a full stop.
    pub obstacles: Vec<String>,
}

impl Stock {
    /// All of it in a line.
    pub fn text(&self) -> String {
        match &self.releases {
            None => format!("no {}: {}", self.runtime, self.obstacles.join("; ")),
            Some((from, to)) => {
                let span = match from == to {
                    true => from.clone(),
                    false => format!("{from} to {to}"),
                };
                let conditions = self.conditions.iter().map(|c| format!(", {c}"));
                format!("{} {span}{}", self.runtime, conditions.collect::<String>())
            }
        }
    }
}

/// Which stock runtimes run a bundle that was read from these bytes.
///
/// # Errors
/// Those of reading it.
pub fn stock(bundle: &Bundle, bytes: &[u8]) -> Result<Stock> {
    match bundle.platform() {
        Platform::Cpu => jaxlib(bundle, &take_apart(bytes)?),
        Platform::Cuda => Ok(cuda_plugin(bundle)),
    }
}

fn jaxlib(bundle: &Bundle, parts: &Parts) -> Result<Stock> {
    let mut facts = stock::facts(&parts.executable, &parts.outer.options)?;
    let executable = &bundle.executable;
    let own = [
        envelope_obstacles(parts, executable),
        signature_obstacles(executable),
        live_out_obstacles(executable),
        thunk_obstacles(executable),
    ];
    facts.obstacles.extend(own.into_iter().flatten());
    if !bundle.form.has_options {
        facts
            .obstacles
            .push("it refuses an executable without the message around it".to_owned());
    }
    let (oldest, newest) = span(&facts, executable, bundle.form.envelope.is_some());
    if oldest > newest {
        let message = "its thunks are of different releases".to_owned();
        facts.obstacles.push(message);
    }
    let mut conditions = imports(executable);
    if bundle.form.envelope.is_none() && newest >= Release::FIRST_ENVELOPED {
        let message = "through PJRT's C API (their Python API wants `--format jax`)";
        conditions.push(message.to_owned());
    }
    let is_free = facts.obstacles.is_empty();
    Ok(Stock {
        runtime: "jaxlib",
        releases: is_free.then(|| (oldest.to_string(), newest.to_string())),
        conditions,
        obstacles: facts.obstacles,
    })
}

/// Says that a release does not know everything in a bundle that was written for it.
///
/// # Errors
/// `XA7003` when that is so.
pub(super) fn check_release(release: Release, bundle: &Bundle, bytes: &[u8]) -> Result<()> {
    if bundle.platform() != Platform::Cpu {
        return Ok(());
    }
    let parts = take_apart(bytes)?;
    let facts = stock::facts(&parts.executable, &parts.outer.options)?;
    let mut newer = NEWER_OPCODES.iter();
    let newer = newer.find(|(opcode, first)| *first > release && facts.opcodes.contains(*opcode));
    let what = match newer {
        Some((opcode, first)) => Some((format!("the op `{opcode}`"), *first)),
        None if facts.has_seeds => Some(("random seeds".to_owned(), Release::FIRST_SEEDS)),
        None => None,
    };
    match what {
        Some((what, first)) if first > release => {
            let message = format!("jaxlib {release} does not know {what}, which came with {first}");
            Err(Diagnostic::unsupported(codes::BUNDLE_UNSUPPORTED, message))
        }
        _ => Ok(()),
    }
}

/// The oldest and the newest release that know everything in a bundle.
fn span(facts: &Facts, executable: &Executable, has_envelope: bool) -> (Release, Release) {
    let (mut oldest, mut newest) = (Release::OLDEST, Release::NEWEST);
    if facts.has_shaped_buffers || has_envelope {
        oldest = oldest.max(Release::FIRST_ENVELOPED);
    }
    if facts.has_bare_buffers {
        newest = newest.min(Release::LAST_PLAIN);
    }
    if !facts.names_machine {
        newest = newest.min(Release::LAST_UNNAMED);
    }
    if facts.has_seeds {
        oldest = oldest.max(Release::FIRST_SEEDS);
    }
    for (opcode, first) in NEWER_OPCODES {
        if facts.opcodes.contains(*opcode) {
            oldest = oldest.max(*first);
        }
    }
    if facts.has_library_fusions {
        let [last, first] = Release::LIBRARY_INSTRUCTIONS;
        let thunks = executable.thunks.all().into_iter();
        let mut fusions = thunks.filter_map(|thunk| match &thunk.kind {
            ThunkKind::LibraryFusion(fusion) => Some(fusion.is_fusion),
            _ => None,
        });
        match fusions.all(|is_fusion| is_fusion) {
            true => oldest = oldest.max(first),
            false => newest = newest.min(last),
        }
    }
    (oldest, newest)
}

/// What the envelope says that jaxlib stumbles over.
fn envelope_obstacles(parts: &Parts, executable: &Executable) -> Vec<String> {
    let mut out = Vec::new();
    let Some(envelope) = &parts.envelope else {
        return out;
    };
    if let Some(memory) = &envelope.strange_memory {
        out.push(format!(
            "it ends its process: a result shall be in the memory `{memory}`"
        ));
    }
    let leaves = executable.signature.outputs.len();
    if envelope.outputs != leaves {
        out.push(format!(
            "it refuses the envelope, which has {} results for {leaves}",
            envelope.outputs
        ));
    }
    if envelope.executable_version != 0 {
        let version = envelope.executable_version;
        out.push(format!("it refuses version {version} of the executable"));
    }
    out
}

/// What its clients take as arguments and give as results.
fn signature_obstacles(executable: &Executable) -> Vec<String> {
    let program = &executable.signature.program;
    let mut out = Vec::new();
    let is_nested = |shape: &Shape| {
        let parts = shape.as_tuple().unwrap_or_default();
        parts.iter().any(Shape::is_tuple)
    };
    for (number, shape) in program.parameters.iter().enumerate() {
        if is_nested(shape) {
            out.push(format!(
                "it ends its process: parameter {number} is a tuple of tuples"
            ));
        }
    }
    if is_nested(&program.result) {
        out.push("it refuses a result that is a tuple of tuples".to_owned());
    }
    let shapes = program.parameters.iter().chain([&program.result]);
    let leaves = shapes.flat_map(|shape| shape.leaves());
    let arrays: Vec<_> = leaves.filter_map(|(_, leaf)| leaf.as_array()).collect();
    if arrays.iter().any(|array| array.is_dynamic()) {
        out.push(
            "it takes no array of dynamic sizes, and gives them as large as can be".to_owned(),
        );
    }
    let types = arrays.iter().map(|array| array.ty);
    let types: BTreeSet<&str> = types
        .filter(|ty| !is_stock(*ty))
        .map(|ty| ty.name())
        .collect();
    out.extend(types.iter().map(|ty| format!("it has no arrays of {ty}")));
    out
}

/// Whether jaxlib passes arrays of the type in and out.
fn is_stock(ty: PrimitiveType) -> bool {
    use PrimitiveType as P;
    !matches!(ty, P::F6E2M3FN | P::F6E3M2FN | P::S1 | P::U1)
}

/// jaxlib finds out itself which allocations outlive a run, and wants the plan to agree.
fn live_out_obstacles(executable: &Executable) -> Vec<String> {
    let outputs = executable.signature.outputs.iter();
    let holds: BTreeSet<AllocId> = outputs.map(|output| output.slice.alloc).collect();
    let allocs = executable.allocs.iter();
    let wrong = allocs.filter(|(id, allocation)| {
        allocation.live_out && !holds.contains(id) && allocation.kind != AllocKind::Tuple
    });
    wrong
        .map(|(id, _)| format!("it ends its process: {id:?} outlives a run and holds no result"))
        .collect()
}

/// Thunks that no jaxlib in the span has.
fn thunk_obstacles(executable: &Executable) -> Vec<String> {
    let mut names = BTreeSet::new();
    for thunk in executable.thunks.all() {
        if let ThunkKind::Foreign { name, .. } = &thunk.kind
            && name == "xnn-fusion"
        {
            names.insert(name.as_str());
        }
    }
    names
        .iter()
        .map(|name| format!("it does not run the thunk `{name}` any more"))
        .collect()
}

/// Functions that must be registered before jaxlib loads the bundle.
fn imports(executable: &Executable) -> Vec<String> {
    let mut names = BTreeSet::new();
    let mut has_lapack = false;
    for thunk in executable.thunks.all() {
        if let ThunkKind::CustomCall(call) = &thunk.kind {
            if linalg::call::is_known(&call.target) {
                has_lapack = true;
            } else {
                names.insert(call.target.as_str());
            }
        }
    }
    let mut out = Vec::new();
    if has_lapack {
        out.push("with its LAPACK calls registered (`jax.numpy.linalg` does that)".to_owned());
    }
    out.extend(names.iter().map(|name| format!("with `{name}` registered")));
    out
}

/// Releases from 0.11.1 on read records only.
fn cuda_plugin(bundle: &Bundle) -> Stock {
    let form = &bundle.form;
    let (releases, obstacles) = match (form.outer_split, form.inner_split) {
        (true, true) => (Some(("0.10.2", "0.12.0.1")), Vec::new()),
        (false, false) if !form.has_options => {
            let message = "it refuses an executable without the message around it";
            (None, vec![message.to_owned()])
        }
        _ => (Some(("0.10.2", "0.10.2")), Vec::new()),
    };
    let mut conditions = Vec::new();
    if form.envelope.is_none() {
        let message = "through PJRT's C API (their Python API wants `--format jax`)";
        conditions.push(message.to_owned());
    }
    Stock {
        runtime: "jax-cuda12-plugin",
        releases: releases.map(|(from, to)| (from.to_owned(), to.to_owned())),
        conditions,
        obstacles,
    }
}
