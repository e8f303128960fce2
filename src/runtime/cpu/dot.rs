//! Matrix products that a bundle leaves to the runtime's library.
//!
//! Operands are packed into `[batch, m, k]` and `[batch, k, n]` of the accumulation type; rows are
//! multiplied in blocks that stay in cache, the inner loop running along `n`. f16, bf16 and f8 go
//! through f32. Our own compiler emits kernels for dots; this serves the bundles of others.

use std::sync::Mutex;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::executable::DotThunk;
use crate::runtime::cpu::array::Element;
use crate::runtime::cpu::array::gather;
use crate::runtime::cpu::array::scatter;
use crate::runtime::cpu::pool::Pool;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::PrimitiveType;

/// Rows of a task, and depth and width of a block of the right operand.
const ROWS: usize = 16;
const DEPTH: usize = 128;
const WIDTH: usize = 512;

/// A number that products are summed in.
pub trait Number: Copy + Default + Send + Sync {
    /// `self + a * b`
    fn multiply_add(self, a: Self, b: Self) -> Self;
}

impl Number for f32 {
    fn multiply_add(self, a: Self, b: Self) -> Self {
        self + a * b
    }
}

impl Number for f64 {
    fn multiply_add(self, a: Self, b: Self) -> Self {
        self + a * b
    }
}

impl Number for i32 {
    fn multiply_add(self, a: Self, b: Self) -> Self {
        self.wrapping_add(a.wrapping_mul(b))
    }
}

impl Number for [f32; 2] {
    fn multiply_add(self, a: Self, b: Self) -> Self {
        [
            self[0] + (a[0] * b[0] - a[1] * b[1]),
            self[1] + (a[0] * b[1] + a[1] * b[0]),
        ]
    }
}

impl Number for [f64; 2] {
    fn multiply_add(self, a: Self, b: Self) -> Self {
        [
            self[0] + (a[0] * b[0] - a[1] * b[1]),
            self[1] + (a[0] * b[1] + a[1] * b[0]),
        ]
    }
}

/// Reads a real element as f32.
fn real(ty: PrimitiveType, bytes: &[u8]) -> f32 {
    match ty {
        PrimitiveType::F16 => half::f16::from_le_bytes([bytes[0], bytes[1]]).to_f32(),
        PrimitiveType::BF16 => half::bf16::from_le_bytes([bytes[0], bytes[1]]).to_f32(),
        _ => f32::load(bytes),
    }
}

/// Writes an f32 as a real element.
pub(super) fn store_real(ty: PrimitiveType, value: f32, bytes: &mut [u8]) {
    match ty {
        PrimitiveType::F16 => bytes.copy_from_slice(&half::f16::from_f32(value).to_le_bytes()),
        PrimitiveType::BF16 => bytes.copy_from_slice(&half::bf16::from_f32(value).to_le_bytes()),
        _ => value.store(bytes),
    }
}

/// Reads the elements of an array of f16, bf16 or f32 in an order of dimensions.
pub(super) fn gather_real(bytes: &[u8], shape: &ArrayShape, order: &[usize]) -> Vec<f32> {
    gather(bytes, shape.ty.byte_width(), shape, order, |b| {
        real(shape.ty, b)
    })
}

/// Reads an integer element as s32.
pub(super) fn integer(ty: PrimitiveType, bytes: &[u8]) -> i32 {
    match ty {
        PrimitiveType::S8 => i32::from(bytes[0].cast_signed()),
        PrimitiveType::U8 => i32::from(bytes[0]),
        _ => i32::load(bytes),
    }
}

fn pair<T: Element>(bytes: &[u8]) -> [T; 2] {
    [T::load(&bytes[..T::BYTES]), T::load(&bytes[T::BYTES..])]
}

fn store_pair<T: Element>(value: [T; 2], bytes: &mut [u8]) {
    let (re, im) = bytes.split_at_mut(T::BYTES);
    value[0].store(re);
    value[1].store(im);
}

/// Whether the library multiplies these types.
///
/// # Errors
/// `XA8003` when it does not.
pub fn check_types(thunk: &DotThunk) -> Result<()> {
    let (lhs, rhs, out) = (thunk.lhs.shape.ty, thunk.rhs.shape.ty, thunk.out.shape.ty);
    let is_real = |ty| {
        matches!(
            ty,
            PrimitiveType::F16 | PrimitiveType::BF16 | PrimitiveType::F32
        )
    };
    let known = match out {
        PrimitiveType::F16 | PrimitiveType::BF16 | PrimitiveType::F32 => {
            is_real(lhs) && is_real(rhs)
        }
        PrimitiveType::S32 => {
            let fits = |ty| {
                matches!(
                    ty,
                    PrimitiveType::S8 | PrimitiveType::U8 | PrimitiveType::S32
                )
            };
            fits(lhs) && fits(rhs)
        }
        PrimitiveType::F64 | PrimitiveType::C64 | PrimitiveType::C128 => lhs == out && rhs == out,
        _ => false,
    };
    if known {
        return Ok(());
    }
    Err(Diagnostic::unsupported(
        codes::LOAD,
        format!("a `dot` of {lhs} and {rhs} to {out} left to the runtime's library"),
    ))
}

/// Multiplies.
///
/// # Errors
/// `XA8003` for element types the library lacks.
pub fn run(thunk: &DotThunk, lhs: &[u8], rhs: &[u8], out: &mut [u8], pool: &Pool) -> Result<()> {
    check_types(thunk)?;
    let plan = Plan::new(thunk);
    let (l, r, o) = (&thunk.lhs.shape, &thunk.rhs.shape, &thunk.out.shape);
    let (lw, rw, ow) = (l.ty.byte_width(), r.ty.byte_width(), o.ty.byte_width());
    match o.ty {
        PrimitiveType::F16 | PrimitiveType::BF16 | PrimitiveType::F32 => {
            let a = gather_real(lhs, l, &plan.lhs_order);
            let b = gather_real(rhs, r, &plan.rhs_order);
            let c = plan.multiply(&a, &b, pool)?;
            scatter(&c, out, ow, o, &plan.out_order, |v, b| {
                store_real(o.ty, v, b)
            });
        }
        PrimitiveType::S32 => {
            let a = gather(lhs, lw, l, &plan.lhs_order, |b| integer(l.ty, b));
            let b = gather(rhs, rw, r, &plan.rhs_order, |b| integer(r.ty, b));
            let c = plan.multiply(&a, &b, pool)?;
            scatter(&c, out, ow, o, &plan.out_order, i32::store);
        }
        PrimitiveType::F64 => {
            let a = gather(lhs, lw, l, &plan.lhs_order, f64::load);
            let b = gather(rhs, rw, r, &plan.rhs_order, f64::load);
            let c = plan.multiply(&a, &b, pool)?;
            scatter(&c, out, ow, o, &plan.out_order, f64::store);
        }
        PrimitiveType::C64 => {
            let a = gather(lhs, lw, l, &plan.lhs_order, pair::<f32>);
            let b = gather(rhs, rw, r, &plan.rhs_order, pair::<f32>);
            let c = plan.multiply(&a, &b, pool)?;
            scatter(&c, out, ow, o, &plan.out_order, store_pair);
        }
        _ => {
            let a = gather(lhs, lw, l, &plan.lhs_order, pair::<f64>);
            let b = gather(rhs, rw, r, &plan.rhs_order, pair::<f64>);
            let c = plan.multiply(&a, &b, pool)?;
            scatter(&c, out, ow, o, &plan.out_order, store_pair);
        }
    }
    Ok(())
}

struct Plan {
    batch: usize,
    m: usize,
    k: usize,
    n: usize,
    lhs_order: Dims,
    rhs_order: Dims,
    out_order: Dims,
}

impl Plan {
    fn new(thunk: &DotThunk) -> Self {
        let dims = |list: &[i64]| -> Dims {
            list.iter()
                .filter_map(|&d| usize::try_from(d).ok())
                .collect()
        };
        let [lc, rc, lb, rb] = thunk.dims.each_ref().map(|list| dims(list));
        let (lhs, rhs) = (&thunk.lhs.shape, &thunk.rhs.shape);
        let free = |shape: &ArrayShape, contracting: &Dims, batch: &Dims| -> Dims {
            let all = 0..shape.rank();
            all.filter(|d| !contracting.contains(d) && !batch.contains(d))
                .collect()
        };
        let size = |shape: &ArrayShape, dims: &Dims| dims.iter().map(|&d| shape.dims[d]).product();
        let (lf, rf) = (free(lhs, &lc, &lb), free(rhs, &rc, &rb));
        Self {
            batch: size(lhs, &lb),
            m: size(lhs, &lf),
            k: size(lhs, &lc),
            n: size(rhs, &rf),
            lhs_order: lb.iter().chain(&lf).chain(&lc).copied().collect(),
            rhs_order: rb.iter().chain(&rc).chain(&rf).copied().collect(),
            out_order: (0..thunk.out.shape.rank()).collect(),
        }
    }

    /// `[batch, m, k]` times `[batch, k, n]`.
    fn multiply<T: Number>(&self, a: &[T], b: &[T], pool: &Pool) -> Result<Vec<T>> {
        let (m, k, n) = (self.m, self.k, self.n);
        let mut out = vec![T::default(); self.batch * m * n];
        if out.is_empty() || k == 0 {
            return Ok(out);
        }
        let blocks_of_batch = m.div_ceil(ROWS);
        let blocks: Vec<_> = out
            .chunks_mut(m * n)
            .flat_map(|matrix| matrix.chunks_mut(ROWS * n))
            .map(Mutex::new)
            .collect();
        pool.run(blocks.len() as u64, &|task| {
            let task = task as usize;
            let (batch, first) = (task / blocks_of_batch, task % blocks_of_batch * ROWS);
            let mut rows = blocks[task].lock().unwrap_or_else(|e| e.into_inner());
            let a = &a[(batch * m + first) * k..];
            let b = &b[batch * k * n..(batch + 1) * k * n];
            multiply_rows(a, b, &mut rows, k, n);
        })?;
        Ok(out)
    }
}

fn multiply_rows<T: Number>(a: &[T], b: &[T], rows: &mut [T], k: usize, n: usize) {
    for depth in (0..k).step_by(DEPTH) {
        for column in (0..n).step_by(WIDTH) {
            let end = (column + WIDTH).min(n);
            for (i, row) in rows.chunks_exact_mut(n).enumerate() {
                for d in depth..(depth + DEPTH).min(k) {
                    let factor = a[i * k + d];
                    let right = &b[d * n + column..d * n + end];
                    for (sum, value) in row[column..end].iter_mut().zip(right) {
                        *sum = sum.multiply_add(factor, *value);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Id;
    use crate::executable::AllocId;
    use crate::executable::ShapedSlice;
    use crate::executable::Slice;
    use crate::shape::Layout;

    fn shaped(ty: PrimitiveType, dims: &[usize], order: &[usize]) -> ShapedSlice {
        let mut shape = ArrayShape::new(ty, dims.iter().copied());
        shape.layout = Some(Layout::from_minor_to_major(order.iter().copied()));
        let size = shape.byte_size() as u64;
        let slice = Slice {
            alloc: AllocId::from_index(0),
            offset: 0,
            size,
        };
        ShapedSlice { slice, shape }
    }

    #[test]
    fn transposed_operands_and_batches() {
        let thunk = DotThunk {
            dims: [vec![1], vec![2], vec![0], vec![0]],
            lhs: shaped(PrimitiveType::S32, &[2, 3, 2], &[0, 2, 1]),
            rhs: shaped(PrimitiveType::S32, &[2, 4, 3], &[2, 1, 0]),
            out: shaped(PrimitiveType::S32, &[2, 2, 4], &[2, 1, 0]),
        };
        let value = |b: usize, i: usize, j: usize| (b * 100 + i * 10 + j) as i32;
        let mut lhs = vec![0; 48];
        for (at, (b, k, m)) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
            .iter()
            .flat_map(|&(k, m)| [(0, k, m), (1, k, m)])
            .enumerate()
        {
            value(b, k, m).store(&mut lhs[at * 4..at * 4 + 4]);
        }
        let rhs: Vec<u8> = (0..24)
            .flat_map(|i| value(i / 12, i / 3 % 4, i % 3).to_le_bytes())
            .collect();
        let mut out = vec![0; 64];
        run(&thunk, &lhs, &rhs, &mut out, &Pool::new(2).unwrap()).unwrap();
        for (at, got) in out.chunks_exact(4).map(i32::load).enumerate() {
            let (b, m, n) = (at / 8, at / 4 % 2, at % 4);
            let wanted: i32 = (0..3).map(|k| value(b, k, m) * value(b, n, k)).sum();
            assert_eq!(got, wanted);
        }
    }

    #[test]
    fn large_f32_product_and_unknown_types() {
        let (m, k, n) = (37, 300, 600);
        let mut thunk = DotThunk {
            dims: [vec![1], vec![0], vec![], vec![]],
            lhs: shaped(PrimitiveType::F32, &[m, k], &[1, 0]),
            rhs: shaped(PrimitiveType::F32, &[k, n], &[1, 0]),
            out: shaped(PrimitiveType::F32, &[m, n], &[1, 0]),
        };
        let bytes = |count: usize, f: fn(usize) -> f32| -> Vec<u8> {
            (0..count).flat_map(|i| f(i).to_le_bytes()).collect()
        };
        let lhs = bytes(m * k, |i| (i % 7) as f32 - 3.0);
        let rhs = bytes(k * n, |i| (i % 5) as f32 - 2.0);
        let mut out = vec![0; m * n * 4];
        run(&thunk, &lhs, &rhs, &mut out, &Pool::new(2).unwrap()).unwrap();
        let at = |bytes: &[u8], i: usize| f32::load(&bytes[i * 4..]);
        for (i, j) in [(0, 0), (36, 599), (20, 511), (20, 512)] {
            let wanted: f32 = (0..k)
                .map(|d| at(&lhs, i * k + d) * at(&rhs, d * n + j))
                .sum();
            assert_eq!(at(&out, i * n + j), wanted);
        }
        thunk.out = shaped(PrimitiveType::U8, &[m, n], &[1, 0]);
        assert!(check_types(&thunk).is_err());
    }
}
