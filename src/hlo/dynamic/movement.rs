//! Sizes of what ops that move data give.

use crate::hlo::GatherDims;
use crate::hlo::PadDim;
use crate::hlo::ScatterDims;
use crate::hlo::SliceDim;
use crate::hlo::dynamic::Question;
use crate::hlo::dynamic::Size;
use crate::hlo::dynamic::Sizes;

impl Question<'_> {
    /// Dimensions that both shapes have keep their sizes; the minor-most of the narrower is whole.
    pub(super) fn bitcast_convert(&self) -> Result<Vec<Sizes>, String> {
        let (operand, result) = (self.operand(0)?, self.result()?);
        if operand.rank() > result.rank() {
            self.must_be_fixed(0, operand.rank() - 1, "whose elements are joined")?;
        }
        let mut sizes = Self::fixed(result);
        for (d, size) in sizes.iter_mut().enumerate().take(operand.rank()) {
            *size = self.size(0, d);
        }
        Ok(vec![sizes])
    }

    pub(super) fn broadcast(&self, dims: &[usize]) -> Result<Vec<Sizes>, String> {
        let mut sizes = Self::fixed(self.result()?);
        for (d, &to) in dims.iter().enumerate() {
            if let Some(size) = sizes.get_mut(to) {
                *size = self.size(0, d);
            }
        }
        Ok(vec![sizes])
    }

    /// A slice of the whole dimension keeps what is real of it; any other has all of its elements.
    pub(super) fn slice(&self, dims: &[SliceDim]) -> Sizes {
        let size = |(d, slice): (usize, &SliceDim)| {
            let whole = slice.start == 0 && slice.limit == self.bound(0, d);
            let stride = slice.stride.max(1) as i64;
            match whole && self.is_dynamic(0, d) {
                true => self.size(0, d).plus(stride - 1).over(stride),
                false => {
                    let taken = slice.limit.saturating_sub(slice.start) as i64;
                    Size::Fixed((taken + stride - 1) / stride)
                }
            }
        };
        dims.iter().enumerate().map(size).collect()
    }

    pub(super) fn dynamic_slice(&self, sizes: &[usize]) -> Sizes {
        let size = |(d, &taken): (usize, &usize)| match taken == self.bound(0, d) {
            true => self.size(0, d),
            false => Size::Fixed(taken as i64),
        };
        sizes.iter().enumerate().map(size).collect()
    }

    /// An update of the whole dimension decides what is real of it.
    pub(super) fn dynamic_update_slice(&self) -> Sizes {
        let size = |d: usize| {
            let whole = self.bound(0, d) == self.bound(1, d);
            match whole && self.is_dynamic(1, d) {
                true => self.size(1, d),
                false => self.size(0, d),
            }
        };
        let rank = self.operands.first().map_or(0, |a| a.rank());
        (0..rank).map(size).collect()
    }

    pub(super) fn pad(&self, dims: &[PadDim]) -> Sizes {
        let size = |(d, pad): (usize, &PadDim)| {
            let size = self.size(0, d);
            let edges = pad.low.saturating_add(pad.high);
            if size.is_fixed() {
                let n = self.bound(0, d) as i64;
                return Size::Fixed(n + (n - 1).max(0) * pad.interior + edges);
            }
            let inside = match pad.interior {
                0 => size,
                by => {
                    let gaps = size.clone().plus(-1).at_least(0).times(by);
                    Size::Sum(vec![size, gaps])
                }
            };
            inside.plus(edges).at_least(0)
        };
        dims.iter().enumerate().map(size).collect()
    }

    pub(super) fn concatenate(&self, dim: usize) -> Sizes {
        let rank = self.operands.first().map_or(0, |a| a.rank());
        let all = 0..self.operands.len();
        let size = |d: usize| {
            let sizes = all.clone().map(|i| self.size(i, d));
            if d != dim {
                return Size::least(sizes, self.bound(0, d));
            }
            let (fixed, mut open): (Vec<Size>, Vec<Size>) = sizes.partition(Size::is_fixed);
            let known = fixed.iter().map(|size| size.resolve(&|_, _| 0, &|_| 0));
            let known: i64 = known.sum();
            match open.is_empty() {
                true => Size::Fixed(known),
                false => {
                    open.push(Size::Fixed(known));
                    Size::Sum(open)
                }
            }
        };
        (0..rank).map(size).collect()
    }

    /// Windows over a whole dimension keep its size, and so do the dimensions of the indices.
    pub(super) fn gather(
        &self,
        dims: &GatherDims,
        slice_sizes: &[usize],
    ) -> Result<Vec<Sizes>, String> {
        let result = self.result()?;
        let operand = self.operand(0)?;
        let kept = (0..operand.rank()).filter(|d| {
            !dims.collapsed_slice_dims.contains(d) && !dims.operand_batching_dims.contains(d)
        });
        let mut sizes = Self::fixed(result);
        for (d, &to) in kept.zip(&dims.offset_dims) {
            if slice_sizes.get(d) == operand.dims.get(d)
                && let Some(size) = sizes.get_mut(to)
            {
                *size = self.size(0, d);
            }
        }
        let batch = (0..result.rank()).filter(|d| !dims.offset_dims.contains(d));
        for (to, from) in batch.zip(self.batch_dims(1, dims.index_vector_dim)?) {
            let paired = dims
                .start_indices_batching_dims
                .iter()
                .position(|&b| b == from);
            let paired = paired.and_then(|i| dims.operand_batching_dims.get(i));
            let paired = paired.map(|&d| self.size(0, d));
            let bound = self.bound(1, from);
            sizes[to] = Size::least([self.size(1, from)].into_iter().chain(paired), bound);
        }
        Ok(vec![sizes])
    }

    /// The dimensions of the indices that are none of the index vector.
    fn batch_dims(&self, indices: usize, vector_dim: usize) -> Result<Vec<usize>, String> {
        if self.is_dynamic(indices, vector_dim) {
            return Err("has index vectors of dynamic length".to_owned());
        }
        let rank = self.operand(indices)?.rank();
        Ok((0..rank).filter(|&d| d != vector_dim).collect())
    }

    /// The operands' own sizes. A window may be dynamic where it covers a dynamic dimension.
    pub(super) fn scatter(&self, dims: &ScatterDims) -> Result<Vec<Sizes>, String> {
        let count = self.operands.len().saturating_sub(1) / 2;
        self.batch_dims(count, dims.index_vector_dim)?;
        let rank = self.operand(0)?.rank();
        let kept = (0..rank).filter(|d| {
            !dims.inserted_window_dims.contains(d) && !dims.input_batching_dims.contains(d)
        });
        for (d, &window) in kept.zip(&dims.update_window_dims) {
            for update in count + 1..self.operands.len() {
                let covers = self.bound(0, d) == self.bound(update, window);
                if self.is_dynamic(update, window) && !(covers && self.is_dynamic(0, d)) {
                    return Err(format!(
                        "has updates with window dimension {window} dynamic, which does not cover a dynamic dimension"
                    ));
                }
            }
        }
        Ok((0..count).map(|i| self.all(i)).collect())
    }

    /// The operand as it is, but for one size. A constant that is the bound makes it static.
    pub(super) fn set_dimension_size(&self, dim: usize) -> Sizes {
        let mut sizes = self.all(0);
        let bound = self.bound(0, dim) as i64;
        if let Some(size) = sizes.get_mut(dim) {
            *size = match (self.constant)(1) {
                Some(constant) if constant == bound => Size::Fixed(bound),
                _ => Size::Value { operand: 1, bound },
            };
        }
        sizes
    }
}
