//! The command line: arguments, files, progress, exit codes. The only room that reads and writes
//! files, looks at the clock and prints.

mod args;
#[cfg(feature = "loader")]
mod bench;
#[cfg(feature = "compiler")]
mod bisect;
mod comparing;
#[cfg(feature = "loader")]
mod counts;
#[cfg(any(feature = "loader", feature = "reference"))]
mod devices;
mod exit;
mod files;
mod programs;
#[cfg(feature = "compiler")]
mod progress;
mod report;
#[cfg(any(feature = "loader", feature = "reference"))]
mod results;
mod signals;
mod tools;

use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::OnceLock;

use clap::Parser;

use crate::cli::args::Cli;
use crate::cli::args::Verb;
use crate::cli::exit::Outcome;
use crate::cli::files::Unfinished;
use crate::cli::report::Reporter;

/// What verbs need of the process.
struct Context {
    reporter: Reporter,
    unfinished: Unfinished,
}

/// Runs the program on the process's arguments.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let context = Context {
        reporter: Reporter::new(&cli.global),
        unfinished: Unfinished::default(),
    };
    signals::watch(context.unfinished.clone());
    // The first panic is told once, at the end, not in the middle of a progress line.
    let panics: Arc<OnceLock<String>> = Arc::default();
    let first = Arc::clone(&panics);
    std::panic::set_hook(Box::new(move |info| {
        first.get_or_init(|| info.to_string());
    }));
    let run = AssertUnwindSafe(|| dispatch(cli.verb, &context));
    match catch_unwind(run) {
        Ok(Ok(())) => ExitCode::from(exit::OK),
        Ok(Err(failure)) => {
            let code = failure.code();
            context.reporter.failure(&failure);
            if code == exit::INTERNAL {
                let panic = panics.get().map(String::as_str);
                context.reporter.fault(panic, code);
            }
            ExitCode::from(code)
        }
        Err(_) => {
            let panic = panics.get().map(String::as_str);
            context.reporter.fault(panic, exit::INTERNAL);
            ExitCode::from(exit::INTERNAL)
        }
    }
}

/// Help and version are printed to standard output, everything else is a usage error.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Standard output may be gone; the exit code tells all the same.
        let _ = error.print();
        return ExitCode::from(exit::OK);
    }
    let mut words = std::env::args_os().skip(1).take_while(|word| word != "--");
    if words.any(|word| word == "--json") {
        let text = error.render().to_string();
        let text = text.trim_end();
        report::usage_as_json(text.strip_prefix("error: ").unwrap_or(text));
    } else {
        // Standard error may be gone as well.
        let _ = error.print();
    }
    ExitCode::from(exit::USAGE)
}

fn dispatch(verb: Verb, context: &Context) -> Outcome {
    match verb {
        #[cfg(feature = "compiler")]
        Verb::Compile(args) => programs::compile(&args, context),
        #[cfg(feature = "loader")]
        Verb::Run(args) => results::run(&args, context),
        #[cfg(feature = "reference")]
        Verb::Eval(args) => results::eval(&args, context),
        #[cfg(feature = "reference")]
        Verb::Translate(args) => tools::translate(&args, context),
        Verb::Inspect(args) => tools::inspect(&args, context),
        Verb::Verify(args) => tools::verify(&args, context),
        #[cfg(feature = "loader")]
        Verb::Bench(args) => bench::bench(&args, context),
        #[cfg(all(feature = "compiler", feature = "loader"))]
        Verb::Bisect(args) => bisect::bisect(&args, context),
        #[cfg(feature = "compiler")]
        Verb::Passes => bisect::passes(context),
        Verb::Targets => tools::targets(context),
        Verb::Explain(args) => tools::explain(&args, context),
    }
}
