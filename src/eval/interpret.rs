//! Runs computations: one value an instruction, control flow, calls.

use crate::base::ByteSize;
use crate::base::Diagnostic;
use crate::base::Id;
use crate::base::IdMap;
use crate::base::Location;
use crate::base::Result;
use crate::base::codes;
use crate::collective::Communicator;
use crate::collective::Topology;
use crate::eval::bits;
use crate::eval::collective;
use crate::eval::collective::Brought;
use crate::eval::conv;
use crate::eval::custom_call;
use crate::eval::dot;
use crate::eval::dynamic;
use crate::eval::elementwise;
use crate::eval::fft;
use crate::eval::gather;
use crate::eval::linalg;
use crate::eval::movement;
use crate::eval::norm;
use crate::eval::reduce;
use crate::eval::rng;
use crate::eval::scalar_body::ScalarBody;
use crate::eval::sort;
use crate::eval::window;
use crate::hlo::CompId;
use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::custom_calls::is_annotation;
use crate::hlo::infer::agree;
use crate::hlo::verify;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::literal::number::Number;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;
use crate::shape::Shape;

/// Bytes of the largest value that is computed.
const MAX_BYTES: usize = 4 << 30;

/// Deepest nesting of called computations.
const MAX_DEPTH: usize = 128;

/// Runs a module alone on these inputs, one for each entry parameter. Arrays with dynamic dimensions
/// are given, and come back, as static ones of their real sizes.
///
/// # Errors
/// `EVAL_UNSUPPORTED` for an op without a meaning here, `INPUT_MISMATCH` when an input does not fit,
/// `OP_CONSTRAINT` when a collective needs other devices.
pub fn evaluate(module: &Module, inputs: &[Literal]) -> Result<Literal> {
    check_inputs(module, inputs)?;
    verify::check_devices(module, Topology::ONE)?;
    Evaluator::new(module, &Communicator::new(Topology::ONE), 0).whole(inputs)
}

/// Runs a module on several devices at once: `inputs` has those of each device, and the results are
/// those of each device.
///
/// # Errors
/// As [`evaluate`]; `RUN` when a device waits for one that cannot come.
pub fn evaluate_on(
    module: &Module,
    topology: Topology,
    inputs: &[Vec<Literal>],
) -> Result<Vec<Literal>> {
    if inputs.len() != topology.devices() {
        let (got, want) = (inputs.len(), topology.devices());
        let message = format!("inputs for {got} devices were given, and there are {want}");
        return Err(Diagnostic::error(codes::INPUT_MISMATCH, message));
    }
    for inputs in inputs {
        check_inputs(module, inputs)?;
    }
    verify::check_devices(module, topology)?;
    let communicator = Communicator::new(topology);
    communicator.run(|device| Evaluator::new(module, &communicator, device).whole(&inputs[device]))
}

fn check_inputs(module: &Module, inputs: &[Literal]) -> Result<()> {
    let entry = module.entry_comp();
    if inputs.len() != entry.params.len() {
        let (got, want) = (inputs.len(), entry.params.len());
        let message = format!("{got} inputs were given where the program has {want} parameters");
        return Err(Diagnostic::error(codes::INPUT_MISMATCH, message));
    }
    for (number, (&param, input)) in entry.params.iter().zip(inputs).enumerate() {
        if !dynamic::takes(module.shape(param), &input.shape()) {
            let message = format!("input {number} does not have the shape of the parameter");
            return Err(Diagnostic::error(codes::INPUT_MISMATCH, message));
        }
    }
    Ok(())
}

/// The state of one run.
pub(super) struct Evaluator<'m> {
    pub(super) module: &'m Module,
    /// Where it meets the other devices.
    pub(super) communicator: &'m Communicator<Brought>,
    device: usize,
    /// The instruction of the module that runs.
    at: InstrId,
    /// Place of each instruction in its computation.
    place: IdMap<InstrId, u32>,
    depth: usize,
    /// State of the free generators.
    pub(super) rng: rng::FreeState,
}

impl<'m> Evaluator<'m> {
    fn new(module: &'m Module, communicator: &'m Communicator<Brought>, device: usize) -> Self {
        let mut place = IdMap::new();
        for comp in module.comps.values() {
            for (i, &id) in comp.instrs.iter().enumerate() {
                place.set(id, i as u32);
            }
        }
        Self {
            module,
            communicator,
            device,
            at: InstrId::from_index(0),
            place,
            depth: 0,
            rng: rng::FreeState::new(),
        }
    }

    /// Runs the entry computation on inputs as the caller has them.
    fn whole(&mut self, inputs: &[Literal]) -> Result<Literal> {
        let module = self.module;
        let entry = module.entry_comp();
        let pairs = inputs.iter().zip(&entry.params);
        let inputs: Vec<Literal> = pairs
            .map(|(input, &param)| dynamic::inside(input, module.shape(param)))
            .collect();
        let result = self.call(module.entry, &inputs)?;
        Ok(dynamic::outside(result, module.shape(entry.root)))
    }

    /// The devices that run the module.
    pub(super) fn topology(&self) -> Topology {
        self.communicator.topology()
    }

    /// The number of this one.
    pub(super) fn device(&self) -> usize {
        self.device
    }

    /// Runs a computation.
    pub(super) fn call(&mut self, comp: CompId, args: &[Literal]) -> Result<Literal> {
        if self.depth >= MAX_DEPTH {
            let message = format!("computations nest deeper than {MAX_DEPTH}");
            return Err(Diagnostic::unsupported(codes::EVAL_UNSUPPORTED, message));
        }
        self.depth += 1;
        let result = self.run(comp, args);
        self.depth -= 1;
        result
    }

    fn run(&mut self, comp: CompId, args: &[Literal]) -> Result<Literal> {
        let computation = &self.module.comps[comp];
        let last_use = self.last_uses(comp);
        let mut values: Vec<Option<Literal>> = vec![None; computation.instrs.len()];
        for (i, &id) in computation.instrs.iter().enumerate() {
            let instr = &self.module.instrs[id];
            let mut operands = Vec::with_capacity(instr.operands.len());
            for &o in &instr.operands {
                let slot = self.place[o] as usize;
                let value = if last_use[slot] == i {
                    values[slot].take()
                } else {
                    values[slot].clone()
                };
                operands.push(value.ok_or_else(|| {
                    Diagnostic::internal(codes::INTERNAL, "an operand has no value")
                })?);
            }
            self.at = id;
            let value = self.instr(instr, operands, args).map_err(|d| {
                d.or_at(|| Location::Instruction {
                    computation: computation.name.clone(),
                    text: format!("{} = {}(...)", instr.name, instr.op.opcode()),
                })
            })?;
            values[i] = Some(value);
        }
        values[self.place[computation.root] as usize]
            .take()
            .ok_or_else(|| Diagnostic::internal(codes::INTERNAL, "the root has no value"))
    }

    /// For each place, the place of its last user; the root and values used twice by one
    /// instruction are never given away.
    fn last_uses(&self, comp: CompId) -> Vec<usize> {
        let computation = &self.module.comps[comp];
        let mut last = vec![usize::MAX; computation.instrs.len()];
        for (i, &id) in computation.instrs.iter().enumerate() {
            let operands = &self.module.instrs[id].operands;
            for &o in operands {
                let twice = operands.iter().filter(|&&p| p == o).count() > 1;
                last[self.place[o] as usize] = if twice { usize::MAX } else { i };
            }
        }
        last[self.place[computation.root] as usize] = usize::MAX;
        last
    }

    /// A reducer as a function of scalars, when it is one; else a call.
    pub(super) fn scalar_body(&self, comp: CompId) -> Option<ScalarBody> {
        ScalarBody::new(self.module, comp)
    }

    /// Calls a computation on scalars and returns the leaves of its result.
    pub(super) fn call_scalars(
        &mut self,
        comp: CompId,
        args: &[(PrimitiveType, Number)],
    ) -> Result<Vec<Number>> {
        let literals: Vec<Literal> = args
            .iter()
            .map(|&(ty, x)| Literal::Array(bits::scalar(ty, x)))
            .collect();
        let result = self.call(comp, &literals)?;
        let leaf = |l: &Literal| l.as_array().map_or(Number::Int(0), |a| bits::get(a, 0));
        Ok(match result.as_tuple() {
            Some(elements) => elements.iter().map(leaf).collect(),
            None => vec![leaf(&result)],
        })
    }

    pub(super) fn instr(
        &mut self,
        instr: &Instr,
        mut operands: Vec<Literal>,
        args: &[Literal],
    ) -> Result<Literal> {
        if dynamic::concerns(instr, &operands) {
            return dynamic::run(self, instr, &operands);
        }
        if let Some(plain) = dynamic::without_bounds(instr) {
            return self.instr(&plain, operands, args);
        }
        for array in instr
            .shape
            .leaves()
            .iter()
            .filter_map(|(_, s)| s.as_array())
        {
            let bytes = array.element_count().checked_mul(array.ty.byte_width());
            if bytes.is_none_or(|bytes| bytes > MAX_BYTES) {
                let limit = ByteSize(MAX_BYTES as u64);
                let what = format!(
                    "a result of {} elements: it computes up to {limit}",
                    array.element_count()
                );
                return Err(unsupported(instr, &what));
            }
        }
        match &instr.op {
            Op::Parameter { number, .. } => args.get(*number).cloned().ok_or_else(|| {
                Diagnostic::internal(codes::INTERNAL, "a parameter has no argument")
            }),
            Op::Constant(literal) => Ok(literal.clone()),
            Op::Tuple => Ok(Literal::Tuple(operands)),
            Op::GetTupleElement { index } => {
                let element = operands[0].as_tuple().and_then(|t| t.get(*index)).cloned();
                element.ok_or_else(|| unsupported(instr, "an operand without that element"))
            }
            Op::OptimizationBarrier
            | Op::AddDependency
            | Op::Domain(_)
            | Op::CopyDone
            | Op::AllGatherDone
            | Op::AllReduceDone
            | Op::CollectivePermuteDone => self.forward(instr, operands),
            Op::AfterAll => Ok(Literal::Token),
            Op::Call { body, .. } | Op::Fusion { body, .. } => self.call(*body, &operands),
            Op::While { condition, body } => self.run_while(*condition, *body, operands.remove(0)),
            Op::Conditional { branches } => self.run_conditional(branches, &operands),
            Op::AsyncStart { body, .. } => {
                let result = self.call(*body, &operands)?;
                Ok(async_start(instr, operands, result))
            }
            Op::AsyncUpdate => Ok(operands.remove(0)),
            Op::AsyncDone => self.forward(instr, operands),
            Op::CopyStart { .. } => {
                let value = operands.remove(0);
                let context = Literal::Array(bits::scalar(PrimitiveType::U32, Number::Int(0)));
                Ok(Literal::Tuple(vec![value.clone(), value, context]))
            }
            Op::Map { body, .. } => reduce::map(self, instr, *body, &operands),
            Op::Reduce { dims, body } => reduce::reduce(self, instr, dims, *body, &operands, true),
            Op::ReduceWindow { window, body } => {
                window::reduce_window(self, instr, window, *body, &operands)
            }
            Op::SelectAndScatter {
                window,
                select,
                scatter,
            } => window::select_and_scatter(self, instr, window, *select, *scatter, &operands),
            Op::Scan {
                dim,
                body,
                num_carries,
                is_reverse,
                ..
            } => reduce::scan(
                self,
                instr,
                *dim,
                *body,
                *num_carries,
                *is_reverse,
                &operands,
            ),
            Op::Scatter { dims, body, .. } => gather::scatter(self, instr, dims, *body, &operands),
            Op::Sort { dim, body, .. } => sort::sort(self, *dim, *body, &operands),
            Op::Rng { distribution } => {
                rng::free(self, *distribution, array_shape(instr)?, &operands)
            }
            Op::RngGetAndUpdateState { delta } => {
                Ok(self
                    .rng
                    .get_and_update(self.at, *delta, array_shape(instr)?))
            }
            Op::ReplicaId => self.own_number(instr, self.topology().replica_of(self.device)),
            Op::PartitionId => self.own_number(instr, self.topology().partition_of(self.device)),
            Op::Collective { kind, collective } => {
                let number = self.at.index() as i64;
                collective::run(self, instr, number, kind, collective, &operands)
            }
            Op::CustomCall(call) => match call.target.as_str() {
                target if is_annotation(target) => {
                    let value = match (operands.len(), &instr.shape) {
                        (_, Shape::Tuple(elements)) if elements.is_empty() => {
                            Literal::Tuple(Vec::new())
                        }
                        (1, _) => operands.remove(0),
                        _ => Literal::Tuple(operands),
                    };
                    if value.shape().same_ignoring_layout(&instr.shape) {
                        return Ok(value);
                    }
                    let what = "shards, which only XLA's partitioner cuts and joins";
                    Err(unsupported(instr, what))
                }
                "TopK" => sort::top_k(instr, true, &operands),
                _ => custom_call::run(instr, call, &operands),
            },
            Op::Bitcast => {
                let from = self.module.shape(instr.operands[0]).as_array();
                let (from, x) = from
                    .zip(operands[0].as_array())
                    .ok_or_else(|| unsupported(instr, "an operand that is no array"))?;
                Ok(Literal::Array(movement::bitcast(
                    array_shape(instr)?,
                    from,
                    x,
                )))
            }
            _ => plain(instr, &operands),
        }
    }

    /// Wrappers that hand on a value, or the result part of an in-flight tuple.
    fn forward(&self, instr: &Instr, mut operands: Vec<Literal>) -> Result<Literal> {
        let value = operands.remove(0);
        if agree(&value.shape(), &instr.shape) {
            return Ok(value);
        }
        let part = |i: usize| value.as_tuple().and_then(|t| t.get(i)).cloned();
        let first = part(0).filter(|_| matches!(instr.op, Op::CopyDone));
        let result = first.or_else(|| part(1));
        result
            .filter(|r| agree(&r.shape(), &instr.shape))
            .ok_or_else(|| unsupported(instr, "an operand of this shape"))
    }

    fn run_while(&mut self, condition: CompId, body: CompId, init: Literal) -> Result<Literal> {
        let mut state = [init];
        loop {
            let go = self.call(condition, &state)?;
            if go.as_array().is_none_or(|a| a.bytes()[0] == 0) {
                let [state] = state;
                return Ok(state);
            }
            state = [self.call(body, &state)?];
        }
    }

    fn run_conditional(&mut self, branches: &[CompId], operands: &[Literal]) -> Result<Literal> {
        let index = operands[0].as_array().map(|a| (a.ty(), bits::get(a, 0)));
        let branch = match index {
            Some((PrimitiveType::Pred, Number::Int(x))) => usize::from(x == 0),
            Some((_, Number::Int(x))) => usize::try_from(x)
                .ok()
                .filter(|&i| i < branches.len())
                .unwrap_or(branches.len() - 1),
            _ => branches.len() - 1,
        };
        self.call(branches[branch], &operands[branch + 1..=branch + 1])
    }

    fn own_number(&self, instr: &Instr, number: u32) -> Result<Literal> {
        let number = Number::Int(i128::from(number));
        Ok(Literal::Array(bits::scalar(array_shape(instr)?.ty, number)))
    }
}

/// `((operands), result, context...)`, the value of an `async-start`.
fn async_start(instr: &Instr, operands: Vec<Literal>, result: Literal) -> Literal {
    let parts = instr.shape.as_tuple().map_or(2, <[Shape]>::len);
    let mut value = vec![Literal::Tuple(operands), result];
    value.resize_with(parts, || {
        Literal::Array(bits::scalar(PrimitiveType::U32, Number::Int(0)))
    });
    Literal::Tuple(value)
}

/// Ops that need nothing but their operands.
fn plain(instr: &Instr, operands: &[Literal]) -> Result<Literal> {
    if matches!(
        &instr.op,
        Op::BatchNormTraining { .. }
            | Op::BatchNormGrad { .. }
            | Op::TopK { .. }
            | Op::RngBitGenerator { .. }
    ) {
        return tuple_ops(instr, operands);
    }
    if let Op::TriangularSolve { .. } | Op::Cholesky { .. } = &instr.op {
        return linalg::run(instr, &arrays(instr, operands)?).map(Literal::Array);
    }
    let shape = array_shape(instr)?;
    let inputs = arrays(instr, operands)?;
    let value = match &instr.op {
        Op::Unary(op) => elementwise::unary(*op, shape, inputs[0]),
        Op::Binary(op) => elementwise::binary(*op, shape, inputs[0], inputs[1]),
        Op::Compare { direction, ty } => {
            elementwise::compare(*direction, *ty, shape, inputs[0], inputs[1])
        }
        Op::Select => elementwise::select(shape, &inputs),
        Op::Clamp => elementwise::clamp(shape, &inputs),
        Op::Convert => elementwise::convert(shape, inputs[0]),
        Op::ReducePrecision {
            exponent_bits,
            mantissa_bits,
        } => elementwise::reduce_precision(shape, inputs[0], *exponent_bits, *mantissa_bits),
        Op::StochasticConvert => elementwise::stochastic_convert(shape, inputs[0], inputs[1]),
        Op::BitcastConvert => bits::bitcast_convert(shape, inputs[0]),
        Op::Copy => inputs[0].reshaped(shape.clone()),
        Op::Reshape { .. } => inputs[0].reshaped(shape.clone()),
        Op::Iota { dim } => movement::iota(shape, *dim),
        Op::Broadcast { dims } => movement::broadcast(shape, inputs[0], dims),
        Op::Transpose { dims } => movement::transpose(shape, inputs[0], dims),
        Op::Reverse { dims } => movement::reverse(shape, inputs[0], dims),
        Op::Slice { dims } => movement::slice(shape, inputs[0], dims),
        Op::DynamicSlice { sizes } => {
            let starts = movement::clamped_starts(&inputs[1..], &inputs[0].shape().dims, sizes);
            movement::dynamic_slice(shape, inputs[0], &starts)
        }
        Op::DynamicUpdateSlice => {
            let sizes = inputs[1].shape().dims.clone();
            let starts = movement::clamped_starts(&inputs[2..], &inputs[0].shape().dims, &sizes);
            movement::dynamic_update_slice(inputs[0], inputs[1], &starts)
        }
        Op::Pad { dims } => movement::pad(shape, inputs[0], inputs[1], dims),
        Op::Concatenate { dim } => movement::concatenate(shape, &inputs, *dim),
        Op::Gather {
            dims, slice_sizes, ..
        } => gather::gather(shape, inputs[0], inputs[1], dims, slice_sizes),
        Op::Dot { sparsity, .. } if !sparsity.is_empty() => {
            return Err(unsupported(instr, "an operand that leaves out elements"));
        }
        Op::Dot {
            dims, precision, ..
        } => dot::dot(shape, inputs[0], inputs[1], dims, precision),
        Op::RaggedDot {
            dims,
            lhs_ragged,
            rhs_group,
            ..
        } => dot::ragged_dot(shape, &inputs, dims, lhs_ragged, rhs_group)
            .ok_or_else(|| unsupported(instr, "these ragged dimensions"))?,
        Op::ScaledDot { dims, precision } => dot::scaled_dot(shape, &inputs, dims, precision),
        Op::Convolution {
            window,
            dims,
            feature_group_count,
            batch_group_count,
            ..
        } => {
            let groups = conv::Groups {
                feature: *feature_group_count,
                batch: *batch_group_count,
            };
            conv::convolution(shape, inputs[0], inputs[1], window, dims, groups)
        }
        Op::BatchNormInference {
            epsilon,
            feature_index,
        } => norm::inference(&inputs, f64::from(*epsilon), *feature_index),
        Op::Fft { kind, lengths } => fft::fft(shape, inputs[0], *kind, lengths),
        _ => return Err(unsupported(instr, "this op")),
    };
    Ok(Literal::Array(value))
}

/// Ops whose result is a tuple of arrays.
fn tuple_ops(instr: &Instr, operands: &[Literal]) -> Result<Literal> {
    let inputs = arrays(instr, operands)?;
    match &instr.op {
        Op::BatchNormTraining {
            epsilon,
            feature_index,
        } => Ok(norm::training(&inputs, f64::from(*epsilon), *feature_index)),
        Op::BatchNormGrad {
            epsilon,
            feature_index,
        } => Ok(norm::grad(&inputs, f64::from(*epsilon), *feature_index)),
        Op::TopK { largest, .. } => sort::top_k(instr, *largest, operands),
        Op::RngBitGenerator { algorithm } => rng::bit_generator(instr, *algorithm, inputs[0]),
        _ => Err(unsupported(instr, "this op")),
    }
}

fn array_shape(instr: &Instr) -> Result<&ArrayShape> {
    instr
        .shape
        .as_array()
        .ok_or_else(|| unsupported(instr, "a result that is no array"))
}

/// The operands, all arrays.
pub(super) fn arrays<'a>(instr: &Instr, operands: &'a [Literal]) -> Result<Vec<&'a ArrayLiteral>> {
    let all: Option<Vec<_>> = operands.iter().map(Literal::as_array).collect();
    all.ok_or_else(|| unsupported(instr, "an operand that is no array"))
}

/// The evaluator cannot run the instruction because of `what`.
pub(super) fn unsupported(instr: &Instr, what: &str) -> Box<Diagnostic> {
    let message = format!(
        "the evaluator cannot run `{}` with {what}",
        instr.op.opcode()
    );
    Diagnostic::unsupported(codes::EVAL_UNSUPPORTED, message)
}
