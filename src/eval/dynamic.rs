//! Ops on arrays with dynamic dimensions.
//!
//! A value has all elements up to the bounds, and real sizes. Most ops are defined on the array of
//! the real elements: operands are cut to it, the op runs as on any static array, and its results
//! are real up to what `hlo::dynamic` says. Ops that go element by element, or address elements by
//! position, run on everything up to the bounds, so that what lies beyond the real sizes goes along.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::eval::bits;
use crate::eval::interpret::Evaluator;
use crate::eval::interpret::arrays;
use crate::eval::movement;
use crate::eval::reduce;
use crate::hlo::CustomCall;
use crate::hlo::Instr;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::custom_calls;
use crate::hlo::dynamic::Size;
use crate::hlo::dynamic::result_sizes;
use crate::hlo::dynamic::window_size;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::literal::dynamic::fits;
use crate::literal::dynamic::real_shape;
use crate::literal::number::Number;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;
use crate::shape::Shape;
use crate::shape::index;

/// Whether a value of that shape may be given for `shape`: arrays of dynamic dimensions come as
/// static ones of their real sizes.
pub(super) fn takes(shape: &Shape, given: &Shape) -> bool {
    match (shape, given) {
        (Shape::Array(shape), Shape::Array(given)) => {
            shape.ty == given.ty && fits(&given.dims, shape)
        }
        (Shape::Tuple(shapes), Shape::Tuple(given)) => {
            shapes.len() == given.len() && shapes.iter().zip(given).all(|(s, g)| takes(s, g))
        }
        _ => shape.same_ignoring_layout(given),
    }
}

/// The value as the evaluator has it inside, of arrays of their real sizes.
pub(super) fn inside(value: &Literal, shape: &Shape) -> Literal {
    match (value, shape) {
        (Literal::Array(array), Shape::Array(shape)) if shape.is_dynamic() => {
            Literal::Array(array.within(shape, None))
        }
        (Literal::Tuple(parts), Shape::Tuple(shapes)) => {
            let pairs = parts.iter().zip(shapes);
            Literal::Tuple(pairs.map(|(part, shape)| inside(part, shape)).collect())
        }
        _ => value.clone(),
    }
}

/// The value as callers have it: where `shape` is dynamic the real elements, elsewhere all of them.
pub(super) fn outside(value: Literal, shape: &Shape) -> Literal {
    match (value, shape) {
        (Literal::Array(array), Shape::Array(shape)) => Literal::Array(match shape.is_dynamic() {
            true => array.real(),
            false if array.shape().is_dynamic() => array.whole(),
            false => array,
        }),
        (Literal::Tuple(parts), Shape::Tuple(shapes)) => {
            let pairs = parts.into_iter().zip(shapes);
            Literal::Tuple(pairs.map(|(part, shape)| outside(part, shape)).collect())
        }
        (value, _) => value,
    }
}

/// Whether the instruction hands on values as they are, whatever their sizes.
fn is_structure(op: &Op) -> bool {
    matches!(
        op,
        Op::Parameter { .. }
            | Op::Tuple
            | Op::GetTupleElement { .. }
            | Op::OptimizationBarrier
            | Op::AddDependency
            | Op::AfterAll
            | Op::Domain(_)
            | Op::CopyStart { .. }
            | Op::CopyDone
            | Op::Call { .. }
            | Op::Fusion { .. }
            | Op::While { .. }
            | Op::Conditional { .. }
            | Op::AsyncStart { .. }
            | Op::AsyncUpdate
            | Op::AsyncDone
    )
}

/// Whether an array among the operands has dynamic dimensions, or the op is about them.
pub(super) fn concerns(instr: &Instr, operands: &[Literal]) -> bool {
    let is_dynamic = |value: &Literal| value.as_array().is_some_and(|a| a.shape().is_dynamic());
    match &instr.op {
        Op::SetDimensionSize { .. } | Op::GetDimensionSize { .. } | Op::DynamicReshape => true,
        Op::CustomCall(call) if is_conversion(call) => true,
        op => !is_structure(op) && operands.iter().any(is_dynamic),
    }
}

fn is_conversion(call: &CustomCall) -> bool {
    [custom_calls::PAD_TO_STATIC, custom_calls::SLICE_TO_DYNAMIC].contains(&call.target.as_str())
}

/// The instruction with a static result, when it says its result is dynamic and no operand is.
pub(super) fn without_bounds(instr: &Instr) -> Option<Instr> {
    let is_dynamic = |shape: &Shape| shape.as_array().is_some_and(ArrayShape::is_dynamic);
    if is_structure(&instr.op) || !instr.shape.leaves().iter().any(|(_, s)| is_dynamic(s)) {
        return None;
    }
    let mut plain = instr.clone();
    plain.shape.for_each_array_mut(&mut |a| a.dynamic.clear());
    Some(plain)
}

/// One instruction at work.
struct Work<'a> {
    instr: &'a Instr,
    arrays: Vec<&'a ArrayLiteral>,
    /// The arrays of the result: bounds, and what is dynamic.
    shapes: Vec<ArrayShape>,
    /// Their real sizes.
    sizes: Vec<Vec<usize>>,
}

/// Runs the instruction.
pub(super) fn run(
    evaluator: &mut Evaluator<'_>,
    instr: &Instr,
    operands: &[Literal],
) -> Result<Literal> {
    let arrays = arrays(instr, operands)?;
    let operand_shapes: Vec<&ArrayShape> = arrays.iter().map(|a| a.shape()).collect();
    let module = evaluator.module;
    let constant = |i: usize| constant(module, instr, i);
    let formulas = result_sizes(&instr.op, &operand_shapes, &instr.shape, &constant);
    let formulas = formulas.map_err(|why| {
        let message = format!("`{}` {why}", instr.op.opcode());
        Diagnostic::unsupported(codes::EVAL_UNSUPPORTED, message)
    })?;
    let leaves = instr.shape.leaves();
    let leaves = leaves.iter().filter_map(|(_, s)| s.as_array());
    let (mut shapes, mut sizes) = (Vec::new(), Vec::new());
    for (leaf, formulas) in leaves.zip(&formulas) {
        let mut shape = leaf.clone();
        shape.dynamic = formulas.iter().map(|size| !size.is_fixed()).collect();
        if !shape.is_dynamic() {
            shape.dynamic.clear();
        }
        let pairs = formulas.iter().zip(&shape.dims);
        sizes.push(
            pairs
                .map(|(f, &bound)| number(f, &arrays).min(bound))
                .collect(),
        );
        shapes.push(shape);
    }
    let work = Work {
        instr,
        arrays,
        shapes,
        sizes,
    };
    work.run(evaluator)
}

/// The value of an operand that is a constant scalar.
fn constant(module: &Module, instr: &Instr, i: usize) -> Option<i64> {
    match &module.instr(*instr.operands.get(i)?).op {
        Op::Constant(Literal::Array(array)) if array.len() == 1 => match bits::get(array, 0) {
            Number::Int(value) => i64::try_from(value).ok(),
            Number::Float(_) | Number::Complex(..) => None,
        },
        _ => None,
    }
}

/// What a formula comes to.
fn number(size: &Size, arrays: &[&ArrayLiteral]) -> usize {
    let of = |operand: usize, dim: usize| arrays[operand].sizes()[dim] as i64;
    let value = |operand: usize| match bits::get(arrays[operand], 0) {
        Number::Int(value) => value as i64,
        Number::Float(_) | Number::Complex(..) => 0,
    };
    usize::try_from(size.resolve(&of, &value)).unwrap_or(0)
}

impl Work<'_> {
    fn run(&self, evaluator: &mut Evaluator<'_>) -> Result<Literal> {
        let arrays = &self.arrays;
        match &self.instr.op {
            Op::GetDimensionSize { dim } => {
                Ok(Literal::Array(size_scalar(arrays[0].sizes()[*dim])))
            }
            Op::SetDimensionSize { .. } => Ok(self.resized()),
            Op::CustomCall(call) if call.target == custom_calls::SLICE_TO_DYNAMIC => {
                Ok(self.resized())
            }
            Op::CustomCall(call) if call.target == custom_calls::PAD_TO_STATIC => {
                Ok(self.pad_to_static())
            }
            Op::Reshape { .. } | Op::DynamicReshape => Ok(self.reshaped()),
            Op::Binary(_)
            | Op::Compare { .. }
            | Op::Select
            | Op::Clamp
            | Op::StochasticConvert
            | Op::Map { .. } => self.elementwise(evaluator),
            Op::DynamicUpdateSlice if arrays[1].shape().is_dynamic() => Ok(self.update()),
            Op::Scatter { .. } => self.scatter(evaluator),
            Op::Pad { .. }
            | Op::Reverse { .. }
            | Op::Concatenate { .. }
            | Op::Dot { .. }
            | Op::ScaledDot { .. }
            | Op::RaggedDot { .. }
            | Op::Convolution { .. }
            | Op::Reduce { .. }
            | Op::ReduceWindow { .. }
            | Op::SelectAndScatter { .. }
            | Op::BatchNormTraining { .. }
            | Op::BatchNormGrad { .. }
            | Op::Sort { .. }
            | Op::TopK { .. } => self.on_real(evaluator),
            Op::CustomCall(call) if call.target == "TopK" => self.on_real(evaluator),
            _ => {
                let whole = arrays.iter().map(|a| a.whole()).collect();
                self.on_whole(evaluator, whole)
            }
        }
    }

    /// The operand with the sizes of the result.
    fn resized(&self) -> Literal {
        let whole = self.arrays[0].reshaped(self.shapes[0].clone());
        Literal::Array(whole.with_sizes(&self.sizes[0]))
    }

    /// Real elements, zeros beyond, and the sizes.
    fn pad_to_static(&self) -> Literal {
        let real = self.arrays[0].real().within(&self.shapes[0], None);
        let sizes = self.arrays[0].sizes().iter();
        let sizes = sizes.map(|&size| Literal::Array(size_scalar(size)));
        Literal::Tuple([Literal::Array(real)].into_iter().chain(sizes).collect())
    }

    /// The real elements in row-major order.
    fn reshaped(&self) -> Literal {
        let real = self.arrays[0].real();
        let shape = real_shape(&self.shapes[0], &self.sizes[0]);
        let mut bytes = real.bytes().to_vec();
        bytes.resize(shape.element_count() * shape.ty.byte_width(), 0);
        let real = ArrayLiteral::new(shape, bytes);
        Literal::Array(real.within(&self.shapes[0], None))
    }

    /// Runs on these operands, static and of the bounds, and gives the results their sizes.
    fn on_whole(
        &self,
        evaluator: &mut Evaluator<'_>,
        operands: Vec<ArrayLiteral>,
    ) -> Result<Literal> {
        let mut instr = self.instr.clone();
        instr.shape.for_each_array_mut(&mut |a| a.dynamic.clear());
        let operands = operands.into_iter().map(Literal::Array).collect();
        let result = evaluator.instr(&instr, operands, &[])?;
        let sized = |i: usize, array: &ArrayLiteral| {
            array
                .reshaped(self.shapes[i].clone())
                .with_sizes(&self.sizes[i])
        };
        Ok(self.results(result, sized))
    }

    fn results(
        &self,
        result: Literal,
        change: impl Fn(usize, &ArrayLiteral) -> ArrayLiteral,
    ) -> Literal {
        match result {
            Literal::Array(array) => Literal::Array(change(0, &array)),
            Literal::Tuple(parts) => {
                let parts = parts.into_iter().enumerate();
                let changed = parts.map(|(i, part)| match part {
                    Literal::Array(array) if i < self.shapes.len() => {
                        Literal::Array(change(i, &array))
                    }
                    other => other,
                });
                Literal::Tuple(changed.collect())
            }
            Literal::Token => Literal::Token,
        }
    }

    /// An operand whose size is one where others have more is repeated.
    fn elementwise(&self, evaluator: &mut Evaluator<'_>) -> Result<Literal> {
        let rank = self.shapes[0].rank();
        let whole = self.arrays.iter().map(|array| {
            let mut whole = array.whole();
            for d in 0..array.shape().rank() {
                let repeats = array.shape().rank() == rank
                    && array.shape().is_dynamic_dim(d)
                    && array.sizes()[d] == 1
                    && self.sizes[0][d] > 1;
                if repeats {
                    whole = repeated(&whole, d);
                }
            }
            whole
        });
        self.on_whole(evaluator, whole.collect())
    }

    /// The real part of an update, within the operand.
    fn update(&self) -> Literal {
        let (operand, update) = (self.arrays[0].whole(), self.arrays[1].real());
        let dims = &operand.shape().dims;
        let starts = movement::clamped_starts(&self.arrays[2..], dims, &update.shape().dims);
        let result = movement::dynamic_update_slice(&operand, &update, &starts);
        let result = result.reshaped(self.shapes[0].clone());
        Literal::Array(result.with_sizes(&self.sizes[0]))
    }

    /// The real indices with their updates, whose windows are whole.
    fn scatter(&self, evaluator: &mut Evaluator<'_>) -> Result<Literal> {
        let Op::Scatter { dims, .. } = &self.instr.op else {
            return Ok(Literal::Token);
        };
        let count = (self.arrays.len() - 1) / 2;
        let mut wanted: Vec<Vec<usize>> = Vec::new();
        for (i, array) in self.arrays.iter().enumerate() {
            let whole = i < count;
            let dims = if whole {
                &array.shape().dims
            } else {
                array.sizes()
            };
            wanted.push(dims.to_vec());
        }
        let updates = self.arrays[count + 1].shape();
        let scattered = (0..updates.rank()).filter(|d| !dims.update_window_dims.contains(d));
        let batch = (0..self.arrays[count].shape().rank()).filter(|&d| d != dims.index_vector_dim);
        for (u, b) in scattered.zip(batch) {
            let at = |i: usize| if i == count { b } else { u };
            let least = (count..self.arrays.len()).map(|i| wanted[i][at(i)]).min();
            for (i, wanted) in wanted.iter_mut().enumerate().skip(count) {
                wanted[at(i)] = least.unwrap_or(0);
            }
        }
        for (i, wanted) in wanted.iter_mut().enumerate().skip(count + 1) {
            for &d in &dims.update_window_dims {
                wanted[d] = self.arrays[i].shape().dims[d];
            }
        }
        let pairs = self.arrays.iter().zip(&wanted);
        let operands = pairs.map(|(array, wanted)| cut(array, wanted)).collect();
        self.on_whole(evaluator, operands)
    }

    /// Runs on the real elements. What a sort leaves alone beyond them stays in its place.
    fn on_real(&self, evaluator: &mut Evaluator<'_>) -> Result<Literal> {
        let wanted = self.real_operands();
        let pairs = self.arrays.iter().zip(&wanted);
        let operands = pairs.map(|(array, wanted)| Literal::Array(cut(array, wanted)));
        let mut instr = self.instr.clone();
        let mut i = 0;
        instr.shape.for_each_array_mut(&mut |array| {
            *array = real_shape(array, &self.sizes[i]);
            i += 1;
        });
        if let Op::TopK { k, .. } = &mut instr.op {
            *k = self.sizes[0].last().copied().unwrap_or(0);
        }
        let operands: Vec<Literal> = operands.collect();
        let result = match &instr.op {
            // What a reduction may leave uncombined is a matter of the bounds.
            Op::Reduce { dims, body } => {
                let bounds = &self.arrays[0].shape().dims;
                let nothing = dims.iter().all(|&d| bounds[d] == 1);
                reduce::reduce(evaluator, &instr, dims, *body, &operands, nothing)?
            }
            _ => evaluator.instr(&instr, operands, &[])?,
        };
        let keeps = matches!(self.instr.op, Op::Sort { .. });
        let placed = |i: usize, array: &ArrayLiteral| {
            let beyond = keeps.then(|| self.arrays[i]);
            array.within(&self.shapes[i], beyond)
        };
        Ok(self.results(result, placed))
    }

    /// The sizes to which operands are cut: where two must agree, the smaller.
    fn real_operands(&self) -> Vec<Vec<usize>> {
        let mut wanted: Vec<Vec<usize>> = self.arrays.iter().map(|a| a.sizes().to_vec()).collect();
        let mut agree = |a: (usize, usize), b: (usize, usize)| {
            let least = wanted[a.0][a.1].min(wanted[b.0][b.1]);
            wanted[a.0][a.1] = least;
            wanted[b.0][b.1] = least;
        };
        let all_agree = |agree: &mut dyn FnMut((usize, usize), (usize, usize)),
                         count: usize,
                         dims: &[usize]| {
            // Twice, so that the first hears of the last.
            for i in (1..count).chain(1..count) {
                dims.iter().for_each(|&d| agree((0, d), (i, d)));
            }
        };
        let rank = self.arrays[0].shape().rank();
        let every: Vec<usize> = (0..rank).collect();
        match &self.instr.op {
            Op::Reduce { .. } | Op::ReduceWindow { .. } => {
                all_agree(&mut agree, self.arrays.len() / 2, &every);
            }
            Op::Sort { .. } => all_agree(&mut agree, self.arrays.len(), &every),
            Op::Concatenate { dim } => {
                let others: Vec<usize> = every.into_iter().filter(|d| d != dim).collect();
                all_agree(&mut agree, self.arrays.len(), &others);
            }
            Op::Dot { dims, .. } | Op::ScaledDot { dims, .. } | Op::RaggedDot { dims, .. } => {
                let contracting = dims.lhs_contracting.iter().zip(&dims.rhs_contracting);
                let batch = dims.lhs_batch.iter().zip(&dims.rhs_batch);
                contracting
                    .chain(batch)
                    .for_each(|(&l, &r)| agree((0, l), (1, r)));
            }
            Op::Convolution {
                dims,
                feature_group_count: 1,
                batch_group_count: 1,
                ..
            } => agree((0, dims.input_feature), (1, dims.kernel_input_feature)),
            Op::SelectAndScatter { window, .. } => {
                for (d, w) in window.iter().enumerate() {
                    let formula = window_size(self.arrays[0].shape(), d, w);
                    let positions = number(&formula, &self.arrays);
                    wanted[1][d] = positions.min(self.arrays[1].shape().dims[d]);
                }
            }
            Op::BatchNormTraining { feature_index, .. }
            | Op::BatchNormGrad { feature_index, .. } => {
                let features = self.arrays[0].sizes()[*feature_index];
                for wanted in wanted.iter_mut().filter(|w| w.len() == 1) {
                    wanted[0] = features;
                }
                if let Some(grad) = wanted.get(4).cloned().filter(|g| g.len() == rank) {
                    for (d, size) in grad.into_iter().enumerate() {
                        let least = size.min(wanted[0][d]);
                        wanted[0][d] = least;
                        wanted[4][d] = least;
                    }
                }
            }
            _ => {}
        }
        wanted
    }
}

fn size_scalar(size: usize) -> ArrayLiteral {
    bits::scalar(PrimitiveType::S32, Number::Int(size as i128))
}

/// The first elements of each dimension, as a static array.
fn cut(array: &ArrayLiteral, sizes: &[usize]) -> ArrayLiteral {
    let shape = real_shape(array.shape(), sizes);
    if shape.dims == array.shape().dims {
        return array.whole();
    }
    let dims = &array.shape().dims;
    bits::gather_bytes(&shape, array, |i| {
        index::linear_index(dims, &index::multi_index(&shape.dims, i))
    })
}

/// The first elements along a dimension at each position of it.
fn repeated(array: &ArrayLiteral, dim: usize) -> ArrayLiteral {
    let dims = &array.shape().dims;
    bits::gather_bytes(array.shape(), array, |i| {
        let mut at = index::multi_index(dims, i);
        at[dim] = 0;
        index::linear_index(dims, &at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_element_is_repeated() {
        let array = ArrayLiteral::new(ArrayShape::new(PrimitiveType::U8, [2, 2]), vec![1, 2, 3, 4]);
        assert_eq!(repeated(&array, 0).bytes(), [1, 2, 1, 2]);
        assert_eq!(repeated(&array, 1).bytes(), [1, 1, 3, 3]);
        assert_eq!(cut(&array, &[2, 1]).bytes(), [1, 3]);
    }
}
