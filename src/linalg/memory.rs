//! Numbers from and to the memory of a call.

use crate::linalg::scalar::Scalar;

/// A number as it lies in memory.
pub(super) trait Element {
    /// Bytes.
    const SIZE: usize;
    /// The distance from one to the next larger number.
    const ULP: f64;
    /// The smallest number whose reciprocal is finite.
    const SMALLEST: f64;
    /// Reads one.
    fn load(bytes: &[u8]) -> f64;
    /// Writes one.
    fn store(value: f64, bytes: &mut [u8]);
}

impl Element for f32 {
    const SIZE: usize = 4;
    const ULP: f64 = f32::EPSILON as f64;
    const SMALLEST: f64 = f32::MIN_POSITIVE as f64;
    fn load(bytes: &[u8]) -> f64 {
        let mut number = [0; 4];
        number.copy_from_slice(bytes);
        f64::from(f32::from_le_bytes(number))
    }
    fn store(value: f64, bytes: &mut [u8]) {
        bytes.copy_from_slice(&(value as f32).to_le_bytes());
    }
}

impl Element for f64 {
    const SIZE: usize = 8;
    const ULP: f64 = f64::EPSILON;
    const SMALLEST: f64 = f64::MIN_POSITIVE;
    fn load(bytes: &[u8]) -> f64 {
        let mut number = [0; 8];
        number.copy_from_slice(bytes);
        Self::from_le_bytes(number)
    }
    fn store(value: f64, bytes: &mut [u8]) {
        bytes.copy_from_slice(&value.to_le_bytes());
    }
}

/// Reads operands one after the other.
pub(super) struct Reader<'a> {
    rest: std::slice::Iter<'a, &'a [u8]>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(operands: &'a [&'a [u8]]) -> Self {
        Self {
            rest: operands.iter(),
        }
    }

    /// The next operand: `count` numbers.
    pub(super) fn numbers<T: Scalar, E: Element>(&mut self, count: usize) -> Vec<T> {
        let bytes = self.rest.next().copied().unwrap_or_default();
        let mut out = vec![T::zero(); count];
        if T::IS_COMPLEX {
            for (x, bytes) in out.iter_mut().zip(bytes.chunks_exact(2 * E::SIZE)) {
                let (re, im) = bytes.split_at(E::SIZE);
                *x = T::from_parts(E::load(re), E::load(im));
            }
        } else {
            for (x, bytes) in out.iter_mut().zip(bytes.chunks_exact(E::SIZE)) {
                *x = T::real(E::load(bytes));
            }
        }
        out
    }

    /// The next operand, of integers.
    pub(super) fn ints(&mut self) -> Vec<i32> {
        let bytes = self.rest.next().copied().unwrap_or_default();
        let numbers = bytes.chunks_exact(4).map(|bytes| {
            let mut number = [0; 4];
            number.copy_from_slice(bytes);
            i32::from_le_bytes(number)
        });
        numbers.collect()
    }
}

/// Writes results one after the other.
pub(super) struct Writer<'a, 'b> {
    rest: std::slice::IterMut<'a, &'b mut [u8]>,
}

impl<'a, 'b> Writer<'a, 'b> {
    pub(super) fn new(results: &'a mut [&'b mut [u8]]) -> Self {
        Self {
            rest: results.iter_mut(),
        }
    }

    /// The next result; what is not given is zero.
    pub(super) fn numbers<T: Scalar, E: Element>(&mut self, numbers: &[T]) {
        let Some(bytes) = self.rest.next() else {
            return;
        };
        let width = if T::IS_COMPLEX { 2 * E::SIZE } else { E::SIZE };
        let used = (numbers.len() * width).min(bytes.len());
        bytes[used..].fill(0);
        for (x, bytes) in numbers.iter().zip(bytes.chunks_exact_mut(width)) {
            let (re, im) = bytes.split_at_mut(E::SIZE);
            E::store(x.re(), re);
            if T::IS_COMPLEX {
                E::store(x.im(), im);
            }
        }
    }

    /// The next result, of integers.
    pub(super) fn ints(&mut self, numbers: &[i32]) {
        if let Some(bytes) = self.rest.next() {
            for (x, bytes) in numbers.iter().zip(bytes.chunks_exact_mut(4)) {
                bytes.copy_from_slice(&x.to_le_bytes());
            }
        }
    }
}
