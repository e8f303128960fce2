//! The numbers that the routines compute with: f64, and complex numbers of two f64.

use std::fmt::Debug;
use std::ops::Add;
use std::ops::AddAssign;
use std::ops::Mul;
use std::ops::Neg;
use std::ops::Sub;
use std::ops::SubAssign;

/// Half the distance from one to the next larger number: what rounding may lose.
pub(super) const EPSILON: f64 = f64::EPSILON / 2.0;

/// The distance from one to the next larger number.
pub(super) const ULP: f64 = f64::EPSILON;

/// The smallest number whose reciprocal is finite.
pub(super) const SAFE_MIN: f64 = f64::MIN_POSITIVE;

/// The precision of the caller's type. Iterations end when what is left is nothing in it, so that as
/// many steps are made, and signs come out, as in arithmetic of that type.
#[derive(Clone, Copy, Debug)]
pub struct Precision {
    /// The distance from one to the next larger number.
    pub ulp: f64,
    /// The smallest number whose reciprocal is finite.
    pub smallest: f64,
}

impl Precision {
    /// That of f64.
    pub const DOUBLE: Self = Self {
        ulp: ULP,
        smallest: SAFE_MIN,
    };

    /// What rounding may lose.
    pub(super) fn epsilon(self) -> f64 {
        self.ulp / 2.0
    }
}

/// A complex number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Complex {
    /// Real part.
    pub re: f64,
    /// Imaginary part.
    pub im: f64,
}

impl Complex {
    /// A number from its parts.
    pub fn new(re: f64, im: f64) -> Self {
        Self { re, im }
    }

    /// The root in the right half plane.
    pub(super) fn sqrt(self) -> Self {
        let size = self.abs();
        if size == 0.0 {
            return Self::default();
        }
        let large = ((size + self.re.abs()) / 2.0).sqrt();
        let small = self.im / (2.0 * large);
        if self.re >= 0.0 {
            Self::new(large, small)
        } else {
            Self::new(small.abs(), large.copysign(self.im))
        }
    }
}

impl Add for Complex {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::new(self.re + other.re, self.im + other.im)
    }
}

impl Sub for Complex {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self::new(self.re - other.re, self.im - other.im)
    }
}

impl Mul for Complex {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self::new(
            self.re * other.re - self.im * other.im,
            self.re * other.im + self.im * other.re,
        )
    }
}

impl Neg for Complex {
    type Output = Self;
    fn neg(self) -> Self {
        Self::new(-self.re, -self.im)
    }
}

impl AddAssign for Complex {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Complex {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

/// What a routine needs of its elements.
pub trait Scalar:
    Copy
    + Debug
    + Default
    + PartialEq
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
{
    /// Whether there is an imaginary part.
    const IS_COMPLEX: bool;
    /// A number without an imaginary part.
    fn real(value: f64) -> Self;
    /// A number from its parts; without an imaginary part, only the real one counts.
    fn from_parts(re: f64, im: f64) -> Self;
    /// The real part.
    fn re(self) -> f64;
    /// The imaginary part.
    fn im(self) -> f64;
    /// The complex conjugate.
    fn conj(self) -> Self;
    /// The product with a real number.
    fn times(self, factor: f64) -> Self;
    /// The quotient.
    fn over(self, divisor: Self) -> Self;
    /// The absolute value.
    fn abs(self) -> f64;
    /// The sum of the parts' absolute values.
    fn size(self) -> f64;
    /// The same number as a complex one.
    fn complex(self) -> Complex {
        Complex::new(self.re(), self.im())
    }
    /// Whether no part is infinite or NaN.
    fn is_finite(self) -> bool {
        self.re().is_finite() && self.im().is_finite()
    }
    /// One.
    fn one() -> Self {
        Self::real(1.0)
    }
    /// Zero.
    fn zero() -> Self {
        Self::default()
    }
}

impl Scalar for f64 {
    const IS_COMPLEX: bool = false;
    fn real(value: f64) -> Self {
        value
    }
    fn from_parts(re: f64, _: f64) -> Self {
        re
    }
    fn re(self) -> f64 {
        self
    }
    fn im(self) -> f64 {
        0.0
    }
    fn conj(self) -> Self {
        self
    }
    fn times(self, factor: f64) -> Self {
        self * factor
    }
    fn over(self, divisor: Self) -> Self {
        self / divisor
    }
    fn abs(self) -> f64 {
        f64::abs(self)
    }
    fn size(self) -> f64 {
        f64::abs(self)
    }
}

impl Scalar for Complex {
    const IS_COMPLEX: bool = true;
    fn real(value: f64) -> Self {
        Self::new(value, 0.0)
    }
    fn from_parts(re: f64, im: f64) -> Self {
        Self::new(re, im)
    }
    fn re(self) -> f64 {
        self.re
    }
    fn im(self) -> f64 {
        self.im
    }
    fn conj(self) -> Self {
        Self::new(self.re, -self.im)
    }
    fn times(self, factor: f64) -> Self {
        Self::new(self.re * factor, self.im * factor)
    }
    fn over(self, divisor: Self) -> Self {
        // The larger part of the divisor is divided out first, so that no square is formed.
        if divisor.im.abs() <= divisor.re.abs() {
            let ratio = divisor.im / divisor.re;
            let size = divisor.re + divisor.im * ratio;
            Self::new(
                (self.re + self.im * ratio) / size,
                (self.im - self.re * ratio) / size,
            )
        } else {
            let ratio = divisor.re / divisor.im;
            let size = divisor.im + divisor.re * ratio;
            Self::new(
                (self.re * ratio + self.im) / size,
                (self.im * ratio - self.re) / size,
            )
        }
    }
    fn abs(self) -> f64 {
        self.re.hypot(self.im)
    }
    fn size(self) -> f64 {
        self.re.abs() + self.im.abs()
    }
}

/// The Euclidean length of a vector, without overflow on the way.
pub(super) fn norm<T: Scalar>(x: &[T]) -> f64 {
    let square = |x: T| x.re() * x.re() + x.im() * x.im();
    let sum: f64 = x.iter().map(|&x| square(x)).sum();
    if sum > 1e-280 && sum < 1e280 {
        return sum.sqrt();
    }
    let largest = x.iter().map(|x| x.size()).fold(0.0, f64::max);
    if largest == 0.0 || !largest.is_finite() || sum.is_nan() {
        return if sum.is_nan() { sum } else { largest };
    }
    let scaled = x.iter().map(|x| {
        let (re, im) = (x.re() / largest, x.im() / largest);
        re * re + im * im
    });
    largest * scaled.sum::<f64>().sqrt()
}
