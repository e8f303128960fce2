//! Goldens of memory plans and thunks: HLO text and, below it in comments, what it becomes.
//!
//! `tests/golden/buffer/*.hlo` hold the buffer assignment, `tests/golden/thunks/*.hlo` the thunks.
//! `XLA_AOT_BLESS=1` writes them anew.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use libtest_mimic::Failed;
use libtest_mimic::Trial;
use xla_aot::base::Severity;
use xla_aot::buffer;
use xla_aot::emit;
use xla_aot::executable;
use xla_aot::front;
use xla_aot::hlo::Module;
use xla_aot::passes;
use xla_aot::passes::PassOptions;
use xla_aot::passes::finish::canonical_names::canonicalize_names;
use xla_aot::passes::finish::copies::insert_copies;
use xla_aot::schedule;
use xla_aot::target::Target;
use xla_aot::wire;

const MARK: &str = "// becomes:\n";

/// One trial a file.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (folder, make) in [
        ("buffer", buffers as fn(Module) -> Result<String, Failed>),
        ("thunks", thunks),
    ] {
        let root = PathBuf::from("tests/golden").join(folder);
        let mut files: Vec<PathBuf> = fs::read_dir(&root)
            .expect("the folder of goldens can be read")
            .map(|entry| entry.expect("and its entries").path())
            .collect();
        files.sort();
        for file in files {
            let name = file.file_stem().unwrap().to_string_lossy().into_owned();
            let trial = Trial::test(format!("golden/{folder}/{name}"), move || run(&file, make));
            trials.push(trial);
        }
    }
    trials
}

/// Plans the memory of a module that the passes can compile, and checks the plan.
pub fn plan(module: Module) -> Result<(), Failed> {
    let target = target();
    let all = PassOptions::default();
    let module = match passes::run(module, &target, &all, &mut passes::Unobserved) {
        Ok((module, _)) => module,
        Err(refused) if refused.severity == Severity::Unsupported => return Ok(()),
        Err(broken) => return Err(broken.to_string().into()),
    };
    let scheduled = schedule::run(module, &target).map_err(|d| Failed::from(d.to_string()))?;
    assigned(&scheduled).map(|_| ())
}

fn run(file: &Path, make: fn(Module) -> Result<String, Failed>) -> Result<(), Failed> {
    let text = fs::read_to_string(file)?;
    let (program, want) = text.split_once(MARK).unwrap_or((&text, ""));
    let module = front::hlo_text::parse(program).map_err(|d| Failed::from(d.to_string()))?;
    let made = make(module)?;
    let got: String = made.lines().map(|line| format!("// {line}\n")).collect();
    if std::env::var_os("XLA_AOT_BLESS").is_some() {
        fs::write(file, format!("{}{MARK}{got}", program))?;
        return Ok(());
    }
    if got != want {
        return Err(format!("want\n{want}\ngot\n{got}").into());
    }
    Ok(())
}

fn target() -> Target {
    wire::target::by_name("x86-64-v3").expect("the target ships")
}

fn scheduled(mut module: Module) -> Result<schedule::Scheduled, Failed> {
    let failed = |d: Box<xla_aot::base::Diagnostic>| Failed::from(d.to_string());
    insert_copies(&mut module).map_err(failed)?;
    canonicalize_names(&mut module);
    schedule::run(module, &target()).map_err(failed)
}

fn assigned(scheduled: &schedule::Scheduled) -> Result<buffer::BufferAssignment, Failed> {
    let assignment =
        buffer::assign(scheduled, &target()).map_err(|d| Failed::from(d.to_string()))?;
    let findings = buffer::check(scheduled, &assignment, &target());
    match findings.first() {
        Some(finding) => Err(finding.to_string().into()),
        None => Ok(assignment),
    }
}

fn buffers(module: Module) -> Result<String, Failed> {
    let scheduled = scheduled(module)?;
    let assignment = assigned(&scheduled)?;
    Ok(buffer::print(&scheduled.module, &assignment))
}

fn thunks(module: Module) -> Result<String, Failed> {
    let scheduled = scheduled(module)?;
    let assignment = assigned(&scheduled)?;
    let program = emit::program(&scheduled, &assignment, &target());
    let program = program.map_err(|d| Failed::from(d.to_string()))?;
    let name = |id| {
        let kernel = program.kernels.iter().find(|k| k.id == id);
        kernel.map(|k| k.name.clone()).unwrap_or_default()
    };
    Ok(executable::print::thunks(&program.thunks, &name))
}
