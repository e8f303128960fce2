//! Thunks of the CPU runtime on the wire (`xla.cpu.ThunkProto`).
//!
//! Every kind that upstream serializes is read; the ones without a meaning here become foreign
//! thunks with their slices. Kind strings are checked against the message on reading upstream, so
//! they are written exactly.

use std::collections::BTreeMap;

use prost::Message;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::executable::Access;
use crate::executable::BufferUse;
use crate::executable::ConditionalThunk;
use crate::executable::CopyThunk;
use crate::executable::CustomCallThunk;
use crate::executable::DotThunk;
use crate::executable::FftThunk;
use crate::executable::KernelEntry;
use crate::executable::KernelId;
use crate::executable::KernelThunk;
use crate::executable::Launch;
use crate::executable::LibraryFusionThunk;
use crate::executable::Passing;
use crate::executable::ShapedSlice;
use crate::executable::SortThunk;
use crate::executable::Thunk;
use crate::executable::ThunkKind;
use crate::executable::ThunkSequence;
use crate::executable::TopKThunk;
use crate::executable::WhileThunk;
use crate::proto::xla as pb;
use crate::proto::xla::buffer_assignment::BufferAllocationSliceProto;
use crate::proto::xla::cpu;
use crate::proto::xla::cpu::thunk_proto::Impl;
use crate::wire::alloc::Slices;
use crate::wire::alloc::encode_shape_first;
use crate::wire::alloc::encode_shaped;
use crate::wire::alloc::encode_slice;
use crate::wire::fusion;
use crate::wire::hlo_view::HloView;
use crate::wire::number::bad;
use crate::wire::number::index;
use crate::wire::thunk_cpu_library as library;

/// Sequences nested deeper than this are refused.
const MAX_NESTING: usize = 64;

/// The alignment all our buffers have, which kernels may rely on.
const MIN_ALIGNMENT: i64 = 64;

/// How kernels name their buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelBuffers {
    /// With their shapes, as jaxlib does from 0.9.1 on.
    Shaped,
    /// Without, as it did up to 0.9.0.
    Bare,
}

/// Writes thunks with the names of the executable's kernels.
pub(super) struct Writer<'a> {
    pub(super) kernels: &'a crate::base::Arena<KernelId, KernelEntry>,
    pub(super) module_name: &'a str,
    pub(super) buffers: KernelBuffers,
}

impl Writer<'_> {
    /// The proto of a sequence.
    ///
    /// # Errors
    /// `XA7003` for a thunk that the CPU runtime has no message for.
    pub(super) fn sequence(&self, sequence: &ThunkSequence) -> Result<cpu::ThunkSequenceProto> {
        let thunks = sequence.0.iter().map(|thunk| self.thunk(thunk));
        Ok(cpu::ThunkSequenceProto {
            thunks: thunks.collect::<Result<_>>()?,
            thunk_resources: library::communicator_users(sequence),
        })
    }

    fn thunk(&self, thunk: &Thunk) -> Result<cpu::ThunkProto> {
        let (kind, message) = self.kind(&thunk.kind)?;
        Ok(cpu::ThunkProto {
            kind: kind.to_owned(),
            info: Some(cpu::InfoProto {
                op_name: thunk.origin.clone(),
                module_name: self.module_name.to_owned(),
                module_id: 0,
            }),
            r#impl: Some(message),
        })
    }

    fn kind(&self, kind: &ThunkKind) -> Result<(&'static str, Impl)> {
        Ok(match kind {
            ThunkKind::Kernel(kernel) => ("kernel", Impl::KernelThunk(self.kernel(kernel)?)),
            ThunkKind::Copy(copy) => ("copy", Impl::CopyThunk(encode_copy(copy))),
            ThunkKind::Call(sequence) => (
                "call",
                Impl::CallThunk(cpu::CallThunkProto {
                    called_sequence: Some(self.sequence(sequence)?),
                }),
            ),
            ThunkKind::While(thunk) => (
                "while",
                Impl::WhileThunk(cpu::WhileThunkProto {
                    cond_sequence: Some(self.sequence(&thunk.condition)?),
                    body_sequence: Some(self.sequence(&thunk.body)?),
                    trip_count: thunk.trip_count.map(|n| some_i64(n.cast_signed())),
                    cond_buffer: Some(encode_slice(&thunk.predicate)),
                }),
            ),
            ThunkKind::Conditional(thunk) => {
                let branches = thunk.branches.iter().map(|branch| self.sequence(branch));
                let message = cpu::ConditionalThunkProto {
                    branch_sequences: branches.collect::<Result<_>>()?,
                    branch_index_buffer: Some(encode_slice(&thunk.branch_index)),
                };
                ("conditional", Impl::ConditionalThunk(message))
            }
            ThunkKind::Sort(sort) => ("sort", Impl::SortThunk(encode_sort(sort))),
            ThunkKind::Dot(dot) => ("dot", Impl::DotThunk(encode_dot(dot))),
            ThunkKind::Convolution(thunk) => (
                "convolution",
                Impl::ConvolutionThunk(library::encode_convolution(thunk)),
            ),
            ThunkKind::Fft(fft) => ("fft", Impl::FftThunk(encode_fft(fft))),
            ThunkKind::TopK(topk) => ("topk", Impl::TopKThunk(encode_topk(topk))),
            ThunkKind::CustomCall(call) => (
                "custom-call",
                Impl::CustomCallThunk(encode_custom_call(call)?),
            ),
            ThunkKind::Collective(thunk) => (
                "collective",
                Impl::CollectiveThunk(library::encode_collective(thunk)?),
            ),
            ThunkKind::LibraryFusion(fusion) => {
                ("ynn-fusion", Impl::YnnFusionThunk(encode_ynn(fusion)))
            }
            ThunkKind::ReplicaId(slice) => (
                "replica-id",
                Impl::ReplicaIdThunk(cpu::ReplicaIdThunkProto {
                    logical_id_buffer: Some(encode_slice(slice)),
                }),
            ),
            ThunkKind::PartitionId(slice) => (
                "partition-id",
                Impl::PartitionIdThunk(cpu::PartitionIdThunkProto {
                    logical_id_buffer: Some(encode_slice(slice)),
                }),
            ),
            ThunkKind::RngGetAndUpdateState { state, delta } => (
                "rng-get-and-update-state",
                Impl::RngGetAndUpdateStateThunk(cpu::RngGetAndUpdateStateThunkProto {
                    delta: *delta,
                    state_buffer: Some(encode_slice(state)),
                }),
            ),
            ThunkKind::RngSeed(slice) => (
                "rng-seed",
                Impl::RngSeedThunk(cpu::RngSeedThunkProto {
                    dest_buffer: Some(encode_slice(slice)),
                }),
            ),
            ThunkKind::Memset { .. }
            | ThunkKind::Windows(_)
            | ThunkKind::Gemm(_)
            | ThunkKind::Foreign { .. } => {
                return Err(Diagnostic::unsupported(
                    codes::BUNDLE_UNSUPPORTED,
                    format!("a CPU bundle cannot hold the thunk `{}`", kind.name()),
                ));
            }
        })
    }

    fn kernel(&self, thunk: &KernelThunk) -> Result<cpu::KernelThunkProto> {
        let kernel = self.kernels.get(thunk.kernel);
        let kernel = kernel.ok_or_else(|| bad(format!("{:?} does not exist", thunk.kernel)))?;
        let [x, y, z] = thunk.launch.workgroups.map(u64::cast_signed);
        let encode = |slices: &[ShapedSlice]| -> Vec<Vec<u8>> {
            let encode = |s: &ShapedSlice| match self.buffers {
                KernelBuffers::Shaped => encode_shaped(s).encode_to_vec(),
                KernelBuffers::Bare => encode_slice(&s.slice).encode_to_vec(),
            };
            slices.iter().map(encode).collect()
        };
        Ok(cpu::KernelThunkProto {
            kernel_name: kernel.name.clone(),
            num_workgroups: Some(cpu::kernel_thunk_proto::NumWorkGroups { x, y, z }),
            invariant_arguments: invariant_arguments(thunk),
            min_alignment: Some(some_i64(MIN_ALIGNMENT)),
            arguments_buffers: encode(&thunk.args),
            results_buffers: encode(&thunk.results),
        })
    }
}

/// The arguments that share no byte with a result.
fn invariant_arguments(thunk: &KernelThunk) -> Vec<i64> {
    let args = (0..).zip(&thunk.args);
    args.filter(|(_, arg)| !thunk.results.iter().any(|r| r.slice.overlaps(&arg.slice)))
        .map(|(i, _)| i)
        .collect()
}

/// Fails when a slice begins where the kernel's code does not expect one: its loads and stores fault
/// there.
fn aligned(kernel: &str, thunk: &KernelThunk, alignment: i64) -> Result<()> {
    let alignment = u64::try_from(alignment).unwrap_or(0);
    if !alignment.is_power_of_two() {
        let what = "slices at multiples of";
        return Err(bad(format!(
            "the kernel `{kernel}` wants {what} {alignment}, no power of two"
        )));
    }
    let mut slices = thunk.args.iter().chain(&thunk.results);
    match slices.find(|s| !s.slice.offset.is_multiple_of(alignment)) {
        None => Ok(()),
        Some(found) => Err(bad(format!(
            "a slice of the kernel `{kernel}` begins at byte {} of its allocation, which is no multiple of the \
             {alignment} that the kernel relies on",
            found.slice.offset
        ))),
    }
}

fn some_i64(value: i64) -> cpu::Int64Optional {
    cpu::Int64Optional {
        value,
        contains_value: true,
    }
}

fn encode_copy(copy: &CopyThunk) -> cpu::CopyThunkProto {
    cpu::CopyThunkProto {
        src_buffer_shape: Some(encode_shape_first(&copy.source)),
        dst_buffer_shape: Some(encode_shape_first(&copy.destination)),
    }
}

fn encode_sort(sort: &SortThunk) -> cpu::SortThunkProto {
    cpu::SortThunkProto {
        dimension: sort.dimension,
        is_stable: sort.is_stable,
        direction: sort.direction.map(|value| cpu::SortDirectionOptional {
            value,
            contains_value: true,
        }),
        comparator_name: sort.comparator.clone(),
        inputs_shapes: sort.inputs.iter().map(encode_shape_first).collect(),
    }
}

fn encode_dot(dot: &DotThunk) -> cpu::DotThunkProto {
    let [lhs_contracting, rhs_contracting, lhs_batch, rhs_batch] = dot.dims.clone();
    cpu::DotThunkProto {
        dot_dimensions: Some(pb::DotDimensionNumbers {
            lhs_contracting_dimensions: lhs_contracting,
            rhs_contracting_dimensions: rhs_contracting,
            lhs_batch_dimensions: lhs_batch,
            rhs_batch_dimensions: rhs_batch,
        }),
        lhs_buffer_shape: Some(encode_shape_first(&dot.lhs)),
        rhs_buffer_shape: Some(encode_shape_first(&dot.rhs)),
        out_buffer_shape: Some(encode_shape_first(&dot.out)),
    }
}

fn encode_fft(fft: &FftThunk) -> cpu::FftThunkProto {
    cpu::FftThunkProto {
        is_multi_thread_eigen: fft.multi_threaded,
        fft_type: fft.kind,
        fft_length: fft.lengths.clone(),
        input_buffer_shape: Some(encode_shape_first(&fft.input)),
        output_buffer_shape: Some(encode_shape_first(&fft.output)),
    }
}

fn encode_topk(topk: &TopKThunk) -> cpu::TopKThunkProto {
    cpu::TopKThunkProto {
        batch_size: topk.batch_size,
        input_size: topk.input_size,
        k: topk.k,
        values_buffer: Some(encode_slice(&topk.values)),
        output_buffer: Some(encode_slice(&topk.output)),
        indices_buffer: Some(encode_slice(&topk.indices)),
    }
}

fn encode_custom_call(call: &CustomCallThunk) -> Result<cpu::CustomCallThunkProto> {
    let encode = |slices: &[Option<ShapedSlice>]| -> Result<Vec<_>> {
        let slice = |s: &Option<ShapedSlice>| {
            let slice = s.as_ref().map(encode_shape_first);
            slice.ok_or_else(|| {
                let message = format!("token operands of `{}` on a CPU", call.target);
                Diagnostic::unsupported(codes::BUNDLE_UNSUPPORTED, message)
            })
        };
        slices.iter().map(slice).collect()
    };
    Ok(cpu::CustomCallThunkProto {
        api_version: call.api_version,
        target_name: call.target.clone(),
        backend_config: call.backend_config.clone(),
        op_buffers: Some(cpu::custom_call_thunk_proto::OpBuffers {
            arguments_shapes: encode(&call.operands)?,
            results_shapes: encode(&call.results)?,
            is_tuple_result: call.is_tuple_result.unwrap_or(call.results.len() != 1),
        }),
    })
}

fn encode_ynn(fusion: &LibraryFusionThunk) -> cpu::YnnFusionThunkProto {
    cpu::YnnFusionThunkProto {
        options: Some(cpu::YnnFusionOptions {
            use_threadpool: true,
        }),
        instruction_id: fusion.instruction,
        arguments_shapes: fusion.args.iter().map(encode_shape_first).collect(),
        results_shapes: fusion.results.iter().map(encode_shape_first).collect(),
    }
}

/// Reads thunks against allocations and the names of kernels.
pub(super) struct Reader<'a> {
    pub(super) slices: Slices<'a>,
    pub(super) kernels: &'a BTreeMap<String, KernelId>,
    /// The bundle's HLO, which holds the bodies of library fusions.
    pub(super) hlo: &'a HloView<'a>,
}

impl Reader<'_> {
    /// The sequence a proto describes.
    pub(super) fn sequence(
        &self,
        proto: &cpu::ThunkSequenceProto,
        depth: usize,
    ) -> Result<ThunkSequence> {
        if depth > MAX_NESTING {
            return Err(bad(format!("thunks nest deeper than {MAX_NESTING}")));
        }
        let thunk = |(i, proto): (usize, &cpu::ThunkProto)| {
            let path = || crate::base::Location::Path(format!("thunks[{i}] `{}`", proto.kind));
            self.thunk(proto, depth).map_err(|e| e.or_at(path))
        };
        let thunks = proto.thunks.iter().enumerate().map(thunk);
        Ok(ThunkSequence(thunks.collect::<Result<_>>()?))
    }

    fn nested(
        &self,
        proto: Option<&cpu::ThunkSequenceProto>,
        depth: usize,
    ) -> Result<ThunkSequence> {
        match proto {
            Some(proto) => self.sequence(proto, depth + 1),
            None => Ok(ThunkSequence::default()),
        }
    }

    fn thunk(&self, proto: &cpu::ThunkProto, depth: usize) -> Result<Thunk> {
        let info = proto.info.as_ref();
        let kind = match &proto.r#impl {
            Some(message) => self.kind(&proto.kind, message, depth)?,
            None => return Err(bad("the thunk has no known message")),
        };
        Ok(Thunk {
            origin: info.map(|info| info.op_name.clone()).unwrap_or_default(),
            kind,
        })
    }

    fn kind(&self, name: &str, message: &Impl, depth: usize) -> Result<ThunkKind> {
        let s = &self.slices;
        Ok(match message {
            Impl::KernelThunk(p) => ThunkKind::Kernel(self.kernel(p)?),
            Impl::CopyThunk(p) => ThunkKind::Copy(CopyThunk {
                source: s.shape_first(p.src_buffer_shape.as_ref())?,
                destination: s.shape_first(p.dst_buffer_shape.as_ref())?,
            }),
            Impl::CallThunk(p) => ThunkKind::Call(self.nested(p.called_sequence.as_ref(), depth)?),
            Impl::WhileThunk(p) => ThunkKind::While(Box::new(WhileThunk {
                predicate: s.slice(p.cond_buffer.as_ref())?,
                condition: self.nested(p.cond_sequence.as_ref(), depth)?,
                body: self.nested(p.body_sequence.as_ref(), depth)?,
                trip_count: match p.trip_count.as_ref().filter(|t| t.contains_value) {
                    Some(count) => Some(index(count.value, "a trip count")? as u64),
                    None => None,
                },
            })),
            Impl::ConditionalThunk(p) => self.conditional(p, depth)?,
            Impl::SortThunk(p) => ThunkKind::Sort(SortThunk {
                dimension: p.dimension,
                is_stable: p.is_stable,
                direction: p
                    .direction
                    .as_ref()
                    .filter(|d| d.contains_value)
                    .map(|d| d.value),
                comparator: p.comparator_name.clone(),
                inputs: self.list(&p.inputs_shapes)?,
            }),
            Impl::DotThunk(p) => ThunkKind::Dot(Box::new(self.dot(p)?)),
            Impl::ConvolutionThunk(p) => library::decode_convolution(p, s)?,
            Impl::FftThunk(p) => ThunkKind::Fft(FftThunk {
                kind: p.fft_type,
                lengths: p.fft_length.clone(),
                multi_threaded: p.is_multi_thread_eigen,
                input: s.shape_first(p.input_buffer_shape.as_ref())?,
                output: s.shape_first(p.output_buffer_shape.as_ref())?,
            }),
            Impl::TopKThunk(p) => ThunkKind::TopK(TopKThunk {
                batch_size: p.batch_size,
                input_size: p.input_size,
                k: p.k,
                values: s.slice(p.values_buffer.as_ref())?,
                output: s.slice(p.output_buffer.as_ref())?,
                indices: s.slice(p.indices_buffer.as_ref())?,
            }),
            Impl::CustomCallThunk(p) => ThunkKind::CustomCall(Box::new(self.custom_call(p)?)),
            Impl::CollectiveThunk(p) => library::decode_collective(p, s)?,
            Impl::YnnFusionThunk(p) => ThunkKind::LibraryFusion(Box::new(LibraryFusionThunk {
                instruction: p.instruction_id,
                is_fusion: fusion::is_fusion(self.hlo, p.instruction_id),
                args: self.list(&p.arguments_shapes)?,
                results: self.list(&p.results_shapes)?,
                body: fusion::decode(self.hlo, p.instruction_id).map_err(|e| e.message),
            })),
            Impl::ReplicaIdThunk(p) => ThunkKind::ReplicaId(s.slice(p.logical_id_buffer.as_ref())?),
            Impl::PartitionIdThunk(p) => {
                ThunkKind::PartitionId(s.slice(p.logical_id_buffer.as_ref())?)
            }
            Impl::RngGetAndUpdateStateThunk(p) => ThunkKind::RngGetAndUpdateState {
                state: s.slice(p.state_buffer.as_ref())?,
                delta: p.delta,
            },
            Impl::RngSeedThunk(p) => ThunkKind::RngSeed(s.slice(p.dest_buffer.as_ref())?),
            Impl::InfeedThunk(p) => self.foreign(name, &p.infeed_buffers_shapes, Access::Write)?,
            Impl::OutfeedThunk(p) => self.foreign(name, &p.outfeed_buffers_shapes, Access::Read)?,
            Impl::XnnFusionThunk(_) => ThunkKind::Foreign {
                name: name.to_owned(),
                uses: Vec::new(),
            },
        })
    }

    fn list(&self, protos: &[cpu::ShapeBufferAllocationSliceProto]) -> Result<Vec<ShapedSlice>> {
        let slices = protos.iter();
        slices.map(|p| self.slices.shape_first(Some(p))).collect()
    }

    fn foreign(
        &self,
        name: &str,
        protos: &[cpu::ShapeBufferAllocationSliceProto],
        access: Access,
    ) -> Result<ThunkKind> {
        let slices = protos.iter();
        let uses = slices.map(|p| {
            let slice = self.slices.slice(p.slice.as_ref())?;
            Ok(BufferUse { slice, access })
        });
        Ok(ThunkKind::Foreign {
            name: name.to_owned(),
            uses: uses.collect::<Result<_>>()?,
        })
    }

    fn conditional(&self, p: &cpu::ConditionalThunkProto, depth: usize) -> Result<ThunkKind> {
        let branches = p.branch_sequences.iter();
        let branch_index = self.slices.slice(p.branch_index_buffer.as_ref())?;
        Ok(ThunkKind::Conditional(Box::new(ConditionalThunk {
            branch_index,
            is_pred: branch_index.size == 1,
            branches: branches
                .map(|b| self.sequence(b, depth + 1))
                .collect::<Result<_>>()?,
        })))
    }

    fn kernel(&self, p: &cpu::KernelThunkProto) -> Result<KernelThunk> {
        let kernel = self.kernels.get(&p.kernel_name).copied();
        let groups = p.num_workgroups.unwrap_or_default();
        let count = |n: i64| {
            let n = u64::try_from(n).ok().filter(|&n| n > 0);
            n.ok_or_else(|| bad("a kernel's number of workgroups is not positive"))
        };
        let list = |protos: &[Vec<u8>]| -> Result<Vec<ShapedSlice>> {
            protos.iter().map(|p| self.either_slice(p)).collect()
        };
        let thunk = KernelThunk {
            kernel: kernel
                .ok_or_else(|| bad(format!("the kernel `{}` is not listed", p.kernel_name)))?,
            launch: Launch {
                workgroups: [count(groups.x)?, count(groups.y)?, count(groups.z)?],
                ..Launch::SINGLE
            },
            args: list(&p.arguments_buffers)?,
            results: list(&p.results_buffers)?,
            passing: Passing::default(),
        };
        let stated = p.min_alignment.filter(|stated| stated.contains_value);
        let alignment = stated.map_or(MIN_ALIGNMENT, |stated| stated.value);
        aligned(&p.kernel_name, &thunk, alignment)?;
        Ok(thunk)
    }

    /// A kernel's buffer in either of the two forms that upstream gave the field. The old one has
    /// numbers where the new one has messages, so one never reads as the other.
    fn either_slice(&self, bytes: &[u8]) -> Result<ShapedSlice> {
        match pb::ShapedSliceProto::decode(bytes) {
            Ok(proto) if proto.shape.is_some() => self.slices.shaped(Some(&proto)),
            _ => {
                let proto = BufferAllocationSliceProto::decode(bytes);
                let proto = proto.map_err(|e| bad(format!("a kernel's buffer: {e}")))?;
                self.slices.as_bytes(Some(&proto))
            }
        }
    }

    fn dot(&self, p: &cpu::DotThunkProto) -> Result<DotThunk> {
        let dims = p.dot_dimensions.clone().unwrap_or_default();
        Ok(DotThunk {
            dims: [
                dims.lhs_contracting_dimensions,
                dims.rhs_contracting_dimensions,
                dims.lhs_batch_dimensions,
                dims.rhs_batch_dimensions,
            ],
            lhs: self.slices.shape_first(p.lhs_buffer_shape.as_ref())?,
            rhs: self.slices.shape_first(p.rhs_buffer_shape.as_ref())?,
            out: self.slices.shape_first(p.out_buffer_shape.as_ref())?,
        })
    }

    fn custom_call(&self, p: &cpu::CustomCallThunkProto) -> Result<CustomCallThunk> {
        let buffers = p.op_buffers.clone().unwrap_or_default();
        let list = |protos: &[cpu::ShapeBufferAllocationSliceProto]| -> Result<Vec<_>> {
            let slice = |p: &cpu::ShapeBufferAllocationSliceProto| {
                let is_array = p.shape.as_ref().is_some_and(|s| {
                    crate::shape::PrimitiveType::from_number(s.element_type).is_some()
                });
                match is_array {
                    true => self.slices.shape_first(Some(p)).map(Some),
                    false => Ok(None),
                }
            };
            protos.iter().map(slice).collect()
        };
        Ok(CustomCallThunk {
            target: p.target_name.clone(),
            api_version: p.api_version,
            backend_config: p.backend_config.clone(),
            operands: list(&buffers.arguments_shapes)?,
            results: list(&buffers.results_shapes)?,
            is_tuple_result: Some(buffers.is_tuple_result),
        })
    }
}
