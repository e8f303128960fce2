//! The verbs that compute: `run`, `eval`.

use std::path::Path;
use std::path::PathBuf;

use serde_json::json;

use crate::cli::Context;
#[cfg(feature = "reference")]
use crate::cli::args::Eval;
#[cfg(feature = "loader")]
use crate::cli::args::Run;
use crate::cli::comparing::closeness;
#[cfg(feature = "loader")]
use crate::cli::comparing::read_arrays;
#[cfg(feature = "reference")]
use crate::cli::comparing::read_inputs;
use crate::cli::comparing::tell_verdicts;
#[cfg(feature = "loader")]
use crate::cli::counts;
use crate::cli::devices;
use crate::cli::exit::Failure;
use crate::cli::exit::Outcome;
use crate::cli::exit::about;
use crate::cli::files;
use crate::cli::report;
use crate::driver::Arrays;
use crate::driver::Closeness;
use crate::driver::arrays;
use crate::driver::arrays::ArrayFormat;
use crate::driver::devices::Topology;

/// Writes the results of each device where the flag says.
fn write_results(results: &[Arrays], outputs: &[PathBuf], context: &Context) -> Outcome {
    for (results, path) in results.iter().zip(outputs) {
        let format = if path.extension().is_some_and(|e| e == "npy") {
            ArrayFormat::Npy
        } else {
            ArrayFormat::Npz
        };
        let bytes = arrays::write(results, format)?;
        files::write(path, &bytes, true, &context.unfinished)?;
    }
    Ok(())
}

/// One line for each result.
fn tell_results(results: &[Arrays], context: &Context) -> Outcome {
    let is_one = results.len() == 1;
    let each = results.iter().enumerate();
    let each = each.flat_map(|(device, values)| {
        let values = values.iter().enumerate();
        values.map(move |(i, value)| (device, i, value))
    });
    if context.reporter.json {
        let rows = each.map(|(device, i, value)| {
            let shape = value.shape();
            let mut row = json!({
                "name": format!("out{i}"),
                "type": shape.ty.to_string(),
                "dims": shape.dims.as_slice(),
                "first": arrays::first_elements(value),
            });
            if !is_one {
                row["device"] = json!(device);
            }
            row
        });
        let rows: Vec<_> = rows.collect();
        return report::json_result(&json!({"schema": report::SCHEMA, "results": rows}));
    }
    if context.reporter.quiet {
        return Ok(());
    }
    let lines = each.map(|(device, i, value)| {
        let preview = arrays::preview(value);
        match is_one {
            true => format!("out{i}: {preview}\n"),
            false => format!("device {device}: out{i}: {preview}\n"),
        }
    });
    report::to_stdout(&lines.collect::<String>())
}

/// What follows a computation: writing, comparing, or showing.
fn conclude(
    results: &[Arrays],
    outputs: &[PathBuf],
    expected: Option<&[Arrays]>,
    closeness: &Closeness,
    context: &Context,
) -> Outcome {
    write_results(results, outputs, context)?;
    match expected {
        Some(expected) => {
            let verdicts = arrays::judge_each(results, expected, closeness, &[])?;
            tell_verdicts(&verdicts, serde_json::Map::new(), context)
        }
        None if outputs.is_empty() || context.reporter.json => tell_results(results, context),
        None => Ok(()),
    }
}

/// Where the results of each device go: nowhere, when nothing is said. Refuses a file that is read,
/// and a place where the JSON goes or several files would.
fn outputs<'a>(
    output: Option<&Path>,
    topology: Topology,
    read: impl Iterator<Item = &'a PathBuf>,
    context: &Context,
) -> Outcome<Vec<PathBuf>> {
    let Some(output) = output else {
        return Ok(Vec::new());
    };
    if files::is_standard(output) && topology != Topology::ONE {
        let message = format!("--output -: {topology} have a file each; name a file");
        return Err(Failure::Usage(message));
    }
    let read: Vec<&Path> = read.map(PathBuf::as_path).collect();
    let paths = 0..topology.devices();
    let paths = paths.map(|device| devices::output_of(topology, output, device));
    let paths: Vec<PathBuf> = paths.collect();
    for path in &paths {
        files::keep_apart(path, &read)?;
    }
    if context.reporter.json && files::is_standard(output) {
        let message = "--json and `--output -` both write to standard output; name a file";
        return Err(Failure::Usage(message.to_owned()));
    }
    Ok(paths)
}

/// `xla-aot run`
#[cfg(feature = "loader")]
pub fn run(args: &Run, context: &Context) -> Outcome {
    use crate::driver::run::DeviceChoice;
    use crate::driver::run::LoadOptions;
    use crate::driver::run::Session;
    let name = files::shown(&args.bundle);
    // What is wrong whatever the bundle says is told before it is read.
    let own = args.devices.device_input.iter().chain(&args.device_expect);
    let read = args.input.iter().chain(&args.expect).chain([&args.bundle]);
    let read: Vec<&PathBuf> = read.chain(own.map(|file| &file.path)).collect();
    outputs(
        args.output.as_deref(),
        Topology::ONE,
        read.iter().copied(),
        context,
    )?;
    if args.stats && !matches!(args.device.device, DeviceChoice::Simulated(_)) {
        let message = "--stats: only a simulated GPU counts; name one with --device sim:TARGET";
        return Err(Failure::Usage(message.to_owned()));
    }
    let options = LoadOptions {
        counts: args.stats,
        ..args.device.options()?
    };
    let session = Session::open(&files::read(&args.bundle)?, &options).map_err(about(&name))?;
    let topology = session.topology();
    session
        .check_devices(args.devices.replicas, args.devices.partitions)
        .map_err(about(&name))?;
    let paths = outputs(args.output.as_deref(), topology, read.into_iter(), context)?;
    let own = ("--device-input", args.devices.device_input.as_slice());
    let common = || read_arrays(&args.input);
    let inputs = devices::read(topology, common, own, |files, partition| {
        session.read_inputs(files, partition)
    })?;
    let expected = args.expect.as_ref();
    let expected = devices::read_expected(topology, expected, &args.device_expect, |file| {
        session.read_expected(file)
    })?;
    let mut bound = session.bind_each(inputs)?;
    bound.execute().map_err(about(&name))?;
    let results = bound.outputs().map_err(about(&name))?;
    if args.stats {
        counts::tell(&bound.counts(), context);
    }
    conclude(
        &results,
        &paths,
        expected.as_deref(),
        &closeness(&args.tolerance),
        context,
    )
}

/// `xla-aot eval`
#[cfg(feature = "reference")]
pub fn eval(args: &Eval, context: &Context) -> Outcome {
    use crate::driver::evaluate::Evaluation;
    let name = files::shown(&args.program);
    let own = args.devices.device_input.iter().chain(&args.device_expect);
    let read = args.input.iter().chain(&args.expect).chain([&args.program]);
    let read: Vec<&PathBuf> = read.chain(own.map(|file| &file.path)).collect();
    outputs(
        args.output.as_deref(),
        Topology::ONE,
        read.iter().copied(),
        context,
    )?;
    let options = args.what.options()?;
    let program = files::read_program(&args.program)?;
    let mut evaluation = Evaluation::open(&program, &options).map_err(about(&name))?;
    evaluation
        .notes()
        .iter()
        .for_each(|note| context.reporter.warn(note));
    evaluation
        .choose(args.devices.replicas, args.devices.partitions)
        .map_err(about(&name))?;
    let topology = evaluation.topology();
    let paths = outputs(args.output.as_deref(), topology, read.into_iter(), context)?;
    let common = || read_inputs(&args.input, &args.program, &program);
    let own = ("--device-input", args.devices.device_input.as_slice());
    let inputs = devices::read(topology, common, own, |files, partition| {
        evaluation.read_inputs(files, partition)
    })?;
    let expected = args.expect.as_ref();
    let expected = devices::read_expected(topology, expected, &args.device_expect, |file| {
        evaluation.read_expected(file)
    })?;
    let results = evaluation.run_each(inputs).map_err(about(&name))?;
    conclude(
        &results,
        &paths,
        expected.as_deref(),
        &closeness(&args.tolerance),
        context,
    )
}
