//! Values to classes, classes to slices of allocations.
//!
//! Rules that the readers of bundles insist on: every leaf of the result has an allocation of its own
//! and lies at its start; parameters and constants are never written, except a parameter whose memory
//! a result leaf takes over; there is at most one allocation for temporary values.

use std::collections::BTreeMap;

use crate::analysis::Dataflow;
use crate::analysis::Live;
use crate::analysis::Segment;
use crate::analysis::ValueId;
use crate::analysis::ValueKind;
use crate::analysis::scratch;
use crate::base::Arena;
use crate::base::ByteSize;
use crate::base::Diagnostic;
use crate::base::IdMap;
use crate::base::Result;
use crate::base::codes;
use crate::buffer::BufferAssignment;
use crate::buffer::coalesce;
use crate::buffer::coalesce::Classes;
use crate::buffer::pack;
use crate::buffer::pack::Block;
use crate::executable::AllocId;
use crate::executable::AllocKind;
use crate::executable::Allocation;
use crate::executable::ConstantId;
use crate::executable::Slice;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::schedule::Scheduled;
use crate::shape::ShapeIndex;
use crate::target::Target;

/// Gives every value of the module a slice.
///
/// # Errors
/// `XA9001` when the module breaks a promise of its last stage: a result leaf that is a parameter,
/// a constant or another leaf, or a donated parameter that is still needed when its memory is taken.
/// `XA4002` when the temporary values do not fit the target's memory.
pub fn assign(scheduled: &Scheduled, target: &Target) -> Result<BufferAssignment> {
    let module = &scheduled.module;
    let flow = Dataflow::new(module)?;
    let live = Live::new(module, &flow, &scheduled.order);
    let wishes = coalesce::wishes(module, &flow, &scheduled.order);
    let outputs = outputs(module, &flow)?;
    let donated = donated(module, &flow);
    let frozen = flow.values().iter().filter(|(id, value)| match value.kind {
        ValueKind::Constant => true,
        ValueKind::Parameter => !donated.contains_key(id),
        ValueKind::State | ValueKind::Merge | ValueKind::Computed => false,
    });
    let frozen: Vec<ValueId> = frozen.map(|(id, _)| id).collect();
    let mut classes = Classes::new(&flow, &live, &wishes, &frozen);
    for (&parameter, &output) in &donated {
        if !classes.merge(parameter, output) {
            let name = &module.instrs[flow.values()[parameter].instr].name;
            let message = format!("parameter `{name}` is needed when a result takes its memory");
            return Err(Diagnostic::internal(codes::INTERNAL, message));
        }
    }
    for wish in &wishes {
        classes.merge(wish.from, wish.to);
    }
    let mut assigner = Assigner {
        module,
        target,
        flow: &flow,
        live: &live,
        classes: &classes,
        places: IdMap::new(),
        allocs: Arena::new(),
        constants: Arena::new(),
    };
    assigner.parameters(&donated);
    assigner.outputs(&outputs);
    let tables = assigner.tables();
    assigner.constants();
    let scratch = assigner.temporaries(scheduled)?;
    let slices = assigner.slices();
    let (allocs, constants) = (assigner.allocs, assigner.constants);
    Ok(BufferAssignment {
        allocs,
        constants,
        slices,
        scratch,
        tables,
        flow,
        live,
    })
}

/// The values of the result's array leaves, by leaf.
fn outputs(module: &Module, flow: &Dataflow) -> Result<Vec<ValueId>> {
    let mut out = Vec::new();
    for &value in flow.at(module.entry_comp().root) {
        let known = &flow.values()[value];
        if known.shape.is_none() {
            continue;
        }
        let fixed = matches!(known.kind, ValueKind::Parameter | ValueKind::Constant);
        if fixed || out.contains(&value) {
            let name = &module.instrs[known.instr].name;
            let message = format!("`{name}` is handed out without a copy");
            return Err(Diagnostic::internal(codes::INTERNAL, message));
        }
        out.push(value);
    }
    Ok(out)
}

/// Parameter leaves whose memory a result leaf takes over, with that leaf's value.
fn donated(module: &Module, flow: &Dataflow) -> BTreeMap<ValueId, ValueId> {
    let mut out = BTreeMap::new();
    let entry = module.entry_comp();
    let leaf_of = |instr: InstrId, index: &ShapeIndex| {
        let leaves = module.instrs[instr].shape.leaves();
        let leaf = leaves.iter().position(|(i, _)| i == index)?;
        flow.at(instr).get(leaf).copied()
    };
    for (output, target) in &module.input_output_alias {
        let parameter = entry.params.get(target.parameter).copied();
        let parameter = parameter.and_then(|p| leaf_of(p, &target.index));
        if let (Some(parameter), Some(output)) = (parameter, leaf_of(entry.root, output)) {
            out.insert(parameter, output);
        }
    }
    out
}

struct Assigner<'a> {
    module: &'a Module,
    target: &'a Target,
    flow: &'a Dataflow,
    live: &'a Live,
    classes: &'a Classes,
    /// Where a class lives, by its root.
    places: IdMap<ValueId, Option<(AllocId, u64)>>,
    allocs: Arena<AllocId, Allocation>,
    constants: Arena<ConstantId, InstrId>,
}

impl Assigner<'_> {
    fn new_alloc(&mut self, size: u64, kind: AllocKind, live_out: bool) -> AllocId {
        self.allocs.push(Allocation {
            size: ByteSize(size),
            kind,
            live_out,
            color: 0,
        })
    }

    fn parameters(&mut self, donated: &BTreeMap<ValueId, ValueId>) {
        for (number, &param) in self.module.entry_comp().params.iter().enumerate() {
            for &id in self.flow.at(param) {
                let value = &self.flow.values()[id];
                if value.shape.is_none() {
                    continue;
                }
                let aliased_output = donated.contains_key(&id);
                let kind = AllocKind::Parameter {
                    number,
                    index: value.index.clone(),
                    aliased_output,
                };
                let alloc = self.new_alloc(value.bytes(), kind, aliased_output);
                self.places.set(self.classes.root(id), Some((alloc, 0)));
            }
        }
    }

    fn outputs(&mut self, outputs: &[ValueId]) {
        for &id in outputs {
            let root = self.classes.root(id);
            if self.places[root].is_none() {
                let bytes = self.flow.values()[id].bytes();
                let alloc = self.new_alloc(bytes, AllocKind::Owned, true);
                self.places.set(root, Some((alloc, 0)));
            }
        }
    }

    fn tables(&mut self) -> BTreeMap<ShapeIndex, Slice> {
        let mut out = BTreeMap::new();
        for (index, part) in self.module.root(self.module.entry).shape.parts() {
            if let Some(elements) = part.as_tuple() {
                let size = 8 * elements.len() as u64;
                let alloc = self.new_alloc(size, AllocKind::Tuple, true);
                let slice = Slice {
                    alloc,
                    offset: 0,
                    size,
                };
                out.insert(index, slice);
            }
        }
        out
    }

    fn constants(&mut self) {
        let flow = self.flow;
        for (id, value) in flow.values().iter() {
            if value.kind == ValueKind::Constant
                && value.shape.is_some()
                && self.live.used.contains(id)
            {
                let constant = self.constants.push(value.instr);
                let alloc = self.new_alloc(value.bytes(), AllocKind::Constant(constant), false);
                self.places.set(id, Some((alloc, 0)));
            }
        }
    }

    /// Packs everything that has no place yet, and scratch memory, into one allocation.
    fn temporaries(&mut self, scheduled: &Scheduled) -> Result<IdMap<InstrId, Option<Slice>>> {
        let mut blocks = Vec::new();
        let mut roots = Vec::new();
        for (id, value) in self.flow.values().iter() {
            let placed = self.places[id].is_some() || value.kind == ValueKind::Constant;
            let alive = !self.live.segments[id].is_empty() && value.shape.is_some();
            if self.classes.root(id) == id && !placed && alive {
                roots.push(id);
                blocks.push(Block {
                    life: self.classes.hull(id),
                    size: value.bytes(),
                });
            }
        }
        let mut instrs = Vec::new();
        for &comp in self.flow.comps() {
            for &id in &scheduled.order[comp] {
                let size = scratch::bytes(self.module, id, self.target);
                if size > 0 {
                    let span = &self.live.spans[id];
                    let life = Segment {
                        start: span.start,
                        end: span.end,
                    };
                    instrs.push((id, size));
                    blocks.push(Block { life, size });
                }
            }
        }
        let mut scratch = IdMap::new();
        if blocks.is_empty() {
            return Ok(scratch);
        }
        let alignment = self.target.buffer_alignment;
        let all = blocks.iter().try_fold(0u64, |sum, block| {
            sum.checked_add(block.size.checked_next_multiple_of(alignment)?)
        });
        if all.is_none() {
            return Err(self.too_much(u64::MAX));
        }
        let (offsets, total) = pack::pack(&blocks, alignment);
        if self.limit().is_some_and(|limit| total > limit) {
            return Err(self.too_much(total));
        }
        let alloc = self.new_alloc(total, AllocKind::Owned, false);
        for (&root, &offset) in roots.iter().zip(&offsets) {
            self.places.set(root, Some((alloc, offset)));
        }
        for (&(id, size), &offset) in instrs.iter().zip(&offsets[roots.len()..]) {
            scratch.set(
                id,
                Some(Slice {
                    alloc,
                    offset,
                    size,
                }),
            );
        }
        Ok(scratch)
    }

    /// Bytes of the target's memory, when they are known.
    fn limit(&self) -> Option<u64> {
        let limit = self.target.gpu().map_or(1 << 46, |gpu| gpu.memory_bytes.0);
        (limit > 0).then_some(limit)
    }

    fn too_much(&self, total: u64) -> Box<Diagnostic> {
        let message = format!(
            "the temporary values take {}, and `{}` has {}",
            ByteSize(total),
            self.target.name(),
            ByteSize(self.limit().unwrap_or(u64::MAX))
        );
        Diagnostic::error(codes::MEMORY_LIMIT, message)
    }

    fn slices(&self) -> IdMap<ValueId, Option<Slice>> {
        let mut out = IdMap::new();
        for (id, value) in self.flow.values().iter() {
            if value.shape.is_none() {
                continue;
            }
            if let Some((alloc, offset)) = self.places[self.classes.root(id)] {
                let size = value.bytes();
                out.set(
                    id,
                    Some(Slice {
                        alloc,
                        offset,
                        size,
                    }),
                );
            }
        }
        out
    }
}
