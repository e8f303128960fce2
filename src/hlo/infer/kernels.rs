//! Shapes of ops with algorithms of their own: sorting, transforms, linear algebra, random numbers.

use crate::base::Result;
use crate::hlo::CompId;
use crate::hlo::FftType;
use crate::hlo::RngAlgorithm;
use crate::hlo::RngDistribution;
use crate::hlo::infer::Infer;
use crate::hlo::infer::agree;
use crate::hlo::infer::bare;
use crate::hlo::infer::list;
use crate::hlo::infer::one_or_tuple;
use crate::hlo::infer::text;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

impl Infer<'_> {
    /// sort C1 to C5: the comparator takes a pair of scalars an operand and gives pred.
    pub(super) fn sort(&self, dim: usize, body: CompId) -> Result<Shape> {
        self.at_least(1)?;
        let arrays = self.arrays(0, self.operands.len())?;
        for (i, array) in arrays.iter().enumerate() {
            self.same_sizes(0, arrays[0], i, array)?;
        }
        self.dim("dimensions", dim, arrays[0])?;
        let types: Vec<PrimitiveType> = arrays.iter().flat_map(|a| [a.ty, a.ty]).collect();
        self.scalar_body("comparator", body, &types, &[PrimitiveType::Pred])?;
        let shapes = arrays.iter().map(|a| Shape::Array(bare(a)));
        Ok(one_or_tuple(shapes.collect()))
    }

    /// The first `k` of the sorted last dimension, and where they were (s32).
    pub(super) fn topk(&self, k: usize) -> Result<Shape> {
        self.arity(1)?;
        let array = self.array(0)?;
        let mut values = bare(array);
        let Some(last) = values.dims.last_mut() else {
            return Err(self.fail("operand is a scalar"));
        };
        let size = *last;
        *last = k;
        self.ensure(k <= size, || format!("takes {k} of {size} elements"))?;
        self.ensure(!array.ty.is_complex(), || {
            format!("is not defined for element type {}", array.ty)
        })?;
        values.dynamic.clear();
        let places = values.with_type(PrimitiveType::S32);
        Ok(Shape::Tuple(vec![
            Shape::Array(values),
            Shape::Array(places),
        ]))
    }

    /// fft C1 to C5.
    pub(super) fn fft(&self, kind: FftType, lengths: &[usize]) -> Result<Shape> {
        self.arity(1)?;
        let array = self.array(0)?;
        let n = lengths.len();
        self.ensure((1..=3).contains(&n), || {
            format!("transforms {n} dimensions instead of 1 to 3")
        })?;
        self.ensure(array.rank() >= n, || {
            format!(
                "transforms {n} dimensions of an operand of rank {}",
                array.rank()
            )
        })?;
        let real_input = kind == FftType::Rfft;
        let fits = if real_input {
            matches!(array.ty, PrimitiveType::F32 | PrimitiveType::F64)
        } else {
            array.ty.is_complex()
        };
        self.ensure(fits, || {
            format!(
                "{} is not defined for element type {}",
                kind.name(),
                array.ty
            )
        })?;
        let half = lengths[n - 1] / 2 + 1;
        let mut wanted = lengths.to_vec();
        if kind == FftType::Irfft && lengths[n - 1] != 0 {
            wanted[n - 1] = half;
        }
        let tail = &array.dims[array.rank() - n..];
        self.ensure(tail == wanted, || {
            let (found, wanted) = (list(tail), list(&wanted));
            format!("operand's minor dimensions are {found} instead of {wanted}")
        })?;
        let mut out = bare(array);
        let last = array.rank() - 1;
        match kind {
            FftType::Fft | FftType::Ifft => {}
            FftType::Rfft => {
                out.ty = array.ty.complex_of().unwrap_or(array.ty);
                out.dims[last] = if lengths[n - 1] == 0 { 0 } else { half };
            }
            FftType::Irfft => {
                out.ty = array.ty.real_part();
                out.dims[last] = lengths[n - 1];
            }
        }
        Ok(Shape::Array(out))
    }

    /// A batch of square matrices of floats or complex numbers.
    fn square(&self, i: usize) -> Result<&ArrayShape> {
        let array = self.array(i)?;
        let rank = array.rank();
        self.ensure(rank >= 2, || {
            format!("operand {i} has rank {rank} instead of at least 2")
        })?;
        self.ensure(array.dims[rank - 1] == array.dims[rank - 2], || {
            let dims = list(&array.dims[rank - 2..]);
            format!("operand {i} has minor dimensions {dims}, not square")
        })?;
        self.ensure(array.ty.is_float() || array.ty.is_complex(), || {
            format!("is not defined for element type {}", array.ty)
        })?;
        Ok(array)
    }

    /// cholesky C1 to C3.
    pub(super) fn cholesky(&self) -> Result<Shape> {
        self.arity(1)?;
        Ok(Shape::Array(bare(self.square(0)?)))
    }

    /// triangular_solve C1 to C4.
    pub(super) fn triangular_solve(&self, left_side: bool) -> Result<Shape> {
        self.arity(2)?;
        let (a, b) = (self.square(0)?, self.array(1)?);
        self.same_type(0, a.ty, 1, b.ty)?;
        let rank = a.rank();
        self.ensure(b.rank() == rank, || {
            format!("operand 1 has rank {} where operand 0 has {rank}", b.rank())
        })?;
        let batch = rank - 2;
        self.ensure(a.dims[..batch] == b.dims[..batch], || {
            let (a, b) = (list(&a.dims[..batch]), list(&b.dims[..batch]));
            format!("operand 1 has batch dimensions {b} where operand 0 has {a}")
        })?;
        let d = if left_side { rank - 2 } else { rank - 1 };
        let (n, m) = (a.dims[rank - 1], b.dims[d]);
        self.ensure(n == m, || {
            format!("solves a system of size {n} against dimension {d} of size {m}")
        })?;
        Ok(Shape::Array(bare(b)))
    }

    /// rng C1 to C3, with the declared shape instead of a shape operand.
    pub(super) fn rng(&self, distribution: RngDistribution) -> Result<Shape> {
        self.arity(2)?;
        let out = self.declared_array()?;
        for i in 0..2 {
            let parameter = self.scalar(i)?;
            self.ensure(parameter.ty == out.ty, || {
                format!(
                    "parameter {i} has element type {} where the result has {}",
                    parameter.ty, out.ty
                )
            })?;
        }
        let fits = match distribution {
            RngDistribution::Uniform => !out.ty.is_complex(),
            RngDistribution::Normal => out.ty.is_float() || out.ty.is_complex(),
        };
        self.ensure(fits, || {
            format!(
                "{} is not defined for element type {}",
                distribution.name(),
                out.ty
            )
        })?;
        Ok(Shape::Array(bare(out)))
    }

    /// rng_bit_generator C1, C2: (state, bits), the state of the size that the algorithm has.
    pub(super) fn rng_bit_generator(&self, algorithm: RngAlgorithm) -> Result<Shape> {
        self.arity(1)?;
        let state = self.array(0)?;
        let fits = state.ty == PrimitiveType::U64
            && match algorithm {
                RngAlgorithm::ThreeFry => state.dims.as_slice() == [2],
                RngAlgorithm::Philox | RngAlgorithm::Default => {
                    matches!(state.dims.as_slice(), [2 | 3])
                }
            };
        self.ensure(fits, || {
            let found = text(&Shape::Array(state.clone()));
            format!("state is {found}, which is none of {}", algorithm.name())
        })?;
        let state = Shape::Array(bare(state));
        let stated = self.declared()?;
        let bits = stated
            .as_tuple()
            .filter(|t| t.len() == 2 && agree(&t[0], &state));
        let bits = bits.and_then(|t| t[1].as_array()).ok_or_else(|| {
            let wanted = text(&state);
            self.fail(format!(
                "result is {} instead of ({wanted}, bits)",
                text(stated)
            ))
        })?;
        self.ensure(bits.ty.is_integer() || bits.ty.is_float(), || {
            format!("bits have element type {}", bits.ty)
        })?;
        Ok(Shape::Tuple(vec![state, Shape::Array(bare(bits))]))
    }

    /// The state of the device's generator before the update: `u64[2]`.
    pub(super) fn rng_get_and_update_state(&self) -> Result<Shape> {
        self.arity(0)?;
        Ok(Shape::array(PrimitiveType::U64, [2]))
    }
}
