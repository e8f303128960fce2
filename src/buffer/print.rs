//! The text of a buffer assignment: each allocation with the values in it.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::buffer::BufferAssignment;
use crate::executable::AllocId;
use crate::executable::AllocKind;
use crate::executable::Allocation;
use crate::hlo::Module;
use crate::shape::ShapeIndex;

/// One line per allocation, then one per slice: its bytes and the values that live there.
pub fn print(module: &Module, assignment: &BufferAssignment) -> String {
    let mut slices: BTreeMap<(AllocId, u64, u64), Vec<String>> = BTreeMap::new();
    for (id, value) in assignment.flow.values().iter() {
        if let Some(slice) = assignment.slices[id] {
            let name = &module.instrs[value.instr].name;
            let text = format!("{name}{}", index_text(&value.index));
            let key = (slice.alloc, slice.offset, slice.size);
            slices.entry(key).or_default().push(text);
        }
    }
    for (id, slice) in assignment.scratch.iter() {
        if let Some(slice) = slice {
            let text = format!("scratch of {}", module.instrs[id].name);
            let key = (slice.alloc, slice.offset, slice.size);
            slices.entry(key).or_default().push(text);
        }
    }
    let mut out = String::new();
    for (id, alloc) in assignment.allocs.iter() {
        let _ = writeln!(out, "{id:?}: {} bytes, {}", alloc.size.0, kind_text(alloc));
        let low = (id, 0, 0);
        let high = (id, u64::MAX, u64::MAX);
        for ((_, offset, size), names) in slices.range(low..=high) {
            let _ = writeln!(out, "  {offset}..{}: {}", offset + size, names.join(", "));
        }
    }
    out
}

fn kind_text(alloc: &Allocation) -> String {
    match &alloc.kind {
        AllocKind::Parameter {
            number,
            index,
            aliased_output,
        } => {
            let donated = if *aliased_output { ", donated" } else { "" };
            format!("parameter {number}{}{donated}", index_text(index))
        }
        AllocKind::Constant(constant) => format!("{constant:?}"),
        AllocKind::Tuple => "table".to_owned(),
        AllocKind::ThreadLocal => "thread-local".to_owned(),
        AllocKind::Owned if alloc.live_out => "result".to_owned(),
        AllocKind::Owned => "temp".to_owned(),
        AllocKind::Window => "window".to_owned(),
    }
}

/// ` {1,0}`, or nothing for the whole.
fn index_text(index: &ShapeIndex) -> String {
    if index.is_empty() {
        return String::new();
    }
    let numbers: Vec<String> = index.iter().map(ToString::to_string).collect();
    format!(" {{{}}}", numbers.join(","))
}
