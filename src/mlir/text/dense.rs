//! Dense elements in MLIR text: lists, splats, hexadecimal strings, resources.
//!
//! The type stands behind the elements, so their text is passed over first and decoded when the
//! type is known. What is decoded is bounded by the text: a splat stays one element.

use std::sync::Arc;

use crate::base::Result;
use crate::base::codes;
use crate::mlir::attrs::Attr;
use crate::mlir::attrs::Dense;
use crate::mlir::text::Reader;
use crate::mlir::text::attrs::parse_integer;
use crate::mlir::text::scan::hex_bytes;
use crate::mlir::text::types::fit;
use crate::mlir::types::FloatKind;
use crate::mlir::types::Type;
use crate::shape::ArrayShape;

impl<'a> Reader<'a> {
    /// What stands after the word `dense`.
    pub(super) fn dense(&mut self) -> Result<Attr> {
        self.scan.expect("<")?;
        let start = self.scan.pos();
        self.skip_elements()?;
        self.scan.expect(">")?;
        self.scan.expect(":")?;
        let ty = self.ty()?;
        let end = self.scan.pos();
        self.scan.set_pos(start);
        let count = self.dense_count(&ty, start)?;
        let dense = self.elements(ty, count)?;
        self.scan.set_pos(end);
        Ok(Attr::Dense(dense))
    }
    /// Moves to the `>` behind the elements.
    fn skip_elements(&mut self) -> Result<()> {
        let bytes = self.scan.text().as_bytes();
        let start = self.scan.pos();
        loop {
            match bytes.get(self.scan.pos()) {
                Some(b'>') => return Ok(()),
                Some(b'"') => {
                    self.scan.raw_string()?;
                }
                Some(_) => self.scan.set_pos(self.scan.pos() + 1),
                None => return Err(self.scan.error_at(start, "elements that have no end")),
            }
        }
    }
    /// Number of elements of a type that dense elements may have.
    fn dense_count(&mut self, ty: &Type, pos: usize) -> Result<u64> {
        let (Type::Tensor(tensor) | Type::Vector(tensor)) = ty else {
            let message = "dense elements whose type is no tensor";
            return Err(self.scan.error_at(pos, message));
        };
        if !tensor.is_static() {
            let message = "dense elements of a tensor of unknown size";
            return Err(self.scan.error_at(pos, message));
        }
        let width = tensor.element.element_bytes().unwrap_or(1) as u64;
        let count = tensor.element_count();
        let bytes = count.and_then(|c| c.checked_mul(width));
        match count {
            Some(count) if bytes.is_some_and(|b| b <= ArrayShape::MAX_BYTES as u64) => Ok(count),
            _ => {
                let message = "a tensor larger than any program can hold";
                Err(self.scan.diagnostic(codes::INPUT_LIMIT, pos, message))
            }
        }
    }
    fn elements(&mut self, ty: Type, count: u64) -> Result<Dense> {
        let element = ty.element().clone();
        let next = self.scan.peek();
        if next == b'>' {
            return match count {
                0 => Ok(Dense::new(ty, Vec::new())),
                _ => Err(self.scan.unexpected("elements")),
            };
        }
        let Some(width) = element.element_bytes() else {
            return self.strings(ty);
        };
        if next == b'"' {
            let start = self.scan.pos();
            let text = self.scan.raw_string()?;
            let Some(digits) = text.strip_prefix("0x") else {
                return Err(self
                    .scan
                    .error_at(start, "elements that do not start with `0x`"));
            };
            let data = self.hex_bytes(digits, start)?;
            return self.raw_elements(ty, data, count, start);
        }
        let mut data = Vec::new();
        if next == b'[' {
            let dims = self.dims_of(&ty);
            let guess = usize::try_from(count).unwrap_or(usize::MAX);
            // Every element takes two bytes of text or more.
            data.reserve(guess.min(self.scan.text().len() / 2).saturating_mul(width));
            self.list(&element, &dims, &mut data)?;
        } else {
            self.element(&element, &mut data)?;
        }
        if self.scan.peek() != b'>' {
            return Err(self.scan.unexpected("`>`"));
        }
        Ok(Dense::new(ty, data))
    }
    fn dims_of(&self, ty: &Type) -> Vec<u64> {
        match ty {
            Type::Tensor(tensor) | Type::Vector(tensor) => {
                tensor.dims.iter().flatten().copied().collect()
            }
            _ => Vec::new(),
        }
    }
    /// A list of lists of elements, of that shape.
    fn list(&mut self, element: &Type, dims: &[u64], data: &mut Vec<u8>) -> Result<()> {
        let Some((&size, inner)) = dims.split_first() else {
            return self.element(element, data);
        };
        self.scan.expect("[")?;
        let start = self.scan.pos();
        let mut count = 0;
        while !self.scan.eat("]") {
            if count > 0 {
                self.scan.expect(",")?;
            }
            if inner.is_empty() {
                self.element(element, data)?;
            } else {
                self.nested(|r| r.list(element, inner, data))?;
            }
            count += 1;
        }
        if count != size {
            let message = format!("{count} elements where the type has {size}");
            return Err(self.scan.error_at(start, message));
        }
        Ok(())
    }
    /// One element.
    fn element(&mut self, element: &Type, data: &mut Vec<u8>) -> Result<()> {
        if let Type::Complex(part) = element {
            self.scan.expect("(")?;
            self.number_element(part, data)?;
            self.scan.expect(",")?;
            self.number_element(part, data)?;
            return self.scan.expect(")");
        }
        self.number_element(element, data)
    }
    fn number_element(&mut self, element: &Type, data: &mut Vec<u8>) -> Result<()> {
        self.scan.skip_space();
        let start = self.scan.pos();
        if matches!(self.scan.byte(0), b't' | b'f') {
            let value = self.scan.eat_keyword("true");
            if !value && !self.scan.eat_keyword("false") {
                return Err(self.scan.unexpected("an element"));
            }
            if *element != Type::I1 {
                return Err(self.scan.error_at(start, "a boolean among numbers"));
            }
            data.push(u8::from(value));
            return Ok(());
        }
        let negative = self.scan.eat("-");
        let text = self.number_text();
        if text.is_empty() {
            return Err(self.scan.unexpected("an element"));
        }
        match element {
            Type::Float(FloatKind::F32) if !text.starts_with("0x") => {
                let value: f64 = text.parse().map_err(|_| self.not_of_type(text, start))?;
                let value = if negative { -value } else { value };
                data.extend_from_slice(&(value as f32).to_le_bytes());
            }
            Type::Float(kind) => {
                let bits = self.float_bits(text, negative, *kind, start)?;
                let width = kind.bit_width().div_ceil(8);
                data.extend_from_slice(&bits.to_le_bytes()[..width]);
            }
            _ => {
                let value = parse_integer(text, negative).and_then(|v| fit(v, element));
                let value = value.ok_or_else(|| self.not_of_type(text, start))?;
                let width = element.element_bytes().unwrap_or(1);
                match width {
                    0..=16 => {
                        let value = if *element == Type::I1 {
                            value & 1
                        } else {
                            value
                        };
                        data.extend_from_slice(&value.to_le_bytes()[..width]);
                    }
                    _ => {
                        let message = "integers wider than 128 bits are not read".to_owned();
                        return Err(self.unknown(start, message));
                    }
                }
            }
        }
        Ok(())
    }
    fn not_of_type(&self, text: &str, pos: usize) -> Box<crate::base::Diagnostic> {
        let message = format!("`{text}` is no element of the type");
        self.scan.error_at(pos, message)
    }
    /// The bytes that hexadecimal digits spell.
    fn hex_bytes(&self, digits: &str, pos: usize) -> Result<Vec<u8>> {
        let wrong = "a string that is not pairs of hexadecimal digits";
        hex_bytes(digits).ok_or_else(|| self.scan.error_at(pos, wrong))
    }
    /// Elements from the bytes that MLIR keeps: one, or all.
    fn raw_elements(&self, ty: Type, mut data: Vec<u8>, count: u64, pos: usize) -> Result<Dense> {
        let element = ty.element().clone();
        let width = element.element_bytes().unwrap_or(1) as u64;
        let given = data.len() as u64;
        let booleans = element == Type::I1;
        // Older printers pack booleans, eight to a byte.
        if booleans
            && given != count
            && given == count.div_ceil(8)
            && !matches!(data[..], [0 | 1 | 255])
        {
            let bit = |i: usize| data[i / 8] >> (i % 8) & 1;
            data = (0..count as usize).map(bit).collect();
        } else if given != width && given != count * width {
            let wanted = count * width;
            let message = format!("{given} bytes of elements where the type has {wanted}");
            return Err(self.scan.error_at(pos, message));
        }
        Ok(Dense::from_raw(ty, &data))
    }
    /// Strings, one or a list of lists.
    fn strings(&mut self, ty: Type) -> Result<Dense> {
        let splat = self.scan.peek() == b'"';
        let mut strings: Vec<Arc<[u8]>> = Vec::new();
        let dims = self.dims_of(&ty);
        self.string_list(if splat { &[] } else { &dims }, &mut strings)?;
        Ok(Dense::strings(ty, strings))
    }
    fn string_list(&mut self, dims: &[u64], out: &mut Vec<Arc<[u8]>>) -> Result<()> {
        let Some((&size, inner)) = dims.split_first() else {
            out.push(self.scan.string()?.into());
            return Ok(());
        };
        self.scan.expect("[")?;
        let start = self.scan.pos();
        let mut count = 0;
        while !self.scan.eat("]") {
            if count > 0 {
                self.scan.expect(",")?;
            }
            self.nested(|r| r.string_list(inner, out))?;
            count += 1;
        }
        if count != size {
            let message = format!("{count} elements where the type has {size}");
            return Err(self.scan.error_at(start, message));
        }
        Ok(())
    }
    /// What stands after the word `dense_resource`.
    pub(super) fn dense_resource(&mut self) -> Result<Attr> {
        self.scan.expect("<")?;
        let start = self.scan.pos();
        let key = self.resource_key()?;
        self.scan.expect(">")?;
        self.scan.expect(":")?;
        let ty = self.ty()?;
        let count = self.dense_count(&ty, start)?;
        let Some(&blob) = self.resources.get(key.as_str()) else {
            let key = key.into();
            return Ok(Attr::MissingResource { key, ty });
        };
        let digits = blob.strip_prefix("0x").unwrap_or(blob);
        // Each use has bytes of its own.
        self.count_parts(digits.len() as u64 / 2)?;
        let bytes = self.hex_bytes(digits, start)?;
        // The first four bytes are the alignment of the rest.
        let data = bytes.get(4..).unwrap_or_default().to_vec();
        self.raw_elements(ty, data, count, start).map(Attr::Dense)
    }
    fn resource_key(&mut self) -> Result<String> {
        if self.scan.peek() == b'"' {
            return self.scan.utf8_string();
        }
        match self.scan.keyword() {
            Some(word) => Ok(word.to_owned()),
            None => Err(self.scan.unexpected("a resource's name")),
        }
    }
    /// `{-# dialect_resources: { builtin: { key: "0x..." } } #-}`: remembers the blobs.
    pub(super) fn resource_section(&mut self) -> Result<()> {
        self.scan.expect("{-#")?;
        while !self.scan.eat("#-}") {
            let kind = self.resource_key()?;
            self.scan.expect(":")?;
            self.scan.expect("{")?;
            while !self.scan.eat("}") {
                self.resource_key()?;
                self.scan.expect(":")?;
                self.scan.expect("{")?;
                while !self.scan.eat("}") {
                    self.resource_entry(kind == "dialect_resources")?;
                    self.scan.eat(",");
                }
                self.scan.eat(",");
            }
            self.scan.eat(",");
        }
        Ok(())
    }
    fn resource_entry(&mut self, keep: bool) -> Result<()> {
        let key = self.resource_key()?;
        self.scan.expect(":")?;
        if self.scan.peek() != b'"' {
            // A flag or number of a tool, such as `true`.
            if self.scan.keyword().is_none() {
                self.scan.integer()?;
            }
            return Ok(());
        }
        let blob = self.scan.raw_string()?;
        if keep {
            self.resources.insert(key, blob);
        }
        Ok(())
    }
}
