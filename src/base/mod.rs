//! Ids, arenas, units and diagnostics. Knows no word of any IR.

pub mod checksum;
pub mod codes;
pub mod diag;
pub mod id;
pub mod suggest;
pub mod text;
pub mod units;

pub use codes::Code;
pub use diag::Blame;
pub use diag::Diagnostic;
pub use diag::Location;
pub use diag::Result;
pub use diag::Severity;
pub use id::Arena;
pub use id::Id;
pub use id::IdMap;
pub use id::IdSet;
pub use text::Cursor;
pub use units::ByteSize;
