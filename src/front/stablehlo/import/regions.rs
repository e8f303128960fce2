//! Regions become computations; what they use from outside becomes parameters.

use crate::base::Diagnostic;
use crate::base::IdMap;
use crate::base::Result;
use crate::base::codes;
use crate::front::stablehlo::import::Converter;
use crate::front::stablehlo::import::MAX_DEPTH;
use crate::front::stablehlo::import::location;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::hlo::OpMetadata;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::literal::Number;
use crate::literal::number;
use crate::mlir;
use crate::mlir::BlockId;
use crate::mlir::OpRef;
use crate::mlir::RegionId;
use crate::mlir::ValueDef;
use crate::mlir::ValueId;
use crate::shape::ArrayShape;
use crate::shape::Shape;

/// How many regions stand around each region of a module.
pub fn depths(source: &mlir::Module) -> IdMap<RegionId, u32> {
    let mut depths = IdMap::new();
    let mut todo: Vec<(RegionId, u32)> = Vec::new();
    let regions = &source.ops[source.root].regions;
    todo.extend(regions.iter().map(|&region| (region, 0)));
    while let Some((region, depth)) = todo.pop() {
        depths.set(region, depth);
        for &block in &source.regions[region].blocks {
            for op in source.block_ops(block) {
                todo.extend(op.regions.iter().map(|&inner| (inner, depth + 1)));
            }
        }
    }
    depths
}

/// The parameters of a region that takes all it needs as one value.
#[derive(Debug)]
pub struct OneParameter<'a> {
    /// Shapes of the block's arguments.
    pub arguments: &'a [Shape],
    /// Values that come after them.
    pub captures: &'a [ValueId],
    /// Whether the captures are results too, after the block's.
    pub carried: bool,
}

impl<'m> Converter<'m> {
    /// Runs `inside` one level deeper.
    pub(super) fn deeper<T>(&mut self, inside: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            let message = format!("regions and calls nested deeper than {MAX_DEPTH} levels");
            return Err(Diagnostic::error(codes::INPUT_LIMIT, message));
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result
    }

    /// The region a value is defined in.
    fn region_of_value(&self, value: ValueId) -> Option<RegionId> {
        let block = match self.source.values[value].def {
            ValueDef::Arg { block, .. } => block,
            ValueDef::Result { op, .. } => self.source.ops[op].parent?,
        };
        Some(self.source.blocks[block].parent)
    }

    /// Values that regions use and that are defined outside of them, in the order in which MLIR
    /// meets them: what stands inside an op comes before the op.
    pub(super) fn captures(&self, regions: &[RegionId]) -> Vec<ValueId> {
        let mut found = Vec::new();
        let mut seen = crate::base::IdSet::new();
        for &region in regions {
            let depth = self.region_depths[region];
            self.collect(region, depth, &mut seen, &mut found);
        }
        found
    }

    fn collect(
        &self,
        region: RegionId,
        depth: u32,
        seen: &mut crate::base::IdSet<ValueId>,
        found: &mut Vec<ValueId>,
    ) {
        if self.region_depths[region] as usize > MAX_DEPTH {
            return;
        }
        for &block in &self.source.regions[region].blocks {
            for op in self.source.block_ops(block) {
                for &inner in &op.regions {
                    self.collect(inner, depth, seen, found);
                }
                for &operand in &op.operands {
                    let outside = self
                        .region_of_value(operand)
                        .is_some_and(|r| self.region_depths[r] < depth);
                    if outside && seen.insert(operand) {
                        found.push(operand);
                    }
                }
            }
        }
    }

    /// The constant that a value is, which is made again where a region uses it.
    fn constant_op(&self, value: ValueId) -> Option<OpRef<'m>> {
        let ValueDef::Result { op, .. } = self.source.values[value].def else {
            return None;
        };
        let op = self.source.op(op);
        let constant = matches!(
            op.kind(),
            "stablehlo.constant" | "mhlo.constant" | "chlo.constant" | "arith.constant"
        );
        constant.then_some(op)
    }

    /// Whether a captured value is made again inside instead of being passed in.
    fn is_remade(&mut self, value: ValueId) -> bool {
        self.constant_op(value).is_some() || self.size_behind(value).is_some()
    }

    /// What a captured value is, where sizes may depend on it.
    fn size_behind(&mut self, value: ValueId) -> Option<ArrayLiteral> {
        let id = self.values[value]?;
        if !self.functions.is_open() {
            return None;
        }
        let known = self.facts.value(&self.out, id)?;
        let width = known.ty.byte_width();
        let mut bytes = vec![0; width * known.values.len()];
        for (out, &value) in bytes.chunks_exact_mut(width).zip(&known.values) {
            number::encode(known.ty, Number::Int(value), out);
        }
        let shape = ArrayShape::new(known.ty, known.dims.iter().copied());
        Some(ArrayLiteral::new(shape, bytes))
    }

    /// The captures of regions that are passed in, without those that are made again inside.
    pub(super) fn passed(&mut self, regions: &[RegionId]) -> Vec<ValueId> {
        let mut captures = self.captures(regions);
        captures.retain(|&value| !self.is_remade(value));
        captures
    }

    /// The computation of a region whose arguments are parameters each; it captures constants only.
    pub(super) fn region_of(&mut self, op: OpRef<'m>, index: usize) -> Result<CompId> {
        self.region(op, index, None)
    }

    /// The computation of a region.
    pub(super) fn region(
        &mut self,
        op: OpRef<'m>,
        index: usize,
        one: Option<&OneParameter<'_>>,
    ) -> Result<CompId> {
        let block = op.block(index)?;
        let captures = self.captures(&[op.region(index)?]);
        let name = format!("region_{}.{}", self.region_count, self.out.comps.len());
        self.region_count += 1;
        let comp = self.out.new_comp(name);
        let outer = std::mem::replace(&mut self.comp, comp);
        let saved: Vec<Option<InstrId>> = captures.iter().map(|&v| self.values[v]).collect();
        let filled = self.deeper(|c| c.fill(op, block, &captures, one));
        for (&value, &id) in captures.iter().zip(&saved) {
            self.values[value] = id;
        }
        self.comp = outer;
        filled.map(|()| comp)
    }

    fn fill(
        &mut self,
        op: OpRef<'m>,
        block: BlockId,
        captures: &[ValueId],
        one: Option<&OneParameter<'_>>,
    ) -> Result<()> {
        let sizes: Vec<Option<ArrayLiteral>> =
            captures.iter().map(|&v| self.size_behind(v)).collect();
        let passed = match one {
            Some(one) => self.one_parameter(block, one)?,
            None => {
                self.parameters(op, block)?;
                Vec::new()
            }
        };
        for (&value, size) in captures.iter().zip(sizes) {
            if let Some(constant) = self.constant_op(value) {
                self.values[value] = Some(self.constant_of(constant)?);
            } else if let Some(size) = size {
                self.values[value] = Some(self.b().constant(Literal::Array(size)));
            } else if !one.is_some_and(|one| one.captures.contains(&value)) {
                self.values[value] = None;
            }
        }
        let mut results = self.block(block)?;
        if one.is_some_and(|one| one.carried) {
            results.extend(passed);
        }
        let root = match *results {
            [root] => root,
            _ => self.b().tuple(&results)?,
        };
        self.b().set_root(root);
        Ok(())
    }

    /// The name that a value's location gives, as metadata of the parameter that stands for it.
    fn say_value_name(&mut self, value: ValueId, id: InstrId) {
        match self.source.values[value].def {
            ValueDef::Arg { block, index } => self.say_name(block, index, id),
            ValueDef::Result { op, .. } => {
                let op_name = location::name_of(&self.source.ops[op].loc);
                if !op_name.is_empty() {
                    self.extra(id).metadata = Some(OpMetadata {
                        op_name,
                        ..OpMetadata::default()
                    });
                }
            }
        }
    }

    /// A parameter for each argument of a block, as its type says.
    fn parameters(&mut self, op: OpRef<'m>, block: BlockId) -> Result<()> {
        let source = self.source;
        for (i, &argument) in source.blocks[block].args.iter().enumerate() {
            let known = self.known(op, source.ty(argument))?;
            let crate::front::stablehlo::types::Known::Whole(shape) = known else {
                return Err(op.unsupported("a region whose arguments have unknown sizes"));
            };
            let name = self.argument_name(block, i);
            let id = self.b().parameter(name, shape);
            self.values[argument] = Some(id);
            self.say_name(block, i, id);
        }
        Ok(())
    }

    /// The name that an argument's location gives, as metadata of its parameter.
    pub(super) fn say_name(&mut self, block: BlockId, index: usize, id: InstrId) {
        let locs = &self.source.blocks[block].arg_locs;
        let op_name = locs.get(index).map(|loc| location::name_of(loc));
        if let Some(op_name) = op_name.filter(|name| !name.is_empty()) {
            self.extra(id).metadata = Some(OpMetadata {
                op_name,
                ..OpMetadata::default()
            });
        }
    }

    /// What a parameter is called: the name its location gives, or its number.
    pub(super) fn argument_name(&self, block: BlockId, index: usize) -> String {
        let block = &self.source.blocks[block];
        let name = block.arg_locs.get(index).map(|loc| location::name_of(loc));
        let name = name.unwrap_or_default();
        let last = name.rsplit('/').next().unwrap_or_default();
        let legal = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let clean: String = last.chars().map(legal).collect();
        let count = self.out.instrs.len();
        match clean.chars().next() {
            Some(first) if !first.is_ascii_digit() => format!("{clean}.{count}"),
            _ => format!("Arg_{index}.{count}"),
        }
    }

    /// One parameter for the arguments of a block and what it captures: the value itself when there
    /// is one, else a tuple. Gives the instructions of the captures.
    fn one_parameter(&mut self, block: BlockId, one: &OneParameter<'_>) -> Result<Vec<InstrId>> {
        let source = self.source;
        let arguments = source.blocks[block].args.iter().copied();
        let values: Vec<ValueId> = arguments.chain(one.captures.iter().copied()).collect();
        let mut shapes: Vec<Shape> = one.arguments.to_vec();
        for &value in one.captures {
            let id = self.values[value];
            shapes.extend(id.map(|id| self.out.shape(id).without_layout()));
        }
        if shapes.len() != values.len() {
            let message = format!(
                "a region of {} arguments for {} values",
                values.len(),
                shapes.len()
            );
            return Err(Diagnostic::error(codes::OP_CONSTRAINT, message));
        }
        let count = self.out.instrs.len();
        let ids: Vec<InstrId> = match &*shapes {
            [shape] => {
                let id = self.b().parameter(format!("Arg_.{count}"), shape.clone());
                self.say_value_name(values[0], id);
                vec![id]
            }
            _ => {
                let name = match shapes.is_empty() {
                    true => "arg_empty_tuple",
                    false => "arg_tuple",
                };
                let shape = Shape::Tuple(shapes.clone());
                let tuple = self.b().parameter(format!("{name}.{count}"), shape);
                let elements = (0..shapes.len())
                    .map(|index| self.b().op(Op::GetTupleElement { index }, &[tuple]));
                elements.collect::<Result<_>>()?
            }
        };
        for (&value, &id) in values.iter().zip(&ids) {
            self.values[value] = Some(id);
        }
        Ok(ids[one.arguments.len().min(ids.len())..].to_vec())
    }
}
