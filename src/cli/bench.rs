//! The verb that times: `bench`.

use std::collections::BTreeMap;
use std::time::Duration;
use std::time::Instant;

use serde_json::json;

use crate::cli::Context;
use crate::cli::args::Bench;
use crate::cli::comparing::read_arrays;
use crate::cli::devices;
use crate::cli::exit::Failure;
use crate::cli::exit::Outcome;
use crate::cli::exit::about;
use crate::cli::files;
use crate::cli::report;
use crate::driver::run::Session;
use crate::driver::run::Watch;

/// Fewest timed runs of a benchmark that nobody gave a number for.
const FEWEST_RUNS: usize = 5;

/// Most runs a profile is taken from.
const PROFILED_RUNS: usize = 20;

/// Time and calls of each kernel and thunk.
#[derive(Default)]
struct Profile {
    last: Option<Instant>,
    runs: u32,
    entries: BTreeMap<String, (Duration, u64)>,
}

impl Watch for Profile {
    fn done(&mut self, name: &str) {
        let now = Instant::now();
        let time = self
            .last
            .replace(now)
            .map_or(Duration::ZERO, |last| now - last);
        match self.entries.get_mut(name) {
            Some(entry) => *entry = (entry.0 + time, entry.1 + 1),
            None => {
                self.entries.insert(name.to_owned(), (time, 1));
            }
        }
    }
}

impl Profile {
    /// Name, seconds and calls of one run, the costliest first.
    fn rows(&self) -> Vec<(&str, f64, f64)> {
        let mut rows: Vec<_> = self.entries.iter().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.1.0));
        let runs = f64::from(self.runs.max(1));
        let rows = rows.into_iter();
        rows.map(|(name, (time, calls))| {
            (
                name.as_str(),
                time.as_secs_f64() / runs,
                *calls as f64 / runs,
            )
        })
        .collect()
    }

    /// For people.
    fn table(&self) -> String {
        let rows = self.rows();
        let total: f64 = rows.iter().map(|row| row.1).sum();
        let lines = rows.into_iter().map(|(name, each, calls)| {
            let share = 100.0 * each / total.max(1e-12);
            let each = each * 1e3;
            format!("{each:>10.4} ms {share:>5.1}% {calls:>6.0} x  {name}\n")
        });
        lines.collect()
    }

    /// For programs.
    fn json(&self) -> serde_json::Value {
        let rows = self.rows().into_iter();
        let rows = rows.map(|(name, each, calls)| json!({"name": name, "s": each, "calls": calls}));
        json!({"runs": self.runs, "steps": rows.collect::<Vec<_>>()})
    }
}

/// `xla-aot bench`
pub fn bench(args: &Bench, context: &Context) -> Outcome {
    let name = files::shown(&args.bundle);
    let options = args.device.options()?;
    let bundle = files::read(&args.bundle)?;
    let loading = Instant::now();
    let session = Session::open(&bundle, &options).map_err(about(&name))?;
    let load_time = loading.elapsed();
    drop(bundle);
    session
        .check_devices(args.devices.replicas, args.devices.partitions)
        .map_err(about(&name))?;
    let own = ("--device-input", args.devices.device_input.as_slice());
    let topology = session.topology();
    let common = || read_arrays(&args.input);
    let inputs = devices::read(topology, common, own, |files, partition| {
        session.read_inputs(files, partition)
    })?;
    let mut bound = session.bind_each(inputs)?;
    for _ in 0..args.warm_up {
        bound.execute().map_err(about(&name))?;
    }
    let budget = Duration::try_from_secs_f64(args.duration)
        .map_err(|e| Failure::Usage(format!("--duration {}: {e}", args.duration)))?;
    let begun = Instant::now();
    let mut times = Vec::new();
    loop {
        let enough = match args.iterations {
            Some(count) => times.len() >= count,
            None => times.len() >= FEWEST_RUNS && begun.elapsed() >= budget,
        };
        if enough {
            break;
        }
        let start = Instant::now();
        bound.execute().map_err(about(&name))?;
        times.push(start.elapsed().as_secs_f64());
    }
    if args.profile {
        let mut profile = Profile::default();
        for _ in 0..times.len().min(PROFILED_RUNS) {
            profile.last = Some(Instant::now());
            bound.execute_watched(&mut profile).map_err(about(&name))?;
            profile.runs += 1;
        }
        if context.reporter.json {
            report::json_line("profile", &profile.json());
        } else {
            report::to_stderr(&profile.table());
        }
    }
    tell_times(times, session.threads(), load_time, context)
}

fn tell_times(
    mut times: Vec<f64>,
    threads: usize,
    load_time: Duration,
    context: &Context,
) -> Outcome {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
    let load = load_time.as_secs_f64();
    let line = if context.reporter.json {
        let line = json!({
            "schema": report::SCHEMA,
            "median_s": at(0.5),
            "min_s": at(0.0),
            "p90_s": at(0.9),
            "iterations": times.len(),
            "threads": threads,
            "load_s": load,
        });
        format!("{line}\n")
    } else {
        format!(
            "median {}, min {}, 90% below {}; {} runs on {threads} threads; loaded in {}\n",
            duration(at(0.5)),
            duration(at(0.0)),
            duration(at(0.9)),
            times.len(),
            duration(load),
        )
    };
    report::to_stdout(&line)
}

/// A time with a unit that fits.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s => format!("{:.2} us", s * 1e6),
    }
}
