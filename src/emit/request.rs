//! The door between the walk over the schedule and the emitters: what an emitter is asked for, and
//! what it hands back. Decides nothing.

use crate::executable::CopyThunk;
use crate::executable::ShapedSlice;
use crate::executable::Slice;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::kernel::Kernel;
use crate::target::Target;

/// One instruction to be turned into kernels, with its memory.
///
/// A result slice that equals an argument slice asks for work in place; a result never overlaps an
/// argument in any other way. The scratch slice overlaps nothing else.
#[derive(Clone, Debug)]
pub struct KernelRequest<'a> {
    /// The module that holds the instruction.
    pub module: &'a Module,
    /// A fusion or a lone computing op.
    pub instr: InstrId,
    /// The array leaves of all operands, in order, with their physical shapes.
    pub args: Vec<ShapedSlice>,
    /// The array leaves of the result, in order.
    pub results: Vec<ShapedSlice>,
    /// Bytes to work with, as many as [`crate::analysis::scratch::bytes`] said; a `u8` array.
    pub scratch: Option<ShapedSlice>,
    /// What is compiled for.
    pub target: &'a Target,
    /// A symbol name for the first kernel; further kernels add a suffix of their own.
    pub name: String,
}

/// A kernel and what it is launched on. The size of the launch stands in the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct EmittedKernel {
    /// The kernel; its id is given by the program later and has no meaning yet.
    pub kernel: Kernel,
    /// Slices it only reads, in parameter order. Only those of the request.
    pub args: Vec<ShapedSlice>,
    /// Slices it writes (and may read), after the arguments.
    pub results: Vec<ShapedSlice>,
}

/// One thing to be done.
#[derive(Clone, Debug, PartialEq)]
#[allow(
    clippy::large_enum_variant,
    reason = "steps are few and most of them are kernels"
)]
pub enum Step {
    /// Launch a kernel.
    Kernel(EmittedKernel),
    /// Copy an array, say an operand into the result that is then changed in place.
    Copy(CopyThunk),
    /// Fill a slice, whose size is a multiple of four, with a 32-bit value.
    Memset {
        /// What to fill.
        destination: Slice,
        /// With what.
        value: u32,
    },
}

/// What an instruction turned into, in execution order. Empty when there is nothing to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Emitted {
    /// The steps.
    pub steps: Vec<Step>,
}

impl Emitted {
    /// A single kernel.
    pub fn kernel(kernel: Kernel, args: Vec<ShapedSlice>, results: Vec<ShapedSlice>) -> Self {
        Self {
            steps: vec![Step::Kernel(EmittedKernel {
                kernel,
                args,
                results,
            })],
        }
    }
}
