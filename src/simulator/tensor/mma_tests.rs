//! `mma` against plain arithmetic.
//!
//! Matrices of small whole numbers are placed into fragments element by element, by the formulas
//! of the instruction set for each shape; results are gathered by them and compared exactly.

#![allow(
    clippy::needless_range_loop,
    reason = "rows and columns are numbers here"
)]

use super::*;

/// A source of numbers that is the same in every run.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }
    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.next() as usize % from.len()]
    }
}

/// What a code of a float format stands for, by the definition of such formats.
fn decode(code: u64, exponent_bits: u32, mantissa_bits: u32) -> f64 {
    let bias = (1i32 << (exponent_bits - 1)) - 1;
    let mantissa = (code & ((1 << mantissa_bits) - 1)) as f64;
    let exponent = (code >> mantissa_bits & ((1 << exponent_bits) - 1)) as i32;
    let sign = if code >> (exponent_bits + mantissa_bits) & 1 == 1 {
        -1.0
    } else {
        1.0
    };
    let fraction = mantissa / f64::from(1 << mantissa_bits);
    if exponent == 0 {
        sign * fraction * 2f64.powi(1 - bias)
    } else {
        sign * (1.0 + fraction) * 2f64.powi(exponent - bias)
    }
}

/// The bits of a whole number in a type, with the bits an element takes.
pub(super) fn encode(name: &str, value: i64) -> (u64, usize) {
    let search = |e: u32, m: u32| {
        (0..1u64 << (1 + e + m))
            .find(|&code| decode(code, e, m) == value as f64)
            .unwrap_or_else(|| panic!("{value} is no {name}"))
    };
    match name {
        "f16" if value == 0 => (0, 16),
        // A single's exponent is biased by 112 more.
        "f16" => {
            let bits = u64::from((value as f32).to_bits());
            (
                (bits >> 31 << 15) | ((bits & 0x7fff_ffff) - (112 << 23)) >> 13,
                16,
            )
        }
        "bf16" => (u64::from((value as f32).to_bits() >> 16), 16),
        // The low bits are not looked at: fill them.
        "tf32" => (u64::from((value as f32).to_bits() | 0x1abc), 32),
        "f32" => (u64::from((value as f32).to_bits()), 32),
        "f64" => ((value as f64).to_bits(), 64),
        "s32" => (value as u32 as u64, 32),
        "s8" | "u8" => (value as u64 & 255, 8),
        "s4" | "u4" => (value as u64 & 15, 4),
        "b1" => (value as u64, 1),
        "e4m3" => (search(4, 3), 8),
        "e5m2" => (search(5, 2), 8),
        "e3m2" => (search(3, 2), 8),
        "e2m3" => (search(2, 3), 8),
        "e2m1" => (search(2, 1) << 2, 8),
        "fp4" => (search(2, 1), 4),
        _ => panic!("{name}"),
    }
}

pub(super) fn values(name: &str) -> &'static [i64] {
    match name {
        "u8" | "u4" => &[0, 1, 2, 3, 7, 11, 15],
        "s4" => &[-8, -5, -1, 0, 1, 2, 7],
        "s8" => &[-128, -7, -1, 0, 1, 3, 100, 127],
        "b1" => &[0, 1],
        "e2m1" | "fp4" => &[-6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6],
        "e2m3" => &[-7, -5, -2, -1, 0, 1, 3, 4, 6],
        _ => &[-8, -7, -6, -3, -2, -1, 0, 1, 2, 4, 5, 6],
    }
}

/// Puts the `i`-th element of a lane into its registers.
pub(super) fn put(regs: &mut [Lanes], lane: usize, i: usize, (bits, width): (u64, usize)) {
    let at = i * width;
    if width == 64 {
        regs[2 * i][lane] = bits as u32;
        regs[2 * i + 1][lane] = (bits >> 32) as u32;
        return;
    }
    let mask = ((1u64 << width) - 1) as u32;
    let word = &mut regs[at / 32][lane];
    *word = *word & !(mask << (at % 32)) | ((bits as u32 & mask) << (at % 32));
}

pub(super) fn get(regs: &[Lanes], lane: usize, i: usize, width: usize) -> u64 {
    if width == 64 {
        return u64::from(regs[2 * i][lane]) | u64::from(regs[2 * i + 1][lane]) << 32;
    }
    let at = i * width;
    u64::from(regs[at / 32][lane] >> (at % 32)) & ((1 << width) - 1)
}

fn number(name: &str, bits: u64) -> i64 {
    match name {
        "f16" => decode(bits, 5, 10) as i64,
        "f32" => f32::from_bits(bits as u32) as i64,
        "f64" => f64::from_bits(bits) as i64,
        _ => i64::from(bits as u32 as i32),
    }
}

/// Row and column of `a_i`, by the formula of the shape.
fn place_a(m: usize, k: usize, width: usize, lane: usize, i: usize) -> (usize, usize) {
    let (g, t) = (lane >> 2, lane % 4);
    match (m, k, width) {
        // m8n8k16 bytes, m8n8k32 half bytes, m8n8k128 bits, m8n8k4 doubles.
        (8, 16, 8) => (g, t * 4 + i),
        (8, 32, 4) => (g, t * 8 + i),
        (8, 128, 1) => (g, t * 32 + i),
        (8, 4, 64) => (g, t),
        // Halves.
        (16, 8, 16) => (if i < 2 { g } else { g + 8 }, t * 2 + (i & 1)),
        (16, 16, 16) => (
            if i < 2 || (4..6).contains(&i) {
                g
            } else {
                g + 8
            },
            t * 2 + (i & 1) + if i >= 4 { 8 } else { 0 },
        ),
        // tf32.
        (16, 4, 32) => (if i == 0 { g } else { g + 8 }, t),
        (16, 8, 32) => (
            if i == 0 || i == 2 { g } else { g + 8 },
            if i < 2 { t } else { t + 4 },
        ),
        // Doubles.
        (16, 4, 64) => (if i == 0 { g } else { g + 8 }, t),
        (16, 8, 64) => (
            if i == 0 || i == 2 { g } else { g + 8 },
            if i < 2 { t } else { t + 4 },
        ),
        (16, 16, 64) => (
            if i.is_multiple_of(2) { g } else { g + 8 },
            if i.is_multiple_of(2) {
                i * 2 + t
            } else {
                i * 2 - 2 + t
            },
        ),
        // Bytes.
        (16, 16, 8) => (if i < 4 { g } else { g + 8 }, t * 4 + (i & 3)),
        (16, 32, 8) => (
            if i < 4 || (8..12).contains(&i) {
                g
            } else {
                g + 8
            },
            t * 4 + (i & 3) + if i < 8 { 0 } else { 16 },
        ),
        // Half bytes.
        (16, 32, 4) => (if i < 8 { g } else { g + 8 }, t * 8 + (i & 7)),
        (16, 64, 4) => (
            if i < 8 || (16..24).contains(&i) {
                g
            } else {
                g + 8
            },
            t * 8 + (i & 7) + if i < 16 { 0 } else { 32 },
        ),
        // Bits.
        (16, 128, 1) => (if i < 32 { g } else { g + 8 }, t * 32 + (i & 31)),
        (16, 256, 1) => (
            if i < 32 || (64..96).contains(&i) {
                g
            } else {
                g + 8
            },
            t * 32 + (i & 31) + if i < 64 { 0 } else { 128 },
        ),
        _ => panic!("no formula"),
    }
}

/// Row and column of `b_i`.
fn place_b(k: usize, width: usize, lane: usize, i: usize) -> (usize, usize) {
    let (g, t) = (lane >> 2, lane % 4);
    let row = match width {
        64 | 32 => t + 4 * i,
        16 => t * 2 + (i & 1) + 8 * (i / 2),
        8 => t * 4 + (i & 3) + 16 * (i / 4),
        4 => t * 8 + (i & 7) + 32 * (i / 8),
        _ => t * 32 + (i & 31) + 128 * (i / 32),
    };
    assert!(row < k);
    (row, g)
}

/// Row and column of `c_i`.
fn place_c(lane: usize, i: usize) -> (usize, usize) {
    let (g, t) = (lane >> 2, lane % 4);
    (if i < 2 { g } else { g + 8 }, t * 2 + (i & 1))
}

struct Case {
    shape: (usize, usize),
    d: &'static str,
    a: &'static str,
    b: &'static str,
    c: &'static str,
    text: String,
}

impl Case {
    fn new(
        shape: (usize, usize),
        (d, a, b, c): (&'static str, &'static str, &'static str, &'static str),
        tail: &str,
    ) -> Self {
        let (m, k) = shape;
        let text = format!("sync.aligned.m{m}n8k{k}.row.col{tail}.{d}.{a}.{b}.{c}");
        Self {
            shape,
            d,
            a,
            b,
            c,
            text,
        }
    }
    fn mma(&self) -> Mma {
        parse(&self.text)
    }
}

fn parse(text: &str) -> Mma {
    Mma::parse(&text.split('.').collect::<Vec<_>>()).unwrap_or_else(|e| panic!("{e}"))
}

pub(super) fn matrix(r: &mut Random, rows: usize, columns: usize, name: &str) -> Vec<Vec<i64>> {
    (0..rows)
        .map(|_| (0..columns).map(|_| r.pick(values(name))).collect())
        .collect()
}

/// Runs a dense case; `dot` is what the product of two rows is.
fn check(case: &Case, dot: impl Fn(&[i64], &[i64]) -> i64) {
    let mma = case.mma();
    let (m, k) = case.shape;
    let words = mma.words();
    let mut r = Random::new(m as u64 * 1000 + k as u64);
    let (ma, mb) = (matrix(&mut r, m, k, case.a), matrix(&mut r, k, 8, case.b));
    let mc = matrix(&mut r, m, 8, if case.c == "f16" { "e2m1" } else { "f32" });
    let mut a = vec![[0; 32]; words.a];
    let mut b = vec![[0; 32]; words.b];
    let mut c = vec![[0; 32]; words.c];
    let mut d = vec![[0xdead_beef; 32]; words.d];
    let (wa, wb) = (encode(case.a, 0).1, encode(case.b, 0).1);
    let (wc, wd) = (encode(case.c, 0).1, encode(case.d, 0).1);
    assert_eq!(words.a * 32 / wa * 32, m * k, "{}", case.text);
    assert_eq!(words.b * 32 / wb * 32, 8 * k, "{}", case.text);
    assert_eq!(words.d * 32 / wd * 32, m * 8, "{}", case.text);
    for lane in 0..32 {
        for i in 0..m * k / 32 {
            let (row, column) = place_a(m, k, wa, lane, i);
            put(&mut a, lane, i, encode(case.a, ma[row][column]));
        }
        for i in 0..8 * k / 32 {
            let (row, column) = place_b(k, wb, lane, i);
            put(&mut b, lane, i, encode(case.b, mb[row][column]));
        }
        for i in 0..m * 8 / 32 {
            let (row, column) = place_c(lane, i);
            put(&mut c, lane, i, encode(case.c, mc[row][column]));
        }
    }
    assert_eq!(c.len() * 32 / wc * 32, m * 8);
    mma.execute(&mut d, &a, &b, &c, &Extra::default());
    for lane in 0..32 {
        for i in 0..m * 8 / 32 {
            let (row, column) = place_c(lane, i);
            let own: Vec<i64> = mb.iter().map(|b| b[column]).collect();
            let want = mc[row][column] + dot(&ma[row], &own);
            let got = number(case.d, get(&d, lane, i, wd));
            assert_eq!(got, want, "{} row {row} column {column}", case.text);
        }
    }
}

fn plain(a: &[i64], b: &[i64]) -> i64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn dense_floats() {
    for k in [8, 16] {
        for c in ["f32", "f16"] {
            check(&Case::new((16, k), (c, "f16", "f16", c), ""), plain);
        }
        // C and D have one type in these shapes.
        let mixed = format!("sync.aligned.m16n8k{k}.row.col.f32.f16.f16.f16");
        assert!(Mma::parse(&mixed.split('.').collect::<Vec<_>>()).is_err());
        check(
            &Case::new((16, k), ("f32", "bf16", "bf16", "f32"), ""),
            plain,
        );
    }
    for k in [4, 8] {
        check(
            &Case::new((16, k), ("f32", "tf32", "tf32", "f32"), ""),
            plain,
        );
    }
    check(&Case::new((8, 4), ("f64", "f64", "f64", "f64"), ""), plain);
    for k in [4, 8, 16] {
        check(&Case::new((16, k), ("f64", "f64", "f64", "f64"), ""), plain);
    }
    for k in [16, 32] {
        for (a, b) in [("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "e4m3")] {
            check(&Case::new((16, k), ("f32", a, b, "f32"), ""), plain);
            check(&Case::new((16, k), ("f16", a, b, "f16"), ""), plain);
        }
    }
    let small = ["e4m3", "e5m2", "e3m2", "e2m3", "e2m1"];
    for a in small {
        for b in small {
            check(
                &Case::new((16, 32), ("f32", a, b, "f32"), ".kind::f8f6f4"),
                plain,
            );
            check(
                &Case::new((16, 32), ("f16", a, b, "f16"), ".kind::f8f6f4"),
                plain,
            );
        }
    }
}

#[test]
fn dense_integers() {
    for (a, b) in [("s8", "s8"), ("u8", "s8"), ("s8", "u8"), ("u8", "u8")] {
        for shape in [(8, 16), (16, 16), (16, 32)] {
            check(&Case::new(shape, ("s32", a, b, "s32"), ""), plain);
            check(&Case::new(shape, ("s32", a, b, "s32"), ".satfinite"), plain);
        }
    }
    for (a, b) in [("s4", "s4"), ("u4", "s4"), ("s4", "u4"), ("u4", "u4")] {
        for shape in [(8, 32), (16, 32), (16, 64)] {
            check(&Case::new(shape, ("s32", a, b, "s32"), ""), plain);
        }
    }
    for shape in [(8, 128), (16, 128), (16, 256)] {
        let types = ("s32", "b1", "b1", "s32");
        let mut case = Case::new(shape, types, "");
        case.text.push_str(".and.popc");
        check(&case, plain);
        let mut case = Case::new(shape, types, "");
        case.text.push_str(".xor.popc");
        check(&case, |a, b| a.iter().zip(b).map(|(a, b)| a ^ b).sum());
    }
}

#[test]
fn integers_saturate_or_wrap() {
    let ones = [[0x0101_0101; 32]; 4];
    let c = [[i32::MAX as u32 - 3; 32]; 4];
    let mut d = [[0; 32]; 4];
    let text = "sync.aligned.m16n8k32.row.col.s32.s8.s8.s32";
    parse(text).execute(&mut d, &ones, &ones[..2], &c, &Extra::default());
    assert_eq!(d[3][31], (i32::MAX - 3).wrapping_add(32) as u32);
    let text = "sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32";
    parse(text).execute(&mut d, &ones, &ones[..2], &c, &Extra::default());
    assert_eq!(d[3][31], i32::MAX as u32);
}

#[test]
fn the_first_tensor_cores() {
    for (la, lb) in [
        ("row", "col"),
        ("row", "row"),
        ("col", "row"),
        ("col", "col"),
    ] {
        for (td, tc) in [("f32", "f32"), ("f16", "f16"), ("f32", "f16")] {
            let mma = parse(&format!("sync.aligned.m8n8k4.{la}.{lb}.{td}.f16.f16.{tc}"));
            let words = mma.words();
            assert_eq!((words.a, words.b), (2, 2));
            let mut r = Random::new(3);
            let mut a = vec![[0; 32]; 2];
            let mut b = vec![[0; 32]; 2];
            let mut c = vec![[0; 32]; words.c];
            let mut d = vec![[0; 32]; words.d];
            let set: Vec<_> = (0..4)
                .map(|_| {
                    (
                        matrix(&mut r, 8, 4, "f16"),
                        matrix(&mut r, 4, 8, "f16"),
                        matrix(&mut r, 8, 8, "f16"),
                    )
                })
                .collect();
            let place = |lane: usize, i: usize, half: bool| {
                let x = if half { lane % 4 } else { (lane & 1) + (i & 2) };
                let row = if lane < 16 { x } else { x + 4 };
                let column = if half {
                    i
                } else {
                    (i & 4) + (lane & 2) + (i & 1)
                };
                (row, column)
            };
            for lane in 0..32 {
                let (ma, mb, mc) = &set[lane % 16 / 4];
                for i in 0..4 {
                    let high = if lane < 16 { 0 } else { 4 };
                    let (row, k) = match la {
                        "row" => (lane % 4 + high, i),
                        _ => (i + high, lane % 4),
                    };
                    put(&mut a, lane, i, encode("f16", ma[row][k]));
                    let (k, column) = match lb {
                        "row" => (lane % 4, i + high),
                        _ => (i, lane % 4 + high),
                    };
                    put(&mut b, lane, i, encode("f16", mb[k][column]));
                }
                for i in 0..8 {
                    let (row, column) = place(lane, i, tc == "f16");
                    put(&mut c, lane, i, encode(tc, mc[row][column]));
                }
            }
            mma.execute(&mut d, &a, &b, &c, &Extra::default());
            for lane in 0..32 {
                let (ma, mb, mc) = &set[lane % 16 / 4];
                for i in 0..8 {
                    let (row, column) = place(lane, i, td == "f16");
                    let own: Vec<i64> = mb.iter().map(|b| b[column]).collect();
                    let want = mc[row][column] + plain(&ma[row], &own);
                    let got = number(td, get(&d, lane, i, encode(td, 0).1));
                    assert_eq!(got, want, "{la} {lb} {td} {tc} lane {lane} i {i}");
                }
            }
        }
    }
}

/// A row with the zeros of its structure, its kept elements, and the four-bit codes.
fn thin(
    r: &mut Random,
    k: usize,
    name: &str,
    run: usize,
    one_of_two: bool,
) -> (Vec<i64>, Vec<i64>, Vec<u32>) {
    let width = if one_of_two { 2 } else { 4 * run };
    let (mut row, mut kept, mut codes) = (vec![0; k], Vec::new(), Vec::new());
    for chunk in 0..k / width {
        if one_of_two {
            let at = r.pick(&[0, 1]);
            let v = r.pick(values(name));
            row[chunk * 2 + at] = v;
            kept.push(v);
            codes.push(if at == 0 { 0b0100 } else { 0b1110 });
            continue;
        }
        let pair = r.pick(&[(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]);
        for at in [pair.0, pair.1] {
            for j in 0..run {
                let v = r.pick(values(name));
                row[chunk * width + at * run + j] = v;
                kept.push(v);
            }
        }
        codes.push(pair.0 as u32 | (pair.1 as u32) << 2);
    }
    (row, kept, codes)
}

#[test]
fn sparse() {
    // shape, type, types of sums, suffixes, lanes of a quad that a selector names, selectors
    let cases: &[(usize, &str, &str, &str, usize, u32)] = &[
        (16, "f16", "f32", "", 1, 4),
        (32, "f16", "f16", "", 2, 2),
        (16, "bf16", "f32", "", 1, 4),
        (32, "bf16", "f32", "", 2, 2),
        (8, "tf32", "f32", "", 1, 4),
        (16, "tf32", "f32", "", 2, 2),
        (32, "s8", "s32", "", 2, 2),
        (64, "u8", "s32", "", 4, 1),
        (64, "s4", "s32", "", 2, 2),
        (128, "u4", "s32", "", 4, 1),
        (64, "e4m3", "f32", "", 4, 1),
        (64, "e5m2", "f16", ".kind::f8f6f4", 4, 1),
        (64, "e2m1", "f32", ".kind::f8f6f4", 4, 1),
    ];
    for &(k, name, sum, kind, threads, selectors) in cases {
        for (sp, selector) in ["sp", "sp::ordered_metadata"]
            .into_iter()
            .flat_map(|sp| (0..selectors).map(move |s| (sp, s)))
        {
            let text =
                format!("{sp}.sync.aligned.m16n8k{k}.row.col{kind}.{sum}.{name}.{name}.{sum}");
            let mma = parse(&text);
            assert!(mma.is_sparse());
            let words = mma.words();
            let width = encode(name, 0).1;
            let (run, one_of_two) = (if width == 4 { 2 } else { 1 }, name == "tf32");
            let mut r = Random::new(k as u64 + 7 * u64::from(selector));
            let rows: Vec<_> = (0..16)
                .map(|_| thin(&mut r, k, name, run, one_of_two))
                .collect();
            let mb = matrix(&mut r, k, 8, name);
            let mut a = vec![[0; 32]; words.a];
            let mut b = vec![[0; 32]; words.b];
            let c = vec![[0; 32]; words.c];
            let mut d = vec![[0; 32]; words.d];
            assert_eq!(words.a * 32 / width * 32, 16 * k / 2, "{text}");
            for lane in 0..32 {
                for i in 0..16 * k / 64 {
                    let (row, column) = place_a(16, k / 2, width, lane, i);
                    put(&mut a, lane, i, encode(name, rows[row].1[column]));
                }
                for i in 0..8 * k / 32 {
                    let (row, column) = place_b(k, width, lane, i);
                    put(&mut b, lane, i, encode(name, mb[row][column]));
                }
            }
            let mut metadata = [0xffff_ffff; 32];
            for g in 0..8 {
                for thread in 0..threads {
                    let lane = 4 * g + selector as usize * threads + thread;
                    let code = |row: usize, from: usize, count: usize| -> u32 {
                        let codes = &rows[row].2[from..from + count];
                        codes.iter().rev().fold(0, |w, c| w << 4 | c)
                    };
                    metadata[lane] = if width >= 16 {
                        // Columns of four chunks a thread; the upper row in the upper bits.
                        code(g, 4 * thread, 4) | code(g + 8, 4 * thread, 4) << 16
                    } else {
                        // Even threads the lower row, odd threads the upper.
                        code(g + thread % 2 * 8, thread / 2 * 8, 8)
                    };
                }
            }
            let extra = Extra {
                metadata: Some(&metadata),
                selector,
                ..Extra::default()
            };
            mma.execute(&mut d, &a, &b, &c, &extra);
            for lane in 0..32 {
                for i in 0..4 {
                    let (row, column) = place_c(lane, i);
                    let own: Vec<i64> = mb.iter().map(|b| b[column]).collect();
                    let got = number(sum, get(&d, lane, i, encode(sum, 0).1));
                    assert_eq!(got, plain(&rows[row].0, &own), "{text} {row} {column}");
                }
            }
        }
    }
}

#[test]
fn block_scaled() {
    // k, types, kind, chunks, scale type, sparse
    let cases: &[(usize, &str, &str, &str, usize, &str)] = &[
        (32, "e4m3", "e4m3", "mxf8f6f4", 1, "ue8m0"),
        (32, "e2m1", "e5m2", "mxf8f6f4", 1, "ue8m0"),
        (64, "fp4", "fp4", "mxf4", 2, "ue8m0"),
        (64, "fp4", "fp4", "mxf4nvf4", 2, "ue8m0"),
        (64, "fp4", "fp4", "mxf4nvf4", 4, "ue8m0"),
        (64, "fp4", "fp4", "mxf4nvf4", 4, "ue4m3"),
    ];
    for &(k, ta, tb, kind, chunks, stype) in cases {
        for (byte, thread) in [(0, 0), (if chunks == 4 { 0 } else { 2 }, 1)] {
            let name = |t: &'static str| if t == "fp4" { "e2m1" } else { t };
            let (na, nb) = (name(ta), name(tb));
            let mma = parse(&format!(
                "sync.aligned.kind::{kind}.block_scale.scale_vec::{chunks}X.m16n8k{k}.row.col\
                 .f32.{na}.{nb}.f32.{stype}"
            ));
            assert!(mma.is_block_scaled());
            let words = mma.words();
            let mut r = Random::new(k as u64);
            let (ma, mb) = (matrix(&mut r, 16, k, ta), matrix(&mut r, k, 8, tb));
            let (wa, wb) = (encode(ta, 0).1, encode(tb, 0).1);
            let mut a = vec![[0; 32]; words.a];
            let mut b = vec![[0; 32]; words.b];
            let c = vec![[0; 32]; words.c];
            let mut d = vec![[0; 32]; words.d];
            for lane in 0..32 {
                for i in 0..16 * k / 32 {
                    let (row, column) = place_a(16, k, wa, lane, i);
                    put(&mut a, lane, i, encode(ta, ma[row][column]));
                }
                for i in 0..8 * k / 32 {
                    let (row, column) = place_b(k, wb, lane, i);
                    put(&mut b, lane, i, encode(tb, mb[row][column]));
                }
            }
            // Factors 1, 2 and 4, as codes.
            let code = |v: i64| match stype {
                "ue8m0" => 127 + v.trailing_zeros(),
                _ => encode("e4m3", v).0 as u32,
            };
            let sa: Vec<Vec<i64>> = (0..16)
                .map(|_| (0..chunks).map(|_| r.pick(&[1, 2, 4])).collect())
                .collect();
            let sb: Vec<Vec<i64>> = (0..8)
                .map(|_| (0..chunks).map(|_| r.pick(&[1, 2, 4])).collect())
                .collect();
            let (mut da, mut db) = ([0u32; 32], [0u32; 32]);
            let word = |s: &[i64]| {
                let bytes = s.iter().enumerate();
                bytes.fold(0, |w, (i, v)| w | code(*v) << (8 * (i + byte as usize)))
            };
            for row in 0..16 {
                da[row % 8 * 4 + 2 * thread as usize + row / 8] = word(&sa[row]);
            }
            for column in 0..8 {
                db[column * 4 + 2 * thread as usize + 1] = word(&sb[column]);
            }
            let extra = Extra {
                scale_a: Some(Scale {
                    data: &da,
                    byte,
                    thread,
                }),
                scale_b: Some(Scale {
                    data: &db,
                    byte,
                    thread: 2 * thread + 1,
                }),
                ..Extra::default()
            };
            mma.execute(&mut d, &a, &b, &c, &extra);
            for lane in 0..32 {
                for i in 0..4 {
                    let (row, column) = place_c(lane, i);
                    let want: i64 = (0..k)
                        .map(|j| {
                            let chunk = j / (k / chunks);
                            ma[row][j] * mb[j][column] * sa[row][chunk] * sb[column][chunk]
                        })
                        .sum();
                    let got = number("f32", get(&d, lane, i, 32));
                    assert_eq!(got, want, "{kind} {chunks} {stype} {row} {column}");
                }
            }
        }
    }
}

#[test]
fn what_is_no_instruction_is_refused_by_name() {
    for text in [
        "sync.aligned.m16n8k16.row.row.f32.f16.f16.f32",
        "sync.aligned.m16n8k12.row.col.f32.f16.f16.f32",
        "sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32",
        "sync.aligned.m16n8k16.row.col.f32.f16.f16.f32.weird",
        "aligned.m16n8k16.row.col.f32.f16.f16.f32",
        "sync.aligned.m16n8k32.row.col.f32.e2m1.e2m1.f32",
        "sync.aligned.m16n8k32.row.col.satfinite.f32.e4m3.e4m3.f32",
        "sync.aligned.m16n8k128.row.col.s32.b1.b1.s32",
        "sp.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32",
        "",
    ] {
        let error = Mma::parse(&text.split('.').collect::<Vec<_>>()).expect_err(text);
        assert!(error.message.contains(text), "{error}");
    }
}
