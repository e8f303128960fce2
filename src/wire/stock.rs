//! What stock jaxlib asks of a CPU bundle beyond what this program's reader asks: where it would end
//! its process, refuse, or go wrong without a word.
//!
//! jaxlib trusts what it loads; each rule here was found by breaking it (jaxlib 0.10.2), or stands in
//! its loader (`xla/service/cpu/cpu_aot_loader.cc`, `xla/service/buffer_assignment.cc`).

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use prost::Message;

use crate::base::Result;
use crate::proto::xla as pb;
use crate::proto::xla::cpu;
use crate::proto::xla::cpu::thunk_proto::Impl;
use crate::wire::number::message;

/// What the messages of a bundle say about who can load it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Whether a kernel names its buffers with their shapes, as jaxlib does from 0.9.1 on.
    pub has_shaped_buffers: bool,
    /// Whether a kernel names its buffers without shapes, as jaxlib did up to 0.9.0.
    pub has_bare_buffers: bool,
    /// Whether a thunk draws a random seed, which jaxlib has from 0.10.2 on.
    pub has_seeds: bool,
    /// Whether the machine is named, as from 0.8.1 on; releases that do want it.
    pub names_machine: bool,
    /// The opcodes of the HLO.
    pub opcodes: BTreeSet<String>,
    /// Whether a fusion is left to jaxlib's library.
    pub has_library_fusions: bool,
    /// What no jaxlib takes, as sentences without a full stop.
    pub obstacles: Vec<String>,
}

/// The facts of a serialized `xla.cpu.CompilationResultProto` and its `CompileOptionsProto`.
///
/// # Errors
/// `XA1004` when the bytes are none.
pub fn facts(executable: &[u8], options: &[u8]) -> Result<Facts> {
    let proto: cpu::CompilationResultProto = message(executable, "xla.cpu.CompilationResultProto")?;
    let hlo = proto.hlo_module.as_deref().unwrap_or_default();
    let hlo: pb::HloModuleProtoWithConfig = message(hlo, "xla.HloModuleProtoWithConfig")?;
    let mut facts = Facts {
        names_machine: proto.target_machine_options.is_some(),
        ..Facts::default()
    };
    if let Some(sequence) = &proto.thunk_sequence {
        facts.thunks(sequence, 0);
    }
    facts.module(&hlo);
    facts.options(options);
    facts.data_layout(&proto.data_layout);
    if let Some(assignment) = &proto.buffer_assignment {
        facts.places(assignment, &hlo);
        facts.updates(assignment, &hlo);
    }
    Ok(facts)
}

/// Sequences nested deeper than this are not looked at; reading has refused them.
const MAX_NESTING: usize = 64;

impl Facts {
    fn obstacle(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.obstacles.contains(&text) {
            self.obstacles.push(text);
        }
    }

    fn thunks(&mut self, sequence: &cpu::ThunkSequenceProto, depth: usize) {
        if depth > MAX_NESTING {
            return;
        }
        for thunk in &sequence.thunks {
            let inside: Vec<&cpu::ThunkSequenceProto> = match &thunk.r#impl {
                Some(Impl::KernelThunk(kernel)) => {
                    for buffer in kernel
                        .arguments_buffers
                        .iter()
                        .chain(&kernel.results_buffers)
                    {
                        let shaped = pb::ShapedSliceProto::decode(buffer.as_slice());
                        match shaped.is_ok_and(|slice| slice.shape.is_some()) {
                            true => self.has_shaped_buffers = true,
                            false => self.has_bare_buffers = true,
                        }
                    }
                    Vec::new()
                }
                Some(Impl::CallThunk(call)) => call.called_sequence.iter().collect(),
                Some(Impl::WhileThunk(w)) => {
                    w.cond_sequence.iter().chain(&w.body_sequence).collect()
                }
                Some(Impl::ConditionalThunk(c)) => c.branch_sequences.iter().collect(),
                Some(Impl::RngSeedThunk(_)) => {
                    self.has_seeds = true;
                    Vec::new()
                }
                Some(Impl::YnnFusionThunk(_)) => {
                    self.has_library_fusions = true;
                    Vec::new()
                }
                _ => Vec::new(),
            };
            inside
                .iter()
                .for_each(|nested| self.thunks(nested, depth + 1));
        }
    }

    fn module(&mut self, hlo: &pb::HloModuleProtoWithConfig) {
        let layout = hlo.config.as_ref();
        let layout = layout.and_then(|c| c.entry_computation_layout.as_ref());
        if layout.is_none() {
            self.obstacle("it ends its process: the HLO's configuration has no entry layout");
        }
        let module = hlo.hlo_module.as_ref();
        if module.is_none_or(|m| m.host_program_shape.is_none()) {
            self.obstacle("it refuses the HLO, which has no program shape");
        }
        if let Some(layout) = layout
            && !layout.parameter_names.is_empty()
            && layout.parameter_names.len() != layout.parameters.len()
        {
            self.obstacle(
                "it refuses the entry layout, whose parameters and names differ in number",
            );
        }
        let computations = module.map(|m| m.computations.as_slice());
        let mut known = BTreeSet::new();
        for computation in computations.unwrap_or_default() {
            let called = computation.instructions.iter();
            let mut called = called.flat_map(|i| &i.called_computation_ids);
            if let Some(id) = called.find(|id| !known.contains(*id)) {
                let name = &computation.name;
                self.obstacle(format!(
                    "it refuses the HLO, in which `{name}` calls computation {id} that is not before it"
                ));
            }
            known.insert(computation.id);
            let opcodes = computation.instructions.iter().map(|i| &i.opcode);
            for opcode in opcodes {
                if !self.opcodes.contains(opcode) {
                    self.opcodes.insert(opcode.clone());
                }
            }
        }
    }

    fn options(&mut self, options: &[u8]) {
        let options = pb::CompileOptionsProto::decode(options).unwrap_or_default();
        let build = options.executable_build_options.unwrap_or_default();
        let is_counted = build.num_replicas > 0 && build.num_partitions > 0;
        if !is_counted && build.device_assignment.is_none() {
            self.obstacle(
                "it ends its process: the compile options have neither numbers of replicas and \
                 partitions nor a device assignment",
            );
        }
    }

    fn data_layout(&mut self, layout: &str) {
        const SPECIFIERS: &str = "eEmSPGAFpinvfa";
        let is_known = |part: &str| part.chars().next().is_some_and(|c| SPECIFIERS.contains(c));
        if !layout.is_empty() && !layout.split('-').all(is_known) {
            self.obstacle(format!(
                "it ends its process: `{layout}` is no data layout of LLVM"
            ));
        }
    }

    /// Values that the plan places are parts of their instructions.
    fn places(
        &mut self,
        assignment: &pb::BufferAssignmentProto,
        hlo: &pb::HloModuleProtoWithConfig,
    ) {
        let computations = hlo.hlo_module.as_ref().map(|m| m.computations.as_slice());
        let mut shapes = BTreeMap::new();
        for computation in computations.unwrap_or_default() {
            for instruction in &computation.instructions {
                let id = id_in(computation.id, instruction.id);
                shapes.insert(id, (instruction.name.as_str(), instruction.shape.as_ref()));
            }
        }
        for buffer in &assignment.logical_buffers {
            let Some(place) = &buffer.defined_at else {
                continue;
            };
            let Some((name, shape)) = shapes.get(&place.instruction_id) else {
                continue;
            };
            let mut part = *shape;
            for &at in &place.shape_index {
                let at = usize::try_from(at).ok();
                part = part.and_then(|shape| shape.tuple_shapes.get(at?));
            }
            if part.is_none() {
                let index = &place.shape_index;
                self.obstacle(format!(
                    "it ends its process: the buffer plan places part {index:?} of `{name}`, which \
                     has no such part"
                ));
            }
        }
    }

    /// What it takes for an update in place has one memory for what is updated and the result.
    fn updates(
        &mut self,
        assignment: &pb::BufferAssignmentProto,
        hlo: &pb::HloModuleProtoWithConfig,
    ) {
        let Some(module) = &hlo.hlo_module else {
            return;
        };
        let plan = Plan::new(module, assignment);
        let mut apart = Vec::new();
        for (&id, instruction) in &plan.instructions {
            for update in plan.updates(id, instruction) {
                let result = plan.memory.get(&(id, update.result.as_slice()));
                let old = plan.operand(id, update.operand);
                let old = old.and_then(|old| plan.source(old, update.part, true));
                let Some((old, part)) = old else {
                    continue;
                };
                let memory = plan.memory.get(&(old, part.as_slice()));
                if memory.zip(result).is_some_and(|(a, b)| a != b) {
                    let old = plan.instructions.get(&old).map_or("", |i| i.name.as_str());
                    apart.push(format!(
                        "it ends its process: it wants `{}` to update `{old}` in place, and the \
                         buffer plan has them apart",
                        instruction.name
                    ));
                }
            }
        }
        apart.into_iter().for_each(|text| self.obstacle(text));
    }
}

/// The number of an instruction in its module.
fn id_in(computation: i64, instruction: i64) -> i64 {
    (computation << 32) | (instruction & 0xffff_ffff)
}

/// Part of an operand that is updated in place, and the part of the result that this gives.
struct Update {
    operand: usize,
    part: Vec<i64>,
    result: Vec<i64>,
}

impl Update {
    fn whole(operand: usize) -> Self {
        Self {
            operand,
            part: Vec::new(),
            result: Vec::new(),
        }
    }
}

/// Tuples in tuples deeper than this are not followed.
const MAX_INDEX: usize = 16;

/// A module and where its values are.
struct Plan<'a> {
    computations: BTreeMap<i64, &'a pb::HloComputationProto>,
    instructions: BTreeMap<i64, &'a pb::HloInstructionProto>,
    /// Allocation and offset of what an instruction makes.
    memory: BTreeMap<(i64, &'a [i64]), (i64, i64)>,
}

impl<'a> Plan<'a> {
    fn new(module: &'a pb::HloModuleProto, assignment: &'a pb::BufferAssignmentProto) -> Self {
        let computations = module.computations.iter();
        let instructions = computations.clone().flat_map(|computation| {
            let own = computation.instructions.iter();
            own.map(|instruction| (id_in(computation.id, instruction.id), instruction))
        });
        let allocations = assignment.buffer_allocations.iter();
        let places: BTreeMap<i64, (i64, i64)> = allocations
            .flat_map(|allocation| {
                let assigned = allocation.assigned.iter();
                assigned.map(|a| (a.logical_buffer_id, (allocation.index, a.offset)))
            })
            .collect();
        let buffers = assignment.logical_buffers.iter();
        let memory = buffers.filter_map(|buffer| {
            let made = buffer.defined_at.as_ref()?;
            let at = (made.instruction_id, made.shape_index.as_slice());
            Some((at, *places.get(&buffer.id)?))
        });
        Self {
            instructions: instructions.collect(),
            memory: memory.collect(),
            computations: computations.map(|c| (c.id, c)).collect(),
        }
    }

    fn operand(&self, id: i64, number: usize) -> Option<i64> {
        let operand = *self.instructions.get(&id)?.operand_ids.get(number)?;
        Some(id_in(id >> 32, operand))
    }

    /// Where a value is made: tuples are taken apart on the way, and bitcasts passed over if told so.
    fn source(&self, mut id: i64, mut part: Vec<i64>, bitcasts: bool) -> Option<(i64, Vec<i64>)> {
        // A way through all instructions has been there before.
        for _ in 0..=self.instructions.len() {
            let instruction = self.instructions.get(&id)?;
            let number = match instruction.opcode.as_str() {
                "tuple" if !part.is_empty() => usize::try_from(part.remove(0)).ok()?,
                "get-tuple-element" if part.len() < MAX_INDEX => {
                    part.insert(0, instruction.tuple_index);
                    0
                }
                "bitcast" if bitcasts => 0,
                _ => return Some((id, part)),
            };
            id = self.operand(id, number)?;
        }
        None
    }

    /// What an instruction updates in place, by the rules of `xla/hlo/analysis/alias_info.cc`: a
    /// fusion does when what makes a result is an update of a parameter, whatever else reads that.
    fn updates(&self, id: i64, instruction: &pb::HloInstructionProto) -> Vec<Update> {
        match instruction.opcode.as_str() {
            "fusion" => self.updates_of_fusion(instruction).unwrap_or_default(),
            _ => self.updates_of_array(id),
        }
    }

    /// What an update itself updates.
    fn updates_of_array(&self, id: i64) -> Vec<Update> {
        let Some(instruction) = self.instructions.get(&id) else {
            return Vec::new();
        };
        match (
            instruction.opcode.as_str(),
            instruction.operand_ids.len() / 2,
        ) {
            ("dynamic-update-slice", _) | ("scatter", 1) => vec![Update::whole(0)],
            ("scatter", arrays) => (0..arrays)
                .map(|operand| Update {
                    result: vec![operand as i64],
                    ..Update::whole(operand)
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    fn updates_of_fusion(&self, fusion: &pb::HloInstructionProto) -> Option<Vec<Update>> {
        let body = self
            .computations
            .get(fusion.called_computation_ids.first()?)?;
        let parts = match fusion.shape.as_ref()?.tuple_shapes.len() {
            0 => vec![Vec::new()],
            parts => (0..parts).map(|part| vec![part as i64]).collect(),
        };
        let found = parts.into_iter().filter_map(|result| {
            let root = id_in(body.id, body.root_id);
            let (made, part) = self.source(root, result.clone(), false)?;
            let updates = self.updates_of_array(made);
            let update = updates.into_iter().find(|update| update.result == part)?;
            let old = self.operand(made, update.operand)?;
            let (mut old, part) = self.source(old, update.part, false)?;
            if self.instructions.get(&old)?.opcode == "bitcast" {
                old = self.operand(old, 0)?;
            }
            let old = self.instructions.get(&old)?;
            (old.opcode == "parameter").then_some(Update {
                operand: usize::try_from(old.parameter_number).ok()?,
                part,
                result,
            })
        });
        Some(found.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// jaxlib 0.10.2 ends its process over a bundle in which a fusion that ends in an update of its
    /// parameter has another memory than its operand, also when the fusion reads the parameter besides.
    #[test]
    fn updates_in_place_have_one_memory() {
        let instruction = |id: i64, opcode: &str, operands: &[i64]| pb::HloInstructionProto {
            id,
            name: format!("i{id}"),
            opcode: opcode.to_owned(),
            operand_ids: operands.to_vec(),
            shape: Some(pb::ShapeProto::default()),
            ..Default::default()
        };
        let computation = |id, root_id, instructions| pb::HloComputationProto {
            id,
            root_id,
            instructions,
            ..Default::default()
        };
        let told = |copies: bool, offset: i64| {
            let updated = if copies { 5 } else { 1 };
            let body = vec![
                instruction(1, "parameter", &[]),
                instruction(5, "copy", &[1]),
                instruction(2, "reverse", &[1]),
                instruction(3, "constant", &[]),
                instruction(4, "dynamic-update-slice", &[updated, 2, 3]),
            ];
            let mut fusion = instruction(4, "fusion", &[3]);
            fusion.called_computation_ids = vec![1];
            let entry = vec![
                instruction(1, "parameter", &[]),
                instruction(2, "tuple", &[1]),
                instruction(3, "get-tuple-element", &[2]),
                fusion,
            ];
            let module = pb::HloModuleProto {
                computations: vec![computation(1, 4, body), computation(2, 4, entry)],
                ..Default::default()
            };
            let hlo = pb::HloModuleProtoWithConfig {
                hlo_module: Some(module),
                ..Default::default()
            };
            let buffer = |id, instruction| pb::LogicalBufferProto {
                id,
                defined_at: Some(pb::logical_buffer_proto::Location {
                    instruction_id: id_in(2, instruction),
                    ..Default::default()
                }),
                ..Default::default()
            };
            let place = |logical_buffer_id, offset| pb::buffer_allocation_proto::Assigned {
                logical_buffer_id,
                offset,
                ..Default::default()
            };
            let assignment = pb::BufferAssignmentProto {
                logical_buffers: vec![buffer(7, 1), buffer(8, 4)],
                buffer_allocations: vec![pb::BufferAllocationProto {
                    assigned: vec![place(7, 0), place(8, offset)],
                    ..Default::default()
                }],
                ..Default::default()
            };
            let mut facts = Facts::default();
            facts.updates(&assignment, &hlo);
            facts.obstacles
        };
        assert_eq!(told(false, 0), [] as [&str; 0]);
        assert_eq!(told(true, 64), [] as [&str; 0]);
        let apart = "it ends its process: it wants `i4` to update `i1` in place, and the buffer plan \
            has them apart";
        assert_eq!(told(false, 64), [apart]);
    }
}
