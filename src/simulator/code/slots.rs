//! Every register of an instruction, and how it is used.

use crate::simulator::code::inst::*;
use crate::simulator::warp::lanes::Slot;

/// What is called for each register.
pub type Visit<'a> = &'a mut dyn FnMut(&mut Slot, Role);

fn one(slot: &mut Slot, role: Role, visit: Visit<'_>) {
    if slot.is_some() && !slot.is_constant() {
        visit(slot, role);
    }
}

fn list(regs: &mut [Reg], role: Role, visit: Visit<'_>) {
    for reg in regs {
        one(&mut reg.slot, role, visit);
    }
}

fn address(a: &mut Address, visit: Visit<'_>) {
    one(&mut a.base, Role::Use, visit);
}

fn uses(slots: &mut [&mut Slot], visit: Visit<'_>) {
    for slot in slots {
        one(slot, Role::Use, visit);
    }
}

fn completion(c: &mut Completion, visit: Visit<'_>) {
    if let Completion::Mbarrier(a) = c {
        address(a, visit);
    }
}

fn passes(passes: &mut [Pass], role: Role, visit: Visit<'_>) {
    for pass in passes {
        if let Place::Register(reg) = &mut pass.caller {
            one(&mut reg.slot, role, visit);
        }
    }
}

impl Inst {
    /// Visits every register of the instruction, those it reads first. Constants are left out, and
    /// so are registers of other functions.
    pub fn visit(&mut self, visit: Visit<'_>) {
        one(&mut self.guard, Role::Use, visit);
        self.op.visit(visit);
    }
}

impl Op {
    fn visit(&mut self, visit: Visit<'_>) {
        use Role::Def;
        use Role::Use;
        match self {
            Self::Alu(_, args) => {
                for slot in [&mut args.a, &mut args.b, &mut args.c, &mut args.e] {
                    one(slot, Use, visit);
                }
                one(&mut args.d, Def, visit);
                // The fifth source of a conversion of four stands in this place: both roles.
                one(&mut args.d2, Use, visit);
                one(&mut args.d2, Def, visit);
            }
            Self::Special(_, d, _) => one(d, Def, visit),
            Self::BranchIndex(slot, _) => one(slot, Use, visit),
            Self::Call(call) => {
                if let Callee::Register(slot) = &mut call.callee {
                    one(slot, Use, visit);
                }
                passes(&mut call.arguments, Use, visit);
                passes(&mut call.results, Def, visit);
            }
            Self::Stack(Stack::Save(reg)) => one(&mut reg.slot, Def, visit),
            Self::Stack(Stack::Restore(reg)) => one(&mut reg.slot, Use, visit),
            Self::Stack(Stack::Allocate { d, size, .. }) => {
                one(&mut size.slot, Use, visit);
                one(&mut d.slot, Def, visit);
            }
            Self::Load(access) => {
                address(&mut access.address, visit);
                list(&mut access.data, Def, visit);
            }
            Self::Store(access) => {
                address(&mut access.address, visit);
                list(&mut access.data, Use, visit);
            }
            Self::Atomic(atomic) => {
                address(&mut atomic.address, visit);
                list(&mut atomic.b, Use, visit);
                one(&mut atomic.c.slot, Use, visit);
                list(&mut atomic.d, Def, visit);
            }
            Self::Collective(c) => {
                uses(&mut [&mut c.a, &mut c.b, &mut c.c, &mut c.members], visit);
                one(&mut c.d, Def, visit);
                one(&mut c.p, Def, visit);
            }
            Self::Barrier(b) => {
                uses(&mut [&mut b.id, &mut b.count, &mut b.p], visit);
                one(&mut b.d, Def, visit);
            }
            Self::IsSpace(d, a, _) | Self::GetRank(d, a, _, _) | Self::MoveMatrix(d, a) => {
                one(a, Use, visit);
                one(d, Def, visit);
            }
            Self::MapAddress(d, a, b, _, _) => {
                uses(&mut [a, b], visit);
                one(d, Def, visit);
            }
            Self::Mbarrier(m) => {
                address(&mut m.address, visit);
                one(&mut m.a, Use, visit);
                one(&mut m.d, Def, visit);
            }
            Self::CopyAsync(c) => {
                address(&mut c.to, visit);
                address(&mut c.from, visit);
                uses(&mut [&mut c.source_bytes, &mut c.ignore], visit);
            }
            Self::Bulk(b) => {
                address(&mut b.to, visit);
                address(&mut b.from, visit);
                completion(&mut b.completion, visit);
                uses(&mut [&mut b.bytes, &mut b.multicast, &mut b.mask], visit);
            }
            Self::BulkTensor(b) => {
                address(&mut b.shared, visit);
                address(&mut b.map, visit);
                completion(&mut b.completion, visit);
                one(&mut b.multicast, Use, visit);
                for slot in b.coordinates.iter_mut().chain(&mut b.offsets) {
                    one(slot, Use, visit);
                }
            }
            Self::StoreAsync(access, bar, _) => {
                address(&mut access.address, visit);
                address(bar, visit);
                list(&mut access.data, Use, visit);
            }
            Self::StoreBulk(a, bytes) => {
                address(a, visit);
                one(bytes, Use, visit);
            }
            Self::Mma(m) => {
                for regs in [&mut m.a, &mut m.b, &mut m.c] {
                    list(regs, Use, visit);
                }
                one(&mut m.metadata, Use, visit);
                for (data, byte, thread) in m.scales.iter_mut().flatten() {
                    uses(&mut [data, byte, thread], visit);
                }
                list(&mut m.d, Def, visit);
            }
            Self::MatrixMove(m) => {
                address(&mut m.address, visit);
                let role = if m.op.is_load() { Def } else { Use };
                list(&mut m.data, role, visit);
            }
            Self::Wmma(w) => {
                if let Some(a) = &mut w.address {
                    address(a, visit);
                }
                one(&mut w.stride, Use, visit);
                for regs in [&mut w.a, &mut w.b, &mut w.c] {
                    list(regs, Use, visit);
                }
                list(&mut w.d, Def, visit);
            }
            Self::Wgmma(w) => {
                list(&mut w.a, Use, visit);
                uses(
                    &mut [
                        &mut w.a_descriptor,
                        &mut w.b_descriptor,
                        &mut w.scale_d,
                        &mut w.metadata,
                    ],
                    visit,
                );
                list(&mut w.d, Use, visit);
                list(&mut w.d, Def, visit);
            }
            Self::Tensor5(t) => tensor5(t, visit),
            Self::MapReplace(m) => {
                address(&mut m.address, visit);
                one(&mut m.value.slot, Use, visit);
            }
            Self::MapCopy(both) => {
                address(&mut both.0, visit);
                address(&mut both.1, visit);
            }
            Self::Branch(_)
            | Self::Return
            | Self::Exit
            | Self::Trap
            | Self::Nop
            | Self::ClusterArrive
            | Self::ClusterWait
            | Self::Fence(_)
            | Self::WgmmaFence
            | Self::WgmmaCommit
            | Self::WgmmaWait(_)
            | Self::CopyCommit
            | Self::CopyWait(_)
            | Self::BulkCommit
            | Self::BulkWait(_) => {}
        }
    }
}

fn tensor5(t: &mut Tensor5, visit: Visit<'_>) {
    match t {
        Tensor5::Allocate(a, columns) => {
            address(a, visit);
            one(columns, Role::Use, visit);
        }
        Tensor5::Deallocate(at, columns) => uses(&mut [at, columns], visit),
        Tensor5::Move(op, a, _, regs) => {
            address(a, visit);
            let role = if op.is_load() { Role::Def } else { Role::Use };
            list(regs, role, visit);
        }
        Tensor5::Copy(_, a, descriptor) => {
            address(a, visit);
            one(descriptor, Role::Use, visit);
        }
        Tensor5::Mma(m) => {
            address(&mut m.d, visit);
            if let Some(a) = &mut m.a_tensor {
                address(a, visit);
            }
            uses(
                &mut [&mut m.a, &mut m.b, &mut m.instruction, &mut m.enable],
                visit,
            );
            for scale in m.scales.iter_mut().flatten() {
                address(scale, visit);
            }
            for slot in &mut m.disabled {
                one(slot, Role::Use, visit);
            }
        }
        Tensor5::Commit(a, multicast) => {
            address(a, visit);
            one(multicast, Role::Use, visit);
        }
    }
}
