//! Whether this host can run a bundle.

use crate::base::Diagnostic;
use crate::base::codes;
use crate::bundle;
use crate::bundle::Bundle;
use crate::target::HostInfo;

/// What this machine has.
pub fn probe() -> HostInfo {
    #[cfg(feature = "cpu")]
    let host = crate::runtime::cpu::host::probe();
    #[cfg(not(feature = "cpu"))]
    let host = HostInfo::default();
    #[cfg(feature = "cuda")]
    let host = crate::runtime::cuda::host::add(host);
    host
}

/// Every reason why the bundle cannot run here, and warnings where it may not.
pub fn check(bundle: &Bundle) -> Vec<Diagnostic> {
    let reasons = bundle::host_check(bundle, &probe()).into_iter();
    let findings = reasons.map(|reason| {
        if reason.is_fatal {
            *Diagnostic::error(codes::HOST_MISMATCH, reason.message)
        } else {
            *Diagnostic::warning(codes::HOST_MISMATCH, reason.message)
        }
    });
    findings.collect()
}
