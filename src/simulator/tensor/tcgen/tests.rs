//! Tensor memory against plain arithmetic.

#![allow(
    clippy::needless_range_loop,
    reason = "rows and columns are numbers here"
)]

use super::*;
use crate::simulator::tensor::Lanes;
use crate::simulator::tensor::mma_tests::{Random, encode, matrix};

fn words(text: &str) -> Vec<&str> {
    text.split('.').collect()
}

fn move_of(text: &str) -> Tcgen05Move {
    Tcgen05Move::parse(&words(text)).unwrap_or_else(|e| panic!("{e}"))
}

fn run(mma: &Tcgen05Mma, memory: &mut TensorMemory, shared: &[u8], x: &Tcgen05Args) {
    let made = mma.execute(&mut [Tcgen05Side { memory, shared }], x);
    made.unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn columns_are_taken_and_given_back() {
    let mut memory = TensorMemory::default();
    let take = |m: &mut TensorMemory, n| m.allocate(n).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(take(&mut memory, 128), Some(0));
    assert_eq!(take(&mut memory, 256), Some(128));
    assert_eq!(take(&mut memory, 256), None);
    assert!(memory.deallocate(0, 64).is_err());
    memory.deallocate(0, 128).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(take(&mut memory, 32), Some(0));
    assert_eq!(take(&mut memory, 128), Some(384));
    assert!(memory.allocate(48).is_err());
    assert!(memory.is_taken());
    assert!(memory.set(0, 33, 1).is_err());
}

#[test]
fn every_shape_reaches_each_word_once_and_comes_back() {
    let shapes = [
        ("32x32b.x4", 32, 4),
        ("16x64b.x4", 16, 8),
        ("16x128b.x2", 16, 8),
        ("16x256b.x2", 16, 16),
        ("16x32bx2.x4", 16, 8),
    ];
    for (shape, lanes, columns) in shapes {
        for warp in 0..4u32 {
            let mut memory = TensorMemory::default();
            assert_eq!(memory.allocate(32).ok(), Some(Some(0)));
            let store = move_of(&format!("st.sync.aligned.{shape}.b32"));
            let load = move_of(&format!("ld.sync.aligned.{shape}.b32"));
            let a: Vec<Lanes> = (0..store.words())
                .map(|r| std::array::from_fn(|t| (1 + r * 32 + t) as u32))
                .collect();
            let address = warp << 21 | 3;
            store
                .store(&mut memory, address, 4, warp, &a)
                .unwrap_or_else(|e| panic!("{e}"));
            let mut seen = Vec::new();
            for lane in 0..lanes {
                for column in 0..columns {
                    let at = memory.get(32 * warp as usize + lane, 3 + column);
                    seen.push(at.unwrap_or_else(|e| panic!("{e}")));
                }
            }
            seen.sort_unstable();
            let all: Vec<u32> = (1..=store.words() as u32 * 32).collect();
            assert_eq!(seen, all, "{shape}");
            let mut back = vec![[0; 32]; load.words()];
            load.load(&memory, address, 4, warp, &mut back)
                .unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(back, a);
            assert!(load.load(&memory, address, 4, warp + 1, &mut back).is_err());
        }
    }
    // The widest pattern is that of the accumulators of `mma`.
    let mut memory = TensorMemory::default();
    assert!(memory.allocate(32).is_ok());
    assert!(memory.set(9, 5, 77).is_ok());
    let mut d = [[0; 32]; 4];
    let load = move_of("ld.sync.aligned.16x256b.x1.b32");
    load.load(&memory, 0, 0, 0, &mut d)
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(d[3][4 + 2], 77);
}

#[test]
fn products_from_shared_and_from_tensor_memory() {
    // kind, type of D and its code, type of A and B and its code
    for (kind, td, dcode, t, code) in [
        ("f16", "f32", 1, "f16", 0u32),
        ("f16", "f16", 0, "f16", 0),
        ("f16", "f32", 1, "bf16", 1),
        ("tf32", "f32", 1, "tf32", 2),
        ("f8f6f4", "f32", 1, "e4m3", 0),
        ("f8f6f4", "f32", 1, "e5m2", 1),
        ("i8", "s32", 2, "s8", 1),
        ("i8", "s32", 2, "u8", 0),
    ] {
        for (m, from_tensor) in [(128usize, false), (64, false), (128, true)] {
            let n = if m == 64 { 24 } else { 32 };
            let bits = encode(t, 0).1;
            let k = 256 / bits;
            let mut r = Random::new(m as u64 + u64::from(code));
            let (ma, mb) = (matrix(&mut r, m, k, t), matrix(&mut r, n, k, t));
            let mut shared = vec![0u8; 65536];
            let mut memory = TensorMemory::default();
            assert_eq!(memory.allocate(64).ok(), Some(Some(0)));
            let bytes = |row: &[i64]| -> Vec<u8> {
                row.iter()
                    .flat_map(|v| encode(t, *v).0.to_le_bytes()[..bits / 8].to_vec())
                    .collect()
            };
            // Rows of 128 bytes, chunks exchanged by the row's number.
            let mut put = |base: usize, row: usize, bytes: &[u8]| {
                for (c, chunk) in bytes.chunks_exact(16).enumerate() {
                    let at = base + row * 128 + 16 * (c ^ (row % 8));
                    shared[at..at + 16].copy_from_slice(chunk);
                }
            };
            for (row, values) in ma.iter().enumerate() {
                put(0, row, &bytes(values));
                if from_tensor {
                    for (c, word) in bytes(values).chunks_exact(4).enumerate() {
                        let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
                        assert!(memory.set(row, 40 + c, word).is_ok());
                    }
                }
            }
            for (row, values) in mb.iter().enumerate() {
                put(32768, row, &bytes(values));
            }
            let describe = |base: u64| base >> 4 | 1 << 16 | 64 << 32 | 1 << 46 | 2 << 61;
            let mut x = Tcgen05Args {
                d: 2,
                a: match from_tensor {
                    true => Tcgen05A::Tensor(40),
                    false => Tcgen05A::Shared(describe(0)),
                },
                b: describe(32768),
                instruction: dcode << 4
                    | code << 7
                    | code << 10
                    | (n as u32 / 8) << 17
                    | (m as u32 / 16) << 24,
                scales: None,
                enable_d: false,
                scale_d: 0,
                disabled: [0; 8],
            };
            let text = format!("mma.cta_group::1.kind::{kind}");
            let mma = Tcgen05Mma::parse(&words(&text)).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(mma.flops(x.instruction), 2 * (m * n * k) as u64);
            run(&mma, &mut memory, &shared, &x);
            x.enable_d = true;
            x.disabled[1] = 1;
            run(&mma, &mut memory, &shared, &x);
            for row in 0..m {
                let lane = if m == 64 {
                    row / 16 * 32 + row % 16
                } else {
                    row
                };
                let times = if lane == 32 { 1 } else { 2 };
                for column in 0..n {
                    let sum: i64 = ma[row].iter().zip(&mb[column]).map(|(a, b)| a * b).sum();
                    let got = memory
                        .get(lane, 2 + column)
                        .unwrap_or_else(|e| panic!("{e}"));
                    let want = encode(td, sum * times).0 as u32;
                    assert_eq!(got, want, "{kind} {t} {m} {row} {column}");
                }
            }
        }
    }
}

#[test]
fn rows_are_copied_to_the_warps_they_name() {
    let shared: Vec<u8> = (0..8192u32).flat_map(|w| w.to_le_bytes()).collect();
    // Core matrices of eight rows of 16 bytes, one after the other.
    let from = 8u64 << 32 | 128 << 16 | 1 << 46;
    for (shape, lane, column, want) in [
        ("128x128b", 77, 2, 77 * 4 + 2),
        ("128x256b", 5, 6, 512 + 5 * 4 + 2),
        ("64x128b.warpx2::02_13", 64 + 7, 1, 7 * 4 + 1),
        ("64x128b.warpx2::01_23", 96 + 7, 1, 39 * 4 + 1),
        ("32x128b.warpx4", 96 + 31, 3, 31 * 4 + 3),
    ] {
        let mut memory = TensorMemory::default();
        assert!(memory.allocate(32).is_ok());
        let text = format!("cp.cta_group::1.{shape}");
        let copy = Tcgen05Copy::parse(&words(&text)).unwrap_or_else(|e| panic!("{e}"));
        copy.execute(&mut memory, 0, from, &shared)
            .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(memory.get(lane, column).ok(), Some(want), "{shape}");
    }
    for text in [
        "mma.sp.cta_group::1.kind::f16",
        "mma.cta_group::1.kind::mxf4",
        "mma.cta_group::1.kind::mxf4nvf4.block_scale",
        "mma.cta_group::1.kind::f16.block_scale",
        "mma.cta_group::2.kind::mxf4.block_scale",
    ] {
        assert!(Tcgen05Mma::parse(&words(text)).is_err(), "{text}");
    }
}

#[test]
fn small_floats_get_a_byte_each_on_the_way() {
    // Elements 0 to 15 of a chunk, packed with so many bits each; the rest of it is not looked at.
    for (text, bits, place) in [("b4x16_p64", 4, 2), ("b6x16_p32", 6, 0)] {
        let mut shared = vec![0xffu8; 4096];
        for chunk in shared.chunks_exact_mut(16) {
            let packed = (0..16u128).fold(0, |all, i| all | i << (bits * i as usize));
            chunk[..2 * bits].copy_from_slice(&packed.to_le_bytes()[..2 * bits]);
        }
        let mut memory = TensorMemory::default();
        assert!(memory.allocate(32).is_ok());
        let text = format!("cp.cta_group::1.128x128b.b8x16.{text}");
        let copy = Tcgen05Copy::parse(&words(&text)).unwrap_or_else(|e| panic!("{e}"));
        let from = 8u64 << 32 | 128 << 16 | 1 << 46;
        let done = copy.execute(&mut memory, 0, from, &shared);
        done.unwrap_or_else(|e| panic!("{e}"));
        for i in 0..16 {
            let word = memory.get(100, i / 4).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(
                word >> (8 * (i % 4)) & 255,
                (i as u32) << place,
                "{bits} {i}"
            );
        }
    }
    assert!(Tcgen05Copy::parse(&words("cp.cta_group::1.128x128b.b8x16")).is_err());
}

#[test]
fn small_floats_in_tensor_memory_have_a_byte_each() {
    // A is 1 in tensor memory (0b0010 in the middle of a byte), B is 1 in shared memory, packed.
    let mut memory = TensorMemory::default();
    assert!(memory.allocate(64).is_ok());
    for lane in 0..128 {
        for column in 40..48 {
            assert!(memory.set(lane, column, 0x0808_0808).is_ok());
        }
    }
    let shared = vec![0x22u8; 8192];
    let mma = Tcgen05Mma::parse(&words("mma.cta_group::1.kind::f8f6f4"));
    let mma = mma.unwrap_or_else(|e| panic!("{e}"));
    let x = Tcgen05Args {
        d: 0,
        a: Tcgen05A::Tensor(40),
        b: 8u64 << 32 | 16 << 16 | 1 << 46,
        instruction: 1 << 4 | 5 << 7 | 5 << 10 | 2 << 17 | 8 << 24,
        scales: None,
        enable_d: false,
        scale_d: 0,
        disabled: [0; 8],
    };
    run(&mma, &mut memory, &shared, &x);
    assert_eq!(memory.get(77, 15).ok(), Some(32f32.to_bits()));
}
