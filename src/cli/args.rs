//! The command line: verbs, flags, their help.

use std::path::PathBuf;

use clap::ArgAction;
use clap::Args;
use clap::Parser;
use clap::Subcommand;
use clap::ValueEnum;

#[cfg(any(feature = "loader", feature = "reference"))]
use crate::cli::exit::Failure;
#[cfg(any(feature = "loader", feature = "reference"))]
use crate::cli::exit::Outcome;
#[cfg(feature = "compiler")]
use crate::driver::compile::Release;
#[cfg(feature = "reference")]
use crate::driver::input::InputOptions;
#[cfg(feature = "reference")]
use crate::driver::input::InputWords;
#[cfg(feature = "loader")]
use crate::driver::run;
#[cfg(feature = "loader")]
use crate::driver::run::DeviceChoice;
#[cfg(feature = "loader")]
use crate::driver::run::LoadOptions;

/// Most threads, replicas or partitions that can be asked for.
#[cfg(any(feature = "loader", feature = "reference"))]
const MOST: u64 = 4096;

/// Most runs of a benchmark.
#[cfg(feature = "loader")]
const MOST_RUNS: u64 = 1_000_000_000;

/// The variable that names the target of a simulated GPU.
#[cfg(feature = "loader")]
const SIM_TARGET: &str = "XLA_AOT_SIM_TARGET";

/// Parses a whole number within bounds.
#[cfg(any(feature = "loader", feature = "reference"))]
fn whole<T: TryFrom<u64>>(
    low: u64,
    high: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse().ok().filter(|n| (low..=high).contains(n));
        let number = number.and_then(|n| T::try_from(n).ok());
        number.ok_or_else(|| format!("wanted a whole number from {low} to {high}"))
    }
}

/// Parses how far off a result may be.
fn tolerance(text: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    let number = number.filter(|x: &f64| x.is_finite() && *x >= 0.0);
    number.ok_or_else(|| "wanted a finite number, 0 or more".to_owned())
}

/// Parses a time in seconds.
#[cfg(feature = "loader")]
fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    let number = number.filter(|x: &f64| (0.0..=86_400.0).contains(x));
    number.ok_or_else(|| "wanted a number of seconds from 0 to 86400".to_owned())
}

const EXAMPLES: &str = "\
Examples:
  xla-aot compile model.pb                              bundle for the portable baseline: model.xla
  xla-aot compile model.mlir --target-cpu native        StableHLO, for this machine
  xla-aot compile f.jax --dim b=8                       a jax.export file, its batch size given
  xla-aot compile model.pb --target h100 --target x86-64-v3 -o out/
  xla-aot run model.xla --input in.npz --output out.npz
  xla-aot verify model.xla                              rules, and whether it runs here

Exit codes: 0 done, 1 input or compile error, 2 usage, 3 bundle rejected, 4 results differ,
70 internal error, 130 interrupted.";

/// Ahead-of-time cross compiler for HLO and StableHLO programs, and the loader that runs what it
/// makes
#[derive(Debug, Parser)]
#[command(name = "xla-aot", version, after_help = EXAMPLES, max_term_width = 100)]
#[command(propagate_version = true, disable_help_subcommand = false)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
    /// Flags of every verb.
    #[command(flatten)]
    pub global: Global,
}

/// Flags of every verb.
#[derive(Clone, Debug, Args)]
pub struct Global {
    /// Tell more (steps and sizes); may be repeated
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// Tell nothing but errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// When to colour messages
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "auto",
        value_name = "WHEN"
    )]
    pub color: When,
    /// Print results (one object on standard output) and messages (an object a line on standard
    /// error) as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// When to do something that suits people more than files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Compile a program to a bundle for each target
    #[cfg(feature = "compiler")]
    Compile(Box<Compile>),
    /// Run a bundle on this machine
    #[cfg(feature = "loader")]
    Run(Run),
    /// Run a program (or a bundle's) on the reference evaluator
    #[cfg(feature = "reference")]
    Eval(Eval),
    /// Write a program in another form
    #[cfg(feature = "reference")]
    Translate(Translate),
    /// Show what a bundle or a program holds
    Inspect(Inspect),
    /// Check a bundle: its rules, this host, and its results
    Verify(Verify),
    /// Time runs of a bundle
    #[cfg(feature = "loader")]
    Bench(Bench),
    /// Find the pass and rule that make a program wrong
    #[cfg(all(feature = "compiler", feature = "loader"))]
    Bisect(Box<Bisect>),
    /// List the passes in their order, and the rules of each
    #[cfg(feature = "compiler")]
    Passes,
    /// List the targets that ship
    Targets,
    /// Say what the code of a diagnostic means
    Explain(Explain),
}

/// Arguments of `compile`.
#[cfg(feature = "compiler")]
#[derive(Debug, Args)]
pub struct Compile {
    /// Program: HLO, StableHLO (text or bytecode), a jax.export file or a snapshot; `-` is standard
    /// input
    pub program: PathBuf,
    /// Bundle to write (default: the program's stem with `.xla`); `-` is standard output. With
    /// several targets a folder, or a name that gets the target before its suffix
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// What the program is.
    #[command(flatten)]
    pub what: InputArgs,
    /// What to compile for.
    #[command(flatten)]
    pub target: TargetArgs,
    /// Replicas the program runs as (default: as the program says)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u32>(1, MOST))]
    pub num_replicas: Option<u32>,
    /// Partitions the program runs as (default: as the program says)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u32>(1, MOST))]
    pub num_partitions: Option<u32>,
    /// Form of the bundle
    #[arg(long, value_enum, value_name = "FORM", default_value = "pjrt")]
    pub format: BundleFormat,
    /// As --format jax
    #[arg(long, hide = true)]
    pub jax_envelope: bool,
    /// Release of jaxlib that loads a CPU bundle, 0.7.2 or newer: up to 0.9.0 bundles have an older
    /// form (default: 0.9.1 to 0.12.0)
    #[arg(long, value_name = "VERSION")]
    pub jaxlib_compat: Option<Release>,
    /// Put the bundle in the place of the one in a file: an entry of JAX's compilation cache, a payload
    /// of serialize_executable, or another bundle
    #[arg(long, value_name = "FILE", conflicts_with_all = ["format", "jax_envelope"])]
    pub into: Option<PathBuf>,
    /// PTX assembler to use (default: XLA_AOT_PTXAS, then `ptxas` on PATH, then the one of NVIDIA's
    /// wheels in VIRTUAL_ENV, CONDA_PREFIX, beside `python3` on PATH, ~/.local, /usr/local, /usr)
    #[arg(long, value_name = "PATH")]
    pub ptxas: Option<PathBuf>,
    /// Ship PTX, look for no assembler
    #[arg(long, conflicts_with = "ptxas")]
    pub no_ptxas: bool,
    /// Write a by-product too: hlo, thunks, buffers, llvm-ir, asm, obj, ptx, cubin
    #[arg(long, value_name = "KIND[=PATH]", value_delimiter = ',')]
    pub emit: Vec<String>,
    /// Write what each step makes into this folder, under the names that XLA's dumps have
    #[arg(long, value_name = "DIR")]
    pub dump_to: Option<PathBuf>,
    /// Forms of dumped modules, those of XLA: text, proto
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        value_delimiter = ',',
        default_value = "text",
        requires = "dump_to"
    )]
    pub dump_hlo_as: Vec<DumpAs>,
    /// Stop after a step: front, passes, schedule, buffers, emit, llvm
    #[arg(long, value_name = "STEP")]
    pub stop_after: Option<String>,
    /// Which optional rewrites are made.
    #[command(flatten)]
    pub rewrites: RewriteArgs,
    /// Print how long each step took
    #[arg(long)]
    pub time_passes: bool,
    /// Threads to compile with (default: all this process may use)
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<usize>(1, MOST))]
    pub jobs: Option<usize>,
}

/// What is around a bundle.
#[cfg(feature = "compiler")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BundleFormat {
    /// Nothing: an ExecutableAndOptionsProto, as PJRT's C API takes it
    Pjrt,
    /// jaxlib's envelope, as `deserialize_executable` of its Python API takes it
    Jax,
}

/// What a program is.
#[cfg(feature = "reference")]
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Program")]
pub struct InputArgs {
    /// Kind of the program: hlo-text, hlo-proto, stablehlo-text, stablehlo-bytecode, jax-export
    /// (default: told from its content)
    #[arg(long, value_name = "KIND")]
    pub input_format: Option<String>,
    /// Size of a dimension variable of a jax.export file, may be repeated: b=8
    #[arg(long, value_name = "NAME=SIZE", value_delimiter = ',')]
    pub dim: Vec<String>,
    /// Sizes of an argument of StableHLO that leaves them open, by its number, may be repeated: 0=8x3
    #[arg(long, value_name = "NUMBER=SIZES", value_delimiter = ',')]
    pub shape: Vec<String>,
    /// Platform to take of a jax.export file for several (default: the target's)
    #[arg(long, value_name = "NAME")]
    pub platform: Option<String>,
}

#[cfg(feature = "reference")]
impl InputArgs {
    /// What they mean.
    pub fn options(&self) -> Outcome<InputOptions> {
        let words = InputWords {
            format: self.input_format.clone(),
            dims: self.dim.clone(),
            shapes: self.shape.clone(),
            platform: self.platform.clone(),
        };
        words.options().map_err(Failure::Option)
    }
}

/// Arguments of `translate`.
#[cfg(feature = "reference")]
#[derive(Debug, Args)]
pub struct Translate {
    /// Program: HLO, StableHLO, a jax.export file or a snapshot, or a bundle, for the module that it
    /// carries; `-` is standard input
    pub program: PathBuf,
    /// Form to translate to: hlo-text, hlo-proto, stablehlo-text, stablehlo-bytecode
    #[arg(long, value_name = "FORM")]
    pub to: String,
    /// Where to write it (default: standard output)
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = "-",
        hide_default_value = true
    )]
    pub output: PathBuf,
    /// Version of StableHLO that reads the bytecode, such as 1.0.0 (default: a recent one)
    #[arg(long, value_name = "VERSION")]
    pub stablehlo_version: Option<String>,
    /// What the program is.
    #[command(flatten)]
    pub what: InputArgs,
}

/// A form of dumped modules.
#[cfg(feature = "compiler")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DumpAs {
    /// HLO text
    Text,
    /// A serialized HloProto
    Proto,
}

/// Which optional rewrites are made.
#[cfg(feature = "compiler")]
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Rewrites")]
pub struct RewriteArgs {
    /// Leave out a pass, may be repeated (see `passes`)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub disable_pass: Vec<String>,
    /// Do not apply a rule, may be repeated (see `passes`)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub disable_rule: Vec<String>,
    /// Make this many optional rewrites and no more
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub fuel: Option<u64>,
}

/// Arguments of `bisect`.
#[cfg(all(feature = "compiler", feature = "loader"))]
#[derive(Debug, Args)]
pub struct Bisect {
    /// Program: HLO, StableHLO (text or bytecode), a jax.export file or a snapshot; `-` is standard
    /// input
    pub program: PathBuf,
    /// What the program is.
    #[command(flatten)]
    pub what: InputArgs,
    /// Inputs: an `.npz` with in0, in1, ... (or the names that `inspect` shows, or arr_0, arr_1, ...),
    /// `.npy` files in order, or a snapshot of XLA
    /// (default: the program's, when it is a snapshot, or small numbers)
    #[arg(short, long, value_name = "FILE")]
    pub input: Vec<PathBuf>,
    /// What to compile for.
    #[command(flatten)]
    pub target: TargetArgs,
    /// Which optional rewrites are made.
    #[command(flatten)]
    pub rewrites: RewriteArgs,
    /// How close results must be.
    #[command(flatten)]
    pub tolerance: ToleranceArgs,
    /// Where it runs.
    #[command(flatten)]
    pub device: DeviceArgs,
}

/// What to compile for.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Target")]
pub struct TargetArgs {
    /// Target, may be repeated: a CPU, a GPU, `sm_90`, a triple (see `targets`)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub target: Vec<String>,
    /// GPU platform by XLA's name: nvidia_h100, oberon_b200, ...
    #[arg(long, value_name = "NAME")]
    pub target_platform_version: Option<String>,
    /// GPU described by a text-format GpuTargetConfigProto
    #[arg(long, value_name = "FILE")]
    pub gpu_target_config: Option<PathBuf>,
    /// Triple of the CPU to compile for
    #[arg(long, value_name = "TRIPLE")]
    pub target_triple: Option<String>,
    /// CPU to compile for; `native` is this machine's
    #[arg(long, value_name = "CPU")]
    pub target_cpu: Option<String>,
    /// CPU features to add and take away: +avx2,-fma
    #[arg(
        long,
        value_name = "LIST",
        allow_hyphen_values = true,
        default_value = ""
    )]
    pub target_feature: String,
    /// Triple of the GPU's host
    #[arg(long, value_name = "TRIPLE", default_value = "")]
    pub host_triple: String,
    /// CPU of the GPU's host
    #[arg(long, value_name = "CPU", default_value = "")]
    pub host_cpu: String,
    /// CPU features of the GPU's host, added and taken away
    #[arg(
        long,
        value_name = "LIST",
        allow_hyphen_values = true,
        default_value = ""
    )]
    pub host_features: String,
}

impl TargetArgs {
    /// Whether nothing is said of the target.
    #[cfg(all(feature = "compiler", feature = "loader"))]
    pub fn is_empty(&self) -> bool {
        self.target.is_empty()
            && self.target_platform_version.is_none()
            && self.gpu_target_config.is_none()
            && self.target_triple.is_none()
            && self.target_cpu.is_none()
    }
}

/// How close results must be.
#[derive(Clone, Copy, Debug, Args)]
pub struct ToleranceArgs {
    /// Relative tolerance (default: 0 for what only moves values; else by the coarsest type that values
    /// are rounded to on the way, 64 units in the last place of f32 and f64, 4 of f16 and bf16, 1 of
    /// narrower types. Of results in a file nothing but the type is known)
    #[arg(long, value_name = "X", allow_hyphen_values = true, value_parser = tolerance)]
    pub rtol: Option<f64>,
    /// Absolute tolerance (default: the relative one times the largest element of the result, and for
    /// results without sums times 1 when that is less; 0 for integers)
    #[arg(long, value_name = "X", allow_hyphen_values = true, value_parser = tolerance)]
    pub atol: Option<f64>,
    /// Representable values that results may be apart
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    pub ulp: u64,
}

/// Where a bundle runs.
#[cfg(feature = "loader")]
#[derive(Debug, Args)]
pub struct DeviceArgs {
    /// Device: `cpu`, `cuda:N` for a GPU by its number, or `sim:TARGET` for a simulated GPU,
    /// `sim` for the one of XLA_AOT_SIM_TARGET, or else one that the bundle fits
    /// (default: what the bundle is for, on this machine)
    #[arg(
        long,
        value_name = "DEVICE",
        default_value = "fitting",
        hide_default_value = true
    )]
    pub device: DeviceChoice,
    /// Threads to run with on a CPU (default: all this process may use)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<usize>(1, MOST))]
    pub threads: Option<usize>,
}

#[cfg(feature = "loader")]
impl DeviceArgs {
    /// How the bundle is to be loaded.
    pub fn options(&self) -> Outcome<LoadOptions> {
        let mut device = self.device.clone();
        if let DeviceChoice::Simulated(target @ None) = &mut device {
            *target = std::env::var(SIM_TARGET)
                .ok()
                .filter(|name| !name.is_empty());
        }
        run::check_device(&device).map_err(Failure::Option)?;
        Ok(LoadOptions {
            device,
            threads: self.threads,
            ..LoadOptions::default()
        })
    }
}

/// A file that belongs to one device.
#[cfg(any(feature = "loader", feature = "reference"))]
#[derive(Clone, Debug)]
pub struct DeviceFile {
    /// The device.
    pub device: usize,
    /// The file.
    pub path: PathBuf,
}

#[cfg(any(feature = "loader", feature = "reference"))]
impl std::str::FromStr for DeviceFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('=');
        let parts = parts.and_then(|(device, path)| Some((device.parse().ok()?, path)));
        match parts {
            Some((device, path)) if !path.is_empty() => Ok(Self {
                device,
                path: path.into(),
            }),
            _ => Err("wanted the number of a device, `=` and a file".to_owned()),
        }
    }
}

/// How many devices run a program together, and with which inputs.
#[cfg(any(feature = "loader", feature = "reference"))]
#[derive(Debug, Args)]
#[command(next_help_heading = "Several devices")]
pub struct DevicesArgs {
    /// Replicas that run the program together (default: as it says; a bundle runs on no others)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u32>(1, MOST))]
    pub replicas: Option<u32>,
    /// Partitions of each replica (default: as the program says; a bundle runs on no others)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u32>(1, MOST))]
    pub partitions: Option<u32>,
    /// Inputs of one device in the place of --input, may be repeated; partition p of replica r is
    /// device r * partitions + p
    #[arg(long, value_name = "N=FILE")]
    pub device_input: Vec<DeviceFile>,
}

/// Arguments of `run`.
#[cfg(feature = "loader")]
#[derive(Debug, Args)]
pub struct Run {
    /// Bundle; `-` is standard input
    pub bundle: PathBuf,
    /// Inputs: an `.npz` with in0, in1, ... (or the names that `inspect` shows, or arr_0, arr_1, ...),
    /// `.npy` files in order, or a snapshot of XLA
    #[arg(short, long, value_name = "FILE")]
    pub input: Vec<PathBuf>,
    /// Where to write out0, out1, ...: `.npz`, or `.npy` for a single result; `-` is standard output.
    /// Several devices write a file each: out.0.npz, out.1.npz, ... for out.npz
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Expected results (of every device), out0, out1, ... or a snapshot's; exit code 4 when they
    /// differ
    #[arg(long, value_name = "FILE")]
    pub expect: Option<PathBuf>,
    /// Expected results of one device in the place of --expect, may be repeated
    #[arg(long, value_name = "N=FILE")]
    pub device_expect: Vec<DeviceFile>,
    /// How many devices run it.
    #[command(flatten)]
    pub devices: DevicesArgs,
    /// How close results must be.
    #[command(flatten)]
    pub tolerance: ToleranceArgs,
    /// Tell what each kernel executed, moved and could reach, on a simulated GPU
    #[arg(long)]
    pub stats: bool,
    /// Where it runs.
    #[command(flatten)]
    pub device: DeviceArgs,
}

/// Arguments of `eval`.
#[cfg(feature = "reference")]
#[derive(Debug, Args)]
pub struct Eval {
    /// Program, or bundle with a readable module; `-` is standard input
    pub program: PathBuf,
    /// What the program is.
    #[command(flatten)]
    pub what: InputArgs,
    /// Inputs: an `.npz` with in0, in1, ... (or the names that `inspect` shows, or arr_0, arr_1, ...),
    /// `.npy` files in order, or a snapshot of XLA
    /// (default: the program's, when it is a snapshot)
    #[arg(short, long, value_name = "FILE")]
    pub input: Vec<PathBuf>,
    /// Where to write out0, out1, ...: `.npz`, or `.npy` for a single result; `-` is standard output.
    /// Several devices write a file each: out.0.npz, out.1.npz, ... for out.npz
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Expected results (of every device), out0, out1, ... or a snapshot's; exit code 4 when they
    /// differ
    #[arg(long, value_name = "FILE")]
    pub expect: Option<PathBuf>,
    /// Expected results of one device in the place of --expect, may be repeated
    #[arg(long, value_name = "N=FILE")]
    pub device_expect: Vec<DeviceFile>,
    /// How many devices run it.
    #[command(flatten)]
    pub devices: DevicesArgs,
    /// How close results must be.
    #[command(flatten)]
    pub tolerance: ToleranceArgs,
}

/// Arguments of `inspect`.
#[derive(Debug, Args)]
pub struct Inspect {
    /// Bundle, or any program: HLO, StableHLO, a jax.export file or a snapshot; `-` is standard input
    pub bundle: PathBuf,
    /// Take a part out instead: hlo, thunks, obj, ptx, cubin
    #[arg(long, value_name = "KIND[=PATH]", value_delimiter = ',')]
    pub emit: Vec<String>,
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub struct Verify {
    /// Bundle; `-` is standard input
    pub bundle: PathBuf,
    /// Inputs to run the bundle and the evaluator on, as `run` takes them
    #[arg(short, long, value_name = "FILE")]
    pub input: Vec<PathBuf>,
    /// Expected results; without them the reference evaluator's are used
    #[arg(long, value_name = "FILE", requires = "input")]
    pub expect: Option<PathBuf>,
    /// How close results must be.
    #[command(flatten)]
    pub tolerance: ToleranceArgs,
    /// Check the rules only, not whether the bundle runs on this host
    #[arg(long, conflicts_with = "input")]
    pub any_host: bool,
    /// Where it runs.
    #[cfg(feature = "loader")]
    #[command(flatten)]
    pub device: DeviceArgs,
}

/// Arguments of `bench`.
#[cfg(feature = "loader")]
#[derive(Debug, Args)]
pub struct Bench {
    /// Bundle; `-` is standard input
    pub bundle: PathBuf,
    /// Inputs: an `.npz` with in0, in1, ... (or the names that `inspect` shows, or arr_0, arr_1, ...),
    /// `.npy` files in order, or a snapshot of XLA
    #[arg(short, long, value_name = "FILE")]
    pub input: Vec<PathBuf>,
    /// Runs to time (default: as many as fit in the duration, at least 5)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<usize>(1, MOST_RUNS))]
    pub iterations: Option<usize>,
    /// Seconds to spend on timed runs
    #[arg(long, value_name = "S", default_value_t = 2.0, allow_hyphen_values = true, value_parser = seconds)]
    pub duration: f64,
    /// Print how the time is spread over kernels, from runs of their own
    #[arg(long)]
    pub profile: bool,
    /// How many devices run it.
    #[command(flatten)]
    pub devices: DevicesArgs,
    /// Runs before the timed ones
    #[arg(long, value_name = "N", default_value_t = 2, allow_negative_numbers = true, value_parser = whole::<usize>(0, MOST_RUNS))]
    pub warm_up: usize,
    /// Where it runs.
    #[command(flatten)]
    pub device: DeviceArgs,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// Code, such as XA1001; all of them when left out
    pub code: Option<String>,
}
