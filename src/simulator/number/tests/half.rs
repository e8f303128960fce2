//! f16 and bf16: every code, every boundary, and arithmetic against exact sums.

use super::super::Round;
use super::super::compare::Compare;
use super::super::float16;
use super::super::float16::BF16;
use super::super::float16::F16;
use super::super::float16::Half;
use super::super::format::Format;
use super::Random;
use super::exact;

fn number(format: Format, code: u64) -> f64 {
    let (negative, d) = exact::read(format, code);
    let magnitude = d.mantissa as f64 * 2.0_f64.powi(d.exponent);
    if negative { -magnitude } else { magnitude }
}

fn every_code<H: Half>() {
    for code in 0..=u16::MAX {
        let bits = float16::to_f32::<H>(code);
        let magnitude = code & 0x7fff;
        if magnitude > H::INFINITY {
            assert_eq!(bits, 0x7fff_ffff);
            assert_eq!(float16::from_f32::<H>(bits, Round::NearestEven), 0x7fff);
            continue;
        }
        let value = f64::from(f32::from_bits(bits));
        assert_eq!(H::FORMAT.widen_f32(code.into()), bits, "{code:#x}");
        assert_eq!(H::FORMAT.narrow_near(bits, false), u32::from(code));
        assert_eq!(value.is_sign_negative(), code >> 15 == 1);
        if magnitude == H::INFINITY {
            assert!(value.is_infinite());
        } else {
            assert_eq!(value, number(H::FORMAT, code.into()), "{code:#x}");
        }
        for round in exact::ALL {
            assert_eq!(
                float16::from_f32::<H>(bits, round),
                code,
                "{code:#x} {round:?}"
            );
        }
    }
}

#[test]
fn every_code_is_its_value() {
    every_code::<F16>();
    every_code::<BF16>();
    assert_eq!(number(Format::F16, 0x7bff), 65504.0);
    assert_eq!(number(Format::F16, 1), 2.0_f64.powi(-24));
    assert_eq!(number(Format::BF16, 0x3f81), 1.0078125);
}

/// Around every point where the result changes, in every direction.
fn boundaries<H: Half>(step: usize) {
    let format = H::FORMAT;
    for code in (0..=u64::from(H::INFINITY) - 1).step_by(step) {
        let (low, high) = (exact::value(format, code), exact::value(format, code + 1));
        let low = (low.mantissa as f64 * 2.0_f64.powi(low.exponent)) as f32;
        let high = high.mantissa as f64 * 2.0_f64.powi(high.exponent);
        let middle = ((f64::from(low) + high) / 2.0) as f32;
        for center in [low, middle] {
            for offset in -1..=1_i32 {
                let bits = center.to_bits().wrapping_add_signed(offset);
                for bits in [bits, bits ^ 0x8000_0000] {
                    if bits & 0x7f80_0000 == 0x7f80_0000 {
                        continue;
                    }
                    let (negative, d) = exact::read(Format::F32, bits.into());
                    for round in exact::ALL {
                        let want = exact::round_to(format, negative, round, |x| d.compare(x));
                        let want = exact::with_sign(format, negative, want) as u16;
                        let got = float16::from_f32::<H>(bits, round);
                        assert_eq!(got, want, "{bits:#x} {round:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn narrowing_changes_where_it_should() {
    boundaries::<F16>(3);
    boundaries::<BF16>(5);
}

fn finite<H: Half>(random: &mut Random, near: u16) -> u16 {
    loop {
        let bits = match random.below(5) {
            0 => random.next() as u16,
            1 => random.runs() as u16,
            2 => near ^ (random.next() as u16 & 0x8007),
            3 => near ^ (1 << random.below(16)),
            _ => [0, 1, 0x7bff, 0x0400, 0x03ff, 0x8000][random.below(6) as usize],
        };
        if bits & 0x7fff < H::INFINITY {
            return bits;
        }
    }
}

fn arithmetic<H: Half>(seed: u64) {
    let format = H::FORMAT;
    let near = Round::NearestEven;
    let mut random = Random::new(seed);
    for _ in 0..3000 {
        let a = finite::<H>(&mut random, H::ONE);
        let b = finite::<H>(&mut random, a);
        let (x, y) = (exact::read(format, a.into()), exact::read(format, b.into()));
        let p = (x.0 != y.0, x.1.times(y.1));
        let c = finite::<H>(&mut random, float16::mul::<H>(a, b) ^ 0x8000);
        let z = exact::read(format, c.into());
        let what = format!("{a:#x} {b:#x} {c:#x}");
        let code = exact::round_to(format, p.0, near, |d| p.1.compare(d));
        let product = exact::with_sign(format, p.0, code) as u16;
        assert_eq!(float16::mul::<H>(a, b), product, "mul {what}");
        assert_eq!(
            float16::add::<H>(a, b),
            exact::sum(format, x, y, near) as u16,
            "add {what}"
        );
        let rest = exact::sum(format, x, (!y.0, y.1), near) as u16;
        assert_eq!(float16::sub::<H>(a, b), rest, "sub {what}");
        let fused = exact::sum(format, p, z, near) as u16;
        assert_eq!(float16::fma::<H>(a, b, c), fused, "fma {what}");
        let clamped = if fused & 0x8000 != 0 { 0 } else { fused };
        assert_eq!(float16::fma_relu::<H>(a, b, c), clamped, "relu {what}");
        assert_eq!(float16::fma_oob::<H>(a, b, c, false), fused, "oob {what}");
        assert_eq!(
            float16::fma_oob::<H>(a, b, c, true),
            clamped,
            "oob relu {what}"
        );
    }
}

#[test]
fn arithmetic_rounds_once() {
    arithmetic::<F16>(5);
    arithmetic::<BF16>(6);
    // Halfway between two bf16, and a trace above it that a double would lose.
    let (a, b) = (0x3f81, 0x3f81); // 1.0078125^2 = 1.01568603515625: 2^-14 above 1.015625
    assert_eq!(float16::mul::<BF16>(a, b), 0x3f82);
    // (1 + 2^-4)(1 - 2^-4) = 1 - 2^-8, halfway between 1 - 2^-7 ... no trace: exact.
    assert_eq!(float16::mul::<BF16>(0x3f88, 0x3f70), 0x3f7f);
    // 1.5 * (1 + 2^-7) = 1.5 + 3 * 2^-8: halfway; + 2^-133 decides upwards, - 2^-133 downwards.
    assert_eq!(float16::fma::<BF16>(0x3fc0, 0x3f81, 0), 0x3fc2);
    assert_eq!(float16::fma::<BF16>(0x3fc0, 0x3f81, 0x0001), 0x3fc2);
    assert_eq!(float16::fma::<BF16>(0x3fc0, 0x3f81, 0x8001), 0x3fc1);
}

fn specials<H: Half>() {
    let (inf, ninf) = (H::INFINITY, H::INFINITY | 0x8000);
    let one = H::ONE;
    assert_eq!(float16::add::<H>(inf, ninf), 0x7fff);
    assert_eq!(float16::mul::<H>(inf, 0), 0x7fff);
    assert_eq!(float16::add::<H>(inf + 1, one), 0x7fff);
    assert_eq!(float16::fma::<H>(one, one, ninf), ninf);
    assert_eq!(float16::fma::<H>(0, one, 0x8000), 0);
    assert_eq!(float16::fma::<H>(0x8000, one, 0x8000), 0x8000);
    assert_eq!(float16::fma_relu::<H>(one, one, ninf), 0);
    assert_eq!(float16::fma_relu::<H>(inf, 0, one), 0x7fff);
    assert_eq!(float16::fma_oob::<H>(0x7fff, one, one, false), 0);
    assert_eq!(float16::fma_oob::<H>(one, 0x7fff, one, true), 0);
    assert_eq!(float16::fma_oob::<H>(one, one, 0x7fff, false), 0);
    assert_eq!(float16::fma_oob::<H>(inf, 0, one, false), 0x7fff);
    assert_eq!(float16::sat::<H>(inf), one);
    assert_eq!(float16::sat::<H>(0x7fff), 0);
    assert_eq!(float16::sat::<H>(0x8000), 0);
    assert_eq!(float16::sat::<H>(one - 1), one - 1);
    assert_eq!(float16::ftz::<H>(0x8001), 0x8000);
    assert_eq!(float16::min::<H>(0, 0x8000), 0x8000);
    assert_eq!(float16::max::<H>(0x8000, 0), 0);
    assert_eq!(float16::min::<H>(0xffff, ninf), ninf);
    assert_eq!(float16::min::<H>(0xffff, 0x7fff), 0x7fff);
    assert_eq!(float16::max_nan::<H>(one, inf + 1), 0x7fff);
    assert_eq!(float16::min_nan::<H>(one, inf), one);
    let min = |a, b| float16::xorsign_abs::<H>(float16::min::<H>, a, b);
    assert_eq!(min(one | 0x8000, inf), one | 0x8000);
    assert_eq!(min(one | 0x8000, ninf), one);
    assert_eq!(float16::copysign(0x8000, one), one | 0x8000);
    assert_eq!(float16::neg(one), one | 0x8000);
    assert_eq!(float16::abs(ninf), inf);
    assert!(Compare::Ltu.half::<H>(0x7fff, one));
    assert!(!Compare::Ne.half::<H>(0x7fff, one));
    assert!(Compare::Eq.half::<H>(0x8000, 0));
}

#[test]
fn special_values_follow_the_tables() {
    specials::<F16>();
    specials::<BF16>();
}

#[test]
fn order_of_every_pair_of_signs() {
    // min and max agree with the order of the values, on a grid of all exponents.
    for a in (0..0x7c00).step_by(97) {
        for b in (0..0x7c00).step_by(101) {
            for signs in 0..4_u16 {
                let (a, b) = (a | (signs & 1) << 15, b | (signs & 2) << 14);
                let (x, y) = (number(Format::F16, a.into()), number(Format::F16, b.into()));
                if x != y {
                    let (low, high) = if x < y { (a, b) } else { (b, a) };
                    assert_eq!(float16::min::<F16>(a, b), low);
                    assert_eq!(float16::max::<F16>(a, b), high);
                }
            }
        }
    }
}

#[test]
fn pairs_are_two_halves() {
    let one_two = 0x3c00_4000;
    assert_eq!(
        float16::x2(float16::add::<F16>, one_two, one_two),
        0x4000_4400
    );
    assert_eq!(float16::x2_unary(float16::neg, one_two), 0xbc00_c000);
    let fma = float16::x2_ternary(float16::fma::<F16>, one_two, one_two, 0x3c00_0000);
    assert_eq!(fma, 0x4000_4400);
}
