//! Shapes of reductions, windows, scans and batch normalisation.

use crate::base::Result;
use crate::hlo::CompId;
use crate::hlo::WindowDim;
use crate::hlo::infer::Infer;
use crate::hlo::infer::agree;
use crate::hlo::infer::bare;
use crate::hlo::infer::list;
use crate::hlo::infer::one_or_tuple;
use crate::hlo::infer::resized;
use crate::hlo::infer::text;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// Largest size of a padded or dilated dimension, so that positions are computed in 64 bits.
pub(super) const MAX_EXTENT: i128 = 1 << 50;

/// Number of positions of a window dimension over `size` elements; `None` when one of its extents is
/// beyond 2^50.
///
/// `dilated(n, d)` is 0 for n = 0, else (n-1)*d+1; positions are
/// floor((dilated base + padding - dilated window) / stride) + 1, or 0 when the window does not fit.
pub fn window_positions(window: &WindowDim, size: usize) -> Option<usize> {
    let dilated = |n: usize, by: i64| match n {
        0 => 0,
        n => (n as i128 - 1) * i128::from(by) + 1,
    };
    let padding = i128::from(window.padding_low) + i128::from(window.padding_high);
    let base = dilated(size, window.base_dilation) + padding;
    let reach = dilated(window.size, window.window_dilation);
    if base < reach || base <= 0 {
        return Some(0);
    }
    let stride = i128::from(window.stride);
    let low = i128::from(window.padding_low).abs();
    if stride <= 0 || base > MAX_EXTENT || low > MAX_EXTENT {
        return None;
    }
    usize::try_from((base - reach) / stride + 1).ok()
}

/// Equal types, or floats of whatever precision: what XLA's reducers may mix.
fn alike(a: PrimitiveType, b: PrimitiveType) -> bool {
    a == b || (a.is_float() && b.is_float())
}

impl Infer<'_> {
    /// Sizes, strides and dilations of a window are positive (reduce_window C4, C6, C8, C10).
    pub(super) fn window(&self, window: &[WindowDim]) -> Result<()> {
        for (d, w) in window.iter().enumerate() {
            for (what, value) in [
                ("stride", w.stride),
                ("window dilation", w.window_dilation),
                ("base dilation", w.base_dilation),
            ] {
                self.ensure(value > 0, || {
                    format!("{what} of window dimension {d} is {value}")
                })?;
            }
            self.ensure(w.size > 0, || format!("window dimension {d} has size zero"))?;
        }
        Ok(())
    }

    /// Inputs of equal sizes and as many scalar initial values of their types, up to the precision
    /// of floats.
    fn inputs_and_inits(&self) -> Result<(Vec<&ArrayShape>, Vec<&ArrayShape>)> {
        self.at_least(2)?;
        let count = self.operands.len();
        self.ensure(count.is_multiple_of(2), || {
            format!("has {count} operands, not as many initial values as inputs")
        })?;
        let n = count / 2;
        let inputs = self.arrays(0, n)?;
        let mut inits = Vec::with_capacity(n);
        for i in 0..n {
            self.same_sizes(0, inputs[0], i, inputs[i])?;
            let init = self.scalar(n + i)?;
            if !alike(inputs[i].ty, init.ty) {
                self.same_type(i, inputs[i].ty, n + i, init.ty)?;
            }
            inits.push(init);
        }
        Ok((inputs, inits))
    }

    /// The body combines accumulators with elements of the inputs' types, up to the precision of
    /// floats: it says which precision each has, and gives what it accumulates in. Gives those types.
    fn reduction_body(&self, inputs: &[&ArrayShape], body: CompId) -> Result<Vec<PrimitiveType>> {
        let (params, _) = self.signature(body)?;
        let types = (0..2 * inputs.len()).map(|i| {
            let wanted = inputs[i % inputs.len()].ty;
            let found = params.get(i).and_then(|p| p.as_array());
            let found = found.map(|array| array.ty);
            found.filter(|&ty| alike(ty, wanted)).unwrap_or(wanted)
        });
        let types: Vec<PrimitiveType> = types.collect();
        let accumulators = &types[..inputs.len()];
        self.scalar_body("body", body, &types, accumulators)?;
        Ok(accumulators.to_vec())
    }

    /// reduce C1 to C8.
    pub(super) fn reduce(&self, dims: &[usize], body: CompId) -> Result<Shape> {
        let (inputs, _) = self.inputs_and_inits()?;
        self.unique_dims("dimensions", dims, inputs[0].rank())?;
        let types = self.reduction_body(&inputs, body)?;
        let kept: Dims = (0..inputs[0].rank())
            .filter(|d| !dims.contains(d))
            .collect();
        let shapes = inputs.iter().zip(types).map(|(array, ty)| {
            let sizes = kept.iter().map(|&d| array.dims[d]).collect();
            Shape::Array(resized(array, sizes, |d| Some(kept[d])).with_type(ty))
        });
        Ok(one_or_tuple(shapes.collect()))
    }

    /// Sizes after a window has gone over an array.
    fn windowed(&self, window: &[WindowDim], array: &ArrayShape) -> Result<Dims> {
        self.ensure(window.len() == array.rank(), || {
            let (found, rank) = (window.len(), array.rank());
            format!("window has {found} dimensions for an operand of rank {rank}")
        })?;
        self.window(window)?;
        let mut sizes = Dims::new();
        for (d, (w, &size)) in window.iter().zip(&array.dims).enumerate() {
            match window_positions(w, size) {
                Some(n) => sizes.push(n),
                None => return Err(self.fail(format!("window dimension {d} reaches too far"))),
            }
        }
        Ok(sizes)
    }

    /// reduce_window C1 to C16.
    pub(super) fn reduce_window(&self, window: &[WindowDim], body: CompId) -> Result<Shape> {
        let (inputs, inits) = self.inputs_and_inits()?;
        let sizes = self.windowed(window, inputs[0])?;
        self.reduction_body(&inputs, body)?;
        // As in XLA, results have the types of the initial values, whatever the body computes in.
        let shapes = inits
            .iter()
            .map(|init| Shape::Array(ArrayShape::new(init.ty, sizes.iter().copied())));
        Ok(one_or_tuple(shapes.collect()))
    }

    /// select_and_scatter C1 to C11.
    pub(super) fn select_and_scatter(
        &self,
        window: &[WindowDim],
        select: CompId,
        scatter: CompId,
    ) -> Result<Shape> {
        self.arity(3)?;
        let (operand, source, init) = (self.array(0)?, self.array(1)?, self.scalar(2)?);
        self.same_type(0, operand.ty, 1, source.ty)?;
        self.same_type(0, operand.ty, 2, init.ty)?;
        let sizes = self.windowed(window, operand)?;
        self.ensure(source.dims == sizes, || {
            let (found, wanted) = (list(&source.dims), list(&sizes));
            format!("source has dimensions {found} where the window has positions {wanted}")
        })?;
        let pair = [operand.ty, operand.ty];
        self.scalar_body("select", select, &pair, &[PrimitiveType::Pred])?;
        self.scalar_body("scatter", scatter, &pair, &[operand.ty])?;
        Ok(Shape::Array(bare(operand)))
    }

    /// A loop over one dimension (HLO only): inputs then initial carries; the body takes one slice
    /// of each input and the carries, and gives slices of the outputs and the new carries.
    pub(super) fn scan(&self, dim: usize, body: CompId, num_carries: usize) -> Result<Shape> {
        let count = self.operands.len();
        self.ensure(num_carries <= count, || {
            format!("carries {num_carries} values but has {count} operands")
        })?;
        let inputs = self.arrays(0, count - num_carries)?;
        self.ensure(!inputs.is_empty(), || "has no input".to_owned())?;
        let mut wanted = Vec::new();
        for (i, input) in inputs.iter().enumerate() {
            self.dim("dimensions", dim, input)?;
            self.ensure(input.dims[dim] == inputs[0].dims[dim], || {
                let (found, of) = (input.dims[dim], inputs[0].dims[dim]);
                format!("input {i} has size {found} in dimension {dim} where input 0 has {of}")
            })?;
            let mut slice = bare(input);
            slice.dims.remove(dim);
            slice.dynamic.clear();
            wanted.push(Shape::Array(slice));
        }
        for i in inputs.len()..count {
            wanted.push(self.operand(i)?.without_layout());
        }
        let result = self.takes("body", body, &wanted.iter().collect::<Vec<_>>())?;
        let single = [result.clone()];
        let parts = result.as_tuple().unwrap_or(&single);
        self.ensure(parts.len() >= num_carries, || {
            format!(
                "body gives {} values for {num_carries} carries",
                parts.len()
            )
        })?;
        let outputs = parts.len() - num_carries;
        let mut shapes = Vec::new();
        for (i, part) in parts.iter().enumerate() {
            if i >= outputs {
                let carry = &wanted[inputs.len() + i - outputs];
                self.ensure(agree(part, carry), || {
                    format!("body turns carry {} into {}", text(carry), text(part))
                })?;
                shapes.push(part.without_layout());
                continue;
            }
            let stacked = part.as_array().filter(|a| dim <= a.rank()).map(|a| {
                let mut dims = a.dims.clone();
                dims.insert(dim, inputs[0].dims[dim]);
                Shape::array(a.ty, dims)
            });
            shapes.push(stacked.ok_or_else(|| {
                self.fail(format!(
                    "output {} cannot be stacked in dimension {dim}",
                    text(part)
                ))
            })?);
        }
        Ok(if result.is_tuple() {
            Shape::Tuple(shapes)
        } else {
            one_or_tuple(shapes)
        })
    }

    /// batch_norm_training, batch_norm_inference and batch_norm_grad (0, 1, 2): C1 to C7.
    pub(super) fn batch_norm(&self, feature_index: usize, which: usize) -> Result<Shape> {
        let counts = [3, 5, 5];
        self.arity(counts[which])?;
        let operand = self.array(0)?;
        self.dim("feature_index", feature_index, operand)?;
        self.ensure(operand.ty.is_float(), || {
            format!("is not defined for element type {}", operand.ty)
        })?;
        let features = operand.dims[feature_index];
        let per_feature = if which == 2 { 1..4 } else { 1..counts[which] };
        for i in per_feature {
            let array = self.array(i)?;
            self.same_type(0, operand.ty, i, array.ty)?;
            self.ensure(array.dims.as_slice() == [features], || {
                format!(
                    "operand {i} has dimensions {} instead of {{{features}}}",
                    list(&array.dims)
                )
            })?;
        }
        let result = Shape::Array(bare(operand));
        let row = Shape::array(operand.ty, [features]);
        if which == 1 {
            return Ok(result);
        }
        if which == 2 {
            let grad = self.array(4)?;
            self.same_type(0, operand.ty, 4, grad.ty)?;
            self.same_sizes(0, operand, 4, grad)?;
        }
        Ok(Shape::Tuple(vec![result, row.clone(), row]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(size: usize, window: usize, change: impl FnOnce(&mut WindowDim)) -> Option<usize> {
        let mut dim = WindowDim {
            size: window,
            ..WindowDim::default()
        };
        change(&mut dim);
        window_positions(&dim, size)
    }

    #[test]
    fn windows_are_counted() {
        assert_eq!(positions(8, 3, |_| {}), Some(6));
        assert_eq!(positions(8, 3, |w| w.stride = 2), Some(3));
        assert_eq!(positions(8, 3, |w| w.window_dilation = 3), Some(2));
        // Base dilation 2 makes 15 elements of 8.
        assert_eq!(positions(8, 3, |w| w.base_dilation = 2), Some(13));
        assert_eq!(positions(8, 3, |w| w.padding_low = -4), Some(2));
        assert_eq!(positions(8, 3, |w| w.padding_high = -20), Some(0));
        assert_eq!(positions(2, 3, |_| {}), Some(0));
        assert_eq!(positions(0, 1, |w| w.padding_low = 2), Some(2));
    }

    #[test]
    fn hostile_windows_do_not_overflow() {
        let far = |w: &mut WindowDim| {
            w.base_dilation = i64::MAX;
            w.padding_low = i64::MAX;
            w.padding_high = i64::MAX;
        };
        assert_eq!(positions(usize::MAX, 1, far), None);
        assert_eq!(
            positions(usize::MAX, usize::MAX, |w| w.window_dilation = i64::MAX),
            Some(0)
        );
        assert_eq!(positions(4, 1, |w| w.stride = 0), None);
        // Few positions, but far away.
        let away = |w: &mut WindowDim| {
            w.padding_low = i64::MIN;
            w.padding_high = i64::MAX;
        };
        assert_eq!(positions(8, 3, away), None);
        assert_eq!(positions(8, 3, |w| w.stride = i64::MAX), Some(1));
    }
}
