//! Sizes of what contractions, reductions and windows give.

use crate::hlo::ConvDims;
use crate::hlo::DotDims;
use crate::hlo::WindowDim;
use crate::hlo::dynamic::Question;
use crate::hlo::dynamic::Size;
use crate::hlo::dynamic::Sizes;

impl Question<'_> {
    /// Batch dimensions, then what is free of lhs, then of rhs.
    pub(super) fn dot(&self, dims: &DotDims) -> Sizes {
        let pairs = dims.lhs_batch.iter().zip(&dims.rhs_batch);
        let batch =
            pairs.map(|(&l, &r)| Size::least([self.size(0, l), self.size(1, r)], self.bound(0, l)));
        let free = |operand: usize, batch: &[usize], contracting: &[usize]| -> Sizes {
            let rank = self.operands.get(operand).map_or(0, |a| a.rank());
            (0..rank)
                .filter(|d| !batch.contains(d) && !contracting.contains(d))
                .map(|d| self.size(operand, d))
                .collect()
        };
        let mut sizes: Sizes = batch.collect();
        sizes.extend(free(0, &dims.lhs_batch, &dims.lhs_contracting));
        sizes.extend(free(1, &dims.rhs_batch, &dims.rhs_contracting));
        sizes
    }

    /// Scales belong to blocks of elements, which a size may not cut.
    pub(super) fn scaled_dot(&self, dims: &DotDims) -> Result<Vec<Sizes>, String> {
        let contracting = [&dims.lhs_contracting, &dims.rhs_contracting];
        for (operand, dims) in contracting.into_iter().enumerate() {
            for &dim in dims {
                self.must_be_fixed(operand, dim, "which is contracted")?;
                self.must_be_fixed(operand + 2, dim, "which is contracted")?;
            }
        }
        Ok(vec![self.dot(dims)])
    }

    pub(super) fn ragged_dot(
        &self,
        dims: &DotDims,
        lhs_ragged: &[usize],
        rhs_group: &[usize],
    ) -> Result<Vec<Sizes>, String> {
        for &dim in rhs_group {
            self.must_be_fixed(1, dim, "one of the groups")?;
        }
        for &dim in lhs_ragged {
            let contracted = dims.lhs_contracting.contains(&dim);
            if contracted || dims.lhs_batch.contains(&dim) {
                self.must_be_fixed(0, dim, "which is ragged")?;
            }
        }
        if let Some(sizes) = self.operands.get(2) {
            for dim in 0..sizes.rank() {
                self.must_be_fixed(2, dim, "one of the group sizes")?;
            }
        }
        let mut gone = dims.clone();
        gone.rhs_contracting.extend_from_slice(rhs_group);
        let mut sizes = self.dot(&gone);
        let result = self.result()?;
        if sizes.len() + 1 == result.rank() {
            sizes.insert(0, Size::Fixed(result.dims[0] as i64));
        }
        Ok(vec![sizes])
    }

    pub(super) fn convolution(
        &self,
        window: &[WindowDim],
        dims: &ConvDims,
        feature_groups: usize,
        batch_groups: usize,
    ) -> Result<Vec<Sizes>, String> {
        for &dim in &dims.kernel_spatial {
            self.must_be_fixed(1, dim, "one of the kernel's window")?;
        }
        if feature_groups > 1 || batch_groups > 1 {
            self.must_be_fixed(0, dims.input_feature, "which is grouped")?;
            self.must_be_fixed(1, dims.kernel_input_feature, "which is grouped")?;
            self.must_be_fixed(1, dims.kernel_output_feature, "which is grouped")?;
        }
        if batch_groups > 1 {
            self.must_be_fixed(0, dims.input_batch, "which is grouped")?;
        }
        let mut sizes = Self::fixed(self.result()?);
        if batch_groups == 1 {
            sizes[dims.output_batch] = self.size(0, dims.input_batch);
        }
        sizes[dims.output_feature] = match self.size(1, dims.kernel_output_feature) {
            Size::Fixed(_) => sizes[dims.output_feature].clone(),
            open => open,
        };
        let spatial = dims.input_spatial.iter().zip(&dims.output_spatial);
        for ((&from, &to), w) in spatial.zip(window) {
            let whole = sizes[to].resolve(&|_, _| 0, &|_| 0);
            sizes[to] = self.windowed(0, from, w, whole);
        }
        Ok(vec![sizes])
    }

    /// Inputs of a reduction, and the least of their sizes in a dimension.
    fn reduced(&self, dim: usize) -> Size {
        let inputs = self.operands.len() / 2;
        let sizes = (0..inputs).map(|i| self.size(i, dim));
        Size::least(sizes, self.bound(0, dim))
    }

    pub(super) fn reduce(&self, dims: &[usize]) -> Vec<Sizes> {
        let rank = self.operands.first().map_or(0, |a| a.rank());
        let kept = (0..rank).filter(|d| !dims.contains(d));
        self.each(kept.map(|d| self.reduced(d)).collect())
    }

    pub(super) fn reduce_window(&self, window: &[WindowDim]) -> Vec<Sizes> {
        let results = self.results();
        let inputs = self.operands.len() / 2;
        let size = |(d, w): (usize, &WindowDim)| {
            let whole = results
                .first()
                .and_then(|r| r.dims.get(d))
                .map_or(0, |&n| n);
            let sizes = (0..inputs).map(|i| self.windowed(i, d, w, whole as i64));
            Size::least(sizes, whole)
        };
        self.each(window.iter().enumerate().map(size).collect())
    }

    /// The operand's sizes; the source has as many elements as windows have positions over them.
    pub(super) fn select_and_scatter(&self, window: &[WindowDim]) -> Result<Vec<Sizes>, String> {
        for d in 0..window.len() {
            if self.is_dynamic(1, d) && !self.is_dynamic(0, d) {
                return Err(format!(
                    "has a source with dimension {d} dynamic, and an operand where it is not"
                ));
            }
        }
        Ok(vec![self.all(0)])
    }
}
