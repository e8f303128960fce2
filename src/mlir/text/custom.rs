//! The pretty forms of ops: the steps of [`crate::mlir::text::formats`], one by one.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::mlir::attrs::Attr;
use crate::mlir::attrs::Dense;
use crate::mlir::text::Reader;
use crate::mlir::text::formats;
use crate::mlir::text::formats::Given;
use crate::mlir::text::formats::Sdy;
use crate::mlir::text::formats::Step;
use crate::mlir::text::formats::Types;
use crate::mlir::text::op::Draft;
use crate::mlir::types::Name;
use crate::mlir::types::Type;

impl<'a> Reader<'a> {
    /// An op in its pretty form, with its name.
    pub(super) fn pretty(&mut self) -> Result<(Name, Draft)> {
        self.scan.skip_space();
        let start = self.scan.pos();
        let Some(word) = self.scan.keyword() else {
            return Err(self.scan.unexpected("an op"));
        };
        let full = match word {
            "module" => "builtin.module",
            "func" => "func.func",
            "return" => "func.return",
            "call" => "func.call",
            "unrealized_conversion_cast" => "builtin.unrealized_conversion_cast",
            _ => word,
        };
        let Some((dialect, op)) = full.split_once('.') else {
            let message = format!("`{word}` is no op");
            return Err(self.unknown(start, message));
        };
        let name = self.current_name(full);
        let mut draft = Draft::default();
        if self.special(dialect, op, &mut draft)? {
            return Ok((name, draft));
        }
        if let Some(steps) = formats::form(dialect, op) {
            // Enumerations of `mhlo` are those of StableHLO.
            let dialect = if dialect == "mhlo" {
                "stablehlo"
            } else {
                dialect
            };
            self.steps(dialect, steps, &mut draft)?;
            return Ok((name, draft));
        }
        if self.scan.sees("(") {
            // Printers without a pretty form of an op print its name bare.
            self.generic(&name, &mut draft)?;
            return Ok((name, draft));
        }
        Err(self.no_form(full, start))
    }
    fn no_form(&self, name: &str, pos: usize) -> Box<Diagnostic> {
        let message = format!("the pretty form of op `{name}` is not read");
        let error = self.scan.diagnostic(codes::UNKNOWN_WORD, pos, message);
        error.help("print the module in the generic form, or as a portable artifact")
    }
    fn steps(&mut self, dialect: &str, steps: &[Step], draft: &mut Draft) -> Result<()> {
        for step in steps {
            self.step(dialect, *step, draft)?;
        }
        Ok(())
    }
    fn step(&mut self, dialect: &str, step: Step, draft: &mut Draft) -> Result<()> {
        match step {
            Step::Value => {
                let operand = self.operand()?;
                draft.operands.push(operand);
            }
            Step::Values => self.operands(draft)?,
            Step::ValuesComma => {
                while self.scan.peek() == b'%' {
                    let operand = self.operand()?;
                    draft.operands.push(operand);
                    self.scan.expect(",")?;
                }
            }
            Step::Text(text) => self.scan.expect(text)?,
            Step::Key(word) => {
                self.scan.expect_keyword(word)?;
                self.scan.expect("=")?;
            }
            Step::Optional(steps) => {
                let here = match steps.first() {
                    Some(Step::Text(text)) => self.scan.sees(text),
                    Some(Step::Key(word)) => self.scan.peek_keyword() == Some(word),
                    Some(Step::Choice(_, words, _)) => {
                        let next = self.scan.peek_keyword();
                        next.is_some_and(|next| words.contains(&next))
                    }
                    _ => false,
                };
                if here {
                    self.steps(dialect, steps, draft)?;
                }
            }
            Step::Dict => {
                if self.scan.sees("{") {
                    self.attr_dict_into(&mut draft.attrs)?;
                }
            }
            Step::Regions => {
                if self.scan.eat("(") {
                    loop {
                        let region = self.region(None, false)?;
                        draft.regions.push(region);
                        if !self.scan.eat(",") {
                            break;
                        }
                    }
                    self.scan.expect(")")?;
                }
            }
            Step::ArgsRegion => {
                let args = self.arguments()?;
                let region = self.region(Some(&args), false)?;
                draft.regions.push(region);
            }
            Step::Typed(types) => self.types_step(types, draft)?,
            _ => self.attr_step(dialect, step, draft)?,
        }
        Ok(())
    }
    /// Operands with commas between, possibly none.
    pub(super) fn operands(&mut self, draft: &mut Draft) -> Result<()> {
        if self.scan.peek() != b'%' {
            return Ok(());
        }
        loop {
            let operand = self.operand()?;
            draft.operands.push(operand);
            if !self.scan.eat(",") {
                return Ok(());
            }
        }
    }
    /// A step that reads attributes.
    fn attr_step(&mut self, dialect: &str, step: Step, draft: &mut Draft) -> Result<()> {
        match step {
            Step::Int(name, width) => {
                self.scan.skip_space();
                let pos = self.scan.pos();
                let value = self.scan.integer()?;
                let attr = self.integer_attr(value.into(), &Type::signless(width), pos)?;
                draft.set(name, attr);
            }
            Step::Ints(name) => {
                let values = match self.scan.sees("[") {
                    true => Attr::i64_array(&self.ints()?),
                    false => self.attr()?,
                };
                draft.set(name, values);
            }
            Step::Bool(name) => {
                let value = self.scan.eat_keyword("true");
                if !value && !self.scan.eat_keyword("false") {
                    return Err(self.scan.unexpected("`true` or `false`"));
                }
                draft.set(name, Attr::Bool(value));
            }
            Step::String(name) => {
                let text = self.scan.string()?;
                draft.set(name, Attr::String(text.into()));
            }
            Step::SymbolName(name) => {
                let symbol = self.scan.symbol()?;
                draft.set(name, Attr::string(&symbol));
            }
            Step::Symbol(name) => {
                let symbol = self.symbol_ref()?;
                draft.set(name, Attr::Symbol(symbol));
            }
            Step::Flag(word, name) => self.flag_step(word, name, draft),
            Step::Flags(word, name) => self.flags_step(word, name, draft)?,
            Step::Case(name, kind) => {
                let attr = match self.scan.sees("#") {
                    true => self.hash_attr()?,
                    false => Attr::enumeration(dialect, kind, self.case()?),
                };
                draft.set(name, attr);
            }
            Step::Slice => self.slice_step(draft)?,
            Step::DotDims => self.dot_step(draft)?,
            Step::Precision => self.precision_step(draft)?,
            Step::PrecisionAlgorithm => self.algorithm_step(draft)?,
            Step::ConvDims => {
                let attr = self.conv_dimensions()?;
                draft.set("dimension_numbers", attr);
            }
            Step::Window => self.window_step(draft)?,
            Step::ExponentMantissa => self.format_step(draft)?,
            Step::Choice(name, words, width) => self.choice_step(name, words, width, draft)?,
            Step::Shardy(name, kind) => {
                let attr = match kind {
                    Sdy::Mesh => self.sdy_mesh()?,
                    Sdy::Sharding => self.sdy_sharding()?,
                    Sdy::Shardings => self.sdy_shardings()?,
                    Sdy::ManualAxes => self.sdy_manual_axes()?,
                    Sdy::AxisList => self.sdy_axis_list()?,
                    Sdy::AxisLists => self.sdy_axis_lists()?,
                    Sdy::AllToAll => self.sdy_all_to_all()?,
                };
                draft.set(name, attr);
            }
            _ => {}
        }
        Ok(())
    }
    /// A word, optional.
    fn flag_step(&mut self, word: &str, name: &str, draft: &mut Draft) {
        if self.scan.eat_keyword(word) {
            draft.set(name, Attr::Unit);
        }
    }
    /// `overflow<nsw, nuw>`, optional.
    fn flags_step(&mut self, kind: &str, name: &str, draft: &mut Draft) -> Result<()> {
        if !self.scan.eat_keyword(kind) {
            return Ok(());
        }
        self.scan.expect("<")?;
        let mut flags = vec![self.case()?];
        while self.scan.eat(",") {
            flags.push(self.case()?);
        }
        self.scan.expect(">")?;
        let flags = flags.join(formats::flag_separator(kind));
        draft.set(name, Attr::Opaque(format!("#arith.{kind}<{flags}>").into()));
        Ok(())
    }
    /// One of some words, as its number.
    fn choice_step(
        &mut self,
        name: &str,
        words: &[&str],
        width: u32,
        draft: &mut Draft,
    ) -> Result<()> {
        let word = self.scan.peek_keyword().unwrap_or_default();
        let Some(at) = words.iter().position(|w| *w == word) else {
            let wanted = format!("one of `{}`", words.join("`, `"));
            return Err(self.scan.unexpected(&wanted));
        };
        self.scan.eat_keyword(word);
        let (value, ty) = (at as i128, Type::signless(width));
        draft.set(name, Attr::Integer { value, ty });
        Ok(())
    }
    /// `[0:4, 0:8:2]`.
    fn slice_step(&mut self, draft: &mut Draft) -> Result<()> {
        let (mut starts, mut limits, mut strides) = (Vec::new(), Vec::new(), Vec::new());
        self.scan.expect("[")?;
        while !self.scan.eat("]") {
            if !starts.is_empty() {
                self.scan.expect(",")?;
            }
            starts.push(self.scan.integer()?);
            self.scan.expect(":")?;
            limits.push(self.scan.integer()?);
            strides.push(match self.scan.eat(":") {
                true => self.scan.integer()?,
                false => 1,
            });
        }
        draft.set("start_indices", Attr::i64_array(&starts));
        draft.set("limit_indices", Attr::i64_array(&limits));
        draft.set("strides", Attr::i64_array(&strides));
        Ok(())
    }
    /// `batching_dims = [0] x [0], contracting_dims = [2] x [1]`, the first part optional.
    fn dot_step(&mut self, draft: &mut Draft) -> Result<()> {
        let mut pairs = [(Vec::new(), Vec::new()), (Vec::new(), Vec::new())];
        if self.scan.eat_keyword("batching_dims") {
            self.scan.expect("=")?;
            pairs[0] = self.dim_pair()?;
            self.scan.expect(",")?;
        }
        self.scan.expect_keyword("contracting_dims")?;
        self.scan.expect("=")?;
        pairs[1] = self.dim_pair()?;
        let [(lhs_batch, rhs_batch), (lhs, rhs)] = pairs;
        let fields = [
            ("lhs_batching_dimensions", lhs_batch),
            ("rhs_batching_dimensions", rhs_batch),
            ("lhs_contracting_dimensions", lhs),
            ("rhs_contracting_dimensions", rhs),
        ];
        let fields = fields.into_iter().filter(|f| !f.1.is_empty());
        let fields = fields.map(|(name, dims)| (Name::from(name), Attr::i64_array(&dims)));
        let attr = Attr::structure("stablehlo", "dot", fields.collect());
        draft.set("dot_dimension_numbers", attr);
        Ok(())
    }
    /// `[0] x [1]`.
    fn dim_pair(&mut self) -> Result<(Vec<i64>, Vec<i64>)> {
        let left = self.ints()?;
        self.scan.expect("x")?;
        Ok((left, self.ints()?))
    }
    fn precision_step(&mut self, draft: &mut Draft) -> Result<()> {
        match self.scan.eat(",") {
            true => self.precision(draft),
            false => Ok(()),
        }
    }
    fn algorithm_step(&mut self, draft: &mut Draft) -> Result<()> {
        if !self.scan.eat(",") {
            return Ok(());
        }
        if self.scan.peek_keyword() == Some("precision") {
            self.precision(draft)?;
            if !self.scan.eat(",") {
                return Ok(());
            }
        }
        self.scan.expect_keyword("algorithm")?;
        self.scan.expect("=")?;
        let attr = self.structure_of("stablehlo", "dot_algorithm")?;
        draft.set("algorithm", attr);
        Ok(())
    }
    /// `precision = [DEFAULT, HIGH]`.
    fn precision(&mut self, draft: &mut Draft) -> Result<()> {
        self.scan.expect_keyword("precision")?;
        self.scan.expect("=")?;
        let case = |r: &mut Self| Ok(Attr::stablehlo_enum("precision", r.case()?));
        let cases = self.items(["[", "]"], case)?;
        draft.set("precision_config", Attr::array(cases));
        Ok(())
    }
    /// `stride = [1, 1], pad = [[0, 0], [1, 1]], reverse = [false, true]`.
    fn window_step(&mut self, draft: &mut Draft) -> Result<()> {
        while let Some(word) = self.scan.peek_keyword() {
            let name = match word {
                "stride" => "window_strides",
                "pad" => "padding",
                "lhs_dilate" => "lhs_dilation",
                "rhs_dilate" => "rhs_dilation",
                "reverse" => "window_reversal",
                _ => return Err(self.scan.unexpected("a part of a window")),
            };
            if draft.attrs.get(name).is_some() {
                return Err(self.scan.unexpected("a part that was not set before"));
            }
            self.scan.eat_keyword(word);
            self.scan.expect("=")?;
            let attr = match word {
                "pad" => self.padding()?,
                "reverse" => Attr::bool_array(&self.reversal()?),
                _ => Attr::i64_array(&self.ints()?),
            };
            draft.set(name, attr);
            if !self.scan.eat(",") {
                break;
            }
        }
        Ok(())
    }
    /// `[[0, 0], [1, 1]]`.
    fn padding(&mut self) -> Result<Attr> {
        let pairs = self.items(["[", "]"], |r| {
            r.scan.expect("[")?;
            let low = r.scan.integer()?;
            r.scan.expect(",")?;
            let high = r.scan.integer()?;
            r.scan.expect("]")?;
            Ok([low, high])
        })?;
        let ty = Type::static_tensor(&[pairs.len() as u64, 2], Type::I64);
        let data = pairs.iter().flatten().flat_map(|n| n.to_le_bytes());
        let data = data.collect();
        Ok(Attr::Dense(Dense::new(ty, data)))
    }
    /// `[false, 1]`.
    fn reversal(&mut self) -> Result<Vec<bool>> {
        self.items(["[", "]"], |r| {
            let yes = r.scan.eat_keyword("true");
            Ok(yes || !r.scan.eat_keyword("false") && r.scan.integer()? != 0)
        })
    }
    /// `e5m10`.
    fn format_step(&mut self, draft: &mut Draft) -> Result<()> {
        self.scan.skip_space();
        let pos = self.scan.pos();
        let word = self.scan.keyword().unwrap_or_default();
        let parts = word.strip_prefix('e').and_then(|w| w.split_once('m'));
        let number = |text: &str| text.parse::<i32>().ok();
        let parts = parts.and_then(|(e, m)| Some((number(e)?, number(m)?)));
        let Some((exponent, mantissa)) = parts else {
            return Err(self.scan.error_at(pos, "a format that is not like `e5m10`"));
        };
        draft.set("exponent_bits", Attr::i32(exponent));
        draft.set("mantissa_bits", Attr::i32(mantissa));
        Ok(())
    }
    /// The types of operands and results.
    fn types_step(&mut self, types: Types, draft: &mut Draft) -> Result<()> {
        match types {
            Types::Barrier => {
                if self.scan.eat("(") {
                    return self.scan.expect(")");
                }
                self.operands(draft)?;
                return match draft.operands.is_empty() {
                    true => Ok(()),
                    false => self.types_step(Types::Pairwise, draft),
                };
            }
            Types::Returned if draft.operands.is_empty() && !self.scan.sees(":") => return Ok(()),
            Types::Gives(given) => return self.given_types(given, draft),
            _ => self.scan.expect(":")?,
        }
        match types {
            Types::Function => return self.function_types(draft),
            Types::Same | Types::Complex => return self.same_types(types, draft),
            Types::Select => return self.select_types(draft),
            Types::Tuple => {
                let ty = self.ty()?;
                let Type::Tuple(parts) = &ty else {
                    return Err(self.scan.unexpected("a tuple type before"));
                };
                self.check_types(&draft.operands, parts)?;
                draft.result_types = vec![ty];
            }
            Types::Pairwise | Types::Returned => {
                let list = self.type_list()?;
                self.check_types(&draft.operands, &list)?;
                if matches!(types, Types::Pairwise) {
                    draft.result_types = list;
                }
            }
            Types::Results => draft.result_types = self.result_list()?,
            Types::Arrow => {
                let list = self.type_list()?;
                self.check_types(&draft.operands, &list)?;
                self.scan.expect("->")?;
                draft.result_types = self.result_types()?;
            }
            Types::Cast => {
                let list = self.type_list()?;
                self.check_types(&draft.operands, &list)?;
                self.scan.expect_keyword("to")?;
                draft.result_types = self.type_list()?;
            }
            Types::Element | Types::Size => {
                let ty = self.ty()?;
                let mut list = vec![Type::Index; draft.operands.len()];
                if let Some(first) = list.first_mut() {
                    *first = ty.clone();
                }
                self.check_types(&draft.operands, &list)?;
                draft.result_types = vec![match types {
                    Types::Size => Type::Index,
                    _ => ty.element().clone(),
                }];
            }
            Types::FromElements => {
                let ty = self.ty()?;
                let element = ty.element().clone();
                let parts = vec![element; draft.operands.len()];
                self.check_types(&draft.operands, &parts)?;
                draft.result_types = vec![ty];
            }
            Types::All(results) => {
                let ty = self.ty()?;
                for used in &draft.operands {
                    self.check_type(*used, &ty)?;
                }
                draft.result_types = vec![ty; results];
            }
            Types::Barrier | Types::Gives(_) => {}
        }
        Ok(())
    }
    fn result_list(&mut self) -> Result<Vec<Type>> {
        match self.scan.sees("(") {
            true => self.nested(|r| r.type_list_parens()),
            false => self.type_list(),
        }
    }
    /// One type for all operands and the result, or a function type.
    fn same_types(&mut self, types: Types, draft: &mut Draft) -> Result<()> {
        if self.scan.sees("(") {
            return self.function_types(draft);
        }
        let ty = self.ty()?;
        let operand = match types {
            Types::Complex => formats::real_of(&ty),
            _ => Some(ty.clone()),
        };
        let Some(operand) = operand else {
            return Err(self.scan.unexpected("a type of complex numbers before"));
        };
        for used in &draft.operands {
            self.check_type(*used, &operand)?;
        }
        draft.result_types = vec![ty];
        Ok(())
    }
    fn select_types(&mut self, draft: &mut Draft) -> Result<()> {
        if self.scan.sees("(") {
            return self.function_types(draft);
        }
        let first = self.ty()?;
        let (pred, ty) = match self.scan.eat(",") {
            true => (first, self.ty()?),
            false => (Type::I1, first),
        };
        let types = [pred, ty.clone(), ty.clone()];
        self.check_types(&draft.operands, &types)?;
        draft.result_types = vec![ty];
        Ok(())
    }
    /// The types of the operands, where the form spells them; the result is known.
    fn given_types(&mut self, given: Given, draft: &mut Draft) -> Result<()> {
        if self.scan.eat(":") {
            let list = self.type_list()?;
            let same = matches!(given, Given::Bool | Given::Compared) && list.len() == 1;
            match &list[..] {
                [ty] if same => {
                    for used in &draft.operands {
                        self.check_type(*used, ty)?;
                    }
                }
                _ => self.check_types(&draft.operands, &list)?,
            }
        }
        draft.result_types = match given {
            Given::Nothing => Vec::new(),
            Given::Witness => vec![Type::Witness],
            Given::Bool => vec![Type::I1],
            Given::Compared => {
                let operand = draft.operands.first();
                vec![operand.map_or(Type::I1, |used| {
                    formats::compared(self.module.ty(used.value))
                })]
            }
            Given::Index => vec![Type::Index],
        };
        Ok(())
    }
}
