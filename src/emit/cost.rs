//! What an element of a body costs, how wide its registers are, and how work is shared out.
//!
//! The numbers are rough and in one place; they only steer vector widths and task counts, and are
//! the same on every machine.

use std::collections::BTreeSet;

use crate::emit::convert;
use crate::emit::elemental::Elemental;
use crate::emit::elemental::array;
use crate::emit::generic_conv::takes_lanes;
use crate::emit::value;
use crate::hlo::BinaryOp;
use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::UnaryOp;
use crate::target::Target;

/// Work worth a task of its own, in bytes moved or as many simple operations.
pub const TASK_COST: u64 = 512 * 1024;

/// Workitems of a GPU workgroup that walks elements.
pub const GPU_BLOCK: u32 = 256;

/// What is known of a body before it is emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyCost {
    /// Cost of one element of the result.
    pub per_element: u64,
    /// Bytes of the widest register element.
    pub widest: u64,
    /// Whether an op needs tens of instructions.
    pub heavy: bool,
    /// Whether an op is better computed one element at a time.
    pub scalar: bool,
}

/// Looks at all that the roots need.
pub fn of_body(el: &Elemental<'_>, roots: &[InstrId]) -> BodyCost {
    let mut cost = BodyCost {
        per_element: 0,
        widest: 1,
        heavy: false,
        scalar: false,
    };
    let mut seen = BTreeSet::new();
    let mut stack = roots.to_vec();
    for &root in roots {
        let ty = el.ty(root);
        cost.per_element += ty.byte_width() as u64;
        cost.widest = cost.widest.max(value::register_bytes(ty));
    }
    while let Some(id) = stack.pop() {
        if !seen.insert(id) {
            continue;
        }
        let shape = array(&el.module.instr(id).shape);
        let scalar = shape.element_count() <= 1;
        if !scalar {
            let ty = shape.ty;
            cost.widest = cost.widest.max(value::register_bytes(ty));
        }
        if el.is_leaf(id) {
            if !scalar {
                cost.per_element += shape.ty.byte_width() as u64;
            }
            continue;
        }
        let instr = el.module.instr(id);
        if !scalar && computes(&instr.op) {
            let ty = convert::compute_type(shape.ty);
            cost.widest = cost.widest.max(value::register_bytes(ty));
            let weight = weight(&instr.op);
            cost.per_element += weight;
            cost.heavy |= weight > 8;
        }
        cost.per_element += nested_work(el, instr);
        cost.scalar |= !takes_lanes(&instr.op, shape.rank());
        stack.extend(instr.operands.iter().copied());
    }
    cost
}

/// Steps of the loop inside one element of an op.
fn nested_work(el: &Elemental<'_>, instr: &Instr) -> u64 {
    let volume = |id: InstrId, dims: &[usize]| -> u64 {
        let full = el.dims(id);
        dims.iter().map(|&d| full[d] as u64).product()
    };
    match &instr.op {
        Op::Reduce { dims, .. } => volume(instr.operands[0], dims),
        Op::ReduceWindow { window, .. } => window.iter().map(|w| w.size as u64).product(),
        Op::Dot { dims, .. } => volume(instr.operands[0], &dims.lhs_contracting),
        Op::Convolution { dims, .. } => {
            let mut inner = dims.kernel_spatial.clone();
            inner.push(dims.kernel_input_feature);
            volume(instr.operands[1], &inner)
        }
        _ => 0,
    }
}

fn computes(op: &Op) -> bool {
    matches!(
        op,
        Op::Unary(_)
            | Op::Binary(_)
            | Op::Compare { .. }
            | Op::Clamp
            | Op::Convert
            | Op::ReducePrecision { .. }
            | Op::Reduce { .. }
            | Op::ReduceWindow { .. }
            | Op::Dot { .. }
            | Op::Convolution { .. }
    )
}

fn weight(op: &Op) -> u64 {
    match op {
        Op::Unary(
            UnaryOp::Abs
            | UnaryOp::Negate
            | UnaryOp::Not
            | UnaryOp::Real
            | UnaryOp::Imag
            | UnaryOp::IsFinite
            | UnaryOp::Ceil
            | UnaryOp::Floor
            | UnaryOp::RoundNearestEven
            | UnaryOp::Sign
            | UnaryOp::Sqrt,
        ) => 1,
        Op::Unary(_) | Op::Binary(BinaryOp::Power | BinaryOp::Atan2) => 20,
        Op::Binary(BinaryOp::Divide | BinaryOp::Remainder) => 4,
        _ => 1,
    }
}

/// The number of tasks for work of that cost: a function of the cost alone, up to what the target
/// runs at once.
pub fn tasks(target: &Target, cost: u64) -> u64 {
    (cost / TASK_COST).clamp(1, u64::from(target.parallelism.max(1)))
}

/// Elements of that many bytes in a vector register, at least one.
pub fn lanes(target: &Target, bytes: u64) -> u16 {
    (u64::from(target.vector_bytes()) / bytes.max(1)).clamp(1, 64) as u16
}

/// How many pieces of `size` cover `count`.
pub fn pieces(count: i64, size: i64) -> i64 {
    (count + size - 1) / size
}
