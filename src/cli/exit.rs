//! How a run of the program ends: exit codes and the reasons for them.

use crate::base::Blame;
use crate::base::Diagnostic;

/// Done.
pub const OK: u8 = 0;
/// An input is wrong, or the program cannot be compiled.
pub const INPUT: u8 = 1;
/// The command line is wrong.
pub const USAGE: u8 = 2;
/// A bundle is damaged or does not fit this host.
pub const REJECTED: u8 = 3;
/// Results differ from the expected ones.
pub const MISMATCH: u8 = 4;
/// This program is at fault.
pub const INTERNAL: u8 = 70;
/// The reader of our output has gone: 128 + SIGPIPE.
pub const PIPE: u8 = 141;

/// Why a verb did not end well.
#[derive(Debug)]
pub enum Failure {
    /// Something is wrong with an input; the name of the file it is about, when one is.
    Diagnostic(Option<String>, Box<Diagnostic>),
    /// Several findings about one file.
    Findings(String, Vec<Diagnostic>),
    /// The command line asks for something that makes no sense.
    Usage(String),
    /// A word on the command line is not known or contradicts another.
    Option(Box<Diagnostic>),
    /// A file cannot be read or written.
    File(String),
    /// All has been told; only the code is left.
    Told(u8),
    /// The reader of standard output has gone.
    Pipe,
}

/// The result of a verb.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Diagnostic(_, diagnostic) => code_of(diagnostic),
            Self::Findings(_, findings) => findings.iter().map(code_of).max().unwrap_or(OK),
            Self::Usage(_) => USAGE,
            Self::Option(_) => USAGE,
            Self::File(_) => INPUT,
            Self::Told(code) => *code,
            Self::Pipe => PIPE,
        }
    }
}

impl From<Box<Diagnostic>> for Failure {
    fn from(diagnostic: Box<Diagnostic>) -> Self {
        Self::Diagnostic(None, diagnostic)
    }
}

/// Says which file a diagnostic is about.
pub fn about(file: &str) -> impl FnOnce(Box<Diagnostic>) -> Failure + use<'_> {
    |diagnostic| Failure::Diagnostic(Some(file.to_owned()), diagnostic)
}

fn code_of(diagnostic: &Diagnostic) -> u8 {
    match diagnostic.blame() {
        Blame::Input => INPUT,
        Blame::Bundle => REJECTED,
        Blame::Results => MISMATCH,
        Blame::Program => INTERNAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::codes;

    #[test]
    fn codes_follow_the_diagnostic() {
        let code = |d: Box<Diagnostic>| Failure::from(d).code();
        assert_eq!(code(Diagnostic::error(codes::TEXT_SYNTAX, "")), INPUT);
        assert_eq!(
            code(Diagnostic::unsupported(codes::EMIT_UNSUPPORTED, "")),
            INPUT
        );
        assert_eq!(code(Diagnostic::error(codes::BUNDLE_CHECK, "")), REJECTED);
        assert_eq!(code(Diagnostic::unsupported(codes::LOAD, "")), REJECTED);
        assert_eq!(
            code(Diagnostic::error(codes::RESULT_MISMATCH, "")),
            MISMATCH
        );
        assert_eq!(code(Diagnostic::internal(codes::LLVM, "")), INTERNAL);
    }
}
