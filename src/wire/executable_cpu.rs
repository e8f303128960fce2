//! CPU executables on the wire (`xla.cpu.CompilationResultProto`).

use std::collections::BTreeMap;

use prost::Message;

use crate::base::Arena;
use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::executable::Code;
use crate::executable::Executable;
use crate::executable::KernelEntry;
use crate::executable::KernelId;
use crate::executable::KernelImage;
use crate::executable::Signature;
use crate::executable::TargetNeeds;
use crate::proto::xla as pb;
use crate::proto::xla::cpu;
use crate::wire::alloc::Slices;
use crate::wire::alloc::decode_assignment;
use crate::wire::alloc::encode_assignment;
use crate::wire::hlo_view::HloView;
use crate::wire::number::bad;
use crate::wire::number::message;
use crate::wire::options::DeviceCounts;
pub use crate::wire::thunk_cpu::KernelBuffers;
use crate::wire::thunk_cpu::Reader;
use crate::wire::thunk_cpu::Writer;

/// The kind of object files that loaders accept: kernels, called through the kernel ABI.
const KERNELS: i32 = 2;
/// Function types of symbols.
const KERNEL: i32 = 1;
const COMPARATOR: i32 = 2;

/// The serialized `xla.cpu.CompilationResultProto` of a CPU executable.
///
/// # Errors
/// `XA7003` when the executable is not for a CPU or has a thunk that CPU bundles cannot hold.
pub fn encode(executable: &Executable, buffers: KernelBuffers) -> Result<Vec<u8>> {
    let TargetNeeds::Cpu {
        triple,
        cpu: cpu_name,
        features,
        data_layout,
    } = &executable.needs
    else {
        return Err(Diagnostic::unsupported(
            codes::BUNDLE_UNSUPPORTED,
            "a CPU bundle of a program for another device",
        ));
    };
    let mut object_files = Vec::new();
    for image in &executable.images {
        let Code::Elf(contents) = &image.code else {
            return Err(Diagnostic::unsupported(
                codes::BUNDLE_UNSUPPORTED,
                format!("a CPU bundle cannot hold {} code", image.code.name()),
            ));
        };
        object_files.push(cpu::ObjFileProto {
            contents: contents.clone(),
            name: image.name.clone(),
        });
    }
    let symbols = executable.kernels.values().map(|kernel| cpu::SymbolProto {
        function_type_id: if kernel.is_comparator {
            COMPARATOR
        } else {
            KERNEL
        },
        name: kernel.name.clone(),
    });
    let writer = Writer {
        kernels: &executable.kernels,
        module_name: &executable.name,
        buffers,
    };
    let result = cpu::CompilationResultProto {
        hlo_module: Some(executable.hlo.clone()),
        buffer_assignment: Some(encode_assignment(&executable.allocs, &executable.logical)),
        entry_function_name: String::new(),
        obj_files_kind: KERNELS,
        thunk_sequence: Some(writer.sequence(&executable.thunks)?),
        compiled_symbols: symbols.collect(),
        object_files,
        target_machine_options: Some(cpu::TargetMachineOptionsProto {
            triple: triple.clone(),
            cpu: cpu_name.clone(),
            features: features.join(","),
        }),
        data_layout: data_layout.clone(),
    };
    Ok(result.encode_to_vec())
}

/// Whether the bytes are a serialized `xla.cpu.CompilationResultProto`, as far as its fixed parts
/// tell: it names the kind of its object files, which no other layer has a field for.
pub fn is_result(bytes: &[u8]) -> bool {
    let proto = cpu::CompilationResultProto::decode(bytes);
    proto.is_ok_and(|p| p.obj_files_kind != 0 && p.hlo_module.is_some())
}

/// The executable of a serialized `xla.cpu.CompilationResultProto`.
///
/// # Errors
/// `XA1004` when the bytes are damaged or break a structural rule, `XA7003` when they hold code of
/// another kind than kernels.
pub fn decode(bytes: &[u8], counts: DeviceCounts) -> Result<Executable> {
    let proto: cpu::CompilationResultProto = message(bytes, "xla.cpu.CompilationResultProto")?;
    if proto.obj_files_kind != KERNELS {
        return Err(Diagnostic::unsupported(
            codes::BUNDLE_UNSUPPORTED,
            format!(
                "object files of kind {}, wanted kernels (2)",
                proto.obj_files_kind
            ),
        ));
    }
    let hlo_bytes = proto.hlo_module.unwrap_or_default();
    let hlo: pb::HloModuleProtoWithConfig = message(&hlo_bytes, "xla.HloModuleProtoWithConfig")?;
    let view = HloView::new(&hlo)?;
    let assignment = proto.buffer_assignment.as_ref();
    let assignment = assignment.ok_or_else(|| bad("the bundle has no buffer assignment"))?;
    let plan = decode_assignment(assignment, &view)?;
    let (kernels, names) = decode_symbols(&proto.compiled_symbols)?;
    let reader = Reader {
        slices: Slices::new(&plan.allocs),
        kernels: &names,
        hlo: &view,
    };
    let thunks = proto.thunk_sequence.unwrap_or_default();
    let thunks = reader.sequence(&thunks, 0)?;
    let program = view.program()?;
    let signature = Signature {
        outputs: view.outputs(&program.result, &plan.logical)?,
        aliases: view.aliases()?,
        program,
    };
    // Releases before 0.8.1 did not write it; their objects tell.
    let machine = proto.target_machine_options.unwrap_or_else(|| {
        let objects = proto
            .object_files
            .iter()
            .map(|file| file.contents.as_slice());
        cpu::TargetMachineOptionsProto {
            triple: triple_of(objects).to_owned(),
            ..Default::default()
        }
    });
    let features = machine.features.split(',').filter(|f| !f.is_empty());
    let one_image = proto.object_files.len() == 1;
    let images = proto.object_files.into_iter().map(|file| KernelImage {
        name: file.name,
        kernels: if one_image {
            kernels.ids().collect()
        } else {
            Vec::new()
        },
        code: Code::Elf(file.contents),
    });
    Ok(Executable {
        name: view.module_name().to_owned(),
        needs: TargetNeeds::Cpu {
            triple: machine.triple,
            cpu: machine.cpu,
            features: features.map(str::to_owned).collect(),
            data_layout: proto.data_layout,
        },
        signature,
        images: images.collect(),
        allocs: plan.allocs,
        constants: plan.constants,
        thunks,
        kernels,
        logical: plan.logical,
        hlo: hlo_bytes,
        replicas: counts.replicas,
        partitions: counts.partitions,
    })
}

/// The triple that fits the first object file, by the machine in its ELF header; empty when there is
/// none, or it is for a machine that has no target here.
fn triple_of<'a>(mut objects: impl Iterator<Item = &'a [u8]>) -> &'static str {
    const MACHINE: std::ops::Range<usize> = 18..20;
    let machine = objects.next().and_then(|object| object.get(MACHINE));
    match machine {
        Some([62, 0]) => "x86_64-unknown-linux-gnu",
        Some([183, 0]) => "aarch64-unknown-linux-gnu",
        _ => "",
    }
}

fn decode_symbols(
    symbols: &[cpu::SymbolProto],
) -> Result<(Arena<KernelId, KernelEntry>, BTreeMap<String, KernelId>)> {
    let mut kernels = Arena::new();
    let mut names = BTreeMap::new();
    for symbol in symbols {
        let is_comparator = match symbol.function_type_id {
            KERNEL => false,
            COMPARATOR => true,
            other => {
                return Err(bad(format!(
                    "the symbol `{}` is of the unknown kind {other}",
                    symbol.name
                )));
            }
        };
        if names.contains_key(&symbol.name) {
            continue;
        }
        let id = kernels.push(KernelEntry {
            name: symbol.name.clone(),
            arity: None,
            is_comparator,
        });
        names.insert(symbol.name.clone(), id);
    }
    Ok((kernels, names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_tell_the_machine() {
        let object = |machine: u8| {
            let mut header = [0u8; 64];
            header[..4].copy_from_slice(b"\x7fELF");
            header[18] = machine;
            header
        };
        for (machine, triple) in [
            (62, "x86_64-unknown-linux-gnu"),
            (183, "aarch64-unknown-linux-gnu"),
            (40, ""),
        ] {
            let object = object(machine);
            assert_eq!(triple_of([&object[..]].into_iter()), triple);
        }
        assert_eq!(triple_of([].into_iter()), "");
        assert_eq!(triple_of([&b"\x7fELF"[..]].into_iter()), "");
    }
}
