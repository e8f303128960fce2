//! `tcgen05.cp`: from shared memory to tensor memory.

use crate::base::Result;
use crate::simulator::tensor::tcgen::descriptor::{descriptor, read};
use crate::simulator::tensor::tcgen::memory::TensorMemory;
use crate::simulator::tensor::tcgen::numbers::widened;
use crate::simulator::tensor::words::Modifiers;

/// A decoded `tcgen05.cp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcgen05Copy {
    rows: usize,
    chunks: usize,
    /// Bits of an element in shared memory that gets eight in tensor memory; eight for no change.
    bits: usize,
    /// The groups of 32 lanes that get rows 0 to 31, and those that get the following.
    warps: &'static [&'static [usize]],
}

impl Tcgen05Copy {
    /// Decodes the modifiers that follow the opcode `tcgen05`, `cp` first.
    ///
    /// # Errors
    /// When the combination is not one of the instruction set's, or not covered.
    pub fn parse<S: AsRef<str>>(modifiers: &[S]) -> Result<Self> {
        let mut m = Modifiers::new("tcgen05", modifiers);
        if !m.take("cp") || !m.take("cta_group::1") {
            return Err(m.refuse("is not a copy of one block"));
        }
        let shape = m.need("shape", |w| w.ends_with('b').then_some(w))?;
        let spread = m.find(|w| w.starts_with("warpx").then_some(w));
        let widens = m.take("b8x16");
        let bits = m.find(|w| match w {
            "b6x16_p32" => Some(6),
            "b4x16_p64" => Some(4),
            _ => None,
        });
        if widens != bits.is_some() {
            return Err(m.refuse("needs both formats or none"));
        }
        m.finish()?;
        let (rows, chunks, warps): (_, _, &[&[usize]]) = match (shape, spread) {
            ("128x256b", None) => (128, 2, &[&[0], &[1], &[2], &[3]]),
            ("128x128b", None) => (128, 1, &[&[0], &[1], &[2], &[3]]),
            ("4x256b", None) => (4, 2, &[&[0]]),
            ("64x128b", Some("warpx2::02_13")) => (64, 1, &[&[0, 2], &[1, 3]]),
            ("64x128b", Some("warpx2::01_23")) => (64, 1, &[&[0, 1], &[2, 3]]),
            ("32x128b", Some("warpx4")) => (32, 1, &[&[0, 1, 2, 3]]),
            _ => return Err(m.refuse("has a shape that does not exist")),
        };
        Ok(Self {
            rows,
            chunks,
            bits: bits.unwrap_or(8),
            warps,
        })
    }
    /// From shared memory, by a descriptor, to tensor memory.
    ///
    /// # Errors
    /// When the descriptor is not one, leads out of `shared`, or the place is not allocated.
    pub fn execute(
        &self,
        memory: &mut TensorMemory,
        address: u32,
        from: u64,
        shared: &[u8],
    ) -> Result<()> {
        let from = descriptor(from)?;
        let (lane, column) = ((address >> 16) as usize, address as usize & 0xffff);
        for row in 0..self.rows {
            for c in 0..self.chunks {
                let words = read(shared, from.k_major(row as u32, c as u32))?;
                let words = match self.bits {
                    8 => words,
                    bits => widened(&words, bits),
                };
                for warp in self.warps[row / 32] {
                    for (i, word) in words.into_iter().enumerate() {
                        memory.set(lane + 32 * warp + row % 32, column + 4 * c + i, word)?;
                    }
                }
            }
        }
        Ok(())
    }
}
