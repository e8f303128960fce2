//! Inlines calls, maps, fusions that came with the input, and async wrappers.
//!
//! Fusions of the input are taken apart because this compiler forms its own. Callees come before
//! callers, so what is inlined holds no call any more. Bodies of reductions, sorts and loops keep
//! their computations.

use std::collections::BTreeMap;

use crate::analysis::call_graph;
use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::Stage;
use crate::passes::edit::Edit;
use crate::passes::pass::Changed;
use crate::passes::pass::Pass;
use crate::passes::pass::PassCx;
use crate::passes::pass::unsupported;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::Shape;

/// Instructions a module may grow to by inlining.
const LIMIT: usize = 1_000_000;

/// What each instruction of an inlined body became.
type Copies = BTreeMap<InstrId, InstrId>;

/// The pass.
pub struct Inline;

impl Pass for Inline {
    fn name(&self) -> &'static str {
        "inline"
    }
    fn stages(&self) -> (Stage, Stage) {
        (Stage::Imported, Stage::Imported)
    }
    fn run(&self, module: &mut Module, cx: &mut PassCx<'_>) -> Result<Changed> {
        let mut changed = Changed::No;
        for comp in call_graph::post_order(module) {
            let instrs = &module.comps[comp].instrs;
            if instrs.iter().any(|&id| is_inlined(&module.instrs[id].op)) {
                let mut edit = Edit::new(module);
                inline_in(&mut edit, comp, cx)?;
                changed = changed.or(edit.finish());
            }
        }
        Ok(changed)
    }
}

fn is_inlined(op: &Op) -> bool {
    matches!(
        op,
        Op::Call { .. } | Op::Fusion { .. } | Op::AsyncStart { .. } | Op::Map { .. }
    )
}

fn inline_in(edit: &mut Edit<'_>, comp: CompId, cx: &PassCx<'_>) -> Result<()> {
    let order = edit.module.comps[comp].instrs.clone();
    for id in order {
        edit.refresh(id);
        let operands = edit.instr(id).operands.clone();
        let new = match &edit.instr(id).op {
            Op::Call { body, .. } | Op::Fusion { body, .. } | Op::AsyncStart { body, .. } => {
                let body = *body;
                if edit.module.comps[body].params.len() != operands.len() {
                    return Err(broken(
                        "a called computation has other parameters than its caller",
                    ));
                }
                let start = matches!(edit.instr(id).op, Op::AsyncStart { .. });
                let value = body_of(edit, comp, body, &operands)?;
                if start {
                    // The value of the whole async chain; only its other links read it.
                    finish_async(edit, comp, id, value)?;
                    continue;
                }
                value
            }
            Op::Map { body, .. } => {
                let body = *body;
                let Some(shape) = edit.array(id) else {
                    return Err(broken("a map whose result is not an array"));
                };
                let dims = shape.dims.clone();
                map_body(edit, comp, body, &operands, &dims, cx)?
            }
            _ => continue,
        };
        if edit.module.instrs.len() > LIMIT {
            return Err(Diagnostic::error(
                codes::INPUT_LIMIT,
                format!("inlining makes more than {LIMIT} instructions"),
            ));
        }
        edit.replace(id, new);
    }
    Ok(())
}

fn broken(message: &str) -> Box<Diagnostic> {
    Diagnostic::internal(codes::INTERNAL, message)
}

/// Copies the instructions of `body` into `comp` and returns the copy of its root.
pub fn body_of(
    edit: &mut Edit<'_>,
    comp: CompId,
    body: CompId,
    args: &[InstrId],
) -> Result<InstrId> {
    let mut copies: Copies = Copies::new();
    for id in edit.ordered(body) {
        if let Op::Parameter { number, .. } = edit.instr(id).op {
            if let Some(&arg) = args.get(number) {
                copies.insert(id, arg);
            }
            continue;
        }
        let mut copy = edit.instr(id).clone();
        copy.parent = comp;
        for operand in &mut copy.operands {
            *operand = copied(edit, &copies, *operand)?;
        }
        let mut edges = std::mem::take(&mut copy.control_predecessors);
        edges.retain(|e| match copies.get(&edit.resolve(*e)) {
            Some(&new) => {
                *e = new;
                true
            }
            None => false,
        });
        copy.control_predecessors = edges;
        copies.insert(id, edit.push(copy));
    }
    let root = edit.module.comps[body].root;
    copied(edit, &copies, root)
}

fn copied(edit: &Edit<'_>, copies: &Copies, id: InstrId) -> Result<InstrId> {
    copies
        .get(&edit.resolve(id))
        .copied()
        .ok_or_else(|| broken("an operand that its computation does not list"))
}

/// Every `async-update` and `async-done` that hangs on `start` becomes the value.
fn finish_async(edit: &mut Edit<'_>, comp: CompId, start: InstrId, value: InstrId) -> Result<()> {
    let mut chain = vec![start];
    let order = edit.module.comps[comp].instrs.clone();
    for id in order {
        let instr = edit.instr(id);
        if !instr.operands.first().is_some_and(|o| chain.contains(o)) {
            continue;
        }
        match instr.op {
            Op::AsyncUpdate => chain.push(id),
            Op::AsyncDone => edit.replace(id, value),
            _ => {
                return Err(broken(
                    "an async value used by something else than its done",
                ));
            }
        }
    }
    Ok(())
}

/// Copies the scalar instructions of `body` as elementwise ones over arrays of `dims`.
fn map_body(
    edit: &mut Edit<'_>,
    comp: CompId,
    body: CompId,
    args: &[InstrId],
    dims: &Dims,
    cx: &PassCx<'_>,
) -> Result<InstrId> {
    let mut copies: Copies = Copies::new();
    for id in edit.ordered(body) {
        let mut copy = edit.instr(id).clone();
        let Some(ty) = copy
            .shape
            .as_array()
            .filter(|a| a.rank() == 0)
            .map(|a| a.ty)
        else {
            return Err(unsupported(
                edit.module,
                id,
                cx.target,
                "it is not scalar, in a map",
            ));
        };
        let operands = copy
            .operands
            .iter()
            .map(|&o| copied(edit, &copies, o))
            .collect::<Result<Vec<_>>>()?;
        let wide = Shape::Array(ArrayShape::new(ty, dims.iter().copied()));
        copy.parent = comp;
        let value = match copy.op {
            Op::Parameter { number, .. } => match args.get(number) {
                Some(&arg) => arg,
                None => return Err(broken("a map body with more parameters than operands")),
            },
            Op::Constant(_) => {
                let scalar = edit.push(copy);
                edit.shaped(comp, Op::Broadcast { dims: Dims::new() }, &[scalar], wide)?
            }
            Op::Reshape { .. } | Op::Broadcast { .. } | Op::Transpose { .. } | Op::Copy => {
                operands[0]
            }
            ref op
                if op.is_elementwise()
                    || matches!(op, Op::BitcastConvert | Op::StochasticConvert) =>
            {
                copy.operands = operands.into();
                copy.shape = wide;
                copy.control_predecessors.clear();
                edit.push(copy)
            }
            _ => {
                return Err(unsupported(
                    edit.module,
                    id,
                    cx.target,
                    "it is inside a map",
                ));
            }
        };
        copies.insert(id, value);
    }
    let root = edit.module.comps[body].root;
    copied(edit, &copies, root)
}
