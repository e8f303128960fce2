//! Random programs, run on every engine and compared with the evaluator; and changed files, in every
//! form that is read.
//!
//! A number of fixed seeds are trials of the suite. For hours of it, `scripts/fuzz.sh` sets
//! `XLA_AOT_FUZZ_SECONDS`, and the suite does nothing else: see `long` and `watch`.

pub mod calls;
pub mod caught;
pub mod check;
pub mod combine;
pub mod contract;
pub mod control;
pub mod corners;
pub mod devices;
pub mod dynamic;
pub mod elementwise;
pub mod files;
pub mod long;
pub mod make;
pub mod movement;
pub mod program;
pub mod programs;
pub mod random;
pub mod several;
pub mod shrink;
pub mod special;
pub mod watch;

use std::fs;
use std::path::Path;

use libtest_mimic::Failed;
use libtest_mimic::Trial;
use xla_aot::front;

use crate::ENGINES;
use crate::Engine;
use crate::conformance::flatten;
use crate::conformance::sorted_entries;
use check::Way;

/// Seeds of a trial, and trials.
const SEEDS: u64 = 12;
const TRIALS: u64 = 40;

/// Of so many programs, one is run under emulation.
const EMULATED_EVERY: u64 = 24;

/// The ways to run the program of a seed, of these engines.
pub fn ways(seed: u64, engines: &[&str]) -> Vec<Way> {
    let mut ways = Vec::new();
    for (name, engine) in ENGINES {
        let rare = *name == "qemu" && !seed.is_multiple_of(EMULATED_EVERY) && engines.len() > 1;
        if *name == "eval" || rare || !engines.contains(name) {
            continue;
        }
        let built_in = match seed % 3 {
            0 => vec![false, true],
            _ => vec![false],
        };
        ways.extend(built_in.into_iter().map(|built_in| Way {
            name,
            engine: *engine,
            built_in,
        }));
    }
    ways
}

/// The fixed seeds.
pub fn trials() -> Vec<Trial> {
    let block = |number: u64| {
        Trial::test(format!("fuzz/{number:02}"), move || {
            for seed in number * SEEDS..(number + 1) * SEEDS {
                let program = make::program(seed);
                let ways = ways(seed, &["native", "sim", "qemu"]);
                if let Err(fault) = check::check(&program, &ways) {
                    let text = program.text(&program.outputs);
                    let (engine, message) = (fault.engine, fault.message);
                    return Err(format!("seed {seed}, {engine}: {message}\n{text}").into());
                }
            }
            Ok(())
        })
    };
    let mut trials: Vec<Trial> = (0..TRIALS).map(block).collect();
    trials.extend(files::trials());
    for file in sorted_entries(Path::new("tests/fuzz/found")) {
        for (name, engine) in ENGINES {
            let file = file.clone();
            let stem = file.file_stem().unwrap_or_default().to_string_lossy();
            trials.push(Trial::test(format!("found/{name}/{stem}"), move || {
                found(&file, *engine)
            }));
        }
    }
    trials
}

/// What was found once and mended: programs without inputs, whose results are pairs of what an op
/// gives and what it should.
fn found(file: &Path, engine: Engine) -> Result<(), Failed> {
    let module = front::read(&fs::read(file)?, None)?;
    let result = engine(module, &[])?;
    let mut leaves = Vec::new();
    flatten(&result, &mut leaves);
    for pair in leaves.chunks(2) {
        if pair.len() != 2 || pair[0].bytes() != pair[1].bytes() {
            return Err(format!("a result differs from the one beside it: {pair:?}").into());
        }
    }
    Ok(())
}
