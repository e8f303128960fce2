//! Which PTX ISA version to write for a capability, and which driver reads it.
//!
//! A newer version than needed shuts out older drivers, so the rule is the lowest that has the
//! instructions kernels use: `cp.async` and bf16 arithmetic (8.0) from Ampere on, bulk tensor copies
//! in their CTA form (8.6) from Hopper on. Source: the PTX ISA's release notes.

use crate::target::ComputeCapability;

/// The PTX ISA version to write, times ten.
pub fn ptx_version(capability: ComputeCapability) -> u32 {
    match (capability.major, capability.minor) {
        (0..=7, _) => 65,
        (8, _) => 80,
        (9, _) => 86,
        (10, 0) => 86,
        (10, _) => 88,
        (11, _) => 90,
        (12, 0) => 87,
        _ => 88,
    }
}

/// The CUDA driver version, as the driver reports it, that first compiles a PTX ISA version.
pub fn driver_for_ptx(version: u32) -> i32 {
    match version {
        0..=65 => 10020,
        70 => 11000,
        71 => 11010,
        72 => 11020,
        73 => 11030,
        74 => 11040,
        75 => 11050,
        76 => 11060,
        77 => 11070,
        66..=78 => 11080,
        79..=82 => 12000 + 10 * (version as i32 - 80).max(0),
        83 => 12030,
        84 => 12040,
        85 => 12050,
        86 => 12070,
        87 => 12080,
        88 => 12090,
        _ => 13000,
    }
}

/// The CUDA driver version that first knows a capability: code in any form needs it.
pub fn driver_for_capability(major: u32, minor: u32) -> i32 {
    match (major, minor) {
        (0..=6, _) => 8000,
        (7, 0) => 9000,
        (7, _) => 10000,
        (8, 0) => 11000,
        (8, 1..=6) => 11010,
        (8 | 9, _) => 11080,
        (10, 0 | 1) | (12, 0) => 12080,
        (10 | 12, _) => 12090,
        _ => 13000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::CapabilitySuffix;

    #[test]
    fn every_capability_has_a_version_its_driver_reads() {
        for (major, minor, version) in
            [(6, 0, 65), (8, 0, 80), (9, 0, 86), (10, 3, 88), (12, 0, 87)]
        {
            let suffix = CapabilitySuffix::None;
            let capability = ComputeCapability {
                major,
                minor,
                suffix,
            };
            assert_eq!(ptx_version(capability), version);
            let ptx = driver_for_ptx(version);
            assert!(ptx >= 10020 && driver_for_capability(major, minor) <= ptx.max(12080));
        }
        assert_eq!(driver_for_ptx(80), 12000);
        assert_eq!(driver_for_ptx(81), 12010);
        assert_eq!(driver_for_ptx(78), 11080);
    }
}
