//! What loaders read of a bundle's HLO: names, constants, signature, and where results come from.
//!
//! Works on the wire structs, so that the small loader needs no HLO room. Follows values through
//! instructions that only pass them on; every walk is bounded.

use std::collections::BTreeMap;

use crate::base::Result;
use crate::executable::IoAlias;
use crate::executable::LogicalBuffer;
use crate::executable::Slice;
use crate::literal::Literal;
use crate::literal::device_form::to_device;
use crate::proto::xla as pb;
use crate::shape::ArrayShape;
use crate::shape::ProgramShape;
use crate::shape::ShapeIndex;
use crate::wire::literal::decode_literal;
use crate::wire::number::bad;
use crate::wire::number::index;
use crate::wire::number::indices;
use crate::wire::shape::decode_array;
use crate::wire::shape::decode_program_shape;
use crate::wire::shape::unmarked;

/// A bundle's HLO with its instructions by complete id.
pub(super) struct HloView<'a> {
    module: &'a pb::HloModuleProto,
    config: Option<&'a pb::HloModuleConfigProto>,
    instructions: BTreeMap<u64, (&'a pb::HloInstructionProto, &'a pb::HloComputationProto)>,
    computations: BTreeMap<i64, &'a pb::HloComputationProto>,
    /// For each computation, the instruction that calls it and which of its callees it is.
    callers: BTreeMap<i64, (u64, usize)>,
}

/// The complete id: the computation's in the upper half.
fn complete(computation: i64, id: i64) -> u64 {
    (computation.cast_unsigned() << 32) | (id.cast_unsigned() & 0xffff_ffff)
}

impl<'a> HloView<'a> {
    pub(super) fn new(proto: &'a pb::HloModuleProtoWithConfig) -> Result<Self> {
        let module = proto.hlo_module.as_ref();
        let module = module.ok_or_else(|| bad("the bundle has no HLO module"))?;
        let mut view = Self {
            module,
            config: proto.config.as_ref(),
            instructions: BTreeMap::new(),
            computations: BTreeMap::new(),
            callers: BTreeMap::new(),
        };
        for computation in &module.computations {
            view.computations.insert(computation.id, computation);
            for instruction in &computation.instructions {
                let id = complete(computation.id, instruction.id);
                view.instructions.insert(id, (instruction, computation));
                for (i, &called) in instruction.called_computation_ids.iter().enumerate() {
                    view.callers.insert(called, (id, i));
                }
            }
        }
        Ok(view)
    }

    /// Name of the module.
    pub(super) fn module_name(&self) -> &'a str {
        &self.module.name
    }

    /// The complete id of an instruction in the computation of another.
    pub(super) fn beside(id: u64, other: i64) -> u64 {
        (id & !0xffff_ffff) | (other.cast_unsigned() & 0xffff_ffff)
    }

    /// A computation by its id.
    pub(super) fn computation(&self, id: i64) -> Option<&'a pb::HloComputationProto> {
        self.computations.get(&id).copied()
    }

    /// An instruction by its complete id.
    pub(super) fn instruction(&self, id: u64) -> Result<&'a pb::HloInstructionProto> {
        let found = self.instructions.get(&id);
        found
            .map(|(instruction, _)| *instruction)
            .ok_or_else(|| bad(format!("the HLO has no instruction with id {id}")))
    }

    /// Name of an instruction.
    pub(super) fn name(&self, id: u64) -> Result<&'a str> {
        Ok(&self.instruction(id)?.name)
    }

    /// The device bytes of a constant instruction.
    pub(super) fn constant_bytes(&self, id: u64) -> Result<Vec<u8>> {
        constant_bytes(self.instruction(id)?)
    }

    /// The complete ids of the constants by what `to_name` makes of their names; the first of equals.
    pub(super) fn constants_by(&self, to_name: impl Fn(&str) -> String) -> BTreeMap<String, u64> {
        let mut found = BTreeMap::new();
        for (&id, (instruction, _)) in &self.instructions {
            if instruction.opcode == "constant" {
                found.entry(to_name(&instruction.name)).or_insert(id);
            }
        }
        found
    }

    /// Parameters and result as the caller sees them.
    pub(super) fn program(&self) -> Result<ProgramShape> {
        let layout = self
            .config
            .and_then(|c| c.entry_computation_layout.as_ref());
        let program = layout.or(self.module.host_program_shape.as_ref());
        let mut program =
            decode_program_shape(program.ok_or_else(|| bad("the HLO has no program shape"))?)?;
        for shape in program.parameters.iter_mut().chain([&mut program.result]) {
            *shape = shape.with_default_layout();
        }
        Ok(unmarked(&program))
    }

    /// Sharing between results and parameters.
    pub(super) fn aliases(&self) -> Result<Vec<IoAlias>> {
        let entries = self.module.input_output_alias.iter();
        entries
            .flat_map(|alias| &alias.entries)
            .map(decode_alias)
            .collect()
    }

    /// Where each array leaf of the entry's result lives.
    pub(super) fn outputs(
        &self,
        result: &crate::shape::Shape,
        logical: &[LogicalBuffer],
    ) -> Result<Vec<crate::executable::OutputSlice>> {
        let places = logical
            .iter()
            .map(|b| ((b.instruction, b.index.clone()), b.slice));
        let places: BTreeMap<(u64, ShapeIndex), Slice> = places.collect();
        let entry = self.computations.get(&self.module.entry_computation_id);
        let entry = entry.ok_or_else(|| bad("the HLO has no entry computation"))?;
        let mut outputs = Vec::new();
        for (index, leaf) in result.leaves() {
            let Some(array) = leaf.as_array() else {
                continue;
            };
            let root = complete(entry.id, entry.root_id);
            let mut slice = self.follow(root, index.clone(), &places)?;
            // A place may be larger than the value: allocations are rounded up by some producers.
            slice.size = slice.size.min(array.byte_size() as u64);
            outputs.push(crate::executable::OutputSlice { index, slice });
        }
        Ok(outputs)
    }

    /// The place of a part of an instruction's value: its own, or that of the value passed on.
    fn follow(
        &self,
        mut id: u64,
        mut part: ShapeIndex,
        places: &BTreeMap<(u64, ShapeIndex), Slice>,
    ) -> Result<Slice> {
        let mut stack: Vec<u64> = Vec::new();
        for _ in 0..=2 * self.instructions.len() + 64 {
            if let Some(slice) = places.get(&(id, part.clone())) {
                return Ok(*slice);
            }
            let Some((instruction, computation)) = self.instructions.get(&id).copied() else {
                break;
            };
            let operand = |i: usize| {
                let operand = instruction.operand_ids.get(i);
                operand.map(|&o| complete(computation.id, o))
            };
            let next = match instruction.opcode.as_str() {
                "tuple" if !part.is_empty() => operand(part.remove(0)),
                "get-tuple-element" => {
                    part.insert(0, index(instruction.tuple_index, "a tuple index")?);
                    operand(0)
                }
                "bitcast" | "while" | "opt-barrier" | "add-dependency" | "domain" => operand(0),
                "call" | "conditional" => {
                    stack.push(id);
                    let callee = instruction.called_computation_ids.first();
                    let callee = callee.and_then(|c| self.computations.get(c));
                    callee.map(|c| complete(c.id, c.root_id))
                }
                "parameter" => self.argument(computation.id, instruction, &mut stack),
                _ => None,
            };
            match next {
                Some(next) => id = next,
                None => break,
            }
        }
        Err(bad(format!(
            "the result's part {:?} has no place in the buffer plan",
            part.as_slice()
        )))
    }

    /// The value that a computation's parameter gets from its caller.
    fn argument(
        &self,
        computation: i64,
        parameter: &pb::HloInstructionProto,
        stack: &mut Vec<u64>,
    ) -> Option<u64> {
        let caller = stack.pop();
        let (id, branch) = match caller {
            Some(id) => (id, 0),
            None => *self.callers.get(&computation)?,
        };
        let (instruction, parent) = self.instructions.get(&id)?;
        let operand = match instruction.opcode.as_str() {
            "while" => 0,
            "conditional" => 1 + branch,
            _ => usize::try_from(parameter.parameter_number).ok()?,
        };
        let operand = instruction.operand_ids.get(operand)?;
        Some(complete(parent.id, *operand))
    }
}

/// The device bytes of a constant instruction.
pub(super) fn constant_bytes(instruction: &pb::HloInstructionProto) -> Result<Vec<u8>> {
    let literal = instruction.literal.as_ref();
    let literal = literal.ok_or_else(|| {
        bad(format!(
            "the constant `{}` has no literal",
            instruction.name
        ))
    })?;
    let shape = instruction.shape.as_ref().map(decode_array).transpose()?;
    match (decode_literal(literal)?, shape) {
        (Literal::Array(array), Some(shape)) if array.shape().same_ignoring_layout(&shape) => {
            Ok(to_device(&array, &with_layout(shape)))
        }
        _ => Err(bad(format!(
            "the constant `{}` is not an array of its literal's shape",
            instruction.name
        ))),
    }
}

fn with_layout(mut shape: ArrayShape) -> ArrayShape {
    shape.layout = Some(shape.layout_or_default());
    shape
}

pub(super) fn decode_alias(
    entry: &pb::hlo_input_output_alias_proto::AliasEntryProto,
) -> Result<IoAlias> {
    Ok(IoAlias {
        output: indices(&entry.output_shape_index, "an output index")?,
        parameter: index(entry.parameter_number, "an aliased parameter's number")?,
        index: indices(&entry.parameter_shape_index, "a parameter index")?,
        must: entry.kind == 2,
    })
}
