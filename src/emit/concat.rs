//! Concatenations: each piece is a loop of its own that writes its part of the result.

use std::collections::BTreeSet;

use crate::base::Result;
use crate::emit::elemental::unsupported;
use crate::emit::index::volume;
use crate::emit::loop_;
use crate::emit::loop_::Job;
use crate::emit::request::Emitted;
use crate::emit::request::KernelRequest;
use crate::emit::setup::Setup;
use crate::hlo::Op;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;

/// Emits a request whose only root is a concatenate.
///
/// # Errors
/// `EMIT_UNSUPPORTED` when a piece has an op without an elemental form.
pub fn emit(request: &KernelRequest<'_>) -> Result<Emitted> {
    let Setup { mut b, body } = Setup::new(request);
    let root = request.module.instr(body.roots[0]);
    let Op::Concatenate { dim } = root.op else {
        return Err(unsupported(root, request.module, request.target));
    };
    let el = &body.el;
    let dims = el.dims(body.roots[0]);
    let inner = volume(&dims[dim + 1..]);
    let row = inner * dims[dim] as i64;
    let mut start = 0i64;
    let mut pieces = Vec::new();
    for &piece in &root.operands {
        let part = el.dims(piece)[dim] as i64 * inner;
        pieces.push((piece, start, part));
        start += part;
    }
    let places: Vec<_> = pieces
        .iter()
        .map(|&(_, start, part)| {
            move |b: &mut KernelBuilder, position: ExprId| {
                let (line, at) = el.splits.split(b, position, part);
                let at = b.add_const(at, start);
                el.splits.join(b, line, at, row)
            }
        })
        .collect();
    let mut jobs = Vec::new();
    for (i, &(piece, _, part)) in pieces.iter().enumerate() {
        let total = volume(&el.dims(piece));
        if total > 0 {
            jobs.push(Job {
                parts: vec![(piece, 0, body.outputs[0].clone())],
                total,
                needed: BTreeSet::from([part]),
                place: Some(&places[i]),
            });
        }
    }
    if jobs.is_empty() {
        return Ok(Emitted::default());
    }
    let launch = loop_::walk(&mut b, &body, &jobs, true);
    drop(jobs);
    drop(places);
    body.finish(b, launch)
}
