//! Transposes on a GPU: a workgroup reads a tile along the operand's minor dimension into shared
//! memory and writes it along the result's, so that both sides touch whole lines. The tile's rows
//! are one element longer than the tile, which keeps its columns in different banks.

use crate::emit::cost::pieces;
use crate::emit::elemental::Elemental;
use crate::emit::index::Index;
use crate::emit::setup::Body;
use crate::emit::transpose::Plan;
use crate::emit::value;
use crate::emit::value::Value;
use crate::executable::Launch;
use crate::hlo::InstrId;
use crate::kernel::Axis;
use crate::kernel::BinaryOp;
use crate::kernel::BufId;
use crate::kernel::CastOp;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Scalar;
use crate::kernel::Space;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::shape::index::inverse_permutation;

/// Elements of a side of a tile.
const TILE: i64 = 32;
/// Rows of a tile that the workitems of a group cover at once.
const ROWS: i64 = 8;

/// A workitem's view of a tile.
struct Tile<'a, 'm> {
    body: &'a Body<'m>,
    plan: &'a Plan,
    /// Index of the tile's first element.
    at: Vec<ExprId>,
    row: ExprId,
    lane: ExprId,
}

/// Emits the kernel's body; `heroes` are the transposes that the roots need.
pub fn emit(b: &mut KernelBuilder, body: &Body<'_>, plan: &Plan, heroes: &[InstrId]) -> Launch {
    let el = &body.el;
    let minor = plan.dims.len() - 1;
    let others: Vec<usize> = (0..minor).filter(|&d| d != plan.across).collect();
    let mut sizes: Dims = others.iter().map(|&d| plan.dims[d]).collect();
    for d in [plan.across, minor] {
        sizes.push(pieces(plan.dims[d] as i64, TILE) as usize);
    }
    let group = b.workgroup_id(Axis::X);
    let item = b.workitem_id(Axis::X);
    let (row, lane) = el.splits.split(b, item, TILE);
    let parts = el.splits.unravel(b, &sizes, group);
    let zero = b.index(0);
    let mut at = vec![zero; plan.dims.len()];
    for (i, &d) in others.iter().enumerate() {
        at[d] = parts[i];
    }
    at[plan.across] = b.mul_const(parts[others.len()], TILE);
    at[minor] = b.mul_const(parts[others.len() + 1], TILE);
    let tile = Tile {
        body,
        plan,
        at,
        row,
        lane,
    };
    let buffers: Vec<Vec<BufId>> = heroes.iter().map(|&id| shared(b, el.ty(id))).collect();
    for step in 0..TILE / ROWS {
        tile.read(b, heroes, &buffers, step * ROWS);
    }
    b.barrier();
    for step in 0..TILE / ROWS {
        tile.write(b, heroes, &buffers, step * ROWS);
    }
    let groups: usize = sizes.iter().product();
    Launch {
        workgroups: [groups as u64, 1, 1],
        workitems: [(TILE * ROWS) as u32, 1, 1],
        ..Launch::SINGLE
    }
}

/// Shared memory for a tile of each register of a type.
fn shared(b: &mut KernelBuilder, ty: PrimitiveType) -> Vec<BufId> {
    let registers = if ty.is_complex() { 2 } else { 1 };
    let elem = match value::register(ty) {
        Scalar::I1 => Scalar::I8,
        other => other,
    };
    let count = (TILE * (TILE + 1)) as u64;
    (0..registers)
        .map(|_| b.scratch("tile", elem, count, Space::Shared))
        .collect()
}

impl Tile<'_, '_> {
    /// Runs the closure with the index of this workitem's element when it lies in the array.
    fn element(
        &self,
        b: &mut KernelBuilder,
        (across, minor): (ExprId, ExprId),
        f: impl FnOnce(&mut KernelBuilder, Vec<ExprId>),
    ) {
        let el: &Elemental<'_> = &self.body.el;
        let last = self.plan.dims.len() - 1;
        let mut at = self.at.clone();
        at[self.plan.across] = b.add(at[self.plan.across], across);
        at[last] = b.add(at[last], minor);
        let limit = b.index(self.plan.dims[self.plan.across] as i64);
        let fits = b.cmp(CmpOp::SLt, at[self.plan.across], limit);
        let limit = b.index(self.plan.dims[last] as i64);
        let also = b.cmp(CmpOp::SLt, at[last], limit);
        let inside = b.binary(BinaryOp::And, fits, also);
        b.if_then(inside, |b| el.scope(|| f(b, at)));
    }

    fn read(&self, b: &mut KernelBuilder, heroes: &[InstrId], buffers: &[Vec<BufId>], first: i64) {
        let el = &self.body.el;
        let line = b.add_const(self.row, first);
        let back = inverse_permutation(&self.plan.from);
        self.element(b, (self.lane, line), |b, at| {
            let slot = b.mul_const(line, TILE + 1);
            let slot = b.add(slot, self.lane);
            for (&id, buffers) in heroes.iter().zip(buffers) {
                let source = el.module.instr(id).operands[0];
                let index = Index::scalar(back.iter().map(|&d| at[d]));
                let value = el.value(b, source, &index);
                for (register, &buffer) in value.registers().into_iter().zip(buffers) {
                    let stored = if b.ty(register).scalar == Scalar::I1 {
                        b.cast(CastOp::ZExt, register, Scalar::I8)
                    } else {
                        register
                    };
                    b.store(buffer, slot, stored);
                }
            }
        });
    }

    fn write(&self, b: &mut KernelBuilder, heroes: &[InstrId], buffers: &[Vec<BufId>], first: i64) {
        let el = &self.body.el;
        let line = b.add_const(self.row, first);
        self.element(b, (line, self.lane), |b, at| {
            let slot = b.mul_const(self.lane, TILE + 1);
            let slot = b.add(slot, line);
            for (&id, buffers) in heroes.iter().zip(buffers) {
                let mut registers = Vec::new();
                for &buffer in buffers {
                    let mut register = b.load(buffer, slot, 1);
                    if value::register(el.ty(id)) == Scalar::I1 {
                        let zero = b.int(b.ty(register), 0);
                        register = b.cmp(CmpOp::INe, register, zero);
                    }
                    registers.push(register);
                }
                el.bind(
                    id,
                    [Value::from_registers(&registers)].into_iter().collect(),
                );
            }
            let position = el.splits.position(b, &self.plan.dims, &at);
            let mut index = Index::scalar(at);
            index.linear = Some(position);
            let values: Vec<Value> = self
                .body
                .result_values()
                .iter()
                .map(|&(root, part)| el.values(b, root, &index)[part])
                .collect();
            for (output, value) in self.body.outputs.iter().zip(values) {
                value::store(b, output.buf, output.shape.ty, position, 1, value);
            }
        });
    }
}
