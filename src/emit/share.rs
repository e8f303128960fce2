//! Sharing the outer loops of a kernel out to CPU tasks.

use crate::emit::cost::GPU_BLOCK;
use crate::emit::cost::pieces;
use crate::emit::index::Splits;
use crate::executable::Launch;
use crate::kernel::Axis;
use crate::kernel::BinaryOp;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::target::Platform;
use crate::target::Target;

/// A launch of that many workgroups of one workitem.
pub fn workgroups(count: i64) -> Launch {
    Launch {
        workgroups: [count.max(1) as u64, 1, 1],
        ..Launch::SINGLE
    }
}

/// Runs `body` for every index of a box of `extents` (with the row-major number of the index so
/// far), the leading loops shared out to at most `tasks` workgroups.
pub fn for_box(
    b: &mut KernelBuilder,
    splits: &Splits,
    extents: &[i64],
    tasks: i64,
    body: &mut dyn FnMut(&mut KernelBuilder, ExprId),
) -> Launch {
    let tasks = tasks.min(extents.iter().product());
    if tasks <= 1 {
        let zero = b.index(0);
        nest(b, splits, extents, zero, body);
        return Launch::SINGLE;
    }
    let (mut shared, mut taken) = (1, 0);
    while taken < extents.len() && shared < tasks * 4 {
        shared *= extents[taken];
        taken += 1;
    }
    let part = pieces(shared, tasks);
    let group = b.workgroup_id(Axis::X);
    let start = b.mul_const(group, part);
    let end = b.add_const(start, part);
    let bound = b.index(shared);
    let end = b.binary(BinaryOp::SMin, end, bound);
    let step = b.index(1);
    b.for_loop((start, end, step), |b, var| {
        nest(b, splits, &extents[taken..], var, body);
    });
    workgroups(pieces(shared, part))
}

/// Runs `body` for every index of a box, in order.
pub fn nest(
    b: &mut KernelBuilder,
    splits: &Splits,
    extents: &[i64],
    prefix: ExprId,
    body: &mut dyn FnMut(&mut KernelBuilder, ExprId),
) {
    match extents.split_first() {
        None => body(b, prefix),
        Some((&extent, rest)) => b.for_range(extent, 1, |b, var| {
            let prefix = splits.join(b, prefix, var, extent);
            nest(b, splits, rest, prefix, body);
        }),
    }
}

/// The same with values carried from one index to the next.
pub fn nest_carried(
    b: &mut KernelBuilder,
    splits: &Splits,
    extents: &[i64],
    prefix: ExprId,
    values: Vec<ExprId>,
    body: &mut dyn FnMut(&mut KernelBuilder, ExprId, Vec<ExprId>) -> Vec<ExprId>,
) -> Vec<ExprId> {
    let Some((&extent, rest)) = extents.split_first() else {
        return body(b, prefix, values);
    };
    let (zero, one) = (b.index(0), b.index(1));
    if extent == 1 {
        let prefix = splits.join(b, prefix, zero, 1);
        return nest_carried(b, splits, rest, prefix, values, body);
    }
    let end = b.index(extent);
    b.for_carried(
        (zero, end, one),
        &values,
        crate::kernel::Unroll::Auto,
        |b, var, phis| {
            let prefix = splits.join(b, prefix, var, extent);
            nest_carried(b, splits, rest, prefix, phis.to_vec(), body)
        },
    )
}

/// Runs `body` for every number below `total`: shared out to tasks on a CPU, a workitem each on a
/// GPU.
pub fn for_items(
    b: &mut KernelBuilder,
    splits: &Splits,
    target: &Target,
    total: i64,
    tasks: i64,
    body: &mut dyn FnMut(&mut KernelBuilder, ExprId),
) -> Launch {
    if target.platform() == Platform::Cpu {
        return for_box(b, splits, &[total], tasks, body);
    }
    let block = i64::from(GPU_BLOCK).min(pieces(total, 32) * 32);
    let group = b.workgroup_id(Axis::X);
    let item = b.workitem_id(Axis::X);
    let number = splits.join(b, group, item, block);
    let bound = b.index(total);
    let inside = b.cmp(CmpOp::SLt, number, bound);
    b.if_then(inside, |b| body(b, number));
    Launch {
        workgroups: [pieces(total, block) as u64, 1, 1],
        workitems: [block as u32, 1, 1],
        ..Launch::SINGLE
    }
}
