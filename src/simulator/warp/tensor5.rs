//! `tcgen05`: the tensor memory of a block.
//!
//! Everything is done when it is issued, so that waits and fences have nothing to wait for.

use crate::base::Diagnostic;
use crate::simulator::code::Completion;
use crate::simulator::code::Tensor5;
use crate::simulator::code::Tensor5Mma;
use crate::simulator::launch::ReportKind;
use crate::simulator::memory::raw;
use crate::simulator::tensor::Tcgen05A;
use crate::simulator::tensor::Tcgen05Args;
use crate::simulator::tensor::Tcgen05Side;
use crate::simulator::tensor::TensorMemory;
use crate::simulator::warp::exec::Exec;
use crate::simulator::warp::exec::Flow;
use crate::simulator::warp::mbarrier::State;
use crate::simulator::warp::resolve::Usage;
use crate::simulator::warp::worker::Fault;

impl Exec<'_, '_> {
    fn tensor_memory(&mut self) -> &mut TensorMemory {
        self.cluster.blocks[self.block]
            .tensor
            .get_or_insert_default()
    }

    fn tensor_fault(&self, lane: usize, error: &Diagnostic) -> Fault {
        Box::new(self.report(ReportKind::IllegalInstruction, lane, error.message.clone()))
    }

    /// `tcgen05`
    pub fn tensor5(&mut self, op: &Tensor5) -> Result<Flow, Fault> {
        let whole = !matches!(
            op,
            Tensor5::Mma(_) | Tensor5::Commit(..) | Tensor5::Copy(..)
        );
        if whole && let Some(flow) = self.gather_warp() {
            return Ok(flow);
        }
        if whole {
            self.note_divergent("tcgen05");
        }
        let lane = self.first_lane();
        match op {
            Tensor5::Allocate(address, columns) => {
                let columns = self.warp.file.read::<u32>(*columns)[lane];
                let taken = self.tensor_memory().allocate(columns);
                match taken.map_err(|e| self.tensor_fault(lane, &e))? {
                    None => return Ok(Flow::Retry),
                    Some(at) => {
                        let all = self.mask;
                        self.mask = 1 << lane;
                        let reached = self.reach(address, 4, 4, Usage::Write);
                        self.mask = all;
                        raw::put(reached?.host[lane], at);
                    }
                }
            }
            Tensor5::Deallocate(at, columns) => {
                let at = self.warp.file.read::<u32>(*at)[lane];
                let columns = self.warp.file.read::<u32>(*columns)[lane];
                let given = self.tensor_memory().deallocate(at, columns);
                given.map_err(|e| self.tensor_fault(lane, &e))?;
            }
            Tensor5::Move(op, address, split, regs) => {
                let at = self.address_of_lane(address, lane) as u32;
                let warp = self.warp.id;
                if op.is_load() {
                    let mut d = vec![[0; 32]; op.words()];
                    let done = op.load(self.tensor_memory(), at, *split, warp, &mut d);
                    done.map_err(|e| self.tensor_fault(lane, &e))?;
                    self.scatter(regs, &d);
                } else {
                    let a = self.gather(regs);
                    let done = op.store(self.tensor_memory(), at, *split, warp, &a);
                    done.map_err(|e| self.tensor_fault(lane, &e))?;
                }
            }
            Tensor5::Copy(op, address, descriptor) => {
                for lane in self.lanes() {
                    let at = self.address_of_lane(address, lane) as u32;
                    let from = self.warp.file.read::<u64>(*descriptor)[lane];
                    let block = &mut self.cluster.blocks[self.block];
                    let memory = block.tensor.get_or_insert_default();
                    let done = op.execute(memory, at, from, block.shared.bytes());
                    done.map_err(|e| self.tensor_fault(lane, &e))?;
                }
            }
            Tensor5::Mma(mma) => {
                for lane in self.lanes() {
                    self.tensor5_mma(mma, lane)?;
                }
            }
            Tensor5::Commit(address, multicast) => {
                self.release_at(address);
                self.cluster.progress += 1;
                for lane in self.lanes() {
                    let receivers = self.receivers(*multicast, self.block, lane);
                    let bar = Completion::Mbarrier(*address);
                    for (host, _) in self.signals(&bar, *multicast, &receivers, false, 0, lane)? {
                        self.arrive(host, lane);
                    }
                }
            }
        }
        Ok(Flow::Next)
    }

    /// One arrival at a barrier object at a checked host address.
    fn arrive(&mut self, host: u64, lane: usize) {
        match State::of(raw::get::<u64>(host)) {
            Some(mut state) if state.pending > 0 => {
                state.pending -= 1;
                state.settle();
                raw::put(host, state.bits());
            }
            _ => {
                let message = "a commit arrives where nothing is missing".to_owned();
                self.note(self.report(ReportKind::MbarrierPhase, lane, message));
            }
        }
    }

    fn tensor5_mma(&mut self, mma: &Tensor5Mma, lane: usize) -> Result<(), Fault> {
        let word = |slot| self.warp.file.read::<u32>(slot)[lane];
        let mut disabled = [0; 8];
        for (to, slot) in disabled.iter_mut().zip(&mma.disabled) {
            *to = word(*slot);
        }
        let enable = self.warp.file.predicate(mma.enable) >> lane & 1 != 0;
        let args = Tcgen05Args {
            d: self.address_of_lane(&mma.d, lane) as u32,
            a: match &mma.a_tensor {
                Some(address) => Tcgen05A::Tensor(self.address_of_lane(address, lane) as u32),
                None => Tcgen05A::Shared(self.warp.file.read::<u64>(mma.a)[lane]),
            },
            b: self.warp.file.read::<u64>(mma.b)[lane],
            instruction: word(mma.instruction),
            scales: mma
                .scales
                .map(|both| both.map(|a| self.address_of_lane(&a, lane) as u32)),
            enable_d: enable != mma.negated,
            scale_d: mma.scale,
            disabled,
        };
        // A pair is a block of even rank and the next one.
        let (first, count) = match mma.op.is_pair() {
            true => (self.block & !1, 2),
            false => (self.block, 1),
        };
        let Some(blocks) = self.cluster.blocks.get_mut(first..first + count) else {
            let message = "the cluster has no other block for the pair".to_owned();
            let kind = ReportKind::IllegalInstruction;
            return Err(Box::new(self.report(kind, lane, message)));
        };
        let sides = blocks.iter_mut().map(|block| Tcgen05Side {
            memory: block.tensor.get_or_insert_default(),
            shared: block.shared.bytes(),
        });
        let mut sides: Vec<Tcgen05Side<'_>> = sides.collect();
        let done = mma.op.execute(&mut sides, &args);
        self.worker.stats.tensor_flops += mma.op.flops(args.instruction);
        done.map_err(|e| self.tensor_fault(lane, &e))
    }
}
