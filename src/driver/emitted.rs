//! By-products of a compilation and parts of a bundle: their kinds and file names.

use crate::executable::Executable;
use crate::executable::print;

/// What can be taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EmitKind {
    /// The module the buffers were assigned for, as HLO text.
    Hlo,
    /// The thunks as a listing.
    Thunks,
    /// The buffer plan as a listing.
    Buffers,
    /// LLVM IR.
    LlvmIr,
    /// Assembly.
    Asm,
    /// ELF objects.
    Obj,
    /// PTX.
    Ptx,
    /// CUDA binaries.
    Cubin,
}

impl EmitKind {
    /// Every kind.
    pub const ALL: &'static [Self] = &[
        Self::Hlo,
        Self::Thunks,
        Self::Buffers,
        Self::LlvmIr,
        Self::Asm,
        Self::Obj,
        Self::Ptx,
        Self::Cubin,
    ];
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hlo => "hlo",
            Self::Thunks => "thunks",
            Self::Buffers => "buffers",
            Self::LlvmIr => "llvm-ir",
            Self::Asm => "asm",
            Self::Obj => "obj",
            Self::Ptx => "ptx",
            Self::Cubin => "cubin",
        }
    }
    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
    /// The suffix of its files.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Hlo => "hlo",
            Self::Thunks => "thunks.txt",
            Self::Buffers => "buffers.txt",
            Self::LlvmIr => "ll",
            Self::Asm => "s",
            Self::Obj => "o",
            Self::Ptx => "ptx",
            Self::Cubin => "cubin",
        }
    }
    /// Whether a terminal cannot show it.
    pub fn is_binary(self) -> bool {
        matches!(self, Self::Obj | Self::Cubin)
    }
}

/// One file's worth of a by-product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// What it is.
    pub kind: EmitKind,
    /// Its content.
    pub content: Vec<u8>,
}

/// The thunks of a program as text.
pub fn thunks(executable: &Executable) -> String {
    let name = |id| {
        let kernel = executable.kernels.get(id);
        kernel.map_or_else(|| format!("{id:?}"), |kernel| kernel.name.clone())
    };
    print::thunks(&executable.thunks, &name)
}
