//! An op seen within its module: what it has, or a diagnostic that says where it is.

use std::fmt::Write;
use std::ops::Deref;

use crate::base::Code;
use crate::base::Diagnostic;
use crate::base::Location;
use crate::base::Result;
use crate::base::codes;
use crate::mlir::attrs::Attr;
use crate::mlir::attrs::Dense;
use crate::mlir::attrs::StructAttr;
use crate::mlir::module::BlockId;
use crate::mlir::module::Module;
use crate::mlir::module::Op;
use crate::mlir::module::OpId;
use crate::mlir::module::RegionId;
use crate::mlir::module::ValueId;
use crate::mlir::types::Type;

/// An op and the module that holds it.
#[derive(Clone, Copy, Debug)]
pub struct OpRef<'m> {
    /// The module.
    pub module: &'m Module,
    /// The op.
    pub id: OpId,
}

impl Deref for OpRef<'_> {
    type Target = Op;
    fn deref(&self) -> &Op {
        &self.module.ops[self.id]
    }
}

impl Module {
    /// The op within this module.
    pub fn op(&self, id: OpId) -> OpRef<'_> {
        OpRef { module: self, id }
    }
    /// The ops of a block, in order.
    pub fn block_ops(&self, block: BlockId) -> impl DoubleEndedIterator<Item = OpRef<'_>> {
        self.blocks[block].ops.iter().map(|id| self.op(*id))
    }
}

impl<'m> OpRef<'m> {
    /// The op, for as long as the module lives.
    pub fn get(&self) -> &'m Op {
        &self.module.ops[self.id]
    }
    /// The name, for as long as the module lives.
    pub fn kind(&self) -> &'m str {
        &self.get().name
    }

    /// The operand at a position.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn operand(&self, index: usize) -> Result<ValueId> {
        let operand = self.operands.get(index).copied();
        operand.ok_or_else(|| {
            let count = self.operands.len();
            self.wrong(format!("{count} operands where number {index} is needed"))
        })
    }
    /// The type of the operand at a position.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn operand_type(&self, index: usize) -> Result<&'m Type> {
        Ok(self.module.ty(self.operand(index)?))
    }
    /// The type of the result at a position.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn result_type(&self, index: usize) -> Result<&'m Type> {
        let result = self.results.get(index).copied();
        let result = result.ok_or_else(|| {
            let count = self.results.len();
            self.wrong(format!("{count} results where number {index} is needed"))
        });
        Ok(self.module.ty(result?))
    }
    /// The region at a position.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn region(&self, index: usize) -> Result<RegionId> {
        let region = self.regions.get(index).copied();
        region.ok_or_else(|| {
            let count = self.regions.len();
            self.wrong(format!("{count} regions where number {index} is needed"))
        })
    }
    /// The one block of the region at a position.
    ///
    /// # Errors
    /// When the region is not there, or has another number of blocks.
    pub fn block(&self, index: usize) -> Result<BlockId> {
        let region = self.region(index)?;
        match self.module.regions[region].blocks[..] {
            [block] => Ok(block),
            ref blocks => Err(self.wrong(format!(
                "region {index} has {} blocks where one should be",
                blocks.len()
            ))),
        }
    }

    /// The attribute of that name, when the op has it.
    pub fn attr(&self, name: &str) -> Option<&'m Attr> {
        self.get().attrs.get(name)
    }
    /// Whether the op has an attribute of that name.
    pub fn has_attr(&self, name: &str) -> bool {
        self.attr(name).is_some()
    }
    /// The attribute of that name.
    ///
    /// # Errors
    /// When the op has none.
    pub fn need(&self, name: &str) -> Result<&'m Attr> {
        let lacks = || self.wrong(format!("attribute `{name}` is missing"));
        self.attr(name).ok_or_else(lacks)
    }
    /// The attribute of that name as `view` takes it; nothing when the op has none.
    ///
    /// # Errors
    /// When `view` gives nothing: the attribute is not `wanted`.
    pub fn attr_as<T>(
        &self,
        name: &str,
        wanted: &str,
        view: impl FnOnce(&'m Attr) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(attr) = self.attr(name) else {
            return Ok(None);
        };
        let value = view(attr).ok_or_else(|| {
            let what = attr.what();
            self.wrong(format!(
                "attribute `{name}` is {what} where {wanted} should be"
            ))
        });
        value.map(Some)
    }
    fn needed<T>(&self, name: &str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| self.wrong(format!("attribute `{name}` is missing")))
    }
    /// The integer of that name.
    ///
    /// # Errors
    /// When it is missing, no integer or wider than 64 bits.
    pub fn attr_int(&self, name: &str) -> Result<i64> {
        let value = self.opt_int(name)?;
        self.needed(name, value)
    }
    /// The integer of that name, when the op has it.
    ///
    /// # Errors
    /// When it is no integer or wider than 64 bits.
    pub fn opt_int(&self, name: &str) -> Result<Option<i64>> {
        self.attr_as(name, "an integer of 64 bits", Attr::as_int)
    }
    /// The integers of that name.
    ///
    /// # Errors
    /// When they are missing or no integers.
    pub fn attr_ints(&self, name: &str) -> Result<Vec<i64>> {
        let value = self.opt_ints(name)?;
        self.needed(name, value)
    }
    /// The integers of that name, when the op has them.
    ///
    /// # Errors
    /// When they are no integers.
    pub fn opt_ints(&self, name: &str) -> Result<Option<Vec<i64>>> {
        self.attr_as(name, "a list of integers", Attr::ints)
    }
    /// The booleans of that name, when the op has them.
    ///
    /// # Errors
    /// When they are no booleans.
    pub fn opt_bools(&self, name: &str) -> Result<Option<Vec<bool>>> {
        self.attr_as(name, "a list of booleans", |attr| match attr {
            Attr::DenseArray(array) => array.bools(),
            _ => None,
        })
    }
    /// The boolean of that name; `default` when the op has none.
    ///
    /// # Errors
    /// When it is no boolean.
    pub fn bool_or(&self, name: &str, default: bool) -> Result<bool> {
        let value = self.attr_as(name, "a boolean", |attr| match attr {
            Attr::Bool(value) => Some(*value),
            Attr::Unit => Some(true),
            _ => None,
        });
        Ok(value?.unwrap_or(default))
    }
    /// The text of that name.
    ///
    /// # Errors
    /// When it is missing, or no string of UTF-8.
    pub fn attr_str(&self, name: &str) -> Result<&'m str> {
        let value = self.opt_str(name)?;
        self.needed(name, value)
    }
    /// The text of that name, when the op has it.
    ///
    /// # Errors
    /// When it is no string of UTF-8.
    pub fn opt_str(&self, name: &str) -> Result<Option<&'m str>> {
        self.attr_as(name, "a string of UTF-8", Attr::as_str)
    }
    /// The symbol of that name, without path, when the op has it.
    ///
    /// # Errors
    /// When it is no symbol.
    pub fn opt_symbol(&self, name: &str) -> Result<Option<&'m str>> {
        self.attr_as(name, "a symbol", |attr| match attr {
            Attr::Symbol(symbol) => Some(symbol.leaf().as_str()),
            _ => None,
        })
    }
    /// The symbol of that name, without path.
    ///
    /// # Errors
    /// When it is missing or no symbol.
    pub fn attr_symbol(&self, name: &str) -> Result<&'m str> {
        let value = self.opt_symbol(name)?;
        self.needed(name, value)
    }
    /// The case of the enumeration `kind` under that name, when the op has it.
    ///
    /// # Errors
    /// When it is none of that enumeration.
    pub fn opt_enum(&self, name: &str, kind: &str) -> Result<Option<&'m str>> {
        self.attr_as(name, &format!("a `{kind}`"), |attr| attr.as_enum(kind))
    }
    /// The case of the enumeration `kind` under that name.
    ///
    /// # Errors
    /// When it is missing or none of that enumeration.
    pub fn attr_enum(&self, name: &str, kind: &str) -> Result<&'m str> {
        let value = self.opt_enum(name, kind)?;
        self.needed(name, value)
    }
    /// The StableHLO structure `kind` under that name, when the op has it.
    ///
    /// # Errors
    /// When it is another thing.
    pub fn opt_struct(&self, name: &str, kind: &str) -> Result<Option<&'m StructAttr>> {
        let view = |attr: &'m Attr| attr.as_struct("stablehlo", kind);
        self.attr_as(name, &format!("`#stablehlo.{kind}`"), view)
    }
    /// The StableHLO structure `kind` under that name.
    ///
    /// # Errors
    /// When it is missing or another thing.
    pub fn attr_struct(&self, name: &str, kind: &str) -> Result<&'m StructAttr> {
        let value = self.opt_struct(name, kind)?;
        self.needed(name, value)
    }
    /// The dense elements of that name, when the op has them.
    ///
    /// # Errors
    /// When they are another thing.
    pub fn opt_dense(&self, name: &str) -> Result<Option<&'m Dense>> {
        self.attr_as(name, "dense elements", |attr| match attr {
            Attr::Dense(dense) => Some(dense),
            _ => None,
        })
    }
    /// The type of that name.
    ///
    /// # Errors
    /// When it is missing or another thing.
    pub fn attr_type(&self, name: &str) -> Result<&'m Type> {
        let value = self.attr_as(name, "a type", |attr| match attr {
            Attr::Type(ty) => Some(ty),
            _ => None,
        });
        self.needed(name, value?)
    }

    /// The op breaks a rule of its kind.
    pub fn wrong(&self, message: impl Into<String>) -> Box<Diagnostic> {
        self.placed(Diagnostic::error(codes::OP_CONSTRAINT, self.named(message)))
    }
    /// The op is right and cannot be handled.
    pub fn unsupported(&self, message: impl Into<String>) -> Box<Diagnostic> {
        let code = codes::COMPILE_UNSUPPORTED;
        self.placed(Diagnostic::unsupported(code, self.named(message)))
    }
    /// An error with another code.
    pub fn error(&self, code: Code, message: impl Into<String>) -> Box<Diagnostic> {
        self.placed(Diagnostic::error(code, self.named(message)))
    }
    fn named(&self, message: impl Into<String>) -> String {
        format!("`{}`: {}", self.name, message.into())
    }
    /// Says where the op is, unless a place is known already.
    pub fn placed(&self, diagnostic: Box<Diagnostic>) -> Box<Diagnostic> {
        let known = diagnostic.location.is_some();
        let mut diagnostic = diagnostic.or_at(|| Location::Instruction {
            computation: self.function_name().unwrap_or("module").to_owned(),
            text: self.summary(),
        });
        if !known && self.place > 0 {
            diagnostic = diagnostic.note(format!("it was read at {}", self.place));
        }
        match self.loc.file_line() {
            Some((file, line, column)) if !known => {
                diagnostic.note(format!("it comes from {file}:{line}:{column}"))
            }
            _ => diagnostic,
        }
    }
    /// The symbol name of the function around the op, or of the op itself.
    pub fn function_name(&self) -> Option<&'m str> {
        let mut op = Some(self.id);
        while let Some(id) = op {
            if id != self.module.root
                && let Some(name) = self.module.symbol_name(id)
            {
                return Some(name);
            }
            op = self.module.parent_op(id);
        }
        None
    }
    /// The op in short: results, name, operands, and the names of its attributes.
    fn summary(&self) -> String {
        const SHOWN: usize = 8;
        let list = |values: &[ValueId]| {
            let names = values.iter().take(SHOWN).map(|v| format!("{v:?}"));
            let mut text = names.collect::<Vec<_>>().join(", ");
            if values.len() > SHOWN {
                text.push_str(", ...");
            }
            text
        };
        let mut text = String::new();
        if !self.results.is_empty() {
            text = list(&self.results) + " = ";
        }
        let _ = write!(text, "{}({})", self.name, list(&self.operands));
        let names: Vec<&str> = self.attrs.iter().map(|(name, _)| name.as_str()).collect();
        if !names.is_empty() {
            let _ = write!(text, " {{{}}}", names.join(", "));
        }
        text
    }
}
