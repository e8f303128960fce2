//! The pretty forms that are not made of steps: functions, modules, constants, reductions, loops.

use std::sync::Arc;

use crate::base::Result;
use crate::mlir::attrs::Attr;
use crate::mlir::attrs::AttrMap;
use crate::mlir::attrs::Dense;
use crate::mlir::attrs::DenseArray;
use crate::mlir::dialect;
use crate::mlir::location::Loc;
use crate::mlir::module::NewOp;
use crate::mlir::text::Reader;
use crate::mlir::text::op::Draft;
use crate::mlir::text::region::Argument;
use crate::mlir::types::FunctionType;
use crate::mlir::types::Type;

impl<'a> Reader<'a> {
    /// Reads an op that has a form of its own; false, without having moved, when it has none.
    pub(super) fn special(&mut self, dialect: &str, op: &str, draft: &mut Draft) -> Result<bool> {
        match (dialect, op) {
            ("builtin", "module") => self.module_op(draft)?,
            ("func", "func") => self.function(draft)?,
            ("func", "constant") => self.function_constant(draft)?,
            ("stablehlo" | "mhlo" | "sdy", "constant") => match self.scan.sees("(") {
                true => self.generic("constant", draft)?,
                false => self.constant(draft)?,
            },
            ("chlo" | "arith", "constant") => self.constant(draft)?,
            ("stablehlo" | "mhlo", "reduce") if self.pretty_reduce() => self.reduce(draft)?,
            ("stablehlo" | "mhlo", "while") => self.while_op(draft)?,
            ("chlo", "scan") => self.scan_op(draft)?,
            ("shape", "const_shape") => self.const_shape(draft)?,
            ("shape", "const_witness") => {
                let attr = self.attr()?;
                draft.set("passing", attr);
                draft.result_types = vec![Type::Witness];
            }
            ("shape", "cstr_require") => {
                let operand = self.operand()?;
                draft.operands.push(operand);
                self.scan.expect(",")?;
                let message = self.attr()?;
                draft.set("msg", message);
                draft.result_types = vec![Type::Witness];
            }
            ("shape", "assuming") => self.assuming(draft)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
    /// `module @name attributes {...} {...}`.
    fn module_op(&mut self, draft: &mut Draft) -> Result<()> {
        if self.scan.sees("@") {
            let name = self.scan.symbol()?;
            draft.set("sym_name", Attr::string(&name));
        }
        self.attributes(draft)?;
        let region = self.region(None, true)?;
        if self.module.regions[region].blocks.is_empty() {
            self.module.new_block(region);
        }
        draft.regions.push(region);
        Ok(())
    }
    /// `attributes {...}`, optional.
    fn attributes(&mut self, draft: &mut Draft) -> Result<()> {
        if self.scan.eat_keyword("attributes") {
            self.attr_dict_into(&mut draft.attrs)?;
        }
        Ok(())
    }
    /// `func.func public @f(%a: t {...}) -> (t {...}) attributes {...} {...}`.
    fn function(&mut self, draft: &mut Draft) -> Result<()> {
        if let Some(word @ ("public" | "private" | "nested")) = self.scan.peek_keyword() {
            self.scan.eat_keyword(word);
            draft.set("sym_visibility", Attr::string(word));
        }
        let name = self.scan.symbol()?;
        draft.set("sym_name", Attr::string(&name));
        let (args, inputs, arg_attrs) = self.function_args()?;
        let (results, res_attrs) = match self.scan.eat("->") {
            true => self.function_results()?,
            false => (Vec::new(), Vec::new()),
        };
        self.attributes(draft)?;
        if self.scan.sees("{") {
            if args.len() != inputs.len() {
                return Err(self.scan.unexpected("arguments with names before"));
            }
            let region = self.region(Some(&args), true)?;
            draft.regions.push(region);
        } else {
            draft.regions.push(self.module.new_region());
        }
        let ty = FunctionType { inputs, results };
        draft.set("function_type", Attr::Type(Type::Function(Arc::new(ty))));
        for (name, attrs) in [("arg_attrs", arg_attrs), ("res_attrs", res_attrs)] {
            if attrs.iter().any(|map| !map.is_empty()) {
                let attrs = attrs.into_iter().map(Attr::dict).collect();
                draft.set(name, Attr::array(attrs));
            }
        }
        Ok(())
    }
    /// Arguments with names, or types alone, each with its attributes.
    fn function_args(&mut self) -> Result<(Vec<Argument<'a>>, Vec<Type>, Vec<AttrMap>)> {
        let (mut args, mut types, mut attrs) = (Vec::new(), Vec::new(), Vec::new());
        self.scan.expect("(")?;
        while !self.scan.eat(")") {
            if !types.is_empty() {
                self.scan.expect(",")?;
            }
            let named = match self.scan.peek() == b'%' {
                true => {
                    let named = self.scan.value_name()?;
                    self.scan.expect(":")?;
                    Some(named)
                }
                false => None,
            };
            let ty = self.ty()?;
            attrs.push(self.opt_dict()?);
            let loc = self.opt_location()?;
            types.push(ty.clone());
            if let Some((name, place)) = named {
                args.push(Argument {
                    name,
                    place,
                    ty,
                    loc,
                });
            }
        }
        Ok((args, types, attrs))
    }
    /// What stands after `->`: a type, or several in parentheses with their attributes.
    fn function_results(&mut self) -> Result<(Vec<Type>, Vec<AttrMap>)> {
        if !self.scan.eat("(") {
            return Ok((vec![self.ty()?], vec![AttrMap::new()]));
        }
        let (mut types, mut attrs) = (Vec::new(), Vec::new());
        while !self.scan.eat(")") {
            if !types.is_empty() {
                self.scan.expect(",")?;
            }
            types.push(self.ty()?);
            attrs.push(self.opt_dict()?);
        }
        Ok((types, attrs))
    }
    fn opt_dict(&mut self) -> Result<AttrMap> {
        match self.scan.sees("{") {
            true => self.attr_dict(),
            false => Ok(AttrMap::new()),
        }
    }
    /// `constant @f : (a) -> b`.
    fn function_constant(&mut self, draft: &mut Draft) -> Result<()> {
        self.attr_dict_before(draft)?;
        let symbol = self.symbol_ref()?;
        draft.set("value", Attr::Symbol(symbol));
        self.scan.expect(":")?;
        draft.result_types = vec![self.ty()?];
        Ok(())
    }
    fn attr_dict_before(&mut self, draft: &mut Draft) -> Result<()> {
        if self.scan.sees("{") {
            self.attr_dict_into(&mut draft.attrs)?;
        }
        Ok(())
    }
    /// `{...} dense<...> : t`, or a number with its type.
    fn constant(&mut self, draft: &mut Draft) -> Result<()> {
        self.attr_dict_before(draft)?;
        self.scan.skip_space();
        let pos = self.scan.pos();
        let value = self.attr()?;
        let ty = match &value {
            Attr::Dense(dense) => dense.ty.clone(),
            Attr::MissingResource { ty, .. } => ty.clone(),
            Attr::Integer { ty, .. } | Attr::Float { ty, .. } => ty.clone(),
            Attr::Bool(_) => Type::I1,
            other => {
                let message = format!("{} where a constant's value should stand", other.what());
                return Err(self.scan.error_at(pos, message));
            }
        };
        draft.set("value", value);
        draft.result_types = vec![ty];
        Ok(())
    }
    /// Whether `(%a init: %b)` follows, and not the operands of the generic form.
    fn pretty_reduce(&mut self) -> bool {
        let back = self.scan.pos();
        let operand = self.scan.eat("(") && self.scan.value_name().is_ok();
        if self.scan.eat("#") {
            self.scan.run(|b| b.is_ascii_digit());
        }
        let pretty = !operand || self.scan.peek_keyword() == Some("init");
        self.scan.set_pos(back);
        pretty
    }
    /// `(%a init: %b), (%c init: %d)` and what follows.
    fn reduce(&mut self, draft: &mut Draft) -> Result<()> {
        let mut inits = Vec::new();
        while self.scan.eat("(") {
            let operand = self.operand()?;
            draft.operands.push(operand);
            self.scan.expect_keyword("init")?;
            self.scan.expect(":")?;
            inits.push(self.operand()?);
            self.scan.expect(")")?;
            if !self.scan.eat(",") {
                break;
            }
        }
        draft.operands.append(&mut inits);
        let mut inner = None;
        if self.scan.eat_keyword("applies") {
            self.scan.skip_space();
            let pos = self.scan.pos();
            inner = self.scan.keyword().map(|name| (name, pos));
            if inner.is_none() {
                return Err(self.scan.unexpected("an op"));
            }
        }
        self.scan.expect_keyword("across")?;
        self.scan.expect_keyword("dimensions")?;
        self.scan.expect("=")?;
        let dimensions = self.ints()?;
        self.attr_dict_before(draft)?;
        draft.set("dimensions", Attr::i64_array(&dimensions));
        self.scan.expect(":")?;
        self.function_types(draft)?;
        match inner {
            Some((name, pos)) => self.short_reducer(name, pos, draft),
            None => self.reducer(draft),
        }
    }
    /// `reducer(%a: t, %b: t) (%c: t, %d: t) {...}`: the first of each pair, then the second ones.
    fn reducer(&mut self, draft: &mut Draft) -> Result<()> {
        self.scan.expect_keyword("reducer")?;
        let (mut args, mut accumulators) = (Vec::new(), Vec::new());
        while self.scan.eat("(") {
            args.push(self.argument()?);
            self.scan.expect(",")?;
            accumulators.push(self.argument()?);
            self.scan.expect(")")?;
        }
        args.append(&mut accumulators);
        let region = self.region(Some(&args), false)?;
        draft.regions.push(region);
        Ok(())
    }
    /// The region of one op of two scalars, which `applies` stands for.
    fn short_reducer(&mut self, name: &'a str, pos: usize, draft: &mut Draft) -> Result<()> {
        let loc = self.opt_location()?;
        let loc: Loc = loc.unwrap_or_else(|| Arc::clone(&self.unknown));
        draft.loc = Some(Arc::clone(&loc));
        let Some(first) = draft.operands.first() else {
            return Err(self.scan.error_at(pos, "a reduction of nothing"));
        };
        let element = self.module.ty(first.value).element().clone();
        let scalar = Type::tensor(Vec::new(), element);
        let name = self.current_name(name);
        if !dialect::is_commutative(&name) {
            let message = format!("`{name}` is no op that a reduction applies by name");
            return Err(self.scan.error_at(pos, message));
        }
        let place = self.line_of(pos);
        let region = self.module.new_region();
        let block = self.module.new_block(region);
        let lhs = self.module.add_arg(block, scalar.clone(), Arc::clone(&loc));
        let rhs = self.module.add_arg(block, scalar.clone(), Arc::clone(&loc));
        let mut op = NewOp::new(name, vec![lhs, rhs], vec![scalar]);
        (op.loc, op.place) = (Arc::clone(&loc), place);
        let op = self.module.push(block, op);
        let results = self.module.ops[op].results.clone();
        let mut end = NewOp::new(self.names.get("stablehlo.return"), results, Vec::new());
        (end.loc, end.place) = (loc, place);
        self.module.push(block, end);
        draft.regions.push(region);
        Ok(())
    }
    /// `(%i = %a, %j = %b) : t, u attributes {...} cond {...} do {...}`.
    fn while_op(&mut self, draft: &mut Draft) -> Result<()> {
        let mut names = Vec::new();
        self.scan.expect("(")?;
        while !self.scan.eat(")") {
            if !names.is_empty() {
                self.scan.expect(",")?;
            }
            names.push(self.scan.value_name()?);
            self.scan.expect("=")?;
            let operand = self.operand()?;
            draft.operands.push(operand);
        }
        let mut types = Vec::new();
        if !names.is_empty() {
            self.scan.expect(":")?;
            types = self.type_list()?;
        }
        self.check_types(&draft.operands, &types)?;
        self.attributes(draft)?;
        let arg = |((name, place), ty): (&(&'a str, usize), &Type)| Argument {
            name,
            place: *place,
            ty: ty.clone(),
            loc: None,
        };
        let args: Vec<Argument<'a>> = names.iter().zip(&types).map(arg).collect();
        for word in ["cond", "do"] {
            self.scan.expect_keyword(word)?;
            let region = self.region(Some(&args), false)?;
            draft.regions.push(region);
        }
        draft.result_types = types;
        Ok(())
    }
    /// `(%a) inits (%b) dimension=0 attributes {...} {...} : (t, u) -> (v, u)`.
    fn scan_op(&mut self, draft: &mut Draft) -> Result<()> {
        self.scan.expect("(")?;
        self.operands(draft)?;
        self.scan.expect(")")?;
        let inputs = draft.operands.len();
        self.scan.expect_keyword("inits")?;
        self.scan.expect("(")?;
        self.operands(draft)?;
        self.scan.expect(")")?;
        let carries = draft.operands.len() - inputs;
        self.scan.expect_keyword("dimension")?;
        self.scan.expect("=")?;
        let dimension = self.scan.integer()?;
        self.attributes(draft)?;
        let region = self.region(None, false)?;
        draft.regions.push(region);
        self.scan.expect(":")?;
        self.function_types(draft)?;
        let Some(outputs) = draft.result_types.len().checked_sub(carries) else {
            return Err(self.scan.unexpected("as many results as carries before"));
        };
        draft.set("dimension", Attr::i64(dimension));
        draft.set("operandSegmentSizes", segments(&[inputs, carries]));
        draft.set("resultSegmentSizes", segments(&[outputs, carries]));
        Ok(())
    }
    /// `[1, 2] : t`.
    fn const_shape(&mut self, draft: &mut Draft) -> Result<()> {
        self.attr_dict_before(draft)?;
        let sizes = self.ints()?;
        let ty = Type::static_tensor(&[sizes.len() as u64], Type::Index);
        let data = sizes.iter().flat_map(|s| s.to_le_bytes()).collect();
        draft.set("shape", Attr::Dense(Dense::new(ty, data)));
        self.scan.expect(":")?;
        draft.result_types = vec![self.ty()?];
        Ok(())
    }
    /// `%w -> (t) {...}`.
    fn assuming(&mut self, draft: &mut Draft) -> Result<()> {
        let operand = self.operand()?;
        draft.operands.push(operand);
        if self.scan.eat("->") {
            draft.result_types = self.result_types()?;
        }
        let region = self.region(None, false)?;
        draft.regions.push(region);
        self.attr_dict_before(draft)
    }
}

/// Numbers of operands or results in each group.
fn segments(sizes: &[usize]) -> Attr {
    let bytes = sizes.iter().flat_map(|s| (*s as i32).to_le_bytes());
    Attr::DenseArray(DenseArray {
        element: Type::I32,
        data: bytes.collect(),
    })
}
