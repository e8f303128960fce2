//! Programs of several devices: each with inputs and expected results of every device, worked out
//! from the specification, on every engine that runs several; and programs that are refused or come
//! to a standstill, with what must be said.
//!
//! In a program's head, `//! devices R P` has replicas and partitions, `//! in D (...)` and
//! `//! out D ...` values of device D, `//! error TEXT` a part of the message.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use libtest_mimic::Failed;
use libtest_mimic::Trial;
use xla_aot::base::Cursor;
use xla_aot::base::Diagnostic;
use xla_aot::bundle;
use xla_aot::bundle::WriteOptions;
use xla_aot::collective::Topology;
use xla_aot::driver::compile;
use xla_aot::driver::compile::CompileOptions;
use xla_aot::driver::observe::Unobserved;
use xla_aot::driver::targets;
use xla_aot::driver::targets::TargetRequest;
use xla_aot::eval;
use xla_aot::front;
use xla_aot::hlo;
use xla_aot::hlo::Module;
use xla_aot::literal::Literal;
use xla_aot::literal::compare::Tolerance;
use xla_aot::literal::compare::compare;
use xla_aot::literal::text;
use xla_aot::runtime::DeviceChoice;
use xla_aot::runtime::LoadOptions;
use xla_aot::runtime::Loaded;
use xla_aot::runtime::loaded::leaves;

use crate::conformance::simulated;

/// Runs a program on devices with these inputs; gives each device's results.
pub type Engine = fn(&Program) -> Result<Vec<Vec<Literal>>, Failed>;

const ENGINES: &[(&str, Engine)] = &[("eval", evaluate), ("cpu", on_cpu), ("cuda", on_gpus)];

/// One program.
pub struct Program {
    pub text: String,
    pub topology: Topology,
    /// Of each device.
    pub inputs: Vec<Vec<Literal>>,
    pub expected: Vec<Literal>,
    pub error: Option<String>,
}

/// A trial for each program and engine.
pub fn trials() -> Vec<Trial> {
    let folder = Path::new("tests/devices");
    let files = fs::read_dir(folder).expect("the folder can be read");
    let files = files.map(|entry| entry.expect("an entry can be read").path());
    let mut files: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|e| e == "hlo"))
        .collect();
    files.sort();
    let mut trials = Vec::new();
    for path in files {
        for (engine, run) in ENGINES {
            let stem = path
                .file_stem()
                .expect("a file has a name")
                .to_string_lossy();
            let path = path.clone();
            trials.push(Trial::test(format!("devices/{engine}/{stem}"), move || {
                trial(&path, *run)
            }));
        }
    }
    trials
}

fn trial(path: &Path, run: Engine) -> Result<(), Failed> {
    let program = read(path)?;
    let got = run(&program);
    if let Some(wanted) = &program.error {
        return match got {
            Ok(_) => Err("it ran".into()),
            Err(failed) => {
                let found = failed.message().unwrap_or_default();
                match found.contains(wanted) {
                    true => Ok(()),
                    false => Err(format!("another error: {found}").into()),
                }
            }
        };
    }
    let got = got?;
    assert_eq!(got.len(), program.topology.devices());
    for (device, (got, wanted)) in got.iter().zip(&program.expected).enumerate() {
        let (got, wanted) = (leaves(got), leaves(std::slice::from_ref(wanted)));
        if got.len() != wanted.len() {
            return Err(format!("{} results", got.len()).into());
        }
        for (i, (got, wanted)) in got.iter().zip(&wanted).enumerate() {
            let found = compare(got, wanted, &Tolerance::EXACT).map_err(failed)?;
            if !found.passed {
                let text = found.describe();
                return Err(format!("device {device}, result {i}: {text}").into());
            }
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Program, Failed> {
    let whole = fs::read_to_string(path)?;
    let mut program = Program {
        text: String::new(),
        topology: Topology::ONE,
        inputs: Vec::new(),
        expected: Vec::new(),
        error: None,
    };
    for line in whole.lines() {
        let Some(line) = line.strip_prefix("//! ") else {
            program.text.push_str(line);
            program.text.push('\n');
            continue;
        };
        let (word, rest) = line.split_once(' ').ok_or("a line of one word")?;
        if word == "error" {
            program.error = Some(rest.to_owned());
            continue;
        }
        let (number, rest) = rest.split_once(' ').ok_or("a line of two words")?;
        let number: i64 = number.parse()?;
        match word {
            "devices" => program.topology = Topology::new(number, rest.parse()?)?,
            "in" => match literal(rest)? {
                Literal::Tuple(inputs) => program.inputs.push(inputs),
                _ => return Err("inputs are no tuple".into()),
            },
            "out" => program.expected.push(literal(rest)?),
            _ => return Err(format!("`{word}` is unknown").into()),
        }
    }
    Ok(program)
}

fn literal(words: &str) -> Result<Literal, Failed> {
    text::parse_with_shape(&mut Cursor::new(words)).map_err(failed)
}

fn failed(diagnostic: Box<Diagnostic>) -> Failed {
    diagnostic.to_string().into()
}

fn module(program: &Program) -> Result<Module, Failed> {
    let mut module = front::read(program.text.as_bytes(), None).map_err(failed)?;
    module.config.replica_count = i64::from(program.topology.replicas);
    module.config.num_partitions = i64::from(program.topology.partitions);
    hlo::verify::check(&module).map_err(failed)?;
    Ok(module)
}

/// On the evaluator.
pub fn evaluate(program: &Program) -> Result<Vec<Vec<Literal>>, Failed> {
    let module = module(program)?;
    let results = eval::evaluate_on(&module, program.topology, &program.inputs);
    let results = results.map_err(failed)?.into_iter();
    Ok(results.map(|result| vec![result]).collect())
}

/// On devices of this machine.
pub fn on_cpu(program: &Program) -> Result<Vec<Vec<Literal>>, Failed> {
    let native = TargetRequest {
        cpu: Some("native".to_owned()),
        ..TargetRequest::default()
    };
    let options = LoadOptions {
        threads: Some(2),
        ..LoadOptions::default()
    };
    run(program, &native, &options)
}

/// On simulated GPUs.
pub fn on_gpus(program: &Program) -> Result<Vec<Vec<Literal>>, Failed> {
    simulated::api()?;
    let target = TargetRequest {
        name: Some(simulated::target()),
        ..TargetRequest::default()
    };
    let options = LoadOptions {
        device: DeviceChoice::Simulated(Some(simulated::target())),
        ..LoadOptions::default()
    };
    run(program, &target, &options)
}

/// Compiles, writes the bundle, reads it, loads it and runs it twice.
fn run(
    program: &Program,
    target: &TargetRequest,
    load: &LoadOptions,
) -> Result<Vec<Vec<Literal>>, Failed> {
    let options = CompileOptions {
        jobs: 1,
        assembler: compile::Assembler::None,
        ..CompileOptions::new(targets::resolve(target).map_err(failed)?)
    };
    let compiled = compile::build(module(program)?, &options, &mut Unobserved).map_err(failed)?;
    let executable = compiled.executable.ok_or("no executable")?;
    let bytes = bundle::write(&executable, WriteOptions::default()).map_err(failed)?;
    let read = bundle::read(&bytes).map_err(failed)?.executable;
    // GPU bundles have no word for the form of a custom call's result; no program here has one.
    if !program.expected.is_empty() {
        assert_eq!(
            read.thunks, executable.thunks,
            "what is read is what was written"
        );
    }
    let loaded = Loaded::new(&read, load).map_err(failed)?;
    let inputs: Vec<_> = program.inputs.iter().map(|inputs| leaves(inputs)).collect();
    let mut bound = loaded.bind(inputs).map_err(failed)?;
    let mut last = None;
    for _ in 0..2 {
        bound.execute().map_err(failed)?;
        let outputs = bound.outputs().map_err(failed)?;
        if last.is_some_and(|last| last != outputs) {
            return Err("two runs differ".into());
        }
        last = Some(outputs);
    }
    let outputs = last.unwrap_or_default().into_iter();
    let arrays = outputs.map(|arrays| arrays.into_iter().map(Literal::Array).collect());
    Ok(arrays.collect())
}
