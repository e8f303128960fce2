//! The instructions of one computation and what must, or had better, come before what.
//!
//! Hard edges are operands and control predecessors. Wished edges make the other readers of a value
//! come before the instruction that could take over its memory: all of them, or none where one of them
//! must come after it. The order kept to tell cycles is that of Pearce and Kelly (2006).

use std::collections::BTreeMap;
use std::collections::BTreeSet;

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
                graph.wish(&[number[first]], i);
            }
        }
        graph.add_wishes(module, flow, comp, &number);
        graph
    }

    fn add(&mut self, first: u32, then: u32) {
        let (before, after) = (&self.before[then as usize], &self.after[first as usize]);
        let known = if before.len() < after.len() {
            before.contains(&first)
        } else {
            after.contains(&then)
        };
        if !known {
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
        // Of the readers of a value one is the last; when that is settled, the others ask in vain.
        let mut settled: BTreeSet<ValueId> = BTreeSet::new();
        for (value, node) in wishes {
            if matches!(flow.values()[value].kind, ValueKind::Constant) {
                continue;
            }
            let readers = self.readers.get(&value).map_or(&[][..], Vec::as_slice);
            let is_reader = readers.binary_search(&node).is_ok();
            if is_reader && settled.contains(&value) {
                continue;
            }
            let others: Vec<u32> = readers.iter().copied().filter(|&r| r != node).collect();
            if self.wish(&others, node) && is_reader {
                settled.insert(value);
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

    /// Puts all of `first` before `then`, unless that closes a cycle; says whether it did.
    fn wish(&mut self, first: &[u32], then: u32) -> bool {
        let low = self.rank[then as usize];
        let above = first.iter().copied();
        let above: Vec<u32> = above.filter(|&f| self.rank[f as usize] > low).collect();
        let high = above.iter().map(|&f| self.rank[f as usize]).max();
        if let Some(high) = high {
            let stops: BTreeSet<u32> = above.iter().copied().collect();
            let Some(forward) = self.reach(then, high, &stops) else {
                return false;
            };
            let backward = self.reach_back(above, low);
            self.reorder(backward, forward);
        }
        for &f in first {
            self.add(f, then);
        }
        true
    }

    /// What comes after `from` up to rank `limit`; `None` when one of `stops` does.
    fn reach(&self, from: u32, limit: u32, stops: &BTreeSet<u32>) -> Option<Vec<u32>> {
        let mut seen = BTreeSet::from([from]);
        let mut out = vec![from];
        let mut next = 0;
        while next < out.len() {
            for &node in &self.after[out[next] as usize] {
                if stops.contains(&node) {
                    return None;
                }
                if self.rank[node as usize] < limit && seen.insert(node) {
                    out.push(node);
                }
            }
            next += 1;
        }
        Some(out)
    }

    /// What comes before any of `from` down to rank `limit`.
    fn reach_back(&self, from: Vec<u32>, limit: u32) -> Vec<u32> {
        let mut seen: BTreeSet<u32> = from.iter().copied().collect();
        let mut out = from;
        let mut next = 0;
        while next < out.len() {
            for &node in &self.before[out[next] as usize] {
                if self.rank[node as usize] > limit && seen.insert(node) {
                    out.push(node);
                }
            }
            next += 1;
        }
        out
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that copies one value this often.
    fn copies(count: usize) -> (Module, Graph) {
        let mut text = "HloModule m\n\nENTRY e {\n  x = f32[4] parameter(0)\n".to_owned();
        text.push_str("  y = f32[4] negate(x)\n");
        for i in 0..count {
            text.push_str(&format!("  c{i} = f32[4] copy(y)\n"));
        }
        let (shapes, names): (Vec<_>, Vec<_>) =
            (0..count).map(|i| ("f32[4]", format!("c{i}"))).unzip();
        let (shapes, names) = (shapes.join(", "), names.join(", "));
        text.push_str(&format!("  ROOT t = ({shapes}) tuple({names})\n}}\n"));
        let module = crate::front::hlo_text::parse(&text).unwrap();
        let flow = Dataflow::new(&module).unwrap();
        let graph = Graph::new(&module, &flow, module.entry);
        (module, graph)
    }

    #[test]
    fn one_of_many_copies_comes_last() {
        let count = 500;
        let (module, graph) = copies(count);
        let is_copy = |node: &usize| module.instrs[graph.nodes[*node]].op == Op::Copy;
        let waits = |node: &usize| graph.before[*node].len() == count;
        let nodes = (0..graph.nodes.len()).filter(is_copy);
        // The value itself and all other copies.
        assert_eq!(nodes.filter(waits).count(), 1);
        let edges: usize = graph.before.iter().map(Vec::len).sum();
        assert!(edges < 4 * count, "{edges} edges");
        let mut ranks = graph.rank.clone();
        ranks.sort_unstable();
        assert!(ranks.iter().copied().eq(0..graph.nodes.len() as u32));
        for (node, before) in graph.before.iter().enumerate() {
            for &first in before {
                assert!(graph.rank[first as usize] < graph.rank[node]);
            }
        }
    }
}
