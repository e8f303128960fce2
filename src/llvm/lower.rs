//! Kernel to LLVM function: buffers, statements, control flow.
//!
//! Loops are made bottom-tested, with no guard where the bounds are constants; loops to be unrolled
//! completely are written out. The kernel has passed `kernel::check`, so every value used is
//! defined before.

use llvm_sys::LLVMIntPredicate;

use crate::base::Diagnostic;
use crate::base::Id;
use crate::base::Result;
use crate::base::codes;
use crate::kernel::Block;
use crate::kernel::BufId;
use crate::kernel::Buffer;
use crate::kernel::Carried;
use crate::kernel::ExprId;
use crate::kernel::Kernel;
use crate::kernel::Merge;
use crate::kernel::Scalar;
use crate::kernel::Space;
use crate::kernel::Stmt;
use crate::kernel::Ty;
use crate::kernel::Unroll;
use crate::llvm::index::Facts;
use crate::llvm::ir::Blk;
use crate::llvm::ir::Ir;
use crate::llvm::ir::Md;
use crate::llvm::ir::Start;
use crate::llvm::ir::Type;
use crate::llvm::ir::Val;
use crate::llvm::session::Isa;
use crate::llvm::session::Machine;

/// Loops of more iterations are not written out even when the kernel asks for it.
const MAX_WRITTEN_OUT: i128 = 256;

/// A buffer as the code sees it.
pub(super) struct Place {
    /// Address of the first element.
    pub(super) ptr: Val,
    /// Element type in memory.
    pub(super) elem: Type,
    /// The accesses' own alias scope.
    pub(super) scope: Option<Md>,
    /// Scopes that the accesses stay out of.
    pub(super) others: Option<Md>,
    /// Whether nothing writes to the memory during the kernel.
    pub(super) invariant: bool,
}

/// Where the launch's numbers come from.
pub(super) enum Ids {
    /// Pointer to the three workgroup numbers.
    Cpu(Val),
    /// Special registers.
    Gpu,
}

/// The lowering of one kernel.
pub(super) struct Lower<'a> {
    pub(super) ir: Ir<'a>,
    pub(super) kernel: &'a Kernel,
    pub(super) machine: &'a Machine,
    pub(super) facts: Facts,
    pub(super) values: Vec<Option<Val>>,
    pub(super) places: Vec<Place>,
    pub(super) ids: Ids,
}

impl Lower<'_> {
    /// The value of an expression that has been computed.
    pub(super) fn value(&self, id: ExprId) -> Val {
        self.values[id.index()].expect("the kernel checker found every use after its definition")
    }

    /// The type of an expression.
    pub(super) fn kernel_ty(&self, id: ExprId) -> Ty {
        self.kernel.exprs[id].ty
    }

    fn define(&mut self, id: ExprId, value: Val) {
        self.values[id.index()] = Some(value);
    }

    /// What a kernel of this target may not hold.
    pub(super) fn unsupported(&self, what: &str) -> Box<Diagnostic> {
        Diagnostic::unsupported(
            codes::LLVM,
            format!(
                "kernel `{}` uses {what} on {:?}",
                self.kernel.name, self.machine.isa
            ),
        )
    }

    /// Lowers the whole body.
    pub(super) fn body(&mut self) -> Result<()> {
        let kernel = self.kernel;
        self.block(&kernel.body)
    }

    fn block(&mut self, block: &Block) -> Result<()> {
        for stmt in &block.0 {
            self.stmt(stmt)?;
        }
        Ok(())
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<()> {
        match stmt {
            Stmt::Let(id) => {
                let value = self.expr(*id)?;
                self.define(*id, value);
                Ok(())
            }
            Stmt::Store {
                buf,
                index,
                value,
                mask,
            } => self.store(*buf, *index, *value, *mask),
            Stmt::Scatter {
                buf,
                indices,
                value,
                mask,
            } => {
                self.scatter(*buf, *indices, *value, *mask);
                Ok(())
            }
            Stmt::AtomicRmw {
                op,
                buf,
                index,
                value,
            } => self.atomic_rmw(*op, *buf, *index, *value),
            Stmt::AtomicCas {
                buf,
                index,
                expected,
                desired,
                old,
            } => {
                let value = self.atomic_cas(*buf, *index, *expected, *desired);
                self.define(*old, value);
                Ok(())
            }
            Stmt::For {
                var,
                start,
                end,
                step,
                carried,
                body,
                unroll,
            } => self.counted(*var, (*start, *end, *step), carried, body, *unroll),
            Stmt::While {
                carried,
                before,
                cond,
                body,
            } => self.while_loop(carried, before, *cond, body),
            Stmt::If {
                cond,
                then,
                otherwise,
                merges,
            } => self.branch(*cond, then, otherwise, merges),
            Stmt::Barrier => {
                if self.machine.isa == Isa::Ptx {
                    let name = "llvm.nvvm.barrier.cta.sync.aligned.all";
                    self.ir.intrinsic(name, &[], &[self.ir.i32(0)]);
                }
                Ok(())
            }
            Stmt::Prefetch { buf, index } => {
                self.prefetch(*buf, *index);
                Ok(())
            }
            Stmt::Tile(op) => self.tile(op),
        }
    }

    fn counted(
        &mut self,
        var: ExprId,
        (start, end, step): (ExprId, ExprId, ExprId),
        carried: &[Carried],
        body: &Block,
        unroll: Unroll,
    ) -> Result<()> {
        let facts = [start, end, step].map(|id| self.facts.of(id));
        let constant = facts.iter().all(|f| f.low == f.high);
        let (first, last, by) = (facts[0].low, facts[1].low, facts[2].low.max(1));
        let trips = ((last - first).max(0) + by - 1) / by;
        let write_out = trips <= 1 || (unroll == Unroll::Full && trips <= MAX_WRITTEN_OUT);
        if constant && write_out {
            return self.written_out(var, (first, by, trips), carried, body);
        }
        let never_empty = constant || facts[0].high < facts[1].low;
        self.bottom_tested(
            var,
            (start, end, step),
            carried,
            body,
            (unroll, never_empty),
        )
    }

    /// A loop whose few iterations follow each other as straight code.
    fn written_out(
        &mut self,
        var: ExprId,
        (first, by, trips): (i128, i128, i128),
        carried: &[Carried],
        body: &Block,
    ) -> Result<()> {
        let mut current: Vec<Val> = carried.iter().map(|c| self.value(c.init)).collect();
        for trip in 0..trips {
            let at = self.ir.i64((first + trip * by) as u64);
            self.define(var, at);
            for (c, &value) in carried.iter().zip(&current) {
                self.define(c.phi, value);
            }
            self.block(body)?;
            current = carried.iter().map(|c| self.value(c.next)).collect();
        }
        for (c, value) in carried.iter().zip(current) {
            self.define(c.result, value);
        }
        Ok(())
    }

    fn bottom_tested(
        &mut self,
        var: ExprId,
        (start, end, step): (ExprId, ExprId, ExprId),
        carried: &[Carried],
        body: &Block,
        (unroll, never_empty): (Unroll, bool),
    ) -> Result<()> {
        let (start, end, step) = (self.value(start), self.value(end), self.value(step));
        let inits: Vec<Val> = carried.iter().map(|c| self.value(c.init)).collect();
        let before = self.ir.here();
        let (top, exit) = (self.ir.block(), self.ir.block());
        if never_empty {
            self.ir.br(top);
        } else {
            let enter = self.ir.icmp(LLVMIntPredicate::LLVMIntSLT, start, end);
            self.ir.cond_br(enter, top, exit);
        }
        self.ir.at(top);
        let counter = self.ir.phi(self.ir.type_of(start));
        self.ir.incoming(counter, start, before);
        self.define(var, counter);
        let phis = self.phis(carried, &inits, before);
        self.block(body)?;
        let latch = self.ir.here();
        let next = self.ir.add(counter, step);
        self.ir.no_signed_wrap(next);
        let again = self.ir.icmp(LLVMIntPredicate::LLVMIntSLT, next, end);
        let branch = self.ir.cond_br(again, top, exit);
        self.loop_hint(branch, unroll);
        self.ir.incoming(counter, next, latch);
        let nexts: Vec<Val> = carried.iter().map(|c| self.value(c.next)).collect();
        for (&phi, &next) in phis.iter().zip(&nexts) {
            self.ir.incoming(phi, next, latch);
        }
        self.ir.at(exit);
        for (i, c) in carried.iter().enumerate() {
            let mut result = nexts[i];
            if !never_empty {
                result = self.ir.phi(self.ir.type_of(nexts[i]));
                self.ir.incoming(result, inits[i], before);
                self.ir.incoming(result, nexts[i], latch);
            }
            self.define(c.result, result);
        }
        Ok(())
    }

    fn phis(&mut self, carried: &[Carried], inits: &[Val], before: Blk) -> Vec<Val> {
        let mut phis = Vec::new();
        for (c, &init) in carried.iter().zip(inits) {
            let phi = self.ir.phi(self.ir.type_of(init));
            self.ir.incoming(phi, init, before);
            self.define(c.phi, phi);
            phis.push(phi);
        }
        phis
    }

    fn loop_hint(&self, branch: Val, unroll: Unroll) {
        if unroll == Unroll::Never {
            let word = self.ir.md_string("llvm.loop.unroll.disable");
            let id = self.ir.distinct(&[self.ir.node(&[word])]);
            self.ir.annotate(branch, "llvm.loop", id);
        }
    }

    fn while_loop(
        &mut self,
        carried: &[Carried],
        before: &Block,
        cond: ExprId,
        body: &Block,
    ) -> Result<()> {
        let inits: Vec<Val> = carried.iter().map(|c| self.value(c.init)).collect();
        let entry = self.ir.here();
        let (top, inside, exit) = (self.ir.block(), self.ir.block(), self.ir.block());
        self.ir.br(top);
        self.ir.at(top);
        let phis = self.phis(carried, &inits, entry);
        self.block(before)?;
        let go_on = self.value(cond);
        self.ir.cond_br(go_on, inside, exit);
        self.ir.at(inside);
        self.block(body)?;
        let latch = self.ir.here();
        self.ir.br(top);
        for (c, &phi) in carried.iter().zip(&phis) {
            let next = self.value(c.next);
            self.ir.incoming(phi, next, latch);
        }
        self.ir.at(exit);
        for (c, &phi) in carried.iter().zip(&phis) {
            self.define(c.result, phi);
        }
        Ok(())
    }

    fn branch(
        &mut self,
        cond: ExprId,
        then: &Block,
        otherwise: &Block,
        merges: &[Merge],
    ) -> Result<()> {
        let cond = self.value(cond);
        let (yes, no, after) = (self.ir.block(), self.ir.block(), self.ir.block());
        self.ir.cond_br(cond, yes, no);
        self.ir.at(yes);
        self.block(then)?;
        let yes_values: Vec<Val> = merges.iter().map(|m| self.value(m.then)).collect();
        let yes_end = self.ir.here();
        self.ir.br(after);
        self.ir.at(no);
        self.block(otherwise)?;
        let no_values: Vec<Val> = merges.iter().map(|m| self.value(m.otherwise)).collect();
        let no_end = self.ir.here();
        self.ir.br(after);
        self.ir.at(after);
        for (i, m) in merges.iter().enumerate() {
            let phi = self.ir.phi(self.ir.type_of(yes_values[i]));
            self.ir.incoming(phi, yes_values[i], yes_end);
            self.ir.incoming(phi, no_values[i], no_end);
            self.define(m.result, phi);
        }
        Ok(())
    }

    /// Runs `build` only where `cond` holds.
    pub(super) fn when(&self, cond: Val, build: impl FnOnce(&Ir<'_>)) {
        let (yes, after) = (self.ir.block(), self.ir.block());
        self.ir.cond_br(cond, yes, after);
        self.ir.at(yes);
        build(&self.ir);
        self.ir.br(after);
        self.ir.at(after);
    }

    /// Gives every scratch buffer its memory and every buffer its alias scope. `params` are the
    /// addresses of the parameters in order. Called while the entry block is the current one.
    pub(super) fn place_buffers(&mut self, params: &[Val]) {
        let kernel = self.kernel;
        let dynamic = self.dynamic_shared();
        let mut params = params.iter();
        let domain = self.ir.distinct(&[]);
        let mut scopes = Vec::new();
        for (id, buffer) in kernel.buffers.iter() {
            let ptr = match buffer.space {
                Space::Global => *params
                    .next()
                    .expect("the ABI hands in one address for each parameter"),
                Space::Shared if self.machine.isa == Isa::Ptx => match &dynamic {
                    Some((base, offsets)) => self.dynamic_place(*base, offsets, id),
                    None => self.static_shared(id, buffer),
                },
                Space::Kept => self.kept(id, buffer),
                Space::Shared | Space::Private => self.stack(buffer),
            };
            let scope = buffer.noalias.then(|| self.ir.distinct(&[domain]));
            scopes.push(scope);
            self.places.push(Place {
                ptr,
                elem: self.ir.scalar(buffer.elem),
                scope: None,
                others: None,
                invariant: !buffer.written && buffer.noalias && buffer.space == Space::Global,
            });
        }
        for (i, own) in scopes.iter().enumerate() {
            let others: Vec<Md> = (0..scopes.len())
                .filter(|&j| j != i)
                .filter_map(|j| scopes[j])
                .collect();
            self.places[i].scope = own.map(|scope| self.ir.node(&[scope]));
            self.places[i].others = (!others.is_empty()).then(|| self.ir.node(&others));
        }
    }

    fn stack(&self, buffer: &Buffer) -> Val {
        let ty = self
            .ir
            .array(self.ir.scalar(buffer.elem), buffer.count.max(1));
        self.ir.alloca(ty, buffer.align.max(16))
    }

    fn static_shared(&self, id: BufId, buffer: &Buffer) -> Val {
        let ty = self
            .ir
            .array(self.ir.scalar(buffer.elem), buffer.count.max(1));
        let name = format!("{}_shared{}", self.kernel.name, id.index());
        self.ir
            .global(ty, &name, 3, buffer.align.max(16), Start::Undefined)
    }

    fn kept(&self, id: BufId, buffer: &Buffer) -> Val {
        let ty = self
            .ir
            .array(self.ir.scalar(buffer.elem), buffer.count.max(1));
        let name = format!("{}_kept{}", self.kernel.name, id.index());
        self.ir
            .global(ty, &name, 1, buffer.align.max(16), Start::Zero)
    }

    fn dynamic_shared(&self) -> Option<(Val, Vec<(BufId, u64)>)> {
        if self.kernel.launch.shared_bytes == 0 || self.machine.isa != Isa::Ptx {
            return None;
        }
        let ty = self.ir.array(self.ir.scalar(Scalar::I8), 0);
        let base = self.ir.global(ty, "shared_memory", 3, 128, Start::Outside);
        Some((base, self.kernel.shared_layout().0))
    }

    fn dynamic_place(&self, base: Val, offsets: &[(BufId, u64)], id: BufId) -> Val {
        let offset = offsets
            .iter()
            .find(|(b, _)| *b == id)
            .map_or(0, |(_, at)| *at);
        self.ir
            .element(self.ir.scalar(Scalar::I8), base, self.ir.i64(offset))
    }
}
