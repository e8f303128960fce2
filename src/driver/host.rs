//! Whether this host can run a bundle.

use crate::base::Diagnostic;
#[cfg(feature = "loader")]
use crate::base::Result;
use crate::base::codes;
use crate::bundle;
use crate::bundle::Bundle;
#[cfg(feature = "loader")]
use crate::runtime::DeviceChoice;
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

/// What there is to run on when that device was chosen.
///
/// # Errors
/// `XA8006` when there is no simulated device of that name.
#[cfg(feature = "loader")]
pub fn probe_for(device: &DeviceChoice, counts: bool) -> Result<HostInfo> {
    match device {
        DeviceChoice::Fitting | DeviceChoice::Cpu | DeviceChoice::Cuda(_) => Ok(probe()),
        DeviceChoice::Simulated(target) => simulated(target.clone(), counts),
    }
}

#[cfg(feature = "simulator")]
fn simulated(target: Option<String>, counts: bool) -> Result<HostInfo> {
    let api = crate::runtime::loaded::simulated(target, counts)?;
    Ok(crate::runtime::cuda::host::add_devices(
        HostInfo::default(),
        api,
    ))
}

#[cfg(all(feature = "loader", not(feature = "simulator")))]
fn simulated(_: Option<String>, _: bool) -> Result<HostInfo> {
    Err(crate::runtime::loaded::no_simulator())
}

/// Every reason why the bundle cannot run on a host, and warnings where it may not.
pub fn check(bundle: &Bundle, host: &HostInfo) -> Vec<Diagnostic> {
    let reasons = bundle::host_check(bundle, host).into_iter();
    let findings = reasons.map(|reason| {
        if reason.is_fatal {
            *Diagnostic::error(codes::HOST_MISMATCH, reason.message)
        } else {
            *Diagnostic::warning(codes::HOST_MISMATCH, reason.message)
        }
    });
    findings.collect()
}
