//! Kernels of XLA, on data whose results are worked out here.

use super::*;

const ARGMAX: &str = include_str!("../../../../tests/foreign/argmax_u8.ptx");
const SCATTER: &str = include_str!("../../../../tests/foreign/scatter_mul_u8.ptx");
const DOT: &str = include_str!("../../../../tests/foreign/dot_bf16.ptx");
const LOG_SOFTMAX: &str = include_str!("../../../../tests/foreign/log_softmax.ptx");

impl Bench {
    /// A buffer of whole units of 256 bytes, which hold the data and then zeros.
    fn unit(&self, data: &[u8]) -> Arc<Allocation> {
        let mut bytes = data.to_vec();
        bytes.resize(data.len().next_multiple_of(256), 0);
        let buffer = self.buffer(bytes.len() as u64);
        raw::write(buffer.base(), &bytes);
        self.space.mark_written(buffer.base(), buffer.length());
        buffer
    }

    fn block_of(&self, threads: u32, dynamic_shared: u32, buffers: &[&Allocation]) {
        let params = buffers.iter().flat_map(|b| b.base().to_le_bytes());
        clean(&self.launch_with(&Launch {
            grid: [1, 1, 1],
            block: [threads, 1, 1],
            cluster: [1, 1, 1],
            dynamic_shared,
            params: params.collect(),
            cooperative: false,
        }));
    }
}

fn bytes_of(buffer: &Allocation, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    raw::read(buffer.base(), &mut bytes);
    bytes
}

#[test]
fn argmax_of_bytes() {
    let bench = Bench::text(ARGMAX);
    for (data, value, index) in [
        ([3, 9, 4, 200, 7, 200, 1, 0, 5], 200, 3),
        ([0, 0, 0, 0, 0, 0, 0, 0, 0], 0, 0),
        ([1, 2, 3, 4, 5, 6, 7, 8, 255], 255, 8),
    ] {
        let input = bench.unit(&data);
        let (largest, position) = (bench.buffer(1), bench.buffer(4));
        bench.block_of(1, 0, &[&input, &largest, &position]);
        assert_eq!(bytes_of(&largest, 1), [value]);
        assert_eq!(read(&position), [index]);
    }
}

#[test]
fn scattered_products_of_bytes() {
    let bench = Bench::text(SCATTER);
    let operand: Vec<u8> = (1..=24).collect();
    // Row 4 twice, and a row that is not there.
    let rows = [4u32, 9, 4];
    let updates: Vec<u8> = vec![2, 3, 5, 7, 11, 11, 11, 11, 13, 17, 19, 23];
    let mut expected = operand.clone();
    for (update, row) in rows.iter().enumerate() {
        for column in 0..4 {
            if let Some(cell) = expected.get_mut(*row as usize * 4 + column) {
                *cell = cell.wrapping_mul(updates[update * 4 + column]);
            }
        }
    }
    let indices: Vec<u8> = rows.iter().flat_map(|r| r.to_le_bytes()).collect();
    let operand = bench.unit(&operand);
    let (indices, updates) = (bench.unit(&indices), bench.unit(&updates));
    bench.block_of(32, 0, &[&operand, &indices, &updates, &operand]);
    assert_eq!(bytes_of(&operand, 24), expected);
}

#[test]
fn a_product_of_bf16_matrices() {
    let bench = Bench::text(DOT);
    // Small integers: every product and every sum is exact.
    let a: Vec<i32> = (0..120).map(|i| i * 7 % 17 - 8).collect();
    let b: Vec<i32> = (0..100).map(|i| i * 5 % 13 - 6).collect();
    let bf16 = |values: &[i32]| -> Vec<u8> {
        let words = values.iter().map(|&v| ((v as f32).to_bits() >> 16) as u16);
        words.flat_map(u16::to_le_bytes).collect()
    };
    let mut expected = Vec::new();
    for row in 0..6 {
        for column in 0..5 {
            let sum: i32 = (0..20).map(|k| a[row * 20 + k] * b[k * 5 + column]).sum();
            expected.push(sum as f32);
        }
    }
    let out = bench.buffer(120);
    bench.block_of(
        64,
        768,
        &[&bench.unit(&bf16(&a)), &bench.unit(&bf16(&b)), &out],
    );
    let found: Vec<f32> = read(&out).into_iter().map(f32::from_bits).collect();
    assert_eq!(found, expected);
}

#[test]
fn logarithms_of_a_softmax() {
    let bench = Bench::text(LOG_SOFTMAX);
    let input: Vec<f32> = (0..40).map(|i| (i * 29 % 23) as f32 * 0.5 - 4.0).collect();
    let bytes: Vec<u8> = input.iter().flat_map(|v| v.to_le_bytes()).collect();
    let out = bench.buffer(160);
    bench.block_of(40, 0, &[&bench.unit(&bytes), &out]);
    let found = read(&out);
    for (i, word) in found.into_iter().enumerate() {
        let value = |row: usize| f64::from(input[row * 10 + i % 10]);
        let sum: f64 = (0..4).map(|row| value(row).exp()).sum();
        let expected = value(i / 10) - sum.ln();
        let found = f64::from(f32::from_bits(word));
        assert!((found - expected).abs() < 4e-6, "{i}: {found}, {expected}");
    }
}
