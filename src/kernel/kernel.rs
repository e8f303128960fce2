//! Kernels: parameters, scratch memory, values and a body.

use crate::base::Arena;
use crate::define_id;
use crate::executable::KernelId;
use crate::executable::Launch;
use crate::kernel::Block;
use crate::kernel::Expr;
use crate::kernel::ExprId;
use crate::kernel::Scalar;
use crate::kernel::Stmt;
use crate::kernel::TileDot;
use crate::kernel::TileOp;

define_id! {
    /// A buffer of a kernel: a parameter or scratch memory.
    pub struct BufId, "b";
}

/// Where a buffer lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Memory of the device, handed in as a parameter.
    Global,
    /// Memory of one workgroup. On a CPU: of the thread that runs the group.
    Shared,
    /// Memory of one workitem.
    Private,
    /// Memory of the loaded kernel: zero at first, it keeps what launches write. GPUs only.
    Kept,
}

/// A buffer of `count` elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Name, for people.
    pub name: String,
    /// Element type as loads and stores see it. Complex arrays are twice as many floats; sub-byte
    /// and 8-bit float arrays are bytes; `pred` is `i8`.
    pub elem: Scalar,
    /// Number of elements.
    pub count: u64,
    /// Where it lives.
    pub space: Space,
    /// Alignment of the first element in bytes.
    pub align: u64,
    /// Whether the kernel writes to it.
    pub written: bool,
    /// Whether no other parameter of the kernel overlaps it.
    pub noalias: bool,
}

/// A kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// Its id in the executable.
    pub id: KernelId,
    /// Symbol name.
    pub name: String,
    /// Parameters first (`Space::Global`, in argument order), then scratch buffers.
    pub buffers: Arena<BufId, Buffer>,
    /// Size of its launches.
    pub launch: Launch,
    /// Values.
    pub exprs: Arena<ExprId, Expr>,
    /// Code.
    pub body: Block,
}

impl Kernel {
    /// The parameters, in argument order.
    pub fn params(&self) -> impl Iterator<Item = (BufId, &Buffer)> {
        self.buffers
            .iter()
            .filter(|(_, b)| b.space == Space::Global)
    }

    /// What the kernel multiplies by tiles.
    pub fn tile_dots(&self) -> Vec<TileDot> {
        let mut found = Vec::new();
        let mut work = vec![&self.body];
        while let Some(block) = work.pop() {
            for stmt in &block.0 {
                match stmt {
                    Stmt::Tile(TileOp::Dot { kind, .. }) => found.push(*kind),
                    Stmt::For { body, .. } => work.push(body),
                    Stmt::While { before, body, .. } => work.extend([before, body]),
                    Stmt::If {
                        then, otherwise, ..
                    } => work.extend([then, otherwise]),
                    _ => {}
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Byte offset of each shared buffer when they lie one after the other, and the total size.
    ///
    /// A GPU kernel whose `launch.shared_bytes` is not zero keeps its shared buffers in dynamic
    /// shared memory with this layout; `launch.shared_bytes` is then at least the total.
    pub fn shared_layout(&self) -> (Vec<(BufId, u64)>, u64) {
        let mut offsets = Vec::new();
        let mut end = 0u64;
        for (id, buffer) in self.buffers.iter() {
            if buffer.space == Space::Shared {
                let start = end.next_multiple_of(buffer.align.max(16));
                offsets.push((id, start));
                end = start + buffer.count * buffer.elem.bytes();
            }
        }
        (offsets, end)
    }
}
