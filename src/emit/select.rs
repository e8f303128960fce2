//! Which emitter makes the kernels of a fusion or lone op.

use std::collections::BTreeSet;

use crate::base::Result;
use crate::emit::concat;
use crate::emit::contraction;
use crate::emit::elemental::array;
use crate::emit::loop_;
use crate::emit::reduce;
use crate::emit::reduce_window;
use crate::emit::request::Emitted;
use crate::emit::request::KernelRequest;
use crate::emit::rng_state;
use crate::emit::scatter;
use crate::emit::select_and_scatter;
use crate::emit::setup;
use crate::emit::sort;
use crate::emit::topk;
use crate::emit::transpose;
use crate::emit::triangular;
use crate::emit::update_slice;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;

/// Turns one fusion or lone op into kernels.
///
/// # Errors
/// `EMIT_UNSUPPORTED` when there is no emitter for the op, its element type and the target.
pub fn emit_kernel(request: &KernelRequest<'_>) -> Result<Emitted> {
    let roots = setup::roots_of(request);
    let op = |id: InstrId| &request.module.instr(id).op;
    if roots.iter().all(|&root| is_update(request.module, root))
        && let Some(emitted) = update_slice::emit(request)?
    {
        return Ok(emitted);
    }
    if let Some(emitted) = contraction::emit(request)? {
        return Ok(emitted);
    }
    // The pieces of a packed result may meet within a byte.
    let is_packed = |id: InstrId| {
        let array = request.module.shape(id).as_array();
        array.is_some_and(|array| array.ty.is_sub_byte())
    };
    if let [root] = roots[..]
        && matches!(op(root), Op::Concatenate { .. })
        && !is_packed(root)
        && !loop_::is_in_place(request)
    {
        return concat::emit(request);
    }
    if matches!(
        request.module.instr(request.instr).op,
        Op::RngGetAndUpdateState { .. }
    ) {
        return rng_state::emit(request);
    }
    match hero(request) {
        Some(Op::Reduce { .. }) => reduce::emit(request),
        Some(Op::ReduceWindow { .. }) => reduce_window::emit(request),
        Some(Op::Scatter { .. }) => scatter::emit(request),
        Some(Op::Cholesky { .. } | Op::TriangularSolve { .. }) => triangular::emit(request),
        Some(Op::Transpose { .. }) => transpose::emit(request),
        Some(Op::TopK { .. }) => topk::emit(request),
        Some(Op::Sort { .. }) => sort::emit(request),
        Some(Op::SelectAndScatter { .. }) => select_and_scatter::emit(request),
        _ => loop_::emit(request),
    }
}

/// The op that shapes the loops: the first one found from the roots that is not elementwise.
fn hero<'a>(request: &KernelRequest<'a>) -> Option<&'a Op> {
    let module = request.module;
    let mut stack: Vec<InstrId> = setup::roots_of(request);
    let is_lone = setup::root_of(request) == request.instr;
    let mut other = None;
    let mut seen = BTreeSet::new();
    while let Some(id) = stack.pop() {
        if !seen.insert(id) {
            continue;
        }
        let instr = module.instr(id);
        match &instr.op {
            Op::ReduceWindow { .. } => other = Some(&instr.op),
            Op::Reduce { .. }
            | Op::Scatter { .. }
            | Op::SelectAndScatter { .. }
            | Op::Sort { .. }
            | Op::TopK { .. }
            | Op::Cholesky { .. }
            | Op::TriangularSolve { .. } => {
                return Some(&instr.op);
            }
            Op::Transpose { .. }
                if transpose::moves_minor(&instr.op, &array(&instr.shape).dims) =>
            {
                other = Some(&instr.op);
            }
            Op::Parameter { .. } => {}
            _ if is_lone => {}
            _ => stack.extend(instr.operands.iter().copied()),
        }
    }
    other
}

/// Whether a value is a dynamic-update-slice, seen through bitcasts.
fn is_update(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    match instr.op {
        Op::DynamicUpdateSlice => true,
        Op::Bitcast => is_update(module, instr.operands[0]),
        _ => false,
    }
}
