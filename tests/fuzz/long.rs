//! Fuzzing for as long as one wants.
//!
//! A worker process goes through seeds; what is wrong it makes small and writes to a folder, as HLO
//! text and inputs that `xla-aot` reads. The process that was started watches: when the worker dies
//! or hangs, its last program is written as it is, and another worker goes on behind it.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;
use std::time::Instant;

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
use super::ways;

/// A program that computes longer hangs, and so does one that waits ten times as long: on a busy
/// machine a worker may have to wait for its turn.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often the one who watches looks.
const LOOK: Duration = Duration::from_secs(5);

/// Processor time of a process, where the system tells.
fn worked(process: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // Behind the name, which may hold anything, hundredths of a second in the 12th and 13th field.
    let fields = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace();
    let ticks = fields
        .skip(11)
        .take(2)
        .filter_map(|f| f.parse::<u64>().ok());
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

fn folder() -> PathBuf {
    env::var_os("XLA_AOT_FUZZ_OUT").map_or_else(|| PathBuf::from("target/fuzz"), PathBuf::from)
}

fn engines() -> Vec<String> {
    let words = env::var("XLA_AOT_FUZZ_ORACLES").unwrap_or_else(|_| "native,sim,qemu".to_owned());
    words.split(',').map(str::to_owned).collect()
}

/// Fuzzes when the environment says so; then gives whether all went well.
pub fn run() -> Option<bool> {
    if let Some(seed) = number("XLA_AOT_FUZZ_WORKER") {
        work(seed);
        return Some(true);
    }
    let first = number("XLA_AOT_FUZZ_SEED").unwrap_or(0);
    if let Some(programs) = number("XLA_AOT_FUZZ_PROGRAMS") {
        (first..first + programs).for_each(dump);
        return Some(true);
    }
    let seconds = number("XLA_AOT_FUZZ_SECONDS")?;
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut totals = Totals::default();
    let mut seed = first;
    while Instant::now() < end {
        seed = watch(seed, end, &mut totals);
    }
    println!("{} programs, {} faults", totals.programs, totals.faults);
    for (refusal, times) in &totals.refusals {
        println!("{times:>6} x refused by {refusal}");
    }
    Some(totals.faults == 0)
}

#[derive(Default)]
struct Totals {
    programs: u64,
    faults: u64,
    refusals: BTreeMap<String, u64>,
}

/// Watches one worker from that seed on; gives the seed to go on with.
fn watch(first: u64, end: Instant, totals: &mut Totals) -> u64 {
    let program = env::current_exe().expect("the program knows where it is");
    let mut worker = Command::new(program)
        .env("XLA_AOT_FUZZ_WORKER", first.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a worker starts");
    let output = worker.stdout.take().expect("its output is piped");
    let (send, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    let mut seed = first;
    let mut shrinking = false;
    let mut told = (Instant::now(), worked(worker.id()));
    loop {
        let patience = if shrinking { PATIENCE * 10 } else { PATIENCE };
        let ending = match lines.recv_timeout(LOOK) {
            Ok(line) => {
                told = (Instant::now(), worked(worker.id()));
                if let Some(next) = line.strip_prefix("seed ") {
                    seed = next.parse().unwrap_or(seed);
                    totals.programs += 1;
                    shrinking = false;
                } else if let Some(fault) = line.strip_prefix("fault ") {
                    println!("{fault}");
                    totals.faults += 1;
                    shrinking = true;
                } else if let Some(refusal) = line.strip_prefix("refused ") {
                    *totals.refusals.entry(refusal.to_owned()).or_default() += 1;
                }
                if Instant::now() < end {
                    continue;
                }
                None
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let computed = worked(worker.id()).saturating_sub(told.1);
                if computed < patience && told.0.elapsed() < patience * 10 {
                    continue;
                }
                Some("hangs")
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => Some("dies"),
        };
        let _ = worker.kill();
        let _ = worker.wait();
        if let Some(message) = ending {
            totals.faults += u64::from(!shrinking);
            println!("seed {seed}: the process {message}");
            let fault = Fault {
                engine: "process".to_owned(),
                message: message.to_owned(),
            };
            write(seed, &make::program(seed), &fault);
        }
        return seed + 1;
    }
}

/// Goes through seeds until it is stopped.
fn work(first: u64) {
    // Panics are caught and told as faults.
    std::panic::set_hook(Box::new(|_| {}));
    let engines = engines();
    let engines: Vec<&str> = engines.iter().map(String::as_str).collect();
    for seed in first.. {
        tell(&format!("seed {seed}"));
        let program = make::program(seed);
        let ways = ways(seed, &engines);
        match check(&program, &ways) {
            Ok(Outcome::Agrees) => {}
            Ok(Outcome::Refused(why)) => tell(&format!("refused {}", plain(&why))),
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
}

/// A line for the one who watches; without one there is nothing left to do.
fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    written.expect("somebody watches");
}

/// The first line, without what differs from program to program.
fn plain(message: &str) -> String {
    message.lines().next().unwrap_or_default().to_owned()
}

/// Writes a program, its inputs and the evaluator's results, for others to compare with.
fn dump(seed: u64) {
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

fn save(name: &str, content: &[u8]) {
    let folder = folder();
    let path = folder.join(name);
    let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&path, content));
    if let Err(error) = written {
        println!("{}: {error}", path.display());
    }
}
