//! Loading PTX onto a simulated device and launching its kernels.
//!
//! The door for everything above: a [`LoadedModule`] is PTX made ready for one device, an
//! [`Entry`] is a kernel of it, and [`launch`] runs a grid of it to its end and says what it found.

pub mod entry;
pub mod occupancy;
pub mod report;
pub mod run;
pub mod stats;
#[cfg(test)]
mod tests;

pub use entry::Entry;
pub use entry::LoadedModule;
pub use entry::ParamInfo;
pub use occupancy::Occupancy;
pub use report::Other;
pub use report::Report;
pub use report::ReportKind;
pub use report::Where;
pub use run::launch;
pub use stats::Count;
pub use stats::Roofline;
pub use stats::Stats;

/// The shape of one launch, and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Blocks of a cluster in x, y and z; `[1, 1, 1]` for none.
    pub cluster: [u32; 3],
    /// Bytes of shared memory beside the kernel's own.
    pub dynamic_shared: u32,
    /// The parameters' bytes, laid out as [`Entry::params`] says; at least
    /// [`Entry::param_bytes`] of them.
    pub params: Vec<u8>,
    /// Whether all blocks must make progress together.
    pub cooperative: bool,
}

/// What a launch checks and counts, and how far it may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Report misaligned accesses. Accesses outside of every allocation end the launch whether
    /// this is set or not, since they would end the host process.
    pub bounds: bool,
    /// Report reads of memory that nobody wrote.
    pub uninitialized: bool,
    /// Report races in shared and in global memory, and what is used before it is waited for.
    pub races: bool,
    /// Count instructions and traffic.
    pub stats: bool,
    /// Host threads to use; 0 takes as many as the host has.
    pub threads: usize,
    /// Instructions one warp may execute before the launch ends with a fault.
    pub instruction_limit: u64,
    /// Reports to keep; the rest are counted only.
    pub max_reports: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            bounds: true,
            uninitialized: true,
            races: true,
            stats: false,
            threads: 0,
            instruction_limit: 20_000_000_000,
            max_reports: 64,
        }
    }
}

impl Options {
    /// No checks but those that keep the host process whole.
    pub fn fast() -> Self {
        Self {
            uninitialized: false,
            races: false,
            ..Self::default()
        }
    }
}

/// What came of a launch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// What ended the launch before its end, if anything did.
    pub fault: Option<Report>,
    /// Everything found that did not end it, in the order of blocks; the first
    /// [`Options::max_reports`] of them.
    pub reports: Vec<Report>,
    /// How many more were found.
    pub suppressed: u64,
    /// The counts, when asked for.
    pub stats: Option<Stats>,
    /// What the kernel printed, in the order of blocks.
    pub printed: Vec<u8>,
}
