//! Powers, roots and the remainder.
//!
//! `pow`: the logarithm as a sum of two floats (the first two terms of its series to twice the
//! precision, the rest to one), times the exponent in the same form, then `exp`; for `f32` where
//! `f64` is fast, the same in plain `f64`. `cbrt`: a guess
//! from the bits, Halley's iteration, and a last step from an exact residual. The remainder is
//! exact: quotients are taken off as many bits at a time as one fused operation takes off exactly.

use crate::emit::math::scope::Double;
use crate::emit::math::scope::Scope;
use crate::emit::math::scope::V;
use crate::kernel::BinaryOp;
use crate::kernel::CastOp;
use crate::kernel::CmpOp;
use crate::kernel::Scalar;
use crate::kernel::UnaryOp;

/// `(log((1 + s) / (1 - s)) - 2 s - 2/3 s^3) / s^5` in `s^2`, for arguments in [√½, √2].
const LOG_TAIL_F32: &[f64] = &[
    0.399_999_976_158_142_1,
    0.285_719_662_904_739_4,
    0.221_803_337_335_586_55,
    0.195_423_454_046_249_4,
];
const LOG_TAIL_F64: &[f64] = &[
    0.4,
    0.285_714_285_714_269,
    0.222_222_222_227_107_64,
    0.181_818_181_071_722_46,
    0.153_846_220_662_264_05,
    0.133_329_669_129_948_65,
    0.117_770_320_952_354_93,
    0.102_831_939_129_789_94,
    0.119_973_771_492_754_98,
];

/// The logarithm's series and `(e^r - 1 - r) / r^2`, to the precision that an `f32` result needs.
const LOG_BY_F64: &[f64] = &[
    0.666_666_656_406_446_7,
    0.400_003_360_429_953_5,
    0.285_372_620_610_971_7,
    0.235_829_490_814_529_59,
];
const EXP_BY_F64: &[f64] = &[
    0.499_999_934_588_287_9,
    0.166_665_206_061_783_2,
    0.041_668_383_654_574_47,
    0.008_368_718_280_623_966,
    0.001_381_485_166_904_949_7,
];

impl Scope<'_> {
    /// `1 / sqrt(x)`
    pub(super) fn rsqrt(&mut self, x: V) -> V {
        let one = self.c(1.0);
        let root = self.sqrt(x);
        self.div(one, root)
    }

    /// Cube root.
    pub(super) fn cbrt(&mut self, x: V) -> V {
        let size = self.abs(x);
        let (smallest, up, down, guess) = if self.is_double() {
            (
                2f64.powi(-1000),
                2f64.powi(54),
                2f64.powi(-18),
                0x2a9f_7893_0000_0000_i64,
            )
        } else {
            (2f64.powi(-100), 2f64.powi(24), 2f64.powi(-8), 0x2a51_0554)
        };
        let subnormal = self.below(size, smallest);
        let scaled = self.scale(size, up);
        let a = self.select(subnormal, scaled, size);
        // A third of the exponent, from a third of the bits.
        let bits = self.bits(a);
        let third = if self.is_double() {
            0x5555_5555_5555_5556
        } else {
            0x5555_5556
        };
        let third = self.int_c(BinaryOp::UMulHi, bits, third);
        let t = self.int_c(BinaryOp::Add, third, guess);
        let mut t = self.as_float(t);
        let steps = if self.is_double() { 2 } else { 1 };
        for _ in 0..steps {
            // t (t^3 + 2 a) / (2 t^3 + a), a quarter of both so that nothing overflows.
            let square = self.mul(t, t);
            let part = self.scale(t, 0.25);
            let cube = self.mul(square, part);
            let part = self.scale(a, 0.25);
            let twice = self.add(part, part);
            let above = self.add(cube, twice);
            let twice = self.add(cube, cube);
            let below = self.add(twice, part);
            let ratio = self.div(above, below);
            t = self.mul(t, ratio);
        }
        let square = self.two_product(t, t);
        let minus = self.neg(square.high);
        let rest = self.b.fma_exact(minus, t, a);
        let rest = self.fnma(square.low, t, rest);
        let three = self.scale(square.high, 3.0);
        let step = self.div(rest, three);
        let root = self.add(t, step);
        let (down, one) = (self.c(down), self.c(1.0));
        let factor = self.select(subnormal, down, one);
        let root = self.mul(root, factor);
        let root = self.copysign(root, x);
        // Zero, infinity and NaN are their own cube roots.
        let inf = self.inf();
        let finite = self.lt(size, inf);
        let zero = self.c(0.0);
        let positive = self.gt(size, zero);
        let plain = self.both(finite, positive);
        self.select(plain, root, x)
    }

    /// `log x` for positive finite `x`, as a sum of two floats.
    fn log_double(&mut self, x: V) -> Double {
        let (k, f) = self.split_log(x);
        let two = self.c(2.0);
        let below = self.two_sum(two, f);
        // s = f / (2 + f)
        let s = self.div(f, below.high);
        let minus = self.neg(s);
        let rest = self.b.fma_exact(minus, below.high, f);
        let rest = self.fma(minus, below.low, rest);
        let s_low = self.div(rest, below.high);
        let s = Double {
            high: s,
            low: s_low,
        };
        let z = self.double_mul(s, s);
        let tail = self.pick_poly(z.high, LOG_TAIL_F32, LOG_TAIL_F64);
        let tail = self.mul(z.high, tail);
        let two_thirds = self.c2(0.666_666_666_666_666_6, 3.700_743_415_417_188e-17);
        let tail = Double {
            high: tail,
            low: self.c(0.0),
        };
        // s (2 + z (2/3 + z tail))
        let inner = self.double_add(two_thirds, tail);
        let cube = self.double_mul(z, s);
        let cube = self.double_mul(cube, inner);
        let twice = Double {
            high: self.add(s.high, s.high),
            low: self.add(s.low, s.low),
        };
        let log_m = self.double_add(twice, cube);
        let ln2 = self.c2(std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17);
        let whole = self.two_product(k, ln2.high);
        let whole_low = self.fma(k, ln2.low, whole.low);
        let whole = Double {
            high: whole.high,
            low: whole_low,
        };
        self.double_add(whole, log_m)
    }

    /// `x^y` for positive finite `x`, of `f32` by way of `f64`, where nothing has to be split.
    fn pow_by_f64(&mut self, x: V, y: V) -> V {
        let wide = self.ty.with_scalar(Scalar::F64);
        let x = self.b.cast(CastOp::FpExt, x, Scalar::F64);
        let y = self.b.cast(CastOp::FpExt, y, Scalar::F64);
        let mut s = Scope {
            b: &mut *self.b,
            ty: wide,
        };
        let (k, m) = s.split_normal(x);
        let k = s.exponent_to_float(k);
        let (f, below) = (s.shift(m, -1.0), s.shift(m, 1.0));
        let t = s.div(f, below);
        let z = s.mul(t, t);
        let p = s.poly(z, LOG_BY_F64);
        let two = s.c(2.0);
        let p = s.fma(z, p, two);
        let ln2 = s.c(std::f64::consts::LN_2);
        let log = s.mul(t, p);
        let log = s.fma(k, ln2, log);
        let power = s.mul(y, log);
        // Beyond these the result is infinite or zero.
        let (low, high) = (s.c(-150.0), s.c(130.0));
        let power = s.at_most(power, high);
        let power = s.at_least(power, low);
        let (k, k_int) = s.round_magic(power, std::f64::consts::LOG2_E);
        let r = s.fnma(k, ln2, power);
        let p = s.poly(r, EXP_BY_F64);
        let square = s.mul(r, r);
        let e = s.fma(square, p, r);
        let e = s.shift(e, 1.0);
        let unit = s.exp2_int(k_int);
        let e = s.mul(e, unit);
        self.b.cast(CastOp::FpTrunc, e, Scalar::F32)
    }

    /// `x^y` for positive finite `x`.
    fn pow_positive(&mut self, size: V, y: V) -> V {
        if !self.is_double() && !self.b.slow_double() {
            return self.pow_by_f64(size, y);
        }
        let log = self.log_double(size);
        // Larger exponents overflow or vanish in any case, but for logarithms near zero.
        let most = self.c(if self.is_double() { 1e300 } else { 1e37 });
        let least = self.neg(most);
        let limited = self.at_most(y, most);
        let limited = self.at_least(limited, least);
        let p = self.two_product(limited, log.high);
        let low = self.fma(limited, log.low, p.low);
        let sum = self.fast_two_sum(p.high, low);
        let finite = self.abs(sum.high);
        let finite = self.below(finite, f64::INFINITY);
        let product = Double {
            high: self.select(finite, sum.high, p.high),
            low: sum.low,
        };
        self.exp_double(product)
    }

    /// `x^y` with the special cases of C.
    pub(super) fn pow(&mut self, x: V, y: V) -> V {
        let size = self.abs(x);
        let result = self.pow_positive(size, y);
        let (odd, whole) = self.parity(y);
        let result = self.pow_ends(y, size, result);
        // A negative base: NaN, or the sign of an odd power.
        let bits = self.bits(x);
        let negative = self.icmp_c(CmpOp::SLt, bits, 0);
        let minus = self.neg(result);
        let flip = self.both(negative, odd);
        let result = self.select(flip, minus, result);
        let below = self.below(x, 0.0);
        let base_finite = self.below(size, f64::INFINITY);
        let y_inf = self.is_inf(y);
        let fraction = self.either(whole, y_inf);
        let fraction = self.not(fraction);
        let fraction = self.both(fraction, below);
        let wrong = self.both(fraction, base_finite);
        let nan = self.nan();
        let result = self.select(wrong, nan, result);
        let unordered = self.b.cmp(CmpOp::FUno, x, y);
        let result = self.select(unordered, nan, result);
        let base_one = self.is(x, 1.0);
        let power_zero = self.is(y, 0.0);
        let is_one = self.either(base_one, power_zero);
        let one = self.c(1.0);
        self.select(is_one, one, result)
    }

    /// Whether a number is odd, and whether it is whole.
    fn parity(&mut self, y: V) -> (V, V) {
        let floor = self.b.unary(UnaryOp::Trunc, y);
        let whole = self.b.cmp(CmpOp::FEq, floor, y);
        let half = self.scale(y, 0.5);
        let half_floor = self.b.unary(UnaryOp::Trunc, half);
        let uneven = self.b.cmp(CmpOp::FNe, half_floor, half);
        (self.both(whole, uneven), whole)
    }

    /// Puts in the powers of zero and infinity, and infinite powers.
    fn pow_ends(&mut self, y: V, size: V, result: V) -> V {
        let (inf, zero, one) = (self.inf(), self.c(0.0), self.c(1.0));
        let is_zero = self.is(size, 0.0);
        let is_inf = self.is(size, f64::INFINITY);
        let falls = self.below(y, 0.0);
        let of_zero = self.select(falls, inf, zero);
        let of_inf = self.select(falls, zero, inf);
        let result = self.select(is_zero, of_zero, result);
        let result = self.select(is_inf, of_inf, result);
        let y_inf = self.is_inf(y);
        let grows = self.above(size, 1.0);
        let is_one = self.is(size, 1.0);
        let up = self.select(falls, zero, inf);
        let down = self.select(falls, inf, zero);
        let endless = self.select(grows, up, down);
        let endless = self.select(is_one, one, endless);
        self.select(y_inf, endless, result)
    }

    /// What is left of `x` after whole multiples of `y`, with the sign of `x`; exact.
    pub(super) fn remainder(&mut self, x: V, y: V) -> V {
        let divisor = self.abs(y);
        // Rests of a tiny divisor might be subnormal, so both numbers are scaled up; a number too large
        // for that loses multiples of the divisor first.
        let (tiny, coarse, up, down) = if self.is_double() {
            [-512, 500, 450, -450].map(|k| 2f64.powi(k)).into()
        } else {
            [-64, 60, 50, -50].map(|k| 2f64.powi(k)).into()
        };
        let is_tiny = self.below(divisor, tiny);
        let one = self.c(1.0);
        let multiple = self.scale(divisor, coarse);
        let multiple = self.select(is_tiny, multiple, divisor);
        let near = self.rest(x, multiple);
        let (up, down) = (self.c(up), self.c(down));
        let factor = self.select(is_tiny, up, one);
        let (scaled_x, scaled_divisor) = (self.mul(near, factor), self.mul(divisor, factor));
        let first = self.take_off(scaled_x, scaled_divisor);
        let rest = self.rest(first, scaled_divisor);
        // The rest may have come out with the other sign.
        let rest_negative = self.below(rest, 0.0);
        let negative = self.below(x, 0.0);
        let differs = self.b.binary(BinaryOp::Xor, rest_negative, negative);
        let is_zero = self.is(rest, 0.0);
        let nonzero = self.not(is_zero);
        let differs = self.both(differs, nonzero);
        let back = self.copysign(scaled_divisor, x);
        let back = self.add(rest, back);
        let rest = self.select(differs, back, rest);
        let factor = self.select(is_tiny, down, one);
        let rest = self.mul(rest, factor);
        let rest = self.copysign(rest, x);
        // A larger divisor leaves the number alone, an infinite one too.
        let size = self.abs(x);
        let alone = self.lt(size, divisor);
        self.select(alone, x, rest)
    }

    /// A number smaller than the divisor, of either sign, that is off by a multiple of it.
    fn rest(&mut self, x: V, divisor: V) -> V {
        let ty = self.ty;
        self.b.while_carried(
            &[x],
            |b, carried| {
                let mut scope = Scope { b, ty };
                let size = scope.abs(carried[0]);
                let more = scope.b.cmp(CmpOp::FGe, size, divisor);
                let zero = scope.c(0.0);
                let real = scope.gt(divisor, zero);
                let more = scope.both(more, real);
                let finite = scope.below(size, f64::INFINITY);
                let more = scope.both(more, finite);
                scope.b.reduce_lanes(BinaryOp::Or, more)
            },
            |b, carried| {
                let mut scope = Scope { b, ty };
                vec![scope.take_off(carried[0], divisor)]
            },
        )[0]
    }

    /// Takes a whole multiple of the divisor off, leaving at most a 2^23rd (2^52nd) of `x` or half
    /// the divisor. One rounding of an exactly representable result is none.
    fn take_off(&mut self, x: V, divisor: V) -> V {
        let (down, up, more) = if self.is_double() {
            (2f64.powi(-1000), 2f64.powi(1000), 2f64.powi(100))
        } else {
            (2f64.powi(-120), 2f64.powi(120), 2f64.powi(30))
        };
        // Quotients that overflow are taken by a larger multiple of the divisor.
        let size = self.abs(x);
        let limit = self.scale(size, down);
        let (up, more, one) = (self.c(up), self.c(more), self.c(1.0));
        let too_small = self.gt(limit, divisor);
        let factor = self.select(too_small, up, one);
        let divisor = self.mul(divisor, factor);
        let too_small = self.gt(limit, divisor);
        let factor = self.select(too_small, more, one);
        let divisor = self.mul(divisor, factor);
        let quotient = self.div(x, divisor);
        let quotient = self.b.unary(UnaryOp::RoundEven, quotient);
        let minus = self.neg(quotient);
        self.b.fma_exact(minus, divisor, x)
    }
}
