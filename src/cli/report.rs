//! What people and scripts read: diagnostics on standard error, results on standard output.

use std::io::IsTerminal;
use std::io::Write;

use serde_json::json;

use crate::base::Diagnostic;
use crate::base::Location;
use crate::base::Severity;
use crate::cli::args::Global;
use crate::cli::args::When;
use crate::cli::exit;
use crate::cli::exit::Failure;
use crate::cli::exit::Outcome;
use crate::cli::files;

/// The number of the form of JSON results; it goes up when a key changes its meaning or goes away.
pub const SCHEMA: u32 = 1;

/// How to tell things.
#[derive(Clone, Copy, Debug)]
pub struct Reporter {
    /// Colour on standard error.
    pub color: bool,
    /// Results as one JSON object, messages as one object a line.
    pub json: bool,
    /// Nothing but errors.
    pub quiet: bool,
    /// How much more.
    pub verbose: u8,
}

impl Reporter {
    /// By the flags, the terminal and the environment.
    pub fn new(global: &Global) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty() && v != "0");
        let color = match global.color {
            When::Always => true,
            When::Never => false,
            When::Auto if set("NO_COLOR") => false,
            When::Auto => set("CLICOLOR_FORCE") || std::io::stderr().is_terminal(),
        };
        Self {
            color: color && !global.json,
            json: global.json,
            quiet: global.quiet,
            verbose: global.verbose,
        }
    }

    /// One line for those who asked to hear more.
    pub fn log(&self, level: u8, message: &str) {
        if self.verbose >= level {
            self.line("log", message);
        }
    }

    /// Something the reader may want to know.
    #[cfg(feature = "reference")]
    pub fn warn(&self, message: &str) {
        if self.quiet {
            return;
        }
        if self.json {
            json_line("warning", &json!({"code": null, "message": message}));
        } else {
            let word = self.paint("warning:", Severity::Warning);
            to_stderr(&format!("{word} {message}\n"));
        }
    }

    fn line(&self, kind: &str, message: &str) {
        if self.json {
            json_line(kind, &json!({"message": message}));
        } else {
            to_stderr(&format!("{message}\n"));
        }
    }

    /// Why a verb failed.
    pub fn failure(&self, failure: &Failure) {
        let exit = failure.code();
        match failure {
            Failure::Diagnostic(file, diagnostic) => {
                self.diagnostic(file.as_deref(), diagnostic, exit);
            }
            Failure::Option(diagnostic) => {
                self.diagnostic(None, diagnostic, exit);
                self.point_to_help();
            }
            Failure::Findings(file, findings) => {
                for finding in findings {
                    self.diagnostic(Some(file), finding, exit);
                }
            }
            Failure::Usage(message) => {
                self.plain(message, exit);
                self.point_to_help();
            }
            Failure::File(message) => self.plain(message, exit),
            Failure::Told(_) | Failure::Pipe => {}
        }
    }

    fn point_to_help(&self) {
        if !self.json {
            to_stderr("\nFor more information, try '--help'.\n");
        }
    }

    /// An error that has no code of its own.
    pub fn plain(&self, message: &str, exit: u8) {
        if self.json {
            json_line("error", &plain_json(message, exit));
        } else {
            to_stderr(&format!(
                "{} {message}\n",
                self.paint("error:", Severity::Error)
            ));
        }
    }

    /// A fault of this program: what a panic said, when there was one, and whom to tell.
    pub fn fault(&self, panic: Option<&str>, exit: u8) {
        const REQUEST: &str = concat!(
            "This is a fault of xla-aot ",
            env!("CARGO_PKG_VERSION"),
            ", not of your program. Please report it, with the command line and the input file."
        );
        match panic {
            Some(text) if self.json => json_line("error", &plain_json(text, exit)),
            Some(text) => to_stderr(&format!("internal error: {text}\n")),
            None => {}
        }
        self.line("log", REQUEST);
    }

    /// One diagnostic about a file.
    fn diagnostic(&self, file: Option<&str>, diagnostic: &Diagnostic, exit: u8) {
        if self.json {
            json_line("error", &as_json(file, diagnostic, exit));
            return;
        }
        let text = diagnostic.to_string();
        let (head, rest) = text.split_once('\n').unwrap_or((&text, ""));
        let word = head.split_once(": ").map_or(head, |(word, _)| word);
        let head = head.replacen(word, &self.paint(word, diagnostic.severity), 1);
        let place = match (file, &diagnostic.location) {
            (Some(file), Some(Location::Text { line, column, .. })) => {
                format!("{file}:{line}:{column}: ")
            }
            (Some(file), _) => format!("{file}: "),
            (None, _) => String::new(),
        };
        let separator = if rest.is_empty() { "" } else { "\n" };
        to_stderr(&format!("{place}{head}{separator}{rest}\n"));
    }

    fn paint(&self, word: &str, severity: Severity) -> String {
        if !self.color {
            return word.to_owned();
        }
        let color = match severity {
            Severity::Warning => 33,
            Severity::Error | Severity::Unsupported => 31,
            Severity::Internal => 35,
        };
        format!("\u{1b}[1;{color}m{word}\u{1b}[0m")
    }
}

/// An error without a code, as JSON.
fn plain_json(message: &str, exit: u8) -> serde_json::Value {
    json!({
        "code": null,
        "exit": exit,
        "severity": Severity::Error.word(),
        "message": message,
        "file": null,
        "location": null,
        "notes": [],
        "help": null,
    })
}

fn as_json(file: Option<&str>, diagnostic: &Diagnostic, exit: u8) -> serde_json::Value {
    let location = diagnostic.location.as_ref().map(|location| match location {
        Location::Text { line, column, .. } => json!({"line": line, "column": column}),
        Location::Instruction { computation, text } => {
            json!({"computation": computation, "instruction": text})
        }
        Location::Byte(offset) => json!({"byte": offset}),
        Location::Path(path) => json!({"path": path}),
    });
    json!({
        "code": diagnostic.code.to_string(),
        "exit": exit,
        "severity": diagnostic.severity.word(),
        "message": diagnostic.message,
        "file": file,
        "location": location,
        "notes": diagnostic.notes,
        "help": diagnostic.help,
    })
}

/// A usage error that was found before the flags were known.
pub fn usage_as_json(message: &str) {
    json_line("error", &plain_json(message, exit::USAGE));
}

/// A line of JSON on standard error: an object whose only key says what it is.
pub fn json_line(kind: &str, content: &serde_json::Value) {
    to_stderr(&format!("{}\n", json!({kind: content})));
}

/// Writes to standard error; when that is gone, to nobody.
pub fn to_stderr(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// A result as JSON, on standard output.
pub fn json_result(content: &serde_json::Value) -> Outcome {
    to_stdout(&format!("{content}\n"))
}

/// Writes text that was asked for to standard output.
pub fn to_stdout(text: &str) -> Outcome {
    files::write_standard(text.as_bytes(), false)
}
