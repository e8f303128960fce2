//! From scores to weights, row by row.

use smallvec::smallvec;

use crate::analysis::contraction::Axis;
use crate::emit::contraction::attention::Block;
use crate::emit::contraction::attention::Span;
use crate::emit::contraction::attention::range::Keys;
use crate::emit::convert;
use crate::emit::index::Index;
use crate::emit::value::Value;
use crate::hlo::InstrId;
use crate::kernel::BinaryOp;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Ty;
use crate::kernel::UnaryOp;
use crate::kernel::Unroll;
use crate::target::CpuFamily;

/// Divisors whose reciprocals, and remainders by them, are neither subnormal nor infinite.
const DIVISORS: (f64, f64) = (1e-18, 1e18);

/// A row of scores in memory.
#[derive(Clone, Copy)]
struct Row {
    batch: ExprId,
    /// Its number within the batch.
    number: ExprId,
    /// Where it begins.
    start: ExprId,
}

impl Block<'_, '_> {
    /// Turns the scores of a block into weights over some keys; not zero when a key that is masked
    /// counts in some row.
    pub(super) fn soften(&self, b: &mut KernelBuilder, span: Span, keys: Keys) -> ExprId {
        let bounds = (b.index(0), span.count, b.index(1));
        let start = b.index(0);
        let counted = b.for_carried(bounds, &[start], Unroll::Never, |b, at, counted| {
            self.body.el.scope(|| {
                let row = Row {
                    batch: span.batch,
                    number: b.add(span.first, at),
                    start: b.mul_const(at, self.plan.stride as i64),
                };
                let max = self.mask(b, row, keys);
                self.bind(b, self.attention.max, max);
                let counts = self.fill_counts(b, counted[0]);
                let sum = self.exponentials(b, row, keys);
                self.bind(b, self.attention.sum, sum);
                self.divide(b, row, keys);
                vec![counts]
            })
        });
        counted[0]
    }

    /// Says what the elements of an instruction are, given in the type of the sums.
    fn bind(&self, b: &mut KernelBuilder, id: InstrId, value: ExprId) {
        let el = &self.body.el;
        let sums = self.attention.scores.accumulator;
        let value = convert::convert(b, sums, el.ty(id), Value::One(value));
        el.bind(id, smallvec![value]);
    }

    /// The elements of an instruction in the type of the sums, which are the same at every index.
    fn value(&self, b: &mut KernelBuilder, id: InstrId, lanes: usize) -> ExprId {
        let dims = self.body.el.dims(id);
        let zero = b.index(0);
        let at = dims.iter().map(|_| zero);
        let last = dims.len().saturating_sub(1);
        let index = Index::run(at, lanes as u16, last, lanes as i64);
        self.value_at(b, id, &index, lanes)
    }

    fn value_at(&self, b: &mut KernelBuilder, id: InstrId, index: &Index, lanes: usize) -> ExprId {
        let el = &self.body.el;
        let sums = self.attention.scores.accumulator;
        let value = el.value(b, id, index);
        let value = convert::convert(b, el.ty(id), sums, value).one();
        b.splat(value, lanes as u16)
    }

    /// What masking, and whatever else comes before the maximum, makes of the scores of a row; gives
    /// the maximum.
    fn mask(&self, b: &mut KernelBuilder, row: Row, keys: Keys) -> ExprId {
        let width = self.plan.scores.tile_columns;
        let lanes = self.lanes();
        let count = self.attention.scores.n;
        let whole = (count / width * width) as i64;
        let lowest = b.float(Ty::vector(self.scalar, lanes as u16), f64::NEG_INFINITY);
        let end = b.index(whole);
        let end = b.binary(BinaryOp::SMin, keys.end, end);
        let bounds = (keys.first, end, b.index(width as i64));
        let start = vec![lowest; width / lanes];
        let most = b.for_carried(bounds, &start, Unroll::Auto, |b, column, most| {
            self.body.el.scope(|| {
                let next = |(v, &most): (usize, &ExprId)| {
                    let column = b.add_const(column, (v * lanes) as i64);
                    let values = self.mask_some(b, row, column, lanes);
                    b.binary(BinaryOp::FMax, most, values)
                };
                most.iter().enumerate().map(next).collect()
            })
        });
        let most = most
            .into_iter()
            .reduce(|x, y| b.binary(BinaryOp::FMax, x, y));
        let most = b.reduce_lanes(BinaryOp::FMax, most.unwrap_or(lowest));
        if count.is_multiple_of(width) {
            return most;
        }
        let end = b.index(whole);
        let is_last = b.cmp(CmpOp::SGt, keys.end, end);
        let most = b.if_else(
            is_last,
            |b| {
                let last = self.body.el.scope(|| self.mask_last(b, row, whole));
                vec![b.binary(BinaryOp::FMax, most, last)]
            },
            |_| vec![most],
        );
        most[0]
    }

    /// The same for the last panel, which is not full; what it lacks becomes minus infinity.
    fn mask_last(&self, b: &mut KernelBuilder, row: Row, first: i64) -> ExprId {
        let count = self.attention.scores.n as i64;
        let mut most = b.float(Ty::scalar(self.scalar), f64::NEG_INFINITY);
        let mut done = first;
        let mut lanes = self.lanes() as i64;
        while lanes > 0 {
            while count - done >= lanes {
                let column = b.index(done);
                let values = self.mask_some(b, row, column, lanes as usize);
                let value = b.reduce_lanes(BinaryOp::FMax, values);
                most = b.binary(BinaryOp::FMax, most, value);
                done += lanes;
            }
            lanes /= 2;
        }
        let lowest = b.float(Ty::scalar(self.scalar), f64::NEG_INFINITY);
        for column in count..self.padded_keys() {
            let at = b.add_const(row.start, column);
            b.store(self.scores, at, lowest);
        }
        most
    }

    /// The same for neighbouring scores, which gives them.
    fn mask_some(&self, b: &mut KernelBuilder, row: Row, column: ExprId, lanes: usize) -> ExprId {
        let el = &self.body.el;
        let (product, masked) = (&self.attention.scores, self.attention.masked);
        let at = b.add(row.start, column);
        let sums = b.load(self.scores, at, lanes as u16);
        el.scope(|| {
            self.bind(b, product.value, sums);
            let position = self.position(b, (row.batch, row.number, column));
            let is_multiple = product.n.is_multiple_of(lanes);
            let block = if is_multiple { lanes } else { product.n };
            let dims = el.dims(masked);
            let index = el
                .splits
                .run_at(b, &dims, position, lanes as u16, block as i64);
            let values = self.value_at(b, masked, &index, lanes);
            b.store(self.scores, at, values);
            values
        })
    }

    /// The row-major position of a score.
    fn position(
        &self,
        b: &mut KernelBuilder,
        (batch, row, column): (ExprId, ExprId, ExprId),
    ) -> ExprId {
        let splits = &self.body.el.splits;
        let product = &self.attention.scores;
        let dims = self.body.el.dims(product.value);
        let zero = b.index(0);
        let mut at = vec![zero; dims.len()];
        for (axis, number) in [
            (Axis::Batch, batch),
            (Axis::Row, row),
            (Axis::Column, column),
        ] {
            let own: Vec<usize> = (0..dims.len())
                .filter(|&d| product.output[d].0 == axis)
                .collect();
            let sizes: Vec<usize> = own.iter().map(|&d| dims[d]).collect();
            for (&d, part) in own.iter().zip(splits.unravel(b, &sizes, number)) {
                at[d] = part;
            }
        }
        splits.position(b, &dims, &at)
    }

    /// What is counted so far, or one when a masked score of this row has a weight.
    fn fill_counts(&self, b: &mut KernelBuilder, counted: ExprId) -> ExprId {
        let el = &self.body.el;
        let Some(mask) = &self.attention.mask else {
            return counted;
        };
        el.scope(|| {
            let fill = self.value(b, mask.fill, 1);
            self.bind(b, self.attention.masked, fill);
            let weight = self.value(b, self.attention.exp, 1);
            let none = b.float(Ty::scalar(self.scalar), 0.0);
            let is_none = b.cmp(CmpOp::FEq, weight, none);
            let one = b.index(1);
            b.select(is_none, counted, one)
        })
    }

    /// Exponentials in place of scores; gives their sum.
    fn exponentials(&self, b: &mut KernelBuilder, row: Row, keys: Keys) -> ExprId {
        let el = &self.body.el;
        let attention = self.attention;
        let summed = el.module.instr(attention.sum).operands[0];
        let zero = b.float(Ty::vector(self.scalar, self.lanes() as u16), 0.0);
        let sums = self.each(b, row, keys, zero, |b, scores, sum| {
            self.bind(b, attention.masked, scores);
            let exp = self.value(b, attention.exp, self.lanes());
            let added = self.value(b, summed, self.lanes());
            (exp, b.add(sum, added))
        });
        let sum = sums.into_iter().reduce(|x, y| b.add(x, y));
        b.reduce_lanes(BinaryOp::Add, sum.unwrap_or(zero))
    }

    /// Replaces the elements of a row by vectors, each with a value that is carried on.
    fn each(
        &self,
        b: &mut KernelBuilder,
        row: Row,
        keys: Keys,
        start: ExprId,
        mut build: impl FnMut(&mut KernelBuilder, ExprId, ExprId) -> (ExprId, ExprId),
    ) -> Vec<ExprId> {
        let width = self.plan.scores.tile_columns;
        let lanes = self.lanes();
        let bounds = (keys.first, keys.end, b.index(width as i64));
        let start = vec![start; width / lanes];
        b.for_carried(bounds, &start, Unroll::Auto, |b, column, carried| {
            let at = b.add(row.start, column);
            let mut next = |(v, &old): (usize, &ExprId)| {
                self.body.el.scope(|| {
                    let at = b.add_const(at, (v * lanes) as i64);
                    let elements = b.load(self.scores, at, lanes as u16);
                    let (new, carried) = build(b, elements, old);
                    b.store(self.scores, at, new);
                    carried
                })
            };
            carried.iter().enumerate().map(&mut next).collect()
        })
    }

    /// Weights in place of exponentials.
    fn divide(&self, b: &mut KernelBuilder, row: Row, keys: Keys) {
        let el = &self.body.el;
        let quotient = self.attention.quotient;
        let divisor = el.module.instr(quotient).operands[1];
        let divisor = self.value(b, divisor, 1);
        let has_fma = el
            .target
            .cpu()
            .is_some_and(|cpu| cpu.family == CpuFamily::AArch64 || cpu.has("fma"));
        if !has_fma {
            self.quotients(b, row, keys, |b, x| b.binary(BinaryOp::FDiv, x, divisor));
            return;
        }
        let ty = Ty::scalar(self.scalar);
        let (low, high) = (b.float(ty, DIVISORS.0), b.float(ty, DIVISORS.1));
        let (above, below) = (
            b.cmp(CmpOp::FGt, divisor, low),
            b.cmp(CmpOp::FLt, divisor, high),
        );
        let is_usual = b.binary(BinaryOp::And, above, below);
        b.if_else(
            is_usual,
            |b| {
                let one = b.float(ty, 1.0);
                let reciprocal = b.binary(BinaryOp::FDiv, one, divisor);
                el.scope(|| {
                    self.quotients(b, row, keys, |b, x| divided(b, x, divisor, reciprocal));
                });
                Vec::new()
            },
            |b| {
                el.scope(|| {
                    self.quotients(b, row, keys, |b, x| b.binary(BinaryOp::FDiv, x, divisor));
                });
                Vec::new()
            },
        );
    }

    fn quotients(
        &self,
        b: &mut KernelBuilder,
        row: Row,
        keys: Keys,
        divide: impl Fn(&mut KernelBuilder, ExprId) -> ExprId,
    ) {
        let el = &self.body.el;
        let attention = self.attention;
        let divided = el.module.instr(attention.quotient).operands[0];
        let lanes = self.lanes();
        let nothing = b.index(0);
        self.each(b, row, keys, nothing, |b, exp, nothing| {
            self.bind(b, attention.exp, exp);
            let x = self.value(b, divided, lanes);
            let quotient = divide(b, x);
            self.bind(b, attention.quotient, quotient);
            (self.value(b, attention.weights, lanes), nothing)
        });
    }
}

/// The quotient, rounded once, of a number by one whose reciprocal, rounded once, is known
/// (P. Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990).
fn divided(b: &mut KernelBuilder, x: ExprId, divisor: ExprId, reciprocal: ExprId) -> ExprId {
    let near = b.mul(x, reciprocal);
    let minus = b.unary(UnaryOp::Neg, near);
    let rest = b.fma(minus, divisor, x);
    b.fma(rest, reciprocal, near)
}
