//! Cumulative reduce-windows (sums, products, maxima along one dimension) in one pass.
//!
//! A window of the whole dimension, padded on one side by all but one element, makes every result
//! the fold of what lies before (or after) it. Lines along the dimension are walked once; when the
//! dimension is not the minor one, vectors lie across it. Every other window is computed element by
//! element in [`crate::emit::nested`].

use crate::base::Result;
use crate::emit::cost;
use crate::emit::cost::pieces;
use crate::emit::elemental::Values;
use crate::emit::index::Index;
use crate::emit::index::volume;
use crate::emit::loop_;
use crate::emit::nested::Fold;
use crate::emit::request::Emitted;
use crate::emit::request::KernelRequest;
use crate::emit::setup::Body;
use crate::emit::setup::Setup;
use crate::emit::share;
use crate::emit::value;
use crate::executable::Launch;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::Window;
use crate::kernel::BinaryOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Unroll;
use crate::shape::Dims;
use crate::target::Platform;

/// A cumulative reduce-window.
struct Plan<'a> {
    fold: Fold<'a>,
    dims: Dims,
    dim: usize,
    forward: bool,
    /// Elements of a run across the dimension.
    lanes: i64,
}

/// Emits a request with a reduce-window in it.
///
/// # Errors
/// `EMIT_UNSUPPORTED` when a producer or the combiner has an op without an elemental form.
pub fn emit(request: &KernelRequest<'_>) -> Result<Emitted> {
    let Setup { mut b, body } = Setup::new(request);
    let Some(plan) = plan(request.module, &body) else {
        return loop_::emit(request);
    };
    let launch = lines(&mut b, &body, &plan);
    body.finish(b, launch)
}

/// The dimension of a window that accumulates, and whether from its start.
fn cumulative(window: &Window, dims: &[usize]) -> Option<(usize, bool)> {
    let mut found = None;
    for (d, w) in window.iter().enumerate() {
        let plain = w.stride == 1 && w.window_dilation == 1 && w.base_dilation == 1;
        let rest = w.size as i64 - 1;
        match (w.padding_low, w.padding_high) {
            (0, 0) if w.size == 1 && plain => {}
            (low, 0)
                if plain && !w.reversal && w.size == dims[d] && low == rest && found.is_none() =>
            {
                found = Some((d, true));
            }
            (0, high)
                if plain && !w.reversal && w.size == dims[d] && high == rest && found.is_none() =>
            {
                found = Some((d, false));
            }
            _ => return None,
        }
    }
    found
}

fn plan<'a>(module: &'a Module, body: &Body<'_>) -> Option<Plan<'a>> {
    let el = &body.el;
    let mut id = *body.roots.first()?;
    while matches!(module.instr(id).op, Op::GetTupleElement { .. }) {
        id = module.instr(id).operands[0];
    }
    let reaches = |root: InstrId| {
        let mut root = root;
        while matches!(module.instr(root).op, Op::GetTupleElement { .. }) {
            root = module.instr(root).operands[0];
        }
        root == id
    };
    if !body.roots.iter().all(|&root| reaches(root)) {
        return None;
    }
    let instr = module.instr(id);
    let Op::ReduceWindow { window, body: comp } = &instr.op else {
        return None;
    };
    let dims = el.dims(instr.operands[0]);
    let (dim, forward) = cumulative(window, &dims)?;
    let fold = Fold::new(el, instr, *comp);
    let per_byte = body.outputs.iter().any(|o| value::per_byte(o.shape.ty) > 1);
    if volume(&dims) == 0 || per_byte {
        return None;
    }
    let inner = volume(&dims[dim + 1..]);
    let mut widest = cost::of_body(el, fold.inputs).widest;
    for &ty in &fold.types {
        widest = widest.max(value::register_bytes(ty));
    }
    let mut lanes = match el.target.platform() {
        Platform::Cpu => i64::from(cost::lanes(el.target, widest)),
        Platform::Cuda => 1,
    };
    while inner % lanes != 0 {
        lanes /= 2;
    }
    Some(Plan {
        fold,
        dims,
        dim,
        forward,
        lanes,
    })
}

/// Walks every line (or run of neighbouring lines).
fn lines(b: &mut KernelBuilder, body: &Body<'_>, plan: &Plan<'_>) -> Launch {
    let el = &body.el;
    let size = plan.dims[plan.dim] as i64;
    let inner = volume(&plan.dims[plan.dim + 1..]);
    let outer = volume(&plan.dims[..plan.dim]);
    let runs = pieces(inner, plan.lanes);
    let work = cost::of_body(el, plan.fold.inputs).per_element * volume(&plan.dims) as u64;
    let tasks = cost::tasks(el.target, work) as i64;
    share::for_items(
        b,
        &el.splits,
        el.target,
        outer * runs,
        tasks,
        &mut |b, item| {
            el.scope(|| {
                let (outer, run) = el.splits.split(b, item, runs);
                let zero = b.index(0);
                let below = el.splits.join(b, run, zero, plan.lanes);
                let start = plan.fold.start(el, b);
                let start = Fold::pack(b, &start, plan.lanes as u16);
                let bounds = (zero, b.index(size), b.index(1));
                b.for_carried(bounds, &start, Unroll::Auto, |b, step, sums| {
                    el.scope(|| {
                        let at = if plan.forward {
                            step
                        } else {
                            let last = b.index(size - 1);
                            b.binary(BinaryOp::Sub, last, step)
                        };
                        let line = el.splits.join(b, outer, at, size);
                        let position = el.splits.join(b, line, below, inner);
                        one_step(b, body, plan, position, sums)
                    })
                });
            });
        },
    )
}

fn one_step(
    b: &mut KernelBuilder,
    body: &Body<'_>,
    plan: &Plan<'_>,
    position: ExprId,
    sums: &[ExprId],
) -> Vec<ExprId> {
    let (el, lanes) = (&body.el, plan.lanes as u16);
    let index: Index = el.splits.run_at(b, &plan.dims, position, lanes, plan.lanes);
    let values = plan.fold.inputs_at(el, b, &index);
    let sums = plan.fold.unpack(sums);
    let sums = plan.fold.combine(el, b, &sums, &values);
    let results: Values = plan.fold.finish(el, b, &sums);
    for ((root, part), output) in body.result_values().into_iter().zip(&body.outputs) {
        let part = match el.module.instr(root).op {
            Op::GetTupleElement { index } => index,
            _ => part,
        };
        value::store(
            b,
            output.buf,
            output.shape.ty,
            position,
            lanes,
            results[part],
        );
    }
    Fold::pack(b, &sums, lanes)
}
