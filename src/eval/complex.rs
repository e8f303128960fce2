//! Complex functions in f64.
//!
//! Square root and hyperbolic tangent after W. Kahan, "Branch cuts for complex elementary
//! functions" (1987); division after R. L. Smith (1962).

use std::cmp::Ordering;
use std::f64::consts::LN_2;

use crate::hlo::BinaryOp;
use crate::hlo::UnaryOp;
use crate::literal::number::Number;

type C = (f64, f64);

pub(super) fn unary(op: UnaryOp, re: f64, im: f64) -> Number {
    let z = (re, im);
    let (re, im) = match op {
        UnaryOp::Abs => return Number::Float(libm::hypot(re, im)),
        UnaryOp::Real => return Number::Float(re),
        UnaryOp::Imag => return Number::Float(im),
        UnaryOp::IsFinite => return Number::Int(i128::from(re.is_finite() && im.is_finite())),
        UnaryOp::Negate => (-re, -im),
        UnaryOp::Sign => sign(z),
        UnaryOp::Exp => exp(z),
        UnaryOp::Expm1 => expm1(z),
        UnaryOp::Log => log(z),
        UnaryOp::Log1p => log1p(z),
        UnaryOp::Sqrt => sqrt(z),
        UnaryOp::Rsqrt => rsqrt(z),
        UnaryOp::Cbrt => pow(z, (1.0 / 3.0, 0.0)),
        UnaryOp::Logistic => {
            let (a, b) = exp((-re, -im));
            divide((1.0, 0.0), (1.0 + a, b))
        }
        UnaryOp::Sin => (
            product(libm::sin(re), libm::cosh(im)),
            product(libm::cos(re), libm::sinh(im)),
        ),
        UnaryOp::Cos => (
            product(libm::cos(re), libm::cosh(im)),
            -product(libm::sin(re), libm::sinh(im)),
        ),
        UnaryOp::Sinh => (
            product(libm::sinh(re), libm::cos(im)),
            product(libm::cosh(re), libm::sin(im)),
        ),
        UnaryOp::Cosh => (
            product(libm::cosh(re), libm::cos(im)),
            product(libm::sinh(re), libm::sin(im)),
        ),
        UnaryOp::Tanh => tanh(z),
        UnaryOp::Tan => {
            let (a, b) = tanh((-im, re));
            (b, -a)
        }
        UnaryOp::Asinh => {
            let (a, b) = asin((z.1, -z.0));
            (-b, a)
        }
        UnaryOp::Asin => asin(z),
        UnaryOp::Acos => acos(z),
        UnaryOp::Acosh => acosh(z),
        UnaryOp::Atanh => atanh(z),
        UnaryOp::Ceil
        | UnaryOp::Floor
        | UnaryOp::Erf
        | UnaryOp::CountLeadingZeros
        | UnaryOp::Not
        | UnaryOp::PopulationCount
        | UnaryOp::RoundNearestAfz
        | UnaryOp::RoundNearestEven => (f64::NAN, f64::NAN),
    };
    Number::Complex(re, im)
}

pub(super) fn binary(op: BinaryOp, a: C, b: C) -> Number {
    let (re, im) = match op {
        BinaryOp::Add => (a.0 + b.0, a.1 + b.1),
        BinaryOp::Subtract => (a.0 - b.0, a.1 - b.1),
        BinaryOp::Multiply => multiply(a, b),
        BinaryOp::Divide => divide(a, b),
        BinaryOp::Power => pow(a, b),
        BinaryOp::Atan2 => atan2(a, b),
        BinaryOp::Maximum if order(a, b).is_some_and(Ordering::is_ge) => a,
        BinaryOp::Minimum if order(a, b).is_some_and(Ordering::is_le) => a,
        BinaryOp::Maximum | BinaryOp::Minimum => b,
        _ => (f64::NAN, f64::NAN),
    };
    Number::Complex(re, im)
}

/// By real parts, equal ones by imaginary parts; `None` where a NaN has a say.
pub(super) fn order(a: C, b: C) -> Option<Ordering> {
    match a.0.partial_cmp(&b.0) {
        Some(Ordering::Equal) => a.1.partial_cmp(&b.1),
        other => other,
    }
}

pub(super) fn multiply(a: C, b: C) -> C {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

pub(super) fn divide(a: C, b: C) -> C {
    if b.0 == 0.0 && b.1 == 0.0 {
        return (a.0 / b.0.abs().copysign(b.0), a.1 / b.0.abs().copysign(b.0));
    }
    if (b.0.is_infinite() || b.1.is_infinite()) && a.0.is_finite() && a.1.is_finite() {
        let unit = |x: f64| f64::from(u8::from(x.is_infinite())).copysign(x);
        let (c, d) = (unit(b.0), unit(b.1));
        return (0.0 * (a.0 * c + a.1 * d), 0.0 * (a.1 * c - a.0 * d));
    }
    if (a.0.is_infinite() || a.1.is_infinite()) && b.0.is_finite() && b.1.is_finite() {
        let unit = |x: f64| f64::from(u8::from(x.is_infinite())).copysign(x);
        let (x, y) = (unit(a.0), unit(a.1));
        let inf = f64::INFINITY;
        return (inf * (x * b.0 + y * b.1), inf * (y * b.0 - x * b.1));
    }
    if b.0.abs() >= b.1.abs() {
        let ratio = b.1 / b.0;
        let scale = b.0 + b.1 * ratio;
        ((a.0 + a.1 * ratio) / scale, (a.1 - a.0 * ratio) / scale)
    } else {
        let ratio = b.0 / b.1;
        let scale = b.0 * ratio + b.1;
        ((a.0 * ratio + a.1) / scale, (a.1 * ratio - a.0) / scale)
    }
}

/// A product that is zero where a factor is, whatever the other; a NaN counts as positive then.
fn product(a: f64, b: f64) -> f64 {
    if a != 0.0 && b != 0.0 {
        return a * b;
    }
    let limited = |x: f64| if x.is_nan() { 1.0 } else { x.clamp(-1.0, 1.0) };
    limited(a) * limited(b)
}

fn sign(z: C) -> C {
    if z.0 == 0.0 && z.1 == 0.0 {
        return z;
    }
    let length = libm::hypot(z.0, z.1);
    (z.0 / length, z.1 / length)
}

fn exp(z: C) -> C {
    let scale = libm::exp(z.0);
    if z.1 == 0.0 {
        return (scale, z.1);
    }
    if z.0 == f64::NEG_INFINITY {
        return (0.0, 0.0);
    }
    if scale.is_infinite() && z.0.is_finite() {
        let half = libm::exp(z.0 / 2.0);
        return (half * libm::cos(z.1) * half, half * libm::sin(z.1) * half);
    }
    (scale * libm::cos(z.1), scale * libm::sin(z.1))
}

fn expm1(z: C) -> C {
    let half_sine = libm::sin(z.1 / 2.0);
    let re = libm::expm1(z.0) * libm::cos(z.1) - 2.0 * half_sine * half_sine;
    let im = if z.1 == 0.0 {
        z.1
    } else {
        libm::exp(z.0) * libm::sin(z.1)
    };
    (re, im)
}

pub(super) fn log(z: C) -> C {
    let (big, small) = (z.0.abs().max(z.1.abs()), z.0.abs().min(z.1.abs()));
    // Close to the unit circle the logarithm of the length is a small difference of large numbers.
    let re = if big > 0.5 && big < 2.0 && !z.0.is_nan() && !z.1.is_nan() {
        0.5 * libm::log1p((big - 1.0) * (big + 1.0) + small * small)
    } else if big > f64::MAX / 2.0 && big.is_finite() {
        // The length may be no number though its logarithm is one.
        LN_2 + libm::log(libm::hypot(z.0 / 2.0, z.1 / 2.0))
    } else {
        libm::log(libm::hypot(z.0, z.1))
    };
    (re, libm::atan2(z.1, z.0))
}

fn log1p(z: C) -> C {
    let re = if z.0.abs().max(z.1.abs()) < 0.5 {
        0.5 * libm::log1p(z.0 * (z.0 + 2.0) + z.1 * z.1)
    } else {
        log((1.0 + z.0, z.1)).0
    };
    (re, libm::atan2(z.1, 1.0 + z.0))
}

pub(super) fn sqrt(z: C) -> C {
    let (re, im) = z;
    if re == 0.0 && im == 0.0 {
        return (0.0, im);
    }
    if im.is_infinite() {
        return (f64::INFINITY, im);
    }
    if re.is_infinite() {
        let other = if im.is_nan() { im } else { 0.0f64.copysign(im) };
        return if re > 0.0 {
            (re, other)
        } else {
            (
                if im.is_nan() { im } else { 0.0 },
                f64::INFINITY.copysign(im),
            )
        };
    }
    if re.is_nan() || im.is_nan() {
        return (f64::NAN, f64::NAN);
    }
    // Scaling by a power of four keeps the sum below from overflowing or vanishing.
    let exponent = libm::ilogb(re.abs().max(im.abs())) / 2;
    let (x, y) = (
        libm::scalbn(re, -2 * exponent),
        libm::scalbn(im, -2 * exponent),
    );
    let root = ((libm::hypot(x, y) + x.abs()) / 2.0).sqrt();
    let other = y.abs() / (2.0 * root);
    let (a, b) = if re >= 0.0 {
        (root, other)
    } else {
        (other, root)
    };
    (
        libm::scalbn(a, exponent),
        libm::scalbn(b, exponent).copysign(im),
    )
}

fn rsqrt(z: C) -> C {
    if z.0 == 0.0 && z.1 == 0.0 {
        return (f64::INFINITY, f64::NAN);
    }
    if z.0.is_infinite() || z.1.is_infinite() {
        return (0.0, 0.0);
    }
    divide((1.0, 0.0), sqrt(z))
}

fn tanh(z: C) -> C {
    let (a, b) = z;
    if b == 0.0 {
        return (libm::tanh(a), b);
    }
    if a.is_infinite() && !b.is_finite() {
        let zero = if b.is_nan() { 0.0 } else { 0f64.copysign(b) };
        return (1f64.copysign(a), zero);
    }
    if a.abs() > 22.0 {
        let decay = libm::exp(-2.0 * a.abs());
        return (1f64.copysign(a), 4.0 * libm::sin(b) * libm::cos(b) * decay);
    }
    if a == 0.0 {
        return (a, libm::tan(b));
    }
    let t = libm::tan(b);
    let beta = 1.0 + t * t;
    let s = libm::sinh(a);
    let rho = (1.0 + s * s).sqrt();
    if t.is_infinite() {
        return (rho / s, 1.0 / t);
    }
    let scale = 1.0 + beta * s * s;
    (beta * rho * s / scale, t / scale)
}

/// Kahan's formulas ("Branch cuts for complex elementary functions", 1987).
fn asin(z: C) -> C {
    if z.0.is_infinite() || z.1.is_infinite() {
        return (libm::atan2(z.0, z.1.abs()), f64::INFINITY.copysign(z.1));
    }
    let (p, m) = (sqrt((1.0 + z.0, z.1)), sqrt((1.0 - z.0, -z.1)));
    (
        libm::atan2(z.0, p.0 * m.0 - p.1 * m.1),
        libm::asinh(m.0 * p.1 - m.1 * p.0),
    )
}

fn acos(z: C) -> C {
    if z.0.is_infinite() || z.1.is_infinite() {
        return (libm::atan2(z.1.abs(), z.0), -f64::INFINITY.copysign(z.1));
    }
    let (p, m) = (sqrt((1.0 + z.0, z.1)), sqrt((1.0 - z.0, -z.1)));
    (
        2.0 * libm::atan2(m.0, p.0),
        libm::asinh(p.0 * m.1 - p.1 * m.0),
    )
}

fn acosh(z: C) -> C {
    if z.0.is_infinite() || z.1.is_infinite() {
        return (f64::INFINITY, libm::atan2(z.1, z.0));
    }
    let (p, m) = (sqrt((z.0 + 1.0, z.1)), sqrt((z.0 - 1.0, z.1)));
    (
        libm::asinh(m.0 * p.0 + m.1 * p.1),
        2.0 * libm::atan2(m.1, p.0),
    )
}

fn atanh(z: C) -> C {
    let (x, y) = (z.0.abs(), z.1.abs());
    if x > 1e150 || y > 1e150 {
        let size = x.hypot(y);
        let re = if size.is_infinite() {
            0.0
        } else {
            x / size / size
        };
        return (re.copysign(z.0), std::f64::consts::FRAC_PI_2.copysign(z.1));
    }
    let re = libm::log1p(4.0 * x / ((1.0 - x) * (1.0 - x) + y * y)) / 4.0;
    let im = libm::atan2(2.0 * y, (1.0 - x) * (1.0 + x) - y * y) / 2.0;
    (re.copysign(z.0), im.copysign(z.1))
}

fn pow(a: C, b: C) -> C {
    if b == (0.0, 0.0) || a == (1.0, 0.0) {
        return (1.0, 0.0);
    }
    if a == (0.0, 0.0) || a == (f64::INFINITY, 0.0) {
        let size = if a.0 == 0.0 {
            (b.0 > 0.0).then_some(0.0)
        } else if b.0 > 0.0 {
            Some(f64::INFINITY)
        } else {
            (b.0 < 0.0).then_some(0.0)
        };
        return match size {
            Some(size) if b.1 == 0.0 => (size, 0.0),
            _ => (f64::NAN, f64::NAN),
        };
    }
    if [a.0, a.1, b.0, b.1].iter().any(|part| !part.is_finite()) {
        return (f64::NAN, f64::NAN);
    }
    let (log_length, angle) = log(a);
    let exponent = b.0 * log_length - b.1 * angle;
    let turn = b.1 * log_length + b.0 * angle;
    exp((exponent, turn))
}

/// `-i log((x + i y) / sqrt(x^2 + y^2))`.
fn atan2(y: C, x: C) -> C {
    let squares = {
        let (xx, yy) = (multiply(x, x), multiply(y, y));
        (xx.0 + yy.0, xx.1 + yy.1)
    };
    let (a, b) = log(divide((x.0 - y.1, x.1 + y.0), sqrt(squares)));
    (b, -a)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The right values are mpmath's.
    #[test]
    fn logarithms_of_numbers_longer_than_any_float() {
        for (z, wanted) in [
            ((f64::MAX, f64::MAX), 710.129_286_483_663_9),
            ((-1.7e308, 1.7e308), 710.073_410_483_508_2),
            ((1.2e308, -1.6e308), 709.889_355_822_726),
            ((f64::MAX, 1.0), 709.782_712_893_384),
        ] {
            for re in [log(z).0, log1p(z).0] {
                assert!((re - wanted).abs() <= 2e-13, "{z:?}: {re}");
            }
        }
        assert_eq!(log((f64::INFINITY, 1.0)).0, f64::INFINITY);
    }
}
