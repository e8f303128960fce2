//! The MLIR forms of a case: the portable artifact is the program of the text, and what is written
//! and printed of it reads back equal.

use std::fs;
use std::sync::Arc;

use libtest_mimic::Failed;
use libtest_mimic::Trial;
use xla_aot::base::Diagnostic;
use xla_aot::mlir::bytecode;
use xla_aot::mlir::print::print;
use xla_aot::mlir::text;

use crate::conformance::Case;

/// One trial for each case that has an artifact.
pub fn trials(cases: &[(String, Arc<Case>)]) -> Vec<Trial> {
    let has = |case: &Case| case.dir.join("program.mlirbc").is_file();
    let with = cases.iter().filter(|(_, case)| has(case));
    let trial = |(name, case): &(String, Arc<Case>)| {
        let case = Arc::clone(case);
        Trial::test(format!("mlir/{name}"), move || forms(&case))
    };
    with.map(trial).collect()
}

fn failed(diagnostic: Box<Diagnostic>) -> Failed {
    diagnostic.to_string().into()
}

fn forms(case: &Case) -> Result<(), Failed> {
    let artifact = fs::read(case.dir.join("program.mlirbc"))?;
    let module = bytecode::read(&artifact).map_err(failed)?;
    let printed = print(&module);
    // Composites and models have what `jax.export` wrote, which is the program in other words.
    if case.kind != "composite" && case.kind != "model" {
        let source = fs::read_to_string(case.dir.join("program.mlir"))?;
        let from_text = text::read(&source).map_err(failed)?;
        same("the text", &print(&from_text), &printed)?;
    }
    let again = text::read(&printed).map_err(failed)?;
    same("its print", &print(&again), &printed)?;
    let written = bytecode::write(&module, bytecode::DEFAULT_VERSION).map_err(failed)?;
    let again = bytecode::read(&written).map_err(failed)?;
    same("what was written of it", &print(&again), &printed)
}

fn same(what: &str, found: &str, wanted: &str) -> Result<(), Failed> {
    let pairs = found.lines().zip(wanted.lines());
    match pairs.clone().find(|(found, wanted)| found != wanted) {
        None if found == wanted => Ok(()),
        None => Err(format!("{what} has another number of lines").into()),
        Some((found, wanted)) => {
            Err(format!("the artifact has\n{wanted}\n{what} has\n{found}").into())
        }
    }
}
