//! Inverse sines and tangents of complex numbers.
//!
//! W. Kahan, "Branch cuts for complex elementary functions" (1987): real and imaginary parts each from
//! the square roots of one plus and minus the argument, so that no part cancels in the other.

use crate::emit::math::scope::Scope;
use crate::emit::math::scope::V;

type C = (V, V);

impl Scope<'_> {
    /// Whether a part is infinite.
    fn is_endless(&mut self, z: C) -> V {
        let (re, im) = (self.is_inf(z.0), self.is_inf(z.1));
        self.either(re, im)
    }

    /// `sqrt(1 + z)` and `sqrt(1 - z)`.
    fn roots(&mut self, z: C) -> (C, C) {
        let one = self.c(1.0);
        let (more, less) = (self.add(one, z.0), self.sub(one, z.0));
        let minus = self.neg(z.1);
        (
            self.complex_sqrt((more, z.1)),
            self.complex_sqrt((less, minus)),
        )
    }

    /// `a b - c d`
    fn difference(&mut self, a: V, b: V, c: V, d: V) -> V {
        let (first, second) = (self.mul(a, b), self.mul(c, d));
        self.sub(first, second)
    }

    pub(super) fn complex_acos(&mut self, z: C) -> C {
        let (more, less) = self.roots(z);
        let half = self.atan2(less.0, more.0);
        let re = self.add(half, half);
        let im = self.difference(more.0, less.1, more.1, less.0);
        let im = self.asinh(im);
        let endless = self.is_endless(z);
        let size = self.abs(z.1);
        let angle = self.atan2(size, z.0);
        let inf = self.inf();
        let far = self.copysign(inf, z.1);
        let far = self.neg(far);
        (
            self.select(endless, angle, re),
            self.select(endless, far, im),
        )
    }

    pub(super) fn complex_asin(&mut self, z: C) -> C {
        let (more, less) = self.roots(z);
        let below = self.difference(more.0, less.0, more.1, less.1);
        let re = self.atan2(z.0, below);
        let im = self.difference(less.0, more.1, less.1, more.0);
        let im = self.asinh(im);
        let endless = self.is_endless(z);
        let size = self.abs(z.1);
        let angle = self.atan2(z.0, size);
        let inf = self.inf();
        let far = self.copysign(inf, z.1);
        (
            self.select(endless, angle, re),
            self.select(endless, far, im),
        )
    }

    /// `asinh z = i asin(-i z)`
    pub(super) fn complex_asinh(&mut self, z: C) -> C {
        let minus = self.neg(z.0);
        let (p, q) = self.complex_asin((z.1, minus));
        (self.neg(q), p)
    }

    pub(super) fn complex_acosh(&mut self, z: C) -> C {
        let (minus_one, one) = (self.shift(z.0, -1.0), self.shift(z.0, 1.0));
        let less = self.complex_sqrt((minus_one, z.1));
        let more = self.complex_sqrt((one, z.1));
        let (a, b) = (self.mul(less.0, more.0), self.mul(less.1, more.1));
        let re = self.add(a, b);
        let re = self.asinh(re);
        let half = self.atan2(less.1, more.0);
        let im = self.add(half, half);
        let endless = self.is_endless(z);
        let angle = self.atan2(z.1, z.0);
        let inf = self.inf();
        (
            self.select(endless, inf, re),
            self.select(endless, angle, im),
        )
    }

    /// Real part `log1p(4 x / ((1 - x)^2 + y^2)) / 4`, imaginary part half the angle of
    /// `(1 - x)(1 + x) - y^2 + 2 y i`.
    pub(super) fn complex_atanh(&mut self, z: C) -> C {
        let limit = if self.is_double() { 1e150 } else { 1e18 };
        let (x, y) = (self.abs(z.0), self.abs(z.1));
        let one = self.c(1.0);
        let (less, more) = (self.sub(one, x), self.add(one, x));
        let (squares, y_square) = (self.mul(less, less), self.mul(y, y));
        let below = self.add(squares, y_square);
        let four = self.scale(x, 4.0);
        let ratio = self.div(four, below);
        let log = self.log1p(ratio);
        let quarter = self.scale(log, 0.25);
        // Far away it is the reciprocal's real part, x / |z|^2.
        let size = self.hypot(x, y);
        let part = self.div(x, size);
        let part = self.div(part, size);
        let far = self.above(size, limit);
        let re = self.select(far, part, quarter);
        let endless = self.is_endless(z);
        let zero = self.c(0.0);
        let re = self.select(endless, zero, re);
        let product = self.mul(less, more);
        let across = self.sub(product, y_square);
        let minus = self.c(-1.0);
        let across = self.select(far, minus, across);
        let up = self.add(y, y);
        let up = self.select(far, zero, up);
        let angle = self.atan2(up, across);
        let half = self.scale(angle, 0.5);
        (self.copysign(re, z.0), self.copysign(half, z.1))
    }
}
