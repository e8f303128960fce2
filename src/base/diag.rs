//! Diagnostics: what went wrong, where, and what to do about it.
//!
//! Messages are lower case, without a full stop, and name what was found before what was wanted.

use std::fmt;

use crate::base::codes;
use crate::base::codes::Code;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The input is fine; the reader may want to know.
    Warning,
    /// The input is wrong.
    Error,
    /// The input is right, and this program cannot do it (yet, or for this target).
    Unsupported,
    /// This program broke a rule of its own.
    Internal,
}

impl Severity {
    /// The word that opens the printed diagnostic.
    pub fn word(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Unsupported => "not supported",
            Self::Internal => "internal error",
        }
    }
}

/// Whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// An input is wrong, or cannot be handled.
    Input,
    /// A bundle is damaged or does not fit this host.
    Bundle,
    /// Results differ from the expected ones.
    Results,
    /// This program.
    Program,
}

/// Where in the input it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A place in a text. Line and column count from one, the column in characters.
    Text {
        /// Line, from one.
        line: usize,
        /// Column in characters, from one.
        column: usize,
        /// The whole line.
        excerpt: String,
        /// Number of characters to underline, at least one.
        width: usize,
    },
    /// An instruction, printed.
    Instruction {
        /// Name of the computation that holds it.
        computation: String,
        /// The instruction's text.
        text: String,
    },
    /// A byte offset in binary input.
    Byte(u64),
    /// A field or part, named by a path such as `thunks[3].kernel_name`.
    Path(String),
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Which rule; see [`crate::base::codes`].
    pub code: Code,
    /// How bad.
    pub severity: Severity,
    /// What was found, and what was wanted.
    pub message: String,
    /// Where.
    pub location: Option<Location>,
    /// More facts, one line each.
    pub notes: Vec<String>,
    /// What to do.
    pub help: Option<String>,
}

/// The result of anything that may find the input wrong.
pub type Result<T, E = Box<Diagnostic>> = std::result::Result<T, E>;

/// Characters of a word at most. Of a longer one, which some input made up, the beginning and the end
/// are shown.
const LONGEST_WORD: usize = 200;

/// Characters of a message, a note or a help at most; of a longer one the middle is left out too.
const LONGEST_TEXT: usize = 1200;

/// The text with long words cut, and not too long.
fn cut(text: impl AsRef<str> + Into<String>) -> String {
    if text.as_ref().len() <= LONGEST_WORD {
        return text.into();
    }
    let text = text.as_ref();
    let words = text.split_inclusive([' ', '\n']);
    let words: String = words
        .map(|word| without_middle(word, LONGEST_WORD))
        .collect();
    without_middle(&words, LONGEST_TEXT)
}

/// The text, or its beginning and its end when it has more characters.
fn without_middle(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let start = text.chars().take(most / 2);
    let end = text.chars().skip(count - most / 4);
    start.chain("...".chars()).chain(end).collect()
}

impl Diagnostic {
    fn new(code: Code, severity: Severity, message: impl Into<String>) -> Box<Self> {
        let message = cut(message.into()).replace('\n', " ");
        Box::new(Self {
            code,
            severity,
            message,
            location: None,
            notes: Vec::new(),
            help: None,
        })
    }
    /// The input is wrong.
    pub fn error(code: Code, message: impl Into<String>) -> Box<Self> {
        Self::new(code, Severity::Error, message)
    }
    /// The input is right and cannot be handled.
    pub fn unsupported(code: Code, message: impl Into<String>) -> Box<Self> {
        Self::new(code, Severity::Unsupported, message)
    }
    /// A rule of our own is broken.
    pub fn internal(code: Code, message: impl Into<String>) -> Box<Self> {
        Self::new(code, Severity::Internal, message)
    }
    /// The reader may want to know.
    pub fn warning(code: Code, message: impl Into<String>) -> Box<Self> {
        Self::new(code, Severity::Warning, message)
    }
    /// Whose fault it is. What is wrong with a bundle is told by its code, whoever found it.
    pub fn blame(&self) -> Blame {
        if self.severity == Severity::Internal {
            return Blame::Program;
        }
        match self.code {
            codes::NOT_A_BUNDLE
            | codes::BUNDLE_CHECK
            | codes::BUNDLE_UNSUPPORTED
            | codes::HOST_MISMATCH
            | codes::LOAD
            | codes::NO_DEVICE => Blame::Bundle,
            codes::RESULT_MISMATCH => Blame::Results,
            _ => Blame::Input,
        }
    }
    /// Says where it is.
    #[must_use]
    pub fn at(mut self: Box<Self>, location: Location) -> Box<Self> {
        self.location = Some(location);
        self
    }
    /// Says where it is, unless a place is known already.
    #[must_use]
    pub fn or_at(mut self: Box<Self>, location: impl FnOnce() -> Location) -> Box<Self> {
        self.location.get_or_insert_with(location);
        self
    }
    /// Adds a fact.
    #[must_use]
    pub fn note(mut self: Box<Self>, note: impl Into<String>) -> Box<Self> {
        self.notes.push(cut(note.into()));
        self
    }
    /// Says what to do.
    #[must_use]
    pub fn help(mut self: Box<Self>, help: impl Into<String>) -> Box<Self> {
        self.help = Some(cut(help.into()));
        self
    }
}

/// What the system said of a file, without the name of a temporary file, which means nothing to the
/// reader. The names of other files are not in such errors.
pub fn io_reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at path \"") {
        Some((reason, _)) => reason.to_owned(),
        None => text,
    }
}

/// Characters of a line that are shown; the rest of a longer one is cut.
const EXCERPT_WIDTH: usize = 160;

/// The part of a long line around `column`, and the column within it.
fn window(line: &str, column: usize) -> (String, usize) {
    let line = line.replace('\t', " ");
    if line.len() <= EXCERPT_WIDTH {
        return (line, column);
    }
    let start = column.saturating_sub(EXCERPT_WIDTH / 2);
    let mut shown: String = line.chars().skip(start).take(EXCERPT_WIDTH).collect();
    if start > 0 {
        shown.insert_str(0, "...");
    }
    if line.chars().nth(start + EXCERPT_WIDTH).is_some() {
        shown.push_str("...");
    }
    (shown, column - start + if start > 0 { 3 } else { 0 })
}

impl fmt::Display for Diagnostic {
    /// The plain form, without colour: the one renderer of the project.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}[{}]: {}",
            self.severity.word(),
            self.code,
            self.message
        )?;
        match &self.location {
            None => {}
            Some(Location::Text {
                line,
                column,
                excerpt,
                width,
            }) => {
                let number = line.to_string();
                let pad = " ".repeat(number.len());
                write!(f, "\n{pad}--> line {line}, column {column}")?;
                let (excerpt, column) = window(excerpt, *column);
                write!(f, "\n{pad} |\n{number} |")?;
                if !excerpt.is_empty() {
                    write!(f, " {excerpt}")?;
                }
                let before = " ".repeat(column.saturating_sub(1));
                let width = (*width).clamp(1, EXCERPT_WIDTH);
                write!(f, "\n{pad} | {before}{}", "^".repeat(width))?;
            }
            Some(Location::Instruction { computation, text }) => {
                let (computation, text) = (cut(computation), cut(text));
                write!(f, "\n --> computation `{computation}`\n  |\n  | {text}")?;
            }
            Some(Location::Byte(offset)) => write!(f, "\n --> byte {offset}")?,
            Some(Location::Path(path)) => write!(f, "\n --> {}", cut(path))?,
        }
        for note in &self.notes {
            write!(f, "\n  = note: {note}")?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n  = help: {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostic {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::codes;

    #[test]
    fn what_an_input_makes_long_is_cut() {
        let name = format!("`{}é`", "a".repeat(5000));
        let error = Diagnostic::error(codes::TEXT_NAME, format!("{name} is\nnot known"))
            .note(format!("there are {name} and {name}"))
            .help(format!("did you mean {name}?"));
        assert!(error.message.starts_with("`aaaa"), "{error}");
        assert!(error.message.ends_with("aé` is not known"), "{error}");
        assert!(error.to_string().chars().count() < 900, "{error}");
        let numbers: Vec<usize> = (0..5000).collect();
        let error = Diagnostic::error(codes::TEXT_NAME, format!("the list {numbers:?} is long"));
        assert!(error.message.starts_with("the list [0, 1, "), "{error}");
        assert!(error.message.ends_with("4999] is long"), "{error}");
        assert!(error.message.len() <= LONGEST_TEXT);
        let short = "é".repeat(LONGEST_WORD);
        assert_eq!(
            Diagnostic::error(codes::TEXT_NAME, short.clone()).message,
            short
        );
    }
}
