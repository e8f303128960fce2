//! Read-only facts about a module.

pub mod scratch;
