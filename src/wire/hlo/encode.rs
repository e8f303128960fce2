//! [`Module`] to wire modules.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::base::IdMap;
use crate::base::IdSet;
use crate::hlo::AliasKind;
use crate::hlo::CompId;
use crate::hlo::FileLocation;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::StackFrame;
use crate::hlo::StackFrameIndex;
use crate::hlo::visit;
use crate::proto::xla as pb;
use crate::wire::hlo::attributes::encode_metadata;
use crate::wire::hlo::attributes::encode_sharding;
use crate::wire::hlo::encode_op::encode_op;
use crate::wire::hlo::printed::parse_accuracy;
use crate::wire::hlo::printed::parse_statistics;
use crate::wire::number::number;
use crate::wire::number::numbers;
use crate::wire::shape::encode_program_shape;
use crate::wire::shape::encode_shape;
use crate::wire::shape::mark_packed;
use crate::wire::shape::mark_program;

/// The proto of a module.
pub(super) fn encode(module: &Module) -> pb::HloModuleProto {
    let writer = Writer::new(module);
    // Readers want callees before their callers.
    let order = visit::comps_from(module, module.comps.ids()).into_iter();
    let computations = order.map(|id| writer.computation(id));
    let attributes = &module.frontend_attributes;
    let shardings = module.config.spmd_parameters_shardings.iter();
    pb::HloModuleProto {
        name: module.name.clone(),
        entry_computation_name: writer.comp_names[module.entry].clone(),
        entry_computation_id: comp_id(module.entry),
        computations: computations.collect(),
        host_program_shape: Some(encode_program_shape(&module.entry_layout())),
        schedule: module.is_scheduled.then(|| writer.schedule()),
        input_output_alias: encode_aliases(module),
        buffer_donor: encode_donors(module),
        spmd_output_sharding: module
            .config
            .spmd_output_sharding
            .as_ref()
            .map(encode_sharding),
        spmd_parameters_shardings: shardings.map(encode_sharding).collect(),
        stack_frame_index: encode_frames(&module.stack_frames),
        frontend_attributes: (!attributes.is_empty()).then(|| pb::FrontendAttributes {
            map: attributes.clone(),
        }),
        ..Default::default()
    }
}

/// The proto of a module's configuration.
pub(super) fn encode_config(module: &Module) -> pb::HloModuleConfigProto {
    let config = &module.config;
    let mut entry_computation_layout = encode_program_shape(&module.entry_layout());
    mark_program(&mut entry_computation_layout);
    pb::HloModuleConfigProto {
        entry_computation_layout: Some(entry_computation_layout),
        replica_count: config.replica_count.max(1),
        num_partitions: config.num_partitions.max(1),
        allow_spmd_sharding_propagation_to_parameters: config
            .propagate_sharding_to_parameters
            .clone(),
        allow_spmd_sharding_propagation_to_output: config.propagate_sharding_to_output.clone(),
        sharding_config: Some(Vec::new()),
        schedule_config: Some(Vec::new()),
        ..Default::default()
    }
}

/// Says of every packed array in a module how many bits its elements take, as loaders want.
pub(super) fn mark_module(proto: &mut pb::HloModuleProto) {
    proto.host_program_shape.iter_mut().for_each(mark_program);
    for computation in &mut proto.computations {
        computation.program_shape.iter_mut().for_each(mark_program);
        for instruction in &mut computation.instructions {
            instruction.shape.iter_mut().for_each(mark_packed);
            instruction.outfeed_shape.iter_mut().for_each(mark_packed);
            let constraints = &mut instruction.operand_shapes_with_layout;
            constraints.iter_mut().for_each(mark_packed);
        }
    }
}

fn encode_frames(frames: &StackFrameIndex) -> Option<pb::StackFrameIndexProto> {
    let location = |l: &FileLocation| pb::stack_frame_index_proto::FileLocation {
        file_name_id: l.file_name_id,
        function_name_id: l.function_name_id,
        line: l.line,
        end_line: l.end_line,
        column: l.column,
        end_column: l.end_column,
    };
    let frame = |f: &StackFrame| pb::stack_frame_index_proto::StackFrame {
        file_location_id: f.file_location_id,
        parent_frame_id: f.parent_frame_id,
    };
    (*frames != StackFrameIndex::default()).then(|| pb::StackFrameIndexProto {
        file_names: frames.file_names.clone(),
        function_names: frames.function_names.clone(),
        file_locations: frames.file_locations.iter().map(location).collect(),
        stack_frames: frames.stack_frames.iter().map(frame).collect(),
    })
}

fn encode_aliases(module: &Module) -> Option<pb::HloInputOutputAliasProto> {
    use pb::hlo_input_output_alias_proto::AliasEntryProto;
    let entries = module.input_output_alias.iter();
    let entries: Vec<_> = entries
        .map(|(output, target)| AliasEntryProto {
            output_shape_index: numbers(output),
            parameter_number: number(target.parameter),
            parameter_shape_index: numbers(&target.index),
            kind: match target.kind {
                AliasKind::May => 1,
                AliasKind::Must => 2,
            },
        })
        .collect();
    (!entries.is_empty()).then_some(pb::HloInputOutputAliasProto { entries })
}

fn encode_donors(module: &Module) -> Option<pb::HloBufferDonorProto> {
    use pb::hlo_buffer_donor_proto::BufferDonorEntryProto;
    let entries = module.buffer_donors.iter();
    let entries: Vec<_> = entries
        .map(|(parameter, index)| BufferDonorEntryProto {
            parameter_number: number(*parameter),
            parameter_shape_index: numbers(index),
        })
        .collect();
    (!entries.is_empty()).then_some(pb::HloBufferDonorProto { entries })
}

fn comp_id(id: CompId) -> i64 {
    number(crate::base::Id::index(id))
}

/// Gives out each name once: a second owner gets a number behind a dot.
#[derive(Default)]
struct Names(BTreeSet<String>);

impl Names {
    fn give(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        let mut suffix = 0;
        while name.is_empty() || !self.0.insert(name.clone()) {
            suffix += 1;
            name = format!("{wanted}.{suffix}");
        }
        name
    }
}

struct Writer<'a> {
    module: &'a Module,
    ids: IdMap<InstrId, i64>,
    names: IdMap<InstrId, String>,
    comp_names: IdMap<CompId, String>,
    fusion_bodies: IdSet<CompId>,
}

impl<'a> Writer<'a> {
    fn new(module: &'a Module) -> Self {
        let mut writer = Self {
            module,
            ids: IdMap::new(),
            names: IdMap::new(),
            comp_names: IdMap::new(),
            fusion_bodies: IdSet::new(),
        };
        let mut names = Names::default();
        let mut comp_names = Names::default();
        for (comp, computation) in module.comps.iter() {
            let name = comp_names.give(&computation.name);
            writer.comp_names.set(comp, name);
            for (position, &id) in computation.instrs.iter().enumerate() {
                let instr = module.instr(id);
                writer.ids.set(id, comp_id(comp) << 32 | number(position));
                writer.names.set(id, names.give(&instr.name));
                if let Op::Fusion { body, .. } = instr.op {
                    writer.fusion_bodies.insert(body);
                }
            }
        }
        writer
    }

    fn computation(&self, id: CompId) -> pb::HloComputationProto {
        let computation = self.module.comp(id);
        let instructions = computation.instrs.iter();
        pb::HloComputationProto {
            name: self.comp_names[id].clone(),
            instructions: instructions.map(|&i| self.instruction(i)).collect(),
            program_shape: Some(encode_program_shape(&self.module.program_shape(id))),
            id: comp_id(id),
            root_id: self.ids[computation.root],
            is_fusion_computation: self.fusion_bodies.contains(id),
            execution_thread: match computation.execution_thread.as_str() {
                "" => "main".to_owned(),
                thread => thread.to_owned(),
            },
        }
    }

    /// One sequence for each computation that is no fusion's body.
    fn schedule(&self) -> pb::HloScheduleProto {
        use pb::hlo_schedule_proto::InstructionSequence;
        let mut sequences = BTreeMap::new();
        for (id, computation) in self.module.comps.iter() {
            if !self.fusion_bodies.contains(id) {
                let ids = computation.instrs.iter().map(|&i| self.ids[i]);
                sequences.insert(
                    comp_id(id),
                    InstructionSequence {
                        instruction_ids: ids.collect(),
                    },
                );
            }
        }
        pb::HloScheduleProto { sequences }
    }

    fn instruction(&self, id: InstrId) -> pb::HloInstructionProto {
        let instr = self.module.instr(id);
        let mut proto = pb::HloInstructionProto {
            name: self.names[id].clone(),
            opcode: instr.op.opcode().to_owned(),
            shape: Some(encode_shape(&instr.shape)),
            id: self.ids[id],
            operand_ids: instr.operands.iter().map(|&o| self.ids[o]).collect(),
            control_predecessor_ids: instr
                .control_predecessors
                .iter()
                .map(|&p| self.ids[p])
                .collect(),
            ..Default::default()
        };
        encode_op(instr, &mut proto);
        if let Some(extra) = &instr.extra {
            let attributes = &extra.frontend_attributes;
            proto.metadata = extra.metadata.as_ref().map(encode_metadata);
            proto.sharding = extra.sharding.as_ref().map(encode_sharding);
            proto.frontend_attributes = (!attributes.is_empty()).then(|| pb::FrontendAttributes {
                map: attributes.clone(),
            });
            proto.backend_config = extra.backend_config.clone();
            proto.result_accuracy = extra.result_accuracy.as_deref().and_then(parse_accuracy);
            proto.statistics_viz = extra.statistics.as_deref().and_then(parse_statistics);
        }
        proto
    }
}
