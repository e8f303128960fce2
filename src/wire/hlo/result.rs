//! The entry's result as its caller sees it.
//!
//! Inside the compiler a layout is an order of dimensions, so the root may have the caller's bytes
//! under other dimensions. XLA's GPU client takes the shapes of results from the root.

use crate::proto::xla as pb;
use crate::shape::PrimitiveType;
use crate::shape::Shape;
use crate::wire::number::number;
use crate::wire::shape::encode_shape;

/// Puts bitcasts to the caller's shape after the entry's root, where it has another one.
///
/// Of a dynamic array the program gives the bytes, which have no other form within HLO.
pub(super) fn give_result(module: &mut pb::HloModuleProto, result: &Shape) {
    let result = &with_bytes(result);
    let entry = module.entry_computation_id;
    let mut computations = module.computations.iter_mut();
    let Some(computation) = computations.find(|computation| computation.id == entry) else {
        return;
    };
    let root = computation.root_id;
    let instructions = &computation.instructions;
    let shape = instructions.iter().find(|i| i.id == root);
    let Some(shape) = shape.and_then(|i| i.shape.clone()) else {
        return;
    };
    let last = instructions.iter().map(|i| i.id).max().unwrap_or(root);
    let mut after = After {
        present: instructions,
        next: last + 1,
        added: Vec::new(),
    };
    computation.root_id = after.adapted(root, &shape, result);
    let added = after.added;
    let ids: Vec<i64> = added.iter().map(|i| i.id).collect();
    computation.instructions.extend(added);
    if let Some(program) = &mut computation.program_shape {
        program.result = Some(encode_shape(result));
    }
    let sequences = module.schedule.as_mut().map(|s| &mut s.sequences);
    if let Some(sequence) = sequences.and_then(|sequences| sequences.get_mut(&entry)) {
        sequence.instruction_ids.extend(ids);
    }
}

/// The shape with bytes for each dynamic array.
fn with_bytes(shape: &Shape) -> Shape {
    match shape {
        Shape::Array(array) if array.is_dynamic() => {
            Shape::array(PrimitiveType::U8, [array.byte_size()]).with_default_layout()
        }
        Shape::Tuple(parts) => Shape::Tuple(parts.iter().map(with_bytes).collect()),
        Shape::Array(_) | Shape::Token | Shape::Opaque => shape.clone(),
    }
}

/// Instructions after the root.
struct After<'a> {
    present: &'a [pb::HloInstructionProto],
    next: i64,
    added: Vec<pb::HloInstructionProto>,
}

impl After<'_> {
    /// The value of that id and shape in the wanted shape.
    fn adapted(&mut self, id: i64, shape: &pb::ShapeProto, wanted: &Shape) -> i64 {
        let target = encode_shape(wanted);
        if *shape == target {
            return id;
        }
        let Shape::Tuple(elements) = wanted else {
            return self.push("bitcast", target, vec![id]);
        };
        let present = self.present;
        let tuple = present.iter().find(|i| i.id == id && i.opcode == "tuple");
        let mut operands = Vec::with_capacity(elements.len());
        for (i, element) in elements.iter().enumerate() {
            let shape = shape.tuple_shapes.get(i).cloned().unwrap_or_default();
            let part = match tuple.and_then(|tuple| tuple.operand_ids.get(i)) {
                Some(operand) => *operand,
                None => self.element(id, i, shape.clone()),
            };
            operands.push(self.adapted(part, &shape, element));
        }
        self.push("tuple", target, operands)
    }

    fn push(&mut self, opcode: &str, shape: pb::ShapeProto, operand_ids: Vec<i64>) -> i64 {
        let id = self.next;
        self.next += 1;
        self.added.push(pb::HloInstructionProto {
            name: format!("{opcode}.result.{}", self.added.len()),
            opcode: opcode.to_owned(),
            shape: Some(shape),
            id,
            operand_ids,
            ..pb::HloInstructionProto::default()
        });
        id
    }

    fn element(&mut self, tuple: i64, index: usize, shape: pb::ShapeProto) -> i64 {
        let id = self.push("get-tuple-element", shape, vec![tuple]);
        if let Some(instruction) = self.added.last_mut() {
            instruction.tuple_index = number(index);
        }
        id
    }
}
