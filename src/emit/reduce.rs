//! Reductions: fusions whose hero is one or more `reduce` over the same dimensions of equal inputs,
//! with elementwise producers, an elementwise epilogue, and results of the input's shape beside it.
//!
//! The input's dimensions become alternating runs of kept and reduced loops. When the innermost is
//! reduced (rows), several vector accumulators run along it and are combined at its end; when it is
//! kept (columns), vectors lie across it and every lane is a result of its own. A combiner that is
//! a monoid with a known identity starts its vectors there; any other one starts them with the
//! first elements. The start value is combined once.

use std::collections::BTreeSet;

use crate::base::Result;
use crate::emit::convert;
use crate::emit::cost;
use crate::emit::cost::BodyCost;
use crate::emit::cuts::Cuts;
use crate::emit::elemental::Elemental;
use crate::emit::elemental::array;
use crate::emit::index::volume;
use crate::emit::inline::monoid;
use crate::emit::loop_;
use crate::emit::nested::Fold;
use crate::emit::reduce_cpu;
use crate::emit::reduce_gpu;
use crate::emit::request::Emitted;
use crate::emit::request::KernelRequest;
use crate::emit::setup::Body;
use crate::emit::setup::Setup;
use crate::emit::value;
use crate::emit::value::Value;
use crate::hlo::BinaryOp;
use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Ty;
use crate::shape::Dims;
use crate::shape::ElementKind;
use crate::shape::PrimitiveType;
use crate::target::Platform;

/// A loop over part of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Number of steps.
    pub size: i64,
    /// Whether it is reduced over.
    pub reduced: bool,
}

/// What is reduced, and how the loops lie.
pub struct Plan<'a> {
    /// The reduces and their folds.
    pub heroes: Vec<(InstrId, Fold<'a>)>,
    /// Dimensions of the inputs.
    pub full: Dims,
    /// Loops over the input, outermost first.
    pub extents: Vec<Extent>,
    /// Result numbers of the input's shape.
    pub beside: Vec<usize>,
    /// What an input element costs.
    pub work: BodyCost,
}

/// Emits the reduction of a request.
///
/// # Errors
/// `EMIT_UNSUPPORTED` when the body has an op without an elemental form.
pub fn emit(request: &KernelRequest<'_>) -> Result<Emitted> {
    let Setup { mut b, body } = Setup::new(request);
    let Some(plan) = plan(request.module, &body) else {
        return loop_::emit(request);
    };
    if volume(&plan.full) == 0 || plan.kept() == 0 {
        return loop_::emit(request);
    }
    let launch = match request.target.platform() {
        Platform::Cuda => reduce_gpu::emit(&mut b, &body, &plan),
        Platform::Cpu if plan.is_row() => reduce_cpu::rows(&mut b, &body, &plan),
        Platform::Cpu => reduce_cpu::columns(&mut b, &body, &plan),
    };
    body.finish(b, launch)
}

/// The reduces that the roots need, when all of them fit one loop nest.
fn plan<'a>(module: &'a Module, body: &Body<'_>) -> Option<Plan<'a>> {
    let el = &body.el;
    // Packed results are written a byte at a time, which only the plain loop does.
    if body.outputs.iter().any(|o| value::per_byte(o.shape.ty) > 1) {
        return None;
    }
    let mut heroes: Vec<InstrId> = Vec::new();
    let mut beside = Vec::new();
    let mut no_hero_roots = Vec::new();
    for (i, (root, _)) in body.result_values().into_iter().enumerate() {
        let before = heroes.len();
        if !find_heroes(module, el, root, &mut heroes)? && heroes.len() == before {
            no_hero_roots.push((i, root));
        }
    }
    let first = *heroes.first()?;
    let reduce = |id: InstrId| match &module.instr(id).op {
        Op::Reduce { dims, body } => Some((dims.clone(), *body)),
        _ => None,
    };
    let (reduced, _) = reduce(first)?;
    let full = el.dims(module.instr(first).operands[0]);
    let kept: Dims = kept_dims(&full, &reduced);
    for (i, root) in no_hero_roots {
        let dims = el.dims(root);
        if dims == full {
            beside.push(i);
        } else if dims != kept {
            return None;
        }
    }
    let mut folds = Vec::new();
    let mut inputs = Vec::new();
    for &hero in &heroes {
        let (dims, comp) = reduce(hero)?;
        let fold = Fold::new(el, module.instr(hero), comp);
        if dims != reduced || el.dims(fold.inputs[0]) != full {
            return None;
        }
        inputs.extend_from_slice(fold.inputs);
        folds.push((hero, fold));
    }
    inputs.extend(beside.iter().map(|&i| body.result_values()[i].0));
    let extents = extents(module, el, &full, &reduced, &inputs);
    let mut work = cost::of_body(el, &inputs);
    for (_, fold) in &folds {
        for &ty in &fold.types {
            work.widest = work.widest.max(value::register_bytes(ty));
        }
    }
    Some(Plan {
        heroes: folds,
        full,
        extents,
        beside,
        work,
    })
}

fn kept_dims(full: &[usize], reduced: &[usize]) -> Dims {
    let kept = (0..full.len()).filter(|d| !reduced.contains(d));
    kept.map(|d| full[d]).collect()
}

/// Collects the reduces that a root depends on through ops that keep every element in its place;
/// says whether there is one. Nothing when a hero hides behind another op.
fn find_heroes(
    module: &Module,
    el: &Elemental<'_>,
    id: InstrId,
    heroes: &mut Vec<InstrId>,
) -> Option<bool> {
    if el.is_leaf(id) {
        return Some(false);
    }
    let instr = module.instr(id);
    match &instr.op {
        Op::Reduce { .. } => {
            if !heroes.contains(&id) {
                heroes.push(id);
            }
            Some(true)
        }
        op if op.is_elementwise()
            || matches!(
                op,
                Op::BitcastConvert
                    | Op::Copy
                    | Op::Reshape { .. }
                    | Op::Bitcast
                    | Op::GetTupleElement { .. }
            ) =>
        {
            let count = array(&instr.shape).element_count();
            let mut found = false;
            for &operand in &instr.operands {
                let here = find_heroes(module, el, operand, heroes)?;
                if here && array(&module.instr(operand).shape).element_count() != count {
                    return None;
                }
                found |= here;
            }
            Some(found)
        }
        _ => {
            let is_reduce = |instr: &Instr| matches!(instr.op, Op::Reduce { .. });
            (!el.depends_on(id, is_reduce)).then_some(false)
        }
    }
}

/// Loops over the input that break where kept and reduced dimensions meet.
fn extents(
    module: &Module,
    el: &Elemental<'_>,
    full: &[usize],
    reduced: &[usize],
    inputs: &[InstrId],
) -> Vec<Extent> {
    let total = volume(full);
    let wide: Vec<usize> = (0..full.len()).filter(|&d| full[d] != 1).collect();
    let mut needed = BTreeSet::new();
    for pair in wide.windows(2) {
        if reduced.contains(&pair[0]) != reduced.contains(&pair[1]) {
            needed.insert(volume(&full[pair[1]..]));
        }
    }
    let is_leaf = |id| el.is_leaf(id);
    let cuts = Cuts::new(module, &is_leaf);
    let sizes = cuts.extents(total, &needed, inputs);
    // The dimension that an extent lies in is the one whose elements it steps over.
    let mut below = 1;
    let mut out = Vec::new();
    for &size in sizes.iter().rev() {
        let dim = wide
            .iter()
            .rev()
            .find(|&&d| volume(&full[d..]) > below)
            .copied();
        let reduced = dim.map_or_else(|| !reduced.is_empty(), |d| reduced.contains(&d));
        out.insert(0, Extent { size, reduced });
        below *= size;
    }
    out
}

impl Plan<'_> {
    /// Whether the innermost loop is reduced over.
    pub fn is_row(&self) -> bool {
        self.extents.last().is_none_or(|e| e.reduced)
    }
    /// Number of result elements of each reduce.
    pub fn kept(&self) -> i64 {
        self.sizes(false).iter().product()
    }
    /// Sizes of the kept or of the reduced loops, outermost first.
    pub fn sizes(&self, reduced: bool) -> Vec<i64> {
        let extents = self.extents.iter().filter(|e| e.reduced == reduced);
        extents.map(|e| e.size).collect()
    }
    /// The start of all folds.
    pub fn start(&self, el: &Elemental<'_>, b: &mut KernelBuilder, lanes: u16) -> Vec<ExprId> {
        let mut out = Vec::new();
        for (_, fold) in &self.heroes {
            let start = fold.start(el, b);
            out.extend(Fold::pack(b, &start, lanes));
        }
        out
    }
    /// The identities of all folds, when every one has them.
    pub fn identity(
        &self,
        module: &Module,
        b: &mut KernelBuilder,
        lanes: u16,
    ) -> Option<Vec<ExprId>> {
        let mut out = Vec::new();
        for (_, fold) in &self.heroes {
            let op = monoid(module, fold.body)?;
            let [ty] = fold.types[..] else { return None };
            let identity = identity(b, op, ty)?;
            out.extend(Fold::pack(b, &[identity], lanes));
        }
        Some(out)
    }
    /// What all folds read at a row-major position of the input.
    pub fn read(
        &self,
        el: &Elemental<'_>,
        b: &mut KernelBuilder,
        position: ExprId,
        lanes: u16,
        block: i64,
    ) -> Vec<ExprId> {
        let index = el.splits.run_at(b, &self.full, position, lanes, block);
        let mut out = Vec::new();
        for (_, fold) in &self.heroes {
            let values = fold.inputs_at(el, b, &index);
            out.extend(Fold::pack(b, &values, lanes));
        }
        out
    }
    /// Accumulators of all folds combined with as many values.
    pub fn combine(
        &self,
        el: &Elemental<'_>,
        b: &mut KernelBuilder,
        accumulators: &[ExprId],
        values: &[ExprId],
    ) -> Vec<ExprId> {
        let lanes = accumulators.first().map_or(1, |&a| b.ty(a).lanes);
        let mut out = Vec::new();
        let mut at = 0;
        for (_, fold) in &self.heroes {
            let count = fold.registers();
            let (x, y) = (&accumulators[at..at + count], &values[at..at + count]);
            let sums = fold.combine(el, b, &fold.unpack(x), &fold.unpack(y));
            out.extend(Fold::pack(b, &sums, lanes));
            at += count;
        }
        out
    }
    /// Vector accumulators folded to one lane, halves first.
    pub fn fold_lanes(
        &self,
        el: &Elemental<'_>,
        b: &mut KernelBuilder,
        mut registers: Vec<ExprId>,
    ) -> Vec<ExprId> {
        loop {
            let lanes = registers.first().map_or(1, |&r| b.ty(r).lanes);
            if lanes == 1 {
                return registers;
            }
            let half = lanes / 2;
            let low: Vec<u16> = (0..half).collect();
            let high: Vec<u16> = (half..lanes).collect();
            let part = |b: &mut KernelBuilder, picks: &[u16]| -> Vec<ExprId> {
                let each = registers.iter();
                each.map(|&r| {
                    if picks.len() == 1 {
                        b.extract(r, picks[0])
                    } else {
                        b.shuffle(r, r, picks)
                    }
                })
                .collect()
            };
            let (low, high) = (part(b, &low), part(b, &high));
            registers = self.combine(el, b, &low, &high);
        }
    }
    /// Binds the folds' results and writes every result of the reduced shape from a position on.
    pub fn write(
        &self,
        b: &mut KernelBuilder,
        body: &Body<'_>,
        registers: &[ExprId],
        position: ExprId,
        (lanes, block): (u16, i64),
    ) {
        let el = &body.el;
        el.scope(|| {
            let mut at = 0;
            for (hero, fold) in &self.heroes {
                let values = fold.unpack(&registers[at..at + fold.registers()]);
                let values = fold.finish(el, b, &values);
                el.bind(*hero, values);
                at += fold.registers();
            }
            let mut results: Vec<(usize, Value)> = Vec::new();
            for (i, (root, part)) in body.result_values().into_iter().enumerate() {
                if !self.beside.contains(&i) {
                    let index = el.splits.run_at(b, &el.dims(root), position, lanes, block);
                    results.push((i, el.values(b, root, &index)[part]));
                }
            }
            for (i, value) in results {
                let output = &body.outputs[i];
                value::store(b, output.buf, output.shape.ty, position, lanes, value);
            }
        });
    }
    /// Writes the results of the input's shape at a position of it.
    pub fn write_beside(
        &self,
        b: &mut KernelBuilder,
        body: &Body<'_>,
        position: ExprId,
        (lanes, block): (u16, i64),
    ) {
        let el = &body.el;
        for &i in &self.beside {
            let (root, part) = body.result_values()[i];
            let index = el.splits.run_at(b, &el.dims(root), position, lanes, block);
            let value = el.values(b, root, &index)[part];
            let output = &body.outputs[i];
            value::store(b, output.buf, output.shape.ty, position, lanes, value);
        }
    }
    /// Total work.
    pub fn cost(&self) -> u64 {
        self.work.per_element * volume(&self.full) as u64
    }
}

/// The value that a monoid leaves others alone with.
fn identity(b: &mut KernelBuilder, op: BinaryOp, ty: PrimitiveType) -> Option<Value> {
    let reg = Ty::scalar(value::register(ty));
    if ty.is_complex() {
        let (zero, one) = (b.float(reg, -0.0), b.float(reg, 1.0));
        let plain = b.float(reg, 0.0);
        return match op {
            BinaryOp::Add => Some(Value::Pair(zero, zero)),
            BinaryOp::Multiply => Some(Value::Pair(one, plain)),
            _ => None,
        };
    }
    if ty.is_float() {
        if convert::is_narrow_float(ty) {
            return None;
        }
        let number = match op {
            BinaryOp::Add => -0.0,
            BinaryOp::Multiply => 1.0,
            BinaryOp::Maximum => f64::NEG_INFINITY,
            BinaryOp::Minimum => f64::INFINITY,
            _ => return None,
        };
        return Some(Value::One(b.float(reg, number)));
    }
    let width = ty.bit_width() as u32;
    let signed = ty.is_signed();
    let pred = ty.kind() == ElementKind::Pred;
    let top = |bits: u32| ((1u128 << bits) - 1) as i64;
    let number = match op {
        BinaryOp::Add | BinaryOp::Or | BinaryOp::Xor => 0,
        BinaryOp::Multiply => 1,
        BinaryOp::And if pred => 1,
        BinaryOp::And if signed => -1,
        BinaryOp::And => top(width),
        BinaryOp::Maximum if signed => i64::MIN >> (64 - width),
        BinaryOp::Maximum => 0,
        BinaryOp::Minimum if signed => i64::MAX >> (64 - width),
        BinaryOp::Minimum => top(width),
        _ => return None,
    };
    Some(Value::One(b.int(reg, number)))
}

/// The input position of an element, given the row-major numbers of its kept index, of its outer
/// reduced index, and its place along the innermost loop.
pub fn place(
    b: &mut KernelBuilder,
    body: &Body<'_>,
    plan: &Plan<'_>,
    kept: ExprId,
    reduced: ExprId,
    at: ExprId,
) -> ExprId {
    let splits = &body.el.splits;
    let last = plan.extents.len() - 1;
    let sizes = |reduced: bool| -> Vec<usize> {
        let extents = plan.extents[..last].iter();
        let extents = extents.filter(|e| e.reduced == reduced);
        extents.map(|e| e.size as usize).collect()
    };
    let mut kept = splits.unravel(b, &sizes(false), kept).into_iter();
    let mut reduced = splits.unravel(b, &sizes(true), reduced).into_iter();
    let mut parts = Vec::new();
    for extent in &plan.extents[..last] {
        let next = if extent.reduced {
            reduced.next()
        } else {
            kept.next()
        };
        parts.extend(next);
    }
    parts.push(at);
    let sizes: Vec<usize> = plan.extents.iter().map(|e| e.size as usize).collect();
    splits.position(b, &sizes, &parts)
}

impl Fold<'_> {
    /// Number of registers of the accumulators.
    pub fn registers(&self) -> usize {
        let types = self.types.iter();
        types.map(|ty| if ty.is_complex() { 2 } else { 1 }).sum()
    }
}
