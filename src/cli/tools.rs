//! The verbs that look: `inspect`, `verify`, `targets`, `explain`.

use std::path::PathBuf;

use serde_json::json;

use crate::base::codes;
use crate::cli::Context;
use crate::cli::args::Explain;
use crate::cli::args::Inspect;
#[cfg(feature = "reference")]
use crate::cli::args::Translate;
use crate::cli::args::Verify;
use crate::cli::comparing;
use crate::cli::exit::Failure;
use crate::cli::exit::Outcome;
use crate::cli::exit::about;
use crate::cli::files;
use crate::cli::programs::EmitRequest;
use crate::cli::programs::write_emitted;
use crate::cli::report;
use crate::driver;
#[cfg(feature = "reference")]
use crate::driver::input::OutputForm;
use crate::driver::verify::VerifyRequest;

/// `xla-aot inspect`
pub fn inspect(args: &Inspect, context: &Context) -> Outcome {
    let name = files::shown(&args.bundle);
    let requests = EmitRequest::parse_all(&args.emit)?;
    let bundle = files::read(&args.bundle)?;
    #[cfg(feature = "reference")]
    if requests.is_empty()
        && let Some(text) =
            driver::describe::describe(&bundle, context.reporter.json).map_err(about(&name))?
    {
        return report::to_stdout(&text);
    }
    let inspection = driver::inspect::Inspection::open(&bundle).map_err(about(&name))?;
    if requests.is_empty() {
        let text = if context.reporter.json {
            inspection.json()
        } else {
            inspection.text()
        };
        return report::to_stdout(&text);
    }
    let mut written = Vec::new();
    for request in &requests {
        let parts = inspection.emit(request.kind).map_err(|e| match e.code {
            // The part was asked for on the command line; nothing is wrong with the bundle.
            codes::UNKNOWN_WORD => Failure::Option(e),
            _ => Failure::Diagnostic(Some(name.clone()), e),
        })?;
        let files = write_emitted(request, &parts, &args.bundle, &[&args.bundle], context)?;
        written.extend(files);
    }
    tell_written(&written, context)
}

/// `xla-aot translate`
#[cfg(feature = "reference")]
pub fn translate(args: &Translate, context: &Context) -> Outcome {
    let version = args.stablehlo_version.as_deref();
    let form = OutputForm::from_words(&args.to, version).map_err(Failure::Option)?;
    let options = args.what.options()?;
    files::keep_apart(&args.output, &[&args.program])?;
    let name = files::shown(&args.program);
    let program = files::read_program(&args.program)?;
    let translated = driver::input::translate(&program, &options, form);
    let (bytes, notes) = translated.map_err(about(&name))?;
    notes.iter().for_each(|note| context.reporter.warn(note));
    files::write(&args.output, &bytes, form.is_binary(), &context.unfinished)
}

/// Says which files parts went to, unless standard output has one of them.
fn tell_written(files: &[PathBuf], context: &Context) -> Outcome {
    if context.reporter.quiet || files.iter().any(|path| files::is_standard(path)) {
        return Ok(());
    }
    let names = files.iter().map(|path| path.display().to_string());
    let names: Vec<String> = names.collect();
    if context.reporter.json {
        return report::json_result(&json!({"schema": report::SCHEMA, "written": names}));
    }
    let lines = names.iter().map(|name| format!("wrote {name}\n"));
    report::to_stdout(&lines.collect::<String>())
}

/// `xla-aot verify`
pub fn verify(args: &Verify, context: &Context) -> Outcome {
    let name = files::shown(&args.bundle);
    #[cfg(feature = "loader")]
    let load = args.device.options()?;
    let bundle = files::read(&args.bundle)?;
    let expected = match &args.expect {
        Some(path) => comparing::read_arrays(std::slice::from_ref(path))?.pop(),
        None => None,
    };
    let request = VerifyRequest {
        inputs: comparing::read_arrays(&args.input)?,
        has_inputs: !args.input.is_empty(),
        expected,
        closeness: comparing::closeness(&args.tolerance),
        any_host: args.any_host,
        #[cfg(feature = "loader")]
        load,
    };
    let report = driver::verify::verify(&bundle, &request).map_err(about(&name))?;
    if !report.findings.is_empty() {
        return Err(Failure::Findings(name, report.findings));
    }
    for note in &report.notes {
        context.reporter.log(1, note);
    }
    let more = [
        ("file", json!(name)),
        ("summary", json!(report.summary)),
        ("notes", json!(report.notes)),
        ("obstacles", json!(report.obstacles)),
    ];
    let more = more.into_iter().map(|(key, value)| (key.to_owned(), value));
    comparing::tell_verdicts(&report.verdicts, more.collect(), context)?;
    if context.reporter.quiet || context.reporter.json {
        return Ok(());
    }
    let obstacles = report.obstacles.iter().map(|o| format!("  stock {o}\n"));
    let obstacles: String = obstacles.collect();
    report::to_stdout(&format!("{name}: {}\n{obstacles}", report.summary))
}

/// `xla-aot targets`
pub fn targets(context: &Context) -> Outcome {
    let rows = driver::targets::list()?;
    if context.reporter.json {
        let rows = rows.iter().map(|row| {
            json!({
                "name": row.name,
                "platform": row.platform,
                "description": row.description,
                "aliases": row.aliases,
            })
        });
        let rows: Vec<_> = rows.collect();
        return report::json_result(&json!({"schema": report::SCHEMA, "targets": rows}));
    }
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (platform, title) in [("cpu", "CPUs"), ("cuda", "NVIDIA GPUs")] {
        text.push_str(&format!("{title}:\n"));
        for row in rows.iter().filter(|row| row.platform == platform) {
            text.push_str(&format!("  {:width$}  {}\n", row.name, row.description));
            if !row.aliases.is_empty() {
                text.push_str(&format!(
                    "  {:width$}  also {}\n",
                    "",
                    row.aliases.join(", ")
                ));
            }
        }
    }
    report::to_stdout(&text)
}

/// `xla-aot explain`
pub fn explain(args: &Explain, context: &Context) -> Outcome {
    let found = match &args.code {
        None => driver::explain::all(),
        Some(code) => match driver::explain::find(code) {
            Some(one) => vec![one],
            None => {
                return Err(Failure::Usage(format!(
                    "`{code}` is not a code of a diagnostic; `explain` alone lists them"
                )));
            }
        },
    };
    if context.reporter.json {
        let rows = found.iter();
        let rows: Vec<_> = rows
            .map(|e| json!({"code": e.code, "text": e.text}))
            .collect();
        return report::json_result(&json!({"schema": report::SCHEMA, "codes": rows}));
    }
    let lines = found.iter();
    let lines: String = lines.map(|e| format!("{}: {}\n", e.code, e.text)).collect();
    report::to_stdout(&lines)
}
