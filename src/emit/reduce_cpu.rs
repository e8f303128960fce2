//! Reductions on a CPU: rows in several vector accumulators, columns with vectors across them.

use crate::emit::cost;
use crate::emit::reduce::Plan;
use crate::emit::reduce::place;
use crate::emit::setup::Body;
use crate::emit::share;
use crate::executable::Launch;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Unroll;

/// How a row is walked.
struct Row {
    /// Elements.
    size: i64,
    lanes: u16,
    /// Vectors in flight.
    vectors: i64,
}

impl Row {
    fn new(size: i64, widest_lanes: u16, registers: usize, heavy: bool) -> Self {
        let mut lanes = widest_lanes;
        while i64::from(lanes) > size {
            lanes /= 2;
        }
        let most = if heavy || registers > 2 { 2 } else { 4 };
        let vectors = (size / i64::from(lanes)).clamp(1, most);
        Self {
            size,
            lanes,
            vectors,
        }
    }
    fn step(&self) -> i64 {
        i64::from(self.lanes) * self.vectors
    }
    fn main(&self) -> i64 {
        self.size / self.step() * self.step()
    }
    /// A run of whole vectors never crosses this.
    fn block(&self) -> i64 {
        let lanes = i64::from(self.lanes);
        if self.size % lanes == 0 {
            lanes
        } else {
            self.size
        }
    }
}

/// What the row functions share.
struct Rows<'a, 'm> {
    body: &'a Body<'m>,
    plan: &'a Plan<'a>,
    row: Row,
}

/// Rows: the innermost loop is reduced.
pub fn rows(b: &mut KernelBuilder, body: &Body<'_>, plan: &Plan<'_>) -> Launch {
    let target = body.el.target;
    let registers = plan.heroes.iter().map(|(_, f)| f.registers()).sum();
    let size = plan.extents.last().map_or(1, |e| e.size);
    let row = Row::new(
        size,
        cost::lanes(target, plan.work.widest),
        registers,
        plan.work.heavy,
    );
    let rows = Rows { body, plan, row };
    let tasks = cost::tasks(target, plan.cost()) as i64;
    let kept = plan.sizes(false);
    let splits = &body.el.splits;
    share::for_box(b, splits, &kept, tasks, &mut |b, position| {
        body.el.scope(|| {
            let registers = rows.one(b, position);
            plan.write(b, body, &registers, position, (1, 1));
        });
    })
}

impl Rows<'_, '_> {
    /// One result element: loops over all reduced extents.
    fn one(&self, b: &mut KernelBuilder, kept: ExprId) -> Vec<ExprId> {
        let (el, plan) = (&self.body.el, self.plan);
        let mut outer = plan.sizes(true);
        outer.pop();
        let start = plan.start(el, b, 1);
        let zero = b.index(0);
        if let Some(wide) = plan.identity(el.module, b, self.row.lanes) {
            let narrow = plan.identity(el.module, b, 1).unwrap_or_default();
            let mut state: Vec<ExprId> = Vec::new();
            for _ in 0..self.row.vectors {
                state.extend(&wide);
            }
            state.extend(&narrow);
            let count = wide.len();
            let state = share::nest_carried(
                b,
                &el.splits,
                &outer,
                zero,
                state,
                &mut |b, reduced, state| el.scope(|| self.row_into(b, kept, reduced, state, count)),
            );
            let sum = self.collapse(b, &state, count);
            let sum = plan.combine(el, b, &start, &sum);
            return sum;
        }
        share::nest_carried(
            b,
            &el.splits,
            &outer,
            zero,
            start,
            &mut |b, reduced, state| {
                el.scope(|| {
                    let sum = self.row_alone(b, kept, reduced);
                    plan.combine(el, b, &state, &sum)
                })
            },
        )
    }

    /// Input position of an element of a row.
    fn position(&self, b: &mut KernelBuilder, kept: ExprId, reduced: ExprId, at: ExprId) -> ExprId {
        place(b, self.body, self.plan, kept, reduced, at)
    }

    /// Reads a vector and writes the results beside.
    fn read(
        &self,
        b: &mut KernelBuilder,
        (kept, reduced): (ExprId, ExprId),
        at: ExprId,
        lanes: u16,
    ) -> Vec<ExprId> {
        let position = self.position(b, kept, reduced, at);
        let block = if lanes == self.row.lanes {
            self.row.block()
        } else {
            1
        };
        let values = self.plan.read(&self.body.el, b, position, lanes, block);
        self.plan
            .write_beside(b, self.body, position, (lanes, block));
        values
    }

    /// One row combined into vector accumulators and, for what is left, scalar ones.
    fn row_into(
        &self,
        b: &mut KernelBuilder,
        kept: ExprId,
        reduced: ExprId,
        state: Vec<ExprId>,
        count: usize,
    ) -> Vec<ExprId> {
        let (wide, narrow) = state.split_at(count * self.row.vectors as usize);
        let (mut wide, done) = self.vectors(b, (kept, reduced), wide.to_vec(), 0, count);
        let narrow = self.scalar_tail(b, (kept, reduced), narrow.to_vec(), done);
        wide.extend(narrow);
        wide
    }

    /// The whole vectors of a row from `first` on; gives where they end, too.
    fn vectors(
        &self,
        b: &mut KernelBuilder,
        place: (ExprId, ExprId),
        state: Vec<ExprId>,
        first: i64,
        count: usize,
    ) -> (Vec<ExprId>, i64) {
        let row = &self.row;
        let mut wide = self.main_loop(b, place, state, first, count);
        let mut done = row.main();
        let mut slot = 0;
        while row.size - done >= i64::from(row.lanes) {
            let at = b.index(done);
            let values = self.read(b, place, at, row.lanes);
            let range = slot * count..(slot + 1) * count;
            let sum = self
                .plan
                .combine(&self.body.el, b, &wide[range.clone()], &values);
            wide[range].copy_from_slice(&sum);
            done += i64::from(row.lanes);
            slot = (slot + 1) % row.vectors as usize;
        }
        (wide, done)
    }

    /// The vectors of a row from `first` on, as many at a time as there are accumulators.
    fn main_loop(
        &self,
        b: &mut KernelBuilder,
        place: (ExprId, ExprId),
        state: Vec<ExprId>,
        first: i64,
        count: usize,
    ) -> Vec<ExprId> {
        let row = &self.row;
        if row.main() <= first {
            return state;
        }
        let bounds = (b.index(first), b.index(row.main()), b.index(row.step()));
        b.for_carried(bounds, &state, Unroll::Auto, |b, at, phis| {
            self.body.el.scope(|| {
                let mut next = Vec::new();
                for vector in 0..row.vectors as usize {
                    let at = b.add_const(at, vector as i64 * i64::from(row.lanes));
                    let values = self.read(b, place, at, row.lanes);
                    let old = &phis[vector * count..(vector + 1) * count];
                    next.extend(self.plan.combine(&self.body.el, b, old, &values));
                }
                next
            })
        })
    }

    fn scalar_tail(
        &self,
        b: &mut KernelBuilder,
        place: (ExprId, ExprId),
        state: Vec<ExprId>,
        done: i64,
    ) -> Vec<ExprId> {
        let left = self.row.size - done;
        if left == 0 {
            return state;
        }
        let el = &self.body.el;
        if left == 1 {
            let at = b.index(done);
            let values = self.read(b, place, at, 1);
            return self.plan.combine(el, b, &state, &values);
        }
        let bounds = (b.index(done), b.index(self.row.size), b.index(1));
        b.for_carried(bounds, &state, Unroll::Never, |b, at, phis| {
            el.scope(|| {
                let values = self.read(b, place, at, 1);
                self.plan.combine(el, b, phis, &values)
            })
        })
    }

    /// Vector accumulators, then scalar ones, as one set.
    fn collapse(&self, b: &mut KernelBuilder, state: &[ExprId], count: usize) -> Vec<ExprId> {
        let el = &self.body.el;
        let vectors = self.row.vectors as usize;
        let (wide, narrow) = state.split_at(count * vectors);
        let mut sets: Vec<Vec<ExprId>> = wide.chunks(count).map(<[ExprId]>::to_vec).collect();
        while sets.len() > 1 {
            let half = sets.len().div_ceil(2);
            let upper = sets.split_off(half);
            for (low, high) in sets.iter_mut().zip(upper) {
                *low = self.plan.combine(el, b, low, &high);
            }
        }
        let sum = self.plan.fold_lanes(el, b, sets.swap_remove(0));
        if self.row.size % i64::from(self.row.lanes) == 0 {
            return sum;
        }
        self.plan.combine(el, b, &sum, narrow)
    }

    /// One row by itself, started with its first elements.
    fn row_alone(&self, b: &mut KernelBuilder, kept: ExprId, reduced: ExprId) -> Vec<ExprId> {
        let row = &self.row;
        let mut state = Vec::new();
        let mut count = 0;
        for vector in 0..row.vectors {
            let at = b.index(vector * i64::from(row.lanes));
            let values = self.read(b, (kept, reduced), at, row.lanes);
            count = values.len();
            state.extend(values);
        }
        let (wide, done) = self.vectors(b, (kept, reduced), state, row.step(), count);
        let vectors = Self {
            body: self.body,
            plan: self.plan,
            row: Row {
                size: i64::from(row.lanes),
                ..*row
            },
        };
        let sum = vectors.collapse(b, &wide, count);
        self.scalar_tail(b, (kept, reduced), sum, done)
    }
}

/// Columns: the innermost loop is kept; vectors lie across it.
pub fn columns(b: &mut KernelBuilder, body: &Body<'_>, plan: &Plan<'_>) -> Launch {
    let el = &body.el;
    let target = el.target;
    let size = plan.extents.last().map_or(1, |e| e.size);
    let lanes = i64::from(cost::lanes(target, plan.work.widest));
    let registers: usize = plan.heroes.iter().map(|(_, f)| f.registers()).sum();
    let most = if plan.work.heavy || registers > 2 {
        1
    } else {
        4
    };
    let unit = lanes * (size / lanes).clamp(1, most);
    let mut outer = plan.sizes(false);
    outer.pop();
    let chunks = size / unit;
    let tasks = cost::tasks(target, plan.cost()) as i64;
    // The last chunk of a row may be narrower; it gets a loop of its own after the others.
    let mut loops = outer.clone();
    loops.push(chunks.max(1));
    let column = |b: &mut KernelBuilder, kept: ExprId, at: ExprId, width: i64| {
        let step = if width % lanes == 0 { lanes } else { width };
        let count = width / step;
        let block = if size % step == 0 { step } else { size };
        el.scope(|| one_column(b, body, plan, (kept, at), (step as u16, block), count));
    };
    let widths = tail_widths(size, unit, lanes);
    share::for_box(b, &el.splits, &loops, tasks, &mut |b, number| {
        let (kept, chunk) = el.splits.split(b, number, chunks.max(1));
        if chunks > 0 {
            let at = b.mul_const(chunk, unit);
            column(b, kept, at, unit);
        }
        if widths.is_empty() {
            return;
        }
        let last = b.index(chunks.max(1) - 1);
        let is_last = b.cmp(crate::kernel::CmpOp::IEq, chunk, last);
        let tail = |b: &mut KernelBuilder| {
            let mut done = chunks * unit;
            for &width in &widths {
                let at = b.index(done);
                column(b, kept, at, width);
                done += width;
            }
        };
        if chunks > 1 {
            b.if_then(is_last, tail);
        } else {
            tail(b);
        }
    })
}

/// Widths of what is left after whole units: whole vectors, then halves of them.
fn tail_widths(size: i64, unit: i64, lanes: i64) -> Vec<i64> {
    let mut left = size % unit;
    let mut out = Vec::new();
    let whole = left / lanes * lanes;
    if whole > 0 {
        out.push(whole);
        left -= whole;
    }
    let mut width = lanes / 2;
    while left > 0 && width > 0 {
        if left >= width {
            out.push(width);
            left -= width;
        }
        width /= 2;
    }
    out
}

/// `count` neighbouring vectors of results, over all reduced loops.
fn one_column(
    b: &mut KernelBuilder,
    body: &Body<'_>,
    plan: &Plan<'_>,
    (kept, at): (ExprId, ExprId),
    (lanes, block): (u16, i64),
    count: i64,
) {
    let el = &body.el;
    let start = plan.start(el, b, lanes);
    let mut state = Vec::new();
    for _ in 0..count {
        state.extend(&start);
    }
    let zero = b.index(0);
    let state = share::nest_carried(
        b,
        &el.splits,
        &plan.sizes(true),
        zero,
        state,
        &mut |b, reduced, state| {
            el.scope(|| {
                let mut next = Vec::new();
                for (vector, old) in state.chunks(start.len()).enumerate() {
                    let at = b.add_const(at, vector as i64 * i64::from(lanes));
                    let position = place(b, body, plan, kept, reduced, at);
                    let values = plan.read(el, b, position, lanes, block);
                    plan.write_beside(b, body, position, (lanes, block));
                    next.extend(plan.combine(el, b, old, &values));
                }
                next
            })
        },
    );
    let size = plan.extents.last().map_or(1, |e| e.size);
    for (vector, registers) in state.chunks(start.len()).enumerate() {
        let at = b.add_const(at, vector as i64 * i64::from(lanes));
        let position = el.splits.join(b, kept, at, size);
        plan.write(b, body, registers, position, (lanes, block));
    }
}
