//! The functions of a module, and which of them have types with open sizes.

use std::collections::BTreeMap;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::front::stablehlo::types;
use crate::front::stablehlo::types::Known;
use crate::mlir;
use crate::mlir::Attr;
use crate::mlir::OpId;
use crate::mlir::OpRef;
use crate::mlir::Type;

/// A function and what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Its op.
    pub op: OpId,
    /// Whether it, or a function that it calls, has types with open sizes.
    pub open: bool,
}

/// All functions that the entry needs.
#[derive(Debug)]
pub struct Functions<'m> {
    by_name: BTreeMap<&'m str, Function>,
    /// The entry function's name.
    pub entry: &'m str,
    /// Names of the functions that the entry needs, callees before callers, the entry last.
    pub order: Vec<&'m str>,
    /// Whether the function that is converted now has types with open sizes.
    current_open: bool,
}

impl<'m> Functions<'m> {
    /// The functions of a module.
    pub fn of(source: &'m mlir::Module) -> Result<Self> {
        let mut by_name = BTreeMap::new();
        let mut public = Vec::new();
        for op in source.block_ops(source.body()) {
            if op.kind() != "func.func" {
                continue;
            }
            let name = op.attr_str("sym_name").map_err(|d| op.placed(d))?;
            let function = Function {
                op: op.id,
                open: false,
            };
            if by_name.insert(name, function).is_some() {
                return Err(op.wrong(format!("`{name}` is defined twice")));
            }
            if !matches!(op.opt_str("sym_visibility"), Ok(Some("private" | "nested"))) {
                public.push(name);
            }
        }
        let entry = match (by_name.contains_key("main"), &*public) {
            (true, _) => "main",
            (false, [only]) => only,
            (false, _) => {
                let message = "no function `main`, and not one public function";
                return Err(Diagnostic::error(codes::MODULE_STRUCTURE, message));
            }
        };
        let mut functions = Self {
            by_name,
            entry,
            order: Vec::new(),
            current_open: false,
        };
        functions.find_order(source)?;
        Ok(functions)
    }

    /// The function of that name.
    pub fn get(&self, op: OpRef<'_>, name: &str) -> Result<Function> {
        let function = self.by_name.get(name).copied();
        function.ok_or_else(|| op.wrong(format!("there is no function `{name}`")))
    }
    /// The entry function.
    pub fn entry_op(&self) -> OpId {
        self.by_name[self.entry].op
    }
    /// Whether that function has types with open sizes.
    pub fn open(&self, name: &str) -> bool {
        self.by_name.get(name).is_some_and(|f| f.open)
    }
    /// Whether the function that is converted now has types with open sizes.
    pub fn is_open(&self) -> bool {
        self.current_open
    }
    /// Another function is converted; gives what was said before.
    pub fn enter(&mut self, open: bool) -> bool {
        std::mem::replace(&mut self.current_open, open)
    }

    /// Puts callees before callers, and finds which functions are open.
    fn find_order(&mut self, source: &'m mlir::Module) -> Result<()> {
        /// A function on the way, and what it needs.
        struct Visit<'m> {
            name: &'m str,
            callees: Vec<&'m str>,
            next: usize,
            open: bool,
        }
        let visit = |functions: &Self, name: &'m str| {
            let op = source.op(functions.by_name[name].op);
            let (callees, open) = needs(op);
            Visit {
                name,
                callees,
                next: 0,
                open,
            }
        };
        let mut done: BTreeMap<&str, bool> = BTreeMap::new();
        let mut path = vec![visit(self, self.entry)];
        while let Some(last) = path.last_mut() {
            if let Some(&callee) = last.callees.get(last.next) {
                last.next += 1;
                if let Some(&open) = done.get(callee) {
                    last.open |= open;
                } else if path.iter().any(|v| v.name == callee) {
                    let message = format!("the function `{callee}` calls itself");
                    return Err(Diagnostic::error(codes::MODULE_STRUCTURE, message));
                } else if self.by_name.contains_key(callee) {
                    path.push(visit(self, callee));
                }
                continue;
            }
            let (name, open) = (last.name, last.open);
            path.pop();
            done.insert(name, open);
            if let Some(function) = self.by_name.get_mut(name) {
                function.open = open;
            }
            if let Some(caller) = path.last_mut() {
                caller.open |= open;
            }
            self.order.push(name);
        }
        Ok(())
    }
}

/// The functions that a function names, and whether it has a value of an open type.
fn needs(function: OpRef<'_>) -> (Vec<&str>, bool) {
    let source = function.module;
    let mut callees = Vec::new();
    let mut open = false;
    let mut todo = function.regions.clone();
    while let Some(region) = todo.pop() {
        for &block in &source.regions[region].blocks {
            let args = source.blocks[block].args.iter();
            open = open || args.copied().any(|v| is_open(source.ty(v)));
            for op in source.block_ops(block) {
                open = open || op.results.iter().any(|&v| is_open(source.ty(v)));
                todo.extend(op.regions.iter().copied());
                callees.extend(named(op));
            }
        }
    }
    callees.sort_unstable();
    callees.dedup();
    (callees, open)
}

/// The functions that an op calls or hands on.
fn named(op: OpRef<'_>) -> Vec<&str> {
    let one = |name: &str| match op.get().attrs.get(name) {
        Some(Attr::Symbol(symbol)) => Some(symbol.leaf().as_str()),
        _ => None,
    };
    match op.kind() {
        "func.call" => one("callee").into_iter().collect(),
        "stablehlo.composite" | "mhlo.composite" => one("decomposition").into_iter().collect(),
        "stablehlo.custom_call" | "mhlo.custom_call" => {
            let called = op.get().attrs.get("called_computations");
            let called = called.and_then(Attr::as_array).unwrap_or_default();
            let leaf = |attr: &'_ Attr| match attr {
                Attr::Symbol(symbol) => Some(symbol.leaf().as_str().to_owned()),
                _ => None,
            };
            // The names live in the module as long as the op does.
            let module = op.module;
            called
                .iter()
                .filter_map(leaf)
                .filter_map(|name| module.symbol(&name).and_then(|id| module.symbol_name(id)))
                .collect()
        }
        _ => Vec::new(),
    }
}

fn is_open(ty: &Type) -> bool {
    match ty {
        Type::Tensor(tensor) if tensor.is_static() => false,
        Type::Tensor(_) | Type::UnrankedTensor(_) => {
            !matches!(types::shape_of(ty), Ok(Known::Whole(_)))
        }
        _ => false,
    }
}
