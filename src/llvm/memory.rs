//! Loads, stores, gathers, scatters and atomics.
//!
//! Elements of 16-bit float types are kept as their bits, so memory sees integers. A vector access
//! is given the alignment that its index proves, which decides whether a GPU moves it at once.

use llvm_sys::LLVMAtomicRMWBinOp;
use llvm_sys::LLVMIntPredicate;

use crate::base::Id;
use crate::base::Result;
use crate::kernel::BinaryOp;
use crate::kernel::BufId;
use crate::kernel::Buffer;
use crate::kernel::ExprId;
use crate::kernel::Scalar;
use crate::kernel::Space;
use crate::kernel::Ty;
use crate::llvm::ir::Type;
use crate::llvm::ir::Val;
use crate::llvm::lower::Lower;
use crate::llvm::session::Isa;

/// The largest power of two that divides the size of a buffer in bytes.
pub(super) fn whole_pieces(buffer: &Buffer) -> u64 {
    let bytes = buffer.count * buffer.elem.bytes();
    match bytes {
        0 => 1,
        _ => 1 << bytes.trailing_zeros(),
    }
}

impl Lower<'_> {
    /// Address of an element of a buffer.
    pub(super) fn address(&self, buf: BufId, index: Val) -> Val {
        let place = &self.places[buf.index()];
        self.ir.element(place.elem, place.ptr, index)
    }

    /// The alignment in bytes of an access to the elements from `index` on.
    fn alignment(&self, buf: BufId, index: ExprId) -> u64 {
        let buffer = &self.kernel.buffers[buf];
        let bytes = buffer.elem.bytes();
        let zeros = self.facts.of(index).zeros.min(32);
        let base = match buffer.space {
            Space::Global => buffer.align.max(1),
            Space::Shared | Space::Private | Space::Kept => buffer.align.max(16),
        };
        (bytes << zeros).min(base).max(bytes.min(base))
    }

    /// The alignment to claim for a read of `bytes`. On a GPU, LLVM joins neighbouring reads and fills
    /// gaps up to what is aligned, so no more is claimed than divides the buffer: what it fills stays
    /// within.
    fn read_alignment(&self, buf: BufId, index: ExprId, bytes: u64) -> u64 {
        let align = self.alignment(buf, index);
        match self.machine.isa {
            Isa::Ptx => align.min(whole_pieces(&self.kernel.buffers[buf]).max(bytes)),
            Isa::X86 | Isa::AArch64 => align,
        }
    }

    /// Tells LLVM what an access may overlap with.
    fn annotate(&self, buf: BufId, access: Val, is_load: bool) {
        let place = &self.places[buf.index()];
        if let Some(scope) = place.scope {
            self.ir.annotate(access, "alias.scope", scope);
        }
        if let Some(others) = place.others {
            self.ir.annotate(access, "noalias", others);
        }
        if is_load && place.invariant {
            self.ir
                .annotate(access, "invariant.load", self.ir.node(&[]));
        }
    }

    /// Neighbouring elements.
    pub(super) fn load(&self, buf: BufId, index: ExprId, ty: Ty) -> Val {
        let ptr = self.address(buf, self.value(index));
        let bytes = ty.scalar.bytes() * u64::from(ty.lanes);
        let align = self.read_alignment(buf, index, bytes);
        let value = self.ir.load(self.ir.ty(ty), ptr, align);
        self.annotate(buf, value, true);
        value
    }

    /// Writes neighbouring elements.
    pub(super) fn store(
        &self,
        buf: BufId,
        index: ExprId,
        value: ExprId,
        mask: Option<ExprId>,
    ) -> Result<()> {
        let ty = self.kernel_ty(value);
        let (at, align) = (self.value(index), self.alignment(buf, index));
        let value = self.value(value);
        let Some(mask) = mask else {
            let store = self.ir.store(value, self.address(buf, at), align);
            self.annotate(buf, store, false);
            return Ok(());
        };
        let mask = self.value(mask);
        let wide = match ty.scalar.bits() {
            32 | 64 => self.machine.masks,
            _ => self.machine.narrow_masks,
        };
        if ty.lanes > 1 && wide {
            let ptr = self.address(buf, at);
            let types = [self.ir.type_of(value), self.ir.type_of(ptr)];
            let args = [value, ptr, mask];
            let store = self.ir.intrinsic("llvm.masked.store", &types, &args);
            self.ir.call_argument_align(store, 1, align);
            self.annotate(buf, store, false);
            return Ok(());
        }
        let masks = self.ir.lanes(mask, ty.lanes);
        let values = self.ir.lanes(value, ty.lanes);
        for (lane, (mask, value)) in masks.into_iter().zip(values).enumerate() {
            let place = self.ir.add(at, self.ir.i64(lane as u64));
            self.store_one(buf, place, value, ty.scalar, Some(mask));
        }
        Ok(())
    }

    fn store_one(&self, buf: BufId, at: Val, value: Val, scalar: Scalar, mask: Option<Val>) {
        let write = || {
            let store = self.ir.store(value, self.address(buf, at), scalar.bytes());
            self.annotate(buf, store, false);
        };
        match mask {
            Some(mask) => self.when(mask, |_| write()),
            None => write(),
        }
    }

    /// One element a lane; lanes that the mask excludes read element 0 and give zero.
    pub(super) fn gather(&self, buf: BufId, indices: ExprId, mask: Option<ExprId>, ty: Ty) -> Val {
        let mut at = self.value(indices);
        let mask = mask.map(|m| self.value(m));
        let zero = self.ir.zero(self.ir.ty(ty));
        if self.machine.gather && ty.lanes > 1 && ty.scalar.bits() >= 32 {
            return self.hardware_gather(buf, at, mask, ty);
        }
        if let Some(mask) = mask {
            let first = self.ir.zero(self.ir.type_of(at));
            at = self.ir.select(mask, at, first);
        }
        let elem = self.ir.scalar(ty.scalar);
        let lanes: Vec<Val> = self
            .ir
            .lanes(at, ty.lanes)
            .into_iter()
            .map(|index| {
                let ptr = self.address(buf, index);
                let value = self.ir.load(elem, ptr, ty.scalar.bytes());
                self.annotate(buf, value, true);
                value
            })
            .collect();
        let value = self.ir.gather_lanes(&lanes);
        match mask {
            Some(mask) => self.ir.select(mask, value, zero),
            None => value,
        }
    }

    fn hardware_gather(&self, buf: BufId, at: Val, mask: Option<Val>, ty: Ty) -> Val {
        let pointers = self.address(buf, at);
        let all = self.ir.const_bits(Ty::vector(Scalar::I1, ty.lanes), 1);
        let result = self.ir.ty(ty);
        let args = [pointers, mask.unwrap_or(all), self.ir.zero(result)];
        let types = [result, self.ir.type_of(pointers)];
        let call = self.ir.intrinsic("llvm.masked.gather", &types, &args);
        self.ir.call_argument_align(call, 0, ty.scalar.bytes());
        self.annotate(buf, call, true);
        call
    }

    /// Writes one element a lane, in lane order.
    pub(super) fn scatter(&self, buf: BufId, indices: ExprId, value: ExprId, mask: Option<ExprId>) {
        let ty = self.kernel_ty(value);
        let at = self.ir.lanes(self.value(indices), ty.lanes);
        let values = self.ir.lanes(self.value(value), ty.lanes);
        let masks = mask.map(|m| self.ir.lanes(self.value(m), ty.lanes));
        for (lane, (at, value)) in at.into_iter().zip(values).enumerate() {
            let mask = masks.as_ref().map(|m| m[lane]);
            self.store_one(buf, at, value, ty.scalar, mask);
        }
    }

    /// Hints at a read to come.
    pub(super) fn prefetch(&self, buf: BufId, index: ExprId) {
        if self.machine.isa == Isa::Ptx {
            return;
        }
        let ptr = self.address(buf, self.value(index));
        let (read, near, data) = (self.ir.i32(0), self.ir.i32(3), self.ir.i32(1));
        let types = [self.ir.type_of(ptr)];
        self.ir
            .intrinsic("llvm.prefetch", &types, &[ptr, read, near, data]);
    }

    // Atomics

    /// Who must see an access whole.
    fn scope(&self, buf: BufId) -> &'static str {
        match (self.machine.isa, self.kernel.buffers[buf].space) {
            (Isa::Ptx, Space::Shared) => "block",
            (Isa::Ptx, _) => "device",
            _ => "",
        }
    }

    /// Combines a value with an element.
    pub(super) fn atomic_rmw(
        &self,
        op: BinaryOp,
        buf: BufId,
        index: ExprId,
        value: ExprId,
    ) -> Result<()> {
        let scalar = self.kernel_ty(value).scalar;
        let ptr = self.address(buf, self.value(index));
        let operand = self.value(value);
        let wide_float = matches!(scalar, Scalar::F32 | Scalar::F64);
        let native = match op {
            BinaryOp::Add if !scalar.is_float() => Some(LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpAdd),
            BinaryOp::Add if wide_float && self.machine.isa == Isa::Ptx => {
                Some(LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpFAdd)
            }
            BinaryOp::And => Some(LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpAnd),
            BinaryOp::Or => Some(LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpOr),
            BinaryOp::Xor => Some(LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpXor),
            BinaryOp::SMin => Some(LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpMin),
            BinaryOp::SMax => Some(LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpMax),
            BinaryOp::UMin => Some(LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpUMin),
            BinaryOp::UMax => Some(LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpUMax),
            _ => None,
        };
        // PTX has 8- and 16-bit atomics only as compare-exchange loops on words that LLVM makes.
        if let Some(native) = native.filter(|_| !scalar.is_float() || wide_float) {
            self.ir.atomic_rmw(native, ptr, operand, self.scope(buf));
            return Ok(());
        }
        self.exchange_loop(op, buf, ptr, operand, scalar)
    }

    /// Combines by computing on the side and retrying until nothing came between.
    fn exchange_loop(
        &self,
        op: BinaryOp,
        buf: BufId,
        ptr: Val,
        operand: Val,
        scalar: Scalar,
    ) -> Result<()> {
        let ty = Ty::scalar(scalar);
        let bits: Type = self.ir.scalar(scalar.as_int());
        let first = self.ir.load(bits, ptr, scalar.bytes());
        let entry = self.ir.here();
        let (top, exit) = (self.ir.block(), self.ir.block());
        self.ir.br(top);
        self.ir.at(top);
        let old = self.ir.phi(bits);
        self.ir.incoming(old, first, entry);
        let current = self.ir.bitcast(old, self.ir.ty(ty));
        let combined = self.binary_value(op, current, operand, ty)?;
        let desired = self.ir.bitcast(combined, bits);
        let (seen, replaced) = self.ir.cmpxchg(ptr, old, desired, self.scope(buf));
        let latch = self.ir.here();
        self.ir.incoming(old, seen, latch);
        self.ir.cond_br(replaced, exit, top);
        self.ir.at(exit);
        Ok(())
    }

    /// Replaces an element if it is as expected.
    pub(super) fn atomic_cas(
        &self,
        buf: BufId,
        index: ExprId,
        expected: ExprId,
        desired: ExprId,
    ) -> Val {
        let ptr = self.address(buf, self.value(index));
        let (expected, desired) = (self.value(expected), self.value(desired));
        self.ir.cmpxchg(ptr, expected, desired, self.scope(buf)).0
    }

    /// `a < b` on unsigned integers.
    pub(super) fn below(&self, a: Val, b: Val) -> Val {
        self.ir.icmp(LLVMIntPredicate::LLVMIntULT, a, b)
    }
}
