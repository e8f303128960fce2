//! The one list of diagnostic codes.
//!
//! By room: 1xxx front, 2xxx verify, 3xxx passes, 4xxx schedule and buffer, 5xxx emit and kernel,
//! 6xxx llvm, 7xxx bundle and wire, 8xxx runtime, simulator and literals, 9xxx internal.

use std::fmt;

/// The number of a diagnostic, printed as `XA1001`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Code(pub u16);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "XA{:04}", self.0)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $number:literal;)*) => {
        $($(#[doc = $doc])+ pub const $name: Code = Code($number);)*

        /// Every code with its name and the paragraph `xla-aot explain` prints.
        pub const ALL: &[(Code, &str, &str)] =
            &[$((Code($number), stringify!($name), concat!($($doc, "\n"),+)),)*];
    };
}

codes! {
    // 1xxx front
    /// The kind of the input could not be told from its content.
    INPUT_KIND = 1001;
    /// The HLO text does not follow the grammar.
    TEXT_SYNTAX = 1002;
    /// The text uses a name that is not defined, or defines one twice.
    TEXT_NAME = 1003;
    /// The bytes are not a valid serialized module.
    PROTO_DECODE = 1004;
    /// The input nests deeper, or is larger, than the reader allows.
    INPUT_LIMIT = 1005;
    /// An opcode, attribute or element type that the reader does not know.
    UNKNOWN_WORD = 1006;
    // 2xxx verify
    /// An instruction's operands or attributes break a rule of its opcode.
    OP_CONSTRAINT = 2001;
    /// The declared shape of an instruction is not the one its operands give.
    SHAPE_MISMATCH = 2002;
    /// The module's structure is broken: cycles, foreign operands, missing roots or parameters.
    MODULE_STRUCTURE = 2003;
    /// The module has not kept the promise of its stage.
    STAGE = 2004;
    /// Aliasing or donation names a parameter or result that does not exist or does not fit.
    ALIASING = 2005;
    // 3xxx passes
    /// A program that this compiler cannot compile for the target.
    COMPILE_UNSUPPORTED = 3001;
    // 4xxx schedule and buffer
    /// A buffer assignment that breaks a rule.
    BUFFER_CHECK = 4001;
    /// The program needs more memory than the target has or can address.
    MEMORY_LIMIT = 4002;
    // 5xxx emit and kernel
    /// No emitter for this op, element type and target.
    EMIT_UNSUPPORTED = 5001;
    /// A kernel that breaks a rule of the kernel IR.
    KERNEL_CHECK = 5002;
    // 6xxx llvm
    /// LLVM refused the module or failed while compiling it.
    LLVM = 6001;
    /// The object or PTX that LLVM made is not what the loader accepts.
    OBJECT_CHECK = 6002;
    /// The PTX assembler failed or is not usable.
    PTXAS = 6003;
    /// A target, CPU or feature name that is not known.
    UNKNOWN_TARGET = 6004;
    // 7xxx bundle and wire
    /// The bytes are not a bundle.
    NOT_A_BUNDLE = 7001;
    /// The bundle is damaged or breaks a structural rule.
    BUNDLE_CHECK = 7002;
    /// The bundle holds something that this reader does not support.
    BUNDLE_UNSUPPORTED = 7003;
    /// The bundle cannot run on this host.
    HOST_MISMATCH = 7004;
    // 8xxx runtime and literals
    /// An input does not fit the program's signature.
    INPUT_MISMATCH = 8001;
    /// An array file could not be read.
    ARRAY_FILE = 8002;
    /// The executable cannot be loaded on this device.
    LOAD = 8003;
    /// The program failed while running.
    RUN = 8004;
    /// The outputs differ from the expected ones.
    RESULT_MISMATCH = 8005;
    /// There is no such device, or no driver for it.
    NO_DEVICE = 8006;
    /// The evaluator cannot run this op.
    EVAL_UNSUPPORTED = 8007;
    /// A function of the C library was called in a way that its header forbids.
    LIBRARY_CALL = 8008;
    /// The PTX text does not follow the grammar.
    PTX_SYNTAX = 8101;
    /// The PTX uses a name that is not defined, or in a place where it cannot stand.
    PTX_NAME = 8102;
    /// An instruction, modifier or type that the simulated device does not know.
    PTX_UNKNOWN = 8103;
    /// The PTX is larger, or nests deeper, than the reader allows.
    PTX_LIMIT = 8104;
    /// The program did something a device forbids or leaves undefined while it ran.
    DEVICE_FAULT = 8105;
    // 9xxx internal
    /// A rule of the compiler itself is broken.
    INTERNAL = 9001;
}
