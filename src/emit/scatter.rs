//! Scatter: updates combined into an array in place, windows that do not fit left out.
//!
//! When the result does not lie over the operand, the operand is copied (or computed) there first.
//! A CPU walks the updates in order, so that combiners of any kind and repeated indices are exact;
//! tasks share the window between them, never the updates. A GPU has a workitem for each update
//! element and combines atomically; combiners that no atomic operation covers run in one workitem.

use std::collections::BTreeSet;

use smallvec::SmallVec;

use crate::base::Result;
use crate::emit::cost;
use crate::emit::cost::pieces;
use crate::emit::elemental::Elemental;
use crate::emit::elemental::Values;
use crate::emit::elemental::unsupported;
use crate::emit::index::Index;
use crate::emit::index::volume;
use crate::emit::inline::monoid;
use crate::emit::loop_;
use crate::emit::loop_::Job;
use crate::emit::request::Emitted;
use crate::emit::request::KernelRequest;
use crate::emit::request::Step;
use crate::emit::setup::Body;
use crate::emit::setup::Setup;
use crate::emit::share;
use crate::emit::update_slice::leaf_of;
use crate::emit::value;
use crate::emit::value::Access;
use crate::emit::value::Value;
use crate::executable::CopyThunk;
use crate::executable::Launch;
use crate::hlo::BinaryOp as HloBinary;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::ScatterDims;
use crate::kernel::Axis;
use crate::kernel::BinaryOp;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::target::Platform;

/// A scatter taken apart.
struct Plan<'a> {
    inputs: &'a [InstrId],
    indices: InstrId,
    updates: &'a [InstrId],
    numbers: &'a ScatterDims,
    body: CompId,
    unique: bool,
    /// Dimensions of the operand and of the updates.
    full: Dims,
    update: Dims,
    /// Update dimensions that are not of the window.
    scatter_dims: Dims,
    /// Operand dimension of each window dimension.
    window_to: Dims,
    /// Window size in each operand dimension.
    sizes: Dims,
}

/// Emits the scatter of a request.
///
/// # Errors
/// `EMIT_UNSUPPORTED` when a producer or the combiner has an op without an elemental form.
pub fn emit(request: &KernelRequest<'_>) -> Result<Emitted> {
    let module = request.module;
    let Setup { mut b, body } = Setup::new(request);
    let Some(plan) = plan(module, &body) else {
        let instr = module.instr(request.instr);
        return Err(unsupported(instr, module, request.target));
    };
    let mut emitted = before(request, &body, &plan)?;
    if volume(&plan.full) == 0 {
        return Ok(Emitted::default());
    }
    if volume(&plan.update) == 0 {
        return Ok(emitted);
    }
    let launch = match request.target.platform() {
        Platform::Cuda => match atomic(module, &plan, &body.el) {
            Some(how) => on_gpu(&mut b, &body, &plan, how),
            None => in_order(&mut b, &body, &plan, 1),
        },
        Platform::Cpu => {
            let work = volume(&plan.update) as u64 * 8 * plan.inputs.len() as u64;
            let tasks = cost::tasks(request.target, work) as i64;
            in_order(&mut b, &body, &plan, tasks)
        }
    };
    emitted.steps.extend(body.finish(b, launch)?.steps);
    Ok(emitted)
}

fn plan<'a>(module: &'a Module, body: &Body<'_>) -> Option<Plan<'a>> {
    let mut id = *body.roots.first()?;
    while matches!(
        module.instr(id).op,
        Op::Bitcast | Op::GetTupleElement { .. }
    ) {
        id = module.instr(id).operands[0];
    }
    let instr = module.instr(id);
    let Op::Scatter {
        dims: numbers,
        body: comp,
        unique_indices,
        ..
    } = &instr.op
    else {
        return None;
    };
    let count = (instr.operands.len() - 1) / 2;
    let el = &body.el;
    let full = el.dims(instr.operands[0]);
    let update = el.dims(instr.operands[count + 1]);
    let window = &numbers.update_window_dims;
    let window_to: Dims = (0..full.len())
        .filter(|d| {
            !numbers.inserted_window_dims.contains(d) && !numbers.input_batching_dims.contains(d)
        })
        .collect();
    let mut sizes: Dims = full.iter().map(|_| 1).collect();
    for (i, &d) in window_to.iter().enumerate() {
        sizes[d] = update[window[i]];
    }
    Some(Plan {
        inputs: &instr.operands[..count],
        indices: instr.operands[count],
        updates: &instr.operands[count + 1..],
        numbers,
        body: *comp,
        unique: *unique_indices,
        scatter_dims: (0..update.len()).filter(|d| !window.contains(d)).collect(),
        full,
        update,
        window_to,
        sizes,
    })
}

/// What makes the results hold the operands: nothing, a copy, or a kernel.
fn before(request: &KernelRequest<'_>, body: &Body<'_>, plan: &Plan<'_>) -> Result<Emitted> {
    let mut steps = Vec::new();
    for (i, &input) in plan.inputs.iter().enumerate() {
        let leaf = leaf_of(&body.el, input).and_then(|leaf| body.slice_of(leaf));
        match leaf {
            Some(from) if from.slice == request.results[i].slice => {}
            Some(from) => steps.push(Step::Copy(CopyThunk {
                source: from.clone(),
                destination: request.results[i].clone(),
            })),
            None => {
                let name = format!("{}_start{i}", request.name);
                let Setup { mut b, body } = Setup::named(request, &name);
                let total = volume(&plan.full);
                let job = Job {
                    parts: vec![(input, 0, body.outputs[i].clone())],
                    total,
                    needed: BTreeSet::new(),
                    place: None,
                };
                let launch = loop_::walk(&mut b, &body, &[job], false);
                if total > 0 {
                    steps.extend(body.finish(b, launch)?.steps);
                }
            }
        }
    }
    Ok(Emitted { steps })
}

impl Plan<'_> {
    /// First operand index of the window at a scatter index, and whether the window fits.
    fn window(
        &self,
        el: &Elemental<'_>,
        b: &mut KernelBuilder,
        scatter_at: &[ExprId],
    ) -> (Vec<ExprId>, ExprId) {
        let zero = b.index(0);
        let mut start = vec![zero; self.full.len()];
        let mut fits = b.bool(1, true);
        let rank = el.dims(self.indices).len();
        let vector_dim = self.numbers.index_vector_dim;
        for (k, &d) in self.numbers.scatter_dims_to_operand_dims.iter().enumerate() {
            let mut at: SmallVec<[ExprId; 6]> = SmallVec::from_slice(scatter_at);
            if vector_dim < rank {
                at.insert(vector_dim, b.index(k as i64));
            }
            let index = el.value(b, self.indices, &Index::scalar(at)).one();
            let index = value::to_index(b, el.ty(self.indices), index);
            let last = b.index(self.full[d] as i64 - self.sizes[d] as i64);
            // A negative index is a large unsigned one.
            let zero = b.index(0);
            let not_negative = b.cmp(CmpOp::SGe, index, zero);
            let not_beyond = b.cmp(CmpOp::SLe, index, last);
            let here = b.binary(BinaryOp::And, not_negative, not_beyond);
            fits = b.binary(BinaryOp::And, fits, here);
            start[d] = index;
        }
        for (i, &d) in self.numbers.input_batching_dims.iter().enumerate() {
            let wanted = self.numbers.scatter_indices_batching_dims[i];
            start[d] = scatter_at[wanted - usize::from(wanted > vector_dim)];
        }
        (start, fits)
    }

    /// Update index from a scatter index and a window index.
    fn update_at(&self, scatter_at: &[ExprId], window_at: &[ExprId]) -> SmallVec<[ExprId; 6]> {
        let mut at: SmallVec<[ExprId; 6]> = SmallVec::new();
        let (mut scatter, mut window) = (scatter_at.iter(), window_at.iter());
        for d in 0..self.update.len() {
            let next = if self.scatter_dims.contains(&d) {
                scatter.next()
            } else {
                window.next()
            };
            at.extend(next.copied());
        }
        at
    }

    /// Operand index from the window's start and a window index.
    fn operand_at(
        &self,
        b: &mut KernelBuilder,
        start: &[ExprId],
        window_at: &[ExprId],
    ) -> Vec<ExprId> {
        let mut at = start.to_vec();
        for (&d, &offset) in self.window_to.iter().zip(window_at) {
            at[d] = b.add(at[d], offset);
        }
        at
    }

    fn window_sizes(&self) -> Dims {
        self.window_to.iter().map(|&d| self.sizes[d]).collect()
    }

    /// Whether neighbours along the last window dimension are neighbours in operand and update.
    fn runs(&self, el: &Elemental<'_>) -> bool {
        let last = self.update.len().checked_sub(1);
        let updates = last.is_some_and(|last| !self.scatter_dims.contains(&last));
        let operand = self.window_to.last() == self.full.len().checked_sub(1).as_ref();
        let inputs = self.inputs.iter();
        let whole = inputs.clone().all(|&i| value::per_byte(el.ty(i)) == 1);
        updates && operand && whole
    }
}

/// The updates one after the other; tasks share the last window dimension.
fn in_order(b: &mut KernelBuilder, body: &Body<'_>, plan: &Plan<'_>, tasks: i64) -> Launch {
    let el = &body.el;
    let sizes = plan.window_sizes();
    let row = sizes.last().map_or(1, |&s| s as i64);
    let outer: Vec<i64> = sizes[..sizes.len().saturating_sub(1)]
        .iter()
        .map(|&s| s as i64)
        .collect();
    let widest = cost::of_body(el, plan.updates).widest;
    let lanes = if plan.runs(el) {
        i64::from(cost::lanes(el.target, widest))
    } else {
        1
    };
    let tasks = if plan.runs(el) && row >= tasks * lanes * 4 {
        tasks
    } else {
        1
    };
    let part = pieces(pieces(row, tasks), lanes) * lanes;
    let count = pieces(row, part);
    let from = if count > 1 {
        let group = b.workgroup_id(Axis::X);
        b.mul_const(group, part)
    } else {
        b.index(0)
    };
    let scatter_sizes: Vec<i64> = plan
        .scatter_dims
        .iter()
        .map(|&d| plan.update[d] as i64)
        .collect();
    let scatter_dims: Dims = scatter_sizes.iter().map(|&s| s as usize).collect();
    let outer_dims: Dims = outer.iter().map(|&s| s as usize).collect();
    let zero = b.index(0);
    share::nest(b, &el.splits, &scatter_sizes, zero, &mut |b, number| {
        el.scope(|| {
            let scatter_at = el.splits.unravel(b, &scatter_dims, number);
            let (start, fits) = plan.window(el, b, &scatter_at);
            b.if_then(fits, |b| {
                share::nest(b, &el.splits, &outer, zero, &mut |b, number| {
                    let at = el.splits.unravel(b, &outer_dims, number);
                    let line = Line {
                        body,
                        plan,
                        scatter_at: &scatter_at,
                        start: &start,
                        outer: &at,
                        has_row: !sizes.is_empty(),
                    };
                    line.part(b, (from, part), row, lanes);
                });
            });
        });
    });
    share::workgroups(count)
}

/// One line of a window along its last dimension.
struct Line<'a, 'm> {
    body: &'a Body<'m>,
    plan: &'a Plan<'a>,
    scatter_at: &'a [ExprId],
    start: &'a [ExprId],
    outer: &'a [ExprId],
    /// Whether the window has a dimension at all.
    has_row: bool,
}

impl Line<'_, '_> {
    fn part(&self, b: &mut KernelBuilder, (from, part): (ExprId, i64), row: i64, lanes: i64) {
        let main = row / lanes * lanes;
        let step = b.index(lanes);
        if b.as_const(from).is_some() {
            b.for_range(main, lanes, |b, at| self.run(b, at, lanes as u16));
        } else {
            let end = b.add_const(from, part);
            let bound = b.index(main);
            let end = b.binary(BinaryOp::SMin, end, bound);
            b.for_loop((from, end, step), |b, at| self.run(b, at, lanes as u16));
        }
        if main == row {
            return;
        }
        let last = b.index((row - 1) / part * part);
        let is_last = b.cmp(CmpOp::IEq, from, last);
        b.if_then(is_last, |b| {
            let bounds = (b.index(main), b.index(row), b.index(1));
            b.for_loop(bounds, |b, at| self.run(b, at, 1));
        });
    }

    /// Combines a run of updates into the results.
    fn run(&self, b: &mut KernelBuilder, at: ExprId, lanes: u16) {
        let (el, plan) = (&self.body.el, self.plan);
        el.scope(|| {
            let mut window_at = self.outer.to_vec();
            if self.has_row {
                window_at.push(at);
            }
            let update_at = plan.update_at(self.scatter_at, &window_at);
            let index = if lanes > 1 {
                let last = update_at.len() - 1;
                let size = plan.update[last] as i64;
                let block = if size % i64::from(lanes) == 0 {
                    i64::from(lanes)
                } else {
                    size
                };
                Index::run(update_at, lanes, last, block)
            } else {
                Index::scalar(update_at)
            };
            let operand_at = plan.operand_at(b, self.start, &window_at);
            let position = el.splits.position(b, &plan.full, &operand_at);
            let mut args: Vec<Value> = Vec::new();
            for output in &self.body.outputs {
                let access = Access::run(lanes, false);
                args.push(value::load(
                    b,
                    output.buf,
                    output.shape.ty,
                    position,
                    access,
                ));
            }
            for &update in plan.updates {
                args.push(el.value(b, update, &index));
            }
            let sums = el.call(b, plan.body, &args, false);
            store_all(b, self.body, position, lanes, &sums);
        });
    }
}

fn store_all(
    b: &mut KernelBuilder,
    body: &Body<'_>,
    position: ExprId,
    lanes: u16,
    values: &Values,
) {
    for (output, &value) in body.outputs.iter().zip(values) {
        if lanes == 1 {
            value::store_single(b, output.buf, output.shape.ty, position, value);
        } else {
            value::store(b, output.buf, output.shape.ty, position, lanes, value);
        }
    }
}

/// How workitems combine into one array without losing an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Atomic {
    /// One atomic operation.
    Rmw(BinaryOp),
    /// A plain store: the combiner gives the update.
    Store,
    /// Load, combine, store: no two updates meet.
    Unique,
    /// Compare and swap until nothing came in between.
    Swap,
}

fn atomic(module: &Module, plan: &Plan<'_>, el: &Elemental<'_>) -> Option<Atomic> {
    let types: Vec<PrimitiveType> = plan.inputs.iter().map(|&i| el.ty(i)).collect();
    if types.iter().any(|&ty| value::per_byte(ty) > 1) {
        return None;
    }
    if plan.unique {
        return Some(Atomic::Unique);
    }
    let [ty] = types[..] else { return None };
    let root = module.comp(plan.body).root;
    if module.comp(plan.body).params.get(1) == Some(&root) {
        return Some(Atomic::Store);
    }
    if ty.is_complex() || ty.bit_width() < 32 {
        return None;
    }
    let signed = ty.is_signed();
    let rmw = match monoid(module, plan.body) {
        Some(HloBinary::Add) => Some(BinaryOp::Add),
        Some(HloBinary::And) => Some(BinaryOp::And),
        Some(HloBinary::Or) => Some(BinaryOp::Or),
        Some(HloBinary::Xor) => Some(BinaryOp::Xor),
        Some(HloBinary::Maximum) if ty.is_integer() && signed => Some(BinaryOp::SMax),
        Some(HloBinary::Maximum) if ty.is_integer() => Some(BinaryOp::UMax),
        Some(HloBinary::Minimum) if ty.is_integer() && signed => Some(BinaryOp::SMin),
        Some(HloBinary::Minimum) if ty.is_integer() => Some(BinaryOp::UMin),
        _ => None,
    };
    match rmw {
        Some(op) => Some(Atomic::Rmw(op)),
        // Compare and swap works on integers; a float array is declared as floats.
        None if ty.is_integer() => Some(Atomic::Swap),
        None => None,
    }
}

/// A workitem for each update element.
fn on_gpu(b: &mut KernelBuilder, body: &Body<'_>, plan: &Plan<'_>, how: Atomic) -> Launch {
    let el = &body.el;
    let total = volume(&plan.update);
    let block = i64::from(cost::GPU_BLOCK).min(pieces(total, 32) * 32);
    let group = b.workgroup_id(Axis::X);
    let item = b.workitem_id(Axis::X);
    let number = el.splits.join(b, group, item, block);
    let bound = b.index(total);
    let inside = b.cmp(CmpOp::SLt, number, bound);
    b.if_then(inside, |b| {
        el.scope(|| {
            let update_at = el.splits.unravel(b, &plan.update, number);
            let scatter_at: Vec<ExprId> = plan.scatter_dims.iter().map(|&d| update_at[d]).collect();
            let window = &plan.numbers.update_window_dims;
            let window_at: Vec<ExprId> = window.iter().map(|&d| update_at[d]).collect();
            let (start, fits) = plan.window(el, b, &scatter_at);
            b.if_then(fits, |b| {
                el.scope(|| {
                    let at = plan.operand_at(b, &start, &window_at);
                    let position = el.splits.position(b, &plan.full, &at);
                    let mut index = Index::scalar(update_at.iter().copied());
                    index.linear = Some(number);
                    combine(b, body, plan, how, position, &index);
                });
            });
        });
    });
    Launch {
        workgroups: [pieces(total, block) as u64, 1, 1],
        workitems: [block as u32, 1, 1],
        ..Launch::SINGLE
    }
}

fn combine(
    b: &mut KernelBuilder,
    body: &Body<'_>,
    plan: &Plan<'_>,
    how: Atomic,
    position: ExprId,
    index: &Index,
) {
    let el = &body.el;
    let updates: Values = plan
        .updates
        .iter()
        .map(|&update| el.value(b, update, index))
        .collect();
    let output = &body.outputs[0];
    match how {
        Atomic::Rmw(op) => b.atomic_rmw(op, output.buf, position, updates[0].one()),
        Atomic::Store => store_all(b, body, position, 1, &updates),
        Atomic::Unique => {
            let mut args: Vec<Value> = Vec::new();
            for output in &body.outputs {
                let ty = output.shape.ty;
                args.push(value::load(b, output.buf, ty, position, Access::ONE));
            }
            args.extend(updates);
            let sums = el.call(b, plan.body, &args, false);
            store_all(b, body, position, 1, &sums);
        }
        Atomic::Swap => {
            let first = b.load(output.buf, position, 1);
            let open = b.bool(1, true);
            b.while_carried(
                &[first, open],
                |_, carried| carried[1],
                |b, carried| {
                    let args = [Value::One(carried[0]), updates[0]];
                    let sum = el.call(b, plan.body, &args, false);
                    let old = b.atomic_cas(output.buf, position, carried[0], sum[0].one());
                    vec![old, b.cmp(CmpOp::INe, old, carried[0])]
                },
            );
        }
    }
}
