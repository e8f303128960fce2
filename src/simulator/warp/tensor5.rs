//! `tcgen05`: the tensor memory of a block.
//!
//! Everything is done when it is issued, so that waits and fences have nothing to wait for.

use crate::base::Diagnostic;
use crate::simulator::code::Tensor5;
use crate::simulator::code::Tensor5Mma;
use crate::simulator::launch::ReportKind;
use crate::simulator::memory::raw;
use crate::simulator::tensor::Tcgen05A;
use crate::simulator::tensor::Tcgen05Args;
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
        let whole = !matches!(op, Tensor5::Mma(_) | Tensor5::Commit(_) | Tensor5::Copy(..));
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
            Tensor5::Commit(address) => {
                self.release_at(address);
                for lane in self.lanes() {
                    let host = self.mbarrier_of(address, lane)?;
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
            }
        }
        Ok(Flow::Next)
    }

    fn tensor5_mma(&mut self, mma: &Tensor5Mma, lane: usize) -> Result<(), Fault> {
        let word = |slot| self.warp.file.read::<u32>(slot)[lane];
        let mut disabled = [0; 4];
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
            enable_d: enable != mma.negated,
            scale_d: mma.scale,
            disabled,
        };
        let block = &mut self.cluster.blocks[self.block];
        let memory = block.tensor.get_or_insert_default();
        let done = mma.op.execute(memory, block.shared.bytes(), &args);
        self.worker.stats.tensor_flops += mma.op.flops(args.instruction);
        done.map_err(|e| self.tensor_fault(lane, &e))
    }
}
