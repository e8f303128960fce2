//! Convolution of any dimension numbers, windows and groups, summed in f64 (integers exactly).

use smallvec::smallvec;

use crate::eval::bits;
use crate::eval::complex;
use crate::hlo::ConvDims;
use crate::hlo::Window;
use crate::literal::ArrayLiteral;
use crate::literal::number::Number;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::index;

/// Group counts of a convolution.
#[derive(Clone, Copy)]
pub(super) struct Groups {
    pub(super) feature: usize,
    pub(super) batch: usize,
}

/// The position in the input a window element looks at; `None` in padding and dilation gaps.
pub(super) fn window_position(
    window: &Window,
    dim: usize,
    output: usize,
    element: usize,
    size: usize,
) -> Option<usize> {
    let w = &window[dim];
    let element = if w.reversal {
        w.size - 1 - element
    } else {
        element
    };
    let dilated = output as i64 * w.stride + element as i64 * w.window_dilation - w.padding_low;
    if dilated < 0 || dilated % w.base_dilation != 0 {
        return None;
    }
    let at = (dilated / w.base_dilation) as usize;
    (at < size).then_some(at)
}

pub(super) fn convolution(
    shape: &ArrayShape,
    input: &ArrayLiteral,
    kernel: &ArrayLiteral,
    window: &Window,
    dims: &ConvDims,
    groups: Groups,
) -> ArrayLiteral {
    let spatial = window.len();
    let input_dims = &input.shape().dims;
    let kernel_dims = &kernel.shape().dims;
    let in_features = kernel_dims[dims.kernel_input_feature];
    let out_features = kernel_dims[dims.kernel_output_feature];
    let batch_size = input_dims[dims.input_batch] / groups.batch;
    let (x, y) = (bits::numbers(input), bits::numbers(kernel));
    let input_strides = index::row_major_strides(input_dims);
    let kernel_strides = index::row_major_strides(kernel_dims);
    let sizes: Dims = window.iter().map(|w| w.size).collect();
    bits::build(shape, |i| {
        let at = index::multi_index(&shape.dims, i);
        let feature = at[dims.output_feature];
        let feature_group = feature / (out_features / groups.feature).max(1);
        let batch_group = feature / (out_features / groups.batch).max(1);
        let feature_base = if groups.feature > 1 {
            feature_group * in_features
        } else {
            0
        };
        let batch_base = if groups.batch > 1 {
            batch_group * batch_size
        } else {
            0
        };
        let batch = batch_base + at[dims.output_batch];
        let mut sum = Sum::default();
        let mut element: Dims = smallvec![0; spatial];
        let mut more = !sizes.contains(&0);
        while more {
            let position: Option<usize> = (0..spatial)
                .map(|d| {
                    let output = at[dims.output_spatial[d]];
                    let size = input_dims[dims.input_spatial[d]];
                    window_position(window, d, output, element[d], size)
                        .map(|p| p * input_strides[dims.input_spatial[d]])
                })
                .sum();
            if let Some(position) = position {
                let from = position + batch * input_strides[dims.input_batch];
                let weight: usize = feature * kernel_strides[dims.kernel_output_feature]
                    + (0..spatial)
                        .map(|d| element[d] * kernel_strides[dims.kernel_spatial[d]])
                        .sum::<usize>();
                for f in 0..in_features {
                    sum.add(
                        x[from + (feature_base + f) * input_strides[dims.input_feature]],
                        y[weight + f * kernel_strides[dims.kernel_input_feature]],
                    );
                }
            }
            more = index::advance(&sizes, &mut element);
        }
        sum.result(shape)
    })
}

/// A running sum of products.
#[derive(Default)]
struct Sum {
    int: i128,
    float: f64,
    imaginary: f64,
}

impl Sum {
    fn add(&mut self, x: Number, y: Number) {
        match (x, y) {
            (Number::Int(x), Number::Int(y)) => {
                self.int = self.int.wrapping_add(x.wrapping_mul(y));
            }
            (Number::Float(x), Number::Float(y)) => self.float += x * y,
            (Number::Complex(a, b), Number::Complex(c, d)) => {
                let (re, im) = complex::multiply((a, b), (c, d));
                self.float += re;
                self.imaginary += im;
            }
            (Number::Int(x), Number::Float(y)) | (Number::Float(y), Number::Int(x)) => {
                self.float += x as f64 * y;
            }
            (Number::Complex(..), _) | (_, Number::Complex(..)) => self.float = f64::NAN,
        }
    }

    fn result(&self, shape: &ArrayShape) -> Number {
        if shape.ty.is_complex() {
            Number::Complex(self.float, self.imaginary)
        } else if self.int != 0 {
            Number::Int(self.int)
        } else {
            Number::Float(self.float)
        }
    }
}
