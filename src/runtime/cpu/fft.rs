//! Fourier transforms of one to three innermost dimensions, any length, by `rustfft`.
//!
//! Forward transforms are unscaled, inverse ones divide by the number of points. A real inverse
//! transform reads the first half of the spectrum only; the imaginary parts of its ends are ignored.

use std::sync::Arc;

use rustfft::Fft;
use rustfft::FftNum;
use rustfft::FftPlanner;
use rustfft::num_complex::Complex;

use crate::base::Result;
use crate::runtime::cpu::array::Element;
use crate::runtime::cpu::pool::Pool;
use crate::shape::PrimitiveType;

/// The kinds of transform, numbered as on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FftKind {
    /// Complex to complex.
    Forward,
    /// Complex to complex, scaled.
    Inverse,
    /// Real to the first half of its spectrum.
    RealForward,
    /// The first half of a spectrum to real.
    RealInverse,
}

impl FftKind {
    /// The kind of that number.
    pub fn from_number(number: i32) -> Option<Self> {
        match number {
            0 => Some(Self::Forward),
            1 => Some(Self::Inverse),
            2 => Some(Self::RealForward),
            3 => Some(Self::RealInverse),
            _ => None,
        }
    }
}

/// A transform of a batch of dense arrays.
pub struct FftPlan {
    kind: FftKind,
    lengths: Vec<usize>,
    is_double: bool,
    single: Vec<Arc<dyn Fft<f32>>>,
    double: Vec<Arc<dyn Fft<f64>>>,
}

impl FftPlan {
    /// A plan for these lengths; `ty` is the element type of the complex side.
    pub fn new(kind: FftKind, lengths: &[usize], ty: PrimitiveType) -> Self {
        let inverse = matches!(kind, FftKind::Inverse | FftKind::RealInverse);
        let is_double = ty == PrimitiveType::C128;
        let (mut single, mut double) = (Vec::new(), Vec::new());
        if is_double {
            double = plans::<f64>(lengths, inverse);
        } else {
            single = plans::<f32>(lengths, inverse);
        }
        Self {
            kind,
            lengths: lengths.to_vec(),
            is_double,
            single,
            double,
        }
    }

    /// Transforms every array of the batch.
    ///
    /// # Errors
    /// `XA9001` when a task panics.
    pub fn run(&self, input: &[u8], output: &mut [u8], pool: &Pool) -> Result<()> {
        if self.is_double {
            self.run_as(&self.double, input, output, pool)
        } else {
            self.run_as(&self.single, input, output, pool)
        }
    }

    /// Elements of one array: of the whole transform, and of the half spectrum.
    fn points(&self) -> (usize, usize) {
        let full: usize = self.lengths.iter().product();
        let last = self.lengths.last().copied().unwrap_or(1);
        let half = if full == 0 {
            0
        } else {
            full / last * (last / 2 + 1)
        };
        (full, half)
    }

    fn run_as<T: FftNum + Element>(
        &self,
        plans: &[Arc<dyn Fft<T>>],
        input: &[u8],
        output: &mut [u8],
        pool: &Pool,
    ) -> Result<()> {
        let (full, half) = self.points();
        if full == 0 {
            return Ok(());
        }
        let (real, complex) = (T::BYTES, 2 * T::BYTES);
        let (in_bytes, out_bytes) = match self.kind {
            FftKind::Forward | FftKind::Inverse => (full * complex, full * complex),
            FftKind::RealForward => (full * real, half * complex),
            FftKind::RealInverse => (half * complex, full * real),
        };
        let outputs: Vec<_> = output
            .chunks_exact_mut(out_bytes)
            .map(std::sync::Mutex::new)
            .collect();
        pool.run(outputs.len() as u64, &|task| {
            let i = task as usize;
            let input = &input[i * in_bytes..(i + 1) * in_bytes];
            let mut output = outputs[i].lock().unwrap_or_else(|e| e.into_inner());
            self.one(plans, input, &mut output);
        })
    }

    fn one<T: FftNum + Element>(&self, plans: &[Arc<dyn Fft<T>>], input: &[u8], output: &mut [u8]) {
        match self.kind {
            FftKind::Forward => {
                let mut data = load_complex::<T>(input);
                transform(plans, &self.lengths, &mut data, 0);
                store_complex(&data, output);
            }
            FftKind::Inverse => {
                let mut data = load_complex::<T>(input);
                transform(plans, &self.lengths, &mut data, 0);
                scale(&mut data);
                store_complex(&data, output);
            }
            FftKind::RealForward => {
                let reals = input.chunks_exact(T::BYTES).map(T::load);
                let mut data: Vec<_> = reals.map(|re| Complex::new(re, T::zero())).collect();
                transform(plans, &self.lengths, &mut data, 0);
                let last = self.lengths.last().copied().unwrap_or(1);
                let rows = data.chunks_exact(last);
                let kept: Vec<_> = rows.flat_map(|row| row[..last / 2 + 1].to_vec()).collect();
                store_complex(&kept, output);
            }
            FftKind::RealInverse => self.real_inverse(plans, input, output),
        }
    }

    /// Outer dimensions first, on the half spectrum; then each row is completed and transformed.
    fn real_inverse<T: FftNum + Element>(
        &self,
        plans: &[Arc<dyn Fft<T>>],
        input: &[u8],
        output: &mut [u8],
    ) {
        let last = self.lengths.last().copied().unwrap_or(1);
        let kept = last / 2 + 1;
        let mut lengths = self.lengths.clone();
        if let Some(length) = lengths.last_mut() {
            *length = kept;
        }
        let mut spectrum = load_complex::<T>(input);
        transform(plans, &lengths, &mut spectrum, 1);
        let mut data = Vec::with_capacity(spectrum.len() / kept * last);
        for row in spectrum.chunks_exact(kept) {
            let mut full = row.to_vec();
            full.resize(last, Complex::new(T::zero(), T::zero()));
            full[0].im = T::zero();
            if last.is_multiple_of(2) {
                full[last / 2].im = T::zero();
            }
            for i in kept..last {
                full[i] = full[last - i].conj();
            }
            data.extend(full);
        }
        let inner = plans.len() - 1;
        transform(&plans[inner..], &self.lengths[inner..], &mut data, 0);
        scale(&mut data);
        for (value, bytes) in data.iter().zip(output.chunks_exact_mut(T::BYTES)) {
            value.re.store(bytes);
        }
    }
}

fn plans<T: FftNum>(lengths: &[usize], inverse: bool) -> Vec<Arc<dyn Fft<T>>> {
    let mut planner = FftPlanner::new();
    let direction = if inverse {
        rustfft::FftDirection::Inverse
    } else {
        rustfft::FftDirection::Forward
    };
    let lengths = lengths.iter();
    lengths.map(|&n| planner.plan_fft(n, direction)).collect()
}

/// Divides by the number of points of one array.
fn scale<T: FftNum>(data: &mut [Complex<T>]) {
    let Some(count) = T::from_usize(data.len()) else {
        return;
    };
    for value in data {
        *value = Complex::new(value.re / count, value.im / count);
    }
}

/// Transforms along each dimension except the last `skip` ones.
fn transform<T: FftNum>(
    plans: &[Arc<dyn Fft<T>>],
    lengths: &[usize],
    data: &mut [Complex<T>],
    skip: usize,
) {
    let zero = Complex::new(T::zero(), T::zero());
    for (d, plan) in plans.iter().enumerate().take(lengths.len() - skip) {
        let length = lengths[d];
        let stride: usize = lengths[d + 1..].iter().product();
        let mut scratch = vec![zero; plan.get_inplace_scratch_len()];
        if stride == 1 {
            plan.process_with_scratch(data, &mut scratch);
            continue;
        }
        let mut line = vec![zero; length];
        for block in data.chunks_exact_mut(length * stride) {
            for start in 0..stride {
                for (i, value) in line.iter_mut().enumerate() {
                    *value = block[start + i * stride];
                }
                plan.process_with_scratch(&mut line, &mut scratch);
                for (i, value) in line.iter().enumerate() {
                    block[start + i * stride] = *value;
                }
            }
        }
    }
}

fn load_complex<T: FftNum + Element>(bytes: &[u8]) -> Vec<Complex<T>> {
    let pairs = bytes.chunks_exact(2 * T::BYTES);
    pairs
        .map(|pair| Complex::new(T::load(&pair[..T::BYTES]), T::load(&pair[T::BYTES..])))
        .collect()
}

fn store_complex<T: FftNum + Element>(values: &[Complex<T>], bytes: &mut [u8]) {
    for (value, pair) in values.iter().zip(bytes.chunks_exact_mut(2 * T::BYTES)) {
        let (re, im) = pair.split_at_mut(T::BYTES);
        value.re.store(re);
        value.im.store(im);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(values: &[f64]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    fn floats(bytes: &[u8]) -> Vec<f64> {
        bytes.chunks_exact(8).map(f64::load).collect()
    }

    /// The definition, for a real input of two dimensions.
    fn naive(values: &[f64], rows: usize, columns: usize, u: usize, v: usize) -> (f64, f64) {
        let (mut re, mut im) = (0.0, 0.0);
        for y in 0..rows {
            for x in 0..columns {
                let turns = (u * y) as f64 / rows as f64 + (v * x) as f64 / columns as f64;
                let angle = -2.0 * std::f64::consts::PI * turns;
                re += values[y * columns + x] * angle.cos();
                im += values[y * columns + x] * angle.sin();
            }
        }
        (re, im)
    }

    #[test]
    fn real_transforms_follow_the_definition_and_invert() {
        let pool = Pool::new(1).unwrap();
        for (rows, columns) in [(3, 5), (4, 6), (1, 1), (7, 2)] {
            let values: Vec<f64> = (0..rows * columns)
                .map(|i| (i * i % 11) as f64 - 4.0)
                .collect();
            let half = columns / 2 + 1;
            let mut spectrum = vec![0; rows * half * 16];
            let lengths = [rows, columns];
            let plan = FftPlan::new(FftKind::RealForward, &lengths, PrimitiveType::C128);
            plan.run(&bytes(&values), &mut spectrum, &pool).unwrap();
            for (i, pair) in floats(&spectrum).chunks_exact(2).enumerate() {
                let (re, im) = naive(&values, rows, columns, i / half, i % half);
                assert!((re - pair[0]).abs() + (im - pair[1]).abs() < 1e-9);
            }
            let mut back = vec![0; values.len() * 8];
            let plan = FftPlan::new(FftKind::RealInverse, &lengths, PrimitiveType::C128);
            plan.run(&spectrum, &mut back, &pool).unwrap();
            let errors = floats(&back)
                .into_iter()
                .zip(&values)
                .map(|(a, b)| (a - b).abs());
            assert!(errors.fold(0.0, f64::max) < 1e-12);
        }
    }
}
