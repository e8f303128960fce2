//! How many blocks of a kernel fit a multiprocessor.

use crate::target::GpuSpec;

/// How many blocks fit a multiprocessor, and what limits them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Occupancy {
    /// Blocks at once on one multiprocessor.
    pub blocks: u32,
    /// Warps at once on one multiprocessor.
    pub warps: u32,
    /// Warps over the most the multiprocessor holds.
    pub fraction: f64,
    /// `threads`, `registers`, `shared` or `blocks`.
    pub limit: &'static str,
}

/// Registers of a multiprocessor.
const REGISTERS: u32 = 65_536;

/// Most blocks of one multiprocessor.
fn most_blocks(spec: &GpuSpec) -> u32 {
    match (spec.capability.major, spec.capability.minor) {
        (7, 5) | (8, 6 | 7) => 16,
        (8, 9) | (12, _) => 24,
        _ => 32,
    }
}

/// The occupancy of blocks of `threads` threads, each with `registers` registers, which take
/// `shared` bytes of shared memory a block.
pub fn occupancy(spec: &GpuSpec, threads: u32, registers: u32, shared: u64) -> Occupancy {
    let warps = threads.div_ceil(32).max(1);
    let most_warps = (spec.threads_per_core / 32).max(1);
    let per_core = spec.shared_per_block_optin.0.max(spec.shared_per_block.0) + 1024;
    // Registers come in units of 256 a warp.
    let per_warp = (registers.clamp(16, 255) * 32).next_multiple_of(256);
    let by_registers = (REGISTERS / per_warp) / warps;
    let reserved = if spec.capability.major >= 8 { 1024 } else { 0 };
    let by_shared = match shared + reserved {
        0 => u32::MAX,
        bytes => u32::try_from(per_core / bytes).unwrap_or(u32::MAX),
    };
    let limits = [
        ("threads", most_warps / warps),
        ("registers", by_registers),
        ("shared", by_shared),
        ("blocks", most_blocks(spec)),
    ];
    let mut least = limits[0];
    for limit in limits {
        if limit.1 < least.1 {
            least = limit;
        }
    }
    Occupancy {
        blocks: least.1,
        warps: least.1 * warps,
        fraction: f64::from(least.1 * warps) / f64::from(most_warps),
        limit: least.0,
    }
}
