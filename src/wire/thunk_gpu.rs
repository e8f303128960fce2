//! Thunks of the GPU runtime on the wire (`xla.gpu.ThunkProto`): writing.
//!
//! A kernel travels with its own code in a custom-kernel thunk: arguments first, then results, one
//! device pointer each. Thunks get ids in depth-first order from one on.

use std::collections::BTreeMap;

use crate::base::Arena;
use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::executable::Code;
use crate::executable::ConditionalThunk;
use crate::executable::CopyThunk;
use crate::executable::CustomCallThunk;
use crate::executable::FftThunk;
use crate::executable::KernelEntry;
use crate::executable::KernelId;
use crate::executable::KernelImage;
use crate::executable::KernelThunk;
use crate::executable::Passing;
use crate::executable::ShapedSlice;
use crate::executable::Slice;
use crate::executable::ThunkKind;
use crate::executable::ThunkSequence;
use crate::executable::WhileThunk;
use crate::proto::stream_executor as se;
use crate::proto::xla as pb;
use crate::proto::xla::gpu;
use crate::proto::xla::gpu::thunk_proto::Impl;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;
use crate::wire::alloc::encode_shaped;
use crate::wire::alloc::encode_slice;
use crate::wire::ffi_attributes;
use crate::wire::number::bad;
use crate::wire::number::number;
use crate::wire::shape::encode_packed;
use crate::wire::thunk_gpu_collective;

/// The number of the typed FFI among custom-call API versions.
const TYPED_FFI: i32 = 4;

fn not_on_gpu(what: &str) -> Box<Diagnostic> {
    Diagnostic::unsupported(
        codes::BUNDLE_UNSUPPORTED,
        format!("a GPU bundle cannot hold {what}"),
    )
}

/// Writes thunks with the code of the executable's kernels.
pub(super) struct Writer<'a> {
    kernels: &'a Arena<KernelId, KernelEntry>,
    images: BTreeMap<KernelId, &'a Code>,
    next_id: i64,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        kernels: &'a Arena<KernelId, KernelEntry>,
        images: &'a [KernelImage],
    ) -> Self {
        let pairs = images.iter().flat_map(|image| {
            let ids = image.kernels.iter();
            ids.map(|id| (*id, &image.code))
        });
        Self {
            kernels,
            images: pairs.collect(),
            next_id: 1,
        }
    }

    /// The protos of a sequence.
    ///
    /// # Errors
    /// `XA7003` for a thunk that the GPU runtime has no message for.
    pub(super) fn sequence(&mut self, sequence: &ThunkSequence) -> Result<Vec<gpu::ThunkProto>> {
        let mut protos = Vec::with_capacity(sequence.0.len());
        for thunk in &sequence.0 {
            let thunk_id = self.next_id;
            self.next_id += 1;
            let message = self.kind(&thunk.kind)?;
            protos.push(gpu::ThunkProto {
                thunk_info: Some(gpu::ThunkInfoProto {
                    profile_annotation: thunk.origin.clone(),
                    thunk_id,
                    concurrent_region_id: None,
                }),
                r#impl: Some(message),
            });
        }
        Ok(protos)
    }

    fn nested(&mut self, sequence: &ThunkSequence) -> Result<gpu::ThunkSequenceProto> {
        Ok(gpu::ThunkSequenceProto {
            thunks: self.sequence(sequence)?,
        })
    }

    fn kind(&mut self, kind: &ThunkKind) -> Result<Impl> {
        Ok(match kind {
            ThunkKind::Kernel(thunk) => Impl::CustomKernelThunk(self.kernel(thunk)?),
            ThunkKind::Copy(copy) => Impl::DeviceToDeviceCopyThunk(encode_copy(copy)?),
            ThunkKind::Memset { destination, value } => encode_memset(destination, *value),
            ThunkKind::Call(sequence) => Impl::SequentialThunk(gpu::SequentialThunkProto {
                thunks: self.sequence(sequence)?,
            }),
            ThunkKind::While(thunk) => Impl::WhileThunk(self.encode_while(thunk)?),
            ThunkKind::Conditional(thunk) => Impl::ConditionalThunk(self.conditional(thunk)?),
            ThunkKind::Fft(fft) => Impl::FftThunk(encode_fft(fft)),
            ThunkKind::CustomCall(call) => Impl::CustomCallThunk(encode_custom_call(call)?),
            ThunkKind::ReplicaId(slice) => Impl::ReplicaIdThunk(gpu::ReplicaIdThunkProto {
                dest_buffer: Some(encode_slice(slice)),
            }),
            ThunkKind::PartitionId(slice) => Impl::PartitionIdThunk(gpu::PartitionIdThunkProto {
                dest_buffer: Some(encode_slice(slice)),
            }),
            ThunkKind::Collective(thunk) => thunk_gpu_collective::encode(thunk)?,
            ThunkKind::RngSeed(slice) => Impl::RngSeedThunk(gpu::RngSeedThunkProto {
                dest_buffer: Some(encode_slice(slice)),
            }),
            ThunkKind::Sort(_)
            | ThunkKind::Dot(_)
            | ThunkKind::Convolution(_)
            | ThunkKind::TopK(_)
            | ThunkKind::LibraryFusion(_)
            | ThunkKind::Windows(_)
            | ThunkKind::Gemm(_)
            | ThunkKind::RngGetAndUpdateState { .. }
            | ThunkKind::Foreign { .. } => {
                return Err(not_on_gpu(&format!("the thunk `{}`", kind.name())));
            }
        })
    }

    fn encode_while(&mut self, thunk: &WhileThunk) -> Result<gpu::WhileThunkProto> {
        Ok(gpu::WhileThunkProto {
            condition_result_buffer_index: Some(encode_slice(&thunk.predicate)),
            condition_thunk_sequence: Some(self.nested(&thunk.condition)?),
            body_thunk_sequence: Some(self.nested(&thunk.body)?),
            trip_count: thunk.trip_count.map(u64::cast_signed),
        })
    }

    fn conditional(&mut self, thunk: &ConditionalThunk) -> Result<gpu::ConditionalThunkProto> {
        let ty = match thunk.is_pred {
            true => PrimitiveType::Pred,
            false => PrimitiveType::S32,
        };
        let mut branch_thunks = Vec::new();
        for branch in &thunk.branches {
            branch_thunks.push(self.nested(branch)?);
        }
        Ok(gpu::ConditionalThunkProto {
            branch_index_buffer: Some(pb::ShapedSliceProto {
                slice: Some(encode_slice(&thunk.branch_index)),
                shape: Some(encode_packed(&row_major(ty, []))),
            }),
            branch_thunks,
        })
    }

    fn kernel(&self, thunk: &KernelThunk) -> Result<gpu::CustomKernelThunkProto> {
        use se::kernel_loader_spec_proto::Payload;
        let entry = self.kernels.get(thunk.kernel);
        let entry = entry.ok_or_else(|| bad(format!("{:?} does not exist", thunk.kernel)))?;
        let code = self.images.get(&thunk.kernel);
        let code = code.ok_or_else(|| bad(format!("no image holds `{}`", entry.name)))?;
        let payload = match code {
            Code::Ptx(text) => Payload::Ptx(se::CudaPtxProto { data: text.clone() }),
            Code::Cubin(bytes) => Payload::Cubin(se::CudaCubinProto {
                data: bytes.clone(),
            }),
            Code::Elf(_) => return Err(not_on_gpu("code of a CPU")),
        };
        let passing = Passing {
            early: false,
            overreads: false,
            ..thunk.passing.clone()
        };
        if !passing.is_plain() {
            return Err(not_on_gpu(&format!(
                "the kernel `{}`, which another producer launches in a way of its own",
                entry.name
            )));
        }
        let arity = thunk.args.len() + thunk.results.len();
        let launch = &thunk.launch;
        let groups = launch.workgroups.map(u64::cast_signed);
        let args = thunk.args.iter().chain(&thunk.results);
        Ok(gpu::CustomKernelThunkProto {
            args: args.map(encode_shaped).collect(),
            written: (0..arity).map(|i| i >= thunk.args.len()).collect(),
            custom_kernel: Some(gpu::CustomKernelProto {
                name: entry.name.clone(),
                kernel_spec: Some(se::KernelLoaderSpecProto {
                    arity: i32::try_from(arity).unwrap_or(i32::MAX),
                    kernel_name: entry.name.clone(),
                    kernel_args_packing_spec: None,
                    payload: Some(payload),
                }),
                block_dims: Some(se::BlockDimProto {
                    coordinates: Some(dim3(groups)),
                }),
                thread_dims: Some(se::ThreadDimProto {
                    coordinates: Some(dim3(launch.workitems.map(i64::from))),
                }),
                cluster_dim: launch.cluster.map(|cluster| se::ClusterDimProto {
                    coordinates: Some(dim3(cluster.map(i64::from))),
                }),
                shared_memory_bytes: i64::from(launch.shared_bytes),
            }),
            use_pdl: thunk.passing.early,
            zeroed_output_buffer_indices: Vec::new(),
            tma_metadata: None,
        })
    }
}

fn dim3([x, y, z]: [i64; 3]) -> se::Dim3DProto {
    se::Dim3DProto { x, y, z }
}

fn row_major(ty: PrimitiveType, dims: impl IntoIterator<Item = usize>) -> ArrayShape {
    let mut shape = ArrayShape::new(ty, dims);
    shape.layout = Some(shape.layout_or_default());
    shape
}

/// A copy of bytes; the runtime does not transpose.
fn encode_copy(copy: &CopyThunk) -> Result<gpu::DeviceToDeviceCopyThunkProto> {
    let (from, to) = (&copy.source.shape, &copy.destination.shape);
    let same_layout =
        from.layout_or_default().minor_to_major == to.layout_or_default().minor_to_major;
    if from.same_dims(to) && !same_layout {
        return Err(not_on_gpu("a copy that changes the layout"));
    }
    Ok(gpu::DeviceToDeviceCopyThunkProto {
        copy_thunk: Some(gpu::CopyThunkProto {
            source_buffer: Some(encode_shaped(&copy.source)),
            destination_buffer: Some(encode_shaped(&copy.destination)),
            mem_size: copy.source.slice.size.cast_signed(),
        }),
    })
}

fn encode_memset(destination: &Slice, value: u32) -> Impl {
    if value != 0 {
        return Impl::Memset32bitValueThunk(gpu::Memset32BitValueThunkProto {
            dest_buffer: Some(encode_slice(destination)),
            value,
        });
    }
    let words = usize::try_from(destination.size / 4).unwrap_or(usize::MAX);
    Impl::MemzeroThunk(gpu::MemzeroThunkProto {
        dest_buffer: Some(encode_shaped(&ShapedSlice {
            slice: *destination,
            shape: row_major(PrimitiveType::U32, [words]),
        })),
    })
}

fn encode_fft(fft: &FftThunk) -> gpu::FftThunkProto {
    gpu::FftThunkProto {
        fft_type: fft.kind,
        fft_length: fft.lengths.clone(),
        input_buffer: Some(encode_slice(&fft.input.slice)),
        output_buffer: Some(encode_slice(&fft.output.slice)),
        input_shape: Some(encode_packed(&fft.input.shape)),
        output_shape: Some(encode_packed(&fft.output.shape)),
    }
}

fn encode_custom_call(call: &CustomCallThunk) -> Result<gpu::CustomCallThunkProto> {
    // A typed call has attributes where another one has text.
    let is_typed = call.api_version == TYPED_FFI;
    let attributes = match is_typed {
        false => None,
        true => Some(ffi_attributes::parse(&call.backend_config).ok_or_else(|| {
            not_on_gpu(&format!(
                "the typed FFI call of `{}`, whose attributes this program does not parse",
                call.target
            ))
        })?),
    };
    let opaque = match is_typed {
        false => call.backend_config.clone().into_bytes(),
        true => Vec::new(),
    };
    let slices = |list: &[Option<ShapedSlice>]| {
        let list = list.iter();
        list.map(|slice| pb::NullableShapedSliceProto {
            shaped_slice: slice.as_ref().map(encode_shaped),
        })
        .collect()
    };
    Ok(gpu::CustomCallThunkProto {
        target_name: call.target.clone(),
        operands: slices(&call.operands),
        results: slices(&call.results),
        opaque,
        api_version: call.api_version,
        attributes,
        called_computation: None,
        execution_state: None,
        use_pdl: false,
    })
}

/// The text that loaders want beside the allocations; for people.
pub(super) fn allocation_summary(
    allocs: &Arena<crate::executable::AllocId, crate::executable::Allocation>,
) -> String {
    let mut text = format!("{} allocations\n", allocs.len());
    for (id, allocation) in allocs.iter() {
        text += &format!(
            "{}: {} bytes, {:?}{}\n",
            number(crate::base::Id::index(id)),
            allocation.size.0,
            allocation.kind,
            if allocation.live_out {
                ", live out"
            } else {
                ""
            }
        );
    }
    text
}
