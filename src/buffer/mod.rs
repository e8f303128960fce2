//! Buffer assignment: values to slices of allocations.
//!
//! One allocation per leaf of an entry parameter, per leaf of the result, per tuple of the result,
//! per constant, and one for everything else. Values share a slice when their lives allow it.

pub mod assign;
pub mod assignment;
pub mod check;
pub mod coalesce;
pub mod moves;
pub mod pack;
pub mod print;

pub use assign::assign;
pub use assignment::BufferAssignment;
pub use check::check;
pub use print::print;

#[cfg(test)]
mod tests;
