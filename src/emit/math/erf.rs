//! The error function.
//!
//! Near zero an odd polynomial, beyond that `1 - exp(-Q(|x|))` with a polynomial `Q`, the negative
//! logarithm of `1 - erf`. Minimax fits of our own; the errors are below 2^-25 (`f32`) and 2^-54
//! (`f64`) relative to the result.

use crate::emit::math::scope::Scope;
use crate::emit::math::scope::V;

/// `erf x / x - 1` in `x^2` for `|x| < 0.92`.
const NEAR_F32: &[f64] = &[
    0.128_379_166_126_251_22,
    -0.376_126_259_565_353_4,
    0.112_835_787_236_690_52,
    -0.026_853_347_197_175_026,
    0.005_187_162_198_126_316,
    -0.000_799_785_309_936_851_3,
    7.806_903_158_780_187e-5,
];
/// `-log(1 - erf x)` for `0.92 <= x <= 4`.
const FAR_F32: &[f64] = &[
    -0.000_169_206_774_444_319_3,
    1.129_488_468_170_166,
    0.633_400_619_029_998_8,
    0.108_220_748_603_343_96,
    -0.025_080_911_815_166_473,
    0.004_156_382_754_445_076,
    -0.000_431_421_212_852_001_2,
    2.083_092_476_823_367_2e-5,
];
/// `erf x / x - 1` in `x^2` for `|x| < 1`.
const NEAR_F64: &[f64] = &[
    0.128_379_167_095_512_6,
    -0.376_126_389_031_840_87,
    0.112_837_916_709_703_26,
    -0.026_866_170_647_869_97,
    0.005_223_977_651_077_379,
    -0.000_854_832_844_342_484_6,
    0.000_120_553_829_059_318_64,
    -1.492_680_535_959_562e-5,
    1.647_989_362_760_673_2e-6,
    -1.654_542_634_076_289_4e-7,
    1.593_913_653_297_139_3e-8,
    -1.619_681_529_890_044_9e-9,
    1.392_208_922_686_920_3e-10,
];
/// `-log(1 - erf x)` in `x - 1` for `1 <= x <= 6`.
const FAR_F64: &[f64] = &[
    1.849_605_509_933_248_5,
    2.638_967_514_234_723,
    0.843_107_256_362_219_1,
    0.041_561_097_966_547_146,
    -0.010_033_824_550_437_376,
    0.001_977_897_220_848_071_8,
    -0.000_237_300_117_174_424_86,
    -2.634_151_387_857_866e-5,
    2.728_684_763_269_537e-5,
    -9.794_149_039_760_439e-6,
    2.256_806_454_302_728_4e-6,
    -2.977_050_885_740_82e-7,
    -7.654_680_650_689_42e-9,
    1.377_918_852_511_229_6e-8,
    -3.187_951_975_692_018_4e-9,
    3.613_610_392_055_428_7e-10,
    -1.733_818_108_391_724e-11,
];

impl Scope<'_> {
    /// Error function.
    pub(super) fn erf(&mut self, x: V) -> V {
        let size = self.abs(x);
        let z = self.mul(x, x);
        let p = self.pick_poly(z, NEAR_F32, NEAR_F64);
        let near = self.fma(x, p, x);
        let (most, edge) = if self.is_double() {
            (6.0, 1.0)
        } else {
            (4.0, 0.92)
        };
        let limit = self.c(most);
        let limited = self.at_most(size, limit);
        let q = if self.is_double() {
            let from_one = self.shift(limited, -1.0);
            let square = self.mul(from_one, from_one);
            self.poly2(from_one, square, FAR_F64)
        } else {
            self.poly(limited, FAR_F32)
        };
        let minus = self.neg(q);
        let e = self.exp(minus);
        let one = self.c(1.0);
        let far = self.sub(one, e);
        let far = self.copysign(far, x);
        let small = self.below(size, edge);
        self.select(small, near, far)
    }
}
