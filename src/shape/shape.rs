//! Shapes of values: arrays, tuples, tokens.

use smallvec::SmallVec;

use crate::shape::Layout;
use crate::shape::PrimitiveType;

/// Dimension sizes, or dimension numbers.
pub type Dims = SmallVec<[usize; 6]>;

/// A path into nested tuples; empty is the value itself.
pub type ShapeIndex = SmallVec<[usize; 2]>;

/// An array's element type, dimensions and, once it has one, layout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArrayShape {
    /// Element type.
    pub ty: PrimitiveType,
    /// Sizes, logical order. For a dynamic dimension, its upper bound.
    pub dims: Dims,
    /// Which dimensions may be smaller at run time; empty when none is.
    pub dynamic: SmallVec<[bool; 6]>,
    /// Physical order; absent until one is given or assigned.
    pub layout: Option<Layout>,
}

impl ArrayShape {
    /// The most bytes an array, and all arrays of a tuple together, may take.
    pub const MAX_BYTES: usize = 1 << 60;
    /// A static array without a layout.
    pub fn new(ty: PrimitiveType, dims: impl IntoIterator<Item = usize>) -> Self {
        let dims = dims.into_iter().collect();
        Self {
            ty,
            dims,
            dynamic: SmallVec::new(),
            layout: None,
        }
    }
    /// A rank-0 array.
    pub fn scalar(ty: PrimitiveType) -> Self {
        Self::new(ty, [])
    }
    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }
    /// Number of elements, with dynamic dimensions at their bounds.
    pub fn element_count(&self) -> usize {
        if self.dims.contains(&0) {
            return 0;
        }
        self.dims.iter().product()
    }
    /// The element count, unless the array is larger than any memory. Dimensions of size zero do not
    /// excuse the others, whose products are strides.
    pub fn checked_element_count(&self) -> Option<usize> {
        let mut dims = self.dims.iter();
        let bytes = dims.try_fold(self.ty.byte_width(), |bytes, &dim| {
            bytes.checked_mul(dim.max(1))
        })?;
        (bytes <= Self::MAX_BYTES).then(|| self.element_count())
    }
    /// Bytes of the dense array in memory; sub-byte elements are packed. A dynamic array has room
    /// for all elements up to its bounds, and its sizes after them, an s32 a dimension.
    pub fn byte_size(&self) -> usize {
        let sizes = if self.is_dynamic() {
            4 * self.rank()
        } else {
            0
        };
        self.data_size() + sizes
    }
    /// Bytes of the elements alone.
    pub fn data_size(&self) -> usize {
        (self.element_count() * self.ty.bit_width_in_memory()).div_ceil(8)
    }
    /// Whether dimension `dim` may be smaller at run time.
    pub fn is_dynamic_dim(&self, dim: usize) -> bool {
        self.dynamic.get(dim).copied().unwrap_or(false)
    }
    /// Whether any dimension may be smaller at run time.
    pub fn is_dynamic(&self) -> bool {
        self.dynamic.iter().any(|&d| d)
    }
    /// The same dimensions with another element type, layout kept.
    #[must_use]
    pub fn with_type(&self, ty: PrimitiveType) -> Self {
        Self { ty, ..self.clone() }
    }
    /// Equal element type and dimensions, whatever the layouts.
    pub fn same_ignoring_layout(&self, other: &Self) -> bool {
        self.ty == other.ty && self.same_dims(other)
    }
    /// Equal dimensions, whatever the element types and layouts.
    pub fn same_dims(&self, other: &Self) -> bool {
        self.dims == other.dims
            && (0..self.rank()).all(|d| self.is_dynamic_dim(d) == other.is_dynamic_dim(d))
    }
    /// The layout, or row-major when none is set.
    pub fn layout_or_default(&self) -> Layout {
        self.layout
            .clone()
            .unwrap_or_else(|| Layout::row_major(self.rank()))
    }
}

impl PrimitiveType {
    /// Bits an element takes in a dense array: sub-byte integers and floats are packed
    /// (6-bit floats take a byte).
    pub fn bit_width_in_memory(self) -> usize {
        if self.bit_width() == 6 {
            8
        } else {
            self.bit_width()
        }
    }
    /// Whether elements share bytes in a dense array.
    pub fn is_packed(self) -> bool {
        self.bit_width_in_memory() < 8
    }
}

/// The shape of any value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// An array.
    Array(ArrayShape),
    /// A tuple of shapes, possibly empty, possibly nested.
    Tuple(Vec<Shape>),
    /// An ordering token; no data.
    Token,
    /// A value only custom calls understand.
    Opaque,
}

impl Shape {
    /// A static array without a layout.
    pub fn array(ty: PrimitiveType, dims: impl IntoIterator<Item = usize>) -> Self {
        Self::Array(ArrayShape::new(ty, dims))
    }
    /// A rank-0 array.
    pub fn scalar(ty: PrimitiveType) -> Self {
        Self::Array(ArrayShape::scalar(ty))
    }
    /// The array shape, when it is one.
    pub fn as_array(&self) -> Option<&ArrayShape> {
        match self {
            Self::Array(array) => Some(array),
            Self::Tuple(_) | Self::Token | Self::Opaque => None,
        }
    }
    /// The tuple's elements, when it is one.
    pub fn as_tuple(&self) -> Option<&[Self]> {
        match self {
            Self::Tuple(elements) => Some(elements),
            Self::Array(_) | Self::Token | Self::Opaque => None,
        }
    }
    /// Whether it is a tuple.
    pub fn is_tuple(&self) -> bool {
        matches!(self, Self::Tuple(_))
    }
    /// The part at `index`, when there is one.
    pub fn at(&self, index: &[usize]) -> Option<&Self> {
        index
            .iter()
            .try_fold(self, |shape, &i| shape.as_tuple()?.get(i))
    }
    /// Every leaf (all that is not a tuple) with its index, in order.
    pub fn leaves(&self) -> Vec<(ShapeIndex, &Self)> {
        let mut out = Vec::new();
        self.collect(&mut ShapeIndex::new(), true, &mut out);
        out
    }
    /// Every part, tuples before their elements, with its index.
    pub fn parts(&self) -> Vec<(ShapeIndex, &Self)> {
        let mut out = Vec::new();
        self.collect(&mut ShapeIndex::new(), false, &mut out);
        out
    }
    fn collect<'a>(
        &'a self,
        index: &mut ShapeIndex,
        leaves_only: bool,
        out: &mut Vec<(ShapeIndex, &'a Self)>,
    ) {
        if !leaves_only || !self.is_tuple() {
            out.push((index.clone(), self));
        }
        for (i, element) in self.as_tuple().unwrap_or_default().iter().enumerate() {
            index.push(i);
            element.collect(index, leaves_only, out);
            index.pop();
        }
    }
    /// Equal structure, element types and dimensions, whatever the layouts.
    pub fn same_ignoring_layout(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Array(a), Self::Array(b)) => a.same_ignoring_layout(b),
            (Self::Tuple(a), Self::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same_ignoring_layout(b))
            }
            (Self::Token, Self::Token) | (Self::Opaque, Self::Opaque) => true,
            (Self::Array(_) | Self::Tuple(_) | Self::Token | Self::Opaque, _) => false,
        }
    }
    /// Changes every array in it.
    pub fn for_each_array_mut(&mut self, change: &mut impl FnMut(&mut ArrayShape)) {
        match self {
            Self::Array(array) => change(array),
            Self::Tuple(elements) => elements
                .iter_mut()
                .for_each(|e| e.for_each_array_mut(change)),
            Self::Token | Self::Opaque => {}
        }
    }
    /// The same shape with all layouts dropped.
    #[must_use]
    pub fn without_layout(&self) -> Self {
        let mut shape = self.clone();
        shape.for_each_array_mut(&mut |array| array.layout = None);
        shape
    }
    /// The same shape with a row-major layout wherever none is set.
    #[must_use]
    pub fn with_default_layout(&self) -> Self {
        let mut shape = self.clone();
        shape.for_each_array_mut(&mut |array| array.layout = Some(array.layout_or_default()));
        shape
    }
    /// Bytes of all arrays in it, tuple tables not counted.
    pub fn byte_size(&self) -> usize {
        self.leaves()
            .iter()
            .filter_map(|(_, s)| s.as_array())
            .map(ArrayShape::byte_size)
            .sum()
    }
}

/// Parameters and result of a computation or program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramShape {
    /// Parameter shapes, in order.
    pub parameters: Vec<Shape>,
    /// Parameter names, in order.
    pub parameter_names: Vec<String>,
    /// Result shape.
    pub result: Shape,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_no_memory_holds_are_told() {
        let count = |dims: &[usize]| {
            let shape = ArrayShape::new(PrimitiveType::F32, dims.iter().copied());
            shape.checked_element_count()
        };
        assert_eq!(count(&[2, 3]), Some(6));
        assert_eq!(count(&[]), Some(1));
        assert_eq!(count(&[0, 3]), Some(0));
        assert_eq!(count(&[1 << 58, 0]), Some(0));
        assert_eq!(count(&[(1 << 58) + 1, 0]), None);
        let huge = isize::MAX.unsigned_abs();
        for dims in [
            &[0, huge][..],
            &[huge, 0],
            &[huge, huge, 0],
            &[huge],
            &[1 << 40, 0, 1 << 40],
        ] {
            assert_eq!(count(dims), None, "{dims:?}");
        }
        let zero = ArrayShape::new(PrimitiveType::C128, [huge, huge, 0]);
        assert_eq!((zero.element_count(), zero.byte_size()), (0, 0));
    }
}
