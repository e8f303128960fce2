//! Thunks with everything looked up: addresses, functions, plans. Making them, and running them.
#![allow(unsafe_code, reason = "works on the addresses of a bound program")]

use std::sync::Mutex;

use crate::base::Diagnostic;
use crate::base::Id;
use crate::base::Result;
use crate::base::codes;
use crate::executable::ConvolutionThunk;
use crate::executable::CustomCallThunk;
use crate::executable::DotThunk;
use crate::executable::FftThunk;
use crate::executable::FusionBody;
use crate::executable::KernelThunk;
use crate::executable::LibraryFusionThunk;
use crate::executable::ShapedSlice;
use crate::executable::Slice;
use crate::executable::SortThunk;
use crate::executable::Thunk;
use crate::executable::ThunkKind;
use crate::executable::TopKThunk;
use crate::runtime::binding::Watch;
use crate::runtime::binding::random_seed;
use crate::runtime::binding::refused_too_late;
use crate::runtime::collective::Meeting;
use crate::runtime::collective::Member;
use crate::runtime::cpu::array::Element;
use crate::runtime::cpu::call;
use crate::runtime::cpu::call::KernelArg;
use crate::runtime::cpu::call::KernelFn;
use crate::runtime::cpu::convolution;
use crate::runtime::cpu::copy::CopyPlan;
use crate::runtime::cpu::dot;
use crate::runtime::cpu::fft::FftKind;
use crate::runtime::cpu::fft::FftPlan;
use crate::runtime::cpu::fusion;
use crate::runtime::cpu::pool::Pool;
use crate::runtime::cpu::program::Program;
use crate::runtime::cpu::sort;
use crate::runtime::cpu::sort::SortInput;
use crate::runtime::cpu::sort::SortPlan;
use crate::runtime::custom_call::CustomCall;
use crate::runtime::custom_call::HostFunction;
use crate::runtime::sequence;
use crate::runtime::sequence::Resolve;
use crate::runtime::sequence::Run;
use crate::shape::ArrayShape;

/// What XLA's generator starts from.
const INITIAL_RNG_STATE: u128 = 0x701_2395;

/// Memory of a bound program.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    data: *mut u8,
    size: usize,
}

// SAFETY: a block is an address; whoever runs the steps has the program's memory to itself.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// # Safety
    /// The block's memory lives and is not written while the slice is used.
    unsafe fn bytes<'a>(self) -> &'a [u8] {
        // SAFETY: the caller's promise; all memory of a bound program is initialised.
        unsafe { std::slice::from_raw_parts(self.data, self.size) }
    }
    /// # Safety
    /// The block's memory lives and nothing else uses it while the slice is used.
    unsafe fn bytes_mut<'a>(self) -> &'a mut [u8] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.size) }
    }
}

/// A shaped block of a custom call.
type ShapedBlock = (ArrayShape, Block);

/// Steps of a sequence.
pub type Steps = Vec<sequence::Step<Block, Step>>;

/// One thunk that holds no others, ready to run.
pub enum Step {
    /// A launch: function, workgroups, arguments, number of the kernel for messages.
    Kernel(KernelFn, [u64; 3], Box<[KernelArg]>, usize),
    /// A copy from the first to the second block.
    Copy(CopyPlan, Block, Block),
    /// Fills with a 32-bit value.
    Memset(Block, u32),
    /// Writes fixed bytes.
    Write(Block, Vec<u8>),
    /// A sort in place.
    Sort(Box<SortPlan>),
    /// A product of the first two blocks into the third.
    Dot(Box<DotThunk>, [Block; 3]),
    /// A convolution of the first two blocks into the third.
    Convolution(Box<ConvolutionThunk>, [Block; 3]),
    /// A transform of the first block into the second.
    Fft(Box<FftPlan>, Block, Block),
    /// The largest elements: sizes, then values, output, indices.
    TopK([usize; 2], [Block; 3]),
    /// Writes the state and moves it on.
    RngState(Block, i64, Mutex<u128>),
    /// Writes a random seed.
    RngSeed(Block),
    /// A function of the host.
    Custom(Box<CustomStep>),
    /// A fusion of the first blocks into the last.
    Fusion(Box<FusionBody>, Vec<Block>, Block),
    /// A collective.
    Collective(Box<Meeting<Block>>),
}

/// A call of a function of the host.
pub struct CustomStep {
    function: HostFunction,
    target: String,
    config: String,
    operands: Vec<ShapedBlock>,
    results: Vec<ShapedBlock>,
}

// SAFETY: arguments hold addresses of a bound program; see `Block`.
unsafe impl Send for Step {}

/// Looks things up.
pub struct Resolver<'a> {
    /// The program.
    pub program: &'a Program,
    /// The device whose memory it is.
    pub device: usize,
    /// Address of each allocation.
    pub addresses: &'a [*mut u8],
}

impl Resolve for Resolver<'_> {
    type Block = Block;
    type Own = Step;

    fn block(&self, slice: &Slice) -> Block {
        let base = self.addresses[slice.alloc.index()];
        Block {
            data: base.wrapping_add(slice.offset as usize),
            size: slice.size as usize,
        }
    }

    fn own(&self, thunk: &Thunk, steps: &mut Vec<Step>) -> Result<()> {
        let step = match &thunk.kind {
            ThunkKind::Kernel(kernel) => self.kernel(kernel)?,
            ThunkKind::Copy(copy) => Step::Copy(
                CopyPlan::new(&copy.source.shape, &copy.destination.shape),
                self.block(&copy.source.slice),
                self.block(&copy.destination.slice),
            ),
            ThunkKind::Memset { destination, value } => {
                Step::Memset(self.block(destination), *value)
            }
            ThunkKind::Sort(sort) => Step::Sort(Box::new(self.sort(sort)?)),
            ThunkKind::Dot(d) => {
                let blocks = [&d.lhs, &d.rhs, &d.out].map(|s| self.block(&s.slice));
                Step::Dot(d.clone(), blocks)
            }
            ThunkKind::Convolution(c) => {
                let blocks = [&c.input, &c.kernel, &c.output].map(|s| self.block(&s.slice));
                Step::Convolution(c.clone(), blocks)
            }
            // Lengths of a transform of nothing need not fit memory.
            ThunkKind::Fft(fft) if fft.output.shape.element_count() == 0 => return Ok(()),
            ThunkKind::Fft(fft) => self.fft(fft)?,
            ThunkKind::TopK(thunk) => self.top_k(thunk),
            ThunkKind::CustomCall(call) => self.custom_call(call)?,
            ThunkKind::LibraryFusion(thunk) => self.fusion(thunk)?,
            ThunkKind::Collective(c) => {
                let (topology, device) = (self.program.topology, self.device);
                let block = |slice: &Slice| self.block(slice);
                let meeting = Meeting::new(c, &thunk.origin, topology, device, block)?;
                Step::Collective(Box::new(meeting))
            }
            ThunkKind::ReplicaId(slice) => {
                let number = self.program.topology.replica_of(self.device);
                Step::Write(self.block(slice), number.to_le_bytes().to_vec())
            }
            ThunkKind::PartitionId(slice) => {
                let number = self.program.topology.partition_of(self.device);
                Step::Write(self.block(slice), number.to_le_bytes().to_vec())
            }
            ThunkKind::RngGetAndUpdateState { state, delta } => {
                Step::RngState(self.block(state), *delta, Mutex::new(INITIAL_RNG_STATE))
            }
            ThunkKind::RngSeed(slice) => Step::RngSeed(self.block(slice)),
            ThunkKind::Call(_)
            | ThunkKind::While(_)
            | ThunkKind::Conditional(_)
            | ThunkKind::Windows(_)
            | ThunkKind::Gemm(_)
            | ThunkKind::Foreign { .. } => {
                return Err(refused_too_late(thunk.kind.name()));
            }
        };
        steps.push(step);
        Ok(())
    }
}

impl Resolver<'_> {
    fn shaped(&self, slices: &[Option<ShapedSlice>]) -> Vec<ShapedBlock> {
        let slices = slices.iter().flatten();
        slices
            .map(|s| (s.shape.clone(), self.block(&s.slice)))
            .collect()
    }

    fn kernel(&self, thunk: &KernelThunk) -> Result<Step> {
        let function = self.program.kernels[thunk.kernel];
        let function = function.ok_or_else(|| refused_too_late("kernel"))?;
        let args = thunk.args.iter().chain(&thunk.results);
        let args = args.map(|shaped| {
            let block = self.block(&shaped.slice);
            KernelArg {
                data: block.data,
                size: block.size as u64,
            }
        });
        let number = thunk.kernel.index();
        Ok(Step::Kernel(
            function,
            thunk.launch.workgroups,
            args.collect(),
            number,
        ))
    }

    fn sort(&self, thunk: &SortThunk) -> Result<SortPlan> {
        let comparator = self.program.comparators.get(&thunk.comparator);
        let comparator = comparator.ok_or_else(|| refused_too_late("sort"))?;
        let first = thunk
            .inputs
            .first()
            .ok_or_else(|| refused_too_late("sort"))?;
        let inputs = thunk.inputs.iter().map(|input| SortInput {
            data: self.block(&input.slice).data,
            width: input.shape.ty.byte_width(),
        });
        let dimension = usize::try_from(thunk.dimension).map_err(|_| refused_too_late("sort"))?;
        Ok(SortPlan::new(
            *comparator,
            inputs.collect(),
            &first.shape,
            dimension,
        ))
    }

    /// The library transforms dense row-major arrays only.
    fn fft(&self, thunk: &FftThunk) -> Result<Step> {
        let is_dense = |s: &ShapedSlice| s.shape.layout_or_default().is_row_major();
        if !is_dense(&thunk.input) || !is_dense(&thunk.output) {
            let message = "an `fft` of arrays that are not row-major";
            return Err(Diagnostic::unsupported(codes::LOAD, message));
        }
        let kind = FftKind::from_number(thunk.kind).ok_or_else(|| refused_too_late("fft"))?;
        let lengths: Vec<usize> = thunk.lengths.iter().map(|&n| n as usize).collect();
        let complex = if thunk.input.shape.ty.is_complex() {
            thunk.input.shape.ty
        } else {
            thunk.output.shape.ty
        };
        let plan = FftPlan::new(kind, &lengths, complex);
        let (input, output) = (
            self.block(&thunk.input.slice),
            self.block(&thunk.output.slice),
        );
        Ok(Step::Fft(Box::new(plan), input, output))
    }

    fn top_k(&self, thunk: &TopKThunk) -> Step {
        let sizes = [thunk.input_size as usize, thunk.k as usize];
        let blocks = [&thunk.values, &thunk.output, &thunk.indices].map(|s| self.block(s));
        Step::TopK(sizes, blocks)
    }

    fn fusion(&self, thunk: &LibraryFusionThunk) -> Result<Step> {
        let args = thunk.args.iter().map(|arg| self.block(&arg.slice));
        let result = thunk.results.first();
        let result = result.ok_or_else(|| refused_too_late("library-fusion"))?;
        Ok(Step::Fusion(
            Box::new(fusion::check_body(thunk)?.clone()),
            args.collect(),
            self.block(&result.slice),
        ))
    }

    fn custom_call(&self, thunk: &CustomCallThunk) -> Result<Step> {
        let function = self.program.custom_calls.find(thunk)?;
        Ok(Step::Custom(Box::new(CustomStep {
            function: function.ok_or_else(|| refused_too_late("custom-call"))?,
            target: thunk.target.clone(),
            config: thunk.backend_config.clone(),
            operands: self.shaped(&thunk.operands),
            results: self.shaped(&thunk.results),
        })))
    }
}

impl Step {
    fn name<'p>(&self, program: &'p Program) -> &'p str {
        match self {
            Self::Kernel(.., number) => program
                .kernel_names
                .get(*number)
                .map_or("?", String::as_str),
            Self::Copy(..) => "copy",
            Self::Memset(..) => "memset",
            Self::Write(..) => "write",
            Self::Sort(_) => "sort",
            Self::Dot(..) => "dot",
            Self::Convolution(..) => "convolution",
            Self::Fft(..) => "fft",
            Self::TopK(..) => "topk",
            Self::RngState(..) => "rng-get-and-update-state",
            Self::RngSeed(_) => "rng-seed",
            Self::Custom(_) => "custom-call",
            Self::Fusion(..) => "library-fusion",
            Self::Collective(_) => "collective",
        }
    }
}

/// Runs steps on the memory that they were resolved for.
struct Runner<'p> {
    program: &'p Program,
    member: Member<'p>,
}

impl Run for Runner<'_> {
    type Block = Block;
    type Own = Step;

    fn own<W: Watch>(&mut self, step: &Step, _: &mut Vec<u64>, watch: &mut W) -> Result<()> {
        // SAFETY: whoever calls `run`, which alone makes runners, has promised it.
        unsafe { run_step(step, self.program, self.member) }?;
        watch.done(step.name(self.program));
        Ok(())
    }

    fn read(&mut self, block: Block, bytes: &mut [u8; 4]) -> Result<usize> {
        // SAFETY: as above.
        let found = unsafe { block.bytes() };
        let size = found.len().min(bytes.len());
        bytes[..size].copy_from_slice(&found[..size]);
        Ok(size)
    }
}

/// Runs steps one after the other.
///
/// # Safety
/// The steps were resolved for memory that lives, that holds what an executable that passed its
/// check has in it, and that nothing else uses during the call.
pub unsafe fn run<W: Watch>(
    steps: &[sequence::Step<Block, Step>],
    program: &Program,
    member: Member<'_>,
    watch: &mut W,
) -> Result<()> {
    Runner { program, member }.run(steps, &mut Vec::new(), watch)
}

/// # Safety
/// As for [`run`]. The check has made sure that blocks written by a library do not overlap the
/// blocks it reads.
unsafe fn run_step(step: &Step, program: &Program, member: Member<'_>) -> Result<()> {
    let pool = &program.pool;
    match step {
        Step::Kernel(function, workgroups, args, number) => {
            // SAFETY: the caller's promise.
            if unsafe { call::launch(*function, *workgroups, args, pool) }? {
                return Ok(());
            }
            let name = program
                .kernel_names
                .get(*number)
                .map_or("?", String::as_str);
            let message = format!("kernel `{name}` reported a failure");
            Err(Diagnostic::error(codes::RUN, message))
        }
        Step::Copy(plan, source, destination) => {
            // SAFETY: the check made both blocks as large as the shapes, and apart or equal.
            unsafe { plan.run(source.data, destination.data, pool) }
        }
        Step::Memset(block, value) => {
            // SAFETY: the caller's promise.
            let bytes = unsafe { block.bytes_mut() };
            for word in bytes.chunks_exact_mut(4) {
                word.copy_from_slice(&value.to_le_bytes());
            }
            Ok(())
        }
        Step::Write(block, value) => {
            // SAFETY: the caller's promise.
            unsafe { block.bytes_mut() }.copy_from_slice(value);
            Ok(())
        }
        // SAFETY: the caller's promise.
        Step::Sort(plan) => unsafe { plan.run(pool) },
        Step::Dot(thunk, [lhs, rhs, out]) => {
            // SAFETY: the caller's promise, and `out` overlaps neither operand.
            let (lhs, rhs, out) = unsafe { (lhs.bytes(), rhs.bytes(), out.bytes_mut()) };
            dot::run(thunk, lhs, rhs, out, pool)
        }
        Step::Convolution(thunk, [input, kernel, output]) => {
            // SAFETY: as for dots.
            let (input, kernel, output) =
                unsafe { (input.bytes(), kernel.bytes(), output.bytes_mut()) };
            convolution::run(thunk, input, kernel, output, pool)
        }
        Step::Fft(plan, input, output) => {
            // SAFETY: as for dots.
            let (input, output) = unsafe { (input.bytes(), output.bytes_mut()) };
            plan.run(input, output, pool)
        }
        Step::TopK([size, k], [values, output, indices]) => {
            // SAFETY: as for dots, and the results do not overlap each other.
            let (values, output, indices) =
                unsafe { (values.bytes(), output.bytes_mut(), indices.bytes_mut()) };
            run_top_k([*size, *k], values, output, indices);
            Ok(())
        }
        Step::RngState(block, delta, state) => {
            let mut state = state.lock().unwrap_or_else(|e| e.into_inner());
            // SAFETY: the caller's promise.
            unsafe { block.bytes_mut() }.copy_from_slice(&state.to_le_bytes());
            *state = state.wrapping_add_signed(i128::from(*delta));
            Ok(())
        }
        Step::RngSeed(block) => {
            // SAFETY: the caller's promise.
            random_seed(unsafe { block.bytes_mut() });
            Ok(())
        }
        // SAFETY: the caller's promise.
        Step::Custom(step) => unsafe { run_custom(step, pool) },
        // SAFETY: the caller's promise.
        Step::Fusion(body, args, result) => unsafe { run_fusion(body, args, *result, pool) },
        Step::Collective(meeting) => {
            // SAFETY: the caller's promise.
            let read = |source: Block| Ok(unsafe { source.bytes() }.to_vec());
            meeting.run(member, read, |result, offset, bytes| {
                // SAFETY: the caller's promise; what was brought are copies.
                let result = unsafe { result.bytes_mut() };
                let place = result.get_mut(offset..offset + bytes.len());
                let place = place.ok_or_else(|| refused_too_late("collective"))?;
                place.copy_from_slice(bytes);
                Ok(())
            })
        }
    }
}

fn run_top_k([size, k]: [usize; 2], values: &[u8], output: &mut [u8], indices: &mut [u8]) {
    let values: Vec<f32> = values.chunks_exact(4).map(f32::load).collect();
    let count = output.len() / 4;
    let (mut found, mut places) = (vec![0.0; count], vec![0; count]);
    sort::top_k(&values, size, k, &mut found, &mut places);
    for (value, bytes) in found.iter().zip(output.chunks_exact_mut(4)) {
        value.store(bytes);
    }
    for (place, bytes) in places.iter().zip(indices.chunks_exact_mut(4)) {
        place.store(bytes);
    }
}

/// Whether two blocks share a byte.
fn overlaps(a: &Block, b: &Block) -> bool {
    let (a_start, b_start) = (a.data as usize, b.data as usize);
    a_start < b_start + b.size && b_start < a_start + a.size
}

/// # Safety
/// As for [`run`].
unsafe fn run_fusion(body: &FusionBody, args: &[Block], result: Block, pool: &Pool) -> Result<()> {
    // SAFETY: the caller's promise; operands are only read until the result is written.
    let operands: Vec<&[u8]> = args.iter().map(|arg| unsafe { arg.bytes() }).collect();
    if args.iter().any(|arg| overlaps(arg, &result)) {
        let mut bytes = vec![0; result.size];
        fusion::run(body, &operands, &mut bytes, pool)?;
        drop(operands);
        // SAFETY: the caller's promise; no operand is in use any more.
        unsafe { result.bytes_mut() }.copy_from_slice(&bytes);
        return Ok(());
    }
    // SAFETY: the caller's promise; no operand overlaps the result.
    fusion::run(body, &operands, unsafe { result.bytes_mut() }, pool)
}

/// # Safety
/// As for [`run`]. The check has made sure that results of one call do not overlap each other.
unsafe fn run_custom(step: &CustomStep, pool: &Pool) -> Result<()> {
    // An operand that shares memory with a result is copied out of its way.
    let copies: Vec<Option<Vec<u8>>> = step
        .operands
        .iter()
        .map(|(_, operand)| {
            let is_shared = step
                .results
                .iter()
                .any(|(_, result)| overlaps(operand, result));
            // SAFETY: the caller's promise.
            is_shared.then(|| unsafe { operand.bytes() }.to_vec())
        })
        .collect();
    let operands = step
        .operands
        .iter()
        .zip(&copies)
        .map(|((shape, block), copy)| {
            let bytes = match copy {
                Some(copy) => copy.as_slice(),
                // SAFETY: the caller's promise; no result overlaps it.
                None => unsafe { block.bytes() },
            };
            (shape, bytes)
        });
    let results = step.results.iter().map(|(shape, block)| {
        // SAFETY: the caller's promise.
        (shape, unsafe { block.bytes_mut() })
    });
    let mut call = CustomCall {
        target: &step.target,
        backend_config: &step.config,
        operands: operands.collect(),
        results: results.collect(),
    };
    step.function
        .run(&mut call, &|tasks, task| pool.run(tasks, &task))
}
