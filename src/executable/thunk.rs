//! Thunks: the units of execution.
//!
//! The kinds are those of XLA's CPU and GPU runtimes that our programs, or the programs we read,
//! are made of.

use crate::collective::GroupMode;
use crate::define_id;
use crate::executable::Access;
use crate::executable::BufferUse;
use crate::executable::GemmThunk;
use crate::executable::LibraryFusionThunk;
use crate::executable::Passing;
use crate::executable::ShapedSlice;
use crate::executable::Slice;
use crate::executable::WindowsThunk;

define_id! {
    /// A kernel of an executable.
    pub struct KernelId, "kernel";
}

/// Thunks that run in an order equal in effect to the written one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThunkSequence(pub Vec<Thunk>);

impl ThunkSequence {
    /// Every thunk in it and in the sequences nested in them, in the written order.
    pub fn all(&self) -> Vec<&Thunk> {
        let mut found = Vec::new();
        let mut pending: Vec<&Thunk> = self.0.iter().rev().collect();
        while let Some(thunk) = pending.pop() {
            found.push(thunk);
            for nested in thunk.kind.nested().into_iter().rev() {
                pending.extend(nested.0.iter().rev());
            }
        }
        found
    }
}

/// One unit of execution.
#[derive(Clone, Debug, PartialEq)]
pub struct Thunk {
    /// Name of the HLO instruction it came from.
    pub origin: String,
    /// What it does.
    pub kind: ThunkKind,
}

/// The size of a kernel launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Workgroups (CUDA: grid), x first; none is zero.
    pub workgroups: [u64; 3],
    /// Workitems of a group (CUDA: block), x first; all one on a CPU.
    pub workitems: [u32; 3],
    /// Workgroups of a cluster, when clusters are used.
    pub cluster: Option<[u32; 3]>,
    /// Dynamic shared memory of a group in bytes.
    pub shared_bytes: u32,
}

impl Launch {
    /// One workgroup of one workitem.
    pub const SINGLE: Self = Self {
        workgroups: [1; 3],
        workitems: [1; 3],
        cluster: None,
        shared_bytes: 0,
    };
}

/// Runs a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelThunk {
    /// Which.
    pub kernel: KernelId,
    /// How large.
    pub launch: Launch,
    /// Slices it reads, in parameter order.
    pub args: Vec<ShapedSlice>,
    /// Slices it writes (and may read), after the arguments.
    pub results: Vec<ShapedSlice>,
    /// How the kernel is given them.
    pub passing: Passing,
}

/// Copies an array, between layouts when they differ.
#[derive(Clone, Debug, PartialEq)]
pub struct CopyThunk {
    /// From.
    pub source: ShapedSlice,
    /// To.
    pub destination: ShapedSlice,
}

/// Runs `body` while the condition holds.
#[derive(Clone, Debug, PartialEq)]
pub struct WhileThunk {
    /// One pred that `condition` writes.
    pub predicate: Slice,
    /// Computes the predicate.
    pub condition: ThunkSequence,
    /// One step.
    pub body: ThunkSequence,
    /// How often the body runs, when known; then the condition need not run.
    pub trip_count: Option<u64>,
}

/// Runs one of several branches.
#[derive(Clone, Debug, PartialEq)]
pub struct ConditionalThunk {
    /// One pred (true is branch 0) or one s32 (out of range is the last branch).
    pub branch_index: Slice,
    /// Whether the index is a pred.
    pub is_pred: bool,
    /// Branches.
    pub branches: Vec<ThunkSequence>,
}

/// Sorts arrays in place along one dimension by a comparator function of the program's image.
#[derive(Clone, Debug, PartialEq)]
pub struct SortThunk {
    /// Dimension.
    pub dimension: i64,
    /// Whether equal elements keep their order.
    pub is_stable: bool,
    /// 1 ascending, 2 descending, when the comparator is one of these.
    pub direction: Option<i32>,
    /// Symbol of the comparator.
    pub comparator: String,
    /// Arrays sorted together.
    pub inputs: Vec<ShapedSlice>,
}

/// A matrix product run by the runtime's library.
#[derive(Clone, Debug, PartialEq)]
pub struct DotThunk {
    /// Contracting and batch dimensions: lhs contracting, rhs contracting, lhs batch, rhs batch.
    pub dims: [Vec<i64>; 4],
    /// Left operand.
    pub lhs: ShapedSlice,
    /// Right operand.
    pub rhs: ShapedSlice,
    /// Result.
    pub out: ShapedSlice,
}

/// One dimension of a convolution's window, as on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are named as in WindowDimension")]
pub struct ConvWindowDim {
    pub size: i64,
    pub stride: i64,
    pub padding_low: i64,
    pub padding_high: i64,
    pub window_dilation: i64,
    pub base_dilation: i64,
    pub reversal: bool,
}

/// A convolution run by the runtime's library.
#[derive(Clone, Debug, PartialEq)]
#[allow(
    missing_docs,
    reason = "the fields are named as in ConvolutionDimensionNumbers"
)]
pub struct ConvolutionThunk {
    pub input_batch: i64,
    pub input_feature: i64,
    pub input_spatial: Vec<i64>,
    pub kernel_input_feature: i64,
    pub kernel_output_feature: i64,
    pub kernel_spatial: Vec<i64>,
    pub output_batch: i64,
    pub output_feature: i64,
    pub output_spatial: Vec<i64>,
    pub window: Vec<ConvWindowDim>,
    pub feature_group_count: i64,
    pub multi_threaded: bool,
    pub input: ShapedSlice,
    pub kernel: ShapedSlice,
    pub output: ShapedSlice,
}

/// A Fourier transform run by the runtime's library.
#[derive(Clone, Debug, PartialEq)]
pub struct FftThunk {
    /// 0 FFT, 1 IFFT, 2 RFFT, 3 IRFFT.
    pub kind: i32,
    /// Lengths of the transformed (innermost) dimensions.
    pub lengths: Vec<i64>,
    /// Whether the library may use several threads.
    pub multi_threaded: bool,
    /// Input.
    pub input: ShapedSlice,
    /// Output.
    pub output: ShapedSlice,
}

/// The `k` largest elements of each row, largest first, with their positions.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are named as in TopKThunkProto")]
pub struct TopKThunk {
    pub batch_size: i64,
    pub input_size: i64,
    pub k: i64,
    pub values: Slice,
    pub output: Slice,
    pub indices: Slice,
}

/// Calls a function the loader is given by name.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomCallThunk {
    /// Name.
    pub target: String,
    /// Number of the calling convention; 4 is the typed FFI.
    pub api_version: i32,
    /// Configuration: an MLIR dictionary attribute for the typed FFI, else opaque.
    pub backend_config: String,
    /// Operands; `None` for a token.
    pub operands: Vec<Option<ShapedSlice>>,
    /// Results; `None` for a token.
    pub results: Vec<Option<ShapedSlice>>,
    /// Whether the result is a tuple even when it has one element.
    pub is_tuple_result: Option<bool>,
}

/// The collective a thunk runs. Arrays are joined and cut along their outermost dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CollectiveThunkKind {
    /// Each device gets the operands of all, one after the other.
    AllGather,
    /// Each gets the operands of all, combined: `sum`, `prod`, `min` or `max`.
    AllReduce {
        /// How.
        reduction: String,
    },
    /// Each gets from each the operand, or the part of the only operand, with its rank.
    AllToAll,
    /// Each gets its part of the operands of all, combined.
    ReduceScatter {
        /// How.
        reduction: String,
    },
    /// Each target gets the operands of its source, the others zeros. Sources may have several targets.
    CollectivePermute {
        /// Source and target.
        pairs: Vec<(i64, i64)>,
    },
    /// Each gets the operands of the first device of its group, devices in no group zeros.
    CollectiveBroadcast,
}

impl CollectiveThunkKind {
    /// The kind in a word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::AllGather => "all-gather",
            Self::AllReduce { .. } => "all-reduce",
            Self::AllToAll => "all-to-all",
            Self::ReduceScatter { .. } => "reduce-scatter",
            Self::CollectivePermute { .. } => "collective-permute",
            Self::CollectiveBroadcast => "collective-broadcast",
        }
    }
}

/// A collective among devices.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectiveThunk {
    /// Which.
    pub kind: CollectiveThunkKind,
    /// The channel, or where there is none another number, that pairs it across devices.
    pub op_id: i64,
    /// What the numbers in groups and pairs are.
    pub mode: GroupMode,
    /// Groups; none at all are one of everyone.
    pub replica_groups: Vec<Vec<i64>>,
    /// Sources.
    pub sources: Vec<ShapedSlice>,
    /// Destinations.
    pub destinations: Vec<ShapedSlice>,
}

/// What a thunk does.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "each variant is the thunk it is named for")]
pub enum ThunkKind {
    Kernel(KernelThunk),
    Copy(CopyThunk),
    /// Fills a slice with a 32-bit value. Its size is a multiple of four, unless the value is zero on
    /// a GPU.
    Memset {
        destination: Slice,
        value: u32,
    },
    Call(ThunkSequence),
    While(Box<WhileThunk>),
    Conditional(Box<ConditionalThunk>),
    Windows(Box<WindowsThunk>),
    Gemm(Box<GemmThunk>),
    Sort(SortThunk),
    Dot(Box<DotThunk>),
    Convolution(Box<ConvolutionThunk>),
    Fft(FftThunk),
    TopK(TopKThunk),
    CustomCall(Box<CustomCallThunk>),
    Collective(Box<CollectiveThunk>),
    LibraryFusion(Box<LibraryFusionThunk>),
    /// Writes the replica's number as u32.
    ReplicaId(Slice),
    /// Writes the partition's number as u32.
    PartitionId(Slice),
    /// Writes the 128-bit state and then adds `delta` to it.
    RngGetAndUpdateState {
        state: Slice,
        delta: i64,
    },
    /// Writes a random 64-bit seed that is not zero.
    RngSeed(Slice),
    /// A thunk of another producer that this program can show but not run: its name and slices.
    Foreign {
        name: String,
        uses: Vec<BufferUse>,
    },
}

impl ThunkKind {
    /// The kind in a word, as listings print it.
    pub fn name(&self) -> &str {
        match self {
            Self::Kernel(_) => "kernel",
            Self::Copy(_) => "copy",
            Self::Memset { .. } => "memset",
            Self::Call(_) => "call",
            Self::While(_) => "while",
            Self::Conditional(_) => "conditional",
            Self::Windows(_) => "dynamic-slice-fusion",
            Self::Gemm(thunk) => thunk.name,
            Self::Sort(_) => "sort",
            Self::Dot(_) => "dot",
            Self::Convolution(_) => "convolution",
            Self::Fft(_) => "fft",
            Self::TopK(_) => "topk",
            Self::CustomCall(_) => "custom-call",
            Self::Collective(_) => "collective",
            Self::LibraryFusion(_) => "library-fusion",
            Self::ReplicaId(_) => "replica-id",
            Self::PartitionId(_) => "partition-id",
            Self::RngGetAndUpdateState { .. } => "rng-get-and-update-state",
            Self::RngSeed(_) => "rng-seed",
            Self::Foreign { name, .. } => name,
        }
    }

    /// The sequences nested in it.
    pub fn nested(&self) -> Vec<&ThunkSequence> {
        match self {
            Self::Call(sequence) => vec![sequence],
            Self::While(thunk) => vec![&thunk.condition, &thunk.body],
            Self::Conditional(thunk) => thunk.branches.iter().collect(),
            Self::Windows(thunk) => vec![&thunk.thunks],
            _ => Vec::new(),
        }
    }

    /// Every slice the thunk itself touches, nested sequences not counted.
    pub fn own_uses(&self) -> Vec<BufferUse> {
        fn uses(slices: &[ShapedSlice], access: Access) -> impl Iterator<Item = BufferUse> {
            slices.iter().map(move |s| BufferUse {
                slice: s.slice,
                access,
            })
        }
        fn one(slice: Slice, access: Access) -> BufferUse {
            BufferUse { slice, access }
        }
        match self {
            Self::Kernel(k) => uses(&k.args, Access::Read)
                .chain(uses(&k.results, Access::Write))
                .collect(),
            Self::Copy(c) => vec![
                one(c.source.slice, Access::Read),
                one(c.destination.slice, Access::Write),
            ],
            Self::Memset { destination, .. } => vec![one(*destination, Access::Write)],
            Self::Call(_) => Vec::new(),
            Self::While(w) => vec![one(w.predicate, Access::ReadWrite)],
            Self::Conditional(c) => vec![one(c.branch_index, Access::Read)],
            Self::Windows(w) => w.uses(),
            Self::Gemm(g) => g.uses(),
            Self::Sort(s) => uses(&s.inputs, Access::ReadWrite).collect(),
            Self::Dot(d) => vec![
                one(d.lhs.slice, Access::Read),
                one(d.rhs.slice, Access::Read),
                one(d.out.slice, Access::Write),
            ],
            Self::Convolution(c) => vec![
                one(c.input.slice, Access::Read),
                one(c.kernel.slice, Access::Read),
                one(c.output.slice, Access::Write),
            ],
            Self::Fft(f) => {
                vec![
                    one(f.input.slice, Access::Read),
                    one(f.output.slice, Access::Write),
                ]
            }
            Self::TopK(t) => vec![
                one(t.values, Access::Read),
                one(t.output, Access::Write),
                one(t.indices, Access::Write),
            ],
            Self::CustomCall(c) => {
                let operands = c
                    .operands
                    .iter()
                    .flatten()
                    .map(|s| one(s.slice, Access::Read));
                let results = c
                    .results
                    .iter()
                    .flatten()
                    .map(|s| one(s.slice, Access::Write));
                operands.chain(results).collect()
            }
            Self::Collective(c) => uses(&c.sources, Access::Read)
                .chain(uses(&c.destinations, Access::Write))
                .collect(),
            Self::LibraryFusion(f) => uses(&f.args, Access::Read)
                .chain(uses(&f.results, Access::Write))
                .collect(),
            Self::ReplicaId(s) | Self::PartitionId(s) | Self::RngSeed(s) => {
                vec![one(*s, Access::Write)]
            }
            Self::RngGetAndUpdateState { state, .. } => vec![one(*state, Access::Write)],
            Self::Foreign { uses, .. } => uses.clone(),
        }
    }
}
