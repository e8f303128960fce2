//! Sine, cosine and tangent, for every argument.
//!
//! The argument is reduced by multiples of π/2: for `|x| <= 10^5` by Cody and Waite's way with π/2
//! in three parts, beyond that by Payne and Hanek's, with the bits of 2/π that matter picked by the
//! exponent. The second is a branch that is taken when any lane needs it. The reduced argument is
//! exact to more than the type's precision. Coefficients are minimax fits of our own (below 2^-28
//! for `f32`, 2^-58 for `f64`, relative).

use crate::emit::math::scope::Double;
use crate::emit::math::scope::Scope;
use crate::emit::math::scope::V;
use crate::kernel::BinaryOp;
use crate::kernel::CmpOp;
use crate::kernel::UnaryOp;

/// `(sin r / r - 1) / r^2` in `r^2` on ±π/4.
const SIN_F32: &[f64] = &[
    -0.166_666_552_424_430_85,
    0.008_332_191_035_151_482,
    -0.000_195_185_988_559_387_62,
];
const SIN_F64: &[f64] = &[
    -0.166_666_666_666_666_32,
    0.008_333_333_333_322_477,
    -0.000_198_412_698_298_412_47,
    2.755_731_369_940_335e-6,
    -2.505_075_881_188_753_5e-8,
    1.589_681_453_206_093_4e-10,
];
/// `(cos r - 1 + r^2 / 2) / r^4` in `r^2` on ±π/4.
const COS_F32: &[f64] = &[
    0.041_666_645_556_688_31,
    -0.001_388_730_714_097_619,
    2.443_195_262_458_175_4e-5,
];
const COS_F64: &[f64] = &[
    0.041_666_666_666_666_6,
    -0.001_388_888_888_887_446_3,
    2.480_158_728_965_919_7e-5,
    -2.755_731_439_609_458_5e-7,
    2.087_572_844_720_907e-9,
    -1.135_988_352_865_417_7e-11,
];

/// π/2 in three parts. For `f64` the products of the first two with multiples up to 2^20 are exact.
const HALF_PI_F32: [f64; 3] = [
    1.570_796_370_506_286_6,
    -4.371_138_828_673_793e-8,
    -1.715_124_510_005_881_9e-15,
];
const HALF_PI_F64: [f64; 3] = [
    1.570_796_326_734_125_6,
    6.077_100_506_303_966e-11,
    2.022_266_248_795_950_6e-21,
];
/// Arguments that the three parts are enough for.
const NEAR: f64 = 1e5;

/// The binary digits of 2/π, 32 and 64 at a time, after one word of zeros.
const TWO_OVER_PI_32: [u64; 7] = [
    0,
    0xa2f9_836e,
    0x4e44_1529,
    0xfc27_57d1,
    0xf534_ddc0,
    0xdb62_9599,
    0x3c43_9041,
];
const TWO_OVER_PI_64: [u64; 19] = [
    0,
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
];

/// `x = q π/2 + r`; of `q` only the two lowest bits count.
struct Reduced {
    q: V,
    r: Double,
}

impl Scope<'_> {
    /// Sine.
    pub(super) fn sin(&mut self, x: V) -> V {
        self.sin_cos(x).0
    }

    /// Cosine.
    pub(super) fn cos(&mut self, x: V) -> V {
        self.sin_cos(x).1
    }

    /// Sine and cosine. What is not used costs nothing in the end.
    pub(super) fn sin_cos(&mut self, x: V) -> (V, V) {
        let size = self.abs(x);
        let reduced = self.reduce(size);
        let sine = self.sin_or_cos(&reduced, reduced.q);
        let sign = self.quadrant_sign(reduced.q);
        let own = self.sign_bit(x);
        let sign = self.int(BinaryOp::Xor, sign, own);
        let sine = self.flip(sine, sign);
        let q = self.int_c(BinaryOp::Add, reduced.q, 1);
        let cosine = self.sin_or_cos(&reduced, q);
        let sign = self.quadrant_sign(q);
        (sine, self.flip(cosine, sign))
    }

    /// Tangent: the quotient of sine and cosine, corrected by what both had lost in rounding.
    pub(super) fn tan(&mut self, x: V) -> V {
        let size = self.abs(x);
        let reduced = self.reduce(size);
        let s = self.sin_parts(&reduced.r);
        let c = self.cos_parts(&reduced.r);
        let one = self.i(1);
        let low_bit = self.int(BinaryOp::And, reduced.q, one);
        let odd = self.b.cmp(CmpOp::IEq, low_bit, one);
        let above = self.select(odd, c.high, s.high);
        let above_low = self.select(odd, c.low, s.low);
        let below = self.select(odd, s.high, c.high);
        let below_low = self.select(odd, s.low, c.low);
        let one = self.c(1.0);
        let inverse = self.div(one, below);
        let quotient = self.mul(above, inverse);
        let rest = self.fnma(quotient, below, above);
        let rest = self.add(rest, above_low);
        let rest = self.fnma(quotient, below_low, rest);
        let quotient = self.fma(rest, inverse, quotient);
        let width = i64::from(self.ty.scalar.bits()) - 1;
        let sign = self.int_c(BinaryOp::Shl, reduced.q, width);
        let own = self.sign_bit(x);
        let sign = self.int(BinaryOp::Xor, sign, own);
        self.flip(quotient, sign)
    }

    /// The sign bit of a float, in place.
    fn sign_bit(&mut self, x: V) -> V {
        let bits = self.bits(x);
        let width = self.ty.scalar.bits() - 1;
        self.int_c(BinaryOp::And, bits, (1u64 << width) as i64)
    }

    /// The sign bit of quadrants two and three.
    fn quadrant_sign(&mut self, q: V) -> V {
        let second = self.int_c(BinaryOp::And, q, 2);
        let width = i64::from(self.ty.scalar.bits()) - 2;
        self.int_c(BinaryOp::Shl, second, width)
    }

    fn flip(&mut self, x: V, sign: V) -> V {
        let bits = self.bits(x);
        let bits = self.int(BinaryOp::Xor, bits, sign);
        self.as_float(bits)
    }

    /// The sine of `r` for even `q`, its cosine for odd.
    fn sin_or_cos(&mut self, reduced: &Reduced, q: V) -> V {
        let s = self.sin_parts(&reduced.r).high;
        let c = self.cos_parts(&reduced.r).high;
        let low_bit = self.int_c(BinaryOp::And, q, 1);
        let even = self.icmp_c(CmpOp::IEq, low_bit, 0);
        self.select(even, s, c)
    }

    fn sin_parts(&mut self, r: &Double) -> Double {
        let z = self.mul(r.high, r.high);
        let p = self.pick_poly(z, SIN_F32, SIN_F64);
        let cube = self.mul(z, r.high);
        let mut small = self.mul(cube, p);
        if self.is_double() {
            // sin(r + l) = sin r + l cos r
            let one = self.c(1.0);
            let half = self.scale(z, -0.5);
            let slope = self.add(one, half);
            small = self.fma(r.low, slope, small);
        }
        self.fast_two_sum(r.high, small)
    }

    fn cos_parts(&mut self, r: &Double) -> Double {
        let z = self.mul(r.high, r.high);
        let p = self.pick_poly(z, COS_F32, COS_F64);
        let half = self.scale(z, 0.5);
        let one = self.c(1.0);
        let main = self.sub(one, half);
        let lost = self.sub(one, main);
        let lost = self.sub(lost, half);
        let z2 = self.mul(z, z);
        let mut small = self.fma(z2, p, lost);
        if self.is_double() {
            // cos(r + l) = cos r - l sin r
            small = self.fnma(r.high, r.low, small);
        }
        self.fast_two_sum(main, small)
    }

    /// Reduces a magnitude.
    fn reduce(&mut self, size: V) -> Reduced {
        let near = self.reduce_near(size);
        let far = self.above(size, NEAR);
        let any = self.b.reduce_lanes(BinaryOp::Or, far);
        // The closures borrow the builder one after the other.
        let ty = self.ty;
        let merged = self.b.if_else(
            any,
            |b| {
                let mut scope = Scope { b, ty };
                let beyond = scope.reduce_far(size);
                let q = scope.select(far, beyond.q, near.q);
                let high = scope.select(far, beyond.r.high, near.r.high);
                let low = scope.select(far, beyond.r.low, near.r.low);
                vec![q, high, low]
            },
            |_| vec![near.q, near.r.high, near.r.low],
        );
        Reduced {
            q: merged[0],
            r: Double {
                high: merged[1],
                low: merged[2],
            },
        }
    }

    fn reduce_near(&mut self, size: V) -> Reduced {
        let (k, q) = self.round_magic(size, std::f64::consts::FRAC_2_PI);
        if !self.is_double() {
            let minus = self.neg(k);
            let mut r = size;
            for part in HALF_PI_F32 {
                let part = self.c(part);
                r = self.b.fma_exact(minus, part, r);
            }
            let low = self.c(0.0);
            return Reduced {
                q,
                r: Double { high: r, low },
            };
        }
        let [first, second, third] = HALF_PI_F64.map(|part| self.c(part));
        let product = self.mul(k, first);
        let r = self.sub(size, product);
        let product = self.mul(k, second);
        let next = self.sub(r, product);
        let lost = self.sub(r, next);
        let lost = self.sub(lost, product);
        let minus_lost = self.neg(lost);
        let small = self.fma(k, third, minus_lost);
        let high = self.sub(next, small);
        let low = self.sub(next, high);
        let low = self.sub(low, small);
        Reduced {
            q,
            r: Double { high, low },
        }
    }

    fn reduce_far(&mut self, size: V) -> Reduced {
        let width = i64::from(self.ty.scalar.bits());
        let fraction_bits = i64::from(self.fraction_bits());
        let bits = self.bits(size);
        let exponent = self.int_c(BinaryOp::LShr, bits, fraction_bits);
        // size = m 2^(position + 2 - width), m with its highest bit set.
        let position = self.int_c(BinaryOp::Sub, exponent, self.bias() + 1);
        let fraction = self.int_c(BinaryOp::Shl, bits, width - 1 - fraction_bits);
        let m = self.int_c(BinaryOp::Or, fraction, i64::MIN >> (64 - width));
        let [w0, w1, w2] = self.two_over_pi(position);
        // The product's bits below 4: two words.
        let mid = self.int(BinaryOp::Mul, m, w1);
        let carry_in = self.int(BinaryOp::UMulHi, m, w2);
        let limb1 = self.int(BinaryOp::Add, mid, carry_in);
        let carried = self.b.cmp(CmpOp::ULt, limb1, mid);
        let (one, zero) = (self.i(1), self.i(0));
        let carry = self.select(carried, one, zero);
        let top = self.int(BinaryOp::Mul, m, w0);
        let high = self.int(BinaryOp::UMulHi, m, w1);
        let top = self.int(BinaryOp::Add, top, high);
        let limb2 = self.int(BinaryOp::Add, top, carry);
        let quadrant = self.int_c(BinaryOp::LShr, limb2, width - 2);
        let f2 = self.int_c(BinaryOp::Shl, limb2, 2);
        let f2_low = self.int_c(BinaryOp::LShr, limb1, width - 2);
        let f2 = self.int(BinaryOp::Or, f2, f2_low);
        let f1 = self.int_c(BinaryOp::Shl, limb1, 2);
        // The nearest multiple: from one half on, the next, with a negative rest.
        let negative = self.icmp_c(CmpOp::SLt, f2, 0);
        let up = self.select(negative, one, zero);
        let q = self.int(BinaryOp::Add, quadrant, up);
        let minus_f1 = self.int(BinaryOp::Sub, zero, f1);
        let not_f2 = self.b.unary(UnaryOp::Not, f2);
        let f1_zero = self.icmp_c(CmpOp::IEq, f1, 0);
        let borrow = self.select(f1_zero, one, zero);
        let minus_f2 = self.int(BinaryOp::Add, not_f2, borrow);
        let f1 = self.select(negative, minus_f1, f1);
        let f2 = self.select(negative, minus_f2, f2);
        let r = self.fraction_times_half_pi(f2, f1, negative);
        let finite = self.below(size, f64::INFINITY);
        let nan = self.nan();
        let high = self.select(finite, r.high, nan);
        Reduced {
            q,
            r: Double { high, low: r.low },
        }
    }

    /// Three words of 2/π from a bit position on.
    fn two_over_pi(&mut self, position: V) -> [V; 3] {
        let width = i64::from(self.ty.scalar.bits());
        let table: &[u64] = if self.is_double() {
            &TWO_OVER_PI_64
        } else {
            &TWO_OVER_PI_32
        };
        let word = self.int_c(BinaryOp::AShr, position, i64::from(width.trailing_zeros()));
        let shift = self.int_c(BinaryOp::And, position, width - 1);
        let back = self.i(width - 1);
        let back = self.int(BinaryOp::Sub, back, shift);
        let choices = table.len() - 3;
        let words: Vec<V> = (0..4)
            .map(|offset| self.pick_word(word, &table[offset..offset + choices]))
            .collect();
        [0, 1, 2].map(|i| {
            let left = self.int(BinaryOp::Shl, words[i], shift);
            let right = self.int_c(BinaryOp::LShr, words[i + 1], 1);
            let right = self.int(BinaryOp::LShr, right, back);
            self.int(BinaryOp::Or, left, right)
        })
    }

    /// The word of that number, by a tree of choices on the number's bits.
    fn pick_word(&mut self, number: V, words: &[u64]) -> V {
        let mut level: Vec<V> = words.iter().map(|&w| self.i(w as i64)).collect();
        let mut bit = 1;
        while level.len() > 1 {
            let set = self.int_c(BinaryOp::And, number, bit);
            let set = self.icmp_c(CmpOp::INe, set, 0);
            level = level
                .chunks(2)
                .map(|pair| match pair {
                    [even, odd] => self.select(set, *odd, *even),
                    _ => pair[0],
                })
                .collect();
            bit <<= 1;
        }
        level[0]
    }

    /// A fraction of two words times π/2, as a sum of two floats.
    fn fraction_times_half_pi(&mut self, f2: V, f1: V, negative: V) -> Double {
        let width = i64::from(self.ty.scalar.bits());
        let digits = i64::from(self.fraction_bits()) + 1;
        let zeros = self.b.unary(UnaryOp::Clz, f2);
        let most = self.i(width - 1);
        let zeros = self.int(BinaryOp::UMin, zeros, most);
        let back = self.int(BinaryOp::Sub, most, zeros);
        let n2 = self.int(BinaryOp::Shl, f2, zeros);
        let from_low = self.int_c(BinaryOp::LShr, f1, 1);
        let from_low = self.int(BinaryOp::LShr, from_low, back);
        let n2 = self.int(BinaryOp::Or, n2, from_low);
        let n1 = self.int(BinaryOp::Shl, f1, zeros);
        let spare = width - digits;
        let first = self.int_c(BinaryOp::LShr, n2, spare);
        let second = self.int_c(BinaryOp::And, n2, (1 << spare) - 1);
        let second = self.int_c(BinaryOp::Shl, second, digits - spare);
        let rest = self.int_c(BinaryOp::LShr, n1, width - (digits - spare));
        let second = self.int(BinaryOp::Or, second, rest);
        let (first, second) = (self.int_as_float(first), self.int_as_float(second));
        let zero = self.i(0);
        let down = self.int(BinaryOp::Sub, zero, zeros);
        let unit = self.exp2_int(down);
        let minus = self.neg(unit);
        let unit = self.select(negative, minus, unit);
        let first = self.scale(first, 2f64.powi(-(digits as i32)));
        let second = self.scale(second, 2f64.powi(-2 * digits as i32));
        let fraction = Double {
            high: self.mul(first, unit),
            low: self.mul(second, unit),
        };
        let half_pi = self.c2(std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17);
        self.double_mul(fraction, half_pi)
    }
}
