//! Thunks that are not kernels: copies, control flow, custom calls, ids, library calls.
//!
//! A loop's or conditional's values are moved where the slices of what is handed on differ, in an
//! order in which nothing is overwritten before it is read.

use std::collections::BTreeMap;

use crate::analysis::dataflow::is_structural;
use crate::analysis::trip_count::trip_count;
use crate::base::Diagnostic;
use crate::base::Location;
use crate::base::Result;
use crate::base::codes;
use crate::buffer::BufferAssignment;
use crate::buffer::moves;
use crate::buffer::moves::Move;
use crate::emit::Emitted;
use crate::emit::Step;
use crate::emit::collectives;
use crate::emit::program::KernelTable;
use crate::emit::program::is_plain_copy;
use crate::emit::program::leaf_slices;
use crate::emit::program::shaped;
use crate::executable::ConditionalThunk;
use crate::executable::CopyThunk;
use crate::executable::CustomCallThunk;
use crate::executable::FftThunk;
use crate::executable::KernelThunk;
use crate::executable::Passing;
use crate::executable::ShapedSlice;
use crate::executable::Slice;
use crate::executable::Thunk;
use crate::executable::ThunkKind;
use crate::executable::ThunkSequence;
use crate::executable::WhileThunk;
use crate::hlo::CompId;
use crate::hlo::CustomCall;
use crate::hlo::CustomCallApiVersion;
use crate::hlo::FftType;
use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::schedule::Scheduled;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;
use crate::shape::Shape;
use crate::target::Target;

/// Gathers thunks along the schedule.
pub struct ThunkBuilder<'a> {
    module: &'a Module,
    scheduled: &'a Scheduled,
    assignment: &'a BufferAssignment,
    target: &'a Target,
    emitted: BTreeMap<InstrId, Emitted>,
    kernels: &'a mut KernelTable,
    /// How many there are so far.
    collectives: i64,
}

impl<'a> ThunkBuilder<'a> {
    /// Starts with the kernels of every instruction that has some; they end up in `kernels`.
    pub fn new(
        scheduled: &'a Scheduled,
        assignment: &'a BufferAssignment,
        target: &'a Target,
        emitted: BTreeMap<InstrId, Emitted>,
        kernels: &'a mut KernelTable,
    ) -> Self {
        Self {
            module: &scheduled.module,
            scheduled,
            assignment,
            target,
            emitted,
            kernels,
            collectives: 0,
        }
    }

    /// The thunks of the entry computation.
    ///
    /// # Errors
    /// `XA5001` for an instruction that the target has no thunk for.
    pub fn entry(&mut self) -> Result<ThunkSequence> {
        self.computation(self.module.entry)
    }

    fn computation(&mut self, comp: CompId) -> Result<ThunkSequence> {
        let mut out = Vec::new();
        self.append(comp, &mut out)?;
        Ok(ThunkSequence(out))
    }

    fn append(&mut self, comp: CompId, out: &mut Vec<Thunk>) -> Result<()> {
        let scheduled = self.scheduled;
        for &id in &scheduled.order[comp] {
            self.instruction(id, out)?;
        }
        Ok(())
    }

    fn instruction(&mut self, id: InstrId, out: &mut Vec<Thunk>) -> Result<()> {
        let module = self.module;
        let instr = &module.instrs[id];
        if let Some(emitted) = self.emitted.remove(&id) {
            for step in emitted.steps {
                let kind = self.step(step);
                out.push(thunk(instr, kind));
            }
            return Ok(());
        }
        match &instr.op {
            op if is_structural(op) => {}
            Op::Copy if is_plain_copy(module, id) => self.copy(id, out)?,
            Op::While { condition, body } => self.while_loop(id, *condition, *body, out)?,
            Op::Conditional { branches } => self.conditional(id, branches, out)?,
            Op::Call { body, .. } => self.append(*body, out)?,
            Op::CustomCall(call) => self.custom_call(id, call, out)?,
            Op::Fft { kind, lengths } => {
                let fft = self.fft(id, *kind, lengths)?;
                out.push(thunk(instr, ThunkKind::Fft(fft)));
            }
            Op::PartitionId => {
                let slice = self.only_slice(id)?.slice;
                out.push(thunk(instr, ThunkKind::PartitionId(slice)));
            }
            Op::ReplicaId => {
                let slice = self.only_slice(id)?.slice;
                out.push(thunk(instr, ThunkKind::ReplicaId(slice)));
            }
            Op::RngGetAndUpdateState { delta } => {
                let state = self.only_slice(id)?.slice;
                let delta = *delta;
                let kind = ThunkKind::RngGetAndUpdateState { state, delta };
                out.push(thunk(instr, kind));
            }
            Op::Collective { kind, collective } => {
                let mut sources = Vec::new();
                for &operand in &instr.operands {
                    sources.extend(leaf_slices(module, self.assignment, operand)?);
                }
                let destinations = leaf_slices(module, self.assignment, id)?;
                self.collectives += 1;
                let at = (self.collectives, self.target.platform());
                let kind =
                    collectives::thunk(module, kind, collective, at, (sources, destinations));
                let kind = kind.ok_or_else(|| self.unsupported(id))?;
                out.push(thunk(instr, kind));
            }
            _ => return Err(self.unsupported(id)),
        }
        Ok(())
    }

    fn unsupported(&self, id: InstrId) -> Box<Diagnostic> {
        let instr = &self.module.instrs[id];
        let leaves = instr.shape.leaves();
        let ty = leaves.iter().find_map(|(_, s)| s.as_array());
        let ty = ty.map(|a| format!(" of {}", a.ty)).unwrap_or_default();
        let message = format!(
            "`{}`{ty} has no code for `{}`",
            instr.op.opcode(),
            self.target.name()
        );
        let location = Location::Instruction {
            computation: self.module.comps[instr.parent].name.clone(),
            text: crate::hlo::print::instr(self.module, id),
        };
        Diagnostic::unsupported(codes::EMIT_UNSUPPORTED, message).at(location)
    }

    fn step(&mut self, step: Step) -> ThunkKind {
        match step {
            Step::Kernel(emitted) => {
                let launch = emitted.kernel.launch;
                let kernel = self.kernels.add(emitted.kernel);
                ThunkKind::Kernel(KernelThunk {
                    kernel,
                    launch,
                    args: emitted.args,
                    results: emitted.results,
                    passing: Passing::default(),
                })
            }
            Step::Copy(copy) => ThunkKind::Copy(copy),
            Step::Memset { destination, value } => ThunkKind::Memset { destination, value },
        }
    }

    /// The slice of an instruction whose result is one array.
    fn only_slice(&self, id: InstrId) -> Result<ShapedSlice> {
        let mut slices = leaf_slices(self.module, self.assignment, id)?;
        match (slices.pop(), slices.is_empty()) {
            (Some(slice), true) => Ok(slice),
            _ => Err(self.unsupported(id)),
        }
    }

    fn copy(&self, id: InstrId, out: &mut Vec<Thunk>) -> Result<()> {
        let instr = &self.module.instrs[id];
        let source = self.only_slice(instr.operands[0])?;
        let destination = self.only_slice(id)?;
        push_copy(instr, source, destination, out);
        Ok(())
    }

    /// Copies that move leaves of one instruction's value into those of another.
    fn moves(
        &self,
        at: InstrId,
        from: InstrId,
        to: InstrId,
        leaves: &[usize],
        out: &mut Vec<Thunk>,
    ) -> Result<()> {
        let shapes = self.module.instrs[to].shape.leaves();
        let array = |leaf: usize| shapes.get(leaf).and_then(|(_, s)| s.as_array());
        let mut list = Vec::new();
        for &leaf in leaves {
            let slices = (
                self.assignment.slice(from, leaf),
                self.assignment.slice(to, leaf),
            );
            if let ((Some(source), Some(destination)), Some(_)) = (slices, array(leaf)) {
                list.push(Move {
                    leaf,
                    source,
                    destination,
                });
            }
        }
        let instr = &self.module.instrs[at];
        for one in moves::in_order(&list)? {
            let Some(shape) = array(one.leaf) else {
                continue;
            };
            let (source, destination) = (shaped(one.source, shape), shaped(one.destination, shape));
            push_copy(instr, source, destination, out);
        }
        Ok(())
    }

    fn while_loop(
        &mut self,
        id: InstrId,
        condition: CompId,
        body: CompId,
        out: &mut Vec<Thunk>,
    ) -> Result<()> {
        let module = self.module;
        let instr = &module.instrs[id];
        let flow = &self.assignment.flow;
        let own: Vec<usize> = (0..flow.at(id).len())
            .filter(|&leaf| flow.is_state(id, leaf))
            .collect();
        self.moves(id, instr.operands[0], id, &own, out)?;
        let root = module.comps[condition].root;
        let Some(predicate) = self.assignment.slice(root, 0) else {
            return Err(self.unsupported(id));
        };
        let condition = self.computation(condition)?;
        let mut steps = Vec::new();
        self.append(body, &mut steps)?;
        self.moves(id, module.comps[body].root, id, &own, &mut steps)?;
        let kind = ThunkKind::While(Box::new(WhileThunk {
            predicate,
            condition,
            body: ThunkSequence(steps),
            trip_count: trip_count(module, id),
        }));
        out.push(thunk(instr, kind));
        Ok(())
    }

    fn conditional(
        &mut self,
        id: InstrId,
        branches: &[CompId],
        out: &mut Vec<Thunk>,
    ) -> Result<()> {
        let module = self.module;
        let instr = &module.instrs[id];
        let flow = &self.assignment.flow;
        let own: Vec<usize> = (0..flow.at(id).len())
            .filter(|&leaf| flow.is_merge(id, leaf))
            .collect();
        let index = self.only_slice(instr.operands[0])?;
        let mut sequences = Vec::new();
        for &branch in branches {
            let mut steps = Vec::new();
            self.append(branch, &mut steps)?;
            self.moves(id, module.comps[branch].root, id, &own, &mut steps)?;
            sequences.push(ThunkSequence(steps));
        }
        let kind = ThunkKind::Conditional(Box::new(ConditionalThunk {
            branch_index: index.slice,
            is_pred: index.shape.ty == PrimitiveType::Pred,
            branches: sequences,
        }));
        out.push(thunk(instr, kind));
        Ok(())
    }

    fn fft(&self, id: InstrId, kind: FftType, lengths: &[usize]) -> Result<FftThunk> {
        let instr = &self.module.instrs[id];
        let input = self.only_slice(instr.operands[0])?;
        let output = self.only_slice(id)?;
        let fits = |shape: &ArrayShape| {
            matches!(
                shape.ty,
                PrimitiveType::F32 | PrimitiveType::F64 | PrimitiveType::C64 | PrimitiveType::C128
            )
        };
        if !fits(&input.shape) || !fits(&output.shape) {
            return Err(self.unsupported(id));
        }
        Ok(FftThunk {
            kind: match kind {
                FftType::Fft => 0,
                FftType::Ifft => 1,
                FftType::Rfft => 2,
                FftType::Irfft => 3,
            },
            lengths: lengths.iter().map(|&l| l as i64).collect(),
            multi_threaded: false,
            input,
            output,
        })
    }

    fn custom_call(&self, id: InstrId, call: &CustomCall, out: &mut Vec<Thunk>) -> Result<()> {
        let module = self.module;
        let instr = &module.instrs[id];
        let api_version = match call.api_version {
            // Without a word about it, the oldest convention is meant.
            CustomCallApiVersion::Unspecified | CustomCallApiVersion::Original => 1,
            CustomCallApiVersion::StatusReturning => 2,
            CustomCallApiVersion::StatusReturningUnified => 3,
            CustomCallApiVersion::TypedFfi => 4,
        };
        let results = self.nullable_leaves(id)?;
        let mut operands = Vec::new();
        let mut first_leaf = Vec::new();
        for &operand in &instr.operands {
            first_leaf.push(operands.len());
            operands.extend(self.nullable_leaves(operand)?);
        }
        // An operand that the result aliases is copied into the result's memory first.
        for share in crate::analysis::alias::shares(module, id) {
            let operand = &mut operands[first_leaf[share.operand] + share.operand_leaf];
            let (Some(source), Some(result)) = (operand.clone(), &results[share.result_leaf])
            else {
                continue;
            };
            let destination = ShapedSlice {
                slice: result.slice,
                shape: source.shape.clone(),
            };
            push_copy(instr, source, destination.clone(), out);
            *operand = Some(destination);
        }
        let config = instr.extra.as_ref().map(|e| e.backend_config.clone());
        let Ok(backend_config) = String::from_utf8(config.unwrap_or_default()) else {
            let message = format!("the configuration of `{}` is not text", instr.name);
            return Err(Diagnostic::error(codes::EMIT_UNSUPPORTED, message));
        };
        let kind = ThunkKind::CustomCall(Box::new(CustomCallThunk {
            target: call.target.clone(),
            api_version,
            backend_config,
            operands,
            results,
            is_tuple_result: Some(instr.shape.is_tuple()),
        }));
        out.push(thunk(instr, kind));
        Ok(())
    }

    /// The leaves of an instruction with their slices; tokens have none.
    fn nullable_leaves(&self, id: InstrId) -> Result<Vec<Option<ShapedSlice>>> {
        let mut out = Vec::new();
        for (leaf, (_, part)) in self.module.instrs[id]
            .shape
            .leaves()
            .into_iter()
            .enumerate()
        {
            out.push(match part {
                Shape::Array(array) => {
                    let slice = self.assignment.slice(id, leaf);
                    let slice = slice.ok_or_else(|| self.unsupported(id))?;
                    Some(shaped(slice, array))
                }
                Shape::Token => None,
                Shape::Opaque | Shape::Tuple(_) => return Err(self.unsupported(id)),
            });
        }
        Ok(out)
    }
}

fn thunk(instr: &Instr, kind: ThunkKind) -> Thunk {
    Thunk {
        origin: instr.name.clone(),
        kind,
    }
}

/// A copy, unless there is nothing to copy.
fn push_copy(instr: &Instr, source: ShapedSlice, destination: ShapedSlice, out: &mut Vec<Thunk>) {
    let same: (Slice, Slice) = (source.slice, destination.slice);
    if same.0 != same.1 && same.0.size > 0 {
        let copy = CopyThunk {
            source,
            destination,
        };
        out.push(thunk(instr, ThunkKind::Copy(copy)));
    }
}
