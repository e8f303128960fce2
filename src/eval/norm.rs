//! Batch normalization (StableHLO "batch_norm_inference", "batch_norm_training", "batch_norm_grad"),
//! in f64.

use crate::eval::bits;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::literal::number::Number;
use crate::shape::ArrayShape;
use crate::shape::index;

/// The feature of each element.
fn features(shape: &ArrayShape, feature_index: usize) -> Vec<usize> {
    let stride = index::row_major_strides(&shape.dims)[feature_index];
    let size = shape.dims[feature_index];
    (0..shape.element_count())
        .map(|i| i / stride % size)
        .collect()
}

/// For each feature, the sum over its elements.
fn sums(count: usize, feature: &[usize], value: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut sums = vec![0.0; count];
    for (i, &f) in feature.iter().enumerate() {
        sums[f] += value(i);
    }
    sums
}

fn array(shape: &ArrayShape, value: impl Fn(usize) -> f64) -> ArrayLiteral {
    bits::build(shape, |i| Number::Float(value(i)))
}

/// Operands: input, scale, offset, mean, variance.
pub(super) fn inference(
    inputs: &[&ArrayLiteral],
    epsilon: f64,
    feature_index: usize,
) -> ArrayLiteral {
    let values: Vec<Vec<f64>> = inputs.iter().map(|a| bits::floats(a)).collect();
    let feature = features(inputs[0].shape(), feature_index);
    array(inputs[0].shape(), |i| {
        let f = feature[i];
        let centered = values[0][i] - values[3][f];
        centered / (values[4][f] + epsilon).sqrt() * values[1][f] + values[2][f]
    })
}

/// Operands: input, scale, offset. Results: output, mean, variance of the batch.
pub(super) fn training(inputs: &[&ArrayLiteral], epsilon: f64, feature_index: usize) -> Literal {
    let values: Vec<Vec<f64>> = inputs.iter().map(|a| bits::floats(a)).collect();
    let shape = inputs[0].shape();
    let feature = features(shape, feature_index);
    let count = shape.dims[feature_index];
    let per_feature = (shape.element_count() / count.max(1)) as f64;
    let mean: Vec<f64> = sums(count, &feature, |i| values[0][i])
        .iter()
        .map(|s| s / per_feature)
        .collect();
    let squares = sums(count, &feature, |i| {
        (values[0][i] - mean[feature[i]]).powi(2)
    });
    let variance: Vec<f64> = squares.iter().map(|s| s / per_feature).collect();
    let output = array(shape, |i| {
        let f = feature[i];
        let centered = values[0][i] - mean[f];
        centered / (variance[f] + epsilon).sqrt() * values[1][f] + values[2][f]
    });
    let statistic = |v: &[f64]| Literal::Array(array(inputs[1].shape(), |f| v[f]));
    Literal::Tuple(vec![
        Literal::Array(output),
        statistic(&mean),
        statistic(&variance),
    ])
}

/// Operands: input, scale, mean, variance, gradient of the output. Results: gradients of input,
/// scale and offset.
pub(super) fn grad(inputs: &[&ArrayLiteral], epsilon: f64, feature_index: usize) -> Literal {
    let values: Vec<Vec<f64>> = inputs.iter().map(|a| bits::floats(a)).collect();
    let [x, scale, mean, variance, grad] = values.as_slice() else {
        return Literal::Token;
    };
    let shape = inputs[0].shape();
    let feature = features(shape, feature_index);
    let count = shape.dims[feature_index];
    let per_feature = (shape.element_count() / count.max(1)) as f64;
    let deviation = |f: usize| (variance[f] + epsilon).sqrt();
    let centered = |i: usize| x[i] - mean[feature[i]];
    let grad_offset = sums(count, &feature, |i| grad[i]);
    let grad_dot = sums(count, &feature, |i| grad[i] * centered(i));
    let grad_input = array(shape, |i| {
        let f = feature[i];
        let spread = centered(i) * grad_dot[f] / (variance[f] + epsilon);
        scale[f] / deviation(f) / per_feature * (per_feature * grad[i] - grad_offset[f] - spread)
    });
    let grad_scale = array(inputs[1].shape(), |f| grad_dot[f] / deviation(f));
    let grad_offset = array(inputs[1].shape(), |f| grad_offset[f]);
    Literal::Tuple(
        [grad_input, grad_scale, grad_offset]
            .map(Literal::Array)
            .into(),
    )
}
