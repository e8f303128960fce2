//! Matrix instructions.
#![allow(
    unsafe_code,
    reason = "products come in a form with vector instructions"
)]

use crate::simulator::code::MatrixMoveInst;
use crate::simulator::code::MmaInst;
use crate::simulator::code::Reg;
use crate::simulator::code::WgmmaInst;
use crate::simulator::code::WmmaInst;
use crate::simulator::launch::ReportKind;
use crate::simulator::memory::Engine;
use crate::simulator::memory::raw;
use crate::simulator::memory::window;
use crate::simulator::tensor;
use crate::simulator::tensor::Lanes;
use crate::simulator::tensor::Wmma;
use crate::simulator::tensor::WmmaMma;
use crate::simulator::warp::exec::Exec;
use crate::simulator::warp::exec::Flow;
use crate::simulator::warp::lanes::Class;
use crate::simulator::warp::lanes::Slot;
use crate::simulator::warp::resolve::Usage;
use crate::simulator::warp::worker::Fault;

/// A function in two forms, and a door that takes the right one.
macro_rules! both {
    ($name:ident, ($($v:ident : $t:ty),*) -> $r:ty, $body:expr) => {
        fn $name(wide: bool, $($v: $t),*) -> $r {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma,bmi2,lzcnt,popcnt")]
                fn with($($v: $t),*) -> $r {
                    $body
                }
                if wide {
                    // SAFETY: `wide` says that the processor has these.
                    return unsafe { with($($v),*) };
                }
            }
            $body
        }
    };
}

both!(make_mma, (mma: &tensor::Mma, d: &mut [Lanes], a: &[Lanes], b: &[Lanes], c: &[Lanes], x: &tensor::Extra<'_>) -> (), {
    mma.execute(d, a, b, c, x)
});
both!(make_wmma, (mma: &WmmaMma, d: &mut [Lanes], a: &[Lanes], b: &[Lanes], c: &[Lanes]) -> (), {
    mma.execute(d, a, b, c)
});
both!(make_wgmma, (op: &tensor::Wgmma, d: &mut [Lanes], a: tensor::WgmmaA<'_>, b: u64, shared: &[u8], x: &tensor::WgmmaArgs<'_>) -> Result<(), tensor::OutOfShared>, {
    op.execute(d, a, b, shared, x)
});

/// The words of a list of registers.
fn words_of(list: &[Reg]) -> usize {
    list.iter()
        .map(|r| if r.class == Class::W64 { 2 } else { 1 })
        .sum()
}

impl Exec<'_, '_> {
    /// The words of registers.
    pub fn gather(&self, list: &[Reg]) -> Vec<Lanes> {
        let mut words = Vec::with_capacity(words_of(list));
        for reg in list {
            if reg.class == Class::W64 {
                let wide = self.warp.file.read::<u64>(reg.slot);
                words.push(wide.map(|v| v as u32));
                words.push(wide.map(|v| (v >> 32) as u32));
            } else {
                words.push(*self.warp.file.read::<u32>(reg.slot));
            }
        }
        words
    }

    /// Writes words to registers.
    pub fn scatter(&mut self, list: &[Reg], words: &[Lanes]) {
        let mut words = words.iter();
        for reg in list {
            let Some(low) = words.next() else { return };
            if reg.class == Class::W64 {
                let Some(high) = words.next() else { return };
                let wide = std::array::from_fn(|l| u64::from(low[l]) | u64::from(high[l]) << 32);
                self.warp.file.write::<u64>(reg.slot, self.mask, &wide);
            } else {
                self.warp.file.write::<u32>(reg.slot, self.mask, low);
            }
        }
    }

    /// An instruction of the whole warp; reports when it is not whole.
    fn whole(&mut self, what: &str) -> Option<Flow> {
        if let Some(flow) = self.gather_warp() {
            return Some(flow);
        }
        self.note_divergent(what);
        None
    }

    /// `mma`
    pub fn mma(&mut self, inst: &MmaInst) -> Result<Flow, Fault> {
        if let Some(flow) = self.whole("mma") {
            return Ok(flow);
        }
        let (a, b, c) = (
            self.gather(&inst.a),
            self.gather(&inst.b),
            self.gather(&inst.c),
        );
        let mut d = vec![[0; 32]; words_of(&inst.d)];
        let lane = self.first_lane();
        let read = |slot: Slot| *self.warp.file.read::<u32>(slot);
        let metadata = inst.metadata.is_some().then(|| read(inst.metadata));
        let scales = inst.scales.map(|both| {
            both.map(|(data, byte, thread)| (read(data), read(byte)[lane], read(thread)[lane]))
        });
        let mut extra = tensor::Extra {
            metadata: metadata.as_ref(),
            selector: inst.selector,
            ..tensor::Extra::default()
        };
        if let Some([one, two]) = &scales {
            extra.scale_a = Some(tensor::Scale {
                data: &one.0,
                byte: one.1,
                thread: one.2,
            });
            extra.scale_b = Some(tensor::Scale {
                data: &two.0,
                byte: two.1,
                thread: two.2,
            });
        }
        make_mma(self.worker.wide, &inst.mma, &mut d, &a, &b, &c, &extra);
        self.scatter(&inst.d, &d);
        Ok(Flow::Next)
    }

    /// `ldmatrix` and `stmatrix`: lane i has the address of row i.
    pub fn matrix_move(&mut self, inst: &MatrixMoveInst) -> Result<Flow, Fault> {
        let load = inst.op.is_load();
        if let Some(flow) = self.whole(if load { "ldmatrix" } else { "stmatrix" }) {
            return Ok(flow);
        }
        let count = inst.op.rows().min(32);
        let all = self.mask;
        self.mask &= if count >= 32 {
            u32::MAX
        } else {
            (1 << count) - 1
        };
        let usage = if load { Usage::Read } else { Usage::Write };
        let reached = self.reach(&inst.address, 16, 16, usage);
        self.mask = all;
        let reach = reached?;
        let mut rows = vec![[0u8; tensor::ROW_BYTES]; count];
        if load {
            for (row, host) in rows.iter_mut().zip(&reach.host) {
                if *host != 0 {
                    raw::read(*host, row);
                }
            }
            let mut d = vec![[0; 32]; inst.op.words()];
            inst.op.load(&rows, &mut d);
            self.scatter(&inst.data, &d);
        } else {
            let a = self.gather(&inst.data);
            inst.op.store(&a, &mut rows);
            for (row, host) in rows.iter().zip(&reach.host) {
                if *host != 0 {
                    raw::write(*host, row);
                }
            }
            self.settle_overwrites();
        }
        Ok(Flow::Next)
    }

    /// `movmatrix`
    pub fn move_matrix(&mut self, d: Slot, a: Slot) -> Result<Flow, Fault> {
        if let Some(flow) = self.whole("movmatrix") {
            return Ok(flow);
        }
        let moved = tensor::movmatrix(self.warp.file.read::<u32>(a));
        self.warp.file.write::<u32>(d, self.mask, &moved);
        Ok(Flow::Next)
    }

    /// `wmma`
    pub fn wmma(&mut self, inst: &WmmaInst) -> Result<Flow, Fault> {
        if let Some(flow) = self.whole("wmma") {
            return Ok(flow);
        }
        match &inst.op {
            Wmma::Mma(mma) => {
                let (a, b, c) = (
                    self.gather(&inst.a),
                    self.gather(&inst.b),
                    self.gather(&inst.c),
                );
                let mut d = vec![[0; 32]; words_of(&inst.d)];
                make_wmma(self.worker.wide, mma, &mut d, &a, &b, &c);
                self.scatter(&inst.d, &d);
            }
            Wmma::Load(m) | Wmma::Store(m) => {
                let Some(address) = &inst.address else {
                    return Ok(Flow::Next);
                };
                let load = matches!(inst.op, Wmma::Load(_));
                let stride = self.warp.file.read::<u32>(inst.stride)[self.first_lane()];
                let bytes = m.line_bytes();
                let mut lines = vec![0u8; bytes * m.lines()];
                if !load {
                    m.store(&self.gather(&inst.a), &mut lines);
                }
                let usage = if load { Usage::Read } else { Usage::Write };
                let all = self.mask;
                let lane = self.first_lane();
                for (index, line) in lines.chunks_mut(bytes.max(1)).enumerate() {
                    let mut at = *address;
                    at.offset = at.offset.wrapping_add(m.line_offset(index, stride) as i64);
                    self.mask = 1 << lane;
                    let reached = self.reach(&at, bytes as u32, 1, usage);
                    self.mask = all;
                    let host = reached?.host[lane];
                    if load {
                        raw::read(host, line);
                    } else {
                        raw::write(host, line);
                    }
                }
                self.settle_overwrites();
                if load {
                    let mut d = vec![[0; 32]; m.words()];
                    m.load(&lines, &mut d);
                    self.scatter(&inst.d, &d);
                }
            }
        }
        Ok(Flow::Next)
    }

    /// `wgmma.mma_async`: each warp of the four makes its own rows, at once. Until it is waited for
    /// nobody may use what it uses.
    pub fn wgmma(&mut self, inst: &WgmmaInst) -> Result<Flow, Fault> {
        if let Some(flow) = self.whole("wgmma") {
            return Ok(flow);
        }
        let lane = self.first_lane();
        let a = self.gather(&inst.a);
        let mut d = self.gather(&inst.d);
        let metadata = inst
            .metadata
            .is_some()
            .then(|| *self.warp.file.read::<u32>(inst.metadata));
        let scale_d = if inst.scale_d.is_some() {
            let p = self.warp.file.predicate(inst.scale_d);
            (p >> lane & 1 != 0) != inst.scale_d_negated
        } else {
            inst.scale_d_constant
        };
        let args = tensor::WgmmaArgs {
            warp: self.warp.id % 4,
            scale_d,
            negate_a: inst.negate_a,
            negate_b: inst.negate_b,
            transpose_a: inst.transpose_a,
            transpose_b: inst.transpose_b,
            metadata: metadata.as_ref(),
            selector: inst.selector,
        };
        let b = self.warp.file.read::<u64>(inst.b_descriptor)[lane];
        let from = if inst.a_descriptor.is_some() {
            tensor::WgmmaA::Shared(self.warp.file.read::<u64>(inst.a_descriptor)[lane])
        } else {
            tensor::WgmmaA::Registers(&a)
        };
        let ticket = self.product_begins(&inst.d, &inst.a);
        let shared = &self.cluster.blocks[self.block].shared;
        if shared.tracks_written() || shared.tracks_races() {
            let mut touched = Vec::new();
            inst.op
                .touched(from, b, &args, &mut |at, bytes| touched.push((at, bytes)));
            let size = shared.size();
            for (at, bytes) in touched {
                if u64::from(at) + u64::from(bytes) <= u64::from(size) {
                    let (work, place) = ((Engine::Product, ticket), (self.block, at));
                    self.note_engine(work, place, bytes, false, lane);
                }
            }
        }
        let shared = self.cluster.blocks[self.block].shared.bytes();
        let made = make_wgmma(self.worker.wide, &inst.op, &mut d, from, b, shared, &args);
        if let Err(out) = made {
            let message = format!(
                "a descriptor leads to byte {:#x} of shared memory",
                out.address
            );
            let address = window::SHARED + u64::from(out.address);
            return Err(self.refused(ReportKind::OutOfBounds, lane, message, address));
        }
        self.scatter(&inst.d, &d);
        Ok(Flow::Next)
    }
}
