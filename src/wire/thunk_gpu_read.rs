//! Thunks of the GPU runtime on the wire (`xla.gpu.ThunkProto`): reading.
//!
//! Kernels are collected as thunks name them. Work on another stream is read as work in order, which
//! is one of its legal orders. What this program cannot run becomes a foreign thunk with its slices.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::base::Arena;
use crate::base::Result;
use crate::executable::Access;
use crate::executable::AllocId;
use crate::executable::Allocation;
use crate::executable::BufferUse;
use crate::executable::Code;
use crate::executable::ConditionalThunk;
use crate::executable::CopyThunk;
use crate::executable::CustomCallThunk;
use crate::executable::FftThunk;
use crate::executable::KernelEntry;
use crate::executable::KernelId;
use crate::executable::KernelImage;
use crate::executable::KernelThunk;
use crate::executable::Launch;
use crate::executable::ShapedSlice;
use crate::executable::Thunk;
use crate::executable::ThunkKind;
use crate::executable::ThunkSequence;
use crate::executable::WhileThunk;
use crate::executable::WindowsThunk;
use crate::proto::stream_executor as se;
use crate::proto::xla as pb;
use crate::proto::xla::buffer_assignment::BufferAllocationSliceProto;
use crate::proto::xla::gpu;
use crate::proto::xla::gpu::thunk_proto::Impl;
use crate::wire::alloc::Slices;
use crate::wire::ffi_attributes;
use crate::wire::number::bad;
use crate::wire::number::index;
use crate::wire::shape::decode_packed;
use crate::wire::thunk_gpu_collective as collective;
use crate::wire::thunk_gpu_gemm::gemm;
use crate::wire::thunk_gpu_gemm::matmul;
use crate::wire::thunk_gpu_launch::Buffers;
use crate::wire::thunk_gpu_launch::Wanted;
use crate::wire::thunk_gpu_launch::buffers;
use crate::wire::thunk_gpu_launch::launch;
use crate::wire::thunk_gpu_windows::windows;

/// Sequences nested deeper than this are refused.
const MAX_NESTING: usize = 64;

/// The name of the image for kernels that share the executable's binary.
const SHARED_IMAGE: &str = "binary";

/// Reads thunks against allocations; collects kernels and images on the way.
pub(super) struct Reader {
    /// The program's allocations, and behind them the windows that thunks have on them.
    pub(super) allocs: Arena<AllocId, Allocation>,
    /// The allocations that the thunks now read name.
    named: Range<usize>,
    pub(super) kernels: Arena<KernelId, KernelEntry>,
    pub(super) images: Vec<KernelImage>,
    /// Kernel names with the position of the image they are in.
    known: BTreeMap<(String, usize), KernelId>,
}

type ReadSlices<'p> = (&'p [Option<&'p pb::ShapedSliceProto>], Access);

impl Reader {
    pub(super) fn new(allocs: Arena<AllocId, Allocation>) -> Self {
        Self {
            named: 0..allocs.len(),
            allocs,
            kernels: Arena::new(),
            images: Vec::new(),
            known: BTreeMap::new(),
        }
    }

    fn slices(&self) -> Slices<'_> {
        Slices::of(&self.allocs, self.named.clone())
    }

    /// The sequence that protos describe.
    pub(super) fn sequence(
        &mut self,
        protos: &[gpu::ThunkProto],
        depth: usize,
    ) -> Result<ThunkSequence> {
        if depth > MAX_NESTING {
            return Err(bad(format!("thunks nest deeper than {MAX_NESTING}")));
        }
        let mut thunks = Vec::with_capacity(protos.len());
        for (i, proto) in protos.iter().enumerate() {
            let origin = proto.thunk_info.as_ref();
            let origin = origin.map(|info| info.profile_annotation.clone());
            let origin = origin.unwrap_or_default();
            let message = proto.r#impl.as_ref();
            let message = message.ok_or_else(|| {
                bad(format!(
                    "thunk {i} `{origin}` is of no kind this reader knows"
                ))
            })?;
            let kind = self.kind(message, depth).map_err(|e| {
                e.or_at(|| crate::base::Location::Path(format!("thunks[{i}] `{origin}`")))
            })?;
            thunks.push(Thunk { origin, kind });
        }
        Ok(ThunkSequence(thunks))
    }

    fn nested(
        &mut self,
        proto: Option<&gpu::ThunkSequenceProto>,
        depth: usize,
    ) -> Result<ThunkSequence> {
        match proto {
            Some(proto) => self.sequence(&proto.thunks, depth + 1),
            None => Ok(ThunkSequence::default()),
        }
    }

    fn kind(&mut self, message: &Impl, depth: usize) -> Result<ThunkKind> {
        let s = self.slices();
        Ok(match message {
            Impl::CustomKernelThunk(p) => return self.custom_kernel(p),
            Impl::KernelThunk(p) => return self.shared_kernel(p),
            Impl::SequentialThunk(p) => ThunkKind::Call(self.sequence(&p.thunks, depth + 1)?),
            Impl::CollectiveGroupThunk(p) => ThunkKind::Call(self.sequence(&p.thunks, depth + 1)?),
            Impl::AsyncStartThunk(p) => ThunkKind::Call(self.nested(p.thunks.as_ref(), depth)?),
            Impl::AsyncDoneThunk(_) => ThunkKind::Call(ThunkSequence::default()),
            Impl::CopyThunk(p) => self.copy(Some(p))?,
            Impl::DeviceToDeviceCopyThunk(p) => self.copy(p.copy_thunk.as_ref())?,
            Impl::DeviceToHostCopyThunk(p) => self.copy(p.copy_thunk.as_ref())?,
            Impl::HostToDeviceCopyThunk(p) => self.copy(p.copy_thunk.as_ref())?,
            Impl::WhileThunk(p) => ThunkKind::While(Box::new(WhileThunk {
                predicate: s.slice(p.condition_result_buffer_index.as_ref())?,
                trip_count: match p.trip_count {
                    Some(count) => Some(index(count, "a trip count")? as u64),
                    None => None,
                },
                condition: self.nested(p.condition_thunk_sequence.as_ref(), depth)?,
                body: self.nested(p.body_thunk_sequence.as_ref(), depth)?,
            })),
            Impl::ConditionalThunk(p) => {
                let index = s.shaped(p.branch_index_buffer.as_ref())?;
                let mut branches = Vec::new();
                for branch in &p.branch_thunks {
                    branches.push(self.sequence(&branch.thunks, depth + 1)?);
                }
                ThunkKind::Conditional(Box::new(ConditionalThunk {
                    branch_index: index.slice,
                    is_pred: index.shape.ty == crate::shape::PrimitiveType::Pred,
                    branches,
                }))
            }
            Impl::DynamicSliceFusionThunk(p) => self.windows(p, depth)?,
            Impl::GemmThunk(p) => ThunkKind::Gemm(Box::new(gemm(p, &s)?)),
            Impl::CublasLtMatmulThunk(p) => match matmul(p, &s)? {
                Some(thunk) => ThunkKind::Gemm(Box::new(thunk)),
                None => self.foreign(message)?,
            },
            Impl::MemzeroThunk(p) => ThunkKind::Memset {
                destination: s.shaped(p.dest_buffer.as_ref())?.slice,
                value: 0,
            },
            Impl::Memset32bitValueThunk(p) => ThunkKind::Memset {
                destination: s.slice(p.dest_buffer.as_ref())?,
                value: p.value,
            },
            Impl::FftThunk(p) => self.fft(p)?,
            Impl::CustomCallThunk(p) => self.custom_call(p)?,
            Impl::ReplicaIdThunk(p) => ThunkKind::ReplicaId(s.slice(p.dest_buffer.as_ref())?),
            Impl::PartitionIdThunk(p) => ThunkKind::PartitionId(s.slice(p.dest_buffer.as_ref())?),
            Impl::RngSeedThunk(p) => ThunkKind::RngSeed(s.slice(p.dest_buffer.as_ref())?),
            _ => match collective::decode(message, &s)? {
                Some(kind) => kind,
                None => self.foreign(message)?,
            },
        })
    }

    fn copy(&self, proto: Option<&gpu::CopyThunkProto>) -> Result<ThunkKind> {
        let proto = proto.ok_or_else(|| bad("a copy thunk without content"))?;
        let source = self.slices().shaped(proto.source_buffer.as_ref())?;
        let mut destination = self.slices().shaped(proto.destination_buffer.as_ref())?;
        // It moves bytes, whatever the arrays are called; the layouts may differ when that is the
        // point of the copy.
        if source.shape.byte_size() == destination.shape.byte_size() {
            destination.shape = source.shape.clone();
        }
        Ok(ThunkKind::Copy(CopyThunk {
            source,
            destination,
        }))
    }

    fn windows(
        &mut self,
        proto: &gpu::DynamicSliceFusionThunkProto,
        depth: usize,
    ) -> Result<ThunkKind> {
        let first = self.allocs.len();
        let read = windows(proto, &self.slices(), first)?;
        let mut windows = Vec::with_capacity(read.len());
        for (window, allocation) in read {
            self.allocs.push(allocation);
            windows.push(window);
        }
        let outer = std::mem::replace(&mut self.named, first..self.allocs.len());
        let thunks = self.nested(proto.embedded_thunks.as_ref(), depth);
        self.named = outer;
        Ok(ThunkKind::Windows(Box::new(WindowsThunk {
            windows,
            thunks: thunks?,
        })))
    }

    fn fft(&self, p: &gpu::FftThunkProto) -> Result<ThunkKind> {
        let side = |slice: &Option<BufferAllocationSliceProto>, shape: &Option<pb::ShapeProto>| {
            let shape = shape.as_ref();
            let read: Result<ShapedSlice> = Ok(ShapedSlice {
                slice: self.slices().slice(slice.as_ref())?,
                shape: decode_packed(shape.ok_or_else(|| bad("a transform without a shape"))?)?,
            });
            read
        };
        Ok(ThunkKind::Fft(FftThunk {
            kind: p.fft_type,
            lengths: p.fft_length.clone(),
            multi_threaded: false,
            input: side(&p.input_buffer, &p.input_shape)?,
            output: side(&p.output_buffer, &p.output_shape)?,
        }))
    }

    fn custom_call(&self, p: &gpu::CustomCallThunkProto) -> Result<ThunkKind> {
        let list = |slices: &[pb::NullableShapedSliceProto]| -> Result<Vec<_>> {
            let slice = |p: &pb::NullableShapedSliceProto| match &p.shaped_slice {
                Some(shaped) => self.slices().shaped(Some(shaped)).map(Some),
                None => Ok(None),
            };
            slices.iter().map(slice).collect()
        };
        Ok(ThunkKind::CustomCall(Box::new(CustomCallThunk {
            target: p.target_name.clone(),
            api_version: p.api_version,
            backend_config: match &p.attributes {
                Some(attributes) => ffi_attributes::print(attributes)?,
                None => String::from_utf8_lossy(&p.opaque).into_owned(),
            },
            operands: list(&p.operands)?,
            results: list(&p.results)?,
            is_tuple_result: None,
        })))
    }

    /// A kernel thunk with its own code. Kernels that are part of their producer are foreign.
    fn custom_kernel(&mut self, p: &gpu::CustomKernelThunkProto) -> Result<ThunkKind> {
        use se::kernel_loader_spec_proto::Payload;
        let kernel = p.custom_kernel.as_ref();
        let kernel = kernel.ok_or_else(|| bad("a kernel thunk without a kernel"))?;
        let spec = kernel.kernel_spec.as_ref();
        let spec = spec.ok_or_else(|| bad(format!("`{}` has no loader spec", kernel.name)))?;
        let shaped = p.args.iter().map(|arg| self.slices().shaped(Some(arg)));
        let shaped: Vec<ShapedSlice> = shaped.collect::<Result<_>>()?;
        if p.written.len() != shaped.len() {
            return Err(bad(format!(
                "`{}` has {} arguments and {} written flags",
                kernel.name,
                shaped.len(),
                p.written.len()
            )));
        }
        let code = match &spec.payload {
            Some(Payload::Ptx(ptx)) => Some(Code::Ptx(ptx.data.clone())),
            Some(Payload::Cubin(cubin)) => Some(Code::Cubin(cubin.data.clone())),
            Some(Payload::InProcessSymbol(_)) => None,
            None => return Err(bad(format!("`{}` has no code", kernel.name))),
        };
        let Some(code) = code else {
            return Ok(foreign_kernel(&kernel.name, &shaped, &p.written));
        };
        let launch = launch(
            kernel.block_dims.and_then(|d| d.coordinates),
            kernel.thread_dims.and_then(|d| d.coordinates),
            kernel.cluster_dim.and_then(|d| d.coordinates),
            kernel.shared_memory_bytes,
        )?;
        let wanted = Wanted {
            written: &p.written,
            packing: spec.kernel_args_packing_spec.as_ref(),
            zeroed: &p.zeroed_output_buffer_indices,
            maps: p.tma_metadata.as_ref(),
            early: p.use_pdl,
            // XLA always says how it packs arguments, this compiler never does.
            overreads: spec.kernel_args_packing_spec.is_some(),
        };
        let arity = shaped.len();
        let buffers = buffers(shaped, &wanted)?;
        let image = self.image(&kernel.name, code);
        let id = self.kernel_in(&spec.kernel_name, image, arity);
        Ok(kernel_thunk(id, launch, buffers))
    }

    /// A kernel thunk whose code is in the executable's binary.
    fn shared_kernel(&mut self, p: &gpu::KernelThunkProto) -> Result<ThunkKind> {
        if p.written.len() != p.args.len() || p.args_shape.len() != p.args.len() {
            return Err(bad(format!(
                "`{}` has {} arguments, {} shapes and {} written flags",
                p.kernel_name,
                p.args.len(),
                p.args_shape.len(),
                p.written.len()
            )));
        }
        let mut shaped = Vec::new();
        for (slice, shape) in p.args.iter().zip(&p.args_shape) {
            shaped.push(ShapedSlice {
                slice: self.slices().slice(Some(slice))?,
                shape: decode_packed(shape)?,
            });
        }
        let dims = p.launch_dimensions.unwrap_or_default();
        let launch = launch(
            dims.block_counts.and_then(|d| d.coordinates),
            dims.thread_counts_per_block.and_then(|d| d.coordinates),
            p.cluster_dim.and_then(|d| d.coordinates),
            p.shmem_bytes,
        )?;
        let wanted = Wanted {
            written: &p.written,
            packing: None,
            zeroed: &p.zeroed_output_buffer_indices,
            maps: p.tma_metadata.as_ref(),
            early: p.use_pdl,
            overreads: true,
        };
        let arity = shaped.len();
        let buffers = buffers(shaped, &wanted)?;
        // The caller fills in the code of the shared image once all thunks are read.
        let image = self.image(SHARED_IMAGE, Code::Cubin(Vec::new()));
        let id = self.kernel_in(&p.kernel_name, image, arity);
        Ok(kernel_thunk(id, launch, buffers))
    }

    /// Gives kernels that share the executable's binary their code.
    pub(super) fn fill_shared(&mut self, binary: &[u8]) {
        let shared = self.images.iter_mut();
        let shared = shared.filter(|i| i.name == SHARED_IMAGE && i.code.bytes().is_empty());
        for image in shared {
            image.code = code_of(binary);
        }
    }

    /// The position of the image with that code, added when it is new.
    fn image(&mut self, name: &str, code: Code) -> usize {
        let mut images = self.images.iter();
        if let Some(found) = images.position(|image| image.code == code) {
            return found;
        }
        self.images.push(KernelImage {
            name: name.to_owned(),
            kernels: Vec::new(),
            code,
        });
        self.images.len() - 1
    }

    fn kernel_in(&mut self, name: &str, image: usize, arity: usize) -> KernelId {
        let key = (name.to_owned(), image);
        if let Some(id) = self.known.get(&key) {
            return *id;
        }
        let id = self.kernels.push(KernelEntry {
            name: name.to_owned(),
            arity: Some(arity),
            is_comparator: false,
        });
        self.images[image].kernels.push(id);
        self.known.insert(key, id);
        id
    }

    fn foreign(&self, message: &Impl) -> Result<ThunkKind> {
        let mut uses = Vec::new();
        let name = match message {
            Impl::TriangularSolveThunk(p) => {
                let (a, b, temp) = (
                    p.a_buffer.as_ref(),
                    p.b_buffer.as_ref(),
                    p.temp_buffer.as_ref(),
                );
                self.shaped((&[a], Access::Read), &mut uses)?;
                self.shaped((&[b], Access::ReadWrite), &mut uses)?;
                self.shaped((&[temp], Access::Write), &mut uses)?;
                "triangular-solve"
            }
            Impl::CudnnThunk(p) => {
                for (i, arg) in p.args.iter().enumerate() {
                    let written = p.output_args.get(i).copied().unwrap_or(false);
                    let access = if written { Access::Write } else { Access::Read };
                    self.shaped((&[Some(arg)], access), &mut uses)?;
                }
                "cudnn"
            }
            Impl::CublasLtMatmulThunk(p) => {
                let reads = [&p.a, &p.b, &p.c, &p.bias, &p.a_scale, &p.b_scale].map(Option::as_ref);
                let more = [&p.c_scale, &p.d_scale, &p.group_sizes].map(Option::as_ref);
                let writes = [&p.d, &p.aux, &p.d_amax, &p.workspace].map(Option::as_ref);
                self.shaped((&reads, Access::Read), &mut uses)?;
                self.shaped((&more, Access::Read), &mut uses)?;
                self.shaped((&writes, Access::Write), &mut uses)?;
                "cublas-lt-matmul"
            }
            Impl::NormThunk(p) => {
                let reads = [p.x, p.scale, p.bias, p.dy];
                let writes = [p.y_or_dx, p.dscale, p.dbias, p.scratch];
                self.plain(&reads, Access::Read, &mut uses)?;
                self.plain(
                    &[p.expectation, p.norm_factor],
                    Access::ReadWrite,
                    &mut uses,
                )?;
                self.plain(&writes, Access::Write, &mut uses)?;
                "norm"
            }
            Impl::ConvolutionThunk(p) => {
                let reads: Vec<_> = p.operand_buffers.iter().map(Some).collect();
                let writes: Vec<_> = p.result_buffers.iter().map(Some).collect();
                self.shaped((&reads, Access::Read), &mut uses)?;
                self.shaped((&writes, Access::Write), &mut uses)?;
                self.plain(&[p.scratch_buffer], Access::Write, &mut uses)?;
                "convolution"
            }
            Impl::SelectKThunk(p) => {
                for (i, slice) in p.args.iter().enumerate() {
                    let access = if i == 0 { Access::Read } else { Access::Write };
                    self.plain(&[Some(*slice)], access, &mut uses)?;
                }
                "select-k"
            }
            Impl::InfeedThunk(_) => "infeed",
            Impl::OutfeedThunk(_) => "outfeed",
            Impl::HostExecuteStartThunk(_) => "host-execute-start",
            Impl::HostExecuteDoneThunk(_) => "host-execute-done",
            Impl::HostSendThunk(_) => "host-send",
            Impl::HostSendDoneThunk(_) => "host-send-done",
            Impl::HostRecvThunk(_) => "host-recv",
            Impl::HostRecvDoneThunk(_) => "host-recv-done",
            Impl::ConvolutionReorderThunk(_) => "convolution-reorder",
            Impl::RaggedAllToAllThunk(_) => "ragged-all-to-all",
            Impl::SendThunk(_) => "send",
            Impl::RecvThunk(_) => "recv",
            Impl::CollectiveKernelThunk(_) => "collective-kernel",
            _ => "unknown",
        };
        Ok(ThunkKind::Foreign {
            name: name.to_owned(),
            uses,
        })
    }

    fn plain(
        &self,
        slices: &[Option<BufferAllocationSliceProto>],
        access: Access,
        uses: &mut Vec<BufferUse>,
    ) -> Result<()> {
        for slice in slices.iter().flatten() {
            let slice = self.slices().slice(Some(slice))?;
            uses.push(BufferUse { slice, access });
        }
        Ok(())
    }

    fn shaped(&self, (slices, access): ReadSlices<'_>, uses: &mut Vec<BufferUse>) -> Result<()> {
        for shaped in slices.iter().flatten() {
            let slice = self.slices().slice(shaped.slice.as_ref())?;
            uses.push(BufferUse { slice, access });
        }
        Ok(())
    }
}

/// Code in the form its bytes have: PTX text, or a binary for the driver.
pub(super) fn code_of(bytes: &[u8]) -> Code {
    let text = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    match std::str::from_utf8(text) {
        Ok(text) if text.contains(".version") => Code::Ptx(text.to_owned()),
        _ => Code::Cubin(bytes.to_vec()),
    }
}

fn foreign_kernel(name: &str, slices: &[ShapedSlice], written: &[bool]) -> ThunkKind {
    let uses = slices.iter().zip(written);
    ThunkKind::Foreign {
        name: format!("kernel {name}"),
        uses: uses
            .map(|(shaped, &written)| BufferUse {
                slice: shaped.slice,
                access: if written { Access::Write } else { Access::Read },
            })
            .collect(),
    }
}

fn kernel_thunk(kernel: KernelId, launch: Launch, buffers: Buffers) -> ThunkKind {
    ThunkKind::Kernel(KernelThunk {
        kernel,
        launch,
        args: buffers.args,
        results: buffers.results,
        passing: buffers.passing,
    })
}
