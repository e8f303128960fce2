//! What this machine's processor and system offer, in LLVM's words.
//!
//! x86-64: CPUID (Intel's and AMD's manuals) and XCR0, which says whether the system saves the wide
//! registers; a feature whose registers are not saved counts as absent. AArch64: what the standard
//! library reads from the kernel's hardware capabilities.

use crate::target::CpuFamily;
use crate::target::HostInfo;

/// Looks at the machine. CUDA devices are added by `runtime::cuda`.
pub fn probe() -> HostInfo {
    HostInfo {
        family: family(),
        cpu: cpu_name(),
        features: features(),
        threads: threads(),
        ..HostInfo::default()
    }
}

/// Threads this process may use: what affinity and the control group's quota leave it.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn family() -> Option<CpuFamily> {
    match std::env::consts::ARCH {
        "x86_64" => Some(CpuFamily::X86_64),
        "aarch64" => Some(CpuFamily::AArch64),
        _ => None,
    }
}

#[cfg(target_arch = "x86_64")]
mod machine {
    use std::arch::x86_64::__cpuid;
    use std::arch::x86_64::__cpuid_count;

    /// What of the processor's state the system must save for a feature to be usable.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub(super) enum State {
        /// Nothing beyond the 64-bit baseline.
        Base,
        /// 256-bit registers.
        Avx,
        /// 512-bit registers and masks.
        Avx512,
        /// Tiles.
        Amx,
    }

    /// A register of CPUID's answer.
    #[derive(Clone, Copy)]
    enum Reg {
        A,
        B,
        C,
        D,
    }

    use Reg::A;
    use Reg::B;
    use Reg::C;
    use Reg::D;
    use State::Amx;
    use State::Avx;
    use State::Avx512;
    use State::Base;

    /// Leaf, subleaf, register, bit, LLVM's name, state.
    const TABLE: &[(u32, u32, Reg, u32, &str, State)] = &[
        (1, 0, D, 8, "cx8", Base),
        (1, 0, D, 15, "cmov", Base),
        (1, 0, D, 23, "mmx", Base),
        (1, 0, D, 24, "fxsr", Base),
        (1, 0, D, 25, "sse", Base),
        (1, 0, D, 26, "sse2", Base),
        (1, 0, C, 0, "sse3", Base),
        (1, 0, C, 1, "pclmul", Base),
        (1, 0, C, 9, "ssse3", Base),
        (1, 0, C, 12, "fma", Avx),
        (1, 0, C, 13, "cx16", Base),
        (1, 0, C, 19, "sse4.1", Base),
        (1, 0, C, 20, "sse4.2", Base),
        (1, 0, C, 20, "crc32", Base),
        (1, 0, C, 22, "movbe", Base),
        (1, 0, C, 23, "popcnt", Base),
        (1, 0, C, 25, "aes", Base),
        (1, 0, C, 27, "xsave", Base),
        (1, 0, C, 28, "avx", Avx),
        (1, 0, C, 29, "f16c", Avx),
        (1, 0, C, 30, "rdrnd", Base),
        (7, 0, B, 0, "fsgsbase", Base),
        (7, 0, B, 2, "sgx", Base),
        (7, 0, B, 3, "bmi", Base),
        (7, 0, B, 4, "hle", Base),
        (7, 0, B, 5, "avx2", Avx),
        (7, 0, B, 7, "smep", Base),
        (7, 0, B, 8, "bmi2", Base),
        (7, 0, B, 10, "invpcid", Base),
        (7, 0, B, 11, "rtm", Base),
        (7, 0, B, 16, "avx512f", Avx512),
        (7, 0, B, 17, "avx512dq", Avx512),
        (7, 0, B, 18, "rdseed", Base),
        (7, 0, B, 19, "adx", Base),
        (7, 0, B, 21, "avx512ifma", Avx512),
        (7, 0, B, 23, "clflushopt", Base),
        (7, 0, B, 24, "clwb", Base),
        (7, 0, B, 28, "avx512cd", Avx512),
        (7, 0, B, 29, "sha", Base),
        (7, 0, B, 30, "avx512bw", Avx512),
        (7, 0, B, 31, "avx512vl", Avx512),
        (7, 0, C, 1, "avx512vbmi", Avx512),
        (7, 0, C, 3, "pku", Base),
        (7, 0, C, 5, "waitpkg", Base),
        (7, 0, C, 6, "avx512vbmi2", Avx512),
        (7, 0, C, 7, "shstk", Base),
        (7, 0, C, 8, "gfni", Base),
        (7, 0, C, 9, "vaes", Avx),
        (7, 0, C, 10, "vpclmulqdq", Avx),
        (7, 0, C, 11, "avx512vnni", Avx512),
        (7, 0, C, 12, "avx512bitalg", Avx512),
        (7, 0, C, 14, "avx512vpopcntdq", Avx512),
        (7, 0, C, 22, "rdpid", Base),
        (7, 0, C, 25, "cldemote", Base),
        (7, 0, C, 27, "movdiri", Base),
        (7, 0, C, 28, "movdir64b", Base),
        (7, 0, C, 29, "enqcmd", Base),
        (7, 0, D, 5, "uintr", Base),
        (7, 0, D, 8, "avx512vp2intersect", Avx512),
        (7, 0, D, 14, "serialize", Base),
        (7, 0, D, 16, "tsxldtrk", Base),
        (7, 0, D, 18, "pconfig", Base),
        (7, 0, D, 22, "amx-bf16", Amx),
        (7, 0, D, 23, "avx512fp16", Avx512),
        (7, 0, D, 24, "amx-tile", Amx),
        (7, 0, D, 25, "amx-int8", Amx),
        (7, 1, A, 0, "sha512", Avx),
        (7, 1, A, 1, "sm3", Avx),
        (7, 1, A, 2, "sm4", Avx),
        (7, 1, A, 4, "avxvnni", Avx),
        (7, 1, A, 5, "avx512bf16", Avx512),
        (7, 1, A, 7, "cmpccxadd", Base),
        (7, 1, A, 21, "amx-fp16", Amx),
        (7, 1, A, 22, "hreset", Base),
        (7, 1, A, 23, "avxifma", Avx),
        (7, 1, D, 4, "avxvnniint8", Avx),
        (7, 1, D, 5, "avxneconvert", Avx),
        (7, 1, D, 8, "amx-complex", Amx),
        (7, 1, D, 10, "avxvnniint16", Avx),
        (7, 1, D, 14, "prefetchi", Base),
        (0xd, 1, A, 0, "xsaveopt", Base),
        (0xd, 1, A, 1, "xsavec", Base),
        (0xd, 1, A, 3, "xsaves", Base),
        (0x8000_0001, 0, C, 0, "sahf", Base),
        (0x8000_0001, 0, C, 5, "lzcnt", Base),
        (0x8000_0001, 0, C, 6, "sse4a", Base),
        (0x8000_0001, 0, C, 8, "prfchw", Base),
        (0x8000_0001, 0, C, 11, "xop", Avx),
        (0x8000_0001, 0, C, 15, "lwp", Base),
        (0x8000_0001, 0, C, 16, "fma4", Avx),
        (0x8000_0001, 0, C, 21, "tbm", Base),
        (0x8000_0001, 0, C, 29, "mwaitx", Base),
        (0x8000_0001, 0, D, 29, "64bit", Base),
        (0x8000_0008, 0, B, 0, "clzero", Base),
        (0x8000_0008, 0, B, 4, "rdpru", Base),
        (0x8000_0008, 0, B, 9, "wbnoinvd", Base),
    ];

    fn highest(start: u32) -> u32 {
        __cpuid(start).eax
    }

    /// The widest state that processor and system handle, and whether tiles are among it, which Linux
    /// has to be asked for by a process (Documentation/arch/x86/xstate.rst); asking again is no fault.
    fn saved() -> (State, bool) {
        const XSAVE: u32 = 1 << 26;
        const OSXSAVE: u32 = 1 << 27;
        let has = __cpuid(1).ecx;
        if has & XSAVE == 0 || has & OSXSAVE == 0 {
            return (Base, false);
        }
        let enabled = xcr0();
        let all = |mask: u64| enabled & mask == mask;
        let widest = match (all(0x6), all(0xe6)) {
            (true, true) => Avx512,
            (true, false) => Avx,
            (false, _) => Base,
        };
        (widest, all(0x6_0000) && gives_tiles())
    }

    #[cfg(target_os = "linux")]
    #[allow(unsafe_code, reason = "calls the system")]
    fn gives_tiles() -> bool {
        const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
        const XFEATURE_XTILEDATA: libc::c_long = 18;
        // SAFETY: the call takes two numbers and no address.
        let failed = unsafe {
            libc::syscall(
                libc::SYS_arch_prctl,
                ARCH_REQ_XCOMP_PERM,
                XFEATURE_XTILEDATA,
            )
        };
        failed == 0
    }

    /// Kernels know how to ask Linux only.
    #[cfg(not(target_os = "linux"))]
    fn gives_tiles() -> bool {
        false
    }

    #[allow(unsafe_code, reason = "reads a control register")]
    fn xcr0() -> u64 {
        let (low, high): (u32, u32);
        // SAFETY: the caller has seen OSXSAVE, so the instruction exists; it only reads.
        unsafe {
            std::arch::asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") high,
                options(nomem, nostack));
        };
        u64::from(high) << 32 | u64::from(low)
    }

    pub(super) fn features() -> Vec<String> {
        let (widest, has_tiles) = saved();
        let (basic, extended) = (highest(0), highest(0x8000_0000));
        let mut found: Vec<String> = Vec::new();
        for &(leaf, subleaf, reg, bit, name, state) in TABLE {
            let last = if leaf >= 0x8000_0000 { extended } else { basic };
            if leaf > last || (leaf == 7 && subleaf > __cpuid_count(7, 0).eax) {
                continue;
            }
            let answer = __cpuid_count(leaf, subleaf);
            let word = match reg {
                A => answer.eax,
                B => answer.ebx,
                C => answer.ecx,
                D => answer.edx,
            };
            let usable = if state == Amx {
                has_tiles
            } else {
                state <= widest
            };
            if usable && word >> bit & 1 == 1 {
                found.push(name.to_owned());
            }
        }
        let versions = [(1, "avx10.1"), (2, "avx10.2")];
        let version = if widest == Avx512 { avx10() } else { 0 };
        let known = versions.iter().filter(|(least, _)| *least <= version);
        found.extend(known.map(|(_, name)| (*name).to_owned()));
        found.sort();
        found
    }

    /// The version of AVX10, which has a number where other features have bits; 0 is none.
    fn avx10() -> u32 {
        let told = highest(0) >= 0x24 && __cpuid_count(7, 0).eax >= 1;
        if told && __cpuid_count(7, 1).edx >> 19 & 1 == 1 {
            __cpuid_count(0x24, 0).ebx & 0xff
        } else {
            0
        }
    }

    /// Vendor, family, first and last model, LLVM's name.
    const NAMES: &[(&str, u32, u32, u32, &str)] = &[
        ("AuthenticAMD", 0x17, 0x00, 0x2f, "znver1"),
        ("AuthenticAMD", 0x17, 0x30, 0xff, "znver2"),
        ("AuthenticAMD", 0x19, 0x00, 0x0f, "znver3"),
        ("AuthenticAMD", 0x19, 0x10, 0x1f, "znver4"),
        ("AuthenticAMD", 0x19, 0x20, 0x5f, "znver3"),
        ("AuthenticAMD", 0x19, 0x60, 0xaf, "znver4"),
        ("AuthenticAMD", 0x1a, 0x00, 0xff, "znver5"),
        ("GenuineIntel", 6, 0x3f, 0x3f, "haswell"),
        ("GenuineIntel", 6, 0x4f, 0x4f, "broadwell"),
        ("GenuineIntel", 6, 0x56, 0x56, "broadwell"),
        ("GenuineIntel", 6, 0x55, 0x55, "skylake-avx512"),
        ("GenuineIntel", 6, 0x6a, 0x6a, "icelake-server"),
        ("GenuineIntel", 6, 0x6c, 0x6c, "icelake-server"),
        ("GenuineIntel", 6, 0x8f, 0x8f, "sapphirerapids"),
        ("GenuineIntel", 6, 0xcf, 0xcf, "emeraldrapids"),
        ("GenuineIntel", 6, 0xad, 0xad, "graniterapids"),
        ("GenuineIntel", 6, 0x97, 0x97, "alderlake"),
        ("GenuineIntel", 6, 0x9a, 0x9a, "alderlake"),
        ("GenuineIntel", 6, 0xb7, 0xb7, "raptorlake"),
    ];

    pub(super) fn cpu_name(features: &[String]) -> String {
        let vendor = __cpuid(0);
        let words = [vendor.ebx, vendor.edx, vendor.ecx];
        let vendor: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let version = __cpuid(1).eax;
        let base = version >> 8 & 0xf;
        let family = if base == 0xf {
            base + (version >> 20 & 0xff)
        } else {
            base
        };
        let model = (version >> 4 & 0xf) | (version >> 12 & 0xf0);
        let known = NAMES.iter().find(|(v, f, first, last, _)| {
            v.as_bytes() == vendor && *f == family && (*first..=*last).contains(&model)
        });
        known.map_or_else(|| level(features), |(.., name)| (*name).to_owned())
    }

    /// The highest level of the x86-64 psABI that the features reach.
    fn level(features: &[String]) -> String {
        let has = |names: &[&str]| names.iter().all(|n| features.iter().any(|f| f == n));
        let v2 = has(&[
            "cx16", "sahf", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3",
        ]);
        let v3 = has(&[
            "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe",
        ]);
        let v4 = has(&["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"]);
        let name = match (v2, v3, v4) {
            (true, true, true) => "x86-64-v4",
            (true, true, false) => "x86-64-v3",
            (true, false, _) => "x86-64-v2",
            (false, ..) => "x86-64",
        };
        name.to_owned()
    }
}

#[cfg(target_arch = "x86_64")]
fn features() -> Vec<String> {
    machine::features()
}

#[cfg(target_arch = "x86_64")]
fn cpu_name() -> String {
    machine::cpu_name(&machine::features())
}

#[cfg(target_arch = "aarch64")]
fn features() -> Vec<String> {
    macro_rules! detect {
        ($($found:tt => $name:literal,)*) => {
            vec![$((std::arch::is_aarch64_feature_detected!($found), $name),)*]
        };
    }
    let all = detect! {
        "neon" => "neon",
        "neon" => "fp-armv8",
        "aes" => "aes",
        "sha2" => "sha2",
        "sha3" => "sha3",
        "sm4" => "sm4",
        "crc" => "crc",
        "lse" => "lse",
        "rdm" => "rdm",
        "fp16" => "fullfp16",
        "fhm" => "fp16fml",
        "dotprod" => "dotprod",
        "i8mm" => "i8mm",
        "bf16" => "bf16",
        "sve" => "sve",
        "sve2" => "sve2",
        "f32mm" => "f32mm",
        "f64mm" => "f64mm",
        "rcpc" => "rcpc",
        "rcpc2" => "rcpc-immo",
        "jsconv" => "jsconv",
        "fcma" => "complxnum",
        "flagm" => "flagm",
        "frintts" => "fptoint",
        "dpb" => "ccpp",
        "dpb2" => "ccdp",
        "ssbs" => "ssbs",
        "sb" => "sb",
        "dit" => "dit",
        "bti" => "bti",
        "paca" => "pauth",
        "rand" => "rand",
        "mte" => "mte",
    };
    let found = all.into_iter().filter(|(found, _)| *found);
    let mut names: Vec<String> = found.map(|(_, name)| name.to_owned()).collect();
    names.sort();
    names
}

#[cfg(target_arch = "aarch64")]
fn cpu_name() -> String {
    "generic".to_owned()
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn features() -> Vec<String> {
    Vec::new()
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn cpu_name() -> String {
    String::new()
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_standard_library() {
        let host = probe();
        assert!(host.has("sse2") && host.has("64bit"));
        assert_eq!(host.has("avx2"), is_x86_feature_detected!("avx2"));
        assert_eq!(host.has("fma"), is_x86_feature_detected!("fma"));
        assert_eq!(host.has("bmi2"), is_x86_feature_detected!("bmi2"));
        assert_eq!(host.has("avx512f"), is_x86_feature_detected!("avx512f"));
        assert_eq!(
            host.has("avx512fp16"),
            is_x86_feature_detected!("avx512fp16")
        );
        assert_eq!(host.has("f16c"), is_x86_feature_detected!("f16c"));
        // Versions of AVX10 hold all before them (Intel's manual, leaf 24H).
        assert!(host.has("avx10.1") || !host.has("avx10.2"));
        assert!(host.has("avx512fp16") || !host.has("avx10.1"));
        assert!(host.threads > 0 && !host.cpu.is_empty());
    }
}
