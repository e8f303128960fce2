//! Transposes that move the minor dimension, with elementwise producers and epilogues.
//!
//! A GPU goes by way of shared memory, see [`crate::emit::transpose_gpu`].
//!
//! On a CPU square tiles of registers: as many runs along the operand's minor dimension as a run
//! has lanes are read, the tile is turned by shuffles, and runs along the result's minor dimension
//! are written. What does not fill a tile is done element by element.

use std::collections::BTreeSet;

use crate::base::Result;
use crate::emit::cost;
use crate::emit::elemental::Elemental;
use crate::emit::elemental::array;
use crate::emit::index::Index;
use crate::emit::loop_;
use crate::emit::request::Emitted;
use crate::emit::request::KernelRequest;
use crate::emit::setup::Body;
use crate::emit::setup::Setup;
use crate::emit::share;
use crate::emit::transpose_gpu;
use crate::emit::value;
use crate::emit::value::Value;
use crate::executable::Launch;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::kernel::BinaryOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::shape::Dims;
use crate::shape::index::inverse_permutation;
use crate::target::Platform;

/// The transpose that shapes the loops.
pub struct Plan {
    /// Result dimensions.
    pub dims: Dims,
    /// Result dimension d is operand dimension `from[d]`.
    pub from: Dims,
    /// The result dimension that is the operand's minor one.
    pub across: usize,
    /// Elements of a side of a register tile.
    lanes: i64,
    /// Tiles of a side of a block, which covers whole cache lines of large arrays.
    side: i64,
}

/// Emits a request one of whose values is a transpose that moves the minor dimension.
///
/// # Errors
/// `EMIT_UNSUPPORTED` when the body has an op without an elemental form.
pub fn emit(request: &KernelRequest<'_>) -> Result<Emitted> {
    let Setup { mut b, body } = Setup::new(request);
    let plan = if loop_::is_in_place(request) {
        None
    } else {
        plan(request.module, &body)
    };
    let Some(plan) = plan else {
        return loop_::emit(request);
    };
    let launch = match request.target.platform() {
        Platform::Cpu => tiles(&mut b, &body, &plan),
        Platform::Cuda => {
            let heroes = heroes_of(&body.el, &body, &plan);
            transpose_gpu::emit(&mut b, &body, &plan, &heroes)
        }
    };
    body.finish(b, launch)
}

/// Whether an op moves the minor dimension of arrays that are worth tiles.
pub fn moves_minor(op: &Op, dims: &[usize]) -> bool {
    let Op::Transpose { dims: from } = op else {
        return false;
    };
    let wide: Vec<usize> = (0..from.len()).filter(|&d| dims[d] != 1).collect();
    let (Some(&last), Some(&inner)) = (wide.last(), wide.iter().max_by_key(|&&d| from[d])) else {
        return false;
    };
    last != inner && dims[last] >= 8 && dims[inner] >= 8
}

fn plan(module: &Module, body: &Body<'_>) -> Option<Plan> {
    let el = &body.el;
    let dims = el.dims(body.roots[0]);
    let mut heroes = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for &root in &body.roots {
        if el.dims(root) != dims || !find(module, el, root, &dims, &mut heroes, &mut seen) {
            return None;
        }
    }
    let &hero = heroes.first()?;
    let Op::Transpose { dims: from } = &module.instr(hero).op else {
        return None;
    };
    let same = |&other: &InstrId| module.instr(other).op == module.instr(hero).op;
    if !heroes.iter().all(same) || dims.last() == Some(&1) {
        return None;
    }
    let across = (0..dims.len())
        .filter(|&d| dims[d] != 1)
        .max_by_key(|&d| from[d])?;
    let outputs = body.outputs.iter();
    if outputs.clone().any(|o| value::per_byte(o.shape.ty) > 1) {
        return None;
    }
    let widest = cost::of_body(el, &body.roots).widest;
    let lanes = i64::from(cost::lanes(el.target, widest)).min(8);
    let inner = dims[dims.len() - 1] as i64;
    let line = 64 / widest as i64;
    let side = if inner.min(dims[across] as i64) >= 8 * line {
        (line / lanes).clamp(1, 4)
    } else {
        1
    };
    let fills_tiles = lanes >= 4 && dims[across] as i64 >= lanes && inner >= lanes;
    (fills_tiles || el.target.platform() == Platform::Cuda).then(|| Plan {
        from: from.clone(),
        across,
        lanes,
        side,
        dims,
    })
}

/// Collects the transposes behind elementwise ops of the result's dimensions; false when another op
/// stands in the way of one.
fn find(
    module: &Module,
    el: &Elemental<'_>,
    id: InstrId,
    dims: &Dims,
    heroes: &mut BTreeSet<InstrId>,
    seen: &mut BTreeSet<InstrId>,
) -> bool {
    if el.is_leaf(id) || !seen.insert(id) {
        return true;
    }
    let instr = module.instr(id);
    match &instr.op {
        op if moves_minor(op, dims) && array(&instr.shape).dims == *dims => {
            heroes.insert(id);
            !has_transpose(el, instr.operands[0])
        }
        op if op.is_elementwise() || matches!(op, Op::Copy) => instr
            .operands
            .iter()
            .all(|&operand| find(module, el, operand, dims, heroes, seen)),
        _ => !has_transpose(el, id),
    }
}

fn has_transpose(el: &Elemental<'_>, root: InstrId) -> bool {
    el.depends_on(root, |instr| {
        moves_minor(&instr.op, &array(&instr.shape).dims)
    })
}

fn tiles(b: &mut KernelBuilder, body: &Body<'_>, plan: &Plan) -> Launch {
    let el = &body.el;
    let minor = plan.dims.len() - 1;
    let (across, along) = (plan.dims[plan.across] as i64, plan.dims[minor] as i64);
    let lanes = plan.lanes;
    let others: Vec<usize> = (0..minor).filter(|&d| d != plan.across).collect();
    let mut sizes: Vec<i64> = others.iter().map(|&d| plan.dims[d] as i64).collect();
    let block = lanes * plan.side;
    let (strips, blocks) = (cost::pieces(along, block), cost::pieces(across, block));
    sizes.push(strips);
    let work = cost::of_body(el, &body.roots).per_element * 2;
    let total: i64 = plan.dims.iter().map(|&d| d as i64).product();
    let tasks = cost::tasks(el.target, work * total as u64) as i64;
    let size_dims: Dims = sizes.iter().map(|&s| s as usize).collect();
    share::for_box(b, &el.splits, &sizes, tasks, &mut |b, number| {
        el.scope(|| {
            let parts = el.splits.unravel(b, &size_dims, number);
            let zero = b.index(0);
            let mut at = vec![zero; plan.dims.len()];
            for (i, &d) in others.iter().enumerate() {
                at[d] = parts[i];
            }
            let strip = parts[others.len()];
            b.for_range(blocks, 1, |b, tile| {
                b.for_range(plan.side, 1, |b, i| {
                    b.for_range(plan.side, 1, |b, j| {
                        el.scope(|| {
                            let mut at = at.clone();
                            at[minor] = tile_start(b, (strip, i), plan, along);
                            at[plan.across] = tile_start(b, (tile, j), plan, across);
                            one_tile(b, body, plan, &at);
                        });
                    });
                });
            });
        });
    })
}

/// Where a tile of a block starts; the last ones start early enough to be whole.
fn tile_start(
    b: &mut KernelBuilder,
    (block, tile): (ExprId, ExprId),
    plan: &Plan,
    size: i64,
) -> ExprId {
    let start = b.mul_const(block, plan.lanes * plan.side);
    let offset = b.mul_const(tile, plan.lanes);
    let start = b.add(start, offset);
    let last = b.index(size - plan.lanes);
    b.binary(BinaryOp::SMin, start, last)
}

/// Reads, turns and writes the tile whose first element is at an index of the result.
fn one_tile(b: &mut KernelBuilder, body: &Body<'_>, plan: &Plan, at: &[ExprId]) {
    let el = &body.el;
    let minor = plan.dims.len() - 1;
    let lanes = plan.lanes as u16;
    let back = inverse_permutation(&plan.from);
    let mut turned: Vec<Vec<Value>> = Vec::new();
    let heroes = heroes_of(el, body, plan);
    for &id in &heroes {
        let source = el.module.instr(id).operands[0];
        let lines: Vec<Value> = (0..plan.lanes)
            .map(|line| {
                let mut at = at.to_vec();
                at[minor] = b.add_const(at[minor], line);
                let inner = back.iter().map(|&d| at[d]);
                let dim = plan.from[plan.across];
                let size = plan.dims[plan.across] as i64;
                let index = Index::run(inner, lanes, dim, size);
                el.value(b, source, &index).splat(b, lanes)
            })
            .collect();
        turned.push(turn(b, &lines));
    }
    for line in 0..plan.lanes {
        el.scope(|| {
            for (&id, values) in heroes.iter().zip(&turned) {
                el.bind(id, [values[line as usize]].into_iter().collect());
            }
            let mut at = at.to_vec();
            at[plan.across] = b.add_const(at[plan.across], line);
            let position = el.splits.position(b, &plan.dims, &at);
            let index = Index::run(at, lanes, minor, plan.dims[minor] as i64);
            let values: Vec<Value> = body
                .result_values()
                .iter()
                .map(|&(root, part)| el.values(b, root, &index)[part])
                .collect();
            for (output, value) in body.outputs.iter().zip(values) {
                value::store(b, output.buf, output.shape.ty, position, lanes, value);
            }
        });
    }
}

/// The transposes that the roots need.
fn heroes_of(el: &Elemental<'_>, body: &Body<'_>, plan: &Plan) -> Vec<InstrId> {
    let mut heroes = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for &root in &body.roots {
        find(el.module, el, root, &plan.dims, &mut heroes, &mut seen);
    }
    heroes.into_iter().collect()
}

/// The transpose of a square of registers, by halves.
fn turn(b: &mut KernelBuilder, lines: &[Value]) -> Vec<Value> {
    let count = lines.len();
    let mut lines = lines.to_vec();
    let mut half = count / 2;
    while half > 0 {
        let mut next = lines.clone();
        for i in (0..count).filter(|i| i & half == 0) {
            let (low, high) = (lines[i], lines[i + half]);
            // Lane l of the pair (i, i + half): the halves of every 2 * half lanes change places.
            let lane = |l: usize, upper: bool| {
                let inner = l & (half - 1);
                let block = l & !(2 * half - 1);
                let from_high = l & half != 0;
                let source = block + inner + if upper { half } else { 0 };
                (source + if from_high { count } else { 0 }) as u16
            };
            let first: Vec<u16> = (0..count).map(|l| lane(l, false)).collect();
            let second: Vec<u16> = (0..count).map(|l| lane(l, true)).collect();
            next[i] = low.zip(high, |x, y| b.shuffle(x, y, &first));
            next[i + half] = low.zip(high, |x, y| b.shuffle(x, y, &second));
        }
        lines = next;
        half /= 2;
    }
    lines
}

#[cfg(test)]
mod tests {
    /// The shuffles of a turn, on plain numbers.
    fn turn(mut lines: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
        let count = lines.len();
        let mut half = count / 2;
        while half > 0 {
            let mut next = lines.clone();
            for i in (0..count).filter(|i| i & half == 0) {
                #[allow(clippy::needless_range_loop, reason = "two lines are written at once")]
                for l in 0..count {
                    let inner = l & (half - 1);
                    let block = l & !(2 * half - 1);
                    let line = if l & half == 0 { i } else { i + half };
                    next[i][l] = lines[line][block + inner];
                    next[i + half][l] = lines[line][block + inner + half];
                }
            }
            lines = next;
            half /= 2;
        }
        lines
    }

    #[test]
    fn halves_turn_a_square() {
        for count in [2, 4, 8] {
            let lines = (0..count)
                .map(|i| (0..count).map(|j| i * count + j).collect())
                .collect();
            for (i, line) in turn(lines).iter().enumerate() {
                for (j, &number) in line.iter().enumerate() {
                    assert_eq!(number, j * count + i);
                }
            }
        }
    }
}
