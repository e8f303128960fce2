//! Shapes of ops that move data, and of the dimension-size ops.

use crate::base::Result;
use crate::hlo::PadDim;
use crate::hlo::SliceDim;
use crate::hlo::infer::Infer;
use crate::hlo::infer::bare;
use crate::hlo::infer::list;
use crate::hlo::infer::reduce::MAX_EXTENT;
use crate::hlo::infer::resized;
use crate::hlo::infer::text;
use crate::literal::Literal;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::shape::Shape;
use crate::shape::index::is_permutation;

impl Infer<'_> {
    /// The literal's own shape.
    pub(super) fn constant(&self, literal: &Literal) -> Result<Shape> {
        self.arity(0)?;
        Ok(literal.shape().without_layout())
    }

    /// iota C1; not defined for pred.
    pub(super) fn iota(&self, dim: usize) -> Result<Shape> {
        self.arity(0)?;
        let array = self.declared_array()?;
        self.dim("iota_dimension", dim, array)?;
        self.ensure(array.ty != PrimitiveType::Pred, || {
            "is not defined for element type pred".to_owned()
        })?;
        Ok(Shape::Array(bare(array)))
    }

    /// replica_id and partition_id: a u32 scalar.
    pub(super) fn device_id(&self) -> Result<Shape> {
        self.arity(0)?;
        Ok(Shape::scalar(PrimitiveType::U32))
    }

    /// Same bytes under another shape (HLO only): equal sizes in bits.
    pub(super) fn bitcast(&self) -> Result<Shape> {
        self.arity(1)?;
        let (from, to) = (self.array(0)?, self.declared_array()?);
        let bits = |a: &ArrayShape| {
            let count = a.checked_element_count()?;
            count.checked_mul(a.ty.bit_width())
        };
        self.ensure(bits(from).is_some() && bits(from) == bits(to), || {
            let (from, to) = (Shape::Array(from.clone()), Shape::Array(to.clone()));
            format!("{} does not fill {}", text(&from), text(&to))
        })?;
        Ok(Shape::Array(bare(to)))
    }

    /// reshape C1: equal element type and count.
    pub(super) fn reshape(&self, inferred_dim: Option<usize>) -> Result<Shape> {
        self.arity(1)?;
        let (from, to) = (self.array(0)?, self.declared_array()?);
        self.same_reshaped(from, to)?;
        if let Some(dim) = inferred_dim {
            self.dim("inferred_dimension", dim, to)?;
        }
        Ok(Shape::Array(bare(to)))
    }

    fn same_reshaped(&self, from: &ArrayShape, to: &ArrayShape) -> Result<()> {
        self.ensure(from.ty == to.ty, || {
            format!("turns element type {} into {}", from.ty, to.ty)
        })?;
        let counts = (from.checked_element_count(), to.checked_element_count());
        self.ensure(counts.0.is_some() && counts.0 == counts.1, || {
            let (from, to) = (list(&from.dims), list(&to.dims));
            format!("dimensions {from} hold another number of elements than {to}")
        })
    }

    /// broadcast_in_dim C1 to C5, without the growing of size-one dimensions, which HLO lacks.
    pub(super) fn broadcast(&self, dims: &[usize]) -> Result<Shape> {
        self.arity(1)?;
        let (from, to) = (self.array(0)?, self.declared_array()?);
        self.ensure(dims.len() == from.rank(), || {
            let (found, rank) = (dims.len(), from.rank());
            format!("maps {found} dimensions of an operand of rank {rank}")
        })?;
        self.unique_dims("dimensions", dims, to.rank())?;
        for (d, &out) in dims.iter().enumerate() {
            self.ensure(from.dims[d] == to.dims[out], || {
                let (size, wanted) = (from.dims[d], to.dims[out]);
                format!(
                    "operand dimension {d} of size {size} becomes dimension {out} of size {wanted}"
                )
            })?;
        }
        self.ensure(from.ty == to.ty, || {
            format!("turns element type {} into {}", from.ty, to.ty)
        })?;
        Ok(Shape::Array(bare(to)))
    }

    /// transpose C1 to C3.
    pub(super) fn transpose(&self, dims: &[usize]) -> Result<Shape> {
        self.arity(1)?;
        let from = self.array(0)?;
        self.ensure(dims.len() == from.rank() && is_permutation(dims), || {
            let rank = from.rank();
            format!("{} does not permute {rank} dimensions", list(dims))
        })?;
        let sizes = dims.iter().map(|&d| from.dims[d]).collect();
        Ok(Shape::Array(resized(from, sizes, |d| Some(dims[d]))))
    }

    /// reverse C1 to C3.
    pub(super) fn reverse(&self, dims: &[usize]) -> Result<Shape> {
        self.arity(1)?;
        let from = self.array(0)?;
        self.unique_dims("dimensions", dims, from.rank())?;
        Ok(Shape::Array(bare(from)))
    }

    /// slice C1 to C5.
    pub(super) fn slice(&self, dims: &[SliceDim]) -> Result<Shape> {
        self.arity(1)?;
        let from = self.array(0)?;
        self.ensure(dims.len() == from.rank(), || {
            let (found, rank) = (dims.len(), from.rank());
            format!("slices {found} dimensions of an operand of rank {rank}")
        })?;
        let mut sizes = Dims::new();
        for (d, slice) in dims.iter().enumerate() {
            let (start, limit, size) = (slice.start, slice.limit, from.dims[d]);
            self.ensure(slice.stride > 0, || {
                format!("stride of dimension {d} is zero")
            })?;
            self.ensure(limit <= size, || {
                format!("limit {limit} lies beyond dimension {d} of size {size}")
            })?;
            self.ensure(start <= limit, || {
                format!("dimension {d} starts at {start}, after its limit {limit}")
            })?;
            sizes.push((limit - start).div_ceil(slice.stride));
        }
        Ok(Shape::Array(resized(from, sizes, |d| {
            (dims[d].start == 0 && dims[d].limit == from.dims[d]).then_some(d)
        })))
    }

    /// Start indices from operand `first`: a scalar a dimension of one integer type, or in old
    /// programs one vector.
    fn start_indices(&self, first: usize, rank: usize) -> Result<()> {
        if self.operands.len() == first + 1 {
            let vector = self.array(first)?;
            if vector.rank() == 1 {
                self.ensure(vector.ty.is_integer(), || {
                    format!("start indices have element type {}", vector.ty)
                })?;
                return self.ensure(vector.dims[0] == rank, || {
                    format!("has {} start indices instead of {rank}", vector.dims[0])
                });
            }
        }
        let found = self.operands.len().saturating_sub(first);
        self.ensure(found == rank, || {
            format!("has {found} start indices instead of {rank}")
        })?;
        for i in first..self.operands.len() {
            let index = self.scalar(i)?;
            self.ensure(index.ty.is_integer(), || {
                format!("start index {} has element type {}", i - first, index.ty)
            })?;
            self.same_type(first, self.scalar(first)?.ty, i, index.ty)?;
        }
        Ok(())
    }

    /// dynamic_slice C1 to C5.
    pub(super) fn dynamic_slice(&self, sizes: &Dims) -> Result<Shape> {
        self.at_least(1)?;
        let from = self.array(0)?;
        self.start_indices(1, from.rank())?;
        self.ensure(sizes.len() == from.rank(), || {
            let (found, rank) = (sizes.len(), from.rank());
            format!("has {found} slice sizes for an operand of rank {rank}")
        })?;
        for (d, (&size, &of)) in sizes.iter().zip(&from.dims).enumerate() {
            self.ensure(size <= of, || {
                format!("takes {size} elements of dimension {d} of size {of}")
            })?;
        }
        Ok(Shape::Array(resized(from, sizes.clone(), |d| {
            (sizes[d] == from.dims[d]).then_some(d)
        })))
    }

    /// dynamic_update_slice C1 to C6.
    pub(super) fn dynamic_update_slice(&self) -> Result<Shape> {
        self.at_least(2)?;
        let (into, update) = (self.array(0)?, self.array(1)?);
        self.same_type(0, into.ty, 1, update.ty)?;
        self.start_indices(2, into.rank())?;
        self.ensure(update.rank() == into.rank(), || {
            let (found, rank) = (update.rank(), into.rank());
            format!("update has rank {found} where the operand has rank {rank}")
        })?;
        for (d, (&size, &of)) in update.dims.iter().zip(&into.dims).enumerate() {
            self.ensure(size <= of, || {
                format!("updates {size} elements of dimension {d} of size {of}")
            })?;
        }
        Ok(Shape::Array(bare(into)))
    }

    /// pad C1 to C4. The padding may crop, but no dimension below zero.
    pub(super) fn pad(&self, dims: &[PadDim]) -> Result<Shape> {
        self.arity(2)?;
        let (from, value) = (self.array(0)?, self.scalar(1)?);
        self.same_type(0, from.ty, 1, value.ty)?;
        self.ensure(dims.len() == from.rank(), || {
            let (found, rank) = (dims.len(), from.rank());
            format!("pads {found} dimensions of an operand of rank {rank}")
        })?;
        let mut sizes = Dims::new();
        for (d, pad) in dims.iter().enumerate() {
            self.ensure(pad.interior >= 0, || {
                format!("interior padding of dimension {d} is {}", pad.interior)
            })?;
            let size = from.dims[d] as i128;
            let dilated = size + (size - 1).max(0) * i128::from(pad.interior);
            let (low, high) = (i128::from(pad.low), i128::from(pad.high));
            let reach = dilated.max(low.abs()).max(high.abs());
            self.ensure(reach <= MAX_EXTENT, || {
                format!("padding of dimension {d} reaches as far as {reach}")
            })?;
            let size = dilated + low + high;
            self.ensure(size >= 0, || format!("crops dimension {d} to size {size}"))?;
            match usize::try_from(size) {
                Ok(size) => sizes.push(size),
                Err(_) => return Err(self.fail(format!("dimension {d} grows to {size}"))),
            }
        }
        Ok(Shape::Array(resized(from, sizes, Some)))
    }

    /// concatenate C1 to C6.
    pub(super) fn concatenate(&self, dim: usize) -> Result<Shape> {
        self.at_least(1)?;
        let arrays = self.arrays(0, self.operands.len())?;
        let first = arrays[0];
        self.dim("dimensions", dim, first)?;
        let mut out = bare(first);
        for (i, array) in arrays.iter().enumerate().skip(1) {
            self.same_type(0, first.ty, i, array.ty)?;
            let same = array.rank() == first.rank()
                && (0..first.rank()).all(|d| d == dim || array.dims[d] == first.dims[d]);
            self.ensure(same, || {
                let (found, wanted) = (list(&array.dims), list(&first.dims));
                format!(
                    "operand {i} has dimensions {found}, operand 0 has {wanted}; only dimension {dim} may differ"
                )
            })?;
            out.dims[dim] = match out.dims[dim].checked_add(array.dims[dim]) {
                Some(size) => size,
                None => return Err(self.fail("the sizes add up to too much")),
            };
            if array.is_dynamic() {
                out.dynamic = (0..out.rank())
                    .map(|d| out.is_dynamic_dim(d) || array.is_dynamic_dim(d))
                    .collect();
            }
        }
        Ok(Shape::Array(out))
    }

    /// get_dimension_size C1: an s32 scalar.
    pub(super) fn get_dimension_size(&self, dim: usize) -> Result<Shape> {
        self.arity(1)?;
        self.dim("dimensions", dim, self.array(0)?)?;
        Ok(Shape::scalar(PrimitiveType::S32))
    }

    /// set_dimension_size: the dimension becomes dynamic, unless the size is the declared one.
    pub(super) fn set_dimension_size(&self, dim: usize) -> Result<Shape> {
        self.arity(2)?;
        let array = self.array(0)?;
        self.dim("dimensions", dim, array)?;
        let size = self.scalar(1)?;
        self.ensure(size.ty == PrimitiveType::S32, || {
            format!("size has element type {} instead of s32", size.ty)
        })?;
        let mut out = bare(array);
        let stated = self.declared.and_then(Shape::as_array);
        if !stated.is_some_and(|s| s.dims == out.dims && !s.is_dynamic_dim(dim)) {
            out.dynamic.resize(out.rank(), false);
            out.dynamic[dim] = true;
        }
        Ok(Shape::Array(out))
    }

    /// dynamic_reshape C1, C2: the declared shape; one s32 size a dimension.
    pub(super) fn dynamic_reshape(&self) -> Result<Shape> {
        self.at_least(1)?;
        let (from, to) = (self.array(0)?, self.declared_array()?);
        self.same_reshaped(from, to)?;
        self.arity(1 + to.rank())?;
        for i in 1..self.operands.len() {
            let size = self.scalar(i)?;
            self.ensure(size.ty == PrimitiveType::S32, || {
                format!("size {} has element type {} instead of s32", i - 1, size.ty)
            })?;
        }
        Ok(Shape::Array(bare(to)))
    }
}
