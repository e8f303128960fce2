//! How many devices run a program, as the program and the caller say.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
pub use crate::collective::Topology;

/// The devices that the caller asks for; what it leaves open is as the program has it.
///
/// # Errors
/// `XA8001` when there would be too many.
pub fn chosen(own: Topology, replicas: Option<u32>, partitions: Option<u32>) -> Result<Topology> {
    let replicas = replicas.unwrap_or(own.replicas);
    let partitions = partitions.unwrap_or(own.partitions);
    let found = Topology::new(i64::from(replicas), i64::from(partitions));
    found.map_err(|why| Diagnostic::error(codes::INPUT_MISMATCH, why))
}

/// A compiled program runs on the devices that it was compiled for and on no others.
///
/// # Errors
/// `XA8001` when the caller asks for others.
pub fn check(own: Topology, asked: Topology) -> Result<()> {
    if own == asked {
        return Ok(());
    }
    let message = format!("the bundle is for {own}, not for {asked}");
    Err(Diagnostic::error(codes::INPUT_MISMATCH, message)
        .help("`compile` takes --num-replicas and --num-partitions"))
}
