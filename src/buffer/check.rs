//! Checks a buffer assignment by following what memory holds.
//!
//! Independent of live ranges and coalescing: the scheduled program is walked once, with a map from
//! memory to the values it holds. Every read must find its value whole, read-only memory is never
//! written, and a result overlaps an operand only where [`crate::analysis::alias`] allows it. A loop
//! is entered with everything forgotten that the loop writes; a conditional is left that way.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::analysis::ValueId;
use crate::analysis::ValueKind;
use crate::analysis::alias;
use crate::analysis::dataflow::is_structural;
use crate::base::Diagnostic;
use crate::base::Location;
use crate::base::codes;
use crate::buffer::BufferAssignment;
use crate::buffer::moves;
use crate::buffer::moves::Move;
use crate::executable::AllocId;
use crate::executable::AllocKind;
use crate::executable::Slice;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;
use crate::schedule::Scheduled;
use crate::target::Target;

/// Every broken rule; none when the assignment is right.
pub fn check(
    scheduled: &Scheduled,
    assignment: &BufferAssignment,
    target: &Target,
) -> Vec<Diagnostic> {
    let mut checker = Checker {
        module: &scheduled.module,
        scheduled,
        assignment,
        memory: Memory::default(),
        findings: Vec::new(),
    };
    checker.slices(target);
    checker.outputs();
    if checker.findings.is_empty() {
        checker.run();
    }
    checker.findings
}

/// Which value lies where: start of a range to its end and value.
#[derive(Clone, Default)]
struct Memory {
    ranges: BTreeMap<(AllocId, u64), (u64, ValueId)>,
}

impl Memory {
    fn forget(&mut self, slice: &Slice) {
        let end = slice.offset + slice.size;
        if slice.size == 0 {
            return;
        }
        let before = self.ranges.range(..(slice.alloc, slice.offset)).next_back();
        let mut gone: Vec<(AllocId, u64)> = before
            .filter(|((alloc, _), (end, _))| *alloc == slice.alloc && *end > slice.offset)
            .map(|(&key, _)| key)
            .into_iter()
            .collect();
        let within = (slice.alloc, slice.offset)..(slice.alloc, end);
        gone.extend(self.ranges.range(within).map(|(&key, _)| key));
        for key in gone {
            self.ranges.remove(&key);
        }
    }
    fn write(&mut self, slice: &Slice, value: ValueId) {
        if slice.size > 0 {
            self.forget(slice);
            let end = slice.offset + slice.size;
            self.ranges
                .insert((slice.alloc, slice.offset), (end, value));
        }
    }
    fn holds(&self, slice: &Slice, value: ValueId) -> bool {
        let end = slice.offset + slice.size;
        slice.size == 0 || self.ranges.get(&(slice.alloc, slice.offset)) == Some(&(end, value))
    }
}

struct Checker<'a> {
    module: &'a Module,
    scheduled: &'a Scheduled,
    assignment: &'a BufferAssignment,
    memory: Memory,
    findings: Vec<Diagnostic>,
}

impl Checker<'_> {
    fn add(&mut self, instr: InstrId, message: impl Into<String>) {
        let known = &self.module.instrs[instr];
        let location = Location::Instruction {
            computation: self.module.comps[known.parent].name.clone(),
            text: crate::hlo::print::instr(self.module, instr),
        };
        let finding = Diagnostic::internal(codes::BUFFER_CHECK, message);
        self.findings.push(*finding.at(location));
    }

    fn value_name(&self, value: ValueId) -> String {
        let value = &self.assignment.flow.values()[value];
        let name = &self.module.instrs[value.instr].name;
        if value.index.is_empty() {
            format!("`{name}`")
        } else {
            format!("`{name}`{:?}", value.index)
        }
    }

    /// Sizes, bounds and alignment of all slices.
    fn slices(&mut self, target: &Target) {
        let assignment = self.assignment;
        for (id, value) in assignment.flow.values().iter() {
            let Some(slice) = assignment.slices[id] else {
                continue;
            };
            if slice.size != value.bytes() {
                let message = format!("a slice of {} for {}", slice.size, value.bytes());
                self.add(value.instr, message);
            }
            self.place(value.instr, slice, target);
            let at_home = match (
                value.kind,
                assignment.allocs.get(slice.alloc).map(|a| &a.kind),
            ) {
                (ValueKind::Constant, Some(AllocKind::Constant(constant))) => {
                    assignment.constants.get(*constant) == Some(&value.instr)
                }
                (ValueKind::Parameter, Some(AllocKind::Parameter { number, index, .. })) => {
                    let params = &self.module.entry_comp().params;
                    params.get(*number) == Some(&value.instr) && *index == value.index
                }
                (ValueKind::Constant | ValueKind::Parameter, _) => false,
                (ValueKind::State | ValueKind::Merge | ValueKind::Computed, _) => true,
            };
            if !at_home {
                self.add(
                    value.instr,
                    "the slice is not in the value's own allocation",
                );
            }
        }
        for (instr, slice) in assignment.scratch.iter() {
            if let Some(slice) = *slice {
                self.place(instr, slice, target);
            }
        }
        let temps = assignment.allocs.values().filter(|a| a.is_temp()).count();
        if temps > 1 {
            let message = format!("{temps} allocations for temporary values, wanted one at most");
            self.add(self.module.entry_comp().root, message);
        }
    }

    fn place(&mut self, instr: InstrId, slice: Slice, target: &Target) {
        let Some(alloc) = self.assignment.allocs.get(slice.alloc) else {
            self.add(instr, "the slice's allocation does not exist");
            return;
        };
        if slice.offset + slice.size > alloc.size.0 {
            self.add(instr, "the slice leaves its allocation");
        }
        if !slice.offset.is_multiple_of(target.buffer_alignment) {
            self.add(instr, format!("the slice is not aligned: {}", slice.offset));
        }
        if !alloc.is_temp() && slice.offset != 0 {
            self.add(instr, "the slice is not at the start of its allocation");
        }
    }

    /// Every result leaf has an allocation of its own that lives on, and nothing else does.
    fn outputs(&mut self) {
        let assignment = self.assignment;
        let root = self.module.entry_comp().root;
        let mut seen = BTreeSet::new();
        for (index, slice) in assignment.outputs(self.module) {
            if !seen.insert(slice.alloc) {
                self.add(root, format!("result {index:?} shares its allocation"));
            }
            let alloc = &assignment.allocs[slice.alloc];
            let target = self.module.input_output_alias.get(&index);
            let fits = match (&alloc.kind, target) {
                (AllocKind::Owned, None) => true,
                (AllocKind::Parameter { number, index, .. }, Some(target)) => {
                    *number == target.parameter && *index == target.index
                }
                _ => false,
            };
            if !fits {
                self.add(root, format!("result {index:?} is in the wrong allocation"));
            }
        }
        seen.extend(assignment.tables.values().map(|t| t.alloc));
        for (id, alloc) in assignment.allocs.iter() {
            if alloc.live_out != seen.contains(&id) {
                self.add(
                    root,
                    format!("{id:?} is wrongly said to live on, or not to"),
                );
            }
        }
    }

    fn run(&mut self) {
        let assignment = self.assignment;
        let entry = self.module.entry_comp();
        for (id, value) in assignment.flow.values().iter() {
            let Some(slice) = assignment.slices[id] else {
                continue;
            };
            if matches!(
                self.module.instrs[value.instr].op,
                Op::Parameter { .. } | Op::Constant(_)
            ) {
                self.memory.write(&slice, id);
            }
        }
        self.computation(self.module.entry);
        self.read_all(entry.root, entry.root);
    }

    fn computation(&mut self, comp: CompId) {
        let scheduled = self.scheduled;
        for &id in &scheduled.order[comp] {
            self.instruction(id);
        }
    }

    fn read(&mut self, at: InstrId, value: ValueId) {
        let assignment = self.assignment;
        if assignment.flow.values()[value].shape.is_none() {
            return;
        }
        match assignment.slices[value] {
            None => self.add(at, format!("{} has no slice", self.value_name(value))),
            Some(slice) if !self.memory.holds(&slice, value) => {
                let message = format!("{} is gone before it is read", self.value_name(value));
                self.add(at, message);
            }
            Some(_) => {}
        }
    }

    fn read_all(&mut self, at: InstrId, operand: InstrId) {
        let assignment = self.assignment;
        for &value in assignment.flow.at(operand) {
            self.read(at, value);
        }
    }

    fn write(&mut self, at: InstrId, value: ValueId) {
        let assignment = self.assignment;
        if assignment.flow.values()[value].shape.is_none() {
            return;
        }
        let Some(slice) = assignment.slices[value] else {
            self.add(at, format!("{} has no slice", self.value_name(value)));
            return;
        };
        let alloc = &assignment.allocs[slice.alloc];
        let read_only = match &alloc.kind {
            AllocKind::Parameter { aliased_output, .. } => !aliased_output,
            AllocKind::Constant(_) | AllocKind::Tuple => true,
            AllocKind::ThreadLocal | AllocKind::Owned | AllocKind::Window => false,
        };
        if read_only {
            self.add(at, format!("{:?} is written and read-only", slice.alloc));
        }
        self.memory.write(&slice, value);
    }

    fn instruction(&mut self, id: InstrId) {
        let module = self.module;
        let instr = &module.instrs[id];
        match &instr.op {
            op if is_structural(op) => {}
            Op::While { condition, body } => self.while_loop(id, *condition, *body),
            Op::Conditional { branches } => self.conditional(id, branches),
            Op::Call { body, .. } => self.computation(*body),
            _ => self.computing(id),
        }
    }

    fn computing(&mut self, id: InstrId) {
        let module = self.module;
        let assignment = self.assignment;
        let instr = &module.instrs[id];
        let shares = alias::shares(module, id);
        for (number, &operand) in instr.operands.iter().enumerate() {
            self.read_all(id, operand);
            for (operand_leaf, &from) in assignment.flow.at(operand).iter().enumerate() {
                for (leaf, &to) in assignment.flow.at(id).iter().enumerate() {
                    let (Some(a), Some(b)) = (assignment.slices[from], assignment.slices[to])
                    else {
                        continue;
                    };
                    let allowed = a == b
                        && shares.iter().any(|s| {
                            (s.operand, s.operand_leaf, s.result_leaf)
                                == (number, operand_leaf, leaf)
                        });
                    if a.overlaps(&b) && !allowed {
                        let message = format!("operand {number} must not share with the result");
                        self.add(id, message);
                    }
                }
            }
        }
        if let Some(scratch) = assignment.scratch[id] {
            let operands = instr.operands.iter().flat_map(|&o| assignment.flow.at(o));
            let all = operands.chain(assignment.flow.at(id));
            let mut slices = all.filter_map(|&v| assignment.slices[v]);
            if slices.any(|s| s.overlaps(&scratch)) {
                self.add(id, "the scratch memory overlaps an operand or the result");
            }
            self.memory.forget(&scratch);
        }
        for &value in assignment.flow.at(id) {
            self.write(id, value);
        }
        for &value in assignment.flow.at(id) {
            if let Some(slice) = assignment.slices[value]
                && !self.memory.holds(&slice, value)
            {
                self.add(id, "two results share memory");
            }
        }
    }

    /// Moves values into others, as the thunks do.
    fn moves(&mut self, at: InstrId, pairs: &[(ValueId, ValueId)]) {
        let assignment = self.assignment;
        let mut list = Vec::new();
        for (leaf, &(from, to)) in pairs.iter().enumerate() {
            match (assignment.slices[from], assignment.slices[to]) {
                (Some(source), Some(destination)) => list.push(Move {
                    leaf,
                    source,
                    destination,
                }),
                _ if assignment.flow.values()[to].shape.is_none() => {}
                _ => self.add(at, "a value to be moved has no slice"),
            }
        }
        let ordered = match moves::in_order(&list) {
            Ok(ordered) => ordered,
            Err(error) => {
                self.add(at, error.message);
                return;
            }
        };
        for one in &ordered {
            self.read(at, pairs[one.leaf].0);
            self.write(at, pairs[one.leaf].1);
        }
        let stay = list.iter().filter(|m| m.source == m.destination);
        for one in stay.clone() {
            self.read(at, pairs[one.leaf].0);
        }
        for one in stay {
            self.write(at, pairs[one.leaf].1);
        }
    }

    fn while_loop(&mut self, id: InstrId, condition: CompId, body: CompId) {
        let module = self.module;
        let flow = &self.assignment.flow;
        let own: Vec<usize> = (0..flow.at(id).len())
            .filter(|&leaf| flow.is_state(id, leaf))
            .collect();
        let pairs = |from: InstrId| -> Vec<(ValueId, ValueId)> {
            let pair = |&leaf: &usize| (flow.at(from)[leaf], flow.at(id)[leaf]);
            own.iter().map(pair).collect()
        };
        self.read_all(id, module.instrs[id].operands[0]);
        self.moves(id, &pairs(module.instrs[id].operands[0]));
        let mut written = Vec::new();
        self.written(condition, &mut written);
        self.written(body, &mut written);
        for slice in &written {
            self.memory.forget(slice);
        }
        for &leaf in &own {
            self.write(id, flow.at(id)[leaf]);
        }
        self.computation(condition);
        self.read_all(id, module.comps[condition].root);
        let after = self.memory.clone();
        self.computation(body);
        self.moves(id, &pairs(module.comps[body].root));
        self.memory = after;
    }

    fn conditional(&mut self, id: InstrId, branches: &[CompId]) {
        let module = self.module;
        let flow = &self.assignment.flow;
        let own: Vec<usize> = (0..flow.at(id).len())
            .filter(|&leaf| flow.is_merge(id, leaf))
            .collect();
        self.read_all(id, module.instrs[id].operands[0]);
        let before = self.memory.clone();
        let mut written = Vec::new();
        for &branch in branches {
            self.computation(branch);
            let root = module.comps[branch].root;
            let pair = |&leaf: &usize| (flow.at(root)[leaf], flow.at(id)[leaf]);
            let pairs: Vec<_> = own.iter().map(pair).collect();
            self.moves(id, &pairs);
            self.written(branch, &mut written);
            self.memory = before.clone();
        }
        for slice in &written {
            self.memory.forget(slice);
        }
        for &leaf in &own {
            self.write(id, flow.at(id)[leaf]);
        }
    }

    /// Every slice that a computation writes.
    fn written(&self, comp: CompId, out: &mut Vec<Slice>) {
        let module = self.module;
        let assignment = self.assignment;
        for &id in &self.scheduled.order[comp] {
            let op = &module.instrs[id].op;
            if is_structural(op) {
                continue;
            }
            let own = assignment.flow.at(id).iter();
            let own = own.filter(|v| assignment.flow.values()[**v].instr == id);
            out.extend(own.filter_map(|&v| assignment.slices[v]));
            out.extend(assignment.scratch[id]);
            if matches!(
                op,
                Op::While { .. } | Op::Conditional { .. } | Op::Call { .. }
            ) {
                for called in op.called() {
                    self.written(called, out);
                }
            }
        }
    }
}
