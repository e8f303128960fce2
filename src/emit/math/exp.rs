//! Exponentials, logarithms and what is made of them.
//!
//! `exp`: Cody and Waite's reduction by multiples of ln 2, a polynomial on ±ln 2 / 2, scaling in two
//! steps so that subnormal results are right. `log`: reduction to [√½, √2), then a polynomial
//! (`f32`) or the series in `s = f / (2 + f)` (`f64`). The coefficients are minimax fits of our own
//! (error of the approximation below 2^-28 for `f32`, 2^-57 for `f64`, relative).

use crate::emit::math::scope::Double;
use crate::emit::math::scope::Scope;
use crate::emit::math::scope::V;
use crate::kernel::BinaryOp;
use crate::kernel::CmpOp;

/// `(e^r - 1 - r) / r^2` on ±ln 2 / 2.
const EXP_F32: &[f64] = &[
    0.5,
    0.166_665_136_814_117_43,
    0.041_666_403_412_818_91,
    0.008_369_527_757_167_816,
    0.001_394_060_323_946_178,
];
const EXP_F64: &[f64] = &[
    0.500_000_000_000_001_1,
    0.166_666_666_666_664_52,
    0.041_666_666_666_527_304,
    0.008_333_333_333_471_533,
    0.001_388_888_894_422_078,
    0.000_198_412_695_528_141_97,
    2.480_149_258_946_386_3e-5,
    2.755_754_726_611_28e-6,
    2.763_040_516_749_580_3e-7,
    2.501_191_576_629_69e-8,
];
/// The same with the error relative to `e^r - 1`.
const EXPM1_F32: &[f64] = &[
    0.5,
    0.166_666_656_732_559_2,
    0.041_666_492_819_786_07,
    0.008_333_546_109_497_547,
    0.001_393_232_145_346_701_1,
    0.000_197_616_129_298_694_43,
];
const EXPM1_F64: &[f64] = &[
    0.5,
    0.166_666_666_666_666_77,
    0.041_666_666_666_666_65,
    0.008_333_333_333_321_475,
    0.001_388_888_888_889_949_5,
    0.000_198_412_698_864_369_64,
    2.480_158_728_664_747e-5,
    2.755_724_395_322_881e-6,
    2.755_731_137_639_414_4e-7,
    2.510_911_200_224_931_2e-8,
    2.090_205_344_372_557_7e-9,
];
/// `(log(1 + f) - f + f^2 / 2) / f^3` on [√½ - 1, √2 - 1].
const LOG_F32: &[f64] = &[
    0.333_333_134_651_184_1,
    -0.250_000_089_406_967_16,
    0.200_020_730_495_452_88,
    -0.166_679_963_469_505_3,
    0.142_203_271_389_007_57,
    -0.124_060_317_873_954_77,
    0.118_835_680_186_748_5,
    -0.116_714_492_440_223_7,
    0.067_509_561_777_114_87,
];
/// `(log((1 + s) / (1 - s)) - 2 s) / s^3` in `s^2`.
const LOG_F64: &[f64] = &[
    0.666_666_666_666_673_4,
    0.399_999_999_994_166_6,
    0.285_714_287_420_360_2,
    0.222_221_986_026_082_4,
    0.181_835_630_684_640_1,
    0.153_140_770_105_018_42,
    0.147_957_337_095_740_24,
];

/// `1 / ln 2`
const LOG2_E: f64 = std::f64::consts::LOG2_E;
/// `ln 2` in two parts; products of the first with exponents are exact.
const LN2_F32: (f64, f64) = (0.693_145_751_953_125, 1.428_606_765_330_187e-6);
const LN2_F64: (f64, f64) = (0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10);

impl Scope<'_> {
    /// The nearest multiple `k` of ln 2, and `x - k ln 2` as a rounded number.
    fn reduce_exp(&mut self, x: V) -> (V, V) {
        let (k, k_int) = self.round_magic(x, LOG2_E);
        let (high, low) = if self.is_double() { LN2_F64 } else { LN2_F32 };
        let high = self.c(high);
        let r = self.fnma(k, high, x);
        let low = self.c(low);
        (k_int, self.fnma(k, low, r))
    }

    /// `e^x` limited to what does not overflow the scaling; NaN stays.
    fn clamp_exp(&mut self, x: V) -> V {
        let (low, high) = if self.is_double() {
            (-746.0, 712.0)
        } else {
            (-104.0, 90.0)
        };
        let (low, high) = (self.c(low), self.c(high));
        let x = self.at_most(x, high);
        self.at_least(x, low)
    }

    /// `e^r` for reduced `r`.
    fn exp_reduced(&mut self, r: V) -> V {
        let p = self.pick_poly(r, EXP_F32, EXP_F64);
        let r2 = self.mul(r, r);
        let sum = self.fma(r2, p, r);
        self.shift(sum, 1.0)
    }

    /// `e^x`
    pub(super) fn exp(&mut self, x: V) -> V {
        self.exp_times(x, 0)
    }

    /// `e^x * 2^power`, without overflow on the way.
    pub(super) fn exp_times(&mut self, x: V, power: i64) -> V {
        let x = self.clamp_exp(x);
        let (k, r) = self.reduce_exp(x);
        let e = self.exp_reduced(r);
        let k = self.int_c(BinaryOp::Add, k, power);
        self.ldexp(e, k)
    }

    /// `e^x` as a product of two factors, neither of which overflows before `e^x` is far beyond
    /// the largest number.
    pub(super) fn exp_factors(&mut self, x: V) -> (V, V) {
        let (low, high) = if self.is_double() {
            (-746.0, 1418.0)
        } else {
            (-104.0, 175.0)
        };
        let (low, high) = (self.c(low), self.c(high));
        let x = self.at_most(x, high);
        let x = self.at_least(x, low);
        let (k, r) = self.reduce_exp(x);
        let e = self.exp_reduced(r);
        let (half, rest) = self.exp2_halves(k);
        (self.mul(e, half), rest)
    }

    /// `e^(x.high + x.low)`, the low part being below a few units in the last place.
    pub(super) fn exp_double(&mut self, x: Double) -> V {
        let limited = self.clamp_exp(x.high);
        let inside = self.b.cmp(CmpOp::FEq, limited, x.high);
        let zero = self.c(0.0);
        let low = self.select(inside, x.low, zero);
        let (k, r) = self.reduce_exp(limited);
        let r = self.add(r, low);
        let e = self.exp_reduced(r);
        self.ldexp(e, k)
    }

    /// `e^x - 1`
    pub(super) fn expm1(&mut self, x: V) -> V {
        let tiny = x;
        let x = self.clamp_exp(x);
        let (k, r) = self.reduce_exp(x);
        let p = self.pick_poly(r, EXPM1_F32, EXPM1_F64);
        let r2 = self.mul(r, r);
        let p = self.fma(r2, p, r);
        // Where 2^k is beyond the precision the one does not matter, and 2^k may overflow.
        let (most, least) = if self.is_double() {
            (64, -64)
        } else {
            (32, -32)
        };
        let least = self.i(least);
        let k_low = self.int(BinaryOp::SMax, k, least);
        let large = self.icmp_c(CmpOp::SGt, k, most);
        let most = self.i(most);
        let k_mid = self.int(BinaryOp::SMin, k_low, most);
        let s = self.exp2_int(k_mid);
        let s_less = self.shift(s, -1.0);
        let near = self.fma(p, s, s_less);
        let whole = self.shift(p, 1.0);
        let far = self.ldexp(whole, k);
        let result = self.select(large, far, near);
        // Keeps the sign of zero.
        let is_zero = self.is(tiny, 0.0);
        self.select(is_zero, tiny, result)
    }

    /// `x = 2^k m` with `m` in [√½, √2): gives `k` as a float and `m - 1`. `x` is positive.
    pub(super) fn split_log(&mut self, x: V) -> (V, V) {
        let (smallest, up, by) = if self.is_double() {
            (f64::MIN_POSITIVE, 2f64.powi(54), 54)
        } else {
            (f64::from(f32::MIN_POSITIVE), 2f64.powi(23), 23)
        };
        let subnormal = self.below(x, smallest);
        let scaled = self.scale(x, up);
        let x = self.select(subnormal, scaled, x);
        let (minus, zero) = (self.i(-by), self.i(0));
        let extra = self.select(subnormal, minus, zero);
        let (k, m) = self.split_normal(x);
        let k = self.int(BinaryOp::Add, k, extra);
        let k = self.exponent_to_float(k);
        (k, self.shift(m, -1.0))
    }

    /// `x = 2^k m` with `m` in [√½, √2), for normal positive `x`: gives `k` (an integer) and `m`.
    pub(super) fn split_normal(&mut self, x: V) -> (V, V) {
        let root = if self.is_double() {
            0x3fe6_a09e_667f_3bcd
        } else {
            0x3f35_04f3
        };
        // The offset is positive, so that a logical shift does; vectors lack the other for 64 bits.
        let bits = self.bits(x);
        let shift = i64::from(self.fraction_bits());
        let bias = self.bias();
        let offset = self.int_c(BinaryOp::Add, bits, (bias << shift) - root);
        let k = self.int_c(BinaryOp::LShr, offset, shift);
        let k = self.int_c(BinaryOp::Sub, k, bias);
        let high = self.int_c(BinaryOp::Shl, k, shift);
        let m = self.int(BinaryOp::Sub, bits, high);
        (k, self.as_float(m))
    }

    /// A small integer as a float; without 64-bit conversions, which vectors lack.
    pub(super) fn exponent_to_float(&mut self, k: V) -> V {
        if !self.is_double() {
            return self.int_as_float(k);
        }
        // 1.5 * 2^52 + k, less 1.5 * 2^52.
        let magic = self.c(6_755_399_441_055_744.0);
        let bits = self.bits(magic);
        let sum = self.int(BinaryOp::Add, bits, k);
        let sum = self.as_float(sum);
        self.sub(sum, magic)
    }

    /// `k ln 2 + log(1 + f) + extra`
    fn log_parts(&mut self, k: V, f: V, extra: Option<V>) -> V {
        let (high, low) = if self.is_double() {
            LN2_F64
        } else {
            (0.693_359_375, -2.121_944_4e-4)
        };
        let (high, low) = (self.c(high), self.c(low));
        let f2 = self.mul(f, f);
        let half = self.scale(f2, 0.5);
        let mut small = if self.is_double() {
            let two = self.shift(f, 2.0);
            let s = self.div(f, two);
            let z = self.mul(s, s);
            let z2 = self.mul(z, z);
            let r = self.poly2(z, z2, LOG_F64);
            // log(1 + f) = f - f^2/2 + s (f^2/2 + z R).
            let inner = self.fma(z, r, half);
            let inner = self.mul(s, inner);
            self.fma(k, low, inner)
        } else {
            let p = self.poly2(f, f2, LOG_F32);
            let f3 = self.mul(f2, f);
            let p = self.mul(f3, p);
            self.fma(k, low, p)
        };
        if let Some(extra) = extra {
            small = self.add(small, extra);
        }
        let small = self.sub(small, half);
        let sum = self.add(f, small);
        self.fma(k, high, sum)
    }

    /// Natural logarithm.
    pub(super) fn log(&mut self, x: V) -> V {
        let (k, f) = self.split_log(x);
        let result = self.log_parts(k, f, None);
        self.log_ends(x, result)
    }

    /// Puts in what the logarithm is of zero, infinity, NaN and below zero.
    fn log_ends(&mut self, x: V, result: V) -> V {
        let (nan, inf) = (self.nan(), self.inf());
        let minus = self.neg(inf);
        let infinite = self.is(x, f64::INFINITY);
        let result = self.select(infinite, inf, result);
        let zero = self.is(x, 0.0);
        let result = self.select(zero, minus, result);
        let zero = self.c(0.0);
        let fine = self.b.cmp(CmpOp::FGe, x, zero);
        self.select(fine, result, nan)
    }

    /// `log(1 + x)`
    pub(super) fn log1p(&mut self, x: V) -> V {
        let one = self.c(1.0);
        let u = self.add(one, x);
        // What the sum lost, whichever term is the larger.
        let lost = self.two_sum(one, x).low;
        let finite = self.below(u, f64::INFINITY);
        let (k, m) = self.split_normal(u);
        let near = self.icmp_c(CmpOp::IEq, k, 0);
        let f = self.shift(m, -1.0);
        let f = self.select(near, x, f);
        let correction = self.div(lost, u);
        let zero = self.c(0.0);
        let plain = self.not(near);
        let use_it = self.both(plain, finite);
        let correction = self.select(use_it, correction, zero);
        let k = self.exponent_to_float(k);
        let result = self.log_parts(k, f, Some(correction));
        let result = self.log_ends(u, result);
        // Keeps the sign of zero.
        let is_zero = self.is(x, 0.0);
        self.select(is_zero, x, result)
    }

    /// `1 / (1 + e^-x)`
    pub(super) fn logistic(&mut self, x: V) -> V {
        let size = self.abs(x);
        let minus = self.neg(size);
        let e = self.exp(minus);
        let one = self.c(1.0);
        let negative = self.below(x, 0.0);
        let above = self.select(negative, e, one);
        let below = self.add(one, e);
        self.div(above, below)
    }
}
