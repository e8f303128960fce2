//! Placing registers: which are live where, and which can share a place.
//!
//! A register that lives from one instruction to another takes its place for all instructions
//! between them in the order of the text, and for the whole of every loop it lives through. Lanes
//! that are at different instructions each keep to their own lane of a place, so sharing holds for
//! divergent warps as well.

use crate::simulator::code::inst::*;
use crate::simulator::warp::lanes::Class;
use crate::simulator::warp::lanes::Slot;

/// Beyond this many bits of live sets every register gets a place of its own.
const MOST_BITS: usize = 1 << 28;

/// What placing gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// First free byte after the registers.
    pub end: u32,
    /// Most 32-bit registers alive at once, a 64-bit one counted twice.
    pub pressure: u32,
}

struct Block {
    start: usize,
    end: usize,
    next: Vec<usize>,
}

fn ends_block(op: &Op) -> bool {
    matches!(
        op,
        Op::Branch(_) | Op::BranchIndex(..) | Op::Return | Op::Exit | Op::Trap
    )
}

/// The basic blocks of instructions whose branch targets count from `first`.
fn blocks(code: &[Inst], first: u32) -> Vec<Block> {
    let local = |target: u32| (target.wrapping_sub(first) as usize).min(code.len());
    let mut leader = vec![false; code.len() + 1];
    leader[0] = true;
    for (index, inst) in code.iter().enumerate() {
        match &inst.op {
            Op::Branch(target) => leader[local(*target)] = true,
            Op::BranchIndex(_, targets) => {
                for target in targets {
                    leader[local(*target)] = true;
                }
            }
            _ => {}
        }
        if ends_block(&inst.op) {
            leader[index + 1] = true;
        }
    }
    let starts: Vec<usize> = (0..code.len()).filter(|i| leader[*i]).collect();
    let of = |pc: usize| starts.partition_point(|s| *s <= pc) - 1;
    let mut list = Vec::with_capacity(starts.len());
    for (number, &start) in starts.iter().enumerate() {
        let end = starts.get(number + 1).copied().unwrap_or(code.len());
        let last = &code[end - 1];
        let mut next = Vec::new();
        match &last.op {
            Op::Branch(target) if local(*target) < code.len() => next.push(of(local(*target))),
            Op::BranchIndex(_, targets) => {
                next.extend(
                    targets
                        .iter()
                        .map(|t| local(*t))
                        .filter(|t| *t < code.len())
                        .map(of),
                );
            }
            _ => {}
        }
        let falls = !ends_block(&last.op) || last.guard.is_some();
        if falls && end < code.len() {
            next.push(of(end));
        }
        list.push(Block { start, end, next });
    }
    list
}

/// A set of register numbers.
#[derive(Clone, PartialEq)]
struct Set(Vec<u64>);

impl Set {
    fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }
    fn insert(&mut self, i: usize) {
        self.0[i / 64] |= 1 << (i % 64);
    }
    fn contains(&self, i: usize) -> bool {
        self.0[i / 64] >> (i % 64) & 1 != 0
    }
    fn each(&self, mut f: impl FnMut(usize)) {
        for (index, word) in self.0.iter().enumerate() {
            let mut rest = *word;
            while rest != 0 {
                f(index * 64 + rest.trailing_zeros() as usize);
                rest &= rest - 1;
            }
        }
    }
}

/// From where to where each register lives, in instruction numbers; `None` when it is not used.
fn intervals(code: &mut [Inst], first: u32, count: usize) -> Vec<Option<(u32, u32)>> {
    let mut spans: Vec<Option<(u32, u32)>> = vec![None; count];
    let widen = |spans: &mut Vec<Option<(u32, u32)>>, register: usize, at: u32| {
        if let Some(span) = spans.get_mut(register) {
            let (from, to) = span.unwrap_or((at, at));
            *span = Some((from.min(at), to.max(at)));
        }
    };
    for (index, inst) in code.iter_mut().enumerate() {
        inst.visit(&mut |slot, _| widen(&mut spans, slot.0 as usize, index as u32));
    }
    let blocks = blocks(code, first);
    if blocks.len().saturating_mul(count) > MOST_BITS {
        let last = code.len() as u32;
        return spans.iter().map(|s| s.map(|_| (0, last))).collect();
    }
    let mut read = Vec::with_capacity(blocks.len());
    let mut kill = Vec::with_capacity(blocks.len());
    for block in &blocks {
        let (mut uses, mut defs) = (Set::new(count), Set::new(count));
        for inst in &mut code[block.start..block.end] {
            let sure = !inst.guard.is_some();
            inst.visit(&mut |slot, role| {
                let register = slot.0 as usize;
                if register >= count {
                } else if role == Role::Use {
                    if !defs.contains(register) {
                        uses.insert(register);
                    }
                } else if sure {
                    defs.insert(register);
                }
            });
        }
        read.push(uses);
        kill.push(defs);
    }
    let mut live_in = read.clone();
    let mut live_out = vec![Set::new(count); blocks.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for b in (0..blocks.len()).rev() {
            for n in &blocks[b].next {
                for (out, word) in live_out[b].0.iter_mut().zip(&live_in[*n].0) {
                    *out |= word;
                }
            }
            for i in 0..live_in[b].0.len() {
                let now = read[b].0[i] | (live_out[b].0[i] & !kill[b].0[i]);
                changed |= now != live_in[b].0[i];
                live_in[b].0[i] = now;
            }
        }
    }
    for (b, block) in blocks.iter().enumerate() {
        live_in[b].each(|register| widen(&mut spans, register, block.start as u32));
        live_out[b].each(|register| widen(&mut spans, register, block.end as u32));
    }
    spans
}

/// The same spans, longer where a product may still be under way: what happens to its registers
/// between its issue and its wait must be seen to happen to them.
fn held(
    code: &mut [Inst],
    first: u32,
    mut spans: Vec<Option<(u32, u32)>>,
) -> Vec<Option<(u32, u32)>> {
    let is_product = |inst: &Inst| matches!(inst.op, Op::Wgmma(_));
    let ends = |inst: &Inst| is_product(inst) || matches!(inst.op, Op::WgmmaWait(_));
    let (Some(mut low), Some(mut high)) = (
        code.iter().position(is_product),
        code.iter().rposition(ends),
    ) else {
        return spans;
    };
    // A loop goes round with products under way.
    let mut changed = true;
    while changed {
        changed = false;
        for (index, inst) in code.iter().enumerate() {
            if let Op::Branch(target) = &inst.op {
                let target = target.wrapping_sub(first) as usize;
                let around = target <= high && index >= low && target <= index;
                if around && (target < low || index > high) {
                    (low, high) = (low.min(target), high.max(index));
                    changed = true;
                }
            }
        }
    }
    for inst in code {
        if let Op::Wgmma(product) = &inst.op {
            for reg in product.d.iter().chain(&product.a) {
                if let Some(Some((from, to))) = spans.get_mut(reg.slot.0 as usize) {
                    (*from, *to) = ((*from).min(low as u32), (*to).max(high as u32));
                }
            }
        }
    }
    spans
}

/// Gives every register of a function a place from byte `start` on, and writes the places into
/// the instructions. `classes` says how each register is stored; the first `pinned` of them keep
/// places of their own. Returns the places too, [`Slot::NONE`] for a register that is not used.
pub fn place(
    code: &mut [Inst],
    first: u32,
    classes: &[Class],
    pinned: usize,
    start: u32,
) -> (Placed, Vec<Slot>) {
    let spans = intervals(code, first, classes.len());
    let weight = |class: Class| match class {
        Class::Pred => 0,
        Class::W32 => 1,
        Class::W64 => 2,
        Class::W128 => 4,
    };
    let mut steps = vec![0i64; code.len() + 2];
    for (span, class) in spans.iter().zip(classes) {
        if let Some((from, to)) = span {
            steps[*from as usize] += weight(*class);
            steps[*to as usize + 1] -= weight(*class);
        }
    }
    let (mut now, mut pressure) = (0, 0);
    for step in steps {
        now += step;
        pressure = pressure.max(now);
    }
    let spans = held(code, first, spans);
    let mut order: Vec<usize> = (0..classes.len()).filter(|i| spans[*i].is_some()).collect();
    order.sort_by_key(|i| (spans[*i].map_or(0, |s| s.0), *i));
    let mut places = vec![Slot::NONE; classes.len()];
    let mut top = start;
    let mut free: [Vec<u32>; 4] = Default::default();
    let mut active: std::collections::BTreeSet<(u32, usize)> = std::collections::BTreeSet::new();
    let fresh = |top: &mut u32, class: Class| {
        let bytes = class.bytes().max(4);
        let at = top.next_multiple_of(bytes.min(64));
        *top = at.saturating_add(bytes);
        at
    };
    for (register, class) in classes.iter().enumerate().take(pinned) {
        places[register] = Slot(fresh(&mut top, *class));
    }
    for register in order {
        let Some((from, to)) = spans[register] else {
            continue;
        };
        while let Some(&(end, old)) = active.first() {
            if end >= from {
                break;
            }
            active.remove(&(end, old));
            if old >= pinned {
                free[classes[old] as usize].push(places[old].0);
            }
        }
        let class = classes[register];
        if register >= pinned {
            let at = match free[class as usize].pop() {
                Some(at) => at,
                None => fresh(&mut top, class),
            };
            places[register] = Slot(at);
        }
        active.insert((to, register));
    }
    for inst in code.iter_mut() {
        // A visit may see one slot twice; places are given once, by the slots as they were.
        let mut done: Vec<*const Slot> = Vec::new();
        inst.visit(&mut |slot, _| {
            let which: *const Slot = slot;
            if !done.contains(&which) {
                done.push(which);
                *slot = places.get(slot.0 as usize).copied().unwrap_or(Slot(start));
            }
        });
    }
    let placed = Placed {
        end: top.next_multiple_of(64),
        pressure: pressure as u32,
    };
    (placed, places)
}
