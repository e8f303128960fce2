//! Values to try, and how far a result is from the right one.

use xla_aot::literal::ArrayLiteral;
use xla_aot::literal::number;
use xla_aot::literal::number::Number;
use xla_aot::shape::ArrayShape;
use xla_aot::shape::ElementKind;
use xla_aot::shape::PrimitiveType;

use super::Accuracy;
use super::reference;
use libtest_mimic::Failed;

/// Values of a wide type that are tried.
const SAMPLE: usize = 1 << 16;

/// The bytes of numbers of a type.
pub fn array(ty: PrimitiveType, numbers: impl IntoIterator<Item = Number>) -> ArrayLiteral {
    let mut data = Vec::new();
    for x in numbers {
        let at = data.len();
        data.resize(at + ty.byte_width(), 0);
        number::encode(ty, x, &mut data[at..]);
    }
    let n = data.len() / ty.byte_width();
    ArrayLiteral::new(ArrayShape::new(ty, [n]), data)
}

fn raw(ty: PrimitiveType, bits: impl IntoIterator<Item = u64>) -> ArrayLiteral {
    let width = ty.byte_width();
    let data: Vec<u8> = bits
        .into_iter()
        .flat_map(|b| b.to_le_bytes()[..width].to_vec())
        .collect();
    let n = data.len() / width;
    ArrayLiteral::new(ArrayShape::new(ty, [n]), data)
}

/// Bits without a pattern (Marsaglia's xorshift).
fn random() -> impl Iterator<Item = u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    std::iter::from_fn(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Some(state)
    })
}

/// Every value of a type of up to 16 bits; of others the corners and a dense sample.
pub fn sample(ty: PrimitiveType) -> ArrayLiteral {
    let bits = ty.bit_width();
    match ty.kind() {
        ElementKind::Signed | ElementKind::Unsigned | ElementKind::Pred if bits <= 16 => {
            let (low, high) = reference::range(ty);
            array(ty, (low..=high).map(Number::Int))
        }
        ElementKind::Signed | ElementKind::Unsigned | ElementKind::Pred => {
            // Of every number of significant bits as many, half of them beside a number of 9 or 12
            // bits, where rounding twice would show.
            let random = random().take(SAMPLE).enumerate();
            let random = random.map(|(i, word)| {
                let x = i128::from(word >> (i % bits));
                let drop = x
                    .checked_ilog2()
                    .unwrap_or(0)
                    .saturating_sub([8, 11][i / bits % 2]);
                let beside = ((x >> drop | 1) << drop) + (i / bits % 3) as i128 - 1;
                Number::Int(if i % 2 == 0 { x } else { beside })
            });
            array(
                ty,
                corners(ty).into_iter().chain(random.map(|x| cut(ty, x))),
            )
        }
        ElementKind::Float if bits <= 16 => raw(ty, 0..1 << bits),
        ElementKind::Float => {
            // The upper bits, which hold the exponent, take every value in turn.
            let upper = |i: usize, word: u64| (i as u64) << (bits - 16) | word >> (64 - bits + 16);
            let spread = random()
                .take(SAMPLE)
                .enumerate()
                .map(|(i, word)| upper(i, word));
            raw(ty, spread)
        }
        ElementKind::Complex => {
            let parts = decode_all(&array(ty.real_part(), corners(ty.real_part())));
            let float = |x: &Number| match x {
                Number::Float(x) => *x,
                _ => 0.0,
            };
            let pairs = parts.iter().flat_map(|a| parts.iter().map(move |b| (a, b)));
            array(ty, pairs.map(|(a, b)| Number::Complex(float(a), float(b))))
        }
    }
}

/// All pairs of values of a type of up to 8 bits, of others all pairs of corners.
pub fn grid(ty: PrimitiveType) -> (ArrayLiteral, ArrayLiteral) {
    let values = if ty.bit_width() <= 8 {
        decode_all(&sample(ty))
    } else {
        corners(ty)
    };
    let pairs = || {
        values
            .iter()
            .flat_map(|a| values.iter().map(move |b| (*a, *b)))
    };
    (
        array(ty, pairs().map(|(a, _)| a)),
        array(ty, pairs().map(|(_, b)| b)),
    )
}

fn cut(ty: PrimitiveType, x: Number) -> Number {
    match x {
        Number::Int(x) => Number::Int(reference::cut(ty, x)),
        other => other,
    }
}

/// Zeros, ones, ends of the range and what is beside them, NaN, numbers in between.
fn corners(ty: PrimitiveType) -> Vec<Number> {
    if ty.is_float() {
        let one = |exponent: i32| 2f64.powi(exponent);
        let (least, largest) = match ty {
            PrimitiveType::F64 => (-1022, f64::MAX),
            PrimitiveType::F32 => (-126, f64::from(f32::MAX)),
            PrimitiveType::BF16 => (-126, one(127) * 1.9921875),
            _ => (-14, 65504.0),
        };
        let plain = [
            0.0,
            1.0,
            0.5,
            1.5,
            2.0,
            2.5,
            3.0,
            3.5,
            5.0,
            7.25,
            10.0,
            0.1,
            1.0 / 3.0,
            31.0,
            100.25,
            255.0,
            one(-8),
            one(-11),
            one(11) + 1.0,
            one(15),
            one(24) - 1.0,
            one(31),
            one(63),
            one(64),
            1e30,
            one(least),
            one(least) * 0.5,
            one(least) * 1.5,
            one(least + 1),
            largest,
            largest * 0.75,
            f64::INFINITY,
            f64::NAN,
        ];
        let both = plain.iter().flat_map(|&x| [x, -x]).map(Number::Float);
        return decode_all(&array(ty, both));
    }
    let (low, high) = reference::range(ty);
    let near = [
        0, 1, 2, 3, 5, 7, 8, 13, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 1000,
    ];
    let ends = [
        low,
        low + 1,
        low + 2,
        high,
        high - 1,
        high / 2,
        high / 2 + 1,
        high / 3,
    ];
    let all = near.iter().flat_map(|&x| [x, -x]).chain(ends);
    all.filter(|x| (low..=high).contains(x))
        .map(Number::Int)
        .collect()
}

/// The numbers of an array.
pub fn decode_all(array: &ArrayLiteral) -> Vec<Number> {
    let elements = array.bytes().chunks_exact(array.ty().byte_width());
    elements
        .map(|bytes| number::decode(array.ty(), bytes))
        .collect()
}

/// A number of one or two parts.
pub fn number(parts: &[f64]) -> Number {
    match parts {
        [re, im] => Number::Complex(*re, *im),
        _ => Number::Float(parts[0]),
    }
}

/// The smallest normal number of the type that elements are computed in, where engines may take
/// smaller ones for zero. f16 and the small types are computed in f32, where theirs are normal.
fn smallest(ty: PrimitiveType) -> f64 {
    match ty {
        PrimitiveType::F64 | PrimitiveType::C128 => f64::MIN_POSITIVE,
        PrimitiveType::F32
        | PrimitiveType::BF16
        | PrimitiveType::F8E8M0FNU
        | PrimitiveType::C64 => f64::from(f32::MIN_POSITIVE),
        _ => 0.0,
    }
}

fn is_subnormal(ty: PrimitiveType, x: f64) -> bool {
    x != 0.0 && x.abs() < smallest(ty)
}

/// The zero that an engine may read in place of a subnormal number.
pub fn flushed(ty: PrimitiveType, x: Number) -> Option<Number> {
    match x {
        Number::Float(x) if is_subnormal(ty, x) => Some(Number::Float(0f64.copysign(x))),
        Number::Complex(re, im) => {
            let part = |x| {
                if is_subnormal(ty, x) {
                    0f64.copysign(x)
                } else {
                    x
                }
            };
            Some(Number::Complex(part(re), part(im)))
        }
        _ => None,
    }
}

/// `compare` of two numbers; directions end in `total` for the total order of floats.
pub fn compare(direction: &str, a: Number, b: Number) -> bool {
    let (direction, total) = match direction.strip_suffix(" total") {
        Some(direction) => (direction, true),
        None => (direction, false),
    };
    let order = match (a, b) {
        (Number::Int(a), Number::Int(b)) => Some(a.cmp(&b)),
        (Number::Float(a), Number::Float(b)) if total => Some(a.total_cmp(&b)),
        (Number::Float(a), Number::Float(b)) => a.partial_cmp(&b),
        _ => None,
    };
    let is = |holds: fn(std::cmp::Ordering) -> bool| order.is_some_and(holds);
    match direction {
        "EQ" => is(std::cmp::Ordering::is_eq),
        "NE" => !is(std::cmp::Ordering::is_eq),
        "LT" => is(std::cmp::Ordering::is_lt),
        "LE" => is(std::cmp::Ordering::is_le),
        "GT" => is(std::cmp::Ordering::is_gt),
        _ => is(std::cmp::Ordering::is_ge),
    }
}

/// Scales are computed in f32: what is too small for that is zero, which no scale is.
fn is_too_small(want: Number, flushed: Option<Number>) -> bool {
    let is_small = matches!(want, Number::Float(x) if x <= 2f64.powi(-126));
    flushed.is_some_and(|flushed| flushed != want) || is_small
}

/// The worst of many results.
pub struct Worst {
    ty: PrimitiveType,
    ulp: f64,
    at: String,
}

impl Worst {
    /// For results of a type.
    pub fn new(ty: PrimitiveType) -> Self {
        Self {
            ty,
            ulp: 0.0,
            at: String::new(),
        }
    }

    /// Adds a result; `flushed` is what it may be instead where subnormal numbers are zero.
    pub fn add(&mut self, inputs: &[Number], want: Number, flushed: Option<Number>, got: Number) {
        let mut off = self.distance(want, got);
        if self.ty == PrimitiveType::F8E8M0FNU && is_too_small(want, flushed) {
            return;
        }
        if let Some(flushed) = flushed {
            off = off.min(self.distance(flushed, got));
        }
        if off > self.ulp {
            self.ulp = off;
            self.at = format!("{inputs:?} gives {got:?}, wanted {want:?}");
        }
    }

    /// Notes the worst under the name of the op.
    pub fn finish(
        self,
        op: &str,
        ty: PrimitiveType,
        accuracy: &mut Accuracy,
    ) -> Result<(), Failed> {
        if self.ulp.is_infinite() {
            return Err(format!("{op} of {ty}: {}", self.at).into());
        }
        if self.ulp > 0.0 {
            // One digit after the point, upwards.
            let ulp = (self.ulp * 10.0).ceil() / 10.0;
            accuracy.insert((op.to_owned(), ty.name()), (ulp, self.at));
        }
        Ok(())
    }

    /// In units of the last place of the right value; infinite when nothing excuses it.
    fn distance(&self, want: Number, got: Number) -> f64 {
        match (want, got) {
            (Number::Float(want), Number::Float(got)) => self.float_distance(want, got),
            (Number::Complex(a, b), Number::Complex(c, d)) => {
                let size = a.hypot(b);
                if !size.is_finite() {
                    return self.float_distance(a, c).max(self.float_distance(b, d));
                }
                // Of the whole number, not of its parts.
                let unit = match self.ty {
                    PrimitiveType::C64 => {
                        let size = size as f32;
                        f64::from(size.next_up()) - f64::from(size)
                    }
                    _ => size.next_up() - size,
                };
                let off = (a - c).abs().max((b - d).abs());
                if off < smallest(self.ty) {
                    0.0
                } else {
                    off / unit
                }
            }
            _ if want == got => 0.0,
            _ => f64::INFINITY,
        }
    }

    fn float_distance(&self, want: f64, got: f64) -> f64 {
        if want.is_nan() && got.is_nan() {
            return 0.0;
        }
        if want.is_nan() || got.is_nan() {
            return f64::INFINITY;
        }
        let is_zero = |x: f64| x == 0.0 || is_subnormal(self.ty, x);
        if is_zero(want) && is_zero(got) && (want != 0.0 || got != 0.0) {
            return 0.0;
        }
        let signs_differ = want.is_sign_negative() != got.is_sign_negative();
        if want == 0.0 && got == 0.0 && signs_differ && self.has_nan() {
            return f64::INFINITY;
        }
        (self.ordinal(want) - self.ordinal(got)).unsigned_abs() as f64
    }

    /// In types without NaN a zero of either sign stands for it.
    fn has_nan(&self) -> bool {
        use PrimitiveType as T;
        !matches!(self.ty, T::F4E2M1FN | T::F6E2M3FN | T::F6E3M2FN)
    }

    /// The number of a value of the type in their order.
    fn ordinal(&self, x: f64) -> i128 {
        let ty = if self.ty.kind() == ElementKind::Complex {
            self.ty.real_part()
        } else {
            self.ty
        };
        let magnitude = i128::from(number::float_from_f64(ty, x.abs()));
        if x.is_sign_negative() {
            -magnitude
        } else {
            magnitude
        }
    }
}
