//! Reading the modifiers of a matrix instruction.

use crate::base::{Diagnostic, Result, codes};

/// Rows, columns and depth of a matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows of A, C and D.
    pub m: usize,
    /// Columns of B, C and D.
    pub n: usize,
    /// Columns of A and rows of B.
    pub k: usize,
}

impl Shape {
    /// Reads `m16n8k16`; nothing when the word is not a shape of three parts.
    pub fn parse(word: &str) -> Option<Self> {
        let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        let number = |text: &str| text.parse::<usize>().ok().filter(|&v| v > 0 && v <= 512);
        Some(Self {
            m: number(m)?,
            n: number(n)?,
            k: number(k)?,
        })
    }
    /// Multiplications and additions of one product.
    pub fn flops(self) -> u64 {
        2 * (self.m * self.n * self.k) as u64
    }
}

/// Whether a layout is by rows.
pub(super) fn layout(word: &str) -> Option<bool> {
    match word {
        "row" => Some(true),
        "col" => Some(false),
        _ => None,
    }
}

/// Counts of 32-bit registers that an instruction's operands take; a 64-bit register counts twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// Words of A.
    pub a: usize,
    /// Words of B.
    pub b: usize,
    /// Words of C.
    pub c: usize,
    /// Words of D.
    pub d: usize,
}

/// The modifiers of one instruction, crossed out as they are understood.
pub(super) struct Modifiers<'a> {
    opcode: &'a str,
    all: Vec<&'a str>,
    used: Vec<bool>,
}

impl<'a> Modifiers<'a> {
    pub(super) fn new<S: AsRef<str>>(opcode: &'a str, all: &'a [S]) -> Self {
        let all: Vec<&str> = all.iter().map(AsRef::as_ref).collect();
        Self {
            opcode,
            used: vec![false; all.len()],
            all,
        }
    }
    /// Crosses out `word`; false when it is not there.
    pub(super) fn take(&mut self, word: &str) -> bool {
        self.find(|w| (w == word).then_some(())).is_some()
    }
    /// The first word that is left and that `read` understands; it is crossed out.
    pub(super) fn find<T>(&mut self, read: impl Fn(&'a str) -> Option<T>) -> Option<T> {
        for (word, used) in self.all.iter().zip(&mut self.used) {
            if !*used && let Some(value) = read(word) {
                *used = true;
                return Some(value);
            }
        }
        None
    }
    /// Like `find`; that no word is understood is an error that names what was sought.
    pub(super) fn need<T>(&mut self, what: &str, read: impl Fn(&'a str) -> Option<T>) -> Result<T> {
        match self.find(read) {
            Some(value) => Ok(value),
            None => Err(self.refuse(&format!("has no {what}"))),
        }
    }
    /// That a word is left is an error that names it.
    pub(super) fn finish(&self) -> Result<()> {
        match self.all.iter().zip(&self.used).find(|(_, used)| !**used) {
            None => Ok(()),
            Some((word, _)) => Err(self.refuse(&format!("has the unknown modifier `.{word}`"))),
        }
    }
    /// The whole instruction's name and what is wrong with it.
    pub(super) fn refuse(&self, what: &str) -> Box<Diagnostic> {
        let mut name = self.opcode.to_owned();
        for word in &self.all {
            name.push('.');
            name.push_str(word);
        }
        Diagnostic::unsupported(codes::PTX_UNKNOWN, format!("instruction `{name}` {what}"))
    }
}
