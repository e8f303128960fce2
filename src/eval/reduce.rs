//! Reduce, map and scan.

use smallvec::smallvec;

use crate::base::Result;
use crate::eval::bits;
use crate::eval::elementwise;
use crate::eval::interpret::Evaluator;
use crate::eval::interpret::arrays;
use crate::eval::interpret::unsupported;
use crate::eval::movement;
use crate::eval::scalar_body::ScalarBody;
use crate::hlo::BinaryOp;
use crate::hlo::CompId;
use crate::hlo::Instr;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::literal::number::Number;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::shape::Shape;
use crate::shape::index;

/// Combines accumulators with elements by a reducer computation, whose parameters say in which types.
pub(super) struct Reducer {
    body: CompId,
    scalar: Option<ScalarBody>,
    /// The op of a float reducer that is one sum or product: accumulated in f64, rounded at the end.
    wide: Option<BinaryOp>,
    /// Of the accumulators.
    types: Vec<PrimitiveType>,
    /// Of the elements.
    element_types: Vec<PrimitiveType>,
}

impl Reducer {
    pub(super) fn new(evaluator: &Evaluator<'_>, body: CompId) -> Self {
        let module = evaluator.module;
        let params = module.comps[body].params.iter();
        let mut types: Vec<PrimitiveType> = params
            .filter_map(|&p| module.shape(p).as_array())
            .map(|array| array.ty)
            .collect();
        let element_types = types.split_off(types.len() / 2);
        let scalar = evaluator.scalar_body(body);
        let wide = scalar
            .as_ref()
            .and_then(ScalarBody::monoid)
            .filter(|op| matches!(op, BinaryOp::Add | BinaryOp::Multiply))
            .filter(|_| types.iter().all(|ty| ty.is_float()) && types == element_types);
        Self {
            body,
            scalar,
            wide,
            types,
            element_types,
        }
    }

    /// The accumulators before anything is combined.
    pub(super) fn start(&self, inits: &[&ArrayLiteral]) -> Vec<Number> {
        self.start_at(inits, 0)
    }

    /// Accumulators that begin as the elements at a place.
    pub(super) fn start_at(&self, arrays: &[&ArrayLiteral], at: usize) -> Vec<Number> {
        rounded(arrays, at, &self.types)
    }

    /// The elements at a place.
    pub(super) fn elements(&self, inputs: &[&ArrayLiteral], at: usize) -> Vec<Number> {
        rounded(inputs, at, &self.element_types)
    }

    pub(super) fn combine(
        &self,
        evaluator: &mut Evaluator<'_>,
        accumulators: &mut Vec<Number>,
        elements: &[Number],
    ) -> Result<()> {
        if let Some(op) = self.wide {
            accumulators[0] =
                elementwise::binary_number(op, self.types[0], accumulators[0], elements[0]);
            return Ok(());
        }
        let args: Vec<Number> = accumulators.iter().chain(elements).copied().collect();
        *accumulators = match &self.scalar {
            Some(body) => body.call(&args),
            None => {
                let types = self.types.iter().chain(&self.element_types).copied();
                let args: Vec<_> = types.zip(args).collect();
                evaluator.call_scalars(self.body, &args)?
            }
        };
        Ok(())
    }
}

/// One element of each array, in these types.
fn rounded(arrays: &[&ArrayLiteral], at: usize, types: &[PrimitiveType]) -> Vec<Number> {
    let pairs = arrays.iter().zip(types);
    pairs
        .map(|(array, &ty)| {
            let value = bits::get(array, at);
            if array.ty() == ty {
                value
            } else {
                bits::round_to(ty, value)
            }
        })
        .collect()
}

/// The shape of each array of an array or a tuple of arrays.
pub(super) fn result_shapes(instr: &Instr) -> Result<Vec<&ArrayShape>> {
    let leaf = |s: &Shape| s.as_array().is_some();
    match &instr.shape {
        Shape::Array(array) => Ok(vec![array]),
        Shape::Tuple(parts) if parts.iter().all(leaf) => {
            Ok(parts.iter().filter_map(Shape::as_array).collect())
        }
        Shape::Tuple(_) | Shape::Token | Shape::Opaque => {
            Err(unsupported(instr, "this result shape"))
        }
    }
}

/// One array, or a tuple of several.
fn pack(instr: &Instr, mut arrays: Vec<ArrayLiteral>) -> Literal {
    if instr.shape.is_tuple() {
        Literal::Tuple(arrays.into_iter().map(Literal::Array).collect())
    } else {
        Literal::Array(arrays.remove(0))
    }
}

/// One array, or a tuple of several, of these elements each.
pub(super) fn pack_numbers(
    instr: &Instr,
    shapes: &[&ArrayShape],
    elements: &[Vec<Number>],
) -> Literal {
    let arrays = shapes
        .iter()
        .zip(elements)
        .map(|(shape, values)| bits::build(shape, |i| values[i]));
    pack(instr, arrays.collect())
}

/// As in XLA, a reduction whose dimensions leave nothing to combine is a reshape, whatever the initial
/// value.
pub(super) fn reduce(
    evaluator: &mut Evaluator<'_>,
    instr: &Instr,
    dims: &[usize],
    body: CompId,
    operands: &[Literal],
    may_combine_nothing: bool,
) -> Result<Literal> {
    let arrays = arrays(instr, operands)?;
    let (inputs, inits) = arrays.split_at(arrays.len() / 2);
    let shapes = result_shapes(instr)?;
    let reducer = Reducer::new(evaluator, body);
    if may_combine_nothing && inputs[0].len() == shapes[0].element_count() && !inputs[0].is_empty()
    {
        let parts = inputs.iter().zip(&shapes).enumerate();
        let same = parts.map(|(n, (a, shape))| {
            if a.ty() == shape.ty && a.ty() == reducer.element_types[n] {
                return a.reshaped((*shape).clone());
            }
            bits::build(shape, |i| reducer.elements(inputs, i)[n])
        });
        return Ok(pack(instr, same.collect()));
    }
    let input_dims = &inputs[0].shape().dims;
    let strides = index::row_major_strides(input_dims);
    let kept: Dims = (0..input_dims.len())
        .filter(|d| !dims.contains(d))
        .collect();
    let reduced_sizes: Dims = dims.iter().map(|&d| input_dims[d]).collect();
    let count = shapes[0].element_count();
    let mut results: Vec<Vec<Number>> = vec![Vec::with_capacity(count); shapes.len()];
    for i in 0..count {
        let at = index::multi_index(&shapes[0].dims, i);
        let base: usize = kept.iter().zip(&at).map(|(&d, &i)| i * strides[d]).sum();
        let mut accumulators = reducer.start(inits);
        let mut inner: Dims = smallvec![0; dims.len()];
        let mut more = !reduced_sizes.contains(&0);
        while more {
            let from = base
                + dims
                    .iter()
                    .zip(&inner)
                    .map(|(&d, &i)| i * strides[d])
                    .sum::<usize>();
            let elements = reducer.elements(inputs, from);
            reducer.combine(evaluator, &mut accumulators, &elements)?;
            more = index::advance(&reduced_sizes, &mut inner);
        }
        for (result, value) in results.iter_mut().zip(accumulators) {
            result.push(value);
        }
    }
    Ok(pack_numbers(instr, &shapes, &results))
}

pub(super) fn map(
    evaluator: &mut Evaluator<'_>,
    instr: &Instr,
    body: CompId,
    operands: &[Literal],
) -> Result<Literal> {
    let arrays = arrays(instr, operands)?;
    let shape = result_shapes(instr)?[0];
    let scalar = evaluator.scalar_body(body);
    let mut values = Vec::with_capacity(shape.element_count());
    for i in 0..shape.element_count() {
        let args: Vec<Number> = arrays.iter().map(|a| bits::get(a, i)).collect();
        let result = match &scalar {
            Some(body) => body.call(&args),
            None => {
                let args: Vec<_> = arrays.iter().map(|a| a.ty()).zip(args).collect();
                evaluator.call_scalars(body, &args)?
            }
        };
        values.push(result[0]);
    }
    Ok(Literal::Array(bits::build(shape, |i| values[i])))
}

/// Runs the body once for each position of `dim`: slices and carries in, slices and carries out.
pub(super) fn scan(
    evaluator: &mut Evaluator<'_>,
    instr: &Instr,
    dim: usize,
    body: CompId,
    num_carries: usize,
    is_reverse: bool,
    operands: &[Literal],
) -> Result<Literal> {
    let (inputs, inits) = operands.split_at(operands.len() - num_carries);
    let inputs = arrays(instr, inputs)?;
    let shapes = result_shapes(instr)?;
    let stacked = &shapes[..shapes.len() - num_carries];
    let steps = inputs.first().map(|a| a.shape().dims[dim]);
    let steps = steps
        .or_else(|| stacked.first().map(|s| s.dims[dim]))
        .unwrap_or(0);
    let mut carries = inits.to_vec();
    let mut slices: Vec<Vec<ArrayLiteral>> = vec![Vec::new(); stacked.len()];
    for step in 0..steps {
        let at = if is_reverse { steps - 1 - step } else { step };
        let mut args: Vec<Literal> = inputs
            .iter()
            .map(|a| Literal::Array(movement::take(a, dim, at)))
            .collect();
        args.append(&mut carries);
        let result = evaluator.call(body, &args)?;
        let parts = match result {
            Literal::Tuple(parts) => parts,
            single => vec![single],
        };
        for (slot, part) in slices.iter_mut().zip(&parts) {
            slot.extend(part.as_array().cloned());
        }
        carries = parts[stacked.len()..].to_vec();
    }
    let mut values: Vec<Literal> = stacked
        .iter()
        .zip(slices)
        .map(|(shape, mut slices)| {
            if is_reverse {
                slices.reverse();
            }
            Literal::Array(stack(shape, dim, &slices))
        })
        .collect();
    values.append(&mut carries);
    Ok(if instr.shape.is_tuple() {
        Literal::Tuple(values)
    } else {
        values.remove(0)
    })
}

fn stack(shape: &ArrayShape, dim: usize, slices: &[ArrayLiteral]) -> ArrayLiteral {
    bits::build(shape, |i| {
        let mut at = index::multi_index(&shape.dims, i);
        let which = at.remove(dim);
        let slice = &slices[which];
        bits::get(slice, index::linear_index(&slice.shape().dims, &at))
    })
}
