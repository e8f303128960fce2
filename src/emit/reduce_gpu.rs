//! Reductions on a GPU: a warp or a block for each row, a workitem for each column element.

use crate::emit::cost;
use crate::emit::cost::pieces;
use crate::emit::reduce::Plan;
use crate::emit::reduce::place;
use crate::emit::setup::Body;
use crate::emit::share;
use crate::executable::Launch;
use crate::kernel::Axis;
use crate::kernel::BinaryOp;
use crate::kernel::BufId;
use crate::kernel::CastOp;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Scalar;
use crate::kernel::ShuffleKind;
use crate::kernel::Space;
use crate::kernel::Ty;
use crate::kernel::Unroll;

/// Workitems of a warp.
const WARP: i64 = 32;
/// Rows of up to this many elements get a warp, longer ones a block.
const WARP_ROW: i64 = 1024;

/// Results of up to this many elements have several workitems for each column.
const FEW_COLUMNS: i64 = 128 * 1024;
/// Workitems for one column then.
const WORKERS: i64 = 16;

/// Emits the kernel's body.
pub fn emit(b: &mut KernelBuilder, body: &Body<'_>, plan: &Plan<'_>) -> Launch {
    let reduced: i64 = plan.sizes(true).iter().product();
    if plan.is_row() && plan.extents.last().is_some_and(|e| e.size > 1) {
        rows(b, body, plan)
    } else if !plan.is_row() && plan.kept() <= FEW_COLUMNS && reduced >= 4 * WORKERS {
        few_columns(b, body, plan)
    } else {
        columns(b, body, plan)
    }
}

/// Every workitem loops over all reduced elements of one result.
fn columns(b: &mut KernelBuilder, body: &Body<'_>, plan: &Plan<'_>) -> Launch {
    let el = &body.el;
    let kept = plan.kept();
    let block = i64::from(cost::GPU_BLOCK).min(pieces(kept, WARP) * WARP);
    let group = b.workgroup_id(Axis::X);
    let item = b.workitem_id(Axis::X);
    let number = el.splits.join(b, group, item, block);
    let bound = b.index(kept);
    let inside = b.cmp(CmpOp::SLt, number, bound);
    b.if_then(inside, |b| {
        el.scope(|| {
            let mut reduced = plan.sizes(true);
            let (outer, at) = if plan.is_row() {
                reduced.pop();
                (number, b.index(0))
            } else {
                let size = plan.extents.last().map_or(1, |e| e.size);
                el.splits.split(b, number, size)
            };
            let start = plan.start(el, b, 1);
            let zero = b.index(0);
            let mut step = |b: &mut KernelBuilder, reduced: ExprId, state: Vec<ExprId>| {
                el.scope(|| {
                    let position = place(b, body, plan, outer, reduced, at);
                    let values = plan.read(el, b, position, 1, 1);
                    plan.write_beside(b, body, position, (1, 1));
                    plan.combine(el, b, &state, &values)
                })
            };
            let sum = share::nest_carried(b, &el.splits, &reduced, zero, start, &mut step);
            plan.write(b, body, &sum, number, (1, 1));
        });
    });
    Launch {
        workgroups: [pieces(kept, block) as u64, 1, 1],
        workitems: [block as u32, 1, 1],
        ..Launch::SINGLE
    }
}

/// A workgroup takes 32 neighbouring columns; its workitems take turns along them and combine what
/// they have through shared memory.
fn few_columns(b: &mut KernelBuilder, body: &Body<'_>, plan: &Plan<'_>) -> Launch {
    let el = &body.el;
    let kept = plan.kept();
    let total: i64 = plan.sizes(true).iter().product();
    let group = b.workgroup_id(Axis::X);
    let item = b.workitem_id(Axis::X);
    let (worker, lane) = el.splits.split(b, item, WARP);
    let number = el.splits.join(b, group, lane, WARP);
    let last = b.index(kept - 1);
    // Workitems beyond the end repeat the last column, so that all of them reach the barriers.
    let safe = b.binary(BinaryOp::SMin, number, last);
    let size = plan.extents.last().map_or(1, |e| e.size);
    let (outer, at) = el.splits.split(b, safe, size);
    let state = no_values(b, body, plan, 1);
    let bounds = (worker, b.index(total), b.index(WORKERS));
    let state = b.for_carried(bounds, &state, Unroll::Auto, |b, reduced, phis| {
        el.scope(|| {
            let position = place(b, body, plan, outer, reduced, at);
            let values = plan.read(el, b, position, 1, 1);
            plan.write_beside(b, body, position, (1, 1));
            with_values(b, body, plan, phis, values)
        })
    });
    let (registers, held) = state.split_at(state.len() - 1);
    let mut partial = (registers.to_vec(), held[0]);
    let buffers = shared_for(b, &partial, (WORKERS * WARP) as u64);
    let mut half = WORKERS / 2;
    while half > 0 {
        put(b, &partial, &buffers, item);
        b.barrier();
        let other = b.add_const(item, half * WARP);
        let top = b.index(WORKERS * WARP - 1);
        let other = b.binary(BinaryOp::SMin, other, top);
        let theirs = take(b, &partial, &buffers, other);
        partial = merge(b, body, plan, &partial, &theirs);
        b.barrier();
        half /= 2;
    }
    let zero = b.index(0);
    let first = b.cmp(CmpOp::IEq, worker, zero);
    let bound = b.index(kept);
    let in_range = b.cmp(CmpOp::SLt, number, bound);
    let writes = b.binary(BinaryOp::And, first, in_range);
    b.if_then(writes, |b| {
        el.scope(|| {
            let start = plan.start(el, b, 1);
            let sum = plan.combine(el, b, &start, &partial.0);
            plan.write(b, body, &sum, number, (1, 1));
        });
    });
    Launch {
        workgroups: [pieces(kept, WARP) as u64, 1, 1],
        workitems: [(WARP * WORKERS) as u32, 1, 1],
        ..Launch::SINGLE
    }
}

/// Shared memory for `count` partial results.
fn shared_for(b: &mut KernelBuilder, partial: &Partial, count: u64) -> Vec<BufId> {
    let all: Vec<ExprId> = partial.0.iter().copied().chain([partial.1]).collect();
    all.into_iter()
        .map(|register| {
            let scalar = b.ty(register).scalar;
            let elem = if scalar == Scalar::I1 {
                Scalar::I8
            } else {
                scalar
            };
            b.scratch("partial", elem, count, Space::Shared)
        })
        .collect()
}

/// Stores a partial result.
fn put(b: &mut KernelBuilder, partial: &Partial, buffers: &[BufId], at: ExprId) {
    let all = partial.0.iter().copied().chain([partial.1]);
    for (register, &buffer) in all.zip(buffers) {
        let stored = if b.ty(register).scalar == Scalar::I1 {
            b.cast(CastOp::ZExt, register, Scalar::I8)
        } else {
            register
        };
        b.store(buffer, at, stored);
    }
}

/// Loads a partial result of the same types as another one.
fn take(b: &mut KernelBuilder, like: &Partial, buffers: &[BufId], at: ExprId) -> Partial {
    let all: Vec<ExprId> = like.0.iter().copied().chain([like.1]).collect();
    let mut loaded = Vec::new();
    for (register, &buffer) in all.into_iter().zip(buffers) {
        let mut value = b.load(buffer, at, 1);
        if b.ty(register).scalar == Scalar::I1 {
            let zero = b.int(b.ty(value), 0);
            value = b.cmp(CmpOp::INe, value, zero);
        }
        loaded.push(value);
    }
    let held = loaded.pop().unwrap_or(like.1);
    (loaded, held)
}

/// Accumulators that may be empty: registers, and whether they hold anything.
type Partial = (Vec<ExprId>, ExprId);

/// A partial result of no values, and that it holds none.
fn no_values(b: &mut KernelBuilder, body: &Body<'_>, plan: &Plan<'_>, lanes: u16) -> Vec<ExprId> {
    let mut state: Vec<ExprId> = Vec::new();
    for register in plan.start(&body.el, b, lanes) {
        let ty = b.ty(register);
        state.push(b.const_bits(ty, 0));
    }
    state.push(b.bool(1, false));
    state
}

/// The partial result `state` with these values, which are all of it while it holds none.
fn with_values(
    b: &mut KernelBuilder,
    body: &Body<'_>,
    plan: &Plan<'_>,
    state: &[ExprId],
    values: Vec<ExprId>,
) -> Vec<ExprId> {
    let (old, held) = state.split_at(state.len() - 1);
    let both = plan.combine(&body.el, b, old, &values);
    let mut next: Vec<ExprId> = Vec::new();
    for (both, value) in both.into_iter().zip(values) {
        next.push(b.select(held[0], both, value));
    }
    next.push(b.bool(1, true));
    next
}

/// Two partial results as one.
fn merge(
    b: &mut KernelBuilder,
    body: &Body<'_>,
    plan: &Plan<'_>,
    x: &Partial,
    y: &Partial,
) -> Partial {
    let both = plan.combine(&body.el, b, &x.0, &y.0);
    let mut registers = Vec::new();
    for ((&x_only, &y_only), both) in x.0.iter().zip(&y.0).zip(both) {
        let with_x = b.select(y.1, both, x_only);
        registers.push(b.select(x.1, with_x, y_only));
    }
    (registers, b.binary(BinaryOp::Or, x.1, y.1))
}

/// A register of another workitem of the warp, in 32-bit words.
fn from_other(b: &mut KernelBuilder, value: ExprId, mask: i64) -> ExprId {
    let lane = b.int(Ty::scalar(Scalar::I32), mask);
    let ty = b.ty(value);
    let int = ty.scalar.as_int();
    let bits = b.bitcast(value, ty.with_scalar(int));
    let moved = if int.bits() == 64 {
        let low = b.cast(CastOp::Trunc, bits, Scalar::I32);
        let shift = b.int(ty.with_scalar(int), 32);
        let high = b.binary(BinaryOp::LShr, bits, shift);
        let high = b.cast(CastOp::Trunc, high, Scalar::I32);
        let low = b.warp_shuffle(ShuffleKind::Xor, low, lane);
        let high = b.warp_shuffle(ShuffleKind::Xor, high, lane);
        let low = b.cast(CastOp::ZExt, low, Scalar::I64);
        let high = b.cast(CastOp::ZExt, high, Scalar::I64);
        let high = b.binary(BinaryOp::Shl, high, shift);
        b.binary(BinaryOp::Or, low, high)
    } else {
        let word = b.cast(CastOp::ZExt, bits, Scalar::I32);
        let word = b.warp_shuffle(ShuffleKind::Xor, word, lane);
        b.cast(CastOp::Trunc, word, int)
    };
    b.bitcast(moved, ty)
}

/// The partial results of a warp as one, in every workitem.
fn over_warp(
    b: &mut KernelBuilder,
    body: &Body<'_>,
    plan: &Plan<'_>,
    mut partial: Partial,
    width: i64,
) -> Partial {
    let mut mask = width / 2;
    while mask > 0 {
        let registers = partial.0.iter().map(|&r| from_other(b, r, mask)).collect();
        let other = (registers, from_other(b, partial.1, mask));
        partial = merge(b, body, plan, &partial, &other);
        mask /= 2;
    }
    partial
}

/// A warp or a block for each row.
fn rows(b: &mut KernelBuilder, body: &Body<'_>, plan: &Plan<'_>) -> Launch {
    let el = &body.el;
    let kept = plan.kept();
    let size = plan.extents.last().map_or(1, |e| e.size);
    let per_block = if size <= WARP_ROW { 8 } else { 1 };
    let block = 256i64;
    let workers = block / per_block;
    let group = b.workgroup_id(Axis::X);
    let item = b.workitem_id(Axis::X);
    let (row_in_block, worker) = el.splits.split(b, item, workers);
    let row = el.splits.join(b, group, row_in_block, per_block);
    let last = b.index(kept - 1);
    // Rows beyond the end repeat the last one, so that every workitem takes part in shuffles.
    let safe_row = b.binary(BinaryOp::SMin, row, last);
    let partial = row_partial(b, body, plan, safe_row, worker, workers);
    let mut partial = over_warp(b, body, plan, partial, WARP);
    let bound = b.index(kept);
    let zero = b.index(0);
    let mut writes = b.cmp(CmpOp::IEq, worker, zero);
    let in_range = b.cmp(CmpOp::SLt, row, bound);
    writes = b.binary(BinaryOp::And, writes, in_range);
    if workers > WARP {
        partial = over_block(b, body, plan, &partial, worker, workers / WARP);
    }
    b.if_then(writes, |b| {
        el.scope(|| {
            let start = plan.start(el, b, 1);
            let sum = plan.combine(el, b, &start, &partial.0);
            plan.write(b, body, &sum, row, (1, 1));
        });
    });
    Launch {
        workgroups: [pieces(kept, per_block) as u64, 1, 1],
        workitems: [block as u32, 1, 1],
        ..Launch::SINGLE
    }
}

/// What one workitem sees of a row.
fn row_partial(
    b: &mut KernelBuilder,
    body: &Body<'_>,
    plan: &Plan<'_>,
    row: ExprId,
    worker: ExprId,
    workers: i64,
) -> Partial {
    let el = &body.el;
    let size = plan.extents.last().map_or(1, |e| e.size);
    let mut lanes = i64::from(cost::lanes(el.target, plan.work.widest));
    while size % lanes != 0 || size < lanes * workers {
        if lanes == 1 {
            break;
        }
        lanes /= 2;
    }
    let mut outer = plan.sizes(true);
    outer.pop();
    let state = no_values(b, body, plan, lanes as u16);
    let zero = b.index(0);
    let first = b.mul_const(worker, lanes);
    let state = share::nest_carried(
        b,
        &el.splits,
        &outer,
        zero,
        state,
        &mut |b, reduced, state| {
            let bounds = (first, b.index(size), b.index(lanes * workers));
            b.for_carried(bounds, &state, Unroll::Auto, |b, at, phis| {
                el.scope(|| {
                    let position = place(b, body, plan, row, reduced, at);
                    let values = plan.read(el, b, position, lanes as u16, lanes);
                    plan.write_beside(b, body, position, (lanes as u16, lanes));
                    with_values(b, body, plan, phis, values)
                })
            })
        },
    );
    let (registers, held) = state.split_at(state.len() - 1);
    let registers = plan.fold_lanes(el, b, registers.to_vec());
    (registers, held[0])
}

/// The partial results of the warps of a block as one, in its first warp.
fn over_block(
    b: &mut KernelBuilder,
    body: &Body<'_>,
    plan: &Plan<'_>,
    partial: &Partial,
    worker: ExprId,
    warps: i64,
) -> Partial {
    let (warp, lane) = body.el.splits.split(b, worker, WARP);
    let buffers = shared_for(b, partial, warps as u64);
    let zero = b.index(0);
    let leads = b.cmp(CmpOp::IEq, lane, zero);
    b.if_then(leads, |b| put(b, partial, &buffers, warp));
    b.barrier();
    let (_, slot) = body.el.splits.split(b, lane, warps);
    let loaded = take(b, partial, &buffers, slot);
    over_warp(b, body, plan, loaded, warps)
}
