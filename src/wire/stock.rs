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
                let id = (computation.id << 32) | (instruction.id & 0xffff_ffff);
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
}
