//! Kernel expressions to LLVM instructions.
//!
//! Arithmetic on 16-bit floats is done in `f32` and rounded back. 64-bit divisions of numbers known
//! to be small are done in 32 bits.

use llvm_sys::LLVMIntPredicate;
use llvm_sys::LLVMOpcode;
use llvm_sys::LLVMRealPredicate;

use crate::base::Result;
use crate::kernel::Axis;
use crate::kernel::BinaryOp;
use crate::kernel::CastOp;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::ExprKind;
use crate::kernel::Scalar;
use crate::kernel::Ty;
use crate::kernel::UnaryOp;
use crate::llvm::ir::Val;
use crate::llvm::lower::Lower;

impl Lower<'_> {
    /// Computes an expression at the current place.
    pub(super) fn expr(&mut self, id: ExprId) -> Result<Val> {
        let expr = &self.kernel.exprs[id];
        let ty = expr.ty;
        Ok(match &expr.kind {
            ExprKind::Const(bits) => self.ir.const_bits(ty, *bits),
            ExprKind::ConstVector(lanes) => {
                let elem = Ty::scalar(ty.scalar);
                let lanes: Vec<Val> = lanes.iter().map(|&l| self.ir.const_bits(elem, l)).collect();
                self.ir.const_vector(&lanes)
            }
            ExprKind::WorkgroupId(axis) => self.workgroup_id(*axis),
            ExprKind::WorkitemId(axis) => self.workitem_id(*axis),
            ExprKind::Stmt => self.value(id),
            ExprKind::Unary(op, a) => self.unary_value(*op, self.value(*a), ty),
            ExprKind::Binary(op, a, b) => self.binary_expr(id, *op, *a, *b, ty)?,
            ExprKind::Fma(a, b, c) => {
                self.fma(self.value(*a), self.value(*b), self.value(*c), ty, false)
            }
            ExprKind::FmaExact(a, b, c) => {
                self.fma(self.value(*a), self.value(*b), self.value(*c), ty, true)
            }
            ExprKind::Dot { kind, a, b, c } => {
                let operands = [*a, *b, *c].map(|v| self.value(v));
                self.dot(*kind, operands, ty.lanes)
            }
            ExprKind::Cmp(op, a, b) => {
                let of = self.kernel_ty(*a);
                self.compare(*op, self.value(*a), self.value(*b), of)
            }
            ExprKind::Select(cond, a, b) => {
                self.ir
                    .select(self.value(*cond), self.value(*a), self.value(*b))
            }
            ExprKind::Cast(op, a) => {
                let from = self.kernel_ty(*a);
                self.convert(*op, self.value(*a), from, ty)
            }
            ExprKind::Load { buf, index } => self.load(*buf, *index, ty),
            ExprKind::Gather { buf, indices, mask } => self.gather(*buf, *indices, *mask, ty),
            ExprKind::Splat(a) => self.ir.splat(self.value(*a), ty.lanes),
            ExprKind::Extract(a, lane) => self.ir.extract(self.value(*a), *lane),
            ExprKind::Insert(a, b, lane) => self.ir.insert(self.value(*a), self.value(*b), *lane),
            ExprKind::Shuffle(a, b, lanes) => self.shuffle(*a, *b, lanes),
            ExprKind::ReduceLanes(op, a) => {
                let from = self.kernel_ty(*a);
                self.reduce_lanes(*op, self.value(*a), from)?
            }
            ExprKind::WarpShuffle { kind, value, lane } => {
                self.warp_shuffle(*kind, self.value(*value), self.value(*lane), ty)?
            }
            ExprKind::Mma { kind, a, b, c } => {
                self.mma(*kind, self.value(*a), self.value(*b), self.value(*c))?
            }
        })
    }

    fn workgroup_id(&self, axis: Axis) -> Val {
        let (number, size) = match axis {
            Axis::X => (0, self.kernel.launch.workgroups[0]),
            Axis::Y => (1, self.kernel.launch.workgroups[1]),
            Axis::Z => (2, self.kernel.launch.workgroups[2]),
        };
        if size <= 1 {
            return self.ir.i64(0);
        }
        self.workgroup_number(number, size)
    }

    fn workitem_id(&self, axis: Axis) -> Val {
        let (name, size) = match axis {
            Axis::X => ("tid.x", self.kernel.launch.workitems[0]),
            Axis::Y => ("tid.y", self.kernel.launch.workitems[1]),
            Axis::Z => ("tid.z", self.kernel.launch.workitems[2]),
        };
        if size <= 1 {
            return self.ir.i64(0);
        }
        self.special_register(name, u64::from(size))
    }

    fn shuffle(&self, a: ExprId, b: ExprId, lanes: &[u16]) -> Val {
        let width = self.kernel_ty(a).lanes;
        let (a, b) = (self.value(a), self.value(b));
        if width > 1 && lanes.len() > 1 {
            return self.ir.shuffle(a, b, lanes);
        }
        let pick = |lane: u16| {
            let (from, lane) = if lane < width {
                (a, lane)
            } else {
                (b, lane - width)
            };
            if width == 1 {
                from
            } else {
                self.ir.extract(from, lane)
            }
        };
        let lanes: Vec<Val> = lanes.iter().map(|&l| pick(l)).collect();
        self.ir.gather_lanes(&lanes)
    }

    fn is_short_float(scalar: Scalar) -> bool {
        matches!(scalar, Scalar::F16 | Scalar::BF16)
    }

    /// A function of one value.
    pub(super) fn unary_value(&self, op: UnaryOp, a: Val, ty: Ty) -> Val {
        let llvm_ty = self.ir.ty(ty);
        if Self::is_short_float(ty.scalar) {
            match op {
                UnaryOp::Neg => {
                    let sign = self.ir.const_bits(ty, 0x8000);
                    return self.ir.bin(LLVMOpcode::LLVMXor, a, sign);
                }
                UnaryOp::Abs => return self.ir.and(a, self.ir.const_bits(ty, 0x7fff)),
                UnaryOp::Sqrt
                | UnaryOp::Floor
                | UnaryOp::Ceil
                | UnaryOp::Trunc
                | UnaryOp::RoundEven => {
                    let wide = self.widen(a, ty.scalar, ty.lanes);
                    let wide = self.unary_value(op, wide, ty.with_scalar(Scalar::F32));
                    return self.narrow(wide, ty.scalar, ty.lanes);
                }
                UnaryOp::Not | UnaryOp::Clz | UnaryOp::Ctz | UnaryOp::Popcnt => {}
            }
        }
        match op {
            UnaryOp::Neg => self.ir.neg(a),
            UnaryOp::Abs => self.ir.intrinsic("llvm.fabs", &[llvm_ty], &[a]),
            UnaryOp::Sqrt => self.ir.intrinsic("llvm.sqrt", &[llvm_ty], &[a]),
            UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Trunc | UnaryOp::RoundEven => {
                self.round(op, a, ty)
            }
            UnaryOp::Not => {
                let ones = self.ir.const_bits(ty, u64::MAX);
                self.ir.bin(LLVMOpcode::LLVMXor, a, ones)
            }
            UnaryOp::Clz | UnaryOp::Ctz => {
                let name = if op == UnaryOp::Clz {
                    "llvm.ctlz"
                } else {
                    "llvm.cttz"
                };
                let zero_is_width = self.ir.const_bits(Ty::scalar(Scalar::I1), 0);
                self.ir.intrinsic(name, &[llvm_ty], &[a, zero_is_width])
            }
            UnaryOp::Popcnt => self.ir.intrinsic("llvm.ctpop", &[llvm_ty], &[a]),
        }
    }

    fn binary_expr(&self, id: ExprId, op: BinaryOp, a: ExprId, b: ExprId, ty: Ty) -> Result<Val> {
        let (fa, fb) = (self.facts.of(a), self.facts.of(b));
        let (va, vb) = (self.value(a), self.value(b));
        let divides = matches!(
            op,
            BinaryOp::UDiv | BinaryOp::URem | BinaryOp::SDiv | BinaryOp::SRem
        );
        if ty.scalar == Scalar::I64 && divides && fa.fits_unsigned(32) && fb.fits_unsigned(32) {
            let short = self.ir.ty(ty.with_scalar(Scalar::I32));
            let va = self.ir.cast(LLVMOpcode::LLVMTrunc, va, short);
            let vb = self.ir.cast(LLVMOpcode::LLVMTrunc, vb, short);
            let op = match op {
                BinaryOp::UDiv | BinaryOp::SDiv => LLVMOpcode::LLVMUDiv,
                _ => LLVMOpcode::LLVMURem,
            };
            let short = self.ir.bin(op, va, vb);
            return Ok(self.ir.cast(LLVMOpcode::LLVMZExt, short, self.ir.ty(ty)));
        }
        let value = self.binary_value(op, va, vb, ty)?;
        let grows = matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul);
        if ty.scalar == Scalar::I64 && grows && self.facts.is_tracked(id) {
            self.ir.no_signed_wrap(value);
        }
        Ok(value)
    }

    /// A function of two values of one type.
    pub(super) fn binary_value(&self, op: BinaryOp, a: Val, b: Val, ty: Ty) -> Result<Val> {
        let float = ty.scalar.is_float();
        if Self::is_short_float(ty.scalar) {
            return self.short_float_binary(op, a, b, ty);
        }
        let plain = match op {
            BinaryOp::Add if float => LLVMOpcode::LLVMFAdd,
            BinaryOp::Add => LLVMOpcode::LLVMAdd,
            BinaryOp::Sub if float => LLVMOpcode::LLVMFSub,
            BinaryOp::Sub => LLVMOpcode::LLVMSub,
            BinaryOp::Mul if float => LLVMOpcode::LLVMFMul,
            BinaryOp::Mul => LLVMOpcode::LLVMMul,
            BinaryOp::FDiv => LLVMOpcode::LLVMFDiv,
            BinaryOp::SDiv => LLVMOpcode::LLVMSDiv,
            BinaryOp::UDiv => LLVMOpcode::LLVMUDiv,
            BinaryOp::SRem => LLVMOpcode::LLVMSRem,
            BinaryOp::URem => LLVMOpcode::LLVMURem,
            BinaryOp::And => LLVMOpcode::LLVMAnd,
            BinaryOp::Or => LLVMOpcode::LLVMOr,
            BinaryOp::Xor => LLVMOpcode::LLVMXor,
            BinaryOp::Shl => LLVMOpcode::LLVMShl,
            BinaryOp::LShr => LLVMOpcode::LLVMLShr,
            BinaryOp::AShr => LLVMOpcode::LLVMAShr,
            BinaryOp::SMulHi | BinaryOp::UMulHi => return Ok(self.mul_high(op, a, b, ty)),
            BinaryOp::SMin => return Ok(self.named("llvm.smin", a, b)),
            BinaryOp::SMax => return Ok(self.named("llvm.smax", a, b)),
            BinaryOp::UMin => return Ok(self.named("llvm.umin", a, b)),
            BinaryOp::UMax => return Ok(self.named("llvm.umax", a, b)),
            BinaryOp::FMin | BinaryOp::FMax => return Ok(self.extremum(op, a, b, ty)),
            BinaryOp::CopySign => return Ok(self.named("llvm.copysign", a, b)),
        };
        Ok(self.ir.bin(plain, a, b))
    }

    fn named(&self, name: &str, a: Val, b: Val) -> Val {
        self.ir.intrinsic(name, &[self.ir.type_of(a)], &[a, b])
    }

    fn short_float_binary(&self, op: BinaryOp, a: Val, b: Val, ty: Ty) -> Result<Val> {
        if op == BinaryOp::CopySign {
            let size = self.ir.and(a, self.ir.const_bits(ty, 0x7fff));
            let sign = self.ir.and(b, self.ir.const_bits(ty, 0x8000));
            return Ok(self.ir.or(size, sign));
        }
        let (a, b) = (
            self.widen(a, ty.scalar, ty.lanes),
            self.widen(b, ty.scalar, ty.lanes),
        );
        let wide = self.binary_value(op, a, b, ty.with_scalar(Scalar::F32))?;
        Ok(self.narrow(wide, ty.scalar, ty.lanes))
    }

    fn mul_high(&self, op: BinaryOp, a: Val, b: Val, ty: Ty) -> Val {
        let bits = ty.scalar.bits();
        let wide = self.ir.int(2 * bits, ty.lanes);
        let extend = if op == BinaryOp::SMulHi {
            LLVMOpcode::LLVMSExt
        } else {
            LLVMOpcode::LLVMZExt
        };
        let (a, b) = (self.ir.cast(extend, a, wide), self.ir.cast(extend, b, wide));
        let product = self.ir.bin(LLVMOpcode::LLVMMul, a, b);
        let by = self
            .ir
            .const_int(self.ir.int(2 * bits, 1), ty.lanes, u64::from(bits));
        let high = self.ir.bin(LLVMOpcode::LLVMLShr, product, by);
        self.ir.cast(LLVMOpcode::LLVMTrunc, high, self.ir.ty(ty))
    }

    fn compare(&self, op: CmpOp, a: Val, b: Val, of: Ty) -> Val {
        let (mut a, mut b) = (a, b);
        let float = |relation: LLVMRealPredicate| (None, Some(relation));
        let int = |relation: LLVMIntPredicate| (Some(relation), None);
        let (integer, real) = match op {
            CmpOp::IEq => int(LLVMIntPredicate::LLVMIntEQ),
            CmpOp::INe => int(LLVMIntPredicate::LLVMIntNE),
            CmpOp::SLt => int(LLVMIntPredicate::LLVMIntSLT),
            CmpOp::SLe => int(LLVMIntPredicate::LLVMIntSLE),
            CmpOp::SGt => int(LLVMIntPredicate::LLVMIntSGT),
            CmpOp::SGe => int(LLVMIntPredicate::LLVMIntSGE),
            CmpOp::ULt => int(LLVMIntPredicate::LLVMIntULT),
            CmpOp::ULe => int(LLVMIntPredicate::LLVMIntULE),
            CmpOp::UGt => int(LLVMIntPredicate::LLVMIntUGT),
            CmpOp::UGe => int(LLVMIntPredicate::LLVMIntUGE),
            CmpOp::FEq => float(LLVMRealPredicate::LLVMRealOEQ),
            CmpOp::FNe => float(LLVMRealPredicate::LLVMRealUNE),
            CmpOp::FLt => float(LLVMRealPredicate::LLVMRealOLT),
            CmpOp::FLe => float(LLVMRealPredicate::LLVMRealOLE),
            CmpOp::FGt => float(LLVMRealPredicate::LLVMRealOGT),
            CmpOp::FGe => float(LLVMRealPredicate::LLVMRealOGE),
            CmpOp::FUno => float(LLVMRealPredicate::LLVMRealUNO),
        };
        if let Some(integer) = integer {
            return self.ir.icmp(integer, a, b);
        }
        if Self::is_short_float(of.scalar) {
            a = self.widen(a, of.scalar, of.lanes);
            b = self.widen(b, of.scalar, of.lanes);
        }
        let real = real.unwrap_or(LLVMRealPredicate::LLVMRealPredicateFalse);
        self.ir.fcmp(real, a, b)
    }

    /// A conversion.
    fn convert(&self, op: CastOp, a: Val, from: Ty, to: Ty) -> Val {
        let lanes = to.lanes;
        let llvm_ty = self.ir.ty(to);
        let single = self.ir.ty(to.with_scalar(Scalar::F32));
        match op {
            CastOp::Trunc => self.ir.cast(LLVMOpcode::LLVMTrunc, a, llvm_ty),
            CastOp::SExt => self.ir.cast(LLVMOpcode::LLVMSExt, a, llvm_ty),
            CastOp::ZExt => self.ir.cast(LLVMOpcode::LLVMZExt, a, llvm_ty),
            CastOp::Bitcast => self.ir.bitcast(a, llvm_ty),
            CastOp::SIntToFp | CastOp::UIntToFp => {
                let op = if op == CastOp::SIntToFp {
                    LLVMOpcode::LLVMSIToFP
                } else {
                    LLVMOpcode::LLVMUIToFP
                };
                if Self::is_short_float(to.scalar) {
                    // Whole numbers that f32 cannot hold are above every finite f16; for bf16 the
                    // second rounding may show, as it does in XLA.
                    let wide = self.ir.cast(op, a, single);
                    return self.narrow(wide, to.scalar, lanes);
                }
                self.ir.cast(op, a, llvm_ty)
            }
            CastOp::FpToSIntSat | CastOp::FpToUIntSat => {
                let (mut a, mut from) = (a, from);
                if Self::is_short_float(from.scalar) {
                    a = self.widen(a, from.scalar, lanes);
                    from = from.with_scalar(Scalar::F32);
                }
                if let Some(value) = self.saturate(op, a, from, to) {
                    return value;
                }
                let name = if op == CastOp::FpToSIntSat {
                    "llvm.fptosi.sat"
                } else {
                    "llvm.fptoui.sat"
                };
                self.ir
                    .intrinsic(name, &[llvm_ty, self.ir.type_of(a)], &[a])
            }
            CastOp::FpTrunc | CastOp::FpExt => self.float_to_float(a, from, to),
        }
    }

    fn float_to_float(&self, a: Val, from: Ty, to: Ty) -> Val {
        let lanes = to.lanes;
        let mut a = a;
        let mut from = from.scalar;
        if Self::is_short_float(from) {
            a = self.widen(a, from, lanes);
            from = Scalar::F32;
        }
        if from == to.scalar {
            return a;
        }
        match (from, to.scalar) {
            (Scalar::F32, Scalar::F64) => self.ir.cast(LLVMOpcode::LLVMFPExt, a, self.ir.ty(to)),
            (Scalar::F64, Scalar::F32) => self.ir.cast(LLVMOpcode::LLVMFPTrunc, a, self.ir.ty(to)),
            (Scalar::F64, short) => self.narrow(self.round_to_odd(a, lanes), short, lanes),
            (_, short) => self.narrow(a, short, lanes),
        }
    }

    /// Combines the lanes of a vector, lane `i` with lane `i + half` again and again.
    fn reduce_lanes(&self, op: BinaryOp, a: Val, from: Ty) -> Result<Val> {
        if from.scalar == Scalar::I1 && matches!(op, BinaryOp::And | BinaryOp::Or) {
            let all = self.ir.int(u32::from(from.lanes), 1);
            let bits = self.ir.bitcast(a, all);
            let zero = self.ir.zero(all);
            return Ok(if op == BinaryOp::Or {
                self.ir.icmp(LLVMIntPredicate::LLVMIntNE, bits, zero)
            } else {
                let ones = self.ir.const_int(all, 1, u64::MAX);
                self.ir.icmp(LLVMIntPredicate::LLVMIntEQ, bits, ones)
            });
        }
        let mut value = a;
        let mut lanes = from.lanes;
        let mut rest = Vec::new();
        while lanes > 1 {
            if lanes % 2 == 1 {
                rest.push(self.ir.extract(value, lanes - 1));
            }
            let half = lanes / 2;
            if half == 1 {
                let (x, y) = (self.ir.extract(value, 0), self.ir.extract(value, 1));
                value = self.binary_value(op, x, y, Ty::scalar(from.scalar))?;
                break;
            }
            let low: Vec<u16> = (0..half).collect();
            let high: Vec<u16> = (half..2 * half).collect();
            let low = self.ir.shuffle(value, value, &low);
            let high = self.ir.shuffle(value, value, &high);
            value = self.binary_value(op, low, high, Ty::vector(from.scalar, half))?;
            lanes = half;
        }
        for lane in rest.into_iter().rev() {
            value = self.binary_value(op, value, lane, Ty::scalar(from.scalar))?;
        }
        Ok(value)
    }
}
