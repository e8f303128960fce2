//! Copies where memory would otherwise have to be two things at once.
//!
//! After this pass: no result leaf of the entry is a parameter, a constant or another leaf; what a
//! loop or branch hands on is not read-only memory; loop bodies exchange no elements in a circle; an
//! operand that is updated in place has no other reader; a result leaf that takes a parameter's
//! memory is made after all reads of the parameter. Buffer assignment drops every copy whose source
//! and result can share, so a copy here costs nothing when the order of execution makes it needless.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::analysis::Dataflow;
use crate::analysis::ValueId;
use crate::analysis::ValueKind;
use crate::analysis::alias;
use crate::analysis::dataflow::is_structural;
use crate::analysis::dataflow::leaf_count;
use crate::base::IdMap;
use crate::base::IdSet;
use crate::base::Result;
use crate::hlo::CompId;
use crate::hlo::Instr;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::hlo::Stage;
use crate::hlo::visit;
use crate::passes::finish::canonical_names::canonicalize_names;
use crate::passes::finish::flatten;
use crate::passes::finish::updates::part_updates;
use crate::passes::pass::Changed;
use crate::passes::pass::Pass;
use crate::passes::pass::PassCx;
use crate::shape::Shape;

/// The pass. Names are made unique as well, which is all that the last stage asks for besides.
pub struct InsertCopies;

impl Pass for InsertCopies {
    fn name(&self) -> &'static str {
        "insert-copies"
    }
    fn stages(&self) -> (Stage, Stage) {
        (Stage::Fused, Stage::Final)
    }
    fn run(&self, module: &mut Module, _cx: &mut PassCx<'_>) -> Result<Changed> {
        let copied = insert_copies(module)?;
        let renamed = canonicalize_names(module);
        Ok(Changed::when(copied || renamed))
    }
}

/// Inserts the copies; whether there were any.
///
/// # Errors
/// `XA9001` when the module's control flow is not a tree, which cannot be; `INPUT_LIMIT` when it has
/// to be cloned and that makes too much.
pub fn insert_copies(module: &mut Module) -> Result<bool> {
    let flattened = flatten::flatten(module)?;
    let parted = part_updates(module);
    let flow = Dataflow::new(module)?;
    let uses = Uses::new(module, &flow);
    let mut edits = Edits::default();
    for &comp in flow.comps() {
        for &id in &module.comps[comp].instrs {
            plan_instruction(module, &flow, &uses, id, &mut edits);
        }
    }
    plan_entry(module, &flow, &mut edits);
    let changed = !edits.operands.is_empty() || !edits.roots.is_empty();
    apply(module, &flow, &uses, &edits);
    Ok(flattened || parted || changed)
}

/// Leaves to be copied, by the place that uses them.
#[derive(Default)]
struct Edits {
    /// Instruction and operand number to leaves.
    operands: BTreeMap<(InstrId, usize), BTreeSet<usize>>,
    /// Computation to leaves of its root.
    roots: BTreeMap<CompId, BTreeSet<usize>>,
    /// Leaves of the entry's root that are copied twice.
    twice: BTreeSet<usize>,
    /// Leaves of the entry's root whose copy waits for the readers of a parameter.
    waits: BTreeMap<usize, ValueId>,
}

/// Who reads each value.
struct Uses {
    /// How often it is read, handing on at the end of a computation counted.
    count: IdMap<ValueId, u32>,
    /// The instructions of the entry that read it.
    readers: BTreeMap<ValueId, Vec<InstrId>>,
}

impl Uses {
    fn new(module: &Module, flow: &Dataflow) -> Self {
        let mut uses = Self {
            count: IdMap::new(),
            readers: BTreeMap::new(),
        };
        for &comp in flow.comps() {
            for &value in flow.at(module.comps[comp].root) {
                uses.count[value] += 1;
            }
            for &id in &module.comps[comp].instrs {
                let instr = &module.instrs[id];
                if is_structural(&instr.op) {
                    continue;
                }
                for &operand in &instr.operands {
                    for &value in flow.at(operand) {
                        uses.count[value] += 1;
                        if comp == module.entry {
                            uses.readers.entry(value).or_default().push(id);
                        }
                    }
                }
            }
        }
        uses
    }
}

fn is_read_only(flow: &Dataflow, value: ValueId) -> bool {
    let value = &flow.values()[value];
    value.shape.is_some() && matches!(value.kind, ValueKind::Parameter | ValueKind::Constant)
}

fn plan_instruction(module: &Module, flow: &Dataflow, uses: &Uses, id: InstrId, edits: &mut Edits) {
    let instr = &module.instrs[id];
    match &instr.op {
        Op::While { condition, body } => {
            plan_while(module, flow, id, *body, edits);
            let predicate = module.comps[*condition].root;
            if is_read_only(flow, flow.at(predicate)[0]) {
                edits.roots.entry(*condition).or_default().insert(0);
            }
        }
        Op::Conditional { branches } => {
            for leaf in 0..flow.at(id).len() {
                if !flow.is_merge(id, leaf) {
                    continue;
                }
                for &branch in branches {
                    let value = flow.at(module.comps[branch].root)[leaf];
                    if is_read_only(flow, value) {
                        edits.roots.entry(branch).or_default().insert(leaf);
                    }
                }
            }
        }
        Op::Copy => {}
        op if is_structural(op) => {}
        _ => {
            let shares = alias::shares(module, id);
            for share in shares.iter().filter(|s| s.saves_copy) {
                let value = flow.at(instr.operands[share.operand])[share.operand_leaf];
                let outside = match flow.values()[value].kind {
                    // The state of a loop belongs to its body.
                    ValueKind::State => {
                        flow.caller(instr.parent).map(|(c, _)| c)
                            != Some(flow.values()[value].instr)
                    }
                    _ => true,
                } && module.instrs[flow.values()[value].instr].parent != instr.parent;
                if uses.count[value] > 1 || is_read_only(flow, value) || outside {
                    let place = (id, share.operand);
                    edits
                        .operands
                        .entry(place)
                        .or_default()
                        .insert(share.operand_leaf);
                }
            }
        }
    }
}

fn plan_while(module: &Module, flow: &Dataflow, id: InstrId, body: CompId, edits: &mut Edits) {
    let state = flow.at(id);
    let init = flow.at(module.instrs[id].operands[0]);
    let root = flow.at(module.comps[body].root);
    let own: Vec<usize> = (0..state.len()).filter(|&l| flow.is_state(id, l)).collect();
    for &leaf in &own {
        if is_read_only(flow, init[leaf]) {
            edits.operands.entry((id, 0)).or_default().insert(leaf);
        }
        if is_read_only(flow, root[leaf]) {
            edits.roots.entry(body).or_default().insert(leaf);
        }
    }
    // Leaf `leaf` becomes leaf `next(leaf)`; one copy cuts each circle.
    let next = |leaf: usize| own.iter().copied().find(|&l| state[l] == root[leaf]);
    let mut done = BTreeSet::new();
    for &start in &own {
        let mut trail = BTreeSet::new();
        let mut at = Some(start);
        while let Some(leaf) = at {
            if done.contains(&leaf) {
                break;
            }
            if !trail.insert(leaf) {
                edits.roots.entry(body).or_default().insert(leaf);
                break;
            }
            at = next(leaf);
        }
        done.extend(trail);
    }
}

fn plan_entry(module: &Module, flow: &Dataflow, edits: &mut Edits) {
    let entry = module.entry_comp();
    let shape = &module.instrs[entry.root].shape;
    let leaves = shape.leaves();
    let parameter_value = |number: usize, index: &[usize]| {
        let param = *entry.params.get(number)?;
        let leaves = module.instrs[param].shape.leaves();
        let leaf = leaves.iter().position(|(i, _)| i.as_slice() == index)?;
        Some(flow.at(param)[leaf])
    };
    let donated: BTreeSet<ValueId> = module
        .input_output_alias
        .values()
        .filter_map(|a| parameter_value(a.parameter, &a.index))
        .collect();
    let mut seen = BTreeSet::new();
    for (leaf, &value) in flow.at(entry.root).iter().enumerate() {
        if flow.values()[value].shape.is_none() {
            continue;
        }
        let alias = module.input_output_alias.get(&leaves[leaf].0);
        let takes = alias.and_then(|a| parameter_value(a.parameter, &a.index));
        if let Some(parameter) = takes {
            edits.waits.insert(leaf, parameter);
            if value != parameter && donated.contains(&value) {
                edits.twice.insert(leaf);
            }
            edits.roots.entry(module.entry).or_default().insert(leaf);
        } else if is_read_only(flow, value) || seen.contains(&value) {
            edits.roots.entry(module.entry).or_default().insert(leaf);
        }
        seen.insert(value);
    }
}

/// Instructions to be listed before another one, or at the end of a computation.
#[derive(Default)]
struct Inserted {
    before: BTreeMap<InstrId, Vec<InstrId>>,
    at_end: BTreeMap<CompId, Vec<InstrId>>,
}

fn apply(module: &mut Module, flow: &Dataflow, uses: &Uses, edits: &Edits) {
    let mut inserted = Inserted::default();
    let mut operand_copies: Vec<(ValueId, InstrId)> = Vec::new();
    // The reads of parameters by copies made here, which other copies may have to wait for.
    let mut first_copies: Vec<(usize, InstrId)> = Vec::new();
    for (&(id, operand), leaves) in &edits.operands {
        let mut made = Vec::new();
        let source = module.instrs[id].operands[operand];
        let mut leaf = 0;
        let mut copies = Vec::new();
        let copied = copy_leaves(module, source, leaves, &mut leaf, &mut made, &mut copies);
        module.instrs[id].operands[operand] = copied;
        let of_entry = module.instrs[id].parent == module.entry;
        let read = copies.iter().filter(|_| of_entry);
        operand_copies.extend(read.map(|&(leaf, copy)| (flow.at(source)[leaf], copy)));
        inserted.before.entry(id).or_default().extend(made);
    }
    let mut readers = uses.readers.clone();
    for (parameter, copy) in operand_copies {
        readers.entry(parameter).or_default().push(copy);
    }
    for (&comp, leaves) in &edits.roots {
        let mut made = Vec::new();
        let root = module.comps[comp].root;
        let twice: BTreeSet<usize> = if comp == module.entry {
            edits.twice.clone()
        } else {
            BTreeSet::new()
        };
        let mut source = root;
        if !twice.is_empty() {
            source = copy_leaves(module, source, &twice, &mut 0, &mut made, &mut first_copies);
        }
        let mut copies = Vec::new();
        let copied = copy_leaves(module, source, leaves, &mut 0, &mut made, &mut copies);
        module.comps[comp].root = copied;
        inserted.at_end.entry(comp).or_default().extend(made);
        if comp != module.entry {
            continue;
        }
        // The second copy of a leaf reads the first.
        let direct = copies.iter().filter(|(leaf, _)| !twice.contains(leaf));
        for &(leaf, copy) in first_copies.iter().chain(direct) {
            let value = flow.at(root)[leaf];
            readers.entry(value).or_default().push(copy);
        }
        for &(leaf, copy) in &copies {
            let Some(parameter) = edits.waits.get(&leaf) else {
                continue;
            };
            let mut first = readers.get(parameter).cloned().unwrap_or_default();
            first.retain(|&r| r != copy);
            first.dedup();
            module.instrs[copy].control_predecessors.extend(first);
        }
    }
    relist(module, inserted);
}

/// The value of `id` with the chosen leaves copied. `leaf` is the number of its first leaf.
fn copy_leaves(
    module: &mut Module,
    id: InstrId,
    leaves: &BTreeSet<usize>,
    leaf: &mut usize,
    made: &mut Vec<InstrId>,
    copies: &mut Vec<(usize, InstrId)>,
) -> InstrId {
    let shape = module.instrs[id].shape.clone();
    let count = leaf_count(&shape);
    if !leaves.range(*leaf..*leaf + count).any(|_| true) {
        *leaf += count;
        return id;
    }
    let Shape::Tuple(elements) = &shape else {
        let copy = push(module, id, Op::Copy, &[id], shape.clone());
        made.push(copy);
        copies.push((*leaf, copy));
        *leaf += 1;
        return copy;
    };
    let mut parts = Vec::with_capacity(elements.len());
    for (index, element) in elements.iter().enumerate() {
        let part = if matches!(module.instrs[id].op, Op::Tuple) {
            module.instrs[id].operands[index]
        } else {
            let get = Op::GetTupleElement { index };
            let part = push(module, id, get, &[id], element.clone());
            made.push(part);
            part
        };
        parts.push(copy_leaves(module, part, leaves, leaf, made, copies));
    }
    let tuple = push(module, id, Op::Tuple, &parts, shape);
    made.push(tuple);
    tuple
}

/// An instruction of that shape, in the computation of another; in no list yet.
pub(super) fn push(
    module: &mut Module,
    like: InstrId,
    op: Op,
    operands: &[InstrId],
    shape: Shape,
) -> InstrId {
    let parent = module.instrs[like].parent;
    module.instrs.push(Instr {
        name: op.opcode().to_owned(),
        op,
        operands: operands.iter().copied().collect(),
        shape,
        control_predecessors: smallvec::SmallVec::new(),
        parent,
        extra: None,
    })
}

fn relist(module: &mut Module, mut inserted: Inserted) {
    for comp in module.comps.ids() {
        let old = std::mem::take(&mut module.comps[comp].instrs);
        let mut new = Vec::with_capacity(old.len());
        for id in old {
            new.extend(inserted.before.remove(&id).unwrap_or_default());
            new.push(id);
        }
        new.extend(inserted.at_end.remove(&comp).unwrap_or_default());
        module.comps[comp].instrs = drop_dead_structure(module, comp, new);
        // A copy may wait for one that was made after it.
        module.comps[comp].instrs = visit::post_order(module, comp);
    }
}

/// The list without tuples and their elements that lost their users.
fn drop_dead_structure(module: &Module, comp: CompId, list: Vec<InstrId>) -> Vec<InstrId> {
    let mut needed = IdSet::new();
    needed.insert(module.comps[comp].root);
    let mut kept = Vec::with_capacity(list.len());
    for id in list.into_iter().rev() {
        let instr = &module.instrs[id];
        let droppable = matches!(instr.op, Op::Tuple | Op::GetTupleElement { .. })
            && instr.control_predecessors.is_empty();
        if droppable && !needed.contains(id) {
            continue;
        }
        for &before in instr.operands.iter().chain(&instr.control_predecessors) {
            needed.insert(before);
        }
        kept.push(id);
    }
    kept.reverse();
    kept
}
