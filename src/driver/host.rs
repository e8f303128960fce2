//! Whether this host can run a bundle.

use crate::base::Diagnostic;
#[cfg(feature = "loader")]
use crate::base::Result;
use crate::base::codes;
use crate::bundle;
use crate::bundle::Bundle;
use crate::target::HostInfo;

/// What this machine has for programs of its processor: no driver of a GPU is asked.
pub fn probe_cpu() -> HostInfo {
    #[cfg(feature = "cpu")]
    let host = crate::runtime::cpu::host::probe();
    #[cfg(not(feature = "cpu"))]
    let host = HostInfo::default();
    host
}

/// What this machine has for programs of a GPU.
#[cfg(feature = "loader")]
pub fn probe() -> HostInfo {
    let host = probe_cpu();
    #[cfg(feature = "cuda")]
    let host = crate::runtime::cuda::host::add(host);
    host
}

/// What a simulated GPU has.
///
/// # Errors
/// `XA8006` when there is no such GPU.
#[cfg(feature = "simulator")]
pub fn simulated(target: Option<String>, devices: usize, counts: bool) -> Result<HostInfo> {
    let api = crate::runtime::loaded::simulated(target, devices, counts)?;
    Ok(crate::runtime::cuda::host::add_devices(
        HostInfo::default(),
        api,
    ))
}

#[cfg(all(feature = "loader", not(feature = "simulator")))]
pub fn simulated(_: Option<String>, _: usize, _: bool) -> Result<HostInfo> {
    Err(crate::runtime::loaded::no_simulator())
}

/// Every reason why the bundle cannot run on a host.
pub fn check(bundle: &Bundle, host: &HostInfo) -> Vec<Diagnostic> {
    let reasons = bundle::host_check(bundle, host).into_iter();
    reasons
        .map(|reason| *Diagnostic::error(codes::HOST_MISMATCH, reason))
        .collect()
}
