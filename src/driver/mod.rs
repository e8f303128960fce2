//! The order of rooms: compile, run, evaluate, inspect, verify. Bytes in, bytes out.

pub mod arrays;
mod bundles;
#[cfg(all(feature = "compiler", feature = "loader"))]
pub mod bisect;
#[cfg(feature = "loader")]
pub mod calling;
pub mod closeness;
#[cfg(feature = "compiler")]
pub mod compile;
#[cfg(feature = "reference")]
pub mod describe;
#[cfg(any(feature = "loader", feature = "reference"))]
pub mod devices;
#[cfg(feature = "compiler")]
mod dump;
pub mod emitted;
#[cfg(feature = "reference")]
pub mod evaluate;
pub mod explain;
mod host;
#[cfg(feature = "reference")]
pub mod input;
pub mod inspect;
pub mod observe;
#[cfg(feature = "loader")]
pub mod run;
pub mod targets;
pub mod verify;

pub use crate::driver::closeness::Closeness;
pub use crate::target::HostMachine;
pub use crate::target::Target;

/// The array leaves of a result, in order.
pub type Arrays = Vec<crate::literal::ArrayLiteral>;
