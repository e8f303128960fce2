//! Constants and constant expressions, folded while they are read.
//!
//! Integers have 64 bits and are signed unless written with `U` or too large; an operation with one
//! unsigned side is unsigned. Decimal numbers and `0d...` are doubles. `0f...` keeps its bits and
//! takes part in no expression.

use super::lexer::Kind;
use super::lexer::Token;
use super::parser::Parser;
use crate::base::Result;
use crate::base::codes;

/// Lanes of a warp, which the language spells `WARP_SZ`.
const WARP_SIZE: u64 = 32;

/// A folded constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    /// 64 bits, signed.
    Signed(i64),
    /// 64 bits, unsigned.
    Unsigned(u64),
    /// Bits of a single.
    F32(u32),
    /// A double, by its bits.
    F64(u64),
}

impl Value {
    fn truth(v: bool) -> Self {
        Self::Signed(i64::from(v))
    }
    fn double(v: f64) -> Self {
        Self::F64(v.to_bits())
    }
    /// The 64 bits of an integer.
    fn bits(self) -> Option<u64> {
        match self {
            Self::Signed(v) => Some(v as u64),
            Self::Unsigned(v) => Some(v),
            Self::F32(_) | Self::F64(_) => None,
        }
    }
    /// As a double, as the usual conversions have it.
    fn as_double(self) -> Option<f64> {
        match self {
            Self::Signed(v) => Some(v as f64),
            Self::Unsigned(v) => Some(v as f64),
            Self::F64(v) => Some(f64::from_bits(v)),
            Self::F32(_) => None,
        }
    }
    fn is_true(self) -> Option<bool> {
        Some(match self {
            Self::F64(v) => f64::from_bits(v) != 0.0,
            _ => self.bits()? != 0,
        })
    }
}

/// The operators with two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Binary {
    OrElse,
    AndThen,
    Or,
    Xor,
    And,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Binary {
    /// How tightly it binds, from 1.
    fn strength(self) -> u8 {
        match self {
            Self::OrElse => 1,
            Self::AndThen => 2,
            Self::Or => 3,
            Self::Xor => 4,
            Self::And => 5,
            Self::Equal | Self::NotEqual => 6,
            Self::Less | Self::LessEqual | Self::Greater | Self::GreaterEqual => 7,
            Self::ShiftLeft | Self::ShiftRight => 8,
            Self::Add | Self::Subtract => 9,
            Self::Multiply | Self::Divide | Self::Remainder => 10,
        }
    }
    /// Applied to doubles.
    fn doubles(self, a: f64, b: f64) -> Option<Value> {
        Some(match self {
            Self::Add => Value::double(a + b),
            Self::Subtract => Value::double(a - b),
            Self::Multiply => Value::double(a * b),
            Self::Divide => Value::double(a / b),
            Self::Equal => Value::truth(a == b),
            Self::NotEqual => Value::truth(a != b),
            Self::Less => Value::truth(a < b),
            Self::LessEqual => Value::truth(a <= b),
            Self::Greater => Value::truth(a > b),
            Self::GreaterEqual => Value::truth(a >= b),
            _ => return None,
        })
    }
    /// Applied to signed integers.
    fn signed(self, a: i64, b: i64) -> Option<Value> {
        Some(match self {
            Self::Divide => Value::Signed(if b == 0 {
                return None;
            } else {
                a.wrapping_div(b)
            }),
            Self::Remainder => Value::Signed(if b == 0 {
                return None;
            } else {
                a.wrapping_rem(b)
            }),
            Self::Less => Value::truth(a < b),
            Self::LessEqual => Value::truth(a <= b),
            Self::Greater => Value::truth(a > b),
            Self::GreaterEqual => Value::truth(a >= b),
            Self::ShiftRight => Value::Signed(a >> (b as u64).min(63)),
            _ => match self.unsigned(a as u64, b as u64)? {
                Value::Unsigned(v) => Value::Signed(v as i64),
                other => other,
            },
        })
    }
    /// Applied to unsigned integers.
    fn unsigned(self, a: u64, b: u64) -> Option<Value> {
        let shift = |v: u64, f: fn(u64, u32) -> Option<u64>| {
            u32::try_from(b).ok().and_then(|b| f(v, b)).unwrap_or(0)
        };
        Some(match self {
            Self::Or => Value::Unsigned(a | b),
            Self::Xor => Value::Unsigned(a ^ b),
            Self::And => Value::Unsigned(a & b),
            Self::Equal => Value::truth(a == b),
            Self::NotEqual => Value::truth(a != b),
            Self::Less => Value::truth(a < b),
            Self::LessEqual => Value::truth(a <= b),
            Self::Greater => Value::truth(a > b),
            Self::GreaterEqual => Value::truth(a >= b),
            Self::ShiftLeft => Value::Unsigned(shift(a, u64::checked_shl)),
            Self::ShiftRight => Value::Unsigned(shift(a, u64::checked_shr)),
            Self::Add => Value::Unsigned(a.wrapping_add(b)),
            Self::Subtract => Value::Unsigned(a.wrapping_sub(b)),
            Self::Multiply => Value::Unsigned(a.wrapping_mul(b)),
            Self::Divide => Value::Unsigned(a.checked_div(b)?),
            Self::Remainder => Value::Unsigned(a.checked_rem(b)?),
            Self::OrElse => Value::truth(a != 0 || b != 0),
            Self::AndThen => Value::truth(a != 0 && b != 0),
        })
    }
    fn apply(self, a: Value, b: Value) -> Option<Value> {
        match (self, a, b) {
            (Self::OrElse, ..) => Some(Value::truth(a.is_true()? || b.is_true()?)),
            (Self::AndThen, ..) => Some(Value::truth(a.is_true()? && b.is_true()?)),
            (_, Value::F64(_), _) | (_, _, Value::F64(_)) => {
                self.doubles(a.as_double()?, b.as_double()?)
            }
            // A shift has the type of what is shifted.
            (_, Value::Signed(a), Value::Signed(b)) => self.signed(a, b),
            (Self::ShiftLeft | Self::ShiftRight, Value::Signed(a), Value::Unsigned(b)) => {
                self.signed(a, i64::try_from(b).unwrap_or(i64::MAX))
            }
            _ => self.unsigned(a.bits()?, b.bits()?),
        }
    }
}

impl<'a> Parser<'a> {
    /// A constant expression.
    pub(super) fn expression(&mut self) -> Result<Value> {
        // What is plain is most of what there is.
        if self.token.kind == Kind::Number {
            let value = self.number()?;
            let more = matches!(self.token.kind, Kind::Mark(mark)
                if !matches!(mark, b',' | b';' | b'}' | b']' | b')'));
            if !more && !self.at_percent_name() {
                return Ok(value);
            }
            let value = self.binary(Some(value), 1)?;
            return self.ternary(value);
        }
        let value = self.binary(None, 1)?;
        self.ternary(value)
    }
    /// A constant expression that is an integer; its 64 bits.
    pub(super) fn integer(&mut self) -> Result<i64> {
        let token = self.token;
        match self.expression()?.bits() {
            Some(bits) => Ok(bits as i64),
            None => Err(self.error_at(
                token,
                "found a floating-point number where an integer should stand",
            )),
        }
    }
    /// A literal that is an integer of 32 bits, and no expression: what counts and aligns.
    pub(super) fn literal_u32(&mut self) -> Result<u32> {
        let token = self.token;
        if token.kind != Kind::Number {
            return Err(self.unexpected("an integer"));
        }
        let value = self.number()?;
        let bits = value.bits().and_then(|bits| u32::try_from(bits).ok());
        bits.ok_or_else(|| self.error_at(token, "a number that is no integer of 32 bits"))
    }
    /// What is added to a name: `+4`, `+-4`, `+2*8`, again and again. A `-` without a `+` is no PTX.
    pub(super) fn offset(&mut self) -> Result<i64> {
        let mut sum = 0i64;
        while self.eat(b'+')? {
            let token = self.token;
            let strength = Binary::Multiply.strength();
            let Some(term) = self.binary(None, strength)?.bits() else {
                return Err(self.error_at(token, "found a floating-point number in an offset"));
            };
            sum = sum.wrapping_add(term as i64);
        }
        Ok(sum)
    }
    fn ternary(&mut self, condition: Value) -> Result<Value> {
        if self.token.kind != Kind::Mark(b'?') {
            return Ok(condition);
        }
        let token = self.token;
        self.enter()?;
        self.advance()?;
        let yes = self.expression()?;
        self.expect(b':')?;
        let no = self.expression()?;
        self.leave();
        let chosen = condition.is_true().and_then(|c| {
            let chosen = if c { yes } else { no };
            match (yes, no) {
                (Value::F64(_), Value::F64(_)) => Some(chosen),
                (Value::F64(_), _) | (_, Value::F64(_)) => Some(Value::double(chosen.as_double()?)),
                (Value::Signed(_), Value::Signed(_)) => Some(chosen),
                _ => Some(Value::Unsigned(chosen.bits()?)),
            }
        });
        chosen
            .ok_or_else(|| self.error_at(token, "a choice between values that do not go together"))
    }
    /// Operators of at least this strength, after `left` when it is read already.
    fn binary(&mut self, left: Option<Value>, strength: u8) -> Result<Value> {
        let mut left = match left {
            Some(value) => value,
            None => self.unary()?,
        };
        loop {
            let token = self.token;
            let Some((operator, marks)) = self.operator() else {
                return Ok(left);
            };
            if operator.strength() < strength {
                return Ok(left);
            }
            if marks == 0 {
                self.split_percent()?;
            }
            for _ in 0..marks {
                self.advance()?;
            }
            let right = self.binary(None, operator.strength() + 1)?;
            left = operator.apply(left, right).ok_or_else(|| {
                let text = &self.lexer.text()[token.start..token.start + marks.max(1)];
                let division = matches!(operator, Binary::Divide | Binary::Remainder);
                let message = match right.bits() {
                    Some(0) if division => "a constant is divided by zero".to_owned(),
                    _ => format!("`{text}` cannot be applied to constants of these types"),
                };
                self.error_at(token, message)
            })?;
        }
    }
    /// The operator that stands here, and how many marks it has. None: a `%` that opens a name.
    fn operator(&self) -> Option<(Binary, usize)> {
        let Kind::Mark(mark) = self.token.kind else {
            return self.at_percent_name().then_some((Binary::Remainder, 0));
        };
        let next = self.lexer.byte();
        Some(match (mark, next) {
            (b'|', b'|') => (Binary::OrElse, 2),
            (b'&', b'&') => (Binary::AndThen, 2),
            (b'=', b'=') => (Binary::Equal, 2),
            (b'!', b'=') => (Binary::NotEqual, 2),
            (b'<', b'<') => (Binary::ShiftLeft, 2),
            (b'>', b'>') => (Binary::ShiftRight, 2),
            (b'<', b'=') => (Binary::LessEqual, 2),
            (b'>', b'=') => (Binary::GreaterEqual, 2),
            (b'|', _) => (Binary::Or, 1),
            (b'^', _) => (Binary::Xor, 1),
            (b'&', _) => (Binary::And, 1),
            (b'<', _) => (Binary::Less, 1),
            (b'>', _) => (Binary::Greater, 1),
            (b'+', _) => (Binary::Add, 1),
            (b'-', _) => (Binary::Subtract, 1),
            (b'*', _) => (Binary::Multiply, 1),
            (b'/', _) => (Binary::Divide, 1),
            (b'%', _) => (Binary::Remainder, 1),
            _ => return None,
        })
    }
    /// Whether the name here starts with `%`, which after a value is an operator and a name.
    fn at_percent_name(&self) -> bool {
        self.token.kind == Kind::Name && self.word().starts_with('%')
    }
    fn split_percent(&mut self) -> Result<()> {
        self.lexer.rewind(self.token, self.token.start + 1);
        self.advance()
    }
    fn unary(&mut self) -> Result<Value> {
        let token = self.token;
        match token.kind {
            Kind::Number => self.number(),
            Kind::Name if self.word() == "WARP_SZ" => {
                self.advance()?;
                Ok(Value::Unsigned(WARP_SIZE))
            }
            // `.5`
            Kind::Dot if self.word()[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                let end = self.lexer.number(token.start + 1);
                self.lexer.rewind(token, end);
                let text = &self.lexer.text()[token.start..end];
                self.advance()?;
                let value: Option<f64> = text.parse().ok();
                value
                    .map(Value::double)
                    .ok_or_else(|| self.bad_number(token, text))
            }
            Kind::Mark(mark @ (b'-' | b'+' | b'!' | b'~')) => {
                self.enter()?;
                self.advance()?;
                let value = self.unary()?;
                self.leave();
                prefix(mark, value).ok_or_else(|| {
                    let mark = char::from(mark);
                    let message = format!("`{mark}` cannot be applied to a constant of this type");
                    self.error_at(token, message)
                })
            }
            Kind::Mark(b'(') => self.parenthesis(),
            _ => Err(self.unexpected("a constant")),
        }
    }
    /// `(expression)`, or a cast `(.u64) value`.
    fn parenthesis(&mut self) -> Result<Value> {
        self.enter()?;
        self.advance()?;
        let value = if self.token.kind == Kind::Dot && matches!(self.word(), ".s64" | ".u64") {
            let unsigned = self.word() == ".u64";
            let token = self.token;
            self.advance()?;
            self.expect(b')')?;
            let value = self.unary()?;
            let cast = match value {
                Value::F64(v) if unsigned => Some(Value::Unsigned(f64::from_bits(v) as u64)),
                Value::F64(v) => Some(Value::Signed(f64::from_bits(v) as i64)),
                _ if unsigned => value.bits().map(Value::Unsigned),
                _ => value.bits().map(|bits| Value::Signed(bits as i64)),
            };
            cast.ok_or_else(|| self.error_at(token, "a cast of a constant that cannot be cast"))?
        } else {
            let value = self.expression()?;
            self.expect(b')')?;
            value
        };
        self.leave();
        Ok(value)
    }
    /// The number that stands here.
    fn number(&mut self) -> Result<Value> {
        let token = self.token;
        let text = self.word();
        let value = number(text).ok_or_else(|| self.bad_number(token, text))?;
        self.advance()?;
        Ok(value)
    }
    #[cold]
    fn bad_number(&self, token: Token, text: &str) -> Box<crate::base::Diagnostic> {
        let shown: String = text.chars().take(40).collect();
        let message = format!("`{shown}` is no number, or does not fit 64 bits");
        let end = token.start + text.len();
        self.lexer
            .error(codes::PTX_SYNTAX, token.start, end, message)
    }
}

/// An operator in front of a value.
fn prefix(mark: u8, value: Value) -> Option<Value> {
    Some(match (mark, value) {
        (b'+', _) => value,
        (b'-', Value::Signed(v)) => Value::Signed(v.wrapping_neg()),
        (b'-', Value::Unsigned(v)) => Value::Unsigned(v.wrapping_neg()),
        (b'-', Value::F64(v)) => Value::F64(v ^ 1 << 63),
        (b'!', _) => Value::truth(!value.is_true()?),
        (b'~', Value::Signed(v)) => Value::Signed(!v),
        (b'~', Value::Unsigned(v)) => Value::Unsigned(!v),
        _ => return None,
    })
}

/// The value of a token that starts with a digit.
fn number(text: &str) -> Option<Value> {
    let bytes = text.as_bytes();
    if bytes.iter().all(u8::is_ascii_digit) && (bytes.len() == 1 || bytes.first() != Some(&b'0')) {
        return integer(text, 10);
    }
    if bytes.first() == Some(&b'0') {
        let rest = text.get(2..).unwrap_or("");
        match bytes.get(1) {
            Some(b'f' | b'F') => return hex_bits(rest, 8).map(|v| Value::F32(v as u32)),
            Some(b'd' | b'D') => return hex_bits(rest, 16).map(Value::F64),
            Some(b'x' | b'X') => return integer(rest, 16),
            Some(b'b' | b'B') => return integer(rest, 2),
            Some(b'0'..=b'9' | b'U') if !text.contains(['.', 'e', 'E']) => {
                return integer(text, 8);
            }
            _ => {}
        }
    }
    if text.ends_with('U') {
        return integer(text, 10);
    }
    let plain = |b: &u8| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-');
    let value: f64 = bytes
        .iter()
        .all(plain)
        .then(|| text.parse().ok())
        .flatten()?;
    Some(Value::double(value))
}

fn hex_bits(text: &str, digits: usize) -> Option<u64> {
    let fits = text.len() == digits && text.bytes().all(|b| b.is_ascii_hexdigit());
    fits.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

/// Digits with an optional `U`.
fn integer(text: &str, radix: u32) -> Option<Value> {
    let digits = text.strip_suffix('U');
    let unsigned = digits.is_some();
    let digits = digits.unwrap_or(text);
    if !digits.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    let value = u64::from_str_radix(digits, radix).ok()?;
    Some(match i64::try_from(value) {
        Ok(value) if !unsigned => Value::Signed(value),
        _ => Value::Unsigned(value),
    })
}
