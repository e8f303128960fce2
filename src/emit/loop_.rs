//! Elementwise loops: every element of one or more results of equal size, each from its operands'
//! elements.
//!
//! On a CPU a nest of loops over the extents that [`crate::emit::cuts`] finds, the innermost in
//! vectors with an exact tail, the outermost shared out to tasks. On a GPU a flat grid, one vector
//! a workitem. Results of sub-byte type are written in whole bytes.

use std::collections::BTreeSet;

use crate::base::Result;
use crate::emit::cost;
use crate::emit::cost::pieces;
use crate::emit::cuts::Cuts;
use crate::emit::elemental::Source;
use crate::emit::elemental::unsupported;
use crate::emit::request::Emitted;
use crate::emit::request::KernelRequest;
use crate::emit::setup::Body;
use crate::emit::setup::Setup;
use crate::emit::share::for_box;
use crate::emit::share::nest;
use crate::emit::share::workgroups;
use crate::emit::value;
use crate::emit::value::Value;
use crate::executable::Launch;
use crate::hlo::InstrId;
use crate::kernel::Axis;
use crate::kernel::BinaryOp;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::target::Platform;

/// A loop over values of equal size and where each of them goes.
pub struct Job<'j> {
    /// An instruction, which of its values, and the array it is written to.
    pub parts: Vec<(InstrId, usize, Source)>,
    /// Number of elements.
    pub total: i64,
    /// Multiples that runs of elements must not cross.
    pub needed: BTreeSet<i64>,
    /// The row-major position in the array of the element at a position in the value; absent where
    /// they are the same.
    pub place: Option<Place<'j>>,
}

/// Maps the position of an element to where it is written.
pub type Place<'j> = &'j dyn Fn(&mut KernelBuilder, ExprId) -> ExprId;

impl Job<'_> {
    /// Every result of a body, in its place.
    pub fn whole(body: &Body<'_>) -> Self {
        let values = body.result_values();
        let outputs = body.outputs.iter().cloned();
        Self {
            parts: values
                .into_iter()
                .zip(outputs)
                .map(|((root, part), output)| (root, part, output))
                .collect(),
            total: body.outputs[0].shape.element_count() as i64,
            needed: BTreeSet::new(),
            place: None,
        }
    }
}

/// How a loop is cut.
struct Plan<'j> {
    job: &'j Job<'j>,
    /// Loop extents, outermost first.
    extents: Vec<i64>,
    /// Elements a step.
    lanes: u16,
    /// Elements of the results that share a byte, the most of any result.
    per_byte: i64,
    /// Whether elements are written one by one into packed bytes.
    single: bool,
    /// Whether an element must not be computed again once it is written.
    once: bool,
    /// Tasks wanted.
    tasks: i64,
}

/// Emits the loop of a request.
///
/// # Errors
/// `EMIT_UNSUPPORTED` when the body has an op without an elemental form, or results of different
/// sizes.
pub fn emit(request: &KernelRequest<'_>) -> Result<Emitted> {
    let Setup { mut b, body } = Setup::new(request);
    let job = Job::whole(&body);
    let even = |o: &Source| o.shape.element_count() as i64 == job.total;
    if !body.outputs.iter().all(even) {
        let instr = request.module.instr(request.instr);
        return Err(unsupported(instr, request.module, request.target)
            .note("the results have different numbers of elements"));
    }
    if job.total == 0 {
        return Ok(Emitted::default());
    }
    let launch = walk(&mut b, &body, &[job], is_in_place(request));
    body.finish(b, launch)
}

/// Whether a result of a request lies over an argument.
pub fn is_in_place(request: &KernelRequest<'_>) -> bool {
    let args = &request.args;
    let mut results = request.results.iter();
    results.any(|r| args.iter().any(|a| a.slice.overlaps(&r.slice)))
}

/// Runs jobs that do not depend on one another. With `once`, no element is computed again once it
/// is written.
pub fn walk(b: &mut KernelBuilder, body: &Body<'_>, jobs: &[Job<'_>], once: bool) -> Launch {
    let platform = body.el.target.platform();
    let mut all = Launch::SINGLE;
    for job in jobs {
        let plan = plan(body, job, once);
        let launch = match platform {
            Platform::Cuda if !plan.single => emit_gpu(b, body, &plan),
            _ => emit_cpu(b, body, &plan),
        };
        all.workgroups[0] = all.workgroups[0].max(launch.workgroups[0]);
        all.workitems[0] = all.workitems[0].max(launch.workitems[0]);
    }
    all
}

fn plan<'j>(body: &Body<'_>, job: &'j Job<'j>, once: bool) -> Plan<'j> {
    let target = body.el.target;
    let is_leaf = |id| body.el.is_leaf(id);
    let cuts = Cuts::new(body.el.module, &is_leaf);
    let roots: Vec<InstrId> = job.parts.iter().map(|(root, ..)| *root).collect();
    let mut extents = cuts.extents(job.total, &job.needed, &roots);
    let work = cost::of_body(&body.el, &roots);
    let mut per_byte = job
        .parts
        .iter()
        .map(|(_, _, output)| value::per_byte(output.shape.ty) as i64)
        .max()
        .unwrap_or(1);
    let single = per_byte > 1 && job.place.is_some();
    if single {
        per_byte = 1;
    }
    if per_byte > 1 && extents.last().is_some_and(|last| last % per_byte != 0) {
        extents = vec![job.total];
    }
    let lanes = if work.scalar || single {
        1
    } else {
        cost::lanes(target, work.widest)
    };
    let tasks = if single {
        1
    } else {
        cost::tasks(target, work.per_element * job.total as u64) as i64
    };
    Plan {
        job,
        extents,
        lanes: lanes.max(per_byte as u16),
        per_byte,
        single,
        once,
        tasks,
    }
}

/// Computes and writes a run of every value from a row-major position on.
fn elements(
    b: &mut KernelBuilder,
    body: &Body<'_>,
    plan: &Plan<'_>,
    position: ExprId,
    lanes: u16,
    block: i64,
) {
    let el = &body.el;
    el.scope(|| {
        let values: Vec<Value> = plan
            .job
            .parts
            .iter()
            .map(|&(root, part, _)| {
                let index = el.splits.run_at(b, &el.dims(root), position, lanes, block);
                el.values(b, root, &index)[part]
            })
            .collect();
        let at = match plan.job.place {
            Some(place) => place(b, position),
            None => position,
        };
        for ((_, _, output), value) in plan.job.parts.iter().zip(values) {
            if plan.single {
                value::store_single(b, output.buf, output.shape.ty, at, value);
            } else {
                value::store(b, output.buf, output.shape.ty, at, lanes, value);
            }
        }
    });
}

/// Computes and writes the last elements, fewer than a byte of the narrowest type holds.
fn partial_byte(b: &mut KernelBuilder, body: &Body<'_>, plan: &Plan<'_>, start: i64, count: i64) {
    let el = &body.el;
    el.scope(|| {
        let position = b.index(start);
        for (root, part, output) in &plan.job.parts {
            let values: Vec<Value> = (start..start + count)
                .map(|i| {
                    let at = b.index(i);
                    let index = el.splits.run_at(b, &el.dims(*root), at, 1, 1);
                    el.values(b, *root, &index)[*part]
                })
                .collect();
            if value::per_byte(output.shape.ty) > 1 {
                value::store_packed(b, output.buf, output.shape.ty, position, &values);
                continue;
            }
            for (i, value) in values.into_iter().enumerate() {
                let at = b.index(start + i as i64);
                value::store(b, output.buf, output.shape.ty, at, 1, value);
            }
        }
    });
}

fn emit_cpu(b: &mut KernelBuilder, body: &Body<'_>, plan: &Plan<'_>) -> Launch {
    let (&row, outer) = plan
        .extents
        .split_last()
        .expect("a loop has at least one extent");
    let rows: i64 = outer.iter().product();
    if plan.tasks > 1 && rows < plan.tasks * 2 && row >= plan.tasks * i64::from(plan.lanes) * 8 {
        // Few long rows: every task takes its part of each.
        let unit = i64::from(plan.lanes) * 4;
        let part = pieces(pieces(row, plan.tasks), unit) * unit;
        let count = pieces(row, part);
        let group = b.workgroup_id(Axis::X);
        let start = b.mul_const(group, part);
        let zero = b.index(0);
        nest(b, &body.el.splits, outer, zero, &mut |b, prefix| {
            row_part(b, body, plan, prefix, (start, part));
        });
        return workgroups(count);
    }
    for_box(b, &body.el.splits, outer, plan.tasks, &mut |b, prefix| {
        whole_row(b, body, plan, prefix);
    })
}

impl Plan<'_> {
    fn row(&self) -> i64 {
        self.extents[self.extents.len() - 1]
    }
    /// What a run of that many lanes at a multiple of its length in a row never crosses.
    fn block(&self, lanes: u16) -> i64 {
        let lanes = i64::from(lanes);
        if self.row() % lanes == 0 || self.extents.len() == 1 {
            lanes
        } else {
            self.row()
        }
    }
}

fn row_elements(
    b: &mut KernelBuilder,
    body: &Body<'_>,
    plan: &Plan<'_>,
    prefix: ExprId,
    at: ExprId,
    lanes: u16,
) {
    let position = body.el.splits.join(b, prefix, at, plan.row());
    let aligned = b
        .as_const_index(at)
        .is_none_or(|at| at % i64::from(lanes) == 0);
    let block = if aligned {
        plan.block(lanes)
    } else {
        plan.row()
    };
    elements(b, body, plan, position, lanes, block);
}

/// One row from its start to its end.
fn whole_row(b: &mut KernelBuilder, body: &Body<'_>, plan: &Plan<'_>, prefix: ExprId) {
    let lanes = i64::from(plan.lanes);
    let main = plan.row() / lanes * lanes;
    b.for_range(main, lanes, |b, at| {
        row_elements(b, body, plan, prefix, at, plan.lanes);
    });
    tail(b, body, plan, prefix, main);
}

/// What is left of a row when no full vector fits.
fn tail(b: &mut KernelBuilder, body: &Body<'_>, plan: &Plan<'_>, prefix: ExprId, mut done: i64) {
    let lanes = i64::from(plan.lanes);
    let row = plan.row();
    if row - done > 1 && row >= lanes && !plan.once && plan.per_byte == 1 {
        // One more vector that ends with the row; what it computes twice is the same twice.
        let at = b.index(row - lanes);
        row_elements(b, body, plan, prefix, at, plan.lanes);
        return;
    }
    let mut step = lanes / 2;
    while step >= 1 && done < row {
        if step < plan.per_byte {
            partial_byte(b, body, plan, done, row - done);
            return;
        }
        if row - done >= step {
            let at = b.index(done);
            row_elements(b, body, plan, prefix, at, step as u16);
            done += step;
        } else {
            step /= 2;
        }
    }
}

/// From `start` of a row, `part` elements or up to its end.
fn row_part(
    b: &mut KernelBuilder,
    body: &Body<'_>,
    plan: &Plan<'_>,
    prefix: ExprId,
    (start, part): (ExprId, i64),
) {
    let lanes = i64::from(plan.lanes);
    let row = plan.row();
    let main = row / lanes * lanes;
    let end = b.add_const(start, part);
    let bound = b.index(main);
    let end = b.binary(BinaryOp::SMin, end, bound);
    let step = b.index(lanes);
    b.for_loop((start, end, step), |b, at| {
        row_elements(b, body, plan, prefix, at, plan.lanes);
    });
    if main == row {
        return;
    }
    let last = b.index((row - 1) / part * part);
    let is_last = b.cmp(CmpOp::IEq, start, last);
    b.if_then(is_last, |b| tail(b, body, plan, prefix, main));
}

fn emit_gpu(b: &mut KernelBuilder, body: &Body<'_>, plan: &Plan<'_>) -> Launch {
    let mut lanes = i64::from(plan.lanes);
    while plan.row() % lanes != 0 && lanes > plan.per_byte {
        lanes /= 2;
    }
    let total = plan.job.total;
    let full = total / lanes;
    let rest = total % lanes;
    let block = i64::from(cost::GPU_BLOCK);
    let items = full + i64::from(rest > 0);
    let block = block.min(pieces(items, 32) * 32);
    let group = b.workgroup_id(Axis::X);
    let item = b.workitem_id(Axis::X);
    let number = body.el.splits.join(b, group, item, block);
    let (bound, zero) = (b.index(full), b.index(0));
    let inside = b.cmp(CmpOp::SLt, number, bound);
    b.if_then(inside, |b| {
        let position = body.el.splits.join(b, number, zero, lanes);
        elements(b, body, plan, position, lanes as u16, lanes);
    });
    if rest > 0 {
        let is_last = b.cmp(CmpOp::IEq, number, bound);
        b.if_then(is_last, |b| {
            partial_byte(b, body, plan, full * lanes, rest);
        });
    }
    Launch {
        workgroups: [pieces(items, block) as u64, 1, 1],
        workitems: [block as u32, 1, 1],
        ..Launch::SINGLE
    }
}
