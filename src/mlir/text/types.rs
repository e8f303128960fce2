//! Types in MLIR text.

use std::sync::Arc;

use crate::base::Result;
use crate::base::codes;
use crate::mlir::attrs::Attr;
use crate::mlir::text::Reader;
use crate::mlir::types::FloatKind;
use crate::mlir::types::FunctionType;
use crate::mlir::types::QuantizedScheme;
use crate::mlir::types::QuantizedType;
use crate::mlir::types::Signedness;
use crate::mlir::types::TensorType;
use crate::mlir::types::Type;

/// Widest integer type that MLIR has.
const MAX_INTEGER_WIDTH: u32 = (1 << 24) - 1;

impl<'a> Reader<'a> {
    /// A type.
    pub(super) fn ty(&mut self) -> Result<Type> {
        self.count()?;
        match self.scan.peek() {
            b'!' => self.dialect_type(),
            b'(' => self.nested(|r| r.function_type_inside().map(Type::Function)),
            _ => match self.opt_ty()? {
                Some(ty) => Ok(ty),
                None => Err(self.scan.unexpected("a type")),
            },
        }
    }
    /// A type of the builtin dialect that starts with a word, when one comes next.
    pub(super) fn opt_ty(&mut self) -> Result<Option<Type>> {
        let Some(word) = self.scan.peek_keyword() else {
            return Ok(None);
        };
        self.scan.skip_space();
        let (start, parts) = (self.scan.pos(), self.parts);
        if let Some(ty) = scalar(word) {
            self.scan.set_pos(start + word.len());
            return Ok(Some(ty));
        }
        if !matches!(word, "tensor" | "complex" | "tuple" | "vector" | "memref") {
            return Ok(None);
        }
        self.scan.set_pos(start + word.len());
        if !self.scan.sees("<") {
            self.scan.set_pos(start);
            return Ok(None);
        }
        if word == "tensor"
            && let Some(ty) = self.known_tensor(start)
        {
            return Ok(Some(ty));
        }
        self.scan.expect("<")?;
        let ty = self.nested(|r| match word {
            "tensor" => r.shaped().map(|(ranked, tensor)| match ranked {
                true => Type::Tensor(Arc::new(tensor)),
                false => Type::UnrankedTensor(Arc::new(tensor.element)),
            }),
            "vector" => r.ranked().map(Type::Vector),
            "memref" => r.ranked().map(Type::MemRef),
            "complex" => Ok(Type::Complex(Arc::new(r.ty()?))),
            _ if r.scan.sees(">") => Ok(Type::Tuple(Arc::new([]))),
            _ => Ok(Type::Tuple(r.type_list()?.into())),
        })?;
        self.scan.expect(">")?;
        // What stands for more is counted each time.
        if word == "tensor" && self.parts - parts <= 2 {
            self.types
                .remember(&self.scan.text()[start..self.scan.pos()], &ty);
        }
        Ok(Some(ty))
    }
    /// The tensor type that starts at `start`, when this very text was read not long ago.
    fn known_tensor(&mut self, start: usize) -> Option<Type> {
        let bytes = &self.scan.text().as_bytes()[start..];
        let end = bytes.iter().take(80).position(|b| *b == b'>')?;
        let ty = self.types.find(&self.scan.text()[start..=start + end])?;
        self.scan.set_pos(start + end + 1);
        Some(ty)
    }
    /// Types with commas between, at least one.
    pub(super) fn type_list(&mut self) -> Result<Vec<Type>> {
        let mut types = vec![self.ty()?];
        while self.scan.eat(",") {
            types.push(self.ty()?);
        }
        Ok(types)
    }
    /// Types in parentheses, possibly none.
    pub(super) fn type_list_parens(&mut self) -> Result<Vec<Type>> {
        self.scan.expect("(")?;
        if self.scan.eat(")") {
            return Ok(Vec::new());
        }
        let types = self.type_list()?;
        self.scan.expect(")")?;
        Ok(types)
    }
    /// `(a, b) -> c` or `(a, b) -> (c, d)`.
    pub(super) fn function_type(&mut self) -> Result<FunctionType> {
        let inputs = self.type_list_parens()?;
        self.scan.expect("->")?;
        let results = self.result_types()?;
        Ok(FunctionType { inputs, results })
    }
    fn function_type_inside(&mut self) -> Result<Arc<FunctionType>> {
        self.function_type().map(Arc::new)
    }
    /// What stands after `->`: one type, or several in parentheses.
    pub(super) fn result_types(&mut self) -> Result<Vec<Type>> {
        if !self.scan.sees("(") {
            return Ok(vec![self.ty()?]);
        }
        self.nested(Self::type_list_parens)
    }
    fn ranked(&mut self) -> Result<Arc<TensorType>> {
        let (ranked, tensor) = self.shaped()?;
        if !ranked {
            return Err(self.scan.unexpected("a type with a rank"));
        }
        Ok(Arc::new(tensor))
    }
    /// Sizes, element type and encoding; whether there is a rank.
    fn shaped(&mut self) -> Result<(bool, TensorType)> {
        let mut dims = Vec::new();
        let mut ranked = true;
        loop {
            match self.scan.peek() {
                b'0'..=b'9' => dims.push(Some(self.scan.number()?)),
                b'?' => {
                    self.scan.expect("?")?;
                    dims.push(None);
                }
                b'*' if dims.is_empty() => {
                    self.scan.expect("*")?;
                    ranked = false;
                }
                _ => break,
            }
            // Space may not stand before the `x` that comes after a size.
            if self.scan.byte(0) != b'x' {
                return Err(self.scan.unexpected("`x`"));
            }
            self.scan.set_pos(self.scan.pos() + 1);
            if !ranked {
                break;
            }
        }
        let element = self.ty()?;
        let encoding = match ranked && self.scan.eat(",") {
            true => Some(self.attr()?),
            false => None,
        };
        Ok((
            ranked,
            TensorType {
                dims,
                element,
                encoding,
            },
        ))
    }
    /// `!alias` or `!dialect.type<...>`.
    fn dialect_type(&mut self) -> Result<Type> {
        self.scan.expect("!")?;
        let start = self.scan.pos();
        let name = self.scan.suffix()?;
        let Some((dialect, kind)) = name.split_once('.') else {
            if self.scan.byte(0) == b'<' {
                let body = self.scan.bracketed()?;
                return Ok(Type::Opaque(format!("{name}{body}").into()));
            }
            return self.type_alias(name, start);
        };
        match (dialect, kind) {
            ("stablehlo" | "mhlo", "token") => Ok(Type::Token),
            ("stablehlo" | "mhlo", "future") => {
                self.scan.expect("<")?;
                let types = self.nested(Self::type_list)?;
                self.scan.expect(">")?;
                Ok(Type::Future(types.into()))
            }
            ("quant", "uniform") => self.quantized(),
            ("shape", "shape") => Ok(Type::Shape),
            ("shape", "size") => Ok(Type::Size),
            ("shape", "witness") => Ok(Type::Witness),
            _ => {
                if self.scan.byte(0) == b'<' {
                    self.scan.bracketed()?;
                }
                let text = &self.scan.text()[start..self.scan.pos()];
                Ok(Type::Opaque(self.names.get(text)))
            }
        }
    }
    /// `<i8:f32, 2.0:-3>`, `<i8<-127:127>:f32:1, {0.5, 0.25:1}>` or
    /// `<i8:f32:{0:2, 1:1}, {{1.0, 2.0}, {3.0, 4.0}}>`.
    fn quantized(&mut self) -> Result<Type> {
        self.scan.expect("<")?;
        let start = self.scan.pos();
        let (storage_width, storage_signed) = self.storage_type()?;
        let range = QuantizedType::storage_range(storage_width, storage_signed);
        let (mut storage_min, mut storage_max) = range.unwrap_or_default();
        if self.scan.eat("<") {
            storage_min = self.scan.integer()?;
            self.scan.expect(":")?;
            storage_max = self.scan.integer()?;
            self.scan.expect(">")?;
        }
        self.scan.expect(":")?;
        let Some(Type::Float(expressed)) = self.opt_ty()? else {
            return Err(self.scan.unexpected("a float type"));
        };
        let mut ty = QuantizedType {
            storage_width,
            storage_signed,
            storage_min,
            storage_max,
            expressed,
            scheme: QuantizedScheme::PerTensor,
            scales: Vec::new(),
            zero_points: Vec::new(),
        };
        if self.scan.eat(":") {
            ty.scheme = self.quantized_axes()?;
        }
        self.scan.expect(",")?;
        let mut lists = Vec::new();
        match ty.scheme {
            QuantizedScheme::PerTensor => self.scale(&mut ty)?,
            _ => self.scales(&mut ty, &mut lists, 0)?,
        }
        match &mut ty.scheme {
            QuantizedScheme::SubChannel { shape, .. } => *shape = lists,
            QuantizedScheme::PerAxis(_) if lists.len() != 1 => {
                return Err(self.scan.error_at(start, "more than one list of scales"));
            }
            _ => {}
        }
        self.scan.expect(">")?;
        ty.check().map_err(|what| self.scan.error_at(start, what))?;
        Ok(Type::Quantized(Arc::new(ty)))
    }
    fn storage_type(&mut self) -> Result<(u32, bool)> {
        let back = self.scan.pos();
        let word = self.scan.keyword().unwrap_or_default();
        if let Some(Type::Integer { width, sign }) = scalar(word) {
            return Ok((width, sign != Signedness::Unsigned));
        }
        let unsigned = word
            .strip_prefix('u')
            .and_then(|digits| digits.parse().ok());
        match unsigned {
            Some(width) => Ok((width, false)),
            None => {
                self.scan.set_pos(back);
                Err(self.scan.unexpected("an integer type"))
            }
        }
    }
    /// `1` or `{0:2, 1:4}`.
    fn quantized_axes(&mut self) -> Result<QuantizedScheme> {
        if !self.scan.sees("{") {
            return Ok(QuantizedScheme::PerAxis(self.scan.number()?));
        }
        let blocks = self.items(["{", "}"], |r| {
            let axis = r.scan.number()?;
            r.scan.expect(":")?;
            Ok((axis, r.scan.number()?))
        })?;
        let shape = Vec::new();
        Ok(QuantizedScheme::SubChannel { blocks, shape })
    }
    /// Nested lists of scales in braces, all of one shape, which it finds.
    fn scales(&mut self, ty: &mut QuantizedType, shape: &mut Vec<u64>, depth: usize) -> Result<()> {
        self.scan.expect("{")?;
        let start = self.scan.pos();
        let mut count = 0;
        while !self.scan.eat("}") {
            if count > 0 {
                self.scan.expect(",")?;
            }
            let is_list = self.scan.sees("{");
            // Lists stand where the first one stood, and scales where the first scale stood.
            let was_list = shape.len() > depth + 1;
            if is_list != was_list && !ty.scales.is_empty() {
                return Err(self.scan.unexpected(match was_list {
                    true => "a list of scales",
                    false => "a scale",
                }));
            }
            match is_list {
                true => self.nested(|r| r.scales(ty, shape, depth + 1))?,
                false => self.scale(ty)?,
            }
            count += 1;
        }
        if shape.len() <= depth {
            shape.resize(depth + 1, 0);
        }
        if count == 0 || ![0, count].contains(&shape[depth]) {
            let message = format!("{count} scales where {} should be", shape[depth].max(1));
            return Err(self.scan.error_at(start, message));
        }
        shape[depth] = count;
        Ok(())
    }
    /// `2.0` or `2.0:-3`.
    fn scale(&mut self, ty: &mut QuantizedType) -> Result<()> {
        let scale = self.float64()?;
        let zero = match self.scan.eat(":") {
            true => self.scan.integer()?,
            false => 0,
        };
        ty.scales.push(scale.to_bits());
        ty.zero_points.push(zero);
        Ok(())
    }
    /// A decimal number, or `0x` and the bits of one.
    pub(super) fn float64(&mut self) -> Result<f64> {
        self.scan.skip_space();
        let start = self.scan.pos();
        let negative = self.scan.eat("-");
        let text = self.number_text();
        let value = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok().map(f64::from_bits),
            None => text
                .parse()
                .ok()
                .filter(|_| text.starts_with(|c: char| c.is_ascii_digit())),
        };
        match value {
            Some(value) if negative => Ok(-value),
            Some(value) => Ok(value),
            None => {
                self.scan.set_pos(start);
                Err(self.scan.unexpected("a number"))
            }
        }
    }
    /// The text of a number without sign: decimal, with fraction and exponent, or hexadecimal.
    pub(super) fn number_text(&mut self) -> &'a str {
        let start = self.scan.pos();
        let text = self.scan.text();
        if self.scan.byte(0) == b'0' && self.scan.byte(1) == b'x' {
            self.scan.set_pos(start + 2);
            self.scan.run(|b| b.is_ascii_hexdigit());
            return &text[start..self.scan.pos()];
        }
        self.scan.run(|b| b.is_ascii_digit());
        if self.scan.byte(0) == b'.' {
            self.scan.set_pos(self.scan.pos() + 1);
            self.scan.run(|b| b.is_ascii_digit());
            let sign = usize::from(matches!(self.scan.byte(1), b'+' | b'-'));
            if matches!(self.scan.byte(0), b'e' | b'E') && self.scan.byte(1 + sign).is_ascii_digit()
            {
                self.scan.set_pos(self.scan.pos() + 1 + sign);
                self.scan.run(|b| b.is_ascii_digit());
            }
        }
        &text[start..self.scan.pos()]
    }
    /// The integer type of a value, when it is one; fails otherwise.
    pub(super) fn integer_attr(&mut self, value: i128, ty: &Type, pos: usize) -> Result<Attr> {
        let Some(value) = fit(value, ty) else {
            let message = format!("`{value}` does not fit its type");
            return Err(self.scan.error_at(pos, message));
        };
        Ok(match ty {
            Type::Integer {
                width: 1,
                sign: Signedness::Signless,
            } => Attr::Bool(value != 0),
            _ => Attr::Integer {
                value,
                ty: ty.clone(),
            },
        })
    }
    /// A type's text stands for nothing that the reader knows.
    pub(super) fn unknown(&self, pos: usize, message: String) -> Box<crate::base::Diagnostic> {
        self.scan.diagnostic(codes::UNKNOWN_WORD, pos, message)
    }
}

/// The number as the type has it, when it fits: numbers of signless types may be written as signed
/// or unsigned ones, and are signed after.
pub(super) fn fit(value: i128, ty: &Type) -> Option<i128> {
    let (width, sign) = match ty {
        Type::Integer { width, sign } => (*width, *sign),
        Type::Index => (64, Signedness::Signless),
        _ => return None,
    };
    match width {
        0 => return (value == 0).then_some(0),
        127.. => return Some(value),
        _ => {}
    }
    let full = 1i128 << width;
    let half = full >> 1;
    let fits = match sign {
        Signedness::Unsigned => (0..full).contains(&value),
        Signedness::Signed => (-half..half).contains(&value),
        Signedness::Signless => (-half..full).contains(&value),
    };
    let wraps = sign == Signedness::Signless && value >= half && width > 1;
    fits.then_some(if wraps { value - full } else { value })
}

/// The type that a word alone stands for.
fn scalar(word: &str) -> Option<Type> {
    let (sign, digits) = match word.as_bytes() {
        [b'i', b'0'..=b'9', ..] => (Signedness::Signless, &word[1..]),
        [b's', b'i', b'0'..=b'9', ..] => (Signedness::Signed, &word[2..]),
        [b'u', b'i', b'0'..=b'9', ..] => (Signedness::Unsigned, &word[2..]),
        [b'f' | b'b' | b't', ..] => return FloatKind::from_name(word).map(Type::Float),
        _ => {
            return match word {
                "index" => Some(Type::Index),
                "none" => Some(Type::None),
                _ => None,
            };
        }
    };
    let plain = digits.bytes().all(|b| b.is_ascii_digit());
    let width = digits
        .parse()
        .ok()
        .filter(|w| plain && *w <= MAX_INTEGER_WIDTH)?;
    Some(Type::Integer { width, sign })
}
