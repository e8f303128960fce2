//! Compiled bundles: those that are changed, how they are changed, and what must hold of any.
//!
//! A bundle is read, checked, compared with the host and loaded, or refused at one of these steps
//! with a reason. What passes them all is run: on a simulated GPU whatever it is, on a processor only
//! when its machine code is what the compiler made and each kernel is called as it was, for no check
//! can tell what other machine code does.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::path::PathBuf;

use xla_aot::base::Diagnostic;
use xla_aot::base::checksum::crc64;
use xla_aot::base::codes;
use xla_aot::bundle;
use xla_aot::bundle::Release;
use xla_aot::bundle::WriteOptions;
use xla_aot::driver::compile;
use xla_aot::driver::compile::Assembler;
use xla_aot::driver::compile::CompileOptions;
use xla_aot::driver::emitted::EmitKind;
use xla_aot::driver::inspect::Inspection;
use xla_aot::driver::observe::Unobserved;
use xla_aot::driver::run::DeviceChoice;
use xla_aot::driver::run::LoadOptions;
use xla_aot::driver::run::Session;
use xla_aot::driver::targets;
use xla_aot::driver::targets::TargetRequest;
use xla_aot::driver::verify;
use xla_aot::driver::verify::VerifyRequest;
use xla_aot::executable::Executable;
use xla_aot::executable::TargetNeeds;
use xla_aot::executable::ThunkKind;
use xla_aot::front;
use xla_aot::literal::ArrayLiteral;
use xla_aot::shape::Shape;
use xla_aot::wire::container;
use xla_aot::wire::container::Codec;
use xla_aot::wire::container::Container;
use xla_aot::wire::envelope;
use xla_aot::wire::executable_cpu;
use xla_aot::wire::executable_cpu::KernelBuffers;
use xla_aot::wire::executable_gpu;
use xla_aot::wire::options;
use xla_aot::wire::options::DeviceCounts;
use xla_aot::wire::split;
use xla_aot::wire::split::Part;

use super::bytes;
use super::check::diagnostic;
use super::message;
use super::message::Field;
use super::message::Value;
use crate::conformance::simulated;
use crate::conformance::sorted_entries;
use crate::fuzz::random::Random;
use crate::fuzz::watch;

/// Small programs that together have every kind of thunk that the compiler makes.
const PROGRAMS: &[&str] = &[
    "control/while_many_state",
    "collective/all_reduce_6",
    "collective/replica_partition_id",
    "composite/fft_lowpass",
    "control/cond_false",
    "control/switch_4_index_0",
    "conv/conv_2d_groups_1x6x6x4_f64",
    "dot/dot_2x3x4_2x4x5_c2_1_b0_f32",
    "hlo/opcode_topk",
    "hlo/tuple_result_nested",
    "layout/entry_layout_only_012",
    "linalg/cholesky_4x4_lower_f32",
    "misc/big_splat_and_iota_constants",
    "rng/rng_bit_generator_philox_u32_5_state2",
    "sort/sort_multi_1keys_f32_s64_bf16_9x2",
];

/// Bundles that are made of the first program.
const CONTAINERS: usize = 15;

/// Names of the messages in record files.
const OUTER: &str = "xla.ExecutableAndOptionsProto";
const GPU_EXECUTABLE: &str = "xla.gpu.GpuExecutableProto";

/// The fields of the outer message with the executable, with the options and with the checksum.
const EXECUTABLE: u64 = 1;
const OPTIONS: u64 = 2;
const CHECKSUM: u64 = 216_006;

/// Bytes of memory, of all devices, of programs that are run.
const MOST_MEMORY: u64 = 64 << 20;

/// Where bundles are that were compiled before, and more of them.
pub const FOLDER: &str = "XLA_AOT_FUZZ_BUNDLES";

/// Bundles, and how kernels of processors are called in them.
pub struct Bundles {
    files: Vec<Vec<u8>>,
    /// By the checksum of all images.
    calls: BTreeMap<u64, BTreeSet<String>>,
}

impl Bundles {
    /// Those of the folder that the environment names; or else freshly compiled ones, and more.
    pub fn new(more: &[PathBuf]) -> Self {
        let read = |paths: &[PathBuf]| -> Vec<Vec<u8>> {
            let files = paths.iter().map(fs::read);
            files
                .map(|file| file.expect("a bundle can be read"))
                .collect()
        };
        let files = match std::env::var_os(FOLDER) {
            Some(folder) => read(&sorted_entries(Path::new(&folder))),
            None => [compiled(), read(more)].concat(),
        };
        let mut calls: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
        for file in &files {
            let bundle = bundle::read(file).expect("a whole bundle");
            let known = calls.entry(code_of(&bundle.executable)).or_default();
            known.extend(calls_of(&bundle.executable));
        }
        Self { files, calls }
    }

    /// Writes them to a folder, from which processes that are started from now on take them.
    pub fn keep(&self, folder: &Path) {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).expect("a folder for bundles");
        for (number, file) in self.files.iter().enumerate() {
            fs::write(folder.join(format!("{number:03}.xla")), file).expect("a bundle");
        }
    }

    /// One of them.
    pub fn pick(&self, random: &mut Random) -> Vec<u8> {
        self.files[random.below(self.files.len())].clone()
    }

    /// Whether running it cannot make machine code do what it was not made for.
    fn may_run(&self, executable: &Executable) -> bool {
        match executable.needs {
            TargetNeeds::Cuda { .. } => true,
            TargetNeeds::Cpu { .. } => {
                let known = self.calls.get(&code_of(executable));
                known.is_some_and(|known| calls_of(executable).is_subset(known))
            }
        }
    }
}

/// Tells apart the code of executables.
fn code_of(executable: &Executable) -> u64 {
    let images = executable.images.iter();
    let all: Vec<u8> = images
        .flat_map(|image| image.code.bytes())
        .copied()
        .collect();
    crc64(&all)
}

/// How each kernel and comparator is called, but for where its operands are.
fn calls_of(executable: &Executable) -> BTreeSet<String> {
    let thunks = executable.thunks.all().into_iter();
    let calls = thunks.filter_map(|thunk| match &thunk.kind {
        ThunkKind::Kernel(thunk) => {
            let kernel = &executable.kernels.get(thunk.kernel)?.name;
            let sizes = |slices: &[xla_aot::executable::ShapedSlice]| -> Vec<u64> {
                slices.iter().map(|slice| slice.slice.size).collect()
            };
            let (args, results) = (sizes(&thunk.args), sizes(&thunk.results));
            Some(format!("{kernel} {:?} {args:?} {results:?}", thunk.launch))
        }
        ThunkKind::Sort(thunk) => {
            let types: Vec<_> = thunk.inputs.iter().map(|input| input.shape.ty).collect();
            Some(format!("{} {types:?}", thunk.comparator))
        }
        _ => None,
    });
    calls.collect()
}

/// Each program for a processor and for a GPU, in every container.
fn compiled() -> Vec<Vec<u8>> {
    let cpu = TargetRequest {
        cpu: Some("x86-64".to_owned()),
        ..TargetRequest::default()
    };
    let gpu = TargetRequest {
        name: Some(simulated::target()),
        ..TargetRequest::default()
    };
    let mut files = Vec::new();
    for name in PROGRAMS {
        for target in [&cpu, &gpu] {
            let path = Path::new("tests/programs").join(name).join("program.pb");
            let built = fs::read(&path)
                .map_err(|error| error.to_string())
                .and_then(|program| build(&program, target).map_err(|error| error.to_string()));
            let executable = built.unwrap_or_else(|error| panic!("{name}: {error}"));
            files.extend(containers(&executable));
            if *name == PROGRAMS[0] {
                files.extend(of_jax(&executable));
            }
        }
    }
    files
}

fn build(program: &[u8], target: &TargetRequest) -> Result<Executable, Box<Diagnostic>> {
    let module = front::read(program, None)?;
    let options = CompileOptions {
        jobs: 1,
        assembler: Assembler::None,
        ..CompileOptions::new(targets::resolve(target)?)
    };
    let compiled = compile::build(module, &options, &mut Unobserved)?;
    Ok(compiled.executable.expect("a compilation has a result"))
}

/// The executable in every container that is read.
fn containers(executable: &Executable) -> Vec<Vec<u8>> {
    let jaxlib = Release::NEWEST;
    let written = |envelope| bundle::write(executable, WriteOptions { envelope, jaxlib });
    let mut files = vec![
        written(false).expect("a bundle"),
        written(true).expect("a bundle"),
    ];
    let counts = DeviceCounts {
        replicas: executable.replicas,
        partitions: executable.partitions,
    };
    match &executable.needs {
        TargetNeeds::Cpu { .. } => {
            for buffers in [KernelBuffers::Shaped, KernelBuffers::Bare] {
                files.extend(executable_cpu::encode(executable, buffers));
            }
        }
        TargetNeeds::Cuda { target_config, .. } => {
            let fields = executable_gpu::encode(executable).expect("a GPU's executable");
            let mut whole = Vec::new();
            let binary = Value::Bytes(fields.binary);
            whole.extend(message::write(&[Field {
                number: 4,
                value: binary,
            }]));
            whole.extend(fields.rest);
            let records = split::write(GPU_EXECUTABLE, &[Part::Merge(&whole)]).expect("records");
            let options = options::encode_options(counts, target_config).expect("options");
            files.extend(options::encode_outer(&whole, &options, options::GPU_CLIENT));
            let outer = options::encode_outer(&records, &options, options::GPU_CLIENT);
            // Records have checksums of their own.
            let mut outer = message::read(&outer.expect("an outer message")).expect("fields");
            outer.retain(|field| field.number != CHECKSUM);
            files.push(message::write(&outer));
            files.push(records);
        }
    }
    files
}

/// What JAX puts bundles into, with the executable.
fn of_jax(executable: &Executable) -> Vec<Vec<u8>> {
    let how = WriteOptions {
        envelope: true,
        jaxlib: Release::NEWEST,
    };
    let bundle = bundle::write(executable, how).expect("a bundle");
    let entry = |compression| Container::CacheEntry {
        compression,
        seconds: [0, 0, 1, 2],
    };
    let payload = Container::Payload {
        before: b"\x80\x04]\x94(\x8c\x04exec\x94".to_vec(),
        after: b"\x94\x86\x94QK\x07e.".to_vec(),
    };
    let all = [entry(Codec::Zlib), entry(Codec::Zstd), payload];
    let files = all.iter().map(|container| container.around(&bundle));
    files.map(|file| file.expect("a file of JAX's")).collect()
}

/// Changes a bundle in one way; `other` is another one.
pub fn change(file: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    if let Some(Ok((container, mut inside))) = container::open(file) {
        let other = container::open(other);
        let other = other.and_then(|opened| Some(opened.ok()?.1));
        match random.one_in(3) {
            true => bytes::change(file, &[], random),
            false => {
                change(&mut inside, &other.unwrap_or_default(), random);
                *file = container.around(&inside).expect("a file of JAX's");
            }
        }
        return;
    }
    let payload = |file: &[u8]| envelope::unwrap(file).map_or(0, |e| file.len() - e.payload.len());
    let (start, other_start) = (payload(file), payload(other));
    if random.one_in(16) {
        return bytes::change(file, other, random);
    }
    if start > 0 && random.one_in(12) {
        // The metadata, behind its length.
        let mut rest = &file[..start];
        message::varint(&mut rest);
        let mut metadata = rest.to_vec();
        message::change(&mut metadata, &[], random);
        let mut whole = Vec::new();
        message::put_varint(metadata.len() as u64, &mut whole);
        whole.extend(metadata);
        whole.extend(&file[start..]);
        *file = whole;
        return;
    }
    let mut value = Value::of(&file[start..], 0);
    let other = Value::of(&other[other_start..], 0);
    let Some(fields) = value.fields_mut() else {
        return bytes::change(file, &[], random);
    };
    let none = Vec::new();
    message::change_fields(fields, other.fields().unwrap_or(&none), random);
    if !random.one_in(12) {
        note_checksum(fields);
    }
    if let Value::Records(name, _) = &mut value
        && random.one_in(40)
    {
        let names = [OUTER, GPU_EXECUTABLE, "", "xla.HloProto"];
        random.pick(&names).clone_into(name);
    }
    file.truncate(start);
    file.extend(value.bytes());
}

/// Makes the checksum fit what the outer message holds, where there is one.
fn note_checksum(fields: &mut [Field]) {
    let bytes = |number: u64| {
        let field = fields.iter().find(|field| field.number == number);
        field.map_or_else(Vec::new, |field| field.value.bytes())
    };
    let found = options::checksum(&bytes(EXECUTABLE), &bytes(OPTIONS)).to_le_bytes();
    for field in fields.iter_mut().filter(|field| field.number == CHECKSUM) {
        field.value = Value::Eight(found);
    }
}

/// Flips a bit of every so-manieth byte of a program's bundle in each container. Where a checksum says
/// so, the program is the same or refused.
///
/// # Errors
/// What is wrong with how one is treated.
pub fn flip(known: &Bundles, every: usize) -> Result<(), String> {
    for (number, whole) in known.files[..CONTAINERS].iter().enumerate() {
        let wanted = bundle::read(whole).map_err(|error| error.to_string())?;
        // Options around records are checked by nobody.
        let form = &wanted.form;
        let is_outer_checked = form.has_options && (form.outer_split || !form.inner_split);
        let is_checked = is_outer_checked || split::is_records(whole);
        for at in (0..whole.len()).step_by(every) {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at / every % 8);
            check(&damaged, Way::Read, known)
                .map_err(|fault| format!("container {number}, byte {at}: {fault}"))?;
            let found = bundle::read(&damaged);
            if found.is_ok_and(|found| is_checked && found.executable != wanted.executable) {
                return Err(format!(
                    "container {number}, byte {at}: another program, and nobody noticed"
                ));
            }
        }
    }
    Ok(())
}

/// How far a bundle goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It is read, described and checked.
    Read,
    /// It is loaded and run too. The process is one that may end or go on for ever.
    Run,
}

/// Checks a bundle; gives whether it is read.
///
/// # Errors
/// What is wrong with how it is treated.
pub fn check(bytes: &[u8], way: Way, known: &Bundles) -> Result<bool, String> {
    let is_bundle = bundle::is_bundle(bytes);
    bundle::begins_as_bundle(bytes);
    let read = match bundle::read(bytes) {
        Ok(read) => read,
        Err(error) => {
            diagnostic("bundle", &error)?;
            let ours = [
                codes::NOT_A_BUNDLE,
                codes::BUNDLE_CHECK,
                codes::BUNDLE_UNSUPPORTED,
            ];
            if !ours.contains(&error.code) {
                return Err(format!("bundle: another code than one of bundles: {error}"));
            }
            return Ok(false);
        }
    };
    if !is_bundle {
        return Err("bundle: is read, and is said to be none".to_owned());
    }
    let inspection = Inspection::open(bytes).map_err(|error| format!("inspect: {error}"))?;
    inspection.text();
    inspection.json();
    for kind in [
        EmitKind::Hlo,
        EmitKind::Thunks,
        EmitKind::Obj,
        EmitKind::Ptx,
    ] {
        if let Err(error) = inspection.emit(kind) {
            diagnostic("inspect", &error)?;
        }
    }
    let executable = &read.executable;
    let is_cpu = matches!(executable.needs, TargetNeeds::Cpu { .. });
    let load = LoadOptions {
        device: match is_cpu {
            true => DeviceChoice::Cpu,
            false => DeviceChoice::Simulated(None),
        },
        threads: Some(2),
        ..LoadOptions::default()
    };
    if way == Way::Run && !is_cpu {
        // From the first bundle on there are as many devices as any program takes.
        simulated::api().map_err(|error| format!("{error:?}"))?;
    }
    let request = VerifyRequest {
        any_host: way == Way::Read && !is_cpu,
        load: load.clone(),
        ..VerifyRequest::default()
    };
    let report = match verify::verify(bytes, &request) {
        Ok(report) => report,
        Err(error) => return diagnostic("verify", &error).map(|()| true),
    };
    for finding in &report.findings {
        diagnostic("verify", finding)?;
    }
    match report.findings.first() {
        Some(finding) => watch::note(&format!("count bundles found wrong: {}", finding.code)),
        None if way == Way::Run => run(&read, &load, known)?,
        None => {}
    }
    Ok(true)
}

/// Loads and runs what `verify` found nothing wrong with.
fn run(read: &bundle::Bundle, load: &LoadOptions, known: &Bundles) -> Result<(), String> {
    let session = Session::of(read, load);
    let session = session.map_err(|error| format!("load: verify lets it pass: {error}"))?;
    let executable = &read.executable;
    let devices = session.topology().devices() as u64;
    let sizes = executable.allocs.values().map(|alloc| alloc.size.0);
    let memory = sizes
        .fold(0u64, u64::saturating_add)
        .saturating_mul(devices);
    if memory > MOST_MEMORY || !known.may_run(executable) {
        watch::note("count bundles loaded");
        return Ok(());
    }
    let leaves = executable
        .signature
        .program
        .parameters
        .iter()
        .flat_map(Shape::leaves);
    let arrays = leaves.filter_map(|(_, leaf)| leaf.as_array());
    let inputs = arrays
        .map(|array| ArrayLiteral::zeros(array.clone()))
        .collect();
    watch::note("may run for ever");
    let outcome = session.run_alike(inputs);
    watch::note("count bundles run");
    match outcome {
        Ok(_) => Ok(()),
        Err(error) => diagnostic("run", &error),
    }
}
