//! The decoded instruction.

pub use crate::simulator::code::work::Work;
use crate::simulator::tensor;
use crate::simulator::warp::lanes::Alu;
use crate::simulator::warp::lanes::Args;
use crate::simulator::warp::lanes::Class;
use crate::simulator::warp::lanes::Slot;

/// One instruction.
#[derive(Clone)]
pub struct Inst {
    /// What it does.
    pub op: Op,
    /// The predicate in front, or [`Slot::NONE`].
    pub guard: Slot,
    /// Whether it runs where the predicate is false.
    pub negated: bool,
    /// Its kind of work.
    pub work: Work,
    /// Floating-point operations of one lane, or of the warp for tensor work.
    pub flops: u32,
    /// Line of the text, from one.
    pub line: u32,
}

/// A state space, as an address sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Whatever the address says.
    Generic,
    /// Global memory, or the host's.
    Global,
    /// The block's shared memory, or that of another block of the cluster.
    Shared,
    /// The thread's own memory.
    Local,
    /// Constant memory.
    Constant,
    /// The launch's parameters, from their first byte.
    Param,
}

/// Where an instruction finds memory.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    /// The space.
    pub space: Space,
    /// A register with the address, or [`Slot::NONE`].
    pub base: Slot,
    /// Whether the register has 64 bits.
    pub wide: bool,
    /// Bytes added.
    pub offset: i64,
    /// Whether the address is relative to the function's frame in local memory.
    pub frame: bool,
}

/// How an access is ordered with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Not at all.
    Weak,
    /// Strong, but without an order: `.relaxed`, `.volatile`, `.mmio`.
    Relaxed,
    /// `.acquire`
    Acquire,
    /// `.release`
    Release,
    /// Both.
    Both,
}

/// A register of a list, with its class.
#[derive(Clone, Copy, Debug)]
pub struct Reg {
    /// Where.
    pub slot: Slot,
    /// How it is stored.
    pub class: Class,
}

impl Reg {
    /// No register.
    pub const NONE: Reg = Reg {
        slot: Slot::NONE,
        class: Class::W32,
    };
}

/// A load or store.
#[derive(Clone, Debug)]
pub struct Access {
    /// Where.
    pub address: Address,
    /// Bytes of one element.
    pub bytes: u32,
    /// Whether a loaded element is extended by its sign.
    pub signed: bool,
    /// The registers, one an element.
    pub data: Vec<Reg>,
    /// How it is ordered.
    pub order: Order,
}

/// What an atomic does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the language's own words")]
pub enum AtomicOp {
    And,
    Or,
    Xor,
    Exch,
    Cas,
    Add,
    Inc,
    Dec,
    Min,
    Max,
}

/// The type an atomic works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the language's own words")]
pub enum AtomicType {
    B16,
    B32,
    B64,
    B128,
    U32,
    U64,
    S32,
    S64,
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    F32,
    F64,
}

impl AtomicType {
    /// Bytes of a value.
    pub fn bytes(self) -> u32 {
        match self {
            Self::B16 | Self::F16 | Self::Bf16 => 2,
            Self::B32 | Self::U32 | Self::S32 | Self::F32 | Self::F16x2 | Self::Bf16x2 => 4,
            Self::B64 | Self::U64 | Self::S64 | Self::F64 => 8,
            Self::B128 => 16,
        }
    }
}

/// `atom` or `red`.
#[derive(Clone, Debug)]
pub struct Atomic {
    /// Where.
    pub address: Address,
    /// What.
    pub op: AtomicOp,
    /// On what.
    pub ty: AtomicType,
    /// Whether subnormal f32 are flushed.
    pub ftz: bool,
    /// Destinations, one an element; none of `red`.
    pub d: Vec<Reg>,
    /// Operands, one an element.
    pub b: Vec<Reg>,
    /// The new value of `cas`.
    pub c: Reg,
    /// How it is ordered.
    pub order: Order,
}

/// How `shfl` picks a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the language's own words")]
pub enum ShuffleMode {
    Up,
    Down,
    Bfly,
    Idx,
}

/// What a vote asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the language's own words")]
pub enum VoteMode {
    All,
    Any,
    Uni,
    Ballot,
}

/// What `redux` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the language's own words")]
pub enum ReduxOp {
    Add,
    MinU,
    MaxU,
    MinS,
    MaxS,
    And,
    Or,
    Xor,
    MinF { abs: bool, nan: bool },
    MaxF { abs: bool, nan: bool },
}

/// An instruction of the lanes of a member mask together.
#[derive(Clone, Copy, Debug)]
pub struct Collective {
    /// What they do.
    pub kind: CollectiveKind,
    /// Destination.
    pub d: Slot,
    /// Second destination, a predicate.
    pub p: Slot,
    /// First source.
    pub a: Slot,
    /// Second source.
    pub b: Slot,
    /// Third source.
    pub c: Slot,
    /// The member mask; [`Slot::NONE`] takes whoever is there.
    pub members: Slot,
}

/// What the lanes of a member mask do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectiveKind {
    /// `shfl`
    Shuffle(ShuffleMode),
    /// `vote`; whether the predicate is negated.
    Vote(VoteMode, bool),
    /// `match.any`, of 64 bits or 32.
    MatchAny(bool),
    /// `match.all`, of 64 bits or 32.
    MatchAll(bool),
    /// `redux`
    Redux(ReduxOp),
    /// `elect`
    Elect,
    /// `bar.warp.sync`
    Sync,
}

/// What a barrier of the block does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierKind {
    /// Waits for everybody.
    Sync,
    /// Says that it came and goes on.
    Arrive,
    /// Waits and counts predicates.
    Popc,
    /// Waits and asks whether all predicates hold.
    And,
    /// Waits and asks whether any predicate holds.
    Or,
}

/// A barrier of the block.
#[derive(Clone, Copy, Debug)]
pub struct Barrier {
    /// What it does.
    pub kind: BarrierKind,
    /// The barrier's number.
    pub id: Slot,
    /// How many threads take part; [`Slot::NONE`] for all.
    pub count: Slot,
    /// Whether a warp comes as a whole.
    pub aligned: bool,
    /// Destination of a reduction.
    pub d: Slot,
    /// The predicate of a reduction.
    pub p: Slot,
    /// Whether that predicate is negated.
    pub negated: bool,
}

/// What is read of the machine's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the language's own words without the per cent sign"
)]
pub enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    LaneId,
    WarpId,
    NWarpId,
    SmId,
    NSmId,
    GridId,
    IsExplicitCluster,
    ClusterId(u8),
    NClusterId(u8),
    ClusterCtaid(u8),
    ClusterNctaid(u8),
    ClusterCtaRank,
    ClusterNctaRank,
    LaneMaskEq,
    LaneMaskLe,
    LaneMaskLt,
    LaneMaskGe,
    LaneMaskGt,
    Clock,
    ClockHi,
    Clock64,
    GlobalTimer,
    GlobalTimerLo,
    GlobalTimerHi,
    TotalSmemSize,
    AggrSmemSize,
    DynamicSmemSize,
    ReservedSmem,
    ActiveMask,
    /// Start of the dynamic part of shared memory.
    DynamicShared,
    /// Host address of the launch's parameters, plus bytes.
    ParamAddress(u32),
    /// Local address of the function's frame, plus bytes.
    FrameAddress(u32),
    /// A constant, for what is known before the launch.
    Zero,
}

/// A value that goes from a caller to a function or back.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// Bytes of the caller's or callee's frame.
    Frame(u32),
    /// A register.
    Register(Reg),
}

/// A value passed.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// In the caller.
    pub caller: Place,
    /// In the callee.
    pub callee: Place,
    /// How many bytes.
    pub bytes: u32,
}

/// Functions the device brings along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the library's own names")]
pub enum Builtin {
    Vprintf,
    AssertFail,
    Malloc,
    Free,
}

impl Builtin {
    /// The function of a name.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "vprintf" => Self::Vprintf,
            "__assertfail" | "__assert_fail" => Self::AssertFail,
            "malloc" => Self::Malloc,
            "free" => Self::Free,
            _ => return None,
        })
    }
}

/// Who is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// A function of the module, by its number.
    Function(u32),
    /// A function the device brings along.
    Builtin(Builtin),
    /// The function whose address a 64-bit register holds.
    Register(Slot),
}

/// A call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Who is called.
    pub callee: Callee,
    /// What goes there.
    pub arguments: Vec<Pass>,
    /// What comes back.
    pub results: Vec<Pass>,
    /// Bytes of the caller's frame.
    pub frame: u32,
    /// The caller's number, when the callee may come back here and its registers must be saved.
    pub save: Option<u32>,
}

/// What is done to a thread's stack, which grows down from the end of its local memory. The
/// registers have 32 bits or 64.
#[derive(Clone, Copy, Debug)]
pub enum Stack {
    /// `stacksave`: where it ends.
    Save(Reg),
    /// `stackrestore`
    Restore(Reg),
    /// `alloca`
    Allocate {
        /// The address of what is taken.
        d: Reg,
        /// How many bytes.
        size: Reg,
        /// A power of two.
        align: u32,
        /// Bytes of the function's frame.
        frame: u32,
    },
}

/// An operation on an mbarrier.
#[derive(Clone, Copy, Debug)]
pub struct Mbarrier {
    /// What it does.
    pub kind: MbarrierKind,
    /// Where the barrier is.
    pub address: Address,
    /// Destination: the state token, or the predicate of a wait.
    pub d: Slot,
    /// The count, the transaction bytes, the token or the parity.
    pub a: Slot,
}

/// What is done to an mbarrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MbarrierKind {
    /// `init`
    Init,
    /// `inval`
    Invalidate,
    /// `expect_tx`
    ExpectTx,
    /// `complete_tx`
    CompleteTx,
    /// `arrive`; with `.expect_tx`, with `drop`.
    Arrive {
        /// The operand is bytes to expect, not a count of arrivals.
        expect: bool,
        /// The expected count of later phases goes down as well.
        drop: bool,
    },
    /// `test_wait` or `try_wait`; with `.parity` or a token.
    Wait {
        /// Whether the operand is a parity.
        parity: bool,
    },
    /// `pending_count`
    PendingCount,
    /// `cp.async.mbarrier.arrive`; whether it is `.noinc`.
    ArriveAfterCopies(bool),
}

/// `cp.async`
#[derive(Clone, Copy, Debug)]
pub struct CopyAsync {
    /// Into shared memory.
    pub to: Address,
    /// From global memory.
    pub from: Address,
    /// Bytes written.
    pub bytes: u32,
    /// Bytes read, the rest is zero; [`Slot::NONE`] for all.
    pub source_bytes: Slot,
    /// A predicate under which nothing is read.
    pub ignore: Slot,
    /// Whether that predicate is negated.
    pub negated: bool,
}

/// How a bulk copy says that it is done.
#[derive(Clone, Copy, Debug)]
pub enum Completion {
    /// Bytes on an mbarrier.
    Mbarrier(Address),
    /// By the thread's bulk groups.
    Group,
    /// A prefetch does not say.
    None,
}

/// `cp.async.bulk` and `cp.reduce.async.bulk`, plain.
#[derive(Clone, Copy, Debug)]
pub struct Bulk {
    /// To where.
    pub to: Address,
    /// From where.
    pub from: Address,
    /// Bytes: a register or constant.
    pub bytes: Slot,
    /// How it completes.
    pub completion: Completion,
    /// Blocks of the cluster that get it; [`Slot::NONE`] for the one of the address.
    pub multicast: Slot,
    /// Which bytes of each 16 are copied, a bit each; [`Slot::NONE`] for all.
    pub mask: Slot,
    /// What happens to what is there.
    pub reduce: Option<(AtomicOp, AtomicType)>,
}

/// `cp.async.bulk.tensor` and `cp.reduce.async.bulk.tensor`.
#[derive(Clone, Debug)]
pub struct BulkTensor {
    /// The shared side.
    pub shared: Address,
    /// The tensor map's address.
    pub map: Address,
    /// Coordinates, each a 32-bit register or constant.
    pub coordinates: Vec<Slot>,
    /// Offsets of an im2col copy.
    pub offsets: Vec<Slot>,
    /// How boxes are cut.
    pub mode: tensor::CopyMode,
    /// From global to shared, not back.
    pub is_load: bool,
    /// How it completes.
    pub completion: Completion,
    /// Blocks of the cluster that get it.
    pub multicast: Slot,
    /// `.cta_group::2`: the barrier of a multicast is that of the block of each receiver's pair
    /// that has the rank's last bit of the block of the address.
    pub pair: bool,
    /// What happens to what is there.
    pub reduce: Option<AtomicOp>,
}

/// `mma` with its registers as words.
#[derive(Clone)]
pub struct MmaInst {
    /// The decoded instruction.
    pub mma: tensor::Mma,
    /// Registers of D, A, B and C.
    pub d: Vec<Reg>,
    /// A
    pub a: Vec<Reg>,
    /// B
    pub b: Vec<Reg>,
    /// C
    pub c: Vec<Reg>,
    /// The metadata of a sparse product.
    pub metadata: Slot,
    /// Its selector.
    pub selector: u32,
    /// Scales of A and B: data, byte and thread selectors.
    pub scales: Option<[(Slot, Slot, Slot); 2]>,
}

/// `ldmatrix` and `stmatrix`.
#[derive(Clone)]
pub struct MatrixMoveInst {
    /// The decoded instruction.
    pub op: tensor::MatrixMove,
    /// Where the rows are.
    pub address: Address,
    /// The registers.
    pub data: Vec<Reg>,
}

/// `wmma.load`, `wmma.store` and `wmma.mma`.
#[derive(Clone)]
pub struct WmmaInst {
    /// The decoded instruction.
    pub op: tensor::Wmma,
    /// Where the matrix is.
    pub address: Option<Address>,
    /// Elements between rows or columns, a register or constant.
    pub stride: Slot,
    /// Destination, or what is stored.
    pub d: Vec<Reg>,
    /// A
    pub a: Vec<Reg>,
    /// B
    pub b: Vec<Reg>,
    /// C
    pub c: Vec<Reg>,
}

/// `wgmma.mma_async`
#[derive(Clone)]
pub struct WgmmaInst {
    /// The decoded instruction.
    pub op: tensor::Wgmma,
    /// The accumulator.
    pub d: Vec<Reg>,
    /// A in registers.
    pub a: Vec<Reg>,
    /// The descriptor of A in shared memory.
    pub a_descriptor: Slot,
    /// The descriptor of B.
    pub b_descriptor: Slot,
    /// A predicate: whether the accumulator's old value counts.
    pub scale_d: Slot,
    /// Whether that predicate is negated.
    pub scale_d_negated: bool,
    /// The constant in its place.
    pub scale_d_constant: bool,
    /// Signs and transpositions.
    pub negate_a: bool,
    /// B counts negated.
    pub negate_b: bool,
    /// A stands transposed.
    pub transpose_a: bool,
    /// B stands transposed.
    pub transpose_b: bool,
    /// The metadata of a sparse product.
    pub metadata: Slot,
    /// Its selector.
    pub selector: u32,
}

/// `tensormap.replace`
#[derive(Clone, Debug)]
pub struct MapReplace {
    /// Where the map is.
    pub address: Address,
    /// Which field.
    pub field: String,
    /// Which of its elements.
    pub ordinal: u32,
    /// The new value.
    pub value: Reg,
}

/// `tcgen05`: tensor memory.
#[derive(Clone)]
pub enum Tensor5 {
    /// Columns are taken; their address goes to shared memory.
    Allocate(Address, Slot),
    /// Columns at an address are given back.
    Deallocate(Slot, Slot),
    /// `ld` and `st`: the address, the split, the registers.
    Move(tensor::Tcgen05Move, Address, u32, Vec<Reg>),
    /// `cp`: the address and the descriptor.
    Copy(tensor::Tcgen05Copy, Address, Slot),
    /// `mma`
    Mma(Tensor5Mma),
    /// `commit`: everything before is done when it is issued, so it arrives, at the barrier or at
    /// those of a mask of blocks.
    Commit(Address, Slot),
}

/// The operands of `tcgen05.mma`.
#[derive(Clone)]
pub struct Tensor5Mma {
    /// The decoded instruction.
    pub op: tensor::Tcgen05Mma,
    /// D in tensor memory.
    pub d: Address,
    /// A in tensor memory.
    pub a_tensor: Option<Address>,
    /// The descriptor of A in shared memory.
    pub a: Slot,
    /// The descriptor of B.
    pub b: Slot,
    /// The instruction descriptor.
    pub instruction: Slot,
    /// The factors of A and B in tensor memory.
    pub scales: Option<[Address; 2]>,
    /// Lanes that are left out.
    pub disabled: Vec<Slot>,
    /// A predicate: whether D's old value counts.
    pub enable: Slot,
    /// Whether that predicate is negated.
    pub negated: bool,
    /// D's old value is divided by two to this power.
    pub scale: u32,
}

/// What an instruction does.
#[derive(Clone)]
pub enum Op {
    /// Registers to registers.
    Alu(Alu, Args),
    /// State to a register; whether that has 64 bits.
    Special(Special, Slot, bool),
    /// A branch.
    Branch(u32),
    /// A branch by a list of targets.
    BranchIndex(Slot, Box<[u32]>),
    /// A call.
    Call(Box<Call>),
    /// Back to the caller; the end of the thread in a kernel.
    Return,
    /// The end of the thread.
    Exit,
    /// `alloca`, `stacksave` and `stackrestore`
    Stack(Stack),
    /// `trap`
    Trap,
    /// Nothing.
    Nop,
    /// A load.
    Load(Box<Access>),
    /// A store.
    Store(Box<Access>),
    /// `atom` or `red`
    Atomic(Box<Atomic>),
    /// Lanes of a member mask together.
    Collective(Box<Collective>),
    /// A barrier of the block.
    Barrier(Box<Barrier>),
    /// `barrier.cluster.arrive`
    ClusterArrive,
    /// `barrier.cluster.wait`
    ClusterWait,
    /// A fence between threads; the narrow ones count for nothing. Whether it is one of the async
    /// proxy.
    Fence(bool),
    /// `isspacep`: predicate, address, which space.
    IsSpace(Slot, Slot, Space),
    /// `mapa`: destination, address, rank, whether the address is generic (64 bits) or shared,
    /// whether the registers have 64 bits.
    MapAddress(Slot, Slot, Slot, bool, bool),
    /// `getctarank`: destination, address, whether the address is generic, and wide.
    GetRank(Slot, Slot, bool, bool),
    /// An mbarrier.
    Mbarrier(Box<Mbarrier>),
    /// `cp.async`
    CopyAsync(Box<CopyAsync>),
    /// `cp.async.commit_group`
    CopyCommit,
    /// `cp.async.wait_group n`; all for `u32::MAX`.
    CopyWait(u32),
    /// `cp.async.bulk`
    Bulk(Box<Bulk>),
    /// `cp.async.bulk.tensor`
    BulkTensor(Box<BulkTensor>),
    /// `cp.async.bulk.commit_group`
    BulkCommit,
    /// `cp.async.bulk.wait_group n`
    BulkWait(u32),
    /// `st.async` and `red.async`: the store, its mbarrier, and what it does.
    StoreAsync(Box<Access>, Box<Address>, Option<(AtomicOp, AtomicType)>),
    /// `st.bulk`: address and bytes.
    StoreBulk(Box<Address>, Slot),
    /// `mma`
    Mma(Box<MmaInst>),
    /// `ldmatrix`, `stmatrix`
    MatrixMove(Box<MatrixMoveInst>),
    /// `movmatrix`
    MoveMatrix(Slot, Slot),
    /// `wmma`
    Wmma(Box<WmmaInst>),
    /// `wgmma.mma_async`
    Wgmma(Box<WgmmaInst>),
    /// `wgmma.fence`
    WgmmaFence,
    /// `wgmma.commit_group`
    WgmmaCommit,
    /// `wgmma.wait_group n`
    WgmmaWait(u32),
    /// `tcgen05`
    Tensor5(Box<Tensor5>),
    /// `tensormap.replace`
    MapReplace(Box<MapReplace>),
    /// A copy of 128 bytes between two addresses: `tensormap.cp_fenceproxy`.
    MapCopy(Box<(Address, Address)>),
}

/// How an instruction uses a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It reads it.
    Use,
    /// It writes it.
    Def,
}
