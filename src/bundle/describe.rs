//! What is in a bundle, for people and for programs.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;
use serde_json::json;

use crate::base::ByteSize;
use crate::base::Id;
use crate::bundle::Bundle;
use crate::bundle::Stock;
use crate::executable::AllocKind;
use crate::executable::Allocation;
use crate::executable::BufferUse;
use crate::executable::Executable;
use crate::executable::KernelEntry;
use crate::executable::Slice;
use crate::executable::TargetNeeds;
use crate::executable::Thunk;
use crate::executable::ThunkKind;
use crate::executable::ThunkSequence;
use crate::linalg;
use crate::shape::Shape;
use crate::wire::container::Container;

/// Bytes that a run takes of device memory: all allocations but those of single threads and parts of
/// others.
pub(super) fn device_bytes(executable: &Executable) -> u64 {
    total(executable, |a| {
        !matches!(a.kind, AllocKind::ThreadLocal | AllocKind::Window)
    })
}

fn total(executable: &Executable, count: impl Fn(&Allocation) -> bool) -> u64 {
    let allocs = executable.allocs.values().filter(|a| count(a));
    allocs.fold(0u64, |sum, a| sum.saturating_add(a.size.0))
}

fn alloc_word(kind: &AllocKind) -> String {
    match kind {
        AllocKind::Parameter { number, index, .. } if index.is_empty() => {
            format!("parameter {number}")
        }
        AllocKind::Parameter { number, index, .. } => {
            format!("parameter {number} {:?}", index.as_slice())
        }
        AllocKind::Constant(id) => format!("constant {}", id.index()),
        AllocKind::Tuple => "result table".to_owned(),
        AllocKind::ThreadLocal => "thread-local".to_owned(),
        AllocKind::Owned => "owned".to_owned(),
        AllocKind::Window => "window".to_owned(),
    }
}

fn role(allocation: &Allocation) -> String {
    let word = alloc_word(&allocation.kind);
    match (&allocation.kind, allocation.live_out) {
        (AllocKind::Owned, true) => "output".to_owned(),
        (AllocKind::Owned, false) => "temporary".to_owned(),
        (AllocKind::Parameter { .. }, true) => format!("{word}, output"),
        _ => word,
    }
}

fn needs_json(needs: &TargetNeeds) -> Value {
    match needs {
        TargetNeeds::Cpu {
            triple,
            cpu,
            features,
            data_layout,
        } => json!({
            "triple": triple,
            "cpu": cpu,
            "features": features,
            "data_layout": data_layout,
        }),
        TargetNeeds::Cuda {
            major,
            minor,
            feature_extension,
            host_triple,
            host_cpu,
            host_features,
            ..
        } => json!({
            "compute_capability": format!("{major}.{minor}{}", suffix(*feature_extension)),
            "host": { "triple": host_triple, "cpu": host_cpu, "features": host_features },
        }),
    }
}

/// What follows the numbers of a compute capability.
pub fn suffix(extension: i32) -> &'static str {
    match extension {
        2 => "a",
        3 => "f",
        _ => "",
    }
}

fn slice_json(slice: &Slice) -> Value {
    json!({ "allocation": slice.alloc.index(), "offset": slice.offset, "size": slice.size })
}

fn use_json(used: &BufferUse) -> Value {
    let mut value = slice_json(&used.slice);
    value["access"] = format!("{:?}", used.access).to_lowercase().into();
    value
}

/// The name of what a thunk runs beyond its kind.
fn detail(kind: &ThunkKind, executable: &Executable) -> Option<String> {
    match kind {
        ThunkKind::Kernel(thunk) => {
            let kernel = executable.kernels.get(thunk.kernel);
            kernel.map(|kernel| kernel.name.clone())
        }
        ThunkKind::Sort(sort) => Some(sort.comparator.clone()),
        ThunkKind::CustomCall(call) => Some(call.target.clone()),
        ThunkKind::While(thunk) => thunk.trip_count.map(|n| format!("{n} times")),
        _ => None,
    }
}

fn thunk_json(thunk: &Thunk, executable: &Executable) -> Value {
    let uses = thunk.kind.own_uses();
    let mut value = json!({
        "kind": thunk.kind.name(),
        "origin": thunk.origin,
        "buffers": uses.iter().map(use_json).collect::<Vec<_>>(),
    });
    if let Some(detail) = detail(&thunk.kind, executable) {
        value["detail"] = detail.into();
    }
    if let ThunkKind::Kernel(kernel) = &thunk.kind {
        value["workgroups"] = json!(kernel.launch.workgroups);
        value["workitems"] = json!(kernel.launch.workitems);
        value["shared_bytes"] = kernel.launch.shared_bytes.into();
    }
    let nested = thunk.kind.nested();
    if !nested.is_empty() {
        value["nested"] = nested
            .iter()
            .map(|sequence| sequence_json(sequence, executable))
            .collect();
    }
    value
}

fn sequence_json(sequence: &ThunkSequence, executable: &Executable) -> Value {
    let thunks = sequence.0.iter();
    thunks.map(|thunk| thunk_json(thunk, executable)).collect()
}

fn kernel_json(kernel: &KernelEntry) -> Value {
    json!({
        "name": kernel.name,
        "arity": kernel.arity,
        "kind": if kernel.is_comparator { "comparator" } else { "kernel" },
    })
}

/// Everything about a bundle that its bytes say, and who else runs it, as JSON.
pub fn json(bundle: &Bundle, stock: &Stock) -> Value {
    let e = &bundle.executable;
    let program = &e.signature.program;
    let mut arrays = 0;
    let parameter = |(i, shape): (usize, &Shape)| {
        let donated = e.signature.aliases.iter().any(|a| a.parameter == i);
        json!({
            "name": program.parameter_names.get(i),
            "shape": shape.to_string(),
            "donated": donated,
            "inputs": inputs(shape, &mut arrays).map(|n| format!("in{n}")).collect::<Vec<_>>(),
        })
    };
    let allocation = |(id, a): (crate::executable::AllocId, &Allocation)| {
        json!({
            "index": id.index(),
            "size": a.size.0,
            "kind": role(a),
            "live_out": a.live_out,
            "memory_space": a.color,
        })
    };
    json!({
        "name": e.name,
        "platform": bundle.platform().name(),
        "file_bytes": bundle.file_bytes,
        "form": {
            "container": bundle.form.container.as_ref().map(Container::name),
            "envelope": bundle.form.envelope,
            "compile_options": bundle.form.has_options,
            "split": bundle.form.outer_split,
        },
        "runtimes": {
            "name": stock.runtime,
            "releases": stock.releases.as_ref().map(|(from, to)| json!([from, to])),
            "conditions": stock.conditions,
            "obstacles": stock.obstacles,
        },
        "needs": needs_json(&e.needs),
        "replicas": e.replicas,
        "partitions": e.partitions,
        "parameters": program.parameters.iter().enumerate().map(parameter).collect::<Vec<_>>(),
        "result": program.result.to_string(),
        "outputs": e.signature.outputs.iter().map(|o| {
            let mut value = slice_json(&o.slice);
            value["index"] = json!(o.index.as_slice());
            value
        }).collect::<Vec<_>>(),
        "aliases": e.signature.aliases.iter().map(|a| json!({
            "output": a.output.as_slice(),
            "parameter": a.parameter,
            "index": a.index.as_slice(),
            "kind": if a.must { "must" } else { "may" },
        })).collect::<Vec<_>>(),
        "memory": memory_json(e),
        "allocations": e.allocs.iter().map(allocation).collect::<Vec<_>>(),
        "constants": e.constants.values().map(|c| json!({
            "name": c.name,
            "size": c.bytes.len(),
        })).collect::<Vec<_>>(),
        "kernels": e.kernels.values().map(kernel_json).collect::<Vec<_>>(),
        "images": e.images.iter().map(|image| json!({
            "name": image.name,
            "form": image.code.name(),
            "size": image.code.bytes().len(),
            "kernels": image.kernels.len(),
        })).collect::<Vec<_>>(),
        "imports": imports(&e.thunks).iter().map(|(name, ours)| json!({
            "name": name,
            "from": if *ours { "loader" } else { "caller" },
        })).collect::<Vec<_>>(),
        "thunks": sequence_json(&e.thunks, e),
        "hlo_bytes": e.hlo.len(),
    })
}

/// The numbers of the inputs that a parameter takes, one for each array in it; `arrays` counts those
/// of all parameters.
fn inputs(shape: &Shape, arrays: &mut usize) -> std::ops::Range<usize> {
    let leaves = shape.leaves().into_iter();
    let first = *arrays;
    *arrays += leaves.filter(|(_, leaf)| leaf.as_array().is_some()).count();
    first..*arrays
}

/// The functions that a program calls by name, and whether each comes with the loader.
pub fn imports(thunks: &ThunkSequence) -> BTreeMap<&str, bool> {
    let mut out = BTreeMap::new();
    for thunk in &thunks.0 {
        if let ThunkKind::CustomCall(call) = &thunk.kind {
            out.insert(call.target.as_str(), linalg::call::is_known(&call.target));
        }
        thunk
            .kind
            .nested()
            .into_iter()
            .for_each(|nested| out.extend(imports(nested)));
    }
    out
}

fn memory_json(e: &Executable) -> Value {
    json!({
        "parameters": total(e, |a| matches!(a.kind, AllocKind::Parameter { .. })),
        "outputs": total(e, |a| a.kind == AllocKind::Owned && a.live_out),
        "temporaries": total(e, Allocation::is_temp),
        "constants": total(e, |a| matches!(a.kind, AllocKind::Constant(_))),
        "peak": device_bytes(e),
    })
}

/// A page for people: what it is, what it needs, how it is called, what it does.
pub fn text(bundle: &Bundle, stock: &Stock) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write_text(bundle, stock, &mut out);
    out
}

fn write_text(bundle: &Bundle, stock: &Stock, out: &mut String) -> std::fmt::Result {
    let e = &bundle.executable;
    let size = ByteSize(bundle.file_bytes);
    writeln!(
        out,
        "{}: a {} bundle of {size}",
        e.name,
        bundle.platform().name()
    )?;
    if let Some(container) = &bundle.form.container {
        writeln!(out, "  in a {}", container.name())?;
    }
    match &e.needs {
        TargetNeeds::Cpu {
            triple,
            cpu,
            features,
            ..
        } => {
            writeln!(out, "  for {triple}, tuned for {cpu}")?;
            let on: Vec<&str> = features
                .iter()
                .filter_map(|f| f.strip_prefix('+'))
                .collect();
            writeln!(out, "  uses {}", on.join(" "))?;
        }
        TargetNeeds::Cuda {
            major,
            minor,
            feature_extension,
            host_triple,
            ..
        } => {
            let suffix = suffix(*feature_extension);
            writeln!(out, "  for CUDA compute capability {major}.{minor}{suffix}")?;
            if !host_triple.is_empty() {
                writeln!(out, "  driven by {host_triple}")?;
            }
        }
    }
    writeln!(out, "  runs on this loader, and on {}", stock.text())?;
    if e.replicas > 1 || e.partitions > 1 {
        writeln!(
            out,
            "  runs as {} replicas of {} partitions",
            e.replicas, e.partitions
        )?;
    }
    write_signature(e, out)?;
    write_memory(e, out)?;
    writeln!(out, "\nkernels: {}", e.kernels.len())?;
    for image in &e.images {
        let size = ByteSize(image.code.bytes().len() as u64);
        writeln!(out, "  {} {}: {size}", image.code.name(), image.name)?;
    }
    let imports = imports(&e.thunks);
    if !imports.is_empty() {
        writeln!(out, "\nimports: {}", imports.len())?;
    }
    for (name, ours) in imports {
        let from = if ours {
            "comes with the loader"
        } else {
            "whoever loads the bundle must register it"
        };
        writeln!(out, "  {name}: {from}")?;
    }
    writeln!(out, "\nthunks: {}", e.thunks.0.len())?;
    write_sequence(&e.thunks, e, 1, out)
}

fn write_signature(e: &Executable, out: &mut String) -> std::fmt::Result {
    let program = &e.signature.program;
    writeln!(out, "\nparameters:")?;
    let mut arrays = 0;
    for (i, shape) in program.parameters.iter().enumerate() {
        let name = program.parameter_names.get(i).map_or("", String::as_str);
        let donated = e.signature.aliases.iter().find(|a| a.parameter == i);
        let note = match donated {
            Some(alias) if alias.must => "  must be donated",
            Some(_) => "  may be donated",
            None => "",
        };
        let inputs = inputs(shape, &mut arrays);
        let places = match inputs.len() {
            0 => "no input".to_owned(),
            1 => format!("in{}", inputs.start),
            _ => format!("in{} to in{}", inputs.start, inputs.end - 1),
        };
        writeln!(out, "  {places} {name}: {shape}{note}")?;
    }
    writeln!(out, "result: {}", program.result)
}

fn write_memory(e: &Executable, out: &mut String) -> std::fmt::Result {
    let memory = memory_json(e);
    writeln!(out, "\nmemory:")?;
    for part in ["parameters", "outputs", "temporaries", "constants", "peak"] {
        let bytes = memory[part].as_u64().unwrap_or(0);
        writeln!(out, "  {part}: {}", ByteSize(bytes))?;
    }
    for (id, allocation) in e.allocs.iter() {
        let (size, role) = (allocation.size, role(allocation));
        writeln!(out, "  [{}] {size}, {role}", id.index())?;
    }
    Ok(())
}

fn write_sequence(
    sequence: &ThunkSequence,
    e: &Executable,
    depth: usize,
    out: &mut String,
) -> std::fmt::Result {
    let indent = "  ".repeat(depth);
    for (i, thunk) in sequence.0.iter().enumerate() {
        let detail = detail(&thunk.kind, e).map_or(String::new(), |d| format!(" {d}"));
        let kind = thunk.kind.name();
        write!(out, "{indent}{i:03}: {kind}{detail} ({})", thunk.origin)?;
        for used in thunk.kind.own_uses() {
            let Slice {
                alloc,
                offset,
                size,
            } = used.slice;
            let access = match used.access {
                crate::executable::Access::Read => "r",
                crate::executable::Access::Write => "w",
                crate::executable::Access::ReadWrite => "rw",
            };
            write!(out, " {access}[{}]{offset}+{size}", alloc.index())?;
        }
        if let ThunkKind::Kernel(kernel) = &thunk.kind {
            let [x, y, z] = kernel.launch.workgroups;
            write!(out, " workgroups {x}x{y}x{z}")?;
        }
        writeln!(out)?;
        for nested in thunk.kind.nested() {
            writeln!(out, "{indent}  {} thunks:", nested.0.len())?;
            write_sequence(nested, e, depth + 2, out)?;
        }
    }
    Ok(())
}
