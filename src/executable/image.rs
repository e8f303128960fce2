//! Machine code and the kernels in it.

use crate::executable::KernelId;

/// Code in the form a device loads.
#[derive(Clone, PartialEq, Eq)]
pub enum Code {
    /// A relocatable ELF object.
    Elf(Vec<u8>),
    /// PTX text.
    Ptx(String),
    /// A CUDA binary.
    Cubin(Vec<u8>),
}

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}({} bytes)", self.name(), self.bytes().len())
    }
}

impl Code {
    /// The form in a word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Elf(_) => "elf",
            Self::Ptx(_) => "ptx",
            Self::Cubin(_) => "cubin",
        }
    }
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Elf(bytes) | Self::Cubin(bytes) => bytes,
            Self::Ptx(text) => text.as_bytes(),
        }
    }
}

/// One loadable image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelImage {
    /// Name, for diagnostics.
    pub name: String,
    /// The kernels it defines.
    pub kernels: Vec<KernelId>,
    /// The code.
    pub code: Code,
}

/// A kernel's place in the images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelEntry {
    /// Symbol.
    pub name: String,
    /// Number of buffer parameters; absent when the bundle does not say.
    pub arity: Option<usize>,
    /// Whether it is a sort comparator rather than a kernel.
    pub is_comparator: bool,
}
