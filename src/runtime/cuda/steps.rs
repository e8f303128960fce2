//! Thunks with everything looked up: addresses and functions. Making them, and running them.
#![allow(
    unsafe_code,
    reason = "calls the driver on the addresses of a bound program"
)]

use std::ffi::c_void;

use cudarc::driver::sys;

use crate::base::Diagnostic;
use crate::base::Id;
use crate::base::Result;
use crate::base::codes;
use crate::executable::KernelThunk;
use crate::executable::Launch;
use crate::executable::Parameter;
use crate::executable::Place;
use crate::executable::ShapedSlice;
use crate::executable::Slice;
use crate::executable::TensorMap;
use crate::executable::Thunk;
use crate::executable::ThunkKind;
use crate::executable::WindowsThunk;
use crate::runtime::binding::Watch;
use crate::runtime::binding::random_seed;
use crate::runtime::binding::refused_too_late;
use crate::runtime::collective::Meeting;
use crate::runtime::collective::Member;
use crate::runtime::cuda::device::Device;
use crate::runtime::cuda::device::Function;
use crate::runtime::cuda::device::Stream;
use crate::runtime::cuda::library::Product;
use crate::runtime::cuda::program::Program;
use crate::runtime::custom_call::CustomCall;
use crate::runtime::custom_call::HostFunction;
use crate::runtime::sequence;
use crate::runtime::sequence::Resolve;
use crate::runtime::sequence::Run;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;

/// Bytes of device memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    address: u64,
    size: usize,
}

/// Steps of a sequence.
pub(super) type Steps = Vec<sequence::Step<Block, Step>>;

/// One thunk that holds no others, or one on windows, ready to run.
pub(super) enum Step {
    /// A launch: function, size, what each parameter is given, number of the kernel for messages.
    Kernel(Function, Box<Shape>, Box<[Argument]>, usize),
    /// A copy from the first to the second block.
    Copy(Block, Block),
    /// Fills with a 32-bit value.
    Memset(Block, u32),
    /// Writes a random seed that is not zero.
    RngSeed(Block),
    /// Thunks on windows, and the address of each allocation.
    Windows(Box<WindowsThunk>, Box<[u64]>),
    /// A product of matrices.
    Product(Box<Product>),
    /// A function of the host.
    Host(Box<HostStep>),
    /// A collective.
    Collective(Box<Meeting<Block>>),
}

/// A call of a function of the host, with the device memory of its operands and results.
pub(super) struct HostStep {
    function: HostFunction,
    target: String,
    config: String,
    operands: Vec<(ArrayShape, Block)>,
    results: Vec<(ArrayShape, Block)>,
}

/// The size and the manner of a launch.
pub(super) struct Shape {
    launch: Launch,
    early: bool,
}

/// What a parameter is given; the driver reads it where it lies.
pub(super) enum Argument {
    Address(u64),
    Map(Box<sys::CUtensorMap>),
    Bytes(Vec<u8>),
}

impl Argument {
    fn place(&self) -> *mut c_void {
        match self {
            Self::Address(address) => std::ptr::from_ref(address).cast_mut().cast(),
            Self::Map(map) => std::ptr::from_ref(&**map).cast_mut().cast(),
            Self::Bytes(bytes) => bytes.as_ptr().cast_mut().cast(),
        }
    }
}

/// Looks things up.
pub(super) struct Resolver<'a> {
    /// The program.
    pub(super) program: &'a Program,
    /// Which of the program's devices the memory is for.
    pub(super) device: usize,
    /// Address of each allocation.
    pub(super) addresses: &'a [u64],
}

impl Resolve for Resolver<'_> {
    type Block = Block;
    type Own = Step;

    fn block(&self, slice: &Slice) -> Block {
        Block {
            address: self.addresses[slice.alloc.index()] + slice.offset,
            size: slice.size as usize,
        }
    }

    fn own(&self, thunk: &Thunk, steps: &mut Vec<Step>) -> Result<()> {
        let step = match &thunk.kind {
            ThunkKind::Kernel(kernel) => {
                let slices = kernel.args.iter().chain(&kernel.results);
                let slices: Vec<&ShapedSlice> = slices.collect();
                for &zeroed in &kernel.passing.zeroed {
                    steps.push(Step::Memset(self.block(&slices[zeroed].slice), 0));
                }
                self.kernel(kernel, &slices)?
            }
            ThunkKind::Windows(windows) => Step::Windows(windows.clone(), self.addresses.into()),
            ThunkKind::Gemm(gemm) => {
                let library = self.program.library.as_ref();
                let library = library.ok_or_else(|| refused_too_late(gemm.name))?;
                let at = |slice: &Slice| self.block(slice).address;
                Step::Product(Box::new(Product::new(library, gemm, &at)?))
            }
            ThunkKind::Copy(copy) => Step::Copy(
                self.block(&copy.source.slice),
                self.block(&copy.destination.slice),
            ),
            ThunkKind::Memset { destination, value } => {
                Step::Memset(self.block(destination), *value)
            }
            ThunkKind::Collective(c) => {
                let (topology, device) = (self.program.topology, self.device);
                let block = |slice: &Slice| self.block(slice);
                let meeting = Meeting::new(c, &thunk.origin, topology, device, block)?;
                Step::Collective(Box::new(meeting))
            }
            ThunkKind::ReplicaId(slice) => {
                let number = self.program.topology.replica_of(self.device);
                Step::Memset(self.block(slice), number)
            }
            ThunkKind::PartitionId(slice) => {
                let number = self.program.topology.partition_of(self.device);
                Step::Memset(self.block(slice), number)
            }
            ThunkKind::RngSeed(slice) => Step::RngSeed(self.block(slice)),
            ThunkKind::CustomCall(call) => {
                let function = self.program.custom_calls.find(call)?;
                Step::Host(Box::new(HostStep {
                    function: function.ok_or_else(|| refused_too_late("custom-call"))?,
                    target: call.target.clone(),
                    config: call.backend_config.clone(),
                    operands: self.shaped(&call.operands),
                    results: self.shaped(&call.results),
                }))
            }
            kind => return Err(refused_too_late(kind.name())),
        };
        steps.push(step);
        Ok(())
    }
}

impl Resolver<'_> {
    fn shaped(&self, slices: &[Option<ShapedSlice>]) -> Vec<(ArrayShape, Block)> {
        let slices = slices.iter().flatten();
        slices
            .map(|s| (s.shape.clone(), self.block(&s.slice)))
            .collect()
    }

    fn kernel(&self, thunk: &KernelThunk, slices: &[&ShapedSlice]) -> Result<Step> {
        let function = self.program.kernels[thunk.kernel];
        let function = function.ok_or_else(|| refused_too_late("kernel"))?;
        let address = |buffer: usize| self.block(&slices[buffer].slice).address;
        let passing = &thunk.passing;
        let arguments: Box<[Argument]> = match passing.parameters.is_empty() {
            true => (0..slices.len())
                .map(|buffer| Argument::Address(address(buffer)))
                .collect(),
            false => {
                let arguments = passing.parameters.iter().map(|parameter| {
                    Ok(match parameter {
                        Parameter::Address(buffer) => Argument::Address(address(*buffer)),
                        Parameter::Map(buffer, map) => {
                            Argument::Map(self.map(map, address(*buffer))?)
                        }
                        Parameter::Bytes(bytes) => Argument::Bytes(bytes.clone()),
                    })
                });
                arguments.collect::<Result<_>>()?
            }
        };
        let shape = Shape {
            launch: thunk.launch,
            early: passing.early,
        };
        let number = thunk.kernel.index();
        Ok(Step::Kernel(function, Box::new(shape), arguments, number))
    }

    /// The map of a tensor at an address, as the driver encodes it.
    fn map(&self, map: &TensorMap, address: u64) -> Result<Box<sys::CUtensorMap>> {
        let device = self.program.device();
        let encode = device.api.encode_map.ok_or_else(|| {
            let message =
                "the CUDA driver lacks `cuTensorMapEncodeTiled`, which came with CUDA 12.0";
            Diagnostic::error(codes::RUN, message).help("install a newer driver")
        })?;
        // The driver's numbers of unsigned integers of 1, 2, 4 and 8 bytes.
        let element = match map.element_size {
            1 => 0,
            2 => 1,
            4 => 2,
            _ => 4,
        };
        let mut encoded = Box::new(sys::CUtensorMap { opaque: [0; 16] });
        // SAFETY: the check of the executable has seen that there are as many numbers as the rank
        // says; the driver writes one map.
        let status = unsafe {
            encode(
                &raw mut *encoded,
                element,
                map.dims.len() as u32,
                std::ptr::without_provenance_mut(address as usize),
                map.dims.as_ptr(),
                map.strides.as_ptr(),
                map.boxes.as_ptr(),
                map.steps.as_ptr(),
                map.interleave,
                map.swizzle,
                map.promotion,
                map.fill,
            )
        };
        device.check(status, || format!("encoding {map:?}"))?;
        Ok(encoded)
    }
}

/// Whether steps are waited for one by one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// Steps are queued; only what the host must read is waited for.
    Queue,
    /// Every step is waited for.
    Wait,
}

/// Runs steps on a stream.
pub(super) struct Runner<'a> {
    pub(super) device: &'a Device,
    pub(super) program: &'a Program,
    pub(super) stream: &'a Stream,
    pub(super) pace: Pace,
    pub(super) member: Member<'a>,
}

impl Run for Runner<'_> {
    type Block = Block;
    type Own = Step;

    fn own<W: Watch>(&mut self, step: &Step, loops: &mut Vec<u64>, watch: &mut W) -> Result<()> {
        let name = match step {
            Step::Kernel(function, shape, arguments, number) => {
                let name = self.program.kernel_names.get(*number);
                let name = name.map_or("?", String::as_str);
                self.launch(*function, shape, arguments, name)?;
                name
            }
            Step::Copy(from, to) => {
                self.copy(*from, *to)?;
                "copy"
            }
            Step::Memset(block, value) => {
                self.fill(*block, *value)?;
                "memset"
            }
            Step::RngSeed(block) => {
                let mut seed = vec![0; block.size];
                random_seed(&mut seed);
                self.stream.copy_in(block.address, &seed)?;
                "rng-seed"
            }
            Step::Windows(windows, addresses) => {
                let steps = self.windows(windows, addresses, loops)?;
                return self.run(&steps, loops, watch);
            }
            Step::Product(product) => {
                product.run(self.stream)?;
                "matrix product"
            }
            Step::Host(step) => {
                self.call_host(step)?;
                "custom-call"
            }
            Step::Collective(meeting) => {
                self.meet(meeting)?;
                "collective"
            }
        };
        if self.pace == Pace::Wait {
            self.stream.wait()?;
            watch.done(name);
        }
        Ok(())
    }

    fn read(&mut self, block: Block, bytes: &mut [u8; 4]) -> Result<usize> {
        let size = block.size.min(bytes.len());
        self.stream.copy_out(&mut bytes[..size], block.address)?;
        Ok(size)
    }
}

impl Runner<'_> {
    /// Copies operands to the host, meets the other devices, and copies results to the device.
    fn meet(&self, meeting: &Meeting<Block>) -> Result<()> {
        let read = |block| self.bytes(block);
        meeting.run(self.member, read, |block, offset, bytes| {
            if offset + bytes.len() > block.size {
                return Err(refused_too_late("collective"));
            }
            self.device.enter()?;
            self.stream.copy_in(block.address + offset as u64, bytes)
        })
    }

    /// What a block holds, on the host.
    fn bytes(&self, block: Block) -> Result<Vec<u8>> {
        let mut bytes = vec![0; block.size];
        self.stream.copy_out(&mut bytes, block.address)?;
        Ok(bytes)
    }

    /// Copies operands to the host, calls the function, and copies its results to the device.
    fn call_host(&self, step: &HostStep) -> Result<()> {
        let operands = step.operands.iter().map(|(_, block)| self.bytes(*block));
        let operands: Vec<Vec<u8>> = operands.collect::<Result<_>>()?;
        let blocks = step.results.iter();
        let mut results: Vec<Vec<u8>> = blocks.map(|(_, block)| vec![0; block.size]).collect();
        let shapes = step.operands.iter().map(|(shape, _)| shape);
        let result_shapes = step.results.iter().map(|(shape, _)| shape);
        let mut call = CustomCall {
            target: &step.target,
            backend_config: &step.config,
            operands: shapes.zip(operands.iter().map(Vec::as_slice)).collect(),
            results: result_shapes
                .zip(results.iter_mut().map(Vec::as_mut_slice))
                .collect(),
        };
        step.function.run(&mut call, &|tasks, task| {
            (0..tasks).for_each(task);
            Ok(())
        })?;
        for ((_, block), bytes) in step.results.iter().zip(&results) {
            self.stream.copy_in(block.address, bytes)?;
        }
        Ok(())
    }

    /// The steps of thunks on windows, which are looked up now.
    fn windows(&self, thunk: &WindowsThunk, addresses: &[u64], loops: &[u64]) -> Result<Steps> {
        let mut addresses = addresses.to_vec();
        for window in &thunk.windows {
            let begin = addresses[window.buffer.alloc.index()] + window.buffer.offset;
            let offset = self.offset(&window.place, &addresses, loops)?;
            let size = self.program.size(window.alloc);
            let offset = u64::try_from(offset).ok();
            let offset = offset.filter(|o| o.saturating_add(size) <= window.buffer.size);
            let offset = offset.ok_or_else(|| {
                let message = format!(
                    "a window of {size} bytes leaves its buffer of {} bytes",
                    window.buffer.size
                );
                Diagnostic::error(codes::RUN, message)
            })?;
            addresses[window.alloc.index()] = begin + offset;
        }
        let resolver = Resolver {
            program: self.program,
            device: self.member.device,
            addresses: &addresses,
        };
        resolver.sequence(&thunk.thunks)
    }

    /// Bytes from the beginning of a buffer to a window on it.
    fn offset(&self, place: &Place, addresses: &[u64], loops: &[u64]) -> Result<i64> {
        match place {
            Place::Step {
                depth,
                offset,
                stride,
            } => {
                let made = depth.map_or(Some(0), |depth| loops.iter().rev().nth(depth).copied());
                let made = made.ok_or_else(|| {
                    let message = "a window counts the steps of a loop that is not there";
                    Diagnostic::error(codes::RUN, message)
                })?;
                Ok(offset.saturating_add(stride.saturating_mul(made.cast_signed())))
            }
            Place::Indices(indices) => {
                let mut load = |slice: &Slice, ty: PrimitiveType| -> Result<i64> {
                    let mut bytes = [0; 8];
                    let bytes = &mut bytes[..ty.byte_width().min(8)];
                    let address = addresses[slice.alloc.index()] + slice.offset;
                    self.stream.copy_out(bytes, address)?;
                    Ok(integer(bytes, ty.is_signed()))
                };
                let mut total = 0_i64;
                for index in indices {
                    let wanted = index.index.value(&mut load)?;
                    let at = wanted.clamp(0, index.last.max(0));
                    let bytes = at.saturating_mul(index.stride.cast_signed());
                    total = total.saturating_add(bytes);
                }
                Ok(total)
            }
        }
    }

    fn launch(
        &self,
        function: Function,
        shape: &Shape,
        arguments: &[Argument],
        name: &str,
    ) -> Result<()> {
        let launch = &shape.launch;
        let mut attributes = Vec::new();
        if shape.early {
            // SAFETY: zero is a value of every field.
            let mut early: sys::CUlaunchAttribute = unsafe { std::mem::zeroed() };
            early.id =
                sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
            early.value.programmaticStreamSerializationAllowed = 1;
            attributes.push(early);
        }
        if let Some([x, y, z]) = launch.cluster {
            // SAFETY: zero is a value of every field.
            let mut cluster: sys::CUlaunchAttribute = unsafe { std::mem::zeroed() };
            cluster.id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
            cluster.value.clusterDim = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
            attributes.push(cluster);
        }
        // The check of the executable has bounded the grid.
        let [grid_x, grid_y, grid_z] = launch.workgroups.map(|n| n as u32);
        let [block_x, block_y, block_z] = launch.workitems;
        let config = sys::CUlaunchConfig {
            gridDimX: grid_x,
            gridDimY: grid_y,
            gridDimZ: grid_z,
            blockDimX: block_x,
            blockDimY: block_y,
            blockDimZ: block_z,
            sharedMemBytes: launch.shared_bytes,
            hStream: self.stream.handle,
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as u32,
        };
        let arguments = arguments.iter();
        let mut arguments: Vec<*mut c_void> = arguments.map(Argument::place).collect();
        // SAFETY: one value for each parameter, as the check of the executable has it; the driver
        // copies them before it returns. What the kernel does with them is the trust of running it.
        let status = unsafe {
            (self.device.api.launch)(
                &raw const config,
                function.0,
                arguments.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        self.device.check(status, || {
            format!(
                "launching `{name}` on {grid_x}x{grid_y}x{grid_z} blocks of \
                 {block_x}x{block_y}x{block_z} threads with {} bytes of shared memory",
                launch.shared_bytes
            )
        })
    }

    fn copy(&self, from: Block, to: Block) -> Result<()> {
        if from.size == 0 || from.address == to.address {
            return Ok(());
        }
        let size = from.size.min(to.size);
        // SAFETY: both blocks lie in memory of the bound program.
        let status =
            unsafe { (self.device.api.copy)(to.address, from.address, size, self.stream.handle) };
        self.device
            .check(status, || format!("copying {size} bytes"))
    }

    fn fill(&self, block: Block, value: u32) -> Result<()> {
        if value == 0 {
            return self.stream.zero(block.address, block.size);
        }
        if block.size == 0 {
            return Ok(());
        }
        // SAFETY: the block lies in memory of the bound program, and its size is a multiple of 4.
        let status = unsafe {
            (self.device.api.set_words)(block.address, value, block.size / 4, self.stream.handle)
        };
        self.device
            .check(status, || format!("filling {} bytes", block.size))
    }
}

/// The integer that bytes of a device hold.
fn integer(bytes: &[u8], signed: bool) -> i64 {
    let negative = signed && bytes.last().is_some_and(|&top| top >= 0x80);
    let mut all = [if negative { 0xff } else { 0 }; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(all)
}

/// Lets a kernel use that much shared memory.
pub(super) fn allow_shared_memory(device: &Device, function: Function, bytes: u32) -> Result<()> {
    let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    // SAFETY: the function is of a loaded module.
    let status = unsafe { (device.api.function_set)(function.0, attribute, bytes.cast_signed()) };
    device.api.check(status, codes::LOAD, || {
        format!("asking for {bytes} bytes of shared memory for a block")
    })
}
