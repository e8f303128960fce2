//! What elementwise ops should give: `f64` arithmetic for types that it holds with room to spare,
//! stored points for the others, integers of 128 bits. Rounding goes by tables of all values.
//!
//! Nothing here calls the evaluator or the compiler; of the crate it takes the decoding of elements.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use xla_aot::literal::number;
use xla_aot::literal::number::Number;
use xla_aot::shape::ElementKind;
use xla_aot::shape::PrimitiveType;

/// A float op of one argument; exact where arithmetic is, else within an ulp of f64.
pub fn unary(op: &str, x: f64) -> Option<f64> {
    Some(match op {
        "abs" => x.abs(),
        "negate" => -x,
        "sign" if x == 0.0 || x.is_nan() => x,
        "sign" => 1f64.copysign(x),
        "floor" => x.floor(),
        "ceil" => x.ceil(),
        "round-nearest-afz" => x.round(),
        "round-nearest-even" => x.round_ties_even(),
        "real" => x,
        "imag" => 0.0,
        "exponential" => x.exp(),
        "exponential-minus-one" => x.exp_m1(),
        "log" => x.ln(),
        "log-plus-one" => x.ln_1p(),
        "logistic" => 1.0 / (1.0 + (-x).exp()),
        "tanh" => x.tanh(),
        "sqrt" => x.sqrt(),
        "rsqrt" => 1.0 / x.sqrt(),
        "cbrt" => x.cbrt(),
        "sine" => x.sin(),
        "cosine" => x.cos(),
        "tan" => x.tan(),
        "acos" => x.acos(),
        "asin" => x.asin(),
        "acosh" => x.acosh(),
        "asinh" => asinh(x),
        "atanh" => 0.5 * (x.ln_1p() - (-x).ln_1p()),
        "cosh" => x.cosh(),
        "sinh" => x.sinh(),
        "erf" => erf(x),
        _ => return None,
    })
}

/// Odd, and without the cancellation of the plain formula.
fn asinh(x: f64) -> f64 {
    let a = x.abs();
    let value = if a > 1e150 {
        a.ln() + std::f64::consts::LN_2
    } else {
        (a + a * a / (1.0 + (a * a + 1.0).sqrt())).ln_1p()
    };
    value.copysign(x)
}

/// The Maclaurin series below 3, a continued fraction of the complement above (Abramowitz and Stegun
/// 7.1.6 and 7.1.14); good to about 1e-15.
fn erf(x: f64) -> f64 {
    let a = x.abs();
    if x.is_nan() || a == 0.0 {
        return x;
    }
    let value = if a < 3.0 {
        let (mut term, mut sum) = (a, a);
        for n in 1..120 {
            term *= 2.0 * a * a / f64::from(2 * n + 1);
            sum += term;
        }
        2.0 / std::f64::consts::PI.sqrt() * (-a * a).exp() * sum
    } else {
        let fraction = (1..80).rev().fold(a, |f, k| a + f64::from(k) / 2.0 / f);
        1.0 - (-a * a).exp() / (fraction * std::f64::consts::PI.sqrt())
    };
    value.copysign(x)
}

/// A float op of two arguments.
pub fn binary(op: &str, a: f64, b: f64) -> Option<f64> {
    let nan = a.is_nan() || b.is_nan();
    Some(match op {
        "add" => a + b,
        "subtract" => a - b,
        "multiply" => a * b,
        "divide" => a / b,
        "remainder" => a % b,
        "maximum" | "minimum" if nan => f64::NAN,
        "maximum" if a == b => {
            if a.is_sign_negative() {
                b
            } else {
                a
            }
        }
        "minimum" if a == b => {
            if a.is_sign_negative() {
                a
            } else {
                b
            }
        }
        "maximum" => {
            if a > b {
                a
            } else {
                b
            }
        }
        "minimum" => {
            if a < b {
                a
            } else {
                b
            }
        }
        "power" => a.powf(b),
        "atan2" => a.atan2(b),
        _ => return None,
    })
}

/// An integer op of one argument, before it is cut to the type.
pub fn unary_int(op: &str, ty: PrimitiveType, x: i128) -> Option<i128> {
    let width = ty.bit_width();
    let bit = |i: usize| x >> i & 1;
    Some(match op {
        "abs" => x.abs(),
        "negate" => -x,
        "not" if ty == PrimitiveType::Pred => 1 - x,
        "not" => -1 - x,
        "sign" => i128::from(x > 0) - i128::from(x < 0),
        "popcnt" => (0..width).map(bit).sum(),
        "count-leading-zeros" => (0..width).rev().take_while(|&i| bit(i) == 0).count() as i128,
        "real" => x,
        _ => return None,
    })
}

/// An integer op of two arguments, before it is cut to the type. Division by zero gives all ones, its
/// remainder the dividend; what is shifted by the width or more is gone, but for the sign.
pub fn binary_int(op: &str, ty: PrimitiveType, a: i128, b: i128) -> Option<i128> {
    let width = ty.bit_width() as u32;
    let unsigned = |x: i128| x.rem_euclid(1 << width);
    let gone = unsigned(b) >= i128::from(width);
    let pred = ty == PrimitiveType::Pred;
    Some(match op {
        "add" if pred => a | b,
        "multiply" if pred => a & b,
        "add" => a + b,
        "subtract" => a - b,
        "multiply" => a.wrapping_mul(b),
        "divide" if b == 0 => -1,
        "divide" => a / b,
        "remainder" if b == 0 => a,
        "remainder" => a % b,
        "maximum" => a.max(b),
        "minimum" => a.min(b),
        "and" => a & b,
        "or" => a | b,
        "xor" => a ^ b,
        "shift-left" => {
            if gone {
                0
            } else {
                a << unsigned(b)
            }
        }
        "shift-right-logical" => {
            if gone {
                0
            } else {
                unsigned(a) >> unsigned(b)
            }
        }
        "shift-right-arithmetic" => {
            let signed = (unsigned(a) << (128 - width)) >> (128 - width);
            if gone {
                -i128::from(signed < 0)
            } else {
                signed >> unsigned(b)
            }
        }
        "power" => power_int(ty, a, b),
        _ => return None,
    })
}

/// The whole part of the true value, modulo two to the width; zero to a negative power is zero.
fn power_int(ty: PrimitiveType, base: i128, exponent: i128) -> i128 {
    if exponent < 0 {
        let odd = exponent % 2 != 0;
        return if base == 1 || (base == -1 && !odd) {
            1
        } else if base == -1 {
            -1
        } else {
            0
        };
    }
    let modulus = 1u128 << ty.bit_width();
    let reduced = |x: i128| x.rem_euclid(modulus as i128) as u128;
    let (mut square, mut rest, mut result) = (reduced(base), exponent, 1 % modulus);
    while rest > 0 {
        if rest % 2 == 1 {
            result = result.wrapping_mul(square) % modulus;
        }
        square = square.wrapping_mul(square) % modulus;
        rest /= 2;
    }
    result as i128
}

/// All values of a float type of up to 16 bits.
pub struct Table {
    ty: PrimitiveType,
    /// Value and bits of every finite number, from low to high; of two zeros the positive one.
    finite: Vec<(f64, u64)>,
    has_infinity: bool,
    has_nan: bool,
    has_negative_zero: bool,
}

impl Table {
    fn new(ty: PrimitiveType) -> Self {
        let all = (0..1u64 << ty.bit_width()).map(|bits| (number::float_to_f64(ty, bits), bits));
        let all: Vec<(f64, u64)> = all.collect();
        let is_negative_zero = |x: f64| x == 0.0 && x.is_sign_negative();
        let finite = all
            .iter()
            .filter(|(x, _)| x.is_finite() && !is_negative_zero(*x));
        let mut finite: Vec<(f64, u64)> = finite.copied().collect();
        finite.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self {
            ty,
            finite,
            has_infinity: all.iter().any(|(x, _)| x.is_infinite()),
            has_nan: all.iter().any(|(x, _)| x.is_nan()),
            has_negative_zero: all.iter().any(|(x, _)| is_negative_zero(*x)),
        }
    }

    /// Whether the type has powers of two only, all positive.
    fn is_scale(&self) -> bool {
        self.ty == PrimitiveType::F8E8M0FNU
    }

    /// The value of the type that stands for `x`: the nearest, of two the even one.
    fn nearest(&self, x: f64) -> f64 {
        if x.is_nan() && !self.has_nan {
            return 0.0;
        }
        if x.is_nan() || (self.is_scale() && (x <= 0.0 || x.is_infinite())) {
            return f64::NAN;
        }
        let finite = &self.finite;
        let above = finite.partition_point(|(v, _)| *v < x);
        if above == 0 {
            return self.beyond(x, finite[0], finite[1].0);
        }
        if above == finite.len() {
            return self.beyond(x, finite[above - 1], finite[above - 2].0);
        }
        let (low, high) = (finite[above - 1], finite[above]);
        let up = match (x - low.0).total_cmp(&(high.0 - x)) {
            Ordering::Less => false,
            Ordering::Greater => true,
            // A scale has no mantissa to be even: the larger one.
            Ordering::Equal => high.1 & 1 == 0 || self.is_scale(),
        };
        let nearest = if up { high.0 } else { low.0 };
        if nearest == 0.0 && self.has_negative_zero {
            nearest.copysign(x)
        } else {
            nearest
        }
    }

    /// Past the last number: that number until half a step, then what the type has for more.
    fn beyond(&self, x: f64, (end, bits): (f64, u64), before: f64) -> f64 {
        // The step beyond a power of two is twice the one before.
        let step = (end - before).abs() * if self.is_scale() { 2.0 } else { 1.0 };
        let (half, excess) = (step / 2.0, (x - end).abs());
        let is_smallest_scale = self.is_scale() && x < end;
        let even = bits & 1 == 0 && !self.is_scale();
        if !self.has_nan || is_smallest_scale || excess < half || (excess == half && even) {
            end
        } else if self.has_infinity {
            f64::INFINITY.copysign(x)
        } else {
            f64::NAN
        }
    }
}

/// The value of the type nearest to `x`.
pub fn nearest(tables: &Tables, ty: PrimitiveType, x: f64) -> f64 {
    match ty {
        PrimitiveType::F64 => x,
        PrimitiveType::F32 => f64::from(x as f32),
        _ => tables.0[&ty.number()].nearest(x),
    }
}

/// The tables of all float types of up to 16 bits.
pub struct Tables(BTreeMap<i32, Table>);

impl Tables {
    pub fn new() -> Self {
        let small = PrimitiveType::ALL
            .iter()
            .filter(|ty| ty.is_float() && ty.bit_width() <= 16);
        Self(small.map(|&ty| (ty.number(), Table::new(ty))).collect())
    }
}

/// `convert` of one number.
pub fn convert(tables: &Tables, x: Number, to: PrimitiveType) -> Number {
    let real = |x: f64| Number::Float(nearest(tables, to, x));
    match (to.kind(), x) {
        (ElementKind::Pred, Number::Int(x)) => Number::Int(i128::from(x != 0)),
        (ElementKind::Pred, Number::Float(x) | Number::Complex(x, _)) => {
            Number::Int(i128::from(x != 0.0))
        }
        (ElementKind::Signed | ElementKind::Unsigned, Number::Int(x)) => Number::Int(cut(to, x)),
        (ElementKind::Signed | ElementKind::Unsigned, Number::Float(x) | Number::Complex(x, _)) => {
            let (low, high) = range(to);
            Number::Int(if x.is_nan() {
                0
            } else {
                (x.trunc() as i128).clamp(low, high)
            })
        }
        (ElementKind::Float, Number::Int(x)) => match to {
            PrimitiveType::F64 => Number::Float(x as f64),
            PrimitiveType::F32 => Number::Float(f64::from(x as f32)),
            // A large one keeps 21 bits and one that says whether there were more.
            _ => {
                let drop = x
                    .unsigned_abs()
                    .checked_ilog2()
                    .unwrap_or(0)
                    .saturating_sub(20);
                let (whole, rest) = (x >> drop << drop, x & ((1 << drop) - 1));
                real((whole + if rest == 0 { 0 } else { 1 << drop >> 1 }) as f64)
            }
        },
        (ElementKind::Float, Number::Float(x) | Number::Complex(x, _)) => real(x),
        (ElementKind::Complex, x) => {
            let part = to.real_part();
            let (re, im) = match x {
                Number::Complex(re, im) => (Number::Float(re), im),
                other => (other, 0.0),
            };
            let Number::Float(re) = convert(tables, re, part) else {
                unreachable!()
            };
            Number::Complex(re, nearest(tables, part, im))
        }
    }
}

/// Smallest and largest value of an integer type.
pub fn range(ty: PrimitiveType) -> (i128, i128) {
    let bits = ty.bit_width() as u32;
    match ty.kind() {
        ElementKind::Signed => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        _ => (0, (1 << bits) - 1),
    }
}

/// An integer cut to the width of the type.
pub fn cut(ty: PrimitiveType, x: i128) -> i128 {
    let modulus = 1i128 << ty.bit_width();
    let (_, high) = range(ty);
    let low = x.rem_euclid(modulus);
    if ty.kind() == ElementKind::Pred {
        i128::from(x != 0)
    } else if low > high {
        low - modulus
    } else {
        low
    }
}
