//! Floats as MLIR prints them: six digits when they say it all, else as many as the format has, else
//! the bits.

use std::fmt::Write;

use crate::literal::number;
use crate::mlir::types::FloatKind;

/// A number in its format.
pub(super) fn write_float(bits: u64, kind: FloatKind, out: &mut String) {
    if let Some(primitive) = kind.primitive() {
        let value = number::float_to_f64(primitive, bits);
        let reads_back = |text: &str| {
            let value: f64 = text.parse().unwrap_or(f64::NAN);
            number::float_from_f64(primitive, value) == bits
        };
        let short = six_digits(value);
        if value.is_finite() && reads_back(&short) {
            return out.push_str(&short);
        }
        let exact = all_digits(value, 2 + significant_bits(kind) * 59 / 196);
        if value.is_finite() && exact.contains('.') && reads_back(&exact) {
            return out.push_str(&exact);
        }
    }
    let digits = kind.bit_width().div_ceil(4);
    let _ = write!(out, "0x{bits:0digits$X}");
}

/// A number of type `f64` that has a point; the bits of what is no number.
pub(super) fn write_decimal(value: f64, out: &mut String) {
    if !value.is_finite() {
        let _ = write!(out, "0x{:016X}", value.to_bits());
        return;
    }
    let short = six_digits(value);
    if short.parse() == Ok(value) {
        return out.push_str(&short);
    }
    let exact = all_digits(value, 17);
    out.push_str(&exact);
    out.push_str(if exact.contains('.') { "" } else { ".0" });
}

/// Bits of the significand, the hidden one included.
fn significant_bits(kind: FloatKind) -> usize {
    match kind {
        FloatKind::F4E2M1FN => 2,
        FloatKind::F6E3M2FN | FloatKind::F8E5M2 | FloatKind::F8E5M2FNUZ => 3,
        FloatKind::F6E2M3FN
        | FloatKind::F8E4M3
        | FloatKind::F8E4M3FN
        | FloatKind::F8E4M3FNUZ
        | FloatKind::F8E4M3B11FNUZ => 4,
        FloatKind::F8E3M4 => 5,
        FloatKind::F8E8M0FNU => 1,
        FloatKind::BF16 => 8,
        FloatKind::F16 | FloatKind::TF32 => 11,
        FloatKind::F32 => 24,
        FloatKind::F64 => 53,
        FloatKind::F80 => 64,
        FloatKind::F128 => 113,
    }
}

/// `1.500000e+00`: six digits and a zero, and an exponent of two digits or more.
fn six_digits(value: f64) -> String {
    let text = format!("{value:.5e}");
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return text;
    };
    match exponent.strip_prefix('-') {
        Some(exponent) => format!("{mantissa}0e-{exponent:0>2}"),
        None => format!("{mantissa}0e+{exponent:0>2}"),
    }
}

/// Up to so many digits: as `0.00123` or `123.4` when no more than three zeros pad it, else as
/// `1.234E+20`. A whole number has no point.
fn all_digits(value: f64, precision: usize) -> String {
    let text = format!("{:.*e}", precision.saturating_sub(1), value.abs());
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return text;
    };
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_end_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    let first: i32 = exponent.parse().unwrap_or(0);
    let count = digits.len() as i32;
    let last = first - (count - 1);
    let scientific = match (last >= 0, first >= 0) {
        (true, _) => last > 3 || count + last > precision as i32,
        (false, true) => false,
        (false, false) => -first > 3,
    };
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if scientific {
        let (head, tail) = digits.split_at(1);
        let tail = if tail.is_empty() { "0" } else { tail };
        let side = if first < 0 { '-' } else { '+' };
        format!("{sign}{head}.{tail}E{side}{}", first.abs())
    } else if last >= 0 {
        format!("{sign}{digits}{}", "0".repeat(last as usize))
    } else if first >= 0 {
        let (whole, fraction) = digits.split_at(first as usize + 1);
        format!("{sign}{whole}.{fraction}")
    } else {
        format!("{sign}0.{}{digits}", "0".repeat((-first - 1) as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kind: FloatKind, value: f64) -> String {
        let mut out = String::new();
        let primitive = kind.primitive().expect("a type of HLO");
        write_float(number::float_from_f64(primitive, value), kind, &mut out);
        out
    }

    #[test]
    fn floats_look_as_mlir_prints_them() {
        // As jaxlib 0.10.2 prints them.
        let cases = [
            (FloatKind::F32, 1.0, "1.000000e+00"),
            (FloatKind::F32, 3.14159274, "3.14159274"),
            (FloatKind::F32, -0.0, "-0.000000e+00"),
            (FloatKind::F32, 1.23456789e20, "1.2345679E+20"),
            (FloatKind::F32, 1.23456789e-5, "1.23456794E-5"),
            (FloatKind::F32, 16777217.5, "0x4B800001"),
            (FloatKind::F32, 0.001234567, "0.00123456703"),
            (FloatKind::F64, 0.1, "1.000000e-01"),
            (FloatKind::F64, std::f64::consts::PI, "3.1415926535897931"),
            (FloatKind::F64, 123_456_789.0, "0x419D6F3454000000"),
            (FloatKind::F32, f64::NAN, "0x7FC00000"),
            (FloatKind::F32, f64::NEG_INFINITY, "0xFF800000"),
            (FloatKind::F32, 100_000.5, "100000.5"),
            (FloatKind::F32, 33_554_434.0, "0x4C000000"),
            (FloatKind::F64, 1_000_001.0, "0x412E848200000000"),
            (FloatKind::F64, 0.000_123_456_789, "1.23456789E-4"),
            (FloatKind::F16, 12345.678, "1.234400e+04"),
            (FloatKind::BF16, 1.0 / 3.0, "3.339840e-01"),
        ];
        for (kind, value, text) in cases {
            assert_eq!(shown(kind, value), text);
        }
    }
}
