//! f32 and f64 against exact arithmetic, and the tables of special values.

use std::cmp::Ordering;

use super::super::Round;
use super::super::compare::Compare;
use super::super::float32;
use super::super::float32::Test;
use super::super::float64;
use super::super::format::Format;
use super::Random;
use super::exact;
use super::exact::Dyadic;

const F32: Format = Format::F32;
const F64: Format = Format::F64;
const MODES: [Round; 4] = [Round::NearestEven, Round::Zero, Round::Down, Round::Up];

/// Finite bits: plain random, runs, near each other, or at the ends of the range.
fn finite(random: &mut Random, format: Format, near: u64) -> u64 {
    let width = 1 + format.exponent + format.fraction;
    let mask = u64::MAX >> (64 - width);
    loop {
        let bits = match random.below(6) {
            0 => random.next(),
            1 => random.runs(),
            2 => near ^ (random.next() >> 40),
            3 => near ^ random.runs() ^ 1 << random.below(64),
            4 => {
                // Any fraction with an exponent near that of `near`.
                let field = (near >> format.fraction)
                    .wrapping_add(random.below(60))
                    .wrapping_sub(30);
                field << format.fraction | random.runs() & ((1 << format.fraction) - 1)
            }
            _ => {
                [
                    0,
                    1,
                    2,
                    1 << format.fraction,
                    (1 << format.fraction) - 1,
                    format.largest,
                ][random.below(6) as usize]
                    | random.below(2) << (width - 1)
            }
        } & mask;
        if format.magnitude(bits) <= format.largest {
            return bits;
        }
    }
}

fn product(a: (bool, Dyadic), b: (bool, Dyadic)) -> (bool, Dyadic) {
    (a.0 != b.0, a.1.times(b.1))
}

fn check(format: Format, count: u32, seed: u64, ops: &Ops) {
    let mut random = Random::new(seed);
    for _ in 0..count {
        let a = finite(&mut random, format, 0x3f80_0000);
        let b = finite(&mut random, format, a);
        let (x, y) = (exact::read(format, a), exact::read(format, b));
        let p = product(x, y);
        // The addend of a fused product is drawn near the product, where it cancels.
        let near = (ops.mul)(a, b, Round::Zero);
        let c = finite(
            &mut random,
            format,
            near ^ 1 << (format.exponent + format.fraction),
        );
        let z = exact::read(format, c);
        for round in MODES {
            let what = format!("{a:#x} {b:#x} {c:#x} {round:?}");
            let sum = exact::sum(format, x, y, round);
            assert_eq!((ops.add)(a, b, round), sum, "add {what}");
            let rest = exact::sum(format, x, (!y.0, y.1), round);
            assert_eq!((ops.sub)(a, b, round), rest, "sub {what}");
            let code = exact::round_to(format, p.0, round, |d| p.1.compare(d));
            assert_eq!(
                (ops.mul)(a, b, round),
                exact::with_sign(format, p.0, code),
                "mul {what}"
            );
            let fused = exact::sum(format, p, z, round);
            assert_eq!((ops.fma)(a, b, c, round), fused, "fma {what}");
            if y.1.mantissa != 0 && x.1.mantissa != 0 {
                let code = exact::round_to(format, p.0, round, |d| x.1.compare(d.times(y.1)));
                let quotient = exact::with_sign(format, p.0, code);
                assert_eq!((ops.div)(a, b, round), quotient, "div {what}");
                let one = Dyadic {
                    mantissa: 1,
                    exponent: 0,
                };
                let code = exact::round_to(format, y.0, round, |d| one.compare(d.times(y.1)));
                assert_eq!(
                    (ops.rcp)(b, round),
                    exact::with_sign(format, y.0, code),
                    "rcp {what}"
                );
            }
            let positive = format.magnitude(a);
            let code = exact::round_to(format, false, round, |d| x.1.compare(d.times(d)));
            assert_eq!((ops.sqrt)(positive, round), code, "sqrt {what}");
        }
    }
}

struct Ops {
    add: fn(u64, u64, Round) -> u64,
    sub: fn(u64, u64, Round) -> u64,
    mul: fn(u64, u64, Round) -> u64,
    fma: fn(u64, u64, u64, Round) -> u64,
    div: fn(u64, u64, Round) -> u64,
    rcp: fn(u64, Round) -> u64,
    sqrt: fn(u64, Round) -> u64,
}

#[test]
fn f32_is_exact_in_every_direction() {
    let ops = Ops {
        add: |a, b, r| float32::add_round(a as u32, b as u32, r).into(),
        sub: |a, b, r| float32::sub_round(a as u32, b as u32, r).into(),
        mul: |a, b, r| float32::mul_round(a as u32, b as u32, r).into(),
        fma: |a, b, c, r| float32::fma_round(a as u32, b as u32, c as u32, r).into(),
        div: |a, b, r| float32::div_round(a as u32, b as u32, r).into(),
        rcp: |a, r| float32::rcp_round(a as u32, r).into(),
        sqrt: |a, r| float32::sqrt_round(a as u32, r).into(),
    };
    check(F32, 1200, 1, &ops);
}

#[test]
fn f64_is_exact_in_every_direction() {
    let ops = Ops {
        add: float64::add_round,
        sub: float64::sub_round,
        mul: float64::mul_round,
        fma: float64::fma_round,
        div: float64::div_round,
        rcp: float64::rcp_round,
        sqrt: float64::sqrt_round,
    };
    check(F64, 500, 2, &ops);
}

#[test]
fn nearest_away_of_a_sum_is_away() {
    // 1 + 2^-24 lies halfway between 1 and its successor.
    let tiny = (2.0_f32).powi(-24).to_bits();
    let one = 1.0_f32.to_bits();
    assert_eq!(float32::add(one, tiny), one);
    assert_eq!(float32::add_round(one, tiny, Round::NearestAway), one + 1);
}

const NAN: u32 = 0x7fff_ffff;
const INF: u32 = 0x7f80_0000;
const NINF: u32 = 0xff80_0000;
const NZERO: u32 = 0x8000_0000;

#[test]
fn f32_special_values() {
    let (one, two) = (1.0_f32.to_bits(), 2.0_f32.to_bits());
    for round in MODES {
        let add = |a, b| float32::add_round(a, b, round);
        let mul = |a, b| float32::mul_round(a, b, round);
        let fma = |a, b, c| float32::fma_round(a, b, c, round);
        assert_eq!(add(INF, NINF), NAN);
        assert_eq!(add(INF, one), INF);
        assert_eq!(add(NINF, one), NINF);
        assert_eq!(add(0x7f80_0001, one), NAN);
        assert_eq!(add(one, 0xffff_ffff), NAN);
        assert_eq!(add(0, NZERO), if round == Round::Down { NZERO } else { 0 });
        assert_eq!(add(NZERO, NZERO), NZERO);
        assert_eq!(add(0, 0), 0);
        assert_eq!(mul(INF, 0), NAN);
        assert_eq!(mul(NINF, two), NINF);
        assert_eq!(mul(NZERO, two), NZERO);
        assert_eq!(fma(INF, 0, one), NAN);
        assert_eq!(fma(INF, one, NINF), NAN);
        assert_eq!(fma(one, one, INF), INF);
        assert_eq!(
            fma(one, 0, NZERO),
            if round == Round::Down { NZERO } else { 0 }
        );
        assert_eq!(float32::div_round(0, 0, round), NAN);
        assert_eq!(float32::div_round(INF, INF, round), NAN);
        assert_eq!(float32::div_round(one, NZERO, round), NINF);
        assert_eq!(float32::div_round(one, NINF, round), NZERO);
        assert_eq!(float32::rcp_round(NZERO, round), NINF);
        assert_eq!(float32::rcp_round(INF, round), 0);
        assert_eq!(float32::sqrt_round(NZERO, round), NZERO);
        assert_eq!(float32::sqrt_round(one | NZERO, round), NAN);
        assert_eq!(float32::sqrt_round(NINF, round), NAN);
        assert_eq!(float32::sqrt_round(INF, round), INF);
    }
    // Overflow by direction.
    let largest = 0x7f7f_ffff;
    let double = |round| float32::add_round(largest, largest, round);
    assert_eq!(double(Round::NearestEven), INF);
    assert_eq!(double(Round::Zero), largest);
    assert_eq!(double(Round::Down), largest);
    assert_eq!(double(Round::Up), INF);
    assert_eq!(float32::ftz(0x807f_ffff), NZERO);
    assert_eq!(float32::ftz(0x0080_0000), 0x0080_0000);
    assert_eq!(float32::ftz(NAN), NAN);
    for (value, want) in [
        (NAN, 0),
        (NZERO, 0),
        (NINF, 0),
        (INF, one),
        (two, one),
        (1, 1),
        (one, one),
    ] {
        assert_eq!(float32::sat(value), want);
    }
    assert_eq!(float32::copysign(NZERO, one), one | NZERO);
    assert_eq!(float32::copysign(one, NINF), INF);
    assert_eq!(float32::neg(INF), NINF);
    assert_eq!(float32::abs(NINF), INF);
}

#[test]
fn f64_special_values() {
    let f = |v: f64| v.to_bits();
    let (inf, ninf) = (f(f64::INFINITY), f(f64::NEG_INFINITY));
    let quiet = 0x7ff8_0000_0000_1234;
    let signaling = 0x7ff0_0000_0000_1234;
    for round in MODES {
        assert_eq!(float64::add_round(signaling, f(1.0), round), quiet);
        assert_eq!(float64::add_round(f(1.0), signaling, round), quiet);
        assert_eq!(float64::fma_round(f(1.0), f(2.0), signaling, round), quiet);
        assert_eq!(float64::add_round(inf, ninf, round), float64::NAN);
        assert_eq!(float64::mul_round(inf, 0, round), float64::NAN);
        assert_eq!(float64::div_round(0, 0, round), float64::NAN);
        assert_eq!(float64::div_round(f(1.0), f(-0.0), round), ninf);
        assert_eq!(float64::rcp_round(ninf, round), f(-0.0));
        assert_eq!(float64::sqrt_round(f(-0.0), round), f(-0.0));
        assert_eq!(float64::sqrt_round(f(-1.0), round), float64::NAN);
        assert_eq!(float64::sqrt_round(inf, round), inf);
        let zero = if round == Round::Down { f(-0.0) } else { 0 };
        assert_eq!(float64::sub_round(f(3.5), f(3.5), round), zero);
    }
    // Of two NaN the first passes through.
    let other = 0xfff8_0000_0000_0042;
    for two in [
        float64::add,
        float64::sub,
        float64::mul,
        float64::div,
        float64::min,
        float64::max,
    ] {
        assert_eq!(two(signaling, other), quiet);
        assert_eq!(two(other, signaling), other);
    }
    assert_eq!(float64::fma(f(1.0), other, signaling), other);
    assert_eq!(float64::min(signaling, f(2.0)), f(2.0));
    assert_eq!(float64::max(f(-0.0), 0), 0);
    assert_eq!(float64::min(f(-0.0), 0), f(-0.0));
    assert_eq!(float64::min(f(-3.0), f(-2.0)), f(-3.0));
    assert_eq!(float64::max(ninf, f(-2.0)), f(-2.0));
    assert_eq!(float64::copysign(f(-1.0), inf), ninf);
    assert_eq!(float64::sat(f(1.5)), f(1.0));
    assert_eq!(float64::sat(quiet), 0);
    assert!(float64::testp(Test::Subnormal, 1));
    assert!(float64::testp(Test::Normal, 0));
    assert!(!float64::testp(Test::Normal, inf));
}

#[test]
fn f32_min_and_max_follow_the_table() {
    let mut random = Random::new(3);
    let mut values = vec![
        0,
        NZERO,
        INF,
        NINF,
        NAN,
        0xffc0_0000,
        0x7f80_0001,
        1,
        0x8000_0001,
    ];
    values.extend((0..60).map(|_| random.next() as u32));
    for &a in &values {
        for &b in &values {
            let (x, y) = (f32::from_bits(a), f32::from_bits(b));
            let less = x < y || x == y && x.is_sign_negative() && y.is_sign_positive();
            let (small, large) = match (x.is_nan(), y.is_nan()) {
                (true, true) => (NAN, NAN),
                (true, false) => (b, b),
                (false, true) => (a, a),
                _ if less => (a, b),
                _ => (b, a),
            };
            assert_eq!(float32::min(a, b), small, "{a:#x} {b:#x}");
            assert_eq!(float32::max(a, b), large, "{a:#x} {b:#x}");
            let any = x.is_nan() || y.is_nan();
            assert_eq!(float32::min_nan(a, b), if any { NAN } else { small });
            assert_eq!(float32::max_nan(a, b), if any { NAN } else { large });
        }
    }
    let f = |v: f32| v.to_bits();
    let min = |a, b| float32::xorsign_abs(float32::min, a, b);
    assert_eq!(min(f(-3.0), f(2.0)), f(-2.0));
    assert_eq!(min(f(-3.0), f(-4.0)), f(3.0));
    assert_eq!(min(f(3.0), NAN), f(3.0));
    assert_eq!(min(NAN, 0xffff_ffff), NAN);
    let max = |a, b| float32::xorsign_abs(float32::max_nan, a, b);
    assert_eq!(max(f(-3.0), f(2.0)), f(-3.0));
    assert_eq!(max(f(-3.0), NAN), NAN);
}

#[test]
fn classes_of_f32() {
    let rows = [
        // bits, finite, infinite, number, notanumber, normal, subnormal
        (0, [true, false, true, false, true, false]),
        (NZERO, [true, false, true, false, true, false]),
        (1, [true, false, true, false, false, true]),
        (0x807f_ffff, [true, false, true, false, false, true]),
        (0x0080_0000, [true, false, true, false, true, false]),
        (0x7f7f_ffff, [true, false, true, false, true, false]),
        (NINF, [false, true, true, false, false, false]),
        (0x7f80_0001, [false, false, false, true, false, false]),
        (NAN, [false, false, false, true, false, false]),
    ];
    let words = [
        "finite",
        "infinite",
        "number",
        "notanumber",
        "normal",
        "subnormal",
    ];
    for (bits, want) in rows {
        for (word, want) in words.iter().zip(want) {
            let test = Test::parse(word).unwrap();
            assert_eq!(float32::testp(test, bits), want, "{word} {bits:#x}");
        }
    }
    assert_eq!(Test::parse("normals"), None);
}

#[test]
fn comparisons_follow_the_table() {
    let order = |a: u32, b: u32| f32::from_bits(a).partial_cmp(&f32::from_bits(b));
    // word, holds for less, equal, greater, unordered
    let rows = [
        ("eq", [false, true, false, false]),
        ("ne", [true, false, true, false]),
        ("lt", [true, false, false, false]),
        ("le", [true, true, false, false]),
        ("gt", [false, false, true, false]),
        ("ge", [false, true, true, false]),
        ("equ", [false, true, false, true]),
        ("neu", [true, false, true, true]),
        ("ltu", [true, false, false, true]),
        ("leu", [true, true, false, true]),
        ("gtu", [false, false, true, true]),
        ("geu", [false, true, true, true]),
        ("num", [true, true, true, false]),
        ("nan", [false, false, false, true]),
    ];
    let values = [0, NZERO, 1, INF, NINF, NAN, 0x3f80_0000, 0xbf80_0000];
    for (word, want) in rows {
        let compare = Compare::parse(word).unwrap();
        for a in values {
            for b in values {
                let column = match order(a, b) {
                    Some(Ordering::Less) => 0,
                    Some(Ordering::Equal) => 1,
                    Some(Ordering::Greater) => 2,
                    None => 3,
                };
                assert_eq!(compare.f32(a, b), want[column], "{word} {a:#x} {b:#x}");
                let (x, y) = (f64::from(f32::from_bits(a)), f64::from(f32::from_bits(b)));
                assert_eq!(compare.f64(x.to_bits(), y.to_bits()), want[column]);
            }
        }
    }
    assert!(Compare::parse("lo").unwrap().int(1_u32, u32::MAX));
    assert!(!Compare::parse("lt").unwrap().int(1_i32, -1));
    assert!(Compare::parse("hs").unwrap().int(7_u64, 7));
}
