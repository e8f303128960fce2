//! The small formats, every code both ways, and packed conversions.

use super::super::Round;
use super::super::convert::Scalar;
use super::super::float16;
use super::super::float16::F16;
use super::super::format;
use super::super::format::Format;
use super::super::packed;
use super::super::packed::Options;
use super::Random;
use super::exact;

/// Type, bits of a value, largest value, smallest value above zero, the code of a NaN.
const SMALL: [(Scalar, u32, f32, f32, Option<u32>); 5] = [
    (Scalar::E4M3, 8, 448.0, 0.001_953_125, Some(0x7f)),
    (Scalar::E5M2, 8, 57_344.0, 0.000_015_258_789, Some(0x7f)),
    (Scalar::E3M2, 6, 28.0, 0.0625, None),
    (Scalar::E2M3, 6, 7.5, 0.125, None),
    (Scalar::E2M1, 4, 6.0, 0.5, None),
];

const SATURATED: Options = Options {
    round: Round::NearestEven,
    relu: false,
    satfinite: true,
};

fn f32_of(code: (bool, exact::Dyadic)) -> f32 {
    let magnitude = code.1.mantissa as f64 * 2.0_f64.powi(code.1.exponent);
    (if code.0 { -magnitude } else { magnitude }) as f32
}

#[test]
fn every_small_code_both_ways() {
    for (of, width, largest, least, nan) in SMALL {
        let format = of.format().unwrap();
        assert_eq!(1 + format.exponent + format.fraction, width);
        let mut seen = Vec::new();
        for code in 0..1_u32 << width {
            let value = f32::from_bits(packed::widen(of, code));
            if format.is_nan(code.into()) {
                assert!(value.is_nan());
                continue;
            }
            if format.is_infinite(code.into()) {
                assert!(value.is_infinite());
                continue;
            }
            let want = f32_of(exact::read(format, code.into()));
            assert_eq!(value.to_bits(), want.to_bits(), "{of:?} {code:#x}");
            assert_eq!(
                packed::narrow(of, value.to_bits(), &SATURATED),
                code,
                "{of:?}"
            );
            // It goes through f16 unchanged.
            let pair = packed::widen2(Scalar::F16, of, code, false);
            assert_eq!(f32::from_bits(float16::to_f32::<F16>(pair as u16)), value);
            seen.push(value);
        }
        let top = seen.iter().copied().fold(0.0, f32::max);
        let bottom = seen
            .iter()
            .copied()
            .filter(|&v| v > 0.0)
            .fold(f32::MAX, f32::min);
        assert_eq!((top, bottom), (largest, least), "{of:?}");
        let made = packed::narrow(of, 0xffc0_0000, &SATURATED);
        assert_eq!(made, nan.unwrap_or(format.largest as u32), "{of:?}");
        let finite = format.largest as u32;
        let sign = 1 << (width - 1);
        for large in [f32::INFINITY, f32::MAX, largest * 1.5] {
            assert_eq!(
                packed::narrow(of, large.to_bits(), &SATURATED),
                finite,
                "{of:?} {large}"
            );
            assert_eq!(
                packed::narrow(of, (-large).to_bits(), &SATURATED),
                finite | sign
            );
        }
        let relu = Options {
            relu: true,
            ..SATURATED
        };
        assert_eq!(packed::narrow(of, (-1.0_f32).to_bits(), &relu), 0);
        assert_eq!(packed::narrow(of, (-0.0_f32).to_bits(), &relu), 0);
        assert_eq!(packed::narrow(of, 0xffc0_0000, &relu), made);
    }
    // Two codes of e4m3 are NaN, e5m2 has two infinities and six NaN.
    let nans = |f: Format| (0..256).filter(|&c| f.is_nan(c)).collect::<Vec<_>>();
    assert_eq!(nans(Format::E4M3), [0x7f, 0xff]);
    assert_eq!(nans(Format::E5M2), [0x7d, 0x7e, 0x7f, 0xfd, 0xfe, 0xff]);
}

#[test]
fn narrowing_to_small_formats_is_exact() {
    for (of, ..) in SMALL {
        let format = of.format().unwrap();
        let check = |bits: u32| {
            let (negative, d) = exact::read(Format::F32, bits.into());
            let code = exact::round_to(format, negative, SATURATED.round, |x| d.compare(x))
                .min(format.largest);
            let want = exact::with_sign(format, negative, code) as u32;
            assert_eq!(
                packed::narrow(of, bits, &SATURATED),
                want,
                "{of:?} {bits:#x}"
            );
        };
        // Every finite f16, and f32 around every boundary.
        for code in (0..=u16::MAX).filter(|c| c & 0x7c00 != 0x7c00) {
            let bits = float16::to_f32::<F16>(code);
            check(bits);
            check(bits ^ 1);
        }
        let mut random = Random::new(41);
        for _ in 0..3000 {
            let bits = random.next() as u32;
            if bits & 0x7f80_0000 != 0x7f80_0000 {
                check(bits);
            }
        }
    }
}

#[test]
fn places_of_pairs() {
    let (one, two) = (1.0_f32.to_bits(), (-2.0_f32).to_bits());
    let pack = |to| packed::pack2(to, two, one, &SATURATED);
    assert_eq!(pack(Scalar::F16), 0xc000_3c00);
    assert_eq!(pack(Scalar::BF16), 0xc000_3f80);
    assert_eq!(pack(Scalar::E4M3), 0xc038);
    assert_eq!(pack(Scalar::E5M2), 0xc03c);
    assert_eq!(pack(Scalar::E3M2), 0x300c);
    assert_eq!(pack(Scalar::E2M3), 0x3008);
    assert_eq!(pack(Scalar::E2M1), 0xc2);
    assert_eq!(
        packed::narrow2(Scalar::E4M3, Scalar::F16, 0xc000_3c00, &SATURATED),
        0xc038
    );
    assert_eq!(
        packed::narrow2(Scalar::E2M1, Scalar::BF16, 0xc000_3f80, &SATURATED),
        0xc2
    );
    assert_eq!(
        packed::widen2(Scalar::F16, Scalar::E2M1, 0xc2, false),
        0xc000_3c00
    );
    assert_eq!(
        packed::widen2(Scalar::F16, Scalar::E4M3, 0xc038, true),
        0x0000_3c00
    );
    assert_eq!(
        packed::widen2(Scalar::F16, Scalar::E5M2, 0x7ffc, false),
        0x7fff_fc00
    );
    assert_eq!(
        packed::widen2(Scalar::F16, Scalar::E5M2, 0x7ffc, true),
        0x7fff_0000
    );
    // f16 pairs without saturation overflow to infinity, with it to the largest value.
    let big = 1e6_f32.to_bits();
    assert_eq!(
        packed::pack2(Scalar::F16, big, big, &Options::default()),
        0x7c00_7c00
    );
    assert_eq!(
        packed::pack2(Scalar::F16, big, big, &SATURATED),
        0x7bff_7bff
    );
    let zero = Options {
        round: Round::Zero,
        ..Options::default()
    };
    assert_eq!(
        packed::pack2(Scalar::F16, big, 0x3f80_3fff, &zero),
        0x7bff_3c01
    );
    let relu = Options {
        relu: true,
        ..Options::default()
    };
    assert_eq!(
        packed::pack2(Scalar::BF16, two, 0xffff_ffff, &relu),
        0x0000_7fff
    );
}

#[test]
fn powers_of_two() {
    let mut least = Vec::new();
    for code in 0..255_u32 {
        let value = f64::from(f32::from_bits(packed::widen(Scalar::UE8M0, code)));
        assert_eq!(value, 2.0_f64.powi(code as i32 - 127));
        least.push(value);
        // It goes through bf16 unchanged.
        let pair = packed::widen2(Scalar::BF16, Scalar::UE8M0, code << 8, false);
        assert_eq!(f64::from(f32::from_bits(pair & 0xffff_0000)), value);
    }
    assert!(f32::from_bits(packed::widen(Scalar::UE8M0, 255)).is_nan());
    let mut random = Random::new(42);
    let mut inputs: Vec<u32> = (0..3000)
        .map(|_| random.next() as u32 & 0x7fff_ffff)
        .collect();
    inputs.extend((0..255_u32).flat_map(|e| [e << 23, e << 23 | 1, (e << 23) + 0x7f_ffff]));
    inputs.extend([0x3f_ffff, 0x40_0000, 0x40_0001]);
    for bits in inputs
        .into_iter()
        .filter(|b| b & 0x7f80_0000 != 0x7f80_0000)
    {
        let value = f64::from(f32::from_bits(bits));
        let below = least.iter().filter(|&&p| p <= value).count();
        let down = below.saturating_sub(1) as u8;
        let exact = below > 0 && least[below - 1] == value;
        let up = if exact { down } else { below as u8 };
        assert_eq!(
            format::f32_to_ue8m0(bits, Round::Zero, false),
            down,
            "{bits:#x}"
        );
        assert_eq!(
            format::f32_to_ue8m0(bits, Round::Up, false),
            up,
            "{bits:#x}"
        );
        assert_eq!(
            format::f32_to_ue8m0(bits, Round::Up, true),
            up.min(254),
            "{bits:#x}"
        );
        assert_eq!(
            format::f32_to_ue8m0(bits | 1 << 31, Round::Zero, false),
            down
        );
    }
    for round in [Round::Zero, Round::Up] {
        assert_eq!(format::f32_to_ue8m0(0x7f80_0000, round, true), 254);
        assert_eq!(format::f32_to_ue8m0(0x7f80_0000, round, false), 255);
        assert_eq!(format::f32_to_ue8m0(0x7fff_ffff, round, true), 255);
    }
    let up = Options {
        round: Round::Up,
        ..SATURATED
    };
    let pair = packed::pack2(Scalar::UE8M0, 1.5_f32.to_bits(), 0.25_f32.to_bits(), &up);
    assert_eq!(pair, 0x807d);
}

#[test]
fn chance_decides_in_proportion() {
    // Over all random bits an f32 between two codes goes up as often as its fraction says.
    let options = Options::default();
    for (fraction, value) in [
        (0_u32, 0x3f80_0000),
        (1, 0x3f80_0001),
        (4096, 0x3f80_1000),
        (8191, 0x3f80_1fff),
    ] {
        let up = (0..1 << 13)
            .filter(|r| packed::stochastic2(Scalar::F16, 0, value, *r, &options) == 0x3c01)
            .count();
        assert_eq!(up as u32, fraction);
    }
    let up = (0..1 << 16)
        .filter(|r| {
            packed::stochastic2(Scalar::BF16, 0xbf80_4000, 0, r << 16, &options) == 0xbf81_0000
        })
        .count();
    assert_eq!(up, 0x4000);
    // Four values, a byte of chance each: 5.25 in e2m1 lies 5/8 between 4 and 6.
    let value = 5.25_f32.to_bits();
    for place in 0..4_u32 {
        let mut values = [0; 4];
        values[place as usize] = value;
        let up = (0..256)
            .filter(|r| {
                let random = r << (24 - 8 * place);
                let d = packed::stochastic4(Scalar::E2M1, values, random, &SATURATED);
                assert!(d == 0x6000 >> (4 * place) || d == 0x7000 >> (4 * place));
                d == 0x7000 >> (4 * place)
            })
            .count();
        assert_eq!(up, 160);
    }
    let d = packed::stochastic4(
        Scalar::E4M3,
        [1e9_f32.to_bits(), 0xff80_0000, 0x7fff_ffff, 0],
        0,
        &SATURATED,
    );
    assert_eq!(d, 0x7efe_7f00);
    let relu = Options {
        relu: true,
        ..SATURATED
    };
    let d = packed::stochastic4(
        Scalar::E5M2,
        [(-1.0_f32).to_bits(), 0xff80_0000, 0x3f80_0000, 0x8000_0000],
        0,
        &relu,
    );
    assert_eq!(d, 0x0000_3c00);
    // Rounding up past the largest value.
    assert_eq!(
        packed::stochastic2(Scalar::F16, 0x477f_ffff, 0, u32::MAX, &options),
        0x7c00_0000
    );
    assert_eq!(
        packed::stochastic2(Scalar::F16, 0x477f_ffff, 0, u32::MAX, &SATURATED),
        0x7bff_0000
    );
}
