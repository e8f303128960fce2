//! Hyperbolic functions and their inverses, from `exp.rs`.
//!
//! Near zero `tanh` (`f32`) and `sinh` are odd polynomials (minimax fits of our own); elsewhere
//! everything follows from `exp`, `expm1` and `log1p` by formulas that do not cancel.

use crate::emit::math::scope::Scope;
use crate::emit::math::scope::V;

/// `(tanh x / x - 1) / x^2` in `x^2` for `|x| < 0.625`.
const TANH_F32: &[f64] = &[
    -0.333_332_806_825_637_8,
    0.133_314_132_690_429_7,
    -0.053_737_580_776_214_6,
    0.020_632_779_225_707_054,
    -0.005_698_500_201_106_071_5,
];
/// `(sinh x / x - 1) / x^2` in `x^2` for `|x| < 1`.
const SINH_F32: &[f64] = &[
    0.166_666_671_633_720_4,
    0.008_333_310_484_886_17,
    0.000_198_428_911_971_859_63,
    2.782_267_301_881_802_3e-6,
];
const SINH_F64: &[f64] = &[
    0.166_666_666_666_666_69,
    0.008_333_333_333_332_919,
    0.000_198_412_698_415_857_56,
    2.755_731_910_969_859_6e-6,
    2.505_213_048_317_536_7e-8,
    1.605_670_133_225_675_3e-10,
    7.775_293_892_938_811e-13,
];

impl Scope<'_> {
    /// Hyperbolic tangent.
    pub(super) fn tanh(&mut self, x: V) -> V {
        let size = self.abs(x);
        let two = self.c(2.0);
        let one = self.c(1.0);
        if self.is_double() {
            // With t = e^2|x| - 1: t / (t + 2), or 1 - 2 / (t + 2) where that rounds less.
            let limit = self.c(22.0);
            let size = self.at_most(size, limit);
            let doubled = self.add(size, size);
            let t = self.expm1(doubled);
            let below = self.add(t, two);
            let near = self.below(size, 1.0);
            let above = self.select(near, t, two);
            let quotient = self.div(above, below);
            let far = self.sub(one, quotient);
            let result = self.select(near, quotient, far);
            return self.copysign(result, x);
        }
        let z = self.mul(x, x);
        let p = self.poly(z, TANH_F32);
        let p = self.mul(z, p);
        let near = self.fma(p, x, x);
        let doubled = self.add(size, size);
        let e = self.exp(doubled);
        let below = self.add(e, one);
        let quotient = self.div(two, below);
        let far = self.sub(one, quotient);
        let small = self.below(size, 0.625);
        let near = self.abs(near);
        let result = self.select(small, near, far);
        self.copysign(result, x)
    }

    /// Hyperbolic sine.
    pub(super) fn sinh(&mut self, x: V) -> V {
        let size = self.abs(x);
        let z = self.mul(x, x);
        let p = self.pick_poly(z, SINH_F32, SINH_F64);
        let p = self.mul(z, p);
        let near = self.fma(p, x, x);
        let e = self.exp_times(size, -1);
        let quarter = self.c(0.25);
        let inverse = self.div(quarter, e);
        let far = self.sub(e, inverse);
        let far = self.copysign(far, x);
        let small = self.below(size, 1.0);
        self.select(small, near, far)
    }

    /// Hyperbolic cosine.
    pub(super) fn cosh(&mut self, x: V) -> V {
        let size = self.abs(x);
        let e = self.exp_times(size, -1);
        let quarter = self.c(0.25);
        let inverse = self.div(quarter, e);
        self.add(e, inverse)
    }

    /// Where squares would overflow or ones would be lost.
    fn beyond(&mut self, size: V) -> V {
        let limit = if self.is_double() { 1e15 } else { 1e7 };
        self.above(size, limit)
    }

    /// `log1p(near)`, or `log(far) + ln 2` where the far form applies.
    fn log1p_or_log(&mut self, is_far: V, near: V, far: V) -> V {
        let argument = self.select(is_far, far, near);
        let log = self.log1p(argument);
        let (zero, ln2) = (self.c(0.0), self.c(std::f64::consts::LN_2));
        let more = self.select(is_far, ln2, zero);
        self.add(log, more)
    }

    /// Inverse hyperbolic sine.
    pub(super) fn asinh(&mut self, x: V) -> V {
        let size = self.abs(x);
        let far = self.beyond(size);
        let one = self.c(1.0);
        // |x| + x^2 / (1 + sqrt(1 + x^2))
        let square = self.mul(size, size);
        let root = self.add(square, one);
        let root = self.sqrt(root);
        let below = self.add(root, one);
        let quotient = self.div(square, below);
        let near = self.add(size, quotient);
        let result = self.log1p_or_log(far, near, size);
        self.copysign(result, x)
    }

    /// Inverse hyperbolic cosine.
    pub(super) fn acosh(&mut self, x: V) -> V {
        let far = self.beyond(x);
        let t = self.shift(x, -1.0);
        let twice = self.add(t, t);
        let inside = self.fma(t, t, twice);
        let root = self.sqrt(inside);
        let near = self.add(t, root);
        let result = self.log1p_or_log(far, near, x);
        let nan = self.nan();
        let outside = self.below(x, 1.0);
        self.select(outside, nan, result)
    }

    /// Inverse hyperbolic tangent.
    pub(super) fn atanh(&mut self, x: V) -> V {
        let size = self.abs(x);
        let one = self.c(1.0);
        let rest = self.sub(one, size);
        let twice = self.add(size, size);
        let argument = self.div(twice, rest);
        let log = self.log1p(argument);
        let half = self.scale(log, 0.5);
        self.copysign(half, x)
    }
}
