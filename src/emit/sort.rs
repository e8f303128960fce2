//! Sorting along one dimension: any number of operands, any comparator, always stable.
//!
//! A CPU task takes rows: each is copied to scratch memory, sorted there (insertion sort of short
//! blocks, then merges from one half of the scratch to the other) and copied out. On a GPU a
//! workgroup takes a row and runs a bitonic network over it, in shared memory when it fits; equal
//! elements are told apart by their old places, which makes the network stable.
//!
//! How much scratch there is stands in [`crate::analysis::scratch`].

use smallvec::SmallVec;

use crate::analysis::scratch;
use crate::base::Result;
use crate::emit::elemental::Elemental;
use crate::emit::elemental::Source;
use crate::emit::elemental::unsupported;
use crate::emit::index::Index;
use crate::emit::index::volume;
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
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::kernel::Axis;
use crate::kernel::BinaryOp;
use crate::kernel::BufId;
use crate::kernel::CastOp;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Scalar;
use crate::kernel::Space;
use crate::kernel::Ty;
use crate::kernel::Unroll;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::target::Platform;

/// Blocks of this many elements are sorted by insertion.
const BLOCK: i64 = 8;
/// Workitems of a GPU workgroup that sorts a row.
const SORTERS: i64 = 512;

/// A sort taken apart.
struct Plan<'a> {
    operands: &'a [InstrId],
    body: CompId,
    dims: Dims,
    dim: usize,
}

impl Plan<'_> {
    fn size(&self) -> i64 {
        self.dims[self.dim] as i64
    }
    fn rows(&self) -> i64 {
        volume(&self.dims) / self.size().max(1)
    }
    /// Position of element `at` of a row.
    fn position(
        &self,
        el: &Elemental<'_>,
        b: &mut KernelBuilder,
        row: ExprId,
        at: ExprId,
    ) -> ExprId {
        let inner = volume(&self.dims[self.dim + 1..]);
        let (outer, below) = el.splits.split(b, row, inner);
        let line = el.splits.join(b, outer, at, self.size());
        el.splits.join(b, line, below, inner)
    }
}

/// Emits the sort of a request.
///
/// # Errors
/// `EMIT_UNSUPPORTED` when the comparator has an op without an elemental form.
pub fn emit(request: &KernelRequest<'_>) -> Result<Emitted> {
    let module = request.module;
    let Setup { mut b, mut body } = Setup::new(request);
    let mut id = body.roots[0];
    while matches!(module.instr(id).op, Op::GetTupleElement { .. }) {
        id = module.instr(id).operands[0];
    }
    let instr = module.instr(id);
    let Op::Sort {
        dim, body: comp, ..
    } = instr.op
    else {
        return Err(unsupported(instr, module, request.target));
    };
    let plan = Plan {
        operands: &instr.operands,
        body: comp,
        dims: body.el.dims(instr.operands[0]),
        dim,
    };
    if volume(&plan.dims) == 0 {
        return Ok(Emitted::default());
    }
    let launch = match request.target.platform() {
        Platform::Cpu => {
            let Some(areas) = areas(&mut b, &mut body, &plan, request) else {
                return Err(unsupported(instr, module, request.target)
                    .note("the scratch memory is smaller than the sort needs"));
            };
            on_cpu(&mut b, &body, &plan, &areas, request)
        }
        Platform::Cuda => match network_areas(&mut b, &mut body, &plan, request) {
            Some(areas) => on_gpu(&mut b, &body, &plan, &areas),
            None => {
                return Err(unsupported(instr, module, request.target)
                    .note("the scratch memory is smaller than the sort needs"));
            }
        },
    };
    body.finish(b, launch)
}

/// A scratch array of one operand, unpacked.
struct Area {
    buf: BufId,
    ty: PrimitiveType,
}

/// The scratch arrays of the operands on a CPU: for each task two rows.
fn areas(
    b: &mut KernelBuilder,
    body: &mut Body<'_>,
    plan: &Plan<'_>,
    request: &KernelRequest<'_>,
) -> Option<Vec<Area>> {
    let tasks = scratch::sort_tasks(request.module, request.instr, request.target);
    let count = tasks * 2 * plan.size() as u64;
    let mut offset = 0;
    let mut out = Vec::new();
    for &operand in plan.operands {
        let ty = body.el.ty(operand);
        let buf = body.scratch_array(b, unpacked(ty), count, &mut offset)?;
        out.push(Area { buf, ty });
    }
    Some(out)
}

/// The type whose arrays hold elements of `ty` one a byte.
fn unpacked(ty: PrimitiveType) -> PrimitiveType {
    if ty.is_sub_byte() {
        PrimitiveType::U8
    } else {
        ty
    }
}

impl Area {
    fn load(&self, b: &mut KernelBuilder, at: ExprId) -> Value {
        value::load(b, self.buf, unpacked(self.ty), at, Access::ONE)
    }
    fn store(&self, b: &mut KernelBuilder, at: ExprId, value: Value) {
        value::store(b, self.buf, unpacked(self.ty), at, 1, value);
    }
}

fn load_all(b: &mut KernelBuilder, areas: &[Area], at: ExprId) -> Vec<Value> {
    areas.iter().map(|area| area.load(b, at)).collect()
}

fn store_all(b: &mut KernelBuilder, areas: &[Area], at: ExprId, values: &[Value]) {
    for (area, &value) in areas.iter().zip(values) {
        area.store(b, at, value);
    }
}

/// Whether `left` goes strictly before `right`.
fn before(
    b: &mut KernelBuilder,
    el: &Elemental<'_>,
    body: CompId,
    left: &[Value],
    right: &[Value],
) -> ExprId {
    let args: Vec<Value> = left.iter().zip(right).flat_map(|(&l, &r)| [l, r]).collect();
    el.call(b, body, &args, false)[0].one()
}

fn on_cpu(
    b: &mut KernelBuilder,
    body: &Body<'_>,
    plan: &Plan<'_>,
    areas: &[Area],
    request: &KernelRequest<'_>,
) -> Launch {
    let el = &body.el;
    let tasks = scratch::sort_tasks(request.module, request.instr, request.target) as i64;
    let size = plan.size();
    let base = if tasks > 1 {
        let group = b.workgroup_id(Axis::X);
        b.mul_const(group, 2 * size)
    } else {
        b.index(0)
    };
    share::for_box(b, &el.splits, &[plan.rows()], tasks, &mut |b, row| {
        el.scope(|| {
            b.for_range(size, 1, |b, at| {
                el.scope(|| {
                    let position = plan.position(el, b, row, at);
                    let values = read(b, body, plan, position);
                    let to = b.add(base, at);
                    store_all(b, areas, to, &values);
                });
            });
            insertion(b, el, plan, areas, base);
            let from = merges(b, el, plan, areas, base);
            b.for_range(size, 1, |b, at| {
                el.scope(|| {
                    let position = plan.position(el, b, row, at);
                    let at = b.add(from, at);
                    let values = load_all(b, areas, at);
                    write(b, &body.outputs, position, &values);
                });
            });
        });
    })
}

/// The operands' elements at a position.
fn read(b: &mut KernelBuilder, body: &Body<'_>, plan: &Plan<'_>, position: ExprId) -> Vec<Value> {
    let el = &body.el;
    let at = el.splits.unravel(b, &plan.dims, position);
    let mut index = Index::scalar(at);
    index.linear = Some(position);
    let operands = plan.operands.iter();
    operands.map(|&id| el.value(b, id, &index)).collect()
}

fn write(b: &mut KernelBuilder, outputs: &[Source], position: ExprId, values: &[Value]) {
    for (output, &value) in outputs.iter().zip(values) {
        value::store_single(b, output.buf, output.shape.ty, position, value);
    }
}

/// Sorts every block of the row at `base` by insertion.
fn insertion(
    b: &mut KernelBuilder,
    el: &Elemental<'_>,
    plan: &Plan<'_>,
    areas: &[Area],
    base: ExprId,
) {
    let size = plan.size();
    let bounds = (b.index(1), b.index(size), b.index(1));
    b.for_loop(bounds, |b, i| {
        el.scope(|| {
            let at = b.add(base, i);
            let new = load_all(b, areas, at);
            let (_, place) = (b.div_const(i, BLOCK), b.rem_const(i, BLOCK));
            let start = b.sub(at, place);
            let end = b.while_carried(
                &[at],
                |b, carried| {
                    let inside = b.cmp(CmpOp::SGt, carried[0], start);
                    let back = b.add_const(carried[0], -1);
                    let safe = b.binary(BinaryOp::SMax, back, start);
                    let previous = load_all(b, areas, safe);
                    let moves = before(b, el, plan.body, &new, &previous);
                    b.binary(BinaryOp::And, inside, moves)
                },
                |b, carried| {
                    let back = b.add_const(carried[0], -1);
                    let previous = load_all(b, areas, back);
                    store_all(b, areas, carried[0], &previous);
                    vec![back]
                },
            );
            store_all(b, areas, end[0], &new);
        });
    });
}

/// Merges runs of doubling width from half to half; gives the place of the half that is sorted.
fn merges(
    b: &mut KernelBuilder,
    el: &Elemental<'_>,
    plan: &Plan<'_>,
    areas: &[Area],
    base: ExprId,
) -> ExprId {
    let size = plan.size();
    let other = b.add_const(base, size);
    let (mut from, mut to) = (base, other);
    let mut width = BLOCK;
    while width < size {
        let bounds = (b.index(0), b.index(size), b.index(2 * width));
        b.for_loop(bounds, |b, low| {
            let (limit, half) = (b.index(size), b.index(width));
            let middle = b.add(low, half);
            let middle = b.binary(BinaryOp::SMin, middle, limit);
            let high = b.add(middle, half);
            let high = b.binary(BinaryOp::SMin, high, limit);
            merge(b, el, plan, areas, (from, to), [low, middle, high]);
        });
        (from, to) = (to, from);
        width *= 2;
    }
    from
}

/// Merges `low..middle` with `middle..high`; the left one goes first when neither goes before the
/// other.
fn merge(
    b: &mut KernelBuilder,
    el: &Elemental<'_>,
    plan: &Plan<'_>,
    areas: &[Area],
    (from, to): (ExprId, ExprId),
    [low, middle, high]: [ExprId; 3],
) {
    let one = b.index(1);
    b.for_carried(
        (low, high, one),
        &[low, middle],
        Unroll::Never,
        |b, at, carried| {
            el.scope(|| {
                let (i, j) = (carried[0], carried[1]);
                let last = b.add_const(high, -1);
                let safe_i = b.binary(BinaryOp::SMin, i, last);
                let safe_j = b.binary(BinaryOp::SMin, j, last);
                let (left_at, right_at) = (b.add(from, safe_i), b.add(from, safe_j));
                let left = load_all(b, areas, left_at);
                let right = load_all(b, areas, right_at);
                let sooner = before(b, el, plan.body, &right, &left);
                let left_done = b.cmp(CmpOp::SGe, i, middle);
                let right_left = b.cmp(CmpOp::SLt, j, high);
                let wanted = b.binary(BinaryOp::Or, left_done, sooner);
                let takes_right = b.binary(BinaryOp::And, right_left, wanted);
                let chosen: Vec<Value> = right
                    .iter()
                    .zip(&left)
                    .map(|(&r, &l)| r.select(b, takes_right, l))
                    .collect();
                let out = b.add(to, at);
                store_all(b, areas, out, &chosen);
                let right_step = b.cast(CastOp::ZExt, takes_right, Scalar::I64);
                let left_step = b.sub(one, right_step);
                vec![b.add(i, left_step), b.add(j, right_step)]
            })
        },
    );
}

/// Arrays of the bitonic network: the operands, then the old places.
struct Network {
    areas: Vec<Area>,
    places: BufId,
    /// Where the row of a workgroup starts.
    base: ExprId,
    /// Size of the network, a power of two.
    size: i64,
}

fn network_areas(
    b: &mut KernelBuilder,
    body: &mut Body<'_>,
    plan: &Plan<'_>,
    request: &KernelRequest<'_>,
) -> Option<Network> {
    let size = (plan.size() as u64).next_power_of_two() as i64;
    let types: SmallVec<[PrimitiveType; 4]> =
        plan.operands.iter().map(|&id| body.el.ty(id)).collect();
    let global = scratch::bytes(request.module, request.instr, request.target) > 0;
    let group = b.workgroup_id(Axis::X);
    let mut areas = Vec::new();
    if !global {
        for ty in types {
            let elem = value::storage(unpacked(ty));
            let count = size as u64 * if ty.is_complex() { 2 } else { 1 };
            let buf = b.scratch("row", elem, count, Space::Shared);
            areas.push(Area { buf, ty });
        }
        let places = b.scratch("places", Scalar::I32, size as u64, Space::Shared);
        let base = b.index(0);
        return Some(Network {
            areas,
            places,
            base,
            size,
        });
    }
    let count = (plan.rows() * size) as u64;
    let mut offset = 0;
    for ty in types {
        let buf = body.scratch_array(b, unpacked(ty), count, &mut offset)?;
        areas.push(Area { buf, ty });
    }
    let places = body.scratch_array(b, PrimitiveType::S32, count, &mut offset)?;
    let base = b.mul_const(group, size);
    Some(Network {
        areas,
        places,
        base,
        size,
    })
}

/// A workgroup for each row.
fn on_gpu(b: &mut KernelBuilder, body: &Body<'_>, plan: &Plan<'_>, network: &Network) -> Launch {
    let el = &body.el;
    let row = b.workgroup_id(Axis::X);
    let item = b.workitem_id(Axis::X);
    let sorters = SORTERS.min((network.size / 2).max(32));
    let bounds = (item, b.index(network.size), b.index(sorters));
    b.for_loop(bounds, |b, at| {
        el.scope(|| {
            let limit = b.index(plan.size());
            let last = b.index(plan.size() - 1);
            let safe = b.binary(BinaryOp::SMin, at, last);
            let position = plan.position(el, b, row, safe);
            let values = read(b, body, plan, position);
            let to = b.add(network.base, at);
            store_all(b, &network.areas, to, &values);
            // A place beyond the row marks filling, which goes last.
            let inside = b.cmp(CmpOp::SLt, at, limit);
            let place = b.cast(CastOp::Trunc, at, Scalar::I32);
            let beyond = b.int(Ty::scalar(Scalar::I32), i64::from(i32::MAX));
            let place = b.select(inside, place, beyond);
            b.store(network.places, to, place);
        });
    });
    b.barrier();
    let mut width = 2;
    while width <= network.size {
        let mut stride = width / 2;
        while stride > 0 {
            stage(b, el, plan, network, (width, stride), (item, sorters));
            b.barrier();
            stride /= 2;
        }
        width *= 2;
    }
    let bounds = (item, b.index(plan.size()), b.index(sorters));
    b.for_loop(bounds, |b, at| {
        el.scope(|| {
            let position = plan.position(el, b, row, at);
            let from = b.add(network.base, at);
            let values = load_all(b, &network.areas, from);
            write(b, &body.outputs, position, &values);
        });
    });
    Launch {
        workgroups: [plan.rows() as u64, 1, 1],
        workitems: [sorters as u32, 1, 1],
        ..Launch::SINGLE
    }
}

/// One step of the network: every pair `stride` apart is put in order, rising or falling by the
/// bit `width` of its place.
fn stage(
    b: &mut KernelBuilder,
    el: &Elemental<'_>,
    plan: &Plan<'_>,
    network: &Network,
    (width, stride): (i64, i64),
    (item, sorters): (ExprId, i64),
) {
    let bounds = (item, b.index(network.size / 2), b.index(sorters));
    b.for_loop(bounds, |b, pair| {
        el.scope(|| {
            let (high, low) = (b.div_const(pair, stride), b.rem_const(pair, stride));
            let high = b.mul_const(high, 2 * stride);
            let first = b.add(high, low);
            let bit = b.int(b.ty(first), width);
            let bit = b.binary(BinaryOp::And, first, bit);
            let zero = b.index(0);
            let rising = b.cmp(CmpOp::IEq, bit, zero);
            let first = b.add(network.base, first);
            let second = b.add_const(first, stride);
            let (x, y) = (
                load_all(b, &network.areas, first),
                load_all(b, &network.areas, second),
            );
            let (px, py) = (
                b.load(network.places, first, 1),
                b.load(network.places, second, 1),
            );
            let wrong = after(b, el, plan, (&x, px), (&y, py));
            let swap = b.cmp(CmpOp::IEq, wrong, rising);
            b.if_then(swap, |b| {
                store_all(b, &network.areas, first, &y);
                store_all(b, &network.areas, second, &x);
                b.store(network.places, first, py);
                b.store(network.places, second, px);
            });
        });
    });
}

/// Whether `x` goes after `y`: by the comparator, then by old place; filling goes last.
fn after(
    b: &mut KernelBuilder,
    el: &Elemental<'_>,
    plan: &Plan<'_>,
    (x, px): (&[Value], ExprId),
    (y, py): (&[Value], ExprId),
) -> ExprId {
    let y_first = before(b, el, plan.body, y, x);
    let x_first = before(b, el, plan.body, x, y);
    let later = b.cmp(CmpOp::SGt, px, py);
    let not_x = {
        let yes = b.bool(1, true);
        b.binary(BinaryOp::Xor, x_first, yes)
    };
    let tie = b.binary(BinaryOp::And, not_x, later);
    let by_value = b.binary(BinaryOp::Or, y_first, tie);
    let filling = b.int(b.ty(px), i64::from(i32::MAX));
    let x_fills = b.cmp(CmpOp::IEq, px, filling);
    let y_fills = b.cmp(CmpOp::IEq, py, filling);
    let either = b.binary(BinaryOp::Or, x_fills, y_fills);
    let no = b.bool(1, false);
    let only_x = b.select(y_fills, no, x_fills);
    b.select(either, only_x, by_value)
}
