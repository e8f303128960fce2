//! What a launch found wrong.

use std::fmt;

/// What kind of wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReportKind {
    /// An access outside every allocation, or past the end of one.
    OutOfBounds,
    /// An address that is not a multiple of the access's size.
    Misaligned,
    /// A write to memory that may only be read.
    ReadOnly,
    /// A read of bytes that nobody wrote.
    Uninitialized,
    /// Two warps use a byte of shared memory, one writes, and nothing orders them.
    SharedRace,
    /// Two warps use a word of global memory, one writes, and nothing orders them.
    GlobalRace,
    /// A register of a product that nobody has waited for.
    EarlyUse,
    /// Nothing orders what was written before what an engine reads.
    MissingFence,
    /// An aligned barrier that a part of a warp came to alone.
    DivergentBarrier,
    /// Every warp waits and nobody can go on.
    Deadlock,
    /// An mbarrier used against its protocol.
    MbarrierPhase,
    /// A member mask that does not fit the lanes that execute the instruction.
    ShuffleMask,
    /// `trap`, or a failed assertion.
    Trap,
    /// More instructions than [`crate::simulator::launch::Options::instruction_limit`].
    InstructionLimit,
    /// More local memory than a thread may have.
    StackOverflow,
    /// Operands that the instruction does not allow.
    IllegalInstruction,
    /// A launch that the device or the kernel does not allow.
    BadLaunch,
}

impl ReportKind {
    /// The words for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::OutOfBounds => "access out of bounds",
            Self::Misaligned => "misaligned address",
            Self::ReadOnly => "write to read-only memory",
            Self::Uninitialized => "read of memory that nobody wrote",
            Self::SharedRace => "race in shared memory",
            Self::GlobalRace => "race in global memory",
            Self::EarlyUse => "use before the wait",
            Self::MissingFence => "missing fence",
            Self::DivergentBarrier => "divergent barrier",
            Self::Deadlock => "deadlock",
            Self::MbarrierPhase => "mbarrier used against its protocol",
            Self::ShuffleMask => "bad member mask",
            Self::Trap => "trap",
            Self::InstructionLimit => "instruction limit reached",
            Self::StackOverflow => "local memory exhausted",
            Self::IllegalInstruction => "illegal instruction",
            Self::BadLaunch => "launch not allowed",
        }
    }
    /// Whether it ends the launch.
    pub fn is_fatal(self) -> bool {
        !matches!(
            self,
            Self::Uninitialized
                | Self::SharedRace
                | Self::GlobalRace
                | Self::EarlyUse
                | Self::MissingFence
                | Self::DivergentBarrier
                | Self::ShuffleMask
                | Self::MbarrierPhase
        )
    }
}

/// The allocation an address belongs to, or the nearest one below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Where {
    /// The allocation's label.
    pub label: String,
    /// Offset of the address from the allocation's start.
    pub offset: u64,
    /// Bytes of the allocation.
    pub length: u64,
}

/// The other side of a race.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// Its block.
    pub block: [u32; 3],
    /// Its warp within the block, when known.
    pub warp: Option<u32>,
    /// The PTX line of its access, when known.
    pub line: Option<u32>,
    /// Whether it wrote.
    pub write: bool,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What kind.
    pub kind: ReportKind,
    /// The facts in words.
    pub message: String,
    /// The kernel's name; empty for a copy.
    pub kernel: String,
    /// Line of the PTX text, from one; 0 when there is none.
    pub line: u32,
    /// That line.
    pub text: String,
    /// The block.
    pub block: [u32; 3],
    /// The thread within the block.
    pub thread: [u32; 3],
    /// The address, if it is about one.
    pub address: Option<u64>,
    /// What lies at the address, or below it.
    pub allocation: Option<Where>,
    /// The other side of a race.
    pub other: Option<Other>,
}

impl Report {
    /// A finding of which nothing is known but its kind.
    pub fn new(kind: ReportKind) -> Self {
        Self {
            kind,
            message: String::new(),
            kernel: String::new(),
            line: 0,
            text: String::new(),
            block: [0; 3],
            thread: [0; 3],
            address: None,
            allocation: None,
            other: None,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [bx, by, bz] = self.block;
        let [tx, ty, tz] = self.thread;
        write!(f, "{}: {}", self.kind.name(), self.message)?;
        if !self.kernel.is_empty() {
            write!(f, "\n  kernel {}", self.kernel)?;
            if self.line > 0 {
                write!(f, ", PTX line {}: {}", self.line, self.text)?;
            }
            write!(f, "\n  block ({bx}, {by}, {bz}), thread ({tx}, {ty}, {tz})")?;
        }
        if let Some(address) = self.address {
            write!(f, "\n  address {address:#x}")?;
        }
        if let Some(place) = &self.allocation {
            let Where {
                label,
                offset,
                length,
            } = place;
            write!(f, ", byte {offset} of {label} ({length} bytes)")?;
        }
        if let Some(other) = &self.other {
            let [x, y, z] = other.block;
            let did = if other.write { "wrote" } else { "read" };
            write!(f, "\n  block ({x}, {y}, {z})")?;
            if let Some(warp) = other.warp {
                write!(f, ", warp {warp}")?;
            }
            write!(f, " {did} it too")?;
            if let Some(line) = other.line {
                write!(f, ", PTX line {line}")?;
            }
        }
        Ok(())
    }
}
