//! The instructions of one computation and what must, or had better, come before what.
//!
//! Hard edges are operands and control predecessors. Wished edges make the other readers of a value
//! come before the instruction that could take over its memory; a wished edge that would close a
//! cycle is left out. The order kept to tell cycles is that of Pearce and Kelly (2006).

use std::collections::BTreeMap;

use crate::analysis::Dataflow;
use crate::analysis::ValueId;
use crate::analysis::ValueKind;
use crate::analysis::alias;
use crate::analysis::dataflow::CallKind;
use crate::analysis::dataflow::is_structural;
use crate::base::IdMap;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Op;

/// A computation as a graph; nodes are positions in its instruction list.
#[derive(Clone, Debug)]
pub struct Graph {
    /// Instruction of each node.
    pub nodes: Vec<InstrId>,
    /// What comes before each node.
    pub before: Vec<Vec<u32>>,
    /// What comes after each node.
    pub after: Vec<Vec<u32>>,
    /// The nodes that read each value, structure not counted, each once.
    pub readers: BTreeMap<ValueId, Vec<u32>>,
    /// Position of each node in some order that respects all edges.
    rank: Vec<u32>,
}

impl Graph {
    /// The graph of a computation with hard and wished edges.
    pub fn new(module: &Module, flow: &Dataflow, comp: CompId) -> Self {
        let nodes = module.comps[comp].instrs.clone();
        let mut number: IdMap<InstrId, u32> = IdMap::new();
        for (i, &id) in nodes.iter().enumerate() {
            number.set(id, i as u32);
        }
        let mut graph = Self {
            before: vec![Vec::new(); nodes.len()],
            after: vec![Vec::new(); nodes.len()],
            readers: BTreeMap::new(),
            rank: (0..nodes.len() as u32).collect(),
            nodes,
        };
        for i in 0..graph.nodes.len() as u32 {
            let instr = &module.instrs[graph.nodes[i as usize]];
            for &operand in &instr.operands {
                graph.add(number[operand], i);
                if is_structural(&instr.op) {
                    continue;
                }
                for &value in flow.at(operand) {
                    let readers = graph.readers.entry(value).or_default();
                    if readers.last() != Some(&i) {
                        readers.push(i);
                    }
                }
            }
        }
        // Control edges may point against the listed order.
        for i in 0..graph.nodes.len() as u32 {
            let instr = &module.instrs[graph.nodes[i as usize]];
            for &first in &instr.control_predecessors {
                graph.wish(number[first], i);
            }
        }
        graph.add_wishes(module, flow, comp, &number);
        graph
    }

    fn add(&mut self, first: u32, then: u32) {
        if !self.before[then as usize].contains(&first) {
            self.before[then as usize].push(first);
            self.after[first as usize].push(then);
        }
    }

    fn add_wishes(
        &mut self,
        module: &Module,
        flow: &Dataflow,
        comp: CompId,
        number: &IdMap<InstrId, u32>,
    ) {
        let mut wishes = Vec::new();
        for (i, &id) in self.nodes.iter().enumerate() {
            let shares = alias::shares(module, id);
            for share in shares.iter().filter(|s| s.saves_copy) {
                let operand = module.instrs[id].operands[share.operand];
                wishes.push((flow.at(operand)[share.operand_leaf], i as u32));
            }
        }
        if let Some((caller, CallKind::Body)) = flow.caller(comp) {
            let root = flow.at(module.comps[comp].root);
            for (leaf, &state) in flow.at(caller).iter().enumerate() {
                let next = &flow.values()[root[leaf]];
                if flow.is_state(caller, leaf) && module.instrs[next.instr].parent == comp {
                    wishes.push((state, number[next.instr]));
                }
            }
        }
        if comp == module.entry {
            self.donation_wishes(module, flow, number, &mut wishes);
        }
        for (value, node) in wishes {
            if matches!(flow.values()[value].kind, ValueKind::Constant) {
                continue;
            }
            for reader in self.readers.get(&value).cloned().unwrap_or_default() {
                if reader != node {
                    self.wish(reader, node);
                }
            }
        }
    }

    /// What makes a result leaf that takes a parameter's memory comes after the parameter's readers.
    fn donation_wishes(
        &self,
        module: &Module,
        flow: &Dataflow,
        number: &IdMap<InstrId, u32>,
        wishes: &mut Vec<(ValueId, u32)>,
    ) {
        let entry = module.entry_comp();
        let leaf_value = |id: InstrId, index: &[usize]| {
            let leaves = module.instrs[id].shape.leaves();
            let leaf = leaves.iter().position(|(i, _)| i.as_slice() == index)?;
            Some(flow.at(id)[leaf])
        };
        for (index, target) in &module.input_output_alias {
            let parameter = entry.params.get(target.parameter);
            let parameter = parameter.and_then(|&p| leaf_value(p, &target.index));
            let (Some(parameter), Some(result)) = (parameter, leaf_value(entry.root, index)) else {
                continue;
            };
            let mut maker = flow.values()[result].instr;
            wishes.push((parameter, number[maker]));
            while matches!(module.instrs[maker].op, Op::Copy) {
                maker = flow.values()[flow.at(module.instrs[maker].operands[0])[0]].instr;
            }
            if module.instrs[maker].parent == module.entry {
                wishes.push((parameter, number[maker]));
            }
        }
    }

    /// Adds an edge unless it closes a cycle.
    fn wish(&mut self, first: u32, then: u32) {
        let (low, high) = (self.rank[then as usize], self.rank[first as usize]);
        if high > low {
            let mut forward = Vec::new();
            if !self.reach(then, high, first, &mut forward) {
                return;
            }
            let mut backward = Vec::new();
            self.reach_back(first, low, &mut backward);
            self.reorder(backward, forward);
        }
        self.add(first, then);
    }

    /// Gathers what comes after `from` up to rank `limit`; false when `stop` is met.
    fn reach(&self, from: u32, limit: u32, stop: u32, out: &mut Vec<u32>) -> bool {
        let mut seen = std::collections::BTreeSet::from([from]);
        out.push(from);
        let mut next = 0;
        while next < out.len() {
            for &node in &self.after[out[next] as usize] {
                if node == stop {
                    return false;
                }
                if self.rank[node as usize] < limit && seen.insert(node) {
                    out.push(node);
                }
            }
            next += 1;
        }
        true
    }

    fn reach_back(&self, from: u32, limit: u32, out: &mut Vec<u32>) {
        let mut seen = std::collections::BTreeSet::from([from]);
        out.push(from);
        let mut next = 0;
        while next < out.len() {
            for &node in &self.before[out[next] as usize] {
                if self.rank[node as usize] > limit && seen.insert(node) {
                    out.push(node);
                }
            }
            next += 1;
        }
    }

    /// Gives the ranks of both sets out again, the first set before the second.
    fn reorder(&mut self, mut first: Vec<u32>, mut second: Vec<u32>) {
        first.sort_by_key(|&n| self.rank[n as usize]);
        second.sort_by_key(|&n| self.rank[n as usize]);
        first.extend(second);
        let mut ranks: Vec<u32> = first.iter().map(|&n| self.rank[n as usize]).collect();
        ranks.sort_unstable();
        for (node, rank) in first.into_iter().zip(ranks) {
            self.rank[node as usize] = rank;
        }
    }
}
