//! `wmma` against plain arithmetic: matrices go from memory through fragments to memory.

#![allow(
    clippy::needless_range_loop,
    reason = "rows and columns are numbers here"
)]

use super::mma_tests::{Random, encode, matrix};
use super::*;

fn parse(text: &str) -> Wmma {
    Wmma::parse(&text.split('.').collect::<Vec<_>>()).unwrap_or_else(|e| panic!("{e}"))
}

/// The bytes of a matrix, its lines `stride` elements apart.
fn bytes(m: &[Vec<i64>], name: &str, by_rows: bool, stride: usize) -> Vec<u8> {
    let lines = if by_rows { m.len() } else { m[0].len() };
    let mut out = vec![0; lines * stride * encode(name, 0).1 / 8 + 64];
    for (row, values) in m.iter().enumerate() {
        for (column, v) in values.iter().enumerate() {
            let (code, bits) = encode(name, *v);
            let at = if by_rows {
                row * stride + column
            } else {
                column * stride + row
            };
            for bit in 0..bits {
                out[(at * bits + bit) / 8] |= ((code >> bit & 1) as u8) << ((at * bits + bit) % 8);
            }
        }
    }
    out
}

fn load(text: &str, m: &[Vec<i64>], name: &str, by_rows: bool) -> Vec<Lanes> {
    let Wmma::Load(load) = parse(text) else {
        panic!("{text}")
    };
    let stride = load.default_stride() as usize + 32;
    let memory = bytes(m, name, by_rows, stride);
    let mut lines = Vec::new();
    for line in 0..load.lines() {
        let offset = load.line_offset(line, stride as u32) as usize;
        lines.extend_from_slice(&memory[offset..][..load.line_bytes()]);
    }
    let mut d = vec![[0xffff_ffff; 32]; load.words()];
    load.load(&lines, &mut d);
    d
}

fn check(shape: (usize, usize, usize), la: &str, lb: &str, names: [&'static str; 4], op: &str) {
    let (m, n, k) = shape;
    let [td, ta, tb, tc] = names;
    let shape = format!("m{m}n{n}k{k}");
    let mut r = Random::new((m * 7 + n * 3 + k) as u64);
    let (ma, mb) = (matrix(&mut r, m, k, ta), matrix(&mut r, k, n, tb));
    let mc = matrix(&mut r, m, n, if tc == "f16" { "e2m1" } else { "f32" });
    let a = load(
        &format!("load.a.sync.aligned.{la}.{shape}.global.{ta}"),
        &ma,
        ta,
        la == "row",
    );
    let b = load(
        &format!("load.b.sync.aligned.{lb}.{shape}.shared.{tb}"),
        &mb,
        tb,
        lb == "row",
    );
    let c = load(
        &format!("load.c.sync.aligned.col.{shape}.{tc}"),
        &mc,
        tc,
        false,
    );
    let types = match ta {
        "f16" => format!("{td}.{tc}"),
        _ => format!("{td}.{ta}.{tb}.{tc}"),
    };
    let text = format!("mma{op}.sync.aligned.{la}.{lb}.{shape}.{types}");
    let Wmma::Mma(mma) = parse(&text) else {
        panic!("{text}")
    };
    let words = mma.words();
    assert_eq!(
        (a.len(), b.len(), c.len()),
        (words.a, words.b, words.c),
        "{text}"
    );
    let mut d = vec![[0; 32]; words.d];
    mma.execute(&mut d, &a, &b, &c);
    let Wmma::Store(store) = parse(&format!("store.d.sync.aligned.row.{shape}.global.{td}")) else {
        panic!()
    };
    let mut out = vec![0; store.lines() * store.line_bytes()];
    store.store(&d, &mut out);
    let want: Vec<Vec<i64>> = (0..m)
        .map(|row| {
            (0..n)
                .map(|column| {
                    let sum: i64 = (0..k)
                        .map(|j| match op {
                            ".xor.popc" => ma[row][j] ^ mb[j][column],
                            _ => ma[row][j] * mb[j][column],
                        })
                        .sum();
                    sum + mc[row][column]
                })
                .collect()
        })
        .collect();
    let want = bytes(&want, td, true, n);
    assert_eq!(out[..], want[..out.len()], "{text}");
}

#[test]
fn every_shape_and_type() {
    for shape in [(16, 16, 16), (32, 8, 16), (8, 32, 16)] {
        for (la, lb) in [
            ("row", "col"),
            ("row", "row"),
            ("col", "row"),
            ("col", "col"),
        ] {
            for (d, c) in [
                ("f32", "f32"),
                ("f16", "f16"),
                ("f32", "f16"),
                ("f16", "f32"),
            ] {
                check(shape, la, lb, [d, "f16", "f16", c], "");
            }
            check(shape, la, lb, ["f32", "bf16", "bf16", "f32"], "");
            check(shape, la, lb, ["s32", "s8", "s8", "s32"], "");
            check(shape, la, lb, ["s32", "u8", "u8", "s32"], "");
        }
    }
    for (la, lb) in [("row", "col"), ("col", "row")] {
        check((16, 16, 8), la, lb, ["f32", "tf32", "tf32", "f32"], "");
        check((8, 8, 4), la, lb, ["f64", "f64", "f64", "f64"], "");
    }
    check((8, 8, 32), "row", "col", ["s32", "s4", "s4", "s32"], "");
    check((8, 8, 32), "row", "col", ["s32", "u4", "u4", "s32"], "");
    check(
        (8, 8, 128),
        "row",
        "col",
        ["s32", "b1", "b1", "s32"],
        ".xor.popc",
    );
    check(
        (8, 8, 128),
        "row",
        "col",
        ["s32", "b1", "b1", "s32"],
        ".and.popc",
    );
}

#[test]
fn register_counts_are_those_of_the_tables() {
    for (text, words) in [
        ("load.a.sync.aligned.row.m16n16k16.f16", 8),
        ("load.b.sync.aligned.row.m8n32k16.f16", 8),
        ("load.a.sync.aligned.row.m32n8k16.bf16", 8),
        ("load.b.sync.aligned.row.m32n8k16.bf16", 2),
        ("load.c.sync.aligned.row.m16n16k16.f16", 4),
        ("load.c.sync.aligned.row.m16n16k16.f32", 8),
        ("load.a.sync.aligned.row.m16n16k8.tf32", 4),
        ("load.a.sync.aligned.row.m16n16k16.s8", 2),
        ("load.b.sync.aligned.col.m32n8k16.u8", 1),
        ("load.a.sync.aligned.row.m8n8k32.s4", 1),
        ("load.c.sync.aligned.row.m8n8k32.s32", 2),
        ("load.a.sync.aligned.row.m8n8k4.f64", 2),
        ("load.c.sync.aligned.row.m8n8k4.f64", 4),
    ] {
        let Wmma::Load(load) = parse(text) else {
            panic!("{text}")
        };
        assert_eq!(load.words(), words, "{text}");
    }
    let bad = "mma.sync.aligned.row.col.m8n8k4.rz.f64.f64.f64.f64";
    assert!(Wmma::parse(&bad.split('.').collect::<Vec<_>>()).is_err());
}

#[test]
fn floats_saturate_to_finite_numbers() {
    let Wmma::Mma(mma) = parse("mma.sync.aligned.row.col.m16n16k16.f16.f16.satfinite") else {
        panic!()
    };
    let big = [[0x7bff_7bff; 32]; 8];
    let c = [[0; 32]; 4];
    let mut d = [[0; 32]; 4];
    mma.execute(&mut d, &big, &big, &c);
    assert_eq!(d[0][0], 0x7bff_7bff);
}
