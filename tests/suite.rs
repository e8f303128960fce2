//! All data-driven tests: one trial a file and engine.
//!
//! Conformance programs ship in `tests/programs`; where `../shared/corpus` is present, or
//! `XLA_AOT_CORPUS` names a folder, all of that is run as well.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking and may talk"
)]

mod conformance;
mod devices;
mod fuzz;
mod golden;
mod ops;
mod plans;
mod rules;
mod semantics;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use conformance::Case;
use conformance::constants;
use conformance::qemu;
use conformance::simulated;
use libtest_mimic::Arguments;
use libtest_mimic::Failed;
use libtest_mimic::Trial;
use xla_aot::base::Diagnostic;
use xla_aot::bundle;
use xla_aot::bundle::WriteOptions;
use xla_aot::driver::compile;
use xla_aot::driver::compile::CompileOptions;
use xla_aot::driver::observe::Unobserved;
use xla_aot::driver::targets;
use xla_aot::driver::targets::TargetRequest;
use xla_aot::eval;
use xla_aot::executable;
use xla_aot::executable::Executable;
use xla_aot::front;
use xla_aot::hlo;
use xla_aot::hlo::Module;
use xla_aot::literal::ArrayLiteral;
use xla_aot::literal::Literal;
use xla_aot::runtime::LoadOptions;
use xla_aot::runtime::Loaded;
use xla_aot::runtime::loaded::leaves;
use xla_aot::runtime::loaded::unflatten;
use xla_aot::shape::ArrayShape;
use xla_aot::shape::Shape;
use xla_aot::wire;

/// Of programs other than models, one in so many is run under emulation.
const EMULATED_EVERY: usize = 12;

fn main() {
    if let Some(well) = fuzz::long::run() {
        std::process::exit(i32::from(!well));
    }
    let skips = Skips::read();
    let mut trials = golden::trials();
    let cases: Vec<(String, Arc<Case>)> = cases()
        .into_iter()
        .map(|(name, case)| (name, Arc::new(case)))
        .collect();
    trials.extend(conformance::bundles::trials(&cases));
    trials.extend(conformance::stablehlo::trials(&cases));
    trials.extend(conformance::mlir::trials(&cases));
    for (number, (name, case)) in cases.into_iter().enumerate() {
        for form in case.texts() {
            let stem = form.file_stem().unwrap().to_string_lossy().into_owned();
            trials.push(Trial::test(format!("text/{name}/{stem}"), move || {
                read_and_print(&form)
            }));
        }
        let planned = Arc::clone(&case);
        trials.push(expecting(&skips, "", "plan", &name, move || {
            plans::plan(read(&planned.dir.join("program.pb"))?)
        }));
        if case.is_large() {
            continue;
        }
        for inputs in [Inputs::Given, Inputs::BuiltIn] {
            for (engine, run) in ENGINES {
                let often = case.kind == "model" || number.is_multiple_of(EMULATED_EVERY);
                if *engine != "qemu" || often {
                    let case = Arc::clone(&case);
                    let run = move || case_on(&case, inputs, *run);
                    trials.push(expecting(&skips, inputs.prefix(), engine, &name, run));
                }
            }
        }
    }
    trials.extend(plans::trials());
    trials.extend(devices::trials());
    semantics::bless(ENGINES).expect("everything can be measured");
    trials.extend(semantics::trials(ENGINES));
    trials.extend(rules::trials());
    trials.extend(fuzz::trials());
    trials.extend(conformance::mutations::trials());
    trials.extend(conformance::loader::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// What engines may not pass yet: engine, start of the case's name, whether that is the whole name.
struct Skips(Vec<(String, String, bool)>);

impl Skips {
    fn read() -> Self {
        let text = fs::read_to_string("tests/skips.txt").expect("the list of skips can be read");
        let rows = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                let (engine, case) = (words.next()?, words.next()?);
                let start = case.trim_end_matches('*');
                Some((
                    engine.to_owned(),
                    start.to_owned(),
                    start.len() == case.len(),
                ))
            });
        Self(rows.collect())
    }

    fn has(&self, engine: &str, case: &str) -> bool {
        self.0.iter().any(|(e, start, whole)| {
            e == engine
                && if *whole {
                    case == start
                } else {
                    case.starts_with(start.as_str())
                }
        })
    }
}

/// A trial that must fail with a diagnostic when the case is on the list of skips, else pass.
fn expecting(
    skips: &Skips,
    prefix: &str,
    engine: &str,
    case: &str,
    run: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let skipped = skips.has(engine, case);
    Trial::test(format!("{prefix}{engine}/{case}"), move || {
        match (run(), skipped) {
            (Ok(()), true) => Err("passes, and is on the list of skips".into()),
            (Err(_), true) => Ok(()),
            (result, false) => result,
        }
    })
}

/// The programs that ship, and those of the outside corpus when there is one, by name; of two of the
/// same name the outside one, which has more forms.
fn cases() -> Vec<(String, Case)> {
    let outside = std::env::var_os("XLA_AOT_CORPUS")
        .map_or_else(|| PathBuf::from("../shared/corpus"), PathBuf::from);
    let shipped = Path::new("tests/programs");
    let mut cases = BTreeMap::new();
    for root in [shipped, outside.as_path()] {
        if root.is_dir() {
            let found = Case::all(root).into_iter();
            cases.extend(found.map(|case| (format!("{}/{}", case.kind, case.name), case)));
        }
    }
    cases.into_iter().collect()
}

fn read(path: &Path) -> Result<Module, Failed> {
    let bytes = fs::read(path)?;
    wire::hlo::decode_any(&bytes).map_err(|d| Failed::from(d.to_string()))
}

/// HLO text and the proto beside it are read and verified; what is printed of them reads back equal.
fn read_and_print(text: &Path) -> Result<(), Failed> {
    let from_text = front::hlo_text::parse(&fs::read_to_string(text)?).map_err(failed)?;
    for module in [from_text, read(&text.with_extension("pb"))?] {
        hlo::verify::check(&module).map_err(failed)?;
        let printed = hlo::print::module(&module);
        let again = front::hlo_text::parse(&printed).map_err(failed)?;
        hlo::verify::check(&again).map_err(failed)?;
        if hlo::print::module(&again) != printed {
            return Err(format!("another module was read back from\n{printed}").into());
        }
        if wire::hlo::encode_module(&again) != wire::hlo::encode_module(&module) {
            return Err(format!("the proto changed on the way through\n{printed}").into());
        }
    }
    Ok(())
}

/// How a program comes to its inputs.
#[derive(Clone, Copy)]
enum Inputs {
    /// As arguments.
    Given,
    /// As constants that stand where its parameters stood.
    BuiltIn,
}

impl Inputs {
    /// What names of trials begin with.
    fn prefix(self) -> &'static str {
        match self {
            Self::Given => "",
            Self::BuiltIn => "const/",
        }
    }
}

/// A way to run a program on its arguments.
type Engine = semantics::Engine;

/// Every way to run a program, by name.
const ENGINES: &[(&str, Engine)] = &[
    ("eval", evaluate),
    ("native", run_native),
    ("qemu", run_emulated),
    ("sim", run_simulated),
];

/// Runs a case and compares its results with what is expected.
fn case_on(case: &Case, inputs: Inputs, engine: Engine) -> Result<(), Failed> {
    let module = read(&case.dir.join("program.pb"))?;
    let values = case.inputs(&module)?;
    let (module, values) = match inputs {
        Inputs::Given => (module, values),
        Inputs::BuiltIn => (constants::built_in(module, values), Vec::new()),
    };
    Ok(case.check(&engine(module, &values)?)?)
}

fn evaluate(module: Module, inputs: &[Literal]) -> Result<Literal, Failed> {
    hlo::verify::check(&module).map_err(failed)?;
    eval::evaluate(&module, inputs).map_err(failed)
}

fn failed(diagnostic: Box<Diagnostic>) -> Failed {
    diagnostic.to_string().into()
}

fn cpu(name: &str) -> TargetRequest {
    TargetRequest {
        cpu: Some(name.to_owned()),
        ..TargetRequest::default()
    }
}

/// Compiles, writes the bundle and reads it.
fn build(module: Module, target: &TargetRequest) -> Result<Executable, Failed> {
    let options = CompileOptions {
        jobs: 1,
        assembler: compile::Assembler::None,
        ..CompileOptions::new(targets::resolve(target).map_err(failed)?)
    };
    let compiled = compile::build(module, &options, &mut Unobserved).map_err(failed)?;
    let executable = compiled.executable.ok_or("no executable")?;
    let bytes = bundle::write(&executable, WriteOptions::default()).map_err(failed)?;
    Ok(bundle::read(&bytes).map_err(failed)?.executable)
}

/// Compiles for this machine, loads the bundle and runs.
fn run_native(module: Module, inputs: &[Literal]) -> Result<Literal, Failed> {
    let result_shape = module.entry_layout().result;
    let executable = build(module, &cpu("native"))?;
    let threads = Some(2);
    let options = LoadOptions {
        threads,
        ..LoadOptions::default()
    };
    let loaded = Loaded::new(&executable, &options).map_err(failed)?;
    let leaves = loaded.run(inputs).map_err(failed)?;
    whole(&result_shape, leaves)
}

/// Compiles for an AArch64 machine and runs what the bundle holds under emulation.
fn run_emulated(module: Module, inputs: &[Literal]) -> Result<Literal, Failed> {
    let result_shape = module.entry_layout().result;
    let executable = build(module, &cpu(qemu::CPU))?;
    check(&executable)?;
    whole(&result_shape, qemu::run(&executable, &leaves(inputs))?)
}

/// Compiles for a GPU and runs what the bundle holds on a simulated one.
fn run_simulated(module: Module, inputs: &[Literal]) -> Result<Literal, Failed> {
    let result_shape = module.entry_layout().result;
    let target = TargetRequest {
        name: Some(simulated::target()),
        ..TargetRequest::default()
    };
    let executable = build(module, &target)?;
    check(&executable)?;
    check_root(&executable)?;
    whole(&result_shape, simulated::run(&executable, &leaves(inputs))?)
}

fn check(executable: &Executable) -> Result<(), Failed> {
    match executable::check::check(executable).into_iter().next() {
        Some(first) => Err(failed(Box::new(first))),
        None => Ok(()),
    }
}

/// The value of that shape that these arrays are.
fn whole(shape: &Shape, leaves: Vec<ArrayLiteral>) -> Result<Literal, Failed> {
    let result = unflatten(shape, &mut leaves.into_iter());
    Ok(result.ok_or("too few results")?)
}

/// The root of the module in a GPU bundle has the caller's shape: XLA's client goes by it.
fn check_root(executable: &Executable) -> Result<(), Failed> {
    let module = wire::hlo::decode_module_with_config(&executable.hlo).map_err(failed)?;
    hlo::verify::check(&module).map_err(failed)?;
    let root = module.program_shape(module.entry).result;
    let wanted = &executable.signature.program.result;
    let pairs = root.leaves().into_iter().zip(wanted.leaves());
    for ((at, root), (_, wanted)) in pairs {
        let arrays = root.as_array().zip(wanted.as_array());
        let same = arrays.is_none_or(|(a, b)| {
            let order = |array: &ArrayShape| array.layout_or_default().minor_to_major;
            let is_bytes = b.is_dynamic() && a.dims.as_slice() == [b.byte_size()];
            is_bytes || a.ty == b.ty && a.dims == b.dims && order(a) == order(b)
        });
        if !same {
            return Err(format!("the root has {root} at {at:?}, the caller sees {wanted}").into());
        }
    }
    Ok(())
}
