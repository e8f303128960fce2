//! The pretty forms of ops: the steps of [`crate::mlir::text::formats`], written instead of read.
//!
//! An op that its pretty form cannot say in full is printed in the generic form.

use std::fmt::Write;
use std::slice::Iter;

use crate::mlir::attrs::Attr;
use crate::mlir::attrs::AttrMap;
use crate::mlir::dialect;
use crate::mlir::module::BlockId;
use crate::mlir::module::Op;
use crate::mlir::module::OpId;
use crate::mlir::module::RegionId;
use crate::mlir::module::ValueId;
use crate::mlir::print::Printer;
use crate::mlir::print::attr;
use crate::mlir::print::sdy;
use crate::mlir::text::formats;
use crate::mlir::text::formats::Sdy;
use crate::mlir::text::formats::Step;
use crate::mlir::text::formats::Types;
use crate::mlir::text::scan::quote;
use crate::mlir::types::Type;

impl Printer<'_> {
    /// Writes the op after its results; nothing, with what was written to be thrown away, when it
    /// has no pretty form that says it all.
    pub(super) fn pretty(&mut self, id: OpId) -> Option<()> {
        let op = &self.module.ops[id];
        if !op.successors.is_empty() {
            return None;
        }
        match op.name.as_str() {
            "builtin.module" => self.pretty_module(op),
            "func.func" => self.pretty_function(op),
            "stablehlo.constant" | "chlo.constant" | "sdy.constant" | "arith.constant" => {
                self.pretty_constant(op)
            }
            "stablehlo.reduce" => self.pretty_reduce(op),
            "stablehlo.while" => self.pretty_while(op),
            name => {
                let (dialect, kind) = name.split_once('.')?;
                let steps = match dialect {
                    "stablehlo" | "chlo" | "sdy" | "func" | "arith" => {
                        formats::form(dialect, kind)?
                    }
                    _ => return None,
                };
                let inside = self.module.parent_op(id).map(|p| &self.module.ops[p].name);
                let bare = dialect == "func" && inside.is_some_and(|p| *p == "func.func");
                self.out.push_str(if bare { kind } else { name });
                let mut operands = op.operands.iter();
                let mut regions = op.regions.iter();
                self.steps(op, steps, steps, &mut operands, &mut regions)?;
                // Only the types say that there are results.
                let is_typed = steps.iter().any(|step| matches!(step, Step::Typed(_)));
                let says_all = operands.len() == 0 && regions.len() == 0;
                (says_all && (is_typed || op.results.is_empty())).then_some(())
            }
        }
    }
    fn steps(
        &mut self,
        op: &Op,
        steps: &[Step],
        all: &[Step],
        operands: &mut Iter<'_, ValueId>,
        regions: &mut Iter<'_, RegionId>,
    ) -> Option<()> {
        for step in steps {
            match *step {
                Step::Value => {
                    let value = *operands.next()?;
                    self.space();
                    self.value(value);
                }
                Step::Values if operands.len() == 0 => {}
                Step::Values => {
                    self.space();
                    let rest: Vec<ValueId> = operands.copied().collect();
                    self.list(&rest, |p, value| p.value(*value));
                }
                Step::ValuesComma => {
                    for value in operands.by_ref() {
                        self.space();
                        self.value(*value);
                        self.out.push(',');
                    }
                }
                Step::Text(text) => {
                    let open = matches!(text, "{" | "=");
                    self.out.push_str(if open { " " } else { "" });
                    self.out.push_str(text);
                }
                Step::Key(word) => {
                    self.space();
                    let _ = match op.name.starts_with("sdy.") {
                        true => write!(self.out, "{word}="),
                        false => write!(self.out, "{word} ="),
                    };
                }
                Step::Optional(inner) => {
                    if named(inner).any(|name| op.attrs.get(name).is_some()) {
                        self.steps(op, inner, all, operands, regions)?;
                    }
                }
                Step::Dict => self.other_attrs(op, &named(all).collect::<Vec<_>>(), ""),
                Step::Regions if regions.len() == 0 => {}
                Step::Regions => {
                    self.out.push_str(" (");
                    let rest: Vec<RegionId> = regions.copied().collect();
                    self.list(&rest, |p, region| p.region(*region, false, true));
                    self.out.push(')');
                }
                Step::ArgsRegion => {
                    let region = *regions.next()?;
                    let block = self.only_block(region)?;
                    self.out.push(' ');
                    self.block_args(block);
                    let none = self.module.blocks[block].args.is_empty();
                    self.out.push_str(if none { "() " } else { " " });
                    self.region(region, false, false);
                }
                Step::Typed(types) => self.typed(op, types)?,
                _ => self.attr_step(op, *step)?,
            }
        }
        Some(())
    }
    /// A space, but after an opening bracket, another space, or a word with `=` behind it.
    fn space(&mut self) {
        let is_tight = self.out.ends_with('=') && !self.out.ends_with(" =");
        if !is_tight && !self.out.ends_with(['(', '[', '<', '{', ' ']) {
            self.out.push(' ');
        }
    }
    fn only_block(&self, region: RegionId) -> Option<BlockId> {
        match self.module.regions[region].blocks[..] {
            [block] => Some(block),
            _ => None,
        }
    }
    /// The attributes but those, when there are any.
    fn other_attrs(&mut self, op: &Op, but: &[&str], before: &str) {
        let others = op
            .attrs
            .iter()
            .filter(|(name, _)| !but.contains(&name.as_str()));
        let others: AttrMap = others.map(|(n, a)| (n.clone(), a.clone())).collect();
        if !others.is_empty() {
            let _ = write!(self.out, " {before}");
            attr::write_dict(&others, &mut self.out);
        }
    }
    /// A step that writes an attribute.
    fn attr_step(&mut self, op: &Op, step: Step) -> Option<()> {
        let of = |name: &str| op.attrs.get(name);
        match step {
            Step::Int(name, width) => {
                self.space();
                match of(name)? {
                    Attr::Integer { value, ty } if *ty == Type::signless(width) => {
                        write!(self.out, "{value}").ok()
                    }
                    _ => None,
                }
            }
            Step::Ints(name) => self.int_list(of(name)?),
            Step::Bool(name) => match of(name)? {
                Attr::Bool(value) => write!(self.out, " {value}").ok(),
                _ => None,
            },
            Step::String(name) => {
                let Attr::String(bytes) = of(name)? else {
                    return None;
                };
                self.space();
                quote(bytes, &mut self.out);
                Some(())
            }
            Step::SymbolName(name) => {
                self.space();
                self.symbol_name(op, name)
            }
            Step::Symbol(name) => match of(name)? {
                Attr::Symbol(symbol) => {
                    self.space();
                    attr::write_symbol(symbol, &mut self.out);
                    Some(())
                }
                _ => None,
            },
            Step::Flag(word, name) => match of(name) {
                None => Some(()),
                Some(Attr::Unit) => write!(self.out, " {word}").ok(),
                Some(_) => None,
            },
            Step::Flags(kind, name) => match of(name) {
                None => Some(()),
                Some(Attr::Opaque(text)) => {
                    let flags = text.strip_prefix("#arith.")?.strip_prefix(kind)?;
                    let words = flags.strip_prefix('<')?.strip_suffix('>')?;
                    words
                        .split(formats::flag_separator(kind))
                        .all(attr::is_bare)
                        .then(|| write!(self.out, " {kind}{flags}").ok())?
                }
                Some(_) => None,
            },
            Step::Case(name, kind) => match of(name)? {
                Attr::Enum(e) if e.kind == kind && op.name.starts_with(&*e.dialect) => {
                    write!(self.out, " {}", e.case).ok()
                }
                _ => None,
            },
            Step::Choice(name, words, width) => match of(name)? {
                Attr::Integer { value, ty } if *ty == Type::signless(width) => {
                    let word = words.get(usize::try_from(*value).ok()?)?;
                    self.space();
                    self.out.push_str(word);
                    Some(())
                }
                _ => None,
            },
            Step::Shardy(name, kind) => {
                let s = of(name)?.as_struct("sdy", kind.name())?;
                self.space();
                let mut text = String::new();
                sdy::write_body(s, &mut text);
                // Lists of shardings stand without their brackets of the attribute.
                self.out.push_str(match kind {
                    Sdy::Shardings => text.strip_prefix('<')?.strip_suffix('>')?,
                    _ => &text,
                });
                Some(())
            }
            _ => self.window_step(op, step),
        }
    }
    /// `@name`, of an attribute that is a string without a type.
    fn symbol_name(&mut self, op: &Op, name: &str) -> Option<()> {
        let Attr::String(bytes) = op.attrs.get(name)? else {
            return None;
        };
        self.out.push('@');
        attr::write_name(std::str::from_utf8(bytes).ok()?, &mut self.out);
        Some(())
    }
    /// `[0, 1]` after a space.
    fn int_list(&mut self, attr: &Attr) -> Option<()> {
        match attr {
            Attr::DenseArray(array) if array.element == Type::I64 => {
                write!(self.out, " {:?}", array.ints()?).ok()
            }
            _ => None,
        }
    }
    /// The steps of one op each.
    fn window_step(&mut self, op: &Op, step: Step) -> Option<()> {
        let of = |name: &str| op.attrs.get(name);
        match step {
            Step::Slice => {
                let lists = ["start_indices", "limit_indices", "strides"];
                let [starts, limits, strides] = lists.map(|l| of(l)?.ints_of(&Type::I64));
                let (starts, limits, strides) = (starts?, limits?, strides?);
                let same = starts.len() == limits.len() && limits.len() == strides.len();
                let one = |((s, l), d): ((&i64, &i64), &i64)| match d {
                    1 => format!("{s}:{l}"),
                    _ => format!("{s}:{l}:{d}"),
                };
                let parts = starts.iter().zip(&limits).zip(&strides).map(one);
                let parts = parts.collect::<Vec<_>>().join(", ");
                same.then(|| write!(self.out, " [{parts}]").ok())?
            }
            Step::DotDims => {
                let dims = of("dot_dimension_numbers")?.as_struct("stablehlo", "dot")?;
                let list = |name| dims.ints(name);
                let batch = (
                    list("lhs_batching_dimensions")?,
                    list("rhs_batching_dimensions")?,
                );
                if !batch.0.is_empty() || !batch.1.is_empty() {
                    let _ = write!(self.out, " batching_dims = {:?} x {:?},", batch.0, batch.1);
                }
                let lhs = list("lhs_contracting_dimensions")?;
                let rhs = list("rhs_contracting_dimensions")?;
                write!(self.out, " contracting_dims = {lhs:?} x {rhs:?}").ok()
            }
            Step::Precision => self.precision(op),
            Step::PrecisionAlgorithm => {
                self.precision(op)?;
                let Some(algorithm) = of("algorithm") else {
                    return Some(());
                };
                let text = crate::mlir::print::attr(algorithm);
                let text = text.strip_prefix("#stablehlo.dot_algorithm")?;
                write!(self.out, ", algorithm = {text}").ok()
            }
            Step::ConvDims => {
                let text = crate::mlir::print::attr(of("dimension_numbers")?);
                let text = text.strip_prefix("#stablehlo.conv<")?.strip_suffix('>')?;
                (!text.starts_with("raw")).then(|| write!(self.out, " {text}").ok())?
            }
            Step::Window => self.window(op),
            Step::ExponentMantissa => {
                let bits = |name: &str| match of(name)? {
                    Attr::Integer { value, ty } if *ty == Type::signless(32) => Some(*value),
                    _ => None,
                };
                let (e, m) = (bits("exponent_bits")?, bits("mantissa_bits")?);
                (e >= 0 && m >= 0).then(|| write!(self.out, " e{e}m{m}").ok())?
            }
            _ => None,
        }
    }
    /// `, precision = [DEFAULT, HIGH]`.
    fn precision(&mut self, op: &Op) -> Option<()> {
        let Some(config) = op.attrs.get("precision_config") else {
            return Some(());
        };
        let mut cases = Vec::new();
        for item in config.as_array()? {
            match item {
                Attr::Enum(e) if e.kind == "precision" && op.name.starts_with(&*e.dialect) => {
                    cases.push(e.case.as_str());
                }
                _ => return None,
            }
        }
        write!(self.out, ", precision = [{}]", cases.join(", ")).ok()
    }
    /// `stride = [1, 1], pad = [[0, 0], [0, 0]]`.
    fn window(&mut self, op: &Op) -> Option<()> {
        let mut parts = Vec::new();
        for (name, word) in WINDOW {
            let Some(attr) = op.attrs.get(name) else {
                continue;
            };
            let text = match attr {
                Attr::DenseArray(array) if *word == "reverse" && array.element == Type::I1 => {
                    format!("{:?}", array.bools()?)
                }
                Attr::DenseArray(array) if *word != "reverse" && array.element == Type::I64 => {
                    format!("{:?}", array.ints()?)
                }
                Attr::Dense(dense) if *word == "pad" && *dense.ty.element() == Type::I64 => {
                    let ints = dense.ints()?;
                    let pairs: Vec<&[i64]> = ints.chunks(2).collect();
                    let pair_type = Type::static_tensor(&[pairs.len() as u64, 2], Type::I64);
                    (dense.ty == pair_type).then(|| format!("{pairs:?}"))?
                }
                _ => return None,
            };
            parts.push(format!("{word} = {text}"));
        }
        self.out.push_str(&parts.join(", "));
        Some(())
    }
    /// The types of operands and results.
    fn typed(&mut self, op: &Op, types: Types) -> Option<()> {
        let operands = self.types_of(&op.operands);
        let results = self.types_of(&op.results);
        let one = match &results[..] {
            [ty] => Some(ty.clone()),
            _ => None,
        };
        // The type of a function would be taken for the types of operands and results.
        let one = one.filter(|ty| !matches!(ty, Type::Function(_)));
        let all_are = |ty: &Type| operands.iter().all(|operand| operand == ty);
        match types {
            Types::Same if one.as_ref().is_some_and(all_are) => {}
            Types::Complex
                if one
                    .as_ref()
                    .and_then(formats::real_of)
                    .is_some_and(|real| all_are(&real)) => {}
            Types::Select if operands.len() == 3 => {
                let [pred, a, b] = &operands[..] else {
                    return None;
                };
                if Some(a) != one.as_ref() || a != b || matches!(pred, Type::Function(_)) {
                    return self.function_type(&operands, &results);
                }
                self.out.push_str(" : ");
                return self.type_list(&[pred.clone(), a.clone()]);
            }
            Types::Same | Types::Complex | Types::Select | Types::Function => {
                return self.function_type(&operands, &results);
            }
            Types::Tuple => {
                let fits = matches!(&one, Some(Type::Tuple(parts)) if **parts == *operands);
                fits.then_some(())?;
            }
            Types::Pairwise | Types::Barrier => {
                (operands == results).then_some(())?;
                if operands.is_empty() {
                    self.out.push_str(" ()");
                    return Some(());
                }
                self.out.push(' ');
                self.list(&op.operands, |p, value| p.value(*value));
                self.out.push_str(" : ");
                return self.type_list(&operands);
            }
            Types::Results => {}
            Types::Arrow => {
                self.out.push_str(" : ");
                self.type_list(&operands)?;
                return self.arrow(&results);
            }
            Types::Cast => {
                self.out.push_str(" : ");
                self.type_list(&operands)?;
                self.out.push_str(" to ");
                return self.type_list(&[one?]);
            }
            Types::Returned => {
                results.is_empty().then_some(())?;
                if operands.is_empty() {
                    return Some(());
                }
                self.out.push_str(" : ");
                return self.type_list(&operands);
            }
            Types::Gives(formats::Given::Nothing) => {
                results.is_empty().then_some(())?;
                self.out.push_str(" : ");
                return self.type_list(&operands);
            }
            Types::Gives(formats::Given::Compared) => {
                let ty = operands.first()?;
                (all_are(ty) && one == Some(formats::compared(ty))).then_some(())?;
                self.out.push_str(" : ");
                return self.type_list(&operands[..1]);
            }
            Types::All(count) => {
                let ty = operands.first()?;
                let same = results.iter().all(|result| result == ty);
                (all_are(ty) && same && results.len() == count).then_some(())?;
                self.out.push_str(" : ");
                return self.type_list(&operands[..1]);
            }
            _ => return None,
        }
        self.out.push_str(" : ");
        self.type_list(&[one?])
    }
    fn types_of(&self, values: &[ValueId]) -> Vec<Type> {
        values.iter().map(|v| self.module.ty(*v).clone()).collect()
    }
    fn type_list(&mut self, types: &[Type]) -> Option<()> {
        self.list(types, |p, ty| super::write_type(ty, &mut p.out));
        Some(())
    }
    fn function_type(&mut self, operands: &[Type], results: &[Type]) -> Option<()> {
        self.out.push_str(" : (");
        self.type_list(operands)?;
        self.out.push(')');
        self.arrow(results)
    }
    /// ` -> c`, or ` -> (c, d)`.
    fn arrow(&mut self, results: &[Type]) -> Option<()> {
        self.out.push_str(" -> ");
        let several = !matches!(results, [one] if !matches!(one, Type::Function(_)));
        self.out.push_str(if several { "(" } else { "" });
        self.type_list(results)?;
        self.out.push_str(if several { ")" } else { "" });
        Some(())
    }
    fn pretty_module(&mut self, op: &Op) -> Option<()> {
        let [region] = op.regions[..] else {
            return None;
        };
        self.only_block(region)?;
        self.out.push_str("module");
        if op.attrs.get("sym_name").is_some() {
            self.out.push(' ');
            self.symbol_name(op, "sym_name")?;
        }
        self.other_attrs(op, &["sym_name"], "attributes ");
        self.out.push(' ');
        self.region(region, true, false);
        Some(())
    }
    fn pretty_function(&mut self, op: &Op) -> Option<()> {
        let ([region], [], []) = (&op.regions[..], &op.operands[..], &op.results[..]) else {
            return None;
        };
        let region = *region;
        self.out.push_str("func.func ");
        match op.attrs.get("sym_visibility") {
            None => {}
            Some(Attr::String(word)) if matches!(&**word, b"public" | b"private" | b"nested") => {
                let _ = write!(self.out, "{} ", String::from_utf8_lossy(word));
            }
            Some(_) => return None,
        }
        self.symbol_name(op, "sym_name")?;
        let Some(Attr::Type(Type::Function(ty))) = op.attrs.get("function_type") else {
            return None;
        };
        let entry = self.module.regions[region].blocks.first().copied();
        let args = entry.map(|block| self.module.blocks[block].args.clone());
        let arg_locs = entry.map_or(&[][..], |block| &self.module.blocks[block].arg_locs);
        if args
            .as_ref()
            .is_some_and(|args| self.types_of(args) != ty.inputs)
        {
            return None;
        }
        let arg_attrs = signature_attrs(op, "arg_attrs", ty.inputs.len())?;
        let res_attrs = signature_attrs(op, "res_attrs", ty.results.len())?;
        self.out.push('(');
        for (i, input) in ty.inputs.iter().enumerate() {
            self.out.push_str(if i > 0 { ", " } else { "" });
            if let Some(args) = &args {
                // A function's arguments have numbers of their own.
                self.numbers.set(args[i], i as u32);
                let _ = write!(self.out, "%arg{i}: ");
            }
            self.signature_type(input, arg_attrs.get(i).copied());
            if let Some(loc) = arg_locs.get(i) {
                self.location(loc);
            }
        }
        self.out.push(')');
        let has_attrs = res_attrs.iter().any(|attrs| !attrs.is_empty());
        match &ty.results[..] {
            [] => {}
            results if !has_attrs => self.arrow(results)?,
            results => {
                self.out.push_str(" -> (");
                for (i, result) in results.iter().enumerate() {
                    self.out.push_str(if i > 0 { ", " } else { "" });
                    self.signature_type(result, res_attrs.get(i).copied());
                }
                self.out.push(')');
            }
        }
        let names = [
            "sym_visibility",
            "sym_name",
            "function_type",
            "arg_attrs",
            "res_attrs",
        ];
        self.other_attrs(op, &names, "attributes ");
        if let Some(args) = args {
            self.out.push(' ');
            let outside = std::mem::replace(&mut self.first_arg, args.len() as u32);
            self.region(region, true, false);
            self.first_arg = outside;
        }
        Some(())
    }
    fn signature_type(&mut self, ty: &Type, attrs: Option<&AttrMap>) {
        super::write_type(ty, &mut self.out);
        if let Some(attrs) = attrs.filter(|a| !a.is_empty()) {
            self.out.push(' ');
            attr::write_dict(attrs, &mut self.out);
        }
    }
    fn pretty_constant(&mut self, op: &Op) -> Option<()> {
        let ([result], [], []) = (&op.results[..], &op.operands[..], &op.regions[..]) else {
            return None;
        };
        let value = op.attrs.get("value")?;
        let ty = match value {
            Attr::Dense(dense) => &dense.ty,
            Attr::MissingResource { ty, .. } => ty,
            Attr::Integer { ty, .. } | Attr::Float { ty, .. } if op.name == "arith.constant" => ty,
            Attr::Bool(_) if op.name == "arith.constant" => &Type::I1,
            _ => return None,
        };
        (ty == self.module.ty(*result)).then_some(())?;
        self.out.push_str(&op.name);
        self.other_attrs(op, &["value"], "");
        self.out.push(' ');
        attr::write_attr(value, &mut self.out);
        Some(())
    }
    fn pretty_reduce(&mut self, op: &Op) -> Option<()> {
        let [region] = op.regions[..] else {
            return None;
        };
        let block = self.only_block(region)?;
        let args = self.module.blocks[block].args.clone();
        let half = op.operands.len() / 2;
        let pairs = half > 0 && op.operands.len() == 2 * half && args.len() == 2 * half;
        pairs.then_some(())?;
        self.out.push_str("stablehlo.reduce");
        for i in 0..half {
            self.out.push_str(if i > 0 { ", (" } else { "(" });
            self.value(op.operands[i]);
            self.out.push_str(" init: ");
            self.value(op.operands[half + i]);
            self.out.push(')');
        }
        let applied = self.applied(op, block);
        if let Some(name) = &applied {
            let _ = write!(self.out, " applies {name}");
        }
        self.out.push_str(" across dimensions =");
        self.int_list(op.attrs.get("dimensions")?)?;
        self.other_attrs(op, &["dimensions"], "");
        let (operands, results) = (self.types_of(&op.operands), self.types_of(&op.results));
        self.function_type(&operands, &results)?;
        if applied.is_some() {
            return Some(());
        }
        self.out.push('\n');
        self.line();
        self.out.push_str(" reducer");
        for i in 0..half {
            for (at, before) in [(i, "("), (half + i, ", ")] {
                self.out.push_str(before);
                self.block_arg(args[at], self.module.blocks[block].arg_locs.get(at));
            }
            self.out.push_str(") ");
        }
        self.out.push(' ');
        self.region(region, false, false);
        Some(())
    }
    /// The one op of two scalars that a reducer is, when it is no more. Where locations are printed,
    /// all parts must have the one of the reduction.
    fn applied(&self, op: &Op, block: BlockId) -> Option<String> {
        let block = &self.module.blocks[block];
        let [inner, end] = block.ops[..] else {
            return None;
        };
        let (inner, end) = (&self.module.ops[inner], &self.module.ops[end]);
        let element = self.module.ty(*op.operands.first()?).element().clone();
        let scalar = Type::tensor(Vec::new(), element);
        let values = inner
            .operands
            .iter()
            .chain(&inner.results)
            .chain(&block.args);
        let plain = dialect::is_commutative(&inner.name)
            && inner.attrs.is_empty()
            && inner.regions.is_empty()
            && inner.results.len() == 1
            && block.args.len() == 2
            && inner.operands == block.args
            && end.name == "stablehlo.return"
            && end.attrs.is_empty()
            && end.operands == inner.results
            && values.clone().all(|v| *self.module.ty(*v) == scalar);
        let mut locs = block.arg_locs.iter().chain([&inner.loc, &end.loc]);
        let plain = plain && (self.locations.is_none() || locs.all(|loc| *loc == op.loc));
        plain.then(|| inner.name.to_string())
    }
    fn pretty_while(&mut self, op: &Op) -> Option<()> {
        let [cond, body] = op.regions[..] else {
            return None;
        };
        let types = self.types_of(&op.operands);
        (self.types_of(&op.results) == types).then_some(())?;
        let first = self.next_arg;
        self.next_arg += op.operands.len() as u32;
        for region in [cond, body] {
            let block = self.only_block(region)?;
            let args = self.module.blocks[block].args.clone();
            (self.types_of(&args) == types).then_some(())?;
            for (i, arg) in args.into_iter().enumerate() {
                self.numbers.set(arg, first + i as u32);
            }
        }
        self.out.push_str("stablehlo.while(");
        for (i, operand) in op.operands.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            let _ = write!(self.out, "{comma}%arg{} = ", first + i as u32);
            self.value(*operand);
        }
        self.out.push(')');
        if !types.is_empty() {
            self.out.push_str(" : ");
            self.type_list(&types)?;
        }
        self.other_attrs(op, &[], "attributes ");
        self.out.push('\n');
        self.line();
        self.out.push_str(" cond ");
        self.region(cond, false, false);
        self.out.push_str(" do ");
        self.region(body, false, false);
        Some(())
    }
}

/// Attributes of a window, and the words for them.
const WINDOW: &[(&str, &str)] = &[
    ("window_strides", "stride"),
    ("padding", "pad"),
    ("lhs_dilation", "lhs_dilate"),
    ("rhs_dilation", "rhs_dilate"),
    ("window_reversal", "reverse"),
];

/// The dictionaries of a function's arguments or results; none when the op has no such attribute.
fn signature_attrs<'m>(op: &'m Op, name: &str, count: usize) -> Option<Vec<&'m AttrMap>> {
    let Some(attr) = op.attrs.get(name) else {
        return Some(Vec::new());
    };
    let items = attr.as_array()?;
    // Without any attribute the form could not say that the list is there.
    let some = items
        .iter()
        .any(|item| item.as_dict().is_some_and(|d| !d.is_empty()));
    let dicts = items
        .iter()
        .map(Attr::as_dict)
        .collect::<Option<Vec<_>>>()?;
    (dicts.len() == count && some).then_some(dicts)
}

/// The attributes that steps write.
fn named(steps: &[Step]) -> impl Iterator<Item = &'static str> {
    steps.iter().flat_map(|step| -> Vec<&'static str> {
        match *step {
            Step::Int(name, _)
            | Step::Ints(name)
            | Step::Bool(name)
            | Step::String(name)
            | Step::SymbolName(name)
            | Step::Symbol(name)
            | Step::Case(name, _)
            | Step::Flag(_, name)
            | Step::Flags(_, name)
            | Step::Choice(name, ..)
            | Step::Shardy(name, _) => vec![name],
            Step::Slice => vec!["start_indices", "limit_indices", "strides"],
            Step::DotDims => vec!["dot_dimension_numbers"],
            Step::Precision => vec!["precision_config"],
            Step::PrecisionAlgorithm => vec!["precision_config", "algorithm"],
            Step::ConvDims => vec!["dimension_numbers"],
            Step::Window => WINDOW.iter().map(|w| w.0).collect(),
            Step::ExponentMantissa => vec!["exponent_bits", "mantissa_bits"],
            Step::Optional(inner) => named(inner).collect(),
            _ => Vec::new(),
        }
    })
}
