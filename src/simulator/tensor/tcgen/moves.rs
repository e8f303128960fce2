//! `tcgen05.ld` and `tcgen05.st`: between tensor memory and the registers of a warp.

use crate::base::Result;
use crate::simulator::tensor::Lanes;
use crate::simulator::tensor::tcgen::memory::{TensorMemory, fault};
use crate::simulator::tensor::words::Modifiers;

/// The pattern in which lanes and columns meet a warp's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    B32x32,
    B16x64,
    B16x128,
    B16x256,
    B16x32x2,
}

/// A decoded `tcgen05.ld` or `tcgen05.st`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcgen05Move {
    form: Form,
    load: bool,
    words: usize,
    /// Whether a register holds the lower halves of two columns.
    packed: bool,
}

impl Tcgen05Move {
    /// Decodes the modifiers that follow the opcode `tcgen05`, `ld` or `st` first.
    ///
    /// # Errors
    /// When the combination is not one of the instruction set's.
    pub fn parse<S: AsRef<str>>(modifiers: &[S]) -> Result<Self> {
        let mut m = Modifiers::new("tcgen05", modifiers);
        let load = m.take("ld");
        if !load && !m.take("st") {
            return Err(m.refuse("neither loads nor stores"));
        }
        if !m.take("sync") || !m.take("aligned") {
            return Err(m.refuse("needs `.sync.aligned`"));
        }
        let (form, each, most) = m.need("shape", |w| {
            Some(match w {
                "32x32b" => (Form::B32x32, 1, 128),
                "16x64b" => (Form::B16x64, 1, 128),
                "16x128b" => (Form::B16x128, 2, 64),
                "16x256b" => (Form::B16x256, 4, 32),
                "16x32bx2" => (Form::B16x32x2, 1, 128),
                _ => return None,
            })
        })?;
        let count = m.need("count", |w| {
            let count = w.strip_prefix('x')?.parse::<usize>().ok()?;
            (count.is_power_of_two() && count <= most).then_some(count)
        })?;
        let packed = m.take(if load { "pack::16b" } else { "unpack::16b" });
        if !m.take("b32") {
            return Err(m.refuse("needs `.b32`"));
        }
        m.finish()?;
        Ok(Self {
            form,
            load,
            words: each * count,
            packed,
        })
    }
    /// Whether it loads.
    pub fn is_load(&self) -> bool {
        self.load
    }
    /// How many registers it writes or reads.
    pub fn words(&self) -> usize {
        self.words
    }
    /// Whether an immediate says where the second half of the lanes begins.
    pub fn has_split(&self) -> bool {
        self.form == Form::B16x32x2
    }
    /// The lane and column of a thread's register, from the instruction's address.
    fn place(&self, thread: usize, register: usize, split: usize) -> (usize, usize) {
        let (g, t) = (thread >> 2, thread & 3);
        match self.form {
            Form::B32x32 => (thread, register),
            Form::B16x64 => (g + 8 * (t >> 1), 2 * register + (t & 1)),
            Form::B16x128 => (g + 8 * (register & 1), 4 * (register >> 1) + t),
            Form::B16x256 => (
                g + 8 * (register >> 1 & 1),
                8 * (register >> 2) + 2 * t + (register & 1),
            ),
            Form::B16x32x2 => (thread & 15, register + (thread >> 4) * split),
        }
    }
    fn check(&self, address: u32, warp: u32) -> Result<(usize, usize)> {
        let (lane, column) = ((address >> 16) as usize, address as usize & 0xffff);
        if lane / 32 != warp as usize % 4 {
            return Err(fault(format!(
                "warp {warp} reaches lane {lane}, which belongs to warp {} of its group",
                lane / 32
            )));
        }
        Ok((lane, column))
    }
    /// From tensor memory to the registers of the `warp`-th warp of the block.
    ///
    /// # Errors
    /// When the lanes are another warp's or not allocated.
    pub fn load(
        &self,
        memory: &TensorMemory,
        address: u32,
        split: u32,
        warp: u32,
        d: &mut [Lanes],
    ) -> Result<()> {
        let (lane, column) = self.check(address, warp)?;
        for (register, d) in d.iter_mut().enumerate().take(self.words) {
            for (thread, d) in d.iter_mut().enumerate() {
                let (l, c) = self.place(thread, register, split as usize);
                *d = if self.packed {
                    let low = memory.get(lane + l, column + 2 * c)? & 0xffff;
                    low | memory.get(lane + l, column + 2 * c + 1)? << 16
                } else {
                    memory.get(lane + l, column + c)?
                };
            }
        }
        Ok(())
    }
    /// From the registers of the `warp`-th warp of the block to tensor memory.
    ///
    /// # Errors
    /// When the lanes are another warp's or not allocated.
    pub fn store(
        &self,
        memory: &mut TensorMemory,
        address: u32,
        split: u32,
        warp: u32,
        a: &[Lanes],
    ) -> Result<()> {
        let (lane, column) = self.check(address, warp)?;
        for (register, a) in a.iter().enumerate().take(self.words) {
            for (thread, a) in a.iter().enumerate() {
                let (l, c) = self.place(thread, register, split as usize);
                if self.packed {
                    memory.set(lane + l, column + 2 * c, a & 0xffff)?;
                    memory.set(lane + l, column + 2 * c + 1, a >> 16)?;
                } else {
                    memory.set(lane + l, column + c, *a)?;
                }
            }
        }
        Ok(())
    }
}
