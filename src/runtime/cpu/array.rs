//! Typed views of array bytes for the library thunks: physical strides, gathering into a wanted
//! order of dimensions, scattering back.

use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::index::advance;

/// A number a library thunk computes with: how elements are read and written.
pub trait Element: Copy + Default + Send + Sync {
    /// Bytes of a stored element.
    const BYTES: usize;
    /// Reads a stored element.
    fn load(bytes: &[u8]) -> Self;
    /// Writes a stored element.
    fn store(self, bytes: &mut [u8]);
}

macro_rules! plain_elements {
    ($($ty:ty, $bytes:literal;)*) => {$(
        impl Element for $ty {
            const BYTES: usize = $bytes;
            fn load(bytes: &[u8]) -> Self {
                let bytes = bytes.first_chunk::<$bytes>().expect("an element's bytes");
                Self::from_le_bytes(*bytes)
            }
            fn store(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

plain_elements! {
    f32, 4;
    f64, 8;
    i32, 4;
}

/// Distance in elements between neighbours along each logical dimension.
pub fn physical_strides(shape: &ArrayShape) -> Dims {
    let mut strides: Dims = smallvec::smallvec![0; shape.rank()];
    let mut stride = 1;
    for &dim in &shape.layout_or_default().minor_to_major {
        strides[dim] = stride;
        stride *= shape.dims[dim];
    }
    strides
}

/// Calls `visit` with the physical position of each element, the dimensions `order` major first.
pub fn for_each_position(shape: &ArrayShape, order: &[usize], mut visit: impl FnMut(usize)) {
    if shape.element_count() == 0 {
        return;
    }
    let strides = physical_strides(shape);
    let dims: Dims = order.iter().map(|&d| shape.dims[d]).collect();
    let strides: Dims = order.iter().map(|&d| strides[d]).collect();
    let mut index: Dims = smallvec::smallvec![0; dims.len()];
    loop {
        visit(index.iter().zip(&strides).map(|(i, s)| i * s).sum());
        if !advance(&dims, &mut index) {
            return;
        }
    }
}

/// The elements with the dimensions `order` major first, each read by `load`.
pub fn gather<T>(
    bytes: &[u8],
    width: usize,
    shape: &ArrayShape,
    order: &[usize],
    load: impl Fn(&[u8]) -> T,
) -> Vec<T> {
    let mut out = Vec::with_capacity(shape.element_count());
    for_each_position(shape, order, |at| {
        out.push(load(&bytes[at * width..(at + 1) * width]));
    });
    out
}

/// Writes elements that come with the dimensions `order` major first.
pub fn scatter<T: Copy>(
    values: &[T],
    bytes: &mut [u8],
    width: usize,
    shape: &ArrayShape,
    order: &[usize],
    store: impl Fn(T, &mut [u8]),
) {
    let mut values = values.iter();
    for_each_position(shape, order, |at| {
        if let Some(value) = values.next() {
            store(*value, &mut bytes[at * width..(at + 1) * width]);
        }
    });
}
