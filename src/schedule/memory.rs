//! List scheduling for low peak memory.
//!
//! Three orders are made (as listed, depth first, and greedily by bytes freed) and the one with the
//! lowest peak is taken, the earlier of equals. Computations are scheduled callees first, so that the
//! memory within a call is known.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::analysis::Dataflow;
use crate::analysis::ValueId;
use crate::analysis::ValueKind;
use crate::analysis::dataflow::is_structural;
use crate::analysis::scratch;

use crate::base::IdMap;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::schedule::graph::Graph;
use crate::target::Target;

/// Peak memory within the computations scheduled so far.
pub type Peaks = IdMap<CompId, u64>;

/// The order of a computation's instructions; stores its peak.
pub fn schedule(
    module: &Module,
    flow: &Dataflow,
    comp: CompId,
    target: &Target,
    peaks: &mut Peaks,
) -> Vec<InstrId> {
    let graph = Graph::new(module, flow, comp);
    let costs = Costs::new(module, flow, comp, &graph, target, peaks);
    let mut best: Option<(u64, Vec<u32>)> = None;
    for order in [
        listed(&graph),
        depth_first(&graph, &costs),
        greedy(&graph, &costs),
    ] {
        let peak = costs.peak(&graph, &order);
        if best.as_ref().is_none_or(|(lowest, _)| peak < *lowest) {
            best = Some((peak, order));
        }
    }
    let (peak, order) = best.unwrap_or_default();
    peaks.set(comp, peak);
    order.into_iter().map(|n| graph.nodes[n as usize]).collect()
}

/// Memory facts of a computation's nodes.
struct Costs {
    /// Bytes of the values that each node defines.
    defined: Vec<u64>,
    /// Bytes that are needed only while the node runs.
    transient: Vec<u64>,
    /// The values that each node reads, by number.
    reads: Vec<Vec<u32>>,
    /// Bytes of each value read, zero when reading it last frees nothing.
    bytes: Vec<u64>,
    /// How many nodes read each value; the result counts as one more.
    readers: Vec<u32>,
    /// Nodes that only pass values on.
    structural: Vec<bool>,
}

impl Costs {
    fn new(
        module: &Module,
        flow: &Dataflow,
        comp: CompId,
        graph: &Graph,
        target: &Target,
        peaks: &Peaks,
    ) -> Self {
        let n = graph.nodes.len();
        let mut costs = Self {
            defined: vec![0; n],
            transient: vec![0; n],
            reads: vec![Vec::new(); n],
            bytes: Vec::new(),
            readers: Vec::new(),
            structural: Vec::new(),
        };
        let results: BTreeSet<ValueId> = flow.at(module.comps[comp].root).iter().copied().collect();
        let mut numbers: BTreeMap<ValueId, u32> = BTreeMap::new();
        let frees = |id: ValueId| {
            let value = &flow.values()[id];
            let own = module.instrs[value.instr].parent == comp
                && !matches!(value.kind, ValueKind::Parameter | ValueKind::Constant);
            if own { value.bytes() } else { 0 }
        };
        for (&value, readers) in &graph.readers {
            let number = costs.bytes.len() as u32;
            numbers.insert(value, number);
            costs.bytes.push(frees(value));
            costs
                .readers
                .push(readers.len() as u32 + u32::from(results.contains(&value)));
            for &reader in readers {
                costs.reads[reader as usize].push(number);
            }
        }
        for (i, &id) in graph.nodes.iter().enumerate() {
            let op = &module.instrs[id].op;
            costs.structural.push(is_structural(op));
            let own = flow
                .at(id)
                .iter()
                .filter(|&&v| flow.values()[v].instr == id);
            costs.defined[i] = own
                .filter(|&&v| numbers.contains_key(&v) || results.contains(&v))
                .map(|&v| frees(v))
                .fold(0, u64::saturating_add);
            let called = op.called();
            let inner = called.iter().map(|&c| peaks[c]).max().unwrap_or(0);
            costs.transient[i] = inner.saturating_add(scratch::bytes(module, id, target));
        }
        costs
    }

    /// Peak memory of an order.
    fn peak(&self, graph: &Graph, order: &[u32]) -> u64 {
        let mut left = self.readers.clone();
        let (mut now, mut peak) = (0u64, 0u64);
        debug_assert_eq!(order.len(), graph.nodes.len(), "every node has a place");
        for &node in order {
            let node = node as usize;
            now = now.saturating_add(self.defined[node]);
            peak = peak.max(now.saturating_add(self.transient[node]));
            for &value in &self.reads[node] {
                left[value as usize] -= 1;
                if left[value as usize] == 0 {
                    now = now.saturating_sub(self.bytes[value as usize]);
                }
            }
        }
        peak
    }
}

/// The listed order, changed only where edges ask for it.
fn listed(graph: &Graph) -> Vec<u32> {
    let mut waiting: Vec<usize> = graph.before.iter().map(Vec::len).collect();
    let mut ready: BTreeSet<u32> = (0..waiting.len() as u32)
        .filter(|&n| waiting[n as usize] == 0)
        .collect();
    let mut out = Vec::with_capacity(waiting.len());
    while let Some(node) = ready.pop_first() {
        out.push(node);
        for &next in &graph.after[node as usize] {
            waiting[next as usize] -= 1;
            if waiting[next as usize] == 0 {
                ready.insert(next);
            }
        }
    }
    out
}

/// Every node right before the first that needs it, the operand that defines most first.
fn depth_first(graph: &Graph, costs: &Costs) -> Vec<u32> {
    let n = graph.nodes.len();
    let mut done = vec![false; n];
    let mut out = Vec::with_capacity(n);
    let sinks = (0..n as u32).filter(|&i| graph.after[i as usize].is_empty());
    for sink in sinks {
        let mut stack = vec![(sink, false)];
        while let Some((node, expanded)) = stack.pop() {
            if done[node as usize] {
                continue;
            }
            if expanded {
                done[node as usize] = true;
                out.push(node);
                continue;
            }
            stack.push((node, true));
            let mut before = graph.before[node as usize].clone();
            before.sort_by_key(|&b| (costs.defined[b as usize], std::cmp::Reverse(b)));
            stack.extend(before.into_iter().map(|b| (b, false)));
        }
    }
    out
}

/// Always the ready node that leaves the least memory in use.
fn greedy(graph: &Graph, costs: &Costs) -> Vec<u32> {
    let n = graph.nodes.len();
    let mut waiting: Vec<usize> = graph.before.iter().map(Vec::len).collect();
    let mut left = costs.readers.clone();
    let mut last_reader = vec![0u64; left.len()];
    for (node, reads) in costs.reads.iter().enumerate() {
        for &value in reads {
            last_reader[value as usize] += node as u64;
        }
    }
    let mut freed = vec![0u64; n];
    for (freed, reads) in freed.iter_mut().zip(&costs.reads) {
        for &value in reads {
            if left[value as usize] == 1 {
                *freed = freed.saturating_add(costs.bytes[value as usize]);
            }
        }
    }
    let key = |node: u32, freed: &[u64]| {
        let node = node as usize;
        let growth = i128::from(costs.defined[node]) - i128::from(freed[node]);
        (!costs.structural[node], growth, node)
    };
    let mut ready = BTreeSet::new();
    for node in 0..n as u32 {
        if waiting[node as usize] == 0 {
            ready.insert(key(node, &freed));
        }
    }
    let mut out = Vec::with_capacity(n);
    while let Some((_, _, node)) = ready.pop_first() {
        out.push(node as u32);
        for &value in &costs.reads[node] {
            let value = value as usize;
            left[value] -= 1;
            last_reader[value] -= node as u64;
            // One reader is left when the value is no result; its number is the sum.
            let reader = last_reader[value] as usize;
            if left[value] == 1 && costs.reads[reader].contains(&(value as u32)) {
                let was_ready = ready.remove(&key(reader as u32, &freed));
                freed[reader] = freed[reader].saturating_add(costs.bytes[value]);
                if was_ready {
                    ready.insert(key(reader as u32, &freed));
                }
            }
        }
        for &next in &graph.after[node] {
            waiting[next as usize] -= 1;
            if waiting[next as usize] == 0 {
                ready.insert(key(next, &freed));
            }
        }
    }
    out
}
