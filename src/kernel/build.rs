//! Builds kernels: values with types inferred, simple constants folded, equal values shared.
//!
//! Statements go to the innermost open block. Regions are closures that get the builder back.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::base::Arena;
use crate::executable::KernelId;
use crate::executable::Launch;
use crate::kernel::Axis;
use crate::kernel::BinaryOp;
use crate::kernel::Block;
use crate::kernel::BufId;
use crate::kernel::Buffer;
use crate::kernel::Carried;
use crate::kernel::CastOp;
use crate::kernel::CmpOp;
use crate::kernel::DotKind;
use crate::kernel::Expr;
use crate::kernel::ExprId;
use crate::kernel::ExprKind;
use crate::kernel::Kernel;
use crate::kernel::Merge;
use crate::kernel::MmaKind;
use crate::kernel::Scalar;
use crate::kernel::ShuffleKind;
use crate::kernel::Space;
use crate::kernel::Stmt;
use crate::kernel::TileOp;
use crate::kernel::Ty;
use crate::kernel::UnaryOp;
use crate::kernel::Unroll;
use crate::literal::number;
use crate::shape::PrimitiveType;

/// The type of indices.
pub const INDEX: Ty = Ty::scalar(Scalar::I64);

/// A block under construction and the pure values it has already computed.
#[derive(Default)]
struct Frame {
    block: Block,
    known: BTreeMap<(ExprKind, Ty), ExprId>,
}

/// Builds one kernel.
pub struct KernelBuilder {
    name: String,
    buffers: Arena<BufId, Buffer>,
    exprs: Arena<ExprId, Expr>,
    frames: Vec<Frame>,
    slow_double: bool,
}

impl KernelBuilder {
    /// A kernel of that name with an empty body.
    pub fn new(name: impl Into<String>) -> Self {
        let frames = vec![Frame::default()];
        Self {
            name: name.into(),
            buffers: Arena::new(),
            exprs: Arena::new(),
            frames,
            slow_double: false,
        }
    }

    /// Says that the target computes in `f64` at a small part of its speed in `f32`.
    pub fn set_slow_double(&mut self, slow: bool) {
        self.slow_double = slow;
    }

    /// Whether functions of `f32` should stay away from `f64` arithmetic.
    pub fn slow_double(&self) -> bool {
        self.slow_double
    }

    /// Adds a buffer. Parameters come first, in argument order.
    pub fn buffer(&mut self, buffer: Buffer) -> BufId {
        self.buffers.push(buffer)
    }

    /// Adds scratch memory of `count` elements, aligned to 64 bytes.
    pub fn scratch(&mut self, name: &str, elem: Scalar, count: u64, space: Space) -> BufId {
        self.buffers.push(Buffer {
            name: name.to_owned(),
            elem,
            count,
            space,
            align: 64,
            written: true,
            noalias: true,
        })
    }

    /// What is known of a buffer.
    pub fn buffer_info(&self, buf: BufId) -> &Buffer {
        &self.buffers[buf]
    }

    /// The finished kernel.
    pub fn finish(mut self, id: KernelId, launch: Launch) -> Kernel {
        let body = self
            .frames
            .pop()
            .map(|frame| frame.block)
            .unwrap_or_default();
        let Self {
            name,
            buffers,
            exprs,
            ..
        } = self;
        Kernel {
            id,
            name,
            buffers,
            launch,
            exprs,
            body,
        }
    }

    /// The type of a value.
    pub fn ty(&self, value: ExprId) -> Ty {
        self.exprs[value].ty
    }

    /// The bits of a value that is a constant with equal lanes.
    pub fn as_const(&self, value: ExprId) -> Option<u64> {
        match self.exprs[value].kind {
            ExprKind::Const(bits) => Some(bits),
            _ => None,
        }
    }

    /// A constant index value, sign-extended.
    pub fn as_const_index(&self, value: ExprId) -> Option<i64> {
        self.as_const(value).map(|bits| bits as i64)
    }

    fn frame(&mut self) -> &mut Frame {
        self.frames
            .last_mut()
            .expect("a block is open while a kernel is built")
    }

    fn push(&mut self, stmt: Stmt) {
        self.frame().block.0.push(stmt);
    }

    /// Computes an expression here, or finds it computed already.
    pub fn expr(&mut self, kind: ExprKind, ty: Ty) -> ExprId {
        let sharable = !kind.is_load() && !matches!(kind, ExprKind::WarpShuffle { .. });
        if sharable {
            let key = (kind, ty);
            if let Some(&id) = self
                .frames
                .iter()
                .rev()
                .find_map(|frame| frame.known.get(&key))
            {
                return id;
            }
            let id = self.exprs.push(Expr {
                kind: key.0.clone(),
                ty,
            });
            self.push(Stmt::Let(id));
            self.frame().known.insert(key, id);
            id
        } else {
            let id = self.exprs.push(Expr { kind, ty });
            self.push(Stmt::Let(id));
            id
        }
    }

    fn stmt_value(&mut self, ty: Ty) -> ExprId {
        self.exprs.push(Expr {
            kind: ExprKind::Stmt,
            ty,
        })
    }

    // Constants

    /// The same bits in every lane.
    pub fn const_bits(&mut self, ty: Ty, bits: u64) -> ExprId {
        let width = ty.scalar.bits();
        let bits = if width == 64 {
            bits
        } else {
            bits & ((1 << width) - 1)
        };
        self.expr(ExprKind::Const(bits), ty)
    }
    /// An index constant.
    pub fn index(&mut self, value: i64) -> ExprId {
        self.const_bits(INDEX, value as u64)
    }
    /// An integer constant in every lane.
    pub fn int(&mut self, ty: Ty, value: i64) -> ExprId {
        self.const_bits(ty, value as u64)
    }
    /// A float constant in every lane, rounded to the type.
    pub fn float(&mut self, ty: Ty, value: f64) -> ExprId {
        let bits = match ty.scalar {
            Scalar::F64 => value.to_bits(),
            Scalar::F32 => u64::from((value as f32).to_bits()),
            Scalar::F16 => number::float_from_f64(PrimitiveType::F16, value),
            Scalar::BF16 => number::float_from_f64(PrimitiveType::BF16, value),
            Scalar::I1 | Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => {
                value as i64 as u64
            }
        };
        self.const_bits(ty, bits)
    }
    /// A truth value in every lane.
    pub fn bool(&mut self, lanes: u16, value: bool) -> ExprId {
        self.const_bits(Ty::vector(Scalar::I1, lanes), u64::from(value))
    }
    /// The vector `<0, 1, 2, ...>`.
    pub fn lane_ids(&mut self, ty: Ty) -> ExprId {
        if ty.lanes == 1 {
            return self.int(ty, 0);
        }
        let lanes: SmallVec<[u64; 8]> = (0..u64::from(ty.lanes)).collect();
        self.expr(ExprKind::ConstVector(lanes), ty)
    }
    /// Number of the workgroup.
    pub fn workgroup_id(&mut self, axis: Axis) -> ExprId {
        self.expr(ExprKind::WorkgroupId(axis), INDEX)
    }
    /// Number of the workitem.
    pub fn workitem_id(&mut self, axis: Axis) -> ExprId {
        self.expr(ExprKind::WorkitemId(axis), INDEX)
    }

    // Arithmetic

    /// A function of one value.
    pub fn unary(&mut self, op: UnaryOp, a: ExprId) -> ExprId {
        self.expr(ExprKind::Unary(op, a), self.ty(a))
    }

    /// A function of two values of one type; a scalar beside a vector is splat first.
    pub fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        let (a, b) = self.match_lanes(a, b);
        if let Some(folded) = self.fold_binary(op, a, b) {
            return folded;
        }
        self.expr(ExprKind::Binary(op, a, b), self.ty(a))
    }

    /// Both values with the lanes of the wider one.
    fn match_lanes(&mut self, a: ExprId, b: ExprId) -> (ExprId, ExprId) {
        let lanes = self.ty(a).lanes.max(self.ty(b).lanes);
        (self.splat(a, lanes), self.splat(b, lanes))
    }

    fn fold_binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> Option<ExprId> {
        let ty = self.ty(a);
        if ty.scalar.is_float() {
            return None;
        }
        let signed = |bits: u64| {
            let shift = 64 - ty.scalar.bits();
            ((bits << shift) as i64) >> shift
        };
        let (ca, cb) = (self.as_const(a), self.as_const(b));
        if let (Some(x), Some(y)) = (ca, cb) {
            let (sx, sy) = (signed(x), signed(y));
            let value = match op {
                BinaryOp::Add => x.wrapping_add(y),
                BinaryOp::Sub => x.wrapping_sub(y),
                BinaryOp::Mul => x.wrapping_mul(y),
                BinaryOp::SDiv if sy != 0 => sx.wrapping_div(sy) as u64,
                BinaryOp::UDiv if y != 0 => x / y,
                BinaryOp::SRem if sy != 0 => sx.wrapping_rem(sy) as u64,
                BinaryOp::URem if y != 0 => x % y,
                BinaryOp::And => x & y,
                BinaryOp::Or => x | y,
                BinaryOp::Xor => x ^ y,
                BinaryOp::SMin => sx.min(sy) as u64,
                BinaryOp::SMax => sx.max(sy) as u64,
                BinaryOp::UMin => x.min(y),
                BinaryOp::UMax => x.max(y),
                _ => return None,
            };
            return Some(self.const_bits(ty, value));
        }
        match (op, ca, cb) {
            (BinaryOp::Add | BinaryOp::Or | BinaryOp::Xor, Some(0), _)
            | (BinaryOp::Mul, Some(1), _) => Some(b),
            (
                BinaryOp::Add
                | BinaryOp::Sub
                | BinaryOp::Or
                | BinaryOp::Xor
                | BinaryOp::Shl
                | BinaryOp::LShr
                | BinaryOp::AShr,
                _,
                Some(0),
            )
            | (BinaryOp::Mul | BinaryOp::SDiv | BinaryOp::UDiv, _, Some(1)) => Some(a),
            (BinaryOp::Mul | BinaryOp::And, Some(0), _)
            | (BinaryOp::Mul | BinaryOp::And, _, Some(0))
            | (BinaryOp::URem | BinaryOp::SRem, _, Some(1)) => Some(self.const_bits(ty, 0)),
            _ => None,
        }
    }

    /// Sum.
    pub fn add(&mut self, a: ExprId, b: ExprId) -> ExprId {
        self.binary(BinaryOp::Add, a, b)
    }
    /// Difference.
    pub fn sub(&mut self, a: ExprId, b: ExprId) -> ExprId {
        self.binary(BinaryOp::Sub, a, b)
    }
    /// Product.
    pub fn mul(&mut self, a: ExprId, b: ExprId) -> ExprId {
        self.binary(BinaryOp::Mul, a, b)
    }
    /// Index plus a constant.
    pub fn add_const(&mut self, a: ExprId, value: i64) -> ExprId {
        let b = self.int(self.ty(a), value);
        self.add(a, b)
    }
    /// Index times a constant.
    pub fn mul_const(&mut self, a: ExprId, value: i64) -> ExprId {
        let b = self.int(self.ty(a), value);
        self.mul(a, b)
    }
    /// Quotient of a non-negative index by a positive constant.
    pub fn div_const(&mut self, a: ExprId, value: i64) -> ExprId {
        let b = self.int(self.ty(a), value);
        self.binary(BinaryOp::UDiv, a, b)
    }
    /// Remainder of a non-negative index by a positive constant.
    pub fn rem_const(&mut self, a: ExprId, value: i64) -> ExprId {
        let b = self.int(self.ty(a), value);
        self.binary(BinaryOp::URem, a, b)
    }
    /// `a * b + c`, rounded once where the target can; see [`ExprKind::Fma`].
    pub fn fma(&mut self, a: ExprId, b: ExprId, c: ExprId) -> ExprId {
        let (a, b, c) = self.match_lanes3(a, b, c);
        self.expr(ExprKind::Fma(a, b, c), self.ty(a))
    }
    /// `a * b + c`, rounded once on every target.
    pub fn fma_exact(&mut self, a: ExprId, b: ExprId, c: ExprId) -> ExprId {
        let (a, b, c) = self.match_lanes3(a, b, c);
        self.expr(ExprKind::FmaExact(a, b, c), self.ty(a))
    }
    /// Products of small integers, those of neighbours added to a lane of `c`.
    pub fn dot(&mut self, kind: DotKind, a: ExprId, b: ExprId, c: ExprId) -> ExprId {
        self.expr(ExprKind::Dot { kind, a, b, c }, self.ty(c))
    }
    fn match_lanes3(&mut self, a: ExprId, b: ExprId, c: ExprId) -> (ExprId, ExprId, ExprId) {
        let lanes = self.ty(a).lanes.max(self.ty(b).lanes).max(self.ty(c).lanes);
        (
            self.splat(a, lanes),
            self.splat(b, lanes),
            self.splat(c, lanes),
        )
    }
    /// A relation.
    pub fn cmp(&mut self, op: CmpOp, a: ExprId, b: ExprId) -> ExprId {
        let (a, b) = self.match_lanes(a, b);
        self.expr(ExprKind::Cmp(op, a, b), self.ty(a).with_scalar(Scalar::I1))
    }
    /// A choice.
    pub fn select(&mut self, cond: ExprId, a: ExprId, b: ExprId) -> ExprId {
        match self.as_const(cond) {
            Some(0) if self.ty(b).lanes >= self.ty(a).lanes => return b,
            Some(1) if self.ty(a).lanes >= self.ty(b).lanes => return a,
            _ => {}
        }
        let (a, b) = self.match_lanes(a, b);
        let lanes = self.ty(cond).lanes;
        let (a, b) = (self.splat(a, lanes), self.splat(b, lanes));
        self.expr(ExprKind::Select(cond, a, b), self.ty(a))
    }
    /// A conversion to lanes of `scalar`.
    pub fn cast(&mut self, op: CastOp, a: ExprId, scalar: Scalar) -> ExprId {
        let ty = self.ty(a);
        if ty.scalar == scalar {
            return a;
        }
        if let (Some(bits), CastOp::Trunc | CastOp::ZExt | CastOp::SExt) = (self.as_const(a), op) {
            let shift = 64 - ty.scalar.bits();
            let bits = if op == CastOp::SExt {
                (((bits << shift) as i64) >> shift) as u64
            } else {
                bits
            };
            return self.const_bits(ty.with_scalar(scalar), bits);
        }
        self.expr(ExprKind::Cast(op, a), ty.with_scalar(scalar))
    }
    /// The same bits under another type of the same width.
    pub fn bitcast(&mut self, a: ExprId, ty: Ty) -> ExprId {
        if self.ty(a) == ty {
            return a;
        }
        self.expr(ExprKind::Cast(CastOp::Bitcast, a), ty)
    }

    // Vectors

    /// The value with that many lanes; a vector must have them already.
    pub fn splat(&mut self, a: ExprId, lanes: u16) -> ExprId {
        let ty = self.ty(a);
        if ty.lanes == lanes || ty.lanes > 1 {
            return a;
        }
        let wide = Ty::vector(ty.scalar, lanes);
        match self.as_const(a) {
            Some(bits) => self.const_bits(wide, bits),
            None => self.expr(ExprKind::Splat(a), wide),
        }
    }
    /// One lane.
    pub fn extract(&mut self, a: ExprId, lane: u16) -> ExprId {
        let ty = self.ty(a);
        if ty.lanes == 1 {
            return a;
        }
        match self.exprs[a].kind.clone() {
            ExprKind::Splat(scalar) => scalar,
            ExprKind::Const(bits) => self.const_bits(Ty::scalar(ty.scalar), bits),
            _ => self.expr(ExprKind::Extract(a, lane), Ty::scalar(ty.scalar)),
        }
    }
    /// A vector of these scalars; one scalar stays a scalar.
    pub fn vector(&mut self, lanes: &[ExprId]) -> ExprId {
        if lanes.iter().all(|&l| l == lanes[0]) {
            return self.splat(lanes[0], lanes.len() as u16);
        }
        let ty = Ty::vector(self.ty(lanes[0]).scalar, lanes.len() as u16);
        let mut vector = self.const_bits(ty, 0);
        for (i, &lane) in lanes.iter().enumerate() {
            vector = self.expr(ExprKind::Insert(vector, lane, i as u16), ty);
        }
        vector
    }
    /// Lanes picked from two vectors.
    pub fn shuffle(&mut self, a: ExprId, b: ExprId, lanes: &[u16]) -> ExprId {
        let ty = Ty::vector(self.ty(a).scalar, lanes.len() as u16);
        self.expr(ExprKind::Shuffle(a, b, SmallVec::from_slice(lanes)), ty)
    }
    /// All lanes combined.
    pub fn reduce_lanes(&mut self, op: BinaryOp, a: ExprId) -> ExprId {
        let ty = self.ty(a);
        if ty.lanes == 1 {
            return a;
        }
        self.expr(ExprKind::ReduceLanes(op, a), Ty::scalar(ty.scalar))
    }
    /// A value of another workitem of the warp.
    pub fn warp_shuffle(&mut self, kind: ShuffleKind, value: ExprId, lane: ExprId) -> ExprId {
        self.expr(ExprKind::WarpShuffle { kind, value, lane }, self.ty(value))
    }
    /// A product of fragments.
    pub fn mma(&mut self, kind: MmaKind, a: ExprId, b: ExprId, c: ExprId) -> ExprId {
        self.expr(ExprKind::Mma { kind, a, b, c }, self.ty(c))
    }

    // Memory

    /// Neighbouring elements.
    pub fn load(&mut self, buf: BufId, index: ExprId, lanes: u16) -> ExprId {
        let ty = Ty::vector(self.buffers[buf].elem, lanes);
        self.expr(ExprKind::Load { buf, index }, ty)
    }
    /// One element a lane.
    pub fn gather(&mut self, buf: BufId, indices: ExprId, mask: Option<ExprId>) -> ExprId {
        let ty = Ty::vector(self.buffers[buf].elem, self.ty(indices).lanes);
        self.expr(ExprKind::Gather { buf, indices, mask }, ty)
    }
    /// Writes neighbouring elements.
    pub fn store(&mut self, buf: BufId, index: ExprId, value: ExprId) {
        self.push(Stmt::Store {
            buf,
            index,
            value,
            mask: None,
        });
    }
    /// Writes the neighbouring elements whose lane of the mask holds.
    pub fn store_masked(&mut self, buf: BufId, index: ExprId, value: ExprId, mask: ExprId) {
        self.push(Stmt::Store {
            buf,
            index,
            value,
            mask: Some(mask),
        });
    }
    /// Writes one element a lane.
    pub fn scatter(&mut self, buf: BufId, indices: ExprId, value: ExprId, mask: Option<ExprId>) {
        self.push(Stmt::Scatter {
            buf,
            indices,
            value,
            mask,
        });
    }
    /// Combines a value with an element, indivisibly.
    pub fn atomic_rmw(&mut self, op: BinaryOp, buf: BufId, index: ExprId, value: ExprId) {
        self.push(Stmt::AtomicRmw {
            op,
            buf,
            index,
            value,
        });
    }
    /// Replaces an element if it is as expected, indivisibly; gives what it was.
    pub fn atomic_cas(
        &mut self,
        buf: BufId,
        index: ExprId,
        expected: ExprId,
        desired: ExprId,
    ) -> ExprId {
        let old = self.stmt_value(self.ty(expected));
        self.push(Stmt::AtomicCas {
            buf,
            index,
            expected,
            desired,
            old,
        });
        old
    }
    /// Hints at a read to come.
    pub fn prefetch(&mut self, buf: BufId, index: ExprId) {
        self.push(Stmt::Prefetch { buf, index });
    }
    /// Waits for the workgroup.
    pub fn barrier(&mut self) {
        self.push(Stmt::Barrier);
    }

    /// Does something with tiles.
    pub fn tile(&mut self, op: TileOp) {
        self.push(Stmt::Tile(op));
    }

    // Control

    /// Builds a block in the closure; what it computes is not visible outside.
    fn block<R>(&mut self, build: impl FnOnce(&mut Self) -> R) -> (Block, R) {
        self.frames.push(Frame::default());
        let result = build(self);
        let frame = self.frames.pop().expect("the frame pushed above");
        (frame.block, result)
    }

    /// A counted loop with carried values. The closure gets the counter and the carried values and
    /// gives the next ones; the loop gives the last ones.
    pub fn for_carried(
        &mut self,
        (start, end, step): (ExprId, ExprId, ExprId),
        init: &[ExprId],
        unroll: Unroll,
        body: impl FnOnce(&mut Self, ExprId, &[ExprId]) -> Vec<ExprId>,
    ) -> Vec<ExprId> {
        let var = self.stmt_value(INDEX);
        let phis: Vec<ExprId> = init.iter().map(|&i| self.stmt_value(self.ty(i))).collect();
        let (body, next) = self.block(|b| body(b, var, &phis));
        let (carried, results) = self.carried(init, &phis, &next);
        self.push(Stmt::For {
            var,
            start,
            end,
            step,
            carried,
            body,
            unroll,
        });
        results
    }

    /// What a loop carries, and its values after the loop.
    fn carried(
        &mut self,
        init: &[ExprId],
        phis: &[ExprId],
        next: &[ExprId],
    ) -> (Vec<Carried>, Vec<ExprId>) {
        let results: Vec<ExprId> = init.iter().map(|&i| self.stmt_value(self.ty(i))).collect();
        let carried = (0..init.len())
            .map(|i| Carried {
                init: init[i],
                phi: phis[i],
                next: next[i],
                result: results[i],
            })
            .collect();
        (carried, results)
    }

    /// A counted loop without carried values, from `start` to `end` by `step`.
    pub fn for_loop(
        &mut self,
        (start, end, step): (ExprId, ExprId, ExprId),
        body: impl FnOnce(&mut Self, ExprId),
    ) {
        self.for_carried((start, end, step), &[], Unroll::Auto, |b, var, _| {
            body(b, var);
            Vec::new()
        });
    }

    /// A counted loop over `0..count` by `step`; a single iteration is not looped.
    pub fn for_range(&mut self, count: i64, step: i64, body: impl FnOnce(&mut Self, ExprId)) {
        let zero = self.index(0);
        if count <= 0 {
            return;
        }
        if count <= step {
            body(self, zero);
            return;
        }
        let (end, step) = (self.index(count), self.index(step));
        self.for_loop((zero, end, step), body);
    }

    /// A loop that runs while the condition, computed from the carried values, holds.
    pub fn while_carried(
        &mut self,
        init: &[ExprId],
        cond: impl FnOnce(&mut Self, &[ExprId]) -> ExprId,
        body: impl FnOnce(&mut Self, &[ExprId]) -> Vec<ExprId>,
    ) -> Vec<ExprId> {
        let phis: Vec<ExprId> = init.iter().map(|&i| self.stmt_value(self.ty(i))).collect();
        let (before, cond) = self.block(|b| cond(b, &phis));
        let (body, next) = self.block(|b| body(b, &phis));
        let (carried, results) = self.carried(init, &phis, &next);
        self.push(Stmt::While {
            carried,
            before,
            cond,
            body,
        });
        results
    }

    /// A choice of blocks, each giving the same number of values of the same types.
    pub fn if_else(
        &mut self,
        cond: ExprId,
        then: impl FnOnce(&mut Self) -> Vec<ExprId>,
        otherwise: impl FnOnce(&mut Self) -> Vec<ExprId>,
    ) -> Vec<ExprId> {
        let (then, then_values) = self.block(then);
        let (otherwise, otherwise_values) = self.block(otherwise);
        let mut merges = Vec::new();
        for (&then, &otherwise) in then_values.iter().zip(&otherwise_values) {
            let result = self.stmt_value(self.ty(then));
            merges.push(Merge {
                then,
                otherwise,
                result,
            });
        }
        let results = merges.iter().map(|m| m.result).collect();
        self.push(Stmt::If {
            cond,
            then,
            otherwise,
            merges,
        });
        results
    }

    /// Runs a block when the condition holds.
    pub fn if_then(&mut self, cond: ExprId, then: impl FnOnce(&mut Self)) {
        self.if_else(
            cond,
            |b| {
                then(b);
                Vec::new()
            },
            |_| Vec::new(),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_rounded_once() {
        let mut b = KernelBuilder::new("k");
        // A little more than halfway to the next number; as an f32 it would be halfway.
        for (scalar, digits, wanted) in [(Scalar::F16, 10, 0x3c01), (Scalar::BF16, 7, 0x3f81)] {
            let value = 1.0 + f64::exp2(f64::from(-digits - 1)) + f64::exp2(-40.0);
            let constant = b.float(Ty::vector(scalar, 1), value);
            assert_eq!(b.exprs[constant].kind, ExprKind::Const(wanted));
        }
    }
}
