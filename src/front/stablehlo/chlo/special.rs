//! Special functions: error functions, gamma functions and their derivatives, zeta, Bessel.
//!
//! The approximations are those StableHLO's decomposition uses, since results of XLA are results of
//! these: Cephes for erfc and Bessel functions, Giles for the inverse of erf, Lanczos with g = 7 and
//! nine coefficients for gamma, Johansson's form of the Euler-Maclaurin sum for zeta.

use std::f64::consts::LN_2;
use std::f64::consts::PI;

use crate::front::stablehlo::chlo::formula::Term;
use crate::front::stablehlo::chlo::tables;
use crate::hlo::BinaryOp;
use crate::hlo::UnaryOp;
use crate::shape::PrimitiveType;

/// The complementary error function of f32 or f64.
pub fn erfc(x: Term<'_>) -> Term<'_> {
    let one = x.like(1.0);
    let (far, near) = match x.ty() {
        PrimitiveType::F64 => (erfc_far_f64(x), erf_near_f64(x)),
        _ => (erfc_far_f32(x), x * (x * x).polynomial(&tables::ERF_F32)),
    };
    x.abs().lt(one).select(one - near, far)
}

/// The error function of f32 or f64, for those who have no op of that name.
pub fn erf(x: Term<'_>) -> Term<'_> {
    let one = x.like(1.0);
    if x.ty() == PrimitiveType::F64 {
        let far = one - erfc_far_f64(x);
        return x.abs().lt(one).select(erf_near_f64(x), far);
    }
    let x = x.max(x.like(-4.0)).min(x.like(4.0));
    let square = x * x;
    let value = x * square.polynomial(&tables::ERF_ALPHA_F32);
    let value = value / square.polynomial(&tables::ERF_BETA_F32);
    value.max(x.like(-1.0)).min(one)
}

fn erf_near_f64(x: Term<'_>) -> Term<'_> {
    let square = x * x;
    x * square.polynomial(&tables::ERF_T) / square.polynomial(&tables::ERF_U)
}

/// For |x| >= 1: `exp(-x²) P(|x|) / Q(|x|)`, mirrored at zero.
fn erfc_far_f64(x: Term<'_>) -> Term<'_> {
    let z = -(x * x);
    let size = x.abs();
    let factor = z.exp();
    let below_8 = factor * size.polynomial(&tables::ERFC_P) / size.polynomial(&tables::ERFC_Q);
    let above_8 = factor * size.polynomial(&tables::ERFC_R) / size.polynomial(&tables::ERFC_S);
    let value = size.lt(x.like(8.0)).select(below_8, above_8);
    mirror(x, z.lt(x.like(-7.097_827_128_933_84e2)), value)
}

/// For |x| >= 1: `exp(-x²) / |x| P(1 / x²)`, mirrored at zero.
fn erfc_far_f32(x: Term<'_>) -> Term<'_> {
    let square = x * x;
    let z = -square;
    let one = x.like(1.0);
    let size = x.abs();
    let inverse = one / square;
    let factor = z.exp() * (one / size);
    let near = inverse.polynomial(&tables::ERFC_P_F32);
    let far = inverse.polynomial(&tables::ERFC_R_F32);
    let value = factor * size.lt(x.like(2.0)).select(near, far);
    mirror(x, z.lt(x.like(-88.722_839_052_068_35)), value)
}

/// `erfc(x)` from its value at |x|, which is zero where it vanishes.
fn mirror<'f>(x: Term<'f>, vanishes: Term<'f>, value: Term<'f>) -> Term<'f> {
    let zero = x.like(0.0);
    let value = vanishes.select(zero, value);
    x.lt(zero).select(x.like(2.0) - value, value)
}

/// The inverse of erf, of f32 or f64.
pub fn erf_inv(x: Term<'_>) -> Term<'_> {
    let w = -(x * -x).log1p();
    let value = match x.ty() {
        PrimitiveType::F64 => erf_inv_f64(x, w),
        _ => erf_inv_f32(x, w),
    };
    let edge = x.abs().eq(x.like(1.0));
    edge.select(x * x.like(f64::INFINITY), value * x)
}

fn erf_inv_f32<'f>(x: Term<'f>, w: Term<'f>) -> Term<'f> {
    let central = w.lt(x.like(5.0));
    let w = central.select(w - x.like(2.5), w.sqrt() - x.like(3.0));
    let pairs = tables::ERF_INV_F32_CENTRAL
        .iter()
        .zip(&tables::ERF_INV_F32_TAIL);
    let mut coefficients = pairs.map(|(&c, &t)| central.select(x.like(c), x.like(t)));
    let first = coefficients.next().unwrap_or(x);
    coefficients.fold(first, |sum, c| c + sum * w)
}

fn erf_inv_f64<'f>(x: Term<'f>, w: Term<'f>) -> Term<'f> {
    let below_6 = w.lt(x.like(6.25));
    let below_16 = w.lt(x.like(16.0));
    let shift = below_16.select(x.like(3.25), x.like(5.0));
    let w = below_6.select(w - x.like(3.125), w.sqrt() - shift);
    let [central, middle, tail] = tables::ERF_INV_F64;
    let coefficient = |i: usize| {
        let mut c = x.like(central[i]);
        if let Some(&m) = middle.get(i) {
            c = below_6.select(c, x.like(m));
        }
        if let Some(&t) = tail.get(i) {
            c = below_16.select(c, x.like(t));
        }
        c
    };
    let mut sum = coefficient(0);
    for i in 1..central.len() {
        let next = coefficient(i) + sum * w;
        sum = if i < tail.len() {
            next
        } else if i < middle.len() {
            below_16.select(next, sum)
        } else {
            below_6.select(next, sum)
        };
    }
    sum
}

/// `(reflected, z)`: arguments below one half are computed at `1 - x`; `z + 1` is the argument.
fn reflect(x: Term<'_>) -> (Term<'_>, Term<'_>) {
    let reflected = x.lt(x.like(0.5));
    (reflected, reflected.select(-x, x - x.like(1.0)))
}

/// `(t, log t)` for `t = z + g + 1/2`.
fn lanczos_t(z: Term<'_>) -> (Term<'_>, Term<'_>) {
    let g = z.like(tables::LANCZOS_G + 0.5);
    let log = z.like((tables::LANCZOS_G + 0.5).ln()) + (z / g).log1p();
    (g + z, log)
}

/// The logarithm of |gamma(x)|, of f32 or f64.
pub fn lgamma(x: Term<'_>) -> Term<'_> {
    let half = x.like(0.5);
    let (reflected, z) = reflect(x);
    let base = x.like(tables::LANCZOS_BASE);
    let terms = (1..).zip(tables::LANCZOS);
    let sum = terms.fold(base, |sum, (k, c)| {
        sum + x.like(c) / (z + x.like(f64::from(k)))
    });
    let (t, log_t) = lanczos_t(z);
    let power = (z + half - t / log_t) * log_t;
    let constant = x.like((LN_2 + PI.ln()) / 2.0);
    let direct = constant + power + sum.log();

    let size = x.abs();
    let fraction = size - size.floor();
    let fraction = half.lt(fraction).select(x.like(1.0) - fraction, fraction);
    let sine = (x.like(PI) * fraction).unary(UnaryOp::Sin).log();
    let mirrored = x.like(PI.ln()) - sine - direct;
    let mirrored = sine.unary(UnaryOp::IsFinite).select(mirrored, -sine);
    let value = reflected.select(mirrored, direct);
    let infinity = x.like(f64::INFINITY);
    size.eq(infinity).select(infinity, value)
}

/// The derivative of the logarithm of gamma, of f32 or f64.
pub fn digamma(x: Term<'_>) -> Term<'_> {
    let (zero, half) = (x.like(0.0), x.like(0.5));
    let (reflected, z) = reflect(x);
    let mut sum = x.like(tables::LANCZOS_BASE);
    let mut slope = zero;
    for (k, c) in (1..).zip(tables::LANCZOS) {
        let c = x.like(c);
        let term = z + x.like(f64::from(k));
        slope = slope - c / (term * term);
        sum = sum + c / term;
    }
    let (t, log_t) = lanczos_t(z);
    let direct = log_t + slope / sum - x.like(tables::LANCZOS_G) / t;
    let reduced = x + (x + half).floor().abs();
    let pi = x.like(PI);
    let angle = pi * reduced;
    let cotangent = pi * angle.unary(UnaryOp::Cos) / angle.unary(UnaryOp::Sin);
    let value = reflected.select(direct - cotangent, direct);
    let pole = x.le(zero).and(x.eq(x.floor()));
    pole.select(x.like(f64::NAN), value)
}

/// The Hurwitz zeta function, of f32 or f64.
pub fn zeta<'f>(x: Term<'f>, q: Term<'f>) -> Term<'f> {
    let (zero, one) = (q.like(0.0), q.like(1.0));
    let minus_x = -x;
    let power = |base: Term<'f>| base.binary(BinaryOp::Power, minus_x);
    let mut base = q;
    let mut sum = power(q);
    for _ in 0..9 {
        base = base + one;
        sum = sum + power(base);
    }
    base = base + one;
    let last = power(base);
    let correction = last * base / (x - one);
    let inverse = one / (base * base);
    let (tail, coefficients) = tables::ZETA.split_last().unwrap_or((&12.0, &[]));
    let mut horner = zero;
    for (i, c) in (0..).zip(coefficients) {
        let step = f64::from(22 - 2 * i);
        let factor = (x + x.like(step)) * (x + x.like(step - 1.0));
        horner = factor * (inverse * (horner + x.like(1.0 / c)));
    }
    let inner = x.like(1.0 / tail) + horner;
    let bernoulli = last * (x.like(0.5) + x / base * inner);
    let accurate = sum + correction + bernoulli;
    let enough = last.abs().lt(sum.abs() * x.smallest());
    let value = enough.select(sum, accurate);
    zeta_edges(x, q, value)
}

/// NaN below 1 and for powers of negative numbers, infinity or NaN at the poles.
fn zeta_edges<'f>(x: Term<'f>, q: Term<'f>, value: Term<'f>) -> Term<'f> {
    let (zero, one) = (q.like(0.0), q.like(1.0));
    let (nan, infinity) = (x.like(f64::NAN), x.like(f64::INFINITY));
    let value = x.lt(one).select(nan, value);
    let negative = q.le(zero);
    let value = negative.and(x.ne(x.floor())).select(nan, value);
    let pole = negative.and(q.eq(q.floor()));
    let half = x.binary(BinaryOp::Remainder, x.like(2.0));
    let even = x.eq(x.floor()).and(half.eq(zero));
    let value = pole.select(even.select(infinity, nan), value);
    x.eq(one).select(infinity, value)
}

/// The derivative of order `n` of digamma, of f32 or f64.
pub fn polygamma<'f>(n: Term<'f>, x: Term<'f>) -> Term<'f> {
    let (zero, one, two) = (x.like(0.0), x.like(1.0), x.like(2.0));
    let sign = two * n.binary(BinaryOp::Remainder, two) - one;
    let next = n + one;
    let value = sign * lgamma(next).exp() * zeta(next, x);
    let value = n.eq(zero).select(digamma(x), value);
    let natural = n.ne(n.floor()).or(n.lt(zero));
    natural.select(x.like(f64::NAN), value)
}

/// The exponentially scaled modified Bessel function of order one, of f32 or f64.
pub fn bessel_i1e(x: Term<'_>) -> Term<'_> {
    let size = x.abs();
    let (near, far): (&[f64], &[f64]) = match x.ty() {
        PrimitiveType::F64 => (&tables::I1E_A, &tables::I1E_B),
        // The table of f32 is the end of the other one.
        _ => (&tables::I1E_A[12..], &tables::I1E_B[18..]),
    };
    let two = x.like(2.0);
    let below = size * chebyshev(x.like(0.5) * size - two, near);
    let above = chebyshev(x.like(32.0) / size - two, far) / size.sqrt();
    x.unary(UnaryOp::Sign) * size.le(x.like(8.0)).select(below, above)
}

/// A series of Chebyshev polynomials, by Clenshaw's recurrence.
fn chebyshev<'f>(x: Term<'f>, coefficients: &[f64]) -> Term<'f> {
    let zero = x.like(0.0);
    let (mut b0, mut b1, mut b2) = (zero, zero, zero);
    for &c in coefficients {
        b2 = b1;
        b1 = b0;
        b0 = x * b1 - b2 + x.like(c);
    }
    (b0 - b2) * x.like(0.5)
}

/// Hyperbolic cosine, `exp(x - log 2) + exp(-x - log 2)`, of f32, f64 or a complex type.
pub fn cosh(x: Term<'_>) -> Term<'_> {
    let shift = x.like(-LN_2);
    (x + shift).exp() + (shift - x).exp()
}

/// Hyperbolic sine of f32, f64 or a complex type.
pub fn sinh(x: Term<'_>) -> Term<'_> {
    let shift = x.like(-LN_2);
    let large = (x + shift).exp() - (shift - x).exp();
    if x.ty().is_complex() {
        return large;
    }
    let one = x.like(1.0);
    let m = x.unary(UnaryOp::Expm1);
    let small = x.like(0.5) * (m + m / (m + one));
    x.abs().lt(one).select(small, large)
}

/// The next number after `x` in the direction of `y`.
pub fn next_after<'f>(x: Term<'f>, y: Term<'f>, bits: PrimitiveType) -> Term<'f> {
    let (xi, yi) = (x.bits(bits), y.bits(bits));
    let sign = xi.like_int(1 << (bits.bit_width() - 1));
    let rest = xi.like_int((1 << (bits.bit_width() - 1)) - 1);
    let (zero, one, back) = (xi.like_int(0), xi.like_int(1), xi.like_int(-1));
    let (x_size, y_size) = (xi.and(rest), yi.and(rest));
    let apart = xi.and(sign).ne(yi.and(sign));
    let shrinks = x_size.gt(y_size).or(apart);
    let step = xi + shrinks.select(back, one);
    let from_zero = y_size.eq(zero).select(yi, yi.and(sign).or(one));
    let value = x_size.eq(zero).select(from_zero, step);
    let value = x.eq(y).select(yi, value);
    let nan = x.like(f64::NAN).bits(bits);
    x.ne(x).or(y.ne(y)).select(nan, value).bits(x.ty())
}

/// The upper half of the product of two integers.
pub fn mul_high<'f>(x: Term<'f>, y: Term<'f>) -> Term<'f> {
    let ty = x.ty();
    let bits = ty.bit_width();
    let wide = match (bits, ty.is_signed()) {
        (8, true) => Some(PrimitiveType::S16),
        (16, true) => Some(PrimitiveType::S32),
        (32, true) => Some(PrimitiveType::S64),
        (8, false) => Some(PrimitiveType::U16),
        (16, false) => Some(PrimitiveType::U32),
        (32, false) => Some(PrimitiveType::U64),
        _ => None,
    };
    let Some(wide) = wide else {
        return mul_high_64(x, y);
    };
    let product = x.convert(wide) * y.convert(wide);
    let shift = match ty.is_signed() {
        true => BinaryOp::ShiftRightArithmetic,
        false => BinaryOp::ShiftRightLogical,
    };
    let amount = product.like_int(bits as i128);
    product.binary(shift, amount).convert(ty)
}

/// The upper half of a product of 64 bits by 64 bits, from products of halves; what a sign adds is
/// taken off.
fn mul_high_64<'f>(x: Term<'f>, y: Term<'f>) -> Term<'f> {
    let ty = x.ty();
    let (a, b) = (x.bits(PrimitiveType::U64), y.bits(PrimitiveType::U64));
    let half = a.like_int(32);
    let low_mask = a.like_int(0xffff_ffff);
    let high = |v: Term<'f>| v.binary(BinaryOp::ShiftRightLogical, half);
    let low = |v: Term<'f>| v.and(low_mask);
    let (ah, al, bh, bl) = (high(a), low(a), high(b), low(b));
    let middle = al * bh + high(al * bl);
    let other = ah * bl + low(middle);
    let product = ah * bh + high(middle) + high(other);
    if !ty.is_signed() {
        return product;
    }
    let zero = a.like_int(0);
    let negative = |v: Term<'f>| v.lt(v.like_int(0));
    let product = product - negative(x).select(b, zero);
    (product - negative(y).select(a, zero)).bits(ty)
}
