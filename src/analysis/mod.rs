//! Read-only facts about a module: each analysis takes `&Module` and returns a value.
//!
//! Nothing here is kept up to date; after a change the value is thrown away and made again.

pub use alias::Share;
pub use dataflow::Dataflow;
pub use dataflow::Value;
pub use dataflow::ValueId;
pub use dataflow::ValueKind;
pub use live::Live;
pub use live::Segment;

pub mod alias;
pub mod attention;
pub mod call_graph;
pub mod contraction;
pub mod cost;
pub mod dataflow;
pub mod effects;
pub mod grouped_conv;
pub mod live;
pub mod scratch;
pub mod trip_count;
pub mod users;
pub mod windows;
