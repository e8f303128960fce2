//! Host values: storage and element access.
//!
//! An array is dense, row-major in logical order whatever its shape's layout says, little-endian,
//! each element in its own bytes (sub-byte types take one byte an element, sign-extended for signed
//! types and zero-extended otherwise). Cloning is cheap: the bytes are shared.
//!
//! An array with dynamic dimensions has all elements up to the bounds that its shape says, and real
//! sizes; see [`crate::literal::dynamic`].

use std::sync::Arc;

use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// A host value of any shape.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// An array and its bytes.
    Array(ArrayLiteral),
    /// A tuple of values.
    Tuple(Vec<Literal>),
    /// An ordering token.
    Token,
}

/// An array value. The bytes are `element_count * byte_width` long.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayLiteral {
    shape: ArrayShape,
    data: Arc<Vec<u8>>,
    /// Real sizes, where some may be less than the bounds.
    sizes: Option<Box<[usize]>>,
}

impl ArrayLiteral {
    /// An array over these bytes.
    ///
    /// # Panics
    /// When the number of bytes is not `element_count * byte_width`.
    pub fn new(shape: ArrayShape, data: Vec<u8>) -> Self {
        assert_eq!(
            data.len(),
            shape.element_count() * shape.ty.byte_width(),
            "bytes fit the shape"
        );
        Self {
            shape,
            data: Arc::new(data),
            sizes: None,
        }
    }
    /// An array of zeros.
    pub fn zeros(shape: ArrayShape) -> Self {
        let size = shape.element_count() * shape.ty.byte_width();
        Self {
            shape,
            data: Arc::new(vec![0; size]),
            sizes: None,
        }
    }
    /// Element type, dimensions, layout (which says nothing of this value's storage).
    pub fn shape(&self) -> &ArrayShape {
        &self.shape
    }
    /// Element type.
    pub fn ty(&self) -> PrimitiveType {
        self.shape.ty
    }
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.data
    }
    /// The bytes, to be changed; copies them when they are shared.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        Arc::<Vec<u8>>::make_mut(&mut self.data).as_mut_slice()
    }
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.element_count()
    }
    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The bytes of the element at a row-major position.
    pub fn element(&self, linear: usize) -> &[u8] {
        let width = self.ty().byte_width();
        &self.data[linear * width..(linear + 1) * width]
    }
    /// The same bytes under another shape of equal element count and type.
    #[must_use]
    pub fn reshaped(&self, shape: ArrayShape) -> Self {
        assert_eq!(
            shape.element_count(),
            self.len(),
            "a reshape keeps the element count"
        );
        Self {
            shape,
            data: Arc::clone(&self.data),
            sizes: None,
        }
    }
    /// The same elements, of which those within `sizes` are real. Dimensions of the shape that are
    /// not dynamic are real up to their bounds.
    #[must_use]
    pub fn with_sizes(mut self, sizes: &[usize]) -> Self {
        assert_eq!(sizes.len(), self.shape.rank(), "one size a dimension");
        let shape = &self.shape;
        let real = sizes.iter().enumerate().map(|(d, &size)| {
            let bound = shape.dims[d];
            if shape.is_dynamic_dim(d) {
                size.min(bound)
            } else {
                bound
            }
        });
        self.sizes = shape.is_dynamic().then(|| real.collect());
        self
    }
    /// The real sizes.
    pub fn sizes(&self) -> &[usize] {
        self.sizes.as_deref().unwrap_or(&self.shape.dims)
    }
}

impl Literal {
    /// The array, when it is one.
    pub fn as_array(&self) -> Option<&ArrayLiteral> {
        match self {
            Self::Array(array) => Some(array),
            Self::Tuple(_) | Self::Token => None,
        }
    }
    /// The tuple's elements, when it is one.
    pub fn as_tuple(&self) -> Option<&[Self]> {
        match self {
            Self::Tuple(elements) => Some(elements),
            Self::Array(_) | Self::Token => None,
        }
    }
    /// The shape of the value.
    pub fn shape(&self) -> Shape {
        match self {
            Self::Array(array) => Shape::Array(array.shape.clone()),
            Self::Tuple(elements) => Shape::Tuple(elements.iter().map(Self::shape).collect()),
            Self::Token => Shape::Token,
        }
    }
}
