//! The targets that ship: names, and the texts of `targets/` that describe them.
//!
//! The texts are protocol buffers in text form; `wire::target` reads them.

/// A description that ships with the program.
#[derive(Clone, Copy, Debug)]
pub struct BuiltinTarget {
    /// Its name, which is the file's.
    pub name: &'static str,
    /// The description.
    pub text: &'static str,
}

macro_rules! texts {
    ($folder:literal, $($name:literal)*) => {
        &[$(BuiltinTarget {
            name: $name,
            text: include_str!(concat!("../../targets/", $folder, "/", $name, ".txtpb")),
        },)*]
    };
}

/// GPUs, as text-format `stream_executor.GpuTargetConfigProto`.
pub const GPUS: &[BuiltinTarget] = texts!("gpu",
    "p100" "v100" "a100_pcie_80" "a100_sxm_40" "a100_sxm_80" "a6000" "h100_pcie" "h100_sxm" "h200"
    "b200" "b300" "gb200" "gb300" "rtx6000pro"
);

/// CPUs: a text-format `xla.cpu.TargetMachineOptionsProto` and what kernels are shaped by.
pub const CPUS: &[BuiltinTarget] = texts!("cpu",
    "x86-64" "x86-64-v2" "x86-64-v3" "x86-64-v4" "nehalem" "westmere" "sandybridge" "ivybridge"
    "haswell" "broadwell" "skylake" "skylake-avx512" "cascadelake" "cooperlake" "icelake-client"
    "icelake-server" "tigerlake" "alderlake" "sapphirerapids" "emeraldrapids" "graniterapids"
    "sierraforest" "znver1" "znver2" "znver3" "znver4" "znver5"
    "armv8-a" "cortex-a53" "cortex-a57" "cortex-a72" "cortex-a76" "cortex-a78" "cortex-x1"
    "neoverse-n1" "neoverse-v1" "neoverse-n2" "neoverse-v2" "neoverse-n3" "neoverse-v3" "grace"
    "ampere1" "a64fx" "apple-m1" "apple-m2" "apple-m3" "apple-m4"
);

/// Host machines of GPU systems, as text-format `xla.cpu.TargetMachineOptionsProto`.
pub const HOSTS: &[BuiltinTarget] = texts!("host", "umbriel" "oberon");

/// A `--target-platform-version` of upstream's `xla_compile`.
#[derive(Clone, Copy, Debug)]
pub struct PlatformVersion {
    /// The name.
    pub name: &'static str,
    /// The GPU it means, a name of [`GPUS`].
    pub gpu: &'static str,
    /// The host it means, a name of [`HOSTS`], when it means one.
    pub host: Option<&'static str>,
}

/// Upstream's platform versions, from `xla/service/gpu_topology.cc`.
pub const PLATFORM_VERSIONS: &[PlatformVersion] = &[
    platform("tesla_a100", "a100_sxm_40", None),
    platform("nvidia_h100", "h100_sxm", None),
    platform("tesla_h200", "h200", None),
    platform("umbriel_b200", "b200", Some("umbriel")),
    platform("umbriel_b300", "b300", None),
    platform("oberon_b200", "gb200", Some("oberon")),
    platform("oberon_b300", "gb300", Some("oberon")),
];

const fn platform(
    name: &'static str,
    gpu: &'static str,
    host: Option<&'static str>,
) -> PlatformVersion {
    PlatformVersion { name, gpu, host }
}

/// Other names of GPUs: upstream's short names and names people use.
pub const GPU_ALIASES: &[(&str, &str)] = &[
    ("a100", "a100_sxm_80"),
    ("h100", "h100_sxm"),
    ("nvidia_a100", "a100_sxm_80"),
    ("nvidia_h200", "h200"),
    ("nvidia_b200", "b200"),
    ("nvidia_b300", "b300"),
    ("nvidia_gb200", "gb200"),
    ("nvidia_gb300", "gb300"),
    ("tesla_p100", "p100"),
    ("tesla_v100", "v100"),
    ("rtx_a6000", "a6000"),
    ("rtx_pro_6000", "rtx6000pro"),
];

/// GPUs that upstream has descriptions of and this program makes no code for.
pub const FOREIGN_GPUS: &[(&str, &str)] = &[
    ("bmg_g21", "an Intel GPU"),
    ("pvc", "an Intel GPU"),
    ("gfx1250", "an AMD GPU"),
    ("mi200", "an AMD GPU"),
    ("mi300", "an AMD GPU"),
    ("mi350", "an AMD GPU"),
];

/// Other names of CPUs.
pub const CPU_ALIASES: &[(&str, &str)] = &[
    ("x86_64", "x86-64"),
    ("x86-64-v1", "x86-64"),
    ("amd64", "x86-64"),
    ("aarch64", "armv8-a"),
    ("arm64", "armv8-a"),
    ("generic", "armv8-a"),
    ("neoverse-512tvb", "neoverse-v1"),
    ("graviton2", "neoverse-n1"),
    ("graviton3", "neoverse-v1"),
    ("graviton4", "neoverse-v2"),
    ("zen", "znver1"),
    ("zen2", "znver2"),
    ("zen3", "znver3"),
    ("zen4", "znver4"),
    ("zen5", "znver5"),
];

/// The description of that name in a list.
pub fn find(list: &'static [BuiltinTarget], name: &str) -> Option<&'static BuiltinTarget> {
    list.iter().find(|target| target.name == name)
}

/// Every name that a GPU can be asked for by, in the order people should see them.
pub fn gpu_names() -> impl Iterator<Item = &'static str> + Clone {
    let versions = PLATFORM_VERSIONS.iter().map(|version| version.name);
    let aliases = GPU_ALIASES.iter().map(|(alias, _)| *alias);
    GPUS.iter()
        .map(|gpu| gpu.name)
        .chain(versions)
        .chain(aliases)
}

/// Every name that a CPU can be asked for by, in the order people should see them.
pub fn cpu_names() -> impl Iterator<Item = &'static str> + Clone {
    let aliases = CPU_ALIASES.iter().map(|(alias, _)| *alias);
    CPUS.iter().map(|cpu| cpu.name).chain(aliases)
}
