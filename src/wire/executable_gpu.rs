//! GPU executables on the wire (`xla.gpu.GpuExecutableProto`).

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use prost::Message;

use crate::base::Arena;
use crate::base::Diagnostic;
use crate::base::Id;
use crate::base::Result;
use crate::base::codes;
use crate::executable::AllocId;
use crate::executable::AllocKind;
use crate::executable::Allocation;
use crate::executable::Constant;
use crate::executable::ConstantId;
use crate::executable::Executable;
use crate::executable::OutputSlice;
use crate::executable::Signature;
use crate::executable::Slice;
use crate::executable::TargetNeeds;
use crate::executable::constant_symbol;
use crate::proto::stream_executor as se;
use crate::proto::xla as pb;
use crate::proto::xla::cpu::TargetMachineOptionsProto;
use crate::proto::xla::gpu;
use crate::shape::ShapeIndex;
use crate::wire::alloc::decode_allocations;
use crate::wire::alloc::decode_logical;
use crate::wire::alloc::encode_allocations;
use crate::wire::alloc::encode_assignment;
use crate::wire::hlo_view::HloView;
use crate::wire::hlo_view::decode_alias;
use crate::wire::number::bad;
use crate::wire::number::index;
use crate::wire::number::indices;
use crate::wire::number::message;
use crate::wire::number::number;
use crate::wire::number::numbers;
use crate::wire::options::Outer;
use crate::wire::options::target_config_of;
use crate::wire::shape::decode_program_shape;
use crate::wire::shape::encode_program_shape;
use crate::wire::shape::mark_program;
use crate::wire::shape::unmarked;
use crate::wire::thunk_gpu::Writer;
use crate::wire::thunk_gpu::allocation_summary;
use crate::wire::thunk_gpu_read::Reader;
use crate::wire::thunk_gpu_read::code_of;

/// The name of the image that holds constants.
const CONSTANTS_IMAGE: &str = "constants";

/// A GPU executable cut as loaders want it.
pub struct Fields {
    /// Field 4: the image of the constants; empty when there are none.
    pub binary: Vec<u8>,
    /// The serialized message without fields 3 and 4.
    pub rest: Vec<u8>,
}

/// The serialized parts of a GPU executable.
///
/// # Errors
/// `XA7003` when the executable is not for a GPU or has a thunk that GPU bundles cannot hold;
/// internal, when constants lack their image.
pub fn encode(executable: &Executable) -> Result<Fields> {
    let TargetNeeds::Cuda {
        major,
        minor,
        feature_extension,
        host_triple,
        host_cpu,
        host_features,
        abi_version,
        ..
    } = &executable.needs
    else {
        return Err(Diagnostic::unsupported(
            codes::BUNDLE_UNSUPPORTED,
            "a GPU bundle of a program for another device",
        ));
    };
    let capability = se::CudaComputeCapabilityProto {
        major: *major,
        minor: *minor,
        feature_extension: *feature_extension,
    };
    let capability =
        se::gpu_compute_capability_proto::ComputeCapability::CudaComputeCapability(capability);
    let abi: se::ExecutableAbiVersionProto =
        message(abi_version, "stream_executor.ExecutableAbiVersionProto")?;
    let host = TargetMachineOptionsProto {
        triple: host_triple.clone(),
        cpu: host_cpu.clone(),
        features: host_features.clone(),
    };
    let mut program_shape = encode_program_shape(&executable.signature.program);
    mark_program(&mut program_shape);
    let mut writer = Writer::new(&executable.kernels, &executable.images);
    let proto = gpu::GpuExecutableProto {
        hlo_module_with_config: Some(name_constants(executable)?),
        buffer_assignment: Some(encode_assignment(&executable.allocs, &executable.logical)),
        asm_text: String::new(),
        binary: Vec::new(),
        dnn_compiled_graphs: BTreeMap::new(),
        gpu_compute_capability: Some(se::GpuComputeCapabilityProto {
            compute_capability: Some(capability),
        }),
        module_name: executable.name.clone(),
        program_shape: Some(program_shape),
        buffer_allocations: Some(gpu::gpu_executable_proto::RepeatedBufferAllocations {
            values: encode_allocations(&executable.allocs, &[]),
        }),
        output_info_map: encode_outputs(executable),
        constants: encode_constants(executable),
        thunks: writer.sequence(&executable.thunks)?,
        executable_abi_version: Some(abi),
        cpu_target_machine_options: (host != TargetMachineOptionsProto::default()).then_some(host),
        buffer_allocations_debug_summary: allocation_summary(&executable.allocs),
    };
    Ok(Fields {
        binary: constants_binary(executable)?,
        rest: proto.encode_to_vec(),
    })
}

/// The allocation of each constant.
fn constant_allocs(executable: &Executable) -> BTreeMap<ConstantId, AllocId> {
    let allocs = executable.allocs.iter();
    allocs
        .filter_map(|(id, alloc)| match alloc.kind {
            AllocKind::Constant(constant) => Some((constant, id)),
            _ => None,
        })
        .collect()
}

/// The image of the constants, as text the driver compiles or as a binary.
fn constants_binary(executable: &Executable) -> Result<Vec<u8>> {
    let mut images = executable.images.iter();
    let image = images.find(|image| image.kernels.is_empty());
    match image {
        None if executable.constants.is_empty() => Ok(Vec::new()),
        None => Err(Diagnostic::internal(
            codes::INTERNAL,
            "the program has constants and no image for them",
        )),
        Some(image) => {
            let mut bytes = image.code.bytes().to_vec();
            // The driver finds the end of a text by its zero.
            if matches!(image.code, crate::executable::Code::Ptx(_)) {
                bytes.push(0);
            }
            Ok(bytes)
        }
    }
}

fn encode_constants(executable: &Executable) -> Vec<gpu::gpu_executable_proto::ConstantInfoProto> {
    let allocs = constant_allocs(executable);
    let constants = executable.constants.iter();
    constants
        .map(
            |(id, constant)| gpu::gpu_executable_proto::ConstantInfoProto {
                symbol_name: constant_symbol(&constant.name),
                content: Some(gpu::DenseDataIntermediateProto::default()),
                allocation_index: allocs.get(&id).map_or(-1, |alloc| number(alloc.index())),
            },
        )
        .collect()
}

/// The HLO with the names of constants that the loader looks their literals up by: those of their
/// symbols.
fn name_constants(executable: &Executable) -> Result<Vec<u8>> {
    let renamed = executable.constants.values().map(|constant| {
        let symbol = constant_symbol(&constant.name);
        let name = symbol.strip_prefix("buffer_for_").unwrap_or(&symbol);
        (constant.instruction, name.to_owned())
    });
    let renamed: BTreeMap<u64, String> = renamed.collect();
    let taken: BTreeSet<String> = renamed.values().cloned().collect();
    if taken.len() != executable.constants.len() {
        return Err(Diagnostic::internal(
            codes::INTERNAL,
            "two constants have the same symbol",
        ));
    }
    let mut hlo: pb::HloModuleProtoWithConfig =
        message(&executable.hlo, "xla.HloModuleProtoWithConfig")?;
    let mut changed = false;
    for computation in hlo.hlo_module.iter_mut().flat_map(|m| &mut m.computations) {
        for instruction in &mut computation.instructions {
            let mut name = instruction.name.clone();
            match renamed.get(&instruction.id.cast_unsigned()) {
                Some(symbol) => name.clone_from(symbol),
                // Names are unique in a module, so another owner has to give way.
                None => {
                    while taken.contains(&name) {
                        name.push('_');
                    }
                }
            }
            changed |= name != instruction.name;
            instruction.name = name;
        }
    }
    Ok(match changed {
        true => hlo.encode_to_vec(),
        false => executable.hlo.clone(),
    })
}

/// One entry for each part of the result, tuples before their elements.
fn encode_outputs(executable: &Executable) -> Vec<gpu::gpu_executable_proto::OutputInfoMapEntry> {
    use pb::hlo_input_output_alias_proto::AliasEntryProto;
    let signature = &executable.signature;
    let leaves = signature
        .outputs
        .iter()
        .map(|o| (o.index.clone(), o.slice.alloc));
    let mut places: BTreeMap<ShapeIndex, AllocId> = leaves.collect();
    // The tables of the result's tuples were made in their order.
    let tuples = signature.program.result.parts().into_iter();
    let tuples = tuples.filter(|(_, part)| part.is_tuple());
    let tables = executable.allocs.iter();
    let tables = tables.filter(|(_, a)| a.kind == AllocKind::Tuple && a.live_out);
    let tables = tuples.zip(tables);
    places.extend(tables.map(|((index, _), (alloc, _))| (index, alloc)));
    let places = places.into_iter();
    places
        .map(|(index, alloc)| {
            let alias = signature.aliases.iter().find(|a| a.output == index);
            let is_parameter = matches!(executable.allocs[alloc].kind, AllocKind::Parameter { .. });
            gpu::gpu_executable_proto::OutputInfoMapEntry {
                shape_index: Some(pb::ShapeIndexProto {
                    indexes: numbers(&index),
                }),
                output_info: Some(gpu::gpu_executable_proto::OutputInfoProto {
                    allocation_index: number(alloc.index()),
                    passthrough: is_parameter && alias.is_none(),
                    alias_config: alias.map(|alias| AliasEntryProto {
                        output_shape_index: numbers(&index),
                        parameter_number: number(alias.parameter),
                        parameter_shape_index: numbers(&alias.index),
                        kind: if alias.must { 2 } else { 1 },
                    }),
                }),
            }
        })
        .collect()
}

/// The executable of a serialized `xla.gpu.GpuExecutableProto`.
///
/// # Errors
/// `XA1004` when the bytes are damaged or break a structural rule, `XA7003` when they are for a GPU
/// of another vendor or in a form from before thunks were stored.
pub fn decode(bytes: &[u8], outer: &Outer) -> Result<Executable> {
    let proto: gpu::GpuExecutableProto = message(bytes, "xla.gpu.GpuExecutableProto")?;
    let hlo_bytes = proto.hlo_module_with_config.clone().unwrap_or_default();
    let hlo: pb::HloModuleProtoWithConfig = message(&hlo_bytes, "xla.HloModuleProtoWithConfig")?;
    let view = HloView::new(&hlo)?;
    let allocations = proto.buffer_allocations.as_ref();
    let allocations = allocations.map_or(&[][..], |list| &list.values);
    let (mut allocs, _) = decode_allocations(allocations)?;
    let constants = decode_constants(&proto, &mut allocs, &view)?;
    let assignment = proto.buffer_assignment.as_ref();
    let assignment = assignment.ok_or_else(|| bad("the bundle has no buffer assignment"))?;
    // Loaders use the plan for statistics only, so one that does not hold up is left out.
    let logical = decode_logical(assignment, &allocs, &view).unwrap_or_default();
    let mut reader = Reader::new(allocs.clone());
    let thunks = reader.sequence(&proto.thunks, 0)?;
    reader.fill_shared(&proto.binary);
    // The windows of thunks stand behind the allocations of the program.
    let (kernels, mut images, allocs) = (reader.kernels, reader.images, reader.allocs);
    if !proto.binary.is_empty() && !constants.is_empty() {
        images.push(crate::executable::KernelImage {
            name: CONSTANTS_IMAGE.to_owned(),
            kernels: Vec::new(),
            code: code_of(&proto.binary),
        });
    }
    let signature = decode_signature(&proto, &allocs, &view)?;
    Ok(Executable {
        name: match proto.module_name.is_empty() {
            true => view.module_name().to_owned(),
            false => proto.module_name.clone(),
        },
        needs: decode_needs(&proto, outer)?,
        signature,
        allocs,
        constants,
        thunks,
        kernels,
        images,
        logical,
        hlo: hlo_bytes,
        replicas: outer.counts.replicas,
        partitions: outer.counts.partitions,
    })
}

fn decode_needs(proto: &gpu::GpuExecutableProto, outer: &Outer) -> Result<TargetNeeds> {
    use se::gpu_compute_capability_proto::ComputeCapability;
    let capability = proto.gpu_compute_capability.as_ref();
    let capability = match capability.and_then(|c| c.compute_capability.as_ref()) {
        Some(ComputeCapability::CudaComputeCapability(capability)) => *capability,
        Some(_) => {
            return Err(Diagnostic::unsupported(
                codes::BUNDLE_UNSUPPORTED,
                "a bundle for a GPU that is not NVIDIA's",
            ));
        }
        None => return Err(bad("the bundle names no compute capability")),
    };
    let host = proto.cpu_target_machine_options.clone().unwrap_or_default();
    let abi = proto.executable_abi_version.clone().unwrap_or_default();
    Ok(TargetNeeds::Cuda {
        major: capability.major,
        minor: capability.minor,
        feature_extension: capability.feature_extension,
        host_triple: host.triple,
        host_cpu: host.cpu,
        host_features: host.features,
        abi_version: abi.encode_to_vec(),
        target_config: target_config_of(&outer.options),
        platform_version: String::new(),
    })
}

/// The constants in the order they are listed, with the kinds of their allocations set to match.
fn decode_constants(
    proto: &gpu::GpuExecutableProto,
    allocs: &mut Arena<AllocId, Allocation>,
    view: &HloView<'_>,
) -> Result<Arena<ConstantId, Constant>> {
    for alloc in allocs.values_mut() {
        if matches!(alloc.kind, AllocKind::Constant(_)) {
            alloc.kind = AllocKind::Owned;
        }
    }
    let by_symbol = view.constants_by(constant_symbol);
    let mut constants = Arena::new();
    for info in &proto.constants {
        let content = info.content.as_ref().map_or(&[][..], |c| &c.data);
        let (instruction, name, bytes) = match by_symbol.get(&info.symbol_name) {
            Some(&id) if content.is_empty() => (id, view.name(id)?, view.constant_bytes(id)?),
            Some(&id) => (id, view.name(id)?, content.to_vec()),
            None if !content.is_empty() => (0, info.symbol_name.as_str(), content.to_vec()),
            None => {
                return Err(bad(format!(
                    "the constant `{}` has no literal",
                    info.symbol_name
                )));
            }
        };
        let id = constants.push(Constant {
            name: name.to_owned(),
            instruction,
            bytes: Arc::new(bytes),
        });
        if info.allocation_index >= 0 {
            let alloc = index(info.allocation_index, "an allocation index")?;
            let alloc = allocs.ids().nth(alloc);
            let alloc = alloc.ok_or_else(|| {
                bad(format!(
                    "the constant `{}` names an allocation that does not exist",
                    info.symbol_name
                ))
            })?;
            allocs[alloc].kind = AllocKind::Constant(id);
        }
    }
    Ok(constants)
}

fn decode_signature(
    proto: &gpu::GpuExecutableProto,
    allocs: &Arena<AllocId, Allocation>,
    view: &HloView<'_>,
) -> Result<Signature> {
    let mut program = match &proto.program_shape {
        Some(program) => decode_program_shape(program)?,
        None => view.program()?,
    };
    for shape in program.parameters.iter_mut().chain([&mut program.result]) {
        *shape = shape.with_default_layout();
    }
    let program = unmarked(&program);
    let mut outputs = BTreeMap::new();
    let mut aliases = Vec::new();
    for entry in &proto.output_info_map {
        let part = entry.shape_index.clone().unwrap_or_default();
        let part: ShapeIndex = indices(&part.indexes, "a result index")?;
        let info = entry.output_info.clone().unwrap_or_default();
        let alloc = index(info.allocation_index, "an allocation index")?;
        let alloc = allocs.ids().nth(alloc);
        let alloc = alloc.ok_or_else(|| bad("an output's allocation does not exist"))?;
        if let Some(array) = program.result.at(&part).and_then(|s| s.as_array()) {
            let size = (array.byte_size() as u64).min(allocs[alloc].size.0);
            let slice = Slice {
                alloc,
                offset: 0,
                size,
            };
            outputs.insert(part.clone(), slice);
        }
        if let Some(alias) = &info.alias_config {
            let mut alias = decode_alias(alias)?;
            alias.output = part;
            aliases.push(alias);
        }
    }
    let outputs = outputs.into_iter();
    Ok(Signature {
        program,
        aliases,
        outputs: outputs
            .map(|(index, slice)| OutputSlice { index, slice })
            .collect(),
    })
}
