//! A loaded CPU program: code in memory, constants in place, and what is bound for its runs.
//!
//! Loading checks that everything the thunks name can be provided. Binding fixes the address of
//! every allocation and works the thunks out into steps, so that a run touches nothing but
//! those. Temporary memory and outputs live as long as the binding and are used again by each run.
#![allow(unsafe_code, reason = "turns addresses of loaded code into functions")]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

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
use crate::executable::Executable;
use crate::executable::KernelId;
use crate::executable::Signature;
use crate::executable::Slice;
use crate::executable::ThunkKind;
use crate::executable::ThunkSequence;
use crate::literal::ArrayLiteral;
use crate::literal::device_form;
use crate::runtime::binding;
use crate::runtime::binding::Inputs;
use crate::runtime::binding::Watch;
use crate::runtime::calling::Leaf;
use crate::runtime::collective;
use crate::runtime::collective::Member;
use crate::runtime::cpu::call::ComparatorFn;
use crate::runtime::cpu::call::KernelFn;
use crate::runtime::cpu::convolution;
use crate::runtime::cpu::dot;
use crate::runtime::cpu::float_env::DenormalsAreZero;
use crate::runtime::cpu::fusion;
use crate::runtime::cpu::memory::ALIGNMENT;
use crate::runtime::cpu::memory::Buffer;
use crate::runtime::cpu::object_loader;
use crate::runtime::cpu::object_loader::LoadedObjects;
use crate::runtime::cpu::pool::Pool;
use crate::runtime::cpu::steps;
use crate::runtime::cpu::steps::Steps;
use crate::runtime::custom_call;
use crate::runtime::custom_call::CustomCalls;
use crate::runtime::sequence::Resolve;
use crate::shape::ArrayShape;
use crate::shape::Dims;

/// A program that can be bound and run.
pub struct Program {
    pub(super) topology: Topology,
    pub(super) signature: Signature,
    allocs: Arena<AllocId, Allocation>,
    thunks: ThunkSequence,
    constants: Vec<Buffer>,
    pub(super) kernels: IdMap<KernelId, Option<KernelFn>>,
    pub(super) kernel_names: Vec<String>,
    pub(super) comparators: BTreeMap<String, ComparatorFn>,
    pub(super) custom_calls: CustomCalls,
    pub(super) pool: Arc<Pool>,
    may_resolve_again: bool,
    /// Keeps the code mapped.
    _objects: LoadedObjects,
}

/// A program with all its memory: ready to run any number of times.
pub struct Bound<'p> {
    program: &'p Program,
    /// One for each allocation; empty for constants, which the program owns.
    buffers: Vec<Buffer>,
    device: usize,
    /// Address of the caller's memory that stands for the buffer, for each allocation.
    lent: Vec<Option<usize>>,
    steps: Steps,
    /// Whether the steps are for the addresses of now.
    is_resolved: bool,
}

/// The least memory of a caller that is used in place of a buffer, in bytes: what is smaller is copied
/// sooner than steps are made anew.
const LEAST_LENT: usize = 1 << 16;

impl Program {
    /// Loads the code of an executable that has passed its check.
    ///
    /// # Errors
    /// `XA8003` when something it needs cannot be provided.
    pub fn load(
        executable: &Executable,
        custom_calls: &CustomCalls,
        pool: Arc<Pool>,
    ) -> Result<Self> {
        let topology = executable.topology()?;
        check_provided(&executable.thunks, custom_calls)?;
        let images = executable.images.iter();
        let objects = images.map(|image| (image.name.as_str(), image.code.bytes()));
        let objects = object_loader::load(objects)?;
        let mut kernels = IdMap::new();
        let mut comparators = BTreeMap::new();
        for (id, kernel) in executable.kernels.iter() {
            let Some(address) = objects.address(&kernel.name) else {
                let message = format!("no object defines `{}`", kernel.name);
                return Err(Diagnostic::error(codes::LOAD, message));
            };
            if kernel.is_comparator {
                // SAFETY: the address is that of a function of loaded code, which the bundle says
                // is a comparator. That the code is what it says is the trust of running it.
                let function = unsafe { std::mem::transmute::<usize, ComparatorFn>(address) };
                comparators.insert(kernel.name.clone(), function);
            } else {
                // SAFETY: as above, for a kernel.
                let function = unsafe { std::mem::transmute::<usize, KernelFn>(address) };
                kernels.set(id, Some(function));
            }
        }
        let constants = executable.constants.values();
        let constants = constants.map(|constant| Buffer::from_bytes(&constant.bytes));
        Ok(Self {
            topology,
            signature: executable.signature.clone(),
            allocs: executable.allocs.clone(),
            thunks: executable.thunks.clone(),
            may_resolve_again: may_resolve_again(&executable.thunks),
            constants: constants.collect::<Result<_>>()?,
            kernels,
            kernel_names: executable
                .kernels
                .values()
                .map(|k| k.name.clone())
                .collect(),
            comparators,
            custom_calls: custom_calls.clone(),
            pool,
            _objects: objects,
        })
    }

    /// Its memory plan.
    pub fn allocs(&self) -> &Arena<AllocId, Allocation> {
        &self.allocs
    }

    /// How it is called.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Threads that work on a run.
    pub fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// Gives a device memory and these inputs: one array for each array leaf of the parameters, given
    /// up as it is copied.
    ///
    /// # Errors
    /// `XA8001` when the inputs do not fit the signature, `XA8004` without memory.
    pub fn bind(&self, device: usize, inputs: Vec<ArrayLiteral>) -> Result<Bound<'_>> {
        self.bind_paired(device, binding::pair_inputs(&self.signature, inputs)?)
    }

    /// Gives a device memory and no inputs: [`Bound::put`] brings them before each run.
    ///
    /// # Errors
    /// `XA8004` without memory.
    pub fn bind_empty(&self, device: usize) -> Result<Bound<'_>> {
        self.bind_paired(device, Inputs::new())
    }

    fn bind_paired(&self, device: usize, mut inputs: Inputs<'_>) -> Result<Bound<'_>> {
        let mut buffers = Vec::with_capacity(self.allocs.len());
        for allocation in self.allocs.values() {
            let size = usize::try_from(allocation.size.0).unwrap_or(usize::MAX);
            buffers.push(match &allocation.kind {
                AllocKind::Constant(_) | AllocKind::ThreadLocal | AllocKind::Window => {
                    Buffer::Empty
                }
                AllocKind::Tuple | AllocKind::Owned => Buffer::new(size)?,
                AllocKind::Parameter { number, index, .. } => {
                    let mut buffer = Buffer::new(size)?;
                    if let Some((shape, input)) = inputs.remove(&(*number, index.clone())) {
                        device_form::write_device(&input, shape, buffer.bytes_mut());
                    }
                    buffer
                }
            });
        }
        let mut bound = Bound {
            program: self,
            device,
            lent: vec![None; buffers.len()],
            buffers,
            steps: Steps::new(),
            is_resolved: false,
        };
        bound.resolve()?;
        Ok(bound)
    }
}

/// Whether steps may be made anew between runs: none of them remembers anything, or takes long to make.
fn may_resolve_again(thunks: &ThunkSequence) -> bool {
    let mut thunks = thunks.all().into_iter();
    !thunks.any(|thunk| {
        let kind = &thunk.kind;
        matches!(
            kind,
            ThunkKind::RngGetAndUpdateState { .. } | ThunkKind::Fft(_)
        )
    })
}

impl Bound<'_> {
    fn addresses(&self) -> Vec<*mut u8> {
        let parts = self.program.allocs.values().zip(&self.buffers);
        let addresses = parts.zip(&self.lent).map(|((allocation, buffer), lent)| {
            match (lent, &allocation.kind) {
                (Some(address), _) => std::ptr::with_exposed_provenance_mut(*address),
                (None, AllocKind::Constant(c)) => self.program.constants[c.index()].address(),
                (None, _) => buffer.address(),
            }
        });
        addresses.collect()
    }

    /// Works the thunks out into steps for the addresses of now.
    fn resolve(&mut self) -> Result<()> {
        let resolver = steps::Resolver {
            program: self.program,
            device: self.device,
            addresses: &self.addresses(),
        };
        self.steps = resolver.sequence(&self.program.thunks)?;
        self.is_resolved = true;
        Ok(())
    }

    /// Uses a caller's memory in place of a buffer, or none any more.
    fn lend(&mut self, alloc: AllocId, address: Option<usize>) {
        let lent = &mut self.lent[alloc.index()];
        if *lent != address {
            *lent = address;
            self.is_resolved = false;
        }
    }

    /// Whether memory can stand for a whole allocation.
    fn is_lendable(&self, alloc: AllocId, memory: &[u8]) -> bool {
        self.program.allocs[alloc].size.0 == memory.len() as u64
            && memory.len() >= LEAST_LENT
            && memory.as_ptr().addr().is_multiple_of(ALIGNMENT)
            && self.program.may_resolve_again
    }

    /// Brings what an array leaf of the parameters holds in the next run, in device form: memory that
    /// lies as kernels want it is read where it is, other is copied.
    ///
    /// # Safety
    /// The memory lives and is not written until that run has ended.
    pub unsafe fn put(&mut self, leaf: &Leaf, bytes: &[u8], sizes: &[usize]) -> Result<()> {
        let Some(alloc) = leaf.alloc else {
            return Ok(());
        };
        let is_read_only = !self.program.allocs[alloc].live_out && !leaf.is_aliased;
        if is_read_only && !leaf.shape.is_dynamic() && self.is_lendable(alloc, bytes) {
            self.lend(alloc, Some(bytes.as_ptr().expose_provenance()));
            return Ok(());
        }
        self.lend(alloc, None);
        let buffer = self.buffers[alloc.index()].bytes_mut();
        let buffer = buffer.get_mut(..leaf.shape.byte_size());
        let buffer = buffer.ok_or_else(binding::outside_its_buffer)?;
        device_form::write_real_part(bytes, sizes, &leaf.shape, buffer);
        Ok(())
    }

    /// Says where a result goes, before the run: memory that lies as kernels want it is written there.
    ///
    /// # Safety
    /// The memory lives, and nothing else uses it, until the run has ended.
    pub unsafe fn place(&mut self, result: usize, memory: &mut [u8]) {
        let slice = self.program.signature.outputs[result].slice;
        let allocation = &self.program.allocs[slice.alloc];
        if allocation.kind != AllocKind::Owned {
            return;
        }
        let size = slice.size as usize;
        let is_whole = slice.offset == 0 && allocation.size.0 == slice.size;
        let memory = memory.get_mut(..size).filter(|_| is_whole);
        let memory = memory.filter(|memory| self.is_lendable(slice.alloc, memory));
        self.lend(
            slice.alloc,
            memory.map(|m| m.as_mut_ptr().expose_provenance()),
        );
    }

    /// Copies a result of the last run, unless it was made there, and gives its sizes.
    ///
    /// # Errors
    /// `XA8001` when the program gives it sizes beyond its bounds, `XA9001` as for [`Bound::outputs`].
    pub fn take(&self, result: usize, shape: &ArrayShape, memory: &mut [u8]) -> Result<Dims> {
        let slice = self.program.signature.outputs[result].slice;
        let address = Some(memory.as_mut_ptr().expose_provenance());
        if self.lent[slice.alloc.index()] == address {
            return Ok(device_form::real_part(&memory[..slice.size as usize], shape)?.1);
        }
        let (bytes, sizes) = device_form::real_part(self.slice(&slice)?, shape)?;
        memory[..bytes.len()].copy_from_slice(bytes);
        Ok(sizes)
    }

    /// The bytes of a slice that is in no memory of a caller's.
    fn slice(&self, slice: &Slice) -> Result<&[u8]> {
        let buffer = match self.program.allocs[slice.alloc].kind {
            AllocKind::Constant(constant) => &self.program.constants[constant.index()],
            _ => &self.buffers[slice.alloc.index()],
        };
        let start = slice.offset as usize;
        let bytes = buffer.bytes().get(start..start + slice.size as usize);
        bytes.ok_or_else(binding::outside_its_buffer)
    }

    /// Runs the program once on the device that memory was given to. Donated parameters hold a result
    /// afterwards, which the next run reads.
    ///
    /// # Errors
    /// `XA8004` when a kernel reports a failure, or another device did not come to a collective.
    pub fn execute<W: Watch>(&mut self, member: Member<'_>, watch: &mut W) -> Result<()> {
        if !self.is_resolved {
            self.resolve()?;
        }
        let _environment = DenormalsAreZero::set();
        // SAFETY: `self` is borrowed exclusively, so nothing else uses the buffers, and whoever lent
        // memory has promised that of it; the steps were made for their addresses from an executable
        // that passed its check.
        unsafe { steps::run(&self.steps, self.program, member, watch) }
    }

    /// The array leaves of the result.
    ///
    /// # Errors
    /// `XA9001` when the plan and the signature do not fit, which the check rules out.
    pub fn outputs(&self) -> Result<Vec<ArrayLiteral>> {
        binding::outputs(&self.program.signature, |slice| {
            self.slice(slice).map(Cow::Borrowed)
        })
    }
}

/// Finds a function for every custom call, and refuses thunks that cannot run.
fn check_provided(thunks: &ThunkSequence, custom_calls: &CustomCalls) -> Result<()> {
    let mut missing = Vec::new();
    for thunk in thunks.all() {
        let at = |e: Box<Diagnostic>| e.at(Location::Path(format!("`{}`", thunk.origin)));
        match &thunk.kind {
            ThunkKind::CustomCall(call) if custom_calls.find(call).map_err(at)?.is_none() => {
                missing.push(call.target.clone());
            }
            ThunkKind::Collective(thunk) => collective::check_reduction(thunk).map_err(at)?,
            ThunkKind::Dot(thunk) => dot::check_types(thunk).map_err(at)?,
            ThunkKind::Convolution(thunk) => convolution::check_types(thunk).map_err(at)?,
            ThunkKind::LibraryFusion(thunk) => {
                fusion::check_body(thunk).map_err(at)?;
            }
            ThunkKind::Windows(_) | ThunkKind::Gemm(_) | ThunkKind::Foreign { .. } => {
                let message = format!(
                    "a `{}` thunk needs a library of its producer",
                    thunk.kind.name()
                );
                return Err(at(Diagnostic::unsupported(codes::LOAD, message)));
            }
            _ => {}
        }
    }
    custom_call::none_missing(missing)
}
