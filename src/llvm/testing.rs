//! Runs kernels in tests: compiles for a CPU, links with `cc`, calls through the kernel ABI.
#![allow(unsafe_code, reason = "tests call the code they compile")]

use std::ffi::CString;
use std::process::Command;

use crate::base::ByteSize;
use crate::executable::Code;
use crate::kernel::Kernel;
use crate::llvm::Options;
use crate::llvm::compile;
use crate::target::CapabilitySuffix;
use crate::target::ComputeCapability;
use crate::target::CpuFamily;
use crate::target::CpuSpec;
use crate::target::DeviceSpec;
use crate::target::GpuSpec;
use crate::target::HostMachine;
use crate::target::Target;

/// The features of x86-64-v3.
pub(crate) const V3: &[&str] = &[
    "avx", "avx2", "bmi", "bmi2", "cmov", "crc32", "cx16", "cx8", "f16c", "fma", "fxsr", "lzcnt",
    "mmx", "movbe", "popcnt", "sahf", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3", "x87",
    "xsave",
];
/// The features of baseline x86-64.
pub(crate) const V1: &[&str] = &["cmov", "cx8", "fxsr", "mmx", "sse", "sse2", "x87"];

fn cpu(family: CpuFamily, llvm_cpu: &str, features: &[&str], vector_bytes: u32) -> Target {
    let spec = CpuSpec {
        name: llvm_cpu.to_owned(),
        family,
        triple: format!("{}-unknown-linux-gnu", family.name()),
        llvm_cpu: llvm_cpu.to_owned(),
        features: features.iter().map(|&f| f.to_owned()).collect(),
        disabled_features: Vec::new(),
        vector_bytes,
        vector_registers: 16,
        l1_bytes: ByteSize(32 << 10),
        l2_bytes: ByteSize(512 << 10),
    };
    Target {
        device: DeviceSpec::Cpu(spec),
        buffer_alignment: 64,
        parameter_alignment: 16,
        parallelism: 2,
    }
}

/// x86-64-v3.
pub(crate) fn x86_v3() -> Target {
    cpu(CpuFamily::X86_64, "x86-64-v3", V3, 32)
}
/// Baseline x86-64.
pub(crate) fn x86_v1() -> Target {
    cpu(CpuFamily::X86_64, "x86-64", V1, 16)
}
/// Sapphire Rapids with its tiles.
pub(crate) fn x86_amx() -> Target {
    let mut target = x86_v4();
    if let DeviceSpec::Cpu(cpu) = &mut target.device {
        let features = ["amx-bf16", "amx-int8", "amx-tile"];
        cpu.features.extend(features.map(str::to_owned));
    }
    target
}
/// Sapphire Rapids.
pub(crate) fn x86_v4() -> Target {
    let mut features = V3.to_vec();
    features.extend([
        "avx512bf16",
        "avx512bw",
        "avx512cd",
        "avx512dq",
        "avx512f",
        "avx512vl",
    ]);
    cpu(CpuFamily::X86_64, "sapphirerapids", &features, 64)
}
/// Armv8 with the usual features.
pub(crate) fn aarch64() -> Target {
    cpu(CpuFamily::AArch64, "neoverse-n1", &["neon", "fp-armv8"], 16)
}

/// A GPU of that capability.
pub(crate) fn gpu(major: u32, minor: u32, suffix: CapabilitySuffix, ptx_version: u32) -> Target {
    let spec = GpuSpec {
        name: "test".to_owned(),
        platform_version: String::new(),
        capability: ComputeCapability {
            major,
            minor,
            suffix,
        },
        ptx_version,
        cores: 132,
        fpus_per_core: 128,
        threads_per_core: 2048,
        threads_per_block: 1024,
        shared_per_block: ByteSize(48 << 10),
        shared_per_block_optin: ByteSize(227 << 10),
        l2_bytes: ByteSize(50 << 20),
        memory_bytes: ByteSize(80 << 30),
        bandwidth: 3.3e12,
        clock_ghz: 1.7,
        config_proto: Vec::new(),
        host: HostMachine::default(),
    };
    Target {
        device: DeviceSpec::Gpu(spec),
        buffer_alignment: 256,
        parameter_alignment: 16,
        parallelism: 132,
    }
}

/// The ELF object of kernels.
pub(crate) fn object(kernels: &[Kernel], target: &Target) -> Vec<u8> {
    let compiled = compile(kernels, target, &Options::default()).expect("the kernels compile");
    assert_eq!(compiled.images.len(), 1, "one module");
    match &compiled.images[0].code {
        Code::Elf(bytes) => bytes.clone(),
        other => panic!("wanted an object, got {other:?}"),
    }
}

/// The assembly of kernels.
pub(crate) fn assembly(kernels: &[Kernel], target: &Target) -> String {
    let options = Options {
        assembly: true,
        ..Options::default()
    };
    let compiled = compile(kernels, target, &options).expect("the kernels compile");
    compiled.texts[0].text.clone()
}

#[repr(C)]
struct CallFrame {
    counts: *const [u64; 3],
    numbers: *const [u64; 3],
    args: u64,
    arg: *const [u64; 2],
}

/// Memory that starts at a multiple of 64.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line([u8; 64]);

/// Compiles a kernel for this machine's kind, runs every workgroup on the buffers in turn, and
/// leaves in the buffers what it wrote.
pub(crate) fn run(kernel: &Kernel, target: &Target, buffers: &mut [Vec<u8>]) {
    let folder = tempfile::tempdir().expect("a folder");
    let (object_path, library) = (folder.path().join("k.o"), folder.path().join("k.so"));
    std::fs::write(&object_path, object(std::slice::from_ref(kernel), target)).expect("written");
    let linked = Command::new("cc")
        .args(["-shared", "-o"])
        .args([&library, &object_path])
        .arg("-lm")
        .status()
        .expect("cc runs");
    assert!(linked.success(), "cc links");
    let path = CString::new(library.to_str().expect("text")).expect("no NUL");
    let name = CString::new(kernel.name.clone()).expect("no NUL");
    let mut lines: Vec<Vec<Line>> = buffers
        .iter()
        .map(|bytes| {
            let mut lines = vec![Line([0; 64]); bytes.len().div_ceil(64).max(1)];
            for (line, chunk) in lines.iter_mut().zip(bytes.chunks(64)) {
                line.0[..chunk.len()].copy_from_slice(chunk);
            }
            lines
        })
        .collect();
    let args: Vec<[u64; 2]> = lines
        .iter_mut()
        .zip(buffers.iter())
        .map(|(lines, bytes)| [lines.as_mut_ptr() as u64, bytes.len() as u64])
        .collect();
    // SAFETY: the library is the one just made, and its kernels follow the ABI called here.
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        assert!(!handle.is_null(), "the library loads");
        let symbol = libc::dlsym(handle, name.as_ptr());
        assert!(!symbol.is_null(), "the kernel is there");
        let call: extern "C" fn(*const CallFrame) -> *const u8 = std::mem::transmute(symbol);
        let counts = kernel.launch.workgroups;
        for z in 0..counts[2] {
            for y in 0..counts[1] {
                for x in 0..counts[0] {
                    let numbers = [x, y, z];
                    let frame = CallFrame {
                        counts: &counts,
                        numbers: &numbers,
                        args: args.len() as u64,
                        arg: args.as_ptr(),
                    };
                    assert!(call(&frame).is_null(), "the kernel succeeds");
                }
            }
        }
        libc::dlclose(handle);
    }
    for (bytes, lines) in buffers.iter_mut().zip(&lines) {
        for (chunk, line) in bytes.chunks_mut(64).zip(lines) {
            chunk.copy_from_slice(&line.0[..chunk.len()]);
        }
    }
}

/// The bytes of numbers.
pub(crate) fn bytes_f32(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}
/// Numbers from bytes.
pub(crate) fn f32s(bytes: &[u8]) -> Vec<f32> {
    bytes
        .chunks(4)
        .map(|c| f32::from_le_bytes(c.try_into().expect("four bytes")))
        .collect()
}
/// The bytes of numbers.
pub(crate) fn bytes_f64(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}
/// Numbers from bytes.
pub(crate) fn f64s(bytes: &[u8]) -> Vec<f64> {
    bytes
        .chunks(8)
        .map(|c| f64::from_le_bytes(c.try_into().expect("eight bytes")))
        .collect()
}
