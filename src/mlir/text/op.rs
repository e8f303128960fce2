//! Ops in MLIR text: results, the generic form, uses of values.

use std::sync::Arc;

use crate::base::Diagnostic;
use crate::base::Id;
use crate::base::Result;
use crate::base::codes;
use crate::mlir::attrs::Attr;
use crate::mlir::attrs::AttrMap;
use crate::mlir::dialect;
use crate::mlir::location::Loc;
use crate::mlir::module::BlockId;
use crate::mlir::module::NewOp;
use crate::mlir::module::OpId;
use crate::mlir::module::RegionId;
use crate::mlir::module::ValueId;
use crate::mlir::print;
use crate::mlir::text::Definition;
use crate::mlir::text::Reader;
use crate::mlir::types::Name;
use crate::mlir::types::Type;

/// A use of a value, and its place.
#[derive(Clone, Copy)]
pub(super) struct Use {
    pub(super) value: ValueId,
    pub(super) place: usize,
}

/// An op while it is read.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) operands: Vec<Use>,
    pub(super) result_types: Vec<Type>,
    pub(super) attrs: AttrMap,
    pub(super) regions: Vec<RegionId>,
    pub(super) successors: Vec<BlockId>,
    /// Its location, when it was read before the end of the op.
    pub(super) loc: Option<Loc>,
}

impl Draft {
    /// Sets an attribute that the form spells in its own way.
    pub(super) fn set(&mut self, name: &str, attr: Attr) {
        self.attrs.insert(name.into(), attr);
    }
}

impl<'a> Reader<'a> {
    /// All ops of the text, and the module that holds them.
    pub(super) fn top_level(&mut self) -> Result<()> {
        let (outside, body) = (RegionId::from_index(0), BlockId::from_index(0));
        while !self.scan.at_end() {
            let start = self.scan.pos();
            match self.scan.byte(0) {
                b'#' | b'!' => self.skip_alias()?,
                b'{' if self.scan.sees("{-#") => self.skip_resources()?,
                _ => {
                    self.operation(body)?;
                }
            }
            debug_assert!(self.scan.pos() > start, "something was read");
        }
        let only = match self.module.blocks[body].ops[..] {
            [op] if self.module.ops[op].name == dialect::MODULE => op,
            _ => {
                let mut root = NewOp::new(dialect::MODULE, Vec::new(), Vec::new());
                root.regions.push(outside);
                self.module.root = self.module.detached(root);
                return Ok(());
            }
        };
        self.module.blocks[body].ops.clear();
        self.module.ops[only].parent = None;
        self.module.root = only;
        Ok(())
    }
    /// Reads the definition of an alias, so that what is wrong in it is found.
    fn skip_alias(&mut self) -> Result<()> {
        let start = self.scan.pos();
        let sign = self.scan.byte(0);
        self.scan.set_pos(start + 1);
        let name = self.scan.suffix()?;
        self.scan.expect("=")?;
        match sign {
            b'#' => _ = self.alias(sign, name, start)?,
            _ => _ = self.type_alias(name, start)?,
        }
        self.attr()?;
        Ok(())
    }
    /// Moves past the section of resources, which was read before.
    fn skip_resources(&mut self) -> Result<()> {
        self.resource_section()
    }
    /// One op, at the end of the block.
    pub(super) fn operation(&mut self, block: BlockId) -> Result<OpId> {
        self.scan.skip_space();
        let start = self.scan.pos();
        let place = self.line_of(start);
        let results = match self.scan.byte(0) {
            b'%' => self.result_names()?,
            _ => Vec::new(),
        };
        self.scan.skip_space();
        let name_place = self.scan.pos();
        let (name, mut draft) = match self.scan.byte(0) {
            b'"' => {
                let name = self.op_name(name_place)?;
                let mut draft = Draft::default();
                self.generic(&name, &mut draft)?;
                (name, draft)
            }
            _ => self.pretty()?,
        };
        let loc = match draft.loc.take() {
            Some(loc) => loc,
            None => {
                let loc = self.opt_location()?;
                loc.unwrap_or_else(|| Arc::clone(&self.unknown))
            }
        };
        dialect::canonicalize(&name, &mut draft.attrs);
        self.note_symbol(&draft.attrs, name_place)?;
        let op = self.module.detached(NewOp {
            name,
            operands: draft.operands.iter().map(|u| u.value).collect(),
            result_types: draft.result_types,
            attrs: draft.attrs,
            regions: draft.regions,
            successors: draft.successors,
            loc,
            place,
        });
        if let Some(fault) = self.module.end_fault(block) {
            return Err(self.scan.error_at(name_place, fault));
        }
        self.module.attach(block, op);
        if self.module.ops[op].name == dialect::MODULE
            && let Some(fault) = self.module.shape_fault(op)
        {
            return Err(self.scan.error_at(name_place, fault));
        }
        self.bind_results(op, &results, start)?;
        Ok(op)
    }
    /// `%a, %b:2 =`.
    fn result_names(&mut self) -> Result<Vec<(&'a str, usize, usize)>> {
        let mut names = Vec::new();
        loop {
            let (name, place) = self.scan.value_name()?;
            let mut count = 1;
            if self.scan.eat(":") {
                let many = self.scan.number()?;
                count = usize::try_from(many).unwrap_or(usize::MAX);
            }
            names.push((name, count, place));
            if !self.scan.eat(",") {
                break;
            }
        }
        self.scan.expect("=")?;
        Ok(names)
    }
    /// Gives the results of an op their names.
    fn bind_results(
        &mut self,
        op: OpId,
        names: &[(&'a str, usize, usize)],
        pos: usize,
    ) -> Result<()> {
        let results = &self.module.ops[op].results;
        let (count, first) = (results.len(), results.first().copied());
        let named = names.iter().fold(0usize, |sum, n| sum.saturating_add(n.1));
        if !names.is_empty() && named != count || names.iter().any(|n| n.1 == 0) {
            let message = format!("{named} names for the {count} results of the op");
            return Err(self.scan.error_at(pos, message));
        }
        let mut next = first.map_or(0, Id::index);
        for &(name, count, place) in names {
            let first = ValueId::from_index(next);
            self.define(name, Definition { first, count }, place)?;
            next += count;
        }
        Ok(())
    }
    /// Adds a name for values.
    pub(super) fn define(
        &mut self,
        name: &'a str,
        definition: Definition,
        place: usize,
    ) -> Result<()> {
        if self.scope.define(name, definition) {
            return Ok(());
        }
        let message = format!("`%{name}` is defined twice");
        Err(self.scan.diagnostic(codes::TEXT_NAME, place, message))
    }
    /// Refuses a second symbol of one name.
    fn note_symbol(&mut self, attrs: &AttrMap, pos: usize) -> Result<()> {
        let Some(Attr::String(name)) = attrs.get("sym_name") else {
            return Ok(());
        };
        let Some(table) = self.symbols.last_mut() else {
            return Ok(());
        };
        if table.insert(Arc::clone(name)) {
            return Ok(());
        }
        let message = format!(
            "symbol `@{}` is defined twice",
            String::from_utf8_lossy(name)
        );
        Err(self.scan.diagnostic(codes::TEXT_NAME, pos, message))
    }
    /// The quoted name of an op.
    fn op_name(&mut self, pos: usize) -> Result<Name> {
        let raw = self.scan.raw_string()?;
        if raw.is_empty() || !dialect::is_op_name(raw) {
            return Err(self.scan.error_at(pos, "a string that is no name of an op"));
        }
        Ok(self.current_name(raw))
    }
    /// The name that an op has now.
    pub(super) fn current_name(&mut self, name: &'a str) -> Name {
        let current = dialect::current_name(name).unwrap_or(name);
        self.names.get(current)
    }
    /// What stands after the name of an op in the generic form.
    pub(super) fn generic(&mut self, name: &str, draft: &mut Draft) -> Result<()> {
        draft.operands = self.items(["(", ")"], Self::operand)?;
        if self.scan.sees("[") {
            draft.successors = self.items(["[", "]"], Self::successor)?;
        }
        if self.scan.eat("<") {
            self.attr_dict_into(&mut draft.attrs)?;
            self.scan.expect(">")?;
        }
        if self.scan.eat("(") {
            loop {
                let region = self.region(None, dialect::is_isolated(name))?;
                draft.regions.push(region);
                if !self.scan.eat(",") {
                    break;
                }
            }
            self.scan.expect(")")?;
        }
        if self.scan.sees("{") {
            self.attr_dict_into(&mut draft.attrs)?;
        }
        self.scan.expect(":")?;
        self.function_types(draft)
    }
    /// A use of a value: `%a` or `%a#1`.
    pub(super) fn operand(&mut self) -> Result<Use> {
        let (name, place) = self.scan.value_name()?;
        let mut index = 0;
        if self.scan.byte(0) == b'#' {
            self.scan.set_pos(self.scan.pos() + 1);
            index = usize::try_from(self.scan.number()?).unwrap_or(usize::MAX);
        }
        let Some(definition) = self.scope.find(name) else {
            let message = format!("`%{name}` is used, and not defined before");
            return Err(self.scan.diagnostic(codes::TEXT_NAME, place, message));
        };
        if index >= definition.count {
            let count = definition.count;
            let message = format!("`%{name}#{index}` is used where `%{name}` is {count} values");
            return Err(self.scan.diagnostic(codes::TEXT_NAME, place, message));
        }
        let value = ValueId::from_index(definition.first.index() + index);
        Ok(Use { value, place })
    }
    /// A block that is gone on to: `^bb1`.
    pub(super) fn successor(&mut self) -> Result<BlockId> {
        let (label, place) = self.label()?;
        let block = self.block_of(label, place)?;
        let region = self.module.blocks[block].parent;
        let is_entry = match self.module.regions.get(region) {
            Some(region) => region.blocks.first() == Some(&block),
            None => false,
        };
        if is_entry {
            let message = format!("block `^{label}`, which its region begins with, is a successor");
            return Err(self.scan.error_at(place, message));
        }
        Ok(block)
    }
    /// Checks a use's type.
    pub(super) fn check_type(&self, used: Use, ty: &Type) -> Result<()> {
        if self.module.ty(used.value) == ty {
            return Ok(());
        }
        let (wanted, found) = (print::ty(self.module.ty(used.value)), print::ty(ty));
        let message = format!("used as {found} where its definition has {wanted}");
        Err(self.scan.diagnostic(codes::TEXT_NAME, used.place, message))
    }
    /// Checks the types of all uses.
    pub(super) fn check_types(&mut self, uses: &[Use], types: &[Type]) -> Result<()> {
        if uses.len() != types.len() {
            return Err(self.wrong_count(uses.len(), types.len()));
        }
        let mut pairs = uses.iter().zip(types);
        pairs.try_for_each(|(used, ty)| self.check_type(*used, ty))
    }
    pub(super) fn wrong_count(&mut self, operands: usize, types: usize) -> Box<Diagnostic> {
        let pos = self.scan.pos();
        let message = format!("{types} types for {operands} operands");
        self.scan.error_at(pos, message)
    }
    /// `(a, b) -> c`: the types of operands and results.
    pub(super) fn function_types(&mut self, draft: &mut Draft) -> Result<()> {
        let ty = self.nested(|r| r.function_type())?;
        self.check_types(&draft.operands, &ty.inputs)?;
        draft.result_types = ty.results;
        Ok(())
    }
}
