//! Functions become computations.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::front::stablehlo::Argument;
use crate::front::stablehlo::Options;
use crate::front::stablehlo::import::Converter;
use crate::front::stablehlo::import::facts::Ints;
use crate::front::stablehlo::import::header;
use crate::front::stablehlo::types::Known;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::Sharding;
use crate::literal::Literal;
use crate::mlir::Attr;
use crate::mlir::AttrMap;
use crate::mlir::BlockId;
use crate::mlir::OpRef;
use crate::shape::Dims;
use crate::shape::Shape;

/// A function and, when it is open, the shapes and sizes that it is called with.
pub type Key<'m> = (&'m str, String);

impl<'m> Converter<'m> {
    /// Converts the entry function and what it needs.
    pub(super) fn main(&mut self, options: &Options) -> Result<()> {
        let order = self.functions.order.clone();
        let entry = self.functions.entry;
        for name in order {
            if name != entry && !self.functions.open(name) {
                let op = self.source.op(self.functions.entry_op());
                self.function(op, name, &[])?;
            }
        }
        let op = self.source.op(self.functions.entry_op());
        self.entry(op, options).map_err(|d| op.placed(d))
    }

    fn entry(&mut self, op: OpRef<'m>, options: &Options) -> Result<()> {
        let block = self.body(op)?;
        self.function_as_declared(op, block)?;
        let args = self.source.blocks[block].args.len();
        if let Some(beyond) = options
            .arguments
            .len()
            .checked_sub(1)
            .filter(|&n| n >= args)
        {
            let known = match args {
                0 => "no arguments".to_owned(),
                1 => "argument 0 alone".to_owned(),
                args => format!("arguments 0 to {}", args - 1),
            };
            return Err(op.wrong(format!(
                "sizes are given for argument {beyond}, it has {known}"
            )));
        }
        let open = self.functions.open(self.functions.entry);
        self.functions.enter(open);
        let name = format!("{}.{}", self.functions.entry, self.out.comps.len());
        self.comp = self.out.new_comp(name);
        self.out.entry = self.comp;
        let mut numbers = Vec::with_capacity(args);
        for i in 0..args {
            let argument = options.arguments.get(i).unwrap_or(&Argument::Declared);
            numbers.push(self.entry_argument(op, block, i, argument)?);
        }
        let results = self.block(block)?;
        self.root(op, &results)?;
        self.entry_attributes(op, &numbers, results.len())
    }

    /// The parameter number of an argument, when it becomes a parameter.
    fn entry_argument(
        &mut self,
        op: OpRef<'m>,
        block: BlockId,
        i: usize,
        argument: &Argument,
    ) -> Result<Option<usize>> {
        let value = self.source.blocks[block].args[i];
        let known = self.known(op, self.source.ty(value))?;
        let sized =
            |dims: &Dims| fitted(&known, dims).map_err(|e| op.wrong(format!("argument {i}: {e}")));
        let shape = match argument {
            Argument::Constant(literal) => {
                let shape = sized(&literal.shape().dims)?;
                if shape.as_array().is_none_or(|a| a.ty != literal.ty()) {
                    return Err(op.wrong(format!("argument {i} is given as {}", literal.ty())));
                }
                let id = self.b().constant(Literal::Array(literal.clone()));
                self.values[value] = Some(id);
                return Ok(None);
            }
            Argument::Sized(dims) => sized(dims)?,
            Argument::Declared => match &known {
                Known::Whole(shape) => shape.clone(),
                Known::Open { dims, .. } => {
                    let open = dims.iter().position(Option::is_none).unwrap_or_default();
                    let message = format!("dimension {open} of argument {i} has no size");
                    let sizes = dims.iter().map(|d| d.unwrap_or(4).to_string());
                    let sizes = sizes.collect::<Vec<_>>().join("x");
                    let help = format!("give its sizes, such as: --shape {i}={sizes}");
                    return Err(op.unsupported(message).help(help));
                }
                Known::Unranked(_) => {
                    let message = format!("argument {i} has no rank");
                    let help = format!("give its sizes, such as: --shape {i}=4x3");
                    return Err(op.unsupported(message).help(help));
                }
            },
        };
        let number = self.out.comps[self.comp].params.len();
        self.parameter(op, block, i, shape)?;
        Ok(Some(number))
    }

    /// Appends the parameter of an argument with what its attributes say.
    fn parameter(
        &mut self,
        op: OpRef<'m>,
        block: BlockId,
        i: usize,
        shape: Shape,
    ) -> Result<InstrId> {
        let name = self.argument_name(block, i);
        let id = self.b().parameter(name, shape);
        self.values[self.source.blocks[block].args[i]] = Some(id);
        self.say_name(block, i, id);
        if let Some(attrs) = argument_attributes(op, "arg_attrs", i) {
            self.decorate(op, &[id], attrs)?;
        }
        Ok(id)
    }

    /// Makes the results of a function the root of its computation.
    fn root(&mut self, op: OpRef<'m>, results: &[InstrId]) -> Result<()> {
        let shardings: Vec<Option<Sharding>> = (0..results.len())
            .map(|i| match argument_attributes(op, "res_attrs", i) {
                Some(attrs) => self.sharding_of(op, attrs),
                None => Ok(None),
            })
            .collect::<Result<_>>()?;
        let results = self.with_result_shardings(op, results)?;
        let spread = shardings.iter().any(Option::is_some);
        let root = match *results {
            [one] if !spread => one,
            _ => self.b().tuple(&results)?,
        };
        let root = match &*shardings {
            _ if !spread => root,
            [only] => {
                // The tuple has what its element has, the root what the result should have.
                let extra = self.out.instrs[results[0]].extra.as_ref();
                let inner = extra.and_then(|extra| extra.sharding.clone());
                if let Some(inner) = inner {
                    self.extra(root).sharding = Some(Sharding::Tuple(vec![inner]));
                }
                let id = self.b().op(Op::GetTupleElement { index: 0 }, &[root])?;
                self.extra(id).sharding.clone_from(only);
                id
            }
            all => {
                let leaf = |s: &Option<Sharding>| s.clone().unwrap_or_else(header::replicated);
                let all = all.iter().map(leaf).collect();
                self.extra(root).sharding = Some(Sharding::Tuple(all));
                root
            }
        };
        self.b().set_root(root);
        Ok(())
    }

    /// The one block of a function.
    fn body(&self, op: OpRef<'m>) -> Result<BlockId> {
        let region = op.region(0)?;
        if self.source.regions[region].blocks.is_empty() {
            return Err(op.unsupported("a function without a body"));
        }
        op.block(0)
    }

    /// The computation of a function that is called with these arguments, which count only when its
    /// types are open.
    pub(super) fn function(
        &mut self,
        op: OpRef<'m>,
        name: &str,
        args: &[InstrId],
    ) -> Result<CompId> {
        let function = self.functions.get(op, name)?;
        let body = self.source.op(function.op);
        let name = body.attr_str("sym_name")?;
        let mut key = String::new();
        let mut known: Vec<Option<Ints>> = Vec::new();
        if function.open {
            for &arg in args {
                let value = self.facts.value(&self.out, arg).map(|v| (*v).clone());
                key += &format!("{}{value:?};", self.out.shape(arg).without_layout());
                known.push(value);
            }
        }
        let key = (name, key);
        if let Some(&comp) = self.lowered.get(&key) {
            return Ok(comp);
        }
        let comp = self
            .out
            .new_comp(format!("{name}.{}", self.out.comps.len()));
        let outer = std::mem::replace(&mut self.comp, comp);
        let was_open = self.functions.enter(function.open);
        let shapes: Vec<Shape> = match function.open {
            true => args
                .iter()
                .map(|&a| self.out.shape(a).without_layout())
                .collect(),
            false => Vec::new(),
        };
        let filled = self.deeper(|c| c.fill_function(body, &shapes, &known));
        self.functions.enter(was_open);
        self.comp = outer;
        filled.map_err(|d| body.placed(d))?;
        self.lowered.insert(key, comp);
        Ok(comp)
    }

    fn fill_function(
        &mut self,
        op: OpRef<'m>,
        shapes: &[Shape],
        known: &[Option<Ints>],
    ) -> Result<()> {
        let block = self.body(op)?;
        self.function_as_declared(op, block)?;
        let source = self.source;
        let args = &source.blocks[block].args;
        if self.functions.is_open() && shapes.len() != args.len() {
            let (given, wanted) = (shapes.len(), args.len());
            return Err(op.wrong(format!("{given} operands for {wanted} arguments")));
        }
        for (i, &arg) in args.iter().enumerate() {
            let declared = self.known(op, source.ty(arg))?;
            let shape = match (declared, shapes.get(i)) {
                (Known::Whole(shape), _) => shape,
                (open, Some(Shape::Array(array))) => fitted(&open, &array.dims)
                    .map_err(|e| op.wrong(format!("argument {i}: {e}")))?,
                (_, _) => return Err(op.wrong(format!("argument {i} has no size"))),
            };
            let id = self.parameter(op, block, i, shape)?;
            if let Some(Some(value)) = known.get(i) {
                self.facts.set(id, value.clone());
            }
        }
        let results = self.block(block)?;
        self.root(op, &results)
    }
}

/// The shape of a type whose sizes are these.
fn fitted(known: &Known, dims: &[usize]) -> std::result::Result<Shape, String> {
    let said = |what: &dyn std::fmt::Display| format!("sizes {dims:?} do not fit {what}");
    match known {
        Known::Whole(Shape::Array(array)) if array.is_dynamic() => {
            let fits = array.rank() == dims.len()
                && (0..dims.len()).all(|d| {
                    dims[d] == array.dims[d] || (array.is_dynamic_dim(d) && dims[d] < array.dims[d])
                });
            if !fits {
                return Err(said(array));
            }
            Ok(Shape::array(array.ty, dims.iter().copied()))
        }
        Known::Whole(shape) => match shape.as_array() {
            Some(array) if array.dims.as_slice() == dims => Ok(shape.clone()),
            _ => Err(said(shape)),
        },
        Known::Open { ty, dims: declared } => {
            let fits = declared.len() == dims.len()
                && declared
                    .iter()
                    .zip(dims)
                    .all(|(d, size)| d.is_none_or(|d| d == *size));
            if !fits {
                let sizes = declared.iter().map(|d| match d {
                    Some(size) => size.to_string(),
                    None => "?".to_owned(),
                });
                let sizes = sizes.collect::<Vec<_>>().join(",");
                return Err(said(&format!("{ty}[{sizes}]")));
            }
            Ok(Shape::array(*ty, dims.iter().copied()))
        }
        Known::Unranked(ty) => Ok(Shape::array(*ty, dims.iter().copied())),
    }
}

/// The attributes of an argument or result of a function.
pub fn argument_attributes<'m>(op: OpRef<'m>, list: &str, i: usize) -> Option<&'m AttrMap> {
    let list = op.get().attrs.get(list)?.as_array()?;
    list.get(i).and_then(Attr::as_dict)
}

/// A function breaks a rule of modules.
pub fn structure(message: impl Into<String>) -> Box<Diagnostic> {
    Diagnostic::error(codes::MODULE_STRUCTURE, message)
}
