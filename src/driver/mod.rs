//! The order of rooms: compile, run, evaluate, inspect, verify. Bytes in, bytes out.

pub mod arrays;
#[cfg(feature = "compiler")]
pub mod compile;
pub mod emitted;
#[cfg(feature = "reference")]
pub mod evaluate;
pub mod explain;
pub mod observe;
pub mod targets;

pub use crate::literal::compare::Tolerance;
pub use crate::target::HostMachine;
pub use crate::target::Target;

/// The array leaves of a result, in order.
pub type Arrays = Vec<crate::literal::ArrayLiteral>;
