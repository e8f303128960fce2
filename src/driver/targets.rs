//! From the words of the command line to a [`Target`], and the list of targets that ship.

use crate::base::Diagnostic;
use crate::base::Location;
use crate::base::Result;
use crate::base::codes;
use crate::target::CpuFamily;
use crate::target::DeviceSpec;
use crate::target::HostMachine;
use crate::target::Target;
use crate::target::builtin;
use crate::wire;

/// What a user says of the machine to compile for. All of it may be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetRequest {
    /// A CPU, a GPU, `sm_90`, a triple.
    pub name: Option<String>,
    /// XLA's name of a GPU platform.
    pub platform_version: Option<String>,
    /// A text-format `GpuTargetConfigProto`: the file's name and its text.
    pub gpu_config: Option<(String, String)>,
    /// Triple, CPU and features of the host of a GPU.
    pub host: HostMachine,
    /// Triple of the CPU to compile for.
    pub triple: Option<String>,
    /// CPU to compile for; `native` is this machine's.
    pub cpu: Option<String>,
    /// Changes to the CPU's features: `+avx2,-fma`.
    pub features: String,
}

/// GPUs by the compute capability that names them.
const BY_CAPABILITY: &[(&str, &str)] = &[
    ("sm_60", "p100"),
    ("sm_70", "v100"),
    ("sm_80", "a100_sxm_80"),
    ("sm_86", "a6000"),
    ("sm_90", "h100_sxm"),
    ("sm_90a", "h100_sxm"),
    ("sm_100", "b200"),
    ("sm_100a", "b200"),
    ("sm_103", "b300"),
    ("sm_103a", "b300"),
    ("sm_120", "rtx6000pro"),
    ("sm_120a", "rtx6000pro"),
];

/// The target a request means. Nothing said means the portable baseline of the build host's family.
///
/// # Errors
/// `XA6004` for words that are not known or contradict each other.
pub fn resolve(request: &TargetRequest) -> Result<Target> {
    let ways = [
        request.name.is_some(),
        request.platform_version.is_some(),
        request.gpu_config.is_some(),
    ];
    if ways.iter().filter(|given| **given).count() > 1 {
        return Err(contradiction(
            "the target is named in more than one way",
            "give one of --target, --target-platform-version and --gpu-target-config",
        ));
    }
    if let Some((file, text)) = &request.gpu_config {
        let mut target = wire::target::gpu_from_text(text)
            .map_err(|e| e.or_at(|| Location::Path(file.clone())))?;
        if let (Some(host), DeviceSpec::Gpu(gpu)) = (host(request)?, &mut target.device) {
            gpu.host = host;
        }
        return no_cpu_words(request, target);
    }
    if let Some(version) = &request.platform_version {
        let target = wire::target::gpu(version, host(request)?)?;
        return no_cpu_words(request, target);
    }
    match request.name.as_deref() {
        Some(name) => resolve_name(name, request),
        None => cpu(request),
    }
}

fn resolve_name(name: &str, request: &TargetRequest) -> Result<Target> {
    let by_capability = BY_CAPABILITY.iter().find(|(sm, _)| *sm == name);
    let name = by_capability.map_or(name, |(_, gpu)| gpu);
    if builtin::gpu_names().any(|known| known == name) {
        let target = wire::target::gpu(name, host(request)?)?;
        return no_cpu_words(request, target);
    }
    let is_cpu = builtin::cpu_names().any(|known| known == name) || name == "native";
    if is_cpu && request.cpu.is_none() {
        let named = TargetRequest {
            cpu: Some(name.to_owned()),
            ..request.clone()
        };
        return cpu(&named);
    }
    if name.matches('-').count() >= 2 && request.triple.is_none() && !is_cpu {
        let named = TargetRequest {
            triple: Some(name.to_owned()),
            ..request.clone()
        };
        return cpu(&named);
    }
    if is_cpu {
        return Err(contradiction(
            "the CPU is named twice",
            "give one of --target and --target-cpu",
        ));
    }
    wire::target::by_name(name)
}

fn cpu(request: &TargetRequest) -> Result<Target> {
    if request.host != HostMachine::default() {
        return Err(contradiction(
            "a host is given for a CPU target",
            "--host-triple, --host-cpu and --host-features go with GPU targets",
        ));
    }
    let triple = request.triple.as_deref();
    if request.cpu.as_deref() == Some("native") {
        if triple.is_some() {
            return Err(contradiction(
                "`native` with a triple",
                "`native` is this machine; name another CPU for another triple",
            ));
        }
        return native(&request.features);
    }
    let name = match (&request.cpu, triple) {
        (Some(cpu), _) => cpu.clone(),
        (None, Some(triple)) => {
            let target = wire::target::by_name(triple)?;
            target.name().to_owned()
        }
        (None, None) => baseline().to_owned(),
    };
    wire::target::cpu(&name, triple, &request.features)
}

/// The portable baseline of the family this program was built for.
fn baseline() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "armv8-a",
        _ => "x86-64",
    }
}

#[cfg(feature = "cpu")]
fn native(features: &str) -> Result<Target> {
    let target = wire::target::native(&crate::runtime::cpu::host::probe())?;
    if features.is_empty() {
        return Ok(target);
    }
    Err(contradiction(
        "`native` with changes to its features",
        "name the CPU, or leave --target-feature out",
    ))
}

#[cfg(not(feature = "cpu"))]
fn native(_features: &str) -> Result<Target> {
    Err(contradiction(
        "`native` in a build that cannot look at its host",
        "name the CPU",
    ))
}

/// The host of a GPU, when one is described.
fn host(request: &TargetRequest) -> Result<Option<HostMachine>> {
    let given = &request.host;
    if *given == HostMachine::default() {
        return Ok(None);
    }
    let cpu = if given.cpu.is_empty() {
        let arm = given.triple.starts_with("aarch64") || given.triple.starts_with("arm64");
        if arm { "armv8-a" } else { "x86-64" }
    } else {
        given.cpu.as_str()
    };
    let triple = Some(given.triple.as_str()).filter(|triple| !triple.is_empty());
    let target = wire::target::cpu(cpu, triple, &given.features)?;
    let DeviceSpec::Cpu(cpu) = &target.device else {
        return Ok(None);
    };
    Ok(Some(HostMachine {
        triple: cpu.triple.clone(),
        cpu: cpu.llvm_cpu.clone(),
        features: wire::target::signed(cpu).join(","),
    }))
}

fn no_cpu_words(request: &TargetRequest, target: Target) -> Result<Target> {
    if request.cpu.is_some() || request.triple.is_some() || !request.features.is_empty() {
        return Err(contradiction(
            "a CPU is described for a GPU target",
            "describe the host with --host-triple, --host-cpu and --host-features",
        ));
    }
    Ok(target)
}

fn contradiction(message: &str, help: &str) -> Box<Diagnostic> {
    Diagnostic::error(codes::UNKNOWN_TARGET, message).help(help)
}

/// A target that ships.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetRow {
    /// Its name.
    pub name: String,
    /// `cpu` or `cuda`.
    pub platform: &'static str,
    /// What it is: family and vector width, or capability and memory.
    pub description: String,
    /// Other names.
    pub aliases: Vec<String>,
}

/// The GPU that stands for a compute capability: the one that its name means, or else the first that
/// ships.
///
/// # Errors
/// Internal, when a description that ships cannot be read.
#[cfg(feature = "loader")]
pub fn of_capability(major: i32, minor: i32) -> Result<Option<String>> {
    let name = format!("sm_{major}{minor}");
    if let Some((_, gpu)) = BY_CAPABILITY.iter().find(|(sm, _)| *sm == name) {
        return Ok(Some((*gpu).to_owned()));
    }
    Ok(with_capability(&name)?.into_iter().next())
}

/// The GPUs that ship and have the capability of that name, `sm_90` or `sm_90a`.
#[cfg(feature = "loader")]
fn with_capability(name: &str) -> Result<Vec<String>> {
    let name = name.trim_end_matches(['a', 'f']);
    let mut fitting = Vec::new();
    for target in builtin::GPUS {
        let read = wire::target::gpu(target.name, None)?;
        let capability = read.gpu().map(|gpu| gpu.capability);
        if capability.is_some_and(|c| format!("sm_{}{}", c.major, c.minor) == name) {
            fitting.push(target.name.to_owned());
        }
    }
    Ok(fitting)
}

/// The GPU that a word names: by a name of its own, or by a compute capability, `sm_90`, `9.0`.
///
/// # Errors
/// `XA6004` when there is none, or when a capability is that of several and stands for none of them.
#[cfg(feature = "loader")]
pub fn gpu_named(word: &str) -> Result<String> {
    let Some(name) = capability_name(word) else {
        return wire::target::gpu(word, None).map(|_| word.to_owned());
    };
    if let Some((_, gpu)) = BY_CAPABILITY.iter().find(|(sm, _)| *sm == name) {
        return Ok((*gpu).to_owned());
    }
    let fitting = with_capability(&name)?;
    match fitting.as_slice() {
        [gpu] => Ok(gpu.clone()),
        [] => {
            let known: Vec<_> = BY_CAPABILITY.iter().map(|(sm, _)| *sm).collect();
            let message = format!("no GPU of capability `{word}` ships with this program");
            let error = Diagnostic::error(codes::UNKNOWN_TARGET, message);
            Err(error.note(format!("known: {}", known.join(", "))))
        }
        several => {
            let message = format!("`{word}` is the capability of {}", several.join(", "));
            Err(Diagnostic::error(codes::UNKNOWN_TARGET, message).help("name one of them"))
        }
    }
}

/// A capability as `sm_` and its digits, when a word spells one.
#[cfg(feature = "loader")]
fn capability_name(word: &str) -> Option<String> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let bare = word.strip_suffix(['a', 'f']).unwrap_or(word);
    if let Some(number) = bare.strip_prefix("sm_") {
        return digits(number).then(|| word.to_owned());
    }
    let (major, minor) = bare.split_once('.')?;
    (digits(major) && digits(minor)).then(|| format!("sm_{major}{minor}{}", &word[bare.len()..]))
}

/// Every target that ships.
///
/// # Errors
/// None, unless a description that ships is broken.
pub fn list() -> Result<Vec<TargetRow>> {
    let mut rows = Vec::new();
    for target in builtin::CPUS {
        let aliases = builtin::CPU_ALIASES.iter();
        let aliases = aliases.filter(|(_, name)| *name == target.name);
        rows.push(TargetRow {
            name: target.name.to_owned(),
            platform: "cpu",
            description: describe(&wire::target::cpu(target.name, None, "")?),
            aliases: aliases.map(|(alias, _)| (*alias).to_owned()).collect(),
        });
    }
    for target in builtin::GPUS {
        let versions = builtin::PLATFORM_VERSIONS.iter().map(|v| (v.name, v.gpu));
        let others = builtin::GPU_ALIASES.iter().chain(BY_CAPABILITY).copied();
        let aliases = versions
            .chain(others)
            .filter(|(_, name)| *name == target.name);
        rows.push(TargetRow {
            name: target.name.to_owned(),
            platform: "cuda",
            description: describe(&wire::target::gpu(target.name, None)?),
            aliases: aliases.map(|(alias, _)| alias.to_owned()).collect(),
        });
    }
    Ok(rows)
}

/// A target in a few words.
pub fn describe(target: &Target) -> String {
    match &target.device {
        DeviceSpec::Cpu(cpu) => {
            let family = match cpu.family {
                CpuFamily::X86_64 => "x86-64",
                CpuFamily::AArch64 => "AArch64",
            };
            format!(
                "{family}, {}-bit vectors, tuned for {}",
                cpu.vector_bytes * 8,
                cpu.llvm_cpu
            )
        }
        DeviceSpec::Gpu(gpu) => {
            let (major, minor) = (gpu.ptx_version / 10, gpu.ptx_version % 10);
            format!(
                "{}, {} multiprocessors, {}, PTX {major}.{minor}",
                gpu.capability.sm_name(),
                gpu.cores,
                gpu.memory_bytes
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> TargetRequest {
        TargetRequest {
            name: Some(name.to_owned()),
            ..TargetRequest::default()
        }
    }

    #[test]
    fn every_listed_name_resolves() {
        for row in list().unwrap() {
            let names = std::iter::once(&row.name).chain(&row.aliases);
            for name in names {
                let target = resolve(&named(name)).unwrap();
                assert_eq!(target.platform().name(), row.platform, "{name}");
            }
        }
    }

    #[test]
    #[cfg(feature = "loader")]
    fn capabilities_name_gpus() {
        for (word, gpu) in [
            ("sm_90", "h100_sxm"),
            ("sm_90a", "h100_sxm"),
            ("9.0", "h100_sxm"),
            ("10.3a", "b300"),
            ("sm_80", "a100_sxm_80"),
            ("h200", "h200"),
        ] {
            assert_eq!(gpu_named(word).unwrap(), gpu, "{word}");
        }
        // A family's name stands for none of its members, which are told.
        let several = gpu_named("sm_100f").unwrap_err();
        assert!(several.message.contains("b200, gb200"), "{several}");
        let none = gpu_named("sm_12").unwrap_err();
        assert!(none.notes[0].contains("sm_90"), "{none}");
        assert!(gpu_named("9.x").is_err() && gpu_named("sm_").is_err());
        assert_eq!(of_capability(9, 0).unwrap().unwrap(), "h100_sxm");
        assert_eq!(of_capability(3, 5).unwrap(), None);
    }

    #[test]
    fn nothing_said_is_the_portable_baseline() {
        let target = resolve(&TargetRequest::default()).unwrap();
        assert_eq!(target.name(), baseline());
        let arm = TargetRequest {
            triple: Some("aarch64-unknown-linux-gnu".to_owned()),
            ..TargetRequest::default()
        };
        assert_eq!(
            resolve(&arm).unwrap().cpu().unwrap().family,
            CpuFamily::AArch64
        );
    }

    #[test]
    fn contradictions_are_told() {
        let mut request = named("h100");
        request.cpu = Some("znver3".to_owned());
        assert!(
            resolve(&request)
                .unwrap_err()
                .help
                .unwrap()
                .contains("--host-cpu")
        );
        let mut request = named("x86-64-v3");
        request.host.cpu = "znver3".to_owned();
        assert!(resolve(&request).is_err());
        let mut request = named("x86-64-v3");
        request.cpu = Some("znver3".to_owned());
        assert!(resolve(&request).is_err());
        assert!(resolve(&named("x86-64-v9")).is_err());
    }
}
