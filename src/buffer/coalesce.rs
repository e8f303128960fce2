//! Which values live in one place: classes of values whose lives do not interfere.
//!
//! As in leaving SSA form with coalescing (Boissinot and others, 2009), but for arrays: pairs that
//! save a copy are tried first, the costliest first, then pairs that only save memory. Two values may
//! touch at one point when one is an operand there and the other the result that may take its place.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::analysis::Dataflow;
use crate::analysis::Live;
use crate::analysis::Segment;
use crate::analysis::ValueId;
use crate::analysis::alias;
use crate::analysis::dataflow::CallKind;
use crate::base::Id;
use crate::base::IdMap;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;

/// Two values that would like to share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The value that ends.
    pub from: ValueId,
    /// The value that begins.
    pub to: ValueId,
    /// What a copy would cost, zero when none is saved.
    pub weight: u64,
}

/// The values of a program in classes.
#[derive(Clone, Debug)]
pub struct Classes {
    parent: Vec<ValueId>,
    /// Of each root: start of a segment to its end and value.
    segments: Vec<BTreeMap<u32, (u32, ValueId)>>,
    /// Of each root: whether the class must stay as it is.
    frozen: Vec<bool>,
    bytes: Vec<u64>,
    allowed: BTreeSet<(ValueId, ValueId)>,
}

impl Classes {
    /// Every value in a class of its own. `frozen` values stay alone.
    pub fn new(flow: &Dataflow, live: &Live, wishes: &[Wish], frozen: &[ValueId]) -> Self {
        let mut segments = Vec::with_capacity(flow.values().len());
        for value in flow.values().ids() {
            let of_value = live.segments[value].iter();
            segments.push(of_value.map(|s| (s.start, (s.end, value))).collect());
        }
        let mut is_frozen = vec![false; flow.values().len()];
        for &value in frozen {
            is_frozen[value.index()] = true;
        }
        Self {
            parent: flow.values().ids().collect(),
            segments,
            frozen: is_frozen,
            bytes: flow.values().values().map(|v| v.bytes()).collect(),
            allowed: wishes.iter().map(|w| (w.from, w.to)).collect(),
        }
    }
    /// The value that stands for the class of `value`.
    pub fn root(&self, value: ValueId) -> ValueId {
        let mut value = value;
        while self.parent[value.index()] != value {
            value = self.parent[value.index()];
        }
        value
    }
    /// The first and last point of a class, given by its root.
    pub fn hull(&self, root: ValueId) -> Segment {
        let segments = &self.segments[root.index()];
        let ends = segments.values().map(|&(end, _)| end);
        Segment {
            start: segments.keys().next().copied().unwrap_or(0),
            end: ends.max().unwrap_or(0),
        }
    }
    /// Puts the classes of two values together unless they interfere; whether they are one now.
    pub fn merge(&mut self, a: ValueId, b: ValueId) -> bool {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return true;
        }
        if self.frozen[a.index()] || self.frozen[b.index()] {
            return false;
        }
        if self.bytes[a.index()] != self.bytes[b.index()] || self.interferes(a, b) {
            return false;
        }
        let (large, small) = if self.segments[a.index()].len() >= self.segments[b.index()].len() {
            (a, b)
        } else {
            (b, a)
        };
        let moved = std::mem::take(&mut self.segments[small.index()]);
        self.segments[large.index()].extend(moved);
        self.parent[small.index()] = large;
        true
    }

    fn interferes(&self, a: ValueId, b: ValueId) -> bool {
        let (a, b) = (&self.segments[a.index()], &self.segments[b.index()]);
        let (large, small) = if a.len() >= b.len() { (a, b) } else { (b, a) };
        for (&start, &(end, value)) in small {
            // The segments of a class only touch, so those that overlap this one are the last that
            // start before it and all that start within it.
            let before = large.range(..start).next_back();
            for (&other_start, &(other_end, other)) in
                before.into_iter().chain(large.range(start..=end))
            {
                if other_end < start {
                    continue;
                }
                let touching = (end == other_start && self.allowed.contains(&(value, other)))
                    || (other_end == start && self.allowed.contains(&(other, value)));
                if start == other_start || !touching {
                    return true;
                }
            }
        }
        false
    }
}

/// All pairs that would like to share, in the order to be tried.
pub fn wishes(module: &Module, flow: &Dataflow, order: &IdMap<CompId, Vec<InstrId>>) -> Vec<Wish> {
    let mut out = Vec::new();
    for &comp in flow.comps() {
        let cost = 8u64.saturating_pow(loop_depth(module, flow, comp).min(8));
        for &id in &order[comp] {
            let instr = &module.instrs[id];
            match &instr.op {
                Op::While { body, .. } => while_wishes(module, flow, id, *body, cost, &mut out),
                Op::Conditional { branches } => {
                    for leaf in 0..flow.at(id).len() {
                        if !flow.is_merge(id, leaf) {
                            continue;
                        }
                        let to = flow.at(id)[leaf];
                        for &branch in branches {
                            let from = flow.at(module.comps[branch].root)[leaf];
                            out.push(wish(flow, from, to, cost));
                        }
                    }
                }
                _ => share_wishes(module, flow, id, cost, &mut out),
            }
        }
    }
    out.retain(|w| {
        let values = flow.values();
        values[w.from].shape.is_some() && values[w.from].bytes() == values[w.to].bytes()
    });
    out.sort_by_key(|w| std::cmp::Reverse(w.weight));
    out
}

fn wish(flow: &Dataflow, from: ValueId, to: ValueId, cost: u64) -> Wish {
    Wish {
        from,
        to,
        weight: flow.values()[to].bytes().max(1).saturating_mul(cost),
    }
}

fn while_wishes(
    module: &Module,
    flow: &Dataflow,
    id: InstrId,
    body: CompId,
    cost: u64,
    out: &mut Vec<Wish>,
) {
    let init = flow.at(module.instrs[id].operands[0]);
    let root = flow.at(module.comps[body].root);
    for (leaf, &state) in flow.at(id).iter().enumerate() {
        if flow.is_state(id, leaf) {
            out.push(wish(flow, root[leaf], state, cost.saturating_mul(8)));
            out.push(wish(flow, init[leaf], state, cost));
        }
    }
}

fn share_wishes(module: &Module, flow: &Dataflow, id: InstrId, cost: u64, out: &mut Vec<Wish>) {
    let instr = &module.instrs[id];
    let shares = alias::shares(module, id);
    for share in &shares {
        let from = flow.at(instr.operands[share.operand])[share.operand_leaf];
        let Some(&to) = flow.at(id).get(share.result_leaf) else {
            continue;
        };
        // The same value may be another operand too, which then must be as willing to share.
        let willing = instr.operands.iter().enumerate().all(|(operand, &o)| {
            flow.at(o).iter().enumerate().all(|(leaf, &value)| {
                value != from
                    || shares.iter().any(|s| {
                        s.operand == operand
                            && s.operand_leaf == leaf
                            && s.result_leaf == share.result_leaf
                    })
            })
        });
        if willing {
            let weight = if share.saves_copy { cost } else { 0 };
            out.push(wish(flow, from, to, weight));
        }
    }
}

/// How many loops run a computation.
fn loop_depth(module: &Module, flow: &Dataflow, comp: CompId) -> u32 {
    let mut depth = 0;
    let mut comp = comp;
    while let Some((caller, kind)) = flow.caller(comp) {
        depth += u32::from(matches!(kind, CallKind::Body | CallKind::Condition));
        comp = module.instrs[caller].parent;
    }
    depth
}
