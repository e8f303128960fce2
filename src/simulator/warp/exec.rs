//! The interpreter: fragments of a warp, instruction by instruction.

use crate::simulator::code::Inst;
use crate::simulator::code::Op;
use crate::simulator::launch::Report;
use crate::simulator::launch::ReportKind;
use crate::simulator::warp::state::Cluster;
use crate::simulator::warp::state::Fragment;
use crate::simulator::warp::state::Wait;
use crate::simulator::warp::state::Warp;
use crate::simulator::warp::worker::Fault;
use crate::simulator::warp::worker::Worker;

/// Instructions a warp executes before the next one has its turn.
const QUANTUM: u64 = 16_384;
/// Branches back that a fragment takes before another one of its warp has its turn.
const CIRCLES: u32 = 4096;

/// What comes after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next instruction.
    Next,
    /// Fragments have changed, or this one waits: choose again.
    Choose,
    /// The next instruction, after other warps had their turn.
    Yield,
    /// The same instruction, after other warps had their turn.
    Retry,
}

/// A warp being run.
pub struct Exec<'e, 'g> {
    /// The host thread.
    pub worker: &'e mut Worker<'g>,
    /// The cluster, with this warp taken out.
    pub cluster: &'e mut Cluster,
    /// The warp.
    pub warp: &'e mut Warp,
    /// The block's rank.
    pub block: usize,
    /// The fragment that runs.
    pub cur: Fragment,
    /// Lanes that execute the instruction at hand.
    pub mask: u32,
}

impl<'g> Exec<'_, 'g> {
    /// The instruction at hand.
    pub fn inst(&self) -> &'g Inst {
        &self.worker.grid.module.code[self.cur.pc as usize]
    }

    /// A report about the instruction at hand and one lane.
    pub fn report(&self, kind: ReportKind, lane: usize, message: String) -> Report {
        self.report_at(kind, lane, message, self.inst().line)
    }

    /// A report about another line.
    pub fn report_at(&self, kind: ReportKind, lane: usize, message: String, line: u32) -> Report {
        let grid = self.worker.grid;
        let lane = lane.min(31);
        Report {
            message,
            kernel: grid.function.name.clone(),
            line,
            text: grid.module.line(line).to_owned(),
            block: self.cluster.blocks[self.block].ctaid,
            thread: [0, 1, 2].map(|axis| self.warp.tid[axis][lane]),
            ..Report::new(kind)
        }
    }

    /// Notes a finding that does not end the launch.
    pub fn note(&mut self, report: Report) {
        let block = self.cluster.blocks[self.block].number;
        self.worker.note(block, report);
    }

    /// The first lane that executes.
    pub fn first_lane(&self) -> usize {
        self.mask.trailing_zeros().min(31) as usize
    }

    /// Runs the warp until it waits, ends, or has had its turn. Says how many instructions.
    ///
    /// # Errors
    /// With what ends the launch.
    pub fn run(&mut self) -> Result<u64, Fault> {
        let start = self.warp.executed;
        let limit = self.worker.grid.options.instruction_limit;
        self.warp.yielded = false;
        loop {
            if !self.choose() {
                break;
            }
            self.fragment(start + QUANTUM)?;
            if self.warp.executed > limit {
                let message = format!("a warp has executed more than {limit} instructions");
                let mut report =
                    self.report(ReportKind::InstructionLimit, self.first_lane(), message);
                report.thread = [0, 1, 2].map(|axis| {
                    self.warp.tid[axis][self.cur.mask.trailing_zeros().min(31) as usize]
                });
                return Err(Box::new(report));
            }
            if self.warp.yielded || self.warp.executed - start >= QUANTUM {
                break;
            }
        }
        self.settle_overwrites();
        Ok(self.warp.executed - start)
    }

    /// Takes the fragment that runs next out of the list.
    fn choose(&mut self) -> bool {
        let waits = |f: &Fragment| matches!(f.wait, Wait::Members | Wait::Aligned);
        if self.warp.fragments.iter().any(waits) {
            self.release();
        }
        let ready = self.warp.fragments.iter().enumerate();
        let ready = ready.filter(|(_, f)| f.wait == Wait::Ready);
        let best = ready.min_by_key(|(_, f)| (f.penalty, u32::MAX - f.depth, f.pc));
        let Some(index) = best.map(|(index, _)| index) else {
            return false;
        };
        self.cur = self.warp.fragments.swap_remove(index);
        // Everybody who is there comes along.
        let mut i = 0;
        while i < self.warp.fragments.len() {
            let other = &self.warp.fragments[i];
            if other.wait == Wait::Ready && other.meets(&self.cur) && other.go == self.cur.go {
                self.cur.mask |= other.mask;
                self.warp.fragments.swap_remove(i);
            } else {
                i += 1;
            }
        }
        true
    }

    /// Puts the fragment back into the list.
    fn put_back(&mut self) {
        if self.cur.mask != 0 {
            self.warp.fragments.push(self.cur.clone());
        }
    }

    /// Runs the chosen fragment until it meets another, waits, or the warp has had its turn.
    fn fragment(&mut self, until: u64) -> Result<(), Fault> {
        let code: &'g [Inst] = &self.worker.grid.module.code;
        let alone = self.warp.fragments.is_empty();
        let others = self.warp.fragments.iter();
        let others = others.filter(|f| f.wait == Wait::Ready && f.depth == self.cur.depth);
        let after = others.map(|f| f.pc).filter(|pc| *pc > self.cur.pc).min();
        let stop = after.unwrap_or(u32::MAX);
        let mut pc = self.cur.pc;
        let mut circles = 0u32;
        let counting = self.worker.counting;
        let mut executed = self.warp.executed;
        let mut watches = self.warp.engines.watches();
        loop {
            let inst = &code[pc as usize];
            let mut mask = self.cur.mask;
            if inst.guard.is_some() {
                let p = self.warp.file.predicate(inst.guard);
                mask &= if inst.negated { !p } else { p };
            }
            executed += 1;
            if counting {
                let count = &mut self.worker.counts[pc as usize];
                count[0] += 1;
                count[1] += u64::from(mask.count_ones());
            }
            if watches && mask != 0 {
                self.cur.pc = pc;
                self.mask = mask;
                self.watch();
            }
            match &inst.op {
                Op::Alu(run, args) => {
                    if mask != 0 {
                        self.warp.file.execute(*run, args, mask);
                    }
                    pc += 1;
                }
                Op::Branch(target) => {
                    if mask == self.cur.mask {
                        if *target <= pc {
                            circles += 1;
                            if executed >= until || (!alone && circles > CIRCLES) {
                                self.cur.penalty += u32::from(!alone && circles > CIRCLES);
                                pc = *target;
                                self.cur.pc = pc;
                                break;
                            }
                        }
                        pc = *target;
                    } else if mask == 0 {
                        pc += 1;
                    } else {
                        self.worker.stats.divergent_branches += 1;
                        let mut taken = self.cur.clone();
                        taken.mask = mask;
                        taken.pc = *target;
                        self.warp.fragments.push(taken);
                        self.cur.mask &= !mask;
                        self.cur.pc = pc + 1;
                        break;
                    }
                }
                Op::Nop => pc += 1,
                _ => {
                    self.cur.pc = pc;
                    self.mask = mask;
                    self.warp.executed = executed;
                    if mask == 0 {
                        pc += 1;
                    } else {
                        let flow = self.step(inst)?;
                        watches = self.warp.engines.watches();
                        match flow {
                            Flow::Next => {
                                self.cur.go = false;
                                pc += 1;
                            }
                            Flow::Choose => break,
                            Flow::Retry => {
                                self.warp.yielded = true;
                                break;
                            }
                            Flow::Yield => {
                                self.cur.go = false;
                                self.cur.pc = pc + 1;
                                self.warp.yielded = true;
                                break;
                            }
                        }
                    }
                }
            }
            if pc >= stop {
                self.cur.pc = pc;
                break;
            }
            if executed >= until && alone {
                self.cur.pc = pc;
                break;
            }
        }
        self.warp.executed = executed;
        self.put_back();
        Ok(())
    }

    /// An instruction that is more than registers and branches.
    fn step(&mut self, inst: &'g Inst) -> Result<Flow, Fault> {
        match &inst.op {
            Op::Load(access) => self.load(access),
            Op::Store(access) => self.store(access),
            Op::Special(which, d, wide) => {
                self.special(*which, *d, *wide);
                Ok(Flow::Next)
            }
            Op::Exit => Ok(self.exit()),
            Op::Return => self.leave(),
            Op::Call(call) => self.enter(call),
            Op::Stack(stack) => self.stack(stack),
            Op::Atomic(atomic) => self.atomic(atomic),
            Op::Collective(collective) => self.collective(collective),
            Op::Barrier(barrier) => self.barrier(barrier),
            Op::BranchIndex(index, targets) => self.branch_index(*index, targets),
            Op::Trap => {
                let report = self.report(ReportKind::Trap, self.first_lane(), "trap".to_owned());
                Err(Box::new(report))
            }
            Op::Fence(proxy) => {
                self.fence(*proxy);
                Ok(Flow::Next)
            }
            Op::ClusterArrive => self.cluster_arrive(),
            Op::ClusterWait => self.cluster_wait(),
            Op::IsSpace(p, a, space) => {
                self.is_space(*p, *a, *space);
                Ok(Flow::Next)
            }
            Op::MapAddress(d, a, rank, generic, wide) => {
                self.map_address(*d, *a, *rank, *generic, *wide)
            }
            Op::GetRank(d, a, generic, wide) => {
                self.get_rank(*d, *a, *generic, *wide);
                Ok(Flow::Next)
            }
            Op::Mbarrier(mbarrier) => self.mbarrier(mbarrier),
            Op::CopyAsync(copy) => self.copy_async(copy),
            Op::CopyCommit => {
                self.copy_commit();
                Ok(Flow::Next)
            }
            Op::CopyWait(count) => self.copy_wait(*count),
            Op::Bulk(bulk) => self.bulk(bulk),
            Op::BulkTensor(copy) => self.bulk_tensor(copy),
            Op::BulkCommit => {
                self.bulk_commit();
                Ok(Flow::Next)
            }
            Op::BulkWait(count) => self.bulk_wait(*count),
            Op::StoreAsync(access, bar, reduce) => self.store_async(access, bar, *reduce),
            Op::StoreBulk(address, bytes) => self.store_bulk(address, *bytes),
            Op::Mma(mma) => self.mma(mma),
            Op::MatrixMove(m) => self.matrix_move(m),
            Op::MoveMatrix(d, a) => self.move_matrix(*d, *a),
            Op::Wmma(w) => self.wmma(w),
            Op::Wgmma(w) => self.wgmma(w),
            Op::WgmmaFence => {
                self.product_fence();
                Ok(Flow::Next)
            }
            Op::WgmmaCommit => {
                self.product_commit();
                Ok(Flow::Next)
            }
            Op::WgmmaWait(count) => {
                self.product_wait(*count);
                Ok(Flow::Next)
            }
            Op::Tensor5(op) => self.tensor5(op),
            Op::MapReplace(m) => self.map_replace(m),
            Op::MapCopy(both) => self.map_copy(&both.0, &both.1),
            Op::Alu(..) | Op::Branch(_) | Op::Nop => Ok(Flow::Next),
        }
    }

    /// Ends the lanes that execute.
    pub fn exit(&mut self) -> Flow {
        self.warp.live &= !self.mask;
        self.cur.mask &= !self.mask;
        self.cur.pc += 1;
        Flow::Choose
    }

    /// Makes the lanes that do not execute a fragment of their own, after the instruction.
    pub fn part(&mut self) {
        let rest = self.cur.mask & !self.mask;
        if rest != 0 {
            let mut other = self.cur.clone();
            other.mask = rest;
            other.pc += 1;
            other.wait = Wait::Ready;
            other.go = false;
            self.warp.fragments.push(other);
            self.cur.mask = self.mask;
        }
    }

    /// An instruction of the whole warp: waits for the lanes that are elsewhere. `None` when
    /// everybody is there, or nobody else will come.
    pub fn gather_warp(&mut self) -> Option<Flow> {
        if self.mask == self.warp.live || self.cur.go {
            return None;
        }
        self.part();
        self.cur.wait = Wait::Aligned;
        Some(Flow::Choose)
    }

    fn branch_index(
        &mut self,
        index: crate::simulator::warp::lanes::Slot,
        targets: &[u32],
    ) -> Result<Flow, Fault> {
        let indices = *self.warp.file.read::<u32>(index);
        self.part();
        let mut left = self.mask;
        let mut splits = 0;
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            let Some(target) = targets.get(indices[lane] as usize) else {
                let message = format!(
                    "index {} into a list of {} targets",
                    indices[lane],
                    targets.len()
                );
                return Err(Box::new(self.report(
                    ReportKind::IllegalInstruction,
                    lane,
                    message,
                )));
            };
            let same = (0..32).filter(|l| left >> l & 1 != 0 && indices[*l] == indices[lane]);
            let same = same.fold(0u32, |mask, l| mask | 1 << l);
            let mut other = self.cur.clone();
            other.mask = same;
            other.pc = *target;
            self.warp.fragments.push(other);
            left &= !same;
            splits += 1;
        }
        self.worker.stats.divergent_branches += u64::from(splits > 1);
        self.cur.mask = 0;
        Ok(Flow::Choose)
    }
}
