//! Operations and their attributes.
//!
//! One variant of [`Op`] per shape of attributes; [`Op::opcode`] gives the word XLA prints.
//! Dimension-number attributes keep the field names of the HLO text.

use smallvec::SmallVec;

use crate::hlo::CompId;
use crate::literal::Literal;
use crate::shape::Dims;
use crate::shape::ElementKind;
use crate::shape::Shape;

macro_rules! named_enum {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "each variant is the word of HLO it is named for")]
        pub enum $name { $($variant,)* }
        impl $name {
            /// Every variant.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
            /// The word used in HLO text.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
            /// The variant of that word.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

named_enum! {
    /// Elementwise functions of one operand whose result has the operand's shape
    /// (`abs`, `real` and `imag` of a complex operand give its real type, `is-finite` gives pred).
    UnaryOp {
        Abs = "abs", Acos = "acos", Acosh = "acosh", Asin = "asin", Asinh = "asinh",
        Atanh = "atanh", Cbrt = "cbrt", Ceil = "ceil", Cos = "cosine", Cosh = "cosh",
        CountLeadingZeros = "count-leading-zeros", Erf = "erf", Exp = "exponential",
        Expm1 = "exponential-minus-one", Floor = "floor", Imag = "imag", IsFinite = "is-finite",
        Log = "log", Log1p = "log-plus-one", Logistic = "logistic", Negate = "negate", Not = "not",
        PopulationCount = "popcnt", Real = "real", RoundNearestAfz = "round-nearest-afz",
        RoundNearestEven = "round-nearest-even", Rsqrt = "rsqrt", Sign = "sign", Sin = "sine",
        Sinh = "sinh", Sqrt = "sqrt", Tan = "tan", Tanh = "tanh",
    }
}

named_enum! {
    /// Elementwise functions of two operands of one shape (`complex` gives the complex type).
    BinaryOp {
        Add = "add", And = "and", Atan2 = "atan2", Complex = "complex", Divide = "divide",
        Maximum = "maximum", Minimum = "minimum", MulHi = "mulhi", Multiply = "multiply", Or = "or",
        Power = "power", Remainder = "remainder", ShiftLeft = "shift-left",
        ShiftRightArithmetic = "shift-right-arithmetic",
        ShiftRightLogical = "shift-right-logical", Subtract = "subtract", Xor = "xor",
    }
}

named_enum! {
    /// The relation a `compare` tests.
    ComparisonDirection { Eq = "EQ", Ne = "NE", Ge = "GE", Gt = "GT", Le = "LE", Lt = "LT", }
}

named_enum! {
    /// The order a `compare` uses. `TotalOrder` puts -NaN < -inf < -0 < +0 < inf < NaN.
    ComparisonType {
        Float = "FLOAT", TotalOrder = "TOTALORDER", Signed = "SIGNED", Unsigned = "UNSIGNED",
    }
}

named_enum! {
    /// What a fusion's loop nest is shaped by.
    FusionKind { Loop = "kLoop", Input = "kInput", Output = "kOutput", Custom = "kCustom", }
}

named_enum! {
    /// The kind of a discrete Fourier transform.
    FftType { Fft = "FFT", Ifft = "IFFT", Rfft = "RFFT", Irfft = "IRFFT", }
}

named_enum! {
    /// Which form of the matrix `triangular-solve` uses.
    TriangularTranspose {
        NoTranspose = "NO_TRANSPOSE", Transpose = "TRANSPOSE", Adjoint = "ADJOINT",
    }
}

named_enum! {
    /// The distribution of the free `rng` op.
    RngDistribution { Uniform = "rng_uniform", Normal = "rng_normal", }
}

named_enum! {
    /// The generator of `rng-bit-generator`.
    RngAlgorithm { Default = "rng_default", ThreeFry = "rng_three_fry", Philox = "rng_philox", }
}

named_enum! {
    /// Requested precision of one operand of a dot or convolution.
    Precision {
        Default = "default", High = "high", Highest = "highest", PackedNibble = "packed_nibble",
    }
}

named_enum! {
    /// The exact arithmetic of a dot. The words of `PrecisionConfig.Algorithm`, in lower case.
    DotAlgorithm {
        Unset = "dot_unset", AnyF8AnyF8F32 = "dot_any_f8_any_f8_f32",
        AnyF8AnyF8F32FastAccum = "dot_any_f8_any_f8_f32_fast_accum",
        AnyF8AnyF8Any = "dot_any_f8_any_f8_any", AnyF8AnyF8AnyFastAccum = "dot_any_f8_any_f8_any_fast_accum",
        F16F16F16 = "dot_f16_f16_f16", F16F16F32 = "dot_f16_f16_f32",
        Bf16Bf16Bf16 = "dot_bf16_bf16_bf16", Bf16Bf16F32 = "dot_bf16_bf16_f32",
        Bf16Bf16F32X3 = "dot_bf16_bf16_f32_x3", Bf16Bf16F32X6 = "dot_bf16_bf16_f32_x6",
        Bf16Bf16F32X9 = "dot_bf16_bf16_f32_x9", Tf32Tf32F32 = "dot_tf32_tf32_f32",
        Tf32Tf32F32X3 = "dot_tf32_tf32_f32_x3", F32F32F32 = "dot_f32_f32_f32",
        F64F64F64 = "dot_f64_f64_f64",
    }
}

named_enum! {
    /// How a custom call's target is called.
    CustomCallApiVersion {
        Unspecified = "API_VERSION_UNSPECIFIED", Original = "API_VERSION_ORIGINAL",
        StatusReturning = "API_VERSION_STATUS_RETURNING",
        StatusReturningUnified = "API_VERSION_STATUS_RETURNING_UNIFIED",
        TypedFfi = "API_VERSION_TYPED_FFI",
    }
}

named_enum! {
    /// When a custom call runs, as `schedule=` says.
    CustomCallSchedule {
        None = "SCHEDULE_NONE", Latest = "SCHEDULE_LATEST", Earliest = "SCHEDULE_EARLIEST",
    }
}

named_enum! {
    /// The padding mode of custom-call convolutions, as `padding_type=` says.
    PaddingType { Invalid = "PADDING_INVALID", Valid = "PADDING_VALID", Same = "PADDING_SAME", }
}

/// One dimension of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WindowDim {
    /// Window size.
    pub size: usize,
    /// Step between window positions.
    pub stride: i64,
    /// Padding before the first element, negative to crop, in dilated elements.
    pub padding_low: i64,
    /// Padding after the last element.
    pub padding_high: i64,
    /// Distance between window elements.
    pub window_dilation: i64,
    /// Distance between base elements; the gap is padding.
    pub base_dilation: i64,
    /// Whether the window is walked backwards.
    pub reversal: bool,
}

impl WindowDim {
    /// Whether some element of some of that many windows is not an element of an input of that size.
    pub fn may_leave(&self, windows: usize, size: usize) -> bool {
        let last = self.seen(windows) as i64 - 1;
        self.base_dilation != 1 || self.padding_low > 0 || last - self.padding_low >= size as i64
    }
    /// Dilated positions from the first to the last that so many windows look at, one or more.
    pub fn seen(&self, windows: usize) -> usize {
        (windows - 1) * self.stride as usize + (self.size - 1) * self.window_dilation as usize + 1
    }
}

impl Default for WindowDim {
    /// A window of size one that does nothing.
    fn default() -> Self {
        Self {
            size: 1,
            stride: 1,
            padding_low: 0,
            padding_high: 0,
            window_dilation: 1,
            base_dilation: 1,
            reversal: false,
        }
    }
}

/// A window, one entry a dimension.
pub type Window = SmallVec<[WindowDim; 4]>;

/// The dimension numbers of a dot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the fields are named as in HLO text")]
pub struct DotDims {
    pub lhs_contracting: Dims,
    pub rhs_contracting: Dims,
    pub lhs_batch: Dims,
    pub rhs_batch: Dims,
}

/// The arithmetic a dot or convolution asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PrecisionConfig {
    /// One entry an operand, or empty.
    pub operand_precision: SmallVec<[Precision; 2]>,
    /// The exact algorithm; `Unset` leaves it to the operand precisions.
    pub algorithm: DotAlgorithm,
}

impl Default for PrecisionConfig {
    fn default() -> Self {
        Self {
            operand_precision: SmallVec::new(),
            algorithm: DotAlgorithm::Unset,
        }
    }
}

/// Which dimension is which in a convolution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[allow(
    missing_docs,
    reason = "the fields are named as in ConvolutionDimensionNumbers"
)]
pub struct ConvDims {
    pub input_batch: usize,
    pub input_feature: usize,
    pub input_spatial: Dims,
    pub kernel_input_feature: usize,
    pub kernel_output_feature: usize,
    pub kernel_spatial: Dims,
    pub output_batch: usize,
    pub output_feature: usize,
    pub output_spatial: Dims,
}

/// The dimension numbers of a gather.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the fields are named as in HLO text")]
pub struct GatherDims {
    pub offset_dims: Dims,
    pub collapsed_slice_dims: Dims,
    pub start_index_map: Dims,
    pub operand_batching_dims: Dims,
    pub start_indices_batching_dims: Dims,
    pub index_vector_dim: usize,
}

/// The dimension numbers of a scatter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the fields are named as in HLO text")]
pub struct ScatterDims {
    pub update_window_dims: Dims,
    pub inserted_window_dims: Dims,
    pub scatter_dims_to_operand_dims: Dims,
    pub input_batching_dims: Dims,
    pub scatter_indices_batching_dims: Dims,
    pub index_vector_dim: usize,
}

/// Padding of one dimension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PadDim {
    /// Elements before, negative to crop.
    pub low: i64,
    /// Elements after, negative to crop.
    pub high: i64,
    /// Elements between neighbours, not negative.
    pub interior: i64,
}

/// One dimension of a slice: `[start:limit:stride]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the fields are named as in HLO text")]
pub struct SliceDim {
    pub start: usize,
    pub limit: usize,
    pub stride: usize,
}

/// Which devices take part in a collective together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReplicaGroups {
    /// Groups listed one by one; an empty list means all in one group.
    List(Vec<Vec<i64>>),
    /// `replica_groups=[2,4]<=[4,2]T(1,0)`: an iota over `reshape`, transposed, cut to `dims`.
    Iota {
        /// Number of groups and group size.
        dims: Vec<i64>,
        /// Dimensions of the iota.
        reshape: Vec<i64>,
        /// Permutation applied to it.
        transpose: Vec<i64>,
    },
}

/// What collectives have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the fields are named as in HLO text")]
pub struct Collective {
    pub replica_groups: ReplicaGroups,
    pub channel_id: Option<i64>,
    pub use_global_device_ids: bool,
    pub constrain_layout: bool,
}

/// The collective opcodes, starts included.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each variant is the opcode it is named for")]
pub enum CollectiveKind {
    AllGather {
        dim: usize,
    },
    AllGatherStart {
        dim: usize,
    },
    AllReduce {
        body: CompId,
    },
    AllReduceStart {
        body: CompId,
    },
    ReduceScatter {
        dim: usize,
        body: CompId,
    },
    AllToAll {
        dim: Option<usize>,
    },
    RaggedAllToAll,
    CollectiveBroadcast,
    CollectivePermute {
        pairs: Vec<(i64, i64)>,
        slice_sizes: Vec<Vec<i64>>,
    },
    CollectivePermuteStart {
        pairs: Vec<(i64, i64)>,
        slice_sizes: Vec<Vec<i64>>,
    },
}

/// Attributes of a custom call.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are named as in HLO text")]
pub struct CustomCall {
    pub target: String,
    pub api_version: CustomCallApiVersion,
    pub has_side_effect: bool,
    /// Operand shapes with layouts, when the call constrains them.
    pub operand_layout_constraints: Option<Vec<Shape>>,
    /// Result index, operand number, operand index.
    pub output_to_operand_aliasing: Vec<(Vec<i64>, i64, Vec<i64>)>,
    pub called: Vec<CompId>,
    pub literal: Option<Literal>,
    pub window: Option<Window>,
    pub conv_dims: Option<ConvDims>,
    pub feature_group_count: i64,
    pub batch_group_count: i64,
    pub precision: PrecisionConfig,
    pub schedule: CustomCallSchedule,
    pub padding_type: PaddingType,
}

/// What a `domain` instruction separates.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are named as in HLO text")]
pub struct Domain {
    pub kind: String,
    pub entry: Option<crate::hlo::Sharding>,
    pub exit: Option<crate::hlo::Sharding>,
}

/// The operation of an instruction, with all that is not an operand.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "variants and fields are named as in HLO text")]
pub enum Op {
    // Leaves
    Parameter {
        number: usize,
        leaf_replication: Vec<bool>,
    },
    Constant(Literal),
    Iota {
        dim: usize,
    },
    PartitionId,
    ReplicaId,
    // Elementwise
    Unary(UnaryOp),
    Binary(BinaryOp),
    Compare {
        direction: ComparisonDirection,
        ty: ComparisonType,
    },
    Select,
    Clamp,
    Convert,
    BitcastConvert,
    ReducePrecision {
        exponent_bits: u32,
        mantissa_bits: u32,
    },
    StochasticConvert,
    Copy,
    Map {
        dims: Dims,
        body: CompId,
    },
    // Data movement
    Bitcast,
    Reshape {
        inferred_dim: Option<usize>,
    },
    Broadcast {
        dims: Dims,
    },
    Transpose {
        dims: Dims,
    },
    Reverse {
        dims: Dims,
    },
    Slice {
        dims: SmallVec<[SliceDim; 4]>,
    },
    DynamicSlice {
        sizes: Dims,
    },
    DynamicUpdateSlice,
    Pad {
        dims: SmallVec<[PadDim; 4]>,
    },
    Concatenate {
        dim: usize,
    },
    Gather {
        dims: GatherDims,
        slice_sizes: Dims,
        indices_are_sorted: bool,
    },
    Scatter {
        dims: ScatterDims,
        body: CompId,
        indices_are_sorted: bool,
        unique_indices: bool,
    },
    // Dynamic shapes
    GetDimensionSize {
        dim: usize,
    },
    SetDimensionSize {
        dim: usize,
    },
    DynamicReshape,
    // Contractions
    Dot {
        dims: DotDims,
        precision: PrecisionConfig,
        sparsity: Vec<String>,
    },
    RaggedDot {
        dims: DotDims,
        lhs_ragged: Dims,
        rhs_group: Dims,
        precision: PrecisionConfig,
    },
    ScaledDot {
        dims: DotDims,
        precision: PrecisionConfig,
    },
    Convolution {
        window: Window,
        dims: ConvDims,
        feature_group_count: usize,
        batch_group_count: usize,
        precision: PrecisionConfig,
    },
    // Reductions and windows
    Reduce {
        dims: Dims,
        body: CompId,
    },
    ReduceWindow {
        window: Window,
        body: CompId,
    },
    SelectAndScatter {
        window: Window,
        select: CompId,
        scatter: CompId,
    },
    Scan {
        dim: usize,
        body: CompId,
        num_carries: usize,
        is_reverse: bool,
        is_associative: Option<bool>,
    },
    BatchNormTraining {
        epsilon: f32,
        feature_index: usize,
    },
    BatchNormInference {
        epsilon: f32,
        feature_index: usize,
    },
    BatchNormGrad {
        epsilon: f32,
        feature_index: usize,
    },
    // Others with their own kernels
    Sort {
        dim: usize,
        body: CompId,
        is_stable: bool,
    },
    TopK {
        k: usize,
        largest: bool,
        is_stable: bool,
    },
    Fft {
        kind: FftType,
        lengths: Dims,
    },
    Cholesky {
        lower: bool,
    },
    TriangularSolve {
        left_side: bool,
        lower: bool,
        unit_diagonal: bool,
        transpose: TriangularTranspose,
    },
    Rng {
        distribution: RngDistribution,
    },
    RngBitGenerator {
        algorithm: RngAlgorithm,
    },
    RngGetAndUpdateState {
        delta: i64,
    },
    // Structure
    Tuple,
    GetTupleElement {
        index: usize,
    },
    OptimizationBarrier,
    AddDependency,
    AfterAll,
    Domain(Box<Domain>),
    CopyStart {
        cross_program_prefetch_index: Option<i64>,
    },
    CopyDone,
    // Control flow
    Call {
        body: CompId,
        is_composite: bool,
    },
    While {
        condition: CompId,
        body: CompId,
    },
    Conditional {
        branches: Vec<CompId>,
    },
    Fusion {
        kind: FusionKind,
        body: CompId,
        output_to_operand_aliasing: Vec<(Vec<i64>, i64, Vec<i64>)>,
    },
    AsyncStart {
        body: CompId,
        thread: Option<String>,
        output_to_operand_aliasing: Vec<(Vec<i64>, i64, Vec<i64>)>,
    },
    AsyncUpdate,
    AsyncDone,
    CustomCall(Box<CustomCall>),
    // Collectives
    Collective {
        kind: CollectiveKind,
        collective: Box<Collective>,
    },
    AllGatherDone,
    AllReduceDone,
    CollectivePermuteDone,
    // Host
    Infeed {
        config: Vec<u8>,
    },
    Outfeed {
        config: Vec<u8>,
        shape: Shape,
    },
    Send {
        channel_id: Option<i64>,
        is_host_transfer: bool,
    },
    SendDone {
        channel_id: Option<i64>,
        is_host_transfer: bool,
    },
    Recv {
        channel_id: Option<i64>,
        is_host_transfer: bool,
    },
    RecvDone {
        channel_id: Option<i64>,
        is_host_transfer: bool,
    },
}

impl Op {
    /// Whether element `i` of the result is computed from element `i` of each operand, or from its
    /// only element: a select's predicate and a clamp's bounds may be scalars. Of the conversions
    /// only `convert` counts, since a bitcast may change the dimensions.
    pub fn is_elementwise(&self) -> bool {
        matches!(
            self,
            Self::Unary(_)
                | Self::Binary(_)
                | Self::Compare { .. }
                | Self::Select
                | Self::Clamp
                | Self::Convert
                | Self::ReducePrecision { .. }
        )
    }
    /// The opcode as HLO text prints it.
    pub fn opcode(&self) -> &'static str {
        match self {
            Self::Parameter { .. } => "parameter",
            Self::Constant(_) => "constant",
            Self::Iota { .. } => "iota",
            Self::PartitionId => "partition-id",
            Self::ReplicaId => "replica-id",
            Self::Unary(op) => op.name(),
            Self::Binary(op) => op.name(),
            Self::Compare { .. } => "compare",
            Self::Select => "select",
            Self::Clamp => "clamp",
            Self::Convert => "convert",
            Self::BitcastConvert => "bitcast-convert",
            Self::ReducePrecision { .. } => "reduce-precision",
            Self::StochasticConvert => "stochastic-convert",
            Self::Copy => "copy",
            Self::Map { .. } => "map",
            Self::Bitcast => "bitcast",
            Self::Reshape { .. } => "reshape",
            Self::Broadcast { .. } => "broadcast",
            Self::Transpose { .. } => "transpose",
            Self::Reverse { .. } => "reverse",
            Self::Slice { .. } => "slice",
            Self::DynamicSlice { .. } => "dynamic-slice",
            Self::DynamicUpdateSlice => "dynamic-update-slice",
            Self::Pad { .. } => "pad",
            Self::Concatenate { .. } => "concatenate",
            Self::Gather { .. } => "gather",
            Self::Scatter { .. } => "scatter",
            Self::GetDimensionSize { .. } => "get-dimension-size",
            Self::SetDimensionSize { .. } => "set-dimension-size",
            Self::DynamicReshape => "dynamic-reshape",
            Self::Dot { .. } => "dot",
            Self::RaggedDot { .. } => "ragged-dot",
            Self::ScaledDot { .. } => "scaled-dot",
            Self::Convolution { .. } => "convolution",
            Self::Reduce { .. } => "reduce",
            Self::ReduceWindow { .. } => "reduce-window",
            Self::SelectAndScatter { .. } => "select-and-scatter",
            Self::Scan { .. } => "scan",
            Self::BatchNormTraining { .. } => "batch-norm-training",
            Self::BatchNormInference { .. } => "batch-norm-inference",
            Self::BatchNormGrad { .. } => "batch-norm-grad",
            Self::Sort { .. } => "sort",
            Self::TopK { .. } => "topk",
            Self::Fft { .. } => "fft",
            Self::Cholesky { .. } => "cholesky",
            Self::TriangularSolve { .. } => "triangular-solve",
            Self::Rng { .. } => "rng",
            Self::RngBitGenerator { .. } => "rng-bit-generator",
            Self::RngGetAndUpdateState { .. } => "rng-get-and-update-state",
            Self::Tuple => "tuple",
            Self::GetTupleElement { .. } => "get-tuple-element",
            Self::OptimizationBarrier => "opt-barrier",
            Self::AddDependency => "add-dependency",
            Self::AfterAll => "after-all",
            Self::Domain(_) => "domain",
            Self::CopyStart { .. } => "copy-start",
            Self::CopyDone => "copy-done",
            Self::Call { .. } => "call",
            Self::While { .. } => "while",
            Self::Conditional { .. } => "conditional",
            Self::Fusion { .. } => "fusion",
            Self::AsyncStart { .. } => "async-start",
            Self::AsyncUpdate => "async-update",
            Self::AsyncDone => "async-done",
            Self::CustomCall(_) => "custom-call",
            Self::Collective { kind, .. } => kind.opcode(),
            Self::AllGatherDone => "all-gather-done",
            Self::AllReduceDone => "all-reduce-done",
            Self::CollectivePermuteDone => "collective-permute-done",
            Self::Infeed { .. } => "infeed",
            Self::Outfeed { .. } => "outfeed",
            Self::Send { .. } => "send",
            Self::SendDone { .. } => "send-done",
            Self::Recv { .. } => "recv",
            Self::RecvDone { .. } => "recv-done",
        }
    }

    /// The computations the op calls, in the order HLO text lists them.
    pub fn called(&self) -> SmallVec<[CompId; 2]> {
        let mut copy = self.clone();
        let mut out = SmallVec::new();
        copy.for_each_called_mut(&mut |id| out.push(*id));
        out
    }

    /// Visits the computations the op calls, to redirect them.
    pub fn for_each_called_mut(&mut self, visit: &mut impl FnMut(&mut CompId)) {
        match self {
            Self::Map { body, .. }
            | Self::Reduce { body, .. }
            | Self::ReduceWindow { body, .. }
            | Self::Scatter { body, .. }
            | Self::Sort { body, .. }
            | Self::Scan { body, .. }
            | Self::Call { body, .. }
            | Self::Fusion { body, .. }
            | Self::AsyncStart { body, .. } => visit(body),
            Self::SelectAndScatter {
                select, scatter, ..
            } => {
                visit(select);
                visit(scatter);
            }
            Self::While { condition, body } => {
                visit(condition);
                visit(body);
            }
            Self::Conditional { branches } => branches.iter_mut().for_each(visit),
            Self::CustomCall(call) => call.called.iter_mut().for_each(visit),
            Self::Collective {
                kind:
                    CollectiveKind::AllReduce { body }
                    | CollectiveKind::AllReduceStart { body }
                    | CollectiveKind::ReduceScatter { body, .. },
                ..
            } => visit(body),
            _ => {}
        }
    }
}

impl ComparisonType {
    /// The order that values of this shape have when none is asked for.
    pub fn default_of(operand: Option<&Shape>) -> Self {
        match operand.and_then(Shape::as_array).map(|a| a.ty.kind()) {
            Some(ElementKind::Signed) => Self::Signed,
            Some(ElementKind::Unsigned | ElementKind::Pred) => Self::Unsigned,
            Some(ElementKind::Float | ElementKind::Complex) | None => Self::Float,
        }
    }
}

impl CollectiveKind {
    /// The opcode as HLO text prints it.
    pub fn opcode(&self) -> &'static str {
        match self {
            Self::AllGather { .. } => "all-gather",
            Self::AllGatherStart { .. } => "all-gather-start",
            Self::AllReduce { .. } => "all-reduce",
            Self::AllReduceStart { .. } => "all-reduce-start",
            Self::ReduceScatter { .. } => "reduce-scatter",
            Self::AllToAll { .. } => "all-to-all",
            Self::RaggedAllToAll => "ragged-all-to-all",
            Self::CollectiveBroadcast => "collective-broadcast",
            Self::CollectivePermute { .. } => "collective-permute",
            Self::CollectivePermuteStart { .. } => "collective-permute-start",
        }
    }
}
