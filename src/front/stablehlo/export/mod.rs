//! From HLO to MLIR.
//!
//! Tuples are taken apart: a value of HLO is the list of its arrays and tokens, and functions and
//! loops pass them one by one. Computations that are called become functions; those of loops,
//! branches and reductions become regions. What StableHLO has no op of becomes an op of CHLO, or the
//! ops that mean the same: a fusion its body, a copy its operand, an asynchronous pair the op.

mod attributes;
mod collective;
mod composite;
mod control;
mod custom_call;
mod location;
mod movement;
mod ops;

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::base::Diagnostic;
use crate::base::IdMap;
use crate::base::Location;
use crate::base::Result;
use crate::base::codes;
use crate::front::stablehlo::export::location::Places;
use crate::front::stablehlo::types;
use crate::hlo;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::mlir;
use crate::mlir::Attr;
use crate::mlir::AttrMap;
use crate::mlir::BlockId;
use crate::mlir::Loc;
use crate::mlir::NewOp;
use crate::mlir::RegionId;
use crate::mlir::SourceLoc;
use crate::mlir::Type;
use crate::mlir::ValueId;
use crate::mlir::dialect;
use crate::shape::Shape;

/// How deep the computations of loops, branches and reductions may stand inside each other.
const MAX_DEPTH: usize = 128;

/// Converts the module; with `portable`, ops of CHLO are composites that say how they are computed.
pub(super) fn convert(module: &hlo::Module, portable: bool) -> Result<mlir::Module> {
    let mut exporter = Exporter::new(module, portable);
    exporter.module()?;
    Ok(exporter.out)
}

/// The state of one conversion.
struct Exporter<'m> {
    module: &'m hlo::Module,
    out: mlir::Module,
    /// The block that grows; none before the first function.
    block: Option<BlockId>,
    /// The arrays and tokens of each value that is there.
    values: IdMap<InstrId, Option<Vec<ValueId>>>,
    /// Results of asynchronous ops, by the instruction that starts them.
    pending: BTreeMap<InstrId, Vec<ValueId>>,
    /// Names of the functions of computations.
    names: BTreeMap<CompId, String>,
    /// Names of all functions.
    taken: BTreeSet<String>,
    /// Functions of composites: what they compute, and the name.
    composites: BTreeMap<String, String>,
    portable: bool,
    depth: usize,
    places: Places<'m>,
    /// The location of the instruction that is converted.
    loc: Loc,
}

impl<'m> Exporter<'m> {
    fn new(module: &'m hlo::Module, portable: bool) -> Self {
        Self {
            module,
            out: mlir::Module::new(),
            block: None,
            values: IdMap::new(),
            pending: BTreeMap::new(),
            names: BTreeMap::new(),
            taken: BTreeSet::from(["main".to_owned()]),
            composites: BTreeMap::new(),
            portable,
            depth: 0,
            places: Places::new(module),
            loc: SourceLoc::unknown(),
        }
    }

    fn module(&mut self) -> Result<()> {
        self.header();
        let called = self.functions()?;
        for &comp in &called {
            let name = unique(&mut self.taken, &self.module.comps[comp].name);
            self.names.insert(comp, name);
        }
        self.names.insert(self.module.entry, "main".to_owned());
        self.function(self.module.entry)?;
        for comp in called {
            self.function(comp)?;
        }
        Ok(())
    }

    /// Computations that are called as functions, in the order in which they are met.
    fn functions(&self) -> Result<Vec<CompId>> {
        let mut seen: BTreeSet<CompId> = BTreeSet::from([self.module.entry]);
        let mut reached: BTreeSet<CompId> = seen.clone();
        let mut todo = vec![self.module.entry];
        let mut out = Vec::new();
        while let Some(comp) = todo.pop() {
            for &id in &self.module.comps[comp].instrs {
                let instr = &self.module.instrs[id];
                let function = matches!(&instr.op, Op::Call { .. } | Op::CustomCall(_));
                for callee in instr.op.called() {
                    if function && seen.insert(callee) {
                        out.push(callee);
                    }
                    if reached.insert(callee) {
                        todo.push(callee);
                    }
                }
            }
        }
        if out.contains(&self.module.entry) {
            let message = "the entry computation is called";
            return Err(Diagnostic::error(codes::MODULE_STRUCTURE, message));
        }
        Ok(out)
    }

    /// The types of the arrays and tokens of a shape.
    fn types(&self, shape: &Shape) -> Vec<Type> {
        let leaves = shape.leaves();
        leaves
            .iter()
            .map(|(_, leaf)| types::type_of(leaf))
            .collect()
    }

    fn function(&mut self, comp: CompId) -> Result<()> {
        self.function_as(comp, comp == self.module.entry)
    }

    /// The function of a computation that nobody outside calls.
    fn private(&mut self, comp: CompId) -> Result<()> {
        self.function_as(comp, false)
    }

    fn function_as(&mut self, comp: CompId, entry: bool) -> Result<()> {
        let computation = &self.module.comps[comp];
        let region = self.out.new_region();
        let block = self.out.new_block(region);
        let mut inputs = Vec::new();
        for &param in &computation.params {
            let instr = &self.module.instrs[param];
            let loc = self.places.name(instr);
            let mut leaves = Vec::new();
            for ty in self.types(&instr.shape) {
                inputs.push(ty.clone());
                leaves.push(self.out.add_arg(block, ty, loc.clone()));
            }
            self.values.set(param, Some(leaves));
        }
        let results = self.types(&self.module.root(comp).shape);
        let outer = self.block.replace(block);
        self.body(comp, "func.return")?;
        self.block = outer;
        let name = self.names.get(&comp).cloned().unwrap_or_default();
        let function = mlir::FunctionType { inputs, results };
        let mut op = NewOp::new("func.func", Vec::new(), Vec::new());
        let visibility = if entry { "public" } else { "private" };
        op.attrs.insert("sym_name".into(), Attr::string(&name));
        op.attrs
            .insert("sym_visibility".into(), Attr::string(visibility));
        op.attrs.insert(
            "function_type".into(),
            Attr::Type(Type::Function(std::sync::Arc::new(function))),
        );
        self.function_attributes(comp, &mut op.attrs);
        dialect::canonicalize("func.func", &mut op.attrs);
        op.regions.push(region);
        let body = self.out.body();
        self.out.push(body, op);
        Ok(())
    }

    /// Converts the instructions of a computation, whose parameters are there, and ends the block.
    fn body(&mut self, comp: CompId, terminator: &str) -> Result<()> {
        let results = self.inline(comp)?;
        self.push_op(terminator, results, Vec::new(), AttrMap::new())?;
        Ok(())
    }

    /// Converts the instructions of a computation, whose parameters are there, and gives its result.
    fn inline(&mut self, comp: CompId) -> Result<Vec<ValueId>> {
        if self.depth >= MAX_DEPTH {
            let message = format!("computations nested deeper than {MAX_DEPTH} levels");
            return Err(Diagnostic::error(codes::INPUT_LIMIT, message));
        }
        self.depth += 1;
        let computation = &self.module.comps[comp];
        for &id in &computation.instrs {
            let instr = &self.module.instrs[id];
            if matches!(instr.op, Op::Parameter { .. }) {
                continue;
            }
            let loc = self.places.of(instr);
            let outer = std::mem::replace(&mut self.loc, loc);
            let leaves = self.instr(id).map_err(|d| self.placed(d, id))?;
            self.loc = outer;
            self.values.set(id, Some(leaves));
        }
        self.depth -= 1;
        self.leaves(computation.root)
    }

    fn placed(&self, diagnostic: Box<Diagnostic>, id: InstrId) -> Box<Diagnostic> {
        diagnostic.or_at(|| Location::Instruction {
            computation: self.module.comps[self.module.instrs[id].parent]
                .name
                .clone(),
            text: hlo::print::instr(self.module, id),
        })
    }

    /// The arrays and tokens of a value.
    fn leaves(&self, id: InstrId) -> Result<Vec<ValueId>> {
        self.values[id].clone().ok_or_else(|| {
            let message = "an instruction is used before it is defined";
            Diagnostic::error(codes::MODULE_STRUCTURE, message)
        })
    }
    /// The one array or token of a value.
    fn one(&self, id: InstrId) -> Result<ValueId> {
        match &*self.leaves(id)? {
            &[one] => Ok(one),
            _ => Err(self.unsupported(id, "a tuple as an operand")),
        }
    }
    /// The one array or token of each operand.
    fn operands(&self, id: InstrId) -> Result<Vec<ValueId>> {
        let operands = self.module.instrs[id].operands.iter();
        operands.map(|&o| self.one(o)).collect()
    }
    /// The arrays and tokens of all operands, one after the other.
    fn all_leaves(&self, operands: &[InstrId]) -> Result<Vec<ValueId>> {
        let mut all = Vec::new();
        for &operand in operands {
            all.extend(self.leaves(operand)?);
        }
        Ok(all)
    }
    /// StableHLO has no form of this.
    fn unsupported(&self, id: InstrId, what: &str) -> Box<Diagnostic> {
        let opcode = self.module.instrs[id].op.opcode();
        let message = format!("`{opcode}`: StableHLO has no form of {what}");
        Diagnostic::unsupported(codes::COMPILE_UNSUPPORTED, message)
    }

    /// Appends an op with regions.
    fn push_with(
        &mut self,
        name: &str,
        operands: Vec<ValueId>,
        results: Vec<Type>,
        mut attrs: AttrMap,
        regions: Vec<RegionId>,
    ) -> Result<Vec<ValueId>> {
        dialect::canonicalize(name, &mut attrs);
        let Some(block) = self.block else {
            let message = "an op outside of a function";
            return Err(Diagnostic::internal(codes::INTERNAL, message));
        };
        let op = self.out.push(
            block,
            NewOp {
                name: name.into(),
                operands,
                result_types: results,
                attrs,
                regions,
                successors: Vec::new(),
                loc: self.loc.clone(),
                place: 0,
            },
        );
        Ok(self.out.ops[op].results.clone())
    }
    /// Appends an op.
    fn push_op(
        &mut self,
        name: &str,
        operands: Vec<ValueId>,
        results: Vec<Type>,
        attrs: AttrMap,
    ) -> Result<Vec<ValueId>> {
        self.push_with(name, operands, results, attrs, Vec::new())
    }
    /// Appends an op with one result.
    fn push_one(
        &mut self,
        name: &str,
        operands: Vec<ValueId>,
        result: Type,
        attrs: AttrMap,
    ) -> Result<ValueId> {
        let results = self.push_op(name, operands, vec![result], attrs)?;
        Ok(results[0])
    }
    /// A region of one block with these arguments, filled by `fill`, which ends it.
    fn region(
        &mut self,
        arguments: &[Type],
        fill: impl FnOnce(&mut Self, Vec<ValueId>) -> Result<()>,
    ) -> Result<RegionId> {
        let region = self.out.new_region();
        let block = self.out.new_block(region);
        let loc = self.loc.clone();
        let args = arguments
            .iter()
            .map(|ty| self.out.add_arg(block, ty.clone(), loc.clone()))
            .collect();
        let outer = self.block.replace(block);
        fill(self, args)?;
        self.block = outer;
        Ok(region)
    }
    /// The parameters of a computation are these values, one after the other.
    fn bind(&mut self, comp: CompId, values: &[ValueId]) -> Result<()> {
        let mut rest = values;
        for &param in &self.module.comps[comp].params {
            let count = self.module.shape(param).leaves().len();
            let Some((first, others)) = rest.split_at_checked(count) else {
                let message = "a computation has more parameters than operands are given";
                return Err(Diagnostic::error(codes::MODULE_STRUCTURE, message));
            };
            self.values.set(param, Some(first.to_vec()));
            rest = others;
        }
        Ok(())
    }
    /// A region whose arguments are the parameters of a computation.
    fn region_of(&mut self, comp: CompId) -> Result<RegionId> {
        let params = self.module.comps[comp].params.iter();
        let shapes: Vec<&Shape> = params.map(|&p| self.module.shape(p)).collect();
        let arguments: Vec<Type> = shapes.iter().flat_map(|s| self.types(s)).collect();
        self.region(&arguments, |e, args| {
            e.bind(comp, &args)?;
            e.body(comp, "stablehlo.return")
        })
    }
}

/// A name that no other has, made of letters, digits, `_`, `.` and `$`.
fn unique(taken: &mut BTreeSet<String>, name: &str) -> String {
    let legal = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '.' | '$' => c,
        _ => '_',
    };
    let clean: String = name.chars().map(legal).collect();
    let base = match clean.chars().next() {
        Some('a'..='z' | 'A'..='Z' | '_') => clean,
        _ => format!("f_{clean}"),
    };
    let mut name = base.clone();
    let mut count = 0;
    while !taken.insert(name.clone()) {
        name = format!("{base}_{count}");
        count += 1;
    }
    name
}
