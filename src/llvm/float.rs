//! Float conversions and rounding that the target has no instruction for, in plain integer and
//! float arithmetic, so that no library call is ever made.
//!
//! 16-bit floats are `i16` bits here. The expansions do not depend on how the processor treats
//! denormals, except that a denormal `f32` operand of a sum may read as zero.

use llvm_sys::LLVMIntPredicate;
use llvm_sys::LLVMOpcode;
use llvm_sys::LLVMRealPredicate;

use crate::kernel::Scalar;
use crate::kernel::Ty;
use crate::kernel::UnaryOp;
use crate::llvm::ir::Type;
use crate::llvm::ir::Val;
use crate::llvm::lower::Lower;

impl Lower<'_> {
    fn bits32(&self, lanes: u16, bits: u32) -> Val {
        self.ir
            .const_bits(Ty::vector(Scalar::I32, lanes), u64::from(bits))
    }
    fn int32(&self, lanes: u16) -> Type {
        self.ir.ty(Ty::vector(Scalar::I32, lanes))
    }
    fn float32(&self, lanes: u16) -> Type {
        self.ir.ty(Ty::vector(Scalar::F32, lanes))
    }
    fn shl(&self, a: Val, lanes: u16, by: u32) -> Val {
        self.ir.bin(LLVMOpcode::LLVMShl, a, self.bits32(lanes, by))
    }
    fn lshr(&self, a: Val, lanes: u16, by: u32) -> Val {
        self.ir.bin(LLVMOpcode::LLVMLShr, a, self.bits32(lanes, by))
    }

    /// `f32` lanes from lanes of a 16-bit float.
    pub(super) fn widen(&self, a: Val, from: Scalar, lanes: u16) -> Val {
        let (int, float) = (self.int32(lanes), self.float32(lanes));
        if from == Scalar::BF16 {
            let wide = self.ir.cast(LLVMOpcode::LLVMZExt, a, int);
            return self.ir.bitcast(self.shl(wide, lanes, 16), float);
        }
        if self.machine.half_convert {
            let half = self.ir.bitcast(a, self.ir.half(lanes));
            return self.ir.cast(LLVMOpcode::LLVMFPExt, half, float);
        }
        let wide = self.ir.cast(LLVMOpcode::LLVMZExt, a, int);
        let sign = self.ir.and(wide, self.bits32(lanes, 0x8000));
        let sign = self.shl(sign, lanes, 16);
        let magnitude = self.ir.and(wide, self.bits32(lanes, 0x7fff));
        let shifted = self.shl(magnitude, lanes, 13);
        // The exponent bias differs by 112; infinities and NaN need it twice.
        let normal = self.ir.add(shifted, self.bits32(lanes, 112 << 23));
        let is_special = self.ir.icmp(
            LLVMIntPredicate::LLVMIntUGE,
            magnitude,
            self.bits32(lanes, 0x7c00),
        );
        let special = self.ir.add(normal, self.bits32(lanes, 112 << 23));
        let normal = self.ir.select(is_special, special, normal);
        // A denormal becomes the fraction of a number near 2^-14, from which 2^-14 is subtracted.
        let near = self.ir.add(shifted, self.bits32(lanes, 113 << 23));
        let near = self.ir.bitcast(near, float);
        let base = self.ir.bitcast(self.bits32(lanes, 113 << 23), float);
        let tiny = self.ir.bin(LLVMOpcode::LLVMFSub, near, base);
        let tiny = self.ir.bitcast(tiny, int);
        let is_tiny = self.below(magnitude, self.bits32(lanes, 0x400));
        let result = self.ir.select(is_tiny, tiny, normal);
        self.ir.bitcast(self.ir.or(result, sign), float)
    }

    /// Lanes of a 16-bit float from `f32` lanes, nearest even.
    pub(super) fn narrow(&self, a: Val, to: Scalar, lanes: u16) -> Val {
        let short = self.ir.ty(Ty::vector(Scalar::I16, lanes));
        if to == Scalar::F16 {
            if self.machine.half_convert {
                let half = self
                    .ir
                    .cast(LLVMOpcode::LLVMFPTrunc, a, self.ir.half(lanes));
                return self.ir.bitcast(half, short);
            }
            return self.narrow_to_half(a, lanes);
        }
        if self.machine.bfloat_convert {
            let brain = self
                .ir
                .cast(LLVMOpcode::LLVMFPTrunc, a, self.ir.bfloat(lanes));
            return self.ir.bitcast(brain, short);
        }
        let bits = self.ir.bitcast(a, self.int32(lanes));
        let upper = self.lshr(bits, lanes, 16);
        let odd = self.ir.and(upper, self.bits32(lanes, 1));
        let rounded = self.ir.add(bits, self.bits32(lanes, 0x7fff));
        let rounded = self.lshr(self.ir.add(rounded, odd), lanes, 16);
        let quiet = self.ir.or(upper, self.bits32(lanes, 0x40));
        let is_nan = self.ir.fcmp(LLVMRealPredicate::LLVMRealUNO, a, a);
        let result = self.ir.select(is_nan, quiet, rounded);
        self.ir.cast(LLVMOpcode::LLVMTrunc, result, short)
    }

    fn narrow_to_half(&self, a: Val, lanes: u16) -> Val {
        let (int, float) = (self.int32(lanes), self.float32(lanes));
        let bits = self.ir.bitcast(a, int);
        let sign = self.lshr(self.ir.and(bits, self.bits32(lanes, 1 << 31)), lanes, 16);
        let magnitude = self.ir.and(bits, self.bits32(lanes, 0x7fff_ffff));
        // Normal results: rebias the exponent, add half of the last place less one, and the last
        // place itself. Overflow carries into infinity.
        let odd = self
            .ir
            .and(self.lshr(magnitude, lanes, 13), self.bits32(lanes, 1));
        let normal = self.ir.add(magnitude, self.bits32(lanes, 0xc800_0fff));
        let normal = self.lshr(self.ir.add(normal, odd), lanes, 13);
        // Denormal results: adding 1/2 rounds at the right bit.
        let half = self.ir.bitcast(self.bits32(lanes, 0x3f00_0000), float);
        let shifted = self.ir.bitcast(magnitude, float);
        let shifted = self.ir.bin(LLVMOpcode::LLVMFAdd, shifted, half);
        let shifted = self.ir.bitcast(shifted, int);
        let tiny = self.ir.bin(
            LLVMOpcode::LLVMSub,
            shifted,
            self.bits32(lanes, 0x3f00_0000),
        );
        let is_tiny = self.below(magnitude, self.bits32(lanes, 0x3880_0000));
        let finite = self.ir.select(is_tiny, tiny, normal);
        let is_nan = self.ir.icmp(
            LLVMIntPredicate::LLVMIntUGT,
            magnitude,
            self.bits32(lanes, 0x7f80_0000),
        );
        let special = self.ir.select(
            is_nan,
            self.bits32(lanes, 0x7e00),
            self.bits32(lanes, 0x7c00),
        );
        let is_finite = self.below(magnitude, self.bits32(lanes, 0x4780_0000));
        let result = self.ir.select(is_finite, finite, special);
        let result = self.ir.or(result, sign);
        let short = self.ir.ty(Ty::vector(Scalar::I16, lanes));
        self.ir.cast(LLVMOpcode::LLVMTrunc, result, short)
    }

    /// `f32` lanes from `f64` lanes, inexact results made odd, so that a second rounding to fewer
    /// bits gives what one rounding would.
    pub(super) fn round_to_odd(&self, a: Val, lanes: u16) -> Val {
        let (int, float) = (self.int32(lanes), self.float32(lanes));
        let near = self.ir.cast(LLVMOpcode::LLVMFPTrunc, a, float);
        let back = self
            .ir
            .cast(LLVMOpcode::LLVMFPExt, near, self.ir.type_of(a));
        let double = self.ir.ty(Ty::vector(Scalar::F64, lanes));
        let size = |v| self.ir.intrinsic("llvm.fabs", &[double], &[v]);
        let over = self
            .ir
            .fcmp(LLVMRealPredicate::LLVMRealOGT, size(back), size(a));
        let bits = self.ir.bitcast(near, int);
        let toward_zero = self
            .ir
            .bin(LLVMOpcode::LLVMSub, bits, self.bits32(lanes, 1));
        let truncated = self.ir.select(over, toward_zero, bits);
        let odd = self.ir.or(truncated, self.bits32(lanes, 1));
        let inexact = self.ir.fcmp(LLVMRealPredicate::LLVMRealONE, back, a);
        let result = self.ir.select(inexact, odd, bits);
        self.ir.bitcast(result, float)
    }

    /// Rounding to a whole number.
    pub(super) fn round(&self, op: UnaryOp, a: Val, ty: Ty) -> Val {
        let llvm_ty = self.ir.ty(ty);
        if self.machine.round {
            let name = match op {
                UnaryOp::Floor => "llvm.floor",
                UnaryOp::Ceil => "llvm.ceil",
                UnaryOp::Trunc => "llvm.trunc",
                _ => "llvm.roundeven",
            };
            return self.ir.intrinsic(name, &[llvm_ty], &[a]);
        }
        let constant = |value: f64| {
            let bits = match ty.scalar {
                Scalar::F64 => value.to_bits(),
                _ => u64::from((value as f32).to_bits()),
            };
            self.ir.const_bits(ty, bits)
        };
        // Numbers of this size and above are whole.
        let limit = constant(match ty.scalar {
            Scalar::F64 => 4_503_599_627_370_496.0,
            _ => 8_388_608.0,
        });
        let size = self.ir.intrinsic("llvm.fabs", &[llvm_ty], &[a]);
        let up = self.ir.bin(LLVMOpcode::LLVMFAdd, size, limit);
        let near = self.ir.bin(LLVMOpcode::LLVMFSub, up, limit);
        let one = constant(1.0);
        let sign = |v| self.ir.intrinsic("llvm.copysign", &[llvm_ty], &[v, a]);
        let step = |v, relation, w, op| {
            let off = self.ir.fcmp(relation, v, w);
            let moved = self.ir.bin(op, v, one);
            self.ir.select(off, moved, v)
        };
        let (above, below) = (
            LLVMRealPredicate::LLVMRealOGT,
            LLVMRealPredicate::LLVMRealOLT,
        );
        let rounded = match op {
            UnaryOp::Floor => step(sign(near), above, a, LLVMOpcode::LLVMFSub),
            UnaryOp::Ceil => step(sign(near), below, a, LLVMOpcode::LLVMFAdd),
            UnaryOp::Trunc => step(near, above, size, LLVMOpcode::LLVMFSub),
            _ => near,
        };
        let small = self.ir.fcmp(below, size, limit);
        self.ir.select(small, sign(rounded), a)
    }

    /// `a * b + c` with one rounding.
    pub(super) fn fma(&self, a: Val, b: Val, c: Val, ty: Ty, exact: bool) -> Val {
        if self.machine.fma {
            return self.ir.intrinsic("llvm.fma", &[self.ir.ty(ty)], &[a, b, c]);
        }
        if !exact {
            let product = self.ir.bin(LLVMOpcode::LLVMFMul, a, b);
            return self.ir.bin(LLVMOpcode::LLVMFAdd, product, c);
        }
        if ty.scalar == Scalar::F64 {
            // The one call that kernels may make: `fma` is in every loader's list.
            return self.ir.intrinsic("llvm.fma", &[self.ir.ty(ty)], &[a, b, c]);
        }
        // The product of two f32 is exact in f64. The sum is rounded there first, which shows only
        // where it lands on the middle of two f32, about once in 2^29.
        let double = self.ir.ty(Ty::vector(Scalar::F64, ty.lanes));
        let [a, b, c] = [a, b, c].map(|v| self.ir.cast(LLVMOpcode::LLVMFPExt, v, double));
        let product = self.ir.bin(LLVMOpcode::LLVMFMul, a, b);
        let sum = self.ir.bin(LLVMOpcode::LLVMFAdd, product, c);
        self.ir.cast(LLVMOpcode::LLVMFPTrunc, sum, self.ir.ty(ty))
    }
}
