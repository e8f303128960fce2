//! Select-and-scatter: the gradient of pooling. For each source element the window's chosen place
//! gets it added by the scatter computation.
//!
//! One workitem walks the source elements in order; the result starts as the start value.

use crate::base::Result;
use crate::emit::elemental::Elemental;
use crate::emit::elemental::unsupported;
use crate::emit::index::Index;
use crate::emit::index::volume;
use crate::emit::nested::window_position;
use crate::emit::request::Emitted;
use crate::emit::request::KernelRequest;
use crate::emit::setup::Body;
use crate::emit::setup::Setup;
use crate::emit::share;
use crate::emit::value;
use crate::emit::value::Access;
use crate::emit::value::Value;
use crate::executable::Launch;
use crate::hlo::CompId;
use crate::hlo::Op;
use crate::hlo::Window;
use crate::kernel::BinaryOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::shape::Dims;

/// Emits the select-and-scatter of a request.
///
/// # Errors
/// `EMIT_UNSUPPORTED` when a computation has an op without an elemental form.
pub fn emit(request: &KernelRequest<'_>) -> Result<Emitted> {
    let Setup { mut b, body } = Setup::new(request);
    let instr = request.module.instr(body.roots[0]);
    let Op::SelectAndScatter {
        window,
        select,
        scatter,
    } = &instr.op
    else {
        return Err(unsupported(instr, request.module, request.target));
    };
    let el = &body.el;
    let (operand, source, init) = (instr.operands[0], instr.operands[1], instr.operands[2]);
    let full = el.dims(operand);
    if volume(&full) == 0 {
        return Ok(Emitted::default());
    }
    let output = &body.outputs[0];
    let ty = output.shape.ty;
    let start = el.scalar(&mut b, init);
    b.for_range(volume(&full), 1, |b, at| {
        value::store_single(b, output.buf, ty, at, start);
    });
    let source_dims = el.dims(source);
    let sizes: Vec<i64> = source_dims.iter().map(|&s| s as i64).collect();
    let zero = b.index(0);
    let walk = Walk {
        body: &body,
        window,
        select: *select,
        operand,
        full: full.clone(),
    };
    if volume(&source_dims) > 0 {
        share::nest(&mut b, &el.splits, &sizes, zero, &mut |b, number| {
            el.scope(|| {
                let at = el.splits.unravel(b, &source_dims, number);
                let (position, found) = walk.chosen(b, &at);
                b.if_then(found, |b| {
                    el.scope(|| {
                        let mut index = Index::scalar(at.iter().copied());
                        index.linear = Some(number);
                        let update = el.value(b, source, &index);
                        let old = value::load(b, output.buf, ty, position, Access::ONE);
                        let sum = el.call(b, *scatter, &[old, update], false)[0];
                        value::store_single(b, output.buf, ty, position, sum);
                    });
                });
            });
        });
    }
    body.finish(b, Launch::SINGLE)
}

struct Walk<'a, 'm> {
    body: &'a Body<'m>,
    window: &'a Window,
    select: CompId,
    operand: crate::hlo::InstrId,
    full: Dims,
}

impl Walk<'_, '_> {
    /// The position the window at a source index chooses, and whether it holds any element.
    fn chosen(&self, b: &mut KernelBuilder, at: &[ExprId]) -> (ExprId, ExprId) {
        let el: &Elemental<'_> = &self.body.el;
        let sizes: Vec<i64> = self.window.iter().map(|w| w.size as i64).collect();
        let dims: Dims = self.window.iter().map(|w| w.size).collect();
        let zero = b.index(0);
        let none = b.bool(1, false);
        let empty = value::zero(b, el.ty(self.operand));
        let mut state = vec![zero, none];
        state.extend(empty.registers());
        let state = share::nest_carried(
            b,
            &el.splits,
            &sizes,
            zero,
            state,
            &mut |b, number, state| {
                let offset = el.splits.unravel(b, &dims, number);
                let (position, inside) = window_position(b, self.window, &self.full, at, &offset);
                let step = |b: &mut KernelBuilder| {
                    el.scope(|| {
                        let index = Index::scalar(position.iter().copied());
                        let value = el.value(b, self.operand, &index);
                        let linear = el.splits.position(b, &self.full, &position);
                        let best = Value::from_registers(&state[2..]);
                        let keeps = el.call(b, self.select, &[best, value], false)[0].one();
                        let keeps = b.binary(BinaryOp::And, keeps, state[1]);
                        let mut next = vec![b.select(keeps, state[0], linear), b.bool(1, true)];
                        next.extend(best.select(b, keeps, value).registers());
                        next
                    })
                };
                match inside {
                    None => step(b),
                    Some(inside) => b.if_else(inside, step, |_| state.clone()),
                }
            },
        );
        (state[0], state[1])
    }
}
