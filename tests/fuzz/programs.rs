//! Random programs as a kind of inputs: what is wrong with one is made small and written as HLO text
//! and inputs that `xla-aot` reads.

use std::env;
use std::time::Duration;

use xla_aot::literal::ArrayLiteral;
use xla_aot::literal::npy::NpyArray;
use xla_aot::literal::npy::write_npz;

use super::check::Fault;
use super::check::Outcome;
use super::check::check;
use super::check::evaluate;
use super::make;
use super::program::Accuracy;
use super::program::Door;
use super::program::Program;
use super::shrink::shrink;
use super::watch::Kind;
use super::watch::save;
use super::watch::tell;
use super::ways;

/// Programs, run on some engines.
pub struct Programs {
    engines: Vec<String>,
}

impl Programs {
    /// Those that run on the engines that the environment names.
    pub fn of_environment() -> Self {
        let words = env::var("XLA_AOT_FUZZ_ORACLES");
        let words = words.unwrap_or_else(|_| "native,sim,qemu".to_owned());
        Self {
            engines: words.split(',').map(str::to_owned).collect(),
        }
    }
}

impl Kind for Programs {
    fn name(&self) -> &'static str {
        "programs"
    }

    fn work(&self, seed: u64) {
        let engines: Vec<&str> = self.engines.iter().map(String::as_str).collect();
        let program = make::program(seed);
        let ways = ways(seed, &engines);
        match check(&program, &ways) {
            Ok(Outcome::Agrees) => {}
            Ok(Outcome::Refused(why)) => {
                let first = why.lines().next().unwrap_or_default();
                tell(&format!("count refused by {first}"));
            }
            Err(fault) => {
                let first = fault.message.lines().next().unwrap_or_default();
                tell(&format!("fault seed {seed}, {}: {first}", fault.engine));
                write(seed, &program, &fault);
                let guilty = ways.iter().find(|way| check(&program, &[**way]).is_err());
                if let Some(way) = guilty {
                    write(seed, &shrink(&program, *way), &fault);
                }
            }
        }
    }

    fn bury(&self, seed: u64, message: &str) {
        let fault = Fault {
            engine: "process".to_owned(),
            message: message.to_owned(),
        };
        write(seed, &make::program(seed), &fault);
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(120)
    }

    fn room(&self) -> Option<u64> {
        None
    }
}

/// Writes a program, its inputs and the evaluator's results, for others to compare with.
pub fn dump(seed: u64) {
    let mut program = make::program(seed);
    program.door = Door::Tuple;
    program.aliases.clear();
    // Others run one device, have no form for arrays of unknown sizes, LAPACK's own signs and orders,
    // and another free generator.
    let text = program.text(&program.outputs);
    let own = [
        "[<=",
        ",<=",
        "lapack_",
        "tridiagonal_solve",
        "rng-get-and-update-state",
    ];
    if program.device_count() > 1 || own.iter().any(|word| text.contains(word)) {
        return;
    }
    let Ok(values) = evaluate(&program) else {
        return;
    };
    let values = &values[0];
    let results = program.results();
    let accuracy = results
        .iter()
        .enumerate()
        .map(|(i, line)| match line.accuracy {
            Accuracy::Bits | Accuracy::Exact => format!("// out{i}: exact\n"),
            Accuracy::Near(by) => format!("// out{i}: near {by}\n"),
            Accuracy::Spread(by) => format!("// out{i}: spread {by}\n"),
        });
    let text = format!("{}{text}", accuracy.collect::<String>());
    let wanted: Vec<ArrayLiteral> = results.iter().map(|l| values.get(l.name).clone()).collect();
    save(&format!("{seed}.hlo"), text.as_bytes());
    save(&format!("{seed}.npz"), &archive("in", &program.inputs()));
    save(&format!("{seed}.want.npz"), &archive("out", &wanted));
}

fn write(seed: u64, program: &Program, fault: &Fault) {
    let lines = fault.message.lines();
    let message: String = lines.map(|line| format!("// {line}\n")).collect();
    let text = program.text(&program.outputs);
    let text = format!("// {}\n{message}{text}", fault.engine);
    save(&format!("{seed}.hlo"), text.as_bytes());
    save(&format!("{seed}.npz"), &archive("in", &program.inputs()));
}

/// An `.npz` of these arrays.
fn archive(prefix: &str, values: &[ArrayLiteral]) -> Vec<u8> {
    let named = values.iter().enumerate();
    let arrays: Vec<(String, NpyArray)> = named
        .map(|(i, value)| (format!("{prefix}{i}"), NpyArray::from_literal(value)))
        .collect();
    let arrays = arrays.iter().map(|(name, array)| (name.as_str(), array));
    write_npz(arrays).unwrap_or_default()
}
