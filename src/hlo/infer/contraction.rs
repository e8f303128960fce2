//! Shapes of dots and convolutions.

use crate::base::Result;
use crate::hlo::ConvDims;
use crate::hlo::DotDims;
use crate::hlo::Precision;
use crate::hlo::PrecisionConfig;
use crate::hlo::WindowDim;
use crate::hlo::infer::Infer;
use crate::hlo::infer::list;
use crate::hlo::infer::reduce::window_positions;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

impl Infer<'_> {
    /// The result type of a contraction: what the program states, else the operands' type.
    ///
    /// HLO lets lhs, rhs and result differ (the products are taken in a type that holds all), as
    /// long as none of them is complex when another is not, and an integer result is not narrower
    /// than its operands.
    fn contraction_type(&self, lhs: &ArrayShape, rhs: &ArrayShape) -> Result<PrimitiveType> {
        let (a, b) = (lhs.ty, rhs.ty);
        let stated = self.declared.and_then(Shape::as_array).map(|s| s.ty);
        let natural = if a.bit_width() >= b.bit_width() { a } else { b };
        let ty = stated.unwrap_or(natural);
        let same_field = a.is_complex() == b.is_complex() && a.is_complex() == ty.is_complex();
        self.ensure(same_field, || format!("turns {a} and {b} into {ty}"))?;
        let widest = a.bit_width().max(b.bit_width());
        let narrows = a.is_integer() && b.is_integer() && ty.bit_width() < widest;
        self.ensure(!narrows && (ty != PrimitiveType::Pred || a == ty), || {
            format!("turns {a} and {b} into the narrower {ty}")
        })?;
        Ok(ty)
    }

    /// dot_general C5 to C10: dimension numbers, and equal sizes where dimensions are paired.
    fn dot_dims(&self, dims: &DotDims, lhs: &ArrayShape, rhs: &ArrayShape) -> Result<()> {
        let both = |a: &Dims, b: &Dims| -> Vec<usize> { a.iter().chain(b).copied().collect() };
        let used = both(&dims.lhs_batch, &dims.lhs_contracting);
        self.unique_dims("lhs batch and contracting dims", &used, lhs.rank())?;
        let used = both(&dims.rhs_batch, &dims.rhs_contracting);
        self.unique_dims("rhs batch and contracting dims", &used, rhs.rank())?;
        for (verb, a, b) in [
            ("batches", &dims.lhs_batch, &dims.rhs_batch),
            ("contracts", &dims.lhs_contracting, &dims.rhs_contracting),
        ] {
            self.ensure(a.len() == b.len(), || {
                format!(
                    "{verb} lhs dimensions {} with rhs dimensions {}",
                    list(a),
                    list(b)
                )
            })?;
            for (&a, &b) in a.iter().zip(b) {
                let (n, m) = (lhs.dims[a], rhs.dims[b]);
                self.ensure(n == m, || {
                    format!("{verb} dimension {a} of size {n} with dimension {b} of size {m}")
                })?;
            }
        }
        Ok(())
    }

    /// dot_general C1 to C12 and C20. Metadata operands of a structured-sparse dot follow the two.
    pub(super) fn dot(
        &self,
        dims: &DotDims,
        precision: &PrecisionConfig,
        sparsity: &[String],
    ) -> Result<Shape> {
        self.arity(2 + sparsity.len())?;
        let (lhs, rhs) = (self.array(0)?, self.array(1)?);
        let asked = precision.operand_precision.len();
        self.ensure(asked == 0 || asked == 2, || {
            format!("has {asked} operand precisions")
        })?;
        let packed = |p: &Precision| *p == Precision::PackedNibble;
        let nibbles = precision
            .operand_precision
            .iter()
            .filter(|p| packed(p))
            .count();
        self.ensure(nibbles != 1, || {
            "only one operand has packed nibbles".to_owned()
        })?;
        if sparsity.is_empty() {
            self.dot_dims(dims, lhs, rhs)?;
        } else {
            // The sparse side is stored at a fraction of the contracted size.
            let loose = DotDims {
                lhs_contracting: Dims::new(),
                rhs_contracting: Dims::new(),
                ..dims.clone()
            };
            self.dot_dims(&loose, lhs, rhs)?;
            self.unique_dims("lhs_contracting_dims", &dims.lhs_contracting, lhs.rank())?;
            self.unique_dims("rhs_contracting_dims", &dims.rhs_contracting, rhs.rank())?;
        }
        let ty = self.contraction_type(lhs, rhs)?;
        Ok(Shape::Array(dot_result(ty, dims, lhs, rhs)))
    }

    /// A dot whose group sizes (operand 2) cut the ragged lhs dimension (HLO, after chlo.ragged_dot).
    pub(super) fn ragged_dot(
        &self,
        dims: &DotDims,
        lhs_ragged: &[usize],
        rhs_group: &[usize],
    ) -> Result<Shape> {
        self.arity(3)?;
        let (lhs, rhs, groups) = (self.array(0)?, self.array(1)?, self.array(2)?);
        self.dot_dims(dims, lhs, rhs)?;
        self.ensure(groups.ty.is_integer(), || {
            format!("group sizes have element type {}", groups.ty)
        })?;
        self.ensure(lhs_ragged.len() == 1, || {
            format!("has {} ragged dimensions instead of 1", lhs_ragged.len())
        })?;
        self.unique_dims("lhs_ragged_dims", lhs_ragged, lhs.rank())?;
        self.unique_dims("rhs_group_dims", rhs_group, rhs.rank())?;
        let count = groups.dims.last().copied();
        self.ensure(count.is_some(), || "group sizes are a scalar".to_owned())?;
        let count = count.unwrap_or(0);
        let ragged = lhs_ragged[0];
        let (contracting, batch) = (
            dims.lhs_contracting.contains(&ragged),
            dims.lhs_batch.contains(&ragged),
        );
        let wanted = usize::from(!contracting && !batch);
        self.ensure(rhs_group.len() == wanted, || {
            format!(
                "has {} rhs group dimensions instead of {wanted}",
                rhs_group.len()
            )
        })?;
        for &d in rhs_group {
            let used = dims.rhs_batch.contains(&d) || dims.rhs_contracting.contains(&d);
            self.ensure(!used, || {
                format!("rhs dimension {d} is a group dimension and batched or contracted")
            })?;
            self.ensure(rhs.dims[d] == count, || {
                format!("has {count} group sizes for {} groups", rhs.dims[d])
            })?;
        }
        let ty = self.contraction_type(lhs, rhs)?;
        // A group dimension goes away as a contracted one does.
        let mut gone = dims.clone();
        gone.rhs_contracting.extend_from_slice(rhs_group);
        let mut out = dot_result(ty, &gone, lhs, rhs);
        if contracting {
            out.dims.insert(0, count);
            out.dynamic.clear();
        }
        Ok(Shape::Array(out))
    }

    /// A dot of operands times their scales (operands 2 and 3): each scale has the operand's rank,
    /// and sizes that divide the operand's.
    pub(super) fn scaled_dot(&self, dims: &DotDims) -> Result<Shape> {
        self.arity(4)?;
        let (lhs, rhs) = (self.array(0)?, self.array(1)?);
        self.dot_dims(dims, lhs, rhs)?;
        for (i, operand) in [(2, lhs), (3, rhs)] {
            let scale = self.array(i)?;
            self.ensure(scale.ty.is_float(), || {
                format!("scale has element type {}", scale.ty)
            })?;
            if scale.rank() == 0 {
                continue;
            }
            let fits = scale.rank() == operand.rank()
                && scale
                    .dims
                    .iter()
                    .zip(&operand.dims)
                    .all(|(&s, &n)| s == n || (s != 0 && n.is_multiple_of(s)));
            self.ensure(fits, || {
                let (found, of) = (list(&scale.dims), list(&operand.dims));
                format!("scale of dimensions {found} does not divide operand dimensions {of}")
            })?;
        }
        let ty = match self.declared.and_then(Shape::as_array) {
            Some(stated) => stated.ty,
            None => PrimitiveType::F32,
        };
        Ok(Shape::Array(dot_result(ty, dims, lhs, rhs)))
    }

    /// convolution C1 to C27.
    pub(super) fn convolution(
        &self,
        window: &[WindowDim],
        dims: &ConvDims,
        feature_groups: usize,
        batch_groups: usize,
    ) -> Result<Shape> {
        self.arity(2)?;
        let (input, kernel) = (self.array(0)?, self.array(1)?);
        let spatial = window.len();
        self.conv_numbers(dims, spatial, input, kernel)?;
        self.window(window)?;
        for (i, (w, &d)) in window.iter().zip(&dims.kernel_spatial).enumerate() {
            let (size, of) = (w.size, kernel.dims[d]);
            self.ensure(size == of, || {
                format!("window dimension {i} has size {size} where the kernel has {of}")
            })?;
        }
        self.conv_groups(dims, feature_groups, batch_groups, input, kernel)?;
        let mut sizes: Dims = smallvec::smallvec![0; spatial + 2];
        sizes[dims.output_batch] = input.dims[dims.input_batch] / batch_groups;
        sizes[dims.output_feature] = kernel.dims[dims.kernel_output_feature];
        for (i, w) in window.iter().enumerate() {
            let positions = window_positions(w, input.dims[dims.input_spatial[i]]);
            sizes[dims.output_spatial[i]] = match positions {
                Some(n) => n,
                None => return Err(self.fail(format!("window dimension {i} reaches too far"))),
            };
        }
        let ty = self.contraction_type(input, kernel)?;
        Ok(Shape::Array(ArrayShape::new(ty, sizes)))
    }

    /// Each array's dimension numbers name each of its dimensions once.
    fn conv_numbers(
        &self,
        dims: &ConvDims,
        spatial: usize,
        input: &ArrayShape,
        kernel: &ArrayShape,
    ) -> Result<()> {
        let rank = spatial + 2;
        for (what, found) in [("input", input.rank()), ("kernel", kernel.rank())] {
            self.ensure(found == rank, || {
                format!("{what} has rank {found} where the window has {spatial} dimensions")
            })?;
        }
        let numbers = [
            (
                "input",
                dims.input_batch,
                dims.input_feature,
                &dims.input_spatial,
            ),
            (
                "kernel",
                dims.kernel_input_feature,
                dims.kernel_output_feature,
                &dims.kernel_spatial,
            ),
            (
                "output",
                dims.output_batch,
                dims.output_feature,
                &dims.output_spatial,
            ),
        ];
        for (what, a, b, of_window) in numbers {
            let mut all = vec![a, b];
            all.extend(of_window);
            self.ensure(all.len() == rank, || {
                let found = of_window.len();
                format!("{what} has {found} spatial dimensions where the window has {spatial}")
            })?;
            self.unique_dims(&format!("{what} dimension numbers"), &all, rank)?;
        }
        Ok(())
    }

    /// C10 to C17: how features and batch are cut into groups.
    fn conv_groups(
        &self,
        dims: &ConvDims,
        feature_groups: usize,
        batch_groups: usize,
        input: &ArrayShape,
        kernel: &ArrayShape,
    ) -> Result<()> {
        self.ensure(feature_groups > 0 && batch_groups > 0, || {
            "has a group count of zero".to_owned()
        })?;
        self.ensure(feature_groups == 1 || batch_groups == 1, || {
            "has both feature groups and batch groups".to_owned()
        })?;
        let divides = |what: &str, size: usize, groups: usize| {
            self.ensure(size.is_multiple_of(groups), || {
                format!("{what} {size} is not a multiple of the group count {groups}")
            })
        };
        let features = input.dims[dims.input_feature];
        let output = kernel.dims[dims.kernel_output_feature];
        divides("input batch", input.dims[dims.input_batch], batch_groups)?;
        divides("output feature count", output, batch_groups)?;
        divides("input feature count", features, feature_groups)?;
        divides("output feature count", output, feature_groups)?;
        let wanted = features / feature_groups;
        let found = kernel.dims[dims.kernel_input_feature];
        self.ensure(found == wanted, || {
            format!("kernel has {found} input features instead of {wanted}")
        })
    }
}

/// Batch dimensions, then free lhs dimensions, then free rhs dimensions.
fn dot_result(ty: PrimitiveType, dims: &DotDims, lhs: &ArrayShape, rhs: &ArrayShape) -> ArrayShape {
    let free = |of: &ArrayShape, batch: &Dims, contracting: &Dims| -> Vec<(usize, bool)> {
        (0..of.rank())
            .filter(|d| !batch.contains(d) && !contracting.contains(d))
            .map(|d| (of.dims[d], of.is_dynamic_dim(d)))
            .collect()
    };
    let batch = dims
        .lhs_batch
        .iter()
        .map(|&d| (lhs.dims[d], lhs.is_dynamic_dim(d)));
    let all: Vec<(usize, bool)> = batch
        .chain(free(lhs, &dims.lhs_batch, &dims.lhs_contracting))
        .chain(free(rhs, &dims.rhs_batch, &dims.rhs_contracting))
        .collect();
    let mut out = ArrayShape::new(ty, all.iter().map(|(n, _)| *n));
    if all.iter().any(|(_, dynamic)| *dynamic) {
        out.dynamic = all.iter().map(|(_, dynamic)| *dynamic).collect();
    }
    out
}
