//! `cvt` between scalar types, against exact values.

use super::super::Round;
use super::super::convert::Conversion;
use super::super::convert::Scalar;
use super::Random;
use super::exact;
use super::exact::Dyadic;

const WORDS: [&str; 12] = [
    "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f16", "bf16", "f32", "f64",
];
const MODES: [Round; 4] = [Round::NearestEven, Round::Zero, Round::Down, Round::Up];

fn ints() -> impl Iterator<Item = Scalar> {
    WORDS[..8].iter().map(|w| Scalar::parse(w).unwrap())
}

fn floats() -> impl Iterator<Item = Scalar> {
    WORDS[8..].iter().map(|w| Scalar::parse(w).unwrap())
}

fn range(of: Scalar) -> (i128, i128) {
    match of {
        Scalar::U8 => (0, 255),
        Scalar::U16 => (0, 65_535),
        Scalar::U32 => (0, 4_294_967_295),
        Scalar::U64 => (0, 18_446_744_073_709_551_615),
        Scalar::S8 => (-128, 127),
        Scalar::S16 => (-32_768, 32_767),
        Scalar::S32 => (-2_147_483_648, 2_147_483_647),
        Scalar::S64 => (-9_223_372_036_854_775_808, 9_223_372_036_854_775_807),
        _ => panic!("not an integer type"),
    }
}

/// A value of a type from register bits.
fn int(of: Scalar, bits: u64) -> i128 {
    let (least, most) = range(of);
    let value = i128::from(bits) & ((1 << of.bits()) - 1);
    if value > most {
        value - (most - least + 1)
    } else {
        value
    }
}

fn sample(random: &mut Random, of: Scalar) -> u64 {
    match random.below(4) {
        0 => random.next(),
        1 => random.runs(),
        // Floats of the size of integers.
        _ => match of.format() {
            Some(f) => {
                let field = (f.bias as u64)
                    .wrapping_add(random.below(70))
                    .wrapping_sub(4);
                let fraction = if random.below(2) == 0 {
                    random.next()
                } else {
                    random.runs()
                };
                let sign = random.below(2) << (f.exponent + f.fraction);
                sign | (field << f.fraction | fraction & ((1 << f.fraction) - 1))
                    & (sign.max(1 << (f.exponent + f.fraction)) - 1)
            }
            None => random.below(300).wrapping_sub(150),
        },
    }
}

/// The integer nearest to a magnitude in a direction; huge magnitudes give `2^120`.
fn whole(negative: bool, d: Dyadic, round: Round) -> i128 {
    let magnitude = if d.mantissa == 0 {
        0
    } else if d.exponent >= 0 {
        if d.exponent > 60 {
            1 << 120
        } else {
            d.mantissa << d.exponent
        }
    } else if d.exponent < -100 {
        u128::from(round == Round::Up && !negative || round == Round::Down && negative)
    } else {
        let unit = 1_u128 << -d.exponent;
        let (floor, rest) = (d.mantissa / unit, d.mantissa % unit);
        let up = match round {
            Round::NearestEven => rest * 2 > unit || rest * 2 == unit && floor % 2 == 1,
            Round::NearestAway => rest * 2 >= unit,
            Round::Zero => false,
            Round::Down => negative && rest != 0,
            Round::Up => !negative && rest != 0,
        };
        floor + u128::from(up)
    };
    if negative {
        -(magnitude as i128)
    } else {
        magnitude as i128
    }
}

#[test]
fn between_integers() {
    let mut random = Random::new(31);
    for from in ints() {
        for to in ints() {
            for sat in [false, true] {
                let cvt = Conversion {
                    sat,
                    ..Conversion::new(to, from)
                };
                assert!(cvt.check());
                for _ in 0..300 {
                    let bits = if random.below(2) == 0 {
                        random.runs()
                    } else {
                        random.next()
                    };
                    let value = int(from, bits);
                    let (least, most) = range(to);
                    let want = if sat {
                        value.clamp(least, most)
                    } else {
                        int(to, value as u64)
                    };
                    assert_eq!(cvt.apply(bits), want as u64, "{cvt:?} {bits:#x}");
                }
            }
        }
    }
}

#[test]
fn integers_to_floats() {
    let mut random = Random::new(32);
    for from in ints() {
        for to in floats() {
            let format = to.format().unwrap();
            for round in MODES {
                let cvt = Conversion {
                    round: Some(round),
                    ..Conversion::new(to, from)
                };
                assert!(cvt.check());
                for _ in 0..200 {
                    let bits = if random.below(2) == 0 {
                        random.runs()
                    } else {
                        random.next()
                    };
                    let value = int(from, bits);
                    let exact = Dyadic {
                        mantissa: value.unsigned_abs(),
                        exponent: 0,
                    };
                    let code = exact::round_to(format, value < 0, round, |d| exact.compare(d));
                    let want = exact::with_sign(format, value < 0, code);
                    assert_eq!(cvt.apply(bits), want, "{cvt:?} {bits:#x}");
                    let clamped = Conversion { sat: true, ..cvt }.apply(bits);
                    let one = (format.bias as u64) << format.fraction;
                    assert_eq!(clamped, if value > 0 { one } else { 0 });
                }
            }
        }
    }
}

fn float_to_int(to: Scalar, from: Scalar, round: Round, bits: u64) {
    let cvt = Conversion {
        round: Some(round),
        integral: true,
        ..Conversion::new(to, from)
    };
    assert!(cvt.check());
    let format = from.format().unwrap();
    let bits = bits & (u64::MAX >> (64 - from.bits()));
    let (least, most) = range(to);
    let want = if format.is_nan(bits) {
        // Zero unless a type has 64 bits, then the highest bit alone.
        if from == Scalar::F64 || to.bits() == 64 {
            int(to, 1 << (to.bits() - 1))
        } else {
            0
        }
    } else if format.is_infinite(bits) {
        if format.is_negative(bits) {
            least
        } else {
            most
        }
    } else {
        let (negative, d) = exact::read(format, bits);
        whole(negative, d, round).clamp(least, most)
    };
    assert_eq!(cvt.apply(bits), want as u64, "{cvt:?} {bits:#x}");
}

#[test]
fn floats_to_integers() {
    let mut random = Random::new(33);
    for to in ints() {
        for round in MODES {
            for code in (0..=u64::from(u16::MAX)).step_by(13) {
                float_to_int(to, Scalar::F16, round, code);
            }
            for from in floats() {
                let format = from.format().unwrap();
                for bits in [format.infinity.unwrap(), format.nan.unwrap(), !0, 0, 1] {
                    float_to_int(to, from, round, bits);
                    float_to_int(to, from, round, bits ^ 1 << (from.bits() - 1));
                }
                for _ in 0..300 {
                    float_to_int(to, from, round, sample(&mut random, from));
                }
            }
        }
    }
    // A flushed subnormal is zero in every direction.
    let up = Conversion {
        round: Some(Round::Up),
        integral: true,
        ..Conversion::new(Scalar::S32, Scalar::F32)
    };
    assert_eq!(up.apply(1), 1);
    assert_eq!(Conversion { ftz: true, ..up }.apply(1), 0);
}

#[test]
fn between_floats() {
    let mut random = Random::new(34);
    for from in floats() {
        for to in floats() {
            let (source, target) = (from.format().unwrap(), to.format().unwrap());
            for round in MODES {
                let cvt = Conversion {
                    round: Some(round),
                    ..Conversion::new(to, from)
                };
                for _ in 0..400 {
                    let bits = sample(&mut random, from) & (u64::MAX >> (64 - from.bits()));
                    let negative = source.is_negative(bits);
                    let what = format!("{cvt:?} {bits:#x}");
                    if source.is_nan(bits) {
                        let got = cvt.apply(bits);
                        assert!(target.is_nan(got), "{what}");
                        if to != Scalar::F64 && (from, to) != (Scalar::F64, Scalar::F32) {
                            assert_eq!(Some(got), target.nan, "{what}");
                        }
                        assert_eq!(Conversion { sat: true, ..cvt }.apply(bits), 0, "{what}");
                        continue;
                    }
                    let code = if source.is_infinite(bits) {
                        target.infinity.unwrap()
                    } else {
                        let (_, d) = exact::read(source, bits);
                        exact::round_to(target, negative, round, |x| d.compare(x))
                    };
                    let want = exact::with_sign(target, negative, code);
                    assert_eq!(cvt.apply(bits), want, "{what}");
                    let one = (target.bias as u64) << target.fraction;
                    let clamped = if negative { 0 } else { code.min(one) };
                    assert_eq!(
                        Conversion { sat: true, ..cvt }.apply(bits),
                        clamped,
                        "{what}"
                    );
                    let relu = Conversion { relu: true, ..cvt }.apply(bits);
                    assert_eq!(relu, if negative { 0 } else { code }, "{what}");
                    let satfinite = Conversion {
                        satfinite: true,
                        ..cvt
                    }
                    .apply(bits);
                    let finite = exact::with_sign(target, negative, code.min(target.largest));
                    assert_eq!(satfinite, finite, "{what}");
                }
            }
        }
    }
}

#[test]
fn floats_to_whole_floats() {
    let mut random = Random::new(35);
    for of in floats() {
        let format = of.format().unwrap();
        for round in MODES {
            let cvt = Conversion {
                round: Some(round),
                integral: true,
                ..Conversion::new(of, of)
            };
            assert!(cvt.check());
            for _ in 0..500 {
                let bits = sample(&mut random, of) & (u64::MAX >> (64 - of.bits()));
                if format.magnitude(bits) > format.largest {
                    continue;
                }
                let (negative, d) = exact::read(format, bits);
                let want = if d.exponent >= 0 {
                    bits
                } else {
                    let whole = whole(negative, d, round).unsigned_abs();
                    let whole = Dyadic {
                        mantissa: whole,
                        exponent: 0,
                    };
                    let code = exact::round_to(format, negative, round, |x| whole.compare(x));
                    exact::with_sign(format, negative, code)
                };
                assert_eq!(cvt.apply(bits), want, "{cvt:?} {bits:#x}");
            }
        }
    }
}

#[test]
fn named_values() {
    let cvt = |to, from| Conversion::new(to, from);
    let near = |to, from| Conversion {
        round: Some(Round::NearestEven),
        ..cvt(to, from)
    };
    // NaN: between f64 and f32 a payload is kept, all others have one NaN.
    assert_eq!(
        cvt(Scalar::F64, Scalar::F32).apply(0xff80_0001),
        0xfff8_0000_2000_0000
    );
    assert_eq!(
        near(Scalar::F32, Scalar::F64).apply(0xfff8_0000_0000_0001),
        0xffc0_0000
    );
    let signaling = 0x7ff0_0246_8000_0000;
    assert_eq!(near(Scalar::F32, Scalar::F64).apply(signaling), 0x7fc0_1234);
    assert_eq!(near(Scalar::F16, Scalar::F32).apply(0xffc0_0000), 0x7fff);
    assert_eq!(
        cvt(Scalar::F32, Scalar::F32).apply(0x7f80_0001),
        0x7fff_ffff
    );
    // Flushing reads and writes zeros of the same sign.
    let ftz = |c| Conversion { ftz: true, ..c };
    assert_eq!(
        ftz(cvt(Scalar::F64, Scalar::F32)).apply(0x8000_0001),
        1 << 63
    );
    assert_eq!(
        ftz(near(Scalar::F32, Scalar::F64)).apply((-1e-40_f64).to_bits()),
        1 << 31
    );
    assert_eq!(ftz(near(Scalar::BF16, Scalar::F32)).apply(0x007f_ffff), 0);
    assert_eq!(near(Scalar::BF16, Scalar::F32).apply(0x007f_ffff), 0x0080);
    // tf32: ties away, 13 low bits zero.
    let rna = Conversion {
        round: Some(Round::NearestAway),
        ..cvt(Scalar::TF32, Scalar::F32)
    };
    assert!(rna.check());
    assert_eq!(rna.apply(0x3f80_1000), 0x3f80_2000);
    assert_eq!(rna.apply(0x3f80_0fff), 0x3f80_0000);
    assert_eq!(rna.apply(0x7f80_0000), 0x7f80_0000);
    assert_eq!(rna.apply(0x7f7f_ffff), 0x7f80_0000);
    assert_eq!(
        Conversion {
            satfinite: true,
            ..rna
        }
        .apply(0x7f7f_ffff),
        0x7f7f_e000
    );
    assert_eq!(
        near(Scalar::TF32, Scalar::F32).apply(0x3f80_1000),
        0x3f80_0000
    );
    assert_eq!(
        near(Scalar::TF32, Scalar::F32).apply(0x3f80_3000),
        0x3f80_4000
    );
    let rz = Conversion {
        round: Some(Round::Zero),
        relu: true,
        ..cvt(Scalar::TF32, Scalar::F32)
    };
    assert_eq!(rz.apply(0x3f80_3fff), 0x3f80_2000);
    assert_eq!(rz.apply(0xbf80_3fff), 0);
}

#[test]
fn forms_that_ptx_has() {
    use Scalar::*;
    let n = Conversion::new;
    let rn = |c| Conversion {
        round: Some(Round::NearestEven),
        ..c
    };
    let rni = |c| Conversion {
        integral: true,
        ..rn(c)
    };
    for good in [
        n(U8, S64),
        n(F64, F32),
        n(F32, F16),
        n(F32, BF16),
        n(F32, F32),
        rn(F32_F64),
        rn(n(F16, F32)),
        rn(n(BF16, F64)),
        rn(n(F32, S32)),
        rni(n(S32, F32)),
        rni(n(F32, F32)),
        Conversion {
            relu: true,
            satfinite: true,
            ..rn(n(F16, F32))
        },
        Conversion {
            ftz: true,
            ..rni(n(U64, F32))
        },
    ] {
        assert!(good.check(), "{good:?}");
    }
    for bad in [
        F32_F64,
        rn(n(F64, F32)),
        rn(n(U8, S8)),
        n(S32, F32),
        rn(n(S32, F32)),
        rni(n(F32, S32)),
        rni(n(F32, F64)),
        Conversion {
            ftz: true,
            ..rn(n(F16, F64))
        },
        Conversion {
            relu: true,
            ..rn(n(F16, F64))
        },
        n(E4M3, F32),
        n(F32, E2M1),
    ] {
        assert!(!bad.check(), "{bad:?}");
    }
}

const F32_F64: Conversion = Conversion::new(Scalar::F32, Scalar::F64);

#[test]
fn lanes_are_what_one_lane_is() {
    let mut random = Random::new(36);
    let all = || ints().chain(floats()).chain([Scalar::TF32]);
    let mut rounds = vec![None];
    rounds.extend(exact::ALL.map(Some));
    for from in all() {
        for to in all() {
            for &round in &rounds {
                for flags in 0..8 {
                    let cvt = Conversion {
                        round,
                        integral: flags & 1 != 0,
                        ftz: flags & 2 != 0,
                        sat: flags & 4 != 0,
                        ..Conversion::new(to, from)
                    };
                    let wide: [u64; 32] = std::array::from_fn(|_| sample(&mut random, from));
                    let narrow = wide.map(|v| v as u32);
                    let out: [u64; 32] = cvt.lanes(&wide);
                    assert_eq!(out, wide.map(|v| cvt.apply(v)), "{cvt:?}");
                    let out: [u32; 32] = cvt.lanes(&narrow);
                    assert_eq!(out, narrow.map(|v| cvt.apply(v.into()) as u32), "{cvt:?}");
                }
            }
        }
    }
}
