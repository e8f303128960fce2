//! The last passes: copies, and names that people and symbol tables can rely on.

pub mod canonical_names;
pub mod compact;
pub mod copies;
pub mod flatten;
pub mod updates;
