//! In-place dynamic-update-slice: only the update is computed and written.
//!
//! When the result does not lie over the operand, the operand is copied there first.

use std::collections::BTreeSet;

use crate::base::Result;
use crate::emit::elemental::Elemental;
use crate::emit::index::volume;
use crate::emit::loop_;
use crate::emit::loop_::Job;
use crate::emit::request::Emitted;
use crate::emit::request::KernelRequest;
use crate::emit::request::Step;
use crate::emit::setup;
use crate::emit::setup::Setup;
use crate::executable::CopyThunk;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;

/// The dynamic-update-slice of a root, seen through bitcasts.
fn hero(module: &Module, mut id: InstrId) -> Option<InstrId> {
    loop {
        let instr = module.instr(id);
        match instr.op {
            Op::DynamicUpdateSlice => return Some(id),
            Op::Bitcast | Op::Reshape { .. } => id = instr.operands[0],
            _ => return None,
        }
    }
}

/// The leaf that an operand is, seen through bitcasts of equal element type.
pub fn leaf_of(el: &Elemental<'_>, mut id: InstrId) -> Option<InstrId> {
    loop {
        if el.is_leaf(id) {
            return Some(id);
        }
        let instr = el.module.instr(id);
        match instr.op {
            Op::Bitcast | Op::Reshape { .. } | Op::Copy => id = instr.operands[0],
            _ => return None,
        }
    }
}

/// Emits the updates of a request, if its results are all updates of arrays in memory.
///
/// # Errors
/// `EMIT_UNSUPPORTED` when the update has an op without an elemental form.
pub fn emit(request: &KernelRequest<'_>) -> Result<Option<Emitted>> {
    let module = request.module;
    let Setup { mut b, body } = Setup::new(request);
    let mut copies = Vec::new();
    let mut heroes = Vec::new();
    for (i, &root) in setup::roots_of(request).iter().enumerate() {
        let Some(hero) = hero(module, root) else {
            return Ok(None);
        };
        let Some(leaf) = leaf_of(&body.el, module.instr(hero).operands[0]) else {
            return Ok(None);
        };
        let Some(from) = body.slice_of(leaf) else {
            return Ok(None);
        };
        if from.slice != request.results[i].slice {
            copies.push(Step::Copy(CopyThunk {
                source: from.clone(),
                destination: request.results[i].clone(),
            }));
        }
        heroes.push(hero);
    }
    let el = &body.el;
    let mut places = Vec::new();
    for &hero in &heroes {
        let operands = &module.instr(hero).operands;
        let full = el.dims(hero);
        let sizes = el.dims(operands[1]);
        let starts = el.clamped_starts(&mut b, &operands[2..], &full, &sizes);
        let place = move |b: &mut crate::kernel::KernelBuilder, position| {
            let at = el.splits.unravel(b, &sizes, position);
            let moved: Vec<_> = at.iter().zip(&starts).map(|(&x, &s)| b.add(x, s)).collect();
            el.splits.position(b, &full, &moved)
        };
        places.push(place);
    }
    let mut jobs = Vec::new();
    for (i, &hero) in heroes.iter().enumerate() {
        let update = module.instr(hero).operands[1];
        let (full, sizes) = (el.dims(hero), el.dims(update));
        let mut needed = BTreeSet::new();
        for d in 1..sizes.len() {
            if sizes[d] != full[d] {
                needed.insert(volume(&sizes[d..]));
            }
        }
        let total = volume(&sizes);
        if total > 0 {
            jobs.push(Job {
                parts: vec![(update, 0, body.outputs[i].clone())],
                total,
                needed,
                place: Some(&places[i]),
            });
        }
    }
    let launch = loop_::walk(&mut b, &body, &jobs, true);
    let is_empty = jobs.is_empty();
    drop(jobs);
    drop(places);
    let mut emitted = Emitted { steps: copies };
    if !is_empty {
        emitted.steps.extend(body.finish(b, launch)?.steps);
    }
    Ok(Some(emitted))
}
