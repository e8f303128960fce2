//! The order in which several arrays are moved "at the same time".

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::executable::Slice;

/// One array to be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Leaf it belongs to.
    pub leaf: usize,
    /// From.
    pub source: Slice,
    /// To.
    pub destination: Slice,
}

/// The moves that do something, in an order in which no source is overwritten before it is read.
///
/// # Errors
/// `XA9001` when they form a cycle, which copies in the module prevent.
pub fn in_order(moves: &[Move]) -> Result<Vec<Move>> {
    let mut left: Vec<Move> = moves
        .iter()
        .copied()
        .filter(|m| m.source != m.destination && m.source.size > 0)
        .collect();
    let stay = moves.iter().filter(|m| m.source == m.destination);
    let stay: Vec<Slice> = stay.map(|m| m.source).collect();
    let mut out = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let free = left.iter().position(|m| {
            let others = left.iter().filter(|o| o.leaf != m.leaf);
            !others.map(|o| o.source).any(|s| s.overlaps(&m.destination))
        });
        let Some(free) = free else {
            return Err(Diagnostic::internal(
                codes::INTERNAL,
                "arrays are to be moved in a circle",
            ));
        };
        let next = left.remove(free);
        if stay.iter().any(|s| s.overlaps(&next.destination)) {
            return Err(Diagnostic::internal(
                codes::INTERNAL,
                "an array is moved onto one that stays",
            ));
        }
        out.push(next);
    }
    Ok(out)
}
