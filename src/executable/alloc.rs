//! Buffer allocations and the logical buffers they hold.

use crate::base::ByteSize;
use crate::define_id;
use crate::executable::ConstantId;
use crate::shape::ShapeIndex;

define_id! {
    /// A buffer allocation of an executable.
    pub struct AllocId, "alloc";
}

/// What an allocation is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllocKind {
    /// The caller's buffer of one leaf of one entry parameter.
    Parameter {
        /// Parameter number.
        number: usize,
        /// Leaf of the parameter.
        index: ShapeIndex,
        /// Whether a result leaf shares it when the caller donates it.
        aliased_output: bool,
    },
    /// Read-only data that ships with the program.
    Constant(ConstantId),
    /// A table of pointers to the elements of the result tuple, 8 bytes each.
    Tuple,
    /// Memory of one thread; never holds data in our programs, appears in others'.
    ThreadLocal,
    /// Memory that the runtime provides for a run.
    Owned,
    /// A part of another allocation, which a thunk finds while the program runs.
    Window,
}

/// A block of memory that slices are cut from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Size.
    pub size: ByteSize,
    /// What it is for.
    pub kind: AllocKind,
    /// Whether a part of the result lives in it after the run.
    pub live_out: bool,
    /// Memory space; 0 is the device's default.
    pub color: i64,
}

impl Allocation {
    /// Whether it is scratch memory of one run.
    pub fn is_temp(&self) -> bool {
        self.kind == AllocKind::Owned && !self.live_out
    }
}

/// A value that lives in an allocation, for the buffer plan that other readers want to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogicalBuffer {
    /// Complete id of the instruction that defines it: computation id in the upper half.
    pub instruction: u64,
    /// Name of that instruction.
    pub name: String,
    /// Part of its result.
    pub index: ShapeIndex,
    /// Where it lives.
    pub slice: crate::executable::Slice,
}
