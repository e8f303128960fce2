//! Read-only facts about a module.

pub mod alias;
pub mod dataflow;
pub mod live;
pub mod scratch;

pub use alias::Share;
pub use dataflow::Dataflow;
pub use dataflow::Value;
pub use dataflow::ValueId;
pub use dataflow::ValueKind;
pub use live::Live;
pub use live::Segment;
