//! Index arithmetic: linear positions, strides, windows.

use smallvec::smallvec;

use crate::shape::Dims;

/// Row-major strides in elements of an array with these dimensions.
pub fn row_major_strides(dims: &[usize]) -> Dims {
    let mut strides: Dims = smallvec![1; dims.len()];
    for d in (1..dims.len()).rev() {
        strides[d - 1] = strides[d] * dims[d];
    }
    strides
}

/// The row-major position of a multi-index.
pub fn linear_index(dims: &[usize], index: &[usize]) -> usize {
    dims.iter()
        .zip(index)
        .fold(0, |linear, (&dim, &i)| linear * dim + i)
}

/// The multi-index of a row-major position.
pub fn multi_index(dims: &[usize], linear: usize) -> Dims {
    let mut index: Dims = smallvec![0; dims.len()];
    let mut rest = linear;
    for d in (0..dims.len()).rev() {
        index[d] = rest % dims[d];
        rest /= dims[d];
    }
    index
}

/// Moves `index` to the next position in row-major order; false after the last one.
pub fn advance(dims: &[usize], index: &mut [usize]) -> bool {
    for d in (0..dims.len()).rev() {
        index[d] += 1;
        if index[d] < dims[d] {
            return true;
        }
        index[d] = 0;
    }
    false
}

/// Calls `visit` with every multi-index in row-major order; not at all when a dimension is empty.
pub fn for_each_index(dims: &[usize], mut visit: impl FnMut(&[usize])) {
    if dims.contains(&0) {
        return;
    }
    let mut index: Dims = smallvec![0; dims.len()];
    loop {
        visit(&index);
        if !advance(dims, &mut index) {
            return;
        }
    }
}

/// The inverse of a permutation: `inverse[p[i]] == i`.
pub fn inverse_permutation(permutation: &[usize]) -> Dims {
    let mut inverse: Dims = smallvec![0; permutation.len()];
    for (i, &p) in permutation.iter().enumerate() {
        inverse[p] = i;
    }
    inverse
}

/// Whether the numbers are each of `0..n` once.
pub fn is_permutation(permutation: &[usize]) -> bool {
    let mut seen = vec![false; permutation.len()];
    permutation
        .iter()
        .all(|&p| p < seen.len() && !std::mem::replace(&mut seen[p], true))
}
