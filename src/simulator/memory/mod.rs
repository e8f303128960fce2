//! The memory of a simulated machine: allocations, and who may read what.
//!
//! A device address is the host address of the memory behind it. [`AddressSpace`] knows every
//! allocation; a launch works on a [`Snapshot`] of it. Generic addresses of shared and local
//! memory lie in [`window`]s that no host address reaches.

pub mod allocation;
pub mod clock;
pub mod raw;
pub mod shared;
pub mod space;
pub mod window;
pub mod written;

pub use allocation::Allocation;
pub use allocation::Kind;
pub use clock::Clock;
pub use clock::Engine;
pub use shared::By;
pub use shared::Conflict;
pub use shared::Shared;
pub use space::AddressSpace;
pub use space::Snapshot;
pub use written::Written;
