//! Reducers and comparators as straight-line functions of numbers, so that calling one for every
//! element needs no arrays.

use crate::base::IdMap;
use crate::eval::bits;
use crate::eval::elementwise;
use crate::hlo::BinaryOp;
use crate::hlo::CompId;
use crate::hlo::ComparisonDirection;
use crate::hlo::ComparisonType;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::UnaryOp;
use crate::literal::number::Number;
use crate::shape::PrimitiveType;

enum Step {
    Argument(usize),
    Constant(Number),
    Copy(usize),
    Unary(UnaryOp, PrimitiveType, usize),
    Binary(BinaryOp, PrimitiveType, usize, usize),
    Compare(ComparisonDirection, ComparisonType, usize, usize),
    Select(usize, usize, usize),
    Clamp(usize, usize, usize),
}

/// A computation of rank-0 elementwise ops.
pub(super) struct ScalarBody {
    steps: Vec<(Step, PrimitiveType)>,
    results: Vec<usize>,
}

impl ScalarBody {
    /// The computation in this form; `None` when it does anything else.
    pub(super) fn new(module: &Module, comp: CompId) -> Option<Self> {
        let computation = &module.comps[comp];
        let mut steps: Vec<(Step, PrimitiveType)> = Vec::new();
        let mut slot: IdMap<InstrId, usize> = IdMap::new();
        let mut results = None;
        for &id in &computation.instrs {
            let instr = &module.instrs[id];
            let operand = |i: usize| slot[instr.operands[i]];
            let operand_type = |i: usize| {
                module
                    .shape(instr.operands[i])
                    .as_array()
                    .map(|shape| shape.ty)
            };
            if matches!(instr.op, Op::Tuple) && id == computation.root {
                results = Some(instr.operands.iter().map(|&o| slot[o]).collect());
                continue;
            }
            let shape = instr.shape.as_array().filter(|shape| shape.rank() == 0)?;
            let step = match &instr.op {
                Op::Parameter { number, .. } => Step::Argument(*number),
                Op::Constant(literal) => Step::Constant(bits::get(literal.as_array()?, 0)),
                Op::Copy => Step::Copy(operand(0)),
                Op::Convert => Step::Copy(operand(0)),
                Op::Unary(op) => Step::Unary(*op, operand_type(0)?, operand(0)),
                Op::Binary(op) => Step::Binary(*op, operand_type(0)?, operand(0), operand(1)),
                Op::Compare { direction, ty } => {
                    Step::Compare(*direction, *ty, operand(0), operand(1))
                }
                Op::Select => Step::Select(operand(0), operand(1), operand(2)),
                Op::Clamp => Step::Clamp(operand(0), operand(1), operand(2)),
                _ => return None,
            };
            slot.set(id, steps.len());
            steps.push((step, shape.ty));
        }
        let results = results.unwrap_or_else(|| vec![slot[computation.root]]);
        Some(Self { steps, results })
    }

    /// The op, when the function is one associative op of its two arguments.
    pub(super) fn monoid(&self) -> Option<BinaryOp> {
        let [
            (Step::Argument(a), _),
            (Step::Argument(b), _),
            (Step::Binary(op, _, x, y), _),
        ] = self.steps.as_slice()
        else {
            return None;
        };
        let both = a != b && x != y && *x < 2 && *y < 2 && self.results == [2];
        both.then_some(*op)
    }

    /// The results for these arguments.
    pub(super) fn call(&self, args: &[Number]) -> Vec<Number> {
        let mut values: Vec<Number> = Vec::with_capacity(self.steps.len());
        for (step, ty) in &self.steps {
            let value = match *step {
                Step::Argument(number) => args[number],
                Step::Constant(value) => value,
                Step::Copy(a) => bits::round_to(*ty, values[a]),
                Step::Unary(op, operand, a) => {
                    rounded(*ty, elementwise::unary_number(op, operand, values[a]))
                }
                Step::Binary(op, operand, a, b) => rounded(
                    *ty,
                    elementwise::binary_number(op, operand, values[a], values[b]),
                ),
                Step::Compare(direction, order, a, b) => Number::Int(i128::from(
                    elementwise::compare_numbers(direction, order, values[a], values[b]),
                )),
                Step::Select(cond, a, b) => {
                    if values[cond] == Number::Int(0) {
                        values[b]
                    } else {
                        values[a]
                    }
                }
                Step::Clamp(low, x, high) => {
                    elementwise::clamp_number(*ty, values[low], values[x], values[high])
                }
            };
            values.push(value);
        }
        self.results.iter().map(|&slot| values[slot]).collect()
    }
}

fn rounded(ty: PrimitiveType, x: Number) -> Number {
    let x = match x {
        Number::Float(v) if ty.is_float() && ty.bit_width() < 32 => {
            Number::Float(f64::from(v as f32))
        }
        other => other,
    };
    bits::round_to(ty, x)
}
