//! What people and scripts read: diagnostics on standard error, results on standard output.

use std::io::IsTerminal;
use std::io::Write;

use serde_json::json;

use crate::base::Diagnostic;
use crate::base::Location;
use crate::base::Severity;
use crate::cli::args::Global;
use crate::cli::args::When;
use crate::cli::exit::Failure;
use crate::cli::exit::Outcome;
use crate::cli::files;

/// How to tell things.
#[derive(Clone, Copy, Debug)]
pub struct Reporter {
    /// Colour on standard error.
    pub color: bool,
    /// One JSON object a line.
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
            to_stderr(&format!("{message}\n"));
        }
    }

    /// Why a verb failed.
    pub fn failure(&self, failure: &Failure) {
        match failure {
            Failure::Diagnostic(file, diagnostic) => self.diagnostic(file.as_deref(), diagnostic),
            Failure::Findings(file, findings) => {
                for finding in findings {
                    self.diagnostic(Some(file), finding);
                }
            }
            Failure::Usage(message) => {
                self.plain(message);
                if !self.json {
                    to_stderr("\nFor more information, try '--help'.\n");
                }
            }
            Failure::File(message) => self.plain(message),
            Failure::Told(_) | Failure::Pipe => {}
        }
    }

    fn plain(&self, message: &str) {
        if self.json {
            to_stderr(&format!(
                "{}\n",
                json!({"severity": "error", "message": message})
            ));
        } else {
            to_stderr(&format!(
                "{} {message}\n",
                self.paint("error:", Severity::Error)
            ));
        }
    }

    /// One diagnostic about a file.
    pub fn diagnostic(&self, file: Option<&str>, diagnostic: &Diagnostic) {
        if self.json {
            to_stderr(&format!("{}\n", as_json(file, diagnostic)));
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

fn as_json(file: Option<&str>, diagnostic: &Diagnostic) -> serde_json::Value {
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
        "severity": diagnostic.severity.word(),
        "message": diagnostic.message,
        "file": file,
        "location": location,
        "notes": diagnostic.notes,
        "help": diagnostic.help,
    })
}

/// Writes to standard error; when that is gone, to nobody.
pub fn to_stderr(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Writes text that was asked for to standard output.
pub fn to_stdout(text: &str) -> Outcome {
    files::write_standard(text.as_bytes(), false)
}
