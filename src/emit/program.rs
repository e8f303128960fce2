//! A scheduled module with buffers to a program: thunks, kernels, constants and signature.
//!
//! Kernels are emitted first, each instruction by itself and several at a time; then the schedule is
//! walked once and thunks are gathered. Kernels that are alike but for their names are emitted once.

use std::collections::BTreeMap;
use std::hash::DefaultHasher;
use std::hash::Hasher;
use std::sync::Arc;

use rayon::prelude::*;

use crate::analysis::dataflow::is_structural;
use crate::base::Arena;
use crate::base::Diagnostic;
use crate::base::Id;
use crate::base::Result;
use crate::base::codes;
use crate::buffer::BufferAssignment;
use crate::emit::Emitted;
use crate::emit::KernelRequest;
use crate::emit::select;
use crate::emit::thunks::ThunkBuilder;
use crate::executable::AllocId;
use crate::executable::Allocation;
use crate::executable::Constant;
use crate::executable::ConstantId;
use crate::executable::IoAlias;
use crate::executable::KernelId;
use crate::executable::LogicalBuffer;
use crate::executable::OutputSlice;
use crate::executable::ShapedSlice;
use crate::executable::Signature;
use crate::executable::Slice;
use crate::executable::ThunkSequence;
use crate::hlo;
use crate::hlo::AliasKind;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::kernel::Kernel;
use crate::kernel::Space;
use crate::literal::device_form;
use crate::schedule::Scheduled;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;
use crate::shape::ShapeIndex;
use crate::target::Platform;
use crate::target::Target;

/// Everything of an executable but machine code.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// What runs.
    pub thunks: ThunkSequence,
    /// Kernels by id, each with its own.
    pub kernels: Vec<Kernel>,
    /// Memory plan.
    pub allocs: Arena<AllocId, Allocation>,
    /// Shipped data.
    pub constants: Arena<ConstantId, Constant>,
    /// How it is called.
    pub signature: Signature,
    /// Parameters, constants, tables and result leaves, with where they live.
    pub logical: Vec<LogicalBuffer>,
}

/// Turns an instruction with its memory into kernels.
pub type Emitter<'a> = &'a (dyn Fn(&KernelRequest<'_>) -> Result<Emitted> + Sync);

/// Emits a whole program.
///
/// # Errors
/// `XA5001` for an instruction that the target has no code for.
pub fn program(
    scheduled: &Scheduled,
    assignment: &BufferAssignment,
    target: &Target,
) -> Result<Program> {
    program_with(scheduled, assignment, target, &select::emit_kernel)
}

/// Emits a whole program with an emitter of the caller's.
///
/// # Errors
/// `XA5001` for an instruction that the target has no code for.
pub fn program_with(
    scheduled: &Scheduled,
    assignment: &BufferAssignment,
    target: &Target,
    emitter: Emitter<'_>,
) -> Result<Program> {
    let module = &scheduled.module;
    let emitted = emit_all(scheduled, assignment, target, emitter)?;
    let mut kernels = KernelTable::default();
    let mut builder = ThunkBuilder::new(scheduled, assignment, target, emitted, &mut kernels);
    let thunks = builder.entry()?;
    Ok(Program {
        thunks,
        kernels: kernels.kernels,
        allocs: assignment.allocs.clone(),
        constants: constants(module, assignment),
        signature: signature(module, assignment),
        logical: logical(module, assignment),
    })
}

/// Whether an instruction becomes kernels, rather than another thunk or nothing.
fn needs_kernel(module: &Module, id: InstrId, target: &Target) -> bool {
    let instr = &module.instrs[id];
    match &instr.op {
        op if is_structural(op) => false,
        Op::While { .. }
        | Op::Conditional { .. }
        | Op::Call { .. }
        | Op::CustomCall(_)
        | Op::Fft { .. }
        | Op::PartitionId
        | Op::ReplicaId
        | Op::Collective { .. }
        | Op::Infeed { .. }
        | Op::Outfeed { .. }
        | Op::Send { .. }
        | Op::SendDone { .. }
        | Op::Recv { .. }
        | Op::RecvDone { .. } => false,
        Op::RngGetAndUpdateState { .. } => target.platform() == Platform::Cuda,
        Op::Copy => !is_plain_copy(module, id),
        _ => true,
    }
}

/// Whether a copy keeps the order of the bytes.
pub fn is_plain_copy(module: &Module, id: InstrId) -> bool {
    let from = module.operand(id, 0).shape.as_array();
    let to = module.instrs[id].shape.as_array();
    match (from, to) {
        (Some(from), Some(to)) => from.layout_or_default() == to.layout_or_default(),
        _ => false,
    }
}

/// The array leaves of an instruction with their slices.
pub fn leaf_slices(
    module: &Module,
    assignment: &BufferAssignment,
    id: InstrId,
) -> Result<Vec<ShapedSlice>> {
    let mut out = Vec::new();
    for (leaf, (_, part)) in module.instrs[id].shape.leaves().into_iter().enumerate() {
        let Some(array) = part.as_array() else {
            continue;
        };
        let Some(slice) = assignment.slice(id, leaf) else {
            let message = format!("`{}` has no slice for leaf {leaf}", module.instrs[id].name);
            return Err(Diagnostic::internal(codes::INTERNAL, message));
        };
        out.push(shaped(slice, array));
    }
    Ok(out)
}

/// A slice with its shape, which gets a layout when it has none.
pub fn shaped(slice: Slice, array: &ArrayShape) -> ShapedSlice {
    let mut shape = array.clone();
    shape.layout = Some(array.layout_or_default());
    ShapedSlice { slice, shape }
}

/// Emits the kernels of every instruction that needs some.
fn emit_all(
    scheduled: &Scheduled,
    assignment: &BufferAssignment,
    target: &Target,
    emitter: Emitter<'_>,
) -> Result<BTreeMap<InstrId, Emitted>> {
    let module = &scheduled.module;
    let mut requests = Vec::new();
    for &comp in assignment.flow.comps() {
        for &id in &scheduled.order[comp] {
            if needs_kernel(module, id, target) {
                requests.push(request(module, assignment, target, id)?);
            }
        }
    }
    let answers: Vec<Result<Emitted>> = requests.par_iter().map(emitter).collect();
    let mut out = BTreeMap::new();
    for (request, answer) in requests.iter().zip(answers) {
        out.insert(request.instr, answer?);
    }
    Ok(out)
}

fn request<'a>(
    module: &'a Module,
    assignment: &BufferAssignment,
    target: &'a Target,
    id: InstrId,
) -> Result<KernelRequest<'a>> {
    let mut args = Vec::new();
    for &operand in &module.instrs[id].operands {
        args.extend(leaf_slices(module, assignment, operand)?);
    }
    let scratch = assignment.scratch[id].map(|slice| {
        let size = usize::try_from(slice.size).unwrap_or(usize::MAX);
        shaped(slice, &ArrayShape::new(PrimitiveType::U8, [size]))
    });
    Ok(KernelRequest {
        module,
        instr: id,
        args,
        results: leaf_slices(module, assignment, id)?,
        scratch,
        target,
        name: symbol(&module.instrs[id].name),
    })
}

/// A name made of characters that every object format and PTX allow.
fn symbol(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out: String = name
        .chars()
        .map(|c| if allowed(c) { c } else { '_' })
        .collect();
    if !out.starts_with(|c: char| c.is_ascii_alphabetic()) {
        out.insert_str(0, "k_");
    }
    out
}

/// The kernels of a program, each kept once, but for those with memory that lasts.
#[derive(Default)]
pub struct KernelTable {
    kernels: Vec<Kernel>,
    by_content: BTreeMap<u64, Vec<KernelId>>,
    names: BTreeMap<String, u32>,
}

impl KernelTable {
    /// The id of a kernel that does what this one does; it is added when there is none.
    pub fn add(&mut self, mut kernel: Kernel) -> KernelId {
        let wanted = std::mem::take(&mut kernel.name);
        let names: Vec<String> = kernel
            .buffers
            .values_mut()
            .map(|b| std::mem::take(&mut b.name))
            .collect();
        kernel.id = KernelId::from_index(0);
        let key = content_hash(&kernel);
        // Memory that a kernel keeps is its own.
        let shares = kernel.buffers.values().all(|b| b.space != Space::Kept);
        let known = self.by_content.get(&key).filter(|_| shares);
        for &id in known.into_iter().flatten() {
            if self.is_alike(id, &kernel) {
                return id;
            }
        }
        for (buffer, name) in kernel.buffers.values_mut().zip(names) {
            buffer.name = name;
        }
        let id = KernelId::from_index(self.kernels.len());
        kernel.id = id;
        kernel.name = self.unique(&wanted);
        self.by_content.entry(key).or_default().push(id);
        self.kernels.push(kernel);
        id
    }

    /// Whether the kernel of `id` is this one but for id and names, which this one has none of.
    fn is_alike(&self, id: KernelId, other: &Kernel) -> bool {
        let mine = &self.kernels[id.index()];
        mine.launch == other.launch
            && mine.exprs == other.exprs
            && mine.body == other.body
            && mine.buffers.len() == other.buffers.len()
            && mine
                .buffers
                .values()
                .zip(other.buffers.values())
                .all(|(a, b)| {
                    let mut a = a.clone();
                    a.name.clear();
                    a == *b
                })
    }

    fn unique(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        while self.names.contains_key(&name) {
            let next = self.names.entry(wanted.to_owned()).or_insert(0);
            *next += 1;
            name = format!("{wanted}_{next}");
        }
        self.names.insert(name.clone(), 0);
        name
    }
}

/// Feeds text to a hasher.
struct HashText(DefaultHasher);

impl std::fmt::Write for HashText {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

fn content_hash(kernel: &Kernel) -> u64 {
    let mut hash = HashText(DefaultHasher::new());
    // Writing to a hasher cannot fail.
    let _ = std::fmt::write(&mut hash, format_args!("{kernel:?}"));
    hash.0.finish()
}

fn constants(module: &Module, assignment: &BufferAssignment) -> Arena<ConstantId, Constant> {
    let ids = hlo::unique_ids(module);
    let constant = |&id: &InstrId| {
        let instr = &module.instrs[id];
        let bytes = match (&instr.op, instr.shape.as_array()) {
            (Op::Constant(literal), Some(shape)) => literal
                .as_array()
                .map(|array| device_form::to_device(array, shape)),
            _ => None,
        };
        Constant {
            name: instr.name.clone(),
            instruction: ids[id],
            bytes: Arc::new(bytes.unwrap_or_default()),
        }
    };
    assignment.constants.values().map(constant).collect()
}

fn signature(module: &Module, assignment: &BufferAssignment) -> Signature {
    let mut program = module.entry_layout();
    if program.parameter_names.len() != program.parameters.len() {
        program.parameter_names = module.program_shape(module.entry).parameter_names;
    }
    let aliases = module.input_output_alias.iter();
    let outputs = assignment.outputs(module).into_iter();
    Signature {
        program,
        aliases: aliases
            .map(|(output, target)| IoAlias {
                output: output.clone(),
                parameter: target.parameter,
                index: target.index.clone(),
                must: target.kind == AliasKind::Must,
            })
            .collect(),
        outputs: outputs
            .map(|(index, slice)| OutputSlice { index, slice })
            .collect(),
    }
}

/// Parameters, constants, tables and result leaves, each named by the instruction behind it.
fn logical(module: &Module, assignment: &BufferAssignment) -> Vec<LogicalBuffer> {
    let ids = hlo::unique_ids(module);
    let mut out = Vec::new();
    let mut add = |id: InstrId, index: ShapeIndex, slice: Slice| {
        out.push(LogicalBuffer {
            instruction: ids[id],
            name: module.instrs[id].name.clone(),
            index,
            slice,
        });
    };
    let entry = module.entry_comp();
    for &param in &entry.params {
        for (leaf, (index, _)) in module.instrs[param].shape.leaves().into_iter().enumerate() {
            if let Some(slice) = assignment.slice(param, leaf) {
                add(param, index, slice);
            }
        }
    }
    for &constant in assignment.constants.values() {
        if let Some(slice) = assignment.slice(constant, 0) {
            add(constant, ShapeIndex::new(), slice);
        }
    }
    for (index, &slice) in &assignment.tables {
        let (id, index) = behind(module, entry.root, index.clone());
        add(id, index, slice);
    }
    for (index, slice) in assignment.outputs(module) {
        let (id, index) = behind(module, entry.root, index);
        add(id, index, slice);
    }
    out
}

/// The instruction that makes a part of a value, past tuples, their elements and bitcasts.
fn behind(module: &Module, id: InstrId, index: ShapeIndex) -> (InstrId, ShapeIndex) {
    let (mut id, mut index) = (id, index);
    loop {
        let instr = &module.instrs[id];
        match &instr.op {
            Op::Tuple if !index.is_empty() => {
                id = instr.operands[index.remove(0)];
            }
            Op::GetTupleElement { index: element } => {
                index.insert(0, *element);
                id = instr.operands[0];
            }
            Op::Bitcast => id = instr.operands[0],
            _ => return (id, index),
        }
    }
}
