//! Modules and computations.

use std::collections::BTreeMap;

use crate::base::Arena;
use crate::hlo::CompId;
use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::hlo::Sharding;
use crate::shape::ProgramShape;
use crate::shape::Shape;
use crate::shape::ShapeIndex;

/// The promise a module keeps; the verifier checks it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// As it was read.
    #[default]
    Imported,
    /// No op that `emit` lacks.
    Legal,
    /// Every array has a layout, and it is row-major.
    LaidOut,
    /// Fusions are formed and closed.
    Fused,
    /// Copies are inserted, names are unique and canonical.
    Final,
}

/// A named list of instructions with parameters and a root.
#[derive(Clone, Debug, PartialEq)]
pub struct Computation {
    /// Name, unique in the module. For people; never a key.
    pub name: String,
    /// Instructions, operands before users.
    pub instrs: Vec<InstrId>,
    /// The `parameter` instructions, by number.
    pub params: Vec<InstrId>,
    /// The instruction whose value is the result.
    pub root: InstrId,
    /// `execution_thread` of the computation; empty is the main thread.
    pub execution_thread: String,
}

/// How a result may share the memory of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AliasKind {
    /// The caller decides by donating.
    May,
    /// The caller must donate.
    Must,
}

/// Which part of which parameter a result leaf shares memory with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AliasTarget {
    /// Parameter number.
    pub parameter: usize,
    /// Index within the parameter.
    pub index: ShapeIndex,
    /// May or must.
    pub kind: AliasKind,
}

/// Configuration that rides with a module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModuleConfig {
    /// Parameter and result shapes with layouts as the caller sees them; absent means defaults.
    pub entry_layout: Option<ProgramShape>,
    /// Replicas the module was written for; 0 and 1 mean one.
    pub replica_count: i64,
    /// Partitions the module was written for; 0 and 1 mean one.
    pub num_partitions: i64,
    /// `allow_spmd_sharding_propagation_to_parameters`.
    pub propagate_sharding_to_parameters: Vec<bool>,
    /// `allow_spmd_sharding_propagation_to_output`.
    pub propagate_sharding_to_output: Vec<bool>,
    /// Sharding of the SPMD output, of each SPMD parameter.
    pub spmd_output_sharding: Option<Sharding>,
    /// Shardings of the SPMD parameters.
    pub spmd_parameters_shardings: Vec<Sharding>,
}

/// Source places of instructions; the fields mirror `xla.StackFrameIndexProto`. Ids count from one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[allow(
    missing_docs,
    reason = "the fields are named as in StackFrameIndexProto"
)]
pub struct StackFrameIndex {
    pub file_names: Vec<String>,
    pub function_names: Vec<String>,
    pub file_locations: Vec<FileLocation>,
    pub stack_frames: Vec<StackFrame>,
}

/// A place in a source file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(
    missing_docs,
    reason = "the fields are named as in StackFrameIndexProto"
)]
pub struct FileLocation {
    pub file_name_id: i32,
    pub function_name_id: i32,
    pub line: i32,
    pub end_line: i32,
    pub column: i32,
    pub end_column: i32,
}

/// A place and the frame that called it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(
    missing_docs,
    reason = "the fields are named as in StackFrameIndexProto"
)]
pub struct StackFrame {
    pub file_location_id: i32,
    /// 0 when nothing called it.
    pub parent_frame_id: i32,
}

/// A whole program.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// Name.
    pub name: String,
    /// The promise it keeps.
    pub stage: Stage,
    /// Computations. Readers and `rewrite::compact` put callees before callers; passes append.
    pub comps: Arena<CompId, Computation>,
    /// All instructions of all computations; dead ones may linger in the arena.
    pub instrs: Arena<InstrId, Instr>,
    /// The entry computation.
    pub entry: CompId,
    /// Result leaf to parameter leaf.
    pub input_output_alias: BTreeMap<ShapeIndex, AliasTarget>,
    /// Parameter leaves the caller gives away without a fixed result.
    pub buffer_donors: Vec<(usize, ShapeIndex)>,
    /// Key-value pairs the front end attached to the module.
    pub frontend_attributes: BTreeMap<String, String>,
    /// Whether the order of instructions in each computation is its schedule.
    pub is_scheduled: bool,
    /// Configuration.
    pub config: ModuleConfig,
    /// The tables that `stack_frame_id` of the instructions' metadata points into.
    pub stack_frames: StackFrameIndex,
    /// Header attributes this program gives no meaning to, name and printed value, in order.
    pub other_attributes: Vec<(String, String)>,
}

impl Module {
    /// The instruction of `id`.
    pub fn instr(&self, id: InstrId) -> &Instr {
        &self.instrs[id]
    }
    /// The shape of the value of `id`.
    pub fn shape(&self, id: InstrId) -> &Shape {
        &self.instrs[id].shape
    }
    /// The computation of `id`.
    pub fn comp(&self, id: CompId) -> &Computation {
        &self.comps[id]
    }
    /// The entry computation.
    pub fn entry_comp(&self) -> &Computation {
        &self.comps[self.entry]
    }
    /// The instruction that gives a computation's result.
    pub fn root(&self, comp: CompId) -> &Instr {
        &self.instrs[self.comps[comp].root]
    }
    /// Operand `i` of `id`.
    pub fn operand(&self, id: InstrId, i: usize) -> &Instr {
        &self.instrs[self.instrs[id].operands[i]]
    }
    /// Parameters and result of a computation, without layouts beyond those its instructions have.
    pub fn program_shape(&self, comp: CompId) -> ProgramShape {
        let computation = &self.comps[comp];
        let params = computation.params.iter().map(|&p| &self.instrs[p]);
        ProgramShape {
            parameters: params.clone().map(|p| p.shape.clone()).collect(),
            parameter_names: params.map(|p| p.name.clone()).collect(),
            result: self.root(comp).shape.clone(),
        }
    }
    /// Parameters and result as the caller sees them, each array with a layout.
    pub fn entry_layout(&self) -> ProgramShape {
        let mut program = match &self.config.entry_layout {
            Some(layout) => layout.clone(),
            None => self.program_shape(self.entry),
        };
        for shape in program.parameters.iter_mut().chain([&mut program.result]) {
            *shape = shape.with_default_layout();
        }
        program
    }
}
