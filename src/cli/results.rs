//! The verbs that compute: `run`, `eval`, `bench`.

use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use serde_json::json;

use crate::base::Result;
use crate::cli::Context;
#[cfg(feature = "cpu")]
use crate::cli::args::Bench;
#[cfg(feature = "reference")]
use crate::cli::args::Eval;
#[cfg(feature = "cpu")]
use crate::cli::args::Run;
use crate::cli::args::ToleranceArgs;
use crate::cli::exit;
use crate::cli::exit::Failure;
use crate::cli::exit::Outcome;
use crate::cli::exit::about;
use crate::cli::files;
use crate::cli::report;
use crate::driver::Arrays;
use crate::driver::Tolerance;
use crate::driver::arrays;
use crate::driver::arrays::ArrayFile;
use crate::driver::arrays::ArrayFormat;
use crate::driver::arrays::Verdict;

/// Fewest timed runs of a benchmark that nobody gave a number for.
const FEWEST_RUNS: usize = 5;

/// Reads array files.
pub fn read_arrays(paths: &[PathBuf]) -> Outcome<Vec<ArrayFile>> {
    let files = paths.iter().map(|path| {
        Ok(ArrayFile {
            name: files::shown(path),
            bytes: files::read(path)?,
        })
    });
    files.collect()
}

/// The tolerance the flags say.
pub fn tolerance(args: &ToleranceArgs) -> Tolerance {
    Tolerance {
        rtol: args.rtol,
        atol: args.atol,
        ulp: args.ulp,
        ..Tolerance::EXACT
    }
}

/// Writes results where the flag says.
fn write_results(results: &Arrays, output: Option<&Path>, context: &Context) -> Outcome {
    let Some(path) = output else {
        return Ok(());
    };
    let format = if path.extension().is_some_and(|e| e == "npy") {
        ArrayFormat::Npy
    } else {
        ArrayFormat::Npz
    };
    let bytes = arrays::write(results, format)?;
    files::write(path, &bytes, true, &context.unfinished)
}

/// Tells how results compare; a mismatch ends the program with its own code.
pub fn tell_verdicts(verdicts: &[Verdict], context: &Context) -> Outcome {
    let passed = verdicts.iter().all(|v| v.passed);
    if context.reporter.json {
        let rows = verdicts.iter();
        let rows = rows.map(|v| json!({"name": v.name, "passed": v.passed, "text": v.text}));
        let rows: Vec<_> = rows.collect();
        report::to_stdout(&format!("{}\n", json!({"passed": passed, "results": rows})))?;
    } else {
        for verdict in verdicts.iter().filter(|v| !v.passed) {
            report::to_stderr(&format!("mismatch: {}: {}\n", verdict.name, verdict.text));
        }
        for verdict in verdicts.iter().filter(|v| v.passed) {
            let message = format!("{}: {}", verdict.name, verdict.text);
            context.reporter.log(1, &message);
        }
    }
    if passed {
        Ok(())
    } else {
        Err(Failure::Told(exit::MISMATCH))
    }
}

/// One line for each result, when nothing else was asked for.
fn tell_results(results: &Arrays, context: &Context) -> Outcome {
    if context.reporter.quiet {
        return Ok(());
    }
    let lines = results.iter().enumerate();
    let lines: String = lines
        .map(|(i, value)| format!("out{i}: {}\n", arrays::preview(value)))
        .collect();
    report::to_stdout(&lines)
}

/// What follows a computation: writing, comparing, or showing.
fn conclude(
    results: &Arrays,
    output: Option<&Path>,
    expected: Option<Result<Arrays>>,
    tolerance: &Tolerance,
    context: &Context,
) -> Outcome {
    write_results(results, output, context)?;
    match expected {
        Some(expected) => {
            let verdicts = arrays::judge(results, &expected?, tolerance)?;
            tell_verdicts(&verdicts, context)
        }
        None if output.is_none() => tell_results(results, context),
        None => Ok(()),
    }
}

/// `xla-aot run`
#[cfg(feature = "cpu")]
pub fn run(args: &Run, context: &Context) -> Outcome {
    use crate::driver::run::Session;
    let name = files::shown(&args.bundle);
    let bundle = files::read(&args.bundle)?;
    let session = Session::open(&bundle, args.threads).map_err(about(&name))?;
    drop(bundle);
    let inputs = session.read_inputs(&read_arrays(&args.input)?)?;
    let expected = match &args.expect {
        Some(path) => Some(read_arrays(std::slice::from_ref(path))?),
        None => None,
    };
    let results = session.run_leaves(&inputs).map_err(about(&name))?;
    let expected = expected.map(|files| session.read_expected(&files[0]));
    let output = args.output.as_deref();
    conclude(
        &results,
        output,
        expected,
        &tolerance(&args.tolerance),
        context,
    )
}

/// `xla-aot eval`
#[cfg(feature = "reference")]
pub fn eval(args: &Eval, context: &Context) -> Outcome {
    use crate::driver::evaluate::Evaluation;
    let name = files::shown(&args.program);
    let program = files::read(&args.program)?;
    let format = args.input_format.as_deref();
    let evaluation = Evaluation::open(&program, format).map_err(about(&name))?;
    let results = evaluation
        .run(&read_arrays(&args.input)?)
        .map_err(about(&name))?;
    let expected = match &args.expect {
        Some(path) => {
            let files = read_arrays(std::slice::from_ref(path))?;
            Some(evaluation.read_expected(&files[0]))
        }
        None => None,
    };
    let output = args.output.as_deref();
    conclude(
        &results,
        output,
        expected,
        &tolerance(&args.tolerance),
        context,
    )
}

/// `xla-aot bench`
#[cfg(feature = "cpu")]
pub fn bench(args: &Bench, context: &Context) -> Outcome {
    use crate::driver::run::Session;
    let name = files::shown(&args.bundle);
    let bundle = files::read(&args.bundle)?;
    let loading = Instant::now();
    let session = Session::open(&bundle, args.threads).map_err(about(&name))?;
    let load_time = loading.elapsed();
    drop(bundle);
    let mut bound = session.bind(&read_arrays(&args.input)?)?;
    for _ in 0..args.warm_up.max(1) {
        bound.execute().map_err(about(&name))?;
    }
    let budget = Duration::try_from_secs_f64(args.duration)
        .map_err(|e| Failure::Usage(format!("--duration {}: {e}", args.duration)))?;
    let begun = Instant::now();
    let mut times = Vec::new();
    loop {
        let enough = match args.iterations {
            Some(count) => times.len() >= count.max(1),
            None => times.len() >= FEWEST_RUNS && begun.elapsed() >= budget,
        };
        if enough {
            break;
        }
        let start = Instant::now();
        bound.execute().map_err(about(&name))?;
        times.push(start.elapsed().as_secs_f64());
    }
    tell_times(times, session.threads(), load_time, context)
}

#[cfg(feature = "cpu")]
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
#[cfg(feature = "cpu")]
fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s => format!("{:.2} us", s * 1e6),
    }
}
