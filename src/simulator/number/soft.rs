//! Exact sums, products, quotients and roots of wide mantissas, rounded once at the end.
//!
//! The slow and certain way: the directed roundings of f64 and every unusual conversion use it.

use super::Round;
use super::format::Format;

/// `mantissa * 2^exponent`, plus a tail that is not zero but below the last bit when `sticky`.
///
/// With `sticky` the mantissa is at least `2^60`, so the tail lies far below any rounding point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exact {
    pub(super) negative: bool,
    pub(super) mantissa: u128,
    pub(super) exponent: i32,
    pub(super) sticky: bool,
}

impl Exact {
    /// A finite value of a format, from its bits.
    #[inline]
    pub(super) fn of(format: Format, bits: u64) -> Self {
        let field = (bits >> format.fraction) & ((1 << format.exponent) - 1);
        let fraction = bits & ((1 << format.fraction) - 1);
        let hidden = u64::from(field != 0) << format.fraction;
        Self {
            negative: format.signed && (bits >> (format.exponent + format.fraction)) & 1 == 1,
            mantissa: u128::from(fraction | hidden),
            exponent: (field as i32).max(1) - format.bias - format.fraction as i32,
            sticky: false,
        }
    }

    /// An integer.
    #[inline]
    pub(super) fn of_int(value: i128) -> Self {
        Self {
            negative: value < 0,
            mantissa: value.unsigned_abs(),
            exponent: 0,
            sticky: false,
        }
    }

    /// Moves the highest bit of the mantissa to `bit`; a zero stays.
    fn normalized(self, bit: u32) -> Self {
        if self.mantissa == 0 {
            return self;
        }
        let top = 127 - self.mantissa.leading_zeros();
        let shift = bit as i32 - top as i32;
        Self {
            mantissa: if shift >= 0 {
                self.mantissa << shift
            } else {
                self.mantissa >> -shift
            },
            exponent: self.exponent - shift,
            ..self
        }
    }

    /// The exact product of two values of at most 64 bits.
    pub(super) fn times(self, other: Self) -> Self {
        Self {
            negative: self.negative != other.negative,
            mantissa: self.mantissa * other.mantissa,
            exponent: self.exponent + other.exponent,
            sticky: false,
        }
    }

    /// The sum. An exact zero of two values that are not both zeros of one sign is negative only
    /// when rounding down.
    pub(super) fn plus(self, other: Self, round: Round) -> Self {
        if self.mantissa == 0 && other.mantissa == 0 {
            let negative = if self.negative == other.negative {
                self.negative
            } else {
                round == Round::Down
            };
            return Self { negative, ..self };
        }
        if self.mantissa == 0 {
            return other;
        }
        if other.mantissa == 0 {
            return self;
        }
        // The larger magnitude has its highest bit at 124, the other is shifted to its exponent.
        let (a, b) = (self.normalized_up(), other.normalized_up());
        let (big, small) = if (a.exponent, a.mantissa) >= (b.exponent, b.mantissa) {
            (a, b)
        } else {
            (b, a)
        };
        let shift = (big.exponent - small.exponent) as u32;
        let (low, lost) = if shift >= 128 {
            (0, true)
        } else {
            let low = small.mantissa >> shift;
            (low, low << shift != small.mantissa)
        };
        if big.negative == small.negative {
            return Self {
                mantissa: big.mantissa + low,
                sticky: lost,
                ..big
            };
        }
        let mantissa = big.mantissa - low - u128::from(lost);
        Self {
            negative: if mantissa == 0 && !lost {
                round == Round::Down
            } else {
                big.negative
            },
            mantissa,
            sticky: lost,
            ..big
        }
    }

    fn normalized_up(self) -> Self {
        self.normalized(124)
    }

    /// The quotient of values that are not zero.
    pub(super) fn over(self, other: Self) -> Self {
        let (a, b) = (self.normalized(126), other.normalized(62));
        Self {
            negative: self.negative != other.negative,
            mantissa: a.mantissa / b.mantissa,
            exponent: a.exponent - b.exponent,
            sticky: a.mantissa % b.mantissa != 0,
        }
    }

    /// The square root of a value that is not negative.
    pub(super) fn root(self) -> Self {
        let mut a = self.normalized(126);
        if a.exponent & 1 != 0 {
            a.mantissa >>= 1;
            a.exponent += 1;
        }
        let root = a.mantissa.isqrt();
        Self {
            mantissa: root,
            exponent: a.exponent >> 1,
            sticky: root * root != a.mantissa,
            ..a
        }
    }

    /// Rounds the magnitude to a multiple of `2^unit`.
    pub(super) fn rounded(self, unit: i32, round: Round) -> u128 {
        let shift = unit - self.exponent;
        if shift <= 0 {
            return self.mantissa << -shift;
        }
        let (kept, half, rest) = match shift {
            128.. => (0, false, self.mantissa != 0 || self.sticky),
            _ => {
                let below = 1_u128 << (shift - 1);
                (
                    self.mantissa.checked_shr(shift as u32).unwrap_or(0),
                    self.mantissa & below != 0,
                    self.mantissa & (below - 1) != 0 || self.sticky,
                )
            }
        };
        let up = match round {
            Round::NearestEven => half && (rest || kept & 1 == 1),
            Round::NearestAway => half,
            Round::Zero => false,
            Round::Down => self.negative && (half || rest),
            Round::Up => !self.negative && (half || rest),
        };
        kept + u128::from(up)
    }

    /// The bits in `format`. What is too large becomes the infinity or the largest finite value as
    /// `round` says, always the largest finite value with `saturate`.
    pub(super) fn encode(self, format: Format, round: Round, saturate: bool) -> u64 {
        let sign = u64::from(self.negative && format.signed) << (format.exponent + format.fraction);
        if self.mantissa == 0 && !self.sticky {
            return sign;
        }
        let top = 127 - self.mantissa.leading_zeros() as i32 + self.exponent;
        let lowest = 1 - format.bias;
        let exponent = top.max(lowest);
        if exponent > 1100 {
            return sign | format.overflow(self.negative, round, saturate);
        }
        let kept = self.rounded(exponent - format.fraction as i32, round) as u64;
        // A significand that carries into the next power, or is below the normal range, still
        // gives the right code because the exponent field counts on.
        let field = (exponent - lowest) as u64;
        let code = (field << format.fraction) + kept;
        if code > format.largest {
            return sign | format.overflow(self.negative, round, saturate);
        }
        sign | code
    }
}
