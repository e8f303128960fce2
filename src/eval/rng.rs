//! Random bits: Threefry-2x32-20 and Philox-4x32-10 after J. K. Salmon et al., "Parallel random
//! numbers: as easy as 1, 2, 3" (2011), laid out over the result as XLA does, and the free
//! generators, of which only the distribution is specified.

use std::collections::BTreeMap;

use crate::base::Result;
use crate::eval::bits;
use crate::eval::interpret::Evaluator;
use crate::eval::interpret::unsupported;
use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::hlo::RngAlgorithm;
use crate::hlo::RngDistribution;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::literal::number;
use crate::literal::number::Number;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::PrimitiveType;
use crate::shape::index;

/// The state of `rng` and `rng-get-and-update-state` in one run.
pub(super) struct FreeState {
    counter: u64,
    /// Of each instruction that has one.
    states: BTreeMap<InstrId, u128>,
}

impl FreeState {
    pub(super) fn new() -> Self {
        Self {
            counter: 0,
            states: BTreeMap::new(),
        }
    }

    pub(super) fn get_and_update(
        &mut self,
        id: InstrId,
        delta: i64,
        shape: &ArrayShape,
    ) -> Literal {
        // The state XLA's CPU runtime starts from.
        let state = self.states.entry(id).or_insert(0x7012395);
        let old = *state;
        *state = old.wrapping_add(delta as u128);
        Literal::Array(bits::build(shape, |i| {
            Number::Int(i128::from((old >> (64 * i)) as u64))
        }))
    }

    fn next(&mut self) -> u64 {
        self.counter += 1;
        let [low, high] = threefry([0x5eed, 0x1234], split(self.counter));
        join([low, high])
    }
}

fn split(x: u64) -> [u32; 2] {
    [x as u32, (x >> 32) as u32]
}

fn join([low, high]: [u32; 2]) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn threefry(key: [u32; 2], counter: [u32; 2]) -> [u32; 2] {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    let keys = [key[0], key[1], key[0] ^ key[1] ^ 0x1bd1_1bda];
    let [mut x, mut y] = [
        counter[0].wrapping_add(keys[0]),
        counter[1].wrapping_add(keys[1]),
    ];
    for group in 0..5usize {
        for rotation in ROTATIONS[group % 2] {
            x = x.wrapping_add(y);
            y = y.rotate_left(rotation) ^ x;
        }
        x = x.wrapping_add(keys[(group + 1) % 3]);
        y = y
            .wrapping_add(keys[(group + 2) % 3])
            .wrapping_add(group as u32 + 1);
    }
    [x, y]
}

fn philox(mut key: [u32; 2], mut state: [u32; 4]) -> [u32; 4] {
    for _ in 0..10 {
        let first = u64::from(state[0]) * 0xd251_1f53;
        let second = u64::from(state[2]) * 0xcd9e_8d57;
        state = [
            (second >> 32) as u32 ^ state[1] ^ key[0],
            second as u32,
            (first >> 32) as u32 ^ state[3] ^ key[1],
            first as u32,
        ];
        key = [
            key[0].wrapping_add(0x9e37_79b9),
            key[1].wrapping_add(0xbb67_ae85),
        ];
    }
    state
}

/// `(new state, bits)`.
pub(super) fn bit_generator(
    instr: &Instr,
    algorithm: RngAlgorithm,
    state: &ArrayLiteral,
) -> Result<Literal> {
    let shape = instr
        .shape
        .as_tuple()
        .and_then(|parts| parts.get(1))
        .and_then(|s| s.as_array());
    let shape = shape.ok_or_else(|| unsupported(instr, "this result shape"))?;
    let width = shape.ty.bit_width();
    if !(shape.ty.is_integer() || shape.ty.is_float()) || state.ty() != PrimitiveType::U64 {
        return Err(unsupported(instr, "these element types"));
    }
    let words: Vec<u64> = bits::numbers(state)
        .into_iter()
        .map(|n| if let Number::Int(x) = n { x as u64 } else { 0 })
        .collect();
    let (new_state, values) = match algorithm {
        RngAlgorithm::ThreeFry => threefry_bits(&words, shape),
        RngAlgorithm::Philox | RngAlgorithm::Default => philox_bits(&words, shape),
    };
    let byte_width = shape.ty.byte_width();
    let mut data = vec![0; values.len() * byte_width];
    for (value, out) in values.iter().zip(data.chunks_exact_mut(byte_width)) {
        if shape.ty.is_integer() {
            let wrapped = number::wrap(shape.ty, i128::from(*value));
            out.copy_from_slice(&wrapped.to_le_bytes()[..byte_width]);
        } else {
            let mask = if width == 64 {
                u64::MAX
            } else {
                (1 << width) - 1
            };
            out.copy_from_slice(&(value & mask).to_le_bytes()[..byte_width]);
        }
    }
    let state = bits::build(state.shape(), |i| Number::Int(i128::from(new_state[i])));
    let values = ArrayLiteral::new(shape.clone(), data);
    Ok(Literal::Tuple(vec![
        Literal::Array(state),
        Literal::Array(values),
    ]))
}

fn threefry_bits(state: &[u64], shape: &ArrayShape) -> (Vec<u64>, Vec<u64>) {
    let (key, start) = (split(state[0]), state[1]);
    let block = |i: usize| threefry(key, split(start.wrapping_add(i as u64)));
    let count = shape.element_count();
    if shape.ty.bit_width() == 64 {
        let values = (0..count).map(|i| join(block(i))).collect();
        return (vec![state[0], start.wrapping_add(count as u64)], values);
    }
    // The result is cut in two along its first even dimension, or else its largest; neighbours along
    // that dimension are the two words of one block.
    let dims = &shape.dims;
    let even = dims.iter().position(|d| d % 2 == 0);
    let largest = (0..dims.len()).rev().max_by_key(|&d| dims[d]);
    let Some(cut) = even.or(largest) else {
        return (
            vec![state[0], start.wrapping_add(1)],
            vec![u64::from(block(0)[0])],
        );
    };
    let mut half: Dims = dims.clone();
    half[cut] = dims[cut].div_ceil(2);
    let values = (0..count).map(|i| {
        let mut at = index::multi_index(dims, i);
        let word = at[cut] % 2;
        at[cut] /= 2;
        u64::from(block(index::linear_index(&half, &at))[word])
    });
    let values = values.collect();
    (
        vec![
            state[0],
            start.wrapping_add(half.iter().product::<usize>() as u64),
        ],
        values,
    )
}

fn philox_bits(state: &[u64], shape: &ArrayShape) -> (Vec<u64>, Vec<u64>) {
    let key = split(state[0]);
    let counter = if state.len() >= 3 {
        u128::from(state[1]) | u128::from(state[2]) << 64
    } else {
        u128::from(state[1]) | u128::from(state[0]) << 64
    };
    let block = |i: usize| {
        let at = counter.wrapping_add(i as u128);
        philox(
            key,
            [
                at as u32,
                (at >> 32) as u32,
                (at >> 64) as u32,
                (at >> 96) as u32,
            ],
        )
    };
    let count = shape.element_count();
    let wide = shape.ty.bit_width() == 64;
    let per_block = if wide { 2 } else { 4 };
    let values = (0..count).map(|i| {
        let words = block(i / per_block);
        let at = i % per_block;
        if wide {
            join([words[2 * at], words[2 * at + 1]])
        } else {
            u64::from(words[at])
        }
    });
    let values = values.collect();
    let next = counter.wrapping_add(count.div_ceil(per_block) as u128);
    let mut new_state = vec![state[0], next as u64];
    if state.len() >= 3 {
        new_state.push((next >> 64) as u64);
    }
    (new_state, values)
}

/// Uniform in `[a, b)`, or normal with mean `a` and deviation `b`.
pub(super) fn free(
    evaluator: &mut Evaluator<'_>,
    distribution: RngDistribution,
    shape: &ArrayShape,
    operands: &[Literal],
) -> Result<Literal> {
    let parameter = |i: usize| operands[i].as_array().map_or(0.0, |a| bits::floats(a)[0]);
    let (a, b) = (parameter(0), parameter(1));
    let state = &mut evaluator.rng;
    let mut unit = || (state.next() >> 11) as f64 * 2f64.powi(-53);
    let values: Vec<f64> = (0..shape.element_count())
        .map(|_| match distribution {
            RngDistribution::Uniform if shape.ty.is_float() => {
                // Rounding to the type must not reach the open end.
                let x = a + (b - a) * unit();
                let rounded = number::float_to_f64(shape.ty, number::float_from_f64(shape.ty, x));
                if rounded < b { rounded } else { a }
            }
            RngDistribution::Uniform => (a + (b - a) * unit()).floor(),
            RngDistribution::Normal => {
                let (u, v) = (1.0 - unit(), unit());
                a + b * (-2.0 * libm::log(u)).sqrt() * libm::cos(std::f64::consts::TAU * v)
            }
        })
        .collect();
    Ok(Literal::Array(bits::build(shape, |i| {
        Number::Float(values[i])
    })))
}
