//! Reductions and windows inside a loop: one result element from a small loop over its inputs.

use smallvec::SmallVec;

use crate::emit::convert;
use crate::emit::elemental::Elemental;
use crate::emit::elemental::Values;
use crate::emit::elemental::array;
use crate::emit::index::Index;
use crate::emit::inline::accumulates_wide;
use crate::emit::value::Value;
use crate::hlo::CompId;
use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::Window;
use crate::kernel::BinaryOp;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Unroll;
use crate::shape::Dims;
use crate::shape::PrimitiveType;

/// Loops of at most this many steps are written out.
const UNROLLED_STEPS: usize = 8;

/// A fold over operands: what is combined and how.
pub struct Fold<'a> {
    /// The arrays.
    pub inputs: &'a [InstrId],
    /// Their start values.
    pub inits: &'a [InstrId],
    /// The combiner.
    pub body: CompId,
    /// Whether narrow floats are kept in f32.
    pub wide: bool,
    /// Element types of the accumulators as kept.
    pub types: SmallVec<[PrimitiveType; 2]>,
}

impl<'a> Fold<'a> {
    /// The fold of a reduce or reduce-window.
    pub fn new(el: &Elemental<'_>, instr: &'a Instr, body: CompId) -> Self {
        let (inputs, inits) = instr.operands.split_at(instr.operands.len() / 2);
        let wide = inputs.len() == 1 && accumulates_wide(el.module, body, el.ty(inputs[0]));
        let types = inputs
            .iter()
            .map(|&i| {
                if wide {
                    convert::compute_type(el.ty(i))
                } else {
                    el.ty(i)
                }
            })
            .collect();
        Self {
            inputs,
            inits,
            body,
            wide,
            types,
        }
    }

    /// The start values.
    pub fn start(&self, el: &Elemental<'_>, b: &mut KernelBuilder) -> Values {
        let inits = self.inits.iter().zip(&self.types);
        inits
            .map(|(&init, &ty)| {
                let value = el.scalar(b, init);
                convert::convert(b, el.ty(init), ty, value)
            })
            .collect()
    }

    /// The inputs' elements, as they are combined.
    pub fn inputs_at(&self, el: &Elemental<'_>, b: &mut KernelBuilder, index: &Index) -> Values {
        let inputs = self.inputs.iter().zip(&self.types);
        inputs
            .map(|(&input, &ty)| {
                let value = el.value(b, input, index);
                convert::convert(b, el.ty(input), ty, value)
            })
            .collect()
    }

    /// Accumulators combined with values.
    pub fn combine(
        &self,
        el: &Elemental<'_>,
        b: &mut KernelBuilder,
        accumulators: &[Value],
        values: &[Value],
    ) -> Values {
        let args: Vec<Value> = accumulators.iter().chain(values).copied().collect();
        el.call(b, self.body, &args, self.wide)
    }

    /// Accumulators as values of the result's types.
    pub fn finish(&self, el: &Elemental<'_>, b: &mut KernelBuilder, values: &[Value]) -> Values {
        let parts = values.iter().zip(&self.types).zip(self.inputs);
        parts
            .map(|((&value, &ty), &input)| convert::convert(b, ty, el.ty(input), value))
            .collect()
    }

    /// Accumulators as a flat list of registers with that many lanes.
    pub fn pack(b: &mut KernelBuilder, values: &[Value], lanes: u16) -> Vec<ExprId> {
        let mut out = Vec::new();
        for value in values {
            out.extend(value.splat(b, lanes).registers());
        }
        out
    }

    /// The inverse of [`Fold::pack`].
    pub fn unpack(&self, registers: &[ExprId]) -> Values {
        let mut rest = registers;
        let mut out = Values::new();
        for ty in &self.types {
            let (value, tail) = rest.split_at(if ty.is_complex() { 2 } else { 1 });
            out.push(Value::from_registers(value));
            rest = tail;
        }
        out
    }
}

/// Folds over a box of steps: `step` combines the accumulators with what is at an offset.
fn fold_box(
    b: &mut KernelBuilder,
    sizes: &[usize],
    offset: &mut Vec<ExprId>,
    registers: Vec<ExprId>,
    step: &mut dyn FnMut(&mut KernelBuilder, &[ExprId], Vec<ExprId>) -> Vec<ExprId>,
) -> Vec<ExprId> {
    let Some(&size) = sizes.get(offset.len()) else {
        return step(b, offset, registers);
    };
    let small = sizes.iter().product::<usize>() <= UNROLLED_STEPS;
    if small || size == 1 {
        let mut registers = registers;
        for i in 0..size {
            offset.push(b.index(i as i64));
            registers = fold_box(b, sizes, offset, registers, step);
            offset.pop();
        }
        return registers;
    }
    let (start, end, one) = (b.index(0), b.index(size as i64), b.index(1));
    b.for_carried(
        (start, end, one),
        &registers,
        Unroll::Auto,
        |b, var, phis| {
            offset.push(var);
            let next = fold_box(b, sizes, offset, phis.to_vec(), step);
            offset.pop();
            next
        },
    )
}

impl Elemental<'_> {
    /// One element (or run) of a reduce.
    pub fn reduce_element(&self, b: &mut KernelBuilder, instr: &Instr, index: &Index) -> Values {
        let Op::Reduce {
            dims: reduced,
            body,
        } = &instr.op
        else {
            return Values::new();
        };
        let fold = Fold::new(self, instr, *body);
        let full = self.dims(fold.inputs[0]);
        let kept: Dims = (0..full.len()).filter(|d| !reduced.contains(d)).collect();
        let shape = array(&instr.shape);
        let index = index.clone().narrowed(&shape.dims);
        if index.lanes > 1 && index.first != index.last {
            return self.lanes_of_tuple(b, &shape.dims, &index, |el, b, one| {
                el.reduce_element(b, instr, one)
            });
        }
        let lanes = index.lanes;
        let sizes: Vec<usize> = reduced.iter().map(|&d| full[d]).collect();
        let start = fold.start(self, b);
        let registers = Fold::pack(b, &start, lanes);
        let mut step = |b: &mut KernelBuilder, offset: &[ExprId], registers: Vec<ExprId>| {
            self.scope(|| {
                let zero = b.index(0);
                let mut at: SmallVec<[ExprId; 6]> = SmallVec::from_elem(zero, full.len());
                for (i, &d) in kept.iter().enumerate() {
                    at[d] = index.at[i];
                }
                for (i, &d) in reduced.iter().enumerate() {
                    at[d] = offset[i];
                }
                let inner = if lanes > 1 {
                    Index::run(at, lanes, kept[index.first], index.block)
                } else {
                    Index::scalar(at)
                };
                let values = fold.inputs_at(self, b, &inner);
                let sums = fold.combine(self, b, &fold.unpack(&registers), &values);
                Fold::pack(b, &sums, lanes)
            })
        };
        let registers = fold_box(b, &sizes, &mut Vec::new(), registers, &mut step);
        fold.finish(self, b, &fold.unpack(&registers))
    }

    /// Each lane of a value of several parts by itself.
    fn lanes_of_tuple(
        &self,
        b: &mut KernelBuilder,
        dims: &[usize],
        index: &Index,
        element: impl Fn(&Self, &mut KernelBuilder, &Index) -> Values,
    ) -> Values {
        let lanes: Vec<Values> = (0..index.lanes)
            .map(|lane| {
                let one = self.splits.lane(b, dims, index, lane);
                element(self, b, &one)
            })
            .collect();
        (0..lanes[0].len())
            .map(|part| {
                let parts: Vec<Value> = lanes.iter().map(|values| values[part]).collect();
                Value::gather(b, &parts)
            })
            .collect()
    }

    /// One element (or run) of a reduce-window.
    pub fn window_element(&self, b: &mut KernelBuilder, instr: &Instr, index: &Index) -> Values {
        let Op::ReduceWindow { window, body } = &instr.op else {
            return Values::new();
        };
        let fold = Fold::new(self, instr, *body);
        let dims = array(&instr.shape).dims;
        let index = index.clone().narrowed(&dims);
        let along_plain = index.first == index.last
            && window.get(index.first).is_none_or(|w| {
                w.size == 1
                    && w.stride == 1
                    && w.padding_low == 0
                    && w.padding_high == 0
                    && w.base_dilation == 1
            });
        if index.lanes > 1 && !along_plain {
            return self.lanes_of_tuple(b, &dims, &index, |el, b, one| {
                el.window_element(b, instr, one)
            });
        }
        let lanes = index.lanes;
        let sizes: Vec<usize> = window.iter().map(|w| w.size).collect();
        let start = fold.start(self, b);
        let registers = Fold::pack(b, &start, lanes);
        let full = self.dims(fold.inputs[0]);
        let mut step = |b: &mut KernelBuilder, offset: &[ExprId], registers: Vec<ExprId>| {
            let (at, inside) = window_position(b, window, &full, &index.at, offset);
            let mut inner = index.clone();
            inner.at = at;
            inner.linear = None;
            let combined = |b: &mut KernelBuilder| {
                self.scope(|| {
                    let values = fold.inputs_at(self, b, &inner);
                    let sums = fold.combine(self, b, &fold.unpack(&registers), &values);
                    Fold::pack(b, &sums, lanes)
                })
            };
            match inside {
                None => combined(b),
                Some(inside) => b.if_else(inside, combined, |_| registers.clone()),
            }
        };
        let registers = fold_box(b, &sizes, &mut Vec::new(), registers, &mut step);
        fold.finish(self, b, &fold.unpack(&registers))
    }
}

/// Where in the base a window element lies, and whether it lies on one of its elements (absent when
/// it always does).
pub fn window_position(
    b: &mut KernelBuilder,
    window: &Window,
    full: &[usize],
    at: &[ExprId],
    offset: &[ExprId],
) -> (SmallVec<[ExprId; 6]>, Option<ExprId>) {
    let mut out = SmallVec::new();
    let mut inside: Option<ExprId> = None;
    for (d, w) in window.iter().enumerate() {
        let start = b.mul_const(at[d], w.stride);
        let step = if w.reversal {
            let last = b.index(w.size as i64 - 1);
            b.sub(last, offset[d])
        } else {
            offset[d]
        };
        let step = b.mul_const(step, w.window_dilation);
        let sum = b.add(start, step);
        let position = b.add_const(sum, -w.padding_low);
        let mut conditions = Vec::new();
        let zero = b.index(0);
        if w.padding_low > 0 {
            conditions.push(b.cmp(CmpOp::SGe, position, zero));
        }
        if w.padding_high > 0 || w.padding_low < 0 || w.base_dilation > 1 {
            let end = b.index((full[d] as i64 - 1) * w.base_dilation);
            conditions.push(b.cmp(CmpOp::SLe, position, end));
        }
        let mut here = position;
        if w.base_dilation > 1 {
            let dilation = b.index(w.base_dilation);
            let rest = b.binary(BinaryOp::SRem, position, dilation);
            conditions.push(b.cmp(CmpOp::IEq, rest, zero));
            here = b.binary(BinaryOp::SDiv, position, dilation);
        }
        for condition in conditions {
            inside = Some(match inside {
                None => condition,
                Some(all) => b.binary(BinaryOp::And, all, condition),
            });
        }
        out.push(here);
    }
    (out, inside)
}
