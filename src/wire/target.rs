//! Targets from their text descriptions: the ones that ship, and files of the user.
//!
//! GPUs are text-format `stream_executor.GpuTargetConfigProto`, host machines text-format
//! `xla.cpu.TargetMachineOptionsProto`, CPUs that message with what kernels are shaped by around it.
//! A name or a triple describes a machine completely: nothing here looks at the host.

use prost::Message;

use crate::base::ByteSize;
use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::base::suggest::closest;
use crate::executable::TargetNeeds;
use crate::proto::stream_executor as se;
use crate::proto::xla::cpu::TargetMachineOptionsProto;
use crate::proto::xla_aot::CpuTargetProto;
use crate::target::CapabilitySuffix;
use crate::target::ComputeCapability;
use crate::target::CpuFamily;
use crate::target::CpuSpec;
use crate::target::DeviceSpec;
use crate::target::GpuSpec;
use crate::target::HostInfo;
use crate::target::HostMachine;
use crate::target::Isa;
use crate::target::Target;
use crate::target::builtin;
use crate::target::builtin::BuiltinTarget;
use crate::target::ptx::ptx_version;
use crate::target::triple;
use crate::wire::number::message;
use crate::wire::target_schema::CPU_TARGET;
use crate::wire::target_schema::GPU_TARGET_CONFIG;
use crate::wire::target_schema::TARGET_MACHINE_OPTIONS;
use crate::wire::text_proto;

/// Workgroups a kernel of a CPU program is split into at most. Fixed, so that a bundle does not
/// depend on where it is compiled.
const CPU_PARALLELISM: u32 = 16;

/// The target of any name: a GPU, a CPU, or the triple of a CPU.
///
/// # Errors
/// `XA6004`, with the name that was probably meant.
pub fn by_name(name: &str) -> Result<Target> {
    if builtin::gpu_names().any(|known| known == name) {
        return gpu(name, None);
    }
    if builtin::cpu_names().any(|known| known == name) {
        return cpu(name, None, "");
    }
    if name.matches('-').count() >= 2
        && let Ok(family) = triple::family(name)
    {
        return cpu(baseline(family), Some(name), "");
    }
    if builtin::FOREIGN_GPUS
        .iter()
        .any(|(known, _)| *known == name)
    {
        return gpu(name, None);
    }
    Err(unknown(
        "target",
        name,
        builtin::gpu_names().chain(builtin::cpu_names()),
    ))
}

fn unknown<'a>(
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Box<Diagnostic> {
    let error = Diagnostic::error(
        codes::UNKNOWN_TARGET,
        format!("`{name}` is not the name of a {what}"),
    );
    match closest(name, known.clone()) {
        Some(close) => error.help(format!("did you mean `{close}`?")),
        None => error.note(format!("known: {}", known.collect::<Vec<_>>().join(", "))),
    }
}

/// The CPU every processor of a family can run code for.
fn baseline(family: CpuFamily) -> &'static str {
    match family {
        CpuFamily::X86_64 => "x86-64",
        CpuFamily::AArch64 => "armv8-a",
    }
}

/// The GPU of that name, or of upstream's platform version of that name.
///
/// `host` is the machine that will drive it; without one it is the platform version's, or none.
///
/// # Errors
/// `XA6004` when the name is not known, with the one that was probably meant.
pub fn gpu(name: &str, host: Option<HostMachine>) -> Result<Target> {
    if let Some((_, what)) = builtin::FOREIGN_GPUS
        .iter()
        .find(|(known, _)| *known == name)
    {
        return Err(Diagnostic::unsupported(
            codes::UNKNOWN_TARGET,
            format!("`{name}` is {what}; code is made for CPUs and NVIDIA GPUs only"),
        ));
    }
    let version = builtin::PLATFORM_VERSIONS.iter().find(|v| v.name == name);
    let alias = builtin::GPU_ALIASES
        .iter()
        .find(|(alias, _)| *alias == name);
    let file = match (version, alias) {
        (Some(version), _) => version.gpu,
        (None, Some((_, file))) => file,
        (None, None) => name,
    };
    let description = builtin::find(builtin::GPUS, file);
    let description = description.ok_or_else(|| unknown("GPU", name, builtin::gpu_names()))?;
    let mut target = gpu_from_text(description.text)?;
    if let DeviceSpec::Gpu(spec) = &mut target.device {
        name.clone_into(&mut spec.name);
        if let Some(version) = version {
            version.name.clone_into(&mut spec.platform_version);
            if let Some(host) = version.host {
                spec.host = host_by_name(host)?;
            }
        }
        if let Some(host) = host {
            spec.host = host;
        }
    }
    Ok(target)
}

fn host_by_name(name: &str) -> Result<HostMachine> {
    match builtin::find(builtin::HOSTS, name) {
        Some(description) => host_from_text(description.text),
        None => Err(unknown("host", name, builtin::HOSTS.iter().map(|h| h.name))),
    }
}

/// The host machine that a text-format `xla.cpu.TargetMachineOptionsProto` describes.
///
/// # Errors
/// `XA1002` or `XA1006` with line and column when the text is wrong.
pub fn host_from_text(text: &str) -> Result<HostMachine> {
    let bytes = text_proto::encode(text, &TARGET_MACHINE_OPTIONS)?;
    let proto: TargetMachineOptionsProto = message(&bytes, TARGET_MACHINE_OPTIONS.name)?;
    Ok(HostMachine {
        triple: proto.triple,
        cpu: proto.cpu,
        features: proto.features,
    })
}

/// A CPU's features as the wire has them: each with its sign, the ones in use first.
pub fn signed(cpu: &CpuSpec) -> Vec<String> {
    let on = cpu.features.iter().map(|f| format!("+{f}"));
    let off = cpu.disabled_features.iter().map(|f| format!("-{f}"));
    on.chain(off).collect()
}

/// What a program made for a target needs of the machine that runs it.
///
/// `data_layout` is LLVM's layout string of a CPU; GPU bundles have none.
///
/// # Errors
/// `XA1004` when the GPU's own description is damaged.
pub fn needs(target: &Target, data_layout: &str) -> Result<TargetNeeds> {
    let gpu = match &target.device {
        DeviceSpec::Gpu(gpu) => gpu,
        DeviceSpec::Cpu(cpu) => {
            return Ok(TargetNeeds::Cpu {
                triple: cpu.triple.clone(),
                cpu: cpu.llvm_cpu.clone(),
                features: signed(cpu),
                data_layout: data_layout.to_owned(),
            });
        }
    };
    let config: se::GpuTargetConfigProto = message(&gpu.config_proto, GPU_TARGET_CONFIG.name)?;
    let number = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
    Ok(TargetNeeds::Cuda {
        major: number(gpu.capability.major),
        minor: number(gpu.capability.minor),
        feature_extension: match gpu.capability.suffix {
            CapabilitySuffix::None => 1,
            CapabilitySuffix::Accelerated => 2,
            CapabilitySuffix::Family => 3,
        },
        host_triple: gpu.host.triple.clone(),
        host_cpu: gpu.host.cpu.clone(),
        host_features: gpu.host.features.clone(),
        abi_version: abi_version(&config).encode_to_vec(),
        target_config: gpu.config_proto.clone(),
        platform_version: gpu.platform_version.clone(),
    })
}

/// Versions of libraries as upstream records them: those of the description.
fn abi_version(config: &se::GpuTargetConfigProto) -> se::ExecutableAbiVersionProto {
    use se::executable_abi_version_proto::CudaPlatformVersion;
    use se::executable_abi_version_proto::PlatformSpecificVersion;
    let info = config.gpu_device_info.clone().unwrap_or_default();
    let version = CudaPlatformVersion {
        cuda_toolkit_version: info.runtime_version.into_bytes(),
        cudnn_version: info.dnn_version.into_bytes(),
        cub_version: info.cub_version.into_bytes(),
    };
    se::ExecutableAbiVersionProto {
        platform_name: "CUDA".to_owned(),
        platform_specific_version: Some(PlatformSpecificVersion::CudaPlatformVersion(version)),
    }
}

/// The GPU that a text-format `stream_executor.GpuTargetConfigProto` describes.
///
/// # Errors
/// `XA1002` or `XA1006` with line and column when the text is wrong, `XA6004` when what it
/// describes is incomplete or no NVIDIA GPU.
pub fn gpu_from_text(text: &str) -> Result<Target> {
    let bytes = text_proto::encode(text, &GPU_TARGET_CONFIG)?;
    gpu_from_config(&message(&bytes, GPU_TARGET_CONFIG.name)?)
}

/// The GPU that a serialized `stream_executor.GpuTargetConfigProto` describes.
///
/// # Errors
/// As [`gpu_from_text`].
pub fn gpu_from_bytes(bytes: &[u8]) -> Result<Target> {
    gpu_from_config(&message(bytes, GPU_TARGET_CONFIG.name)?)
}

fn wrong_gpu(message: impl Into<String>) -> Box<Diagnostic> {
    Diagnostic::error(codes::UNKNOWN_TARGET, message)
}

fn gpu_from_config(config: &se::GpuTargetConfigProto) -> Result<Target> {
    use se::gpu_device_info_proto::ComputeCapability as Capability;
    if !matches!(config.platform_name.as_str(), "" | "CUDA") {
        return Err(Diagnostic::unsupported(
            codes::UNKNOWN_TARGET,
            format!(
                "no code is made for the platform `{}`",
                config.platform_name
            ),
        ));
    }
    let info = config.gpu_device_info.as_ref();
    let info = info.ok_or_else(|| wrong_gpu("a GPU description without `gpu_device_info`"))?;
    let Some(Capability::CudaComputeCapability(capability)) = &info.compute_capability else {
        return Err(wrong_gpu(
            "a GPU description without `cuda_compute_capability`",
        ));
    };
    let capability = decode_capability(capability)?;
    let positive = |value: i64, what: &str| {
        let value = u32::try_from(value).ok().filter(|&v| v > 0);
        value.ok_or_else(|| wrong_gpu(format!("`{what}` of a GPU description is not positive")))
    };
    let bytes = |value: i64| ByteSize(u64::try_from(value).unwrap_or(0));
    let cores = positive(i64::from(info.core_count), "core_count")?;
    let shared = positive(
        i64::from(info.shared_memory_per_block),
        "shared_memory_per_block",
    )?;
    Ok(Target {
        device: DeviceSpec::Gpu(GpuSpec {
            name: capability.sm_name(),
            platform_version: String::new(),
            capability,
            ptx_version: ptx_version(capability),
            cores,
            fpus_per_core: positive(info.fpus_per_core.max(1), "fpus_per_core")?,
            threads_per_core: positive(
                i64::from(info.threads_per_core_limit),
                "threads_per_core_limit",
            )?,
            threads_per_block: positive(
                i64::from(info.threads_per_block_limit),
                "threads_per_block_limit",
            )?,
            shared_per_block: ByteSize(u64::from(shared)),
            shared_per_block_optin: bytes(i64::from(
                info.shared_memory_per_block_optin
                    .max(info.shared_memory_per_block),
            )),
            l2_bytes: bytes(info.l2_cache_size),
            memory_bytes: bytes(info.device_memory_size),
            bandwidth: info.memory_bandwidth.max(0) as f64,
            clock_ghz: f64::from(info.clock_rate_ghz),
            config_proto: config.encode_to_vec(),
            host: HostMachine::default(),
        }),
        buffer_alignment: 256,
        parameter_alignment: 16,
        parallelism: cores,
    })
}

/// A capability that leaves its suffix open is accelerated for Hopper and Blackwell's data centre
/// parts, as upstream reads it.
fn decode_capability(proto: &se::CudaComputeCapabilityProto) -> Result<ComputeCapability> {
    let number = |value: i32, least: i32| {
        let value = Some(value).filter(|v| (least..100).contains(v));
        let value = value.and_then(|v| u32::try_from(v).ok());
        value.ok_or_else(|| {
            wrong_gpu(format!(
                "{}.{} is not a compute capability",
                proto.major, proto.minor
            ))
        })
    };
    Ok(ComputeCapability {
        major: number(proto.major, 1)?,
        minor: number(proto.minor, 0)?,
        suffix: match (proto.feature_extension, proto.major) {
            (2, _) | (0, 9 | 10) => CapabilitySuffix::Accelerated,
            (3, _) => CapabilitySuffix::Family,
            _ => CapabilitySuffix::None,
        },
    })
}

/// The CPU of that name.
///
/// `triple` replaces the name's own and must be of its family; `features` are changes such as
/// `+avx2,-fma`, which take implied and dependent features along.
///
/// # Errors
/// `XA6004` when the name, the triple or a feature is not known or they do not fit together.
pub fn cpu(name: &str, triple: Option<&str>, features: &str) -> Result<Target> {
    let alias = builtin::CPU_ALIASES
        .iter()
        .find(|(alias, _)| *alias == name);
    let file = alias.map_or(name, |(_, file)| file);
    let description = builtin::find(builtin::CPUS, file);
    let description = description.ok_or_else(|| unknown("CPU", name, builtin::cpu_names()))?;
    let mut spec = cpu_from_text(description)?;
    name.clone_into(&mut spec.name);
    if let Some(triple) = triple {
        let family = triple::family(triple)?;
        if family != spec.family {
            return Err(Diagnostic::error(
                codes::UNKNOWN_TARGET,
                format!(
                    "`{name}` is a CPU of {}, `{triple}` names {}",
                    spec.family.name(),
                    family.name()
                ),
            ));
        }
        triple.clone_into(&mut spec.triple);
    }
    apply_features(&mut spec, features)?;
    Ok(cpu_target(spec))
}

/// The CPU of a host, with the features that processor and system support.
///
/// # Errors
/// `XA6004` when the host's family is none that code is made for.
pub fn native(host: &HostInfo) -> Result<Target> {
    let family = host.family.ok_or_else(|| {
        Diagnostic::unsupported(
            codes::UNKNOWN_TARGET,
            "this host's processor is neither x86_64 nor aarch64",
        )
    })?;
    let known = builtin::find(builtin::CPUS, &host.cpu);
    let shaped = known.or(builtin::find(builtin::CPUS, baseline(family)));
    let mut spec = match shaped {
        Some(description) => cpu_from_text(description)?,
        None => return Err(unknown("CPU", &host.cpu, builtin::cpu_names())),
    };
    let isa = Isa::of(family);
    let shape = spec.register_bytes();
    spec.name = "native".to_owned();
    spec.family = family;
    triple::default_triple(family).clone_into(&mut spec.triple);
    spec.llvm_cpu.clone_from(&host.cpu);
    let features = host.features.iter().filter(|f| isa.knows(f));
    spec.features = features.cloned().collect();
    spec.features.sort_unstable();
    reshape_vectors(&mut spec, shape);
    Ok(cpu_target(spec))
}

fn cpu_target(spec: CpuSpec) -> Target {
    Target {
        device: DeviceSpec::Cpu(spec),
        buffer_alignment: 64,
        parameter_alignment: 64,
        parallelism: CPU_PARALLELISM,
    }
}

fn cpu_from_text(description: &BuiltinTarget) -> Result<CpuSpec> {
    let bytes = text_proto::encode(description.text, &CPU_TARGET)?;
    let proto: CpuTargetProto = message(&bytes, CPU_TARGET.name)?;
    let machine = proto.machine.unwrap_or_default();
    let count = |value: i32| u32::try_from(value).unwrap_or(16).max(16);
    let bytes = |value: i64| ByteSize(u64::try_from(value).unwrap_or(0));
    let features = machine
        .features
        .split(',')
        .filter_map(|f| f.strip_prefix('+'));
    let mut features: Vec<String> = features.map(str::to_owned).collect();
    features.sort_unstable();
    Ok(CpuSpec {
        name: description.name.to_owned(),
        family: triple::family(&machine.triple)?,
        triple: machine.triple,
        llvm_cpu: machine.cpu,
        features,
        disabled_features: Vec::new(),
        vector_bytes: count(proto.vector_bytes),
        vector_registers: count(proto.vector_registers),
        l1_bytes: bytes(proto.l1_data_bytes),
        l2_bytes: bytes(proto.l2_bytes),
    })
}

fn apply_features(spec: &mut CpuSpec, changes: &str) -> Result<()> {
    let before = spec.register_bytes();
    let isa = Isa::of(spec.family);
    let (on, off) = isa.apply(&spec.features, changes)?;
    spec.features = on.into_iter().collect();
    spec.disabled_features = off.into_iter().collect();
    reshape_vectors(spec, before);
    Ok(())
}

/// Fits vector sizes to changed features. A processor that does better with narrower vectors than
/// it has keeps to them.
fn reshape_vectors(spec: &mut CpuSpec, widest_before: u32) {
    let widest = spec.register_bytes();
    if widest != widest_before {
        let prefers_narrow = spec.vector_bytes < widest_before;
        let wanted = if prefers_narrow {
            spec.vector_bytes
        } else {
            widest
        };
        spec.vector_bytes = wanted.min(widest);
    }
    if spec.family == CpuFamily::X86_64 {
        spec.vector_registers = if spec.has("avx512vl") { 32 } else { 16 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_that_ships_reads() {
        for name in builtin::gpu_names() {
            let target = gpu(name, None).unwrap();
            let spec = target.gpu().unwrap();
            assert_eq!(spec.name, name);
            assert!(
                spec.memory_bytes.0 > 1 << 33 && spec.bandwidth > 4e11,
                "{name}"
            );
            assert!(
                spec.shared_per_block_optin >= spec.shared_per_block,
                "{name}"
            );
            assert_eq!(
                gpu_from_bytes(&spec.config_proto)
                    .unwrap()
                    .gpu()
                    .unwrap()
                    .cores,
                spec.cores
            );
        }
        for name in builtin::cpu_names() {
            let target = cpu(name, None, "").unwrap();
            let spec = target.cpu().unwrap();
            let isa = Isa::of(spec.family);
            for feature in &spec.features {
                assert!(isa.knows(feature), "{name}: {feature}");
                for implied in isa.with_implied(feature) {
                    let tuning = !isa.is_needed_at_run_time(implied);
                    assert!(
                        tuning || spec.has(implied),
                        "{name}: {feature} without {implied}"
                    );
                }
            }
            assert!(matches!(spec.vector_bytes, 16 | 32 | 64), "{name}");
        }
    }

    #[test]
    fn platform_versions_bring_gpu_and_host() {
        let target = by_name("oberon_b200").unwrap();
        let spec = target.gpu().unwrap();
        assert_eq!(spec.capability.sm_name(), "sm_100a");
        assert_eq!(
            (spec.cores, spec.platform_version.as_str()),
            (152, "oberon_b200")
        );
        assert_eq!(spec.host.triple, "aarch64-linux-gnu");
        assert_eq!(spec.host.cpu, "neoverse-n1");
        assert!(spec.host.features.starts_with("+aes,") && spec.host.features.ends_with(",-sve2"));
        let h100 = by_name("nvidia_h100").unwrap();
        assert_eq!(h100.gpu().unwrap().capability.sm_name(), "sm_90a");
        assert_eq!(h100.gpu().unwrap().host, HostMachine::default());
        assert_eq!(
            by_name("rtx6000pro")
                .unwrap()
                .gpu()
                .unwrap()
                .capability
                .sm_name(),
            "sm_120a"
        );
        assert_eq!(
            by_name("a100").unwrap().gpu().unwrap().memory_bytes.0,
            85_100_068_864
        );
    }

    #[test]
    fn cpus_take_features_and_triples() {
        let target = cpu("haswell", None, "-avx2").unwrap();
        let spec = target.cpu().unwrap();
        assert!(spec.has("avx") && !spec.has("avx2"));
        assert!(spec.disabled_features.contains(&"avx2".to_owned()));
        let wide = cpu("x86-64", None, "+avx512f,+avx512vl").unwrap();
        let wide = wide.cpu().unwrap();
        assert_eq!((wide.vector_bytes, wide.vector_registers), (64, 32));
        assert_eq!(
            cpu("skylake-avx512", None, "")
                .unwrap()
                .cpu()
                .unwrap()
                .vector_bytes,
            32
        );
        assert_eq!(
            cpu("znver3", None, "-avx")
                .unwrap()
                .cpu()
                .unwrap()
                .vector_bytes,
            16
        );
        let arm = by_name("aarch64-unknown-linux-gnu").unwrap();
        assert_eq!(arm.cpu().unwrap().llvm_cpu, "generic");
        assert!(cpu("haswell", Some("aarch64-unknown-linux-gnu"), "").is_err());
        assert!(cpu("haswell", None, "+neon").is_err());
    }

    #[test]
    fn unknown_names_bring_the_close_one() {
        for (name, close) in [
            ("h100-sxm", "h100_sxm"),
            ("znver33", "znver3"),
            ("oberon_b20", "oberon_b200"),
        ] {
            let error = by_name(name).unwrap_err().to_string();
            assert!(
                error.contains(&format!("did you mean `{close}`?")),
                "{error}"
            );
        }
        assert!(by_name("pvc").unwrap_err().to_string().contains("Intel"));
        assert!(
            by_name("tpu_v5e")
                .unwrap_err()
                .to_string()
                .contains("known: p100")
        );
    }

    #[test]
    fn descriptions_are_checked() {
        for (text, wanted) in [
            ("", "gpu_device_info"),
            (
                "gpu_device_info { core_count: 4 }",
                "cuda_compute_capability",
            ),
            (
                "gpu_device_info { cor_count: 4 }",
                "did you mean `core_count`?",
            ),
            (
                "gpu_device_info { cuda_compute_capability { major: 8 } }",
                "`core_count`",
            ),
            ("platform_name: \"ROCM\"", "platform `ROCM`"),
        ] {
            let error = gpu_from_text(text).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
