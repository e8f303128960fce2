//! Attributes, types and locations as their own dialects have them, in a file that is being written.
//!
//! That is the module's own attributes, locations, and what ops of other dialects have. What is not
//! `builtin` is written as text, which MLIR parses.

use std::sync::Arc;

use crate::mlir::attrs::Attr;
use crate::mlir::attrs::AttrMap;
use crate::mlir::bytecode::emit::Emitter;
use crate::mlir::bytecode::encode::Encoder;
use crate::mlir::bytecode::encode::Result;
use crate::mlir::bytecode::encode::dims;
use crate::mlir::bytecode::encode::elements;
use crate::mlir::bytecode::encode::float;
use crate::mlir::bytecode::encode::integer;
use crate::mlir::location::Loc;
use crate::mlir::location::SourceLoc;
use crate::mlir::print;
use crate::mlir::types::Signedness;
use crate::mlir::types::Type;

impl Encoder {
    /// The index of an attribute as its own dialect has it.
    pub(super) fn own_attr(&mut self, attr: &Attr) -> Result<u32> {
        self.nested(|this| this.own_attr_entry(attr))
    }
    fn own_attr_entry(&mut self, attr: &Attr) -> Result<u32> {
        let mut out = Emitter::default();
        match attr {
            Attr::Array(items) => {
                out.varint(0);
                let items: Result<Vec<u32>> =
                    items.iter().map(|item| self.own_attr(item)).collect();
                out.indices(&items?);
            }
            Attr::Dict(entries) => return self.dict(entries, Self::own_attr),
            Attr::String(text) => {
                out.varint(2);
                out.varint(self.strings.add(text));
            }
            Attr::Symbol(symbol) => {
                let name = |this: &mut Self, name: &str| this.own_attr(&Attr::string(name));
                let nested: Result<Vec<u32>> = symbol
                    .nested
                    .iter()
                    .map(|part| self.own_attr(&Attr::symbol(part)))
                    .collect();
                let nested = nested?;
                out.varint(if nested.is_empty() { 4 } else { 5 });
                out.varint(name(self, &symbol.root)?.into());
                if !nested.is_empty() {
                    out.indices(&nested);
                }
            }
            Attr::Type(ty) => {
                out.varint(6);
                out.varint(self.own_type(ty)?.into());
            }
            Attr::Unit => out.varint(7),
            Attr::Bool(value) => {
                out.varint(8);
                out.varint(self.own_type(&Type::I1)?.into());
                out.byte((*value).into());
            }
            Attr::Integer { value, ty } => {
                out.varint(8);
                out.varint(self.own_type(ty)?.into());
                integer(*value, ty, &mut out)?;
            }
            Attr::Float { bits, ty } => {
                out.varint(9);
                out.varint(self.own_type(ty)?.into());
                float(*bits, ty, &mut out);
            }
            Attr::Dense(dense) => {
                out.varint(18);
                out.varint(self.own_type(&dense.ty)?.into());
                out.blob(&elements(dense)?);
            }
            Attr::DenseArray(array) => {
                out.varint(17);
                out.varint(self.own_type(&array.element)?.into());
                out.count(array.len());
                out.blob(&array.data);
            }
            Attr::Location(loc) => return self.loc(loc),
            Attr::MissingResource { .. } => {
                return Err(format!("{}, which is not written", attr.what()));
            }
            Attr::Enum(_) | Attr::Struct(_) | Attr::Opaque(_) | Attr::TypedString(..) => {
                let text = print::attr(attr);
                let dialect = dialect_of(&text, '#')?;
                return Ok(self.attrs.add_text(dialect, &text));
            }
        }
        Ok(self.attrs.add("builtin", out))
    }
    /// The index of a dictionary of MLIR's own, whose values `value` gives the indices of.
    fn dict(
        &mut self,
        entries: &AttrMap,
        value: impl Fn(&mut Self, &Attr) -> Result<u32>,
    ) -> Result<u32> {
        let entries: Result<Vec<(u32, u32)>> = entries
            .iter()
            .map(|(name, attr)| Ok((self.own_attr(&Attr::string(name))?, value(self, attr)?)))
            .collect();
        self.dict_of(&entries?)
    }
    /// The index of a dictionary of MLIR's own, from the indices of its names and values.
    pub(super) fn dict_of(&mut self, entries: &[(u32, u32)]) -> Result<u32> {
        let mut out = Emitter::default();
        out.varint(1);
        out.count(entries.len());
        for (name, attr) in entries {
            out.varint((*name).into());
            out.varint((*attr).into());
        }
        Ok(self.attrs.add("builtin", out))
    }
    /// The index of a type as its own dialect has it.
    pub(super) fn own_type(&mut self, ty: &Type) -> Result<u32> {
        self.nested(|this| this.own_type_entry(ty))
    }
    fn own_type_entry(&mut self, ty: &Type) -> Result<u32> {
        let mut out = Emitter::default();
        match ty {
            Type::Integer { width, sign } => {
                out.varint(0);
                let sign = match sign {
                    Signedness::Signless => 0,
                    Signedness::Signed => 1,
                    Signedness::Unsigned => 2,
                };
                out.varint(u64::from(*width) << 2 | sign);
            }
            Type::Index => out.varint(1),
            Type::Float(kind) => match kind.name() {
                "bf16" => out.varint(3),
                "f16" => out.varint(4),
                "f32" => out.varint(5),
                "f64" => out.varint(6),
                // Readers of all ages know the other formats as text.
                name => return Ok(self.types.add_text("builtin", name)),
            },
            Type::Complex(part) => {
                out.varint(9);
                out.varint(self.own_type(part)?.into());
            }
            Type::None => out.varint(12),
            Type::Tensor(tensor) => {
                match &tensor.encoding {
                    None => out.varint(13),
                    Some(encoding) => {
                        out.varint(14);
                        out.varint(self.own_attr(encoding)?.into());
                    }
                }
                dims(tensor, &mut out)?;
                out.varint(self.own_type(&tensor.element)?.into());
            }
            _ => {
                let text = print::ty(ty);
                let dialect = dialect_of(&text, '!')?;
                return Ok(self.types.add_text(dialect, &text));
            }
        }
        Ok(self.types.add("builtin", out))
    }

    /// The index of a location.
    pub(super) fn loc(&mut self, loc: &Loc) -> Result<u32> {
        let key = Arc::as_ptr(loc) as usize;
        if let Some((_, index)) = self.locs.get(&key) {
            return Ok(*index);
        }
        let index = self.nested(|this| this.loc_entry(loc))?;
        self.locs.insert(key, (Arc::clone(loc), index));
        Ok(index)
    }
    fn loc_entry(&mut self, loc: &SourceLoc) -> Result<u32> {
        let mut out = Emitter::default();
        match loc {
            SourceLoc::Unknown => out.varint(15),
            SourceLoc::File {
                file,
                line,
                column,
                end_line,
                end_column,
            } => {
                let file = self.own_attr(&Attr::string(file))?;
                let range = (line, column) != (end_line, end_column) && self.version >= (1, 9);
                out.varint(if range { 22 } else { 11 });
                out.varint(file.into());
                if range {
                    out.varint(4);
                }
                out.varint((*line).into());
                out.varint((*column).into());
                if range {
                    out.varint((*end_line).into());
                    out.varint((*end_column).into());
                }
            }
            SourceLoc::Name { name, child } => {
                let name = self.own_attr(&Attr::string(name))?;
                out.varint(14);
                out.varint(name.into());
                out.varint(self.loc(child)?.into());
            }
            SourceLoc::CallSite { callee, caller } => {
                out.varint(10);
                out.varint(self.loc(callee)?.into());
                out.varint(self.loc(caller)?.into());
            }
            SourceLoc::Fused { parts, metadata } => {
                let parts: Result<Vec<u32>> = parts.iter().map(|part| self.loc(part)).collect();
                out.varint(if metadata.is_some() { 13 } else { 12 });
                out.indices(&parts?);
                if let Some(metadata) = metadata {
                    out.varint(self.own_attr(metadata)?.into());
                }
            }
        }
        Ok(self.attrs.add("builtin", out))
    }
}

/// The dialects that artifacts may have parts of.
pub(super) const DIALECTS: [&str; 10] = [
    "builtin",
    "vhlo",
    "stablehlo",
    "chlo",
    "sdy",
    "mhlo",
    "quant",
    "shape",
    "arith",
    "tensor",
];

/// The dialect of a text, which names it behind `sigil`; text without one is of `builtin`.
fn dialect_of(text: &str, sigil: char) -> Result<&'static str> {
    let Some(rest) = text.strip_prefix(sigil) else {
        return Ok(DIALECTS[0]);
    };
    let name = rest.split(['.', '<']).next().unwrap_or_default();
    let known = DIALECTS.into_iter().find(|dialect| *dialect == name);
    known.ok_or_else(|| format!("`{text}`, of a dialect that is not written"))
}
