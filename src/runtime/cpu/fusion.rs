//! Fusions that a bundle leaves to the library of its producer, value by value.
//!
//! Products and convolutions go to the kernels of [`dot`] and [`convolution`]; everything else is
//! computed in blocks of elements, floats as f64 and integers as i64, each value rounded to its type.
//! Sums begin with the initial value and are rounded once.

use std::borrow::Cow;

use crate::base::Diagnostic;
use crate::base::Location;
use crate::base::Result;
use crate::base::codes;
use crate::executable::BinaryFn;
use crate::executable::ConvWindowDim;
use crate::executable::FusionBody;
use crate::executable::FusionOp;
use crate::executable::FusionValue;
use crate::executable::LibraryFusionThunk;
use crate::executable::Reducer;
use crate::executable::UnaryFn;
use crate::runtime::binding::refused_too_late;
use crate::runtime::cpu::convolution;
use crate::runtime::cpu::dot;
use crate::runtime::cpu::pool::Pool;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;
use crate::shape::index::advance;
use crate::shape::index::row_major_strides;

/// Elements that are computed at once.
const BLOCK: usize = 1024;

/// What a fusion computes.
///
/// # Errors
/// `XA8003` when it holds what this loader does not compute.
pub fn check_body(thunk: &LibraryFusionThunk) -> Result<&FusionBody> {
    let refused = |why: String| {
        let message = "a fusion that was left to a library of its producer";
        Err(Diagnostic::unsupported(codes::LOAD, message).note(why))
    };
    let body = match &thunk.body {
        Ok(body) => body,
        Err(why) => return refused(why.clone()),
    };
    for (i, value) in body.values.iter().enumerate() {
        let found = match &value.op {
            FusionOp::Dot(thunk) => dot::check_types(thunk),
            FusionOp::Convolution(thunk) => convolution::check_types(thunk),
            _ => Ok(()),
        };
        found.map_err(|e| e.or_at(|| Location::Path(format!("value {i} of a fusion"))))?;
    }
    Ok(body)
}

/// Computes the result of a fusion from its operands.
///
/// # Errors
/// `XA8004` without memory for the values in between.
pub fn run(body: &FusionBody, args: &[&[u8]], out: &mut [u8], pool: &Pool) -> Result<()> {
    let mut values: Vec<Cow<'_, [u8]>> = Vec::with_capacity(body.values.len());
    let (last, before) = body
        .values
        .split_last()
        .ok_or_else(|| refused_too_late("library-fusion"))?;
    for value in before {
        let bytes = match &value.op {
            FusionOp::Parameter(number) => Cow::Borrowed(args[*number]),
            FusionOp::Constant(bytes) => Cow::Borrowed(bytes.as_slice()),
            _ => {
                let mut bytes = zeroed(value.shape.byte_size())?;
                let operands = Operands {
                    body,
                    values: &values,
                };
                operands.compute(value, &mut bytes, pool)?;
                Cow::Owned(bytes)
            }
        };
        values.push(bytes);
    }
    match &last.op {
        FusionOp::Parameter(number) => out.copy_from_slice(args[*number]),
        FusionOp::Constant(bytes) => out.copy_from_slice(bytes),
        _ => {
            let operands = Operands {
                body,
                values: &values,
            };
            operands.compute(last, out, pool)?;
        }
    }
    Ok(())
}

fn zeroed(size: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size).map_err(|_| {
        let message = format!("no memory for a value of {size} bytes in a fusion");
        Diagnostic::error(codes::RUN, message)
    })?;
    bytes.resize(size, 0);
    Ok(bytes)
}

/// Values that are known, to compute the next one from.
struct Operands<'b, 'v> {
    body: &'b FusionBody,
    values: &'v [Cow<'v, [u8]>],
}

/// An array of a fusion.
#[derive(Clone, Copy)]
struct Array<'a> {
    shape: &'a ArrayShape,
    bytes: &'a [u8],
}

impl Operands<'_, '_> {
    fn get(&self, at: usize) -> Array<'_> {
        Array {
            shape: &self.body.values[at].shape,
            bytes: &self.values[at],
        }
    }

    fn compute(&self, value: &FusionValue, out: &mut [u8], pool: &Pool) -> Result<()> {
        let shape = &value.shape;
        let width = shape.ty.byte_width();
        let operand = |i: usize| self.get(value.operands[i]);
        match &value.op {
            // Whoever computes values in order has copied these.
            FusionOp::Parameter(_) | FusionOp::Constant(_) => {
                return Err(refused_too_late("library-fusion"));
            }
            FusionOp::Iota(dim) => {
                let stride = row_major_strides(&shape.dims)[*dim];
                let size = shape.dims[*dim];
                for (i, element) in out.chunks_exact_mut(width).enumerate() {
                    let at = i / stride % size;
                    store(shape.ty, Number::Integer(at as i64), element);
                }
            }
            FusionOp::Unary(function) => unary(*function, operand(0), shape.ty, out),
            FusionOp::Binary(function) => {
                binary(*function, [operand(0), operand(1)], shape.ty, out)
            }
            FusionOp::Same => out.copy_from_slice(operand(0).bytes),
            FusionOp::Broadcast(dims) => {
                let of_operand = row_major_strides(&operand(0).shape.dims);
                let mut strides = vec![0; shape.rank()];
                for (&d, stride) in dims.iter().zip(of_operand) {
                    strides[d] = stride;
                }
                move_elements(operand(0).bytes, width, &shape.dims, &strides, 0, out);
            }
            FusionOp::Transpose(order) => {
                let of_operand = row_major_strides(&operand(0).shape.dims);
                let strides: Vec<usize> = order.iter().map(|&d| of_operand[d]).collect();
                move_elements(operand(0).bytes, width, &shape.dims, &strides, 0, out);
            }
            FusionOp::Slice { starts, strides } => {
                let of_operand = row_major_strides(&operand(0).shape.dims);
                let first = starts.iter().zip(&of_operand).map(|(a, b)| a * b).sum();
                let strides: Vec<usize> = strides
                    .iter()
                    .zip(&of_operand)
                    .map(|(a, b)| a * b)
                    .collect();
                move_elements(operand(0).bytes, width, &shape.dims, &strides, first, out);
            }
            FusionOp::Concatenate(dim) => self.concatenate(value, *dim, out),
            FusionOp::Pad { low } => pad(operand(0), operand(1).bytes, low, &shape.dims, out),
            FusionOp::Dot(thunk) => {
                dot::run(thunk, operand(0).bytes, operand(1).bytes, out, pool)?;
            }
            FusionOp::Convolution(thunk) => {
                convolution::run(thunk, operand(0).bytes, operand(1).bytes, out, pool)?;
            }
            FusionOp::Reduce(reducer, dims) => {
                let all = 0..operand(0).shape.rank();
                let kept: Vec<usize> = all.filter(|d| !dims.contains(d)).collect();
                let of_result = row_major_strides(&shape.dims);
                let mut strides = vec![0; operand(0).shape.rank()];
                for (&d, stride) in kept.iter().zip(of_result) {
                    strides[d] = stride;
                }
                let places = Places::Strided(&strides);
                reduce(*reducer, [operand(0), operand(1)], &places, shape, out)?;
            }
            FusionOp::ReduceWindow(reducer, window) => {
                let places = Places::Windows(window, &shape.dims);
                reduce(*reducer, [operand(0), operand(1)], &places, shape, out)?;
            }
        }
        Ok(())
    }

    /// Runs of the operands that lie together in the result, one after the other.
    fn concatenate(&self, value: &FusionValue, dim: usize, out: &mut [u8]) {
        let inner = row_major_strides(&value.shape.dims)[dim] * value.shape.ty.byte_width();
        let row = value.shape.dims[dim] * inner;
        let mut first = 0;
        for &operand in &value.operands {
            let array = self.get(operand);
            let run = array.shape.dims[dim] * inner;
            if run > 0 {
                let rows = out.chunks_exact_mut(row).zip(array.bytes.chunks_exact(run));
                rows.for_each(|(to, from)| to[first..first + run].copy_from_slice(from));
            }
            first += run;
        }
    }
}

/// Fills a row-major result of these sizes with elements that lie `strides` apart, from `first` on.
fn move_elements(
    from: &[u8],
    width: usize,
    dims: &[usize],
    strides: &[usize],
    first: usize,
    out: &mut [u8],
) {
    if out.is_empty() {
        return;
    }
    let mut index = vec![0; dims.len()];
    for element in out.chunks_exact_mut(width) {
        let at: usize = index.iter().zip(strides).map(|(i, s)| i * s).sum();
        let at = (first + at) * width;
        element.copy_from_slice(&from[at..at + width]);
        advance(dims, &mut index);
    }
}

fn pad(x: Array<'_>, value: &[u8], low: &[i64], dims: &[usize], out: &mut [u8]) {
    let width = value.len();
    for element in out.chunks_exact_mut(width) {
        element.copy_from_slice(value);
    }
    if x.bytes.is_empty() {
        return;
    }
    let strides = row_major_strides(dims);
    let mut index = vec![0; dims.len()];
    for element in x.bytes.chunks_exact(width) {
        let place = index.iter().zip(low).zip(dims).zip(&strides);
        let place = place.map(|(((&i, &low), &size), stride)| {
            let at = usize::try_from(i as i64 + low).ok()?;
            (at < size).then_some(at * stride)
        });
        if let Some(at) = place.sum::<Option<usize>>() {
            out[at * width..(at + 1) * width].copy_from_slice(element);
        }
        advance(&x.shape.dims, &mut index);
    }
}

/// An element as a number to compute with.
#[derive(Clone, Copy)]
enum Number {
    Float(f64),
    Integer(i64),
}

fn load(ty: PrimitiveType, bytes: &[u8]) -> Number {
    use PrimitiveType as P;
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(word);
    match ty {
        P::F64 => Number::Float(f64::from_bits(bits)),
        P::F32 => Number::Float(f64::from(f32::from_bits(bits as u32))),
        P::F16 => Number::Float(half::f16::from_bits(bits as u16).to_f64()),
        P::BF16 => Number::Float(half::bf16::from_bits(bits as u16).to_f64()),
        _ => {
            // The sign is the highest bit of a signed element.
            let unused = 64 - ty.bit_width() as u32;
            let high = bits << unused;
            Number::Integer(match ty.is_signed() {
                true => high.cast_signed() >> unused,
                false => (high >> unused).cast_signed(),
            })
        }
    }
}

/// Writes a number, rounded to nearest even; integers wrap, and floats that become integers are cut
/// off and kept in range, NaN being 0.
fn store(ty: PrimitiveType, number: Number, bytes: &mut [u8]) {
    use PrimitiveType as P;
    let float = match number {
        Number::Float(x) => x,
        Number::Integer(n) => n as f64,
    };
    let bits = match ty {
        P::F64 => float.to_bits(),
        P::F32 => u64::from((float as f32).to_bits()),
        P::F16 => u64::from(half::f16::from_f32(narrowed(float)).to_bits()),
        P::BF16 => u64::from(half::bf16::from_f32(narrowed(float)).to_bits()),
        _ => match number {
            Number::Integer(n) => n.cast_unsigned(),
            Number::Float(x) => {
                let bits = ty.bit_width() as i32;
                let (low, high) = match ty.is_signed() {
                    true => (-2f64.powi(bits - 1), 2f64.powi(bits - 1) - 1.0),
                    false => (0.0, 2f64.powi(bits) - 1.0),
                };
                (x.clamp(low, high) as i64).cast_unsigned()
            }
        },
    };
    let width = bytes.len();
    bytes.copy_from_slice(&bits.to_le_bytes()[..width]);
}

/// An f32 that a narrower float is rounded from as from the number itself: it is cut off, and its last
/// bit is set when anything is lost.
fn narrowed(x: f64) -> f32 {
    let near = x as f32;
    let wide = f64::from(near);
    if wide == x || x.is_nan() {
        return near;
    }
    let bits = match wide.abs() > x.abs() {
        true => near.to_bits() - 1,
        false => near.to_bits(),
    };
    f32::from_bits(bits | 1)
}

/// Loads a block of elements, all of one kind of number.
fn load_block(x: Array<'_>, first: usize, block: &mut [Number]) {
    let width = x.shape.ty.byte_width();
    let bytes = &x.bytes[first * width..(first + block.len()) * width];
    for (number, bytes) in block.iter_mut().zip(bytes.chunks_exact(width)) {
        *number = load(x.shape.ty, bytes);
    }
}

/// Computes the elements of a result, block by block.
fn by_block(ty: PrimitiveType, out: &mut [u8], mut compute: impl FnMut(usize, &mut [Number])) {
    let width = ty.byte_width();
    let mut numbers = [Number::Integer(0); BLOCK];
    for (i, out) in out.chunks_mut(BLOCK * width).enumerate() {
        let numbers = &mut numbers[..out.len() / width];
        compute(i * BLOCK, numbers);
        for (number, element) in numbers.iter().zip(out.chunks_exact_mut(width)) {
            store(ty, *number, element);
        }
    }
}

fn unary(function: UnaryFn, x: Array<'_>, ty: PrimitiveType, out: &mut [u8]) {
    by_block(ty, out, |first, numbers| {
        load_block(x, first, numbers);
        for number in numbers {
            *number = match *number {
                Number::Float(x) => Number::Float(unary_float(function, x)),
                Number::Integer(n) => Number::Integer(unary_integer(function, n)),
            };
        }
    });
}

fn unary_float(function: UnaryFn, x: f64) -> f64 {
    match function {
        UnaryFn::Abs => x.abs(),
        UnaryFn::Ceil => x.ceil(),
        UnaryFn::Convert => x,
        UnaryFn::Cosine => x.cos(),
        UnaryFn::Erf => libm::erf(x),
        UnaryFn::Exp => x.exp(),
        UnaryFn::ExpMinusOne => x.exp_m1(),
        UnaryFn::Floor => x.floor(),
        UnaryFn::Log => x.ln(),
        UnaryFn::LogPlusOne => x.ln_1p(),
        UnaryFn::Logistic => 1.0 / (1.0 + (-x).exp()),
        UnaryFn::Negate => -x,
        UnaryFn::RoundEven => x.round_ties_even(),
        UnaryFn::Rsqrt => 1.0 / x.sqrt(),
        // Zeros and NaN are their own signs.
        UnaryFn::Sign if x == 0.0 || x.is_nan() => x,
        UnaryFn::Sign => x.signum(),
        UnaryFn::Sine => x.sin(),
        UnaryFn::Sqrt => x.sqrt(),
        UnaryFn::Tan => x.tan(),
        UnaryFn::Tanh => x.tanh(),
    }
}

/// The check lets no other functions have integers.
fn unary_integer(function: UnaryFn, n: i64) -> i64 {
    match function {
        UnaryFn::Abs => n.wrapping_abs(),
        UnaryFn::Negate => n.wrapping_neg(),
        UnaryFn::Sign => n.signum(),
        _ => n,
    }
}

fn binary(function: BinaryFn, [x, y]: [Array<'_>; 2], ty: PrimitiveType, out: &mut [u8]) {
    let mut right = [Number::Integer(0); BLOCK];
    by_block(ty, out, |first, numbers| {
        let right = &mut right[..numbers.len()];
        load_block(x, first, numbers);
        load_block(y, first, right);
        for (number, other) in numbers.iter_mut().zip(right) {
            *number = combine(function, *number, *other);
        }
    });
}

/// NaN is the larger and the smaller of all. Both numbers are of one kind.
fn combine(function: BinaryFn, a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Integer(a), Number::Integer(b)) => Number::Integer(match function {
            BinaryFn::Add => a.wrapping_add(b),
            BinaryFn::Subtract => a.wrapping_sub(b),
            BinaryFn::Multiply => a.wrapping_mul(b),
            BinaryFn::Maximum => a.max(b),
            BinaryFn::Minimum => a.min(b),
            // The check lets no integers come here.
            BinaryFn::Divide | BinaryFn::Power => a,
        }),
        (Number::Float(a), Number::Float(b)) => Number::Float(match function {
            BinaryFn::Add => a + b,
            BinaryFn::Subtract => a - b,
            BinaryFn::Multiply => a * b,
            BinaryFn::Divide => a / b,
            BinaryFn::Power => a.powf(b),
            BinaryFn::Maximum | BinaryFn::Minimum if a.is_nan() || b.is_nan() => f64::NAN,
            BinaryFn::Maximum => a.max(b),
            BinaryFn::Minimum => a.min(b),
        }),
        (a, _) => a,
    }
}

/// Which results an element of an operand goes to.
enum Places<'a> {
    /// The one at the sum of its position times these strides.
    Strided(&'a [usize]),
    /// Those in whose windows it is; the result has these sizes.
    Windows(&'a [ConvWindowDim], &'a [usize]),
}

fn reduce(
    reducer: Reducer,
    [x, init]: [Array<'_>; 2],
    places: &Places<'_>,
    shape: &ArrayShape,
    out: &mut [u8],
) -> Result<()> {
    let count = shape.element_count();
    let mut sums = Vec::new();
    sums.try_reserve_exact(count).map_err(|_| {
        let message = format!("no memory for {count} sums of a fusion");
        Diagnostic::error(codes::RUN, message)
    })?;
    sums.resize(count, load(shape.ty, init.bytes));
    let function = match reducer {
        Reducer::Sum => BinaryFn::Add,
        Reducer::Maximum => BinaryFn::Maximum,
        Reducer::Minimum => BinaryFn::Minimum,
    };
    let width = x.shape.ty.byte_width();
    let mut index = vec![0; x.shape.rank()];
    let mut found = Vec::new();
    for element in x.bytes.chunks_exact(width) {
        let number = load(x.shape.ty, element);
        match places {
            Places::Strided(strides) => {
                let at: usize = index.iter().zip(*strides).map(|(i, s)| i * s).sum();
                sums[at] = combine(function, sums[at], number);
            }
            Places::Windows(window, dims) => {
                windows_of(&index, window, dims, &mut found);
                for &at in &found {
                    sums[at] = combine(function, sums[at], number);
                }
            }
        }
        advance(&x.shape.dims, &mut index);
    }
    let width = shape.ty.byte_width();
    for (sum, element) in sums.iter().zip(out.chunks_exact_mut(width)) {
        store(shape.ty, *sum, element);
    }
    Ok(())
}

/// The row-major positions of the results in whose windows an element is.
fn windows_of(index: &[usize], window: &[ConvWindowDim], dims: &[usize], found: &mut Vec<usize>) {
    found.clear();
    found.push(0);
    for ((&at, w), &size) in index.iter().zip(window).zip(dims) {
        let at = at as i64 + w.padding_low;
        // Positions of the window's first element, one for each element of the window.
        let taps = (0..w.size).filter_map(|tap| {
            let first = at - tap * w.window_dilation;
            let result = usize::try_from(first).ok()? / w.stride as usize;
            (first % w.stride == 0 && result < size).then_some(result)
        });
        let taps: Vec<usize> = taps.collect();
        let outer = std::mem::take(found);
        found.extend(
            outer
                .iter()
                .flat_map(|o| taps.iter().map(move |t| o * size + t)),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Id;
    use crate::executable::AllocId;
    use crate::executable::DotThunk;
    use crate::executable::ShapedSlice;
    use crate::executable::Slice;
    use crate::shape::Dims;
    use std::sync::Arc;

    fn shape(ty: PrimitiveType, dims: &[usize]) -> ArrayShape {
        let mut shape = ArrayShape::new(ty, dims.iter().copied());
        shape.layout = Some(shape.layout_or_default());
        shape
    }

    fn f32s(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    struct Builder(FusionBody);

    impl Builder {
        fn push(&mut self, dims: &[usize], operands: &[usize], op: FusionOp) -> usize {
            self.typed(PrimitiveType::F32, dims, operands, op)
        }

        fn typed(
            &mut self,
            ty: PrimitiveType,
            dims: &[usize],
            operands: &[usize],
            op: FusionOp,
        ) -> usize {
            self.0.values.push(FusionValue {
                shape: shape(ty, dims),
                operands: operands.to_vec(),
                op,
            });
            self.0.values.len() - 1
        }

        fn constant(&mut self, dims: &[usize], values: &[f32]) -> usize {
            self.push(dims, &[], FusionOp::Constant(Arc::new(f32s(values))))
        }

        fn run(&self) -> Vec<u8> {
            let size = self.0.values.last().unwrap().shape.byte_size();
            let mut out = vec![0; size];
            run(&self.0, &[], &mut out, &Pool::new(1).unwrap()).unwrap();
            out
        }
    }

    fn builder() -> Builder {
        Builder(FusionBody { values: Vec::new() })
    }

    fn dims(list: &[usize]) -> Dims {
        list.iter().copied().collect()
    }

    fn window(size: i64, stride: i64, low: i64, high: i64) -> ConvWindowDim {
        ConvWindowDim {
            size,
            stride,
            padding_low: low,
            padding_high: high,
            window_dilation: 1,
            base_dilation: 1,
            reversal: false,
        }
    }

    /// exp(x - max(x)) / sum along rows, of a product with the unit matrix.
    #[test]
    fn a_product_and_a_softmax() {
        let mut b = builder();
        let x = b.constant(&[2, 2], &[0.0, 1.0, 3.0, 3.0]);
        let unit = b.constant(&[2, 2], &[1.0, 0.0, 0.0, 1.0]);
        let part = || ShapedSlice {
            slice: Slice {
                alloc: AllocId::from_index(0),
                offset: 0,
                size: 0,
            },
            shape: shape(PrimitiveType::F32, &[2, 2]),
        };
        let dot = DotThunk {
            dims: [vec![1], vec![0], vec![], vec![]],
            lhs: part(),
            rhs: part(),
            out: part(),
        };
        let x = b.push(&[2, 2], &[x, unit], FusionOp::Dot(Box::new(dot)));
        let low = b.constant(&[], &[f32::NEG_INFINITY]);
        let max = FusionOp::Reduce(Reducer::Maximum, dims(&[1]));
        let max = b.push(&[2], &[x, low], max);
        let max = b.push(&[2, 2], &[max], FusionOp::Broadcast(dims(&[0])));
        let less = b.push(&[2, 2], &[x, max], FusionOp::Binary(BinaryFn::Subtract));
        let e = b.push(&[2, 2], &[less], FusionOp::Unary(UnaryFn::Exp));
        let zero = b.constant(&[], &[0.0]);
        let sum = b.push(&[2], &[e, zero], FusionOp::Reduce(Reducer::Sum, dims(&[1])));
        let sum = b.push(&[2, 2], &[sum], FusionOp::Broadcast(dims(&[0])));
        b.push(&[2, 2], &[e, sum], FusionOp::Binary(BinaryFn::Divide));
        // exp(-1) = 0.36787945
        let whole = 1.0 + 0.367_879_45_f32;
        let wanted = [0.367_879_45 / whole, 1.0 / whole, 0.5, 0.5];
        for (got, wanted) in b.run().chunks_exact(4).zip(wanted) {
            let got = f32::from_le_bytes(*got.first_chunk().unwrap());
            assert!((got - wanted).abs() < 1e-7, "{got} {wanted}");
        }
    }

    #[test]
    fn elements_are_moved() {
        let six = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let mut b = builder();
        let x = b.constant(&[2, 3], &six);
        let t = b.push(&[3, 2], &[x], FusionOp::Transpose(dims(&[1, 0])));
        let op = FusionOp::Slice {
            starts: dims(&[0, 1]),
            strides: dims(&[2, 1]),
        };
        let s = b.push(&[2, 1], &[t], op);
        let c = b.push(&[2, 3], &[t, s][1..], FusionOp::Concatenate(1));
        // Two columns of the transpose would not fit; three slices do.
        b.0.values[c].operands = vec![s, s, s];
        let nine = b.constant(&[], &[9.0]);
        let op = FusionOp::Pad { low: vec![1, -1] };
        b.push(&[3, 3], &[c, nine], op);
        let wanted = [9.0, 9.0, 9.0, 4.0, 4.0, 9.0, 6.0, 6.0, 9.0];
        assert_eq!(b.run(), f32s(&wanted));
    }

    #[test]
    fn windows_may_be_padded_and_apart() {
        let mut b = builder();
        let x = b.constant(&[5], &[1.0, 2.0, 4.0, 8.0, 16.0]);
        let zero = b.constant(&[], &[0.5]);
        let op = FusionOp::ReduceWindow(Reducer::Sum, vec![window(2, 2, 1, 0)]);
        b.push(&[3], &[x, zero], op);
        assert_eq!(b.run(), f32s(&[1.5, 6.5, 24.5]));
    }

    /// Small types wrap and saturate as HLO has it, and sums of them are in the wide type.
    #[test]
    fn integers_and_small_floats() {
        let ty = PrimitiveType::S8;
        let mut b = builder();
        let bytes = vec![100u8, 0x9c, 7];
        let x = b.typed(ty, &[3], &[], FusionOp::Constant(Arc::new(bytes)));
        b.typed(ty, &[3], &[x, x], FusionOp::Binary(BinaryFn::Add));
        assert_eq!(b.run(), [200, 56, 14]);
        let zero = FusionOp::Constant(Arc::new(vec![0; 4]));
        let zero = b.typed(PrimitiveType::S32, &[], &[], zero);
        let sum = FusionOp::Reduce(Reducer::Sum, dims(&[0]));
        b.typed(PrimitiveType::S32, &[], &[x, zero], sum);
        assert_eq!(b.run(), 7i32.to_le_bytes());

        let mut b = builder();
        let x = b.constant(&[3], &[300.0, f32::NAN, -2.7]);
        b.typed(ty, &[3], &[x], FusionOp::Unary(UnaryFn::Convert));
        assert_eq!(b.run(), [127, 0, 0xfe]);
        // 1 + 2^-8 is halfway between two numbers of bf16; the even one is 1.
        b.0.values.truncate(1);
        b.0.values[0].op = FusionOp::Constant(Arc::new(f32s(&[1.0 + 1.0 / 256.0, 3.0, -0.0])));
        b.typed(
            PrimitiveType::BF16,
            &[3],
            &[x],
            FusionOp::Unary(UnaryFn::Convert),
        );
        assert_eq!(b.run(), [0x80, 0x3f, 0x40, 0x40, 0x00, 0x80]);
    }

    /// 1 + 2^-11 is halfway between two numbers of f16, and 2^-24 more is above: rounded once, the sum
    /// is the upper one, 1 + 2^-10. As f32 it would be the tie, and then 1.
    #[test]
    fn sums_are_rounded_once() {
        let ty = PrimitiveType::F16;
        let mut b = builder();
        let halves = [0x3c00_u16, 0x1000, 0x0001].map(u16::to_le_bytes).concat();
        let x = b.typed(ty, &[3], &[], FusionOp::Constant(Arc::new(halves)));
        let zero = b.typed(ty, &[], &[], FusionOp::Constant(Arc::new(vec![0; 2])));
        let sum = FusionOp::Reduce(Reducer::Sum, dims(&[0]));
        b.typed(ty, &[], &[x, zero], sum);
        assert_eq!(b.run(), 0x3c01_u16.to_le_bytes());
        // 1 + 2^-8 is such a tie of bf16, here just below and above, and at the ends of the types.
        let tie = 1.0 + 2f64.powi(-8);
        let rounded = |x: f64| half::bf16::from_f32(narrowed(x)).to_f64();
        assert_eq!(
            [tie - 1e-15, tie, tie + 1e-15].map(rounded),
            [1.0, 1.0, 1.0 + 2f64.powi(-7)]
        );
        assert_eq!(
            [-tie - 1e-15, -1e300].map(rounded),
            [-1.0 - 2f64.powi(-7), f64::NEG_INFINITY]
        );
        assert!(
            rounded(f64::NAN).is_nan()
                && rounded(1e-300) == 0.0
                && narrowed(-0.0).is_sign_negative()
        );
    }
}
