//! Fourier transforms as loops over elements, for targets without a library of them.
//!
//! A length without large prime factors is transformed in stages (T. G. Stockham's form, which needs
//! no reordering): each stage takes one factor, at most [`RADIX`], and is one elementwise kernel,
//! since every element of its result is a sum over a few elements far apart. Other lengths are
//! convolved with a chirp by transforms of powers of two (L. I. Bluestein). Real transforms of even
//! length are complex ones of half the length.
//!
//! Roots of unity are computed here in `f64` and rounded. Where a table of them would be long, it is
//! the product of two tables of about the square root of its size.

use crate::base::Result;
use crate::hlo::BinaryOp;
use crate::hlo::Builder;
use crate::hlo::ComparisonDirection;
use crate::hlo::FftType;
use crate::hlo::GatherDims;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::PadDim;
use crate::hlo::UnaryOp;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::literal::Number;
use crate::literal::number;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;

/// Factors of a length are multiplied up to this, so that there are few stages.
const RADIX: usize = 16;
/// The largest prime factor that has a stage of its own.
const LARGEST_PRIME: usize = 31;
/// Elements of the largest table of roots that is written out.
const TABLE: usize = 4096;

/// The sign of the exponent: -1 for transforms to frequencies, 1 for those back.
#[derive(Clone, Copy)]
struct Sign(f64);

/// `fft` of any kind over the last one to three dimensions.
pub(super) fn expand(b: &mut Builder<'_>, id: InstrId) -> Result<InstrId> {
    let instr = &b.module.instrs[id];
    let Op::Fft { kind, ref lengths } = instr.op else {
        return Ok(id);
    };
    let (mut x, lengths) = (instr.operands[0], lengths.clone());
    let shape = b.array(id)?;
    if shape.element_count() == 0 {
        return b.full(shape.ty, &shape.dims, 0.0);
    }
    let last = shape.rank() - 1;
    let outer = shape.rank() - lengths.len()..last;
    let length = lengths[lengths.len() - 1];
    let sign = match kind {
        FftType::Fft | FftType::Rfft => Sign(-1.0),
        FftType::Ifft | FftType::Irfft => Sign(1.0),
    };
    if kind == FftType::Rfft {
        x = from_real(b, x, length)?;
    }
    for axis in outer {
        x = along(b, x, axis, sign)?;
    }
    match kind {
        FftType::Fft => along(b, x, last, sign),
        FftType::Rfft => Ok(x),
        FftType::Ifft => {
            let y = along(b, x, last, sign)?;
            let count: usize = lengths.iter().product();
            scale(b, y, 1.0 / count as f64)
        }
        FftType::Irfft => {
            let y = to_real(b, x, length)?;
            let count: usize = lengths.iter().product();
            b.binary_scalar(BinaryOp::Multiply, y, 1.0 / count as f64)
        }
    }
}

/// The complex transform along one dimension, not scaled.
fn along(b: &mut Builder<'_>, x: InstrId, axis: usize, sign: Sign) -> Result<InstrId> {
    let dims = b.dims(x)?;
    let before = dims[..axis].iter().product();
    let after = dims[axis + 1..].iter().product();
    let x = b.reshape(x, &[before, dims[axis], after])?;
    let y = middle(b, x, sign)?;
    b.reshape(y, &dims)
}

/// The complex transform along the middle one of three dimensions, not scaled.
fn middle(b: &mut Builder<'_>, x: InstrId, sign: Sign) -> Result<InstrId> {
    let dims = b.dims(x)?;
    match radices(dims[1]) {
        Some(radices) => {
            let (mut y, mut rest, mut done) = (x, dims[1], 1);
            for radix in radices {
                let stage = Stage {
                    before: dims[0],
                    radix,
                    rest: rest / radix,
                    done,
                    after: dims[2],
                };
                y = stage.build(b, y, sign)?;
                (rest, done) = (rest / radix, done * radix);
            }
            b.reshape(y, &dims)
        }
        None => by_chirp(b, x, sign),
    }
}

/// Factors of `n` in the order of their stages; nothing when a prime factor is too large.
fn radices(n: usize) -> Option<Vec<usize>> {
    let mut primes = Vec::new();
    let (mut rest, mut p) = (n, 2);
    while rest > 1 {
        if p > LARGEST_PRIME {
            return None;
        }
        if rest.is_multiple_of(p) {
            primes.push(p);
            rest /= p;
        } else {
            p += 1;
        }
    }
    let mut out: Vec<usize> = Vec::new();
    for &p in primes.iter().rev() {
        match out.iter_mut().find(|r| **r * p <= RADIX) {
            Some(r) => *r *= p,
            None => out.push(p),
        }
    }
    Some(out)
}

/// One stage: `[before, radix, rest, done, after]` to `[before, rest, radix, done, after]`.
///
/// `done` counts the low digits of the frequency that earlier stages have found; this stage finds
/// the next digit, and turns by the part of the exponent that it has with the rest of the position.
struct Stage {
    before: usize,
    radix: usize,
    rest: usize,
    done: usize,
    after: usize,
}

impl Stage {
    fn build(&self, b: &mut Builder<'_>, x: InstrId, sign: Sign) -> Result<InstrId> {
        let (n, r) = (self.radix * self.rest, self.radix);
        let ty = b.ty(x)?;
        // The position in the rest is `coarse * step + fine`.
        let step = if n <= TABLE {
            self.rest
        } else {
            divisor_near_root(self.rest)
        };
        let coarse = self.rest / step;
        let parts = [self.before, coarse, step, self.done, self.after];
        let out = [self.before, coarse, step, r, self.done, self.after];
        let x = b.reshape(x, &[self.before, r, coarse, step, self.done, self.after])?;
        let mut sum = None;
        for j in 0..r {
            let one = b.slice_dim(x, 1, j, j + 1)?;
            let one = b.reshape(one, &parts)?;
            let mut term = b.broadcast(one, &[0, 1, 2, 4, 5], &out)?;
            if j > 0 {
                let turn = table(b, ty, &[r], |at| root(j * at[0], r, sign));
                let turn = b.broadcast(turn, &[3], &out)?;
                term = b.multiply(term, turn)?;
            }
            sum = Some(match sum {
                Some(sum) => b.add(sum, term)?,
                None => term,
            });
        }
        let mut y = sum.unwrap_or(x);
        if coarse > 1 {
            let turn = table(b, ty, &[coarse, r], |at| {
                root(at[0] * step * at[1], n, sign)
            });
            let turn = b.broadcast(turn, &[1, 3], &out)?;
            y = b.multiply(y, turn)?;
        }
        if step > 1 {
            let turn = table(b, ty, &[step, r], |at| root(at[0] * at[1], n, sign));
            let turn = b.broadcast(turn, &[2, 3], &out)?;
            y = b.multiply(y, turn)?;
        }
        Ok(y)
    }
}

/// The divisor that is nearest to the square root from below.
fn divisor_near_root(n: usize) -> usize {
    (1..=n.isqrt())
        .rev()
        .find(|&d| n.is_multiple_of(d))
        .unwrap_or(1)
}

/// The transform of any length `n`: since `2jk = j^2 + k^2 - (k - j)^2`, it is a convolution with
/// `exp(i pi j^2 / n)`.
fn by_chirp(b: &mut Builder<'_>, x: InstrId, sign: Sign) -> Result<InstrId> {
    let ty = b.ty(x)?;
    let dims = b.dims(x)?;
    let n = dims[1];
    let size = (2 * n - 1).next_power_of_two();
    let chirp = chirp(b, ty, n, sign)?;
    let wide = b.broadcast(chirp, &[1], &dims)?;
    let turned = b.multiply(x, wide)?;
    let zero = b.constant_int(ty, 0);
    let grow = |high| PadDim {
        low: 0,
        high,
        interior: 0,
    };
    let tail = (size - n) as i64;
    let padded = b.pad(turned, zero, &[grow(0), grow(tail), grow(0)])?;
    // The filter at positions from -(n - 1) to n - 1, the negative ones at the end.
    let filter = conjugate(b, chirp)?;
    let negative = b.slice_dim(filter, 0, 1, n)?;
    let negative = b.reverse(negative, &[0])?;
    let gap = (size + 1 - 2 * n) as i64;
    let filter = b.pad(filter, zero, &[grow(gap)])?;
    let filter = b.concatenate(&[filter, negative], 0)?;
    let filter = b.reshape(filter, &[1, size, 1])?;
    let filter = middle(b, filter, Sign(-1.0))?;
    let filter = scale(b, filter, 1.0 / size as f64)?;
    let filter = b.reshape(filter, &[size])?;
    let all = [dims[0], size, dims[2]];
    let filter = b.broadcast(filter, &[1], &all)?;
    let spectrum = middle(b, padded, Sign(-1.0))?;
    let product = b.multiply(spectrum, filter)?;
    let convolved = middle(b, product, Sign(1.0))?;
    let convolved = b.slice_dim(convolved, 1, 0, n)?;
    b.multiply(convolved, wide)
}

/// `exp(sign * i pi k^2 / n)` for `k` below `n`.
fn chirp(b: &mut Builder<'_>, ty: PrimitiveType, n: usize, sign: Sign) -> Result<InstrId> {
    if n <= TABLE {
        return Ok(table(b, ty, &[n], |at| root(at[0] * at[0], 2 * n, sign)));
    }
    let k = b.iota(PrimitiveType::U64, &[n], 0)?;
    let square = b.multiply(k, k)?;
    let exponents = b.binary_scalar(BinaryOp::Remainder, square, 2.0 * n as f64)?;
    roots(b, ty, 2 * n, exponents, sign)
}

/// `exp(sign * 2 pi i k / n)` for `k` below `count`.
fn powers(
    b: &mut Builder<'_>,
    ty: PrimitiveType,
    n: usize,
    count: usize,
    sign: Sign,
) -> Result<InstrId> {
    if count <= TABLE {
        return Ok(table(b, ty, &[count], |at| root(at[0], n, sign)));
    }
    let k = b.iota(PrimitiveType::U64, &[count], 0)?;
    roots(b, ty, n, k, sign)
}

/// `exp(sign * 2 pi i e / n)` for each of a vector of exponents below `n`, from two tables.
fn roots(
    b: &mut Builder<'_>,
    ty: PrimitiveType,
    n: usize,
    exponents: InstrId,
    sign: Sign,
) -> Result<InstrId> {
    let step = n.isqrt().next_power_of_two();
    let coarse = table(b, ty, &[n.div_ceil(step)], |at| root(at[0] * step, n, sign));
    let fine = table(b, ty, &[step], |at| root(at[0], n, sign));
    let high = b.binary_scalar(BinaryOp::Divide, exponents, step as f64)?;
    let low = b.binary_scalar(BinaryOp::Remainder, exponents, step as f64)?;
    let high = look_up(b, coarse, high)?;
    let low = look_up(b, fine, low)?;
    b.multiply(high, low)
}

/// The elements of a vector at the indices in another.
fn look_up(b: &mut Builder<'_>, values: InstrId, indices: InstrId) -> Result<InstrId> {
    let dims = GatherDims {
        collapsed_slice_dims: [0].into_iter().collect(),
        start_index_map: [0].into_iter().collect(),
        index_vector_dim: 1,
        ..GatherDims::default()
    };
    let op = Op::Gather {
        dims,
        slice_sizes: [1].into_iter().collect(),
        indices_are_sorted: false,
    };
    b.op(op, &[values, indices])
}

/// The first half of the spectrum of real numbers, along the last dimension.
fn from_real(b: &mut Builder<'_>, x: InstrId, n: usize) -> Result<InstrId> {
    let shape = b.array(x)?;
    let (ty, last) = (shape.ty, shape.rank() - 1);
    let complex = ty.complex_of().unwrap_or(ty);
    if !n.is_multiple_of(2) {
        let x = b.convert(x, complex)?;
        let y = along(b, x, last, Sign(-1.0))?;
        return b.slice_dim(y, last, 0, n / 2 + 1);
    }
    let (rows, half) = (shape.dims[..last].iter().product(), n / 2);
    // Neighbours are the parts of complex numbers.
    let pairs = b.reshape(x, &[rows, half, 2])?;
    let (even, odd) = (b.slice_dim(pairs, 2, 0, 1)?, b.slice_dim(pairs, 2, 1, 2)?);
    let packed = b.binary(BinaryOp::Complex, even, odd)?;
    let z = middle(b, packed, Sign(-1.0))?;
    let z = b.reshape(z, &[rows, half])?;
    // The spectra of the even and the odd elements are the symmetric and antisymmetric part.
    let first = b.slice_dim(z, 1, 0, 1)?;
    let mirrored = if half > 1 {
        let others = b.slice_dim(z, 1, 1, half)?;
        let others = b.reverse(others, &[1])?;
        b.concatenate(&[first, others], 1)?
    } else {
        first
    };
    let mirrored = conjugate(b, mirrored)?;
    let (sum, difference) = (b.add(z, mirrored)?, b.subtract(z, mirrored)?);
    let turn = powers(b, complex, n, half, Sign(-1.0))?;
    let turn = b.broadcast(turn, &[1], &[rows, half])?;
    let turned = b.multiply(difference, turn)?;
    let turned = times_i(b, turned, -1.0)?;
    let y = b.add(sum, turned)?;
    let y = scale(b, y, 0.5)?;
    let (re, im) = (
        b.unary(UnaryOp::Real, first)?,
        b.unary(UnaryOp::Imag, first)?,
    );
    let middle = b.subtract(re, im)?;
    let middle = b.convert(middle, complex)?;
    let y = b.concatenate(&[y, middle], 1)?;
    let mut dims = shape.dims.clone();
    dims[last] = half + 1;
    b.reshape(y, &dims)
}

/// Real numbers from the first half of their spectrum, along the last dimension, not scaled.
fn to_real(b: &mut Builder<'_>, x: InstrId, n: usize) -> Result<InstrId> {
    let mut dims = b.dims(x)?;
    let last = dims.len() - 1;
    let (rows, stored) = (dims[..last].iter().product(), dims[last]);
    dims[last] = n;
    let complex = b.ty(x)?;
    let x = b.reshape(x, &[rows, stored])?;
    let x = with_real_ends(b, x, n)?;
    if !n.is_multiple_of(2) {
        let full = if stored > 1 {
            let others = b.slice_dim(x, 1, 1, stored)?;
            let others = b.reverse(others, &[1])?;
            let others = conjugate(b, others)?;
            b.concatenate(&[x, others], 1)?
        } else {
            x
        };
        let y = along(b, full, 1, Sign(1.0))?;
        let y = b.unary(UnaryOp::Real, y)?;
        return b.reshape(y, &dims);
    }
    let half = n / 2;
    let mirrored = b.reverse(x, &[1])?;
    let mirrored = b.slice_dim(mirrored, 1, 0, half)?;
    let mirrored = conjugate(b, mirrored)?;
    let x = b.slice_dim(x, 1, 0, half)?;
    let (sum, difference) = (b.add(x, mirrored)?, b.subtract(x, mirrored)?);
    let turn = powers(b, complex, n, half, Sign(1.0))?;
    let turn = b.broadcast(turn, &[1], &[rows, half])?;
    let turned = b.multiply(difference, turn)?;
    let turned = times_i(b, turned, 1.0)?;
    let z = b.add(sum, turned)?;
    let z = along(b, z, 1, Sign(1.0))?;
    let z = b.reshape(z, &[rows, half, 1])?;
    let (even, odd) = (b.unary(UnaryOp::Real, z)?, b.unary(UnaryOp::Imag, z)?);
    let y = b.concatenate(&[even, odd], 2)?;
    b.reshape(y, &dims)
}

/// The imaginary parts of the first and the middle coefficient of `n` have no effect.
fn with_real_ends(b: &mut Builder<'_>, x: InstrId, n: usize) -> Result<InstrId> {
    let dims = b.dims(x)?;
    let k = b.iota(PrimitiveType::S64, &dims, 1)?;
    let mut is_end = None;
    for end in [0, n]
        .into_iter()
        .take(if n.is_multiple_of(2) { 2 } else { 1 })
    {
        let end = b.full(PrimitiveType::S64, &dims, (end / 2) as f64)?;
        let here = b.compare(ComparisonDirection::Eq, k, end)?;
        is_end = Some(match is_end {
            Some(other) => b.binary(BinaryOp::Or, other, here)?,
            None => here,
        });
    }
    let (re, im) = (b.unary(UnaryOp::Real, x)?, b.unary(UnaryOp::Imag, x)?);
    let zero = b.full_like(im, 0.0)?;
    let im = match is_end {
        Some(is_end) => b.select(is_end, zero, im)?,
        None => im,
    };
    b.binary(BinaryOp::Complex, re, im)
}

fn conjugate(b: &mut Builder<'_>, x: InstrId) -> Result<InstrId> {
    let (re, im) = (b.unary(UnaryOp::Real, x)?, b.unary(UnaryOp::Imag, x)?);
    let im = b.unary(UnaryOp::Negate, im)?;
    b.binary(BinaryOp::Complex, re, im)
}

/// `x` times `i` or, where the sign is negative, `-i`.
fn times_i(b: &mut Builder<'_>, x: InstrId, sign: f64) -> Result<InstrId> {
    let (re, im) = (b.unary(UnaryOp::Real, x)?, b.unary(UnaryOp::Imag, x)?);
    if sign < 0.0 {
        let re = b.unary(UnaryOp::Negate, re)?;
        return b.binary(BinaryOp::Complex, im, re);
    }
    let im = b.unary(UnaryOp::Negate, im)?;
    b.binary(BinaryOp::Complex, im, re)
}

/// A complex array times a real number.
fn scale(b: &mut Builder<'_>, x: InstrId, by: f64) -> Result<InstrId> {
    let (re, im) = (b.unary(UnaryOp::Real, x)?, b.unary(UnaryOp::Imag, x)?);
    let re = b.binary_scalar(BinaryOp::Multiply, re, by)?;
    let im = b.binary_scalar(BinaryOp::Multiply, im, by)?;
    b.binary(BinaryOp::Complex, re, im)
}

/// A constant of complex numbers, each computed from its index.
fn table(
    b: &mut Builder<'_>,
    ty: PrimitiveType,
    dims: &[usize],
    value: impl Fn(&[usize]) -> (f64, f64),
) -> InstrId {
    let shape = ArrayShape::new(ty, dims.iter().copied());
    let width = ty.byte_width();
    let mut bytes = vec![0; shape.element_count() * width];
    let minor = dims[dims.len() - 1];
    for (i, out) in bytes.chunks_exact_mut(width).enumerate() {
        let (re, im) = match dims.len() {
            1 => value(&[i]),
            _ => value(&[i / minor, i % minor]),
        };
        number::encode(ty, Number::Complex(re, im), out);
    }
    b.constant(Literal::Array(ArrayLiteral::new(shape, bytes)))
}

/// `exp(sign * 2 pi i k / n)`, exact at quarter turns; equal angles of different fractions give
/// equal numbers.
fn root(k: usize, n: usize, Sign(sign): Sign) -> (f64, f64) {
    let turns = 4 * (k % n);
    let (quarter, rest) = (turns / n, turns % n);
    // The angle within the quarter, from its nearer end.
    let angle = |rest: usize| std::f64::consts::FRAC_PI_2 * (rest as f64 / n as f64);
    let (cos, sin) = if 2 * rest <= n {
        (libm::cos(angle(rest)), libm::sin(angle(rest)))
    } else {
        (libm::sin(angle(n - rest)), libm::cos(angle(n - rest)))
    };
    let (re, im) = match quarter {
        0 => (cos, sin),
        1 => (-sin, cos),
        2 => (-cos, -sin),
        _ => (sin, -cos),
    };
    (re, sign * im)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval;
    use crate::hlo::verify;
    use crate::passes::legalize::expand::expand_all;

    type C = (f64, f64);

    /// `exp(-2 pi i jk / n)` summed, from the definition.
    fn definition(x: &[C], sign: f64) -> Vec<C> {
        let n = x.len();
        let turns: Vec<C> = (0..n)
            .map(|e| sign * std::f64::consts::TAU * e as f64 / n as f64)
            .map(|angle| (angle.cos(), angle.sin()))
            .collect();
        (0..n)
            .map(|k| {
                x.iter().enumerate().fold((0.0, 0.0), |sum, (j, x)| {
                    let w = turns[j * k % n];
                    (sum.0 + x.0 * w.0 - x.1 * w.1, sum.1 + x.0 * w.1 + x.1 * w.0)
                })
            })
            .collect()
    }

    /// Numbers without a pattern, between -1 and 1.
    fn noise(seed: usize, count: usize) -> Vec<f64> {
        let mut state = seed as u64 * 2 + 1;
        (0..count)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (state >> 40) as f64 / f64::from(1 << 23) - 1.0
            })
            .collect()
    }

    fn signal(seed: usize, count: usize) -> Vec<C> {
        let (re, im) = (noise(seed, count), noise(seed + 77, count));
        re.into_iter().zip(im).collect()
    }

    fn literal(ty: PrimitiveType, dims: &[usize], values: &[C]) -> Literal {
        let shape = ArrayShape::new(ty, dims.iter().copied());
        let width = ty.byte_width();
        let mut bytes = vec![0; values.len() * width];
        for (&(re, im), out) in values.iter().zip(bytes.chunks_exact_mut(width)) {
            let value = if ty.is_complex() {
                Number::Complex(re, im)
            } else {
                Number::Float(re)
            };
            number::encode(ty, value, out);
        }
        Literal::Array(ArrayLiteral::new(shape, bytes))
    }

    /// What the expanded program gives.
    fn expanded(text: &str, input: Literal) -> Vec<C> {
        let mut module = crate::front::hlo_text::parse(text).expect("the text is a module");
        verify::check(&module).expect("the module is valid");
        assert!(expand_all(&mut module).expect("every fft expands"));
        verify::check(&module).expect("the expanded module is valid");
        let result = eval::evaluate(&module, &[input]).expect("the program runs");
        let array = result.as_array().expect("the result is an array");
        (0..array.len())
            .map(|i| match number::decode(array.ty(), array.element(i)) {
                Number::Int(x) => (x as f64, 0.0),
                Number::Float(x) => (x, 0.0),
                Number::Complex(re, im) => (re, im),
            })
            .collect()
    }

    /// The difference relative to the wanted values, as vectors.
    fn error(found: &[C], wanted: &[C]) -> f64 {
        assert_eq!(found.len(), wanted.len());
        let square = |c: C| c.0 * c.0 + c.1 * c.1;
        let off: f64 = found
            .iter()
            .zip(wanted)
            .map(|(a, b)| square((a.0 - b.0, a.1 - b.1)))
            .sum();
        let size: f64 = wanted.iter().map(|&c| square(c)).sum();
        (off / size).sqrt()
    }

    fn lengths() -> impl Iterator<Item = usize> {
        (1..=64).chain([97, 128, 289, 360, 1009, 4096])
    }

    #[test]
    fn complex_transforms_are_those_of_the_definition() {
        for n in lengths() {
            for (ty, bound) in [("c64", 4e-7), ("c128", 2e-15)] {
                if n > 1009 && ty == "c128" {
                    continue;
                }
                let kind = if ty == "c64" {
                    PrimitiveType::C64
                } else {
                    PrimitiveType::C128
                };
                // Two rows, so that they must be kept apart.
                let x = signal(n, 2 * n);
                for (name, sign) in [("FFT", -1.0), ("IFFT", 1.0)] {
                    let text = format!(
                        "HloModule m\nENTRY e {{\n x = {ty}[2,{n}] parameter(0)\n ROOT r = {ty}[2,{n}] fft(x), fft_type={name}, fft_length={{{n}}}\n}}\n"
                    );
                    let found = expanded(&text, literal(kind, &[2, n], &x));
                    let scale = if sign > 0.0 { n as f64 } else { 1.0 };
                    let wanted: Vec<C> = x
                        .chunks(n)
                        .flat_map(|row| definition(row, sign))
                        .map(|c| (c.0 / scale, c.1 / scale))
                        .collect();
                    let off = error(&found, &wanted);
                    assert!(off < bound, "{name} of {n} {ty}: {off}");
                }
            }
        }
    }

    #[test]
    fn real_transforms_are_those_of_the_definition() {
        for n in lengths() {
            let half = n / 2 + 1;
            let real: Vec<C> = noise(n, 2 * n).into_iter().map(|x| (x, 0.0)).collect();
            let text = format!(
                "HloModule m\nENTRY e {{\n x = f32[2,{n}] parameter(0)\n ROOT r = c64[2,{half}] fft(x), fft_type=RFFT, fft_length={{{n}}}\n}}\n"
            );
            let found = expanded(&text, literal(PrimitiveType::F32, &[2, n], &real));
            let wanted: Vec<C> = real
                .chunks(n)
                .flat_map(|row| definition(row, -1.0).into_iter().take(half))
                .collect();
            let off = error(&found, &wanted);
            assert!(off < 4e-7, "RFFT of {n}: {off}");
            // Back, from a spectrum whose ends are not real.
            let spectrum = signal(n, 2 * half);
            let text = format!(
                "HloModule m\nENTRY e {{\n x = c64[2,{half}] parameter(0)\n ROOT r = f32[2,{n}] fft(x), fft_type=IRFFT, fft_length={{{n}}}\n}}\n"
            );
            let found = expanded(&text, literal(PrimitiveType::C64, &[2, half], &spectrum));
            let wanted: Vec<C> = spectrum
                .chunks(half)
                .flat_map(|row| {
                    let full: Vec<C> = (0..n)
                        .map(|k| match k {
                            _ if k == 0 || 2 * k == n => (row[k].0, 0.0),
                            _ if k < half => row[k],
                            _ => (row[n - k].0, -row[n - k].1),
                        })
                        .collect();
                    definition(&full, 1.0)
                })
                .map(|c| (c.0 / n as f64, 0.0))
                .collect();
            let off = error(&found, &wanted);
            assert!(off < 4e-7, "IRFFT of {n}: {off}");
        }
    }

    #[test]
    fn several_dimensions_are_transformed_like_the_evaluator_does() {
        for (from, to, kind, dims, lengths) in [
            (
                "c64[2,3,4,5]",
                "c64[2,3,4,5]",
                "FFT",
                &[2, 3, 4, 5][..],
                "3,4,5",
            ),
            ("c64[6,10]", "c64[6,10]", "IFFT", &[6, 10], "6,10"),
            ("c64[3,4,4]", "f32[3,4,6]", "IRFFT", &[3, 4, 4], "3,4,6"),
            ("f32[2,37,10]", "c64[2,37,6]", "RFFT", &[2, 37, 10], "37,10"),
            ("c64[4,5]", "f32[4,9]", "IRFFT", &[4, 5], "4,9"),
        ] {
            let text = format!(
                "HloModule m\nENTRY e {{\n x = {from} parameter(0)\n ROOT r = {to} fft(x), fft_type={kind}, fft_length={{{lengths}}}\n}}\n"
            );
            let ty = if kind == "RFFT" {
                PrimitiveType::F32
            } else {
                PrimitiveType::C64
            };
            let input = literal(ty, dims, &signal(5, dims.iter().product()));
            let module = crate::front::hlo_text::parse(&text).expect("the text is a module");
            let wanted = eval::evaluate(&module, std::slice::from_ref(&input)).expect("it runs");
            let wanted = wanted.as_array().expect("an array");
            let wanted: Vec<C> = (0..wanted.len())
                .map(|i| match number::decode(wanted.ty(), wanted.element(i)) {
                    Number::Complex(re, im) => (re, im),
                    Number::Float(x) => (x, 0.0),
                    Number::Int(x) => (x as f64, 0.0),
                })
                .collect();
            let off = error(&expanded(&text, input), &wanted);
            assert!(off < 4e-7, "{kind} of {from}: {off}");
        }
    }

    #[test]
    fn long_tables_are_made_of_short_ones() {
        // Lengths beyond the tables: two factors, a prime, and a real one.
        let n = 16384;
        let text = format!(
            "HloModule m\nENTRY e {{\n x = f32[{n}] parameter(0)\n ROOT r = c64[{}] fft(x), fft_type=RFFT, fft_length={{{n}}}\n}}\n",
            n / 2 + 1
        );
        // One frequency: all of the spectrum but two lines is zero.
        let wave: Vec<C> = (0..n)
            .map(|j| {
                let angle = std::f64::consts::TAU * (j * 1234 % n) as f64 / n as f64;
                (angle.cos() + angle.sin(), 0.0)
            })
            .collect();
        let found = expanded(&text, literal(PrimitiveType::F32, &[n], &wave));
        let mut wanted = vec![(0.0, 0.0); n / 2 + 1];
        wanted[1234] = (n as f64 / 2.0, -(n as f64) / 2.0);
        assert!(error(&found, &wanted) < 4e-7);
        let n = 4099;
        let text = format!(
            "HloModule m\nENTRY e {{\n x = c64[{n}] parameter(0)\n ROOT r = c64[{n}] fft(x), fft_type=FFT, fft_length={{{n}}}\n}}\n"
        );
        let x = signal(3, n);
        let found = expanded(&text, literal(PrimitiveType::C64, &[n], &x));
        assert!(error(&found, &definition(&x, -1.0)) < 8e-7);
    }

    #[test]
    fn constants_stay_small_and_programs_short() {
        for n in [1 << 20, 1_000_003, 1 << 24] {
            let text = format!(
                "HloModule m\nENTRY e {{\n x = f32[{n}] parameter(0)\n ROOT r = c64[{}] fft(x), fft_type=RFFT, fft_length={{{n}}}\n}}\n",
                n / 2 + 1
            );
            let mut module = crate::front::hlo_text::parse(&text).expect("the text is a module");
            assert!(expand_all(&mut module).expect("every fft expands"));
            let constants = module.instrs.values().filter_map(|i| match &i.op {
                Op::Constant(_) => i.shape.as_array().map(ArrayShape::element_count),
                _ => None,
            });
            let total: usize = constants.sum();
            assert!(total < 64 << 10, "{total} elements for {n}");
            assert!(
                module.instrs.len() < 3000,
                "{} for {n}",
                module.instrs.len()
            );
        }
    }

    #[test]
    fn roots_are_exact_at_quarter_turns() {
        assert_eq!(root(0, 7, Sign(1.0)), (1.0, 0.0));
        assert_eq!(root(3, 12, Sign(-1.0)), (-0.0, -1.0));
        assert_eq!(root(10, 20, Sign(1.0)), (-1.0, -0.0));
        assert_eq!(root(3, 24, Sign(1.0)), root(1, 8, Sign(1.0)));
        let (cos, sin) = root(1, 8, Sign(1.0));
        assert!((cos - sin).abs() < 2e-16);
    }

    #[test]
    fn factors_are_gathered_up_to_the_radix() {
        assert_eq!(radices(1), Some(vec![]));
        assert_eq!(radices(1 << 10), Some(vec![16, 16, 4]));
        assert_eq!(radices(360), Some(vec![15, 12, 2]));
        assert_eq!(radices(31 * 17), Some(vec![31, 17]));
        assert_eq!(radices(37), None);
    }
}
