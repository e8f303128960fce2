//! A loaded CUDA program: images on the device, constants in place, and what is bound for its runs.
//!
//! Loading checks that everything the thunks name can be provided. Binding fixes the address of
//! every allocation and works the thunks out into steps. Temporary memory and outputs live as long
//! as the binding and are used again by each run.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::base::Arena;
use crate::base::Diagnostic;
use crate::base::Id;
use crate::base::IdMap;
use crate::base::Location;
use crate::base::Result;
use crate::base::codes;
use crate::collective::Topology;
use crate::executable::AllocId;
use crate::executable::AllocKind;
use crate::executable::Allocation;
use crate::executable::CopyThunk;
use crate::executable::Executable;
use crate::executable::KernelId;
use crate::executable::KernelThunk;
use crate::executable::Signature;
use crate::executable::Slice;
use crate::executable::ThunkKind;
use crate::executable::ThunkSequence;
use crate::literal::ArrayLiteral;
use crate::literal::device_form;
use crate::runtime::binding;
use crate::runtime::binding::Inputs;
use crate::runtime::binding::Unwatched;
use crate::runtime::binding::Watch;
use crate::runtime::calling::Leaf;
use crate::runtime::collective;
use crate::runtime::collective::Member;
use crate::runtime::cuda::device::Device;
use crate::runtime::cuda::device::Function;
use crate::runtime::cuda::device::Memory;
use crate::runtime::cuda::device::Module;
use crate::runtime::cuda::device::Stream;
use crate::runtime::cuda::device::UNIT;
use crate::runtime::cuda::library;
use crate::runtime::cuda::library::Library;
use crate::runtime::cuda::steps;
use crate::runtime::cuda::steps::Steps;
use crate::runtime::custom_call;
use crate::runtime::custom_call::CustomCalls;
use crate::runtime::sequence::Resolve;
use crate::runtime::sequence::Run;
use crate::shape::ArrayShape;
use crate::shape::Dims;

/// A program that can be bound and run.
pub struct Program {
    pub(super) topology: Topology,
    device: Arc<Device>,
    signature: Signature,
    allocs: Arena<AllocId, Allocation>,
    thunks: ThunkSequence,
    /// One for each constant.
    constants: Vec<Memory>,
    pub(super) kernels: IdMap<KernelId, Option<Function>>,
    /// Whether kernels read beyond their buffers.
    overreads: bool,
    /// Opened when a thunk needs it.
    pub(super) library: Option<Library>,
    pub(super) custom_calls: CustomCalls,
    pub(super) kernel_names: Vec<String>,
    /// Keeps the code on the device.
    _modules: Vec<Arc<Module>>,
}

/// A program with all its memory: ready to run any number of times.
pub struct Bound<'p> {
    program: &'p Program,
    /// One for each allocation; none for constants, which the program owns.
    memory: Vec<Option<Memory>>,
    steps: Steps,
    stream: Stream,
    /// What the launches of the last run counted, when the device counts.
    counts: Vec<Value>,
}

impl Program {
    /// Loads the images of an executable that has passed its check.
    ///
    /// # Errors
    /// `XA8003` when something it needs cannot be provided.
    pub fn load(
        executable: &Executable,
        device: &Arc<Device>,
        custom_calls: &CustomCalls,
    ) -> Result<Self> {
        let topology = executable.topology()?;
        refuse(&executable.thunks, custom_calls)?;
        device.enter()?;
        let library = library_for(&executable.thunks, device)?;
        // Images that are alike are loaded once; one without kernels has nothing but constants, which
        // get memory of their own.
        let mut modules: BTreeMap<&[u8], Arc<Module>> = BTreeMap::new();
        let mut kernels = IdMap::new();
        for image in executable.images.iter().filter(|i| !i.kernels.is_empty()) {
            let code = image.code.bytes();
            let module = match modules.get(code) {
                Some(module) => Arc::clone(module),
                None => Arc::new(Module::load(device, &image.name, code)?),
            };
            for &kernel in &image.kernels {
                let function = module.function(&executable.kernels[kernel].name)?;
                kernels.set(kernel, Some(function));
            }
            modules.insert(code, module);
        }
        reserve_shared_memory(device, &executable.thunks, &kernels)?;
        let stream = Stream::new(device)?;
        let overreads = any_overreads(&executable.thunks);
        let constants = executable.constants.values().map(|constant| {
            let memory = Memory::with_room(device, constant.bytes.len(), overreads, &stream)?;
            stream.copy_in(memory.address(), &constant.bytes)?;
            Ok(memory)
        });
        let constants = constants.collect::<Result<_>>()?;
        stream.wait()?;
        let names = executable.kernels.values();
        Ok(Self {
            topology,
            device: Arc::clone(device),
            signature: executable.signature.clone(),
            allocs: executable.allocs.clone(),
            thunks: executable.thunks.clone(),
            constants,
            kernels,
            library,
            custom_calls: custom_calls.clone(),
            overreads,
            kernel_names: names.map(|kernel| kernel.name.clone()).collect(),
            _modules: modules.into_values().collect(),
        })
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// Bytes of an allocation.
    pub(super) fn size(&self, alloc: AllocId) -> u64 {
        self.allocs[alloc].size.0
    }

    /// Its memory plan.
    pub fn allocs(&self) -> &Arena<AllocId, Allocation> {
        &self.allocs
    }

    /// How it is called.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Gives one of the program's devices memory and these inputs: one array for each array leaf of the
    /// parameters, given up as it is copied.
    ///
    /// # Errors
    /// `XA8001` when the inputs do not fit the signature, `XA8004` without memory.
    pub fn bind(&self, device: usize, inputs: Vec<ArrayLiteral>) -> Result<Bound<'_>> {
        self.bind_paired(device, binding::pair_inputs(&self.signature, inputs)?)
    }

    /// Gives one of the program's devices memory and no inputs: [`Bound::put`] brings them before each
    /// run.
    ///
    /// # Errors
    /// `XA8004` without memory.
    pub fn bind_empty(&self, device: usize) -> Result<Bound<'_>> {
        self.bind_paired(device, Inputs::new())
    }

    fn bind_paired(&self, device: usize, mut inputs: Inputs<'_>) -> Result<Bound<'_>> {
        self.device.enter()?;
        let stream = Stream::new(&self.device)?;
        let mut memory = Vec::with_capacity(self.allocs.len());
        for allocation in self.allocs.values() {
            let size = usize::try_from(allocation.size.0).unwrap_or(usize::MAX);
            memory.push(match &allocation.kind {
                AllocKind::Constant(_) | AllocKind::Window => None,
                AllocKind::ThreadLocal | AllocKind::Tuple | AllocKind::Owned => {
                    let overreads = self.overreads;
                    Some(Memory::with_room(&self.device, size, overreads, &stream)?)
                }
                AllocKind::Parameter { number, index, .. } => {
                    let block = Memory::with_room(&self.device, size, self.overreads, &stream)?;
                    if let Some((shape, input)) = inputs.remove(&(*number, index.clone())) {
                        let bytes = device_form::to_device(&input, shape);
                        stream.copy_in(block.address(), &bytes[..bytes.len().min(size)])?;
                    }
                    Some(block)
                }
            });
        }
        let pairs = self.allocs.values().zip(&memory);
        let addresses = pairs.map(|(allocation, memory)| match (&allocation.kind, memory) {
            (AllocKind::Constant(constant), _) => self.constants[constant.index()].address(),
            (_, Some(memory)) => memory.address(),
            (_, None) => 0,
        });
        let addresses: Vec<u64> = addresses.collect();
        let unused = match self.overreads {
            true => read_unused(&self.thunks, &self.allocs),
            false => Vec::new(),
        };
        for slice in unused {
            if self.allocs[slice.alloc].kind == AllocKind::Owned {
                let address = addresses[slice.alloc.index()] + slice.offset;
                stream.zero(address, slice.size as usize)?;
            }
        }
        let resolver = steps::Resolver {
            program: self,
            device,
            addresses: &addresses,
        };
        let steps = resolver.sequence(&self.thunks)?;
        stream.wait()?;
        Ok(Bound {
            program: self,
            memory,
            steps,
            stream,
            counts: Vec::new(),
        })
    }
}

impl Bound<'_> {
    /// Copies what an array leaf of the parameters holds in the next run, in device form.
    ///
    /// # Errors
    /// `XA8004` when it cannot be copied.
    pub fn put(&mut self, leaf: &Leaf, bytes: &[u8], sizes: &[usize]) -> Result<()> {
        let memory = leaf
            .alloc
            .and_then(|alloc| self.memory[alloc.index()].as_ref());
        let Some(memory) = memory else {
            return Ok(());
        };
        self.program.device.enter()?;
        if memory.size() < leaf.shape.byte_size() {
            return Err(binding::outside_its_buffer());
        }
        if !leaf.shape.is_dynamic() {
            return self.stream.copy_in(memory.address(), bytes);
        }
        let mut whole = vec![0; leaf.shape.byte_size()];
        device_form::write_real_part(bytes, sizes, &leaf.shape, &mut whole);
        self.stream.copy_in(memory.address(), &whole)
    }

    /// Copies a result of the last run and gives its sizes.
    ///
    /// # Errors
    /// As [`Bound::outputs`].
    pub fn take(&self, result: usize, shape: &ArrayShape, memory: &mut [u8]) -> Result<Dims> {
        self.program.device.enter()?;
        let slice = self.program.signature.outputs[result].slice;
        let copied = match shape.is_dynamic() {
            false => {
                let memory = &mut memory[..slice.size as usize];
                let copied = self.copy_out(&slice, memory);
                copied.map(|()| shape.dims.clone())
            }
            true => {
                let mut whole = vec![0; slice.size as usize];
                let copied = self.copy_out(&slice, &mut whole);
                copied.and_then(|()| {
                    let (bytes, sizes) = device_form::real_part(&whole, shape)?;
                    memory[..bytes.len()].copy_from_slice(bytes);
                    Ok(sizes)
                })
            }
        };
        // Results that nobody wrote are found when they are copied.
        self.stream.settle(Ok(()))?;
        copied
    }

    fn copy_out(&self, slice: &Slice, bytes: &mut [u8]) -> Result<()> {
        let memory = match &self.program.allocs[slice.alloc].kind {
            AllocKind::Constant(constant) => Some(&self.program.constants[constant.index()]),
            _ => self.memory[slice.alloc.index()].as_ref(),
        };
        let memory = memory.filter(|memory| slice.offset + slice.size <= memory.size() as u64);
        let memory = memory.ok_or_else(binding::outside_its_buffer)?;
        self.stream.copy_out(bytes, memory.address() + slice.offset)
    }

    /// Runs the program once on the device that memory was given to and waits for its end. Donated
    /// parameters hold a result afterwards, which the next run reads.
    ///
    /// # Errors
    /// `XA8004` when a launch or a kernel fails, or another device did not come to a collective.
    pub fn execute(&mut self, member: Member<'_>) -> Result<()> {
        self.run(member, &mut Unwatched, steps::Pace::Queue)
    }

    /// As [`Bound::execute`], with someone looking on: every step is waited for.
    ///
    /// # Errors
    /// As [`Bound::execute`].
    pub fn execute_watched<W: Watch>(&mut self, member: Member<'_>, watch: &mut W) -> Result<()> {
        self.run(member, watch, steps::Pace::Wait)
    }

    fn run<W: Watch>(
        &mut self,
        member: Member<'_>,
        watch: &mut W,
        pace: steps::Pace,
    ) -> Result<()> {
        self.program.device.enter()?;
        let mut runner = steps::Runner {
            device: &self.program.device,
            program: self.program,
            stream: &self.stream,
            pace,
            member,
        };
        let queued = runner.run(&self.steps, &mut Vec::new(), watch);
        let run = self.stream.wait().and(queued);
        self.counts = self.stream.settle(run)?;
        Ok(())
    }

    /// What each launch of the last run counted, a JSON object for each; nothing on a real device.
    pub fn counts(&self) -> &[Value] {
        &self.counts
    }

    /// The array leaves of the result.
    ///
    /// # Errors
    /// `XA8004` when they cannot be copied, `XA8105` when a simulated device finds that nobody wrote
    /// them, `XA9001` when the plan and the signature do not fit,
    /// which the check rules out.
    pub fn outputs(&self) -> Result<Vec<ArrayLiteral>> {
        self.program.device.enter()?;
        let outputs = binding::outputs(&self.program.signature, |slice| {
            let mut bytes = vec![0; slice.size as usize];
            self.copy_out(slice, &mut bytes)?;
            Ok(Cow::Owned(bytes))
        });
        // Results that nobody wrote are found when they are copied.
        self.stream.settle(Ok(()))?;
        outputs
    }
}

/// Whether a copy moves no elements: the arrays lie the same way.
fn is_plain_copy(copy: &CopyThunk) -> bool {
    let order = |shape: &ArrayShape| -> Vec<usize> {
        let order = shape.layout_or_default().minor_to_major.into_iter();
        order.filter(|&d| shape.dims[d] != 1).collect()
    };
    order(&copy.source.shape) == order(&copy.destination.shape)
}

/// Refuses thunks that this loader cannot run.
fn refuse(thunks: &ThunkSequence, custom_calls: &CustomCalls) -> Result<()> {
    let mut missing = Vec::new();
    for thunk in thunks.all() {
        let what = match &thunk.kind {
            ThunkKind::Kernel(_)
            | ThunkKind::Memset { .. }
            | ThunkKind::Call(_)
            | ThunkKind::While(_)
            | ThunkKind::Conditional(_)
            | ThunkKind::Windows(_)
            | ThunkKind::ReplicaId(_)
            | ThunkKind::PartitionId(_)
            | ThunkKind::RngSeed(_) => None,
            ThunkKind::Collective(found) => {
                let at = |e: Box<Diagnostic>| e.at(Location::Path(format!("`{}`", thunk.origin)));
                collective::check_reduction(found).map_err(at)?;
                None
            }
            ThunkKind::Copy(copy) if is_plain_copy(copy) => None,
            ThunkKind::Copy(_) => Some("a copy between layouts, which needs a kernel".to_owned()),
            ThunkKind::CustomCall(call) => {
                let at = |e: Box<Diagnostic>| e.at(Location::Path(format!("`{}`", thunk.origin)));
                if custom_calls.find(call).map_err(at)?.is_none() {
                    missing.push(call.target.clone());
                }
                None
            }
            ThunkKind::Gemm(gemm) if library::is_known(gemm) => None,
            ThunkKind::Gemm(gemm) => Some(format!(
                "a `{}` thunk in a form that this loader does not ask cuBLASLt for",
                gemm.name
            )),
            ThunkKind::Fft(_) => {
                Some("a `fft` thunk, which needs cuFFT; this loader does not open it".to_owned())
            }
            ThunkKind::Foreign { name, .. } => Some(foreign(name)),
            ThunkKind::Sort(_)
            | ThunkKind::Dot(_)
            | ThunkKind::Convolution(_)
            | ThunkKind::TopK(_)
            | ThunkKind::LibraryFusion(_)
            | ThunkKind::RngGetAndUpdateState { .. } => Some(format!(
                "a `{}` thunk, which runs on CPUs only",
                thunk.kind.name()
            )),
        };
        if let Some(what) = what {
            let message = format!("the program has {what}");
            return Err(Diagnostic::unsupported(codes::LOAD, message)
                .at(Location::Path(format!("`{}`", thunk.origin))));
        }
    }
    custom_call::none_missing(missing)
}

/// What a thunk of another producer needs.
fn foreign(name: &str) -> String {
    let library = match name {
        "triangular-solve" => "cuBLAS",
        "cublas-lt-matmul" => "cuBLASLt",
        "cudnn" | "norm" | "convolution" | "convolution-reorder" => "cuDNN",
        "select-k" => "RAFT",
        _ => return format!("a `{name}` thunk, which needs its producer's runtime"),
    };
    format!("a `{name}` thunk, which needs {library}; this loader does not open it")
}

/// Whether a kernel may read beyond its buffers.
fn any_overreads(thunks: &ThunkSequence) -> bool {
    let mut thunks = thunks.all().into_iter();
    thunks.any(|t| matches!(&t.kind, ThunkKind::Kernel(kernel) if kernel.passing.overreads))
}

/// What kernels of XLA read before it is written, and do not use: the word around an element smaller
/// than a byte, and the rest of the unit in which a buffer ends.
fn read_unused(thunks: &ThunkSequence, allocs: &Arena<AllocId, Allocation>) -> Vec<Slice> {
    let mut found = Vec::new();
    for thunk in thunks.all() {
        let ThunkKind::Kernel(kernel) = &thunk.kind else {
            continue;
        };
        let packed = kernel.results.iter().filter(|r| r.shape.ty.is_sub_byte());
        found.extend(packed.map(|result| result.slice));
        for shaped in kernel.args.iter().chain(&kernel.results) {
            let slice = shaped.slice;
            let end = slice.offset + slice.size;
            let rest = end
                .next_multiple_of(UNIT as u64)
                .min(allocs[slice.alloc].size.0);
            found.push(Slice {
                offset: end,
                size: rest.saturating_sub(end),
                ..slice
            });
        }
    }
    found
}

/// cuBLASLt, when a thunk needs it.
fn library_for(thunks: &ThunkSequence, device: &Device) -> Result<Option<Library>> {
    for thunk in thunks.all() {
        if let ThunkKind::Gemm(gemm) = &thunk.kind {
            let at = |error: Box<Diagnostic>| {
                let needs = format!("the program has a `{}` thunk, which needs it", gemm.name);
                error
                    .note(needs)
                    .at(Location::Path(format!("`{}`", thunk.origin)))
            };
            if device.is_simulated() {
                let message = "cuBLASLt does not run on a simulated device";
                return Err(at(Diagnostic::unsupported(codes::LOAD, message)));
            }
            return Library::open().map(Some).map_err(at);
        }
    }
    Ok(None)
}

/// Allows each kernel the shared memory of its largest launch.
fn reserve_shared_memory(
    device: &Device,
    thunks: &ThunkSequence,
    kernels: &IdMap<KernelId, Option<Function>>,
) -> Result<()> {
    let mut wanted: BTreeMap<KernelId, u32> = BTreeMap::new();
    for thunk in thunks.all() {
        if let ThunkKind::Kernel(KernelThunk { kernel, launch, .. }) = &thunk.kind {
            let most = wanted.entry(*kernel).or_default();
            *most = launch.shared_bytes.max(*most);
        }
    }
    for (kernel, bytes) in wanted {
        let function = kernels[kernel];
        if let (Some(function), true) = (function, bytes > 0) {
            steps::allow_shared_memory(device, function, bytes)?;
        }
    }
    Ok(())
}
