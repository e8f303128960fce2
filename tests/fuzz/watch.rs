//! Fuzzing for as long as one wants.
//!
//! A worker process goes through seeds; what is wrong it tells, and writes to a folder, made small.
//! The process that was started watches: when the worker dies or hangs, it writes the last input,
//! and another worker goes on behind it.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::env;
use std::fs;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::process::ExitStatus;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use std::time::Instant;

/// A kind of inputs, and what must hold of them.
pub trait Kind {
    /// What its inputs are called.
    fn name(&self) -> &'static str;
    /// Checks the input of a seed, in a worker. What is wrong is told and written.
    fn work(&self, seed: u64);
    /// Writes the input at which a worker ended, in the process that watches.
    fn bury(&self, seed: u64, message: &str);
    /// Processor time after which a worker hangs. One that waits ten times as long does too: on a
    /// busy machine it may have to wait for its turn.
    fn patience(&self) -> Duration;
    /// Bytes of memory that a worker may ask for, where that is bounded.
    fn room(&self) -> Option<u64>;
    /// What a worker finds in its environment beside what this process has.
    fn environment(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}

/// How often the one who watches looks.
const LOOK: Duration = Duration::from_secs(2);

/// So much longer than an input may take, making it small may.
const SHRINKING: u32 = 20;

/// Lines of what a worker said last that are kept.
const LAST_WORDS: usize = 4;

/// A number from the environment.
pub fn number(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

/// Fuzzes when the environment says so; then gives whether all went well.
pub fn run(kind: &dyn Kind) -> Option<bool> {
    if let Some(seed) = number("XLA_AOT_FUZZ_WORKER") {
        super::caught::keep_quiet();
        for seed in seed.. {
            tell(&format!("seed {seed}"));
            kind.work(seed);
        }
    }
    let seconds = number("XLA_AOT_FUZZ_SECONDS")?;
    let end = Instant::now() + Duration::from_secs(seconds);
    let environment = kind.environment();
    let mut totals = Totals::default();
    let mut seed = number("XLA_AOT_FUZZ_SEED").unwrap_or(0);
    while Instant::now() < end {
        let mut environment = environment.clone();
        environment.push(("XLA_AOT_FUZZ_WORKER", seed.to_string()));
        let worker = Process::start(&environment, kind.room());
        seed = watch(kind, worker, seed, end, &mut totals);
    }
    println!(
        "{} {}, {} faults",
        totals.inputs,
        kind.name(),
        totals.faults
    );
    for (what, times) in &totals.counts {
        println!("{times:>8} x {what}");
    }
    Some(totals.faults == 0)
}

#[derive(Default)]
struct Totals {
    inputs: u64,
    faults: u64,
    counts: BTreeMap<String, u64>,
}

/// Watches a worker that goes on from that seed; gives the seed for the next.
fn watch(kind: &dyn Kind, worker: Process, first: u64, end: Instant, totals: &mut Totals) -> u64 {
    let mut seed = first;
    let (mut shrinking, mut excused) = (false, false);
    let mut told = (Instant::now(), worker.worked());
    loop {
        let patience = kind.patience() * if shrinking { SHRINKING } else { 1 };
        let hangs = match worker.lines.recv_timeout(LOOK) {
            Ok(line) => {
                told = (Instant::now(), worker.worked());
                if let Some(next) = line.strip_prefix("seed ") {
                    seed = next.parse().unwrap_or(seed);
                    totals.inputs += 1;
                    (shrinking, excused) = (false, false);
                } else if let Some(fault) = line.strip_prefix("fault ") {
                    println!("{fault}");
                    totals.faults += 1;
                    shrinking = true;
                } else if let Some(what) = line.strip_prefix("count ") {
                    *totals.counts.entry(what.to_owned()).or_default() += 1;
                } else if line == "may run for ever" {
                    excused = true;
                }
                if Instant::now() < end {
                    continue;
                }
                None
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let computed = worker.worked().saturating_sub(told.1);
                if computed < patience && told.0.elapsed() < patience * 10 {
                    continue;
                }
                Some(true)
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => Some(false),
        };
        let said = worker.stop();
        match hangs {
            None => {}
            Some(true) if excused => {
                *totals.counts.entry("runs on".to_owned()).or_default() += 1;
            }
            Some(hangs) => {
                totals.faults += u64::from(!shrinking);
                let message = if hangs {
                    "hangs".to_owned()
                } else {
                    format!("dies: {said}")
                };
                println!("seed {seed}: the process {message}");
                kind.bury(seed, &message);
            }
        }
        return seed + 1;
    }
}

/// Another process of this program.
pub struct Process {
    child: std::process::Child,
    lines: mpsc::Receiver<String>,
    last_words: Arc<Mutex<VecDeque<String>>>,
}

impl Process {
    /// Starts one with more in its environment, and no more memory than `room` bytes.
    pub fn start(environment: &[(&'static str, String)], room: Option<u64>) -> Self {
        let program = env::current_exe().expect("the program knows where it is");
        let mut command = match room {
            Some(bytes) => {
                let mut command = Command::new("sh");
                command.args(["-c", "ulimit -c 0 && ulimit -v \"$1\" && exec \"$0\""]);
                command.arg(program).arg((bytes / 1024).to_string());
                command
            }
            None => Command::new(program),
        };
        for (name, value) in environment {
            command.env(name, value);
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a worker starts");
        let output = child.stdout.take().expect("its output is piped");
        let errors = child.stderr.take().expect("its errors are piped");
        let (send, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        let last_words = Arc::new(Mutex::new(VecDeque::new()));
        let heard = Arc::clone(&last_words);
        thread::spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                let mut last = heard.lock().unwrap_or_else(PoisonError::into_inner);
                if last.len() == LAST_WORDS {
                    last.pop_front();
                }
                last.push_back(line);
            }
        });
        Self {
            child,
            lines,
            last_words,
        }
    }

    /// Processor time it has used, where the system tells.
    pub fn worked(&self) -> Duration {
        worked(&self.child.id().to_string())
    }

    /// How it ended by itself, and what it said last; none when it worked longer than that.
    pub fn wait(mut self, patience: Duration) -> Option<(ExitStatus, String)> {
        let start = Instant::now();
        let step = Duration::from_millis(5);
        while self.worked() < patience && start.elapsed() < patience * 10 {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some((status, self.said()));
            }
            // A process whose output nobody reads would wait for ever.
            while self.lines.try_recv().is_ok() {}
            thread::sleep(step);
        }
        self.stop();
        None
    }

    /// Ends it; gives how it ended and what it said last.
    fn stop(mut self) -> String {
        // It may have ended by itself, which is then how.
        thread::sleep(Duration::from_millis(20));
        let ended = self.child.try_wait().ok().flatten();
        let _ = self.child.kill();
        let status = self.child.wait().ok();
        let said = self.said();
        match ended.or(status) {
            Some(status) if said.is_empty() => status.to_string(),
            Some(status) => format!("{status}, {said}"),
            None => said,
        }
    }

    fn said(&self) -> String {
        let last = self.last_words.lock();
        let last = last.unwrap_or_else(PoisonError::into_inner);
        let last: Vec<&str> = last.iter().map(String::as_str).collect();
        last.join(" / ")
    }
}

/// Processor time of a process, where the system tells: its number, or `self`.
pub fn worked(process: &str) -> Duration {
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

/// A line for the one who watches; without one there is nothing left to do.
pub fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    written.expect("somebody watches");
}

/// The same, when this is a worker.
pub fn note(line: &str) {
    if env::var_os("XLA_AOT_FUZZ_WORKER").is_some() {
        tell(line);
    }
}

/// The folder that what is found is written to.
pub fn folder() -> PathBuf {
    env::var_os("XLA_AOT_FUZZ_OUT").map_or_else(|| PathBuf::from("target/fuzz"), PathBuf::from)
}

/// Writes a file to the output folder; gives where it is.
pub fn save(name: &str, content: &[u8]) -> PathBuf {
    let folder = folder();
    let path = folder.join(name);
    let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&path, content));
    if let Err(error) = written {
        println!("{}: {error}", path.display());
    }
    path
}
