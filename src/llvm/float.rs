//! Float conversions and rounding that the target has no instruction for, in plain integer and
//! float arithmetic, so that no library call is ever made.
//!
//! 16-bit floats are `i16` bits here. The expansions do not depend on how the processor treats
//! denormals, except that a denormal `f32` operand of a sum may read as zero.

use llvm_sys::LLVMIntPredicate;
use llvm_sys::LLVMOpcode;
use llvm_sys::LLVMRealPredicate;

use crate::kernel::BinaryOp;
use crate::kernel::CastOp;
use crate::kernel::Scalar;
use crate::kernel::Ty;
use crate::kernel::UnaryOp;
use crate::llvm::ir::Type;
use crate::llvm::ir::Val;
use crate::llvm::lower::Lower;
use crate::llvm::session::Isa;

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
        let constant = |value: f64| self.real(ty, value);
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

    /// The same constant in every lane.
    fn real(&self, ty: Ty, value: f64) -> Val {
        let bits = match ty.scalar {
            Scalar::F64 => value.to_bits(),
            _ => u64::from((value as f32).to_bits()),
        };
        self.ir.const_bits(ty, bits)
    }

    /// IEEE 754-2019 `minimum` or `maximum`.
    ///
    /// x86 vectors take the machine's own instruction both ways round. The two differ only for
    /// zeros of different sign, where `and` (for a minimum, `or`) of the bits is right, and for NaN,
    /// which the bits of an unordered comparison make again. That is less than LLVM's expansion.
    pub(super) fn extremum(&self, op: BinaryOp, a: Val, b: Val, ty: Ty) -> Val {
        let constant = self.ir.is_constant(a) || self.ir.is_constant(b);
        if self.machine.isa != Isa::X86 || ty.lanes == 1 || constant {
            let name = if op == BinaryOp::FMin {
                "llvm.minimum"
            } else {
                "llvm.maximum"
            };
            return self.ir.intrinsic(name, &[self.ir.ty(ty)], &[a, b]);
        }
        let relation = if op == BinaryOp::FMin {
            LLVMRealPredicate::LLVMRealOLT
        } else {
            LLVMRealPredicate::LLVMRealOGT
        };
        let int = self.ir.ty(ty.with_scalar(ty.scalar.as_int()));
        let one_way = |x: Val, y: Val| {
            let first = self.ir.fcmp(relation, x, y);
            self.ir.bitcast(self.ir.select(first, x, y), int)
        };
        let (x, y) = (one_way(a, b), one_way(b, a));
        let joined = if op == BinaryOp::FMin {
            self.ir.or(x, y)
        } else {
            self.ir.and(x, y)
        };
        let unordered = self.ir.fcmp(LLVMRealPredicate::LLVMRealUNO, a, b);
        let nan = self.ir.cast(LLVMOpcode::LLVMSExt, unordered, int);
        self.ir.bitcast(self.ir.or(joined, nan), self.ir.ty(ty))
    }

    /// A saturating conversion to integers of up to 32 bits, for x86 vectors, whose general
    /// expansion goes lane by lane. `None` where LLVM does well.
    pub(super) fn saturate(&self, op: CastOp, a: Val, from: Ty, to: Ty) -> Option<Val> {
        let bits = to.scalar.bits();
        if self.machine.isa != Isa::X86 || to.lanes == 1 || !(8..=32).contains(&bits) {
            return None;
        }
        let signed = op == CastOp::FpToSIntSat;
        let word = self.ir.ty(to.with_scalar(Scalar::I32));
        let (low, high) = if signed {
            (
                -(2f64.powi(bits as i32 - 1)),
                2f64.powi(bits as i32 - 1) - 1.0,
            )
        } else {
            (0.0, 2f64.powi(bits as i32) - 1.0)
        };
        // The largest float that does not round above the largest integer.
        let exact = from.scalar == Scalar::F64 || bits < 32;
        let top = if exact {
            high
        } else {
            high + 1.0 - 128.0 * if signed { 1.0 } else { 2.0 }
        };
        let greater = LLVMRealPredicate::LLVMRealOGT;
        let (low, top) = (self.real(from, low), self.real(from, top));
        // NaN becomes the lowest here and zero below.
        let above_low = self.ir.fcmp(greater, a, low);
        let limited = self.ir.select(above_low, a, low);
        let over = self.ir.fcmp(greater, limited, top);
        let limited = self.ir.select(over, top, limited);
        let mut value = if signed || bits < 32 {
            self.ir.cast(LLVMOpcode::LLVMFPToSI, limited, word)
        } else {
            self.unsigned_word(limited, from, word)
        };
        if !exact {
            let most = if signed {
                u64::from(u32::MAX >> 1)
            } else {
                u64::from(u32::MAX)
            };
            let most = self.ir.const_bits(to, most);
            value = self.ir.select(over, most, value);
        }
        if signed {
            let is_nan = self.ir.fcmp(LLVMRealPredicate::LLVMRealUNO, a, a);
            value = self.ir.select(is_nan, self.ir.zero(word), value);
        }
        Some(if bits < 32 {
            self.ir.cast(LLVMOpcode::LLVMTrunc, value, self.ir.ty(to))
        } else {
            value
        })
    }

    /// `u32` from a float in its range, by a signed conversion of what is left below 2^31.
    fn unsigned_word(&self, a: Val, from: Ty, word: Type) -> Val {
        let half = self.real(from, 2_147_483_648.0);
        let large = self.ir.fcmp(LLVMRealPredicate::LLVMRealOGE, a, half);
        let less = self.ir.bin(LLVMOpcode::LLVMFSub, a, half);
        let signed = self.ir.select(large, less, a);
        let value = self.ir.cast(LLVMOpcode::LLVMFPToSI, signed, word);
        let top = self.bits32(from.lanes, 1 << 31);
        let top = self.ir.select(large, top, self.ir.zero(word));
        self.ir.bin(LLVMOpcode::LLVMXor, value, top)
    }
}
