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
        (8, 9) | (11 | 12, _) => 24,
        _ => 32,
    }
}

/// Shared memory of one multiprocessor.
fn shared_per_core(spec: &GpuSpec) -> u64 {
    match (spec.capability.major, spec.capability.minor) {
        (6, 1) => 96 << 10,
        (6, _) => 64 << 10,
        (7, _) => spec.shared_per_block_optin.0,
        // What the system keeps of each block comes on top.
        _ => spec.shared_per_block_optin.0 + 1024,
    }
    .max(spec.shared_per_block.0)
}

/// The occupancy of blocks of `threads` threads, each with `registers` registers, which take
/// `shared` bytes of shared memory a block.
pub fn occupancy(spec: &GpuSpec, threads: u32, registers: u32, shared: u64) -> Occupancy {
    let warps = threads.div_ceil(32).max(1);
    let most_warps = (spec.threads_per_core / 32).max(1);
    // Registers come in units of 256 a warp, and a quarter of them belongs to a quarter of the warps.
    let per_warp = (registers.clamp(16, 255) * 32).next_multiple_of(256);
    let by_registers = (REGISTERS / 4 / per_warp) * 4 / warps;
    let (reserved, unit) = if spec.capability.major >= 8 {
        (1024, 128)
    } else {
        (0, 256)
    };
    let by_shared = match (shared + reserved).next_multiple_of(unit) {
        0 => u32::MAX,
        bytes => u32::try_from(shared_per_core(spec) / bytes).unwrap_or(u32::MAX),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ByteSize;
    use crate::target::CapabilitySuffix;
    use crate::target::ComputeCapability;

    fn spec(major: u32, minor: u32, threads: u32, optin: u64) -> GpuSpec {
        GpuSpec {
            name: "test".to_owned(),
            platform_version: String::new(),
            capability: ComputeCapability {
                major,
                minor,
                suffix: CapabilitySuffix::None,
            },
            ptx_version: 86,
            cores: 1,
            fpus_per_core: 128,
            threads_per_core: threads,
            threads_per_block: 1024,
            shared_per_block: ByteSize(48 << 10),
            shared_per_block_optin: ByteSize(optin << 10),
            l2_bytes: ByteSize(1 << 20),
            memory_bytes: ByteSize(1 << 30),
            bandwidth: 1e12,
            clock_ghz: 1.0,
            config_proto: Vec::new(),
            host: Default::default(),
        }
    }

    #[test]
    fn blocks_of_a_multiprocessor() {
        let h100 = spec(9, 0, 2048, 227);
        let of = |threads, registers, shared| {
            let found = occupancy(&h100, threads, registers, shared);
            (found.blocks, found.warps, found.limit)
        };
        assert_eq!(of(256, 32, 0), (8, 64, "threads"));
        assert_eq!(of(32, 16, 0), (32, 32, "blocks"));
        // 80 registers: 2560 a warp, 6 warps of each quarter's 16384.
        assert_eq!(of(128, 80, 0), (6, 24, "registers"));
        assert_eq!(of(256, 128, 0), (2, 16, "registers"));
        // 228 KiB hold two blocks of 100 KiB and 1 KiB more each, and four of 56 KiB.
        assert_eq!(of(128, 32, 100 << 10), (2, 8, "shared"));
        assert_eq!(of(128, 32, 56 << 10), (4, 16, "shared"));
        // The whole opt-in amount fits once.
        assert_eq!(of(128, 32, 227 << 10).0, 1);
        let v100 = spec(7, 0, 2048, 96);
        assert_eq!(occupancy(&v100, 128, 32, 48 << 10).blocks, 2);
        let p100 = spec(6, 0, 2048, 48);
        assert_eq!(occupancy(&p100, 128, 32, 16 << 10).blocks, 4);
    }
}
