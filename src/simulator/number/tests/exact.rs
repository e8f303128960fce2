//! Exact arithmetic that shares nothing with what it judges: a result is found by searching all
//! codes of its format for the two neighbours of the exact value.

use std::cmp::Ordering;

use super::super::Round;
use super::super::format::Format;

pub(super) const ALL: [Round; 5] = [
    Round::NearestEven,
    Round::Zero,
    Round::Down,
    Round::Up,
    Round::NearestAway,
];

/// `mantissa * 2^exponent`, not negative.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dyadic {
    pub(super) mantissa: u128,
    pub(super) exponent: i32,
}

impl Dyadic {
    pub(super) fn times(self, other: Self) -> Self {
        Self {
            mantissa: self.mantissa.checked_mul(other.mantissa).unwrap(),
            exponent: self.exponent + other.exponent,
        }
    }

    pub(super) fn compare(self, other: Self) -> Ordering {
        if self.mantissa == 0 || other.mantissa == 0 {
            return self.mantissa.cmp(&other.mantissa);
        }
        let (a, b) = (
            self.mantissa.leading_zeros(),
            other.mantissa.leading_zeros(),
        );
        (self.exponent - a as i32)
            .cmp(&(other.exponent - b as i32))
            .then_with(|| (self.mantissa << a).cmp(&(other.mantissa << b)))
    }

    /// Half of the sum of two neighbours.
    fn middle(self, other: Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        let at = |d: Self| d.mantissa << (d.exponent - exponent);
        Self {
            mantissa: at(self) + at(other),
            exponent: exponent - 1,
        }
    }
}

/// The magnitude of a code: `2^(e - bias) * (1 + f / 2^n)`, or `2^(1 - bias) * f / 2^n` for `e = 0`.
/// The code after the largest counts on, which gives the point where an infinity begins.
pub(super) fn value(format: Format, code: u64) -> Dyadic {
    let (n, bias) = (format.fraction as i32, format.bias);
    let (e, f) = ((code >> n) as i32, code & ((1 << n) - 1));
    let (hidden, e) = if e == 0 { (0, 1) } else { (1 << n, e) };
    Dyadic {
        mantissa: u128::from(hidden | f),
        exponent: e - bias - n,
    }
}

/// The code without sign that a magnitude rounds to, given how it compares with any number.
pub(super) fn round_to(
    format: Format,
    negative: bool,
    round: Round,
    compare: impl Fn(Dyadic) -> Ordering,
) -> u64 {
    let (mut low, mut high) = (0, format.largest + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if compare(value(format, middle)) == Ordering::Less {
            high = middle;
        } else {
            low = middle;
        }
    }
    let beyond = low == format.largest && compare(value(format, low + 1)) != Ordering::Less;
    let exact = compare(value(format, low)) == Ordering::Equal;
    let half = compare(value(format, low).middle(value(format, low + 1)));
    let up = match round {
        _ if exact => false,
        Round::NearestEven => {
            beyond || half == Ordering::Greater || half == Ordering::Equal && low & 1 == 1
        }
        Round::NearestAway => beyond || half != Ordering::Less,
        Round::Zero => false,
        Round::Down => negative,
        Round::Up => !negative,
    };
    if up && low == format.largest {
        format.infinity.unwrap_or(format.largest)
    } else {
        low + u64::from(up)
    }
}

/// The magnitude and sign of a finite code.
pub(super) fn read(format: Format, bits: u64) -> (bool, Dyadic) {
    let sign = 1 << (format.exponent + format.fraction);
    (bits & sign != 0, value(format, bits & (sign - 1)))
}

pub(super) fn with_sign(format: Format, negative: bool, code: u64) -> u64 {
    code | u64::from(negative) << (format.exponent + format.fraction)
}

const WORDS: usize = 74;
const POINT: i32 = 2200;

/// A fixed-point number that holds every sum of a product of two f64 and an f64.
type Big = [u64; WORDS];

fn big(d: Dyadic) -> Big {
    let mut words = [0; WORDS];
    if d.mantissa == 0 {
        return words;
    }
    // Strip zeros so that the lowest bit is within the number.
    let zeros = d.mantissa.trailing_zeros();
    let mantissa = d.mantissa >> zeros;
    let at = (d.exponent + zeros as i32 + POINT) as usize;
    let (word, shift) = (at / 64, at % 64);
    let low = (mantissa as u64 as u128) << shift;
    let high = (mantissa >> 64) << shift;
    words[word] = low as u64;
    words[word + 1] = (low >> 64) as u64 | high as u64;
    words[word + 2] = (high >> 64) as u64;
    words
}

fn order(a: &Big, b: &Big) -> Ordering {
    a.iter().rev().cmp(b.iter().rev())
}

fn plus(a: &Big, b: &Big) -> Big {
    let mut out = [0; WORDS];
    let mut carry = false;
    for i in 0..WORDS {
        let (sum, one) = a[i].overflowing_add(b[i]);
        let (sum, two) = sum.overflowing_add(u64::from(carry));
        out[i] = sum;
        carry = one || two;
    }
    out
}

fn minus(a: &Big, b: &Big) -> Big {
    let mut out = [0; WORDS];
    let mut borrow = false;
    for i in 0..WORDS {
        let (rest, one) = a[i].overflowing_sub(b[i]);
        let (rest, two) = rest.overflowing_sub(u64::from(borrow));
        out[i] = rest;
        borrow = one || two;
    }
    out
}

/// The sum of two signed magnitudes rounded into a format, as the sign and the code.
pub(super) fn sum(format: Format, a: (bool, Dyadic), b: (bool, Dyadic), round: Round) -> u64 {
    let (x, y) = (big(a.1), big(b.1));
    let (negative, total) = if a.0 == b.0 {
        (a.0, plus(&x, &y))
    } else {
        match order(&x, &y) {
            Ordering::Greater => (a.0, minus(&x, &y)),
            Ordering::Less => (b.0, minus(&y, &x)),
            Ordering::Equal => (round == Round::Down, [0; WORDS]),
        }
    };
    let code = round_to(format, negative, round, |d| order(&total, &big(d)));
    with_sign(format, negative, code)
}
