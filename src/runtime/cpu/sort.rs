//! Sorting by a comparator of the program, and the largest elements of rows.
//!
//! The standard library's sort may panic on an order that is not total, and comparators on NaN are
//! free to be none, so this is a plain bottom-up merge sort; it is stable.
#![allow(
    unsafe_code,
    reason = "calls comparators and moves elements by address"
)]

use std::cmp::Ordering;
use std::cmp::Reverse;

use crate::base::Result;
use crate::runtime::cpu::array::physical_strides;
use crate::runtime::cpu::call::ComparatorFn;
use crate::runtime::cpu::call::goes_before;
use crate::runtime::cpu::pool::Pool;
use crate::shape::ArrayShape;

/// Runs up to this long are sorted by insertion.
const RUN: usize = 12;

/// One array of a sort.
#[derive(Clone, Copy)]
pub struct SortInput {
    /// First byte.
    pub data: *mut u8,
    /// Bytes of an element.
    pub width: usize,
}

/// A sort with everything worked out.
pub struct SortPlan {
    comparator: ComparatorFn,
    inputs: Vec<SortInput>,
    /// Elements along the sorted dimension, and their distance.
    length: usize,
    stride: usize,
    /// Lines: for each remaining dimension its size and distance.
    lines: Vec<(usize, usize)>,
}

// SAFETY: the addresses are those of a bound program; lines are disjoint, and `run` is called by
// one thread at a time.
unsafe impl Send for SortPlan {}
// SAFETY: as above.
unsafe impl Sync for SortPlan {}

impl SortPlan {
    /// A sort of arrays of this shape's dimensions and layout along `dimension`.
    pub fn new(
        comparator: ComparatorFn,
        inputs: Vec<SortInput>,
        shape: &ArrayShape,
        dimension: usize,
    ) -> Self {
        let strides = physical_strides(shape);
        let others = (0..shape.rank()).filter(|&d| d != dimension);
        Self {
            comparator,
            inputs,
            length: shape.dims[dimension],
            stride: strides[dimension],
            lines: others.map(|d| (shape.dims[d], strides[d])).collect(),
        }
    }

    /// Sorts every line.
    ///
    /// # Safety
    /// The arrays have the shape the plan was made for, do not overlap, and the comparator takes two
    /// elements of each.
    pub unsafe fn run(&self, pool: &Pool) -> Result<()> {
        let count: usize = self.lines.iter().map(|(size, _)| size).product();
        if count == 0 || self.length < 2 {
            return Ok(());
        }
        pool.run(count as u64, &|line| {
            let mut rest = line as usize;
            let mut offset = 0;
            for (size, stride) in self.lines.iter().rev() {
                offset += rest % size * stride;
                rest /= size;
            }
            // SAFETY: the caller's promise; each line has its own elements.
            unsafe { self.sort_line(offset) };
        })
    }

    /// # Safety
    /// As for [`SortPlan::run`].
    unsafe fn sort_line(&self, offset: usize) {
        let columns: Vec<Vec<u8>> = self
            .inputs
            .iter()
            .map(|input| {
                let mut column = vec![0; self.length * input.width];
                for (i, element) in column.chunks_exact_mut(input.width).enumerate() {
                    let at = (offset + i * self.stride) * input.width;
                    // SAFETY: element `i` of the line.
                    unsafe {
                        element
                            .as_mut_ptr()
                            .copy_from_nonoverlapping(input.data.add(at), input.width)
                    };
                }
                column
            })
            .collect();
        let mut operands = vec![std::ptr::null(); 2 * columns.len()];
        let order = merge_sort(self.length, |left, right| {
            for (c, column) in columns.iter().enumerate() {
                let width = self.inputs[c].width;
                operands[2 * c] = column[left * width..].as_ptr();
                operands[2 * c + 1] = column[right * width..].as_ptr();
            }
            // SAFETY: the caller's promise.
            unsafe { goes_before(self.comparator, &operands) }
        });
        for (input, column) in self.inputs.iter().zip(&columns) {
            for (i, &from) in order.iter().enumerate() {
                let at = (offset + i * self.stride) * input.width;
                let element = &column[from * input.width..][..input.width];
                // SAFETY: element `i` of the line.
                unsafe {
                    input
                        .data
                        .add(at)
                        .copy_from_nonoverlapping(element.as_ptr(), input.width)
                };
            }
        }
    }
}

/// The stable order of `0..count`; `before(a, b)` says whether `a` must go before `b`.
fn merge_sort(count: usize, mut before: impl FnMut(usize, usize) -> bool) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for run in order.chunks_mut(RUN) {
        for i in 1..run.len() {
            let mut at = i;
            while at > 0 && before(run[at], run[at - 1]) {
                run.swap(at, at - 1);
                at -= 1;
            }
        }
    }
    let mut merged = vec![0; count];
    let mut width = RUN;
    while width < count {
        for (source, target) in order.chunks(2 * width).zip(merged.chunks_mut(2 * width)) {
            let (left, right) = source.split_at(width.min(source.len()));
            let (mut l, mut r) = (0, 0);
            for slot in target {
                let take_right = l == left.len() || (r < right.len() && before(right[r], left[l]));
                if take_right {
                    *slot = right[r];
                    r += 1;
                } else {
                    *slot = left[l];
                    l += 1;
                }
            }
        }
        std::mem::swap(&mut order, &mut merged);
        width *= 2;
    }
    order
}

/// Orders f32 as integers do: NaN with a sign below all, without one above all.
fn total_order(value: f32) -> i32 {
    let bits = value.to_bits().cast_signed();
    bits ^ ((bits >> 31).cast_unsigned() >> 1).cast_signed()
}

/// The `k` largest elements of each row of `size`, largest first, equal ones by position.
pub fn top_k(values: &[f32], size: usize, k: usize, output: &mut [f32], indices: &mut [i32]) {
    if size == 0 || k == 0 {
        return;
    }
    let rows = values.chunks_exact(size);
    let outputs = output.chunks_exact_mut(k).zip(indices.chunks_exact_mut(k));
    for (row, (output, indices)) in rows.zip(outputs) {
        let key = |&i: &usize| (Reverse(total_order(row[i])), i);
        let by_key = |a: &usize, b: &usize| -> Ordering { key(a).cmp(&key(b)) };
        let mut order: Vec<usize> = (0..size).collect();
        if k < size {
            order.select_nth_unstable_by(k, by_key);
            order.truncate(k);
        }
        order.sort_unstable_by(by_key);
        for ((o, i), from) in output.iter_mut().zip(indices).zip(order) {
            *o = row[from];
            *i = i32::try_from(from).unwrap_or(i32::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::c_void;

    #[test]
    fn merge_sort_is_stable_and_survives_a_senseless_order() {
        let keys: Vec<usize> = (0..500).map(|i| i * 7919 % 13).collect();
        let order = merge_sort(keys.len(), |a, b| keys[a] < keys[b]);
        let mut wanted: Vec<usize> = (0..500).collect();
        wanted.sort_by_key(|&i| keys[i]);
        assert_eq!(order, wanted);
        for senseless in [true, false] {
            let mut order = merge_sort(100, |_, _| senseless);
            order.sort_unstable();
            assert_eq!(order, (0..100).collect::<Vec<_>>());
        }
    }

    #[test]
    fn two_arrays_sort_together_along_a_strided_dimension() {
        unsafe extern "C" fn less(
            result: *mut bool,
            _: *const c_void,
            operands: *const *const u8,
            _: *const c_void,
            _: *const c_void,
            _: *const c_void,
        ) {
            // SAFETY: the sort passes two operands for each of its two arrays.
            unsafe {
                let (left, right) = (*operands, *operands.add(1));
                *result =
                    left.cast::<i16>().read_unaligned() < right.cast::<i16>().read_unaligned();
            }
        }
        let mut shape = ArrayShape::new(crate::shape::PrimitiveType::S16, [3, 2]);
        shape.layout = Some(crate::shape::Layout::row_major(2));
        let mut keys: [i16; 6] = [3, -1, 2, 5, 1, 4];
        let mut values: [u8; 6] = [0, 1, 2, 3, 4, 5];
        let inputs = vec![
            SortInput {
                data: keys.as_mut_ptr().cast(),
                width: 2,
            },
            SortInput {
                data: values.as_mut_ptr(),
                width: 1,
            },
        ];
        let plan = SortPlan::new(less, inputs, &shape, 0);
        // SAFETY: two arrays of six elements each.
        unsafe { plan.run(&Pool::new(2).unwrap()) }.unwrap();
        assert_eq!(keys, [1, -1, 2, 4, 3, 5]);
        assert_eq!(values, [4, 1, 2, 5, 0, 3]);
    }

    #[test]
    fn top_k_orders_nan_and_ties() {
        let values = [1.0, f32::NAN, 3.0, 3.0, -0.0, 0.0];
        let (mut output, mut indices) = ([0.0; 5], [0; 5]);
        top_k(&values, 6, 5, &mut output, &mut indices);
        assert_eq!(indices, [1, 2, 3, 0, 5]);
        assert!(output[0].is_nan());
    }
}
