//! `wgmma` against plain arithmetic.
//!
//! Tiles are written to shared memory as a tensor copy writes them: rows one after the other, the
//! 16-byte chunks of each exchanged by the number of the row.

#![allow(
    clippy::needless_range_loop,
    reason = "rows and columns are numbers here"
)]

use super::mma_tests::{Random, encode, get, matrix, put};
use super::*;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Pattern {
    None,
    B32,
    B64,
    B128,
}

impl Pattern {
    fn code(self) -> u64 {
        match self {
            Self::None => 0,
            Self::B128 => 1,
            Self::B64 => 2,
            Self::B32 => 3,
        }
    }
    fn span(self) -> usize {
        match self {
            Self::None => 16,
            Self::B32 => 32,
            Self::B64 => 64,
            Self::B128 => 128,
        }
    }
    /// The chunk that takes a chunk's place in a row of the tile.
    fn exchange(self, row: usize, chunk: usize) -> usize {
        match self {
            Self::None => chunk,
            Self::B32 => chunk ^ (row / 4 % 2),
            Self::B64 => chunk ^ (row / 2 % 4),
            Self::B128 => chunk ^ (row % 8),
        }
    }
}

struct Tile {
    start: usize,
    leading: usize,
    stride: usize,
    pattern: Pattern,
}

impl Tile {
    fn descriptor(&self, advance: usize) -> u64 {
        let field = |v: usize| (v >> 4) as u64 & 0x3fff;
        field(self.start + advance)
            | field(self.leading) << 16
            | field(self.stride) << 32
            | self.pattern.code() << 62
    }
    /// Writes element (outer, k) of a matrix whose k is contiguous.
    fn set_k(&self, shared: &mut [u8], outer: usize, k: usize, code: (u64, usize)) {
        let (value, bits) = code;
        let byte = k * bits / 8;
        let (chunk, within) = (byte / 16, byte % 16);
        let row = self.start + outer / 8 * self.stride + outer % 8 * self.pattern.span();
        let at = match self.pattern {
            Pattern::None => row + chunk * self.leading,
            p => {
                let wide = p.span() / 16;
                row + chunk / wide * self.leading + 16 * p.exchange(outer % 8, chunk % wide)
            }
        };
        write(shared, at + within, k * bits % 8, value, bits);
    }
    /// Writes element (outer, k) of a matrix whose outer direction is contiguous.
    fn set_outer(&self, shared: &mut [u8], outer: usize, k: usize, code: (u64, usize)) {
        let (value, bits) = code;
        let byte = outer * bits / 8;
        let (chunk, within) = (byte / 16, byte % 16);
        let at = match self.pattern {
            Pattern::None => self.start + chunk * self.stride + k / 8 * self.leading + k % 8 * 16,
            p => {
                let wide = p.span() / 16;
                self.start
                    + chunk / wide * self.leading
                    + k / 8 * self.stride
                    + k % 8 * p.span()
                    + 16 * p.exchange(k % 8, chunk % wide)
            }
        };
        write(shared, at + within, 0, value, bits);
    }
}

fn write(shared: &mut [u8], at: usize, bit: usize, value: u64, bits: usize) {
    if bits < 8 {
        shared[at] |= (value as u8) << bit;
    } else {
        shared[at..at + bits / 8].copy_from_slice(&value.to_le_bytes()[..bits / 8]);
    }
}

fn parse(text: &str) -> Wgmma {
    Wgmma::parse(&text.split('.').collect::<Vec<_>>()).unwrap_or_else(|e| panic!("{e}"))
}

/// One product of 64 by n by `steps` times the instruction's k, checked for all four warps.
fn check(
    types: [&'static str; 3],
    n: usize,
    patterns: (Pattern, Pattern),
    transposed: (bool, bool),
    registers: bool,
    tail: &str,
) {
    let [td, ta, tb] = types;
    let bits = encode(ta, 0).1;
    let k = 256 / bits;
    let wgmma = parse(&format!(
        "mma_async.sync.aligned.m64n{n}k{k}.{td}.{ta}.{tb}{tail}"
    ));
    // As many steps along k as a row of the pattern holds.
    let steps = match patterns {
        (Pattern::B128, Pattern::B128) if transposed == (false, false) => 4,
        (Pattern::B64, Pattern::B64) if transposed == (false, false) => 2,
        _ => 1,
    };
    let depth = k * steps;
    let mut r = Random::new(n as u64 + 3);
    let (ma, mb) = (matrix(&mut r, 64, depth, ta), matrix(&mut r, depth, n, tb));
    let mut shared = vec![0u8; 200 * 1024];
    let tile = |start: usize, pattern: Pattern, transposed: bool, outer: usize| {
        let span = pattern.span();
        let (leading, stride) = match (pattern, transposed) {
            // Core matrices of 128 bytes: side by side along k, then along the outer direction.
            (Pattern::None, false) => (128, 256),
            (Pattern::None, true) => (128 * outer / 8, 128),
            (_, false) => (16, 8 * span),
            (_, true) => (span * depth, 8 * span),
        };
        Tile {
            start,
            leading,
            stride,
            pattern,
        }
    };
    let tile_a = tile(0, patterns.0, transposed.0, 64);
    let tile_b = tile(65536, patterns.1, transposed.1, n);
    for j in 0..depth {
        for (row, ma) in ma.iter().enumerate() {
            let code = encode(ta, ma[j]);
            match transposed.0 {
                true => tile_a.set_outer(&mut shared, row, j, code),
                false => tile_a.set_k(&mut shared, row, j, code),
            }
        }
        for (column, v) in mb[j].iter().enumerate() {
            let code = encode(tb, *v);
            match transposed.1 {
                true => tile_b.set_outer(&mut shared, column, j, code),
                false => tile_b.set_k(&mut shared, column, j, code),
            }
        }
    }
    let width = encode(td, 0).1;
    let words = wgmma.words();
    for warp in 0..4 {
        let mut d = vec![[0xffff_ffff; 32]; words.d];
        for step in 0..steps {
            let mut a = [[0; 32]; 4];
            for lane in 0..32 {
                for i in 0..16 * k / 32 {
                    let per = 32 / bits;
                    let (reg, within) = (i / per, i % per);
                    let row = 16 * warp + lane / 4 + reg % 2 * 8;
                    let column = reg / 2 * 4 * per + lane % 4 * per + within;
                    put(&mut a, lane, i, encode(ta, ma[row][step * k + column]));
                }
            }
            let from = match registers {
                true => WgmmaA::Registers(&a),
                false => WgmmaA::Shared(tile_a.descriptor(32 * step)),
            };
            let args = WgmmaArgs {
                warp: warp as u32,
                scale_d: step > 0,
                transpose_a: transposed.0,
                transpose_b: transposed.1,
                ..WgmmaArgs::default()
            };
            let b = tile_b.descriptor(32 * step);
            wgmma
                .execute(&mut d, from, b, &shared, &args)
                .expect("in range");
            let mut seen = 0;
            wgmma.touched(from, b, &args, &mut |address, bytes| {
                assert!(address as usize + bytes as usize <= shared.len());
                seen += bytes as usize;
            });
            let own = if registers { 0 } else { 16 * 32 };
            assert_eq!(seen, own + n * 32);
        }
        for lane in 0..32 {
            for i in 0..n / 2 {
                let row = 16 * warp + lane / 4 + i / 2 % 2 * 8;
                let column = i / 4 * 8 + lane % 4 * 2 + i % 2;
                let want: i64 = (0..depth).map(|j| ma[row][j] * mb[j][column]).sum();
                let got = get(&d, lane, i, width);
                assert_eq!(
                    got,
                    encode_sum(td, want),
                    "{types:?} {patterns:?} {row} {column}"
                );
            }
        }
    }
}

fn encode_sum(name: &str, value: i64) -> u64 {
    match name {
        "f16" => encode("f16", value).0,
        "f32" => u64::from((value as f32).to_bits()),
        _ => u64::from(value as u32),
    }
}

const PATTERNS: [Pattern; 4] = [Pattern::None, Pattern::B32, Pattern::B64, Pattern::B128];

#[test]
fn every_type_by_k() {
    for types in [
        ["f32", "f16", "f16"],
        ["f16", "f16", "f16"],
        ["f32", "bf16", "bf16"],
        ["f32", "tf32", "tf32"],
        ["f32", "e4m3", "e5m2"],
        ["s32", "s8", "u8"],
        ["s32", "u8", "s8"],
    ] {
        for pattern in PATTERNS {
            check(types, 16, (pattern, pattern), (false, false), false, "");
            check(types, 8, (pattern, pattern), (false, false), true, "");
        }
    }
    let bits = ["s32", "b1", "b1"];
    check(
        bits,
        16,
        (Pattern::B128, Pattern::B128),
        (false, false),
        false,
        ".and.popc",
    );
    check(
        ["f32", "f16", "f16"],
        256,
        (Pattern::B128, Pattern::B128),
        (false, false),
        false,
        "",
    );
}

#[test]
fn halves_either_way_round() {
    for types in [["f32", "f16", "f16"], ["f32", "bf16", "bf16"]] {
        for a in PATTERNS {
            for b in PATTERNS {
                for transposed in [(true, false), (false, true), (true, true)] {
                    check(types, 128, (a, b), transposed, false, "");
                }
            }
        }
    }
}

#[test]
fn sparse_a() {
    // The rows of a thin A keep elements 1 and 3 of four; tf32 keeps the second of two.
    for (ta, td, codes) in [
        ("f16", "f32", 0xdddd_dddd_u32),
        ("tf32", "f32", 0xeeee_eeee),
        ("s8", "s32", 0xdddd_dddd),
    ] {
        let bits = encode(ta, 0).1;
        let k = 512 / bits;
        let wgmma = parse(&format!(
            "mma_async.sp.sync.aligned.m64n8k{k}.{td}.{ta}.{ta}"
        ));
        assert!(wgmma.is_sparse());
        let mut r = Random::new(5);
        let (kept, mb) = (matrix(&mut r, 64, k / 2, ta), matrix(&mut r, k, 8, ta));
        let tile_a = Tile {
            start: 0,
            leading: 16,
            stride: 256,
            pattern: Pattern::B32,
        };
        let tile_b = Tile {
            start: 8192,
            leading: 16,
            stride: 1024,
            pattern: Pattern::B128,
        };
        let mut shared = vec![0; 16384];
        for (row, kept) in kept.iter().enumerate() {
            for (j, v) in kept.iter().enumerate() {
                tile_a.set_k(&mut shared, row, j, encode(ta, *v));
            }
        }
        for (j, row) in mb.iter().enumerate() {
            for (column, v) in row.iter().enumerate() {
                tile_b.set_k(&mut shared, column, j, encode(ta, *v));
            }
        }
        for warp in 0..4usize {
            let mut d = vec![[0; 32]; 4];
            let metadata = [codes; 32];
            let args = WgmmaArgs {
                warp: warp as u32,
                metadata: Some(&metadata),
                ..WgmmaArgs::default()
            };
            let a = WgmmaA::Shared(tile_a.descriptor(0));
            let b = tile_b.descriptor(0);
            wgmma
                .execute(&mut d, a, b, &shared, &args)
                .expect("in range");
            for lane in 0..32 {
                for i in 0..4 {
                    let (row, column) = (16 * warp + lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2);
                    let want: i64 = (0..k / 2)
                        .map(|j| kept[row][j] * mb[2 * j + 1][column])
                        .sum();
                    assert_eq!(get(&d, lane, i, 32), encode_sum(td, want), "{ta}");
                }
            }
        }
    }
}

#[test]
fn negation_range_and_refusal() {
    let wgmma = parse("mma_async.sync.aligned.m64n8k16.f32.f16.f16");
    assert!(wgmma.has_transpose() && wgmma.has_negate());
    let one = [[0x3c00_3c00; 32]; 4];
    let shared: Vec<u8> = [0x00, 0x3c].repeat(512);
    let mut d = [[1f32.to_bits(); 32]; 4];
    let b = 8 << 16 | 16 << 32;
    let mut args = WgmmaArgs {
        scale_d: true,
        negate_b: true,
        ..WgmmaArgs::default()
    };
    wgmma
        .execute(&mut d, WgmmaA::Registers(&one), b, &shared, &args)
        .expect("in range");
    assert_eq!(f32::from_bits(d[0][0]), -15.0);
    args.negate_a = true;
    wgmma
        .execute(&mut d, WgmmaA::Registers(&one), b, &shared, &args)
        .expect("in range");
    assert_eq!(f32::from_bits(d[0][0]), 1.0);
    let far = wgmma.execute(&mut d, WgmmaA::Registers(&one), b | 0x3fff, &shared, &args);
    assert_eq!(far, Err(OutOfShared { address: 0x3fff0 }));
    for text in [
        "mma_async.sync.aligned.m64n12k16.f32.f16.f16",
        "mma_async.sync.aligned.m64n8k16.f32.f16.bf16",
        "mma_async.sync.aligned.m64n8k32.f32.f16.f16",
        "commit_group.sync.aligned",
    ] {
        assert!(
            Wgmma::parse(&text.split('.').collect::<Vec<_>>()).is_err(),
            "{text}"
        );
    }
}
