//! Approximations against the host's f64 library, inside the documented bounds, and the tables of
//! special values.

use super::super::float16;
use super::super::float16::BF16;
use super::super::float16::F16;
use super::super::float16::Half;
use super::super::special;
use super::Random;

const NAN: u32 = 0x7fff_ffff;
const INF: u32 = 0x7f80_0000;
const NINF: u32 = 0xff80_0000;
const NZERO: u32 = 0x8000_0000;
const ONE: u32 = 0x3f80_0000;

/// All f32 at a stride that is prime to everything, and some random ones.
fn inputs() -> impl Iterator<Item = u32> {
    let mut random = Random::new(51);
    let strided = (0..=u32::MAX).step_by(65_537);
    strided.chain((0..20_000).map(move |_| random.next() as u32 & 0xbfff_ffff | 0x3000_0000))
}

/// How far a result is from the truth, in units of its last place.
fn error(result: u32, truth: f64) -> f64 {
    let value = f64::from(f32::from_bits(result));
    if value.is_infinite() {
        // An infinity stands for what rounds to 2^128.
        return if truth.abs() >= 3.402_823_5e38 && truth.signum() == value.signum() {
            0.0
        } else {
            f64::INFINITY
        };
    }
    let exponent = (truth.abs().to_bits() >> 52) as i32 - 1023;
    let place = 2.0_f64.powi(exponent.max(-126) - 23);
    (value - truth).abs() / place
}

fn measure(name: &str, f: fn(u32) -> u32, truth: fn(f64) -> f64, domain: fn(f64) -> bool) {
    let mut worst = (0.0, 0);
    for bits in inputs() {
        let x = f64::from(f32::from_bits(bits));
        if !x.is_finite() || !domain(x) {
            continue;
        }
        let e = error(f(bits), truth(x));
        assert!(
            e <= special::ERROR,
            "{name}({x:e}) = {:#x}, off by {e}",
            f(bits)
        );
        if e > worst.0 {
            worst = (e, bits);
        }
    }
    // The samples do exercise rounding.
    assert!(worst.0 > 0.49, "{name} {worst:?}");
}

#[test]
fn errors_stay_below_the_bound() {
    measure("ex2", special::ex2_f32, f64::exp2, |_| true);
    measure("lg2", special::lg2_f32, f64::log2, |x| x > 0.0);
    measure("sin", special::sin_f32, f64::sin, |_| true);
    measure("cos", special::cos_f32, f64::cos, |_| true);
    measure("tanh", special::tanh_f32, f64::tanh, |_| true);
    measure("rcp", special::rcp_f32, f64::recip, |x| x != 0.0);
    measure("sqrt", special::sqrt_f32, f64::sqrt, |x| x >= 0.0);
    measure("rsqrt", special::rsqrt_f32, |x| 1.0 / x.sqrt(), |x| x > 0.0);
}

#[test]
fn sines_of_angles_near_quarter_turns() {
    // Where the reduced angle is smallest: near multiples of pi/2, small and huge.
    for whole in (1..4000).chain([41_000, 41_721, 41_722, 50_000, 65_537, 1 << 20, 99_999_999]) {
        let angle = (f64::from(whole) * std::f64::consts::FRAC_PI_2) as f32;
        for offset in -2..=2_i32 {
            let bits = angle.to_bits().wrapping_add_signed(offset);
            let x = f64::from(f32::from_bits(bits));
            for (name, got, want) in [
                ("sin", special::sin_f32(bits), x.sin()),
                ("cos", special::cos_f32(bits), x.cos()),
            ] {
                let e = error(got, want);
                assert!(e <= special::ERROR, "{name}({x:e}), off by {e}");
                let e = error(special::sin_f32(bits | NZERO), -x.sin());
                assert!(e <= special::ERROR);
            }
        }
    }
    // The f32 nearest to a multiple of pi/2, as found by continued fractions: 16367173 * 2^72.
    let bits = (16_367_173.0_f64 * 2.0_f64.powi(72)) as f32;
    let x = f64::from(bits);
    assert!(error(special::cos_f32(bits.to_bits()), x.cos()) <= special::ERROR);
    assert!(error(special::sin_f32(bits.to_bits()), x.sin()) <= special::ERROR);
}

#[test]
fn bounds_of_the_isa() {
    // The bound of this module lies inside each: half a unit of 2^-23 relative is 2^-24.
    let relative = special::ERROR * 2.0_f64.powi(-23);
    for bound in [-22.0, -20.5, -14.7, -11.0, -22.9, -23.0] {
        assert!(relative <= 2.0_f64.powf(bound));
    }
    let mut random = Random::new(52);
    for _ in 0..20_000 {
        let (a, b) = (random.next() as u32, random.next() as u32);
        let (x, y) = (f64::from(f32::from_bits(a)), f64::from(f32::from_bits(b)));
        if !(x / y).is_finite() || !x.is_finite() || !y.is_finite() || y == 0.0 {
            continue;
        }
        assert!(error(special::div_full_f32(a, b), x / y) <= 2.0);
        if (2.0_f64.powi(-126)..=2.0_f64.powi(126)).contains(&y.abs()) {
            assert!(error(special::div_approx_f32(a, b), x / y) <= 2.0);
        }
    }
}

#[test]
fn special_values_follow_the_tables() {
    let f = |v: f32| v.to_bits();
    type Row = (fn(u32) -> u32, &'static [(u32, u32)]);
    let rows: [Row; 8] = [
        (
            special::ex2_f32,
            &[
                (NINF, 0),
                (NZERO, ONE),
                (0, ONE),
                (1, ONE),
                (INF, INF),
                (NAN, NAN),
                (0xffc0_0000, NAN),
            ],
        ),
        (
            special::lg2_f32,
            &[
                (NINF, NAN),
                (0xbf80_0000, NAN),
                (NZERO, NINF),
                (0, NINF),
                (1, 0xc315_0000),
                (INF, INF),
                (NAN, NAN),
                (ONE, 0),
                (0xffff_ffff, NAN),
            ],
        ),
        (
            special::sin_f32,
            &[
                (NINF, NAN),
                (NZERO, NZERO),
                (0, 0),
                (INF, NAN),
                (NAN, NAN),
                (1, 1),
            ],
        ),
        (
            special::cos_f32,
            &[(NINF, NAN), (NZERO, ONE), (0, ONE), (INF, NAN), (NAN, NAN)],
        ),
        (
            special::tanh_f32,
            &[
                (NINF, 0xbf80_0000),
                (NZERO, NZERO),
                (0, 0),
                (INF, ONE),
                (NAN, NAN),
                (1, 1),
                (0x8000_0001, 0x8000_0001),
            ],
        ),
        (
            special::rcp_f32,
            &[(NINF, NZERO), (NZERO, NINF), (0, INF), (INF, 0), (NAN, NAN)],
        ),
        (
            special::rsqrt_f32,
            &[
                (NINF, NAN),
                (0xbf80_0000, NAN),
                (NZERO, NINF),
                (0, INF),
                (INF, 0),
                (NAN, NAN),
            ],
        ),
        (
            special::sqrt_f32,
            &[
                (NINF, NAN),
                (0xbf80_0000, NAN),
                (NZERO, NZERO),
                (0, 0),
                (INF, INF),
                (NAN, NAN),
            ],
        ),
    ];
    for (at, (function, table)) in rows.iter().enumerate() {
        for (x, want) in *table {
            assert_eq!(function(*x), *want, "row {at}, {x:#x}");
        }
    }
    // Integers and half-integers are exact.
    for whole in -149..128_i32 {
        assert_eq!(
            special::ex2_f32(f(whole as f32)),
            f(2.0_f64.powi(whole) as f32)
        );
        assert_eq!(
            special::lg2_f32(f(2.0_f64.powi(whole) as f32)),
            f(whole as f32)
        );
    }
    // Division by what has the reciprocal zero.
    let huge = 0x7f00_0000;
    let edge = 2.0_f32.powi(126);
    assert_eq!(special::div_approx_f32(f(3.0), f(edge)), f(3.0 / edge));
    assert_eq!(special::div_approx_f32(f(3e38), f(edge.next_up())), 0);
    assert_eq!(special::div_approx_f32(INF, huge), NAN);
    assert_eq!(special::div_approx_f32(f(3e38), huge), 0);
    assert_eq!(special::div_approx_f32(f(-3e38), huge), NZERO);
    assert_eq!(special::div_approx_f32(f(3.0), INF), 0);
    assert_eq!(special::div_approx_f32(0, 0), NAN);
}

#[test]
fn f64_approximations_use_upper_words() {
    let f = |v: f64| v.to_bits();
    let nan = 0x7fff_ffff_0000_0000;
    assert_eq!(special::rcp_ftz_f64(f(4.0) | 0xffff), f(0.25));
    assert_eq!(special::rcp_ftz_f64(f(f64::NEG_INFINITY)), f(-0.0));
    assert_eq!(
        special::rcp_ftz_f64(1 << 63 | 1 << 51),
        f(f64::NEG_INFINITY)
    );
    assert_eq!(special::rcp_ftz_f64(0), f(f64::INFINITY));
    assert_eq!(special::rcp_ftz_f64(f(1.5e308)), 0);
    assert_eq!(special::rcp_ftz_f64(0x7ff0_0000_0000_0001), nan);
    assert_eq!(special::rsqrt_ftz_f64(f(-1.0)), nan);
    assert_eq!(special::rsqrt_ftz_f64(f(-0.0)), f(f64::NEG_INFINITY));
    assert_eq!(special::rsqrt_ftz_f64(f(f64::INFINITY)), 0);
    assert_eq!(special::rsqrt_ftz_f64(f(16.0)), f(0.25));
    assert_eq!(special::rsqrt_f64(f(16.0)), f(0.25));
    assert_eq!(special::rsqrt_f64(f(-4.0)), super::super::float64::NAN);
    assert_eq!(
        special::rsqrt_f64(0x7ff0_0000_0000_0001),
        0x7ff8_0000_0000_0001
    );
    let mut random = Random::new(53);
    for _ in 0..2000 {
        let bits = random.next() & 0x7fff_ffff_0000_0000;
        let x = f64::from_bits(bits);
        if !x.is_normal() || !x.recip().is_normal() {
            continue;
        }
        for (got, want) in [
            (special::rcp_ftz_f64(bits), x.recip()),
            (special::rsqrt_ftz_f64(bits), 1.0 / x.sqrt()),
        ] {
            assert_eq!(got & 0xffff_ffff, 0);
            // 20 bits of fraction, rounded to nearest.
            assert!((f64::from_bits(got) / want - 1.0).abs() <= 2.0_f64.powi(-21) * 1.0001);
        }
    }
}

fn halves<H: Half>(bound_ex2: f64, tanh_fits: fn(f64, f64) -> bool) {
    for code in 0..=u16::MAX {
        let x = f64::from(f32::from_bits(float16::to_f32::<H>(code)));
        let read = |c: u16| f64::from(f32::from_bits(float16::to_f32::<H>(c)));
        let (e, t) = (special::ex2_half::<H>(code), special::tanh_half::<H>(code));
        if x.is_nan() {
            assert_eq!((e, t), (0x7fff, 0x7fff));
            continue;
        }
        assert!(tanh_fits(read(t), x.tanh()), "tanh {x}");
        let want = x.exp2();
        let format = H::FORMAT;
        let least = 2.0_f64.powi(1 - format.bias);
        if read(e).is_infinite() {
            assert!(want > 2.0_f64.powi(format.bias));
        } else if want >= least {
            assert!((read(e) / want - 1.0).abs() <= bound_ex2, "ex2 {x}");
        } else {
            let place = least * 2.0_f64.powi(-(format.fraction as i32));
            assert!((read(e) - want).abs() <= place / 2.0);
        }
    }
    assert_eq!(special::ex2_half::<H>(H::INFINITY | 0x8000), 0);
    assert_eq!(special::ex2_half::<H>(H::INFINITY), H::INFINITY);
    assert_eq!(
        special::tanh_half::<H>(H::INFINITY | 0x8000),
        H::ONE | 0x8000
    );
    assert_eq!(special::tanh_half::<H>(0x8000), 0x8000);
}

#[test]
fn half_approximations_for_every_code() {
    halves::<F16>(2.0_f64.powf(-9.9), |got, want| {
        (got - want).abs() <= 2.0_f64.powf(-10.987)
    });
    halves::<BF16>(2.0_f64.powi(-7), |got, want| {
        got == want
            || (got / want - 1.0).abs() <= 2.0_f64.powi(-8)
            || want.abs() < 2.0_f64.powi(-126)
    });
}
