//! Matrix products of any dimension numbers.

use crate::eval::bits;
use crate::eval::complex;
use crate::eval::elementwise;
use crate::eval::movement;
use crate::hlo::DotAlgorithm;
use crate::hlo::DotDims;
use crate::hlo::PrecisionConfig;
use crate::literal::ArrayLiteral;
use crate::literal::number::Number;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::ElementKind;
use crate::shape::PrimitiveType;
use crate::shape::index;

/// An operand as `[batch, free, contracted]` in row-major order.
struct Operand {
    array: ArrayLiteral,
    batch: usize,
    free: usize,
    contracted: usize,
}

fn arrange(x: &ArrayLiteral, batch: &[usize], contracting: &[usize]) -> Operand {
    let dims = &x.shape().dims;
    let free: Dims = (0..dims.len())
        .filter(|d| !batch.contains(d) && !contracting.contains(d))
        .collect();
    let order: Dims = batch
        .iter()
        .chain(&free)
        .chain(contracting)
        .copied()
        .collect();
    let sizes: Dims = order.iter().map(|&d| dims[d]).collect();
    let size = |dims_of: &[usize]| dims_of.iter().map(|&d| dims[d]).product();
    Operand {
        array: movement::transpose(&ArrayShape::new(x.ty(), sizes), x, &order),
        batch: size(batch),
        free: size(&free),
        contracted: size(contracting),
    }
}

/// The type an algorithm reads its operands as, when that loses bits.
fn operand_type(algorithm: DotAlgorithm) -> Option<PrimitiveType> {
    match algorithm {
        DotAlgorithm::Bf16Bf16Bf16 | DotAlgorithm::Bf16Bf16F32 => Some(PrimitiveType::BF16),
        DotAlgorithm::F16F16F16 | DotAlgorithm::F16F16F32 => Some(PrimitiveType::F16),
        _ => None,
    }
}

/// `out[batch, m, n] = sum over k of lhs[batch, m, k] * rhs[batch, n, k]`, summed in f64 (integers
/// exactly) and rounded once.
pub(super) fn dot(
    shape: &ArrayShape,
    lhs: &ArrayLiteral,
    rhs: &ArrayLiteral,
    dims: &DotDims,
    precision: &PrecisionConfig,
) -> ArrayLiteral {
    let narrow = |x: &ArrayLiteral| match operand_type(precision.algorithm) {
        Some(ty) if x.ty() == PrimitiveType::F32 => {
            elementwise::convert(&x.shape().with_type(ty), x)
        }
        _ => x.clone(),
    };
    let a = arrange(&narrow(lhs), &dims.lhs_batch, &dims.lhs_contracting);
    let b = arrange(&narrow(rhs), &dims.rhs_batch, &dims.rhs_contracting);
    let kind = |x: &ArrayLiteral| x.ty().kind();
    if kind(lhs) == ElementKind::Complex || kind(rhs) == ElementKind::Complex {
        complex_product(shape, &a, &b)
    } else if kind(lhs) == ElementKind::Float || kind(rhs) == ElementKind::Float {
        float_product(shape, &a, &b)
    } else {
        int_product(shape, &a, &b)
    }
}

/// Calls `element` with batch, row and column of each result element.
fn each(
    shape: &ArrayShape,
    a: &Operand,
    b: &Operand,
    mut element: impl FnMut(usize, usize) -> Number,
) -> ArrayLiteral {
    debug_assert_eq!(shape.element_count(), a.batch * a.free * b.free);
    bits::build(shape, |i| {
        let (n, m, batch) = (i % b.free, i / b.free % a.free, i / (a.free * b.free));
        element(
            (batch * a.free + m) * a.contracted,
            (batch * b.free + n) * b.contracted,
        )
    })
}

fn float_product(shape: &ArrayShape, a: &Operand, b: &Operand) -> ArrayLiteral {
    let (x, y) = (bits::floats(&a.array), bits::floats(&b.array));
    let k = a.contracted;
    each(shape, a, b, |i, j| {
        let products = x[i..i + k].iter().zip(&y[j..j + k]).map(|(x, y)| x * y);
        // A sum of negative zeros is one; a sum of nothing is the positive zero.
        Number::Float(products.reduce(|sum, product| sum + product).unwrap_or(0.0))
    })
}

fn int_product(shape: &ArrayShape, a: &Operand, b: &Operand) -> ArrayLiteral {
    let ints = |x: &Operand| -> Vec<i128> {
        let int = |n| if let Number::Int(v) = n { v } else { 0 };
        bits::numbers(&x.array).into_iter().map(int).collect()
    };
    let (x, y) = (ints(a), ints(b));
    let k = a.contracted;
    each(shape, a, b, |i, j| {
        let products = x[i..i + k]
            .iter()
            .zip(&y[j..j + k])
            .map(|(x, y)| x.wrapping_mul(*y));
        Number::Int(products.fold(0, i128::wrapping_add))
    })
}

fn complex_product(shape: &ArrayShape, a: &Operand, b: &Operand) -> ArrayLiteral {
    let (x, y) = (bits::pairs(&a.array), bits::pairs(&b.array));
    let k = a.contracted;
    each(shape, a, b, |i, j| {
        let products = x[i..i + k]
            .iter()
            .zip(&y[j..j + k])
            .map(|(&x, &y)| complex::multiply(x, y));
        let (re, im) = products.fold((0.0, 0.0), |s, p| (s.0 + p.0, s.1 + p.1));
        Number::Complex(re, im)
    })
}

/// Ragged dot with the ragged dimension among the left side's free dimensions: rows of group `g`
/// meet the `g`-th right matrix. Where it is contracted, each group has a result of its own; where it
/// is a batch, groups change nothing. `None` for batches of group sizes.
pub(super) fn ragged_dot(
    shape: &ArrayShape,
    inputs: &[&ArrayLiteral],
    dims: &DotDims,
    lhs_ragged: &[usize],
    rhs_group: &[usize],
) -> Option<ArrayLiteral> {
    let [lhs, rhs, sizes] = inputs else {
        return None;
    };
    let &[ragged] = lhs_ragged else { return None };
    if dims.lhs_batch.contains(&ragged) {
        let precision = PrecisionConfig::default();
        return Some(dot(shape, lhs, rhs, dims, &precision));
    }
    if sizes.shape().rank() != 1 {
        return None;
    }
    let sizes: Vec<usize> = bits::floats(sizes)
        .iter()
        .map(|&s| s.max(0.0) as usize)
        .collect();
    let groups = sizes.len();
    let ends: Vec<usize> = sizes
        .iter()
        .scan(0usize, |end, &size| {
            *end = end.saturating_add(size);
            Some(*end)
        })
        .collect();
    let group_of = |row: usize| ends.iter().position(|&end| row < end);
    if dims.lhs_contracting.contains(&ragged) {
        return Some(ragged_contracting(shape, lhs, rhs, dims, ragged, &ends));
    }
    let &[group_dim] = rhs_group else { return None };
    // The product with every group's matrix, and then the row of the right one.
    let mut rhs_dims = dims.clone();
    for list in [&mut rhs_dims.rhs_batch, &mut rhs_dims.rhs_contracting] {
        list.iter_mut()
            .for_each(|d| *d -= usize::from(*d > group_dim));
    }
    let products: Vec<ArrayLiteral> = (0..groups)
        .map(|g| {
            let matrix = movement::take(rhs, group_dim, g);
            dot(shape, lhs, &matrix, &rhs_dims, &PrecisionConfig::default())
        })
        .collect();
    let free: Vec<usize> = (0..lhs.shape().rank())
        .filter(|d| !dims.lhs_batch.contains(d) && !dims.lhs_contracting.contains(d))
        .collect();
    let out_dim = dims.lhs_batch.len() + free.iter().position(|&d| d == ragged)?;
    Some(bits::build(shape, |i| {
        let row = index::multi_index(&shape.dims, i)[out_dim];
        group_of(row).map_or(Number::Float(0.0), |g| bits::get(&products[g], i))
    }))
}

/// The ragged dimension is contracted: the result has a group dimension in front.
fn ragged_contracting(
    shape: &ArrayShape,
    lhs: &ArrayLiteral,
    rhs: &ArrayLiteral,
    dims: &DotDims,
    ragged: usize,
    ends: &[usize],
) -> ArrayLiteral {
    let mut part = shape.clone();
    part.dims.remove(0);
    part.layout = None;
    let mut data = Vec::new();
    for (g, &end) in ends.iter().enumerate() {
        let start = if g == 0 { 0 } else { ends[g - 1] };
        let masked = bits::build(lhs.shape(), |i| {
            let at = index::multi_index(&lhs.shape().dims, i)[ragged];
            if at >= start && at < end {
                bits::get(lhs, i)
            } else {
                Number::Float(0.0)
            }
        });
        let product = dot(&part, &masked, rhs, dims, &PrecisionConfig::default());
        data.extend_from_slice(product.bytes());
    }
    ArrayLiteral::new(shape.clone(), data)
}

/// Block-scaled dot: each operand times its scale, stretched over the blocks.
pub(super) fn scaled_dot(
    shape: &ArrayShape,
    inputs: &[&ArrayLiteral],
    dims: &DotDims,
    precision: &PrecisionConfig,
) -> ArrayLiteral {
    let scaled = |x: &ArrayLiteral, scale: &ArrayLiteral| {
        let wide = ArrayShape::new(PrimitiveType::F32, x.shape().dims.clone());
        if scale.shape().rank() != x.shape().rank() {
            return elementwise::convert(&wide, x);
        }
        let (x_floats, scales) = (bits::floats(x), bits::floats(scale));
        bits::build(&wide, |i| {
            let at = index::multi_index(&wide.dims, i);
            let block: Dims = (0..at.len())
                .map(|d| at[d] * scale.shape().dims[d] / wide.dims[d].max(1))
                .collect();
            let s = index::linear_index(&scale.shape().dims, &block);
            Number::Float(x_floats[i] * scales[s])
        })
    };
    let (lhs, rhs) = (scaled(inputs[0], inputs[2]), scaled(inputs[1], inputs[3]));
    dot(shape, &lhs, &rhs, dims, precision)
}
