//! Buffer assignment: values to slices of allocations.
//!
//! One allocation per leaf of an entry parameter, per leaf of the result, per tuple of the result,
//! per constant, and one for everything else. Values share a slice when their lives allow it.

pub mod assign;
pub mod assignment;
pub mod coalesce;
pub mod pack;

pub use assign::assign;
pub use assignment::BufferAssignment;
