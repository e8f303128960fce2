//! Values known before the program runs: sizes, and integers computed from them.
//!
//! Sizes of dynamic ops are small arrays of integers, computed from constants and the sizes of
//! arrays. They are evaluated when an op asks for them, never otherwise, so that modules without
//! such ops stay as they are written.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::hlo::BinaryOp;
use crate::hlo::ComparisonDirection;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::UnaryOp;
use crate::literal::Literal;
use crate::literal::Number;
use crate::literal::number;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::shape::index;

/// The most elements a known array has.
const MAX_ELEMENTS: usize = 4096;

/// How many steps one question may take, and how deep they may go.
const MAX_STEPS: usize = 1 << 16;
const MAX_DEPTH: usize = 200;

/// A known array of integers or truth values, in row-major order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ints {
    /// Element type.
    pub ty: PrimitiveType,
    /// Sizes.
    pub dims: Dims,
    /// The numbers.
    pub values: Vec<i128>,
}

/// Values by instruction; nothing for those that are not known.
type Memo = BTreeMap<InstrId, Option<Rc<Ints>>>;

/// What is known of the instructions of a module.
#[derive(Debug, Default)]
pub struct Facts {
    memo: Memo,
}

impl Facts {
    /// Says what a parameter is.
    pub fn set(&mut self, id: InstrId, value: Ints) {
        self.memo.insert(id, Some(Rc::new(value)));
    }
    /// The value of an instruction, when it can be known.
    pub fn value(&mut self, module: &Module, id: InstrId) -> Option<Rc<Ints>> {
        let mut steps = MAX_STEPS;
        let mut frame = Frame {
            module,
            memo: &mut self.memo,
            arguments: None,
            depth: 0,
        };
        frame.value(id, &mut steps)
    }
}

/// The evaluation of one computation.
struct Frame<'a> {
    module: &'a Module,
    memo: &'a mut Memo,
    /// The values of the parameters of a computation that is called.
    arguments: Option<&'a [Option<Rc<Ints>>]>,
    depth: usize,
}

impl Frame<'_> {
    fn value(&mut self, id: InstrId, steps: &mut usize) -> Option<Rc<Ints>> {
        if let Some(known) = self.memo.get(&id) {
            return known.clone();
        }
        if self.depth > MAX_DEPTH || *steps == 0 {
            return None;
        }
        *steps -= 1;
        self.depth += 1;
        let value = self.compute(id, steps).map(Rc::new);
        self.depth -= 1;
        self.memo.insert(id, value.clone());
        value
    }

    fn compute(&mut self, id: InstrId, steps: &mut usize) -> Option<Ints> {
        let instr = &self.module.instrs[id];
        match (&instr.op, &*instr.operands) {
            (Op::GetTupleElement { index }, [tuple]) => {
                return self.element(*tuple, *index, steps);
            }
            (Op::Call { body, .. }, operands) => {
                let root = self.module.comps[*body].root;
                let known = self.call(*body, operands, root, steps)?;
                return Some((*known).clone());
            }
            _ => {}
        }
        let array = instr.shape.as_array()?;
        let integers = array.ty.is_integer() || array.ty == PrimitiveType::Pred;
        if !integers || array.is_dynamic() || array.element_count() > MAX_ELEMENTS {
            return None;
        }
        match &instr.op {
            Op::Parameter { number, .. } => {
                let argument = self.arguments?.get(*number)?.as_ref()?;
                return Some((**argument).clone());
            }
            Op::Constant(Literal::Array(literal)) => {
                let width = literal.ty().byte_width();
                let numbers = literal.bytes().chunks_exact(width);
                let values = numbers.map(|bytes| match number::decode(literal.ty(), bytes) {
                    Number::Int(value) => Some(value),
                    Number::Float(_) | Number::Complex(..) => None,
                });
                return Some(of(array, values.collect::<Option<Vec<i128>>>()?));
            }
            Op::Iota { dim } => {
                let mut values = Vec::with_capacity(array.element_count());
                index::for_each_index(&array.dims, |at| {
                    values.push(number::wrap(array.ty, at[*dim] as i128));
                });
                return Some(of(array, values));
            }
            Op::GetDimensionSize { dim } => {
                let operand = self.module.shape(*instr.operands.first()?).as_array()?;
                let size = (!operand.is_dynamic_dim(*dim)).then(|| operand.dims[*dim])?;
                return Some(of(array, vec![size as i128]));
            }
            _ => {}
        }
        let operands: Option<Vec<Rc<Ints>>> = instr
            .operands
            .iter()
            .map(|&o| self.value(o, steps))
            .collect();
        let operands = operands?;
        apply(&instr.op, array, &operands)
    }

    /// An element of the tuple that an instruction gives.
    fn element(&mut self, tuple: InstrId, index: usize, steps: &mut usize) -> Option<Ints> {
        let instr = &self.module.instrs[tuple];
        let known = match (&instr.op, &*instr.operands) {
            (Op::Tuple, operands) => self.value(*operands.get(index)?, steps)?,
            (Op::OptimizationBarrier, &[inner]) => return self.element(inner, index, steps),
            (Op::Call { body, .. }, operands) => {
                let root = &self.module.instrs[self.module.comps[*body].root];
                let element = match root.op {
                    Op::Tuple => *root.operands.get(index)?,
                    _ => return None,
                };
                self.call(*body, operands, element, steps)?
            }
            _ => return None,
        };
        Some((*known).clone())
    }

    /// What an instruction of a called computation is for these operands.
    fn call(
        &mut self,
        body: crate::hlo::CompId,
        operands: &[InstrId],
        wanted: InstrId,
        steps: &mut usize,
    ) -> Option<Rc<Ints>> {
        if self.module.instrs[wanted].parent != body {
            return None;
        }
        let arguments: Vec<Option<Rc<Ints>>> =
            operands.iter().map(|&o| self.value(o, steps)).collect();
        let mut inner = Frame {
            module: self.module,
            memo: &mut Memo::new(),
            arguments: Some(&arguments),
            depth: self.depth + 1,
        };
        inner.value(wanted, steps)
    }
}

fn of(array: &ArrayShape, values: Vec<i128>) -> Ints {
    Ints {
        ty: array.ty,
        dims: array.dims.clone(),
        values,
    }
}

/// The result of an op, of the sizes and type of `array`, whose operands are known.
fn apply(op: &Op, array: &ArrayShape, operands: &[Rc<Ints>]) -> Option<Ints> {
    let ty = array.ty;
    let values: Vec<i128> = match (op, operands) {
        (Op::Copy | Op::Bitcast | Op::Reshape { .. } | Op::OptimizationBarrier, [x]) => {
            (x.values.len() == array.element_count() && x.ty == ty).then(|| x.values.clone())?
        }
        (Op::Convert, [x]) => {
            let convert = |&v: &i128| match ty {
                PrimitiveType::Pred => i128::from(v != 0),
                _ => number::wrap(ty, v),
            };
            x.values.iter().map(convert).collect()
        }
        (Op::Unary(op), [x]) => {
            let values = x.values.iter().map(|&v| unary(*op, ty, v));
            values.collect::<Option<_>>()?
        }
        (Op::Binary(op), [x, y]) => {
            let pairs = x.values.iter().zip(&y.values);
            let values = pairs.map(|(&a, &b)| binary(*op, ty, a, b));
            values.collect::<Option<_>>()?
        }
        (Op::Compare { direction, .. }, [x, y]) => {
            let pairs = x.values.iter().zip(&y.values);
            pairs
                .map(|(a, b)| i128::from(holds(*direction, a, b)))
                .collect()
        }
        (Op::Select, [p, x, y]) => {
            let at = |v: &Ints, i: usize| v.values.get(i % v.values.len().max(1)).copied();
            let one = |i| if at(p, i)? != 0 { at(x, i) } else { at(y, i) };
            (0..array.element_count()).map(one).collect::<Option<_>>()?
        }
        (Op::Clamp, [low, x, high]) => {
            let at = |v: &Ints, i: usize| v.values.get(i % v.values.len().max(1)).copied();
            let one = |i| Some(at(x, i)?.max(at(low, i)?).min(at(high, i)?));
            (0..array.element_count()).map(one).collect::<Option<_>>()?
        }
        (Op::Concatenate { dim }, parts) => joined(array, *dim, parts)?,
        (Op::Broadcast { dims }, [x]) => gathered(array, x, |at, from| {
            for (d, &out) in dims.iter().enumerate() {
                from[d] = at[out];
            }
        })?,
        (Op::Slice { dims }, [x]) => gathered(array, x, |at, from| {
            for (d, slice) in dims.iter().enumerate() {
                from[d] = slice.start + at[d] * slice.stride;
            }
        })?,
        (Op::Transpose { dims }, [x]) => gathered(array, x, |at, from| {
            for (out, &d) in dims.iter().enumerate() {
                from[d] = at[out];
            }
        })?,
        (Op::Reverse { dims }, [x]) => gathered(array, x, |at, from| {
            from.copy_from_slice(at);
            for &d in dims {
                from[d] = array.dims[d] - 1 - at[d];
            }
        })?,
        _ => return None,
    };
    (values.len() == array.element_count()).then(|| of(array, values))
}

/// The elements of arrays that are joined along a dimension.
fn joined(array: &ArrayShape, dim: usize, parts: &[Rc<Ints>]) -> Option<Vec<i128>> {
    let outer: usize = array.dims.get(..dim)?.iter().product();
    let inner: usize = array.dims.get(dim + 1..)?.iter().product();
    let mut values = Vec::with_capacity(array.element_count());
    for row in 0..outer {
        for part in parts {
            let run = part.dims.get(dim)? * inner;
            values.extend_from_slice(part.values.get(row * run..(row + 1) * run)?);
        }
    }
    Some(values)
}

/// Every element of the result from the place in `x` that `place` fills in.
fn gathered(
    array: &ArrayShape,
    x: &Ints,
    place: impl Fn(&[usize], &mut [usize]),
) -> Option<Vec<i128>> {
    let mut values = Some(Vec::with_capacity(array.element_count()));
    let mut from: Dims = smallvec::smallvec![0; x.dims.len()];
    index::for_each_index(&array.dims, |at| {
        place(at, &mut from);
        let value = x.values.get(index::linear_index(&x.dims, &from)).copied();
        if let (Some(list), Some(value)) = (&mut values, value) {
            list.push(value);
        } else {
            values = None;
        }
    });
    values
}

fn holds(direction: ComparisonDirection, a: &i128, b: &i128) -> bool {
    match direction {
        ComparisonDirection::Eq => a == b,
        ComparisonDirection::Ne => a != b,
        ComparisonDirection::Ge => a >= b,
        ComparisonDirection::Gt => a > b,
        ComparisonDirection::Le => a <= b,
        ComparisonDirection::Lt => a < b,
    }
}

fn unary(op: UnaryOp, ty: PrimitiveType, v: i128) -> Option<i128> {
    let value = match op {
        UnaryOp::Abs => v.abs(),
        UnaryOp::Negate => -v,
        UnaryOp::Sign => v.signum(),
        UnaryOp::Not if ty == PrimitiveType::Pred => 1 - v,
        UnaryOp::Not => !v,
        _ => return None,
    };
    Some(number::wrap(ty, value))
}

fn binary(op: BinaryOp, ty: PrimitiveType, a: i128, b: i128) -> Option<i128> {
    if ty == PrimitiveType::Pred {
        return Some(match op {
            BinaryOp::And | BinaryOp::Multiply | BinaryOp::Minimum => a & b,
            BinaryOp::Or | BinaryOp::Add | BinaryOp::Maximum => a | b,
            BinaryOp::Xor => a ^ b,
            _ => return None,
        });
    }
    let width = ty.bit_width() as i128;
    let shifts = (0..width).contains(&b);
    let value = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Subtract => a - b,
        BinaryOp::Multiply => a.wrapping_mul(b),
        BinaryOp::Divide if b == 0 => -1,
        BinaryOp::Divide => a / b,
        BinaryOp::Remainder if b == 0 => a,
        BinaryOp::Remainder => a % b,
        BinaryOp::Maximum => a.max(b),
        BinaryOp::Minimum => a.min(b),
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::ShiftLeft if shifts => a << b.min(63),
        BinaryOp::ShiftRightArithmetic if shifts => a >> b,
        BinaryOp::ShiftRightLogical if shifts && a >= 0 => a >> b,
        _ => return None,
    };
    Some(number::wrap(ty, value))
}
