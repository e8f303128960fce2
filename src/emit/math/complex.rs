//! Complex functions on pairs of a real and an imaginary part.
//!
//! The formulas avoid overflow and cancellation on the way: magnitudes by the ratio of the parts,
//! logarithms near one from `|z|^2 - 1` to twice the precision, `tanh` by Kahan's formulas,
//! quotients by Smith's with the infinities of C's Annex G.

use crate::emit::math::scope::Double;
use crate::emit::math::scope::Scope;
use crate::emit::math::scope::V;
use crate::hlo::BinaryOp as Binary;
use crate::hlo::UnaryOp as Unary;
use crate::kernel::CmpOp;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;

/// A complex value.
type C = (V, V);

/// The magnitude.
pub fn abs(b: &mut KernelBuilder, re: ExprId, im: ExprId) -> ExprId {
    match Scope::of(b, re) {
        Some(mut scope) => scope.hypot(re, im),
        None => re,
    }
}

/// A function of one complex number; absent when `op` is not a function of this file.
pub fn unary(b: &mut KernelBuilder, op: Unary, x: C) -> Option<C> {
    let mut scope = Scope::of(b, x.0)?;
    Some(match op {
        Unary::Acos => scope.complex_acos(x),
        Unary::Acosh => scope.complex_acosh(x),
        Unary::Asin => scope.complex_asin(x),
        Unary::Asinh => scope.complex_asinh(x),
        Unary::Atanh => scope.complex_atanh(x),
        Unary::Cbrt => {
            let third = (scope.c(1.0 / 3.0), scope.c(0.0));
            scope.complex_pow(x, third)
        }
        Unary::Cos => scope.complex_cos(x),
        Unary::Cosh => scope.complex_cosh(x),
        Unary::Exp => scope.complex_exp(x),
        Unary::Expm1 => scope.complex_expm1(x),
        Unary::Log => scope.complex_log(x),
        Unary::Log1p => scope.complex_log1p(x),
        Unary::Logistic => scope.complex_logistic(x),
        Unary::Rsqrt => scope.complex_rsqrt(x),
        Unary::Sign => scope.complex_sign(x),
        Unary::Sin => scope.complex_sin(x),
        Unary::Sinh => scope.complex_sinh(x),
        Unary::Sqrt => scope.complex_sqrt(x),
        Unary::Tan => {
            // tan z = -i tanh(i z), and tanh is odd in each part.
            let (p, q) = scope.complex_tanh((x.1, x.0));
            (q, p)
        }
        Unary::Tanh => scope.complex_tanh(x),
        Unary::Abs
        | Unary::Ceil
        | Unary::CountLeadingZeros
        | Unary::Erf
        | Unary::Floor
        | Unary::Imag
        | Unary::IsFinite
        | Unary::Negate
        | Unary::Not
        | Unary::PopulationCount
        | Unary::Real
        | Unary::RoundNearestAfz
        | Unary::RoundNearestEven => return None,
    })
}

/// A function of two complex numbers; absent when `op` is not a function of this file.
pub fn binary(b: &mut KernelBuilder, op: Binary, x: C, y: C) -> Option<C> {
    let mut scope = Scope::of(b, x.0)?;
    match op {
        Binary::Divide => Some(scope.complex_div(x, y)),
        Binary::Power => Some(scope.complex_pow(x, y)),
        // The angle-like function of two complex numbers: -i log((x + i y) / sqrt(x^2 + y^2)).
        Binary::Atan2 => Some(scope.complex_atan2(x, y)),
        Binary::Add
        | Binary::And
        | Binary::Complex
        | Binary::Maximum
        | Binary::Minimum
        | Binary::MulHi
        | Binary::Multiply
        | Binary::Or
        | Binary::Remainder
        | Binary::ShiftLeft
        | Binary::ShiftRightArithmetic
        | Binary::ShiftRightLogical
        | Binary::Subtract
        | Binary::Xor => None,
    }
}

impl Scope<'_> {
    /// The magnitudes of both parts, larger first; NaN in either gives NaN in the first.
    fn sorted(&mut self, x: C) -> (V, V) {
        let (p, q) = (self.abs(x.0), self.abs(x.1));
        let swap = self.b.cmp(CmpOp::FLt, p, q);
        let unordered = self.b.cmp(CmpOp::FUno, p, q);
        let larger = self.select(swap, q, p);
        let smaller = self.select(swap, p, q);
        let nan = self.nan();
        (self.select(unordered, nan, larger), smaller)
    }

    /// `sqrt(re^2 + im^2)`
    pub(super) fn hypot(&mut self, re: V, im: V) -> V {
        let (large, small) = self.sorted((re, im));
        let one = self.c(1.0);
        let zero = self.is(large, 0.0);
        let below = self.select(zero, one, large);
        let ratio = self.div(small, below);
        let root = self.fma(ratio, ratio, one);
        let root = self.sqrt(root);
        let size = self.mul(large, root);
        let (inf_re, inf_im) = (self.is_inf(re), self.is_inf(im));
        let endless = self.either(inf_re, inf_im);
        let inf = self.inf();
        self.select(endless, inf, size)
    }

    /// Both parts times a real number.
    fn complex_scale(&mut self, x: C, by: V) -> C {
        (self.mul(x.0, by), self.mul(x.1, by))
    }

    fn complex_mul(&mut self, x: C, y: C) -> C {
        let (p, q) = (self.mul(x.1, y.1), self.mul(x.1, y.0));
        let re = self.mul(x.0, y.0);
        let im = self.mul(x.0, y.1);
        (self.sub(re, p), self.add(im, q))
    }

    fn complex_exp(&mut self, x: C) -> C {
        let (first, second) = self.exp_factors(x.0);
        let (sin, cos) = self.sin_cos(x.1);
        let re = self.mul(first, cos);
        let re = self.mul(re, second);
        let im = self.mul(first, sin);
        let im = self.mul(im, second);
        // Real numbers stay real, and nothing is left at minus infinity.
        let real = self.is(x.1, 0.0);
        let size = self.mul(first, second);
        let re = self.select(real, size, re);
        let im = self.select(real, x.1, im);
        let gone = self.is(x.0, f64::NEG_INFINITY);
        let zero = self.c(0.0);
        (self.select(gone, zero, re), self.select(gone, zero, im))
    }

    fn complex_expm1(&mut self, x: C) -> C {
        // (e^a - 1) cos b - 2 sin(b/2)^2 + i e^a sin b
        let less = self.expm1(x.0);
        let (sin, cos) = self.sin_cos(x.1);
        let half = self.scale(x.1, 0.5);
        let half_sin = self.sin(half);
        let versed = self.mul(half_sin, half_sin);
        let versed = self.add(versed, versed);
        let minus = self.neg(versed);
        let re = self.fma(less, cos, minus);
        let e = self.exp(x.0);
        let im = self.mul(e, sin);
        let real = self.is(x.1, 0.0);
        (self.select(real, less, re), self.select(real, x.1, im))
    }

    /// `a (2 + a) + b^2` to twice the precision, rounded once.
    fn beyond_one(&mut self, a: V, b: V) -> V {
        let square_a = self.two_product(a, a);
        let square_b = self.two_product(b, b);
        let twice = Double {
            high: self.add(a, a),
            low: self.c(0.0),
        };
        let sum = self.double_add(twice, square_a);
        let sum = self.double_add(sum, square_b);
        self.add(sum.high, sum.low)
    }

    /// `log |x|`; `less` is the real part less one and is used when `x` is near one.
    fn log_abs(&mut self, x: C, less: V) -> V {
        let (large, small) = self.sorted(x);
        // Near the unit circle: the larger part less one is exact.
        let a = self.shift(large, -1.0);
        let circle = self.beyond_one(a, small);
        let above = self.above(large, 0.5);
        let below = self.below(large, 2.0);
        let on_circle = self.both(above, below);
        // Near one itself.
        let exact = self.beyond_one(less, x.1);
        let (size_a, size_b) = (self.abs(less), self.abs(x.1));
        let a_small = self.below(size_a, 0.5);
        let b_small = self.below(size_b, 0.5);
        let near = self.both(a_small, b_small);
        // Elsewhere: log large + log1p((small / large)^2) / 2.
        let one = self.c(1.0);
        let zero = self.is(large, 0.0);
        let divisor = self.select(zero, one, large);
        let ratio = self.div(small, divisor);
        let square = self.mul(ratio, ratio);
        let argument = self.select(on_circle, circle, square);
        let argument = self.select(near, exact, argument);
        let close = self.either(on_circle, near);
        let main = self.log(large);
        let nothing = self.c(0.0);
        let main = self.select(close, nothing, main);
        let log = self.log1p(argument);
        let half = self.c(0.5);
        let log = self.fma(log, half, main);
        let (inf_re, inf_im) = (self.is_inf(x.0), self.is_inf(x.1));
        let endless = self.either(inf_re, inf_im);
        let inf = self.inf();
        self.select(endless, inf, log)
    }

    fn complex_log(&mut self, x: C) -> C {
        let less = self.shift(x.0, -1.0);
        (self.log_abs(x, less), self.atan2(x.1, x.0))
    }

    fn complex_log1p(&mut self, x: C) -> C {
        let more = self.shift(x.0, 1.0);
        (self.log_abs((more, x.1), x.0), self.atan2(x.1, more))
    }

    pub(super) fn complex_sqrt(&mut self, x: C) -> C {
        let (large, _) = self.sorted(x);
        let (huge, tiny, up, down) = if self.is_double() {
            (1e300, 1e-290, 2f64.powi(120), 2f64.powi(-60))
        } else {
            (1e37, 1e-30, 2f64.powi(48), 2f64.powi(-24))
        };
        let is_huge = self.above(large, huge);
        let is_tiny = self.below(large, tiny);
        let (one, sixteenth, four) = (self.c(1.0), self.c(0.0625), self.c(4.0));
        let (up, down) = (self.c(up), self.c(down));
        let factor = self.select(is_tiny, up, one);
        let factor = self.select(is_huge, sixteenth, factor);
        let back = self.select(is_tiny, down, one);
        let back = self.select(is_huge, four, back);
        let (re, im) = self.complex_scale(x, factor);
        let size = self.hypot(re, im);
        let size_re = self.abs(re);
        let sum = self.add(size, size_re);
        let half = self.scale(sum, 0.5);
        let main = self.sqrt(half);
        let twice = self.add(main, main);
        let size_im = self.abs(im);
        let other = self.div(size_im, twice);
        let is_zero = self.is(main, 0.0);
        let zero = self.c(0.0);
        let other = self.select(is_zero, zero, other);
        let left = self.below(re, 0.0);
        let root_re = self.select(left, other, main);
        let root_im = self.select(left, main, other);
        let (root_re, root_im) = self.complex_scale((root_re, root_im), back);
        let root_im = self.copysign(root_im, x.1);
        let endless = self.is_inf(x.1);
        let inf = self.inf();
        (
            self.select(endless, inf, root_re),
            self.select(endless, x.1, root_im),
        )
    }

    fn complex_rsqrt(&mut self, x: C) -> C {
        // conj(s) / |s|^2 with s = sqrt z
        let (re, im) = self.complex_sqrt(x);
        let size = self.hypot(re, im);
        let re = self.div(re, size);
        let re = self.div(re, size);
        let im = self.div(im, size);
        let im = self.div(im, size);
        let im = self.neg(im);
        let (inf, zero) = (self.inf(), self.c(0.0));
        let none = self.is(size, 0.0);
        let endless = self.is(size, f64::INFINITY);
        let re = self.select(none, inf, re);
        let re = self.select(endless, zero, re);
        let im = self.select(endless, zero, im);
        let nan = self.nan();
        (re, self.select(none, nan, im))
    }

    fn complex_sign(&mut self, x: C) -> C {
        let size = self.hypot(x.0, x.1);
        let (re, im) = (self.div(x.0, size), self.div(x.1, size));
        let none = self.is(size, 0.0);
        (self.select(none, x.0, re), self.select(none, x.1, im))
    }

    /// A product that is zero where a factor is, whatever the other; a NaN counts as positive then.
    fn mul_zero(&mut self, x: V, y: V) -> V {
        let product = self.mul(x, y);
        let (one, minus_one) = (self.c(1.0), self.c(-1.0));
        let mut limited = |v: V| {
            let is_nan = self.b.cmp(CmpOp::FUno, v, v);
            let v = self.at_most(v, one);
            let v = self.at_least(v, minus_one);
            self.select(is_nan, one, v)
        };
        let (p, q) = (limited(x), limited(y));
        let limited = self.mul(p, q);
        let (x_zero, y_zero) = (self.is(x, 0.0), self.is(y, 0.0));
        let zero = self.either(x_zero, y_zero);
        self.select(zero, limited, product)
    }

    fn complex_sin(&mut self, x: C) -> C {
        let (sin, cos) = self.sin_cos(x.0);
        let (cosh, sinh) = (self.cosh(x.1), self.sinh(x.1));
        (self.mul_zero(sin, cosh), self.mul_zero(sinh, cos))
    }

    fn complex_cos(&mut self, x: C) -> C {
        let (sin, cos) = self.sin_cos(x.0);
        let (cosh, sinh) = (self.cosh(x.1), self.sinh(x.1));
        let im = self.mul_zero(sin, sinh);
        (self.mul_zero(cos, cosh), self.neg(im))
    }

    fn complex_sinh(&mut self, x: C) -> C {
        let (sin, cos) = self.sin_cos(x.1);
        let (cosh, sinh) = (self.cosh(x.0), self.sinh(x.0));
        (self.mul_zero(sinh, cos), self.mul_zero(sin, cosh))
    }

    fn complex_cosh(&mut self, x: C) -> C {
        let (sin, cos) = self.sin_cos(x.1);
        let (cosh, sinh) = (self.cosh(x.0), self.sinh(x.0));
        (self.mul_zero(cos, cosh), self.mul_zero(sin, sinh))
    }

    fn complex_tanh(&mut self, x: C) -> C {
        // With t = tan b, u = 1 + t^2, s = sinh a: (u s sqrt(1 + s^2) + i t) / (1 + u s^2).
        let size = self.abs(x.0);
        let limit = if self.is_double() { 20.0 } else { 10.0 };
        let far = self.above(size, limit);
        let most = self.c(limit);
        let limited = self.at_most(x.0, most);
        let least = self.c(-limit);
        let limited = self.at_least(limited, least);
        let t = self.tan(x.1);
        let s = self.sinh(limited);
        let one = self.c(1.0);
        let u = self.fma(t, t, one);
        let s2 = self.mul(s, s);
        let root = self.add(s2, one);
        let root = self.sqrt(root);
        let us = self.mul(u, s);
        let below = self.fma(us, s, one);
        let above = self.mul(us, root);
        let re = self.div(above, below);
        let im = self.div(t, below);
        // Far out the real part is one and the imaginary part 4 sin b cos b e^-2|a|.
        let (sin, cos) = self.sin_cos(x.1);
        let twice = self.add(size, size);
        let twice = self.neg(twice);
        let e = self.exp(twice);
        let product = self.mul(sin, cos);
        let product = self.scale(product, 4.0);
        let im_far = self.mul(product, e);
        // At infinity it is zero even where the sine is not a number.
        let endless = self.is_inf(x.0);
        let no_angle = self.b.cmp(CmpOp::FUno, sin, sin);
        let gone = self.both(endless, no_angle);
        let zero = self.c(0.0);
        let signed = self.copysign(zero, x.1);
        let has_sign = self.is_inf(x.1);
        let rest = self.select(has_sign, signed, zero);
        let im_far = self.select(gone, rest, im_far);
        let re_far = self.copysign(one, x.0);
        let re = self.select(far, re_far, re);
        let im = self.select(far, im_far, im);
        // On the axes the other part is zero.
        let (real, imaginary) = (self.is(x.1, 0.0), self.is(x.0, 0.0));
        (self.select(imaginary, x.0, re), self.select(real, x.1, im))
    }

    fn complex_div(&mut self, x: C, y: C) -> C {
        let (size_c, size_d) = (self.abs(y.0), self.abs(y.1));
        let swap = self.b.cmp(CmpOp::FLt, size_c, size_d);
        // Smith: divide by the larger part first. Swapping is a turn by a quarter of both.
        let main = self.select(swap, y.1, y.0);
        let side = self.select(swap, y.0, y.1);
        let ratio = self.div(side, main);
        let below = self.fma(side, ratio, main);
        let minus_im = self.neg(x.0);
        let p = self.select(swap, x.1, x.0);
        let q = self.select(swap, minus_im, x.1);
        // Not swapped: (a + b r, b - a r). Swapped: (b + a r, b r - a).
        let other = self.select(swap, x.0, x.1);
        let re = self.fma(other, ratio, p);
        let minus_re = self.neg(x.0);
        let other = self.select(swap, x.1, minus_re);
        let im = self.fma(other, ratio, q);
        let (re, im) = (self.div(re, below), self.div(im, below));
        self.div_ends(x, y, (re, im))
    }

    /// Quotients by zero, of infinities and by infinities.
    fn div_ends(&mut self, x: C, y: C, quotient: C) -> C {
        let (inf, zero, one) = (self.inf(), self.c(0.0), self.c(1.0));
        let (c_zero, d_zero) = (self.is(y.0, 0.0), self.is(y.1, 0.0));
        let by_zero = self.both(c_zero, d_zero);
        let signed = self.copysign(inf, y.0);
        let at_zero = (self.mul(signed, x.0), self.mul(signed, x.1));
        let infinite = |scope: &mut Self, z: C| {
            let (p, q) = (scope.is_inf(z.0), scope.is_inf(z.1));
            scope.either(p, q)
        };
        let (x_inf, y_inf) = (infinite(self, x), infinite(self, y));
        let (x_finite, y_finite) = (self.is_finite(x), self.is_finite(y));
        // Infinities as signed ones, the rest as signed zeros.
        let unit = |scope: &mut Self, v: V| {
            let is_inf = scope.is_inf(v);
            let size = scope.select(is_inf, one, zero);
            scope.copysign(size, v)
        };
        let direction = |scope: &mut Self, p: C, q: C| {
            // p conj(q)
            let minus = scope.neg(q.1);
            scope.complex_mul(p, (q.0, minus))
        };
        let x_unit = (unit(self, x.0), unit(self, x.1));
        let grown = direction(self, x_unit, y);
        let grown = self.complex_scale(grown, inf);
        let y_unit = (unit(self, y.0), unit(self, y.1));
        let gone = direction(self, x, y_unit);
        let gone = self.complex_scale(gone, zero);
        let grows = self.both(x_inf, y_finite);
        let vanishes = self.both(x_finite, y_inf);
        let mut result = quotient;
        for (when, value) in [(vanishes, gone), (grows, grown), (by_zero, at_zero)] {
            result = (
                self.select(when, value.0, result.0),
                self.select(when, value.1, result.1),
            );
        }
        result
    }

    fn complex_logistic(&mut self, x: C) -> C {
        let minus = (self.neg(x.0), self.neg(x.1));
        let e = self.complex_exp(minus);
        let below = (self.shift(e.0, 1.0), e.1);
        let (one, zero) = (self.c(1.0), self.c(0.0));
        self.complex_div((one, zero), below)
    }

    fn complex_pow(&mut self, x: C, y: C) -> C {
        let less = self.shift(x.0, -1.0);
        let log = self.log_abs(x, less);
        let angle = self.atan2(x.1, x.0);
        let size = self.hypot(x.0, x.1);
        // |x|^c e^(-d angle), and the angle c angle + d log |x|.
        let power = self.pow(size, y.0);
        let turned = self.mul(y.1, angle);
        let minus = self.neg(turned);
        let e = self.exp(minus);
        let size = self.mul(power, e);
        let d_log = self.mul_zero(y.1, log);
        let turn = self.fma(y.0, angle, d_log);
        let (sin, cos) = self.sin_cos(turn);
        let (re, im) = (self.mul(size, cos), self.mul(size, sin));
        // A real power of a real positive number is real.
        let (x_real, y_real) = (self.is(x.1, 0.0), self.is(y.1, 0.0));
        let positive = self.above(x.0, 0.0);
        let real = self.both(x_real, y_real);
        let real = self.both(real, positive);
        let zero = self.c(0.0);
        let re = self.select(real, power, re);
        let im = self.select(real, zero, im);
        self.complex_pow_ends(x, y, (re, im))
    }

    /// Powers of zero, one and infinity, to the power zero, and of what is not finite.
    fn complex_pow_ends(&mut self, x: C, y: C, power: C) -> C {
        let (x_real, y_real) = (self.is(x.1, 0.0), self.is(y.1, 0.0));
        let (one, zero, inf, nan) = (self.c(1.0), self.c(0.0), self.inf(), self.nan());
        let (x_finite, y_finite) = (self.is_finite(x), self.is_finite(y));
        let finite = self.both(x_finite, y_finite);
        let mut result = (
            self.select(finite, power.0, nan),
            self.select(finite, power.1, nan),
        );
        let (rises, falls) = (self.above(y.0, 0.0), self.below(y.0, 0.0));
        let (rises, falls) = (self.both(rises, y_real), self.both(falls, y_real));
        let origin = self.is(x.0, 0.0);
        let origin = self.both(origin, x_real);
        let endless = self.is(x.0, f64::INFINITY);
        let endless = self.both(endless, x_real);
        let grows = self.both(endless, rises);
        let vanishes = self.both(endless, falls);
        let stays = self.both(origin, rises);
        let vanishes = self.either(vanishes, stays);
        let y_zero = self.is(y.0, 0.0);
        let y_zero = self.both(y_zero, y_real);
        let x_one = self.is(x.0, 1.0);
        let x_one = self.both(x_one, x_real);
        let is_one = self.either(y_zero, x_one);
        for (when, re, im) in [
            (origin, nan, nan),
            (vanishes, zero, zero),
            (grows, inf, zero),
            (is_one, one, zero),
        ] {
            result = (
                self.select(when, re, result.0),
                self.select(when, im, result.1),
            );
        }
        result
    }

    /// Whether both parts are finite.
    fn is_finite(&mut self, z: C) -> V {
        let (p, q) = (self.abs(z.0), self.abs(z.1));
        let (p, q) = (self.below(p, f64::INFINITY), self.below(q, f64::INFINITY));
        self.both(p, q)
    }

    /// `-i log((x + i y) / sqrt(x^2 + y^2))` for `atan2(y, x)`.
    fn complex_atan2(&mut self, y: C, x: C) -> C {
        let (xx, yy) = (self.complex_mul(x, x), self.complex_mul(y, y));
        let sum = (self.add(xx.0, yy.0), self.add(xx.1, yy.1));
        let root = self.complex_sqrt(sum);
        let above = (self.sub(x.0, y.1), self.add(x.1, y.0));
        let quotient = self.complex_div(above, root);
        let log = self.complex_log(quotient);
        (log.1, self.neg(log.0))
    }
}
