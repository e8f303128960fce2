//! What instructions are counted as.

/// What kind of work an instruction is, for the counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs, reason = "named as the counts are; see Stats::classes")]
pub enum Work {
    Integer,
    Float,
    Double,
    Half,
    Convert,
    Move,
    Special,
    Control,
    Global,
    Shared,
    Local,
    Constant,
    Atomic,
    Shuffle,
    Barrier,
    Tensor,
    Async,
}

impl Work {
    /// Every kind, in order.
    pub const ALL: [Work; 17] = [
        Self::Integer,
        Self::Float,
        Self::Double,
        Self::Half,
        Self::Convert,
        Self::Move,
        Self::Special,
        Self::Control,
        Self::Global,
        Self::Shared,
        Self::Local,
        Self::Constant,
        Self::Atomic,
        Self::Shuffle,
        Self::Barrier,
        Self::Tensor,
        Self::Async,
    ];
    /// The name in the counts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Float => "float",
            Self::Double => "double",
            Self::Half => "half",
            Self::Convert => "convert",
            Self::Move => "move",
            Self::Special => "special",
            Self::Control => "control",
            Self::Global => "global",
            Self::Shared => "shared",
            Self::Local => "local",
            Self::Constant => "constant",
            Self::Atomic => "atomic",
            Self::Shuffle => "shuffle",
            Self::Barrier => "barrier",
            Self::Tensor => "tensor",
            Self::Async => "async",
        }
    }
}
