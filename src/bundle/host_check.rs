//! Whether a bundle can run on a host: processor family and features, GPU capability, driver.

use crate::base::ByteSize;
use crate::bundle::Bundle;
use crate::executable::Code;
use crate::executable::TargetNeeds;
use crate::target::HostGpu;
use crate::target::HostInfo;
use crate::target::Isa;
use crate::target::ptx::driver_for_capability;
use crate::target::ptx::driver_for_ptx;
use crate::target::triple::family_of_arch;

/// Why the bundle cannot run on the host: what it needs and the host lacks, sentences without a full
/// stop; nothing when it can.
pub fn host_check(bundle: &Bundle, host: &HostInfo) -> Vec<String> {
    match &bundle.executable.needs {
        // A program of library calls alone holds no code, and old releases of jaxlib name no machine.
        TargetNeeds::Cpu { triple, .. }
            if triple.is_empty() && bundle.executable.images.is_empty() =>
        {
            Vec::new()
        }
        TargetNeeds::Cpu {
            triple, features, ..
        } => cpu_reasons(triple, features, bundle.is_own, host),
        TargetNeeds::Cuda {
            major,
            minor,
            feature_extension,
            ..
        } => {
            let number = |n: i32| u32::try_from(n).unwrap_or(0);
            let wanted = Capability {
                major: number(*major),
                minor: number(*minor),
                extension: *feature_extension,
            };
            cuda_reasons(bundle, wanted, host)
        }
    }
}

/// `is_own` says that features are named only where code uses them; others name tiles (AMX) wherever
/// the machine of the compiler has them, and do not use them.
fn cpu_reasons(triple: &str, features: &[String], is_own: bool, host: &HostInfo) -> Vec<String> {
    let Some(family) = family_of_arch(triple) else {
        let message = format!("the code is for `{triple}`, which this program does not run");
        return vec![message];
    };
    if host.family != Some(family) {
        let here = host.family.map_or("another architecture", |f| f.name());
        let message = format!("the code is for {}, this host is {here}", family.name());
        return vec![message];
    }
    let isa = Isa::of(family);
    let wanted = features.iter().filter_map(|f| f.strip_prefix('+'));
    let is_tile = |f: &str| f.starts_with("amx-");
    let missing: Vec<&str> = wanted
        .filter(|f| isa.is_needed_at_run_time(f) || is_own && is_tile(f))
        .filter(|f| !host.has(f))
        .collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let lacks = match missing.iter().any(|f| is_tile(f)) {
        true => "processor lacks or its system does not give to this process",
        false => "processor lacks",
    };
    let missing = missing.join(", ");
    vec![format!(
        "the code uses {missing}, which this host's {lacks}"
    )]
}

/// What a GPU program asks of its device.
#[derive(Clone, Copy)]
struct Capability {
    major: u32,
    minor: u32,
    /// 0 unspecified, 1 none, 2 accelerated, 3 family.
    extension: i32,
}

impl Capability {
    fn text(self) -> String {
        let suffix = match (self.extension, self.major) {
            (2, _) | (0, 9 | 10) => "a",
            (3, _) => "f",
            _ => "",
        };
        format!("{}.{}{suffix}", self.major, self.minor)
    }

    /// As upstream has it: the device's number must be exactly the bundle's, and a device from 9.0
    /// on is an accelerated one.
    fn fits(self, gpu: &HostGpu) -> bool {
        let device = Self {
            major: gpu.major,
            minor: gpu.minor,
            extension: if gpu.major >= 9 { 2 } else { 1 },
        };
        device.text() == self.text()
    }
}

fn cuda_reasons(bundle: &Bundle, wanted: Capability, host: &HostInfo) -> Vec<String> {
    let mut reasons = Vec::new();
    let here = match host.is_simulated {
        true => "the simulated GPU",
        false => "this host",
    };
    match host.cuda_driver {
        None => reasons.push(format!("{here} has no CUDA driver")),
        Some(driver) => {
            let needed = driver_needed(bundle, wanted);
            if driver < needed {
                reasons.push(format!(
                    "the code needs a driver of CUDA {}, {here} has one of CUDA {}",
                    dotted(needed),
                    dotted(driver)
                ));
            }
        }
    }
    let fitting = host.gpus.iter().filter(|gpu| wanted.fits(gpu));
    let Some(largest) = fitting.max_by_key(|gpu| gpu.memory.0) else {
        let gpus = host.gpus.iter();
        let gpus: Vec<String> = gpus
            .map(|gpu| format!("{} ({}.{})", gpu.name, gpu.major, gpu.minor))
            .collect();
        let gpus = match gpus.is_empty() {
            true => "no GPU".to_owned(),
            false => gpus.join(", "),
        };
        let verb = match host.is_simulated {
            true => "is",
            false => "has",
        };
        let wanted = wanted.text();
        reasons.push(format!(
            "the code is for capability {wanted}, {here} {verb} {gpus}"
        ));
        return reasons;
    };
    let needed = super::describe::device_bytes(&bundle.executable);
    if largest.memory.0 < needed {
        reasons.push(format!(
            "the program needs {} of device memory, {} has {}",
            ByteSize(needed),
            largest.name,
            largest.memory
        ));
    }
    if host.is_simulated {
        let mut images = bundle.executable.images.iter();
        let compiled =
            images.find(|image| !image.kernels.is_empty() && is_machine_code(&image.code));
        if let Some(image) = compiled {
            reasons.push(format!(
                "the image `{}` is machine code, and {here} runs PTX; `compile --no-ptxas` leaves \
                 the PTX in the bundle",
                image.name
            ));
        }
    }
    reasons
}

/// Whether code is compiled, with no PTX beside it.
fn is_machine_code(code: &Code) -> bool {
    match code {
        Code::Cubin(bytes) => bytes.starts_with(b"\x7fELF"),
        Code::Ptx(_) | Code::Elf(_) => false,
    }
}

fn dotted(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// The driver that the capability and the PTX of the kernels need.
fn driver_needed(bundle: &Bundle, wanted: Capability) -> i32 {
    let capability = driver_for_capability(wanted.major, wanted.minor);
    let images = bundle.executable.images.iter();
    let ptx = images.filter_map(|image| match &image.code {
        Code::Ptx(text) => ptx_version_of(text).map(driver_for_ptx),
        Code::Cubin(_) | Code::Elf(_) => None,
    });
    ptx.fold(capability, i32::max)
}

/// The version that a PTX text declares, times ten.
fn ptx_version_of(text: &str) -> Option<u32> {
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.trim().strip_prefix(".version"))?;
    let (major, minor) = line.trim().split_once('.')?;
    let minor: String = minor.chars().take_while(char::is_ascii_digit).collect();
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    major.checked_mul(10)?.checked_add(minor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::CpuFamily;

    #[test]
    fn processors_are_compared_by_family_and_features() {
        let host = HostInfo {
            family: Some(CpuFamily::X86_64),
            features: vec!["avx".into(), "sse2".into()],
            ..HostInfo::default()
        };
        let features = |list: &[&str]| list.iter().map(|f| (*f).to_owned()).collect::<Vec<_>>();
        let triple = "x86_64-unknown-linux-gnu";
        let fits = features(&["+avx", "-avx2", "+prefer-256-bit", "+rdrnd", "+clzero"]);
        assert!(cpu_reasons(triple, &fits, true, &host).is_empty());
        let reasons = cpu_reasons(triple, &features(&["+avx2", "+fma"]), true, &host);
        assert!(reasons[0].contains("avx2, fma"), "{reasons:?}");
        let reasons = cpu_reasons("aarch64-linux-gnu", &[], true, &host);
        assert!(reasons[0].contains("for aarch64, this host is x86_64"));
        let tiles = features(&["+amx-bf16", "+amx-tile"]);
        assert!(cpu_reasons(triple, &tiles, false, &host).is_empty());
        let reasons = cpu_reasons(triple, &tiles, true, &host);
        let wanted = "amx-bf16, amx-tile, which this host's processor lacks or its system";
        assert!(reasons[0].contains(wanted), "{reasons:?}");
    }

    #[test]
    fn capabilities_are_exact() {
        let gpu = |major, minor| HostGpu {
            name: "GPU".into(),
            major,
            minor,
            memory: ByteSize(1 << 34),
        };
        let wanted = |major, minor, extension| Capability {
            major,
            minor,
            extension,
        };
        assert!(wanted(9, 0, 2).fits(&gpu(9, 0)) && wanted(9, 0, 0).fits(&gpu(9, 0)));
        assert!(!wanted(9, 0, 1).fits(&gpu(9, 0)) && !wanted(8, 0, 1).fits(&gpu(8, 6)));
        assert!(wanted(8, 0, 0).fits(&gpu(8, 0)) && !wanted(12, 0, 1).fits(&gpu(12, 0)));
    }

    #[test]
    fn ptx_names_its_version() {
        assert_eq!(
            ptx_version_of("//\n.version 8.6\n.target sm_90a\n"),
            Some(86)
        );
        assert_eq!(ptx_version_of("nothing"), None);
        assert_eq!(dotted(12040), "12.4");
    }
}
