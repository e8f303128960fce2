//! One order of instructions per computation, chosen for low peak memory.

pub mod graph;
pub mod memory;
#[expect(
    clippy::module_inception,
    reason = "the room and its central type share the field's word"
)]
pub mod schedule;

pub use schedule::Scheduled;
pub use schedule::run;
