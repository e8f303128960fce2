//! The best few elements of each row on a CPU: the result's row is a list kept in order, and only
//! elements better than its last one, looked for in whole vectors, are put into it.
//!
//! Floats are compared in total order; among equals the earlier position comes first.

use crate::base::Result;
use crate::emit::cost;
use crate::emit::elemental::unsupported;
use crate::emit::elementwise;
use crate::emit::index::volume;
use crate::emit::request::Emitted;
use crate::emit::request::KernelRequest;
use crate::emit::setup::Body;
use crate::emit::setup::Setup;
use crate::emit::share;
use crate::emit::value;
use crate::emit::value::Access;
use crate::emit::value::Value;
use crate::hlo::ComparisonDirection;
use crate::hlo::ComparisonType;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::kernel::BinaryOp;
use crate::kernel::CastOp;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Scalar;
use crate::kernel::Unroll;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::target::Platform;

/// Rows of one request.
struct Rows<'a, 'm> {
    body: &'a Body<'m>,
    operand: InstrId,
    dims: Dims,
    ty: PrimitiveType,
    k: i64,
    size: i64,
    direction: ComparisonDirection,
}

/// Emits the top-k of a request.
///
/// # Errors
/// `EMIT_UNSUPPORTED` on a GPU and for types without an order.
pub fn emit(request: &KernelRequest<'_>) -> Result<Emitted> {
    let Setup { mut b, body } = Setup::new(request);
    let instr = request.module.instr(body.roots[0]);
    let refused = || unsupported(instr, request.module, request.target);
    let Op::TopK { k, largest, .. } = instr.op else {
        return Err(refused());
    };
    let el = &body.el;
    let operand = instr.operands[0];
    let (dims, ty) = (el.dims(operand), el.ty(operand));
    let size = dims.last().map_or(1, |&d| d as i64);
    let ordered = (ty.is_float() || ty.is_integer()) && ty.bit_width() >= 8;
    let positions = body.outputs.get(1).map(|o| o.shape.ty);
    if request.target.platform() != Platform::Cpu
        || !ordered
        || positions != Some(PrimitiveType::S32)
        || k as i64 > size
    {
        return Err(refused());
    }
    if k == 0 || volume(&dims) == 0 {
        return Ok(Emitted::default());
    }
    let rows = Rows {
        body: &body,
        operand,
        ty,
        k: k as i64,
        size,
        direction: if largest {
            ComparisonDirection::Gt
        } else {
            ComparisonDirection::Lt
        },
        dims: dims.clone(),
    };
    let count = volume(&dims) / size;
    let work = (volume(&dims) * 8) as u64;
    let tasks = cost::tasks(request.target, work) as i64;
    let launch = share::for_box(&mut b, &el.splits, &[count], tasks, &mut |b, row| {
        el.scope(|| rows.one(b, row));
    });
    body.finish(b, launch)
}

impl Rows<'_, '_> {
    fn better(&self, b: &mut KernelBuilder, x: Value, y: Value) -> ExprId {
        let order = if self.ty.is_float() {
            ComparisonType::TotalOrder
        } else if self.ty.is_signed() {
            ComparisonType::Signed
        } else {
            ComparisonType::Unsigned
        };
        elementwise::compare(b, self.direction, order, self.ty, x, y)
            .unwrap_or_else(|| b.bool(1, false))
    }

    /// Elements of a row from a place on.
    fn read(&self, b: &mut KernelBuilder, row: ExprId, at: ExprId, lanes: u16) -> Value {
        let el = &self.body.el;
        let position = el.splits.join(b, row, at, self.size);
        let index = el.splits.run_at(b, &self.dims, position, lanes, self.size);
        el.value(b, self.operand, &index)
    }

    fn listed(&self, b: &mut KernelBuilder, at: ExprId) -> Value {
        value::load(b, self.body.outputs[0].buf, self.ty, at, Access::ONE)
    }

    fn one(&self, b: &mut KernelBuilder, row: ExprId) {
        let el = &self.body.el;
        let list = b.mul_const(row, self.k);
        let one = b.index(1);
        let bounds = (b.index(0), b.index(self.k), one);
        b.for_loop(bounds, |b, at| {
            el.scope(|| {
                let new = self.read(b, row, at, 1);
                self.insert(b, list, at, new, at);
            });
        });
        let last = b.add_const(list, self.k - 1);
        let worst = self.listed(b, last).one();
        let lanes = i64::from(cost::lanes(el.target, value::register_bytes(self.ty)));
        let main = self.k + (self.size - self.k) / lanes * lanes;
        let bounds = (b.index(self.k), b.index(main), b.index(lanes));
        let worst = b.for_carried(bounds, &[worst], Unroll::Auto, |b, at, worst| {
            el.scope(|| {
                let run = self.read(b, row, at, lanes as u16).splat(b, lanes as u16);
                let better = self.better(b, run, Value::One(worst[0]));
                let any = b.reduce_lanes(BinaryOp::Or, better);
                b.if_else(
                    any,
                    |b| {
                        let bounds = (b.index(0), b.index(lanes), one);
                        b.for_carried(bounds, worst, Unroll::Never, |b, lane, worst| {
                            let at = b.add(at, lane);
                            vec![self.offer(b, row, list, at, worst[0])]
                        })
                    },
                    |_| worst.to_vec(),
                )
            })
        });
        let bounds = (b.index(main), b.index(self.size), one);
        b.for_carried(bounds, &worst, Unroll::Never, |b, at, worst| {
            vec![self.offer(b, row, list, at, worst[0])]
        });
    }

    /// Puts an element into the list if it is better than the last one; gives the last one.
    fn offer(
        &self,
        b: &mut KernelBuilder,
        row: ExprId,
        list: ExprId,
        at: ExprId,
        worst: ExprId,
    ) -> ExprId {
        self.body.el.scope(|| {
            let new = self.read(b, row, at, 1);
            let better = self.better(b, new, Value::One(worst));
            let results = b.if_else(
                better,
                |b| {
                    let end = b.index(self.k - 1);
                    self.insert(b, list, end, new, at);
                    let last = b.add_const(list, self.k - 1);
                    vec![self.listed(b, last).one()]
                },
                |_| vec![worst],
            );
            results[0]
        })
    }

    /// Moves what is worse than an element down from a place of the list, and puts it there.
    fn insert(&self, b: &mut KernelBuilder, list: ExprId, from: ExprId, new: Value, at: ExprId) {
        let (values, places) = (&self.body.outputs[0], &self.body.outputs[1]);
        let zero = b.index(0);
        let end = b.while_carried(
            &[from],
            |b, carried| {
                let inside = b.cmp(CmpOp::SGt, carried[0], zero);
                let back = b.add_const(carried[0], -1);
                let safe = b.binary(BinaryOp::SMax, back, zero);
                let before = b.add(list, safe);
                let before = self.listed(b, before);
                let moves = self.better(b, new, before);
                b.binary(BinaryOp::And, inside, moves)
            },
            |b, carried| {
                let to = b.add(list, carried[0]);
                let back = b.add_const(carried[0], -1);
                let source = b.add(list, back);
                let moved = self.listed(b, source);
                value::store(b, values.buf, self.ty, to, 1, moved);
                let place = b.load(places.buf, source, 1);
                b.store(places.buf, to, place);
                vec![back]
            },
        );
        let to = b.add(list, end[0]);
        value::store(b, values.buf, self.ty, to, 1, new);
        let place = b.cast(CastOp::Trunc, at, Scalar::I32);
        b.store(places.buf, to, place);
    }
}
