//! rng-bit-generator as integer arithmetic, bit-exact with XLA's.
//!
//! Threefry-2x32-20 and Philox-4x32-10 are those of J. K. Salmon et al., "Parallel random numbers: as
//! easy as 1, 2, 3" (2011). How blocks are laid over the result, and how the state moves on, is XLA's:
//! see `eval/rng.rs`, which says the same one element at a time. The default algorithm is Philox.

use crate::base::Result;
use crate::hlo::BinaryOp;
use crate::hlo::Builder;
use crate::hlo::ComparisonDirection;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::RngAlgorithm;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

const U32: PrimitiveType = PrimitiveType::U32;
const U64: PrimitiveType = PrimitiveType::U64;

/// `(new state, bits)`.
pub(super) fn expand(b: &mut Builder<'_>, id: InstrId) -> Result<InstrId> {
    let instr = &b.module.instrs[id];
    let algorithm = match instr.op {
        Op::RngBitGenerator { algorithm } => algorithm,
        _ => RngAlgorithm::Default,
    };
    let state = instr.operands[0];
    let shape = instr.shape.at(&[1]).and_then(Shape::as_array).cloned();
    let shape = shape.unwrap_or_else(|| ArrayShape::scalar(U64));
    let (new_state, words) = match algorithm {
        RngAlgorithm::ThreeFry => threefry_bits(b, state, &shape)?,
        RngAlgorithm::Philox | RngAlgorithm::Default => {
            let (words, count) = philox_bits(b, state, &shape)?;
            (moved_on(b, state, count)?, words)
        }
    };
    let bits = as_type(b, words, shape.ty)?;
    b.tuple(&[new_state, bits])
}

/// u32 or u64 words as elements of another type: the low bits, reinterpreted.
pub(super) fn as_type(b: &mut Builder<'_>, words: InstrId, ty: PrimitiveType) -> Result<InstrId> {
    if ty.is_integer() {
        return b.convert(words, ty);
    }
    let same_width = match ty.bit_width() {
        64 => U64,
        32 => U32,
        16 => PrimitiveType::U16,
        4 => PrimitiveType::U4,
        _ => PrimitiveType::U8,
    };
    let words = b.convert(words, same_width)?;
    b.bitcast_convert(words, ty)
}

/// Element `i` of a vector, as a scalar.
pub(super) fn element(b: &mut Builder<'_>, vector: InstrId, i: usize) -> Result<InstrId> {
    let one = b.slice_dim(vector, 0, i, i + 1)?;
    b.reshape(one, &[])
}

/// The vector of these scalars.
fn vector(b: &mut Builder<'_>, scalars: &[InstrId]) -> Result<InstrId> {
    let rows = scalars.iter().map(|&x| b.reshape(x, &[1]));
    let rows: Vec<InstrId> = rows.collect::<Result<_>>()?;
    b.concatenate(&rows, 0)
}

/// Low and high half of u64 words.
fn split(b: &mut Builder<'_>, x: InstrId) -> Result<[InstrId; 2]> {
    let high = b.binary_scalar(BinaryOp::ShiftRightLogical, x, 32.0)?;
    Ok([b.convert(x, U32)?, b.convert(high, U32)?])
}

fn join(b: &mut Builder<'_>, [low, high]: [InstrId; 2]) -> Result<InstrId> {
    let (low, high) = (b.convert(low, U64)?, b.convert(high, U64)?);
    let high = b.binary_scalar(BinaryOp::ShiftLeft, high, 32.0)?;
    b.binary(BinaryOp::Or, low, high)
}

/// The row-major number of each element, as u64.
fn numbers(b: &mut Builder<'_>, dims: &[usize]) -> Result<InstrId> {
    let count = dims.iter().product();
    let flat = b.iota(U64, &[count], 0)?;
    b.reshape(flat, dims)
}

fn rotate_left(b: &mut Builder<'_>, x: InstrId, by: u32) -> Result<InstrId> {
    let left = b.binary_scalar(BinaryOp::ShiftLeft, x, f64::from(by))?;
    let right = b.binary_scalar(BinaryOp::ShiftRightLogical, x, f64::from(32 - by))?;
    b.binary(BinaryOp::Or, left, right)
}

/// The two words of each block: `key` two u32 scalars, `counter` u64 words.
fn threefry(b: &mut Builder<'_>, key: [InstrId; 2], counter: InstrId) -> Result<[InstrId; 2]> {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    let dims = b.dims(counter)?;
    let mixed = b.binary(BinaryOp::Xor, key[0], key[1])?;
    let parity = b.binary_scalar(BinaryOp::Xor, mixed, f64::from(0x1bd1_1bdau32))?;
    let keys = [key[0], key[1], parity];
    let [x, y] = split(b, counter)?;
    let (first, second) = (
        b.broadcast_scalar(keys[0], &dims)?,
        b.broadcast_scalar(keys[1], &dims)?,
    );
    let (mut x, mut y) = (b.add(x, first)?, b.add(y, second)?);
    for group in 0..5usize {
        for rotation in ROTATIONS[group % 2] {
            x = b.add(x, y)?;
            let turned = rotate_left(b, y, rotation)?;
            y = b.binary(BinaryOp::Xor, turned, x)?;
        }
        let to_x = b.broadcast_scalar(keys[(group + 1) % 3], &dims)?;
        x = b.add(x, to_x)?;
        let key = keys[(group + 2) % 3];
        let key = b.binary_scalar(BinaryOp::Add, key, group as f64 + 1.0)?;
        let to_y = b.broadcast_scalar(key, &dims)?;
        y = b.add(y, to_y)?;
    }
    Ok([x, y])
}

fn threefry_bits(
    b: &mut Builder<'_>,
    state: InstrId,
    shape: &ArrayShape,
) -> Result<(InstrId, InstrId)> {
    let (seed, start) = (element(b, state, 0)?, element(b, state, 1)?);
    let key = split(b, seed)?;
    let dims = &shape.dims;
    // Words narrower than 64 bits come in pairs along one dimension: the first even one, or else the
    // largest (the first of equals); a scalar takes one word.
    let even = dims.iter().position(|d| d % 2 == 0);
    let largest = (0..dims.len()).rev().max_by_key(|&d| dims[d]);
    let cut = if shape.ty.bit_width() == 64 {
        None
    } else {
        even.or(largest)
    };
    let mut blocks: Dims = dims.clone();
    if let Some(cut) = cut {
        blocks[cut] = dims[cut].div_ceil(2);
    }
    let number = numbers(b, &blocks)?;
    let first = b.broadcast_scalar(start, &blocks)?;
    let counter = b.add(number, first)?;
    let words = threefry(b, key, counter)?;
    let used: usize = blocks.iter().product();
    let used = b.constant_int(U64, used as i128);
    let next = b.add(start, used)?;
    let new_state = vector(b, &[seed, next])?;
    let result = match cut {
        Some(cut) => interleave(b, words, cut, dims)?,
        None if shape.ty.bit_width() == 64 => join(b, words)?,
        None => words[0],
    };
    Ok((new_state, result))
}

/// Pairs laid out one after the other along `cut`, cut to `dims`.
fn interleave(
    b: &mut Builder<'_>,
    words: [InstrId; 2],
    cut: usize,
    dims: &[usize],
) -> Result<InstrId> {
    let blocks = b.dims(words[0])?;
    let mut single = blocks.clone();
    single.insert(cut + 1, 1);
    let pair = [b.reshape(words[0], &single)?, b.reshape(words[1], &single)?];
    let pairs = b.concatenate(&pair, cut + 1)?;
    let mut merged = blocks;
    merged[cut] *= 2;
    let whole = b.reshape(pairs, &merged)?;
    if merged[cut] == dims[cut] {
        return Ok(whole);
    }
    b.slice_dim(whole, cut, 0, dims[cut])
}

/// The high and low half of a product of u32 words.
fn product(b: &mut Builder<'_>, x: InstrId, factor: u32) -> Result<[InstrId; 2]> {
    let wide = b.convert(x, U64)?;
    let wide = b.binary_scalar(BinaryOp::Multiply, wide, f64::from(factor))?;
    let [low, high] = split(b, wide)?;
    Ok([high, low])
}

fn philox(b: &mut Builder<'_>, mut key: [InstrId; 2], mut x: [InstrId; 4]) -> Result<[InstrId; 4]> {
    let dims = b.dims(x[0])?;
    for _ in 0..10 {
        let [first_high, first_low] = product(b, x[0], 0xd251_1f53)?;
        let [second_high, second_low] = product(b, x[2], 0xcd9e_8d57)?;
        let keys = [
            b.broadcast_scalar(key[0], &dims)?,
            b.broadcast_scalar(key[1], &dims)?,
        ];
        let a = b.binary(BinaryOp::Xor, second_high, x[1])?;
        let c = b.binary(BinaryOp::Xor, first_high, x[3])?;
        x = [
            b.binary(BinaryOp::Xor, a, keys[0])?,
            second_low,
            b.binary(BinaryOp::Xor, c, keys[1])?,
            first_low,
        ];
        key = [
            b.binary_scalar(BinaryOp::Add, key[0], f64::from(0x9e37_79b9u32))?,
            b.binary_scalar(BinaryOp::Add, key[1], f64::from(0xbb67_ae85u32))?,
        ];
    }
    Ok(x)
}

/// The counter's low and high u64 scalars.
fn philox_counter(b: &mut Builder<'_>, state: InstrId) -> Result<[InstrId; 2]> {
    let low = element(b, state, 1)?;
    let high = if b.dims(state)?.as_slice() == [3] {
        element(b, state, 2)?
    } else {
        element(b, state, 0)?
    };
    Ok([low, high])
}

/// A 128-bit sum of a counter and u64 numbers, which must have the counter's dimensions.
fn advance(b: &mut Builder<'_>, [low, high]: [InstrId; 2], by: InstrId) -> Result<[InstrId; 2]> {
    let sum = b.add(low, by)?;
    let carry = b.compare(ComparisonDirection::Lt, sum, low)?;
    let carry = b.convert(carry, U64)?;
    Ok([sum, b.add(high, carry)?])
}

/// Words for the result (u64 where its elements have 64 bits, else u32), and the number of blocks.
pub(super) fn philox_bits(
    b: &mut Builder<'_>,
    state: InstrId,
    shape: &ArrayShape,
) -> Result<(InstrId, usize)> {
    let count = shape.element_count();
    let wide = shape.ty.bit_width() == 64;
    let per_block = if wide { 2 } else { 4 };
    let blocks = count.div_ceil(per_block);
    let seed = element(b, state, 0)?;
    let key = split(b, seed)?;
    let [low, high] = philox_counter(b, state)?;
    let number = b.iota(U64, &[blocks], 0)?;
    let low = b.broadcast_scalar(low, &[blocks])?;
    let high = b.broadcast_scalar(high, &[blocks])?;
    let [low, high] = advance(b, [low, high], number)?;
    let [x0, x1] = split(b, low)?;
    let [x2, x3] = split(b, high)?;
    let words = philox(b, key, [x0, x1, x2, x3])?;
    let parts = if wide {
        vec![
            join(b, [words[0], words[1]])?,
            join(b, [words[2], words[3]])?,
        ]
    } else {
        words.to_vec()
    };
    let columns = parts.iter().map(|&w| b.reshape(w, &[blocks, 1]));
    let columns: Vec<InstrId> = columns.collect::<Result<_>>()?;
    let table = b.concatenate(&columns, 1)?;
    let flat = b.reshape(table, &[blocks * per_block])?;
    let flat = if blocks * per_block == count {
        flat
    } else {
        b.slice_dim(flat, 0, 0, count)?
    };
    Ok((b.reshape(flat, &shape.dims)?, blocks))
}

/// The state after so many Philox blocks.
fn moved_on(b: &mut Builder<'_>, state: InstrId, blocks: usize) -> Result<InstrId> {
    let seed = element(b, state, 0)?;
    let counter = philox_counter(b, state)?;
    let by = b.constant_int(U64, blocks as i128);
    let [low, high] = advance(b, counter, by)?;
    if b.dims(state)?.as_slice() == [3] {
        vector(b, &[seed, low, high])
    } else {
        vector(b, &[seed, low])
    }
}
