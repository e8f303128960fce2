//! Array files named on the command line, and telling how results compare.

#[cfg(feature = "reference")]
use std::path::Path;
use std::path::PathBuf;

use serde_json::json;

use crate::cli::Context;
use crate::cli::args::ToleranceArgs;
use crate::cli::exit;
use crate::cli::exit::Failure;
use crate::cli::exit::Outcome;
use crate::cli::files;
use crate::cli::report;
use crate::driver::Closeness;
use crate::driver::arrays::ArrayFile;
#[cfg(feature = "reference")]
use crate::driver::arrays::Content;
use crate::driver::arrays::Verdict;

/// Reads array files.
pub fn read_arrays(paths: &[PathBuf]) -> Outcome<Vec<ArrayFile>> {
    let files = paths.iter().map(|path| {
        Ok(ArrayFile {
            name: files::shown(path),
            content: files::open_arrays(path)?,
        })
    });
    files.collect()
}

/// The files of inputs; without any the program's own, when that is a snapshot that has arguments.
#[cfg(feature = "reference")]
pub fn read_inputs(paths: &[PathBuf], path: &Path, program: &[u8]) -> Outcome<Vec<ArrayFile>> {
    if !paths.is_empty() {
        return read_arrays(paths);
    }
    let own = ArrayFile {
        name: files::shown(path),
        content: match files::is_standard(path) {
            true => Content::Bytes(program.to_vec()),
            false => files::open_arrays(path)?,
        },
    };
    // What is no file of arrays at all is a program by itself.
    Ok(match own.is_snapshot() {
        Ok(true) => vec![own],
        Ok(false) | Err(_) => Vec::new(),
    })
}

/// How close results must be, as the flags say.
pub fn closeness(args: &ToleranceArgs) -> Closeness {
    Closeness {
        rtol: args.rtol,
        atol: args.atol,
        ulp: args.ulp,
    }
}

/// Tells how results compare; a mismatch ends the program with its own code. `more` are keys of the
/// JSON form besides.
pub fn tell_verdicts(
    verdicts: &[Verdict],
    mut more: serde_json::Map<String, serde_json::Value>,
    context: &Context,
) -> Outcome {
    let passed = verdicts.iter().all(|v| v.passed);
    if context.reporter.json {
        let rows = verdicts.iter();
        let rows = rows.map(|v| json!({"name": v.name, "passed": v.passed, "text": v.text}));
        more.insert("schema".to_owned(), json!(report::SCHEMA));
        more.insert("passed".to_owned(), json!(passed));
        more.insert("results".to_owned(), rows.collect());
        report::json_result(&more.into())?;
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
