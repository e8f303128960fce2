//! Bundles of small programs: written, read, described, damaged.

use crate::bundle::Bundle;
use crate::bundle::Release;
use crate::bundle::Stock;
use crate::bundle::WriteOptions;
use crate::bundle::describe;
use crate::bundle::read;
use crate::bundle::stock;
use crate::bundle::write;
use crate::bundle::write_into;
use crate::executable::Executable;
use crate::executable::KernelEntry;
use crate::executable::TargetNeeds;
use crate::executable::ThunkKind;
use crate::target::Platform;
use crate::wire::executable_cpu;
use crate::wire::executable_cpu::KernelBuffers;
use crate::wire::samples;

const ENVELOPE: WriteOptions = WriteOptions {
    envelope: true,
    jaxlib: Release::NEWEST,
};

fn bare(executable: &Executable) -> Vec<u8> {
    executable_cpu::encode(executable, KernelBuffers::Shaped).unwrap()
}

/// What a bundle of the executable reads as: names and counts that bundles do not hold are gone.
fn as_read(mut executable: Executable) -> Executable {
    if let TargetNeeds::Cuda {
        platform_version, ..
    } = &mut executable.needs
    {
        platform_version.clear();
        for constant in executable.constants.values_mut() {
            constant.name = constant.name.replace('.', "_");
        }
        for buffer in &mut executable.logical {
            buffer.name = buffer.name.replace('.', "_");
        }
    } else {
        let forget = |kernel: &KernelEntry| KernelEntry {
            arity: None,
            ..kernel.clone()
        };
        executable.kernels = executable.kernels.values().map(forget).collect();
    }
    executable
}

fn stock_of(bundle: &Bundle, how: WriteOptions) -> Stock {
    stock(bundle, &write(&bundle.executable, how).unwrap()).unwrap()
}

fn read_back(executable: &Executable, how: WriteOptions) -> Bundle {
    read(&write(executable, how).unwrap()).unwrap()
}

#[test]
fn cpu_bundles_read_back() {
    let executable = samples::cpu();
    for how in [WriteOptions::default(), ENVELOPE] {
        let bundle = read_back(&executable, how);
        assert_eq!(bundle.platform(), Platform::Cpu);
        assert_eq!(bundle.form.envelope.is_some(), how.envelope);
        assert!(bundle.form.has_options && !bundle.form.outer_split);
        assert_eq!(bundle.executable, as_read(executable.clone()));
    }
    let bytes = bare(&executable);
    let bundle = read(&bytes).unwrap();
    assert!(!bundle.form.has_options);
    assert_eq!(bundle.executable, as_read(executable));
}

#[test]
fn gpu_bundles_read_back() {
    let executable = samples::cuda();
    for how in [WriteOptions::default(), ENVELOPE] {
        let bundle = read_back(&executable, how);
        assert_eq!(bundle.platform(), Platform::Cuda);
        assert!(bundle.form.outer_split && bundle.form.inner_split);
        let mut back = bundle.executable;
        // The HLO calls the constant by its symbol; all else is as it was.
        let text = String::from_utf8_lossy(&back.hlo).into_owned();
        assert!(text.contains("c_2") && !text.contains("c.2"));
        let wanted = as_read(executable.clone());
        back.hlo.clone_from(&wanted.hlo);
        assert_eq!(back, wanted);
    }
}

#[test]
fn writing_is_deterministic() {
    for executable in [samples::cpu(), samples::cuda()] {
        let first = write(&executable, ENVELOPE).unwrap();
        assert_eq!(write(&executable, ENVELOPE).unwrap(), first);
    }
}

#[test]
fn what_is_no_bundle_is_told() {
    for bytes in [&b""[..], b"HloModule m", b"\x7fELF", &[0; 64], &[0xff; 64]] {
        let error = read(bytes).unwrap_err();
        assert_eq!(error.code, crate::base::codes::NOT_A_BUNDLE, "{error}");
    }
}

#[test]
fn inconsistent_executables_are_refused() {
    let mut executable = samples::cpu();
    executable.logical.clear();
    assert!(
        write(&executable, ENVELOPE).is_err(),
        "no place for the result"
    );
    let mut executable = samples::cuda();
    executable.images.pop();
    assert!(
        write(&executable, ENVELOPE).is_err(),
        "no image of constants"
    );
    let mut executable = samples::cpu();
    executable.hlo.clear();
    assert!(write(&executable, ENVELOPE).is_err(), "no HLO");
}

/// Its code may load and store by instructions that fault elsewhere.
#[test]
fn a_kernel_is_given_no_slice_that_its_alignment_does_not_allow() {
    let mut executable = samples::cpu();
    let ThunkKind::Kernel(kernel) = &mut executable.thunks.0[0].kind else {
        panic!("the sample begins with a kernel");
    };
    kernel.results[0].slice.offset = 4;
    // What is written is read back first.
    let error = write(&executable, ENVELOPE).unwrap_err();
    let wanted = "begins at byte 4 of its allocation, which is no multiple of the 64";
    assert!(error.notes.iter().any(|n| n.contains(wanted)), "{error:?}");
}

#[test]
fn damaged_bundles_never_panic() {
    for executable in [samples::cpu(), samples::cuda()] {
        let bytes = write(&executable, ENVELOPE).unwrap();
        for cut in (0..bytes.len()).step_by(7) {
            assert_rejected(read(&bytes[..cut]));
        }
        let mut state = 7u64;
        for _ in 0..3000 {
            let mut damaged = bytes.clone();
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            let bit = (state >> 33) as usize % (damaged.len() * 8);
            damaged[bit / 8] ^= 1 << (bit % 8);
            match read(&damaged) {
                Ok(bundle) => {
                    let _ = crate::executable::check::check(&bundle.executable);
                    let stock = stock(&bundle, &damaged);
                    let _ = stock.map(|stock| describe::text(&bundle, &stock));
                }
                error => assert_rejected(error),
            }
        }
    }
}

/// What is wrong with a bundle is told by a code of bundles, whichever part it is in.
fn assert_rejected(read: crate::base::Result<Bundle>) {
    use crate::base::codes;
    if let Err(error) = read {
        let ours = [
            codes::NOT_A_BUNDLE,
            codes::BUNDLE_CHECK,
            codes::BUNDLE_UNSUPPORTED,
        ];
        assert!(ours.contains(&error.code), "{error}");
    }
}

#[test]
fn damage_that_no_checksum_finds_is_told_as_the_bundles() {
    // A bare executable has no checksum around it.
    let bytes = bare(&samples::cpu());
    let mut refused = 0;
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let found = read(&damaged);
        refused += usize::from(found.is_err());
        assert_rejected(found);
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn descriptions_say_what_is_inside() {
    let bundle = read_back(&samples::cpu(), ENVELOPE);
    let text = describe::text(&bundle, &stock_of(&bundle, ENVELOPE));
    for wanted in [
        "sample: a cpu bundle",
        "runs on this loader, and on jaxlib 0.9.1 to 0.12.0\n",
        "for x86_64-unknown-linux-gnu, tuned for x86-64",
        "0 x: f32[16]{0}",
        "result: f32[16]{0}",
        "peak: 384 B",
        "[3] 64 B, output",
        "000: kernel sum_kernel (sum) r[0]0+64 r[1]0+64 r[2]0+64 w[4]0+64 workgroups 4x1x1",
        "001: while 1 times (loop)",
    ] {
        assert!(text.contains(wanted), "{wanted:?} not in\n{text}");
    }
    let json = describe::json(&bundle, &stock_of(&bundle, ENVELOPE));
    assert_eq!(json["platform"], "cpu");
    assert_eq!(json["memory"]["temporaries"], 128);
    assert_eq!(json["thunks"][1]["nested"][1][0]["kind"], "copy");
    assert_eq!(json["constants"][0]["name"], "c.2");
    let gpu = read_back(&samples::cuda(), ENVELOPE);
    let gpu = describe::json(&gpu, &stock_of(&gpu, ENVELOPE));
    assert_eq!(gpu["runtimes"]["releases"][1], "0.12.0.1");
    assert_eq!(gpu["needs"]["compute_capability"], "10.0a");
}

#[test]
fn a_flipped_bit_of_the_code_is_found() {
    let executable = samples::cpu();
    let crate::executable::Code::Elf(code) = &executable.images[0].code else {
        panic!("a CPU program has an object file");
    };
    for how in [WriteOptions::default(), ENVELOPE] {
        let whole = write(&executable, how).unwrap();
        let at = whole.windows(code.len()).position(|part| part == code);
        let at = at.expect("the object file is in the bundle as it is");
        for bit in [0, code.len() * 4, code.len() * 8 - 1] {
            let mut damaged = whole.clone();
            damaged[at + bit / 8] ^= 1 << (bit % 8);
            let refused = read(&damaged).unwrap_err();
            assert_eq!(refused.code, crate::base::codes::BUNDLE_CHECK, "bit {bit}");
        }
    }
    // So is one of anything else: what is read all the same is the same program.
    let mut executable = executable;
    executable.replicas = 2;
    for how in [WriteOptions::default(), ENVELOPE] {
        let whole = write(&executable, how).unwrap();
        let wanted = read(&whole).unwrap().executable;
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            if let Ok(found) = read(&damaged) {
                assert!(found.executable == wanted, "bit {bit}");
            }
        }
    }
    // Bundles without a checksum are read as they are.
    let bytes = bare(&executable);
    assert!(read(&bytes).is_ok());
}

/// Bundles for releases up to 0.9.0 have no envelope, and kernels that name buffers without shapes.
#[test]
fn older_releases_have_a_form_of_their_own() {
    let how = WriteOptions {
        envelope: true,
        jaxlib: Release(0, 8, 3),
    };
    let bytes = write(&samples::cpu(), how).unwrap();
    let bundle = read(&bytes).unwrap();
    assert_eq!(bundle.form.envelope, None);
    let found = stock(&bundle, &bytes).unwrap();
    let wanted = ("0.7.2".to_owned(), "0.9.0".to_owned());
    assert_eq!(found.releases, Some(wanted));
    for (word, release) in [
        ("0.9", Some(Release(0, 9, 0))),
        ("0.9.1", Some(Release(0, 9, 1))),
        ("1.0.0", Some(Release::NEWEST)),
        ("0.10.2", Some(Release(0, 10, 2))),
        ("0.12.0.1", Some(Release(0, 12, 0))),
        ("0.12.0.1.2", None),
        ("0.12.0.x", None),
        ("0.7.1", None),
        ("0.9.x", None),
        ("", None),
    ] {
        assert_eq!(word.parse().ok(), release, "{word}");
    }
}

#[test]
fn a_bundle_takes_the_place_of_another() {
    use crate::wire::container::Codec;
    use crate::wire::container::Container;

    let executable = samples::cpu();
    let plain = write(&executable, WriteOptions::default()).unwrap();
    let old = WriteOptions {
        envelope: false,
        jaxlib: Release::LAST_PLAIN,
    };
    let entry = Container::CacheEntry {
        compression: Codec::Zlib,
        seconds: [0, 0, 0, 9],
    };
    for (how, inside) in [(ENVELOPE, ENVELOPE), (old, old)] {
        let template = entry.around(&write(&executable, how).unwrap()).unwrap();
        let bytes = write_into(&executable, &template, WriteOptions::default()).unwrap();
        assert_eq!(
            bytes,
            entry.around(&write(&executable, inside).unwrap()).unwrap()
        );
        let bundle = read(&bytes).unwrap();
        assert_eq!(bundle.form.container.as_ref(), Some(&entry));
        // The old form has no shapes at kernels.
        if how == ENVELOPE {
            assert_eq!(bundle.executable, as_read(executable.clone()));
        }
        assert_eq!(bundle.executable.signature, executable.signature);
    }
    assert_eq!(write_into(&executable, &plain, ENVELOPE).unwrap(), plain);

    let other = samples::cuda();
    let template = write(&other, ENVELOPE).unwrap();
    if other.signature.program != executable.signature.program {
        let refused = write_into(&executable, &template, ENVELOPE).unwrap_err();
        assert!(refused.message.contains("in the place of"), "{refused}");
    }
    assert!(write_into(&executable, b"nothing", ENVELOPE).is_err());
}

/// What jaxlib would end its process over, or refuse, is told.
#[test]
fn obstacles_of_stock_jaxlib_are_told() {
    let told = |executable: &Executable| {
        let bytes = write(executable, ENVELOPE).unwrap();
        stock(&read(&bytes).unwrap(), &bytes).unwrap().text()
    };
    let sound = samples::cpu();
    assert_eq!(told(&sound), "jaxlib 0.9.1 to 0.12.0");
    let mut executable = sound.clone();
    let temp = executable.allocs.values_mut().find(|a| a.is_temp());
    temp.unwrap().live_out = true;
    assert!(told(&executable).contains("outlives a run"));
    let mut executable = sound.clone();
    if let TargetNeeds::Cpu { data_layout, .. } = &mut executable.needs {
        "e-m:e-what".clone_into(data_layout);
    }
    assert!(told(&executable).starts_with("no jaxlib: it ends its process"));
    // Without the options that say on how many devices it runs.
    let alone = bare(&sound);
    let alone = stock(&read(&alone).unwrap(), &alone).unwrap();
    assert!(
        alone
            .obstacles
            .iter()
            .any(|o| o.contains("device assignment"))
    );
}

/// Releases up to 0.8.0 name no machine; the objects do, and a program of library calls has none.
#[test]
fn bundles_that_name_no_machine_run() {
    use crate::bundle::host_check;
    use crate::target::CpuFamily;
    use crate::target::HostInfo;

    let host = HostInfo {
        family: Some(CpuFamily::X86_64),
        features: vec!["sse2".into()],
        ..HostInfo::default()
    };
    let mut bundle = read(&bare(&samples::cpu())).unwrap();
    assert_eq!(host_check(&bundle, &host), [] as [String; 0]);
    if let TargetNeeds::Cpu {
        triple, features, ..
    } = &mut bundle.executable.needs
    {
        triple.clear();
        features.clear();
    }
    assert_eq!(host_check(&bundle, &host).len(), 1);
    bundle.executable.images.clear();
    assert_eq!(host_check(&bundle, &host), [] as [String; 0]);
}

/// What is compressed, or pickled, and holds no bundle is told by its kind.
#[test]
fn other_files_in_the_same_wrapping_are_no_bundles() {
    use crate::bundle::begins_as_bundle;
    use crate::wire::container::Codec;
    use crate::wire::container::Container;

    let entry = Container::CacheEntry {
        compression: Codec::Zstd,
        seconds: [0; 4],
    };
    let bundle = entry.around(&write(&samples::cpu(), ENVELOPE).unwrap());
    assert!(begins_as_bundle(&bundle.unwrap()));
    let text = entry.around(b"HloModule m").unwrap();
    assert!(!begins_as_bundle(&text));
    let refused = read(&text).unwrap_err();
    assert_eq!(refused.code, crate::base::codes::NOT_A_BUNDLE);
    assert!(refused.message.contains("Zstandard"), "{refused}");
}
