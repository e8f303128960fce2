//! Where an op comes from: the user's Python line, and the calls that led to it.

use std::sync::Arc;

use crate::mlir::attrs::Attr;
use crate::mlir::types::Name;

/// A shared location.
pub type Loc = Arc<SourceLoc>;

/// A location as MLIR has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceLoc {
    /// `loc(unknown)`.
    Unknown,
    /// `loc("file.py":3:7)`, `loc("file.py":3:7 to 4:9)`.
    File {
        /// The file's name.
        file: Name,
        /// First line, from one.
        line: u32,
        /// First column, from one.
        column: u32,
        /// Last line; the first one when the text gives no range.
        end_line: u32,
        /// Last column; the first one when the text gives no range.
        end_column: u32,
    },
    /// `loc("jit(f)/add"(child))`.
    Name {
        /// The name.
        name: Name,
        /// Where that is; [`SourceLoc::Unknown`] when the text does not say.
        child: Loc,
    },
    /// `loc(callsite(callee at caller))`.
    CallSite {
        /// The place in the function that was called.
        callee: Loc,
        /// The place of the call.
        caller: Loc,
    },
    /// `loc(fused<metadata>[a, b])`.
    Fused {
        /// The places.
        parts: Vec<Loc>,
        /// What stands in `<>`.
        metadata: Option<Attr>,
    },
}

impl SourceLoc {
    /// The location that says nothing.
    pub fn unknown() -> Loc {
        Arc::new(Self::Unknown)
    }
    /// The innermost file, line and column, when there is one.
    pub fn file_line(&self) -> Option<(&Name, u32, u32)> {
        let mut todo = vec![self];
        // A location has finitely many parts, but shared ones may be met often.
        for _ in 0..10_000 {
            match todo.pop()? {
                Self::Unknown => {}
                Self::File {
                    file, line, column, ..
                } => return Some((file, *line, *column)),
                Self::Name { child, .. } => todo.push(child),
                Self::CallSite { callee, caller } => todo.extend([&**caller, &**callee]),
                Self::Fused { parts, .. } => todo.extend(parts.iter().rev().map(|p| &**p)),
            }
        }
        None
    }
}
