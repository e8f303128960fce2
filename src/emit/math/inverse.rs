//! Inverse trigonometric functions.
//!
//! `atan` and `atan2` divide once: the smaller magnitude by the larger, or, above tan π/8, their
//! difference by their sum. `asin` and `acos` use a polynomial on ±1/2 and a square root beyond.
//! Coefficients are minimax fits of our own (below 2^-30 for `f32`, 2^-59 for `f64`, relative).

use crate::emit::math::scope::Scope;
use crate::emit::math::scope::V;

/// `(atan t / t - 1) / t^2` in `t^2` for `|t| <= tan π/8`.
const ATAN_F32: &[f64] = &[
    -0.333_333_164_453_506_47,
    0.199_985_295_534_133_9,
    -0.142_444_163_560_867_3,
    0.105_992_615_222_930_91,
    -0.060_899_868_607_521_06,
];
const ATAN_F64: &[f64] = &[
    -0.333_333_333_333_332,
    0.199_999_999_999_536_24,
    -0.142_857_142_801_893_7,
    0.111_111_107_827_107_1,
    -0.090_908_977_273_086_6,
    0.076_920_595_408_939_47,
    -0.066_630_950_621_891_32,
    0.058_478_152_274_383_195,
    -0.050_389_351_729_842_47,
    0.038_054_335_629_826_39,
    -0.017_895_162_871_990_153,
];
/// `(asin t / t - 1) / t^2` in `t^2` for `|t| <= 1/2`.
const ASIN_F32: &[f64] = &[
    0.166_666_597_127_914_43,
    0.075_005_188_584_327_7,
    0.044_514_436_274_766_92,
    0.031_826_868_653_297_424,
    0.014_371_637_254_953_384,
    0.037_604_480_981_826_78,
];
const ASIN_F64: &[f64] = &[
    0.166_666_666_666_667_63,
    0.074_999_999_999_701_24,
    0.044_642_857_175_263_58,
    0.030_381_942_676_313_414,
    0.022_372_215_877_329_637,
    0.017_351_596_013_334_747,
    0.013_981_012_304_560_132,
    0.011_397_345_055_528_758,
    0.010_789_022_786_856_823,
    0.003_673_339_777_503_146_4,
    0.021_787_769_699_493_933,
    -0.021_112_553_401_621_475,
    0.032_699_500_687_860_907,
];

const HALF_PI: (f64, f64) = (std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17);

impl Scope<'_> {
    /// The angle whose tangent is `above / below`, both not negative and not both infinite or
    /// zero, in `[0, π/2]`.
    fn angle(&mut self, above: V, below: V) -> V {
        let steep = self.gt(above, below);
        let small = self.select(steep, below, above);
        let large = self.select(steep, above, below);
        // Sums of the largest numbers must not overflow.
        let huge = self.above(large, if self.is_double() { 1e300 } else { 1e37 });
        let (quarter, one) = (self.c(0.25), self.c(1.0));
        let factor = self.select(huge, quarter, one);
        let (small, large) = (self.mul(small, factor), self.mul(large, factor));
        let limit = self.scale(large, 0.414_213_562_373_095);
        let middle = self.gt(small, limit);
        let (difference, sum) = (self.sub(small, large), self.add(small, large));
        let above = self.select(middle, difference, small);
        let below = self.select(middle, sum, large);
        let t = self.div(above, below);
        let z = self.mul(t, t);
        let p = self.pick_poly(z, ATAN_F32, ATAN_F64);
        let p = self.mul(z, p);
        let (quarter_pi, zero) = (self.c2(HALF_PI.0 / 2.0, HALF_PI.1 / 2.0), self.c(0.0));
        let base_low = self.select(middle, quarter_pi.low, zero);
        let base = self.select(middle, quarter_pi.high, zero);
        let small = self.fma(t, p, base_low);
        // base - (π/2 when steep) goes first, so that nothing is rounded twice.
        let half_pi = self.c2(HALF_PI.0, HALF_PI.1);
        let minus_small = self.neg(small);
        let minus_t = self.neg(t);
        let small = self.select(steep, minus_small, small);
        let t = self.select(steep, minus_t, t);
        let turned = self.sub(half_pi.high, base);
        let base = self.select(steep, turned, base);
        let turn_low = self.select(steep, half_pi.low, zero);
        let small = self.add(small, turn_low);
        let rest = self.add(t, small);
        // `base` is zero or larger than the rest.
        let sum = self.fast_two_sum(base, t);
        let fine = self.add(sum.low, small);
        let with_base = self.add(sum.high, fine);
        let has_base = self.above(base, 0.0);
        self.select(has_base, with_base, rest)
    }

    /// Arc tangent.
    pub(super) fn atan(&mut self, x: V) -> V {
        let size = self.abs(x);
        let one = self.c(1.0);
        let angle = self.angle(size, one);
        let infinite = self.is(size, f64::INFINITY);
        let half_pi = self.c(HALF_PI.0);
        let angle = self.select(infinite, half_pi, angle);
        self.copysign(angle, x)
    }

    /// The angle of the point `(x, y)`.
    pub(super) fn atan2(&mut self, y: V, x: V) -> V {
        let (size_y, size_x) = (self.abs(y), self.abs(x));
        let (inf_y, inf_x) = (self.is_inf(y), self.is_inf(x));
        let one = self.c(1.0);
        let zero = self.c(0.0);
        // Infinities become one against zero, or one against one.
        let any_inf = self.either(inf_x, inf_y);
        let one_y = self.select(inf_y, one, zero);
        let one_x = self.select(inf_x, one, zero);
        let above = self.select(any_inf, one_y, size_y);
        let below = self.select(any_inf, one_x, size_x);
        // Zero against zero becomes zero against one.
        let y_zero = self.is(above, 0.0);
        let x_zero = self.is(below, 0.0);
        let both_zero = self.both(y_zero, x_zero);
        let below = self.select(both_zero, one, below);
        // Of two tiny numbers the difference might be too small for a normal one.
        let (tiny, up) = if self.is_double() {
            (2f64.powi(-960), 2f64.powi(60))
        } else {
            (2f64.powi(-96), 2f64.powi(30))
        };
        let tiny_y = self.below(above, tiny);
        let tiny_x = self.below(below, tiny);
        let both_tiny = self.both(tiny_y, tiny_x);
        let up = self.c(up);
        let factor = self.select(both_tiny, up, one);
        let above = self.mul(above, factor);
        let below = self.mul(below, factor);
        let angle = self.angle(above, below);
        let pi = self.c2(2.0 * HALF_PI.0, 2.0 * HALF_PI.1);
        let less = self.sub(angle, pi.low);
        let supplement = self.sub(pi.high, less);
        let left = self.bits(x);
        let left = self.icmp_c(crate::kernel::CmpOp::SLt, left, 0);
        let angle = self.select(left, supplement, angle);
        let angle = self.copysign(angle, y);
        let unordered = self.b.cmp(crate::kernel::CmpOp::FUno, x, y);
        let nan = self.nan();
        self.select(unordered, nan, angle)
    }

    /// `s` and `asin t` for `t = |x|` up to 1/2, or `t = sqrt((1 - |x|) / 2)` beyond: gives whether
    /// it is beyond, `t`, `asin t - t`, and what the rounding of a root `t` lost.
    fn asin_parts(&mut self, x: V) -> (V, V, V, V) {
        let size = self.abs(x);
        let beyond = self.above(size, 0.5);
        let (one, half) = (self.c(1.0), self.c(0.5));
        let rest = self.sub(one, size);
        let z_far = self.mul(rest, half);
        let z_near = self.mul(x, x);
        let z = self.select(beyond, z_far, z_near);
        let root = self.sqrt(z_far);
        let t = self.select(beyond, root, size);
        let p = self.pick_poly(z, ASIN_F32, ASIN_F64);
        let p = self.mul(z, p);
        let more = self.mul(t, p);
        // root^2 + lost * 2 root = z_far
        let lost = self.fnma(root, root, z_far);
        let twice = self.add(root, root);
        let lost = self.div(lost, twice);
        let zero = self.c(0.0);
        let positive = self.above(root, 0.0);
        let lost = self.select(positive, lost, zero);
        (beyond, t, more, lost)
    }

    /// Arc sine.
    pub(super) fn asin(&mut self, x: V) -> V {
        let (beyond, t, more, lost) = self.asin_parts(x);
        let near = self.add(t, more);
        // π/2 - 2 (t + more)
        let half_pi = self.c2(HALF_PI.0, HALF_PI.1);
        let twice = self.add(t, t);
        let more = self.add(more, lost);
        let twice_more = self.add(more, more);
        let twice_more = self.sub(twice_more, half_pi.low);
        let main = self.sub(half_pi.high, twice);
        let back = self.sub(half_pi.high, main);
        let rounding = self.sub(back, twice);
        let fine = self.sub(rounding, twice_more);
        let far = self.add(main, fine);
        let angle = self.select(beyond, far, near);
        self.copysign(angle, x)
    }

    /// Arc cosine.
    pub(super) fn acos(&mut self, x: V) -> V {
        let (beyond, t, more, lost) = self.asin_parts(x);
        let negative = self.below(x, 0.0);
        let half_pi = self.c2(HALF_PI.0, HALF_PI.1);
        // π/2 - asin x
        let (signed_t, signed_more) = (self.copysign(t, x), self.copysign(more, x));
        let main = self.sub(half_pi.high, signed_t);
        let back = self.sub(half_pi.high, main);
        let rounding = self.sub(back, signed_t);
        let fine = self.sub(rounding, signed_more);
        let fine = self.add(fine, half_pi.low);
        let near = self.add(main, fine);
        // 2 (t + more), or π less that.
        let more = self.add(more, lost);
        let sum = self.add(t, more);
        let right = self.add(sum, sum);
        let pi = self.c2(2.0 * HALF_PI.0, 2.0 * HALF_PI.1);
        let twice = self.add(t, t);
        let main = self.sub(pi.high, twice);
        let back = self.sub(pi.high, main);
        let rounding = self.sub(back, twice);
        let twice_more = self.add(more, more);
        let fine = self.sub(rounding, twice_more);
        let fine = self.add(fine, pi.low);
        let left = self.add(main, fine);
        let far = self.select(negative, left, right);
        self.select(beyond, far, near)
    }
}
