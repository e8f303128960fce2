//! MLIR text of a module: in the generic form, which every MLIR tool that knows the ops reads, and in
//! the pretty form, which people read.
//!
//! Attributes and properties are printed in one dictionary; MLIR takes that as well as two.
//! Text that is read again gives an equal module: [`print()`] of both is the same.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::rc::Rc;
use std::sync::Arc;

use crate::base::IdMap;
use crate::mlir::attrs::Attr;
use crate::mlir::attrs::AttrMap;
use crate::mlir::location::Loc;
use crate::mlir::location::SourceLoc;
use crate::mlir::module::BlockId;
use crate::mlir::module::Module;
use crate::mlir::module::OpId;
use crate::mlir::module::RegionId;
use crate::mlir::module::ValueDef;
use crate::mlir::module::ValueId;
use crate::mlir::types::Type;

mod attr;
mod number;
mod pretty;
mod sdy;
mod ty;

pub use attr::write_attr;
pub use ty::write_type;

/// The module's text in the pretty forms of its ops, without locations. Ops whose pretty form would
/// not say all stand in the generic form.
pub fn print_pretty(module: &Module) -> String {
    let mut printer = Printer::new(module, false);
    printer.is_pretty = true;
    printer.print()
}

/// As [`print_pretty`], with locations, as JAX's `as_text(debug_info=True)` has them. The variables
/// of a loop have no locations in its pretty form.
pub fn print_pretty_with_locations(module: &Module) -> String {
    let mut printer = Printer::new(module, true);
    printer.is_pretty = true;
    printer.print()
}

/// The module's text without locations.
pub fn print(module: &Module) -> String {
    Printer::new(module, false).print()
}

/// The module's text with locations.
pub fn print_with_locations(module: &Module) -> String {
    Printer::new(module, true).print()
}

/// An attribute's text.
pub fn attr(attr: &Attr) -> String {
    let mut out = String::new();
    write_attr(attr, &mut out);
    out
}

/// A type's text.
pub fn ty(ty: &Type) -> String {
    let mut out = String::new();
    write_type(ty, &mut out);
    out
}

/// The state of one printing.
struct Printer<'m> {
    module: &'m Module,
    out: String,
    /// The number of the op or argument that a value belongs to.
    numbers: IdMap<ValueId, u32>,
    next_op: u32,
    next_arg: u32,
    /// Numbers of blocks within their regions.
    blocks: IdMap<BlockId, u32>,
    locations: Option<Locations>,
    is_pretty: bool,
    /// The first number of arguments inside the function that is printed next.
    first_arg: u32,
    indent: usize,
}

/// Locations that were named, each with the text that defines it.
#[derive(Default)]
struct Locations {
    /// Numbers by address, so that the text of a shared location is made once.
    numbers: BTreeMap<*const SourceLoc, usize>,
    /// Numbers by text.
    known: BTreeMap<Rc<str>, usize>,
    texts: Vec<Rc<str>>,
}

impl<'m> Printer<'m> {
    fn new(module: &'m Module, locations: bool) -> Self {
        Self {
            module,
            out: String::new(),
            numbers: IdMap::new(),
            next_op: 0,
            next_arg: 0,
            blocks: IdMap::new(),
            locations: locations.then(Locations::default),
            is_pretty: false,
            first_arg: 0,
            indent: 0,
        }
    }
    fn print(mut self) -> String {
        self.op(self.module.root);
        if let Some(locations) = &self.locations {
            for (number, text) in locations.texts.iter().enumerate() {
                let _ = writeln!(self.out, "#loc{number} = loc({text})");
            }
        }
        self.out
    }
    fn line(&mut self) {
        self.out.extend(std::iter::repeat_n("  ", self.indent));
    }
    fn op(&mut self, id: OpId) {
        let op = &self.module.ops[id];
        self.line();
        if !op.results.is_empty() {
            let number = self.next_op;
            self.next_op += 1;
            for &result in &op.results {
                self.numbers.set(result, number);
            }
            let _ = write!(self.out, "%{number}");
            if op.results.len() > 1 {
                let _ = write!(self.out, ":{}", op.results.len());
            }
            self.out.push_str(" = ");
        }
        if self.is_pretty {
            let (length, next_arg) = (self.out.len(), self.next_arg);
            if self.pretty(id).is_some() {
                self.location(&op.loc);
                self.out.push('\n');
                return;
            }
            self.out.truncate(length);
            self.next_arg = next_arg;
        }
        self.generic(id);
        self.location(&op.loc);
        self.out.push('\n');
    }
    /// The generic form after the results.
    fn generic(&mut self, id: OpId) {
        let op = &self.module.ops[id];
        let _ = write!(self.out, "\"{}\"(", op.name);
        self.list(&op.operands, |p, value| p.value(*value));
        self.out.push(')');
        if !op.successors.is_empty() {
            self.out.push('[');
            self.list(&op.successors, |p, block| {
                let _ = write!(p.out, "^bb{}", p.blocks[*block]);
            });
            self.out.push(']');
        }
        if !op.regions.is_empty() {
            let isolated = matches!(&*op.name, "func.func" | "builtin.module");
            self.out.push_str(" (");
            self.list(&op.regions, |p, region| p.region(*region, isolated, true));
            self.out.push(')');
        }
        if !op.attrs.is_empty() {
            self.out.push(' ');
            self.dict(&op.attrs);
        }
        self.out.push_str(" : (");
        self.list(&op.operands, |p, value| {
            write_type(p.module.ty(*value), &mut p.out)
        });
        self.out.push_str(") -> ");
        match op.results[..] {
            [result] if !matches!(self.module.ty(result), Type::Function(_)) => {
                write_type(self.module.ty(result), &mut self.out);
            }
            ref results => {
                self.out.push('(');
                self.list(results, |p, value| {
                    write_type(p.module.ty(*value), &mut p.out)
                });
                self.out.push(')');
            }
        }
    }
    fn list<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Self, &T)) {
        for (i, one) in items.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            item(self, one);
        }
    }
    fn value(&mut self, value: ValueId) {
        let number = self.numbers[value];
        match self.module.values[value].def {
            ValueDef::Arg { .. } => {
                let _ = write!(self.out, "%arg{number}");
            }
            ValueDef::Result { op, index } if self.module.ops[op].results.len() > 1 => {
                let _ = write!(self.out, "%{number}#{index}");
            }
            _ => {
                let _ = write!(self.out, "%{number}");
            }
        }
    }
    /// A region; without `entry` the arguments of its first block stand elsewhere.
    fn region(&mut self, region: RegionId, isolated: bool, entry: bool) {
        let outside = (self.next_op, self.next_arg);
        if isolated {
            (self.next_op, self.next_arg) = (0, self.first_arg);
        }
        let blocks = &self.module.regions[region].blocks;
        for (number, block) in blocks.iter().enumerate() {
            self.blocks.set(*block, number as u32);
        }
        self.out.push_str("{\n");
        for (number, &id) in blocks.iter().enumerate() {
            let block = &self.module.blocks[id];
            let labelled = !block.args.is_empty() || block.ops.is_empty();
            if number > 0 || (entry && labelled) {
                self.line();
                let _ = write!(self.out, "^bb{number}");
                self.block_args(id);
                self.out.push_str(":\n");
            }
            self.indent += 1;
            for &op in &block.ops {
                self.op(op);
            }
            self.indent -= 1;
        }
        self.line();
        self.out.push('}');
        if isolated {
            (self.next_op, self.next_arg) = outside;
        }
    }
    fn block_args(&mut self, id: BlockId) {
        let block = &self.module.blocks[id];
        if block.args.is_empty() {
            return;
        }
        self.out.push('(');
        for (i, &arg) in block.args.iter().enumerate() {
            self.out.push_str(if i > 0 { ", " } else { "" });
            self.block_arg(arg, block.arg_locs.get(i));
        }
        self.out.push(')');
    }
    /// `%arg0: t loc(...)`, with the next number of arguments.
    fn block_arg(&mut self, arg: ValueId, loc: Option<&Loc>) {
        let number = self.next_arg;
        self.next_arg += 1;
        self.numbers.set(arg, number);
        let _ = write!(self.out, "%arg{number}: ");
        write_type(self.module.ty(arg), &mut self.out);
        if let Some(loc) = loc {
            self.location(loc);
        }
    }
    fn dict(&mut self, attrs: &AttrMap) {
        attr::write_dict(attrs, &mut self.out);
    }
    /// ` loc(...)`, where locations are printed.
    fn location(&mut self, loc: &Loc) {
        let Some(locations) = &mut self.locations else {
            return;
        };
        if **loc == SourceLoc::Unknown {
            self.out.push_str(" loc(unknown)");
            return;
        }
        let number = locations.number(loc);
        let _ = write!(self.out, " loc(#loc{number})");
    }
}

impl Locations {
    /// The number of a location, which is given a text when it has none yet.
    fn number(&mut self, loc: &Loc) -> usize {
        let address = Arc::as_ptr(loc);
        if let Some(&number) = self.numbers.get(&address) {
            return number;
        }
        let mut text = String::new();
        match &**loc {
            SourceLoc::Unknown => text.push_str("unknown"),
            SourceLoc::Name { name, child } => {
                crate::mlir::text::scan::quote(name.as_bytes(), &mut text);
                if **child != SourceLoc::Unknown {
                    text.push('(');
                    self.part(child, &mut text);
                    text.push(')');
                }
            }
            SourceLoc::CallSite { callee, caller } => {
                text.push_str("callsite(");
                self.part(callee, &mut text);
                text.push_str(" at ");
                self.part(caller, &mut text);
                text.push(')');
            }
            SourceLoc::Fused { parts, metadata } => {
                text.push_str("fused");
                if let Some(metadata) = metadata {
                    text.push('<');
                    write_attr(metadata, &mut text);
                    text.push('>');
                }
                text.push('[');
                for (i, part) in parts.iter().enumerate() {
                    text.push_str(if i > 0 { ", " } else { "" });
                    self.part(part, &mut text);
                }
                text.push(']');
            }
            SourceLoc::File { .. } => attr::write_location(loc, &mut text),
        }
        let text: Rc<str> = text.into();
        let next = self.texts.len();
        let number = *self.known.entry(text).or_insert_with_key(|text| {
            self.texts.push(Rc::clone(text));
            next
        });
        self.numbers.insert(address, number);
        number
    }
    /// A location inside another one.
    fn part(&mut self, loc: &Loc, text: &mut String) {
        if **loc == SourceLoc::Unknown {
            text.push_str("unknown");
            return;
        }
        let number = self.number(loc);
        let _ = write!(text, "#loc{number}");
    }
}

/// Whether two modules are the same program: all but locations and ids.
pub fn same(a: &Module, b: &Module) -> bool {
    print(a) == print(b)
}
