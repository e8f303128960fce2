//! What a cluster holds while it runs.

use std::rc::Rc;

use crate::simulator::memory::Clock;
use crate::simulator::memory::Shared;
use crate::simulator::memory::raw::Zeroed;
use crate::simulator::warp::engine::Engines;
use crate::simulator::warp::lanes::File;
use crate::simulator::warp::transfer::LaneCopy;
use crate::simulator::warp::transfer::Transfer;

/// Why a fragment does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It does.
    Ready,
    /// It came to an instruction that lanes of its member mask execute together, and waits for
    /// them.
    Members,
    /// It came to an instruction that the whole warp executes together.
    Aligned,
    /// It waits at a barrier of the block.
    Barrier(u32),
    /// It waits at the cluster's barrier.
    Cluster,
}

/// A call that has not returned.
#[derive(Debug)]
pub struct Frame {
    /// The instruction of the call.
    pub call: u32,
    /// The caller's place in local memory.
    pub local: u32,
    /// The caller's registers, when the function may be entered again meanwhile.
    pub saved: Option<(u32, Vec<u8>)>,
    /// The call around it.
    pub outer: Option<Rc<Frame>>,
}

/// Lanes that are at one instruction.
#[derive(Clone, Debug)]
pub struct Fragment {
    /// The instruction.
    pub pc: u32,
    /// The lanes.
    pub mask: u32,
    /// Why they do not run.
    pub wait: Wait,
    /// How many calls deep they are.
    pub depth: u32,
    /// How often they were sent to the end of the queue for going in circles.
    pub penalty: u32,
    /// They may execute the instruction at hand though not everybody is there.
    pub go: bool,
    /// The calls they are in.
    pub frame: Option<Rc<Frame>>,
    /// Their function's place in local memory.
    pub local: u32,
}

impl Fragment {
    /// Whether two fragments at one instruction can be one.
    pub fn meets(&self, other: &Fragment) -> bool {
        self.pc == other.pc
            && self.depth == other.depth
            && self.local == other.local
            && match (&self.frame, &other.frame) {
                (None, None) => true,
                (Some(a), Some(b)) => Rc::ptr_eq(a, b),
                _ => false,
            }
    }
}

/// Cut-off for one lane's `mbarrier` and copy bookkeeping.
pub const LANES: usize = 32;

/// A warp.
pub struct Warp {
    /// Its registers.
    pub file: File,
    /// Its fragments; no two share a lane.
    pub fragments: Vec<Fragment>,
    /// Lanes that have not ended.
    pub live: u32,
    /// Its number within the block.
    pub id: u32,
    /// The thread coordinates of each lane.
    pub tid: [[u32; 32]; 3],
    /// Where each lane's stack ends, which grows down from the end of its local memory.
    pub stack: [u32; LANES],
    /// Instructions executed.
    pub executed: u64,
    /// What it has seen of the others.
    pub clock: Clock,
    /// `cp.async` copies not yet made.
    pub copies: Vec<LaneCopy>,
    /// The group each lane's next copy belongs to.
    pub copy_group: [u32; LANES],
    /// The same for bulk copies.
    pub bulk_group: [u32; LANES],
    /// What its engines do.
    pub engines: Engines,
    /// The warp asked to let others run.
    pub yielded: bool,
}

impl Warp {
    /// Whether any fragment could run now.
    pub fn has_ready(&self) -> bool {
        self.fragments.iter().any(|f| f.wait == Wait::Ready)
    }
    /// Whether all lanes have ended.
    pub fn is_done(&self) -> bool {
        self.live == 0
    }
}

/// A barrier of the block.
#[derive(Clone, Debug, Default)]
pub struct BlockBarrier {
    /// Lanes that came, by warp.
    pub arrived: Vec<u32>,
    /// How many threads it waits for; 0 for all of the block.
    pub expected: u32,
    /// Whether anybody came.
    pub used: bool,
    /// What those who came had seen.
    pub clock: Clock,
    /// Predicates counted.
    pub count: u32,
    /// Whether all held.
    pub all: bool,
    /// Whether any held.
    pub any: bool,
}

/// Number of barriers of a block.
pub const BARRIERS: usize = 16;

/// A block.
pub struct Block {
    /// Its coordinates in the grid.
    pub ctaid: [u32; 3],
    /// Its number in the grid.
    pub number: u64,
    /// Its rank in the cluster.
    pub rank: u32,
    /// Its shared memory.
    pub shared: Shared,
    /// The local memory of its threads, one after the other.
    pub local: Zeroed,
    /// Bytes of one thread's.
    pub local_bytes: u32,
    /// Its warps. The one that runs is taken out meanwhile.
    pub warps: Vec<Option<Warp>>,
    /// Its barriers.
    pub barriers: Vec<BlockBarrier>,
    /// Its tensor memory, once it is used.
    pub tensor: Option<crate::simulator::tensor::TensorMemory>,
    /// What the last release and acquire of global memory were.
    pub released: u32,
    /// See `released`.
    pub acquired: u32,
}

/// The barrier of a cluster.
#[derive(Clone, Debug, Default)]
pub struct ClusterBarrier {
    /// Lanes that came in this phase, by warp of the cluster.
    pub arrived: Vec<u32>,
    /// Lanes whose phase is complete and who have not waited yet, by warp.
    pub passed: Vec<u32>,
    /// What those who came in this phase had seen.
    pub clock: Clock,
    /// What those who came in the last phase had seen.
    pub seen: Clock,
}

/// Blocks that run together.
pub struct Cluster {
    /// Its number in the grid.
    pub number: u64,
    /// Its coordinates among clusters.
    pub id: [u32; 3],
    /// Its blocks, by rank.
    pub blocks: Vec<Block>,
    /// Their numbers in the grid.
    pub mates: Vec<u64>,
    /// Its barrier.
    pub barrier: ClusterBarrier,
    /// Bulk copies not yet made.
    pub transfers: Vec<Transfer>,
    /// Clocks that releases through memory left, by shared address: block rank and offset.
    pub releases: std::collections::BTreeMap<(u32, u32), Clock>,
    /// Warps of one block.
    pub warps_per_block: usize,
    /// Counts arrivals and copies: what lets others go on.
    pub progress: u64,
}

impl Cluster {
    /// Whether all threads have ended.
    pub fn is_done(&self) -> bool {
        self.blocks
            .iter()
            .all(|b| b.warps.iter().flatten().all(Warp::is_done))
    }
    /// The number of a warp within the cluster.
    pub fn warp_number(&self, block: usize, warp: u32) -> usize {
        block * self.warps_per_block + warp as usize
    }
}
