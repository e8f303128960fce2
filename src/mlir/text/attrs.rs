//! Attributes in MLIR text, all but dense elements and those of dialects.

use crate::base::Result;
use crate::literal::number;
use crate::mlir::attrs::Attr;
use crate::mlir::attrs::AttrMap;
use crate::mlir::attrs::DenseArray;
use crate::mlir::attrs::SymbolRef;
use crate::mlir::text::Reader;
use crate::mlir::types::FloatKind;
use crate::mlir::types::Name;
use crate::mlir::types::Type;

impl Reader<'_> {
    /// An attribute.
    pub(super) fn attr(&mut self) -> Result<Attr> {
        self.count()?;
        match self.scan.peek() {
            b'"' => self.string_attr(),
            b'[' => self.nested(|r| r.array_attr()),
            b'{' => self.nested(|r| Ok(Attr::dict(r.attr_dict()?))),
            b'@' => Ok(Attr::Symbol(self.symbol_ref()?)),
            b'#' => self.nested(Self::hash_attr),
            b'-' | b'0'..=b'9' => self.number_attr(),
            b'(' | b'!' => Ok(Attr::Type(self.ty()?)),
            _ => self.word_attr(),
        }
    }
    fn word_attr(&mut self) -> Result<Attr> {
        let word = self.scan.peek_keyword().unwrap_or_default();
        let start = self.scan.pos();
        match word {
            "true" | "false" => {
                self.scan.eat_keyword(word);
                Ok(Attr::Bool(word == "true"))
            }
            "unit" => {
                self.scan.eat_keyword(word);
                Ok(Attr::Unit)
            }
            "loc" => Ok(Attr::Location(self.location()?)),
            "array" => {
                self.scan.eat_keyword(word);
                self.dense_array()
            }
            "dense" => {
                self.scan.eat_keyword(word);
                self.dense()
            }
            "dense_resource" => {
                self.scan.eat_keyword(word);
                self.dense_resource()
            }
            "affine_map" | "affine_set" | "strided" | "opaque" | "distinct" | "sparse" => {
                self.scan.eat_keyword(word);
                self.verbatim_attr(start)
            }
            _ => match self.opt_ty()? {
                Some(ty) => Ok(Attr::Type(ty)),
                None => Err(self.scan.unexpected("an attribute")),
            },
        }
    }
    /// Bracketed text after a word, kept as it is, with the type that may follow.
    fn verbatim_attr(&mut self, start: usize) -> Result<Attr> {
        let mut end = self.scan.pos();
        while matches!(self.scan.peek(), b'[' | b'<') {
            self.scan.bracketed()?;
            end = self.scan.pos();
        }
        if self.scan.eat(":") {
            self.ty()?;
            end = self.scan.pos();
        }
        let text = &self.scan.text()[start..end];
        Ok(Attr::Opaque(self.names.get(text)))
    }
    fn string_attr(&mut self) -> Result<Attr> {
        let bytes = self.scan.string()?.into();
        if self.scan.eat(":") {
            return Ok(match self.ty()? {
                Type::None => Attr::String(bytes),
                ty => Attr::TypedString(bytes, ty),
            });
        }
        Ok(Attr::String(bytes))
    }
    fn array_attr(&mut self) -> Result<Attr> {
        Ok(Attr::array(self.items(["[", "]"], Self::attr)?))
    }
    /// `{name = attr, name, "name" = attr}`.
    pub(super) fn attr_dict(&mut self) -> Result<AttrMap> {
        let mut map = AttrMap::new();
        self.attr_dict_into(&mut map)?;
        Ok(map)
    }
    /// As [`Self::attr_dict`], into a map that may have attributes.
    pub(super) fn attr_dict_into(&mut self, map: &mut AttrMap) -> Result<()> {
        let mut entries = self.items(["{", "}"], Self::dict_entry)?;
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        let mut pairs = entries.windows(2);
        let twice = pairs.find(|pair| pair[0].0 == pair[1].0);
        let again = || entries.iter().find(|entry| map.get(&entry.0).is_some());
        if let Some((_, _, start)) = twice.map(|pair| &pair[1]).or_else(again) {
            let message = "an attribute that stands twice";
            return Err(self.scan.error_at(*start, message));
        }
        map.extend(entries.into_iter().map(|(name, attr, _)| (name, attr)));
        Ok(())
    }
    /// `name = attr`, `name` or `"name" = attr`, and its place.
    fn dict_entry(&mut self) -> Result<(Name, Attr, usize)> {
        let next = self.scan.peek();
        let start = self.scan.pos();
        let name = match next {
            b'"' => self.scan.utf8_string()?.into(),
            _ => match self.scan.keyword() {
                Some(word) => self.names.get(word),
                None => return Err(self.scan.unexpected("an attribute's name")),
            },
        };
        let attr = match self.scan.eat("=") {
            true => self.attr()?,
            false => Attr::Unit,
        };
        Ok((name, attr, start))
    }
    /// `@name` or `@table::@name`.
    pub(super) fn symbol_ref(&mut self) -> Result<SymbolRef> {
        let root = self.scan.symbol()?.into();
        let mut nested = Vec::new();
        while self.scan.eat("::") {
            nested.push(self.scan.symbol()?.into());
        }
        Ok(SymbolRef { root, nested })
    }
    /// A number and its type, `i64` or `f64` when the text has none.
    fn number_attr(&mut self) -> Result<Attr> {
        self.scan.skip_space();
        let start = self.scan.pos();
        let negative = self.scan.eat("-");
        let text = self.number_text();
        let float = text.contains('.');
        let ty = match self.scan.eat(":") {
            true => self.ty()?,
            false if float => Type::F64,
            false => Type::I64,
        };
        if let Type::Float(kind) = ty {
            let bits = self.float_bits(text, negative, kind, start)?;
            return Ok(Attr::Float { bits, ty });
        }
        let value = parse_integer(text, negative);
        match value {
            Some(value) if matches!(ty, Type::Integer { .. } | Type::Index) => {
                self.integer_attr(value, &ty, start)
            }
            _ => Err(self
                .scan
                .error_at(start, format!("`{text}` is no number of its type"))),
        }
    }
    /// The number in the format `kind`: a decimal number, or its bits after `0x`.
    pub(super) fn float_bits(
        &self,
        text: &str,
        negative: bool,
        kind: FloatKind,
        pos: usize,
    ) -> Result<u64> {
        let wrong = || {
            let message = format!("`{text}` is no number of type {}", kind.name());
            self.scan.error_at(pos, message)
        };
        let width = kind.bit_width();
        if let (Some(digits), 0..=64) = (text.strip_prefix("0x"), width) {
            let bits = u64::from_str_radix(digits, 16).map_err(|_| wrong())?;
            let fits = !negative && (width == 64 || bits < 1 << width);
            return if fits { Ok(bits) } else { Err(wrong()) };
        }
        let Some(primitive) = kind.primitive() else {
            let message = format!("numbers of type {} are not read", kind.name());
            return Err(self.unknown(pos, message));
        };
        let value: f64 = text.parse().map_err(|_| wrong())?;
        let value = if negative { -value } else { value };
        Ok(number::float_from_f64(primitive, value))
    }
    /// `<i64: 1, 2>` after `array`.
    fn dense_array(&mut self) -> Result<Attr> {
        self.scan.expect("<")?;
        self.scan.skip_space();
        let start = self.scan.pos();
        let element = self.ty()?;
        if !DenseArray::can_hold(&element) {
            let message = "an array of a type that arrays cannot have";
            return Err(self.scan.error_at(start, message));
        }
        let mut data = Vec::new();
        if self.scan.eat(":") {
            loop {
                self.array_element(&element, &mut data)?;
                if !self.scan.eat(",") {
                    break;
                }
            }
        }
        self.scan.expect(">")?;
        let data = data.into();
        Ok(Attr::DenseArray(DenseArray { element, data }))
    }
    fn array_element(&mut self, element: &Type, data: &mut Vec<u8>) -> Result<()> {
        self.scan.skip_space();
        let start = self.scan.pos();
        if *element == Type::I1 {
            let value = self.scan.eat_keyword("true");
            if !value && !self.scan.eat_keyword("false") {
                return Err(self.scan.unexpected("`true` or `false`"));
            }
            data.push(u8::from(value));
            return Ok(());
        }
        let negative = self.scan.eat("-");
        let text = self.number_text();
        match element {
            Type::Integer {
                width: width @ (8 | 16 | 32 | 64),
                ..
            } => {
                let value = parse_integer(text, negative);
                let value = value.and_then(|v| super::types::fit(v, element));
                let Some(value) = value else {
                    let message = format!("`{text}` is no integer of its type");
                    return Err(self.scan.error_at(start, message));
                };
                data.extend_from_slice(&value.to_le_bytes()[..*width as usize / 8]);
            }
            Type::Float(kind @ (FloatKind::F32 | FloatKind::F64)) => {
                let bits = self.float_bits(text, negative, *kind, start)?;
                data.extend_from_slice(&bits.to_le_bytes()[..kind.bit_width() / 8]);
            }
            _ => {
                return Err(self
                    .scan
                    .error_at(start, "an array of a type that arrays cannot have"));
            }
        }
        Ok(())
    }
}

/// The integer that a text spells: decimal, or hexadecimal after `0x`.
pub(super) fn parse_integer(text: &str, negative: bool) -> Option<i128> {
    let value: i128 = match text.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok()?,
        None => text.parse().ok()?,
    };
    Some(if negative { -value } else { value })
}
