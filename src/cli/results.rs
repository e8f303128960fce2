//! The verbs that compute: `run`, `eval`.

use std::path::Path;
use std::path::PathBuf;

use serde_json::json;

use crate::base::Result;
use crate::cli::Context;
#[cfg(feature = "reference")]
use crate::cli::args::Eval;
#[cfg(feature = "loader")]
use crate::cli::args::Run;
use crate::cli::comparing::read_arrays;
#[cfg(feature = "reference")]
use crate::cli::comparing::read_inputs;
use crate::cli::comparing::tell_verdicts;
use crate::cli::comparing::tolerance;
#[cfg(feature = "loader")]
use crate::cli::counts;
use crate::cli::exit::Failure;
use crate::cli::exit::Outcome;
use crate::cli::exit::about;
use crate::cli::files;
use crate::cli::report;
use crate::driver::Arrays;
use crate::driver::Tolerance;
use crate::driver::arrays;
use crate::driver::arrays::ArrayFormat;

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

/// One line for each result.
fn tell_results(results: &Arrays, context: &Context) -> Outcome {
    if context.reporter.json {
        let rows = results.iter().enumerate().map(|(i, value)| {
            let shape = value.shape();
            json!({
                "name": format!("out{i}"),
                "type": shape.ty.to_string(),
                "dims": shape.dims.as_slice(),
                "first": arrays::first_elements(value),
            })
        });
        let rows: Vec<_> = rows.collect();
        return report::json_result(&json!({"schema": report::SCHEMA, "results": rows}));
    }
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
            tell_verdicts(&verdicts, serde_json::Map::new(), context)
        }
        None if output.is_none() || context.reporter.json => tell_results(results, context),
        None => Ok(()),
    }
}

/// Refuses an output that is one of the files read, or goes where the JSON goes.
fn keep_apart<'a>(
    output: Option<&Path>,
    read: impl Iterator<Item = &'a PathBuf>,
    context: &Context,
) -> Outcome {
    if context.reporter.json && output.is_some_and(files::is_standard) {
        let message = "--json and `--output -` both write to standard output; name a file";
        return Err(Failure::Usage(message.to_owned()));
    }
    let read: Vec<&Path> = read.map(PathBuf::as_path).collect();
    output.map_or(Ok(()), |output| files::keep_apart(output, &read))
}

/// `xla-aot run`
#[cfg(feature = "loader")]
pub fn run(args: &Run, context: &Context) -> Outcome {
    use crate::driver::run::DeviceChoice;
    use crate::driver::run::LoadOptions;
    use crate::driver::run::Session;
    let name = files::shown(&args.bundle);
    let read = args.input.iter().chain(&args.expect).chain([&args.bundle]);
    keep_apart(args.output.as_deref(), read, context)?;
    if args.stats && !matches!(args.device.device, DeviceChoice::Simulated(_)) {
        let message = "--stats: only a simulated GPU counts; name one with --device sim:TARGET";
        return Err(Failure::Usage(message.to_owned()));
    }
    let options = LoadOptions {
        counts: args.stats,
        ..args.device.options()?
    };
    let session = Session::open(&files::read(&args.bundle)?, &options).map_err(about(&name))?;
    let inputs = session.read_inputs(&read_arrays(&args.input)?)?;
    let expected = match &args.expect {
        Some(path) => Some(read_arrays(std::slice::from_ref(path))?),
        None => None,
    };
    let mut bound = session.bind_leaves(inputs)?;
    bound.execute().map_err(about(&name))?;
    let results = bound.outputs().map_err(about(&name))?;
    if args.stats {
        counts::tell(bound.counts(), context);
    }
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
    let read = args.input.iter().chain(&args.expect).chain([&args.program]);
    keep_apart(args.output.as_deref(), read, context)?;
    let options = args.what.options()?;
    let program = files::read_program(&args.program)?;
    let evaluation = Evaluation::open(&program, &options).map_err(about(&name))?;
    evaluation
        .notes()
        .iter()
        .for_each(|note| context.reporter.warn(note));
    let inputs = read_inputs(&args.input, &args.program, &program)?;
    let results = evaluation.run(&inputs).map_err(about(&name))?;
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
