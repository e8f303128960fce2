//! Wire modules to [`Module`]: computations, instructions and their order.
//!
//! As upstream does, computations must stand before their callers and instructions after their
//! operands, so neither can form a cycle. Ids may be complete (computation id in the upper half) or
//! local; the lower 32 bits tell instructions of a computation apart.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::base::Arena;
use crate::base::Id;
use crate::base::Result;
use crate::hlo::AliasKind;
use crate::hlo::AliasTarget;
use crate::hlo::CompId;
use crate::hlo::Computation;
use crate::hlo::Extra;
use crate::hlo::FileLocation;
use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::ModuleConfig;
use crate::hlo::Op;
use crate::hlo::StackFrame;
use crate::hlo::StackFrameIndex;
use crate::hlo::Stage;
use crate::proto::xla as pb;
use crate::shape::ShapeIndex;
use crate::wire::hlo::attributes::decode_metadata;
use crate::wire::hlo::attributes::decode_sharding;
use crate::wire::hlo::decode_op::Source;
use crate::wire::hlo::decode_op::decode_op;
use crate::wire::hlo::printed::accuracy_text;
use crate::wire::hlo::printed::origin_text;
use crate::wire::hlo::printed::statistics_text;
use crate::wire::number::bad;
use crate::wire::number::index;
use crate::wire::number::indices;
use crate::wire::shape::decode_program_shape;
use crate::wire::shape::decode_shape;

/// The module a proto describes, with its configuration when there is one.
pub(super) fn decode(
    proto: &pb::HloModuleProto,
    config: Option<&pb::HloModuleConfigProto>,
) -> Result<Module> {
    let mut reader = Reader {
        proto,
        comps: Arena::new(),
        instrs: Arena::new(),
        comp_ids: BTreeMap::new(),
    };
    for computation in &proto.computations {
        reader.computation(computation)?;
    }
    let entry = *reader
        .comp_ids
        .get(&proto.entry_computation_id)
        .ok_or_else(|| {
            bad(format!(
                "the entry computation has id {}, which no computation has",
                proto.entry_computation_id
            ))
        })?;
    let attributes = proto.frontend_attributes.as_ref();
    let mut module = Module {
        name: proto.name.clone(),
        stage: Stage::Imported,
        comps: reader.comps,
        instrs: reader.instrs,
        entry,
        input_output_alias: BTreeMap::new(),
        buffer_donors: Vec::new(),
        frontend_attributes: attributes.map(|a| a.map.clone()).unwrap_or_default(),
        is_scheduled: proto.schedule.is_some(),
        config: decode_config(proto, config)?,
        stack_frames: decode_frames(proto.stack_frame_index.as_ref()),
        other_attributes: Vec::new(),
    };
    decode_aliases(proto, &mut module)?;
    Ok(module)
}

fn decode_config(
    proto: &pb::HloModuleProto,
    config: Option<&pb::HloModuleConfigProto>,
) -> Result<ModuleConfig> {
    let layout = config.and_then(|c| c.entry_computation_layout.as_ref());
    let layout = layout.or(proto.host_program_shape.as_ref());
    let none = pb::HloModuleConfigProto::default();
    let config = config.unwrap_or(&none);
    let shardings = proto.spmd_parameters_shardings.iter();
    Ok(ModuleConfig {
        entry_layout: layout.map(decode_program_shape).transpose()?,
        replica_count: config.replica_count,
        num_partitions: config.num_partitions,
        propagate_sharding_to_parameters: config
            .allow_spmd_sharding_propagation_to_parameters
            .clone(),
        propagate_sharding_to_output: config.allow_spmd_sharding_propagation_to_output.clone(),
        spmd_output_sharding: proto
            .spmd_output_sharding
            .as_ref()
            .map(decode_sharding)
            .transpose()?,
        spmd_parameters_shardings: shardings.map(decode_sharding).collect::<Result<_>>()?,
    })
}

fn decode_frames(proto: Option<&pb::StackFrameIndexProto>) -> StackFrameIndex {
    let Some(proto) = proto else {
        return StackFrameIndex::default();
    };
    let location = |l: &pb::stack_frame_index_proto::FileLocation| FileLocation {
        file_name_id: l.file_name_id,
        function_name_id: l.function_name_id,
        line: l.line,
        end_line: l.end_line,
        column: l.column,
        end_column: l.end_column,
    };
    let frame = |f: &pb::stack_frame_index_proto::StackFrame| StackFrame {
        file_location_id: f.file_location_id,
        parent_frame_id: f.parent_frame_id,
    };
    StackFrameIndex {
        file_names: proto.file_names.clone(),
        function_names: proto.function_names.clone(),
        file_locations: proto.file_locations.iter().map(location).collect(),
        stack_frames: proto.stack_frames.iter().map(frame).collect(),
    }
}

fn decode_aliases(proto: &pb::HloModuleProto, module: &mut Module) -> Result<()> {
    let entries = proto.input_output_alias.iter().flat_map(|a| &a.entries);
    for entry in entries {
        let output: ShapeIndex = indices(&entry.output_shape_index, "an output index")?;
        let target = AliasTarget {
            parameter: index(entry.parameter_number, "an aliased parameter's number")?,
            index: indices(&entry.parameter_shape_index, "a parameter index")?,
            kind: match entry.kind {
                1 => AliasKind::May,
                2 => AliasKind::Must,
                other => return Err(bad(format!("{other} is not the number of an alias kind"))),
            },
        };
        let root = &module.root(module.entry).shape;
        let params = &module.entry_comp().params;
        let parameter = params.get(target.parameter);
        let parameter = parameter.and_then(|&p| module.shape(p).at(&target.index));
        if root.at(&output).is_none() || parameter.is_none() {
            return Err(bad(format!(
                "result part {:?} is aliased with part {:?} of parameter {}, one of which does \
                 not exist",
                output.as_slice(),
                target.index.as_slice(),
                target.parameter
            )));
        }
        if module.input_output_alias.insert(output, target).is_some() {
            return Err(bad(format!(
                "result part {:?} is aliased twice",
                entry.output_shape_index
            )));
        }
    }
    for donor in proto.buffer_donor.iter().flat_map(|d| &d.entries) {
        module.buffer_donors.push((
            index(donor.parameter_number, "a donated parameter's number")?,
            indices(&donor.parameter_shape_index, "a parameter index")?,
        ));
    }
    Ok(())
}

struct Reader<'a> {
    proto: &'a pb::HloModuleProto,
    comps: Arena<CompId, Computation>,
    instrs: Arena<InstrId, Instr>,
    comp_ids: BTreeMap<i64, CompId>,
}

/// The part of an instruction's id that tells it apart within its computation.
fn local(id: i64) -> u32 {
    (id & 0xffff_ffff) as u32
}

impl Reader<'_> {
    fn computation(&mut self, proto: &pb::HloComputationProto) -> Result<()> {
        let parent = CompId::from_index(self.comps.len());
        let at = |what: String| bad(format!("computation `{}`: {what}", proto.name));
        let mut ids: BTreeMap<u32, InstrId> = BTreeMap::new();
        let mut instrs = Vec::with_capacity(proto.instructions.len());
        for instruction in self.ordered(proto).map_err(at)? {
            let instr = self.instruction(instruction, parent, &ids).map_err(|e| {
                let text = format!("{} = {}(...)", instruction.name, instruction.opcode);
                e.or_at(|| crate::base::Location::Instruction {
                    computation: proto.name.clone(),
                    text,
                })
            })?;
            let id = self.instrs.push(instr);
            instrs.push(id);
            if ids.insert(local(instruction.id), id).is_some() {
                return Err(at(format!(
                    "two instructions have the id {}",
                    instruction.id
                )));
            }
        }
        let params = self.parameters(&instrs).map_err(at)?;
        let root = *ids.get(&local(proto.root_id)).ok_or_else(|| {
            at(format!(
                "the root has id {}, which no instruction has",
                proto.root_id
            ))
        })?;
        self.comps.push(Computation {
            name: proto.name.clone(),
            instrs,
            params,
            root,
            execution_thread: match proto.execution_thread.as_str() {
                "main" => String::new(),
                thread => thread.to_owned(),
            },
        });
        if self.comp_ids.insert(proto.id, parent).is_some() {
            return Err(at(format!("another computation has the id {}", proto.id)));
        }
        Ok(())
    }

    /// The parameters in the order of their numbers.
    fn parameters(&self, instrs: &[InstrId]) -> Result<Vec<InstrId>, String> {
        let mut numbered = Vec::new();
        for &id in instrs {
            if let Op::Parameter { number, .. } = self.instrs[id].op {
                numbered.push((number, id));
            }
        }
        numbered.sort_unstable();
        if let Some(gap) = (0..numbered.len()).find(|&i| numbered[i].0 != i) {
            return Err(format!(
                "parameters are numbered {:?}, wanted each of 0 to {} once (number {gap} is wrong)",
                numbered.iter().map(|(n, _)| n).collect::<Vec<_>>(),
                numbered.len() - 1
            ));
        }
        Ok(numbered.into_iter().map(|(_, id)| id).collect())
    }

    /// The instructions in the order of the schedule, which lists each once, or as they stand.
    fn ordered<'p>(
        &self,
        proto: &'p pb::HloComputationProto,
    ) -> Result<Vec<&'p pb::HloInstructionProto>, String> {
        let sequences = self.proto.schedule.as_ref().map(|s| &s.sequences);
        let Some(sequence) = sequences.and_then(|s| s.get(&proto.id)) else {
            return Ok(proto.instructions.iter().collect());
        };
        let by_id = proto.instructions.iter().map(|i| (local(i.id), i));
        let by_id: BTreeMap<u32, _> = by_id.collect();
        let listed: std::collections::BTreeSet<u32> = sequence
            .instruction_ids
            .iter()
            .map(|&id| local(id))
            .collect();
        let whole = listed.len() == sequence.instruction_ids.len()
            && listed.iter().eq(by_id.keys())
            && by_id.len() == proto.instructions.len();
        if !whole {
            return Err("the schedule does not list each instruction once".to_owned());
        }
        let order = sequence.instruction_ids.iter();
        Ok(order.map(|&id| by_id[&local(id)]).collect())
    }

    fn instruction(
        &self,
        proto: &pb::HloInstructionProto,
        parent: CompId,
        ids: &BTreeMap<u32, InstrId>,
    ) -> Result<Instr> {
        let shape = proto.shape.as_ref().ok_or_else(|| bad("no shape"))?;
        let shape = decode_shape(shape)?;
        let find = |list: &[i64], what: &str| -> Result<Vec<InstrId>> {
            let find = |&id: &i64| {
                ids.get(&local(id)).copied().ok_or_else(|| {
                    bad(format!(
                        "{what} {id} is not an earlier instruction of the computation"
                    ))
                })
            };
            list.iter().map(find).collect()
        };
        let operands = find(&proto.operand_ids, "operand")?;
        let called = proto.called_computation_ids.iter().map(|id| {
            self.comp_ids.get(id).copied().ok_or_else(|| {
                bad(format!(
                    "called computation {id} does not stand before its caller"
                ))
            })
        });
        let source = Source {
            proto,
            shape: &shape,
            called: called.collect::<Result<_>>()?,
            first_operand: operands.first().map(|&o| &self.instrs[o].shape),
        };
        let op = decode_op(&source)?;
        let extra = self.extra(proto)?;
        Ok(Instr {
            name: proto.name.clone(),
            op,
            operands: SmallVec::from_vec(operands),
            shape,
            control_predecessors: SmallVec::from_vec(find(
                &proto.control_predecessor_ids,
                "control predecessor",
            )?),
            parent,
            extra: extra.map(Box::new),
        })
    }

    fn extra(&self, proto: &pb::HloInstructionProto) -> Result<Option<Extra>> {
        let attributes = proto.frontend_attributes.as_ref();
        let metadata = proto.metadata.as_ref().map(decode_metadata);
        let extra = Extra {
            metadata: metadata.filter(|m| *m != crate::hlo::OpMetadata::default()),
            sharding: proto.sharding.as_ref().map(decode_sharding).transpose()?,
            frontend_attributes: attributes.map(|a| a.map.clone()).unwrap_or_default(),
            backend_config: self.backend_config(proto)?,
            result_accuracy: proto.result_accuracy.as_ref().and_then(accuracy_text),
            statistics: proto
                .statistics_viz
                .as_ref()
                .filter(|statistics| !statistics.statistics.is_empty())
                .map(statistics_text),
            origin: proto.original_value.as_ref().map(origin_text),
        };
        Ok((extra != Extra::default()).then_some(extra))
    }

    /// The backend configuration, given with the instruction or in the module's table.
    fn backend_config(&self, proto: &pb::HloInstructionProto) -> Result<Vec<u8>> {
        use pb::payload::PayloadSource;
        let payload = proto.backend_config_payload.as_ref();
        match payload.and_then(|p| p.payload_source.as_ref()) {
            None => Ok(proto.backend_config.clone()),
            Some(PayloadSource::Value(bytes)) => Ok(bytes.clone()),
            Some(PayloadSource::Id(id)) => {
                let entry = usize::try_from(*id).ok();
                let entry = entry.and_then(|i| self.proto.payloads.get(i));
                entry.cloned().ok_or_else(|| {
                    bad(format!(
                        "payload {id} is not in the module's table of {}",
                        self.proto.payloads.len()
                    ))
                })
            }
        }
    }
}
