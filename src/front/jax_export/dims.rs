//! Sizes that an export leaves open: expressions of dimension variables, and what they are.
//!
//! An expression is a sum of products of numbers, variables, powers, and `mod`, `floordiv`, `max`
//! and `min` of two expressions, as `jax/_src/export/shape_poly.py` prints and reads them. Division
//! rounds toward minus infinity, and the remainder has the sign of the divisor.

use std::collections::BTreeMap;

use crate::base::Cursor;
use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::base::text::MAX_NESTING;

/// The size of each dimension variable.
pub type Sizes = BTreeMap<String, u64>;

/// Largest number on the way to a size.
const LARGEST: i128 = 1 << 100;

/// What an expression is with these variables.
///
/// # Errors
/// The text of what is wrong: the name of a variable without a size, or a size that cannot be.
pub(super) fn evaluate(text: &str, dims: &Sizes) -> Result<usize> {
    let mut cursor = Cursor::new(text);
    let value = sum(&mut cursor, dims, 0)?;
    if !cursor.at_end() {
        return Err(cursor.unexpected("`+`, `-`, `*` or `^`"));
    }
    usize::try_from(value).map_err(|_| wrong(format!("the dimension `{text}` is {value}")))
}

/// The variables of an expression.
pub(super) fn variables(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let is_variable = |word: &&str| {
        word.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && !matches!(*word, "mod" | "floordiv" | "max" | "min")
    };
    words.filter(is_variable).collect()
}

fn wrong(message: String) -> Box<Diagnostic> {
    Diagnostic::error(codes::INPUT_MISMATCH, message)
}

fn checked(value: Option<i128>) -> Result<i128> {
    let value = value.filter(|value| value.abs() <= LARGEST);
    value.ok_or_else(|| wrong("a dimension is too large".to_owned()))
}

fn sum(cursor: &mut Cursor<'_>, dims: &Sizes, depth: usize) -> Result<i128> {
    if depth > MAX_NESTING {
        return Err(cursor.too_deep());
    }
    let mut total = 0;
    let mut sign = match cursor.peek() {
        b'-' => -1,
        _ => 1,
    };
    if matches!(cursor.peek(), b'-' | b'+') {
        cursor.set_pos(cursor.pos() + 1);
    }
    loop {
        let term = product(cursor, dims, depth)?;
        total = checked(Some(total + sign * term))?;
        sign = match cursor.peek() {
            b'+' => 1,
            b'-' => -1,
            _ => return Ok(total),
        };
        cursor.set_pos(cursor.pos() + 1);
    }
}

fn product(cursor: &mut Cursor<'_>, dims: &Sizes, depth: usize) -> Result<i128> {
    let mut total = 1;
    loop {
        let base = factor(cursor, dims, depth)?;
        let mut value = base;
        if cursor.eat("^") {
            let power = cursor.integer()?;
            let power = u32::try_from(power).map_err(|_| cursor.unexpected("a power"))?;
            value = checked(base.checked_pow(power))?;
        }
        total = checked(i128::checked_mul(total, value))?;
        if !cursor.eat("*") {
            return Ok(total);
        }
    }
}

fn factor(cursor: &mut Cursor<'_>, dims: &Sizes, depth: usize) -> Result<i128> {
    if matches!(cursor.peek(), b'-' | b'0'..=b'9') {
        return cursor.integer().map(i128::from);
    }
    cursor.skip_space();
    let name = cursor.take_while(|b| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80);
    if name.is_empty() {
        return Err(cursor.unexpected("a number or a dimension variable"));
    }
    if !matches!(name, "mod" | "floordiv" | "max" | "min") {
        let found = dims.get(name).map(|&size| i128::from(size));
        return found.ok_or_else(|| wrong(format!("the dimension variable `{name}` has no size")));
    }
    cursor.expect("(")?;
    let left = sum(cursor, dims, depth + 1)?;
    cursor.expect(",")?;
    let right = sum(cursor, dims, depth + 1)?;
    cursor.expect(")")?;
    match name {
        "max" => Ok(left.max(right)),
        "min" => Ok(left.min(right)),
        _ if right == 0 => Err(wrong("a dimension is divided by zero".to_owned())),
        _ => {
            let (quotient, remainder) = (left / right, left % right);
            let is_between = remainder != 0 && (remainder < 0) != (right < 0);
            match name {
                "mod" if is_between => Ok(remainder + right),
                "mod" => Ok(remainder),
                _ => Ok(quotient - i128::from(is_between)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The right values are Python's.
    #[test]
    fn expressions_are_what_python_says() {
        let dims: Sizes = [("a", 7), ("b", 3), ("batch_1", 10)]
            .map(|(name, size)| (name.to_owned(), size))
            .into();
        for (text, wanted) in [
            ("5", 5),
            ("b", 3),
            ("2*b + 1", 7),
            ("- 1 + b", 2),
            ("a*b^2 - 3", 60),
            ("floordiv(a, 2)", 3),
            ("mod(a + b, 4)", 2),
            ("7 + floordiv(-7, 2)", 3),
            ("mod(- a, 4)", 1),
            ("3 + mod(a, -4)", 2),
            ("max(a, batch_1)*min(b, 2)", 20),
            ("-2*b + 6", 0),
            ("max(0, -1*a + mod(batch_1, 3)) + 1", 1),
        ] {
            assert_eq!(evaluate(text, &dims).unwrap(), wanted, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_is_told() {
        let dims: Sizes = [("a".to_owned(), 7)].into();
        for (text, wanted) in [
            ("b", "`b` has no size"),
            ("a - 8", "is -1"),
            ("mod(a, 0)", "divided by zero"),
            ("a^99", "too large"),
            ("a +", "a number or a dimension variable"),
            ("a 2", "`+`, `-`"),
            ("", "a number"),
            ("floor(a)", "`floor` has no size"),
        ] {
            let error = evaluate(text, &dims).unwrap_err().to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        }
        let deep = "max(1, ".repeat(100_000);
        assert!(evaluate(&deep, &dims).is_err());
        assert_eq!(variables("2*b + max(a_1, mod(b, 3))"), ["b", "a_1", "b"]);
    }
}
