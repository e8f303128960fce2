//! Convolutions that a bundle leaves to the runtime's library.
//!
//! Operands are packed so that channels lie innermost; each output position sums over the window,
//! the inner loop running along the output channels. f16 and bf16 go through f32, s8 through s32.

use std::sync::Mutex;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::executable::ConvWindowDim;
use crate::executable::ConvolutionThunk;
use crate::runtime::cpu::array::Element;
use crate::runtime::cpu::array::gather;
use crate::runtime::cpu::array::scatter;
use crate::runtime::cpu::dot::Number;
use crate::runtime::cpu::dot::gather_real;
use crate::runtime::cpu::dot::integer;
use crate::runtime::cpu::dot::store_real;
use crate::runtime::cpu::pool::Pool;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::shape::index::linear_index;
use crate::shape::index::multi_index;

/// Whether the library convolves this type.
///
/// # Errors
/// `XA8003` when it does not.
pub fn check_types(thunk: &ConvolutionThunk) -> Result<()> {
    use PrimitiveType as P;
    let (from, to) = (thunk.input.shape.ty, thunk.output.shape.ty);
    match (from, to) {
        (P::F64 | P::F32 | P::F16 | P::BF16, _) if from == to => Ok(()),
        (P::S8, P::S32) => Ok(()),
        _ => Err(Diagnostic::unsupported(
            codes::LOAD,
            format!("a `convolution` of {from} to {to} left to the runtime's library"),
        )),
    }
}

/// Convolves.
///
/// # Errors
/// `XA8003` for element types the library lacks.
pub fn run(
    thunk: &ConvolutionThunk,
    input: &[u8],
    kernel: &[u8],
    output: &mut [u8],
    pool: &Pool,
) -> Result<()> {
    check_types(thunk)?;
    let order = |first: &[i64], spatial: &[i64], last: &[i64]| -> Dims {
        let all = first.iter().chain(spatial).chain(last);
        all.filter_map(|&d| usize::try_from(d).ok()).collect()
    };
    let input_order = order(
        &[thunk.input_batch],
        &thunk.input_spatial,
        &[thunk.input_feature],
    );
    let kernel_order = order(
        &[],
        &thunk.kernel_spatial,
        &[thunk.kernel_input_feature, thunk.kernel_output_feature],
    );
    let output_order = order(
        &[thunk.output_batch],
        &thunk.output_spatial,
        &[thunk.output_feature],
    );
    let sizes = |dims: &Dims, order: &Dims| -> Dims { order.iter().map(|&d| dims[d]).collect() };
    let plan = Plan {
        input: sizes(&thunk.input.shape.dims, &input_order),
        kernel: sizes(&thunk.kernel.shape.dims, &kernel_order),
        output: sizes(&thunk.output.shape.dims, &output_order),
        window: &thunk.window,
        groups: usize::try_from(thunk.feature_group_count).unwrap_or(1),
    };
    let shapes = [&thunk.input.shape, &thunk.kernel.shape];
    let shape = &thunk.output.shape;
    let (from, width) = (shapes[0].ty, shape.ty.byte_width());
    match shape.ty {
        PrimitiveType::F64 => {
            let x = gather(input, width, shapes[0], &input_order, f64::load);
            let w = gather(kernel, width, shapes[1], &kernel_order, f64::load);
            let y = plan.convolve(&x, &w, pool)?;
            scatter(&y, output, width, shape, &output_order, f64::store);
        }
        PrimitiveType::S32 => {
            let x = gather(input, 1, shapes[0], &input_order, |b| integer(from, b));
            let w = gather(kernel, 1, shapes[1], &kernel_order, |b| integer(from, b));
            let y = plan.convolve(&x, &w, pool)?;
            scatter(&y, output, width, shape, &output_order, i32::store);
        }
        _ => {
            let x = gather_real(input, shapes[0], &input_order);
            let w = gather_real(kernel, shapes[1], &kernel_order);
            let y = plan.convolve(&x, &w, pool)?;
            scatter(&y, output, width, shape, &output_order, |v, b| {
                store_real(shape.ty, v, b)
            });
        }
    }
    Ok(())
}

struct Plan<'a> {
    /// `[batch, spatial..., features]`
    input: Dims,
    /// `[spatial..., features of a group, output features]`
    kernel: Dims,
    /// `[batch, spatial..., output features]`
    output: Dims,
    window: &'a [ConvWindowDim],
    groups: usize,
}

impl Plan<'_> {
    fn convolve<T: Number>(&self, x: &[T], w: &[T], pool: &Pool) -> Result<Vec<T>> {
        let mut y = vec![T::default(); self.output.iter().product()];
        let features = self.output.last().copied().unwrap_or(1);
        if y.is_empty() || x.is_empty() || w.is_empty() {
            return Ok(y);
        }
        let positions = y.len() / features;
        let per_task = positions.div_ceil(pool.threads() * 8);
        let tasks: Vec<_> = y.chunks_mut(per_task * features).map(Mutex::new).collect();
        let rank = self.output.len() - 1;
        pool.run(tasks.len() as u64, &|task| {
            let mut rows = tasks[task as usize]
                .lock()
                .unwrap_or_else(|e| e.into_inner());
            for (i, row) in rows.chunks_exact_mut(features).enumerate() {
                let position = multi_index(&self.output[..rank], task as usize * per_task + i);
                self.one(x, w, &position, row);
            }
        })?;
        Ok(y)
    }

    /// All output features of one position: batch, then spatial.
    fn one<T: Number>(&self, x: &[T], w: &[T], position: &[usize], row: &mut [T]) {
        let rank = self.window.len();
        let (per_group, features) = (self.kernel[rank], self.kernel[rank + 1]);
        let of_group = features / self.groups;
        let mut source: Dims = smallvec::smallvec![position[0]; rank + 1];
        let window_dims = &self.kernel[..rank];
        for tap in 0..window_dims.iter().product() {
            let offset = multi_index(window_dims, tap);
            let inside = (0..rank).all(|d| {
                let at = self.source(d, position[d + 1], offset[d]);
                source[d + 1] = at.unwrap_or(0);
                at.is_some()
            });
            if !inside {
                continue;
            }
            let x_row = linear_index(&self.input[..rank + 1], &source) * self.input[rank + 1];
            for (group, sums) in row.chunks_exact_mut(of_group).enumerate() {
                for channel in 0..per_group {
                    let factor = x[x_row + group * per_group + channel];
                    let w_row = (tap * per_group + channel) * features + group * of_group;
                    for (sum, weight) in sums.iter_mut().zip(&w[w_row..w_row + of_group]) {
                        *sum = sum.multiply_add(factor, *weight);
                    }
                }
            }
        }
    }

    /// The input position under a window offset, when there is an element.
    fn source(&self, d: usize, position: usize, offset: usize) -> Option<usize> {
        let window = &self.window[d];
        let offset = if window.reversal {
            self.kernel[d] - 1 - offset
        } else {
            offset
        };
        let at = position as i64 * window.stride + offset as i64 * window.window_dilation
            - window.padding_low;
        if at < 0 || at % window.base_dilation != 0 {
            return None;
        }
        let at = usize::try_from(at / window.base_dilation).ok()?;
        (at < self.input[d + 1]).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Id;
    use crate::executable::AllocId;
    use crate::executable::ShapedSlice;
    use crate::executable::Slice;
    use crate::shape::ArrayShape;
    use crate::shape::Layout;

    fn shaped(dims: &[usize]) -> ShapedSlice {
        let mut shape = ArrayShape::new(PrimitiveType::F32, dims.iter().copied());
        shape.layout = Some(Layout::row_major(dims.len()));
        let size = shape.byte_size() as u64;
        let slice = Slice {
            alloc: AllocId::from_index(0),
            offset: 0,
            size,
        };
        ShapedSlice { slice, shape }
    }

    fn bytes(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    /// One spatial dimension, `[batch, space, feature]`, two groups.
    #[test]
    fn groups_padding_stride_and_reversal() {
        let mut thunk = ConvolutionThunk {
            input_batch: 0,
            input_feature: 2,
            input_spatial: vec![1],
            kernel_input_feature: 1,
            kernel_output_feature: 2,
            kernel_spatial: vec![0],
            output_batch: 0,
            output_feature: 2,
            output_spatial: vec![1],
            window: vec![ConvWindowDim {
                size: 2,
                stride: 2,
                padding_low: 1,
                padding_high: 0,
                window_dilation: 1,
                base_dilation: 1,
                reversal: false,
            }],
            feature_group_count: 2,
            multi_threaded: false,
            input: shaped(&[1, 3, 2]),
            kernel: shaped(&[2, 1, 2]),
            output: shaped(&[1, 2, 2]),
        };
        let x = bytes(&[1.0, 10.0, 2.0, 20.0, 3.0, 30.0]);
        let w = bytes(&[1.0, 2.0, 3.0, 4.0]);
        let mut y = vec![0; 16];
        let pool = Pool::new(1).unwrap();
        run(&thunk, &x, &w, &mut y, &pool).unwrap();
        // Position 0 covers padding and element 0, position 1 elements 1 and 2.
        assert_eq!(y, bytes(&[3.0, 40.0, 2.0 + 9.0, 40.0 + 120.0]));
        thunk.window[0].reversal = true;
        run(&thunk, &x, &w, &mut y, &pool).unwrap();
        assert_eq!(y, bytes(&[1.0, 20.0, 6.0 + 3.0, 80.0 + 60.0]));

        // The same in integers, which are summed in s32, and in f64.
        let ints = |values: &[i8]| values.iter().map(|v| v.cast_unsigned()).collect::<Vec<_>>();
        for part in [&mut thunk.input, &mut thunk.kernel] {
            part.shape = part.shape.with_type(PrimitiveType::S8);
        }
        thunk.output.shape = thunk.output.shape.with_type(PrimitiveType::S32);
        let (x, w) = (ints(&[1, 10, -2, 20, 3, 30]), ints(&[1, 2, 3, 127]));
        run(&thunk, &x, &w, &mut y, &pool).unwrap();
        let wanted = [1i32, 20, 3 - 6, 20 * 127 + 60];
        assert_eq!(y, wanted.map(i32::to_le_bytes).concat());
        for part in [&mut thunk.input, &mut thunk.kernel, &mut thunk.output] {
            part.shape = part.shape.with_type(PrimitiveType::F64);
        }
        let wide = |values: &[f64]| {
            values
                .iter()
                .flat_map(|v| v.to_le_bytes())
                .collect::<Vec<_>>()
        };
        let x = wide(&[1.0, 10.0, -2.0, 20.0, 3.0, 30.0]);
        let w = wide(&[1.0, 2.0, 3.0, 0.1]);
        let mut y = vec![0; 32];
        run(&thunk, &x, &w, &mut y, &pool).unwrap();
        assert_eq!(y, wide(&[1.0, 20.0, -3.0, 2.0 + 60.0]));
        thunk.output.shape = thunk.output.shape.with_type(PrimitiveType::S32);
        assert!(check_types(&thunk).is_err());
    }
}
