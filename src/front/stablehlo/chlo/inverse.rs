//! Inverse trigonometric and hyperbolic functions, real and complex, and squares.
//!
//! The real ones avoid cancellation near the ends of their domains and overflow beyond them. The
//! complex ones share one kernel after Hull, Fairgrieve and Tang, "Implementing the complex arcsine
//! and arccosine functions using exception handling".

use std::f64::consts::LN_2;
use std::f64::consts::PI;
use std::f64::consts::SQRT_2;

use crate::front::stablehlo::chlo::formula::Term;
use crate::hlo::UnaryOp;

/// `acos(x) = atan2(sqrt((1 - x)(1 + x)), x)`
pub fn acos(x: Term<'_>) -> Term<'_> {
    if x.ty().is_complex() {
        let kernel = arc_kernel(x);
        let imag = kernel.imag();
        let below = x.imag().lt(imag.like(0.0));
        return kernel
            .real()
            .atan2(x.real())
            .complex(below.select(imag, -imag));
    }
    let one = x.like(1.0);
    ((one - x) * (one + x)).sqrt().atan2(x)
}

/// `asin(x) = 2 atan2(x, 1 + sqrt((1 - x)(1 + x)))`
pub fn asin(x: Term<'_>) -> Term<'_> {
    if x.ty().is_complex() {
        let kernel = arc_kernel(x);
        let imag = kernel.imag();
        let below = x.imag().lt(imag.like(0.0));
        return x
            .real()
            .atan2(kernel.real())
            .complex(below.select(-imag, imag));
    }
    let one = x.like(1.0);
    let half = x.atan2(one + ((one - x) * (one + x)).sqrt());
    half + half
}

/// `acosh(x) = log1p(sqrt(x - 1) (sqrt(x + 1) + sqrt(x - 1)))`, and `log 2 + log x` where that
/// overflows.
pub fn acosh(x: Term<'_>) -> Term<'_> {
    if x.ty().is_complex() {
        let kernel = arc_kernel(x);
        let angle = kernel.real().atan2(x.real());
        let below = x.imag().lt(angle.like(0.0));
        return kernel.imag().complex(below.select(-angle, angle));
    }
    let one = x.like(1.0);
    let large = x.ge(x.largest() / x.like(2.0));
    let root = (x - one).sqrt();
    let usual = (root * ((x + one).sqrt() + root)).log1p();
    large.select(x.like(LN_2) + x.log(), usual)
}

/// `asinh(x) = log1p(x + x² / (1 + sqrt(1 + x²)))` for positive `x`, `log 2 + log x` where the square
/// overflows, odd.
pub fn asinh(x: Term<'_>) -> Term<'_> {
    if x.ty().is_complex() {
        let kernel = arc_kernel((-x.imag()).complex(x.real()));
        let imag = kernel.imag();
        let left = x.real().lt(imag.like(0.0));
        return left
            .select(-imag, imag)
            .complex(x.imag().atan2(kernel.real()));
    }
    let size = x.abs();
    let one = x.like(1.0);
    let large = size.ge(x.largest().sqrt());
    let square = size * size;
    let usual = (size + square / (one + (one + square).sqrt())).log1p();
    x.unary(UnaryOp::Sign) * large.select(x.like(LN_2) + size.log(), usual)
}

/// `atan(x) = atan2(x, 1)`, and `-i atanh(i z)` for complex numbers.
pub fn atan(x: Term<'_>) -> Term<'_> {
    if x.ty().is_complex() {
        let turned = atanh((-x.imag()).complex(x.real()));
        return turned.imag().complex(-turned.real());
    }
    x.atan2(x.like(1.0))
}

/// `atanh(x) = (log1p(x) - log1p(-x)) / 2`, NaN outside of [-1, 1].
pub fn atanh(x: Term<'_>) -> Term<'_> {
    if x.ty().is_complex() {
        return complex_atanh(x);
    }
    let value = (x.log1p() - (-x).log1p()) * x.like(0.5);
    x.abs().gt(x.like(1.0)).select(x.like(f64::NAN), value)
}

/// `x²`; the real part of a complex square is `(x - y)(x + y)`, and zero where `|x| = |y|`.
pub fn square(x: Term<'_>) -> Term<'_> {
    if !x.ty().is_complex() {
        return x * x;
    }
    let (re, im) = (x.real(), x.imag());
    let even = re.unary(UnaryOp::IsFinite).and(re.abs().eq(im.abs()));
    let real = even.select(re.like(0.0), (re - im) * (re + im));
    real.complex(re.like(2.0) * (re * im))
}

/// `hypot(a, b)` of two numbers that are not negative, without overflow.
fn hypot<'f>(a: Term<'f>, b: Term<'f>) -> Term<'f> {
    let (large, small) = (a.max(b), a.min(b));
    let ratio = small / large;
    let ratio2 = ratio * ratio;
    let one = a.like(1.0);
    let root = (one + ratio2).sqrt();
    let tiny = root.eq(one).and(ratio2.gt(a.like(0.0)));
    let near = large + large * ratio2 / a.like(2.0);
    let apart = tiny.select(near, large * root);
    large.eq(small).select(a.like(SQRT_2) * large, apart)
}

/// `sqrt(a² - x²) + i log(a + sqrt(a² - 1))` of `x + iy` in the first quadrant, where
/// `a = (hypot(x + 1, y) + hypot(x - 1, y)) / 2`.
pub fn arc_kernel(z: Term<'_>) -> Term<'_> {
    let (x, y) = (z.real().abs(), z.imag().abs());
    let one = x.like(1.0);
    let half = x.like(0.5);
    let zero = x.like(0.0);
    let safe_max = x.largest().sqrt() / x.like(8.0);
    let (right, left) = (x + one, x - one);
    let r = hypot(right.abs(), y);
    let s = hypot(left.abs(), y);
    let a = half * (r + s);
    let half_apx = half * (a + x);
    let yy = y * y;
    let rpx = r + right;
    let smx = s - left;
    let spx = s + left;
    let inside = (half_apx * (yy / rpx + smx)).sqrt();
    let outside = y * (half_apx / rpx + half_apx / spx).sqrt();
    let real = x
        .max(y)
        .ge(safe_max)
        .select(y, x.le(one).select(inside, outside));

    let nearly = x.lt(safe_max * x.like(1e12));
    let limit = nearly.select(safe_max * x.like(1e-6), safe_max * x.like(100.0));
    let high = y.ge(limit);
    let largest = high.select(y, x);
    let huge = largest.ge(high.select(limit, safe_max));
    let infinite = y.eq(x.like(f64::INFINITY));
    let finite_high = high.and(infinite.unary(UnaryOp::Not));
    let ratio = finite_high.select(x / y, zero);
    let far = (x.like(LN_2) + largest.log()) + half * (ratio * ratio).log1p();

    let safe_min = x.smallest_normal().sqrt() * x.like(4.0);
    let flat = y.lt(safe_min).and(x.lt(one));
    let half_yy = half * yy;
    let part = half_yy / rpx;
    let small_a = a.le(x.like(1.5)).select(part + half_yy / smx, a - one);
    let am1 = flat.select(
        -(right * left / (a + one)),
        x.ge(one).select(part + half * spx, small_a),
    );
    let root = (am1 * (a + one)).sqrt();
    let near = flat.select(y / root, (am1 + root).log1p());
    real.complex(huge.select(far, near))
}

/// 1 from zero on, else -1.
fn sign(x: Term<'_>) -> Term<'_> {
    x.ge(x.like(0.0)).select(x.like(1.0), x.like(-1.0))
}

/// `log((x + 1)² + y²) / ((x - 1)² + y²)) / 4` and half the angle of `1 - |z|² + 2iy`, with care for
/// numbers whose squares are lost or overflow.
fn complex_atanh(z: Term<'_>) -> Term<'_> {
    let (x, y) = (z.real(), z.imag());
    let (ax, ay) = (x.abs(), y.abs());
    let (zero, one) = (x.like(0.0), x.like(1.0));
    let inverse_epsilon = match x.ty() {
        crate::shape::PrimitiveType::F64 => 9_007_199_254_740_994.0,
        _ => 16_777_218.0,
    };
    let inverse_epsilon = x.like(inverse_epsilon);
    let safe_max = inverse_epsilon * inverse_epsilon;
    let safe = ax.lt(safe_max).and(ay.lt(safe_max));
    let away = one - ax;
    let y2 = y * y;
    let usual = ax / (away * away + y2);
    let (plus, minus) = (x.like(f64::INFINITY), x.like(f64::NEG_INFINITY));
    let infinite = (x.eq(plus).or(x.eq(minus))).or(y.eq(plus).or(y.eq(minus)));
    let both_large = one / (ax / y + y / ax) / y;
    let narrow = (ay * inverse_epsilon).lt(ax);
    let large = narrow.select(one / ax, infinite.select(zero, both_large));
    let real = sign(x) * (x.like(4.0) * safe.select(usual, large)).log1p() * x.like(0.25);
    let angle = (y + y).atan2(away * (one + ax) - y2);
    let imag = safe.select(angle, sign(y) * x.like(PI)) * x.like(0.5);
    real.complex(imag)
}
