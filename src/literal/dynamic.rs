//! Dynamic arrays: from their real elements and back.
//!
//! Outside the programs a dynamic array is one of its real sizes, static and no larger than the
//! bounds. Inside the evaluator it has all elements up to the bounds.

use crate::literal::ArrayLiteral;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::index::for_each_index;
use crate::shape::index::row_major_strides;

/// Whether an array of these dimensions is a value of the shape: static dimensions are equal, dynamic
/// ones within the bounds.
pub fn fits(dims: &[usize], shape: &ArrayShape) -> bool {
    dims.len() == shape.rank()
        && dims.iter().enumerate().all(|(d, &size)| {
            size == shape.dims[d] || (shape.is_dynamic_dim(d) && size < shape.dims[d])
        })
}

/// `[2, <=3]`
pub fn bounds(shape: &ArrayShape) -> String {
    let dims = shape.dims.iter().enumerate().map(|(d, size)| {
        let bound = if shape.is_dynamic_dim(d) { "<=" } else { "" };
        format!("{bound}{size}")
    });
    format!("[{}]", dims.collect::<Vec<_>>().join(", "))
}

/// The shape of a value of these sizes, static; the layout is kept.
pub fn real_shape(shape: &ArrayShape, sizes: &[usize]) -> ArrayShape {
    let mut real = shape.clone();
    real.dims = sizes.into();
    real.dynamic.clear();
    real
}

impl ArrayLiteral {
    /// The real elements alone, as a static array of the real sizes.
    #[must_use]
    pub fn real(&self) -> Self {
        let shape = real_shape(self.shape(), self.sizes());
        if shape.dims == self.shape().dims {
            return self.reshaped(shape);
        }
        let width = self.ty().byte_width();
        let mut data = Vec::with_capacity(shape.element_count() * width);
        let strides = row_major_strides(&self.shape().dims);
        for_each_index(&shape.dims, |at| {
            data.extend_from_slice(self.element(position(at, &strides)))
        });
        Self::new(shape, data)
    }
    /// All elements up to the bounds, as a static array.
    #[must_use]
    pub fn whole(&self) -> Self {
        let dims: Dims = self.shape().dims.clone();
        self.reshaped(real_shape(self.shape(), &dims))
    }
    /// The elements of this static array as the real ones of an array of that shape, and beyond them
    /// those of `beyond`, or zeros.
    ///
    /// # Panics
    /// When the array does not fit the shape.
    #[must_use]
    pub fn within(&self, shape: &ArrayShape, beyond: Option<&Self>) -> Self {
        let dims = &self.shape().dims;
        assert!(fits(dims, shape), "sizes are within the bounds");
        if *dims == shape.dims {
            return self.reshaped(shape.clone()).with_sizes(dims);
        }
        let beyond = beyond.filter(|b| b.ty() == shape.ty && b.shape().dims == shape.dims);
        let mut out = match beyond {
            Some(beyond) => beyond.reshaped(shape.clone()),
            None => Self::zeros(shape.clone()),
        };
        let width = self.ty().byte_width();
        let strides = row_major_strides(&shape.dims);
        let bytes = out.bytes_mut();
        let mut i = 0;
        for_each_index(dims, |at| {
            let to = position(at, &strides) * width;
            bytes[to..to + width].copy_from_slice(self.element(i));
            i += 1;
        });
        out.with_sizes(dims)
    }
}

fn position(at: &[usize], strides: &[usize]) -> usize {
    at.iter().zip(strides).map(|(&i, &stride)| i * stride).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::PrimitiveType;

    fn bounded() -> ArrayShape {
        let mut shape = ArrayShape::new(PrimitiveType::U8, [2, 3]);
        shape.dynamic = [false, true].into_iter().collect();
        shape
    }

    #[test]
    fn real_elements_go_in_and_out() {
        let real = ArrayLiteral::new(ArrayShape::new(PrimitiveType::U8, [2, 2]), vec![1, 2, 3, 4]);
        let inside = real.within(&bounded(), None);
        assert_eq!(inside.bytes(), [1, 2, 0, 3, 4, 0]);
        assert_eq!(inside.sizes(), [2, 2]);
        assert_eq!(inside.real(), real);
        let beyond = ArrayLiteral::new(bounded(), vec![9; 6]);
        assert_eq!(
            real.within(&bounded(), Some(&beyond)).bytes(),
            [1, 2, 9, 3, 4, 9]
        );
        assert_eq!(inside.whole().shape().dims.as_slice(), [2, 3]);
    }

    #[test]
    fn only_dynamic_dimensions_may_be_smaller() {
        for (dims, wanted) in [
            (&[2, 3][..], true),
            (&[2, 0], true),
            (&[1, 3], false),
            (&[2, 4], false),
            (&[2], false),
        ] {
            assert_eq!(fits(dims, &bounded()), wanted, "{dims:?}");
        }
    }
}
