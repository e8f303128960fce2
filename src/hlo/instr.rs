//! Instructions and what rides along with them.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::define_id;
use crate::hlo::Op;
use crate::shape::Shape;

define_id! {
    /// An instruction, unique in its module.
    pub struct InstrId, "%";
}

define_id! {
    /// A computation of a module.
    pub struct CompId, "comp";
}

/// One instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Instr {
    /// Name, unique in its module once the module is canonical. For people; never a key.
    pub name: String,
    /// What it does.
    pub op: Op,
    /// Operands, in order.
    pub operands: SmallVec<[InstrId; 2]>,
    /// Shape of the result.
    pub shape: Shape,
    /// Instructions of the same computation that must run before this one.
    pub control_predecessors: SmallVec<[InstrId; 0]>,
    /// The computation that holds it.
    pub parent: CompId,
    /// Metadata, sharding and other attributes without meaning for the result.
    pub extra: Option<Box<Extra>>,
}

/// Attributes that do not change what an instruction computes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extra {
    /// Where it came from.
    pub metadata: Option<OpMetadata>,
    /// How its result is spread over devices.
    pub sharding: Option<Sharding>,
    /// Key-value pairs the front end attached, sorted by key.
    pub frontend_attributes: BTreeMap<String, String>,
    /// Free-form configuration (JSON, or an MLIR attribute for typed FFI calls).
    pub backend_config: Vec<u8>,
    /// Requested accuracy of a transcendental function, as printed between the braces.
    pub result_accuracy: Option<String>,
    /// Statistics, as printed between the braces.
    pub statistics: Option<String>,
    /// Where the value came from in the original program, as printed between the braces.
    pub origin: Option<String>,
}

/// Where an instruction came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the fields are named as in OpMetadata")]
pub struct OpMetadata {
    pub op_type: String,
    pub op_name: String,
    pub source_file: String,
    pub source_line: i32,
    pub source_end_line: i32,
    pub source_column: i32,
    pub source_end_column: i32,
    pub stack_frame_id: i32,
    pub size_of_generated_code_in_bytes: i64,
    pub size_of_memory_working_set_in_bytes: i64,
    pub deduplicated_name: String,
    pub scheduling_name: String,
    pub preserve_layout: bool,
    /// Profile types, as numbers.
    pub profile_type: Vec<i32>,
    /// The payload, as printed.
    pub metadata_payload: String,
}

/// How a value is spread over devices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Sharding {
    /// A sharding of one array; the fields mirror `xla.OpSharding`.
    Array(Box<ArraySharding>),
    /// One sharding a leaf of a tuple.
    Tuple(Vec<Sharding>),
}

/// The kind of an array's sharding, numbered as `xla.OpSharding.Type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(
    missing_docs,
    reason = "each variant is the word of HLO it is named for"
)]
pub enum ShardingKind {
    #[default]
    Replicated = 0,
    Maximal = 1,
    Other = 3,
    Manual = 4,
    Unknown = 5,
    Unreduced = 6,
}

/// Fields of `xla.OpSharding` for an array.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the fields are named as in OpSharding")]
pub struct ArraySharding {
    pub kind: ShardingKind,
    pub tile_assignment_dimensions: Vec<i64>,
    pub tile_assignment_devices: Vec<i64>,
    pub iota_reshape_dims: Vec<i64>,
    pub iota_transpose_perm: Vec<i64>,
    pub replicate_on_last_tile_dim: bool,
    /// Kinds of the trailing subgroup dimensions.
    pub last_tile_dims: Vec<ShardingKind>,
    pub metadata: Vec<OpMetadata>,
    pub is_shard_group: bool,
    pub shard_group_id: i64,
    /// 0 as, 1 like.
    pub shard_group_type: i32,
    /// A form that is kept as it was printed (mesh-based shardings).
    pub text: Option<String>,
}
