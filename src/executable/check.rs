//! Every structural rule of an executable: the gate before anything is encoded or run.
//!
//! Four parts: the plan (this file: allocations, constants, signature, outputs, kernels), the images
//! ([`images`]), each thunk by itself ([`thunks`]), and what the thunks do to memory in their order
//! ([`dataflow`]).
//! An executable without findings is safe to hand to a device: no slice leaves its allocation, no
//! read-only memory is written, nothing is read before it is written. What the machine code in the
//! images does is trusted; what it is told to do is not.

mod dataflow;
mod images;
mod thunks;

use std::collections::BTreeSet;

use crate::base::Diagnostic;
use crate::base::Location;
use crate::base::codes;
use crate::executable::AllocId;
use crate::executable::AllocKind;
use crate::executable::Allocation;
use crate::executable::Code;
use crate::executable::Executable;
use crate::executable::Slice;
use crate::executable::TargetNeeds;
use crate::shape::ArrayShape;
use crate::shape::Shape;
use crate::shape::ShapeIndex;
use crate::shape::index::is_permutation;

/// Sequences nested deeper than this are refused.
pub const MAX_NESTING: usize = 64;

/// An allocation larger than this is refused: 2^46 bytes, more than an address space offers.
const MAX_ALLOCATION: u64 = 1 << 46;

/// After this many findings the rest is left out.
const MAX_FINDINGS: usize = 100;

/// Every broken rule; none when the executable may be run.
pub fn check(executable: &Executable) -> Vec<Diagnostic> {
    let mut findings = Findings::default();
    let checker = Checker { executable };
    checker.signature(&mut findings);
    checker.allocations(&mut findings);
    checker.outputs(&mut findings);
    checker.aliases(&mut findings);
    checker.kernels(&mut findings);
    checker.logical_buffers(&mut findings);
    thunks::check(executable, &mut findings);
    // Dataflow walks slices, so it needs them to be inside their allocations.
    if findings.list.is_empty() {
        dataflow::check(executable, &mut findings);
    }
    findings.list
}

/// Broken rules, with the place of each.
#[derive(Default)]
struct Findings {
    list: Vec<Diagnostic>,
}

impl Findings {
    fn add(&mut self, path: impl Into<String>, message: impl Into<String>) {
        if self.list.len() < MAX_FINDINGS {
            let finding = Diagnostic::error(codes::BUNDLE_CHECK, message);
            self.list.push(*finding.at(Location::Path(path.into())));
        }
    }
}

/// Says what is wrong with a slice, if anything.
fn slice_fault(executable: &Executable, slice: &Slice) -> Option<String> {
    let Some(allocation) = executable.allocs.get(slice.alloc) else {
        return Some(format!(
            "the slice names {:?}, which does not exist",
            slice.alloc
        ));
    };
    let end = slice.offset.checked_add(slice.size);
    if end.is_none_or(|end| end > allocation.size.0) {
        return Some(format!(
            "the slice is {} bytes at offset {} of {:?}, which has {} bytes",
            slice.size, slice.offset, slice.alloc, allocation.size.0
        ));
    }
    None
}

/// Says what is wrong with an array shape as the runtime needs it, if anything.
fn shape_fault(shape: &ArrayShape) -> Option<String> {
    if shape.checked_element_count().is_none() {
        return Some(format!(
            "{}{:?} is too large",
            shape.ty,
            shape.dims.as_slice()
        ));
    }
    let Some(layout) = &shape.layout else {
        return Some("the shape has no layout".to_owned());
    };
    let order = &layout.minor_to_major;
    if order.len() != shape.rank() || !is_permutation(order) {
        return Some(format!(
            "the layout {:?} is no order of {} dimensions",
            order.as_slice(),
            shape.rank()
        ));
    }
    if !layout.tiles.is_empty() {
        return Some("the layout is tiled".to_owned());
    }
    None
}

/// The array leaves of a shape.
fn array_leaves(shape: &Shape) -> Vec<(ShapeIndex, &ArrayShape)> {
    let leaves = shape.leaves().into_iter();
    leaves
        .filter_map(|(index, leaf)| Some((index, leaf.as_array()?)))
        .collect()
}

fn array_at<'a>(shape: Option<&'a Shape>, index: &[usize]) -> Option<&'a ArrayShape> {
    shape?.at(index)?.as_array()
}

struct Checker<'a> {
    executable: &'a Executable,
}

impl Checker<'_> {
    fn signature(&self, findings: &mut Findings) {
        let program = &self.executable.signature.program;
        for (number, shape) in program.parameters.iter().enumerate() {
            for (index, array) in array_leaves(shape) {
                if let Some(fault) = shape_fault(array) {
                    findings.add(format!("parameter {number} {:?}", index.as_slice()), fault);
                }
            }
        }
        for (index, array) in array_leaves(&program.result) {
            if let Some(fault) = shape_fault(array) {
                findings.add(format!("result {:?}", index.as_slice()), fault);
            }
        }
        if self.executable.replicas == 0 || self.executable.partitions == 0 {
            findings.add("options", "the program runs as zero replicas or partitions");
        }
    }

    fn allocations(&self, findings: &mut Findings) {
        let mut parameters = BTreeSet::new();
        let mut temps = 0;
        for (id, allocation) in self.executable.allocs.iter() {
            let path = format!("{id:?}");
            if allocation.size.0 > MAX_ALLOCATION {
                findings.add(&path, format!("the size is {} bytes", allocation.size.0));
            }
            if let AllocKind::Parameter { number, index, .. } = &allocation.kind
                && !parameters.insert((*number, index.clone()))
            {
                let message = format!("another allocation holds parameter {number} too");
                findings.add(&path, message);
            }
            if allocation.is_temp() && allocation.size.0 > 0 {
                temps += 1;
            }
            if let Some(fault) = self.allocation_fault(allocation) {
                findings.add(&path, fault);
            }
        }
        let is_cpu = matches!(self.executable.needs, TargetNeeds::Cpu { .. });
        if is_cpu && temps > 1 {
            let message = format!("{temps} temporary allocations, wanted at most one on a CPU");
            findings.add("allocations", message);
        }
    }

    fn allocation_fault(&self, allocation: &Allocation) -> Option<String> {
        let size = allocation.size.0;
        match &allocation.kind {
            AllocKind::Parameter { number, index, .. } => {
                let parameters = &self.executable.signature.program.parameters;
                let Some(part) = parameters.get(*number).and_then(|s| s.at(index)) else {
                    return Some(format!(
                        "it holds parameter {number} {:?}, which does not exist",
                        index.as_slice()
                    ));
                };
                // The table of a tuple parameter is 8 bytes an element; no thunk may touch it.
                let wanted = match part {
                    Shape::Array(array) => {
                        array.checked_element_count()?;
                        array.byte_size() as u64
                    }
                    Shape::Tuple(elements) => 8 * elements.len() as u64,
                    Shape::Token | Shape::Opaque => 0,
                };
                (size != wanted).then(|| {
                    format!("{size} bytes for parameter {number}, which has {wanted} bytes")
                })
            }
            AllocKind::Constant(constant) => match self.executable.constants.get(*constant) {
                None => Some(format!("it holds {constant:?}, which does not exist")),
                Some(constant) if constant.bytes.len() as u64 != size => Some(format!(
                    "{size} bytes for a constant of {} bytes",
                    constant.bytes.len()
                )),
                Some(_) => None,
            },
            AllocKind::Tuple => (!size.is_multiple_of(8))
                .then(|| format!("{size} bytes for a table of 8-byte pointers")),
            AllocKind::ThreadLocal | AllocKind::Owned | AllocKind::Window => None,
        }
    }

    fn outputs(&self, findings: &mut Findings) {
        let signature = &self.executable.signature;
        let leaves = array_leaves(&signature.program.result);
        let given: Vec<_> = signature.outputs.iter().collect();
        if given.len() != leaves.len() {
            let message = format!(
                "{} output slices for {} result leaves",
                given.len(),
                leaves.len()
            );
            findings.add("outputs", message);
            return;
        }
        let is_cpu = matches!(self.executable.needs, TargetNeeds::Cpu { .. });
        let mut taken = BTreeSet::new();
        for (output, (index, array)) in given.into_iter().zip(leaves) {
            let path = format!("outputs[{:?}]", output.index.as_slice());
            if output.index != index {
                findings.add(
                    &path,
                    format!("found where leaf {:?} was due", index.as_slice()),
                );
            } else if let Some(fault) = slice_fault(self.executable, &output.slice) {
                findings.add(&path, fault);
            } else if array.checked_element_count().is_some()
                && output.slice.size != array.byte_size() as u64
            {
                let message = format!(
                    "{} bytes for a leaf of {} bytes",
                    output.slice.size,
                    array.byte_size()
                );
                findings.add(&path, message);
            } else if is_cpu && (output.slice.offset != 0 || !taken.insert(output.slice.alloc)) {
                let message = "it does not have an allocation of its own, as XLA's loader needs";
                findings.add(&path, message);
            } else {
                self.output_allocation(&path, output.slice.alloc, findings);
            }
        }
    }

    fn output_allocation(&self, path: &str, id: AllocId, findings: &mut Findings) {
        let allocation = &self.executable.allocs[id];
        if !allocation.live_out {
            findings.add(
                path,
                format!("{id:?} holds a result but does not outlive the run"),
            );
        }
        match allocation.kind {
            AllocKind::Owned | AllocKind::Parameter { .. } => {}
            AllocKind::Constant(_) => findings.add(path, "a constant's memory is given away"),
            AllocKind::Tuple | AllocKind::ThreadLocal | AllocKind::Window => {
                findings.add(path, format!("{id:?} cannot hold a result"));
            }
        }
    }

    fn aliases(&self, findings: &mut Findings) {
        let signature = &self.executable.signature;
        let mut outputs = BTreeSet::new();
        let mut sources = BTreeSet::new();
        for (i, alias) in signature.aliases.iter().enumerate() {
            let path = format!("aliases[{i}]");
            let output = array_at(Some(&signature.program.result), &alias.output);
            let parameter = signature.program.parameters.get(alias.parameter);
            let parameter = array_at(parameter, &alias.index);
            let (Some(output), Some(parameter)) = (output, parameter) else {
                findings.add(
                    &path,
                    "it names a result or parameter leaf that does not exist",
                );
                continue;
            };
            let sizes =
                [output, parameter].map(|s| s.checked_element_count().map(|_| s.byte_size()));
            if sizes[0] != sizes[1] {
                findings.add(&path, "result and parameter differ in size");
            }
            if !outputs.insert(alias.output.clone()) {
                findings.add(&path, "the result leaf is aliased twice");
            }
            if !sources.insert((alias.parameter, alias.index.clone())) {
                findings.add(&path, "the parameter leaf is aliased twice");
            }
        }
        for (id, allocation) in self.executable.allocs.iter() {
            if let AllocKind::Parameter {
                number,
                index,
                aliased_output: true,
            } = &allocation.kind
                && !sources.contains(&(*number, index.clone()))
            {
                findings.add(
                    format!("{id:?}"),
                    "it is aliased with a result that no alias names",
                );
            }
        }
    }

    fn kernels(&self, findings: &mut Findings) {
        let executable = self.executable;
        let mut names = BTreeSet::new();
        for (id, kernel) in executable.kernels.iter() {
            if kernel.name.is_empty() || !names.insert(kernel.name.as_str()) {
                let message = format!("the name `{}` is empty or used twice", kernel.name);
                findings.add(format!("{id:?}"), message);
            }
        }
        for (i, image) in executable.images.iter().enumerate() {
            let path = format!("images[{i}]");
            let fits = match image.code {
                Code::Elf(_) => matches!(executable.needs, TargetNeeds::Cpu { .. }),
                Code::Ptx(_) | Code::Cubin(_) => {
                    matches!(executable.needs, TargetNeeds::Cuda { .. })
                }
            };
            if !fits {
                let message = format!("{} code does not belong to the platform", image.code.name());
                findings.add(&path, message);
            } else if !matches!(image.code, Code::Elf(_))
                && let Some(fault) = images::fault(&image.code)
            {
                findings.add(&path, fault);
            }
            for kernel in &image.kernels {
                if executable.kernels.get(*kernel).is_none() {
                    findings.add(&path, format!("it names {kernel:?}, which does not exist"));
                }
            }
        }
    }

    fn logical_buffers(&self, findings: &mut Findings) {
        for (i, buffer) in self.executable.logical.iter().enumerate() {
            if let Some(fault) = slice_fault(self.executable, &buffer.slice) {
                findings.add(format!("logical[{i}] `{}`", buffer.name), fault);
            }
        }
    }
}

#[cfg(test)]
mod tests;
