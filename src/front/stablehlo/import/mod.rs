//! From MLIR to HLO: functions, blocks and ops, one after the other.

mod attributes;
mod call;
mod calls;
mod collective;
mod contraction;
mod control;
mod custom_call;
mod declared;
mod difference;
mod dynamic;
mod elementwise;
mod facts;
mod function;
mod header;
mod host;
mod location;
mod movement;
mod quantized;
mod reduce;
mod regions;
mod rng;
mod scalars;
mod shardings;
mod shardy;

use std::collections::BTreeMap;

use crate::base::Diagnostic;
use crate::base::Id;
use crate::base::IdMap;
use crate::base::Result;
use crate::base::codes;
use crate::front::stablehlo::Options;
use crate::front::stablehlo::import::calls::Functions;
use crate::front::stablehlo::import::facts::Facts;
use crate::front::stablehlo::import::function::Key;
use crate::front::stablehlo::import::location::Places;
use crate::front::stablehlo::import::shardings::Meshes;
use crate::front::stablehlo::types;
use crate::front::stablehlo::types::Known;
use crate::hlo::Builder;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::mlir;
use crate::mlir::BlockId;
use crate::mlir::OpRef;
use crate::mlir::RegionId;
use crate::mlir::Type;
use crate::mlir::ValueId;
use crate::mlir::dialect::is_return;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// How deep regions and calls of functions with open types may stand inside each other.
const MAX_DEPTH: usize = 128;

/// Ops of StableHLO and MHLO whose operands can be tuples and tokens.
const OF_ANY_TYPE: [&str; 16] = [
    "add_dependency",
    "after_all",
    "async_done",
    "async_start",
    "composite",
    "copy",
    "custom_call",
    "fusion",
    "get_tuple_element",
    "infeed",
    "optimization_barrier",
    "outfeed",
    "recv",
    "send",
    "tuple",
    "while",
];

/// Refuses operands that are no arrays.
fn want_arrays(op: OpRef<'_>) -> Result<()> {
    for i in 0..op.operands.len() {
        let ty = op.operand_type(i)?;
        if matches!(ty, Type::Token | Type::Tuple(_) | Type::Future(_)) {
            let ty = mlir::print::ty(ty);
            return Err(op.wrong(format!("operand {i} is {ty}, wanted an array")));
        }
    }
    Ok(())
}

/// Converts the module.
pub(super) fn convert(source: &mlir::Module, options: &Options) -> Result<Module> {
    let name = source.symbol_name(source.root).unwrap_or("main");
    let mut converter = Converter {
        source,
        out: Module::new(name),
        comp: CompId::from_index(0),
        values: IdMap::new(),
        functions: Functions::of(source)?,
        lowered: BTreeMap::new(),
        region_depths: regions::depths(source),
        region_count: 0,
        depth: 0,
        places: Places::default(),
        facts: Facts::default(),
        meshes: shardy::meshes(source),
        expressed: false,
    };
    converter.main(options)?;
    converter.header()?;
    let Converter {
        mut out, places, ..
    } = converter;
    out.stack_frames = places.into_index();
    Ok(out)
}

/// The state of one conversion.
struct Converter<'m> {
    source: &'m mlir::Module,
    out: Module,
    /// The computation that grows.
    comp: CompId,
    /// The instruction of each value that is in reach.
    values: IdMap<ValueId, Option<InstrId>>,
    functions: Functions<'m>,
    /// Computations of functions, by what they were converted for.
    lowered: BTreeMap<Key<'m>, CompId>,
    /// How many regions stand around each region.
    region_depths: IdMap<RegionId, u32>,
    /// Regions that have become computations.
    region_count: usize,
    depth: usize,
    places: Places,
    facts: Facts,
    meshes: Meshes<'m>,
    /// Whether quantized types are the floats that they stand for, not the integers stored.
    expressed: bool,
}

impl<'m> Converter<'m> {
    /// Appends to the current computation.
    fn b(&mut self) -> Builder<'_> {
        self.out.builder(self.comp)
    }
    /// The instruction of a value.
    fn value(&self, op: OpRef<'m>, value: ValueId) -> Result<InstrId> {
        self.values[value].ok_or_else(|| {
            op.unsupported(format!(
                "operand {value:?} is defined outside of a region that cannot capture"
            ))
        })
    }
    /// The instruction of an operand.
    fn operand(&self, op: OpRef<'m>, index: usize) -> Result<InstrId> {
        self.value(op, op.operand(index)?)
    }
    /// The instructions of all operands.
    fn operands(&self, op: OpRef<'m>) -> Result<Vec<InstrId>> {
        op.operands.iter().map(|&v| self.value(op, v)).collect()
    }
    /// The instructions of so many operands.
    fn exactly<const N: usize>(&self, op: OpRef<'m>) -> Result<[InstrId; N]> {
        self.operands(op)?
            .try_into()
            .map_err(|given: Vec<InstrId>| {
                op.wrong(format!("{} operands where {N} should be", given.len()))
            })
    }
    /// The result of an op is this instruction.
    fn set(&mut self, op: OpRef<'m>, index: usize, id: InstrId) -> Result<()> {
        self.allowed(op, index, id)?;
        self.values[op.results[index]] = Some(id);
        Ok(())
    }
    /// Runs `inside` while these values have these instructions.
    fn with_values<T>(
        &mut self,
        values: &[(ValueId, InstrId)],
        inside: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let saved: Vec<Option<InstrId>> = values.iter().map(|&(v, _)| self.values[v]).collect();
        for &(value, id) in values {
            self.values[value] = Some(id);
        }
        let result = inside(self);
        for (&(value, _), &id) in values.iter().zip(&saved) {
            self.values[value] = id;
        }
        result
    }
    /// The one result of an op is this instruction.
    fn set_one(&mut self, op: OpRef<'m>, id: InstrId) -> Result<()> {
        match op.results.len() {
            1 => self.set(op, 0, id),
            n => Err(op.wrong(format!("{n} results where one should be"))),
        }
    }
    /// The results of an op are this value when there is one, else the elements of this tuple.
    fn set_results(&mut self, op: OpRef<'m>, id: InstrId) -> Result<()> {
        if op.results.len() == 1 {
            return self.set(op, 0, id);
        }
        self.set_elements(op, id)
    }
    /// The results of an op are the elements of this tuple.
    fn set_elements(&mut self, op: OpRef<'m>, tuple: InstrId) -> Result<()> {
        for index in 0..op.results.len() {
            let element = self.b().op(Op::GetTupleElement { index }, &[tuple])?;
            self.set(op, index, element)?;
        }
        Ok(())
    }
    /// What the type of a result says.
    fn declared(&self, op: OpRef<'m>, index: usize) -> Result<Known> {
        self.known(op, op.result_type(index)?)
    }
    /// What a type says.
    fn known(&self, op: OpRef<'m>, ty: &mlir::Type) -> Result<Known> {
        if self.expressed {
            return types::shape_of(&types::expressed(ty))
                .map_err(|what| op.unsupported(format!("HLO has no {what}")));
        }
        types::shape_of(ty).map_err(|what| op.unsupported(format!("HLO has no {what}")))
    }
    /// The shape of a result, when its type has all sizes.
    fn declared_shape(&self, op: OpRef<'m>, index: usize) -> Result<Option<Shape>> {
        Ok(match self.declared(op, index)? {
            Known::Whole(shape) => Some(shape),
            Known::Open { .. } | Known::Unranked(_) => None,
        })
    }
    /// The shape of a result that only its type tells.
    fn needed_shape(&self, op: OpRef<'m>, index: usize) -> Result<Shape> {
        self.declared_shape(op, index)?
            .ok_or_else(|| op.unsupported(format!("the sizes of result {index} are not known")))
    }
    /// The element type of a result.
    fn element_type(&self, op: OpRef<'m>, index: usize) -> Result<PrimitiveType> {
        let element = op.result_type(index)?.element();
        let element = match self.expressed {
            true => &types::expressed(element),
            false => element,
        };
        types::element_type(element).map_err(|what| op.unsupported(format!("HLO has no {what}")))
    }
    /// Appends an op whose operands give its shape, checked against what is declared.
    fn emit(&mut self, op: OpRef<'m>, hlo: Op, operands: &[InstrId]) -> Result<InstrId> {
        match self.declared_shape(op, 0)? {
            Some(shape) => self.b().shaped(hlo, operands, shape),
            None => self.b().op(hlo, operands),
        }
    }
    /// Appends an op with one result whose operands give its shape.
    fn emit_one(&mut self, op: OpRef<'m>, hlo: Op, operands: &[InstrId]) -> Result<()> {
        let id = self.emit(op, hlo, operands)?;
        self.set_one(op, id)
    }

    /// Converts the ops of a block and gives the operands of its terminator.
    fn block(&mut self, block: BlockId) -> Result<Vec<InstrId>> {
        let source = self.source;
        let count = source.blocks[block].ops.len();
        for (i, op) in source.block_ops(block).enumerate() {
            if is_return(op.kind()) && i + 1 == count {
                return self.operands(op);
            }
            self.op(op)?;
        }
        let message = "a block that does not end in a return";
        Err(Diagnostic::error(codes::MODULE_STRUCTURE, message))
    }

    /// Converts one op, and says of all instructions that came of it where they come from.
    fn op(&mut self, op: OpRef<'m>) -> Result<()> {
        let start = self.out.comps[self.comp].instrs.len();
        self.dispatch(op).map_err(|d| op.placed(d))?;
        self.attach(op, start).map_err(|d| op.placed(d))
    }

    fn dispatch(&mut self, op: OpRef<'m>) -> Result<()> {
        match op.kind().split_once('.') {
            Some(("stablehlo" | "mhlo", name)) => self.stablehlo(op, name),
            Some(("chlo", name)) => self.chlo(op, name),
            Some(("func", "call")) => self.call(op),
            Some(("sdy", name)) => self.sdy(op, name),
            Some(("arith" | "shape" | "tensor", _)) => self.scalar_op(op),
            Some(("ub", "poison")) => Err(op.unsupported("HLO has no poison")),
            _ => {
                Err(op.unsupported("an op of another dialect than StableHLO's and those beside it"))
            }
        }
    }

    /// An op of StableHLO, or of MHLO where StableHLO has none of that name.
    fn stablehlo(&mut self, op: OpRef<'m>, name: &str) -> Result<()> {
        if !OF_ANY_TYPE.contains(&name) {
            want_arrays(op)?;
        }
        if quantized::is_quantized(op) {
            return self.quantized_op(op, name);
        }
        self.plain_stablehlo(op, name)
    }

    /// An op whose types are taken as arrays of numbers.
    fn plain_stablehlo(&mut self, op: OpRef<'m>, name: &str) -> Result<()> {
        let done = self.elementwise(op, name)?
            || self.movement(op, name)?
            || self.contraction(op, name)?
            || self.reduction(op, name)?
            || self.control_flow(op, name)?
            || self.random(op, name)?
            || self.dynamic_op(op, name)?
            || self.collective(op, name)?
            || self.host_op(op, name)?;
        if done {
            return Ok(());
        }
        Err(op.unsupported("HLO has no such op"))
    }
}
