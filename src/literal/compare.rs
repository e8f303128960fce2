//! Comparison of values: how close is close enough, and the first mismatch in words.
//!
//! An element passes when both are NaN (a complex value is NaN when a part is), when the values are
//! equal, when `|got - wanted| <= atol + rtol * |wanted|`, or, for real floats, when at most `ulp`
//! representable values lie between them. Of a complex value with one infinite part, that part is
//! equal and the other within its own tolerance. The rest is as in the corpus's `compare.py`.
//! Integers and preds are equal or not, unless `atol` is set.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::shape::Dims;
use crate::shape::ElementKind;
use crate::shape::PrimitiveType;
use crate::shape::index::multi_index;

/// How far a value may be from the wanted one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tolerance {
    /// Relative to the wanted value.
    pub rtol: f64,
    /// Absolute.
    pub atol: f64,
    /// Representable values apart.
    pub ulp: u64,
    /// Whether zeros of different sign differ.
    pub signed_zero: bool,
    /// Share of the elements that may fail.
    pub mismatch_fraction: f64,
    /// Whether any two non-finite complex values pass.
    pub any_nonfinite: bool,
}

impl Tolerance {
    /// Equal values only; NaN equals NaN, and zeros are equal whatever their signs.
    pub const EXACT: Self = Self {
        rtol: 0.0,
        atol: 0.0,
        ulp: 0,
        signed_zero: false,
        mismatch_fraction: 0.0,
        any_nonfinite: false,
    };
}

/// One element that does not pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// Where.
    pub index: Dims,
    /// What was computed, printed.
    pub got: String,
    /// What was wanted, printed.
    pub wanted: String,
    /// Representable values apart, for real floats that are not NaN.
    pub ulps: Option<u64>,
}

/// What a comparison found.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Elements compared.
    pub elements: usize,
    /// Elements that do not pass.
    pub mismatches: usize,
    /// The first of them in row-major order.
    pub first: Option<Mismatch>,
    /// Largest absolute difference of finite values.
    pub max_error: f64,
    /// Largest distance in representable values of real floats that are not NaN.
    pub max_ulps: u64,
    /// Whether the values are close enough.
    pub passed: bool,
}

impl Comparison {
    /// The finding in one sentence.
    pub fn describe(&self) -> String {
        let Some(first) = &self.first else {
            return format!(
                "{} elements equal within tolerance, largest error {:e}",
                self.elements, self.max_error
            );
        };
        let ulps = first.ulps.map(|ulps| format!(", {ulps} ulp apart"));
        format!(
            "{} of {} elements differ; first at {:?}: got {}, wanted {}{}; largest error {:e}",
            self.mismatches,
            self.elements,
            first.index.as_slice(),
            first.got,
            first.wanted,
            ulps.unwrap_or_default(),
            self.max_error
        )
    }
}

/// Compares two arrays of equal shape.
///
/// # Errors
/// `XA8005` when element types or dimensions differ.
pub fn compare(
    got: &ArrayLiteral,
    wanted: &ArrayLiteral,
    tolerance: &Tolerance,
) -> Result<Comparison> {
    let (a, b) = (got.shape(), wanted.shape());
    if a.ty != b.ty || a.dims != b.dims {
        return Err(Diagnostic::error(
            codes::RESULT_MISMATCH,
            format!(
                "got {}{:?}, wanted {}{:?}",
                a.ty,
                a.dims.as_slice(),
                b.ty,
                b.dims.as_slice()
            ),
        ));
    }
    let mut found = Comparison {
        elements: got.len(),
        mismatches: 0,
        first: None,
        max_error: 0.0,
        max_ulps: 0,
        passed: true,
    };
    for i in 0..got.len() {
        let (g, w) = (got.element(i), wanted.element(i));
        if g == w {
            continue;
        }
        let verdict = judge(a.ty, g, w, tolerance);
        if verdict.error.is_finite() {
            found.max_error = found.max_error.max(verdict.error);
        }
        found.max_ulps = found.max_ulps.max(verdict.ulps.unwrap_or(0));
        if !verdict.passes {
            found.mismatches += 1;
            found.first.get_or_insert_with(|| Mismatch {
                index: multi_index(&a.dims, i),
                got: element_text(a.ty, g),
                wanted: element_text(a.ty, w),
                ulps: verdict.ulps,
            });
        }
    }
    let allowed = (tolerance.mismatch_fraction * found.elements as f64).floor();
    found.passed = found.mismatches as f64 <= allowed;
    Ok(found)
}

/// Compares every array leaf of two values.
///
/// # Errors
/// `XA8005` when the structures differ.
pub fn compare_all(
    got: &Literal,
    wanted: &Literal,
    tolerance: &Tolerance,
) -> Result<Vec<Comparison>> {
    match (got, wanted) {
        (Literal::Array(got), Literal::Array(wanted)) => Ok(vec![compare(got, wanted, tolerance)?]),
        (Literal::Tuple(got), Literal::Tuple(wanted)) if got.len() == wanted.len() => {
            let mut all = Vec::new();
            for (got, wanted) in got.iter().zip(wanted) {
                all.extend(compare_all(got, wanted, tolerance)?);
            }
            Ok(all)
        }
        (Literal::Token, Literal::Token) => Ok(Vec::new()),
        (Literal::Array(_) | Literal::Tuple(_) | Literal::Token, _) => Err(Diagnostic::error(
            codes::RESULT_MISMATCH,
            "the two values are tuples of different structure",
        )),
    }
}

struct Verdict {
    passes: bool,
    error: f64,
    ulps: Option<u64>,
}

fn judge(ty: PrimitiveType, got: &[u8], wanted: &[u8], tolerance: &Tolerance) -> Verdict {
    match ty.kind() {
        ElementKind::Pred | ElementKind::Signed | ElementKind::Unsigned => {
            let error = integer(ty, got).abs_diff(integer(ty, wanted)) as f64;
            Verdict {
                passes: error == 0.0 || error <= tolerance.atol,
                error,
                ulps: None,
            }
        }
        ElementKind::Float => judge_real(ty, got, wanted, tolerance),
        ElementKind::Complex => {
            let part = ty.real_part();
            let (a, b) = (parts(part, got), parts(part, wanted));
            judge_complex(a, b, tolerance)
        }
    }
}

fn judge_real(ty: PrimitiveType, got: &[u8], wanted: &[u8], tolerance: &Tolerance) -> Verdict {
    let (a, b) = (real(ty, got), real(ty, wanted));
    if a.is_nan() || b.is_nan() {
        return Verdict {
            passes: a.is_nan() && b.is_nan(),
            error: f64::NAN,
            ulps: None,
        };
    }
    let ulps = ordered(ty, got).abs_diff(ordered(ty, wanted));
    let error = if a == b { 0.0 } else { (a - b).abs() };
    let near = error.is_finite() && error <= tolerance.atol + tolerance.rtol * b.abs();
    let mut passes = a == b || near || ulps <= tolerance.ulp;
    if tolerance.signed_zero && a == 0.0 && b == 0.0 {
        passes = a.is_sign_negative() == b.is_sign_negative();
    }
    Verdict {
        passes,
        error,
        ulps: Some(ulps),
    }
}

fn judge_complex(a: [f64; 2], b: [f64; 2], tolerance: &Tolerance) -> Verdict {
    let is_nan = |v: [f64; 2]| v[0].is_nan() || v[1].is_nan();
    let is_finite = |v: [f64; 2]| v[0].is_finite() && v[1].is_finite();
    let same = |x: f64, y: f64| x == y || (x.is_nan() && y.is_nan());
    let equal = same(a[0], b[0]) && same(a[1], b[1]);
    let error = (a[0] - b[0]).hypot(a[1] - b[1]);
    let bound = tolerance.atol + tolerance.rtol * b[0].hypot(b[1]);
    let near = is_finite(a) && is_finite(b) && error <= bound;
    // Beside an infinite part that is right, the other part has its own tolerance.
    let beside = |at: usize| {
        let (x, y) = (a[1 - at], b[1 - at]);
        a[at].is_infinite() && a[at] == b[at] && y.is_finite() && {
            (x - y).abs() <= tolerance.atol + tolerance.rtol * y.abs()
        }
    };
    let near = near || beside(0) || beside(1);
    let wild = tolerance.any_nonfinite && !is_finite(a) && !is_finite(b);
    Verdict {
        passes: equal || (is_nan(a) && is_nan(b)) || near || wild,
        error: if equal { 0.0 } else { error },
        ulps: None,
    }
}

fn parts(part: PrimitiveType, bytes: &[u8]) -> [f64; 2] {
    let (re, im) = bytes.split_at(part.byte_width());
    [real(part, re), real(part, im)]
}

fn bits(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(wide)
}

/// The value of an integer or pred element.
fn integer(ty: PrimitiveType, bytes: &[u8]) -> i128 {
    let raw = bits(bytes);
    if ty.is_signed() {
        let unused = 64 - 8 * bytes.len();
        i128::from((raw << unused).cast_signed() >> unused)
    } else {
        i128::from(raw)
    }
}

/// Exponent bits, mantissa bits and bias of a float type.
fn float_format(ty: PrimitiveType) -> (u32, u32, i32) {
    match ty {
        PrimitiveType::F4E2M1FN => (2, 1, 1),
        PrimitiveType::F6E2M3FN => (2, 3, 1),
        PrimitiveType::F6E3M2FN => (3, 2, 3),
        PrimitiveType::F8E3M4 => (3, 4, 3),
        PrimitiveType::F8E4M3 | PrimitiveType::F8E4M3FN => (4, 3, 7),
        PrimitiveType::F8E4M3B11FNUZ => (4, 3, 11),
        PrimitiveType::F8E4M3FNUZ => (4, 3, 8),
        PrimitiveType::F8E5M2 => (5, 2, 15),
        PrimitiveType::F8E5M2FNUZ => (5, 2, 16),
        PrimitiveType::F8E8M0FNU => (8, 0, 127),
        PrimitiveType::BF16 => (8, 7, 127),
        PrimitiveType::F16 => (5, 10, 15),
        PrimitiveType::F32 => (8, 23, 127),
        _ => (11, 52, 1023),
    }
}

/// The value of a float element; every narrow value is exact in f64.
fn real(ty: PrimitiveType, bytes: &[u8]) -> f64 {
    let raw = bits(bytes);
    match ty {
        PrimitiveType::F64 => return f64::from_bits(raw),
        PrimitiveType::F32 => return f64::from(f32::from_bits(low32(raw))),
        PrimitiveType::F8E8M0FNU if raw == 255 => return f64::NAN,
        PrimitiveType::F8E8M0FNU => return 2f64.powi(low32(raw).cast_signed() - 127),
        _ => {}
    }
    let (exponent_bits, mantissa_bits, bias) = float_format(ty);
    let magnitude = raw & ((1 << (exponent_bits + mantissa_bits)) - 1);
    let negative = raw >> (exponent_bits + mantissa_bits) & 1 == 1;
    let exponent = low32(magnitude >> mantissa_bits).cast_signed();
    let mantissa = magnitude & ((1 << mantissa_bits) - 1);
    let top = (1 << exponent_bits) - 1;
    let all_ones = (1 << mantissa_bits) - 1;
    let value = match ty {
        PrimitiveType::F8E4M3FN if exponent == top && mantissa == all_ones => f64::NAN,
        PrimitiveType::F8E4M3B11FNUZ | PrimitiveType::F8E4M3FNUZ | PrimitiveType::F8E5M2FNUZ
            if negative && magnitude == 0 =>
        {
            f64::NAN
        }
        PrimitiveType::F8E3M4
        | PrimitiveType::F8E4M3
        | PrimitiveType::F8E5M2
        | PrimitiveType::F16
        | PrimitiveType::BF16
            if exponent == top =>
        {
            if mantissa == 0 {
                f64::INFINITY
            } else {
                f64::NAN
            }
        }
        _ => {
            let width = mantissa_bits.cast_signed();
            let (significand, power) = if exponent == 0 {
                (mantissa, 1 - bias - width)
            } else {
                (mantissa | 1 << mantissa_bits, exponent - bias - width)
            };
            significand as f64 * 2f64.powi(power)
        }
    };
    if negative { -value } else { value }
}

/// Bits of the mantissa of a float type, or of the parts of a complex one.
pub fn precision(ty: PrimitiveType) -> u32 {
    float_format(ty.real_part()).1
}

/// The largest size of the finite elements; 0 when there are none.
pub fn largest(value: &ArrayLiteral) -> f64 {
    let ty = value.ty();
    let size = |bytes: &[u8]| match ty.kind() {
        ElementKind::Pred | ElementKind::Signed | ElementKind::Unsigned => {
            integer(ty, bytes).unsigned_abs() as f64
        }
        ElementKind::Float => real(ty, bytes).abs(),
        ElementKind::Complex => {
            let [re, im] = parts(ty.real_part(), bytes);
            re.hypot(im)
        }
    };
    let sizes = (0..value.len()).map(|i| size(value.element(i)));
    sizes.filter(|size| size.is_finite()).fold(0.0, f64::max)
}

fn low32(raw: u64) -> u32 {
    (raw & 0xffff_ffff) as u32
}

/// An integer that orders float elements as their values, next values next to each other.
fn ordered(ty: PrimitiveType, bytes: &[u8]) -> i64 {
    let raw = bits(bytes);
    if ty == PrimitiveType::F8E8M0FNU {
        return raw.cast_signed();
    }
    let (exponent_bits, mantissa_bits, _) = float_format(ty);
    let sign = 1u64 << (exponent_bits + mantissa_bits);
    let magnitude = (raw & (sign - 1)).cast_signed();
    if raw & sign == 0 {
        magnitude
    } else {
        -magnitude
    }
}

/// An element as diagnostics print it.
pub fn element_text(ty: PrimitiveType, bytes: &[u8]) -> String {
    match ty.kind() {
        ElementKind::Pred => (bits(bytes) != 0).to_string(),
        ElementKind::Signed | ElementKind::Unsigned => integer(ty, bytes).to_string(),
        ElementKind::Float if ty == PrimitiveType::F32 => {
            format!("{:?}", f32::from_bits(low32(bits(bytes))))
        }
        ElementKind::Float => format!("{:?}", real(ty, bytes)),
        ElementKind::Complex => {
            let [re, im] = parts(ty.real_part(), bytes);
            format!("({re:?}, {im:?})")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::ArrayShape;

    fn f32s(values: &[f32]) -> ArrayLiteral {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        ArrayLiteral::new(ArrayShape::new(PrimitiveType::F32, [values.len()]), bytes)
    }

    fn passes(got: f32, wanted: f32, tolerance: Tolerance) -> bool {
        let found = compare(&f32s(&[got]), &f32s(&[wanted]), &tolerance).unwrap();
        found.passed
    }

    #[test]
    fn special_values() {
        let exact = Tolerance::EXACT;
        let loose = Tolerance {
            rtol: 1.0,
            atol: 1.0,
            ..exact
        };
        assert!(passes(f32::NAN, -f32::NAN, exact));
        assert!(!passes(f32::NAN, 0.0, loose));
        assert!(!passes(f32::INFINITY, f32::NEG_INFINITY, loose));
        assert!(!passes(1e38, f32::INFINITY, loose));
        assert!(passes(0.0, -0.0, exact));
        assert!(!passes(
            0.0,
            -0.0,
            Tolerance {
                signed_zero: true,
                ..loose
            }
        ));
    }

    #[test]
    fn beside_an_infinite_part_the_other_has_its_tolerance() {
        let (inf, one) = (f32::INFINITY, 1.0f32);
        let loose = Tolerance {
            rtol: 1e-6,
            ..Tolerance::EXACT
        };
        let passes = |got: [f32; 2], wanted: [f32; 2]| {
            let array = |parts: [f32; 2]| {
                let bytes = parts.iter().flat_map(|v| v.to_le_bytes()).collect();
                ArrayLiteral::new(ArrayShape::new(PrimitiveType::C64, [1]), bytes)
            };
            compare(&array(got), &array(wanted), &loose).unwrap().passed
        };
        assert!(passes([inf, one.next_up()], [inf, one]));
        assert!(passes([one.next_down(), -inf], [one, -inf]));
        assert!(!passes([inf, 1.1], [inf, one]));
        assert!(!passes([-inf, one], [inf, one]));
        assert!(!passes([1e38, one], [inf, one]));
        assert!(!passes([inf, inf], [inf, one]));
        assert!(passes([inf, -inf], [inf, -inf]));
        assert!(!passes([inf, f32::NAN], [inf, one]));
    }

    #[test]
    fn ulps_count_representable_values_across_zero() {
        let one_ulp = Tolerance {
            ulp: 1,
            ..Tolerance::EXACT
        };
        assert!(passes(1.0f32.next_up(), 1.0, one_ulp));
        assert!(!passes(1.0f32.next_up().next_up(), 1.0, one_ulp));
        let two = Tolerance {
            ulp: 2,
            ..Tolerance::EXACT
        };
        assert!(passes(0.0f32.next_up(), 0.0f32.next_down(), two));
        assert!(!passes(0.0f32.next_up(), 0.0f32.next_down(), one_ulp));
    }

    #[test]
    fn the_first_mismatch_is_told_in_words() {
        let shape = ArrayShape::new(PrimitiveType::S32, [2, 2]);
        let array = |values: [i32; 4]| {
            let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            ArrayLiteral::new(shape.clone(), bytes)
        };
        let (got, wanted) = (array([1, 2, -3, 4]), array([1, 2, 3, 5]));
        let found = compare(&got, &wanted, &Tolerance::EXACT).unwrap();
        assert_eq!(
            found.describe(),
            "2 of 4 elements differ; first at [1, 0]: got -3, wanted 3; largest error 6e0"
        );
        let half = Tolerance {
            mismatch_fraction: 0.5,
            ..Tolerance::EXACT
        };
        assert!(compare(&got, &wanted, &half).unwrap().passed);
    }

    #[test]
    fn narrow_floats_have_their_values() {
        let value = |ty, bits: u8| real(ty, &[bits]);
        assert_eq!(value(PrimitiveType::F8E4M3FN, 0x7e), 448.0);
        assert!(value(PrimitiveType::F8E4M3FN, 0x7f).is_nan());
        assert_eq!(value(PrimitiveType::F8E5M2, 0x7b), 57344.0);
        assert_eq!(value(PrimitiveType::F8E5M2, 0xfc), f64::NEG_INFINITY);
        assert_eq!(value(PrimitiveType::F8E4M3FNUZ, 0x7f), 240.0);
        assert!(value(PrimitiveType::F8E4M3FNUZ, 0x80).is_nan());
        assert_eq!(value(PrimitiveType::F8E4M3B11FNUZ, 0x7f), 30.0);
        assert_eq!(value(PrimitiveType::F8E5M2FNUZ, 0x7f), 57344.0);
        assert_eq!(value(PrimitiveType::F8E3M4, 0x6f), 15.5);
        assert_eq!(value(PrimitiveType::F4E2M1FN, 7), 6.0);
        assert_eq!(value(PrimitiveType::F8E8M0FNU, 128), 2.0);
        assert_eq!(real(PrimitiveType::BF16, &[0x80, 0xbf]), -1.0);
        assert_eq!(real(PrimitiveType::F16, &[0x01, 0x00]), 2f64.powi(-24));
    }
}
