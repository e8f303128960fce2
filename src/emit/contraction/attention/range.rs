//! Which keys a block of rows needs.
//!
//! A key that a mask leaves to no row of the block has a weight of exactly zero in each, unless
//! a row has no score far above the number that stands for masked ones; and zero times a value is
//! zero, unless that is infinite or NaN. Both are looked at when the program runs: the values of keys
//! that would be left out before, the rows after their scores are known. If either does not hold, the
//! block is computed with all keys.

use crate::analysis::attention::Bound;
use crate::analysis::attention::Mask;
use crate::emit::contraction::attention::Block;
use crate::emit::contraction::attention::Span;
use crate::emit::contraction::tile;
use crate::emit::contraction::tile::Panel;
use crate::emit::value;
use crate::kernel::BinaryOp;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Ty;
use crate::kernel::Unroll;
use crate::shape::PrimitiveType;

/// Numbers a bound may depend on: for larger ones its sum could wrap in the program.
const MAX_OFFSET: i64 = 1 << 29;

/// Neighbouring keys: whole panels.
#[derive(Clone, Copy)]
pub(super) struct Keys {
    pub(super) first: ExprId,
    /// The one after the last, which is in no panel, or after the end of the last panel.
    pub(super) end: ExprId,
}

impl Keys {
    pub(super) fn all(b: &mut KernelBuilder, padded: i64) -> Self {
        Self {
            first: b.index(0),
            end: b.index(padded),
        }
    }

    /// Whether these are not all.
    pub(super) fn is_cut(self, b: &mut KernelBuilder, all: Self) -> ExprId {
        let low = b.cmp(CmpOp::INe, self.first, all.first);
        let high = b.cmp(CmpOp::INe, self.end, all.end);
        b.binary(BinaryOp::Or, low, high)
    }

    /// These where the condition holds, else the others.
    fn or(self, b: &mut KernelBuilder, cond: ExprId, other: Self) -> Self {
        Self {
            first: b.select(cond, self.first, other.first),
            end: b.select(cond, self.end, other.end),
        }
    }
}

impl Block<'_, '_> {
    /// The panels of keys that the mask leaves to some row; all when there are none.
    pub(super) fn left_by(&self, b: &mut KernelBuilder, mask: &Mask, span: Span) -> Keys {
        let all = Keys::all(b, self.padded_keys());
        let zero = b.index(0);
        let rows = if self.plan.run == mask.run {
            let last = b.add(span.in_run, span.count);
            (span.in_run, b.add_const(last, -1))
        } else {
            (zero, b.index(mask.run as i64 - 1))
        };
        let mut keys = Keys {
            first: zero,
            end: b.index(self.attention.scores.n as i64),
        };
        let mut is_sound = b.bool(1, true);
        for bound in &mask.bounds {
            let (limit, sound) = self.limit(b, bound, rows);
            is_sound = b.binary(BinaryOp::And, is_sound, sound);
            if bound.is_upper {
                let end = b.add_const(limit, 1);
                keys.end = b.binary(BinaryOp::SMin, keys.end, end);
            } else {
                let first = b.sub(zero, limit);
                keys.first = b.binary(BinaryOp::SMax, keys.first, first);
            }
        }
        let some = b.cmp(CmpOp::SLt, keys.first, keys.end);
        let is_sound = b.binary(BinaryOp::And, is_sound, some);
        // Numbers that are not sound are not negative either.
        let keys = keys.or(b, is_sound, all);
        let width = self.plan.scores.tile_columns as i64;
        let first = b.div_const(keys.first, width);
        let end = b.add_const(keys.end, width - 1);
        let end = b.div_const(end, width);
        Keys {
            first: b.mul_const(first, width),
            end: b.mul_const(end, width),
        }
    }

    /// The most that a bound's limit is for these rows, and whether that is so.
    fn limit(
        &self,
        b: &mut KernelBuilder,
        bound: &Bound,
        (first, last): (ExprId, ExprId),
    ) -> (ExprId, ExprId) {
        let row = if bound.row >= 0 { last } else { first };
        let limit = b.mul_const(row, bound.row);
        let mut limit = b.add_const(limit, bound.constant);
        let Some((offset, is_minus)) = bound.offset else {
            return (limit, b.bool(1, true));
        };
        let offset = self.body.el.scalar(b, offset).one();
        let offset = value::to_index(b, PrimitiveType::S32, offset);
        limit = if is_minus {
            b.sub(limit, offset)
        } else {
            b.add(limit, offset)
        };
        let (low, high) = (b.index(-MAX_OFFSET), b.index(MAX_OFFSET));
        let above = b.cmp(CmpOp::SGt, offset, low);
        let below = b.cmp(CmpOp::SLt, offset, high);
        (limit, b.binary(BinaryOp::And, above, below))
    }

    /// The keys, or all of them when the values of others are not finite.
    pub(super) fn where_finite(&self, b: &mut KernelBuilder, batch: ExprId, keys: Keys) -> Keys {
        let (product, tiling) = (&self.attention.values, &self.plan.values);
        let all = Keys::all(b, self.padded_keys());
        let (zero, bound) = (b.index(0), b.index(product.k as i64));
        let end = b.binary(BinaryOp::SMin, keys.end, bound);
        let nothing = tile::zeros(b, self.scalar, tiling.lanes);
        let vectors = tiling.tile_columns / tiling.lanes;
        let bounds = (
            zero,
            b.index(tiling.n_block as i64),
            b.index(tiling.tile_columns as i64),
        );
        let start = vec![nothing; vectors];
        let sums = b.for_carried(bounds, &start, Unroll::Never, |b, column, sums| {
            let place = (batch, column, zero);
            let panel = self.panel(b, (&self.values, product, tiling), place);
            let sums = self.zeros_times(b, panel, (zero, keys.first), sums);
            self.zeros_times(b, panel, (end, bound), &sums)
        });
        let sum = sums.into_iter().reduce(|x, y| b.add(x, y));
        let sum = sum.map_or(nothing, |sum| b.reduce_lanes(BinaryOp::Add, sum));
        let none = b.float(Ty::scalar(self.scalar), 0.0);
        let is_finite = b.cmp(CmpOp::FEq, sum, none);
        keys.or(b, is_finite, all)
    }

    /// Adds zero times the values of some keys, vector by vector.
    fn zeros_times(
        &self,
        b: &mut KernelBuilder,
        panel: Panel,
        (first, end): (ExprId, ExprId),
        sums: &[ExprId],
    ) -> Vec<ExprId> {
        let lanes = self.plan.values.lanes;
        let zero = tile::zeros(b, self.scalar, lanes);
        let bounds = (first, end, b.index(1));
        b.for_carried(bounds, sums, Unroll::Auto, |b, key, sums| {
            let at = b.mul_const(key, panel.stride);
            let at = b.add(panel.start, at);
            let add = |(v, &sum): (usize, &ExprId)| {
                let at = b.add_const(at, (v * lanes) as i64);
                let values = b.load(panel.buf, at, lanes as u16);
                b.fma(values, zero, sum)
            };
            sums.iter().enumerate().map(add).collect()
        })
    }
}
